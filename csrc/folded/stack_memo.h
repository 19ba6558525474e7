/* folded/stack_memo.h - caches the stacks of plain lines of folded stacks.  C only.
 *
 * Profilers that do not sum their samples repeat the same lines.  One lookup of a stack's whole text costs a fraction
 * of the lookups of its frames:
 *
 *   main;f;g 1     new: frame by frame, then remembered
 *   main;f;h 1     new
 *   main;f;g 2     known: no frame is looked up
 *
 * A plain line is a stack, one blank and 1 to 18 digits.  The stack is at most FP_PLAIN_MOST bytes, does not begin with
 * `#` and ends in neither a blank nor a `;`.  Every other line belongs to the lexer.
 *
 * Texts are compared byte for byte, so a found stack is always correct.  A search probes only a few slots, so keys made
 * to collide merely count as new.
 *
 * Memory: up to 16 MiB for texts and 4 MiB for their index, which grow as they fill.  A full table is emptied.  If it
 * found fewer than a quarter of its lines, it rests for the next 128 MiB of the input; if fewer than one line in 64 was
 * found when it reaches 1 MiB of text, it rests then.
 */
#pragma once

#include "core/core.h"

enum { FP_PLAIN_LINES = 32, FP_PLAIN_MOST = 1 << 14 };

/* A plain line: n bytes of stack at p, and its count. */
struct fp_folded_plain {
    const uint8_t *p;
    uint32_t n;
    uint32_t hash; /* set by fp_folded_known_prefetch */
    int64_t count;
};

/* Splits up to `most` <= FP_PLAIN_LINES complete lines of p .. end, up to the first that is not plain.  Returns the
 * number of lines; the next one begins at *next. */
uint32_t fp_folded_plain_lines(const uint8_t *p, const uint8_t *end, struct fp_folded_plain *lines, uint32_t most,
                               const uint8_t **next);

/* A known stack; its text follows. */
struct fp_folded_known_stack {
    uint32_t node;  /* in the model's stack tree */
    uint32_t empty; /* its frames without a name */
    uint32_t n;     /* bytes of text */
};

/* All zeros is an empty table. */
struct fp_folded_known {
    uint64_t *index; /* open addressing: hash << 32 | place + 1, or 0 for a free slot */
    uint8_t *stacks; /* struct fp_folded_known_stack and text, each at a multiple of 8 bytes: its place */
    size_t n, cap;   /* bytes of `stacks` */
    uint32_t n_slots, n_keys;
    uint64_t n_lines, n_found; /* since the table was empty */
    uint64_t rest;             /* bytes of input until it is used again */
};

void fp_folded_known_clear(struct fp_folded_known *k);

/* Drops all stacks, for example because the model's stacks were emptied. */
void fp_folded_known_empty(struct fp_folded_known *k);

/* Hashes n lines, which take up `nbytes` of the input, and prefetches the slots that searches will probe.  Returns 0
 * while the table rests: then call neither of the two below. */
int fp_folded_known_prefetch(struct fp_folded_known *k, struct fp_folded_plain *lines, uint32_t n, size_t nbytes);

/* The stack of a line, or NULL.  Valid until fp_folded_known_add. */
const struct fp_folded_known_stack *fp_folded_known_find(struct fp_folded_known *k, const struct fp_folded_plain *line);

/* Adds a stack that was not found.  0 or FP_E_NOMEM. */
int fp_folded_known_add(struct fp_folded_known *k, const struct fp_folded_plain *line, uint32_t node, uint32_t empty);
