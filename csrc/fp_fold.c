#include "fp_fold.h"

#include <stdlib.h>

/* By function. */
struct fp_fold_function {
    uint32_t active;    /* activations on the stack of the thread at hand */
    uint32_t last_arc;  /* the arc by which it was entered last: usually the next one too,
                           and known without waiting for the caller's frame */
};

struct frame {
    uint64_t enter;
    uint64_t child;        /* ticks spent in callees so far */
    uint64_t calls_before; /* of the thread, when this frame was entered */
    uint32_t arc;
    uint32_t function;
};

struct fp_fold_thread {
    struct frame *frames;  /* frames[0] is a sentinel: function 0, the caller of roots */
    uint32_t n, cap;
    uint64_t first, last;  /* times of its records */
    uint64_t calls;
    int32_t seen;
};

enum { SLOTS_PER_ARC = 8, FIRST_ARCS = 512, FIRST_SHIFT = 64 - 12 };

struct fp_fold *fp_fold_new(struct fp_model *model, int into, int per_thread) {
    struct fp_fold *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->model = model;
    f->into = into;
    f->per_thread = per_thread;
    f->first_time = UINT64_MAX;
    f->cap_arcs = FIRST_ARCS;
    f->index_shift = FIRST_SHIFT;
    f->arcs = calloc(f->cap_arcs, sizeof *f->arcs);
    f->index = calloc((size_t)1 << (64 - FIRST_SHIFT), sizeof *f->index);
    if (!f->arcs || !f->index) {
        fp_fold_free(f);
        return NULL;
    }
    return f;
}

void fp_fold_free(struct fp_fold *f) {
    if (!f) return;
    for (uint32_t i = 0; i < f->cap_threads; i++) free(f->threads[i].frames);
    free(f->threads);
    free(f->by_function);
    free(f->arcs);
    free(f->index);
    free(f->by_caller);
    free(f->by_callee);
    free(f->stack_of);
    free(f);
}

/* Fibonacci hashing; the table is kept sparse, because a probe that has to
 * look at a second slot costs a mispredicted branch. */
static inline uint32_t slot_of(uint32_t caller, uint32_t callee, uint32_t group, unsigned shift) {
    uint64_t key = ((uint64_t)caller << 32 | callee) ^ (uint64_t)group * 0xd6e8feb86659fd93u;
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> shift);
}

static uint32_t mask_of(unsigned shift) { return (uint32_t)(((uint64_t)1 << (64 - shift)) - 1); }

static void index_arcs(const struct fp_arc *arcs, uint32_t n, uint32_t *index, unsigned shift) {
    const uint32_t mask = mask_of(shift);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = slot_of(arcs[i].caller, arcs[i].callee, arcs[i].group, shift);
        while (index[at]) at = (at + 1) & mask;
        index[at] = i + 1;
    }
}

static int grow_arcs(struct fp_fold *f) {
    if (f->cap_arcs > (1u << 28)) return FP_E_NOMEM;
    struct fp_arc *arcs = realloc(f->arcs, (size_t)f->cap_arcs * 2 * sizeof *arcs);
    if (!arcs) return FP_E_NOMEM;
    f->arcs = arcs;
    f->cap_arcs *= 2;
    /* Up to 2^16 arcs the sparse index fits the L2 cache; beyond, every lookup
     * is a cache miss anyway and half the memory is the better bargain. */
    const uint64_t slots = (uint64_t)f->cap_arcs * (f->cap_arcs <= 1u << 16 ? SLOTS_PER_ARC : 2);
    unsigned shift = 64;
    while ((uint64_t)1 << (64 - shift) < slots) shift--;
    uint32_t *index = calloc((size_t)1 << (64 - shift), sizeof *index);
    if (!index) return FP_E_NOMEM;
    index_arcs(arcs, f->n_arcs, index, shift);
    free(f->index);
    f->index = index;
    f->index_shift = shift;
    return 0;
}

/* Enters an arc that is not there.  Its number; UINT32_MAX when memory ran out. */
static uint32_t add_arc(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group) {
    if (f->n_arcs == f->cap_arcs && grow_arcs(f)) return UINT32_MAX;
    const uint32_t mask = mask_of(f->index_shift);
    uint32_t at = slot_of(caller, callee, group, f->index_shift);
    while (f->index[at]) at = (at + 1) & mask;
    uint32_t i = f->n_arcs++;
    f->arcs[i] = (struct fp_arc){.caller = caller, .callee = callee, .group = group};
    f->index[at] = i + 1;
    return i;
}

