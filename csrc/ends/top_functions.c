#include "ends/top.h"

/* The last arc into a function and its caller: usually also the next one, because a function's calls come in a run.  So
 * arcs need no hash table. */
struct fp_top_last_arc {
    uint32_t caller, arc;
};

/* The sums of one function in a part. */
struct fp_top_function_sums {
    int64_t self, second;
    int64_t into, out; /* cost of calls into and out of it, without recursive ones */
    int64_t calls;     /* into it */
    int64_t recorded;  /* inclusive cost, as the source states it */
    uint32_t touched;
    struct fp_top_last_arc last;
};

/* Arcs in order of arrival, mostly distinct; after a merge distinct and ordered by caller. */
struct fp_top_arcs {
    struct fp_top_arc *items;
    uint32_t n, cap;
    uint32_t merge_at; /* at this number equal ones are merged */
    uint32_t *start;   /* by caller, n_start + 1 of them; set by a merge */
    uint32_t n_start;
    uint32_t *into, *into_start; /* arcs by callee; set by fp_top_functions_index */
};

enum { FIRST_MERGE = 1 << 13 }; /* or the number of functions, as a merge looks at each */

static int beyond(struct fp_err *err) {
    return fp_fail_beyond(err, "the cost or the calls of a function", FP_NO_COLUMN, "2^63 - 1");
}

struct fp_top_functions *fp_top_functions_new(struct fp_model *model) {
    struct fp_top_functions *f = fp_made(sizeof *f);
    f->model = model;
    f->arcs = fp_have(calloc(2, sizeof *f->arcs));
    f->arcs[0].merge_at = f->arcs[1].merge_at = FIRST_MERGE;
    return f;
}

/* Frees the memory needed only to add rows. */
static void free_parts(struct fp_top_functions *f) {
    fp_release(f->self, f->cap_graph * sizeof *f->self);
    fp_release(f->inclusive, f->cap_graph * sizeof *f->inclusive);
    fp_release(f->recursive, f->cap_graph * sizeof *f->recursive);
    fp_release(f->by_function, f->cap * sizeof *f->by_function);
    free(f->touched);
    f->self = f->inclusive = f->recursive = NULL;
    f->by_function = NULL;
    f->touched = NULL;
    f->cap = f->cap_graph = f->cap_touched = 0;
}

void fp_top_functions_free(struct fp_top_functions *f) {
    for (int exact = 0; f->arcs && exact < 2; exact++) {
        FP_FREE(f->arcs[exact].items, f->arcs[exact].start, f->arcs[exact].into, f->arcs[exact].into_start);
    }
    fp_top_sums_clear(&f->all);
    free_parts(f);
    fp_table_clear(&f->names);
    FP_FREE(f->arcs, f->cycle, f->shown_as, f->slot, f->found, f->last, f);
}

void fp_top_functions_begin(struct fp_top_functions *f, int how, int arcs) {
    f->how = how;
    f->keep_arcs = arcs;
}

