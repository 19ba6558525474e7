#include "pgo/rows.h"

void fp_pgo_begin_rows(struct fp_pgo_reader *r) {
    for (uint32_t k = 0; k < r->n_levels; k++) r->levels[k].stack = 0;
}

uint32_t fp_pgo_function_of(struct fp_pgo_reader *r, uint32_t string) {
    return fp_model_function(r->model, 0, 0, string, 0, 0);
}

uint32_t fp_pgo_frame_at(struct fp_pgo_reader *r, uint32_t function, uint64_t offset, uint64_t discriminator) {
    return fp_model_line_frame(r->model, function, (uint32_t)offset, (uint32_t)discriminator);
}

void fp_pgo_open_level(struct fp_pgo_reader *r, uint32_t depth, uint32_t caller, uint32_t function) {
    *FP_AT(r->levels, r->cap_levels, depth) = (struct fp_pgo_level){function, caller, 0};
    r->n_levels = depth + 1;
}

/* The stack of the callers of `depth` levels; 0: none. */
static uint32_t callers_of(struct fp_pgo_reader *r, uint32_t depth) {
    uint32_t k = depth;
    while (k && !r->levels[k - 1].stack) k--;
    uint32_t node = k ? r->levels[k - 1].stack : 0;
    for (; k < depth; k++) {
        if (r->levels[k].caller) node = fp_model_stack(r->model, node, r->levels[k].caller);
        r->levels[k].stack = node;
    }
    return node;
}

int fp_pgo_add_row(struct fp_pgo_reader *r, uint32_t depth, uint32_t first, uint32_t second, uint32_t column,
                   uint64_t value, struct fp_batch *out) {
    if (out->n == out->cap) return FP_FULL;
    uint32_t node = fp_model_stack(r->model, callers_of(r, depth), first);
    if (second) node = fp_model_stack(r->model, node, second);
    const uint32_t i = fp_batch_sample(out, node, 0, 0, 0);
    for (uint32_t k = 0; k < FP_PGO_COLUMNS; k++) out->values[(size_t)k * out->cap + i] = 0;
    out->values[(size_t)column * out->cap + i] = (int64_t)value;
    return 0;
}
