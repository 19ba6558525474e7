#include <stdlib.h>

#include "bridges/project/project_private.h"

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
    free(s->costs);
    free(s->counts);
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
    /* drop the rows of the last graph, which have the old width */
    free(s->costs);
    free(s->counts);
    s->costs = NULL;
    s->counts = NULL;
    s->cap_rows = 0;
    fp_table_clear(&s->rows);
    s->n_values = n_values;
    return 0;
}

/* Whether a stack has more than two frames. */
static int is_deep(const struct fp_model *m, uint32_t stack) {
    const uint32_t parent = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT];
    return parent && parent < stack && fp_table_row(&m->stacks, parent)[FP_STACK_PARENT];
}

/* Counts a stack and its parents, each once.  FP_DONE or FP_E_MALFORMED. */
static int count_nodes(struct fp_project *s, uint32_t stack, struct fp_err *err) {
    const struct fp_model *m = s->model;
    do {
        if (s->local_of[stack]) break;
        const uint32_t *row = fp_table_row(&m->stacks, stack);
        uint32_t frame = row[FP_STACK_FRAME], parent = row[FP_STACK_PARENT];
        if (stack && parent >= stack) return fp_unknown_id(err, "the parent of a stack", parent, stack);
        if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
        s->local_of[stack] = 1;
        s->n_nodes++;
        stack = parent;
    } while (stack);
    return FP_DONE;
}

int fp_project_put(struct fp_project *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    const uint32_t n_stacks = s->model->stacks.n, n_values = in->n_values;
    for (uint32_t k = 0; k < n_values; k++)
        if (columns[k] >= s->n_values) return fp_unknown_id(err, "the column of a value", columns[k], s->n_values);
    if (fp_array_zeroed(&s->local_of, &s->cap_stacks, n_stacks, sizeof *s->local_of)) return fp_project_no_memory(err);
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t group = s->per_thread ? in->thread[i] : 0;
        if (in->stack[i] >= n_stacks) return fp_unknown_id(err, "the stack of a sample", in->stack[i], n_stacks);
        if (group && group >= s->model->threads.n)
            return fp_unknown_id(err, "the thread of a sample", group, s->model->threads.n);
        const uint32_t n_keys = s->keys.n;
        uint32_t key = fp_table_intern(&s->keys, (uint32_t[]){in->stack[i], group});
        if (key == FP_NO_ID) return fp_project_no_memory(err);
        if (s->keys.n > n_keys) s->joined += is_deep(s->model, in->stack[i]);
        int status = count_nodes(s, in->stack[i], err);
        if (status) return status;
        if (fp_array_zeroed(&s->sums, &s->cap_sums, (uint64_t)key + 1, fp_project_row(s)))
            return fp_project_no_memory(err);
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

int fp_project_end(struct fp_project *s, struct fp_err *err) {
    struct fp_model *m = s->model;
    const uint32_t n_keys = s->keys.n;
    s->unknown_file = fp_strings_intern(&m->strings, "???", 3);
    if (s->unknown_file == FP_NO_ID) return fp_project_no_memory(err);
    free(s->by_group);
    free(s->group_start);
    s->by_group = malloc(n_keys * sizeof *s->by_group);
    s->group_start = calloc((size_t)s->n_groups + 2, sizeof *s->group_start);
    if (!s->by_group || !s->group_start || (!s->n_chain && fp_project_push(s, 0)) ||
        fp_array_zeroed(&s->chain_of, &s->cap_frames, m->frames.n, sizeof *s->chain_of))
        return fp_project_no_memory(err);

    for (uint32_t key = 1; key < n_keys; key++) s->group_start[fp_table_row(&s->keys, key)[1] + 2]++;
    for (uint32_t g = 1; g <= s->n_groups; g++) s->group_start[g + 1] += s->group_start[g];
    for (uint32_t key = 1; key < n_keys; key++) s->by_group[s->group_start[fp_table_row(&s->keys, key)[1] + 1]++] = key;

    for (uint32_t key = 1; key < n_keys; key++) {
        uint32_t stack = fp_table_row(&s->keys, key)[0];
        for (; s->local_of[stack]; stack = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT]) {
            s->local_of[stack] = 0;
            uint32_t frame = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
            if (s->chain_of[frame]) continue;
            int status = fp_project_resolve(s, frame, err);
            if (status) return status;
        }
    }
    if (fp_array_zeroed(&s->active, &s->cap_active, m->functions.n, sizeof *s->active))
        return fp_project_no_memory(err);
    return FP_DONE;
}

void fp_project_empty(struct fp_project *s) {
    const uint32_t n = s->keys.n < s->cap_sums ? s->keys.n : s->cap_sums;
    if (s->sums) memset(s->sums, 0, (size_t)n * s->n_values * sizeof *s->sums);
    fp_table_empty(&s->keys);
    s->n_groups = 0;
    s->n_nodes = 0;
}
