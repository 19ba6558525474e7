#include "core/shares.h"

void fp_shares_give(struct fp_shares *s, uint32_t thread, uint64_t much) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->much[i] < s->much[least]) least = i;
    if (__builtin_add_overflow(s->much[least], much, &s->much[least])) s->much[least] = UINT64_MAX;
    if (thread < FP_SHARES_THREADS) s->of[thread] = (uint8_t)(least + 1);
}
