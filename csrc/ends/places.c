#include "ends/places.h"

/* The words of a row's key.  Rows of a line have neither FILE_ nor ADDRESS. */
enum {
    GROUP = 0,
    FILE_ = 1,
    LINE = 2,
    ADDRESS = 3, /* two words, low first */
    CALLEE = 5,  /* 1 + the function called; 0: self costs */
    ROW_WIDTH = 6
};
enum { FUNCTION_WIDTH = 2, GROUP_WIDTH = 1 };

struct fp_places *fp_places_new(struct fp_model *model, int by_address) {
    struct fp_places *p = fp_made(sizeof *p);
    p->model = model;
    p->by_address = by_address != 0;
    fp_table_init(&p->functions.keys, FUNCTION_WIDTH);
    fp_table_init(&p->groups.keys, GROUP_WIDTH);
    fp_table_init(&p->rows.keys, ROW_WIDTH);
    return p;
}

static void clear(struct fp_places_sums *s) {
    fp_table_clear(&s->keys);
    for (uint32_t k = 0; k < s->cap_columns; k++) free(s->values[k]);
    free(s->values);
}

void fp_places_free(struct fp_places *p) {
    clear(&p->functions);
    clear(&p->groups);
    clear(&p->rows);
    FP_FREE(p->keep, p->order, p);
}

int fp_places_keep(struct fp_places *p, uint32_t group, uint32_t keep) {
    *FP_AT(p->keep, p->cap_keep, group) = (uint8_t)keep;
    return 0;
}

/* Adds columns up to `want`. */
static void widen(struct fp_places_sums *s, uint32_t want) {
    if (want <= s->n_columns) return;
    fp_array_zeroed(&s->values, &s->cap_columns, want, sizeof *s->values);
    for (uint32_t k = s->n_columns; k < want && s->cap; k++) s->values[k] = fp_have(calloc(s->cap, sizeof **s->values));
    s->n_columns = want;
}

/* The id of a key, added if it is new.  Rows often repeat in the same order, so the key after `last` is tried first. */
static uint32_t find(struct fp_places_sums *s, const uint32_t *key, uint32_t last) {
    const size_t width = s->keys.width;
    if (last + 1 < s->keys.n && !memcmp(fp_table_row(&s->keys, last + 1), key, width * sizeof *key)) return last + 1;
    const uint32_t id = fp_table_intern(&s->keys, key);
    if (id < s->cap) return id;
    uint32_t cap = s->cap;
    for (uint32_t k = 0; k < s->n_columns; k++) {
        cap = s->cap;
        fp_array_zeroed(&s->values[k], &cap, (uint64_t)id + 1, sizeof **s->values);
    }
    s->cap = cap;
    return id;
}

static int overflow(const struct fp_batch *in, uint32_t row, int64_t column, struct fp_err *err) {
    const char *what = column == FP_NO_COLUMN     ? "the number of calls at a position"
                       : in->kind[row] == FP_CALL ? "the cost of calls at a position"
                                                  : "the cost of a position";
    fp_fail_beyond(err, what, column, "2^63 - 1");
    err->line = in->line[row];
    return FP_E_OVERFLOW;
}

/* Adds the values of a row to the sums of a key. */
static int add(struct fp_places_sums *s, uint32_t id, const struct fp_batch *in, uint32_t row, const uint32_t *columns,
               struct fp_err *err) {
    for (uint32_t k = 0; k < in->n_values; k++) {
        int64_t *sum = &s->values[1 + columns[k]][id];
        if (__builtin_add_overflow(*sum, in->values[(size_t)k * in->cap + row], sum))
            return overflow(in, row, columns[k], err);
    }
    return 0;
}

/* Adds row `i` to the kept rows.  *last is the id of the previous row. */
static int keep_row(struct fp_places *p, const struct fp_batch *in, uint32_t i, const uint32_t *columns, uint32_t *last,
                    struct fp_err *err) {
    const int is_call = in->kind[i] == FP_CALL;
    uint32_t key[ROW_WIDTH] = {[GROUP] = in->file[i], [LINE] = in->line[i], [CALLEE] = is_call ? in->callee[i] + 1 : 0};
    if (p->by_address) {
        key[GROUP] = in->function[i];
        key[FILE_] = in->file[i];
        key[ADDRESS] = (uint32_t)in->address[i];
        key[ADDRESS + 1] = (uint32_t)(in->address[i] >> 32);
    }
    const uint32_t id = find(&p->rows, key, *last);
    *last = id;
    if (is_call) {
        int64_t *calls = &p->rows.values[0][id];
        if (in->count[i] > INT64_MAX || __builtin_add_overflow(*calls, (int64_t)in->count[i], calls))
            return overflow(in, i, FP_NO_COLUMN, err);
    }
    return add(&p->rows, id, in, i, columns, err);
}

