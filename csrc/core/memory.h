/* core/memory.h - memory of tables that grow and are looked up at random.
 *
 * A table of 1 MiB or more has a mapping of its own, for which the system is asked to use large pages.  That makes
 * fresh memory ten times cheaper.  A lookup waits for the memory alone and not also for page tables (in a virtual
 * machine, for two levels of them).  Growing moves pages instead of copying bytes.
 *
 * A table is given back by fp_release, never by free.  The caller remembers its size and passes it on each call.
 */
#ifndef FP_MEMORY_H
#define FP_MEMORY_H

#include "core/fp.h"

/* Grows the `had` bytes at p (NULL and 0: none yet) to nbytes > had and returns their address.  New bytes are not
 * initialized.  NULL when memory ran out; then p is still valid. */
void *fp_grow(void *p, size_t had, size_t nbytes);

/* nbytes > 0 of zeros.  All of them get memory at once, so ask only for what will be used. */
void *fp_zeroed(size_t nbytes);

/* Gives back the nbytes at p; does nothing for NULL and 0. */
void fp_release(void *p, size_t nbytes);

#endif
