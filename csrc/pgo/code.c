#include "pgo/code.h"

struct fp_pgo_executed *fp_pgo_executed_new(void) {
    return fp_made(sizeof(struct fp_pgo_executed));
}

void fp_pgo_executed_free(struct fp_pgo_executed *e) {
    FP_FREE(e->address, e->count, e->size, e->starts, e->ends, e->change, e);
}

/* The code, and the runs in it. */
struct runs {
    int machine;
    const uint8_t *code;
    uint64_t size, at;
    const uint64_t *start, *end;
    const int64_t *count;
    uint64_t n;
};

static int is_possible(const struct runs *r, uint64_t i) {
    return r->start[i] <= r->end[i] && r->end[i] - r->start[i] < FP_PGO_LONGEST_RUN && r->start[i] >= r->at &&
           r->end[i] - r->at < r->size;
}

/* The length of the instruction at an address, 1 for bytes that are none. */
static uint32_t length_at(const struct runs *r, uint64_t address, int *leaves) {
    *leaves = 0;
    if (r->machine == FP_PGO_WORDS) return 4;
    const uint64_t offset = address - r->at;
    const uint32_t n = fp_pgo_x86_length(r->code + offset, r->size - offset, r->machine == FP_PGO_X86_64, leaves);
    return n ? n : 1;
}

/* Finds the instructions from `address` to `last`.  The start of a run is one, whatever is before it. */
static void decode(struct fp_pgo_executed *e, const struct runs *r, uint64_t first, uint64_t next, uint64_t last) {
    uint32_t n = 0, n_ends = 0;
    for (uint64_t address = r->start[first], run = first; address <= last;) {
        int leaves;
        while (run < next && r->start[run] <= address) run++;
        fp_array_room(&e->starts, &e->cap_starts, (uint64_t)n + 2, sizeof *e->starts);
        fp_array_room(&e->ends, &e->cap_ends, (uint64_t)n + 1, sizeof *e->ends);
        e->starts[n] = address;
        e->ends[n++] = n_ends;
        uint64_t after = address + length_at(r, address, &leaves);
        if (run < next && r->start[run] < after) after = r->start[run];
        n_ends += leaves != 0;
        e->starts[n] = after;
        if (after <= address) break; /* the code ends at 2^64 */
        address = after;
    }
    e->n_starts = n;
}

/* The first instruction at an address or after it. */
static uint32_t find(const struct fp_pgo_executed *e, uint64_t address) {
    uint32_t low = 0;
    FP_BISECT(low, e->n_starts, e->starts[low] < address);
    return low;
}

static void append(struct fp_pgo_executed *e, uint32_t i, int64_t count) {
    *FP_AT(e->address, e->cap_address, e->n) = e->starts[i];
    *FP_AT(e->size, e->cap_size, e->n) = (uint8_t)(e->starts[i + 1] - e->starts[i]);
    *FP_AT(e->count, e->cap_count, e->n) = count;
    e->n++;
}

/* Adds the instructions of connected runs, from `first` up to `next`, which end at `last`. */
static int add(struct fp_pgo_executed *e, const struct runs *r, uint64_t first, uint64_t next, uint64_t last,
               struct fp_err *err) {
    int64_t count = 0;
    decode(e, r, first, next, last);
    fp_array_room(&e->change, &e->cap_change, (uint64_t)e->n_starts + 1, sizeof *e->change);
    memset(e->change, 0, ((size_t)e->n_starts + 1) * sizeof *e->change);
    for (uint64_t i = first; i < next; i++) {
        if (!is_possible(r, i)) continue;
        const uint32_t from = find(e, r->start[i]), to = find(e, r->end[i]);
        if (to == e->n_starts || e->starts[to] != r->end[i] || e->ends[from] != e->ends[to]) {
            e->wrong++;
            continue;
        }
        if (__builtin_add_overflow(e->change[from], r->count[i], &e->change[from]) ||
            __builtin_sub_overflow(e->change[to + 1], r->count[i], &e->change[to + 1]))
            return fp_fail_beyond(err, "the count of an instruction", FP_NO_COLUMN, "2^63 - 1");
    }
    for (uint32_t i = 0; i < e->n_starts; i++) {
        if (__builtin_add_overflow(count, e->change[i], &count))
            return fp_fail_beyond(err, "the count of an instruction", FP_NO_COLUMN, "2^63 - 1");
        if (count) append(e, i, count);
    }
    return 0;
}

int fp_pgo_instructions(struct fp_pgo_executed *e, int machine, const uint8_t *code, uint64_t size, uint64_t at) {
    const uint64_t start = at, end = at + size - 1;
    const struct runs r = {machine, code, size, at, &start, &end, NULL, 1};
    if (!size || size > FP_PGO_LONGEST_RUN || end < at) return 0;
    decode(e, &r, 0, 1, end);
    for (uint32_t i = 0; i < e->n_starts; i++) append(e, i, 0);
    return 0;
}

int fp_pgo_execute(struct fp_pgo_executed *e, int machine, const uint8_t *code, uint64_t size, uint64_t at,
                   const uint64_t *start, const uint64_t *end, const int64_t *count, uint64_t n, struct fp_err *err) {
    const struct runs r = {machine, code, size, at, start, end, count, n};
    uint64_t first = 0, last = 0, i = 0;
    int status = 0;
    for (; i < n && !status; i++) {
        if (!is_possible(&r, i)) {
            e->beyond++;
            if (first == i) first = i + 1; /* connected runs begin with a possible one */
            continue;
        }
        if (first < i && start[i] > last) {
            status = add(e, &r, first, i, last, err);
            first = i;
            last = end[i];
        } else if (first == i || end[i] > last) {
            last = end[i];
        }
    }
    return status || first == n ? status : add(e, &r, first, n, last, err);
}
