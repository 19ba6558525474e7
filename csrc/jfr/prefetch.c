/* Decodes events in groups, ahead of the rows made from them, so that they wait for memory at the same time.
 *
 * Only events that are numbers, keys and bytes of fixed size, whole in the window; the caller decodes others one by
 * one.
 */
#include "jfr/pending.h"
#include "jfr/fast_fields.h"
#include "jfr/sums.h"

/* Decodes the fields of an event at p, where as many bytes can be read as they can have.  Its end. */
FP_INLINE const uint8_t *fields_by(uint64_t (*join)(uint64_t), const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                                   uint64_t *slots) {
    for (const struct fp_jfr_op *stop = op + n; op < stop; op++) {
        if (FP_LIKELY(op->code >= FP_JFR_OP_GET_INT && op->code != FP_JFR_OP_GET_BYTE)) {
            uint64_t v;
            p = fp_jfr_varint_by(join, p, &v);
            slots[op->slot] = fp_jfr_narrow(v, op->width);
        } else if (op->code == FP_JFR_OP_VARINTS) {
            for (uint32_t i = 0; i < op->n; i++) {
                const uint64_t stops = fp_jfr_stops(fp_u64(p));
                p += stops ? (__builtin_ctzll(stops) >> 3) + 1 : FP_JFR_LONGEST;
            }
        } else if (op->code == FP_JFR_OP_BYTES) {
            p += op->n;
        } else {
            slots[op->slot] = *p++;
        }
    }
    return p;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same for short events: all ends of varints are found at once, so that no varint waits for the one before.
 *
 *   e5 8e 26 | 07 | ac 02 | 05      bits of `stops`: 0, 0, 1, 1, 0, 1, 1
 *
 * NULL if the event is not short, or a varint may have 9 bytes. */
FP_JFR_BMI2 static inline const uint8_t *short_fields(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                                                      uint64_t *slots) {
    const __m128i low = _mm_loadu_si128((const __m128i *)p), high = _mm_loadu_si128((const __m128i *)(p + 16));
    uint32_t open = (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16, stops = ~open, at = 0;
    open &= open >> 1;
    open &= open >> 2;
    if (FP_UNLIKELY(open & open >> 4)) return NULL; /* 8 in a row */
    for (const struct fp_jfr_op *stop = op + n; op < stop; op++) {
        if (FP_LIKELY(op->code >= FP_JFR_OP_GET_INT && op->code != FP_JFR_OP_GET_BYTE)) {
            if (FP_UNLIKELY(!stops)) return NULL;
            const uint32_t end = _tzcnt_u32(stops) + 1;
            const uint64_t v = fp_jfr_join_bmi2(_bzhi_u64(fp_u64(p + at), 8 * (end - at)));
            slots[op->slot] = op->width == 8 ? v : fp_jfr_narrow(v, op->width);
            stops = _blsr_u32(stops);
            at = end;
        } else if (op->code == FP_JFR_OP_VARINTS) {
            for (uint32_t i = op->n; i > 1; i--) stops = _blsr_u32(stops);
            if (FP_UNLIKELY(!stops)) return NULL;
            at = _tzcnt_u32(stops) + 1;
            stops = _blsr_u32(stops);
        } else {
            if (FP_UNLIKELY(op->n >= FP_JFR_BRIEF - at)) return NULL;
            if (op->code == FP_JFR_OP_GET_BYTE) slots[op->slot] = p[at];
            at += op->n;
            stops = stops >> at << at;
        }
    }
    return p + at;
}

FP_JFR_BMI2 static inline const uint8_t *fields_bmi2(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                                                     uint64_t *slots) {
    const uint8_t *end = short_fields(op, n, p, slots);
    return FP_LIKELY(end != NULL) ? end : fields_by(fp_jfr_join_bmi2, op, n, p, slots);
}
#endif

static inline const uint8_t *fields_of(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p, uint64_t *slots) {
    return fields_by(fp_jfr_join, op, n, p, slots);
}

/* ---- samples that are added up ---- */

enum { TRIED = 1 << 12 };

/* Whether to look for rows: if few are found, samples wait until few of those have different keys. */
static inline int looks_for_rows(struct fp_jfr_reader *r) {
    if (FP_UNLIKELY(r->sums.n_tried >= TRIED)) {
        if (r->sums.n_found < TRIED / 4 && !(r->sums.pending && r->sums.pending->are_few)) return 0;
        if (r->sums.pending) r->sums.pending->are_few = 0;
        r->sums.n_tried = r->sums.n_found = 0;
    }
    return r->is_summed;
}

/* ---- events ---- */

/* Whether the window has the bytes that decoding an event reads. */
static inline int is_readable(const struct fp_jfr_program *program, const uint8_t *body, const uint8_t *readable) {
    return readable - body >= program->most && readable - body >= FP_JFR_READ;
}

typedef const uint8_t *fields_fn(const struct fp_jfr_op *, uint32_t, const uint8_t *, uint64_t *);

FP_INLINE uint32_t ahead_by(fields_fn *fields, struct fp_jfr_reader *r, struct fp_window *in,
                            struct fp_jfr_ready *ready, uint32_t most) {
    const uint64_t left = r->chunk.stop - (in->base + in->pos), there = in->n - in->pos;
    const uint8_t *p = in->p + in->pos, *end = p + (left < there ? left : there), *readable = in->p + in->n;
    ready->summed = NULL;
    const int looks = !r->always_holds && looks_for_rows(r);
    r->sums.holds = r->is_summed && !looks && !r->model->is_refused;
    if (looks && most) {
        p = fp_jfr_add(r, p, end, readable, ready);
        most = 1;
    }
    if (r->sums.holds && most && !r->options.class_leaf && r->stacks.n_renewed == r->model->n_renewed) {
        const uint8_t *start = p;
        p = fp_jfr_add_pending_many(r, p, end, readable);
        if (p > start) most = 1; /* most samples can wait, from here on, too */
    }
    uint32_t n = 0;
    while (n < most && end - p >= 2 * FP_JFR_LONGEST) {
        struct fp_jfr_ready *to = &ready[n];
        uint64_t size, id;
        const uint8_t *body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &size), &id);
        if (size < (uint64_t)(body - p) || size > (uint64_t)(end - p)) break;
        const uint32_t type = id > 1 ? fp_jfr_find_type(r, id) : 0;
        if (type && r->metadata.types[type].is_row) {
            const struct fp_jfr_program *program = fp_jfr_prepared_of(r, type);
            if (!program || !is_readable(program, body, readable)) break;
            if (n) to->summed = NULL;
            memset(to->slots, 0, sizeof to->slots);
            if (fields(r->programs.ops + program->op, program->n_ops, body, to->slots) > p + size) break;
            to->p = p;
            to->body = body;
            to->size = size;
            to->type = type;
            const uint64_t stack =
                program->stacks ? to->slots[FP_JFR_EVENT_STACK] - program->stacks->first : UINT64_MAX;
            to->stack = NULL;
            to->context = fp_jfr_context_at(r, type, to->slots[FP_JFR_EVENT_THREAD], to->slots[FP_JFR_EVENT_STATE],
                                            to->slots[FP_JFR_EVENT_CLASS]);
            __builtin_prefetch(to->context);
            if (FP_LIKELY(stack != UINT64_MAX && stack < program->stacks->n_dense)) {
                to->stack = &program->stacks->constants[stack];
                __builtin_prefetch(to->stack);
            }
            n++;
        } else if (r->metadata.types[type].is_bad) {
            break;
        }
        p += size;
    }
    if (!n) in->pos = (size_t)(p - in->p);
    return n;
}

static uint32_t ahead_of(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_ready *ready, uint32_t most) {
    return ahead_by(fields_of, r, in, ready, most);
}

#if defined(__x86_64__) && defined(__GNUC__)
FP_JFR_BMI2 static uint32_t ahead_bmi2(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_ready *ready,
                                       uint32_t most) {
    return ahead_by(fields_bmi2, r, in, ready, most);
}
#define AHEAD (!r->is_portable && fp_cpu() & FP_CPU_BMI ? ahead_bmi2 : ahead_of)
#else
#define AHEAD ahead_of
#endif

uint32_t fp_jfr_prefetch(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_ready *ready, uint32_t most) {
    return r->chunk.compressed ? AHEAD(r, in, ready, most) : 0;
}
