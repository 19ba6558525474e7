/* Frames of the model, made from functions and addresses or from the locations of raw profiles. */
#include "firefox/read_private.h"

/* "[libc.so.6+0x7f12]": how fastprof shows an address without a name. */
static int is_shown_address(const uint8_t *p, size_t n) {
    size_t at = n - 1;
    uint64_t address;
    if (n < 6 || p[0] != '[' || p[n - 1] != ']') return 0;
    while (at > 1 && fp_nibble(p[at - 1]) < 16) at--;
    return at >= 4 && p[at - 3] == '+' && fp_is_hex(p + at - 2, n - 1 - (at - 2), &address);
}

/* A frame without inlined functions. */
static uint32_t named(struct fp_firefox_read *r, const struct fp_firefox_func *func, uint32_t object, uint32_t mapping,
                      uint64_t address, uint32_t flags, uint32_t line, uint32_t column) {
    struct fp_model *m = r->model;
    const uint32_t name = func->name ? func->name : fp_strings_intern(&m->strings, "[unknown]", 9);
    const uint32_t function = fp_model_function(m, object, func->file, name, 0, func->line);
    const uint32_t lines = fp_model_line(m, function, line, column, 0);
    return fp_model_frame(m, mapping, address, flags, lines);
}

uint32_t fp_firefox_frame(struct fp_firefox_read *r, const struct fp_firefox_func *func, uint32_t lib, int64_t address,
                          uint32_t line, uint32_t column) {
    struct fp_model *m = r->model;
    size_t n;
    uint64_t stated;
    const uint8_t *p = fp_string(&m->strings, func->name, &n);
    if (!lib) return named(r, func, 0, 0, 0, 0, line, column);
    const struct fp_firefox_lib *l = &r->libs[lib - 1];
    if (address < 0 || !l->mapping || address >> 40) return named(r, func, l->object, 0, 0, 0, line, column);
    const uint64_t there = l->base + (uint64_t)address;
    const uint32_t flags = r->rows.returns ? FP_FRAME_RETURN_ADDRESS : 0;
    if (fp_is_hex(p, n, &stated) || is_shown_address(p, n)) return fp_model_frame(m, l->mapping, there, flags, 0);
    return named(r, func, l->object, l->mapping, there, flags, line, column);
}

/* The library of the current process that contains an address: the last one that starts at or before it.  NULL if
 * there is none. */
static const struct fp_firefox_lib *lib_at(const struct fp_firefox_read *r, uint64_t address) {
    const uint32_t first = r->rows.first_lib;
    const struct fp_firefox_lib *l = r->libs; /* NULL: there are none */
    uint32_t at = first;
    FP_BISECT(at, first + r->rows.n_own_libs, l[at].start == FP_FIREFOX_NONE || (uint64_t)l[at].start <= address);
    if (at == first) return NULL;
    l += at - 1;
    return l->start != FP_FIREFOX_NONE && l->mapping && (uint64_t)l->end > address ? l : NULL;
}

/* Removes ":12" from the end of p[0..*n) and stores the number.  Returns 0 if there is none. */
static int take_number(const uint8_t *p, size_t *n, uint32_t *number) {
    size_t at = *n;
    while (at && fp_is_digit(p[at - 1])) at--;
    if (at == *n || !at || p[at - 1] != ':') return 0;
    uint64_t v = 0;
    for (size_t i = at; i < *n && v < UINT32_MAX; i++) v = v * 10 + (uint64_t)(p[i] - '0');
    *number = v < UINT32_MAX ? (uint32_t)v : 0;
    *n = at - 1;
    return 1;
}

/* "f (http://x/app.js:3:4)[2]": a function, its definition and the number of its source.  A URL may contain parentheses
 * and colons, so the text is parsed from its end.  Returns whether it has this form. */
static int is_script(const uint8_t *p, size_t n, size_t *n_name, size_t *file_at, size_t *n_file, uint32_t *line) {
    if (n && p[n - 1] == ']') {
        size_t at = n - 1;
        while (at && fp_is_digit(p[at - 1])) at--;
        if (at == n - 1 || at < 2 || p[at - 1] != '[') return 0;
        n = at - 1;
    }
    if (!n || p[n - 1] != ')') return 0;
    n--;
    uint32_t last, first;
    if (!take_number(p, &n, &last)) return 0;
    *line = take_number(p, &n, &first) ? first : last;
    for (size_t at = n; at >= 2; at--)
        if (p[at - 1] == '(' && p[at - 2] == ' ') {
            *n_name = at - 2;
            *file_at = at;
            *n_file = n - at;
            return n > at;
        }
    return 0;
}

uint32_t fp_firefox_location(struct fp_firefox_read *r, uint32_t text, uint32_t line, uint32_t column) {
    struct fp_model *m = r->model;
    struct fp_firefox_func func = {.name = text};
    size_t n, n_name, file_at, n_file;
    uint64_t address;
    const uint8_t *p = fp_string(&m->strings, text, &n);
    if (fp_is_hex(p, n, &address)) {
        const struct fp_firefox_lib *l = lib_at(r, address);
        return fp_model_frame(m, l ? l->mapping : 0, address, r->rows.returns ? FP_FRAME_RETURN_ADDRESS : 0, 0);
    }
    if (is_script(p, n, &n_name, &file_at, &n_file, &func.line)) {
        /* interning a string may move the texts */
        r->scan.scratch.n = 0;
        fp_buf_put(&r->scan.scratch, p, n);
        func.name = n_name ? fp_strings_intern(&m->strings, r->scan.scratch.p, n_name) : 0;
        func.file = fp_strings_intern(&m->strings, r->scan.scratch.p + file_at, n_file);
    }
    return named(r, &func, 0, 0, 0, 0, line, column);
}
