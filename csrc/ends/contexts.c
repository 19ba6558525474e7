#include "ends/contexts.h"

#include "bridges/project/project_private.h"
#include "ends/contexts_private.h"

struct fp_contexts *fp_contexts_new(void) {
    struct fp_contexts *c = fp_made(sizeof *c);
    c->lanes = FP_CONTEXT_LANES;
    fp_table_init(&c->nodes, FP_CONTEXT_WIDTH);
    fp_context_labels_init(&c->labels);
    return c;
}

void fp_contexts_free(struct fp_contexts *c) {
    FP_CLEAR_TABLES(&c->nodes, &c->rebuilt);
    fp_context_labels_clear(&c->labels);
    fp_context_times_clear(&c->times);
    FP_FREE(c->own, c->cut, c->share, c->up, c->in_graph, c->function, c->thread, c->self, c);
}

/* The size of a node's values.  Never 0, so that contexts without values have a row, too. */
static size_t values_of(const struct fp_contexts *c) {
    return (c->n_values ? c->n_values : 1) * sizeof *c->own;
}

static int add_values(struct fp_err *err, int64_t *to, const int64_t *from, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (__builtin_add_overflow(to[k], from[k], &to[k])) return fp_fail_beyond(err, "a context", k, "2^63 - 1");
    return 0;
}

/* ---- adding stacks ---- */

enum { MOST_LISTED = 1 << 14 }; /* stacks of the lanes, so that deep ones do not exceed the limit much */

/* A key's stacks that have no node yet. */
struct context_lane {
    uint32_t from;        /* the stack above them; 0: the thread's root */
    uint32_t first, next; /* they are path[first .. next), from the leaf upwards; path[next - 1] comes next */
    uint32_t step;        /* functions of its frame that have a node */
    uint32_t node;        /* of the function above; 0: it waits for that of `from`, which another lane adds */
    uint32_t hash, row[FP_CONTEXT_WIDTH];
};

struct context_walk {
    uint32_t *node_of;   /* by stack: its node in the current thread; 0: a lane adds it */
    uint32_t *thread_of; /* by stack: 1 + the thread of node_of */
    uint32_t *path;
    uint32_t cap_path, n_path;
    struct context_lane lanes[FP_CONTEXT_LANES];
    uint32_t *node_of_key; /* by key of the projection, for labels and times; NULL: there are none */
};

/* Makes room for the values of all nodes. */
static void values_room(const struct fp_contexts *c, int64_t **values, uint32_t *cap) {
    fp_array_slowly(values, cap, c->nodes.n, values_of(c));
}

/* Makes room for `n_values` values of each node in one of the two arrays. */
static void widen(const struct fp_contexts *c, int64_t **values, uint32_t *cap, uint32_t n_values) {
    int64_t *wider = NULL;
    uint32_t wider_cap = 0;
    fp_array_zeroed(&wider, &wider_cap, c->nodes.n, n_values * sizeof *wider);
    for (uint32_t i = 0; c->n_values && i < c->nodes.n && i < *cap; i++)
        memcpy(wider + (size_t)i * n_values, *values + (size_t)i * c->n_values, c->n_values * sizeof *wider);
    free(*values);
    *values = wider;
    *cap = wider_cap;
}

void fp_contexts_widen(struct fp_contexts *c, uint32_t n_values) {
    if (n_values <= c->n_values) return;
    widen(c, &c->own, &c->cap_own, n_values);
    widen(c, &c->cut, &c->cap_cut, n_values);
    c->n_values = n_values;
}

/* Lists the stacks of a key that have no node yet. */
static void list_stacks(const struct fp_project *s, struct context_walk *w, struct context_lane *lane, uint32_t stack,
                        uint32_t thread) {
    *lane = (struct context_lane){.first = w->n_path};
    for (; stack && w->thread_of[stack] != thread + 1; stack = fp_project_parent(s, stack)) {
        fp_scratch_room(&w->path, &w->cap_path, (uint64_t)w->n_path + 1, sizeof *w->path);
        w->path[w->n_path++] = stack;
        w->thread_of[stack] = thread + 1;
        w->node_of[stack] = 0;
    }
    lane->from = stack;
    lane->next = w->n_path;
}

