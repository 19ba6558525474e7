#include "pstats/marshal.h"

/* The position in the input window. */
struct pstats_reading {
    struct fp_pstats_marshal *m;
    const struct fp_window *in;
    size_t pos;
    struct fp_err *err;
};

enum { NUMBERED = 0x80 };
static const char TYPE[] = "the type of a value";

void fp_pstats_marshal_clear(struct fp_pstats_marshal *m) {
    FP_FREE(m->items, m->refs, m->texts, m->open);
    FP_FREE_BUFFERS(&m->raw, &m->name);
}

void fp_pstats_marshal_begin(struct fp_pstats_marshal *m) {
    if (!m->kept) m->n_items = m->old_items;
    m->kept = 0;
    m->old_items = m->n_items;
    m->old_refs = m->n_refs;
    m->old_texts = m->n_texts;
    m->old_raw = m->raw.n;
}

void fp_pstats_marshal_forget(struct fp_pstats_marshal *m) {
    m->n_items = m->old_items;
    m->n_refs = m->old_refs;
    m->n_texts = m->old_texts;
    m->raw.n = m->old_raw;
    m->n_open = 0;
    m->code_depth = 0;
    m->kept = 0;
}

static int bad(const struct pstats_reading *r, size_t at, const char *what, const char *want) {
    return fp_fail_got(r->err, FP_E_MALFORMED, r->in->base + at, what, FP_GOT_HEX, r->in->p[at], want, 0);
}

/* Points *p to the next n bytes and moves past them.  FP_DONE or FP_MORE. */
static int take(struct pstats_reading *r, uint64_t n, const uint8_t **p) {
    if (n > r->in->n - r->pos) return FP_MORE;
    *p = r->in->p + r->pos;
    r->pos += (size_t)n;
    return FP_DONE;
}

/* A length of 1 or 4 bytes.  FP_DONE, FP_MORE or an error. */
static int length(struct pstats_reading *r, int is_short, uint32_t *n) {
    const uint8_t *p;
    const size_t at = r->pos;
    if (take(r, is_short ? 1 : 4, &p)) return FP_MORE;
    *n = is_short ? *p : fp_u32(p);
    if (*n <= INT32_MAX) return FP_DONE;
    return fp_fail_got(r->err, FP_E_MALFORMED, r->in->base + at, "a length", FP_GOT_UNSIGNED, *n, "at most 2^31 - 1",
                       0);
}

static int text(struct pstats_reading *r, int is_short, struct fp_pstats_marshal_value *v) {
    uint32_t n = 0;
    const uint8_t *p = NULL;
    FP_TRY(length(r, is_short, &n));
    FP_TRY(take(r, n, &p));
    if (r->m->code_depth) {
        *v = (struct fp_pstats_marshal_value){.kind = FP_PSTATS_MARSHAL_RAW, .n = n, .of.at = r->m->raw.n};
        fp_buf_put(&r->m->raw, p, n);
        return FP_DONE;
    }
    const uint32_t id = fp_strings_intern(r->m->strings, p, n);
    v->kind = FP_PSTATS_MARSHAL_TEXT;
    v->of.id = id;
    return FP_DONE;
}

/* Assigns a text number, which only Python 2 refers to. */
static int numbered_text(struct pstats_reading *r, struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    FP_TRY(text(r, 0, v));
    FP_PUSH(m->texts, m->n_texts, m->cap_texts) = *v;
    return FP_DONE;
}

/* Reads an int of 15-bit digits, lowest first. */
static int digits(struct pstats_reading *r, struct fp_pstats_marshal_value *v) {
    const uint8_t *p;
    if (take(r, 4, &p)) return FP_MORE;
    const int32_t signed_n = (int32_t)fp_u32(p);
    const uint32_t n = signed_n < 0 ? 0 - (uint32_t)signed_n : (uint32_t)signed_n;
    if (take(r, 2 * (uint64_t)n, &p)) return FP_MORE;
    uint64_t sum = 0;
    v->kind = FP_PSTATS_MARSHAL_INT;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t digit = fp_u16(p + 2 * (size_t)i);
        if (digit >> 15) return bad(r, (size_t)(p - r->in->p) + 2 * (size_t)i, "a digit of an int", "15 bits");
        if (i > 4 ? digit != 0 : i == 4 && digit > 7) v->kind = FP_PSTATS_MARSHAL_BIG; /* 2^63 or more */
        if (i < 5) sum |= digit << 15 * i;
    }
    v->of.i = signed_n < 0 ? -(int64_t)(sum & INT64_MAX) : (int64_t)(sum & INT64_MAX);
    return FP_DONE;
}

