#include "symbols/cfi.h"

enum { LONGEST_CIE = 1 << 10 }; /* bytes of its program; real ones have less than 50 */

/* How pointers are encoded: the format in the low 4 bits, what they are relative to in the next 3. */
enum { FORMAT = 0x0f, BASE = 0x70, INDIRECT = 0x80, OMITTED = 0xff };
enum { ABSOLUTE = 0, PC_RELATIVE = 0x10, TEXT_RELATIVE = 0x20, DATA_RELATIVE = 0x30, FUNCTION_RELATIVE = 0x40 };
enum { ALIGNED = 0x50 };
enum { WORD = 0, ULEB = 1, U16 = 2, U32 = 3, U64 = 4, SIGNED_WORD = 8, SLEB = 9, S16 = 10, S32 = 11, S64 = 12 };

int fp_unwind_read_file(const struct fp_unwind_file *f, uint64_t address, uint8_t *to, size_t n) {
    for (uint32_t i = 0; i < f->n_loads; i++) {
        const struct fp_unwind_load *l = &f->loads[i];
        const uint64_t within = address - l->address;
        if (address < l->address || within >= l->file_size || n > l->file_size - within) continue;
        if (l->offset > f->content.n || within > f->content.n - l->offset) continue;
        if (n > f->content.n - l->offset - within) continue;
        memcpy(to, f->content.p + l->offset + within, n);
        return 1;
    }
    return 0;
}

static uint64_t take_number(struct fp_dwarf_cursor *c, unsigned format, unsigned size) {
    switch (format) {
        case WORD: return fp_dwarf_take(c, size);
        case ULEB: return fp_dwarf_take_uleb(c);
        case U16: return fp_dwarf_take(c, 2);
        case U32: return fp_dwarf_take(c, 4);
        case U64:
        case S64: return fp_dwarf_take(c, 8);
        case SIGNED_WORD: return size == 8 ? fp_dwarf_take(c, 8) : (uint64_t)(int32_t)fp_dwarf_take(c, 4);
        case SLEB: return (uint64_t)fp_dwarf_take_sleb(c);
        case S16: return (uint64_t)(int16_t)fp_dwarf_take(c, 2);
        case S32: return (uint64_t)(int32_t)fp_dwarf_take(c, 4);
        default: return fp_dwarf_cursor_fail(c);
    }
}

/* Reads a pointer; 0 is never relative. */
static uint64_t take_pointer(const struct fp_cfi_section *s, struct fp_dwarf_cursor *c, unsigned encoding,
                             unsigned size) {
    if (encoding == OMITTED) return fp_dwarf_cursor_fail(c);
    uint64_t at = s->address + (uint64_t)(c->p - s->bytes.p);
    if ((encoding & BASE) == ALIGNED) {
        fp_dwarf_take_bytes(c, (0 - at) % size);
        encoding &= INDIRECT;
    }
    uint64_t v = take_number(c, encoding & FORMAT, size);
    if (v) switch (encoding & BASE) {
            case ABSOLUTE:
            case FUNCTION_RELATIVE: break; /* only used in exception tables, where the function is known */
            case PC_RELATIVE: v += at; break;
            case TEXT_RELATIVE: v += s->file->text; break;
            case DATA_RELATIVE: v += s->file->data; break;
            default: return fp_dwarf_cursor_fail(c);
        }
    if (size == 4) v = (uint32_t)v;
    if (encoding & INDIRECT) {
        uint8_t word[8] = {0};
        if (!fp_unwind_read_file(s->file, v, word, size)) return fp_dwarf_cursor_fail(c);
        v = fp_u64(word);
    }
    return v;
}

static struct fp_dwarf_cursor cursor(const struct fp_cfi_section *s, size_t from, size_t to) {
    return (struct fp_dwarf_cursor){s->bytes.p + from, s->bytes.p + to, 0, 0};
}

static size_t position(const struct fp_cfi_section *s, const struct fp_dwarf_cursor *c) {
    return (size_t)(c->p - s->bytes.p);
}

int fp_cfi_take_entry(const struct fp_cfi_section *s, size_t at, struct fp_cfi_entry *e) {
    uint64_t length = 0;
    struct fp_dwarf_cursor c = {0};
    while (!length) { /* linkers leave terminators between the entries of two files */
        if (at > s->bytes.n || s->bytes.n - at < 4) return 0;
        c = cursor(s, at, s->bytes.n);
        length = fp_dwarf_take(&c, 4);
        at += 4;
    }
    const int wide = length == UINT32_MAX;
    if (wide) length = fp_dwarf_take(&c, 8);
    if (c.bad || length > fp_dwarf_cursor_left(&c)) return -1;
    const size_t id_at = position(s, &c);
    e->next = id_at + (size_t)length;
    c.end = s->bytes.p + e->next;
    const uint64_t id = fp_dwarf_take(&c, wide && !s->is_eh ? 8 : 4);
    e->content = position(s, &c);
    e->is_cie = id == (s->is_eh ? 0 : wide ? UINT64_MAX : UINT32_MAX);
    const uint64_t cie = s->is_eh ? id_at - id : id;
    e->cie = cie < s->bytes.n ? (size_t)cie : s->bytes.n;
    if (c.bad) e->is_cie = -1; /* too short for an id */
    return 1;
}

