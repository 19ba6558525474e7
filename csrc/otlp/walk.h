/* otlp/walk.h - walks nested messages of a protocol buffer, in windows smaller than them.
 *
 *   0a 1c | 0a 04 .... | 12 14 | 12 12 | 0a 04 ..     begin ResourceProfiles, field 1, begin ScopeProfiles, begin
 * Profile, field 1 ...
 *
 * Only messages that contain many others are begun and ended; all others, such as a sample, are fields, which are whole
 * in the window if they are wanted.
 *
 * Two forms of a file with several messages: `framed`, each after its length, 4 bytes big-endian; `grouped`, which the
 * translation of JSON makes (otlp/from_json.h): messages that contain others have no length, but an end (wire types 3
 * and 4, "groups").
 */
#ifndef FP_OTLP_WALK_H
#define FP_OTLP_WALK_H

#include "core/wire.h"

/* cffi-begin */

enum { FP_OTLP_MAX_MESSAGE = 1 << 26 }; /* bytes of a field that is whole in the window */

enum fp_otlp_form { FP_OTLP_PLAIN = 0, FP_OTLP_FRAMED = 1, FP_OTLP_GROUPED = 2 };

/* Messages that are begun and ended. */
enum fp_otlp_container {
    FP_OTLP_FILE = 0,
    FP_OTLP_DATA,
    FP_OTLP_RESOURCE_PROFILES,
    FP_OTLP_SCOPE_PROFILES,
    FP_OTLP_PROFILE,
    FP_OTLP_DICTIONARY
};

struct fp_otlp_level {
    uint64_t end;    /* absolute; UINT64_MAX: unknown */
    uint8_t message; /* enum fp_otlp_container */
    uint8_t padding[7];
};

struct fp_otlp_walk {
    struct fp_otlp_level levels[8];
    uint32_t depth;
    int32_t form;       /* enum fp_otlp_form; set by the caller */
    int32_t lenient;    /* set by the caller */
    int32_t counts;     /* this pass counts losses */
    uint32_t wanted[8]; /* by container: a bit for each field whose content is wanted, or that is begun */
    uint64_t at;        /* absolute offset of the field, or of the one begun */
    uint64_t end_at;    /* of the one ended: its end */
    uint64_t skip;      /* bytes left to skip */
    int32_t lost;       /* they are a loss */
    uint64_t lost_bytes, bad_fields;
};

/* cffi-end */

/* The field of a file that is a message, in grouped form. */
enum { FP_OTLP_MESSAGE_FIELD = 15 };

/* The container that a field of another one is, or FP_OTLP_FILE: none. */
static inline unsigned fp_otlp_container(unsigned of, uint32_t number) {
    switch (of << 8 | number) {
        case FP_OTLP_FILE << 8 | FP_OTLP_MESSAGE_FIELD: return FP_OTLP_DATA;
        case FP_OTLP_DATA << 8 | 1: return FP_OTLP_RESOURCE_PROFILES;
        case FP_OTLP_DATA << 8 | 2: return FP_OTLP_DICTIONARY;
        case FP_OTLP_RESOURCE_PROFILES << 8 | 2: return FP_OTLP_SCOPE_PROFILES;
        case FP_OTLP_SCOPE_PROFILES << 8 | 2: return FP_OTLP_PROFILE;
        default: return FP_OTLP_FILE;
    }
}

/* What fp_otlp_next found, in addition to enum fp_status.  BEGIN: the top level is the container begun.  END: the one
 * ended, `ended`, is no level any more. */
enum { FP_OTLP_FIELD = 16, FP_OTLP_BEGIN = 17, FP_OTLP_END = 18 };

void fp_otlp_walk_begin(struct fp_otlp_walk *w, unsigned container);

/* The container that the walk is in. */
static inline unsigned fp_otlp_inside(const struct fp_otlp_walk *w) {
    return w->levels[w->depth - 1].message;
}

/* FP_OTLP_FIELD, BEGIN, END; FP_MORE, FP_DONE or an error.  A field that is not wanted has no content. */
int fp_otlp_next(struct fp_otlp_walk *w, struct fp_in *in, struct fp_wire_field *f, struct fp_err *err);

/* The kinds of a container's fields. */
const struct fp_wire_schema *fp_otlp_schema(unsigned container);

#endif
