#include "bridges/spans.h"

#include <stdlib.h>
#include <string.h>

#include "bridges/common.h"
#include "core/array.h"

struct open_call {
    uint64_t start;
    uint32_t function;
};

struct fp_spans_thread {
    struct open_call *open;
    uint32_t n, cap;
    uint64_t last_time;
};

struct fp_spans *fp_spans_new(const struct fp_model *model, uint32_t room) {
    struct fp_spans *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = model;
    s->room = room;
    s->first_time = UINT64_MAX;
    return s;
}

void fp_spans_free(struct fp_spans *s) {
    if (!s) return;
    for (uint32_t i = 0; i < s->cap_threads; i++) free(s->threads[i].open);
    free(s->threads);
    free(s->spans);
    free(s);
}

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the calls of a timeline");
}

static void leave_out_short(struct fp_spans *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->spans[i].duration >= s->pixel) s->spans[n++] = s->spans[i];
    s->left_out += s->n - n;
    s->n = n;
}

/* Ends the innermost call of a thread.  0 or FP_E_NOMEM. */
static int end_call(struct fp_spans *s, uint32_t thread, uint64_t time) {
    struct fp_spans_thread *t = &s->threads[thread];
    const struct open_call *call = &t->open[--t->n];
    const uint64_t duration = time - call->start;
    if (duration < s->pixel) {
        s->left_out++;
        return 0;
    }
    while (s->n >= s->room) {
        if (s->pixel > UINT64_MAX / 2) { /* as many calls last for centuries: of a damaged clock, any will do */
            s->left_out++;
            return 0;
        }
        s->pixel += s->pixel / 4 + 1;
        leave_out_short(s);
    }
    if (duration < s->pixel) {
        s->left_out++;
        return 0;
    }
    if (fp_array_room(&s->spans, &s->cap, (uint64_t)s->n + 1, sizeof *s->spans)) return FP_E_NOMEM;
    s->spans[s->n++] = (struct fp_span){call->start, duration, thread, call->function, t->n};
    return 0;
}

int fp_spans_put(struct fp_spans *s, const struct fp_batch *in, struct fp_err *err) {
    for (uint32_t i = 0; i < in->n; i++) {
        const uint32_t thread = in->thread[i], function = in->function[i];
        const uint8_t op = in->op[i];
        if (op > FP_OP_ENTER_ARGS) continue;
        if (thread >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a call", thread, s->model->threads.n);
        if (fp_array_zeroed(&s->threads, &s->cap_threads, (uint64_t)thread + 1, sizeof *s->threads))
            return no_memory(err);
        struct fp_spans_thread *t = &s->threads[thread];
        const uint64_t time = in->time[i] > t->last_time ? in->time[i] : t->last_time;
        t->last_time = time;
        if (time < s->first_time) s->first_time = time;
        if (time > s->last_time) s->last_time = time;
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            if (fp_array_room(&t->open, &t->cap, (uint64_t)t->n + 1, sizeof *t->open)) return no_memory(err);
            t->open[t->n++] = (struct open_call){time, function};
            continue;
        }
        uint32_t at = t->n; /* 1 + the call that ends */
        while (at && t->open[at - 1].function != function) at--;
        while (at && t->n >= at)
            if (end_call(s, thread, time)) return no_memory(err);
    }
    return FP_DONE;
}

static int by_time(const void *a, const void *b) {
    const struct fp_span *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return (x->duration > y->duration) - (x->duration < y->duration);
}

int fp_spans_end(struct fp_spans *s, struct fp_err *err) {
    for (uint32_t thread = 0; thread < s->cap_threads; thread++)
        while (s->threads[thread].n)
            if (end_call(s, thread, s->threads[thread].last_time)) return no_memory(err);
    if (s->n) qsort(s->spans, s->n, sizeof *s->spans, by_time);
    return FP_DONE;
}
