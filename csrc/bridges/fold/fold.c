#include "bridges/fold/fold_private.h"

enum { FIRST_FRAMES = 4 }; /* threads may be millions */

struct fp_fold *fp_fold_new(struct fp_model *model, int into, int by) {
    struct fp_fold *f = fp_made(sizeof *f);
    f->model = model;
    f->into = into;
    f->by = by;
    f->first_time = UINT64_MAX;
    f->hard_limit = f->soft_limit = UINT32_MAX;
    f->names = fp_have(calloc(1, sizeof *f->names));
    f->names->model = model;
    fp_fold_arcs_init(f);
    fp_table_init(&f->groups, FP_GROUP_WIDTH);
    if (by & FP_FOLD_DURATIONS) fp_durations_begin(&f->durations);
    return f;
}

void fp_fold_free(struct fp_fold *f) {
    for (uint32_t i = 0; i < f->cap_threads; i++) free(f->threads[i].frames);
    fp_table_clear(&f->groups);
    fp_durations_free(f->durations);
    fp_fold_drop(f);
    if (f->names) fp_name_order_clear(f->names);
    FP_FREE(f->threads, f->by_function, f->inclusive, f->by_caller, f->nodes, f->called, f->predicted, f->names,
            f->group_ranks, f->groups_in_order, f->group_as, f->child, f->sibling, f);
}

/* `active` of arcs and functions counts one thread at a time, so that two threads in the same function are not
 * recursion. */
static void count_active(struct fp_fold *f, const struct fp_fold_thread *t, uint32_t by) {
    for (uint32_t i = 1; i < t->n; i++) {
        f->arcs[t->frames[i].arc].active += by;
        f->by_function[t->frames[i].function].active += by;
    }
}

#if defined(FP_DEBUG)
enum { MANY_SWITCHED = 8 }; /* so that fuzzers reach it */
#else
enum { MANY_SWITCHED = 1 << 15 }; /* frames, within a batch */
#endif

static struct fp_fold_thread *switch_to(struct fp_fold *f, uint32_t thread) {
    struct fp_fold_thread *t = &f->threads[thread];
    if (t->frames && thread == f->current) return t;
    if (!t->frames) {
        t->cap = FIRST_FRAMES;
        t->frames = fp_have(calloc(t->cap, sizeof *t->frames));
        t->n = 1;
        t->first = UINT64_MAX;
    }
    if (f->current < f->n_threads && f->threads[f->current].frames) {
        count_active(f, &f->threads[f->current], UINT32_MAX); /* minus one */
        f->switched += f->threads[f->current].n;
    }
    count_active(f, t, 1);
    f->switched += t->n;
    f->current = thread;
    return t;
}

/* The function that has only the name of another. */
static uint32_t only_name(struct fp_fold *f, uint32_t function) {
    uint32_t name = fp_table_row(&f->model->functions, function)[FP_FUNCTION_NAME];
    if (!name) name = fp_strings_intern(&f->model->strings, "[unknown]", 9);
    return fp_model_function(f->model, 0, 0, name, 0, 0);
}

static void register_threads(struct fp_fold *f) {
    const struct fp_table *threads = &f->model->threads;
    fp_array_zeroed(&f->threads, &f->cap_threads, threads->n, sizeof *f->threads);
    for (; f->n_threads < threads->n; f->n_threads++)
        memcpy(f->threads[f->n_threads].row, fp_table_row(threads, f->n_threads), sizeof f->threads->row);
}

int fp_fold_register(struct fp_fold *f, const struct fp_fold *like) {
    register_threads(f);
    const uint32_t had = f->n_functions, n = like ? like->n_functions : f->model->functions.n;
    fp_array_zeroed(&f->by_function, &f->cap_functions, n, sizeof *f->by_function);
    for (uint32_t i = had; i < n; i++) {
        const uint32_t as = like ? like->by_function[i].as : f->by & FP_FOLD_BY_NAME ? only_name(f, i) : i;
        f->by_function[i].last_from = FP_FOLD_NO_CALLER;
        f->by_function[i].as = as;
        f->n_functions = i + 1;
    }
    if (f->durations) fp_durations_room(f->durations, f->n_functions);
    if (!(f->by & (FP_FOLD_INCLUSIVE | FP_FOLD_DURATIONS))) return 0;
    return fp_array_zeroed(&f->inclusive, &f->cap_inclusive, f->cap_functions, 2 * sizeof *f->inclusive);
}

