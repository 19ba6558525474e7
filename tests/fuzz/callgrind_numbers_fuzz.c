/* Fuzz target: the table of Callgrind's numbers.  Five bytes of input are some consecutive numbers, of any size, to
 * look up, name or bind.  Checked besides memory: lookups agree with a replay of the input, whatever the table has
 * moved since, and the bytes per number are bounded.
 *
 *     bits 0..5 shift, 6..7 one number, 8, 64 or 512 | the first, 16 bits, to be shifted | name | what is done
 */
#include <stdint.h>
#include <stdlib.h>

#include "callgrind/numbers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { RECORD = 5, RECORDS = 24, NUMBERS = 1200 };

struct row {
    uint64_t first, n;
    uint32_t name;
    enum { LOOKED_UP, NAMED, BOUND } what;
};

static void check(int right) {
    if (!right) abort();
}

static struct fp_callgrind_number replay(const struct row *rows, size_t n, uint64_t id) {
    struct fp_callgrind_number number = {0};
    for (const struct row *row = rows; row != rows + n; row++) {
        if (id - row->first >= row->n) continue;
        if (row->what == NAMED && number.name != row->name) {
            number.name = row->name;
            number.function = 0;
        } else if (row->what == BOUND) {
            number.function = (uint32_t)id + 1;
            number.file = row->name;
        }
    }
    return number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct fp_callgrind_numbers t = {0};
    struct row rows[RECORDS];
    uint64_t n_rows = 0, numbers = 0;
    for (; (n_rows + 1) * RECORD <= n && n_rows < RECORDS && numbers < NUMBERS; n_rows++, data += RECORD) {
        struct row *row = &rows[n_rows];
        row->first = ((uint64_t)fp_u16(data + 1) << (data[0] & 63)) & (UINT64_MAX >> 1);
        row->n = (uint64_t)1 << (data[0] >> 6) * 3;
        if (row->n > (UINT64_MAX >> 1) - row->first) row->n = (UINT64_MAX >> 1) - row->first + 1;
        row->name = data[3] + 1u;
        row->what = data[4] % 3;
        numbers += row->n;
        for (uint64_t id = row->first; id - row->first < row->n; id++) {
            struct fp_callgrind_number *number = fp_callgrind_numbers_find(&t, id);
            check(number && fp_callgrind_numbers_place_of(&t, id));
            if (row->what == NAMED) {
                fp_callgrind_numbers_define(&t, number, row->name);
            } else if (row->what == BOUND) {
                number->function = (uint32_t)id + 1;
                number->file = row->name;
            }
        }
    }
    size_t nbytes = t.far ? (t.far_mask + 1) * sizeof *t.far : 0, named = 0, far = 0, distinct = 0;
    for (unsigned k = 0; k < 64; k++) nbytes += t.segment[k] ? sizeof *t.segment[k] << k : 0;
    for (size_t i = 0; i < n_rows; i++)
        for (uint64_t id = rows[i].first; id - rows[i].first < rows[i].n; id++) {
            size_t before = 0;
            while (before < i && id - rows[before].first >= rows[before].n) before++;
            if (before < i) continue; /* seen before */
            const struct fp_callgrind_number *is = fp_callgrind_numbers_find(&t, id), ought = replay(rows, n_rows, id);
            check(is && is->name == ought.name && is->function == ought.function && is->file == ought.file);
            check(!is->again && !is->object && !is->object_assumed);
            distinct++;
            named += is->name != 0;
            far += !t.segment[fp_callgrind_numbers_segment(id)];
        }
    check(t.n == named && t.n_far == far);
    check(nbytes <= ((size_t)1 << 16) + 256 * (distinct + 24)); /* 24: an empty hash table */
    fp_callgrind_numbers_clear(&t);
    return 0;
}
