/* bridges/fold/fold.h - the stack machine: a timeline becomes call arcs, for a graph, or contexts, for stacks.
 *
 *   enter a 10, enter b 20, exit b 50, exit a 60
 *
 *   arc      calls  ticks  self          context   calls  self      ticks: with callees (inclusive)
 *   -> a         1     50    20          a             1    20      self: without them
 *   a -> b       1     30    30          a > b         1    30
 *
 * Each thread has a stack.  Timelines of healthy programs have gaps, which are repaired and counted (fp_fold_stats):
 *
 *   orphan      an exit of a function that is not on the stack is ignored: its entry was lost
 *   unwound     an exit closes the innermost frame of its function and all frames above it, which were left without an
 *               exit by an exception or longjmp
 *   unfinished  frames still open when the input ends are closed at the last time of their thread
 *   clamped     a time before the thread's previous record is raised to that record's time
 *
 * Recursion: every call adds to `calls`.  If an arc is on a thread's stack several times, only the outermost of these
 * calls adds to its ticks.
 *
 * Groups: sums are kept per thread, process or CPU, or for all together (enum fp_fold_by).  Rows with the same key form
 * a group.
 *
 * Order of calls: fp_fold_new, fp_fold_register, fp_fold_put for each batch, fp_fold_end.  Then, for a graph:
 *
 *   fp_fold_order                           sort the arcs
 *   fp_fold_pull_arcs, fp_fold_pull_nodes   records of arcs, and of the functions' self costs
 *   fp_fold_totals, fp_fold_graph           graph rows of these records, merged with those of spilled runs (merge.h)
 *
 * or for stacks:
 *
 *   fp_fold_rank, fp_fold_link              sort the tree by name
 *   fp_fold_pull_tree                       records of contexts
 *   fp_fold_stacks                          stacks rows of these records, merged with spilled runs (fp_fold_tree)
 *
 * What the caller must do after FP_FULL:
 *
 *   fp_fold_put                             the table is full: spill it; the whole batch has been added
 *   fp_fold_feed                            the table is full: spill it and call again
 *   fp_fold_tree_pull                       the output buffer is full: write it out and call again
 *   fp_fold_graph, fp_fold_stacks           the batch is full: drain it and call again
 *   fp_fold_totals                          a group is complete: its totals are in the struct
 *
 * Spilling: pull the same records as above, write them to disk as a sorted run and call fp_fold_drop_spilled.  Memory
 * is linear in the arcs (or contexts) since the last spill and in the depth of the stacks.
 *
 * Several cores: each fold takes a share of the timeline's threads (`shares`), and fp_fold_join combines them.
 *
 * A switch between threads takes time linear in the depth of both stacks, so a batch with many switches is first sorted
 * by thread, which does not change the sums.
 */
#pragma once

#include "core/core.h"

enum fp_fold_into {
    FP_FOLD_ARCS = 0, /* (caller, callee) pairs: for a graph */
    FP_FOLD_TREE = 1  /* call paths: for stacks */
};

/* The key of a group, as bits: arcs or contexts of the same functions but different groups are separate. */
enum fp_fold_by {
    FP_FOLD_BY_TID = 1,
    FP_FOLD_BY_PID = 2,
    FP_FOLD_BY_THREAD = 3, /* also the threads of different inputs */
    /* tree only */
    FP_FOLD_BY_CPU = 4, /* the time from a record to the thread's next one is spent on the record's CPU */
    FP_FOLD_BY_NAME = 8 /* merge functions of the same name, dropping object, file and line */
};

/* Further bits: sum the inclusive costs of each function, for fp_top_timeline; and keep the durations of its calls, for
 * fp_top_summarize.  An unfinished call has no duration, an unwound one ends where it was unwound. */
enum { FP_FOLD_INCLUSIVE = 16, FP_FOLD_DURATIONS = 32 };

/* The value columns of the output. */
enum fp_fold_column { FP_FOLD_TIME = 0, FP_FOLD_CALLS = 1 };

/* One arc, or one node of the context tree. */
struct fp_fold_arc {
    uint32_t caller; /* function, 0 = none; tree: node of the caller + 1, 0 = root */
    uint32_t callee; /* function */
    uint32_t group;  /* thread; tree: row of fp_fold's `groups`; 0 when threads are merged */
    uint32_t active; /* its calls on the stack of the current thread */
    uint64_t calls;
    uint64_t ticks;    /* inclusive; of recursive calls only the outermost */
    uint64_t subcalls; /* the calls themselves and all calls within them; of recursive calls only the outermost */
    uint64_t self;     /* the callee's own ticks when called through here */
};

