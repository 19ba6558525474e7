#include "callgrind/write.h"

#include "callgrind/wide.h"

enum {
    RUN = 32, /* rows for which room is made at a time */
    /* The maximum size of a row and the names before it, without its counts and names in full: a jcnd= line with
     * two counts, three target and three source positions, and the names of a block and of a callee by number. */
    ROW_BYTES = 512,
    NO_ROW = 0xffffffff
};

/* ---- positions ---- */

/* The texts of `-99 ` to `+99 `, and `* ` for 0, with their lengths. */
struct near {
    uint8_t text[4];
    uint32_t n;
};
#define NEAR_SIGNED(sign, v)                                                                              \
    {{sign, (uint8_t)('0' + ((v) > 9 ? (v) / 10 : (v))), (v) > 9 ? (uint8_t)('0' + (v) % 10) : ' ', ' '}, \
     (v) > 9 ? 4 : 3}
#define NEAR_MINUS(v) NEAR_SIGNED('-', v)
#define NEAR_PLUS(v) NEAR_SIGNED('+', v)
#define NEAR9_UP(one, v)                                                                                      \
    one(v), one((v) + 1), one((v) + 2), one((v) + 3), one((v) + 4), one((v) + 5), one((v) + 6), one((v) + 7), \
        one((v) + 8)
#define NEAR9_DOWN(one, v)                                                                                    \
    one(v), one((v) - 1), one((v) - 2), one((v) - 3), one((v) - 4), one((v) - 5), one((v) - 6), one((v) - 7), \
        one((v) - 8)
static const struct near nears[199] = {
    NEAR9_DOWN(NEAR_MINUS, 99), NEAR9_DOWN(NEAR_MINUS, 90), NEAR9_DOWN(NEAR_MINUS, 81), NEAR9_DOWN(NEAR_MINUS, 72),
    NEAR9_DOWN(NEAR_MINUS, 63), NEAR9_DOWN(NEAR_MINUS, 54), NEAR9_DOWN(NEAR_MINUS, 45), NEAR9_DOWN(NEAR_MINUS, 36),
    NEAR9_DOWN(NEAR_MINUS, 27), NEAR9_DOWN(NEAR_MINUS, 18), NEAR9_DOWN(NEAR_MINUS, 9),  {{'*', ' ', ' ', ' '}, 2},
    NEAR9_UP(NEAR_PLUS, 1),     NEAR9_UP(NEAR_PLUS, 10),    NEAR9_UP(NEAR_PLUS, 19),    NEAR9_UP(NEAR_PLUS, 28),
    NEAR9_UP(NEAR_PLUS, 37),    NEAR9_UP(NEAR_PLUS, 46),    NEAR9_UP(NEAR_PLUS, 55),    NEAR9_UP(NEAR_PLUS, 64),
    NEAR9_UP(NEAR_PLUS, 73),    NEAR9_UP(NEAR_PLUS, 82),    NEAR9_UP(NEAR_PLUS, 91),
};

/* Writes v relative to `base`.  NULL, and nothing written, if base is not known (0) or more than 99 away. */
FP_INLINE uint8_t *put_near(uint8_t *p, uint64_t v, uint64_t base) {
    const uint64_t step = v - base + 99;
    if (step > 198 || !base) return NULL;
    if ((v ^ base) >> 63 && (v < base) != (step < 99)) return NULL; /* 99 unique only because 64 bits wrap */
    memcpy(p, nears[step].text, 4);
    return p + nears[step].n;
}

/* An address or basic block. */
FP_INLINE uint8_t *put_address(uint8_t *p, uint64_t v, uint64_t base) {
    uint8_t *near = put_near(p, v, base);
    if (near) return near;
    *p++ = '0';
    if (v) {
        *p++ = 'x';
        p = fp_put_hex(p, v);
    }
    *p = ' ';
    return p + 1;
}

FP_INLINE uint8_t *put_line(uint8_t *p, uint32_t v, uint32_t base) {
    uint8_t *near = put_near(p, v, base);
    if (near) return near;
    p = fp_put_decimal(p, v);
    *p = ' ';
    return p + 1;
}

/* ---- the counts of a line, after the blank that ends its positions ---- */

