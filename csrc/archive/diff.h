/* archive/diff.h - numbers of streams and pairs of rows, for differences between chunks.  Private to the archive's C
 * files. */
#pragma once

#include "archive/private.h"

/* The content of a stream: unknown bytes, a byte for each row, varints, or a packed value column. */
enum fp_archive_kind { FP_DIFF_OPAQUE, FP_DIFF_BYTES, FP_DIFF_NUMBERS, FP_DIFF_VALUES };

/* Reads a stream of FP_DIFF_NUMBERS or FP_DIFF_VALUES, number by number. */
struct fp_archive_numbers {
    struct fp_cursor c;
    struct fp_archive_value_cur v; /* FP_DIFF_NUMBERS: its divisor is 0 */
};

static inline struct fp_archive_numbers fp_archive_numbers_of(struct fp_cursor c, enum fp_archive_kind kind) {
    struct fp_archive_numbers n = {c, {0, 0}};
    if (kind == FP_DIFF_VALUES && c.p < c.end) n.v.divisor = fp_cursor_number(&n.c);
    return n;
}

static inline int fp_archive_more(const struct fp_archive_numbers *n) {
    return n->c.p < n->c.end && !n->c.status;
}

static inline uint64_t fp_archive_next(struct fp_archive_numbers *n) {
    return n->v.divisor ? (uint64_t)fp_archive_value_next(&n->c, &n->v) : fp_cursor_number(&n->c);
}

/* For each own row 1 + the base's row that it is compared with, or 0. */
struct fp_archive_pairing {
    uint32_t *rows, n;
};

/* The numbers of a stream, one for each row; values are divided by the divisor. */
struct fp_archive_column {
    uint64_t *v, divisor;
    uint32_t n, cap;
};

/* 0 or FP_E_MALFORMED.  The numbers are in scratch memory (core/guard.h). */
static inline int fp_archive_take_column(struct fp_cursor c, enum fp_archive_kind kind,
                                         struct fp_archive_column *column) {
    struct fp_archive_numbers numbers = fp_archive_numbers_of(c, kind);
    column->divisor = numbers.v.divisor;
    numbers.v.divisor = numbers.v.divisor != 0;
    for (column->n = 0; fp_archive_more(&numbers); column->n++) {
        if (column->n == FP_ARCHIVE_MAX_ROWS) return FP_E_MALFORMED;
        if (column->n == column->cap)
            fp_scratch_room(&column->v, &column->cap, (uint64_t)column->n + 1, sizeof *column->v);
        column->v[column->n] = fp_archive_next(&numbers);
    }
    return numbers.c.status || numbers.c.p != numbers.c.end ? FP_E_MALFORMED : 0;
}

/* Frees both, of which the base's was read first. */
static inline void fp_archive_free_columns(struct fp_archive_column *base, struct fp_archive_column *own) {
    fp_scratch_free(own->v);
    fp_scratch_free(base->v);
}

/* Turns a column of differences, of stack ids for instance, into the numbers. */
static inline void fp_archive_add_up(struct fp_archive_column *ids) {
    uint64_t id = 0;
    for (uint32_t i = 0; i < ids->n; i++) ids->v[i] = id += fp_zag(ids->v[i]);
}
