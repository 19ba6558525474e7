/* bridges/project/first_lines.h - where functions begin, as far as a profile that does not say so shows it.
 *
 * Of each function the first line of its own file that something was spent at, or called from.  Lines of other files
 * are of code that was inlined.
 */
#ifndef FP_FIRST_LINES_H
#define FP_FIRST_LINES_H

#include "bridges/project/project.h"

/* cffi-begin */

struct fp_first_lines {
    uint32_t *of; /* by function; 0 = unknown */
    uint32_t cap;
};

void fp_first_lines_clear(struct fp_first_lines *l);

/* Looks at the rows of a graph batch.  FP_DONE, FP_E_NOMEM, FP_E_MALFORMED (a function that the model does not have).
 */
int fp_first_lines_graph(struct fp_first_lines *l, const struct fp_model *model, const struct fp_batch *in,
                         struct fp_err *err);

/* After fp_project_end: looks at the frames of its stacks.  FP_DONE or FP_E_NOMEM. */
int fp_first_lines_stacks(struct fp_first_lines *l, const struct fp_project *s, struct fp_err *err);

/* cffi-end */

#endif
