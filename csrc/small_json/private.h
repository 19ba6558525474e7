/* small_json/private.h - what the files of this folder share: the state of a reader.  C only. */
#pragma once

#include "small_json/read.h"

enum { FP_SMALL_NUMBERS = 11 };

struct fp_small_json_node { /* pyinstrument: an open frame of a tree */
    int64_t time, of_children;
    uint32_t name, file, line, stack, is_late; /* is_late: its name comes after its children */
};

struct fp_small_json_item { /* StackProf: a cost of a frame, or of its calls of another one, in samples */
    uint32_t frame, callee, line;
    int64_t weight;
};

struct fp_small_json_reader {
    struct fp_small_json s;
    struct fp_model *model; /* borrowed */
    struct fp_batch *out;   /* during a call */
    const struct fp_json_shape *shape;
    int32_t lenient, has_rows;
    int64_t interval_us;
    struct fp_json_walk walk;
    struct fp_marshal marshal;
    int64_t numbers[FP_SMALL_NUMBERS]; /* of the record; -1: not read */
    uint32_t name, module, place;
    uint32_t file; /* Scalene: its path */
    /* Scalene: by line where a function of the file begins; GHC: by cost centre, its frame; pyinstrument: by number of
     * `texts`, its frame; StackProf: by number of `keys`, its frame */
    uint32_t *names;
    uint32_t cap_names; /* what is beyond has none */
    uint32_t *stacks;   /* GHC: of open nodes; the first is the parent of the root.  Frames of a sample from 1 on.
                         * Scalene: lines that are in `names`, from 1 on. */
    uint32_t n, cap;
    uint32_t is_taken;        /* GHC: the innermost node has its row */
    int32_t is_asked, is_bad; /* is_asked, pyinstrument: 2 after the part is there */
    uint32_t thread;          /* pyinstrument: of the sample */
    uint64_t now;             /* nanoseconds of the samples so far */
    struct fp_strings texts;
    struct fp_small_json_node *nodes; /* the first is the parent of the root */
    uint32_t n_nodes, cap_nodes;
    struct fp_table keys;             /* pyinstrument: names and ids of threads; StackProf: ids of frames */
    struct fp_small_json_item *items; /* in the order of their frames */
    uint32_t n_items, cap_items, next_item, key;
    uint64_t left; /* of a sample: frames that follow + 1, 0: its number of frames comes next */
    int64_t line, own, of_lines;
    uint64_t *times; /* microseconds, by sample */
    uint32_t n_times, cap_times, next_time;
    uint32_t n_frames; /* Safari: in `names`; `own` is the time, `times` are nanoseconds by sample, as `stacks` */
};

extern const struct fp_json_shape fp_pyinstrument_shape, fp_safari_shape, fp_stackprof_shape;

/* A record without what `want` names: an error, or 0 and a loss. */
int fp_small_json_broken(struct fp_small_json_reader *r, const struct fp_window *in, const char *want,
                         struct fp_err *err);

/* Sets a value of the last row. */
static inline void fp_small_json_put(struct fp_batch *out, uint32_t column, int64_t value) {
    out->values[(size_t)column * out->cap + out->n - 1] = value;
}
