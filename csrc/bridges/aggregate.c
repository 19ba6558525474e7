#include "bridges/aggregate.h"

#include <stdlib.h>

#include "core/array.h"

/* The words of a row's key.  A cost row's key is the first COST_WIDTH. */
enum {
    FUNCTION = 0,
    FILE_ = 1,
    LINE = 2,
    ADDRESS = 3, /* two words, low first; so are the others below */
    BB = 5,
    COST_WIDTH = 7,
    KIND = 7,
    CALLEE = 8,
    TARGET_FILE = 9,
    TARGET_LINE = 10,
    TARGET_ADDRESS = 11,
    TARGET_BB = 13,
    ARC_WIDTH = 15
};

/* One table of distinct keys and what belongs to each: id -> sums. */
struct sums {
    struct fp_table keys;
    int64_t **values; /* [column][id] */
    uint32_t cap_columns;
    uint64_t *count; /* [id], arcs only */
    uint64_t *count2;
    uint32_t cap; /* ids */
};

struct fp_aggregate {
    struct fp_model *model;
    uint32_t mode;
    uint32_t n_columns;
    struct sums costs, arcs;
    /* Rows as first seen: id << 1 | is an arc.  After finish: as they come out. */
    uint32_t *order;
    uint32_t order_n, order_cap;
    uint32_t at; /* of `order`, while pulling */
    uint64_t dropped;
};

struct fp_aggregate *fp_aggregate_new(struct fp_model *model, uint32_t mode) {
    struct fp_aggregate *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->model = model;
    a->mode = mode;
    if (fp_table_init(&a->costs.keys, COST_WIDTH) || fp_table_init(&a->arcs.keys, ARC_WIDTH)) {
        fp_aggregate_free(a);
        return NULL;
    }
    return a;
}

static void sums_free(struct sums *s) {
    fp_table_clear(&s->keys);
    for (uint32_t k = 0; k < s->cap_columns; k++) free(s->values[k]);
    free(s->values);
    free(s->count);
    free(s->count2);
}

void fp_aggregate_free(struct fp_aggregate *a) {
    if (!a) return;
    sums_free(&a->costs);
    sums_free(&a->arcs);
    free(a->order);
    free(a);
}

uint64_t fp_aggregate_dropped(const struct fp_aggregate *a) {
    return a->dropped;
}

/* Room for ids below `need`, new ones zero. */
static int sums_room(struct sums *s, uint32_t n_columns, int counts, uint32_t need) {
    uint32_t cap = need; /* when there is nothing to grow */
    for (uint32_t k = 0; k < n_columns; k++) {
        cap = s->cap;
        if (fp_array_zeroed(&s->values[k], &cap, need, sizeof **s->values)) return FP_E_NOMEM;
    }
    if (counts) {
        cap = s->cap;
        if (fp_array_zeroed(&s->count, &cap, need, sizeof *s->count)) return FP_E_NOMEM;
        cap = s->cap;
        if (fp_array_zeroed(&s->count2, &cap, need, sizeof *s->count2)) return FP_E_NOMEM;
    }
    s->cap = cap;
    return 0;
}

static int sums_columns(struct sums *s, uint32_t have, uint32_t want) {
    if (fp_array_zeroed(&s->values, &s->cap_columns, want, sizeof *s->values)) return FP_E_NOMEM;
    for (uint32_t k = have; k < want && s->cap; k++) {
        free(s->values[k]); /* when memory ran out at a later column the last time */
        if (!(s->values[k] = calloc(s->cap, sizeof **s->values))) return FP_E_NOMEM;
    }
    return 0;
}

/* Makes columns up to `want` exist in both tables. */
static int need_columns(struct fp_aggregate *a, uint32_t want) {
    if (want <= a->n_columns) return 0;
    if (sums_columns(&a->costs, a->n_columns, want) || sums_columns(&a->arcs, a->n_columns, want)) return FP_E_NOMEM;
    a->n_columns = want;
    return 0;
}

/* The id of a key; a new one also takes its place in the order. */
static uint32_t place(struct fp_aggregate *a, struct sums *s, const uint32_t *key, uint32_t is_arc) {
    uint32_t known = s->keys.n;
    if (known == 1u << 31) return FP_NO_ID; /* an id and a bit must fit into `order` */
    uint32_t id = fp_table_intern(&s->keys, key);
    if (id != known) return id; /* seen before, or FP_NO_ID */
    if (id >= s->cap && sums_room(s, a->n_columns, (int)is_arc, id + 1)) return FP_NO_ID;
    if (fp_array_room(&a->order, &a->order_cap, (uint64_t)a->order_n + 1, sizeof *a->order)) return FP_NO_ID;
    a->order[a->order_n++] = id << 1 | is_arc;
    return id;
}

