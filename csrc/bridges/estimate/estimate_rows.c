#include "bridges/estimate/estimate_private.h"

static const double ROUNDING = 1e-9; /* shares below this are the rounding of doubles */
static const uint64_t WHOLE = (uint64_t)1 << 63;

/* A context's part of its function's costs: [from, to) of WHOLE. */
struct part {
    uint64_t from, to;
};

struct fp_estimate_rows {
    struct part *parts;                /* by context */
    uint64_t *left_from;               /* by function: [this, WHOLE) is under [pruned] */
    uint32_t *own_end;                 /* by function: the end of its self costs in the sums */
    uint8_t *unnamed;                  /* by function: summed up as [pruned] */
    uint32_t *own_frames, *arc_frames; /* by place of the sums; 0: not known yet */
    uint32_t unknown;                  /* the string ??? */
    uint32_t pruned;                   /* the stack [pruned] */
    /* pulling: first the contexts, depth first, then the rest of each function, then the unnamed sum */
    uint32_t context; /* FP_NO_ID: all are done */
    uint32_t *stacks; /* by depth: of the callers of the current context */
    uint32_t cap_stacks;
    uint32_t function;
    uint32_t place;        /* of the current function; FP_NO_ID: start with its first */
    int64_t *sums;         /* of the unnamed functions */
    struct ranked *ranked; /* scratch */
    uint32_t cap_ranked;
    /* the last frame's function of the graph and file, and the function of the stacks that they are */
    uint32_t from_function, from_file, to_function;
};

void fp_estimate_rows_free(struct fp_estimate_rows *r) {
    if (!r) return;
    FP_FREE(r->parts, r->left_from, r->own_end, r->unnamed, r->own_frames, r->arc_frames, r->stacks, r->sums, r->ranked,
            r);
}

/* ---- dividing ----------------------------------------------------------- */

/* A part of an amount.  Each end is rounded separately, so that adjacent parts add up to the amount. */
static int64_t part_of(int64_t amount, struct part part) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t whole = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    const uint64_t from = (uint64_t)(((u128)whole * part.from + WHOLE / 2) / WHOLE);
    const uint64_t to = (uint64_t)(((u128)whole * part.to + WHOLE / 2) / WHOLE);
    return amount < 0 ? (int64_t)(0 - (to - from)) : (int64_t)(to - from);
}

struct ranked {
    double share;
    uint32_t id;
};

