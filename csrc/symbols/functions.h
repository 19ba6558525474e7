/* symbols/functions.h - the functions at an address: the inlined ones and the one that contains them.  C only.
 *
 *   subprogram main       [0x1000, 0x1080)             0x1030: get, inlined into sum in line 12, inlined into main in
 *     inlined sum         [0x1020, 0x1060)  line 9             line 9
 *       inlined get       [0x1028, 0x1038)  line 12
 *
 * Only the units of requested addresses are read, each once.  Memory: 40 bytes a function or inlined call of these
 * units, 16 a piece of their code.  Loses: units that are damaged, from the damage on; calls nested deeper than
 * FP_DWARF_DEEPEST.  Source: DWARF 5, section 3.3.
 */
#pragma once

#include "symbols/units.h"

struct fp_dwarf_functions;

/* Borrows the units; the caller owns the result. */
struct fp_dwarf_functions *fp_dwarf_functions_new(struct fp_dwarf_units *units);
void fp_dwarf_functions_free(struct fp_dwarf_functions *f);

/* A function, or an inlined call. */
struct fp_dwarf_function {
    uint64_t offset; /* of its entry in .debug_info; of an inlined call that of the function, not of the call */
    uint64_t low;    /* its first address */
    uint32_t parent; /* of an inlined call: the number of the enclosing function; 0: not inlined */
    uint32_t call_file, call_line, call_discriminator;
    uint32_t unit; /* its number */
};

/* The innermost function at an address; `fp_dwarf_function` has those around it.  1, or 0 if there is
 * none. */
int fp_dwarf_functions_find(struct fp_dwarf_functions *f, uint64_t address, struct fp_dwarf_function *found);

/* The function of a number from 1 on. */
const struct fp_dwarf_function *fp_dwarf_function(const struct fp_dwarf_functions *f, uint32_t number);

/* The line table of a function's unit, UINT64_MAX if it has none. */
uint64_t fp_dwarf_function_lines(const struct fp_dwarf_functions *f, const struct fp_dwarf_function *of);

/* Whether gcc compiled a function's unit. */
int fp_dwarf_function_of_gcc(const struct fp_dwarf_functions *f, const struct fp_dwarf_function *of);

/* Where a function is declared. */
struct fp_dwarf_declaration {
    uint64_t line_table; /* its file is a number in this table */
    uint64_t file;
    uint64_t line;
};

/* The declaration of the function whose first instruction is at `address`.  1, or 0 if there is none. */
int fp_dwarf_functions_declaration(struct fp_dwarf_functions *f, uint64_t address, struct fp_dwarf_declaration *found);

/* The declaration of the function whose entry is at `offset` of .debug_info.  1, or 0 if there is none. */
int fp_dwarf_functions_declared(struct fp_dwarf_functions *f, uint64_t offset, struct fp_dwarf_declaration *found);

/* The name of the function whose entry is at `offset` of .debug_info: the linkage name if there is one.  1, or 0
 * if there is no readable name. */
int fp_dwarf_functions_name(struct fp_dwarf_functions *f, uint64_t offset, struct fp_dwarf_bytes *name);
