/* pstats/marshal.h - the values of Python's marshal format that occur in profiles.
 *
 * A value begins with a type byte.  If bit 7 of that byte is set, the value gets the next reference number, by which
 * later values refer to it.  A container gets its number before its items.  Integers are little-endian.
 *
 *   i               4 bytes: an int
 *   I               8 bytes: an int (Python 2)
 *   l               4 bytes: the number of digits, negative for a negative int; digits of 15 bits, 2 bytes each
 *   g               8 bytes: a float
 *   f               1 byte: a length, and a float as text (version 1)
 *   N T F           None, True, False
 *   z Z             1 byte: a length, and ASCII
 *   a A u t s       4 bytes: a length, and text; s are bytes.  In Python 2, t also gives the text a text number
 *   R               4 bytes: a text number of Python 2
 *   r               4 bytes: a reference number
 *   )  (            1 or 4 bytes: the number of items, and the items of a tuple
 *   {               a dict: keys and values alternate until a byte 0
 *   c               a code object, whose fields depend on the version (marshal.c), and in it the types of constants:
 *   . S             Ellipsis, StopIteration
 *   y x             a complex number: two floats as `g` or as `f`
 *   [ < >           4 bytes: the number of items, and the items of a list, set or frozen set
 *   :               a slice (Python 3.14): three values
 *
 *   a9 03 fa 04 61 2e 70 79 e9 02 00 00 00 da 01 66    ("a.py", 2, "f"), number 0; its items have numbers 1, 2 and 3
 *   72 00 00 00 00                                     the same tuple again
 *
 * Everything else, or lists, sets ... elsewhere, is an error: nothing is executed or constructed.  Of a code object
 * only its description remains, as a text; other texts in it become strings only if a later value refers to them.
 * Source: CPython's Python/marshal.c.
 */
#pragma once

#include "core/core.h"

/* cffi-begin */

enum fp_pstats_marshal_kind {
    FP_PSTATS_MARSHAL_OPEN = 0, /* a container whose end is not read yet */
    FP_PSTATS_MARSHAL_NONE = 1,
    FP_PSTATS_MARSHAL_INT = 2,
    FP_PSTATS_MARSHAL_BIG = 3, /* an int beyond 64 bits */
    FP_PSTATS_MARSHAL_FLOAT = 4,
    FP_PSTATS_MARSHAL_TEXT = 5,
    FP_PSTATS_MARSHAL_TUPLE = 6,
    FP_PSTATS_MARSHAL_DICT = 7,
    FP_PSTATS_MARSHAL_RAW = 8,       /* a text or bytes in a code object */
    FP_PSTATS_MARSHAL_CONSTANTS = 9, /* a tuple in a code object, whose items are not kept */
    FP_PSTATS_MARSHAL_OTHER = 10     /* any other constant in a code object */
};

/* Maximum depth of containers: profiles have 4.  Code objects are nested as functions in functions are, of which Python
 * allows about 100. */
enum { FP_PSTATS_MARSHAL_DEPTH = 8, FP_PSTATS_MARSHAL_CODE_DEPTH = 250 };

/* cffi-end */

struct fp_pstats_marshal_value {
    uint32_t kind; /* enum fp_pstats_marshal_kind */
    uint32_t n;    /* TUPLE: items.  DICT: keys and values.  RAW: bytes */
    union {
        int64_t i;   /* INT */
        double d;    /* FLOAT */
        uint64_t id; /* TEXT: string */
        uint64_t at; /* TUPLE, DICT: of the first item in `items`.  RAW: of the `n` bytes in `raw` */
    } of;
};

struct fp_pstats_marshal {
    struct fp_strings *strings; /* borrowed: texts become its strings */
    struct fp_pstats_marshal_value *items;
    uint32_t n_items, cap_items;
    struct fp_pstats_marshal_value *refs; /* by number */
    uint32_t n_refs, cap_refs;
    struct fp_pstats_marshal_value *texts; /* Python 2, by text number */
    uint32_t n_texts, cap_texts;
    struct fp_buf raw;                    /* texts in code objects */
    struct fp_buf name;                   /* scratch */
    uint32_t code_depth;                  /* code objects that are open */
    int32_t layout;                       /* of the file's code objects, from 1 on; 0: not known yet */
    struct fp_pstats_marshal_value *open; /* items of open containers */
    uint32_t n_open, cap_open;
    int32_t kept; /* a container read since fp_pstats_marshal_begin has a number, so its items must stay */
    /* as of fp_pstats_marshal_begin */
    uint32_t old_items, old_refs, old_texts;
    size_t old_raw;
};

void fp_pstats_marshal_clear(struct fp_pstats_marshal *m);

/* Frees the items of the values read since the last call, unless later values may refer to them.  Call it between the
 * entries of a dict. */
void fp_pstats_marshal_begin(struct fp_pstats_marshal *m);

/* Forgets all values read since fp_pstats_marshal_begin: they are incomplete and will be read again. */
void fp_pstats_marshal_forget(struct fp_pstats_marshal *m);

/* Assigns the next reference number to a dict whose items the caller reads one by one. */
void fp_pstats_marshal_number_dict(struct fp_pstats_marshal *m);

/* Reads the value at in->p + *pos and moves *pos past it.  FP_DONE; FP_MORE: it is incomplete; or an error, with the
 * offset of the value. */
int fp_pstats_marshal_read(struct fp_pstats_marshal *m, const struct fp_window *in, size_t *pos,
                           struct fp_pstats_marshal_value *value, struct fp_err *err);
