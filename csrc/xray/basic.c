/* Basic ("naive") mode: 32-byte records up to the end of the file.
 *
 *   0 type:16  2 cpu:8  3 kind:8  4 function:32  8 tsc:64  16 tid:32  20 pid:32  24 padding
 *   0 1:16     2 padding          4 function:32  8 tid:32  12 pid:32  16 argument:64  24 padding
 *
 * `00 00 03 01 05 00 00 00 40 42 0f 00 00 00 00 00 ...` is: type 0 (function), CPU 3, kind 1 (exit), id 5, TSC
 * 1,000,000.
 *
 * Threads write whole chunks, each in order of time.  Chunks of different threads follow each other in any order.
 *
 * If two logs were concatenated, the second header appears in place of a record.  In version 1 it begins like an
 * argument record, but without its function record.
 */
#include "xray/private.h"

enum { RECORD = 32, RING = 4096 };

struct seen {
    uint64_t tsc;
    uint32_t function;
    uint8_t kind, cpu;
};

/* The last records of a thread, at most RING.  A forked child writes its parent's unflushed records again, with the
 * parent's ids.  Such copies are found by comparison with these. */
struct recent {
    struct seen *ring; /* grows with the thread's records */
    uint32_t n, cap;   /* entries in use; allocated */
    uint32_t head;     /* once n == RING: the oldest entry */
    uint64_t last_tsc;
    uint32_t replay; /* the next entry to be copied; UINT32_MAX: not in a copy */
};

/* The owner of an argument record. */
enum {
    NOTHING = 0,
    TAKEN = 1, /* a function record that became a row */
    COPIED = 2 /* a function record that was dropped, because it is a copy */
};

struct fp_xray_basic {
    struct recent *recents; /* by thread id in the model */
    uint32_t n_recents;
    /* the previous function record */
    int before; /* one of the above */
    uint32_t function_id;
    uint64_t tsc;
    uint8_t cpu;
    uint32_t tid, pid;
    uint32_t thread; /* id in the model; 0 = look it up again */
};

void fp_xray_basic_free(struct fp_xray_basic *b) {
    if (!b) return;
    for (uint32_t i = 0; i < b->n_recents; i++) free(b->recents[i].ring);
    FP_FREE(b->recents, b);
}

static struct recent *recent_of(struct fp_xray_basic *b, uint32_t thread) {
    const uint32_t had = b->n_recents;
    fp_array_zeroed(&b->recents, &b->n_recents, (uint64_t)thread + 1, sizeof *b->recents);
    for (uint32_t i = had; i < b->n_recents; i++) b->recents[i].replay = UINT32_MAX;
    return &b->recents[thread];
}

static uint32_t ring_at(const struct recent *t, uint32_t i) {
    return t->n == RING ? (t->head + i) % RING : i;
}

static int same(const struct seen *a, const struct seen *b) {
    return a->tsc == b->tsc && a->function == b->function && a->kind == b->kind && a->cpu == b->cpu;
}

/* Whether a record is a copy.  A copy begins where a thread's time steps back to a record in the ring, and continues as
 * long as the following records repeat, too.  In a thread with a single record time does not step back: an equal record
 * is the copy.  After more records an equal one is not a copy, because a function can call itself within one tick of
 * the clock. */
static int is_replay(struct recent *t, const struct seen *now) {
    if (t->replay < t->n && same(&t->ring[ring_at(t, t->replay)], now)) {
        t->replay++;
        return 1;
    }
    t->replay = UINT32_MAX; /* or another child's copy begins here */
    if (t->n != 1 && (!t->n || now->tsc >= t->last_tsc)) return 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!same(&t->ring[ring_at(t, i)], now)) continue;
        t->replay = i + 1;
        return 1;
    }
    return 0;
}

static void remember(struct recent *t, const struct seen *now) {
    t->last_tsc = now->tsc;
    if (t->n == RING) {
        t->ring[t->head] = *now;
        t->head = (t->head + 1) % RING;
        return;
    }
    FP_PUSH(t->ring, t->n, t->cap) = *now;
}

