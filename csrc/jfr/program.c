/* Compiles types to programs: a few operations read or skip a value.
 *
 *   StackTrace  truncated boolean, frames StackFrame[]
 *   StackFrame  method key, line int, bytecode int, type key
 *   program     get byte into slot 0 | mark slot 1 | a count, then that many times 4 varints
 */
#include "jfr/private.h"

enum { MOST_OPS = 1 << 14 }; /* per type, and fields in fields; JDK 25's have up to 60 */

struct fp_jfr_compiler {
    struct fp_jfr_reader *r;
    const char *what; /* the error, and its type */
    uint64_t got;
    uint32_t first;
    uint32_t n_values; /* also those that one operation skips together with others, or none */
    const struct fp_jfr_want *wants;
    uint32_t n_wants;
    uint32_t outer; /* the name of a field of the type itself that is a structure; 0: none */
};

static void emit(struct fp_jfr_compiler *c, unsigned code, unsigned slot, unsigned width, unsigned unit, uint32_t n) {
    struct fp_jfr_reader *r = c->r;
    if (code <= FP_JFR_OP_BYTES && r->programs.n_ops > r->programs.barrier &&
        r->programs.ops[r->programs.n_ops - 1].code == code) {
        r->programs.ops[r->programs.n_ops - 1].n += n;
        return;
    }
    if (r->programs.n_ops - c->first >= MOST_OPS) {
        c->what = "the size of a type";
        return;
    }
    FP_PUSH(r->programs.ops, r->programs.n_ops, r->programs.cap_ops) = (struct fp_jfr_op){
        .code = (uint8_t)code, .slot = (uint8_t)slot, .width = (uint8_t)width, .unit = (uint8_t)unit, .n = n};
}

enum { NO_SLOT = 255 };

static void skip_number(struct fp_jfr_compiler *c, unsigned width) {
    if (c->r->chunk.compressed)
        emit(c, FP_JFR_OP_VARINTS, 0, 0, 0, 1);
    else
        emit(c, FP_JFR_OP_BYTES, 0, 0, 0, width);
}

static void compile_primitive(struct fp_jfr_compiler *c, unsigned primitive, unsigned slot, unsigned unit) {
    static const uint8_t WIDTH[] = {
        [FP_JFR_BOOLEAN] = 1, [FP_JFR_BYTE] = 1,  [FP_JFR_SHORT] = 2,  [FP_JFR_CHAR] = 2,  [FP_JFR_INT] = 4,
        [FP_JFR_LONG] = 8,    [FP_JFR_FLOAT] = 4, [FP_JFR_DOUBLE] = 8, [FP_JFR_STRING] = 0};
    const int is_skipped = slot == NO_SLOT;
    switch (primitive) {
        case FP_JFR_STRING:
            emit(c, is_skipped ? FP_JFR_OP_TEXT : FP_JFR_OP_GET_TEXT, slot, 0, 0, c->r->metadata.string_type);
            return;
        case FP_JFR_BOOLEAN:
        case FP_JFR_BYTE: emit(c, is_skipped ? FP_JFR_OP_BYTES : FP_JFR_OP_GET_BYTE, slot, 0, 0, 1); return;
        case FP_JFR_FLOAT: emit(c, is_skipped ? FP_JFR_OP_BYTES : FP_JFR_OP_GET_FLOAT, slot, 0, unit, 4); return;
        case FP_JFR_DOUBLE: emit(c, is_skipped ? FP_JFR_OP_BYTES : FP_JFR_OP_GET_DOUBLE, slot, 0, unit, 8); return;
        default:
            if (is_skipped)
                skip_number(c, WIDTH[primitive]);
            else
                emit(c, primitive == FP_JFR_CHAR ? FP_JFR_OP_GET_CHAR : FP_JFR_OP_GET_INT, slot, WIDTH[primitive], unit,
                     0);
    }
}

static void compile_field(struct fp_jfr_compiler *c, const struct fp_jfr_field *field, unsigned slot, unsigned depth);

/* Of a field, or (inner) one of the structure that it is. */
static unsigned slot_of(const struct fp_jfr_compiler *c, uint32_t word, uint32_t inner) {
    if (word >= FP_JFR_WORDS || inner >= FP_JFR_WORDS) return NO_SLOT;
    for (uint32_t i = 0; i < c->n_wants; i++)
        if (c->wants[i].word == FP_JFR_IN(word, inner)) return c->wants[i].slot;
    return NO_SLOT;
}

