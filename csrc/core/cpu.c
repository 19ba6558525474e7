#include "core/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <stdatomic.h>

#define BIT(n) (1U << (n))
#define HAS(word, bits) (((word) & (bits)) == (bits))

/* Leaf 1 in ECX:  23 POPCNT   27 OSXSAVE   28 AVX
 * Leaf 7 in EBX:   3 BMI1      5 AVX2       8 BMI2   16 AVX512F   17 AVX512DQ   30 AVX512BW   31 AVX512VL
 *           ECX:   1 AVX512_VBMI            6 AVX512_VBMI2
 * XCR0:          1-2 registers of 128 and 256 bits    5-7 those of 512 bits and masks
 */
static uint32_t look(void) {
    unsigned a, b, c, d, leaf1;
    if (!__get_cpuid(1, &a, &b, &leaf1, &d) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    uint32_t found = 0, saved = 0;
    if (HAS(leaf1, BIT(23)) && HAS(b, BIT(3) | BIT(8))) found |= FP_CPU_BMI;
    if (HAS(leaf1, BIT(27) | BIT(28))) __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if (!HAS(saved, 0x06U) || !HAS(b, BIT(5))) return found;
    found |= FP_CPU_AVX2;
    if (HAS(saved, 0xe6U) && HAS(b, BIT(16) | BIT(17) | BIT(30) | BIT(31)) && HAS(c, BIT(1) | BIT(6)))
        found |= FP_CPU_AVX512;
    return found;
}

uint32_t fp_cpu(void) {
    /* Kept, because a virtual machine needs a microsecond for each CPUID. */
    static _Atomic uint32_t kept = UINT32_MAX;
    uint32_t found = atomic_load_explicit(&kept, memory_order_relaxed);
    if (found == UINT32_MAX) {
        found = look();
        atomic_store_explicit(&kept, found, memory_order_relaxed);
    }
    return found;
}
#else
uint32_t fp_cpu(void) {
    return 0;
}
#endif