/* Reads the letters of an augmentation that begins with z, and their data. */
static void take_augmentation(const struct fp_cfi_section *s, struct fp_dwarf_cursor *c, struct fp_dwarf_bytes letters,
                              struct fp_cfi_cie *cie) {
    for (size_t i = 1; i < letters.n; i++) switch (letters.p[i]) {
            case 'R': cie->encoding = (uint8_t)fp_dwarf_take(c, 1); break;
            case 'L': fp_dwarf_take(c, 1); break;
            case 'P': take_pointer(s, c, (unsigned)fp_dwarf_take(c, 1) & ~(unsigned)INDIRECT, cie->address_size); break;
            case 'S': cie->is_signal = 1; break;
            case 'B':
            case 'G': break; /* AArch64: the key that signs return addresses, tagged memory */
            default: return;
        }
}

static int run_program(struct fp_cfi_run *r, uint64_t *advance);

/* Reads the rest after the augmentation string.  0, or -1 for damage or an unknown augmentation. */
static int take_head(const struct fp_cfi_section *s, struct fp_dwarf_cursor *c, struct fp_cfi_cie *cie) {
    const uint64_t version = fp_dwarf_take(c, 1);
    const struct fp_dwarf_bytes letters = fp_dwarf_take_string(c);
    const int is_old = letters.n == 2 && !memcmp(letters.p, "eh", 2); /* gcc 2 */
    cie->has_length = letters.n && letters.p[0] == 'z';
    if (c->bad || (letters.n && !cie->has_length && !is_old)) return -1;
    cie->address_size = 8;
    if (version >= 4 && !s->is_eh) {
        cie->address_size = (uint8_t)fp_dwarf_take(c, 1);
        cie->segment_size = (uint8_t)fp_dwarf_take(c, 1);
    }
    if (cie->address_size != 4 && cie->address_size != 8) return -1;
    if (is_old) fp_dwarf_take_bytes(c, cie->address_size);
    cie->code_alignment = fp_dwarf_take_uleb(c);
    cie->data_alignment = fp_dwarf_take_sleb(c);
    cie->return_register = version == 1 ? fp_dwarf_take(c, 1) : fp_dwarf_take_uleb(c);
    if (cie->has_length) {
        const uint64_t n = fp_dwarf_take_uleb(c);
        struct fp_dwarf_cursor inner = *c;
        if (!fp_dwarf_take_bytes(c, n)) return -1;
        inner.end = c->p;
        take_augmentation(s, &inner, letters, cie);
        if (inner.bad) return -1;
    }
    return c->bad ? -1 : 0;
}

static void copy_state(struct fp_cfi_state *to, const struct fp_cfi_state *from, uint32_t n) {
    memcpy(to, from, offsetof(struct fp_cfi_state, columns) + n * sizeof from->columns[0]);
}

int fp_cfi_take_cie(const struct fp_cfi_section *s, const struct fp_cfi_columns *columns, size_t at,
                    struct fp_cfi_cie *cie) {
    struct fp_cfi_entry e;
    struct fp_cfi_run r;
    if (fp_cfi_take_entry(s, at, &e) != 1 || e.is_cie != 1) return -1;
    memset(cie, 0, sizeof *cie);
    r.c = cursor(s, e.content, e.next);
    if (take_head(s, &r.c, cie) || fp_dwarf_cursor_left(&r.c) > LONGEST_CIE) return -1;
    r.section = s;
    r.columns = columns;
    r.cie = NULL;
    r.made = cie;
    r.depth = 0;
    r.location = 0;
    memset(&r.state, 0, sizeof r.state);
    uint64_t advance = 0;
    while (r.c.p < r.c.end)
        if (run_program(&r, &advance) || advance) return -1;
    copy_state(&cie->first, &r.state, columns->n);
    return 0;
}

int fp_cfi_take_fde(const struct fp_cfi_section *s, const struct fp_cfi_entry *e, const struct fp_cfi_cie *cie,
                    struct fp_cfi_fde *fde) {
    struct fp_dwarf_cursor c = cursor(s, e->content, e->next);
    fp_dwarf_take_bytes(&c, cie->segment_size);
    if (s->is_eh) {
        fde->start = take_pointer(s, &c, cie->encoding, cie->address_size);
        fde->size = take_pointer(s, &c, cie->encoding & FORMAT, cie->address_size);
    } else {
        fde->start = fp_dwarf_take(&c, cie->address_size);
        fde->size = fp_dwarf_take(&c, cie->address_size);
    }
    if (cie->has_length) fp_dwarf_take_bytes(&c, fp_dwarf_take_uleb(&c));
    fde->program = position(s, &c);
    fde->end = e->next;
    return c.bad || fde->size > UINT64_MAX - fde->start ? -1 : 0;
}

