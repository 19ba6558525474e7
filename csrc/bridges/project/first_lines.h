/* bridges/project/first_lines.h - guesses where functions begin, for profiles that lack first lines.
 *
 * For each function: a line of its own file with a cost or a call; lines of other files belong to inlined code. Inlined
 * code of the same file may be further up, and a graph cannot distinguish it: it is the line of the lowest address,
 * without addresses the first one in the file, where Callgrind lists lines in order of addresses.  In stacks inlined
 * functions have their own lines: there it is the smallest.
 */
#pragma once

#include "bridges/project/project.h"

struct fp_first_lines {
    uint32_t *of; /* by function; 0 = unknown */
    uint32_t cap;
    uint64_t *address; /* of that line in a graph; 0 = unknown */
    uint32_t cap_address;
};

void fp_first_lines_clear(struct fp_first_lines *l);

/* Reads the rows of a graph batch.  FP_DONE, FP_E_MALFORMED (a function that the model does not have). */
int fp_first_lines_graph(struct fp_first_lines *l, const struct fp_model *model, const struct fp_batch *in,
                         struct fp_err *err);

/* After fp_project_end: reads the frames of its stacks.  FP_DONE. */
int fp_first_lines_stacks(struct fp_first_lines *l, const struct fp_project *s);
