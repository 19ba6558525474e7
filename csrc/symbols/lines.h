/* symbols/lines.h - line tables: the file and line of an address, from .debug_line of DWARF 2 to 5.
 *
 * A unit is a header with the tables of directories and files, and a program for a small machine with the registers
 * address, file and line.  Each step of the machine may add a row.  A sequence is a run of rows whose addresses
 * ascend; it begins with initial registers and ends with the first address after it.
 *
 *   00 09 02 1030...   address = 0x1030                (extended opcode 2)
 *   03 10 01           line += 16, a row               0x1030 file 1 line 17
 *   75                 special opcode: address += 7, line += 1, a row  (line_base -5, line_range 14, opcode_base 13)
 *   02 04 00 01 01     address += 4, end of sequence   0x1037 file 1 line 18, up to 0x103b
 *
 * Opening the tables runs all programs once, only to find their sequences.  A sequence is run again when its rows are
 * first needed, and then keeps them.  Memory: 32 bytes a sequence; 16 bytes a row of the sequences that were needed.
 * With fp_dwarf_lines_discriminate 16 bytes more a row.  Discriminators distinguish the code of one line: the parts of
 * `for (a; b; c)`, or a call in `x ? f() : g()`.  They belong to one row: extended opcode 4 sets that of the next one.
 * Loses: columns, statements, views; the later of two sequences for the same addresses, and those at address 0,
 * where a linker puts dropped code.  Source: DWARF 5, section 6.2, and the same of versions 2 to 4.
 */
#pragma once

#include "symbols/dwarf.h"

struct fp_dwarf_lines;

/* A row, valid from `address` up to the next row. */
struct fp_dwarf_line {
    uint64_t address;
    uint32_t unit;
    uint32_t file;   /* a number in the unit */
    uint32_t line;   /* 0: code without a line, according to the compiler */
    int32_t is_body; /* of fp_dwarf_lines_entry: the line is that of the first statement */
};

/* Counts from opening the tables and from the queries so far. */
struct fp_dwarf_lines_stats {
    uint64_t rows;
    uint32_t units;
    uint32_t sequences;
    uint32_t damaged;       /* units read only in part */
    uint32_t damaged_infos; /* the same for the needed units of .debug_info */
};

/* Opens the tables.  Borrows d and its sections; the caller owns the result. */
struct fp_dwarf_lines *fp_dwarf_lines_new(const struct fp_dwarf *d);
void fp_dwarf_lines_free(struct fp_dwarf_lines *l);
struct fp_dwarf_lines_stats fp_dwarf_lines_stats(const struct fp_dwarf_lines *l);

/* From now on frames of chains have discriminators, which others do not need.  Rows that were read before are read
 * again. */
void fp_dwarf_lines_discriminate(struct fp_dwarf_lines *l);

/* The row of an address.  1, or 0 if there is none. */
int fp_dwarf_lines_find(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found);

/* The first line of the function whose first instruction is at `address`.  It is that of the first row there that has a
 * line and begins a statement; the last row there belongs to the first instruction, which often has no line.  In
 * optimized code the first row may already be after the prologue, in a statement of the function or of one inlined into
 * it.  Then the result is the declaration of the function, or, if that is unknown, the row, with is_body set.  1, 0 if
 * nothing is known, or FP_NEEDS. */
int fp_dwarf_lines_entry(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found);

/* The three pieces of a file's path: the compilation directory, a directory and a name; each may be empty; pieces
 * before the last absolute one are ignored.  1, 0 for an unknown file number, or FP_NEEDS. */
int fp_dwarf_lines_file(struct fp_dwarf_lines *l, uint32_t unit, uint32_t file, struct fp_dwarf_bytes pieces[3]);

enum { FP_DWARF_DEEPEST = 4096 }; /* nested entries of a unit; deeper ones are damage */

/* One function of an inline chain. */
struct fp_dwarf_frame {
    uint64_t function;          /* its entry in .debug_info, for fp_dwarf_lines_name */
    uint64_t start;             /* the address of its first instruction */
    struct fp_dwarf_line place; /* the row of the address; of a caller that of the call */
    int32_t has_place;
    uint32_t discriminator; /* of the row; of a caller that of the call.  0 without fp_dwarf_lines_discriminate */
    int32_t of_gcc;         /* gcc compiled it, whose discriminators are plain numbers; LLVM packs three into one */
};

/* The functions at an address, innermost first: inlined ones, then the function that contains them.  *n: their number;
 * FP_DWARF_DEEPEST is room for all.  1, 0 if no function is there, or FP_NEEDS. */
int fp_dwarf_lines_chain(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_frame *frames, uint32_t cap,
                         uint32_t *n);

/* The line in which a function of a chain is declared.  1, or 0 if it is unknown. */
int fp_dwarf_lines_declared(struct fp_dwarf_lines *l, uint64_t function, uint32_t *line);

/* The name of a function of a chain: the linkage name if there is one.  1, or 0 if there is no readable name.
 * The name borrows the bytes of its section. */
int fp_dwarf_lines_name(struct fp_dwarf_lines *l, uint64_t function, struct fp_dwarf_bytes *name);
