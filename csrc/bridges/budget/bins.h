/* bridges/budget/bins.h - a histogram of whole numbers of any size.  Private. */
#pragma once

#include <stdint.h>

/* The bin of a number, 32 for each power of two:
 *
 *   bin 0..31    that number       bin 32..63    32..63       bin 64..95    64..127, two numbers each ...
 */
static inline uint32_t fp_bins_of(uint64_t v) {
    if (v < 32) return (uint32_t)v;
    const uint32_t shift = 58 - (uint32_t)__builtin_clzll(v);
    return shift * 32 + (uint32_t)(v >> shift);
}

/* The least number of a bin. */
static inline uint64_t fp_bins_begin(uint32_t bin) {
    return bin < 64 ? bin : (uint64_t)(32 + bin % 32) << (bin / 32 - 1);
}
