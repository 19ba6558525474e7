/* Times of a timeline chunk, read.  See docs/formats/archive.md, "Times". */
#include "archive/time.h"

/* A table has 1024 places; a symbol takes as many as its frequency.  A place holds:
 *
 *    30 .. 22   21 .. 20   19 .. 10        9 .. 0
 *   | symbol  | class    | frequency - 1 | place in the symbol |
 *
 * BAD: the table has no symbols. */
enum { BAD = 511, PAD = 32, HEAD = 600 };

/* The most likely symbol of a table, if it is much more likely than the others.  Then most rows need not read the
 * table's places; the places of all tables do not fit a cache. */
struct head {
    uint16_t start, freq; /* freq 0: no symbol is that likely */
    uint16_t what;        /* symbol << 2 | class */
    uint16_t calm_freq;   /* freq if the symbol is a short step without raw bits, otherwise 0 */
};

/* The table that a key uses for each history. */
struct context {
    uint16_t table[32];
};

/* A table for jitters, which have at most four symbols: the start and the frequency of each. */
struct jitter_table {
    uint16_t start[4], freq[4];
};

struct fp_archive_time_dec {
    uint32_t (*slots)[FP_TIME_M]; /* per table its places; first the pools, then tables of keys, then of hashed keys */
    struct head *heads;
    uint32_t tables_cap;
    struct jitter_table jitters[FP_TIME_PHASES];
    struct context *contexts; /* one for each table, which uses only that; then those of keys with hashed tables */
    uint32_t n_contexts, contexts_cap;
    uint32_t *context_of; /* per key: 1 + its context; 0 = not yet known */
    uint32_t keys_cap;
    uint32_t *known; /* the keys whose context_of is not 0 */
    uint32_t n_known, known_cap;
    uint16_t *table_of;             /* per key: its own table or 0 */
    uint16_t *table_hashed;         /* per hashed key: its table or 0 */
    uint32_t given[FP_TIME_TABLES]; /* keys with a table, n_given[0]; then hashed ones, n_given[1] */
    uint32_t n_given[2];
    uint32_t n_keys;
    uint64_t base[FP_TIME_SYMBOLS]; /* of a symbol, see fp_archive_time_base */
    uint8_t n_bits[FP_TIME_SYMBOLS];
    uint64_t limits[2];
    uint64_t q;
    int jitter;
    int calm;       /* the last rows took less than one word for 8 of them */
    uint32_t x[2];  /* coders of steps and jitters */
    uint8_t *bytes; /* words, PAD zeros, bits, PAD zeros: a row may read past an end before it is checked */
    size_t bytes_cap;
    const uint8_t *word, *words_end;
    const uint8_t *bits;
    uint64_t bit, bits_end;                /* the next bit, and the number of bits */
    struct fp_archive_time_at first;       /* the start of the first thread */
    const struct fp_archive_time_at *last; /* the state of the previous row's thread: the start of a new thread */
};

struct fp_archive_time_dec *fp_archive_time_dec_new(void) {
    struct fp_archive_time_dec *d = fp_have(calloc(1, sizeof *d));
    for (uint32_t s = 0; s < FP_TIME_ESCAPE; s++) {
        d->base[s] = fp_archive_time_base(s);
        d->n_bits[s] = (uint8_t)fp_archive_time_bits(s);
    }
    return d;
}

void fp_archive_time_dec_free(struct fp_archive_time_dec *d) {
    if (!d) return;
    FP_FREE(d->slots, d->heads, d->contexts, d->context_of, d->known, d->table_of, d->table_hashed, d->bytes, d);
}

/* ---- opening a chunk -------------------------------------------------------- */

/* Reads a frequency table into symbols and freqs, which have room for n_symbols.
 * Returns the number of symbols in it, or -1 when the frequencies do not add up. */
