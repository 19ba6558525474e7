#include "chrome/samples_private.h"

uint32_t fp_chrome_samples_profile(struct fp_chrome_samples *r) {
    const uint32_t document = r->pub.thread_ids.document, key[3] = {r->event.process, r->event.id, document + 1};
    const uint32_t row = fp_table_intern(&r->profile_keys, key);
    FP_AT(r->profiles, r->cap_profiles, row)->document = document;
    return row;
}

/* Makes room for a row of this part.  0 or FP_FULL. */
static int room(struct fp_batch *out, uint32_t part, uint32_t n_values) {
    if (out->n && (out->n == out->cap || out->part != part)) return FP_FULL;
    out->part = part;
    return out->n_values == n_values ? 0 : fp_batch_set_values(out, n_values);
}

static uint32_t add_row(struct fp_chrome_samples *r, struct fp_batch *out, uint32_t stack, uint32_t thread,
                        int64_t time) {
    r->pub.rows++;
    return fp_batch_sample(out, stack, thread, 0, time > 0 ? (uint64_t)time : 0);
}

/* Ends V8's current sample at `now`.  0 or FP_FULL. */
static int end_sample(struct fp_chrome_samples *r, struct fp_chrome_samples_profile *p, int64_t now,
                      struct fp_batch *out) {
    if (!p->open) return 0;
    FP_TRY(room(out, r->pub.part + p->document, 2));
    struct fp_chrome_samples_node *const node = &r->nodes[p->node];
    uint32_t stack = node->stack;
    if (p->line && node->function) {
        if (node->line != p->line) {
            const uint32_t frame = fp_model_line_frame(r->model, node->function, p->line, 0);
            stack = fp_model_stack(r->model, r->nodes[node->parent].stack, frame);
            node->line = p->line;
            node->line_stack = stack;
        }
        stack = node->line_stack;
    }
    const uint32_t i = add_row(r, out, stack, p->thread, p->shown);
    out->values[i] = 1;
    out->values[(size_t)out->cap + i] = now - p->shown;
    p->open = 0;
    return 0;
}

/* The time of sample i: its timestamp or the sum of the deltas.  Old profiles have neither: their samples are spread
 * evenly.  0 or FP_E_OVERFLOW. */
static int time_of(const struct fp_chrome_samples *r, const struct fp_chrome_samples_profile *p, uint64_t i,
                   int64_t *time) {
    const struct fp_chrome_samples_values *c = r->pub.columns;
    const uint64_t n = c[FP_CHROME_NODES].total;
    if (!c[FP_CHROME_DELTAS].total) {
        const uint64_t span = p->end > p->start ? (uint64_t)p->end - (uint64_t)p->start : 0;
        *time = p->start + (int64_t)(span / n * i + span % n * i / n);
        return 0;
    }
    const int64_t delta = i < c[FP_CHROME_DELTAS].total ? c[FP_CHROME_DELTAS].values[i % FP_CHROME_KEPT] : 0;
    *time = delta;
    if (r->event.is_absolute) return 0;
    return __builtin_add_overflow(p->clock, delta, time) || *time < INT64_MIN / 2 || *time > INT64_MAX / 2
               ? FP_E_OVERFLOW
               : 0;
}

int fp_chrome_samples_of_columns(struct fp_chrome_samples *r, uint32_t profile, struct fp_batch *out,
                                 struct fp_err *err) {
    const struct fp_chrome_samples_values *c = r->pub.columns;
    struct fp_chrome_samples_profile *p = &r->profiles[profile];
    const uint64_t n = c[FP_CHROME_NODES].total, n_times = c[FP_CHROME_DELTAS].total;
    const int has_end = r->event.is_absolute && n_times == n + 1; /* the last time is the end of the profile */
    const int unequal = n != n_times && !has_end && !(r->event.has_head && !n_times);
    const int is_chunk = r->event.ph != 0; /* of a trace */
    if (unequal && (!is_chunk || !n_times))
        return fp_chrome_samples_broken(r, r->event.at, "a profile has different numbers of samples and timeDeltas",
                                        NULL, err);
    for (; r->pos < n + (uint64_t)has_end; r->pos++) {
        const uint32_t block = (uint32_t)(r->pos / FP_CHROME_KEPT), i = (uint32_t)(r->pos % FP_CHROME_KEPT);
        if (r->pub.written && r->loaded != block + 1) {
            r->pub.block = block;
            r->loaded = block + 1;
            r->pub.request = FP_CHROME_BLOCK;
            return FP_NEEDS;
        }
        int64_t clock;
        if (time_of(r, p, r->pos, &clock))
            return fp_fail(err, FP_E_OVERFLOW, r->event.at, "timeDeltas add up to more than 146 years");
        if (r->event.is_absolute && !r->pos) p->first = p->shown = clock;
        const int64_t now = clock > p->shown ? clock : p->shown;
        const int ends = r->pos == n;
        const uint32_t node = ends ? 0 : fp_chrome_samples_node(r, profile, (uint32_t)c[FP_CHROME_NODES].values[i]);
        if (!node && !r->lenient && !ends)
            return fp_fail(err, FP_E_MALFORMED, r->event.at, "a sample refers to a node that is not in the profile");
        FP_TRY(end_sample(r, p, now, out));
        r->pub.backwards += clock < p->shown;
        r->pub.broken += !node && !ends;
        p->clock = clock;
        p->shown = now;
        p->node = node;
        p->line = i < c[FP_CHROME_LINES].n ? (uint32_t)c[FP_CHROME_LINES].values[i] : 0;
        p->open = node > 0;
    }
    if (unequal) r->pub.no_deltas += n > n_times ? n - n_times : n_times - n;
    /* as in DevTools, the last sample gets the average length: endTime is in whole seconds */
    if (r->event.is_absolute) p->end = r->pos > 1 ? p->shown + (p->shown - p->first) / (int64_t)(r->pos - 1) : 0;
    return FP_DONE;
}

