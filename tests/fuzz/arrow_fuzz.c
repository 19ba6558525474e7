/* Fuzz target: tables.  The input is a program that fills a model and a batch of each view, with ids that are mostly
 * valid.  Checked besides memory: no row and no value is lost, texts are UTF-8 and independent of the room in the
 * output, and calls that are only counted are as many.
 */
#include <stdint.h>
#include <stdlib.h>

#include "bridges/rows/nest.h"
#include "ends/arrow.h"
#include "core/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ROWS = 32 };

struct program {
    const uint8_t *p, *end;
};

static uint32_t take(struct program *g) {
    return g->p < g->end ? *g->p++ : 0;
}

/* An id of a table; rarely an invalid one. */
static uint32_t id_of(struct program *g, uint32_t n) {
    const uint32_t byte = take(g);
    return byte == 255 ? n + take(g) : byte % n;
}

static uint32_t name(struct program *g, struct fp_model *m) {
    const size_t n = take(g) % 5, left = (size_t)(g->end - g->p);
    const uint32_t string = fp_strings_intern(&m->strings, g->p, n < left ? n : left);
    g->p += n < left ? n : left;
    return string;
}

static void fill_model(struct program *g, struct fp_model *m) {
    for (uint32_t ops = take(g) % 64; ops--;) {
        switch (take(g) % 7) {
            case 0: fp_model_object(m, name(g, m), 0); break;
            case 1: {
                const uint64_t start = (uint64_t)take(g) << 8;
                fp_model_mapping(m, id_of(g, m->objects.n), start, start + take(g), take(g), 0);
                break;
            }
            case 2: fp_model_function(m, take(g) % m->objects.n, name(g, m), name(g, m), 0, take(g) % 4); break;
            case 3: fp_model_line(m, id_of(g, m->functions.n), take(g) % 8, 0, take(g) % m->lines.n); break;
            case 4: {
                const uint32_t mapping = id_of(g, m->mappings.n), line = id_of(g, m->lines.n);
                fp_model_frame(m, mapping, (uint64_t)take(g) << 8 | take(g) % 2, take(g) % 2, line);
                break;
            }
            case 5: fp_model_stack(m, take(g) % m->stacks.n, id_of(g, m->frames.n)); break;
            default: fp_model_label(m, take(g) % m->labels.n, name(g, m), name(g, m), take(g), 0);
        }
    }
    fp_model_thread(m, 0, 1, 1);
    fp_model_thread(m, 0, 1, 2);
}

static void fill_timeline(struct program *g, const struct fp_model *m, struct fp_batch *b) {
    uint64_t now = take(g) == 255 ? INT64_MAX - 500 : 0;
    for (b->n = 0; b->n < b->cap; b->n++) {
        b->time[b->n] = now += take(g);
        b->op[b->n] = (uint8_t)(take(g) % 8);
        b->function[b->n] = id_of(g, m->functions.n);
        b->thread[b->n] = id_of(g, m->threads.n);
        b->cpu[b->n] = 0;
        b->aux[b->n] = 0;
    }
}

static void fill_stacks(struct program *g, const struct fp_model *m, struct fp_batch *b) {
    for (b->n = 0; b->n < b->cap; b->n++) {
        b->time[b->n] = take(g);
        b->stack[b->n] = id_of(g, m->stacks.n);
        b->thread[b->n] = id_of(g, m->threads.n);
        b->label[b->n] = id_of(g, m->labels.n);
        b->values[b->n] = take(g);
    }
}

static void fill_graph(struct program *g, const struct fp_model *m, struct fp_batch *b) {
    for (b->n = 0; b->n < b->cap; b->n++) {
        b->kind[b->n] = (uint8_t)(take(g) % 5);
        b->function[b->n] = id_of(g, m->functions.n);
        b->file[b->n] = id_of(g, m->strings.n);
        b->line[b->n] = take(g) % 4;
        b->address[b->n] = take(g);
        b->callee[b->n] = id_of(g, m->functions.n);
        b->count[b->n] = take(g) == 255 ? UINT64_MAX : take(g);
        b->values[b->n] = take(g);
    }
}

/* Some of the final columns. */
struct shape {
    uint32_t n, value; /* value: the column of the value, 0 if there is none */
    uint8_t widths[12], nullable[12];
};
static const struct shape EVENTS = {6, 0, {8, 1, 4, 4, 4, 2}, {0, 0, 1, 1, 1, 0}};
static const struct shape SPANS = {11, 0, {8, 8, 8, 8, 4, 4, 4, 4, 8, 4, 4}, {0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1}};
static const struct shape SAMPLES = {7, 6, {8, 4, 4, 4, 4, 4, 8}, {1, 0, 1, 1, 1, 1, 1}};
static const struct shape FRAMES = {7, 0, {4, 4, 4, 4, 4, 8, 4}, {0, 0, 1, 1, 1, 1, 1}};
static const struct shape GRAPH = {9, 8, {1, 4, 4, 4, 4, 8, 4, 8, 8}, {0, 1, 1, 1, 1, 1, 1, 1, 1}};

static struct fp_ends_columns *columns_of(const struct shape *s, uint32_t room) {
    struct fp_ends_columns *c = fp_ends_columns_new(room);
    for (uint32_t i = 0; i < s->n; i++)
        if (fp_ends_columns_add(c, s->widths[i], s->nullable[i])) abort();
    return c;
}

