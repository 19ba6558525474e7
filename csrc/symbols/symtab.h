/* symbols/symtab.h - the symbol table of an ELF file, by address.
 *
 *   64 bits   name u32   info u8   other u8   section u16   address u64   size u64
 *   32 bits   name u32   address u32   size u32   info u8   other u8   section u16
 *
 * Keeps symbols defined in a section that may name code (the names of versions, such as GCC_4.7.0, are in none):
 * without a type (assembly), data, functions and indirect functions, but no local labels inside functions.  A symbol
 * without size reaches to the next one, but not beyond its section.  Of symbols at one address it keeps one of the
 * longest.  Of equally long ones it prefers those that are no old version (`cfree@GLIBC_2.2.5`), then, as perf, those
 * that are not weak, global to local ones, the fewest underscores in front (`clone3`, not `__GI___clone3`), the longest
 * name, and the first.
 *
 * Source: System V ABI, chapter 4, "Symbol Table"; Linux tools/perf/util/symbol.c, choose_best_symbol.
 */
#pragma once

#include "core/core.h"

/* Differences between machines. */
enum fp_symtab_flag {
    FP_SYMTAB_SWAP = 1,    /* the other byte order */
    FP_SYMTAB_WIDE = 2,    /* 64 bits */
    FP_SYMTAB_MARKERS = 4, /* ARM, RISC-V: symbols `$x` mark code and data */
    FP_SYMTAB_THUMB = 8    /* ARM: bit 0 of a function's address selects the instruction set */
};

struct fp_symtab {
    uint64_t *starts, *sizes; /* by address, each address once */
    uint32_t *names;          /* offset of the name in the strings */
    uint32_t n;
};

/* The bytes of a symbol table's sections. */
struct fp_symtab_in {
    const uint8_t *table; /* of n bytes */
    size_t n;
    const uint8_t *strings; /* the names, n_strings bytes */
    size_t n_strings;
    const uint64_t *ends; /* by section: its first address that does not belong to it; 0 for one that is not loaded */
    size_t n_ends;
    uint32_t flags; /* enum fp_symtab_flag */
};

/* Reads a table.  Borrows nothing; the caller owns the result. */
struct fp_symtab *fp_symtab_new(const struct fp_symtab_in *in);
void fp_symtab_free(struct fp_symtab *s);

/* The last symbol that starts at `address` or before; -1 if there is none. */
int64_t fp_symtab_find(const struct fp_symtab *s, uint64_t address);
