/* Fuzz target: the bridges between stacks and graphs.  The input is a program that fills a model and a batch of
 * samples, with ids that are mostly valid, and chooses one way, because all of them take five times as long as one.
 * Checked besides memory: every bridge keeps every total.
 *
 *   samples -> fp_restack -> fp_sum
 *                         -> fp_project (graph) -> fp_estimate (stacks)
 *                                               -> fp_places (by line or address)
 *                            fp_project (top)   -> fp_top_functions
 *                                               -> fp_coarse (by function, line, ...)
 *   samples, graph -> fp_remap (the same rows in another model)
 *   samples -> fp_coarse_base
 */
#include <stdint.h>
#include <stdlib.h>

#include "bridges/rows/coarse.h"
#include "bridges/estimate/estimate_private.h"
#include "ends/places.h"
#include "bridges/project/project.h"
#include "core/remap.h"
#include "bridges/rows/restack.h"
#include "bridges/sums/sum.h"
#include "ends/top.h"
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { VALUES = 2, ROWS = 24 };
enum way { TO_SUMS, TO_ESTIMATE, TO_PLACES, TO_TOP, TO_COARSE, TO_MODEL, TO_BASE, WAYS };

struct totals {
    int64_t of[VALUES];
    int overflow;
};

/* Adds self values; in stacks all are. */
static void add(struct totals *t, const struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < VALUES; k++)
            if (b->view == FP_STACKS || b->kind[i] == FP_COST)
                t->overflow |= __builtin_add_overflow(t->of[k], b->values[k * b->cap + i], &t->of[k]);
}

static void same(const struct totals *a, const struct totals *b) {
    if (a->overflow || b->overflow) return; /* in another order a sum may fit */
    if (memcmp(a->of, b->of, sizeof a->of)) abort();
}

/* All records of a sum; the caller frees them. */
static uint64_t *records(struct fp_sum *s, size_t *n) {
    const size_t width = FP_WALK_HEAD + VALUES, cap = (2 * ROWS + 1) * (width + s->model->stacks.n);
    uint64_t *words = malloc(cap * sizeof *words);
    size_t got;
    if (fp_sum_order(s)) abort();
    for (*n = 0; (got = fp_sum_pull(s, words + *n, width + width / 2)); *n += got)
        if (*n + 2 * width > cap) abort(); /* not more than were put */
    if (s->failed) abort();
    return words;
}

static struct fp_walk *merge_of(const struct fp_sum *s, uint64_t *const *runs, const size_t *n, uint32_t n_runs) {
    struct fp_walk *w = fp_walk_new(n_runs, VALUES);
    for (uint32_t i = 0; i < n_runs; i++) w->runs[i] = (struct fp_run){FP_WALK_HEAD + VALUES, runs[i], n[i], 0, 1};
    fp_sum_show_ranks(s, w);
    w->split = 1;
    return w;
}

/* Stacks of one batch, summed: in memory, or as two runs, which are merged, by id or by name, with stacks that stay in
 * the model or are removed.  A status. */
