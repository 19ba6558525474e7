#include "ends/groups.h"

struct fp_groups *fp_groups_new(struct fp_model *model, const uint32_t *keys, uint32_t n_keys, int functions,
                                int threads) {
    struct fp_groups *g = fp_made(sizeof *g);
    g->model = model;
    g->n_keys = n_keys;
    g->functions = functions;
    g->threads = threads;
    g->keys = fp_have(malloc(((size_t)n_keys + 1) * sizeof *keys));
    fp_table_init(&g->groups, 3);
    fp_table_init(&g->within, 2);
    memcpy(g->keys, keys, n_keys * sizeof *keys);
    return g;
}

void fp_groups_free(struct fp_groups *g) {
    FP_CLEAR_TABLES(&g->groups, &g->within);
    fp_buf_free(&g->name);
    FP_FREE(g->keys, g->chain, g->function, g->ids, g->to, g->stacks.pairs, g->lines.pairs, g);
}

/* The chain with the first label of each key, in reverse order of keys. */
static uint32_t projected(const struct fp_groups *g, uint32_t label) {
    struct fp_model *m = g->model;
    uint32_t to = 0;
    for (uint32_t k = 0; k < g->n_keys; k++)
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

/* Projects a label chain.  0 or FP_E_MALFORMED. */
static int chain_of(struct fp_groups *g, uint32_t label, uint32_t *chain, struct fp_err *err) {
    const uint32_t n = g->model->labels.n;
    if (label >= n) return fp_unknown_id(err, "the labels of a sample", label, n);
    fp_array_zeroed(&g->chain, &g->cap_chain, (uint64_t)label + 1, sizeof *g->chain);
    if (!g->chain[label]) g->chain[label] = projected(g, label) + 1;
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
    return fp_model_function(m, object, 0, name, 0, 0);
}

/* The innermost function of a stack.  Returns as chain_of. */
static int leaf_of(struct fp_groups *g, uint32_t stack, uint32_t *function, struct fp_err *err) {
    const struct fp_model *m = g->model;
    if (stack >= m->stacks.n) return fp_unknown_id(err, "the stack of a sample", stack, m->stacks.n);
    *function = 0;
    if (!stack) return 0;
    const uint32_t frame = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
    if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
    fp_array_zeroed(&g->function, &g->cap_function, (uint64_t)frame + 1, sizeof *g->function);
    if (!g->function[frame]) g->function[frame] = function_of(g, frame) + 1;
    *function = g->function[frame] - 1;
    return 0;
}

const uint32_t *fp_groups_ids(struct fp_groups *g, const struct fp_batch *b, struct fp_err *err) {
    fp_array_room(&g->ids, &g->cap_ids, (uint64_t)b->n + 1, sizeof *g->ids);
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t row[3] = {0, 0, g->threads ? b->thread[i] : 0};
        if (chain_of(g, b->label[i], &row[0], err) || (g->functions && leaf_of(g, b->stack[i], &row[1], err)))
            return NULL;
        g->ids[i] = fp_table_intern(&g->groups, row);
    }
    return g->ids;
}

void fp_groups_replace(const struct fp_groups *g, struct fp_batch *b, const uint32_t *stacks) {
    for (uint32_t i = 0; i < b->n; i++) {
        b->stack[i] = stacks[g->ids[i]];
        b->label[i] = 0;
    }
}

/* ---- stacks within their groups */

enum { STACKS, FRAMES, LINES, FUNCTIONS, KINDS };

/* The pair of an id and a group. */
static uint32_t pair_of(struct fp_groups *g, uint32_t group, uint32_t kind, uint32_t id) {
    const uint32_t pair = fp_table_intern(&g->within, (uint32_t[]){group * KINDS + kind, id});
    fp_array_zeroed(&g->to, &g->cap_to, (uint64_t)pair + 1, sizeof *g->to);
    return pair;
}

static uint32_t id_of(const struct fp_groups *g, uint32_t pair) {
    return fp_table_row(&g->within, pair)[1];
}

/* Collects the pairs on the way from stack or line `id` outwards, up to one that is known: *known is what it became
 * (0: none is known). */
static void way(struct fp_groups *g, uint32_t group, uint32_t kind, uint32_t id, struct fp_groups_way *to,
                uint32_t *known) {
    const struct fp_table *table = kind == STACKS ? &g->model->stacks : &g->model->lines;
    const uint32_t outwards = kind == STACKS ? (uint32_t)FP_STACK_PARENT : (uint32_t)FP_LINE_OUTER;
    to->n = *known = 0;
    while (id) {
        const uint32_t pair = pair_of(g, group, kind, id);
        fp_array_room(&to->pairs, &to->cap, (uint64_t)to->n + 1, sizeof pair);
        if ((*known = g->to[pair])) return;
        to->pairs[to->n++] = pair;
        const uint32_t outer = fp_table_row(table, id)[outwards];
        id = outer < id ? outer : 0; /* earlier entries only, so the loop ends */
    }
}

