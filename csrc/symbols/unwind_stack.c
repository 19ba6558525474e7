#include "symbols/unwind_machine.h"

enum { SLOT_BITS = 12, OFFSET_BITS = 39 };

/* Caches the rule of an address in a file, because addresses of a process are remapped. */
struct slot {
    uint64_t key; /* id of the table + 1, offset in the file, exact */
    const struct fp_unwind_rule *rule;
};

struct fp_unwind {
    const struct fp_unwind_machine *machine;
    uint32_t flags;
    struct slot slots[1 << SLOT_BITS];
};

/* The registers of a frame that the fast path tracks. */
struct frame {
    uint64_t pc, sp, fp, link;
    int32_t exact; /* pc is that of an instruction, not a return address */
    int32_t has_fp, has_link;
};

/* The stack being unwound. */
struct walk {
    struct fp_unwind *u;
    const struct fp_unwind_machine *machine;
    struct fp_unwind_words words;
    fp_unwind_finder find;
    void *self;
    struct fp_unwind_place place; /* of the last address; empty: start == limit */
    struct fp_unwind_frame *frames;
    uint32_t n, most;
};

/* Results of a step, in addition to enum fp_unwind_end. */
enum { GO_ON = -1, RESTART = -2, ASK = -3 };

struct fp_unwind *fp_unwind_new(uint32_t machine, uint32_t flags) {
    const struct fp_unwind_machine *m = fp_unwind_machine(machine);
    struct fp_unwind *u = m ? calloc(1, sizeof *u) : NULL;
    if (!u) return NULL;
    u->machine = m;
    u->flags = flags;
    return u;
}

void fp_unwind_free(struct fp_unwind *u) {
    free(u);
}

/* Finds the mapping at an address.  1, 0, or ASK. */
static int place_at(struct walk *w, uint64_t address) {
    if (FP_LIKELY(address - w->place.start < w->place.limit - w->place.start)) return 1;
    const int status = w->find(w->self, address, &w->place);
    if (status == FP_DONE) return 1;
    w->place = (struct fp_unwind_place){.word = FP_UNWIND_NO_WORD, .why_not = FP_UNWIND_NO_MAP};
    return status == FP_NEEDS ? ASK : 0;
}

static uint64_t looked_up(uint64_t pc, int exact) {
    return pc - !exact; /* a call may be the last instruction of its function */
}

static const struct fp_unwind_rule *rule_at(struct walk *w, uint64_t address, int exact) {
    const struct fp_unwind_table *t = w->place.table;
    const uint64_t offset = address - w->place.start + w->place.offset;
    if (offset >> OFFSET_BITS) return fp_unwind_table_rule(t, offset, exact);
    const uint64_t key = ((uint64_t)fp_unwind_table_id(t) + 1) << (OFFSET_BITS + 1) | offset << 1 | (uint64_t)exact;
    struct slot *slot = &w->u->slots[(key * 0x9e3779b97f4a7c15) >> (64 - SLOT_BITS)];
    if (FP_UNLIKELY(slot->key != key)) {
        slot->rule = fp_unwind_table_rule(t, offset, exact);
        slot->key = key;
    }
    return slot->rule;
}

/* ---- one step ------------------------------------------------------------ */

/* Steps without a table: {caller's frame pointer, return address} are at the frame pointer. */
static int step_by_frame_pointer(const struct walk *w, struct frame *f, int why_not) {
    uint64_t fp, pc;
    if (!(w->u->flags & FP_UNWIND_BY_FRAME_POINTERS) || !f->has_fp || !f->fp) return why_not;
    if (f->fp % 8 || f->fp < f->sp) return why_not;
    if (!fp_unwind_word(&w->words, f->fp, &fp) || !fp_unwind_word(&w->words, f->fp + 8, &pc)) return why_not;
    if (fp && fp <= f->fp) return why_not;
    *f = (struct frame){.pc = pc & w->machine->address_bits, .sp = f->fp + 16, .fp = fp, .has_fp = 1};
    return GO_ON;
}

