/* Fuzz target: operators that drop, rename or renumber rows.  The input is a program that fills a model and a batch;
 * each operator gets its own rows.
 *
 *   any view   fp_filter  fp_rename  fp_select  fp_transform; of stacks and graphs fp_remap and fp_pair
 *   timeline   fp_spans, and, for nested calls, fp_fit_timeline
 *   stacks     fp_tag, fp_fit_stacks, and after fp_project: fp_contexts and fp_first_lines
 *   graph      fp_top_graph  fp_first_lines
 *
 * Checked besides memory: every row and every value is present or counted as dropped; renumbered rows have the same
 * names; functions pair as a comparison of all with all finds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ends/contexts.h"
#include "bridges/rows/filter.h"
#include "bridges/project/first_lines.h"
#include "bridges/budget/fit_timeline.h"
#include "bridges/rows/pair.h"
#include "bridges/rows/rename.h"
#include "core/remap.h"
#include "bridges/rows/spans.h"
#include "bridges/rows/tag.h"
#include "bridges/rows/transform.h"
#include "bridges/budget/fit_stacks.h"
#include "ends/top.h"
#include "core/select.h"
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ROWS = 48, VALUES = 2 };

#define must(ok) ((ok) ? (void)0 : failed(#ok, __LINE__))

static void failed(const char *what, int line) {
    fprintf(stderr, "line %d: not %s\n", line, what);
    abort();
}

/* Sums of value columns; modulo 2^64. */
static void add_values(const struct fp_batch *b, uint64_t *sums) {
    for (uint32_t k = 0; k < b->n_values; k++)
        for (uint32_t i = 0; i < b->n; i++) sums[k] += (uint64_t)b->values[(size_t)k * b->cap + i];
}

static void same_values(const struct fp_batch *a, const struct fp_batch *b) {
    uint64_t one[VALUES] = {0}, other[VALUES] = {0};
    add_values(a, one);
    add_values(b, other);
    must(!memcmp(one, other, sizeof one));
}

/* ---- any view ---- */

static uint64_t hash_string(const struct fp_model *m, uint32_t id, uint64_t h) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, id, &n);
    return fp_mix(h ^ (n ? fp_hash_bytes(p, n) : 1), 0x9e3779b97f4a7c15u);
}

static uint64_t hash_function(const struct fp_model *m, uint32_t id, uint64_t h) {
    const uint32_t *f = fp_table_row(&m->functions, id);
    h = hash_string(m, fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[0], h);
    return hash_string(m, f[FP_FUNCTION_FILE], hash_string(m, f[FP_FUNCTION_NAME], h)) + f[FP_FUNCTION_LINE];
}

/* The names that a row has. */
static uint64_t hash_row(const struct fp_model *m, const struct fp_batch *b, uint32_t i) {
    uint64_t h = 1;
    if (b->view == FP_GRAPH) return hash_string(m, b->file[i], hash_function(m, b->function[i], h));
    if (b->view == FP_TIMELINE) return b->op[i] <= FP_OP_ENTER_ARGS ? hash_function(m, b->function[i], h) : h;
    for (uint32_t at = b->stack[i]; at; at = fp_table_row(&m->stacks, at)[FP_STACK_PARENT]) {
        const uint32_t *frame = fp_table_row(&m->frames, fp_table_row(&m->stacks, at)[FP_STACK_FRAME]);
        h += fp_words_u64(frame + FP_FRAME_ADDRESS);
        for (uint32_t line = frame[FP_FRAME_LINES]; line; line = fp_table_row(&m->lines, line)[FP_LINE_OUTER])
            h = hash_function(m, fp_table_row(&m->lines, line)[FP_LINE_FUNCTION], h);
    }
    return h;
}

static void filtered(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    struct fp_filter *f = fp_filter_new(m, 1 + (int)options % 3);
    struct fp_batch *rows = fp_batch_copy(b);
    struct fp_err err;
    int status;
    while ((status = fp_filter_learn(f, &err)) == FP_NEEDS)
        fp_filter_answer(f, f->text_n ? f->text[0] & 1 : options >> 2 & 1);
    must(status == FP_DONE && fp_filter_batch(f, rows, &err) == FP_DONE);
    must(rows->n + f->left_out == b->n);
    fp_batch_free(rows);
    fp_filter_free(f);
}

