/* Converts events to rows. */
#include "jfr/private.h"

/* ---- values ---- */

/* The number of samples that an event represents, and its second value.  0, or 1 on overflow. */
static int values_of(const struct fp_jfr_reader *r, const struct fp_jfr_event *event, unsigned metric,
                     const struct fp_jfr_slot *slots, int64_t *count, int64_t *value) {
    const struct fp_jfr_slot *weight = &slots[FP_JFR_EVENT_WEIGHT];
    *count = 1;
    *value = 0;
    if (event->weight && fp_jfr_value(r, weight, 1, count)) return 1;
    if (!event->value) return __builtin_mul_overflow(*count, r->period[metric], value) ? 1 : 0;
    double factor = 1;
    if (event->times_weight) factor = weight->kind == FP_JFR_IS_REAL ? weight->real : (double)*count;
    return fp_jfr_value(r, &slots[FP_JFR_EVENT_VALUE], factor, value);
}

/* ---- labels ---- */

/* The labels of a row: its thread's, and those that are not 0.  FP_NO_ID when memory ran out. */
static uint32_t label_of(struct fp_jfr_reader *r, uint32_t thread_label, uint32_t class_, uint32_t state) {
    if (!class_ && !state) return thread_label;
    struct fp_jfr_labels *known = &r->labels[fp_mix(class_ ^ (uint64_t)state << 32, thread_label) % FP_JFR_LABELS];
    if (known->label && known->thread == thread_label && known->class_ == class_ && known->state == state)
        return known->label;
    uint32_t label = thread_label;
    if (class_) label = fp_model_label(r->model, label, r->class_key, class_, 0, 0);
    if (state && label != FP_NO_ID) label = fp_model_label(r->model, label, r->state_key, state, 0, 0);
    if (label != FP_NO_ID)
        *known = (struct fp_jfr_labels){.thread = thread_label, .class_ = class_, .state = state, .label = label};
    return label;
}

/* The frame of a class, as async-profiler's tools write it:
 * java.lang.Object_[i], outside of a TLAB java.lang.Object_[k].
 */
static uint32_t leaf_of(struct fp_jfr_reader *r, uint32_t class_, unsigned metric) {
    const uint32_t is_outside = metric == FP_JFR_OUTSIDE_TLAB, words[] = {class_, is_outside}, before = r->leaves.n;
    const uint32_t row = fp_table_intern(&r->leaves, words);
    if (row == FP_NO_ID || fp_array_room(&r->leaf_of, &r->cap_leaf_of, (uint64_t)row + 1, sizeof *r->leaf_of))
        return FP_NO_ID;
    if (row < before) return r->leaf_of[row];
    size_t n;
    const uint8_t *name = fp_string(&r->model->strings, class_, &n);
    r->name.n = 0;
    fp_buf_put(&r->name, name, n);
    if (r->kinds) fp_buf_put(&r->name, is_outside ? "_[k]" : "_[i]", 4);
    if (r->name.failed) return FP_NO_ID;
    return r->leaf_of[row] = fp_jfr_name_frame(r, r->name.p, r->name.n);
}

/* ---- rows ---- */

static int damaged(struct fp_jfr_reader *r, const struct fp_jfr_record *record, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, record->at, what);
    r->counts.bad_records++;
    return 0;
}

/* The stack of a row. */
static uint32_t stack_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, uint32_t class_,
                         unsigned metric) {
    int cut;
    uint32_t node = fp_jfr_stack(r, slot, end, &cut);
    if (node == FP_NO_ID) return FP_NO_ID;
    r->counts.no_stack += !node;
    r->counts.truncated += (uint64_t)cut;
    if (!class_ || !r->class_leaf) return node;
    const uint32_t leaf = leaf_of(r, class_, metric);
    return leaf == FP_NO_ID ? FP_NO_ID : fp_model_stack(r->model, node, leaf);
}

static void begin_batch(struct fp_batch *out) {
    for (uint32_t k = 0; k < out->n_values; k++)
        memset(out->values + (size_t)k * out->cap, 0, out->cap * sizeof *out->values);
}

