/* JIT-compiled code that jit-PID.dump lists, mapped at the time at which it was loaded or moved. */
#include "perf/private.h"

/* Sets the time at which the next code appears. */
static void set_next(struct fp_perf_reader *r) {
    r->dumps.next_code = UINT64_MAX;
    for (uint32_t i = 0; i < r->dumps.n; i++) {
        const struct fp_perf_dump *dump = &r->dumps.list[i];
        if (dump->n && dump->codes->time < r->dumps.next_code) r->dumps.next_code = dump->codes->time;
    }
}

int fp_perf_give_codes(struct fp_perf_reader *r, const struct fp_jitdump_code *codes, uint64_t n) {
    FP_PUSH(r->dumps.list, r->dumps.n, r->dumps.cap) = (struct fp_perf_dump){codes, n, r->dumps.pid, r->dumps.name};
    set_next(r);
    return 0;
}

void fp_perf_map_codes(struct fp_perf_reader *r, uint64_t time) {
    for (uint32_t i = 0; i < r->dumps.n; i++) {
        struct fp_perf_dump *dump = &r->dumps.list[i];
        for (; dump->n && dump->codes->time <= time; dump->n--, dump->codes++) {
            const struct fp_jitdump_code *code = dump->codes;
            fp_perf_map_range(r, dump->pid, code->address, code->nbytes, code->offset, dump->name,
                              FP_PERF_IS_EXECUTABLE);
        }
    }
    set_next(r);
}
