/* core/memory.h - memory of tables that grow and are looked up at random.
 *
 * Floor 0.  From 1 MiB on a table has address space of its own, of which the system is asked to make large pages:
 * fresh memory then costs a tenth, a lookup waits for memory alone and not for the page tables, which in a virtual
 * machine are looked up twice, and growing moves pages instead of copying bytes.
 *
 * A table is given back by fp_release, never by free, and its size is always the one that was asked for last.
 */
#ifndef FP_MEMORY_H
#define FP_MEMORY_H

#include "core/fp.h"

/* `had` bytes at p (NULL and 0: none yet) become nbytes > had, of which the new ones hold anything.  NULL when memory
 * ran out: then p is as it was. */
void *fp_grow(void *p, size_t had, size_t nbytes);

/* nbytes > 0 of zeros, soon to be written all over. */
void *fp_zeroed(size_t nbytes);

/* p: NULL and 0, too. */
void fp_release(void *p, size_t nbytes);

#endif
