#include "bridges/estimate/estimate_private.h"

/* Arcs visited for each allowed context. */
enum { STEPS = 64 };
enum { TOO_MANY = 1 }; /* a status */

/* Shares below this are the rounding of doubles. */
static const double ROUNDING = 1e-9;

struct flow_walk {
    struct fp_estimate_flow *f;
    double prune;
    uint64_t max_contexts, max_steps, steps;
    /* within a cycle */
    uint8_t *on_path;  /* by function */
    double *through;   /* by arc: shares of the contexts created */
    double *left_out;  /* by arc: shares of contexts that were too small */
    double *possible;  /* by function: shares of the arcs that may continue the path */
    uint32_t *path;    /* contexts from the cycle's entry on */
    double *costs;     /* by position on the path: an upper bound of the context's cost, as a share of the total */
    uint32_t *at;      /* by position on the path: the current arc */
    uint32_t *entries; /* contexts that enter the cycle */
    uint32_t cap_path, cap_costs, cap_at, cap_entries;
};

static int add(struct flow_walk *w, uint32_t function, uint32_t parent, uint32_t arc, double share, uint8_t is_left) {
    struct fp_estimate_flow *f = w->f;
    if (f->n_contexts >= w->max_contexts) return TOO_MANY;
    fp_array_room(&f->contexts, &f->cap_contexts, (uint64_t)f->n_contexts + 1, sizeof *f->contexts);
    const uint16_t depth = parent == FP_NO_ID ? 0 : (uint16_t)(f->contexts[parent].depth + 1);
    f->contexts[f->n_contexts] =
        (struct fp_estimate_context){share, parent, arc, function, f->first[function], depth, is_left, 0, FP_NO_ID};
    f->first[function] = f->n_contexts++;
    return 0;
}

static int add_context(struct flow_walk *w, uint32_t function, uint32_t parent, uint32_t arc, double share) {
    return add(w, function, parent, arc, share, parent == FP_NO_ID ? 0 : w->f->contexts[parent].is_left);
}

