#include "bridges/nest.h"

#include <stdlib.h>

#include "core/array.h"

struct fp_nest_thread {
    uint32_t *calls; /* functions, outermost first */
    uint32_t n, cap;
    uint64_t last;   /* time of the last row */
    uint32_t part;   /* of the last row */
    uint8_t counted; /* its calls are in `entered`, and `active` says how often */
};

struct fp_nest *fp_nest_new(void) {
    struct fp_nest *n = calloc(1, sizeof *n);
    if (n && fp_table_init(&n->entered, 2)) {
        fp_nest_free(n);
        return NULL;
    }
    return n;
}

void fp_nest_free(struct fp_nest *n) {
    if (!n) return;
    for (uint32_t i = 0; i < n->cap_threads; i++) free(n->threads[i].calls);
    free(n->threads);
    fp_table_clear(&n->entered);
    free(n->active);
    free(n);
}

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the open calls of threads");
}

void fp_nest_clock(struct fp_nest *n, uint64_t ticks_per_second) {
    fp_clock_set(&n->clock, ticks_per_second);
}

/* ---- which functions are on the stack ---- */

/* Counts one call more or less.  0 or FP_E_NOMEM. */
static int count(struct fp_nest *n, uint32_t thread, uint32_t function, uint32_t by) {
    const uint32_t row = fp_table_intern(&n->entered, (const uint32_t[]){thread, function});
    if (row == FP_NO_ID || fp_array_zeroed(&n->active, &n->cap_active, (uint64_t)row + 1, sizeof *n->active))
        return FP_E_NOMEM;
    n->active[row] += by;
    return 0;
}

enum { PATIENCE = 4096 };

/* Is there a call of `function`?  Looking for one that is there costs little: the calls above it end now.  Looking
 * through the whole stack for one that is not may be done again and again, so a thread's calls are counted from the
 * time on when that has cost more than all calls together.  1, 0 or FP_E_NOMEM. */
static int is_open(struct fp_nest *n, uint32_t thread, uint32_t function) {
    struct fp_nest_thread *t = &n->threads[thread];
    if (!t->counted) {
        for (uint32_t i = t->n; i-- > 0;)
            if (t->calls[i] == function) return 1;
        n->looked += t->n;
        if (n->looked < n->calls + PATIENCE) return 0;
        for (uint32_t i = 0; i < t->n; i++)
            if (count(n, thread, t->calls[i], 1)) return FP_E_NOMEM;
        t->counted = 1;
    }
    const uint32_t row = fp_table_find(&n->entered, (const uint32_t[]){thread, function});
    return row && n->active[row];
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
        const int status = fp_batch_payload(out, fp_batch_bytes(in, slice), (uint32_t)slice, &out->aux[to]);
        if (status) return status;
    }
    out->n++;
    return 0;
}

static void append_exit(struct fp_batch *out, uint32_t thread, uint32_t function, uint16_t cpu, uint64_t time) {
    const uint32_t to = out->n++;
    out->time[to] = time;
    out->function[to] = function;
    out->thread[to] = thread;
    out->cpu[to] = cpu;
    out->op[to] = FP_OP_EXIT;
}

static int enter(struct fp_nest *n, uint32_t thread, uint32_t function) {
    struct fp_nest_thread *t = &n->threads[thread];
    if (fp_array_room(&t->calls, &t->cap, (uint64_t)t->n + 1, sizeof *t->calls)) return FP_E_NOMEM;
    t->calls[t->n++] = function;
    n->calls++;
    return t->counted ? count(n, thread, function, 1) : 0;
}

/* The innermost call ends. */
static int leave(struct fp_nest *n, uint32_t thread) {
    struct fp_nest_thread *t = &n->threads[thread];
    t->n--;
    return t->counted ? count(n, thread, t->calls[t->n], UINT32_MAX) : 0; /* minus one */
}

int fp_nest_put(struct fp_nest *n, const struct fp_batch *in, uint32_t *from, struct fp_batch *out,
                struct fp_err *err) {
    for (; *from < in->n; ++*from) {
        const uint32_t i = *from, thread = in->thread[i], op = in->op[i], function = in->function[i];
        if (op == FP_OP_BUFFER) continue;
        if (out->n == out->cap) return FP_FULL;
        if (fp_array_zeroed(&n->threads, &n->cap_threads, (uint64_t)thread + 1, sizeof *n->threads))
            return no_memory(err);
        struct fp_nest_thread *const t = &n->threads[thread];
        uint64_t now = fp_clock_ns(&n->clock, in->time[i]);
        if (FP_UNLIKELY(now > INT64_MAX)) return fp_fail_beyond(err, "a time", FP_NO_COLUMN, "2^63 - 1 nanoseconds");
        if (FP_UNLIKELY(now < t->last)) {
            n->clamped += op <= FP_OP_ENTER_ARGS;
            now = t->last;
        }
        t->last = now;
        t->part = in->part;
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            if (enter(n, thread, function)) return no_memory(err);
        } else if (op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT) {
            if (FP_UNLIKELY(!t->n || t->calls[t->n - 1] != function)) {
                const int open = is_open(n, thread, function);
                if (open < 0) return no_memory(err);
                if (!open) {
                    n->orphan_exits++;
                    continue;
                }
                while (t->calls[t->n - 1] != function) {
                    if (out->n == out->cap) return FP_FULL; /* the same exit comes again */
                    append_exit(out, thread, t->calls[t->n - 1], in->cpu[i], now);
                    n->unwound++;
                    if (leave(n, thread)) return no_memory(err);
                }
                if (out->n == out->cap) return FP_FULL;
            }
            if (leave(n, thread)) return no_memory(err);
        }
        const int status = append(out, in, i, now);
        if (status == FP_E_OVERFLOW && out->n) return FP_FULL; /* payloads of an empty batch fit */
        if (status) return no_memory(err);
    }
    return FP_DONE;
}

int fp_nest_end(struct fp_nest *n, struct fp_batch *out, struct fp_err *err) {
    for (; n->ended < n->cap_threads; n->ended++) {
        struct fp_nest_thread *const t = &n->threads[n->ended];
        for (; t->n; n->unfinished++) {
            if (out->n == out->cap || (out->n && out->part != t->part)) return FP_FULL;
            out->part = t->part;
            append_exit(out, n->ended, t->calls[t->n - 1], 0, t->last);
            if (leave(n, n->ended)) return no_memory(err);
        }
    }
    return FP_DONE;
}
