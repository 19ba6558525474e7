#include "bridges/fold.h"

#include <stdlib.h>

#include "core/buf.h"
#include "core/digits.h"

/* By function. */
struct fp_fold_function {
    uint32_t active;    /* activations on the stack of the thread at hand */
    uint32_t last_arc;  /* the arc by which it was entered last: usually the next one too, */
    uint64_t last_from; /* and known without waiting for the caller's frame: group << 32 | caller */
};

struct frame {
    uint64_t enter;
    uint64_t child;        /* ticks spent in callees so far */
    uint64_t calls_before; /* of the thread, when this frame was entered */
    uint32_t arc;
    uint32_t function;
};

struct fp_fold_thread {
    struct frame *frames; /* frames[0] is a sentinel: function 0, the caller of roots */
    uint32_t n, cap;
    uint64_t first, last; /* times of its records */
    uint64_t calls;
    int32_t seen;
    uint32_t group; /* of the arcs on the stack */
};

#define NOWHERE UINT64_MAX /* no caller: neither a function id nor a tree node */

enum { SLOTS_PER_ARC = 8, FIRST_ARCS = 512, FIRST_SHIFT = 64 - 12, FIRST_FRAMES = 4 /* threads may be millions */ };

struct fp_fold *fp_fold_new(struct fp_model *model, int into, int by) {
    struct fp_fold *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->model = model;
    f->into = into;
    f->by = by;
    f->first_time = UINT64_MAX;
    f->cap_arcs = FIRST_ARCS;
    f->index_shift = FIRST_SHIFT;
    f->arcs = malloc(f->cap_arcs * sizeof *f->arcs);
    f->index = calloc((size_t)1 << (64 - FIRST_SHIFT), sizeof *f->index);
    if (!f->arcs || !f->index || fp_table_init(&f->groups, 2)) {
        fp_fold_free(f);
        return NULL;
    }
    return f;
}

void fp_fold_free(struct fp_fold *f) {
    if (!f) return;
    for (uint32_t i = 0; i < f->cap_threads; i++) free(f->threads[i].frames);
    free(f->threads);
    fp_table_clear(&f->groups);
    free(f->by_function);
    free(f->arcs);
    free(f->index);
    free(f->by_caller);
    free(f->by_callee);
    free(f->stack_of);
    free(f->foreseen);
    free(f);
}

/* Fibonacci hashing; the table is kept sparse, because a probe that has to
 * look at a second slot costs a mispredicted branch. */
static inline uint32_t slot_of(uint32_t caller, uint32_t callee, uint32_t group, unsigned shift) {
    uint64_t key = ((uint64_t)caller << 32 | callee) ^ (uint64_t)group * 0xd6e8feb86659fd93u;
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> shift);
}

static uint32_t mask_of(unsigned shift) {
    return (uint32_t)(((uint64_t)1 << (64 - shift)) - 1);
}

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

#if defined(FP_DEBUG)
enum { MANY_SWITCHED = 8 }; /* so that fuzzers meet it */
#else
enum { MANY_SWITCHED = 1 << 15 }; /* frames, within a batch */
#endif

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
        t->cap = FIRST_FRAMES;
        t->frames = calloc(t->cap, sizeof *t->frames);
        if (!t->frames) return NULL;
        t->n = 1;
        t->first = UINT64_MAX;
    }
    if (f->current < f->cap_threads && f->threads[f->current].frames) {
        count_active(f, &f->threads[f->current], UINT32_MAX); /* minus one */
        f->switched += f->threads[f->current].n;
    }
    count_active(f, t, 1);
    f->switched += t->n;
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

static int function_room(struct fp_fold *f) {
    uint32_t cap = f->model->functions.n;
    cap = cap < 1024 ? 1024 : cap + cap / 2;
    struct fp_fold_function *by_function = realloc(f->by_function, (size_t)cap * sizeof *by_function);
    if (!by_function) return FP_E_NOMEM;
    memset(by_function + f->cap_functions, 0, (size_t)(cap - f->cap_functions) * sizeof *by_function);
    for (uint32_t i = f->cap_functions; i < cap; i++) by_function[i].last_from = NOWHERE;
    f->by_function = by_function;
    f->cap_functions = cap;
    return 0;
}

