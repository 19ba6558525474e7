/* Markers as a timeline: those with a duration are calls, the others events.
 *
 * Gecko writes a marker when it ends, so the markers of a thread are sorted by their begin (core/rounds.h).  They need
 * not nest: what does not fit into the innermost open one gets a lane, which is a thread of the same name.
 *
 *   begin 10 end 50 A, begin 20 end 30 B, begin 40 end 60 C
 *
 *   lane 0   enter A 10, enter B 20, exit B 30, exit A 50
 *   lane 1   enter C 40, exit C 60
 */
#include "firefox/read_private.h"

enum { MOST_LANES = 64, MOST_TIES = 1 << 16 };
enum phase { INSTANT = 0, INTERVAL = 1, BEGINS = 2, ENDS = 3 };

struct mark {
    uint64_t begin, end;
    uint32_t name;    /* string of the model */
    uint32_t is_call; /* or an event */
};

/* Open calls, outermost first. */
struct lane {
    struct mark *open;
    uint32_t n, cap;
    uint32_t thread;
};

/* A marker that has begun, by its name. */
struct begun {
    uint64_t time;
    uint32_t thread; /* + 1 */
};

struct fp_firefox_marks {
    struct lane lanes[MOST_LANES];
    uint32_t inputs[MOST_LANES]; /* of lanes */
    uint32_t n_lanes, n_inputs;  /* of the thread; of the file */
    struct begun *begun;
    uint32_t cap_begun;
    struct mark *ties; /* those that begin at the same time */
    uint32_t n_ties, cap_ties, at_tie;
    int32_t is_pulling, has_record, taking;
};

void fp_firefox_free_marks(struct fp_firefox_read *r) {
    if (!r->marks) return;
    for (uint32_t i = 0; i < MOST_LANES; i++) free(r->marks->lanes[i].open);
    free(r->marks->begun);
    free(r->marks->ties);
    free(r->marks);
}

/* ---- reading ---- */

/* Nanoseconds since the profile begins.  0 if there is none. */
static int time_of(struct fp_firefox_read *r, int64_t v, uint64_t *time) {
    const int64_t start = r->threads[r->tables[r->table].thread - 1].start_ns;
    int64_t there;
    if (v == FP_FIREFOX_NONE) return 0;
    if (__builtin_add_overflow(v, start == FP_FIREFOX_NONE ? 0 : start, &there)) there = INT64_MAX;
    *time = there > 0 ? (uint64_t)there : 0;
    return 1;
}

static int put(struct fp_firefox_read *r, uint64_t begin, uint64_t end, uint32_t name, int is_call) {
    const struct mark mark = {.begin = begin, .end = end > begin ? end : begin, .name = name, .is_call = is_call != 0};
    const int status = fp_rounds_put(&r->rounds, begin, 0, (const uint8_t *)&mark, sizeof mark);
    if (status == FP_ASK) r->request = FP_FIREFOX_ROUNDS;
    return status;
}

/* A begin is kept until its end, which has the same name.  0, FP_ASK, or FP_E_NOMEM. */
static int pair(struct fp_firefox_read *r, int is_end, uint64_t time, uint32_t name) {
    struct fp_firefox_marks *k = r->marks;
    if (fp_array_zeroed(&k->begun, &k->cap_begun, r->model->strings.n, sizeof *k->begun)) return FP_E_NOMEM;
    struct begun *b = &k->begun[name];
    const uint32_t mine = r->tables[r->table].thread;
    if (is_end && b->thread == mine) {
        const int status = put(r, b->time, time, name, 1);
        if (!status) {
            b->thread = 0;
            r->unpaired--;
        }
        return status;
    }
    r->unpaired++;
    if (!is_end) *b = (struct begun){time, mine};
    return 0;
}

int fp_firefox_marker(struct fp_firefox_read *r, const int64_t *v, struct fp_err *err) {
    const struct fp_firefox_set *s = &r->sets[!r->shared_of[FP_FIREFOX_STRING_TABLE]];
    const int64_t index = v[MARKER_NAME], phase = v[MARKER_PHASE];
    uint64_t begin, end = 0;
    if (index < 0 || index >= s->n[FP_FIREFOX_STRING_TABLE])
        return fp_firefox_broken(r, r->tables[r->table].at, "the name of a marker", "an index in the table of strings",
                                 err);
    if (!r->marks && !(r->marks = calloc(1, sizeof *r->marks))) return fp_no_memory(err);
    const uint32_t name = s->strings[index];
    int has_begin = time_of(r, v[MARKER_START], &begin);
    const int has_end = time_of(r, v[MARKER_END], &end);
    if (!has_begin) has_begin = time_of(r, v[MARKER_TIME], &begin);
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
        r->unpaired++;
    return status == FP_E_NOMEM ? fp_no_memory(err) : status;
}

/* ---- rows ---- */

static uint32_t row(struct fp_batch *out, unsigned op, uint64_t time, uint32_t function, uint32_t thread) {
    const uint32_t i = out->n++;
    out->op[i] = (uint8_t)op;
    out->time[i] = time;
    out->function[i] = function;
    out->thread[i] = thread;
    out->cpu[i] = 0;
    out->aux[i] = 0;
    return i;
}

/* The function of a marker. */
static uint32_t function_of(struct fp_firefox_read *r, uint32_t name) {
    const uint32_t known = name ? name : fp_strings_intern(&r->model->strings, "[unknown]", 9);
    return known == FP_NO_ID ? FP_NO_ID : fp_model_function(r->model, 0, 0, known, 0, 0);
}

