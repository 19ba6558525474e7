/* core/cpu.h - which vector instructions this machine has.
 *
 * __builtin_cpu_supports reads a table in the compiler's runtime library.  Zig, which compiles our wheels, never fills
 * it, so the answer would always be no.
 */
#pragma once

#include <stdint.h>

/* cffi-begin */
enum {
    FP_CPU_BMI = 1,    /* BMI1, BMI2 and POPCNT */
    FP_CPU_AVX2 = 2,   /* and the system saves the wide registers */
    FP_CPU_AVX512 = 4, /* F, BW, DQ, VL, VBMI and VBMI2; likewise */
};

/* A set of FP_CPU_*; 0 on machines other than x86-64.  Thread-safe. */
uint32_t fp_cpu(void);