static int summed(struct fp_model *m, struct fp_batch *in, struct fp_batch *out, uint32_t keep) {
    static const uint32_t columns[VALUES] = {1, 0}, same[VALUES] = {0, 1};
    struct fp_sum *s = fp_sum_new(m), *again = fp_sum_new(m);
    struct fp_err err;
    uint64_t *runs[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    const uint32_t n_rows = in->n;
    fp_sum_begin(s, keep, keep & 8 ? m->labels.n - 1 : 0, keep & 16 ? 1 : 0);
    int status = fp_sum_set_values(s, VALUES) || fp_sum_set_values(again, VALUES) ? FP_E_NOMEM : FP_DONE;
    const uint32_t n_runs = keep & 64 ? 0 : 2;
    if (!n_runs && status == FP_DONE && (status = fp_sum_put(s, in, 0, columns, &err)) == FP_DONE) {
        if ((keep & 32 && fp_sum_rank(s)) || fp_sum_order(s)) abort();
        if (fp_sum_rows(s, same, out) != FP_DONE) abort();
    }
    for (uint32_t k = 0; k < n_runs && status == FP_DONE; k++) {
        in->n = k ? n_rows : n_rows / 2;
        status = fp_sum_put(s, in, k ? n_rows / 2 : 0, columns, &err);
        runs[k] = records(s, &n[k]);
        fp_sum_empty(s);
    }
    in->n = n_rows;
    if (n_runs && status == FP_DONE) {
        if (keep & 128) fp_model_empty_stacks(m);
        struct fp_walk *merge = merge_of(s, runs, n, n_runs);
        if (keep & 32) {
            if (fp_sum_take(again, merge, 4 * ROWS, FP_NO_ID, &err) != FP_DONE) abort();
            fp_walk_free(merge);
            free(runs[0]);
            if (fp_sum_rank(again)) abort();
            runs[0] = records(again, &n[0]);
            merge = merge_of(again, runs, n, 1);
        }
        if (fp_sum_walk(s, merge, same, FP_NO_ID, out, &err) != FP_DONE) abort();
        fp_walk_free(merge);
    }
    free(runs[0]);
    free(runs[1]);
    fp_sum_free(s);
    fp_sum_free(again);
    return status;
}

/* A graph's rows by place; only of some groups, depending on `options`. */
static int by_place(struct fp_places *p, const struct fp_batch *rows, uint32_t options, struct fp_err *err) {
    static const uint32_t columns[VALUES] = {0, 1};
    int status;
    while ((status = fp_places_put(p, rows, columns, err)) == FP_NEEDS)
        if (fp_places_keep(p, p->requested, 1 + (p->requested + options) % 2)) return FP_E_NOMEM;
    return status;
}

/* The groups have all self costs; the kept rows have those of their groups. */
static void check_places(struct fp_places *p, const struct totals *graph, uint32_t options) {
    struct fp_batch *out = fp_batch_new(FP_GRAPH, 1 + options % 5, VALUES);
    struct totals all = {{0}, 0};
    struct fp_err err;
    if (fp_places_end(p, options % VALUES, &err) != FP_DONE) {
        fp_batch_free(out);
        return;
    }
    for (uint32_t i = 1; i < p->groups.keys.n; i++) {
        const uint32_t group = fp_table_row(&p->groups.keys, i)[0];
        struct totals rows = {{0}, 0};
        fp_places_select(p, group);
        for (int pulled = FP_FULL; pulled == FP_FULL;) {
            if ((pulled = fp_places_pull(p, out)) < 0) abort();
            add(&rows, out);
            fp_batch_reset(out);
        }
        const int kept = (group + options) % 2;
        for (uint32_t k = 0; k < VALUES; k++) {
            const int64_t sum = p->groups.values[1 + k][i];
            if (!rows.overflow && rows.of[k] != (kept ? sum : 0)) abort();
            all.overflow |= __builtin_add_overflow(all.of[k], sum, &all.of[k]);
        }
    }
    same(graph, &all);
    fp_batch_free(out);
}

/* Adds the self costs of items. */
static void add_things(struct totals *t, const struct fp_top_sums *c) {
    for (uint32_t i = 0; i < c->cap; i++) {
        if (!c->seen[i] && (c->self[i] || c->inclusive[i] || c->calls[i] || c->second[i])) abort();
        t->overflow |= __builtin_add_overflow(t->of[0], c->self[i], &t->of[0]);
        t->overflow |= __builtin_add_overflow(t->of[1], c->second[i], &t->of[1]);
    }
}

static int top_of_stacks(struct fp_project *s, int by, struct totals *t, struct fp_err *err) {
    struct fp_top_sums c = {0};
    struct fp_table places = {0};
    uint32_t *ids;
    if (fp_table_init(&places, 3)) abort();
    struct fp_top_sums other = {0}; /* added up at the same time */
    const struct fp_top_column columns[] = {{&c, 0, 1}, {&other, 1, -1}};
    int status = fp_top_stacks(s, by, columns, 2, 0, &places, err);
    if (status == FP_DONE) add_things(t, &c);
    for (uint32_t i = 0; i < c.cap && status == FP_DONE; i++)
        if (other.self[i] != c.second[i] || c.calls[i] != c.self[i]) abort();
    fp_top_sums_clear(&other);
    if (status == FP_DONE && c.cap && (ids = malloc(c.cap * sizeof *ids))) {
        const uint32_t few = fp_top_sums_largest(&c, c.inclusive, 3, ids);
        if (few > fp_top_sums_largest(&c, c.inclusive, c.cap, ids)) abort();
        free(ids);
    }
    fp_table_clear(&places);
    fp_top_sums_clear(&c);
    return status;
}

/* The costs of functions by the rows put. */
static int top_of_graph(struct fp_top_functions *f, int cycles, struct totals *t, struct fp_err *err) {
    struct fp_top_arc arcs[2];
    int status = fp_top_functions_end(f, cycles, err);
    if (status != FP_DONE || fp_top_functions_index(f)) return status;
    add_things(t, &f->all);
    for (uint32_t i = 0; i < f->all.cap; i++) {
        const int64_t into = fp_top_functions_arcs(f, i, 1, arcs, 2, err),
                      out = fp_top_functions_arcs(f, i, 0, arcs, 2, err);
        if (into < 0 || out < 0) return (int)(into < out ? into : out);
        if (into != fp_top_functions_arcs(f, i, 1, NULL, 0, err)) abort();
        if (out != fp_top_functions_arcs(f, i, 0, NULL, 0, err)) abort();
        if (fp_top_functions_arcs_with(f, i, 0, (uint32_t[]){i, i}, 2, arcs, err) > 1) abort();
    }
    for (uint32_t cycle = 1; cycle <= f->n_cycles; cycle++) fp_top_functions_cycle_arcs(f, cycle, arcs, 2);
    return status;
}

/* The rows of a batch by function, line, ..., which have the same self costs. */
static int coarser(struct fp_coarse *c, struct fp_batch *rows, struct fp_err *err) {
    struct totals before = {{0}, 0}, after = {{0}, 0};
    add(&before, rows);
    if (fp_batch_set_values(rows, VALUES + (c->by == FP_COARSE_BY_ARC))) return FP_E_NOMEM;
    const uint32_t n = rows->n;
    const int status = fp_coarse_batch(c, rows, err);
    if (rows->n > n) abort();
    if (status == FP_DONE) add(&after, rows);
    if (status == FP_DONE) same(&before, &after);
    return fp_batch_set_values(rows, VALUES) ? FP_E_NOMEM : status;
}

/* Samples to subtract are the negated samples. */
static void taken_off(struct fp_model *m, struct fp_batch *samples) {
    struct totals before = {{0}, 0}, after = {{0}, 0};
    struct fp_err err;
    add(&before, samples);
    if (fp_coarse_base(m, samples, 1, 1, &err) != FP_DONE) return;
    add(&after, samples);
    for (uint32_t k = 0; k < VALUES; k++) after.overflow |= __builtin_sub_overflow(0, after.of[k], &after.of[k]);
    same(&before, &after);
}

/* What the graph's rows are given to: one of them, the others are NULL. */
struct sinks {
    struct fp_estimate *estimate;
    struct fp_places *places;
    struct fp_coarse *coarse;
    struct fp_top_functions *top;
};

static int put(const struct sinks *to, const struct fp_project *s, struct fp_batch *rows, uint32_t options,
               struct fp_err *err) {
    static const uint32_t columns[VALUES] = {0, 1};
    if (to->places) return by_place(to->places, rows, options, err);
    if (to->coarse) return coarser(to->coarse, rows, err);
    if (to->top) {
        fp_top_functions_begin(to->top, options >> 5 & 1, 1);
        return fp_top_functions_put(to->top, rows, 0, 1, -1, -1, err);
    }
    if (options & 32) to->estimate->own->limit = to->estimate->arcs->limit = 8;
    return fp_estimate_put(to->estimate, rows, columns, s->addresses, s->lines, err);
}

/* The graph of a thread, or of all, in parts. */
static int group_to_graph(struct fp_project *s, uint32_t group, uint32_t options, const struct sinks *to,
                          struct fp_batch *out, struct totals *graph, struct fp_err *err) {
    int64_t totals[VALUES], of_self[VALUES];
    struct totals rows = {{0}, 0};
    int status = FP_DONE;
    const int own = fp_project_select_self(s, group, of_self, err) == FP_DONE;
    fp_project_begin(s, group, options & 4 ? 1 : -1, totals);
    for (int part = FP_FULL; part == FP_FULL && status == FP_DONE;) {
        part = fp_project_select(s, options & 8 ? 1 : 1000, totals, err);
        if (part < 0) status = part;
        for (int pulled = FP_FULL; pulled == FP_FULL && status == FP_DONE;) {
            pulled = fp_project_pull(s, out);
            if (pulled < 0) abort();
            add(&rows, out);
            status = put(to, s, out, options, err);
            fp_batch_reset(out);
        }
    }
    if (status == FP_DONE && own && memcmp(of_self, totals, sizeof totals)) abort();
    if (status == FP_DONE && !rows.overflow && memcmp(rows.of, totals, sizeof totals)) abort();
    for (uint32_t k = 0; k < VALUES; k++)
        graph->overflow |= rows.overflow | __builtin_add_overflow(graph->of[k], totals[k], &graph->of[k]);
    return status == FP_DONE && to->top ? fp_top_functions_end_part(to->top, err) : status;
}

static int to_graph(struct fp_model *m, const struct fp_batch *in, uint32_t options, const struct sinks *to,
                    struct totals *graph, struct fp_err *err) {
    static const uint32_t columns[VALUES] = {0, 1};
    struct fp_project *s = fp_project_new(m, options & 1, options >> 1 & 1);
    struct fp_batch *out = fp_batch_new(FP_GRAPH, 1 + options % 7, VALUES);
    struct totals stacks = {{0}, 0}, functions = {{0}, 0};
    int status = fp_project_set_values(s, VALUES);
    if (status == FP_DONE) status = fp_project_put(s, in, columns, err);
    if (status == FP_DONE) status = fp_project_end(s, err);
    if (status == FP_DONE && to->top) status = top_of_stacks(s, options % 4, &stacks, err);
    for (uint32_t group = 0; status == FP_DONE && group < (options & 1 ? m->threads.n : 1); group++)
        status = group_to_graph(s, group, options, to, out, graph, err);
    if (status == FP_DONE && to->places) check_places(to->places, graph, options);
    if (status == FP_DONE && to->top) {
        status = top_of_graph(to->top, options >> 6 & 1, &functions, err);
        if (status == FP_DONE) {
            same(graph, &stacks);
            same(graph, &functions);
        }
    }
    fp_batch_free(out);
    fp_project_free(s);
    return status;
}

/* ---- another model ---- */

static uint64_t add_hash(uint64_t h, uint64_t v) {
    return fp_mix(h ^ v, 0x9e3779b97f4a7c15u);
}

static uint64_t add_string(uint64_t h, const struct fp_model *m, uint32_t id) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, id, &n);
    return add_hash(h, fp_hash_bytes(p, n));
}

