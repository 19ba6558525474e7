#include "bridges/sums/sum.h"

#include "bridges/sums/stack_order.h"

/* Rows are looked up in groups, to overlap cache misses. */
enum { GROUP = 32, WIDTH = 3 };

/* The size of a key's sums; not 0, so that stacks without values have a row, too. */
static size_t sum_bytes(const struct fp_sum *s) {
    return (s->n_values ? s->n_values : 1) * sizeof *s->sums;
}

/* Makes the sums of a key and of those before it, initially 0. */
static void sums_room(struct fp_sum *s, uint32_t key) {
    if (FP_LIKELY(key < s->n_sums)) return;
    const size_t width = sum_bytes(s);
    if (key >= s->cap) {
        const uint64_t cap = key < UINT32_MAX / 2 ? (uint64_t)key * 2 + 32 : UINT32_MAX;
        if (cap > SIZE_MAX / width) fp_escape();
        s->sums = fp_have(fp_grow(s->sums, s->cap * width, cap * width));
        s->cap = (uint32_t)cap;
    }
    memset((uint8_t *)s->sums + s->n_sums * width, 0, (key + 1 - s->n_sums) * width);
    s->n_sums = key + 1;
}

struct fp_sum *fp_sum_new(struct fp_model *model) {
    struct fp_sum *s = fp_made(sizeof *s);
    fp_table_init(&s->keys, WIDTH);
    s->model = model;
    s->keep = FP_SUM_ALL | FP_SUM_INPUTS;
    return s;
}

void fp_sum_free(struct fp_sum *s) {
    fp_table_clear(&s->keys);
    fp_name_order_clear(&s->names);
    fp_release(s->sums, s->cap * sum_bytes(s));
    for (int i = 0; i < WIDTH; i++) FP_FREE(s->numbers[i], s->ranks[i]);
    FP_FREE(s->labels, s->threads, s->order, s->stack_ranks, s->path, s->rest, s->frames, s);
}

void fp_sum_begin(struct fp_sum *s, uint32_t keep, uint32_t suffix, uint32_t thread) {
    if (s->labels) memset(s->labels, 0, s->cap_labels * sizeof *s->labels);
    if (s->threads) memset(s->threads, 0, s->cap_threads * sizeof *s->threads);
    s->keep = keep;
    s->suffix = suffix;
    s->thread = thread;
}

int fp_sum_set_values(struct fp_sum *s, uint32_t n_values) {
    if (n_values <= s->n_values) return 0;
    const size_t had = sum_bytes(s);
    if (s->cap && n_values > SIZE_MAX / sizeof *s->sums / s->cap) fp_escape();
    int64_t *sums = s->cap ? fp_zeroed(s->cap * n_values * sizeof *sums) : NULL;
    if (s->cap && !sums) fp_escape();
    for (uint32_t i = 0; i < s->n_sums && s->n_values; i++)
        memcpy(sums + (size_t)i * n_values, s->sums + (size_t)i * s->n_values, had);
    fp_release(s->sums, s->cap * had);
    s->sums = sums;
    s->n_values = n_values;
    return 0;
}

/* The chain with s->suffix after its last label. */
static uint32_t with_suffix(struct fp_sum *s, uint32_t label) {
    struct fp_table *labels = &s->model->labels;
    uint32_t n = 0, chain = s->suffix;
    if (!chain || !label) return chain ? chain : label;
    for (uint32_t at = label; at; at = fp_table_row(labels, at)[FP_LABEL_NEXT]) n++;
    uint32_t *own = fp_scratch(n, sizeof *own);
    for (uint32_t at = label, i = 0; at; at = fp_table_row(labels, at)[FP_LABEL_NEXT]) own[i++] = at;
    while (n-- > 0) {
        uint32_t row[FP_LABEL_WIDTH];
        memcpy(row, fp_table_row(labels, own[n]), sizeof row);
        row[FP_LABEL_NEXT] = chain;
        chain = fp_table_intern(labels, row);
    }
    fp_scratch_free(own);
    return chain;
}

static uint32_t kept_label(struct fp_sum *s, uint32_t label) {
    return s->keep & FP_SUM_LABELS ? with_suffix(s, label) : s->suffix;
}

static uint32_t kept_thread(struct fp_sum *s, uint32_t thread) {
    const uint32_t *row = fp_table_row(&s->model->threads, thread ? thread : s->thread);
    const uint32_t pid = row[FP_THREAD_PID], tid = row[FP_THREAD_TID];
    const uint32_t has = (pid ? FP_SUM_PROCESS : 0) | (tid ? FP_SUM_THREAD : 0);
    s->had |= has;
    if (!(has & ~s->keep) && (s->keep & FP_SUM_INPUTS || !row[FP_THREAD_INPUT])) return thread ? thread : s->thread;
    if (!(has & s->keep)) return 0;
    return fp_model_thread(s->model, 0, s->keep & FP_SUM_PROCESS ? pid : 0, s->keep & FP_SUM_THREAD ? tid : 0);
}

