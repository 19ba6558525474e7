#include "core/wire.h"

int fp_wire_read_long(const uint8_t *p, const uint8_t *end, uint64_t *v) {
    uint64_t value = 0;
    if (end - p >= 8) {
        uint64_t w = fp_u64(p);
        const uint64_t stops = ~w & 0x8080808080808080;
        if (stops) { /* up to 8 bytes: drop what follows the last one, then join 7 bits, 14 bits and 28 bits */
            w &= stops ^ (stops - 1);
            w = (w & 0x007f007f007f007f) | (w & 0x7f007f007f007f00) >> 1;
            w = (w & 0x00003fff00003fff) | (w & 0x3fff00003fff0000) >> 2;
            *v = (w & 0x0fffffff) | (w & 0x0fffffff00000000) >> 4;
            return __builtin_ctzll(stops) / 8 + 1;
        }
    }
    for (int i = 0; i < 10; i++) {
        if (p + i == end) return FP_WIRE_CUT;
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            if (i == 9 && p[i] > 1) return FP_WIRE_BAD;
            *v = value;
            return i + 1;
        }
    }
    return FP_WIRE_BAD;
}

int fp_wire_store(const struct fp_wire_schema *schema, void *to, struct fp_wire_field *f) {
    if (f->number >= sizeof schema->kinds || !schema->to[f->number]) return 0;
    uint8_t *const place = (uint8_t *)to + (schema->to[f->number] - 1);
    const char kind = schema->kinds[f->number];
    if (FP_UNLIKELY(kind != 'V' && kind != 'F')) {
        const struct fp_wire inside = fp_wire_inside(f);
        memcpy(place, &inside, sizeof inside);
        return 1;
    }
    if (kind == 'F') f->v = fp_u64(f->p);
    memcpy(place, &f->v, sizeof f->v);
    return 1;
}

int fp_wire_read(struct fp_wire *m, const struct fp_wire_schema *schema, void *to, struct fp_wire_field *f,
                 uint64_t *unknown) {
    uint64_t found = 0, before;
    int kind;
    while ((kind = fp_wire_next(m, schema, f)) > 0) {
        if (kind == FP_WIRE_UNKNOWN) {
            if (unknown) ++*unknown;
            continue;
        }
        found |= UINT64_C(1) << f->number;
        if (!fp_wire_store(schema, to, f)) break;
    }
    if (schema->to[0]) {
        uint8_t *const place = (uint8_t *)to + (schema->to[0] - 1);
        memcpy(&before, place, sizeof before);
        found |= before;
        memcpy(place, &found, sizeof found);
    }
    return kind;
}

const uint8_t *fp_wire_all(struct fp_wire m, const struct fp_wire_schema *schema, void *to, uint64_t *unknown) {
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&m, schema, to, &f, unknown)) > 0) continue;
    return kind ? m.p : NULL;
}

int fp_wire_put_number(struct fp_buf *b, uint32_t number, uint64_t v) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return FP_E_NOMEM;
    uint8_t *to = fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_VARINT));
    b->n = (size_t)(fp_varint(to, v) - b->p);
    return 0;
}

int fp_wire_put_nonzero(struct fp_buf *b, uint32_t number, uint64_t v) {
    return v ? fp_wire_put_number(b, number, v) : 0;
}

int fp_wire_put_bytes(struct fp_buf *b, uint32_t number, const void *p, size_t n) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return FP_E_NOMEM;
    uint8_t *to = fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_BYTES));
    b->n = (size_t)(fp_varint(to, n) - b->p);
    return fp_buf_put(b, p, n);
}

/* The mark is where the content begins.  One byte before it is kept free for the length.  A content of 128 bytes or
 * more needs a longer length: fp_wire_end moves the content to make room. */
size_t fp_wire_begin(struct fp_buf *b, uint32_t number) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return 0;
    b->n = (size_t)(fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_BYTES)) - b->p) + 1;
    return b->n;
}

int fp_wire_end(struct fp_buf *b, size_t mark) {
    if (b->failed) return FP_E_NOMEM;
    const size_t n = b->n - mark, more = fp_varint_length(n) - 1;
    if (more) {
        if (fp_buf_reserve(b, more)) return FP_E_NOMEM;
        memmove(b->p + mark + more, b->p + mark, n);
        b->n += more;
    }
    fp_varint(b->p + mark - 1, n);
    return 0;
}

int fp_wire_put_numbers(struct fp_buf *b, uint32_t number, const uint64_t *numbers, uint32_t n) {
    const size_t mark = fp_wire_begin(b, number);
    for (uint32_t i = 0; i < n; i++) fp_wire_put_nonzero(b, i + 1, numbers[i]);
    return fp_wire_end(b, mark);
}

int fp_cursor_done(const struct fp_cursor *c, int status, const char *cut, struct fp_window *in, struct fp_err *err) {
    const uint64_t offset = in->base + in->pos;
    if (!status) in->pos = (size_t)(c->p - in->p);
    if (!status || (status == FP_MORE && !in->eof)) return status;
    if (status == FP_MORE) return fp_fail(err, FP_E_TRUNCATED, offset, cut);
    fp_fail(err, status, offset, c->what ? c->what : "a number is longer than 64 bits");
    err->want = c->want;
    return status;
}
