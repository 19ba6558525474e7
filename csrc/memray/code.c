/* Code objects, and the lines of their instructions. */
#include "memray/state.h"

static void define(struct fp_memray_reader *r, uint64_t id, struct fp_cursor_text function, struct fp_cursor_text file,
                   uint64_t line, const uint8_t *table, uint32_t n_table) {
    struct fp_model *m = r->model;
    const uint32_t row = fp_table_intern(&r->code_ids, (uint32_t[2]){FP_WORDS(id)});
    fp_array_zeroed(&r->code_of, &r->cap_code_of, (uint64_t)row + 1, sizeof *r->code_of);
    fp_array_zeroed(&r->codes, &r->cap_codes, (uint64_t)r->n_codes + 2, sizeof *r->codes);
    fp_bytes_room(&r->tables, &r->cap_tables, r->n_tables + n_table);
    const uint32_t file_name = fp_strings_intern(&m->strings, file.p, file.n);
    const uint32_t name = fp_strings_intern(&m->strings, function.p, function.n);
    const uint32_t number = line <= INT32_MAX ? (uint32_t)line : 0, first = r->f.version > 11 ? number : 0;
    const uint32_t id_of_function = fp_model_function(m, 0, file_name, name, 0, first);
    if (n_table) memcpy(r->tables + r->n_tables, table, n_table);
    r->code_of[row] = ++r->n_codes; /* the later one of two counts */
    r->codes[r->n_codes] = (struct fp_memray_code){r->n_tables, n_table, id_of_function, number, 1, 0, 0};
    r->n_tables += n_table;
}

int fp_memray_read_code(struct fp_memray_reader *r, struct fp_cursor *c) {
    const uint64_t id = fp_cursor_number(c);
    const struct fp_cursor_text function = fp_cursor_text(c), file = fp_cursor_text(c);
    const uint64_t line = r->line + fp_cursor_delta(c), n = fp_cursor_number(c);
    if (c->status) return c->status;
    if (n > UINT32_MAX) return fp_memray_bad(r, "the length of a line table", "less than 2^32");
    if (n > (uint64_t)(c->end - c->p)) return FP_MORE;
    define(r, id, function, file, line, c->p, (uint32_t)n);
    c->p += n;
    r->line = line;
    return 0;
}

int fp_memray_read_frame(struct fp_memray_reader *r, struct fp_cursor *c, int is_numbered, int is_entry) {
    const uint64_t id = is_numbered ? fp_cursor_fixed(c, 8) : r->frame + fp_cursor_delta(c);
    const struct fp_cursor_text function = fp_cursor_text(c), file = fp_cursor_text(c);
    const uint64_t line = is_numbered ? fp_cursor_fixed(c, 4) : r->line + fp_cursor_delta(c);
    if (is_numbered) is_entry = fp_cursor_fixed(c, 1) != 0;
    if (c->status) return c->status;
    define(r, id, function, file, line, NULL, 0);
    r->codes[r->n_codes].is_entry = (uint32_t)is_entry;
    if (!is_numbered) r->frame = id, r->line = line;
    return 0;
}

/* A number of a location table: 6 bits a byte. */
static uint64_t table_number(const uint8_t **p, const uint8_t *end) {
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 60; shift += 6) {
        const uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64)) break;
    }
    return v;
}

/* Adds a span to those from `first` on.  Lines beyond 2^31 - 1 are none. */
static void add_span(struct fp_memray_reader *r, uint32_t first, uint64_t start, uint64_t line) {
    const struct fp_memray_span span = {(uint32_t)start, line <= INT32_MAX ? (uint32_t)line : 0};
    if (r->n_spans > first && r->spans[r->n_spans - 1].line == span.line) return;
    if (r->n_spans > first && r->spans[r->n_spans - 1].start == span.start) r->n_spans--;
    FP_PUSH(r->spans, r->n_spans, r->cap_spans) = span;
}

/* The lines of code units: 3.11 and later.  Lines wrap at 2^64, and code units end at 2^32. */
static void decode_table(struct fp_memray_reader *r, const uint8_t *p, const uint8_t *end, uint64_t line) {
    const uint32_t first = r->n_spans;
    uint64_t unit = 0;
    while (p < end && *p) {
        const unsigned kind = *p >> 3 & 15;
        const uint64_t next = unit + (*p++ & 7) + 1;
        if (next > UINT32_MAX) break;
        if (kind == 13 || kind == 14) {
            const uint64_t v = table_number(&p, end);
            line += v & 1 ? 0 - (v >> 1) : v >> 1;
            for (int i = 0; kind == 14 && i < 3; i++) (void)table_number(&p, end);
        } else if (kind < 13) {
            line += kind >= 10 ? kind - 10 : 0;
            const size_t columns = kind >= 10 ? 2 : 1;
            p += (size_t)(end - p) < columns ? (size_t)(end - p) : columns;
        }
        add_span(r, first, unit, line);
        unit = next;
    }
    add_span(r, first, unit, 0);
}

/* The lines of bytes: pairs of a number of bytes and of lines. */
static void decode_pairs(struct fp_memray_reader *r, const uint8_t *p, const uint8_t *end, uint64_t line, int is_310) {
    const uint32_t first = r->n_spans;
    uint64_t at = 0;
    add_span(r, first, at, line);
    for (; end - p >= 2 && at + p[0] <= UINT32_MAX; p += 2) {
        const int lines = (int8_t)p[1];
        if (!is_310) at += p[0];
        if (!is_310 || lines != -128) line += (uint64_t)(int64_t)lines;
        add_span(r, first, at, line);
        if (is_310) at += p[0];
    }
}

/* Decodes the line table of a code object, for all its instructions. */
static void decode(struct fp_memray_reader *r, struct fp_memray_code *code) {
    const uint8_t *p = r->tables + code->table, *end = p + code->n_table;
    code->spans = r->n_spans;
    if (r->f.python >= 0x030b0000)
        decode_table(r, p, end, code->line);
    else
        decode_pairs(r, p, end, code->line, r->f.python >= 0x030a0000);
    code->n_spans = r->n_spans - code->spans;
}

static uint32_t line_of(struct fp_memray_reader *r, struct fp_memray_code *code, uint64_t instruction) {
    if (r->f.version <= 11) return code->line;
    if (!code->n_table || instruction > INT64_MAX) return 0;
    if (!code->n_spans) decode(r, code);
    const uint64_t want = r->f.python >= 0x030b0000   ? instruction / 2
                          : r->f.python >= 0x030a0000 ? instruction * 2
                                                      : instruction;
    uint32_t after = code->spans + 1; /* the first span starts at 0 */
    FP_BISECT(after, code->spans + code->n_spans, r->spans[after].start <= want);
    return r->spans[after - 1].line;
}

uint32_t fp_memray_frame(struct fp_memray_reader *r, uint64_t code, uint64_t instruction, unsigned is_entry) {
    const uint32_t row = fp_table_find(&r->code_ids, (uint32_t[2]){FP_WORDS(code)});
    const uint32_t at = row < r->cap_code_of ? r->code_of[row] : 0;
    if (!at) return 0;
    const uint32_t key[3] = {at, FP_WORDS(instruction)};
    const uint32_t found = fp_table_intern(&r->frame_keys, key);
    if (!*FP_AT(r->frames, r->cap_frames, found)) {
        struct fp_memray_code *of = &r->codes[at];
        r->frames[found] = fp_model_line_frame(r->model, of->function, line_of(r, of, instruction), 0);
    }
    return 2 * r->frames[found] + (is_entry & r->codes[at].is_entry);
}
