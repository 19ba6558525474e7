#include "arrow/pages.h"

enum {
    BLOCK = 128,      /* values of a block of differences */
    MINI = 32,        /* of a miniblock */
    MOST_GROUPS = 63, /* of a bit-packed run, so that its head takes one byte */
    MOST_PROBES = 64, /* of a number; its column then becomes differences, because colliding numbers can be chosen */
};

struct fp_arrow_pages *fp_arrow_pages_new(void) {
    return fp_made(sizeof(struct fp_arrow_pages));
}

void fp_arrow_pages_free(struct fp_arrow_pages *p) {
    FP_FREE_BUFFERS(&p->data, &p->dictionary, &p->found);
    FP_FREE(p->indices, p->entries, p->of, p->keys, p);
}

/* ---- rows ---- */

FP_INLINE uint64_t item(const void *items, uint32_t i, unsigned width) {
    switch (width) {
        case 1: return ((const uint8_t *)items)[i];
        case 2: return ((const uint16_t *)items)[i];
        case 4: return ((const uint32_t *)items)[i];
        default: return ((const uint64_t *)items)[i];
    }
}

FP_INLINE unsigned has_value(const struct fp_arrow_rows *rows, uint32_t i) {
    return rows->valid[i >> 3] >> (i & 7) & 1u;
}

/* Copies up to `most` values from row *at on, and advances it. */
FP_INLINE unsigned take_wide(const struct fp_arrow_rows *rows, uint32_t *at, uint64_t *to, unsigned most,
                             unsigned width) {
    uint32_t i = *at;
    unsigned n = 0;
    if (!rows->valid) {
        const uint8_t *const from = (const uint8_t *)rows->items + (size_t)i * width;
        n = rows->n - i < most ? rows->n - i : most;
        for (unsigned k = 0; k < n; k++) to[k] = item(from, k, width);
        *at = i + n;
        return n;
    }
    for (; i < rows->n && n < most; i++) {
        to[n] = item(rows->items, i, width);
        n += has_value(rows, i);
    }
    *at = i;
    return n;
}

static unsigned take(const struct fp_arrow_rows *rows, uint32_t *at, uint64_t *to, unsigned most) {
    switch (rows->width) {
        case 1: return take_wide(rows, at, to, most, 1);
        case 2: return take_wide(rows, at, to, most, 2);
        case 4: return take_wide(rows, at, to, most, 4);
        default: return take_wide(rows, at, to, most, 8);
    }
}

static inline unsigned bits_of(uint64_t v) {
    return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* Packs n values, the lowest bits first; n * bits is a multiple of 8.  Returns the end. */
FP_INLINE uint8_t *pack(uint8_t *to, const void *values, unsigned width, unsigned n, unsigned bits) {
    uint64_t waiting = 0;
    unsigned n_waiting = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t v = item(values, i, width);
        waiting |= v << n_waiting;
        n_waiting += bits;
        if (n_waiting < 64) continue;
        memcpy(to, &waiting, 8);
        to += 8;
        n_waiting -= 64;
        waiting = n_waiting ? v >> (bits - n_waiting) : 0;
    }
    memcpy(to, &waiting, n_waiting / 8);
    return to + n_waiting / 8;
}

/* ---- levels: which rows of a nullable column have a value ---- */

uint32_t fp_arrow_count(const struct fp_arrow_rows *rows) {
    if (!rows->valid) return rows->n;
    uint32_t n = 0, i = 0;
    for (; i + 8 <= rows->n / 8; i += 8) {
        uint64_t bits;
        memcpy(&bits, rows->valid + i, sizeof bits);
        n += (uint32_t)__builtin_popcountll(bits);
    }
    for (; i < rows->n / 8; i++) n += (uint32_t)__builtin_popcount(rows->valid[i]);
    const unsigned rest = rows->n % 8;
    if (rest) n += (uint32_t)__builtin_popcount(rows->valid[rows->n / 8] & ((1u << rest) - 1));
    return n;
}

