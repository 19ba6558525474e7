#include "bridges/estimate/estimate_private.h"

static void free_graph(struct fp_estimate_flow *f) {
    FP_FREE(f->arcs, f->arcs_start, f->n_callers, f->cost, f->uncalled, f->entered, f->order, f->component);
}

void fp_estimate_flow_free(struct fp_estimate_flow *f) {
    if (!f) return;
    free_graph(f);
    FP_FREE(f->own_start, f->contexts, f->first, f->arc_places, f->arc_is_shown, f);
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
static void order_functions(struct fp_estimate_flow *f) {
    const uint32_t n = f->n_functions;
    uint32_t *index = fp_scratch((size_t)n * 4 + 1, sizeof *index); /* four arrays of n */
    uint32_t *next_arc = fp_scratch((size_t)n + 1, sizeof *next_arc);
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
    fp_scratch_free(index);
}

/* Sums by function, in the value that divides; `beyond` by cycle, at the place in `order` of its first function. */
struct flow_sums {
    double *called;  /* cost of the arcs into it, later with its calls from outside of the profile */
    double *spent;   /* its self cost and the cost of its calls */
    double *beyond;  /* cost of a function or cycle that no arc into it has */
    double *counted; /* calls in the arcs into it */
    double *outside; /* recorded calls of it that no arc has */
    double *own;     /* its recorded calls */
};

static void add_up(struct fp_estimate_flow *f, const struct fp_estimate_sums *own, const struct fp_estimate_sums *arcs,
                   uint32_t own_calls, const struct flow_sums *s) {
    const uint32_t n_values = own->width;
    for (uint32_t i = 0; i < own->n; i++) {
        const uint32_t function = own->places[i].function;
        const int64_t *values = fp_estimate_sums_values(own, i);
        const double cost = f->primary < n_values ? fp_estimate_magnitude(values[f->primary]) : 0;
        s->spent[function] += cost;
        s->beyond[f->component[function]] += cost;
        if (own_calls < n_values) s->own[function] += (double)values[own_calls];
        f->cost[function] += fp_estimate_sums_share(values, own->scale, n_values);
    }
    for (uint32_t i = 0; i < arcs->n; i++) /* those of a function to itself, too */
        s->outside[arcs->places[i].callee] -= (double)fp_estimate_sums_values(arcs, i)[n_values];
    for (uint32_t function = 0; function < f->n_functions; function++) s->outside[function] += s->own[function];
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        struct fp_estimate_arc *arc = &f->arcs[i];
        const int64_t *values = fp_estimate_sums_values(arcs, arc->place);
        s->spent[arc->caller] += arc->share;
        s->called[arc->callee] += arc->share;
        if (f->component[arc->caller] != f->component[arc->callee]) {
            s->beyond[f->component[arc->caller]] += arc->share;
            s->beyond[f->component[arc->callee]] -= arc->share;
        }
        s->counted[arc->callee] += fp_estimate_magnitude(values[n_values]);
        arc->cost = fp_estimate_sums_share(values, own->scale, n_values);
        f->cost[arc->caller] += arc->cost;
    }
}

/* The weight of a cycle's member as its root, at most the cost of all roots: what it costs more than the arcs into it.
 * By recorded calls only if it has some from outside of the profile, and at least as much as these cost on average. */
static double weight_of(const struct flow_sums *s, uint32_t function, double most, int by_calls) {
    double weight = s->spent[function] - s->called[function];
    if (by_calls) {
        if (!(s->own[function] > 0 && s->outside[function] > 0)) return 0;
        weight = fmax(weight, s->spent[function] * s->outside[function] / s->own[function]);
    }
    return fmin(fmax(weight, 0), most);
}

static double weigh_roots(const struct fp_estimate_flow *f, const struct flow_sums *s, uint32_t first, uint32_t end,
                          int by_calls) {
    double sum = 0;
    for (uint32_t i = first; i < end; i++) sum += weight_of(s, f->order[i], s->beyond[first], by_calls);
    return sum;
}

static void add_uncalled(struct fp_estimate_flow *f, const struct flow_sums *s, uint32_t function, double cost) {
    s->called[function] += cost;
    f->uncalled[function] = cost / s->called[function];
}

/* Finds the cost that no arc has: of a function, or of a cycle, order[first..end), divided among its members.  In a
 * cycle arcs count costs several times, so they only compare its members. */
