/* core/marshal.h - data of Ruby's Marshal (version 4.8) as JSON for a shape (core/json_shape.h).  C only.
 *
 *   04 08 7b 06            version, a hash of 1 pair
 *   3a 08 72 61 77         :raw
 *   5b 07 69 08 30         [3, nil]
 *
 * is read as {"raw":[3,null]}.  Each value becomes text, which the shape reads before the next one, so nothing is kept
 * but symbols, and strings that later links may refer to.  Keys are texts.  A text is written
 * again for each link to it; links to 64 times the bytes before them, and 1 MB, are an error.  Hashes, arrays, strings,
 * symbols, numbers, nil, true and false are read; objects of other classes are an error, and nothing is ever made of
 * them.
 *
 * Memory: linear in the symbols and strings, 12 bytes each and their text.
 * Source: Ruby's doc/marshal.rdoc and marshal.c.
 */
#pragma once

#include "core/json_shape.h"

struct fp_marshal {
    struct fp_strings strings; /* initialized by the caller */
    uint32_t *symbols;         /* strings, by number */
    uint32_t n_symbols, cap_symbols;
    uint32_t *links; /* by number of an object: its string + 1, or 0 */
    uint32_t n_links, cap_links;
    struct fp_marshal_level {
        uint32_t left; /* elements or pairs */
        uint8_t is_hash, is_key;
    } *levels;
    uint32_t n_levels, cap_levels;
    int32_t has_head, is_over;
    struct fp_buf text; /* JSON that the shape has not taken yet, from `taken` on */
    size_t taken;
    uint64_t offset; /* of the last value */
    uint64_t linked; /* bytes of texts that links repeat */
};

/* Begins a dump.  Keeps memory. */
void fp_marshal_begin(struct fp_marshal *m);
void fp_marshal_free(struct fp_marshal *m);

/* As fp_json_walk; offsets of errors are those of the dump. */
int fp_marshal_walk(struct fp_marshal *m, struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err);
