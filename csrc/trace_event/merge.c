#include "trace_event/read_private.h"

/* By thread and time, then in file order. */
FP_ORDER(by_time, struct fp_trace_event_record, thread, time, order)

/* Values of counters have none: they stay in file order. */
static uint64_t length(const struct fp_trace_event_record *a) {
    return a->op == FP_OP_TYPED && a->type == FP_COUNTER_TYPE ? 0 : (uint64_t)a->duration;
}

/* By thread, time and length: callers before callees that begin at the same time.  FP_TRACE_EVENT_ENDLESS is longest.
 */
static int by_length(const void *one, const void *other) {
    const struct fp_trace_event_record *a = one, *b = other;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (length(a) != length(b)) return length(a) > length(b) ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void fp_trace_event_sort(struct fp_trace_event_read *r) {
    if (r->n_records)
        qsort(r->records, r->n_records, sizeof *r->records, r->by_time && !r->merging.has_heap ? by_time : by_length);
}

static int refill(struct fp_trace_event_read *r, uint32_t run) {
    r->run = run;
    r->request = FP_TRACE_EVENT_REFILL;
    return FP_NEEDS;
}

static const struct fp_trace_event_record *next_of(const struct fp_trace_event_read *r, uint32_t number) {
    const struct fp_trace_event_run *run = &r->runs[number];
    return &run->records[run->pos];
}

static inline int is_before(const struct fp_trace_event_read *r, uint32_t a, uint32_t b) {
    return (r->pairing ? by_time : by_length)(next_of(r, a), next_of(r, b)) < 0;
}

FP_HEAP(const struct fp_trace_event_read *, uint32_t, is_before)

static void sink(struct fp_trace_event_read *r, uint32_t at) {
    heap_sink(r, r->merging.heap, r->merging.n_heap, at);
}

/* Makes a heap of the runs, ordered by their next records.  FP_NEEDS: a run must be refilled. */
static int make_heap(struct fp_trace_event_read *r) {
    fp_array_room(&r->merging.heap, &r->merging.cap_heap, (uint64_t)r->n_runs + 1, sizeof *r->merging.heap);
    for (; r->merging.n_started < r->n_runs; r->merging.n_started++) {
        const struct fp_trace_event_run *run = &r->runs[r->merging.n_started];
        if (run->pos < run->n)
            r->merging.heap[r->merging.n_heap++] = r->merging.n_started;
        else if (!run->eof)
            return refill(r, r->merging.n_started);
    }
    for (uint32_t i = r->merging.n_heap / 2; i-- > 0;) sink(r, i);
    r->merging.has_heap = 1;
    return FP_DONE;
}

/* Sets r->merging.head to the smallest next record of all runs.  FP_NEEDS: a run must be refilled. */
static int next_record(struct fp_trace_event_read *r) {
    if (!r->merging.has_heap) {
        FP_TRY(make_heap(r));
    } else if (r->merging.n_heap) { /* the head came from heap[0] */
        const struct fp_trace_event_run *run = &r->runs[r->merging.heap[0]];
        if (run->pos == run->n && !run->eof) return refill(r, r->merging.heap[0]);
        if (run->pos == run->n) r->merging.heap[0] = r->merging.heap[--r->merging.n_heap];
        if (r->merging.n_heap) sink(r, 0);
    }
    r->merging.has_head = r->merging.n_heap > 0;
    if (r->merging.has_head) {
        r->merging.head = *next_of(r, r->merging.heap[0]);
        r->runs[r->merging.heap[0]].pos++;
    }
    return FP_DONE;
}

/* Pairs begins and ends, sorted by time.  FP_NEEDS. */
static int pair_all(struct fp_trace_event_read *r) {
    for (;;) {
        const struct fp_trace_event_record *h = &r->merging.head;
        if (r->n_records >= FP_TRACE_EVENT_RECORDS) {
            r->request = FP_TRACE_EVENT_SPILL;
            return FP_NEEDS;
        }
        int status = r->merging.has_head ? FP_DONE : next_record(r);
        if (status) return status;
        if (!r->merging.has_head) break;
        if ((h->op == FP_OP_EXIT || h->op == FP_OP_ENTER) && h->type)
            status = fp_trace_event_async_record(r, h);
        else if (h->op == FP_OP_EXIT)
            fp_trace_event_end(r, h->thread, h->time, h->id);
        else if (h->op == FP_OP_ARGUMENT)
            fp_trace_event_argument(r, h->thread, h->id | (uint64_t)h->type << 32);
        else if (h->duration == FP_TRACE_EVENT_BEGIN)
            fp_trace_event_begin(r, h);
        else
            *fp_trace_event_add(r) = *h;
        if (status) return status;
        r->merging.has_head = 0;
    }
    fp_trace_event_close(r);
    r->pairing = r->by_time = r->merging.has_heap = 0;
    r->merging.n_started = r->merging.n_heap = 0;
    r->request = FP_TRACE_EVENT_MERGE;
    return FP_NEEDS;
}

static uint32_t thread_of(const struct fp_trace_event_lanes *l, uint32_t lane) {
    return lane ? l->lanes[lane].thread - 1 : l->thread;
}

/* Rows of a thread belong to the part of its document.  FP_DONE, or FP_FULL if the batch has rows of another part. */
static int choose_part(const struct fp_trace_event_read *r, uint32_t thread, struct fp_batch *out) {
    if (FP_LIKELY(!r->parts)) return FP_DONE;
    const uint32_t part = r->parts[thread < r->documents.cap_document_of ? r->documents.document_of[thread] : 0];
    if (out->n && out->part != part) return FP_FULL;
    out->part = part;
    return FP_DONE;
}

/* Adds the exits of calls that end before the head.  FP_FULL or FP_DONE. */
static int end_calls(struct fp_trace_event_read *r, struct fp_batch *out) {
    struct fp_trace_event_lanes *l = &r->lanes;
    const int same = r->merging.has_head && r->merging.head.thread == l->thread;
    if (same && r->merging.head.op == FP_OP_ARGUMENT)
        return FP_DONE; /* belongs to the previous call, which may have length 0 */
    for (;;) {
        FP_TRY(FP_UNLIKELY(l->n_again) ? fp_trace_event_enter_again(r, out) : FP_DONE);
        const uint32_t lane = fp_trace_event_lane_ending(l, same ? r->merging.head.time : INT64_MAX);
        if (lane == FP_NO_ID) break;
        const struct fp_trace_event_lane *of = &l->lanes[lane];
        const struct fp_trace_event_call *call = &of->calls[of->n - 1];
        if (out->n == out->cap) return FP_FULL;
        fp_batch_event(out, fp_trace_event_shown(r, call->end), FP_OP_EXIT, call->function, thread_of(l, lane), 0);
        if (!lane) fp_trace_event_note_again(l, call);
        fp_trace_event_lane_pop(l, lane);
    }
    if (!same && r->merging.has_head) fp_trace_event_lanes_reset(l, r->merging.head.thread);
    return FP_DONE;
}

/* Enters the call in the first lane in which it nests, or in lane 0 if an annotation divides calls; an excess of 1 ns,
 * from rounding, is cut.  The batch has room. FP_DONE or FP_NEEDS. */
static int put_call(struct fp_trace_event_read *r, struct fp_batch *out) {
    struct fp_trace_event_lanes *l = &r->lanes;
    const struct fp_trace_event_record *h = &r->merging.head;
    int64_t end, wanted = INT64_MIN; /* a call without end nests in any lane: it ends with its caller */
    if (h->duration == FP_TRACE_EVENT_ENDLESS)
        end = INT64_MAX;
    else if (__builtin_add_overflow(h->time, (uint64_t)h->duration, &end))
        end = INT64_MAX;
    else
        wanted = end > INT64_MIN ? end - 1 : end;
    int64_t rest = end;
    uint32_t lane = l->dividing ? 0 : fp_trace_event_lane_for(l, wanted);
    if (FP_UNLIKELY(lane || l->dividing)) {
        const enum fp_trace_event_overlap how = l->dividing ? FP_TRACE_EVENT_DIVIDES : fp_trace_event_overlap(r, end);
        if (how != FP_TRACE_EVENT_ASIDE) lane = 0;
        if (how == FP_TRACE_EVENT_DIVIDES && fp_trace_event_divide(r, end, out)) return FP_FULL;
        if (how == FP_TRACE_EVENT_IS_DIVIDED) end = l->lanes->calls[l->lanes->n - 1].end;
    }
    const struct fp_trace_event_lane *in = &l->lanes[lane];
    if (lane && !in->thread) {
        r->lane = lane;
        r->lane_of = h->thread;
        r->request = FP_TRACE_EVENT_LANE;
        return FP_NEEDS;
    }
    if (in->n && end > in->calls[in->n - 1].end) {
        r->counts.cut += h->duration != FP_TRACE_EVENT_ENDLESS;
        rest = end = in->calls[in->n - 1].end;
    }
    fp_trace_event_lane_push(l, lane, (struct fp_trace_event_call){end, rest, h->id});
    l->dividing = 0;
    r->counts.in_lanes += lane > 0;
    fp_batch_event(out, fp_trace_event_shown(r, h->time), h->op, h->id, thread_of(l, lane), 0);
    return FP_DONE;
}

void fp_trace_event_set_lane(struct fp_trace_event_read *r, uint32_t thread) {
    struct fp_trace_event_lanes *l = &r->lanes;
    l->lanes[r->lane].thread = thread + 1;
    if (r->lane >= l->n) l->n = r->lane + 1;
}

/* Adds the row of the head, which is not an end.  FP_DONE, FP_FULL or FP_NEEDS. */
static int put_head(struct fp_trace_event_read *r, struct fp_batch *out) {
    const struct fp_trace_event_record *h = &r->merging.head;
    if (out->n == out->cap) return FP_FULL;
    if (h->op == FP_OP_ENTER || h->op == FP_OP_ENTER_ARGS) return put_call(r, out);
    if (h->op == FP_OP_ARGUMENT) {
        const uint32_t thread = thread_of(&r->lanes, r->lanes.last);
        out->aux[fp_batch_event(out, fp_trace_event_shown(r, h->time), FP_OP_ARGUMENT, 0, thread, 0)] =
            h->id | (uint64_t)h->type << 32;
        return FP_DONE;
    }
    size_t n;
    uint64_t slice;
    const uint8_t *p = fp_string(&r->model->strings, h->id, &n);
    if (h->type == FP_COUNTER_TYPE) {
        double value;
        memcpy(&value, &h->duration, sizeof value);
        fp_counter_value_payload(&r->text.scratch, value, p, n);
        p = r->text.scratch.p;
        n = r->text.scratch.n;
    }
    if (fp_batch_payload(out, p, n, &slice)) return out->n ? FP_FULL : fp_escape(); /* 4 GiB of payloads */
    out->aux[fp_batch_event(out, fp_trace_event_shown(r, h->time), h->op, h->type, h->thread, 0)] = slice;
    return FP_DONE;
}

int fp_trace_event_merge(struct fp_trace_event_read *r, struct fp_batch *out) {
    for (;; r->merging.has_head = 0) {
        if (r->pairing) return pair_all(r);
        if (!r->merging.has_head) FP_TRY(next_record(r));
        FP_TRY(choose_part(r, r->lanes.thread, out));
        FP_TRY(end_calls(r, out));
        if (!r->merging.has_head) return FP_DONE;
        FP_TRY(choose_part(r, r->merging.head.thread, out));
        FP_TRY(put_head(r, out));
    }
}
