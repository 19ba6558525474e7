/* The writer of folded stacks under the fuzzer.  The input is text: its lines are names of functions, and its bytes
 * also choose stacks of them.  The output must be lines that every reader understands alike; the sum of all counts must
 * be that of the rows. */
#include <stdlib.h>

#include "core/utf8.h"
#include "folded/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 16, MOST_ROWS = 48, LONGEST = 24 };

static int is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Aborts unless the n bytes at p are frames, a blank and a count; returns the count. */
static uint64_t check_line(const uint8_t *p, size_t n) {
    uint64_t count = 0;
    size_t at = n, number;
    while (at && is_digit(p[at - 1])) at--;
    if (at == n || at < 2 || p[at - 1] != ' ' || p[at] == '0') abort();
    for (size_t i = at; i < n; i++) count = count * 10 + (uint64_t)(p[i] - '0');
    n = at - 1;
    if (p[0] == '#' || p[0] == ';') abort();
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (!length || p[i] < ' ' || p[i] == 0x7f) abort();
        const int ends = i + 1 == n || p[i + 1] == ';';
        if (p[i] == ';' && ends) abort();                            /* a frame without a name */
        if (p[i] == ' ' && (ends || !i || p[i - 1] == ';')) abort(); /* or with blanks around it */
        if (length == 3 && (!memcmp(p + i, "\xe2\x80\xa8", 3) || !memcmp(p + i, "\xef\xbb\xbf", 3))) abort();
        i += length;
    }
    /* the leaf must not look like a second count */
    for (number = n; number && is_digit(p[number - 1]); number--) {
    }
    if (number && number < n && p[number - 1] == ' ') abort();
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct fp_model *m = fp_model_new();
    struct fp_folded_writer *w = fp_folded_writer_new(m);
    struct fp_batch *b = fp_batch_new(FP_STACKS, ROWS, 1);
    struct fp_buf out = {0};
    struct fp_err err;
    const uint8_t options = data[size - 1];
    uint64_t sum = 0, written = 0;
    uint32_t node = 0;
    for (size_t at = 0, end; at < size && m->frames.n < 200; at = end + 1) {
        for (end = at; end < size && data[end] != '\n' && data[end] != (options & 2 ? ';' : '\n');) end++;
        const size_t n = end - at < LONGEST ? end - at : LONGEST; /* longer ones find nothing new, slowly */
        const uint32_t name = fp_strings_intern(&m->strings, data + at, n);
        fp_model_frame(m, 0, 0, 0, fp_model_line(m, fp_model_function(m, 0, 0, name, 0, 0), 0, 0, 0));
    }
    if (options & 1 && fp_folded_root(w, data[size - 2] % m->strings.n)) abort();
    w->divisor = options & 4 ? 1000 : 1;
    const size_t n_rows = size < MOST_ROWS ? size : MOST_ROWS;
    for (size_t at = 0; at < n_rows; at++) {
        /* deeper, or up again and deeper */
        for (uint32_t up = data[at] >> 6; up && node; up--) node = fp_table_row(&m->stacks, node)[FP_STACK_PARENT];
        node = fp_model_stack(m, node, data[at] % m->frames.n);
        b->stack[b->n] = data[at] == 255 ? 0 : node;
        b->values[b->n] = ((int64_t)data[at] - 20) * (int64_t)w->divisor;
        sum += b->values[b->n] > 0 ? (uint64_t)b->values[b->n] / w->divisor : 0;
        if (++b->n == ROWS || at + 1 == n_rows) {
            if (fp_folded_put(w, b, &out, &err) != FP_DONE) abort();
            fp_batch_reset(b);
        }
    }
    for (size_t at = 0, end; at < out.n; at = end + 1) {
        for (end = at; out.p[end] != '\n';)
            if (++end == out.n) abort();
        written += check_line(out.p + at, end - at);
    }
    if (written != sum) abort();
    fp_buf_free(&out);
    fp_batch_free(b);
    fp_folded_writer_free(w);
    fp_model_free(m);
    return 0;
}
