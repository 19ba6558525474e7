#include "symbols/lines.h"

#include "symbols/pairs.h"
#include "symbols/functions.h"

enum standard_opcode {
    EXTENDED = 0,
    COPY = 1,
    ADVANCE_PC = 2,
    ADVANCE_LINE = 3,
    SET_FILE = 4,
    SET_COLUMN = 5,
    NEGATE_STMT = 6,
    SET_BASIC_BLOCK = 7,
    CONST_ADD_PC = 8,
    FIXED_ADVANCE_PC = 9,
    SET_PROLOGUE_END = 10,
    SET_EPILOGUE_BEGIN = 11,
    SET_ISA = 12
};
enum extended_opcode { END_SEQUENCE = 1, SET_ADDRESS = 2, DEFINE_FILE = 3, SET_DISCRIMINATOR = 4 };
enum content { PATH = 1, DIRECTORY_INDEX = 2 };
enum { MOST_CONTENTS = 16 };

struct file {
    struct fp_dwarf_bytes name;
    uint64_t directory;
};

struct line_unit {
    struct fp_dwarf_unit forms;
    uint64_t offset; /* in .debug_line */
    uint64_t tables, program, end;
    uint8_t min_instruction, max_operations, line_range, opcode_base;
    int8_t line_base;
    uint8_t is_statement;    /* initial value of the register */
    const uint8_t *operands; /* number of operands of each standard opcode, from opcode 1 on */
    /* read when a file is requested */
    int has_files;
    struct file *files;
    struct fp_dwarf_bytes *directories;
    uint32_t n_files, n_directories, cap_files, cap_directories;
};

struct sequence {
    uint64_t high;
    uint64_t program; /* its start in .debug_line */
    uint32_t unit;
    uint32_t n;    /* rows */
    uint64_t rows; /* 1 + their start in `rows`, 0 = not read yet */
};

/* A file that a program adds to its unit's table (versions 2 to 4). */
struct defined {
    uint32_t unit;
    struct file file;
};

struct fp_dwarf_lines {
    const struct fp_dwarf *d;
    uint64_t mask; /* addresses have 32 or 64 bits */
    struct line_unit *units;
    struct sequence *sequences;
    struct fp_pairs_item *lows;           /* first addresses, sorted: the number of the sequence */
    struct fp_pairs_item *rows;           /* address; BODY | file << 32 | line */
    struct fp_pairs_item *discriminators; /* of the rows: address; discriminator.  NULL: not wanted */
    struct defined *defined;
    uint32_t n_units, cap_units, n_sequences, cap_sequences, cap_lows, n_rows, cap_rows, n_defined, cap_defined;
    uint32_t n_lows, cap_discriminators;
    int discriminates;
    struct fp_dwarf_units *infos; /* these two are opened by the first query that needs .debug_info */
    struct fp_dwarf_functions *functions;
    struct fp_dwarf_lines_stats stats;
};

/* ---- headers */

/* Reads the header at the cursor, which moves to the end of the unit.  0 or FP_E_MALFORMED. */
static int read_header(const struct fp_dwarf_lines *l, struct fp_dwarf_cursor *c, struct line_unit *u) {
    const uint8_t *section = l->d->sections[FP_DWARF_LINE].p;
    *u = (struct line_unit){.offset = (uint64_t)(c->p - section)};
    u->forms.address_size = (uint8_t)l->d->address_size;
    const uint8_t *end = fp_dwarf_take_unit(c, &u->forms);
    if (!end) return FP_E_MALFORMED;
    struct fp_dwarf_cursor head = *c;
    head.end = c->p = end;
    const unsigned version = u->forms.version;
    if (head.p > end || version < 2 || version > 5) return FP_E_MALFORMED;
    if (version >= 5) {
        u->forms.address_size = (uint8_t)fp_dwarf_take(&head, 1);
        fp_dwarf_take(&head, 1); /* size of a segment selector */
    }
    const uint64_t length = fp_dwarf_take(&head, u->forms.offset_size);
    if (head.bad || length > fp_dwarf_cursor_left(&head)) return FP_E_MALFORMED;
    u->program = (uint64_t)(head.p - section) + length;
    u->end = (uint64_t)(end - section);
    u->min_instruction = (uint8_t)fp_dwarf_take(&head, 1);
    u->max_operations = version >= 4 ? (uint8_t)fp_dwarf_take(&head, 1) : 1;
    u->is_statement = !!fp_dwarf_take(&head, 1);
    u->line_base = (int8_t)fp_dwarf_take(&head, 1);
    u->line_range = (uint8_t)fp_dwarf_take(&head, 1);
    u->opcode_base = (uint8_t)fp_dwarf_take(&head, 1);
    u->operands = fp_dwarf_take_bytes(&head, u->opcode_base ? u->opcode_base - 1u : 0);
    u->tables = (uint64_t)(head.p - section);
    if (!u->max_operations) u->max_operations = 1;
    const int is_whole = !head.bad && u->tables <= u->program && u->line_range && u->opcode_base;
    return is_whole && u->forms.address_size >= 1 && u->forms.address_size <= 8 ? 0 : FP_E_MALFORMED;
}

