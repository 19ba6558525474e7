/* The mutator for text inputs, which follow two bytes of options: part of libFuzzer for Cython. */
#include "mutate.h"

/* The words of a line and the text between them are pieces. */
static void find_words(const struct input *in, size_t at, size_t end, struct pieces *q) {
    begin_pieces(q, at);
    while (q->at[q->n] < end) {
        const uint8_t *p = in->p + q->at[q->n];
        const size_t left = end - q->at[q->n];
        size_t n = 1;
        while (n < left && !memchr(" \t=:;()\n", *p, 8) && !memchr(" \t=:;()\n", p[n], 8)) n++;
        if (!add_piece(q, n, left)) return;
    }
}

static void change_text(struct input *in) {
    static const char *const numbers[] = {
        "0", "1", "+1", "-1", "*", "2", "17", "+300", "0x10", "4294967296", "9223372036854775807"};
    struct pieces lines, words;
    find_lines(in, 2, &lines);
    if (!lines.n || below(in, 2)) {
        change_pieces(in, &lines);
        return;
    }
    const uint32_t i = below(in, lines.n);
    find_words(in, lines.at[i], lines.at[i + 1], &words);
    const uint32_t k = below(in, words.n);
    const char *number = numbers[below(in, sizeof numbers / sizeof *numbers)];
    if (below(in, 2) && in->p[words.at[k]] >= '0' && in->p[words.at[k]] <= '9')
        replace(in, words.at[k], words.at[k + 1] - words.at[k], number, strlen(number));
    else
        change_pieces(in, &words);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 3 || below(&in, 3) == 0) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_text(&in);
    return in.n;
}
