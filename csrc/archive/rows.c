/* Chunks of rows: gathering, framing, and the columns of stacks.
 * See docs/formats/archive.md, "Rows". */
#include "archive/private.h"

/* ---- stacks -------------------------------------------------------------- */

enum { S_STACK, S_TIME, S_THREAD, S_LABEL };

struct fp_archive_stacks {
    uint64_t stack, time, thread, label; /* of the previous row */
    struct fp_archive_value_cur *values;
    uint32_t values_cap;
};

struct fp_archive_stacks *fp_archive_stacks_new(void) {
    return calloc(1, sizeof(struct fp_archive_stacks));
}

void fp_archive_stacks_free(struct fp_archive_stacks *s) {
    if (!s) return;
    FP_FREE(s->values, s);
}

static inline void put_delta(struct fp_buf *stream, uint64_t *last, uint64_t v) {
    fp_buf_varint(stream, fp_zig(v - *last));
    *last = v;
}

int fp_archive_stacks_put(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t positions) {
    (void)positions;
    struct fp_archive_stacks *s = e->stacks;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint64_t stack = b->stack[i];
        put_delta(&e->streams[S_STACK], &s->stack, stack ? stack + e->pub.forgotten : 0);
    }
    for (uint32_t i = 0; i < b->n; i++) put_delta(&e->streams[S_TIME], &s->time, b->time[i]);
    for (uint32_t i = 0; i < b->n; i++) put_delta(&e->streams[S_THREAD], &s->thread, b->thread[i]);
    for (uint32_t i = 0; i < b->n; i++) put_delta(&e->streams[S_LABEL], &s->label, b->label[i]);
    for (uint32_t k = 0; k < b->n_values; k++)
        fp_buf_put(&e->streams[FP_STACKS_STREAMS + k], b->values + (size_t)k * b->cap, (size_t)b->n * 8);
    e->pub.nbytes += (uint64_t)b->n * (8 + 8 * b->n_values);
    return 0;
}

int fp_archive_stacks_flush(struct fp_archive_encoder *e) {
    memset(e->stacks, 0, offsetof(struct fp_archive_stacks, values));
    for (uint32_t k = FP_STACKS_STREAMS; k < e->n_streams; k++) fp_archive_values_pack(&e->streams[k]);
    return 0;
}

int fp_archive_stacks_open(struct fp_archive_decoder *d) {
    struct fp_archive_stacks *s = d->stacks;
    memset(s, 0, offsetof(struct fp_archive_stacks, values));
    fp_archive_values_open(d->streams + FP_STACKS_STREAMS, d->n_streams - FP_STACKS_STREAMS, &s->values,
                           &s->values_cap);
    return 0;
}

static int pull_ids(struct fp_cursor *c, uint64_t *last, uint32_t *out, uint32_t n, uint64_t limit) {
    uint64_t v = *last;
    for (uint32_t i = 0; i < n; i++) {
        v += fp_zag(fp_cursor_number(c));
        if (v >= limit) return FP_E_MALFORMED;
        out[i] = (uint32_t)v;
    }
    *last = v;
    return c->status ? FP_E_MALFORMED : 0;
}

static int pull_stacks(struct fp_archive_decoder *d, uint32_t *out, uint32_t n) {
    const uint32_t forgotten = d->ids->forgotten;
    const uint64_t limit = (uint64_t)d->ids->n[FP_T_STACKS] + forgotten;
    if (pull_ids(&d->streams[S_STACK], &d->stacks->stack, out, n, limit)) return FP_E_MALFORMED;
    for (uint32_t i = 0; forgotten && i < n; i++) {
        if (out[i] && out[i] <= forgotten) return FP_E_MALFORMED;
        out[i] -= out[i] ? forgotten : 0;
    }
    return 0;
}

