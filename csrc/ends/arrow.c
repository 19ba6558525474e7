#include "ends/arrow.h"

/* ---- columns ---- */

struct fp_ends_columns *fp_ends_columns_new(uint32_t cap) {
    struct fp_ends_columns *c = fp_made(sizeof *c);
    c->cap = cap;
    return c;
}

void fp_ends_columns_free(struct fp_ends_columns *c) {
    for (uint32_t i = 0; i < c->n_columns; i++) FP_FREE(c->all[i].items, c->all[i].valid);
    FP_FREE(c->all, c);
}

int fp_ends_columns_add(struct fp_ends_columns *c, uint32_t width, uint32_t nullable) {
    struct fp_ends_column *column = &FP_PUSH(c->all, c->n_columns, c->cap_columns);
    *column = (struct fp_ends_column){.width = width};
    if (width) column->items = fp_have(calloc(c->cap, width));
    if (width && nullable) column->valid = fp_have(calloc((size_t)c->cap / 8 + 1, 1));
    return 0;
}

int fp_ends_columns_grow(struct fp_ends_columns *c, uint32_t cap) {
    for (uint32_t i = 0; i < c->n_columns; i++) {
        struct fp_ends_column *column = &c->all[i];
        if (!column->width) continue;
        const size_t before = (size_t)c->cap * column->width, bits = (size_t)c->cap / 8 + 1;
        column->items = fp_have(realloc(column->items, (size_t)cap * column->width));
        memset((uint8_t *)column->items + before, 0, (size_t)cap * column->width - before);
        if (!column->valid) continue;
        column->valid = fp_have(realloc(column->valid, (size_t)cap / 8 + 1));
        memset(column->valid + bits, 0, (size_t)cap / 8 + 1 - bits);
    }
    c->cap = cap;
    return 0;
}

static inline void has_value(struct fp_ends_column *c, uint32_t row) {
    if (c->valid) c->valid[row >> 3] = (uint8_t)(c->valid[row >> 3] | 1u << (row & 7));
}

static inline void has_no_value(struct fp_ends_column *c, uint32_t row) {
    if (c->valid) c->valid[row >> 3] = (uint8_t)(c->valid[row >> 3] & ~(1u << (row & 7)));
}

/* Whether the rows from `row` up to `end` have a value. */
static void have_values(struct fp_ends_column *c, uint32_t row, uint32_t end, int have) {
    if (!c->valid) return;
    for (; row < end && row & 7; row++) have ? has_value(c, row) : has_no_value(c, row);
    const uint32_t bytes = (end - row) / 8;
    memset(c->valid + row / 8, have ? 255 : 0, bytes);
    for (row += 8 * bytes; row < end; row++) have ? has_value(c, row) : has_no_value(c, row);
}

/* Nothing is written to columns that are not built. */
static inline void put_u8(struct fp_ends_column *c, uint32_t row, uint8_t v) {
    if (c->items) ((uint8_t *)c->items)[row] = v;
}
static inline void put_u16(struct fp_ends_column *c, uint32_t row, uint16_t v) {
    if (c->items) ((uint16_t *)c->items)[row] = v;
}
static inline void put_u32(struct fp_ends_column *c, uint32_t row, uint32_t v) {
    if (c->items) ((uint32_t *)c->items)[row] = v;
}
static inline void put_u64(struct fp_ends_column *c, uint32_t row, uint64_t v) {
    if (c->items) ((uint64_t *)c->items)[row] = v;
}

/* ---- texts ---- */

struct fp_ends_tables *fp_ends_tables_new(struct fp_model *m) {
    struct fp_ends_tables *t = fp_made(sizeof *t);
    t->model = m;
    t->last_time = UINT64_MAX;
    FP_INIT_STRINGS(&t->functions.texts, &t->callees.texts, &t->files.texts, &t->objects.texts, &t->labels.texts);
    return t;
}

static void clear_texts(struct fp_ends_texts *texts) {
    fp_strings_clear(&texts->texts);
    free(texts->of);
}

