/* archive/diff_graph.h - differences between graphs that have other rows.  Private to the archive's C files. */
#pragma once

#include "archive/diff.h"

/* The first stream of a graph, with function and file of each row. */
struct fp_archive_pairs_rows {
    const uint8_t *code;
    uint32_t *function, *file, n;
};

/* A graph whose rows are paired with those of its base.  All zero before it is opened.  Arrays are in scratch memory
 * (core/guard.h), except the pairing's. */
struct fp_archive_pairs {
    struct fp_archive_pairs_rows base;
    const uint8_t *code; /* of the own rows */
    struct fp_archive_pairing pairing;
    uint32_t *own_of, n_own_of; /* by function of the base: the own one, or 0 */
    /* of the stream being compared: by row of the base the index of its first number, by code how many a row has */
    uint32_t *first;
    uint8_t numbers[256];
    struct fp_buf paired; /* what is written about rows with a pair, before it is appended */
};

/* Pairs the rows that have the same kind, function, position and function called.  Given are the streams of both, and
 * for each own function the base's, or 0.  0, or FP_MORE if that does not pay: most rows have no pair, or each is
 * paired with the base's row of the same number.  The caller closes the pairs in any case. */
int fp_archive_pairs_find(struct fp_archive_pairs *g, const struct fp_cursor *base, const struct fp_cursor *own,
                          const uint32_t *functions, size_t n_functions);

/* Appends the pairs and the difference of stream 0. */
void fp_archive_pairs_put(struct fp_archive_pairs *g, struct fp_buf *out);

/* Opens the pairs of which `own` was stored.  Appends stream 0 to `out`, which they borrow.  0 or FP_E_MALFORMED. */
int fp_archive_pairs_open(struct fp_archive_pairs *g, const struct fp_cursor *base, struct fp_cursor own,
                          const uint32_t *functions, size_t n_functions, struct fp_buf *out);

/* Appends the difference of stream `s` > 0, `own`, to the base's; or restores the stream whose difference `own` is.
 * 0 or FP_E_MALFORMED. */
int fp_archive_pairs_diff(struct fp_archive_pairs *g, uint32_t s, struct fp_cursor base, struct fp_cursor own,
                          struct fp_buf *out);
int fp_archive_pairs_undiff(struct fp_archive_pairs *g, uint32_t s, struct fp_cursor base, struct fp_cursor own,
                            struct fp_buf *out);

void fp_archive_pairs_close(struct fp_archive_pairs *g);
