#include "pstats/write.h"

enum { KEY_FILE, KEY_LINE, KEY_NAME, KEY_WIDTH };
enum { CALLER, CALLEE, ARC_WIDTH };
/* The values of an arc whose others are derived. */
enum { ARC_COST = FP_PSTATS_TIME, ARC_CALLS = FP_PSTATS_CALLS, ARC_VALUES = 2 };

struct fp_pstats_writer *fp_pstats_writer_new(struct fp_model *model) {
    struct fp_pstats_writer *w = fp_made(sizeof *w);
    w->model = model;
    w->unit = 1;
    fp_table_init(&w->arcs, ARC_WIDTH);
    fp_table_init(&w->keys, KEY_WIDTH);
    return w;
}

/* Bytes of the values of n arcs. */
static size_t arcs_size(const struct fp_pstats_writer *w, uint64_t n) {
    return (size_t)n * w->width * sizeof *w->of_arcs;
}

void fp_pstats_writer_free(struct fp_pstats_writer *w) {
    FP_CLEAR_TABLES(&w->arcs, &w->old_arcs, &w->keys);
    fp_utf8_names_clear(&w->texts);
    fp_buf_free(&w->scratch);
    fp_release(w->of_arcs, arcs_size(w, w->cap_of_arcs));
    fp_release(w->of_old_arcs, arcs_size(w, w->cap_of_old_arcs));
    FP_FREE(w->own, w->lines, w->key_of, w->of_keys, w->first, w->sorted, w->text_refs, w->key_refs, w);
}

/* ---- adding up ---- */

/* Adds n values. */
static int add_values(int64_t *to, const int64_t *more, uint32_t n, struct fp_err *err) {
    for (uint32_t k = 0; k < n; k++)
        if (__builtin_add_overflow(to[k], more[k], &to[k]))
            return fp_fail_beyond(err, "the sum of a function", FP_NO_COLUMN, "2^63 - 1");
    return 0;
}

static int add(struct fp_pstats_sums *to, const struct fp_pstats_sums *more, struct fp_err *err) {
    return add_values(to->v, more->v, FP_PSTATS_VALUES, err);
}

/* Adds the values of an arc. */
static int add_arc(struct fp_pstats_writer *w, uint32_t caller, uint32_t callee, const int64_t *values,
                   struct fp_err *err) {
    const uint32_t n = w->arcs.n;
    const uint32_t arc = fp_table_intern(&w->arcs, (const uint32_t[ARC_WIDTH]){caller, callee});
    if (arc >= w->cap_of_arcs) {
        const uint64_t cap = arc < UINT32_MAX / 2 ? 2 * (uint64_t)arc + 64 : UINT32_MAX;
        w->of_arcs = fp_have(fp_grow(w->of_arcs, arcs_size(w, w->cap_of_arcs), arcs_size(w, cap)));
        w->cap_of_arcs = (uint32_t)cap;
    }
    int64_t *of = w->of_arcs + (size_t)arc * w->width;
    if (arc == n) memset(of, 0, w->width * sizeof *of);
    return add_values(of, values, w->width, err);
}

/* Makes room for a function and records its first line. */
static void see(struct fp_pstats_writer *w, uint32_t function, uint32_t line) {
    const uint64_t need = (uint64_t)function + 1;
    fp_array_zeroed(&w->own, &w->cap_own, need, sizeof *w->own);
    fp_array_zeroed(&w->lines, &w->cap_lines, need, sizeof *w->lines);
    uint32_t *const first = &w->lines[function];
    const uint64_t known = line && line < FP_NO_ID ? (uint64_t)line + 1 : 1;
    if (!*first || *first == 1 || (known > 1 && known < *first)) *first = (uint32_t)known;
}

static int put_row(struct fp_pstats_writer *w, const struct fp_batch *in, uint32_t i, struct fp_err *err) {
    struct fp_pstats_sums sums = {{0}};
    const uint32_t function = in->function[i], *f = fp_table_row(&w->model->functions, function);
    see(w, function, in->file[i] == f[FP_FUNCTION_FILE] ? in->line[i] : 0);
    if (in->kind[i] == FP_BLOCK) return 0;
    const uint32_t line = f[FP_FUNCTION_LINE] ? f[FP_FUNCTION_LINE] : w->lines[function] - 1;
    w->elsewhere += in->file[i] != f[FP_FUNCTION_FILE] || (in->line[i] && in->line[i] != line);
    if (in->kind[i] != FP_COST && in->kind[i] != FP_CALL) {
        w->jumps++;
        return 0;
    }
    if (w->complete)
        for (uint32_t k = 0; k < FP_PSTATS_VALUES; k++) sums.v[k] = in->values[(size_t)k * in->cap + i];
    else if (in->n_values)
        sums.v[FP_PSTATS_TIME] = in->values[i];
    if (in->kind[i] == FP_COST) return add(&w->own[function], &sums, err);
    if (!w->complete) {
        if (in->count[i] > INT64_MAX) return fp_fail_beyond(err, "a number of calls", FP_NO_COLUMN, "2^63 - 1");
        sums.v[FP_PSTATS_CALLS] = (int64_t)in->count[i];
    }
    see(w, in->callee[i], 0);
    return add_arc(w, function, in->callee[i], sums.v, err); /* its first values are those of ARC_VALUES */
}