static void compile_value(struct fp_jfr_compiler *c, uint32_t type, uint64_t type_id, unsigned slot, unsigned unit,
                          unsigned depth) {
    struct fp_jfr_reader *r = c->r;
    if (!type || depth > FP_JFR_MOST_DEPTH) {
        c->what = type ? "a type that contains itself" : "a type that the metadata does not describe";
        c->got = type_id;
    }
    if (!c->what && ++c->n_values > MOST_OPS) c->what = "the size of a type";
    if (c->what) return;
    const struct fp_jfr_type *t = &r->metadata.types[type];
    if (t->primitive) {
        compile_primitive(c, t->primitive, slot, unit);
        return;
    }
    if (slot != NO_SLOT) emit(c, FP_JFR_OP_MARK, slot, 0, 0, type);
    const uint32_t outer = c->outer;
    c->outer = 0;
    for (uint32_t i = 0; i < t->n_fields && !c->what; i++) {
        const struct fp_jfr_field *field = &r->metadata.fields[t->field + i];
        compile_field(c, field, outer ? slot_of(c, outer, field->name) : NO_SLOT, depth + 1);
    }
}

/* Closes a loop: the operations after it are those of an element.  Simple ones become one operation for all. */
static void compile_loop(struct fp_jfr_compiler *c, uint32_t loop) {
    struct fp_jfr_reader *r = c->r;
    const uint32_t n = r->programs.n_ops - loop - 1;
    struct fp_jfr_op *op = &r->programs.ops[loop];
    r->programs.barrier = r->programs.n_ops;
    op->n = n;
    if (n > 1 || (n && r->programs.ops[loop + 1].code > FP_JFR_OP_BYTES)) return;
    const int is_varints = n && r->programs.ops[loop + 1].code == FP_JFR_OP_VARINTS;
    op->code = is_varints ? FP_JFR_OP_ARRAY_VARINTS : FP_JFR_OP_ARRAY_BYTES;
    op->n = n ? r->programs.ops[loop + 1].n : 0;
    r->programs.n_ops = r->programs.barrier = loop + 1;
}

static void compile_field(struct fp_jfr_compiler *c, const struct fp_jfr_field *field, unsigned slot, unsigned depth) {
    struct fp_jfr_reader *r = c->r;
    if (!field->array && !field->pooled) {
        compile_value(c, field->type, field->type_id, slot, field->unit, depth);
        return;
    }
    if (!field->array) {
        if (slot == NO_SLOT)
            skip_number(c, 8);
        else
            emit(c, FP_JFR_OP_GET_KEY, slot, 8, 0, field->type);
        return;
    }
    if (slot != NO_SLOT) emit(c, FP_JFR_OP_MARK_ARRAY, slot, field->pooled, 0, field->type);
    const uint32_t loop = r->programs.n_ops;
    emit(c, FP_JFR_OP_ARRAY, 0, 0, 0, 0);
    r->programs.barrier = r->programs.n_ops;
    if (field->pooled)
        skip_number(c, 8);
    else
        compile_value(c, field->type, field->type_id, NO_SLOT, 0, depth);
    if (!c->what) compile_loop(c, loop);
}

/* Whether thread, state and class are keys or absent. */
static int has_keys(const struct fp_jfr_reader *r, const struct fp_jfr_program *program) {
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->programs.ops[program->op + i];
        if (op->code >= FP_JFR_OP_GET_INT && op->code != FP_JFR_OP_GET_KEY && op->slot >= FP_JFR_EVENT_THREAD &&
            op->slot <= FP_JFR_EVENT_CLASS)
            return 0;
    }
    return 1;
}

/* Whether a program is plain, and of what. */
static void find_shape(const struct fp_jfr_reader *r, struct fp_jfr_program *program) {
    uint64_t varints = 0, bytes = 0;
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->programs.ops[program->op + i];
        switch (op->code) {
            case FP_JFR_OP_VARINTS: varints += op->n; break;
            case FP_JFR_OP_BYTES: bytes += op->n; break;
            case FP_JFR_OP_GET_BYTE: bytes++; break;
            case FP_JFR_OP_GET_INT:
            case FP_JFR_OP_GET_KEY: varints++; break;
            default: return;
        }
    }
    const uint64_t most = varints * FP_JFR_LONGEST + bytes;
    if (most > UINT32_MAX) return;
    program->is_plain = 1;
    program->most = (uint32_t)most;
    program->varints = bytes ? 0 : (uint32_t)varints;
}