/* Merges arcs of the same caller and callee, and orders them by caller.  0 or FP_E_OVERFLOW. */
static int merge_arcs(struct fp_top_functions *f, struct fp_top_arcs *a, struct fp_err *err) {
    const uint32_t n_functions = f->model->functions.n, n = a->n;
    a->n_start = n_functions;
    if (!n) return 0;
    uint32_t *start = fp_scratch((size_t)n_functions + 1, sizeof *start);
    uint32_t *at = fp_scratch((size_t)n_functions + 1, sizeof *at); /* by callee: its arc from the current caller */
    uint32_t caller = 0, kept = 0, ordered = 1;                     /* arcs in order: all, if the source is sorted */
    while (ordered < n && a->items[ordered].caller >= a->items[ordered - 1].caller) ordered++;
    struct fp_top_arc *copy = ordered < n ? fp_scratch(n, sizeof *copy) : NULL;
    int overflow = 0;
    for (uint32_t i = 0; i < n; i++) start[a->items[i].caller + 1]++;
    for (uint32_t c = 0; c < n_functions; c++) start[c + 1] += start[c];
    memcpy(at, start, ((size_t)n_functions + 1) * sizeof *at);
    for (uint32_t i = 0; copy && i < n; i++) copy[at[a->items[i].caller]++] = a->items[i];
    const struct fp_top_arc *sorted = copy ? copy : a->items;
    memset(at, 0xff, ((size_t)n_functions + 1) * sizeof *at);
    for (uint32_t i = 0; i < n; i++) {
        const struct fp_top_arc *arc = &sorted[i];
        for (; caller <= arc->caller; caller++) start[caller] = kept; /* its merged arcs begin here */
        uint32_t *known = &at[arc->callee];
        if (*known >= start[arc->caller] && *known < kept) {
            struct fp_top_arc *same = &a->items[*known];
            overflow |= __builtin_add_overflow(same->cost, arc->cost, &same->cost);
            overflow |= __builtin_add_overflow(same->calls, arc->calls, &same->calls);
            continue;
        }
        *known = kept;
        a->items[kept++] = *arc;
    }
    for (; caller <= n_functions; caller++) start[caller] = kept; /* those after the last one */
    a->n = kept;
    const uint64_t merge_at =
        (uint64_t)kept + kept / 4 + (n_functions > FIRST_MERGE ? n_functions : (uint32_t)FIRST_MERGE);
    a->merge_at = merge_at < UINT32_MAX ? (uint32_t)merge_at : UINT32_MAX;
    free(a->start);
    a->start = fp_scratch_keep(start);
    fp_scratch_free(at);
    /* arcs have other numbers now */
    for (uint32_t i = 0; i < f->cap; i++) f->by_function[i].last.caller = FP_NO_ID;
    for (uint32_t i = 0; i < f->cap_last; i++) f->last[i].caller = FP_NO_ID;
    return overflow ? beyond(err) : 0;
}

/* Twice the capacity, or `need` if that is more; 0 if `need` exceeds the limit. */
static uint32_t more_than(uint32_t cap, uint64_t need) {
    const uint64_t more = need > 2 * (uint64_t)cap ? need : 2 * (uint64_t)cap;
    return more <= UINT32_MAX ? (uint32_t)more : 0;
}

/* Makes room for the functions of the model. */
static void room(struct fp_top_functions *f) {
    if (f->model->functions.n <= f->cap) return;
    const uint32_t cap = more_than(f->cap, f->model->functions.n);
    if (!cap) fp_escape();
    fp_array_room(&f->touched, &f->cap_touched, cap, sizeof *f->touched);
    struct fp_top_function_sums *sums = fp_have(fp_grow(f->by_function, f->cap * sizeof *sums, cap * sizeof *sums));
    for (uint32_t i = f->cap; i < cap; i++) sums[i] = (struct fp_top_function_sums){.last.caller = FP_NO_ID};
    f->by_function = sums;
    f->cap = cap;
}

/* Makes room for the arcs of `n` more rows.  A page has arcs for each value type, so they do not double. */
static inline void arcs_room(struct fp_top_arcs *a, uint32_t n) {
    fp_array_slowly(&a->items, &a->cap, (uint64_t)a->n + n, sizeof *a->items);
}

/* Makes room for the sums of functions of graphs. */
static void graph_room(struct fp_top_functions *f) {
    if (f->cap <= f->cap_graph) return;
    int64_t **const columns[] = {&f->self, &f->inclusive, &f->recursive};
    enum { N = sizeof columns / sizeof *columns };
    const size_t had = f->cap_graph * sizeof *f->self, nbytes = f->cap * sizeof *f->self;
    int64_t *grown[N];
    for (int k = 0; k < N; k++) {
        grown[k] = fp_grow(NULL, 0, nbytes);
        if (grown[k]) continue;
        while (k--) fp_release(grown[k], nbytes);
        fp_escape();
    }
    for (int k = 0; k < N; k++) {
        memset(grown[k], 0, nbytes);
        if (had) memcpy(grown[k], *columns[k], had);
        fp_release(*columns[k], had);
        *columns[k] = grown[k];
    }
    f->cap_graph = f->cap;
}

