#include "bridges/estimate.h"

#include <math.h>
#include <stdlib.h>

enum { POSITION_FUNCTION, POSITION_FILE, POSITION_LINE, POSITION_ADDRESS, POSITION_WIDTH = POSITION_ADDRESS + 2 };
enum { IN_CYCLE = 1, ON_PATH = 2 };
#if defined(FP_DEBUG)
enum { MAX_STEPS = 1 << 12, MAX_WORK = 1 << 18 }; /* so that fuzzers meet them, and within their time */
#else
enum {
    MAX_STEPS = 1 << 20, /* callers looked into for one function; the rest is pruned */
    MAX_WORK = 1 << 29,  /* in all, likewise; half a minute, a gigabyte */
};
#endif
enum { MAX_CELLS = 1 << 18 }; /* positions times contexts of one function, likewise */
/* Of MAX_WORK: a frame that is looked up, and a stack that is new; a caller that is passed by is 1. */
enum { FRAME_WORK = 2, NEW_WORK = 16 };

/* One who calls: a position, and how much of the callee's cost it stands for. */
struct fp_caller {
    double weight;
    uint32_t position;
    uint32_t function;
};

/* How a function came to be called: the stack of its callers, and its share. */
struct fp_context {
    double share;
    uint32_t stack;
    int32_t pruned;
};

/* A caller that is still to be looked into. */
struct fp_pending {
    double share;
    uint32_t position;
    uint32_t depth;
};

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the callers of the stacks");
}