const struct fp_jfr_program *fp_jfr_program_of(struct fp_jfr_reader *r, uint32_t type) {
    struct fp_jfr_type *t = &r->metadata.types[type];
    if (t->program) return &r->programs.list[t->program - 1];
    fp_array_room(&r->programs.list, &r->programs.cap, (uint64_t)r->programs.n + 1, sizeof *r->programs.list);
    struct fp_jfr_compiler c = {.r = r, .first = r->programs.n_ops, .got = t->id};
    struct fp_jfr_want scratch[16];
    c.wants = fp_jfr_wants(t, &c.n_wants, scratch);
    r->programs.barrier = r->programs.n_ops;
    if (t->primitive) compile_primitive(&c, t->primitive, t->role == FP_JFR_TEXT ? 0 : NO_SLOT, 0);
    for (uint32_t i = 0; i < t->n_fields && !c.what; i++) {
        const struct fp_jfr_field *field = &r->metadata.fields[t->field + i];
        const int is_first_text = t->role == FP_JFR_TEXT && !c.wants && !i;
        c.outer = t->counter && !field->array && !field->pooled ? field->name : 0;
        compile_field(&c, field, is_first_text ? 0 : slot_of(&c, field->name, 0), 1);
    }
    struct fp_jfr_program *program = &r->programs.list[r->programs.n];
    *program = (struct fp_jfr_program){
        .op = c.first, .n_ops = r->programs.n_ops - c.first, .is_bad = c.what != NULL, .what = c.what, .got = c.got};
    for (uint32_t i = 0; i < program->n_ops; i++)
        if (r->programs.ops[program->op + i].code >= FP_JFR_OP_GET_INT) program->n_until_set = i + 1;
    program->has_keys = has_keys(r, program);
    if (r->chunk.compressed && !c.what) find_shape(r, program);
    t->program = ++r->programs.n;
    return program;
}

/* ---- running ---- */

static const uint8_t *skip_bytes(const uint8_t *p, const uint8_t *end, uint64_t n) {
    return (uint64_t)(end - p) < n ? NULL : p + n;
}

/* The end of a string. */
static const uint8_t *skip_text(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end) {
    uint64_t n;
    if (p == end) return NULL;
    switch (*p++) {
        case 0:
        case 1: return p;
        case 2: return fp_jfr_number(r, p, end, 8, &n);
        case 3:
        case 5: p = fp_jfr_number(r, p, end, 4, &n); return p ? skip_bytes(p, end, n) : NULL;
        case 4:
            if (!(p = fp_jfr_number(r, p, end, 4, &n)) || n > (uint64_t)(end - p)) return NULL;
            return r->chunk.compressed ? fp_jfr_skip_varints(p, end, n) : skip_bytes(p, end, 2 * n);
        default: return NULL;
    }
}

/* The value of a number of a slot's operation. */
static const uint8_t *get_number(const struct fp_jfr_reader *r, const struct fp_jfr_op *op, const uint8_t *p,
                                 const uint8_t *end, struct fp_jfr_slot *slot) {
    uint64_t v = 0;
    if (op->code == FP_JFR_OP_GET_BYTE) {
        if (p == end) return NULL;
        v = *p++;
    } else if (!(p = fp_jfr_number(r, p, end, op->width, &v))) {
        return NULL;
    }
    if (op->code == FP_JFR_OP_GET_INT) v = fp_jfr_narrow(v, op->width);
    if (op->code == FP_JFR_OP_GET_CHAR) v &= 0xffff;
    slot->kind = FP_JFR_IS_NUMBER;
    slot->unit = op->unit;
    slot->n = v;
    return p;
}

static const uint8_t *get_real(const struct fp_jfr_op *op, const uint8_t *p, const uint8_t *end,
                               struct fp_jfr_slot *slot) {
    if ((size_t)(end - p) < op->n) return NULL;
    slot->kind = FP_JFR_IS_REAL;
    slot->unit = op->unit;
    if (op->code == FP_JFR_OP_GET_FLOAT) {
        const uint32_t bits = fp_u32s(p, 1);
        float real;
        memcpy(&real, &bits, 4);
        slot->real = (double)real;
    } else {
        const uint64_t bits = fp_u64s(p, 1);
        memcpy(&slot->real, &bits, 8);
    }
    return p + op->n;
}

static const uint8_t *run(const struct fp_jfr_reader *r, const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                          const uint8_t *end, struct fp_jfr_slot *slots);

