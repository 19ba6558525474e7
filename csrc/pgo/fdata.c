#include "pgo/fdata.h"

enum { COLUMNS = 3, BAD = -1000 };

struct fp_pgo_line {
    const uint8_t *p, *stop;
};

/* `1 main 1f` */
struct place {
    uint8_t kind; /* 0: no symbol of the program; 1, 2: a global or local one; 3 to 5: of memory */
    uint32_t name;
    uint64_t offset;
};

struct fp_pgo_fdata *fp_pgo_fdata_new(struct fp_model *model, int lenient, int no_lbr) {
    struct fp_pgo_fdata *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->no_lbr = no_lbr;
    return r;
}

void fp_pgo_fdata_free(struct fp_pgo_fdata *r) {
    FP_FREE(r->name, r);
}

static int take(struct fp_pgo_line *t, char byte) {
    if (t->p == t->stop || *t->p != (uint8_t)byte) return 0;
    t->p++;
    return 1;
}

/* Digits below 2^63. */
static int take_number(struct fp_pgo_line *t, uint64_t *to) {
    const uint8_t *p = t->p;
    uint64_t value = 0;
    for (; p != t->stop && fp_is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (value > (INT64_MAX - digit) / 10) return 0;
        value = 10 * value + digit;
    }
    if (p == t->p) return 0;
    t->p = p;
    *to = value;
    return 1;
}

static int take_hex(struct fp_pgo_line *t, uint64_t *to) {
    const uint8_t *p = t->p;
    uint64_t value = 0;
    while (p != t->stop && p - t->p < 16 && fp_nibble(*p) < 16) value = value << 4 | fp_nibble(*p++);
    if (p == t->p) return 0;
    t->p = p;
    *to = value;
    return 1;
}

/* A name up to a blank; blanks and backslashes in it follow a backslash. */
static int take_name(struct fp_pgo_fdata *r, struct fp_pgo_line *t, uint32_t *to) {
    const uint8_t *p = t->p;
    uint32_t n = 0;
    for (; p != t->stop && *p != ' '; p++) {
        if (*p == '\\' && t->stop - p > 1) p++;
        FP_PUSH(r->name, n, r->cap_name) = *p;
    }
    t->p = p;
    *to = n ? fp_strings_intern(&r->model->strings, r->name, n) : 0;
    return n != 0;
}

static int take_place(struct fp_pgo_fdata *r, struct fp_pgo_line *t, struct place *to) {
    if (t->p == t->stop || *t->p < '0' || *t->p > '5') return 0;
    to->kind = (uint8_t)(*t->p++ - '0');
    return take(t, ' ') && take_name(r, t, &to->name) && take(t, ' ') && take_hex(t, &to->offset);
}

static uint32_t frame_of(struct fp_pgo_fdata *r, const struct place *place) {
    const uint32_t function = fp_model_function(r->model, 0, 0, place->name, 0, 0);
    const uint32_t offset = place->offset <= UINT32_MAX ? (uint32_t)place->offset : UINT32_MAX;
    return fp_model_line_frame(r->model, function, offset, 0);
}

static void put(struct fp_pgo_fdata *r, const struct place *first, const struct place *second,
                const uint64_t values[COLUMNS], struct fp_batch *out) {
    uint32_t node = fp_model_stack(r->model, 0, frame_of(r, first));
    if (second) node = fp_model_stack(r->model, node, frame_of(r, second));
    const uint32_t i = fp_batch_sample(out, node, 0, 0, 0);
    for (uint32_t k = 0; k < (r->no_lbr ? 1 : COLUMNS); k++) out->values[(size_t)k * out->cap + i] = (int64_t)values[k];
}

static int line(struct fp_pgo_fdata *r, struct fp_pgo_line t, struct fp_batch *out) {
    static const char no_lbr[] = "no_lbr", bolted[] = "boltedcollection";
    struct place first, second;
    uint64_t values[COLUMNS] = {0};
    if (t.p == t.stop) {
        r->blank++;
        return 0;
    }
    const size_t n = (size_t)(t.stop - t.p);
    if (r->n_lines < 2 && n >= sizeof no_lbr - 1 && !memcmp(t.p, no_lbr, sizeof no_lbr - 1)) return 0;
    if (r->n_lines < 2 && n == sizeof bolted - 1 && !memcmp(t.p, bolted, n)) return 0;
    if (!take_place(r, &t, &first) || !take(&t, ' ')) return BAD;
    if (first.kind >= 3) {
        if (!take_place(r, &t, &second) || second.kind < 3 || !take(&t, ' ') || !take_number(&t, values) ||
            t.p != t.stop)
            return BAD;
        r->loads++;
        return 0;
    }
    if (r->no_lbr) {
        if (!take_number(&t, values) || t.p != t.stop) return BAD;
        if (out->n == out->cap) return FP_FULL;
        put(r, &first, NULL, values, out);
        return 0;
    }
    if (!take_place(r, &t, &second) || second.kind >= 3 || !take(&t, ' ') || !take_number(&t, values + 1) ||
        !take(&t, ' ') || !take_number(&t, values) || t.p != t.stop)
        return BAD;
    if (out->n == out->cap) return FP_FULL;
    put(r, &first, &second, values, out);
    return 0;
}

int fp_pgo_fdata_feed(struct fp_pgo_fdata *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    while (in->pos < in->n) {
        const uint8_t *p = in->p + in->pos, *end = memchr(p, '\n', in->n - in->pos);
        if (!end && !in->eof) return FP_MORE;
        const struct fp_pgo_line t = {p, end ? end : in->p + in->n};
        const int status = end ? line(r, t, out) : BAD;
        if (status == FP_FULL) return status;
        if (status && !r->lenient)
            return fp_fail_text(err, end ? FP_E_MALFORMED : FP_E_TRUNCATED, in->base + in->pos, r->n_lines + 1,
                                "the line", t.p, (size_t)(t.stop - t.p),
                                !end        ? "a newline"
                                : r->no_lbr ? "a place and a count"
                                            : "two places and two counts");
        r->unread += status != 0;
        r->n_lines++;
        in->pos += (size_t)(t.stop - t.p) + (end != NULL);
    }
    return in->eof ? FP_DONE : FP_MORE;
}
