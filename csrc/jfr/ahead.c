/* Decodes events in groups, ahead of the rows made from them, so that they wait for memory at the same time.
 *
 * Only events that are numbers, keys and bytes of fixed size, whole in the window; the caller decodes others one by
 * one.
 */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "core/cpu.h"
#include "jfr/private.h"

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

enum { SHORT = 32, READ = SHORT + 16 }; /* bytes of a short event, and those that decoding it reads */

#if defined(__x86_64__) && defined(__GNUC__)
#define BMI2_TARGET __attribute__((target("bmi,bmi2")))

BMI2_TARGET static inline uint64_t join_bmi2(uint64_t groups) {
    return _pext_u64(groups, UINT64_C(0x7f7f7f7f7f7f7f7f));
}

/* The same for short events: all ends of varints are found at once, so that no varint waits for the one before.
 *
 *   e5 8e 26 | 07 | ac 02 | 05      bits of `stops`: 0, 0, 1, 1, 0, 1, 1
 *
 * NULL if the event is not short, or a varint may have 9 bytes. */
BMI2_TARGET static inline const uint8_t *short_fields(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
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
            const uint64_t v = join_bmi2(_bzhi_u64(fp_u64(p + at), 8 * (end - at)));
            slots[op->slot] = op->width == 8 ? v : fp_jfr_narrow(v, op->width);
            stops = _blsr_u32(stops);
            at = end;
        } else if (op->code == FP_JFR_OP_VARINTS) {
            for (uint32_t i = op->n; i > 1; i--) stops = _blsr_u32(stops);
            if (FP_UNLIKELY(!stops)) return NULL;
            at = _tzcnt_u32(stops) + 1;
            stops = _blsr_u32(stops);
        } else {
            if (FP_UNLIKELY(op->n >= SHORT - at)) return NULL;
            if (op->code == FP_JFR_OP_GET_BYTE) slots[op->slot] = p[at];
            at += op->n;
            stops = stops >> at << at;
        }
    }
    return p + at;
}

BMI2_TARGET static inline const uint8_t *fields_bmi2(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                                                     uint64_t *slots) {
    const uint8_t *end = short_fields(op, n, p, slots);
    return FP_LIKELY(end != NULL) ? end : fields_by(join_bmi2, op, n, p, slots);
}
#endif

static inline const uint8_t *fields_of(const struct fp_jfr_op *op, uint32_t n, const uint8_t *p, uint64_t *slots) {
    return fields_by(fp_jfr_join, op, n, p, slots);
}

/* Whether events are like most: a time, one sample each, and a stack that is a constant. */
static int is_usual(const struct fp_jfr_program *program, const struct fp_jfr_slot *slots,
                    const struct fp_jfr_event *event) {
    const struct fp_jfr_slot *value = &slots[FP_JFR_EVENT_VALUE];
    return program->has_keys && slots[FP_JFR_START].kind == FP_JFR_IS_NUMBER &&
           slots[FP_JFR_EVENT_STACK].kind == FP_JFR_IS_KEY && !event->weight && !value->unit;
}

/* The shape of usual events.  `n` is 0 if they have other fields than varints, or other ones between the keys. */
static struct fp_jfr_shape shape_of(const struct fp_jfr_reader *r, const struct fp_jfr_program *program,
                                    int has_value) {
    struct fp_jfr_shape shape = {.from = UINT8_MAX};
    uint32_t at = 0;
    if (!program->varints || program->varints > SHORT) return shape;
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->ops[program->op + i];
        if (op->code == FP_JFR_OP_VARINTS) {
            at += op->n;
            continue;
        }
        if (op->slot == FP_JFR_START) shape.start = (uint8_t)at;
        if (op->slot == FP_JFR_EVENT_VALUE) shape.value = (uint8_t)at, shape.width = op->width;
        if (op->slot >= FP_JFR_EVENT_THREAD && op->slot <= FP_JFR_EVENT_CLASS) {
            if (shape.from == UINT8_MAX) shape.from = (uint8_t)at;
            shape.to = (uint8_t)(at + 1);
        }
        at++;
    }
    const int is_apart = !shape.width || shape.value < shape.from || shape.value >= shape.to;
    if (is_apart && !has_value == !shape.width && (shape.start < shape.from || shape.start >= shape.to))
        shape.n = (uint8_t)at;
    return shape;
}

