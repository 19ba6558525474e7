#include "symbols/maps.h"

/* The position in a line that is being read; `end` once the line is found to be different. */
struct cursor {
    const uint8_t *p, *end;
};

static int is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* By byte: 1 more than the value of a digit; 0 for others, including capital letters. */
static const uint8_t digit_of[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};

/* Skips one byte if it is `wanted`, otherwise fails. */
static int skip(struct cursor *c, uint8_t wanted) {
    return c->p < c->end && *c->p == wanted ? ((void)c->p++, 1) : 0;
}

/* Reads digits of `base`; returns their number. */
static size_t digits(struct cursor *c, unsigned base, uint64_t *value) {
    const uint8_t *p = c->p;
    uint64_t found = 0;
    for (unsigned d; p < c->end && (d = digit_of[*p] - 1u) < base; p++) found = found * base + d;
    const size_t n = (size_t)(p - c->p);
    c->p = p;
    *value = found;
    return n;
}

/* Reads an address of at most 16 digits; returns their number, 0 if it is none. */
static size_t address(struct cursor *c, uint64_t *value) {
    const size_t n = digits(c, 16, value);
    return n <= 16 ? n : 0;
}

/* r-xp */
static int permissions(struct cursor *c, int *executable) {
    const uint8_t *p = c->p;
    if (c->end - p < 4) return 0;
    c->p += 4;
    *executable = p[2] == 'x';
    return (p[0] == 'r' || p[0] == '-') && (p[1] == 'w' || p[1] == '-') && (p[2] == 'x' || p[2] == '-') &&
           (p[3] == 'p' || p[3] == 's');
}

/* Reads a line and its newline; 0 if it looks different. */
static int read_line(struct cursor *c, const uint8_t *text, struct fp_maps_range *range, int *executable) {
    uint64_t ignored;
    const size_t n_start = address(c, &range->start);
    if (!n_start || !skip(c, '-') || address(c, &range->limit) != n_start || range->start >= range->limit) return 0;
    if (!skip(c, ' ') || !permissions(c, executable) || !skip(c, ' ') || !address(c, &range->offset)) return 0;
    if (!skip(c, ' ') || !digits(c, 16, &ignored) || !skip(c, ':') || !digits(c, 16, &ignored)) return 0;
    if (!skip(c, ' ') || !digits(c, 10, &ignored)) return 0;
    const uint8_t *first = c->p, *last;
    while (c->p < c->end && *c->p != '\n' && *c->p != '\r' && *c->p != '$') c->p++; /* $: a variable */
    last = c->p;
    if ((last > first && *first != ' ') || !skip(c, '\n')) return 0;
    while (first < last && is_space(*first)) first++;
    while (last > first && is_space(last[-1])) last--;
    range->path = (size_t)(first - text);
    range->n_path = (size_t)(last - first);
    return 1;
}

size_t fp_maps_lines(const uint8_t *text, size_t n, struct fp_maps_range *found, size_t most, size_t *n_found) {
    struct cursor c = {text, text + n};
    size_t read = 0;
    int executable = 0;
    for (*n_found = 0; *n_found < most && read_line(&c, text, &found[*n_found], &executable);
         *n_found += executable != 0)
        read = (size_t)(c.p - text);
    return read;
}
