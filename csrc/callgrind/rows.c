#include "callgrind/rows.h"

#include "callgrind/wide.h"

/* The state of the part and the batch that rows need. */
struct columns {
    uint32_t instr, has_bb, lines, n_values;
    uint32_t max_counts; /* maximum per line */
    uint32_t cap;
    uint64_t *restrict address, *restrict bb;
    uint32_t *restrict line;
    int64_t *restrict values;
};

/* Writes line i's positions into row `row`.  Returns 0 if the line has too few positions or too many counts, or if a
 * position does not fit. */
FP_INLINE int take_positions(const struct fp_callgrind_lines *l, uint32_t i, uint32_t row,
                             struct fp_callgrind_position *base, const struct columns *c) {
    const uint32_t columns = c->instr + c->has_bb + c->lines, n = l->first[i + 1] - l->first[i];
    const int64_t *value = l->value + l->first[i];
    struct fp_callgrind_position here = *base;
    uint32_t k = 0;
    if (n < columns || n - columns > c->max_counts) return 0;
#define RELATIVE() (0 - (fp_callgrind_line_bits(l->relative[k], i) & 1))
    if (c->instr) {
        here.address = (base->address & RELATIVE()) + (uint64_t)value[k];
        if ((here.address ^ base->address) >> 63) return 0; /* perhaps beyond 2^64 */
        c->address[row] = here.address;
        k++;
    }
    if (c->has_bb) {
        here.bb = (base->bb & RELATIVE()) + (uint64_t)value[k];
        if ((here.bb ^ base->bb) >> 63) return 0;
        c->bb[row] = here.bb;
        k++;
    }
    if (c->lines) {
        here.line = (base->line & RELATIVE()) + (uint64_t)value[k];
        if (here.line >> 32) return 0;
        c->line[row] = (uint32_t)here.line;
    }
#undef RELATIVE
    *base = here;
    return 1;
}

/* Converts `run` lines from line i on, all regular (lines.h), to rows; returns their number.  `self`: -1 when they are
 * self cost, else 0. */
FP_INLINE uint32_t rows_plain(struct fp_callgrind_costs *s, const struct fp_callgrind_lines *l, uint32_t i,
                              uint32_t run, struct fp_batch *b, const struct columns c, int64_t self) {
    const uint32_t columns = c.instr + c.has_bb + c.lines, from = b->n;
    struct fp_callgrind_position base = s->base;
    int64_t sum = 0;
    uint32_t row = from;
    for (; row != from + run && take_positions(l, i, row, &base, &c); row++, i++) {
        const int64_t *value = l->value + l->first[i] + columns, *end = l->value + l->first[i + 1];
        if (c.n_values == 1) {
            const int64_t v = value != end ? *value : 0;
            c.values[row] = v;
            sum += v & self;
        } else {
            int64_t *to = c.values + row;
            for (uint32_t k = 0; k < c.n_values; k++, to += c.cap) {
                *to = value != end ? *value++ : 0;
                s->recent[k] += *to & self;
            }
        }
    }
    if (c.n_values == 1) *s->recent += sum;
    b->n = row;
    s->base = base;
    return row - from;
}

#if FP_WIDE
/* Transposes 8 x 8. */
FP_WIDE_TARGET FP_INLINE void transpose(__m512i m[8]) {
    __m512i pairs[8], fours[8];
    for (unsigned i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_epi64(m[i], m[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi64(m[i], m[i + 1]);
    }
    /* 128-bit lanes 0 2 of one and of the other, and 1 3 */
    for (unsigned i = 0; i < 8; i += 4)
        for (unsigned j = 0; j < 2; j++) {
            fours[i + j] = _mm512_shuffle_i64x2(pairs[i + j], pairs[i + j + 2], 0x88);
            fours[i + j + 2] = _mm512_shuffle_i64x2(pairs[i + j], pairs[i + j + 2], 0xdd);
        }
    for (unsigned j = 0; j < 4; j++) {
        m[j] = _mm512_shuffle_i64x2(fours[j], fours[j + 4], 0x88);
        m[j + 4] = _mm512_shuffle_i64x2(fours[j], fours[j + 4], 0xdd);
    }
}

/* A position per lane, from the number written in each: relative to the previous lane, the first to `base`, except
 * those that are `absolute`.
 *
 *     written              +2   *  100  +1   *    base 7
 *     v                     2   0  100   1   0
 *     sums s                2   2  102 103 103
 *     s before that lane    0   0    2   2   2    of the last absolute one: subtracted
 *     base                  7   7    0   0   0    added before the first one: last, so that eight more need not wait */
FP_WIDE_TARGET FP_INLINE __m512i eight_positions(__m512i v, __mmask8 absolute, uint64_t base) {
    const __m512i zero = _mm512_setzero_si512();
    const __mmask8 to_base = (__mmask8)((absolute & (0u - absolute)) - 1);
    absolute |= 1;
    __m512i s = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 7));
    s = _mm512_add_epi64(s, _mm512_alignr_epi64(s, zero, 6));
    s = _mm512_add_epi64(s, _mm512_alignr_epi64(s, zero, 4));
    const __m512i before = _mm512_maskz_compress_epi64(absolute, _mm512_sub_epi64(s, v));
    /* the last absolute one up to each lane: a byte a lane, counted by a multiplication */
    const uint64_t ones = 0x0101010101010101;
    const __m128i last = _mm_cvtsi64_si128((long long)((_pdep_u64(absolute, ones) - 1) * ones));
    s = _mm512_sub_epi64(s, _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(last), before));
    return _mm512_mask_add_epi64(s, to_base, s, _mm512_set1_epi64((long long)base));
}

