#include <stdlib.h>

#include "bridges/project_private.h"

struct fp_project *fp_project_new(struct fp_model *model, int per_thread, int inline_calls) {
    struct fp_project *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = model;
    s->per_thread = per_thread;
    s->inline_calls = inline_calls;
    if (fp_table_init(&s->keys, 2) || fp_table_init(&s->names, 3) || fp_table_init(&s->positions, FP_POSITION_WIDTH)) {
        fp_project_free(s);
        return NULL;
    }
    return s;
}

void fp_project_free(struct fp_project *s) {
    if (!s) return;
    fp_table_clear(&s->keys);
    fp_table_clear(&s->positions);
    fp_table_clear(&s->rows);
    fp_table_clear(&s->names);
    free(s->function_of_name);
    free(s->sums);
    free(s->by_group);
    free(s->group_start);
    free(s->chain);
    free(s->chain_of);
    free(s->local_of);
    free(s->active);
    free(s->start_of);
    free(s->rank_of_string);
    free(s->rank_of_function);
    free(s->costs);
    free(s->counts);
    free(s->order);
    fp_buf_free(&s->name);
    free(s);
}

int fp_project_set_values(struct fp_project *s, uint32_t n_values) {
    if (n_values <= s->n_values) return 0;
    int64_t *sums = NULL;
    uint32_t cap = 0;
    if (fp_array_zeroed(&sums, &cap, s->keys.n, n_values * sizeof *sums)) return FP_E_NOMEM;
    if (s->n_values)
        for (uint32_t i = 0; i < s->keys.n && i < s->cap_sums; i++)
            memcpy(sums + (size_t)i * n_values, s->sums + (size_t)i * s->n_values, s->n_values * sizeof *sums);
    free(s->sums);
    s->sums = sums;
    s->cap_sums = cap;
    s->n_values = n_values;
    return 0;
}

int fp_project_put(struct fp_project *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    const uint32_t n_stacks = s->model->stacks.n, n_values = in->n_values;
    for (uint32_t k = 0; k < n_values; k++)
        if (columns[k] >= s->n_values) return fp_unknown_id(err, "the column of a value", columns[k], s->n_values);
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t group = s->per_thread ? in->thread[i] : 0;
        if (in->stack[i] >= n_stacks) return fp_unknown_id(err, "the stack of a sample", in->stack[i], n_stacks);
        if (group && group >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a sample", group, s->model->threads.n);
        uint32_t key = fp_table_intern(&s->keys, (uint32_t[]){in->stack[i], group});
        if (key == FP_NO_ID) return fp_project_no_memory(err);
        if (fp_array_zeroed(&s->sums, &s->cap_sums, (uint64_t)key + 1, fp_project_row(s)))
            return fp_project_no_memory(err);
        if (group >= s->n_groups) s->n_groups = group + 1;
        int64_t *sum = s->sums + (size_t)key * s->n_values;
        for (uint32_t k = 0; k < n_values; k++) {
            int64_t *to = sum + columns[k];
            if (__builtin_add_overflow(*to, in->values[(size_t)k * in->cap + i], to))
                return fp_fail_beyond(err, "the sum of a stack's samples", columns[k], "2^63 - 1");
        }
        s->labelled += in->label[i] != 0;
        s->timed += in->time[i] != 0;
    }
    s->samples += in->n;
    return FP_DONE;
}

struct text {
    const uint8_t *p;
    size_t n;
    uint32_t id;
};