static inline struct fp_top_function_sums *touch(struct fp_top_functions *f, uint32_t function) {
    struct fp_top_function_sums *sums = &f->by_function[function];
    if (FP_UNLIKELY(!sums->touched)) {
        sums->touched = 1;
        f->touched[f->n_touched++] = function;
    }
    return sums;
}

/* Adds to the last arc into a function, or begins another one.  Returns whether a sum passes 64 bits. */
static inline int add_arc(struct fp_top_arcs *arcs, struct fp_top_last_arc *last, struct fp_top_arc arc) {
    if (last->caller != arc.caller) {
        *last = (struct fp_top_last_arc){arc.caller, arcs->n};
        arcs->items[arcs->n++] = arc;
        return 0;
    }
    struct fp_top_arc *same = &arcs->items[last->arc];
    int overflow = __builtin_add_overflow(same->cost, arc.cost, &same->cost);
    overflow |= __builtin_add_overflow(same->calls, arc.calls, &same->calls);
    return overflow;
}

/* Makes room for the last arc into a function. */
static inline void last_room(struct fp_top_functions *f, uint32_t callee) {
    if (callee < f->cap_last) return;
    const uint32_t had = f->cap_last;
    fp_array_room(&f->last, &f->cap_last, (uint64_t)callee + 1, sizeof *f->last);
    for (uint32_t i = had; i < f->cap_last; i++) f->last[i].caller = FP_NO_ID;
}

/* Adds only the arcs of rows. */
static int put_arcs(struct fp_top_functions *f, const struct fp_batch *in, int value, struct fp_err *err) {
    const uint32_t n_functions = f->model->functions.n;
    const int64_t *const values = value < 0 ? NULL : in->values + (size_t)value * in->cap;
    struct fp_top_arcs *const arcs = &f->arcs[1];
    int overflow = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint32_t caller = in->function[i], callee = in->callee[i];
        const int64_t cost = values ? values[i] : 0;
        int64_t count;
        if (in->kind[i] != FP_CALL || (!cost && caller != callee && f->keep_arcs == FP_ARCS_OF_COSTS)) continue;
        if (caller >= n_functions) return fp_unknown_id(err, "the function of a row", caller, n_functions);
        if (callee >= n_functions) return fp_unknown_id(err, "the function of a call", callee, n_functions);
        arcs_room(arcs, 1);
        last_room(f, callee);
        overflow |= __builtin_add_overflow(in->count[i], 0, &count);
        overflow |= add_arc(arcs, &f->last[callee], (struct fp_top_arc){caller, callee, cost, count});
    }
    if (overflow) return beyond(err);
    return arcs->n > arcs->merge_at ? merge_arcs(f, arcs, err) : FP_DONE;
}

