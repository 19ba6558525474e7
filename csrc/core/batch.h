/* core/batch.h - a batch: rows stored as columns.
 *
 * All rows of a batch are of one view and one part.  A batch is allocated once and refilled: its rows are valid until
 * the next refill.  Only the columns of its view are allocated.
 */
#pragma once

#include "core/fp.h"

/* cffi-begin */

enum fp_view { FP_TIMELINE = 1, FP_STACKS = 2, FP_GRAPH = 3 };

/* Timeline: the event at `time`. */
enum fp_op {
    FP_OP_ENTER = 0,
    FP_OP_EXIT = 1,
    FP_OP_TAIL_EXIT = 2,  /* left by a tail call; the callee's enter follows */
    FP_OP_ENTER_ARGS = 3, /* an enter whose arguments follow */
    FP_OP_ARGUMENT = 4,   /* aux = the argument; belongs to the previous row */
    FP_OP_CUSTOM = 5,     /* aux = payload: offset in `bytes` << 32 | length */
    FP_OP_TYPED = 6,      /* the same; function = event type */
    FP_OP_BUFFER = 7      /* a new buffer of this thread; aux = its wall clock in
                             microseconds since an unknown epoch */
};

/* Graph: the kind of a row. */
enum fp_kind {
    FP_COST = 0, /* self cost at a position */
    FP_CALL = 1, /* a call arc: count calls from position to target, inclusive values */
    FP_JUMP = 2, /* count jumps from position to target */
    FP_JCND = 3, /* conditional jump: followed `count` of `count2` times */
    FP_BLOCK = 4 /* a function that is named here but has no rows */
};

/* A column pointer is NULL when the view has no such column.  Values are
 * column-major: value k of row i is values[k * cap + i]. */
struct fp_batch {
    uint32_t view;     /* enum fp_view */
    uint32_t cap;      /* rows */
    uint32_t n;        /* rows in use */
    uint32_t part;     /* index into the model's parts */
    uint32_t n_values; /* value columns in use; 0 for a timeline */
    uint32_t values_cap;
    int32_t is_summed; /* stacks: each row is a sum of `count` samples; 0: `count` is not set */
    int64_t *values;   /* stacks, graph */

    uint64_t *time;     /* timeline: ticks.  stacks: nanoseconds, 0 = none */
    uint64_t *aux;      /* timeline: set for the ops that use it (enum fp_op) */
    uint32_t *function; /* timeline, graph: function id */
    uint32_t *thread;   /* timeline, stacks: thread id, 0 = unknown */
    uint16_t *cpu;      /* timeline */
    uint8_t *op;        /* timeline: enum fp_op */

    uint32_t *stack; /* stacks: node of the stack tree, leaf */
    uint32_t *label; /* stacks: label chain, 0 = none */

    uint8_t *kind;         /* graph: enum fp_kind */
    uint32_t *file;        /* graph: string, the file `line` is in (fl=, fi=, fe=) */
    uint32_t *line;        /* graph: source line; 0 = unknown */
    uint64_t *address;     /* graph: instruction address, if the part has such positions */
    uint64_t *bb;          /* graph: basic block, if the part has such positions */
    uint32_t *callee;      /* graph: call: function called; jump: function jumped into */
    uint32_t *target_file; /* graph: jump: string, the file of `target_line` */
    uint32_t *target_line;
    uint64_t *target_address;
    uint64_t *target_bb;
    uint64_t *count;  /* graph: calls, jumps, jumps followed.  stacks: see is_summed */
    uint64_t *count2; /* graph: conditional jumps executed */

    uint8_t *bytes; /* payloads of this batch's rows */
    size_t bytes_n;
    size_t bytes_cap;
    void *block;           /* the one allocation that holds all columns */
    int64_t *outgrown[32]; /* earlier memory of `values`, which Python's arrays may use; in all less than `values` */
    uint32_t n_outgrown;
};

/* A source of rows for C code that may not include a decoder's header. */
struct fp_feed {
    int (*fill)(struct fp_feed *feed); /* appends rows to `out`; returns what a decoder's feed returns */
    struct fp_batch *out;
    int32_t status;  /* of the last call */
    uint64_t n_rows; /* rows taken so far */
};

/* A batch of `cap` rows (1 or more); NULL when memory ran out.  Caller owns. */
struct fp_batch *fp_batch_new(uint32_t view, uint32_t cap, uint32_t n_values);
void fp_batch_free(struct fp_batch *b);

/* Empties the batch.  Debug builds poison the rows that were lent. */
void fp_batch_reset(struct fp_batch *b);

/* Swaps the rows and the memory of two batches. */
void fp_batch_swap(struct fp_batch *a, struct fp_batch *b);

