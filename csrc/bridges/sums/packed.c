#include "bridges/sums/packed.h"

enum {
    KIND = 7,
    PACKED_FILE = 8,
    PACKED_ADDRESS = 16,
    PACKED_TARGET = 32,
};

static inline const uint8_t *varint32(const uint8_t *p, uint32_t *v) {
    uint64_t wide;
    p = fp_varint_read(p, &wide);
    *v = (uint32_t)wide;
    return p;
}

/* Of a number below 2^63.  Branchless, because zeros are unpredictable: twice a number and one has a highest bit. */
static inline unsigned bytes_of(uint64_t v) {
    return ((63 ^ (unsigned)__builtin_clzll(v << 1 | 1)) + 7) / 8;
}

/* Stores all eight bytes; the next value overwrites those that are not needed. */
static inline uint8_t *put_value(uint8_t *to, int64_t value, unsigned *code) {
    uint64_t v = (uint64_t)value;
    unsigned length = bytes_of(v);
    *code = length;
    if (FP_UNLIKELY(value < 0)) {
        const int is_short = 0 - v < (uint64_t)1 << 56;
        v = is_short ? 0 - v : v;
        length = is_short ? bytes_of(v) : 8;
        *code = is_short ? 8 + length : 8;
    }
    memcpy(to, &v, 8);
    return to + length;
}

static inline uint8_t *put_values(uint8_t *to, const int64_t *values, uint32_t n) {
    uint8_t *lengths = to;
    unsigned low, high;
    to += (n + 1) / 2;
    for (; n > 1; n -= 2, values += 2) {
        to = put_value(to, values[0], &low);
        to = put_value(to, values[1], &high);
        *lengths++ = (uint8_t)(low | high << 4);
    }
    if (n) {
        to = put_value(to, values[0], &low);
        *lengths = (uint8_t)low;
    }
    return to;
}

static inline const uint8_t *get_value(const uint8_t *p, int64_t *value, unsigned code) {
    static const uint64_t low_bytes[9] = {
        0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff};
    const unsigned length = code > 8 ? code - 8 : code;
    const uint64_t v = fp_u64(p) & low_bytes[length];
    *value = (int64_t)(code > 8 ? 0 - v : v);
    return p + length;
}

static inline const uint8_t *get_values(const uint8_t *p, int64_t *values, uint32_t n) {
    const uint8_t *lengths = p;
    p += (n + 1) / 2;
    for (; n > 1; n -= 2, values += 2) {
        const unsigned codes = *lengths++;
        p = get_value(p, &values[0], codes & 15);
        p = get_value(p, &values[1], codes >> 4);
    }
    return n ? get_value(p, &values[0], *lengths & 15) : p;
}

uint8_t *fp_packed_put(uint8_t *to, struct fp_packed_before *before, const struct fp_packed_row *row,
                       uint32_t n_columns) {
    const uint32_t kind = row->kind;
    uint32_t what = kind;
    if (row->file != before->file) what |= PACKED_FILE;
    if (row->address != before->address || row->bb != before->bb) what |= PACKED_ADDRESS;
    if (row->target_file || row->target_address || row->target_bb) what |= PACKED_TARGET;
    *to++ = (uint8_t)what;
    if (what & PACKED_FILE) to = fp_varint(to, row->file);
    to = fp_varint(to, fp_zig((uint64_t)row->line - before->line));
    if (what & PACKED_ADDRESS) {
        to = fp_varint(to, fp_zig(row->address - before->address));
        to = fp_varint(to, fp_zig(row->bb - before->bb));
    }
    if (kind != FP_COST && kind != FP_BLOCK) {
        to = fp_varint(to, row->callee);
        to = fp_varint(to, row->target_line);
        if (what & PACKED_TARGET) {
            to = fp_varint(to, row->target_file);
            to = fp_varint(to, row->target_address);
            to = fp_varint(to, row->target_bb);
        }
        to = fp_varint(to, row->count);
        if (kind == FP_JCND) to = fp_varint(to, row->count2);
    }
    *before = (struct fp_packed_before){row->file, row->line, row->address, row->bb};
    return kind <= FP_CALL ? put_values(to, row->values, n_columns) : to;
}

