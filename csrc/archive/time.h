/* archive/time.h - encodes the times of a timeline chunk.  Private to the archive's C files.
 *
 * A clock advances in steps, such as 10 ticks.  A range coder stores each time as the number of steps since the
 * thread's last time, with frequencies that depend on the row's context.  The lattice is the set of times reached by
 * whole steps; jitter is a time's distance from it.  docs/formats/archive.md, "Times", specifies the bytes. */
#pragma once

#include "archive/io.h"

enum {
    FP_TIME_POOLS = 8,      /* tables shared by the keys without a separate table */
    FP_TIME_PHASES = 48,    /* contexts of the jitter symbol: 16 phases x the last jitter */
    FP_TIME_HISTORIES = 27, /* contexts of a step: was each of the thread's last three short, medium or long? */
    FP_TIME_HASH_BITS = 18, /* key and history are hashed to this many bits */
    FP_TIME_BITS = 10,      /* frequencies of a table add up to 1 << 10 */
    FP_TIME_M = 1 << FP_TIME_BITS,
    FP_TIME_TABLES = 1000, /* maximum number of tables of keys in a chunk */
    FP_TIME_SMALL = 32,    /* a symbol below this is the step count itself */
    FP_TIME_WIDE = 480,    /* a symbol from here on has more raw bits than one load gives */
    FP_TIME_ESCAPE = 504,  /* symbol: the time went back; 64 raw bits follow */
    FP_TIME_SYMBOLS = 505
};
__extension__ typedef unsigned __int128 fp_u128;
__extension__ typedef __int128 fp_i128;

/* The state of a thread: its last time, as a place on the lattice, and its last steps. */
struct fp_archive_time_at {
    uint64_t ref;     /* whole part; without jitter it is the time */
    uint32_t frac;    /* in 2^-32 */
    uint32_t epoch;   /* 0: the thread has no row in this chunk yet */
    uint32_t history; /* of steps: ((third * 3) + second) * 3 + last */
    uint32_t jitter;  /* last jitter symbol, 0 to 2 */
};

static inline unsigned fp_archive_time_bits(uint32_t symbol) {
    return symbol < FP_TIME_SMALL ? 0 : (symbol - FP_TIME_SMALL) / 8 + 2;
}

static inline uint64_t fp_archive_time_base(uint32_t symbol) {
    if (symbol < FP_TIME_SMALL) return symbol;
    return (uint64_t)(8 + (symbol - FP_TIME_SMALL) % 8) << ((symbol - FP_TIME_SMALL) / 8 + 2);
}

/* Is a step short (0), medium (1) or long (2) compared with others of its chunk? */
static inline uint32_t fp_archive_time_class(uint32_t symbol, const uint64_t *limits) {
    return (symbol > limits[0]) + (symbol > limits[1]);
}

/* Does the lattice continue after a step of k, whose time it missed by `miss` ticks?
 * A miss by one moves the lattice by a sixteenth of a tick.  After a long pause or a larger miss the lattice restarts
 * at the time itself. */
static inline int fp_archive_time_follows(uint64_t k, uint64_t miss) {
    return miss + 1 <= 2 && k <= 4096;
}

/* The hash of a key and the history of its thread. */
static inline uint32_t fp_archive_time_hash(uint32_t key, uint32_t history) {
    return (key * FP_TIME_HISTORIES + history) * 2654435761u >> (32 - FP_TIME_HASH_BITS);
}

#define FP_TIME_NO_FUNCTION 0xfffffff0u /* + pool: the key of a row without a function */

struct fp_archive_time_enc;
struct fp_archive_time_enc *fp_archive_time_enc_new(void);
void fp_archive_time_enc_free(struct fp_archive_time_enc *w);

/* Row i is of thread[i] < n_threads.  key[i] is its context: either below n_keys, which uses the key's own tables if it
 * gets any and pool key % 4 otherwise, or FP_TIME_NO_FUNCTION + the pool to use. */
struct fp_archive_times {
    const uint64_t *time;
    const uint32_t *key, *thread;
    uint32_t n, n_keys, n_threads;
};

/* Encodes times into three streams. */
void fp_archive_time_encode(struct fp_archive_time_enc *w, const struct fp_archive_times *rows, struct fp_buf *tables,
                            struct fp_buf *words, struct fp_buf *bits);

struct fp_archive_time_dec;
struct fp_archive_time_dec *fp_archive_time_dec_new(void);
void fp_archive_time_dec_free(struct fp_archive_time_dec *d);
/* Begins a chunk.  Its streams (tables, words, bits) are the n[i] bytes at p[i]; they are copied.  0 or FP_E_MALFORMED.
 */
int fp_archive_time_dec_open(struct fp_archive_time_dec *d, uint32_t n_keys, const uint8_t *const *p, const size_t *n);
/* Decodes the times of the next n rows, all of the thread whose state is `at`.
 * key[i] is as above, but n_keys + pool for a row without a function.
 * 0 or FP_E_MALFORMED. */
int fp_archive_time_pull(struct fp_archive_time_dec *d, struct fp_archive_time_at *at, const uint32_t *key,
                         uint64_t *time, uint32_t n);