struct fp_estimate *fp_estimate_new(struct fp_model *model) {
    struct fp_estimate *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->model = model;
    e->work_left = MAX_WORK;
    if (fp_table_init(&e->positions, POSITION_WIDTH) || fp_table_init(&e->rows, 2)) {
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

static int rows_room(struct fp_estimate *e, uint32_t need) {
    if (need <= e->cap_rows) return 0;
    uint64_t cap = (uint64_t)need + need / 2 + 64, width = e->n_values ? e->n_values : 1;
    if (cap > UINT32_MAX || cap > SIZE_MAX / sizeof(int64_t) / width) return FP_E_NOMEM;
    int64_t *sums = realloc(e->sums, (size_t)(cap * width) * sizeof *sums);
    if (sums) e->sums = sums;
    uint64_t *counts = realloc(e->counts, (size_t)cap * sizeof *counts);
    if (counts) e->counts = counts;
    if (!sums || !counts) return FP_E_NOMEM;
    memset(sums + e->cap_rows * width, 0, (size_t)((cap - e->cap_rows) * width) * sizeof *sums);
    memset(counts + e->cap_rows, 0, (size_t)(cap - e->cap_rows) * sizeof *counts);
    e->cap_rows = (uint32_t)cap;
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

static int unknown_id(struct fp_err *err, const char *what, uint32_t id, uint32_t n) {
    return fp_fail_got(err, FP_E_MALFORMED, 0, what, FP_GOT_UNSIGNED, id, "less than %", n);
}

int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err) {
    const uint32_t n_functions = e->model->functions.n, n_strings = e->model->strings.n;
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= e->n_values) return unknown_id(err, "the column of a value", columns[k], e->n_values);
    for (uint32_t i = 0; i < in->n; i++) {
        const uint8_t kind = in->kind[i];
        if (kind != FP_COST && kind != FP_CALL) {
            e->jumps += kind != FP_BLOCK;
            continue;
        }
        const uint32_t function = in->function[i], callee = kind == FP_CALL ? in->callee[i] : 0;
        if (function >= n_functions) return unknown_id(err, "the function of a cost", function, n_functions);
        if (callee >= n_functions) return unknown_id(err, "the function called", callee, n_functions);
        if (in->file[i] >= n_strings) return unknown_id(err, "the file of a cost", in->file[i], n_strings);
        if (kind == FP_CALL && !callee) continue; /* a call of nothing: its cost has no self row here */
        uint64_t address = addresses ? in->address[i] : 0;
        uint32_t position = fp_table_intern(&e->positions, (uint32_t[]){function, in->file[i], lines ? in->line[i] : 0,
                                                                        (uint32_t)address, (uint32_t)(address >> 32)});
        if (position == FP_NO_ID) return no_memory(err);
        uint32_t row = fp_table_intern(&e->rows, (uint32_t[]){position, callee});
        if (row == FP_NO_ID || (row >= e->cap_rows && rows_room(e, row + 1))) return no_memory(err);
        int64_t *sum = e->sums + (size_t)row * e->n_values;
        for (uint32_t k = 0; k < in->n_values; k++)
            if (__builtin_add_overflow(sum[columns[k]], in->values[(size_t)k * in->cap + i], &sum[columns[k]]))
                return fp_fail(err, FP_E_OVERFLOW, 0, "a cost beyond 2^63-1");
        if (callee) {
            if (__builtin_add_overflow(e->counts[row], in->count[i], &e->counts[row]) ||
                __builtin_add_overflow(e->calls, in->count[i], &e->calls))
                return fp_fail(err, FP_E_OVERFLOW, 0, "a number of calls beyond 2^64-1");
        }
    }
    return FP_DONE;
}

/* ---- who calls whom ----------------------------------------------------- */

static double magnitude(int64_t v) {
    return fabs((double)v);
}

static uint32_t function_of(const struct fp_estimate *e, uint32_t position) {
    return fp_table_row(&e->positions, position)[POSITION_FUNCTION];
}

static const int64_t *sums_of(const struct fp_estimate *e, uint32_t row) {
    return e->sums + (size_t)row * e->n_values;
}

static int heaviest_first(const void *a, const void *b) {
    const struct fp_caller *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* A call of a function by itself says nothing about who began it. */
static int is_arc(const struct fp_estimate *e, const uint32_t *row) {
    return row[1] && function_of(e, row[0]) != row[1];
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
            e->selfs_start[function_of(e, row[0]) + 2]++;
            for (uint32_t k = 0; k < e->n_values; k++) e->total[k] += magnitude(sums_of(e, i)[k]);
        } else if (is_arc(e, row)) {
            n_callers++;
            e->callers_start[row[1] + 2]++;
            for (uint32_t k = 0; k < e->primary; k++)
                if (sums_of(e, i)[k]) e->primary = k;
        }
    }
    accumulate(e->selfs_start, n);
    accumulate(e->callers_start, n);
    e->selfs = malloc(((size_t)n_selfs + 1) * sizeof *e->selfs);
    e->callers = malloc(((size_t)n_callers + 1) * sizeof *e->callers);
    if (!e->selfs || !e->callers) return FP_E_NOMEM;
    for (uint32_t i = 1; i < e->rows.n; i++) {
        const uint32_t *row = fp_table_row(&e->rows, i);
        const uint32_t function = function_of(e, row[0]);
        double weight = row[1] && e->primary == e->n_values ? (double)e->counts[i]
                        : e->primary < e->n_values          ? magnitude(sums_of(e, i)[e->primary])
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
            const uint8_t flag = component[n_component - 1] == f ? 0 : IN_CYCLE;
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
        /* within a cycle costs count several times, and less than is to be
         * followed is the noise of rounding */
        e->uncalled[f] = sum > 0 && !(e->flags[f] & IN_CYCLE) && beyond > sum * e->prune ? beyond : 0;
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
        return no_memory(err);
    weigh_callers(e);

    uint32_t name = fp_strings_intern(&m->strings, "[pruned]", 8);
    e->unknown = fp_strings_intern(&m->strings, "???", 3);
    if (e->unknown == FP_NO_ID) return no_memory(err);
    uint32_t function = name == FP_NO_ID ? FP_NO_ID : fp_model_function(m, 0, 0, name, 0, 0);
    uint32_t line = function == FP_NO_ID ? FP_NO_ID : fp_model_line(m, function, 0, 0, 0);
    e->pruned_frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(m, 0, 0, 0, line);
    if (e->pruned_frame == FP_NO_ID) return no_memory(err);
    e->row = 0;
    return FP_DONE;
}

/* ---- contexts of one function ------------------------------------------- */

/* The frame of a position; FP_NO_ID when memory ran out.  Code of another file
 * than its function's was inlined: a line of that file within the function. */
static uint32_t frame_of(struct fp_estimate *e, uint32_t position) {
    struct fp_model *m = e->model;
    if (e->frames[position]) return e->frames[position];
    uint32_t p[POSITION_WIDTH], f[FP_FUNCTION_WIDTH], line, mapping = 0;
    memcpy(p, fp_table_row(&e->positions, position), sizeof p);
    uint32_t function = p[POSITION_FUNCTION];
    memcpy(f, fp_table_row(&m->functions, function), sizeof f);
    if (!function) {
        if ((f[FP_FUNCTION_NAME] = fp_strings_intern(&m->strings, "[unknown]", 9)) == FP_NO_ID) return FP_NO_ID;
        f[FP_FUNCTION_FILE] = p[POSITION_FILE];
    }
    /* an unknown file or object has a name in graphs, but none in stacks */
    if (p[POSITION_FILE] == e->unknown) p[POSITION_FILE] = 0;
    if (f[FP_FUNCTION_FILE] == e->unknown) f[FP_FUNCTION_FILE] = 0;
    if (fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME] == e->unknown) f[FP_FUNCTION_OBJECT] = 0;
    if ((function = fp_model_function_row(m, f)) == FP_NO_ID) return FP_NO_ID;
    if (p[POSITION_FILE] == f[FP_FUNCTION_FILE]) {
        line = fp_model_line(m, function, p[POSITION_LINE], 0, 0);
    } else {
        uint32_t inlined = fp_model_function(m, f[FP_FUNCTION_OBJECT], p[POSITION_FILE], f[FP_FUNCTION_NAME],
                                             f[FP_FUNCTION_SYSTEM_NAME], 0);
        line = fp_model_line(m, function, f[FP_FUNCTION_LINE], 0, 0);
        if (inlined == FP_NO_ID || line == FP_NO_ID) return FP_NO_ID;
        line = fp_model_line(m, inlined, p[POSITION_LINE], 0, line);
    }
    if (line == FP_NO_ID) return FP_NO_ID;
    if (f[FP_FUNCTION_OBJECT]) {
        mapping = fp_model_mapping(m, f[FP_FUNCTION_OBJECT], 0, 0, 0,
                                   FP_MAPPING_HAS_FUNCTIONS | FP_MAPPING_HAS_FILENAMES | FP_MAPPING_HAS_LINES);
        if (mapping == FP_NO_ID) return FP_NO_ID;
    }
    return e->frames[position] = fp_model_frame(m, mapping, fp_words_u64(p + POSITION_ADDRESS), 0, line);
}

