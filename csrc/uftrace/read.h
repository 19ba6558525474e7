/* uftrace/read.h - the files of an uftrace data directory -> rows of a timeline, in nanoseconds.
 *
 *   TID.dat, 16 bytes a record; arguments or a return value may follow
 *   +---------------------------------------+
 *   | time, nanoseconds: 64                 |
 *   | kind:2 | more:1 | 5:3 | depth:10      |   kind 0 entry, 1 exit, 2 lost records (address: their number), 3 event
 *   | address: 48                           |
 *   +---------------------------------------+
 *   perf-cpuN.dat: perf's records of type 14 (switch: pid, tid, time; misc 0x2000: out, 0x4000: preempted) and 4 (exit)
 *
 * `40 42 0f 00 00 00 00 00  68 00 40 11 00 00 00 00` is: at 1 ms, entry (0) of 0x1140 at depth 1, without arguments.
 *
 * The switches of all threads come first; while a thread is off CPU inside a function, it is in linux:schedule.
 * The lengths of arguments are not in the file: the caller states them for each function.
 *
 * Memory: functions, open calls of a thread, and 16 bytes for each switch.
 * Source: uftrace's uftrace.h, utils/fstack.c, utils/perf.c; files of uftrace 0.13.
 */
#pragma once

#include "core/core.h"

/* What FP_NEEDS asks for: the function at `address` of `session`; the session at the time of the record. */
enum fp_uftrace_request { FP_UFTRACE_FUNCTION, FP_UFTRACE_SESSION };

struct fp_uftrace {
    int32_t request;
    int32_t is_switches; /* set by the caller: the range is a perf-cpuN.dat */
    uint64_t address, time;
    uint64_t until; /* set by the caller: the time at which a thread's session ends */
    uint32_t session;
    uint32_t schedule, preempted; /* set by the caller: functions */
    uint32_t unsized;             /* after an error: the function whose arguments have an unknown length, or 0 */
    uint64_t lost;                /* records, by uftrace */
    uint64_t FP_COUNT(no_entries, "exits-without-entries", repairs, "exit(s) without (an entry|entries)");
    uint64_t FP_COUNT(no_exits, "entries-without-exits", repairs, "(entry|entries) without (an exit|exits)");
    uint64_t FP_COUNT(backward, "backward-times", repairs, "time(s) before the one(s) ahead of (it|them)");
    uint64_t FP_COUNT(events, "trace-events", not_representable, "event(s)");
    uint64_t FP_COUNT(bad_ends, "unreadable-files", losses, "file(s) that (is|are) damaged from some place on");
};

/* Borrows the model.  Caller owns. */
struct fp_uftrace *fp_uftrace_new(struct fp_model *model, int lenient);
void fp_uftrace_free(struct fp_uftrace *u);

/* The range that follows is the file of this thread.  `is_first`: the switches are complete. */
void fp_uftrace_begin(struct fp_uftrace *u, uint32_t tid, uint32_t thread);

/* The answer to FP_UFTRACE_FUNCTION: a function of the model, and the sizes of its arguments and its return value: n
 * bytes, each a size, 254 for an empty struct, or 255 for a text; the arguments end with 0; n 0: unknown. */
int fp_uftrace_define(struct fp_uftrace *u, uint32_t function, const uint8_t *sizes, uint32_t n);

/* FP_MORE, FP_FULL, FP_DONE (the range is complete), FP_NEEDS or an error. */
int fp_uftrace_feed(struct fp_uftrace *u, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
