#include "otlp/to_json.h"

/* Our own output is well-formed: a malformed field can only be the end. */
static int next(struct fp_wire *m, struct fp_wire_field *f) {
    if (m->p >= m->end || fp_wire_read_head(m->p, m->end, f) <= 0 || f->n > (size_t)(m->end - f->p)) return 0;
    m->p = f->p + f->n;
    return 1;
}

static void put(struct fp_buf *out, const char *text) {
    fp_buf_put(out, text, strlen(text));
}

static void put_number(struct fp_buf *out, char kind, uint64_t v) {
    const int quoted = kind == 'l' || kind == 'x';
    if (kind == 'b') {
        put(out, v ? "true" : "false");
        return;
    }
    fp_buf_reserve(out, FP_DIGITS_ROOM + 2);
    uint8_t *to = out->p + out->n;
    if (quoted) *to++ = '"';
    to = kind == 'x' ? fp_put_decimal(to, v) : fp_put_signed(to, (int64_t)v);
    if (quoted) *to++ = '"';
    out->n = (size_t)(to - out->p);
}

static void put_bytes(struct fp_buf *out, const struct fp_otlp_json_field *field, const struct fp_wire_field *f) {
    uint64_t replaced = 0;
    put(out, "\"");
    if (field->kind == 'h')
        fp_buf_hex(out, f->p, f->n);
    else
        fp_json_text(out, f->p, f->n, &replaced);
    put(out, "\"");
}

/* The kind of a field; addresses are unsigned, like times. */
static char kind_of(const struct fp_otlp_json_field *field) {
    const int is_unsigned = field->kind == 'l' && ((field->message == FP_OTLP_J_MAPPING && field->number <= 3) ||
                                                   (field->message == FP_OTLP_J_LOCATION && field->number == 2));
    return is_unsigned ? 'x' : (char)field->kind;
}

/* Writes the numbers of a packed list. */
static void put_packed(struct fp_buf *out, const struct fp_otlp_json_field *field, const struct fp_wire_field *f) {
    struct fp_wire list = fp_wire_inside(f);
    put(out, "[");
    for (int first = 1; list.p < list.end; first = 0) {
        uint64_t v = 0;
        if (field->kind == 'x') {
            v = fp_u64(list.p);
            list.p += 8;
        } else if (fp_wire_next_number(&list, &v) <= 0) {
            break;
        }
        if (!first) put(out, ",");
        put_number(out, (char)field->kind, v);
    }
    put(out, "]");
}

/* Deeper than any message of the writer. */
enum { DEEPEST = 16 };

static void members(const uint8_t *p, size_t n, uint32_t message, int depth, struct fp_buf *out);

static void put_value(struct fp_buf *out, const struct fp_otlp_json_field *field, const struct fp_wire_field *f,
                      int depth) {
    if (field->kind == 'm') {
        put(out, "{");
        members(f->p, f->n, field->of, depth + 1, out);
        put(out, "}");
    } else if (f->wire == FP_WIRE_BYTES) {
        put_bytes(out, field, f);
    } else {
        put_number(out, kind_of(field), f->wire == FP_WIRE_FIXED64 ? fp_u64(f->p) : f->v);
    }
}

static void members(const uint8_t *p, size_t n, uint32_t message, int depth, struct fp_buf *out) {
    struct fp_wire m = {p, p + n};
    struct fp_wire_field f;
    uint32_t before = 0; /* the field whose list is open */
    int first = 1;
    while (depth < DEEPEST && next(&m, &f)) {
        const struct fp_otlp_json_field *field = fp_otlp_json_number(message, f.number);
        if (!field) continue;
        const int is_packed = field->repeated && field->kind != 'm' && field->kind != 's';
        const int in_list = field->repeated && !is_packed;
        if (before == f.number) {
            put(out, ",");
        } else {
            if (before) put(out, "]");
            if (!first) put(out, ",");
            put(out, "\"");
            put(out, field->name);
            put(out, in_list ? "\":[" : "\":");
            before = in_list ? f.number : 0;
        }
        first = 0;
        if (is_packed)
            put_packed(out, field, &f);
        else
            put_value(out, field, &f, depth);
    }
    if (before) put(out, "]");
}

int fp_otlp_members(const uint8_t *p, size_t n, uint32_t message, struct fp_buf *out) {
    members(p, n, message, 0, out);
    return 0;
}

int fp_otlp_to_json(const uint8_t *p, size_t n, uint32_t message, uint32_t number, int first, struct fp_buf *out) {
    struct fp_wire m = {p, p + n};
    struct fp_wire_field f;
    const struct fp_otlp_json_field *field = fp_otlp_json_number(message, number);
    while (field && next(&m, &f)) {
        if (!first) put(out, ",\n");
        first = 0;
        put_value(out, field, &f, 0);
    }
    return 0;
}
