/* A chunk as its difference to another one, the base.  See docs/formats/archive.md, "Differences". */
#include <stdlib.h>

#include "archive/private.h"

/* The content of a stream: unknown bytes, a byte for each row, varints, or a packed value column. */
enum kind { OPAQUE, BYTES, NUMBERS, VALUES };

/* The first byte of a stream in a difference: the stream follows unchanged, or as a difference to the base's. */
enum { WHOLE, AGAINST };

enum { MOST_STREAMS = FP_GRAPH_STREAMS + 2 * UINT16_MAX, MOST_NBYTES = 1 << 28 };

/* A chunk split into its streams. */
struct parts {
    const uint8_t *head; /* view and runs */
    size_t head_n;
    uint32_t view, n;
    struct fp_archive_cur *streams;
};

static enum kind kind_of(uint32_t view, uint32_t stream) {
    if (view == FP_STACKS) return stream < FP_STACKS_STREAMS ? NUMBERS : VALUES;
    if (view == FP_GRAPH) return !stream ? BYTES : stream < FP_GRAPH_STREAMS ? NUMBERS : VALUES;
    return OPAQUE;
}

/* Splits a chunk.  0, FP_E_NOMEM or FP_E_MALFORMED.  The caller frees parts->streams, also after an error. */
static int split_chunk(const uint8_t *p, size_t n, struct parts *parts) {
    struct fp_archive_cur c = {p, p + n, 0};
    memset(parts, 0, sizeof *parts);
    parts->head = p;
    parts->view = fp_archive_cur_byte(&c);
    const uint32_t n_runs = fp_archive_cur_u32(&c);
    if (c.bad || n_runs > (size_t)(c.end - c.p) / 4) return FP_E_MALFORMED;
    for (uint32_t i = 0; i < 4 * n_runs; i++) fp_archive_cur_varint(&c);
    parts->head_n = (size_t)(c.p - p);
    parts->n = fp_archive_cur_u32(&c);
    if (c.bad || parts->n > MOST_STREAMS) return FP_E_MALFORMED;
    parts->streams = malloc((parts->n + 1) * sizeof *parts->streams);
    if (!parts->streams) return FP_E_NOMEM;
    struct fp_archive_cur lengths = c;
    for (uint32_t i = 0; i < parts->n; i++) fp_archive_cur_varint(&c);
    const uint8_t *at = c.p;
    for (uint32_t i = 0; i < parts->n && !c.bad; i++) {
        const uint64_t length = fp_archive_cur_varint(&lengths);
        if (length > (size_t)(c.end - at)) return FP_E_MALFORMED;
        parts->streams[i] = (struct fp_archive_cur){at, at + length, 0};
        at += length;
    }
    return c.bad || at != c.end ? FP_E_MALFORMED : 0;
}

/* Reads a stream of NUMBERS or VALUES, number by number. */
struct numbers {
    struct fp_archive_cur c;
    struct fp_archive_value_cur v; /* NUMBERS: its divisor is 0 */
};

static struct numbers numbers_of(struct fp_archive_cur c, enum kind kind) {
    struct numbers n = {c, {0, 0}};
    if (kind == VALUES && c.p < c.end) n.v.divisor = fp_archive_cur_varint(&n.c);
    return n;
}

static inline int more(const struct numbers *n) {
    return n->c.p < n->c.end && !n->c.bad;
}

static inline uint64_t next(struct numbers *n) {
    return n->v.divisor ? (uint64_t)fp_archive_value_next(&n->c, &n->v) : fp_archive_cur_varint(&n->c);
}

/* Appends the differences of `own` to `base` and returns 1, if both have the same number of numbers and at least half
 * are equal; otherwise appends nothing and returns 0. */
static int add_differences(struct fp_archive_cur base, struct fp_archive_cur own, enum kind kind, struct fp_buf *out) {
    size_t same = 0, all = 0;
    const size_t before = out->n;
    if (kind == BYTES) {
        all = (size_t)(own.end - own.p);
        if (all != (size_t)(base.end - base.p)) return 0;
        for (size_t i = 0; i < all; i++) {
            fp_archive_byte(out, (uint8_t)(own.p[i] - base.p[i]));
            same += own.p[i] == base.p[i];
        }
    } else {
        struct numbers a = numbers_of(base, kind), b = numbers_of(own, kind);
        for (; more(&a) && more(&b); all++) {
            const uint64_t zig = fp_zig(next(&b) - next(&a));
            fp_archive_varint(out, zig);
            same += !zig;
        }
        if (a.c.p != a.c.end || b.c.p != b.c.end || a.c.bad || b.c.bad) same = 0;
    }
    if (same && same >= all / 2) return 1;
    out->n = before;
    return 0;
}

