/* A chunk as its difference to another one, the base.  See docs/formats/archive.md, "Differences". */
#include "archive/diff_graph.h"

/* The first byte of a stream in a difference: the stream follows unchanged, as a difference to the base's, or as one to
 * the numbers of the base's row that `rows` names. */
enum { WHOLE, AGAINST, BY_ROW };

enum {
    MOST_STREAMS = FP_GRAPH_STREAMS + 2 * UINT16_MAX,
    MOST_PAIRED_STREAMS = 128, /* of a graph */
    MOST_NBYTES = 1 << 28,
    MOST_STACKS = 1 << 22
};

/* A chunk split into its streams. */
struct parts {
    const uint8_t *head;   /* view and runs */
    size_t head_n, nbytes; /* of the head, of the chunk */
    uint32_t view, n;
    struct fp_cursor *streams;
};

static enum fp_archive_kind kind_of(uint32_t view, uint32_t stream) {
    if (view == FP_STACKS) return stream < FP_STACKS_STREAMS ? FP_DIFF_NUMBERS : FP_DIFF_VALUES;
    if (view == FP_GRAPH) return !stream ? FP_DIFF_BYTES : stream < FP_GRAPH_STREAMS ? FP_DIFF_NUMBERS : FP_DIFF_VALUES;
    return FP_DIFF_OPAQUE;
}

/* Splits a chunk, of which `head` and `nbytes` are set.  0 or FP_E_MALFORMED. */
static int split_chunk(struct parts *parts) {
    struct fp_cursor c = {.p = parts->head, .end = parts->head + parts->nbytes};
    parts->view = fp_archive_byte(&c);
    const uint32_t n_runs = fp_archive_u32(&c);
    if (c.status || n_runs > (size_t)(c.end - c.p) / 4) return FP_E_MALFORMED;
    for (uint32_t i = 0; i < 4 * n_runs; i++) fp_cursor_number(&c);
    parts->head_n = (size_t)(c.p - parts->head);
    parts->n = fp_archive_u32(&c);
    if (c.status || parts->n > MOST_STREAMS) return FP_E_MALFORMED;
    parts->streams = fp_scratch((size_t)parts->n + 1, sizeof *parts->streams);
    struct fp_cursor lengths = c;
    for (uint32_t i = 0; i < parts->n; i++) fp_cursor_number(&c);
    const uint8_t *at = c.p;
    for (uint32_t i = 0; i < parts->n && !c.status; i++) {
        const uint64_t length = fp_cursor_number(&lengths);
        if (length > (size_t)(c.end - at)) return FP_E_MALFORMED;
        parts->streams[i] = (struct fp_cursor){.p = at, .end = at + length};
        at += length;
    }
    return c.status || at != c.end ? FP_E_MALFORMED : 0;
}

/* Appends the differences of `own` to `base` and returns 1, if both have the same number of numbers and at least half
 * are equal; otherwise appends nothing and returns 0. */
static int add_differences(struct fp_cursor base, struct fp_cursor own, enum fp_archive_kind kind, struct fp_buf *out) {
    size_t same = 0, all = 0;
    const size_t before = out->n;
    if (kind == FP_DIFF_BYTES) {
        all = (size_t)(own.end - own.p);
        if (all != (size_t)(base.end - base.p)) return 0;
        for (size_t i = 0; i < all; i++) {
            fp_buf_byte(out, (uint8_t)(own.p[i] - base.p[i]));
            same += own.p[i] == base.p[i];
        }
    } else {
        struct fp_archive_numbers a = fp_archive_numbers_of(base, kind), b = fp_archive_numbers_of(own, kind);
        for (; fp_archive_more(&a) && fp_archive_more(&b); all++) {
            const uint64_t zig = fp_zig(fp_archive_next(&b) - fp_archive_next(&a));
            fp_buf_varint(out, zig);
            same += !zig;
        }
        if (a.c.p != a.c.end || b.c.p != b.c.end || a.c.status || b.c.status) same = 0;
    }
    if (same && same >= all / 2) return 1;
    out->n = before;
    return 0;
}