struct fp_ends_open_spans {
    struct open_span {
        uint64_t id, start, children;
        uint32_t function; /* of the model */
        uint32_t name;     /* its text */
    } *calls;
    uint32_t n, cap;
};

/* The texts of a function's object, unless that is a category, and of this category, + 1; 0: none; both 0: not known
 * yet, or none. */
struct fp_ends_owner {
    uint32_t object, category;
};

void fp_ends_tables_free(struct fp_ends_tables *t) {
    clear_texts(&t->functions);
    clear_texts(&t->callees);
    clear_texts(&t->files);
    clear_texts(&t->objects);
    clear_texts(&t->labels);
    fp_utf8_names_clear(&t->unique);
    fp_buf_free(&t->scratch);
    for (uint32_t i = 0; i < t->cap_threads; i++) free(t->threads[i].calls);
    FP_FREE(t->threads, t->owners, t->leaves, t->chain, t);
}

/* Adds the text of an id.  Returns its number. */
static uint32_t add_text(struct fp_ends_tables *t, struct fp_ends_texts *texts, uint32_t id, const uint8_t *p,
                         size_t n) {
    fp_array_zeroed(&texts->of, &texts->cap, (uint64_t)id + 1, sizeof *texts->of);
    if (!fp_is_utf8(p, n)) {
        t->scratch.n = 0;
        fp_utf8_replace(&t->scratch, p, n);
        p = t->scratch.p;
        n = t->scratch.n;
    }
    const uint32_t text = fp_strings_intern(&texts->texts, p, n);
    texts->of[id] = text + 1;
    return text;
}

/* The number of the text of a string of the model, added if needed. */
static inline uint32_t text_of(struct fp_ends_tables *t, struct fp_ends_texts *texts, uint32_t string) {
    if (FP_LIKELY(string < texts->cap && texts->of[string])) return texts->of[string] - 1;
    const struct fp_strings *strings = &t->model->strings;
    size_t n;
    for (; t->n_unique < string; t->n_unique++)
        fp_utf8_names_utf8(&t->unique, &t->scratch, strings, t->n_unique, &n, &t->replaced);
    const uint8_t *p = fp_utf8_names_utf8(&t->unique, &t->scratch, strings, string, &n, &t->replaced);
    return add_text(t, texts, string, p, n);
}

int fp_ends_tables_label(struct fp_ends_tables *t, const uint8_t *p, size_t n) {
    add_text(t, &t->labels, t->requested, p, n);
    return 0;
}

/* Appends the text of a string; the empty string becomes a missing value. */
static inline void put_text(struct fp_ends_tables *t, struct fp_ends_texts *texts, struct fp_ends_column *c,
                            uint32_t row, uint32_t string) {
    if (!c->items) return;
    const uint32_t text = text_of(t, texts, string);
    put_u32(c, row, text);
    if (text) has_value(c, row);
}

/* ---- entries by id; all ids were checked ---- */

static inline uint32_t name_of(const struct fp_model *m, uint32_t function) {
    return fp_table_row(&m->functions, function)[FP_FUNCTION_NAME];
}

static inline uint32_t object_of(const struct fp_model *m, uint32_t function) {
    const uint32_t object = fp_table_row(&m->functions, function)[FP_FUNCTION_OBJECT];
    return fp_table_row(&m->objects, object)[FP_OBJECT_NAME];
}

/* Thread and process; thread 0 is unknown. */
static inline void put_thread(const struct fp_model *m, struct fp_ends_column *c, uint32_t row, uint32_t thread) {
    if (!thread) return;
    const uint32_t *words = fp_table_row(&m->threads, thread);
    put_u32(&c[0], row, words[FP_THREAD_TID]);
    put_u32(&c[1], row, words[FP_THREAD_PID]);
    has_value(&c[0], row);
    has_value(&c[1], row);
}

static int check_ids(const struct fp_table *table, const char *what, uint32_t id, struct fp_err *err) {
    return FP_LIKELY(id < table->n) ? 0 : fp_unknown_id(err, what, id, table->n);
}

