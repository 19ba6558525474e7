/* speedscope/write.h - writes calls and samples as speedscope's JSON.
 *
 *   {"type":"evented","name":"thread 7","unit":"nanoseconds","startValue":0,"endValue":9,"events":[
 *     {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":5},{"type":"C","frame":0,"at":9}]}
 *   {"type":"sampled","name":"cpu","unit":"nanoseconds","startValue":0,"endValue":9,"samples":[[0],[0,1]],"weights":[6,3]}
 *   "shared":{"frames":[{"name":"main"},{"name":"f","file":"f.c","line":3}]}
 *
 * Each thread is a profile, but rows of threads alternate, and weights follow all samples.  So rows are first grouped
 * by part and thread and packed to a few bytes each, which the caller spills if there are many:
 *
 *   an enter   function + 1, time since the thread's last row, as varints (csrc/core/buf.h: fp_varint)
 *   an exit    0, time
 *   a sample   frames shared with the thread's last sample, how many others and these, root first, each value
 *
 * At the end the rows of each thread are converted to JSON, samples twice for each value type.
 *
 * Memory: linear in distinct functions, parts and threads and open calls or the frames of a stack of each thread; plus
 * the packed rows that the caller keeps.
 */
#pragma once

#include "core/core.h"

/* Maximum depth of calls: speedscope walks stacks by recursion, and overflows its own stack at 5,000 to 7,000. */
enum { FP_SPEEDSCOPE_DEPTH = 4000 };

/* Bytes of packed rows to keep in memory. */
enum { FP_SPEEDSCOPE_PACKED = 1 << 20 };

/* The rows of one profile, or, for samples, of one profile per value type. */
struct fp_speedscope_group {
    uint32_t part, thread;
    uint64_t first, last; /* calls: nanoseconds */
    uint64_t rows;
    uint32_t depth;       /* calls that are open */
    struct fp_buf packed; /* rows that the caller has not spilled yet */
    uint32_t *path;       /* the frames of the last sample, root first; private */
    uint32_t n_path, cap_path;
};

struct fp_speedscope {
    struct fp_model *model; /* borrowed */
    struct fp_speedscope_group *groups;
    uint32_t n_groups;
    uint64_t packed;                  /* bytes in all groups */
    uint64_t deep_calls, deep_frames; /* dropped because of FP_SPEEDSCOPE_DEPTH */
    uint64_t FP_COUNT(events, "events");
    uint64_t FP_COUNT(arguments, "call-arguments");
    uint64_t FP_COUNT(negative, "negative-values", not_representable, "negative value(s), dropped");
    uint64_t FP_COUNT(zero, "zero-values", not_representable, "sample(s) with value 0, dropped");
    uint64_t FP_COUNT(replaced, "replaced-bytes");
    uint64_t calls, samples; /* written: enters and exits, and samples of each value type */
    uint64_t now;            /* of the calls being converted */

    /* private from here on */
    uint32_t cap_groups;
    struct fp_table group_of; /* part, thread: group + 1 */
    uint32_t *frame_of;       /* by function: its frame + 1, 0 = none yet */
    uint32_t cap_frame_of;
    uint32_t *functions; /* by frame */
    uint32_t n_frames, cap_functions;
    /* of the rows being converted */
    struct fp_utf8_names names, files; /* as UTF-8 */
    struct fp_buf scratch;
    uint32_t *open; /* frames of calls, or of a sample */
    uint32_t n_open, cap_open;
    uint32_t *ends; /* of a sample: by frame of the model, where its frames in `open` end */
    uint32_t cap_ends;
    uint32_t depth, n_frames_open; /* frames of the model: of the sample, and of these, in `open` */
    uint32_t *frames; /* of the model: of a sample that is packed, leaf first; of one that is read, root first */
    uint32_t cap_frames;
    int32_t begun;
};

/* Borrows the model.  Caller owns. */
struct fp_speedscope *fp_speedscope_new(struct fp_model *model);
void fp_speedscope_free(struct fp_speedscope *w);

/* Packs the rows of a timeline, whose calls nest and whose times are nanoseconds (bridges/rows/nest.h).  0 or
 * FP_E_NOMEM. */
int fp_speedscope_calls(struct fp_speedscope *w, const struct fp_batch *b);

/* Packs rows of stacks from *row on, and advances it.  FP_FULL: spill what is packed, and call again.  FP_DONE,
 * FP_E_NOMEM. */
int fp_speedscope_samples(struct fp_speedscope *w, const struct fp_batch *b, uint32_t *row);

/* Begins to convert a group's rows, from the first one on.  `zero`: subtracted from times. */
void fp_speedscope_begin(struct fp_speedscope *w, uint32_t group, uint64_t zero);

/* Convert packed rows from in->pos on: to events; or, for samples with n_values values each, those whose value k is
 * above 0, to their stacks or their weights.  FP_FULL: drain `out` and call again.  FP_DONE: the bytes are used up.
 * FP_E_NOMEM. */
int fp_speedscope_put_calls(struct fp_speedscope *w, struct fp_window *in, struct fp_buf *out);
int fp_speedscope_put_stacks(struct fp_speedscope *w, struct fp_window *in, uint32_t n_values, uint32_t k,
                             struct fp_buf *out);
int fp_speedscope_put_weights(struct fp_speedscope *w, struct fp_window *in, uint32_t n_values, uint32_t k,
                              struct fp_buf *out);

/* Appends the frames from *from on, and advances it.  FP_FULL, FP_DONE, FP_E_NOMEM. */
int fp_speedscope_put_frames(struct fp_speedscope *w, uint32_t *from, struct fp_buf *out);
