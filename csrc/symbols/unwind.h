/* symbols/unwind.h - unwinds user stacks from registers and a copy of the stack, by the unwind tables of files.
 *
 * `perf record --call-graph dwarf` copies a thread's registers and up to 64 KiB of its stack.  The unwinder
 * finds the callers by .eh_frame and .debug_frame of the mapped files.  For each code address these tables locate the
 * canonical frame address (CFA: the stack pointer before the call) and the caller's registers:
 *
 *   f:    sub  $24, %rsp       until here    CFA = rsp+8     return address at CFA-8     rbp unchanged
 *         call g               from here     CFA = rsp+32    return address at CFA-8     rbp unchanged
 *
 * Each file is compiled once into rows of an address and a rule number, sorted by address.  Adjacent ranges with equal
 * rules share a row.  The row GAP covers code that no table describes:
 *
 *   start  0x1000  0x1004  0x1030  0x2000          rule 3: CFA = sp+8, return address at CFA-8, fp unchanged
 *   rule   3       7       0       3               rule 7: CFA = sp+32 ...                 rule 0: GAP
 *
 * Rules use only the program counter, the stack pointer and the frame pointer, which suffices for more than 99.99 % of
 * real frames.  A rule that needs other registers is SLOW: the stack is unwound again from its leaf, with all
 * registers, by interpreting the DWARF instructions of the tables.
 *
 * Memory of a table: 6 bytes a row (about 1.0 MB for 1 MB of .eh_frame), 8 bytes a function.
 * Source: DWARF 5, section 6.4; LSB 5, "Exception Frames"; System V ABI supplements of x86-64 and AArch64.
 */
#pragma once

#include "symbols/dwarf.h"

/* Why a stack ends. */
enum fp_unwind_end {
    FP_UNWIND_COMPLETE = 0,       /* the outermost function */
    FP_UNWIND_OUTSIDE = 1,        /* a word is not in the copied part of the stack */
    FP_UNWIND_NO_MAP = 2,         /* nothing is mapped at the address; only at the leaf */
    FP_UNWIND_NO_FILE = 3,        /* the mapped file was not found, or the memory is not a file's */
    FP_UNWIND_NO_TABLE = 4,       /* nothing in the file describes the address */
    FP_UNWIND_BROKEN = 5,         /* a damaged table, or a rule that cannot be applied */
    FP_UNWIND_NOT_EXECUTABLE = 6, /* the return address is not in executable memory */
    FP_UNWIND_NO_PROGRESS = 7,    /* the stack pointer of the caller is below that of the callee */
    FP_UNWIND_TOO_DEEP = 8,       /* more frames than requested */
    FP_UNWIND_ENDS = 9
};

/* How to find the CFA. */
enum fp_unwind_kind {
    FP_UNWIND_GAP = 0,     /* no table covers the address */
    FP_UNWIND_DAMAGED = 1, /* a table covers the address, but is damaged */
    FP_UNWIND_SLOW = 2,    /* other registers are needed */
    FP_UNWIND_SP = 3,      /* sp + cfa */
    FP_UNWIND_FP = 4,      /* fp + cfa */
    FP_UNWIND_PLT = 5,     /* sp + 8, or sp + 16 if the low 4 bits of the pc are at least `cfa` */
    FP_UNWIND_REALIGN = 6, /* the word at fp + cfa; the caller's fp is the word at fp + fp */
    FP_UNWIND_SIGNAL = 7,  /* the word at sp + cfa; interrupted pc and fp: the words at sp + ra, sp + fp */
    FP_UNWIND_LAST = 8     /* the outermost function */
};

enum fp_unwind_register {
    FP_UNWIND_SAME = 0,   /* unchanged; a return address: in the link register */
    FP_UNWIND_SAVED = 1,  /* the word at CFA + the rule's number */
    FP_UNWIND_UNKNOWN = 2 /* overwritten */
};

struct fp_unwind_rule {
    int32_t cfa, fp, ra;
    uint8_t kind;      /* enum fp_unwind_kind */
    uint8_t fp_how;    /* enum fp_unwind_register */
    uint8_t ra_how;    /* enum fp_unwind_register */
    uint8_t is_signal; /* the next address is that of an interrupted instruction, not a return address */
};

