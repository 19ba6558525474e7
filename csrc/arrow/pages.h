/* arrow/pages.h - encodes columns as the pages of Parquet files.
 *
 * A page is written without its header and before compression, which are Python's (formats/arrow/parquet.py).  A column
 * chunk has one data page and at most one dictionary page:
 *
 *   data page, version 1     [length u32, levels] values      levels: if the column is nullable, a bit for each row
 *     DELTA_BINARY_PACKED    block 128 | miniblocks 4 | n | first | blocks
 *                            block: least difference | 4 bit widths | 4 times 32 differences above the least one
 *     RLE_DICTIONARY         bit width u8 | runs of indices
 *     PLAIN                  floating-point numbers, 8 bytes each
 *   dictionary page          PLAIN values: numbers, or texts with their lengths
 *
 *   runs ("hybrid")          even varint 2n: one value n times | odd varint 2n + 1: n groups of 8 values, bit-packed
 *
 * Numbers in heads are varints, the first value and the least difference zigzag.  Differences wrap at the width of the
 * column, 32 or 64 bits, so unsigned numbers need no other code.
 *
 *   times 10 13 14 18, none missing:  80 01 | 04 | 04 | 14 | 02 | 02 00 00 00 | 8 bytes of 2 bits each: 2 0 3 0 ...
 *
 * Source: github.com/apache/parquet-format, Encodings.md.
 */
#pragma once

#include "core/core.h"

/* Rows of a column in Arrow's layout; borrowed. */
struct fp_arrow_rows {
    const void *items;
    const uint8_t *valid; /* a bit for each row; NULL: every row has a value */
    uint32_t width;       /* bytes of an item: 1, 2, 4 or 8 */
    uint32_t is_signed;
    uint32_t n;
};

/* Dictionary texts; borrowed. */
struct fp_arrow_texts {
    const int64_t *offsets; /* n + 1 */
    const uint8_t *bytes;
    uint32_t n;
};

enum fp_arrow_encoding { FP_ARROW_PLAIN = 0, FP_ARROW_DELTA = 5, FP_ARROW_DICTIONARY = 8 };

/* Encodes one column chunk after the other. */
struct fp_arrow_pages {
    struct fp_buf data, dictionary; /* of the chunk */
    uint32_t encoding;              /* enum fp_arrow_encoding; PLAIN: reals, or no values */
    uint32_t n_values;              /* rows that have one */
    uint32_t n_entries;             /* of the dictionary */
    uint64_t least, greatest;       /* numbers, or ids of texts; if there are values */
    int32_t is_portable;            /* for tests: use no instructions that only some processors have */

    /* private from here on */
    uint32_t *indices, *entries, *of;
    uint64_t *keys;
    uint32_t cap_indices, cap_entries, cap_of, cap_keys;
    struct fp_buf found; /* differences, which may be larger than the dictionary */
};

/* The rows that have a value. */
uint32_t fp_arrow_count(const struct fp_arrow_rows *rows);

/* Caller owns. */
struct fp_arrow_pages *fp_arrow_pages_new(void);
void fp_arrow_pages_free(struct fp_arrow_pages *p);

/* Encodes a chunk of numbers, as differences if `distinct`, otherwise as a dictionary if that is smaller. */
int fp_arrow_pages_numbers(struct fp_arrow_pages *p, const struct fp_arrow_rows *column, uint32_t distinct);

/* Encodes a chunk of floating-point numbers of 8 bytes as they are; they have no range. */
int fp_arrow_pages_reals(struct fp_arrow_pages *p, const struct fp_arrow_rows *column);

/* Encodes a chunk of texts: the column has their ids.  0, FP_E_OVERFLOW if the dictionary would exceed `most` bytes,
 * FP_E_MALFORMED for an id that `texts` does not have. */
int fp_arrow_pages_texts(struct fp_arrow_pages *p, const struct fp_arrow_rows *column,
                         const struct fp_arrow_texts *texts, uint64_t most, struct fp_err *err);