/* The reverse of add_differences.  0, FP_E_NOMEM or FP_E_MALFORMED. */
static int apply_differences(struct fp_archive_cur base, struct fp_archive_cur diff, enum kind kind,
                             struct fp_buf *out) {
    if (kind == BYTES) {
        const size_t n = (size_t)(diff.end - diff.p);
        if (n != (size_t)(base.end - base.p)) return FP_E_MALFORMED;
        if (fp_buf_reserve(out, n)) return FP_E_NOMEM;
        for (size_t i = 0; i < n; i++) out->p[out->n++] = (uint8_t)(diff.p[i] + base.p[i]);
        return 0;
    }
    struct numbers a = numbers_of(base, kind), d = numbers_of(diff, NUMBERS);
    for (size_t n = 0; more(&a) && more(&d); n++) {
        const uint64_t value = next(&a) + fp_zag(next(&d));
        if (n == FP_ARCHIVE_MAX_ROWS) return FP_E_MALFORMED;
        if (kind == NUMBERS)
            fp_archive_varint(out, value);
        else if (fp_buf_put(out, &value, sizeof value))
            return FP_E_NOMEM;
    }
    if (a.c.p != a.c.end || d.c.p != d.c.end || a.c.bad || d.c.bad) return FP_E_MALFORMED;
    return kind == VALUES ? fp_archive_values_pack(out) : 0;
}

/* A chunk, its base, and its streams in the other form: as differences, or restored. */
struct pair {
    struct parts base, own;
    struct fp_buf *streams; /* as many as `own` has; NULL when opening failed */
};

/* Opens a pair.  0, FP_E_NOMEM or FP_E_MALFORMED.  The caller closes it, also after an error. */
static int open_pair(struct pair *pair, const uint8_t *base, size_t base_n, const uint8_t *p, size_t n) {
    const int status = split_chunk(base, base_n, &pair->base), other = split_chunk(p, n, &pair->own);
    pair->streams = status || other ? NULL : calloc(pair->own.n + 1, sizeof *pair->streams);
    if (status || other) return status ? status : other;
    return pair->streams ? 0 : FP_E_NOMEM;
}

/* The content of stream i; OPAQUE if the base has no such stream. */
static enum kind kind_of_stream(const struct pair *pair, uint32_t i) {
    const int alike = pair->base.view == pair->own.view && i < pair->base.n;
    return alike ? kind_of(pair->own.view, i) : OPAQUE;
}

/* Frees the pair.  Unless `status` is an error, appends the head and pair->streams (number, lengths, bytes) to `out`.
 */
static int close_pair(struct pair *pair, int status, struct fp_buf *out) {
    const uint32_t n = pair->streams ? pair->own.n : 0;
    int failed = 0;
    if (!status) {
        failed = fp_buf_put(out, pair->own.head, pair->own.head_n) != 0;
        fp_archive_varint(out, n);
        for (uint32_t i = 0; i < n; i++) fp_archive_varint(out, pair->streams[i].n);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct fp_buf *stream = &pair->streams[i];
        if (!status) failed |= stream->failed || (stream->n && fp_buf_put(out, stream->p, stream->n));
        fp_buf_free(&pair->streams[i]);
    }
    free(pair->streams);
    free(pair->base.streams);
    free(pair->own.streams);
    if (status) return status;
    return failed || out->failed ? FP_E_NOMEM : 0;
}

int fp_archive_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out) {
    struct pair pair;
    int status = open_pair(&pair, base, base_n, p, n);
    uint32_t against = 0;
    for (uint32_t i = 0; !status && i < pair.own.n; i++) {
        const enum kind kind = kind_of_stream(&pair, i);
        const struct fp_archive_cur own = pair.own.streams[i];
        struct fp_buf *stream = &pair.streams[i];
        fp_archive_byte(stream, AGAINST);
        if (kind != OPAQUE && add_differences(pair.base.streams[i], own, kind, stream)) {
            against++;
        } else {
            stream->n = 0;
            fp_archive_byte(stream, WHOLE);
            fp_buf_put(stream, own.p, (size_t)(own.end - own.p));
        }
    }
    status = close_pair(&pair, status, out);
    return status ? status : against ? FP_DONE : FP_MORE;
}

int fp_archive_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out) {
    struct pair pair;
    int status = open_pair(&pair, base, base_n, p, n);
    size_t nbytes = 0;
    for (uint32_t i = 0; !status && i < pair.own.n; i++) {
        const enum kind kind = kind_of_stream(&pair, i);
        struct fp_archive_cur own = pair.own.streams[i];
        struct fp_buf *stream = &pair.streams[i];
        const uint8_t how = fp_archive_cur_byte(&own);
        if (own.bad || how > AGAINST || (how == AGAINST && kind == OPAQUE))
            status = FP_E_MALFORMED;
        else if (how == AGAINST)
            status = apply_differences(pair.base.streams[i], own, kind, stream);
        else
            fp_buf_put(stream, own.p, (size_t)(own.end - own.p));
        nbytes += stream->n; /* checked, because one byte of a difference may become a number of ten */
        if (nbytes > MOST_NBYTES) status = FP_E_MALFORMED;
    }
    return close_pair(&pair, status, out);
}