struct fp_fold_stats {
    uint64_t FP_COUNT(calls, "call-times", not_representable, "call(s), summed up without (its|their) time(s)");
    uint64_t FP_COUNT(orphan_exits, "orphan-exits");
    uint64_t FP_COUNT(unwound, "unwound-frames");
    uint64_t FP_COUNT(unfinished, "unfinished-calls");
    uint64_t FP_COUNT(clamped, "clamped-times");
    uint64_t FP_COUNT(events, "events"); /* custom and typed ones */
    uint64_t FP_COUNT(arguments, "call-arguments");
    uint64_t cpus;                       /* 1 if a row has a CPU other than 0 */
    uint64_t FP_COUNT(placed, "places"); /* FP_FOLD_BY_NAME: functions that lost one; set by fp_fold_end */
};

struct fp_fold {
    struct fp_model *model;
    int32_t into; /* enum fp_fold_into */
    int32_t by;   /* enum fp_fold_by */
    uint32_t cpu; /* string: the key of the labels that name CPUs; set by the caller */
    /* Set by the caller: fold only the threads of share `share`; each thread must have a share.  Borrowed.  NULL: fold
     * all rows. */
    const struct fp_shares *shares;
    uint32_t share;
    struct fp_fold_stats stats;
    uint64_t first_time, last_time; /* of all records; set by fp_fold_end */
    struct fp_fold_arc *arcs;
    uint32_t n_arcs;
    /* Limits in arcs or nodes, set by the caller; initially none.  Above `hard_limit` fp_fold_put returns FP_FULL;
     * above `soft_limit` only if recent rows added so many new ones that spilling is cheaper than growing. */
    uint32_t hard_limit, soft_limit;
    uint64_t switched; /* frames visited by thread switches */

    /* private from here on */
    uint32_t cap_arcs;
    struct fp_fold_thread *threads; /* by id */
    uint32_t n_threads, cap_threads, current;
    uint64_t n_taken;       /* rows of its share so far */
    struct fp_table groups; /* tree: enum fp_group_col */
    uint32_t *group_as;     /* by group: its number in the fold that has joined this one; NULL: not joined */
    struct fp_fold_function *by_function; /* by id */
    uint32_t n_functions, cap_functions;
    uint64_t *inclusive;    /* if requested, ticks and calls by function, [2 * i + column]; of recursive calls only the
                             * outermost */
    uint32_t cap_inclusive; /* functions */
    struct fp_durations *durations; /* in ticks, if requested; only with `inclusive` */
    uint32_t *index;                /* open addressing: arc + 1 */
    uint32_t index_shift;
    struct fp_hash_key secret;
    uint32_t *by_caller; /* arcs ordered by (group, caller, callee) */
    uint32_t *predicted; /* index slots that the current batch will probe, and a scratch stack */
    uint32_t cap_predicted;
    uint32_t next_arc, next_node, n_ordered;
    /* Sums over pulled nodes of one group: by function, and the functions in reverse order. */
    struct fp_fold_node *nodes;
    uint32_t *called;
    uint32_t cap_nodes, cap_called, n_called, node_group;
    uint64_t hot; /* arcs with at least this many calls stay in memory when the others are spilled */
    /* tree: the order of names and groups, and the links of the tree, see fold_tree.c */
    struct fp_name_order *names;
    uint32_t *group_ranks, *groups_in_order;
    uint32_t n_group_ranks;
    uint32_t *child, *sibling;
    uint32_t next_group, at, depth; /* the last node pulled */
};

/* Functions and threads are ids of `model` (borrowed). */
struct fp_fold *fp_fold_new(struct fp_model *model, int into, int by);
void fp_fold_free(struct fp_fold *f);

/* Registers the functions and threads that the model has so far; call it before fp_fold_put of rows with new ones.
 * Until fp_fold_end only this and fp_fold_rank read the model; all other functions may run while a reader adds names to
 * it.  `like`: a fold of the same kind that has registered them already, or NULL. */
int fp_fold_register(struct fp_fold *f, const struct fp_fold *like);

