/* Rows of a graph as differences to those of another one, of which each has some.  See docs/formats/archive.md,
 * "Differences". */
#include "archive/diff_graph.h"

#include "archive/graph.h"

enum { MOST_ROWS = 1 << 21, MOST_PROBES = 64, NEAR = 16 };

/* ---- rows ------------------------------------------------------------------ */

/* 0 or FP_E_MALFORMED. */
static int take_rows(const struct fp_cursor *streams, struct fp_archive_pairs_rows *r) {
    const size_t n = (size_t)(streams[FP_GRAPH_S_KIND].end - streams[FP_GRAPH_S_KIND].p);
    struct fp_cursor functions = streams[FP_GRAPH_S_FUNCTION], files = streams[FP_GRAPH_S_FILE];
    uint64_t function = 0, file = 0;
    if (n > MOST_ROWS) return FP_E_MALFORMED;
    r->n = (uint32_t)n;
    r->code = streams[FP_GRAPH_S_KIND].p;
    r->function = fp_scratch(n + 1, sizeof *r->function);
    r->file = fp_scratch(n + 1, sizeof *r->file);
    for (size_t i = 0; i < n; i++) {
        if (r->code[i] & FP_GRAPH_ROW_FUNCTION) function += fp_zag(fp_cursor_number(&functions));
        if (r->code[i] & FP_GRAPH_ROW_FILE) file += fp_zag(fp_cursor_number(&files));
        if (function > UINT32_MAX || file > UINT32_MAX) return FP_E_MALFORMED;
        r->function[i] = (uint32_t)function;
        r->file[i] = (uint32_t)file;
    }
    return functions.status || files.status ? FP_E_MALFORMED : 0;
}

/* ---- pairs ----------------------------------------------------------------- */

/* For each row a hash of its place: kind, function of the base, position and function called. */
static uint64_t *places_of(const struct fp_cursor *streams, const struct fp_archive_pairs_rows *rows,
                           const uint32_t *functions, size_t n_functions) {
    struct fp_cursor positions[3] = {streams[FP_GRAPH_S_LINE], streams[FP_GRAPH_S_ADDRESS], streams[FP_GRAPH_S_BB]};
    struct fp_cursor callees = streams[FP_GRAPH_S_CALLEE];
    uint64_t last[3] = {0}, callee = 0, *places = fp_scratch((size_t)rows->n + 1, sizeof *places);
    for (uint32_t i = 0; i < rows->n; i++) {
        const uint32_t kind = rows->code[i] & FP_GRAPH_ROW_KIND;
        uint64_t function = rows->function[i], called = 0;
        for (unsigned k = 0; k < 3 && kind != FP_BLOCK; k++)
            if (positions[k].p < positions[k].end) last[k] += fp_zag(fp_cursor_number(&positions[k]));
        if (kind == FP_CALL) called = callee += fp_zag(fp_cursor_number(&callees));
        if (functions) {
            function = function < n_functions ? functions[function] : 0;
            called = called < n_functions ? functions[called] : 0;
        }
        uint64_t hash = fp_mix(function << 3 ^ kind, 0x9e3779b97f4a7c15u);
        for (unsigned k = 0; k < 3; k++) hash = fp_mix(hash ^ last[k], 0x9e3779b97f4a7c15u);
        places[i] = fp_mix(hash ^ called, 0x9e3779b97f4a7c15u);
    }
    return places;
}

/* The slot of a place in a table of 1 + rows of the base, or NULL: too many others hash alike. */
static uint32_t *slot_of(uint32_t *table, uint32_t mask, const uint64_t *base, uint64_t place) {
    uint32_t at = (uint32_t)place & mask;
    for (unsigned i = 0; i < MOST_PROBES; i++, at = (at + 1) & mask)
        if (!table[at] || base[table[at] - 1] == place) return &table[at];
    return NULL;
}

/* Pairs each row with the base's next row of the same place, if there is none with the last one.  0, or FP_MORE if that
 * does not pay.  `next` has room for a number for each row of the base. */
