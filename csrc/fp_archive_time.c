/* Times of a timeline chunk.  See docs/formats/archive.md, "Times". */
#include <stdlib.h>

#include "fp_archive_priv.h"

enum { M = 1 << FP_TIME_BITS, SMALL = 32, N_FIXED = FP_TIME_POOLS + FP_TIME_PHASES };
__extension__ typedef unsigned __int128 u128;

/* A step count as a symbol: exact below 32, then 8 symbols an octave, the low
 * bits raw.  100 = 0b1100100: octave 6, mantissa 100, so 32 + 8 + 4, 3 bits 100. */
static inline uint32_t symbol_of(uint64_t k, unsigned *n_bits) {
    *n_bits = 0;
    if (k < SMALL) return (uint32_t)k;
    unsigned octave = 63 - (unsigned)__builtin_clzll(k);
    *n_bits = octave - 3;
    return SMALL + (octave - 5) * 8 + (uint32_t)(k >> (octave - 3) & 7);
}

static inline unsigned symbol_bits(uint32_t symbol) {
    return symbol < SMALL ? 0 : (symbol - SMALL) / 8 + 2;
}

static inline uint64_t symbol_base(uint32_t symbol) {
    if (symbol < SMALL) return symbol;
    return (uint64_t)(8 + (symbol - SMALL) % 8) << ((symbol - SMALL) / 8 + 2);
}

static inline uint32_t pool_of(uint32_t key) {
    return key >= FP_TIME_NO_FUNCTION ? (key - FP_TIME_NO_FUNCTION) & 7 : key & 3;
}

/* Moves `at` by k steps of q (32.32) and returns the time that is expected there. */
static inline uint64_t advance(struct fp_time_at *at, uint64_t k, uint64_t q) {
    u128 step = (u128)k * q + at->frac;
    at->ref += (uint64_t)(step >> 32);
    at->frac = (uint32_t)step;
    return at->ref;
}

/* The lattice follows what was seen: a miss by one is a quarter of a tick of
 * drift, a long pause or a greater miss starts it anew. */
static inline void track(struct fp_time_at *at, uint64_t k, uint64_t miss) {
    if (miss + 1 > 2 || k > 4096) {
        at->ref += miss;
        at->frac = 1u << 31;
        return;
    }
    uint64_t whole = (uint64_t)at->frac + (miss << 30);
    at->ref += (uint64_t)((int64_t)whole >> 32);
    at->frac = (uint32_t)whole;
}

/* ---- encoding ----------------------------------------------------------- */

/* Raw bits, lowest first, into bytes. */
struct bit_out {
    struct fp_buf *b;
    uint64_t acc;
    unsigned n;
};

