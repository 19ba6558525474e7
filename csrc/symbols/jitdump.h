/* symbols/jitdump.h - code that a JIT compiler generated, as listed in its jit-PID.dump.
 *
 *   header    magic u32 "JiTD", version 1 u32, nbytes u32 = 40, machine u32, padding u32, pid u32, time u64, flags u64
 *   record    kind u32, nbytes u32 with these 16 bytes, time u64, then
 *     0 load    pid, tid u32; vma, address, nbytes, number u64; name NUL; the code
 *     1 move    pid, tid u32; vma, old address, new address, nbytes, number u64
 *     2 lines   address of the code of the next load, n u64; n times address u64, line u32, column u32, file NUL
 *               (a file of the single byte ff: same as the previous one)
 *     3 end, 4 unwinding, others: skipped
 *
 *   00 00 00 00  41 00 00 00  05 00 00 00 00 00 00 00   load, 65 bytes, at 5 ns
 *   01 00 00 00  01 00 00 00  00 10 ... 00 10 ...       of process 1: at 0x1000
 *   02 00 ... 00 00 ...       'f' 'o' 'o' '!' '!' 00    2 bytes, number 0, "foo!!"; then the code
 *
 * Code is identified by its offset in the file, because memory is reused for other code.
 * Source: Linux tools/perf/Documentation/jitdump-specification.txt.
 */
#pragma once

#include "core/core.h"

/* Code that was loaded, or moved, to an address. */
struct fp_jitdump_code {
    uint64_t time;
    uint64_t address, nbytes;
    uint64_t offset; /* of the code in the file; moves do not change it */
    uint64_t loaded; /* offset of the load's record */
    uint64_t lines;  /* offset of the record with its lines, 0 for none */
};

struct fp_jitdump_place {
    const uint8_t *name, *file; /* borrowed from the file */
    uint32_t name_n, file_n;    /* file_n 0: unknown */
    uint32_t line;
};

struct fp_jitdump_stats {
    uint64_t loads, moves;
    uint64_t damaged; /* records that are skipped */
    int32_t is_cut;   /* the last record is incomplete, or the rest is unreadable */
    int32_t is_ticks; /* times are ticks of the processor's counter, not nanoseconds */
};

struct fp_jitdump;

/* Reads a file, which is borrowed.  NULL if the file is not a jitdump. */
struct fp_jitdump *fp_jitdump_new(const uint8_t *p, size_t n, struct fp_err *err);
void fp_jitdump_free(struct fp_jitdump *j);
struct fp_jitdump_stats fp_jitdump_stats(const struct fp_jitdump *j);

/* All code in order of time; *n pieces.  Borrowed. */
const struct fp_jitdump_code *fp_jitdump_codes(const struct fp_jitdump *j, uint64_t *n);

/* Looks up the code at a file offset.  Returns 1 and sets `place`, or 0 if no code is there.  Offsets must ascend: it
 * keeps the sorted lines of one piece of code at a time. */
int fp_jitdump_find(struct fp_jitdump *j, uint64_t offset, struct fp_jitdump_place *place);