/* The group of a thread, or of its part on one CPU. */
static uint32_t group_of(struct fp_fold *f, uint32_t thread, uint32_t cpu) {
    const uint32_t by = (uint32_t)f->by & FP_FOLD_BY_THREAD;
    if (f->into == FP_FOLD_ARCS) return by ? thread : 0;
    if (!by && !(f->by & FP_FOLD_BY_CPU)) return 0;
    const uint32_t *row = f->threads[thread].row;
    uint32_t group[FP_GROUP_WIDTH] = {[FP_GROUP_CPU] = cpu};
    if (by & FP_FOLD_BY_PID) group[FP_GROUP_PID] = row[FP_THREAD_PID];
    if (by & FP_FOLD_BY_TID) group[FP_GROUP_TID] = row[FP_THREAD_TID];
    if (by == FP_FOLD_BY_THREAD) group[FP_GROUP_INPUT] = row[FP_THREAD_INPUT];
    return fp_table_intern(&f->groups, group);
}

/* Errors: a sum exceeded 2^64 - 1; no memory for a duration. */
enum { TICKS = 1, SELF = 2 };

/* Not inlined, so that the stack machine without durations keeps its registers. */
__attribute__((noinline, cold)) static void keep_duration(struct fp_durations *d, uint32_t function, uint64_t ticks) {
    fp_durations_add(d, function, ticks);
}

/* The state that playing rows changes.  Its functions are inlined, so that it stays in registers: the compiler cannot
 * know that a frame does not alias the fold.  Slow paths write back and reload. */
struct player {
    struct fp_fold_arc *arcs;
    const uint32_t *index;
    unsigned shift;
    uint32_t mask, group, n_functions;
    struct fp_fold_function *by_function;
    uint64_t *inclusive;            /* of the fold */
    struct fp_durations *durations; /* of the fold */
    struct fp_fold_frame *top, *limit;
    uint64_t calls; /* of the thread */
    int tree, failed;
};

FP_INLINE void reload_arcs(struct player *p, const struct fp_fold *f) {
    p->arcs = f->arcs;
    p->index = f->index;
    p->shift = f->index_shift;
    p->mask = fp_fold_mask(p->shift);
}

FP_INLINE struct player player_of(const struct fp_fold *f, const struct fp_fold_thread *t, uint32_t group) {
    struct player p = {.group = group,
                       .n_functions = f->n_functions,
                       .by_function = f->by_function,
                       .inclusive = f->inclusive,
                       .durations = f->durations,
                       .top = t->frames + t->n - 1,
                       .limit = t->frames + t->cap - 1,
                       .calls = t->calls,
                       .tree = f->into == FP_FOLD_TREE};
    reload_arcs(&p, f);
    return p;
}

/* Adds up a call of `function`, by the arc `a`, that took `ticks`; `calls`: itself and those within it. */
FP_INLINE void end_call(struct player *p, struct fp_fold_arc *a, uint32_t function, uint64_t ticks, uint64_t self,
                        uint64_t calls) {
    uint64_t *const inclusive = p->inclusive;
    if (FP_UNLIKELY(inclusive != NULL)) {
        if (!p->by_function[function].active) {
            uint64_t *const sums = inclusive + 2 * (size_t)function;
            p->failed |= __builtin_add_overflow(sums[FP_FOLD_TIME], ticks, &sums[FP_FOLD_TIME]) * TICKS;
            sums[FP_FOLD_CALLS] += calls;
        }
        if (FP_UNLIKELY(p->durations != NULL)) keep_duration(p->durations, function, ticks);
    }
    const int self_overflows = __builtin_add_overflow(a->self, self, &a->self);
    if (p->tree) p->failed |= self_overflows * SELF; /* else too_long() does not ask */
    if (FP_LIKELY(a->active == 0)) {
        if (FP_UNLIKELY(__builtin_add_overflow(a->ticks, ticks, &a->ticks))) p->failed |= TICKS;
        a->subcalls += calls;
    }
}

/* Ends the top frame at `now`. */
FP_INLINE void pop(struct player *p, struct fp_fold_frame *top, uint64_t now) {
    struct fp_fold_arc *a = &p->arcs[top->arc];
    const uint64_t ticks = now - top->enter;
    p->by_function[top->function].active--;
    a->active--;
    end_call(p, a, top->function, ticks, ticks - top->child, p->calls - top->calls_before);
    top[-1].child += ticks;
}

FP_INLINE int is_arc(const struct fp_fold_arc *a, uint32_t caller, uint32_t callee, uint32_t group) {
    return a->callee == callee && a->caller == caller && a->group == group;
}

