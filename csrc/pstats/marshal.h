/* pstats/marshal.h - the values of Python's marshal that profiles consist of.
 *
 * A value begins with a byte for its type; bit 7 of it gives the value the next number, so that later ones may refer
 * to it.  A container gets its number before its items.  Numbers are little-endian.
 *
 *   i               4 bytes: an int
 *   I               8 bytes: an int (Python 2)
 *   l               4 bytes: the number of digits, negative for a negative int; digits of 15 bits, 2 bytes each
 *   g               8 bytes: a float
 *   f               1 byte: a length, and a float as text (version 1)
 *   N T F           None, True, False
 *   z Z             1 byte: a length, and ASCII
 *   a A u t s       4 bytes: a length, and text; s are bytes.  In Python 2, t also gives the text a number of its own
 *   R               4 bytes: the number of a text of Python 2
 *   r               4 bytes: the number of a value
 *   )  (            1 or 4 bytes: the number of items, and the items of a tuple
 *   {               keys and values of a dict in turn; 0 ends it
 *
 *   a9 03 fa 04 61 2e 70 79 e9 02 00 00 00 da 01 66    ("a.py", 2, "f"), number 0; its items have numbers 1, 2 and 3
 *   72 00 00 00 00                                     the same tuple again
 *
 * Everything else (code, lists, sets, ...) is an error: nothing is executed or constructed.
 * Source: CPython's Python/marshal.c.
 */
#ifndef FP_PSTATS_MARSHAL_H
#define FP_PSTATS_MARSHAL_H

#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

enum fp_pstats_marshal_kind {
    FP_PSTATS_MARSHAL_OPEN = 0, /* a container whose end was not read yet */
    FP_PSTATS_MARSHAL_NONE = 1,
    FP_PSTATS_MARSHAL_INT = 2,
    FP_PSTATS_MARSHAL_BIG = 3, /* an int beyond 64 bits */
    FP_PSTATS_MARSHAL_FLOAT = 4,
    FP_PSTATS_MARSHAL_TEXT = 5,
    FP_PSTATS_MARSHAL_TUPLE = 6,
    FP_PSTATS_MARSHAL_DICT = 7
};

enum { FP_PSTATS_MARSHAL_DEPTH = 8 }; /* maximum depth of containers; profiles have 4 */

/* cffi-end */

struct fp_pstats_marshal_value {
    uint32_t kind; /* enum fp_pstats_marshal_kind */
    uint32_t n;    /* TUPLE: items.  DICT: keys and values */
    union {
        int64_t i;   /* INT */
        double d;    /* FLOAT */
        uint64_t id; /* TEXT: string */
        uint64_t at; /* TUPLE, DICT: of the first item in `items` */
    } of;
};

struct fp_pstats_marshal {
    struct fp_strings *strings; /* borrowed: texts become its strings */
    struct fp_pstats_marshal_value *items;
    uint32_t n_items, cap_items;
    struct fp_pstats_marshal_value *refs; /* by number */
    uint32_t n_refs, cap_refs;
    uint32_t *texts; /* of Python 2, by number: strings */
    uint32_t n_texts, cap_texts;
    struct fp_pstats_marshal_value *open; /* items of containers whose end was not read yet */
    uint32_t n_open, cap_open;
    int32_t kept; /* a container that was read since fp_pstats_marshal_begin has a number: its items must stay */
    /* as of fp_pstats_marshal_begin */
    uint32_t old_items, old_refs, old_texts;
};

void fp_pstats_marshal_clear(struct fp_pstats_marshal *m);

/* To be called between entries of a dict: frees the items of the values read since the last call, unless later ones may
 * refer to them. */
void fp_pstats_marshal_begin(struct fp_pstats_marshal *m);

/* Forgets what was read since then, because it is incomplete and will be read again. */
void fp_pstats_marshal_forget(struct fp_pstats_marshal *m);

/* Gives the next number to the dict whose items the caller reads one by one.  0 or FP_E_NOMEM. */
int fp_pstats_marshal_number_dict(struct fp_pstats_marshal *m);

/* Reads the value at in->p + *pos and moves *pos past it.  FP_DONE; FP_MORE: it is incomplete; or an error, with the
 * offset of the value. */
int fp_pstats_marshal_read(struct fp_pstats_marshal *m, const struct fp_in *in, size_t *pos,
                           struct fp_pstats_marshal_value *value, struct fp_err *err);

#endif
