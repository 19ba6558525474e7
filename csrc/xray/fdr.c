/* FDR: the records of buffers (xray/records.h has their layout) to timeline rows.
 *
 * A range of bytes holds one or more whole buffers.  Most records are function
 * records, which have a separate loop; all others are handled one by one.
 */
#include "xray/private.h"
#include "xray/records.h"

/* The position of the next record in a buffer. */
enum {
    BETWEEN = 0,  /* before a buffer's extents record */
    OPENING = 1,  /* after it: the new-buffer record must follow */
    PREAMBLE = 2, /* after that, before the first new-CPU record: the thread is not known yet */
    BODY = 3
};

#define UNKNOWN_END UINT64_MAX /* in `left`: the buffer ends where the next one begins */

struct fp_xray_fdr {
    int state;      /* one of the above */
    int losing;     /* skipped bytes are a loss */
    uint64_t left;  /* bytes to the end of the buffer, or UNKNOWN_END */
    uint64_t skip;  /* bytes to skip before the next record */
    uint64_t now;   /* the clock: ticks at the last record that moves it */
    uint64_t typed; /* typed events in this buffer so far */
    uint64_t wall_us;
    uint32_t tid, pid; /* of the preamble; 0 = no pid is recorded */
    uint32_t thread;   /* id in the model */
    uint32_t run;      /* first row whose thread and CPU are not filled in yet */
    uint16_t cpu;
    uint8_t may_have_argument; /* the last record is a function record or an argument of one */
};

void fp_xray_fdr_free(struct fp_xray_fdr *f) {
    free(f);
}

/* Thread and CPU stay the same for many rows: they are filled in when one of them changes. */
static void end_run(struct fp_xray_fdr *f, struct fp_batch *out) {
    const uint32_t n = out->n - f->run, thread = f->thread;
    uint32_t *const threads = out->thread + f->run;
    uint16_t *const cpus = out->cpu + f->run, cpu = f->cpu;
    for (uint32_t i = 0; i < n; i++) threads[i] = thread;
    for (uint32_t i = 0; i < n; i++) cpus[i] = cpu;
    f->run = out->n;
}

static void end_buffer(struct fp_xray_fdr *f) {
    f->left = 0;
    f->state = BETWEEN;
    f->may_have_argument = 0;
    f->losing = 0;
}

/* ---- metadata records ----------------------------------------------------- */

static int new_cpu(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    if (f->state < PREAMBLE)
        return fp_fail(err, FP_E_MALFORMED, offset, "a CPU record comes before the new-buffer record");
    end_run(f, out);
    f->cpu = fp_u16s(p + 1, x->swap);
    f->now = fp_u64s(p + 3, x->swap);
    if (f->state == BODY) return 0;
    f->state = BODY;
    f->thread = x->thread ? x->thread : fp_model_thread(x->model, x->input, f->pid, f->tid);
    const uint32_t row = out->n++;
    out->op[row] = FP_OP_BUFFER;
    out->time[row] = f->now;
    out->aux[row] = f->wall_us;
    out->function[row] = 0;
    return 0;
}

static int put_argument(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out,
                        struct fp_err *err) {
    if (!x->fdr->may_have_argument)
        return fp_fail(err, FP_E_MALFORMED, offset, "an argument record does not follow a function record");
    const uint32_t row = out->n++;
    out->op[row] = FP_OP_ARGUMENT;
    out->time[row] = x->fdr->now;
    out->aux[row] = fp_u64s(p + 1, x->swap);
    out->function[row] = 0;
    return 0;
}

/* A custom or typed event at p of `nbytes` bytes with its payload.  Typed events, and custom ones from version 5 on,
 * move the clock; older custom events have their own time, and in version 4 also a CPU. */
static int put_event(struct fp_xray *x, const uint8_t *p, uint64_t nbytes, uint64_t offset, struct fp_batch *out,
                     struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const int swap = x->swap, typed = p[0] == FP_XRAY_TYPED_EVENT, own_cpu = !typed && x->version == 4;
    const uint32_t row = out->n;
    if (typed || x->version >= 5) {
        f->now += (uint64_t)(int64_t)(int32_t)fp_u32s(p + 5, swap);
        f->typed += typed;
        out->time[row] = f->now;
    } else {
        out->time[row] = fp_u64s(p + 5, swap);
    }
    out->op[row] = typed ? FP_OP_TYPED : FP_OP_CUSTOM;
    out->function[row] = typed ? fp_u16s(p + 9, swap) : 0;
    int status =
        fp_batch_payload(out, p + FP_XRAY_METADATA_NBYTES, (size_t)(nbytes - FP_XRAY_METADATA_NBYTES), &out->aux[row]);
    if (status) return fp_fail(err, status, offset, "an event's payload");
    if (own_cpu) end_run(f, out);
    out->n++;
    if (own_cpu) {
        const uint16_t cpu = f->cpu;
        f->cpu = fp_u16s(p + 13, swap);
        end_run(f, out);
        f->cpu = cpu;
    }
    return 0;
}

