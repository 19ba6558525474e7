/* Samples that wait to be added up.
 *
 * If few samples are equal to one in the same batch, most would become rows of their own, in random order, and an
 * operator would look each of them up again.  Instead they are added up here, over all chunks, and become rows sorted
 * by stack and context:
 *
 *   log     stack 7 of thread 1 | 3 of 2 | 7 of 2 | 7 of 1
 *   sums    3 of 1: 4 | 7 of 1: 2                becomes      3 of 1: 4 | 3 of 2: 1 | 7 of 1: 4 | 7 of 2: 1
 *
 * A full log is sorted and merged into the sums.  All memory is used from one end to the other: a table of 300,000
 * sums would wait for memory at each sample.  Sorting waits, too, so if all values are equal, as periods are, it moves
 * only keys.  When there are too many sums, they become rows, so memory is limited.
 */
#include "jfr/pending.h"

enum { LEAST_LOG = 1 << 12, MOST_LOG = 1 << 18, MOST_SUMS = 1 << 19, FEW = 1 << 12 };

/* Stacks that are added while samples wait, as these keep the model from dropping any. */
enum { MOST_STACKS = 1 << 16 };

static void free_log(struct fp_jfr_pending_list *log, uint32_t cap) {
    fp_release(log->keys, log->keys ? cap * sizeof *log->keys : 0);
    fp_release(log->values, log->values ? cap * sizeof *log->values : 0);
    *log = (struct fp_jfr_pending_list){0};
}

static void new_log(struct fp_jfr_pending_list *log, uint32_t cap) {
    log->keys = fp_have(fp_grow(NULL, 0, cap * sizeof *log->keys));
    log->values = fp_have(fp_grow(NULL, 0, cap * sizeof *log->values));
}

/* Replaces the log, which is empty, by one of this size. */
static void make_log(struct fp_jfr_pending *h, uint32_t cap) {
    free_log(&h->log, h->cap_log);
    free_log(&h->sorted, h->cap_log);
    h->cap_log = cap;
    new_log(&h->log, cap);
    new_log(&h->sorted, cap);
}

static void free_pending(struct fp_jfr_pending *h) {
    free_log(&h->log, h->cap_log);
    free_log(&h->sorted, h->cap_log);
    fp_release(h->sums, h->cap_sums * sizeof *h->sums);
    fp_release(h->other, h->cap_other * sizeof *h->other);
    fp_table_clear(&h->contexts);
    free(h);
}

static struct fp_jfr_pending *pending_of(struct fp_jfr_reader *r) {
    if (FP_LIKELY(r->sums.pending != NULL)) return r->sums.pending;
    struct fp_jfr_pending *h = r->sums.pending = fp_have(calloc(1, sizeof *h));
    fp_table_init(&h->contexts, 3);
    make_log(h, LEAST_LOG);
    return h;
}

void fp_jfr_free_pending(struct fp_jfr_reader *r) {
    if (r->sums.pending) free_pending(r->sums.pending);
    r->sums.pending = NULL;
}

uint64_t fp_jfr_pending_key(struct fp_jfr_reader *r, struct fp_jfr_context *context, uint32_t stack) {
    struct fp_jfr_pending *h = pending_of(r);
    if (FP_UNLIKELY(!context->pending_as)) {
        const uint32_t words[] = {context->label, context->thread, context->metric};
        context->pending_as = fp_table_intern(&h->contexts, words);
    }
    h->is_due |= (h->n_log || h->n) && r->model->stacks.n - h->n_stacks > MOST_STACKS;
    return (uint64_t)stack << 32 | context->pending_as;
}

int fp_jfr_add_pending(struct fp_jfr_reader *r, uint64_t key, uint64_t ticks, int64_t value) {
    struct fp_jfr_pending *h = r->sums.pending;
    if (h->is_due || h->n_log == h->cap_log || ticks - (uint64_t)r->chunk.start_ticks >= r->sums.sure_ticks) return 0;
    if (!h->n_log && !h->n) {
        h->time = fp_jfr_time(r, ticks);
        h->n_stacks = r->model->stacks.n;
        r->model->n_waiting++;
    }
    fp_jfr_enter(h, key, value);
    if (ticks < r->sums.first_ticks) r->sums.first_ticks = ticks;
    if (ticks > r->sums.last_ticks) r->sums.last_ticks = ticks;
    return 1;
}

/* ---- adding up ---- */

/* Keys are sorted without the unused bits between stack and context, in 32 bits if they fit, by digits of equal width:
 *
 *   stacks up to 19 bits, contexts up to 7      stack << 7 | context, in three digits of 9 bits
 */
enum { DIGITS = 6, SHORT_DIGITS = 3, DIGIT = 11 };

static unsigned width_of(uint32_t bits) {
    return bits ? 32 - (unsigned)__builtin_clz(bits) : 0;
}

FP_INLINE uint64_t packed_at(const void *keys, uint32_t i, int is_short) {
    return is_short ? ((const uint32_t *)keys)[i] : ((const uint64_t *)keys)[i];
}

FP_INLINE void set_packed(void *keys, uint32_t i, uint64_t key, int is_short) {
    if (is_short)
        ((uint32_t *)keys)[i] = (uint32_t)key;
    else
        ((uint64_t *)keys)[i] = key;
}

static uint64_t unpacked(uint64_t key, unsigned low) {
    return key >> low << 32 | (key & ((UINT64_C(1) << low) - 1));
}

