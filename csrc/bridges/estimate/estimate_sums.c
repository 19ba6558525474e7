#include "bridges/estimate/estimate_private.h"

enum { FULL_BYTES = 32 << 20 }; /* of places; beyond it they are squeezed */
enum { SHORT = 24 };            /* entries up to this many are sorted by insertion */
enum { FIRST = 16 };            /* initial capacity in places: there may be a million sums */

struct fp_estimate_sums *fp_estimate_sums_new(const struct fp_model *m, const char *what) {
    struct fp_estimate_sums *s = fp_have(calloc(1, sizeof *s));
    s->model = m;
    s->what = what;
    s->block = FP_NO_ID;
    s->limit = UINT32_MAX;
    return s;
}

void fp_estimate_sums_free(struct fp_estimate_sums *s) {
    if (!s) return;
    fp_release(s->places, s->place_bytes);
    fp_release(s->values, s->value_bytes);
    fp_estimate_sums_free(s->next);
    fp_estimate_sums_pause(s);
    FP_FREE(s->totals, s->entries, s);
}

void fp_estimate_sums_begin(struct fp_estimate_sums *s) {
    if (s->slots) return;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t function = s->places[i].function;
        *FP_AT(s->seen, s->cap_seen, function) = 1;
    }
    s->slots = fp_have(calloc(FP_ESTIMATE_SLOTS, sizeof *s->slots));
}

void fp_estimate_sums_pause(struct fp_estimate_sums *s) {
    FP_FREE(s->seen, s->slots);
    s->seen = NULL;
    s->slots = NULL;
    s->cap_seen = 0;
}

void fp_estimate_sums_keep_places(struct fp_estimate_sums *s) {
    fp_release(s->values, s->value_bytes);
    s->values = NULL;
    s->value_bytes = 0;
}

static size_t bytes_of(uint32_t width, uint32_t cap) {
    size_t nbytes;
    return __builtin_mul_overflow((size_t)cap * sizeof(int64_t), width ? width : 1, &nbytes) ? SIZE_MAX : nbytes;
}

/* Makes room for one more place. */
static void room(struct fp_estimate_sums *s) {
    const uint32_t cap = s->cap ? s->cap * 2 : FIRST;
    if (s->cap > UINT32_MAX / 2) fp_escape();
    const size_t nbytes[2] = {cap * sizeof *s->places, bytes_of(s->width, cap)};
    if (s->place_bytes < nbytes[0]) { /* otherwise only the allocation of the values failed before */
        s->places = fp_have(fp_grow(s->places, s->place_bytes, nbytes[0]));
        s->place_bytes = nbytes[0];
    }
    s->values = fp_have(fp_grow(s->values, s->value_bytes, nbytes[1]));
    s->value_bytes = nbytes[1];
    s->cap = cap;
}

void fp_estimate_sums_widen(struct fp_estimate_sums *s, uint32_t width, uint32_t moved) {
    const size_t had = s->width < moved ? 0 : s->width - moved, nbytes = s->cap ? bytes_of(width, s->cap) : 0;
    double *totals = fp_scratch((size_t)width * 2, sizeof *totals);
    int64_t *values = nbytes ? fp_have(fp_zeroed(nbytes)) : NULL;
    for (size_t i = 0; i < s->n; i++) {
        const int64_t *from = s->values + i * s->width;
        memcpy(values + i * width, from, had * sizeof *values);
        memcpy(values + (i + 1) * width - moved, from + had, moved * sizeof *values);
    }
    for (uint32_t k = 0; k < had; k++) totals[k] = s->totals[k];
    fp_release(s->values, s->value_bytes);
    free(s->totals);
    s->values = values;
    s->value_bytes = nbytes;
    s->totals = fp_scratch_keep(totals);
    s->scale = totals + width;
    s->width = width;
    s->limit = (uint32_t)(FULL_BYTES / (sizeof *s->places + width * sizeof *values));
}

/* ---- shares ------------------------------------------------------------- */

static void add_totals(struct fp_estimate_sums *s, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const int64_t *values = fp_estimate_sums_values(s, i);
        for (uint32_t k = 0; k < s->width; k++) s->totals[k] += fp_estimate_magnitude(values[k]);
    }
}