static int read_table(struct fp_cursor *c, uint32_t n_symbols, uint32_t *symbols, uint32_t *freqs) {
    uint32_t n = fp_archive_u32(c), at = 0;
    uint64_t symbol = 0;
    if (c->status || n > n_symbols) return -1;
    for (uint32_t i = 0; i < n; i++) {
        symbol += fp_archive_u32(c);
        uint32_t freq = fp_archive_u32(c);
        if (c->status || symbol >= n_symbols || !freq || freq > FP_TIME_M - at) return -1;
        symbols[i] = (uint32_t)symbol++;
        freqs[i] = freq;
        at += freq;
    }
    return n && at != FP_TIME_M ? -1 : (int)n;
}

static int read_step_table(const struct fp_archive_time_dec *d, struct fp_cursor *c, uint32_t table) {
    uint32_t *slots = d->slots[table], at = 0;
    uint32_t symbols[FP_TIME_SYMBOLS], freqs[FP_TIME_SYMBOLS];
    int n = read_table(c, FP_TIME_SYMBOLS, symbols, freqs);
    if (n < 0) return FP_E_MALFORMED;
    if (!n)
        for (uint32_t i = 0; i < FP_TIME_M; i++) slots[i] = (uint32_t)BAD << 22;
    d->heads[table] = (struct head){0};
    for (int u = 0; u < n; u++) {
        const uint32_t what = symbols[u] << 2 | fp_archive_time_class(symbols[u], d->limits), freq = freqs[u];
        const uint16_t calm_freq = what & 3 || symbols[u] >= FP_TIME_SMALL ? 0 : (uint16_t)freq;
        if (freq > HEAD) d->heads[table] = (struct head){(uint16_t)at, (uint16_t)freq, (uint16_t)what, calm_freq};
        for (uint32_t i = 0; i < freq; i++) slots[at++] = what << 20 | (freq - 1) << 10 | i;
    }
    return 0;
}

static int read_jitter_table(struct jitter_table *t, struct fp_cursor *c) {
    uint32_t symbols[4], freqs[4], at = 0;
    int n = read_table(c, 4, symbols, freqs);
    if (n < 0) return FP_E_MALFORMED;
    memset(t, 0, sizeof *t);
    for (int u = 0; u < n; u++) t->freq[symbols[u]] = (uint16_t)freqs[u];
    for (uint32_t s = 0; s < 4; s++) {
        t->start[s] = (uint16_t)at;
        at += t->freq[s];
    }
    return 0;
}

/* A list of keys with separate tables, numbered from `first` on. */
static int read_keys(struct fp_archive_time_dec *d, struct fp_cursor *c, int hashed, uint32_t first, uint32_t limit) {
    uint32_t n = fp_archive_u32(c), *given = d->given + (hashed ? d->n_given[0] : 0);
    uint16_t *table_of = hashed ? d->table_hashed : d->table_of;
    if (c->status || n > FP_TIME_TABLES / 2) return FP_E_MALFORMED;
    uint64_t key = 0;
    for (uint32_t i = 0; i < n; i++) {
        key += fp_archive_u32(c);
        if (c->status || key >= limit) return FP_E_MALFORMED;
        table_of[key] = (uint16_t)(first + i);
        given[i] = (uint32_t)key++;
        d->n_given[hashed] = i + 1;
    }
    return 0;
}

/* Resets the previous chunk, in time linear in the keys it used, not in all keys. */
static void reset(struct fp_archive_time_dec *d, uint32_t n_keys) {
    for (uint32_t i = 0; i < d->n_known; i++) d->context_of[d->known[i]] = 0;
    for (uint32_t i = 0; i < d->n_given[0]; i++) d->table_of[d->given[i]] = 0;
    for (uint32_t i = 0; i < d->n_given[1]; i++) d->table_hashed[d->given[d->n_given[0] + i]] = 0;
    d->n_known = d->n_given[0] = d->n_given[1] = 0;
    if (!d->table_hashed) d->table_hashed = fp_have(calloc(1 << FP_TIME_HASH_BITS, sizeof *d->table_hashed));
    const uint32_t n = n_keys + FP_TIME_POOLS;
    uint32_t cap = d->keys_cap, same = d->keys_cap;
    fp_array_zeroed(&d->context_of, &cap, n, sizeof *d->context_of);
    fp_array_zeroed(&d->table_of, &same, cap, sizeof *d->table_of);
    d->keys_cap = cap;
    d->n_keys = n_keys;
}