/* ---- programs ------------------------------------------------------------ */

enum { ADVANCE = 0x40, OFFSET = 0x80, RESTORE = 0xc0, OPERAND = 0x3f };

enum instruction {
    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    IN_REGISTER = 0x09,
    REMEMBER = 0x0a,
    RESTORE_STATE = 0x0b,
    CFA = 0x0c,
    CFA_REGISTER = 0x0d,
    CFA_OFFSET = 0x0e,
    CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SIGNED = 0x11,
    CFA_SIGNED = 0x12,
    CFA_OFFSET_SIGNED = 0x13,
    VAL_OFFSET = 0x14,
    VAL_OFFSET_SIGNED = 0x15,
    VAL_EXPRESSION = 0x16,
    ADVANCE_8 = 0x1d,               /* MIPS */
    NEGATE_RA_STATE_PC = 0x2c,      /* AArch64: how return addresses are signed; they are stripped in any case */
    NEGATE_RA_STATE = 0x2d,         /* AArch64 */
    ARGUMENTS_SIZE = 0x2e,          /* GNU */
    OFFSET_EXTENDED_NEGATIVE = 0x2f /* GNU */
};

static struct fp_cfi_value *column(struct fp_cfi_run *r, uint64_t reg) {
    return &r->state.columns[reg < FP_CFI_NUMBERS ? r->columns->of[reg] : r->columns->n - 1];
}

static struct fp_cfi_value *take_column(struct fp_cfi_run *r) {
    return column(r, fp_dwarf_take_uleb(&r->c));
}