/* Reads a float written as text. */
static int decimal(struct pstats_reading *r, struct fp_pstats_marshal_value *v) {
    uint32_t n = 0;
    const uint8_t *p = NULL;
    char copy[256], *end;
    FP_TRY(length(r, 1, &n));
    FP_TRY(take(r, n, &p));
    memcpy(copy, p, n);
    copy[n] = 0;
    v->kind = FP_PSTATS_MARSHAL_FLOAT;
    v->of.d = strtod(copy, &end);
    if (n && end == copy + n) return FP_DONE;
    return fp_fail_text(r->err, FP_E_MALFORMED, r->in->base + (size_t)(p - r->in->p), 0, "a float", p, n, "a number");
}

/* Reads a reference number or text number below `n`. */
static int number(struct pstats_reading *r, uint32_t n, uint32_t *found) {
    const uint8_t *p;
    const size_t at = r->pos;
    if (take(r, 4, &p)) return FP_MORE;
    *found = fp_u32(p);
    if (*found < n) return FP_DONE;
    return fp_fail_got(r->err, FP_E_MALFORMED, r->in->base + at, "the number of an earlier value", FP_GOT_UNSIGNED,
                       *found, "less than %", n);
}

/* Outside of code objects, makes a text of one a string. */
static int as_string(struct pstats_reading *r, struct fp_pstats_marshal_value *v) {
    if (v->kind != FP_PSTATS_MARSHAL_RAW || r->m->code_depth) return FP_DONE;
    const uint32_t id = fp_strings_intern(r->m->strings, r->m->raw.p + v->of.at, v->n);
    *v = (struct fp_pstats_marshal_value){.kind = FP_PSTATS_MARSHAL_TEXT, .of.id = id};
    return FP_DONE;
}

static int reference(struct pstats_reading *r, size_t at, struct fp_pstats_marshal_value *v) {
    uint32_t k = 0;
    FP_TRY(number(r, r->m->n_refs, &k));
    *v = r->m->refs[k];
    if (v->kind != FP_PSTATS_MARSHAL_OPEN) return as_string(r, v);
    return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "a value contains itself");
}

static int python2_text(struct pstats_reading *r, struct fp_pstats_marshal_value *v) {
    uint32_t k = 0;
    FP_TRY(number(r, r->m->n_texts, &k));
    *v = r->m->texts[k];
    return as_string(r, v);
}

/* Reads a value that occurs only as a constant in code. */
static int constant(struct pstats_reading *r, size_t at, uint8_t type, struct fp_pstats_marshal_value *v) {
    const uint8_t *p;
    int status = FP_DONE;
    if (type == 'y') status = take(r, 16, &p);
    if (type == 'x') status = decimal(r, v);
    if (type == 'x' && !status) status = decimal(r, v);
    v->kind = FP_PSTATS_MARSHAL_OTHER;
    return type == '.' || type == 'S' || type == 'x' || type == 'y' ? status : bad(r, at, TYPE, "one of code");
}