/* Adds the rows of a timeline batch.  Their functions and threads must be registered; this is not checked.  FP_DONE;
 * FP_FULL: all rows are added, spill before the next batch; FP_E_OVERFLOW. */
int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err);

/* Calls a feed and adds its rows, until the feed returns FP_DONE, FP_NEEDS or an error; its status is in `feed`.
 * FP_DONE; FP_FULL: spill and call again; FP_E_OVERFLOW. */
int fp_fold_feed(struct fp_fold *f, struct fp_feed *feed, struct fp_err *err);

/* Sets wanted[s] to 1 for each share s that has rows in a timeline batch from row *next on (0 for a new batch). Returns
 * FP_NO_ID at the end of the batch, otherwise a thread that has no share yet: assign one and call again, which
 * continues at *next. */
uint32_t fp_fold_shares(const struct fp_batch *in, const struct fp_shares *shares, uint8_t *wanted, uint32_t *next);

/* Converts the times of a timeline batch from a clock of `from` ticks a second to
 * one of `to` ticks a second, rounded down.  FP_DONE or FP_E_OVERFLOW. */
int fp_fold_rescale(struct fp_batch *b, uint64_t from, uint64_t to, struct fp_err *err);

/* Ends the open frames after the last batch.  FP_DONE or FP_E_OVERFLOW. */
int fp_fold_end(struct fp_fold *f, struct fp_err *err);

/* Merges the counters, times and groups of `other`, which folded another share, into `f`.  Call it after fp_fold_end of
 * `other` and before that of `f`.  All functions and threads of `other` must be registered in `f`.  `other` keeps its
 * arcs or nodes; fp_fold_tree_pull writes them with the groups of `f`.  FP_DONE or FP_E_OVERFLOW. */
int fp_fold_join(struct fp_fold *f, struct fp_fold *other, struct fp_err *err);

/* The first thread after this one that has records; 0: none. */
uint32_t fp_fold_next_thread(const struct fp_fold *f, uint32_t after);

/* The first and last time of a thread's records.  Returns 0 if it has none. */
int fp_fold_thread_times(const struct fp_fold *f, uint32_t thread, uint64_t *first, uint64_t *last);

/* ---- arcs ---- */

/* Sorts the arcs and restarts the two pulls below, which return records in order of their first two words.  With
 * `keep_hot` the arcs with the most calls, at most half of all, are not pulled and survive fp_fold_drop_spilled. */
int fp_fold_order(struct fp_fold *f, int keep_hot);

/* Restarts the two pulls on the same sorted arcs. */
void fp_fold_rewind(struct fp_fold *f);

/* Fill `to` with records, up to `n` words.  Return the number of words, 0 at the end.
 *   arcs:   group, caller << 32 | callee, calls, ticks, subcalls   (FP_ARC_WIDTH)
 *   nodes:  group, function, self ticks, calls                     (FP_NODE_WIDTH) */
enum { FP_ARC_WIDTH = 5, FP_NODE_WIDTH = 4 };
size_t fp_fold_pull_arcs(struct fp_fold *f, uint64_t *to, size_t n);
size_t fp_fold_pull_nodes(struct fp_fold *f, uint64_t *to, size_t n);

/* After spilling: drops the arcs that fp_fold_order sorted, or the tree.  Arcs or nodes on a stack stay, with sums of
 * 0.  0 or FP_E_NOMEM. */
int fp_fold_drop_spilled(struct fp_fold *f);

/* Frees the arcs or the tree after fp_fold_end, once everything is spilled. */
void fp_fold_drop(struct fp_fold *f);

/* ---- contexts ----
 *
 * Contexts are pulled in preorder, siblings in the order of their names (rank.h), so the output does not depend on the
 * order of the input or on what was spilled:
 *
 *   main > sort, main > alloc, main > sort > alloc      gives      main, main > alloc, main > sort, main > sort > alloc
 */

enum { FP_TREE_RECORD = 30 }; /* maximum size of a record in bytes */

/* Ranks the names of all functions registered so far. */
int fp_fold_rank(struct fp_fold *f);

/* Sorts the children of each node and restarts the pull below.  Call fp_fold_rank first if functions were registered
 * since. */
int fp_fold_link(struct fp_fold *f);

/* Fills `to` with records of nodes, up to `n` bytes, where n >= FP_TREE_RECORD.  Returns the number of bytes, 0 at the
 * end. */