static int pair_places(const uint64_t *base, uint32_t n, const uint64_t *own, uint32_t *table, uint32_t mask,
                       uint32_t *next, struct fp_archive_pairing *pairing) {
    uint32_t next_row = 0, found = 0, same = 0;
    for (uint32_t row = n; row-- > 0;) {
        uint32_t *slot = slot_of(table, mask, base, base[row]);
        next[row] = slot ? *slot : 0;
        if (slot) *slot = row + 1;
    }
    for (uint32_t i = 0; i < pairing->n; i++) {
        uint32_t *slot = slot_of(table, mask, base, own[i]), row = slot ? *slot : 0;
        while (row && row <= next_row && next[row - 1]) row = next[row - 1];
        const int is_near = row > next_row && row - next_row <= NEAR;
        if (row && !is_near && (row == n || i + 1 == pairing->n || base[row] != own[i + 1])) row = 0;
        if (row) *slot = row;
        pairing->rows[i] = row;
        if (row) next_row = row;
        found += row > 0;
        same += row == i + 1;
    }
    if (found >= pairing->n / 2 + 1 && (same < n || same < pairing->n)) return 0;
    return FP_MORE;
}

static void take_functions(struct fp_archive_pairs *g, const uint32_t *functions, size_t n) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) most = functions[i] > most ? functions[i] : most;
    g->own_of = fp_scratch((size_t)most + 1, sizeof *g->own_of);
    g->first = fp_scratch((size_t)g->base.n + 1, sizeof *g->first);
    g->n_own_of = most + 1;
    for (size_t i = 0; i < n; i++)
        if (functions[i]) g->own_of[functions[i]] = (uint32_t)i;
}

int fp_archive_pairs_find(struct fp_archive_pairs *g, const struct fp_cursor *base, const struct fp_cursor *own,
                          const uint32_t *functions, size_t n_functions) {
    struct fp_archive_pairs_rows mine = {0};
    uint32_t mask = 1;
    if (take_rows(base, &g->base)) return FP_MORE;
    take_functions(g, functions, n_functions);
    if (take_rows(own, &mine) || !g->base.n || !mine.n) return FP_MORE;
    g->code = mine.code;
    g->pairing.rows = fp_have(calloc(mine.n, sizeof *g->pairing.rows));
    g->pairing.n = mine.n;
    while (mask < 2 * g->base.n) mask = 2 * mask + 1;
    const uint64_t *their_places = places_of(base, &g->base, NULL, 0);
    const uint64_t *places = places_of(own, &mine, functions, n_functions);
    uint32_t *table = fp_scratch((size_t)mask + 1, sizeof *table);
    const int status = pair_places(their_places, g->base.n, places, table, mask, g->first, &g->pairing);
    fp_scratch_free(mine.function); /* and all since */
    return status;
}

void fp_archive_pairs_close(struct fp_archive_pairs *g) {
    free(g->pairing.rows);
    fp_buf_free(&g->paired);
}

/* ---- differences ------------------------------------------------------------- */

/* The state between rows: function and file of the base's row in the last pair, at first 0, and the codes of the rows
 * without a pair since, which have changed them already. */
struct last {
    uint32_t function, file, codes;
};

/* The code that is expected of own row i. */
static uint8_t expected_code(const struct fp_archive_pairs *g, uint32_t i, const struct last *last) {
    const uint32_t row = g->pairing.rows[i] - 1;
    if (!g->pairing.rows[i]) return 0;
    uint32_t changes = 0;
    if (g->base.function[row] != last->function) changes |= FP_GRAPH_ROW_FUNCTION;
    if (g->base.file[row] != last->file) changes |= FP_GRAPH_ROW_FILE;
    return (uint8_t)((g->base.code[row] & ~(uint32_t)(FP_GRAPH_ROW_FUNCTION | FP_GRAPH_ROW_FILE)) |
                     (changes & ~last->codes));
}

static void pass(const struct fp_archive_pairs *g, uint32_t i, uint8_t code, struct last *last) {
    const uint32_t row = g->pairing.rows[i] - 1;
    if (g->pairing.rows[i])
        *last = (struct last){g->base.function[row], g->base.file[row], 0};
    else
        last->codes |= code;
}

/* The number of rows; a bit for each, 1 unless it is paired with the row after the last pair; for each such bit 0 for
 * no pair, or 1 + zig(difference to that row); then the difference of each code to the expected one. */
void fp_archive_pairs_put(struct fp_archive_pairs *g, struct fp_buf *out) {
    const uint32_t n = g->pairing.n;
    struct fp_buf *breaks = &g->paired;
    struct last last = {0};
    uint64_t next_row = 0;
    uint32_t bits = 0;
    breaks->n = 0;
    fp_buf_varint(out, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t row = g->pairing.rows[i];
        if (row != next_row + 1) {
            bits |= 1U << i % 8;
            fp_buf_varint(breaks, row ? 1 + fp_zig(row - 1 - next_row) : 0);
        }
        if (row) next_row = row;
        if (i % 8 == 7 || i + 1 == n) {
            fp_buf_byte(out, (uint8_t)bits);
            bits = 0;
        }
    }
    fp_buf_put(out, breaks->p, breaks->n);
    for (uint32_t i = 0; i < n; i++) {
        fp_buf_byte(out, (uint8_t)(g->code[i] - expected_code(g, i, &last)));
        pass(g, i, g->code[i], &last);
    }
}

