/* symbols/unwind_machine.h - a processor's registers and conventions, and declarations shared by the unwinder's files.
 * C only.
 */
#pragma once

#include "symbols/cfi.h"

enum { FP_UNWIND_MOST_REGISTERS = FP_CFI_MOST_COLUMNS - 1, FP_UNWIND_MOST_SIGRETURN = 9 };

/* Registers by their DWARF numbers. */
struct fp_unwind_machine {
    uint8_t sp, fp, pc;
    uint8_t return_register; /* the column of the return address: pc itself, or the link register */
    uint8_t n_registers;
    uint8_t has_link;                            /* without a rule, the return address is in the link register */
    uint8_t perf_bits[FP_UNWIND_MOST_REGISTERS]; /* by DWARF number: the bit in a mask of perf */
    uint64_t kept;                               /* registers that functions preserve */
    uint64_t address_bits;                       /* of a return address; the other bits sign it */

    /* Code that returns from a signal handler without a table, and the rule for it. */
    uint8_t sigreturn[FP_UNWIND_MOST_SIGRETURN];
    uint8_t sigreturn_nbytes, sigreturn_call; /* the offset of the system call's instruction */
    struct fp_unwind_rule sigreturn_rule;

    /* A CFA that is an expression of this machine only: 1 with rule->kind and rule->cfa set, or 0. */
    int (*expression)(struct fp_dwarf_bytes block, struct fp_unwind_rule *rule);
};

extern const struct fp_unwind_machine fp_unwind_x86_64, fp_unwind_aarch64;

/* The machine with this e_machine; NULL if it is unknown. */
const struct fp_unwind_machine *fp_unwind_machine(uint32_t number);

/* ---- tables -------------------------------------------------------------- */

/* Numbers of the rules that every table has. */
enum { FP_UNWIND_RULE_GAP = 0, FP_UNWIND_RULE_DAMAGED = 1, FP_UNWIND_RULE_SLOW = 2, FP_UNWIND_RULE_SIGRETURN = 3 };

/* The rule of code at an offset in the file; never NULL.  `exact`: the offset of an instruction, not of the byte before
 * a return address. */
const struct fp_unwind_rule *fp_unwind_table_rule(const struct fp_unwind_table *t, uint64_t offset, int exact);

uint32_t fp_unwind_table_id(const struct fp_unwind_table *t);

enum { FP_UNWIND_MOST_RUN = 4 << 20 }; /* program bytes per stack; few need more than 10,000 */

/* The same with all registers: runs the program of the function up to the row.  Its length is taken from *left.  1, 0
 * if no program covers the address (only the rule does), -1 for one that is damaged or longer than *left. */
int fp_unwind_table_run(const struct fp_unwind_table *t, uint64_t offset, int exact, struct fp_cfi_run *run,
                        struct fp_cfi_section *section, struct fp_cfi_cie *cie, size_t *left);

/* ---- compiling ----------------------------------------------------------- */

/* The columns that rules use, and the one that is never read. */
enum { FP_UNWIND_COLUMN_FP, FP_UNWIND_COLUMN_RA, FP_UNWIND_COLUMN_SP, FP_UNWIND_COLUMNS };

/* The bytes of an expression. */
static inline struct fp_dwarf_bytes fp_unwind_block(const struct fp_cfi_section *s, const struct fp_cfi_value *v) {
    return (struct fp_dwarf_bytes){s->bytes.p + v->value, v->n};
}

struct fp_unwind_rule fp_unwind_rule_of(const struct fp_unwind_machine *m, const struct fp_cfi_section *s,
                                        const struct fp_cfi_cie *cie, const struct fp_cfi_state *state);

/* ---- stacks -------------------------------------------------------------- */

struct fp_unwind_words {
    uint64_t sp; /* the address of the first word */
    const uint8_t *stack;
    uint64_t n;
};

/* The nbytes bytes at an address, or NULL if they were not copied. */
static inline const uint8_t *fp_unwind_copied(const struct fp_unwind_words *w, uint64_t address, uint64_t nbytes) {
    const uint64_t at = address - w->sp;
    return FP_UNLIKELY(w->n < nbytes || at > w->n - nbytes) ? NULL : w->stack + at;
}

/* The word at an address, 1, or 0 if it was not copied. */
static inline int fp_unwind_word(const struct fp_unwind_words *w, uint64_t address, uint64_t *value) {
    const uint8_t *p = fp_unwind_copied(w, address, 8);
    if (!p) return 0;
    *value = fp_u64(p);
    return 1;
}

struct fp_unwind_registers {
    uint64_t values[FP_UNWIND_MOST_REGISTERS];
    uint64_t known; /* bits by DWARF number */
};

/* Runs an expression on the registers of a frame; `pushed` may be NULL.  FP_UNWIND_COMPLETE, or FP_UNWIND_OUTSIDE or
 * FP_UNWIND_BROKEN. */
enum fp_unwind_end fp_unwind_evaluate(struct fp_dwarf_bytes block, const struct fp_unwind_registers *registers,
                                      const struct fp_unwind_words *words, const uint64_t *pushed, uint64_t *result);