int fp_top_functions_put(struct fp_top_functions *f, const struct fp_batch *in, int value, int second, int calls,
                         int inclusive, struct fp_err *err) {
    if (f->how == FP_PART_ARCS) return put_arcs(f, in, value, err);
    const uint32_t n = in->n, n_functions = f->model->functions.n;
    const int64_t *const values = value < 0 ? NULL : in->values + (size_t)value * in->cap;
    const int64_t *const seconds = second < 0 ? NULL : in->values + (size_t)second * in->cap;
    const int64_t *const counted = calls < 0 ? NULL : in->values + (size_t)calls * in->cap;
    const int64_t *const recorded = inclusive < 0 ? NULL : in->values + (size_t)inclusive * in->cap;
    const int by_arcs = !counted;
    struct fp_top_arcs *const arcs = &f->arcs[f->how != FP_PART_GRAPH];
    int overflow = 0;
    room(f);
    if (f->keep_arcs) arcs_room(arcs, n);
    for (uint32_t i = 0; i < n;) {
        const uint32_t caller = in->function[i];
        if (caller >= n_functions) return fp_unknown_id(err, "the function of a row", caller, n_functions);
        int64_t self = 0, out = 0, other = 0, called = 0, stated = 0;
        for (; i < n && in->function[i] == caller; i++) {
            const uint32_t kind = in->kind[i];
            if (kind > FP_CALL) continue;
            const int64_t cost = values ? values[i] : 0;
            if (FP_LIKELY(kind == FP_COST)) {
                overflow |= __builtin_add_overflow(self, cost, &self);
                if (seconds) overflow |= __builtin_add_overflow(other, seconds[i], &other);
                if (counted) overflow |= __builtin_add_overflow(called, counted[i], &called);
                if (recorded) overflow |= __builtin_add_overflow(stated, recorded[i], &stated);
                continue;
            }
            const uint32_t callee = in->callee[i];
            if (callee >= n_functions) return fp_unknown_id(err, "the function of a call", callee, n_functions);
            struct fp_top_function_sums *to = touch(f, callee);
            int64_t count;
            overflow |= __builtin_add_overflow(in->count[i], 0, &count);
            if (by_arcs) overflow |= __builtin_add_overflow(to->calls, count, &to->calls);
            if (callee != caller) {
                overflow |= __builtin_add_overflow(to->into, cost, &to->into);
                overflow |= __builtin_add_overflow(out, cost, &out);
            }
            if (f->keep_arcs) overflow |= add_arc(arcs, &to->last, (struct fp_top_arc){caller, callee, cost, count});
        }
        struct fp_top_function_sums *from = touch(f, caller);
        overflow |= __builtin_add_overflow(from->out, out, &from->out);
        overflow |= __builtin_add_overflow(from->self, self, &from->self);
        overflow |= __builtin_add_overflow(from->second, other, &from->second);
        overflow |= __builtin_add_overflow(from->calls, called, &from->calls);
        overflow |= __builtin_add_overflow(from->recorded, stated, &from->recorded);
    }
    if (overflow) return beyond(err);
    return arcs->n > arcs->merge_at ? merge_arcs(f, arcs, err) : FP_DONE;
}

/* The one farther from 0. */
static int64_t farther(int64_t a, int64_t b) {
    return fp_top_magnitude(b) > fp_top_magnitude(a) ? b : a;
}

/* Adds the inclusive cost of a function in a part.  Calls without a recorded caller are not in `into`; in a cycle `out`
 * counts costs repeatedly.  Returns whether a sum passes 64 bits. */
static int add_inclusive(struct fp_top_functions *f, uint32_t id, const struct fp_top_function_sums *s) {
    int64_t spent, inclusive, recursive;
    int overflow = __builtin_add_overflow(s->self, s->out, &spent);
    inclusive = recursive = spent;
    if (s->calls > 0) {
        inclusive = farther(s->into, spent);
        recursive = farther(s->into, s->self);
    } else if (s->into) { /* calls that nobody counted */
        recursive = farther(s->into, s->self);
    }
    overflow |= __builtin_add_overflow(f->self[id], s->self, &f->self[id]);
    overflow |= __builtin_add_overflow(f->inclusive[id], inclusive, &f->inclusive[id]);
    overflow |= __builtin_add_overflow(f->recursive[id], recursive, &f->recursive[id]);
    return overflow;
}

/* The recorded inclusive cost; of a function that has none in a source that was merged into others, the cost of its
 * calls. */
static int64_t recorded_or_not(const struct fp_top_function_sums *s) {
    return s->recorded ? farther(s->recorded, s->self) : farther(s->into, s->self);
}