static void reserve(struct fp_archive_time_dec *d, uint32_t n_tables, size_t n_bytes) {
    uint32_t cap = d->tables_cap, same = d->tables_cap;
    fp_array_room(&d->slots, &cap, n_tables, sizeof *d->slots);
    fp_array_room(&d->heads, &same, cap, sizeof *d->heads);
    d->tables_cap = cap;
    fp_bytes_room(&d->bytes, &d->bytes_cap, n_bytes);
}

/* A context that uses one table for all histories. */
static struct context *add_context(struct fp_archive_time_dec *d, uint32_t table) {
    struct context *c = &FP_PUSH(d->contexts, d->n_contexts, d->contexts_cap);
    for (uint32_t h = 0; h < FP_TIME_HISTORIES; h++) c->table[h] = (uint16_t)table;
    return c;
}

int fp_archive_time_dec_open(struct fp_archive_time_dec *d, uint32_t n_keys, const uint8_t *const *p, const size_t *n) {
    if (n_keys > INT32_MAX) fp_escape();
    reset(d, n_keys);
    struct fp_cursor c = {.p = p[0], .end = p[0] + n[0]};
    d->first = (struct fp_archive_time_at){fp_cursor_number(&c), 1u << 31, 1, 0, 1};
    d->last = &d->first;
    d->q = fp_cursor_number(&c);
    uint8_t jitter = fp_archive_byte(&c);
    d->limits[0] = fp_cursor_number(&c);
    d->limits[1] = fp_cursor_number(&c);
    if (c.status || jitter > 1 || !d->q) return FP_E_MALFORMED;
    d->jitter = jitter;
    d->calm = 0;
    if (read_keys(d, &c, 0, FP_TIME_POOLS, n_keys) ||
        read_keys(d, &c, 1, FP_TIME_POOLS + d->n_given[0], 1 << FP_TIME_HASH_BITS))
        return FP_E_MALFORMED;
    const uint32_t n_tables = FP_TIME_POOLS + d->n_given[0] + d->n_given[1];
    reserve(d, n_tables, n[1] + n[2] + 2 * PAD);
    d->n_contexts = 0;
    for (uint32_t t = 0; t < n_tables; t++) add_context(d, t);
    for (uint32_t t = 0; t < FP_TIME_POOLS; t++)
        if (read_step_table(d, &c, t)) return FP_E_MALFORMED;
    for (uint32_t t = 0; t < FP_TIME_PHASES && jitter; t++)
        if (read_jitter_table(&d->jitters[t], &c)) return FP_E_MALFORMED;
    for (uint32_t t = FP_TIME_POOLS; t < n_tables; t++)
        if (read_step_table(d, &c, t)) return FP_E_MALFORMED;
    if (c.p != c.end || n[1] < 8) return FP_E_MALFORMED;

    memcpy(d->bytes, p[1], n[1]);
    memset(d->bytes + n[1], 0, PAD);
    if (n[2]) memcpy(d->bytes + n[1] + PAD, p[2], n[2]);
    memset(d->bytes + n[1] + PAD + n[2], 0, PAD);
    d->x[0] = fp_u32(d->bytes);
    d->x[1] = fp_u32(d->bytes + 4);
    d->word = d->bytes + 8;
    d->words_end = d->bytes + n[1];
    d->bits = d->words_end + PAD;
    d->bit = 0;
    d->bits_end = (uint64_t)n[2] * 8;
    return 0;
}

/* ---- rows ----------------------------------------------------------------- */

/* Finds the context of a key that is new in the chunk.  Returns 1 + its number. */
static uint32_t find_context(struct fp_archive_time_dec *d, uint32_t key) {
    fp_array_room(&d->known, &d->known_cap, (uint64_t)d->n_known + 1, sizeof *d->known);
    uint32_t table = d->table_of[key], context;
    if (!table) table = key < d->n_keys ? key % 4 : key - d->n_keys;
    context = table + 1;
    if (key < d->n_keys && d->n_given[1]) {
        struct context *own = NULL;
        for (uint32_t h = 0; h < FP_TIME_HISTORIES; h++) {
            uint16_t hashed = d->table_hashed[fp_archive_time_hash(key, h)];
            if (!hashed) continue;
            if (!own) own = add_context(d, table);
            own->table[h] = hashed;
        }
        if (own) context = d->n_contexts;
    }
    d->known[d->n_known++] = key;
    return d->context_of[key] = context;
}