/* Steps to an interrupted function, whose registers are in the context on the stack. */
static int step_over_signal(const struct walk *w, struct frame *f, const struct fp_unwind_rule *rule) {
    const uint64_t sp = f->sp;
    if (!fp_unwind_word(&w->words, sp + (uint64_t)rule->cfa, &f->sp)) return FP_UNWIND_OUTSIDE;
    if (!fp_unwind_word(&w->words, sp + (uint64_t)rule->ra, &f->pc)) return FP_UNWIND_OUTSIDE;
    f->has_fp = fp_unwind_word(&w->words, sp + (uint64_t)rule->fp, &f->fp);
    if (w->machine->has_link) f->has_link = fp_unwind_word(&w->words, sp + (uint64_t)rule->fp + 8, &f->link);
    f->exact = 1;
    return GO_ON;
}

/* The CFA of a frame.  GO_ON, or the end. */
static int find_cfa(const struct walk *w, const struct frame *f, const struct fp_unwind_rule *rule, uint64_t *cfa) {
    const uint64_t look = looked_up(f->pc, f->exact);
    switch (rule->kind) {
        case FP_UNWIND_SP: *cfa = f->sp + (uint64_t)rule->cfa; return GO_ON;
        case FP_UNWIND_FP: *cfa = f->fp + (uint64_t)rule->cfa; return f->has_fp ? GO_ON : FP_UNWIND_BROKEN;
        case FP_UNWIND_PLT: *cfa = f->sp + ((look & 15) >= (uint64_t)rule->cfa ? 16 : 8); return GO_ON;
        case FP_UNWIND_REALIGN:
            if (!f->has_fp) return FP_UNWIND_BROKEN;
            return fp_unwind_word(&w->words, f->fp + (uint64_t)rule->cfa, cfa) ? GO_ON : FP_UNWIND_OUTSIDE;
        case FP_UNWIND_LAST: return FP_UNWIND_COMPLETE;
        case FP_UNWIND_SLOW: return RESTART;
        default: return FP_UNWIND_BROKEN;
    }
}

/* Steps to the caller of a frame by a rule.  GO_ON, RESTART or the end. */
static int step(const struct walk *w, struct frame *f, const struct fp_unwind_rule *rule) {
    uint64_t cfa;
    if (rule->kind == FP_UNWIND_SIGNAL) return step_over_signal(w, f, rule);
    const int status = find_cfa(w, f, rule, &cfa);
    if (FP_UNLIKELY(status != GO_ON)) return status;
    if (FP_LIKELY(rule->ra_how == FP_UNWIND_SAVED)) {
        if (!fp_unwind_word(&w->words, cfa + (uint64_t)rule->ra, &f->pc)) return FP_UNWIND_OUTSIDE;
    } else {
        if (rule->ra_how != FP_UNWIND_SAME || !f->has_link) return FP_UNWIND_BROKEN;
        f->pc = f->link;
    }
    f->pc &= w->machine->address_bits;
    if (rule->fp_how == FP_UNWIND_SAVED) {
        const uint64_t at = rule->kind == FP_UNWIND_REALIGN ? f->fp : cfa;
        f->has_fp = fp_unwind_word(&w->words, at + (uint64_t)rule->fp, &f->fp);
    } else if (rule->fp_how == FP_UNWIND_UNKNOWN) {
        f->has_fp = 0;
    }
    f->sp = cfa;
    f->has_link = 0;
    f->exact = rule->is_signal;
    return GO_ON;
}

