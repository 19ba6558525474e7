/* pprof/read_private.h - shared by the C files of the reader: read.c reads the profile's own fields, read_tables.c the
 * tables, read_samples.c the samples.  C only. */
#pragma once

#include "pprof/read.h"

/* Entries of the tables.  Strings are indices into the string table, functions and mappings are ids of the file.
 * `at` is the absolute offset of the entry. */
struct fp_pprof_mapping {
    uint64_t id, start, limit, offset, filename, build_id, at;
    uint32_t flags;
    uint32_t object, mapping; /* of the model, after fp_pprof_resolve */
};

struct fp_pprof_function {
    uint64_t id, name, system_name, filename, at;
    int64_t start_line;
};

struct fp_pprof_line {
    uint64_t function;
    int64_t line, column;
};

struct fp_pprof_location {
    uint64_t id, mapping, address, folded, at;
    uint32_t first_line, n_lines; /* in r->tables.lines */
};

struct fp_pprof_label {
    uint64_t key, string, unit;
    int64_t number;
};

struct fp_pprof_value_type {
    uint64_t type, unit;
};

/* The fields of each message; see profile.proto. */
enum fp_pprof_message {
    FP_PPROF_PROFILE,
    FP_PPROF_VALUE_TYPE,
    FP_PPROF_SAMPLE,
    FP_PPROF_LABEL,
    FP_PPROF_MAPPING,
    FP_PPROF_LOCATION,
    FP_PPROF_LINE,
    FP_PPROF_FUNCTION
};
extern const struct fp_wire_schema fp_pprof_schema[];

/* The absolute offset of a byte of the window. */
static inline uint64_t fp_pprof_offset(const struct fp_window *in, const uint8_t *p) {
    return in->base + (uint64_t)(p - in->p);
}

/* The position of the entry with this id in its table, + 1; 0 when there is none. */
static inline uint32_t fp_pprof_position(const struct fp_table *ids, uint64_t id) {
    return id ? fp_table_find(ids, (uint32_t[]){FP_WORDS(id)}) : 0;
}

/* fp_pprof_next_field: a field was found. */
enum { FP_PPROF_FIELD = 16 };

/* The next field of the profile.  `wanted`: a bit for the number of each field whose complete content is needed; others
 * are skipped.  FP_PPROF_FIELD, FP_MORE, FP_DONE, or an error. */
int fp_pprof_next_field(struct fp_pprof_reader *r, struct fp_window *in, uint32_t wanted, struct fp_wire_field *f,
                        struct fp_err *err);

/* A malformed entry of a table at absolute offset `at`: an error or, when lenient, counted and 0. */
static inline int fp_pprof_bad_entry(struct fp_pprof_reader *r, uint64_t at, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, at, what);
    r->stats.bad_entries++;
    return 0;
}

/* Take one entry of a table.  0 or an error. */
int fp_pprof_take_mapping(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                          struct fp_err *err);
int fp_pprof_take_location(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                           struct fp_err *err);
int fp_pprof_take_function(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                           struct fp_err *err);
int fp_pprof_take_string(struct fp_pprof_reader *r, const struct fp_wire_field *entry, struct fp_err *err);

/* *id becomes the model's id of the string at `index` of the string table.  The reference to it is at `at`.  0 or an
 * error; when lenient, an index outside the table is counted, and *id is 0. */
int fp_pprof_resolve_string(struct fp_pprof_reader *r, uint64_t index, uint64_t at, uint32_t *id, struct fp_err *err);