typedef int put(struct fp_ends_tables *, const struct fp_batch *, uint32_t *, struct fp_ends_columns *,
                struct fp_err *);

/* Puts a batch.  `rows` and `sum` grow.  A status. */
static int all(put *each, struct fp_ends_tables *t, const struct fp_batch *in, const struct shape *s, uint32_t room,
               uint64_t *rows, uint64_t *sum) {
    struct fp_err err;
    uint32_t from = 0;
    int status = FP_FULL;
    while (status == FP_FULL) {
        struct fp_ends_columns *c = columns_of(s, room);
        while ((status = each(t, in, &from, c, &err)) == FP_NEEDS)
            if (fp_ends_tables_label(t, (const uint8_t *)"{}", 2)) abort();
        if (status == FP_FULL && c->n != room) abort();
        *rows += c->n;
        for (uint32_t i = 0; s->value && i < c->n; i++) *sum += ((const uint64_t *)c->all[s->value].items)[i];
        fp_ends_columns_free(c);
    }
    return status;
}

static void check_texts(const struct fp_ends_texts *texts) {
    for (uint32_t i = 0; i < texts->texts.n; i++) {
        size_t n;
        const uint8_t *p = fp_string(&texts->texts, i, &n);
        if (!fp_is_utf8(p, n)) abort();
    }
}

static int spans_of(struct fp_ends_tables *t, const struct fp_batch *in, uint32_t room, uint64_t *rows) {
    struct fp_nest *nest = fp_nest_new();
    struct fp_batch *out = fp_batch_new(FP_TIMELINE, ROWS, 0);
    struct fp_err err;
    uint32_t from = 0;
    uint64_t unused = 0, calls = 0;
    int status = FP_FULL;
    for (int ending = 0; ending < 2 && status >= 0; ending++) {
        for (status = FP_FULL; status == FP_FULL;) {
            status = ending ? fp_nest_end(nest, out) : fp_nest_put(nest, in, &from, out, &err);
            for (uint32_t i = 0; i < out->n; i++) calls += out->op[i] == FP_OP_ENTER || out->op[i] == FP_OP_ENTER_ARGS;
            const int put_status = all(fp_ends_tables_spans, t, out, &SPANS, room, rows, &unused);
            if (put_status < 0) status = put_status;
            fp_batch_reset(out);
        }
    }
    if (status == FP_DONE && *rows != calls) abort();
    if (status != FP_DONE) *rows = 0; /* counted ones are of whole batches */
    fp_batch_free(out);
    fp_nest_free(nest);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint32_t SAMPLE_VALUE = 6, GRAPH_VALUE = 8;
    struct program g = {data, data + n};
    const uint32_t rooms[2] = {ROWS * 64, 1 + take(&g) % 7};
    struct fp_model *m = fp_model_new();
    struct fp_batch *timeline = fp_batch_new(FP_TIMELINE, ROWS, 0), *stacks = fp_batch_new(FP_STACKS, ROWS, 1),
                    *graph = fp_batch_new(FP_GRAPH, ROWS, 1);
    fill_model(&g, m);
    fill_timeline(&g, m, timeline);
    fill_stacks(&g, m, stacks);
    fill_graph(&g, m, graph);
    int statuses[2][5];
    uint64_t rows[2][5] = {{0}}, sums[2][5] = {{0}};
    for (int k = 0; k < 2; k++) {
        struct fp_ends_tables *t[5];
        for (int i = 0; i < 5; i++) {
            t[i] = fp_ends_tables_new(m);
            t[i]->n_value_columns = 1;
            t[i]->value_columns = i == 4 ? &GRAPH_VALUE : &SAMPLE_VALUE;
            t[i]->has_addresses = t[i]->has_lines = 1;
        }
        t[1]->only_counted = k == 1;
        statuses[k][0] = all(fp_ends_tables_events, t[0], timeline, &EVENTS, rooms[k], &rows[k][0], &sums[k][0]);
        statuses[k][1] = spans_of(t[1], timeline, rooms[k], &rows[k][1]);
        statuses[k][2] = all(fp_ends_tables_samples, t[2], stacks, &SAMPLES, rooms[k], &rows[k][2], &sums[k][2]);
        statuses[k][3] = all(fp_ends_tables_frames, t[3], stacks, &FRAMES, rooms[k], &rows[k][3], &sums[k][3]);
        statuses[k][4] = all(fp_ends_tables_graph, t[4], graph, &GRAPH, rooms[k], &rows[k][4], &sums[k][4]);
        for (int i = 0; i < 5; i++) {
            check_texts(&t[i]->functions);
            check_texts(&t[i]->callees);
            check_texts(&t[i]->files);
            check_texts(&t[i]->objects);
            fp_ends_tables_free(t[i]);
        }
    }
    if (memcmp(statuses[0], statuses[1], sizeof statuses[0])) abort();
    if (memcmp(rows[0], rows[1], sizeof rows[0]) || memcmp(sums[0], sums[1], sizeof sums[0])) abort();
    uint64_t values = 0;
    for (uint32_t i = 0; i < stacks->n; i++) values += (uint64_t)stacks->values[i];
    if (statuses[0][2] == FP_DONE && (rows[0][2] != stacks->n || sums[0][2] != values)) abort();
    if (statuses[0][4] == FP_DONE && rows[0][4] != graph->n) abort();
    fp_batch_free(timeline);
    fp_batch_free(stacks);
    fp_batch_free(graph);
    fp_model_free(m);
    return 0;
}
