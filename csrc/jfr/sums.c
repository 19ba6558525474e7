/* Adds up usual events, which differ from an earlier one in time and value only. */
#include "core/cpu.h"
#include "jfr/held.h"
#include "jfr/known.h"
#include "jfr/short.h"
#include "jfr/sums.h"

/* ---- shapes ---- */

/* Whether events are like most: a time, one sample each, and a stack that is a constant. */
static int is_usual(const struct fp_jfr_program *program, const struct fp_jfr_slot *slots,
                    const struct fp_jfr_event *event) {
    const struct fp_jfr_slot *value = &slots[FP_JFR_EVENT_VALUE];
    return program->has_keys && slots[FP_JFR_START].kind == FP_JFR_IS_NUMBER &&
           slots[FP_JFR_EVENT_STACK].kind == FP_JFR_IS_KEY && !event->weight && !value->unit;
}

static struct fp_jfr_bits bits_of(uint32_t from, uint32_t to) {
    return (struct fp_jfr_bits){.from = UINT64_C(1) << from, .to = UINT64_C(1) << to};
}

/* The shape of usual events.  `n` is 0 if they have other fields than varints, or other ones between the keys. */
static struct fp_jfr_shape shape_of(const struct fp_jfr_reader *r, const struct fp_jfr_program *program,
                                    int has_value) {
    uint32_t at = 0, from = UINT32_MAX, to = 0, start = UINT32_MAX, value = 0;
    const struct fp_jfr_bits none = bits_of(0, 0);
    struct fp_jfr_shape shape = {.keys = none, .value = none, .key = {none, none, none, none}};
    if (!program->varints || program->varints >= FP_JFR_BRIEF) return shape;
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->ops[program->op + i];
        if (op->code == FP_JFR_OP_VARINTS) {
            at += op->n;
            continue;
        }
        if (op->slot == FP_JFR_START) start = at;
        if (op->slot == FP_JFR_EVENT_VALUE) {
            value = at;
            shape.has_value = 1;
            shape.unused_bits = 64 - 8u * op->width;
        }
        if (op->slot >= FP_JFR_EVENT_THREAD && op->slot <= FP_JFR_EVENT_CLASS) {
            if (from == UINT32_MAX) from = at;
            to = at + 1;
            shape.key[op->slot - FP_JFR_EVENT_THREAD] = bits_of(at, at + 1);
        }
        at++;
    }
    const int is_apart = !shape.has_value || value < from || value >= to;
    if (!is_apart || !has_value != !shape.has_value || start || from == UINT32_MAX) return shape;
    shape.keys = bits_of(from, to);
    if (shape.has_value) shape.value = bits_of(value, value + 1);
    shape.end = UINT64_C(1) << at;
    shape.n = at;
    return shape;
}

const struct fp_jfr_program *fp_jfr_prepare(struct fp_jfr_reader *r, uint32_t type) {
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

/* ---- instructions ---- */

/* The place of a bit of `bits`: for 1 << n that of the n-th, counted from 0; 64: there is none. */
static inline uint32_t nth_of(uint64_t bits, uint64_t n) {
    while (n >>= 1) bits &= bits - 1;
    return bits ? (uint32_t)__builtin_ctzll(bits) : 64;
}

static inline uint64_t lowest_of(uint64_t v, uint32_t n) {
    return n < 64 ? v & ((UINT64_C(1) << n) - 1) : v;
}

static inline uint32_t stops_of(const uint8_t *p) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < FP_JFR_BRIEF / 8; i++)
        found |= (uint32_t)((fp_jfr_stops(fp_u64(p + 8 * i)) >> 7) * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
    return found;
}

#if defined(__x86_64__) && defined(__GNUC__)
FP_JFR_BMI2 static inline uint32_t nth_bmi2(uint64_t bits, uint64_t n) {
    return (uint32_t)_tzcnt_u64(_pdep_u64(n, bits));
}

FP_JFR_BMI2 static inline uint64_t lowest_bmi2(uint64_t v, uint32_t n) {
    return _bzhi_u64(v, n);
}