typedef uint8_t *counts_fn(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t row, uint32_t n, uint8_t *p);

FP_INLINE uint8_t *counts_plain(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t row, uint32_t n,
                                uint8_t *p) {
    const int64_t *v = b->values + row;
    while (n > 1 && v[(size_t)(n - 1) * b->cap] == 0 && !w->all_counts) n--;
    if (n == 0) *p++ = '0';
    for (uint32_t k = 0; k < n; k++, v += b->cap) {
        p = fp_put_signed(p, *v);
        *p++ = ' ';
    }
    if (n) p--;
    *p = '\n';
    return p + 1;
}

#if FP_WIDE
/* Sixteen rows of a column, as 32-bit numbers.  A value that does not fit becomes 2^32 - 1.  0 if there is no such
 * column. */
FP_WIDE_TARGET FP_INLINE __m512i column(const struct fp_batch *b, uint32_t n_values, uint32_t k, uint32_t from) {
    if (k >= n_values) return _mm512_setzero_si512();
    const int64_t *v = b->values + (size_t)k * b->cap + from;
    const uint32_t there = b->n - from < 16 ? (1u << (b->n - from)) - 1 : 0xffff;
    const __m256i low = _mm512_cvtusepi64_epi32(_mm512_maskz_loadu_epi64((__mmask8)there, v));
    const __m256i high = _mm512_cvtusepi64_epi32(_mm512_maskz_loadu_epi64((__mmask8)(there >> 8), v + 8));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Loads the values of sixteen rows, from row `from` on, into w->rows.  That is a transposition: first within lanes of
 * four by four values, then of the lanes. */
FP_WIDE_TARGET static void load_rows(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t from) {
    __m512i r[4][4]; /* lane i of r[q][k]: row 4 i + k, columns 4 q .. 4 q + 3 */
    for (uint32_t q = 0; q < 4; q++) {
        const __m512i c0 = column(b, w->n_values, 4 * q, from), c1 = column(b, w->n_values, 4 * q + 1, from);
        const __m512i c2 = column(b, w->n_values, 4 * q + 2, from), c3 = column(b, w->n_values, 4 * q + 3, from);
        const __m512i t0 = _mm512_unpacklo_epi32(c0, c1), t1 = _mm512_unpackhi_epi32(c0, c1);
        const __m512i t2 = _mm512_unpacklo_epi32(c2, c3), t3 = _mm512_unpackhi_epi32(c2, c3);
        r[q][0] = _mm512_unpacklo_epi64(t0, t2);
        r[q][1] = _mm512_unpackhi_epi64(t0, t2);
        r[q][2] = _mm512_unpacklo_epi64(t1, t3);
        r[q][3] = _mm512_unpackhi_epi64(t1, t3);
    }
    for (uint32_t k = 0; k < 4; k++) {
        /* lanes 0 1 of each two, lanes 2 3 of each two */
        const __m512i x0 = _mm512_shuffle_i32x4(r[0][k], r[1][k], 0x44),
                      y0 = _mm512_shuffle_i32x4(r[2][k], r[3][k], 0x44);
        const __m512i x2 = _mm512_shuffle_i32x4(r[0][k], r[1][k], 0xee),
                      y2 = _mm512_shuffle_i32x4(r[2][k], r[3][k], 0xee);
        _mm512_storeu_si512(w->rows[k], _mm512_shuffle_i32x4(x0, y0, 0x88));
        _mm512_storeu_si512(w->rows[4 + k], _mm512_shuffle_i32x4(x0, y0, 0xdd));
        _mm512_storeu_si512(w->rows[8 + k], _mm512_shuffle_i32x4(x2, y2, 0x88));
        _mm512_storeu_si512(w->rows[12 + k], _mm512_shuffle_i32x4(x2, y2, 0xdd));
    }
    w->ahead = from;
}

/* The digits of sixteen numbers below 10^4, four bytes each:
 *
 *     number           1234
 *     hundreds, rest   12 34     16 bits each
 *     digits           1 2 3 4   8 bits each */
FP_WIDE_TARGET FP_INLINE __m512i four_digits(__m512i v) {
    __m512i q = _mm512_srli_epi16(_mm512_mulhi_epu16(v, _mm512_set1_epi32(5243)), 3);
    v = _mm512_or_si512(q, _mm512_slli_epi32(_mm512_sub_epi16(v, _mm512_mullo_epi16(q, _mm512_set1_epi32(100))), 16));
    q = _mm512_mulhi_epu16(v, _mm512_set1_epi16(6554));
    return _mm512_or_si512(q, _mm512_slli_epi16(_mm512_sub_epi16(v, _mm512_mullo_epi16(q, _mm512_set1_epi16(10))), 8));
}

/* Writes the first n of sixteen numbers of up to four digits, each with a blank before it:
 *
 *     digits           1234      0000      0077
 *     as text         ?1234     ?0000     ?0077     ? = blank
 *     written         ?1234        ?0       ?77     without leading zeros
 */
FP_WIDE_TARGET FP_INLINE uint8_t *put_fours(__m512i d, unsigned n, uint8_t *p) {
    /* all ones in the bytes of leading zeros; the last digit always counts as nonzero */
    const __m512i some = _mm512_or_si512(d, _mm512_set1_epi32(1 << 24));
    const __m512i before = _mm512_andnot_si512(some, _mm512_sub_epi32(some, _mm512_set1_epi32(1)));
    const __mmask64 digits = _mm512_cmpneq_epu8_mask(before, _mm512_set1_epi8(-1));
    d = _mm512_maskz_add_epi8(digits, d, _mm512_set1_epi8('0'));
    /* four bytes become five, for twelve numbers at a time */
    static const uint8_t fives[2][64] = {
        {0,  0,  1,  2,  3,  0,  4,  5,  6,  7,  0,  8,  9,  10, 11, 0,  12, 13, 14, 15, 0,  16,
         17, 18, 19, 0,  20, 21, 22, 23, 0,  24, 25, 26, 27, 0,  28, 29, 30, 31, 0,  32, 33, 34,
         35, 0,  36, 37, 38, 39, 0,  40, 41, 42, 43, 0,  44, 45, 46, 47, 0,  0,  0,  0},
        {0, 48, 49, 50, 51, 0, 52, 53, 54, 55, 0, 56, 57, 58, 59, 0, 60, 61, 62, 63}};
    const __mmask64 not_blank = ~UINT64_C(0x0084210842108421);
    const __m512i blanks = _mm512_set1_epi8(' ');
    __m512i text = _mm512_mask_permutexvar_epi8(blanks, not_blank, _mm512_loadu_si512(fives[0]), d);
    uint64_t written = _bzhi_u64(_mm512_test_epi8_mask(text, text), 5 * (n < 12 ? n : 12));
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(written, text));
    p += __builtin_popcountll(written);
    if (n <= 12) return p;
    text = _mm512_mask_permutexvar_epi8(blanks, not_blank, _mm512_loadu_si512(fives[1]), d);
    written = _bzhi_u64(_mm512_test_epi8_mask(text, text), 5 * (n - 12));
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(written, text));
    return p + __builtin_popcountll(written);
}

