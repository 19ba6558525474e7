/* core/wire.h - the wire format of protocol buffers, read and written.
 *
 * A message is a run of fields.  A field is a tag (its number and its wire type) and a content:
 *
 *   wire type   content
 *   VARINT      a number: 7 bits a byte, the lowest bits first; the top bit is set if another byte follows
 *   BYTES       a length as a varint, then that many bytes: a string, a message, or a list of varints ("packed")
 *   FIXED64     8 bytes, little-endian
 *   FIXED32     4 bytes, little-endian
 *
 *   08 96 01          field 1, VARINT: 150
 *   12 03 08 96 01    field 2, BYTES: 3 of them, here a message whose field 1 is 150
 *
 * Reading never accesses bytes beyond the given end.
 * Source: protobuf.dev/programming-guides/encoding.
 */
#pragma once

#include "core/buf.h"

enum fp_wire_type { FP_WIRE_VARINT = 0, FP_WIRE_FIXED64 = 1, FP_WIRE_BYTES = 2, FP_WIRE_FIXED32 = 5 };

/* ---- reading ---- */

/* Errors that the functions below return instead of a count or a kind of field.  CUT: the bytes end too early.  BAD:
 * malformed, whatever bytes follow. */
enum { FP_WIRE_CUT = 0, FP_WIRE_BAD = -1 };

/* Reads a varint of any length. */
int fp_wire_read_long(const uint8_t *p, const uint8_t *end, uint64_t *v);

/* Reads a varint.  Returns the bytes it takes, FP_WIRE_CUT, or FP_WIRE_BAD if the number does not fit 64 bits. */
static inline int fp_wire_read_varint(const uint8_t *p, const uint8_t *end, uint64_t *v) {
    if (FP_LIKELY(p < end && *p < 0x80)) {
        *v = *p;
        return 1;
    }
    if (end - p >= 2 && p[1] < 0x80) {
        *v = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
        return 2;
    }
    return fp_wire_read_long(p, end, v);
}

struct fp_wire_field {
    const uint8_t *at; /* its tag */
    uint32_t number;
    uint32_t wire; /* enum fp_wire_type */
    uint64_t v;    /* VARINT: the number */
    const uint8_t *p;
    size_t n; /* the content is p[0..n): for a VARINT its bytes, for BYTES what follows the length */
};

/* Reads a field's head: the tag and, for BYTES, the length.  Returns the number of bytes they take, FP_WIRE_CUT or
 * FP_WIRE_BAD.  The content follows.  A VARINT is read here, too; any other content may reach beyond `end`, which the
 * caller must check. */
static inline int fp_wire_read_head(const uint8_t *p, const uint8_t *end, struct fp_wire_field *f) {
    uint64_t tag;
    f->at = p;
    int used = fp_wire_read_varint(p, end, &tag);
    if (used <= 0) return used;
    if (tag >> 3 == 0 || tag > UINT32_MAX) return FP_WIRE_BAD;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (uint32_t)tag & 7;
    f->v = 0;
    f->p = p + used;
    switch (f->wire) {
        case FP_WIRE_VARINT: {
            int n = fp_wire_read_varint(f->p, end, &f->v);
            if (n <= 0) return n;
            f->n = (size_t)n;
            return used;
        }
        case FP_WIRE_BYTES: {
            uint64_t n;
            int more = fp_wire_read_varint(f->p, end, &n);
            if (more <= 0) return more;
            if (n > (uint64_t)INT64_MAX) return FP_WIRE_BAD;
            f->n = (size_t)n;
            f->p += more;
            return used + more;
        }
        case FP_WIRE_FIXED64: f->n = 8; return used;
        case FP_WIRE_FIXED32: f->n = 4; return used;
        default: return FP_WIRE_BAD; /* groups, which current writers do not use, and undefined types */
    }
}

/* A message as a table: what its fields are, by number, and where fp_wire_read stores them.
 *
 *   struct line { uint64_t function; int64_t line, column; };
 *   #define TO(member) FP_WIRE_TO(struct line, member)
 *   static const struct fp_wire_schema schema = {" VVV", {0, TO(function), TO(line), TO(column)}};
 *
 * kinds[number] is 'V' for a varint, 'B' for bytes, 'F' for 8 fixed bytes, 'L' for a list of varints and 'X' for one of
 * fixed 8 bytes, packed or not; a blank or 0 if there is no such field.  kinds[0] is blank: no field has number 0.
 *
 * to[number] is FP_WIRE_TO of a member: uint64_t or int64_t for a number, struct fp_wire for bytes or a list.  0: the
 * caller takes the field itself.  to[0] is that of a uint64_t, in which bit `number` is set for each field found. */
