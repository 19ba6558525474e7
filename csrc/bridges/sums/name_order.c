#include "bridges/sums/name_order.h"

void fp_name_order_clear(struct fp_name_order *o) {
    FP_FREE(o->rank_of_string, o->rank_of_function, o->strings);
    o->rank_of_string = o->rank_of_function = o->strings = NULL;
    o->n_strings = o->n_functions = 0;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_texts(const struct fp_model *m, uint32_t a, uint32_t b) {
    size_t na, nb;
    const uint8_t *pa = fp_string(&m->strings, a, &na), *pb = fp_string(&m->strings, b, &nb);
    const int found = memcmp(pa, pb, na < nb ? na : nb);
    return found ? found : compare_numbers(na, nb);
}

int fp_name_order_strings(const struct fp_name_order *o, uint32_t a, uint32_t b) {
    if (a == b) return 0;
    if (a < o->n_strings && b < o->n_strings) return compare_numbers(o->rank_of_string[a], o->rank_of_string[b]);
    return compare_texts(o->model, a, b);
}

int fp_name_order_functions(const struct fp_name_order *o, uint32_t a, uint32_t b) {
    if (a == b) return 0;
    if (a < o->n_functions && b < o->n_functions)
        return compare_numbers(o->rank_of_function[a], o->rank_of_function[b]);
    const struct fp_model *m = o->model;
    const uint32_t *fa = fp_table_row(&m->functions, a), *fb = fp_table_row(&m->functions, b);
    if (fa[FP_FUNCTION_OBJECT] != fb[FP_FUNCTION_OBJECT]) {
        const uint32_t *oa = fp_table_row(&m->objects, fa[FP_FUNCTION_OBJECT]);
        const uint32_t *ob = fp_table_row(&m->objects, fb[FP_FUNCTION_OBJECT]);
        for (uint32_t k = 0; k < FP_OBJECT_WIDTH; k++)
            if (oa[k] != ob[k]) return fp_name_order_strings(o, oa[k], ob[k]);
    }
    for (uint32_t k = FP_FUNCTION_FILE; k <= FP_FUNCTION_SYSTEM_NAME; k++)
        if (fa[k] != fb[k]) return fp_name_order_strings(o, fa[k], fb[k]);
    if (fa[FP_FUNCTION_LINE] != fb[FP_FUNCTION_LINE])
        return compare_numbers(fa[FP_FUNCTION_LINE], fb[FP_FUNCTION_LINE]);
    return compare_numbers(a, b); /* one is id 0, the unknown function, and the other has no name */
}

/* ---- sorting strings ---- */

/* Eight bytes of a string, the first as the highest, so that numbers compare as bytes do; 0 after its end. */
struct keyed {
    uint64_t key;
    uint32_t id;
    uint32_t left; /* bytes of the string that `key` has, 0 to 8 */
};

static struct keyed key_at(const struct fp_model *m, uint32_t id, uint64_t depth) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, id, &n);
    n = n > depth ? n - (size_t)depth : 0;
    uint8_t bytes[8] = {0};
    memcpy(bytes, p + depth * (n != 0), n < 8 ? n : 8);
    return (struct keyed){__builtin_bswap64(fp_u64(bytes)), id, n < 8 ? (uint32_t)n : 8};
}

static inline int keyed_before(const struct keyed *a, const struct keyed *b) {
    return a->key != b->key ? a->key < b->key : a->left < b->left;
}

static int by_key(const void *a, const void *b) {
    return keyed_before(b, a) - keyed_before(a, b);
}

static void sort_keyed(struct keyed *k, uint32_t n) {
    if (n > 24) {
        qsort(k, n, sizeof *k, by_key);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct keyed moved = k[i];
        uint32_t at = i;
        for (; at && keyed_before(&moved, &k[at - 1]); at--) k[at] = k[at - 1];
        k[at] = moved;
    }
}

struct range {
    uint32_t from, to;
    uint64_t depth;
};

/* Sorts the strings ids[0 .. n): by their first eight bytes, then each range of equal ones by the next eight, and so
 * on. */
static void sort_strings(const struct fp_model *m, uint32_t *ids, uint32_t n) {
    struct keyed *keys = fp_scratch((size_t)n + 1, sizeof *keys);
    /* disjoint ranges of at least two strings: at most n / 2 */
    struct range *todo = fp_scratch((size_t)n / 2 + 1, sizeof *todo);
    uint32_t n_todo = 0;
    if (n > 1) todo[n_todo++] = (struct range){0, n, 0};
    while (n_todo) {
        const struct range r = todo[--n_todo];
        for (uint32_t i = r.from; i < r.to; i++) keys[i] = key_at(m, ids[i], r.depth);
        sort_keyed(keys + r.from, r.to - r.from);
        for (uint32_t i = r.from, end; i < r.to; i = end) {
            ids[i] = keys[i].id;
            for (end = i + 1; end < r.to && keys[end].key == keys[i].key && keys[end].left == keys[i].left; end++)
                ids[end] = keys[end].id;
            if (end - i > 1 && keys[i].left == 8) todo[n_todo++] = (struct range){i, end, r.depth + 8};
        }
    }
    fp_scratch_free(keys);
}

