/* Markers as a timeline: markers with a duration become calls, the others events (core/overlap_lanes.h); and values of
 * counters.
 *
 * Gecko writes a marker when it ends, and markers of a thread need not nest.
 */
#include <math.h>

#include "firefox/read_private.h"

enum phase { INSTANT = 0, INTERVAL = 1, BEGINS = 2, ENDS = 3 };

/* An open begin marker, by its name. */
struct begun {
    uint64_t time;
    uint32_t thread; /* + 1 */
};

struct fp_firefox_marks {
    struct fp_overlap_lanes lanes;
    struct begun *begun;
    uint32_t cap_begun;
};

/* The function of a marker. */
static uint32_t function_of(void *arg, uint32_t name) {
    struct fp_firefox_read *r = arg;
    const uint32_t known = name ? name : fp_strings_intern(&r->model->strings, "[unknown]", 9);
    return fp_model_function(r->model, 0, 0, known, 0, 0);
}

static void begin_marks(struct fp_firefox_read *r) {
    if (r->rows.marks) return;
    r->rows.marks = fp_have(calloc(1, sizeof *r->rows.marks));
    r->rows.marks->lanes = (struct fp_overlap_lanes){.model = r->model,
                                                     .rounds = &r->rounds,
                                                     .rows = &r->counts.rows,
                                                     .added = &r->counts.lanes,
                                                     .cut = &r->counts.cut,
                                                     .arg = r,
                                                     .function = function_of};
}

void fp_firefox_free_marks(struct fp_firefox_read *r) {
    if (!r->rows.marks) return;
    fp_overlap_lanes_clear(&r->rows.marks->lanes);
    FP_FREE(r->rows.marks->begun, r->rows.marks);
}

/* ---- reading ---- */

/* Nanoseconds since the start of the profile, of a thread or counter that began at `start`.  Returns 0 if it has no
 * time. */
static int time_since(int64_t start, int64_t v, uint64_t *time) {
    int64_t there;
    if (v == FP_FIREFOX_NONE) return 0;
    if (__builtin_add_overflow(v, start == FP_FIREFOX_NONE ? 0 : start, &there)) there = v > 0 ? INT64_MAX : INT64_MIN;
    *time = there > 0 ? (uint64_t)there : 0;
    return 1;
}

static int time_of(const struct fp_firefox_read *r, int64_t v, uint64_t *time) {
    return time_since(r->threads[r->tables[r->table].thread - 1].start_ns, v, time);
}

static int put(struct fp_firefox_read *r, uint64_t begin, uint64_t end, uint32_t name, int is_call) {
    const uint32_t thread = r->threads[r->tables[r->table].thread - 1].thread;
    const struct fp_span span = {.begin = begin, .end = end, .what = name, .thread = thread, .is_event = !is_call};
    const int status = fp_overlap_lanes_put(&r->rows.marks->lanes, span);
    if (status == FP_NEEDS) r->request = FP_FIREFOX_ROUNDS;
    return status;
}

/* Keeps a begin until the end of the same name, which makes them a call.  0 or FP_NEEDS. */
static int pair(struct fp_firefox_read *r, int is_end, uint64_t time, uint32_t name) {
    struct fp_firefox_marks *k = r->rows.marks;
    fp_array_zeroed(&k->begun, &k->cap_begun, r->model->strings.n, sizeof *k->begun);
    struct begun *b = &k->begun[name];
    const uint32_t mine = r->tables[r->table].thread;
    if (is_end && b->thread == mine) {
        const int status = put(r, b->time, time, name, 1);
        if (!status) {
            b->thread = 0;
            r->counts.unpaired--;
        }
        return status;
    }
    r->counts.unpaired++;
    if (!is_end) *b = (struct begun){time, mine};
    return 0;
}

int fp_firefox_marker(struct fp_firefox_read *r, const int64_t *v, struct fp_err *err) {
    const struct fp_firefox_set *s = &r->rows.sets[!r->scan.shared_of[FP_FIREFOX_STRING_TABLE]];
    const int64_t index = v[FP_FX_MARKER_NAME], phase = v[FP_FX_MARKER_PHASE];
    uint64_t begin, end = 0;
    if (index < 0 || index >= s->n[FP_FIREFOX_STRING_TABLE])
        return fp_firefox_broken(r, r->tables[r->table].at, "the name of a marker", "an index in the table of strings",
                                 err);
    begin_marks(r);
    const uint32_t name = s->strings[index];
    int has_begin = time_of(r, v[FP_FX_MARKER_START], &begin);
    const int has_end = time_of(r, v[FP_FX_MARKER_END], &end);
    if (!has_begin) has_begin = time_of(r, v[FP_FX_MARKER_TIME], &begin);
    int status = 0;
    if (phase == BEGINS && has_begin)
        status = pair(r, 0, begin, name);
    else if (phase == ENDS && has_end)
        status = pair(r, 1, end, name);
    else if (has_begin && (phase == INTERVAL || phase == FP_FIREFOX_NONE) && has_end)
        status = put(r, begin, end, name, 1);
    else if (has_begin)
        status = put(r, begin, begin, name, 0);
    else
        r->counts.unpaired++;
    return status;
}

/* Counts are differences to the value before.  0 or FP_NEEDS. */
int fp_firefox_counter_value(struct fp_firefox_read *r, const int64_t *v) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    const struct fp_firefox_counter *c = &r->of_counters[t->thread - 1];
    const int is_absolute = (int)(t->has >> FP_FX_COUNTER_TIME & 1);
    struct fp_span span = {
        .what = c->name ? c->name : c->category, .thread = c->thread, .is_event = 1, .is_counter = 1};
    int64_t clock = r->rows.clock, time = v[FP_FX_COUNTER_TIME];
    double count = 0, sum = r->rows.sum;
    if (!is_absolute) {
        if (v[FP_FX_COUNTER_DELTA] != FP_FIREFOX_NONE && __builtin_add_overflow(clock, v[FP_FX_COUNTER_DELTA], &clock))
            clock = v[FP_FX_COUNTER_DELTA] > 0 ? INT64_MAX : INT64_MIN;
        time = clock;
    }
    const int has_count = v[FP_FX_COUNTER_COUNT] != FP_FIREFOX_NONE;
    if (has_count) memcpy(&count, &v[FP_FX_COUNTER_COUNT], sizeof count);
    sum += count;
    if (has_count && (!isfinite(sum) || !time_since(c->start_ns, time, &span.begin))) {
        r->counts.counter_values++;
    } else if (has_count) {
        begin_marks(r);
        memcpy(&span.end, &sum, sizeof sum);
        const int status = fp_overlap_lanes_put(&r->rows.marks->lanes, span);
        if (status == FP_NEEDS) r->request = FP_FIREFOX_ROUNDS;
        if (status) return status;
    }
    r->rows.clock = clock; /* not before, because after FP_NEEDS the same value is put again */
    r->rows.sum = isfinite(sum) ? sum : r->rows.sum;
    return 0;
}

/* ---- rows ---- */

int fp_firefox_marker_rows(struct fp_firefox_read *r, struct fp_batch *out) {
    if (!r->rows.marks) return FP_DONE;
    const int status = fp_overlap_lanes_pull(&r->rows.marks->lanes, out);
    if (status == FP_NEEDS) r->request = FP_FIREFOX_ROUNDS;
    return status;
}
