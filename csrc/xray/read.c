/* The file header, the function table, and FDR mode.
 *
 * FDR: after the 32-byte header, buffers; a buffer belongs to one thread.
 *
 *   function record, 8 bytes            metadata record, 16 bytes
 *   +--------------------------+        +------+-------------------+
 *   | id:28        | kind:3 | 0|        |kind:7|1| body, 15 bytes  |
 *   | ticks since the last:32  |        +------+-------------------+
 *   +--------------------------+
 *
 * `52 00 00 00 10 00 00 00` is: 0x52 = 0b101_001_0: function record, kind 1
 * (exit), id 5, 16 ticks after the record before.
 */
#include "xray/read.h"

#include <stdlib.h>

enum { HEADER = 32, DENSE_IDS = 1 << 20, LEAST_BLOCK = 16 + 4 + 4 + 16, LEAST_BUFFER = 48, LOOK = 16 + 33 };
enum { MOST_THREADS = 1 << 22 };
#define PROFILE_MAGIC 0x7872617970726f66u /* "xrayprof" as a number */
#define PROFILE_VERSION 0x20180424u

/* First byte of a metadata record: kind << 1 | 1. */
enum {
    NEW_BUFFER = 0x01,
    END_OF_BUFFER = 0x03,
    NEW_CPU = 0x05,
    TSC_WRAP = 0x07,
    WALL_TIME = 0x09,
    CUSTOM_EVENT = 0x0b,
    CALL_ARGUMENT = 0x0d,
    BUFFER_EXTENTS = 0x0f,
    TYPED_EVENT = 0x11,
    PID = 0x13,
    LAST_METADATA = PID
};

/* x->state */
enum {
    BETWEEN = 0,  /* before a buffer's extents record */
    OPENING = 1,  /* after it: NewBuffer must follow */
    PREAMBLE = 2, /* before the first NewCPUId */
    BODY = 3
};

struct fp_xray *fp_xray_new(struct fp_model *model, int lenient) {
    struct fp_xray *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->model = model;
    x->input = fp_model_input(model);
    if (x->input == FP_NO_ID) {
        free(x);
        return NULL;
    }
    x->lenient = lenient;
    return x;
}

void fp_xray_free(struct fp_xray *x) {
    if (!x) return;
    fp_xray_free_threads(x);
    free(x->buffers);
    free(x->dense);
    fp_table_clear(&x->sparse);
    free(x->sparse_functions);
    fp_table_clear(&x->paths);
    free(x->path_ticks);
    free(x->path_calls);
    free(x->path_children);
    free(x->ids);
    free(x);
}

int fp_xray_header(struct fp_xray *x, const uint8_t *p, size_t n, size_t *nbytes, struct fp_err *err) {
    *nbytes = HEADER;
    if (n >= 8 && (fp_u64(p) == PROFILE_MAGIC || fp_u64s(p, 1) == PROFILE_MAGIC)) {
        x->mode = FP_XRAY_PROFILE;
        x->swap = fp_u64(p) != PROFILE_MAGIC;
        if (n < HEADER)
            return fp_fail_got(err, FP_E_TRUNCATED, n, "file header length", FP_GOT_UNSIGNED, n, "% bytes", HEADER);
        uint64_t version = fp_u64s(p + 8, x->swap);
        if (version != PROFILE_VERSION)
            return fp_fail_got(err, FP_E_VERSION, 8, "profile version", FP_GOT_HEX, version, "0x20180424", 0);
        x->version = PROFILE_VERSION;
        x->wall_ns = fp_u64s(p + 16, x->swap);
        x->pid = fp_u64s(p + 24, x->swap);
        return 0;
    }
    if (n < 4) return fp_fail_got(err, FP_E_TRUNCATED, n, "file header length", FP_GOT_UNSIGNED, n, "% bytes", HEADER);
    /* Version and type are small: whichever byte order makes them so is the log's. */
    uint32_t version = fp_u16(p), type = fp_u16(p + 2);
    x->swap = version > 0xff || type > 0xff;
    if (x->swap) {
        version = fp_u16s(p, 1);
        type = fp_u16s(p + 2, 1);
    }
    if (type > 1 || (type == 0 && !x->swap && version >= LEAST_BLOCK)) {
        /* No header at all: the layout without magic, which starts with a block's size. */
        x->mode = FP_XRAY_PROFILE_RAW;
        /* Thread ids are below 2^32 in one byte order and not in the other. */
        x->swap = n >= 16 && fp_u64(p + 8) > UINT32_MAX && fp_u64s(p + 8, 1) <= UINT32_MAX;
        *nbytes = 0;
        return 0;
    }
    x->mode = type == 1 ? FP_XRAY_FDR : FP_XRAY_BASIC;
    x->version = version;
    if (version < 1 || version > (type == 1 ? 5u : 3u))
        return fp_fail_got(err, FP_E_VERSION, 0, type == 1 ? "FDR version" : "basic mode version", FP_GOT_UNSIGNED,
                           version, type == 1 ? "1..5" : "1..3", 0);
    if (n < HEADER)
        return fp_fail_got(err, FP_E_TRUNCATED, n, "file header length", FP_GOT_UNSIGNED, n, "% bytes", HEADER);
    x->flags = fp_u32s(p + 4, x->swap) & 3;
    x->ticks_per_second = fp_u64s(p + 8, x->swap);
    x->buffer_size = type == 1 ? fp_u64s(p + 16, x->swap) : 0;
    /* Too small for a preamble, it is no size of buffers: their end records tell. */
    x->stride = x->buffer_size < LEAST_BUFFER ? 0 : x->buffer_size;
    return 0;
}