static int heaviest_first(const void *a, const void *b) {
    const struct fp_estimate_arc *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The depth limit of stacks.  The first caller under [pruned] has no context. */
static int is_deep(const struct flow_walk *w, uint32_t context) {
    return w->f->contexts[context].depth + w->f->contexts[context].is_left >= FP_ESTIMATE_DEPTH;
}

/* Extends the contexts of a function to its callees outside of its cycle.  The rest of an arc continues under [pruned],
 * if it is not too small. */
static int descend(struct flow_walk *w, uint32_t function) {
    struct fp_estimate_flow *f = w->f;
    const uint32_t end = f->arcs_start[function + 1];
    for (uint32_t i = f->arcs_start[function]; i < end; i++) w->left_out[i] = f->arcs[i].share;
    for (uint32_t id = f->first[function]; id != FP_NO_ID; id = f->contexts[id].next) {
        const double share = f->contexts[id].share;
        if (is_deep(w, id)) continue;
        for (uint32_t i = f->arcs_start[function]; i < end; i++) {
            const struct fp_estimate_arc arc = f->arcs[i];
            if (share * arc.weight < w->prune) break;
            if (f->component[arc.callee] == f->component[function]) continue;
            if (++w->steps > w->max_steps) return TOO_MANY;
            FP_TRY(share * arc.share > 0 ? add_context(w, arc.callee, id, i, share * arc.share) : 0);
            w->left_out[i] -= share * arc.share;
        }
    }
    for (uint32_t i = f->arcs_start[function]; i < end; i++) {
        const uint32_t callee = f->arcs[i].callee;
        const double left = w->left_out[i];
        if (f->component[callee] == f->component[function] || !(left > ROUNDING)) continue;
        if (left * f->cost[callee] < w->prune) continue;
        FP_TRY(add(w, callee, FP_NO_ID, i, left, 1));
    }
    return 0;
}

/* Extends a context through the other functions of its cycle, depth first. */
static int go_round(struct flow_walk *w, uint32_t entry) {
    struct fp_estimate_flow *f = w->f;
    uint32_t n_path = 1;
    w->path[0] = entry;
    w->costs[0] = f->contexts[entry].share * f->cost[f->contexts[entry].function];
    w->at[0] = f->arcs_start[f->contexts[entry].function];
    w->on_path[f->contexts[entry].function] = 1;
    while (n_path) {
        const uint32_t id = w->path[n_path - 1], function = f->contexts[id].function;
        if (w->at[n_path - 1] == f->arcs_start[function + 1]) {
            w->on_path[function] = 0;
            n_path--;
            continue;
        }
        const uint32_t i = w->at[n_path - 1]++;
        const struct fp_estimate_arc arc = f->arcs[i];
        if (++w->steps > w->max_steps) return TOO_MANY;
        if (f->component[arc.callee] != f->component[function] || w->on_path[arc.callee]) continue;
        const double share = f->contexts[id].share * arc.share;
        if (!(share > 0)) continue;
        /* limited by the arc's part of its caller's cost: by shares alone, costs could grow along the path */
        const double by_share = f->contexts[id].share * arc.weight;
        const double by_cost = w->costs[n_path - 1] * (arc.cost / f->cost[function]);
        const double cost = arc.cost > 0 && by_cost < by_share ? by_cost : by_share;
        if (cost < w->prune || is_deep(w, id)) {
            w->left_out[i] += share;
            continue;
        }
        w->through[i] += share;
        FP_TRY(add_context(w, arc.callee, id, i, share));
        fp_scratch_room(&w->path, &w->cap_path, (uint64_t)n_path + 1, sizeof *w->path);
        fp_scratch_room(&w->costs, &w->cap_costs, (uint64_t)n_path + 1, sizeof *w->costs);
        fp_scratch_room(&w->at, &w->cap_at, (uint64_t)n_path + 1, sizeof *w->at);
        w->path[n_path] = f->n_contexts - 1;
        w->costs[n_path] = cost;
        w->at[n_path++] = f->arcs_start[arc.callee];
        w->on_path[arc.callee] = 1;
    }
    return 0;
}

/* Lists the contexts that enter a cycle, with their parts of the incoming cost. */
static int enter_cycle(struct flow_walk *w, uint32_t first, uint32_t end, uint32_t *n_entries, double *known) {
    struct fp_estimate_flow *f = w->f;
    uint32_t costliest = f->order[first];
    double entered = 0, by_contexts = 0;
    int status = 0;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t function = f->order[i];
        entered += f->entered[function] * f->cost[function];
        if (f->cost[function] > f->cost[costliest]) costliest = function;
        if (f->uncalled[function] > 0) status = add_context(w, function, FP_NO_ID, FP_NO_ID, f->uncalled[function]);
        if (status) return status;
        w->possible[function] = f->entered[function];
    }
    if (!(entered > 0)) { /* no callers: begin with the most expensive function */
        w->possible[costliest] = 1;
        FP_TRY(add_context(w, costliest, FP_NO_ID, FP_NO_ID, 1));
    }
    *n_entries = 0;
    for (uint32_t i = first; i < end; i++)
        for (uint32_t id = f->first[f->order[i]]; id != FP_NO_ID; id = f->contexts[id].next) {
            fp_scratch_room(&w->entries, &w->cap_entries, (uint64_t)*n_entries + 1, sizeof *w->entries);
            w->entries[(*n_entries)++] = id;
            by_contexts += f->contexts[id].share * f->cost[f->order[i]];
        }
    *known = by_contexts < entered * (1 - ROUNDING) ? by_contexts / entered : 1;
    return 0;
}

/* Creates the contexts of a cycle's functions, order[first..end).  The contexts of an arc within the cycle divide the
 * arc's share of its callee; arcs without contexts leave their shares to the others. */
static int walk_cycle(struct flow_walk *w, uint32_t first, uint32_t end) {
    struct fp_estimate_flow *f = w->f;
    uint32_t n_entries;
    double known;
    int status = enter_cycle(w, first, end, &n_entries, &known);
    if (status) return status;
    fp_scratch_room(&w->path, &w->cap_path, 1, sizeof *w->path);
    fp_scratch_room(&w->costs, &w->cap_costs, 1, sizeof *w->costs);
    fp_scratch_room(&w->at, &w->cap_at, 1, sizeof *w->at);
    for (uint32_t i = first; i < end; i++)
        for (uint32_t j = f->arcs_start[f->order[i]]; j < f->arcs_start[f->order[i] + 1]; j++)
            w->through[j] = w->left_out[j] = 0;
    const uint32_t n_before = f->n_contexts;
    for (uint32_t i = 0; i < n_entries; i++)
        if ((status = go_round(w, w->entries[i]))) return status;
    for (uint32_t i = first; i < end; i++)
        for (uint32_t j = f->arcs_start[f->order[i]]; j < f->arcs_start[f->order[i] + 1]; j++)
            if (f->component[f->arcs[j].callee] == first && w->through[j] + w->left_out[j] > 0)
                w->possible[f->arcs[j].callee] += f->arcs[j].share;
    for (uint32_t id = n_before; id < f->n_contexts; id++) {
        const uint32_t arc = f->contexts[id].arc;
        f->contexts[id].share *= f->arcs[arc].share / (w->through[arc] + w->left_out[arc]) * known;
    }
    for (uint32_t i = first; i < end; i++)
        for (uint32_t id = f->first[f->order[i]]; id != FP_NO_ID; id = f->contexts[id].next)
            f->contexts[id].share /= w->possible[f->order[i]];
    return 0;
}