static uint64_t add_object(uint64_t h, const struct fp_model *m, uint32_t id) {
    const uint32_t *row = fp_table_row(&m->objects, id);
    return add_string(add_string(h, m, row[FP_OBJECT_NAME]), m, row[FP_OBJECT_BUILD_ID]);
}

static uint64_t add_function(uint64_t h, const struct fp_model *m, uint32_t id) {
    const uint32_t *row = fp_table_row(&m->functions, id);
    for (int i = FP_FUNCTION_FILE; i <= FP_FUNCTION_SYSTEM_NAME; i++) h = add_string(h, m, row[i]);
    return add_hash(add_object(h, m, row[FP_FUNCTION_OBJECT]), row[FP_FUNCTION_LINE]);
}

static uint64_t add_frame(uint64_t h, const struct fp_model *m, uint32_t id) {
    const uint32_t *row = fp_table_row(&m->frames, id), *mapping = fp_table_row(&m->mappings, row[FP_FRAME_MAPPING]);
    h = add_object(add_hash(h, fp_words_u64(row + FP_FRAME_ADDRESS)), m, mapping[FP_MAPPING_OBJECT]);
    for (int i = FP_MAPPING_START; i < FP_MAPPING_WIDTH; i++) h = add_hash(h, mapping[i]);
    for (uint32_t at = row[FP_FRAME_LINES]; at; at = fp_table_row(&m->lines, at)[FP_LINE_OUTER]) {
        const uint32_t *line = fp_table_row(&m->lines, at);
        h = add_hash(add_hash(add_function(h, m, line[FP_LINE_FUNCTION]), line[FP_LINE_LINE]), line[FP_LINE_COLUMN]);
    }
    return add_hash(h, row[FP_FRAME_FLAGS]);
}

