/* Recordings of Safari: samples, then the duration of each. */
#include "small_json/private.h"

enum { TOP = 1, RECORDING, RECORDS, RECORD, SAMPLES, SAMPLE, FRAMES, FRAME, POSITION, DURATIONS };
/* Numbers, by their place in `numbers`, then others. */
enum { LINE = 1, COLUMN, AT_LINE, AT_COLUMN, N_NUMBERS, TIMESTAMP, DURATION, NAME, URL };

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "recording", .object = RECORDING),
    FP_JSON_KEY(RECORDING, "records", .array = RECORDS),
    FP_JSON_KEY(RECORDING, "sampleStackTraces", .array = SAMPLES),
    FP_JSON_KEY(RECORDING, "sampleDurations", .array = DURATIONS),
    FP_JSON_EACH(RECORDS, .object = RECORD),
    FP_JSON_EACH(SAMPLES, .object = SAMPLE),
    FP_JSON_KEY(SAMPLE, "timestamp", .value = TIMESTAMP),
    FP_JSON_KEY(SAMPLE, "stackFrames", .array = FRAMES),
    FP_JSON_EACH(FRAMES, .object = FRAME),
    FP_JSON_KEY(FRAME, "name", .value = NAME),
    FP_JSON_KEY(FRAME, "line", .value = LINE),
    FP_JSON_KEY(FRAME, "column", .value = COLUMN),
    FP_JSON_KEY(FRAME, "url", .value = URL),
    FP_JSON_KEY(FRAME, "expressionLocation", .object = POSITION),
    FP_JSON_KEY(POSITION, "line", .value = AT_LINE),
    FP_JSON_KEY(POSITION, "column", .value = AT_COLUMN),
    FP_JSON_EACH(DURATIONS, .value = DURATION),
};

static uint32_t line_of(int64_t number) {
    return number > 0 && number <= INT32_MAX ? (uint32_t)number : 0;
}

static void end_of_frame(struct fp_small_json_reader *r) {
    const int64_t *n = r->numbers;
    const int has_place = n[AT_LINE] > 0;
    const uint32_t name = r->name ? r->name : fp_strings_intern(&r->model->strings, "(anonymous)", 11);
    const uint32_t function = fp_model_function(r->model, 0, r->module, name, 0, line_of(n[LINE]));
    FP_PUSH(r->names, r->n_frames, r->cap_names) = fp_model_line_frame(
        r->model, function, line_of(n[has_place ? AT_LINE : LINE]), line_of(n[has_place ? AT_COLUMN : COLUMN]));
}

/* Without a time it is an error; if lenient it is kept, as durations have indices only. */
static int end_of_sample(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    const int status = r->own < 0 ? fp_small_json_broken(r, in, "a \"timestamp\" from 0", err) : 0;
    uint32_t stack = 0;
    if (status) return status;
    while (r->n_frames) stack = fp_model_stack(r->model, stack, r->names[--r->n_frames]);
    *FP_AT(r->times, r->cap_times, r->n) = r->own > 0 ? (uint64_t)r->own : 0;
    FP_PUSH(r->stacks, r->n, r->cap) = stack;
    return 0;
}

/* Durations come after all samples, in their order.  -1: one that cannot be read. */
static int end_of_duration(struct fp_small_json_reader *r, int64_t duration, struct fp_window *in, struct fp_err *err) {
    const int has_sample = r->next_time + 1 < r->n;
    if (duration < 0 || !has_sample) {
        r->next_time += has_sample && r->lenient;
        return fp_small_json_broken(r, in, "a sample ahead of each duration, of at least 0", err);
    }
    if (r->out->n == r->out->cap) return FP_FULL;
    r->next_time++;
    fp_batch_sample(r->out, r->stacks[r->next_time], 0, 0, r->times[r->next_time]);
    fp_small_json_put(r->out, 0, duration);
    fp_small_json_put(r->out, 1, 1);
    return 0;
}

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    (void)in, (void)err;
    r->has_rows |= kind == DURATIONS;
    r->s.records += kind == RECORD;
    if (kind == SAMPLE) r->own = -1, r->n_frames = 0;
    if (kind != FRAME) return 0;
    for (uint32_t i = 0; i < N_NUMBERS; i++) r->numbers[i] = -1;
    r->name = r->module = 0;
    return 0;
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (kind == FRAME) end_of_frame(r);
    if (kind == SAMPLE) return end_of_sample(r, in, err);
    if (kind == RECORDING && r->next_time + 1 != r->n)
        return fp_small_json_broken(r, in, "a duration of each sample", err);
    return 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    const struct fp_json *j = &r->walk.json;
    if (code >= NAME) {
        if (j->token == FP_JSON_STRING)
            *(code == NAME ? &r->name : &r->module) = fp_json_intern(&r->walk, &r->model->strings);
        return 0;
    }
    int64_t number = -1;
    if (j->token != FP_JSON_NUMBER ||
        fp_json_number(j->text, j->text_n, code >= TIMESTAMP ? 9 : 0, &number, NULL)) /* seconds: nanoseconds */
        number = -1;
    if (code == DURATION) return end_of_duration(r, number, in, err);
    *(code == TIMESTAMP ? &r->own : &r->numbers[code]) = number;
    return 0;
}

const struct fp_json_shape fp_safari_shape = {FP_JSON_ROWS(rows), .begin = begin, .end = end, .value = value};
