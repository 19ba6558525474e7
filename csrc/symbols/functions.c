#include "symbols/functions.h"

#include "symbols/lines.h"

enum { MOST_REFERENCES = 16 }; /* followed from a function to its origin, and so on */

struct fp_dwarf_functions {
    struct fp_dwarf_units *units;
    struct fp_dwarf_function *items; /* the first is unused */
    uint32_t n, cap;
    struct fp_dwarf_ranges ranges; /* `pieces` of the units read so far; owners are numbers of functions */
    struct fp_dwarf_ranges code;   /* of units; owners are numbers of units, from 1 on */
    int has_code;
    uint32_t *around; /* by depth: the enclosing function, 0 for none */
    uint32_t cap_around;
};

struct fp_dwarf_functions *fp_dwarf_functions_new(struct fp_dwarf_units *units) {
    struct fp_dwarf_functions *f = fp_have(calloc(1, sizeof *f));
    f->units = units;
    f->n = 1;
    uint64_t nbytes = 1 << 20;
    for (int i = 0; i < FP_DWARF_SECTIONS; i++) nbytes += units->d->sections[i].n;
    f->ranges.most_work = f->code.most_work = nbytes;
    return f;
}

void fp_dwarf_functions_free(struct fp_dwarf_functions *f) {
    if (!f) return;
    FP_FREE(f->items, f->ranges.items, f->ranges.pieces, f->code.items, f->code.pieces, f->around, f);
}

/* ---- reading a unit */

/* Of a damaged list, adds the ranges before the damage. */
static void add_ranges(struct fp_dwarf_ranges *r, const struct fp_dwarf_units *u, const struct fp_dwarf_info_unit *unit,
                       const struct fp_dwarf_code *code, uint32_t owner) {
    if (code->form)
        fp_dwarf_ranges_add_list(r, u->d, &unit->forms, code->form, code->list, unit->code.low, owner);
    else
        fp_dwarf_ranges_add(r, code->low, code->high, owner);
}

/* Adds a function or an inlined call that has code.  Its number, 0 if it has none. */
static uint32_t add_function(struct fp_dwarf_functions *f, uint32_t unit, const struct fp_dwarf_entry *e,
                             uint64_t offset, uint32_t parent) {
    const uint32_t first = f->ranges.n;
    fp_array_room(&f->items, &f->cap, (uint64_t)f->n + 1, sizeof *f->items);
    add_ranges(&f->ranges, f->units, &f->units->items[unit], &e->code, f->n);
    if (f->ranges.n == first) return 0;
    const uint32_t file = e->call_file < UINT32_MAX ? (uint32_t)e->call_file : 0;
    const int is_sound = e->call_line < UINT32_MAX && e->call_discriminator <= UINT32_MAX;
    const uint32_t line = is_sound ? (uint32_t)e->call_line : 0;
    if (parent && e->reference != UINT64_MAX) offset = e->reference;
    const uint32_t discriminator = is_sound ? (uint32_t)e->call_discriminator : 0;
    f->items[f->n] =
        (struct fp_dwarf_function){offset, f->ranges.items[first].low, parent, file, line, discriminator, unit};
    return f->n++;
}

/* Reads the entry at the cursor, at this depth.  1 if it has children, 0 or FP_E_MALFORMED. */
static int read_entry(struct fp_dwarf_functions *f, uint32_t unit, const struct fp_dwarf_abbreviations *t,
                      struct fp_dwarf_cursor *c, uint64_t offset, uint32_t depth, uint64_t code) {
    struct fp_dwarf_units *u = f->units;
    const struct fp_dwarf_abbreviation *a = fp_dwarf_abbreviations_find(t, code);
    if (!a || depth + 1 >= FP_DWARF_DEEPEST) return FP_E_MALFORMED;
    uint32_t inside = f->around[depth];
    const int is_inlined = a->tag == FP_TAG_INLINED_SUBROUTINE;
    if (is_inlined || a->tag == FP_TAG_SUBPROGRAM) {
        struct fp_dwarf_entry e;
        fp_dwarf_take_entry(u, &u->items[unit], t, a, c, &e);
        if (c->bad) return FP_E_MALFORMED;
        if (!is_inlined || inside) inside = add_function(f, unit, &e, offset, is_inlined ? inside : 0);
    } else {
        fp_dwarf_skip_entry(t, a, c);
    }
    fp_array_room(&f->around, &f->cap_around, (uint64_t)depth + 2, sizeof *f->around);
    f->around[depth + 1] = inside;
    return c->bad ? FP_E_MALFORMED : a->has_children;
}

