#include "otlp/from_json.h"

struct fp_otlp_json *fp_otlp_json_new(void) {
    struct fp_otlp_json *j = fp_made(sizeof *j);
    j->json.loose = 1; /* NaN; another message after the first */
    j->first_mark = SIZE_MAX;
    return j;
}

void fp_otlp_json_free(struct fp_otlp_json *j) {
    fp_buf_free(&j->scratch);
    free(j);
}

/* ---- values ---- */

/* Parses an integer of up to 64 bits, signed or unsigned, quoted or not.  0 or FP_E_MALFORMED. */
static int whole(const uint8_t *p, size_t n, uint64_t *v) {
    const int negative = n && *p == '-';
    size_t i = (size_t)negative;
    uint64_t value = 0;
    for (; i < n && fp_is_digit(p[i]); i++) {
        const unsigned digit = p[i] - '0';
        if (value > (UINT64_MAX - digit) / 10) return FP_E_MALFORMED;
        value = value * 10 + digit;
    }
    if (i == n && i > (size_t)negative) {
        *v = negative ? 0 - value : value;
        return negative && value > (uint64_t)1 << 63 ? FP_E_MALFORMED : 0;
    }
    int64_t number; /* 1e3, 5.0 */
    int rounded;
    if (fp_json_number(p, n, 0, &number, &rounded) || rounded) return FP_E_MALFORMED;
    *v = (uint64_t)number;
    return 0;
}

static int real(const uint8_t *p, size_t n, double *v) {
    char text[64];
    if (!n || n >= sizeof text) return FP_E_MALFORMED;
    memcpy(text, p, n);
    text[n] = 0;
    char *end;
    *v = strtod(text, &end);
    return *end ? FP_E_MALFORMED : 0;
}

