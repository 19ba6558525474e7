/* chrome/samples_private.h - shared by the files of the reader of samples.  Private.
 *
 *   samples.c       the text and its structure
 *   elements.c      ids, times and lines, and the columns of them
 *   frames.c        frames and nodes become stacks
 *   sample_rows.c   samples become rows
 */
#pragma once

#include "chrome/samples.h"

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

struct fp_chrome_samples {
    struct fp_chrome_samples_read pub;
    struct fp_model *model; /* borrowed */
    int32_t lenient, second;
    struct fp_json_walk walk;
    struct fp_batch *out; /* of this feed */
    int32_t over, seen;
    int32_t after; /* a document has ended, and another one has not begun yet */
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
};

/* Owners of ids: the dictionary of frames of a document, and profiles, by their row. */
static inline uint32_t fp_chrome_samples_dictionary(const struct fp_chrome_samples *r) {
    return UINT32_MAX - 1 - r->pub.thread_ids.document;
}

/* Damaged input: an error or, when lenient, counted. */
static inline int fp_chrome_samples_broken(struct fp_chrome_samples *r, uint64_t at, const char *what, const char *want,
                                           struct fp_err *err) {
    if (r->lenient) {
        r->pub.broken++;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* Each reads the current value: 0, or an error code with `err` not set. */
/* An id: a number or a string, which are equivalent. */
void fp_chrome_samples_take_id(struct fp_chrome_samples *r, uint32_t *id);
/* Microseconds as nanoseconds, at most 146 years so that differences fit 64 bits. */
int fp_chrome_samples_take_time(struct fp_chrome_samples *r, int64_t *ns);
/* A line, counted from `first`; 0: unknown. */
int fp_chrome_samples_take_line(struct fp_chrome_samples *r, int64_t first, int64_t *line);

/* Adds an element to its column.  0, FP_NEEDS, or an error code with `err` not set. */
int fp_chrome_samples_take_element(struct fp_chrome_samples *r, enum fp_chrome_samples_column which);
/* Adds the next elements, as long as they are numbers and the column has room; the others need a token. */
void fp_chrome_samples_elements(struct fp_chrome_samples *r, struct fp_window *in, enum fp_chrome_samples_column which);

/* Records the current frame as a node of the current event; an entry of the dictionary becomes a node immediately. */
int fp_chrome_samples_end_frame(struct fp_chrome_samples *r, int in_dictionary, struct fp_err *err);
/* Gives frames and nodes their stacks.  FP_DONE or an error. */
int fp_chrome_samples_make_stacks(struct fp_chrome_samples *r, struct fp_err *err);
/* Adds the nodes of the current event to this profile. */
void fp_chrome_samples_are_of(struct fp_chrome_samples *r, uint32_t profile);
/* The node with this id of an owner, or 0. */
uint32_t fp_chrome_samples_node(const struct fp_chrome_samples *r, uint32_t owner, uint32_t id);

/* The row of a profile in `profiles`. */
uint32_t fp_chrome_samples_profile(struct fp_chrome_samples *r);
/* Adds the rows of V8's samples in the columns.  FP_DONE, FP_FULL, FP_NEEDS or an error. */
int fp_chrome_samples_of_columns(struct fp_chrome_samples *r, uint32_t profile, struct fp_batch *out,
                                 struct fp_err *err);
/* Gives hits of profiles without samples their value type. */
void fp_chrome_samples_plan_hits(struct fp_chrome_samples *r);
/* Adds the rows of samples still open at the end, and of those hits.  FP_DONE or FP_FULL. */
int fp_chrome_samples_last(struct fp_chrome_samples *r, struct fp_batch *out);
/* Adds the row of the current sample, which has its own stack; the first pass only records its name.  FP_DONE, FP_FULL,
 * FP_NEEDS or an error. */
int fp_chrome_samples_of_event(struct fp_chrome_samples *r, struct fp_batch *out, struct fp_err *err);
