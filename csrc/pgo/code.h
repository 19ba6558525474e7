/* pgo/code.h - how often each instruction was executed, from straight runs of code.
 *
 *   runs 0x10 .. 0x17: 5, 0x14 .. 0x17: 2         instructions 0x10: 5, 0x14: 7, 0x17: 7
 *
 * A run begins at an instruction; the lengths of x86 instructions lead to the following ones.  Runs with a jump or a
 * return before their last instruction are wrong (some processors record a branch twice) and left out, counted.
 *
 * Units: link-time addresses; executions.  Memory: linear in the bytes of code that runs cover.
 * Source: Intel's Software Developer's Manual, volume 2, appendix A; llvm-profgen has the same rule for wrong runs.
 */
#pragma once

#include "core/core.h"

enum fp_pgo_machine { FP_PGO_X86 = 1, FP_PGO_X86_64 = 2, FP_PGO_WORDS = 3 /* AArch64 and others: 4 bytes each */ };
enum { FP_PGO_LONGEST_RUN = 1 << 20 }; /* bytes; longer ones are left out */

struct fp_pgo_executed {
    uint64_t *address; /* n of them, ascending */
    int64_t *count;
    uint8_t *size; /* bytes */
    uint64_t n;
    uint64_t wrong;  /* runs left out */
    uint64_t beyond; /* runs outside of the code */

    /* private from here on */
    uint32_t cap_address, cap_count, cap_size;
    uint64_t *starts; /* of the instructions of connected runs, and where the last one ends */
    uint32_t *ends;   /* by start: jumps and returns before it */
    int64_t *change;  /* by start: the difference of its count to that of the one before */
    uint32_t n_starts, cap_starts, cap_ends, cap_change;
};

struct fp_pgo_executed *fp_pgo_executed_new(void);
void fp_pgo_executed_free(struct fp_pgo_executed *e);

/* Adds what `n` runs executed, which are sorted by their start and in the `size` bytes of code at an address.  0, or
 * FP_E_OVERFLOW. */
int fp_pgo_execute(struct fp_pgo_executed *e, int machine, const uint8_t *code, uint64_t size, uint64_t at,
                   const uint64_t *start, const uint64_t *end, const int64_t *count, uint64_t n, struct fp_err *err);

/* Adds all instructions of the `size` bytes of code at an address, with count 0. */
int fp_pgo_instructions(struct fp_pgo_executed *e, int machine, const uint8_t *code, uint64_t size, uint64_t at);

/* The length of an x86 instruction of up to n bytes, 0 if it is none.  *leaves: it is a jump or a return. */
uint32_t fp_pgo_x86_length(const uint8_t *p, uint64_t n, int is_64, int *leaves);
