/* Times of a timeline chunk, written.  See docs/formats/archive.md, "Times". */
#include "archive/time.h"

enum { N_FIXED = FP_TIME_POOLS + FP_TIME_PHASES };

/* A step count as a symbol.  Below 32 it is the symbol itself.  From there on each octave has 8 symbols, and the
 * *n_bits lowest bits are written raw.  For example 100 = 0b1100100: octave 6, then the bits 100, so symbol 32 + 8 + 4;
 * 3 raw bits, 100. */
static inline uint32_t symbol_of(uint64_t k, unsigned *n_bits) {
    *n_bits = 0;
    if (k < FP_TIME_SMALL) return (uint32_t)k;
    unsigned octave = 63 - (unsigned)__builtin_clzll(k);
    *n_bits = octave - 3;
    return FP_TIME_SMALL + (octave - 5) * 8 + (uint32_t)(k >> (octave - 3) & 7);
}

static inline uint32_t pool_of(uint32_t key) {
    return key >= FP_TIME_NO_FUNCTION ? (key - FP_TIME_NO_FUNCTION) & 7 : key & 3;
}

static inline uint32_t phase_of(const struct fp_archive_time_at *at) {
    return at->jitter * 16 + (at->frac >> 28);
}

static inline void move(struct fp_archive_time_at *at, fp_u128 by) {
    fp_u128 there = ((fp_u128)at->ref << 32 | at->frac) + by;
    at->ref = (uint64_t)(there >> 32);
    at->frac = (uint32_t)there;
}

/* Writes raw bits into bytes, the lowest bit first. */
struct bit_out {
    struct fp_buf *b;
    uint64_t acc;
    unsigned n;
};

/* Writes whole bytes. */
static void bits_flush(struct bit_out *o) {
    for (; o->n >= 8; o->n -= 8, o->acc >>= 8) fp_buf_byte(o->b, (uint8_t)o->acc);
}

static inline void bits_put(struct bit_out *o, uint64_t v, unsigned n) {
    while (n) {
        if (o->n > 32) bits_flush(o);
        unsigned take = n < 32 ? n : 32;
        o->acc |= (v & (((uint64_t)1 << take) - 1)) << o->n;
        o->n += take;
        v >>= take;
        n -= take;
    }
}

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Steps between rows of a thread, in ticks: a count of each short one. */
enum { SHORT = 2048 };
struct steps {
    uint32_t sampled[SHORT]; /* of the first SAMPLED rows */
    uint32_t count[SHORT];   /* of all rows */
    uint32_t longer;
};
enum { SAMPLED = 16384 };

static void count_steps(struct steps *t, const struct fp_archive_times *rows) {
    const struct fp_archive_times r = *rows; /* unlike `rows`, writing to `t` cannot change it */
    memset(t, 0, sizeof *t);
    for (uint32_t i = 1; i < r.n; i++) {
        if (i == SAMPLED) memcpy(t->sampled, t->count, sizeof t->sampled);
        if (r.thread[i] != r.thread[i - 1]) continue;
        const uint64_t d = r.time[i] - r.time[i - 1];
        if (FP_LIKELY(d < SHORT))
            t->count[d]++;
        else
            t->longer++;
    }
    if (r.n <= SAMPLED) memcpy(t->sampled, t->count, sizeof t->sampled);
}

/* Whether nine in ten short steps are multiples of q, give or take 1. */
static int is_near(const uint32_t *count, uint64_t q) {
    uint32_t near = 0, all = 0;
    for (uint64_t d = 1; d < 20 * q; d++) {
        all += count[d];
        near += (d + 1) % q <= 2 ? count[d] : 0;
    }
    return all >= 64 && near >= all / 10 * 9;
}

/* The step of the clock as a 32.32 fixed-point number, and whether times jitter about its multiples.  They do if a
 * clock was converted to nanoseconds by a multiplication: then each time is a multiple of, say, 10.0187, give or take
 * 1. */
