/* Rows of a graph chunk.  See docs/formats/archive.md, "Graph". */
#include "archive/graph.h"

struct target {
    uint32_t epoch;
    uint32_t line;
    uint64_t address;
    uint64_t bb;
};

struct fp_archive_graph {
    uint64_t function, file, line, address, bb, callee; /* of the previous row */
    struct target target;                               /* of the previous call */
    uint32_t epoch;
    struct target *targets; /* per callee: the last one */
    uint32_t targets_cap;
    struct fp_archive_value_cur *values;
    uint32_t values_cap;
    uint32_t *rows; /* see fp_archive_graph_pull */
    uint32_t rows_cap;
};

struct fp_archive_graph *fp_archive_graph_new(void) {
    struct fp_archive_graph *s = calloc(1, sizeof *s);
    if (s) s->epoch = 1;
    return s;
}

void fp_archive_graph_free(struct fp_archive_graph *s) {
    if (!s) return;
    FP_FREE(s->targets, s->values, s->rows, s);
}

static void restart(struct fp_archive_graph *s) {
    memset(s, 0, offsetof(struct fp_archive_graph, epoch));
    s->epoch++;
}

/* The last target of a callee; at its first call, the target of the previous call. */
static struct target *target_of(struct fp_archive_graph *s, uint32_t callee) {
    struct target *t = &s->targets[callee];
    if (t->epoch != s->epoch) {
        *t = s->target;
        t->epoch = s->epoch;
    }
    return t;
}

/* ---- encoding ----------------------------------------------------------- */

static inline void put(struct fp_archive_encoder *e, uint32_t stream, uint64_t v) {
    fp_buf_varint(&e->streams[stream], v);
}

static inline void put_delta(struct fp_archive_encoder *e, uint32_t stream, uint64_t *last, uint64_t v) {
    fp_buf_varint(&e->streams[stream], fp_zig(v - *last));
    *last = v;
}

static void put_call(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t i, uint32_t positions) {
    struct fp_archive_graph *s = e->graph;
    uint32_t callee = b->callee[i];
    fp_array_zeroed(&s->targets, &s->targets_cap, (uint64_t)callee + 1, sizeof *s->targets);
    struct target *t = target_of(s, callee);
    put_delta(e, FP_GRAPH_S_CALLEE, &s->callee, callee);
    put(e, FP_GRAPH_S_COUNT, b->count[i]);
    if (positions & FP_ARCHIVE_LINE) {
        put(e, FP_GRAPH_S_TARGET_LINE, fp_zig((uint64_t)b->target_line[i] - t->line));
        t->line = b->target_line[i];
    }
    if (positions & FP_ARCHIVE_INSTR) put_delta(e, FP_GRAPH_S_TARGET_ADDRESS, &t->address, b->target_address[i]);
    if (positions & FP_ARCHIVE_BB) put_delta(e, FP_GRAPH_S_TARGET_BB, &t->bb, b->target_bb[i]);
    s->target = *t;
}

static void put_jump(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t i, uint32_t positions) {
    put(e, FP_GRAPH_S_JUMP, fp_zig((uint64_t)b->callee[i] - b->function[i]));
    put(e, FP_GRAPH_S_JUMP, fp_zig((uint64_t)b->target_file[i] - b->file[i]));
    if (positions & FP_ARCHIVE_LINE) put(e, FP_GRAPH_S_JUMP_LINE, fp_zig((uint64_t)b->target_line[i] - b->line[i]));
    if (positions & FP_ARCHIVE_INSTR) put(e, FP_GRAPH_S_JUMP_ADDRESS, fp_zig(b->target_address[i] - b->address[i]));
    if (positions & FP_ARCHIVE_BB) put(e, FP_GRAPH_S_TARGET_BB, fp_zig(b->target_bb[i] - b->bb[i]));
    put(e, FP_GRAPH_S_COUNT, b->count[i]);
    if (b->kind[i] == FP_JCND) put(e, FP_GRAPH_S_COUNT2, b->count2[i]);
}

static int has_values(const struct fp_batch *b, uint32_t i) {
    for (uint32_t k = 0; k < b->n_values; k++)
        if (b->values[(size_t)k * b->cap + i]) return 1;
    return 0;
}

