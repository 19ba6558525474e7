#include "bridges/project/project_private.h"
#include "ends/top.h"

struct stack_walk {
    int64_t *total; /* by depth: the sum so far of the samples that end there or below */
    uint32_t cap_depth;
    uint32_t value;
    int second;
    uint32_t *item;   /* by position */
    uint32_t *active; /* by item: how often it is on the stack */
};

static int beyond(struct fp_err *err, int64_t column) {
    return fp_fail_beyond(err, "the sum of samples", column, "2^63 - 1");
}

/* The item of each position. */
static uint32_t *items(const struct fp_project *s, int by, struct fp_table *places) {
    uint32_t *found = fp_scratch(s->positions.n, sizeof *found);
    for (uint32_t i = 1; i < s->positions.n; i++) { /* row 0 of a table is unused */
        const uint32_t *p = fp_table_row(&s->positions, i), function = p[FP_POSITION_FUNCTION];
        if (by == FP_TOP_BY_FUNCTION) {
            found[i] = function;
        } else if (by == FP_TOP_BY_OBJECT) {
            found[i] = fp_table_row(&s->model->functions, function)[FP_FUNCTION_OBJECT];
        } else if (by == FP_TOP_BY_FILE) {
            found[i] = p[FP_POSITION_FILE];
        } else {
            found[i] = fp_table_intern(places, (uint32_t[]){function, p[FP_POSITION_FILE], p[FP_POSITION_LINE]});
        }
    }
    return found;
}

/* Adds a node's self cost to its item and begins its total.  0 or FP_E_OVERFLOW. */
static int enter(const struct fp_project *s, struct stack_walk *w, struct fp_top_sums *c, uint32_t at, uint32_t depth) {
    uint32_t n, key = s->nodes[at].key;
    const uint32_t *chain = fp_project_chain(s, at, &n);
    for (uint32_t i = 0; i < n; i++) {
        c->seen[w->item[chain[i]]] = 1;
        w->active[w->item[chain[i]]]++;
    }
    fp_scratch_room(&w->total, &w->cap_depth, (uint64_t)depth + 1, sizeof *w->total);
    const int64_t *sums = s->sums + (size_t)key * s->n_values;
    w->total[depth] = key ? sums[w->value] : 0;
    if (!key) return 0;
    const uint32_t leaf = w->item[chain[n - 1]];
    int overflow = __builtin_add_overflow(c->self[leaf], sums[w->value], &c->self[leaf]);
    if (w->second >= 0) overflow |= __builtin_add_overflow(c->second[leaf], sums[w->second], &c->second[leaf]);
    return overflow ? FP_E_OVERFLOW : 0;
}

/* Adds a node's complete total to its items, except those that are also further up on the stack. */
static int leave(const struct fp_project *s, struct stack_walk *w, struct fp_top_sums *c, uint32_t at, uint32_t depth) {
    uint32_t n;
    const uint32_t *chain = fp_project_chain(s, at, &n);
    int overflow = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = w->item[chain[i]];
        if (!--w->active[id]) overflow |= __builtin_add_overflow(c->inclusive[id], w->total[depth], &c->inclusive[id]);
    }
    if (at) overflow |= __builtin_add_overflow(w->total[depth - 1], w->total[depth], &w->total[depth - 1]);
    return overflow ? FP_E_OVERFLOW : 0;
}

/* Walks the tree depth first, without recursion. */
static int walk(const struct fp_project *s, struct stack_walk *w, struct fp_top_sums *c) {
    const struct fp_project_node *nodes = s->nodes;
    uint32_t at = 0, depth = 0;
    int status = enter(s, w, c, 0, 0);
    /* samples without a stack have a separate position, and no calls */
    if (!status && nodes[0].key) {
        status = leave(s, w, c, 0, 0);
        w->total[0] = 0;
    }
    if (status) return status;
    for (;;) {
        if (nodes[at].child) {
            at = nodes[at].child;
            status = enter(s, w, c, at, ++depth);
            if (status) return status;
            continue;
        }
        for (;;) {
            if (!at) return 0;
            status = leave(s, w, c, at, depth);
            if (status) return status;
            if (nodes[at].sibling != FP_NO_ID) break;
            at = fp_project_parent(s, at);
            depth--;
        }
        at = nodes[at].sibling;
        status = enter(s, w, c, at, depth);
        if (status) return status;
    }
}

int fp_top_stacks(struct fp_project *s, int by, uint32_t value, int second, struct fp_table *places,
                  struct fp_top_sums *c, struct fp_err *err) {
    if (value >= s->n_values) return fp_unknown_id(err, "the column of a value", value, s->n_values);
    struct stack_walk w = {.value = value, .second = second, .item = items(s, by, places)};
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->positions.n; i++)
        if (w.item[i] >= n) n = w.item[i] + 1;
    w.active = fp_scratch(n, sizeof *w.active);
    fp_top_room(c, n);
    int status = 0;
    for (uint32_t group = 0; !status && group < s->n_groups; group++) {
        if (s->group_start[group] == s->group_start[group + 1]) continue;
        fp_project_grow(s, group);
        status = walk(s, &w, c);
        fp_project_fell(s, group);
    }
    return status ? beyond(err, value) : FP_DONE;
}