static void renamed(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    struct fp_rename *r = fp_rename_new(m, 1 + (int)options % 3);
    struct fp_batch *rows = fp_batch_copy(b);
    struct fp_err err;
    int status;
    while ((status = fp_rename_batch(r, rows, &err)) == FP_NEEDS) {
        const uint8_t name[2] = {(uint8_t)('a' + (r->text_n ? r->text[0] : 0) % 3), 'x'};
        must(!fp_rename_answer(r, name, 1 + (options >> 2 & 1)));
    }
    must(status == FP_DONE && rows->n == b->n);
    same_values(b, rows);
    for (uint32_t i = 0; i < rows->n; i++) hash_row(m, rows, i);
    fp_batch_free(rows);
    fp_rename_free(r);
}

/* Each thread's time that passes within calls, up to its last row. */
static uint64_t time_of_calls(const struct fp_batch *b) {
    uint64_t sum = 0, last[256] = {0};
    uint32_t depth[256] = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t thread = b->thread[i] % 256;
        if (depth[thread]) sum += b->time[i] - last[thread];
        last[thread] = b->time[i];
        if (b->op[i] == FP_OP_ENTER || b->op[i] == FP_OP_ENTER_ARGS) depth[thread]++;
        if (b->op[i] == FP_OP_EXIT || b->op[i] == FP_OP_TAIL_EXIT) depth[thread]--;
    }
    return sum;
}

/* is_nested: calls of a timeline nest, so that the time within calls stays. */
static void transformed(struct fp_model *m, const struct fp_batch *b, uint32_t options, int is_nested) {
    enum { IDS = ROWS * 24 };
    uint8_t bits[3][IDS];
    for (uint32_t i = 0; i < IDS; i++)
        for (uint32_t k = 0; k < 3; k++) bits[k][i] = (uint8_t)(fp_mix(i + k, options) & 3);
    struct fp_transform *t = fp_transform_new(m);
    struct fp_batch *rows = fp_batch_copy(b);
    struct fp_err err;
    t->functions = (struct fp_mask){bits[0], IDS};
    t->frames = (struct fp_mask){bits[1], IDS};
    t->objects = (struct fp_mask){bits[2], options & 1 ? IDS : 0};
    t->recursion = options >> 1 & 1;
    if (b->view == FP_STACKS) {
        must(fp_transform_stacks(t, rows, &err) == FP_DONE && rows->n == b->n);
        same_values(b, rows);
        for (uint32_t i = 0; i < rows->n; i++) must(!b->stack[i] == !rows->stack[i]);
        for (uint32_t i = 0; i < rows->n; i++) hash_row(m, rows, i);
    } else if (b->view == FP_GRAPH) {
        must(fp_transform_graph(t, rows, &err) == FP_DONE);
        for (uint32_t i = 0; i < rows->n; i++) must(t->marks[i] != FP_TRANSFORM_DROPS || rows->kind[i] != FP_COST);
        fp_transform_keep(t, rows);
        for (uint32_t i = 0; i < rows->n; i++) hash_row(m, rows, i);
    } else {
        struct fp_batch *out = fp_batch_new(FP_TIMELINE, 4 * ROWS, 0);
        uint32_t from = 0;
        must(fp_transform_calls(t, b, &from, out, &err) == FP_DONE && from == b->n);
        must(fp_transform_end(t, out) == FP_DONE);
        if (is_nested) must(time_of_calls(out) == time_of_calls(b));
        fp_batch_free(out);
    }
    fp_batch_free(rows);
    fp_transform_free(t);
}

static void renumbered(const struct fp_model *m, const struct fp_batch *b) {
    struct fp_model *to = fp_model_new();
    struct fp_remap *r = fp_remap_new(m, to);
    struct fp_batch *rows = fp_batch_copy(b);
    struct fp_err err;
    must(fp_remap_batch(r, rows, &err) == FP_DONE && rows->n == b->n);
    for (uint32_t i = 0; i < rows->n; i++) must(hash_row(to, rows, i) == hash_row(m, b, i));
    fp_batch_free(rows);
    fp_remap_free(r);
    fp_model_free(to);
}

