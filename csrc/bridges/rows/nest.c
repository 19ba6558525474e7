#include "bridges/rows/nest.h"

#include "bridges/rows/open_calls.h"

struct fp_nest_thread {
    struct fp_open_calls calls;
    uint64_t last; /* time of the last row */
    uint32_t part; /* of the last row */
};

struct fp_nest *fp_nest_new(void) {
    struct fp_nest *n = fp_made(sizeof *n);
    n->open = fp_have(calloc(1, sizeof *n->open));
    fp_open_init(n->open);
    return n;
}

void fp_nest_free(struct fp_nest *n) {
    for (uint32_t i = 0; i < n->cap_threads; i++) free(n->threads[i].calls.functions);
    if (n->open) fp_open_clear(n->open);
    FP_FREE(n->threads, n->open, n);
}

void fp_nest_clock(struct fp_nest *n, uint64_t ticks_per_second) {
    fp_clock_set(&n->clock, ticks_per_second);
}

/* ---- rows ---- */

static int append(struct fp_batch *out, const struct fp_batch *in, uint32_t i, uint64_t time) {
    const uint32_t to = out->n, op = in->op[i];
    out->time[to] = time;
    out->function[to] = in->function[i];
    out->thread[to] = in->thread[i];
    out->cpu[to] = in->cpu[i];
    out->op[to] = in->op[i];
    if (op == FP_OP_ARGUMENT) out->aux[to] = in->aux[i];
    if (op == FP_OP_CUSTOM || op == FP_OP_TYPED) {
        const uint64_t slice = in->aux[i];
        FP_TRY(fp_batch_payload(out, fp_batch_bytes(in, slice), (uint32_t)slice, &out->aux[to]));
    }
    out->n++;
    return 0;
}

/* Appends the rows from `from` on, up to one that changes more than its time or needs memory.  Returns how many. */
static uint32_t put_nested(struct fp_nest *n, const struct fp_batch *in, uint32_t from, struct fp_batch *out) {
    const uint32_t to = out->n, most = in->n - from < out->cap - to ? in->n - from : out->cap - to;
    const uint64_t *const times = in->time + from, *const arguments = in->aux + from;
    const uint32_t *const functions = in->function + from, *const threads = in->thread + from;
    const uint8_t *const ops = in->op + from;
    uint64_t *const to_time = out->time + to, *const to_argument = out->aux + to;
    struct fp_clock clock = n->clock;
    struct fp_nest_thread *t = NULL;
    uint64_t entered = 0;
    uint32_t i = 0;
    for (; i < most; i++) {
        const uint8_t op = ops[i];
        if (op > FP_OP_ARGUMENT) break;
        if (!i || threads[i] != threads[i - 1]) {
            if (threads[i] >= n->cap_threads) break;
            t = &n->threads[threads[i]];
            t->part = in->part;
        }
        struct fp_open_calls *const calls = &t->calls;
        const uint64_t now = fp_clock_ns(&clock, times[i]);
        if (now > INT64_MAX || now < t->last || calls->counted) break;
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            if (calls->n == calls->cap) break;
            calls->functions[calls->n++] = functions[i];
            entered++;
        } else if (op == FP_OP_ARGUMENT) {
            to_argument[i] = arguments[i];
        } else if (calls->n && calls->functions[calls->n - 1] == functions[i]) {
            calls->n--;
        } else {
            break;
        }
        to_time[i] = t->last = now;
    }
    n->clock = clock;
    n->open->calls += entered;
    memcpy(out->function + to, functions, i * sizeof *functions);
    memcpy(out->thread + to, threads, i * sizeof *threads);
    memcpy(out->cpu + to, in->cpu + from, i * sizeof *in->cpu);
    memcpy(out->op + to, ops, i);
    out->n += i;
    return i;
}

int fp_nest_put(struct fp_nest *n, const struct fp_batch *in, uint32_t *from, struct fp_batch *out,
                struct fp_err *err) {
    for (; *from < in->n; ++*from) {
        *from += put_nested(n, in, *from, out);
        if (*from == in->n) break;
        const uint32_t i = *from, thread = in->thread[i], op = in->op[i], function = in->function[i];
        if (op == FP_OP_BUFFER) continue;
        if (out->n == out->cap) return FP_FULL;
        struct fp_nest_thread *const t = FP_AT(n->threads, n->cap_threads, thread);
        struct fp_open_calls *const calls = &t->calls;
        uint64_t now = fp_clock_ns(&n->clock, in->time[i]);
        if (FP_UNLIKELY(now > INT64_MAX)) return fp_fail_beyond(err, "a time", FP_NO_COLUMN, "2^63 - 1 nanoseconds");
        if (FP_UNLIKELY(now < t->last)) {
            n->clamped += op <= FP_OP_ENTER_ARGS;
            now = t->last;
        }
        t->last = now;
        t->part = in->part;
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            fp_open_enter(n->open, calls, thread, function);
        } else if (op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT) {
            if (FP_UNLIKELY(!calls->n || calls->functions[calls->n - 1] != function)) {
                if (!fp_open_has(n->open, calls, thread, function)) {
                    n->orphan_exits++;
                    continue;
                }
                while (calls->functions[calls->n - 1] != function) {
                    if (out->n == out->cap) return FP_FULL; /* the same exit comes again */
                    fp_batch_event(out, now, FP_OP_EXIT, calls->functions[calls->n - 1], thread, in->cpu[i]);
                    n->unwound++;
                    fp_open_leave(n->open, calls, thread);
                }
                if (out->n == out->cap) return FP_FULL;
            }
            fp_open_leave(n->open, calls, thread);
        }
        const int status = append(out, in, i, now);
        if (status == FP_E_OVERFLOW && out->n) return FP_FULL; /* payloads of an empty batch fit */
        if (status) return fp_no_memory(err);
    }
    return FP_DONE;
}

int fp_nest_end(struct fp_nest *n, struct fp_batch *out) {
    for (; n->ended < n->cap_threads; n->ended++) {
        struct fp_nest_thread *const t = &n->threads[n->ended];
        struct fp_open_calls *const calls = &t->calls;
        for (; calls->n; n->unfinished++) {
            if (out->n == out->cap || (out->n && out->part != t->part)) return FP_FULL;
            out->part = t->part;
            fp_batch_event(out, t->last, FP_OP_EXIT, calls->functions[calls->n - 1], n->ended, 0);
            fp_open_leave(n->open, calls, n->ended);
        }
    }
    return FP_DONE;
}
