#include "ends/context_labels.h"

enum { SAMPLE_KEY = 0, SAMPLE_SET = 1, KEY_PLACE = 0, KEY_SET = 1, WIDTH = 2 };

void fp_context_labels_init(struct fp_context_labels *l) {
    FP_INIT_TABLES(WIDTH, &l->samples, &l->keys);
}

static void clear_columns(struct fp_context_labels *l) {
    FP_FREE(l->set, l->entry_context, l->entry_set, l->entry_self);
    l->set = l->entry_context = l->entry_set = NULL;
    l->entry_self = NULL;
    l->n_entries = 0;
}

static void clear_old(struct fp_context_labels *l) {
    fp_table_clear(&l->old_keys);
    free(l->old_self);
    l->old_self = NULL;
}

void fp_context_labels_clear(struct fp_context_labels *l) {
    FP_CLEAR_TABLES(&l->samples, &l->keys);
    FP_FREE(l->sums, l->self, l->shown);
    clear_old(l);
    clear_columns(l);
}

static size_t row_bytes(const struct fp_context_labels *l) {
    return (l->n_values ? l->n_values : 1) * sizeof *l->self;
}

/* to[column of k] += from[k].  `columns` NULL: k. */
static int add(int64_t *to, const int64_t *from, size_t step, const uint32_t *columns, uint32_t n, struct fp_err *err) {
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t column = columns ? columns[k] : k;
        if (__builtin_add_overflow(to[column], from[k * step], &to[column]))
            return fp_fail_beyond(err, "the sum of a label", column, "2^63 - 1");
    }
    return FP_DONE;
}

/* Makes room for `n_values` values of each of `n` rows. */
static void widen_rows(int64_t **rows, uint32_t *cap, uint32_t n, uint32_t before, uint32_t n_values) {
    int64_t *wider = fp_have(calloc((size_t)n * n_values, sizeof *wider));
    for (uint32_t i = 1; before && i < n; i++)
        memcpy(wider + (size_t)i * n_values, *rows + (size_t)i * before, before * sizeof *wider);
    free(*rows);
    *rows = wider;
    *cap = n;
}

static void widen(struct fp_context_labels *l, uint32_t n_values) {
    if (n_values <= l->n_values) return;
    widen_rows(&l->self, &l->cap_self, l->keys.n, l->n_values, n_values);
    widen_rows(&l->sums, &l->cap_sums, l->samples.n, l->n_values, n_values);
    l->n_values = n_values;
}

/* Whether all samples have the same label set, with those of a batch. */
static int are_alike(struct fp_context_labels *l, const struct fp_batch *in) {
    const uint32_t only = l->has_only || !in->n ? l->only : in->label[0];
    if (l->differ) return 0;
    for (uint32_t i = 0; i < in->n; i++)
        if (in->label[i] != only) return 0;
    l->only = only;
    l->has_only |= in->n > 0;
    return 1;
}

/* The sums of a key and a label set. */
static int64_t *sums_of(struct fp_context_labels *l, uint32_t key, uint32_t set) {
    const uint32_t at = fp_table_intern(&l->samples, (uint32_t[]){key, set});
    fp_array_zeroed(&l->sums, &l->cap_sums, (uint64_t)at + 1, row_bytes(l));
    return l->sums + (size_t)at * l->n_values;
}

/* From a batch on, samples differ: gives what was added before it to the set that all had. */
static void tell_apart(struct fp_context_labels *l, const struct fp_project *s, const struct fp_batch *in,
                       const uint32_t *columns) {
    l->differ = 1;
    l->owed = l->only;
    if (!l->only) return;
    const uint32_t end = s->per_thread ? s->keys.n : s->cap_nodes + 1;
    for (uint32_t key = 1; key < end; key++)
        if (s->per_thread || s->nodes[key - 1].key)
            memcpy(sums_of(l, key, l->only), s->sums + (size_t)key * s->n_values, s->n_values * sizeof *s->sums);
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t *sums = sums_of(l, fp_project_key(s, in->stack[i], in->thread[i]), l->only);
        for (uint32_t k = 0; k < in->n_values; k++) {
            int64_t *sum = sums + columns[k]; /* wraps around, and back */
            *sum = (int64_t)((uint64_t)*sum - (uint64_t)in->values[(size_t)k * in->cap + i]);
        }
    }
}

