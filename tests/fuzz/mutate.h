/* Shared by the mutators of fuzz targets.  libFuzzer's own changes arbitrary bytes, which rarely results in an input
 * that is read to its end; these change whole records, fields or lines of an input. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/wire.h"

/* libFuzzer's: the new length of data[0, n), which may grow to `max` bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
/* If a target has one, libFuzzer calls it instead of its own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

struct input {
    uint8_t *p;
    size_t n, max;
    uint64_t random; /* state; not 0 */
    int big;         /* its numbers are big-endian */
};

static inline struct input input_of(uint8_t *data, size_t n, size_t max, unsigned seed) {
    return (struct input){data, n, max, (seed | (uint64_t)1 << 32) * 0x9e3779b97f4a7c15u, 0};
}

/* A random number below n, which is not 0. */
static inline uint32_t below(struct input *in, size_t n) {
    in->random ^= in->random << 13;
    in->random ^= in->random >> 7;
    in->random ^= in->random << 17;
    return (uint32_t)((in->random >> 16) % n);
}

/* Mostly below n, and sometimes any number. */
static inline uint64_t mostly_below(struct input *in, uint32_t n) {
    return below(in, 16) ? below(in, n) : in->random >> below(in, 64);
}

/* ---- numbers of a fixed length, in the input's byte order ---- */

/* Returns the byte after it. */
static inline uint8_t *put(const struct input *in, uint8_t *p, uint64_t v, uint32_t nbytes) {
    for (uint32_t i = 0; i < nbytes; i++) p[in->big ? nbytes - 1 - i : i] = (uint8_t)(v >> 8 * i);
    return p + nbytes;
}

static inline uint64_t get(const struct input *in, const uint8_t *p, uint32_t nbytes) {
    uint64_t v = 0;
    for (uint32_t i = 0; i < nbytes; i++) v = v << 8 | p[in->big ? i : nbytes - 1 - i];
    return v;
}

/* Changes a number to a small one, any, or one near the old. */
static inline uint64_t other_number(struct input *in, uint64_t v) {
    return below(in, 2) ? mostly_below(in, 1 + below(in, 1000)) : v + below(in, 9) - 4;
}

/* Changes one of a table of `n` numbers of nbytes, or copies another one to it. */
static inline void change_number(struct input *in, size_t at, size_t n, uint32_t nbytes) {
    if (!n) return;
    uint8_t *to = in->p + at + nbytes * below(in, n);
    const uint8_t *from = in->p + at + nbytes * below(in, n);
    put(in, to, below(in, 4) ? other_number(in, get(in, to, nbytes)) : get(in, from, nbytes), nbytes);
}

/* ---- changes of length ---- */

/* Replaces the `had` bytes at `at` by the n of `bytes`, zeros if that is NULL.  0 if there is no room. */
static inline int replace(struct input *in, size_t at, size_t had, const void *bytes, size_t n) {
    if (n > had && n - had > in->max - in->n) return 0;
    memmove(in->p + at + n, in->p + at + had, in->n - at - had);
    if (bytes && n) memcpy(in->p + at, bytes, n);
    if (!bytes) memset(in->p + at, 0, n);
    in->n = in->n - had + n;
    return 1;
}

/* libFuzzer's own mutation of the n bytes at `at`, which may become up to `more` longer. */
static inline void change_bytes(struct input *in, size_t at, size_t n, size_t more) {
    uint8_t bytes[512];
    if (more > sizeof bytes / 2) more = sizeof bytes / 2;
    if (n > sizeof bytes - more) n = sizeof bytes - more;
    if (!n && !more) return;
    memcpy(bytes, in->p + at, n);
    replace(in, at, n, bytes, LLVMFuzzerMutate(bytes, n, n + more));
}

/* ---- pieces ---- */

enum { MOST_PIECES = 1024, MOST_MOVED = 1024 };

/* The pieces of an input: piece i is [at[i], at[i + 1]). */
struct pieces {
    uint32_t n;
    size_t at[MOST_PIECES + 1];
};

static inline void begin_pieces(struct pieces *q, size_t at) {
    q->n = 0;
    q->at[0] = at;
}

/* Adds a piece of nbytes; `left` bytes are available.  0 when it does not fit, or there are too many pieces. */
static inline int add_piece(struct pieces *q, uint64_t nbytes, size_t left) {
    if (!nbytes || nbytes > left || q->n == MOST_PIECES) return 0;
    q->at[q->n + 1] = q->at[q->n] + (size_t)nbytes;
    q->n++;
    return 1;
}

/* The start of a piece, or the end of the last one. */
static inline size_t between_pieces(struct input *in, const struct pieces *q) {
    return q->at[below(in, (size_t)q->n + 1)];
}