static void bits_put(struct bit_out *o, uint64_t v, unsigned n) {
    while (n) {
        unsigned take = n < 32 ? n : 32;
        o->acc |= (v & (((uint64_t)1 << take) - 1)) << o->n;
        o->n += take;
        for (; o->n >= 8; o->n -= 8, o->acc >>= 8) fp_buf_byte(o->b, (uint8_t)o->acc);
        v = take < 64 ? v >> take : 0;
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

/* The step of the clock as 32.32, and whether times jitter about its multiples.
 * A clock converted to nanoseconds by a multiplication gives times that lie
 * within one of the multiples of, say, 10.0187. */
static uint64_t find_step(const uint64_t *time, const uint32_t *thread, uint32_t n, int *jitter) {
    *jitter = 0;
    uint64_t g = 0;
    for (uint32_t i = 1; i < n && g != 1; i++)
        if (!g || (time[i] - time[0]) % g) g = gcd(time[i] - time[0], g);
    if (g != 1) return g && g < (uint64_t)1 << 31 ? g << 32 : (uint64_t)1 << 32;
    uint32_t sample = n < 16384 ? n : 16384;
    for (uint64_t q = 100; q >= 6; q--) {
        uint32_t near = 0, all = 0;
        for (uint32_t i = 1; i < sample; i++) {
            uint64_t d = time[i] - time[i - 1];
            if (thread[i] != thread[i - 1] || !d || d >= 20 * q) continue;
            all++;
            near += (d + 1) % q <= 2;
        }
        if (all < 64 || near < all / 10 * 9) continue;
        double step = (double)q;
        for (int round = 0; round < 3; round++) {
            double sum = 0, steps = 0;
            for (uint32_t i = 1; i < n; i++) {
                uint64_t d = time[i] - time[i - 1];
                if (thread[i] != thread[i - 1] || d >= 16 * q) continue;
                sum += (double)d;
                steps += (double)(uint64_t)((double)d / step + 0.5);
            }
            if (steps > 0) step = sum / steps;
        }
        *jitter = 1;
        return (uint64_t)(step * 4294967296.0);
    }
    return (uint64_t)1 << 32;
}

/* log2 in 1/16 bits, good enough to choose tables by. */
static uint32_t log2_16(uint32_t v) {
    unsigned whole = 31 - (unsigned)__builtin_clz(v);
    uint32_t f = whole >= 8 ? (v >> (whole - 8)) & 255 : (v << (8 - whole)) & 255;
    return whole * 16 + (f * (345 - f * 89 / 256) >> 12);
}

/* Scales counts to frequencies that add up to M, each at least 1. */
static void normalize(const uint32_t *count, uint32_t n_symbols, uint16_t *freq) {
    uint64_t total = 0;
    for (uint32_t s = 0; s < n_symbols; s++) total += count[s];
    memset(freq, 0, n_symbols * sizeof *freq);
    if (!total) return;
    int32_t left = M;
    uint32_t top = 0;
    for (uint32_t s = 0; s < n_symbols; s++) {
        if (!count[s]) continue;
        uint32_t f = (uint32_t)(((uint64_t)count[s] * M + total / 2) / total);
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

struct model {
    uint16_t freq[FP_TIME_SYMBOLS];
    uint16_t cum[FP_TIME_SYMBOLS];
};

static void accumulate(struct model *m) {
    uint32_t cum = 0;
    for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++) {
        m->cum[s] = (uint16_t)cum;
        cum += m->freq[s];
    }
}

/* A row's symbols: bits 0-9 step symbol, 10-11 jitter symbol, 12-14 phase,
 * bit 15 has a jitter symbol. */
enum { HAS_JITTER = 1 << 15 };

struct work {
    uint16_t *symbols;   /* per row */
    uint16_t *sorted;    /* step symbols, by key */
    uint32_t *start;     /* per key: where its rows begin in `sorted`; one more at the end */
    uint16_t *table_of;  /* per key: its table, 0 = the pool's */
    struct model *models;
    uint32_t n_models;
    uint32_t hist[N_FIXED][FP_TIME_SYMBOLS];
};

static void symbolize(struct work *w, const uint64_t *time, const uint32_t *key, const uint32_t *thread,
                      uint32_t n, struct fp_time_at *at, uint64_t q, int jitter, struct bit_out *bits) {
    double step = (double)q / 4294967296.0;
    uint64_t whole = q >> 32;
    struct fp_time_at last = {time[0], 1u << 31, 1};
    for (uint32_t i = 0; i < n; i++) {
        struct fp_time_at *a = &at[thread[i]];
        if (!a->epoch) *a = last;
        uint64_t d = time[i] - a->ref, k, symbol, miss = 0;
        unsigned n_bits;
        uint32_t packed;
        if (jitter) {
            double x = ((double)(int64_t)d - (double)a->frac / 4294967296.0) / step + 1.0;
            k = x < 0.5 ? UINT64_MAX : (uint64_t)(x - 0.5);
        } else {
            k = (int64_t)d < 0 ? UINT64_MAX : whole == 1 ? d : d / whole;
        }
        if (k == UINT64_MAX) {
            packed = FP_TIME_ESCAPE;
            bits_put(bits, d, 64);
            a->ref = time[i];
            a->frac = 1u << 31;
        } else {
            packed = (uint32_t)(symbol = symbol_of(k, &n_bits));
            bits_put(bits, k, n_bits);
            if (jitter) {
                miss = time[i] - advance(a, k, q);
                uint32_t phase = a->frac >> 29;
                uint32_t e = miss + 1 > 2 ? 3 : (uint32_t)(miss + 1);
                packed |= e << 10 | phase << 12 | HAS_JITTER;
                w->hist[FP_TIME_POOLS + phase][e]++;
                if (e == 3) bits_put(bits, miss, 64);
                track(a, k, miss);
            } else {
                a->ref = time[i];
            }
        }
        w->symbols[i] = (uint16_t)packed;
        w->hist[pool_of(key[i])][packed & 1023]++;
        if (key[i] < FP_TIME_NO_FUNCTION) w->start[key[i] + 1]++;
        last = *a;
    }
}

struct choice {
    uint32_t key;
    uint32_t gain; /* bits */
};

static int by_gain(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    return x->gain != y->gain ? (x->gain < y->gain ? 1 : -1) : x->key < y->key ? -1 : 1;
}

static int by_key(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Counts the rows [from, to) of `sorted`; `used` lists the distinct symbols. */
static uint32_t count_run(const struct work *w, uint32_t from, uint32_t to, uint32_t *hist, uint16_t *used) {
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        if (!hist[w->sorted[i]]++) used[n++] = w->sorted[i];
    return n;
}

/* Gives a table of its own to each key for which that saves bits. */
static int choose(struct work *w, uint32_t n_keys, struct fp_buf *tables) {
    struct choice *choices = malloc(((size_t)n_keys + 1) * sizeof *choices);
    if (!choices) return FP_E_NOMEM;
    uint32_t n_choices = 0;
    uint32_t hist[FP_TIME_SYMBOLS] = {0};
    uint16_t used[FP_TIME_SYMBOLS];
    uint32_t total[FP_TIME_POOLS] = {0};
    for (uint32_t p = 0; p < FP_TIME_POOLS; p++)
        for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++) total[p] += w->hist[p][s];
    for (uint32_t key = 0; key < n_keys; key++) {
        uint32_t from = w->start[key], to = w->start[key + 1], rows = to - from;
        if (rows < 32) continue;
        uint32_t n_used = count_run(w, from, to, hist, used);
        int64_t gain = -(int64_t)16 * (24 + 18 * n_used);
        for (uint32_t u = 0; u < n_used; u++) {
            uint32_t c = hist[used[u]];
            int64_t own = (int64_t)log2_16(rows) - log2_16(c);
            int64_t pooled = (int64_t)log2_16(total[key & 3]) - log2_16(w->hist[key & 3][used[u]]);
            gain += c * (pooled - own);
            hist[used[u]] = 0;
        }
        if (gain > 0) choices[n_choices++] = (struct choice){key, gain >> 4 > UINT32_MAX ? UINT32_MAX : (uint32_t)(gain >> 4)};
    }
    if (n_choices > FP_TIME_TABLES) {
        qsort(choices, n_choices, sizeof *choices, by_gain);
        n_choices = FP_TIME_TABLES;
        qsort(choices, n_choices, sizeof *choices, by_key);
    }
    w->n_models = N_FIXED + n_choices;
    w->models = calloc(w->n_models, sizeof *w->models);
    if (!w->models) {
        free(choices);
        return FP_E_NOMEM;
    }
    fp_buf_varint(tables, n_choices);
    uint32_t next = 0;
    for (uint32_t i = 0; i < n_choices; i++) {
        uint32_t key = choices[i].key;
        struct model *m = &w->models[N_FIXED + i];
        uint32_t n_used = count_run(w, w->start[key], w->start[key + 1], hist, used);
        normalize(hist, FP_TIME_SYMBOLS, m->freq);
        for (uint32_t u = 0; u < n_used; u++) {
            w->hist[key & 3][used[u]] -= hist[used[u]];
            hist[used[u]] = 0;
        }
        w->table_of[key] = (uint16_t)(N_FIXED + i);
        fp_buf_varint(tables, key - next);
        write_table(tables, m->freq, FP_TIME_SYMBOLS);
        accumulate(m);
        next = key + 1;
    }
    free(choices);
    return 0;
}

static inline uint32_t rans_put(uint32_t x, const struct model *m, uint32_t symbol, uint8_t **to) {
    uint32_t freq = m->freq[symbol];
    if ((uint64_t)x >= (uint64_t)freq << (32 - FP_TIME_BITS)) {
        *to -= 2;
        (*to)[0] = (uint8_t)x;
        (*to)[1] = (uint8_t)(x >> 8);
        x >>= 16;
    }
    return (x / freq << FP_TIME_BITS) + x % freq + m->cum[symbol];
}

static int emit(const struct work *w, const uint32_t *key, uint32_t n, struct fp_buf *words) {
    /* the coder works backwards; at most 2 symbols a row and 16 bits a symbol */
    size_t most = (size_t)n * 4 + 4;
    if (fp_buf_reserve(words, most)) return FP_E_NOMEM;
    uint8_t *end = words->p + words->n + most, *to = end;
    uint32_t x = 1u << 16;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t s = w->symbols[i];
        if (s & HAS_JITTER) x = rans_put(x, &w->models[FP_TIME_POOLS + (s >> 12 & 7)], s >> 10 & 3, &to);
        uint32_t table = key[i] < FP_TIME_NO_FUNCTION ? w->table_of[key[i]] : 0;
        x = rans_put(x, &w->models[table ? table : pool_of(key[i])], s & 1023, &to);
    }
    to -= 4;
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(x >> 8 * i);
    memmove(words->p + words->n, to, (size_t)(end - to));
    words->n += (size_t)(end - to);
    return 0;
}

int fp_time_encode(const uint64_t *time, const uint32_t *key, const uint32_t *thread, uint32_t n,
                   uint32_t n_keys, uint32_t n_threads, struct fp_buf *tables, struct fp_buf *words,
                   struct fp_buf *bits) {
    if (!n) return 0;
    int status = FP_E_NOMEM, jitter;
    struct fp_time_at *at = calloc((size_t)n_threads + 1, sizeof *at);
    struct work *w = calloc(1, sizeof *w);
    if (!at || !w) goto out;
    w->symbols = malloc(n * sizeof *w->symbols);
    w->sorted = malloc(n * sizeof *w->sorted);
    w->start = calloc((size_t)n_keys + 2, sizeof *w->start);
    w->table_of = calloc((size_t)n_keys + 1, sizeof *w->table_of);
    if (!w->symbols || !w->sorted || !w->start || !w->table_of) goto out;

    uint64_t q = find_step(time, thread, n, &jitter);
    fp_buf_varint(tables, time[0]);
    fp_buf_varint(tables, q);
    fp_buf_byte(tables, (uint8_t)jitter);
    struct bit_out raw = {bits, 0, 0};
    symbolize(w, time, key, thread, n, at, q, jitter, &raw);
    if (raw.n) fp_buf_byte(bits, (uint8_t)raw.acc);

    for (uint32_t k = 0; k < n_keys; k++) w->start[k + 1] += w->start[k];
    for (uint32_t i = n; i-- > 0;) /* backwards: afterwards start[k + 1] is where key k begins */
        if (key[i] < FP_TIME_NO_FUNCTION) w->sorted[--w->start[key[i] + 1]] = w->symbols[i] & 1023;
    memmove(w->start, w->start + 1, n_keys * sizeof *w->start);
    w->start[n_keys] = 0;
    for (uint32_t i = 0; i < n; i++) w->start[n_keys] += key[i] < FP_TIME_NO_FUNCTION;
    if (choose(w, n_keys, tables)) goto out;
    for (uint32_t p = 0; p < (uint32_t)(jitter ? N_FIXED : FP_TIME_POOLS); p++) {
        struct model *m = &w->models[p];
        normalize(w->hist[p], FP_TIME_SYMBOLS, m->freq);
        write_table(tables, m->freq, FP_TIME_SYMBOLS);
        accumulate(m);
    }
    status = emit(w, key, n, words);
    if (tables->failed || words->failed || bits->failed) status = FP_E_NOMEM;
out:
    if (w) {
        free(w->symbols);
        free(w->sorted);
        free(w->start);
        free(w->table_of);
        free(w->models);
    }
    free(w);
    free(at);
    return status;
}

/* ---- decoding ----------------------------------------------------------- */

/* A slot of a table: symbol << 22 | (frequency - 1) << 11 | place in the symbol. */
struct fp_time_dec {
    uint32_t *slots;       /* n_tables * M */
    uint32_t n_tables, tables_cap;
    uint16_t *table_of;    /* per key */
    uint32_t keys_cap, n_keys;
    uint32_t given[FP_TIME_TABLES]; /* keys with an entry in table_of */
    uint32_t n_given;
    uint8_t empty[N_FIXED];
    uint64_t q;
    int jitter, bad;
    uint32_t x;
    const uint8_t *word, *words_end;
    const uint8_t *bits, *bits_end;
    uint64_t acc;
    unsigned acc_n;
    struct fp_time_at last;
};

struct fp_time_dec *fp_time_dec_new(void) { return calloc(1, sizeof(struct fp_time_dec)); }

void fp_time_dec_free(struct fp_time_dec *d) {
    if (!d) return;
    free(d->slots);
    free(d->table_of);
    free(d);
}

int fp_time_dec_bad(const struct fp_time_dec *d) { return d->bad; }

/* 0, or -1 when the frequencies do not add up; an empty table is only fine for a pool. */
static int read_table(struct fp_cur *c, uint32_t *slots, uint32_t n_symbols, uint8_t *empty) {
    uint32_t used = fp_cur_u32(c);
    *empty = !used;
    if (!used) return c->bad;
    uint64_t symbol = 0;
    uint32_t at = 0;
    for (uint32_t u = 0; u < used && !c->bad; u++) {
        symbol += fp_cur_u32(c);
        uint32_t freq = fp_cur_u32(c);
        if (symbol >= n_symbols || !freq || freq > M - at) return -1;
        for (uint32_t i = 0; i < freq; i++) slots[at++] = (uint32_t)symbol << 22 | (freq - 1) << 11 | i;
        symbol++;
    }
    return c->bad || at != M ? -1 : 0;
}

int fp_time_dec_open(struct fp_time_dec *d, uint32_t n_keys, const uint8_t *const *p, const size_t *n) {
    for (uint32_t i = 0; i < d->n_given; i++) d->table_of[d->given[i]] = 0;
    d->n_given = 0;
    if (n_keys > d->keys_cap) {
        uint16_t *table_of = realloc(d->table_of, n_keys * sizeof *table_of);
        if (!table_of) return FP_E_NOMEM;
        memset(table_of + d->keys_cap, 0, (n_keys - d->keys_cap) * sizeof *table_of);
        d->table_of = table_of;
        d->keys_cap = n_keys;
    }
    d->n_keys = n_keys;
    struct fp_cur c = {p[0], p[0] + n[0], 0};
    d->last = (struct fp_time_at){fp_cur_varint(&c), 1u << 31, 0};
    d->q = fp_cur_varint(&c);
    uint8_t jitter = fp_cur_byte(&c);
    uint32_t n_own = fp_cur_u32(&c);
    if (c.bad || jitter > 1 || n_own > FP_TIME_TABLES || !d->q) return FP_E_MALFORMED;
    d->jitter = jitter;
    d->n_tables = N_FIXED + n_own;
    if (d->n_tables > d->tables_cap) {
        uint32_t *slots = realloc(d->slots, (size_t)d->n_tables * M * sizeof *slots);
        if (!slots) return FP_E_NOMEM;
        d->slots = slots;
        d->tables_cap = d->n_tables;
    }
    uint64_t key = 0;
    uint8_t empty;
    for (uint32_t i = 0; i < n_own; i++) {
        key += fp_cur_u32(&c);
        if (c.bad || key >= n_keys || read_table(&c, d->slots + (size_t)(N_FIXED + i) * M, FP_TIME_SYMBOLS, &empty) || empty)
            return FP_E_MALFORMED;
        d->table_of[key] = (uint16_t)(N_FIXED + i);
        d->given[d->n_given++] = (uint32_t)key++;
    }
    memset(d->empty, 1, sizeof d->empty);
    for (uint32_t t = 0; t < (uint32_t)(jitter ? N_FIXED : FP_TIME_POOLS); t++)
        if (read_table(&c, d->slots + (size_t)t * M, t < FP_TIME_POOLS ? FP_TIME_SYMBOLS : 4, &d->empty[t]))
            return FP_E_MALFORMED;
    if (c.p != c.end || n[1] < 4) return FP_E_MALFORMED;
    d->x = fp_u32(p[1]);
    d->word = p[1] + 4;
    d->words_end = p[1] + n[1];
    d->bits = p[2];
    d->bits_end = p[2] + n[2];
    d->acc = 0;
    d->acc_n = 0;
    d->bad = 0;
    return 0;
}

static inline uint32_t rans_get(struct fp_time_dec *d, const uint32_t *slots) {
    uint32_t slot = slots[d->x & (M - 1)];
    d->x = ((slot >> 11 & (M - 1)) + 1) * (d->x >> FP_TIME_BITS) + (slot & (M - 1));
    if (d->x < 1u << 16) {
        if (FP_UNLIKELY(d->words_end - d->word < 2)) {
            d->bad = 1;
            d->x = 1u << 16;
        } else {
            d->x = d->x << 16 | fp_u16(d->word);
            d->word += 2;
        }
    }
    return slot >> 22;
}

static uint64_t bits_get(struct fp_time_dec *d, unsigned n) {
    uint64_t v = 0;
    for (unsigned have = 0; have < n;) {
        if (!d->acc_n) {
            if (d->bits == d->bits_end) {
                d->bad = 1;
                return 0;
            }
            size_t left = (size_t)(d->bits_end - d->bits);
            unsigned take = left < 8 ? (unsigned)left : 8;
            d->acc = 0;
            memcpy(&d->acc, d->bits, take);
            d->bits += take;
            d->acc_n = take * 8;
        }
        unsigned take = n - have < d->acc_n ? n - have : d->acc_n;
        uint64_t mask = take < 64 ? ((uint64_t)1 << take) - 1 : UINT64_MAX;
        v |= (d->acc & mask) << have;
        d->acc = take < 64 ? d->acc >> take : 0;
        d->acc_n -= take;
        have += take;
    }
    return v;
}

uint64_t fp_time_next(struct fp_time_dec *d, uint32_t key, struct fp_time_at *at) {
    uint32_t table = key < FP_TIME_NO_FUNCTION ? d->table_of[key] : 0;
    if (!table) {
        table = pool_of(key);
        if (FP_UNLIKELY(d->empty[table])) {
            d->bad = 1;
            return 0;
        }
    }
    if (!at->epoch) {
        *at = d->last;
        at->epoch = 1;
    }
    uint32_t symbol = rans_get(d, d->slots + (size_t)table * M);
    uint64_t time;
    if (FP_UNLIKELY(symbol == FP_TIME_ESCAPE)) {
        time = at->ref + bits_get(d, 64);
        at->ref = time;
        at->frac = 1u << 31;
    } else {
        uint64_t k = symbol < SMALL ? symbol : symbol_base(symbol) | bits_get(d, symbol_bits(symbol));
        if (d->jitter) {
            time = advance(at, k, d->q);
            uint32_t phase = at->frac >> 29;
            if (FP_UNLIKELY(d->empty[FP_TIME_POOLS + phase])) {
                d->bad = 1;
                return 0;
            }
            uint32_t e = rans_get(d, d->slots + (size_t)(FP_TIME_POOLS + phase) * M);
            uint64_t miss = e == 3 ? bits_get(d, 64) : (uint64_t)e - 1;
            time += miss;
            track(at, k, miss);
        } else {
            time = at->ref += k * (d->q >> 32);
        }
    }
    d->last = *at;
    return time;
}