int fp_archive_stacks_pull(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t n, const char **what) {
    struct fp_archive_stacks *s = d->stacks;
    *what = "stack of a row";
    if (pull_stacks(d, b->stack + b->n, n)) return FP_E_MALFORMED;
    *what = "thread of a row";
    if (pull_ids(&d->streams[S_THREAD], &s->thread, b->thread + b->n, n, d->ids->n[FP_T_THREADS]))
        return FP_E_MALFORMED;
    *what = "label of a row";
    if (pull_ids(&d->streams[S_LABEL], &s->label, b->label + b->n, n, d->ids->n[FP_T_LABELS])) return FP_E_MALFORMED;
    *what = "time or value of a row";
    for (uint32_t i = 0; i < n; i++) b->time[b->n + i] = s->time += fp_zag(fp_cursor_number(&d->streams[S_TIME]));
    if (d->streams[S_TIME].status) return FP_E_MALFORMED;
    for (uint32_t k = 0; k < b->n_values; k++) {
        struct fp_cursor *c = &d->streams[FP_STACKS_STREAMS + k];
        int64_t *to = b->values + (size_t)k * b->cap + b->n;
        for (uint32_t i = 0; i < n; i++) to[i] = fp_archive_value_next(c, &s->values[k]);
        if (c->status) return FP_E_MALFORMED;
    }
    return 0;
}

/* ---- the encoder ---------------------------------------------------------- */

static uint32_t fixed_streams(uint32_t view) {
    return view == FP_TIMELINE ? FP_TIMELINE_STREAMS : view == FP_STACKS ? FP_STACKS_STREAMS : FP_GRAPH_STREAMS;
}

/* The number of streams for n value columns. */
static uint32_t value_streams(uint32_t view, uint32_t n) {
    return view == FP_TIMELINE ? 0 : view == FP_STACKS ? n : 2 * n;
}

struct fp_archive_enc *fp_archive_enc_new(uint32_t view) {
    if (view < FP_TIMELINE || view > FP_GRAPH) return NULL;
    struct fp_archive_encoder *e = fp_made(sizeof *e);
    e->pub.view = view;
    e->pub.time_min = UINT64_MAX;
    e->n_fixed = e->n_streams = e->streams_cap = fixed_streams(view);
    e->streams = fp_have(calloc(e->n_streams, sizeof *e->streams));
    if (view == FP_TIMELINE) e->timeline = fp_have(fp_archive_timeline_new());
    if (view == FP_STACKS) e->stacks = fp_have(fp_archive_stacks_new());
    if (view == FP_GRAPH) e->graph = fp_have(fp_archive_graph_new());
    return &e->pub;
}

void fp_archive_enc_free(struct fp_archive_enc *pub) {
    struct fp_archive_encoder *e = (struct fp_archive_encoder *)pub;
    if (e->streams)
        for (uint32_t i = 0; i < e->streams_cap; i++) fp_buf_free(&e->streams[i]);
    fp_archive_timeline_free(e->timeline);
    fp_archive_stacks_free(e->stacks);
    fp_archive_graph_free(e->graph);
    FP_FREE(e->streams, e->runs, e->seen, e->pub.threads, e);
}

static void add_run(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t positions) {
    struct fp_archive_run *last = e->n_runs ? &e->runs[e->n_runs - 1] : NULL;
    if (last && last->part == b->part && last->n_values == b->n_values && last->positions == positions) {
        last->rows += b->n;
        return;
    }
    FP_PUSH(e->runs, e->n_runs, e->runs_cap) = (struct fp_archive_run){b->part, b->n, b->n_values, positions};
}

static void add_value_columns(struct fp_archive_encoder *e, uint32_t n) {
    uint32_t want = e->n_fixed + value_streams(e->pub.view, n);
    fp_array_zeroed(&e->streams, &e->streams_cap, want, sizeof *e->streams);
    if (want > e->n_streams) e->n_streams = want;
}

static void see_thread(struct fp_archive_encoder *e, uint32_t thread) {
    uint32_t word = thread / 32;
    if (*FP_AT(e->seen, e->seen_words, word) >> thread % 32 & 1) return;
    e->seen[word] |= 1u << thread % 32;
    FP_PUSH(e->pub.threads, e->pub.n_threads, e->threads_cap) = thread;
}