const uint8_t *fp_packed_take(const uint8_t *p, struct fp_packed_before *before, struct fp_packed_row *row,
                              uint32_t n_columns) {
    const uint32_t what = *p++, kind = what & KIND;
    uint64_t v;
    row->kind = kind;
    if (what & PACKED_FILE) p = varint32(p, &before->file);
    row->file = before->file;
    p = fp_varint_read(p, &v);
    row->line = before->line = (uint32_t)(before->line + fp_zag(v));
    if (what & PACKED_ADDRESS) {
        p = fp_varint_read(p, &v);
        before->address += fp_zag(v);
        p = fp_varint_read(p, &v);
        before->bb += fp_zag(v);
    }
    row->address = before->address;
    row->bb = before->bb;
    row->callee = row->target_file = row->target_line = 0;
    row->target_address = row->target_bb = row->count = row->count2 = 0;
    if (kind != FP_COST && kind != FP_BLOCK) {
        p = varint32(p, &row->callee);
        p = varint32(p, &row->target_line);
        if (what & PACKED_TARGET) {
            p = varint32(p, &row->target_file);
            p = fp_varint_read(p, &row->target_address);
            p = fp_varint_read(p, &row->target_bb);
        }
        p = fp_varint_read(p, &row->count);
        if (kind == FP_JCND) p = fp_varint_read(p, &row->count2);
    }
    if (kind <= FP_CALL) return get_values(p, row->values, n_columns);
    if (n_columns) memset(row->values, 0, n_columns * sizeof *row->values);
    return p;
}

void fp_packed_end(struct fp_packed_block *b, uint8_t *to) {
    const uint32_t head[3] = {b->function, b->rows, b->n_columns};
    if (b->rows) memcpy(to + b->at, head, sizeof head);
    b->rows = 0;
}

size_t fp_packed_append(struct fp_packed_block *b, const struct fp_model *m, uint8_t *to, size_t at,
                        const struct fp_packed_row *row, uint32_t n_columns) {
    if (!b->rows || b->function != row->function) {
        fp_packed_end(b, to);
        b->at = at;
        b->function = row->function;
        b->n_columns = n_columns;
        b->before = (struct fp_packed_before){.file = fp_file_of_function(m, row->function)};
        at += FP_PACKED_HEAD;
    }
    b->rows++;
    return (size_t)(fp_packed_put(to + at, &b->before, row, n_columns) - to);
}

static inline int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_files(const struct fp_name_order *o, uint32_t function, uint32_t a, uint32_t b) {
    const uint32_t own = fp_file_of_function(o->model, function);
    if (a == own || b == own) return (a != own) - (b != own);
    return fp_name_order_strings(o, a, b);
}

int fp_packed_row_compare(const struct fp_name_order *o, const struct fp_packed_row *a, const struct fp_packed_row *b) {
    int found;
    if (FP_UNLIKELY(a->kind == FP_BLOCK || b->kind == FP_BLOCK)) return (b->kind == FP_BLOCK) - (a->kind == FP_BLOCK);
    FP_TRY(compare(a->address, b->address));
    FP_TRY(compare(a->bb, b->bb));
    if (a->file != b->file && (found = compare_files(o, a->function, a->file, b->file))) return found;
    FP_TRY(compare(a->line, b->line));
    if ((found = compare(a->kind, b->kind)) || a->kind == FP_COST) return found;
    if (a->callee != b->callee && (found = fp_name_order_functions(o, a->callee, b->callee))) return found;
    if (a->target_file != b->target_file && (found = fp_name_order_strings(o, a->target_file, b->target_file)))
        return found;
    FP_TRY(compare(a->target_line, b->target_line));
    FP_TRY(compare(a->target_address, b->target_address));
    return compare(a->target_bb, b->target_bb);
}

int fp_packed_row_add(struct fp_packed_row *to, const struct fp_packed_row *more, uint32_t n_columns,
                      struct fp_err *err) {
    if (to->kind != FP_COST && (__builtin_add_overflow(to->count, more->count, &to->count) ||
                                __builtin_add_overflow(to->count2, more->count2, &to->count2))) {
        fp_fail_beyond(err,
                       to->kind == FP_CALL ? "the number of calls at a position" : "the number of jumps at a position",
                       FP_NO_COLUMN, "2^64 - 1");
        err->line = to->line;
        return FP_E_OVERFLOW;
    }
    for (uint32_t k = 0; k < n_columns; k++)
        if (__builtin_add_overflow(to->values[k], more->values[k], &to->values[k])) {
            fp_fail_beyond(err, to->kind == FP_CALL ? "the cost of calls at a position" : "the cost of a position", k,
                           "2^63 - 1");
            err->line = to->line;
            return FP_E_OVERFLOW;
        }
    return FP_DONE;
}

/* ---- merging ---- */

int fp_packed_merge_begin(struct fp_packed_merge *m, const struct fp_name_order *order, uint32_t n,
                          uint32_t n_columns) {
    const size_t values = ((size_t)n + 1) * n_columns + 1; /* never 0 */
    fp_array_room(&m->heap, &m->cap_heap, n, sizeof *m->heap);
    fp_array_room(&m->cursors, &m->cap_cursors, n, sizeof *m->cursors);
    if (values > m->cap_values) {
        int64_t *more = fp_have(realloc(m->values, values * sizeof *more));
        m->values = more;
        m->cap_values = values;
    }
    m->order = order;
    m->n = n;
    m->n_columns = n_columns;
    m->n_heap = m->n_started = 0;
    m->to_refill = UINT32_MAX;
    m->have = m->used = m->alone = 0;
    m->row.values = m->values;
    for (uint32_t i = 0; i < n; i++) {
        m->cursors[i] = (struct fp_packed_row_cursor){.rows = 0};
        m->cursors[i].row.values = m->values + (size_t)(i + 1) * n_columns;
    }
    return 0;
}

