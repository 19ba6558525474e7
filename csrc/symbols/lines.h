/* symbols/lines.h - line tables: the file and line of an address, from .debug_line of DWARF 2 to 5.
 *
 * A unit is a header with the tables of directories and files, and a program for a small machine with the registers
 * address, file and line.  Each step of the machine may make a row.  A sequence is a run of rows whose addresses
 * ascend; it begins with fresh registers and ends with the first address behind it.
 *
 *   00 09 02 1030...   address = 0x1030                (extended opcode 2)
 *   03 10 01           line += 16, a row               0x1030 file 1 line 17
 *   75                 special opcode: address += 7, line += 1, a row  (line_base -5, line_range 14, opcode_base 13)
 *   02 04 00 01 01     address += 4, end of sequence   0x1037 file 1 line 18, up to 0x103b
 *
 * When the tables are opened, all programs are run for their sequences alone.  A sequence whose rows are asked for is
 * run once more, and its rows are kept. Memory: 32 bytes a sequence; 16 bytes a row of the sequences that were asked
 * for. Loses: columns, statements, views; of two sequences for the same addresses the later one in the file, and those
 * at address 0, which is where a linker puts what it leaves out. Source: DWARF 5, section 6.2, and the same of versions
 * 2 to 4.
 */
#ifndef FP_LINES_H
#define FP_LINES_H

#include "symbols/dwarf.h"

/* cffi-begin */

struct fp_dwarf_lines;

/* A row: what it says holds from `address` up to the next row. */
struct fp_dwarf_line {
    uint64_t address;
    uint32_t unit;
    uint32_t file;   /* a number in the unit */
    uint32_t line;   /* 0: the compiler says that the code belongs to no line */
    int32_t is_body; /* of fp_dwarf_lines_entry: the line is that of the first statement */
};

/* What was found when the tables were opened. */
struct fp_dwarf_lines_stats {
    uint64_t rows;
    uint32_t units;
    uint32_t sequences;
    uint32_t damaged; /* units of which not all could be read */
};

/* Opens the tables.  Borrows d and its sections.  NULL when memory ran out.  Caller owns. */
struct fp_dwarf_lines *fp_dwarf_lines_new(const struct fp_dwarf *d);
void fp_dwarf_lines_free(struct fp_dwarf_lines *l);
struct fp_dwarf_lines_stats fp_dwarf_lines_stats(const struct fp_dwarf_lines *l);

/* The row that holds for an address.  1, 0 if there is none, or FP_E_NOMEM. */
int fp_dwarf_lines_find(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found);

/* Where the function begins whose first instruction is at `address`.  That is the first row there that has a line and
 * begins a statement; the last row there is that of the first instruction, which often belongs to no line.  In
 * optimized code the first row may already be behind the prologue, in a statement of the function or of one that was
 * inlined into it.  Then it is where the function is declared, or, if that is not known either, the row, with is_body
 * set. 1, 0 if nothing is known, FP_ASK or FP_E_NOMEM. */
int fp_dwarf_lines_entry(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found);

/* The three pieces of a file's path: the compilation directory, a directory and a name; each may be empty, and from the
 * last absolute one on they count.  1, 0 for a number that no file has, FP_ASK or FP_E_NOMEM. */
int fp_dwarf_lines_file(struct fp_dwarf_lines *l, uint32_t unit, uint32_t file, struct fp_dwarf_bytes pieces[3]);

/* cffi-end */

#endif
