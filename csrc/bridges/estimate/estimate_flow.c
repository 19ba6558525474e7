#include <stdlib.h>

#include "bridges/estimate/estimate_private.h"

void fp_estimate_flow_free(struct fp_estimate_flow *f) {
    if (!f) return;
    free(f->arcs);
    free(f->arcs_start);
    free(f->own_start);
    free(f->n_callers);
    free(f->cost);
    free(f->uncalled);
    free(f->entered);
    free(f->order);
    free(f->component);
    free(f->contexts);
    free(f->first);
    free(f);
}

/* Whether a row is an arc to use: self-recursion does not show which caller entered the function. */
static int is_arc(const struct fp_estimate_place *place) {
    return place->function != place->callee;
}

/* The value that weighs arcs: the first that is not 0 in all of them. */
static uint32_t first_value(const struct fp_estimate_sums *arcs) {
    uint32_t primary = arcs->width - 1;
    for (uint32_t i = 0; i < arcs->n; i++)
        for (uint32_t k = 0; k < primary && is_arc(&arcs->places[i]); k++)
            if (fp_estimate_sums_values(arcs, i)[k]) primary = k;
    return primary;
}

/* Lists the arcs by caller, each with its weight in `share`. */
static void list_arcs(struct fp_estimate_flow *f, const struct fp_estimate_sums *arcs) {
    for (uint32_t i = 0, caller = 0; i <= arcs->n; i++) {
        const uint32_t next = i < arcs->n ? arcs->places[i].function : f->n_functions;
        while (caller <= next) f->arcs_start[caller++] = f->n_arcs;
        if (i == arcs->n || !is_arc(&arcs->places[i])) continue;
        const uint32_t callee = arcs->places[i].callee;
        const double weight = fp_estimate_magnitude(fp_estimate_sums_values(arcs, i)[f->primary]);
        f->arcs[f->n_arcs++] = (struct fp_estimate_arc){weight, 0, 0, next, callee, i};
        f->n_callers[callee]++;
    }
}

/* Finds the first self cost of each function. */
static void list_own(struct fp_estimate_flow *f, const struct fp_estimate_sums *own) {
    for (uint32_t i = 0, function = 0; i <= own->n; i++) {
        const uint32_t next = i < own->n ? own->places[i].function : f->n_functions;
        while (function <= next) f->own_start[function++] = i;
    }
}

/* Orders functions so that callees come before callers, except in cycles, whose functions are adjacent (Tarjan's
 * strongly connected components, without recursion). */
static int order_functions(struct fp_estimate_flow *f) {
    const uint32_t n = f->n_functions;
    uint32_t *index = calloc((size_t)n * 4 + 1, sizeof *index); /* four arrays of n */
    uint32_t *next_arc = malloc(((size_t)n + 1) * sizeof *next_arc);
    if (!index || !next_arc) {
        free(index);
        free(next_arc);
        return FP_E_NOMEM;
    }
    uint32_t *low = index + n, *open = low + n, *calling = open + n;
    uint32_t counter = 0, n_open = 0, n_calling, n_ordered = 0;
    const uint32_t done = UINT32_MAX;  /* never a minimum */
    for (uint32_t root = n; root--;) { /* backwards, so that contexts of the first functions come first */
        if (index[root]) continue;
        n_calling = 0;
        calling[n_calling++] = open[n_open++] = root;
        index[root] = low[root] = ++counter;
        next_arc[root] = f->arcs_start[root];
        while (n_calling) {
            const uint32_t at = calling[n_calling - 1];
            if (next_arc[at] < f->arcs_start[at + 1]) {
                const uint32_t to = f->arcs[next_arc[at]++].callee;
                if (!index[to]) {
                    index[to] = low[to] = ++counter;
                    next_arc[to] = f->arcs_start[to];
                    calling[n_calling++] = open[n_open++] = to;
                } else if (index[to] < low[at]) {
                    low[at] = index[to];
                }
                continue;
            }
            n_calling--;
            if (n_calling && low[at] < low[calling[n_calling - 1]]) low[calling[n_calling - 1]] = low[at];
            if (low[at] != index[at]) continue;
            const uint32_t first = n_ordered;
            uint32_t member;
            do {
                member = open[--n_open];
                f->order[n_ordered++] = member;
                f->component[member] = first;
                index[member] = done;
            } while (member != at);
        }
    }
    free(index);
    free(next_arc);
    return 0;
}