static void add_file(struct line_unit *u, struct file file) {
    FP_PUSH(u->files, u->n_files, u->cap_files) = file;
}

static void add_directory(struct line_unit *u, struct fp_dwarf_bytes name) {
    FP_PUSH(u->directories, u->n_directories, u->cap_directories) = name;
}

/* Reads the rest of a file's entry in versions 2 to 4: directory, time and size. */
static struct file take_file(struct fp_dwarf_cursor *c, struct fp_dwarf_bytes name) {
    const struct file file = {name, fp_dwarf_take_uleb(c)};
    fp_dwarf_take_uleb(c);
    fp_dwarf_take_uleb(c);
    return file;
}

/* Versions 2 to 4: directories from 1 on, 0 is the compilation directory; files from 1 on.  Both end with "". */
static void read_old_tables(struct line_unit *u, struct fp_dwarf_cursor *c, struct fp_dwarf_bytes compilation) {
    add_directory(u, compilation);
    while (!c->bad) {
        const struct fp_dwarf_bytes name = fp_dwarf_take_string(c);
        if (!name.n) break;
        add_directory(u, name);
    }
    while (!c->bad) {
        const struct fp_dwarf_bytes name = fp_dwarf_take_string(c);
        if (!name.n) break;
        const struct file file = take_file(c, name);
        if (!c->bad) add_file(u, file);
    }
}

/* Version 5: a table begins with the format of its entries, then their number.  0 or FP_NEEDS. */
static int read_new_table(const struct fp_dwarf_lines *l, struct line_unit *u, struct fp_dwarf_cursor *c,
                          int is_files) {
    uint64_t contents[MOST_CONTENTS], forms[MOST_CONTENTS];
    const unsigned n_contents = (unsigned)fp_dwarf_take(c, 1);
    if (n_contents > MOST_CONTENTS) fp_dwarf_cursor_fail(c);
    for (unsigned i = 0; i < n_contents && !c->bad; i++) {
        contents[i] = fp_dwarf_take_uleb(c);
        forms[i] = fp_dwarf_take_uleb(c);
        const int is_here = forms[i] == FP_FORM_STRING || forms[i] == FP_FORM_LINE_STRP;
        if (contents[i] == PATH && !is_here && !l->d->has_all) return FP_NEEDS;
    }
    const uint64_t n = fp_dwarf_take_uleb(c);
    for (uint64_t i = 0; i < n && !c->bad; i++) {
        const uint8_t *before = c->p;
        struct file file = {0};
        for (unsigned k = 0; k < n_contents; k++) {
            struct fp_dwarf_value v;
            fp_dwarf_take_form(c, &u->forms, forms[k], &v);
            if (contents[k] == PATH) file.name = fp_dwarf_string(l->d, &u->forms, forms[k], &v);
            if (contents[k] == DIRECTORY_INDEX) file.directory = v.number;
        }
        if (c->p == before) fp_dwarf_cursor_fail(c); /* otherwise a count could claim any number of empty entries */
        if (c->bad) break;
        if (is_files)
            add_file(u, file);
        else
            add_directory(u, file.name);
    }
    return 0;
}