static uint64_t find_step(const struct steps *t, const uint64_t *time, uint32_t n, int *jitter) {
    *jitter = 0;
    uint64_t g = 0, first = time[0], last = time[0];
    for (uint32_t i = 1; i < n && g != 1; i++) {
        /* Not modulo 2^64: 1 and 0 are one apart, whatever divides 2^64 - 1. */
        const uint64_t distance = time[i] > time[0] ? time[i] - time[0] : time[0] - time[i];
        if (!g || distance % g) g = gcd(distance, g);
        if (time[i] < first) first = time[i];
        if (time[i] > last) last = time[i];
        /* A step is taken modulo 2^64, so times that far apart may wrap: only 1 divides every step then. */
        if ((last - first) >> 63) g = 1;
    }
    if (g != 1) return g && g < (uint64_t)1 << 31 ? g << 32 : (uint64_t)1 << 32;
    uint64_t q = 100;
    while (q > 5 && !is_near(t->sampled, q)) q--;
    if (q == 5) return (uint64_t)1 << 32;
    double step = (double)q;
    for (int round = 0; round < 3; round++) {
        double sum = 0, steps = 0;
        const uint32_t *count = round < 2 ? t->sampled : t->count; /* a rough step suffices to count steps */
        for (uint64_t d = 0; d < 16 * q; d++) {
            sum += (double)d * count[d];
            steps += (double)(uint64_t)((double)d / step + 0.5) * count[d];
        }
        if (steps > 0) step = sum / steps;
    }
    *jitter = 1;
    return (uint64_t)(step * 4294967296.0);
}

/* log2 in 1/16 bits, exact enough to choose tables by. */
static uint32_t log2_16(uint32_t v) {
    unsigned whole = 31 - (unsigned)__builtin_clz(v);
    uint32_t f = whole >= 8 ? (v >> (whole - 8)) & 255 : (v << (8 - whole)) & 255;
    return whole * 16 + (f * (345 - f * 89 / 256) >> 12);
}

/* Scales counts to frequencies that add up to FP_TIME_M, each at least 1. */
static void normalize(const uint32_t *count, uint32_t n_symbols, uint16_t *freq) {
    uint64_t total = 0;
    for (uint32_t s = 0; s < n_symbols; s++) total += count[s];
    memset(freq, 0, n_symbols * sizeof *freq);
    if (!total) return;
    int32_t left = FP_TIME_M;
    uint32_t top = 0;
    for (uint32_t s = 0; s < n_symbols; s++) {
        if (!count[s]) continue;
        uint32_t f = (uint32_t)(((uint64_t)count[s] * FP_TIME_M + total / 2) / total);
        freq[s] = (uint16_t)(f ? f : 1);
        left -= freq[s];
        if (count[s] > count[top]) top = s;
    }
    while (left < 0 && -left >= freq[top]) { /* many rare symbols: take from the common ones */
        uint32_t most = 0;
        for (uint32_t s = 0; s < n_symbols; s++)
            if (freq[s] > freq[most]) most = s;
        uint16_t take = (uint16_t)(freq[most] / 2);
        freq[most] = (uint16_t)(freq[most] - take);
        left += take;
    }
    freq[top] = (uint16_t)(freq[top] + left);
}

static void write_table(struct fp_buf *out, const uint16_t *freq, uint32_t n_symbols) {
    uint32_t used = 0, next = 0;
    for (uint32_t s = 0; s < n_symbols; s++) used += freq[s] != 0;
    fp_buf_varint(out, used);
    for (uint32_t s = 0; s < n_symbols; s++) {
        if (!freq[s]) continue;
        fp_buf_varint(out, s - next);
        fp_buf_varint(out, freq[s]);
        next = s + 1;
    }
}

enum { NO_JITTER = 255 }; /* others: jitter symbol, its context << 2 */
enum { N_HASHED = 1 << FP_TIME_HASH_BITS };
enum { LEAST_ROWS = 32 }; /* minimum of a key with a separate table */
enum { AHEAD = 16 };      /* cells by which places are prefetched */

/* Rows of one key, history and symbol.  They use the same table, so tables are chosen by cell: most traces have few.
 * Several cells may be of the same three. */
struct cell {
    uint32_t key;
    uint16_t step; /* history << 9 | symbol */
    uint16_t rows; /* at most CELL_ROWS */
    uint16_t table;
};
enum { CELL_ROWS = (1 << 12) - 1, CELL_BITS = 15, FEW_CELLS = 1 << 14 };

