#include "bridges/budget/fit_stacks.h"

#include <errno.h>
#include <math.h>

#include "bridges/budget/bins.h"
#include "core/memory.h"

/* Upper bounds.  PACKED: a packed row without its values; NUMBER: one value. */
enum { PACKED = 64, NUMBER = 10 };

enum { ROW = 16 }; /* about as many nodes are between those of two rows */

/* A share of 1.  Ranks distinguish smaller shares from 0 up to this. */
static const double WHOLE = (double)((uint64_t)1 << 48);

struct fp_fit_stacks_stack {
    double share; /* of its rows; later also of those below it */
    uint32_t parent, frame, depth;
    union {
        uint32_t rows; /* with this stack itself */
        uint32_t to;   /* after a cut: its replacement + 1; 0: not known yet */
    };
    uint16_t rank;
    uint8_t any, inner; /* it or a stack below has rows; a stack below has rows */
    uint8_t counted;    /* counted as pruned */
};

/* ---- the tree ---- */

static size_t nodes_bytes(const struct fp_fit_stacks *t) {
    return (size_t)t->cap_of * sizeof *t->of;
}

static void nodes_room(struct fp_fit_stacks *t, uint64_t n) {
    if (n <= t->cap_of) return;
    const uint64_t cap = n + n / 4 + 64;
    if (cap >= FP_NO_ID || cap > SIZE_MAX / sizeof *t->of) fp_escape();
    const size_t nbytes = (size_t)cap * sizeof *t->of;
    void *const of = t->file ? fp_file_grow(t->file - 1, FP_FILE_PART, t->of, nodes_bytes(t), nbytes)
                             : fp_grow(t->of, nodes_bytes(t), nbytes);
    if (!of && t->file) t->file_error = errno;
    t->of = fp_have(of);
    t->cap_of = (uint32_t)cap;
}

static void release_nodes(const struct fp_fit_stacks *t) {
    (t->file ? fp_file_release : fp_release)(t->of, nodes_bytes(t));
}

/* Call it where n nodes next to each other are used: seldom enough to cost nothing, the memory of those before is given
 * back. */
static inline void used(struct fp_fit_stacks *t, uint32_t n) {
    enum { MOST = 1 << 17 };
    if (FP_LIKELY((t->used += n) < MOST)) return;
    t->used = 0;
    if (t->file) fp_file_rest(t->of, nodes_bytes(t));
}

void fp_fit_stacks_to_file(struct fp_fit_stacks *t, int fd) {
    void *const of = fp_file_copy(fd, FP_FILE_PART, t->of, t->n_of * sizeof *t->of, nodes_bytes(t));
    if (!of) return;
    release_nodes(t);
    t->of = of;
    t->file = fd + 1;
}

static inline uint32_t node_of(const struct fp_fit_stacks *t, uint32_t stack) {
    return stack && stack <= t->n_same ? t->path[stack - 1] : stack ? stack + t->shift : 0;
}

/* Sets the path to a node.  How many nodes of the path before it stay. */
static uint32_t lead_to(struct fp_fit_stacks *t, uint32_t node) {
    const uint32_t n = t->of[node].depth;
    fp_array_room(&t->path, &t->cap_path, n, sizeof *t->path);
    uint32_t at = n;
    for (; at && (at > t->n_path || t->path[at - 1] != node); node = t->of[node].parent) t->path[--at] = node;
    t->n_path = n;
    return at;
}

/* The stacks of a walk were removed: those that lead to its next row are added again. */
static void begin_round(struct fp_fit_stacks *t) {
    const struct fp_table *const stacks = &t->model->stacks;
    t->n_path = t->n_same = 0;
    lead_to(t, t->last);
    for (; t->n_same < t->n_path && t->n_same + 1 < stacks->n; t->n_same++) {
        const uint32_t *const row = fp_table_row(stacks, t->n_same + 1);
        if (row[FP_STACK_PARENT] != t->n_same || row[FP_STACK_FRAME] != t->of[t->path[t->n_same]].frame) break;
    }
    t->n_emptied = t->model->n_emptied;
    t->is_renewed |= t->n_of > 1;
    t->n_seen = t->n_same + 1;
    t->shift = t->n_of - t->n_seen; /* modulo 2^32 */
}

/* Takes the model's new stacks as nodes. */
static void take_stacks(struct fp_fit_stacks *t) {
    const struct fp_table *const stacks = &t->model->stacks;
    if (t->n_emptied != t->model->n_emptied) begin_round(t);
    nodes_room(t, (uint64_t)t->n_of + stacks->n - t->n_seen);
    for (; t->n_seen < stacks->n; t->n_seen++, used(t, 1)) {
        const uint32_t *const row = fp_table_row(stacks, t->n_seen);
        const uint32_t parent = node_of(t, row[FP_STACK_PARENT]);
        const uint32_t depth = t->of[parent].depth + 1;
        t->of[t->n_of++] = (struct fp_fit_stacks_stack){.parent = parent, .frame = row[FP_STACK_FRAME], .depth = depth};
    }
}

