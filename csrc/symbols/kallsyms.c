#include "symbols/kallsyms.h"

#include "symbols/pairs.h"
#include "symbols/starts.h"

/* A line of the text, without its newline. */
struct line {
    uint64_t address;
    const uint8_t *name;
    size_t n_name;
};

static int is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_type(uint8_t c) {
    switch (c | 32) {
        case 't':
        case 'w':
        case 'd':
        case 'b':
        case 'v': return 1;
        default: return 0;
    }
}

/* Whether a line ends like this: `<tab>[module]`. */
static int is_module(const uint8_t *p, size_t n) {
    if (n < 4 || p[0] != '\t' || p[1] != '[' || p[n - 1] != ']') return 0;
    for (size_t i = 2; i < n - 1; i++)
        if (is_space(p[i]) || p[i] == ']') return 0;
    return 1;
}

/* Reads a line; 0 if it has no symbol to keep. */
static int read_line(const uint8_t *p, size_t n, uint32_t width, struct line *line) {
    *line = (struct line){0};
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t')) n--;
    if (n < width + 4) return 0;
    for (uint32_t i = 0; i < width; i++) {
        const uint8_t c = p[i];
        const unsigned digit = c >= 'a' && c <= 'f' ? c - 'a' + 10u : c - '0' + 0u;
        if (digit > 15 || (digit > 9 && c < 'a')) return 0;
        line->address = line->address << 4 | digit;
    }
    if (p[width] != ' ' || !is_type(p[width + 1]) || p[width + 2] != ' ') return 0;
    line->name = p + width + 3;
    n -= width + 3;
    while (line->n_name < n && !is_space(line->name[line->n_name])) line->n_name++;
    if (!line->n_name) return 0;
    return line->n_name == n || is_module(line->name + line->n_name, n - line->n_name);
}

/* Adds the address of each symbol, and the offset of its name.  Returns their number. */
static size_t read_all(const uint8_t *text, size_t n, uint32_t width, struct fp_pairs_item *pairs) {
    size_t kept = 0;
    for (size_t at = 0, length; at < n; at += length + 1) {
        const uint8_t *end = memchr(text + at, '\n', n - at);
        length = end ? (size_t)(end - text) - at : n - at;
        struct line line;
        if (read_line(text + at, length, width, &line))
            pairs[kept++] = (struct fp_pairs_item){line.address, (uint64_t)(line.name - text)};
    }
    return kept;
}

/* Room for n symbols.  The caller owns it, so request nothing more before it is returned. */
static struct fp_kallsyms *make(size_t n) {
    struct fp_kallsyms *k = fp_scratch(1, sizeof *k);
    k->starts = fp_scratch(n + 1, sizeof *k->starts);
    k->names = fp_scratch(n + 1, sizeof *k->names);
    k->lengths = fp_scratch(n + 1, sizeof *k->lengths);
    fp_scratch_keep(k->starts);
    fp_scratch_keep(k->names);
    fp_scratch_keep(k->lengths);
    return fp_scratch_keep(k);
}

static void add(struct fp_kallsyms *k, uint64_t start, uint64_t name, uint32_t length) {
    k->starts[k->n] = start;
    k->names[k->n] = name;
    k->lengths[k->n++] = length;
}

struct fp_kallsyms *fp_kallsyms_new(const uint8_t *text, size_t n, uint32_t width) {
    struct fp_pairs_item *pairs = fp_scratch(n / (width + 4) + 1, sizeof *pairs); /* the shortest line, its newline */
    const size_t count = read_all(text, n, width, pairs);
    fp_pairs_sort(pairs, count);
    struct fp_kallsyms *k = make(count);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = 0;
        for (size_t at = (size_t)pairs[i].value; at < n && length < UINT32_MAX && !is_space(text[at]); at++) length++;
        add(k, pairs[i].key, pairs[i].value, length);
    }
    fp_scratch_free(pairs);
    return k;
}

struct fp_kallsyms *fp_kallsyms_part(const struct fp_kallsyms *all, const uint8_t *text, size_t n,
                                     const uint8_t *module, size_t n_module) {
    struct fp_kallsyms *k = make((size_t)all->n);
    for (size_t i = 0; i < all->n; i++) {
        /* after the name: the end of the text, of the line, or <tab>[module] */
        const size_t at = (size_t)all->names[i] + all->lengths[i], left = n - at;
        const int is_own = !left || text[at] != '\t' || left < 2 || text[at + 1] != '[';
        const int is_it = !is_own && left >= n_module + 3 && text[at + 2 + n_module] == ']' &&
                          !memcmp(text + at + 2, module, n_module);
        if (n_module ? is_it : is_own) add(k, all->starts[i], all->names[i], all->lengths[i]);
    }
    return k;
}

void fp_kallsyms_free(struct fp_kallsyms *k) {
    FP_FREE(k->starts, k->names, k->lengths, k);
}

int64_t fp_kallsyms_find(const struct fp_kallsyms *k, uint64_t address) {
    return fp_starts_last(k->starts, (size_t)k->n, address);
}

int64_t fp_kallsyms_named(const struct fp_kallsyms *k, const uint8_t *text, const uint8_t *name, size_t n) {
    for (size_t i = 0; i < k->n; i++)
        if (k->lengths[i] == n && !memcmp(text + k->names[i], name, n)) return (int64_t)i;
    return -1;
}