/* The function that a lane adds next: 1, or 0 if it waits or is done. */
static int prepare(const struct fp_contexts *c, const struct fp_project *s, struct context_walk *w,
                   struct context_lane *lane) {
    if (!lane->node) lane->node = w->node_of[lane->from];
    for (; lane->node && lane->next > lane->first; lane->next--, lane->step = 0) {
        const uint32_t stack = w->path[lane->next - 1];
        const uint32_t *chain = s->chain + s->chain_of[fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME]];
        if (lane->step < chain[0]) {
            lane->row[FP_CONTEXT_PARENT] = lane->node;
            lane->row[FP_CONTEXT_FUNCTION] = fp_table_row(&s->positions, chain[++lane->step])[FP_POSITION_FUNCTION];
            lane->hash = fp_table_hash(lane->row, FP_CONTEXT_WIDTH);
            fp_table_prefetch(&c->nodes, lane->hash);
            return 1;
        }
        w->node_of[stack] = lane->node;
    }
    return 0;
}

/* Adds the nodes of n keys of a thread. */
static void add_lanes(struct fp_contexts *c, const struct fp_project *s, struct context_walk *w, uint32_t n) {
    struct context_lane *ready[FP_CONTEXT_LANES];
    for (uint32_t n_ready = 1; n_ready;) {
        n_ready = 0;
        for (uint32_t k = 0; k < n; k++)
            if (prepare(c, s, w, &w->lanes[k])) ready[n_ready++] = &w->lanes[k];
        for (uint32_t k = 0; k < n_ready; k++)
            ready[k]->node = fp_table_intern_hashed(&c->nodes, ready[k]->row, ready[k]->hash);
    }
}

/* 1 + the last key. */
static size_t key_end(const struct fp_project *s) {
    return s->per_thread ? s->keys.n : (size_t)s->model->stacks.n + 1;
}

/* Adds the keys of a group, from c->next on.  FP_DONE, FP_FULL or a negative status.
 *
 * Contexts that the caller then drops are added again for later stacks that they call.  So if the contexts do not fit,
 * stacks are added depth first: only those of the current path are needed again. */
static int add_group(struct fp_contexts *c, struct fp_project *s, struct context_walk *w, uint32_t group, uint32_t most,
                     struct fp_err *err) {
    const uint32_t end = s->group_start[group + 1];
    if (c->next == end) return FP_DONE;
    if (c->is_large && c->next == s->group_start[group]) fp_project_depth_first(s, c->next, end);
    while (c->next < end) {
        if (c->nodes.n > most && !w->node_of_key) {
            if (!c->is_large) fp_project_depth_first(s, c->next, end);
            c->is_large = 1;
            return FP_FULL;
        }
        const uint32_t *keys = s->by_group + c->next;
        uint32_t n = w->n_path = 0;
        w->node_of[0] = fp_table_intern(&c->nodes, (uint32_t[]){0, 0, group + 1});
        for (; n < c->lanes && c->next + n < end && w->n_path < MOST_LISTED; n++)
            list_stacks(s, w, &w->lanes[n], fp_project_stack(s, keys[n]), group);
        add_lanes(c, s, w, n);
        values_room(c, &c->own, &c->cap_own);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t node = w->lanes[k].node;
            FP_TRY(add_values(err, c->own + (size_t)node * c->n_values, s->sums + (size_t)keys[k] * s->n_values,
                              s->n_values));
            if (w->node_of_key) w->node_of_key[keys[k]] = node;
        }
        c->next += n;
    }
    return FP_DONE;
}

/* Contexts get the labels that they are owed. */
static int pay_labels(struct fp_contexts *c, struct fp_err *err) {
    values_room(c, &c->own, &c->cap_own);
    values_room(c, &c->cut, &c->cap_cut);
    return fp_context_labels_owe(&c->labels, c->nodes.n, c->own, c->cut, c->n_values, err);
}

int fp_contexts_add(struct fp_contexts *c, struct fp_project *s, uint32_t most, struct fp_err *err) {
    fp_contexts_widen(c, s->n_values);
    if (c->labels.owed && pay_labels(c, err)) return FP_E_OVERFLOW;
    const size_t n_stacks = s->model->stacks.n;
    struct context_walk w = {.node_of = fp_scratch(n_stacks, sizeof *w.node_of)};
    w.thread_of = fp_scratch(n_stacks, sizeof *w.thread_of);
    int status = FP_DONE;
    if (c->labels.samples.n > 1 || c->times.n > c->times.moved)
        w.node_of_key = fp_scratch(key_end(s), sizeof *w.node_of_key);
    for (uint32_t group = 0; group < s->n_groups && status == FP_DONE; group++)
        status = add_group(c, s, &w, group, most, err);
    if (status != FP_FULL) c->next = 0;
    if (status == FP_DONE && w.node_of_key) {
        fp_context_times_add(&c->times, w.node_of_key);
        status = fp_context_labels_add(&c->labels, w.node_of_key, err);
    }
    return status;
}