/* Prepares the program of a type for events of this chunk.  NULL if they cannot be decoded ahead. */
static const struct fp_jfr_program *prepared(struct fp_jfr_reader *r, uint32_t type) {
    const struct fp_jfr_type *t = &r->types[type];
    if (!fp_jfr_program_of(r, type)) return NULL;
    struct fp_jfr_program *program = &r->programs[t->program - 1];
    if (!program->is_plain || !program->n_ops) return NULL;
    if (!program->slots) {
        const uint64_t need = ((uint64_t)r->n_slots + 1) * FP_JFR_SLOTS;
        if (fp_array_room(&r->slots, &r->cap_slots, need, sizeof *r->slots)) return NULL;
        program->slots = ++r->n_slots;
        fp_jfr_plain_slots(r, program, fp_jfr_slots_of(r, program));
    }
    const struct fp_jfr_slot *slots = fp_jfr_slots_of(r, program);
    const uint32_t stacks = slots[FP_JFR_EVENT_STACK].type, number = r->types[stacks].pool;
    const int is_stack = number && r->types[stacks].role == FP_JFR_STACK;
    program->epoch = r->epoch;
    program->is_usual = is_usual(program, slots, &fp_jfr_events[t->event - 1]);
    program->stacks = is_stack ? &r->pools[number - 1] : NULL;
    program->shape =
        program->is_usual ? shape_of(r, program, fp_jfr_events[t->event - 1].value) : (struct fp_jfr_shape){0};
    return program;
}

static inline const struct fp_jfr_program *program_of(struct fp_jfr_reader *r, uint32_t type) {
    const uint32_t number = r->types[type].program;
    if (FP_LIKELY(number && r->programs[number - 1].epoch == r->epoch)) return &r->programs[number - 1];
    return prepared(r, type);
}

/* ---- samples that are added up ---- */

/* The place of bit n, counted from 0, of those that are set; 32: there is none. */
static inline uint32_t nth_of(uint32_t bits, uint32_t n) {
    while (n--) bits &= bits - 1;
    return bits ? (uint32_t)__builtin_ctz(bits) : SHORT;
}

#if defined(__x86_64__) && defined(__GNUC__)
BMI2_TARGET static inline uint32_t nth_bmi2(uint32_t bits, uint32_t n) {
    return _tzcnt_u32(_pdep_u32(1u << n, bits));
}
#endif

/* Bit i: byte i from p on ends a varint. */
static inline uint32_t stops_of(const uint8_t *p) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < SHORT / 8; i++)
        found |= (uint32_t)((fp_jfr_stops(fp_u64(p + 8 * i)) >> 7) * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
    return found;
}

