#include "bridges/fold/fold_private.h"

/* Contexts from sorted runs.
 *
 * In each run a context comes after its callers, so that a record depends only on those before it.  Depth and rank
 * suffice to merge the runs: the next record of each run is a child of the last record written or of one of its
 * callers.  (All contexts between two neighbours of a run are below the parent of the second one.)  So the deepest
 * record comes next and, among equally deep ones, the one with the lowest rank.
 *
 *   run A: a, a > c, b        run B: a, a > b, a > b > d        gives        a, a > b, a > b > d, a > c, b
 */

struct fp_fold_tree_level {
    uint32_t function; /* at the first level: the group */
    uint32_t stack;
};

struct fp_fold_tree *fp_fold_tree_new(struct fp_fold *f, uint32_t n_runs) {
    struct fp_fold_tree *t = fp_made(sizeof *t);
    t->fold = f;
    t->n_runs = n_runs;
    t->to_refill = FP_MERGE_NONE;
    t->runs = fp_have(calloc(n_runs ? n_runs : 1, sizeof *t->runs));
    t->heads = fp_have(calloc(n_runs ? n_runs : 1, sizeof *t->heads));
    t->heap = fp_have(calloc(n_runs ? n_runs : 1, sizeof *t->heap));
    t->used = fp_have(calloc(n_runs ? n_runs : 1, sizeof *t->used));
    while (t->n_used < n_runs) {
        t->used[t->n_used] = t->n_used;
        t->n_used++;
    }
    return t;
}

void fp_fold_tree_free(struct fp_fold_tree *t) {
    FP_FREE(t->runs, t->heads, t->heap, t->used, t->path, t->frames, t);
}

static int damaged(struct fp_err *err) {
    return fp_fail(err, FP_E_MALFORMED, 0, "a record of a temporary file");
}

/* Reads the next record of a run into its head: FP_FULL.  FP_DONE at the end of the run, FP_MORE or FP_E_MALFORMED. */
static int load(struct fp_fold_tree *t, uint32_t run, struct fp_err *err) {
    const struct fp_fold *f = t->fold;
    struct fp_window *in = &t->runs[run];
    struct fp_fold_tree_head *head = &t->heads[run];
    if (in->n - in->pos < FP_TREE_RECORD && !in->eof) {
        t->to_refill = run;
        return FP_MORE;
    }
    if (in->pos == in->n) return FP_DONE;
    const uint8_t *p = in->p + in->pos, *end = in->p + in->n;
    uint64_t words[4];
    for (int i = 0; i < 4; i++) {
        const int used = fp_wire_read_varint(p, end, &words[i]);
        if (used <= 0) return damaged(err);
        p += used;
    }
    const uint64_t levels = head->key ? (uint64_t)head->depth + 1 : 0; /* no key is 0, see below */
    if (words[0] > levels) return damaged(err);
    head->depth = (uint32_t)(levels - words[0]);
    if (words[1] >= (head->depth ? f->names->n_functions : f->n_group_ranks)) return damaged(err);
    head->function = (uint32_t)words[1];
    head->self = words[2];
    head->calls = words[3];
    head->key = (uint64_t)(UINT32_MAX - head->depth) << 32 |
                (head->depth ? f->names->rank_of_function : f->group_ranks)[words[1]];
    in->pos = (size_t)(p - in->p);
    return FP_FULL;
}

static inline int is_before(const struct fp_fold_tree *t, uint32_t a, uint32_t b) {
    return t->heads[a].key < t->heads[b].key;
}

FP_HEAP(const struct fp_fold_tree *, uint32_t, is_before)

static inline uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b; /* too large for any row */
}

/* The next merged record, into t->head.  FP_FULL: there is one.  Otherwise as fp_fold_tree_pull. */
static int next_record(struct fp_fold_tree *t, struct fp_err *err) {
    const struct fp_fold_tree_head *heads = t->heads;
    t->to_refill = FP_MERGE_NONE;
    if (t->top_used) { /* first, because its old head is on top */
        const int status = load(t, t->heap[0], err);
        if (status == FP_MORE || status < 0) return status;
        if (status == FP_DONE) t->heap[0] = t->heap[--t->n_heap];
        if (t->n_heap) heap_sink(t, t->heap, t->n_heap, 0);
        t->top_used = 0;
    }
    for (; t->n_used; t->n_used--) {
        const uint32_t run = t->used[t->n_used - 1];
        const int status = load(t, run, err);
        if (status == FP_MORE || status < 0) return status;
        if (status == FP_FULL) heap_push(t, t->heap, t->n_heap++, run);
    }
    if (!t->n_heap) return FP_DONE;
    t->head = heads[t->heap[0]];
    t->top_used = 1;
    /* sum over all runs with this context; their next records may be its children, which come next */
    const uint64_t key = t->head.key;
    while ((t->n_heap > 1 && heads[t->heap[1]].key == key) || (t->n_heap > 2 && heads[t->heap[2]].key == key)) {
        t->used[t->n_used++] = t->heap[0];
        t->heap[0] = t->heap[--t->n_heap];
        heap_sink(t, t->heap, t->n_heap, 0);
        t->head.self = add(t->head.self, heads[t->heap[0]].self);
        t->head.calls = add(t->head.calls, heads[t->heap[0]].calls);
    }
    return FP_FULL;
}