int fp_xray_is_header(const struct fp_xray *x, const uint8_t *p, size_t n) {
    if (n < HEADER) return 0;
    if (x->mode == FP_XRAY_PROFILE)
        return fp_u64s(p, x->swap) == PROFILE_MAGIC && fp_u64s(p + 8, x->swap) == PROFILE_VERSION;
    /* In an argument of a basic log, version 1, these are function, thread and process; Linux has no thread of that
     * number. */
    const uint64_t ticks_per_second = fp_u64s(p + 8, x->swap);
    return fp_u16s(p, x->swap) == x->version && fp_u16s(p + 2, x->swap) == (uint32_t)x->mode &&
           (fp_u32s(p + 4, x->swap) & 3) == x->flags && ticks_per_second > MOST_THREADS &&
           ticks_per_second < (uint64_t)1 << 37;
}

int fp_xray_begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err) {
    const uint64_t ticks_per_second = fp_u64s(p + 8, x->swap);
    if (x->mode == FP_XRAY_PROFILE) {
        x->pid = fp_u64s(p + 24, x->swap);
    } else if (ticks_per_second != x->ticks_per_second) {
        return fp_fail_got(err, FP_E_MALFORMED, offset, "ticks per second of a further log", FP_GOT_UNSIGNED,
                           ticks_per_second, "%, those of the first", x->ticks_per_second);
    }
    x->stats.joined++;
    return 0;
}

/* ---- functions -------------------------------------------------------- */

uint32_t fp_xray_lookup_sparse(const struct fp_xray *x, uint32_t id) {
    if (id < DENSE_IDS || !x->sparse.index) return 0;
    uint32_t row = fp_table_find(&x->sparse, &id);
    return row ? x->sparse_functions[row] : 0;
}

int fp_xray_define(struct fp_xray *x, uint32_t id, uint32_t function) {
    if (id < DENSE_IDS) {
        if (id >= x->n_dense) {
            uint32_t n = x->n_dense ? x->n_dense : 1024;
            while (n <= id) n *= 2;
            uint32_t *dense = realloc(x->dense, n * sizeof *dense);
            if (!dense) return FP_E_NOMEM;
            memset(dense + x->n_dense, 0, (n - x->n_dense) * sizeof *dense);
            x->dense = dense;
            x->n_dense = n;
        }
        x->dense[id] = function + 1;
        return 0;
    }
    if (!x->sparse.index && fp_table_init(&x->sparse, 1)) return FP_E_NOMEM;
    uint32_t row = fp_table_intern(&x->sparse, &id);
    if (row == FP_NO_ID) return FP_E_NOMEM;
    if (row >= x->cap_sparse) {
        uint32_t cap = row < 32 ? 64 : row * 2;
        uint32_t *functions = realloc(x->sparse_functions, cap * sizeof *functions);
        if (!functions) return FP_E_NOMEM;
        x->sparse_functions = functions;
        x->cap_sparse = cap;
    }
    x->sparse_functions[row] = function + 1;
    return 0;
}