static void selected(struct program *g, const struct fp_batch *b) {
    uint8_t keep[32];
    for (uint32_t i = 0; i < sizeof keep; i++) keep[i] = take(g) & 1;
    const uint32_t what = take(g);
    const struct fp_mask mask = {keep, 1 + take(g) % sizeof keep}, all = {NULL, 0};
    const struct fp_select s = {.first_time = what & 1 ? number(g) : 0,
                                .last_time = what & 2 ? number(g) : UINT64_MAX,
                                .threads = what & 4 ? mask : all,
                                .labels = what & 8 ? mask : all,
                                .stacks = what & 16 ? mask : all,
                                .functions = what & 32 ? mask : all};
    struct fp_batch *rows = fp_batch_copy(b);
    const uint32_t from = b->n ? take(g) % b->n : 0;
    must(fp_select_rows(&s, rows, from) + rows->n == b->n && rows->n >= from);
    fp_batch_free(rows);
}

static int same_function(const struct fp_pair *p, uint32_t a, uint32_t b, int with_object) {
    const uint32_t *f = fp_table_row(&p->model->functions, a), *g = fp_table_row(&p->model->functions, b);
    return f[FP_FUNCTION_FILE] == g[FP_FUNCTION_FILE] && f[FP_FUNCTION_NAME] == g[FP_FUNCTION_NAME] &&
           (!with_object || f[FP_FUNCTION_OBJECT] == g[FP_FUNCTION_OBJECT]);
}

/* The first function of the other side, perhaps of both, with the object, file and name of one of one side; or 0. */
static uint32_t equal_function(const struct fp_pair *p, uint32_t function) {
    for (uint32_t i = 1; i < p->n_functions; i++)
        if (p->functions[i] & (3 ^ p->functions[function]) && same_function(p, function, i, 1)) return i;
    return 0;
}

static uint32_t line_of(const struct fp_pair *p, uint32_t function) {
    return fp_same_function(p->model, function).line;
}

/* The sides of those of the n members that have a line, and the first one of the new side. */
static uint32_t sides_of_line(const struct fp_pair *p, const uint32_t *members, uint32_t n, uint32_t line,
                              uint32_t *to) {
    uint32_t sides = 0;
    *to = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (line_of(p, members[k]) != line) continue;
        sides |= p->functions[members[k]];
        if (p->functions[members[k]] & 2 && !*to) *to = members[k];
    }
    return sides;
}

/* Where the k-th line that only one side has begins among the n members, which are in the order of their lines; n:
 * there is none. */
static uint32_t line_of_side(const struct fp_pair *p, const uint32_t *members, uint32_t n, uint32_t side, uint32_t k) {
    uint32_t to;
    for (uint32_t i = 0; i < n; i++) {
        if (i && line_of(p, members[i]) == line_of(p, members[i - 1])) continue;
        if (sides_of_line(p, members, n, line_of(p, members[i]), &to) == side && k-- == 0) return i;
    }
    return n;
}

/* What an old function is paired with: of the new functions with its object, file and name the first one; if either
 * side has several lines, the first one of its line or, if as many lines of one side alone are left on both sides, of
 * the line at the same place. */
static uint32_t counterpart(const struct fp_pair *p, uint32_t function) {
    enum { MOST = ROWS * 24 };
    uint32_t members[MOST], n = 0, lines[2] = {0}, has[2] = {0}, several = 0, to;
    for (uint32_t i = 1; i < p->n_functions && n < MOST; i++) {
        if (!p->functions[i] || !same_function(p, function, i, 1)) continue;
        for (uint32_t side = 0; side < 2; side++) {
            if (!(p->functions[i] & 1u << side)) continue;
            several |= has[side] && lines[side] != line_of(p, i);
            has[side] = 1;
            lines[side] = line_of(p, i);
        }
        uint32_t at = n++;
        for (; at && line_of(p, members[at - 1]) > line_of(p, i); at--) members[at] = members[at - 1];
        members[at] = i;
    }
    if (!several || !has[1]) return equal_function(p, function);
    if (sides_of_line(p, members, n, line_of(p, function), &to) == 3) return to;
    uint32_t left[2] = {0}, rank = 0;
    for (uint32_t side = 0; side < 2; side++)
        while (line_of_side(p, members, n, side + 1, left[side]) < n) left[side]++;
    if (left[0] != left[1]) return 0;
    while (line_of(p, members[line_of_side(p, members, n, 1, rank)]) != line_of(p, function)) rank++;
    sides_of_line(p, members, n, line_of(p, members[line_of_side(p, members, n, 2, rank)]), &to);
    return to;
}

