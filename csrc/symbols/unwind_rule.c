#include "symbols/unwind_machine.h"

enum { DEREF = 0x06, BREG_0 = 0x70, BREG_31 = 0x8f };

const struct fp_unwind_machine *fp_unwind_machine(uint32_t number) {
    return number == 62 ? &fp_unwind_x86_64 : number == 183 ? &fp_unwind_aarch64 : NULL;
}

static int fits(int64_t v) {
    return v == (int32_t)v;
}

/* Whether a block is `register + *offset`, optionally followed by `deref`. */
static int is_sum(struct fp_dwarf_bytes block, unsigned reg, int deref, int32_t *offset) {
    struct fp_dwarf_cursor c = {block.p, block.p + block.n, 0, 0};
    if (!block.n || reg > BREG_31 - BREG_0 || *c.p++ != BREG_0 + reg) return 0;
    const int64_t v = fp_dwarf_take_sleb(&c);
    if (deref && fp_dwarf_take(&c, 1) != DEREF) return 0;
    *offset = (int32_t)v;
    return !c.bad && c.p == c.end && fits(v);
}

/* Whether this is `__restore_rt`, to which signal handlers return: all registers are in the context on the stack. */
static int is_signal_frame(const struct fp_unwind_machine *m, const struct fp_cfi_section *s,
                           const struct fp_cfi_state *state, struct fp_unwind_rule *rule) {
    const struct fp_cfi_value *fp = &state->columns[FP_UNWIND_COLUMN_FP], *ra = &state->columns[FP_UNWIND_COLUMN_RA];
    if (m->has_link || fp->how != FP_CFI_AT_BLOCK || ra->how != FP_CFI_AT_BLOCK) return 0;
    if (!is_sum(fp_unwind_block(s, &state->cfa), m->sp, 1, &rule->cfa) ||
        !is_sum(fp_unwind_block(s, fp), m->sp, 0, &rule->fp) || !is_sum(fp_unwind_block(s, ra), m->sp, 0, &rule->ra))
        return 0;
    rule->kind = FP_UNWIND_SIGNAL;
    rule->fp_how = rule->ra_how = FP_UNWIND_SAVED;
    return 1;
}

/* Whether the function aligned its stack: the CFA was saved below the frame pointer.  The expression of the frame
 * pointer must be `fp + n`. */
static int is_realigned(const struct fp_unwind_machine *m, const struct fp_cfi_section *s,
                        const struct fp_cfi_state *state, struct fp_unwind_rule *rule) {
    const struct fp_cfi_value *fp = &state->columns[FP_UNWIND_COLUMN_FP];
    if (fp->how != FP_CFI_AT_BLOCK || !is_sum(fp_unwind_block(s, &state->cfa), m->fp, 1, &rule->cfa) ||
        !is_sum(fp_unwind_block(s, fp), m->fp, 0, &rule->fp))
        return 0;
    rule->kind = FP_UNWIND_REALIGN;
    rule->fp_how = FP_UNWIND_SAVED;
    return 1;
}

/* Sets the rule of the return address; 0 if it needs other registers. */
static int set_return(const struct fp_unwind_machine *m, const struct fp_cfi_value *ra, struct fp_unwind_rule *rule) {
    if (ra->how == FP_CFI_AT_CFA && fits(ra->value)) {
        rule->ra_how = FP_UNWIND_SAVED;
        rule->ra = (int32_t)ra->value;
        return 1;
    }
    rule->ra_how = m->has_link ? FP_UNWIND_SAME : FP_UNWIND_UNKNOWN;
    return ra->how == FP_CFI_UNSET || (m->has_link && ra->how == FP_CFI_SAME);
}

/* The same for the frame pointer.  A function pops registers before it returns, but compilers do not update the rules:
 * a register saved below the stack pointer already has its value again. */
static int set_frame_pointer(const struct fp_cfi_value *fp, struct fp_unwind_rule *rule) {
    rule->fp_how = fp->how == FP_CFI_UNDEFINED ? FP_UNWIND_UNKNOWN : FP_UNWIND_SAME;
    if (fp->how != FP_CFI_AT_CFA)
        return fp->how == FP_CFI_UNSET || fp->how == FP_CFI_SAME || fp->how == FP_CFI_UNDEFINED;
    if (!fits(fp->value)) return 0;
    if (rule->kind == FP_UNWIND_SP && fp->value < -(int64_t)rule->cfa) return 1;
    rule->fp_how = FP_UNWIND_SAVED;
    rule->fp = (int32_t)fp->value;
    return 1;
}

struct fp_unwind_rule fp_unwind_rule_of(const struct fp_unwind_machine *m, const struct fp_cfi_section *s,
                                        const struct fp_cfi_cie *cie, const struct fp_cfi_state *state) {
    static const struct fp_unwind_rule slow = {.kind = FP_UNWIND_SLOW}, last = {.kind = FP_UNWIND_LAST};
    static const struct fp_unwind_rule damaged = {.kind = FP_UNWIND_DAMAGED};
    const struct fp_cfi_value *cfa = &state->cfa, *fp = &state->columns[FP_UNWIND_COLUMN_FP],
                              *ra = &state->columns[FP_UNWIND_COLUMN_RA], *sp = &state->columns[FP_UNWIND_COLUMN_SP];
    struct fp_unwind_rule rule = {.is_signal = cie->is_signal};
    if (cfa->how == FP_CFI_UNSET) return damaged;
    if (ra->how == FP_CFI_UNDEFINED) return last;
    if (cfa->how == FP_CFI_IS_BLOCK && is_signal_frame(m, s, state, &rule)) return rule;
    if (sp->how != FP_CFI_UNSET) return slow; /* otherwise it is the CFA */
    if (cfa->how == FP_CFI_IS_BLOCK) {
        if (!set_return(m, ra, &rule)) return slow;
        if (is_realigned(m, s, state, &rule)) return rule;
        if (!m->expression(fp_unwind_block(s, cfa), &rule)) return slow;
    } else {
        if (!fits(cfa->value) || (cfa->n != m->sp && cfa->n != m->fp)) return slow;
        rule.kind = cfa->n == m->sp ? FP_UNWIND_SP : FP_UNWIND_FP;
        rule.cfa = (int32_t)cfa->value;
    }
    return set_return(m, ra, &rule) && set_frame_pointer(fp, &rule) ? rule : slow;
}