/* Ends the top frame at `now`. */
static inline void pop(struct fp_arc *arcs, struct fp_fold_function *by_function, struct frame *top, uint64_t now,
                       uint64_t thread_calls, int *overflowed) {
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

/* Once the arcs have outgrown the caches, every lookup waits for memory twice.
 * A batch is known ahead, so the stack is played through once without arcs, to
 * learn which slots of the index will be looked at.  A guess: what unwinding
 * and lost records do to the stack is only followed roughly. */
static void foresee(const struct fp_fold *f, const struct fp_fold_thread *t, const struct fp_batch *in, uint32_t from,
                    uint32_t to, uint32_t group) {
    uint32_t *const entered = f->foreseen + in->cap, n = 0;
    const struct frame *below = t->frames + t->n - 1;
    for (uint32_t i = from; i < to; i++) {
        const uint32_t function = in->function[i];
        if (in->op[i] == FP_OP_ENTER || in->op[i] == FP_OP_ENTER_ARGS) {
            f->foreseen[i] = slot_of(n ? entered[n - 1] : below->function, function, group, f->index_shift);
            entered[n++] = function;
            continue;
        }
        f->foreseen[i] = 0;
        if (in->op[i] > FP_OP_ENTER_ARGS) continue;
        if (n)
            n--;
        else if (below->function == function && function)
            below--;
    }
}

/* The end of the run of equal threads that begins at `from`.  Mostly it is the
 * batch's end, which a loop without exits finds sixteen times as fast. */
static uint32_t run_of(const uint32_t *threads, uint32_t from, uint32_t n) {
    const uint32_t thread = threads[from];
    uint32_t differ = 0, to = from;
    for (uint32_t i = from; i < n; i++) differ |= threads[i] ^ thread;
    if (!differ) return n;
    while (threads[to] == thread) to++;
    return to;
}

/* By CPU: the end of the run of calls and returns on one CPU, which may not be
 * known of other records; *cpu is that CPU, or -1 when there are none. */
static uint32_t cpu_run(const struct fp_batch *in, uint32_t from, uint32_t to, int32_t *cpu) {
    *cpu = -1;
    for (uint32_t i = from; i < to; i++) {
        if (in->op[i] > FP_OP_ENTER_ARGS) continue;
        if (*cpu >= 0 && in->cpu[i] != *cpu) return i;
        *cpu = in->cpu[i];
    }
    return to;
}

/* Ends what is on the stack at `now` and enters it again in another group, without
 * counting calls.  0, FP_E_NOMEM or FP_E_OVERFLOW. */
static int move_to(struct fp_fold *f, struct fp_fold_thread *t, uint32_t group, uint64_t now) {
    int overflowed = 0;
    for (uint32_t i = t->n; i-- > 1;) pop(f->arcs, f->by_function, &t->frames[i], now, t->calls, &overflowed);
    for (uint32_t i = 1; i < t->n; i++) {
        struct frame *frame = &t->frames[i];
        const uint32_t caller = i > 1 ? frame[-1].arc + 1 : 0, mask = mask_of(f->index_shift);
        uint32_t at = slot_of(caller, frame->function, group, f->index_shift), arc;
        for (; (arc = f->index[at]); at = (at + 1) & mask) {
            const struct fp_arc *a = &f->arcs[arc - 1];
            if (a->callee == frame->function && a->caller == caller && a->group == group) break;
        }
        if (!arc && (arc = add_arc(f, caller, frame->function, group) + 1) == 0) return FP_E_NOMEM;
        *frame = (struct frame){now, 0, t->calls, arc - 1, frame->function};
        f->arcs[arc - 1].active++;
        f->by_function[frame->function].active++;
    }
    t->group = group;
    return overflowed ? FP_E_OVERFLOW : 0;
}

struct run {
    uint32_t thread, from, n;
};

static int by_thread(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* The rows of `in` from `first` on into `out`, thread after thread, each in its order.  `out` has room for them. */
static void sort_by_thread(const struct fp_batch *in, uint32_t first, struct run *runs, struct fp_batch *out) {
    uint32_t n_runs = 0;
    for (uint32_t i = first, to; i < in->n; i = to) {
        to = run_of(in->thread, i, in->n);
        runs[n_runs++] = (struct run){in->thread[i], i, to - i};
    }
    qsort(runs, n_runs, sizeof *runs, by_thread);
    for (uint32_t k = 0; k < n_runs; k++) {
        const uint32_t from = runs[k].from, n = runs[k].n;
        memcpy(out->time + out->n, in->time + from, n * sizeof *in->time);
        memcpy(out->function + out->n, in->function + from, n * sizeof *in->function);
        memcpy(out->thread + out->n, in->thread + from, n * sizeof *in->thread);
        memcpy(out->cpu + out->n, in->cpu + from, n * sizeof *in->cpu);
        memcpy(out->op + out->n, in->op + from, n * sizeof *in->op);
        out->n += n;
    }
}

static int put(struct fp_fold *f, const struct fp_batch *in, int sorted, struct fp_err *err);

static int put_by_thread(struct fp_fold *f, const struct fp_batch *in, uint32_t first, struct fp_err *err) {
    const size_t n = in->n - first;
    struct fp_batch out = {.cap = in->cap};
    struct run *runs = malloc(n * sizeof *runs);
    out.time = malloc(n * sizeof *out.time);
    out.function = malloc(n * sizeof *out.function);
    out.thread = malloc(n * sizeof *out.thread);
    out.cpu = malloc(n * sizeof *out.cpu);
    out.op = malloc(n * sizeof *out.op);
    int status = FP_E_NOMEM;
    if (runs && out.time && out.function && out.thread && out.cpu && out.op) {
        sort_by_thread(in, first, runs, &out);
        status = put(f, &out, 1, err);
    } else {
        fp_fail(err, FP_E_NOMEM, 0, "a batch by threads");
    }
    free(runs);
    free(out.time);
    free(out.function);
    free(out.thread);
    free(out.cpu);
    free(out.op);
    return status;
}

enum { MANY_ARCS = 1 << 15, FAR = 24, NEAR = 8 };

int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err) {
    return put(f, in, 0, err);
}

static int put(struct fp_fold *f, const struct fp_batch *in, int sorted, struct fp_err *err) {
    const uint64_t switched = f->switched;
    const int tree = f->into == FP_FOLD_TREE;
    const uint32_t n = in->n;
    const uint64_t *const time = in->time;
    const uint32_t *const functions = in->function, *const threads = in->thread;
    const uint8_t *const ops = in->op;
    /* Rows name functions of the model, so this is room for all of them. */
    if (f->model->functions.n > f->cap_functions && function_room(f))
        return fp_fail(err, FP_E_NOMEM, 0, "the functions' counters");
    for (uint32_t i = 0; i < n;) {
        if (FP_UNLIKELY(f->switched - switched > MANY_SWITCHED && !sorted)) return put_by_thread(f, in, i, err);
        const uint32_t thread = threads[i];
        uint32_t group = f->by & FP_FOLD_BY_THREAD ? thread : 0, to = run_of(threads, i, n);
        struct fp_fold_thread *t = switch_to(f, thread);
        if (!t) return fp_fail(err, FP_E_NOMEM, 0, "the threads' stacks");
        if (!t->seen) t->first = t->last = time[i];
        t->seen = 1;
        if (FP_UNLIKELY(f->by & FP_FOLD_BY_CPU)) {
            int32_t cpu;
            to = cpu_run(in, i, to, &cpu);
            group = cpu < 0 ? t->group : fp_table_intern(&f->groups, (uint32_t[]){group, (uint32_t)cpu});
            if (group == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, 0, "the table of CPUs");
            int status = group == t->group ? 0 : move_to(f, t, group, time[i] > t->last ? time[i] : t->last);
            if (status == FP_E_NOMEM) return fp_fail(err, FP_E_NOMEM, 0, "the table of call paths");
            if (status) return fp_fail(err, FP_E_OVERFLOW, 0, "the inclusive time of a call path");
        }
        const uint64_t from = (uint64_t)group << 32;
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
        const uint32_t *foreseen = NULL;
        if (f->n_arcs > MANY_ARCS && !tree) {
            if (!f->foreseen && !(f->foreseen = malloc((size_t)in->cap * 2 * sizeof *f->foreseen)))
                return fp_fail(err, FP_E_NOMEM, 0, "a batch's lookups");
            foresee(f, t, in, i, to, group);
            foreseen = f->foreseen;
        }
        for (; i < to; i++) {
            if (foreseen && i + FAR < to) {
                __builtin_prefetch(&index[foreseen[i + FAR] & mask]);
                __builtin_prefetch(&arcs[index[foreseen[i + NEAR] & mask]]);
            }
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
                struct fp_fold_function *const known = &by_function[function];
                uint32_t arc = known->last_arc;
                if (known->last_from != (from | caller)) {
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
                    known->last_arc = arc;
                    known->last_from = from | caller;
                }
                arcs[arc].active++;
                arcs[arc].calls++;
                known->active++;
                *++top = (struct frame){now, 0, calls++, arc, function};
            } else if (FP_LIKELY(top->function == function && function)) {
                __builtin_prefetch(&arcs[top[-1].arc]); /* exits come in runs */
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

int fp_fold_rescale(struct fp_batch *b, uint64_t from, uint64_t to, struct fp_err *err) {
    __extension__ typedef unsigned __int128 u128;
    for (uint32_t i = 0; i < b->n; i++) {
        u128 v = (u128)b->time[i] * to / from;
        if (v > UINT64_MAX) return fp_fail(err, FP_E_OVERFLOW, 0, "a time in another clock's ticks");
        b->time[i] = (uint64_t)v;
    }
    return FP_DONE;
}

int fp_fold_end(struct fp_fold *f, struct fp_err *err) {
    int overflowed = 0;
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
    return FP_DONE;
}

int fp_fold_thread_times(const struct fp_fold *f, uint32_t thread, uint64_t *first, uint64_t *last) {
    *first = *last = 0;
    if (thread >= f->cap_threads || !f->threads[thread].seen) return 0;
    *first = f->threads[thread].first;
    *last = f->threads[thread].last;
    return 1;
}

/* ---- spilling and the result: records --------------------------------- */

struct keyed {
    uint64_t key;
    uint32_t group;
    uint32_t arc;
};

/* The arcs' numbers in order of (group, key), into *order.  Byte-wise radix
 * sort, least significant first; bytes that are all alike are passed over, so
 * that few thousand functions take four passes of twelve. */
static int order_by(struct fp_fold *f, int by_caller, uint32_t **order) {
    uint32_t n = 0;
    free(*order);
    *order = NULL;
    for (uint32_t i = 0; i < f->n_arcs; i++) n += f->arcs[i].calls < f->hot;
    *order = malloc(((size_t)n + 1) * sizeof **order);
    struct keyed *from = malloc(((size_t)n + 1) * sizeof *from), *to = malloc(((size_t)n + 1) * sizeof *to);
    uint32_t(*counts)[256] = calloc(12, sizeof *counts);
    int status = *order && from && to && counts ? 0 : FP_E_NOMEM;
    for (uint32_t i = 0, k = 0; !status && i < f->n_arcs; i++) {
        const struct fp_arc *a = &f->arcs[i];
        if (a->calls >= f->hot) continue;
        from[k] = (struct keyed){by_caller ? (uint64_t)a->caller << 32 | a->callee : a->callee, a->group, i};
        for (unsigned d = 0; d < 8; d++) counts[d][from[k].key >> (8 * d) & 255]++;
        k++;
        for (unsigned d = 0; d < 4; d++) counts[8 + d][a->group >> (8 * d) & 255]++;
    }
    for (unsigned d = 0; !status && d < 12 && n; d++) {
#define DIGIT(k) (d < 8 ? (k)->key >> (8 * d) & 255 : (k)->group >> (8 * (d - 8)) & 255)
        if (counts[d][DIGIT(from)] == n) continue;
        uint32_t sum = 0;
        for (unsigned v = 0; v < 256; v++) {
            uint32_t count = counts[d][v];
            counts[d][v] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++) to[counts[d][DIGIT(&from[i])]++] = from[i];
#undef DIGIT
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    for (uint32_t i = 0; !status && i < n; i++) (*order)[i] = from[i].arc;
    free(from);
    free(to);
    free(counts);
    f->n_ordered = n;
    return status;
}

/* Calls from which on an arc is worth its place: at most half of them are. */
static uint64_t hot_calls(const struct fp_fold *f) {
    uint32_t with[256] = {0}, kept = 0;
    for (uint32_t i = 0; i < f->n_arcs; i++) with[f->arcs[i].calls < 255 ? f->arcs[i].calls : 255]++;
    uint64_t hot = 256;
    while (hot > 1 && kept + with[hot - 1] <= f->n_arcs / 2) kept += with[--hot];
    return hot;
}

int fp_fold_order(struct fp_fold *f, int keep_hot) {
    f->next_arc = f->next_node = 0;
    f->hot = keep_hot ? hot_calls(f) : UINT64_MAX;
    return order_by(f, 1, &f->by_caller) || order_by(f, 0, &f->by_callee) ? FP_E_NOMEM : 0;
}

size_t fp_fold_pull_arcs(struct fp_fold *f, uint64_t *to, size_t n) {
    uint64_t *at = to;
    for (; f->next_arc < f->n_ordered && n >= FP_ARC_WIDTH; f->next_arc++) {
        const struct fp_arc *a = &f->arcs[f->by_caller[f->next_arc]];
        if (!a->caller) continue; /* what nobody called is in the nodes */
        at[0] = a->group;
        at[1] = (uint64_t)a->caller << 32 | a->callee;
        at[2] = a->calls;
        at[3] = a->ticks;
        at[4] = a->subcalls;
        at += FP_ARC_WIDTH;
        n -= FP_ARC_WIDTH;
    }
    return (size_t)(at - to);
}

size_t fp_fold_pull_nodes(struct fp_fold *f, uint64_t *to, size_t n) {
    uint64_t *at = to;
    while (f->next_node < f->n_ordered && n >= FP_NODE_WIDTH) {
        const struct fp_arc *first = &f->arcs[f->by_callee[f->next_node]];
        at[0] = first->group;
        at[1] = first->callee;
        at[2] = at[3] = 0;
        for (; f->next_node < f->n_ordered; f->next_node++) {
            const struct fp_arc *a = &f->arcs[f->by_callee[f->next_node]];
            if (a->callee != first->callee || a->group != first->group) break;
            at[2] += a->self;
            at[3] += a->calls;
        }
        at += FP_NODE_WIDTH;
        n -= FP_NODE_WIDTH;
    }
    return (size_t)(at - to);
}

int fp_fold_forget(struct fp_fold *f) {
    /* Arcs that a frame points at stay, under new numbers; hot ones with their sums. */
    uint32_t *fresh = malloc(((size_t)f->n_arcs + 1) * sizeof *fresh);
    if (!fresh) return FP_E_NOMEM;
    memset(fresh, 0xff, (size_t)f->n_arcs * sizeof *fresh);
    for (uint32_t i = 0; i < f->cap_threads; i++)
        for (uint32_t k = 1; f->threads[i].frames && k < f->threads[i].n; k++) fresh[f->threads[i].frames[k].arc] = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        const int hot = f->arcs[i].calls >= f->hot;
        if (fresh[i] == UINT32_MAX && !hot) continue;
        fresh[i] = n;
        f->arcs[n] = f->arcs[i];
        if (!hot) f->arcs[n].calls = f->arcs[n].ticks = f->arcs[n].subcalls = f->arcs[n].self = 0;
        n++;
    }
    for (uint32_t i = 0; i < f->cap_threads; i++)
        for (uint32_t k = 1; f->threads[i].frames && k < f->threads[i].n; k++)
            f->threads[i].frames[k].arc = fresh[f->threads[i].frames[k].arc];
    free(fresh);
    f->n_arcs = n;
    for (uint32_t i = 0; i < f->cap_functions; i++) f->by_function[i].last_from = NOWHERE;
    memset(f->index, 0, ((size_t)mask_of(f->index_shift) + 1) * sizeof *f->index);
    index_arcs(f->arcs, n, f->index, f->index_shift);
    free(f->by_caller);
    free(f->by_callee);
    f->by_caller = f->by_callee = NULL;
    return 0;
}

/* ---- the result: rows ------------------------------------------------- */

/* Ticks as nanoseconds, rounded half up; or as they are. */
static int in_units(uint64_t ticks_per_second, uint64_t ticks, int64_t *value) {
    __extension__ typedef unsigned __int128 u128;
    u128 v = ticks;
    if (ticks_per_second) v = (v * 1000000000u + ticks_per_second / 2) / ticks_per_second;
    if (v > INT64_MAX) return FP_E_OVERFLOW;
    *value = (int64_t)v;
    return 0;
}

static int too_large(struct fp_err *err) {
    return fp_fail(err, FP_E_OVERFLOW, 0, "a cost beyond 2^63-1");
}

int fp_fold_totals(struct fp_fold_out *o, struct fp_err *err) {
    for (;;) {
        if (!o->node_ready) {
            int status = fp_merge_next(o->nodes, err);
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
        if (in_units(o->ticks_per_second, node[2], &value)) return too_large(err);
        o->total[0] += (uint64_t)value;
        o->total[1] += node[3];
        if (o->total[0] > INT64_MAX || o->total[1] > INT64_MAX) return too_large(err);
        o->node_ready = 0;
    }
}

/* The function as the graph names it: one without a file gets o->unknown_file. */
static uint32_t in_graph(const struct fp_fold_out *o, uint32_t function) {
    const uint32_t *words = fp_table_row(&o->model->functions, function);
    if (words[FP_FUNCTION_FILE]) return function;
    return fp_model_function(o->model, words[FP_FUNCTION_OBJECT], o->unknown_file, words[FP_FUNCTION_NAME],
                             words[FP_FUNCTION_SYSTEM_NAME], words[FP_FUNCTION_LINE]);
}

static int put_position(const struct fp_fold_out *o, struct fp_batch *out, uint32_t row, uint32_t function) {
    function = in_graph(o, function);
    if (function == FP_NO_ID) return FP_E_NOMEM;
    const uint32_t *words = fp_table_row(&o->model->functions, function);
    out->function[row] = function;
    out->file[row] = words[FP_FUNCTION_FILE];
    out->line[row] = words[FP_FUNCTION_LINE];
    return 0;
}

int fp_fold_graph(struct fp_fold_out *o, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        /* The calls that the function at hand makes. */
        while (!o->arcs_done) {
            if (!o->arc_ready) {
                int status = fp_merge_next(o->arcs, err);
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
            const uint32_t called = in_graph(o, callee);
            if (called == FP_NO_ID || put_position(o, out, row, caller))
                return fp_fail(err, FP_E_NOMEM, 0, "the function table");
            out->kind[row] = FP_CALL;
            out->callee[row] = called;
            out->target_line[row] = fp_table_row(&o->model->functions, callee)[FP_FUNCTION_LINE];
            out->count[row] = arc[2];
            if (in_units(o->ticks_per_second, arc[3], &out->values[row]) || arc[4] > INT64_MAX) return too_large(err);
            out->values[out->cap + row] = (int64_t)arc[4];
            out->n++;
            o->arc_ready = 0;
        }
        if (!o->node_ready) {
            int status = fp_merge_next(o->nodes, err);
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
        if (put_position(o, out, row, o->function)) return fp_fail(err, FP_E_NOMEM, 0, "the function table");
        out->kind[row] = FP_COST;
        if (in_units(o->ticks_per_second, node[2], &out->values[row]) || node[3] > INT64_MAX) return too_large(err);
        out->values[out->cap + row] = (int64_t)node[3];
        out->n++;
        o->node_ready = 0;
    }
}

int fp_fold_stacks(struct fp_fold *f, uint64_t ticks_per_second, uint32_t *next, struct fp_batch *out,
                   struct fp_err *err) {
    if (!f->stack_of) {
        f->stack_of = calloc((size_t)f->n_arcs + 1, sizeof *f->stack_of);
        if (!f->stack_of) return fp_fail(err, FP_E_NOMEM, 0, "the stack tree");
    }
    for (; *next < f->n_arcs; ++*next) {
        const struct fp_arc *a = &f->arcs[*next];
        if (out->n == out->cap) return FP_FULL;
        /* A caller's node always has the smaller number, so its stack is there. */
        const uint32_t start = fp_table_row(&f->model->functions, a->callee)[FP_FUNCTION_LINE];
        uint32_t line = fp_model_line(f->model, a->callee, start, 0, 0);
        uint32_t frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(f->model, 0, 0, 0, line);
        uint32_t stack =
            frame == FP_NO_ID ? FP_NO_ID : fp_model_stack(f->model, a->caller ? f->stack_of[a->caller - 1] : 0, frame);
        if (stack == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, 0, "the stack tree");
        f->stack_of[*next] = stack;
        if (!a->self && !a->calls) continue; /* was on the stack when the CPU changed, and no more */
        uint32_t thread = a->group, label = 0;
        if (f->by & FP_FOLD_BY_CPU) {
            const uint32_t *group = fp_table_row(&f->groups, a->group);
            uint8_t cpu[FP_DIGITS_ROOM];
            const size_t length = (size_t)(fp_put_decimal(cpu, group[1]) - cpu);
            thread = group[0];
            const uint32_t text = fp_strings_intern(&f->model->strings, cpu, length);
            label = text == FP_NO_ID ? FP_NO_ID : fp_model_label(f->model, 0, f->cpu, text, 0, 0);
            if (label == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, 0, "the table of labels");
        }
        const uint32_t row = out->n;
        out->stack[row] = stack;
        out->thread[row] = thread;
        out->label[row] = label;
        out->time[row] = 0;
        if (in_units(ticks_per_second, a->self, &out->values[row]) || a->calls > INT64_MAX) return too_large(err);
        out->values[out->cap + row] = (int64_t)a->calls;
        out->n++;
    }
    return FP_DONE;
}