/* The number of the arc from `caller` to `callee`. */
FP_INLINE uint32_t arc_of(struct fp_fold *f, struct player *p, uint32_t caller, uint32_t callee) {
    uint32_t at = fp_fold_slot(caller, callee, p->group, p->shift), arc = 1;
    if (p->tree) {
        arc = p->index[fp_fold_near(caller, callee, p->mask)];
        if (arc && is_arc(&p->arcs[arc - 1], caller, callee, p->group)) return arc - 1;
    }
    for (; arc && (arc = p->index[at]); at = (at + 1) & p->mask)
        if (FP_LIKELY(is_arc(&p->arcs[arc - 1], caller, callee, p->group))) return arc - 1;
    arc = fp_fold_arc(f, caller, callee, p->group);
    reload_arcs(p, f);
    return arc;
}

/* An arc's inclusive ticks contain its self ticks.  Of a context only self ticks are kept, because the spilled ones are
 * not known here. */
static int too_long(const struct fp_fold *f, int failed) {
    return failed & (f->into == FP_FOLD_TREE ? SELF : TICKS);
}

int fp_fold_fail_too_long(const struct fp_fold *f, struct fp_err *err) {
    if (f->into == FP_FOLD_TREE) return fp_fail_beyond(err, FP_FOLD_PATH_COST, FP_FOLD_TIME, "2^63 - 1");
    return fp_fail_beyond(err, FP_FOLD_TIME_OF_CALLS, FP_FOLD_TIME, "2^64 - 1 ticks");
}

/* Once the arcs have outgrown the caches, every lookup waits for memory twice.
 * A batch is known in advance, so its stack is first played without arcs, to prefetch the slots of the index that will
 * be probed.  This is a guess: unwinding and lost records are followed only roughly. */
static void predict(const struct fp_fold *f, const struct fp_fold_thread *t, const struct fp_batch *in, uint32_t from,
                    uint32_t to, uint32_t group) {
    uint32_t *const entered = f->predicted + in->cap, n = 0;
    const struct fp_fold_frame *below = t->frames + t->n - 1;
    for (uint32_t i = from; i < to; i++) {
        const uint32_t function = in->function[i];
        if (in->op[i] == FP_OP_ENTER || in->op[i] == FP_OP_ENTER_ARGS) {
            f->predicted[i] = fp_fold_slot(n ? entered[n - 1] : below->function, function, group, f->index_shift);
            entered[n++] = function;
            continue;
        }
        f->predicted[i] = 0;
        if (in->op[i] > FP_OP_ENTER_ARGS) continue;
        if (n)
            n--;
        else if (below->function == function && function)
            below--;
    }
}

/* Arcs are shorter than a line of the cache, so two lines may have parts of one.  `arc`: its number + 1 or 0: none. */
FP_INLINE void prefetch_arc(const struct player *p, uint32_t arc) {
    const char *const at = (const char *)&p->arcs[arc ? arc - 1 : 0];
    __builtin_prefetch(at);
    __builtin_prefetch(at + sizeof *p->arcs - 1);
}

/* The end of the run of equal threads that begins at `from`.  Long runs are compared in blocks, in loops without exits;
 * where threads alternate, only the next row is compared. */
static uint32_t run_of(const uint32_t *threads, uint32_t from, uint32_t n) {
    enum { BLOCK = 256 };
    const uint32_t thread = threads[from];
    uint32_t to = from + 1;
    if (to < n && threads[to] != thread) return to;
    for (; n - to >= BLOCK; to += BLOCK) {
        const uint32_t *const block = threads + to; /* indexed from 0, or an index could wrap and loads stay single */
        uint32_t differ = 0;
        for (uint32_t i = 0; i < BLOCK; i++) differ |= block[i] ^ thread;
        if (differ) break;
    }
    while (to < n && threads[to] == thread) to++;
    return to;
}

/* By CPU: the end of the run of calls and returns on one CPU, *cpu.  Other records may lack a CPU and belong to the
 * previous run; at the start of a batch they are a run with *cpu -1. */
static uint32_t cpu_run(const struct fp_batch *in, uint32_t from, uint32_t to, int32_t *cpu) {
    const int known = in->op[from] <= FP_OP_ENTER_ARGS;
    *cpu = known ? in->cpu[from] : -1;
    uint32_t i = from + 1;
    while (i < to && (in->op[i] > FP_OP_ENTER_ARGS || (known && in->cpu[i] == *cpu))) i++;
    return i;
}