static int is_alone(const struct fp_pair *p, uint32_t function) {
    const uint8_t sides = p->functions[function];
    return (sides == 1 || sides == 2) && !equal_function(p, function);
}

/* Whether a function that is alone has its name and file in common with one of the other side that is, too. */
static int resembles(const struct fp_pair *p, uint32_t function) {
    for (uint32_t i = 1; i < p->n_functions; i++)
        if (p->functions[i] == (3 ^ p->functions[function]) && same_function(p, function, i, 0) && is_alone(p, i))
            return 1;
    return 0;
}

/* The rows of a third of the functions or stacks are of the old profile, those of a third of the new one, and the
 * others of both. */
static void paired(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    enum { IDS = ROWS * 24 };
    uint8_t is_old[IDS], is_new[IDS];
    for (uint32_t i = 0; i < IDS; i++) {
        const uint64_t which = fp_mix(i, options) % 3;
        is_old[i] = which != 1;
        is_new[i] = which != 0;
    }
    struct fp_select of_old = {.last_time = UINT64_MAX}, of_new = of_old;
    of_old.functions = of_old.stacks = (struct fp_mask){is_old, IDS};
    of_new.functions = of_new.stacks = (struct fp_mask){is_new, IDS};
    struct fp_pair *p = fp_pair_new(m);
    struct fp_batch *old = fp_batch_copy(b), *new = fp_batch_copy(b);
    struct fp_err err;
    fp_select_rows(&of_old, old, 0);
    fp_select_rows(&of_new, new, 0);
    must(fp_pair_note(p, old, 0, &err) == FP_DONE && fp_pair_note(p, new, 1, &err) == FP_DONE);
    must(fp_pair_same(p, &err) == FP_DONE);
    for (uint32_t i = 1; i < p->n_functions; i++) {
        uint32_t left = 0;
        for (uint32_t k = 0; k < p->n_left; k++) left += p->left[k] == i;
        const uint32_t to = i < p->n_to_function ? p->to_function[i] : 0;
        must(to == (p->functions[i] == 1 ? counterpart(p, i) : 0));
        must(left <= (uint32_t)is_alone(p, i));
        if (is_alone(p, i) && resembles(p, i)) must(left);
    }
    must(fp_pair_frames(p) == FP_DONE && fp_pair_batch(p, old, &err) == FP_DONE);
    for (uint32_t i = 0; i < old->n; i++) hash_row(m, old, i);
    fp_batch_free(old);
    fp_batch_free(new);
    fp_pair_free(p);
}

/* Stacks grow by the frames of their labels or threads, and nothing else changes. */
static void tagged(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    const int by_thread = options >> 2 & 1;
    const uint32_t n_keys = by_thread ? m->threads.n : m->labels.n;
    struct fp_tag *t = fp_tag_new(m, by_thread);
    struct fp_batch *rows = fp_batch_copy(b);
    struct fp_err err;
    const uint32_t n_roots = options & 1, n_leaves = options >> 1 & 1, frame = m->frames.n > 1;
    for (uint32_t key = 0; key < n_keys; key++)
        must(!fp_tag_key(t, key, (uint32_t[]){frame, frame}, n_roots, n_leaves));
    must(fp_tag_batch(t, rows, &err) == FP_DONE && rows->n == b->n);
    same_values(b, rows);
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t depth = 0;
        for (uint32_t id = rows->stack[i]; id; id = fp_table_row(&m->stacks, id)[0]) depth++;
        for (uint32_t id = b->stack[i]; id; id = fp_table_row(&m->stacks, id)[0]) depth--;
        must(depth == n_roots + n_leaves);
    }
    fp_batch_free(rows);
    fp_tag_free(t);
}

