#include "symbols/relocate.h"

enum { SYMBOL_32 = 16, SYMBOL_64 = 24, RESERVED = 0xff00, NONE = -1 };

/* The relocations of each machine that store an address. */
static const struct {
    uint32_t machine;
    int of_4, of_4_signed, of_8; /* types, by the bytes of the number */
} kinds[] = {
    {3, 1, NONE, NONE},    /* i386: R_386_32 */
    {8, 2, NONE, NONE},    /* MIPS */
    {20, 1, NONE, NONE},   /* PowerPC: R_PPC_ADDR32 */
    {21, 1, NONE, 38},     /* PowerPC, 64 bits: R_PPC64_ADDR32, _ADDR64 */
    {22, 4, NONE, 22},     /* S/390: R_390_32, _64 */
    {40, 2, NONE, NONE},   /* ARM: R_ARM_ABS32 */
    {62, 10, 11, 1},       /* x86-64: R_X86_64_32, _32S, _64 */
    {183, 258, NONE, 257}, /* AArch64: R_AARCH64_ABS32, _ABS64 */
};

/* The size in bytes of the number that a relocation stores; 0: no effect; -1: unknown. */
static int width_of(uint32_t machine, uint32_t type) {
    if (!type) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].machine != machine) continue;
        if ((int)type == kinds[i].of_4 || (int)type == kinds[i].of_4_signed) return 4;
        if ((int)type == kinds[i].of_8) return 8;
    }
    return -1;
}

static void put(uint8_t *p, uint64_t value, int width, int swap) {
    if (width == 8) {
        if (swap) value = __builtin_bswap64(value);
        memcpy(p, &value, 8);
    } else {
        uint32_t word = (uint32_t)value;
        if (swap) word = __builtin_bswap32(word);
        memcpy(p, &word, 4);
    }
}

static uint64_t take(const uint8_t *p, int width, int swap) {
    return width == 8 ? fp_u64s(p, swap) : fp_u32s(p, swap);
}

void fp_relocate_symbols(uint8_t *table, size_t n, const uint64_t *places, size_t n_places, uint32_t flags) {
    const int swap = !!(flags & FP_SYMTAB_SWAP), wide = !!(flags & FP_SYMTAB_WIDE);
    const size_t step = wide ? SYMBOL_64 : SYMBOL_32;
    for (uint8_t *p = table; n >= step; p += step, n -= step) {
        const uint32_t section = fp_u16s(p + (wide ? 6 : 14), swap);
        uint8_t *value = p + (wide ? 8 : 4);
        const int width = wide ? 8 : 4;
        if (section < n_places && section < RESERVED)
            put(value, take(value, width, swap) + places[section], width, swap);
    }
}

int fp_relocate(uint8_t *data, size_t n, const uint8_t *relocations, size_t n_relocations, int addends,
                const uint8_t *symbols, size_t n_symbols, uint32_t machine, uint32_t flags) {
    const int swap = !!(flags & FP_SYMTAB_SWAP), wide = !!(flags & FP_SYMTAB_WIDE), word = wide ? 8 : 4;
    const size_t step = (size_t)word * (addends ? 3 : 2), symbol_step = wide ? SYMBOL_64 : SYMBOL_32;
    for (const uint8_t *p = relocations; n_relocations >= step; p += step, n_relocations -= step) {
        const uint64_t at = take(p, word, swap), info = take(p + word, word, swap);
        const uint64_t symbol = wide ? info >> 32 : info >> 8;
        const int width = width_of(machine, (uint32_t)(wide ? info & UINT32_MAX : info & 0xff));
        if (width < 0) return FP_E_VERSION;
        if (!width) continue;
        if (at > n || n - at < (size_t)width || symbol >= n_symbols / symbol_step) return FP_E_MALFORMED;
        const uint8_t *value = symbols + symbol * symbol_step + (wide ? 8 : 4);
        const uint64_t addend = addends ? take(p + 2 * word, word, swap) : take(data + at, width, swap);
        put(data + at, take(value, word, swap) + addend, width, swap);
    }
    return 0;
}