int fp_archive_graph_put(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t positions) {
    struct fp_archive_graph *s = e->graph;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t kind = b->kind[i], code = kind;
        if (b->function[i] != s->function) code |= FP_GRAPH_ROW_FUNCTION;
        if (b->file[i] != s->file) code |= FP_GRAPH_ROW_FILE;
        int valued = fp_archive_always_valued(kind);
        if (!valued && has_values(b, i)) {
            code |= FP_GRAPH_ROW_VALUES;
            valued = 1;
        }
        fp_buf_byte(&e->streams[FP_GRAPH_S_KIND], (uint8_t)code);
        if (code & FP_GRAPH_ROW_FUNCTION) put_delta(e, FP_GRAPH_S_FUNCTION, &s->function, b->function[i]);
        if (code & FP_GRAPH_ROW_FILE) put_delta(e, FP_GRAPH_S_FILE, &s->file, b->file[i]);
        if (kind != FP_BLOCK) {
            if (positions & FP_ARCHIVE_LINE) put_delta(e, FP_GRAPH_S_LINE, &s->line, b->line[i]);
            if (positions & FP_ARCHIVE_INSTR) put_delta(e, FP_GRAPH_S_ADDRESS, &s->address, b->address[i]);
            if (positions & FP_ARCHIVE_BB) put_delta(e, FP_GRAPH_S_BB, &s->bb, b->bb[i]);
        }
        if (kind == FP_CALL) put_call(e, b, i, positions);
        if (kind == FP_JUMP || kind == FP_JCND) put_jump(e, b, i, positions);
        if (!valued) continue;
        for (uint32_t k = 0; k < b->n_values; k++)
            fp_buf_put(&e->streams[fp_archive_graph_value_stream(k, kind == FP_CALL)],
                       &b->values[(size_t)k * b->cap + i], 8);
    }
    e->pub.nbytes += (uint64_t)b->n * (8 + 8 * b->n_values);
    return 0;
}

int fp_archive_graph_flush(struct fp_archive_encoder *e) {
    restart(e->graph);
    for (uint32_t i = FP_GRAPH_STREAMS; i < e->n_streams; i++) fp_archive_values_pack(&e->streams[i]);
    return 0;
}

/* ---- decoding ----------------------------------------------------------- */

int fp_archive_graph_open(struct fp_archive_decoder *d) {
    struct fp_archive_graph *s = d->graph;
    restart(s);
    fp_array_zeroed(&s->targets, &s->targets_cap, d->ids->n[FP_T_FUNCTIONS], sizeof *s->targets);
    fp_archive_values_open(d->streams + FP_GRAPH_STREAMS, d->n_streams - FP_GRAPH_STREAMS, &s->values, &s->values_cap);
    return 0;
}

static inline uint64_t pull(struct fp_cursor *c) {
    return fp_zag(fp_cursor_number(c));
}

static int pull_call(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t i, uint32_t positions) {
    struct fp_archive_graph *s = d->graph;
    struct fp_cursor *streams = d->streams;
    s->callee += pull(&streams[FP_GRAPH_S_CALLEE]);
    if (s->callee >= d->ids->n[FP_T_FUNCTIONS]) return FP_E_MALFORMED;
    b->callee[i] = (uint32_t)s->callee;
    struct target *t = target_of(s, b->callee[i]);
    b->count[i] = fp_cursor_number(&streams[FP_GRAPH_S_COUNT]);
    if (positions & FP_ARCHIVE_LINE) b->target_line[i] = t->line += (uint32_t)pull(&streams[FP_GRAPH_S_TARGET_LINE]);
    if (positions & FP_ARCHIVE_INSTR) b->target_address[i] = t->address += pull(&streams[FP_GRAPH_S_TARGET_ADDRESS]);
    if (positions & FP_ARCHIVE_BB) b->target_bb[i] = t->bb += pull(&streams[FP_GRAPH_S_TARGET_BB]);
    s->target = *t;
    return 0;
}

static int pull_jump(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t i, uint32_t positions) {
    struct fp_cursor *streams = d->streams;
    uint64_t callee = b->function[i] + pull(&streams[FP_GRAPH_S_JUMP]);
    uint64_t file = b->file[i] + pull(&streams[FP_GRAPH_S_JUMP]);
    if (callee >= d->ids->n[FP_T_FUNCTIONS] || file >= d->ids->n[FP_T_STRINGS]) return FP_E_MALFORMED;
    b->callee[i] = (uint32_t)callee;
    b->target_file[i] = (uint32_t)file;
    if (positions & FP_ARCHIVE_LINE) b->target_line[i] = b->line[i] + (uint32_t)pull(&streams[FP_GRAPH_S_JUMP_LINE]);
    if (positions & FP_ARCHIVE_INSTR) b->target_address[i] = b->address[i] + pull(&streams[FP_GRAPH_S_JUMP_ADDRESS]);
    if (positions & FP_ARCHIVE_BB) b->target_bb[i] = b->bb[i] + pull(&streams[FP_GRAPH_S_TARGET_BB]);
    b->count[i] = fp_cursor_number(&streams[FP_GRAPH_S_COUNT]);
    if (b->kind[i] == FP_JCND) b->count2[i] = fp_cursor_number(&streams[FP_GRAPH_S_COUNT2]);
    return 0;
}

