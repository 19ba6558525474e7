/* Converts events to rows. */
#include "jfr/pending.h"
#include "jfr/sums.h"

/* ---- values ---- */

/* The number of samples that an event represents, and its second value.  0, or 1 on overflow. */
static int values_of(const struct fp_jfr_reader *r, const struct fp_jfr_event *event, unsigned metric,
                     const struct fp_jfr_slot *slots, int64_t *count, int64_t *value) {
    const struct fp_jfr_slot *weight = &slots[FP_JFR_EVENT_WEIGHT];
    *count = 1;
    *value = 0;
    if (event->weight && fp_jfr_value(r, weight, 1, count)) return 1;
    if (!event->value) return __builtin_mul_overflow(*count, r->chunk.period[metric], value) ? 1 : 0;
    const struct fp_jfr_slot *slot = &slots[FP_JFR_EVENT_VALUE];
    double factor = 1;
    if (FP_LIKELY(slot->kind == FP_JFR_IS_NUMBER && !slot->unit && !event->times_weight)) {
        *value = (int64_t)slot->n;
        return 0;
    }
    if (event->times_weight) factor = weight->kind == FP_JFR_IS_REAL ? weight->real : (double)*count;
    return fp_jfr_value(r, slot, factor, value);
}

/* ---- labels ---- */

/* The state and class of a new context. */
static void begin_context(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end, uint32_t metric,
                          struct fp_jfr_context *to) {
    to->state = fp_jfr_string_id(r, &slots[FP_JFR_EVENT_STATE], end);
    to->class_ = fp_jfr_string_id(r, &slots[FP_JFR_EVENT_CLASS], end);
    if (metric == FP_JFR_CPU && (r->chunk.is_wall || to->state == r->names.sleeping)) metric = FP_JFR_WALL;
    to->metric = metric;
}

/* The thread and the label of a sample, after its state and class. */
static void end_context(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end,
                        struct fp_jfr_context *to) {
    fp_jfr_thread(r, &slots[FP_JFR_EVENT_THREAD], end, &to->thread, &to->label);
    const int has_state = to->state && (to->metric == FP_JFR_WALL || to->metric == FP_JFR_DATADOG_WALL);
    if (to->class_) to->label = fp_model_label(r->model, to->label, r->names.class_key, to->class_, 0, 0);
    if (has_state) to->label = fp_model_label(r->model, to->label, r->names.state_key, to->state, 0, 0);
}

/* The frame of a class, as async-profiler's tools write it:
 * java.lang.Object_[i], outside of a TLAB java.lang.Object_[k].
 */
static uint32_t leaf_of(struct fp_jfr_reader *r, uint32_t class_, unsigned metric) {
    const uint32_t is_outside = metric == FP_JFR_OUTSIDE_TLAB, words[] = {class_, is_outside},
                   before = r->names.leaves.n;
    const uint32_t row = fp_table_intern(&r->names.leaves, words);
    fp_array_room(&r->names.leaf_of, &r->names.cap_leaf_of, (uint64_t)row + 1, sizeof *r->names.leaf_of);
    if (row < before) return r->names.leaf_of[row];
    size_t n;
    const uint8_t *name = fp_string(&r->model->strings, class_, &n);
    r->names.name.n = 0;
    fp_buf_put(&r->names.name, name, n);
    if (r->options.kinds) fp_buf_put(&r->names.name, is_outside ? "_[k]" : "_[i]", 4);
    return r->names.leaf_of[row] = fp_jfr_name_frame(r, r->names.name.p, r->names.name.n);
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
    const uint32_t node = fp_jfr_stack(r, slot, end, &cut);
    r->counts.no_stack += !node;
    r->counts.truncated += (uint64_t)cut;
    if (!class_ || !r->options.class_leaf) return node;
    const uint32_t leaf = leaf_of(r, class_, metric);
    return fp_model_stack(r->model, node, leaf);
}

static void begin_batch(struct fp_batch *out) {
    for (uint32_t k = 0; k < out->n_values; k++)
        memset(out->values + (size_t)k * out->cap, 0, out->cap * sizeof *out->values);
}

static int no_fields(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_err *err) {
    const struct fp_jfr_program *program = &r->programs.list[r->metadata.types[type].program - 1];
    return damaged(r, record, program->is_bad ? program->what : "an event is shorter than its fields", err);
}

FP_INLINE void put(struct fp_jfr_reader *r, uint64_t time, uint32_t label, uint32_t thread, uint32_t metric,
                   uint32_t stack, int64_t count, int64_t value, uint64_t samples, struct fp_batch *out) {
    const uint32_t column = r->column[metric];
    if (FP_UNLIKELY(!out->n)) begin_batch(out);
    const uint32_t i = out->n++;
    out->time[i] = time;
    out->stack[i] = stack;
    out->thread[i] = thread;
    out->label[i] = label;
    out->values[(size_t)column * out->cap + i] = count;
    if (r->has_value[metric]) out->values[(size_t)(column + 1) * out->cap + i] = value;
    if (r->is_summed) out->count[i] = samples;
    r->counts.rows += samples;
}