static inline uint32_t stops_sse2(const uint8_t *p) {
    const __m128i low = _mm_loadu_si128((const __m128i *)p), high = _mm_loadu_si128((const __m128i *)(p + 16));
    return ~((uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16);
}
#endif

/* ---- rows of the batch ---- */

/* Writes the sums of an entry to its row. */
static void write_sums(struct fp_jfr_reader *r, struct fp_jfr_summed *one, const struct fp_batch *out) {
    const uint32_t more = one->count - one->n_written;
    if (one->of >> 32 != r->generation || !more) return;
    int64_t *count = out->values + (size_t)r->column[one->metric] * out->cap + one->row;
    *count = (int64_t)one->count;
    if (r->has_value[one->metric]) count[out->cap] = one->value;
    out->count[one->row] = one->count;
    one->n_written = one->count;
    r->counts.rows += more;
    r->counts.no_stack += one->no_stack * more;
    r->counts.truncated += one->truncated * more;
}

void fp_jfr_remember(struct fp_jfr_reader *r, const struct fp_jfr_ready *one, uint32_t metric, int64_t value,
                     const struct fp_batch *out) {
    struct fp_jfr_summed *to = one->summed;
    if (out->n >= FP_JFR_MOST_ROWS) return;
    write_sums(r, &to[1], out);
    to[1] = to[0];
    *to = (struct fp_jfr_summed){.low = one->low,
                                 .high = one->high,
                                 .of = fp_jfr_rows_of(r, one->type),
                                 .count = 1,
                                 .n_written = 1,
                                 .value = value,
                                 .row = out->n & (FP_JFR_MOST_ROWS - 1),
                                 .metric = metric & 31,
                                 .no_stack = one->stack->known == 1,
                                 .truncated = one->stack->also != 0};
}

/* 0 if this is the row of events with these keys.  No branches: the processor would mispredict them. */
static inline uint64_t differs(const struct fp_jfr_summed *one, uint64_t low, uint64_t high, uint64_t of) {
    return (one->low ^ low) | (one->high ^ high) | (one->of ^ of);
}

/* Adds samples from p on to rows of the batch, up to the first sample without a row.  *ready gets the place where its
 * row is to be entered.  Returns where it stopped. */
FP_INLINE const uint8_t *add_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                                const uint8_t *end, const uint8_t *readable, struct fp_jfr_ready *ready) {
    const uint64_t start_ticks = (uint64_t)r->start_ticks, sure_ticks = r->sure_ticks;
    const uint8_t *stop = fp_jfr_short_end(p, end, readable);
    uint64_t first = r->first_ticks, last = r->last_ticks;
    uint32_t n = 0, is_missing = 0;
    struct fp_jfr_last of = {.shape = &fp_jfr_no_shape};
    struct fp_jfr_short event;
    for (; p < stop && fp_jfr_short_at(with, r, p, end, &of, &event); p += event.size) {
        const uint64_t ticks = fp_jfr_ticks_of(with, &event);
        const uint32_t from = with.nth(event.begins, of.shape->keys.from);
        const uint32_t bits = 8 * (with.nth(event.begins, of.shape->keys.to) - from);
        if (FP_UNLIKELY(ticks - start_ticks >= sure_ticks || bits > 128)) break;
        const uint64_t low = with.lowest(fp_u64(event.body + from), bits), rows = fp_jfr_rows_of(r, of.type);
        const uint64_t high = with.lowest(fp_u64(event.body + from + 8), bits > 64 ? bits - 64 : 0);
        struct fp_jfr_summed *place = fp_jfr_summed_at(r, low, high), *one = place;
        const uint64_t is_other = differs(one, low, high, rows);
        is_missing = (is_other != 0) & (differs(one + 1, low, high, rows) != 0);
        one += is_other != 0;
        int64_t more = of.shape->has_value ? fp_jfr_value_of(with, &event, of.shape) : r->period[one->metric];
        if (FP_UNLIKELY(is_missing | (one->count == UINT32_MAX) | __builtin_add_overflow(one->value, more, &more))) {
            *ready = (struct fp_jfr_ready){.summed = place, .low = low, .high = high};
            break;
        }
        one->value = more;
        one->count++;
        n++;
        first = ticks < first ? ticks : first;
        last = ticks > last ? ticks : last;
    }
    r->first_ticks = first;
    r->last_ticks = last;
    r->n_found += n;
    r->n_tried += n + is_missing;
    return p;
}

/* ---- samples that wait ---- */

enum { THREAD, STACK, STATE, CLASS };

/* The context of an event that can wait.  NULL if it is not known. */
FP_INLINE const struct fp_jfr_context *context_of(const struct fp_jfr_with with, const struct fp_jfr_reader *r,
                                                  const struct fp_jfr_last *of, const struct fp_jfr_short *event) {
    uint64_t keys[FP_JFR_KEYS];
    for (uint32_t i = 0; i < FP_JFR_KEYS; i++) keys[i] = fp_jfr_field_of(with, event, of->shape->key[i]);
    const struct fp_jfr_context *one = fp_jfr_context_at(r, of->type, keys[THREAD], keys[STATE], keys[CLASS]);
    const int is_known = fp_jfr_is_context(r, one, of->type, keys[THREAD], keys[STATE], keys[CLASS]);
    return is_known && one->held_as ? one : NULL;
}

/* The same by the bytes of its keys but the stack's, if they are in 8 bytes; the stack's key.
 *
 *   07 | ac 02 | 05      thread 7, stack 300, state 5: the bytes are 07 05
 */