/* Reads a value other than a container. */
static int scalar(struct pstats_reading *r, size_t at, uint8_t type, struct fp_pstats_marshal_value *v) {
    const uint8_t *p = NULL;
    const uint32_t width = type == 'i' ? 4 : type == 'I' || type == 'g' ? 8 : 0;
    if (width && take(r, width, &p)) return FP_MORE;
    v->kind = FP_PSTATS_MARSHAL_INT;
    switch (type) {
        case 'i': v->of.i = (int32_t)fp_u32(p); return FP_DONE;
        case 'I': v->of.i = (int64_t)fp_u64(p); return FP_DONE;
        case 'g':
            v->kind = FP_PSTATS_MARSHAL_FLOAT;
            memcpy(&v->of.d, p, sizeof v->of.d);
            return FP_DONE;
        case 'T':
        case 'F': v->of.i = type == 'T'; return FP_DONE;
        case 'N': v->kind = FP_PSTATS_MARSHAL_NONE; return FP_DONE;
        case 'l': return digits(r, v);
        case 'f': return decimal(r, v);
        case 'z':
        case 'Z': return text(r, 1, v);
        case 'a':
        case 'A':
        case 'u':
        case 's': return text(r, 0, v);
        case 't': return numbered_text(r, v);
        case 'r': return reference(r, at, v);
        case 'R': return python2_text(r, v);
        default: return r->m->code_depth ? constant(r, at, type, v) : bad(r, at, TYPE, "one of a profile");
    }
}

static int any(struct pstats_reading *r, uint32_t depth, struct fp_pstats_marshal_value *v);

/* Reads an item of a container and pushes it onto `open`. */
static int item(struct pstats_reading *r, uint32_t depth) {
    struct fp_pstats_marshal *m = r->m;
    struct fp_pstats_marshal_value v = {0};
    FP_TRY(any(r, depth, &v));
    FP_PUSH(m->open, m->n_open, m->cap_open) = v;
    return FP_DONE;
}

static int dict_items(struct pstats_reading *r, uint32_t depth) {
    for (;;) {
        if (r->pos == r->in->n) return FP_MORE;
        if (r->in->p[r->pos] == '0') {
            r->pos++;
            return FP_DONE;
        }
        for (int i = 0; i < 2; i++) FP_TRY(item(r, depth));
    }
}

/* How a container's items are counted: by 1 byte, by 4, or `n_items` of them; by a byte 0 after the last one of a dict.
 */
static int items(struct pstats_reading *r, uint8_t type, uint32_t depth) {
    uint32_t n = 3; /* of a slice */
    int status = FP_DONE;
    if (type == '{') return dict_items(r, depth);
    if (type != ':') status = length(r, type == ')', &n);
    for (uint32_t i = 0; !status && i < n; i++) status = item(r, depth);
    return status;
}

static int container(struct pstats_reading *r, size_t at, uint8_t type, uint32_t depth,
                     struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    const uint32_t before = m->n_open;
    if (depth >= FP_PSTATS_MARSHAL_CODE_DEPTH)
        return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "code is nested more than 250 deep");
    if (depth >= FP_PSTATS_MARSHAL_DEPTH && !m->code_depth)
        return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "values are nested more than 8 deep");
    FP_TRY(items(r, type, depth + 1));
    v->n = m->n_open - before;
    v->of.at = m->n_items;
    m->n_open = before;
    if (m->code_depth) {
        v->kind = type == '(' || type == ')' ? FP_PSTATS_MARSHAL_CONSTANTS : FP_PSTATS_MARSHAL_OTHER;
        return FP_DONE;
    }
    v->kind = type == '{' ? FP_PSTATS_MARSHAL_DICT : FP_PSTATS_MARSHAL_TUPLE;
    fp_array_room(&m->items, &m->cap_items, (uint64_t)m->n_items + v->n, sizeof *m->items);
    if (v->n) memcpy(m->items + m->n_items, m->open + before, v->n * sizeof *m->items);
    m->n_items += v->n;
    return FP_DONE;
}

/* Assigns the next reference number, *k. */
static void add_number(struct fp_pstats_marshal *m, uint32_t *k) {
    *k = m->n_refs;
    fp_array_room(&m->refs, &m->cap_refs, (uint64_t)*k + 1, sizeof *m->refs);
    m->refs[m->n_refs++] = (struct fp_pstats_marshal_value){.kind = FP_PSTATS_MARSHAL_OPEN};
}

