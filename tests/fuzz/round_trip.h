/* The fuzz target of a JSON format that is read and written.  Before it includes this, a target defines `run`, which
 * reads `data`, `step` bytes at a time, and, if that succeeds (status 0 or above), writes the result to `written`,
 * unless that is NULL.  The output must be read without complaint, too.
 */
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 2 || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_json(&in);
    if (!below(&in, 16)) replace(&in, in.n, 0, &"\n\r\t "[below(&in, 4)], 1); /* the last byte chooses options */
    return in.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct fp_buf written = {0};
    const size_t step = data[size - 2] ? data[size - 2] : size;
    run(data, size, data[size - 1], step, &written);
    trim(&written);
    if (written.n && written.n < 1 << 18 && run(written.p, written.n, 0, written.n, NULL)) abort();
    fp_buf_free(&written);
    return 0;
}
