/* otlp/from_json.h - OTLP's JSON -> the same messages as protocol buffers, in grouped form (otlp/walk.h).
 *
 *   {"resourceProfiles": [{"scopeProfiles": []}]}      7b 0b 0c 7c     message 15 begins, 1 begins, 1 ends, 15 ends
 *
 * Messages that contain others are groups, so that their length need not be known in advance; all others have a
 * length.  The reader of protocol buffers then reads the result, so that both forms have one reader.  Several messages
 * may follow each other, one per line or not.
 *
 * Unknown keys are skipped and counted; null counts as a missing key.
 */
#pragma once

#include "otlp/json_fields.h"

enum { FP_OTLP_JSON_LEVELS = 512 };

struct fp_otlp_json_level {
    size_t mark;                            /* of fp_wire_begin; 0: none */
    const struct fp_otlp_json_field *field; /* of a list */
    uint8_t message;                        /* of an object */
    uint8_t number;                         /* of its field */
    uint8_t padding[6];
};

struct fp_otlp_json {
    struct fp_json json;
    int32_t lenient;       /* set by the caller */
    uint64_t unknown_keys; /* counted */
    uint64_t bad_values;   /* lenient: of the wrong type */
    uint64_t lost_bytes;   /* lenient: after the damage */
    /* The input offset of the message that contains byte `find` of the output. */
    uint64_t find, found;
    uint64_t n_out; /* bytes of output before `out` */
    /* private from here on */
    struct fp_otlp_json_level levels[FP_OTLP_JSON_LEVELS];
    uint32_t depth, skipped; /* open levels; open levels within a value that is skipped */
    size_t first_mark;       /* in `out`: the begin of the outermost message with a length; SIZE_MAX: none */
    uint32_t first_depth;
    const struct fp_otlp_json_field *key; /* of the next value; NULL: unknown */
    struct fp_buf scratch;
    int32_t over;
};

struct fp_otlp_json *fp_otlp_json_new(void);
void fp_otlp_json_free(struct fp_otlp_json *j);

/* FP_MORE; FP_FULL: drain `out`; FP_DONE; or an error. */
int fp_otlp_json_feed(struct fp_otlp_json *j, struct fp_window *in, struct fp_buf *out, struct fp_err *err);