/* Reads the register of a CFA or a rule. */
static uint32_t take_register(struct fp_cfi_run *r) {
    const uint64_t n = fp_dwarf_take_uleb(&r->c);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int64_t scaled(const struct fp_cfi_run *r, uint64_t v) {
    return (int64_t)(v * (uint64_t)(r->cie ? r->cie : r->made)->data_alignment);
}

static void set(struct fp_cfi_value *to, enum fp_cfi_how how, int64_t value) {
    *to = (struct fp_cfi_value){value, 0, how};
}

static void set_block(struct fp_cfi_run *r, struct fp_cfi_value *to, enum fp_cfi_how how) {
    const uint64_t n = fp_dwarf_take_uleb(&r->c);
    const int64_t at = (int64_t)position(r->section, &r->c);
    fp_dwarf_take_bytes(&r->c, n);
    *to = (struct fp_cfi_value){at, (uint32_t)n, how};
    if (n > UINT32_MAX) fp_dwarf_cursor_fail(&r->c);
}

static void restore(struct fp_cfi_run *r, uint64_t reg) {
    if (!r->cie) {
        fp_dwarf_cursor_fail(&r->c); /* nothing to restore yet */
        return;
    }
    struct fp_cfi_value *to = column(r, reg);
    *to = r->cie->first.columns[to - r->state.columns];
}

static void run_cfa(struct fp_cfi_run *r, unsigned op) {
    struct fp_cfi_value *cfa = &r->state.cfa;
    if (op == CFA_EXPRESSION) {
        set_block(r, cfa, FP_CFI_IS_BLOCK);
        return;
    }
    if (op == CFA || op == CFA_SIGNED) {
        cfa->how = FP_CFI_REGISTER;
        cfa->n = take_register(r);
    } else if (cfa->how != FP_CFI_REGISTER) {
        fp_dwarf_cursor_fail(&r->c);
    } else if (op == CFA_REGISTER) {
        cfa->n = take_register(r);
        return;
    }
    cfa->value = op == CFA || op == CFA_OFFSET ? (int64_t)fp_dwarf_take_uleb(&r->c)
                                               : scaled(r, (uint64_t)fp_dwarf_take_sleb(&r->c));
}

static void run_state(struct fp_cfi_run *r, unsigned op) {
    if (op == REMEMBER) {
        if (r->depth == FP_CFI_DEPTH)
            fp_dwarf_cursor_fail(&r->c);
        else
            copy_state(&r->kept[r->depth++], &r->state, r->columns->n);
    } else if (!r->depth) {
        fp_dwarf_cursor_fail(&r->c);
    } else {
        copy_state(&r->state, &r->kept[--r->depth], r->columns->n);
    }
}

static void run_register(struct fp_cfi_run *r, unsigned op) {
    struct fp_dwarf_cursor *c = &r->c;
    struct fp_cfi_value *to = take_column(r);
    switch (op) {
        case OFFSET_EXTENDED: set(to, FP_CFI_AT_CFA, scaled(r, fp_dwarf_take_uleb(c))); break;
        case OFFSET_EXTENDED_SIGNED: set(to, FP_CFI_AT_CFA, scaled(r, (uint64_t)fp_dwarf_take_sleb(c))); break;
        case OFFSET_EXTENDED_NEGATIVE: set(to, FP_CFI_AT_CFA, scaled(r, 0 - fp_dwarf_take_uleb(c))); break;
        case VAL_OFFSET: set(to, FP_CFI_IS_CFA, scaled(r, fp_dwarf_take_uleb(c))); break;
        case VAL_OFFSET_SIGNED: set(to, FP_CFI_IS_CFA, scaled(r, (uint64_t)fp_dwarf_take_sleb(c))); break;
        case UNDEFINED: set(to, FP_CFI_UNDEFINED, 0); break;
        case SAME_VALUE: set(to, FP_CFI_SAME, 0); break;
        case EXPRESSION: set_block(r, to, FP_CFI_AT_BLOCK); break;
        case VAL_EXPRESSION: set_block(r, to, FP_CFI_IS_BLOCK); break;
        case IN_REGISTER: *to = (struct fp_cfi_value){0, take_register(r), FP_CFI_REGISTER}; break;
        default: fp_dwarf_cursor_fail(c);
    }
}

/* Advances to a location, which must not precede the current one. */
static uint64_t advance_to(struct fp_cfi_run *r) {
    const struct fp_cfi_cie *cie = r->cie;
    if (!cie) return fp_dwarf_cursor_fail(&r->c); /* a CIE has none */
    const uint64_t to = r->section->is_eh ? take_pointer(r->section, &r->c, cie->encoding, cie->address_size)
                                          : fp_dwarf_take(&r->c, cie->address_size);
    return to < r->location ? fp_dwarf_cursor_fail(&r->c) : to - r->location;
}

/* Runs one instruction; *advance is how far it advances the location.  0 or -1. */
static int run_program(struct fp_cfi_run *r, uint64_t *advance) {
    struct fp_dwarf_cursor *c = &r->c;
    const unsigned op = *c->p++, operand = op & OPERAND;
    const uint64_t unit = (r->cie ? r->cie : r->made)->code_alignment;
    uint64_t by = 0;
    switch (op & ~(unsigned)OPERAND) {
        case ADVANCE: by = operand * unit; break;
        case OFFSET: set(column(r, operand), FP_CFI_AT_CFA, scaled(r, fp_dwarf_take_uleb(c))); break;
        case RESTORE: restore(r, operand); break;
        default:
            switch (op) {
                case NOP:
                case NEGATE_RA_STATE:
                case NEGATE_RA_STATE_PC: break;
                case SET_LOC: by = advance_to(r); break;
                case ADVANCE_1: by = fp_dwarf_take(c, 1) * unit; break;
                case ADVANCE_2: by = fp_dwarf_take(c, 2) * unit; break;
                case ADVANCE_4: by = fp_dwarf_take(c, 4) * unit; break;
                case ADVANCE_8: by = fp_dwarf_take(c, 8) * unit; break;
                case CFA:
                case CFA_SIGNED:
                case CFA_REGISTER:
                case CFA_OFFSET:
                case CFA_OFFSET_SIGNED:
                case CFA_EXPRESSION: run_cfa(r, op); break;
                case REMEMBER:
                case RESTORE_STATE: run_state(r, op); break;
                case RESTORE_EXTENDED: restore(r, fp_dwarf_take_uleb(c)); break;
                case ARGUMENTS_SIZE: fp_dwarf_take_uleb(c); break;
                default: run_register(r, op);
            }
    }
    *advance = by;
    return c->bad ? -1 : 0;
}

void fp_cfi_begin(struct fp_cfi_run *r, const struct fp_cfi_section *s, const struct fp_cfi_columns *columns,
                  const struct fp_cfi_cie *cie, const struct fp_cfi_fde *fde) {
    r->section = s;
    r->columns = columns;
    r->cie = cie;
    r->made = NULL;
    r->c = cursor(s, fde->program, fde->end);
    r->location = fde->start;
    r->limit = fde->start + fde->size;
    r->depth = 0;
    copy_state(&r->state, &cie->first, columns->n);
}

int fp_cfi_next(struct fp_cfi_run *r) {
    r->start = r->location;
    if (r->start >= r->limit) return 0;
    while (r->c.p < r->c.end) {
        uint64_t advance = 0;
        if (run_program(r, &advance)) return -1;
        if (!advance) continue;
        r->location = advance < r->limit - r->location ? r->location + advance : r->limit;
        r->end = r->location;
        return 1;
    }
    r->end = r->location = r->limit;
    return 1;
}
