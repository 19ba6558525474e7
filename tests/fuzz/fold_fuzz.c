/* Fuzz target: the stack machine.  Four bytes of input are a record of a timeline, in any order that a damaged log
 * might have; the last two choose options.  Checked besides memory: time and calls do not depend on how costs are
 * grouped, or on whether arcs or call paths are kept; rows do not depend on spilled call paths; several folds, each of
 * some threads, have the same result together.
 */
#include <stdint.h>
#include <stdlib.h>

#include "bridges/fold/arc_runs.h"
#include "bridges/fold/durations.h"
#include "bridges/fold/fold.h"
#include "ends/contexts.h"
#include "ends/top.h"
#include "core/buf.h"
#include "core/shares.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ROWS = 16, FUNCTIONS = 12, THREADS = 3, RECORD = 4, RUNS = 150 };
enum { JOIN = 256, ONCE = 512 }; /* of `spill` */

struct totals {
    uint64_t ticks, calls;
    uint64_t rows; /* a hash of all rows, in order */
    int status;
    struct fp_fold_stats stats;
    uint64_t first, last;
};

static struct fp_model *new_model(void) {
    struct fp_model *m = fp_model_new();
    for (uint8_t i = 0; i < FUNCTIONS; i++) {
        uint8_t letter = (uint8_t)('a' + i);
        fp_model_function(m, 0, 0, fp_strings_intern(&m->strings, &letter, 1), 0, 0);
    }
    for (uint32_t i = 1; i <= THREADS; i++) fp_model_thread(m, 0, i / 2, i);
    return m;
}

/* Reads records from data[0] on, as many as fit; returns the bytes used.
 *   bits 0..2 op, 3..4 thread, 5..7 CPU | function | ticks since the record before | 255: times 2^52, or back */
static size_t fill(const uint8_t *data, size_t n, uint64_t *now, struct fp_batch *b) {
    size_t at = 0;
    fp_batch_reset(b);
    for (; at + RECORD <= n && b->n < b->cap; at += RECORD, b->n++) {
        const uint8_t *r = data + at;
        uint64_t step = r[2];
        if (r[3] == 255) step <<= 52;
        *now = r[3] == 254 && step < *now ? *now - step : *now + step;
        b->op[b->n] = r[0] & 7;
        b->thread[b->n] = 1 + (r[0] >> 3 & 3) % THREADS;
        b->cpu[b->n] = r[0] >> 5;
        b->function[b->n] = 1 + r[1] % FUNCTIONS;
        b->time[b->n] = *now;
        b->aux[b->n] = 0;
    }
    return at;
}

/* Spilled runs of contexts. */
struct away {
    struct fp_buf runs[RUNS];
    uint32_t n;
};

static void write_away(struct fp_fold *f, struct away *away, uint32_t step) {
    struct fp_buf *run = &away->runs[away->n++];
    size_t got;
    if (fp_fold_rank(f) || fp_fold_link(f)) abort();
    do {
        if (fp_buf_reserve(run, step)) abort();
        run->n += got = fp_fold_pull_tree(f, run->p + run->n, step);
    } while (got);
}

/* Shows `step` more bytes of a run; p is the whole run. */
static void refill(struct fp_window *in, const struct fp_buf *run, uint32_t step) {
    in->p = run->p;
    in->eof = in->n == run->n;
    in->n = run->n - in->n < step ? run->n : in->n + step;
}

static uint64_t mix(uint64_t hash, uint64_t v) {
    return (hash ^ v) * 0x100000001b3u;
}

/* A hash of a stack and its group. */
static uint64_t hash_of(const struct fp_model *m, const struct fp_batch *b, uint32_t row) {
    uint64_t hash = 0;
    for (uint32_t at = b->stack[row]; at; at = fp_table_row(&m->stacks, at)[FP_STACK_PARENT])
        hash = mix(hash, fp_table_row(&m->stacks, at)[FP_STACK_FRAME]);
    const uint32_t *thread = fp_table_row(&m->threads, b->thread[row]);
    hash = mix(mix(hash, thread[FP_THREAD_PID]), thread[FP_THREAD_TID]);
    return mix(mix(hash, b->label[row]), b->label[row] ? fp_table_row(&m->labels, b->label[row])[FP_LABEL_STRING] : 0);
}