/* Ends calls that end up to `time`.  FP_FULL, FP_E_NOMEM, or 0. */
static int leave(struct fp_firefox_read *r, struct lane *lane, uint64_t time, struct fp_batch *out) {
    while (lane->n && lane->open[lane->n - 1].end <= time) {
        if (out->n == out->cap) return FP_FULL;
        const struct mark *mark = &lane->open[lane->n - 1];
        const uint32_t function = function_of(r, mark->name);
        if (function == FP_NO_ID) return FP_E_NOMEM;
        row(out, FP_OP_EXIT, mark->end, function, lane->thread);
        lane->n--;
    }
    return 0;
}

/* A new lane of the current thread. */
static int new_lane(struct fp_firefox_read *r) {
    struct fp_firefox_marks *k = r->marks;
    const uint32_t number = k->n_lanes, thread = r->threads[r->tables[r->table].thread - 1].thread;
    struct lane *lane = &k->lanes[number];
    lane->n = 0;
    lane->thread = thread;
    if (number) {
        while (k->n_inputs < number) {
            const uint32_t input = fp_model_input(r->model);
            if (input == FP_NO_ID) return FP_E_NOMEM;
            k->inputs[++k->n_inputs] = input;
        }
        const uint32_t *words = fp_table_row(&r->model->threads, thread);
        lane->thread = fp_model_thread(r->model, k->inputs[number], words[FP_THREAD_PID], words[FP_THREAD_TID]);
        if (lane->thread == FP_NO_ID) return FP_E_NOMEM;
        r->lanes++;
    }
    k->n_lanes++;
    return 0;
}

/* 0, FP_FULL: call again, or FP_E_NOMEM. */
static int enter(struct fp_firefox_read *r, struct mark *mark, struct fp_batch *out) {
    struct fp_firefox_marks *k = r->marks;
    for (uint32_t number = 0;; number++) {
        if (number == k->n_lanes && new_lane(r)) return FP_E_NOMEM;
        struct lane *lane = &k->lanes[number];
        const int status = leave(r, lane, mark->begin, out);
        if (status) return status;
        if (out->n == out->cap) return FP_FULL;
        const uint64_t most = lane->n ? lane->open[lane->n - 1].end : UINT64_MAX;
        if (!mark->is_call) {
            size_t n;
            const uint8_t *p = fp_string(&r->model->strings, mark->name, &n);
            uint64_t slice;
            if (fp_batch_payload(out, p, n, &slice)) return out->n ? FP_FULL : FP_E_NOMEM;
            out->aux[row(out, FP_OP_CUSTOM, mark->begin, 0, lane->thread)] = slice;
            r->rows++;
            return 0;
        }
        if (mark->end > most && number + 1 < MOST_LANES) continue;
        if (mark->end > most) mark->end = most, r->cut++;
        const uint32_t function = function_of(r, mark->name);
        if (function == FP_NO_ID || fp_array_room(&lane->open, &lane->cap, (uint64_t)lane->n + 1, sizeof *lane->open))
            return FP_E_NOMEM;
        lane->open[lane->n++] = *mark;
        row(out, FP_OP_ENTER, mark->begin, function, lane->thread);
        r->rows++;
        return 0;
    }
}

/* Longer ones first: they are around the others. */
static int by_end(const void *a, const void *b) {
    const struct mark *one = a, *other = b;
    return one->end < other->end ? 1 : -(one->end > other->end);
}

/* Takes the next markers, all that begin at the same time.  0, FP_ASK, or FP_E_NOMEM; without any k->n_ties is 0. */
static int next_ties(struct fp_firefox_read *r) {
    struct fp_firefox_marks *k = r->marks;
    for (;;) {
        if (!k->has_record) {
            const int status = fp_rounds_next(&r->rounds);
            if (status == FP_ASK) r->request = FP_FIREFOX_ROUNDS;
            if (status == FP_ASK || status < 0) return status;
            if (status == FP_DONE) break;
            k->has_record = 1;
        }
        struct mark mark;
        memcpy(&mark, r->rounds.p, sizeof mark);
        if (k->n_ties && (mark.begin != k->ties[0].begin || k->n_ties == MOST_TIES)) break;
        if (fp_array_room(&k->ties, &k->cap_ties, (uint64_t)k->n_ties + 1, sizeof *k->ties)) return FP_E_NOMEM;
        k->ties[k->n_ties++] = mark;
        k->has_record = 0;
    }
    if (k->n_ties > 1) qsort(k->ties, k->n_ties, sizeof *k->ties, by_end);
    k->at_tie = 0;
    return 0;
}

/* The rows of the current thread. */
static int pull(struct fp_firefox_read *r, struct fp_batch *out) {
    struct fp_firefox_marks *k = r->marks;
    if (!k->is_pulling) {
        fp_rounds_end(&r->rounds);
        k->n_lanes = 0;
    }
    k->is_pulling = 1;
    for (;;) {
        if (k->at_tie == k->n_ties) {
            if (!k->taking) k->n_ties = k->at_tie = 0;
            k->taking = 1;
            const int status = next_ties(r);
            if (status) return status;
            k->taking = 0;
            if (!k->n_ties) break;
        }
        const int status = enter(r, &k->ties[k->at_tie], out);
        if (status) return status;
        k->at_tie++;
    }
    for (uint32_t i = 0; i < k->n_lanes; i++) {
        const int status = leave(r, &k->lanes[i], UINT64_MAX, out);
        if (status) return status;
    }
    k->is_pulling = 0;
    return FP_DONE;
}

int fp_firefox_marker_rows(struct fp_firefox_read *r, struct fp_batch *out, struct fp_err *err) {
    if (!r->marks) return FP_DONE;
    const int status = pull(r, out);
    return status < 0 ? fp_no_memory(err) : status;
}
