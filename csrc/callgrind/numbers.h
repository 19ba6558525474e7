/* callgrind/numbers.h - looks up the numbers of Callgrind's names, `(12)`.  C only.
 *
 * Writers may number names in any order and begin anywhere, but most use every number from 1 on.  So each number has
 * its own slot, in segments that double in size:
 *
 *     segment    8         9          10          11 ...
 *     numbers    0..255    256..767   768..1791   1792..3839 ...
 *
 * Slots never move.  A segment is allocated when its first number is used.  A number far greater than the count of
 * defined ones, as in a hostile file, would allocate a large segment alone, so it stays in a hash table until enough
 * numbers are defined.
 */
#pragma once

#include "core/core.h"

/* The meaning of a number.  All 0: not defined.
 *
 * The number of a function is bound to the function that it is first used for, in some file and object.  Later uses
 * refer to the same function, even where another file or object is current, until `(12) name` is read `again`. */
struct fp_callgrind_number {
    uint32_t name;        /* a string; 0: not defined yet */
    uint32_t function;    /* the function it is bound to; 0: none yet */
    uint32_t file : 31;   /* of that function; ids of strings and objects are below 2^31 (core/model.c, grow_index) */
    uint32_t again : 1;   /* `(12) name` was read since its last use: it stays bound only if its next use is in the same
                             file and object */
    uint32_t object : 31; /* of that function; for an object's number, the object itself */
    uint32_t object_assumed : 1; /* it was bound at a cfn= without cob=, so a later ob= may specify another object */
};

struct fp_callgrind_numbers {
    struct fp_callgrind_number *segment[64]; /* NULL: none yet */
    struct fp_callgrind_far_number *far;     /* numbers without a segment: a hash table with open addressing */
    size_t far_mask;
    struct fp_hash_key secret; /* of the hash table */
    size_t n_far;
    size_t n; /* defined numbers */
};

/* A slot of that hash table. */
struct fp_callgrind_far_number {
    uint64_t key; /* the number + 1; 0: free */
    struct fp_callgrind_number number;
};

enum { FP_NUMBERS_FIRST = 256 }; /* places of the first segment */

/* The segment of a number, which is below 2^63. */
static inline unsigned fp_callgrind_numbers_segment(uint64_t id) {
    return 63 - (unsigned)__builtin_clzll(id + FP_NUMBERS_FIRST);
}

/* The place of a number in its segment. */
static inline size_t fp_callgrind_numbers_place(uint64_t id) {
    return (size_t)(id + FP_NUMBERS_FIRST - ((uint64_t)1 << fp_callgrind_numbers_segment(id)));
}

/* The slot where a search of the hash table begins, if it has no secret. */
static inline size_t fp_callgrind_numbers_slot(const struct fp_callgrind_numbers *t, uint64_t id) {
    return (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & t->far_mask;
}

/* fp_callgrind_numbers_find for a number whose segment does not exist yet. */
struct fp_callgrind_number *fp_callgrind_numbers_find_far(struct fp_callgrind_numbers *t, uint64_t id);

/* The meaning of a number.  The pointer is valid until the next lookup.  NULL when memory ran out. */
static inline struct fp_callgrind_number *fp_callgrind_numbers_find(struct fp_callgrind_numbers *t, uint64_t id) {
    struct fp_callgrind_number *segment = t->segment[fp_callgrind_numbers_segment(id)];
    return FP_LIKELY(segment) ? segment + fp_callgrind_numbers_place(id) : fp_callgrind_numbers_find_far(t, id);
}

/* The place that fp_callgrind_numbers_find will read first, for a prefetch; NULL: none.  (The caller prefetches,
 * because gcc 12 drops calls of a function that only prefetches.) */
static inline const void *fp_callgrind_numbers_place_of(const struct fp_callgrind_numbers *t, uint64_t id) {
    const struct fp_callgrind_number *segment = t->segment[fp_callgrind_numbers_segment(id)];
    if (FP_LIKELY(segment)) return segment + fp_callgrind_numbers_place(id);
    return t->far ? &t->far[fp_callgrind_numbers_slot(t, id)] : NULL;
}

/* Names a number found in t.  If it had another name, it is no longer bound to a function. */
static inline void fp_callgrind_numbers_define(struct fp_callgrind_numbers *t, struct fp_callgrind_number *number,
                                               uint32_t name) {
    if (number->name != name) {
        t->n += !number->name;
        number->name = name;
        number->function = 0;
    }
}

void fp_callgrind_numbers_clear(struct fp_callgrind_numbers *t);
