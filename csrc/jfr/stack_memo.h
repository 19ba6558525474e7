/* jfr/stack_memo.h - methods and stacks that chunks repeat.  C only. */
#pragma once

#include "jfr/private.h"

/* A method by its key. */
struct fp_jfr_method {
    uint32_t function, text; /* `text`: its description, in r->methods.described */
    uint32_t epoch;          /* of the last chunk in which it was this one */
    uint32_t changed;        /* of the last chunk in which the key had another method than before; 0: none; UINT32_MAX:
                                parts of its name are missing, or it is long, so it is looked up in each chunk */
};

/* The model's function of a method; `kind`: how it was compiled.  *row: its row in
 * r->methods.ids; 0: later chunks cannot find it again. */
uint32_t fp_jfr_function(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                         const uint8_t *end, int *native, uint32_t *row);
/* Finds out which methods of earlier chunks this chunk has. */
void fp_jfr_check_methods(struct fp_jfr_reader *r);

/* A stack by its bytes. */
struct fp_jfr_memo {
    uint32_t type;  /* of the first constant with these bytes; those of another type are another stack */
    uint32_t epoch; /* of the last chunk in which it was this node; 0: none */
    uint32_t node, is_cut;
    uint32_t first, n; /* its methods, in r->stacks.methods */
};
/* Forgets methods and stacks of earlier chunks. */
void fp_jfr_forget_memo(struct fp_jfr_reader *r);
