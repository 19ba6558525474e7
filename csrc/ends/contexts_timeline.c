#include "bridges/fold/fold_private.h"
#include "ends/contexts_private.h"

enum { VALUES = 2 }; /* enum fp_fold_column */

struct taking {
    struct fp_contexts *c;
    const struct fp_fold *f;
    struct fp_fold_out named;
    uint64_t *all;      /* by node of the stack machine and column: inclusive costs */
    uint32_t *node;     /* by node of the stack machine: 1 + its node here, 0: cut */
    uint32_t *root;     /* by group: the node of its thread, 0: not known yet */
    double least;       /* share of new contexts */
    uint32_t n_before;  /* nodes from here on are new, and so are their children */
    double per[VALUES]; /* the share of a tick and of a call */
};

static int too_large(struct fp_err *err, int64_t column) {
    return fp_fail_beyond(err, "a context", column, "2^63 - 1");
}

/* Sums of each node with its callees, which come after it, and the totals so far.  0 or FP_E_OVERFLOW. */
static int sum_up(struct taking *t, struct fp_err *err) {
    const struct fp_fold_arc *const arcs = t->f->arcs;
    double *const total = t->c->total;
    for (uint32_t i = t->f->n_arcs; i-- > 0;) {
        uint64_t *const sums = t->all + (size_t)VALUES * i;
        total[FP_FOLD_TIME] += (double)arcs[i].self;
        total[FP_FOLD_CALLS] += (double)arcs[i].calls;
        for (int k = 0; k < VALUES; k++) {
            const uint64_t own = k == FP_FOLD_TIME ? arcs[i].self : arcs[i].calls;
            if (__builtin_add_overflow(sums[k], own, &sums[k]) || sums[k] > INT64_MAX) return too_large(err, k);
            if (!arcs[i].caller) continue;
            uint64_t *const to = &t->all[(size_t)VALUES * (arcs[i].caller - 1) + (size_t)k];
            if (__builtin_add_overflow(*to, sums[k], to)) return too_large(err, k);
        }
    }
    const int n = (total[FP_FOLD_TIME] > 0) + (total[FP_FOLD_CALLS] > 0);
    for (int k = 0; k < VALUES; k++) t->per[k] = total[k] > 0 ? 1 / total[k] / n : 0;
    return 0;
}

/* The node of a thread. */
static uint32_t root_of(struct taking *t, uint32_t group) {
    if (t->root[group]) return t->root[group];
    uint32_t thread = 0;
    if (group < t->f->groups.n) {
        const uint32_t *row = fp_table_row(&t->f->groups, group);
        if (row[FP_GROUP_PID] || row[FP_GROUP_TID])
            thread = fp_model_thread(t->f->model, row[FP_GROUP_INPUT], row[FP_GROUP_PID], row[FP_GROUP_TID]);
    }
    return t->root[group] = fp_table_intern(&t->c->nodes, (uint32_t[]){0, 0, thread + 1});
}

static int add(struct taking *t, int64_t *values, uint32_t node, uint64_t ticks, uint64_t calls, struct fp_err *err) {
    const uint64_t by[VALUES] = {[FP_FOLD_TIME] = ticks, [FP_FOLD_CALLS] = calls};
    int64_t *const to = values + (size_t)node * t->c->n_values;
    for (int k = 0; k < VALUES; k++)
        if (by[k] > INT64_MAX || __builtin_add_overflow(to[k], (int64_t)by[k], &to[k])) return too_large(err, k);
    return 0;
}

static double share_of(const struct taking *t, uint32_t i) {
    const uint64_t *const all = t->all + (size_t)VALUES * i;
    return (double)all[FP_FOLD_TIME] * t->per[FP_FOLD_TIME] + (double)all[FP_FOLD_CALLS] * t->per[FP_FOLD_CALLS];
}

enum { AHEAD = 16 }; /* nodes of the stack machine */

/* The place where a later node's row will be looked up, if its caller's is known already. */
static void prefetch(const struct taking *t, uint32_t i) {
    const struct fp_fold_arc *const arc = &t->f->arcs[i];
    const uint32_t parent = arc->caller ? t->node[arc->caller - 1] : 0, function = t->named.named[arc->callee];
    if (!parent || !function || (parent >= t->n_before && share_of(t, i) < t->least)) return;
    const uint32_t row[FP_CONTEXT_WIDTH] = {[FP_CONTEXT_PARENT] = parent, [FP_CONTEXT_FUNCTION] = function};
    fp_table_prefetch(&t->c->nodes, fp_table_hash(row, FP_CONTEXT_WIDTH));
}

