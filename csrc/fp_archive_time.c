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
static inline uint64_t advance(struct fp_archive_time_at *at, uint64_t k, uint64_t q) {
    u128 step = (u128)k * q + at->frac;
    at->ref += (uint64_t)(step >> 32);
    at->frac = (uint32_t)step;
    return at->ref;
}

/* The lattice follows what was seen: a miss by one is a sixteenth of a tick of
 * drift, a long pause or a greater miss starts it anew. */
static inline void track(struct fp_archive_time_at *at, uint64_t k, uint64_t miss) {
    if (miss + 1 > 2 || k > 4096) {
        at->ref += miss;
        at->frac = 1u << 31;
        return;
    }
    uint64_t whole = (uint64_t)at->frac + (miss << 28);
    at->ref += (uint64_t)((int64_t)whole >> 32);
    at->frac = (uint32_t)whole;
}

/* What the last steps of the thread were like, short, middle or long. */
static inline void remember(struct fp_archive_time_at *at, uint64_t k, const uint64_t *limits) {
    at->history = at->history % 9 * 3 + (k > limits[0]) + (k > limits[1]);
}

static inline uint32_t phase_of(const struct fp_archive_time_at *at) {
    return at->jitter * 16 + (at->frac >> 28);
}

/* A key with the history of its thread, hashed. */
static inline uint32_t history_key(uint32_t key, uint32_t history) {
    return (key * FP_TIME_HISTORIES + history) * 2654435761u >> (32 - FP_TIME_HASH_BITS);
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
    for (uint32_t i = 1; i < n && g != 1; i++) {
        /* Not modulo 2^64: 1, 0 is one apart, whatever 2^64 - 1 is divisible by. */
        const uint64_t apart = time[i] > time[0] ? time[i] - time[0] : time[0] - time[i];
        if (!g || apart % g) g = gcd(apart, g);
    }
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

enum { HAS_JITTER = 1 << 15, N_HASHED = 1 << FP_TIME_HASH_BITS };

/* A chunk's rows on their way: step symbol; jitter symbol, its context and
 * HAS_JITTER; key with history, or N_HASHED for a row without a function. */
struct work {
    uint16_t *symbols;
    uint16_t *jitters;
    uint32_t *hashed;
    uint16_t *table_of; /* per row */
    uint32_t *sorted;   /* rows by key */
    uint32_t *start;    /* per key: where its rows begin in `sorted`; one more at the end */
    uint32_t *hist;     /* FP_TIME_SYMBOLS counts for each table */
    struct model *models;
    uint32_t n_models;
    uint32_t jitter_hist[FP_TIME_PHASES][4];
};

/* The steps of all rows, their jitter, and the raw bits of both. */
static void symbolize(struct work *w, const uint64_t *time, const uint32_t *key, const uint32_t *thread, uint32_t n,
                      struct fp_archive_time_at *at, uint64_t q, int jitter, const uint64_t *limits,
                      struct bit_out *bits) {
    double step = (double)q / 4294967296.0;
    uint64_t whole = q >> 32;
    struct fp_archive_time_at last = {time[0], 1u << 31, 1, 0, 1};
    for (uint32_t i = 0; i < n; i++) {
        struct fp_archive_time_at *a = &at[thread[i]];
        if (!a->epoch) *a = last;
        uint64_t d = time[i] - a->ref, k;
        w->hashed[i] = key[i] < FP_TIME_NO_FUNCTION ? history_key(key[i], a->history) : N_HASHED;
        w->jitters[i] = 0;
        if (jitter) {
            double x = ((double)(int64_t)d - (double)a->frac / 4294967296.0) / step + 1.0;
            k = x < 0.5 ? UINT64_MAX : (uint64_t)(x - 0.5);
        } else {
            k = (int64_t)d < 0 ? UINT64_MAX : whole == 1 ? d : d / whole;
        }
        remember(a, k, limits);
        if (k == UINT64_MAX) {
            w->symbols[i] = FP_TIME_ESCAPE;
            bits_put(bits, d, 64);
            a->ref = time[i];
            a->frac = 1u << 31;
        } else {
            unsigned n_bits;
            w->symbols[i] = (uint16_t)symbol_of(k, &n_bits);
            bits_put(bits, k, n_bits);
            if (jitter) {
                uint64_t miss = time[i] - advance(a, k, q);
                uint32_t phase = phase_of(a), e = miss + 1 > 2 ? 3 : (uint32_t)(miss + 1);
                w->jitters[i] = (uint16_t)(e | phase << 2 | HAS_JITTER);
                w->jitter_hist[phase][e]++;
                if (e == 3) bits_put(bits, miss, 64);
                a->jitter = e < 3 ? e : 1;
                track(a, k, miss);
            } else {
                a->ref = time[i];
            }
        }
        last = *a;
    }
}

/* Two limits that part the steps into thirds. */
static void find_limits(const uint64_t *time, const uint32_t *thread, uint32_t n, uint64_t q, uint64_t *limits) {
    uint32_t hist[256] = {0}, all = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (thread[i] != thread[i - 1]) continue;
        uint64_t k = (((time[i] - time[i - 1]) << 16) + (q >> 17)) / (q >> 16);
        hist[k < 255 ? k : 255]++;
        all++;
    }
    uint32_t sum = hist[0], k = 0;
    while (k < 255 && sum < all / 3) sum += hist[++k];
    limits[0] = k;
    if (k < 255) sum += hist[++k];
    while (k < 255 && sum < all / 3 * 2) sum += hist[++k];
    limits[1] = k;
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

/* Sorts rows by key; keys of n_keys and more are left out. */
static void sort_rows(struct work *w, const uint32_t *key, uint32_t n, uint32_t n_keys) {
    memset(w->start, 0, ((size_t)n_keys + 2) * sizeof *w->start);
    for (uint32_t i = 0; i < n; i++)
        if (key[i] < n_keys) w->start[key[i] + 2]++;
    for (uint32_t k = 2; k < n_keys + 2; k++) w->start[k] += w->start[k - 1];
    for (uint32_t i = 0; i < n; i++) /* start[k + 1] moves from the beginning of key k to its end */
        if (key[i] < n_keys) w->sorted[w->start[key[i] + 1]++] = i;
}

/* What each symbol costs under a table's counts, in 1/16 bits. */
static void costs_of(const uint32_t *hist, uint16_t *cost) {
    uint32_t total = 0;
    for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++) total += hist[s];
    for (uint32_t s = 0; s < FP_TIME_SYMBOLS; s++)
        cost[s] = (uint16_t)(hist[s] ? log2_16(total) - log2_16(hist[s]) : 0);
}

