#include "bridges/sums/stack_order.h"

/* ---- rows ---- */

enum { KEYS = 8 };

struct ordered_stack {
    uint32_t keys[KEYS];
    uint32_t id;
};

static int by_keys(const void *a, const void *b) {
    const struct ordered_stack *x = a, *y = b;
    for (int i = 0; i < KEYS; i++)
        if (x->keys[i] != y->keys[i]) return x->keys[i] < y->keys[i] ? -1 : 1;
    return 0;
}

/* The type of a column: numbers, or ids of entries with these ranks. */
struct stack_column {
    uint32_t at;
    const uint32_t *ranks;
    uint32_t n; /* ranks */
    uint32_t flip;
};

/* Ranks of a table's rows by some of their columns; rows that are equal in these have equal ranks. */
static uint32_t *rank_rows(const struct fp_table *t, const struct stack_column *columns, uint32_t n_columns) {
    uint32_t *rank = fp_scratch(t->n, sizeof *rank);
    struct ordered_stack *items = fp_scratch(t->n, sizeof *items);
    for (uint32_t id = 0; id < t->n; id++) {
        const uint32_t *row = fp_table_row(t, id);
        items[id].id = id;
        for (uint32_t k = 0; k < n_columns; k++) {
            const struct stack_column *c = &columns[k];
            const uint32_t word = row[c->at];
            items[id].keys[k] = !c->ranks ? word ^ c->flip : word < c->n ? c->ranks[word] : 0;
        }
    }
    qsort(items, t->n, sizeof *items, by_keys);
    uint32_t next = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        next += i && by_keys(&items[i - 1], &items[i]);
        rank[items[i].id] = next;
    }
    fp_scratch_free(items);
    return rank;
}

#define NUMBER(column) {.at = (column)}
#define U64(column) NUMBER((column) + 1), NUMBER(column)
#define I64(column) {.at = (column) + 1, .flip = 0x80000000u}, NUMBER(column)
#define RANKED(column, rank, table) {.at = (column), .ranks = (rank), .n = (table).n}
#define ROWS(table, ...)                                            \
    rank_rows(&(table), (const struct stack_column[]){__VA_ARGS__}, \
              sizeof((struct stack_column[]){__VA_ARGS__}) / sizeof(struct stack_column))

/* ---- trees ---- */

/* Preorder numbers of a tree's nodes, the children of each in the order of their keys.  Node i's parent is in column
 * `parent`, 0 = it is a root; its key is that of the entry in column `key`. */
static uint32_t *rank_tree(const struct fp_table *t, uint32_t parent, const uint32_t *keys, uint32_t n_keys,
                           uint32_t key) {
    uint32_t highest = 0;
    for (uint32_t i = 0; i < n_keys; i++) highest = keys[i] > highest ? keys[i] : highest;
    uint32_t *child = fp_scratch(t->n, sizeof *child), *sibling = fp_scratch(t->n, sizeof *sibling);
    uint32_t *with = fp_scratch((size_t)highest + 1, sizeof *with);
#define PARENT(node) (fp_table_row(t, node)[parent] < (node) ? fp_table_row(t, node)[parent] : 0)
    /* the nodes of each key as a list, which `sibling` links; then, from the highest key down, each to the front of its
     * parent's list of children */
    for (uint32_t i = 1; i < t->n; i++) {
        const uint32_t entry = key == UINT32_MAX ? i : fp_table_row(t, i)[key];
        const uint32_t k = entry < n_keys ? keys[entry] : 0;
        sibling[i] = with[k];
        with[k] = i;
    }
    for (uint32_t k = highest + 1; k-- > 0;)
        for (uint32_t i = with[k], next; i; i = next) {
            next = sibling[i];
            sibling[i] = child[PARENT(i)];
            child[PARENT(i)] = i;
        }
    /* follow the links; the `child` of a visited node becomes its number */
    uint32_t number = 0;
    for (uint32_t at = 0;;) {
        const uint32_t first = child[at];
        child[at] = number++;
        if (first) {
            at = first;
            continue;
        }
        while (at && !sibling[at]) at = PARENT(at);
        if (!at) break;
        at = sibling[at];
    }
#undef PARENT
    fp_scratch_free(sibling);
    return child;
}

enum { OWN = UINT32_MAX }; /* the key is that of the node itself */

/* ---- a model's tables ---- */

#define STRING(column) {.at = (column), .ranks = o->rank_of_string, .n = o->n_strings}

uint32_t *fp_stack_order_threads(const struct fp_name_order *o) {
    return ROWS(o->model->threads, NUMBER(FP_THREAD_PID), NUMBER(FP_THREAD_TID), NUMBER(FP_THREAD_INPUT));
}

uint32_t *fp_stack_order_labels(const struct fp_name_order *o) {
    const struct fp_table *labels = &o->model->labels;
    uint32_t *own =
        ROWS(*labels, STRING(FP_LABEL_KEY), STRING(FP_LABEL_STRING), I64(FP_LABEL_NUMBER), STRING(FP_LABEL_UNIT));
    return rank_tree(labels, FP_LABEL_NEXT, own, labels->n, OWN);
}

static uint32_t *rank_lines(const struct fp_name_order *o) {
    const struct fp_table *lines = &o->model->lines;
    const struct stack_column function = {.at = FP_LINE_FUNCTION, .ranks = o->rank_of_function, .n = o->n_functions};
    uint32_t *own = ROWS(*lines, function, NUMBER(FP_LINE_LINE), NUMBER(FP_LINE_COLUMN));
    return rank_tree(lines, FP_LINE_OUTER, own, lines->n, OWN);
}

static uint32_t *rank_mappings(const struct fp_name_order *o) {
    const struct fp_model *m = o->model;
    uint32_t *objects = ROWS(m->objects, STRING(FP_OBJECT_NAME), STRING(FP_OBJECT_BUILD_ID));
    return ROWS(m->mappings, RANKED(FP_MAPPING_OBJECT, objects, m->objects), U64(FP_MAPPING_START),
                U64(FP_MAPPING_LIMIT), U64(FP_MAPPING_OFFSET), NUMBER(FP_MAPPING_FLAGS));
}

uint32_t *fp_stack_order_frames(const struct fp_name_order *o) {
    const struct fp_model *m = o->model;
    uint32_t *lines = rank_lines(o), *mappings = rank_mappings(o);
    return ROWS(m->frames, RANKED(FP_FRAME_MAPPING, mappings, m->mappings), U64(FP_FRAME_ADDRESS),
                NUMBER(FP_FRAME_FLAGS), RANKED(FP_FRAME_LINES, lines, m->lines));
}

uint32_t *fp_stack_order_stacks(const struct fp_model *m, const uint32_t *frames, uint32_t n_frames) {
    return rank_tree(&m->stacks, FP_STACK_PARENT, frames, n_frames, FP_STACK_FRAME);
}