/* The end of the run of equal bytes at `from`, if they are all 0 or all 1; otherwise `from`. */
static uint32_t equal_bytes(const uint8_t *p, uint32_t from, uint32_t n) {
    uint32_t i = from;
    if (p[from] == 0 || p[from] == 0xff)
        while (i < n && p[i] == p[from]) i++;
    return i;
}

static uint8_t *put_levels(uint8_t *to, const struct fp_arrow_rows *rows, uint32_t n_values) {
    enum { SHORTEST = 4 }; /* bytes of the bitmap for which a run pays */
    if (n_values == rows->n || !n_values) {
        to = fp_varint(to, (uint64_t)rows->n << 1);
        *to++ = n_values > 0;
        return to;
    }
    const uint32_t whole = rows->n / 8, rest = rows->n % 8;
    for (uint32_t i = 0; i < whole;) {
        const uint32_t end = equal_bytes(rows->valid, i, whole);
        if (end - i >= SHORTEST) {
            to = fp_varint(to, (uint64_t)(end - i) << 4);
            *to++ = rows->valid[i] & 1;
            i = end;
            continue;
        }
        uint32_t stop = i + 1;
        while (stop < whole && stop - i < MOST_GROUPS && equal_bytes(rows->valid, stop, whole) - stop < SHORTEST)
            stop++;
        *to++ = (uint8_t)((stop - i) << 1 | 1);
        memcpy(to, rows->valid + i, stop - i);
        to += stop - i;
        i = stop;
    }
    if (rest) {
        *to++ = 1 << 1 | 1;
        *to++ = (uint8_t)(rows->valid[whole] & ((1u << rest) - 1));
    }
    return to;
}

/* Begins a chunk: its levels.  Without missing values, rows->valid becomes NULL. */
static void begin(struct fp_arrow_pages *p, struct fp_arrow_rows *rows) {
    p->data.n = p->dictionary.n = 0;
    p->n_entries = 0;
    p->encoding = FP_ARROW_PLAIN;
    p->n_values = fp_arrow_count(rows);
    p->least = p->greatest = 0;
    if (!rows->valid) return;
    /* a run takes at most 6 bytes for 4 of the bitmap, and single groups twice their size */
    fp_buf_reserve(&p->data, (size_t)rows->n / 4 + 32);
    uint8_t *end = put_levels(p->data.p + 4, rows, p->n_values);
    const uint32_t n = (uint32_t)(end - p->data.p - 4);
    memcpy(p->data.p, &n, 4);
    p->data.n = (size_t)n + 4;
    if (p->n_values == rows->n) rows->valid = NULL;
}

/* ---- differences ---- */

/* Values are compared as unsigned numbers after this is added: signed ones are moved by half the range. */
static uint64_t bias_of(const struct fp_arrow_rows *rows) {
    return rows->is_signed ? (uint64_t)1 << (rows->width * 8 - 1) : 0;
}

FP_INLINE void widen_range(struct fp_arrow_pages *p, const uint64_t *v, unsigned n, uint64_t bias) {
    uint64_t least = p->least ^ bias, greatest = p->greatest ^ bias;
    for (unsigned k = 0; k < n; k++) {
        const uint64_t x = v[k] ^ bias;
        least = x < least ? x : least;
        greatest = x > greatest ? x : greatest;
    }
    p->least = least ^ bias;
    p->greatest = greatest ^ bias;
}

/* Writes a block of n >= 1 differences; room for the rest of it is in `d`. */
FP_INLINE uint8_t *put_block(uint8_t *to, uint64_t *d, unsigned n) {
    int64_t least = (int64_t)d[0];
    for (unsigned k = 1; k < n; k++) least = (int64_t)d[k] < least ? (int64_t)d[k] : least;
    for (unsigned k = 0; k < n; k++) d[k] -= (uint64_t)least;
    to = fp_varint(to, fp_zig((uint64_t)least));
    uint8_t *widths = to;
    memset(widths, 0, BLOCK / MINI);
    to += BLOCK / MINI;
    if (n % MINI) memset(d + n, 0, (MINI - n % MINI) * sizeof *d);
    for (unsigned from = 0; from < n; from += MINI) {
        uint64_t any = 0;
        for (unsigned k = 0; k < MINI; k++) any |= d[from + k];
        const unsigned bits = bits_of(any);
        widths[from / MINI] = (uint8_t)bits;
        to = pack(to, d + from, 8, MINI, bits);
    }
    return to;
}

