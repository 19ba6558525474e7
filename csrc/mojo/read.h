/* mojo/read.h - a recording of Austin in its binary format MOJO, versions 1 to 3 -> rows of stacks.
 *
 *   4d 4f 4a 03                MOJ, version 3
 *   01 mode\0 wall\0           a description
 *   02 07 00 1f\0              sample: process 7, interpreter 0, thread 0x1f
 *   0b 05 a.py\0  0b 06 f\0    strings 5 and 6 of this process
 *   03 09 05 06 02 00 00 00    frame 9: a.py, f, line 2 (and end line, column, end column from version 2 on)
 *   05 09                      the sample has frame 9; the outermost one comes first
 *   09 88 0f                   200 microseconds since the thread's sample before
 *
 * Each event begins with its kind.  Numbers: 6 bits, a sign and a mark in the first byte, then 7 bits a byte.
 *
 * Memory: linear in the distinct strings, frames and stacks of each process.
 * Source: Austin's src/mojo.h, austin-python's austin/format/mojo.py; files of Austin 3.7.
 */
#pragma once

#include "core/core.h"

/* What a sample has; the caller sets the column of each, or -1. */
enum fp_mojo_value { FP_MOJO_SAMPLES, FP_MOJO_MEMORY, FP_MOJO_GROWTH, FP_MOJO_CPU, FP_MOJO_WALL, FP_MOJO_VALUES };
enum { FP_MOJO_DESCRIPTIONS = 64 };

struct fp_mojo {
    uint32_t version, input;                         /* input: of the model, set by the caller after FP_NEEDS */
    uint32_t n_descriptions;                         /* the first FP_MOJO_DESCRIPTIONS are kept */
    uint32_t descriptions[2 * FP_MOJO_DESCRIPTIONS]; /* strings: key, value */
    int32_t columns[FP_MOJO_VALUES];
    uint32_t n_threads;
    uint64_t FP_COUNT(undefined, "undefined-frames", losses, "frame(s) that (is|are) not defined");
    uint64_t FP_COUNT(odd_lines, "impossible-lines", repairs, "frame whose line is beyond 2^31, left out",
                      "frames whose lines are beyond 2^31, left out");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_mojo *fp_mojo_new(struct fp_model *model, int lenient);
void fp_mojo_free(struct fp_mojo *f);

/* FP_MORE, FP_FULL, FP_DONE, an error, or FP_NEEDS, once: what comes before the first sample is read. */
int fp_mojo_feed(struct fp_mojo *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* The thread of number i < n_threads in the model, and its id in the file. */
uint32_t fp_mojo_thread(const struct fp_mojo *f, uint32_t i, uint64_t *id);