static int largest_first(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static struct ranked *ranked_room(struct fp_estimate_rows *r, uint64_t n) {
    fp_array_room(&r->ranked, &r->cap_ranked, n, sizeof *r->ranked);
    return r->ranked;
}

/* Gives each context its part; the largest come first. */
static void divide(const struct fp_estimate *e, struct fp_estimate_rows *r) {
    const struct fp_estimate_flow *f = e->flow;
    for (uint32_t function = 0; function < f->n_functions; function++) {
        uint32_t n = 0;
        double sum = 0;
        uint64_t from = 0;
        for (uint32_t id = f->first[function]; id != FP_NO_ID; id = f->contexts[id].next) {
            ranked_room(r, (uint64_t)n + 1)[n] = (struct ranked){f->contexts[id].share, id};
            n++;
        }
        const struct ranked *ranked = r->ranked;
        if (n > 1) qsort(r->ranked, n, sizeof *ranked, largest_first);
        for (uint32_t i = 0; i < n; i++) {
            sum += ranked[i].share;
            const int is_last = i + 1 == n && sum > 1 - ROUNDING;
            const uint64_t to = is_last || sum >= 1 ? WHOLE : (uint64_t)(sum * (double)WHOLE);
            r->parts[ranked[i].id] = (struct part){from, to};
            from = to;
        }
        r->left_from[function] = from;
    }
}

/* ---- fitting the size --------------------------------------------- */

static uint32_t n_columns(const struct fp_estimate *e, uint32_t function) {
    uint32_t n = e->rows->left_from[function] < WHOLE;
    for (uint32_t id = e->flow->first[function]; id != FP_NO_ID; id = e->flow->contexts[id].next) n++;
    return n;
}

/* An upper bound of the number of rows: parts of a cost may be 0. */
static uint64_t n_rows(const struct fp_estimate *e) {
    uint64_t n = 0;
    for (uint32_t function = 0; function < e->flow->n_functions; function++) {
        const uint32_t places = e->rows->own_end[function] - e->flow->own_start[function];
        if (places && !e->rows->unnamed[function]) n += (uint64_t)places * n_columns(e, function);
    }
    return n;
}

static double own_share(const struct fp_estimate *e, uint32_t place) {
    return fp_estimate_sums_share(fp_estimate_sums_values(e->own, place), e->own->scale, e->n_values);
}

/* Limits a function that costs n times the pruned share to 2 n rows, but at least one for each context. */
static void fold_places(struct fp_estimate *e) {
    for (uint32_t function = 0; function < e->flow->n_functions; function++) {
        const uint32_t first = e->flow->own_start[function], n = e->rows->own_end[function] - first;
        if (n < 2) continue;
        struct ranked *ranked = ranked_room(e->rows, n);
        double share = 0;
        for (uint32_t i = 0; i < n; i++) {
            ranked[i] = (struct ranked){own_share(e, first + i), i};
            share += ranked[i].share;
        }
        const double room = 2 * share / e->prune / n_columns(e, function);
        if (room >= n) continue;
        qsort(ranked, n, sizeof *ranked, largest_first);
        const double cut = room >= 2 ? ranked[(uint32_t)room - 2].share : INFINITY;
        e->rows->own_end[function] = fp_estimate_sums_fold(e->own, first, first + n, cut);
    }
}

/* Removes the names of the cheapest functions below the pruned share, until there are at most `most` rows.
 */
static void take_names(struct fp_estimate *e, uint64_t n, uint64_t most) {
    struct fp_estimate_rows *r = e->rows;
    uint32_t n_ranked = 0;
    for (uint32_t function = 0; function < e->flow->n_functions; function++) {
        double share = 0;
        for (uint32_t i = e->flow->own_start[function]; i < r->own_end[function]; i++) share += own_share(e, i);
        if (e->flow->own_start[function] == r->own_end[function] || share >= e->prune) continue;
        ranked_room(r, (uint64_t)n_ranked + 1)[n_ranked] = (struct ranked){share, function};
        n_ranked++;
    }
    if (n_ranked) qsort(r->ranked, n_ranked, sizeof *r->ranked, largest_first);
    while (n_ranked && n > most) {
        const uint32_t function = r->ranked[--n_ranked].id;
        n -= (uint64_t)(r->own_end[function] - e->flow->own_start[function]) * n_columns(e, function);
        r->unnamed[function] = 1;
        e->unnamed++;
    }
}

/* Lists the contexts by parent; r->context becomes the first that has none. */
static void list_children(struct fp_estimate_flow *f, struct fp_estimate_rows *r) {
    r->context = FP_NO_ID;
    for (uint32_t id = f->n_contexts; id--;) {
        struct fp_estimate_context *c = &f->contexts[id];
        uint32_t *list = c->parent == FP_NO_ID ? &r->context : &f->contexts[c->parent].child;
        c->next = *list;
        *list = id;
    }
}

static uint32_t pruned_stack(struct fp_model *m) {
    const uint32_t frame = fp_model_name_frame(m, fp_strings_intern(&m->strings, "[pruned]", 8));
    return fp_model_stack(m, 0, frame);
}

void fp_estimate_rows_make(struct fp_estimate *e) {
    struct fp_estimate_flow *f = e->flow;
    struct fp_estimate_rows *r = e->rows = fp_have(calloc(1, sizeof *r));
    r->parts = fp_have(malloc(((size_t)f->n_contexts + 1) * sizeof *r->parts));
    r->left_from = fp_have(malloc(f->n_functions * sizeof *r->left_from));
    r->own_end = fp_have(malloc(f->n_functions * sizeof *r->own_end));
    r->unnamed = fp_have(calloc(f->n_functions, 1));
    r->own_frames = fp_have(calloc((size_t)e->own->n + 1, sizeof *r->own_frames));
    r->arc_frames = fp_have(calloc((size_t)f->n_arc_places + 1, sizeof *r->arc_frames));
    r->sums = fp_have(calloc((size_t)e->n_values + 1, sizeof *r->sums));
    r->unknown = fp_strings_intern(&e->model->strings, "???", 3);
    r->pruned = pruned_stack(e->model);
    r->place = FP_NO_ID;
    divide(e, r);
    memcpy(r->own_end, f->own_start + 1, f->n_functions * sizeof *r->own_end);
    const double most = e->prune > 0 && 1 / e->prune > e->most_rows ? 1 / e->prune : e->most_rows;
    uint64_t n = n_rows(e);
    if (e->prune > 0 && (double)n > most) {
        fold_places(e);
        n = n_rows(e);
        if ((double)n > most) take_names(e, n, (uint64_t)most);
    }
    list_children(f, r);
    FP_FREE(f->first, r->ranked);
    f->first = NULL;
    r->ranked = NULL;
}

/* ---- frames ------------------------------------------------------------- */

/* The function of stacks for a function of the graph with lines of a file. */
static uint32_t function_of(const struct fp_estimate *e, uint32_t from, uint32_t file) {
    struct fp_model *m = e->model;
    const uint32_t unknown = e->rows->unknown;
    uint32_t f[FP_FUNCTION_WIDTH];
    memcpy(f, fp_table_row(&m->functions, from), sizeof f);
    if (!from) {
        f[FP_FUNCTION_NAME] = fp_strings_intern(&m->strings, "[unknown]", 9);
    } else if (e->by == FP_BY_FUNCTION) {
        file = f[FP_FUNCTION_FILE];
    }
    /* an unknown file or object has a name in graphs, but none in stacks */
    if (file == unknown) file = 0;
    if (f[FP_FUNCTION_FILE] == unknown) f[FP_FUNCTION_FILE] = 0;
    if (fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME] == unknown) f[FP_FUNCTION_OBJECT] = 0;
    if (file != f[FP_FUNCTION_FILE]) { /* a line of another file, inlined into this function */
        f[FP_FUNCTION_FILE] = file;
        f[FP_FUNCTION_LINE] = 0;
    }
    return fp_model_function_row(m, f);
}

