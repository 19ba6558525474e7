#include "bridges/rows/spans.h"

#include "bridges/rows/open_calls.h"

struct fp_spans_thread {
    struct fp_open_calls calls;
    uint64_t *starts; /* of the open calls */
    uint32_t cap_starts;
    uint64_t last_time;
};

struct fp_spans *fp_spans_new(const struct fp_model *model, uint32_t room) {
    struct fp_spans *s = fp_made(sizeof *s);
    s->open = fp_have(calloc(1, sizeof *s->open));
    fp_open_init(s->open);
    s->model = model;
    s->room = room;
    s->first_time = UINT64_MAX;
    return s;
}

void fp_spans_free(struct fp_spans *s) {
    for (uint32_t i = 0; i < s->cap_threads; i++) FP_FREE(s->threads[i].calls.functions, s->threads[i].starts);
    if (s->open) fp_open_clear(s->open);
    FP_FREE(s->threads, s->spans, s->open, s);
}

static void leave_out_short(struct fp_spans *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->spans[i].duration >= s->pixel) s->spans[n++] = s->spans[i];
    s->left_out += s->n - n;
    s->n = n;
}

/* Keeps a call unless it is too short. */
static void keep(struct fp_spans *s, struct fp_spans_call call) {
    while (s->n >= s->room && call.duration >= s->pixel && s->pixel <= UINT64_MAX / 2) {
        s->pixel += s->pixel / 4 + 1;
        leave_out_short(s);
    }
    /* without room only if a damaged clock makes so many calls last centuries */
    if (call.duration < s->pixel || s->n >= s->room) {
        s->left_out++;
        return;
    }
    FP_PUSH(s->spans, s->n, s->cap) = call;
}

/* Ends the innermost call of a thread. */
static void end_call(struct fp_spans *s, uint32_t thread, uint64_t time) {
    struct fp_spans_thread *t = &s->threads[thread];
    fp_open_leave(s->open, &t->calls, thread);
    const uint32_t depth = t->calls.n;
    const uint64_t start = t->starts[depth];
    keep(s, (struct fp_spans_call){start, time - start, thread, t->calls.functions[depth], depth});
}

static void reach(struct fp_spans *s, uint64_t first, uint64_t last) {
    if (first < s->first_time) s->first_time = first;
    if (last > s->last_time) s->last_time = last;
}

int fp_spans_put_values(struct fp_spans *s, const struct fp_batch *in, uint32_t value, uint32_t function,
                        struct fp_err *err) {
    const int64_t *values = in->values + (size_t)value * in->cap;
    for (uint32_t i = 0; i < in->n && value < in->n_values; i++) {
        const uint64_t start = in->time[i];
        if (values[i] <= 0 || !start || !in->thread[i] || start > UINT64_MAX - (uint64_t)values[i]) continue;
        if (in->thread[i] >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a row", in->thread[i], s->model->threads.n);
        reach(s, start, start + (uint64_t)values[i]);
        keep(s, (struct fp_spans_call){start, (uint64_t)values[i], in->thread[i], function, 0});
    }
    return FP_DONE;
}

int fp_spans_put(struct fp_spans *s, const struct fp_batch *in, struct fp_err *err) {
    for (uint32_t i = 0; i < in->n; i++) {
        const uint32_t thread = in->thread[i], function = in->function[i];
        const uint8_t op = in->op[i];
        if (op > FP_OP_ENTER_ARGS) continue;
        if (thread >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a call", thread, s->model->threads.n);
        struct fp_spans_thread *t = FP_AT(s->threads, s->cap_threads, thread);
        const uint64_t time = in->time[i] > t->last_time ? in->time[i] : t->last_time;
        t->last_time = time;
        reach(s, time, time);
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            fp_open_enter(s->open, &t->calls, thread, function);
            fp_array_room(&t->starts, &t->cap_starts, t->calls.n, sizeof *t->starts);
            t->starts[t->calls.n - 1] = time;
            continue;
        }
        const struct fp_open_calls *calls = &t->calls;
        int is_top = calls->n && calls->functions[calls->n - 1] == function;
        const int open = is_top ? 1 : fp_open_has(s->open, &t->calls, thread, function);
        for (; open && !is_top; is_top = calls->functions[calls->n - 1] == function) end_call(s, thread, time);
        if (open) end_call(s, thread, time);
    }
    return FP_DONE;
}

FP_ORDER(by_time, struct fp_spans_call, thread, start, depth, duration)

int fp_spans_end(struct fp_spans *s) {
    for (uint32_t thread = 0; thread < s->cap_threads; thread++)
        while (s->threads[thread].calls.n) end_call(s, thread, s->threads[thread].last_time);
    if (s->n) qsort(s->spans, s->n, sizeof *s->spans, by_time);
    return FP_DONE;
}

/* The duration with k longer ones, byte by byte: the highest byte first, then the next one among those that share it.
 */
static uint64_t kth_longest(const struct fp_spans *s, uint32_t k) {
    uint64_t found = 0, known = 0; /* bits */
    for (unsigned shift = 56;; shift -= 8) {
        uint32_t with[256] = {0}, byte = 255;
        for (uint32_t i = 0; i < s->n; i++)
            if ((s->spans[i].duration & known) == found) with[s->spans[i].duration >> shift & 255]++;
        for (; byte && k >= with[byte]; byte--) k -= with[byte];
        found |= (uint64_t)byte << shift;
        known |= (uint64_t)255 << shift;
        if (!shift) return found;
    }
}

uint32_t fp_spans_longest(const struct fp_spans *s, uint32_t most, const struct fp_spans_columns *to,
                          uint64_t *shortest) {
    const uint64_t too_short = s->n > most ? kth_longest(s, most) : 0;
    uint32_t n = 0;
    *shortest = s->n > most ? too_short + (too_short < UINT64_MAX) : 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct fp_spans_call *call = &s->spans[i];
        if (s->n > most && call->duration <= too_short) continue;
        to->starts[n] = call->start;
        to->durations[n] = call->duration;
        to->threads[n] = call->thread;
        to->functions[n] = call->function;
        to->depths[n] = call->depth;
        n++;
    }
    return n;
}
