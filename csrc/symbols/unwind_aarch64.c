#include "symbols/unwind_machine.h"

static int no_expression(struct fp_dwarf_bytes block, struct fp_unwind_rule *rule) {
    (void)block, (void)rule;
    return 0;
}

/* Registers of perf have DWARF's numbers. */
const struct fp_unwind_machine fp_unwind_aarch64 = {
    .sp = 31,
    .fp = 29,
    .pc = 32,
    .return_register = 30,
    .n_registers = 33,
    .has_link = 1,
    .perf_bits = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                  17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32},
    .kept = (uint64_t)0xfff << 19, /* x19 to x30 */
    .address_bits = ((uint64_t)1 << 48) - 1,
    .sigreturn = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}, /* mov x8, #139; svc #0 */
    .sigreturn_nbytes = 8,
    .sigreturn_call = 4,
    .sigreturn_rule = {.kind = FP_UNWIND_SIGNAL,
                       .cfa = 560,
                       .fp = 312 + 29 * 8,
                       .ra = 568,
                       .fp_how = FP_UNWIND_SAVED,
                       .ra_how = FP_UNWIND_SAVED,
                       .is_signal = 1},
    .expression = no_expression,
};
