/* fp_memory.h - memory of tables that are looked up at random.
 *
 * Floor 0.  From 4 MiB on the system is asked for large pages: a lookup then
 * waits for memory alone and not for the page tables, which in a virtual
 * machine are looked up twice, and fresh memory comes in fewer faults.
 */
#ifndef FP_MEMORY_H
#define FP_MEMORY_H

#include "fp.h"

/* As realloc and calloc; the owner frees with free. */
void *fp_realloc(void *p, size_t nbytes);
void *fp_calloc(size_t n, size_t width);

#endif