struct fp_fit_stacks *fp_fit_stacks_new(struct fp_model *model, int by_thread) {
    struct fp_fit_stacks *t = fp_made(sizeof *t);
    t->model = model;
    t->by_thread = by_thread;
    t->n_of = t->n_seen = 1;
    t->n_emptied = model->n_emptied;
    nodes_room(t, 1);
    t->of[0] = (struct fp_fit_stacks_stack){0};
    return t;
}

void fp_fit_stacks_free(struct fp_fit_stacks *t) {
    for (uint32_t i = 0; i < t->n_groups; i++) fp_buf_free(&t->groups[i].packed);
    release_nodes(t);
    FP_FREE(t->groups, t->group_of, t->path, t->ids, t);
}

/* ---- packing rows ---- */

static struct fp_fit_stacks_group *group_of(struct fp_fit_stacks *t, uint32_t thread) {
    if (!t->by_thread) thread = 0;
    if (!*FP_AT(t->group_of, t->cap_group_of, thread)) {
        FP_PUSH(t->groups, t->n_groups, t->cap_groups) = (struct fp_fit_stacks_group){.thread = thread};
        t->group_of[thread] = t->n_groups;
    }
    return &t->groups[t->group_of[thread] - 1];
}

int fp_fit_stacks_put(struct fp_fit_stacks *t, const struct fp_batch *b, struct fp_err *err) {
    if (b->n && t->is_walk) take_stacks(t);
    if (!t->is_walk) t->n_emptied = t->model->n_emptied; /* before the first row only */
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t node = t->last = node_of(t, b->stack[i]);
        struct fp_fit_stacks_group *const g = group_of(t, b->thread[i]);
        fp_buf_reserve(&g->packed, PACKED + NUMBER * (size_t)b->n_values);
        if (t->n_groups > FP_FIT_STACKS_GROUPS) return fp_fail_beyond(err, "the number of files", FP_NO_COLUMN, "500");
        struct fp_fit_stacks_state *const s = &g->state;
        const int other = !s->begun || s->part != b->part || s->n_values != b->n_values || s->thread != b->thread[i] ||
                          s->label != b->label[i];
        uint8_t *const from = g->packed.p + g->packed.n;
        uint8_t *to = fp_varint(from, (uint64_t)node << 1 | (uint64_t)other);
        if (other) {
            to = fp_varint(to, b->part);
            to = fp_varint(to, b->n_values);
            to = fp_varint(to, b->thread[i]);
            to = fp_varint(to, b->label[i]);
        }
        to = fp_varint(to, fp_zig(b->time[i] - s->time));
        for (uint32_t k = 0; k < b->n_values; k++)
            to = fp_varint(to, fp_zig((uint64_t)b->values[(size_t)k * b->cap + i]));
        *s = (struct fp_fit_stacks_state){b->time[i], b->part, b->n_values, b->thread[i], b->label[i], 1};
        g->timed += b->time[i] != 0;
        g->packed.n += (size_t)(to - from);
        t->packed += (size_t)(to - from);
    }
    return FP_DONE;
}

void fp_fit_stacks_begin(struct fp_fit_stacks *t, uint32_t group) {
    t->groups[group].state = (struct fp_fit_stacks_state){0};
}

int fp_fit_stacks_take(struct fp_fit_stacks *t, uint32_t group, struct fp_window *in, struct fp_batch *out) {
    struct fp_fit_stacks_state *const s = &t->groups[group].state;
    while (in->pos < in->n) {
        if (out->n == out->cap) return FP_FULL;
        const size_t from = in->pos;
        const struct fp_fit_stacks_state before = *s;
        const uint64_t stack = fp_varint_next(in);
        if (stack & 1) {
            s->part = (uint32_t)fp_varint_next(in);
            s->n_values = (uint32_t)fp_varint_next(in);
            s->thread = (uint32_t)fp_varint_next(in);
            s->label = (uint32_t)fp_varint_next(in);
        }
        if (out->n && (out->part != s->part || out->n_values != s->n_values)) {
            in->pos = from;
            *s = before;
            return FP_FULL;
        }
        if (out->n_values != s->n_values) fp_batch_set_values(out, s->n_values);
        s->time += fp_zag(fp_varint_next(in));
        out->part = s->part;
        const uint32_t row = fp_batch_sample(out, (uint32_t)(stack >> 1), s->thread, s->label, s->time);
        for (uint32_t k = 0; k < s->n_values; k++)
            out->values[(size_t)k * out->cap + row] = (int64_t)fp_zag(fp_varint_next(in));
    }
    return FP_DONE;
}

/* ---- shares ---- */

void fp_fit_stacks_total(const struct fp_batch *b, const uint32_t *columns, double *totals) {
    for (uint32_t k = 0; k < b->n_values; k++)
        for (uint32_t i = 0; i < b->n; i++) totals[columns[k]] += fabs((double)b->values[(size_t)k * b->cap + i]);
}

int fp_fit_stacks_weigh_begin(struct fp_fit_stacks *t) {
    if (t->n_of == 1) take_stacks(t);
    for (uint32_t i = 0; i < t->n_of; i++, used(t, 1)) {
        const struct fp_fit_stacks_stack was = t->of[i];
        t->of[i] = (struct fp_fit_stacks_stack){.parent = was.parent, .frame = was.frame, .depth = was.depth};
    }
    return 0;
}

