/* FDR: pieces of a log, whole buffers for decoders in other threads.
 *
 * Buffers are independent, so a decoder needs only the bytes and the thread of its buffer.  The reader finds the
 * thread, because threads are numbered in the order of the log.
 */
#include "xray/private.h"
#include "xray/records.h"

/* Makes *to a decoder with the names of `x`, but without its state. */
static void make_another(const struct fp_xray *x, struct fp_xray **to) {
    const struct fp_xray_names *known = x->names; /* those in its array; it uses FP_NEEDS for others */
    struct fp_xray *other = *to = fp_have(malloc(sizeof *other));
    *other = *x;
    memset(&other->stats, 0, sizeof other->stats);
    other->names = NULL;
    other->index = NULL;
    other->fdr = NULL;
    other->basic = NULL;
    other->profile = NULL;
    struct fp_xray_names *names = other->names = fp_have(calloc(1, sizeof *names));
    if (known->cap_dense) {
        names->dense = fp_have(malloc(known->cap_dense * sizeof *names->dense));
        memcpy(names->dense, known->dense, known->cap_dense * sizeof *names->dense);
    }
    names->n_dense = known->n_dense;
    names->cap_dense = known->cap_dense;
    names->n = known->n;
}

size_t fp_xray_run(const struct fp_xray_piece *piece, uint32_t *next) {
    const struct fp_xray_buffer *b = &piece->buffers[*next];
    uint32_t i = *next;
    do i++;
    while (i < piece->n && piece->buffers[i].offset == piece->buffers[i - 1].offset + piece->buffers[i - 1].nbytes);
    *next = i;
    return piece->buffers[i - 1].at + piece->buffers[i - 1].nbytes - b->at;
}

/* ---- the thread of a buffer ------------------------------------------------ */

/* The first metadata record from p on, where function records end, or `end` if there is none. */
static const uint8_t *pass_functions(const uint8_t *p, const uint8_t *end) {
    while ((size_t)(end - p) >= FP_XRAY_FUNCTION_NBYTES && !(p[0] & 1)) p += FP_XRAY_FUNCTION_NBYTES;
    return p;
}

/* Adds the thread of the buffer at p to the model.  1, or 0: it has records of several.  Damage is left to the decoder,
 * unless it would lead to rows of another thread. */
static int find_thread(const struct fp_xray *x, const uint8_t *p, uint32_t nbytes, uint32_t *thread) {
    const uint8_t *const end = p + nbytes;
    uint32_t tid = 0, pid = 0;
    int begun = 0;
    *thread = 0;
    if (x->version > 1 && p[0] == FP_XRAY_BUFFER_EXTENTS) p += FP_XRAY_METADATA_NBYTES;
    if (p < end && p[0] != FP_XRAY_NEW_BUFFER) return 1; /* an unused or damaged buffer */
    while ((p = pass_functions(p, end)) < end) {
        const size_t have = (size_t)(end - p);
        const uint64_t record = fp_xray_record_nbytes(p, have, x->swap);
        if (!record || record > have || p[0] == FP_XRAY_END_OF_BUFFER) break;
        switch (p[0]) {
            case FP_XRAY_NEW_BUFFER:
                if (begun) return 0;
                begun = 1;
                tid = fp_u32s(p + 1, x->swap);
                break;
            case FP_XRAY_PID: pid = fp_u32s(p + 1, x->swap); break;
            case FP_XRAY_NEW_CPU:
                if (!*thread) *thread = fp_model_thread(x->model, x->input, pid, tid);
                break;
            default: break;
        }
        p += record;
    }
    return 1;
}

int64_t fp_xray_threads(const struct fp_xray *x, struct fp_xray_piece *piece, uint32_t first) {
    for (uint32_t i = first; i < piece->n; i++) {
        struct fp_xray_buffer *b = &piece->buffers[i];
        if (!find_thread(x, piece->bytes + b->at, b->nbytes, &b->thread)) return i;
    }
    return piece->n;
}

uint32_t fp_xray_firsts(const struct fp_xray_piece *piece, uint32_t *next, uint32_t end, const struct fp_shares *shares,
                        uint32_t *firsts) {
    for (; *next < end; (*next)++) {
        const uint32_t share = fp_share_of(shares, piece->buffers[*next].thread);
        if (share == FP_NO_ID) return piece->buffers[*next].thread;
        if (firsts[share] == FP_NO_ID) firsts[share] = *next;
    }
    return FP_NO_ID;
}

/* ---- decoding ------------------------------------------------------------------ */

static int fill(struct fp_feed *feed) {
    struct fp_xray_share *s = (struct fp_xray_share *)feed; /* the feed is its first member */
    const struct fp_xray_piece *piece = s->piece;
    for (; s->next < s->end; s->next++, s->pos = 0) {
        const struct fp_xray_buffer *b = &piece->buffers[s->next];
        if (fp_share_of(s->shares, b->thread) != s->share) continue;
        const uint64_t was = s->at, now = s->before + s->next;
        __atomic_store_n(&s->at, now, __ATOMIC_SEQ_CST);
        const uint64_t awaited = __atomic_load_n(s->awaited, __ATOMIC_SEQ_CST);
        s->passed = was <= awaited && now > awaited;
        if (s->passed) return FP_NEEDS;
        struct fp_window in = {.p = piece->bytes + b->at, .n = b->nbytes, .pos = s->pos, .base = b->offset, .eof = 1};
        s->x->thread = b->thread;
        const int status = fp_xray_fdr_feed(s->x, &in, feed->out, &s->err);
        s->pos = in.pos;
        if (status != FP_DONE) return status;
    }
    return FP_DONE;
}

void fp_xray_await(uint64_t *awaited, uint64_t buffer) {
    __atomic_store_n(awaited, buffer, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* orders the caller's later loads after this */
}

struct fp_xray_share *fp_xray_share_new(const struct fp_xray *x, uint32_t share, const struct fp_shares *shares,
                                        uint64_t *awaited, struct fp_batch *out) {
    struct fp_xray_share *s = fp_made(sizeof *s);
    make_another(x, &s->x);
    s->feed.fill = fill;
    s->feed.out = out;
    s->share = share;
    s->shares = shares;
    s->awaited = awaited;
    return s;
}

void fp_xray_share_free(struct fp_xray_share *s) {
    if (!s) return;
    fp_xray_free(s->x);
    free(s);
}

void fp_xray_share_take(struct fp_xray_share *s, const struct fp_xray_piece *piece, uint64_t before, uint32_t next,
                        uint32_t end) {
    s->piece = piece;
    s->before = before;
    s->next = next;
    s->end = end;
    s->pos = 0;
}

uint64_t fp_xray_share_at(const struct fp_xray_share *s) {
    return __atomic_load_n(&s->at, __ATOMIC_SEQ_CST);
}
