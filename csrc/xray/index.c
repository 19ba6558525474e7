/* FDR: finds the buffers of a log and their order.
 *
 * The runtime writes its buffers in the order of a circular queue, which is not the order of time.  So a first pass
 * reads only the head of each buffer:
 *
 *   extents | new buffer | wall time | pid (version 3 on) | new CPU | records ...
 *
 * Version 1 has no extents: its buffers all have the same size.  Version 2 may lack them: then the end of a buffer is
 * found record by record.
 *
 * In lenient mode extents may be damaged, so the beginning of the next buffer is searched in all bytes.
 */
#include "xray/private.h"
#include "xray/records.h"

/* HEAD_NBYTES: bytes that identify a buffer's beginning, its extents and looks_like_preamble.
 * PREAMBLE_NBYTES: more than the metadata records at the head of a buffer. */
enum { HEAD_NBYTES = FP_XRAY_METADATA_NBYTES + 33, PREAMBLE_NBYTES = 128 };

struct buffer {
    uint64_t offset;  /* of its extents record or, without one, of its first record */
    uint64_t nbytes;  /* with the extents record */
    uint64_t wall_us; /* when the thread took it, microseconds of a monotonic clock */
    uint64_t tsc;     /* of its first event */
    uint32_t pid;     /* 0 when not recorded */
    uint32_t tid;
    int dropped; /* a copy of another buffer */
};

/* The target of the search. */
enum {
    BUFFER = 0, /* the beginning of a buffer */
    END = 1,    /* the end of the last one, which has no extents */
    NEXT = 2    /* the beginning of a buffer inside the last one, whose extents may be wrong (lenient) */
};

struct log_thread {
    uint32_t pid, tid;
    uint64_t nbytes;
};

struct fp_xray_index {
    struct buffer *buffers;
    size_t n;
    uint32_t cap;
    int wanted;                 /* one of the above */
    size_t duplicate;           /* fp_xray_duplicates: the second of the last two */
    size_t next;                /* fp_xray_range: the first buffer of the next range */
    struct log_thread *threads; /* fp_xray_thread_nbytes: in order; NULL before */
    size_t n_threads;
};

void fp_xray_index_free(struct fp_xray_index *index) {
    if (!index) return;
    FP_FREE(index->buffers, index->threads, index);
}

static void add_buffer(struct fp_xray_index *index, const struct buffer *b) {
    FP_PUSH(index->buffers, index->n, index->cap) = *b;
}

/* Reads thread and times from the metadata records at the head of a buffer. */
static void read_preamble(const struct fp_xray *x, const uint8_t *p, size_t n, struct buffer *b) {
    for (; n >= FP_XRAY_METADATA_NBYTES; p += FP_XRAY_METADATA_NBYTES, n -= FP_XRAY_METADATA_NBYTES) {
        switch (p[0]) {
            case FP_XRAY_NEW_BUFFER: b->tid = fp_u32s(p + 1, x->swap); break;
            case FP_XRAY_WALL_TIME: b->wall_us = fp_xray_wall_us(p, x->swap); break;
            case FP_XRAY_PID: b->pid = fp_u32s(p + 1, x->swap); break;
            case FP_XRAY_NEW_CPU: b->tsc = fp_u64s(p + 3, x->swap); return;
            default: return;
        }
    }
}

/* ---- buffer by buffer ---------------------------------------------------- */

static int index_v1(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next) {
    const uint64_t at = in->base + in->pos, left = size - at;
    const uint64_t stride = fp_xray_v1_stride(x->buffer_size);
    struct buffer b = {.offset = at, .nbytes = stride && stride < left ? stride : left};
    const size_t have = in->n - in->pos;
    read_preamble(x, in->p + in->pos, have < b.nbytes ? have : (size_t)b.nbytes, &b);
    *next = at + b.nbytes;
    add_buffer(x->index, &b);
    return 0;
}