/* Reads the pairs.  0 or FP_E_MALFORMED. */
static int take_pairs(struct fp_archive_pairs *g, struct fp_cursor *c) {
    const uint32_t n = g->pairing.n = fp_archive_u32(c);
    const uint8_t *bits = c->p;
    uint64_t next_row = 0;
    /* each row has a byte, its code, after the pairs */
    if (c->status || n > (size_t)(c->end - c->p)) return FP_E_MALFORMED;
    c->p += (n + 7) / 8;
    g->pairing.rows = fp_have(calloc((size_t)n + 1, sizeof *g->pairing.rows));
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t code = bits[i / 8] >> i % 8 & 1 ? fp_cursor_number(c) : 1;
        const uint64_t row = next_row + fp_zag(code - 1);
        if (c->status || (code && row >= g->base.n)) return FP_E_MALFORMED;
        if (code) next_row = g->pairing.rows[i] = (uint32_t)row + 1;
    }
    return (size_t)(c->end - c->p) == n ? 0 : FP_E_MALFORMED;
}

int fp_archive_pairs_open(struct fp_archive_pairs *g, const struct fp_cursor *base, struct fp_cursor own,
                          const uint32_t *functions, size_t n_functions, struct fp_buf *out) {
    struct last last = {0};
    if (take_rows(base, &g->base)) return FP_E_MALFORMED;
    take_functions(g, functions, n_functions);
    if (take_pairs(g, &own)) return FP_E_MALFORMED;
    fp_buf_reserve(out, g->pairing.n);
    for (uint32_t i = 0; i < g->pairing.n; i++) {
        const uint8_t code = (uint8_t)(*own.p++ + expected_code(g, i, &last));
        pass(g, i, code, &last);
        fp_buf_byte(out, code);
    }
    g->code = out->p;
    return 0;
}

/* How many numbers a row has in stream `s` > 0, if its run has that position. */
static unsigned n_numbers(uint32_t s, uint8_t code) {
    const uint32_t kind = code & FP_GRAPH_ROW_KIND;
    const int jumps = kind == FP_JUMP || kind == FP_JCND;
    if (s >= FP_GRAPH_STREAMS) {
        const int calls = (s - FP_GRAPH_STREAMS) % 2;
        return calls ? kind == FP_CALL : kind == FP_COST || (code & FP_GRAPH_ROW_VALUES && kind != FP_CALL);
    }
    if (s <= FP_GRAPH_S_FILE) return (code & (s == FP_GRAPH_S_FILE ? FP_GRAPH_ROW_FILE : FP_GRAPH_ROW_FUNCTION)) != 0;
    if (s <= FP_GRAPH_S_BB) return kind != FP_BLOCK;
    if (s <= FP_GRAPH_S_TARGET_ADDRESS) return kind == FP_CALL;
    if (s == FP_GRAPH_S_TARGET_BB || s == FP_GRAPH_S_COUNT) return kind == FP_CALL || jumps;
    if (s == FP_GRAPH_S_COUNT2) return kind == FP_JCND;
    return s == FP_GRAPH_S_JUMP ? 2 * (unsigned)jumps : (unsigned)jumps;
}

static inline int is_sum(uint32_t s) {
    return s <= FP_GRAPH_S_CALLEE;
}

/* Reads the numbers of the base's stream; those of differences become the sums.  0, or FP_E_MALFORMED if they
 * are not as many as the rows have. */
static int take_base(struct fp_archive_pairs *g, uint32_t s, struct fp_cursor c, struct fp_archive_column *column) {
    uint64_t n = 0;
    const int status = fp_archive_take_column(c, s < FP_GRAPH_STREAMS ? FP_DIFF_NUMBERS : FP_DIFF_VALUES, column);
    for (unsigned code = 0; code <= UINT8_MAX; code++) g->numbers[code] = (uint8_t)n_numbers(s, (uint8_t)code);
    for (uint32_t row = 0; row < g->base.n; row++) {
        g->first[row] = (uint32_t)n;
        n += g->numbers[g->base.code[row]];
    }
    if (is_sum(s)) fp_archive_add_up(column);
    return status ? status : n == column->n ? 0 : FP_E_MALFORMED;
}