/* The metadata record at p, with all its `nbytes` bytes. */
static int take_metadata(struct fp_xray *x, const uint8_t *p, uint64_t nbytes, uint64_t offset, struct fp_batch *out,
                         struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const uint8_t kind = p[0];
    int status = 0;
    switch (kind) {
        case FP_XRAY_NEW_BUFFER:
            end_run(f, out);
            f->tid = fp_u32s(p + 1, x->swap);
            f->pid = 0;
            f->wall_us = 0;
            f->typed = 0;
            f->cpu = 0;
            f->state = PREAMBLE;
            x->stats.buffers++;
            break;
        case FP_XRAY_WALL_TIME:
            if (f->state != PREAMBLE)
                return fp_fail(err, FP_E_MALFORMED, offset, "a wall-time record is outside a preamble");
            f->wall_us = fp_xray_wall_us(p, x->swap);
            break;
        case FP_XRAY_PID:
            if (f->state != PREAMBLE) return fp_fail(err, FP_E_MALFORMED, offset, "a pid record is outside a preamble");
            f->pid = fp_u32s(p + 1, x->swap);
            break;
        case FP_XRAY_NEW_CPU: status = new_cpu(x, p, offset, out, err); break;
        case FP_XRAY_END_OF_BUFFER:
            if (x->version != 1)
                return fp_fail_got(err, FP_E_MALFORMED, offset, "FDR version of an end-of-buffer record",
                                   FP_GOT_UNSIGNED, x->version, "1", 0);
            if (f->left != UNKNOWN_END) f->skip = f->left - nbytes;
            end_buffer(f);
            break;
        default: /* the caller has checked the kind */
            if (f->state != BODY)
                return fp_fail(err, FP_E_MALFORMED, offset, "an event comes before the buffer's first CPU record");
            if (kind == FP_XRAY_TSC_WRAP)
                f->now = fp_u64s(p + 1, x->swap);
            else if (kind == FP_XRAY_CALL_ARGUMENT)
                status = put_argument(x, p, offset, out, err);
            else
                status = put_event(x, p, nbytes, offset, out, err);
    }
    f->may_have_argument = kind == FP_XRAY_CALL_ARGUMENT;
    return status;
}

/* ---- function records ------------------------------------------------------ */

/* Handles the function records at the front of the window, up to the first other record.  0 or FP_NEEDS.  Callers
 * pass a constant for `swap`, so the compiler generates two loops without a test of it. */
static inline int take_functions(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, const int swap) {
    struct fp_xray_fdr *f = x->fdr;
    const uint8_t *const start = in->p + in->pos, *p = start;
    const uint64_t have = in->n - in->pos, there = (f->left < have ? f->left : have) / FP_XRAY_FUNCTION_NBYTES;
    const uint64_t room = out->cap - out->n;
    const uint8_t *const stop = p + FP_XRAY_FUNCTION_NBYTES * (room < there ? room : there);
    const uint32_t *const dense = x->names->dense;
    const uint32_t n_dense = x->names->n_dense;
    uint64_t *const time = out->time;
    uint32_t *const function = out->function;
    uint8_t *const op = out->op;
    uint64_t now = f->now;
    uint32_t n = out->n;
    int status = 0;
    while (p != stop) {
        const uint32_t w = fp_u32s(p, swap);
        /* Metadata, or kind 4..7.  Swapped, the first byte is the word's last. */
        if (swap ? (p[0] & 1) | (w & 8) : w & 9) break;
        const uint32_t id = w >> 4;
        uint32_t named = FP_LIKELY(id < n_dense) ? dense[id] : 0;
        if (FP_UNLIKELY(!named)) {
            named = fp_xray_lookup_sparse(x->names, id);
            if (!named) {
                x->requested = id;
                status = FP_NEEDS;
                break;
            }
        }
        now += fp_u32s(p + 4, swap);
        time[n] = now;
        function[n] = named - 1;
        op[n] = (uint8_t)(w >> 1 & 7);
        n++;
        p += FP_XRAY_FUNCTION_NBYTES;
    }
    if (p != start) f->may_have_argument = 1;
    if (f->left != UNKNOWN_END) f->left -= (uint64_t)(p - start);
    in->pos += (size_t)(p - start);
    out->n = n;
    f->now = now;
    return status;
}