/* A copy; NULL when memory ran out.  Caller owns. */
struct fp_batch *fp_batch_copy(const struct fp_batch *b);

/* Sets the number of value columns.  Remaining columns keep their values, new ones are not initialized.  Columns may
 * move; their old memory stays valid until the batch is freed.  0 or FP_E_NOMEM. */
int fp_batch_set_values(struct fp_batch *b, uint32_t n_values);

/* Sets value column `to` of each row to the sum of factors[k] * column k over the first `n` columns (n <= to <
 * n_values), divided by `divisor` > 0 and rounded, halves away from 0; to 0 in graph rows that have no cost.  FP_DONE,
 * or FP_E_OVERFLOW when the result is not an int64. */
int fp_batch_combine(struct fp_batch *b, uint32_t to, const int64_t *factors, uint32_t n, int64_t divisor);

/* Copies a payload into the batch's bytes; `slice` gets offset << 32 | length.
 * 0, FP_E_NOMEM, or FP_E_OVERFLOW when the bytes would pass 4 GiB. */
int fp_batch_payload(struct fp_batch *b, const void *p, size_t n, uint64_t *slice);

/* Compacts n rows from row `from` on: those with keep[i] = 1 (else 0) move to row `to` <= from and following.  Returns
 * the row after the last one moved.  The caller sets b->n. */
uint32_t fp_batch_keep(struct fp_batch *b, uint32_t to, uint32_t from, const uint8_t *keep, uint32_t n);

/* Totals of a run of batches.  The caller zeroes all but first_time. */
struct fp_summary {
    uint64_t rows[8]; /* timeline: by enum fp_op.  graph: by enum fp_kind.  stacks: [0] */
    uint64_t
        first_time; /* timeline; stacks: of those with a time.  The caller sets it to UINT64_MAX; that remains: none */
    uint64_t last_time;
    uint64_t calls;  /* graph: sum of the counts of its calls */
    int64_t *totals; /* stacks, graph: the sums of self values; n_totals of them, caller-owned */
    uint32_t n_totals;
};

/* Adds the self values of the first `n_values` columns to their totals.  FP_DONE, or FP_E_OVERFLOW when one passes 2^63
 * - 1. */
int fp_batch_add_self(const struct fp_batch *b, int64_t *totals, uint32_t n_values);

/* Adds a batch.  FP_DONE or FP_E_OVERFLOW. */
int fp_batch_summarize(const struct fp_batch *b, struct fp_summary *s);

/* Of a timeline: 0 if all rows are on CPU 0. */
uint64_t fp_batch_cpus(const struct fp_batch *b);

/* cffi-end */

/* Adds a row to a batch of stacks that is not full, and returns its number.  The caller sets its values. */
static inline uint32_t fp_batch_sample(struct fp_batch *b, uint32_t stack, uint32_t thread, uint32_t label,
                                       uint64_t time) {
    const uint32_t row = b->n++;
    b->stack[row] = stack;
    b->thread[row] = thread;
    b->label[row] = label;
    b->time[row] = time;
    return row;
}

/* Adds a row without a payload to a batch of a timeline that is not full, and returns its number. */
static inline uint32_t fp_batch_event(struct fp_batch *b, uint64_t time, uint32_t op, uint32_t function,
                                      uint32_t thread, uint16_t cpu) {
    const uint32_t row = b->n++;
    b->time[row] = time;
    b->op[row] = (uint8_t)op;
    b->function[row] = function;
    b->thread[row] = thread;
    b->cpu[row] = cpu;
    b->aux[row] = 0;
    return row;
}

/* Adds a row to a batch of a graph that is not full: a cost or, with a callee, a call.  All else is 0. */
static inline uint32_t fp_batch_cost(struct fp_batch *b, uint32_t function, uint32_t file, uint32_t line,
                                     uint32_t callee) {
    const uint32_t row = b->n++;
    b->kind[row] = callee ? FP_CALL : FP_COST;
    b->function[row] = function;
    b->file[row] = file;
    b->line[row] = line;
    b->callee[row] = callee;
    b->target_file[row] = b->target_line[row] = 0;
    b->address[row] = b->bb[row] = b->target_address[row] = b->target_bb[row] = 0;
    b->count[row] = b->count2[row] = 0;
    return row;
}

/* The samples that a row of stacks represents. */
static inline uint64_t fp_batch_samples(const struct fp_batch *b, uint32_t row) {
    return b->is_summed ? b->count[row] : 1;
}

/* The payload of a row, by its `aux`.  An empty payload is not in `bytes`, which may be NULL. */
static inline const uint8_t *fp_batch_bytes(const struct fp_batch *b, uint64_t slice) {
    return (uint32_t)slice ? b->bytes + (slice >> 32) : (const uint8_t *)"";
}
