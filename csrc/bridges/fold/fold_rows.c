#include "bridges/fold/fold_private.h"

static int too_large(struct fp_err *err, const char *what, uint32_t column) {
    return fp_fail_beyond(err, what, column, "2^63 - 1");
}

#define OWN_COST "the self cost of a function"
#define ARC_COST "the inclusive cost of a call arc"

/* The next record of arcs or nodes; like fp_merge_next, but an error names the sum. */
static int sum_failed(int status, const char *what, uint32_t column, struct fp_err *err) {
    if (status != FP_E_OVERFLOW) return status;
    if (column == FP_FOLD_TIME) return fp_fail_beyond(err, FP_FOLD_TIME_OF_CALLS, column, "2^64 - 1 ticks");
    return fp_fail_beyond(err, what, column, "2^64 - 1");
}

static int next_node(struct fp_fold_out *o, struct fp_err *err) {
    static const uint8_t column[] = {FP_FOLD_TIME, FP_FOLD_CALLS};
    const int status = fp_merge_next(o->nodes, err);
    return status < 0 ? sum_failed(status, OWN_COST, column[err->got], err) : status;
}

static int next_arc(struct fp_fold_out *o, struct fp_err *err) {
    static const uint8_t column[] = {FP_FOLD_CALLS, FP_FOLD_TIME, FP_FOLD_CALLS};
    const int status = fp_merge_next(o->arcs, err);
    return status < 0 ? sum_failed(status, ARC_COST, column[err->got], err) : status;
}

int fp_fold_totals(struct fp_fold_out *o, struct fp_err *err) {
    for (;;) {
        if (!o->node_ready) {
            int status = next_node(o, err);
            if (status == FP_MORE || status < 0) return status;
            if (status == FP_DONE) {
                if (!o->begun) return FP_DONE;
                o->begun = 0;
                return FP_FULL;
            }
            o->node_ready = 1;
        }
        const uint64_t *node = o->nodes->head;
        if (o->begun && node[0] != o->group) {
            o->begun = 0;
            return FP_FULL;
        }
        if (!o->begun) {
            o->begun = 1;
            o->group = (uint32_t)node[0];
            o->total[0] = o->total[1] = 0;
        }
        int64_t value;
        if (fp_fold_in_units(o->ticks_per_second, node[2], &value)) return too_large(err, OWN_COST, FP_FOLD_TIME);
        if (node[3] > INT64_MAX) return too_large(err, OWN_COST, FP_FOLD_CALLS);
        o->total[FP_FOLD_TIME] += (uint64_t)value;
        o->total[FP_FOLD_CALLS] += node[3];
        for (uint32_t k = 0; k < 2; k++)
            if (o->total[k] > INT64_MAX) return too_large(err, "the total", k);
        o->node_ready = 0;
    }
}

uint32_t fp_fold_in_graph(const struct fp_fold_out *o, uint32_t function) {
    if (function < o->n_named && o->named[function]) return o->named[function];
    const uint32_t *words = fp_table_row(&o->model->functions, function);
    uint32_t named = function;
    if (!words[FP_FUNCTION_FILE])
        named = fp_model_function(o->model, words[FP_FUNCTION_OBJECT], o->unknown_file, words[FP_FUNCTION_NAME],
                                  words[FP_FUNCTION_SYSTEM_NAME], words[FP_FUNCTION_LINE]);
    if (function < o->n_named) o->named[function] = named;
    return named;
}

static void put_position(const struct fp_fold_out *o, struct fp_batch *out, uint32_t row, uint32_t function) {
    function = fp_fold_in_graph(o, function);
    const uint32_t *words = fp_table_row(&o->model->functions, function);
    out->function[row] = function;
    out->file[row] = words[FP_FUNCTION_FILE];
    out->line[row] = words[FP_FUNCTION_LINE];
}

int fp_fold_graph(struct fp_fold_out *o, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        /* The calls that the current function makes. */
        while (!o->arcs_done) {
            if (!o->arc_ready) {
                int status = next_arc(o, err);
                if (status == FP_MORE || status < 0) return status;
                o->arc_ready = status == FP_FULL;
                o->arcs_done = status == FP_DONE;
                continue;
            }
            const uint64_t *arc = o->arcs->head;
            const uint32_t caller = (uint32_t)(arc[1] >> 32), callee = (uint32_t)arc[1];
            if (arc[0] != o->group || caller != o->function) break;
            if (out->n == out->cap) return FP_FULL;
            const uint32_t row = out->n;
            const uint32_t called = fp_fold_in_graph(o, callee);
            put_position(o, out, row, caller);
            out->kind[row] = FP_CALL;
            out->callee[row] = called;
            out->target_line[row] = fp_table_row(&o->model->functions, callee)[FP_FUNCTION_LINE];
            out->count[row] = arc[2];
            if (fp_fold_in_units(o->ticks_per_second, arc[3], &out->values[row]))
                return too_large(err, ARC_COST, FP_FOLD_TIME);
            if (arc[4] > INT64_MAX) return too_large(err, ARC_COST, FP_FOLD_CALLS);
            out->values[out->cap + row] = (int64_t)arc[4];
            out->n++;
            o->arc_ready = 0;
        }
        if (!o->node_ready) {
            int status = next_node(o, err);
            if (status <= FP_MORE) return status;
            o->node_ready = 1;
        }
        const uint64_t *node = o->nodes->head;
        if (!o->begun) o->group = (uint32_t)node[0];
        o->begun = 1;
        if (node[0] != o->group) {
            o->begun = 0;
            o->function = 0;
            return FP_DONE;
        }
        if (out->n == out->cap) return FP_FULL;
        const uint32_t row = out->n;
        o->function = (uint32_t)node[1];
        put_position(o, out, row, o->function);
        out->kind[row] = FP_COST;
        if (fp_fold_in_units(o->ticks_per_second, node[2], &out->values[row]))
            return too_large(err, OWN_COST, FP_FOLD_TIME);
        if (node[3] > INT64_MAX) return too_large(err, OWN_COST, FP_FOLD_CALLS);
        out->values[out->cap + row] = (int64_t)node[3];
        out->n++;
        o->node_ready = 0;
    }
}
