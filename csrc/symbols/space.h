/* symbols/space.h - the current memory maps of all processes.
 *
 * The records of a recording change the maps in order of time.  Maps of a process never overlap: a new map replaces the
 * parts of others that it covers, and the remaining parts keep their file offsets.
 *
 *   map a  [0x1000, 0x5000) pgoff 0         a [0x1000, 0x2000) pgoff 0
 *   map b  [0x2000, 0x3000) pgoff 0x700     b [0x2000, 0x3000) pgoff 0x700     a [0x3000, 0x5000) pgoff 0x2000
 *
 * A fork shares the parent's maps until one of the two changes: each process is a root in one persistent search tree (a
 * treap) with reference-counted nodes.  A change copies only the path to it, and only if another process shares it.
 * So a fork takes constant time, any other change logarithmic time and memory.  The priorities of nodes come from a
 * random secret, so no file can make the tree deep.
 */
#pragma once

#include "core/core.h"

/* The pid of maps of the kernel.  No process has it. */
enum { FP_SPACE_KERNEL = 0xffffffffu };

/* The map at an address. */
struct fp_space_hit {
    uint64_t start, limit; /* of the remaining piece of the map */
    uint64_t pgoff;        /* of `start`; wraps at 2^64, like kernel addresses */
    uint32_t word, flags;  /* as given */
};

struct fp_space;

struct fp_space *fp_space_new(void);
void fp_space_free(struct fp_space *s);

/* The following functions return 0.  A range past the last address is cut there. */

/* Maps [start, start + len) of a process; nothing for len 0. */
int fp_space_map(struct fp_space *s, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff, uint32_t word,
                 uint32_t flags);

/* Unmaps [start, start + len). */
int fp_space_unmap(struct fp_space *s, uint32_t pid, uint64_t start, uint64_t len);

/* Replaces the maps of a process by those of its parent; by none if the parent is unknown. */
int fp_space_fork(struct fp_space *s, uint32_t pid, uint32_t parent);

/* Removes all maps of a process. */
int fp_space_exec(struct fp_space *s, uint32_t pid);

/* 1 and the map of a process at an address, or 0. */
int fp_space_find(struct fp_space *s, uint32_t pid, uint64_t address, struct fp_space_hit *hit);

/* The generation of a process's maps, 0 if it has none.  While it is the same, so are all results of fp_space_find.
 * Processes that share their maps share it, too. */
uint64_t fp_space_generation(struct fp_space *s, uint32_t pid);

/* cffi-end */

/* fp_space_new for the owner of *to, which is NULL. */
void fp_space_begin(struct fp_space **to);
