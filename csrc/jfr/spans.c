/* Events as a timeline: those with a duration become an enter and an exit (core/overlap_lanes.h), those of threads
 * without one instants, those of fp_jfr_counters values.
 *
 * The JVM writes events when they end, from a buffer per thread.  Those of a thread nest, except some of the JVM's own.
 */
#include "jfr/private.h"

/* A lane has the name of its thread. */
static void name_lane(void *arg, uint32_t lane, uint32_t of) {
    struct fp_jfr_reader *r = arg;
    fp_jfr_name_thread(r, lane, fp_jfr_thread_name(r, of), 0);
}

void fp_jfr_begin_spans(struct fp_jfr_reader *r) {
    r->spans.lanes = (struct fp_overlap_lanes){.model = r->model,
                                               .rounds = &r->rounds,
                                               .rows = &r->counts.rows,
                                               .added = &r->counts.lanes,
                                               .cut = &r->counts.cut_spans,
                                               .arg = r,
                                               .lane = name_lane};
}

void fp_jfr_free_spans(struct fp_jfr_reader *r) {
    fp_overlap_lanes_clear(&r->spans.lanes);
    fp_rounds_clear(&r->rounds);
}

/* ---- reading ---- */

/* The text of an event, a string: its type and its own name or class. */
static uint32_t text_of(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_slot *slots, const uint8_t *end) {
    const struct fp_jfr_slot *own = &slots[FP_JFR_EVENT_STATE], *class_ = &slots[FP_JFR_EVENT_CLASS];
    const uint32_t detail = fp_jfr_string_id(r, own->kind >= FP_JFR_IS_TEXT ? own : class_, end);
    size_t n;
    const uint8_t *name = fp_string(&r->metadata.names, r->metadata.types[type].name, &n);
    r->names.name.n = 0;
    fp_buf_put(&r->names.name, name, n);
    if (detail) {
        name = fp_string(&r->model->strings, detail, &n);
        fp_buf_put(&r->names.name, ": ", 2);
        fp_buf_put(&r->names.name, name, n);
    }
    return fp_strings_intern(&r->model->strings, r->names.name.p, r->names.name.n);
}

/* The name of a counter, a string: jdk.CPULoad.jvmUser. */
static uint32_t name_of(struct fp_jfr_reader *r, uint32_t type, uint32_t field) {
    size_t n;
    const uint8_t *name = fp_string(&r->metadata.names, r->metadata.types[type].name, &n);
    r->names.name.n = 0;
    fp_buf_put(&r->names.name, name, n);
    fp_buf_put(&r->names.name, ".", 1);
    name = fp_string(&r->metadata.names, field & UINT8_MAX, &n);
    fp_buf_put(&r->names.name, name, n);
    if (field >> 8) {
        fp_buf_put(&r->names.name, ".", 1);
        name = fp_string(&r->metadata.names, field >> 8, &n);
        fp_buf_put(&r->names.name, name, n);
    }
    const uint32_t found = fp_strings_intern(&r->model->strings, r->names.name.p, r->names.name.n);
    const char *unit = fp_jfr_counters[r->metadata.types[type].counter - 1].unit;
    if (unit) fp_model_counter_unit(r->model, found, unit, strlen(unit));
    return found;
}

/* FP_NEEDS: call again with the same span. */
static int add(struct fp_jfr_reader *r, struct fp_span span) {
    const int status = fp_overlap_lanes_put(&r->spans.lanes, span);
    if (status == FP_NEEDS) r->request = FP_JFR_SPILL;
    return status;
}

/* Adds the values of an event, from the one on at which the rounds were full before.  0, FP_NEEDS, or FP_E_*. */
static int put_values(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_slot *slots, struct fp_span span) {
    const uint32_t *fields = fp_jfr_counters[r->metadata.types[type].counter - 1].fields;
    span.is_event = span.is_counter = 1;
    for (; r->spans.value < FP_JFR_COUNTER_FIELDS && fields[r->spans.value]; r->spans.value++) {
        const struct fp_jfr_slot *slot = &slots[fp_jfr_counter_slots[r->spans.value]];
        if (slot->kind != FP_JFR_IS_NUMBER && slot->kind != FP_JFR_IS_REAL) continue;
        const double value = slot->kind == FP_JFR_IS_REAL ? slot->real : (double)(int64_t)slot->n;
        if (value - value != 0) continue; /* not finite */
        memcpy(&span.end, &value, sizeof value);
        span.what = name_of(r, type, fields[r->spans.value]);
        FP_TRY(add(r, span));
    }
    r->spans.value = 0;
    return 0;
}

/* Adds an event to `rounds`.  0, FP_NEEDS, or FP_E_*. */
static int put(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    uint32_t thread, label;
    int64_t ns;
    if (!fp_jfr_decode(r, type, record->body, record->end, slots)) {
        if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, record->at, "an event is shorter than its fields");
        r->counts.bad_records++;
        return 0;
    }
    const struct fp_jfr_type *const of = &r->metadata.types[type];
    const struct fp_jfr_slot *start = &slots[FP_JFR_START];
    struct fp_span span = {.begin = start->kind == FP_JFR_IS_NUMBER ? fp_jfr_time(r, start->n) : 0};
    fp_jfr_thread(r, &slots[FP_JFR_EVENT_THREAD], record->end, &thread, &label);
    if (!thread) thread = fp_model_thread(r->model, r->virtual_input, r->chunk.pid, 0);
    span.thread = thread;
    int status;
    if (of->counter) {
        status = put_values(r, type, slots, span);
    } else {
        span.is_event = of->is_instant || fp_jfr_value(r, &slots[FP_JFR_DURATION_SLOT], 1, &ns) || ns <= 0;
        if (span.is_event)
            span.end = span.begin;
        else if (__builtin_add_overflow(span.begin, (uint64_t)ns, &span.end))
            span.end = UINT64_MAX;
        span.what = text_of(r, type, slots, record->end);
        if (!span.is_event) span.what = fp_model_function(r->model, 0, 0, span.what, 0, 0);
        status = add(r, span);
    }
    r->counts.taken += !status;
    return status;
}

int fp_jfr_spans(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_jfr_record record;
    uint32_t type;
    int status;
    fp_jfr_index(r);
    while ((status = fp_jfr_next(r, in, &record, &type, err)) == FP_FULL) {
        if ((status = put(r, type, &record, err))) return status;
        r->skip = record.size;
    }
    return status;
}

/* ---- rows ---- */

int fp_jfr_pull(struct fp_jfr_reader *r, struct fp_batch *out, struct fp_err *err) {
    (void)err; /* the guard sets it */
    const int status = fp_overlap_lanes_pull(&r->spans.lanes, out);
    if (status == FP_NEEDS) r->request = FP_JFR_SPILL;
    return status;
}