static uint32_t make_frame(const struct fp_estimate *e, const struct fp_estimate_place *p) {
    struct fp_estimate_rows *r = e->rows;
    if (!r->to_function || p->function != r->from_function || p->file != r->from_file) {
        r->to_function = function_of(e, p->function, p->file);
        r->from_function = p->function;
        r->from_file = p->file;
    }
    return fp_model_frame(e->model, 0, p->address, 0, fp_model_line(e->model, r->to_function, p->line, 0, 0));
}

static uint32_t frame_of(const struct fp_estimate *e, uint32_t *frames, const struct fp_estimate_place *places,
                         uint32_t place) {
    return frames[place] ? frames[place] : (frames[place] = make_frame(e, &places[place]));
}

/* ---- rows --------------------------------------------------------------- */

/* Marks the arcs to the current context as shown. */
static void show_arcs(struct fp_estimate *e) {
    struct fp_estimate_context *contexts = e->flow->contexts;
    for (uint32_t id = e->rows->context; id != FP_NO_ID && !contexts[id].is_shown; id = contexts[id].parent) {
        contexts[id].is_shown = 1;
        if (contexts[id].arc == FP_NO_ID) continue;
        uint8_t *is_shown = &e->flow->arc_is_shown[contexts[id].arc];
        e->unshown -= !*is_shown;
        *is_shown = 1;
    }
}

/* Adds a row unless its values are all 0.  FP_DONE or FP_FULL. */
static int put_row(struct fp_estimate *e, struct fp_batch *out, uint32_t thread, uint32_t callers, uint32_t place,
                   struct part part) {
    struct fp_estimate_rows *r = e->rows;
    const int64_t *values = fp_estimate_sums_values(e->own, place);
    const uint32_t i = out->n, shown = e->flow->primary < e->n_values ? e->flow->primary : 0;
    int64_t any = 0;
    if (i == out->cap) return FP_FULL;
    for (uint32_t k = 0; k < e->n_values; k++) any |= out->values[(size_t)k * out->cap + i] = part_of(values[k], part);
    if (!any) return FP_DONE;
    const uint32_t frame = frame_of(e, r->own_frames, e->own->places, place);
    fp_batch_sample(out, fp_model_stack(e->model, callers, frame), thread, 0, 0);
    e->stacks++;
    show_arcs(e);
    if (e->own->totals[shown] > 0) {
        const double share = fp_estimate_magnitude(out->values[(size_t)shown * out->cap + i]) / e->own->totals[shown];
        if (r->context == FP_NO_ID || e->flow->contexts[r->context].is_left) e->pruned += share;
        if (e->own->places[place].callee == FP_ESTIMATE_REST) e->unlined += share;
    }
    return FP_DONE;
}