size_t fp_fold_pull_tree(struct fp_fold *f, uint8_t *to, size_t n);

/* The next record of a run.  Records sort by `key`: deeper ones first, then by the rank of their names. */
struct fp_fold_tree_head {
    uint64_t key;
    uint32_t function; /* of the first level: the group */
    uint32_t depth;
    uint64_t self, calls;
};

/* Merges runs of such records: equal contexts become one with the sums. */
struct fp_fold_tree {
    struct fp_fold *fold;
    int32_t once; /* set by the caller: stacks are added without a lookup, because each context is pulled once */
    struct fp_window *runs; /* refilled by the caller, who owns the bytes */
    uint32_t n_runs;
    uint32_t to_refill;            /* after FP_MORE: the run to refill */
    struct fp_fold_tree_head head; /* the current record */

    /* private from here on */
    struct fp_fold_tree_head *heads; /* by run */
    uint32_t *heap;                  /* runs by their heads */
    uint32_t n_heap;
    int32_t top_used; /* the record of the run on top was used: read its next one */
    uint32_t *used;   /* runs outside of the heap whose record was used */
    uint32_t n_used;
    uint32_t written;                /* fp_fold_tree_pull: levels of the last record */
    struct fp_fold_tree_level *path; /* fp_fold_stacks: of the last record */
    uint32_t cap_path;
    uint32_t *frames; /* by function, 0 = not yet known */
    uint32_t cap_frames, n_emptied;
    uint32_t thread, label; /* of the current group */
};

/* Runs start empty, to be refilled first.  fp_fold_link must have been called since the last batch.  Borrows the
 * fold. */
struct fp_fold_tree *fp_fold_tree_new(struct fp_fold *f, uint32_t n_runs);
void fp_fold_tree_free(struct fp_fold_tree *t);

/* Fills `to` with the merged records, up to `n` bytes; *got becomes the number of bytes.  FP_FULL: write them out and
 * call again.  FP_MORE: refill t->to_refill.  FP_DONE.  FP_E_MALFORMED: a run differs from what was written. */
int fp_fold_tree_pull(struct fp_fold_tree *t, uint8_t *to, size_t n, size_t *got, struct fp_err *err);

/* ---- rows ---- */

/* Turns merged arcs and nodes into graph rows. */
struct fp_fold_out {
    struct fp_model *model;
    uint32_t unknown_file; /* string: the file of functions without one; without it readers assume the caller's */
    uint32_t *named; /* by function, n_named of them: its function in the graph, 0 = none yet; set by the caller */
    uint32_t n_named;
    struct fp_merge *nodes, *arcs; /* of runs of fp_fold_pull_nodes and fp_fold_pull_arcs */
    uint64_t ticks_per_second;     /* sums become nanoseconds, each rounded once, half up; 0: they stay ticks */
    uint32_t group;                /* set by fp_fold_totals and fp_fold_graph */
    uint64_t total[2];             /* fp_fold_totals: by enum fp_fold_column, in output units */
    /* private from here on */
    uint32_t function;
    int32_t node_ready, arc_ready, arcs_done, begun;
};

/* Adds up the nodes of the next group.  FP_FULL: o->group and o->total hold the next group; call again for the one
 * after. FP_MORE: refill o->nodes.  FP_DONE: no group is left.  FP_E_OVERFLOW. */
int fp_fold_totals(struct fp_fold_out *o, struct fp_err *err);

/* Pulls the graph rows of the next group: for each function its self cost, then its calls.  FP_FULL: drain the batch.
 * FP_MORE: refill o->nodes or o->arcs, whichever ran out.  FP_DONE: the group is complete.  FP_E_OVERFLOW. */
int fp_fold_graph(struct fp_fold_out *o, struct fp_batch *out, struct fp_err *err);

/* Pulls stacks rows with self time and calls.  With FP_FOLD_BY_CPU each has a label f->cpu, with the number as a
 * string, because pprof drops a number 0.  The model's stacks may be emptied between two calls (fp_model_empty_stacks).
 * FP_FULL: drain the batch.  FP_MORE: refill t->to_refill.  FP_DONE, FP_E_MALFORMED or FP_E_OVERFLOW. */
int fp_fold_stacks(struct fp_fold_tree *t, uint64_t ticks_per_second, struct fp_batch *out, struct fp_err *err);
