/* ends/arrow.h - converts the rows of a profile to rows of a table, for data frames and databases.
 *
 * A batch has ids; a table has the names, threads and places that they refer to.
 *
 *   events   time, op, function, thread, process, cpu                       a timeline as it was recorded
 *   spans    id, time, duration, self, function, thread, process, depth, parent, object, category
 *            its calls, in order of their ends
 *   samples  time, stack, function, thread, process, labels, values ...     stacks
 *   frames   stack, depth, function, file, line, address, object            the frames of the stacks of `samples`
 *   graph    kind, function, file, line, object, address, callee, calls, values ...
 *
 * A column of names holds dictionary indices of texts.  Texts are distinct and valid UTF-8; they are added with the
 * rows and keep their index.  A string that is not UTF-8 gets U+FFFD for each wrong byte; strings that become equal are
 * made unique (core/utf8_names.h) in the order of the model, so all columns and tables of a profile have the same
 * texts.
 *
 * Memory: the columns; the texts; 4 bytes for each string, and frame or stack, of the model; open calls.
 */
#pragma once

#include "core/core.h"

/* An Arrow column: `cap` items of one width and a validity bit for each; without these bits all items have a value.
 * A column of width 0 is not built: it has no items. */
struct fp_ends_column {
    void *items;
    uint8_t *valid;
    uint32_t width;
};

struct fp_ends_columns {
    struct fp_ends_column *all;
    uint32_t n_columns;
    uint32_t n, cap; /* rows */

    /* private from here on */
    uint32_t cap_columns;
};

/* Caller owns. */
struct fp_ends_columns *fp_ends_columns_new(uint32_t cap);
void fp_ends_columns_free(struct fp_ends_columns *c);

/* Adds a column of items of `width` bytes.  With `nullable` the existing rows have no value. */
int fp_ends_columns_add(struct fp_ends_columns *c, uint32_t width, uint32_t nullable);

/* Makes room for `cap` rows, more than before. */
int fp_ends_columns_grow(struct fp_ends_columns *c, uint32_t cap);

/* The texts of a column of names. */
struct fp_ends_texts {
    struct fp_strings texts;

    /* private from here on */
    /* by string of the model, or by label set: 1 + the number of its text, or 0 */
    uint32_t *of;
    uint32_t cap;
};

struct fp_ends_tables {
    struct fp_ends_texts functions, callees, files, objects, labels;
    struct fp_clock clock; /* of the following events */
    uint64_t jumps;        /* rows of a graph whose target has no column; so far */
    uint64_t arguments;    /* of calls, whose values have no column; so far */
    uint64_t replaced;     /* bytes of names that are not UTF-8 */
    uint64_t events;       /* custom and typed ones, whose payloads have none; `spans` has no row for them */
    uint32_t requested;    /* FP_NEEDS: the label set whose text is needed */
    /* of the part of the following batches */
    uint32_t has_addresses, has_lines;
    const uint32_t *value_columns; /* the column of each value; borrowed */
    uint32_t n_value_columns;
    /* The rows of events, spans and samples that are built; the others count as if they were.  Threads and functions
     * are ids of the model (a sample is kept whatever its function); a row without a time is in no range of times. */
    struct fp_mask only_threads, only_functions;
    uint64_t first_time, last_time; /* both included; 0 and UINT64_MAX: any time */
    uint32_t forgotten;    /* stacks before those of the model, which got their ids anew: ids of the table follow on */
    uint32_t only_counted; /* spans: all are built, but no column is read, so nothing is written */
    /* private from here on */
    struct fp_model *model;
    struct fp_utf8_names unique; /* texts of strings that are not UTF-8 */
    uint32_t n_unique;           /* strings of the model that were made unique */
    struct fp_buf scratch;
    struct fp_ends_open_spans *threads; /* spans: by thread */
    uint32_t cap_threads;
    uint64_t n_calls;
    struct fp_ends_owner *owners; /* spans: by function */
    uint32_t cap_owners;
    uint32_t *leaves; /* samples: by frame 1 + the number of its function's text, or 0.  frames: by stack whether it was
                         seen */
    uint32_t cap_leaves, leaves_after; /* `forgotten` then */
    uint32_t *chain;                   /* frames: (frame, line) of the rest of a stack, leaf first */
    uint32_t cap_chain, n_chain, n_left;
};

/* Borrows the model and adds the names of addresses to it. */
struct fp_ends_tables *fp_ends_tables_new(struct fp_model *m);
void fp_ends_tables_free(struct fp_ends_tables *t);

/* Answers FP_NEEDS: the text of the label set `requested`. */
int fp_ends_tables_label(struct fp_ends_tables *t, const uint8_t *p, size_t n);

void fp_ends_tables_clock(struct fp_ends_tables *t, uint64_t ticks_per_second);

/* Each appends rows for those of `in` from *from on, and advances it; columns are in the order above.  FP_DONE; FP_FULL
 * when `out` is full: call again with another; FP_NEEDS (samples), FP_E_OVERFLOW for a time beyond 2^63 - 1,
 * FP_E_MALFORMED for an id that the model does not have. */
int fp_ends_tables_events(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                          struct fp_ends_columns *out, struct fp_err *err);
/* Of a timeline whose calls nest, in nanoseconds (nest.h).  A call gets its number, `id`, as it begins. */
int fp_ends_tables_spans(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                         struct fp_ends_columns *out, struct fp_err *err);
int fp_ends_tables_samples(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                           struct fp_ends_columns *out, struct fp_err *err);
/* The frames of each stack that no earlier batch had; depth 0 is the outermost. */
int fp_ends_tables_frames(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                          struct fp_ends_columns *out, struct fp_err *err);
int fp_ends_tables_graph(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                         struct fp_ends_columns *out, struct fp_err *err);
