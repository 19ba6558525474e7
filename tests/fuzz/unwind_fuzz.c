/* Unwinding tables and stacks under the fuzzer.  The input is the data that csrc/symbols borrows from an ELF file
 * and a sample:
 *
 *   flags u8      1 AArch64, 2 by frame pointers, 4 without program headers, 8 with a PLT, 16 the sections are content;
 *                 the other three bits choose eight of 24 samples, and one that a new unwinder unwinds, too
 *   lengths u16   of .eh_frame, .debug_frame, the content of the file and the stack
 *   sections      one after the other; the last one may be longer or shorter than its length
 *
 * Samples have registers that point at each other's surroundings.  A stack must be the same with an unwinder that
 * caches rules and with a new one, and a rule must agree with the program that it was made from. */
#include <stdlib.h>

#include "mutate.h"
#include "symbols/unwind_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 4, HEAD_NBYTES = 1 + 2 * PARTS, MOST = 64, SAMPLES = 24, STACK = 0x7fff0000 };

struct process {
    const struct fp_unwind_table *table;
    int asks; /* the finder asks once */
};

static int find(void *self, uint64_t address, struct fp_unwind_place *place) {
    struct process *p = self;
    if (p->asks) {
        p->asks = 0;
        return FP_NEEDS;
    }
    const uint64_t page = address & ~(uint64_t)0xffff;
    if (page > UINT32_MAX) return FP_MORE;
    *place = (struct fp_unwind_place){.start = page,
                                      .limit = page + 0x10000,
                                      .offset = page,
                                      .table = page & 0x10000 ? NULL : p->table,
                                      .is_executable = page != STACK,
                                      .why_not = FP_UNWIND_NO_FILE,
                                      .word = (uint32_t)page};
    return FP_DONE;
}

/* Compares the rule of each row with the program of its function. */
static void check_rows(const struct fp_unwind_table *t, int has_plts) {
    static struct fp_cfi_run run;
    struct fp_cfi_section section;
    struct fp_cfi_cie cie;
    struct fp_unwind_rule rule;
    const struct fp_unwind_stats stats = fp_unwind_table_stats(t);
    for (uint64_t i = 0, before = 0; i < stats.rows; i++) {
        const uint64_t address = fp_unwind_table_row(t, i, &rule);
        if (i && address <= before) abort();
        before = address;
        const struct fp_unwind_rule *found = fp_unwind_table_rule(t, address, 0);
        if (i % 16) continue; /* a program is run from its start for each */
        const int has = fp_unwind_table_run(t, address, 0, &run, &section, &cie, &(size_t){FP_UNWIND_MOST_RUN});
        if (found->kind > FP_UNWIND_DAMAGED && found->kind != FP_UNWIND_SIGNAL && has != 1 && !has_plts) abort();
        if (found->kind == FP_UNWIND_FP && run.state.cfa.how != FP_CFI_REGISTER && !has_plts) abort();
    }
}

struct stack {
    struct fp_unwind_frame frames[MOST];
    uint32_t n, why;
};

static void unwind(struct fp_unwind *u, struct process *p, const struct fp_unwind_sample *sample, struct stack *s) {
    p->asks = 1;
    if (fp_unwind_stack(u, sample, find, p, s->frames, MOST, &s->n, &s->why) != FP_NEEDS) abort();
    if (fp_unwind_stack(u, sample, find, p, s->frames, MOST, &s->n, &s->why) != FP_DONE) abort();
    if (s->n == 0 || s->n > MOST || s->why >= FP_UNWIND_ENDS) abort();
}

/* With an unwinder that has no rules yet; to make one costs as much as to unwind a dozen stacks. */
static void unwind_again(uint32_t machine, uint32_t flags, struct process *p, const struct fp_unwind_sample *sample,
                         const struct stack *before) {
    static struct stack s; /* a local one would be poisoned each time */
    struct fp_unwind *u = fp_unwind_new(machine, flags);
    if (!u) abort();
    unwind(u, p, sample, &s);
    fp_unwind_free(u);
    if (s.n != before->n || s.why != before->why) abort();
    for (uint32_t i = 0; i < s.n; i++)
        if (s.frames[i].address != before->frames[i].address || s.frames[i].is_return != before->frames[i].is_return)
            abort();
}

static struct fp_dwarf_bytes take(const uint8_t **p, size_t *left, size_t n) {
    if (n > *left) n = *left;
    const struct fp_dwarf_bytes bytes = {n ? *p : NULL, n};
    *p += n;
    *left -= n;
    return bytes;
}

