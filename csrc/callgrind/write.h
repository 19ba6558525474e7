/* callgrind/write.h - rows of graph batches -> the body lines of a Callgrind part.  C only.
 *
 * This code writes the lines that occur once per row; fastprof/formats/callgrind/write.py those that occur once per
 * part.
 * The block of one function, names and positions compressed:
 *
 *     fl=(2) util.c            the function's file, when it differs from the last fl=
 *     fn=(7) gcd
 *     0x401136 12 3            address, line, counts (trailing zeros may be left out)
 *     +4 * 1                   +4 bytes, same line
 *     cfn=(9)                  callee; cob=, cfi= only when they differ from the caller's
 *     calls=2 0x401000 5       count, target position
 *     * * 60                   position of the call, inclusive counts
 */
#pragma once

#include "callgrind/rows.h"

enum fp_callgrind_named_kind { FP_NAMED_FUNCTION, FP_NAMED_FILE, FP_NAMED_OBJECT, FP_NAMED_KINDS };

/* The last number of a name, and its part.  In another part the name has no number. */
struct fp_callgrind_named {
    uint32_t part, number;
};

/* Names as lines of text: a newline is `\n`, CR `\r` and NUL `\0`.  If another name already has that text, a number is
 * appended.  0 everywhere before the first call. */
struct fp_callgrind_line_names {
    struct fp_utf8_names unique;
    struct fp_buf scratch;
    uint64_t escaped; /* names that held such a byte */
};

/* The text of a name, which is valid until the next call.  NULL when memory ran out. */
const uint8_t *fp_callgrind_line_name(struct fp_callgrind_line_names *t, const struct fp_strings *strings,
                                      uint32_t name, size_t *n);

/* A body being written.  The caller sets it to 0 and then sets the first five fields.  Borrows the model and the
 * buffer.
 *
 * Callgrind identifies a function by object, file and name: the rows of `names`.  Functions of a model that differ only
 * in their first line or mangled name (methods of several classes in a Python file) are one function to readers of the
 * text, so they share a number and a block.
 *
 * Memory: 8 bytes for each function, file and object, 4 for each string up to the last object's name, some 30 for each
 * function's entry in `names`. */
struct fp_callgrind_body {
    struct fp_model *model;
    struct fp_buf *out;
    uint32_t compress_names, compress_positions;
    uint32_t wide; /* enum fp_wide, at most fp_callgrind_costs_wide() */

    uint32_t instr, bb, lines, n_values;              /* columns of the part */
    uint32_t all_counts;                              /* write trailing zeros of a line, too */
    size_t room;                                      /* free bytes in `out` after each name written */
    uint32_t part;                                    /* from 1 */
    struct fp_callgrind_named *named[FP_NAMED_KINDS]; /* by id in the model; a file's is its string's */
    uint32_t n_named[FP_NAMED_KINDS];
    uint32_t next_number[FP_NAMED_KINDS];
    struct fp_table names; /* object, file, name */
    uint32_t *name_of;     /* by function: its row in `names` + 1; 0 = not looked up */
    uint32_t n_name_of;
    uint32_t *object_of; /* by string: the first object of that name that was written, + 1 */
    uint32_t cap_object_of;
    struct fp_callgrind_line_names line_names[FP_NAMED_KINDS];

    /* The current names in the readers' state; a function is its row in `names`.  FP_NO_ID: not set yet in this
     * part. */
    uint32_t function, object, block_file, file;
    uint32_t model_function; /* of the last row */
    uint32_t empty; /* the block has no rows yet, and its fn= defined a number, so readers see only a definition */
    /* In Callgrind a relative position counts from the last self cost line.  In KCachegrind and the format document it
     * counts from the last line with a source position.  We write relative positions only where both agree. */
    struct fp_callgrind_position base; /* of the last self cost line */
    struct fp_callgrind_position from; /* the same, but 0 in a column where no relative position may be written */

    uint32_t ahead;        /* rows[0] is this row of the batch */
    uint32_t rows[16][16]; /* the values of sixteen rows; 2^32 - 1 for values beyond 32 bits */
};

/* The maximum length of a cost line, and of the bytes written after it and then overwritten. */
static inline size_t fp_callgrind_cost_room(uint32_t n_values) {
    return 256 + 21 * (size_t)n_values;
}

/* Begins a part, which numbers its names from 1 again. */
void fp_callgrind_body_start_part(struct fp_callgrind_body *w, uint32_t n_values, uint32_t instr, uint32_t bb,
                                  uint32_t lines, uint32_t all_counts);

/* Appends the rows of a batch of this part, which has at least n_values values.  0 or FP_E_NOMEM. */
int fp_callgrind_body_put(struct fp_callgrind_body *w, const struct fp_batch *b);

/* Writes rows of self cost as Cachegrind has them, from row i on: only lines and counts, of a function in one file,
 * some of its rows.  Needs w->room bytes at p; returns the new end.  *next is the first row not written. */
uint8_t *fp_callgrind_body_lines(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t i, uint8_t *p,
                                 uint32_t *next);

/* Ends the last block.  0 or FP_E_NOMEM. */
int fp_callgrind_body_end_part(struct fp_callgrind_body *w);

void fp_callgrind_body_free(struct fp_callgrind_body *w);
