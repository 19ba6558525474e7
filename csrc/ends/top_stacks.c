#include "bridges/project/project_private.h"
#include "ends/top.h"

/* A frame of many inlined functions: the classes of its items, each once.  Items of a class are in the same frames, so
 * that they are active together and have the same totals, which are added up once: else 100,000 inlined functions would
 * take as long in each of 100,000 stacks. */
struct long_frame {
    uint32_t first, n; /* in stack_walk.found */
    uint32_t active;   /* how often the frame is on the stack */
};
enum { MANY_POSITIONS = 16 };

struct stack_walk {
    const struct fp_top_column *columns;
    uint32_t n_columns;
    int calls;
    uint32_t failed; /* the sum that does not fit */
    int64_t *total;  /* of each column, by depth: the sum so far of the samples that end there or below */
    uint32_t cap_depth;
    uint32_t *item;    /* by position */
    uint32_t *class;   /* by item; without long frames the item itself */
    uint32_t *active;  /* by class: how often it is on the stack */
    uint8_t *seen;     /* by class: whether it was */
    int64_t *sums;     /* of each column, by class: its totals, one within itself counted once */
    uint32_t *long_of; /* by frame: its row of long_frames + 1; 0: none */
    struct long_frame *long_frames;
    uint32_t n_long;
    uint32_t *found, n_found, cap_found; /* classes */
};

static int beyond(struct fp_err *err, int64_t column) {
    return fp_fail_beyond(err, "the sum of samples", column, "2^63 - 1");
}

/* The item of each position. */
static uint32_t *items(const struct fp_project *s, int by, struct fp_table *places) {
    uint32_t *found = fp_scratch(s->positions.n, sizeof *found);
    for (uint32_t i = 1; i < s->positions.n; i++) { /* row 0 of a table is unused */
        const uint32_t *p = fp_table_row(&s->positions, i), function = p[FP_POSITION_FUNCTION];
        if (by == FP_TOP_BY_FUNCTION) {
            found[i] = function;
        } else if (by == FP_TOP_BY_OBJECT) {
            found[i] = fp_table_row(&s->model->functions, function)[FP_FUNCTION_OBJECT];
        } else if (by == FP_TOP_BY_FILE) {
            found[i] = p[FP_POSITION_FILE];
        } else {
            found[i] = fp_table_intern(places, (uint32_t[]){function, p[FP_POSITION_FILE], p[FP_POSITION_LINE]});
        }
    }
    return found;
}

/* A class, and the part of it that the last frame has. */
struct item_class {
    uint32_t frame, part; /* the frame + 1 */
};

/* Divides items into classes: each frame takes its items out of those they were in.  Returns the number of classes. */
static uint32_t divide(const struct fp_project *s, struct stack_walk *w, uint32_t n_items) {
    struct item_class *classes = NULL;
    uint32_t n = 1, cap = 0, *last = fp_scratch(n_items, sizeof *last); /* by item: the last frame that has it + 1 */
    fp_scratch_room(&classes, &cap, n, sizeof *classes);
    classes[0] = (struct item_class){0, 0};
    for (uint32_t f = 0; f < s->cap_frames; f++) {
        const uint32_t *chain = s->chain + s->chain_of[f];
        for (uint32_t i = 1; i <= chain[0]; i++) {
            const uint32_t id = w->item[chain[i]];
            if (last[id] == f + 1) continue;
            last[id] = f + 1;
            struct item_class *of = &classes[w->class[id]];
            if (of->frame == f + 1) {
                w->class[id] = of->part;
                continue;
            }
            *of = (struct item_class){f + 1, n};
            w->class[id] = n;
            fp_scratch_room(&classes, &cap, (uint64_t)n + 1, sizeof *classes);
            classes[n++] = (struct item_class){0, 0};
        }
    }
    uint32_t n_left = 0, *left = fp_scratch(n, sizeof *left); /* the number + 1 of a class that has items */
    for (uint32_t id = 0; id < n_items; id++) {
        uint32_t *to = &left[w->class[id]];
        if (!*to) *to = ++n_left;
        w->class[id] = *to - 1;
    }
    fp_scratch_free(last);
    return n_left;
}