FP_WIDE_TARGET FP_INLINE uint64_t lane_of(__m512i v, uint32_t lane) {
    return (uint64_t)_mm_cvtsi128_si64(
        _mm512_castsi512_si128(_mm512_permutexvar_epi64(_mm512_set1_epi64((long long)lane), v)));
}

/* Numbers 0 3 6 .., 1 4 7 .. and 2 5 8 .. of 24. */
FP_WIDE_TARGET FP_INLINE void every_third(const int64_t *value, __m512i m[3]) {
    const __m512i a = _mm512_loadu_si512(value), b = _mm512_loadu_si512(value + 8), c = _mm512_loadu_si512(value + 16);
    for (int k = 0; k < 3; k++) {
        /* up to 15 of the first two; lane 5 of 2 5 8 .. is beyond them */
        const __m512i low = _mm512_setr_epi64(k, k + 3, k + 6, k + 9, k + 12, (k + 15) & 15, 0, 0);
        const __m512i high = _mm512_setr_epi64(0, 0, 0, 0, 0, k - 1, k + 2, k + 5);
        m[k] = _mm512_mask_permutexvar_epi64(_mm512_permutex2var_epi64(a, low, b), k ? 0xe0 : 0xc0, high, c);
    }
}

/* The numbers of eight lines from line i on, only lines `in`, column by column: the first eight in `low`, the others in
 * `high` if `many`.  `sums` are those of the values as fp_callgrind_costs has them, of `low` and of `high`.
 */
FP_WIDE_TARGET FP_INLINE void columns_of(const struct fp_callgrind_lines *l, uint32_t i, __mmask8 in, __m128i width,
                                         const struct columns c, const int many, __m512i low[8], __m512i high[8],
                                         __m512i sums[2]) {
    const uint32_t columns = c.instr + c.has_bb + c.lines;
    sums[0] = sums[1] = _mm512_setzero_si512();
    if (columns == 2 && c.n_values == 1 && !_mm_mask_cmpneq_epu16_mask(in, width, _mm_set1_epi16(3))) {
        every_third(l->value + l->first[i], low);
        sums[0] = low[2] = _mm512_maskz_mov_epi64(in, low[2]);
        return;
    }
    uint16_t have[8]; /* each has that many bits */
    _mm_storeu_si128((__m128i *)(void *)have,
                     _mm_maskz_sub_epi16(in, _mm_sllv_epi16(_mm_set1_epi16(1), width), _mm_set1_epi16(1)));
    for (unsigned k = 0; k < 8; k++) {
        const int64_t *value = l->value + l->first[i + k];
        low[k] = _mm512_maskz_loadu_epi64((__mmask8)have[k], value);
        sums[0] = _mm512_add_epi64(sums[0], low[k]);
        if (!many) continue;
        high[k] = _mm512_maskz_loadu_epi64((__mmask8)(have[k] >> 8), value + 8);
        sums[1] = _mm512_add_epi64(sums[1], high[k]);
    }
    transpose(low);
    if (many) transpose(high);
    if (c.n_values == 1) sums[0] = low[columns];
}

/* Makes eight rows at a time, so that a column of them is one store; the last group may have fewer.  Stops at an
 * unexpected line or when the batch has no room for eight.  A line may have 8 positions and counts, or 16 if `many`. */
