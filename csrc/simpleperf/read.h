/* simpleperf/read.h - what `simpleperf report-sample --protobuf` writes -> rows of stacks.
 *
 *   53 49 4d 50 4c 45 50 45 52 46  01 00    SIMPLEPERF, version 1 (16 bits)
 *   13 00 00 00  2a 11 0a 0a 63 70 ...      19 bytes: a Record, whose one field is a message: MetaInfo, ...
 *   00 00 00 00                             the end
 *
 * Samples come before the files, symbols and threads that they refer to by number, so the input is read twice.
 *
 * Memory: linear in the files, symbols, threads and distinct stacks.
 * Source: simpleperf's cmd_report_sample.proto and cmd_report_sample.cpp.
 */
#pragma once

#include "core/core.h"

enum { FP_SIMPLEPERF_EVENTS = 256 };

struct fp_simpleperf {
    int32_t is_second; /* set by the caller, with `columns`: this pass reads samples, the one before it all else */
    uint32_t input;    /* of the model; set by the caller */
    uint32_t n_events, n_threads, app, sdk; /* app, sdk: strings, or 0 */
    uint32_t events[FP_SIMPLEPERF_EVENTS];  /* strings, from the one that samples number 0 */
    uint64_t lost;                          /* samples that simpleperf lost */
    uint64_t FP_COUNT(kinds, "execution-kinds", not_representable, "(frame's|frames') kind(s) of execution");
    uint64_t FP_COUNT(switches, "context-switches", not_representable, "context (switch|switches)");
    uint64_t FP_COUNT(undefined, "undefined-symbols", losses, "frame(s) whose file or symbol is not defined");
    uint64_t FP_COUNT(damaged, "damaged-records");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_simpleperf *fp_simpleperf_new(struct fp_model *model, int lenient);
void fp_simpleperf_free(struct fp_simpleperf *s);

/* FP_MORE, FP_FULL, FP_DONE or an error.  Event k has columns 2k, its samples, and 2k + 1, the sum of their counts. */
int fp_simpleperf_feed(struct fp_simpleperf *s, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* Thread 0 < i < n_threads of the model, and its name, a string. */
uint32_t fp_simpleperf_thread(const struct fp_simpleperf *s, uint32_t i, uint32_t *name);
