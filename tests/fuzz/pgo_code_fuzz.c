/* Lengths of x86 instructions, and instructions of straight runs, against a slow count.  The first bytes choose the
 * machine and the runs. */
#include <stdlib.h>
#include <string.h>

#include "pgo/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64, AT = 0x1000 };

/* How often the instruction at an address is executed, if all runs inside of the code are right. */
static int64_t slowly(const uint64_t *start, const uint64_t *end, const int64_t *count, uint64_t n, uint64_t size,
                      uint64_t address) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        if (start[i] >= AT && end[i] < AT + size && start[i] <= address && address <= end[i]) sum += count[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t start[MOST], end[MOST], n = 0;
    int64_t count[MOST];
    struct fp_err err;
    if (size < 2) return 0;
    const int machine = 1 + data[0] % 3;
    const uint64_t wanted = data[1] % MOST;
    data += 2;
    size -= 2;
    while (n < wanted && size >= 3) {
        const uint64_t at = AT - 2 + data[0];
        if (n && at < start[n - 1]) break;
        start[n] = at;
        end[n] = at + data[1] - (data[1] > 250 ? 255 : 0);
        count[n++] = data[2];
        data += 3;
        size -= 3;
    }
    struct fp_pgo_executed *e = fp_pgo_executed_new();
    if (fp_pgo_execute(e, machine, data, size, AT, start, end, count, n, &err)) abort();
    for (uint64_t i = 0; i < e->n; i++) {
        if (e->address[i] < AT || e->address[i] - AT >= size || !e->size[i] || e->size[i] > 15) abort();
        if (i && e->address[i] <= e->address[i - 1]) abort();
        const int64_t most = slowly(start, end, count, n, size, e->address[i]);
        if (e->count[i] > most || (!e->wrong && e->count[i] != most)) abort();
    }
    const uint64_t executed = e->n;
    fp_pgo_instructions(e, machine, data, size, AT);
    for (uint64_t i = executed; i < e->n; i++)
        if (e->count[i] || e->address[i] - AT >= size) abort();
    fp_pgo_executed_free(e);
    return 0;
}
