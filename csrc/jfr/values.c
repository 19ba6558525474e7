/* Times and quantities of events. */

#include "jfr/private.h"

/* ---- times ---- */

int64_t fp_jfr_nanoseconds_of(const struct fp_jfr_reader *r, int64_t n) {
    __extension__ typedef __int128 i128;
    const int64_t rate = (int64_t)r->chunk.ticks_per_second;
    if (rate < INT64_MAX / 1000000000 && n / rate < INT64_MAX / 1000000000 - 1 && n / rate > INT64_MIN / 1000000000 + 1)
        return n / rate * 1000000000 + n % rate * 1000000000 / rate;
    const i128 ns = (i128)n * 1000000000 / rate;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

/* ---- values ---- */

int fp_jfr_value(const struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, double factor, int64_t *value) {
    static const int64_t SCALE[] = {[FP_JFR_NANOSECONDS] = 1,
                                    [FP_JFR_MICROSECONDS] = 1000,
                                    [FP_JFR_MILLISECONDS] = 1000000,
                                    [FP_JFR_SECONDS] = 1000000000};
    *value = 0;
    if (slot->kind == FP_JFR_IS_NUMBER && factor == 1) {
        *value = (int64_t)slot->n;
        if (slot->unit == FP_JFR_TICKS) *value = fp_jfr_nanoseconds(r, *value);
        return slot->unit > FP_JFR_TICKS && __builtin_mul_overflow(*value, SCALE[slot->unit], value) ? 1 : 0;
    }
    if (slot->kind == FP_JFR_ABSENT) return 0;
    const double real = (slot->kind == FP_JFR_IS_REAL ? slot->real : (double)(int64_t)slot->n) * factor;
    if (!(real > -9.2e18 && real < 9.2e18)) return 1;
    *value = (int64_t)(real < 0 ? real - 0.5 : real + 0.5); /* rounds without libm */
    return 0;
}