/* Ends a stack at path[depth]; path[1] is the direct caller. */
static int add_context(struct fp_estimate *e, uint32_t depth, double share, int pruned) {
    if (e->n_contexts == e->cap_contexts) {
        uint32_t cap = e->cap_contexts ? e->cap_contexts * 2 : 256;
        struct fp_context *contexts = realloc(e->contexts, (size_t)cap * sizeof *contexts);
        if (!contexts) return FP_E_NOMEM;
        e->contexts = contexts;
        e->cap_contexts = cap;
    }
    const uint32_t known = e->model->stacks.n, n_frames = depth;
    uint32_t stack = 0;
    if (pruned) stack = fp_model_stack(e->model, 0, e->pruned_frame);
    for (; depth && stack != FP_NO_ID; depth--) {
        uint32_t frame = frame_of(e, e->path[depth]);
        if (frame == FP_NO_ID) return FP_E_NOMEM;
        stack = fp_model_stack(e->model, stack, frame);
    }
    if (stack == FP_NO_ID) return FP_E_NOMEM;
    e->work_left -= FRAME_WORK * (int64_t)n_frames + (int64_t)NEW_WORK * (e->model->stacks.n - known);
    e->contexts[e->n_contexts++] = (struct fp_context){share, stack, pruned};
    return 0;
}

static int push_pending(struct fp_estimate *e, struct fp_pending item) {
    if (e->n_pending == e->cap_pending) {
        uint32_t cap = e->cap_pending ? e->cap_pending * 2 : 256;
        struct fp_pending *pending = realloc(e->pending, (size_t)cap * sizeof *pending);
        if (!pending) return FP_E_NOMEM;
        e->pending = pending;
        e->cap_pending = cap;
    }
    e->pending[e->n_pending++] = item;
    return 0;
}

/* Looks into the callers of path[depth] (depth 0: of `function`), whose share
 * is `share`.  What is too small to be followed is added to `*rest`. */