/* The encoder's state for a chunk's rows.  Its arrays stay for later chunks. */
struct fp_archive_time_enc {
    uint32_t *cell_of; /* per row */
    uint8_t *jitters;  /* per row */
    struct cell *cells;
    uint32_t last[1 << CELL_BITS]; /* by a hash of key, history and symbol: the last cell + 1 */
    /* per cell, by key: rows << 20 | table << 9 | symbol, so that keys are visited without looking up cells.  Then per
     * cell: the place of its symbol in its table, start << 16 | frequency */
    uint32_t *sorted;
    uint32_t *start;  /* per key: its first cell in `sorted`; one more at the end.  Then its new table, or 0 */
    uint32_t *hist;   /* FP_TIME_SYMBOLS counts for each table */
    uint32_t *places; /* the same, of places */
    uint32_t n_cells, n_models;
    int is_single; /* each row has a cell of its own */
    uint32_t cap_rows, cap_cells, cap_sorted, cap_keys, cap_tables, cap_places;
    uint32_t jitter_hist[FP_TIME_PHASES][4];
    struct steps steps;
};

static inline uint32_t symbol_in(const struct cell *c) {
    return c->step & 511;
}

/* The key by which a cell is given a table: its own, or with `hashed` that of key and history. */
static inline uint32_t key_in(const struct cell *c, int hashed) {
    return hashed && c->key < FP_TIME_NO_FUNCTION ? fp_archive_time_hash(c->key, c->step >> 9) : c->key;
}

/* From now on each row has a cell of its own, those before `row` too: where most cells have one row, lookups take
 * longer than further cells. */
static void make_single(struct fp_archive_time_enc *w, uint32_t row) {
    fp_array_room(&w->cells, &w->cap_cells, w->cap_rows, sizeof *w->cells);
    while (row-- > 0) { /* a row's cell does not come after it */
        w->cells[row] = w->cells[w->cell_of[row]];
        w->cells[row].rows = 1;
        w->cell_of[row] = row;
    }
    w->is_single = 1;
}

/* Adds row `row` to the last cell with its hash, if that is of the same three, or to a new one. */
FP_INLINE uint32_t count_row(struct fp_archive_time_enc *w, uint32_t row, uint32_t key, uint32_t step) {
    uint32_t *last = &w->last[((uint64_t)key << 14 | step) * 0x9e3779b97f4a7c15u >> (64 - CELL_BITS)];
    if (FP_UNLIKELY(w->is_single)) {
        w->cells[row] = (struct cell){key, (uint16_t)step, 1, 0};
        return row;
    }
    struct cell *c = *last ? &w->cells[*last - 1] : NULL;
    if (FP_LIKELY(c && c->key == key && c->step == step && c->rows < CELL_ROWS)) {
        c->rows++;
        return *last - 1;
    }
    if (FP_UNLIKELY(w->n_cells > FEW_CELLS + row / 4)) {
        make_single(w, row);
        w->n_cells = row;
    }
    FP_PUSH(w->cells, w->n_cells, w->cap_cells) = (struct cell){key, (uint16_t)step, 1, 0};
    return (*last = w->n_cells) - 1;
}

/* The steps of length q that are nearest to a distance of d ticks less a fraction of one.  UINT64_MAX: the time went
 * back.  `inverse` is 2^95 / q. */
static inline uint64_t steps_in(uint64_t d, uint32_t frac, uint64_t q, uint64_t inverse) {
    if (FP_LIKELY(d < 1 << 30)) {
        const int64_t far = (int64_t)(d << 32) - frac + (int64_t)(q / 2);
        return far < 0 ? UINT64_MAX : (uint64_t)((fp_u128)(uint64_t)far * inverse >> 95);
    }
    const fp_i128 far = (fp_i128)(int64_t)d * ((fp_i128)1 << 32) - frac + (int64_t)(q / 2);
    return far < 0 ? UINT64_MAX : (uint64_t)((fp_u128)far / q);
}

/* The clock of a chunk's times. */
struct clock {
    uint64_t q; /* its step, and whether times jitter about multiples of it: find_step */
    int jitter;
    uint64_t limits[2]; /* of short and medium steps: find_limits */
};

