/* otlp/walk.h - walks nested messages of a protocol buffer that do not fit the window.
 *
 *   0a 1c | 0a 04 .... | 12 14 | 12 12 | 0a 04 ..     begin ResourceProfiles, field 1, begin ScopeProfiles, begin
 * Profile, field 1 ...
 *
 * Only messages that contain many others begin and end; all others, such as a sample, are fields, which are complete in
 * the window if they are wanted.
 *
 * A file with several messages has one of two forms.  `framed`: each follows its length, 4 bytes big-endian. `grouped`,
 * the result of translating JSON (otlp/from_json.h): messages that contain others have no length but an end (wire types
 * 3 and 4, "groups").
 */
#pragma once

#include "core/core.h"

/* cffi-begin */

enum { FP_OTLP_MAX_MESSAGE = 1 << 26 }; /* bytes of a field, which the window must hold */

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
    uint32_t wanted[8]; /* by container: a bit for each field to return with its content, or to begin */
    uint64_t at;        /* absolute offset of the field or container */
    uint64_t end_at;    /* the end of the container that ended */
    uint64_t skip;      /* bytes left to skip */
    int32_t lost;       /* the skipped bytes are a loss */
    uint64_t lost_bytes, bad_fields;
};

/* cffi-end */

/* The field numbers of a message of the file, in grouped form, and of a profile's samples. */
enum { FP_OTLP_MESSAGE_FIELD = 15, FP_OTLP_SAMPLE = 2 };

/* The container in a field of another container; FP_OTLP_FILE: none. */
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

/* Results of fp_otlp_next in addition to enum fp_status.  BEGIN: the new container is the top level.  END: container
 * `ended` was removed from the levels. */
enum { FP_OTLP_FIELD = 16, FP_OTLP_BEGIN = 17, FP_OTLP_END = 18 };

void fp_otlp_walk_begin(struct fp_otlp_walk *w, unsigned container);

/* The container that the walk is in. */
static inline unsigned fp_otlp_inside(const struct fp_otlp_walk *w) {
    return w->levels[w->depth - 1].message;
}

/* The next event of the walk: FP_OTLP_FIELD, BEGIN or END; FP_MORE, FP_DONE or an error.  Unwanted fields have no
 * content. */
int fp_otlp_next(struct fp_otlp_walk *w, struct fp_window *in, struct fp_wire_field *f, struct fp_err *err);

/* The wire types of a container's fields. */
const struct fp_wire_schema *fp_otlp_schema(unsigned container);