int fp_pstats_put(struct fp_pstats_writer *w, const struct fp_batch *in, struct fp_err *err) {
    if (w->arcs.n == 1) w->width = w->complete ? FP_PSTATS_VALUES : ARC_VALUES;
    for (uint32_t i = 0; i < in->n; i++) FP_TRY(put_row(w, in, i, err));
    return FP_DONE;
}

/* ---- functions by their keys ---- */

static uint32_t key_of(struct fp_pstats_writer *w, uint32_t function) {
    const struct fp_model *m = w->model;
    const uint32_t *f = fp_table_row(&m->functions, function);
    uint32_t key[KEY_WIDTH] = {f[FP_FUNCTION_FILE], f[FP_FUNCTION_LINE], f[FP_FUNCTION_NAME]};
    if (!key[KEY_FILE]) key[KEY_FILE] = fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME];
    if (!key[KEY_LINE] && w->lines[function]) key[KEY_LINE] = w->lines[function] - 1;
    return fp_table_intern(&w->keys, key);
}

static int add_to_keys(struct fp_pstats_writer *w, struct fp_err *err) {
    const uint32_t n = w->cap_lines < w->model->functions.n ? w->cap_lines : w->model->functions.n;
    w->key_of = fp_have(calloc((size_t)n + 1, sizeof *w->key_of));
    for (uint32_t function = 0; function < n; function++) {
        if (!w->lines[function]) continue; /* it has no rows */
        const uint32_t before = w->keys.n, key = key_of(w, function);
        fp_array_zeroed(&w->of_keys, &w->cap_of_keys, (uint64_t)key + 1, sizeof *w->of_keys);
        w->merged += key < before;
        w->key_of[function] = key;
        FP_TRY(add(&w->of_keys[key], &w->own[function], err));
    }
    return 0;
}

/* Arcs between keys instead of functions. */
static int arcs_of_keys(struct fp_pstats_writer *w, struct fp_err *err) {
    int status = 0;
    if (!w->merged) { /* they remain distinct */
        fp_table_seal(&w->arcs);
        for (uint32_t *arc = w->arcs.words; arc < w->arcs.words + (size_t)w->arcs.n * ARC_WIDTH; arc++)
            *arc = w->key_of[*arc];
        return 0;
    }
    w->old_arcs = w->arcs;
    w->of_old_arcs = w->of_arcs;
    w->cap_of_old_arcs = w->cap_of_arcs;
    memset(&w->arcs, 0, sizeof w->arcs);
    w->of_arcs = NULL;
    w->cap_of_arcs = 0;
    fp_table_seal(&w->old_arcs);
    fp_table_init(&w->arcs, ARC_WIDTH);
    for (uint32_t i = 1; !status && i < w->old_arcs.n; i++) {
        const uint32_t *arc = fp_table_row(&w->old_arcs, i);
        status = add_arc(w, w->key_of[arc[CALLER]], w->key_of[arc[CALLEE]], w->of_old_arcs + (size_t)i * w->width, err);
    }
    return status;
}

/* Sorts arcs by callee. */
static void sort_arcs(struct fp_pstats_writer *w) {
    w->first = fp_have(calloc((size_t)w->keys.n + 1, sizeof *w->first));
    w->sorted = fp_have(calloc((size_t)w->arcs.n + 1, sizeof *w->sorted));
    for (uint32_t i = 1; i < w->arcs.n; i++) w->first[fp_table_row(&w->arcs, i)[CALLEE]]++;
    uint32_t end = 0;
    for (uint32_t key = 0; key <= w->keys.n; key++) {
        end += w->first[key];
        w->first[key] = end; /* the loop below moves it to the first arc */
    }
    for (uint32_t i = w->arcs.n; --i > 0;) w->sorted[--w->first[fp_table_row(&w->arcs, i)[CALLEE]]] = i;
}

/* ---- numbers that follow from one value ---- */

