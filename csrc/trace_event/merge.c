#include <stdlib.h>

#include "core/array.h"
#include "trace_event/read_private.h"

static int in_order(const void *one, const void *other) {
    const struct fp_trace_record *a = one, *b = other;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->duration != b->duration) return a->duration > b->duration ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void fp_trace_sort(struct fp_trace_read *r) {
    if (r->n_records) qsort(r->records, r->n_records, sizeof *r->records, in_order);
}

static int refill(struct fp_trace_read *r, uint32_t run) {
    r->hungry = run;
    r->asks = FP_TRACE_REFILL;
    return FP_ASK;
}

static const struct fp_trace_record *next_of(const struct fp_trace_read *r, uint32_t at) {
    const struct fp_trace_run *run = &r->runs[r->heap[at]];
    return &run->records[run->pos];
}

/* Puts the run at heap[i] in its place among those below it. */
static void sift_down(struct fp_trace_read *r, uint32_t i) {
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < r->n_heap; child++)
            if (in_order(next_of(r, child), next_of(r, least)) < 0) least = child;
        if (least == i) return;
        const uint32_t run = r->heap[i];
        r->heap[i] = r->heap[least];
        r->heap[least] = run;
        i = least;
    }
}

/* Makes a heap of the runs, the one with the least next record first.  FP_ASK: a run is to be refilled. */
static int make_heap(struct fp_trace_read *r) {
    if (fp_array_room(&r->heap, &r->cap_heap, (uint64_t)r->n_runs + 1, sizeof *r->heap)) return FP_E_NOMEM;
    for (; r->n_started < r->n_runs; r->n_started++) {
        const struct fp_trace_run *run = &r->runs[r->n_started];
        if (run->pos < run->n)
            r->heap[r->n_heap++] = r->n_started;
        else if (!run->eof)
            return refill(r, r->n_started);
    }
    for (uint32_t i = r->n_heap / 2; i-- > 0;) sift_down(r, i);
    r->has_heap = 1;
    return FP_DONE;
}

/* The least record of all runs becomes r->head.  FP_ASK: a run is to be refilled. */
static int next_record(struct fp_trace_read *r) {
    if (!r->has_heap) {
        const int status = make_heap(r);
        if (status) return status;
    } else if (r->n_heap) { /* the head was of the first run */
        const struct fp_trace_run *run = &r->runs[r->heap[0]];
        if (run->pos == run->n && !run->eof) return refill(r, r->heap[0]);
        if (run->pos == run->n) r->heap[0] = r->heap[--r->n_heap];
        if (r->n_heap) sift_down(r, 0);
    }
    r->has_head = r->n_heap > 0;
    if (r->has_head) {
        r->head = *next_of(r, 0);
        r->runs[r->heap[0]].pos++;
    }
    return FP_DONE;
}

/* Ends the calls that do not last until the head.  FP_FULL or FP_DONE. */
static int end_calls(struct fp_trace_read *r, struct fp_batch *out) {
    while (r->n_calls) {
        const struct fp_trace_call *top = &r->calls[r->n_calls - 1];
        if (r->has_head && r->head.thread == r->calls_of && top->end > r->head.time) return FP_DONE;
        if (out->n == out->cap) return FP_FULL;
        if (top->end != UINT64_MAX) fp_trace_row(out, FP_OP_EXIT, top->end, r->calls_of, top->function);
        r->n_calls--;
    }
    return FP_DONE;
}

int fp_trace_merge(struct fp_trace_read *r, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        if (!r->has_head) {
            const int status = next_record(r);
            if (status == FP_E_NOMEM) return fp_no_memory(err);
            if (status) return status;
        }
        if (end_calls(r, out) == FP_FULL) return FP_FULL;
        if (!r->has_head) return FP_DONE;
        if (out->n == out->cap) return FP_FULL;
        const struct fp_trace_record *h = &r->head;
        r->calls_of = h->thread;
        if (h->op == FP_OP_ENTER) {
            uint64_t end = h->duration > UINT64_MAX - h->time ? UINT64_MAX : h->time + h->duration;
            if (r->n_calls && end > r->calls[r->n_calls - 1].end) {
                r->cut += h->duration != UINT64_MAX;
                end = r->calls[r->n_calls - 1].end;
            }
            if (fp_array_room(&r->calls, &r->cap_calls, (uint64_t)r->n_calls + 1, sizeof *r->calls))
                return fp_no_memory(err);
            r->calls[r->n_calls++] = (struct fp_trace_call){end, h->id};
            fp_trace_row(out, FP_OP_ENTER, h->time, h->thread, h->id);
        } else {
            size_t n;
            uint64_t slice;
            const uint8_t *p = fp_string(&r->model->strings, h->id, &n);
            const int status = fp_batch_payload(out, p, n, &slice);
            if (status == FP_E_OVERFLOW && out->n) return FP_FULL;
            if (status) return fp_no_memory(err);
            out->aux[fp_trace_row(out, (uint8_t)h->op, h->time, h->thread, h->type)] = slice;
        }
        r->has_head = 0;
    }
}
