#include <stdlib.h>

#include "bridges/project_private.h"

/* Of each stack of the model.  The tree is walked along its links, so its depth does not matter. */
struct tree {
    int64_t *own, *total; /* of the samples that end here, and of those below as well */
    int64_t *second;
    uint32_t *child, *sibling;
    uint8_t *used; /* there are samples here or below */
};

static void tree_free(struct tree *t) {
    free(t->own);
    free(t->total);
    free(t->second);
    free(t->child);
    free(t->sibling);
    free(t->used);
}

static int beyond(struct fp_err *err, int64_t column) {
    return fp_fail_beyond(err, "the sum of samples", column, "2^63 - 1");
}

/* Sums by stack, and the links from callers to callees. */
static int grow_tree(const struct fp_project *s, struct tree *t, uint32_t value, int second, struct fp_err *err) {
    const struct fp_table *stacks = &s->model->stacks;
    const size_t n = stacks->n;
    t->own = calloc(n, sizeof *t->own);
    t->total = calloc(n, sizeof *t->total);
    t->second = calloc(n, sizeof *t->second);
    t->child = calloc(n, sizeof *t->child);
    t->sibling = calloc(n, sizeof *t->sibling);
    t->used = calloc(n, sizeof *t->used);
    if (!t->own || !t->total || !t->second || !t->child || !t->sibling || !t->used) return fp_project_no_memory(err);
    for (uint32_t key = 1; key < s->keys.n; key++) {
        const uint32_t stack = fp_table_row(&s->keys, key)[0];
        const int64_t *sums = s->sums + (size_t)key * s->n_values;
        t->used[stack] = 1;
        if (__builtin_add_overflow(t->own[stack], sums[value], &t->own[stack])) return beyond(err, value);
        if (second >= 0 && __builtin_add_overflow(t->second[stack], sums[second], &t->second[stack]))
            return beyond(err, second);
    }
    /* a stack is entered after its caller's */
    for (uint32_t stack = stacks->n - 1; stack; stack--) {
        if (!t->used[stack]) continue;
        const uint32_t parent = fp_table_row(stacks, stack)[FP_STACK_PARENT];
        if (__builtin_add_overflow(t->total[stack], t->own[stack], &t->total[stack])) return beyond(err, value);
        if (parent && __builtin_add_overflow(t->total[parent], t->total[stack], &t->total[parent]))
            return beyond(err, value);
        t->used[parent] |= parent != 0;
        t->sibling[stack] = t->child[parent];
        t->child[parent] = stack;
    }
    return 0;
}

/* The thing of each position.  NULL when memory ran out. */
static uint32_t *things(const struct fp_project *s, int by, struct fp_table *places) {
    uint32_t *found = calloc(s->positions.n, sizeof *found);
    for (uint32_t i = 1; found && i < s->positions.n; i++) { /* the first row of a table is none */
        const uint32_t *p = fp_table_row(&s->positions, i), function = p[FP_POSITION_FUNCTION];
        if (by == FP_TOP_BY_FUNCTION) {
            found[i] = function;
        } else if (by == FP_TOP_BY_OBJECT) {
            found[i] = fp_table_row(&s->model->functions, function)[FP_FUNCTION_OBJECT];
        } else if (by == FP_TOP_BY_FILE) {
            found[i] = p[FP_POSITION_FILE];
        } else {
            found[i] = fp_table_intern(places, (uint32_t[]){function, p[FP_POSITION_FILE], p[FP_POSITION_LINE]});
            if (found[i] == FP_NO_ID) {
                free(found);
                return NULL;
            }
        }
    }
    return found;
}

/* The positions of a stack's frame, outermost first. */
static const uint32_t *chain_of(const struct fp_project *s, uint32_t stack, uint32_t *n) {
    const uint32_t *chain = s->chain + s->chain_of[fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME]];
    *n = chain[0];
    return chain + 1;
}

/* Books a stack's own cost, and its total on what is not on the stack already.  0 or FP_E_OVERFLOW. */
static int enter(const struct fp_project *s, const struct tree *t, const uint32_t *thing, uint32_t *active,
                 struct fp_top *c, uint32_t stack) {
    uint32_t n;
    const uint32_t *chain = chain_of(s, stack, &n), leaf = thing[chain[n - 1]];
    int overflow = __builtin_add_overflow(c->self[leaf], t->own[stack], &c->self[leaf]);
    overflow |= __builtin_add_overflow(c->second[leaf], t->second[stack], &c->second[leaf]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = thing[chain[i]];
        c->seen[id] = 1;
        if (!active[id]++) overflow |= __builtin_add_overflow(c->inclusive[id], t->total[stack], &c->inclusive[id]);
    }
    return overflow ? FP_E_OVERFLOW : 0;
}

static void leave(const struct fp_project *s, const uint32_t *thing, uint32_t *active, uint32_t stack) {
    uint32_t n;
    const uint32_t *chain = chain_of(s, stack, &n);
    for (uint32_t i = 0; i < n; i++) active[thing[chain[i]]]--;
}

static int walk(const struct fp_project *s, struct tree *t, const uint32_t *thing, uint32_t *active, struct fp_top *c) {
    int status = 0;
    if (t->used[0]) { /* samples without a stack: a place of their own, and no caller of others */
        t->total[0] = t->own[0];
        status = enter(s, t, thing, active, c, 0);
        leave(s, thing, active, 0);
    }
    uint32_t at = t->child[0];
    while (at && !status) {
        status = enter(s, t, thing, active, c, at);
        if (t->child[at]) {
            at = t->child[at];
            continue;
        }
        for (leave(s, thing, active, at); at && !t->sibling[at];) {
            at = fp_table_row(&s->model->stacks, at)[FP_STACK_PARENT];
            if (at) leave(s, thing, active, at);
        }
        if (at) at = t->sibling[at];
    }
    return status;
}

int fp_project_top(struct fp_project *s, int by, uint32_t value, int second, struct fp_table *places, struct fp_top *c,
                   struct fp_err *err) {
    if (value >= s->n_values) return fp_unknown_id(err, "the column of a value", value, s->n_values);
    struct tree tree = {0};
    uint32_t *thing = NULL, *active = NULL, n = 1;
    int status = grow_tree(s, &tree, value, second, err);
    if (!status) {
        thing = things(s, by, places);
        for (uint32_t i = 0; thing && i < s->positions.n; i++)
            if (thing[i] >= n) n = thing[i] + 1;
        active = calloc(n, sizeof *active);
        if (!thing || !active || fp_top_room(c, n))
            status = fp_project_no_memory(err);
        else if (walk(s, &tree, thing, active, c))
            status = beyond(err, value);
    }
    tree_free(&tree);
    free(thing);
    free(active);
    return status;
}
