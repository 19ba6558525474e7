/* Asynchronous calls: begins and ends with an id, on any thread.
 *
 *   b A id 1 at 10, b B id 2 at 20, b C id 1 at 30, e C id 1 at 40, e B id 2 at 50, e A id 1 at 60
 *
 *   track "async CAT"        A 10-60, in it C 30-40
 *   track "async CAT [2]"    B 20-50
 *
 * Calls of an id nest.  The outermost one gets a slot of its track, the first that is free at its begin, and those
 * within it get the same, so calls of two ids never nest.  A track has the calls of a category in a process; each slot
 * is a thread of the model; slot 0 also has the instants (n, T, p).
 */
#include "trace_event/read_private.h"

/* Of a key: the track, and 64 bits, a hash of the track, the id, the scope, and of S and F the name.  So texts of ids
 * are not kept; the probability that two of 10^6 open ids have the same hash is below 10^-7. */
enum { KEY_TRACK = 0, KEY_HASH = 1, KEY_WORDS = 3 };
enum { OTHER_TEXT = 4, LEGACY = 8 }; /* added to the kind of an id (FP_TRACE_*): no number; of S and F */

/* The open calls of an id. */
struct span {
    uint32_t key[KEY_WORDS];
    uint32_t slot, next;               /* next: of the chain of its bucket or of the unused ones, + 1 */
    struct fp_trace_event_stack stack; /* empty: unused */
};

/* `free_from` is a tree of minimums: [cap + slot] is the time from which a slot is free, INT64_MAX while it is in use;
 * n_used: how many are. */
struct track {
    int64_t *free_from;
    uint32_t *threads; /* by slot: thread + 1 */
    uint32_t cap, cap_threads, n_used, went_back, lost;
    int64_t last; /* the time of its last event */
};

struct fp_trace_event_async {
    struct fp_hash_key secret;
    struct span *spans;
    uint32_t *buckets; /* their number is a power of 2 */
    uint32_t cap_spans, n_spans, n_buckets, unused, closing;
    struct fp_table track_keys; /* document, process, category */
    struct track *tracks;
    uint32_t cap_tracks;
    uint32_t track; /* that requests a thread, for slot r->lane */
};

void fp_trace_event_async_new(struct fp_trace_event_read *r) {
    r->async = fp_have(calloc(1, sizeof *r->async));
    fp_table_init(&r->async->track_keys, 6);
    fp_hash_key_take(&r->async->secret);
}

void fp_trace_event_async_free(struct fp_trace_event_async *a) {
    if (!a) return;
    for (uint32_t i = 0; i < a->n_spans; i++) free(a->spans[i].stack.calls);
    for (uint32_t i = 0; i < a->cap_tracks; i++) FP_FREE(a->tracks[i].free_from, a->tracks[i].threads);
    fp_table_clear(&a->track_keys);
    FP_FREE(a->spans, a->buckets, a->tracks, a);
}

/* ---- slots ---- */

static void update(struct track *t, uint32_t node) {
    const int64_t one = t->free_from[2 * node], other = t->free_from[2 * node + 1];
    t->free_from[node] = one < other ? one : other;
}

static void set_free(struct track *t, uint32_t slot, int64_t from) {
    uint32_t node = t->cap + slot;
    t->free_from[node] = from;
    while (node >>= 1) update(t, node);
}

/* Twice as many slots. */
static void add_slots(struct track *t) {
    const uint32_t cap = t->cap ? 2 * t->cap : 1;
    if (cap > UINT32_MAX / 4) fp_escape();
    fp_array_zeroed(&t->threads, &t->cap_threads, cap, sizeof *t->threads);
    int64_t *tree = fp_have(malloc(2 * (size_t)cap * sizeof *tree));
    for (uint32_t i = 0; i < cap; i++) tree[cap + i] = i < t->cap ? t->free_from[t->cap + i] : INT64_MIN;
    free(t->free_from);
    t->free_from = tree;
    t->cap = cap;
    for (uint32_t node = cap; --node;) update(t, node);
}

/* The first slot that is free at `time`. */
static uint32_t slot_at(struct track *t, int64_t time) {
    if (t->free_from[1] > time) add_slots(t);
    uint32_t node = 1;
    while (node < t->cap) node = 2 * node + (t->free_from[2 * node] > time);
    return node - t->cap;
}

/* The thread of a slot.  0 or FP_NEEDS. */
static int thread_of_slot(struct fp_trace_event_read *r, uint32_t track, uint32_t slot, uint32_t *thread) {
    struct track *t = &r->async->tracks[track];
    *thread = t->threads[slot] - 1;
    if (t->threads[slot]) {
        fp_trace_event_in_document(r, *thread, fp_table_row(&r->async->track_keys, track)[0] - 1);
        return 0;
    }
    r->async->track = track;
    r->lane = slot;
    r->lane_of = t->threads[0] - 1;
    r->request = FP_TRACE_EVENT_TRACK;
    return FP_NEEDS;
}

