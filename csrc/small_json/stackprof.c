#include "small_json/private.h"

enum { TOP = 1, FRAMES, FRAME, EDGES, LINES, LINE_, RAW_, TIMES, ODD };
enum { MODE = 1, INTERVAL, SAMPLES, GC, MISSED, NAME, FILE_, FIRST, OWN, EDGE, COST, RAW, TIME };

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "mode", .value = MODE),
    FP_JSON_KEY(TOP, "interval", .value = INTERVAL),
    FP_JSON_KEY(TOP, "samples", .value = SAMPLES),
    FP_JSON_KEY(TOP, "gc_samples", .value = GC),
    FP_JSON_KEY(TOP, "missed_samples", .value = MISSED),
    FP_JSON_KEY(TOP, "frames", .object = FRAMES),
    FP_JSON_KEY(TOP, "raw", .array = RAW_),
    FP_JSON_KEY(TOP, "raw_sample_timestamps", .array = TIMES),
    FP_JSON_EACH(FRAMES, .object = FRAME),
    FP_JSON_KEY(FRAME, "name", .value = NAME),
    FP_JSON_KEY(FRAME, "file", .value = FILE_),
    FP_JSON_KEY(FRAME, "line", .value = FIRST),
    FP_JSON_KEY(FRAME, "samples", .value = OWN),
    FP_JSON_KEY(FRAME, "edges", .object = EDGES),
    FP_JSON_KEY(FRAME, "lines", .object = LINES),
    FP_JSON_EACH(EDGES, .value = EDGE),
    FP_JSON_EACH(LINES, .array = LINE_),
    FP_JSON_EACH(LINE_, .value = COST),
    FP_JSON_EACH(RAW_, .object = ODD, .array = ODD, .value = RAW),
    FP_JSON_EACH(TIMES, .value = TIME),
};

/* The number of a frame's id in `keys`. */
static uint32_t row_of(struct fp_small_json_reader *r, int64_t id) {
    return fp_table_intern(&r->keys, (uint32_t[2]){FP_WORDS(id)});
}

static uint32_t frame_of(const struct fp_small_json_reader *r, uint32_t row) {
    return row < r->cap_names ? r->names[row] : 0;
}

static int64_t number_of(const struct fp_small_json_reader *r) {
    int64_t v;
    return fp_json_is_integer(&r->walk, &v) && v >= 0 ? v : -1;
}

static int ask(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    r->has_rows = 1;
    if (r->is_asked || r->s.only_times) return 0;
    /* the program samples, so the interval is nil */
    if (fp_string_is(&r->model->strings, r->s.mode, "custom") && r->s.interval <= 0) r->s.interval = 1;
    if (!r->s.mode || r->s.interval <= 0) {
        const int status =
            fp_small_json_broken(r, in, "\"mode\", and \"interval\" from 1 on, ahead of \"frames\"", err);
        if (status) return status;
        r->s.interval = 1;
    }
    r->is_asked = 1;
    return FP_NEEDS;
}

/* ---- frames ---- */

static void add_item(struct fp_small_json_reader *r, uint32_t callee, uint32_t line, int64_t weight) {
    if (!weight || !r->s.is_graph) return;
    FP_PUSH(r->items, r->n_items, r->cap_items) = (struct fp_small_json_item){r->file, callee, line, weight};
}

static int end_of_frame(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    if (!r->name || r->is_bad) return fp_small_json_broken(r, in, "a \"name\", and \"samples\" from 0", err);
    struct fp_model *m = r->model;
    const uint32_t line = r->line > 0 && r->line <= INT32_MAX ? (uint32_t)r->line : 0;
    const uint32_t function = fp_model_function(m, 0, r->place, r->name, 0, line);
    *FP_AT(r->names, r->cap_names, (uint64_t)r->file) = fp_model_plain_frame(m, function);
    add_item(r, 0, 0, r->own > r->of_lines ? r->own - r->of_lines : 0); /* what is of no line */
    return 0;
}

static uint32_t function_of(const struct fp_model *m, uint32_t frame) {
    return fp_table_row(&m->lines, fp_table_row(&m->frames, frame)[FP_FRAME_LINES])[FP_LINE_FUNCTION];
}

/* Without samples: the rows of all frames. */
static int put_items(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    for (; r->next_item < r->n_items; r->next_item++) {
        const struct fp_small_json_item *item = &r->items[r->next_item];
        const uint32_t frame = frame_of(r, item->frame), callee = item->callee ? frame_of(r, item->callee) : 0;
        int64_t value;
        if (!frame || (item->callee && !callee) || __builtin_mul_overflow(item->weight, r->s.interval, &value)) {
            FP_TRY(fp_small_json_broken(r, in, "edges to frames that are there, and sums below 2^63", err));
            continue;
        }
        if (r->out->n == r->out->cap) return FP_FULL;
        const uint32_t function = function_of(r->model, frame);
        fp_batch_cost(r->out, function, fp_file_of_function(r->model, function), item->line,
                      callee ? function_of(r->model, callee) : 0);
        fp_small_json_put(r->out, 0, value);
        fp_small_json_put(r->out, 1, item->weight);
    }
    return 0;
}

/* ---- samples ---- */