void fp_pstats_marshal_number_dict(struct fp_pstats_marshal *m) {
    uint32_t k;
    add_number(m, &k);
}

/* ---- code objects ---- */

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

struct pstats_code {
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
static int fields(struct pstats_reading *r, const char *layout, uint32_t depth, struct pstats_code *code) {
    for (const char *field = layout; *field; field++) {
        const size_t at = r->pos;
        struct fp_pstats_marshal_value v = {0};
        uint32_t number = 0;
        const int is_int = *field == 'i' || *field == 'L';
        FP_TRY(is_int ? read_int(r, &number) : any(r, depth, &v));
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

static void put_text(struct fp_pstats_marshal *m, const struct fp_pstats_marshal_value *v) {
    size_t n = v->n;
    const uint8_t *text =
        v->kind == FP_PSTATS_MARSHAL_RAW ? m->raw.p + v->of.at : fp_string(m->strings, (uint32_t)v->of.id, &n);
    fp_buf_put(&m->name, text, n);
}

/* The description, as a text in code. */
static int describe(struct pstats_reading *r, const struct pstats_code *code, struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    static const char before[] = "<code object ", between[] = ", file \"", line[] = "\", line ";
    uint8_t digits[24];
    uint8_t *end = fp_put_decimal(digits, code->line);
    *end++ = '>';
    m->name.n = 0;
    fp_buf_put(&m->name, before, sizeof before - 1);
    put_text(m, &code->name);
    fp_buf_put(&m->name, between, sizeof between - 1);
    put_text(m, &code->file);
    fp_buf_put(&m->name, line, sizeof line - 1);
    fp_buf_put(&m->name, digits, (size_t)(end - digits));
    if (m->name.n > UINT32_MAX) return fp_escape();
    *v = (struct fp_pstats_marshal_value){.kind = FP_PSTATS_MARSHAL_RAW, .n = (uint32_t)m->name.n, .of.at = m->raw.n};
    fp_buf_put(&m->raw, m->name.p, m->name.n);
    return FP_DONE;
}

/* Reads the fields, of the file's layout, or of the one that fits the first code object. */
static int read_code(struct pstats_reading *r, size_t at, uint32_t depth, struct pstats_code *code) {
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

static int code_object(struct pstats_reading *r, size_t at, uint32_t depth, struct fp_pstats_marshal_value *v) {
    struct fp_pstats_marshal *m = r->m;
    struct pstats_code code = {0};
    if (depth >= FP_PSTATS_MARSHAL_CODE_DEPTH)
        return fp_fail(r->err, FP_E_MALFORMED, r->in->base + at, "code is nested more than 250 deep");
    m->code_depth++;
    int status = read_code(r, at, depth + 1, &code);
    m->code_depth--;
    if (!status) status = describe(r, &code, v);
    return status ? status : as_string(r, v);
}

/* ---- values ---- */

static int any(struct pstats_reading *r, uint32_t depth, struct fp_pstats_marshal_value *v) {
    const size_t at = r->pos;
    const uint8_t *p;
    uint32_t k = 0;
    if (take(r, 1, &p)) return FP_MORE;
    const uint8_t type = *p & (NUMBERED - 1);
    const int is_container = memchr(r->m->code_depth ? "(){[<>:" : "(){", type, r->m->code_depth ? 7 : 3) != NULL;
    if (*p & NUMBERED) {
        add_number(r->m, &k);
        r->m->kept |= is_container && !r->m->code_depth;
    }
    const int status = is_container  ? container(r, at, type, depth, v)
                       : type == 'c' ? code_object(r, at, depth, v)
                                     : scalar(r, at, type, v);
    if (!status && *p & NUMBERED) r->m->refs[k] = *v;
    return status;
}

int fp_pstats_marshal_read(struct fp_pstats_marshal *m, const struct fp_window *in, size_t *pos,
                           struct fp_pstats_marshal_value *value, struct fp_err *err) {
    struct pstats_reading r = {m, in, *pos, err};
    const int status = any(&r, 0, value);
    if (!status) *pos = r.pos;
    return status;
}
