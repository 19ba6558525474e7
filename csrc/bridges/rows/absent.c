#include "bridges/rows/absent.h"

void fp_absent(const uint32_t *items, uint8_t *valid, uint32_t n, uint32_t text) {
    for (uint32_t i = 0; i < n; i++)
        if (items[i] == text) valid[i / 8] &= (uint8_t)~(1u << i % 8);
}
