/* callgrind/write.h - rows of graph batches -> the body lines of a Callgrind part.
 *
 * Floor 2.  What stands once per part is the door's (fastprof/formats/callgrind.py);
 * here is what stands once per row.  A block of one function, names and positions
 * compressed:
 *
 *     fl=(2) util.c            the function's file, when it differs from the last fl=
 *     fn=(7) gcd
 *     0x401136 12 3            address, line, counts (trailing zeros may be left out)
 *     +4 * 1                   +4 bytes, same line
 *     cfn=(9)                  callee; cob=, cfi= only when they differ from the caller's
 *     calls=2 0x401000 5       count, target position
 *     * * 60                   position of the call, inclusive counts
 */
#ifndef FP_CALLGRIND_WRITE_H
#define FP_CALLGRIND_WRITE_H

#include "core/buf.h"
#include "callgrind/rows.h"
#include "core/model.h"

enum fp_named_kind { FP_NAMED_FUNCTION, FP_NAMED_FILE, FP_NAMED_OBJECT, FP_NAMED_KINDS };

/* The number a name was given last, and in which part. */
struct fp_named {
    uint32_t part, number;
};

/* A body being written.  Zeroed and the first four set by the caller; borrows the model and the buffer.
 * Memory: 8 bytes for each function, file and object. */
struct fp_body {
    const struct fp_model *model;
    struct fp_buf *out;
    uint32_t compress_names, compress_positions;
    uint32_t wide; /* enum fp_wide, at most fp_costs_wide() */

    uint32_t instr, bb, lines, n_values;    /* columns of the part */
    uint32_t all_counts;                    /* of a line, trailing zeros, too */
    size_t room;                            /* that a step has in `out`, whatever names it writes */
    uint32_t part;                          /* from 1 */
    struct fp_named *named[FP_NAMED_KINDS]; /* by id in the model; a file's is its string's */
    size_t n_named[FP_NAMED_KINDS];
    uint32_t next_number[FP_NAMED_KINDS];
    uint64_t escaped; /* names that held a newline, CR or NUL */

    /* Where we are.  FP_NO_ID: not yet said in this part. */
    uint32_t function, object, block_file, file;
    uint32_t empty; /* the block only defined its number yet */
    /* A relative position counts from the last self cost line (Callgrind) or from the last line with a source
     * position (KCachegrind, spec).  We write a relative one only while both are the same, for both to be right. */
    struct fp_position base; /* of the last self cost line */
    struct fp_position from; /* the same; 0 in a column: write no relative position */

    uint32_t ahead;        /* rows[0] is this row of the batch */
    uint32_t rows[16][16]; /* the values of sixteen rows, what is beyond 32 bits as the greatest of them */
};

/* Bytes that a line of costs takes at most, with what is written beyond it. */
static inline size_t fp_cost_room(uint32_t n_values) {
    return 256 + 21 * (size_t)n_values;
}

/* Begins a part: names are defined anew. */
void fp_body_start_part(struct fp_body *w, uint32_t n_values, uint32_t instr, uint32_t bb, uint32_t lines,
                        uint32_t all_counts);

/* Appends the rows of a batch, which has as many values or more.  0 or FP_E_NOMEM. */
int fp_body_put(struct fp_body *w, const struct fp_batch *b);

/* Ends the last block.  0 or FP_E_NOMEM. */
int fp_body_end_part(struct fp_body *w);

void fp_body_free(struct fp_body *w);

#endif