/* The entries that the ids of a row refer to. */
static uint64_t row_says(const struct fp_model *m, const struct fp_batch *b, uint32_t i) {
    uint64_t h = 1;
    if (b->view == FP_GRAPH) {
        h = add_string(add_function(h, m, b->function[i]), m, b->file[i]);
        return b->kind[i] == FP_COST || b->kind[i] == FP_BLOCK
                   ? h
                   : add_string(add_function(h, m, b->callee[i]), m, b->target_file[i]);
    }
    for (uint32_t at = b->stack[i]; at; at = fp_table_row(&m->stacks, at)[FP_STACK_PARENT])
        h = add_frame(h, m, fp_table_row(&m->stacks, at)[FP_STACK_FRAME]);
    for (uint32_t at = b->label[i]; at; at = fp_table_row(&m->labels, at)[FP_LABEL_NEXT]) {
        const uint32_t *label = fp_table_row(&m->labels, at);
        h = add_string(add_string(h, m, label[FP_LABEL_KEY]), m, label[FP_LABEL_STRING]);
        h = add_string(add_hash(h, fp_words_u64(label + FP_LABEL_NUMBER)), m, label[FP_LABEL_UNIT]);
    }
    const uint32_t *thread = fp_table_row(&m->threads, b->thread[i]);
    return add_hash(add_hash(h, thread[FP_THREAD_PID]), thread[FP_THREAD_TID]);
}