/* The reverse of add_differences.  0 or FP_E_MALFORMED. */
static int apply_differences(struct fp_cursor base, struct fp_cursor diff, enum fp_archive_kind kind,
                             struct fp_buf *out) {
    if (kind == FP_DIFF_BYTES) {
        const size_t n = (size_t)(diff.end - diff.p);
        if (n != (size_t)(base.end - base.p)) return FP_E_MALFORMED;
        fp_buf_reserve(out, n);
        for (size_t i = 0; i < n; i++) out->p[out->n++] = (uint8_t)(diff.p[i] + base.p[i]);
        return 0;
    }
    struct fp_archive_numbers a = fp_archive_numbers_of(base, kind), d = fp_archive_numbers_of(diff, FP_DIFF_NUMBERS);
    for (size_t n = 0; fp_archive_more(&a) && fp_archive_more(&d); n++) {
        const uint64_t value = fp_archive_next(&a) + fp_zag(fp_archive_next(&d));
        if (n == FP_ARCHIVE_MAX_ROWS) return FP_E_MALFORMED;
        if (kind == FP_DIFF_NUMBERS)
            fp_buf_varint(out, value);
        else
            fp_buf_put(out, &value, sizeof value);
    }
    if (a.c.p != a.c.end || d.c.p != d.c.end || a.c.status || d.c.status) return FP_E_MALFORMED;
    if (kind == FP_DIFF_VALUES) fp_archive_values_pack(out);
    return 0;
}

/* ---- rows of stacks in another order, or only some of them ---------------- */

/* Pairs own rows with the base's, given the columns of their stack ids.  Returns the number of pairs. */
static uint32_t pair_rows(const struct fp_archive_column *base, const struct fp_archive_column *own,
                          const uint32_t *stacks, size_t n_stacks, struct fp_archive_pairing *pairing) {
    uint64_t most = 0, next_row = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < base->n; i++) most = base->v[i] > most ? base->v[i] : most;
    if (most > MOST_STACKS || !own->n) return 0;
    pairing->rows = fp_have(calloc(own->n, sizeof *pairing->rows));
    pairing->n = own->n;
    uint32_t *row_of = fp_scratch((size_t)most + 1, sizeof *row_of);
    for (uint32_t i = base->n; i-- > 0;) row_of[base->v[i]] = i + 1;
    for (uint32_t i = 0; i < own->n; i++) {
        const uint32_t stack = own->v[i] < n_stacks ? stacks[own->v[i]] : 0;
        /* a stack with several rows: usually the following one */
        const int follows = next_row < base->n && base->v[next_row] == stack;
        const uint32_t row = !stack ? 0 : follows ? (uint32_t)next_row + 1 : stack <= most ? row_of[stack] : 0;
        pairing->rows[i] = row;
        found += row > 0;
        if (row) next_row = row;
    }
    fp_scratch_free(row_of);
    return found;
}

/* The base's rows whose stack the profile has: a profile that lacks stacks still has pairs in order. */
struct there {
    uint32_t *own_of, most; /* by the base's stack id, up to `most`: the own id, or 0 */
    uint32_t *rows, n;      /* ascending */
};

/* The caller frees own_of, and with it `rows`. */
static void find_there(const struct fp_archive_column *base, const uint32_t *stacks, size_t n_stacks,
                       struct there *there) {
    memset(there, 0, sizeof *there);
    for (size_t i = 0; i < n_stacks; i++) there->most = stacks[i] > there->most ? stacks[i] : there->most;
    there->own_of = fp_scratch((size_t)there->most + 1, sizeof *there->own_of);
    there->rows = fp_scratch((size_t)base->n + 1, sizeof *there->rows);
    for (size_t i = 0; i < n_stacks; i++)
        if (stacks[i]) there->own_of[stacks[i]] = (uint32_t)i;
    for (uint32_t i = 0; i < base->n; i++)
        if (base->v[i] <= there->most && there->own_of[base->v[i]]) there->rows[there->n++] = i;
}