/* ---- timelines ---- */

static void spans(const struct fp_model *m, const struct fp_batch *b, uint32_t room) {
    struct fp_spans *s = fp_spans_new(m, room);
    struct fp_err err;
    must(fp_spans_put(s, b, &err) == FP_DONE && fp_spans_end(s) == FP_DONE);
    must(s->n <= room);
    for (uint32_t i = 1; i < s->n; i++) must(s->spans[i - 1].thread <= s->spans[i].thread);
    const uint32_t most = s->n / 2;
    const struct fp_spans_columns to = {calloc(most + 1, 8), calloc(most + 1, 8), calloc(most + 1, 4),
                                        calloc(most + 1, 4), calloc(most + 1, 4)};
    uint64_t shortest;
    const uint32_t n = fp_spans_longest(s, most, &to, &shortest);
    must(n <= most);
    for (uint32_t i = 0; i < n; i++) must(to.durations[i] >= shortest);
    free(to.starts);
    free(to.durations);
    free(to.threads);
    free(to.functions);
    free(to.depths);
    fp_spans_free(s);
}

static void fitted(const struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    const uint32_t by = options % 3;
    struct fp_fit_timeline *f = fp_fit_timeline_new(m, (int)by, by == FP_FIT_TIMELINE_SLICES ? 1 + options / 8 : 0);
    struct fp_batch *rows = fp_batch_new(FP_TIMELINE, 1 + options % 7, 0);
    struct fp_err err;
    const uint64_t limit = options & 8 ? 64 * (uint64_t)(options >> 4) : UINT64_MAX / 4;
    fp_fit_timeline_size(f, limit, 10 + options % 5, 3, options & 1 ? 7 : 0);
    const int status = fp_fit_timeline_put(f, b, &err);
    must(status == FP_DONE || status == FP_E_OVERFLOW);
    uint64_t all = 0;
    for (uint32_t group = 0; status == FP_DONE && group < f->n_groups; group++) {
        const struct fp_fit_timeline_group *of = &f->groups[group];
        struct fp_window in = {of->packed.p, of->packed.n, 0, 0, 1};
        fp_fit_timeline_begin(f, group, fp_fit_timeline_rank(of, limit / 2));
        for (int taken = FP_FULL; taken == FP_FULL;) {
            taken = fp_fit_timeline_take(f, group, &in, rows);
            must(taken == FP_FULL || taken == FP_DONE);
            all += rows->n;
            fp_batch_reset(rows);
        }
    }
    /* slices add begins and ends of calls */
    if (status == FP_DONE && by != FP_FIT_TIMELINE_SLICES) must(all <= b->n);
    fp_batch_free(rows);
    fp_fit_timeline_free(f);
}

/* ---- stacks ---- */

static void trimmed(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    static const uint32_t columns[VALUES] = {0, 1};
    struct fp_fit_stacks *t = fp_fit_stacks_new(m, options & 1);
    struct fp_err err;
    must(fp_fit_stacks_put(t, b, &err) == FP_DONE);
    uint64_t sums[VALUES] = {0}, expected[VALUES] = {0};
    add_values(b, expected);
    for (uint32_t group = 0; group < t->n_groups; group++) {
        const struct fp_fit_stacks_group *of = &t->groups[group];
        struct fp_batch *rows = fp_batch_new(FP_STACKS, ROWS, VALUES);
        struct fp_window in = {of->packed.p, of->packed.n, 0, 0, 1};
        double totals[VALUES] = {0}, pruned[VALUES] = {0};
        fp_fit_stacks_begin(t, group);
        must(fp_fit_stacks_take(t, group, &in, rows) == FP_DONE);
        fp_fit_stacks_total(rows, columns, totals);
        must(!fp_fit_stacks_weigh_begin(t));
        fp_fit_stacks_weigh(t, rows, columns, totals, VALUES);
        fp_fit_stacks_weighed(t, 20, 10, 5);
        const uint32_t least = options >> 1 & 1 ? FP_FIT_STACKS_RANKS - options % 64 : options * 4;
        must(fp_fit_stacks_share(least) >= 0 && !fp_fit_stacks_cut(t, least) &&
             !fp_fit_stacks_batch(t, rows, columns, pruned));
        add_values(rows, sums);
        for (uint32_t i = 0; i < rows->n; i++) must(rows->stack[i] < m->stacks.n);
        fp_batch_free(rows);
    }
    must(!memcmp(sums, expected, sizeof sums));
    fp_fit_stacks_free(t);
}

