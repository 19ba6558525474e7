/* Adds up usual events, which differ from an earlier one in time and value only. */
#include "jfr/pending.h"
#include "jfr/stack_memo.h"
#include "jfr/fast_fields.h"
#include "jfr/sums.h"

/* ---- instructions ---- */

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
FP_JFR_BMI2 static inline uint64_t lowest_bmi2(uint64_t v, uint32_t n) {
    return _bzhi_u64(v, n);
}

static inline uint32_t stops_sse2(const uint8_t *p) {
    const __m128i low = _mm_loadu_si128((const __m128i *)p), high = _mm_loadu_si128((const __m128i *)(p + 16));
    return ~((uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16);
}
#endif

/* ---- rows of the batch ---- */

void fp_jfr_new_sums(struct fp_jfr_reader *r) {
    enum { LINE = 64 };
    r->sums.memory = fp_have(calloc(FP_JFR_SUMMED + LINE / sizeof *r->sums.rows, sizeof *r->sums.rows));
    r->sums.rows = (struct fp_jfr_summed *)(((uintptr_t)r->sums.memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
}

/* Writes the sums of an entry to its row. */
static void write_sums(struct fp_jfr_reader *r, const struct fp_jfr_summed *one, const struct fp_batch *out) {
    if (!one->high || one->count == out->count[one->row]) return;
    const uint64_t more = one->count - out->count[one->row];
    int64_t *count = out->values + (size_t)r->column[one->metric] * out->cap + one->row;
    *count = (int64_t)one->count;
    if (r->has_value[one->metric]) count[out->cap] = one->value;
    out->count[one->row] = one->count;
    r->counts.rows += more;
    r->counts.no_stack += one->no_stack * more;
    r->counts.truncated += one->truncated * more;
}

void fp_jfr_write_sums(struct fp_jfr_reader *r, const struct fp_batch *out) {
    for (uint32_t i = 0; r->sums.is_summing && i < FP_JFR_SUMMED; i++) write_sums(r, &r->sums.rows[i], out);
}

void fp_jfr_remember(struct fp_jfr_reader *r, const struct fp_jfr_ready *one, uint32_t metric, int64_t value,
                     const struct fp_batch *out) {
    struct fp_jfr_summed *to = one->summed;
    if (out->n >= FP_JFR_MOST_ROWS) return;
    write_sums(r, &to[1], out);
    to[1] = to[0];
    *to = (struct fp_jfr_summed){.low = one->low,
                                 .high = one->high,
                                 .count = 1,
                                 .value = value,
                                 .row = out->n & (FP_JFR_MOST_ROWS - 1),
                                 .metric = metric & 31,
                                 .no_stack = one->stack->known == 1,
                                 .truncated = one->stack->also & 1};
    r->sums.is_summing = 1;
}

/* 0 if this is the row of events with these keys.  No branches: the processor would mispredict them. */
static inline uint64_t differs(const struct fp_jfr_summed *one, uint64_t low, uint64_t high) {
    return (one->low ^ low) | (one->high ^ high);
}

/* Adds samples from p on to rows of the batch, up to the first sample without a row.  *ready gets the place where its
 * row is to be entered.  Returns where it stopped. */
FP_INLINE const uint8_t *add_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                                const uint8_t *end, const uint8_t *readable, struct fp_jfr_ready *ready) {
    const uint64_t start_ticks = (uint64_t)r->chunk.start_ticks, sure_ticks = r->sums.sure_ticks;
    const uint8_t *stop = fp_jfr_short_end(p, end, readable);
    uint64_t first = r->sums.first_ticks, last = r->sums.last_ticks;
    uint32_t n = 0, is_missing = 0;
    struct fp_jfr_last of = fp_jfr_no_type;
    struct fp_jfr_short event;
    for (; p < stop && fp_jfr_short_at(with, r, p, end, &of, &event); p += event.size) {
        const uint64_t ticks = fp_jfr_ticks_of(with, &event);
        if (FP_UNLIKELY(ticks - start_ticks >= sure_ticks)) break;
        const uint8_t *keys = event.body + event.at->keys;
        const uint64_t low = with.lowest(fp_u64(keys), event.at->n_low);
        const uint64_t high = with.lowest(fp_u64(keys + 8), event.at->n_high) | of.high;
        struct fp_jfr_summed *place = fp_jfr_summed_at(r, low, high), *one = place;
        const uint64_t is_other = differs(one, low, high);
        is_missing = (is_other != 0) & (differs(one + 1, low, high) != 0);
        one += is_other != 0;
        int64_t more = of.shape->has_value ? fp_jfr_value_of(with, &event, of.shape) : r->chunk.period[one->metric];
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
    r->sums.first_ticks = first;
    r->sums.last_ticks = last;
    r->sums.n_found += n;
    r->sums.n_tried += n + is_missing;
    return p;
}

/* ---- samples that wait ---- */

enum { THREAD, STACK, STATE, CLASS };

/* The number in a key of an event; 0: it has none. */
static uint64_t key_of(const struct fp_jfr_short *event, struct fp_jfr_varints key) {
    const uint8_t *p = event->body;
    uint64_t v = 0;
    for (uint32_t i = 0; i < key.to; i++) p = fp_jfr_varint_of_9(p, &v);
    return key.from < key.to ? v : 0;
}

/* The context of an event that can wait.  NULL if it is not known. */
static const struct fp_jfr_context *context_of(const struct fp_jfr_reader *r, const struct fp_jfr_last *of,
                                               const struct fp_jfr_short *event) {
    uint64_t keys[FP_JFR_KEYS];
    for (uint32_t i = 0; i < FP_JFR_KEYS; i++) keys[i] = key_of(event, of->shape->key[i]);
    const struct fp_jfr_context *one = fp_jfr_context_at(r, of->type, keys[THREAD], keys[STATE], keys[CLASS]);
    const int is_known = fp_jfr_is_context(r, one, of->type, keys[THREAD], keys[STATE], keys[CLASS]);
    return is_known && one->pending_as ? one : NULL;
}

/* The same by the bytes of its keys but the stack's, if they are in 8 bytes.
 *
 *   07 | ac 02 | 05      thread 7, stack 300, state 5: the bytes are 07 05
 */
FP_INLINE struct fp_jfr_pending_context brief_of(const struct fp_jfr_with with, const struct fp_jfr_reader *r,
                                                 const struct fp_jfr_last *of, const struct fp_jfr_short *event) {
    const struct fp_jfr_layout *at = event->at;
    struct fp_jfr_pending_context found = {0}, *place = &found;
    if (FP_LIKELY(at->n_low < 64)) {
        const uint64_t bytes = with.lowest(fp_u64(event->body + at->keys), at->n_low);
        const uint32_t begin = 8u * (at->stack - at->keys), end = begin + at->n_stack;
        const uint64_t rest = with.lowest(bytes, begin) | bytes >> end << begin;
        place = fp_jfr_pending_context_at(r, rest ^ of->rows);
        if (FP_LIKELY(place->rest == rest && place->of == of->rows)) return *place;
        found.rest = rest;
    }
    const struct fp_jfr_context *context = context_of(r, of, event);
    if (!context) return (struct fp_jfr_pending_context){0};
    return *place = (struct fp_jfr_pending_context){found.rest, of->rows, context->pending_as, context->metric};
}

/* An event that was decoded, and is not in the log yet. */
struct fp_jfr_decoded {
    const uint8_t *p;
    struct fp_jfr_constant *stack;
    uint64_t key; /* of the stack */
    uint32_t pending_as, stack_type;
    int64_t value;
};
enum { AT_ONCE = FP_JFR_HELD_ROOM };

/* Decodes up to AT_ONCE events from p on that can wait, and prefetches their stacks.  Their number; *next: where it
 * stopped. */
FP_INLINE uint32_t decoded_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                              const uint8_t *end, const uint8_t *stop, struct fp_jfr_decoded *found,
                              const uint8_t **next) {
    const uint64_t start_ticks = (uint64_t)r->chunk.start_ticks, sure_ticks = r->sums.sure_ticks;
    uint64_t first = r->sums.first_ticks, last = r->sums.last_ticks;
    uint32_t n = 0;
    struct fp_jfr_last of = fp_jfr_no_type;
    struct fp_jfr_short event;
    for (; n < AT_ONCE && p < stop && fp_jfr_short_at(with, r, p, end, &of, &event); p += event.size) {
        const uint64_t ticks = fp_jfr_ticks_of(with, &event);
        if (FP_UNLIKELY(ticks - start_ticks >= sure_ticks)) break;
        const struct fp_jfr_pending_context context = brief_of(with, r, &of, &event);
        const uint64_t key = fp_jfr_field_at(with, event.body + event.at->stack, event.at->n_stack);
        const struct fp_jfr_pool *stacks = context.pending_as ? of.stacks : NULL;
        if (FP_UNLIKELY(!stacks || key - stacks->first >= stacks->n_dense)) break;
        struct fp_jfr_constant *stack = &stacks->constants[key - stacks->first];
        __builtin_prefetch(stack);
        const int64_t value =
            of.shape->has_value ? fp_jfr_value_of(with, &event, of.shape) : r->chunk.period[context.metric];
        found[n++] = (struct fp_jfr_decoded){p, stack, key, context.pending_as, of.stack_type, value};
        first = ticks < first ? ticks : first;
        last = ticks > last ? ticks : last;
    }
    r->sums.first_ticks = first;
    r->sums.last_ticks = last;
    *next = p;
    return n;
}

/* Prefetches stacks that are not known yet, and the bytes of those that no earlier chunk had. */
static void prefetch_stacks(const struct fp_jfr_reader *r, const struct fp_jfr_decoded *found, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (FP_UNLIKELY(!found[i].stack->known) && found[i].stack->at)
            __builtin_prefetch(&r->stacks.known[found[i].stack->at - 1]);
    for (uint32_t i = 0; i < n; i++) {
        if (FP_LIKELY(found[i].stack->known) || !found[i].stack->at || r->stacks.known[found[i].stack->at - 1].epoch)
            continue;
        const uint8_t *p = r->stacks.texts.bytes + r->stacks.texts.start[found[i].stack->at - 1];
        for (int k = 0; k < 4; k++) __builtin_prefetch(p + 64 * k);
    }
}

/* Looks up a stack for the first time.  1, or 0: it is no constant of the chunk, or memory ran out. */
static int find_stack(struct fp_jfr_reader *r, const struct fp_jfr_decoded *one) {
    const struct fp_jfr_slot slot = {.kind = FP_JFR_IS_KEY, .type = one->stack_type, .n = one->key};
    int cut;
    return one->stack->at && fp_jfr_stack(r, &slot, NULL, &cut) != FP_NO_ID && one->stack->known;
}

/* Enters events in the log, up to the first whose stack is not in the chunk.  Their number. */
static uint32_t enter(struct fp_jfr_reader *r, const struct fp_jfr_decoded *found, uint32_t n) {
    struct fp_jfr_pending *h = r->sums.pending;
    uint32_t i = 0;
    prefetch_stacks(r, found, n);
    for (; i < n; i++) {
        const struct fp_jfr_constant *stack = found[i].stack;
        if (FP_UNLIKELY(!stack->known) && !find_stack(r, &found[i])) break;
        r->counts.no_stack += stack->known == 1;
        r->counts.truncated += stack->also;
        fp_jfr_enter(h, (uint64_t)(stack->known - 1) << 32 | found[i].pending_as, found[i].value);
    }
    return i;
}

/* Lets samples wait from p on, up to the first that cannot, or until the log is full.  Returns where it stopped.
 *
 * Stacks are far apart, so a group of events waits for the memory of all of them at the same time. */
FP_INLINE const uint8_t *hold_by(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                                 const uint8_t *end, const uint8_t *readable) {
    struct fp_jfr_decoded found[AT_ONCE];
    const struct fp_jfr_pending *h = r->sums.pending;
    if (!h || h->is_due || (!h->n_log && !h->n)) return p;
    const uint8_t *stop = fp_jfr_short_end(p, end, readable), *next;
    while (!fp_jfr_is_full(h)) {
        const uint32_t n = decoded_by(with, r, p, end, stop, found, &next), n_entered = enter(r, found, n);
        if (n_entered < n) return found[n_entered].p;
        p = next;
        if (n < AT_ONCE) break;
    }
    return p;
}

/* ---- calls ---- */

static const uint8_t *add_of(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                             struct fp_jfr_ready *ready) {
    const struct fp_jfr_with with = {fp_jfr_join, stops_of, lowest_of};
    return add_by(with, r, p, end, readable, ready);
}

static const uint8_t *hold_of(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable) {
    const struct fp_jfr_with with = {fp_jfr_join, stops_of, lowest_of};
    return hold_by(with, r, p, end, readable);
}

#if defined(__x86_64__) && defined(__GNUC__)
FP_JFR_BMI2 static const uint8_t *add_bmi2(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                           const uint8_t *readable, struct fp_jfr_ready *ready) {
    const struct fp_jfr_with with = {fp_jfr_join_bmi2, stops_sse2, lowest_bmi2};
    return add_by(with, r, p, end, readable, ready);
}

FP_JFR_BMI2 static const uint8_t *hold_bmi2(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                            const uint8_t *readable) {
    const struct fp_jfr_with with = {fp_jfr_join_bmi2, stops_sse2, lowest_bmi2};
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

const uint8_t *fp_jfr_add_pending_many(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                       const uint8_t *readable) {
    return HAS_BMI2(r) ? hold_bmi2(r, p, end, readable) : hold_of(r, p, end, readable);
}

/* ---- batches ---- */

void fp_jfr_begin_sums(struct fp_jfr_reader *r) {
    if (r->sums.is_summing) memset(r->sums.rows, 0, FP_JFR_SUMMED * sizeof *r->sums.rows);
    r->sums.is_summing = 0;
    r->sums.first_ticks = UINT64_MAX;
    r->sums.last_ticks = 0;
    r->sums.sure_ticks = 0;
    for (uint64_t n = INT64_MAX / 2; n && !r->sums.sure_ticks && r->chunk.start_ticks >= 0 && r->chunk.start_ns > 0;
         n /= 2)
        if (n < (uint64_t)(INT64_MAX - r->chunk.start_ticks) && fp_jfr_time(r, (uint64_t)r->chunk.start_ticks + n))
            r->sums.sure_ticks = n;
}

void fp_jfr_end_sums(struct fp_jfr_reader *r) {
    if (r->sums.first_ticks > r->sums.last_ticks) return;
    const uint64_t first = fp_jfr_time(r, r->sums.first_ticks), last = fp_jfr_time(r, r->sums.last_ticks);
    if (first < r->counts.first_time) r->counts.first_time = first;
    if (last > r->counts.last_time) r->counts.last_time = last;
}
