#include "symbols/unwind_machine.h"

enum { DEPTH = 64, MOST_STEPS = 1000 };

enum operation {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_REG0 = 0x50,
    OP_REG31 = 0x6f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96
};

struct evaluation {
    struct fp_dwarf_cursor c;
    const uint8_t *start;
    const struct fp_unwind_registers *registers;
    const struct fp_unwind_words *words;
    uint64_t stack[DEPTH];
    uint32_t n;
    enum fp_unwind_end end; /* FP_UNWIND_COMPLETE: so far */
};

static uint64_t fail(struct evaluation *m) {
    m->end = FP_UNWIND_BROKEN;
    return 0;
}

static void push(struct evaluation *m, uint64_t v) {
    if (m->n == DEPTH)
        fail(m);
    else
        m->stack[m->n++] = v;
}

static uint64_t pop(struct evaluation *m) {
    return m->n ? m->stack[--m->n] : fail(m);
}

/* The entry `depth` below the top. */
static uint64_t pick(struct evaluation *m, uint64_t depth) {
    return depth < m->n ? m->stack[m->n - 1 - depth] : fail(m);
}

static uint64_t value_of(struct evaluation *m, uint64_t reg) {
    if (reg >= FP_UNWIND_MOST_REGISTERS || !(m->registers->known >> reg & 1)) return fail(m);
    return m->registers->values[reg];
}

static uint64_t load(struct evaluation *m, uint64_t address, uint64_t nbytes) {
    uint64_t v = 0;
    if (!nbytes || nbytes > 8) return fail(m);
    if (m->end != FP_UNWIND_COMPLETE) return 0;
    const uint8_t *p = fp_unwind_copied(m->words, address, nbytes);
    if (!p) {
        m->end = FP_UNWIND_OUTSIDE;
        return 0;
    }
    memcpy(&v, p, nbytes);
    return v;
}