/* What precedes a number: the previous one, and of files how much larger the own id was than the base's. */
struct before {
    uint64_t number, shift;
};

/* What is expected of number k of own row i. */
static uint64_t expected(const struct fp_archive_pairs *g, uint32_t s, const struct fp_archive_column *base, uint32_t i,
                         unsigned k, const struct before *before) {
    const uint32_t row = g->pairing.rows[i] - 1;
    const uint64_t otherwise = is_sum(s) ? before->number : 0;
    if (!g->pairing.rows[i]) return otherwise;
    if (s == FP_GRAPH_S_FILE) return g->base.file[row] + before->shift;
    if (s != FP_GRAPH_S_FUNCTION && k >= g->numbers[g->base.code[row]]) return otherwise;
    const uint64_t number = s == FP_GRAPH_S_FUNCTION ? g->base.function[row] : base->v[g->first[row] + k];
    if (s != FP_GRAPH_S_FUNCTION && s != FP_GRAPH_S_CALLEE) return number;
    return number < g->n_own_of && g->own_of[number] ? g->own_of[number] : otherwise;
}

static void go_on(const struct fp_archive_pairs *g, uint32_t s, uint32_t i, uint64_t number, struct before *before) {
    before->number = number;
    if (s == FP_GRAPH_S_FILE && g->pairing.rows[i]) before->shift = number - g->base.file[g->pairing.rows[i] - 1];
}

int fp_archive_pairs_diff(struct fp_archive_pairs *g, uint32_t s, struct fp_cursor base, struct fp_cursor own,
                          struct fp_buf *out) {
    struct fp_archive_column theirs = {0}, mine = {0};
    struct fp_buf *paired = &g->paired;
    struct before before = {0};
    uint32_t n = 0;
    paired->n = 0;
    int status = take_base(g, s, base, &theirs);
    if (!status) status = fp_archive_take_column(own, s < FP_GRAPH_STREAMS ? FP_DIFF_NUMBERS : FP_DIFF_VALUES, &mine);
    if (is_sum(s)) fp_archive_add_up(&mine);
    if (!status && mine.divisor) fp_buf_varint(out, mine.divisor);
    for (uint32_t i = 0; i < g->pairing.n && !status; i++) {
        for (unsigned k = 0; k < g->numbers[g->code[i]] && !status; k++) {
            if (n == mine.n) status = FP_E_MALFORMED;
            if (status) break;
            const uint64_t number = mine.v[n++], miss = number - expected(g, s, &theirs, i, k, &before);
            fp_buf_varint(g->pairing.rows[i] ? paired : out, fp_zig(miss));
            go_on(g, s, i, number, &before);
        }
    }
    if (!status && n < mine.n) status = FP_E_MALFORMED;
    if (!status) fp_buf_put(out, paired->p, paired->n);
    fp_archive_free_columns(&theirs, &mine);
    return status;
}

int fp_archive_pairs_undiff(struct fp_archive_pairs *g, uint32_t s, struct fp_cursor base, struct fp_cursor own,
                            struct fp_buf *out) {
    struct fp_archive_column theirs = {0};
    struct before before = {0};
    const int values = s >= FP_GRAPH_STREAMS;
    int status = take_base(g, s, base, &theirs);
    const uint64_t divisor = values ? fp_cursor_number(&own) : 1;
    struct fp_cursor c[2] = {own, own}; /* of rows without and with a pair */
    for (uint32_t i = 0; i < g->pairing.n && !status; i++)
        for (unsigned k = 0; k < g->numbers[g->code[i]] && !g->pairing.rows[i]; k++) fp_cursor_number(&c[1]);
    for (uint32_t i = 0; i < g->pairing.n && !status; i++) {
        for (unsigned k = 0; k < g->numbers[g->code[i]]; k++) {
            struct fp_cursor *from = &c[g->pairing.rows[i] != 0];
            const uint64_t miss = fp_zag(fp_cursor_number(from));
            const uint64_t number = expected(g, s, &theirs, i, k, &before) + miss, value = number * divisor;
            if (values)
                fp_buf_put(out, &value, sizeof value);
            else
                fp_buf_varint(out, is_sum(s) ? fp_zig(number - before.number) : number);
            go_on(g, s, i, number, &before);
            if (from->status) status = FP_E_MALFORMED;
        }
    }
    fp_scratch_free(theirs.v);
    if (!status && c[1].p != c[1].end) status = FP_E_MALFORMED;
    if (!status && values) fp_archive_values_pack(out);
    return status;
}