/* Writes the first n of eight numbers below 10^7, as put_fours does smaller ones. */
FP_WIDE_TARGET static uint8_t *put_eights(__m256i lanes, unsigned n, uint8_t *p) {
    /* the steps of fp_eight_digits */
    const __m512i v = _mm512_cvtepu32_epi64(lanes);
    const __m512i high = _mm512_srli_epi64(_mm512_mul_epu32(v, _mm512_set1_epi64(3518437209)), 45);
    const __m512i low = _mm512_sub_epi64(v, _mm512_mul_epu32(high, _mm512_set1_epi64(10000)));
    __m512i d = four_digits(_mm512_or_si512(high, _mm512_slli_epi64(low, 32)));
    const __m512i some = _mm512_or_si512(d, _mm512_set1_epi64((long long)1 << 56));
    const __m512i before = _mm512_andnot_si512(some, _mm512_sub_epi64(some, _mm512_set1_epi64(1)));
    uint64_t written = _mm512_cmpneq_epu8_mask(before, _mm512_set1_epi8(-1));
    written = _bzhi_u64(written | 0x0101010101010101, 8 * n);
    d = _mm512_add_epi8(d, _mm512_set1_epi64(0x3030303030303020));
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(written, d));
    return p + __builtin_popcountll(written);
}