/* `active` of arcs and functions speaks of one thread at a time, so that
 * recursion is told from two threads in the same function. */
static void count_active(struct fp_fold *f, const struct fp_fold_thread *t, uint32_t by) {
    for (uint32_t i = 1; i < t->n; i++) {
        f->arcs[t->frames[i].arc].active += by;
        f->by_function[t->frames[i].function].active += by;
    }
}

static struct fp_fold_thread *switch_to(struct fp_fold *f, uint32_t thread) {
    if (thread >= f->cap_threads) {
        uint32_t cap = thread < 32 ? 64 : thread * 2;
        struct fp_fold_thread *more = realloc(f->threads, cap * sizeof *more);
        if (!more) return NULL;
        memset(more + f->cap_threads, 0, (cap - f->cap_threads) * sizeof *more);
        f->threads = more;
        f->cap_threads = cap;
    }
    struct fp_fold_thread *t = &f->threads[thread];
    if (t->frames && thread == f->current) return t;
    if (!t->frames) {
        t->cap = 64;
        t->frames = calloc(t->cap, sizeof *t->frames);
        if (!t->frames) return NULL;
        t->n = 1;
        t->first = UINT64_MAX;
    }
    if (f->current < f->cap_threads && f->threads[f->current].frames)
        count_active(f, &f->threads[f->current], UINT32_MAX); /* minus one */
    count_active(f, t, 1);
    f->current = thread;
    return t;
}

static int push_room(struct fp_fold_thread *t) {
    if (t->cap > (1u << 30)) return FP_E_NOMEM;
    struct frame *frames = realloc(t->frames, (size_t)t->cap * 2 * sizeof *frames);
    if (!frames) return FP_E_NOMEM;
    t->frames = frames;
    t->cap *= 2;
    return 0;
}

static int function_room(struct fp_fold *f, uint32_t function) {
    uint32_t cap = f->model->functions.n > function ? f->model->functions.n : function + 1;
    cap = cap < 1024 ? 1024 : cap + cap / 2;
    struct fp_fold_function *by_function = realloc(f->by_function, (size_t)cap * sizeof *by_function);
    if (!by_function) return FP_E_NOMEM;
    memset(by_function + f->cap_functions, 0, (size_t)(cap - f->cap_functions) * sizeof *by_function);
    f->by_function = by_function;
    f->cap_functions = cap;
    return 0;
}

/* Ends the top frame at `now`. */
static inline void pop(struct fp_arc *arcs, struct fp_fold_function *by_function, struct frame *top, uint64_t now, uint64_t thread_calls,
                       int *overflowed) {
    struct fp_arc *a = &arcs[top->arc];
    const uint64_t ticks = now - top->enter;
    by_function[top->function].active--;
    a->self += ticks - top->child;
    top[-1].child += ticks;
    if (FP_LIKELY(--a->active == 0)) {
        /* Self and callees' ticks are parts of this sum: if it holds, they do. */
        *overflowed |= __builtin_add_overflow(a->ticks, ticks, &a->ticks);
        a->subcalls += thread_calls - top->calls_before;
    }
}