void fp_fit_stacks_weigh(struct fp_fit_stacks *t, const struct fp_batch *b, const uint32_t *columns,
                         const double *totals, uint32_t n) {
    uint32_t counted = 0;
    for (uint32_t k = 0; k < n; k++) counted += totals[k] > 0;
    for (uint32_t i = 0; i < b->n; i++, used(t, ROW)) {
        struct fp_fit_stacks_stack *const of = &t->of[b->stack[i]];
        of->rows += of->rows < UINT32_MAX;
        for (uint32_t k = 0; k < b->n_values; k++) {
            const double total = totals[columns[k]];
            if (total > 0) of->share += fabs((double)b->values[(size_t)k * b->cap + i]) / total / counted;
        }
    }
}

void fp_fit_stacks_weighed(struct fp_fit_stacks *t, uint64_t stack, uint64_t row, uint64_t frame) {
    memset(t->bytes, 0, sizeof t->bytes);
    for (uint32_t i = t->n_of; i-- > 1; used(t, 1)) {
        struct fp_fit_stacks_stack *const of = &t->of[i], *const caller = &t->of[of->parent];
        of->any |= of->rows > 0;
        caller->share += of->share;
        caller->any |= of->any;
        caller->inner |= of->any;
    }
    for (uint32_t i = 1; i < t->n_of; i++, used(t, 1)) {
        struct fp_fit_stacks_stack *const of = &t->of[i];
        of->rank = (uint16_t)fp_bins_of((uint64_t)((of->share < 1 ? of->share : 1) * WHOLE));
        /* one more row for its direct children, if pruned */
        if (of->any) t->bytes[of->rank] += stack + ((uint64_t)of->rows + of->inner) * (row + frame * of->depth);
    }
}

double fp_fit_stacks_share(uint32_t rank) {
    return (double)fp_bins_begin(rank) / WHOLE;
}

/* ---- returning rows ---- */

int fp_fit_stacks_cut(struct fp_fit_stacks *t, uint32_t least) {
    struct fp_model *const m = t->model;
    t->pruned = fp_model_name_frame(m, fp_strings_intern(&m->strings, "[pruned]", 8));
    t->least = least;
    t->stacks = 0;
    t->n_path = 0;
    for (uint32_t i = 0; i < t->n_of; i++, used(t, 1)) t->of[i].to = t->of[i].counted = 0;
    return 0;
}

/* The child [pruned] of a stack that stays. */
static uint32_t pruned_under(struct fp_fit_stacks *t, uint32_t stack) {
    if (stack && fp_table_row(&t->model->stacks, stack)[FP_STACK_FRAME] == t->pruned) return stack;
    return fp_model_stack(t->model, stack, t->pruned);
}

static inline int stays(const struct fp_fit_stacks *t, uint32_t node) {
    return !node || t->of[node].rank >= t->least;
}

/* The stack of a node, or its replacement, where nodes are the model's stacks. */
static uint32_t replaced(struct fp_fit_stacks *t, uint32_t node) {
    uint32_t at = node;
    if (stays(t, node)) return node;
    while (!stays(t, at) && !t->of[at].to) at = t->of[at].parent;
    const uint32_t to = stays(t, at) ? pruned_under(t, at) : t->of[at].to - 1;
    for (uint32_t i = node; i != at; i = t->of[i].parent) t->of[i].to = to + 1;
    return to;
}

/* The same, added to the model.  Most nodes are near the last one. */
static uint32_t added(struct fp_fit_stacks *t, uint32_t node) {
    if (t->n_emptied != t->model->n_emptied) t->n_path = 0;
    t->n_emptied = t->model->n_emptied;
    uint32_t at = lead_to(t, node), to = at ? t->ids[at - 1] : 0;
    fp_array_room(&t->ids, &t->cap_ids, t->n_path, sizeof *t->ids);
    for (; at < t->n_path; at++, used(t, 1)) {
        const uint32_t next = t->path[at];
        if (stays(t, next))
            to = fp_model_stack(t->model, to, t->of[next].frame);
        else if (stays(t, at ? t->path[at - 1] : 0))
            to = pruned_under(t, to);
        t->ids[at] = to;
    }
    return to;
}

int fp_fit_stacks_batch(struct fp_fit_stacks *t, struct fp_batch *b, const uint32_t *columns, double *pruned) {
    for (uint32_t i = 0; i < b->n; i++, used(t, ROW)) {
        const uint32_t node = b->stack[i];
        b->stack[i] = t->is_renewed ? added(t, node) : replaced(t, node);
        struct fp_fit_stacks_stack *const of = &t->of[node];
        if (stays(t, node) || (of->frame == t->pruned && stays(t, of->parent))) continue;
        t->stacks += !of->counted;
        of->counted = 1;
        for (uint32_t k = 0; k < b->n_values; k++)
            pruned[columns[k]] += fabs((double)b->values[(size_t)k * b->cap + i]);
    }
    return 0;
}