FP_WIDE_TARGET FP_INLINE uint32_t rows_wide(struct fp_callgrind_costs *s, const struct fp_callgrind_lines *l,
                                            uint32_t i, uint32_t run, struct fp_batch *b, const struct columns c,
                                            const int many) {
    const uint32_t columns = c.instr + c.has_bb + c.lines, from = b->n;
    const uint32_t has[3] = {c.instr, c.has_bb, c.lines};
    struct fp_callgrind_position base = s->base;
    __m512i sum_low = _mm512_loadu_si512(s->sums), sum_high = _mm512_loadu_si512(s->sums + 8);
    uint32_t row = from;
    while (row != from + run && c.cap - row >= 8) {
        const uint32_t left = from + run - row, n = left < 8 ? left : 8;
        const __mmask8 in = (__mmask8)((1u << n) - 1);
        /* the number of numbers per line */
        const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(l->first + i));
        const __m128i width = _mm_sub_epi16(_mm_loadu_si128((const __m128i *)(const void *)(l->first + i + 1)), first);
        const __m128i counts = _mm_sub_epi16(width, _mm_set1_epi16((short)columns));
        if (_mm_mask_cmpgt_epu16_mask(in, counts, _mm_set1_epi16((short)c.max_counts))) break;
        __m512i low[8], high[8], sums[2];
        columns_of(l, i, in, width, c, many, low, high, sums);
        uint64_t bases[3] = {base.address, base.bb, base.line};
        __mmask8 beyond = 0;
        for (unsigned j = 0, k = 0; j < 3; j++) {
            if (!has[j]) continue;
            low[k] = eight_positions(low[k], (__mmask8)~fp_callgrind_line_bits(l->relative[k], i), bases[j]);
            beyond |= j == 2 ? _mm512_test_epi64_mask(low[k], _mm512_set1_epi64((long long)0xffffffff00000000))
                             : (__mmask8)(_mm512_movepi64_mask(low[k]) | (0 - (bases[j] >> 63)));
            bases[j] = lane_of(low[k++], n - 1);
        }
        if (beyond & in) break;
        unsigned k = 0;
        if (c.instr) _mm512_storeu_si512(c.address + row, low[k++]);
        if (c.has_bb) _mm512_storeu_si512(c.bb + row, low[k++]);
        if (c.lines) _mm256_storeu_si256((__m256i *)(void *)(c.line + row), _mm512_cvtepi64_epi32(low[k++]));
        int64_t *to = c.values + row;
        for (; k < (many ? 16 : 8) && k - columns < c.n_values; k++, to += c.cap)
            _mm512_storeu_si512(to, k < 8 ? low[k] : high[k - 8]);
        sum_low = _mm512_add_epi64(sum_low, sums[0]);
        if (many) sum_high = _mm512_add_epi64(sum_high, sums[1]);
        base = (struct fp_callgrind_position){bases[0], bases[1], bases[2]};
        row += n;
        i += n;
    }
    _mm512_storeu_si512(s->sums, sum_low);
    _mm512_storeu_si512(s->sums + 8, sum_high);
    b->n = row;
    s->base = base;
    return row - from;
}
#endif

FP_INLINE void fill(uint32_t *to, uint32_t v, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) to[k] = v;
}

/* The number of lines from i on that are cost lines and not odd. */
FP_INLINE uint32_t run_length(const struct fp_callgrind_lines *l, uint32_t i) {
    enum { STEP = 56 }; /* bits that are always valid */
    for (uint32_t n = 0;; n += STEP) {
        const uint64_t costs = fp_callgrind_line_bits(l->cost, i + n) & ~fp_callgrind_line_bits(l->odd, i + n);
        const unsigned here = fp_lowest_bit(~costs | (uint64_t)1 << STEP);
        if (here != STEP) return n + here;
    }
}

/* Converts a run of lines of self cost to rows, up to the first unreadable one. */
typedef void run_fn(struct fp_callgrind_costs *s, const struct fp_callgrind_lines *l, uint32_t i, uint32_t run,
                    struct fp_batch *b, const struct columns c);

FP_INLINE void run_plain(struct fp_callgrind_costs *s, const struct fp_callgrind_lines *l, uint32_t i, uint32_t run,
                         struct fp_batch *b, const struct columns c) {
    rows_plain(s, l, i, run, b, c, -1);
}

#if FP_WIDE
FP_WIDE_TARGET FP_INLINE void run_wide(struct fp_callgrind_costs *s, const struct fp_callgrind_lines *l, uint32_t i,
                                       uint32_t run, struct fp_batch *b, const struct columns c) {
    const uint32_t width = c.instr + c.has_bb + c.lines + c.n_values;
    const uint32_t n = width > 16 ? 0 : rows_wide(s, l, i, run, b, c, width > 8);
    if (n != run) rows_plain(s, l, i + n, run - n, b, c, -1);
}
#endif

