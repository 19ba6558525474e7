/* xplane/read.h - profiles of XLA, as JAX, TensorFlow and PyTorch/XLA write them (XSpace) -> rows of a timeline.
 *
 *   0a .. XPlane            a device, or the host: a process
 *     12 .. "/host:CPU"     its name
 *     1a .. XLine           a thread, or a stream: 08 id  12 .. name  18 start in ns
 *       22 08 XEvent        08 17  10 c8 96 c1 01  18 9c..    kind 23, picoseconds from the line's start, duration
 *     22 .. map entry       08 17  12 .. {08 17  12 .. "$core.py:31 f"}    the name of kind 23
 *     2a .. map entry       the same for keys of stats
 *
 * A message may be longer than the window: it is entered, and only fields without parts are read whole.  Names come
 * after the events that have them, so events wait, sorted by time (core/overlap_lanes.h), until the end.
 *
 * Times are picoseconds.  If lines begin at a date, they count from the midnight a day ahead of the first one.
 *
 * Memory: names, lines, kinds of events; open calls.
 * Source: tsl/profiler/protobuf/xplane.proto; files of JAX 0.10.
 */
#pragma once

#include "core/core.h"

/* A process or a thread: its number in the model, the id in the file, and a string. */
struct fp_xplane_name {
    uint64_t id;
    uint32_t pid, tid, name, shown; /* tid 0: a process; shown: a name for display, 0 = none */
};

enum { FP_XPLANE_MESSAGES = 16 };

struct fp_xplane {
    struct fp_rounds rounds; /* to be served after FP_NEEDS */
    uint64_t base_ns;        /* from which times count */
    uint32_t input;          /* of the model; set by the caller */
    uint32_t n_messages;     /* errors and warnings of the profiler, the first ones: strings */
    uint32_t messages[FP_XPLANE_MESSAGES];
    uint32_t n_names;
    struct fp_xplane_name *names;
    uint64_t n_rows; /* calls and events */
    uint64_t FP_COUNT(lanes, "overlapping-events", repairs, "thread(s) added for overlapping events");
    uint64_t FP_COUNT(cut, "shortened-events", repairs,
                      "event(s) cut because (it|they) (overlaps|overlap) too many others");
    uint64_t FP_COUNT(damaged, "damaged-records");
    uint64_t FP_COUNT(untimed, "untimed-events", losses, "event(s) whose time(s) (does|do) not fit");
    uint64_t FP_COUNT(unnamed, "unnamed-events", repairs, "event(s) whose name(s) (is|are) missing");
    uint64_t FP_COUNT(stats, "event-statistics", not_representable, "statistic(s) of (an event|events)");
    uint64_t FP_COUNT(sums, "aggregated-events", not_representable,
                      "event(s) that (is a sum|are sums) of several, without times");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_xplane *fp_xplane_new(struct fp_model *model, int lenient);
void fp_xplane_free(struct fp_xplane *x);

/* FP_MORE, FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_xplane_feed(struct fp_xplane *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