/* ---- selection ---- */

static double size_of(int64_t value) {
    return value < 0 ? -(double)value : (double)value;
}

static uint32_t parent_of(const struct fp_contexts *c, uint32_t node) {
    return fp_table_row(&c->nodes, node)[FP_CONTEXT_PARENT];
}

/* Sets c->share, and gives each node its position in `own` and `cut`. */
static void find_shares(struct fp_contexts *c) {
    const uint32_t n = c->nodes.n, n_values = c->n_values;
    double *total = fp_scratch((size_t)n_values + 1, sizeof *total);
    uint32_t counted = 0;
    free(c->share);
    c->share = NULL;
    c->share = fp_have(calloc(n, sizeof *c->share));
    values_room(c, &c->own, &c->cap_own);
    values_room(c, &c->cut, &c->cap_cut);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n_values; k++) {
            const size_t at = (size_t)i * n_values + k;
            total[k] += size_of(c->own[at]) + size_of(c->cut[at]);
        }
    for (uint32_t k = 0; k < n_values; k++) counted += total[k] > 0;
    /* a node is added after its caller's */
    for (uint32_t i = n - 1; i; i--) {
        for (uint32_t k = 0; k < n_values; k++) {
            const size_t at = (size_t)i * n_values + k;
            if (total[k] > 0) c->share[i] += (size_of(c->own[at]) + size_of(c->cut[at])) / total[k] / counted;
        }
        c->share[parent_of(c, i)] += c->share[i];
    }
    fp_scratch_free(total);
}

int fp_contexts_end(struct fp_contexts *c, struct fp_err *err) {
    c->n_all += c->nodes.n - 1;
    if (!c->labels.differ) c->labels.owed = c->labels.only;
    if (c->labels.owed && pay_labels(c, err)) return FP_E_OVERFLOW;
    find_shares(c);
    uint32_t *root = fp_scratch(c->nodes.n, sizeof *root);
    for (uint32_t i = 1; i < c->nodes.n; i++) root[i] = parent_of(c, i) ? root[parent_of(c, i)] : i;
    fp_context_times_order(&c->times, root);
    fp_scratch_free(root);
    fp_table_seal(&c->nodes);
    fp_trim();
    return FP_DONE;
}

/* Finds the item with k larger ones among `n`, by Hoare's selection: afterwards no item before v[k] is smaller, and
 * none after it is larger. */