int fp_top_functions_end_part(struct fp_top_functions *f, struct fp_err *err) {
    struct fp_top_sums *const all = &f->all;
    int overflow = 0;
    fp_top_room(all, f->cap);
    graph_room(f);
    for (uint32_t i = 0; i < f->n_touched; i++) {
        const uint32_t id = f->touched[i];
        struct fp_top_function_sums *s = &f->by_function[id];
        all->seen[id] = 1;
        overflow |= __builtin_add_overflow(all->self[id], s->self, &all->self[id]);
        overflow |= __builtin_add_overflow(all->second[id], s->second, &all->second[id]);
        overflow |= __builtin_add_overflow(all->calls[id], s->calls, &all->calls[id]);
        if (f->how == FP_PART_GRAPH) overflow |= add_inclusive(f, id, s);
        if (f->how == FP_PART_RECORDED)
            overflow |= __builtin_add_overflow(all->inclusive[id], recorded_or_not(s), &all->inclusive[id]);
        *s = (struct fp_top_function_sums){.last.caller = FP_NO_ID};
    }
    f->n_touched = 0;
    return overflow ? beyond(err) : FP_DONE;
}

/* Finds the functions that call each other in a cycle: Tarjan's strongly connected components, without recursion.
 * `low` is 0 for a function not visited yet, `done` for one whose component is known. */
static void find_cycles(struct fp_top_functions *f, const struct fp_top_arcs *a) {
    const uint32_t n = a->n_start, done = UINT32_MAX;
    if (!a->n) return;
    uint32_t *low = fp_scratch((size_t)n + 1, sizeof *low), *number = fp_scratch((size_t)n + 1, sizeof *number);
    uint32_t *stack = fp_scratch((size_t)n + 1, sizeof *stack), *path = fp_scratch((size_t)n + 1, sizeof *path);
    uint32_t *next = fp_scratch((size_t)n + 1, sizeof *next); /* by function: the arc to follow next */
    uint32_t n_stack = 0, n_path = 0, visited = 0;
    for (uint32_t root = 0; root < n; root++) {
        if (low[root] || a->start[root] == a->start[root + 1]) continue;
        path[n_path++] = root;
        while (n_path) {
            const uint32_t at = path[n_path - 1];
            if (!low[at]) {
                low[at] = number[at] = ++visited;
                next[at] = a->start[at];
                stack[n_stack++] = at;
            }
            if (next[at] < a->start[at + 1]) {
                const uint32_t callee = a->items[next[at]++].callee;
                if (!low[callee])
                    path[n_path++] = callee;
                else if (low[callee] != done && number[callee] < low[at])
                    low[at] = number[callee];
                continue;
            }
            n_path--;
            if (low[at] == number[at]) {
                const int alone = stack[n_stack - 1] == at;
                f->n_cycles += !alone;
                for (uint32_t member = FP_NO_ID; member != at;) {
                    member = stack[--n_stack];
                    low[member] = done;
                    if (!alone) f->cycle[member] = f->n_cycles;
                }
            } else if (low[at] < low[path[n_path - 1]]) {
                low[path[n_path - 1]] = low[at];
            }
        }
    }
    fp_scratch_free(low);
}

int fp_top_functions_end(struct fp_top_functions *f, int cycles, struct fp_err *err) {
    struct fp_top_sums *const all = &f->all;
    const struct fp_top_arcs *const a = &f->arcs[0];
    int overflow = 0;
    if (f->cap) { /* not only stacks were added */
        room(f);
        graph_room(f);
    }
    fp_top_room(all, f->model->functions.n > f->cap ? f->model->functions.n : f->cap);
    for (int exact = 0; exact < 2; exact++) FP_TRY(merge_arcs(f, &f->arcs[exact], err));
    free(f->cycle);
    f->n_cycles = 0;
    f->cycle = NULL;
    f->cycle = fp_have(calloc((size_t)all->cap + 1, sizeof *f->cycle));
    find_cycles(f, a);
    for (uint32_t i = 0; f->n_cycles && i < f->cap; i++)
        if (f->cycle[i]) f->inclusive[i] = cycles ? f->self[i] : f->recursive[i];
    for (uint32_t i = 0; cycles && f->n_cycles && i < a->n; i++) {
        const uint32_t caller = a->items[i].caller;
        if (f->cycle[caller] && f->cycle[caller] != f->cycle[a->items[i].callee])
            overflow |= __builtin_add_overflow(f->inclusive[caller], a->items[i].cost, &f->inclusive[caller]);
    }
    if (!cycles && f->n_cycles) {
        memset(f->cycle, 0, all->cap * sizeof *f->cycle);
        f->n_cycles = 0;
    }
    for (uint32_t i = 0; i < f->cap_graph; i++)
        overflow |= __builtin_add_overflow(all->inclusive[i], f->inclusive[i], &all->inclusive[i]);
    free_parts(f);
    return overflow ? beyond(err) : FP_DONE;
}