/* Adds the row of an event with these fields.  0, FP_NEEDS, or FP_E_*. */
static int row(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record,
               const struct fp_jfr_slot *slots, struct fp_batch *out, struct fp_err *err) {
    const struct fp_jfr_event *event = &fp_jfr_events[r->metadata.types[type].event - 1];
    const int has_keys = r->programs.list[r->metadata.types[type].program - 1].has_keys;
    struct fp_jfr_context made = {.thread_key = slots[FP_JFR_EVENT_THREAD].n,
                                  .state_key = slots[FP_JFR_EVENT_STATE].n,
                                  .class_key = slots[FP_JFR_EVENT_CLASS].n,
                                  .epoch = r->constants.epoch,
                                  .type = type};
    struct fp_jfr_context *place = fp_jfr_context_at(r, type, made.thread_key, made.state_key, made.class_key);
    const int known = has_keys && fp_jfr_is_context(r, place, type, made.thread_key, made.state_key, made.class_key);
    struct fp_jfr_context *context = known ? place : &made;
    const uint64_t before = r->counts.dangling;
    if (!known) begin_context(r, slots, record->end, event->metric, &made);
    const uint64_t missing = r->counts.dangling - before;
    const uint32_t metric = context->metric;
    if (FP_UNLIKELY(!fp_jfr_has_columns(r, metric, out))) {
        r->counts.dangling -= missing; /* the event comes again */
        r->request = FP_JFR_COLUMNS;
        r->requested_metric = metric;
        return FP_NEEDS;
    }
    int64_t amounts[2];
    if (values_of(r, event, metric, slots, &amounts[0], &amounts[1]))
        return damaged(r, record, "a value of an event is out of range", err);
    const uint32_t stack = stack_of(r, &slots[FP_JFR_EVENT_STACK], record->end, context->class_, metric);
    if (!known) {
        const uint64_t between = r->counts.dangling;
        end_context(r, slots, record->end, &made);
        /* what is missing is counted each time */
        if (has_keys && !missing && r->counts.dangling == between) *(context = place) = made;
    }
    const struct fp_jfr_slot *start = &slots[FP_JFR_START];
    if (r->sums.holds && amounts[0] == 1 && start->kind == FP_JFR_IS_NUMBER) {
        const uint64_t key = fp_jfr_pending_key(r, context, stack);
        if (key && fp_jfr_add_pending(r, key, start->n, amounts[1])) return 0;
    }
    put(r, start->kind == FP_JFR_IS_NUMBER ? fp_jfr_time(r, start->n) : 0, context->label, context->thread, metric,
        stack, amounts[0], amounts[1], 1, out);
    return 0;
}

/* Adds the row of an event whose context and stack are known already, as of most events.  1, or 0: it is not. */
static int usual_row(struct fp_jfr_reader *r, const struct fp_jfr_ready *one, struct fp_batch *out) {
    const struct fp_jfr_constant *stack = one->stack;
    const struct fp_jfr_type *type = &r->metadata.types[one->type];
    if (!r->programs.list[type->program - 1].is_usual || !stack || !stack->at || !stack->known || r->options.class_leaf)
        return 0;
    struct fp_jfr_context *context = one->context;
    const int is_known = fp_jfr_is_context(r, context, one->type, one->slots[FP_JFR_EVENT_THREAD],
                                           one->slots[FP_JFR_EVENT_STATE], one->slots[FP_JFR_EVENT_CLASS]);
    if (FP_UNLIKELY(!is_known || r->stacks.n_renewed != r->model->n_renewed)) return 0;
    const struct fp_jfr_event *event = &fp_jfr_events[type->event - 1];
    const int64_t value = event->value ? (int64_t)one->slots[FP_JFR_EVENT_VALUE] : r->chunk.period[context->metric];
    if (FP_UNLIKELY(!fp_jfr_has_columns(r, context->metric, out))) return 0;
    r->counts.no_stack += stack->known == 1;
    r->counts.truncated += stack->also;
    const uint64_t key = r->sums.holds ? fp_jfr_pending_key(r, context, stack->known - 1) : 0;
    if (key && fp_jfr_add_pending(r, key, one->slots[FP_JFR_START], value)) return 1;
    if (one->summed) fp_jfr_remember(r, one, context->metric, value, out);
    put(r, fp_jfr_time(r, one->slots[FP_JFR_START]), context->label, context->thread, context->metric, stack->known - 1,
        1, value, 1, out);
    return 1;
}