/* 0 or FP_NEEDS. */
static int read_files(struct fp_dwarf_lines *l, uint32_t number) {
    struct line_unit *u = &l->units[number];
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(l->d, FP_DWARF_LINE, u->tables);
    int status = 0;
    c.end = l->d->sections[FP_DWARF_LINE].p + u->program;
    if (u->forms.version >= 5) {
        status = read_new_table(l, u, &c, 0);
        if (!status) status = read_new_table(l, u, &c, 1);
    } else {
        if (!l->d->has_all) return FP_NEEDS; /* the compilation directory is in .debug_info */
        fp_dwarf_units_begin(&l->infos, l->d);
        read_old_tables(u, &c, fp_dwarf_units_directory(l->infos, u->offset));
        uint32_t at = 0;
        for (uint32_t n = l->n_defined; n;) { /* the first one of this unit */
            const uint32_t half = n / 2;
            if (l->defined[at + half].unit < number) {
                at += half + 1;
                n -= half + 1;
            } else {
                n = half;
            }
        }
        for (; at < l->n_defined && l->defined[at].unit == number; at++) add_file(u, l->defined[at].file);
    }
    if (status == FP_NEEDS) u->n_files = u->n_directories = 0;
    u->has_files = status != FP_NEEDS;
    return status;
}

/* ---- programs */

/* The row is not the start of a function: it follows a prologue, or does not begin a statement.  After
 * the last instruction of a function GCC may emit rows that are not statements, at the address of the next function. */
#define BODY ((uint64_t)1 << 63)
enum { BEHIND_PROLOGUE = 1, NO_STATEMENT = 2 };

struct machine {
    uint64_t address, file, line;
    uint64_t discriminator; /* of the next row */
    uint64_t body;          /* BODY or 0; of the next row */
    uint64_t operation;     /* of an instruction that is a bundle of several */
};

/* Advances the address by `n` operations. */
static inline void advance(const struct line_unit *u, struct machine *m, uint64_t n) {
    if (FP_LIKELY(u->max_operations == 1)) {
        m->address += n * u->min_instruction;
        return;
    }
    m->operation += n;
    m->address += m->operation / u->max_operations * u->min_instruction;
    m->operation %= u->max_operations;
}

/* Reads a file that a program defines.  Only the run that searches for sequences adds it. */
static void define_file(struct fp_dwarf_lines *l, uint32_t unit, struct fp_dwarf_cursor *c) {
    const struct fp_dwarf_bytes name = fp_dwarf_take_string(c);
    const struct defined d = {unit, take_file(c, name)};
    if (c->bad) return;
    FP_PUSH(l->defined, l->n_defined, l->cap_defined) = d;
}

/* The output of a run: with `rows`, rows are appended to l->rows; otherwise the sequence is measured in *low and *s. */
struct wanted {
    int rows;
    uint64_t mask; /* of addresses */
    uint64_t *low;
    struct sequence *s;
};

/* Adds the n-th row.  Line numbers beyond 32 bits come from damage, and so do discriminators, which leave no line. */
FP_INLINE void add_row(struct fp_dwarf_lines *l, struct machine *m, uint64_t n, const struct wanted w) {
    const uint64_t address = m->address & w.mask;
    if (w.rows) {
        FP_PUSH(l->rows, l->n_rows, l->cap_rows) =
            (struct fp_pairs_item){address, (m->body ? BODY : 0) | m->file << 32 | (m->line & UINT32_MAX)};
        if (FP_UNLIKELY(l->discriminates)) {
            if (m->discriminator > UINT32_MAX) l->rows[l->n_rows - 1].value &= ~(uint64_t)UINT32_MAX;
            fp_array_room(&l->discriminators, &l->cap_discriminators, l->n_rows, sizeof *l->discriminators);
            l->discriminators[l->n_rows - 1] = (struct fp_pairs_item){address, m->discriminator & UINT32_MAX};
        }
        m->discriminator = 0;
    } else if (!n) {
        *w.low = address;
    }
    m->body &= NO_STATEMENT;
}

/* Runs an extended instruction, after n rows.  1 if it ends the sequence, 0 or FP_E_MALFORMED. */
FP_INLINE int extended(struct fp_dwarf_lines *l, uint32_t number, struct fp_dwarf_cursor *c, struct machine *m,
                       uint64_t n, const struct wanted w) {
    const uint64_t length = fp_dwarf_take_uleb(c);
    const uint8_t *start = fp_dwarf_take_bytes(c, length);
    if (!start || !length) return FP_E_MALFORMED;
    struct fp_dwarf_cursor inside = {start + 1, start + length, c->swap, 0};
    if (*start == END_SEQUENCE) {
        if (w.rows) return 1;
        w.s->high = m->address & w.mask;
        w.s->n = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        return 1;
    }
    if (*start == SET_ADDRESS) {
        if (length - 1 > 8) return FP_E_MALFORMED;
        m->address = fp_dwarf_take(&inside, (unsigned)(length - 1));
        m->operation = 0;
    } else if (*start == DEFINE_FILE && !w.rows) {
        define_file(l, number, &inside);
    } else if (*start == SET_DISCRIMINATOR) {
        m->discriminator = fp_dwarf_take_uleb(&inside);
    }
    return 0;
}

