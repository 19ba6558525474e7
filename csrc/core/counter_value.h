/* core/counter_value.h - values of counters in timelines.  C only.
 *
 * A value is a typed event of type FP_COUNTER_TYPE.  Its payload is the value, as a JSON number, and the name:
 *
 *   12.5 heap        the counter "heap" is 12.5 from now on
 */
#pragma once

#include "core/batch.h"
#include "core/buf.h"

#define FP_COUNTER_TYPE UINT32_MAX

enum { FP_REAL_ROOM = 64 };

/* Writes a number as JSON has it, so that fp_real_of returns the same.  FP_REAL_ROOM bytes must be writable.  Returns
 * its length; 0: not a finite number. */
size_t fp_put_real(uint8_t *to, double v);

/* The number of this text, n bytes. */
double fp_real_of(const uint8_t *p, size_t n);

/* Writes the payload of a value to `to`.  0 or FP_E_NOMEM; empty: not a finite number. */
int fp_counter_value_payload(struct fp_buf *to, double value, const uint8_t *name, size_t n);

/* The length of the value at the beginning of a row's payload; the name begins after the blank that follows.  0: the
 * row is no value of a counter. */
size_t fp_counter_value_of(const struct fp_batch *b, uint32_t row);
