#include "core/merge.h"

#include <stdlib.h>

struct fp_merge *fp_merge_new(uint32_t n_runs, uint32_t width) {
    if (width > FP_MERGE_MAX_WIDTH || width < FP_MERGE_KEY) return NULL;
    struct fp_merge *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->width = width;
    m->n_runs = n_runs;
    m->runs = calloc(n_runs ? n_runs : 1, sizeof *m->runs);
    m->heap = calloc(n_runs ? n_runs : 1, sizeof *m->heap);
    m->hungry = FP_MERGE_NONE;
    if (!m->runs || !m->heap) {
        fp_merge_free(m);
        return NULL;
    }
    return m;
}

void fp_merge_free(struct fp_merge *m) {
    if (!m) return;
    free(m->runs);
    free(m->heap);
    free(m);
}

static inline const uint64_t *next_of(const struct fp_merge *m, uint32_t run) {
    return m->runs[run].p + m->runs[run].pos;
}

static inline int before(const uint64_t *a, const uint64_t *b) {
    return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1];
}

static void sift_down(struct fp_merge *m) {
    uint32_t at = 0, moved = m->heap[0];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= m->n_heap) break;
        if (child + 1 < m->n_heap && before(next_of(m, m->heap[child + 1]), next_of(m, m->heap[child]))) child++;
        if (!before(next_of(m, m->heap[child]), next_of(m, moved))) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = moved;
}

static void push(struct fp_merge *m, uint32_t run) {
    uint32_t at = m->n_heap++;
    while (at && before(next_of(m, run), next_of(m, m->heap[(at - 1) / 2]))) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = run;
}

int fp_merge_next(struct fp_merge *m, struct fp_err *err) {
    const uint32_t width = m->width;
    for (; m->n_started < m->n_runs; m->n_started++) {
        struct fp_run *run = &m->runs[m->n_started];
        if (run->pos == run->n && !run->eof) {
            m->hungry = m->n_started;
            return FP_MORE;
        }
        if (run->pos < run->n) push(m, m->n_started);
    }
    if (m->hungry != FP_MERGE_NONE && m->n_heap) {
        /* The run on top was used up and has been refilled, or has ended. */
        struct fp_run *run = &m->runs[m->heap[0]];
        if (m->hungry == m->heap[0]) {
            if (run->pos == run->n) {
                if (!run->eof) return FP_MORE;
                m->heap[0] = m->heap[--m->n_heap];
            }
            if (m->n_heap) sift_down(m);
        }
    }
    m->hungry = FP_MERGE_NONE;
    while (m->n_heap) {
        struct fp_run *run = &m->runs[m->heap[0]];
        const uint64_t *record = run->p + run->pos;
        if (m->have_head == 2) m->have_head = 0; /* the caller has it */
        if (m->have_head && (m->head[0] != record[0] || m->head[1] != record[1])) break;
        if (!m->have_head) {
            memcpy(m->head, record, width * sizeof *record);
            m->have_head = 1;
        } else {
            for (uint32_t i = FP_MERGE_KEY; i < width; i++)
                if (__builtin_add_overflow(m->head[i], record[i], &m->head[i]))
                    return fp_fail_beyond(err, "the sum of a counter", i - FP_MERGE_KEY, "2^64 - 1");
        }
        run->pos += width;
        if (run->pos == run->n) {
            if (!run->eof) {
                m->hungry = m->heap[0];
                return FP_MORE;
            }
            m->heap[0] = m->heap[--m->n_heap];
        }
        if (m->n_heap) sift_down(m);
    }
    if (m->have_head != 1) return FP_DONE;
    m->have_head = 2;
    return FP_FULL;
}
