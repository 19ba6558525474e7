#include "bridges/sums/walk.h"

__extension__ typedef __int128 int128;

struct fp_walk_sum { /* hides the type from the header */
    int128 sum;
};

struct fp_walk *fp_walk_new(uint32_t n_runs, uint32_t n_values) {
    struct fp_walk *w = fp_made(sizeof *w);
    w->n_runs = n_runs;
    w->n_values = n_values;
    w->to_refill = FP_MERGE_NONE;
    w->runs = fp_have(calloc((size_t)n_runs + 1, sizeof *w->runs));
    w->values = fp_have(calloc((size_t)n_values + 1, sizeof *w->values));
    w->sums = fp_have(calloc((size_t)n_values + 1, sizeof *w->sums));
    w->heads = fp_have(malloc(((size_t)n_runs + 1) * sizeof *w->heads));
    fp_array_room(&w->members, &w->cap_members, (uint64_t)n_runs + 1, sizeof *w->members);
    fp_array_room(&w->start, &w->cap_start, 2, sizeof *w->start);
    for (uint32_t i = 0; i < n_runs; i++) {
        w->runs[i].width = FP_WALK_HEAD + n_values;
        w->members[i] = i;
        w->heads[i].depth = UINT32_MAX;
    }
    w->start[0] = 0;
    w->start[1] = n_runs;
    return w;
}

void fp_walk_free(struct fp_walk *w) {
    FP_FREE(w->runs, w->values, w->sums, w->heads, w->members, w->start, w);
}

/* The next record of a run, or NULL if it must be refilled. */
static inline const uint64_t *next_of(const struct fp_run *run) {
    const size_t left = run->n - run->pos;
    const uint64_t *p = run->p + run->pos;
    return left && (left >= run->width || !(*p & FP_WALK_ROW)) ? p : NULL;
}

static inline uint32_t depth_of(uint64_t word) {
    return (uint32_t)(word >> 32) & INT32_MAX;
}

/* The rank of an id, then the id, which is not FP_NO_ID. */
static inline uint64_t order_of(const struct fp_walk_ranks *ranks, uint32_t id) {
    return ((uint64_t)fp_walk_rank_of(ranks, id) << 32 | id) + 1;
}

/* Whether row a comes before row b of the same stack. */
static int comes_before(const struct fp_walk *w, const uint64_t *a, const uint64_t *b) {
    if (a[0] != b[0]) return order_of(&w->labels, (uint32_t)a[0]) < order_of(&w->labels, (uint32_t)b[0]);
    return order_of(&w->threads, (uint32_t)a[1]) < order_of(&w->threads, (uint32_t)b[1]);
}

/* Notes the next record of a run.  It is compared once for each record of the other runs in the meantime. */
static inline void look(struct fp_walk *w, uint32_t run) {
    const uint64_t *record = next_of(&w->runs[run]);
    struct fp_walk_head *head = &w->heads[run];
    head->depth = record ? depth_of(*record) : UINT32_MAX;
    head->key = !record || *record & FP_WALK_ROW ? 0 : order_of(&w->frames, (uint32_t)*record);
}

static inline int is_same(const uint64_t *a, const uint64_t *b) {
    return a[0] == b[0] && (!(a[0] & FP_WALK_ROW) || a[1] == b[1]);
}

/* Writes as much of the sums as fits to the values.  FP_FULL or FP_E_OVERFLOW. */
static int give(struct fp_walk *w, struct fp_err *err) {
    w->has_rest = 0;
    for (uint32_t k = 0; k < w->n_values; k++) {
        const int128 sum = w->sums[k].sum;
        const int128 part = sum < INT64_MIN ? INT64_MIN : sum > INT64_MAX ? INT64_MAX : sum;
        if (part != sum && !w->split) return fp_fail_beyond(err, "the sum of a counter", k, "2^63 - 1");
        w->values[k] = (int64_t)part;
        w->sums[k].sum = sum - part;
        w->has_rest |= part != sum;
    }
    return FP_FULL;
}

static void add_row(struct fp_walk *w, const uint64_t *record, uint32_t width) {
    for (uint32_t k = FP_WALK_HEAD; k < width; k++) w->sums[k - FP_WALK_HEAD].sum += (int64_t)record[k];
}