static int end_of_sample(struct fp_small_json_reader *r, int64_t weight, struct fp_window *in, struct fp_err *err) {
    if (r->out->n == r->out->cap) return FP_FULL;
    int64_t value;
    r->left = 0;
    uint64_t time = r->next_time < r->n_times ? r->times[r->next_time] * 1000 : 0;
    r->next_time = weight < UINT32_MAX - r->next_time ? r->next_time + (uint32_t)weight : UINT32_MAX;
    if (__builtin_mul_overflow(weight, r->s.interval, &value))
        return fp_small_json_broken(r, in, "a number of samples whose sum is below 2^63", err);
    uint32_t stack = 0;
    for (uint32_t k = 1; k < r->n; k++) stack = fp_model_stack(r->model, stack, r->stacks[k]);
    fp_batch_sample(r->out, stack, 0, 0, time);
    fp_small_json_put(r->out, 0, value);
    fp_small_json_put(r->out, 1, weight);
    return 0;
}

/* A number of `raw`: that of frames, then each of these, then samples. */
static int take_raw(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    const int64_t v = number_of(r);
    if (v < 0) return fp_small_json_broken(r, in, "numbers from 0, below 2^63", err);
    if (!r->left) {
        r->left = (uint64_t)v + 1;
        r->n = 1;
        return 0;
    }
    if (r->left == 1) return end_of_sample(r, v, in, err);
    const uint32_t frame = frame_of(r, row_of(r, v));
    FP_TRY(frame ? 0 : fp_small_json_broken(r, in, "frames that are in \"frames\"", err));
    FP_PUSH(r->stacks, r->n, r->cap) =
        frame ? frame : fp_model_name_frame(r->model, fp_strings_intern(&r->model->strings, "?", 1));
    r->left--;
    return 0;
}

/* ---- the walk ---- */

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (kind == FRAMES || kind == RAW_ || kind == TIMES) {
        r->walk.pass = r->s.only_times != (kind == TIMES) || (kind == RAW_ && r->s.is_graph);
        const int asks = kind == FRAMES || (kind == RAW_ && !r->walk.pass), status = asks ? ask(r, in, err) : 0;
        if (status) r->walk.pass = 0;
        return status;
    }
    if (kind == FRAME) {
        r->name = r->place = 0;
        r->file = row_of(r, r->line);
        r->own = r->of_lines = r->line = 0;
        r->is_bad = 0;
    }
    if (kind == LINE_) r->n = 1;
    return kind == ODD ? fp_small_json_broken(r, in, "numbers", err) : 0;
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (kind == FRAME) return end_of_frame(r, in, err);
    if (kind == FRAMES) return put_items(r, in, err);
    if (kind == RAW_ && r->left) {
        r->left = 0;
        return fp_small_json_broken(r, in, "as many frames as it states, and samples, at the end of \"raw\"", err);
    }
    return 0;
}

/* Keys that are numbers: ids of frames, and lines. */
static int key(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    int64_t v;
    if (kind != FRAMES && kind != EDGES && kind != LINES) return 0;
    if (fp_json_number(r->walk.json.text, r->walk.json.text_n, 0, &v, NULL) || v < 0) {
        v = INT64_MAX;
        FP_TRY(fp_small_json_broken(r, in, "keys that are numbers from 0, below 2^63", err));
    }
    if (kind == FRAMES)
        r->line = v;
    else
        r->key = kind == EDGES ? row_of(r, v) : v <= INT32_MAX ? (uint32_t)v : 0;
    return 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (code == RAW) return take_raw(r, in, err);
    if (code == MODE || code == NAME || code == FILE_) {
        uint32_t *const text = code == MODE ? &r->s.mode : code == NAME ? &r->name : &r->place;
        if (r->walk.json.token == FP_JSON_STRING) *text = fp_json_intern(&r->walk, &r->model->strings);
        return 0;
    }
    const int64_t v = number_of(r);
    switch (code) {
        case INTERVAL:
            if (r->is_asked) return fp_small_json_broken(r, in, "\"interval\" once, ahead of \"frames\"", err);
            r->s.interval = v <= INT64_MAX / 1000 ? v : -1;
            break;
        case SAMPLES: r->s.samples = v; break;
        case GC: r->s.gc_samples = v; break;
        case MISSED: r->s.missed_samples = v; break;
        case FIRST: r->line = v; break;
        case OWN: r->own = v, r->is_bad |= v < 0; break;
        case EDGE:
            if (v < 0) return fp_small_json_broken(r, in, "numbers from 0 in \"edges\"", err);
            add_item(r, r->key, 0, v);
            break;
        case COST:
            if (v < 0) return fp_small_json_broken(r, in, "numbers from 0 in \"lines\"", err);
            if (r->n++ != 2) break; /* the first is inclusive */
            if (v > INT64_MAX - r->of_lines) return fp_small_json_broken(r, in, "sums of lines below 2^63", err);
            r->of_lines += v;
            add_item(r, 0, r->key, v);
            break;
        default: /* TIME */
            FP_PUSH(r->times, r->n_times, r->cap_times) = v > 0 && v <= INT64_MAX / 1000 ? (uint64_t)v : 0;
    }
    return 0;
}

const struct fp_json_shape fp_stackprof_shape = {FP_JSON_ROWS(rows), .begin = begin, .end = end, .value = value,
                                                 .key = key};