/* ---- FDR: the index --------------------------------------------------- */

static int add_buffer(struct fp_xray *x, const struct fp_xray_buffer *b, struct fp_err *err) {
    if (x->n_buffers == x->cap_buffers) {
        size_t cap = x->cap_buffers ? x->cap_buffers * 2 : 256;
        struct fp_xray_buffer *more = realloc(x->buffers, cap * sizeof *more);
        if (!more) return fp_fail(err, FP_E_NOMEM, b->offset, "the buffer index");
        x->buffers = more;
        x->cap_buffers = cap;
    }
    x->buffers[x->n_buffers++] = *b;
    return 0;
}

static uint64_t wall_us(const uint8_t *body, int swap) {
    uint64_t seconds = fp_u64s(body, swap), us = fp_u32s(body + 8, swap);
    return seconds > (UINT64_MAX - us) / 1000000 ? UINT64_MAX : seconds * 1000000 + us;
}

/* Who, when: from the metadata records at the head of a buffer. */
static void read_preamble(const struct fp_xray *x, const uint8_t *p, size_t n, struct fp_xray_buffer *b) {
    for (; n >= 16; p += 16, n -= 16) {
        switch (p[0]) {
            case NEW_BUFFER: b->tid = fp_u32s(p + 1, x->swap); break;
            case WALL_TIME: b->wall_us = wall_us(p + 1, x->swap); break;
            case PID: b->pid = fp_u32s(p + 1, x->swap); break;
            case NEW_CPU: b->tsc = fp_u64s(p + 3, x->swap); return;
            default: return;
        }
    }
}

/* The length of the record at `p`, of which `n` bytes are there; 0: not enough
 * of it is there to tell. */
static uint64_t record_length(const uint8_t *p, size_t n, int swap) {
    if (n < 1) return 0;
    if (!(p[0] & 1)) return 8;
    if (p[0] != CUSTOM_EVENT && p[0] != TYPED_EVENT) return 16;
    if (n < 5) return 0;
    int32_t size = (int32_t)fp_u32s(p + 1, swap);
    return 16 + (uint64_t)(size > 0 ? size : 0);
}

/* Do 33 bytes look like the first records of a buffer, behind its extents record? */
static int looks_like_preamble(const uint8_t *p) {
    return p[0] == NEW_BUFFER && p[16] == WALL_TIME && (p[32] == PID || p[32] == NEW_CPU);
}

/* Lenient: the first of p[from..n) that looks like a buffer's extents record, or, where `bare`, like a buffer
 * without one; n - LOOK + 1 if none does.  An event's payload must not look like one: hence so many conditions. */
static size_t find_buffer(const struct fp_xray *x, const uint8_t *p, size_t n, size_t from, int bare) {
    size_t at = from;
    for (; at + LOOK <= n; at++) {
        if (!bare) {
            const uint8_t *hit = memchr(p + at, BUFFER_EXTENTS, n - LOOK + 1 - at);
            if (!hit) return n - LOOK + 1;
            at = (size_t)(hit - p);
        }
        if (bare && looks_like_preamble(p + at)) break;
        if (p[at] == BUFFER_EXTENTS && looks_like_preamble(p + at + 16) && fp_u64s(p + at + 1, x->swap) <= UINT32_MAX)
            break;
    }
    return at;
}

static int index_v1(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const uint64_t at = in->base + in->pos, left = size - at;
    const uint64_t stride = x->stride ? x->stride : left;
    struct fp_xray_buffer b = {.offset = at, .nbytes = stride < left ? stride : left};
    size_t have = in->n - in->pos;
    read_preamble(x, in->p + in->pos, have < b.nbytes ? have : (size_t)b.nbytes, &b);
    *next = at + b.nbytes;
    return add_buffer(x, &b, err);
}

