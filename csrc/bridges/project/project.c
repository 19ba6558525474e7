#include "bridges/project/project_private.h"

struct fp_project *fp_project_new(struct fp_model *model, int per_thread, int inline_calls) {
    struct fp_project *s = fp_made(sizeof *s);
    s->model = model;
    s->per_thread = per_thread;
    s->inline_calls = inline_calls;
    s->n_keys = 1;
    /* now, so that its place among functions and stacks does not depend on batches */
    s->no_stack = fp_model_name_frame(model, fp_strings_intern(&model->strings, "[no stack]", 10));
    fp_model_stack(model, 0, s->no_stack);
    fp_table_init(&s->keys, 2);
    fp_table_init(&s->names, 4);
    fp_table_init(&s->positions, FP_POSITION_WIDTH);
    return s;
}

void fp_project_free(struct fp_project *s) {
    FP_CLEAR_TABLES(&s->keys, &s->positions, &s->rows, &s->names);
    fp_release(s->sums, s->cap_sums * fp_project_row(s));
    fp_project_free_nodes(s);
    fp_buf_free(&s->name);
    FP_FREE(s->function_of_name, s->by_group, s->group_start, s->chain, s->chain_of, s->walk.inclusive, s->active,
            s->start_of, s->costs, s->counts, s);
}

/* Makes room for sums of `n_keys` keys. */
static void sums_room(struct fp_project *s, uint64_t n_keys) {
    const size_t row = fp_project_row(s), had = s->cap_sums * row;
    if (FP_LIKELY(n_keys <= s->cap_sums)) return;
    const uint64_t cap = n_keys + n_keys / 8;
    if (cap > UINT32_MAX) fp_escape();
    s->sums = fp_have(fp_grow(s->sums, had, cap * row));
    memset((uint8_t *)s->sums + had, 0, cap * row - had);
    s->cap_sums = (uint32_t)cap;
}

int fp_project_set_values(struct fp_project *s, uint32_t n_values) {
    if (n_values <= s->n_values) return 0;
    const uint32_t cap = s->cap_sums, before = s->n_values;
    if (cap) {
        int64_t *sums = fp_have(fp_zeroed((size_t)cap * n_values * sizeof *sums));
        for (uint32_t i = 0; i < cap && before; i++)
            memcpy(sums + (size_t)i * n_values, s->sums + (size_t)i * before, before * sizeof *sums);
        fp_release(s->sums, cap * fp_project_row(s));
        s->sums = sums;
    }
    s->n_values = n_values;
    /* drop the rows of the last graph, which have the old width */
    FP_FREE(s->costs, s->counts);
    s->costs = NULL;
    s->counts = NULL;
    s->cap_rows = 0;
    fp_table_clear(&s->rows);
    return 0;
}

/* The number of inlined functions in the innermost frame of a stack, at most 2. */
static uint32_t n_inlined(const struct fp_model *m, uint32_t stack) {
    const uint32_t frame = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
    uint32_t n = 0, line = frame < m->frames.n ? fp_table_row(&m->frames, frame)[FP_FRAME_LINES] : 0;
    while (line && line < m->lines.n && n < 2 && (line = fp_table_row(&m->lines, line)[FP_LINE_OUTER])) n++;
    return n;
}

/* Whether a stack has more than two functions. */
static int is_deep(const struct fp_project *s, uint32_t stack) {
    const struct fp_model *m = s->model;
    const uint32_t parent = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT];
    const int has_caller = parent && parent < stack;
    if (has_caller && fp_table_row(&m->stacks, parent)[FP_STACK_PARENT]) return 1;
    if (!stack || !s->inline_calls) return 0;
    return n_inlined(m, stack) + (has_caller ? 1 + n_inlined(m, parent) : 0) > 1;
}

/* The key of a stack and group, added if new. */
static uint32_t find_key(struct fp_project *s, uint32_t stack, uint32_t group) {
    const uint32_t n_keys = s->n_keys;
    uint32_t key = stack + 1;
    if (s->per_thread) {
        key = fp_table_intern(&s->keys, (uint32_t[]){stack, group});
        s->n_keys = s->keys.n;
    } else if (!s->nodes[stack].key) {
        s->nodes[stack].key = key;
        s->n_keys++;
    }
    if (s->n_keys > n_keys) s->joined += is_deep(s, stack);
    return key;
}

enum { AHEAD = 12 }; /* rows; stacks are in no order, and sums of many are in no cache */

