/* callgrind/numbers.h - what the numbers of Callgrind's names, `(12)`, stand for.
 *
 * Floor 2.  Writers number names from 1 on or from anywhere, in any order, mostly densely.  Every number has a
 * place of its own, in segments of which each has as many places as all before it:
 *
 *     segment    8         9          10          11 ...
 *     numbers    0..255    256..767   768..1791   1792..3839 ...
 *
 * so that growing moves nothing, and a place takes memory only when it or a neighbour is used.  Numbers far beyond
 * the count of those that were defined (a hostile file's) are hashed until their segment is worth having.
 */
#ifndef FP_CALLGRIND_NUMBERS_H
#define FP_CALLGRIND_NUMBERS_H

#include "core/fp.h"

/* All 0: not defined. */
struct fp_number {
    uint32_t name;               /* a string; 0: not defined yet */
    uint32_t function;           /* the function it is bound to, 0: none yet; and where that is: */
    uint32_t file : 31;          /* ids of strings and objects are below 2^31 (core/model.c, grow_index) */
    uint32_t again : 1;          /* defined once more by the same name: bound if it is met in the same place */
    uint32_t object : 31;        /* for an object's number, the object itself */
    uint32_t object_assumed : 1; /* bound at a cfn= without cob= */
};

struct fp_numbers {
    struct fp_number *segment[64]; /* NULL: none yet */
    struct fp_far_number *far;     /* numbers without a segment, open addressing */
    size_t far_mask;
    size_t n_far;
    size_t n; /* that were defined */
};

/* A number and what it stands for, one hashed. */
struct fp_far_number {
    uint64_t key; /* the number + 1; 0: free */
    struct fp_number number;
};

enum { FP_NUMBERS_FIRST = 256 }; /* places of the first segment */

/* The segment of a number below 2^63, and its place there. */
static inline unsigned fp_numbers_segment(uint64_t id) {
    return 63 - (unsigned)__builtin_clzll(id + FP_NUMBERS_FIRST);
}

static inline size_t fp_numbers_place(uint64_t id) {
    return (size_t)(id + FP_NUMBERS_FIRST - ((uint64_t)1 << fp_numbers_segment(id)));
}

static inline size_t fp_numbers_slot(const struct fp_numbers *t, uint64_t id) {
    return (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & t->far_mask;
}

/* Of a number without a segment. */
struct fp_number *fp_numbers_find_far(struct fp_numbers *t, uint64_t id);

/* What a number stands for, valid until another one is looked up; NULL when memory ran out. */
static inline struct fp_number *fp_numbers_find(struct fp_numbers *t, uint64_t id) {
    struct fp_number *segment = t->segment[fp_numbers_segment(id)];
    return FP_LIKELY(segment) ? segment + fp_numbers_place(id) : fp_numbers_find_far(t, id);
}

/* Where that is, to have it brought from memory; NULL for nowhere.  (A function that did just that would do nothing in
 * the compiler's eyes, gcc 12 leaves out calls of it.) */
static inline const void *fp_numbers_place_of(const struct fp_numbers *t, uint64_t id) {
    const struct fp_number *segment = t->segment[fp_numbers_segment(id)];
    if (FP_LIKELY(segment)) return segment + fp_numbers_place(id);
    return t->far ? &t->far[fp_numbers_slot(t, id)] : NULL;
}

/* Gives a number found in t its name; by another one it stood for another function. */
static inline void fp_numbers_define(struct fp_numbers *t, struct fp_number *number, uint32_t name) {
    if (number->name != name) {
        t->n += !number->name;
        number->name = name;
        number->function = 0;
    }
}

void fp_numbers_clear(struct fp_numbers *t);

#endif