/* Version 2 may lack extents: walk from record to record to the next buffer. */
static int index_walk(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    struct fp_xray_buffer *b = &x->buffers[x->n_buffers - 1];
    uint64_t at = in->base + in->pos;
    const uint64_t window_end = in->base + in->n;
    while (at < size) {
        const uint8_t *p = in->p + (at - in->base);
        size_t have = (size_t)(window_end - at);
        if (at != b->offset && have && (p[0] == BUFFER_EXTENTS || p[0] == NEW_BUFFER)) break;
        uint64_t length = record_length(p, have, x->swap);
        if (!length && window_end < size) {
            *next = at;
            return FP_MORE;
        }
        if (!length || length > size - at) {
            if (!x->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a record");
            at = size;
            break;
        }
        at += length;
        if (at >= window_end && at < size) {
            *next = at;
            return FP_MORE;
        }
    }
    b->nbytes = at - b->offset;
    x->walked = 0;
    *next = at;
    return FP_DONE;
}

/* Lenient: where the buffer that was added last ends.  That is where the next one begins, if its extents say more. */
static void index_end(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next) {
    struct fp_xray_buffer *b = &x->buffers[x->n_buffers - 1];
    const uint64_t end = b->offset + b->nbytes;
    *next = in->base + find_buffer(x, in->p, in->n, in->pos, 0);
    if (*next < end && *next + LOOK <= in->base + in->n) {
        b->nbytes = *next - b->offset;
    } else if (*next >= end || in->base + in->n == size) {
        *next = end;
    } else {
        return;
    }
    x->ending = 0;
}

/* Lenient: passes over what is no buffer.  One whose extents record is damaged is taken for what lies up to the next.
 */
static int index_gap(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const uint64_t at = in->base + in->pos;
    size_t found = find_buffer(x, in->p, in->n, in->pos, 1);
    *next = in->base + found;
    if (found + LOOK > in->n && in->base + in->n == size) *next = size;
    x->stats.lost_bytes += *next - at;
    if (found + LOOK > in->n || x->version == 2 || in->p[found] != NEW_BUFFER) return 0;
    struct fp_xray_buffer b = {.offset = *next, .nbytes = size - *next};
    read_preamble(x, in->p + found, in->n - found, &b);
    x->stats.bad_buffers++;
    x->ending = 1;
    *next += 16;
    return add_buffer(x, &b, err);
}

static int index_v2(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    const size_t have = in->n - in->pos;
    const uint64_t at = in->base + in->pos, left = size - at;
    struct fp_xray_buffer b = {.offset = at};
    if (x->version == 2 && p[0] == NEW_BUFFER) {
        read_preamble(x, p, have, &b);
        x->walked = at;
        *next = at;
        return add_buffer(x, &b, err);
    }
    if (p[0] != BUFFER_EXTENTS) {
        int status = 1;
        if (fp_xray_is_header(x, p, have)) status = fp_xray_begin_another(x, p, at, err);
        if (!status) *next = at + HEADER;
        if (!status || (status < 0 && !x->lenient)) return status;
        if (x->lenient) return index_gap(x, in, size, next, err);
        return fp_fail_got(err, FP_E_MALFORMED, at, "first byte of a buffer", FP_GOT_HEX, p[0],
                           "0xf, a buffer extents record", 0);
    }
    if (left < 16) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, at, "length of the last record", FP_GOT_UNSIGNED, left, "% bytes",
                               16);
        x->stats.lost_bytes += left;
        *next = size;
        return 0;
    }
    if (have < 16) {
        *next = at;
        return 0;
    }
    uint64_t extents = fp_u64s(p + 1, x->swap);
    if (extents > left - 16) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, at, "buffer extent", FP_GOT_UNSIGNED, extents,
                               "at most % bytes, the rest of the file", left - 16);
        extents = left - 16;
        if (!extents) { /* nothing of the buffer is left to be met, and counted, again */
            x->stats.bad_buffers++;
            x->stats.lost_bytes += 16;
        }
    }
    b.nbytes = 16 + extents;
    *next = at + b.nbytes;
    if (!extents) return 0; /* nothing in it */
    read_preamble(x, p + 16, have - 16 < extents ? have - 16 : (size_t)extents, &b);
    if (x->lenient) {
        x->ending = 1;
        *next = at + 16;
    }
    return add_buffer(x, &b, err);
}

