/* perf_script/branches.h - branch stacks in the text of `perf script -F ip,brstack`.
 *
 *   demo 65/65 1593.3: PERF_RECORD_MMAP2 65/65: [0x401000(0x9000) @ 0x1000 08:01 42 0]: r-xp /opt/demo
 *   demo 65/65 1593.4:   401bf0  0x401d36/0x401d42/P/-/-/0  0x405b76/0x401d15/M/-/-/0
 *
 * A branch is its source and its target, each perhaps with an object in parentheses, and M if it was mispredicted; the
 * newest comes first.  Lines of mappings (--show-mmap-events) state what is at an address; without them the object in
 * parentheses does.  Other lines are skipped.
 *
 * Units: run-time addresses.  Memory: distinct branches (core/branches.h), mappings.
 * Source: tools/perf/builtin-script.c of Linux 3.2 to 6.18.
 */
#pragma once

#include "symbols/space.h"

/* A mapping, added to the model with its first branch. */
struct fp_perf_script_map {
    uint64_t start, limit, offset;
    uint32_t name, mapping; /* a string; the model's mapping, 0: not added yet */
};

/* cffi-begin guarded */

struct fp_perf_script_counts {
    uint64_t FP_COUNT(other_lines, "lines-without-branches", not_representable, "line(s) without branches");
    uint64_t FP_COUNT(half_branches, "incomplete-branches", not_representable,
                      "(branch|branches) without a source or a target");
    uint64_t FP_COUNT(broken_runs, "broken-runs", not_representable, "gap between branches, not a straight run",
                      "gaps between branches, not straight runs");
    uint64_t FP_COUNT(unread, "unreadable-lines");
    uint64_t branches, mispredicted;
};

struct fp_perf_script_branches {
    struct fp_model *model; /* borrowed */
    uint32_t most;          /* distinct branches in memory */
    int32_t lenient;
    struct fp_perf_script_counts counts;

    /* private from here on */
    struct fp_branches sums;
    struct fp_space *space;
    struct fp_perf_script_map *maps; /* by word of `space` */
    uint32_t n_maps, cap_maps;
    struct fp_table objects; /* without mappings: (string of the name) */
    uint32_t *of_object;     /* by row: the model's mapping */
    uint32_t cap_of_object;
    uint32_t pid; /* of the last mapping of a process */
    /* the line whose branches are read */
    int32_t is_inside;
    uint32_t line_pid, next_frame;
    uint64_t next_address; /* the source of the next branch in time, and its frame; 0: unknown */
    uint64_t next_place;   /* what decides what is there */
};

/* Borrows the model; the caller owns the reader. */
struct fp_perf_script_branches *fp_perf_script_branches_new(struct fp_model *model);
void fp_perf_script_branches_free(struct fp_perf_script_branches *r);

/* FP_MORE, FP_FULL, FP_DONE, or an error: FP_E_TRUNCATED for a branch that is cut off. */
int fp_perf_script_branches_feed(struct fp_perf_script_branches *r, struct fp_window *in, struct fp_batch *out,
                                 struct fp_err *err);