int fp_fold_tree_pull(struct fp_fold_tree *t, uint8_t *to, size_t n, size_t *got, struct fp_err *err) {
    uint8_t *at = to;
    int status = FP_FULL;
    while ((size_t)(to + n - at) >= FP_TREE_RECORD && (status = next_record(t, err)) == FP_FULL) {
        const struct fp_fold_tree_head *head = &t->head;
        const uint32_t *as = head->depth ? NULL : t->fold->group_as;
        const uint32_t function = as ? as[head->function] : head->function;
        at = fp_fold_tree_record(at, t->written, head->depth, function, head->self, head->calls);
        t->written = head->depth + 1;
    }
    *got = (size_t)(at - to);
    return status;
}

/* ---- rows ---- */

static uint32_t frame_of(struct fp_fold_tree *t, uint32_t function) {
    struct fp_model *m = t->fold->model;
    fp_array_zeroed(&t->frames, &t->cap_frames, (uint64_t)function + 1, sizeof *t->frames);
    if (t->frames[function]) return t->frames[function];
    const uint32_t line = fp_table_row(&m->functions, function)[FP_FUNCTION_LINE];
    return t->frames[function] = fp_model_line_frame(m, function, line, 0);
}

/* Creates the stack of the path's last level. */
static void enter(struct fp_fold_tree *t, uint32_t depth) {
    const uint32_t frame = frame_of(t, t->path[depth].function);
    const uint32_t caller = t->path[depth - 1].stack;
    struct fp_model *m = t->fold->model;
    t->path[depth].stack = t->once ? fp_model_stack_once(m, caller, frame) : fp_model_stack(m, caller, frame);
}

/* Updates the path to the current record. */
static void follow(struct fp_fold_tree *t) {
    const struct fp_fold_tree_head *head = &t->head;
    const uint32_t emptied = t->fold->model->n_emptied;
    *FP_AT(t->path, t->cap_path, head->depth) = (struct fp_fold_tree_level){head->function, 0};
    uint32_t from = head->depth;
    if (t->n_emptied != emptied) from = 1; /* its stacks were removed */
    t->n_emptied = emptied;
    for (uint32_t depth = from; depth && depth <= head->depth; depth++) enter(t, depth);
}

/* Sets thread and label of the current group. */
static void begin_group(struct fp_fold_tree *t) {
    const struct fp_fold *f = t->fold;
    const uint32_t *group = fp_table_row(&f->groups, t->head.function);
    const uint32_t pid = group[FP_GROUP_PID], tid = group[FP_GROUP_TID];
    t->thread = pid || tid ? fp_model_thread(f->model, group[FP_GROUP_INPUT], pid, tid) : 0;
    if (!(f->by & FP_FOLD_BY_CPU)) return;
    uint8_t cpu[FP_DIGITS_ROOM];
    const size_t length = (size_t)(fp_put_decimal(cpu, group[FP_GROUP_CPU]) - cpu);
    const uint32_t text = fp_strings_intern(&f->model->strings, cpu, length);
    t->label = fp_model_label(f->model, 0, f->cpu, text, 0, 0);
}

int fp_fold_stacks(struct fp_fold_tree *t, uint64_t ticks_per_second, struct fp_batch *out, struct fp_err *err) {
    while (out->n < out->cap) {
        const int status = next_record(t, err);
        if (status != FP_FULL) return status;
        const struct fp_fold_tree_head *head = &t->head;
        follow(t);
        if (!head->depth) begin_group(t);
        if (!head->self && !head->calls) continue; /* a group, or a context only carried over to another CPU */
        const uint32_t row = out->n;
        if (fp_fold_in_units(ticks_per_second, head->self, &out->values[row]))
            return fp_fail_beyond(err, FP_FOLD_PATH_COST, FP_FOLD_TIME, "2^63 - 1");
        if (head->calls > INT64_MAX) return fp_fail_beyond(err, FP_FOLD_PATH_COST, FP_FOLD_CALLS, "2^63 - 1");
        out->values[out->cap + row] = (int64_t)head->calls;
        fp_batch_sample(out, t->path[head->depth].stack, t->thread, t->label, 0);
    }
    return FP_FULL;
}
