#include "pstats/read.h"

enum { BEGIN, ENTRIES, ROWS, AFTER, END };

struct fp_pstats_reader *fp_pstats_reader_new(struct fp_model *model, int lenient) {
    struct fp_pstats_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->marshal.strings = &model->strings;
    return r;
}

void fp_pstats_reader_free(struct fp_pstats_reader *r) {
    fp_pstats_marshal_clear(&r->marshal);
    free(r);
}

static const struct fp_pstats_marshal_value *item(const struct fp_pstats_reader *r,
                                                  const struct fp_pstats_marshal_value *v, uint32_t i) {
    return &r->marshal.items[v->of.at + i];
}

/* Fails at the offset of the entry. */
static int bad(const struct fp_pstats_reader *r, const char *what, const char *want, struct fp_err *err) {
    fp_fail(err, FP_E_MALFORMED, r->at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* ---- values of an entry ---- */

/* A number of calls; -1 of pyinstrument, which does not count calls. */
static int count(const struct fp_pstats_reader *r, const struct fp_pstats_marshal_value *v, int64_t *n,
                 struct fp_err *err) {
    if (v->kind != FP_PSTATS_MARSHAL_INT) return bad(r, "a number of calls", "an int of 64 bits", err);
    *n = v->of.i;
    return 0;
}

/* Seconds as nanoseconds. */
static int seconds(const struct fp_pstats_reader *r, const struct fp_pstats_marshal_value *v, int64_t *ns,
                   struct fp_err *err) {
    const double s = v->kind == FP_PSTATS_MARSHAL_FLOAT ? v->of.d
                     : v->kind == FP_PSTATS_MARSHAL_INT ? (double)v->of.i
                                                        : 1e300;
    const double exact = s * 1e9;
    if (!(exact > -9.2e18 && exact < 9.2e18)) return bad(r, "a time", "seconds, within 292 years", err);
    *ns = (int64_t)(exact < 0 ? exact - 0.5 : exact + 0.5);
    return 0;
}

/* The function of a key (file, line, name). */
static int function_of(const struct fp_pstats_reader *r, const struct fp_pstats_marshal_value *key, uint32_t *function,
                       uint32_t *line, struct fp_err *err) {
    static const char want[] = "(file, line, name)";
    if (key->kind != FP_PSTATS_MARSHAL_TUPLE || key->n != 3) return bad(r, "the key of a function", want, err);
    const struct fp_pstats_marshal_value *file = item(r, key, 0), *at = item(r, key, 1), *name = item(r, key, 2);
    if (file->kind != FP_PSTATS_MARSHAL_TEXT || name->kind != FP_PSTATS_MARSHAL_TEXT ||
        at->kind != FP_PSTATS_MARSHAL_INT)
        return bad(r, "the key of a function", want, err);
    if (at->of.i < 0 || at->of.i > INT32_MAX)
        return fp_fail_got(err, FP_E_MALFORMED, r->at, "the line of a function", FP_GOT_SIGNED, (uint64_t)at->of.i,
                           "0 to 2^31 - 1", 0);
    size_t n;
    const uint8_t *path = fp_string(&r->model->strings, (uint32_t)file->of.id, &n);
    const int is_builtin = n == 1 && *path == '~' && !at->of.i;
    *line = (uint32_t)at->of.i;
    *function = fp_model_function(r->model, 0, is_builtin ? 0 : (uint32_t)file->of.id, (uint32_t)name->of.id, 0, *line);
    return 0;
}

/* Reads four values: two call counts, of which item `total` includes recursive calls, and two times. */
static int values_of(const struct fp_pstats_reader *r, const struct fp_pstats_marshal_value *v, uint32_t total,
                     int64_t values[FP_PSTATS_VALUES], struct fp_err *err) {
    FP_TRY(count(r, item(r, v, total), &values[FP_PSTATS_CALLS], err));
    FP_TRY(count(r, item(r, v, 1 - total), &values[FP_PSTATS_PRIMITIVE], err));
    FP_TRY(seconds(r, item(r, v, 2), &values[FP_PSTATS_OWN], err));
    return seconds(r, item(r, v, 3), &values[FP_PSTATS_CUMULATIVE], err);
}

/* Counts the calls of the entry without times, except calls to itself.  The module `profile` writes such calls. */
static int add_untimed(struct fp_pstats_reader *r, struct fp_err *err) {
    r->left = 0;
    for (uint32_t i = 0; i < r->callers.n; i += 2) {
        const struct fp_pstats_marshal_value *n = item(r, &r->callers, i + 1);
        uint32_t caller, line;
        if (n->kind != FP_PSTATS_MARSHAL_INT || n->of.i < 0 ||
            function_of(r, item(r, &r->callers, i), &caller, &line, err))
            continue; /* the row reports the error */
        if (caller != r->function && __builtin_add_overflow(r->left, n->of.i, &r->left))
            return bad(r, "the calls of a function", "fewer than 2^63", err);
    }
    r->rest[0] = r->own[FP_PSTATS_CUMULATIVE];
    r->rest[1] = r->own[FP_PSTATS_OWN];
    return 0;
}

static int begin_entry(struct fp_pstats_reader *r, struct fp_err *err) {
    const struct fp_pstats_marshal_value *v = &r->value;
    r->next = 0;
    r->functions++;
    FP_TRY(function_of(r, &r->key, &r->function, &r->line, err));
    if (v->kind != FP_PSTATS_MARSHAL_TUPLE || v->n != 5 || item(r, v, 4)->kind != FP_PSTATS_MARSHAL_DICT)
        return bad(r, "the value of a function", "two numbers of calls, two times and a dict of callers", err);
    FP_TRY(values_of(r, v, 1, r->own, err));
    r->callers = *item(r, v, 4);
    r->own[FP_PSTATS_TIME] = r->own[FP_PSTATS_OWN];
    return add_untimed(r, err);
}

/* ---- rows ---- */

static uint32_t add_row(struct fp_pstats_reader *r, struct fp_batch *out, uint32_t function, uint32_t line,
                        const int64_t values[FP_PSTATS_VALUES]) {
    const uint32_t i = fp_batch_cost(out, function, fp_file_of_function(r->model, function), line, 0);
    for (uint32_t k = 0; k < FP_PSTATS_VALUES; k++) out->values[(size_t)k * out->cap + i] = values[k];
    return i;
}

/* Takes from `rest` the part of n out of `left` calls. */
static int64_t share(int64_t *rest, int64_t n, int64_t left) {
    __extension__ typedef __int128 i128;
    const int64_t part = left ? (int64_t)((i128)*rest * n / left) : 0;
    *rest -= part;
    return part;
}

static int caller_row(struct fp_pstats_reader *r, struct fp_batch *out, struct fp_err *err) {
    const struct fp_pstats_marshal_value *v = item(r, &r->callers, 2 * r->next - 1);
    int64_t values[FP_PSTATS_VALUES] = {0};
    uint32_t caller, line;
    int status = function_of(r, item(r, &r->callers, 2 * r->next - 2), &caller, &line, err);
    if (status) return status;
    if (v->kind == FP_PSTATS_MARSHAL_TUPLE && v->n == 4) {
        status = values_of(r, v, 0, values, err);
    } else {
        status = count(r, v, &values[FP_PSTATS_CALLS], err);
        if (status) return status;
        const int64_t n = caller == r->function || values[FP_PSTATS_CALLS] < 0 ? 0 : values[FP_PSTATS_CALLS];
        values[FP_PSTATS_PRIMITIVE] = n;
        values[FP_PSTATS_CUMULATIVE] = share(&r->rest[0], n, r->left);
        values[FP_PSTATS_OWN] = share(&r->rest[1], n, r->left);
        r->left -= n;
        r->untimed++;
    }
    if (status) return status;
    values[FP_PSTATS_TIME] = values[FP_PSTATS_CUMULATIVE];
    const uint32_t i = add_row(r, out, caller, line, values);
    out->kind[i] = FP_CALL;
    out->callee[i] = r->function;
    out->target_line[i] = r->line;
    out->count[i] = values[FP_PSTATS_CALLS] < 0 ? 0 : (uint64_t)values[FP_PSTATS_CALLS];
    r->calls++;
    return 0;
}

/* The rows of an entry.  FP_FULL, FP_DONE or an error. */
static int rows(struct fp_pstats_reader *r, struct fp_batch *out, struct fp_err *err) {
    for (; r->next <= r->callers.n / 2; r->next++) {
        if (out->n == out->cap) return FP_FULL;
        /* a caller takes more than a byte, unless functions refer to one shared dict, which multiplies rows without
         * limit */
        if (++r->rows > r->end) return bad(r, "functions share their callers", NULL, err);
        if (!r->next) {
            add_row(r, out, r->function, r->line, r->own);
            continue;
        }
        const int status = caller_row(r, out, err);
        if (status && !r->lenient) return status;
        r->broken += status != 0;
    }
    return FP_DONE;
}

/* ---- the dict ---- */

static int begin(struct fp_pstats_reader *r, struct fp_window *in, struct fp_err *err) {
    if (in->pos == in->n)
        return in->eof ? fp_fail(err, FP_E_TRUNCATED, in->base + in->pos, "the file is empty") : FP_MORE;
    const uint8_t type = in->p[in->pos];
    if ((type & 0x7f) != '{')
        return fp_fail_got(err, FP_E_MALFORMED, in->base + in->pos, "the type of the value", FP_GOT_HEX, type,
                           "a dict of marshal", 0);
    if (type & 0x80) fp_pstats_marshal_number_dict(&r->marshal);
    in->pos++;
    r->state = ENTRIES;
    return FP_DONE;
}

/* Whether the entry is the mark of profiling.sampling. */
static int is_mark(const struct fp_pstats_reader *r) {
    static const char mark[] = "__sampled__";
    const struct fp_pstats_marshal_value *key = &r->key;
    if (key->kind != FP_PSTATS_MARSHAL_TUPLE || key->n != 1 || item(r, key, 0)->kind != FP_PSTATS_MARSHAL_TEXT)
        return 0;
    size_t n;
    const uint8_t *text = fp_string(&r->model->strings, (uint32_t)item(r, key, 0)->of.id, &n);
    return n == sizeof mark - 1 && !memcmp(text, mark, n);
}

/* Reads an entry.  FP_DONE: it has rows, or the state changed; FP_MORE or an error. */
static int entry(struct fp_pstats_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_pstats_marshal *m = &r->marshal;
    size_t pos = in->pos;
    fp_pstats_marshal_begin(m);
    if (pos < in->n && in->p[pos] == '0') {
        in->pos++;
        r->state = AFTER;
        return FP_DONE;
    }
    int status = fp_pstats_marshal_read(m, in, &pos, &r->key, err);
    if (!status) status = fp_pstats_marshal_read(m, in, &pos, &r->value, err);
    if (status) fp_pstats_marshal_forget(m);
    if (status == FP_MORE && in->eof)
        status = fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the file ends in its dict");
    if (status) return status;
    r->at = in->base + in->pos;
    in->pos = pos;
    r->end = in->base + pos;
    if (is_mark(r)) {
        r->sampled = 1;
        return FP_DONE;
    }
    status = begin_entry(r, err);
    if (!status) r->state = ROWS;
    if (!status || !r->lenient) return status;
    r->broken++;
    return FP_DONE;
}

static int step(struct fp_pstats_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    int status;
    switch (r->state) {
        case BEGIN: return begin(r, in, err);
        case ENTRIES:
            status = entry(r, in, err);
            if (status >= 0 || !r->lenient) return status;
            r->bad_end = 1;
            r->state = END;
            return FP_DONE;
        case ROWS:
            status = rows(r, out, err);
            if (!status) r->state = ENTRIES;
            return status;
        default:
            if (r->state == AFTER) r->trailing += in->n - in->pos;
            in->pos = in->n;
            return FP_MORE;
    }
}

int fp_pstats_feed(struct fp_pstats_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    int status;
    do status = step(r, in, out, err);
    while (status == FP_DONE);
    return status == FP_MORE && in->eof && r->state >= AFTER ? FP_DONE : status;
}
