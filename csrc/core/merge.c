#include "core/merge.h"

struct fp_merge *fp_merge_new(uint32_t n_runs, uint32_t width) {
    if (width < FP_MERGE_KEY) return NULL;
    struct fp_merge *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->width = width;
    m->n_runs = n_runs;
    m->head = calloc(width, sizeof *m->head);
    m->sum = calloc(width, sizeof *m->sum);
    m->beyond = calloc(width, sizeof *m->beyond);
    m->runs = calloc(n_runs ? n_runs : 1, sizeof *m->runs);
    m->tree = calloc(n_runs ? n_runs : 1, sizeof *m->tree);
    m->to_refill = FP_MERGE_NONE;
    for (uint32_t i = 0; m->runs && i < n_runs; i++) m->runs[i].width = width;
    if (!m->head || !m->sum || !m->beyond || !m->runs || !m->tree) {
        fp_merge_free(m);
        return NULL;
    }
    return m;
}

void fp_merge_free(struct fp_merge *m) {
    if (!m) return;
    FP_FREE(m->runs, m->tree, m->head, m->sum, m->beyond, m);
}

static inline int used_up(const struct fp_run *run) {
    return run->n - run->pos < run->width;
}

/* Sorts after the heads of all runs that have a record. */
#define ENDED ((uint64_t)1 << 32)

static struct fp_merge_head head_of(const struct fp_merge *m, uint32_t run) {
    const struct fp_run *r = &m->runs[run];
    if (used_up(r)) return (struct fp_merge_head){{UINT64_MAX, UINT64_MAX}, ENDED + run};
    return (struct fp_merge_head){{r->p[r->pos], r->p[r->pos + 1]}, (uint64_t)run + 1};
}

/* Replays the tournament from a run whose head was the least or is new; the least head is in tree[0] afterwards.  The
 * outcome of a comparison is unpredictable, so nothing branches on it. */
static void play(struct fp_merge *m, uint32_t run) {
    struct fp_merge_head w = head_of(m, run);
    for (uint32_t at = (m->n_runs + run) / 2; at; at /= 2) {
        struct fp_merge_head *l = &m->tree[at];
        const uint64_t swap =
            -(uint64_t)((l->key[0] < w.key[0]) |
                        ((l->key[0] == w.key[0]) &
                         ((l->key[1] < w.key[1]) | ((l->key[1] == w.key[1]) & (l->order < w.order)))));
        const uint64_t k0 = (l->key[0] ^ w.key[0]) & swap, k1 = (l->key[1] ^ w.key[1]) & swap;
        const uint64_t order = (l->order ^ w.order) & swap;
        *l = (struct fp_merge_head){{l->key[0] ^ k0, l->key[1] ^ k1}, l->order ^ order};
        w = (struct fp_merge_head){{w.key[0] ^ k0, w.key[1] ^ k1}, w.order ^ order};
    }
    m->tree[0] = w;
}

/* Adds the counters of a record to the sums. */
static void add(struct fp_merge *m, const uint64_t *record, uint32_t width) {
    uint64_t *const sum = m->sum;
    for (uint32_t i = FP_MERGE_KEY; i < width; i++)
        if (FP_UNLIKELY(__builtin_add_overflow(sum[i], record[i], &sum[i]))) m->beyond[i]++;
}

static void begin(struct fp_merge *m, const uint64_t *record, uint32_t width) {
    memcpy(m->sum, record, width * sizeof *record);
    memset(m->sum + width, 0, (m->width - width) * sizeof *m->sum);
}

/* Moves as much of a sum as fits to the head: beyond * 2^64 + sum - (2^64 - 1) is left.  Returns whether that is more
 * than 0. */
static int move(struct fp_merge *m, uint32_t i) {
    const uint64_t sum = m->sum[i], is_beyond = m->beyond[i] != 0;
    m->head[i] = is_beyond ? UINT64_MAX : sum;
    m->sum[i] = is_beyond ? sum + 1 : 0;
    if (is_beyond && sum != UINT64_MAX) m->beyond[i]--;
    return m->sum[i] || m->beyond[i];
}

/* Returns the sums of a key, or a remainder of them.  FP_FULL or FP_E_OVERFLOW. */
static int give(struct fp_merge *m, struct fp_err *err) {
    uint32_t i = FP_MERGE_KEY;
    while (i < m->width && !m->beyond[i]) i++;
    m->has_sum = m->has_rest = 0;
    if (i == m->width) {
        uint64_t *swap = m->head;
        m->head = m->sum;
        m->sum = swap;
        return FP_FULL;
    }
    if (!m->split) return fp_fail_beyond(err, "the sum of a counter", i - FP_MERGE_KEY, "2^64 - 1");
    memcpy(m->head, m->sum, FP_MERGE_KEY * sizeof *m->head);
    for (i = FP_MERGE_KEY; i < m->width; i++) m->has_rest |= move(m, i);
    return FP_FULL;
}

/* Prefetch distance in words: the windows are too many for the nearest caches and for the hardware prefetcher. */
enum { AHEAD = 20 };

int fp_merge_next(struct fp_merge *m, struct fp_err *err) {
    if (m->has_rest) return give(m, err);
    if (m->to_refill != FP_MERGE_NONE) {
        const struct fp_run *run = &m->runs[m->to_refill];
        if (used_up(run) && !run->eof) return FP_MORE;
        play(m, m->to_refill);
        m->to_refill = FP_MERGE_NONE;
    }
    for (; m->n_started < m->n_runs; m->n_started++) {
        const struct fp_run *run = &m->runs[m->n_started];
        if (used_up(run) && !run->eof) {
            m->to_refill = m->n_started++;
            return FP_MORE;
        }
        play(m, m->n_started);
    }
    if (m->n_runs == 1 && !m->has_sum) {
        struct fp_run *run = m->runs;
        const uint64_t *record = run->p + run->pos, *next = record + run->width;
        if (run->width == m->width && run->n - run->pos >= 2 * run->width &&
            (record[0] != next[0] || record[1] != next[1])) {
            memcpy(m->head, record, m->width * sizeof *record);
            run->pos += run->width;
            return FP_FULL;
        }
    }
    while (m->n_runs && m->tree[0].order < ENDED) {
        const uint32_t least = (uint32_t)m->tree[0].order - 1;
        struct fp_run *run = &m->runs[least];
        const uint64_t *record = run->p + run->pos;
        if (run->n - run->pos > AHEAD) __builtin_prefetch(record + AHEAD);
        if (m->has_sum && (m->sum[0] != record[0] || m->sum[1] != record[1])) break;
        if (m->has_sum)
            add(m, record, run->width);
        else
            begin(m, record, run->width);
        m->has_sum = 1;
        run->pos += run->width;
        if (FP_UNLIKELY(used_up(run)) && !run->eof) {
            m->to_refill = least;
            return FP_MORE;
        }
        play(m, least);
    }
    return m->has_sum ? give(m, err) : FP_DONE;
}

int fp_merge_pull(struct fp_merge *m, uint64_t *to, size_t n, size_t *got) {
    struct fp_err err; /* split sums never fail */
    int status = FP_FULL;
    m->split = 1;
    for (*got = 0; n - *got >= m->width && (status = fp_merge_next(m, &err)) == FP_FULL; *got += m->width)
        memcpy(to + *got, m->head, m->width * sizeof *to);
    return status;
}