static const uint8_t *run_array(const struct fp_jfr_reader *r, const struct fp_jfr_op *op, const uint8_t *p,
                                const uint8_t *end) {
    uint64_t n;
    if (!(p = fp_jfr_number(r, p, end, 4, &n)) || n > INT32_MAX) return NULL;
    /* elements have at least a byte, unless their type has no fields */
    if (op->n && n > (uint64_t)(end - p)) return NULL;
    if (op->code == FP_JFR_OP_ARRAY_VARINTS) return fp_jfr_skip_varints(p, end, n * op->n);
    if (op->code == FP_JFR_OP_ARRAY_BYTES) return skip_bytes(p, end, n * op->n);
    while (op->n && n-- && p) p = run(r, op + 1, op->n, p, end, NULL);
    return p;
}

static const uint8_t *run(const struct fp_jfr_reader *r, const struct fp_jfr_op *op, uint32_t n, const uint8_t *p,
                          const uint8_t *end, struct fp_jfr_slot *slots) {
    const struct fp_jfr_op *stop = op + n;
    for (; op < stop && p; op++) {
        switch (op->code) {
            case FP_JFR_OP_VARINTS: p = fp_jfr_skip_varints(p, end, op->n); break;
            case FP_JFR_OP_BYTES: p = skip_bytes(p, end, op->n); break;
            case FP_JFR_OP_TEXT: p = skip_text(r, p, end); break;
            case FP_JFR_OP_ARRAY_VARINTS:
            case FP_JFR_OP_ARRAY_BYTES: p = run_array(r, op, p, end); break;
            case FP_JFR_OP_ARRAY:
                p = run_array(r, op, p, end);
                op += op->n;
                break;
            case FP_JFR_OP_GET_INT:
            case FP_JFR_OP_GET_CHAR:
            case FP_JFR_OP_GET_BYTE: p = get_number(r, op, p, end, &slots[op->slot]); break;
            case FP_JFR_OP_GET_FLOAT:
            case FP_JFR_OP_GET_DOUBLE: p = get_real(op, p, end, &slots[op->slot]); break;
            case FP_JFR_OP_GET_KEY:
                slots[op->slot].kind = FP_JFR_IS_KEY;
                slots[op->slot].type = op->n;
                p = fp_jfr_number(r, p, end, 8, &slots[op->slot].n);
                break;
            case FP_JFR_OP_GET_TEXT:
                slots[op->slot] = (struct fp_jfr_slot){.p = p, .kind = FP_JFR_IS_TEXT, .type = op->n};
                p = skip_text(r, p, end);
                break;
            default: /* a mark */
                slots[op->slot] =
                    (struct fp_jfr_slot){.p = p,
                                         .type = op->n,
                                         .kind = op->code == FP_JFR_OP_MARK ? FP_JFR_IS_VALUE : FP_JFR_IS_ARRAY,
                                         .of_keys = op->width};
        }
    }
    return p;
}

const uint8_t *fp_jfr_run(const struct fp_jfr_reader *r, const struct fp_jfr_program *program, const uint8_t *p,
                          const uint8_t *end, struct fp_jfr_slot *slots) {
    if (program->is_bad) return NULL;
    return program->n_ops ? run(r, r->programs.ops + program->op, program->n_ops, p, end, slots) : p;
}

void fp_jfr_plain_slots(const struct fp_jfr_reader *r, const struct fp_jfr_program *program,
                        struct fp_jfr_slot *slots) {
    memset(slots, 0, FP_JFR_SLOTS * sizeof *slots);
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->programs.ops[program->op + i];
        if (op->code == FP_JFR_OP_GET_KEY)
            slots[op->slot] = (struct fp_jfr_slot){.kind = FP_JFR_IS_KEY, .type = op->n};
        else if (op->code >= FP_JFR_OP_GET_INT)
            slots[op->slot] = (struct fp_jfr_slot){.kind = FP_JFR_IS_NUMBER, .unit = op->unit};
    }
}

const uint8_t *fp_jfr_decode(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                             struct fp_jfr_slot *slots) {
    const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
    memset(slots, 0, FP_JFR_SLOTS * sizeof *slots);
    return program ? fp_jfr_run(r, program, p, end, slots) : NULL;
}

int fp_jfr_peek(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                struct fp_jfr_slot *slots) {
    const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
    memset(slots, 0, FP_JFR_SLOTS * sizeof *slots);
    if (!program || program->is_bad) return 0;
    return !program->n_until_set || run(r, r->programs.ops + program->op, program->n_until_set, p, end, slots) != NULL;
}