FP_INLINE int put_values(struct fp_arrow_pages *p, struct fp_buf *to, const struct fp_arrow_rows *rows) {
    const int is_wide = rows->width == 8;
    const uint64_t bias = bias_of(rows);
    uint64_t v[BLOCK], d[BLOCK], last;
    uint32_t at = 0;
    take(rows, &at, &last, 1);
    p->least = p->greatest = last;
    fp_buf_reserve(to, 40);
    uint8_t *end = fp_varint(to->p + to->n, BLOCK);
    end = fp_varint(end, BLOCK / MINI);
    end = fp_varint(end, p->n_values);
    end = fp_varint(end, fp_zig(is_wide ? last : (uint64_t)(int32_t)last));
    to->n = (size_t)(end - to->p);
    for (unsigned n; (n = take(rows, &at, v, BLOCK)) > 0; last = v[n - 1]) {
        widen_range(p, v, n, bias);
        d[0] = v[0] - last;
        for (unsigned k = 1; k < n; k++) d[k] = v[k] - v[k - 1];
        if (!is_wide)
            for (unsigned k = 0; k < n; k++) d[k] = (uint64_t)(int32_t)d[k];
        fp_buf_reserve(to, 16 + BLOCK * 8);
        to->n = (size_t)(put_block(to->p + to->n, d, n) - to->p);
    }
    return 0;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same, four values at a time. */
__attribute__((target("avx2,bmi,bmi2,popcnt"))) static int put_values_avx2(struct fp_arrow_pages *p, struct fp_buf *to,
                                                                           const struct fp_arrow_rows *rows) {
    return put_values(p, to, rows);
}
#define HAVE_AVX2() (!(~fp_cpu() & (FP_CPU_AVX2 | FP_CPU_BMI)))
#else
#define put_values_avx2 put_values
#define HAVE_AVX2() 0
#endif

/* Appends the values of a chunk, of which there is at least one. */
static int put_differences(struct fp_arrow_pages *p, struct fp_buf *to, const struct fp_arrow_rows *rows) {
    return !p->is_portable && HAVE_AVX2() ? put_values_avx2(p, to, rows) : put_values(p, to, rows);
}

/* ---- dictionaries ---- */

static unsigned index_bits(const struct fp_arrow_pages *p) {
    return p->n_entries > 1 ? bits_of(p->n_entries - 1) : 1;
}

static uint32_t run_length(const uint32_t *v, uint32_t i, uint32_t n) {
    uint32_t end = i + 1;
    while (end < n && v[end] == v[i]) end++;
    return end - i;
}

/* Appends the bit width, then `indices`. */
static void put_indices(struct fp_arrow_pages *p) {
    const unsigned bits = index_bits(p), n_bytes = (bits + 7) / 8;
    const uint32_t *v = p->indices, n = p->n_values;
    fp_buf_reserve(&p->data, 1);
    p->data.p[p->data.n++] = (uint8_t)bits;
    for (uint32_t i = 0; i < n;) {
        fp_buf_reserve(&p->data, 16 + MOST_GROUPS * 32);
        uint8_t *to = p->data.p + p->data.n;
        const uint32_t run = run_length(v, i, n);
        if (run >= 8) {
            to = fp_varint(to, (uint64_t)run << 1);
            memcpy(to, &v[i], n_bytes);
            to += n_bytes;
            i += run;
        } else {
            uint8_t *head = to++;
            unsigned groups = 0;
            for (; groups < MOST_GROUPS && n - i >= 8; groups++, i += 8) {
                if (v[i] == v[i + 1] && run_length(v, i, i + 8) == 8) break;
                to = pack(to, v + i, 4, 8, bits);
            }
            if (groups < MOST_GROUPS && n - i < 8 && i < n) {
                uint32_t last[8] = {0};
                memcpy(last, v + i, (n - i) * sizeof *v);
                to = pack(to, last, 4, 8, bits);
                groups++;
                i = n;
            }
            *head = (uint8_t)(groups << 1 | 1);
        }
        p->data.n = (size_t)(to - p->data.p);
    }
}

static int put_texts(struct fp_arrow_pages *p, const struct fp_arrow_texts *texts, uint64_t most) {
    const int64_t *at = texts->offsets;
    uint64_t need = 0;
    for (uint32_t k = 0; k < p->n_entries; k++) {
        need += 4 + (uint64_t)(at[p->entries[k] + 1] - at[p->entries[k]]);
        if (need > most) return FP_E_OVERFLOW;
    }
    fp_buf_reserve(&p->dictionary, need);
    const uint8_t *least = NULL, *greatest = NULL;
    size_t n_least = 0, n_greatest = 0;
    uint8_t *to = p->dictionary.p;
    for (uint32_t k = 0; k < p->n_entries; k++) {
        const uint8_t *text = texts->bytes + at[p->entries[k]];
        const uint32_t n = (uint32_t)(at[p->entries[k] + 1] - at[p->entries[k]]);
        memcpy(to, &n, 4);
        if (n) memcpy(to + 4, text, n);
        to += 4 + (size_t)n;
        const int below = least ? memcmp(text, least, n < n_least ? n : n_least) : -1;
        if (below < 0 || (!below && n < n_least)) p->least = p->entries[k], least = text, n_least = n;
        const int above = greatest ? memcmp(text, greatest, n < n_greatest ? n : n_greatest) : 1;
        if (above > 0 || (!above && n > n_greatest)) p->greatest = p->entries[k], greatest = text, n_greatest = n;
    }
    p->dictionary.n = need;
    return 0;
}

/* Fills `indices` and `entries`.  0 or FP_E_MALFORMED. */
FP_INLINE int number_texts(struct fp_arrow_pages *p, const struct fp_arrow_rows *rows, uint32_t n_texts, unsigned width,
                           struct fp_err *err) {
    uint32_t n = 0, *of = p->of;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->valid && !has_value(rows, i)) continue;
        const uint32_t id = (uint32_t)item(rows->items, i, width);
        if (FP_UNLIKELY(id >= n_texts)) return fp_unknown_id(err, "the text of a row", id, n_texts);
        if (FP_UNLIKELY(!of[id])) {
            p->entries[p->n_entries++] = id;
            of[id] = p->n_entries;
        }
        p->indices[n++] = of[id] - 1;
    }
    return 0;
}