/* The replacement of `id`, looked up once. */
static inline uint32_t kept(struct fp_sum *s, uint32_t **known, uint32_t *cap, uint32_t id,
                            uint32_t (*look)(struct fp_sum *, uint32_t)) {
    fp_array_zeroed(known, cap, (uint64_t)id + 1, sizeof **known);
    uint32_t was = (*known)[id];
    if (FP_LIKELY(was)) return was - 1;
    uint32_t found = look(s, id);
    (*known)[id] = found + 1;
    return found;
}

static void count_unlabelled(struct fp_sum *s, const struct fp_batch *in, uint32_t from, uint32_t n) {
    const uint32_t labels = s->keep & FP_SUM_LABELS, threads = s->keep & (FP_SUM_PROCESS | FP_SUM_THREAD);
    for (uint32_t i = from; i < from + n; i++)
        if ((in->label[i] && !labels) || (in->thread[i] && !threads)) s->unlabelled += fp_batch_samples(in, i);
}

/* The key of a row; most are what is guessed. */
static inline uint32_t key_of(struct fp_sum *s, uint32_t guess, const uint32_t *row, uint32_t hash) {
    const uint32_t *found = fp_table_row(&s->keys, guess);
    if (FP_LIKELY(guess && found[0] == row[0] && found[1] == row[1] && found[2] == row[2])) return guess;
    return fp_table_intern_hashed(&s->keys, row, hash);
}

int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, uint32_t from, const uint32_t *columns,
               struct fp_err *err) {
    struct {
        uint32_t row[WIDTH], hash, guess;
    } keys[GROUP];
    for (; from < in->n; from += GROUP) {
        const uint32_t n = in->n - from < GROUP ? in->n - from : GROUP;
        if ((s->keep & FP_SUM_ALL) != FP_SUM_ALL) count_unlabelled(s, in, from, n);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t i = from + k;
            keys[k].row[0] = in->stack[i];
            keys[k].row[1] = kept(s, &s->labels, &s->cap_labels, in->label[i], kept_label);
            keys[k].row[2] = kept(s, &s->threads, &s->cap_threads, in->thread[i], kept_thread);
            keys[k].hash = fp_table_hash(keys[k].row, WIDTH);
            fp_table_prefetch(&s->keys, keys[k].hash);
        }
        for (uint32_t k = 0; k < n; k++) keys[k].guess = fp_table_guess(&s->keys, keys[k].hash);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t key = key_of(s, keys[k].guess, keys[k].row, keys[k].hash);
            sums_room(s, key);
            int64_t *sums = s->sums + (size_t)key * s->n_values;
            const int64_t *values = in->values + from + k;
            int overflow = 0;
            for (uint32_t v = 0; v < in->n_values; v++) {
                int64_t *sum = &sums[columns[v]];
                overflow |= __builtin_add_overflow(*sum, values[(size_t)v * in->cap], sum);
            }
            if (FP_UNLIKELY(overflow)) { /* undo: sums wrap around, and back */
                uint32_t column = 0;
                for (uint32_t v = 0; v < in->n_values; v++) {
                    int64_t *sum = &sums[columns[v]];
                    if (__builtin_sub_overflow(*sum, values[(size_t)v * in->cap], sum)) column = columns[v];
                }
                s->taken = from + k;
                return fp_fail_beyond(err, "the sum of a stack's samples", column, "2^63 - 1");
            }
            if (in->time[from + k]) s->timed += fp_batch_samples(in, from + k);
        }
    }
    return FP_DONE;
}

int64_t fp_sum_stacks(const struct fp_table *keys, uint32_t n_stacks) {
    uint8_t *is_known = fp_scratch((size_t)n_stacks + 1, 1);
    int64_t n = 0;
    for (uint32_t key = 1; key < keys->n; key++) {
        const uint32_t stack = *fp_table_row(keys, key);
        if (stack >= n_stacks) continue;
        n += !is_known[stack];
        is_known[stack] = 1;
    }
    fp_scratch_free(is_known);
    return n;
}

/* ---- in order ---- */

int fp_sum_rank(struct fp_sum *s) {
    static uint32_t *(*const rank[WIDTH])(const struct fp_name_order *) = {fp_stack_order_frames, fp_stack_order_labels,
                                                                           fp_stack_order_threads};
    const struct fp_model *m = s->model;
    struct fp_name_order *order = &s->names;
    order->model = m;
    fp_name_order_rank(order);
    for (int i = 0; i < WIDTH; i++) {
        free(s->ranks[i]);
        s->ranks[i] = NULL;
        s->ranks[i] = fp_scratch_keep(rank[i](order));
        s->n_ranks[i] = (uint32_t[]){m->frames.n, m->labels.n, m->threads.n}[i];
    }
    fp_name_order_clear(order);
    return 0;
}