/* The string that names line `line` of `frame`, or the address if it is 0. */
static uint32_t name_of_place(struct fp_ends_tables *t, uint32_t frame, uint32_t line) {
    const struct fp_model *m = t->model;
    const uint32_t name = line ? name_of(m, fp_table_row(&m->lines, line)[FP_LINE_FUNCTION]) : 0;
    return name || !frame ? name : fp_frame_name(t->model, frame, &t->scratch);
}

/* ---- which rows are built ---- */

static inline int has_bit(const struct fp_mask *mask, uint32_t id) {
    return !mask->keep || (id < mask->n && mask->keep[id]);
}

static inline int is_built(const struct fp_ends_tables *t, uint32_t thread, uint32_t function, uint64_t time) {
    return time >= t->first_time && time <= t->last_time && has_bit(&t->only_threads, thread) &&
           has_bit(&t->only_functions, function);
}

/* ---- timelines ---- */

void fp_ends_tables_clock(struct fp_ends_tables *t, uint64_t ticks_per_second) {
    fp_clock_set(&t->clock, ticks_per_second);
}

static inline void count_other(struct fp_ends_tables *t, uint8_t op) {
    if (op == FP_OP_ARGUMENT) t->arguments++;
    if (op == FP_OP_CUSTOM || op == FP_OP_TYPED) t->events++;
}

int fp_ends_tables_events(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                          struct fp_ends_columns *out, struct fp_err *err) {
    enum { TS, OP, FUNCTION, THREAD, PROCESS, CPU };
    const struct fp_model *m = t->model;
    struct fp_ends_column *c = out->all;
    for (; *from < in->n; ++*from) {
        const uint32_t i = *from, row = out->n, function = in->function[i], thread = in->thread[i];
        const uint8_t op = in->op[i];
        if (op == FP_OP_BUFFER) continue;
        if (row == out->cap) return FP_FULL;
        const uint64_t now = fp_clock_ns(&t->clock, in->time[i]);
        if (FP_UNLIKELY(now > INT64_MAX)) return fp_fail_beyond(err, "a time", FP_NO_COLUMN, "2^63 - 1 nanoseconds");
        if (check_ids(&m->threads, "the thread of an event", thread, err)) return err->code;
        const int is_call = op <= FP_OP_ENTER_ARGS;
        if (is_call && check_ids(&m->functions, "the function of an event", function, err)) return err->code;
        if (!is_call) count_other(t, op);
        if (!is_built(t, thread, is_call ? function : 0, now)) continue;
        put_u64(&c[TS], row, now);
        put_u8(&c[OP], row, op);
        put_u16(&c[CPU], row, in->cpu[i]);
        put_thread(m, &c[THREAD], row, thread);
        if (is_call) put_text(t, &t->functions, &c[FUNCTION], row, name_of(m, function));
        out->n++;
    }
    return FP_DONE;
}

enum { ID, TS, DUR, SELF, FUNCTION, THREAD, PROCESS, DEPTH, PARENT, OBJECT, CATEGORY, N_SPAN_COLUMNS };

/* The innermost open call of a thread, which has just been removed, as row `row`, all of whose columns have a value
 * before. */
static inline void put_span(const struct fp_model *m, const struct fp_ends_open_spans *open, uint32_t thread,
                            uint64_t end, struct fp_ends_column *c, uint32_t row) {
    const struct open_span *call = &open->calls[open->n];
    put_u64(&c[ID], row, call->id);
    put_u64(&c[TS], row, call->start);
    put_u64(&c[DUR], row, end - call->start);
    put_u64(&c[SELF], row, end - call->start - call->children);
    put_u32(&c[FUNCTION], row, call->name);
    if (!call->name) has_no_value(&c[FUNCTION], row);
    if (thread) {
        const uint32_t *words = fp_table_row(&m->threads, thread);
        put_u32(&c[THREAD], row, words[FP_THREAD_TID]);
        put_u32(&c[PROCESS], row, words[FP_THREAD_PID]);
    } else {
        has_no_value(&c[THREAD], row);
        has_no_value(&c[PROCESS], row);
    }
    put_u32(&c[DEPTH], row, open->n);
    if (open->n)
        put_u64(&c[PARENT], row, call[-1].id);
    else
        has_no_value(&c[PARENT], row);
}