void fp_trace_event_set_track(struct fp_trace_event_read *r, uint32_t thread) {
    const struct fp_trace_event_async *a = r->async;
    a->tracks[a->track].threads[r->lane] = thread + 1;
}

/* ---- spans ---- */

static uint32_t *bucket_of(const struct fp_trace_event_async *a, const uint32_t *key) {
    return &a->buckets[key[KEY_HASH] & (a->n_buckets - 1)];
}

static struct span *find(const struct fp_trace_event_async *a, const uint32_t *key) {
    uint32_t at = a->n_buckets ? *bucket_of(a, key) : 0;
    while (at && memcmp(a->spans[at - 1].key, key, sizeof a->spans->key)) at = a->spans[at - 1].next;
    return at ? &a->spans[at - 1] : NULL;
}

/* More buckets; no span is unused. */
static void add_buckets(struct fp_trace_event_async *a) {
    const uint32_t n = a->n_buckets ? 2 * a->n_buckets : 64;
    uint32_t *buckets = fp_have(n ? calloc(n, sizeof *buckets) : NULL);
    free(a->buckets);
    a->buckets = buckets;
    a->n_buckets = n;
    for (uint32_t i = 0; i < a->n_spans; i++) {
        uint32_t *const bucket = bucket_of(a, a->spans[i].key);
        a->spans[i].next = *bucket;
        *bucket = i + 1;
    }
}

/* A new span. */
static struct span *add_span(struct fp_trace_event_async *a, const uint32_t *key, uint32_t slot) {
    if (!a->unused) {
        if (a->n_spans >= a->n_buckets) add_buckets(a);
        fp_array_zeroed(&a->spans, &a->cap_spans, (uint64_t)a->n_spans + 1, sizeof *a->spans);
        a->unused = ++a->n_spans;
    }
    const uint32_t id = a->unused;
    struct span *s = &a->spans[id - 1];
    a->unused = s->next;
    memcpy(s->key, key, sizeof s->key);
    s->slot = slot;
    uint32_t *const bucket = bucket_of(a, key);
    s->next = *bucket;
    *bucket = id;
    return s;
}

static void remove_span(struct fp_trace_event_async *a, struct span *s) {
    const uint32_t id = (uint32_t)(s - a->spans) + 1;
    uint32_t *at = bucket_of(a, s->key);
    while (*at != id) at = &a->spans[*at - 1].next;
    *at = s->next;
    s->next = a->unused;
    a->unused = id;
}

/* ---- events ---- */

static int begin(struct fp_trace_event_read *r, const uint32_t *key, const struct fp_trace_event_open *call) {
    struct fp_trace_event_async *a = r->async;
    struct span *s = find(a, key);
    if (!s) {
        struct track *t = &a->tracks[key[KEY_TRACK]];
        const uint32_t slot = slot_at(t, call->time);
        uint32_t thread;
        if (!t->threads[slot] && t->n_used < slot && !r->by_time) { /* one before it is free, at a later time */
            r->out_of_order = 1;
            return 0;
        }
        FP_TRY(thread_of_slot(r, key[KEY_TRACK], slot, &thread));
        s = add_span(a, key, slot);
        set_free(t, slot, INT64_MAX);
        t->n_used++;
        s->stack.last = call->time;
    }
    struct fp_trace_event_stack *stack = &s->stack;
    r->out_of_order |= call->time < stack->last && !r->by_time;
    stack->last = call->time;
    FP_PUSH(stack->calls, stack->n, stack->cap) = *call;
    return 0;
}

/* A call of a span becomes a record. */
static void add_record(struct fp_trace_event_read *r, const struct span *s, uint32_t at, int64_t duration) {
    const struct fp_trace_event_open *call = &s->stack.calls[at];
    const uint32_t thread = r->async->tracks[s->key[KEY_TRACK]].threads[s->slot] - 1;
    struct fp_trace_event_record *record = fp_trace_event_add(r);
    *record = (struct fp_trace_event_record){call->time, duration, call->order, thread, FP_OP_ENTER, call->function, 0};
}

/* The innermost call of that name ends; those within it go on. */
static void end(struct fp_trace_event_read *r, const uint32_t *key, int64_t time, uint32_t name) {
    struct fp_trace_event_async *a = r->async;
    struct span *s = find(a, key);
    const uint32_t ended = s ? fp_trace_event_ended_by(r, &s->stack, name) : 0;
    if (s) {
        r->out_of_order |= time < s->stack.last && !r->by_time;
        s->stack.last = time;
    }
    if (!ended) {
        r->counts.lost_ends++;
        a->tracks[key[KEY_TRACK]].lost = 1;
        return;
    }
    r->counts.nameless_ends += name == FP_NO_ID;
    struct fp_trace_event_stack *stack = &s->stack;
    const uint32_t at = stack->n - ended;
    add_record(r, s, at, fp_trace_event_duration(stack->calls[at].time, time));
    memmove(stack->calls + at, stack->calls + at + 1, (ended - 1) * sizeof *stack->calls);
    if (--stack->n) return;
    set_free(&a->tracks[key[KEY_TRACK]], s->slot, time);
    a->tracks[key[KEY_TRACK]].n_used--;
    remove_span(a, s);
}

