/* symbols/maps.h - lines of /proc/PID/maps, as the kernel writes them.
 *
 *   08048000-08049000 r-xp 00001000 08:01 4711   /path with blanks
 *
 * Source: Linux fs/proc/task_mmu.c.
 */
#pragma once

#include "core/core.h"

/* cffi-begin */

/* The addresses [start, limit) hold executable bytes of a file from `offset` on. */
struct fp_maps_range {
    uint64_t start, limit, offset;
    size_t path, n_path; /* of its path: where it begins in the text, and its bytes without blanks around it */
};

/* Reads lines up to the first that looks different, or until `most` executable ranges are found.  Returns the bytes
 * read, and in *n_found the ranges. */
size_t fp_maps_lines(const uint8_t *text, size_t n, struct fp_maps_range *found, size_t most, size_t *n_found);