/* Where the function of a call is from.  The columns have a value before. */
static inline void put_owner(struct fp_ends_tables *t, uint32_t function, struct fp_ends_column *c, uint32_t row) {
    if (!c[OBJECT].items && !c[CATEGORY].items) return;
    struct fp_ends_owner *owner = FP_AT(t->owners, t->cap_owners, function);
    const uint32_t string = owner->object | owner->category ? 0 : object_of(t->model, function);
    if (string)
        *(fp_model_category(t->model, function) ? &owner->category : &owner->object) =
            text_of(t, &t->objects, string) + 1;
    put_u32(&c[OBJECT], row, owner->object ? owner->object - 1 : 0);
    put_u32(&c[CATEGORY], row, owner->category ? owner->category - 1 : 0);
    if (!owner->object) has_no_value(&c[OBJECT], row);
    if (!owner->category) has_no_value(&c[CATEGORY], row);
}

/* The open calls of a thread.  NULL: see `err`. */
static struct fp_ends_open_spans *calls_of(struct fp_ends_tables *t, uint32_t thread, struct fp_err *err) {
    if (check_ids(&t->model->threads, "the thread of a call", thread, err)) return NULL;
    return FP_AT(t->threads, t->cap_threads, thread);
}

static int begin_span(struct fp_ends_tables *t, struct fp_ends_open_spans *open, uint32_t function, uint64_t time,
                      int has_name, struct fp_err *err) {
    const struct fp_model *m = t->model;
    if (check_ids(&m->functions, "the function of a call", function, err)) return err->code;
    const uint32_t name = has_name ? text_of(t, &t->functions, name_of(m, function)) : 0;
    FP_PUSH(open->calls, open->n, open->cap) = (struct open_span){t->n_calls++, time, 0, function, name};
    return 0;
}

/* A call is counted where it ends. */
static int count_spans(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from, struct fp_ends_columns *out,
                       struct fp_err *err) {
    const struct fp_model *m = t->model;
    uint32_t thread = 0, function = 0; /* the highest ones */
    for (uint32_t i = *from; i < in->n; i++) {
        const uint32_t calls = in->op[i] <= FP_OP_ENTER_ARGS ? UINT32_MAX : 0;
        thread = (in->thread[i] & calls) > thread ? in->thread[i] : thread;
        function = (in->function[i] & calls) > function ? in->function[i] : function;
    }
    if (check_ids(&m->threads, "the thread of a call", thread, err)) return err->code;
    if (check_ids(&m->functions, "the function of a call", function, err)) return err->code;
    while (*from < in->n && out->n < out->cap) {
        const uint32_t rows = in->n - *from < out->cap - out->n ? in->n - *from : out->cap - out->n;
        const uint8_t *const ops = in->op + *from;
        uint32_t ends = 0, arguments = 0, events = 0;
        for (uint32_t i = 0; i < rows; i++) {
            ends += ops[i] == FP_OP_EXIT || ops[i] == FP_OP_TAIL_EXIT;
            arguments += ops[i] == FP_OP_ARGUMENT;
            events += ops[i] == FP_OP_CUSTOM || ops[i] == FP_OP_TYPED;
        }
        *from += rows;
        out->n += ends;
        t->arguments += arguments;
        t->events += events;
    }
    return *from < in->n ? FP_FULL : FP_DONE;
}