void fp_packed_merge_clear(struct fp_packed_merge *m) {
    FP_FREE(m->cursors, m->heap, m->values);
    *m = (struct fp_packed_merge){.n = 0};
}

/* Advances to the next row: 1; 0 at the end; -1: no bytes left. */
static inline int advance(struct fp_packed_merge *m, struct fp_packed_row_cursor *c) {
    while (!c->rows) {
        if (c->end - c->p < FP_PACKED_HEAD) return c->eof ? 0 : -1;
        c->row.function = fp_u32(c->p);
        c->rows = fp_u32(c->p + 4);
        c->n_columns = fp_u32(c->p + 8);
        c->p += FP_PACKED_HEAD;
        c->before = (struct fp_packed_before){.file = fp_file_of_function(m->order->model, c->row.function)};
    }
    if (!c->eof && (size_t)(c->end - c->p) < fp_packed_most(c->n_columns)) return -1;
    c->p = fp_packed_take(c->p, &c->before, &c->row, c->n_columns);
    for (uint32_t k = c->n_columns; k < m->n_columns; k++) c->row.values[k] = 0; /* columns added later */
    c->rows--;
    return 1;
}

static inline int is_before(const struct fp_packed_merge *m, uint32_t a, uint32_t b) {
    const struct fp_packed_row *ra = &m->cursors[a].row, *rb = &m->cursors[b].row;
    if (ra->function != rb->function) return fp_name_order_functions(m->order, ra->function, rb->function) < 0;
    return fp_packed_row_compare(m->order, ra, rb) < 0;
}

FP_HEAP(const struct fp_packed_merge *, uint32_t, is_before)

/* Whether no other cursor has the function of the heap's first one. */
static inline int is_alone(const struct fp_packed_merge *m) {
    const uint32_t function = m->cursors[m->heap[0]].row.function;
    for (uint32_t i = 1; i < 3 && i < m->n_heap; i++) /* one of these two would have it, too */
        if (m->cursors[m->heap[i]].row.function == function) return 0;
    return 1;
}

/* Moves a cursor's row to m->row, exchanging the memory of their values. */
static inline void take_row(struct fp_packed_merge *m, struct fp_packed_row *row) {
    int64_t *const spare = m->row.values;
    m->row = *row;
    row->values = spare;
}

int fp_packed_merge_next(struct fp_packed_merge *m, struct fp_err *err) {
    if (m->n == 1 && !m->n_started && m->cursors[0].eof) { /* a single input, whose places are distinct */
        if (!advance(m, &m->cursors[0])) return FP_DONE;
        m->row = m->cursors[0].row;
        return FP_FULL;
    }
    for (; m->n_started < m->n; m->n_started++) {
        const int found = advance(m, &m->cursors[m->n_started]);
        if (found < 0) {
            m->to_refill = m->n_started;
            return FP_MORE;
        }
        if (found) heap_push(m, m->heap, m->n_heap++, m->n_started);
    }
    if (m->have == 2) m->have = 0;
    if (m->alone) {
        struct fp_packed_row_cursor *c = &m->cursors[m->heap[0]];
        if (c->rows) {
            if (advance(m, c) < 0) {
                m->to_refill = m->heap[0];
                return FP_MORE;
            }
            take_row(m, &c->row);
            return FP_FULL;
        }
        m->alone = 0;
    }
    for (;;) {
        if (m->used) {
            const int found = advance(m, &m->cursors[m->heap[0]]);
            if (found < 0) {
                m->to_refill = m->heap[0];
                return FP_MORE;
            }
            if (!found) m->heap[0] = m->heap[--m->n_heap];
            if (m->n_heap) heap_sink(m, m->heap, m->n_heap, 0);
            m->used = 0;
        }
        if (!m->n_heap) break;
        struct fp_packed_row *top = &m->cursors[m->heap[0]].row;
        if (!m->have) {
            m->alone = is_alone(m);
            take_row(m, top);
            m->used = m->have = 1;
            if (m->alone) break;
        } else if (top->function != m->row.function || fp_packed_row_compare(m->order, top, &m->row)) {
            break;
        } else if (fp_packed_row_add(&m->row, top, m->n_columns, err)) {
            return FP_E_OVERFLOW;
        }
        m->used = 1;
    }
    if (!m->have) return FP_DONE;
    m->have = 2;
    return FP_FULL;
}
