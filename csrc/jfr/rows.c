/* Events become rows. */
#include <math.h>

#include "jfr/private.h"

/* ---- times ---- */

/* n ticks in nanoseconds, rounded towards 0. */
static int64_t nanoseconds(const struct fp_jfr_reader *r, int64_t n) {
    __extension__ typedef __int128 i128;
    const int64_t rate = (int64_t)r->ticks_per_second;
    if (rate == 1000000000) return n;
    if (rate < INT64_MAX / 1000000000 && n / rate < INT64_MAX / 1000000000 - 1 && n / rate > INT64_MIN / 1000000000 + 1)
        return n / rate * 1000000000 + n % rate * 1000000000 / rate;
    return (int64_t)((i128)n * 1000000000 / rate);
}

static uint64_t time_of(const struct fp_jfr_reader *r, const struct fp_jfr_slot *slot) {
    if (slot->kind != FP_JFR_IS_NUMBER) return 0;
    int64_t ns;
    if (__builtin_sub_overflow((int64_t)slot->n, r->start_ticks, &ns)) return 0;
    if (__builtin_add_overflow(nanoseconds(r, ns), r->start_ns, &ns)) return 0;
    return ns > 0 ? (uint64_t)ns : 0;
}

/* ---- values ---- */

enum { NOT_A_NUMBER = 1 };

/* The number of a slot in its unit: nanoseconds for times.  0 or NOT_A_NUMBER. */
static int value_of(const struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, double factor, int64_t *value) {
    static const int64_t SCALE[] = {[FP_JFR_NANOSECONDS] = 1,
                                    [FP_JFR_MICROSECONDS] = 1000,
                                    [FP_JFR_MILLISECONDS] = 1000000,
                                    [FP_JFR_SECONDS] = 1000000000};
    *value = 0;
    if (slot->kind == FP_JFR_IS_NUMBER && factor == 1) {
        *value = (int64_t)slot->n;
        if (slot->unit == FP_JFR_TICKS) *value = nanoseconds(r, *value);
        return slot->unit > FP_JFR_TICKS && __builtin_mul_overflow(*value, SCALE[slot->unit], value) ? NOT_A_NUMBER : 0;
    }
    if (slot->kind == FP_JFR_ABSENT) return 0;
    const double real = (slot->kind == FP_JFR_IS_REAL ? slot->real : (double)(int64_t)slot->n) * factor;
    if (!(real > -9.2e18 && real < 9.2e18)) return NOT_A_NUMBER;
    *value = llround(real);
    return 0;
}

/* How many an event stands for, and its second value. */
static int values_of(const struct fp_jfr_reader *r, const struct fp_jfr_event *event, unsigned metric,
                     const struct fp_jfr_slot *slots, int64_t *count, int64_t *value) {
    const struct fp_jfr_slot *weight = &slots[FP_JFR_EVENT_WEIGHT];
    *count = 1;
    *value = 0;
    if (event->weight && value_of(r, weight, 1, count)) return NOT_A_NUMBER;
    if (!event->value) return __builtin_mul_overflow(*count, r->period[metric], value) ? NOT_A_NUMBER : 0;
    double factor = 1;
    if (event->times_weight) factor = weight->kind == FP_JFR_IS_REAL ? weight->real : (double)*count;
    return value_of(r, &slots[FP_JFR_EVENT_VALUE], factor, value);
}

/* ---- labels ---- */

/* The labels of a row: its thread's, and others that are not 0.  FP_NO_ID when memory ran out. */
static uint32_t label_of(struct fp_jfr_reader *r, uint32_t thread_label, uint32_t class_, uint32_t state) {
    if (!class_ && !state) return thread_label;
    const uint32_t words[] = {thread_label, class_, state}, before = r->labels.n;
    const uint32_t row = fp_table_intern(&r->labels, words);
    if (row == FP_NO_ID || fp_array_room(&r->label_of, &r->cap_label_of, (uint64_t)row + 1, sizeof *r->label_of))
        return FP_NO_ID;
    if (row < before) return r->label_of[row];
    uint32_t label = thread_label;
    if (class_) label = fp_model_label(r->model, label, r->class_key, class_, 0, 0);
    if (state && label != FP_NO_ID) label = fp_model_label(r->model, label, r->state_key, state, 0, 0);
    return r->label_of[row] = label;
}

/* The frame of a class, as async-profiler's tools write it: java.lang.Object_[i], outside of a TLAB
 * java.lang.Object_[k].
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

int fp_jfr_row(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_batch *out,
               struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    const struct fp_jfr_event *event = &fp_jfr_events[r->types[type].event - 1];
    const uint8_t *end = record->end;
    unsigned metric = event->metric;
    uint32_t thread, label;
    int64_t count, value;
    if (!fp_jfr_decode(r, type, record->body, end, slots)) {
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
    out->time[i] = time_of(r, &slots[FP_JFR_START]);
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
        const uint64_t there = in->n - in->pos, n = r->skip < there ? r->skip : there;
        in->pos += (size_t)n;
        if ((r->skip -= n) && !in->eof) return FP_MORE;
        if (in->pos == in->n) return in->eof ? FP_DONE : FP_MORE;
        struct fp_jfr_record record;
        int status = fp_jfr_head(r, in, &record, err);
        if (status) return status;
        const uint32_t type = record.type > 1 ? fp_jfr_find_type(r, record.type) : 0;
        if (type && r->types[type].event) {
            if (record.size > in->n - in->pos) return in->eof ? fp_jfr_cut(&record, err) : FP_MORE;
            if ((status = fp_jfr_row(r, type, &record, out, err))) return status;
        } else if (type) {
            r->counts.bad_records += r->types[type].is_bad;
        }
        r->skip = record.size;
    }
}