/* The steps of all rows, their jitter, and the raw bits of both. */
static void symbolize(struct fp_archive_time_enc *w, const struct fp_archive_times *rows, const struct clock *clock,
                      struct bit_out *bits) {
    const uint64_t *time = rows->time, *limits = clock->limits, q = clock->q;
    const uint32_t *key = rows->key, *thread = rows->thread, n = rows->n;
    const int jitter = clock->jitter;
    struct fp_archive_time_at *at = fp_scratch((size_t)rows->n_threads + 1, sizeof *at);
    const uint64_t whole = q >> 32, inverse = (uint64_t)(((fp_u128)1 << 95) / q);
    struct fp_archive_time_at a = {time[0], 1u << 31, 1, 0, 1}; /* of the thread; a new one starts where the last is */
    for (uint32_t i = 0; i < n; i++) {
        if (FP_UNLIKELY(i && thread[i] != thread[i - 1])) {
            at[thread[i - 1]] = a;
            if (at[thread[i]].epoch) a = at[thread[i]];
        }
        const uint64_t d = time[i] - a.ref;
        const uint64_t k = jitter           ? steps_in(d, a.frac, q, inverse)
                           : (int64_t)d < 0 ? UINT64_MAX
                           : whole == 1     ? d
                                            : d / whole;
        unsigned n_bits = 64;
        const uint32_t symbol = k == UINT64_MAX ? FP_TIME_ESCAPE : symbol_of(k, &n_bits);
        bits_put(bits, k == UINT64_MAX ? d : k, n_bits);
        w->jitters[i] = NO_JITTER;
        int follows = 0;
        if (jitter && k != UINT64_MAX) {
            move(&a, (fp_u128)k * q);
            const uint64_t miss = time[i] - a.ref;
            const uint32_t phase = phase_of(&a), e = miss + 1 > 2 ? 3 : (uint32_t)(miss + 1);
            w->jitters[i] = (uint8_t)(e | phase << 2);
            w->jitter_hist[phase][e]++;
            if (e == 3) bits_put(bits, miss, 64);
            a.jitter = e < 3 ? e : 1;
            follows = fp_archive_time_follows(k, miss);
            if (follows) move(&a, (fp_u128)((fp_i128)(int64_t)miss * (1 << 28)));
        }
        if (!follows) {
            a.ref = time[i];
            a.frac = 1u << 31;
        }
        w->cell_of[i] = count_row(w, i, key[i], a.history << 9 | symbol);
        a.history = a.history % 9 * 3 + fp_archive_time_class(symbol, limits);
    }
    fp_scratch_free(at);
}

/* Finds two symbols as limits, so that a third of the steps each are short, medium and long. */
static void find_limits(const struct steps *t, const struct fp_archive_times *rows, struct clock *clock) {
    const uint64_t q = clock->q;
    uint32_t hist[256] = {0}, all = t->longer;
    unsigned n_bits;
    for (uint64_t d = 0; d < SHORT; d++) {
        const uint32_t s = symbol_of(((d << 16) + (q >> 17)) / (q >> 16), &n_bits);
        hist[s < 255 ? s : 255] += t->count[d];
        all += t->count[d];
    }
    for (uint32_t i = 1, left = t->longer; left; i++) {
        const uint64_t d = rows->time[i] - rows->time[i - 1];
        if (rows->thread[i] != rows->thread[i - 1] || d < SHORT) continue;
        const uint32_t s = symbol_of(((d << 16) + (q >> 17)) / (q >> 16), &n_bits);
        hist[s < 255 ? s : 255]++;
        left--;
    }
    uint32_t sum = hist[0], s = 0;
    while (s < 255 && sum < all / 3) sum += hist[++s];
    clock->limits[0] = s;
    if (s < 255) sum += hist[++s];
    while (s < 255 && sum < all / 3 * 2) sum += hist[++s];
    clock->limits[1] = s;
}

struct choice {
    uint32_t key;
    uint32_t gain; /* bits */
};

static int by_gain(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    return x->gain != y->gain ? (x->gain < y->gain ? 1 : -1) : x->key < y->key ? -1 : 1;
}

FP_ORDER(by_key, struct choice, key)