/* Reads a word if x needs one.  With a branch, later rows need not wait for `word`, but most rows must need none. */
static inline uint32_t refill(uint32_t x, const uint8_t **word, int calm) {
    if (calm) {
        if (FP_LIKELY(x >= 1u << 16)) return x;
        const uint32_t next = fp_u16(*word);
        *word += 2;
        return x << 16 | next;
    }
    uint32_t more = x < 1u << 16;
    x = x << 16 * more | (fp_u16(*word) & (0 - more));
    *word += 2 * more;
    return x;
}

/* The next symbol of a step << 2 | its class. */
static inline uint32_t next_step(const struct fp_archive_time_dec *d, uint32_t table, uint32_t *x, const uint8_t **word,
                                 int calm) {
    const struct head *head = &d->heads[table];
    uint32_t place = *x % FP_TIME_M, in = place - head->start, freq = head->freq, what = head->what;
    if (in >= freq) {
        uint32_t slot = d->slots[table][place];
        freq = (slot >> 10 & 1023) + 1;
        in = slot & 1023;
        what = slot >> 20;
    }
    uint32_t next = freq * (*x >> FP_TIME_BITS) + in;
    *x = refill(next, word, calm);
    return what;
}

/* The next symbol of a jitter; `bad` when the table is empty. */
static inline uint32_t next_jitter(const struct jitter_table *t, uint32_t *x, const uint8_t **word, uint32_t *bad,
                                   int calm) {
    const uint32_t place = *x % FP_TIME_M, in = place - t->start[1];
    if (calm && FP_LIKELY(in < t->freq[1])) {
        *x = refill(t->freq[1] * (*x >> FP_TIME_BITS) + in, word, calm);
        return 1;
    }
    const uint32_t e = (place >= t->start[1]) + (place >= t->start[2]) + (place >= t->start[3]);
    uint32_t next = t->freq[e] * (*x >> FP_TIME_BITS) + place - t->start[e];
    *bad |= !t->freq[e];
    *x = refill(next, word, calm);
    return e;
}

/* The next n < 58 raw bits.  PAD makes sure that there are bytes to read. */
static inline uint64_t next_bits(const uint8_t *bits, uint64_t *bit, unsigned n) {
    uint64_t v = fp_u64(bits + (*bit >> 3)) >> (*bit & 7);
    *bit += n;
    return v & (((uint64_t)1 << n) - 1);
}

static uint64_t next_many_bits(const uint8_t *bits, uint64_t *bit, unsigned n) {
    uint64_t low = next_bits(bits, bit, 32);
    return low | next_bits(bits, bit, n - 32) << 32;
}

/* fp_archive_time_at.history in two parts: the class of the last step is known later than the rest. */
struct history {
    uint32_t all, older, last;
};

FP_INLINE void remember(struct history *h, uint32_t class) {
    h->all = h->older + class;
    h->older = h->last * 9 + class * 3;
    h->last = class;
}

/* The steps of a symbol that is not FP_TIME_ESCAPE. */
static inline uint64_t steps_of(const struct fp_archive_time_dec *d, uint32_t symbol, const uint8_t *bits,
                                uint64_t *bit) {
    const unsigned n = d->n_bits[symbol];
    return d->base[symbol] |
           (FP_LIKELY(symbol < FP_TIME_WIDE) ? next_bits(bits, bit, n) : next_many_bits(bits, bit, n));
}

/* Where the lattice is after a step of k and a miss, which led to `time`. */
static inline fp_u128 follow(fp_u128 there, uint64_t time, uint64_t k, uint64_t miss) {
    if (FP_LIKELY(fp_archive_time_follows(k, miss))) return there + (fp_u128)((fp_i128)(int64_t)miss * (1 << 28));
    return (fp_u128)time << 32 | 1u << 31;
}