/* The number of rows, then for each: 0 for the row of `there` after the last one, 1 for none, otherwise 2 +
 * zig(difference to the place of the row after the last one). */
static void put_pairing(const struct fp_archive_pairing *pairing, const struct fp_archive_column *base,
                        const struct there *there, struct fp_buf *out) {
    uint32_t *place = fp_scratch((size_t)base->n + 1, sizeof *place);
    for (uint32_t k = 0; k < there->n; k++) place[there->rows[k]] = k;
    uint64_t next = 0;
    fp_buf_varint(out, pairing->n);
    for (uint32_t i = 0; i < pairing->n; i++) {
        const uint32_t row = pairing->rows[i];
        const uint64_t at = row ? place[row - 1] : 0;
        fp_buf_varint(out, !row ? 1 : at == next ? 0 : 2 + fp_zig(at - next));
        if (row) next = at + 1;
    }
    fp_scratch_free(place);
}

/* 0 or FP_E_MALFORMED. */
static int take_pairing(struct fp_cursor *c, const struct there *there, struct fp_archive_pairing *pairing) {
    uint64_t next = 0;
    pairing->n = fp_archive_u32(c);
    if (c->status || pairing->n > (size_t)(c->end - c->p) || pairing->n > FP_ARCHIVE_MAX_ROWS) return FP_E_MALFORMED;
    pairing->rows = fp_have(calloc((size_t)pairing->n + 1, sizeof *pairing->rows));
    for (uint32_t i = 0; i < pairing->n; i++) {
        const uint64_t code = fp_cursor_number(c);
        if (code == 1) continue;
        const uint64_t at = code ? next + fp_zag(code - 2) : next;
        if (c->status || at >= there->n) return FP_E_MALFORMED;
        pairing->rows[i] = there->rows[at] + 1;
        next = at + 1;
    }
    return 0;
}

static uint64_t n_bits(uint64_t v) {
    return v ? 64 - (uint64_t)__builtin_clzll(v) : 0;
}

/* Appends the differences of the own column to the base's, and returns 1 if they have fewer bits than the stream; else
 * appends nothing and returns 0. */
static int add_differences_by_row(const struct fp_archive_column *base, const struct fp_archive_column *own,
                                  struct fp_cursor stream, const struct fp_archive_pairing *pairing,
                                  struct fp_buf *out) {
    const size_t before = out->n;
    uint64_t bits = 0, whole = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < pairing->n; i++) most = pairing->rows[i] > most ? pairing->rows[i] : most;
    if (own->n != pairing->n || most > base->n) return 0;
    if (own->divisor) fp_buf_varint(out, own->divisor);
    for (uint32_t i = 0; i < own->n; i++) {
        const uint32_t row = pairing->rows[i];
        const uint64_t zig = fp_zig(own->v[i] - (row ? base->v[row - 1] : 0));
        bits += n_bits(zig);
        fp_buf_varint(out, zig);
    }
    while (stream.p < stream.end) whole += n_bits(fp_cursor_number(&stream));
    if (bits < whole) return 1;
    out->n = before;
    return 0;
}

static int apply_differences_by_row(struct fp_cursor base, struct fp_cursor diff, enum fp_archive_kind kind,
                                    const struct fp_archive_pairing *pairing, struct fp_buf *out) {
    struct fp_archive_column column = {0};
    int status = fp_archive_take_column(base, kind, &column);
    const uint64_t divisor = kind == FP_DIFF_VALUES ? fp_cursor_number(&diff) : 1;
    for (uint32_t i = 0; i < pairing->n && !status; i++) {
        const uint32_t row = pairing->rows[i];
        if (row > column.n || diff.status) status = FP_E_MALFORMED;
        if (status) break;
        const uint64_t value = (fp_zag(fp_cursor_number(&diff)) + (row ? column.v[row - 1] : 0)) * divisor;
        if (kind == FP_DIFF_NUMBERS)
            fp_buf_varint(out, value);
        else
            fp_buf_put(out, &value, sizeof value);
    }
    fp_scratch_free(column.v);
    if (status) return status;
    if (diff.status || diff.p != diff.end) return FP_E_MALFORMED;
    if (kind == FP_DIFF_VALUES) fp_archive_values_pack(out);
    return 0;
}