/* Adds the rows of merged runs. */
static void add_rows(struct fp_fold *f, struct away *away, int spill, struct totals *t) {
    struct fp_batch *out = fp_batch_new(FP_STACKS, 5, 2);
    struct fp_err err;
    if (spill & JOIN && away->n > 1) { /* all runs become one */
        struct fp_fold_tree *tree = fp_fold_tree_new(f, away->n);
        struct fp_buf joined = {0};
        size_t got;
        for (int status = FP_FULL; status != FP_DONE;) {
            if (fp_buf_reserve(&joined, 64)) abort();
            status = fp_fold_tree_pull(tree, joined.p + joined.n, 64, &got, &err);
            if (status < 0) abort();
            joined.n += got;
            if (status == FP_MORE) refill(&tree->runs[tree->to_refill], &away->runs[tree->to_refill], 40);
        }
        fp_fold_tree_free(tree);
        for (uint32_t i = 0; i < away->n; i++) fp_buf_free(&away->runs[i]);
        memset(away, 0, sizeof *away);
        away->runs[away->n++] = joined;
    }
    struct fp_fold_tree *tree = fp_fold_tree_new(f, away->n);
    tree->once = spill & ONCE;
    for (int status = FP_FULL; status != FP_DONE && status >= 0;) {
        if (spill & ONCE && f->model->stacks.n > 7) fp_model_empty_stacks(f->model);
        while ((status = fp_fold_stacks(tree, 0, out, &err)) == FP_MORE)
            refill(&tree->runs[tree->to_refill], &away->runs[tree->to_refill], 33);
        if (status < 0) t->status = status;
        for (uint32_t i = 0; i < out->n; i++) {
            if (out->values[i] < 0 || out->values[out->cap + i] < 0) abort();
            if (!out->label[i] != !(f->by & FP_FOLD_BY_CPU) || !out->thread[i] != !(f->by & FP_FOLD_BY_THREAD)) abort();
            t->ticks += (uint64_t)out->values[i];
            t->calls += (uint64_t)out->values[out->cap + i];
            t->rows = mix(mix(t->rows, (uint64_t)out->values[i]), (uint64_t)out->values[out->cap + i]);
            t->rows = mix(t->rows, hash_of(f->model, out, i));
        }
        fp_batch_reset(out);
    }
    fp_fold_tree_free(tree);
    fp_batch_free(out);
}

static struct fp_merge *merge_of(uint64_t *words, size_t n, uint32_t width) {
    struct fp_merge *merge = fp_merge_new(1, width);
    merge->runs[0] = (struct fp_run){width, words, n, 0, 1};
    return merge;
}

/* Arcs summed in two ranges of their keys, each half of them in its own run, equal the arcs in order.
 */
static void sum_in_ranges(const struct fp_fold *f, const uint64_t *arcs, size_t n) {
    const size_t room = 3 * FP_ARC_WIDTH;
    const uint64_t *middle = arcs + n / FP_ARC_WIDTH / 2 * FP_ARC_WIDTH;
    const size_t packed = n / FP_ARC_WIDTH * FP_ARC_PACKED;
    uint64_t *again = malloc((n + room) * sizeof *again);
    uint8_t *runs = malloc(packed + FP_ARC_SLACK);
    struct fp_arc_block *blocks = malloc((1 + packed / FP_ARC_BLOCK) * sizeof *blocks);
    struct fp_arc_sums *sums = fp_arc_sums_new(f->n_functions);
    struct fp_err err;
    if (!again || !runs || !blocks || !sums) abort();
    size_t nbytes[2] = {0, 0}, total = 0, got;
    uint32_t n_blocks;
    for (size_t half = 0, at = 0; half < 2; at += nbytes[half++]) {
        struct fp_arc_pack pack = {0};
        for (size_t i = half * FP_ARC_WIDTH; i < n; i += 2 * FP_ARC_WIDTH)
            nbytes[half] += fp_arc_pack(&pack, arcs + i, FP_ARC_WIDTH, runs + at + nbytes[half], blocks, &n_blocks);
        if (pack.nbytes != nbytes[half]) abort();
    }
    for (int high = 0; n && high < 2; high++) {
        if (fp_arc_sums_begin(sums, runs, nbytes, 2, high ? middle : NULL, high ? NULL : middle, &err)) abort();
        do {
            if (fp_arc_sums_pull(sums, again + total, room, &got, &err) != FP_DONE) abort();
            if ((total += got) > n) abort();
        } while (got);
    }
    if (total != n || (n && memcmp(arcs, again, n * sizeof *arcs))) abort();
    fp_arc_sums_free(sums);
    free(again);
    free(blocks);
    free(runs);
}

