/* otlp/read_private.h - shared by the C files of the reader: read.c finds messages and their layout, tables.c reads the
 * dictionary, resolve.c adds it to the model, samples.c makes rows.  C only. */
#pragma once

#include "otlp/read.h"

/* Fields of containers. */
enum { FP_OTLP_RESOURCE = 1, FP_OTLP_SCOPE = 1, FP_OTLP_SCHEMA_URL = 3 };

struct fp_otlp_resource {
    uint32_t first, n; /* in r->current.own */
};

struct fp_otlp_scope {
    uint32_t resource;
    uint32_t name, version; /* strings of the model */
    uint32_t first, n;      /* in r->current.own */
};

/* How an entry of the dictionary begins. */
struct fp_otlp_entry {
    uint64_t at;
    uint32_t first, n; /* its attributes, or locations, in r->current.lists */
};

struct fp_otlp_mapping {
    struct fp_otlp_entry entry;
    uint64_t start, limit, offset, filename;
    uint32_t object, id; /* of the model, after resolving */
};

struct fp_otlp_function {
    struct fp_otlp_entry entry;
    uint64_t name, system_name, filename;
    int64_t line;
};

struct fp_otlp_line {
    uint64_t function;
    int64_t line, column;
};

struct fp_otlp_location {
    struct fp_otlp_entry entry;
    uint64_t mapping, address;
    uint32_t first_line, n_lines;
    uint32_t frame; /* of the model, after resolving */
};

struct fp_otlp_link {
    struct fp_otlp_entry entry;
    uint32_t trace, span; /* strings of the model: hexadecimal digits; 0: none */
};

struct fp_otlp_stack {
    struct fp_otlp_entry entry;
    uint32_t bad; /* malformed, or one of its locations does not exist (lenient) */
};

/* Messages.  The first ones are entries of the dictionary, by the number of their table. */
enum fp_otlp_message_kind {
    FP_OTLP_MAPPING = 1,
    FP_OTLP_LOCATION,
    FP_OTLP_FUNCTION,
    FP_OTLP_LINK,
    FP_OTLP_STRING,
    FP_OTLP_ATTRIBUTE,
    FP_OTLP_STACK,
    FP_OTLP_LINE,
    FP_OTLP_VALUE_TYPE,
    FP_OTLP_KEY_VALUE,
    FP_OTLP_ANY_VALUE,
    FP_OTLP_ATTRIBUTES,
    FP_OTLP_SCOPE_HEAD
};
extern const struct fp_wire_schema fp_otlp_messages[];

struct fp_otlp_labels {
    uint32_t chain, thread; /* FP_NO_ID: not created yet */
};

/* A sample, whose fields are in the window. */
struct fp_otlp_sample {
    uint64_t at, stack, link;
    struct fp_wire attributes, values, times;
};

enum fp_otlp_cursor_state { FP_OTLP_WANTED = 0, FP_OTLP_FOUND, FP_OTLP_OVER }; /* of the next sample */

/* Reads the samples of a profile. */
struct fp_otlp_cursor {
    struct fp_window window;
    struct fp_otlp_walk walk;
    uint32_t column, state;
    int32_t joined;               /* the sample becomes rows together with the leader's */
    struct fp_otlp_sample sample; /* FOUND */
    int64_t *values;              /* of the sample's rows */
    uint32_t n_values, cap_values;
    struct fp_buf attributes, packed, times; /* lists in several pieces, joined */
};

static inline uint64_t fp_otlp_offset(const struct fp_window *in, const uint8_t *p) {
    return in->base + (uint64_t)(p - in->p);
}

/* Reports a malformed entry: an error or, when lenient, 0 after counting it. */
static inline int fp_otlp_bad_entry(struct fp_otlp_reader *r, uint64_t at, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, at, what);
    r->stats.bad_entries++;
    return 0;
}

/* Checks that an index is less than n: 1; 0 when lenient, after counting it; or an error. */
int fp_otlp_check_index(struct fp_otlp_reader *r, uint64_t index, uint32_t n, uint64_t at, const char *what,
                        struct fp_err *err);

/* Adds the fields of a sample to the statistics. */
void fp_otlp_look_at_sample(struct fp_otlp_evidence *e, const struct fp_wire_field *sample);
