/* core/fp.h - status codes, errors as values, the input window, bounded loads.
 *
 * The C code does not include Python.h, does no I/O, never prints, and has no mutable globals
 * but one, the innermost guard of a thread (guard.h).  Python sees the text
 * after the cffi mark of a header, so that text is plain C that needs no preprocessor.
 */
#pragma once

#include <stddef.h> /* every file uses some of these */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define FP_LIKELY(x) __builtin_expect(!!(x), 1)
#define FP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FP_INLINE static inline __attribute__((always_inline))
#else
#define FP_LIKELY(x) (x)
#define FP_UNLIKELY(x) (x)
#define FP_INLINE static inline
#endif

/* cffi-begin */

/* The result of a feed, put or pull.  Negative: an error, described in the caller's fp_err. */
enum fp_status {
    FP_DONE = 0,         /* complete, nothing pending */
    FP_MORE = 1,         /* refill the input window and call again */
    FP_FULL = 2,         /* drain the batch and call again */
    FP_NEEDS = 3,        /* the decoder needs a name; see the header of that format */
    FP_E_MALFORMED = -1, /* recognized as this format, but damaged */
    FP_E_TRUNCATED = -2, /* the input ends inside a record */
    FP_E_OVERFLOW = -3,  /* a number does not fit */
    FP_E_NOMEM = -4,     /* allocation failed */
    FP_E_VERSION = -5    /* well-formed, but of an unknown version */
};

/* How to show `got` of an fp_err. */
enum fp_got {
    FP_GOT_NOTHING = 0,
    FP_GOT_SIGNED = 1,
    FP_GOT_UNSIGNED = 2,
    FP_GOT_HEX = 3,
    FP_GOT_TEXT = 4,
    FP_GOT_COLUMN = 5 /* the number of a value column; shown as the name of its value type */
};

/* An error as a value: no formatting, no allocation.  Caller-owned, always the last argument, written only when a
 * negative status is returned.  Python prints it as "at byte OFFSET: WHAT is GOT, expected WANT", or, for a sum in a
 * bridge, as "WHAT in value type GOT exceeds WANT". */
struct fp_err {
    int32_t code;     /* enum fp_status */
    int32_t got_kind; /* enum fp_got */
    uint64_t offset;  /* absolute, in the decompressed input */
    uint64_t line;    /* 1-based, text formats only; else 0 */
    const char *what; /* constant string */
    const char *want; /* constant string or NULL; `limit` replaces a '%' in it */
    uint64_t got;     /* a number, by got_kind */
    uint64_t limit;
    uint32_t text_n; /* FP_GOT_TEXT: bytes used of `text` */
    char text[84];
};

/* A window on the input.  A decoder only advances `pos`, past whole records; base + pos is the absolute offset.  A
 * refill moves the unconsumed bytes, [pos, n), to the front and appends more. */
struct fp_window {
    const uint8_t *p;
    size_t n;
    size_t pos;
    uint64_t base; /* absolute offset of p[0] */
    int32_t eof;   /* no more bytes follow p[n-1] */
};

/* cffi-end */

/* Fills `err` and returns `code`, so that a decoder can `return fp_fail(...)`. */
static inline int fp_fail(struct fp_err *err, int code, uint64_t offset, const char *what) {
    err->code = code;
    err->got_kind = FP_GOT_NOTHING;
    err->offset = offset;
    err->line = 0;
    err->what = what;
    err->want = NULL;
    err->got = 0;
    err->limit = 0;
    err->text_n = 0;
    return code;
}

/* Returns from the function around it what a call returns, unless that is 0. */
#define FP_TRY(call)                   \
    do {                               \
        const int fp_tried = (call);   \
        if (fp_tried) return fp_tried; \
    } while (0)

/* An allocation failed. */
static inline int fp_no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "memory");
}

/* fp_fail with the value found (`got`, shown by `kind`) and the value expected. */
static inline int fp_fail_got(struct fp_err *err, int code, uint64_t offset, const char *what, int kind, uint64_t got,
                              const char *want, uint64_t limit) {
    fp_fail(err, code, offset, what);
    err->got_kind = kind;
    err->got = got;
    err->want = want;
    err->limit = limit;
    return code;
}

/* The id `what` is not in its table of `n` rows. */
static inline int fp_unknown_id(struct fp_err *err, const char *what, uint32_t id, uint32_t n) {
    return fp_fail_got(err, FP_E_MALFORMED, 0, what, FP_GOT_UNSIGNED, id, "less than %", n);
}

/* A sum does not fit: `what` in value column `column` (or FP_NO_COLUMN) is beyond `limit`. */
enum { FP_NO_COLUMN = -1 };
static inline int fp_fail_beyond(struct fp_err *err, const char *what, int64_t column, const char *limit) {
    const int kind = column == FP_NO_COLUMN ? FP_GOT_NOTHING : FP_GOT_COLUMN;
    return fp_fail_got(err, FP_E_OVERFLOW, 0, what, kind, (uint64_t)column, limit, 0);
}

/* fp_fail with the line and the text found there. */
static inline int fp_fail_text(struct fp_err *err, int code, uint64_t offset, uint64_t line, const char *what,
                               const void *text, size_t n, const char *want) {
    fp_fail(err, code, offset, what);
    err->line = line;
    err->got_kind = FP_GOT_TEXT;
    err->want = want;
    err->text_n = (uint32_t)(n < sizeof err->text ? n : sizeof err->text);
    if (n) memcpy(err->text, text, err->text_n); /* text may be NULL if n is 0 */
    return code;
}

/* Frees what each of the pointers refers to, which is from malloc or realloc.  NULL does nothing. */
#define FP_FREE(...) fp_free_each((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void fp_free_each(void *const *p, size_t n);

/* A loop over pointers to the type: *at is each of them. */
#define FP_EACH(type, ...) for (type * each[] = {__VA_ARGS__, NULL}, **at = each; *at; at++)

/* Unaligned loads.  Unlike a cast, memcpy is correct at any address; it compiles to one instruction. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files and packed records are read as the machine stores numbers");

static inline uint16_t fp_u16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}
static inline uint32_t fp_u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t fp_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
/* The same from a file whose byte order may differ from the machine's. */
static inline uint16_t fp_u16s(const uint8_t *p, int swap) {
    return swap ? __builtin_bswap16(fp_u16(p)) : fp_u16(p);
}
static inline uint32_t fp_u32s(const uint8_t *p, int swap) {
    return swap ? __builtin_bswap32(fp_u32(p)) : fp_u32(p);
}
static inline uint64_t fp_u64s(const uint8_t *p, int swap) {
    return swap ? __builtin_bswap64(fp_u64(p)) : fp_u64(p);
}

/* Declares a field of a struct as a count of the log:
 *
 *   uint64_t FP_COUNT(blank, "blank-lines", repairs, "blank line(s)");
 *   uint64_t FP_COUNT(late, "late-lines", repairs, "line(s) that (is|are) late");
 *   uint64_t FP_COUNT(bad_end, "unreadable-rest");
 *
 * with its code, where it appears in a log, and its name for one and for several; with the code alone if another struct
 * of the format or fastprof/core/reported.py has the names.  The build takes them from here. */
#define FP_COUNT(field, ...) field