/* Stack ids need no differences: rows of the same stack have the id of that stack.  The other rows have zig(difference
 * to the previous row). */
static void put_stacks(const struct fp_archive_column *base, const struct fp_archive_column *own,
                       const uint32_t *stacks, size_t n_stacks, const struct fp_archive_pairing *pairing,
                       struct fp_buf *out) {
    struct there there;
    find_there(base, stacks, n_stacks, &there);
    put_pairing(pairing, base, &there, out);
    for (uint32_t i = 0; i < own->n; i++)
        if (!pairing->rows[i]) fp_buf_varint(out, fp_zig(own->v[i] - (i ? own->v[i - 1] : 0)));
    fp_scratch_free(there.own_of);
}

/* Reads what put_stacks wrote, and appends the stream.  `base`: the ids of its rows.  0 or FP_E_MALFORMED. */
static int take_stacks(const struct fp_archive_column *base, struct fp_cursor diff, const uint32_t *stacks,
                       size_t n_stacks, struct fp_archive_pairing *pairing, struct fp_buf *out) {
    struct there there;
    uint64_t last = 0;
    find_there(base, stacks, n_stacks, &there);
    const int status = take_pairing(&diff, &there, pairing);
    for (uint32_t i = 0; i < pairing->n && !status; i++) {
        const uint32_t row = pairing->rows[i];
        const uint64_t id = row ? there.own_of[base->v[row - 1]] : last + fp_zag(fp_cursor_number(&diff));
        fp_buf_varint(out, fp_zig(id - last));
        last = id;
    }
    fp_scratch_free(there.own_of);
    return status ? status : diff.status || diff.p != diff.end ? FP_E_MALFORMED : 0;
}

/* A chunk, its base, and its streams in the other form: as differences, or restored. */
struct pair {
    struct parts base, own;
    const uint32_t *stacks; /* as fp_archive_diff has them */
    size_t n_stacks;
    struct fp_buf *out;
    struct fp_buf *streams;            /* as many as `own` has; NULL before the pair is open */
    struct fp_archive_pairing pairing; /* of stacks: no pairs if `rows` is NULL */
    struct fp_archive_pairs graph;     /* of a graph whose rows are paired */
};

/* Opens a pair.  0 or FP_E_MALFORMED. */
static int open_pair(struct pair *pair) {
    if (split_chunk(&pair->base) || split_chunk(&pair->own)) return FP_E_MALFORMED;
    pair->streams = fp_have(calloc((size_t)pair->own.n + 1, sizeof *pair->streams));
    return 0;
}

/* The content of stream i; FP_DIFF_OPAQUE if the base has no such stream. */
static enum fp_archive_kind kind_of_stream(const struct pair *pair, uint32_t i) {
    const int alike = pair->base.view == pair->own.view && i < pair->base.n;
    return alike ? kind_of(pair->own.view, i) : FP_DIFF_OPAQUE;
}

/* Appends the head and the streams (number, lengths, bytes). */
static void put_pair(const struct pair *pair) {
    struct fp_buf *out = pair->out;
    fp_buf_put(out, pair->own.head, pair->own.head_n);
    fp_buf_varint(out, pair->own.n);
    for (uint32_t i = 0; i < pair->own.n; i++) fp_buf_varint(out, pair->streams[i].n);
    for (uint32_t i = 0; i < pair->own.n; i++) fp_buf_put(out, pair->streams[i].p, pair->streams[i].n);
}