/* Adds a batch to the time range and the threads of the chunk. */
static void gather_stats(struct fp_archive_encoder *e, const struct fp_batch *b) {
    uint64_t lo = e->pub.time_min, hi = e->pub.time_max;
    if (b->time) {
        for (uint32_t i = 0; i < b->n; i++) {
            uint64_t t = b->time[i];
            if (!t && b->view == FP_STACKS) continue;
            if (t < lo) lo = t;
            if (t > hi) hi = t;
        }
        e->pub.time_min = lo;
        e->pub.time_max = hi;
    }
    if (b->thread)
        for (uint32_t i = 0; i < b->n; i++)
            if (!i || b->thread[i] != b->thread[i - 1]) see_thread(e, b->thread[i]);
}

int fp_archive_enc_put(struct fp_archive_enc *pub, const struct fp_batch *b, uint32_t positions, struct fp_err *err) {
    struct fp_archive_encoder *e = (struct fp_archive_encoder *)pub;
    if (b->n > FP_ARCHIVE_MAX_ROWS - pub->rows)
        return fp_fail_beyond(err, "the number of rows of a chunk", FP_NO_COLUMN, "2^24");
    if (b->n_values > FP_ARCHIVE_MAX_VALUES)
        return fp_fail_beyond(err, "the number of value types", FP_NO_COLUMN, "1,024");
    add_value_columns(e, b->n_values);
    add_run(e, b, positions);
    gather_stats(e, b);
    if (!b->n) return 0; /* a part without rows */
    int status = pub->view == FP_TIMELINE ? fp_archive_timeline_put(e, b, positions)
                 : pub->view == FP_STACKS ? fp_archive_stacks_put(e, b, positions)
                                          : fp_archive_graph_put(e, b, positions);
    if (status) return fp_fail(err, status, 0, "chunk");
    pub->rows += b->n;
    return 0;
}

int fp_archive_enc_flush(struct fp_archive_enc *pub, struct fp_buf *out) {
    struct fp_archive_encoder *e = (struct fp_archive_encoder *)pub;
    int status = pub->view == FP_TIMELINE ? fp_archive_timeline_flush(e)
                 : pub->view == FP_STACKS ? fp_archive_stacks_flush(e)
                                          : fp_archive_graph_flush(e);
    if (status) return status;
    fp_buf_byte(out, (uint8_t)pub->view);
    fp_buf_varint(out, e->n_runs);
    for (uint32_t i = 0; i < e->n_runs; i++) {
        fp_buf_varint(out, e->runs[i].part);
        fp_buf_varint(out, e->runs[i].rows);
        fp_buf_varint(out, e->runs[i].n_values);
        fp_buf_varint(out, e->runs[i].positions);
    }
    fp_buf_varint(out, e->n_streams);
    for (uint32_t i = 0; i < e->n_streams; i++) fp_buf_varint(out, e->streams[i].n);
    for (uint32_t i = 0; i < e->n_streams; i++) {
        fp_buf_put(out, e->streams[i].p, e->streams[i].n);
        e->streams[i].n = 0;
    }
    e->n_streams = e->n_fixed;
    for (uint32_t i = 0; i < pub->n_threads; i++) e->seen[pub->threads[i] / 32] = 0;
    pub->rows = pub->n_threads = e->n_runs = 0;
    pub->nbytes = pub->time_max = 0;
    pub->time_min = UINT64_MAX;
    return 0;
}

/* ---- the decoder ----------------------------------------------------------- */

struct fp_archive_dec {
    struct fp_archive_decoder d;
};

struct fp_archive_dec *fp_archive_dec_new(struct fp_archive_ids *ids) {
    struct fp_archive_dec *a = fp_made(sizeof *a);
    a->d.ids = ids;
    a->d.timeline = fp_have(fp_archive_timeline_new());
    a->d.stacks = fp_have(fp_archive_stacks_new());
    a->d.graph = fp_have(fp_archive_graph_new());
    return a;
}

void fp_archive_dec_free(struct fp_archive_dec *a) {
    fp_archive_timeline_free(a->d.timeline);
    fp_archive_stacks_free(a->d.stacks);
    fp_archive_graph_free(a->d.graph);
    FP_FREE(a->d.streams, a->d.runs, a);
}