/* Runs a standard instruction that adds no row. */
FP_INLINE void standard(const struct line_unit *u, unsigned opcode, struct fp_dwarf_cursor *c, struct machine *m) {
    switch (opcode) {
        case ADVANCE_PC: advance(u, m, fp_dwarf_take_uleb(c)); break;
        case ADVANCE_LINE: m->line += (uint64_t)fp_dwarf_take_sleb(c); break;
        case SET_FILE: m->file = fp_dwarf_take_uleb(c) & (UINT32_MAX >> 1); break;
        case SET_COLUMN:
        case SET_ISA: fp_dwarf_take_uleb(c); break;
        case NEGATE_STMT: m->body ^= NO_STATEMENT; break;
        case SET_BASIC_BLOCK:
        case SET_EPILOGUE_BEGIN: break;
        case SET_PROLOGUE_END: m->body |= BEHIND_PROLOGUE; break;
        case CONST_ADD_PC: advance(u, m, (255u - u->opcode_base) / u->line_range); break;
        case FIXED_ADVANCE_PC:
            m->address += fp_dwarf_take(c, 2);
            m->operation = 0;
            break;
        default: /* unknown, from a later version */
            for (unsigned i = 0; i < u->operands[opcode - 1]; i++) fp_dwarf_take_uleb(c);
    }
}

/* Runs a program from the start of a sequence to its end.  Returns 1 after a sequence, 0 at the end of the program,
 * or FP_E_MALFORMED. */
FP_INLINE int run(struct fp_dwarf_lines *l, uint32_t number, struct fp_dwarf_cursor *c, const struct wanted w) {
    const struct line_unit u = l->units[number];
    struct machine m = {.file = 1, .line = 1, .body = u.is_statement ? 0 : NO_STATEMENT};
    uint64_t n = 0;
    while (c->p < c->end) {
        const unsigned opcode = *c->p++;
        if (FP_LIKELY(opcode >= u.opcode_base)) {
            const unsigned adjusted = opcode - u.opcode_base;
            advance(&u, &m, adjusted / u.line_range);
            m.line += (uint64_t)(int64_t)(u.line_base + (int)(adjusted % u.line_range));
            add_row(l, &m, n++, w);
            continue;
        }
        if (opcode == COPY) {
            add_row(l, &m, n++, w);
        } else if (opcode == EXTENDED) {
            FP_TRY(extended(l, number, c, &m, n, w));
        } else {
            standard(&u, opcode, c, &m);
        }
        if (c->bad) return FP_E_MALFORMED;
    }
    return n ? FP_E_MALFORMED : 0; /* rows without an end */
}

/* Adds the sequences of a unit, up to the first damage. */
static int list_sequences(struct fp_dwarf_lines *l, uint32_t number) {
    const uint8_t *section = l->d->sections[FP_DWARF_LINE].p;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(l->d, FP_DWARF_LINE, l->units[number].program);
    c.end = section + l->units[number].end;
    for (;;) {
        struct sequence s = {.program = (uint64_t)(c.p - section), .unit = number};
        uint64_t low = 0;
        const int status = run(l, number, &c, (struct wanted){0, l->mask, &low, &s});
        if (status <= 0) return status;
        l->stats.rows += s.n;
        if (!low || low >= s.high) continue; /* dropped by the linker (0 or -1), or without rows */
        *FP_AT(l->lows, l->cap_lows, l->n_sequences) = (struct fp_pairs_item){low, l->n_sequences};
        FP_PUSH(l->sequences, l->n_sequences, l->cap_sequences) = s;
    }
}