/* ---- callers and callees ---- */

/* Sets f->shown_as. */
static void find_names(struct fp_top_functions *f) {
    const struct fp_model *m = f->model;
    const uint32_t n = f->arcs[0].n_start;
    fp_table_clear(&f->names);
    fp_table_init(&f->names, 5);
    FP_FREE(f->shown_as, f->slot);
    f->shown_as = f->slot = NULL;
    f->shown_as = fp_have(calloc((size_t)n + 1, sizeof *f->shown_as));
    f->slot = fp_have(calloc((size_t)n + f->n_cycles + 2, sizeof *f->slot));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *row = fp_table_row(&m->functions, i);
        const uint32_t object = fp_table_row(&m->objects, row[FP_FUNCTION_OBJECT])[0];
        f->shown_as[i] = fp_table_intern(&f->names, (uint32_t[]){object, row[FP_FUNCTION_FILE], row[FP_FUNCTION_NAME],
                                                                 row[FP_FUNCTION_LINE], f->cycle[i]});
    }
    fp_table_clear(&f->names);
}

int fp_top_functions_index(struct fp_top_functions *f) {
    for (int exact = 0; exact < 2; exact++) {
        struct fp_top_arcs *a = &f->arcs[exact];
        if (!a->n) continue;
        FP_FREE(a->into, a->into_start);
        a->into = a->into_start = NULL;
        a->into = fp_have(malloc(((size_t)a->n + 1) * sizeof *a->into));
        a->into_start = fp_have(calloc((size_t)a->n_start + 2, sizeof *a->into_start));
        /* one place ahead, because filling moves each start to the next start */
        for (uint32_t i = 0; i < a->n; i++) a->into_start[a->items[i].callee + 2]++;
        for (uint32_t c = 0; c < a->n_start; c++) a->into_start[c + 2] += a->into_start[c + 1];
        for (uint32_t i = 0; i < a->n; i++) a->into[a->into_start[a->items[i].callee + 1]++] = i;
    }
    if (fp_top_functions_has_arcs(f)) find_names(f);
    return 0;
}

/* Whether arc a is shown before b: by cost, then calls, then the lower function id. */
static int is_larger(const struct fp_top_arc *a, const struct fp_top_arc *b) {
    const uint64_t x = fp_top_magnitude(a->cost), y = fp_top_magnitude(b->cost);
    if (x != y) return x > y;
    if (a->calls != b->calls) return a->calls > b->calls;
    return a->caller != b->caller ? a->caller < b->caller : a->callee < b->callee;
}

/* The smallest arc is first in the heap. */
static inline int is_before(const void *nothing, struct fp_top_arc a, struct fp_top_arc b) {
    (void)nothing;
    return is_larger(&b, &a);
}

FP_HEAP(const void *, struct fp_top_arc, is_before)

/* Copies the `room` largest of `n` arcs. */
static void copy_largest(struct fp_top_arc *to, uint32_t room, const struct fp_top_arc *arcs, uint32_t n) {
    const uint32_t copied = n < room ? n : room;
    if (!copied) return;
    memcpy(to, arcs, copied * sizeof *to);
    if (n == copied) return;
    for (uint32_t i = copied / 2; i-- > 0;) heap_sink(NULL, to, copied, i);
    for (uint32_t i = copied; i < n; i++) {
        if (!is_larger(&arcs[i], to)) continue;
        to[0] = arcs[i];
        heap_sink(NULL, to, copied, 0);
    }
}