int fp_context_labels_put(struct fp_context_labels *l, const struct fp_project *s, const struct fp_batch *in,
                          const uint32_t *columns, struct fp_err *err) {
    for (uint32_t i = 0; i < in->n; i++)
        if (in->label[i] >= s->model->labels.n)
            return fp_unknown_id(err, "the labels of a sample", in->label[i], s->model->labels.n);
    if (are_alike(l, in)) return FP_DONE;
    widen(l, s->n_values);
    if (!l->differ) tell_apart(l, s, in, columns);
    for (uint32_t i = 0; i < in->n; i++) {
        if (!in->label[i]) continue;
        int64_t *sums = sums_of(l, fp_project_key(s, in->stack[i], in->thread[i]), in->label[i]);
        int status = add(sums, in->values + i, in->cap, columns, in->n_values, err);
        if (status != FP_DONE) return status;
    }
    return FP_DONE;
}

static int add_to(struct fp_context_labels *l, uint32_t place, uint32_t set, const int64_t *values,
                  struct fp_err *err) {
    const uint32_t at = fp_table_intern(&l->keys, (uint32_t[]){place, set});
    fp_array_zeroed(&l->self, &l->cap_self, (uint64_t)at + 1, row_bytes(l));
    return add(l->self + (size_t)at * l->n_values, values, 1, NULL, l->n_values, err);
}

static int is_zero(const int64_t *values, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (values[k]) return 0;
    return 1;
}

int fp_context_labels_owe(struct fp_context_labels *l, uint32_t n, const int64_t *own, const int64_t *cut,
                          uint32_t n_values, struct fp_err *err) {
    const uint32_t set = l->owed;
    int status = FP_DONE;
    l->owed = 0;
    if (!set) return FP_DONE;
    widen(l, n_values);
    for (uint32_t place = 1; place < 2 * n && status == FP_DONE; place++) {
        const int64_t *values = (place % 2 ? cut : own) + (size_t)(place / 2) * n_values;
        if (!is_zero(values, n_values)) status = add_to(l, place, set, values, err);
    }
    return status;
}

int fp_context_labels_add(struct fp_context_labels *l, const uint32_t *node_of, struct fp_err *err) {
    int status = FP_DONE;
    for (uint32_t i = 1; i < l->samples.n && status == FP_DONE; i++) {
        const uint32_t *row = fp_table_row(&l->samples, i);
        int64_t *sums = l->sums + (size_t)i * l->n_values;
        if (!is_zero(sums, l->n_values)) status = add_to(l, 2 * node_of[row[SAMPLE_KEY]], row[SAMPLE_SET], sums, err);
        memset(sums, 0, row_bytes(l));
    }
    fp_table_empty(&l->samples);
    return status;
}

/* Adds up the keys again under new places or sets: to[node], map[set]; NULL: unchanged. */
static int renew(struct fp_context_labels *l, const uint32_t *to, const uint8_t *kept, const uint32_t *map, uint32_t n,
                 struct fp_err *err) {
    if (l->keys.n == 1) return FP_DONE;
    l->old_keys = l->keys;
    l->old_self = l->self;
    l->keys = (struct fp_table){0};
    l->self = NULL;
    l->cap_self = 0;
    int status = FP_DONE;
    fp_table_init(&l->keys, WIDTH);
    for (uint32_t i = 1; i < l->old_keys.n && status == FP_DONE; i++) {
        const uint32_t *row = fp_table_row(&l->old_keys, i), node = row[KEY_PLACE] / 2;
        const uint32_t set = map && row[KEY_SET] < n ? map[row[KEY_SET]] : row[KEY_SET];
        const uint32_t is_cut = (row[KEY_PLACE] & 1) | (kept && !kept[node]);
        const uint32_t place = to ? 2 * to[node] + is_cut : row[KEY_PLACE];
        if (set) status = add_to(l, place, set, l->old_self + (size_t)i * l->n_values, err);
    }
    clear_old(l);
    return status;
}

int fp_context_labels_map(struct fp_context_labels *l, const uint32_t *map, uint32_t n, struct fp_err *err) {
    return renew(l, NULL, NULL, map, n, err);
}

int fp_context_labels_move(struct fp_context_labels *l, const uint32_t *to, const uint8_t *kept, struct fp_err *err) {
    return renew(l, to, kept, NULL, 0, err);
}

int fp_context_labels_show(struct fp_context_labels *l, const uint32_t *map, uint32_t n) {
    uint32_t *shown = fp_have(malloc(((size_t)n + 1) * sizeof *shown));
    if (n) memcpy(shown, map, n * sizeof *shown);
    free(l->shown);
    l->shown = shown;
    l->n_shown = n;
    return 0;
}