int fp_ends_tables_spans(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                         struct fp_ends_columns *out, struct fp_err *err) {
    if (t->only_counted) return count_spans(t, in, from, out, err);
    struct fp_ends_column c[N_SPAN_COLUMNS]; /* a copy, which items written do not change */
    memcpy(c, out->all, sizeof c);
    struct fp_ends_open_spans *open = NULL; /* of the thread `its` */
    uint32_t i = *from, row = out->n, its = 0;
    const uint32_t last = in->n - i < out->cap - row ? row + in->n - i : out->cap;
    int status = FP_DONE;
    for (int k = 0; k < N_SPAN_COLUMNS; k++) have_values(&c[k], row, last, 1);
    for (; i < in->n; i++) {
        const uint32_t thread = in->thread[i];
        const uint8_t op = in->op[i];
        const uint64_t time = in->time[i];
        if (op > FP_OP_ENTER_ARGS) {
            count_other(t, op);
            continue;
        }
        if (!open || thread != its) {
            if (!(open = calls_of(t, thread, err))) {
                status = err->code;
                break;
            }
            its = thread;
        }
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            if ((status = begin_span(t, open, in->function[i], time, c[FUNCTION].items != NULL, err))) break;
            continue;
        }
        if (row == out->cap) {
            status = FP_FULL;
            break;
        }
        if (!open->n) {
            status = fp_fail(err, FP_E_MALFORMED, 0, "a call ends before it begins");
            break;
        }
        open->n--;
        const struct open_span *call = &open->calls[open->n];
        if (open->n) open->calls[open->n - 1].children += time - call->start;
        if (!is_built(t, thread, call->function, call->start)) continue;
        put_owner(t, call->function, c, row);
        put_span(t->model, open, thread, time, c, row++);
    }
    for (int k = 0; k < N_SPAN_COLUMNS; k++) have_values(&c[k], row, last, 0);
    *from = i;
    out->n = row;
    return status;
}

/* ---- stacks ---- */

/* Writes the values of row i; columns that its part lacks get no value. */
static inline void put_values(const struct fp_ends_tables *t, const struct fp_batch *in, uint32_t i,
                              struct fp_ends_columns *out) {
    for (uint32_t k = 0; k < in->n_values && k < t->n_value_columns; k++) {
        struct fp_ends_column *c = &out->all[t->value_columns[k]];
        put_u64(c, out->n, (uint64_t)in->values[(size_t)k * in->cap + i]);
        has_value(c, out->n);
    }
}

/* Checks the ids that a frame and one of its lines refer to. */
static int check_place(const struct fp_model *m, uint32_t frame, uint32_t line, struct fp_err *err) {
    if (check_ids(&m->lines, "the line of a frame", line, err)) return err->code;
    const uint32_t mapping = fp_table_row(&m->frames, frame)[FP_FRAME_MAPPING];
    if (check_ids(&m->mappings, "the mapping of a frame", mapping, err)) return err->code;
    const uint32_t object = fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT];
    if (check_ids(&m->objects, "the object of a mapping", object, err)) return err->code;
    return check_ids(&m->functions, "the function of a line", fp_table_row(&m->lines, line)[FP_LINE_FUNCTION], err);
}

/* Sets *text to the text of a stack's innermost function, by its frame: stacks may be removed.  0, or an error. */
static int leaf_of(struct fp_ends_tables *t, uint32_t stack, uint32_t *text, struct fp_err *err) {
    const struct fp_model *m = t->model;
    const uint32_t frame = stack ? fp_table_row(&m->stacks, stack)[FP_STACK_FRAME] : 0;
    if (FP_LIKELY(frame < t->cap_leaves && t->leaves[frame])) {
        *text = t->leaves[frame] - 1;
        return 0;
    }
    if (check_ids(&m->frames, "the frame of a stack", frame, err)) return err->code;
    fp_array_zeroed(&t->leaves, &t->cap_leaves, (uint64_t)frame + 1, sizeof *t->leaves);
    const uint32_t line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
    if (check_place(m, frame, line, err)) return err->code;
    const uint32_t string = name_of_place(t, frame, line);
    *text = text_of(t, &t->functions, string);
    t->leaves[frame] = *text + 1;
    return 0;
}

