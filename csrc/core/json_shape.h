/* core/json_shape.h - reads JSON whose shape is a table.  C only.
 *
 *   {"head": {"size": 5, "children": [{"size": 7, "note": "skipped"}]}}
 *
 *   enum { TOP = 1, NODE, CHILDREN }; // kinds of objects and arrays
 *   enum { SIZE = 1 };                // codes of values
 *   static const struct fp_json_row rows[] = {
 *       FP_JSON_EACH(0, .object = TOP), // the whole text
 *       FP_JSON_KEY(TOP, "head", .object = NODE),
 *       FP_JSON_KEY(NODE, "size", .value = SIZE),
 *       FP_JSON_KEY(NODE, "children", .array = CHILDREN),
 *       FP_JSON_EACH(CHILDREN, .object = NODE),
 *   };
 *
 * A row states what a key, or each element, of a kind of container leads to.  Rows are ordered by kind, and a kind is
 * one of objects or one of arrays.  What no row names is skipped; a kind without rows of its own is announced, then
 * skipped.
 */
#pragma once

#include "core/json_lex.h"
#include "core/model.h"

enum { FP_JSON_KINDS = 64 };

struct fp_json_row {
    uint8_t in;            /* kind of the container; 0: the text */
    uint8_t n;             /* bytes of the key */
    uint8_t object, array; /* kind of an object or array there; 0: it is skipped */
    uint8_t value;         /* code of a string, number or word there, below 256; 0: it is skipped */
    uint8_t many;          /* `elements` reads plain elements of this array */
    const char *key;       /* NULL: any other */
};

#define FP_JSON_KEY(kind, text, ...) {.in = kind, .n = sizeof text - 1, .key = text, __VA_ARGS__}
#define FP_JSON_EACH(kind, ...) {.in = kind, __VA_ARGS__}
#define FP_JSON_EITHER(code) .object = code, .array = code, .value = code
#define FP_JSON_ROWS(table) .rows = table, .n = sizeof table / sizeof *table

/* What a format does at each place.  The token is in the walk's `json`.  A result other than 0 ends the walk, which the
 * next call continues at the same token. */
struct fp_json_shape {
    const struct fp_json_row *rows;
    uint32_t n;
    /* An object or array begins.  May read all of it and call fp_json_whole; or set w->pass to skip it. */
    int (*begin)(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err);
    int (*end)(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err);
    int (*value)(void *to, uint32_t code, struct fp_window *in, struct fp_err *err);
    int (*key)(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err); /* may be NULL */
    /* Reads plain elements, as fp_json_numbers does; needed if a row has `many`. */
    int (*elements)(void *to, uint32_t code, struct fp_window *in, struct fp_err *err);
};

struct fp_json_walk {
    struct fp_json json;
    int32_t lenient;               /* set by the caller: at damaged text, end as if it ended there */
    int32_t bad_end;               /* it did */
    int32_t over;                  /* the text has ended; the caller may set it */
    int32_t pass;                  /* see `begin` */
    int32_t is_damaged;            /* the last error is one of the text */
    int32_t unescape;              /* set by the caller: whether escapes in keys are decoded */
    const struct fp_json_row *row; /* of the last key, or of elements */
    struct fp_buf scratch;
    /* private from here on */
    const struct fp_json_shape *shape;
    uint32_t skipped;                 /* levels */
    uint8_t first[FP_JSON_KINDS + 1]; /* by kind: its first row */
    uint8_t next[256];                /* by row: that of the key that mostly follows */
    struct fp_json_level {
        uint8_t kind, row; /* row: of the last key */
    } levels[FP_JSON_DEPTH + 1];
};

/* Begins a text.  Keeps the fields that the caller sets. */
void fp_json_begin(struct fp_json_walk *w, const struct fp_json_shape *shape);

void fp_json_free(struct fp_json_walk *w);

/* Reads the text and calls the functions of its shape with `to`.  FP_DONE at its end, FP_MORE, an error, or what one
 * of these functions returned.  An error where the text is of no kind. */
int fp_json_walk(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err);

/* For a format with another end: the same, but returns FP_DONE before the token FP_JSON_END, and the error of damaged
 * text, if lenient, too. */
int fp_json_run(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err);

/* The steps of it: reads the next token, as fp_json_next; calls the function for that token, and takes it. */
int fp_json_peek(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err);
int fp_json_token(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err);

/* The kind of the open object or array at a level from 1 on; 0 if it is skipped. */
static inline uint32_t fp_json_kind(const struct fp_json_walk *w, uint32_t level) {
    return level + w->skipped <= w->json.depth ? w->levels[level].kind : 0;
}

/* The kind of the innermost open object or array; at its beginning, of the one that contains it. */
static inline uint32_t fp_json_within(const struct fp_json_walk *w) {
    return w->levels[w->json.depth].kind;
}

/* At the end of an object or array: the kind of the one that contains it. */
static inline uint32_t fp_json_outside(const struct fp_json_walk *w) {
    return w->levels[w->json.depth - 1].kind;
}

/* The string or key, as a string of `strings`. */
uint32_t fp_json_intern(struct fp_json_walk *w, struct fp_strings *strings);

/* Whether the token is a number of 64 bits; *number becomes it, rounded. */
static inline int fp_json_is_integer(const struct fp_json_walk *w, int64_t *number) {
    return w->json.token == FP_JSON_NUMBER && !fp_json_number(w->json.text, w->json.text_n, 0, number, NULL);
}