/* Sorts the sequences by address and drops those that begin inside the previous one. */
static void sort_sequences(struct fp_dwarf_lines *l) {
    fp_pairs_sort(l->lows, l->n_sequences);
    uint64_t taken = 0;
    for (uint32_t i = 0; i < l->n_sequences; i++) {
        if (l->lows[i].key < taken) continue;
        taken = l->sequences[l->lows[i].value].high;
        l->lows[l->n_lows++] = l->lows[i];
    }
}

struct fp_dwarf_lines *fp_dwarf_lines_new(const struct fp_dwarf *d) {
    struct fp_dwarf_lines *l = fp_made(sizeof *l);
    l->d = d;
    l->mask = d->address_size < 8 ? UINT32_MAX : UINT64_MAX;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_LINE, 0);
    while (c.p < c.end && !c.bad) {
        struct line_unit u;
        int status = read_header(l, &c, &u);
        if (!status) {
            FP_PUSH(l->units, l->n_units, l->cap_units) = u;
            status = list_sequences(l, l->n_units - 1);
        }
        l->stats.damaged += status == FP_E_MALFORMED;
    }
    sort_sequences(l);
    l->stats.units = l->n_units;
    l->stats.sequences = l->n_lows;
    return l;
}

void fp_dwarf_lines_free(struct fp_dwarf_lines *l) {
    for (uint32_t i = 0; i < l->n_units; i++) FP_FREE(l->units[i].files, l->units[i].directories);
    fp_dwarf_functions_free(l->functions);
    fp_dwarf_units_free(l->infos);
    FP_FREE(l->units, l->sequences, l->lows, l->rows, l->discriminators, l->defined, l);
}

struct fp_dwarf_lines_stats fp_dwarf_lines_stats(const struct fp_dwarf_lines *l) {
    struct fp_dwarf_lines_stats stats = l->stats;
    stats.damaged_infos = l->infos ? l->infos->n_damaged : 0;
    return stats;
}

/* ---- queries */

/* The sequence that contains an address, with its rows, or NULL. */
static const struct sequence *sequence_at(struct fp_dwarf_lines *l, uint64_t address) {
    const size_t at = fp_pairs_upper(l->lows, l->n_lows, address);
    if (!at) return NULL;
    struct sequence *s = &l->sequences[l->lows[at - 1].value];
    if (address >= s->high) return NULL;
    if (!s->rows) {
        const uint32_t first = l->n_rows;
        struct fp_dwarf_cursor c = fp_dwarf_cursor_at(l->d, FP_DWARF_LINE, s->program);
        c.end = l->d->sections[FP_DWARF_LINE].p + l->units[s->unit].end;
        run(l, s->unit, &c, (struct wanted){1, l->mask, NULL, NULL});
        s->n = l->n_rows - first;
        fp_pairs_sort(l->rows + first, s->n);
        /* stable, so discriminators stay with their rows */
        if (l->discriminates && s->n) fp_pairs_sort(l->discriminators + first, s->n);
        s->rows = (uint64_t)first + 1;
    }
    return s;
}

static int is_row(const struct sequence *s, const struct fp_pairs_item *row, struct fp_dwarf_line *found) {
    const uint32_t file = (uint32_t)((row->value & ~BODY) >> 32);
    *found = (struct fp_dwarf_line){row->key, s->unit, file, (uint32_t)row->value, !!(row->value & BODY)};
    return 1;
}

/* The row of an address and its discriminator. */
static int find(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found, uint32_t *discriminator) {
    const struct sequence *s = sequence_at(l, address);
    *discriminator = 0;
    if (!s) return 0;
    const struct fp_pairs_item *rows = l->rows + s->rows - 1;
    const size_t at = fp_pairs_upper(rows, s->n, address);
    if (!at) return 0;
    if (l->discriminates) *discriminator = (uint32_t)l->discriminators[s->rows + at - 2].value;
    return is_row(s, &rows[at - 1], found);
}

int fp_dwarf_lines_find(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found) {
    uint32_t discriminator;
    return find(l, address, found, &discriminator);
}

static struct fp_dwarf_functions *functions(struct fp_dwarf_lines *l) {
    fp_dwarf_units_begin(&l->infos, l->d);
    if (!l->functions) l->functions = fp_dwarf_functions_new(l->infos);
    return l->functions;
}