/* Calls `work` for a pair, then frees what it made, also when memory ran out. */
static int with_pair(int (*work)(void *pair), struct pair *pair) {
    const int status = fp_guarded(work, pair);
    for (uint32_t i = 0; pair->streams && i < pair->own.n; i++) fp_buf_free(&pair->streams[i]);
    FP_FREE(pair->streams, pair->pairing.rows);
    fp_archive_pairs_close(&pair->graph);
    return status;
}

/* Whether rows of the base may be paired with those of a graph.  Each stream takes time for all rows, also one without
 * numbers. */
static int are_graphs(const struct pair *pair) {
    const int same = pair->own.view == FP_GRAPH && pair->base.view == FP_GRAPH && pair->own.n <= MOST_PAIRED_STREAMS;
    return same && pair->own.n >= FP_GRAPH_STREAMS && pair->base.n >= FP_GRAPH_STREAMS;
}

/* Appends all streams of a graph by row, if pairs of rows pay; otherwise none. */
static void put_graph(struct pair *pair) {
    struct fp_archive_pairs *g = &pair->graph;
    if (!are_graphs(pair) || !pair->stacks) return;
    if (fp_archive_pairs_find(g, pair->base.streams, pair->own.streams, pair->stacks, pair->n_stacks)) return;
    for (uint32_t i = 0; i < pair->own.n && i < pair->base.n; i++) {
        struct fp_buf *stream = &pair->streams[i];
        if (i && pair->own.streams[i].p == pair->own.streams[i].end) continue;
        fp_buf_byte(stream, BY_ROW);
        if (!i) {
            fp_archive_pairs_put(g, stream);
            continue;
        }
        if (fp_archive_pairs_diff(g, i, pair->base.streams[i], pair->own.streams[i], stream))
            stream->n = 0; /* runs have several sets of positions */
    }
}

/* Pairs the rows of two chunks of stacks. */
static void find_pairs(struct pair *pair) {
    struct fp_archive_column base = {0}, own = {0};
    uint32_t found = 0;
    if (pair->own.view != FP_STACKS || pair->base.view != FP_STACKS || !pair->stacks) return;
    if (!pair->own.n || !pair->base.n) return;
    if (!fp_archive_take_column(pair->base.streams[0], FP_DIFF_NUMBERS, &base) &&
        !fp_archive_take_column(pair->own.streams[0], FP_DIFF_NUMBERS, &own)) {
        fp_archive_add_up(&base);
        fp_archive_add_up(&own);
        found = pair_rows(&base, &own, pair->stacks, pair->n_stacks, &pair->pairing);
    }
    if (found < own.n / 2 + 1) {
        free(pair->pairing.rows);
        pair->pairing.rows = NULL;
    }
    fp_archive_free_columns(&base, &own);
}

/* Appends stream i as differences to the rows of the base, and returns 1; or 0 if that does not pay. */
static int put_by_row(const struct pair *pair, uint32_t i, struct fp_buf *stream) {
    const enum fp_archive_kind kind = kind_of_stream(pair, i);
    const struct fp_archive_pairing *pairing = &pair->pairing;
    struct fp_archive_column base = {0}, own = {0};
    int done = 0;
    if (pairing->rows && kind != FP_DIFF_OPAQUE && !fp_archive_take_column(pair->base.streams[i], kind, &base) &&
        !fp_archive_take_column(pair->own.streams[i], kind, &own)) {
        fp_buf_byte(stream, BY_ROW);
        if (i) {
            done = add_differences_by_row(&base, &own, pair->own.streams[i], pairing, stream);
        } else {
            fp_archive_add_up(&base);
            fp_archive_add_up(&own);
            put_stacks(&base, &own, pair->stacks, pair->n_stacks, pairing, stream);
            done = 1;
        }
        if (!done) stream->n = 0;
    }
    fp_archive_free_columns(&base, &own);
    return done;
}