int fp_ends_tables_samples(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                           struct fp_ends_columns *out, struct fp_err *err) {
    enum { TS, STACK, FUNCTION, THREAD, PROCESS, LABELS };
    const struct fp_model *m = t->model;
    struct fp_ends_column *c = out->all;
    for (; *from < in->n; ++*from) {
        const uint32_t i = *from, row = out->n, stack = in->stack[i], thread = in->thread[i], label = in->label[i];
        if (row == out->cap) return FP_FULL;
        if (check_ids(&m->stacks, "the stack of a sample", stack, err)) return err->code;
        if (check_ids(&m->threads, "the thread of a sample", thread, err)) return err->code;
        if (check_ids(&m->labels, "the labels of a sample", label, err)) return err->code;
        if (in->time[i] > INT64_MAX) return fp_fail_beyond(err, "a time", FP_NO_COLUMN, "2^63 - 1 nanoseconds");
        /* a missing time is after all times */
        if (!is_built(t, thread, 0, in->time[i] ? in->time[i] : UINT64_MAX)) continue;
        if (label && c[LABELS].items) {
            if (label >= t->labels.cap || !t->labels.of[label]) {
                t->requested = label;
                return FP_NEEDS;
            }
            put_u32(&c[LABELS], row, t->labels.of[label] - 1);
            has_value(&c[LABELS], row);
        }
        if (in->time[i]) {
            put_u64(&c[TS], row, in->time[i]);
            has_value(&c[TS], row);
        }
        uint32_t leaf = 0;
        if (c[FUNCTION].items && leaf_of(t, stack, &leaf, err)) return err->code;
        put_u32(&c[STACK], row, stack ? stack + t->forgotten : 0);
        put_u32(&c[FUNCTION], row, leaf);
        if (leaf) has_value(&c[FUNCTION], row);
        put_thread(m, &c[THREAD], row, thread);
        put_values(t, in, i, out);
        out->n++;
    }
    return FP_DONE;
}

/* Fills `chain` with the frames and lines of a stack.  0, or an error. */
static int expand_stack(struct fp_ends_tables *t, uint32_t stack, struct fp_err *err) {
    const struct fp_model *m = t->model;
    t->n_chain = 0;
    for (; stack; stack = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT]) {
        const uint32_t frame = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
        if (check_ids(&m->frames, "the frame of a stack", frame, err)) return err->code;
        uint32_t line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
        do {
            if (check_place(m, frame, line, err)) return err->code;
            fp_array_room(&t->chain, &t->cap_chain, (uint64_t)t->n_chain + 2, sizeof *t->chain);
            t->chain[t->n_chain++] = frame;
            t->chain[t->n_chain++] = line;
            line = line ? fp_table_row(&m->lines, line)[FP_LINE_OUTER] : 0;
        } while (line);
    }
    t->n_left = t->n_chain;
    return 0;
}

static void put_frame(struct fp_ends_tables *t, uint32_t stack, struct fp_ends_columns *out) {
    enum { STACK, DEPTH, FUNCTION, FILE, LINE, ADDRESS, OBJECT };
    const struct fp_model *m = t->model;
    struct fp_ends_column *c = out->all;
    const uint32_t row = out->n, frame = t->chain[t->n_left - 2], line = t->chain[t->n_left - 1];
    const uint32_t name = c[FUNCTION].items ? name_of_place(t, frame, line) : 0;
    put_text(t, &t->functions, &c[FUNCTION], row, name);
    const uint32_t *at = fp_table_row(&m->frames, frame), *place = fp_table_row(&m->lines, line);
    const uint32_t function = line ? place[FP_LINE_FUNCTION] : 0;
    put_u32(&c[STACK], row, stack + t->forgotten);
    put_u32(&c[DEPTH], row, (t->n_chain - t->n_left) / 2);
    put_text(t, &t->files, &c[FILE], row, fp_table_row(&m->functions, function)[FP_FUNCTION_FILE]);
    if (line && place[FP_LINE_LINE]) {
        put_u32(&c[LINE], row, place[FP_LINE_LINE]);
        has_value(&c[LINE], row);
    }
    const uint64_t address = fp_words_u64(at + FP_FRAME_ADDRESS);
    if (address || at[FP_FRAME_MAPPING]) {
        put_u64(&c[ADDRESS], row, address);
        has_value(&c[ADDRESS], row);
    }
    const uint32_t object = fp_table_row(&m->mappings, at[FP_FRAME_MAPPING])[FP_MAPPING_OBJECT];
    const uint32_t string = object ? fp_table_row(&m->objects, object)[FP_OBJECT_NAME] : object_of(m, function);
    put_text(t, &t->objects, &c[OBJECT], row, string);
    out->n++;
}