/* All values of an arc. */
static struct fp_pstats_sums values_of(const struct fp_pstats_writer *w, uint32_t i) {
    const uint32_t *arc = fp_table_row(&w->arcs, i);
    const int64_t *v = w->of_arcs + (size_t)i * w->width;
    struct fp_pstats_sums sums;
    if (w->width == FP_PSTATS_VALUES && w->complete) {
        memcpy(sums.v, v, sizeof sums.v);
        return sums;
    }
    const struct fp_pstats_sums *callee = &w->of_keys[arc[CALLEE]];
    const int64_t into = callee->v[FP_PSTATS_TIME]; /* see derive */
    const int is_own = arc[CALLER] == arc[CALLEE];
    sums.v[FP_PSTATS_CALLS] = v[ARC_CALLS];
    sums.v[FP_PSTATS_PRIMITIVE] = is_own ? 0 : v[ARC_CALLS];
    sums.v[FP_PSTATS_CUMULATIVE] = v[ARC_COST];
    sums.v[FP_PSTATS_OWN] =
        is_own || !into ? 0 : (int64_t)((double)callee->v[FP_PSTATS_OWN] * ((double)v[ARC_COST] / (double)into));
    return sums;
}

/* Of functions.  Their FP_PSTATS_TIME becomes the cost of the calls into them. */
static int derive(struct fp_pstats_writer *w, struct fp_err *err) {
    struct fp_pstats_sums *const own = w->of_keys;
    int64_t *const made = fp_scratch(w->keys.n, sizeof *made); /* by key: own cost and calls that it makes */
    for (uint32_t key = 1; key < w->keys.n; key++) made[key] = own[key].v[FP_PSTATS_OWN] = own[key].v[FP_PSTATS_TIME];
    for (uint32_t i = 1; i < w->arcs.n; i++) {
        const uint32_t *arc = fp_table_row(&w->arcs, i);
        const int64_t *v = w->of_arcs + (size_t)i * w->width;
        struct fp_pstats_sums into = {{0}};
        into.v[FP_PSTATS_CALLS] = v[ARC_CALLS];
        if (arc[CALLER] != arc[CALLEE]) {
            w->estimated++;
            into.v[FP_PSTATS_PRIMITIVE] = v[ARC_CALLS];
            into.v[FP_PSTATS_CUMULATIVE] = v[ARC_COST];
            if (__builtin_add_overflow(made[arc[CALLER]], v[ARC_COST], &made[arc[CALLER]]))
                return fp_fail_beyond(err, "the cost of a function", FP_NO_COLUMN, "2^63 - 1");
        }
        FP_TRY(add(&own[arc[CALLEE]], &into, err));
    }
    for (uint32_t key = 1; key < w->keys.n; key++) {
        int64_t *const v = own[key].v;
        v[FP_PSTATS_TIME] = v[FP_PSTATS_CUMULATIVE];
        if (made[key] > v[FP_PSTATS_CUMULATIVE]) v[FP_PSTATS_CUMULATIVE] = made[key];
    }
    return 0;
}

/* Readers of this format, ours included, use 64-bit nanoseconds.  Values that are not times become nanoseconds if they
 * are too large for seconds. */
static int choose_unit(struct fp_pstats_writer *w, struct fp_err *err) {
    double most = 0;
    for (uint32_t i = 1; i < w->keys.n + w->arcs.n - 1; i++) {
        const struct fp_pstats_sums sums = i < w->keys.n ? w->of_keys[i] : values_of(w, i - w->keys.n + 1);
        for (uint32_t k = FP_PSTATS_CUMULATIVE; k <= FP_PSTATS_OWN; k++) {
            const double size = sums.v[k] < 0 ? -(double)sums.v[k] : (double)sums.v[k];
            if (size > most) most = size;
        }
    }
    if (!w->is_time && most > 9e9) w->unit = 1e-9;
    return most * w->unit < 9.2e9 ? 0 : fp_fail_beyond(err, "the time of a function", FP_NO_COLUMN, "292 years");
}

static int end(struct fp_pstats_writer *w, struct fp_err *err) {
    int status = add_to_keys(w, err);
    if (!status) status = arcs_of_keys(w, err);
    if (!status) sort_arcs(w);
    if (!status && (!w->complete || w->width == ARC_VALUES)) status = derive(w, err);
    if (!status) status = choose_unit(w, err);
    w->ended = !status;
    w->key = 1;
    return status;
}

/* ---- the file ---- */

enum { NUMBERED = 0x80, ITEM_BYTES = 64 };

static void put_byte(struct fp_buf *out, uint8_t byte) {
    out->p[out->n++] = byte;
}

static void put_u32(struct fp_buf *out, uint8_t type, uint32_t v) {
    put_byte(out, type);
    memcpy(out->p + out->n, &v, 4);
    out->n += 4;
}