static void run(const uint8_t *head, const uint8_t *p, size_t left) {
    const uint32_t machine = head[0] & 1 ? 183 : 62, flags = head[0] & 2 ? FP_UNWIND_BY_FRAME_POINTERS : 0;
    const struct fp_unwind_load loads[] = {{0, 0, 0x8000, 0x9000, 1}, {0x9000, 0x8000, 0x8000, 0x8000, 0}};
    const struct fp_unwind_range plt = {0x100, 0x140};
    struct fp_dwarf_bytes parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = take(&p, &left, fp_u16(head + 1 + 2 * i));
    struct fp_unwind_file file = {.content = head[0] & 16 ? parts[0] : parts[2],
                                  .eh_frame = parts[0],
                                  .debug_frame = parts[1],
                                  .eh_frame_address = 0x4000,
                                  .text = 0x1000,
                                  .data = 0x3000,
                                  .loads = loads,
                                  .plts = &plt,
                                  .n_loads = head[0] & 4 ? 0 : 2,
                                  .n_plts = head[0] & 8 ? 1 : 0,
                                  .machine = machine,
                                  .id = head[0]};
    struct fp_err err;
    struct fp_unwind_table *t = fp_unwind_table_new(&file, &err);
    if (!t) abort();
    if (file.n_loads == 0) check_rows(t, file.n_plts);
    struct process process = {t, 0};
    const uint32_t chosen = head[0] >> 5;
    static struct stack stack;
    struct fp_unwind *u = fp_unwind_new(machine, flags);
    if (!u) abort();
    for (uint64_t i = chosen % 3; i < SAMPLES; i += 3) {
        uint64_t registers[33];
        for (uint64_t k = 0; k < 33; k++) registers[k] = STACK + (i * 8 + k * 24) % 256;
        const uint64_t pc = i * 0x10 + (i & 1 ? 0x1000 : 0) + i % 5;
        if (machine == 62) registers[7] = STACK, registers[8] = pc;
        if (machine == 183) registers[31] = STACK, registers[32] = pc, registers[30] = pc + 0x20;
        const struct fp_unwind_sample sample = {.mask = ((uint64_t)1 << 33) - 1,
                                                .registers = (const uint8_t *)registers,
                                                .stack = parts[3].p,
                                                .stack_nbytes = parts[3].n};
        unwind(u, &process, &sample, &stack);
        if (i / 3 == chosen) unwind_again(machine, flags, &process, &sample, &stack);
    }
    fp_unwind_free(u);
    fp_unwind_table_free(t);
}

/* ---- the mutator --------------------------------------------------------- */

/* Changes bytes of a part, and the lengths that cover them: of the part, and of its entry. */
static void change_part(struct input *in) {
    const uint32_t i = below(in, PARTS);
    uint8_t *length = in->p + 1 + 2 * i;
    size_t at = HEAD_NBYTES;
    for (uint32_t k = 0; k < i; k++) at += fp_u16(in->p + 1 + 2 * k);
    const size_t had = fp_u16(length);
    if (!had || at > in->n || had > in->n - at) return;
    const size_t where = below(in, had), left = had - where, most = 1 + below(in, left < 8 ? left : 8), before = in->n;
    if (i == PARTS - 1 && left >= 8) {
        put(in, in->p + at + where, below(in, 2) ? STACK + below(in, 256) : below(in, 0x2000), 8);
    } else if (below(in, 3) == 0 && left >= 4) {
        change_number(in, at + where, 1, left < 8 || below(in, 2) ? 4 : 8);
    } else {
        change_bytes(in, at + where, most, 4);
    }
    const size_t more = in->n - before; /* wraps when it is shorter */
    put(in, length, had + more, 2);
    for (size_t entry = 0; more && i < 2 && entry + 8 <= had + more;) {
        uint8_t *p = in->p + at + entry;
        const uint64_t nbytes = fp_u32(p);
        if (nbytes > had) return;
        if (where >= entry + 4 && where < entry + 4 + nbytes) {
            put(in, p, nbytes + more, 4);
            return;
        }
        entry += 4 + (size_t)nbytes;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n <= HEAD_NBYTES || below(&in, 4) == 0) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_part(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD_NBYTES) return 0;
    /* of the exact length, so that the sanitizer detects a read beyond it */
    uint8_t *exact = malloc(size - HEAD_NBYTES + 1);
    if (!exact) return 0;
    memcpy(exact, data + HEAD_NBYTES, size - HEAD_NBYTES);
    run(data, exact, size - HEAD_NBYTES);
    free(exact);
    return 0;
}
