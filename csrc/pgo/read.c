#include "pgo/read.h"

#include "pgo/rows.h"

enum { BAD = -1000 };

struct fp_pgo_text {
    const uint8_t *p, *stop;
};

struct fp_pgo_reader *fp_pgo_reader_new(struct fp_model *model, int lenient) {
    struct fp_pgo_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    return r;
}

void fp_pgo_reader_free(struct fp_pgo_reader *r) {
    if (!r) return;
    FP_FREE(r->levels, r);
}

/* Digits; up to 2^63 - 1 or, of a place, `most`. */
static int take_number(struct fp_pgo_text *t, uint64_t most, uint64_t *to) {
    const uint8_t *p = t->p;
    uint64_t value = 0;
    for (; p != t->stop && fp_is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (value > (most - digit) / 10) return 0;
        value = 10 * value + digit;
    }
    if (p == t->p) return 0;
    t->p = p;
    *to = value;
    return 1;
}

static int take(struct fp_pgo_text *t, char byte) {
    if (t->p == t->stop || *t->p != (uint8_t)byte) return 0;
    t->p++;
    return 1;
}

/* `4` or `4.2`. */
static int take_place(struct fp_pgo_text *t, uint64_t *offset, uint64_t *discriminator) {
    *discriminator = 0;
    return take_number(t, UINT32_MAX, offset) && (!take(t, '.') || take_number(t, UINT32_MAX, discriminator));
}

/* Cuts `:number` off the end of a text.  0 if it has none. */
static int cut_number(struct fp_pgo_text *t, uint64_t *to) {
    const uint8_t *p = t->stop;
    while (p != t->p && fp_is_digit(p[-1])) p--;
    struct fp_pgo_text digits = {p, t->stop};
    if (p == t->p || p[-1] != ':' || !take_number(&digits, INT64_MAX, to)) return 0;
    t->stop = p - 1;
    return 1;
}

static uint32_t function_of(struct fp_pgo_reader *r, struct fp_pgo_text name) {
    return fp_pgo_function_of(r, fp_strings_intern(&r->model->strings, name.p, (size_t)(name.stop - name.p)));
}

/* `[main:3 @ walk:2.1 @ leaf]`: opens a level for each. */
static int open_context(struct fp_pgo_reader *r, struct fp_pgo_text t) {
    uint32_t depth = 0, caller = 0;
    for (;;) {
        const uint8_t *p = t.p;
        while (p != t.stop && !(t.stop - p > 3 && p[0] == ' ' && p[1] == '@' && p[2] == ' ')) p++;
        struct fp_pgo_text one = {t.p, p};
        if (one.p == one.stop || depth >= FP_PGO_MOST_LEVELS) return BAD;
        if (p == t.stop) {
            fp_pgo_open_level(r, depth, caller, function_of(r, one));
            return 0;
        }
        const uint8_t *colon = p;
        while (colon != t.p && colon[-1] != ':') colon--;
        struct fp_pgo_text place = {colon, p};
        uint64_t offset, discriminator;
        if (colon == t.p || !take_place(&place, &offset, &discriminator) || place.p != p) return BAD;
        one.stop = colon - 1;
        const uint32_t function = function_of(r, one);
        fp_pgo_open_level(r, depth++, caller, function);
        caller = fp_pgo_frame_at(r, function, offset, discriminator);
        t.p = p + 3;
    }
}

/* `main:1430:1` */
static int function_line(struct fp_pgo_reader *r, struct fp_pgo_text t, struct fp_batch *out) {
    uint64_t total, head;
    if (!cut_number(&t, &head) || !cut_number(&t, &total) || t.p == t.stop) return BAD;
    r->n_levels = r->base = 0;
    if (*t.p == '[' && t.stop[-1] == ']') {
        FP_TRY(open_context(r, (struct fp_pgo_text){t.p + 1, t.stop - 1}));
    } else {
        fp_pgo_open_level(r, 0, 0, function_of(r, t));
    }
    r->base = r->n_levels;
    const uint32_t depth = r->base, frame = fp_pgo_frame_at(r, r->levels[depth - 1].function, 0, 0);
    return head ? fp_pgo_add_row(r, depth, frame, 0, FP_PGO_ENTRIES, head, out) : 0;
}

