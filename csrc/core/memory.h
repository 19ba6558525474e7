/* core/memory.h - memory of tables that grow and are looked up at random.  C only.
 *
 * A table of 1 MiB or more has its own mapping, for which large pages are requested:
 *
 *   - fresh memory is ten times cheaper
 *   - a lookup waits for memory once, not also for page tables (in a virtual machine, two levels of them)
 *   - growing moves pages instead of copying bytes
 *
 * Free a table with fp_release, never with free().  The caller keeps its size and passes it to each call.
 */
#pragma once

#include "core/fp.h"

/* Grows the `had` bytes at p (NULL and 0: none yet) to nbytes > had and returns their address.  New bytes are not
 * initialized.  NULL when memory ran out; then p is still valid. */
void *fp_grow(void *p, size_t had, size_t nbytes);

/* nbytes > 0 of zeros.  All pages are committed immediately, so request only what will be used. */
void *fp_zeroed(size_t nbytes);

/* Frees the nbytes at p; does nothing for NULL and 0. */
void fp_release(void *p, size_t nbytes);

/* The same in a temporary file, which the caller opens and closes: the operating system writes what does not fit into
 * memory.  An array begins at a multiple of FP_FILE_PART in the file, which is sparse, and its new bytes are 0.
 * fp_file_grow returns NULL and sets errno if the disk is full, and on systems that cannot do this. */
#define FP_FILE_PART ((uint64_t)1 << 38)
void *fp_file_grow(int fd, uint64_t at, void *p, size_t had, size_t nbytes);
void fp_file_release(void *p, size_t nbytes);

/* The used bytes at `from` in a new array of the file, with room for nbytes; NULL as above. */
void *fp_file_copy(int fd, uint64_t at, const void *from, size_t used, size_t nbytes);

/* Takes the array out of the process's memory until it is used again. */
void fp_file_rest(void *p, size_t nbytes);

/* Gives memory that was freed back to the system, where malloc keeps it: after a phase that needed much. */
void fp_trim(void);