int fp_arrow_pages_texts(struct fp_arrow_pages *p, const struct fp_arrow_rows *column,
                         const struct fp_arrow_texts *texts, uint64_t most, struct fp_err *err) {
    struct fp_arrow_rows rows = *column;
    begin(p, &rows);
    if (!p->n_values) return 0;
    fp_array_room(&p->indices, &p->cap_indices, p->n_values, sizeof *p->indices);
    fp_array_room(&p->entries, &p->cap_entries, p->n_values, sizeof *p->entries);
    fp_array_room(&p->of, &p->cap_of, (uint64_t)texts->n + 1, sizeof *p->of);
    memset(p->of, 0, texts->n * sizeof *p->of);
    const int is_narrow = rows.width == 1;
    int status = is_narrow ? number_texts(p, &rows, texts->n, 1, err) : number_texts(p, &rows, texts->n, 4, err);
    if (status) return status;
    p->encoding = FP_ARROW_DICTIONARY;
    status = put_texts(p, texts, most);
    if (!status) put_indices(p);
    if (status == FP_E_OVERFLOW)
        fp_fail_beyond(err, "the size of a column's texts", FP_NO_COLUMN, "the limit of a dictionary");
    return status;
}

/* ---- numbers ---- */

/* Fills `indices` and `keys`.  1, or 0 if too many numbers collide. */
static int number_numbers(struct fp_arrow_pages *p, const struct fp_arrow_rows *rows) {
    const unsigned log = bits_of(p->n_values) + 1; /* two to four slots for each value */
    const uint64_t slots = (uint64_t)1 << log;
    if (log > 31) fp_escape();
    fp_array_room(&p->of, &p->cap_of, slots, sizeof *p->of);
    fp_array_room(&p->keys, &p->cap_keys, p->n_values, sizeof *p->keys);
    fp_array_room(&p->indices, &p->cap_indices, p->n_values, sizeof *p->indices);
    memset(p->of, 0, slots * sizeof *p->of);
    uint64_t v[BLOCK], last = 0;
    uint32_t at = 0, n = 0, index = 0;
    for (unsigned got; (got = take(rows, &at, v, BLOCK)) > 0;) {
        for (unsigned k = 0; k < got; k++, n++) {
            if (v[k] != last || !p->n_entries) {
                uint64_t slot = (v[k] * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - log);
                unsigned probes = 0;
                for (; p->of[slot] && p->keys[p->of[slot] - 1] != v[k]; slot = (slot + 1) & (slots - 1))
                    if (++probes == MOST_PROBES) return 0;
                if (!p->of[slot]) {
                    p->keys[p->n_entries++] = v[k];
                    p->of[slot] = p->n_entries;
                }
                index = p->of[slot] - 1;
                last = v[k];
            }
            p->indices[n] = index;
        }
    }
    return 1;
}

