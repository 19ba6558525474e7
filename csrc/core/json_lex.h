/* core/json_lex.h - splits a stream of JSON text into tokens, checked against RFC 8259.
 *
 *   {"a": [1, "x\n"]}     {     KEY a     [     NUMBER 1     STRING x\n     ]     }     END
 *
 * A token is contiguous in the window, which grows for long strings.  fp_json_next returns the next token without
 * consuming it, fp_json_take consumes it; a token that cannot be handled yet is simply returned again.
 *
 * Accepts more than the RFC: control characters in strings, bytes that are not UTF-8, and a comma after the last
 * element.  Half a surrogate pair becomes U+FFFD.
 *
 * With `loose` set, accepts what printf writes for doubles and file names: a bare word (nan, -inf, 1.#INF) is a
 * FP_JSON_WORD, a backslash before any other character is literal, and the text ends after its first value, whatever
 * follows.  `odd_words`, `odd_escapes` and `rest` count these.
 */
#pragma once

#include "core/buf.h"

/* cffi-begin */

enum { FP_JSON_DEPTH = 8192 }; /* maximum depth of objects and arrays */

enum fp_json_token {
    FP_JSON_OBJECT = 1,
    FP_JSON_OBJECT_END = 2,
    FP_JSON_ARRAY = 3,
    FP_JSON_ARRAY_END = 4,
    FP_JSON_KEY = 5,
    FP_JSON_STRING = 6,
    FP_JSON_NUMBER = 7,
    FP_JSON_WORD = 8, /* true, false, null; if loose, any word */
    FP_JSON_END = 9   /* the value is complete and only blanks follow; if loose, anything */
};

struct fp_json {
    int32_t token;       /* enum fp_json_token */
    int32_t escaped;     /* of a string or key: there are backslashes in it */
    const uint8_t *text; /* of a string or key without quotes, a number or a word; valid until the window is refilled */
    size_t text_n;
    uint32_t depth;                  /* open levels: including that of an end token, excluding that of a beginning */
    int32_t loose;                   /* set by the caller */
    int32_t rest;                    /* at the end: 1 NULs follow the value, 2 something else does */
    uint64_t odd_words, odd_escapes; /* tokens that only `loose` accepts; counted when consumed */
    /* private from here on */
    size_t end;  /* of the token in the window */
    int32_t odd; /* the token is such a word (1) or has such escapes (2) */
    uint8_t expects, kinds[256];
    uint8_t deep[992]; /* bits of levels below `kinds`: is it an object? */
};

/* cffi-end */

/* The next token.  FP_DONE, FP_MORE, FP_E_MALFORMED; FP_E_TRUNCATED: the text ends before the value does. */
int fp_json_next(struct fp_json *j, struct fp_window *in, struct fp_err *err);

/* Moves the window past the token. */
void fp_json_take(struct fp_json *j, struct fp_window *in);

/* The token begins an object or array that the caller has read without the lexer, up to `end` in the window:
 * fp_json_take will move past all of it. */
static inline void fp_json_whole(struct fp_json *j, size_t end) {
    j->token = FP_JSON_WORD;
    j->end = end;
}

/* After FP_JSON_END with text left (`rest` is 2): another value begins there. */
static inline void fp_json_again(struct fp_json *j) {
    j->expects = 0;
    j->rest = 0;
}

/* The fast path for small values: reads the value at p, whatever may come there.  Sets `token`, `text`, `text_n` and
 * `escaped`; of an object or array, `text` is all of it.  Returns its end; NULL if it has more than 64 levels, is not
 * complete before `end`, or is not plain: then fp_json_next must read it. */
const uint8_t *fp_json_value(struct fp_json *j, const uint8_t *p, const uint8_t *end);

/* p after blanks. */
const uint8_t *fp_json_blanks(const uint8_t *p, const uint8_t *end);
static inline const uint8_t *fp_json_after_blanks(const uint8_t *p, const uint8_t *end) {
    if (FP_LIKELY(p < end && *p > ' ')) return p;
    return FP_LIKELY(end - p > 1 && *p == ' ' && p[1] > ' ') ? p + 1 : fp_json_blanks(p, end);
}

/* In an array: may an element or the end follow here? */
int fp_json_between(const struct fp_json *j);

/* The fast path for arrays of numbers: stores elements that are numbers (see fp_json_number) or null (`none`), up to
 * `room` of them, and moves past each and its comma.  `exact`: stops at a number that rounding would change.  Returns
 * how many; 0 also where fp_json_next must read what comes next, as the last element. */
size_t fp_json_numbers(struct fp_json *j, struct fp_window *in, int scale, int exact, int64_t none, int64_t *to,
                       size_t room);

/* Moves past elements of an array that are scalars, without looking at them.  Returns how many. */
size_t fp_json_skip(struct fp_json *j, struct fp_window *in);

/* Decodes the escapes of a string or key into `scratch`.  0 or FP_E_NOMEM. */
int fp_json_unescape(struct fp_json *j, struct fp_buf *scratch);

/* Strips blanks from both ends of p[0..*n).  Returns the new start. */
const uint8_t *fp_json_trim(const uint8_t *p, size_t *n);

/* The text of a string or key, in `scratch` if it has escapes.  NULL when memory ran out. */
const uint8_t *fp_json_plain(const struct fp_json *j, struct fp_buf *scratch, size_t *n);

/* Does the string or key equal this text? */
int fp_json_is(const struct fp_json *j, const char *text);

/* A number of the form -12.5e3 times 10^scale, rounded to a whole one, half away from 0; *rounded (may be NULL) becomes
 * 1 if rounding changed it, else 0.  0; FP_E_MALFORMED: not such a number; FP_E_OVERFLOW: beyond 64 bits. */
int fp_json_number(const uint8_t *p, size_t n, int scale, int64_t *value, int *rounded);

/* The fast path for a number of at most 18 digits without an exponent, whose value is as above.  Returns the end of the
 * number, which the caller must check; NULL if it is not such a number. */
const uint8_t *fp_json_short_number(const uint8_t *p, const uint8_t *end, int scale, int64_t *value);