static int malformed(struct fp_err *err, const struct fp_archive_decoder *d, const uint8_t *at, const char *what) {
    return fp_fail(err, FP_E_MALFORMED, (uint64_t)(at - d->p), what);
}

/* Reads the list of runs and checks it. */
static int open_runs(struct fp_archive_decoder *d, struct fp_cursor *c, uint32_t n_parts, uint32_t *max_values,
                     struct fp_err *err) {
    uint32_t n_runs = fp_archive_u32(c), empty = 0;
    /* a run takes at least four bytes */
    if (c->status || n_runs > (size_t)(c->end - c->p) / 4 || n_runs > (uint64_t)n_parts + FP_ARCHIVE_MAX_ROWS)
        return malformed(err, d, c->p, "number of runs in a chunk");
    fp_array_room(&d->runs, &d->runs_cap, n_runs, sizeof *d->runs);
    d->n_runs = n_runs;
    d->rows = 0;
    *max_values = 0;
    for (uint32_t i = 0; i < n_runs; i++) {
        const uint8_t *at = c->p;
        struct fp_archive_run *r = &d->runs[i];
        r->part = fp_archive_u32(c);
        r->rows = fp_archive_u32(c);
        r->n_values = fp_archive_u32(c);
        r->positions = fp_archive_u32(c);
        if (c->status || r->part >= n_parts || r->rows > FP_ARCHIVE_MAX_ROWS - d->rows ||
            (!r->rows && ++empty > n_parts) || r->n_values > FP_ARCHIVE_MAX_VALUES || r->positions > 7 ||
            (d->view == FP_TIMELINE && r->n_values))
            return malformed(err, d, at, "run of rows");
        d->rows += r->rows;
        if (r->n_values > *max_values) *max_values = r->n_values;
    }
    return 0;
}

int fp_archive_dec_open(struct fp_archive_dec *a, const uint8_t *p, size_t n, uint32_t n_parts, struct fp_err *err) {
    struct fp_archive_decoder *d = &a->d;
    struct fp_cursor c = {.p = p, .end = p + n};
    d->p = p;
    d->view = fp_archive_byte(&c);
    if (c.status || d->view < FP_TIMELINE || d->view > FP_GRAPH) return malformed(err, d, p, "view of a chunk");
    uint32_t max_values;
    int status = open_runs(d, &c, n_parts, &max_values, err);
    if (status) return status;
    const uint8_t *at = c.p;
    d->n_streams = fp_archive_u32(&c);
    if (c.status || d->n_streams != fixed_streams(d->view) + value_streams(d->view, max_values) ||
        d->n_streams > (size_t)(c.end - c.p))
        return malformed(err, d, at, "number of streams in a chunk");
    fp_array_room(&d->streams, &d->streams_cap, d->n_streams, sizeof *d->streams);
    struct fp_cursor lengths = c;
    for (uint32_t i = 0; i < d->n_streams; i++) fp_cursor_number(&c);
    if (c.status) return malformed(err, d, c.p, "length of a stream");
    const uint8_t *next = c.p;
    for (uint32_t i = 0; i < d->n_streams; i++) {
        uint64_t length = fp_cursor_number(&lengths);
        if (length > (size_t)(c.end - next)) return malformed(err, d, lengths.p, "length of a stream");
        d->streams[i] = (struct fp_cursor){.p = next, .end = next + length};
        next += length;
    }
    if (next != c.end) return malformed(err, d, next, "end of the streams of a chunk");
    d->run = 0;
    d->left = d->n_runs ? d->runs[0].rows : 0;
    if (!d->rows) return 0;
    status = d->view == FP_TIMELINE ? fp_archive_timeline_open(d)
             : d->view == FP_STACKS ? fp_archive_stacks_open(d)
                                    : fp_archive_graph_open(d);
    return status ? fp_fail(err, status, (uint64_t)(c.p - p), "beginning of a chunk") : 0;
}

void fp_archive_dec_filter(struct fp_archive_dec *a, struct fp_archive_filter *filter) {
    a->d.filter = filter;
}