/* Adds the rows of events that can be decoded ahead, one or more: FP_MORE if there are none, 0, FP_NEEDS, or FP_E_*. */
static int rows_ahead(struct fp_jfr_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_jfr_ready ready[FP_JFR_AHEAD];
    const uint32_t room = out->cap - out->n;
    const uint32_t n = fp_jfr_prefetch(r, in, ready, room < FP_JFR_AHEAD ? room : FP_JFR_AHEAD);
    if (!n) return FP_MORE;
    for (uint32_t k = 0; k < n; k++) {
        const struct fp_jfr_ready *one = &ready[k];
        if (FP_LIKELY(usual_row(r, one, out))) continue;
        struct fp_jfr_slot *slots = fp_jfr_slots_of(r, &r->programs.list[r->metadata.types[one->type].program - 1]);
        for (uint32_t i = 0; i < FP_JFR_EVENT_SLOTS; i++) slots[i].n = one->slots[i];
        const struct fp_jfr_record record = {.at = in->base + (size_t)(one->p - in->p),
                                             .size = one->size,
                                             .type = one->type,
                                             .body = one->body,
                                             .end = one->p + one->size};
        const int status = row(r, one->type, &record, slots, out, err);
        in->pos = (size_t)(one->p - in->p);
        if (status) return status;
    }
    in->pos = (size_t)(ready[n - 1].p - in->p) + (size_t)ready[n - 1].size;
    return 0;
}

/* Adds the rows of samples that waited.  0 when none are left, FP_FULL or FP_NEEDS. */
static int rows_pending(struct fp_jfr_reader *r, struct fp_batch *out) {
    struct fp_jfr_pending *h = r->sums.pending;
    if (!h || (!h->n && !h->n_log)) return 0;
    fp_jfr_add_up(h);
    h->is_due = 1; /* until all are rows */
    for (; h->next < h->n; h->next++) {
        const struct fp_jfr_pending_sum one = h->sums[h->next];
        const uint32_t *context = fp_table_row(&h->contexts, (uint32_t)one.key);
        const uint32_t label = context[0], thread = context[1], metric = context[2];
        if (out->n == out->cap) return FP_FULL;
        if (FP_UNLIKELY(!fp_jfr_has_columns(r, metric, out))) {
            r->request = FP_JFR_COLUMNS;
            r->requested_metric = metric;
            return FP_NEEDS;
        }
        put(r, h->time, label, thread, metric, (uint32_t)(one.key >> 32), (int64_t)one.count, one.value, one.count,
            out);
    }
    fp_jfr_empty_pending(r);
    return 0;
}

/* Adds the row of one event.  0, FP_FULL, FP_NEEDS, or FP_E_*. */
static int row_of(struct fp_jfr_reader *r, uint32_t type, const struct fp_jfr_record *record, struct fp_batch *out,
                  struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (out->n == out->cap) return FP_FULL;
    if (FP_UNLIKELY(!fp_jfr_decode(r, type, record->body, record->end, slots))) return no_fields(r, type, record, err);
    return row(r, type, record, slots, out, err);
}

/* Makes room for samples that wait: adds them up, or makes rows of them.  As rows_pending. */
static int make_room(struct fp_jfr_reader *r, struct fp_batch *out) {
    struct fp_jfr_pending *h = r->sums.pending;
    if (!h->is_due && !r->model->is_refused) fp_jfr_add_up(h);
    return h->is_due || r->model->is_refused ? rows_pending(r, out) : 0;
}

/* Whether no further sample can wait until some are added up or become rows. */
static inline int has_no_room(const struct fp_jfr_reader *r) {
    return r->sums.pending && (r->sums.pending->is_due || r->model->is_refused || fp_jfr_is_full(r->sums.pending));
}

static int feed(struct fp_jfr_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_jfr_record record;
    uint32_t type;
    int status;
    for (;;) {
        if (fp_jfr_skipped(r, in)) return FP_MORE;
        do {
            if (FP_UNLIKELY(has_no_room(r)) && (status = make_room(r, out))) return status;
        } while (!(status = rows_ahead(r, in, out, err)));
        if (status != FP_MORE) return status;
        if ((status = fp_jfr_next(r, in, &record, &type, err)) != FP_FULL) return status;
        if ((status = row_of(r, type, &record, out, err))) return status;
        r->skip = record.size;
    }
}

int fp_jfr_feed(struct fp_jfr_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    fp_jfr_index(r);
    if (!out->n || !r->sums.sure_ticks) fp_jfr_begin_sums(r);
    out->is_summed = r->is_summed;
    const int status = feed(r, in, out, err);
    fp_jfr_end_sums(r);
    if (status != FP_MORE) fp_jfr_write_sums(r, out);
    return status;
}

int fp_jfr_release(struct fp_jfr_reader *r, struct fp_batch *out, struct fp_err *err) {
    (void)err; /* the guard sets it */
    out->is_summed = r->is_summed;
    const int status = rows_pending(r, out);
    return status ? status : FP_DONE;
}