static void prefetch(const struct fp_project *s, uint32_t stack) {
    if (s->per_thread || stack >= s->cap_nodes || stack + 1 >= s->cap_sums) return;
    __builtin_prefetch(&s->nodes[stack], 1);
    __builtin_prefetch(s->sums + ((size_t)stack + 1) * s->n_values, 1);
}

int fp_project_put(struct fp_project *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    const uint32_t empty = fp_model_stack(s->model, 0, s->no_stack); /* again, as stacks may have been emptied */
    const uint32_t n_stacks = s->model->stacks.n, n_values = in->n_values;
    for (uint32_t k = 0; k < n_values; k++)
        if (columns[k] >= s->n_values) return fp_unknown_id(err, "the column of a value", columns[k], s->n_values);
    if (!s->per_thread) {
        fp_project_nodes(s);
        sums_room(s, (uint64_t)n_stacks + 1);
    }
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->n - i > AHEAD) prefetch(s, in->stack[i + AHEAD]);
        uint32_t group = s->per_thread ? in->thread[i] : 0;
        if (in->stack[i] >= n_stacks) return fp_unknown_id(err, "the stack of a sample", in->stack[i], n_stacks);
        if (group && group >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a sample", group, s->model->threads.n);
        const uint32_t key = find_key(s, in->stack[i] ? in->stack[i] : empty, group);
        sums_room(s, (uint64_t)key + 1);
        if (group >= s->n_groups) s->n_groups = group + 1;
        int64_t *sum = s->sums + (size_t)key * s->n_values;
        for (uint32_t k = 0; k < n_values; k++) {
            int64_t *to = sum + columns[k];
            if (__builtin_add_overflow(*to, in->values[(size_t)k * in->cap + i], to))
                return fp_fail_beyond(err, "the sum of a stack's samples", columns[k], "2^63 - 1");
        }
        const uint64_t n = fp_batch_samples(in, i);
        s->labelled += in->label[i] ? n : 0;
        s->timed += in->time[i] ? n : 0;
        s->samples += n;
    }
    return FP_DONE;
}

uint32_t fp_project_key(const struct fp_project *s, uint32_t stack, uint32_t thread) {
    if (!stack) stack = fp_model_stack(s->model, 0, s->no_stack);
    return s->per_thread ? fp_table_find(&s->keys, (uint32_t[]){stack, thread}) : stack + 1;
}

/* Sets group_start and by_group. */
static void order_keys(struct fp_project *s) {
    if (!s->per_thread) {
        uint32_t n = 0;
        for (uint32_t stack = 0; n + 1 < s->n_keys; stack++)
            if (s->nodes[stack].key) s->by_group[n++] = stack + 1;
        if (s->n_groups) s->group_start[1] = n;
        return;
    }
    for (uint32_t key = 1; key < s->n_keys; key++) s->group_start[fp_table_row(&s->keys, key)[1] + 2]++;
    for (uint32_t g = 1; g <= s->n_groups; g++) s->group_start[g + 1] += s->group_start[g];
    for (uint32_t key = 1; key < s->n_keys; key++)
        s->by_group[s->group_start[fp_table_row(&s->keys, key)[1] + 1]++] = key;
}

int fp_project_end(struct fp_project *s, struct fp_err *err) {
    struct fp_model *m = s->model;
    s->unknown_file = fp_strings_intern(&m->strings, "???", 3);
    FP_FREE(s->by_group, s->group_start);
    s->by_group = s->group_start = NULL;
    s->by_group = fp_have(malloc(s->n_keys * sizeof *s->by_group));
    s->group_start = fp_have(calloc((size_t)s->n_groups + 2, sizeof *s->group_start));
    if (!s->n_chain) fp_project_push(s, 0);
    fp_project_nodes(s);
    fp_array_zeroed(&s->chain_of, &s->cap_frames, m->frames.n, sizeof *s->chain_of);
    order_keys(s);
    int status = fp_project_link(s, err);
    if (s->per_thread) fp_project_clear(s);
    if (status) return status;
    fp_array_zeroed(&s->active, &s->cap_active, m->functions.n, sizeof *s->active);
    return FP_DONE;
}

void fp_project_empty(struct fp_project *s) {
    if (s->sums) memset(s->sums, 0, s->cap_sums * fp_project_row(s));
    if (!s->per_thread) fp_project_clear(s);
    fp_table_empty(&s->keys);
    s->n_groups = 0;
    s->n_keys = 1;
}
