/* callgrind/wide.h - how functions with vector instructions are compiled.  C only.
 *
 * If FP_WIDE is 1, functions marked FP_AVX2_TARGET may use AVX2 and BMI2, and those marked FP_WIDE_TARGET also AVX-512
 * with VBMI2, whatever the compiler's options.  fp_callgrind_costs_wide() (lines.h) returns which of them this machine
 * can run.
 */
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define FP_WIDE 1
#include <immintrin.h>
#define FP_AVX2_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define FP_WIDE_TARGET \
    __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")))
#else
#define FP_WIDE 0
#endif
