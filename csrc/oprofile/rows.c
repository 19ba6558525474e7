/* The rows of a group of sample files. */
#include "oprofile/private.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* ---- sorting ---- */

/* Sorts the entries by key, stable.  Digits that are equal in all keys are skipped, so offsets of an image of 4 MiB
 * take two passes. */
static void sort(struct fp_oprofile_reader *r) {
    const uint32_t n = r->n_entries;
    uint64_t varying = 0, unsorted = 0;
    for (uint32_t i = 1; i < n; i++) {
        varying |= r->entries[i].key ^ r->entries[0].key;
        unsorted |= r->entries[i].key < r->entries[i - 1].key;
    }
    if (!unsorted) return;
    fp_array_room(&r->scratch, &r->cap_scratch, n, sizeof *r->scratch);
    for (uint32_t shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(varying >> shift & (DIGITS - 1))) continue;
        uint32_t at[DIGITS] = {0};
        for (uint32_t i = 0; i < n; i++) at[r->entries[i].key >> shift & (DIGITS - 1)]++;
        for (uint32_t d = 0, sum = 0; d < DIGITS; d++) {
            const uint32_t here = at[d];
            at[d] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < n; i++) r->scratch[at[r->entries[i].key >> shift & (DIGITS - 1)]++] = r->entries[i];
        struct fp_oprofile_entry *sorted = r->scratch;
        r->scratch = r->entries;
        r->entries = sorted;
        const uint32_t cap = r->cap_scratch;
        r->cap_scratch = r->cap_entries;
        r->cap_entries = cap;
    }
}

int fp_oprofile_end_group(struct fp_oprofile_reader *r, struct fp_oprofile_image *from, uint64_t from_shift,
                          struct fp_oprofile_image *to, uint64_t to_shift, uint32_t n_values) {
    r->from = from;
    r->from_shift = from_shift;
    r->to = to;
    r->to_shift = to_shift;
    r->n_values = n_values;
    sort(r);
    return 0;
}

/* ---- places ---- */

/* A run of file positions that belong to the same function and section. */
struct section_place {
    uint64_t start, end;
    uint32_t symbol; /* of the image, or NO_SYMBOL */
    uint64_t bias;   /* address - position */
};
enum { NO_SYMBOL = 0xffffffffu };

/* The symbol that contains a position, and its extent. */
static void find_symbol(const struct fp_oprofile_image *image, uint64_t position, struct section_place *place) {
    uint32_t low = 0;
    FP_BISECT(low, image->n_symbols, image->symbols[low].start <= position);
    const struct fp_oprofile_symbol *before = low ? &image->symbols[low - 1] : NULL;
    if (before && position < before->end) {
        *place = (struct section_place){before->start, before->end, low - 1, 0};
        return;
    }
    place->start = before ? before->end : 0;
    place->end = low < image->n_symbols ? image->symbols[low].start : UINT64_MAX;
    place->symbol = NO_SYMBOL;
}

/* The number of sections that begin at or before a position. */
static uint32_t sections_before(const struct fp_oprofile_image *image, uint64_t position) {
    uint32_t low = 0;
    FP_BISECT(low, image->n_sections, image->sections[low].start <= position);
    return low;
}

const struct fp_oprofile_section *fp_oprofile_section_at(const struct fp_oprofile_image *image, uint64_t position) {
    const uint32_t n = sections_before(image, position);
    return n && position < image->sections[n - 1].end ? &image->sections[n - 1] : NULL;
}

/* The section of a position: narrows the place to it, or to the gap between two sections. */
static void find_section(const struct fp_oprofile_image *image, uint64_t position, struct section_place *place) {
    const uint32_t low = sections_before(image, position);
    const struct fp_oprofile_section *before = low ? &image->sections[low - 1] : NULL;
    const int inside = before && position < before->end;
    uint64_t start = 0, end = UINT64_MAX;
    if (before) start = inside ? before->start : before->end;
    if (low < image->n_sections) end = image->sections[low].start;
    if (inside && end > before->end) end = before->end;
    if (place->start < start) place->start = start;
    if (place->end > end) place->end = end;
    place->bias = inside ? before->address - before->start : 0;
}

