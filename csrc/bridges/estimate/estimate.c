#include "bridges/estimate/estimate_private.h"

/* Gives freed memory back to the system if it was much: there may be a million estimates. */
static void trim(const struct fp_estimate *e) {
    enum { MANY = 1 << 15 }; /* places */
    if (e->own && e->own->n > MANY) fp_trim();
}

struct fp_estimate *fp_estimate_new(struct fp_model *model, uint32_t by, double prune) {
    struct fp_estimate *e = fp_made(sizeof *e);
    e->model = model;
    e->by = by;
    e->own_calls = FP_NO_ID;
    e->prune = prune;
    e->max_contexts = FP_ESTIMATE_CONTEXTS;
    e->most_rows = FP_ESTIMATE_ROWS;
    e->own = fp_estimate_sums_new(model, "the self cost of a position");
    e->arcs = fp_estimate_sums_new(model, "the inclusive cost of a call arc");
    fp_estimate_sums_widen(e->arcs, 1, 0); /* the last column counts calls */
    e->own->prune = prune;
    return e;
}

void fp_estimate_free(struct fp_estimate *e) {
    fp_estimate_flow_free(e->flow);
    fp_estimate_rows_free(e->rows);
    trim(e);
    fp_estimate_sums_free(e->own);
    fp_estimate_sums_free(e->arcs);
    free(e);
}

int fp_estimate_set_values(struct fp_estimate *e, uint32_t n_values) {
    if (n_values <= e->n_values) return 0;
    fp_estimate_sums_widen(e->own, n_values, 0);
    fp_estimate_sums_widen(e->arcs, n_values + 1, 1);
    e->n_values = n_values;
    return 0;
}

static int put_row(struct fp_estimate *e, const struct fp_batch *in, uint32_t i, const uint32_t *columns,
                   const struct fp_estimate_place *place, struct fp_err *err) {
    struct fp_estimate_sums *s = place->callee ? e->arcs : e->own;
    const uint32_t at = fp_estimate_sums_place(s, place);
    int64_t *sums = fp_estimate_sums_values(s, at);
    const int64_t *value = in->values + i;
    const size_t cap = in->cap;
    const uint32_t n_values = in->n_values;
    for (uint32_t k = 0; k < n_values; k++, value += cap)
        if (FP_UNLIKELY(__builtin_add_overflow(sums[columns[k]], *value, &sums[columns[k]])))
            return fp_fail_beyond(err, s->what, columns[k], "2^63 - 1");
    if (!place->callee) return 0;
    if (__builtin_add_overflow(e->calls, in->count[i], &e->calls) || e->calls > INT64_MAX)
        return fp_fail_beyond(err, "the number of all calls", FP_NO_COLUMN, "2^63 - 1");
    sums[e->n_values] += (int64_t)in->count[i]; /* part of that sum */
    return 0;
}

int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err) {
    const uint32_t n_functions = e->model->functions.n, n_strings = e->model->strings.n;
    const int by_line = e->by >= FP_BY_LINE, with_lines = lines && by_line;
    const int with_addresses = addresses && e->by == FP_BY_ADDRESS;
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= e->n_values) return fp_unknown_id(err, "the column of a value", columns[k], e->n_values);
    fp_estimate_sums_begin(e->own);
    fp_estimate_sums_begin(e->arcs);
    int status = 0;
    e->own->most = e->most_rows;
    if (e->own->n >= e->own->limit) status = fp_estimate_sums_squeeze(e->own, err);
    if (!status && e->arcs->n >= e->arcs->limit) status = fp_estimate_sums_squeeze(e->arcs, err);
    for (uint32_t i = 0; i < in->n && !status; i++) {
        const uint8_t kind = in->kind[i];
        if (kind != FP_COST && kind != FP_CALL) {
            e->jumps += kind != FP_BLOCK;
            continue;
        }
        const struct fp_estimate_place place = {with_addresses ? in->address[i] : 0, in->function[i],
                                                by_line ? in->file[i] : 0, with_lines ? in->line[i] : 0,
                                                kind == FP_CALL ? in->callee[i] : 0};
        if (place.function >= n_functions)
            return fp_unknown_id(err, "the function of a cost", place.function, n_functions);
        if (place.callee >= n_functions) return fp_unknown_id(err, "the function called", place.callee, n_functions);
        if (place.file >= n_strings) return fp_unknown_id(err, "the file of a cost", place.file, n_strings);
        if (kind == FP_CALL && !place.callee) continue; /* a call without a callee: no self row has its cost */
        status = put_row(e, in, i, columns, &place, err);
    }
    return status;
}

/* Counts the functions without callers while another of the same name has callers but no rows: the writer recorded a
 * wrong file for the callee, or none. */
static void count_uncalled(struct fp_estimate *e) {
    const struct fp_estimate_flow *f = e->flow;
    const struct fp_table *functions = &e->model->functions;
    uint8_t *is_called = fp_scratch((size_t)e->model->strings.n + 1, 1); /* by name */
    for (uint32_t i = 1; i < f->n_functions; i++)
        if (f->n_callers[i] && !fp_estimate_flow_has_rows(f, i))
            is_called[fp_table_row(functions, i)[FP_FUNCTION_NAME]] = 1;
    for (uint32_t i = 1; i < f->n_functions; i++) {
        if (f->n_callers[i] || !fp_estimate_flow_has_rows(f, i)) continue;
        const uint32_t name = fp_table_row(functions, i)[FP_FUNCTION_NAME];
        if (!name || !is_called[name]) continue;
        e->uncalled++;
        e->uncalled_cost += f->cost[i];
    }
    fp_scratch_free(is_called);
}

void fp_estimate_pause(struct fp_estimate *e) {
    fp_estimate_sums_pause(e->own);
    fp_estimate_sums_pause(e->arcs);
}

int fp_estimate_end(struct fp_estimate *e, uint32_t callers, struct fp_err *err) {
    FP_TRY(fp_estimate_sums_squeeze(e->own, err));
    FP_TRY(fp_estimate_sums_squeeze(e->arcs, err));
    fp_estimate_flow_make(e);
    count_uncalled(e);
    fp_estimate_flow_walk(e, callers);
    fp_estimate_flow_keep_contexts(e);
    fp_estimate_rows_make(e);
    trim(e);
    return FP_DONE;
}

uint32_t fp_estimate_costliest_object(const struct fp_estimate *e) {
    const struct fp_model *m = e->model;
    double *cost = calloc(m->objects.n, sizeof *cost);
    uint32_t costliest = 0;
    if (!cost) return FP_NO_ID;
    for (uint32_t i = 0; i < e->own->n; i++) {
        const uint32_t object = fp_table_row(&m->functions, e->own->places[i].function)[FP_FUNCTION_OBJECT];
        cost[object] += fp_estimate_sums_share(fp_estimate_sums_values(e->own, i), e->own->scale, e->n_values);
    }
    for (uint32_t object = 1; object < m->objects.n; object++)
        if (!costliest || cost[object] > cost[costliest]) costliest = object;
    free(cost);
    return costliest;
}

int fp_estimate_pull(struct fp_estimate *e, uint32_t thread, struct fp_batch *out) {
    return fp_estimate_rows_pull(e, thread, out);
}