void fp_context_labels_sum(const struct fp_context_labels *l, uint32_t n, double *sums) {
    for (uint32_t i = 1; i < l->keys.n; i++) {
        const uint32_t set = fp_table_row(&l->keys, i)[KEY_SET];
        for (uint32_t k = 0; k < l->n_values && set < n; k++) {
            const double value = (double)l->self[(size_t)i * l->n_values + k];
            sums[(size_t)set * l->n_values + k] += value < 0 ? -value : value;
        }
    }
}

/* Appends an entry; entries of one context and set follow each other. */
static int append(struct fp_context_labels *l, const struct fp_keyed *item, uint32_t *n, int64_t *self, uint32_t first,
                  struct fp_err *err) {
    const uint32_t set = (uint32_t)item->key;
    if (*n == first || l->entry_set[*n - 1] != set) {
        l->entry_context[*n] = item->more;
        l->entry_set[*n] = set;
        ++*n;
    }
    return add(self + (size_t)(*n - 1) * l->n_values, l->self + (size_t)item->item * l->n_values, 1, NULL, l->n_values,
               err);
}

/* Removes the first of a context's entries, `first` to `n`, if they add up to the context's cost. */
static uint32_t leave_out(struct fp_context_labels *l, const int64_t *context, uint32_t n_contexts, int64_t *self,
                          uint32_t first, uint32_t n) {
    const uint32_t n_values = l->n_values, of = l->entry_context[first];
    for (uint32_t k = 0; k < n_values; k++) {
        uint64_t left = (uint64_t)context[(size_t)k * n_contexts + of];
        for (uint32_t i = first; i < n; i++) left -= (uint64_t)self[(size_t)i * n_values + k];
        if (left) return n;
    }
    l->set[of] = l->entry_set[first];
    const size_t rest = n - first - 1;
    memmove(l->entry_context + first, l->entry_context + first + 1, rest * sizeof *l->entry_context);
    memmove(l->entry_set + first, l->entry_set + first + 1, rest * sizeof *l->entry_set);
    memmove(self + (size_t)first * n_values, self + (size_t)(first + 1) * n_values, rest * row_bytes(l));
    memset(self + (size_t)(n - 1) * n_values, 0, row_bytes(l));
    return n - 1;
}

/* The entries by context and set, their values by entry. */
static int fill_entries(struct fp_context_labels *l, const struct fp_keyed *items, uint32_t n_items,
                        const int64_t *context, uint32_t n_contexts, int64_t *self, struct fp_err *err) {
    uint32_t n = 0, first = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        int status = append(l, &items[i], &n, self, first, err);
        if (status != FP_DONE) return status;
        if (i + 1 == n_items || items[i + 1].more != items[i].more) {
            n = leave_out(l, context, n_contexts, self, first, n);
            first = n;
        }
    }
    l->n_entries = n;
    for (uint32_t k = 0; k < l->n_values; k++)
        for (uint32_t i = 0; i < n; i++) l->entry_self[(size_t)k * n + i] = self[(size_t)i * l->n_values + k];
    return FP_DONE;
}

int fp_context_labels_fill(struct fp_context_labels *l, const uint32_t *place, const int64_t *self, uint32_t n_values,
                           uint32_t n, struct fp_err *err) {
    clear_columns(l);
    const uint32_t n_keys = l->keys.n - 1;
    if (!n_keys || !n) return FP_DONE;
    widen(l, n_values);
    l->set = fp_have(calloc(n, sizeof *l->set));
    l->entry_context = fp_have(malloc(n_keys * sizeof *l->entry_context));
    l->entry_set = fp_have(malloc(n_keys * sizeof *l->entry_set));
    l->entry_self = fp_have(malloc(n_keys * row_bytes(l)));
    struct fp_keyed *items = fp_scratch(n_keys, sizeof *items);
    int64_t *values = fp_scratch(n_keys, row_bytes(l));
    uint32_t n_items = 0;
    for (uint32_t i = 0; i < n_keys; i++) {
        const uint32_t *row = fp_table_row(&l->keys, i + 1);
        const uint32_t set = row[KEY_SET] < l->n_shown ? l->shown[row[KEY_SET]] : row[KEY_SET];
        if (set) items[n_items++] = (struct fp_keyed){.key = set, .more = place[row[KEY_PLACE]], .item = i + 1};
    }
    fp_sort_keyed(items, n_items);
    const int status = fill_entries(l, items, n_items, self, n, values, err);
    fp_scratch_free(items);
    return status;
}