static void sort_arcs(struct fp_estimate_flow *f, uint32_t function) {
    const uint32_t first = f->arcs_start[function], n = f->arcs_start[function + 1] - first;
    if (n > 1) qsort(f->arcs + first, n, sizeof *f->arcs, heaviest_first);
}

/* Walks all contexts, from the roots down. */
static int walk_all(struct flow_walk *w) {
    struct fp_estimate_flow *f = w->f;
    for (uint32_t end = f->n_functions, first; end; end = first) {
        first = f->component[f->order[end - 1]];
        const uint32_t function = f->order[first];
        int status = 0;
        for (uint32_t i = first; i < end; i++) sort_arcs(f, f->order[i]);
        if (end - first > 1) {
            status = walk_cycle(w, first, end);
        } else if (!f->n_callers[function]) {
            if (fp_estimate_flow_has_rows(f, function)) status = add_context(w, function, FP_NO_ID, FP_NO_ID, 1);
        } else if (f->uncalled[function] * f->cost[function] >= w->prune && f->uncalled[function] > 0) {
            status = add_context(w, function, FP_NO_ID, FP_NO_ID, f->uncalled[function]);
        }
        for (uint32_t i = first; i < end && !status; i++) status = descend(w, f->order[i]);
        if (status) return status;
    }
    return 0;
}

/* Creates contexts with at most one caller. */
static int walk_arcs(struct flow_walk *w, uint32_t callers) {
    struct fp_estimate_flow *f = w->f;
    int status = 0;
    for (uint32_t function = 0; function < f->n_functions && !status; function++) {
        const int is_root = callers == FP_CALLERS_NONE || !f->n_callers[function];
        const double share = is_root ? 1 : f->uncalled[function];
        if (share > 0 && fp_estimate_flow_has_rows(f, function) && (is_root || share * f->cost[function] >= w->prune))
            status = add_context(w, function, FP_NO_ID, FP_NO_ID, share);
    }
    for (uint32_t i = 0; i < f->n_arcs && callers == FP_CALLERS_DIRECT && !status; i++)
        if (f->arcs[i].share > 0 && f->arcs[i].weight >= w->prune)
            status = add_context(w, f->arcs[i].callee, FP_NO_ID, i, f->arcs[i].share);
    return status;
}

void fp_estimate_flow_walk(struct fp_estimate *e, uint32_t callers) {
    struct fp_estimate_flow *f = e->flow;
    const size_t n = f->n_functions;
    struct flow_walk w = {.f = f, .prune = e->prune, .on_path = fp_scratch(n, 1)};
    w.max_contexts = (uint64_t)e->max_contexts + n; /* any function may be a root */
    w.max_steps = (uint64_t)e->max_contexts * STEPS + f->n_arcs;
    w.possible = fp_scratch(n, sizeof *w.possible);
    w.through = fp_scratch((size_t)f->n_arcs + 1, sizeof *w.through);
    w.left_out = fp_scratch((size_t)f->n_arcs + 1, sizeof *w.left_out);
    for (;;) {
        f->n_contexts = 0;
        w.steps = 0;
        memset(w.on_path, 0, n);
        memset(f->first, 0xff, n * sizeof *f->first); /* FP_NO_ID */
        if (!(callers == FP_CALLERS_ALL ? walk_all(&w) : walk_arcs(&w, callers))) break;
        w.prune = w.prune > 0 ? w.prune * 4 : 1e-9;
    }
    e->prune = w.prune;
    fp_scratch_free(w.on_path);
}