static int by_text(const void *a, const void *b) {
    const struct text *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

struct ranked {
    uint32_t keys[5]; /* ranks of object, file, name, system name; line */
    uint32_t id;
};

static int by_keys(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    for (int i = 0; i < 5; i++)
        if (x->keys[i] != y->keys[i]) return x->keys[i] < y->keys[i] ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Ranks the strings and functions of all positions, so that rows compare by numbers. */
static int rank_names(struct fp_project *s) {
    const struct fp_model *m = s->model;
    const uint32_t n_functions = m->functions.n, n_strings = m->strings.n;
    int status = FP_E_NOMEM;
    struct text *texts = NULL;
    struct ranked *ranked = NULL;
    uint32_t n_texts = 0, n_ranked = 0;
    s->rank_of_string = calloc(n_strings, sizeof *s->rank_of_string);
    s->rank_of_function = calloc(n_functions, sizeof *s->rank_of_function);
    if (!s->rank_of_string || !s->rank_of_function) return FP_E_NOMEM;

    /* mark what is used; the marks are replaced by ranks below */
#define MARK(string) (n_texts += !s->rank_of_string[string], s->rank_of_string[string] = 1)
    for (uint32_t i = 1; i < s->positions.n; i++) {
        const uint32_t *p = fp_table_row(&s->positions, i);
        const uint32_t *f = fp_table_row(&m->functions, p[FP_POSITION_FUNCTION]);
        MARK(p[FP_POSITION_FILE]);
        if (s->rank_of_function[p[FP_POSITION_FUNCTION]]) continue;
        s->rank_of_function[p[FP_POSITION_FUNCTION]] = 1;
        n_ranked++;
        MARK(fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME]);
        MARK(f[FP_FUNCTION_FILE]);
        MARK(f[FP_FUNCTION_NAME]);
        MARK(f[FP_FUNCTION_SYSTEM_NAME]);
    }
#undef MARK
    texts = malloc(((size_t)n_texts + 1) * sizeof *texts);
    ranked = malloc(((size_t)n_ranked + 1) * sizeof *ranked);
    if (!texts || !ranked) goto done;
    n_texts = n_ranked = 0;
    for (uint32_t id = 0; id < n_strings; id++)
        if (s->rank_of_string[id]) {
            struct text *t = &texts[n_texts++];
            t->p = fp_string(&m->strings, id, &t->n);
            t->id = id;
        }
    qsort(texts, n_texts, sizeof *texts, by_text);
    for (uint32_t i = 0; i < n_texts; i++) s->rank_of_string[texts[i].id] = i;
    for (uint32_t id = 0; id < n_functions; id++)
        if (s->rank_of_function[id]) {
            const uint32_t *f = fp_table_row(&m->functions, id);
            ranked[n_ranked++] =
                (struct ranked){{s->rank_of_string[fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME]],
                                 s->rank_of_string[f[FP_FUNCTION_FILE]], s->rank_of_string[f[FP_FUNCTION_NAME]],
                                 s->rank_of_string[f[FP_FUNCTION_SYSTEM_NAME]], f[FP_FUNCTION_LINE]},
                                id};
        }
    qsort(ranked, n_ranked, sizeof *ranked, by_keys);
    for (uint32_t i = 0; i < n_ranked; i++) s->rank_of_function[ranked[i].id] = i;
    status = 0;
done:
    free(texts);
    free(ranked);
    return status;
}

int fp_project_end(struct fp_project *s, struct fp_err *err) {
    struct fp_model *m = s->model;
    const uint32_t n_stacks = m->stacks.n, n_keys = s->keys.n;
    s->unknown_file = fp_strings_intern(&m->strings, "???", 3);
    if (s->unknown_file == FP_NO_ID) return fp_project_no_memory(err);
    s->chain_of = calloc(m->frames.n, sizeof *s->chain_of);
    s->local_of = calloc(n_stacks, sizeof *s->local_of);
    s->by_group = malloc(n_keys * sizeof *s->by_group);
    s->group_start = calloc((size_t)s->n_groups + 2, sizeof *s->group_start);
    if (!s->chain_of || !s->local_of || !s->by_group || !s->group_start || fp_project_push(s, 0))
        return fp_project_no_memory(err);

    for (uint32_t key = 1; key < n_keys; key++) s->group_start[fp_table_row(&s->keys, key)[1] + 2]++;
    for (uint32_t g = 1; g <= s->n_groups; g++) s->group_start[g + 1] += s->group_start[g];
    for (uint32_t key = 1; key < n_keys; key++) s->by_group[s->group_start[fp_table_row(&s->keys, key)[1] + 1]++] = key;

    /* local_of marks the stacks that were walked */
    for (uint32_t key = 1; key < n_keys; key++) {
        uint32_t stack = fp_table_row(&s->keys, key)[0];
        do {
            if (s->local_of[stack]) break;
            const uint32_t *row = fp_table_row(&m->stacks, stack);
            uint32_t frame = row[FP_STACK_FRAME], parent = row[FP_STACK_PARENT];
            if (stack && parent >= stack) return fp_unknown_id(err, "the parent of a stack", parent, stack);
            if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
            s->local_of[stack] = 1;
            if (!s->chain_of[frame]) {
                int status = fp_project_resolve(s, frame, err);
                if (status) return status;
            }
            stack = parent;
        } while (stack);
    }
    memset(s->local_of, 0, n_stacks * sizeof *s->local_of);
    s->active = calloc(m->functions.n, sizeof *s->active);
    return !s->active || rank_names(s) ? fp_project_no_memory(err) : FP_DONE;
}
