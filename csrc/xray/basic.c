/* Basic ("naive") mode: 32-byte records up to the end of the file.
 *
 *   0 type:16  2 cpu:8  3 kind:8  4 function:32  8 tsc:64  16 tid:32  20 pid:32  24 padding
 *   0 1:16     2 padding          4 function:32  8 tid:32  12 pid:32  16 argument:64  24 padding
 *
 * Threads write whole chunks, each in order of time; chunks of different
 * threads follow each other in any order.
 *
 * Two logs that were put into one file have a header where a record would be.
 * Of version 1 its first bytes are those of an argument, but of one that
 * belongs to no record.
 */
#include <stdlib.h>

#include "xray/read.h"

enum { RECORD = 32, RING = 4096 };

struct seen {
    uint64_t tsc;
    uint32_t function;
    uint8_t kind, cpu;
};

/* What was last seen of a thread.  A forked child writes again what its parent
 * had not flushed, under the parent's ids; the ring is what that is compared
 * with.  It grows with the thread's records, up to RING of them. */
struct fp_xray_thread {
    struct seen *ring;
    uint32_t n, cap; /* entries in use; allocated */
    uint32_t head;   /* once n == RING: the oldest entry */
    uint64_t last_tsc;
    uint32_t replay; /* entry of the ring expected next; UINT32_MAX: not replaying */
};

void fp_xray_free_threads(struct fp_xray *x) {
    for (uint32_t i = 0; i < x->cap_threads; i++) free(x->threads[i].ring);
    free(x->threads);
}

static struct fp_xray_thread *thread_state(struct fp_xray *x, uint32_t thread) {
    if (thread >= x->cap_threads) {
        uint32_t cap = thread < 32 ? 64 : thread * 2;
        struct fp_xray_thread *more = realloc(x->threads, cap * sizeof *more);
        if (!more) return NULL;
        memset(more + x->cap_threads, 0, (cap - x->cap_threads) * sizeof *more);
        for (uint32_t i = x->cap_threads; i < cap; i++) more[i].replay = UINT32_MAX;
        x->threads = more;
        x->cap_threads = cap;
    }
    return &x->threads[thread];
}

static uint32_t ring_at(const struct fp_xray_thread *t, uint32_t i) {
    return t->n == RING ? (t->head + i) % RING : i;
}

static int same(const struct seen *a, const struct seen *b) {
    return a->tsc == b->tsc && a->function == b->function && a->kind == b->kind && a->cpu == b->cpu;
}

/* Has this record been written before?  Decided at the place where a thread's
 * time steps back onto a record in the ring, and for as long as the records
 * after it repeat as well.  Where the parent had not flushed a thread's only
 * record, the time of the copy is equal; behind further records an equal one
 * may as well be a recursive call within one tick of the clock. */
static int is_replay(struct fp_xray_thread *t, const struct seen *now) {
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

static int remember(struct fp_xray_thread *t, const struct seen *now) {
    t->last_tsc = now->tsc;
    if (t->n == RING) {
        t->ring[t->head] = *now;
        t->head = (t->head + 1) % RING;
        return 0;
    }
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : 4;
        struct seen *ring = realloc(t->ring, cap * sizeof *ring);
        if (!ring) return FP_E_NOMEM;
        t->ring = ring;
        t->cap = cap;
    }
    t->ring[t->n++] = *now;
    return 0;
}

/* The threads of a further log are others, as those of a further input are. */
static int begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err) {
    x->input = fp_model_input(x->model);
    if (x->input == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, offset, "threads of a further log");
    x->thread = 0;
    x->state = 0;
    return fp_xray_begin_another(x, p, offset, err);
}

/* One whole record at p.  0: taken; FP_ASK; or an error. */
static int record(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_batch *out, struct fp_err *err) {
    const int swap = x->swap;
    const uint32_t type = fp_u16s(p, swap), id = fp_u32s(p + 4, swap), row = out->n;
    if (type == 1) {
        /* Belongs to the record just before it in the file, of the same function and thread. */
        uint32_t tid = fp_u32s(p + 8, swap), pid = fp_u32s(p + 12, swap);
        if (!x->state || x->last_function != id || x->tid != tid || (x->version >= 3 && x->current_pid != pid)) {
            if (fp_xray_is_header(x, p, RECORD)) return begin_another(x, p, offset, err);
            x->stats.orphan_arguments++;
            return 0;
        }
        if (x->state == 2) return 0; /* of a record that was a duplicate */
        out->op[row] = FP_OP_ARGUMENT;
        out->time[row] = x->now;
        out->aux[row] = fp_u64s(p + 16, swap);
        out->function[row] = 0;
        out->thread[row] = x->thread;
        out->cpu[row] = x->cpu;
        out->n++;
        return 0;
    }
    x->state = 0;
    if (type != 0) {
        if (fp_xray_is_header(x, p, RECORD)) return begin_another(x, p, offset, err);
        return fp_fail_got(err, FP_E_MALFORMED, offset, "record type", FP_GOT_UNSIGNED, type, "0 or 1", 0);
    }
    if (p[3] > 3)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "function record kind", FP_GOT_UNSIGNED, p[3], "0..3", 0);
    uint32_t function = fp_xray_lookup(x, id);
    if (!function) {
        x->asked = id;
        return FP_ASK;
    }
    /* v1 and v2 left whatever was in memory where v3 has the pid. */
    uint32_t pid = x->version >= 3 ? fp_u32s(p + 20, swap) : 0, tid = fp_u32s(p + 16, swap);
    if (tid != x->tid || pid != x->current_pid || !x->thread) {
        x->thread = fp_model_thread(x->model, x->input, pid, tid);
        if (x->thread == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, offset, "the thread table");
        x->tid = tid;
        x->current_pid = pid;
    }
    struct fp_xray_thread *t = thread_state(x, x->thread);
    if (!t) return fp_fail(err, FP_E_NOMEM, offset, "the thread table");
    const struct seen now = {fp_u64s(p + 8, swap), id, p[3], p[2]};
    x->last_function = id;
    if (is_replay(t, &now)) {
        x->stats.duplicate_records++;
        x->state = 2;
        return 0;
    }
    if (remember(t, &now)) return fp_fail(err, FP_E_NOMEM, offset, "the thread table");
    x->state = 1;
    x->now = now.tsc;
    x->cpu = p[2];
    out->op[row] = p[3];
    out->time[row] = now.tsc;
    out->function[row] = function - 1;
    out->thread[row] = x->thread;
    out->cpu[row] = x->cpu;
    out->n++;
    return 0;
}

int fp_xray_basic_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    while (in->n - in->pos >= RECORD) {
        if (out->n == out->cap) return FP_FULL;
        int status = record(x, in->p + in->pos, in->base + in->pos, out, err);
        if (status == FP_ASK || status == FP_E_NOMEM) return status;
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