/* Checks whether the result of a step can be a caller.  GO_ON, ASK or the end. */
static int check_caller(struct walk *w, uint64_t callee_pc, uint64_t callee_sp, uint64_t pc, uint64_t sp, int exact) {
    if (!pc) return FP_UNWIND_COMPLETE;
    const int found = place_at(w, looked_up(pc, exact));
    if (found == ASK) return ASK;
    if (!found || !w->place.is_executable) return FP_UNWIND_NOT_EXECUTABLE;
    if (FP_UNLIKELY(sp <= callee_sp) && !exact && (sp < callee_sp || pc == callee_pc)) return FP_UNWIND_NO_PROGRESS;
    return w->n == w->most ? FP_UNWIND_TOO_DEEP : GO_ON;
}

static void add_frame(struct walk *w, uint64_t pc, int exact) {
    w->frames[w->n++] = (struct fp_unwind_frame){pc, w->place.word, !exact};
}

/* The rule of a frame with a known place; a GAP if nothing describes it, with the reason in *why_not. */
static const struct fp_unwind_rule *rule_of_place(struct walk *w, uint64_t look, int exact, int *why_not) {
    static const struct fp_unwind_rule gap = {.kind = FP_UNWIND_GAP};
    *why_not = w->place.table ? FP_UNWIND_NO_TABLE : w->place.why_not;
    return w->place.table ? rule_at(w, look, exact) : &gap;
}

/* The end of a stack where nothing describes the code.  Both ABIs mark the outermost frame with the frame pointer 0:
 * the dynamic linker and new threads begin in code without a table. */
static int end_of_gap(const struct frame *f, int why_not) {
    return why_not == FP_UNWIND_NO_TABLE && f->has_fp && !f->fp ? FP_UNWIND_COMPLETE : why_not;
}

/* Unwinds by rules only.  An enum fp_unwind_end, RESTART or ASK. */
static int unwind_fast(struct walk *w, struct frame f) {
    int status = place_at(w, f.pc);
    if (status == ASK) return ASK;
    add_frame(w, f.pc, 1);
    if (!status) return FP_UNWIND_NO_MAP;
    for (;;) {
        int why_not;
        const uint64_t pc = f.pc, sp = f.sp;
        const struct fp_unwind_rule *rule = rule_of_place(w, looked_up(pc, f.exact), f.exact, &why_not);
        if (FP_UNLIKELY(rule->kind == FP_UNWIND_GAP))
            status = step_by_frame_pointer(w, &f, end_of_gap(&f, why_not));
        else
            status = step(w, &f, rule);
        if (status == GO_ON) status = check_caller(w, pc, sp, f.pc, f.sp, f.exact);
        if (status != GO_ON) return status;
        add_frame(w, f.pc, f.exact);
    }
}

/* ---- with all registers -------------------------------------------------- */

struct full {
    struct fp_cfi_run run;
    struct fp_cfi_section section;
    struct fp_cfi_cie cie;
};

static int is_known(const struct fp_unwind_registers *r, uint64_t reg) {
    return reg < FP_UNWIND_MOST_REGISTERS && r->known >> reg & 1;
}

static void set_register(struct fp_unwind_registers *r, uint32_t reg, uint64_t value) {
    r->values[reg] = value;
    r->known |= (uint64_t)1 << reg;
}

