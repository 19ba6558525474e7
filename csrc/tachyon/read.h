/* tachyon/read.h - a recording of Python 3.15's profiling.sampling (--binary) -> rows of stacks with a time.
 *
 *   header, 64 bytes    TACH, version, ..., places of the tables, compression
 *
 *   samples             4c 00 00 00 00 00 00 00  00 00 00 00  01  05 03 02 01 00
 *                       thread 0x4c, interpreter 0, kind 1 (a stack): after 5 us, state 3,
 *                       2 frames, the innermost first
 *
 *   strings             04 6d 61 69 6e           main
 *
 *   frames              00 01 06 00 02 00 ff     string 0 (file), 1 (function), line 3, end line,
 *                       column, end, opcode
 *
 *   footer, 32 bytes    numbers of strings and frames, size of the file
 *
 * Kind 0 repeats the thread's stack: a number of samples, each with a time and a state.  Kind 2 keeps a number of outer
 * frames, kind 3 removes a number of inner ones; both add others.
 *
 * The caller finds and decompresses the parts.  Memory: strings, frames, and a stack for each thread.
 * Source: CPython's InternalDocs/profiling_binary_format.md and Modules/_remote_debugging/binary_io.h.
 */
#pragma once

#include "core/core.h"

struct fp_tachyon {
    uint64_t start_us, interval_ns; /* set by the caller */
    int32_t swap;                   /* set by the caller: numbers of fixed size have the other byte order */
    uint32_t input;                 /* of the model; set by the caller */
    uint32_t n_threads;
    uint64_t samples;
    uint64_t FP_COUNT(undefined, "undefined-frames", losses, "frame(s) that (is|are) not defined");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_tachyon *fp_tachyon_new(struct fp_model *model, int lenient);
void fp_tachyon_free(struct fp_tachyon *f);

/* Read the tables, the strings first: n entries in p[0..nbytes).  0 or an error, whose offset is one in the table. */
int fp_tachyon_strings(struct fp_tachyon *f, const uint8_t *p, size_t nbytes, uint32_t n, struct fp_err *err);
int fp_tachyon_frames(struct fp_tachyon *f, const uint8_t *p, size_t nbytes, uint32_t n, struct fp_err *err);

/* Reads samples.  FP_MORE, FP_FULL, FP_DONE or an error.  The batch has two value columns: time and samples. */
int fp_tachyon_feed(struct fp_tachyon *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* The thread of number i < n_threads in the model, and its id in the file. */
uint32_t fp_tachyon_thread(const struct fp_tachyon *f, uint32_t i, uint64_t *id);