/* Walks the records to the end of a buffer without extents.  0, FP_MORE or an error. */
static int index_end(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    struct buffer *b = &x->index->buffers[x->index->n - 1];
    const uint64_t window_end = in->base + in->n;
    uint64_t at = in->base + in->pos;
    while (at < size) {
        const uint8_t *p = in->p + (at - in->base);
        const size_t have = (size_t)(window_end - at);
        if (at != b->offset && have && (p[0] == FP_XRAY_BUFFER_EXTENTS || p[0] == FP_XRAY_NEW_BUFFER)) break;
        const uint64_t nbytes = fp_xray_record_nbytes(p, have, x->swap);
        if (!nbytes && window_end < size) {
            *next = at;
            return FP_MORE;
        }
        if (!nbytes || nbytes > size - at) {
            if (!x->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a record");
            at = size;
            break;
        }
        at += nbytes;
        if (at >= window_end && at < size) {
            *next = at;
            return FP_MORE;
        }
    }
    b->nbytes = at - b->offset;
    x->index->wanted = BUFFER;
    *next = at;
    return 0;
}

/* ---- lenient: searching buffers ------------------------------------------ */

/* Whether 33 bytes look like the first records of a buffer, after its extents record. */
static int looks_like_preamble(const uint8_t *p) {
    return p[0] == FP_XRAY_NEW_BUFFER && p[16] == FP_XRAY_WALL_TIME &&
           (p[32] == FP_XRAY_PID || p[32] == FP_XRAY_NEW_CPU);
}

/* The first place in p[from..n) that looks like an extents record and a preamble, or, where `bare`, like a preamble
 * alone.  n - HEAD_NBYTES + 1 if there is none.  Payloads of events are searched as well; the many conditions keep them
 * from being mistaken for buffers. */
static size_t find_buffer(const struct fp_xray *x, const uint8_t *p, size_t n, size_t from, int bare) {
    size_t at = from;
    for (; at + HEAD_NBYTES <= n; at++) {
        if (!bare) {
            const uint8_t *hit = memchr(p + at, FP_XRAY_BUFFER_EXTENTS, n - HEAD_NBYTES + 1 - at);
            if (!hit) return n - HEAD_NBYTES + 1;
            at = (size_t)(hit - p);
        }
        if (bare && looks_like_preamble(p + at)) break;
        if (p[at] == FP_XRAY_BUFFER_EXTENTS && looks_like_preamble(p + at + FP_XRAY_METADATA_NBYTES) &&
            fp_u64s(p + at + 1, x->swap) <= UINT32_MAX)
            break;
    }
    return at;
}

/* Ends the last buffer at the start of the next one, if its extents reach farther. */
static void index_next(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next) {
    struct buffer *b = &x->index->buffers[x->index->n - 1];
    const uint64_t end = b->offset + b->nbytes, window_end = in->base + in->n;
    *next = in->base + find_buffer(x, in->p, in->n, in->pos, 0);
    if (*next < end && *next + HEAD_NBYTES <= window_end) {
        b->nbytes = *next - b->offset;
    } else if (*next >= end || window_end == size) {
        *next = end;
    } else {
        return;
    }
    x->index->wanted = BUFFER;
}

/* Skips bytes that are not a buffer.  A preamble without extents begins a buffer with damaged extents, which reaches to
 * the next one. */
static int index_gap(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next) {
    const uint64_t at = in->base + in->pos;
    const size_t found = find_buffer(x, in->p, in->n, in->pos, 1);
    *next = in->base + found;
    if (found + HEAD_NBYTES > in->n && in->base + in->n == size) *next = size;
    x->stats.lost_bytes += *next - at;
    if (found + HEAD_NBYTES > in->n || x->version == 2 || in->p[found] != FP_XRAY_NEW_BUFFER) return 0;
    struct buffer b = {.offset = *next, .nbytes = size - *next};
    read_preamble(x, in->p + found, in->n - found, &b);
    x->stats.bad_buffers++;
    x->index->wanted = NEXT;
    *next += FP_XRAY_METADATA_NBYTES;
    add_buffer(x->index, &b);
    return 0;
}

/* ---- version 2 on --------------------------------------------------------- */

/* Handles a buffer that does not begin with an extents record. */
static int no_extents(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    const uint64_t at = in->base + in->pos;
    if (x->version == 2 && p[0] == FP_XRAY_NEW_BUFFER) {
        struct buffer b = {.offset = at};
        read_preamble(x, p, in->n - in->pos, &b);
        x->index->wanted = END;
        *next = at;
        add_buffer(x->index, &b);
        return 0;
    }
    if (fp_xray_is_header(x, p, in->n - in->pos)) {
        int status = fp_xray_begin_another(x, p, at, err);
        if (!status) *next = at + FP_XRAY_HEADER_NBYTES;
        if (!status || !x->lenient) return status;
    }
    if (x->lenient) return index_gap(x, in, size, next);
    return fp_fail_got(err, FP_E_MALFORMED, at, "first byte of a buffer", FP_GOT_HEX, p[0],
                       "0xf, a buffer extents record", 0);
}

static int index_v2(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    const size_t have = in->n - in->pos;
    const uint64_t at = in->base + in->pos, left = size - at;
    if (p[0] != FP_XRAY_BUFFER_EXTENTS) return no_extents(x, in, size, next, err);
    if (left < FP_XRAY_METADATA_NBYTES) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, at, "length of the last record", FP_GOT_UNSIGNED, left, "% bytes",
                               FP_XRAY_METADATA_NBYTES);
        x->stats.lost_bytes += left;
        *next = size;
        return 0;
    }
    if (have < FP_XRAY_METADATA_NBYTES) {
        *next = at;
        return 0;
    }
    uint64_t extents = fp_u64s(p + 1, x->swap);
    if (extents > left - FP_XRAY_METADATA_NBYTES) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, at, "buffer extent", FP_GOT_UNSIGNED, extents,
                               "at most % bytes, the rest of the file", left - FP_XRAY_METADATA_NBYTES);
        extents = left - FP_XRAY_METADATA_NBYTES;
        if (!extents) { /* no range contains this buffer, so count its loss here */
            x->stats.bad_buffers++;
            x->stats.lost_bytes += FP_XRAY_METADATA_NBYTES;
        }
    }
    *next = at + FP_XRAY_METADATA_NBYTES + extents;
    if (!extents) return 0;
    struct buffer b = {.offset = at, .nbytes = FP_XRAY_METADATA_NBYTES + extents};
    const size_t rest = have - FP_XRAY_METADATA_NBYTES;
    read_preamble(x, p + FP_XRAY_METADATA_NBYTES, rest < extents ? rest : (size_t)extents, &b);
    if (x->lenient) {
        x->index->wanted = NEXT;
        *next = at + FP_XRAY_METADATA_NBYTES;
    }
    add_buffer(x->index, &b);
    return 0;
}

