/* JIT-compiled code that jit-PID.dump lists, mapped at the time at which it was loaded or moved. */
#include "perf/private.h"

/* Sets the time at which the next code appears. */
static void set_next(struct fp_perf_reader *r) {
    r->next_code = UINT64_MAX;
    for (uint32_t i = 0; i < r->n_dumps; i++) {
        const struct fp_perf_dump *dump = &r->dumps[i];
        if (dump->n && dump->codes->time < r->next_code) r->next_code = dump->codes->time;
    }
}

int fp_perf_give_codes(struct fp_perf_reader *r, const struct fp_jitdump_code *codes, uint64_t n) {
    fp_array_room(&r->dumps, &r->cap_dumps, (uint64_t)r->n_dumps + 1, sizeof *r->dumps);
    r->dumps[r->n_dumps++] = (struct fp_perf_dump){codes, n, r->dump_pid, r->dump_name};
    set_next(r);
    return 0;
}

void fp_perf_map_codes(struct fp_perf_reader *r, uint64_t time) {
    for (uint32_t i = 0; i < r->n_dumps; i++) {
        struct fp_perf_dump *dump = &r->dumps[i];
        for (; dump->n && dump->codes->time <= time; dump->n--, dump->codes++) {
            const struct fp_jitdump_code *code = dump->codes;
            fp_perf_map_range(r, dump->pid, code->address, code->nbytes, code->offset, dump->name,
                              FP_PERF_IS_EXECUTABLE);
        }
    }
    set_next(r);
}