int fp_xray_index(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err) {
    for (;;) {
        const uint64_t at = in->base + in->pos;
        if (at >= size && !x->walked) return FP_DONE;
        if (at > in->base + in->n || (at == in->base + in->n && at < size)) {
            *next = at;
            return FP_MORE;
        }
        int status;
        if (x->walked) {
            status = index_walk(x, in, size, next, err);
            if (status == FP_MORE) return FP_MORE;
        } else if (x->ending) {
            index_end(x, in, size, next);
            status = 0;
        } else {
            status = x->version == 1 ? index_v1(x, in, size, next, err) : index_v2(x, in, size, next, err);
        }
        if (status < 0) return status;
        /* A preamble wants about 100 bytes: look again from the buffer's start. */
        if (*next > in->base + in->n || (in->base + in->n - *next < 128 && in->base + in->n < size)) {
            return *next >= size && !x->walked ? FP_DONE : FP_MORE;
        }
        in->pos = (size_t)(*next - in->base);
    }
}

static int by_time(const void *left, const void *right) {
    const struct fp_xray_buffer *a = left, *b = right;
#define ORDER(field) \
    if (a->field != b->field) return a->field < b->field ? -1 : 1
    ORDER(wall_us);
    ORDER(tsc);
    ORDER(tid);
    ORDER(pid);
    ORDER(offset);
#undef ORDER
    return 0;
}

void fp_xray_sort(struct fp_xray *x) {
    if (x->n_buffers > 1) qsort(x->buffers, x->n_buffers, sizeof *x->buffers, by_time);
    for (size_t i = 1; i < x->n_buffers; i++) {
        const struct fp_xray_buffer *a = &x->buffers[i - 1], *b = &x->buffers[i];
        x->buffers[i].twin = a->wall_us == b->wall_us && a->tsc == b->tsc && a->tid == b->tid && a->pid == b->pid &&
                             a->nbytes == b->nbytes;
    }
}

size_t fp_xray_twin(const struct fp_xray *x, size_t from) {
    while (from < x->n_buffers && !x->buffers[from].twin) from++;
    return from;
}

int fp_xray_range(struct fp_xray *x, int join, uint64_t *offset, uint64_t *nbytes) {
    *nbytes = 0;
    for (; x->next_buffer < x->n_buffers; x->next_buffer++) {
        const struct fp_xray_buffer *b = &x->buffers[x->next_buffer];
        if (b->dropped) continue;
        if (*nbytes && (!join || b->offset != *offset + *nbytes)) return 1;
        if (!*nbytes) *offset = b->offset;
        *nbytes += b->nbytes;
    }
    return *nbytes != 0;
}

/* ---- FDR: the records ------------------------------------------------- */

/* Thread and CPU hold for runs of rows: they are filled in when a run ends. */
static void fill_run(const struct fp_xray *x, struct fp_batch *out, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) out->thread[i] = x->thread;
    for (uint32_t i = from; i < to; i++) out->cpu[i] = x->cpu;
}

static void end_buffer(struct fp_xray *x) {
    x->left = 0;
    x->state = BETWEEN;
    x->last_function = 0;
    x->losing = 0;
}

/* Bytes from `offset` to the end of the v1 buffer it lies in. */
static uint64_t v1_left(const struct fp_xray *x, uint64_t offset) {
    return x->stride ? x->stride - (offset - HEADER) % x->stride : UINT64_MAX;
}

