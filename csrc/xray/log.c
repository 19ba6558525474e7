/* A log as a whole: its memory and its mode. */
#include "xray/private.h"

struct fp_xray *fp_xray_new(struct fp_model *model, int lenient) {
    struct fp_xray *x = fp_made(sizeof *x);
    x->model = model;
    x->input = fp_model_input(model);
    x->lenient = lenient;
    x->names = fp_have(calloc(1, sizeof *x->names));
    return x;
}

void fp_xray_free(struct fp_xray *x) {
    if (!x) return;
    if (x->names) {
        fp_table_clear(&x->names->sparse);
        FP_FREE(x->names->dense, x->names->sparse_functions, x->names);
    }
    fp_xray_index_free(x->index);
    fp_xray_fdr_free(x->fdr);
    fp_xray_basic_free(x->basic);
    fp_xray_profile_free(x->profile);
    free(x);
}

/* ---- decoding ---------------------------------------------------------- */

int fp_xray_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    switch (x->mode) {
        case FP_XRAY_FDR: return fp_xray_fdr_feed(x, in, out, err);
        case FP_XRAY_BASIC: return fp_xray_basic_feed(x, in, out, err);
        default: return fp_xray_profile_feed(x, in, out, err);
    }
}

void fp_xray_seen(const struct fp_batch *b, uint8_t *seen, uint32_t n) {
    for (uint32_t i = 0; i < b->n; i++)
        if (b->op[i] <= FP_OP_ENTER_ARGS && b->function[i] < n)
            seen[b->function[i]] = (uint8_t)(seen[b->function[i]] | 1 << b->op[i]);
}