static int diff(void *arg) {
    struct pair *pair = arg;
    uint32_t against = 0;
    if (open_pair(pair)) return FP_E_MALFORMED;
    find_pairs(pair);
    put_graph(pair);
    for (uint32_t i = 0; i < pair->own.n; i++) {
        const enum fp_archive_kind kind = kind_of_stream(pair, i);
        const struct fp_cursor own = pair->own.streams[i];
        struct fp_buf *stream = &pair->streams[i];
        if (stream->n || put_by_row(pair, i, stream)) {
            against++;
            continue;
        }
        fp_buf_byte(stream, AGAINST);
        if (kind != FP_DIFF_OPAQUE && add_differences(pair->base.streams[i], own, kind, stream)) {
            against++;
        } else {
            stream->n = 0;
            fp_buf_byte(stream, WHOLE);
            fp_buf_put(stream, own.p, (size_t)(own.end - own.p));
        }
    }
    put_pair(pair);
    return against ? FP_DONE : FP_MORE;
}

int fp_archive_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, const uint32_t *stacks,
                    size_t n_stacks, struct fp_buf *out) {
    return with_pair(diff, &(struct pair){.base = {.head = base, .nbytes = base_n},
                                          .own = {.head = p, .nbytes = n},
                                          .stacks = stacks,
                                          .n_stacks = n_stacks,
                                          .out = out});
}

/* Restores a stream that put_graph wrote.  0 or FP_E_MALFORMED. */
static int restore_graph(struct pair *pair, uint32_t i, struct fp_cursor own) {
    struct fp_archive_pairs *g = &pair->graph;
    if (!are_graphs(pair) || !pair->stacks) return FP_E_MALFORMED;
    if (i)
        return g->code ? fp_archive_pairs_undiff(g, i, pair->base.streams[i], own, &pair->streams[i]) : FP_E_MALFORMED;
    return fp_archive_pairs_open(g, pair->base.streams, own, pair->stacks, pair->n_stacks, &pair->streams[0]);
}

/* Restores a stream that begins with `how`.  0 or FP_E_MALFORMED. */
static int restore(struct pair *pair, uint32_t i) {
    const enum fp_archive_kind kind = kind_of_stream(pair, i);
    struct fp_cursor own = pair->own.streams[i];
    struct fp_buf *stream = &pair->streams[i];
    const uint8_t how = fp_archive_byte(&own);
    if (own.status || how > BY_ROW || (how && kind == FP_DIFF_OPAQUE)) return FP_E_MALFORMED;
    if (how == AGAINST) return apply_differences(pair->base.streams[i], own, kind, stream);
    if (how == WHOLE) return fp_buf_put(stream, own.p, (size_t)(own.end - own.p));
    if (pair->own.view == FP_GRAPH) return restore_graph(pair, i, own);
    if (i) {
        if (!pair->pairing.rows) return FP_E_MALFORMED;
        return apply_differences_by_row(pair->base.streams[i], own, kind, &pair->pairing, stream);
    }
    if (pair->own.view != FP_STACKS || !pair->stacks) return FP_E_MALFORMED;
    struct fp_archive_column base = {0};
    int status = fp_archive_take_column(pair->base.streams[0], FP_DIFF_NUMBERS, &base);
    fp_archive_add_up(&base);
    if (!status) status = take_stacks(&base, own, pair->stacks, pair->n_stacks, &pair->pairing, stream);
    fp_scratch_free(base.v);
    return status;
}

static int undiff(void *arg) {
    struct pair *pair = arg;
    size_t nbytes = 0;
    int status = open_pair(pair);
    for (uint32_t i = 0; !status && i < pair->own.n; i++) {
        status = restore(pair, i);
        nbytes += pair->streams[i].n; /* checked, because one byte of a difference may become a number of ten */
        if (nbytes > MOST_NBYTES) status = FP_E_MALFORMED;
    }
    if (!status) put_pair(pair);
    return status;
}

int fp_archive_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, const uint32_t *stacks,
                      size_t n_stacks, struct fp_buf *out) {
    return with_pair(undiff, &(struct pair){.base = {.head = base, .nbytes = base_n},
                                            .own = {.head = p, .nbytes = n},
                                            .stacks = stacks,
                                            .n_stacks = n_stacks,
                                            .out = out});
}