/* Recovers a register of the caller.  FP_UNWIND_COMPLETE, or why it is unknown. */
static enum fp_unwind_end recover(const struct walk *w, const struct full *x, const struct fp_unwind_registers *old,
                                  uint64_t cfa, uint32_t reg, struct fp_unwind_registers *new) {
    const struct fp_cfi_value *v = &x->run.state.columns[reg];
    enum fp_unwind_end end = FP_UNWIND_COMPLETE;
    uint64_t value = 0, address = cfa + (uint64_t)v->value;
    if (v->how == FP_CFI_UNSET) return FP_UNWIND_COMPLETE;
    new->known &= ~((uint64_t)1 << reg);
    if (v->how == FP_CFI_UNDEFINED) return FP_UNWIND_BROKEN;
    if (v->how == FP_CFI_SAME || v->how == FP_CFI_REGISTER) {
        const uint32_t from = v->how == FP_CFI_SAME ? reg : v->n;
        if (!is_known(old, from)) return FP_UNWIND_BROKEN;
        value = old->values[from];
    } else if (v->how == FP_CFI_IS_CFA) {
        value = address;
    } else {
        if (v->how != FP_CFI_AT_CFA)
            end = fp_unwind_evaluate(fp_unwind_block(&x->section, v), old, &w->words, &cfa, &address);
        if (end != FP_UNWIND_COMPLETE) return end;
        value = address;
        if (v->how == FP_CFI_AT_CFA && w->n == 1 && address < w->words.sp && reg != w->machine->return_register &&
            is_known(old, reg))
            value = old->values[reg]; /* already popped: see set_frame_pointer in unwind_rule.c */
        else if (v->how != FP_CFI_IS_BLOCK && !fp_unwind_word(&w->words, address, &value))
            return FP_UNWIND_OUTSIDE;
    }
    set_register(new, reg, value);
    return FP_UNWIND_COMPLETE;
}

/* Recovers the caller's registers by the program of a function.  GO_ON or the end. */
static int step_full(const struct walk *w, const struct full *x, int exact, struct fp_unwind_registers *r) {
    const struct fp_unwind_machine *m = w->machine;
    const struct fp_cfi_value *cfa_rule = &x->run.state.cfa, *ra = &x->run.state.columns[m->return_register];
    struct fp_unwind_registers new = *r;
    enum fp_unwind_end end = FP_UNWIND_COMPLETE, lost = FP_UNWIND_COMPLETE;
    uint64_t cfa = 0;
    if (ra->how == FP_CFI_UNDEFINED) return FP_UNWIND_COMPLETE;
    if (cfa_rule->how == FP_CFI_UNSET) return FP_UNWIND_BROKEN;
    if (cfa_rule->how == FP_CFI_IS_BLOCK) {
        end = fp_unwind_evaluate(fp_unwind_block(&x->section, cfa_rule), r, &w->words, NULL, &cfa);
        if (end != FP_UNWIND_COMPLETE) return (int)end;
    } else {
        if (!is_known(r, cfa_rule->n)) return FP_UNWIND_BROKEN;
        cfa = r->values[cfa_rule->n] + (uint64_t)cfa_rule->value;
    }
    new.known &= m->kept;
    set_register(&new, m->sp, cfa);
    for (uint32_t reg = 0; reg < m->n_registers; reg++) {
        end = recover(w, x, r, cfa, reg, &new);
        if (reg == m->return_register) lost = end;
    }
    if (ra->how == FP_CFI_UNSET && !(m->has_link && exact)) return FP_UNWIND_BROKEN;
    if (lost != FP_UNWIND_COMPLETE) return (int)lost;
    if (!is_known(&new, m->return_register)) return FP_UNWIND_BROKEN;
    if (!is_known(&new, m->sp)) set_register(&new, m->sp, cfa);
    set_register(&new, m->pc, new.values[m->return_register] & m->address_bits);
    *r = new;
    return GO_ON;
}

static struct frame frame_of(const struct fp_unwind_machine *m, const struct fp_unwind_registers *r, int exact) {
    return (struct frame){.pc = r->values[m->pc],
                          .sp = r->values[m->sp],
                          .fp = r->values[m->fp],
                          .link = r->values[m->return_register],
                          .exact = exact,
                          .has_fp = is_known(r, m->fp),
                          .has_link = m->has_link && exact && is_known(r, m->return_register)};
}