/* Function f becomes "<prefix>f" in the same file and object. */
static uint32_t function_within(struct fp_groups *g, uint32_t group, uint32_t prefix, uint32_t function) {
    struct fp_model *m = g->model;
    const uint32_t pair = pair_of(g, group, FUNCTIONS, function);
    if (g->to[pair]) return g->to[pair];
    uint32_t row[FP_FUNCTION_WIDTH];
    memcpy(row, fp_table_row(&m->functions, function), sizeof row);
    size_t n_prefix, n_name;
    const uint8_t *before = fp_string(&m->strings, prefix, &n_prefix);
    const uint8_t *name = fp_string(&m->strings, row[FP_FUNCTION_NAME], &n_name);
    g->name.n = 0;
    fp_buf_put(&g->name, before, n_prefix);
    fp_buf_put(&g->name, name, n_name);
    const uint32_t named = fp_strings_intern(&m->strings, g->name.p, g->name.n);
    return g->to[pair] =
               fp_model_function(m, row[FP_FUNCTION_OBJECT], row[FP_FUNCTION_FILE], named, 0, row[FP_FUNCTION_LINE]);
}

/* The line chain with functions of the group, in *to. */
static void lines_within(struct fp_groups *g, uint32_t group, uint32_t prefix, uint32_t lines, uint32_t *to) {
    struct fp_model *m = g->model;
    way(g, group, LINES, lines, &g->lines, to);
    for (uint32_t i = g->lines.n; i--;) {
        const uint32_t pair = g->lines.pairs[i];
        const uint32_t function = fp_table_row(&m->lines, id_of(g, pair))[FP_LINE_FUNCTION];
        const uint32_t named = function_within(g, group, prefix, function < m->functions.n ? function : 0);
        *to = fp_model_line(m, named, 0, 0, *to);
        g->to[pair] = *to;
    }
}

/* A frame of functions of the group, without address and lines; of frame 0, without a name. */
static uint32_t frame_within(struct fp_groups *g, uint32_t group, uint32_t prefix, uint32_t frame) {
    struct fp_model *m = g->model;
    const uint32_t pair = pair_of(g, group, FRAMES, frame);
    if (g->to[pair]) return g->to[pair];
    uint32_t lines = fp_table_row(&m->frames, frame)[FP_FRAME_LINES], to;
    if (lines && lines < m->lines.n) {
        lines_within(g, group, prefix, lines, &to);
    } else {
        const uint32_t function = frame ? function_of(g, frame) : 0;
        to = fp_model_line(m, function_within(g, group, prefix, function), 0, 0, 0);
    }
    return g->to[pair] = fp_model_frame(m, 0, 0, 0, to);
}

/* The stack within the group, in *to.  Returns as fp_groups_within. */
static int stack_within(struct fp_groups *g, uint32_t group, uint32_t root, uint32_t prefix, uint32_t stack,
                        uint32_t *to, struct fp_err *err) {
    struct fp_model *m = g->model;
    if (stack >= m->stacks.n) return fp_unknown_id(err, "the stack of a sample", stack, m->stacks.n);
    way(g, group, STACKS, stack, &g->stacks, to);
    const uint32_t outermost = root || stack ? root : frame_within(g, group, prefix, 0);
    if (!*to && outermost) *to = fp_model_stack(m, 0, outermost);
    for (uint32_t i = g->stacks.n; i--;) {
        const uint32_t pair = g->stacks.pairs[i];
        uint32_t frame = fp_table_row(&m->stacks, id_of(g, pair))[FP_STACK_FRAME];
        if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
        if (!root) frame = frame_within(g, group, prefix, frame);
        g->to[pair] = *to = fp_model_stack(m, *to, frame);
    }
    return 0;
}

int fp_groups_within(struct fp_groups *g, struct fp_batch *b, const uint32_t *roots, const uint32_t *prefixes,
                     struct fp_err *err) {
    if (g->n_emptied != g->model->n_emptied) { /* ids of stacks are used again */
        g->n_emptied = g->model->n_emptied;
        fp_table_empty(&g->within);
        if (g->to) memset(g->to, 0, g->cap_to * sizeof *g->to);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t group = g->ids[i], stack = b->stack[i];
        FP_TRY(stack_within(g, group, roots ? roots[group] : 0, prefixes[group], stack, &b->stack[i], err));
        b->label[i] = 0;
    }
    return 0;
}