static struct fp_walk_ranks ranks_of(const struct fp_sum *s, int i) {
    return s->ranks[i] ? (struct fp_walk_ranks){s->ranks[i], s->n_ranks[i]}
                       : (struct fp_walk_ranks){s->numbers[i], s->cap_numbers[i]};
}

void fp_sum_show_ranks(const struct fp_sum *s, struct fp_walk *walk) {
    walk->frames = ranks_of(s, 0);
    walk->labels = ranks_of(s, 1);
    walk->threads = ranks_of(s, 2);
}

static void number(struct fp_sum *s, int i, uint32_t id) {
    fp_array_zeroed(&s->numbers[i], &s->cap_numbers[i], (uint64_t)id + 1, sizeof *s->numbers[i]);
    if (!s->numbers[i][id]) s->numbers[i][id] = ++s->n_numbers[i];
}

/* Numbers frames, labels and threads by their first occurrence: keys are in that order. */
static void number_all(struct fp_sum *s) {
    const struct fp_table *stacks = &s->model->stacks;
    uint8_t *is_known = fp_scratch(stacks->n, 1);
    for (uint32_t key = 1; key < s->keys.n; key++) {
        const uint32_t *row = fp_table_row(&s->keys, key);
        uint32_t n = 0;
        for (uint32_t at = row[0]; at && !is_known[at]; at = fp_table_row(stacks, at)[FP_STACK_PARENT]) {
            is_known[at] = 1;
            FP_PUSH(s->rest, n, s->cap_rest) = at;
        }
        while (n) number(s, 0, fp_table_row(stacks, s->rest[--n])[FP_STACK_FRAME]);
        number(s, 1, row[1]);
        number(s, 2, row[2]);
    }
    fp_scratch_free(is_known);
}

int fp_sum_follow(struct fp_sum *s, struct fp_sum *before) {
    number_all(before);
    for (int i = 0; i < 3; i++) {
        fp_array_zeroed(&s->numbers[i], &s->cap_numbers[i], before->cap_numbers[i], sizeof *s->numbers[i]);
        if (before->cap_numbers[i])
            memcpy(s->numbers[i], before->numbers[i], before->cap_numbers[i] * sizeof *s->numbers[i]);
        s->n_numbers[i] = before->n_numbers[i];
    }
    return 0;
}

int fp_sum_order(struct fp_sum *s) {
    const uint32_t n = s->keys.n - 1;
    s->next = s->n_order = s->n_path = s->n_rest = s->last = 0;
    if (!s->ranks[0]) number_all(s);
    const struct fp_walk_ranks frames = ranks_of(s, 0), labels = ranks_of(s, 1), threads = ranks_of(s, 2);
    free(s->stack_ranks);
    s->stack_ranks = NULL;
    s->stack_ranks = fp_scratch_keep(fp_stack_order_stacks(s->model, frames.of, frames.n));
    s->order = fp_have(realloc(s->order, ((size_t)n + 1) * sizeof *s->order));
    struct fp_keyed *items = fp_scratch((size_t)n + 1, sizeof *items);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *row = fp_table_row(&s->keys, i + 1);
        const uint64_t label = fp_walk_rank_of(&labels, row[1]);
        items[i] = (struct fp_keyed){label << 32 | fp_walk_rank_of(&threads, row[2]), s->stack_ranks[row[0]], i + 1};
    }
    fp_sort_keyed(items, n);
    for (uint32_t i = 0; i < n; i++) s->order[i] = items[i].item;
    fp_scratch_free(items);
    s->n_order = n;
    return 0;
}

/* Goes back to the last stack that leads to this one, too, and remembers those between.  0 or FP_E_NOMEM: its callers
 * have no guard. */
static int lead_to(struct fp_sum *s, uint32_t stack) {
    const uint32_t *ranks = s->stack_ranks;
    /* a stack with a lower rank than the last one has been pulled */
    for (; stack && ranks[stack] > ranks[s->last]; stack = fp_table_row(&s->model->stacks, stack)[FP_STACK_PARENT]) {
        if (fp_array_room(&s->rest, &s->cap_rest, (uint64_t)s->n_rest + 1, sizeof *s->rest)) return FP_E_NOMEM;
        s->rest[s->n_rest++] = stack;
    }
    while (s->n_path && s->path[s->n_path - 1] != stack) s->n_path--;
    return fp_array_room(&s->path, &s->cap_path, (uint64_t)s->n_path + s->n_rest, sizeof *s->path);
}