/* Sorts cells by key; keys of n_keys and more are left out. */
static void sort_cells(struct fp_archive_time_enc *w, int hashed, uint32_t n_keys) {
    const uint32_t n = w->n_cells;
    memset(w->start, 0, ((size_t)n_keys + 2) * sizeof *w->start);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t key = key_in(&w->cells[i], hashed);
        if (key < n_keys) w->start[key + 2]++;
    }
    for (uint32_t k = 2; k < n_keys + 2; k++) w->start[k] += w->start[k - 1];
    for (uint32_t i = 0; i < n; i++) { /* moves start[k + 1] from the beginning of key k to its end */
        const struct cell *c = &w->cells[i];
        const uint32_t key = key_in(c, hashed), soon = key_in(&w->cells[i + AHEAD < n ? i + AHEAD : i], hashed);
        if (soon < n_keys) __builtin_prefetch(&w->sorted[w->start[soon + 1]], 1); /* it is in no near cache yet */
        if (key < n_keys)
            w->sorted[w->start[key + 1]++] = (uint32_t)c->rows << 20 | (uint32_t)c->table << 9 | symbol_in(c);
    }
}

/* The bits, in sixteenths, that each symbol takes with a table's counts as frequencies. */
static void costs_of(const uint32_t *hist, uint16_t *cost) {
    uint32_t total = 0;
    for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++) total += hist[s];
    for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++)
        cost[s] = (uint16_t)(hist[s] ? log2_16(total) - log2_16(hist[s]) : 0);
}

/* Moves cells to the tables of their keys, which `start` has. */
static void use_tables(struct fp_archive_time_enc *w, int hashed, uint32_t n_keys) {
    for (struct cell *c = w->cells; c < w->cells + w->n_cells; c++) {
        const uint32_t key = key_in(c, hashed), table = key < n_keys ? w->start[key] : 0;
        if (!table) continue;
        w->hist[(size_t)c->table * FP_TIME_SYMBOLS + symbol_in(c)] -= c->rows;
        w->hist[(size_t)table * FP_TIME_SYMBOLS + symbol_in(c)] += c->rows;
        c->table = (uint16_t)table;
    }
}

/* Gives a key a separate table if that takes fewer bits than the tables that its rows use now; at most `most` keys,
 * those that save most.  Appends their list to `out`. */
static void choose(struct fp_archive_time_enc *w, int hashed, uint32_t n, uint32_t n_keys, uint32_t most,
                   struct fp_buf *out) {
    if (n < LEAST_ROWS) { /* the arrays below are large, chunks may be small */
        fp_buf_varint(out, 0);
        return;
    }
    struct choice *choices = fp_scratch((size_t)n_keys + 1, sizeof *choices);
    uint16_t *cost = fp_scratch((size_t)w->n_models * FP_TIME_SYMBOLS, sizeof *cost);
    for (uint32_t t = 0; t < w->n_models; t++)
        costs_of(w->hist + (size_t)t * FP_TIME_SYMBOLS, cost + (size_t)t * FP_TIME_SYMBOLS);
    sort_cells(w, hashed, n_keys);
    uint32_t n_choices = 0, hist[FP_TIME_SYMBOLS] = {0};
    uint16_t used[FP_TIME_SYMBOLS];
    for (uint32_t k = 0; k < n_keys; k++) {
        const uint32_t from = w->start[k], to = w->start[k + 1];
        uint32_t rows = w->is_single ? to - from : 0, n_used = 0;
        for (uint32_t j = from; j < to && !w->is_single; j++) rows += w->sorted[j] >> 20;
        if (rows < LEAST_ROWS) continue;
        int64_t gain = 0;
        for (uint32_t j = from; j < to; j++) {
            const uint32_t c = w->sorted[j], table = c >> 9 & 2047, s = c & 511;
            gain += (int64_t)(c >> 20) * cost[(size_t)table * FP_TIME_SYMBOLS + s];
            if (!hist[s]) used[n_used++] = (uint16_t)s;
            hist[s] += c >> 20;
        }
        gain -= 16 * (24 + 18 * (int64_t)n_used);
        for (uint32_t u = 0; u < n_used; u++) {
            gain -= (int64_t)hist[used[u]] * (log2_16(rows) - log2_16(hist[used[u]]));
            hist[used[u]] = 0;
        }
        if (gain > 0)
            choices[n_choices++] = (struct choice){k, gain >> 4 > UINT32_MAX ? UINT32_MAX : (uint32_t)(gain >> 4)};
    }
    if (n_choices > most) {
        qsort(choices, n_choices, sizeof *choices, by_gain);
        n_choices = most;
        qsort(choices, n_choices, sizeof *choices, by_key);
    }
    fp_array_room(&w->hist, &w->cap_tables, (uint64_t)w->n_models + n_choices, FP_TIME_SYMBOLS * sizeof *w->hist);
    memset(w->hist + (size_t)w->n_models * FP_TIME_SYMBOLS, 0, (size_t)n_choices * FP_TIME_SYMBOLS * sizeof *w->hist);
    fp_buf_varint(out, n_choices);
    uint32_t next = 0;
    memset(w->start, 0, (size_t)n_keys * sizeof *w->start);
    for (uint32_t c = 0; c < n_choices; c++) {
        uint32_t k = choices[c].key;
        w->start[k] = w->n_models++;
        fp_buf_varint(out, k - next);
        next = k + 1;
    }
    if (n_choices) use_tables(w, hashed, n_keys);
    fp_scratch_free(choices);
}