/* Appends the numbers of the dictionary and sets their range. */
static void put_numbers(struct fp_arrow_pages *p, const struct fp_arrow_rows *rows) {
    const unsigned width = rows->width == 8 ? 8 : 4;
    fp_buf_reserve(&p->dictionary, (size_t)p->n_entries * width);
    for (uint32_t k = 0; k < p->n_entries; k++) memcpy(p->dictionary.p + (size_t)k * width, &p->keys[k], width);
    p->dictionary.n = (size_t)p->n_entries * width;
    p->least = p->greatest = p->keys[0];
    widen_range(p, p->keys, p->n_entries, bias_of(rows));
}

/* Replaces a dictionary of `size` bytes, behind `levels` bytes of data, by differences if they are smaller. */
static void try_differences(struct fp_arrow_pages *p, const struct fp_arrow_rows *rows, size_t levels, size_t size) {
    struct fp_buf *found = &p->found;
    found->n = 0;
    put_differences(p, found, rows);
    if (found->n < size) {
        p->data.n = levels;
        fp_buf_put(&p->data, found->p, found->n);
        p->dictionary.n = 0;
        p->n_entries = 0;
        p->encoding = FP_ARROW_DELTA;
    }
}

int fp_arrow_pages_numbers(struct fp_arrow_pages *p, const struct fp_arrow_rows *column, uint32_t distinct) {
    enum { SMALL = 4 }; /* values for each byte of a dictionary that needs no comparison */
    struct fp_arrow_rows rows = *column;
    begin(p, &rows);
    if (!p->n_values) return 0;
    const size_t levels = p->data.n;
    const int status = distinct ? 0 : number_numbers(p, &rows);
    if (!status) {
        p->n_entries = 0;
        p->encoding = FP_ARROW_DELTA;
        return put_differences(p, &p->data, &rows);
    }
    p->encoding = FP_ARROW_DICTIONARY;
    put_numbers(p, &rows);
    put_indices(p);
    const size_t size = p->data.n - levels + p->dictionary.n;
    if (size > p->n_values / SMALL) try_differences(p, &rows, levels, size);
    return 0;
}

int fp_arrow_pages_reals(struct fp_arrow_pages *p, const struct fp_arrow_rows *column) {
    struct fp_arrow_rows rows = *column;
    begin(p, &rows);
    uint64_t v[BLOCK];
    uint32_t at = 0;
    for (unsigned n; (n = take(&rows, &at, v, BLOCK)) > 0;) fp_buf_put(&p->data, v, n * sizeof *v);
    return 0;
}