/* The average excludes values that are 0 everywhere. */
static void set_scale(struct fp_estimate_sums *s) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->width; k++) n += s->totals[k] > 0;
    for (uint32_t k = 0; k < s->width; k++) s->scale[k] = s->totals[k] > 0 ? 1 / (s->totals[k] * n) : 0;
}

double fp_estimate_sums_share(const int64_t *values, const double *scale, uint32_t n_values) {
    double share = 0;
    for (uint32_t k = 0; k < n_values; k++) share += fp_estimate_magnitude(values[k]) * scale[k];
    return share;
}

/* ---- folding ------------------------------------------------------------ */

/* Adds one place's values to another's, all or none.  Returns the column that would overflow, or -1. */
static int64_t add(int64_t *to, const int64_t *from, uint32_t width) {
    int64_t sum;
    for (uint32_t k = 0; k < width; k++)
        if (__builtin_add_overflow(to[k], from[k], &sum)) return k;
    for (uint32_t k = 0; k < width; k++) to[k] += from[k];
    return -1;
}

uint32_t fp_estimate_sums_fold(struct fp_estimate_sums *s, uint32_t first, uint32_t end, double cut) {
    const size_t nbytes = s->width * sizeof *s->values;
    uint32_t rest = FP_NO_ID, n_rest = 0, to = first;
    for (uint32_t i = first; i < end; i++) {
        const int64_t *values = fp_estimate_sums_values(s, i);
        const int is_rest = s->places[i].callee == FP_ESTIMATE_REST || isinf(cut) ||
                            !(fp_estimate_sums_share(values, s->scale, s->width) >= cut);
        if (is_rest && rest != FP_NO_ID && add(fp_estimate_sums_values(s, rest), values, s->width) < 0) {
            n_rest++;
            continue;
        }
        if (is_rest && rest == FP_NO_ID) {
            rest = to;
            n_rest = 1;
        }
        if (i != to) {
            s->places[to] = s->places[i];
            memcpy(fp_estimate_sums_values(s, to), values, nbytes);
        }
        to++;
    }
    if (n_rest > 1) {
        const uint32_t function = s->places[rest].function;
        const uint32_t file = fp_table_row(&s->model->functions, function)[FP_FUNCTION_FILE];
        s->places[rest] = (struct fp_estimate_place){0, function, file, 0, FP_ESTIMATE_REST};
    }
    return to;
}

/* Folds the places of one function that cost less than `prune`. */
static uint32_t fold_function(struct fp_estimate_sums *s, uint32_t first, uint32_t end, double prune) {
    double share = 0;
    for (uint32_t i = first; i < end; i++)
        share += fp_estimate_sums_share(fp_estimate_sums_values(s, i), s->scale, s->width);
    return fp_estimate_sums_fold(s, first, end, share < prune ? INFINITY : prune / 2);
}

/* ---- adding ------------------------------------------------------------- */

static int is_too_much(const struct fp_estimate_sums *s) {
    return s->prune > 0 && s->n_fresh > s->most;
}

/* Ends the block of one function that began at `block_first`. */
static void close_block(struct fp_estimate_sums *s) {
    add_totals(s, s->block_first, s->n);
    if (is_too_much(s)) {
        set_scale(s);
        s->n = fold_function(s, s->block_first, s->n, s->prune);
    }
    s->block_first = s->n;
    s->block = FP_NO_ID;
}

uint32_t fp_estimate_sums_add(struct fp_estimate_sums *s, const struct fp_estimate_place *p, uint32_t *slot) {
    if (p->function != s->block) {
        fp_array_zeroed(&s->seen, &s->cap_seen, (uint64_t)p->function + 1, 1);
        close_block(s);
        s->block = p->function;
        s->fresh = !s->seen[p->function];
        s->seen[p->function] = 1;
    }
    if (FP_UNLIKELY(s->n == s->cap)) room(s);
    s->n_fresh += s->fresh;
    s->places[s->n] = *p;
    memset(fp_estimate_sums_values(s, s->n), 0, s->width * sizeof *s->values);
    s->squeezed = 0;
    return *slot = s->n++;
}

/* ---- squeezing ---------------------------------------------------------- */

static inline int by_place(const struct fp_estimate_place *x, const struct fp_estimate_place *y) {
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->callee > y->callee) - (x->callee < y->callee);
}