FP_INLINE struct fp_jfr_brief brief_of(const struct fp_jfr_with with, const struct fp_jfr_reader *r,
                                       const struct fp_jfr_last *of, const struct fp_jfr_short *event,
                                       uint64_t *stack) {
    const struct fp_jfr_bits keys = of->shape->keys, key = of->shape->key[STACK];
    const uint32_t from = with.nth(event->begins, keys.from), n = with.nth(event->begins, keys.to) - from;
    const uint32_t begin = with.nth(event->begins, key.from) - from, end = with.nth(event->begins, key.to) - from;
    const uint64_t bytes = with.lowest(fp_u64(event->body + from), 8 * n);
    *stack = fp_jfr_between(with, event->body + from, begin, end);
    struct fp_jfr_brief found = {0};
    if (FP_LIKELY(n < 8)) {
        const uint64_t rest = with.lowest(bytes, 8 * begin) | bytes >> 8 * end << 8 * begin;
        struct fp_jfr_brief *one = &r->briefs[fp_mix(rest, of->type) % FP_JFR_BRIEFS];
        if (FP_LIKELY(one->rest == rest && one->of == of->rows)) return *one;
        const struct fp_jfr_context *context = context_of(with, r, of, event);
        if (context) *one = (struct fp_jfr_brief){rest, of->rows, context->held_as, context->metric};
        return context ? *one : found;
    }
    const struct fp_jfr_context *context = context_of(with, r, of, event);
    if (context) found = (struct fp_jfr_brief){.held_as = context->held_as, .metric = context->metric};
    return found;
}

/* An event that was decoded, and is not in the log yet. */
struct fp_jfr_pending {
    const uint8_t *p;
    struct fp_jfr_constant *stack;
    uint64_t key; /* of the stack */
    uint32_t held_as, stack_type;
    int64_t value;
};
enum { AT_ONCE = FP_JFR_HELD_ROOM };

/* Decodes up to AT_ONCE events from p on that can wait, and prefetches their stacks.  Their number; *next: where it
 * stopped. */
FP_INLINE uint32_t pending_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                              const uint8_t *end, const uint8_t *stop, struct fp_jfr_pending *found,
                              const uint8_t **next) {
    const uint64_t start_ticks = (uint64_t)r->start_ticks, sure_ticks = r->sure_ticks;
    uint64_t first = r->first_ticks, last = r->last_ticks, key;
    uint32_t n = 0;
    struct fp_jfr_last of = {.shape = &fp_jfr_no_shape};
    struct fp_jfr_short event;
    for (; n < AT_ONCE && p < stop && fp_jfr_short_at(with, r, p, end, &of, &event); p += event.size) {
        const uint64_t ticks = fp_jfr_ticks_of(with, &event);
        if (FP_UNLIKELY(ticks - start_ticks >= sure_ticks)) break;
        const struct fp_jfr_brief context = brief_of(with, r, &of, &event, &key);
        const struct fp_jfr_pool *stacks = context.held_as ? of.stacks : NULL;
        if (FP_UNLIKELY(!stacks || key - stacks->first >= stacks->n_dense)) break;
        struct fp_jfr_constant *stack = &stacks->constants[key - stacks->first];
        __builtin_prefetch(stack);
        const int64_t value = of.shape->has_value ? fp_jfr_value_of(with, &event, of.shape) : r->period[context.metric];
        found[n++] = (struct fp_jfr_pending){p, stack, key, context.held_as, of.stack_type, value};
        first = ticks < first ? ticks : first;
        last = ticks > last ? ticks : last;
    }
    r->first_ticks = first;
    r->last_ticks = last;
    *next = p;
    return n;
}

/* Prefetches stacks that are not known yet, and the bytes of those that no earlier chunk had. */
static void prefetch_stacks(const struct fp_jfr_reader *r, const struct fp_jfr_pending *found, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (FP_UNLIKELY(!found[i].stack->known) && found[i].stack->at)
            __builtin_prefetch(&r->known[found[i].stack->at - 1]);
    for (uint32_t i = 0; i < n; i++) {
        if (FP_LIKELY(found[i].stack->known) || !found[i].stack->at || r->known[found[i].stack->at - 1].epoch) continue;
        const uint8_t *p = r->stacks.bytes + r->stacks.start[found[i].stack->at - 1];
        for (int k = 0; k < 4; k++) __builtin_prefetch(p + 64 * k);
    }
}

/* Looks up a stack for the first time.  1, or 0: it is no constant of the chunk, or memory ran out. */
static int find_stack(struct fp_jfr_reader *r, const struct fp_jfr_pending *one) {
    const struct fp_jfr_slot slot = {.kind = FP_JFR_IS_KEY, .type = one->stack_type, .n = one->key};
    int cut;
    return one->stack->at && fp_jfr_stack(r, &slot, NULL, &cut) != FP_NO_ID && one->stack->known;
}

