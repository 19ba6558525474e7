/* Events with durations as a timeline: each becomes an enter and an exit.
 *
 * The JVM writes events when they end, from a buffer per thread, so they are sorted by their begin (core/rounds.h)
 * before the first row.  Events of a thread nest, except some of the JVM's own: an event that does not fit into the
 * innermost open one goes to a lane, an additional thread of the same name.
 *
 *   begin 10 end 50 A, begin 20 end 30 B, begin 40 end 60 C
 *
 *   lane 0   enter A 10, enter B 20, exit B 30, exit A 50
 *   lane 1   enter C 40, exit C 60
 */
#include <stdlib.h>

#include "jfr/private.h"

enum { MOST_LANES = 64, MOST_TIES = 1 << 16 };

/* An event. */
struct fp_jfr_span {
    uint64_t begin, end;
    uint32_t function, thread;
};

/* The open events of a thread or lane, outermost first. */
struct fp_jfr_lane {
    struct fp_jfr_span *open;
    uint32_t n, cap;
    uint32_t thread; /* of its rows */
    uint32_t next;   /* lane + 1; 0: none */
};

void fp_jfr_free_spans(struct fp_jfr_reader *r) {
    for (uint32_t i = 0; i < r->n_lanes; i++) free(r->lanes[i].open);
    free(r->lanes);
    free(r->lane_of);
    free(r->ties);
    fp_rounds_clear(&r->rounds);
}

/* ---- reading ---- */

/* The function of an event, named after its type and its own name or class.  FP_NO_ID when memory ran out. */
static uint32_t function_of(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_slot *slots,
                            const uint8_t *end) {
    const struct fp_jfr_slot *own = &slots[FP_JFR_EVENT_STATE], *class_ = &slots[FP_JFR_EVENT_CLASS];
    const uint32_t detail = fp_jfr_string_id(r, own->kind >= FP_JFR_IS_TEXT ? own : class_, end);
    if (detail == FP_NO_ID) return FP_NO_ID;
    size_t n;
    const uint8_t *name = fp_string(&r->names, r->types[type].name, &n);
    r->name.n = 0;
    fp_buf_put(&r->name, name, n);
    if (detail) {
        name = fp_string(&r->model->strings, detail, &n);
        fp_buf_put(&r->name, ": ", 2);
        fp_buf_put(&r->name, name, n);
    }
    if (r->name.failed) return FP_NO_ID;
    const uint32_t id = fp_strings_intern(&r->model->strings, r->name.p, r->name.n);
    return id == FP_NO_ID ? FP_NO_ID : fp_model_function(r->model, 0, 0, id, 0, 0);
}

/* Adds an event to `rounds`.  0, FP_ASK, or FP_E_*. */
static int put(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    uint32_t thread, label;
    int64_t ns;
    if (!fp_jfr_decode(r, type, record->body, record->end, slots)) {
        if (!r->types[type].program) return fp_no_memory(err);
        if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, record->at, "an event is shorter than its fields");
        r->counts.bad_records++;
        return 0;
    }
    if (fp_jfr_value(r, &slots[FP_JFR_DURATION_SLOT], 1, &ns) || ns <= 0) {
        r->counts.instants++;
        return 0;
    }
    struct fp_jfr_span span = {.begin = fp_jfr_time(r, &slots[FP_JFR_START])};
    if (__builtin_add_overflow(span.begin, (uint64_t)ns, &span.end)) span.end = UINT64_MAX;
    if (fp_jfr_thread(r, &slots[FP_JFR_EVENT_THREAD], record->end, &thread, &label)) return fp_no_memory(err);
    if (!thread) thread = fp_model_thread(r->model, r->virtual_input, r->pid, 0);
    span.thread = thread;
    span.function = function_of(r, type, slots, record->end);
    if (thread == FP_NO_ID || span.function == FP_NO_ID) return fp_no_memory(err);
    const int status = fp_rounds_put(&r->rounds, span.begin, 0, (const uint8_t *)&span, sizeof span);
    if (status == FP_ASK) r->asked = FP_JFR_SPILL;
    return status < 0 ? fp_no_memory(err) : status;
}

int fp_jfr_spans(struct fp_jfr_reader *r, struct fp_in *in, struct fp_err *err) {
    struct fp_jfr_record record;
    uint32_t type;
    int status;
    if (fp_jfr_index(r)) return fp_no_memory(err);
    while ((status = fp_jfr_next(r, in, &record, &type, err)) == FP_FULL) {
        if ((status = put(r, type, &record, err))) return status;
        r->skip = record.size;
    }
    return status;
}

/* ---- rows ---- */

static void row(struct fp_batch *out, unsigned op, uint64_t time, uint32_t function, uint32_t thread) {
    const uint32_t i = out->n++;
    out->op[i] = (uint8_t)op;
    out->time[i] = time;
    out->function[i] = function;
    out->thread[i] = thread;
    out->cpu[i] = 0;
    out->aux[i] = 0;
}

/* Adds the exits up to `time`.  FP_FULL, or 0. */
static int leave(struct fp_jfr_lane *lane, uint64_t time, struct fp_batch *out) {
    while (lane->n && lane->open[lane->n - 1].end <= time) {
        if (out->n == out->cap) return FP_FULL;
        const struct fp_jfr_span *span = &lane->open[--lane->n];
        row(out, FP_OP_EXIT, span->end, span->function, lane->thread);
    }
    return 0;
}