/* A place and the position of its values. */
struct sums_entry {
    struct fp_estimate_place place;
    uint32_t from;
};

static int entries_by_place(const void *a, const void *b) {
    const struct sums_entry *x = a, *y = b;
    const int order = by_place(&x->place, &y->place);
    return order ? order : (x->from > y->from) - (x->from < y->from);
}

static void sort_by_place(struct sums_entry *entries, uint32_t n) {
    if (n > SHORT) {
        qsort(entries, n, sizeof *entries, entries_by_place);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct sums_entry e = entries[i];
        uint32_t at = i;
        for (; at && by_place(&entries[at - 1].place, &e.place) > 0; at--) entries[at] = entries[at - 1];
        entries[at] = e;
    }
}

/* Appends the places of one function to `to`, each once. */
static int merge_places(const struct fp_estimate_sums *from, struct fp_estimate_sums *to, struct sums_entry *entries,
                        uint32_t n, struct fp_err *err) {
    sort_by_place(entries, n);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *values = fp_estimate_sums_values(from, entries[i].from);
        if (i && fp_estimate_same(&entries[i - 1].place, &entries[i].place)) {
            const int64_t column = add(fp_estimate_sums_values(to, to->n - 1), values, to->width);
            if (column >= 0) return fp_fail_beyond(err, from->what, column, "2^63 - 1");
            continue;
        }
        if (to->n == to->cap) room(to);
        to->places[to->n] = entries[i].place;
        memcpy(fp_estimate_sums_values(to, to->n++), values, to->width * sizeof *values);
    }
    return 0;
}

/* `start` has room for the functions and two more, `order` for the places. */
static int squeeze(const struct fp_estimate_sums *from, struct fp_estimate_sums *to, uint32_t *start, uint32_t *order,
                   struct fp_err *err) {
    const uint32_t n_functions = from->model->functions.n;
    int status = 0;
    for (uint32_t i = 0; i < from->n; i++) start[from->places[i].function + 2]++;
    for (uint32_t f = 1; f <= n_functions; f++) start[f + 1] += start[f];
    for (uint32_t i = 0; i < from->n; i++) order[start[from->places[i].function + 1]++] = i;
    for (uint32_t f = 0; f < n_functions && !status; f++) {
        const uint32_t n = start[f + 1] - start[f], first = to->n;
        if (!n) continue;
        fp_array_room(&to->entries, &to->cap_entries, n, sizeof *to->entries);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t at = order[start[f] + i];
            to->entries[i] = (struct sums_entry){from->places[at], at};
        }
        status = merge_places(from, to, to->entries, n, err);
        if (!status && is_too_much(from)) to->n = fold_function(to, first, to->n, from->prune);
    }
    return status;
}

int fp_estimate_sums_squeeze(struct fp_estimate_sums *s, struct fp_err *err) {
    if (s->squeezed) return 0;
    close_block(s);
    set_scale(s);
    struct fp_estimate_sums *to = s->next = fp_estimate_sums_new(s->model, s->what);
    uint32_t *start = fp_scratch((size_t)s->model->functions.n + 2, sizeof *start);
    uint32_t *order = fp_scratch((size_t)s->n + 1, sizeof *order);
    fp_estimate_sums_widen(to, s->width, 0);
    memcpy(to->scale, s->scale, s->width * sizeof *s->scale);
    const int status = squeeze(s, to, start, order, err);
    fp_scratch_free(start);
    if (status) return status;
    s->next = NULL;
    to->prune = s->prune;
    to->most = s->most;
    add_totals(to, 0, to->n);
    set_scale(to);
    to->n_fresh = to->block_first = to->n;
    to->squeezed = 1;
    to->seen = s->seen;
    to->cap_seen = s->cap_seen;
    to->slots = s->slots;
    s->seen = NULL;
    s->slots = NULL;
    if (to->slots) memset(to->slots, 0, FP_ESTIMATE_SLOTS * sizeof *to->slots);
    if (to->limit / 2 < to->n) to->limit = to->n < UINT32_MAX / 2 ? to->n * 2 : UINT32_MAX;
    struct fp_estimate_sums old = *s;
    *s = *to;
    *to = old;
    fp_estimate_sums_free(to);
    return 0;
}