/* inverse[f] is 2^52 / f rounded up: x / f without a division, exact for x < 2^32 and f <= 2^10. */
static inline uint32_t rans_put(uint32_t x, uint32_t place, const uint64_t *inverse, uint8_t **to) {
    const uint32_t freq = place & 0xffff;
    if ((uint64_t)x >= (uint64_t)freq << (32 - FP_TIME_BITS)) {
        *to -= 2;
        (*to)[0] = (uint8_t)x;
        (*to)[1] = (uint8_t)(x >> 8);
        x >>= 16;
    }
    const uint32_t quotient = (uint32_t)((fp_u128)x * inverse[freq] >> 52);
    return (quotient << FP_TIME_BITS) + x - quotient * freq + (place >> 16);
}

/* Codes all rows.  Two coders, one of steps and one of jitters, write to the same words.  They go backwards through the
 * rows, so that the reader can go forwards. */
static void emit(const struct fp_archive_time_enc *w, uint32_t n, struct fp_buf *words) {
    size_t most = (size_t)n * 4 + 8; /* at most 2 symbols a row and 16 bits a symbol */
    fp_buf_reserve(words, most);
    uint8_t *end = words->p + words->n + most, *to = end;
    uint32_t x[2] = {1u << 16, 1u << 16};
    uint64_t inverse[FP_TIME_M + 1] = {0};
    for (uint32_t f = 1; f <= FP_TIME_M; f++) inverse[f] = ((uint64_t)1 << 52) / f + 1;
    uint32_t jitters[FP_TIME_PHASES * 4];
    for (uint32_t j = 0; j < FP_TIME_PHASES * 4; j++)
        jitters[j] = w->places[(size_t)(FP_TIME_POOLS + j / 4) * FP_TIME_SYMBOLS + j % 4];
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t j = w->jitters[i];
        if (j != NO_JITTER) x[1] = rans_put(x[1], jitters[j], inverse, &to);
        x[0] = rans_put(x[0], w->sorted[w->cell_of[i]], inverse, &to);
    }
    for (int k = 2; k-- > 0;) {
        to -= 4;
        for (int i = 0; i < 4; i++) to[i] = (uint8_t)(x[k] >> 8 * i);
    }
    memmove(words->p + words->n, to, (size_t)(end - to));
    words->n += (size_t)(end - to);
}

/* Gives each cell the pool of its key. */
static void use_pools(struct fp_archive_time_enc *w) {
    fp_array_room(&w->sorted, &w->cap_sorted, w->n_cells, sizeof *w->sorted);
    w->n_models = N_FIXED;
    for (struct cell *c = w->cells; c < w->cells + w->n_cells; c++) {
        c->table = (uint16_t)pool_of(c->key);
        w->hist[c->table * FP_TIME_SYMBOLS + symbol_in(c)] += c->rows;
    }
}