/* Ends the frames on the stack at `now` and enters them again in another group, without counting calls.  0 or
 * FP_E_OVERFLOW. */
static int move_to(struct fp_fold *f, struct fp_fold_thread *t, uint32_t group, uint64_t now) {
    struct player p = player_of(f, t, group);
    while (p.top != t->frames) pop(&p, p.top--, now);
    for (uint32_t i = 1; i < t->n; i++) {
        struct fp_fold_frame *frame = &t->frames[i];
        const uint32_t caller = i > 1 ? frame[-1].arc + 1 : 0;
        const uint32_t arc = arc_of(f, &p, caller, p.by_function[frame->function].as);
        *frame = (struct fp_fold_frame){now, 0, t->calls, arc, frame->function};
        p.arcs[arc].active++;
        p.by_function[frame->function].active++;
    }
    t->group = group;
    return too_long(f, p.failed) ? FP_E_OVERFLOW : 0;
}

/* Copies the rows of `in` from `first` on to `out`, thread by thread, each in order.  `out` and `rows` have room for
 * them. */
static void sort_by_thread(const struct fp_batch *in, uint32_t first, struct fp_keyed *rows, struct fp_batch *out) {
    const uint32_t n = in->n - first;
    for (uint32_t i = 0; i < n; i++) rows[i] = (struct fp_keyed){.key = in->thread[first + i], .item = first + i};
    fp_sort_keyed(rows, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = rows[i].item;
        out->time[i] = in->time[from];
        out->function[i] = in->function[from];
        out->thread[i] = in->thread[from];
        out->cpu[i] = in->cpu[from];
        out->op[i] = in->op[from];
    }
    out->n = n;
}

static int put(struct fp_fold *f, const struct fp_batch *in, int sorted, struct fp_err *err);

static int put_by_thread(struct fp_fold *f, const struct fp_batch *in, uint32_t first, struct fp_err *err) {
    const size_t n = in->n - first;
    struct fp_batch out = {.cap = in->cap};
    struct fp_keyed *rows = fp_scratch(n, sizeof *rows);
    out.time = fp_scratch(n, sizeof *out.time);
    out.function = fp_scratch(n, sizeof *out.function);
    out.thread = fp_scratch(n, sizeof *out.thread);
    out.cpu = fp_scratch(n, sizeof *out.cpu);
    out.op = fp_scratch(n, sizeof *out.op);
    sort_by_thread(in, first, rows, &out);
    const int status = put(f, &out, 1, err);
    fp_scratch_free(rows);
    return status;
}

uint32_t fp_fold_shares(const struct fp_batch *in, const struct fp_shares *shares, uint8_t *wanted, uint32_t *next) {
    uint32_t i = *next;
    for (; i < in->n; i = run_of(in->thread, i, in->n)) {
        const uint32_t share = fp_share_of(shares, in->thread[i]);
        if (share == FP_NO_ID) break;
        wanted[share] = 1;
    }
    *next = i;
    return i < in->n ? in->thread[i] : FP_NO_ID;
}

enum { MANY_ARCS = 1 << 15, FAR = 48, NEAR = 16 };

int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err) {
    const uint32_t had = f->n_arcs;
    const uint64_t taken = f->n_taken;
    if (!f->stats.cpus) f->stats.cpus = fp_batch_cpus(in) != 0;
    const int status = put(f, in, 0, err);
    if (status < 0) return status;
    /* If over a quarter of the rows created arcs, keeping them does not pay. */
    const int gains_little = f->n_arcs > f->soft_limit && f->n_arcs - had > (f->n_taken - taken) / 4;
    return f->n_arcs > f->hard_limit || gains_little ? FP_FULL : FP_DONE;
}

int fp_fold_feed(struct fp_fold *f, struct fp_feed *feed, struct fp_err *err) {
    for (;;) {
        feed->status = feed->fill(feed);
        if (feed->status < 0 || feed->status == FP_NEEDS) return FP_DONE;
        const int status = fp_fold_put(f, feed->out, err);
        feed->n_rows += feed->out->n;
        fp_batch_reset(feed->out);
        if (status != FP_DONE || feed->status == FP_DONE) return status;
    }
}

