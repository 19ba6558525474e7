#include "core/shares.h"

void fp_shares_assign(struct fp_shares *s, uint32_t thread, uint64_t work) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->work[i] < s->work[least]) least = i;
    if (__builtin_add_overflow(s->work[least], work, &s->work[least])) s->work[least] = UINT64_MAX;
    if (thread < FP_SHARES_THREADS) s->of[thread] = (uint8_t)(least + 1);
}
