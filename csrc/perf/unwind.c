/* User stacks from the registers and the copy of the stack in a sample (symbols/unwind.h). */
#include "perf/private.h"

enum { ABI_64 = 2 };

/* Where an unwinder finds the tables of a process's mappings. */
struct process {
    struct fp_perf_reader *r;
    uint32_t pid;
};

static int find_table(void *self, uint64_t address, struct fp_unwind_place *place) {
    const struct process *process = self;
    struct fp_perf_reader *r = process->r;
    struct fp_space_hit hit;
    if (!fp_space_find(r->maps.space, process->pid, address, &hit)) return FP_MORE;
    const struct fp_perf_map *map = &r->maps.list[hit.word];
    const int is_executable = (hit.flags & FP_PERF_IS_EXECUTABLE) != 0; /* other memory has no unwind rules */
    if (is_executable && !map->was_requested) {
        r->request = FP_PERF_TABLE;
        r->unwound.map = hit.word;
        r->requested_name = map->name;
        r->requested_build_id = fp_perf_build_id_of(r, map);
        return FP_NEEDS;
    }
    *place = (struct fp_unwind_place){
        .start = hit.start,
        .limit = hit.limit,
        .offset = hit.pgoff,
        .table = map->table,
        .is_executable = is_executable,
        .why_not = is_executable ? map->why_not : FP_UNWIND_NO_TABLE,
        .word = hit.word,
    };
    return FP_DONE;
}

void fp_perf_set_table(struct fp_perf_reader *r, const void *table, int why_not) {
    if (r->unwound.map >= r->maps.n) return;
    struct fp_perf_map *map = &r->maps.list[r->unwound.map];
    map->was_requested = 1;
    map->table = table;
    map->why_not = why_not;
}

int fp_perf_unwind(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s) {
    if (!s->regs || s->regs_abi != ABI_64 || !r->machine || r->swap || s->pid == FP_SPACE_KERNEL) return 0;
    if (!r->unwound.unwinder) r->unwound.unwinder = fp_have(fp_unwind_new(r->machine, FP_UNWIND_BY_FRAME_POINTERS));
    if (!r->unwound.frames) r->unwound.frames = fp_have(malloc(FP_PERF_MOST_FRAMES * sizeof *r->unwound.frames));
    const struct fp_unwind_sample sample = {e->attr.regs_user, s->regs, s->stack, s->n_stack};
    struct process process = {r, s->pid};
    uint32_t why = 0;
    const int status = fp_unwind_stack(r->unwound.unwinder, &sample, find_table, &process, r->unwound.frames,
                                       FP_PERF_MOST_FRAMES, &r->unwound.n, &why);
    r->unwound.why = why;
    return status;
}