int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err) {
    const int tree = f->into == FP_FOLD_TREE;
    const uint32_t n = in->n;
    const uint64_t *const time = in->time;
    const uint32_t *const functions = in->function, *const threads = in->thread;
    const uint8_t *const ops = in->op;
    for (uint32_t i = 0; i < n;) {
        const uint32_t thread = threads[i], group = f->per_thread ? thread : 0;
        struct fp_fold_thread *t = switch_to(f, thread);
        if (!t) return fp_fail(err, FP_E_NOMEM, 0, "the threads' stacks");
        if (!t->seen) t->first = t->last = time[i];
        t->seen = 1;
        /* What the loop uses stays in registers: the compiler cannot know that
         * a frame is not part of the fold.  Slow paths write back and reload. */
        struct fp_arc *arcs = f->arcs;
        const uint32_t *index = f->index;
        unsigned shift = f->index_shift;
        uint32_t mask = mask_of(shift), cap_functions = f->cap_functions;
        struct fp_fold_function *by_function = f->by_function;
        struct frame *top = t->frames + t->n - 1, *limit = t->frames + t->cap - 1;
        uint64_t last = t->last, calls = t->calls;
        int overflowed = 0;
        for (; i < n && threads[i] == thread; i++) {
            const uint8_t op = ops[i];
            const uint32_t function = functions[i];
            uint64_t now = time[i];
            if (FP_UNLIKELY(op > FP_OP_ENTER_ARGS)) {
                f->stats.arguments += op == FP_OP_ARGUMENT;
                f->stats.events += op == FP_OP_CUSTOM || op == FP_OP_TYPED;
                if (now > last) last = now;
                continue;
            }
            if (FP_UNLIKELY(now < last)) {
                f->stats.clamped++;
                now = last;
            }
            last = now;
            if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
                const uint32_t caller = FP_LIKELY(!tree) ? top->function : top->function ? top->arc + 1 : 0;
                if (FP_UNLIKELY(top == limit)) {
                    const size_t depth = (size_t)(top - t->frames);
                    if (push_room(t)) return fp_fail(err, FP_E_NOMEM, 0, "a thread's stack");
                    top = t->frames + depth;
                    limit = t->frames + t->cap - 1;
                }
                if (FP_UNLIKELY(function >= cap_functions)) {
                    if (function_room(f, function)) return fp_fail(err, FP_E_NOMEM, 0, "the functions' counters");
                    by_function = f->by_function;
                    cap_functions = f->cap_functions;
                }
                uint32_t arc = by_function[function].last_arc;
                if (arcs[arc].caller != caller || arcs[arc].callee != function || arcs[arc].group != group) {
                    uint32_t at = slot_of(caller, function, group, shift);
                    for (; (arc = index[at]); at = (at + 1) & mask) {
                        const struct fp_arc *a = &arcs[arc - 1];
                        if (FP_LIKELY(a->callee == function && a->caller == caller && a->group == group)) break;
                    }
                    if (FP_LIKELY(arc)) {
                        arc--;
                    } else {
                        arc = add_arc(f, caller, function, group);
                        if (arc == UINT32_MAX) return fp_fail(err, FP_E_NOMEM, 0, "the table of call arcs");
                        arcs = f->arcs;
                        index = f->index;
                        shift = f->index_shift;
                        mask = mask_of(shift);
                    }
                    by_function[function].last_arc = arc;
                }
                arcs[arc].active++;
                arcs[arc].calls++;
                by_function[function].active++;
                *++top = (struct frame){now, 0, calls++, arc, function};
            } else if (FP_LIKELY(top->function == function && function)) {
                pop(arcs, by_function, top--, now, calls, &overflowed);
            } else if (function >= cap_functions || !by_function[function].active) {
                f->stats.orphan_exits++;
            } else {
                while (top->function != function) {
                    f->stats.unwound++;
                    pop(arcs, by_function, top--, now, calls, &overflowed);
                }
                pop(arcs, by_function, top--, now, calls, &overflowed);
            }
        }
        t->n = (uint32_t)(top - t->frames) + 1;
        t->last = last;
        t->calls = calls;
        if (overflowed) return fp_fail(err, FP_E_OVERFLOW, 0, "the inclusive time of a call arc");
    }
    return FP_DONE;
}

/* ---- the result ------------------------------------------------------- */

/* Orders `order` by up to three 32-bit keys of the arcs: least significant
 * first, each by 16-bit counting sort.  Stable, linear, no comparison calls. */
static int sort_arcs(const struct fp_arc *arcs, uint32_t n, uint32_t *order, const size_t *keys) {
    uint32_t *other = malloc((size_t)n * sizeof *other), *counts = malloc(65537 * sizeof *counts);
    if (!other || !counts) {
        free(other);
        free(counts);
        return FP_E_NOMEM;
    }
    uint32_t *from = order, *to = other;
    for (int pass = 0; pass < 6; pass++) {
        const uint8_t *key = (const uint8_t *)arcs + keys[pass / 2];
        const unsigned shift = pass % 2 * 16;
        memset(counts, 0, 65537 * sizeof *counts);
#define DIGIT(i) (fp_u32(key + (size_t)(i) * sizeof *arcs) >> shift & 0xffff)
        for (uint32_t i = 0; i < n; i++) counts[DIGIT(i) + 1]++;
        if (n && counts[DIGIT(0) + 1] == n) continue; /* all alike */
        for (uint32_t d = 0; d < 65536; d++) counts[d + 1] += counts[d];
        for (uint32_t i = 0; i < n; i++) to[counts[DIGIT(from[i])]++] = from[i];
#undef DIGIT
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order) memcpy(order, from, (size_t)n * sizeof *order);
    free(other);
    free(counts);
    return 0;
}

