#include "core/overlap_lanes.h"

#include "core/array.h"
#include "core/counter_value.h"
#include "core/guard.h"
#include "core/model.h"

enum { MOST_LANES = 64, MOST_TIES = 1 << 16 };

/* An open call. */
struct call {
    uint64_t end;
    uint32_t function;
};

/* The open calls of a thread or lane, outermost first. */
struct fp_lane {
    struct call *open;
    uint32_t n, cap;
    uint32_t thread; /* of its rows */
    uint32_t of;     /* the thread of its calls */
    uint32_t next;   /* lane + 1; 0: none */
};

void fp_overlap_lanes_clear(struct fp_overlap_lanes *l) {
    for (uint32_t i = 0; i < l->cap_lanes; i++) free(l->lanes[i].open);
    FP_FREE(l->lanes, l->lane_of, l->ties);
    fp_buf_free(&l->payload);
}

int fp_overlap_lanes_put(struct fp_overlap_lanes *l, struct fp_span span) {
    if (span.end < span.begin && !span.is_counter) span.end = span.begin;
    return fp_rounds_put(l->rounds, span.begin, 0, (const uint8_t *)&span, sizeof span);
}

/* Adds the exits up to `time`.  FP_FULL, or 0. */
static int leave(struct fp_lane *lane, uint64_t time, struct fp_batch *out) {
    while (lane->n && lane->open[lane->n - 1].end <= time) {
        if (out->n == out->cap) return FP_FULL;
        const struct call *call = &lane->open[--lane->n];
        fp_batch_event(out, call->end, FP_OP_EXIT, call->function, lane->thread, 0);
    }
    return 0;
}

/* Adds lane `number` of a thread.  Returns its index. */
static uint32_t new_lane(struct fp_overlap_lanes *l, uint32_t thread, uint32_t number) {
    struct fp_lane *lane = FP_AT(l->lanes, l->cap_lanes, l->n_lanes);
    const uint32_t *words = fp_table_row(&l->model->threads, thread);
    lane->thread = lane->of = thread;
    lane->next = 0;
    if (number) {
        for (; l->n_inputs < number; l->n_inputs++) l->inputs[l->n_inputs] = fp_model_input(l->model);
        lane->thread = fp_model_thread(l->model, l->inputs[number - 1], words[FP_THREAD_PID], words[FP_THREAD_TID]);
        if (l->lane) l->lane(l->arg, lane->thread, thread);
        ++*l->added;
    }
    return l->n_lanes++;
}

/* 0, or FP_FULL: call again. */
static int put_event(struct fp_overlap_lanes *l, const struct fp_span *span, uint32_t thread, struct fp_batch *out) {
    size_t n;
    const uint32_t text = l->text ? l->text(l->arg, span->what) : span->what;
    const uint8_t *p = fp_string(&l->model->strings, text, &n);
    uint64_t slice;
    if (span->is_counter) {
        double value;
        memcpy(&value, &span->end, sizeof value);
        fp_counter_value_payload(&l->payload, value, p, n);
        p = l->payload.p;
        n = l->payload.n;
    }
    if (fp_batch_payload(out, p, n, &slice)) return out->n ? FP_FULL : fp_escape();
    const uint32_t row = span->is_counter ? fp_batch_event(out, span->begin, FP_OP_TYPED, FP_COUNTER_TYPE, thread, 0)
                                          : fp_batch_event(out, span->begin, FP_OP_CUSTOM, 0, thread, 0);
    out->aux[row] = slice;
    ++*l->rows;
    return 0;
}

/* Enters a call in the first lane where it nests; an event goes to lane 0.  0, or FP_FULL: call again. */
static int enter(struct fp_overlap_lanes *l, struct fp_span *span, struct fp_batch *out) {
    uint32_t at = *FP_AT(l->lane_of, l->cap_lane_of, span->thread), before = 0;
    for (uint32_t number = 0;; number++) {
        if (!at) {
            at = new_lane(l, span->thread, number) + 1;
            *(before ? &l->lanes[before - 1].next : &l->lane_of[span->thread]) = at;
        }
        struct fp_lane *lane = &l->lanes[at - 1];
        if (leave(lane, span->begin, out) || out->n == out->cap) return FP_FULL;
        if (span->is_event) return put_event(l, span, lane->thread, out);
        const uint64_t room = lane->n ? lane->open[lane->n - 1].end : UINT64_MAX;
        if (span->end > room && number + 1 < MOST_LANES) {
            before = at;
            at = lane->next;
            continue;
        }
        if (span->end > room) span->end = room, ++*l->cut;
        const uint32_t function = l->function ? l->function(l->arg, span->what) : span->what;
        FP_PUSH(lane->open, lane->n, lane->cap) = (struct call){span->end, function};
        fp_batch_event(out, span->begin, FP_OP_ENTER, function, lane->thread, 0);
        ++*l->rows;
        return 0;
    }
}

/* Longest first: it encloses the others.  Values of counters have no length.  Equal ones stay in order. */
static int by_end(const void *a, const void *b) {
    const struct fp_span *one = a, *other = b;
    const uint64_t end = one->is_counter ? one->begin : one->end;
    const uint64_t other_end = other->is_counter ? other->begin : other->end;
    if (end != other_end) return end < other_end ? 1 : -1;
    return (one->place > other->place) - (one->place < other->place);
}

/* Fetches the next spans that begin at the same time into l->ties; none at the end.  0 or FP_NEEDS. */
static int next_ties(struct fp_overlap_lanes *l) {
    for (;;) {
        if (!l->has_record) {
            const int status = fp_rounds_next(l->rounds);
            if (status == FP_NEEDS) return status;
            if (status == FP_DONE) break;
            l->has_record = 1;
        }
        struct fp_span span;
        memcpy(&span, l->rounds->p, sizeof span);
        if (l->n_ties && (span.begin != l->ties[0].begin || l->n_ties == MOST_TIES)) break;
        fp_array_room(&l->ties, &l->cap_ties, (uint64_t)l->n_ties + 1, sizeof *l->ties);
        span.place = l->n_ties;
        l->ties[l->n_ties++] = span;
        l->has_record = 0;
    }
    if (l->n_ties > 1) qsort(l->ties, l->n_ties, sizeof *l->ties, by_end);
    l->at_tie = 0;
    return 0;
}

int fp_overlap_lanes_pull(struct fp_overlap_lanes *l, struct fp_batch *out) {
    if (!l->is_pulling) fp_rounds_end(l->rounds);
    l->is_pulling = 1;
    for (;;) {
        if (l->taking || l->at_tie == l->n_ties) {
            if (!l->taking) l->n_ties = l->at_tie = 0;
            l->taking = 1;
            FP_TRY(next_ties(l));
            l->taking = 0;
            if (!l->n_ties) break;
        }
        FP_TRY(enter(l, &l->ties[l->at_tie], out));
        l->at_tie++;
    }
    for (uint32_t i = 0; i < l->n_lanes; i++)
        if (leave(&l->lanes[i], UINT64_MAX, out)) return FP_FULL;
    for (uint32_t i = 0; i < l->n_lanes; i++) l->lane_of[l->lanes[i].of] = 0;
    l->n_lanes = 0; /* a reader may add and pull one thread at a time */
    l->is_pulling = 0;
    return FP_DONE;
}