/* Writes an int of 32 bits, or of 15-bit digits. */
static void put_int(struct fp_buf *out, int64_t v) {
    if (v == (int32_t)v) {
        put_u32(out, 'i', (uint32_t)(int32_t)v);
        return;
    }
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    uint32_t n = 0;
    for (uint64_t rest = left; rest; rest >>= 15) n++;
    put_u32(out, 'l', v < 0 ? 0 - n : n);
    for (; left; left >>= 15) {
        put_byte(out, (uint8_t)left);
        put_byte(out, (uint8_t)(left >> 8 & 0x7f));
    }
}

static void put_seconds(const struct fp_pstats_writer *w, struct fp_buf *out, int64_t v) {
    const double seconds = (double)v * w->unit;
    put_byte(out, 'g');
    memcpy(out->p + out->n, &seconds, 8);
    out->n += 8;
}

/* Writes a string, or `nothing` instead of an empty one.  The first time it gets a reference number. */
static void put_text(struct fp_pstats_writer *w, struct fp_buf *out, uint32_t string, const char *nothing) {
    if (!string) {
        put_byte(out, 'z');
        put_byte(out, (uint8_t)strlen(nothing));
        fp_buf_put(out, nothing, strlen(nothing));
        fp_buf_reserve(out, ITEM_BYTES);
        return;
    }
    size_t n;
    if (*FP_AT(w->text_refs, w->cap_text_refs, string)) {
        put_u32(out, 'r', w->text_refs[string] - 1);
        return;
    }
    w->text_refs[string] = ++w->n_refs;
    const uint8_t *text = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, string, &n, &w->replaced);
    put_u32(out, 'u' | NUMBERED, (uint32_t)n);
    fp_buf_put(out, text, n);
    fp_buf_reserve(out, ITEM_BYTES);
}

static void put_key(struct fp_pstats_writer *w, struct fp_buf *out, uint32_t key) {
    fp_buf_reserve(out, ITEM_BYTES);
    fp_array_zeroed(&w->key_refs, &w->cap_key_refs, w->keys.n, sizeof *w->key_refs);
    if (w->key_refs[key]) {
        put_u32(out, 'r', w->key_refs[key] - 1);
        return;
    }
    const uint32_t *k = fp_table_row(&w->keys, key);
    w->key_refs[key] = ++w->n_refs;
    put_byte(out, ')' | NUMBERED);
    put_byte(out, KEY_WIDTH);
    put_text(w, out, k[KEY_FILE], "~");
    put_int(out, k[KEY_LINE]);
    put_text(w, out, k[KEY_NAME], "");
}

static void put_values(const struct fp_pstats_writer *w, struct fp_buf *out, uint8_t n, int64_t first, int64_t second,
                       const int64_t *v) {
    put_byte(out, ')');
    put_byte(out, n);
    put_int(out, first);
    put_int(out, second);
    put_seconds(w, out, v[FP_PSTATS_OWN]);
    put_seconds(w, out, v[FP_PSTATS_CUMULATIVE]);
}

static void put_caller(struct fp_pstats_writer *w, struct fp_buf *out, uint32_t arc) {
    const struct fp_pstats_sums sums = values_of(w, arc);
    put_key(w, out, fp_table_row(&w->arcs, arc)[CALLER]);
    fp_buf_reserve(out, ITEM_BYTES);
    put_values(w, out, 4, sums.v[FP_PSTATS_CALLS], sums.v[FP_PSTATS_PRIMITIVE], sums.v);
}

/* Continues an entry.  FP_DONE or FP_FULL. */
static int put_entry(struct fp_pstats_writer *w, struct fp_buf *out) {
    if (!w->begun) {
        const int64_t *v = w->of_keys[w->key].v;
        put_key(w, out, w->key);
        fp_buf_reserve(out, ITEM_BYTES);
        put_values(w, out, 5, v[FP_PSTATS_PRIMITIVE], v[FP_PSTATS_CALLS], v);
        put_byte(out, '{');
        w->begun = 1;
        w->arc = w->first[w->key];
    }
    for (; w->arc < w->first[w->key + 1]; w->arc++) {
        if (out->n >= FP_DRAIN) return FP_FULL;
        put_caller(w, out, w->sorted[w->arc]);
    }
    w->begun = 0;
    fp_buf_put(out, "0", 1);
    return FP_DONE;
}

int fp_pstats_take(struct fp_pstats_writer *w, struct fp_buf *out, struct fp_err *err) {
    if (!w->ended) {
        FP_TRY(end(w, err));
        fp_buf_put(out, "{", 1);
    }
    for (; w->key < w->keys.n; w->key++) {
        if (out->n >= FP_DRAIN) return FP_FULL;
        FP_TRY(put_entry(w, out));
    }
    fp_buf_put(out, "0", 1);
    return FP_DONE;
}
