#include "core/array.h"

#include "core/guard.h"

enum { FIRST_ARRAY = 512, FIRST_BYTES = 4096 }; /* bytes of the first allocation, or more */

/* The new capacity: twice the old one, or `need` if that is more; 0 if `need` exceeds the limit. */
static uint64_t grown(uint64_t had, uint64_t need, size_t width, uint64_t first, uint64_t most) {
    uint64_t cap = had > most / 2 ? most : had * 2;
    if (cap < first) cap = first;
    if (cap < need) cap = need;
    return cap <= most && cap <= SIZE_MAX / 2 / width ? cap : 0;
}

/* To a capacity of `more` items; 0: that exceeds the limit. */
static int grow_to(void *array, uint32_t *cap, uint64_t more, size_t width, int zeroed) {
    if (!more) return fp_escape();
    void *p; /* memcpy, because C does not allow access to, say, a `uint32_t *` as a `void *` */
    memcpy(&p, array, sizeof p);
    p = realloc(p, (size_t)more * width);
    if (!p) return fp_escape();
    if (zeroed) memset((uint8_t *)p + *cap * width, 0, (size_t)(more - *cap) * width);
    memcpy(array, &p, sizeof p);
    *cap = (uint32_t)more;
    return 0;
}

int fp_array_grow(void *array, uint32_t *cap, uint64_t need, size_t width, int zeroed) {
    return grow_to(array, cap, grown(*cap, need, width, FIRST_ARRAY / width, UINT32_MAX), width, zeroed);
}

int fp_array_slowly(void *array, uint32_t *cap, uint64_t need, size_t width) {
    if (FP_LIKELY(need <= *cap)) return 0;
    const uint64_t more = need + need / 8 + FIRST_ARRAY / width;
    return grow_to(array, cap, more <= UINT32_MAX && more <= SIZE_MAX / 2 / width ? more : 0, width, 1);
}

int fp_bytes_room(uint8_t **bytes, size_t *cap, size_t need) {
    if (need <= *cap) return 0;
    const uint64_t more = grown(*cap, need, 1, FIRST_BYTES, SIZE_MAX);
    uint8_t *p = more ? realloc(*bytes, (size_t)more) : NULL;
    if (!p) return fp_escape();
    *bytes = p;
    *cap = (size_t)more;
    return 0;
}