/* The rows are equal in the other model.  0 if they have an invalid id. */
static int renumbered(struct fp_remap *r, const struct fp_model *from, const struct fp_model *to, struct fp_batch *b) {
    struct fp_batch *was = fp_batch_copy(b);
    struct fp_err err;
    const int ok = fp_remap_batch(r, b, &err) == FP_DONE;
    for (uint32_t i = 0; ok && i < b->n; i++)
        if (row_says(from, was, i) != row_says(to, b, i)) abort();
    fp_batch_free(was);
    return ok;
}

/* Entries that are already numbered in the order of the first rows keep their numbers. */
static void renumber_again(const struct fp_model *m, const struct fp_batch *b) {
    struct fp_model *to = fp_model_new();
    struct fp_remap *r = fp_remap_new(m, to);
    struct fp_batch *again = fp_batch_copy(b);
    if (!renumbered(r, m, to, again)) abort();
    for (uint32_t i = 0; i < b->n; i++)
        if (again->stack[i] != b->stack[i] || again->label[i] != b->label[i] || again->thread[i] != b->thread[i])
            abort();
    fp_batch_free(again);
    fp_remap_free(r);
    fp_model_free(to);
}

/* Two batches of stacks, those of the first removed before the second or not, and one of a graph. */
static void renumber(struct program *g, struct fp_model *m, struct fp_batch *samples, int removed, int wrong) {
    struct fp_model *to = fp_model_new();
    struct fp_remap *r = fp_remap_new(m, to);
    struct fp_batch *rows = fp_batch_new(FP_GRAPH, ROWS / 2, 0);
    int ok = 1;
    for (int k = 0; k < 2 && ok; k++) {
        fill_samples(g, m, samples, wrong);
        ok = renumbered(r, m, to, samples);
        if (ok && !k) renumber_again(to, samples);
        if (removed) fp_model_empty_stacks(m);
    }
    fill_graph(g, m, rows);
    if (ok) renumbered(r, m, to, rows);
    fp_batch_free(rows);
    fp_remap_free(r);
    fp_model_free(to);
}

/* Estimates what to_graph() has put; of the same sums. */
static int estimate(struct fp_model *m, struct fp_estimate *e, uint32_t callers, const struct totals *graph,
                    struct fp_batch *sums, struct fp_err *err) {
    struct totals estimated = {{0}, 0};
    int status = fp_estimate_end(e, callers, err);
    fp_batch_reset(sums);
    for (int pulled = FP_FULL; status == FP_DONE && pulled == FP_FULL;) {
        pulled = fp_estimate_pull(e, 0, sums);
        if (pulled < 0) status = pulled;
        add(&estimated, sums);
        fp_batch_reset(sums);
    }
    if (status == FP_DONE) same(graph, &estimated);
    const uint32_t object = fp_estimate_costliest_object(e);
    if (object && object >= m->objects.n) abort();
    return status;
}