static int index_window(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const struct fp_xray_index *index = x->index;
    const uint64_t window_end = in->base + in->n;
    for (;;) {
        const uint64_t at = in->base + in->pos;
        if (at >= size && index->wanted != END) return FP_DONE;
        if (at > window_end || (at == window_end && at < size)) {
            *next = at;
            return FP_MORE;
        }
        int status = 0;
        if (index->wanted == NEXT) {
            index_next(x, in, size, next);
        } else if (index->wanted == END) {
            status = index_end(x, in, size, next, err);
        } else {
            status = x->version == 1 ? index_v1(x, in, size, next) : index_v2(x, in, size, next, err);
        }
        if (status) return status;
        /* Is the whole preamble of the next buffer in this window?  If not, the next window begins there. */
        if (*next > window_end || (window_end - *next < PREAMBLE_NBYTES && window_end < size))
            return *next >= size && index->wanted != END ? FP_DONE : FP_MORE;
        in->pos = (size_t)(*next - in->base);
    }
}

/* ---- the order ------------------------------------------------------------- */

FP_ORDER(by_time, struct buffer, wall_us, tsc, tid, pid, offset)

int fp_xray_index(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    if (!x->index) x->index = fp_have(calloc(1, sizeof *x->index));
    int status = index_window(x, in, size, next, err);
    struct fp_xray_index *index = x->index;
    if (status == FP_DONE && index->n > 1) qsort(index->buffers, index->n, sizeof *index->buffers, by_time);
    return status;
}