/* Adds a node of the stack machine below `parent`, unless it is new and too small.  FP_DONE or FP_E_OVERFLOW. */
static int take(struct taking *t, uint32_t i, uint32_t parent, struct fp_err *err) {
    struct fp_contexts *const c = t->c;
    const struct fp_fold_arc *const arc = &t->f->arcs[i];
    const uint64_t *const all = t->all + (size_t)VALUES * i;
    const uint32_t function = fp_fold_in_graph(&t->named, arc->callee);
    const uint32_t row[FP_CONTEXT_WIDTH] = {[FP_CONTEXT_PARENT] = parent, [FP_CONTEXT_FUNCTION] = function};
    if (share_of(t, i) < t->least && (parent >= t->n_before || !fp_table_find(&c->nodes, row))) {
        c->n_all++;
        return add(t, c->cut, parent, all[FP_FOLD_TIME], all[FP_FOLD_CALLS], err);
    }
    const uint32_t node = fp_table_intern(&c->nodes, row);
    const size_t width = VALUES * sizeof *c->own;
    fp_array_zeroed(&c->own, &c->cap_own, c->nodes.n, width);
    fp_array_zeroed(&c->cut, &c->cap_cut, c->nodes.n, width);
    t->node[i] = node;
    return add(t, c->own, node, arc->self, arc->calls, err);
}

static int take_all(struct taking *t, struct fp_err *err) {
    struct fp_contexts *const c = t->c;
    const struct fp_fold_arc *const arcs = t->f->arcs;
    int status = sum_up(t, err);
    for (uint32_t i = 0; i < t->f->n_arcs && !status; i++) {
        if (t->f->n_arcs - i > AHEAD) prefetch(t, i + AHEAD);
        const uint64_t *const all = t->all + (size_t)VALUES * i;
        if (!all[FP_FOLD_TIME] && !all[FP_FOLD_CALLS]) continue; /* only carried over */
        const uint32_t parent = arcs[i].caller ? t->node[arcs[i].caller - 1] : root_of(t, arcs[i].group);
        if (!parent) {
            c->n_all++; /* below a cut one */
            continue;
        }
        fp_array_zeroed(&c->own, &c->cap_own, c->nodes.n, VALUES * sizeof *c->own);
        fp_array_zeroed(&c->cut, &c->cap_cut, c->nodes.n, VALUES * sizeof *c->cut);
        status = take(t, i, parent, err);
    }
    return status;
}

int fp_contexts_take(struct fp_contexts *c, const struct fp_fold *f, struct fp_err *err) {
    fp_contexts_widen(c, VALUES);
    struct taking t = {.c = c, .f = f, .least = c->above / 2, .n_before = c->nodes.n};
    const uint32_t n_groups = f->groups.n ? f->groups.n : 1;
    t.named.model = f->model;
    t.named.unknown_file = fp_strings_intern(&f->model->strings, "???", 3);
    fp_array_zeroed(&c->in_graph, &c->cap_in_graph, f->model->functions.n, sizeof *c->in_graph);
    t.named.named = c->in_graph;
    t.named.n_named = c->cap_in_graph;
    t.all = fp_scratch((size_t)VALUES * f->n_arcs + 1, sizeof *t.all);
    t.node = fp_scratch((size_t)f->n_arcs + 1, sizeof *t.node);
    t.root = fp_scratch(n_groups, sizeof *t.root);
    return take_all(&t, err);
}

int fp_contexts_scale(struct fp_contexts *c, uint64_t ticks_per_second, struct fp_err *err) {
    for (uint32_t i = 0; i < c->nodes.n && c->n_values; i++)
        for (int k = 0; k < 2; k++) {
            if (i >= (k ? c->cap_cut : c->cap_own)) continue;
            int64_t *const ticks = &(k ? c->cut : c->own)[(size_t)i * c->n_values + FP_FOLD_TIME];
            if (fp_fold_in_units(ticks_per_second, (uint64_t)*ticks, ticks)) return too_large(err, FP_FOLD_TIME);
        }
    return FP_DONE;
}