/* Duplicates, moves, removes, replaces or changes one or a few pieces. */
static inline void change_pieces(struct input *in, const struct pieces *q) {
    uint8_t bytes[MOST_MOVED];
    if (!q->n) return;
    const uint32_t i = below(in, q->n), to = below(in, (size_t)q->n + 1), most = 1 + below(in, 4);
    const size_t from = q->at[i], run = q->at[q->n - i < most ? q->n : i + most] - from, where = q->at[to];
    const uint32_t how = below(in, 6);
    if (how == 0) {
        replace(in, from, run, NULL, 0);
    } else if (how == 1 || run > sizeof bytes) {
        change_bytes(in, from, run, 0);
    } else {
        memcpy(bytes, in->p + from, run);
        const size_t had = how == 2 && to < q->n ? q->at[to + 1] - where : 0;
        if (replace(in, where, had, bytes, run) && how == 3 && (to <= i || where >= from + run))
            replace(in, from + (to <= i ? run : 0), run, NULL, 0);
    }
}

/* Each line of the input from `at` on is a piece, with its end. */
static inline void find_lines(const struct input *in, size_t at, struct pieces *q) {
    begin_pieces(q, at);
    for (size_t left; (left = in->n - q->at[q->n]) != 0;) {
        const uint8_t *p = in->p + q->at[q->n], *end = memchr(p, '\n', left);
        if (!add_piece(q, end ? (size_t)(end - p) + 1 : left, left)) break;
    }
}

/* [at, end) is a list of varints: changes one, or some as pieces. */
static inline void change_varints(struct input *in, size_t at, size_t end) {
    struct pieces q;
    uint64_t v;
    begin_pieces(&q, at);
    for (int n = 1; n > 0;) {
        const uint8_t *p = in->p + q.at[q.n];
        n = fp_wire_read_varint(p, in->p + end, &v);
        if (n > 0 && !add_piece(&q, (uint64_t)n, (size_t)n)) break;
    }
    if (q.n && below(in, 2)) {
        uint8_t number[10];
        const uint32_t i = below(in, q.n);
        fp_wire_read_varint(in->p + q.at[i], in->p + end, &v);
        const uint8_t *behind = fp_varint(number, other_number(in, v));
        replace(in, q.at[i], q.at[i + 1] - q.at[i], number, (size_t)(behind - number));
    } else {
        change_pieces(in, &q);
    }
}

/* ---- JSON ---- */

/* An element of an array or a member of an object, without the comma: [start, end), its value from `value` on. */
struct element {
    size_t start, value, end;
};

/* Finds the complete ones, of arrays and objects at most 32 deep; returns their number. */
static inline uint32_t find_elements(const struct input *in, struct element *found, uint32_t most) {
    struct element open[32];
    uint32_t n = 0, depth = 0;
    for (size_t i = 0; i < in->n && n < most; i++) {
        const uint8_t c = in->p[i];
        if (c == '"') {
            while (++i < in->n && in->p[i] != '"') i += in->p[i] == '\\';
        } else if (c == '[' || c == '{') {
            if (depth == 32) break;
            open[depth++] = (struct element){i + 1, i + 1, 0};
        } else if (c == ':' && depth && open[depth - 1].value == open[depth - 1].start) {
            open[depth - 1].value = i + 1;
        } else if ((c == ',' || c == ']' || c == '}') && depth) {
            struct element *e = &open[depth - 1];
            e->end = i;
            if (e->end > e->value) found[n++] = *e;
            *e = (struct element){i + 1, i + 1, 0};
            depth -= c != ',';
        }
    }
    return n;
}

/* Duplicates or removes an element, or replaces its value by another's, an odd one, or changed bytes. */
static inline void change_json(struct input *in) {
    static const char *const odd[] = {
        "0",    "-1",    "1e3", "0.5",  "123.4567", "9007199254740993", "18446744073709551616",
        "true", "false", "[]",  "null", "1e-9",     "-9.3e18",          "\"\\u00e9\\n\"",
        "{}",   "\"\""};
    struct element elements[256];
    uint8_t bytes[MOST_MOVED];
    const uint32_t n = find_elements(in, elements, 256), how = below(in, 8);
    if (!n) {
        change_bytes(in, 0, in->n, 8);
        return;
    }
    const struct element *e = &elements[below(in, n)], *other = &elements[below(in, n)];
    const size_t whole = e->end - e->start, value = e->end - e->value;
    if (how < 2 && whole < sizeof bytes) {
        memcpy(bytes, in->p + e->start, whole);
        bytes[whole] = ',';
        replace(in, other->start, 0, bytes, whole + 1);
    } else if (how == 2) {
        const int comma = e->end < in->n && in->p[e->end] == ',';
        replace(in, e->start, whole + (size_t)comma, NULL, 0);
    } else if (how < 5 && value <= sizeof bytes) {
        memcpy(bytes, in->p + e->value, value);
        replace(in, other->value, other->end - other->value, bytes, value);
    } else if (how == 5) {
        change_bytes(in, e->value, value, 8);
    } else {
        const char *text = odd[below(in, sizeof odd / sizeof *odd)];
        replace(in, e->value, value, text, strlen(text));
    }
}