int fp_fold_end(struct fp_fold *f, uint64_t ticks_per_second, struct fp_err *err) {
    int overflowed = 0;
    f->ticks_per_second = ticks_per_second;
    f->last_time = 0;
    for (uint32_t i = 0; i < f->cap_threads; i++) {
        struct fp_fold_thread *t = &f->threads[i];
        if (!t->frames) continue;
        switch_to(f, i);
        f->stats.unfinished += t->n - 1;
        for (; t->n > 1; t->n--) pop(f->arcs, f->by_function, t->frames + t->n - 1, t->last, t->calls, &overflowed);
        f->stats.calls += t->calls;
        if (t->seen && t->first < f->first_time) f->first_time = t->first;
        if (t->seen && t->last > f->last_time) f->last_time = t->last;
        free(t->frames);
        t->frames = NULL;
        t->n = 0;
    }
    if (f->first_time > f->last_time) f->first_time = f->last_time;
    if (overflowed) return fp_fail(err, FP_E_OVERFLOW, 0, "the inclusive time of a call arc");
    free(f->index);
    f->index = NULL;
    if (f->into == FP_FOLD_TREE) return FP_DONE;
    size_t nbytes = ((size_t)f->n_arcs + 1) * sizeof(uint32_t);
    f->by_caller = malloc(nbytes);
    f->by_callee = malloc(nbytes);
    if (!f->by_caller || !f->by_callee) return fp_fail(err, FP_E_NOMEM, 0, "the order of the call arcs");
    for (uint32_t i = 0; i < f->n_arcs; i++) f->by_caller[i] = f->by_callee[i] = i;
    const size_t group = offsetof(struct fp_arc, group), caller = offsetof(struct fp_arc, caller),
                 callee = offsetof(struct fp_arc, callee);
    if (sort_arcs(f->arcs, f->n_arcs, f->by_caller, (size_t[]){callee, caller, group}) ||
        sort_arcs(f->arcs, f->n_arcs, f->by_callee, (size_t[]){caller, callee, group}))
        return fp_fail(err, FP_E_NOMEM, 0, "the order of the call arcs");
    return FP_DONE;
}

/* Ticks as nanoseconds, rounded half up; or as they are. */
static int in_units(const struct fp_fold *f, uint64_t ticks, int64_t *value) {
    __extension__ typedef unsigned __int128 u128;
    u128 v = ticks;
    if (f->ticks_per_second) v = (v * 1000000000u + f->ticks_per_second / 2) / f->ticks_per_second;
    if (v > INT64_MAX) return FP_E_OVERFLOW;
    *value = (int64_t)v;
    return 0;
}

static int too_large(struct fp_err *err) { return fp_fail(err, FP_E_OVERFLOW, 0, "a cost beyond 2^63-1"); }

/* Self ticks and calls of the function at by_callee[*at], which moves past it. */
static void function_total(const struct fp_fold *f, uint32_t *at, uint64_t *self, uint64_t *calls) {
    uint32_t function = f->arcs[f->by_callee[*at]].callee;
    *self = *calls = 0;
    for (; *at < f->end && f->arcs[f->by_callee[*at]].callee == function; ++*at) {
        *self += f->arcs[f->by_callee[*at]].self;
        *calls += f->arcs[f->by_callee[*at]].calls;
    }
}