/* One metadata record at p, all of whose `length` bytes are there. */
static int metadata(struct fp_xray *x, const uint8_t *p, uint64_t length, uint64_t offset, struct fp_batch *out,
                    struct fp_err *err) {
    const int swap = x->swap;
    const uint8_t kind = p[0];
    const uint32_t row = out->n;
    uint32_t after_function = 0;
    switch (kind) {
        case NEW_BUFFER:
            x->tid = fp_u32s(p + 1, swap);
            x->current_pid = 0;
            x->wall_us = 0;
            x->typed = 0;
            x->cpu = 0;
            x->state = PREAMBLE;
            x->stats.buffers++;
            break;
        case WALL_TIME:
            if (x->state != PREAMBLE)
                return fp_fail(err, FP_E_MALFORMED, offset, "a wall-time record outside a preamble");
            x->wall_us = wall_us(p + 1, swap);
            break;
        case PID:
            if (x->state != PREAMBLE) return fp_fail(err, FP_E_MALFORMED, offset, "a pid record outside a preamble");
            x->current_pid = fp_u32s(p + 1, swap);
            break;
        case NEW_CPU:
            if (x->state < PREAMBLE) return fp_fail(err, FP_E_MALFORMED, offset, "a CPU record before new-buffer");
            x->cpu = fp_u16s(p + 1, swap);
            x->now = fp_u64s(p + 3, swap);
            if (x->state == PREAMBLE) {
                x->state = BODY;
                x->thread = fp_model_thread(x->model, x->input, x->current_pid, x->tid);
                if (x->thread == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, offset, "the thread table");
                out->op[row] = FP_OP_BUFFER;
                out->time[row] = x->now;
                out->aux[row] = x->wall_us;
                out->function[row] = 0;
                out->n++;
            }
            break;
        case END_OF_BUFFER:
            if (x->version != 1)
                return fp_fail_got(err, FP_E_MALFORMED, offset, "an end-of-buffer record in version", FP_GOT_UNSIGNED,
                                   x->version, "1", 0);
            if (x->left == UINT64_MAX) {
                end_buffer(x);
                return 0;
            }
            x->skip = x->left - length;
            end_buffer(x);
            return 0;
        case TSC_WRAP:
        case CALL_ARGUMENT:
        case CUSTOM_EVENT:
        case TYPED_EVENT:
            if (x->state != BODY)
                return fp_fail(err, FP_E_MALFORMED, offset, "an event before the buffer's first CPU record");
            if (kind == TSC_WRAP) {
                x->now = fp_u64s(p + 1, swap);
            } else if (kind == CALL_ARGUMENT) {
                if (!x->last_function)
                    return fp_fail(err, FP_E_MALFORMED, offset, "an argument that follows no function record");
                out->op[row] = FP_OP_ARGUMENT;
                out->time[row] = x->now;
                out->aux[row] = fp_u64s(p + 1, swap);
                out->function[row] = 0;
                out->n++;
                after_function = 1;
            } else {
                /* v1..v3: size, absolute TSC; v4: the same and a CPU; neither moves the clock.
                 * v5, and typed events: size, signed delta to the clock. */
                uint64_t time = x->now;
                out->function[row] = 0;
                out->op[row] = FP_OP_CUSTOM;
                if (kind == TYPED_EVENT || x->version >= 5) {
                    x->now += (uint64_t)(int64_t)(int32_t)fp_u32s(p + 5, swap);
                    time = x->now;
                    if (kind == TYPED_EVENT) {
                        out->op[row] = FP_OP_TYPED;
                        out->function[row] = fp_u16s(p + 9, swap);
                        x->typed++;
                    }
                } else {
                    time = fp_u64s(p + 5, swap);
                }
                out->time[row] = time;
                int status = fp_batch_payload(out, p + 16, (size_t)(length - 16), &out->aux[row]);
                if (status) return fp_fail(err, status, offset, "an event's payload");
                out->n++;
                if (kind == CUSTOM_EVENT && x->version == 4) {
                    uint16_t cpu = x->cpu;
                    x->cpu = fp_u16s(p + 13, swap);
                    fill_run(x, out, row, out->n);
                    x->cpu = cpu;
                    x->last_function = 0;
                    return 1; /* its CPU is its own: the run must not cover it */
                }
            }
            break;
        default:
            return fp_fail_got(err, FP_E_MALFORMED, offset, "metadata kind", FP_GOT_UNSIGNED, kind >> 1, "0..9", 0);
    }
    x->last_function = after_function;
    return 0;
}

/* Gives up the rest of the current buffer (lenient); where no end is known,
 * the rest of the range, which is one buffer in lenient mode. */
static void give_up(struct fp_xray *x) {
    x->stats.bad_buffers++;
    x->skip = x->state != BETWEEN ? x->left : UINT64_MAX;
    end_buffer(x);
    x->losing = 1;
}

/* The record at hand, `length` bytes, does not fit into the rest of its buffer.
 * Writers forget the 16-byte head of each typed event when they state the
 * extents, so that much may be missing.  Else it is an error. */
static int past_the_buffer(struct fp_xray *x, const uint8_t *p, uint64_t length, uint64_t offset, struct fp_err *err) {
    uint64_t typed = x->typed + (p[0] == TYPED_EVENT);
    if (typed && length - x->left <= 16 * typed) {
        x->stats.short_buffers++;
        x->stats.short_bytes += 16 * typed;
        x->skip = x->left;
        end_buffer(x);
        return 0;
    }
    return fp_fail_got(err, FP_E_MALFORMED, offset, "record length", FP_GOT_UNSIGNED, length,
                       "at most %, the rest of its buffer", x->left);
}