/* Reads the fields of an event into r->slots.  Returns its end, or NULL. */
static const uint8_t *fields(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record) {
    const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
    if (!program || !program->is_plain) {
        r->slots_of = 0;
        return program ? fp_jfr_decode(r, type, record->body, record->end, r->slots) : NULL;
    }
    if (r->slots_of != type) {
        fp_jfr_plain_slots(r, program, r->slots);
        r->slots_of = type;
    }
    return fp_jfr_run_plain(r->ops + program->op, program->n_ops, record->body, record->end, r->slots);
}

/* Adds the row of an event.  0, FP_FULL, FP_ASK, or FP_E_*. */
static int row(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_batch *out,
               struct fp_err *err) {
    const struct fp_jfr_slot *slots = r->slots;
    const struct fp_jfr_event *event = &fp_jfr_events[r->types[type].event - 1];
    const uint8_t *end = record->end;
    unsigned metric = event->metric;
    uint32_t thread, label;
    int64_t count, value;
    if (FP_UNLIKELY(!fields(r, type, record))) {
        const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
        if (!program) return fp_no_memory(err);
        return damaged(r, record, program->is_bad ? program->what : "an event is shorter than its fields", err);
    }
    const uint32_t state = fp_jfr_string_id(r, &slots[FP_JFR_EVENT_STATE], end);
    const uint32_t class_ = state == FP_NO_ID ? FP_NO_ID : fp_jfr_string_id(r, &slots[FP_JFR_EVENT_CLASS], end);
    if (class_ == FP_NO_ID) return fp_no_memory(err);
    if (metric == FP_JFR_CPU && (r->is_wall || state == r->sleeping)) metric = FP_JFR_WALL;
    const uint32_t column = r->column[metric];
    if (column == FP_JFR_NO_COLUMN || column + (uint32_t)r->has_value[metric] >= out->n_values) {
        r->asked = FP_JFR_COLUMNS;
        r->asked_metric = metric;
        return FP_ASK;
    }
    if (out->n == out->cap) return FP_FULL;
    if (values_of(r, event, metric, slots, &count, &value))
        return damaged(r, record, "a value of an event is out of range", err);
    const uint32_t stack = stack_of(r, &slots[FP_JFR_EVENT_STACK], end, class_, metric);
    if (stack == FP_NO_ID || fp_jfr_thread(r, &slots[FP_JFR_EVENT_THREAD], end, &thread, &label))
        return fp_no_memory(err);
    label = label_of(r, label, class_, metric == FP_JFR_WALL || metric == FP_JFR_DATADOG_WALL ? state : 0);
    if (label == FP_NO_ID) return fp_no_memory(err);
    if (!out->n) begin_batch(out);
    const uint32_t i = out->n++;
    out->time[i] = fp_jfr_time(r, &slots[FP_JFR_START]);
    out->stack[i] = stack;
    out->thread[i] = thread;
    out->label[i] = label;
    out->values[(size_t)column * out->cap + i] = count;
    if (r->has_value[metric]) out->values[(size_t)(column + 1) * out->cap + i] = value;
    r->counts.rows++;
    return 0;
}

int fp_jfr_feed(struct fp_jfr_reader *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        if (fp_jfr_skipped(r, in)) return FP_MORE;
        if (in->pos == in->n) return in->eof ? FP_DONE : FP_MORE;
        struct fp_jfr_record record;
        int status = fp_jfr_head(r, in, &record, err);
        if (status) return status;
        const uint32_t type = record.type > 1 ? fp_jfr_find_type(r, record.type) : 0;
        if (type && r->types[type].event) {
            if (record.size > in->n - in->pos) return in->eof ? fp_jfr_cut(&record, err) : FP_MORE;
            if ((status = row(r, type, &record, out, err))) return status;
        } else if (type) {
            r->counts.bad_records += r->types[type].is_bad;
        }
        r->skip = record.size;
    }
}
