#include "bridges/rows/label.h"

struct fp_label_rows *fp_label_rows_new(struct fp_model *model, const uint32_t *given, uint32_t n) {
    struct fp_label_rows *l = fp_made(sizeof *l);
    l->model = model;
    l->n_given = n;
    l->given = fp_have(malloc(((size_t)n * 2 + 1) * sizeof *given));
    memcpy(l->given, given, (size_t)n * 2 * sizeof *given);
    return l;
}

void fp_label_rows_free(struct fp_label_rows *l) {
    FP_FREE(l->given, l->to, l->kept, l);
}

static int is_given(const struct fp_label_rows *l, uint32_t key) {
    for (uint32_t i = 0; i < l->n_given; i++)
        if (l->given[2 * i] == key) return 1;
    return 0;
}

/* The chain that replaces `label`. */
static uint32_t replaced(struct fp_label_rows *l, uint32_t label) {
    struct fp_model *m = l->model;
    uint32_t n = 0, to = 0;
    while (label && label < m->labels.n) {
        const uint32_t *row = fp_table_row(&m->labels, label);
        if (!is_given(l, row[FP_LABEL_KEY])) FP_PUSH(l->kept, n, l->cap_kept) = label;
        label = row[FP_LABEL_NEXT] < label ? row[FP_LABEL_NEXT] : 0; /* earlier entries only, so the loop ends */
    }
    for (uint32_t i = 0; i < l->n_given; i++) to = fp_model_label(m, to, l->given[2 * i], l->given[2 * i + 1], 0, 0);
    while (n) {
        uint32_t row[FP_LABEL_WIDTH];
        memcpy(row, fp_table_row(&m->labels, l->kept[--n]), sizeof row);
        row[FP_LABEL_NEXT] = to;
        to = fp_table_intern(&m->labels, row);
    }
    return to;
}

int fp_label_rows_batch(struct fp_label_rows *l, struct fp_batch *b, struct fp_err *err) {
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t label = b->label[i], n = l->model->labels.n;
        if (label >= n) return fp_unknown_id(err, "the labels of a sample", label, n);
        fp_array_zeroed(&l->to, &l->cap, (uint64_t)label + 1, sizeof *l->to);
        if (!l->to[label]) l->to[label] = replaced(l, label) + 1;
        b->label[i] = l->to[label] - 1;
    }
    return FP_DONE;
}
