/* pprof/write.h - writes pprof's profile.proto in one pass.
 *
 * A protocol buffer may have its fields in any order.  So each string, function and location is written just before the
 * first sample that uses it.  Mappings are written at the end, because each records whether all its locations have
 * functions.  Ids are 1, 2, 3 ... in the order written, string 0 is "", no entry is written twice.
 *
 *   32 00                      string_table[0] = ""
 *   32 01 66                   string_table[1] = "f"
 *   2a 06 08 01 10 01 18 01    function 1: name 1, system name 1
 *   22 0b 08 01 18 90 20 22 04 08 01 10 07   location 1: address 0x1010, line 7 of function 1
 *   12 06 0a 01 01 12 01 05    sample: location 1, value 5
 *
 * The fields of the profile itself are the caller's to write (core/wire.h): string_table[0] and the sample types before
 * the first call, the others at any time.
 *
 * Memory: linear in the model's tables.
 * Source: google/pprof proto/profile.proto.
 */
#pragma once

#include "core/core.h"

enum { FP_PPROF_MEMO_BYTES = 1 << 24, FP_PPROF_NODES = 8, FP_PPROF_AHEAD = 64 };

struct fp_pprof_write_stats {
    uint64_t samples;
    /* They get a location named "[no stack]". */
    uint64_t FP_COUNT(no_stack, "samples-without-stack");
    uint64_t FP_COUNT(times, "sample-times");
    uint64_t FP_COUNT(not_utf8, "invalid-utf8", not_representable, "non-UTF-8 string(s), repaired");
};

/* Strings of the model that the writer needs; set by the caller. */
struct fp_pprof_words {
    uint32_t pid, tid; /* keys of the labels for a row's thread; 0: that label is not written */
    uint32_t no_stack; /* name of the function of samples without stack */
};

struct fp_pprof_node {
    uint32_t node;
    size_t nbytes; /* of the ids from it to the root */
};

struct fp_pprof_writer {
    struct fp_model *model;
    struct fp_pprof_words words;
    int32_t name_addresses;  /* locations without function get one named after the address */
    int32_t no_system_names; /* functions have no system_name that is their name */
    struct fp_pprof_write_stats stats;

    /* private from here on */
    uint32_t row;       /* of the batch: the first row not written */
    uint32_t n_strings; /* written */
    uint32_t no_stack;  /* the location of samples without stack; 0 = not yet written */
    /* id of the model -> id in the file, 0 = not yet written */
    struct fp_utf8_names texts; /* strings as UTF-8 */
    struct fp_buf scratch;
    uint32_t *strings, *functions, *frames, *mappings;
    uint32_t cap_strings, cap_functions, cap_frames, cap_mappings;
    /* The entries of the file.  A row's id is the entry's id in the file. */
    struct fp_table out_functions, out_locations, out_mappings;
    uint8_t *seen; /* by mapping of the file: the properties of its locations */
    uint32_t cap_seen;
    /* Bytes written for stacks, label chains and threads, to be copied when they repeat.  Limited to
     * FP_PPROF_MEMO_BYTES. */
    struct fp_buf memo;
    uint32_t *memo_stacks, *memo_labels,
        *memo_threads; /* by id of the model: offset in memo, of a u32 length and the bytes; 0 = none */
    uint32_t cap_memo_stacks, cap_memo_labels, cap_memo_threads;
    uint32_t n_first, n_again;      /* stacks written for the first time, and those found in the memo */
    int few_again;                  /* hardly any is found, so none is looked up or stored any more */
    uint32_t ahead[FP_PPROF_AHEAD]; /* by row: the node prefetched last */
    /* The last stack, caller after caller, and the ids of its locations, leaf first: at the end of `ids`, so that a
     * callee's can be prepended.   main > f: 02 01   main > f > g: 03 02 01 */
    struct fp_pprof_node *path;
    uint32_t n_path, cap_path, n_emptied;
    uint32_t *above; /* nodes from a leaf up to one on the path */
    uint32_t cap_above;
    struct fp_buf ids;
    uint8_t none[8]; /* the location of samples without stack, as a list */
    /* scratch */
    struct fp_buf rest;  /* of a sample: values and labels */
    struct fp_buf entry; /* a location; before that, the name of one */
};

/* Borrows the model.  Caller owns. */
struct fp_pprof_writer *fp_pprof_writer_new(struct fp_model *model);
void fp_pprof_writer_free(struct fp_pprof_writer *w);

/* The index in the string table of a string of the model; it is written to `out` if new. */
int64_t fp_pprof_string(struct fp_pprof_writer *w, uint32_t string, struct fp_buf *out);

/* Writes a sample for each row.  Value k of it is column columns[k] of the batch, or 0 where columns[k] < 0.
 * FP_DONE, FP_E_NOMEM, or FP_FULL: drain `out` and call again with the same batch. */
int fp_pprof_put(struct fp_pprof_writer *w, const struct fp_batch *in, const int32_t *columns, uint32_t n_columns,
                 struct fp_buf *out);

/* After the last sample: writes the mappings, those of the object `program` (0: none) first.  FP_DONE or FP_E_NOMEM. */
int fp_pprof_mappings(struct fp_pprof_writer *w, uint32_t program, struct fp_buf *out);
