/* valgrind/dhat_private.h - between reading a DHAT profile and its rows. */
#ifndef FP_VALGRIND_DHAT_PRIVATE_H
#define FP_VALGRIND_DHAT_PRIVATE_H

#include "valgrind/dhat.h"

/* Adds values to those of a stack, at the given offset.  0 or an error. */
int fp_valgrind_add(struct fp_valgrind *d, uint32_t stack, const int64_t *v, uint64_t at, struct fp_err *err);

/* Whether no other place has the address of this one: it is a frame of its own. */
int fp_valgrind_is_alone(const struct fp_valgrind *d, uint32_t string);

#endif
