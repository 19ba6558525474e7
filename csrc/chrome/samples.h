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
#ifndef FP_CHROME_SAMPLES_H
#define FP_CHROME_SAMPLES_H

#include "core/batch.h"
#include "chrome/threads.h"

/* cffi-begin */

enum { FP_CHROME_KEPT = 32768 }; /* of each column, before a spill */

/* What the caller must do after FP_ASK, before the next call. */
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

/* A frame of the dictionary, or a node of a profile. */
struct fp_chrome_samples_node {
    uint64_t at;               /* its offset in the file; 0: only referenced so far */
    uint32_t parent, function; /* parent: a node, 0 = none.  function 0: the root of a profile, not a frame */
    uint32_t stack;            /* of the model */
    uint32_t line, line_stack; /* of the last sample in a line: its line, its stack */
    uint32_t state;            /* 0: has no stack yet, 1: in progress, 2: has one */
    int64_t hits;              /* samples with this innermost frame, if the profile has no samples itself */
};

/* A profile of V8. */
struct fp_chrome_samples_profile {
    uint32_t thread;           /* 0: unknown */
    uint32_t document;         /* that contains it */
    uint32_t node, line, open; /* of the current sample; open: there is one */
    int64_t start, end;        /* nanoseconds; end 0: unknown */
    int64_t clock, shown;      /* the sum of time deltas so far; the maximum of these sums, which rows get */
    int64_t first;             /* the first timestamp, if times are absolute */
    uint64_t n_samples, n_nodes;
    uint32_t *dense; /* nodes by id, if ids are small numbers; 0: look in `node_keys` */
    uint32_t cap_dense;
};

/* A node whose profile is known only at the end of its event. */
struct fp_chrome_samples_child {
    uint64_t at;                   /* 0: known only as a child of `parent` */
    uint32_t id, parent, function; /* id and parent: see `ids`, 0 = none */
    int64_t hits;
};

/* The current event or sample, or the .cpuprofile as a whole. */
struct fp_chrome_samples_event {
    uint64_t at;
    int64_t ts, weight, start, end;             /* nanoseconds, except the weight */
    int64_t old_start, old_end;                 /* start and end of a profile with a head, in seconds */
    uint32_t id, process, sf;                   /* see `ids` */
    uint32_t stack, keys;                       /* stack: its "stack" in the model; keys: number of keys read */
    uint8_t has_deltas;                         /* its data has timeDeltas */
    uint8_t ph, has_ts, has_start, has_sf, bad; /* bad: dropped and counted */
    uint8_t has_head, is_absolute;              /* nodes are nested; times are absolute */
};

/* The current frame or node. */
struct fp_chrome_samples_frame {
    uint64_t at;
    uint32_t id, parent;                        /* see `ids` */
    uint32_t name, file, object, line, is_call; /* strings of the model; is_call: it has a callFrame */
    uint32_t first_child;                       /* in `children` */
    int64_t hits;
};

struct fp_chrome_samples_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient, second;
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
    uint64_t FP_COUNT(open_end, "open-end", repairs, "unclosed array", "unclosed arrays");
    uint64_t FP_COUNT(no_deltas, "unequal-deltas", repairs, "sample without a time delta, or the reverse",
                      "samples without a time delta, or the reverse");
    uint64_t FP_COUNT(backwards, "backward-samples", repairs,
                      "out-of-order sample, moved to the time of the previous one",
                      "out-of-order samples, moved to the time of the previous one");
    uint64_t FP_COUNT(since_year_1, "times-since-year-1", repairs, "time since the year 1, counted from 1970",
                      "times since the year 1, counted from 1970");
    uint64_t FP_COUNT(broken, "unreadable-samples", losses, "unreadable sample or frame",
                      "unreadable samples and frames");
    uint64_t FP_COUNT(bad_end, "unreadable-rest");
    uint64_t FP_COUNT(others, "non-sample-events", not_representable, "call or other event next to samples",
                      "calls and other events next to samples");
    uint64_t FP_COUNT(rounded, "rounded-weights");
    uint32_t n_sampled; /* profiles of V8 that have samples */
    uint32_t by_hits;   /* value type of hit counts, or FP_NO_ID; set by fp_chrome_samples_again */

    struct fp_json json; /* has further counters */
    /* private from here on */
    int32_t over, seen;
    int32_t after;                     /* a document has ended, and another one has not begun yet */
    uint8_t within[FP_JSON_DEPTH + 2]; /* by depth: the kind of the open level */
    uint32_t key;                      /* the last one */
    uint8_t following[64];             /* by key: the key that followed it, or 0 */
    struct fp_chrome_samples_event event;
    struct fp_chrome_samples_frame frame;
    struct fp_chrome_samples_frame outer[FP_JSON_DEPTH / 2]; /* nodes that contain the current one */
    uint32_t n_outer, zero_based;                            /* zero_based: a profile with a head counts lines from 0 */
    struct fp_buf name;                                      /* of the event or sample */
    struct fp_strings ids; /* of frames, nodes, processes and profiles: an id is a number (2 n + 1) or string 2 n */
    struct fp_table node_keys, profile_keys;
    struct fp_chrome_samples_node *nodes;
    struct fp_chrome_samples_profile *profiles;
    struct fp_chrome_samples_child *children;
    uint32_t *chain;
    uint32_t cap_nodes, cap_profiles, n_children, cap_children, cap_chain, ending, loaded, hit;
    uint64_t pos; /* in the columns */
    struct fp_buf scratch;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_chrome_samples_read *fp_chrome_samples_read_new(struct fp_model *model, int lenient);
void fp_chrome_samples_read_free(struct fp_chrome_samples_read *r);

/* Makes stacks of the frames, between the two passes.  FP_DONE or an error. */
int fp_chrome_samples_again(struct fp_chrome_samples_read *r, struct fp_err *err);

/* FP_MORE, FP_FULL, FP_ASK, FP_DONE or an error. */
int fp_chrome_samples_feed(struct fp_chrome_samples_read *r, struct fp_in *in, struct fp_batch *out,
                           struct fp_err *err);

/* cffi-end */

#endif