/* ---- buffers ----------------------------------------------------------------- */

/* Moves to the first record of the next buffer.  0, FP_MORE or an error. */
static int begin_buffer(struct fp_xray *x, struct fp_window *in, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const uint8_t *p = in->p + in->pos;
    const uint64_t offset = in->base + in->pos;
    if (x->version == 1) {
        const uint64_t stride = fp_xray_v1_stride(x->buffer_size);
        f->left = stride ? stride - (offset - FP_XRAY_HEADER_NBYTES) % stride : UNKNOWN_END;
        f->state = OPENING;
        return 0;
    }
    if ((x->version == 2 || x->lenient) && p[0] == FP_XRAY_NEW_BUFFER) {
        f->left = UNKNOWN_END; /* no extents were written, or they are damaged */
        f->state = OPENING;
        return 0;
    }
    if (p[0] != FP_XRAY_BUFFER_EXTENTS)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "first byte of a buffer", FP_GOT_HEX, p[0],
                           "0xf, a buffer extents record", 0);
    if (in->n - in->pos < FP_XRAY_METADATA_NBYTES) {
        if (!in->eof) return FP_MORE;
        return fp_fail_got(err, FP_E_TRUNCATED, offset, "length of the last record", FP_GOT_UNSIGNED, in->n - in->pos,
                           "% bytes", FP_XRAY_METADATA_NBYTES);
    }
    f->left = fp_u64s(p + 1, x->swap);
    f->state = f->left ? OPENING : BETWEEN;
    in->pos += FP_XRAY_METADATA_NBYTES;
    return 0;
}

/* A version 1 buffer that was never used is fresh memory from its first byte on. */
static int is_unused(const uint8_t *p, size_t n) {
    static const uint8_t fresh[FP_XRAY_METADATA_NBYTES];
    return !memcmp(p, fresh, n < sizeof fresh ? n : sizeof fresh);
}

/* The record at p, `nbytes` bytes, does not fit into the rest of its buffer.  Writers omit the 16-byte head of each
 * typed event from the extents, so that much may be missing: then the buffer ends here.  Otherwise it is an error. */
static int past_the_buffer(struct fp_xray *x, const uint8_t *p, uint64_t nbytes, uint64_t offset, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const uint64_t typed = f->typed + (p[0] == FP_XRAY_TYPED_EVENT);
    if (typed && nbytes - f->left <= FP_XRAY_METADATA_NBYTES * typed) {
        x->stats.short_buffers++;
        f->skip = f->left;
        end_buffer(f);
        return 0;
    }
    return fp_fail_got(err, FP_E_MALFORMED, offset, "record length", FP_GOT_UNSIGNED, nbytes,
                       "at most %, the rest of its buffer", f->left);
}

/* A complete record of `nbytes` that the fast path does not handle.  0 or an error. */
static int take_whole(struct fp_xray *x, struct fp_window *in, uint64_t nbytes, struct fp_batch *out,
                      struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const uint8_t *p = in->p + in->pos;
    const uint64_t offset = in->base + in->pos;
    if (!(p[0] & 1)) {
        if (f->state != BODY)
            return fp_fail(err, FP_E_MALFORMED, offset, "a function record comes before the buffer's first CPU record");
        return fp_fail_got(err, FP_E_MALFORMED, offset, "function record kind", FP_GOT_UNSIGNED,
                           fp_u32s(p, x->swap) >> 1 & 7, "0..3", 0);
    }
    if (f->left == UNKNOWN_END &&
        (p[0] == FP_XRAY_BUFFER_EXTENTS || (p[0] == FP_XRAY_NEW_BUFFER && f->state == BODY))) {
        end_buffer(f); /* the next one begins here */
        return 0;
    }
    if (p[0] == FP_XRAY_BUFFER_EXTENTS)
        return fp_fail(err, FP_E_MALFORMED, offset, "a buffer extents record is inside a buffer");
    if ((p[0] == FP_XRAY_CUSTOM_EVENT || p[0] == FP_XRAY_TYPED_EVENT) && (int32_t)fp_u32s(p + 1, x->swap) < 0)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "event size", FP_GOT_SIGNED,
                           (uint64_t)(int64_t)(int32_t)fp_u32s(p + 1, x->swap), "0 or more", 0);
    FP_TRY(take_metadata(x, p, nbytes, offset, out, err));
    in->pos += (size_t)nbytes;
    if (f->left != UNKNOWN_END && f->state != BETWEEN) f->left -= nbytes;
    return 0;
}

