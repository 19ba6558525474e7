#include "bridges/fold/fold_private.h"
#include "ends/top.h"

int fp_top_timeline(const struct fp_fold *f, const struct fp_fold_out *o, uint32_t column, struct fp_top_sums *c,
                    struct fp_err *err) {
    const uint64_t hertz = column == FP_FOLD_TIME ? o->ticks_per_second : 0; /* 0: unchanged */
    for (uint32_t i = 0; i < f->cap_inclusive; i++) {
        const uint64_t inclusive = f->inclusive[2 * (size_t)i + column];
        if (!inclusive) continue;
        const uint32_t function = fp_fold_in_graph(o, i);
        int64_t value;
        fp_top_room(c, (uint64_t)function + 1);
        if (fp_fold_in_units(hertz, inclusive, &value) ||
            __builtin_add_overflow(c->inclusive[function], value, &c->inclusive[function]))
            return fp_fail_beyond(err, "the inclusive cost of a function", column, "2^63 - 1");
    }
    return FP_DONE;
}
