/* Code objects, and the lines of their instructions. */
#include "core/array.h"
#include "memray/state.h"

struct fp_memray_text fp_memray_text(struct fp_memray_bytes *c) {
    const size_t left = (size_t)(c->end - c->p);
    const uint8_t *end = left ? memchr(c->p, 0, left) : NULL;
    struct fp_memray_text t = {c->p, 0};
    if (end) {
        t.n = (size_t)(end - c->p);
        c->p = end + 1;
    } else {
        if (!c->status) c->status = FP_MORE;
        c->p = c->end;
    }
    return t;
}

static void define(struct fp_memray_reader *r, uint64_t id, struct fp_memray_text function, struct fp_memray_text file,
                   uint64_t line, const uint8_t *table, uint32_t n_table) {
    struct fp_model *m = r->model;
    const uint32_t row = fp_table_intern(&r->code_ids, (uint32_t[2]){(uint32_t)id, (uint32_t)(id >> 32)});
    fp_array_zeroed(&r->code_of, &r->cap_code_of, (uint64_t)row + 1, sizeof *r->code_of);
    fp_array_zeroed(&r->codes, &r->cap_codes, (uint64_t)r->n_codes + 2, sizeof *r->codes);
    fp_bytes_room(&r->tables, &r->cap_tables, r->n_tables + n_table);
    const uint32_t file_name = fp_strings_intern(&m->strings, file.p, file.n);
    const uint32_t name = fp_strings_intern(&m->strings, function.p, function.n);
    const uint32_t number = line <= INT32_MAX ? (uint32_t)line : 0, first = r->f.version > 11 ? number : 0;
    const uint32_t id_of_function = fp_model_function(m, 0, file_name, name, 0, first);
    if (n_table) memcpy(r->tables + r->n_tables, table, n_table);
    r->code_of[row] = ++r->n_codes; /* the later one of two counts */
    r->codes[r->n_codes] = (struct fp_memray_code){r->n_tables, n_table, id_of_function, number};
    r->n_tables += n_table;
}

int fp_memray_read_code(struct fp_memray_reader *r, struct fp_memray_bytes *c) {
    const uint64_t id = fp_memray_number(c);
    const struct fp_memray_text function = fp_memray_text(c), file = fp_memray_text(c);
    const uint64_t line = r->line + fp_memray_delta(c), n = fp_memray_number(c);
    if (c->status) return c->status;
    if (n > UINT32_MAX) return fp_memray_bad(r, "the length of a line table", "less than 2^32");
    if (n > (uint64_t)(c->end - c->p)) return FP_MORE;
    define(r, id, function, file, line, c->p, (uint32_t)n);
    c->p += n;
    r->line = line;
    return 0;
}

int fp_memray_read_frame(struct fp_memray_reader *r, struct fp_memray_bytes *c, int is_numbered) {
    const uint64_t id = is_numbered ? fp_memray_fixed(c, 8) : r->frame + fp_memray_delta(c);
    const struct fp_memray_text function = fp_memray_text(c), file = fp_memray_text(c);
    const uint64_t line = is_numbered ? fp_memray_fixed(c, 4) : r->line + fp_memray_delta(c);
    if (is_numbered) (void)fp_memray_fixed(c, 1); /* whether the interpreter was entered here */
    if (c->status) return c->status;
    define(r, id, function, file, line, NULL, 0);
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

/* The line of code unit `want`: 3.11 and later.  0: none. */
static int64_t line_of_table(const uint8_t *p, const uint8_t *end, int64_t line, uint64_t want) {
    uint64_t unit = 0;
    while (p < end && *p) {
        const unsigned kind = *p >> 3 & 15;
        const uint64_t next = unit + (*p++ & 7) + 1;
        if (kind == 13 || kind == 14) {
            const uint64_t v = table_number(&p, end);
            line += v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
            for (int i = 0; kind == 14 && i < 3; i++) (void)table_number(&p, end);
        } else if (kind < 13) {
            line += kind >= 10 ? (int)kind - 10 : 0;
            const size_t columns = kind >= 10 ? 2 : 1;
            p += (size_t)(end - p) < columns ? (size_t)(end - p) : columns;
        }
        if (want < next) return line;
        unit = next;
    }
    return 0;
}

/* The line of byte `want`: pairs of a number of bytes and of lines. */
static int64_t line_of_pairs(const uint8_t *p, const uint8_t *end, int64_t line, uint64_t want, int is_310) {
    uint64_t at = 0;
    for (; end - p >= 2; p += 2) {
        const int lines = (int8_t)p[1];
        at += p[0];
        if (!is_310 && at > want) break;
        if (!is_310 || lines != -128) line += lines;
        if (is_310 && at > want) break;
    }
    return line;
}

static uint32_t line_of(const struct fp_memray_reader *r, const struct fp_memray_code *code, uint64_t instruction) {
    if (r->f.version <= 11) return code->line;
    if (!code->n_table || instruction > INT64_MAX) return 0;
    const uint8_t *p = r->tables + code->table, *end = p + code->n_table;
    const int64_t line = r->f.python >= 0x030b0000   ? line_of_table(p, end, code->line, instruction / 2)
                         : r->f.python >= 0x030a0000 ? line_of_pairs(p, end, code->line, instruction * 2, 1)
                                                     : line_of_pairs(p, end, code->line, instruction, 0);
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

uint32_t fp_memray_frame(struct fp_memray_reader *r, uint64_t code, uint64_t instruction) {
    const uint32_t row = fp_table_find(&r->code_ids, (uint32_t[2]){(uint32_t)code, (uint32_t)(code >> 32)});
    const uint32_t at = row < r->cap_code_of ? r->code_of[row] : 0;
    if (!at) return 0;
    const uint32_t key[3] = {at, (uint32_t)instruction, (uint32_t)(instruction >> 32)};
    const uint32_t found = fp_table_intern(&r->frame_keys, key);
    fp_array_zeroed(&r->frames, &r->cap_frames, (uint64_t)found + 1, sizeof *r->frames);
    if (!r->frames[found]) {
        const struct fp_memray_code *of = &r->codes[at];
        const uint32_t line = fp_model_line(r->model, of->function, line_of(r, of, instruction), 0, 0);
        r->frames[found] = fp_model_frame(r->model, 0, 0, 0, line);
    }
    return r->frames[found];
}