FP_WIDE_TARGET FP_INLINE uint8_t *counts_wide(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t row,
                                              uint32_t n, uint8_t *p) {
    if (n - 2 > 14) return counts_plain(w, b, row, n, p); /* not 2 to 16 */
    if ((row & ~(uint32_t)15) != w->ahead) load_rows(w, b, row & ~(uint32_t)15);
    const __m512i v = _mm512_loadu_si512(w->rows[row & 15]);
    if (!w->all_counts) n = 32 - (unsigned)__builtin_clz((unsigned)_mm512_test_epi32_mask(v, v) | 1);
    if (!_mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(9999))) {
        p = put_fours(four_digits(v), n, p - 1);
    } else if (!_mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(9999999))) {
        p = put_eights(_mm512_castsi512_si256(v), n < 8 ? n : 8, p - 1);
        if (n > 8) p = put_eights(_mm512_extracti64x4_epi64(v, 1), n - 8, p);
    } else {
        return counts_plain(w, b, row, w->n_values, p);
    }
    *p = '\n';
    return p + 1;
}
#endif

/* ---- names ---- */

static int has_control_bytes(const uint8_t *text, size_t n) {
    uint8_t least = 255;
    for (size_t i = 0; i < n; i++) least = text[i] < least ? text[i] : least;
    return least <= '\r';
}

/* The escape for a byte that would end the line, or the text in some readers; 0 for others. */
static uint8_t escaped(uint8_t byte) {
    return byte == '\n' ? 'n' : byte == '\r' ? 'r' : byte == 0 ? '0' : 0;
}

/* Whether a name contains such a byte, or the text of its escape. */
static int is_special(const uint8_t *text, size_t n, int *has_byte) {
    *has_byte = 0;
    if (FP_LIKELY(!has_control_bytes(text, n) && !memchr(text, '\\', n))) return 0;
    int has_text = 0;
    for (size_t i = 0; i < n; i++) {
        *has_byte |= escaped(text[i]) != 0;
        has_text |= text[i] == '\\' && i + 1 < n && memchr("nr0", text[i + 1], 3);
    }
    return *has_byte || has_text;
}

const uint8_t *fp_callgrind_line_name(struct fp_callgrind_line_names *t, const struct fp_strings *strings,
                                      uint32_t name, size_t *n) {
    const uint8_t *p = fp_string(strings, name, n);
    int has_byte;
    if (FP_LIKELY(!is_special(p, *n, &has_byte))) return p;
    uint32_t text = fp_utf8_names_find(&t->unique, name);
    if (!text) {
        struct fp_buf *b = &t->scratch;
        b->n = 0;
        if (fp_buf_reserve(b, 2 * *n)) return NULL;
        for (size_t i = 0; i < *n; i++) {
            const uint8_t letter = escaped(p[i]);
            if (letter) b->p[b->n++] = '\\';
            b->p[b->n++] = letter ? letter : p[i];
        }
        text = fp_utf8_names_text(&t->unique, name, b);
        if (text == FP_NO_ID) return NULL;
        t->escaped += (uint64_t)has_byte;
    }
    return fp_string(&t->unique.texts, text, n);
}

static void clear_line_names(struct fp_callgrind_line_names *t) {
    fp_utf8_names_clear(&t->unique);
    fp_buf_free(&t->scratch);
}

/* The entry of `id`, which holds its number; NULL when memory ran out. */
static struct fp_callgrind_named *named(struct fp_callgrind_body *w, unsigned kind, uint32_t id) {
    if (fp_array_zeroed(&w->named[kind], &w->n_named[kind], (uint64_t)id + 1, sizeof **w->named)) return NULL;
    return &w->named[kind][id];
}

static uint32_t name_string(const struct fp_callgrind_body *w, unsigned kind, uint32_t id) {
    return kind == FP_NAMED_FUNCTION ? fp_table_row(&w->names, id)[FP_FUNCTION_NAME]
           : kind == FP_NAMED_OBJECT ? fp_table_row(&w->model->objects, id)[FP_OBJECT_NAME]
                                     : id;
}

