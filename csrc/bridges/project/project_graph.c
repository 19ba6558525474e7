#include "bridges/project/project_private.h"

static const char SELF_COST[] = "the self cost of a position", SAMPLES[] = "the sum of samples";

/* The row of (position, callee), added if new. */
static uint32_t find_row(struct fp_project *s, uint32_t position, uint32_t callee) {
    uint32_t row = fp_table_intern(&s->rows, (uint32_t[]){position, callee});
    uint32_t cap = s->cap_rows, same = s->cap_rows;
    fp_array_zeroed(&s->costs, &cap, (uint64_t)row + 1, fp_project_row(s));
    fp_array_zeroed(&s->counts, &same, cap, sizeof *s->counts);
    s->cap_rows = cap;
    return row;
}

/* Adds a row of values; `what` describes their sums.  0 or FP_E_OVERFLOW. */
static int add_values(struct fp_err *err, const char *what, int64_t *to, const int64_t *from, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (__builtin_add_overflow(to[k], from[k], &to[k])) return fp_fail_beyond(err, what, k, "2^63 - 1");
    return 0;
}

static uint32_t function_of(const struct fp_project *s, uint32_t position) {
    return fp_table_row(&s->positions, position)[FP_POSITION_FUNCTION];
}

/* The positions of the node above; none for the first frames of a stack. */
static const uint32_t *chain_above(const struct fp_project *s, uint32_t at, uint32_t *n) {
    *n = 0;
    const uint32_t parent = at ? fp_project_parent(s, at) : 0;
    return parent ? fp_project_chain(s, parent, n) : NULL;
}

/* Adds a node's self cost to its positions and begins its sum. */
static int enter(struct fp_project *s, struct fp_err *err) {
    struct fp_project_walk *w = &s->walk;
    uint32_t n, n_above, key = s->nodes[w->at].key;
    const uint32_t *chain = fp_project_chain(s, w->at, &n);
    chain_above(s, w->at, &n_above);
    fp_array_room(&w->inclusive, &w->cap_depth, (uint64_t)w->depth + 1, fp_project_row(s));
    int64_t *inclusive = w->inclusive + (size_t)w->depth * s->n_values;
    memset(inclusive, 0, s->n_values * sizeof *inclusive);
    for (uint32_t i = n_above ? 0 : 1; i < n; i++) s->active[function_of(s, chain[i])]++;
    if (!key) return 0;
    const int64_t *self = s->sums + (size_t)key * s->n_values;
    uint32_t row = find_row(s, chain[n - 1], 0);
    memcpy(inclusive, self, s->n_values * sizeof *inclusive);
    return add_values(err, SELF_COST, s->costs + (size_t)row * s->n_values, self, s->n_values);
}

/* Adds a node's complete inclusive cost to the arcs into it. */
static int leave(struct fp_project *s, struct fp_err *err) {
    const struct fp_project_walk *w = &s->walk;
    const uint32_t at = w->at, key = s->nodes[at].key;
    const int64_t *inclusive = w->inclusive + (size_t)w->depth * s->n_values;
    uint32_t n, n_above;
    const uint32_t *chain = fp_project_chain(s, at, &n), *above = chain_above(s, at, &n_above);
    for (uint32_t i = n; i-- > (n_above ? 0 : 1);) {
        uint32_t callee = function_of(s, chain[i]);
        s->active[callee]--;
        uint32_t row = find_row(s, i ? chain[i - 1] : above[n_above - 1], callee);
        int64_t *costs = s->costs + (size_t)row * s->n_values;
        if (!s->active[callee] && add_values(err, "the inclusive cost of a call arc", costs, inclusive, s->n_values))
            return FP_E_OVERFLOW;
        if (w->calls >= 0 && key) {
            int64_t calls = s->sums[(size_t)key * s->n_values + (size_t)w->calls];
            if (calls > 0 && __builtin_add_overflow(s->counts[row], (uint64_t)calls, &s->counts[row]))
                return fp_fail_beyond(err, "the number of calls of an arc", w->calls, "2^64 - 1");
        }
    }
    if (!at) return 0;
    int64_t *above_it = w->inclusive + (size_t)(w->depth - 1) * s->n_values;
    return add_values(err, "the inclusive cost of a call stack", above_it, inclusive, s->n_values);
}

/* Walks the tree of a group depth first, without recursion.  FP_DONE, FP_FULL (more than `most` rows; the next call
 * continues) or a negative status. */
