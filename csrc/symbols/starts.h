/* symbols/starts.h - the symbol at an address, among sorted starts.  C only. */
#pragma once

#include "core/core.h"

/* The last of n starts at `address` or before; -1 if there is none. */
static inline int64_t fp_starts_last(const uint64_t *starts, size_t n, uint64_t address) {
    size_t low = 0;
    while (n) {
        const size_t half = n / 2;
        if (starts[low + half] <= address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return (int64_t)low - 1;
}