size_t fp_sum_pull(struct fp_sum *s, uint64_t *to, size_t n) {
    const size_t width = FP_WALK_HEAD + s->n_values;
    size_t got = 0;
    for (; s->next < s->n_order; s->next++) {
        const uint32_t key = s->order[s->next], *row = fp_table_row(&s->keys, key);
        if (s->last != row[0]) {
            if (lead_to(s, row[0])) {
                s->failed = 1;
                return 0;
            }
            s->last = row[0];
        }
        for (; s->n_rest && got < n; got++) {
            const uint32_t stack = s->rest[--s->n_rest];
            to[got] = (uint64_t)s->n_path << 32 | fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME];
            s->path[s->n_path++] = stack;
        }
        if (s->n_rest || n - got < width) break;
        to[got++] = FP_WALK_ROW | (uint64_t)s->n_path << 32 | row[1];
        to[got++] = row[2];
        for (uint32_t k = 0; k < s->n_values; k++) to[got++] = (uint64_t)s->sums[(size_t)key * s->n_values + k];
    }
    return got;
}

int fp_sum_rows(struct fp_sum *s, const uint32_t *columns, struct fp_batch *out) {
    for (; out->n < out->cap; s->next++) {
        if (s->next == s->n_order) return FP_DONE;
        const uint32_t key = s->order[s->next], *words = fp_table_row(&s->keys, key);
        const uint32_t row = fp_batch_sample(out, words[0], words[2], words[1], 0);
        for (uint32_t k = 0; k < out->n_values; k++)
            out->values[(size_t)k * out->cap + row] = s->sums[(size_t)key * s->n_values + columns[k]];
    }
    return FP_FULL;
}

void fp_sum_empty(struct fp_sum *s) {
    s->n_sums = 0;
    fp_table_empty(&s->keys);
    s->n_order = s->next = s->n_path = 0;
}

/* ---- merged walks ---- */

/* Advances to the next row of a walk and adds its stack to the model.  FP_FULL, or as fp_sum_walk. */
static int next_row(struct fp_sum *s, struct fp_walk *walk, uint32_t *stack, struct fp_err *err) {
    int status;
    while ((status = fp_walk_next(walk, err)) == FP_FULL && !walk->is_row) {
        const uint64_t n = (uint64_t)walk->depth + 1;
        fp_array_room(&s->path, &s->cap_path, n, sizeof *s->path);
        fp_array_room(&s->frames, &s->cap_frames, n, sizeof *s->frames);
        s->frames[walk->depth] = walk->frame;
        if (s->n_path > walk->depth) s->n_path = walk->depth;
    }
    if (status == FP_E_OVERFLOW)
        return fp_fail_beyond(err, "the sum of a stack's samples", (int64_t)err->got, "2^63 - 1");
    if (status != FP_FULL) return status;
    if (s->n_emptied != s->model->n_emptied) s->n_path = 0;
    s->n_emptied = s->model->n_emptied;
    if (s->n_path > walk->depth) s->n_path = walk->depth;
    for (; s->n_path < walk->depth; s->n_path++) {
        const uint32_t at = s->n_path;
        const uint32_t parent = at ? s->path[at - 1] : 0, frame = s->frames[at];
        s->path[at] = s->once ? fp_model_stack_once(s->model, parent, frame) : fp_model_stack(s->model, parent, frame);
    }
    *stack = walk->depth ? s->path[walk->depth - 1] : 0;
    return FP_FULL;
}

int fp_sum_take(struct fp_sum *s, struct fp_walk *walk, uint32_t n_keys, uint32_t n_stacks, struct fp_err *err) {
    while (s->keys.n - 1 < n_keys && s->model->stacks.n < n_stacks) {
        uint32_t stack;
        const int status = next_row(s, walk, &stack, err);
        if (status != FP_FULL) return status;
        /* no lookup: a row that was split comes several times */
        const uint32_t key = fp_table_append(&s->keys, (uint32_t[]){stack, walk->label, walk->thread});
        sums_room(s, key);
        if (s->n_values) memcpy(s->sums + (size_t)key * s->n_values, walk->values, s->n_values * sizeof *s->sums);
    }
    return FP_FULL;
}

int fp_sum_walk(struct fp_sum *s, struct fp_walk *walk, const uint32_t *columns, uint32_t n_stacks,
                struct fp_batch *out, struct fp_err *err) {
    while (out->n < out->cap && (!out->n || s->model->stacks.n < n_stacks)) {
        uint32_t stack;
        const int status = next_row(s, walk, &stack, err);
        if (status != FP_FULL) return status;
        const uint32_t row = fp_batch_sample(out, stack, walk->thread, walk->label, 0);
        for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + row] = walk->values[columns[k]];
    }
    return FP_FULL;
}