/* Finds long frames, the classes of all items and those of long frames.  Returns the number of classes. */
static uint32_t find_classes(const struct fp_project *s, struct stack_walk *w, uint32_t n_items) {
    const uint32_t n_frames = s->cap_frames;
    w->class = fp_scratch(n_items, sizeof *w->class);
    w->long_of = fp_scratch(n_frames, sizeof *w->long_of);
    for (uint32_t f = 0; f < n_frames; f++)
        if (s->chain[s->chain_of[f]] > MANY_POSITIONS) w->long_of[f] = ++w->n_long;
    if (!w->n_long) {
        for (uint32_t i = 0; i < n_items; i++) w->class[i] = i;
        return n_items;
    }
    const uint32_t n = divide(s, w, n_items);
    uint32_t *last = fp_scratch(n, sizeof *last); /* by class: the last frame that has it + 1 */
    w->long_frames = fp_scratch(w->n_long, sizeof *w->long_frames);
    for (uint32_t f = 0; f < n_frames; f++) {
        if (!w->long_of[f]) continue;
        const uint32_t *chain = s->chain + s->chain_of[f];
        struct long_frame *to = &w->long_frames[w->long_of[f] - 1];
        to->first = w->n_found;
        for (uint32_t i = 1; i <= chain[0]; i++) {
            const uint32_t class = w->class[w->item[chain[i]]];
            if (last[class] == f + 1) continue;
            last[class] = f + 1;
            fp_scratch_room(&w->found, &w->cap_found, (uint64_t)w->n_found + 1, sizeof *w->found);
            w->found[w->n_found++] = class;
        }
        to->n = w->n_found - to->first;
    }
    return n;
}

/* The row of a node's frame in long_frames + 1; 0: none. */
static uint32_t long_frame(const struct fp_project *s, const struct stack_walk *w, uint32_t at) {
    return at || s->nodes[0].key ? w->long_of[fp_table_row(&s->model->stacks, at)[FP_STACK_FRAME]] : 0;
}

/* Adds a cost in sum `value`. */
static int add(struct stack_walk *w, int64_t cost, int32_t value, int64_t *to) {
    if (!__builtin_add_overflow(*to, cost, to)) return 0;
    w->failed = (uint32_t)value;
    return FP_E_OVERFLOW;
}

/* Adds a sum of a stack to that of an item. */
static int add_sum(struct stack_walk *w, const int64_t *sums, int32_t value, int64_t *to) {
    return value < 0 ? 0 : add(w, sums[value], value, to);
}

/* Adds a node's self costs to its item and begins its totals.  0 or FP_E_OVERFLOW. */
static int enter(const struct fp_project *s, struct stack_walk *w, uint32_t at, uint32_t depth) {
    const uint32_t n_columns = w->n_columns;
    uint32_t n, key = s->nodes[at].key;
    const uint32_t *chain = fp_project_chain(s, at, &n);
    const uint32_t row = long_frame(s, w, at);
    if (!row) {
        for (uint32_t i = 0; i < n; i++) w->active[w->class[w->item[chain[i]]]]++;
    } else if (!w->long_frames[row - 1].active++) {
        const struct long_frame *of = &w->long_frames[row - 1];
        for (uint32_t i = 0; i < of->n; i++) w->active[w->found[of->first + i]]++;
    }
    fp_scratch_room(&w->total, &w->cap_depth, (uint64_t)depth + 1, n_columns * sizeof *w->total);
    int64_t *total = w->total + (size_t)depth * n_columns;
    memset(total, 0, n_columns * sizeof *total);
    if (!key) return 0;
    const int64_t *sums = s->sums + (size_t)key * s->n_values;
    const uint32_t leaf = w->item[chain[n - 1]];
    int status = 0;
    for (uint32_t k = 0; k < n_columns; k++) {
        const struct fp_top_column *column = &w->columns[k];
        if (column->value >= 0) total[k] = sums[column->value];
        status |= add_sum(w, sums, column->value, &column->to->self[leaf]);
        status |= add_sum(w, sums, column->second, &column->to->second[leaf]);
        status |= add_sum(w, sums, w->calls, &column->to->calls[leaf]);
    }
    return status;
}

/* Adds the total of each column to a class. */
static int add_total(struct stack_walk *w, uint32_t class, const int64_t *total) {
    int64_t *to = w->sums + (size_t)class * w->n_columns;
    int status = 0;
    w->seen[class] = 1;
    for (uint32_t k = 0; k < w->n_columns; k++) status |= add(w, total[k], w->columns[k].value, &to[k]);
    return status;
}