/* Writes the tables, and finds the places of symbols. */
static void write_tables(struct fp_archive_time_enc *w, int jitter, struct fp_buf *out) {
    fp_array_room(&w->places, &w->cap_places, w->n_models, FP_TIME_SYMBOLS * sizeof *w->places);
    for (uint32_t p = 0; p < FP_TIME_PHASES; p++)
        memcpy(w->hist + (size_t)(FP_TIME_POOLS + p) * FP_TIME_SYMBOLS, w->jitter_hist[p], sizeof w->jitter_hist[p]);
    for (uint32_t t = 0; t < w->n_models; t++) {
        if (!jitter && t >= FP_TIME_POOLS && t < N_FIXED) continue;
        uint16_t freq[FP_TIME_SYMBOLS];
        normalize(w->hist + (size_t)t * FP_TIME_SYMBOLS, FP_TIME_SYMBOLS, freq);
        write_table(out, freq, FP_TIME_SYMBOLS);
        uint32_t *places = w->places + (size_t)t * FP_TIME_SYMBOLS;
        for (uint32_t s = 0, start = 0; s < FP_TIME_SYMBOLS; start += freq[s++]) places[s] = start << 16 | freq[s];
    }
    for (uint32_t i = 0; i < w->n_cells; i++)
        w->sorted[i] = w->places[(size_t)w->cells[i].table * FP_TIME_SYMBOLS + symbol_in(&w->cells[i])];
}

struct fp_archive_time_enc *fp_archive_time_enc_new(void) {
    return calloc(1, sizeof(struct fp_archive_time_enc));
}

void fp_archive_time_enc_free(struct fp_archive_time_enc *w) {
    if (!w) return;
    FP_FREE(w->cell_of, w->jitters, w->cells, w->sorted, w->start, w->hist, w->places, w);
}

/* Makes room for n rows and their keys, and clears all counts. */
static void begin(struct fp_archive_time_enc *w, uint32_t n, uint32_t n_keys) {
    uint32_t cap = w->cap_rows, same = cap;
    fp_array_room(&w->cell_of, &cap, n, sizeof *w->cell_of);
    fp_array_room(&w->jitters, &same, cap, sizeof *w->jitters);
    w->cap_rows = cap;
    w->n_cells = 0;
    w->is_single = 0;
    memset(w->last, 0, sizeof w->last);
    const uint32_t most = n_keys > N_HASHED ? n_keys : N_HASHED;
    fp_array_room(&w->start, &w->cap_keys, (uint64_t)most + 2, sizeof *w->start);
    fp_array_room(&w->hist, &w->cap_tables, N_FIXED, FP_TIME_SYMBOLS * sizeof *w->hist);
    memset(w->hist, 0, (size_t)N_FIXED * FP_TIME_SYMBOLS * sizeof *w->hist);
    memset(w->jitter_hist, 0, sizeof w->jitter_hist);
}

void fp_archive_time_encode(struct fp_archive_time_enc *w, const struct fp_archive_times *rows, struct fp_buf *tables,
                            struct fp_buf *words, struct fp_buf *bits) {
    const uint32_t n = rows->n;
    struct clock clock;
    if (!n) return;
    begin(w, n, rows->n_keys);
    count_steps(&w->steps, rows);
    clock.q = find_step(&w->steps, rows->time, n, &clock.jitter);
    find_limits(&w->steps, rows, &clock);
    fp_buf_varint(tables, rows->time[0]);
    fp_buf_varint(tables, clock.q);
    fp_buf_byte(tables, (uint8_t)clock.jitter);
    fp_buf_varint(tables, clock.limits[0]);
    fp_buf_varint(tables, clock.limits[1]);
    struct bit_out raw = {bits, 0, 0};
    symbolize(w, rows, &clock, &raw);
    if (w->is_single) w->n_cells = n; /* count_row did not count */
    bits_flush(&raw);
    if (raw.n) fp_buf_byte(bits, (uint8_t)raw.acc);
    use_pools(w);
    choose(w, 0, n, rows->n_keys, FP_TIME_TABLES / 2, tables);
    choose(w, 1, n, N_HASHED, FP_TIME_TABLES / 2, tables);
    write_tables(w, clock.jitter, tables);
    emit(w, n, words);
}