/* The rows of all groups of a graph; `t` gets the sums of its nodes. */
static void add_graph(struct fp_fold *f, struct totals *t) {
    const size_t room = (size_t)(f->n_arcs + 1) * FP_ARC_WIDTH * 2;
    uint64_t *nodes = malloc(room * sizeof *nodes), *arcs = malloc(room * sizeof *arcs), ticks = 0, calls = 0;
    size_t n_nodes = 0, n_arcs = 0, got;
    struct fp_err err;
    if (fp_fold_order(f, 0)) abort();
    while ((got = fp_fold_pull_nodes(f, nodes + n_nodes, 3 * FP_NODE_WIDTH)))
        if ((n_nodes += got) + 3 * FP_NODE_WIDTH > room) abort(); /* a function of a group is called by an arc */
    while ((got = fp_fold_pull_arcs(f, arcs + n_arcs, room - n_arcs))) n_arcs += got;
    for (size_t i = 0; i < n_nodes; i += FP_NODE_WIDTH) {
        t->ticks += nodes[i + 2];
        t->calls += nodes[i + 3];
    }
    sum_in_ranges(f, arcs, n_arcs);
    struct fp_fold_out all = {.model = f->model, .nodes = merge_of(nodes, n_nodes, FP_NODE_WIDTH)};
    struct fp_fold_out o = {.model = f->model,
                            .nodes = merge_of(nodes, n_nodes, FP_NODE_WIDTH),
                            .arcs = merge_of(arcs, n_arcs, FP_ARC_WIDTH)};
    struct fp_batch *out = fp_batch_new(FP_GRAPH, 5, 2);
    int status;
    while ((status = fp_fold_totals(&all, &err)) == FP_FULL) {
        uint64_t group[2] = {0, 0};
        int rows;
        do {
            rows = fp_fold_graph(&o, out, &err);
            for (uint32_t i = 0; rows >= 0 && i < out->n; i++)
                for (uint32_t k = 0; k < 2 && out->kind[i] == FP_COST; k++)
                    group[k] += (uint64_t)out->values[k * out->cap + i];
            fp_batch_reset(out);
        } while (rows == FP_FULL);
        if (rows != FP_DONE) break; /* the inclusive cost of an arc is too large */
        if (memcmp(group, all.total, sizeof group)) abort();
        ticks += all.total[FP_FOLD_TIME];
        calls += all.total[FP_FOLD_CALLS];
    }
    if (status == FP_DONE && (ticks != t->ticks || calls != t->calls)) abort();
    fp_batch_free(out);
    fp_merge_free(all.nodes);
    fp_merge_free(o.nodes);
    fp_merge_free(o.arcs);
    free(nodes);
    free(arcs);
}

/* A page's contexts of the tree: the totals stay, whatever is cut. */
static void take_contexts(const struct fp_fold *f, int spill) {
    struct fp_contexts *c = fp_contexts_new();
    struct fp_err err;
    uint64_t calls = 0, kept = 0;
    if (!c) abort();
    int status = FP_DONE;
    for (int times = 0; times < 2 && status == FP_DONE; times++) {
        status = fp_contexts_take(c, f, &err);
        if (status == FP_DONE && spill & 1) status = fp_contexts_shrink(c, 3, &err);
    }
    if (status == FP_DONE) status = fp_contexts_scale(c, 3, &err);
    if (status == FP_DONE) status = fp_contexts_end(c, &err);
    if (status == FP_DONE) status = fp_contexts_cut(c, 0, (uint32_t)spill & 7, &err);
    for (uint32_t i = 0; i < f->n_arcs; i++) calls += 2 * f->arcs[i].calls;
    for (uint32_t i = 0; status == FP_DONE && i < c->n; i++) kept += (uint64_t)c->self[(size_t)c->n + i];
    if (status == FP_DONE && kept != calls) abort();
    fp_contexts_free(c);
}