/* Looks a function of the model up for the first time.  FP_NO_ID when memory ran out. */
__attribute__((noinline)) static uint32_t add_name(struct fp_callgrind_body *w, uint32_t function) {
    if (!w->names.width && fp_table_init(&w->names, FP_FUNCTION_NAME + 1)) return FP_NO_ID;
    if (fp_array_zeroed(&w->name_of, &w->n_name_of, (uint64_t)function + 1, sizeof *w->name_of)) return FP_NO_ID;
    const uint32_t id = fp_table_intern(&w->names, fp_table_row(&w->model->functions, function));
    if (id != FP_NO_ID) w->name_of[function] = id + 1;
    return id;
}

/* The row of `names` for a function of the model; FP_NO_ID when memory ran out. */
FP_INLINE uint32_t name_of(struct fp_callgrind_body *w, uint32_t function) {
    const uint32_t known = function < w->n_name_of ? w->name_of[function] : 0;
    return FP_LIKELY(known) ? known - 1 : add_name(w, function);
}

/* The name that an object is written by, a string of the model.  FP_NO_ID when memory ran out.
 *
 * Callgrind identifies objects by name only.  If a profile has two builds of one file, the second gets its build id:
 * `ob=(2) /bin/prog [9b0d1c...]`; so does an object that is literally named that, if it comes later. */
static uint32_t name_of_object(struct fp_callgrind_body *w, uint32_t object) {
    const struct fp_model *m = w->model;
    uint32_t name = name_string(w, FP_NAMED_OBJECT, object);
    while (name && name != FP_NO_ID) {
        if (fp_array_zeroed(&w->object_of, &w->cap_object_of, (uint64_t)name + 1, sizeof *w->object_of))
            return FP_NO_ID;
        if (!w->object_of[name]) w->object_of[name] = object + 1;
        if (w->object_of[name] == object + 1) break;
        static const uint8_t no_build[] = "no build id";
        struct fp_buf longer = {0};
        size_t n, n_build;
        const uint8_t *build = fp_string(&m->strings, fp_table_row(&m->objects, object)[FP_OBJECT_BUILD_ID], &n_build);
        const uint8_t *text = fp_string(&m->strings, name, &n);
        const int failed = fp_buf_put(&longer, text, n) || fp_buf_put(&longer, " [", 2) ||
                           fp_buf_put(&longer, n_build ? build : no_build, n_build ? n_build : sizeof no_build - 1) ||
                           fp_buf_put(&longer, "]", 1);
        name = failed ? FP_NO_ID : fp_strings_intern(&w->model->strings, longer.p, longer.n);
        fp_buf_free(&longer);
    }
    return name;
}

/* Writes what follows `fn=`, the name of `id`, and makes room for the next row.  NULL when memory ran out.
 *
 * With compression that is `(5) name` the first time in a part, then `(5)`.  A name that looks like a number in
 * parentheses always gets a number, or it would be read as one.  A name that is empty or begins with a blank never gets
 * a number, because a reader would not read back the same name. */
static uint8_t *put_name_in_full(struct fp_callgrind_body *w, uint8_t *p, unsigned kind, uint32_t id) {
    size_t n;
    const uint32_t name = kind == FP_NAMED_OBJECT ? name_of_object(w, id) : name_string(w, kind, id);
    if (name == FP_NO_ID) return NULL;
    const uint8_t *text = fp_callgrind_line_name(&w->line_names[kind], &w->model->strings, name, &n);
    w->out->n = (size_t)(p - w->out->p);
    if (!text || fp_buf_reserve(w->out, n + w->room)) return NULL;
    p = w->out->p + w->out->n;
    const int numbered = n && text[0] != ' ' && text[0] != '\t' &&
                         (w->compress_names || (n > 1 && text[0] == '(' && fp_is_digit(text[1])));
    if (numbered) {
        struct fp_callgrind_named *entry = named(w, kind, id);
        if (!entry) return NULL;
        const int defined = entry->part == w->part;
        if (!defined) *entry = (struct fp_callgrind_named){w->part, ++w->next_number[kind]};
        *p = '(';
        p = fp_put_decimal(p + 1, entry->number);
        *p++ = ')';
        *p = defined ? '\n' : ' ';
        p++;
        if (defined) return p;
    }
    memcpy(p, text, n);
    p[n] = '\n';
    return p + n + 1;
}

