#include "core/select.h"

enum { BLOCK = 1024 }; /* rows that are checked together, column by column */

static void by_time(const struct fp_select *s, const uint64_t *time, int timed, uint8_t *keep, uint32_t n) {
    const uint64_t length = s->last_time - s->first_time;
    for (uint32_t i = 0; i < n; i++) keep[i] &= time[i] - s->first_time <= length;
    if (timed)
        for (uint32_t i = 0; i < n; i++) keep[i] &= time[i] != 0;
}

static void by_id(const struct fp_mask *mask, const uint32_t *ids, uint8_t *keep, uint32_t n) {
    if (!mask->keep) return;
    for (uint32_t i = 0; i < n; i++) keep[i] &= ids[i] < mask->n && mask->keep[ids[i]];
}

uint32_t fp_select_rows(const struct fp_select *s, struct fp_batch *b, uint32_t from) {
    const int ranged = s->first_time || s->last_time != UINT64_MAX;
    const uint32_t end = b->n;
    uint32_t to = from;
    for (uint32_t i = from; i < end; i += BLOCK) {
        uint8_t keep[BLOCK];
        const uint32_t n = end - i < BLOCK ? end - i : BLOCK;
        memset(keep, 1, n);
        if (b->view == FP_GRAPH) {
            by_id(&s->functions, b->function + i, keep, n);
        } else {
            if (ranged) by_time(s, b->time + i, b->view == FP_STACKS, keep, n);
            by_id(&s->threads, b->thread + i, keep, n);
        }
        if (b->view == FP_STACKS) {
            by_id(&s->labels, b->label + i, keep, n);
            by_id(&s->stacks, b->stack + i, keep, n);
        }
        to = fp_batch_keep(b, to, i, keep, n);
    }
    b->n = to;
    return end - to;
}