/* A frame that gets lines, or only names. */
static int restack(struct fp_model *m, struct fp_batch *samples, uint32_t options, uint32_t keep, struct fp_err *err) {
    const uint32_t frame = m->frames.n - 1, chain[] = {2, 0, keep, 1, options}, lines[] = {keep % 5, 0};
    const uint64_t ends[] = {0, 1, 3, 3, 3, 5, 6};
    uint32_t functions[2] = {0};
    const struct fp_restack_named named = {&frame,   chain,    (const uint8_t *)"anames", ends, lines, functions, 1,
                                           keep % 6, keep % 3, m->objects.n - 1};
    struct fp_restack *r = fp_restack_new(m);
    int status = keep & 64 ? fp_restack_names(r, err) : fp_restack_chains(r, &named, err);
    struct totals before = {{0}, 0}, after = {{0}, 0};
    if (status == FP_E_MALFORMED) status = FP_DONE; /* too few functions or words */
    add(&before, samples);
    if (status == FP_DONE) status = fp_restack_batch(r, samples, err);
    add(&after, samples);
    same(&before, &after);
    fp_restack_free(r);
    return status;
}

static void to_sums(struct fp_model *m, struct fp_batch *samples, uint32_t keep) {
    struct totals before = {{0}, 0}, after = {{0}, 0};
    struct fp_batch *sums = fp_batch_new(FP_STACKS, 2 * ROWS + 1, VALUES);
    add(&before, samples);
    const int status = summed(m, samples, sums, keep);
    add(&after, sums);
    const int64_t first = after.of[0]; /* the columns were swapped */
    after.of[0] = after.of[1];
    after.of[1] = first;
    if (status == FP_DONE) same(&before, &after);
    fp_batch_free(sums);
}

static void to_estimate(struct fp_model *m, struct fp_batch *samples, uint32_t options, uint32_t keep) {
    struct totals before = {{0}, 0}, graph = {{0}, 0};
    struct fp_estimate *e = fp_estimate_new(m, options % 3, (options >> 4) / 64.0);
    struct fp_err err;
    add(&before, samples);
    e->max_contexts = keep & 1 ? keep : 512; /* a few arcs make millions */
    if (keep & 1) e->most_rows = keep % 16;
    int status = fp_estimate_set_values(e, VALUES);
    if (status == FP_DONE) status = to_graph(m, samples, options, &(struct sinks){.estimate = e}, &graph, &err);
    if (status == FP_DONE) {
        same(&before, &graph);
        estimate(m, e, keep % 3, &graph, samples, &err);
    }
    fp_estimate_free(e);
}

static void to_ends(struct fp_model *m, const struct fp_batch *samples, uint32_t options, enum way way) {
    struct totals before = {{0}, 0}, graph = {{0}, 0};
    struct fp_err err;
    struct sinks to = {.places = way == TO_PLACES ? fp_places_new(m, options >> 5 & 1) : NULL,
                       .coarse = way == TO_COARSE ? fp_coarse_new(m, options % 5) : NULL,
                       .top = way == TO_TOP ? fp_top_functions_new(m) : NULL};
    add(&before, samples);
    if (to_graph(m, samples, options, &to, &graph, &err) == FP_DONE) same(&before, &graph);
    if (to.places) fp_places_free(to.places);
    if (to.coarse) fp_coarse_free(to.coarse);
    if (to.top) fp_top_functions_free(to.top);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct program g = {data, data + (n < 4096 ? n : 4096)};
    struct fp_model *m = fp_model_new();
    struct fp_batch *samples = fp_batch_new(FP_STACKS, ROWS, VALUES);
    struct fp_err err;
    const enum way way = (enum way)(take(&g) % WAYS);
    const uint32_t options = take(&g), keep = take(&g);
    fill_model(&g, m, 1);
    if (way == TO_MODEL) {
        renumber(&g, m, samples, keep & 1, options & 8);
    } else {
        fill_samples(&g, m, samples, keep & 128 && options & 8); /* which fp_restack refuses */
        const int status = keep & 128 ? restack(m, samples, options, keep, &err) : FP_DONE;
        if (way == TO_BASE)
            taken_off(m, samples);
        else if (status == FP_DONE && way == TO_SUMS)
            to_sums(m, samples, keep);
        else if (status == FP_DONE && way == TO_ESTIMATE)
            to_estimate(m, samples, options, keep);
        else if (status == FP_DONE)
            to_ends(m, samples, options, way);
    }
    fp_batch_free(samples);
    fp_model_free(m);
    return 0;
}