/* Adds lane `number` of a thread.  Returns its index, or FP_NO_ID. */
static uint32_t new_lane(struct fp_jfr_reader *r, uint32_t thread, uint32_t number) {
    if (fp_array_zeroed(&r->lanes, &r->cap_lanes, (uint64_t)r->n_lanes + 1, sizeof *r->lanes)) return FP_NO_ID;
    struct fp_jfr_lane *lane = &r->lanes[r->n_lanes];
    const uint32_t *words = fp_table_row(&r->model->threads, thread);
    lane->thread = thread;
    if (number) {
        while (r->n_lane_inputs < number) {
            if ((r->lane_inputs[r->n_lane_inputs] = fp_model_input(r->model)) == FP_NO_ID) return FP_NO_ID;
            r->n_lane_inputs++;
        }
        lane->thread =
            fp_model_thread(r->model, r->lane_inputs[number - 1], words[FP_THREAD_PID], words[FP_THREAD_TID]);
        if (lane->thread == FP_NO_ID || fp_jfr_name_thread(r, lane->thread, fp_jfr_thread_name(r, thread)))
            return FP_NO_ID;
        r->counts.lanes++;
    }
    return lane->thread == FP_NO_ID ? FP_NO_ID : r->n_lanes++;
}

/* Begins an event.  0, FP_FULL: call again, or FP_E_NOMEM. */
static int enter(struct fp_jfr_reader *r, struct fp_jfr_span *span, struct fp_batch *out) {
    if (fp_array_zeroed(&r->lane_of, &r->cap_lane_of, (uint64_t)span->thread + 1, sizeof *r->lane_of))
        return FP_E_NOMEM;
    uint32_t at = r->lane_of[span->thread], before = 0;
    for (uint32_t number = 0;; number++) {
        if (!at) {
            const uint32_t lane = new_lane(r, span->thread, number);
            if (lane == FP_NO_ID) return FP_E_NOMEM;
            at = lane + 1;
            *(before ? &r->lanes[before - 1].next : &r->lane_of[span->thread]) = at;
        }
        struct fp_jfr_lane *lane = &r->lanes[at - 1];
        if (leave(lane, span->begin, out) || out->n == out->cap) return FP_FULL;
        const uint64_t room = lane->n ? lane->open[lane->n - 1].end : UINT64_MAX;
        if (span->end > room && number + 1 < MOST_LANES) {
            before = at;
            at = lane->next;
            continue;
        }
        if (span->end > room) span->end = room, r->counts.cut_spans++;
        if (fp_array_room(&lane->open, &lane->cap, (uint64_t)lane->n + 1, sizeof *lane->open)) return FP_E_NOMEM;
        lane->open[lane->n++] = *span;
        row(out, FP_OP_ENTER, span->begin, span->function, lane->thread);
        r->counts.rows++;
        return 0;
    }
}

/* Longer events first: they enclose the others. */
static int by_end(const void *a, const void *b) {
    const struct fp_jfr_span *one = a, *other = b;
    return one->end < other->end ? 1 : -(one->end > other->end);
}

/* Fetches the next events that begin at the same time.  0, FP_ASK, or FP_E_NOMEM; r->n_ties is 0 at the end. */
static int next_ties(struct fp_jfr_reader *r) {
    for (;;) {
        if (!r->has_record) {
            const int status = fp_rounds_next(&r->rounds);
            if (status == FP_ASK) r->asked = FP_JFR_SPILL;
            if (status == FP_ASK || status < 0) return status;
            if (status == FP_DONE) break;
            r->has_record = 1;
        }
        struct fp_jfr_span span;
        memcpy(&span, r->rounds.p, sizeof span);
        if (r->n_ties && (span.begin != r->ties[0].begin || r->n_ties == MOST_TIES)) break;
        if (fp_array_room(&r->ties, &r->cap_ties, (uint64_t)r->n_ties + 1, sizeof *r->ties)) return FP_E_NOMEM;
        r->ties[r->n_ties++] = span;
        r->has_record = 0;
    }
    if (r->n_ties > 1) qsort(r->ties, r->n_ties, sizeof *r->ties, by_end);
    r->at_tie = 0;
    return 0;
}

int fp_jfr_pull(struct fp_jfr_reader *r, struct fp_batch *out, struct fp_err *err) {
    if (!r->is_pulling) fp_rounds_end(&r->rounds);
    r->is_pulling = 1;
    for (;;) {
        if (r->at_tie == r->n_ties) {
            if (!r->taking) r->n_ties = r->at_tie = 0;
            r->taking = 1;
            const int status = next_ties(r);
            if (status) return status < 0 ? fp_no_memory(err) : status;
            r->taking = 0;
            if (!r->n_ties) break;
        }
        const int status = enter(r, &r->ties[r->at_tie], out);
        if (status) return status < 0 ? fp_no_memory(err) : status;
        r->at_tie++;
    }
    for (uint32_t i = 0; i < r->n_lanes; i++)
        if (leave(&r->lanes[i], UINT64_MAX, out)) return FP_FULL;
    return FP_DONE;
}