/* `spill`: bits JOIN, ONCE, and a mask of the batches after which to spill. */
static struct totals fold(const uint8_t *data, size_t n, int into, int by, int spill) {
    struct fp_model *m = new_model();
    struct fp_fold *f = fp_fold_new(m, into, by);
    struct fp_batch *in = fp_batch_new(FP_TIMELINE, ROWS, 0);
    struct totals t = {.status = FP_DONE};
    struct away away = {0};
    struct fp_err err;
    uint64_t now = 0;
    int nth = 0;
    for (size_t used; t.status == FP_DONE && n >= RECORD; data += used, n -= used) {
        used = fill(data, n, &now, in);
        if (fp_fold_register(f, NULL)) abort();
        t.status = fp_fold_put(f, in, &err);
        if (into == FP_FOLD_TREE && spill >> (nth++ % 8) & 1 && away.n < RUNS - 1) {
            write_away(f, &away, 30 + used % 50);
            if (fp_fold_drop_spilled(f)) abort();
        }
    }
    if (t.status == FP_DONE) t.status = fp_fold_end(f, &err);
    if (t.status == FP_DONE && by & FP_FOLD_INCLUSIVE) {
        const struct fp_fold_out o = {.model = m};
        struct fp_top_sums c = {0};
        const int status = fp_top_timeline(f, &o, (uint32_t)n & 1, &c, &err);
        for (uint32_t i = 0; status == FP_DONE && i < c.cap; i++)
            if (c.inclusive[i] < 0) abort();
        fp_top_sums_clear(&c);
    }
    if (t.status == FP_DONE && into == FP_FOLD_TREE) take_contexts(f, spill);
    if (t.status == FP_DONE && into == FP_FOLD_ARCS) add_graph(f, &t);
    if (t.status == FP_DONE && into == FP_FOLD_TREE) {
        write_away(f, &away, 1000);
        add_rows(f, &away, spill, &t);
    }
    t.stats = f->stats;
    t.first = f->first_time;
    t.last = f->last_time;
    for (uint32_t i = 0; i < away.n; i++) fp_buf_free(&away.runs[i]);
    fp_batch_free(in);
    fp_fold_free(f);
    fp_model_free(m);
    return t;
}

/* The result of two folds, each of some of the threads, joined by a third. */
static struct totals divided(const uint8_t *data, size_t n, int by) {
    struct fp_model *m = new_model();
    struct fp_shares shares = {.n = 2};
    struct fp_fold *whole = fp_fold_new(m, FP_FOLD_ARCS, by), *folds[2];
    struct fp_batch *in = fp_batch_new(FP_TIMELINE, ROWS, 0);
    struct totals t = {.status = FP_DONE};
    struct fp_err err;
    uint64_t now = 0, words[8 * FP_NODE_WIDTH];
    for (uint32_t i = 0; i < 2; i++) {
        folds[i] = fp_fold_new(m, FP_FOLD_ARCS, by);
        folds[i]->shares = &shares;
        folds[i]->share = i;
    }
    if (fp_fold_register(whole, NULL)) abort();
    for (size_t used; t.status == FP_DONE && n >= RECORD; data += used, n -= used) {
        used = fill(data, n, &now, in);
        if (fp_fold_rescale(in, 3, 3, &err)) abort();
        uint8_t wanted[2] = {0, 0};
        uint32_t next = 0;
        for (uint32_t thread; (thread = fp_fold_shares(in, &shares, wanted, &next)) != FP_NO_ID;)
            fp_shares_assign(&shares, thread, 1);
        for (uint32_t i = 0; i < 2 && t.status == FP_DONE; i++) {
            if (!wanted[i]) continue;
            if (fp_fold_register(folds[i], whole)) abort();
            t.status = fp_fold_put(folds[i], in, &err);
        }
    }
    for (uint32_t i = 0; i < 2 && t.status == FP_DONE; i++) {
        if (fp_fold_register(folds[i], whole)) abort();
        t.status = fp_fold_end(folds[i], &err);
        if (t.status == FP_DONE) t.status = fp_fold_join(whole, folds[i], &err);
    }
    if (t.status == FP_DONE) t.status = fp_fold_end(whole, &err);
    for (uint32_t i = 0; i < 2 && t.status == FP_DONE; i++) {
        if (fp_fold_order(folds[i], 0)) abort();
        for (size_t got; (got = fp_fold_pull_nodes(folds[i], words, 8 * FP_NODE_WIDTH));)
            for (size_t k = 0; k < got; k += FP_NODE_WIDTH) {
                t.ticks += words[k + 2];
                t.calls += words[k + 3];
            }
    }
    t.stats = whole->stats;
    t.first = whole->first_time;
    t.last = whole->last_time;
    for (uint32_t i = 0; i < 2; i++) fp_fold_free(folds[i]);
    fp_fold_free(whole);
    fp_batch_free(in);
    fp_model_free(m);
    return t;
}

