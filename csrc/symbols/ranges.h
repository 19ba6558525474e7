/* symbols/ranges.h - ranges of addresses: their lists in DWARF, and the owner of an address.  C only.
 *
 * Ranges have owners, numbered in the order of their entries, so that an inlined call has a higher number than its
 * caller.  The highest number owns an address:
 *
 *   owner 1: [100, 200)                    pieces: 100 -> 1, 120 -> 2, 150 -> 1, 200 -> 0
 *   owner 2: [120, 150)
 */
#pragma once

#include "symbols/dwarf.h"
#include "symbols/pairs.h"

struct fp_dwarf_range {
    uint64_t low, high; /* [low, high) */
    uint32_t owner;     /* from 1 on */
};

/* Ranges, and the pieces that result from them; the caller frees both arrays. */
struct fp_dwarf_ranges {
    struct fp_dwarf_range *items;
    struct fp_pairs_item *pieces; /* start of a piece: its owner, 0 for none */
    uint32_t n, cap, n_pieces, cap_pieces;
    uint64_t work, most_work; /* limits entries of lists: a damaged file could refer to a list many times */
};

/* Adds a range unless it is empty, or begins at 0, where a linker puts dropped code. */
void fp_dwarf_ranges_add(struct fp_dwarf_ranges *r, uint64_t low, uint64_t high, uint32_t owner);

/* Adds the list that a DW_AT_ranges refers to.  `base` is the unit's first address.  0 or FP_E_MALFORMED.  Source:
 * DWARF 5, section 2.17.3; DWARF 4, section 2.17.3. */
int fp_dwarf_ranges_add_list(struct fp_dwarf_ranges *r, const struct fp_dwarf *d, const struct fp_dwarf_unit *u,
                             uint64_t form, uint64_t number, uint64_t base, uint32_t owner);

/* Adds the pieces of all ranges, and removes the ranges. */
void fp_dwarf_ranges_cut(struct fp_dwarf_ranges *r);

/* The owner at an address in `n` pieces; 0 for none. */
static inline uint32_t fp_dwarf_owner(const struct fp_pairs_item *pieces, uint32_t n, uint64_t address) {
    const size_t at = fp_pairs_upper(pieces, n, address);
    return at ? (uint32_t)pieces[at - 1].value : 0;
}
