#include "core/digits.h"
#include "pstats/marshal.h"

/* The fields of a code object, by version of Python:
 *
 *   i  4 bytes: an int (argcount, posonlyargcount, kwonlyargcount, nlocals, stacksize, flags; firstlineno)
 *   B  bytes: code; lnotab or linetable, exceptiontable, localspluskinds
 *   (  tuples: consts, names, varnames, freevars, cellvars; localsplusnames
 *   F  the file, N the name, Q the qualified name, L the first line
 *
 * The versions do not state themselves.  Only one of these fits, because bytes and tuples alternate differently. */
static const char *const LAYOUTS[] = {
    "iiiiB(((((FNLB",   /* 2.7 */
    "iiiiiB(((((FNLB",  /* 3.0 to 3.7: kwonlyargcount */
    "iiiiiiB(((((FNLB", /* 3.8 to 3.10: posonlyargcount */
    "iiiiiB(((BFNQLBB", /* 3.11 to 3.14 */
};
enum { N_LAYOUTS = sizeof LAYOUTS / sizeof *LAYOUTS };

struct code {
    struct fp_pstats_marshal_value file, name;
    uint32_t line;
};

static int misfit(const struct pstats_reading *r, size_t at) {
    return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "a code object is not one of Python 2.7 to 3.14");
}

static int read_int(struct pstats_reading *r, uint32_t *v) {
    if (r->in->n - r->pos < 4) return FP_MORE;
    *v = fp_u32(r->in->p + r->pos);
    r->pos += 4;
    return FP_DONE;
}

/* Reads the fields of a layout.  FP_DONE, FP_MORE, or an error: it does not fit. */
static int fields(struct pstats_reading *r, const char *layout, uint32_t depth, struct code *code) {
    for (const char *field = layout; *field; field++) {
        const size_t at = r->pos;
        struct fp_pstats_marshal_value v = {0};
        uint32_t number = 0;
        const int is_int = *field == 'i' || *field == 'L';
        const int status = is_int ? read_int(r, &number) : fp_pstats_marshal_any(r, depth, &v);
        if (status) return status;
        if (*field == 'L') code->line = number;
        if (is_int) continue;
        const int is_text = v.kind == FP_PSTATS_MARSHAL_TEXT || v.kind == FP_PSTATS_MARSHAL_RAW;
        const int is_tuple = v.kind == FP_PSTATS_MARSHAL_TUPLE || v.kind == FP_PSTATS_MARSHAL_CONSTANTS;
        if (*field == '(' ? !is_tuple : !is_text) return misfit(r, at);
        if (*field == 'F') code->file = v;
        if (*field == 'N') code->name = v;
    }
    return FP_DONE;
}

static int put_text(struct fp_pstats_marshal *m, const struct fp_pstats_marshal_value *v) {
    size_t n = v->n;
    const uint8_t *text =
        v->kind == FP_PSTATS_MARSHAL_RAW ? m->raw.p + v->of.at : fp_string(m->strings, (uint32_t)v->of.id, &n);
    return fp_buf_put(&m->name, text, n);
}

/* The description, as a text in code. */
static int describe(struct pstats_reading *r, const struct code *code, struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    static const char before[] = "<code object ", between[] = ", file \"", line[] = "\", line ";
    uint8_t digits[24];
    uint8_t *end = fp_put_decimal(digits, code->line);
    *end++ = '>';
    m->name.n = 0;
    if (fp_buf_put(&m->name, before, sizeof before - 1) || put_text(m, &code->name) ||
        fp_buf_put(&m->name, between, sizeof between - 1) || put_text(m, &code->file) ||
        fp_buf_put(&m->name, line, sizeof line - 1) || fp_buf_put(&m->name, digits, (size_t)(end - digits)))
        return fp_no_memory(r->err);
    if (m->name.n > UINT32_MAX) return fp_no_memory(r->err);
    *v = (struct fp_pstats_marshal_value){.kind = FP_PSTATS_MARSHAL_RAW, .n = (uint32_t)m->name.n, .of.at = m->raw.n};
    return fp_buf_put(&m->raw, m->name.p, m->name.n) ? fp_no_memory(r->err) : FP_DONE;
}

/* Reads the fields, of the file's layout, or of the one that fits the first code object. */
static int read_code(struct pstats_reading *r, size_t at, uint32_t depth, struct code *code) {
    struct fp_pstats_marshal *m = r->m;
    if (m->layout) return fields(r, LAYOUTS[m->layout - 1], depth, code);
    const size_t pos = r->pos, n_raw = m->raw.n;
    const uint32_t n_refs = m->n_refs, n_texts = m->n_texts, n_open = m->n_open, code_depth = m->code_depth;
    int needs_more = 0;
    for (int32_t i = 0; i < N_LAYOUTS; i++) {
        m->layout = i + 1;
        const int status = fields(r, LAYOUTS[i], depth, code);
        if (status == FP_DONE) return status;
        m->layout = 0;
        if (status == FP_E_NOMEM) return status;
        needs_more |= status == FP_MORE;
        r->pos = pos;
        m->raw.n = n_raw;
        m->n_refs = n_refs;
        m->n_texts = n_texts;
        m->n_open = n_open;
        m->code_depth = code_depth;
    }
    return needs_more ? FP_MORE : misfit(r, at);
}

int fp_pstats_marshal_code(struct pstats_reading *r, size_t at, uint32_t depth, struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    struct code code = {0};
    if (depth >= FP_PSTATS_MARSHAL_CODE_DEPTH)
        return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "code is nested more than 250 deep");
    m->code_depth++;
    int status = read_code(r, at, depth + 1, &code);
    m->code_depth--;
    if (!status) status = describe(r, &code, v);
    return status ? status : fp_pstats_marshal_as_string(r, v);
}