/* Steps by a rule or by the frame pointer, where no program covers the code.  Other registers stay. */
static int step_by_rule(const struct walk *w, const struct fp_unwind_rule *rule, int why_not, int *exact,
                        struct fp_unwind_registers *r) {
    const struct fp_unwind_machine *m = w->machine;
    struct frame f = frame_of(m, r, *exact);
    const int status =
        rule->kind == FP_UNWIND_GAP ? step_by_frame_pointer(w, &f, end_of_gap(&f, why_not)) : step(w, &f, rule);
    if (status != GO_ON) return status == RESTART ? FP_UNWIND_BROKEN : status;
    r->known &= rule->kind == FP_UNWIND_SIGNAL ? 0 : m->kept & ~((uint64_t)1 << m->fp);
    set_register(r, m->sp, f.sp);
    if (f.has_link) set_register(r, m->return_register, f.link);
    if (f.has_fp) set_register(r, m->fp, f.fp);
    set_register(r, m->pc, f.pc);
    *exact = f.exact;
    return GO_ON;
}

/* Unwinds again from the leaf, by programs.  An enum fp_unwind_end or ASK. */
static int unwind_full(struct walk *w, struct fp_unwind_registers r) {
    const struct fp_unwind_machine *m = w->machine;
    struct full x;
    size_t left = FP_UNWIND_MOST_RUN;
    int exact = 1, status = place_at(w, r.values[m->pc]);
    w->n = 0;
    if (status == ASK) return ASK;
    add_frame(w, r.values[m->pc], 1);
    if (!status) return FP_UNWIND_NO_MAP;
    for (;;) {
        int why_not, found = 0;
        const uint64_t pc = r.values[m->pc], sp = r.values[m->sp], look = looked_up(pc, exact);
        const struct fp_unwind_rule *rule = rule_of_place(w, look, exact, &why_not);
        if (rule->kind != FP_UNWIND_GAP)
            found = fp_unwind_table_run(w->place.table, look - w->place.start + w->place.offset, exact, &x.run,
                                        &x.section, &x.cie, &left);
        if (found > 0) {
            status = step_full(w, &x, exact, &r);
            exact = x.cie.is_signal;
        } else {
            status = found < 0 ? FP_UNWIND_BROKEN : step_by_rule(w, rule, why_not, &exact, &r);
        }
        if (status == GO_ON) status = check_caller(w, pc, sp, r.values[m->pc], r.values[m->sp], exact);
        if (status != GO_ON) return status;
        add_frame(w, r.values[m->pc], exact);
    }
}

/* ---- samples ------------------------------------------------------------- */

/* The registers of a sample by DWARF number. */
static struct fp_unwind_registers registers_of(const struct fp_unwind_machine *m, const struct fp_unwind_sample *s) {
    struct fp_unwind_registers r = {0};
    for (uint32_t reg = 0; reg < m->n_registers; reg++) {
        const uint64_t bit = (uint64_t)1 << m->perf_bits[reg];
        if (!(s->mask & bit)) continue;
        const unsigned before = (unsigned)__builtin_popcountll(s->mask & (bit - 1));
        set_register(&r, reg, fp_u64(s->registers + before * 8));
    }
    return r;
}

int fp_unwind_stack(struct fp_unwind *u, const struct fp_unwind_sample *sample, fp_unwind_finder find, void *self,
                    struct fp_unwind_frame *frames, uint32_t most, uint32_t *n, uint32_t *why) {
    const struct fp_unwind_machine *m = u->machine;
    const struct fp_unwind_registers r = registers_of(m, sample);
    *n = 0;
    *why = FP_UNWIND_BROKEN;
    if (!is_known(&r, m->pc) || !is_known(&r, m->sp) || !most) return FP_DONE;
    struct walk w = {.u = u,
                     .machine = m,
                     .words = {r.values[m->sp], sample->stack, sample->stack_nbytes},
                     .find = find,
                     .self = self,
                     .frames = frames,
                     .most = most};
    int end = unwind_fast(&w, frame_of(m, &r, 1));
    if (end == RESTART) end = unwind_full(&w, r);
    if (end == ASK) return FP_NEEDS;
    *n = w.n;
    *why = (uint32_t)end;
    return FP_DONE;
}