static int walk_tree(struct fp_project *s, uint32_t most, struct fp_err *err) {
    struct fp_project_walk *w = &s->walk;
    int status = w->is_begun ? 0 : enter(s, err);
    w->is_begun = 1;
    while (!status) {
        if (s->nodes[w->at].child) {
            w->at = s->nodes[w->at].child;
            w->depth++;
            status = enter(s, err);
            continue;
        }
        for (;;) {
            status = leave(s, err);
            if (status || !w->at) return status ? status : FP_DONE;
            if (s->nodes[w->at].sibling != FP_NO_ID) break;
            w->at = fp_project_parent(s, w->at);
            w->depth--;
        }
        w->at = s->nodes[w->at].sibling;
        status = enter(s, err);
        if (!status && s->rows.n > most) return FP_FULL;
    }
    return status;
}

/* Drops the rows of the last graph. */
static void begin(struct fp_project *s) {
    fp_table_clear(&s->rows);
    if (s->costs) memset(s->costs, 0, (size_t)s->cap_rows * s->n_values * sizeof *s->costs);
    if (s->counts) memset(s->counts, 0, s->cap_rows * sizeof *s->counts);
    s->at = 1;
    fp_table_init(&s->rows, 2);
}

void fp_project_begin(struct fp_project *s, uint32_t group, int64_t calls, int64_t *totals) {
    struct fp_project_walk *w = &s->walk;
    const uint32_t n = s->n_groups;
    free(w->inclusive);
    *w = (struct fp_project_walk){.group = group == FP_NO_ID ? 0 : group, .end = group < n ? group + 1 : n};
    w->calls = calls;
    memset(totals, 0, s->n_values * sizeof *totals);
}

int fp_project_select(struct fp_project *s, uint32_t most, int64_t *totals, struct fp_err *err) {
    struct fp_project_walk *w = &s->walk;
    begin(s);
    for (; w->group < w->end; w->group++) {
        if (s->group_start[w->group] == s->group_start[w->group + 1]) continue;
        if (!w->is_begun) fp_project_grow(s, w->group);
        int status = walk_tree(s, most, err);
        if (status == FP_FULL) return FP_FULL;
        if (status == FP_DONE) status = add_values(err, SAMPLES, totals, w->inclusive, s->n_values);
        fp_project_fell(s, w->group);
        w->is_begun = 0;
        if (status) return status;
    }
    return FP_DONE;
}

int fp_project_select_self(struct fp_project *s, uint32_t group, int64_t *totals, struct fp_err *err) {
    begin(s);
    memset(totals, 0, s->n_values * sizeof *totals);
    const uint32_t first = group < s->n_groups ? s->group_start[group] : 0;
    const uint32_t end = group < s->n_groups ? s->group_start[group + 1] : 0;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t key = s->by_group[i], stack = fp_project_stack(s, key);
        const uint32_t *chain = s->chain + s->chain_of[fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME]];
        const int64_t *self = s->sums + (size_t)key * s->n_values;
        const uint32_t row = find_row(s, chain[chain[0]], 0);
        FP_TRY(add_values(err, SELF_COST, s->costs + (size_t)row * s->n_values, self, s->n_values));
        FP_TRY(add_values(err, SAMPLES, totals, self, s->n_values));
    }
    return FP_DONE;
}

int fp_project_pull(struct fp_project *s, struct fp_batch *out) {
    const struct fp_model *m = s->model;
    for (; s->at < s->rows.n; s->at++) {
        if (out->n == out->cap) return FP_FULL;
        const uint32_t id = s->at, *row = fp_table_row(&s->rows, id), callee = row[1];
        const uint32_t *p = fp_table_row(&s->positions, row[0]);
        const uint32_t i =
            fp_batch_cost(out, p[FP_POSITION_FUNCTION], p[FP_POSITION_FILE], p[FP_POSITION_LINE], callee);
        out->address[i] = fp_words_u64(p + FP_POSITION_ADDRESS);
        out->target_line[i] = callee ? fp_table_row(&m->functions, callee)[FP_FUNCTION_LINE] : 0;
        out->target_address[i] = callee && callee < s->cap_start ? s->start_of[callee] : 0;
        out->count[i] = callee ? s->counts[id] : 0;
        for (uint32_t k = 0; k < s->n_values; k++)
            out->values[(size_t)k * out->cap + i] = s->costs[(size_t)id * s->n_values + k];
    }
    return FP_DONE;
}
