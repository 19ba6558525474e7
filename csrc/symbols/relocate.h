/* symbols/relocate.h - files that are not linked: kernel modules, code generated at run time.
 *
 * Their symbols are relative to their sections, and numbers that a linker would fill in are zero.  The caller chooses
 * an address for each section, its place:
 *
 *   .text is placed at 0x1000         symbol blk_complete   .text + 0x38                       -> 0x1038
 *   .rela.debug_line: byte 0x3b       R_X86_64_64           symbol of .text, addend 0          -> 00 10 00 00 00 ...
 *                     byte 0x22       R_X86_64_32           symbol of .debug_line_str (no place), addend 0x17
 *
 * Supports only the relocations of debug sections: whole addresses of 32 and 64 bits.
 * Source: System V ABI, chapter 4, "Relocation"; the supplements of the processors.
 */
#pragma once

#include "symbols/symtab.h"

/* cffi-begin */

/* Adds the place of its section to each symbol of a table.  `flags`: FP_SYMTAB_SWAP, FP_SYMTAB_WIDE. */
void fp_relocate_symbols(uint8_t *table, size_t n, const uint64_t *places, size_t n_places, uint32_t flags);

/* Applies relocations to a section of `n` bytes; `symbols` are placed.  `addends`: relocations have addends (SHT_RELA),
 * otherwise the addends are in the section.  0, FP_E_MALFORMED for a missing place or symbol, or FP_E_VERSION for an
 * unknown relocation type or machine. */
int fp_relocate(uint8_t *data, size_t n, const uint8_t *relocations, size_t n_relocations, int addends,
                const uint8_t *symbols, size_t n_symbols, uint32_t machine, uint32_t flags);
