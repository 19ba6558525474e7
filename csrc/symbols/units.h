/* symbols/units.h - facts on units and functions that only .debug_info has, not the line tables.
 *
 * A unit is a tree of entries.  An entry begins with a code; the abbreviation of that code defines the kind of the
 * entry, its attributes and their forms:
 *
 *   .debug_abbrev   1: compile_unit, has children, (comp_dir, strp) (stmt_list, sec_offset)
 *                   2: subprogram, no children, (low_pc, addr) (decl_file, data1) (decl_line, data1)
 *   .debug_info     1 "/src" 0      2 0x1130 1 17      0
 *
 * So a unit in /src, whose line table begins at byte 0 of .debug_line, has a function at 0x1130 that is declared in
 * file 1 at line 17.  Memory: linear in units, and in functions once one is needed.  Source: DWARF 5, chapters 2, 3 and
 * 7.5.
 */
#ifndef FP_UNITS_H
#define FP_UNITS_H

#include "symbols/dwarf.h"

struct fp_dwarf_units;

/* Finds all units.  Borrows d and its sections.  NULL when memory ran out.  Caller owns.
 * Loses: damaged units, and everything after the last of these. */
struct fp_dwarf_units *fp_dwarf_units_new(const struct fp_dwarf *d);
void fp_dwarf_units_free(struct fp_dwarf_units *u);

/* The compilation directory of the unit whose line table begins at `line_table`; empty if unknown. */
struct fp_dwarf_bytes fp_dwarf_units_directory(const struct fp_dwarf_units *u, uint64_t line_table);

/* Where a function is declared. */
struct fp_dwarf_declaration {
    uint64_t line_table; /* its file is a number in this table */
    uint64_t file;
    uint64_t line;
};

/* The declaration of the function whose first instruction is at `address`.  1, or 0 if there is none, or FP_E_NOMEM. */
int fp_dwarf_units_declaration(struct fp_dwarf_units *u, uint64_t address, struct fp_dwarf_declaration *found);

#endif