static inline void set64(uint32_t *words, uint64_t v) {
    words[0] = (uint32_t)v;
    words[1] = (uint32_t)(v >> 32);
}

/* `row` says the position whose sum does not fit. */
static int counts_overflow(const struct fp_batch *in, uint32_t row, struct fp_err *err) {
    const char *what =
        in->kind[row] == FP_CALL ? "the number of calls at a position" : "the number of jumps at a position";
    fp_fail_beyond(err, what, FP_NO_COLUMN, "2^64 - 1");
    err->line = in->line[row];
    return FP_E_OVERFLOW;
}

static int costs_overflow(const struct fp_batch *in, uint32_t row, uint32_t column, struct fp_err *err) {
    const char *what = in->kind[row] == FP_CALL ? "the cost of calls at a position" : "the cost of a position";
    fp_fail_beyond(err, what, column, "2^63 - 1");
    err->line = in->line[row];
    return FP_E_OVERFLOW;
}

int fp_aggregate_put(struct fp_aggregate *a, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    uint32_t want = 0;
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= want) want = columns[k] + 1;
    if (need_columns(a, want)) return FP_E_NOMEM;

    uint32_t from_function = 0, from_file = 0, to_function = 0; /* the last one looked up */
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t kind = in->kind[i];
        uint32_t key[ARC_WIDTH] = {[FUNCTION] = in->function[i], [FILE_] = in->file[i], [LINE] = in->line[i]};
        if (a->mode == FP_AGGREGATE_LINES) {
            if (kind != FP_COST) {
                a->dropped += kind != FP_BLOCK;
                continue;
            }
            if (key[FUNCTION] != from_function || key[FILE_] != from_file || !to_function) {
                from_function = key[FUNCTION];
                from_file = key[FILE_];
                uint32_t name = fp_table_row(&a->model->functions, from_function)[FP_FUNCTION_NAME];
                to_function = fp_model_function(a->model, 0, from_file, name, 0, 0);
                if (to_function == FP_NO_ID) return FP_E_NOMEM;
            }
            key[FUNCTION] = to_function;
        } else {
            set64(key + ADDRESS, in->address[i]);
            set64(key + BB, in->bb[i]);
        }

        struct sums *s = &a->costs;
        uint32_t is_arc = kind != FP_COST;
        if (is_arc) {
            s = &a->arcs;
            key[KIND] = kind;
            if (kind != FP_BLOCK) {
                key[CALLEE] = in->callee[i];
                key[TARGET_FILE] = kind == FP_CALL ? 0 : in->target_file[i];
                key[TARGET_LINE] = in->target_line[i];
                set64(key + TARGET_ADDRESS, in->target_address[i]);
                set64(key + TARGET_BB, in->target_bb[i]);
            } else {
                key[FILE_] = key[LINE] = 0;
                set64(key + ADDRESS, 0);
                set64(key + BB, 0);
            }
        }
        uint32_t id = place(a, s, key, is_arc);
        if (id == FP_NO_ID) return FP_E_NOMEM;
        if (is_arc && kind != FP_BLOCK) {
            if (__builtin_add_overflow(s->count[id], in->count[i], &s->count[id])) return counts_overflow(in, i, err);
            if (kind == FP_JCND && __builtin_add_overflow(s->count2[id], in->count2[i], &s->count2[id]))
                return counts_overflow(in, i, err);
        }
        if (kind > FP_CALL) continue;
        for (uint32_t k = 0; k < in->n_values; k++) {
            int64_t *sum = &s->values[columns[k]][id];
            if (__builtin_add_overflow(*sum, in->values[(size_t)k * in->cap + i], sum))
                return costs_overflow(in, i, columns[k], err);
        }
    }
    return 0;
}

static const uint32_t *key_of(const struct fp_aggregate *a, uint32_t entry) {
    return fp_table_row(entry & 1 ? &a->arcs.keys : &a->costs.keys, entry >> 1);
}

/* qsort has no context argument in C11, so the lines travel with the entries. */
struct at_line {
    uint32_t line, entry;
};

static int by_line(const void *x, const void *y) {
    const struct at_line *a = x, *b = y;
    return a->line != b->line ? (a->line > b->line) - (a->line < b->line)
                              : (a->entry > b->entry) - (a->entry < b->entry);
}