static void find_roots(struct fp_estimate_flow *f, const struct flow_sums *s, uint32_t first, uint32_t end,
                       double prune) {
    const double beyond = s->beyond[first];
    double called = 0;
    for (uint32_t i = first; i < end; i++) called += s->called[f->order[i]];
    /* a difference below the pruned share may only come from rounding; without callers it is a root anyway */
    if (!(called > 0) || beyond <= called * prune) return;
    if (end - first == 1) {
        add_uncalled(f, s, f->order[first], beyond);
        return;
    }
    int by_calls = 0;
    for (uint32_t i = first; i < end; i++) by_calls |= s->own[f->order[i]] > 0;
    const double sum = weigh_roots(f, s, first, end, by_calls);
    for (uint32_t i = first; i < end; i++) {
        const uint32_t function = f->order[i];
        const double weight = weight_of(s, function, beyond, by_calls);
        if (weight > 0) add_uncalled(f, s, function, beyond * (weight / sum));
        f->entered[function] = f->uncalled[function];
    }
}

/* Computes inclusive costs of functions, and the share of each arc in its callee's cost. */
static void weigh(struct fp_estimate_flow *f, const struct fp_estimate *e) {
    const uint32_t n = f->n_functions, n_values = e->own->width;
    double *all = fp_scratch((size_t)n * 6 + 1, sizeof *all); /* six arrays of n */
    const struct flow_sums s = {
        all, all + n, all + 2 * (size_t)n, all + 3 * (size_t)n, all + 4 * (size_t)n, all + 5 * (size_t)n};
    add_up(f, e->own, e->arcs, e->own_calls, &s);
    for (uint32_t end = n, first; end; end = first) {
        first = f->component[f->order[end - 1]];
        find_roots(f, &s, first, end, e->prune);
    }
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        struct fp_estimate_arc *arc = &f->arcs[i];
        const uint32_t to = arc->callee;
        if (s.called[to] > 0)
            arc->share /= s.called[to];
        else if (s.counted[to] > 0) /* arcs that cost nothing are shared by calls, else evenly */
            arc->share = fp_estimate_magnitude(fp_estimate_sums_values(e->arcs, arc->place)[n_values]) / s.counted[to];
        else
            arc->share = 1.0 / f->n_callers[to];
        arc->weight = arc->share * f->cost[to];
        if (f->component[arc->caller] != f->component[to]) f->entered[to] += arc->share;
    }
    fp_scratch_free(all);
}

void fp_estimate_flow_make(struct fp_estimate *e) {
    struct fp_estimate_flow *f = e->flow = fp_have(calloc(1, sizeof *f));
    const size_t n = f->n_functions = e->model->functions.n;
    f->primary = first_value(e->arcs);
    f->arcs = fp_have(malloc(((size_t)e->arcs->n + 1) * sizeof *f->arcs));
    f->arcs_start = fp_have(malloc((n + 1) * sizeof *f->arcs_start));
    f->own_start = fp_have(malloc((n + 1) * sizeof *f->own_start));
    f->n_callers = fp_have(calloc(n, sizeof *f->n_callers));
    f->cost = fp_have(calloc(n, sizeof *f->cost));
    f->uncalled = fp_have(calloc(n, sizeof *f->uncalled));
    f->entered = fp_have(calloc(n, sizeof *f->entered));
    f->order = fp_have(malloc(n * sizeof *f->order));
    f->component = fp_have(malloc(n * sizeof *f->component));
    f->first = fp_have(malloc(n * sizeof *f->first));
    list_arcs(f, e->arcs);
    list_own(f, e->own);
    order_functions(f);
    weigh(f, e);
    fp_estimate_sums_keep_places(e->arcs); /* rows show their frames */
}

void fp_estimate_flow_keep_contexts(struct fp_estimate *e) {
    struct fp_estimate_flow *f = e->flow;
    uint32_t *number = fp_scratch((size_t)f->n_arcs + 1, sizeof *number); /* by arc, plus 1 */
    for (uint32_t i = 0; i < f->n_contexts; i++) {
        const uint32_t arc = f->contexts[i].arc;
        if (arc == FP_NO_ID) continue;
        if (!number[arc]) number[arc] = ++f->n_arc_places;
        f->contexts[i].arc = number[arc] - 1;
    }
    f->arc_places = fp_have(malloc(((size_t)f->n_arc_places + 1) * sizeof *f->arc_places));
    f->arc_is_shown = fp_have(calloc((size_t)f->n_arc_places + 1, 1));
    for (uint32_t i = 0; i < f->n_arcs; i++)
        if (number[i]) f->arc_places[number[i] - 1] = e->arcs->places[f->arcs[i].place];
    fp_scratch_free(number);
    free_graph(f);
    f->arcs = NULL;
    f->arcs_start = f->n_callers = f->order = f->component = NULL;
    f->cost = f->uncalled = f->entered = NULL;
    e->unshown = e->arcs->n;
    fp_estimate_sums_free(e->arcs);
    e->arcs = NULL;
}