/* The arc by which the top frame calls `function`.  `many`: the last arc of a function is seldom its next one. */
FP_INLINE uint32_t next_arc(struct fp_fold *f, struct player *p, uint32_t function, int many) {
    const uint32_t caller = FP_LIKELY(!p->tree) ? p->top->function : p->top->function ? p->top->arc + 1 : 0;
    const uint64_t from = (uint64_t)p->group << 32 | caller;
    struct fp_fold_function *const known = &p->by_function[function];
    if (!many && known->last_from == from) return known->last_arc;
    const uint32_t arc = arc_of(f, p, caller, known->as);
    if (!many) {
        known->last_arc = arc;
        known->last_from = from;
    }
    known->entered = 1;
    return arc;
}

FP_INLINE void enter(struct fp_fold_thread *t, struct player *p, uint32_t function, uint32_t arc, uint64_t now) {
    if (FP_UNLIKELY(p->top == p->limit)) {
        const size_t depth = (size_t)(p->top - t->frames);
        fp_array_room(&t->frames, &t->cap, (uint64_t)t->cap + 1, sizeof *t->frames);
        p->top = t->frames + depth;
        p->limit = t->frames + t->cap - 1;
    }
    p->arcs[arc].active++;
    p->arcs[arc].calls++;
    p->by_function[function].active++;
    *++p->top = (struct fp_fold_frame){now, 0, p->calls++, arc, function};
}

/* Enters a function that the next row leaves: without a frame, for whose memory the exit would wait. */
FP_INLINE void call_leaf(struct player *p, uint32_t function, uint32_t arc, uint64_t ticks) {
    p->calls++;
    p->arcs[arc].calls++;
    end_call(p, &p->arcs[arc], function, ticks, ticks, 1);
    p->top->child += ticks;
}

FP_INLINE void leave(struct fp_fold *f, struct player *p, uint32_t function, uint64_t now) {
    if (FP_LIKELY(p->top->function == function && function)) {
        __builtin_prefetch(&p->arcs[p->top[-1].arc]); /* exits come in runs */
        pop(p, p->top--, now);
    } else if (function >= p->n_functions || !p->by_function[function].active) {
        f->stats.orphan_exits++;
    } else {
        while (p->top->function != function) {
            f->stats.unwound++;
            pop(p, p->top--, now);
        }
        pop(p, p->top--, now);
    }
}

/* Plays rows i to `to`.  `predicted`: the slots of predict(), or NULL.  Inlined once for each kind of fold, so that the
 * usual one, `p` having constants, does without the tests of the others. */
FP_INLINE void play_rows(struct fp_fold *f, struct fp_fold_thread *t, struct player *p, const struct fp_batch *in,
                         size_t i, const size_t to, const uint32_t *predicted) {
    const uint64_t *const time = in->time;
    const uint32_t *const functions = in->function;
    const uint8_t *const ops = in->op;
    uint64_t last = t->last;
    for (; i < to; i++) {
        if (predicted && i + FAR < to) {
            __builtin_prefetch(&p->index[predicted[i + FAR] & p->mask]);
            prefetch_arc(p, p->index[predicted[i + NEAR] & p->mask]);
        }
        const uint8_t op = ops[i];
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
            const uint32_t function = functions[i], arc = next_arc(f, p, function, predicted != NULL);
            if (!predicted && i + 1 < to && ops[i + 1] == FP_OP_EXIT && functions[i + 1] == function && function &&
                time[i + 1] >= now) {
                last = time[++i];
                call_leaf(p, function, arc, last - now);
            } else {
                enter(t, p, function, arc, now);
            }
        } else {
            leave(f, p, functions[i], now);
        }
    }
    t->last = last;
}

/* Plays rows i to `to`, all of one thread and one group.  0 or an error. */
static int play(struct fp_fold *f, struct fp_fold_thread *t, const struct fp_batch *in, uint32_t i, uint32_t to,
                uint32_t group, struct fp_err *err) {
    struct player p = player_of(f, t, group);
    if (f->n_arcs > MANY_ARCS && !p.tree) {
        fp_array_room(&f->predicted, &f->cap_predicted, (uint64_t)in->cap * 2, sizeof *f->predicted);
        predict(f, t, in, i, to, group);
        play_rows(f, t, &p, in, i, to, f->predicted);
    } else {
        play_rows(f, t, &p, in, i, to, NULL);
    }
    t->n = (uint32_t)(p.top - t->frames) + 1;
    t->calls = p.calls;
    return too_long(f, p.failed) ? fp_fold_fail_too_long(f, err) : 0;
}

