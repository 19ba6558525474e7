#include <stdlib.h>

#include "bridges/estimate_private.h"

struct fp_estimate *fp_estimate_new(struct fp_model *model) {
    struct fp_estimate *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->model = model;
    e->work_left = FP_ESTIMATE_WORK;
    if (fp_table_init(&e->positions, FP_POSITION_WIDTH) || fp_table_init(&e->rows, 2)) {
        fp_estimate_free(e);
        return NULL;
    }
    return e;
}

void fp_estimate_free(struct fp_estimate *e) {
    if (!e) return;
    fp_table_clear(&e->positions);
    fp_table_clear(&e->rows);
    free(e->sums);
    free(e->counts);
    free(e->total);
    free(e->callers);
    free(e->callers_start);
    free(e->selfs);
    free(e->selfs_start);
    free(e->called);
    free(e->uncalled);
    free(e->flags);
    free(e->frames);
    free(e->contexts);
    free(e->pending);
    free(e->path);
    free(e->parts);
    free(e);
}

static int rows_room(struct fp_estimate *e, uint64_t need) {
    const size_t width = e->n_values ? e->n_values : 1;
    uint32_t cap = e->cap_rows, same = e->cap_rows;
    if (fp_array_zeroed(&e->sums, &cap, need, width * sizeof *e->sums) ||
        fp_array_zeroed(&e->counts, &same, cap, sizeof *e->counts))
        return FP_E_NOMEM;
    e->cap_rows = cap;
    return 0;
}

int fp_estimate_set_values(struct fp_estimate *e, uint32_t n_values) {
    if (n_values <= e->n_values) return 0;
    const uint32_t cap = e->cap_rows ? e->cap_rows : 64;
    if (cap > SIZE_MAX / sizeof(int64_t) / n_values) return FP_E_NOMEM;
    int64_t *sums = calloc((size_t)cap * n_values, sizeof *sums);
    if (!sums) return FP_E_NOMEM;
    if (e->n_values)
        for (uint32_t i = 0; i < e->cap_rows; i++)
            memcpy(sums + (size_t)i * n_values, e->sums + (size_t)i * e->n_values, e->n_values * sizeof *sums);
    if (!e->counts && !(e->counts = calloc(cap, sizeof *e->counts))) {
        free(sums);
        return FP_E_NOMEM;
    }
    free(e->sums);
    e->sums = sums;
    e->cap_rows = cap;
    e->n_values = n_values;
    return 0;
}

int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err) {
    const uint32_t n_functions = e->model->functions.n, n_strings = e->model->strings.n;
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= e->n_values) return fp_unknown_id(err, "the column of a value", columns[k], e->n_values);
    for (uint32_t i = 0; i < in->n; i++) {
        const uint8_t kind = in->kind[i];
        if (kind != FP_COST && kind != FP_CALL) {
            e->jumps += kind != FP_BLOCK;
            continue;
        }
        const uint32_t function = in->function[i], callee = kind == FP_CALL ? in->callee[i] : 0;
        if (function >= n_functions) return fp_unknown_id(err, "the function of a cost", function, n_functions);
        if (callee >= n_functions) return fp_unknown_id(err, "the function called", callee, n_functions);
        if (in->file[i] >= n_strings) return fp_unknown_id(err, "the file of a cost", in->file[i], n_strings);
        if (kind == FP_CALL && !callee) continue; /* a call of nothing: its cost has no self row here */
        uint64_t address = addresses ? in->address[i] : 0;
        uint32_t position = fp_table_intern(&e->positions, (uint32_t[]){function, in->file[i], lines ? in->line[i] : 0,
                                                                        (uint32_t)address, (uint32_t)(address >> 32)});
        if (position == FP_NO_ID) return fp_estimate_no_memory(err);
        uint32_t row = fp_table_intern(&e->rows, (uint32_t[]){position, callee});
        if (row == FP_NO_ID || rows_room(e, (uint64_t)row + 1)) return fp_estimate_no_memory(err);
        int64_t *sum = e->sums + (size_t)row * e->n_values;
        for (uint32_t k = 0; k < in->n_values; k++)
            if (__builtin_add_overflow(sum[columns[k]], in->values[(size_t)k * in->cap + i], &sum[columns[k]]))
                return fp_fail_beyond(err, callee ? "the inclusive cost of a call arc" : "the own cost of a position",
                                      columns[k], "2^63 - 1");
        if (callee) {
            if (__builtin_add_overflow(e->calls, in->count[i], &e->calls))
                return fp_fail_beyond(err, "the number of all calls", FP_NO_COLUMN, "2^64 - 1");
            e->counts[row] += in->count[i]; /* part of that number */
        }
    }
    return FP_DONE;
}