/* The value type of the current event or sample, as an index. */
static uint32_t type_of(struct fp_chrome_samples *r, int is_event) {
    const int named = !is_event && r->name.n;
    const uint32_t string = named ? fp_strings_intern(&r->model->strings, r->name.p, r->name.n)
                                  : fp_strings_intern(&r->model->strings, "samples", 7);
    const uint32_t key[2] = {string, 1}, row = fp_table_intern(&r->pub.types, key);
    return row - 1;
}

/* The profile of a node with hits, or NULL if the profile has samples. */
static const struct fp_chrome_samples_profile *profile_of_hits(const struct fp_chrome_samples *r, uint32_t node) {
    const uint32_t owner = r->node_keys.words[2 * (size_t)node] - 1;
    if (owner >= r->cap_profiles || r->nodes[node].hits <= 0) return NULL; /* of a dictionary; without hits */
    return r->profiles[owner].n_samples ? NULL : &r->profiles[owner];
}

void fp_chrome_samples_plan_hits(struct fp_chrome_samples *r) {
    uint32_t node = 1;
    while (node < r->node_keys.n && !profile_of_hits(r, node)) node++;
    r->hit = node;
    r->pub.by_hits = FP_NO_ID;
    if (node < r->node_keys.n) r->pub.by_hits = type_of(r, 1);
}

/* Adds the rows of profiles that have hits instead of samples.  FP_DONE or FP_FULL. */
static int hits_of_nodes(struct fp_chrome_samples *r, struct fp_batch *out) {
    const uint32_t n_values = r->pub.types.n - 1;
    for (; r->hit < r->node_keys.n; r->hit++) {
        const struct fp_chrome_samples_profile *p = profile_of_hits(r, r->hit);
        if (!p) continue;
        FP_TRY(room(out, r->pub.named + p->document, n_values));
        const uint32_t i = add_row(r, out, r->nodes[r->hit].stack, p->thread, p->start);
        for (uint32_t k = 0; k < n_values; k++)
            out->values[(size_t)k * out->cap + i] = k == r->pub.by_hits ? r->nodes[r->hit].hits : 0;
    }
    return FP_DONE;
}

int fp_chrome_samples_last(struct fp_chrome_samples *r, struct fp_batch *out) {
    for (; r->ending < r->profile_keys.n && r->ending < r->cap_profiles; r->ending++) {
        struct fp_chrome_samples_profile *p = &r->profiles[r->ending];
        FP_TRY(end_sample(r, p, p->end > p->shown ? p->end : p->shown, out));
    }
    return hits_of_nodes(r, out);
}

/* The stack of the current event or sample.  FP_DONE or an error. */
static int stack_of(struct fp_chrome_samples *r, uint32_t *stack, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    struct fp_model *m = r->model;
    *stack = e->stack;
    if (e->has_sf) {
        const uint32_t node = fp_chrome_samples_node(r, fp_chrome_samples_dictionary(r), e->sf);
        if (!node)
            return fp_chrome_samples_broken(r, e->at, "a sample refers to a frame that is not in stackFrames", NULL,
                                            err);
        *stack = r->nodes[node].stack;
    } else if (!*stack && e->ph && r->name.n) { /* without a stack, the name of the event is its only frame */
        const uint32_t name = fp_strings_intern(&m->strings, r->name.p, r->name.n);
        const uint32_t function = fp_model_function(m, 0, 0, name, 0, 0);
        const uint32_t frame = fp_model_plain_frame(m, function);
        *stack = fp_model_stack(m, 0, frame);
    }
    return FP_DONE;
}

int fp_chrome_samples_of_event(struct fp_chrome_samples *r, struct fp_batch *out, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    uint32_t thread = 0, stack;
    const uint32_t type = type_of(r, e->ph != 0);
    if (!r->second || e->bad) return FP_DONE;
    if (!e->has_ts) return fp_chrome_samples_broken(r, e->at, "a sample has no time", "\"ts\"", err);
    if (e->weight < 0) return fp_chrome_samples_broken(r, e->at, "the weight of a sample is negative", NULL, err);
    int status =
        r->pub.thread_ids.pid.kind || r->pub.thread_ids.tid.kind ? fp_chrome_thread_of(&r->pub.thread_ids, &thread) : 0;
    if (status == FP_NEEDS) r->pub.request = FP_CHROME_THREAD;
    if (status) return status;
    const uint64_t broken = r->pub.broken;
    status = stack_of(r, &stack, err);
    if (status || r->pub.broken != broken) return status;
    const uint32_t n_values = r->pub.types.n - 1;
    status = room(out, r->pub.named + r->pub.thread_ids.document, n_values);
    if (status) return status;
    const uint32_t i = add_row(r, out, stack, thread, e->ts);
    for (uint32_t k = 0; k < n_values; k++) out->values[(size_t)k * out->cap + i] = k == type ? e->weight : 0;
    return FP_DONE;
}