/* Writes all rows of a function under `callers`. */
static int put_function(struct fp_estimate *e, struct fp_batch *out, uint32_t thread, uint32_t function,
                        uint32_t callers, struct part part) {
    struct fp_estimate_rows *r = e->rows;
    if (r->place == FP_NO_ID) r->place = e->flow->own_start[function];
    for (; r->place < r->own_end[function] && part.from < part.to && !r->unnamed[function]; r->place++)
        FP_TRY(put_row(e, out, thread, callers, r->place, part));
    r->place = FP_NO_ID;
    return FP_DONE;
}

/* The context after this one, depth first. */
static uint32_t after(const struct fp_estimate_flow *f, uint32_t id) {
    if (f->contexts[id].child != FP_NO_ID) return f->contexts[id].child;
    while (id != FP_NO_ID && f->contexts[id].next == FP_NO_ID) id = f->contexts[id].parent;
    return id == FP_NO_ID ? id : f->contexts[id].next;
}

static int put_contexts(struct fp_estimate *e, uint32_t thread, struct fp_batch *out) {
    struct fp_estimate_flow *f = e->flow;
    struct fp_estimate_rows *r = e->rows;
    while (r->context != FP_NO_ID) {
        const struct fp_estimate_context *c = &f->contexts[r->context];
        if (r->place == FP_NO_ID) {
            fp_array_room(&r->stacks, &r->cap_stacks, (uint64_t)c->depth + 1, sizeof *r->stacks);
            uint32_t stack = c->depth ? r->stacks[c->depth - 1] : c->is_left ? r->pruned : 0;
            if (c->arc != FP_NO_ID) {
                const uint32_t frame = frame_of(e, r->arc_frames, f->arc_places, c->arc);
                stack = fp_model_stack(e->model, stack, frame);
            }
            r->stacks[c->depth] = stack;
        }
        FP_TRY(put_function(e, out, thread, c->function, r->stacks[c->depth], r->parts[r->context]));
        r->context = after(f, r->context);
    }
    return FP_DONE;
}

/* Writes the sum of the unnamed functions so far. */
static int put_unnamed(struct fp_estimate *e, uint32_t thread, struct fp_batch *out) {
    struct fp_estimate_rows *r = e->rows;
    const uint32_t i = out->n, shown = e->flow->primary < e->n_values ? e->flow->primary : 0;
    int64_t any = 0;
    if (i == out->cap) return FP_FULL;
    for (uint32_t k = 0; k < e->n_values; k++) any |= out->values[(size_t)k * out->cap + i] = r->sums[k];
    if (!any) return FP_DONE;
    fp_batch_sample(out, r->pruned, thread, 0, 0);
    e->stacks++;
    if (e->own->totals[shown] > 0) e->pruned += fp_estimate_magnitude(r->sums[shown]) / e->own->totals[shown];
    memset(r->sums, 0, e->n_values * sizeof *r->sums);
    return FP_DONE;
}

/* Adds the places of a function to that sum; before a sum would overflow, it is written. */
static int add_unnamed(struct fp_estimate *e, uint32_t thread, struct fp_batch *out, uint32_t function) {
    struct fp_estimate_rows *r = e->rows;
    if (r->place == FP_NO_ID) r->place = e->flow->own_start[function];
    for (; r->place < r->own_end[function]; r->place++) {
        const int64_t *values = fp_estimate_sums_values(e->own, r->place);
        int fits = 1;
        for (uint32_t k = 0; k < e->n_values; k++) {
            int64_t sum;
            fits &= !__builtin_add_overflow(r->sums[k], values[k], &sum);
        }
        FP_TRY(fits ? FP_DONE : put_unnamed(e, thread, out));
        for (uint32_t k = 0; k < e->n_values; k++) r->sums[k] += values[k];
    }
    r->place = FP_NO_ID;
    return FP_DONE;
}

int fp_estimate_rows_pull(struct fp_estimate *e, uint32_t thread, struct fp_batch *out) {
    struct fp_estimate_rows *r = e->rows;
    int status = put_contexts(e, thread, out);
    for (; !status && r->function < e->flow->n_functions; r->function += !status) {
        const struct part left = {r->left_from[r->function], WHOLE};
        status = r->unnamed[r->function] ? add_unnamed(e, thread, out, r->function)
                                         : put_function(e, out, thread, r->function, r->pruned, left);
    }
    return status ? status : put_unnamed(e, thread, out);
}
