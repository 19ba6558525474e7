#include "bridges/project/project_private.h"
#include "ends/top.h"

struct stack_walk {
    const struct fp_top_column *columns;
    uint32_t n_columns;
    int calls;
    uint32_t failed; /* the sum that does not fit */
    int64_t *total;  /* of each column, by depth: the sum so far of the samples that end there or below */
    uint32_t cap_depth;
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

/* Adds a cost in sum `value`. */
static int add(struct stack_walk *w, int64_t cost, int32_t value, int64_t *to) {
    if (!__builtin_add_overflow(*to, cost, to)) return 0;
    w->failed = (uint32_t)value;
    return FP_E_OVERFLOW;
}

/* Adds a sum of a stack to that of an item. */
static int add_sum(struct stack_walk *w, const int64_t *sums, int32_t value, int64_t *to) {
    return value < 0 ? 0 : add(w, sums[value], value, to);
}

/* Adds a node's self costs to its item and begins its totals.  0 or FP_E_OVERFLOW. */
static int enter(const struct fp_project *s, struct stack_walk *w, uint32_t at, uint32_t depth) {
    const uint32_t n_columns = w->n_columns;
    uint32_t n, key = s->nodes[at].key;
    const uint32_t *chain = fp_project_chain(s, at, &n);
    for (uint32_t i = 0; i < n; i++) w->active[w->item[chain[i]]]++;
    fp_scratch_room(&w->total, &w->cap_depth, (uint64_t)depth + 1, n_columns * sizeof *w->total);
    int64_t *total = w->total + (size_t)depth * n_columns;
    memset(total, 0, n_columns * sizeof *total);
    if (!key) return 0;
    const int64_t *sums = s->sums + (size_t)key * s->n_values;
    const uint32_t leaf = w->item[chain[n - 1]];
    int status = 0;
    for (uint32_t k = 0; k < n_columns; k++) {
        const struct fp_top_column *column = &w->columns[k];
        if (column->value >= 0) total[k] = sums[column->value];
        status |= add_sum(w, sums, column->value, &column->to->self[leaf]);
        status |= add_sum(w, sums, column->second, &column->to->second[leaf]);
        status |= add_sum(w, sums, w->calls, &column->to->calls[leaf]);
    }
    return status;
}

/* Adds a node's complete totals to its items, except those that are also further up on the stack. */
static int leave(const struct fp_project *s, struct stack_walk *w, uint32_t at, uint32_t depth) {
    const uint32_t n_columns = w->n_columns;
    const int64_t *total = w->total + (size_t)depth * n_columns;
    uint32_t n;
    const uint32_t *chain = fp_project_chain(s, at, &n);
    int status = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = w->item[chain[i]];
        if (--w->active[id]) continue;
        for (uint32_t k = 0; k < n_columns; k++) {
            w->columns[k].to->seen[id] = 1;
            status |= add(w, total[k], w->columns[k].value, &w->columns[k].to->inclusive[id]);
        }
    }
    for (uint32_t k = 0; at && k < n_columns; k++)
        status |= add(w, total[k], w->columns[k].value, &w->total[(size_t)(depth - 1) * n_columns + k]);
    return status;
}

/* Walks the tree depth first, without recursion. */
static int walk(const struct fp_project *s, struct stack_walk *w) {
    const struct fp_project_node *nodes = s->nodes;
    uint32_t at = 0, depth = 0;
    FP_TRY(enter(s, w, 0, 0));
    /* samples without a stack have a separate position, and no calls */
    if (nodes[0].key) {
        FP_TRY(leave(s, w, 0, 0));
        memset(w->total, 0, w->n_columns * sizeof *w->total);
    }
    for (;;) {
        if (nodes[at].child) {
            at = nodes[at].child;
            FP_TRY(enter(s, w, at, ++depth));
            continue;
        }
        for (;;) {
            if (!at) return 0;
            FP_TRY(leave(s, w, at, depth));
            if (nodes[at].sibling != FP_NO_ID) break;
            at = fp_project_parent(s, at);
            depth--;
        }
        at = nodes[at].sibling;
        FP_TRY(enter(s, w, at, depth));
    }
}

int fp_top_stacks(struct fp_project *s, int by, const struct fp_top_column *columns, uint32_t n, int calls,
                  struct fp_table *places, struct fp_err *err) {
    struct stack_walk w = {.columns = columns, .n_columns = n, .calls = calls, .item = items(s, by, places)};
    uint32_t n_items = 1;
    for (uint32_t i = 0; i < s->positions.n; i++)
        if (w.item[i] >= n_items) n_items = w.item[i] + 1;
    w.active = fp_scratch(n_items, sizeof *w.active);
    for (uint32_t k = 0; k < n; k++) {
        const int64_t last = columns[k].value > columns[k].second ? columns[k].value : columns[k].second;
        if (last >= s->n_values) return fp_unknown_id(err, "the column of a value", (uint32_t)last, s->n_values);
        fp_top_room(columns[k].to, n_items);
    }
    if (calls >= 0 && (uint32_t)calls >= s->n_values)
        return fp_unknown_id(err, "the column of calls", (uint32_t)calls, s->n_values);
    int status = 0;
    for (uint32_t group = 0; !status && group < s->n_groups; group++) {
        if (s->group_start[group] == s->group_start[group + 1]) continue;
        fp_project_grow(s, group);
        status = walk(s, &w);
        fp_project_fell(s, group);
    }
    return status ? beyond(err, w.failed) : FP_DONE;
}