/* Callers pass constants for `jitter` and `calm`, so the compiler generates four loops.  If calm, rows are predictable:
 * the usual symbols have branches of their own, so that a row need not wait for the tables of the row before. */
FP_INLINE int pull(struct fp_archive_time_dec *d, struct fp_archive_time_at *thread, const uint32_t *key,
                   uint64_t *time, uint32_t n, int jitter, int calm) {
    const struct fp_archive_time_at from = thread->epoch ? *thread : *d->last;
    const uint32_t *const context_of = d->context_of;
    const struct context *contexts = d->contexts;
    const uint8_t *word = d->word, *const words_end = d->words_end, *const bits = d->bits;
    const uint64_t bits_end = d->bits_end, q = d->q;
    uint64_t bit = d->bit;
    uint32_t steps = d->x[0], jitters = d->x[1], last_jitter = from.jitter, bad = 0;
    struct history history = {from.history, from.history % 9 * 3, from.history % 3};
    fp_u128 there = (fp_u128)from.ref << 32 | from.frac;
    for (uint32_t i = 0; i < n; i++) {
        if (FP_UNLIKELY(word > words_end || bit > bits_end)) break;
        uint32_t context = context_of[key[i]];
        if (FP_UNLIKELY(!context)) {
            context = find_context(d, key[i]);
            contexts = d->contexts;
        }
        const uint32_t table = contexts[context - 1].table[history.all];
        const struct head *head = d->heads + table;
        const uint32_t in = steps % FP_TIME_M - head->start;
        uint64_t k;
        if (calm && FP_LIKELY(in < head->calm_freq)) {
            steps = refill(head->calm_freq * (steps >> FP_TIME_BITS) + in, &word, calm);
            remember(&history, 0);
            k = head->what >> 2;
        } else {
            const uint32_t what = next_step(d, table, &steps, &word, calm), symbol = what >> 2;
            remember(&history, what & 3);
            if (FP_UNLIKELY(symbol >= FP_TIME_ESCAPE)) {
                bad |= symbol != FP_TIME_ESCAPE;
                time[i] = (uint64_t)(there >> 32) + next_many_bits(bits, &bit, 64);
                there = (fp_u128)time[i] << 32 | 1u << 31;
                continue;
            }
            k = steps_of(d, symbol, bits, &bit);
        }
        there += (fp_u128)k * q;
        time[i] = (uint64_t)(there >> 32);
        if (!jitter) continue;
        const struct jitter_table *of = &d->jitters[last_jitter * 16 + ((uint32_t)there >> 28)];
        const uint32_t e = next_jitter(of, &jitters, &word, &bad, calm);
        if (calm && FP_LIKELY(e == 1 && k <= 4096)) { /* the lattice continues */
            last_jitter = 1;
            continue;
        }
        const uint64_t miss = FP_UNLIKELY(e == 3) ? next_many_bits(bits, &bit, 64) : (uint64_t)e - 1;
        last_jitter = e < 3 ? e : 1;
        there = follow(there, time[i] += miss, k, miss);
    }
    if (bad || word > words_end || bit > bits_end) return FP_E_MALFORMED;
    d->calm = (uint64_t)(word - d->word) * 4 < n;
    d->x[0] = steps;
    d->x[1] = jitters;
    d->word = word;
    d->bit = bit;
    *thread = (struct fp_archive_time_at){(uint64_t)(there >> 32), (uint32_t)there, 1, history.all, last_jitter};
    d->last = thread;
    return 0;
}

int fp_archive_time_pull(struct fp_archive_time_dec *d, struct fp_archive_time_at *thread, const uint32_t *key,
                         uint64_t *time, uint32_t n) {
    if (d->calm) return d->jitter ? pull(d, thread, key, time, n, 1, 1) : pull(d, thread, key, time, n, 0, 1);
    return d->jitter ? pull(d, thread, key, time, n, 1, 0) : pull(d, thread, key, time, n, 0, 0);
}