/* Converts a run whose first line is of `kind`; the others are lines of self cost. */
FP_INLINE void take_run(struct fp_callgrind_costs *s, uint32_t kind, const struct fp_callgrind_lines *l, uint32_t i,
                        uint32_t run, struct fp_batch *b, const struct columns c, run_fn *take) {
    if (kind != FP_COST) {
        const struct fp_callgrind_position base = s->base;
        struct columns first = c;
        if (kind >= FP_JUMP) first.max_counts = 0;
        const uint32_t n = rows_plain(s, l, i, 1, b, first, 0);
        s->base = base;
        if (!n) return;
        i++;
        run--;
    }
    take(s, l, i, run, b, c);
}

FP_INLINE uint32_t take_rows(struct fp_callgrind_costs *s, uint32_t kind, const struct fp_callgrind_lines *l,
                             uint32_t i, struct fp_batch *b, run_fn *take) {
    struct columns c = {s->instr, s->bb,      s->lines, s->n_values, s->n_values,
                        b->cap,   b->address, b->bb,    b->line,     b->values};
    const uint32_t shape = c.instr << 2 | c.has_bb << 1 | c.lines, from = b->n, room = c.cap - from;
    uint32_t run = run_length(l, i);
    if (run > room) run = room;
    if (!run) return 0;
    /* the usual columns as constants */
    if (shape == 5 && c.n_values == 1) {
        c.instr = c.lines = c.n_values = c.max_counts = 1;
        c.has_bb = 0;
        take_run(s, kind, l, i, run, b, c, take);
    } else if (shape == 1) {
        c.instr = c.has_bb = 0;
        c.lines = 1;
        take_run(s, kind, l, i, run, b, c, take);
    } else {
        take_run(s, kind, l, i, run, b, c, take);
    }
    const uint32_t n = b->n - from;
    if (n <= 8 && room >= 8) {
        fill(b->function + from, s->function, 8);
        fill(b->file + from, s->file, 8);
        memset(b->kind + from, FP_COST, 8);
    } else {
        fill(b->function + from, s->function, n);
        fill(b->file + from, s->file, n);
        memset(b->kind + from, FP_COST, n);
    }
    if (n) b->kind[from] = (uint8_t)kind;
    return n;
}

static uint32_t take_rows_plain(struct fp_callgrind_costs *s, uint32_t kind, const struct fp_callgrind_lines *l,
                                uint32_t i, struct fp_batch *b) {
    return take_rows(s, kind, l, i, b, run_plain);
}

#if FP_WIDE
FP_WIDE_TARGET static uint32_t take_rows_wide(struct fp_callgrind_costs *s, uint32_t kind,
                                              const struct fp_callgrind_lines *l, uint32_t i, struct fp_batch *b) {
    return take_rows(s, kind, l, i, b, run_wide);
}
#endif

uint32_t fp_callgrind_cost_rows(struct fp_callgrind_costs *s, uint32_t kind, const struct fp_callgrind_lines *l,
                                uint32_t i, struct fp_batch *b) {
#if FP_WIDE
    if (s->wide == FP_AVX512) return take_rows_wide(s, kind, l, i, b);
#endif
    return take_rows_plain(s, kind, l, i, b);
}

int fp_callgrind_cost_row(struct fp_callgrind_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b) {
    struct fp_callgrind_position here = s->base;
    if (!(p = fp_callgrind_text_positions(s, p, &here))) return 0;
    const uint32_t i = b->n;
    int64_t *to = b->values + i;
    for (uint32_t k = 0; k < s->n_values; k++, to += b->cap) {
        uint64_t v = 0;
        if (*p != '\n') {
            if (kind >= FP_JUMP || !(p = fp_decimal(p, &v)) || (*p != ' ' && *p != '\n')) return 0;
            p += *p == ' ';
        }
        *to = (int64_t)v;
    }
    if (*p != '\n') return 0;
    if (kind == FP_COST) {
        s->base = here;
        for (uint32_t k = s->n_values; k--;) fp_callgrind_costs_add(s, k, *(to -= b->cap));
    }
    if (s->instr) b->address[i] = here.address;
    if (s->bb) b->bb[i] = here.bb;
    if (s->lines) b->line[i] = (uint32_t)here.line;
    b->function[i] = s->function;
    b->file[i] = s->file;
    b->kind[i] = (uint8_t)kind;
    b->n++;
    return 1;
}

void fp_callgrind_costs_flush(struct fp_callgrind_costs *s) {
    const uint32_t columns = s->instr + s->bb + s->lines;
    for (uint32_t k = 0; k < s->n_values; k++) {
        fp_callgrind_costs_add(s, k, s->recent[k]);
        s->recent[k] = 0;
    }
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t value = s->n_values == 1 ? 0 : k - columns;
        if (value < s->n_values) fp_callgrind_costs_add(s, value, s->sums[k]);
    }
    memset(s->sums, 0, sizeof s->sums);
}