static uint64_t divided(struct evaluation *m, uint64_t a, uint64_t b) {
    if (!b) return fail(m);
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shifted(unsigned op, uint64_t a, uint64_t by) {
    if (op == OP_SHRA) return (uint64_t)((int64_t)a >> (by < 64 ? by : 63));
    if (by > 63) return 0;
    return op == OP_SHL ? a << by : a >> by;
}

static uint64_t compared(unsigned op, int64_t a, int64_t b) {
    switch (op) {
        case OP_EQ: return a == b;
        case OP_GE: return a >= b;
        case OP_GT: return a > b;
        case OP_LE: return a <= b;
        case OP_LT: return a < b;
        default: return a != b;
    }
}

static void run_two(struct evaluation *m, unsigned op) {
    const uint64_t b = pop(m), a = pop(m);
    switch (op) {
        case OP_AND: push(m, a & b); break;
        case OP_DIV: push(m, divided(m, a, b)); break;
        case OP_MINUS: push(m, a - b); break;
        case OP_MOD: push(m, b ? a % b : fail(m)); break;
        case OP_MUL: push(m, a * b); break;
        case OP_OR: push(m, a | b); break;
        case OP_PLUS: push(m, a + b); break;
        case OP_SHL:
        case OP_SHR:
        case OP_SHRA: push(m, shifted(op, a, b)); break;
        case OP_XOR: push(m, a ^ b); break;
        default: push(m, compared(op, (int64_t)a, (int64_t)b));
    }
}

static void run_stack(struct evaluation *m, unsigned op) {
    uint64_t top, second, third;
    switch (op) {
        case OP_DUP: push(m, pick(m, 0)); break;
        case OP_DROP: pop(m); break;
        case OP_OVER: push(m, pick(m, 1)); break;
        case OP_PICK: push(m, pick(m, fp_dwarf_take(&m->c, 1))); break;
        case OP_SWAP:
            top = pop(m), second = pop(m);
            push(m, top), push(m, second);
            break;
        default: /* OP_ROT */
            top = pop(m), second = pop(m), third = pop(m);
            push(m, top), push(m, third), push(m, second);
    }
}

static void run_constant(struct evaluation *m, unsigned op) {
    struct fp_dwarf_cursor *c = &m->c;
    switch (op) {
        case OP_CONST1U: push(m, fp_dwarf_take(c, 1)); break;
        case OP_CONST1S: push(m, (uint64_t)(int8_t)fp_dwarf_take(c, 1)); break;
        case OP_CONST2U: push(m, fp_dwarf_take(c, 2)); break;
        case OP_CONST2S: push(m, (uint64_t)(int16_t)fp_dwarf_take(c, 2)); break;
        case OP_CONST4U: push(m, fp_dwarf_take(c, 4)); break;
        case OP_CONST4S: push(m, (uint64_t)(int32_t)fp_dwarf_take(c, 4)); break;
        case OP_CONSTU: push(m, fp_dwarf_take_uleb(c)); break;
        case OP_CONSTS: push(m, (uint64_t)fp_dwarf_take_sleb(c)); break;
        default: push(m, fp_dwarf_take(c, 8)); /* OP_ADDR, OP_CONST8U, OP_CONST8S */
    }
}

static void run_jump(struct evaluation *m, unsigned op) {
    const int64_t by = (int16_t)fp_dwarf_take(&m->c, 2);
    if (op == OP_BRA && !pop(m)) return;
    if (by < m->start - m->c.p || by > m->c.end - m->c.p)
        fail(m);
    else
        m->c.p += by;
}

static void run_other(struct evaluation *m, unsigned op) {
    uint64_t v;
    switch (op) {
        case OP_DEREF: push(m, load(m, pop(m), 8)); break;
        case OP_DEREF_SIZE: push(m, load(m, pop(m), fp_dwarf_take(&m->c, 1))); break;
        case OP_BREGX:
            v = value_of(m, fp_dwarf_take_uleb(&m->c)), push(m, v + (uint64_t)fp_dwarf_take_sleb(&m->c));
            break;
        case OP_ABS: v = pop(m), push(m, v >> 63 ? 0 - v : v); break;
        case OP_NEG: push(m, 0 - pop(m)); break;
        case OP_NOT: push(m, ~pop(m)); break;
        case OP_PLUS_UCONST: v = pop(m), push(m, v + fp_dwarf_take_uleb(&m->c)); break;
        case OP_SKIP:
        case OP_BRA: run_jump(m, op); break;
        case OP_NOP: break;
        default: fail(m);
    }
}

static void run_one(struct evaluation *m) {
    const unsigned op = *m->c.p++;
    if (op >= OP_LIT0 && op <= OP_LIT31)
        push(m, op - OP_LIT0);
    else if (op >= OP_REG0 && op <= OP_REG31)
        push(m, value_of(m, op - OP_REG0));
    else if (op >= OP_BREG0 && op <= OP_BREG31)
        push(m, value_of(m, op - OP_BREG0) + (uint64_t)fp_dwarf_take_sleb(&m->c));
    else if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONSTS))
        run_constant(m, op);
    else if (op >= OP_DUP && op <= OP_ROT)
        run_stack(m, op);
    else if (op >= OP_AND && op <= OP_NE && op != OP_NEG && op != OP_NOT && op != OP_PLUS_UCONST && op != OP_BRA)
        run_two(m, op);
    else
        run_other(m, op);
}

enum fp_unwind_end fp_unwind_evaluate(struct fp_dwarf_bytes block, const struct fp_unwind_registers *registers,
                                      const struct fp_unwind_words *words, const uint64_t *pushed, uint64_t *result) {
    struct evaluation m = {.c = {block.p, block.p + block.n, 0, 0},
                           .start = block.p,
                           .registers = registers,
                           .words = words,
                           .end = FP_UNWIND_COMPLETE};
    if (pushed) push(&m, *pushed);
    uint32_t steps = 0;
    while (m.c.p < m.c.end && m.end == FP_UNWIND_COMPLETE) {
        if (++steps > MOST_STEPS) fail(&m);
        run_one(&m);
        if (m.c.bad) fail(&m);
    }
    *result = m.end == FP_UNWIND_COMPLETE ? pop(&m) : 0;
    return m.end;
}