struct fp_wire_schema {
    char kinds[64];
    uint16_t to[64];
};

#define FP_WIRE_TO(type, member) (offsetof(type, member) + 1)
#define FP_WIRE_ONLY 1 /* fp_wire_read stores one field only, in `to` itself */

/* How a reader treats a field.  0 is the end of the message. */
enum fp_wire_kind { FP_WIRE_END = 0, FP_WIRE_KNOWN = 1, FP_WIRE_UNKNOWN = 2 };

/* FP_WIRE_KNOWN, FP_WIRE_UNKNOWN, or FP_WIRE_BAD for a known field with the wrong wire type. */
static inline int fp_wire_kind(const struct fp_wire_schema *schema, const struct fp_wire_field *f) {
    enum { V = 1 << FP_WIRE_VARINT, B = 1 << FP_WIRE_BYTES, F = 1 << FP_WIRE_FIXED64 };
    static const uint8_t types['X' + 1] = {['V'] = V, ['B'] = B, ['F'] = F, ['L'] = V | B, ['X'] = F | B};
    if (f->number >= sizeof schema->kinds) return FP_WIRE_UNKNOWN;
    const uint32_t right = types[(uint8_t)schema->kinds[f->number]];
    if (!right) return FP_WIRE_UNKNOWN;
    return right >> f->wire & 1 ? FP_WIRE_KNOWN : FP_WIRE_BAD;
}

/* A message or a list of varints, with all its bytes.  Reading advances `p`. */
struct fp_wire {
    const uint8_t *p, *end;
};

/* The content of a field, to be read as a message or a list.  A list that is not packed is one VARINT a field, and
 * each of these is a list of one. */
static inline struct fp_wire fp_wire_inside(const struct fp_wire_field *f) {
    return (struct fp_wire){f->p, f->p + f->n};
}

/* The next field of a message: an fp_wire_kind, or FP_WIRE_BAD, which leaves m->p at the field that is broken. */
static inline int fp_wire_next(struct fp_wire *m, const struct fp_wire_schema *schema, struct fp_wire_field *f) {
    if (m->p == m->end) return FP_WIRE_END;
    int used = fp_wire_read_head(m->p, m->end, f);
    if (used <= 0 || f->n > (size_t)(m->end - f->p)) return FP_WIRE_BAD;
    int kind = fp_wire_kind(schema, f);
    if (kind != FP_WIRE_BAD) m->p = f->p + f->n;
    return kind;
}

/* Stores a known field in `to`: 1, or 0 if the schema has no place for it. */
int fp_wire_store(const struct fp_wire_schema *schema, void *to, struct fp_wire_field *f);

/* Stores the fields of a message in `to` up to one that the schema has no place for: FP_WIRE_KNOWN, and the caller
 * takes `f` and calls again.  FP_WIRE_END, or FP_WIRE_BAD as fp_wire_next; unknown fields are added to *unknown (or
 * NULL).  Of several fields with the same number the last one stays. */
int fp_wire_read(struct fp_wire *m, const struct fp_wire_schema *schema, void *to, struct fp_wire_field *f,
                 uint64_t *unknown);

/* fp_wire_read to the end of a message; fields without a place are skipped.  NULL, or the field that is broken. */
const uint8_t *fp_wire_all(struct fp_wire m, const struct fp_wire_schema *schema, void *to, uint64_t *unknown);

/* The numbers in all fields `number` of a message. */
struct fp_wire_list {
    struct fp_wire rest, now;
    const struct fp_wire_schema *schema;
    uint32_t number;
};

static inline struct fp_wire_list fp_wire_list_of(struct fp_wire m, const struct fp_wire_schema *schema,
                                                  uint32_t number) {
    return (struct fp_wire_list){m, {m.p, m.p}, schema, number};
}

/* The next number of a list: 1, 0 at its end, or FP_WIRE_BAD, which leaves list->p at the number that is broken. */
static inline int fp_wire_next_number(struct fp_wire *list, uint64_t *v) {
    if (list->p == list->end) return 0;
    int used = fp_wire_read_varint(list->p, list->end, v);
    if (used <= 0) return FP_WIRE_BAD;
    list->p += used;
    return 1;
}

/* The next one of all: 1, 0 after the last one, or FP_WIRE_BAD. */
static inline int fp_wire_list_next(struct fp_wire_list *l, uint64_t *v) {
    struct fp_wire_field f;
    int more;
    *v = 0;
    while ((more = fp_wire_next_number(&l->now, v)) == 0) {
        const int kind = fp_wire_next(&l->rest, l->schema, &f);
        if (kind <= 0) return kind;
        if (f.number != l->number) continue;
        if (f.wire == FP_WIRE_VARINT) {
            *v = f.v;
            return 1;
        }
        l->now = fp_wire_inside(&f);
    }
    return more;
}

