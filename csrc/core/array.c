#include "core/array.h"

#include <stdlib.h>

int fp_array_grow(void *items, uint32_t *cap, uint64_t need, size_t size) {
    if (need > UINT32_MAX) return FP_E_NOMEM;
    uint64_t more = need + need / 2 + 64;
    if (more > UINT32_MAX) more = UINT32_MAX;
    if (more > SIZE_MAX / size) return FP_E_NOMEM;
    uint8_t *p; /* copied in and out, because a pointer of any type may stand there */
    memcpy(&p, items, sizeof p);
    p = realloc(p, (size_t)more * size);
    if (!p) return FP_E_NOMEM;
    memset(p + *cap * size, 0, (size_t)(more - *cap) * size);
    memcpy(items, &p, sizeof p);
    *cap = (uint32_t)more;
    return 0;
}