/* Makes `thread` the current one for its rows from row i on. */
static struct fp_fold_thread *begin_thread(struct fp_fold *f, const struct fp_batch *in, uint32_t i) {
    struct fp_fold_thread *t = switch_to(f, in->thread[i]);
    if (t->seen) return t;
    t->first = t->last = in->time[i];
    t->own = group_of(f, in->thread[i], 0);
    t->seen = 1;
    return t;
}

/* By CPU: moves the stack to the group of the CPU that row i is on.  *to becomes the end of the rows on it.  0 or an
 * error. */
static int begin_cpu(struct fp_fold *f, struct fp_fold_thread *t, const struct fp_batch *in, uint32_t i, uint32_t *to,
                     struct fp_err *err) {
    int32_t cpu;
    *to = cpu_run(in, i, *to, &cpu);
    const uint32_t group = cpu < 0 ? t->group : group_of(f, in->thread[i], (uint32_t)cpu);
    const int status = group == t->group ? 0 : move_to(f, t, group, in->time[i] > t->last ? in->time[i] : t->last);
    return status ? fp_fold_fail_too_long(f, err) : 0;
}

static int put(struct fp_fold *f, const struct fp_batch *in, int sorted, struct fp_err *err) {
    const uint64_t switched = f->switched;
    for (uint32_t i = 0, to; i < in->n; i = to) {
        if (FP_UNLIKELY(f->switched - switched > MANY_SWITCHED && !sorted)) return put_by_thread(f, in, i, err);
        to = run_of(in->thread, i, in->n);
        if (FP_UNLIKELY(f->shares != NULL) && fp_share_of(f->shares, in->thread[i]) != f->share) continue;
        struct fp_fold_thread *t = begin_thread(f, in, i);
        f->n_taken += to - i;
        uint32_t group = t->own;
        if (FP_UNLIKELY(f->by & FP_FOLD_BY_CPU)) {
            FP_TRY(begin_cpu(f, t, in, i, &to, err));
            group = t->group;
        }
        FP_TRY(play(f, t, in, i, to, group, err));
    }
    return FP_DONE;
}

int fp_fold_rescale(struct fp_batch *b, uint64_t from, uint64_t to, struct fp_err *err) {
    __extension__ typedef unsigned __int128 u128;
    for (uint32_t i = 0; i < b->n; i++) {
        u128 v = (u128)b->time[i] * to / from;
        if (v > UINT64_MAX)
            return fp_fail_beyond(err, "a time in ticks of the first input's clock", FP_NO_COLUMN, "2^64 - 1");
        b->time[i] = (uint64_t)v;
    }
    return FP_DONE;
}

int fp_fold_end(struct fp_fold *f, struct fp_err *err) {
    int overflowed = 0;
    f->last_time = 0;
    for (uint32_t i = 0; i < f->n_threads; i++) {
        struct fp_fold_thread *t = &f->threads[i];
        if (t->seen && t->first < f->first_time) f->first_time = t->first;
        if (t->seen && t->last > f->last_time) f->last_time = t->last;
        if (!t->frames) continue;
        switch_to(f, i);
        f->stats.unfinished += t->n - 1;
        struct player p = player_of(f, t, t->own);
        p.durations = NULL;
        while (p.top != t->frames) pop(&p, p.top--, t->last);
        overflowed |= p.failed;
        f->stats.calls += t->calls;
        free(t->frames);
        t->frames = NULL;
        t->n = 0;
    }
    if (f->first_time > f->last_time) f->first_time = f->last_time;
    for (uint32_t i = 0; i < f->n_functions && f->by & FP_FOLD_BY_NAME; i++) {
        const uint32_t *row = fp_table_row(&f->model->functions, i);
        f->stats.placed +=
            f->by_function[i].entered && (row[FP_FUNCTION_OBJECT] || row[FP_FUNCTION_FILE] || row[FP_FUNCTION_LINE]);
    }
    if (f->durations) fp_durations_end(f->durations);
    return too_long(f, overflowed) ? fp_fold_fail_too_long(f, err) : FP_DONE;
}

uint32_t fp_fold_next_thread(const struct fp_fold *f, uint32_t after) {
    for (uint32_t i = after + 1; i < f->n_threads; i++)
        if (f->threads[i].seen) return i;
    return 0;
}

int fp_fold_thread_times(const struct fp_fold *f, uint32_t thread, uint64_t *first, uint64_t *last) {
    *first = *last = 0;
    if (thread >= f->n_threads || !f->threads[thread].seen) return 0;
    *first = f->threads[thread].first;
    *last = f->threads[thread].last;
    return 1;
}