/* ---- records of other formats with such numbers ---- */

/* Reads one record.  `status`: 0, FP_MORE (it is incomplete) or FP_E_MALFORMED (a number is longer than 64 bits); after
 * that all that is read is 0, so it is looked at once, at the end. */
struct fp_cursor {
    const uint8_t *p, *end;
    int status;
    const char *what, *want; /* of an error; NULL: not stated */
};

static inline struct fp_cursor fp_cursor_at(const struct fp_window *in) {
    return (struct fp_cursor){.p = in->p + in->pos, .end = in->p + in->n};
}

static inline int fp_cursor_bad(struct fp_cursor *c, const char *what, const char *want) {
    c->what = what;
    c->want = want;
    return FP_E_MALFORMED;
}

/* Ends a record that was read with `status`: moves the window past it.  0, FP_MORE, or an error, which is located at
 * its beginning; `cut`: that of a file that ends inside a record. */
int fp_cursor_done(const struct fp_cursor *c, int status, const char *cut, struct fp_window *in, struct fp_err *err);

struct fp_cursor_text {
    const uint8_t *p;
    size_t n;
};

static inline uint64_t fp_cursor_stop(struct fp_cursor *c, int status) {
    if (!c->status) c->status = status;
    c->p = c->end;
    return 0;
}

static inline uint64_t fp_cursor_number(struct fp_cursor *c) {
    uint64_t v = 0;
    const int n = fp_wire_read_varint(c->p, c->end, &v);
    if (FP_UNLIKELY(n <= 0)) return fp_cursor_stop(c, n == FP_WIRE_BAD ? FP_E_MALFORMED : FP_MORE);
    c->p += n;
    return v;
}

/* A signed one: its sign is its lowest bit. */
static inline uint64_t fp_cursor_delta(struct fp_cursor *c) {
    return fp_zag(fp_cursor_number(c));
}

/* A number of n <= 8 bytes. */
static inline uint64_t fp_cursor_fixed(struct fp_cursor *c, size_t n) {
    uint64_t v = 0;
    if (FP_UNLIKELY((size_t)(c->end - c->p) < n)) return fp_cursor_stop(c, FP_MORE);
    memcpy(&v, c->p, n);
    c->p += n;
    return v;
}

/* A text that ends in a zero byte. */
static inline struct fp_cursor_text fp_cursor_text(struct fp_cursor *c) {
    const uint8_t *p = c->p, *end = p < c->end ? memchr(p, 0, (size_t)(c->end - p)) : NULL;
    if (!end) return (struct fp_cursor_text){p, fp_cursor_stop(c, FP_MORE)};
    c->p = end + 1;
    return (struct fp_cursor_text){p, (size_t)(end - p)};
}

/* ---- writing ---- */

/* The tag of a field.  It is written as a varint. */
#define FP_WIRE_TAG(number, wire) ((number) << 3 | (wire))

/* The most bytes that a tag and a varint take. */
enum { FP_WIRE_HEAD = 15 };

/* The bytes that fp_varint takes for v. */
static inline unsigned fp_varint_length(uint64_t v) {
    unsigned n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}

/* cffi-begin */

/* A VARINT field.  A negative int64 is given as its 64 bits.  0 or FP_E_NOMEM. */
int fp_wire_put_number(struct fp_buf *b, uint32_t number, uint64_t v);

/* The same, but writes nothing for 0: proto3 leaves such fields out, and readers treat a missing field as 0. */
int fp_wire_put_nonzero(struct fp_buf *b, uint32_t number, uint64_t v);

/* A field with a content of n bytes: a string, or a message that is complete.  0 or FP_E_NOMEM. */
int fp_wire_put_bytes(struct fp_buf *b, uint32_t number, const void *p, size_t n);

/* A field whose content is a message.  Everything written between the two calls is the content, which may hold further
 * messages.  fp_wire_begin returns a mark for fp_wire_end.  fp_wire_end returns 0, or FP_E_NOMEM if memory ran out at
 * any time since the buffer was made. */
size_t fp_wire_begin(struct fp_buf *b, uint32_t number);
int fp_wire_end(struct fp_buf *b, size_t mark);

/* cffi-end */

/* A field whose content is a message of n numbers, its fields 1 to n, without those that are 0. */
int fp_wire_put_numbers(struct fp_buf *b, uint32_t number, const uint64_t *numbers, uint32_t n);
#define FP_WIRE_PUT(b, number, ...)                                 \
    fp_wire_put_numbers(b, number, (const uint64_t[]){__VA_ARGS__}, \
                        sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))
