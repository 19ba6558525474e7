/* symbols/units.h - the units of .debug_info, and their entries.  C only.
 *
 * A unit is a tree of entries.  An entry begins with a code; the abbreviation of that code defines the kind of the
 * entry, its attributes and their forms:
 *
 *   .debug_abbrev   1: compile_unit, has children, (comp_dir, strp) (stmt_list, sec_offset)
 *                   2: subprogram, no children, (low_pc, addr) (decl_file, data1) (decl_line, data1)
 *   .debug_info     1 "/src" 0      2 0x1130 1 17      0
 *
 * So a unit in /src, whose line table begins at byte 0 of .debug_line, has a function at 0x1130 that is declared in
 * file 1 at line 17.  Memory: linear in units, and in the abbreviations of the needed ones.  Source: DWARF 5,
 * chapters 2, 3 and 7.5.
 */
#pragma once

#include "symbols/abbreviations.h"
#include "symbols/ranges.h"

enum fp_dwarf_tag {
    FP_TAG_COMPILE_UNIT = 0x11,
    FP_TAG_INLINED_SUBROUTINE = 0x1d,
    FP_TAG_SUBPROGRAM = 0x2e,
    FP_TAG_SKELETON_UNIT = 0x4a
};

struct fp_dwarf_text {
    struct fp_dwarf_value value;
    uint32_t form; /* 0: none */
};

/* The addresses of an entry: [low, high), or a list of ranges. */
struct fp_dwarf_code {
    uint64_t low, high, list;
    uint32_t form; /* of the list; 0: none */
};

/* The needed attributes of an entry; missing numbers are 0. */
struct fp_dwarf_entry {
    struct fp_dwarf_code code;
    uint64_t line_table; /* UINT64_MAX: none */
    uint64_t reference;  /* in .debug_info, to a specification or an abstract origin; UINT64_MAX: none */
    uint64_t decl_file;  /* UINT64_MAX: none */
    uint64_t decl_line, call_file, call_line, call_discriminator;
    struct fp_dwarf_text name, linkage_name, directory, producer; /* fp_dwarf_string looks them up */
};

struct fp_dwarf_info_unit {
    struct fp_dwarf_unit forms;
    uint64_t offset, first, end; /* in .debug_info: the unit, its first entry, its end */
    uint64_t abbreviations;      /* in .debug_abbrev */
    uint32_t table;              /* the number of that table */
    uint64_t line_table;         /* this and the next two as its first entry states */
    struct fp_dwarf_code code;
    struct fp_dwarf_bytes directory;
    uint32_t first_piece, n_pieces; /* of the functions, once they are read (symbols/functions.h) */
    int32_t is_read;
    int32_t has_code; /* 0: not a compile unit */
    int32_t of_gcc;   /* its producer is one of gcc's compilers */
};

struct fp_dwarf_units {
    const struct fp_dwarf *d;
    struct fp_dwarf_info_unit *items;
    uint32_t n, cap;
    struct fp_pairs_item *by_line_table;   /* the number of the unit */
    struct fp_dwarf_abbreviations *tables; /* read when needed */
    struct fp_dwarf_abbreviations first;   /* while the units are being found: those of their first entries */
    uint32_t n_tables;
    struct fp_dwarf_work work;
    uint32_t n_damaged; /* units read only in part, or not at all */
};

/* Finds all units, unless *to has them.  Borrows d and its sections; the caller owns *to, NULL at first.
 * Loses: damaged units, and everything after the last of these. */
void fp_dwarf_units_begin(struct fp_dwarf_units **to, const struct fp_dwarf *d);
void fp_dwarf_units_free(struct fp_dwarf_units *u);

/* The compilation directory of the unit whose line table begins at `line_table`; empty if unknown. */
struct fp_dwarf_bytes fp_dwarf_units_directory(const struct fp_dwarf_units *u, uint64_t line_table);

/* The abbreviations of a unit.  NULL, with *status FP_E_MALFORMED, if they cannot be read. */
const struct fp_dwarf_abbreviations *fp_dwarf_unit_abbreviations(struct fp_dwarf_units *u,
                                                                 const struct fp_dwarf_info_unit *unit, int *status);

/* Reads the attributes of an entry of a unit. */
void fp_dwarf_take_entry(const struct fp_dwarf_units *u, const struct fp_dwarf_info_unit *unit,
                         const struct fp_dwarf_abbreviations *t, const struct fp_dwarf_abbreviation *a,
                         struct fp_dwarf_cursor *c, struct fp_dwarf_entry *e);

/* Reads the entry at `offset` of .debug_info and sets its unit.  1, or 0 if there is none. */
int fp_dwarf_entry_at(struct fp_dwarf_units *u, uint64_t offset, const struct fp_dwarf_info_unit **unit,
                      struct fp_dwarf_entry *e);

/* A cursor on the entries of a unit from `offset` of .debug_info on. */
static inline struct fp_dwarf_cursor fp_dwarf_entries_from(const struct fp_dwarf_units *u,
                                                           const struct fp_dwarf_info_unit *unit, uint64_t offset) {
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(u->d, FP_DWARF_INFO, offset);
    if (!c.bad) c.end = u->d->sections[FP_DWARF_INFO].p + unit->end;
    return c;
}