/* First position of `order` whose arc belongs to `group` or a later one. */
static uint32_t lower_bound(const struct fp_fold *f, const uint32_t *order, uint32_t group) {
    uint32_t from = 0, to = f->n_arcs;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (f->arcs[order[middle]].group < group)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int64_t fp_fold_select(struct fp_fold *f, uint32_t group, struct fp_err *err) {
    int64_t n = 0, value;
    f->total[0] = f->total[1] = 0;
    f->group_first = f->first_time;
    f->group_last = f->last_time;
    if (group && group < f->cap_threads) {
        f->group_first = f->threads[group].first;
        f->group_last = f->threads[group].last;
    }
    f->function = 0;
    f->group = group;
    if (f->into == FP_FOLD_TREE) {
        f->at = 0;
        for (uint32_t i = 0; i < f->n_arcs; i++) {
            if (f->arcs[i].group != group) continue;
            if (in_units(f, f->arcs[i].self, &value)) return too_large(err);
            f->total[0] += (uint64_t)value;
            f->total[1] += f->arcs[i].calls;
            n++;
        }
        return n;
    }
    f->at = lower_bound(f, f->by_callee, group);
    f->end = lower_bound(f, f->by_callee, group + 1);
    f->out_at = lower_bound(f, f->by_caller, group);
    for (uint32_t at = f->at; at < f->end; n++) {
        uint64_t self, calls;
        function_total(f, &at, &self, &calls);
        if (in_units(f, self, &value) || __builtin_add_overflow(f->total[0], (uint64_t)value, &f->total[0]))
            return too_large(err);
        f->total[1] += calls;
    }
    if (f->total[0] > INT64_MAX) return too_large(err);
    return n;
}

static void put_position(const struct fp_fold *f, struct fp_batch *out, uint32_t row, uint32_t function) {
    const uint32_t *words = fp_table_row(&f->model->functions, function);
    out->function[row] = function;
    out->file[row] = words[FP_FUNCTION_FILE];
    out->line[row] = words[FP_FUNCTION_LINE];
}

int fp_fold_graph(struct fp_fold *f, struct fp_batch *out, struct fp_err *err) {
    int64_t *calls_column = out->values + out->cap;
    for (;;) {
        /* The calls that the function at hand makes.  Roots' arcs (caller 0) come first: passed over. */
        for (; f->out_at < f->n_arcs; f->out_at++) {
            const struct fp_arc *a = &f->arcs[f->by_caller[f->out_at]];
            if (a->group != f->group || a->caller > f->function) break;
            if (!a->caller) continue;
            if (out->n == out->cap) return FP_FULL;
            uint32_t row = out->n++;
            put_position(f, out, row, a->caller);
            out->kind[row] = FP_CALL;
            out->callee[row] = a->callee;
            out->target_line[row] = fp_table_row(&f->model->functions, a->callee)[FP_FUNCTION_LINE];
            out->count[row] = a->calls;
            if (in_units(f, a->ticks, &out->values[row])) return too_large(err);
            calls_column[row] = (int64_t)a->subcalls;
        }
        if (f->at == f->end) return FP_DONE;
        if (out->n == out->cap) return FP_FULL;
        uint64_t self, calls;
        f->function = f->arcs[f->by_callee[f->at]].callee;
        function_total(f, &f->at, &self, &calls);
        uint32_t row = out->n++;
        put_position(f, out, row, f->function);
        out->kind[row] = FP_COST;
        if (in_units(f, self, &out->values[row])) return too_large(err);
        calls_column[row] = (int64_t)calls;
    }
}

int fp_fold_stacks(struct fp_fold *f, struct fp_batch *out, struct fp_err *err) {
    if (!f->stack_of) {
        f->stack_of = calloc((size_t)f->n_arcs + 1, sizeof *f->stack_of);
        if (!f->stack_of) return fp_fail(err, FP_E_NOMEM, 0, "the stack tree");
    }
    for (; f->at < f->n_arcs; f->at++) {
        const struct fp_arc *a = &f->arcs[f->at];
        if (a->group != f->group) continue;
        if (out->n == out->cap) return FP_FULL;
        /* A caller's node always has the smaller number, so its stack is there. */
        uint32_t line = fp_model_line(f->model, a->callee, fp_table_row(&f->model->functions, a->callee)[FP_FUNCTION_LINE], 0, 0);
        uint32_t frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(f->model, 0, 0, 0, line);
        uint32_t stack = frame == FP_NO_ID ? FP_NO_ID
                                           : fp_model_stack(f->model, a->caller ? f->stack_of[a->caller - 1] : 0, frame);
        if (stack == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, 0, "the stack tree");
        f->stack_of[f->at] = stack;
        uint32_t row = out->n++;
        out->stack[row] = stack;
        out->thread[row] = f->group;
        out->label[row] = 0;
        out->time[row] = 0;
        if (in_units(f, a->self, &out->values[row])) return too_large(err);
        out->values[out->cap + row] = (int64_t)a->calls;
    }
    return FP_DONE;
}