/* Ranks the strings added since the last call: sorts them, then merges them into the order. */
static void rank_strings(struct fp_name_order *o) {
    const uint32_t had = o->n_strings, n = o->model->strings.n;
    if (n == had) return;
    uint32_t *fresh = fp_scratch(n - had, sizeof *fresh), *order = fp_scratch(n, sizeof *order);
    uint32_t *ranks = o->rank_of_string = fp_have(realloc(o->rank_of_string, (size_t)n * sizeof *ranks));
    for (uint32_t i = had; i < n; i++) fresh[i - had] = i;
    sort_strings(o->model, fresh, n - had);
    for (uint32_t old = 0, new = 0, rank = 0; rank < n; rank++) {
        const int take_new = old == had || (new < n - had &&compare_texts(o->model, fresh[new], o->strings[old]) < 0);
        order[rank] = take_new ? fresh[new ++] : o->strings[old++];
        ranks[order[rank]] = rank;
    }
    free(o->strings);
    o->strings = fp_scratch_keep(order);
    o->n_strings = n;
    fp_scratch_free(fresh);
}

/* ---- sorting functions ---- */

/* One stable pass of a counting sort: `to` is `from` by number[function].  `start` has room for n_numbers + 1. */
static void sort_pass(const uint32_t *from, uint32_t *to, uint32_t n, const uint32_t *number, uint32_t *start,
                      uint32_t n_numbers) {
    memset(start, 0, ((size_t)n_numbers + 1) * sizeof *start);
    for (uint32_t i = 0; i < n; i++) start[number[i] + 1]++;
    for (uint32_t i = 0; i < n_numbers; i++) start[i + 1] += start[i];
    for (uint32_t i = 0; i < n; i++) to[start[number[from[i]]]++] = from[i];
}

struct lined {
    uint32_t line, function;
};

static int by_line(const void *a, const void *b) {
    return compare_numbers(((const struct lined *)a)->line, ((const struct lined *)b)->line);
}

void fp_name_order_rank(struct fp_name_order *o) {
    const struct fp_model *m = o->model;
    const uint32_t n = m->functions.n;
    if (o->n_functions == n && o->n_strings == m->strings.n) return;
    rank_strings(o);
    fp_strings_rest(&m->strings); /* all of them were read */
    const uint32_t n_numbers = o->n_strings;
    uint32_t *number = fp_scratch(n, sizeof *number), *start = fp_scratch((size_t)n_numbers + 1, sizeof *start);
    uint32_t *a = fp_scratch(n, sizeof *a), *b = fp_scratch(n, sizeof *b);
    uint32_t *ranks = o->rank_of_function = fp_have(realloc(o->rank_of_function, (size_t)n * sizeof *ranks));
    int any_line = 0;
    for (uint32_t i = 0; i < n; i++) {
        a[i] = i;
        any_line |= fp_table_row(&m->functions, i)[FP_FUNCTION_LINE] != 0;
    }
    if (any_line) {
        struct lined *lines = fp_scratch(n, sizeof *lines);
        for (uint32_t i = 0; i < n; i++) lines[i] = (struct lined){fp_table_row(&m->functions, i)[FP_FUNCTION_LINE], i};
        qsort(lines, n, sizeof *lines, by_line); /* functions with equal lines differ in another part */
        for (uint32_t i = 0; i < n; i++) a[i] = lines[i].function;
    }
    /* The least significant part of the key first.  A part that all functions share needs no pass. */
    for (int part = 4; part >= 0; part--) {
        uint32_t differ = 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t *f = fp_table_row(&m->functions, i),
                           *object = fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT]);
            const uint32_t parts[5] = {object[FP_OBJECT_NAME], object[FP_OBJECT_BUILD_ID], f[FP_FUNCTION_FILE],
                                       f[FP_FUNCTION_NAME], f[FP_FUNCTION_SYSTEM_NAME]};
            number[i] = o->rank_of_string[parts[part]];
            differ |= number[i] ^ number[0];
        }
        if (!differ) continue;
        sort_pass(a, b, n, number, start, n_numbers);
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    for (uint32_t i = 0; i < n; i++) ranks[a[i]] = i;
    o->n_functions = n;
    fp_scratch_free(number);
}