/* Handles the record of a buffer at the front of the window.  0, FP_MORE or an error. */
static int take_record(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    const uint8_t *p = in->p + in->pos;
    const uint64_t offset = in->base + in->pos;
    const size_t have = in->n - in->pos;
    /* Bytes after the buffer's end must not be read as a length. */
    const uint64_t nbytes = fp_xray_record_nbytes(p, f->left > have ? have : (size_t)f->left, x->swap);
    if (f->state == OPENING && p[0] != FP_XRAY_NEW_BUFFER) {
        if (x->version == 1 && f->left != UNKNOWN_END && p[0] == 0) {
            if (have < FP_XRAY_METADATA_NBYTES && !in->eof) return FP_MORE;
            if (is_unused(p, have)) {
                f->skip = f->left;
                end_buffer(f);
                return 0;
            }
        }
        return fp_fail_got(err, FP_E_MALFORMED, offset, "first record of a buffer", FP_GOT_HEX, p[0],
                           "0x1, a new-buffer record", 0);
    }
    if ((p[0] & 1) && p[0] > FP_XRAY_LAST_METADATA)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "metadata kind", FP_GOT_UNSIGNED, p[0] >> 1, "0..9", 0);
    if (nbytes ? nbytes > f->left : f->left <= have)
        return past_the_buffer(x, p, nbytes ? nbytes : FP_XRAY_METADATA_NBYTES, offset, err);
    if (!nbytes || nbytes > have) {
        if (!in->eof) return FP_MORE;
        return fp_fail_got(err, FP_E_TRUNCATED, offset, "length of the last record", FP_GOT_UNSIGNED, have, "% bytes",
                           nbytes ? nbytes : FP_XRAY_METADATA_NBYTES);
    }
    return take_whole(x, in, nbytes, out, err);
}

/* ---- ranges -------------------------------------------------------------------- */

/* Skips f->skip bytes while there are any.  FP_MORE, or 0 when done. */
static int pass_over(struct fp_xray *x, struct fp_window *in) {
    struct fp_xray_fdr *f = x->fdr;
    const size_t have = in->n - in->pos, step = f->skip < have ? (size_t)f->skip : have;
    f->skip -= step;
    in->pos += step;
    if (f->losing) x->stats.lost_bytes += step;
    if (f->skip && !in->eof) return FP_MORE;
    f->skip = 0;
    f->losing = 0;
    return 0;
}

/* Lenient: drops the rest of the buffer.  If its end is unknown, that is the rest of the range, which holds one
 * buffer in lenient mode. */
static void give_up(struct fp_xray *x) {
    struct fp_xray_fdr *f = x->fdr;
    x->stats.bad_buffers++;
    f->skip = f->state != BETWEEN ? f->left : UINT64_MAX;
    end_buffer(f);
    f->losing = 1;
}

/* The range ends at `offset`.  FP_DONE, or an error when the buffer should be longer.  In version 1 the unused end of
 * a buffer, or all of it, may be missing. */
static int end_range(struct fp_xray *x, uint64_t offset, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    if (f->state != BETWEEN && f->left != UNKNOWN_END && x->version != 1) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, offset, "the number of bytes missing from a buffer",
                               FP_GOT_UNSIGNED, f->left, "0", 0);
        x->stats.bad_buffers++;
    }
    end_buffer(f);
    return FP_DONE;
}

static int feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_xray_fdr *f = x->fdr;
    for (;;) {
        int status = f->skip ? pass_over(x, in) : 0;
        if (status) return status;
        if (f->state == BODY) status = x->swap ? take_functions(x, in, out, 1) : take_functions(x, in, out, 0);
        if (status) return status;
        if (f->state != BETWEEN && !f->left) end_buffer(f);
        if (out->n == out->cap) return FP_FULL;
        if (in->pos == in->n) return in->eof ? end_range(x, in->base + in->pos, err) : FP_MORE;
        status = f->state == BETWEEN ? begin_buffer(x, in, err) : take_record(x, in, out, err);
        if (status == FP_MORE || (status && !x->lenient)) return status;
        if (status) give_up(x);
    }
}

int fp_xray_fdr_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    if (!x->fdr) x->fdr = fp_have(calloc(1, sizeof *x->fdr));
    x->fdr->run = out->n;
    int status = feed(x, in, out, err);
    end_run(x->fdr, out);
    return status;
}