#if defined(__x86_64__) && defined(__GNUC__)
static inline uint32_t stops_sse2(const uint8_t *p) {
    const __m128i low = _mm_loadu_si128((const __m128i *)p), high = _mm_loadu_si128((const __m128i *)(p + 16));
    return ~((uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16);
}
#endif

/* The instructions to use. */
struct with {
    const uint8_t *(*fields)(const struct fp_jfr_op *, uint32_t, const uint8_t *, uint64_t *);
    uint64_t (*join)(uint64_t);
    uint32_t (*stops)(const uint8_t *);
    uint32_t (*nth)(uint32_t, uint32_t);
    const uint8_t *(*add)(struct fp_jfr_reader *, const uint8_t *, const uint8_t *, const uint8_t *,
                          struct fp_jfr_ready *, struct fp_batch *);
};

/* Where the fields of a sample are, by the ends of its varints; those of one type often end at the same places. */
struct layout {
    uint32_t stops, n; /* the bits up to the last varint, and its end; 0: not readable */
    uint32_t keys, start, value;
    uint64_t low, high, start_mask, value_mask; /* the bytes of the keys, from `keys` on, ... */
};

/* The lowest n bytes, up to 8, as a mask. */
static inline uint64_t mask_of(uint32_t n) {
    return n < 8 ? (UINT64_C(1) << 8 * n) - 1 : UINT64_MAX;
}

/* The layout of a sample whose varints end at `stops`.  `n` is 0 if they are longer than SHORT, the keys have more than
 * 16 bytes, or a varint may have 9. */
FP_INLINE struct layout layout_of(const struct with with, const struct fp_jfr_shape shape, uint32_t stops) {
    struct layout found = {0};
    const uint32_t last = with.nth(stops, shape.n - 1u);
    uint32_t open = ~stops;
    open &= open >> 1;
    open &= open >> 2;
    if (last >= SHORT - 1 || (open & open >> 4)) return found;
    found.keys = shape.from ? with.nth(stops, shape.from - 1u) + 1 : 0;
    found.start = shape.start ? with.nth(stops, shape.start - 1u) + 1 : 0;
    found.value = shape.value ? with.nth(stops, shape.value - 1u) + 1 : 0;
    found.start_mask = mask_of(with.nth(stops, shape.start) + 1 - found.start);
    found.value_mask = mask_of(with.nth(stops, shape.value) + 1 - found.value);
    const uint32_t n = with.nth(stops, shape.to - 1u) + 1 - found.keys;
    if (n > 16) return found;
    found.low = mask_of(n);
    found.high = n > 8 ? mask_of(n - 8) : 0;
    found.n = last + 1;
    found.stops = stops & ((2u << last) - 1);
    return found;
}

/* 0 if this is the row of events with these keys.  No branches: the processor would mispredict them. */
static inline uint64_t differs(const struct fp_jfr_summed *one, uint64_t low, uint64_t high, uint32_t type,
                               uint32_t generation) {
    return (one->low ^ low) | (one->high ^ high) | (one->generation ^ generation) | (one->type ^ type);
}

/* Adds a sample to its row.  0 if a sum would pass 2^63 - 1. */
static inline int added(struct fp_jfr_reader *r, const struct fp_jfr_summed *one, int64_t more, struct fp_batch *out) {
    int64_t *count = out->values + one->at;
    if (FP_LIKELY(one->has_value)) {
        if (FP_UNLIKELY(__builtin_add_overflow(count[out->cap], more, &more))) return 0;
        count[out->cap] = more;
    }
    *count += 1;
    out->count[one->row]++;
    if (FP_UNLIKELY(one->no_stack | one->truncated)) {
        r->counts.no_stack += one->no_stack;
        r->counts.truncated += one->truncated;
    }
    return 1;
}

/* Adds samples from p on to rows of the batch, up to the first sample without a row.  *ready gets the place where its
 * row is to be entered.  Returns where it stopped. */
FP_INLINE const uint8_t *add_by(const struct with with, struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                const uint8_t *readable, struct fp_jfr_ready *ready, struct fp_batch *out) {
    const uint32_t generation = r->generation;
    const uint64_t start_ticks = (uint64_t)r->start_ticks, sure_ticks = r->sure_ticks;
    uint64_t first = r->first_ticks, last = r->last_ticks, last_id = 0, size;
    uint32_t type = 0, n_tried = 0, n = 0;
    struct fp_jfr_shape shape = {0};
    struct layout layout = {0};
    for (; end - p >= 2 * FP_JFR_LONGEST; p += size) {
        uint64_t id;
        const uint8_t *body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &size), &id);
        if (size < (uint64_t)(body - p) || size > (uint64_t)(end - p) || readable - body < READ) break;
        if (!type || id != last_id) {
            type = id > 1 ? fp_jfr_find_type(r, id) : 0;
            const struct fp_jfr_program *program = type && r->types[type].is_row ? program_of(r, type) : NULL;
            if (!program || !program->shape.n) break;
            shape = program->shape;
            layout.n = 0;
            last_id = id;
        }
        const uint32_t stops = with.stops(body);
        if (FP_UNLIKELY(!layout.n || (stops & ((1u << layout.n) - 1)) != layout.stops))
            layout = layout_of(with, shape, stops);
        if (FP_UNLIKELY(!layout.n || layout.n > size - (uint64_t)(body - p))) break;
        const uint64_t ticks = with.join(fp_u64(body + layout.start) & layout.start_mask);
        if (FP_UNLIKELY(ticks - start_ticks >= sure_ticks)) break;
        const uint64_t low = ready->low = fp_u64(body + layout.keys) & layout.low;
        const uint64_t high = ready->high = fp_u64(body + layout.keys + 8) & layout.high;
        struct fp_jfr_summed *one = ready->summed = fp_jfr_summed_at(r, type, low, high);
        const uint64_t is_other = differs(one, low, high, type, generation);
        n_tried++;
        if (FP_UNLIKELY((is_other != 0) & (differs(one + 1, low, high, type, generation) != 0))) break;
        one += is_other != 0;
        int64_t more = r->period[one->metric];
        if (shape.width)
            more = (int64_t)fp_jfr_narrow(with.join(fp_u64(body + layout.value) & layout.value_mask), shape.width);
        if (FP_UNLIKELY(!added(r, one, more, out))) break;
        ready->summed = NULL;
        n++;
        first = ticks < first ? ticks : first;
        last = ticks > last ? ticks : last;
    }
    r->first_ticks = first;
    r->last_ticks = last;
    r->counts.rows += n;
    r->n_found += n;
    r->n_tried += n_tried;
    return p;
}

enum { TRIED = 1 << 12, LEFT_OUT = 1 << 18 };

/* Whether to look for rows: if few are found, a while without, in which samples wait. */
static inline int looks_for_rows(struct fp_jfr_reader *r) {
    if (FP_UNLIKELY(r->n_tried >= TRIED)) {
        const int is_rare = r->n_found < TRIED / 4;
        if (is_rare && r->n_tried < TRIED + LEFT_OUT) {
            r->n_tried += FP_JFR_AHEAD;
            return 0;
        }
        r->n_tried = r->n_found = 0;
    }
    return r->is_summed;
}