/* Reads the functions of a unit, up to the first damage. */
static void read_functions(struct fp_dwarf_functions *f, uint32_t number) {
    struct fp_dwarf_info_unit *unit = &f->units->items[number];
    const uint8_t *info = f->units->d->sections[FP_DWARF_INFO].p;
    if (unit->is_read) return;
    unit->is_read = 1;
    unit->first_piece = f->ranges.n_pieces;
    int status;
    const struct fp_dwarf_abbreviations *t = fp_dwarf_unit_abbreviations(f->units, unit, &status);
    fp_array_room(&f->around, &f->cap_around, 1, sizeof *f->around);
    f->around[0] = 0;
    struct fp_dwarf_cursor c = fp_dwarf_entries_from(f->units, unit, unit->first);
    uint32_t depth = 0;
    while (c.p < c.end && status >= 0) {
        const uint64_t offset = (uint64_t)(c.p - info), code = fp_dwarf_take_uleb(&c);
        if (c.bad) break;
        if (!code) { /* the end of an entry's children */
            depth -= depth > 0;
            continue;
        }
        status = read_entry(f, number, t, &c, offset, depth, code);
        if (status > 0) depth++;
    }
    f->units->n_damaged += status == FP_E_MALFORMED || c.bad;
    fp_dwarf_ranges_cut(&f->ranges);
    unit->n_pieces = f->ranges.n_pieces - unit->first_piece;
}

/* ---- finding a unit */

/* Adds the code of a unit: as its first entry states, else that of its functions. */
static void add_code(struct fp_dwarf_functions *f, uint32_t number) {
    const struct fp_dwarf_info_unit *unit = &f->units->items[number];
    const uint32_t first = f->code.n;
    if (!unit->has_code) return;
    add_ranges(&f->code, f->units, unit, &unit->code, number + 1);
    if (f->code.n > first) return;
    read_functions(f, number);
    for (uint32_t i = 0; i + 1 < unit->n_pieces; i++) {
        const struct fp_pairs_item *piece = &f->ranges.pieces[unit->first_piece + i];
        if (piece->value) fp_dwarf_ranges_add(&f->code, piece[0].key, piece[1].key, number + 1);
    }
}

/* The number of the unit with an address, from 1 on; 0 if there is none. */
static uint32_t find_unit(struct fp_dwarf_functions *f, uint64_t address) {
    if (!f->has_code) {
        for (uint32_t i = 0; i < f->units->n; i++) add_code(f, i);
        fp_dwarf_ranges_cut(&f->code);
        f->has_code = 1;
    }
    return fp_dwarf_owner(f->code.pieces, f->code.n_pieces, address);
}

/* ---- queries */

int fp_dwarf_functions_find(struct fp_dwarf_functions *f, uint64_t address, struct fp_dwarf_function *found) {
    const uint32_t number = find_unit(f, address);
    if (!number) return 0;
    read_functions(f, number - 1);
    const struct fp_dwarf_info_unit *unit = &f->units->items[number - 1];
    if (!unit->n_pieces) return 0;
    const uint32_t at = fp_dwarf_owner(f->ranges.pieces + unit->first_piece, unit->n_pieces, address);
    if (!at) return 0;
    *found = f->items[at];
    return 1;
}

const struct fp_dwarf_function *fp_dwarf_function(const struct fp_dwarf_functions *f, uint32_t number) {
    return &f->items[number];
}

uint64_t fp_dwarf_function_lines(const struct fp_dwarf_functions *f, const struct fp_dwarf_function *of) {
    return f->units->items[of->unit].line_table;
}

int fp_dwarf_function_of_gcc(const struct fp_dwarf_functions *f, const struct fp_dwarf_function *of) {
    return f->units->items[of->unit].of_gcc;
}

int fp_dwarf_functions_declaration(struct fp_dwarf_functions *f, uint64_t address, struct fp_dwarf_declaration *found) {
    struct fp_dwarf_function at;
    if (!fp_dwarf_functions_find(f, address, &at)) return 0;
    while (at.parent) at = f->items[at.parent];
    return at.low == address ? fp_dwarf_functions_declared(f, at.offset, found) : 0;
}

int fp_dwarf_functions_declared(struct fp_dwarf_functions *f, uint64_t offset, struct fp_dwarf_declaration *found) {
    uint64_t line = 0;
    for (int i = 0; i < MOST_REFERENCES; i++) {
        const struct fp_dwarf_info_unit *unit;
        struct fp_dwarf_entry e;
        if (!fp_dwarf_entry_at(f->units, offset, &unit, &e)) return 0;
        if (!line) line = e.decl_line; /* the referenced entry supplies missing attributes */
        if (line && e.decl_file != UINT64_MAX) {
            *found = (struct fp_dwarf_declaration){unit->line_table, e.decl_file, line};
            return 1;
        }
        offset = e.reference;
    }
    return 0;
}

int fp_dwarf_functions_name(struct fp_dwarf_functions *f, uint64_t offset, struct fp_dwarf_bytes *name) {
    *name = (struct fp_dwarf_bytes){NULL, 0};
    for (int i = 0; i < MOST_REFERENCES; i++) {
        const struct fp_dwarf_info_unit *unit;
        struct fp_dwarf_entry e;
        if (!fp_dwarf_entry_at(f->units, offset, &unit, &e)) break;
        const struct fp_dwarf_bytes linkage =
            fp_dwarf_string(f->units->d, &unit->forms, e.linkage_name.form, &e.linkage_name.value);
        if (linkage.n) {
            *name = linkage;
            return 1;
        }
        if (!name->n) *name = fp_dwarf_string(f->units->d, &unit->forms, e.name.form, &e.name.value);
        offset = e.reference;
    }
    return !!name->n;
}