int fp_aggregate_finish(struct fp_aggregate *a, const uint32_t *rank) {
    uint32_t n_functions = a->model->functions.n;
    /* A counting sort by place: stable, so rows stay as first seen. */
    uint32_t *seen = rank ? NULL : calloc(n_functions, sizeof *seen);
    uint32_t *start = calloc((size_t)n_functions + 1, sizeof *start);
    uint32_t *sorted = malloc(((size_t)a->order_n + 1) * sizeof *sorted);
    struct at_line *lines = malloc(((size_t)a->order_n + 1) * sizeof *lines);
    int status = FP_E_NOMEM;
    if (start && sorted && lines && (rank || seen)) {
        if (!rank) {
            uint32_t next = 0; /* 0: not seen; places are one less */
            for (uint32_t i = 0; i < a->order_n; i++) {
                uint32_t f = key_of(a, a->order[i])[FUNCTION];
                if (!seen[f]) seen[f] = ++next;
            }
            for (uint32_t f = 0; f < n_functions; f++) seen[f]--;
            rank = seen;
        }
        for (uint32_t i = 0; i < a->order_n; i++) start[rank[key_of(a, a->order[i])[FUNCTION]] + 1]++;
        for (uint32_t f = 0; f < n_functions; f++) start[f + 1] += start[f];
        for (uint32_t i = 0; i < a->order_n; i++) sorted[start[rank[key_of(a, a->order[i])[FUNCTION]]]++] = a->order[i];
        if (a->mode == FP_AGGREGATE_LINES) {
            for (uint32_t i = 0, end; i < a->order_n; i = end) {
                uint32_t f = key_of(a, sorted[i])[FUNCTION];
                for (end = i; end < a->order_n && key_of(a, sorted[end])[FUNCTION] == f; end++)
                    lines[end] = (struct at_line){key_of(a, sorted[end])[LINE], sorted[end]};
                qsort(lines + i, end - i, sizeof *lines, by_line);
                for (uint32_t j = i; j < end; j++) sorted[j] = lines[j].entry;
            }
        }
        free(a->order);
        a->order = sorted;
        a->order_cap = a->order_n;
        a->at = 0;
        sorted = NULL;
        status = 0;
    }
    free(seen);
    free(start);
    free(sorted);
    free(lines);
    return status;
}

/* Is entry `i` a function without rows of which there are rows after all? */
static int said_already(const struct fp_aggregate *a, uint32_t i, const uint32_t *key) {
    if (i && key_of(a, a->order[i - 1])[FUNCTION] == key[FUNCTION]) return 1;
    return i + 1 < a->order_n && key_of(a, a->order[i + 1])[FUNCTION] == key[FUNCTION];
}

int fp_aggregate_pull(struct fp_aggregate *a, struct fp_batch *out) {
    if (fp_batch_set_values(out, a->n_columns)) return FP_E_NOMEM;
    for (; a->at < a->order_n; a->at++) {
        uint32_t i = out->n, entry = a->order[a->at], id = entry >> 1;
        const uint32_t *key = key_of(a, entry);
        const struct sums *s = entry & 1 ? &a->arcs : &a->costs;
        uint32_t kind = entry & 1 ? key[KIND] : FP_COST;
        if (kind == FP_BLOCK && said_already(a, a->at, key)) continue;
        if (i == out->cap) return FP_FULL;
        out->n++;
        out->kind[i] = (uint8_t)kind;
        out->function[i] = key[FUNCTION];
        out->file[i] = key[FILE_];
        out->line[i] = key[LINE];
        out->address[i] = fp_words_u64(key + ADDRESS);
        out->bb[i] = fp_words_u64(key + BB);
        out->callee[i] = kind == FP_COST ? 0 : key[CALLEE];
        out->target_file[i] = kind == FP_COST ? 0 : key[TARGET_FILE];
        out->target_line[i] = kind == FP_COST ? 0 : key[TARGET_LINE];
        out->target_address[i] = kind == FP_COST ? 0 : fp_words_u64(key + TARGET_ADDRESS);
        out->target_bb[i] = kind == FP_COST ? 0 : fp_words_u64(key + TARGET_BB);
        out->count[i] = kind == FP_COST ? 0 : s->count[id];
        out->count2[i] = kind == FP_COST ? 0 : s->count2[id];
        for (uint32_t k = 0; k < a->n_columns; k++) out->values[(size_t)k * out->cap + i] = s->values[k][id];
    }
    return FP_DONE;
}