static uint64_t hash_of(const struct fp_trace_event_async *a, const struct fp_buf *text) {
    return text->n ? fp_hash_key_hash(&a->secret, text->p, text->n) : 0;
}

/* An id of the form 0x1a as a number, other texts as their hash. */
static uint64_t id_of(const struct fp_trace_event_read *r, uint32_t *kind) {
    const struct fp_buf *id = &r->event.id;
    int64_t value;
    uint64_t number;
    *kind = r->event.id_is;
    if (*kind == FP_CHROME_NUMBER && !fp_json_number(id->p, id->n, 0, &value, NULL)) return (uint64_t)value;
    if (!id->n) return 0;
    if (fp_is_hex(id->p, id->n, &number)) return number;
    *kind |= OTHER_TEXT;
    return hash_of(r->async, id);
}

/* The track of the event, to which ids of all processes give no process. */
static uint32_t track_of(struct fp_trace_event_read *r) {
    struct fp_trace_event_async *a = r->async;
    const struct fp_trace_event *e = &r->event;
    const struct fp_chrome_id *pid = &r->thread_ids.pid;
    uint32_t key[6] = {r->thread_ids.document + 1, UINT32_MAX, 0, 0, e->category, 0};
    if (!e->is_global) {
        key[1] = pid->kind;
        key[2] = pid->string ? pid->string : (uint32_t)pid->number;
        key[3] = (uint32_t)((uint64_t)pid->number >> 32);
    }
    const uint32_t track = fp_table_intern(&a->track_keys, key);
    if (!FP_AT(a->tracks, a->cap_tracks, track)->cap) add_slots(&a->tracks[track]);
    return track;
}

static void set_key(uint32_t *key, uint32_t track, uint64_t hash) {
    key[KEY_TRACK] = track;
    key[KEY_HASH] = (uint32_t)hash;
    key[KEY_HASH + 1] = (uint32_t)(hash >> 32);
}

static void key_of(const struct fp_trace_event_read *r, uint32_t track, uint32_t *key) {
    const struct fp_trace_event *e = &r->event;
    const int is_legacy = e->ph == 'S' || e->ph == 'F';
    uint32_t kind;
    const uint64_t id = id_of(r, &kind);
    const uint64_t hashed[] = {track, kind | (is_legacy ? LEGACY : 0), id, hash_of(r->async, &e->scope),
                               is_legacy ? hash_of(r->async, &e->name) : 0};
    set_key(key, track, fp_hash_key_hash(&r->async->secret, hashed, sizeof hashed));
}

int fp_trace_event_async_event(struct fp_trace_event_read *r, uint32_t name) {
    struct fp_trace_event_async *a = r->async;
    const struct fp_trace_event *e = &r->event;
    const int begins = e->ph == 'b' || e->ph == 'S', ends = e->ph == 'e' || e->ph == 'F';
    const uint32_t track = track_of(r);
    uint32_t key[KEY_WORDS], thread;
    r->category = e->category;
    int status = thread_of_slot(r, track, 0, &thread);
    if (status) return status;
    if (!begins && !ends) {
        fp_trace_event_instant(r, thread);
        return 0;
    }
    key_of(r, track, key);
    if (r->by_time) {
        struct fp_trace_event_record *record = fp_trace_event_add(r);
        const uint64_t hash = key[KEY_HASH] | (uint64_t)key[KEY_HASH + 1] << 32;
        const uint32_t op = begins ? FP_OP_ENTER : FP_OP_EXIT;
        *record = (struct fp_trace_event_record){e->ts, (int64_t)hash, r->order++, thread, op, name, track};
        return 0;
    }
    const struct fp_trace_event_open call = {e->ts, r->order, name, 0};
    status = begins ? begin(r, key, &call) : 0;
    if (status) return status;
    if (ends) end(r, key, e->ts, name);
    r->order++;
    struct track *t = &a->tracks[track];
    t->went_back |= e->ts < t->last;
    t->last = e->ts;
    r->out_of_order |= t->lost && t->went_back; /* an end may precede its begin */
    return 0;
}

int fp_trace_event_async_record(struct fp_trace_event_read *r, const struct fp_trace_event_record *record) {
    uint32_t key[KEY_WORDS];
    set_key(key, record->type, (uint64_t)record->duration);
    if (record->op == FP_OP_EXIT) {
        end(r, key, record->time, record->id);
        return 0;
    }
    const struct fp_trace_event_open call = {record->time, record->order, record->id, 0};
    return begin(r, key, &call);
}

void fp_trace_event_async_close(struct fp_trace_event_read *r) {
    struct fp_trace_event_async *a = r->async;
    for (; a->closing < a->n_spans; a->closing++) {
        struct span *s = &a->spans[a->closing];
        for (uint32_t i = 0; i < s->stack.n; i++) add_record(r, s, i, FP_TRACE_EVENT_ENDLESS);
    }
}
