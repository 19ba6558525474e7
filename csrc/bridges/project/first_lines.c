#include "bridges/project/first_lines.h"

#include "bridges/project/project_private.h"

void fp_first_lines_clear(struct fp_first_lines *l) {
    FP_FREE(l->of, l->address);
    *l = (struct fp_first_lines){0};
}

/* Makes room for the functions of a model. */
static void room(struct fp_first_lines *l, const struct fp_model *m) {
    fp_array_zeroed(&l->of, &l->cap, m->functions.n, sizeof *l->of);
}

static int is_own(const struct fp_model *m, uint32_t function, uint32_t file, uint32_t line) {
    return line && file == fp_table_row(&m->functions, function)[FP_FUNCTION_FILE];
}

int fp_first_lines_graph(struct fp_first_lines *l, const struct fp_model *model, const struct fp_batch *in,
                         struct fp_err *err) {
    const uint32_t n_functions = model->functions.n;
    room(l, model);
    fp_array_zeroed(&l->address, &l->cap_address, n_functions, sizeof *l->address);
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->function[i] >= n_functions)
            return fp_unknown_id(err, "the function of a row", in->function[i], n_functions);
        const uint32_t function = in->function[i];
        if (in->kind[i] > FP_CALL || !is_own(model, function, in->file[i], in->line[i])) continue;
        const uint64_t address = in->address ? in->address[i] : 0;
        if (l->of[function] && (!address || address - 1 >= l->address[function] - 1)) continue; /* 0 is the largest */
        l->of[function] = in->line[i];
        l->address[function] = address;
    }
    return FP_DONE;
}

int fp_first_lines_stacks(struct fp_first_lines *l, const struct fp_project *s) {
    room(l, s->model);
    for (uint32_t i = 1; i < s->positions.n; i++) { /* row 0 of a table is unused */
        const uint32_t *p = fp_table_row(&s->positions, i);
        const uint32_t line = p[FP_POSITION_LINE];
        uint32_t *first = &l->of[p[FP_POSITION_FUNCTION]];
        /* minus 1, so that 0 (unknown) becomes the largest */
        if (is_own(s->model, p[FP_POSITION_FUNCTION], p[FP_POSITION_FILE], line) && line - 1 < *first - 1)
            *first = line;
    }
    return FP_DONE;
}