/* Filters the n new rows at the end of the batch. */
static void keep(struct fp_archive_filter *f, struct fp_batch *b, uint32_t part, uint32_t n) {
    if (f->part != UINT32_MAX && f->part != part) {
        b->n -= n;
        f->left_out += n;
    } else {
        f->left_out += fp_select_rows(&f->rows, b, b->n - n);
    }
}

static void translate_column(const struct fp_archive_ids *ids, int table, uint32_t *column, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) column[i] = ids->to[table][column[i]];
}

/* The stacks of n rows become those of the model. */
static void translate_stacks(struct fp_archive_ids *ids, uint32_t *stack, uint32_t n) {
    fp_own_stacks_begin(ids->stacks, ids->model);
    for (uint32_t i = 0; i < n; i++) stack[i] = fp_own_stacks_node(ids->stacks, ids->model, stack[i]);
}

/* Translates the ids of the n new rows after the batch's rows from the archive's to the model's. */
static void translate(struct fp_archive_ids *ids, struct fp_batch *b, uint32_t n) {
    if (b->view != FP_GRAPH) translate_column(ids, FP_T_THREADS, b->thread + b->n, n);
    if (b->view == FP_TIMELINE) {
        for (uint32_t i = b->n; i < b->n + n; i++)
            if (b->op[i] <= FP_OP_ENTER_ARGS) b->function[i] = ids->to[FP_T_FUNCTIONS][b->function[i]];
    } else if (b->view == FP_STACKS) {
        if (ids->renews_stacks)
            translate_stacks(ids, b->stack + b->n, n);
        else
            translate_column(ids, FP_T_STACKS, b->stack + b->n, n);
        translate_column(ids, FP_T_LABELS, b->label + b->n, n);
    } else {
        translate_column(ids, FP_T_FUNCTIONS, b->function + b->n, n);
        translate_column(ids, FP_T_FUNCTIONS, b->callee + b->n, n);
        translate_column(ids, FP_T_STRINGS, b->file + b->n, n);
        translate_column(ids, FP_T_STRINGS, b->target_file + b->n, n);
    }
}

static void next_run(struct fp_archive_decoder *d) {
    if (++d->run < d->n_runs) d->left = d->runs[d->run].rows;
}

int fp_archive_dec_feed(struct fp_archive_dec *a, struct fp_batch *b, struct fp_err *err) {
    struct fp_archive_decoder *d = &a->d;
    if (b->view != d->view) return fp_fail(err, FP_E_MALFORMED, 0, "chunk of another view");
    while (d->run < d->n_runs) {
        const struct fp_archive_run *r = &d->runs[d->run];
        if (!d->left && r->rows) {
            next_run(d);
            continue;
        }
        if (b->n && (b->part != r->part || b->n_values != r->n_values)) return FP_FULL;
        if (b->n == b->cap) return FP_FULL;
        if (!b->n) {
            b->part = r->part;
            if (b->n_values != r->n_values) fp_batch_set_values(b, r->n_values);
        }
        if (!r->rows) { /* a part without rows is an empty batch */
            next_run(d);
            if (d->filter && d->filter->part != UINT32_MAX && d->filter->part != r->part) continue;
            return FP_FULL;
        }
        uint32_t n = b->cap - b->n < d->left ? b->cap - b->n : d->left;
        const char *what = "row";
        int status = d->view == FP_TIMELINE ? fp_archive_timeline_pull(d, b, n, &what)
                     : d->view == FP_STACKS ? fp_archive_stacks_pull(d, b, n, &what)
                                            : fp_archive_graph_pull(d, b, n, &what);
        if (status) return fp_fail(err, status, 0, what);
        if (d->ids->differ) translate(d->ids, b, n);
        d->left -= n;
        b->n += n;
        if (d->filter) keep(d->filter, b, r->part, n);
    }
    for (uint32_t i = 0; i < d->n_streams && d->rows && d->view != FP_TIMELINE; i++)
        if (d->streams[i].p != d->streams[i].end) return malformed(err, d, d->streams[i].p, "rest of a stream");
    return FP_DONE;
}