uint64_t fp_oprofile_address(const struct fp_oprofile_image *image, uint64_t position) {
    const struct fp_oprofile_section *section = fp_oprofile_section_at(image, position);
    return section ? position - section->start + section->address : position;
}

/* Whether a name can be added unchanged; the caller demangles others. */
static int is_plain(const uint8_t *name, size_t n) {
    return n && name[0] != '_' && name[0] != '?';
}

/* The function of a place.  0; FP_NEEDS if the caller has to add it. */
static int function_of(struct fp_oprofile_reader *r, struct fp_oprofile_image *image, const struct section_place *place,
                       uint32_t *function) {
    if (place->symbol == NO_SYMBOL) {
        *function = image->whole;
        return 0;
    }
    struct fp_oprofile_symbol *symbol = &image->symbols[place->symbol];
    if (!symbol->function) {
        size_t n;
        const uint8_t *name = fp_oprofile_name(image, place->symbol, &n);
        if (image->ask || !is_plain(name, n)) {
            r->requested_image = image;
            r->requested_symbol = place->symbol;
            return FP_NEEDS;
        }
        const uint32_t string = fp_strings_intern(&image->model->strings, name, n);
        symbol->function = fp_model_function(image->model, image->object, 0, string, 0, 0);
    }
    *function = symbol->function;
    return 0;
}

/* Moves to the place and the function of a position, which is usually in the same place as the previous one. */
static inline int move_to(struct fp_oprofile_reader *r, struct fp_oprofile_image *image, uint64_t position,
                          struct section_place *place, uint32_t *function) {
    if (FP_LIKELY(position - place->start < place->end - place->start)) return 0;
    find_symbol(image, position, place);
    find_section(image, position, place);
    const int status = function_of(r, image, place, function);
    if (status) place->end = place->start; /* look it up again */
    return status;
}

/* ---- rows ---- */

/* Sums the entries of one key, from entry `i` on.  Returns the entry after them, or 0 when a sum overflows. */
static uint32_t add_up(const struct fp_oprofile_reader *r, uint32_t i, int64_t *values, size_t stride) {
    const uint64_t key = r->entries[i].key;
    for (; i < r->n_entries && r->entries[i].key == key; i++) {
        const struct fp_oprofile_entry *e = &r->entries[i];
        int64_t *value = values + (e->column >> 1) * stride;
        const int64_t more = e->column & 1 ? -(int64_t)e->value : (int64_t)e->value;
        if (__builtin_add_overflow(*value, more, value)) return 0;
    }
    return i;
}

int fp_oprofile_rows(struct fp_oprofile_reader *r, struct fp_batch *out, struct fp_err *err) {
    if (out->n_values != r->n_values) fp_batch_set_values(out, r->n_values);
    struct section_place here = {0, 0, NO_SYMBOL, 0}, there = here;
    uint32_t function = 0, callee = 0;
    while (r->next < r->n_entries) {
        if (out->n == out->cap) return FP_FULL;
        const uint64_t key = r->entries[r->next].key;
        const uint64_t position = (r->to ? key >> 32 : key) + r->from_shift;
        const uint64_t target = (key & UINT32_MAX) + r->to_shift;
        FP_TRY(move_to(r, r->from, position, &here, &function));
        if (r->to) FP_TRY(move_to(r, r->to, target, &there, &callee));
        const uint32_t i = out->n;
        int64_t *values = out->values + i;
        for (uint32_t k = 0; k < r->n_values; k++) values[(size_t)k * out->cap] = 0;
        const uint32_t next = add_up(r, r->next, values, out->cap);
        if (!next) return fp_fail_got(err, FP_E_OVERFLOW, 0, "the sum of samples", 0, 0, "less than 2^63", 0);
        r->next = next;
        fp_batch_cost(out, function, 0, 0, r->to ? callee : 0);
        out->address[i] = position + here.bias;
        if (r->to) {
            out->kind[i] = FP_CALL;
            out->target_address[i] = target + there.bias;
            for (uint32_t k = 0; k < r->n_values; k++) {
                const int64_t value = values[(size_t)k * out->cap];
                out->count[i] += value < 0 ? 0 - (uint64_t)value : (uint64_t)value; /* of a difference: its size */
            }
        }
    }
    return FP_DONE;
}