int fp_ends_tables_frames(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                          struct fp_ends_columns *out, struct fp_err *err) {
    const struct fp_model *m = t->model;
    if (t->leaves_after != t->forgotten && t->cap_leaves) memset(t->leaves, 0, t->cap_leaves * sizeof *t->leaves);
    t->leaves_after = t->forgotten;
    for (; *from < in->n; ++*from) {
        const uint32_t stack = in->stack[*from];
        if (!t->n_left) { /* otherwise some of its frames did not fit before */
            if (check_ids(&m->stacks, "the stack of a sample", stack, err)) return err->code;
            if (*FP_AT(t->leaves, t->cap_leaves, stack)) continue;
            t->leaves[stack] = 1;
            if (expand_stack(t, stack, err)) return err->code;
        }
        for (; t->n_left; t->n_left -= 2) {
            if (out->n == out->cap) return FP_FULL;
            put_frame(t, stack, out);
        }
    }
    return FP_DONE;
}

/* ---- graphs ---- */

int fp_ends_tables_graph(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t *from,
                         struct fp_ends_columns *out, struct fp_err *err) {
    enum { KIND, FUNCTION, FILE, LINE, OBJECT, ADDRESS, CALLEE, CALLS };
    const struct fp_model *m = t->model;
    struct fp_ends_column *c = out->all;
    for (; *from < in->n; ++*from) {
        const uint32_t i = *from, row = out->n, function = in->function[i];
        const uint8_t kind = in->kind[i];
        if (row == out->cap) return FP_FULL;
        if (check_ids(&m->functions, "the function of a row", function, err)) return err->code;
        if (in->file[i] >= m->strings.n) return fp_unknown_id(err, "the file of a row", in->file[i], m->strings.n);
        if (!has_bit(&t->only_functions, function)) {
            t->jumps += kind == FP_JUMP || kind == FP_JCND;
            continue;
        }
        put_text(t, &t->functions, &c[FUNCTION], row, name_of(m, function));
        put_text(t, &t->files, &c[FILE], row, in->file[i]);
        put_text(t, &t->objects, &c[OBJECT], row, object_of(m, function));
        put_u8(&c[KIND], row, kind);
        if (kind != FP_BLOCK) {
            if (t->has_lines && in->line[i]) {
                put_u32(&c[LINE], row, in->line[i]);
                has_value(&c[LINE], row);
            }
            if (t->has_addresses) {
                put_u64(&c[ADDRESS], row, in->address[i]);
                has_value(&c[ADDRESS], row);
            }
        }
        if (kind == FP_CALL || kind == FP_JUMP || kind == FP_JCND) {
            if (check_ids(&m->functions, "the callee of a row", in->callee[i], err)) return err->code;
            put_text(t, &t->callees, &c[CALLEE], row, name_of(m, in->callee[i]));
            if (in->count[i] > INT64_MAX) return fp_fail_beyond(err, "a count of calls", FP_NO_COLUMN, "2^63 - 1");
            t->jumps += kind != FP_CALL;
            if (in->count[i] || kind != FP_CALL) { /* calls that nobody counted are 0 */
                put_u64(&c[CALLS], row, in->count[i]);
                has_value(&c[CALLS], row);
            }
        }
        if (kind == FP_COST || kind == FP_CALL) put_values(t, in, i, out);
        out->n++;
    }
    return FP_DONE;
}
