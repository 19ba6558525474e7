/* Fuzz target: sums of graph rows.  The input is a program that fills a model and batches of rows.
 * Checked besides memory: every total is kept, rows ascend, spilling sorted runs changes nothing, and moving functions
 * gives the rows of batches in which they are replaced.
 */
#include <stdint.h>
#include <stdlib.h>

#include "bridges/sums/aggregate.h"
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { VALUES = 3, ROWS = 48, RUN_BYTES = 1 << 14 };

static uint32_t long_name(struct program *g, struct fp_model *m) {
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaa";
    const uint32_t byte = take(g);
    char letters[25];
    memcpy(letters, text, sizeof letters);
    letters[byte % 7] = (char)(byte / 7);
    return fp_strings_intern(&m->strings, letters, byte % 24);
}

struct totals {
    int64_t of[2][VALUES]; /* self, inclusive */
    uint64_t count, count2;
    int overflow;
};

static void add(struct totals *t, const struct fp_batch *b, const uint32_t *columns, int lines) {
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t kind = b->kind[i];
        if (kind == FP_BLOCK || (lines && kind != FP_COST)) continue;
        if (kind != FP_COST) {
            t->overflow |= __builtin_add_overflow(t->count, b->count[i], &t->count);
            if (kind == FP_JCND) t->overflow |= __builtin_add_overflow(t->count2, b->count2[i], &t->count2);
        }
        if (kind > FP_CALL) continue;
        for (uint32_t k = 0; k < b->n_values; k++) {
            int64_t *sum = &t->of[kind][columns[k]];
            t->overflow |= __builtin_add_overflow(*sum, b->values[(size_t)k * b->cap + i], sum);
        }
    }
}

/* The whole output, summed and hashed.  Runs are read through windows of the minimum size. */
static int pull(struct fp_aggregate *a, struct fp_batch *out, uint8_t **runs, const size_t *lengths, struct totals *t,
                uint64_t *hash) {
    static const uint32_t columns[VALUES] = {0, 1, 2};
    size_t at[FP_AGGREGATE_RUNS] = {0};
    struct fp_err err;
    int status;
    fp_batch_reset(out);
    while ((status = fp_aggregate_pull(a, out, &err)) > 0) {
        if (status == FP_MORE) {
            struct fp_aggregate_window *w = &a->windows[a->to_refill];
            const uint32_t run = a->to_refill;
            if (!w->p) {
                w->cap = fp_aggregate_room(a);
                if (!(w->p = malloc(w->cap + 8))) abort();
            }
            memmove(w->p, w->p + w->pos, w->n - w->pos);
            w->n -= w->pos;
            w->pos = 0;
            size_t more = w->cap - w->n;
            if (more > lengths[run] - at[run]) more = lengths[run] - at[run];
            memcpy(w->p + w->n, runs[run] + at[run], more);
            w->n += more;
            at[run] += more;
            w->eof = at[run] == lengths[run];
            continue;
        }
        add(t, out, columns, 0);
        for (uint32_t i = 0; i < out->n; i++) {
            *hash = fp_mix(*hash ^ out->kind[i], out->function[i] ^ (uint64_t)out->file[i] << 32);
            *hash = fp_mix(*hash ^ out->line[i], out->address[i] ^ out->bb[i] << 7 ^ out->count[i] << 13);
            *hash = fp_mix(*hash ^ out->callee[i], out->target_address[i] ^ out->count2[i]);
            for (uint32_t k = 0; k < out->n_values; k++)
                *hash = fp_mix(*hash, (uint64_t)out->values[(size_t)k * out->cap + i]);
        }
        fp_batch_reset(out);
    }
    if (!status) {
        add(t, out, columns, 0);
        for (uint32_t i = 0; i < out->n; i++) {
            *hash = fp_mix(*hash ^ out->kind[i], out->function[i] ^ (uint64_t)out->file[i] << 32);
            *hash = fp_mix(*hash ^ out->line[i], out->address[i] ^ out->bb[i] << 7 ^ out->count[i] << 13);
            *hash = fp_mix(*hash ^ out->callee[i], out->target_address[i] ^ out->count2[i]);
            for (uint32_t k = 0; k < out->n_values; k++)
                *hash = fp_mix(*hash, (uint64_t)out->values[(size_t)k * out->cap + i]);
        }
    }
    return status;
}

/* The function that another one moves to; 0: none. */
static uint32_t target_of(uint32_t function) {
    return function & 1 && function > 1 ? function - 1 : 0;
}

