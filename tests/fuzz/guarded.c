/* What libFuzzer and replay.c call: a target, within the guard that the build sets around calls from Python
 * (core/guard.h). The Makefile gives the functions of targets, which have the name that libFuzzer expects, another one.
 */
#include "core/guard.h"

int fp_fuzz_one(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct fp_guard guard;
    fp_guard_enter(&guard);
    if (!setjmp(guard.to)) fp_fuzz_one(data, n);
    fp_guard_leave(&guard);
    return 0;
}