/* Sorts by a digit of the keys; equal ones keep their order.  `to`: the number of keys with each smaller digit. */
FP_INLINE void sort_by(struct fp_jfr_pending *h, unsigned shift, uint64_t mask, uint32_t *to, int is_short) {
    const struct fp_jfr_pending_list from = h->log, sorted = h->sorted;
    const uint32_t n = h->n_log;
    const int differ = h->differs != 0; /* else all have the first value */
    sorted.values[0] = from.values[0];
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t key = packed_at(from.keys, i, is_short);
        const uint32_t at = to[key >> shift & mask]++;
        set_packed(sorted.keys, at, key, is_short);
        if (differ) sorted.values[at] = from.values[i];
    }
    h->log = sorted;
    h->sorted = from;
}

/* Sorts the log by key.  `low`: bits of a context; `n`: of a key; `is_short`: packed keys have 32 bits. */
FP_INLINE void sort(struct fp_jfr_pending *h, unsigned low, unsigned n, int is_short) {
    const unsigned digits = is_short ? SHORT_DIGITS : DIGITS, digit = (n + digits - 1) / digits;
    uint32_t starts[DIGITS][1 << DIGIT];
    const uint64_t mask = (UINT64_C(1) << digit) - 1;
    uint64_t *keys = h->log.keys;
    memset(starts, 0, digits * sizeof *starts);
    for (uint32_t i = 0, n_log = h->n_log; i < n_log; i++) {
        uint64_t key = keys[i] >> 32 << low | (uint32_t)keys[i];
        set_packed(h->sorted.keys, i, key, is_short);
        for (unsigned k = 0; k < digits; k++, key >>= digit) starts[k][key & mask]++;
    }
    h->log.keys = h->sorted.keys;
    h->sorted.keys = keys;
    for (unsigned i = 0; i < digits; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k <= mask; k++) {
            const uint32_t here = starts[i][k];
            starts[i][k] = at;
            at += here;
        }
        sort_by(h, i * digit, mask, starts[i], is_short);
    }
}

/* Merges the log, which was sorted, into the sums, and sets `are_few`.  A sum that would overflow begins another one
 * with the same key. */
FP_INLINE void merge(struct fp_jfr_pending *h, unsigned low, int is_short) {
    const size_t most = (size_t)h->n + h->n_log;
    if (most > h->cap_other) {
        fp_release(h->other, h->cap_other * sizeof *h->other);
        h->other = NULL;
        h->cap_other = 0;
        h->other = fp_have(fp_grow(NULL, 0, 2 * most * sizeof *h->other));
        h->cap_other = 2 * most; /* what is not used is not resident */
    }
    const struct fp_jfr_pending_sum *at = h->sums, *end = at + h->n;
    const void *keys = h->log.keys;
    const int64_t *values = h->log.values;
    const uint32_t n = h->n_log, step = h->differs != 0;
    struct fp_jfr_pending_sum *to = h->other;
    uint32_t n_keys = 0, next;
    for (uint32_t i = 0; i < n; i = next) {
        const uint64_t key = packed_at(keys, i, is_short);
        struct fp_jfr_pending_sum sum = {.key = unpacked(key, low)};
        int64_t value;
        for (; at < end && at->key < sum.key; at++) *to++ = *at;
        if (at < end && at->key == sum.key) sum = *at++;
        for (next = i + 1; next < n && packed_at(keys, next, is_short) == key;) next++;
        const uint32_t equal = next - i;
        if (!step && !__builtin_mul_overflow(*values, equal, &value) &&
            !__builtin_add_overflow(sum.value, value, &value)) {
            sum.count += equal;
            sum.value = value;
            i = next;
        }
        for (; i < next; i++) {
            const int64_t one = values[i * step];
            if (FP_UNLIKELY(__builtin_add_overflow(sum.value, one, &value))) {
                *to++ = sum;
                sum.count = 0;
                value = one;
            }
            sum.count++;
            sum.value = value;
        }
        *to++ = sum;
        n_keys++;
    }
    while (at < end) *to++ = *at++;
    h->are_few = n_keys < n / 4 && n_keys < FEW;
    h->n = (uint32_t)(to - h->other);
    const struct fp_jfr_pending had = *h;
    h->sums = had.other;
    h->cap_sums = had.cap_other;
    h->other = had.sums;
    h->cap_other = had.cap_sums;
}

FP_INLINE void add_up(struct fp_jfr_pending *h, unsigned low, unsigned n, int is_short) {
    sort(h, low, n, is_short);
    merge(h, low, is_short);
}

void fp_jfr_add_up(struct fp_jfr_pending *h) {
    if (!h->n_log) return;
    const unsigned low = width_of((uint32_t)h->bits), n = low + width_of((uint32_t)(h->bits >> 32));
    if (n <= 32)
        add_up(h, low, n, 1);
    else
        add_up(h, low, n, 0);
    fp_jfr_empty_pending_list(h);
    h->is_due |= h->n > MOST_SUMS;
    if (h->cap_log < MOST_LOG && h->n > h->cap_log / 2) make_log(h, 2 * h->cap_log);
}

void fp_jfr_empty_pending(struct fp_jfr_reader *r) {
    struct fp_jfr_pending *h = r->sums.pending;
    h->n = h->next = 0;
    fp_jfr_empty_pending_list(h);
    h->is_due = 0;
    r->model->n_waiting--;
}

void fp_jfr_abandon(struct fp_jfr_reader *r) {
    if (r->sums.pending && (r->sums.pending->n || r->sums.pending->n_log)) fp_jfr_empty_pending(r);
}