static int expand(struct fp_estimate *e, uint32_t function, uint32_t depth, double share, double cut, int steps_left,
                  double *rest) {
    const struct fp_caller *callers = e->callers + e->callers_start[function];
    const uint32_t n = e->callers_start[function + 1] - e->callers_start[function];
    if (depth == e->max_depth && !e->cut_is_pruned) return add_context(e, depth, share, 0);
    if (n && e->work_left <= 0) {
        e->limit_met = 1;
        *rest += share;
        return 0;
    }
    e->work_left -= (int64_t)n + 1;
    double weight = e->uncalled[function];
    uint32_t n_open = 0, only = 0;
    if (e->flags[function] & IN_CYCLE) {
        for (uint32_t i = 0; i < n; i++) {
            if (e->flags[callers[i].function] & ON_PATH) continue;
            weight += callers[i].weight;
            only = i;
            n_open++;
        }
    } else {
        weight += e->called[function];
        n_open = n;
    }
    if (!n_open || !(weight > 0)) return add_context(e, depth, share, 0);
    if (depth == e->max_depth) return add_context(e, depth, share, 1);
    if (steps_left <= 0) {
        e->limit_met = 1;
        *rest += share;
        return 0;
    }
    if (n_open == 1 && !(e->uncalled[function] > 0))
        return push_pending(e, (struct fp_pending){share, callers[only].position, depth + 1});

    double left = share;
    for (uint32_t i = 0; i < n; i++) {
        double part = share * (callers[i].weight / weight);
        if (part < cut || !(part > 0)) break; /* the heaviest come first */
        if (e->flags[callers[i].function] & ON_PATH) continue;
        left -= part;
        if (push_pending(e, (struct fp_pending){part, callers[i].position, depth + 1})) return FP_E_NOMEM;
    }
    double part = share * (e->uncalled[function] / weight);
    if (part > 0 && part >= cut) {
        left -= part;
        if (add_context(e, depth, part, 0)) return FP_E_NOMEM;
    }
    if (left <= share * 1e-12) return 0; /* nothing but the rounding of doubles */
    if (depth && left >= (cut < 1 ? cut : 1)) return add_context(e, depth, left, 1);
    *rest += left;
    return 0;
}

static int largest_share_first(const void *a, const void *b) {
    const struct fp_context *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Finds how `function` came to be called, depth first over its callers. */
static int find_contexts(struct fp_estimate *e, uint32_t function) {
    const uint32_t n_rows = e->selfs_start[function + 1] - e->selfs_start[function];
    double cut = INFINITY, rest = 0;
    for (uint32_t k = 0; k < e->n_values; k++) {
        double self = 0;
        for (uint32_t i = e->selfs_start[function]; i < e->selfs_start[function + 1]; i++)
            self += magnitude(sums_of(e, e->selfs[i])[k]);
        if (self > 0 && e->prune * (e->total[k] / self) < cut) cut = e->prune * (e->total[k] / self);
    }
    e->n_contexts = e->n_pending = 0;
    e->limit_met = 0;
    e->flags[function] |= ON_PATH;
    uint32_t depth = 0;
    int steps_left = MAX_STEPS, status = expand(e, function, 0, 1, cut, steps_left, &rest);
    while (!status && e->n_pending) {
        const struct fp_pending item = e->pending[--e->n_pending];
        for (; depth >= item.depth; depth--) e->flags[function_of(e, e->path[depth])] &= (uint8_t)~ON_PATH;
        depth = item.depth;
        if (depth >= e->cap_path) {
            uint32_t cap = depth * 2 + 64;
            uint32_t *path = realloc(e->path, (size_t)cap * sizeof *path);
            if (!path) return FP_E_NOMEM;
            e->path = path;
            e->cap_path = cap;
        }
        e->path[depth] = item.position;
        const uint32_t caller = function_of(e, item.position);
        e->flags[caller] |= ON_PATH;
        status = expand(e, caller, depth, item.share, cut, --steps_left, &rest);
    }
    for (; depth; depth--) e->flags[function_of(e, e->path[depth])] &= (uint8_t)~ON_PATH;
    e->flags[function] &= (uint8_t)~ON_PATH;
    if (status) return status;

    if (e->n_contexts) qsort(e->contexts, e->n_contexts, sizeof *e->contexts, largest_share_first);
    const int64_t cells = e->work_left < 0 ? 0 : e->work_left < MAX_CELLS ? e->work_left : MAX_CELLS;
    const uint32_t most = (uint32_t)cells / (n_rows ? n_rows : 1) + 1;
    for (; e->n_contexts > most; e->n_contexts--) {
        e->limit_met = 1;
        rest += e->contexts[e->n_contexts - 1].share;
    }
    e->limited += e->limit_met;
    return rest > 0 || !e->n_contexts ? add_context(e, 0, rest, 1) : 0;
}

/* ---- dividing ----------------------------------------------------------- */

/* Parts of `amount` by the contexts' shares: rounded down, and the units that
 * are left to the largest remainders (of equal ones, to the first). */
static void divide(const struct fp_context *contexts, uint32_t n, int64_t amount, int64_t *parts,
                   struct fp_context *scratch) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t whole = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    uint64_t left = whole, weights = 0;
    const double unit = 0x1p52;
    for (uint32_t i = 0; i < n; i++) weights += (uint64_t)(contexts[i].share * unit);
    if (n == 1 || !weights) {
        memset(parts, 0, n * sizeof *parts);
        parts[0] = amount;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        u128 product = (u128)whole * (uint64_t)(contexts[i].share * unit);
        parts[i] = (int64_t)(uint64_t)(product / weights);
        left -= (uint64_t)parts[i];
        scratch[i] = (struct fp_context){(double)(uint64_t)(product % weights), i, 0};
    }
    if (left) {
        qsort(scratch, n, sizeof *scratch, largest_share_first);
        for (uint32_t i = 0; i < left; i++) parts[scratch[i].stack]++;
    }
    if (amount < 0)
        for (uint32_t i = 0; i < n; i++) parts[i] = (int64_t)(0 - (uint64_t)parts[i]);
}