/* Histograms: each byte adds many calls of a function with one duration, so that counts carry; then twice as many. */
static void durations(const uint8_t *data, size_t n) {
    enum { FEW = 4, SHORT = 64, MOST = 6 };
    uint64_t calls[FEW][SHORT] = {{0}};
    struct fp_durations *once = NULL, *twice = NULL;
    fp_durations_begin(&once);
    fp_durations_begin(&twice);
    fp_durations_room(once, FEW);
    for (size_t i = 0; i < n && i < MOST; i++) {
        for (uint32_t k = 0; k <= data[i]; k++) fp_durations_add(once, data[i] % FEW, data[i] / FEW);
        calls[data[i] % FEW][data[i] / FEW] += data[i] + 1u;
    }
    fp_durations_end(once);
    fp_durations_join(twice, once);
    fp_durations_join(twice, once);
    for (uint32_t function = 0; function < FEW; function++)
        for (uint32_t duration = 0; duration < SHORT; duration++) {
            const uint32_t key[] = {function, duration / FP_DURATIONS_PAGE}, place = duration % FP_DURATIONS_PAGE;
            const uint32_t row = fp_table_find(&twice->pages, key);
            if ((row ? fp_durations_count(twice, row, place) : 0) != 2 * calls[function][duration]) abort();
        }
    fp_durations_free(once);
    fp_durations_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const int by[] = {0, FP_FOLD_BY_THREAD, FP_FOLD_BY_CPU | FP_FOLD_BY_NAME,
                             FP_FOLD_BY_THREAD | FP_FOLD_BY_CPU};
    if (n < 2) return 0;
    const int spill = data[n - 1] | (data[n - 2] >> 4 & 3) << 8, i = (data[n - 2] & 15) % 5;
    n = n - 2 < 512 ? n - 2 : 512; /* switches of threads and CPUs take time linear in the depth */
    durations(data, n);
    const struct totals first = fold(data, n, FP_FOLD_ARCS, 0, 0);
    const struct totals shared = divided(data, n, spill & 1 ? FP_FOLD_INCLUSIVE : 0);
    if (first.status == FP_DONE && shared.status == FP_DONE &&
        (first.ticks != shared.ticks || first.calls != shared.calls || first.first != shared.first ||
         first.last != shared.last || memcmp(&first.stats, &shared.stats, sizeof first.stats)))
        abort();
    const int into = i < 4 ? FP_FOLD_TREE : FP_FOLD_ARCS;
    const struct totals t = fold(data, n, into, i < 4 ? by[i] : FP_FOLD_BY_THREAD | FP_FOLD_INCLUSIVE, 0);
    if (i < 4) { /* rows do not depend on spills */
        const struct totals again = fold(data, n, into, by[i], spill);
        if (again.status != t.status || (t.status == FP_DONE && again.rows != t.rows)) abort();
    }
    /* a sum that is too large in one may be two that fit in another */
    if (t.status != FP_DONE || first.status != FP_DONE) return 0;
    if (t.ticks != first.ticks || t.calls != first.calls) abort();
    return 0;
}