/* Adds a node's complete totals to its classes, except those that are also further up on the stack. */
static int leave(const struct fp_project *s, struct stack_walk *w, uint32_t at, uint32_t depth) {
    const uint32_t n_columns = w->n_columns;
    const int64_t *total = w->total + (size_t)depth * n_columns;
    uint32_t n;
    const uint32_t *chain = fp_project_chain(s, at, &n), row = long_frame(s, w, at);
    int status = 0;
    if (!row) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t class = w->class[w->item[chain[i]]];
            if (!--w->active[class]) status |= add_total(w, class, total);
        }
    } else if (!--w->long_frames[row - 1].active) {
        const struct long_frame *of = &w->long_frames[row - 1];
        for (uint32_t i = 0; i < of->n; i++)
            if (!--w->active[w->found[of->first + i]]) status |= add_total(w, w->found[of->first + i], total);
    }
    for (uint32_t k = 0; at && k < n_columns; k++)
        status |= add(w, total[k], w->columns[k].value, &w->total[(size_t)(depth - 1) * n_columns + k]);
    return status;
}

/* Walks the tree depth first, without recursion. */
static int walk(const struct fp_project *s, struct stack_walk *w) {
    const struct fp_project_node *nodes = s->nodes;
    uint32_t at = 0, depth = 0;
    FP_TRY(enter(s, w, 0, 0));
    /* samples without a stack have a separate position, and no calls */
    if (nodes[0].key) {
        FP_TRY(leave(s, w, 0, 0));
        memset(w->total, 0, w->n_columns * sizeof *w->total);
    }
    for (;;) {
        if (nodes[at].child) {
            at = nodes[at].child;
            FP_TRY(enter(s, w, at, ++depth));
            continue;
        }
        for (;;) {
            if (!at) return 0;
            FP_TRY(leave(s, w, at, depth));
            if (nodes[at].sibling != FP_NO_ID) break;
            at = fp_project_parent(s, at);
            depth--;
        }
        at = nodes[at].sibling;
        FP_TRY(enter(s, w, at, depth));
    }
}

/* Gives items the totals of their classes. */
static int add_classes(struct stack_walk *w, uint32_t n_items) {
    int status = 0;
    for (uint32_t id = 0; id < n_items; id++) {
        const uint32_t class = w->class[id];
        for (uint32_t k = 0; w->seen[class] && k < w->n_columns; k++) {
            w->columns[k].to->seen[id] = 1;
            status |= add(w, w->sums[(size_t)class * w->n_columns + k], w->columns[k].value,
                          &w->columns[k].to->inclusive[id]);
        }
    }
    return status;
}

int fp_top_stacks(struct fp_project *s, int by, const struct fp_top_column *columns, uint32_t n, int calls,
                  struct fp_table *places, struct fp_err *err) {
    struct stack_walk w = {.columns = columns, .n_columns = n, .calls = calls, .item = items(s, by, places)};
    uint32_t n_items = 1;
    for (uint32_t i = 0; i < s->positions.n; i++)
        if (w.item[i] >= n_items) n_items = w.item[i] + 1;
    const uint32_t n_classes = find_classes(s, &w, n_items);
    w.active = fp_scratch(n_classes, sizeof *w.active);
    w.seen = fp_scratch(n_classes, sizeof *w.seen);
    w.sums = fp_scratch((size_t)n_classes * n, sizeof *w.sums);
    for (uint32_t k = 0; k < n; k++) {
        const int64_t last = columns[k].value > columns[k].second ? columns[k].value : columns[k].second;
        if (last >= s->n_values) return fp_unknown_id(err, "the column of a value", (uint32_t)last, s->n_values);
        fp_top_room(columns[k].to, n_items);
    }
    if (calls >= 0 && (uint32_t)calls >= s->n_values)
        return fp_unknown_id(err, "the column of calls", (uint32_t)calls, s->n_values);
    int status = 0;
    for (uint32_t group = 0; !status && group < s->n_groups; group++) {
        if (s->group_start[group] == s->group_start[group + 1]) continue;
        fp_project_grow(s, group);
        status = walk(s, &w);
        fp_project_fell(s, group);
    }
    if (!status) status = add_classes(&w, n_items);
    return status ? beyond(err, w.failed) : FP_DONE;
}