/* Gives a table of its own to each key for which that saves bits over the tables
 * that its rows have now.  At most `most` keys.  Appends their list to `out`. */
static int choose(struct work *w, const uint32_t *key, uint32_t n, uint32_t n_keys, uint32_t most, struct fp_buf *out) {
    int status = FP_E_NOMEM;
    struct choice *choices = malloc(((size_t)n_keys + 1) * sizeof *choices);
    uint16_t *cost = malloc((size_t)w->n_models * FP_TIME_SYMBOLS * sizeof *cost);
    if (!choices || !cost) goto out;
    for (uint32_t t = 0; t < w->n_models; t++)
        costs_of(w->hist + (size_t)t * FP_TIME_SYMBOLS, cost + (size_t)t * FP_TIME_SYMBOLS);
    sort_rows(w, key, n, n_keys);
    uint32_t n_choices = 0, hist[FP_TIME_SYMBOLS] = {0};
    uint16_t used[FP_TIME_SYMBOLS];
    for (uint32_t k = 0; k < n_keys; k++) {
        uint32_t from = w->start[k], to = w->start[k + 1], rows = to - from, n_used = 0;
        if (rows < 32) continue;
        int64_t gain = 0;
        for (uint32_t j = from; j < to; j++) {
            uint32_t i = w->sorted[j], s = w->symbols[i];
            gain += cost[(size_t)w->table_of[i] * FP_TIME_SYMBOLS + s];
            if (!hist[s]++) used[n_used++] = (uint16_t)s;
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
    uint32_t *grown = realloc(w->hist, (size_t)(w->n_models + n_choices) * FP_TIME_SYMBOLS * sizeof *grown);
    if (!grown) goto out;
    w->hist = grown;
    memset(w->hist + (size_t)w->n_models * FP_TIME_SYMBOLS, 0, (size_t)n_choices * FP_TIME_SYMBOLS * sizeof *grown);
    fp_buf_varint(out, n_choices);
    uint32_t next = 0;
    for (uint32_t c = 0; c < n_choices; c++) {
        uint32_t k = choices[c].key;
        for (uint32_t j = w->start[k]; j < w->start[k + 1]; j++) {
            uint32_t i = w->sorted[j], s = w->symbols[i];
            w->hist[(size_t)w->table_of[i] * FP_TIME_SYMBOLS + s]--;
            w->table_of[i] = (uint16_t)w->n_models;
            w->hist[(size_t)w->n_models * FP_TIME_SYMBOLS + s]++;
        }
        fp_buf_varint(out, k - next);
        next = k + 1;
        w->n_models++;
    }
    status = 0;
out:
    free(choices);
    free(cost);
    return status;
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

static int emit(const struct work *w, uint32_t n, struct fp_buf *words) {
    /* the coder works backwards; at most 2 symbols a row and 16 bits a symbol */
    size_t most = (size_t)n * 4 + 4;
    if (fp_buf_reserve(words, most)) return FP_E_NOMEM;
    uint8_t *end = words->p + words->n + most, *to = end;
    uint32_t x = 1u << 16;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t j = w->jitters[i];
        if (j) x = rans_put(x, &w->models[FP_TIME_POOLS + (j >> 2 & 63)], j & 3, &to);
        x = rans_put(x, &w->models[w->table_of[i]], w->symbols[i], &to);
    }
    to -= 4;
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(x >> 8 * i);
    memmove(words->p + words->n, to, (size_t)(end - to));
    words->n += (size_t)(end - to);
    return 0;
}

static int encode(struct work *w, const uint64_t *time, const uint32_t *key, const uint32_t *thread, uint32_t n,
                  uint32_t n_keys, struct fp_archive_time_at *at, struct fp_buf *tables, struct fp_buf *words,
                  struct fp_buf *bits) {
    int jitter;
    uint64_t q = find_step(time, thread, n, &jitter), limits[2];
    find_limits(time, thread, n, q, limits);
    fp_buf_varint(tables, time[0]);
    fp_buf_varint(tables, q);
    fp_buf_byte(tables, (uint8_t)jitter);
    fp_buf_varint(tables, limits[0]);
    fp_buf_varint(tables, limits[1]);
    struct bit_out raw = {bits, 0, 0};
    symbolize(w, time, key, thread, n, at, q, jitter, limits, &raw);
    if (raw.n) fp_buf_byte(bits, (uint8_t)raw.acc);

    w->n_models = N_FIXED;
    for (uint32_t i = 0; i < n; i++) {
        w->table_of[i] = (uint16_t)pool_of(key[i]);
        w->hist[w->table_of[i] * FP_TIME_SYMBOLS + w->symbols[i]]++;
    }
    if (choose(w, key, n, n_keys, FP_TIME_TABLES / 2, tables) ||
        choose(w, w->hashed, n, N_HASHED, FP_TIME_TABLES / 2, tables))
        return FP_E_NOMEM;
    w->models = calloc(w->n_models, sizeof *w->models);
    if (!w->models) return FP_E_NOMEM;
    for (uint32_t p = 0; p < FP_TIME_PHASES; p++)
        memcpy(w->hist + (size_t)(FP_TIME_POOLS + p) * FP_TIME_SYMBOLS, w->jitter_hist[p], sizeof w->jitter_hist[p]);
    for (uint32_t t = 0; t < w->n_models; t++) {
        if (!jitter && t >= FP_TIME_POOLS && t < N_FIXED) continue;
        normalize(w->hist + (size_t)t * FP_TIME_SYMBOLS, FP_TIME_SYMBOLS, w->models[t].freq);
        write_table(tables, w->models[t].freq, FP_TIME_SYMBOLS);
        accumulate(&w->models[t]);
    }
    return emit(w, n, words);
}

int fp_archive_time_encode(const uint64_t *time, const uint32_t *key, const uint32_t *thread, uint32_t n,
                           uint32_t n_keys, uint32_t n_threads, struct fp_buf *tables, struct fp_buf *words,
                           struct fp_buf *bits) {
    if (!n) return 0;
    int status = FP_E_NOMEM;
    uint32_t most_keys = n_keys > N_HASHED ? n_keys : N_HASHED;
    struct fp_archive_time_at *at = calloc((size_t)n_threads + 1, sizeof *at);
    struct work *w = calloc(1, sizeof *w);
    if (!at || !w) goto out;
    w->symbols = malloc(n * sizeof *w->symbols);
    w->jitters = malloc(n * sizeof *w->jitters);
    w->hashed = malloc(n * sizeof *w->hashed);
    w->table_of = malloc(n * sizeof *w->table_of);
    w->sorted = malloc(n * sizeof *w->sorted);
    w->start = malloc(((size_t)most_keys + 2) * sizeof *w->start);
    w->hist = calloc((size_t)N_FIXED * FP_TIME_SYMBOLS, sizeof *w->hist);
    if (!w->symbols || !w->jitters || !w->hashed || !w->table_of || !w->sorted || !w->start || !w->hist) goto out;
    status = encode(w, time, key, thread, n, n_keys, at, tables, words, bits);
    if (tables->failed || words->failed || bits->failed) status = FP_E_NOMEM;
out:
    if (w) {
        free(w->symbols);
        free(w->jitters);
        free(w->hashed);
        free(w->table_of);
        free(w->sorted);
        free(w->start);
        free(w->hist);
        free(w->models);
    }
    free(w);
    free(at);
    return status;
}

/* ---- decoding ----------------------------------------------------------- */

/* Flags of table_of: worked out at a key's first use, so that most rows need not
 * look into the much larger table_of_hashed. */
enum { HISTORY_CHECKED = 1 << 14, HAS_HISTORY = 1 << 15, TABLE = HISTORY_CHECKED - 1 };

/* A table's two likeliest symbols, so that most rows need not touch its slots,
 * which together are far larger than a cache. */
struct head {
    uint16_t start[2], freq[2], symbol[2];
};

/* A slot of a table: symbol << 22 | (frequency - 1) << 11 | place in the symbol. */
struct fp_archive_time_dec {
    uint32_t *slots; /* n_tables * M */
    struct head *heads;
    uint32_t n_tables, tables_cap;
    uint16_t *table_of; /* per key: its table or 0, and the flags below */
    uint32_t keys_cap;
    uint16_t *table_of_hashed;      /* per key with history; 0 = the key's */
    uint32_t given[FP_TIME_TABLES]; /* keys with a table; those with history come last */
    uint32_t n_given, n_given_plain;
    uint64_t limits[2];
    uint8_t *empty; /* per table: it has no symbols and must not be used */
    uint32_t empty_cap;
    uint64_t q;
    int jitter, bad;
    uint32_t x;
    const uint8_t *word, *words_end;
    const uint8_t *bits, *bits_end;
    uint64_t acc;
    unsigned acc_n;
    struct fp_archive_time_at first;       /* where the first thread starts */
    const struct fp_archive_time_at *last; /* of the thread of the row before: where a new thread starts */
};

struct fp_archive_time_dec *fp_archive_time_dec_new(void) {
    return calloc(1, sizeof(struct fp_archive_time_dec));
}

void fp_archive_time_dec_free(struct fp_archive_time_dec *d) {
    if (!d) return;
    free(d->slots);
    free(d->heads);
    free(d->empty);
    free(d->table_of);
    free(d->table_of_hashed);
    free(d);
}

int fp_archive_time_dec_bad(const struct fp_archive_time_dec *d) {
    return d->bad;
}

/* 0, or -1 when the frequencies do not add up; an empty table is only fine for a pool. */
static int read_table(struct fp_archive_cur *c, uint32_t *slots, struct head *head, uint32_t n_symbols,
                      uint8_t *empty) {
    memset(head, 0, sizeof *head);
    uint32_t used = fp_archive_cur_u32(c);
    *empty = !used;
    if (!used) return c->bad;
    uint64_t symbol = 0;
    uint32_t at = 0;
    for (uint32_t u = 0; u < used && !c->bad; u++) {
        symbol += fp_archive_cur_u32(c);
        uint32_t freq = fp_archive_cur_u32(c);
        if (symbol >= n_symbols || !freq || freq > M - at) return -1;
        int place = freq > head->freq[0] ? 0 : freq > head->freq[1] ? 1 : 2;
        if (place == 0) {
            head->start[1] = head->start[0];
            head->freq[1] = head->freq[0];
            head->symbol[1] = head->symbol[0];
        }
        if (place < 2) {
            head->start[place] = (uint16_t)at;
            head->freq[place] = (uint16_t)freq;
            head->symbol[place] = (uint16_t)symbol;
        }
        for (uint32_t i = 0; i < freq; i++) slots[at++] = (uint32_t)symbol << 22 | (freq - 1) << 11 | i;
        symbol++;
    }
    return c->bad || at != M ? -1 : 0;
}

/* A list of keys with tables of their own, which are numbered from N_FIXED on. */
static int read_keys(struct fp_archive_time_dec *d, struct fp_archive_cur *c, uint16_t *table_of, uint32_t n_keys) {
    uint32_t n = fp_archive_cur_u32(c);
    if (c->bad || n > FP_TIME_TABLES / 2) return FP_E_MALFORMED;
    uint64_t key = 0;
    for (uint32_t i = 0; i < n; i++) {
        key += fp_archive_cur_u32(c);
        if (c->bad || key >= n_keys) return FP_E_MALFORMED;
        table_of[key] = (uint16_t)(N_FIXED + d->n_given);
        d->given[d->n_given++] = (uint32_t)key++;
    }
    return 0;
}

static int prepare(struct fp_archive_time_dec *d, uint32_t n_keys) {
    for (uint32_t i = d->n_given_plain; i < d->n_given; i++) d->table_of_hashed[d->given[i]] = 0;
    d->n_given = d->n_given_plain = 0;
    if (!d->table_of_hashed) d->table_of_hashed = calloc(1 << FP_TIME_HASH_BITS, sizeof *d->table_of_hashed);
    if (!d->table_of_hashed) return FP_E_NOMEM;
    if (n_keys > d->keys_cap) {
        uint16_t *table_of = realloc(d->table_of, n_keys * sizeof *table_of);
        if (!table_of) return FP_E_NOMEM;
        d->table_of = table_of;
        d->keys_cap = n_keys;
    }
    if (n_keys) memset(d->table_of, 0, n_keys * sizeof *d->table_of);
    return 0;
}

int fp_archive_time_dec_open(struct fp_archive_time_dec *d, uint32_t n_keys, const uint8_t *const *p, const size_t *n) {
    if (prepare(d, n_keys)) return FP_E_NOMEM;
    struct fp_archive_cur c = {p[0], p[0] + n[0], 0};
    d->first = (struct fp_archive_time_at){fp_archive_cur_varint(&c), 1u << 31, 1, 0, 1};
    d->last = &d->first;
    d->q = fp_archive_cur_varint(&c);
    uint8_t jitter = fp_archive_cur_byte(&c);
    d->limits[0] = fp_archive_cur_varint(&c);
    d->limits[1] = fp_archive_cur_varint(&c);
    if (c.bad || jitter > 1 || !d->q) return FP_E_MALFORMED;
    d->jitter = jitter;
    if (read_keys(d, &c, d->table_of, n_keys)) return FP_E_MALFORMED;
    d->n_given_plain = d->n_given;
    if (read_keys(d, &c, d->table_of_hashed, 1 << FP_TIME_HASH_BITS)) return FP_E_MALFORMED;
    d->n_tables = N_FIXED + d->n_given;
    if (d->n_tables > d->tables_cap) {
        uint32_t *slots = realloc(d->slots, (size_t)d->n_tables * M * sizeof *slots);
        if (!slots) return FP_E_NOMEM;
        d->slots = slots;
        struct head *heads = realloc(d->heads, d->n_tables * sizeof *heads);
        if (!heads) return FP_E_NOMEM;
        d->heads = heads;
        d->tables_cap = d->n_tables;
    }
    if (d->n_tables > d->empty_cap) {
        uint8_t *empty = realloc(d->empty, d->n_tables);
        if (!empty) return FP_E_NOMEM;
        d->empty = empty;
        d->empty_cap = d->n_tables;
    }
    memset(d->empty, 1, d->n_tables);
    for (uint32_t t = 0; t < d->n_tables; t++) {
        int is_jitter = t >= FP_TIME_POOLS && t < N_FIXED;
        if (is_jitter && !jitter) continue;
        if (read_table(&c, d->slots + (size_t)t * M, &d->heads[t], is_jitter ? 4 : FP_TIME_SYMBOLS, &d->empty[t]))
            return FP_E_MALFORMED;
    }
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

static inline uint32_t rans_get(struct fp_archive_time_dec *d, uint32_t table) {
    const struct head *head = &d->heads[table];
    uint32_t x = d->x, place = x & (M - 1), symbol, freq, in;
    if ((in = place - head->start[0]) < head->freq[0]) {
        freq = head->freq[0];
        symbol = head->symbol[0];
    } else if ((in = place - head->start[1]) < head->freq[1]) {
        freq = head->freq[1];
        symbol = head->symbol[1];
    } else {
        uint32_t slot = d->slots[(size_t)table * M + place];
        freq = (slot >> 11 & 2047) + 1;
        in = slot & 2047;
        symbol = slot >> 22;
    }
    x = freq * (x >> FP_TIME_BITS) + in;
    if (x < 1u << 16) {
        if (FP_UNLIKELY(d->words_end - d->word < 2)) {
            d->bad = 1;
            x = 1u << 16;
        } else {
            x = x << 16 | fp_u16(d->word);
            d->word += 2;
        }
    }
    d->x = x;
    return symbol;
}

static uint64_t bits_get(struct fp_archive_time_dec *d, unsigned n) {
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

static uint32_t check_history(struct fp_archive_time_dec *d, uint32_t key) {
    uint32_t flags = HISTORY_CHECKED;
    for (uint32_t h = 0; h < FP_TIME_HISTORIES; h++)
        if (d->table_of_hashed[history_key(key, h)]) flags |= HAS_HISTORY;
    return d->table_of[key] |= (uint16_t)flags;
}

uint64_t fp_archive_time_next(struct fp_archive_time_dec *d, uint32_t key, struct fp_archive_time_at *at) {
    if (FP_UNLIKELY(!at->epoch)) *at = *d->last;
    uint32_t table = pool_of(key);
    if (key < FP_TIME_NO_FUNCTION) {
        uint32_t own = d->table_of[key];
        if (FP_UNLIKELY(!(own & HISTORY_CHECKED))) own = check_history(d, key);
        if (own & TABLE) table = own & TABLE;
        if (own & HAS_HISTORY) {
            uint32_t special = d->table_of_hashed[history_key(key, at->history)];
            if (special) table = special;
        }
    }
    if (FP_UNLIKELY(d->empty[table])) {
        d->bad = 1;
        return 0;
    }
    uint32_t symbol = rans_get(d, table);
    uint64_t time;
    if (FP_UNLIKELY(symbol == FP_TIME_ESCAPE)) {
        remember(at, UINT64_MAX, d->limits);
        time = at->ref + bits_get(d, 64);
        at->ref = time;
        at->frac = 1u << 31;
    } else {
        uint64_t k = symbol < SMALL ? symbol : symbol_base(symbol) | bits_get(d, symbol_bits(symbol));
        remember(at, k, d->limits);
        if (d->jitter) {
            time = advance(at, k, d->q);
            table = FP_TIME_POOLS + phase_of(at);
            if (FP_UNLIKELY(d->empty[table])) {
                d->bad = 1;
                return 0;
            }
            uint32_t e = rans_get(d, table);
            uint64_t miss = e == 3 ? bits_get(d, 64) : (uint64_t)e - 1;
            time += miss;
            at->jitter = e < 3 ? e : 1;
            track(at, k, miss);
        } else {
            time = at->ref += k * (d->q >> 32);
        }
    }
    d->last = at;
    return time;
}