int fp_places_put(struct fp_places *p, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= p->n_values) p->n_values = columns[k] + 1;
    widen(&p->functions, 1 + p->n_values);
    widen(&p->rows, 1 + p->n_values);

    uint32_t function = 0, file = 0, at = 0; /* at: their id in p->functions; 0: none yet */
    uint32_t last = 0;
    for (uint32_t i = p->resume; i < in->n; i++) {
        if (in->kind[i] > FP_CALL) continue;
        const uint32_t group = p->by_address ? in->function[i] : in->file[i];
        const uint32_t keep = group < p->cap_keep ? p->keep[group] : FP_PLACES_UNKNOWN;
        if (keep == FP_PLACES_UNKNOWN) {
            p->requested = group;
            p->resume = i;
            return FP_NEEDS;
        }
        if (in->kind[i] == FP_COST) {
            if (!at || in->function[i] != function || in->file[i] != file) {
                function = in->function[i];
                file = in->file[i];
                const uint32_t name =
                    p->by_address ? 0 : fp_table_row(&p->model->functions, function)[FP_FUNCTION_NAME];
                at = find(&p->functions, (uint32_t[]){group, name}, at);
            }
            FP_TRY(add(&p->functions, at, in, i, columns, err));
        }
        if (keep != FP_PLACES_ROWS) continue;
        FP_TRY(keep_row(p, in, i, columns, &last, err));
    }
    p->resume = 0;
    return FP_DONE;
}

/* C11's qsort has no context argument, so the sort keys are copied. */
struct shown_place {
    uint64_t position; /* line or address */
    uint32_t group, callee, id;
};

static int by_place(const void *x, const void *y) {
    const struct shown_place *a = x, *b = y;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->position != b->position) return a->position < b->position ? -1 : 1;
    if (!a->callee != !b->callee) return a->callee ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static void sort(struct fp_places *p) {
    const uint32_t n = p->rows.keys.n - 1; /* id 0 is reserved */
    struct shown_place *places = fp_scratch((size_t)n + 1, sizeof *places);
    p->order = fp_have(malloc(((size_t)n + 1) * sizeof *p->order));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *key = fp_table_row(&p->rows.keys, i + 1);
        const uint64_t position = p->by_address ? fp_words_u64(key + ADDRESS) : key[LINE];
        places[i] = (struct shown_place){position, key[GROUP], key[CALLEE], i + 1};
    }
    qsort(places, n, sizeof *places, by_place);
    for (uint32_t i = 0; i < n; i++) p->order[i] = places[i].id;
    fp_scratch_free(places);
}

/* Sums p->functions by group. */
static int add_groups(struct fp_places *p, uint32_t value, struct fp_err *err) {
    widen(&p->groups, 1 + p->n_values);
    for (uint32_t i = 1; i < p->functions.keys.n; i++) {
        const uint32_t id = find(&p->groups, fp_table_row(&p->functions.keys, i), 0);
        for (uint32_t k = 0; k < p->n_values; k++) {
            const int64_t cost = p->functions.values[1 + k][i];
            int64_t *sum = &p->groups.values[1 + k][id], *largest = &p->groups.values[0][id];
            if (__builtin_add_overflow(*sum, cost, sum))
                return fp_fail_beyond(err, "the cost of a file", k, "2^63 - 1");
            const int64_t size = cost >= 0 ? cost : cost == INT64_MIN ? INT64_MAX : -cost;
            if (k == value && size > *largest) *largest = size;
        }
    }
    return FP_DONE;
}

int fp_places_end(struct fp_places *p, uint32_t value, struct fp_err *err) {
    const int status = add_groups(p, value, err);
    if (!status) sort(p);
    return status;
}

/* The first row in `order` of a group that is not below `group`. */
static uint32_t first_of(const struct fp_places *p, uint64_t group) {
    uint32_t low = 0;
    FP_BISECT(low, p->rows.keys.n - 1, fp_table_row(&p->rows.keys, p->order[low])[GROUP] < group);
    return low;
}

void fp_places_select(struct fp_places *p, uint32_t group) {
    p->at = first_of(p, group);
    p->end = first_of(p, (uint64_t)group + 1);
}

int fp_places_pull(struct fp_places *p, struct fp_batch *out) {
    fp_batch_set_values(out, p->n_values);
    for (; p->at < p->end; p->at++) {
        if (out->n == out->cap) return FP_FULL;
        const uint32_t id = p->order[p->at], *key = fp_table_row(&p->rows.keys, id);
        const uint32_t function = p->by_address ? key[GROUP] : 0, file = p->by_address ? key[FILE_] : key[GROUP];
        const uint32_t i = fp_batch_cost(out, function, file, key[LINE], key[CALLEE] ? key[CALLEE] - 1 : 0);
        out->kind[i] = key[CALLEE] ? FP_CALL : FP_COST;
        out->address[i] = fp_words_u64(key + ADDRESS);
        out->count[i] = (uint64_t)p->rows.values[0][id];
        for (uint32_t k = 0; k < p->n_values; k++) out->values[(size_t)k * out->cap + i] = p->rows.values[1 + k][id];
    }
    return FP_DONE;
}
