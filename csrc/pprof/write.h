/* pprof/write.h - writes pprof's profile.proto in one pass.
 *
 * Floor 2.  Protocol buffers allow the fields of a message in any order, so each
 * string, function and location is written just before the first sample that
 * uses it; mappings come at the end, when it is known whether all their
 * locations have functions.  Ids are 1, 2, 3 ... in the order written, string 0
 * is "", no entry is written twice.
 *
 *   32 00                      string_table[0] = ""
 *   32 01 66                   string_table[1] = "f"
 *   2a 06 08 01 10 01 18 01    function 1: name 1, system name 1
 *   22 0b 08 01 18 90 20 22 04 08 01 10 07   location 1: address 0x1010, line 7 of function 1
 *   12 06 0a 01 01 12 01 05    sample: location 1, value 5
 *
 * Memory: linear in the model's tables.
 * Source: google/pprof proto/profile.proto.
 */
#ifndef FP_PPROF_WRITE_H
#define FP_PPROF_WRITE_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

enum { FP_PPROF_MEMO_BYTES = 1 << 24 };

struct fp_pprof_write_stats {
    uint64_t samples;
    uint64_t no_stack; /* samples given a location named "[no stack]" */
    uint64_t times;    /* samples whose time was not written */
    uint64_t mended;   /* strings whose bytes were not UTF-8 */
};

/* Names the writer makes up; interned by the caller.  0: such labels are not written. */
struct fp_pprof_words {
    uint32_t pid, tid; /* keys of the labels of a row's thread */
    uint32_t no_stack; /* the function of samples without stack */
};

struct fp_pprof_writer {
    struct fp_model *model;
    struct fp_pprof_words words;
    int32_t name_addresses; /* functions for locations that have none */
    struct fp_pprof_write_stats stats;

    /* private from here on */
    uint32_t n_strings;                                /* written */
    uint32_t no_stack;                                 /* the location of samples without stack */
    uint32_t *strings, *functions, *frames, *mappings; /* model id -> id written, 0 = not yet */
    uint32_t cap_strings, cap_functions, cap_frames, cap_mappings;
    struct fp_table out_functions, out_locations, out_mappings; /* row ids are the ids written */
    uint8_t *seen;                                              /* by mapping written: what its locations have */
    uint32_t cap_seen;
    /* stacks and label chains as they were written, to be copied; kept while
     * there are less than FP_PPROF_MEMO_BYTES of them */
    struct fp_buf memo;
    uint32_t *memo_stacks,
        *memo_labels; /* by stack or label: offset in memo, of a u32 length and the bytes; 0 = none */
    uint32_t cap_memo_stacks, cap_memo_labels;
    struct fp_buf ids, rest, entry, message; /* scratch: of a sample, of a table entry */
};

/* Borrows the model.  Caller owns.  NULL when memory ran out. */
struct fp_pprof_writer *fp_pprof_writer_new(struct fp_model *model);
void fp_pprof_writer_free(struct fp_pprof_writer *w);

/* The index of a string of the model, written to `out` if new; negative: FP_E_NOMEM. */
int64_t fp_pprof_string(struct fp_pprof_writer *w, uint32_t string, struct fp_buf *out);

/* Samples for the rows.  Value k of each is column columns[k] of the batch, or
 * 0 where columns[k] < 0.  FP_DONE or FP_E_NOMEM. */
int fp_pprof_put(struct fp_pprof_writer *w, const struct fp_batch *in, const int32_t *columns, uint32_t n_columns,
                 struct fp_buf *out, struct fp_err *err);

/* After the last sample: the mappings.  FP_DONE or FP_E_NOMEM. */
int fp_pprof_mappings(struct fp_pprof_writer *w, struct fp_buf *out, struct fp_err *err);

/* cffi-end */

#endif
