#include "bridges/project/first_lines.h"

#include "bridges/project/project_private.h"

void fp_first_lines_clear(struct fp_first_lines *l) {
    free(l->of);
    *l = (struct fp_first_lines){0};
}

/* Makes room for the functions of a model. */
static void room(struct fp_first_lines *l, const struct fp_model *m) {
    fp_array_zeroed(&l->of, &l->cap, m->functions.n, sizeof *l->of);
}

static void see(struct fp_first_lines *l, const struct fp_model *m, uint32_t function, uint32_t file, uint32_t line) {
    uint32_t *first = &l->of[function];
    /* minus 1, so that 0 (unknown) becomes the largest */
    if (line - 1 < *first - 1 && file == fp_table_row(&m->functions, function)[FP_FUNCTION_FILE]) *first = line;
}

int fp_first_lines_graph(struct fp_first_lines *l, const struct fp_model *model, const struct fp_batch *in,
                         struct fp_err *err) {
    const uint32_t n_functions = model->functions.n;
    room(l, model);
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->function[i] >= n_functions)
            return fp_unknown_id(err, "the function of a row", in->function[i], n_functions);
        if (in->kind[i] <= FP_CALL) see(l, model, in->function[i], in->file[i], in->line[i]);
    }
    return FP_DONE;
}

int fp_first_lines_stacks(struct fp_first_lines *l, const struct fp_project *s) {
    room(l, s->model);
    for (uint32_t i = 1; i < s->positions.n; i++) { /* row 0 of a table is unused */
        const uint32_t *p = fp_table_row(&s->positions, i);
        see(l, s->model, p[FP_POSITION_FUNCTION], p[FP_POSITION_FILE], p[FP_POSITION_LINE]);
    }
    return FP_DONE;
}