/* Divides the costs of the row at hand over the contexts. */
static int divide_row(struct fp_estimate *e) {
    const uint32_t n = e->n_contexts;
    /* the scratch of the division lies behind the parts: two words an entry */
    const size_t need = (size_t)n * (e->n_values + 2);
    if (need > e->cap_parts) {
        int64_t *parts = realloc(e->parts, need * 2 * sizeof *parts);
        if (!parts) return FP_E_NOMEM;
        e->parts = parts;
        e->cap_parts = need * 2;
    }
    struct fp_context *scratch = (void *)(e->parts + (size_t)n * e->n_values);
    const int64_t *sums = sums_of(e, e->selfs[e->row]);
    for (uint32_t k = 0; k < e->n_values; k++) divide(e->contexts, n, sums[k], e->parts + (size_t)k * n, scratch);
    return 0;
}

int fp_estimate_pull(struct fp_estimate *e, struct fp_batch *out, struct fp_err *err) {
    for (; e->function < e->n_functions; e->function++) {
        const uint32_t end = e->selfs_start[e->function + 1];
        if (e->row == end) continue;
        if (e->row == e->selfs_start[e->function] && !e->context && find_contexts(e, e->function))
            return no_memory(err);
        for (; e->row < end; e->row++, e->context = 0) {
            if (!e->context && divide_row(e)) return no_memory(err);
            const uint32_t position = fp_table_row(&e->rows, e->selfs[e->row])[0], n = e->n_contexts;
            for (; e->context < n; e->context++) {
                int64_t any = 0;
                for (uint32_t k = 0; k < e->n_values; k++) any |= e->parts[(size_t)k * n + e->context];
                if (!any) continue;
                if (out->n == out->cap) return FP_FULL;
                const uint32_t known = e->model->stacks.n;
                uint32_t frame = frame_of(e, position), stack = FP_NO_ID;
                if (frame != FP_NO_ID) stack = fp_model_stack(e->model, e->contexts[e->context].stack, frame);
                if (stack == FP_NO_ID) return no_memory(err);
                e->work_left -= FRAME_WORK + NEW_WORK * (e->model->stacks.n != known);
                const uint32_t i = out->n++;
                out->stack[i] = stack;
                out->thread[i] = e->thread;
                out->label[i] = 0;
                out->time[i] = 0;
                for (uint32_t k = 0; k < e->n_values; k++)
                    out->values[(size_t)k * out->cap + i] = e->parts[(size_t)k * n + e->context];
                e->stacks++;
                e->pruned += e->contexts[e->context].pruned != 0;
            }
        }
    }
    return FP_DONE;
}