/* Begins the sum of the rows that are equal to `first`. */
static void begin_row(struct fp_walk *w, const uint64_t *first) {
    w->is_row = w->has_sum = 1;
    w->depth = w->level;
    w->label = (uint32_t)first[0];
    w->thread = (uint32_t)first[1];
    for (uint32_t k = 0; k < w->n_values; k++) w->sums[k].sum = 0;
}

/* Adds the equal rows of all walks of the depth.  A walk has several of a sum that was split.  FP_MORE or as give. */
static int take_rows(struct fp_walk *w, struct fp_err *err) {
    const uint64_t head[FP_WALK_HEAD] = {FP_WALK_ROW | (uint64_t)w->depth << 32 | w->label, w->thread};
    for (uint32_t i = w->start[w->level]; i < w->start[w->level + 1]; i++) {
        struct fp_run *run = &w->runs[w->members[i]];
        const uint64_t *record;
        while ((record = next_of(run)) && is_same(record, head)) {
            add_row(w, record, run->width);
            run->pos += run->width;
        }
        look(w, w->members[i]);
        if (record || run->eof) continue;
        w->to_refill = w->members[i];
        return FP_MORE;
    }
    w->has_sum = 0;
    return give(w, err);
}

/* Goes down to the frame with this key, with the walks that have it. */
static int take_frame(struct fp_walk *w, uint64_t key) {
    const uint32_t from = w->start[w->level], end = w->start[w->level + 1];
    uint32_t n = end;
    fp_array_room(&w->start, &w->cap_start, (uint64_t)w->level + 3, sizeof *w->start);
    fp_array_room(&w->members, &w->cap_members, 2 * (uint64_t)end - from, sizeof *w->members);
    for (uint32_t i = from; i < end; i++) {
        const uint32_t run = w->members[i];
        if (w->heads[run].depth != w->level || w->heads[run].key != key) continue;
        w->runs[run].pos++;
        look(w, run);
        w->members[n++] = run;
    }
    w->is_row = 0;
    w->depth = w->level++;
    w->frame = (uint32_t)(key - 1);
    w->start[w->level + 1] = n;
    return FP_FULL;
}

int fp_walk_next(struct fp_walk *w, struct fp_err *err) {
    if (w->has_rest) return give(w, err);
    while (!w->has_sum) {
        uint64_t least = UINT64_MAX;
        const uint64_t *row = NULL;
        for (uint32_t i = w->start[w->level]; i < w->start[w->level + 1]; i++) {
            const uint32_t run = w->members[i];
            const struct fp_walk_head *head = &w->heads[run];
            if (head->depth == UINT32_MAX) look(w, run); /* it may have been refilled */
            if (head->depth != w->level) {
                if (head->depth != UINT32_MAX || w->runs[run].eof) continue;
                w->to_refill = run;
                return FP_MORE;
            }
            if (!head->key && (!row || comes_before(w, next_of(&w->runs[run]), row))) row = next_of(&w->runs[run]);
            if (head->key < least) least = head->key;
        }
        w->to_refill = FP_MERGE_NONE;
        if (!row && least != UINT64_MAX) return take_frame(w, least);
        if (row)
            begin_row(w, row);
        else if (!w->level)
            return FP_DONE;
        else
            w->level--;
    }
    w->to_refill = FP_MERGE_NONE;
    return take_rows(w, err);
}

int fp_walk_pull(struct fp_walk *w, uint64_t *to, size_t n, size_t *got) {
    struct fp_err err;
    int status = FP_FULL;
    w->split = 1;
    for (*got = 0; n - *got >= FP_WALK_HEAD + w->n_values && (status = fp_walk_next(w, &err)) == FP_FULL;) {
        uint64_t *record = to + *got;
        record[0] = (uint64_t)w->depth << 32 | (w->is_row ? FP_WALK_ROW | w->label : w->frame);
        *got += w->is_row ? FP_WALK_HEAD + w->n_values : 1;
        if (!w->is_row) continue;
        record[1] = w->thread;
        if (w->n_values) memcpy(record + FP_WALK_HEAD, w->values, w->n_values * sizeof *record);
    }
    return status;
}
