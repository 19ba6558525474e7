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

/* The least record of all runs becomes r->head.  FP_ASK: a run is to be refilled. */
static int next_record(struct fp_trace_read *r) {
    const struct fp_trace_record *least = NULL;
    uint32_t from = 0;
    for (uint32_t i = 0; i < r->n_runs; i++) {
        const struct fp_trace_run *run = &r->runs[i];
        if (run->pos == run->n && !run->eof) {
            r->hungry = i;
            r->asks = FP_TRACE_REFILL;
            return FP_ASK;
        }
        if (run->pos == run->n || (least && in_order(least, &run->records[run->pos]) < 0)) continue;
        least = &run->records[run->pos];
        from = i;
    }
    r->has_head = least != NULL;
    if (!least) return FP_DONE;
    r->head = *least;
    r->runs[from].pos++;
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