/* ` hash:180 walk:20`, each a row.  FP_FULL leaves the place to go on from in r->left. */
static int targets(struct fp_pgo_reader *r, struct fp_pgo_text t, uint32_t depth, uint32_t frame,
                   struct fp_batch *out) {
    for (;;) {
        r->left = (size_t)(t.stop - t.p);
        if (!take(&t, ' ')) return 0;
        struct fp_pgo_text one = {t.p, memchr(t.p, ' ', (size_t)(t.stop - t.p))};
        if (!one.stop) one.stop = t.stop;
        t.p = one.stop;
        uint64_t calls;
        if (one.p == one.stop || !cut_number(&one, &calls)) continue;
        if (out->n == out->cap) return FP_FULL;
        fp_pgo_add_row(r, depth, frame, fp_pgo_frame_at(r, function_of(r, one), 0, 0), FP_PGO_CALLS, calls, out);
    }
}

/* `200 hash:180 walk:20` */
static int count_line(struct fp_pgo_reader *r, struct fp_pgo_text t, uint32_t depth, uint32_t frame,
                      struct fp_batch *out) {
    uint64_t count;
    if (r->left) return targets(r, (struct fp_pgo_text){t.stop - r->left, t.stop}, depth, frame, out);
    if (!take_number(&t, INT64_MAX, &count) || (t.p != t.stop && *t.p != ' ')) return BAD;
    struct fp_pgo_text rest = t;
    while (take(&rest, ' ')) { /* the whole line is checked before its first row */
        struct fp_pgo_text one = {rest.p, memchr(rest.p, ' ', (size_t)(rest.stop - rest.p))};
        if (!one.stop) one.stop = rest.stop;
        rest.p = one.stop;
        uint64_t calls;
        if (one.p != one.stop && (!cut_number(&one, &calls) || one.p == one.stop)) return BAD;
    }
    const int status = fp_pgo_add_row(r, depth, frame, 0, FP_PGO_SAMPLES, count, out);
    return status ? status : targets(r, t, depth, frame, out);
}

/* A line with blanks before it: as many as levels are open. */
static int place_line(struct fp_pgo_reader *r, struct fp_pgo_text t, uint32_t depth, struct fp_batch *out) {
    uint64_t offset, discriminator, total;
    if (t.p != t.stop && *t.p == '!') {
        r->metadata++;
        return 0;
    }
    if (!take_place(&t, &offset, &discriminator) || !take(&t, ':') || !take(&t, ' ')) return BAD;
    const uint32_t frame = fp_pgo_frame_at(r, r->levels[depth - 1].function, offset, discriminator);
    if (t.p != t.stop && fp_is_digit(*t.p)) {
        r->n_levels = depth;
        return count_line(r, t, depth, frame, out);
    }
    if (!cut_number(&t, &total) || t.p == t.stop || depth >= FP_PGO_MOST_LEVELS) return BAD;
    if (t.stop - t.p > 2 && *t.p == '[' && t.stop[-1] == ']')
        t.p++, t.stop--; /* llvm-profdata, if there are contexts */
    fp_pgo_open_level(r, depth, frame, function_of(r, t));
    return 0;
}

static int line(struct fp_pgo_reader *r, struct fp_pgo_text t, struct fp_batch *out) {
    uint32_t blanks = 0;
    if (t.p == t.stop) {
        r->blank++;
        return 0;
    }
    if (*t.p != ' ') return function_line(r, t, out);
    while (take(&t, ' ')) blanks++;
    const uint32_t depth = r->base + blanks - 1;
    if (!r->base || depth > r->n_levels) return BAD;
    return place_line(r, t, depth, out);
}

int fp_pgo_feed(struct fp_pgo_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    fp_pgo_begin_rows(r);
    while (in->pos < in->n) {
        const uint8_t *p = in->p + in->pos, *end = memchr(p, '\n', in->n - in->pos);
        if (!end && !in->eof) return FP_MORE;
        const struct fp_pgo_text t = {p, end ? end : in->p + in->n};
        int status = end ? line(r, t, out) : BAD;
        if (status == FP_FULL) return status;
        if (status && !r->lenient)
            return fp_fail_text(err, end ? FP_E_MALFORMED : FP_E_TRUNCATED, in->base + in->pos, r->n_lines + 1,
                                "the line", t.p, (size_t)(t.stop - t.p),
                                end ? "a function, a place or a count" : "a newline");
        const int is_function = t.p != t.stop && *t.p != ' ';
        if (status && is_function) r->base = 0;
        r->functions += !status && is_function;
        r->unread += status != 0;
        r->n_lines++;
        in->pos += (size_t)(t.stop - t.p) + (end != NULL);
    }
    return in->eof ? FP_DONE : FP_MORE;
}