/* Sets the columns of the next n rows to 0, the default of columns that a row lacks. */
static void clear(struct fp_batch *b, uint32_t n) {
#define CLEAR(column) memset(b->column + b->n, 0, n * sizeof *b->column)
    CLEAR(line);
    CLEAR(address);
    CLEAR(bb);
    CLEAR(callee);
    CLEAR(target_file);
    CLEAR(target_line);
    CLEAR(target_address);
    CLEAR(target_bb);
    CLEAR(count);
    CLEAR(count2);
#undef CLEAR
    for (uint32_t k = 0; k < b->n_values; k++) memset(b->values + (size_t)k * b->cap + b->n, 0, n * sizeof *b->values);
}

static void reserve_rows(struct fp_archive_graph *s, uint32_t n) {
    fp_array_room(&s->rows, &s->rows_cap, n, 3 * sizeof *s->rows);
}

/* Reads the values of the n rows in `row`.  Column by column, so that the cursor stays in registers. */
static void pull_values(struct fp_archive_decoder *d, struct fp_batch *b, const uint32_t *row, uint32_t n, int call) {
    for (uint32_t k = 0; k < b->n_values && n; k++) {
        const uint32_t stream = fp_archive_graph_value_stream(k, call);
        struct fp_cursor c = d->streams[stream];
        struct fp_archive_value_cur v = d->graph->values[stream - FP_GRAPH_STREAMS];
        int64_t *to = b->values + (size_t)k * b->cap;
        for (uint32_t j = 0; j < n; j++) to[row[j]] = fp_archive_value_next(&c, &v);
        d->graph->values[stream - FP_GRAPH_STREAMS] = v;
        d->streams[stream] = c;
    }
}

int fp_archive_graph_pull(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t n, const char **what) {
    struct fp_archive_graph *s = d->graph;
    const uint32_t positions = d->runs[d->run].positions, begin = b->n, end = begin + n;
    struct fp_cursor *streams = d->streams;
    reserve_rows(s, n);
    clear(b, n);
    /* lists of rows: those with a position, those with values that are not calls, and the calls */
    uint32_t *const placed = s->rows, *const costs = placed + n, *const calls = costs + n;
    uint32_t n_placed = 0, n_costs = 0, n_calls = 0, n_arcs = 0;
    *what = "kind, function or file of a row";
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t code = fp_archive_byte(&streams[FP_GRAPH_S_KIND]), kind = code & FP_GRAPH_ROW_KIND;
        if (code >= FP_GRAPH_ROW_END || kind > FP_BLOCK) return FP_E_MALFORMED;
        b->kind[i] = (uint8_t)kind;
        if (code & FP_GRAPH_ROW_FUNCTION) s->function += pull(&streams[FP_GRAPH_S_FUNCTION]);
        if (code & FP_GRAPH_ROW_FILE) s->file += pull(&streams[FP_GRAPH_S_FILE]);
        if (s->function >= d->ids->n[FP_T_FUNCTIONS] || s->file >= d->ids->n[FP_T_STRINGS]) return FP_E_MALFORMED;
        b->function[i] = (uint32_t)s->function;
        b->file[i] = (uint32_t)s->file;
        placed[n_placed] = i;
        n_placed += kind != FP_BLOCK;
        n_arcs += kind != FP_COST;
        calls[n_calls] = costs[n_costs] = i;
        n_calls += kind == FP_CALL;
        n_costs += kind == FP_COST || (code & FP_GRAPH_ROW_VALUES && kind != FP_CALL);
    }
#define PLACES(position, stream, column, type)                                                   \
    if (positions & (position)) {                                                                \
        struct fp_cursor c = streams[stream];                                                    \
        uint64_t last = s->column;                                                               \
        for (uint32_t j = 0; j < n_placed; j++) b->column[placed[j]] = (type)(last += pull(&c)); \
        s->column = last;                                                                        \
        streams[stream] = c;                                                                     \
    }
    PLACES(FP_ARCHIVE_LINE, FP_GRAPH_S_LINE, line, uint32_t)
    PLACES(FP_ARCHIVE_INSTR, FP_GRAPH_S_ADDRESS, address, uint64_t)
    PLACES(FP_ARCHIVE_BB, FP_GRAPH_S_BB, bb, uint64_t)
#undef PLACES
    *what = "target of a call or jump";
    for (uint32_t i = begin; i < end && n_arcs; i++) {
        const uint32_t kind = b->kind[i];
        if (kind == FP_CALL && pull_call(d, b, i, positions)) return FP_E_MALFORMED;
        if ((kind == FP_JUMP || kind == FP_JCND) && pull_jump(d, b, i, positions)) return FP_E_MALFORMED;
    }
    pull_values(d, b, costs, n_costs, 0);
    pull_values(d, b, calls, n_calls, 1);
    *what = "row of a graph";
    for (uint32_t i = 0; i < d->n_streams; i++)
        if (streams[i].status) return FP_E_MALFORMED;
    return 0;
}