/* Whether `id` has a number in this part. */
FP_INLINE int is_named(const struct fp_callgrind_body *w, unsigned kind, uint32_t id) {
    return id < w->n_named[kind] && w->named[kind][id].part == w->part;
}

/* Writes `key` and the name of `id`; NULL when memory ran out. */
FP_INLINE uint8_t *put_name(struct fp_callgrind_body *w, uint8_t *p, const char *key, unsigned kind, uint32_t id) {
    memcpy(p, key, strlen(key));
    p += strlen(key);
    /* already written in this part, with a number */
    if (w->compress_names && is_named(w, kind, id)) {
        *p = '(';
        p = fp_put_decimal(p + 1, w->named[kind][id].number);
        memcpy(p, ")\n", 2);
        return p + 2;
    }
    return put_name_in_full(w, p, kind, id);
}

/* Ends a block.  If no row followed `fn=(5) name`, readers treat it only as the definition of the number: a second
 * `fn=(5)` makes it a block. */
FP_INLINE uint8_t *close_block(struct fp_callgrind_body *w, uint8_t *p) {
    if (w->empty && is_named(w, FP_NAMED_FUNCTION, w->function))
        p = put_name(w, p, "fn=", FP_NAMED_FUNCTION, w->function);
    w->empty = 0;
    return p;
}

/* Ends the previous block and writes the lines that begin a function's block; NULL when memory ran out. */
FP_INLINE uint8_t *put_block(struct fp_callgrind_body *w, uint8_t *p, uint32_t model_function) {
    const uint32_t function = name_of(w, model_function);
    if (function == FP_NO_ID) return NULL;
    w->model_function = model_function;
    if (function == w->function) return p;
    const uint32_t *f = fp_table_row(&w->names, function);
    if (w->function != FP_NO_ID) {
        if (!(p = close_block(w, p))) return NULL;
        /* After fn= some readers remain in the file of the last fi= or fe=, others do not.  Return to the block's file.
         */
        if (w->file != w->block_file && !(p = put_name(w, p, "fe=", FP_NAMED_FILE, w->block_file))) return NULL;
        *p++ = '\n';
    }
    if (f[FP_FUNCTION_OBJECT] != w->object) {
        w->object = f[FP_FUNCTION_OBJECT];
        if (!(p = put_name(w, p, "ob=", FP_NAMED_OBJECT, w->object))) return NULL;
    }
    if (f[FP_FUNCTION_FILE] != w->block_file) {
        w->block_file = f[FP_FUNCTION_FILE];
        if (!(p = put_name(w, p, "fl=", FP_NAMED_FILE, w->block_file))) return NULL;
    }
    w->file = w->block_file;
    w->function = function;
    w->empty = !is_named(w, FP_NAMED_FUNCTION, function);
    w->base = w->from = (struct fp_callgrind_position){0};
    return put_name(w, p, "fn=", FP_NAMED_FUNCTION, function);
}

FP_INLINE uint8_t *put_callee(struct fp_callgrind_body *w, uint8_t *p, uint32_t model_function) {
    const uint32_t callee = name_of(w, model_function);
    if (callee == FP_NO_ID) return NULL;
    const uint32_t *f = fp_table_row(&w->names, callee);
    if (f[FP_FUNCTION_OBJECT] != w->object && !(p = put_name(w, p, "cob=", FP_NAMED_OBJECT, f[FP_FUNCTION_OBJECT])))
        return NULL;
    if (f[FP_FUNCTION_FILE] != w->file && !(p = put_name(w, p, "cfi=", FP_NAMED_FILE, f[FP_FUNCTION_FILE])))
        return NULL;
    return put_name(w, p, "cfn=", FP_NAMED_FUNCTION, callee);
}

FP_INLINE uint8_t *put_jump_target(struct fp_callgrind_body *w, uint8_t *p, uint32_t model_function, uint32_t file) {
    const uint32_t function = name_of(w, model_function);
    if (function == FP_NO_ID) return NULL;
    if (file != w->file && !(p = put_name(w, p, "jfi=", FP_NAMED_FILE, file))) return NULL;
    if (function != w->function) p = put_name(w, p, "jfn=", FP_NAMED_FUNCTION, function);
    return p;
}