static double select_kth(double *v, uint32_t n, uint32_t k) {
    uint32_t low = 0, high = n - 1; /* v[k] is among these */
    while (low < high) {
        const double pivot = v[low + (high - low) / 2];
        uint32_t i = low, j = high;
        for (;;) {
            while (v[i] > pivot) i++;
            while (v[j] < pivot) j--;
            if (i >= j) break;
            const double moved = v[i];
            v[i++] = v[j];
            v[j--] = moved;
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

/* Sets `above` so that at most `most` contexts have a larger share. */
static void share_above(const struct fp_contexts *c, uint32_t most, double *above) {
    *above = -1;
    if (c->nodes.n - 1 <= most) return;
    double *shares = fp_scratch(c->nodes.n - 1, sizeof *shares);
    memcpy(shares, c->share + 1, (c->nodes.n - 1) * sizeof *shares);
    *above = select_kth(shares, c->nodes.n - 1, most);
    fp_scratch_free(shares);
}

/* Adds the costs of dropped nodes to the `cut` of their nearest kept callers.  Dropped nodes are not read again. */
static int move_up(struct fp_contexts *c, const uint8_t *kept, struct fp_err *err) {
    const uint32_t n_values = c->n_values;
    for (uint32_t i = c->nodes.n - 1; i; i--) {
        if (kept[i]) continue;
        const uint32_t parent = parent_of(c, i);
        int64_t *to = c->cut + (size_t)parent * n_values;
        const int64_t *own = c->own + (size_t)i * n_values, *cut = c->cut + (size_t)i * n_values;
        FP_TRY(add_values(err, to, own, n_values));
        FP_TRY(add_values(err, to, cut, n_values));
    }
    return 0;
}

static int has_cut(const struct fp_contexts *c, uint32_t node) {
    for (uint32_t k = 0; k < c->n_values; k++)
        if (c->cut[(size_t)node * c->n_values + k]) return 1;
    return 0;
}

static uint32_t emit(struct fp_contexts *c, uint32_t at, uint32_t parent, uint32_t function, uint32_t thread,
                     const int64_t *values) {
    c->up[at] = parent ? at + 1 - parent : 0;
    c->function[at] = function;
    c->thread[at] = thread;
    for (uint32_t k = 0; k < c->n_values; k++) c->self[(size_t)k * c->n + at] = values[k];
    return at + 1;
}

/* Fills the columns of labels, and the contexts of samples with times.  `place`: 1 + position of each node that is
 * kept. */
static int fill_labels(struct fp_contexts *c, const uint8_t *kept, const uint8_t *cuts, const uint32_t *place,
                       struct fp_err *err) {
    const uint32_t n_nodes = c->labels.keys.n > 1 || c->times.n ? c->nodes.n : 0;
    uint32_t *where =
        fp_scratch((size_t)2 * n_nodes + 1, sizeof *where); /* pairs: of a node, of the nodes cut below it */
    if (n_nodes && cuts[0]) where[0] = where[1] = c->n - 1;
    for (uint32_t i = 1; i < n_nodes; i++) {
        where[2 * i] = where[2 * i + 1] = kept[i] ? place[i] - 1 : where[2 * parent_of(c, i) + 1];
        if (cuts[i]) where[2 * i + 1] = place[i];
    }
    fp_context_times_fill(&c->times, where);
    const int status = fp_context_labels_fill(&c->labels, where, c->self, c->n_values, c->n, err);
    fp_scratch_free(where);
    return status;
}

/* By kept node: whether something was cut below it that has a cost, or a label set whose costs add up to 0 with those
 * of others.  Node 0, which is no context: also whether a sample with a time was cut there, which must have a context.
 */
static uint8_t *find_cuts(const struct fp_contexts *c, const uint8_t *kept) {
    const uint32_t n = c->nodes.n;
    uint8_t *found = fp_scratch(n, 1);
    uint32_t *nearest = fp_scratch(n, sizeof *nearest); /* by node: itself or its nearest caller that is kept */
    for (uint32_t i = 0; i < n; i++) {
        nearest[i] = kept[i] ? i : nearest[parent_of(c, i)];
        found[i] = kept[i] && has_cut(c, i);
    }
    for (uint32_t key = 1; key < c->labels.keys.n; key++) {
        const uint32_t at = fp_table_row(&c->labels.keys, key)[0];
        if (at % 2 || at < 2 || !kept[at / 2]) found[nearest[at / 2]] = 1;
    }
    for (uint32_t i = 0; i < c->times.n; i++)
        if (!nearest[c->times.samples[i].place / 2]) found[0] = 1;
    fp_scratch_free(nearest);
    return found;
}

static int compare_words(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Lists the kept contexts by caller: its first one in child, the next of each in sibling.  They are in order of
 * functions, because that of nodes depends on when stacks were dropped and added again.  Returns the number of
 * contexts, including those that stand for what was cut. */
static uint64_t list_children(const struct fp_contexts *c, const uint8_t *kept, const uint8_t *cuts, uint64_t *order,
                              uint32_t *child, uint32_t *sibling) {
    uint64_t n = cuts[0], n_kept = 0;
    for (uint32_t i = 1; i < c->nodes.n; i++)
        if (kept[i]) order[n_kept++] = (uint64_t)fp_table_row(&c->nodes, i)[FP_CONTEXT_FUNCTION] << 32 | i;
    qsort(order, n_kept, sizeof *order, compare_words);
    for (uint64_t k = n_kept; k-- > 0;) {
        const uint32_t i = (uint32_t)order[k];
        n += 1 + (uint64_t)cuts[i];
        sibling[i] = child[parent_of(c, i)];
        child[parent_of(c, i)] = i;
    }
    return n;
}

static void free_columns(struct fp_contexts *c) {
    FP_FREE(c->up, c->function, c->thread, c->self);
    c->n = 0;
    c->up = c->function = c->thread = NULL;
    c->self = NULL;
}

/* Fills the columns, each context before those that it calls. */
static int fill(struct fp_contexts *c, const uint8_t *kept, struct fp_err *err) {
    const uint32_t n_nodes = c->nodes.n;
    uint32_t *child = fp_scratch(n_nodes, sizeof *child), *sibling = fp_scratch(n_nodes, sizeof *sibling);
    uint32_t *place = fp_scratch(n_nodes, sizeof *place); /* 1 + position of each node */
    uint8_t *cuts = find_cuts(c, kept);
    uint64_t *order = fp_scratch(n_nodes, sizeof *order);
    const uint64_t n = list_children(c, kept, cuts, order, child, sibling);
    fp_scratch_free(order);
    if (n > UINT32_MAX) fp_escape();
    c->n = (uint32_t)n;
    c->up = fp_have(malloc((size_t)(n + 1) * sizeof *c->up));
    c->function = fp_have(malloc((size_t)(n + 1) * sizeof *c->function));
    c->thread = fp_have(malloc((size_t)(n + 1) * sizeof *c->thread));
    c->self = fp_have(malloc((size_t)(n + 1) * values_of(c)));
    uint32_t at = 0, thread = 0;
    for (uint32_t i = child[0]; i;) {
        const uint32_t *row = fp_table_row(&c->nodes, i);
        const uint32_t parent = row[FP_CONTEXT_PARENT];
        if (!parent) thread = row[FP_CONTEXT_THREAD] - 1;
        at = place[i] =
            emit(c, at, parent ? place[parent] : 0, row[FP_CONTEXT_FUNCTION], thread, c->own + (size_t)i * c->n_values);
        if (cuts[i]) at = emit(c, at, place[i], 0, thread, c->cut + (size_t)i * c->n_values);
        if (child[i]) {
            i = child[i];
            continue;
        }
        while (i && !sibling[i]) i = parent_of(c, i);
        if (i) i = sibling[i];
    }
    if (cuts[0]) emit(c, at, 0, 0, FP_NO_ID, c->cut);
    const int status = fill_labels(c, kept, cuts, place, err);
    fp_scratch_free(child);
    return status;
}

/* Marks the contexts to keep with 1; sets `above` as share_above does. */
static uint8_t *choose(const struct fp_contexts *c, double least, uint32_t most, double *above) {
    uint8_t *kept = fp_scratch(c->nodes.n, 1);
    share_above(c, most, above);
    kept[0] = 1;
    for (uint32_t i = 1; i < c->nodes.n; i++) kept[i] = c->share[i] >= least && c->share[i] > *above;
    return kept;
}

int fp_contexts_cut(struct fp_contexts *c, double least, uint32_t most, struct fp_err *err) {
    const size_t nbytes = c->nodes.n * values_of(c);
    double above;
    free_columns(c);
    uint8_t *kept = choose(c, least, most, &above);
    int64_t *const before = fp_scratch(nbytes, 1); /* because the next call may keep these */
    memcpy(before, c->cut, nbytes);
    int status = move_up(c, kept, err);
    if (!status) status = fill(c, kept, err);
    memcpy(c->cut, before, nbytes);
    fp_scratch_free(kept);
    fp_trim();
    return status;
}

/* Replaces the table of nodes by one of the kept nodes, in the same order. */
static int rebuild(struct fp_contexts *c, const uint8_t *kept, struct fp_err *err) {
    struct fp_table *nodes = &c->rebuilt;
    uint32_t *moved = fp_scratch(c->nodes.n, sizeof *moved);
    fp_table_clear(nodes);
    fp_table_init(nodes, FP_CONTEXT_WIDTH);
    const size_t width = c->n_values * sizeof *c->own;
    for (uint32_t i = 1; i < c->nodes.n; i++) {
        const uint32_t *row = fp_table_row(&c->nodes, i);
        if (!kept[i]) {
            moved[i] = moved[row[FP_CONTEXT_PARENT]];
            continue;
        }
        const uint32_t to = fp_table_intern(
            nodes, (uint32_t[]){moved[row[FP_CONTEXT_PARENT]], row[FP_CONTEXT_FUNCTION], row[FP_CONTEXT_THREAD]});
        moved[i] = to;
        memmove(c->own + (size_t)to * c->n_values, c->own + (size_t)i * c->n_values, width);
        memmove(c->cut + (size_t)to * c->n_values, c->cut + (size_t)i * c->n_values, width);
    }
    fp_context_times_move(&c->times, moved, kept);
    const int status = fp_context_labels_move(&c->labels, moved, kept, err);
    fp_scratch_free(moved);
    if (status != FP_DONE) return status;
    memset(c->own + (size_t)nodes->n * c->n_values, 0, (c->nodes.n - nodes->n) * width);
    memset(c->cut + (size_t)nodes->n * c->n_values, 0, (c->nodes.n - nodes->n) * width);
    c->n_all += c->nodes.n - nodes->n;
    fp_table_clear(&c->nodes);
    c->nodes = *nodes;
    *nodes = (struct fp_table){0};
    return FP_DONE;
}

int fp_contexts_shrink(struct fp_contexts *c, uint32_t most, struct fp_err *err) {
    find_shares(c);
    uint8_t *kept = choose(c, 0, most, &c->above);
    const int status = move_up(c, kept, err);
    return status ? status : rebuild(c, kept, err);
}