int fp_xray_duplicates(struct fp_xray *x, uint64_t *one, uint64_t *other, uint64_t *nbytes) {
    struct fp_xray_index *index = x->index;
    while (index->duplicate + 1 < index->n) {
        const struct buffer *a = &index->buffers[index->duplicate], *b = &index->buffers[++index->duplicate];
        if (a->wall_us != b->wall_us || a->tsc != b->tsc || a->tid != b->tid || a->pid != b->pid ||
            a->nbytes != b->nbytes)
            continue;
        *one = a->offset;
        *other = b->offset;
        *nbytes = a->nbytes;
        return 1;
    }
    return 0;
}

void fp_xray_drop(struct fp_xray *x) {
    x->index->buffers[x->index->duplicate].dropped = 1;
    x->stats.duplicate_buffers++;
}

int fp_xray_range(struct fp_xray *x, uint64_t most, uint64_t *offset, uint64_t *nbytes) {
    struct fp_xray_index *index = x->index;
    *nbytes = 0;
    for (; index->next < index->n; index->next++) {
        const struct buffer *b = &index->buffers[index->next];
        if (b->dropped) continue;
        if (*nbytes && (b->nbytes > most || *nbytes > most - b->nbytes || b->offset != *offset + *nbytes)) return 1;
        if (!*nbytes) *offset = b->offset;
        *nbytes += b->nbytes;
    }
    return *nbytes != 0;
}

int fp_xray_has_threads(const struct fp_xray *x) {
    const struct fp_xray_index *index = x->index;
    for (size_t i = 1; i < index->n; i++)
        if (index->buffers[i].tid != index->buffers[0].tid || index->buffers[i].pid != index->buffers[0].pid) return 1;
    return 0;
}

void fp_xray_fill(struct fp_xray *x, struct fp_xray_piece *piece) {
    struct fp_xray_index *index = x->index;
    uint32_t at = 0;
    piece->n = 0;
    for (; index->next < index->n && piece->n < piece->cap_buffers; index->next++) {
        const struct buffer *b = &index->buffers[index->next];
        if (b->dropped) continue;
        if (b->nbytes > piece->cap_bytes - at) return;
        piece->buffers[piece->n++] =
            (struct fp_xray_buffer){.offset = b->offset, .nbytes = (uint32_t)b->nbytes, .at = at};
        at += (uint32_t)b->nbytes;
    }
}

FP_ORDER(by_thread, struct log_thread, tid, pid)

static int find_threads(struct fp_xray_index *index) {
    struct log_thread *threads = malloc((index->n + 1) * sizeof *threads);
    if (!threads) return FP_E_NOMEM;
    for (size_t i = 0; i < index->n; i++) {
        const struct buffer *b = &index->buffers[i];
        threads[i] = (struct log_thread){b->pid, b->tid, b->nbytes};
    }
    qsort(threads, index->n, sizeof *threads, by_thread);
    size_t n = 0;
    for (size_t i = 0; i < index->n; i++) {
        if (n && !by_thread(&threads[n - 1], &threads[i]))
            threads[n - 1].nbytes += threads[i].nbytes;
        else
            threads[n++] = threads[i];
    }
    index->threads = threads;
    index->n_threads = n;
    return 0;
}

uint64_t fp_xray_thread_nbytes(struct fp_xray *x, uint32_t pid, uint32_t tid) {
    struct fp_xray_index *index = x->index;
    if (!index->threads && find_threads(index)) return 0;
    const struct log_thread wanted = {pid, tid, 0};
    const struct log_thread *found = bsearch(&wanted, index->threads, index->n_threads, sizeof wanted, by_thread);
    return found ? found->nbytes : 0;
}