/* ---- rows ---- */

/* The columns of a part.  Callers pass constants for the usual ones. */
struct shape {
    uint32_t instr, bb, lines, n_values;
};

FP_INLINE uint8_t *put_positions(const struct shape s, uint8_t *p, const struct fp_callgrind_position *at,
                                 const struct fp_callgrind_position *from) {
    if (s.instr) p = put_address(p, at->address, from->address);
    if (s.bb) p = put_address(p, at->bb, from->bb);
    if (s.lines) p = put_line(p, (uint32_t)at->line, (uint32_t)from->line);
    return p;
}

/* Writes cost lines of one function and file, at most up to row `until`.  *next is the first row not written. */
FP_INLINE uint8_t *put_costs(struct fp_callgrind_body *w, const struct fp_batch *b, const struct shape s, uint32_t i,
                             uint32_t until, uint8_t *p, uint32_t *next, counts_fn *counts) {
    const uint32_t function = w->model_function, file = w->file, compress = w->compress_positions;
    struct fp_callgrind_position from = w->from;
    do {
        const struct fp_callgrind_position at = {s.instr ? b->address[i] : 0, s.bb ? b->bb[i] : 0,
                                                 s.lines ? b->line[i] : 0};
        p = put_positions(s, p, &at, &from);
        p = counts(w, b, i, s.n_values, p);
        if (compress) from = at;
        i++;
    } while (i < until && b->kind[i] == FP_COST && b->function[i] == function && b->file[i] == file);
    w->base = w->from = from;
    *next = i;
    return p;
}

/* Writes a call or jump; NULL when memory ran out. */
FP_INLINE uint8_t *put_arc(struct fp_callgrind_body *w, const struct fp_batch *b, const struct shape s, uint32_t i,
                           uint8_t *p, counts_fn *counts) {
    const uint8_t kind = b->kind[i];
    if (kind == FP_CALL) {
        if (!(p = put_callee(w, p, b->callee[i]))) return NULL;
        memcpy(p, "calls=", 6);
        p = fp_put_decimal(p + 6, b->count[i]);
    } else {
        if (!(p = put_jump_target(w, p, b->callee[i], b->target_file[i]))) return NULL;
        memcpy(p, kind == FP_JUMP ? "jump=" : "jcnd=", 5);
        p = fp_put_decimal(p + 5, b->count[i]);
        if (kind == FP_JCND) {
            *p = '/';
            p = fp_put_decimal(p + 1, b->count2[i]);
        }
    }
    *p = ' ';
    const struct fp_callgrind_position to = {b->target_address[i], b->target_bb[i], b->target_line[i]};
    p = put_positions(s, p + 1, &to, &w->from);
    *p = '\n';
    const struct fp_callgrind_position at = {s.instr ? b->address[i] : 0, s.bb ? b->bb[i] : 0,
                                             s.lines ? b->line[i] : 0};
    p = put_positions(s, p + 1, &at, &w->from);
    w->from.address = at.address == w->base.address ? at.address : 0;
    w->from.bb = at.bb == w->base.bb ? at.bb : 0;
    w->from.line = at.line == w->base.line ? at.line : 0;
    if (kind == FP_CALL) return counts(w, b, i, s.n_values, p);
    *p = '\n';
    return p + 1;
}

FP_INLINE int put_rows(struct fp_callgrind_body *w, const struct fp_batch *b, const struct shape s, counts_fn *counts) {
    if (fp_buf_reserve(w->out, w->room)) return FP_E_NOMEM;
    uint8_t *p = w->out->p + w->out->n;
    for (uint32_t i = 0; i < b->n;) {
        w->out->n = (size_t)(p - w->out->p);
        if (fp_buf_reserve(w->out, w->room)) return FP_E_NOMEM;
        p = w->out->p + w->out->n;
        if (b->function[i] != w->model_function && !(p = put_block(w, p, b->function[i]))) return FP_E_NOMEM;
        if (b->kind[i] == FP_BLOCK) {
            i++;
            continue;
        }
        w->empty = 0;
        if (b->file[i] != w->file) {
            w->file = b->file[i];
            if (!(p = put_name(w, p, w->file == w->block_file ? "fe=" : "fi=", FP_NAMED_FILE, w->file)))
                return FP_E_NOMEM;
        }
        if (b->kind[i] == FP_COST) {
            p = put_costs(w, b, s, i, b->n - i < RUN ? b->n : i + RUN, p, &i, counts);
        } else {
            if (!(p = put_arc(w, b, s, i, p, counts))) return FP_E_NOMEM;
            i++;
        }
    }
    w->out->n = (size_t)(p - w->out->p);
    return 0;
}