/* A PT_LOAD program header. */
struct fp_unwind_load {
    uint64_t address, offset, file_size, memory_size;
    int32_t is_executable;
};

/* Code in [start, limit). */
struct fp_unwind_range {
    uint64_t start, limit;
};

/* The input of a table.  Missing sections are empty.  All numbers are little-endian. */
struct fp_unwind_file {
    struct fp_dwarf_bytes content;     /* the whole file */
    struct fp_dwarf_bytes eh_frame;    /* of the file, at eh_frame_address */
    struct fp_dwarf_bytes debug_frame; /* of the file or of its debug file, decompressed */
    uint64_t eh_frame_address;
    uint64_t text, data; /* bases of relative pointers: .text, .eh_frame_hdr */
    const struct fp_unwind_load *loads;
    const struct fp_unwind_range *plts; /* .plt, .plt.sec: linkers may leave them without a table; ascending */
    uint32_t n_loads, n_plts;
    uint32_t machine; /* e_machine: 62 (x86-64) or 183 (AArch64) */
    uint32_t id;      /* less than 2^24; unique among the tables of an unwinder */
};

struct fp_unwind_stats {
    uint64_t functions; /* entries of both sections */
    uint64_t broken;    /* damaged entries */
    uint64_t rows, rules;
    uint64_t nbytes; /* memory of the table */
};

struct fp_unwind_table;

/* Compiles the tables of a file.  Borrows `content` and the sections.  NULL on error: FP_E_VERSION for an
 * unknown machine.  The caller owns the table.  It is immutable: several threads may use it.
 * Losses: damaged entries, which are counted; where functions overlap, the covered part of the earlier one. */
struct fp_unwind_table *fp_unwind_table_new(const struct fp_unwind_file *file, struct fp_err *err);
void fp_unwind_table_free(struct fp_unwind_table *t);
struct fp_unwind_stats fp_unwind_table_stats(const struct fp_unwind_table *t);

/* The address and the rule of row i, which is valid up to the next row. */
uint64_t fp_unwind_table_row(const struct fp_unwind_table *t, uint64_t i, struct fp_unwind_rule *rule);

/* The mapping at an address. */
struct fp_unwind_place {
    uint64_t start, limit, offset;       /* addresses, and the offset in the file of `start` */
    const struct fp_unwind_table *table; /* NULL: why_not */
    int32_t is_executable;
    int32_t why_not; /* FP_UNWIND_NO_FILE or FP_UNWIND_NO_TABLE */
    uint32_t word;   /* the caller's, for frames */
};

enum { FP_UNWIND_NO_WORD = 0xffffffff }; /* of a frame at whose address nothing is mapped */

/* Finds the place of an address.  FP_DONE: found.  FP_MORE: nothing is mapped there.  FP_NEEDS: fp_unwind_stack returns
 * FP_NEEDS. */
typedef int (*fp_unwind_finder)(void *self, uint64_t address, struct fp_unwind_place *place);

/* A sample as perf writes it: the registers of the mask, lowest bit first, 8 bytes each; and the copy of the stack from
 * the stack pointer on. */
struct fp_unwind_sample {
    uint64_t mask;
    const uint8_t *registers;
    const uint8_t *stack;
    uint64_t stack_nbytes; /* valid bytes of it */
};

struct fp_unwind_frame {
    uint64_t address; /* of an instruction, or a return address */
    uint32_t word;    /* of the place */
    int32_t is_return;
};

struct fp_unwind; /* caches rules by address; not thread-safe */

enum { FP_UNWIND_BY_FRAME_POINTERS = 1 }; /* where no table covers an address */

/* An unwinder for the stacks of a machine (e_machine).  NULL if the machine is unknown. */
struct fp_unwind *fp_unwind_new(uint32_t machine, uint32_t flags);
void fp_unwind_free(struct fp_unwind *u);

/* Unwinds a stack, leaf first, into at most `most` frames; *n is their number and *why an enum fp_unwind_end.  FP_DONE,
 * or FP_NEEDS if the finder did: nothing changed, call again.  *n is 0 if the sample lacks a register. */
int fp_unwind_stack(struct fp_unwind *u, const struct fp_unwind_sample *sample, fp_unwind_finder find, void *self,
                    struct fp_unwind_frame *frames, uint32_t most, uint32_t *n, uint32_t *why);
