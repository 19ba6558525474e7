#include "symbols/unwind_machine.h"

/* The stack pointer in a procedure linkage table, whose entries have 16 bytes and push once:
 *
 *   77 08       r7 + 8                                jmp  *slot(%rip)      up to byte 11: CFA = rsp + 8
 *   80 00       r16 + 0     (the pc)                  push $number
 *   3f 1a       and 15                                jmp  ...              from byte 11: CFA = rsp + 16
 *   3b 2a       >= 11       (9 with -z ibtplt)
 *   33 24 22    << 3, +
 */
enum { PLT_NBYTES = 11, PLT_THRESHOLD = 6, LITERAL_0 = 0x30, LITERAL_15 = 0x3f };

static int plt(struct fp_dwarf_bytes block, struct fp_unwind_rule *rule) {
    static const uint8_t before[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a}, after[] = {0x2a, 0x33, 0x24, 0x22};
    if (block.n != PLT_NBYTES || memcmp(block.p, before, sizeof before)) return 0;
    const uint8_t literal = block.p[PLT_THRESHOLD];
    if (memcmp(block.p + PLT_THRESHOLD + 1, after, sizeof after) || literal < LITERAL_0 || literal > LITERAL_15)
        return 0;
    rule->kind = FP_UNWIND_PLT;
    rule->cfa = literal - LITERAL_0;
    return 1;
}

const struct fp_unwind_machine fp_unwind_x86_64 = {
    .sp = 7,
    .fp = 6,
    .pc = 16,
    .return_register = 16,
    .n_registers = 17,
    .perf_bits = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8},
    .kept = 1 << 3 | 1 << 6 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15,
    .address_bits = UINT64_MAX,
    .sigreturn = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, /* mov $15, %rax; syscall */
    .sigreturn_nbytes = 9,
    .sigreturn_call = 7,
    .sigreturn_rule = {.kind = FP_UNWIND_SIGNAL,
                       .cfa = 160,
                       .fp = 120,
                       .ra = 168,
                       .fp_how = FP_UNWIND_SAVED,
                       .ra_how = FP_UNWIND_SAVED,
                       .is_signal = 1},
    .expression = plt,
};