FP_INLINE int put_shape(struct fp_callgrind_body *w, const struct fp_batch *b, counts_fn *counts) {
    if (w->instr && !w->bb && w->lines && w->n_values == 1)
        return put_rows(w, b, (struct shape){1, 0, 1, 1}, counts_plain);
    if (!w->instr && !w->bb && w->lines) return put_rows(w, b, (struct shape){0, 0, 1, w->n_values}, counts);
    return put_rows(w, b, (struct shape){w->instr, w->bb, w->lines, w->n_values}, counts);
}

/* Cost lines of one function from row i on, without relative positions. */
FP_INLINE uint8_t *put_lines(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t i, uint8_t *p,
                             uint32_t *next, counts_fn *counts) {
    if (!i) w->ahead = NO_ROW;
    w->model_function = b->function[i];
    w->file = b->file[i];
    return put_costs(w, b, (struct shape){0, 0, 1, w->n_values}, i, b->n - i < RUN ? b->n : i + RUN, p, next, counts);
}

#if FP_WIDE
FP_WIDE_TARGET static uint8_t *put_lines_wide(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t i,
                                              uint8_t *p, uint32_t *next) {
    return put_lines(w, b, i, p, next, counts_wide);
}

FP_WIDE_TARGET static int put_wide(struct fp_callgrind_body *w, const struct fp_batch *b) {
    return put_shape(w, b, counts_wide);
}
#endif

int fp_callgrind_body_put(struct fp_callgrind_body *w, const struct fp_batch *b) {
    w->ahead = NO_ROW;
#if FP_WIDE
    if (w->wide == FP_AVX512) return put_wide(w, b);
#endif
    return put_shape(w, b, counts_plain);
}

uint8_t *fp_callgrind_body_lines(struct fp_callgrind_body *w, const struct fp_batch *b, uint32_t i, uint8_t *p,
                                 uint32_t *next) {
#if FP_WIDE
    if (w->wide == FP_AVX512) return put_lines_wide(w, b, i, p, next);
#endif
    return put_lines(w, b, i, p, next, counts_plain);
}

void fp_callgrind_body_start_part(struct fp_callgrind_body *w, uint32_t n_values, uint32_t instr, uint32_t bb,
                                  uint32_t lines, uint32_t all_counts) {
    w->n_values = n_values;
    w->instr = instr;
    w->bb = bb;
    w->lines = lines;
    w->all_counts = all_counts;
    w->room = ROW_BYTES + RUN * fp_callgrind_cost_room(n_values);
    w->part++;
    memset(w->next_number, 0, sizeof w->next_number);
    w->function = w->model_function = w->block_file = w->file = FP_NO_ID;
    w->object = 0;
    w->empty = 0;
    w->base = w->from = (struct fp_callgrind_position){0};
}

int fp_callgrind_body_end_part(struct fp_callgrind_body *w) {
    if (w->function == FP_NO_ID) return 0;
    if (fp_buf_reserve(w->out, w->room)) return FP_E_NOMEM;
    const uint8_t *p = close_block(w, w->out->p + w->out->n);
    if (!p) return FP_E_NOMEM;
    w->out->n = (size_t)(p - w->out->p);
    return 0;
}

void fp_callgrind_body_free(struct fp_callgrind_body *w) {
    for (unsigned kind = 0; kind < FP_NAMED_KINDS; kind++) {
        free(w->named[kind]);
        clear_line_names(&w->line_names[kind]);
    }
    FP_FREE(w->object_of, w->name_of);
    fp_table_clear(&w->names);
}