/* The costs of contexts in samples with labels equal those of the rows with labels.  `times` the rows were added, but
 * their labels once: if all have the same, it has what contexts cost. */
static void must_have_labels(const struct fp_contexts *c, const struct fp_batch *b, uint64_t times) {
    const struct fp_context_labels *l = &c->labels;
    uint64_t sums[VALUES] = {0}, expected[VALUES] = {0};
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t k = 0; b->label[i] && k < VALUES; k++) expected[k] += (uint64_t)b->values[(size_t)k * b->cap + i];
    for (uint32_t i = 0; l->set && i < c->n; i++)
        for (uint32_t k = 0; l->set[i] && k < VALUES; k++) sums[k] += (uint64_t)c->self[(size_t)k * c->n + i];
    for (uint32_t i = 0; i < l->n_entries; i++) {
        must(l->entry_context[i] < c->n && (!i || l->entry_context[i] >= l->entry_context[i - 1]));
        for (uint32_t k = 0; k < VALUES && !l->set[l->entry_context[i]]; k++)
            sums[k] += (uint64_t)l->entry_self[(size_t)k * l->n_entries + i];
    }
    for (uint32_t k = 0; k < VALUES; k++) must(sums[k] == expected[k] * (l->differ ? 1 : times));
}

/* Samples in order of time have contexts, and of all of them the costs of the contexts. */
static void must_have_times(const struct fp_contexts *c, const struct fp_batch *b, uint32_t column) {
    const struct fp_context_times *t = &c->times;
    uint64_t *times = malloc(((size_t)t->n + 1) * sizeof *times), sum = 0, expected = 0;
    int64_t *values = malloc(((size_t)t->n + 1) * sizeof *values);
    uint32_t *at = malloc(((size_t)t->n + 1) * sizeof *at), step = 0, thread = FP_NO_ID;
    const struct fp_context_times_columns to = {times, values, at};
    const uint32_t n = fp_context_times_take(t, column, t->n, &to, &step);
    must(n <= t->n && n <= t->room && step == 1 && n <= fp_context_times_count(t, column));
    for (uint32_t i = 0; i < n; i++) {
        must(at[i] < c->n && (!i || c->thread[at[i]] != thread || thread == FP_NO_ID || times[i] >= times[i - 1]));
        thread = c->thread[at[i]];
        sum += (uint64_t)values[i];
    }
    for (uint32_t i = 0; i < b->n; i++)
        if (b->time[i]) expected += (uint64_t)b->values[(size_t)column * b->cap + i];
    must(n < fp_context_times_count(t, column) || column || sum == expected);
    must(fp_context_times_take(t, column, 1, &to, &step) <= n);
    free(times);
    free(values);
    free(at);
}