/* Decodes with the byte order as a constant: two copies, neither tests it. */
static inline int fdr_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err,
                           const int swap) {
    const uint8_t *const window_end = in->p + in->n;
    uint32_t run = out->n;
    int status = FP_MORE;
    for (;;) {
        const uint8_t *p = in->p + in->pos;
        if (x->skip) {
            size_t have = (size_t)(window_end - p);
            size_t step = x->skip < have ? (size_t)x->skip : have;
            x->skip -= step;
            in->pos += step;
            if (x->losing) x->stats.lost_bytes += step;
            if (x->skip && !in->eof) {
                status = FP_MORE;
                break;
            }
            const int cut = x->skip != 0;
            x->skip = 0;
            x->losing = 0;
            if (cut) {
                status = FP_DONE;
                break;
            }
            continue;
        }
        if (x->state == BODY) {
            /* The hot loop: function records of one buffer. */
            const uint8_t *end = x->left < (uint64_t)(window_end - p) ? p + x->left : window_end;
            const uint8_t *const start = p;
            uint64_t *time = out->time;
            uint32_t *function = out->function;
            uint8_t *op = out->op;
            uint64_t now = x->now;
            uint32_t n = out->n;
            const uint32_t *dense = x->dense;
            const uint32_t n_dense = x->n_dense;
            const uint64_t room = out->cap - n, there = (uint64_t)(end - p) / 8;
            const uint8_t *const stop = p + 8 * (room < there ? room : there);
            while (p != stop) {
                uint32_t w = fp_u32s(p, swap);
                /* Metadata, or kind 4..7.  Swapped, the first byte is the word's last. */
                if (swap ? (p[0] & 1) | (w & 8) : w & 9) break;
                const uint32_t id = w >> 4;
                uint32_t f = FP_LIKELY(id < n_dense) ? dense[id] : 0;
                if (FP_UNLIKELY(!f)) {
                    f = fp_xray_lookup_sparse(x, id);
                    if (!f) {
                        x->asked = id;
                        status = FP_ASK;
                        break;
                    }
                }
                now += fp_u32s(p + 4, swap);
                time[n] = now;
                function[n] = f - 1;
                op[n] = (uint8_t)(w >> 1 & 7);
                n++;
                p += 8;
            }
            if (p != start) x->last_function = 1;
            if (x->left != UINT64_MAX) x->left -= (uint64_t)(p - start);
            in->pos += (size_t)(p - start);
            out->n = n;
            x->now = now;
            if (status == FP_ASK) break;
        }
        if (x->state != BETWEEN && !x->left) {
            fill_run(x, out, run, out->n);
            run = out->n;
            end_buffer(x);
        }
        if (out->n == out->cap) {
            status = FP_FULL;
            break;
        }

        /* Anything else, one record at a time. */
        size_t have = (size_t)(window_end - p);
        const uint64_t offset = in->base + in->pos;
        if (!have) {
            status = in->eof ? FP_DONE : FP_MORE;
            if (!in->eof) break;
            /* A v1 buffer's fill, or all of it, may be missing; stated extents may not. */
            if (x->state != BETWEEN && x->left != UINT64_MAX && x->version != 1) {
                if (!x->lenient) {
                    status = fp_fail_got(err, FP_E_TRUNCATED, offset, "a buffer's missing bytes", FP_GOT_UNSIGNED,
                                         x->left, "none", 0);
                    break;
                }
                x->stats.bad_buffers++;
            }
            end_buffer(x);
            break;
        }
        if (x->state == BETWEEN && x->version == 1) {
            x->left = v1_left(x, offset);
            x->state = OPENING;
        } else if (x->state == BETWEEN && (x->version == 2 || x->lenient) && p[0] == NEW_BUFFER) {
            x->left = UINT64_MAX; /* no extents were written, or they are damaged */
            x->state = OPENING;
        }
        /* What lies behind the buffer's end must not be taken for a length. */
        const size_t within = x->state == BETWEEN || x->left > have ? have : (size_t)x->left;
        const uint64_t length = record_length(p, within, swap);
        int bad = 0;
        if (x->state == OPENING && p[0] != NEW_BUFFER) {
            if (x->version == 1 && x->left != UINT64_MAX && p[0] == 0) {
                /* A v1 buffer that was never used is fill, fresh memory, from its first byte on. */
                static const uint8_t fresh[16];
                if (have < sizeof fresh && !in->eof) {
                    status = FP_MORE;
                    break;
                }
                if (!memcmp(p, fresh, have < sizeof fresh ? have : sizeof fresh)) {
                    x->skip = x->left;
                    end_buffer(x);
                    continue;
                }
            }
            bad = fp_fail_got(err, FP_E_MALFORMED, offset, "first record of a buffer", FP_GOT_HEX, p[0],
                              "0x1, a new-buffer record", 0);
        } else if (x->state == BETWEEN && p[0] != BUFFER_EXTENTS) {
            bad = fp_fail_got(err, FP_E_MALFORMED, offset, "first byte of a buffer", FP_GOT_HEX, p[0],
                              "0xf, a buffer extents record", 0);
        } else if ((p[0] & 1) && p[0] > LAST_METADATA) {
            bad = fp_fail_got(err, FP_E_MALFORMED, offset, "metadata kind", FP_GOT_UNSIGNED, p[0] >> 1, "0..9", 0);
        } else if (x->state != BETWEEN && (length ? length > x->left : x->left <= have)) {
            bad = past_the_buffer(x, p, length ? length : 16, offset, err);
            if (!bad) continue;
        } else if (!length || length > have) {
            if (!in->eof) {
                status = FP_MORE;
                break;
            }
            bad = fp_fail_got(err, FP_E_TRUNCATED, offset, "length of the last record", FP_GOT_UNSIGNED, have,
                              "% bytes", length ? length : 16);
        } else if (x->state == BETWEEN) {
            x->left = fp_u64s(p + 1, swap);
            x->state = x->left ? OPENING : BETWEEN;
            in->pos += 16;
            continue;
        } else if (!(p[0] & 1)) {
            bad = x->state == BODY
                      ? fp_fail_got(err, FP_E_MALFORMED, offset, "function record kind", FP_GOT_UNSIGNED,
                                    fp_u32s(p, swap) >> 1 & 7, "0..3", 0)
                      : fp_fail(err, FP_E_MALFORMED, offset, "a function record before the buffer's first CPU record");
        } else if (p[0] == BUFFER_EXTENTS) {
            if (x->left == UINT64_MAX) {
                fill_run(x, out, run, out->n);
                run = out->n;
                end_buffer(x);
                continue;
            }
            bad = fp_fail(err, FP_E_MALFORMED, offset, "a buffer extents record inside a buffer");
        } else if (p[0] == NEW_BUFFER && x->left == UINT64_MAX && x->state == BODY) {
            fill_run(x, out, run, out->n);
            run = out->n;
            end_buffer(x);
            continue;
        } else if ((p[0] == CUSTOM_EVENT || p[0] == TYPED_EVENT) && (int32_t)fp_u32s(p + 1, swap) < 0) {
            bad = fp_fail_got(err, FP_E_MALFORMED, offset, "event size", FP_GOT_SIGNED,
                              (uint64_t)(int64_t)(int32_t)fp_u32s(p + 1, swap), "0 or more", 0);
        } else {
            /* The run so far ends where the CPU or the thread changes. */
            if (p[0] == NEW_CPU || p[0] == NEW_BUFFER || (p[0] == CUSTOM_EVENT && x->version == 4)) {
                fill_run(x, out, run, out->n);
                run = out->n;
            }
            int got = metadata(x, p, length, offset, out, err);
            if (got < 0) {
                bad = got;
            } else {
                if (got == 1) run = out->n;
                in->pos += (size_t)length;
                if (x->left != UINT64_MAX && x->state != BETWEEN) x->left -= length;
                continue;
            }
        }
        if (bad == FP_E_NOMEM || !x->lenient) {
            status = bad;
            break;
        }
        fill_run(x, out, run, out->n);
        run = out->n;
        give_up(x);
    }
    fill_run(x, out, run, out->n);
    return status;
}

static int fdr_feed_native(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    return fdr_feed(x, in, out, err, 0);
}

static int fdr_feed_swapped(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    return fdr_feed(x, in, out, err, 1);
}

int fp_xray_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    if (x->mode == FP_XRAY_BASIC) return fp_xray_basic_feed(x, in, out, err);
    return x->swap ? fdr_feed_swapped(x, in, out, err) : fdr_feed_native(x, in, out, err);
}