static int is_cyclic(const struct fp_estimate_flow *f, uint32_t function) {
    const uint32_t next = f->component[function] + 1;
    return f->order[f->component[function]] != function ||
           (next < f->n_functions && f->component[f->order[next]] == f->component[function]);
}

/* Computes inclusive costs of functions, and the share of each arc in its callee's cost. */
static int weigh(struct fp_estimate_flow *f, const struct fp_estimate_sums *own, const struct fp_estimate_sums *arcs,
                 double prune) {
    const uint32_t n_values = own->width, n = f->n_functions;
    double *called = calloc((size_t)n * 3 + 1, sizeof *called); /* three arrays of n */
    if (!called) return FP_E_NOMEM;
    double *spent = called + n, *by_count = spent + n;
    for (uint32_t i = 0; i < own->n; i++) {
        const uint32_t function = own->places[i].function;
        if (f->primary < n_values)
            spent[function] += fp_estimate_magnitude(fp_estimate_sums_values(own, i)[f->primary]);
        f->cost[function] += fp_estimate_sums_share(fp_estimate_sums_values(own, i), own->scale, n_values);
    }
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        const struct fp_estimate_arc *arc = &f->arcs[i];
        const int64_t *values = fp_estimate_sums_values(arcs, arc->place);
        spent[arc->caller] += arc->share;
        called[arc->callee] += arc->share;
        by_count[arc->callee] += fp_estimate_magnitude(values[n_values]);
        f->arcs[i].cost = fp_estimate_sums_share(values, own->scale, n_values);
        f->cost[arc->caller] += arc->cost;
    }
    for (uint32_t function = 0; function < n; function++) {
        if (!(called[function] > 0)) continue;
        const double beyond = spent[function] - called[function];
        /* In a cycle costs count several times, so a difference is meaningless.  One below the pruned share
         * may only come from rounding. */
        if (is_cyclic(f, function) || beyond <= called[function] * prune) continue;
        f->uncalled[function] = beyond / spent[function];
        called[function] = spent[function];
    }
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        struct fp_estimate_arc *arc = &f->arcs[i];
        const uint32_t to = arc->callee;
        if (called[to] > 0)
            arc->share /= called[to];
        else if (by_count[to] > 0) /* arcs that cost nothing are shared by calls, else evenly */
            arc->share = fp_estimate_magnitude(fp_estimate_sums_values(arcs, arc->place)[n_values]) / by_count[to];
        else
            arc->share = 1.0 / f->n_callers[to];
        arc->weight = arc->share * f->cost[to];
        if (f->component[arc->caller] != f->component[to]) f->entered[to] += arc->share;
    }
    free(called);
    return 0;
}

struct fp_estimate_flow *fp_estimate_flow_new(const struct fp_estimate *e) {
    struct fp_estimate_flow *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    const size_t n = f->n_functions = e->model->functions.n;
    f->primary = first_value(e->arcs);
    f->arcs = malloc(((size_t)e->arcs->n + 1) * sizeof *f->arcs);
    f->arcs_start = malloc((n + 1) * sizeof *f->arcs_start);
    f->own_start = malloc((n + 1) * sizeof *f->own_start);
    f->n_callers = calloc(n, sizeof *f->n_callers);
    f->cost = calloc(n, sizeof *f->cost);
    f->uncalled = calloc(n, sizeof *f->uncalled);
    f->entered = calloc(n, sizeof *f->entered);
    f->order = malloc(n * sizeof *f->order);
    f->component = malloc(n * sizeof *f->component);
    f->first = malloc(n * sizeof *f->first);
    int status = FP_E_NOMEM;
    if (f->arcs && f->arcs_start && f->own_start && f->n_callers && f->cost && f->uncalled && f->entered && f->order &&
        f->component && f->first) {
        list_arcs(f, e->arcs);
        list_own(f, e->own);
        status = order_functions(f);
        if (!status) status = weigh(f, e->own, e->arcs, e->prune);
    }
    if (!status) return f;
    fp_estimate_flow_free(f);
    return NULL;
}