void fp_jfr_begin_sums(struct fp_jfr_reader *r) {
    r->generation++;
    r->first_ticks = UINT64_MAX;
    r->last_ticks = 0;
    r->sure_ticks = 0;
    for (uint64_t n = INT64_MAX / 2; n && !r->sure_ticks && r->start_ticks >= 0 && r->start_ns > 0; n /= 2)
        if (n < (uint64_t)(INT64_MAX - r->start_ticks) && fp_jfr_time(r, (uint64_t)r->start_ticks + n))
            r->sure_ticks = n;
}

void fp_jfr_end_sums(struct fp_jfr_reader *r) {
    if (r->first_ticks > r->last_ticks) return;
    const uint64_t first = fp_jfr_time(r, r->first_ticks), last = fp_jfr_time(r, r->last_ticks);
    if (first < r->counts.first_time) r->counts.first_time = first;
    if (last > r->counts.last_time) r->counts.last_time = last;
}

/* ---- events ---- */

/* Whether the window has the bytes that decoding an event reads. */
static inline int is_readable(const struct fp_jfr_program *program, const uint8_t *body, const uint8_t *readable) {
    return readable - body >= program->most && readable - body >= READ;
}

FP_INLINE uint32_t ahead_by(const struct with with, struct fp_jfr_reader *r, struct fp_in *in,
                            struct fp_jfr_ready *ready, uint32_t most, struct fp_batch *out) {
    const uint64_t left = r->stop - (in->base + in->pos), there = in->n - in->pos;
    const uint8_t *p = in->p + in->pos, *end = p + (left < there ? left : there), *readable = in->p + in->n;
    ready->summed = NULL;
    const int looks = !r->always_holds && looks_for_rows(r);
    r->holds = r->is_summed && !looks && !r->model->is_refused;
    if (looks && most) {
        p = with.add(r, p, end, readable, ready, out);
        most = 1;
    }
    uint32_t n = 0;
    while (n < most && end - p >= 2 * FP_JFR_LONGEST) {
        struct fp_jfr_ready *to = &ready[n];
        uint64_t size, id;
        const uint8_t *body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &size), &id);
        if (size < (uint64_t)(body - p) || size > (uint64_t)(end - p)) break;
        const uint32_t type = id > 1 ? fp_jfr_find_type(r, id) : 0;
        if (type && r->types[type].is_row) {
            const struct fp_jfr_program *program = program_of(r, type);
            if (!program || !is_readable(program, body, readable)) break;
            if (n) to->summed = NULL;
            memset(to->slots, 0, sizeof to->slots);
            if (with.fields(r->ops + program->op, program->n_ops, body, to->slots) > p + size) break;
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
        } else if (r->types[type].is_bad) {
            break;
        }
        p += size;
    }
    if (!n) in->pos = (size_t)(p - in->p);
    return n;
}

static const uint8_t *add_of(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                             struct fp_jfr_ready *ready, struct fp_batch *out) {
    const struct with with = {fields_of, fp_jfr_join, stops_of, nth_of, NULL};
    return add_by(with, r, p, end, readable, ready, out);
}

static uint32_t ahead_of(struct fp_jfr_reader *r, struct fp_in *in, struct fp_jfr_ready *ready, uint32_t most,
                         struct fp_batch *out) {
    const struct with with = {fields_of, fp_jfr_join, stops_of, nth_of, add_of};
    return ahead_by(with, r, in, ready, most, out);
}

#if defined(__x86_64__) && defined(__GNUC__)
BMI2_TARGET static __attribute__((noinline)) const uint8_t *add_bmi2(struct fp_jfr_reader *r, const uint8_t *p,
                                                                     const uint8_t *end, const uint8_t *readable,
                                                                     struct fp_jfr_ready *ready, struct fp_batch *out) {
    const struct with with = {fields_bmi2, join_bmi2, stops_sse2, nth_bmi2, NULL};
    return add_by(with, r, p, end, readable, ready, out);
}

BMI2_TARGET static uint32_t ahead_bmi2(struct fp_jfr_reader *r, struct fp_in *in, struct fp_jfr_ready *ready,
                                       uint32_t most, struct fp_batch *out) {
    const struct with with = {fields_bmi2, join_bmi2, stops_sse2, nth_bmi2, add_bmi2};
    return ahead_by(with, r, in, ready, most, out);
}
#define AHEAD (!r->is_portable && fp_cpu() & FP_CPU_BMI ? ahead_bmi2 : ahead_of)
#else
#define AHEAD ahead_of
#endif

uint32_t fp_jfr_ahead(struct fp_jfr_reader *r, struct fp_in *in, struct fp_jfr_ready *ready, uint32_t most,
                      struct fp_batch *out) {
    return r->compressed ? AHEAD(r, in, ready, most, out) : 0;
}