static void contexts(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    static const uint32_t columns[VALUES] = {0, 1};
    struct fp_project *s = fp_project_new(m, options & 1, options >> 1 & 1);
    struct fp_contexts *c = fp_contexts_new();
    struct fp_first_lines lines = {0};
    struct fp_err err;
    uint64_t sums[VALUES] = {0}, expected[VALUES] = {0};
    add_values(b, expected);
    must(fp_project_set_values(s, VALUES) == 0);
    int status = fp_project_put(s, b, columns, &err);
    if (status == FP_DONE) status = fp_context_labels_put(&c->labels, s, b, columns, &err);
    c->times.room = options & 32 ? 3 : 1000;
    if (status == FP_DONE) must(fp_context_times_put(&c->times, s, b, columns, 0) == FP_DONE);
    if (status == FP_DONE) status = fp_project_end(s, &err);
    if (status == FP_DONE) must(fp_first_lines_stacks(&lines, s) == FP_DONE);
    const uint32_t most = options & 16 ? 4 : 1000;
    for (int full = FP_FULL; full == FP_FULL && status == FP_DONE;) {
        full = fp_contexts_add(c, s, most, &err);
        status = full == FP_FULL ? fp_contexts_shrink(c, 2, &err) : full;
    }
    if (status == FP_DONE && options & 4) status = fp_contexts_shrink(c, 1 + options % 9, &err);
    if (status == FP_DONE && options & 8) status = fp_contexts_add(c, s, 10000, &err); /* there are up to 1,200 */
    if (status == FP_DONE) status = fp_contexts_end(c, &err);
    for (uint32_t cut = 0; status == FP_DONE && cut < 2; cut++) {
        status = fp_contexts_cut(c, cut ? options / 512.0 : 0, cut ? 1 + options % 16 : 1000, &err);
        if (status != FP_DONE) break;
        memset(sums, 0, sizeof sums);
        for (uint32_t i = 0; i < c->n; i++) {
            must(c->up[i] <= i);
            for (uint32_t k = 0; k < VALUES; k++) sums[k] += (uint64_t)c->self[(size_t)k * c->n + i];
        }
        for (uint32_t k = 0; k < VALUES; k++) must(sums[k] == expected[k] * (options & 8 ? 2 : 1));
        must_have_labels(c, b, options & 8 ? 2 : 1);
        for (uint32_t k = 0; k < VALUES; k++) must_have_times(c, b, k);
    }
    must(status == FP_DONE || status == FP_E_OVERFLOW);
    fp_first_lines_clear(&lines);
    fp_contexts_free(c);
    fp_project_free(s);
}

/* ---- graphs ---- */

static void top(const struct fp_model *m, const struct fp_batch *b, int by) {
    struct fp_top_sums c = {0}, calls = {0};
    struct fp_table places = {0};
    struct fp_first_lines lines = {0};
    struct fp_err err;
    uint64_t expected = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < b->n; i++) expected += b->kind[i] == FP_COST ? (uint64_t)b->values[i] : 0;
    must(!fp_table_init(&places, 3) && fp_first_lines_graph(&lines, m, b, &err) == FP_DONE);
    int status = fp_top_graph(&c, m, b, by, 0, 1, by & 1 ? 1 : -1, &places, &err);
    if (status == FP_DONE) status = fp_top_sums_add(&calls, b->function, b->values, b->values + b->cap, b->n, &err);
    if (status == FP_DONE) status = fp_top_sums_sum(&c, c.self, &sum, &err);
    if (status == FP_DONE) must((uint64_t)sum == expected);
    must(status == FP_DONE || status == FP_E_OVERFLOW);
    fp_first_lines_clear(&lines);
    fp_table_clear(&places);
    fp_top_sums_clear(&c);
    fp_top_sums_clear(&calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct program program = {data, data + (n < 4096 ? n : 4096)}, *g = &program;
    struct fp_model *m = fp_model_new();
    const uint32_t view = FP_TIMELINE + take(g) % 3, options = take(g), more = take(g);
    struct fp_batch *b = fp_batch_new(view, ROWS, view == FP_TIMELINE ? 0 : VALUES);
    fill_model(g, m, 0);
    if (view == FP_TIMELINE) {
        fill_timeline(g, m, b, ROWS);
        struct fp_batch *calls = nested(b, options & 1 ? 3000000000 : 1000000000);
        spans(m, b, 2 + options % 16);
        if (calls) fitted(m, calls, more);
        if (calls) transformed(m, calls, more, 1);
        fp_batch_free(calls);
    } else if (view == FP_STACKS) {
        fill_samples(g, m, b, 0);
        trimmed(m, b, more);
        tagged(m, b, more);
        contexts(m, b, options);
    } else {
        fill_graph(g, m, b);
        top(m, b, 1 + (int)options % 3);
    }
    selected(g, b);
    if (view != FP_TIMELINE) {
        renumbered(m, b);
        paired(m, b, more);
    }
    filtered(m, b, options);
    renamed(m, b, options);
    transformed(m, b, more, 0);
    fp_batch_free(b);
    fp_model_free(m);
    return 0;
}