/* Rows in their function's own file, which may be moved; with `replaced`, rows as they are after it. */
static void in_own_file(const struct fp_model *m, struct fp_batch *b, int replaced) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (replaced && target_of(b->function[i])) b->function[i] = target_of(b->function[i]);
        b->file[i] = fp_table_row(&m->functions, b->function[i])[FP_FUNCTION_FILE];
    }
}

static int move_functions(struct fp_aggregate *a, struct fp_err *err) {
    const uint32_t n = a->model->functions.n;
    uint32_t *to = malloc(n * sizeof *to);
    if (!to) abort();
    for (uint32_t f = 0; f < n; f++) to[f] = target_of(f);
    const int status = fp_aggregate_move(a, to, n, err);
    free(to);
    return status;
}

/* Adds the program's batches; with `spilling` each becomes a run of its own. */
static int summed(const uint8_t *data, size_t n, int spilling, struct totals *before, struct totals *after,
                  uint64_t *hash) {
    struct program program = {data, data + n}, *g = &program;
    struct fp_model *m = fp_model_new();
    struct fp_batch *b = fp_batch_new(FP_GRAPH, ROWS, VALUES), *out = fp_batch_new(FP_GRAPH, 7, VALUES);
    if (!m || !b || !out) abort();
    const uint32_t how = take(g);
    const int moving = (how & 3) == 2;
    for (uint32_t ops = take(g) % 24; ops--;) {
        const uint32_t object = fp_model_object(m, long_name(g, m), 0), file = long_name(g, m),
                       called = long_name(g, m);
        fp_model_function(m, object * (take(g) & 1), file, called, take(g) % 2 ? long_name(g, m) : 0, take(g) % 3);
    }
    struct fp_aggregate *a = fp_aggregate_new(m, how & 1);
    static const uint32_t columns[3][VALUES] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
    uint8_t *runs[FP_AGGREGATE_RUNS] = {0};
    size_t lengths[FP_AGGREGATE_RUNS] = {0};
    uint32_t n_runs = 0;
    struct fp_err err;
    int status = 0;
    for (uint32_t batches = 0; g->p < g->end && !status && batches < FP_AGGREGATE_RUNS; batches++) {
        const uint32_t *to = columns[take(g) % 3], n_values = take(g) % (VALUES + 1);
        fp_batch_reset(b);
        if (fp_batch_set_values(b, n_values)) abort();
        fill_graph(g, m, b);
        if (moving) in_own_file(m, b, spilling);
        add(before, b, to, (int)(how & 1));
        status = fp_aggregate_put(a, b, to, &err);
        if (!status && take(g) % 4 == 0) fp_model_function(m, 0, long_name(g, m), long_name(g, m), 0, 0);
        if (status || !spilling) continue;
        status = fp_aggregate_finish(a, &err);
        if (status) break;
        runs[n_runs] = malloc(RUN_BYTES);
        if (!runs[n_runs]) abort();
        status = fp_aggregate_spill(a, runs[n_runs], &lengths[n_runs], RUN_BYTES, &err);
        n_runs++;
        if (status == FP_FULL) abort(); /* batches are small */
        fp_aggregate_empty(a);
    }
    if (!status && spilling && fp_aggregate_merge(a, n_runs)) abort();
    if (!status && moving && !spilling) status = move_functions(a, &err);
    if (!status && !spilling) status = fp_aggregate_finish(a, &err);
    if (!status) status = pull(a, out, runs, lengths, after, hash);
    for (uint32_t i = 0; i < n_runs; i++) {
        if (a->windows) free(a->windows[i].p);
        free(runs[i]);
    }
    fp_aggregate_free(a);
    fp_batch_free(b);
    fp_batch_free(out);
    fp_model_free(m);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n > 1 << 12) return 0; /* long programs find nothing more than short ones */
    struct totals before[2] = {{.count = 0}}, after[2] = {{.count = 0}};
    uint64_t hash[2] = {0, 0};
    int status[2];
    for (int spilling = 0; spilling < 2; spilling++)
        status[spilling] = summed(data, n, spilling, &before[spilling], &after[spilling], &hash[spilling]);
    for (int i = 0; i < 2; i++) {
        if (status[i] && !before[i].overflow && status[i] != FP_E_OVERFLOW) abort();
        if (status[i] || before[i].overflow || after[i].overflow) return 0;
        if (memcmp(before[i].of, after[i].of, sizeof before[i].of) || before[i].count != after[i].count ||
            before[i].count2 != after[i].count2)
            abort();
    }
    if (hash[0] != hash[1]) abort();
    return 0;
}
