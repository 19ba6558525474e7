/* symbols/kallsyms.h - the symbols of a kernel and its modules as text, by address.
 *
 *   ffffffff81000000 T _text
 *   ffffffffc05c1000 t ext4_evict_inode<tab>[ext4]
 *
 * An address of 8 or 16 digits, the type, the name, and the module of a symbol that is not in the kernel itself.  Keeps
 * functions and data; other lines, such as absolute symbols, are skipped.
 * Source: Linux kernel/kallsyms.c.
 */
#pragma once

#include "core/core.h"

struct fp_kallsyms {
    uint64_t *starts;  /* by address; symbols of the same address in the order of the text */
    uint64_t *names;   /* offset of the name in the text */
    uint32_t *lengths; /* of the name */
    uint64_t n;
};

/* Reads a text of n bytes, whose addresses have `width` digits.  Borrows nothing; the caller
 * owns the result. */
struct fp_kallsyms *fp_kallsyms_new(const uint8_t *text, size_t n, uint32_t width);

/* The symbols of a module, or those of the kernel itself if n_module is 0.  Memory as above. */
struct fp_kallsyms *fp_kallsyms_part(const struct fp_kallsyms *all, const uint8_t *text, size_t n,
                                     const uint8_t *module, size_t n_module);
void fp_kallsyms_free(struct fp_kallsyms *k);

/* The last symbol that starts at `address` or before; -1 if there is none. */
int64_t fp_kallsyms_find(const struct fp_kallsyms *k, uint64_t address);

/* The first symbol with a name of n bytes; -1 if there is none. */
int64_t fp_kallsyms_named(const struct fp_kallsyms *k, const uint8_t *text, const uint8_t *name, size_t n);
