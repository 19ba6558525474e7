#include "ends/groups.h"

#include <stdlib.h>

#include "core/address.h"
#include "core/array.h"

struct fp_groups *fp_groups_new(struct fp_model *model, const uint32_t *keys, uint32_t n_keys, int functions) {
    struct fp_groups *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->model = model;
    g->n_keys = n_keys;
    g->functions = functions;
    g->keys = malloc(((size_t)n_keys + 1) * sizeof *keys);
    if (!g->keys || fp_table_init(&g->groups, 2)) {
        fp_groups_free(g);
        return NULL;
    }
    memcpy(g->keys, keys, n_keys * sizeof *keys);
    return g;
}

void fp_groups_free(struct fp_groups *g) {
    if (!g) return;
    fp_table_clear(&g->groups);
    fp_buf_free(&g->name);
    free(g->keys);
    free(g->chain);
    free(g->function);
    free(g->ids);
    free(g);
}

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "groups of samples");
}

/* The chain with the first label of each key, in reverse order of keys.  FP_NO_ID when memory ran out. */
static uint32_t projected(const struct fp_groups *g, uint32_t label) {
    struct fp_model *m = g->model;
    uint32_t to = 0;
    for (uint32_t k = 0; k < g->n_keys && to != FP_NO_ID; k++)
        for (uint32_t at = label; at;) {
            uint32_t row[FP_LABEL_WIDTH];
            memcpy(row, fp_table_row(&m->labels, at), sizeof row);
            at = row[FP_LABEL_NEXT] < at ? row[FP_LABEL_NEXT] : 0; /* earlier entries only, so the loop ends */
            if (row[FP_LABEL_KEY] != g->keys[k]) continue;
            row[FP_LABEL_NEXT] = to;
            to = fp_table_intern(&m->labels, row);
            break;
        }
    return to;
}

/* Projects a label chain.  0, FP_E_NOMEM or FP_E_MALFORMED. */
static int chain_of(struct fp_groups *g, uint32_t label, uint32_t *chain, struct fp_err *err) {
    const uint32_t n = g->model->labels.n;
    if (label >= n) return fp_unknown_id(err, "the labels of a sample", label, n);
    if (fp_array_zeroed(&g->chain, &g->cap_chain, (uint64_t)label + 1, sizeof *g->chain)) return no_memory(err);
    if (!g->chain[label]) {
        const uint32_t found = projected(g, label);
        if (found == FP_NO_ID) return no_memory(err);
        g->chain[label] = found + 1;
    }
    *chain = g->chain[label] - 1;
    return 0;
}

/* The innermost function of a frame; without a symbol, a function named after its address. */
static uint32_t function_of(struct fp_groups *g, uint32_t frame) {
    struct fp_model *m = g->model;
    const uint32_t *row = fp_table_row(&m->frames, frame), lines = row[FP_FRAME_LINES];
    if (lines && lines < m->lines.n) return fp_table_row(&m->lines, lines)[FP_LINE_FUNCTION];
    const uint32_t mapping = row[FP_FRAME_MAPPING];
    const uint32_t object = mapping < m->mappings.n ? fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT] : 0;
    const uint32_t name = fp_frame_name(m, frame, &g->name);
    return name == FP_NO_ID ? FP_NO_ID : fp_model_function(m, object, 0, name, 0, 0);
}

/* The innermost function of a stack.  Returns as chain_of. */
static int leaf_of(struct fp_groups *g, uint32_t stack, uint32_t *function, struct fp_err *err) {
    const struct fp_model *m = g->model;
    if (stack >= m->stacks.n) return fp_unknown_id(err, "the stack of a sample", stack, m->stacks.n);
    *function = 0;
    if (!stack) return 0;
    const uint32_t frame = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
    if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
    if (fp_array_zeroed(&g->function, &g->cap_function, (uint64_t)frame + 1, sizeof *g->function))
        return no_memory(err);
    if (!g->function[frame]) {
        const uint32_t found = function_of(g, frame);
        if (found == FP_NO_ID) return no_memory(err);
        g->function[frame] = found + 1;
    }
    *function = g->function[frame] - 1;
    return 0;
}

const uint32_t *fp_groups_ids(struct fp_groups *g, const struct fp_batch *b, struct fp_err *err) {
    if (fp_array_room(&g->ids, &g->cap_ids, (uint64_t)b->n + 1, sizeof *g->ids)) {
        no_memory(err);
        return NULL;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t row[2] = {0, 0};
        if (chain_of(g, b->label[i], &row[0], err) || (g->functions && leaf_of(g, b->stack[i], &row[1], err)))
            return NULL;
        g->ids[i] = fp_table_intern(&g->groups, row);
        if (g->ids[i] == FP_NO_ID) {
            no_memory(err);
            return NULL;
        }
    }
    return g->ids;
}

void fp_groups_replace(const struct fp_groups *g, struct fp_batch *b, const uint32_t *stacks) {
    for (uint32_t i = 0; i < b->n; i++) {
        b->stack[i] = stacks[g->ids[i]];
        b->label[i] = 0;
    }
}