static int sextet(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (fp_is_digit(c)) return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static int base64(const uint8_t *p, size_t n, struct fp_buf *to) {
    uint32_t word = 0;
    unsigned bits = 0;
    while (n && p[n - 1] == '=') n--;
    fp_buf_reserve(to, n);
    for (size_t i = 0; i < n; i++) {
        const int six = sextet(p[i]);
        if (six < 0) return FP_E_MALFORMED;
        word = word << 6 | (uint32_t)six;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        to->p[to->n++] = (uint8_t)(word >> bits);
    }
    return 0;
}

static int hexadecimal(const uint8_t *p, size_t n, struct fp_buf *to) {
    if (n % 2) return FP_E_MALFORMED;
    fp_buf_reserve(to, n / 2 + 1);
    for (size_t i = 0; i < n; i += 2) {
        const unsigned high = fp_nibble(p[i]), low = fp_nibble(p[i + 1]);
        if (high > 15 || low > 15) return FP_E_MALFORMED;
        to->p[to->n++] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

/* Writes text or bytes as a field. */
static int put_text(struct fp_otlp_json *j, const struct fp_otlp_json_field *f, struct fp_buf *out) {
    size_t n;
    const uint8_t *p = fp_json_plain(&j->json, &j->scratch, &n);
    if (f->kind == 's') return fp_wire_put_bytes(out, f->number, p, n);
    const size_t mark = fp_wire_begin(out, f->number);
    const int status = f->kind == 'h' ? hexadecimal(p, n, out) : base64(p, n, out);
    fp_wire_end(out, mark);
    return status;
}

/* Writes a number, in a packed list or as a field. */
static int put_number(struct fp_otlp_json *j, const struct fp_otlp_json_field *f, int in_list, struct fp_buf *out) {
    const struct fp_json *t = &j->json;
    uint64_t v = 0;
    double d;
    int status = 0;
    if (f->kind == 'b') {
        if (t->token != FP_JSON_WORD || *t->text == 'n') return FP_E_MALFORMED;
        v = fp_json_is(t, "true");
        if (!v && !fp_json_is(t, "false")) return FP_E_MALFORMED;
    } else if (f->kind == 'd') {
        status = real(t->text, t->text_n, &d);
        memcpy(&v, &d, sizeof v);
    } else {
        status = whole(t->text, t->text_n, &v);
    }
    if (status) return status;
    const int fixed = f->kind == 'x' || f->kind == 'd';
    if (!in_list && !fixed) return fp_wire_put_number(out, f->number, v);
    if (!in_list) fp_buf_byte(out, FP_WIRE_TAG((unsigned)f->number, FP_WIRE_FIXED64));
    if (fixed)
        fp_buf_put(out, &v, 8);
    else
        fp_buf_varint(out, v);
    return 0;
}

/* ---- tokens ---- */

static struct fp_otlp_json_level *top(struct fp_otlp_json *j) {
    return &j->levels[j->depth - 1];
}

/* The field of the current value. */
static const struct fp_otlp_json_field *field_of(struct fp_otlp_json *j) {
    return top(j)->field ? top(j)->field : j->key;
}

static int is_group(const struct fp_otlp_json_level *level) {
    return level->message && level->message <= FP_OTLP_DICTIONARY;
}

/* Handles a value of the wrong type. */
static int wrong(struct fp_otlp_json *j, const struct fp_window *in, struct fp_err *err) {
    if (j->lenient) {
        j->bad_values++;
        return 0;
    }
    const struct fp_json *t = &j->json;
    const int has_text = t->token >= FP_JSON_STRING && t->token <= FP_JSON_WORD;
    const char *bracket = t->token == FP_JSON_ARRAY ? "[" : "{";
    return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the value of a key",
                        has_text ? (const void *)t->text : bracket, has_text ? t->text_n : 1,
                        "a value of its type in OTLP");
}

/* Notes the input offset of a field in a message without length, for byte `find` of the output. */
static void note_place(struct fp_otlp_json *j, const struct fp_window *in, const struct fp_buf *out) {
    if (j->n_out + out->n <= j->find) j->found = in->base + in->pos;
    if (j->first_mark == SIZE_MAX) {
        j->first_mark = out->n;
        j->first_depth = j->depth;
    }
}

static int push(struct fp_otlp_json *j, const struct fp_window *in, struct fp_otlp_json_level level,
                struct fp_err *err) {
    if (j->depth == FP_OTLP_JSON_LEVELS)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "a value is nested too deeply");
    j->levels[j->depth++] = level;
    return 0;
}

/* Skips an object or list of an unknown key or the wrong type. */
static int skip_value(struct fp_otlp_json *j) {
    j->skipped = 1;
    return 0;
}

static int open_object(struct fp_otlp_json *j, const struct fp_window *in, struct fp_buf *out, struct fp_err *err) {
    struct fp_otlp_json_level level = {0};
    if (!j->depth) {
        level.message = FP_OTLP_DATA;
        level.number = FP_OTLP_MESSAGE_FIELD;
    } else {
        const struct fp_otlp_json_field *f = field_of(j);
        if (!f) return skip_value(j);
        if (f->kind != 'm' || (f->repeated && !top(j)->field)) {
            const int status = wrong(j, in, err);
            return status ? status : skip_value(j);
        }
        level.message = f->of;
        level.number = f->number;
    }
    if (is_group(&level)) {
        if (j->n_out + out->n <= j->find) j->found = in->base + in->pos;
        fp_buf_byte(out, FP_WIRE_TAG((unsigned)level.number, 3));
    } else {
        note_place(j, in, out);
        level.mark = fp_wire_begin(out, level.number);
    }
    return push(j, in, level, err);
}

static int open_list(struct fp_otlp_json *j, const struct fp_window *in, struct fp_buf *out, struct fp_err *err) {
    const struct fp_otlp_json_field *f = j->depth ? field_of(j) : NULL;
    if (j->depth && !f) return skip_value(j);
    if (!f || !f->repeated || top(j)->field) {
        const int status = wrong(j, in, err);
        return status ? status : skip_value(j);
    }
    struct fp_otlp_json_level level = {.field = f, .number = f->number};
    if (f->kind != 'm' && f->kind != 's') {
        note_place(j, in, out);
        level.mark = fp_wire_begin(out, f->number);
    }
    return push(j, in, level, err);
}

/* Ends an object or list. */
static void close_level(struct fp_otlp_json *j, struct fp_buf *out) {
    const struct fp_otlp_json_level level = j->levels[--j->depth];
    if (level.mark) fp_wire_end(out, level.mark);
    if (is_group(&level)) fp_buf_byte(out, FP_WIRE_TAG((unsigned)level.number, 4));
    if (j->first_mark != SIZE_MAX && j->depth <= j->first_depth) j->first_mark = SIZE_MAX;
}

static int scalar(struct fp_otlp_json *j, const struct fp_window *in, struct fp_buf *out, struct fp_err *err) {
    const struct fp_json *t = &j->json;
    if (!j->depth) return wrong(j, in, err);
    const struct fp_otlp_json_field *f = field_of(j);
    const int in_list = top(j)->field != NULL, is_null = t->token == FP_JSON_WORD && fp_json_is(t, "null");
    if (!f || (is_null && !in_list)) return 0;
    const int is_text = f->kind == 's' || f->kind == 'h' || f->kind == 'B';
    if (f->kind == 'm' || (f->repeated && !in_list) || (is_text && t->token != FP_JSON_STRING) || is_null)
        return wrong(j, in, err);
    const int alone = j->first_mark == SIZE_MAX;
    if (alone) note_place(j, in, out);
    const int status = is_text ? put_text(j, f, out) : put_number(j, f, in_list, out);
    if (alone) j->first_mark = SIZE_MAX;
    return status ? wrong(j, in, err) : 0;
}

/* Whether a key belongs to a layout before 1.8, whose samples would lose their stacks. */
static int is_before_1_8(const struct fp_otlp_json *j, unsigned message) {
    return (message == FP_OTLP_PROFILE &&
            (fp_json_is(&j->json, "locationIndices") || fp_json_is(&j->json, "stringTable"))) ||
           (message == FP_OTLP_J_SAMPLE && fp_json_is(&j->json, "locationsStartIndex"));
}

static int take_key(struct fp_otlp_json *j, const struct fp_window *in, struct fp_err *err) {
    size_t n;
    const uint8_t *p = fp_json_plain(&j->json, &j->scratch, &n);
    const unsigned message = top(j)->message;
    if (is_before_1_8(j, message))
        return fp_fail(err, FP_E_VERSION, in->base + in->pos,
                       "the layout of OTLP profiles before 1.8 is not supported");
    j->key = fp_otlp_json_field(message, p, n);
    j->unknown_keys += !j->key;
    return 0;
}

static int token(struct fp_otlp_json *j, const struct fp_window *in, struct fp_buf *out, struct fp_err *err) {
    const int kind = j->json.token;
    if (j->skipped) {
        j->skipped += kind == FP_JSON_OBJECT || kind == FP_JSON_ARRAY;
        j->skipped -= kind == FP_JSON_OBJECT_END || kind == FP_JSON_ARRAY_END;
        return 0;
    }
    switch (kind) {
        case FP_JSON_KEY: return take_key(j, in, err);
        case FP_JSON_OBJECT: return open_object(j, in, out, err);
        case FP_JSON_ARRAY: return open_list(j, in, out, err);
        case FP_JSON_OBJECT_END:
        case FP_JSON_ARRAY_END: close_level(j, out); return 0;
        default: return scalar(j, in, out, err);
    }
}

/* Lenient: the text is damaged.  Drops the innermost message and ends those around it. */
static int end_here(struct fp_otlp_json *j, struct fp_window *in, struct fp_buf *out) {
    if (!j->over && j->first_mark != SIZE_MAX) {
        out->n = j->first_mark;
        j->depth = j->first_depth;
        j->first_mark = SIZE_MAX;
    }
    while (j->depth) close_level(j, out);
    j->bad_values += !j->over;
    j->over = 1;
    j->lost_bytes += in->n - in->pos;
    in->pos = in->n;
    return in->eof ? FP_DONE : FP_MORE;
}

int fp_otlp_json_feed(struct fp_otlp_json *j, struct fp_window *in, struct fp_buf *out, struct fp_err *err) {
    struct fp_json *t = &j->json;
    for (;;) {
        if (out->n >= FP_DRAIN && j->first_mark == SIZE_MAX) {
            j->n_out += out->n;
            return FP_FULL;
        }
        int status = j->over ? FP_E_MALFORMED : fp_json_next(t, in, err);
        if (status == FP_MORE) return status;
        if (status < 0 && j->lenient) return end_here(j, in, out);
        if (status < 0) return status;
        if (t->token == FP_JSON_END) {
            if (in->pos == in->n) return FP_DONE;
            if (in->p[in->pos] != '{') {
                status = fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "something other than a message follows");
                return j->lenient ? end_here(j, in, out) : status;
            }
            *t = (struct fp_json){.loose = 1};
            continue;
        }
        status = token(j, in, out, err);
        if (status) return status;
        fp_json_take(t, in);
    }
}
