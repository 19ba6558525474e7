#include "bridges/fold/fold_private.h"
#include "ends/top.h"

int fp_top_timeline(const struct fp_fold *f, const struct fp_fold_out *o, struct fp_top *c, struct fp_err *err) {
    for (uint32_t i = 0; i < f->cap_inclusive; i++) {
        if (!f->inclusive[i]) continue;
        const uint32_t function = fp_fold_in_graph(o, i);
        int64_t value;
        if (function == FP_NO_ID || fp_top_room(c, (uint64_t)function + 1))
            return fp_fail(err, FP_E_NOMEM, 0, "the sums of functions");
        if (fp_fold_in_units(o->ticks_per_second, f->inclusive[i], &value) ||
            __builtin_add_overflow(c->inclusive[function], value, &c->inclusive[function]))
            return fp_fail_beyond(err, "the inclusive cost of a function", FP_FOLD_TIME, "2^63 - 1");
    }
    return FP_DONE;
}
