/* symbols/cfi.h - entries of .eh_frame and .debug_frame, and the programs in them.  C only.
 *
 *   length u32   of the rest (0xffffffff: a length u64 follows); 0 alone is a terminator
 *   id           CIE: 0 in .eh_frame, else all ones.  FDE: the position of its CIE; in .eh_frame the distance back to
 * it CIE: version u8, augmentation string, alignment of code and data, the return address' register, its program FDE:
 * start and size of a function, its program
 *
 * The program of a CIE makes the first row of a function, that of the FDE changes it as the address advances:
 *
 *   CIE   0c 07 08    CFA = r7 + 8         90 01    r16 at CFA + 1 * -8
 *   FDE   44          address += 4         0e 20    CFA = r7 + 32
 */
#pragma once

#include "symbols/unwind.h"

/* An .eh_frame or .debug_frame section. */
struct fp_cfi_section {
    struct fp_dwarf_bytes bytes;
    uint64_t address;
    int32_t is_eh;
    const struct fp_unwind_file *file;
};

/* Where the value of a register of the caller is. */
enum fp_cfi_how {
    FP_CFI_UNSET = 0, /* no rule */
    FP_CFI_UNDEFINED, /* lost */
    FP_CFI_SAME,      /* unchanged */
    FP_CFI_AT_CFA,    /* in memory at CFA + value */
    FP_CFI_IS_CFA,    /* CFA + value */
    FP_CFI_REGISTER,  /* register n; of a CFA: register n + value */
    FP_CFI_AT_BLOCK,  /* in memory at the result of an expression */
    FP_CFI_IS_BLOCK   /* the result of an expression */
};

struct fp_cfi_value {
    int64_t value; /* of an expression: its offset in the section */
    uint32_t n;    /* of an expression: its length */
    uint32_t how;  /* enum fp_cfi_how */
};

/* Only registers that have a column are kept; others share the last one, which is never read. */
enum { FP_CFI_NUMBERS = 64, FP_CFI_MOST_COLUMNS = 34 };
struct fp_cfi_columns {
    uint8_t of[FP_CFI_NUMBERS]; /* by register */
    uint32_t n;                 /* including the last one */
};

struct fp_cfi_state {
    struct fp_cfi_value cfa;
    struct fp_cfi_value columns[FP_CFI_MOST_COLUMNS];
};

struct fp_cfi_cie {
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register;
    uint8_t encoding, address_size, segment_size, has_length, is_signal;
    struct fp_cfi_state first;
};

struct fp_cfi_entry {
    size_t next; /* position of the entry after it */
    size_t content, cie;
    int32_t is_cie;
};

struct fp_cfi_fde {
    uint64_t start, size;
    size_t program, end; /* positions */
};

enum { FP_CFI_DEPTH = 32 }; /* the limit of remembered states */

/* A running program. */
struct fp_cfi_run {
    const struct fp_cfi_section *section;
    const struct fp_cfi_columns *columns;
    const struct fp_cfi_cie *cie; /* NULL while its own program runs */
    struct fp_cfi_cie *made;      /* the CIE to make */
    struct fp_dwarf_cursor c;
    uint64_t start, end; /* of the row */
    uint64_t location, limit;
    uint32_t depth;
    struct fp_cfi_state state;
    struct fp_cfi_state kept[FP_CFI_DEPTH];
};

/* The entry at a position.  1, 0 at the end of the section, -1 if its length is damaged: nothing after it can be found.
 * Positions of terminators are skipped. */
int fp_cfi_take_entry(const struct fp_cfi_section *s, size_t position, struct fp_cfi_entry *e);

/* The CIE at a position, with its first row.  0, or -1 if it is damaged or unknown. */
int fp_cfi_take_cie(const struct fp_cfi_section *s, const struct fp_cfi_columns *columns, size_t position,
                    struct fp_cfi_cie *cie);

/* Reads the function of an FDE.  0 or -1. */
int fp_cfi_take_fde(const struct fp_cfi_section *s, const struct fp_cfi_entry *e, const struct fp_cfi_cie *cie,
                    struct fp_cfi_fde *fde);

/* Begins the program of a function. */
void fp_cfi_begin(struct fp_cfi_run *r, const struct fp_cfi_section *s, const struct fp_cfi_columns *columns,
                  const struct fp_cfi_cie *cie, const struct fp_cfi_fde *fde);

/* Runs it to the end of the next row: r->state is valid from r->start up to r->end, within the function.  1, 0 after
 * the last row, -1 if the program is damaged. */
int fp_cfi_next(struct fp_cfi_run *r);

/* A word of the file's content at a link-time address.  1 or 0. */
int fp_unwind_read_file(const struct fp_unwind_file *f, uint64_t address, uint8_t *to, size_t n);
