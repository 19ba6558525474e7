/* Sample files, and the symbols of ELF files and kallsyms, under the fuzzer.  The same bytes are read as all three.
 * The last byte also chooses options, the one before it the size of a window; so a file replays unchanged. */
#include "mutate.h"
#include "oprofile/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a sample file, `step` bytes at a time. */
static int read_file(struct fp_oprofile_reader *r, const uint8_t *data, size_t size, size_t step) {
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE) {
        status = fp_oprofile_feed(r, show(&window, status), &err);
        hide(&window, status, &err);
        if (status == FP_FULL || status == FP_NEEDS) abort();
    }
    return status;
}

/* Each symbol begins after the previous one, and its name is in the names. */
static void check_symbols(const struct fp_oprofile_image *image, int64_t n) {
    if (n >= 0 && (uint64_t)n != image->n_symbols) abort();
    for (uint32_t i = 0; i < image->n_symbols; i++) {
        if (i && image->symbols[i - 1].start >= image->symbols[i].start) abort();
        if (i && image->symbols[i - 1].end > image->symbols[i].start) abort();
        size_t nbytes;
        fp_oprofile_name(image, i, &nbytes);
        if (image->symbols[i].name + nbytes > image->names_nbytes) abort();
    }
    for (uint32_t i = 1; i < image->n_sections; i++)
        if (image->sections[i - 1].start > image->sections[i].start) abort();
}

/* All rows; returns the sum of their values. */
static uint64_t read_rows(struct fp_oprofile_reader *r, struct fp_model *m, uint32_t cap) {
    struct fp_batch *batch = fp_batch_new(FP_GRAPH, cap, 1);
    struct fp_err err;
    uint64_t sum = 0;
    int status;
    do {
        status = fp_oprofile_rows(r, batch, &err);
        if (status < 0) abort();
        if (status == FP_NEEDS)
            r->requested_image->symbols[r->requested_symbol].function = fp_model_function(m, 0, 0, 0, 0, 1);
        if (status == FP_FULL && batch->n != cap) abort();
        for (uint32_t i = 0; i < batch->n && status != FP_NEEDS; i++) {
            if (batch->function[i] >= m->functions.n) abort();
            if (batch->kind[i] == FP_CALL && batch->callee[i] >= m->functions.n) abort();
            for (uint32_t k = 0; k < batch->n_values; k++) sum += (uint64_t)batch->values[k * batch->cap + i];
        }
        if (status != FP_NEEDS) fp_batch_reset(batch);
    } while (status != FP_DONE);
    fp_batch_free(batch);
    return sum;
}

/* ---- the mutator --------------------------------------------------------- */

/* Numbers of an ELF file's section headers, or of its symbols, or the text of their names. */
static void change_elf(struct input *in) {
    const int wide = in->p[4] == 2;
    const uint32_t word = wide ? 8 : 4, entry = wide ? 64 : 40, symbol = wide ? 24 : 16;
    in->big = in->p[5] == 2;
    const uint64_t sections = get(in, in->p + (wide ? 40 : 32), word), n = get(in, in->p + (wide ? 60 : 48), 2);
    if (!n || sections > in->n || n * entry > in->n - sections || !below(in, 16)) {
        change_number(in, 16, 18, 2);
        return;
    }
    const uint8_t *p = in->p + sections + entry * below(in, n);
    const uint64_t type = get(in, p + 4, 4), at = get(in, p + 8 + 2 * word, word),
                   size = get(in, p + 8 + 3 * word, word);
    if (below(in, 4) == 0)
        change_number(in, (size_t)(p - in->p), entry / 4, 4);
    else if (at > in->n || size > in->n - at)
        change_number(in, (size_t)(p - in->p) + 8 + word, 3, word);
    else if (type == 3 || size < symbol)
        change_bytes(in, (size_t)at, (size_t)size, 0);
    else if (below(in, 2))
        change_number(in, (size_t)at, (size_t)size / 4, 4);
    else
        memmove(in->p + at + symbol * below(in, size / symbol), in->p + at + symbol * below(in, size / symbol), symbol);
}

/* For sample files libFuzzer's own mutations find as much. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    const int samples = n >= 64 && !memcmp(data, "DAE\n", 4), elf = n >= 64 && !memcmp(data, "\177ELF", 4);
    struct pieces lines;
    find_lines(&in, 0, &lines);
    if (n < 2 || below(&in, 3) == 0 || samples || !(elf || lines.n > 1)) return LLVMFuzzerMutate(data, n, max);
    if (!below(&in, 8)) data[n - 1] = (uint8_t)below(&in, 256); /* the options */
    for (uint32_t changes = 1 + below(&in, 3); elf && changes--;) change_elf(&in);
    if (!elf) change_pieces(&in, &lines);
    return in.n;
}

/* -------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    const size_t step = data[size - 2] ? data[size - 2] : size;
    const int lenient = options & 1, arcs = options >> 1 & 1, other = options >> 2 & 1;
    struct fp_model *m = fp_model_new();
    struct fp_oprofile_image *elf = fp_oprofile_image_new(m, 0, 0), *kernel = fp_oprofile_image_new(m, 0, 0);
    check_symbols(elf, other ? fp_oprofile_image_elf(elf, data, size / 2, data + size / 2, size - size / 2, 0)
                             : fp_oprofile_image_elf(elf, data, size, data, size, options >> 3 & 1));
    check_symbols(kernel, fp_oprofile_image_kallsyms(kernel, data, size, other));
    struct fp_oprofile_reader *r = fp_oprofile_reader_new(lenient);
    fp_oprofile_sniff(data, size);
    if (other) {
        r->has_abi = 1;
        memcpy(&r->abi, data + size / 3, sizeof r->abi < size / 3 ? sizeof r->abi : size / 3);
    }
    fp_oprofile_begin_group(r);
    uint64_t samples = 0;
    for (uint32_t column = 0; column < 2; column++) {
        fp_oprofile_begin_file(r, size, column, 1);
        read_file(r, data, size, step);
        samples += r->samples;
    }
    if (fp_oprofile_end_group(r, elf, options, arcs ? kernel : NULL, step, 2)) abort();
    if (read_rows(r, m, 1 + (options >> 4)) != samples) abort();
    fp_oprofile_reader_free(r);
    fp_oprofile_image_free(elf);
    fp_oprofile_image_free(kernel);
    fp_model_free(m);
    return 0;
}