/* Enters events in the log, up to the first whose stack is not in the chunk.  Their number. */
static uint32_t enter(struct fp_jfr_reader *r, const struct fp_jfr_pending *found, uint32_t n) {
    struct fp_jfr_held *h = r->held;
    uint32_t i = 0;
    prefetch_stacks(r, found, n);
    for (; i < n; i++) {
        const struct fp_jfr_constant *stack = found[i].stack;
        if (FP_UNLIKELY(!stack->known) && !find_stack(r, &found[i])) break;
        r->counts.no_stack += stack->known == 1;
        r->counts.truncated += stack->also;
        fp_jfr_enter(h, (uint64_t)(stack->known - 1) << 32 | found[i].held_as, found[i].value);
    }
    return i;
}

/* Lets samples wait from p on, up to the first that cannot, or until the log is full.  Returns where it stopped.
 *
 * Stacks are far apart, so a group of events waits for the memory of all of them at the same time. */
FP_INLINE const uint8_t *hold_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                                 const uint8_t *end, const uint8_t *readable) {
    struct fp_jfr_pending found[AT_ONCE];
    const struct fp_jfr_held *h = r->held;
    if (!h || h->is_due || (!h->n_log && !h->n)) return p;
    const uint8_t *stop = fp_jfr_short_end(p, end, readable), *next;
    while (!fp_jfr_is_full(h)) {
        const uint32_t n = pending_by(with, r, p, end, stop, found, &next), n_entered = enter(r, found, n);
        if (n_entered < n) return found[n_entered].p;
        p = next;
        if (n < AT_ONCE) break;
    }
    return p;
}

/* ---- calls ---- */

static const uint8_t *add_of(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                             struct fp_jfr_ready *ready) {
    const struct fp_jfr_with with = {fp_jfr_join, stops_of, nth_of, lowest_of};
    return add_by(with, r, p, end, readable, ready);
}

static const uint8_t *hold_of(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable) {
    const struct fp_jfr_with with = {fp_jfr_join, stops_of, nth_of, lowest_of};
    return hold_by(with, r, p, end, readable);
}

#if defined(__x86_64__) && defined(__GNUC__)
FP_JFR_BMI2 static const uint8_t *add_bmi2(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                           const uint8_t *readable, struct fp_jfr_ready *ready) {
    const struct fp_jfr_with with = {fp_jfr_join_bmi2, stops_sse2, nth_bmi2, lowest_bmi2};
    return add_by(with, r, p, end, readable, ready);
}

FP_JFR_BMI2 static const uint8_t *hold_bmi2(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                            const uint8_t *readable) {
    const struct fp_jfr_with with = {fp_jfr_join_bmi2, stops_sse2, nth_bmi2, lowest_bmi2};
    return hold_by(with, r, p, end, readable);
}
#define HAS_BMI2(r) (!(r)->is_portable && fp_cpu() & FP_CPU_BMI)
#else
#define HAS_BMI2(r) 0
#define add_bmi2 add_of
#define hold_bmi2 hold_of
#endif

const uint8_t *fp_jfr_add(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                          struct fp_jfr_ready *ready) {
    return HAS_BMI2(r) ? add_bmi2(r, p, end, readable, ready) : add_of(r, p, end, readable, ready);
}

const uint8_t *fp_jfr_hold_many(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                const uint8_t *readable) {
    return HAS_BMI2(r) ? hold_bmi2(r, p, end, readable) : hold_of(r, p, end, readable);
}

/* ---- batches ---- */

void fp_jfr_begin_sums(struct fp_jfr_reader *r) {
    r->generation++;
    r->first_ticks = UINT64_MAX;
    r->last_ticks = 0;
    r->sure_ticks = 0;
    for (uint64_t n = INT64_MAX / 2; n && !r->sure_ticks && r->start_ticks >= 0 && r->start_ns > 0; n /= 2)
        if (n < (uint64_t)(INT64_MAX - r->start_ticks) && fp_jfr_time(r, (uint64_t)r->start_ticks + n))
            r->sure_ticks = n;
}

void fp_jfr_end_sums(struct fp_jfr_reader *r, const struct fp_batch *out) {
    if (r->first_ticks > r->last_ticks) return;
    if (out->n)
        for (uint32_t i = 0; i < FP_JFR_SUMMED; i++) write_sums(r, &r->summed[i], out);
    const uint64_t first = fp_jfr_time(r, r->first_ticks), last = fp_jfr_time(r, r->last_ticks);
    if (first < r->counts.first_time) r->counts.first_time = first;
    if (last > r->counts.last_time) r->counts.last_time = last;
}
