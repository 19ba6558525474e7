/* chrome/samples.h - samples of Chrome's traces and of V8's CPU profiles -> stacks rows.
 *
 *   {"traceEvents":[{"ph":"P","sf":7, ...}], "samples":[{"sf":7,"weight":2, ...}],          each with its stack
 *    "stackFrames":{"5":{"name":"main"}, "7":{"name":"f","parent":5}}}
 *   {"nodes":[{"id":1,"callFrame":{...},"children":[2]}, ...],"samples":[2,2],"timeDeltas":[9,5]}     a .cpuprofile
 *   {"head":{"functionName":"(root)","children":[{"id":2, ...}]},"samples":[2,2],"timestamps":[9,14]}   before 2016
 *   {"traceEvents":[{"name":"Profile","id":"0x1", ...}, {"name":"ProfileChunk","id":"0x1","args":{"data":{
 *    "cpuProfile":{"nodes":[{"id":2,"parent":1, ...}],"samples":[2,2]},"timeDeltas":[9,5],"lines":[3,0]}}}]}
 *
 * The text is read twice, because frames may come after the samples: first the frames (nodes) and the threads of
 * profiles, then the samples.  Frames of the dictionary and nodes of profiles are handled alike: both have a name and a
 * parent, and become stacks.
 *
 * A sample of V8 lasts until the next one, so its row is added at the next sample or at the end of its profile.  An
 * event has arrays of nodes, times and lines, in any order.  They are kept until the event ends, in columns that the
 * caller spills when they are full.
 *
 * A profile without samples may have hit counts: the count of each node becomes a row without a time.
 *
 * If other documents follow the first one, they are read, too; each has its own threads, frames and profiles.
 *
 * Memory: linear in frames, profiles and threads.
 */
#pragma once

#include "chrome/threads.h"

enum { FP_CHROME_KEPT = 32768 }; /* of each column, before a spill */

/* What the caller must do after FP_NEEDS, before the next call. */
enum fp_chrome_samples_request {
    FP_CHROME_THREAD = 1, /* call fp_chrome_set_thread for r->thread_ids.pid, r->thread_ids.tid */
    FP_CHROME_NAME = 2,   /* record r->text as the name r->thread_ids.meta of r->thread_ids.pid, r->thread_ids.tid; set
                              r->thread_ids.noted */
    FP_CHROME_SPILL = 3,  /* spill columns[column] and set its n to 0; if `written` is 0, first drop the spilled part of
                              an earlier event; add 1 to `written` */
    FP_CHROME_DROP = 5,   /* drop the spilled part of columns[column] */
    FP_CHROME_BLOCK = 4   /* if `block` is 0, spill the rest of all columns; then fill each with its items from block *
                              FP_CHROME_KEPT on */
};

enum fp_chrome_samples_column { FP_CHROME_NODES = 0, FP_CHROME_DELTAS = 1, FP_CHROME_LINES = 2, FP_CHROME_COLUMNS = 3 };
struct fp_chrome_samples_values {
    int64_t *values;
    uint32_t n;     /* in memory */
    uint64_t total; /* of the event */
};

struct fp_chrome_samples_read {
    uint32_t request, column, block, written;
    struct fp_chrome_ids thread_ids;
    struct fp_buf text; /* args.name */
    struct fp_chrome_samples_values columns[3];
    struct fp_table types; /* names of samples outside of V8's profiles: row i is value type i - 1 of part `named` */
    /* The parts of V8's samples and of the other samples in the first document; those of further ones follow them.
     * Set by the caller between the passes. */
    uint32_t part, named;
    /* counted */
    uint64_t rows, killed;
    uint64_t FP_COUNT(open_end, "open-end", repairs, "unclosed array(s)");
    uint64_t FP_COUNT(no_deltas, "unequal-deltas", repairs, "sample(s) without a time delta, or the reverse");
    uint64_t FP_COUNT(backwards, "backward-samples", repairs,
                      "out-of-order sample(s), moved to the time of the previous one");
    uint64_t FP_COUNT(since_year_1, "times-since-year-1", repairs, "time(s) since the year 1, counted from 1970");
    uint64_t FP_COUNT(broken, "unreadable-samples", losses, "unreadable sample(s) (or|and) frame(s)");
    uint64_t FP_COUNT(bad_end, "unreadable-rest");
    uint64_t FP_COUNT(others, "non-sample-events", not_representable,
                      "call(s) (or|and) other event(s) next to samples");
    uint64_t FP_COUNT(rounded, "rounded-weights");
    uint32_t n_sampled; /* profiles of V8 that have samples */
    uint32_t by_hits;   /* value type of hit counts, or FP_NO_ID; set by fp_chrome_samples_again */

    struct fp_json json; /* as it ended; has further counters */
};

/* Borrows the model.  Caller owns. */
struct fp_chrome_samples_read *fp_chrome_samples_read_new(struct fp_model *model, int lenient);
void fp_chrome_samples_read_free(struct fp_chrome_samples_read *r);

/* Makes stacks of the frames, between the two passes.  FP_DONE or an error. */
int fp_chrome_samples_again(struct fp_chrome_samples_read *r, struct fp_err *err);

/* FP_MORE, FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_chrome_samples_feed(struct fp_chrome_samples_read *r, struct fp_window *in, struct fp_batch *out,
                           struct fp_err *err);