/* The sum of arcs of `function` to or from `other`.  NULL: `other` calls the cycle of `function`. */
static uint32_t *slot_of(const struct fp_top_functions *f, uint32_t function, uint32_t other, int into) {
    const uint32_t mine = f->cycle[function], cycle = f->cycle[other];
    if (into && mine && cycle != mine) return NULL;
    return &f->slot[!into && cycle && cycle != mine ? f->arcs[0].n_start + cycle : f->shown_as[other]];
}

/* Sums the arcs of a function in f->found.  Returns their number or FP_E_OVERFLOW. */
static int64_t find_arcs(struct fp_top_functions *f, uint32_t function, int into, struct fp_err *err) {
    uint32_t n = 0;
    int overflow = 0;
    if (function >= f->arcs[0].n_start) return 0;
    for (int exact = 0; exact < 2; exact++) {
        const struct fp_top_arcs *a = &f->arcs[exact];
        if (!a->n) continue;
        const uint32_t *start = (into ? a->into_start : a->start) + function;
        fp_array_room(&f->found, &f->cap_found, (uint64_t)n + start[1] - start[0], sizeof *f->found);
        for (uint32_t i = start[0]; i < start[1]; i++) {
            const struct fp_top_arc *arc = &a->items[into ? a->into[i] : i];
            uint32_t *slot = slot_of(f, function, into ? arc->caller : arc->callee, into);
            if (!slot) continue;
            if (*slot) {
                struct fp_top_arc *same = &f->found[*slot - 1];
                overflow |= __builtin_add_overflow(same->cost, arc->cost, &same->cost);
                overflow |= __builtin_add_overflow(same->calls, arc->calls, &same->calls);
            } else {
                f->found[n] = *arc;
                *slot = ++n;
            }
        }
    }
    return overflow ? beyond(err) : (int64_t)n;
}

/* Resets the slots for another function.  Returns `n`, which may be an error. */
static int64_t reset_slots(struct fp_top_functions *f, uint32_t function, int into, int64_t n) {
    for (int64_t i = 0; i < n; i++) *slot_of(f, function, into ? f->found[i].caller : f->found[i].callee, into) = 0;
    return n;
}

int fp_top_functions_has_arcs(const struct fp_top_functions *f) {
    return f->arcs[0].n || f->arcs[1].n;
}

int64_t fp_top_functions_arcs(struct fp_top_functions *f, uint32_t function, int into, struct fp_top_arc *arcs,
                              uint32_t room, struct fp_err *err) {
    const int64_t n = find_arcs(f, function, into, err);
    if (n > 0) copy_largest(arcs, room, f->found, (uint32_t)n);
    return reset_slots(f, function, into, n);
}

int64_t fp_top_functions_arcs_with(struct fp_top_functions *f, uint32_t function, int into, const uint32_t *others,
                                   uint32_t n, struct fp_top_arc *arcs, struct fp_err *err) {
    const int64_t all = find_arcs(f, function, into, err);
    uint32_t taken = 0;
    for (uint32_t i = 0; all > 0 && i < n; i++) {
        uint32_t *slot = others[i] < f->arcs[0].n_start ? slot_of(f, function, others[i], into) : NULL;
        if (!slot || !*slot) continue;
        arcs[taken++] = f->found[*slot - 1];
        *slot = 0;
    }
    return reset_slots(f, function, into, all) < 0 ? all : taken;
}

uint32_t fp_top_functions_in_cycles(const struct fp_top_functions *f, uint32_t *functions, uint32_t room) {
    uint32_t n = 0;
    for (uint32_t i = 0; f->n_cycles && i < f->all.cap; i++)
        if (f->cycle[i]) {
            if (n < room) functions[n] = i;
            n++;
        }
    return n;
}

uint32_t fp_top_functions_cycle_arcs(const struct fp_top_functions *f, uint32_t cycle, struct fp_top_arc *arcs,
                                     uint32_t room) {
    const struct fp_top_arcs *a = &f->arcs[0];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t into = f->cycle[a->items[i].callee];
        if (!into || (cycle && into != cycle) || into == f->cycle[a->items[i].caller]) continue;
        if (n < room) arcs[n] = a->items[i];
        n++;
    }
    return n;
}