/* Begins another log, whose threads are distinct, like those of another input. */
static int begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err) {
    x->input = fp_model_input(x->model);
    x->basic->thread = 0;
    x->basic->before = NOTHING;
    return fp_xray_begin_another(x, p, offset, err);
}

static uint32_t put_row(const struct fp_xray_basic *b, uint8_t op, uint32_t function, struct fp_batch *out) {
    return fp_batch_event(out, b->tsc, op, function, b->thread, b->cpu);
}

/* An argument belongs to the function record directly before it in the file, if that has the same function and
 * thread. */
static int take_argument(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out,
                         struct fp_err *err) {
    struct fp_xray_basic *b = x->basic;
    const uint32_t id = fp_u32s(p + 4, x->swap), tid = fp_u32s(p + 8, x->swap), pid = fp_u32s(p + 12, x->swap);
    if (b->before == NOTHING || b->function_id != id || b->tid != tid || (x->version >= 3 && b->pid != pid)) {
        if (fp_xray_is_header(x, p, RECORD)) return begin_another(x, p, offset, err);
        x->stats.orphan_arguments++;
        return 0;
    }
    if (b->before == COPIED) return 0;
    out->aux[put_row(b, FP_OP_ARGUMENT, 0, out)] = fp_u64s(p + 16, x->swap);
    return 0;
}

static int take_function(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out,
                         struct fp_err *err) {
    struct fp_xray_basic *b = x->basic;
    const struct seen now = {fp_u64s(p + 8, x->swap), fp_u32s(p + 4, x->swap), p[3], p[2]};
    if (now.kind > 3)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "function record kind", FP_GOT_UNSIGNED, now.kind, "0..3", 0);
    const uint32_t named = fp_xray_lookup(x->names, now.function);
    if (!named) {
        x->requested = now.function;
        return FP_NEEDS;
    }
    /* Versions 1 and 2 have uninitialized memory in place of version 3's pid. */
    const uint32_t tid = fp_u32s(p + 16, x->swap), pid = x->version >= 3 ? fp_u32s(p + 20, x->swap) : 0;
    if (tid != b->tid || pid != b->pid || !b->thread) {
        b->thread = fp_model_thread(x->model, x->input, pid, tid);
        b->tid = tid;
        b->pid = pid;
    }
    struct recent *t = recent_of(b, b->thread);
    b->function_id = now.function;
    if (is_replay(t, &now)) {
        x->stats.duplicate_records++;
        b->before = COPIED;
        return 0;
    }
    remember(t, &now);
    b->before = TAKEN;
    b->tsc = now.tsc;
    b->cpu = now.cpu;
    put_row(b, now.kind, named - 1, out);
    return 0;
}

/* The record at p.  0, FP_NEEDS or an error. */
static int take_record(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out, struct fp_err *err) {
    const uint32_t type = fp_u16s(p, x->swap);
    if (type == 1) return take_argument(x, p, offset, out, err);
    x->basic->before = NOTHING;
    if (type == 0) return take_function(x, p, offset, out, err);
    if (fp_xray_is_header(x, p, RECORD)) return begin_another(x, p, offset, err);
    return fp_fail_got(err, FP_E_MALFORMED, offset, "record type", FP_GOT_UNSIGNED, type, "0 or 1", 0);
}

int fp_xray_basic_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    if (!x->basic) x->basic = fp_have(calloc(1, sizeof *x->basic));
    while (in->n - in->pos >= RECORD) {
        if (out->n == out->cap) return FP_FULL;
        int status = take_record(x, in->p + in->pos, in->base + in->pos, out, err);
        if (status == FP_NEEDS) return status;
        if (status < 0) {
            if (!x->lenient) return status;
            x->stats.bad_records++;
            x->stats.lost_bytes += RECORD;
        }
        in->pos += RECORD;
    }
    if (!in->eof) return FP_MORE;
    size_t rest = in->n - in->pos;
    if (rest) {
        if (!x->lenient)
            return fp_fail_got(err, FP_E_TRUNCATED, in->base + in->pos, "length of the last record", FP_GOT_UNSIGNED,
                               rest, "% bytes", RECORD);
        x->stats.bad_records++;
        x->stats.lost_bytes += rest;
        in->pos = in->n;
    }
    return FP_DONE;
}