/* ---- who calls whom ----------------------------------------------------- */

static int heaviest_first(const void *a, const void *b) {
    const struct fp_caller *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* A call of a function by itself says nothing about who began it. */
static int is_arc(const struct fp_estimate *e, const uint32_t *row) {
    return row[1] && fp_estimate_function(e, row[0]) != row[1];
}

/* Starts of runs from lengths that were counted at [i + 2]; see `fill`. */
static void accumulate(uint32_t *start, uint32_t n) {
    for (uint32_t i = 1; i <= n; i++) start[i + 1] += start[i];
}

/* Orders self costs by function and callers by callee, and finds the value
 * that weighs the arcs: the first that any has. */
static int order_rows(struct fp_estimate *e) {
    const uint32_t n = e->n_functions;
    uint32_t n_selfs = 0, n_callers = 0;
    e->primary = e->n_values;
    for (uint32_t i = 1; i < e->rows.n; i++) {
        const uint32_t *row = fp_table_row(&e->rows, i);
        if (!row[1]) {
            n_selfs++;
            e->selfs_start[fp_estimate_function(e, row[0]) + 2]++;
            for (uint32_t k = 0; k < e->n_values; k++) e->total[k] += fp_estimate_magnitude(fp_estimate_sums(e, i)[k]);
        } else if (is_arc(e, row)) {
            n_callers++;
            e->callers_start[row[1] + 2]++;
            for (uint32_t k = 0; k < e->primary; k++)
                if (fp_estimate_sums(e, i)[k]) e->primary = k;
        }
    }
    accumulate(e->selfs_start, n);
    accumulate(e->callers_start, n);
    e->selfs = malloc(((size_t)n_selfs + 1) * sizeof *e->selfs);
    e->callers = malloc(((size_t)n_callers + 1) * sizeof *e->callers);
    if (!e->selfs || !e->callers) return FP_E_NOMEM;
    for (uint32_t i = 1; i < e->rows.n; i++) {
        const uint32_t *row = fp_table_row(&e->rows, i);
        const uint32_t function = fp_estimate_function(e, row[0]);
        double weight = row[1] && e->primary == e->n_values ? (double)e->counts[i]
                        : e->primary < e->n_values          ? fp_estimate_magnitude(fp_estimate_sums(e, i)[e->primary])
                                                            : 0;
        if (!row[1]) {
            e->selfs[e->selfs_start[function + 1]++] = i;
            e->uncalled[function] += weight;
        } else if (is_arc(e, row)) {
            e->callers[e->callers_start[row[1] + 1]++] = (struct fp_caller){weight, row[0], function};
            e->uncalled[function] += weight;
        }
    }
    return 0;
}

/* Marks the functions that are in a cycle of several (Tarjan's strongly
 * connected components, along the callers, without recursion). */
static int find_cycles(struct fp_estimate *e) {
    const uint32_t n = e->n_functions;
    uint32_t *index = calloc((size_t)n * 4, sizeof *index); /* four arrays of n */
    uint32_t *next_arc = malloc((size_t)n * sizeof *next_arc);
    if (!index || !next_arc) {
        free(index);
        free(next_arc);
        return FP_E_NOMEM;
    }
    uint32_t *low = index + n, *component = low + n, *calling = component + n;
    uint32_t counter = 0, n_component = 0, n_calling;
    /* done: a number that no function still looked at has, and no minimum takes */
    const uint32_t done = UINT32_MAX;
    for (uint32_t root = 0; root < n; root++) {
        if (index[root]) continue;
        n_calling = 0;
        calling[n_calling++] = root;
        component[n_component++] = root;
        index[root] = low[root] = ++counter;
        next_arc[root] = e->callers_start[root];
        while (n_calling) {
            uint32_t f = calling[n_calling - 1];
            if (next_arc[f] < e->callers_start[f + 1]) {
                uint32_t g = e->callers[next_arc[f]++].function;
                if (!index[g]) {
                    index[g] = low[g] = ++counter;
                    next_arc[g] = e->callers_start[g];
                    component[n_component++] = g;
                    calling[n_calling++] = g;
                } else if (index[g] < low[f]) {
                    low[f] = index[g];
                }
                continue;
            }
            n_calling--;
            if (n_calling && low[f] < low[calling[n_calling - 1]]) low[calling[n_calling - 1]] = low[f];
            if (low[f] != index[f]) continue;
            const uint8_t flag = component[n_component - 1] == f ? 0 : FP_ESTIMATE_IN_CYCLE;
            uint32_t member;
            do {
                member = component[--n_component];
                e->flags[member] = flag;
                index[member] = done;
            } while (member != f);
        }
    }
    free(index);
    free(next_arc);
    return 0;
}

/* A function whose arcs all weigh nothing is shared by calls, else evenly. */
static void weigh_callers(struct fp_estimate *e) {
    for (uint32_t f = 0; f < e->n_functions; f++) {
        struct fp_caller *callers = e->callers + e->callers_start[f];
        const uint32_t n = e->callers_start[f + 1] - e->callers_start[f];
        double sum = 0;
        for (uint32_t i = 0; i < n; i++) sum += callers[i].weight;
        double beyond = e->uncalled[f] - sum;
        /* In a cycle the difference means nothing, because costs count several times there.  And a difference
         * below the share from which on callers are followed may only come from rounding. */
        e->uncalled[f] = sum > 0 && !(e->flags[f] & FP_ESTIMATE_IN_CYCLE) && beyond > sum * e->prune ? beyond : 0;
        if (sum > 0) {
            e->called[f] = sum;
            qsort(callers, n, sizeof *callers, heaviest_first);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t row = fp_table_find(&e->rows, (uint32_t[]){callers[i].position, f});
            callers[i].weight = (double)e->counts[row];
            sum += callers[i].weight;
        }
        if (!(sum > 0)) {
            for (uint32_t i = 0; i < n; i++) callers[i].weight = 1;
            sum = n;
        }
        e->called[f] = sum;
        qsort(callers, n, sizeof *callers, heaviest_first);
    }
}

int fp_estimate_end(struct fp_estimate *e, double prune, uint32_t max_depth, int cut_is_pruned, struct fp_err *err) {
    struct fp_model *m = e->model;
    const uint32_t n = e->n_functions = m->functions.n;
    e->prune = prune;
    e->max_depth = max_depth;
    e->cut_is_pruned = cut_is_pruned;
    e->total = calloc((size_t)e->n_values + 1, sizeof *e->total);
    e->callers_start = calloc((size_t)n + 2, sizeof *e->callers_start);
    e->selfs_start = calloc((size_t)n + 2, sizeof *e->selfs_start);
    e->called = calloc(n, sizeof *e->called);
    e->uncalled = calloc(n, sizeof *e->uncalled);
    e->flags = calloc(n, sizeof *e->flags);
    e->frames = calloc(e->positions.n, sizeof *e->frames);
    if (!e->total || !e->callers_start || !e->selfs_start || !e->called || !e->uncalled || !e->flags || !e->frames ||
        order_rows(e) || find_cycles(e))
        return fp_estimate_no_memory(err);
    weigh_callers(e);

    uint32_t name = fp_strings_intern(&m->strings, "[pruned]", 8);
    e->unknown = fp_strings_intern(&m->strings, "???", 3);
    if (e->unknown == FP_NO_ID) return fp_estimate_no_memory(err);
    uint32_t function = name == FP_NO_ID ? FP_NO_ID : fp_model_function(m, 0, 0, name, 0, 0);
    uint32_t line = function == FP_NO_ID ? FP_NO_ID : fp_model_line(m, function, 0, 0, 0);
    e->pruned_frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(m, 0, 0, 0, line);
    if (e->pruned_frame == FP_NO_ID) return fp_estimate_no_memory(err);
    e->row = 0;
    return FP_DONE;
}