/* Whether a file and line exist in the line table at `line_table`. */
static int is_place(const struct fp_dwarf_lines *l, uint64_t line_table, uint64_t file, uint64_t line,
                    struct fp_dwarf_line *found) {
    uint32_t low = 0;
    FP_BISECT(low, l->n_units, l->units[low].offset <= line_table);
    if (!low || l->units[low - 1].offset != line_table || file > UINT32_MAX || line > UINT32_MAX) return 0;
    *found = (struct fp_dwarf_line){0, low - 1, (uint32_t)file, (uint32_t)line, 0};
    return 1;
}

/* The row of a declaration, in a unit that may have no rows. */
static int declared(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found) {
    struct fp_dwarf_declaration d;
    if (!l->d->has_all) return FP_NEEDS;
    if (!fp_dwarf_functions_declaration(functions(l), address, &d)) return 0;
    if (!is_place(l, d.line_table, d.file, d.line, found)) return 0;
    found->address = address;
    return 1;
}

int fp_dwarf_lines_entry(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_line *found) {
    const struct sequence *s = sequence_at(l, address);
    const struct fp_pairs_item *body = NULL, *rows = s ? l->rows + s->rows - 1 : NULL;
    for (size_t at = s && address ? fp_pairs_upper(rows, s->n, address - 1) : 0; s && at < s->n; at++) {
        if (rows[at].key != address) break;
        if (!(uint32_t)rows[at].value) continue;
        if (!(rows[at].value & BODY)) return is_row(s, &rows[at], found);
        body = &rows[at];
        break;
    }
    const int status = declared(l, address, found);
    return status || !body ? status : is_row(s, body, found);
}

int fp_dwarf_lines_file(struct fp_dwarf_lines *l, uint32_t unit, uint32_t file, struct fp_dwarf_bytes pieces[3]) {
    if (unit >= l->n_units) return 0;
    struct line_unit *u = &l->units[unit];
    if (!u->has_files) FP_TRY(read_files(l, unit));
    const uint32_t at = u->forms.version >= 5 ? file : file - 1; /* before version 5 they count from 1; 0 means none */
    if (at >= u->n_files) return 0;
    const uint64_t directory = u->files[at].directory;
    pieces[0] = u->n_directories ? u->directories[0] : (struct fp_dwarf_bytes){NULL, 0};
    pieces[1] =
        directory && directory < u->n_directories ? u->directories[directory] : (struct fp_dwarf_bytes){NULL, 0};
    pieces[2] = u->files[at].name;
    return 1;
}

int fp_dwarf_lines_chain(struct fp_dwarf_lines *l, uint64_t address, struct fp_dwarf_frame *frames, uint32_t cap,
                         uint32_t *n) {
    struct fp_dwarf_function at;
    if (!l->d->has_all) return FP_NEEDS;
    if (!fp_dwarf_functions_find(functions(l), address, &at)) return 0;
    struct fp_dwarf_line place = {0};
    uint32_t discriminator;
    int has_place = find(l, address, &place, &discriminator);
    *n = 0;
    while (*n < cap) {
        const uint64_t table = fp_dwarf_function_lines(l->functions, &at);
        const int of_gcc = fp_dwarf_function_of_gcc(l->functions, &at);
        frames[(*n)++] = (struct fp_dwarf_frame){at.offset, at.low, place, has_place, discriminator, of_gcc};
        if (!at.parent) break;
        has_place = is_place(l, table, at.call_file, at.call_line, &place);
        discriminator = l->discriminates ? at.call_discriminator : 0;
        at = *fp_dwarf_function(l->functions, at.parent);
    }
    return 1;
}

void fp_dwarf_lines_discriminate(struct fp_dwarf_lines *l) {
    if (l->discriminates) return;
    l->discriminates = 1;
    l->n_rows = 0;
    for (uint32_t i = 0; i < l->n_sequences; i++) l->sequences[i].rows = 0;
}

int fp_dwarf_lines_declared(struct fp_dwarf_lines *l, uint64_t function, uint32_t *line) {
    struct fp_dwarf_declaration d;
    *line = 0;
    if (fp_dwarf_functions_declared(functions(l), function, &d) && d.line <= UINT32_MAX) *line = (uint32_t)d.line;
    return !!*line;
}

int fp_dwarf_lines_name(struct fp_dwarf_lines *l, uint64_t function, struct fp_dwarf_bytes *name) {
    return fp_dwarf_functions_name(functions(l), function, name);
}
