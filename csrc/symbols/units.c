#include "symbols/units.h"

#include <stdlib.h>

#include "core/array.h"
#include "symbols/pairs.h"

enum tag { TAG_SUBPROGRAM = 0x2e };
enum attribute {
    AT_STMT_LIST = 0x10,
    AT_LOW_PC = 0x11,
    AT_COMP_DIR = 0x1b,
    AT_ABSTRACT_ORIGIN = 0x31,
    AT_DECL_FILE = 0x3a,
    AT_DECL_LINE = 0x3b,
    AT_SPECIFICATION = 0x47,
    AT_STR_OFFSETS_BASE = 0x72,
    AT_ADDR_BASE = 0x73,
    AT_GNU_ADDR_BASE = 0x2133
};
enum { UNIT_TYPE = 2, UNIT_SKELETON = 4, UNIT_SPLIT_COMPILE = 5, UNIT_SPLIT_TYPE = 6 };
enum { MOST_REFERENCES = 16 }; /* followed from a function to its origin, and so on */

struct info_unit {
    struct fp_dwarf_unit forms;
    uint64_t offset, first, end; /* in .debug_info: the unit, its first entry, its end */
    uint64_t abbreviations;      /* in .debug_abbrev */
    uint64_t line_table;
    uint64_t addresses; /* the start of its part of .debug_addr */
    struct fp_dwarf_bytes directory;
};

struct attribute_form {
    uint32_t attribute, form;
    int64_t constant;
};

struct abbreviation {
    uint64_t tag;
    uint32_t first, end; /* its attributes */
    int32_t has_children;
};

/* The abbreviations of one unit. */
struct table {
    struct abbreviation *items;
    struct attribute_form *attributes;
    struct fp_pairs_item *codes; /* by code: the number of the item */
    uint32_t n, n_attributes, cap_items, cap_attributes, cap_codes;
    uint64_t offset;
    int is_read;
};

struct fp_dwarf_units {
    const struct fp_dwarf *d;
    struct info_unit *units;
    uint32_t n, cap;
    struct fp_pairs_item *by_line_table; /* the number of the unit */
    struct table table;
    uint64_t work, most_work;        /* bytes of abbreviations read: damaged files could make that quadratic */
    struct fp_pairs_item *functions; /* by address: the start of the entry in .debug_info */
    uint32_t n_functions, cap_functions;
    int has_functions;
};

/* ---- abbreviations */

/* Reads an abbreviation.  Returns its code, 0 at the end of the table. */
static uint64_t take_abbreviation(struct fp_dwarf_cursor *c, struct abbreviation *a) {
    const uint64_t code = fp_dwarf_take_uleb(c);
    if (!code) return 0;
    a->tag = fp_dwarf_take_uleb(c);
    a->has_children = !!fp_dwarf_take(c, 1);
    return c->bad ? 0 : code;
}

/* Reads one attribute of an abbreviation.  Returns 0 after the last one. */
static int take_attribute(struct fp_dwarf_cursor *c, struct attribute_form *a) {
    const uint64_t attribute = fp_dwarf_take_uleb(c), form = fp_dwarf_take_uleb(c);
    a->constant = form == FP_FORM_IMPLICIT_CONST ? fp_dwarf_take_sleb(c) : 0;
    if (attribute > UINT32_MAX || form > UINT32_MAX) fp_dwarf_cursor_fail(c);
    a->attribute = (uint32_t)attribute;
    a->form = (uint32_t)form;
    return !c->bad && (attribute || form);
}

/* Reads the table at `offset`, unless it was the last one read.  0, FP_E_MALFORMED or FP_E_NOMEM. */
static int read_table(struct fp_dwarf_units *u, uint64_t offset) {
    struct table *t = &u->table;
    if (t->is_read && t->offset == offset) return 0;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(u->d, FP_DWARF_ABBREV, offset);
    const uint8_t *start = c.p;
    struct abbreviation a;
    uint64_t code;
    t->n = t->n_attributes = 0;
    t->is_read = 0;
    while ((code = take_abbreviation(&c, &a))) {
        struct attribute_form form;
        a.first = t->n_attributes;
        while (take_attribute(&c, &form)) {
            if (fp_array_room(&t->attributes, &t->cap_attributes, (uint64_t)t->n_attributes + 1, sizeof form))
                return FP_E_NOMEM;
            t->attributes[t->n_attributes++] = form;
        }
        a.end = t->n_attributes;
        if (fp_array_room(&t->items, &t->cap_items, (uint64_t)t->n + 1, sizeof a)) return FP_E_NOMEM;
        if (fp_array_room(&t->codes, &t->cap_codes, (uint64_t)t->n + 1, sizeof *t->codes)) return FP_E_NOMEM;
        t->codes[t->n] = (struct fp_pairs_item){code, t->n};
        t->items[t->n++] = a;
        if (c.bad || u->work + (size_t)(c.p - start) > u->most_work) break;
    }
    u->work += (uint64_t)(c.p - start);
    if (c.bad || u->work > u->most_work) return FP_E_MALFORMED;
    if (t->n && fp_pairs_sort(t->codes, t->n)) return FP_E_NOMEM;
    t->offset = offset;
    t->is_read = 1;
    return 0;
}

static const struct abbreviation *find_abbreviation(const struct table *t, uint64_t code) {
    if (code && code <= t->n && t->codes[code - 1].key == code) return &t->items[t->codes[code - 1].value];
    const size_t at = fp_pairs_upper(t->codes, t->n, code);
    return at && t->codes[at - 1].key == code ? &t->items[t->codes[at - 1].value] : NULL;
}

/* ---- entries */

/* The attributes needed of an entry. */
struct info_entry {
    uint64_t line_table, low_pc, str_offsets, addresses, decl_file, decl_line;
    uint64_t reference; /* in .debug_info; of a specification or an abstract origin */
    struct fp_dwarf_value directory;
    uint64_t directory_form;
    int has_line_table, has_low_pc, has_reference, has_decl_file;
    uint64_t low_pc_form;
};

static uint64_t reference(const struct info_unit *unit, uint64_t form, uint64_t number) {
    return form == FP_FORM_REF_ADDR ? number : unit->offset + number;
}

static int is_reference(uint64_t form) {
    return form == FP_FORM_REF_ADDR || (form >= FP_FORM_REF1 && form <= FP_FORM_REF_UDATA);
}

static void take_entry(const struct table *t, const struct abbreviation *a, const struct info_unit *unit,
                       struct fp_dwarf_cursor *c, struct info_entry *e) {
    *e = (struct info_entry){0};
    for (uint32_t i = a->first; i < a->end && !c->bad; i++) {
        const struct attribute_form *form = &t->attributes[i];
        struct fp_dwarf_value v;
        fp_dwarf_take_form(c, &unit->forms, form->form, &v);
        if (form->form == FP_FORM_IMPLICIT_CONST) v.number = (uint64_t)form->constant;
        switch (form->attribute) {
            case AT_STMT_LIST:
                e->line_table = v.number;
                e->has_line_table = 1;
                break;
            case AT_LOW_PC:
                e->low_pc = v.number;
                e->low_pc_form = form->form;
                e->has_low_pc = 1;
                break;
            case AT_COMP_DIR:
                e->directory = v;
                e->directory_form = form->form;
                break;
            case AT_SPECIFICATION:
            case AT_ABSTRACT_ORIGIN:
                if (!is_reference(form->form)) break;
                e->reference = reference(unit, form->form, v.number);
                e->has_reference = 1;
                break;
            case AT_DECL_FILE:
                e->decl_file = v.number;
                e->has_decl_file = 1;
                break;
            case AT_DECL_LINE: e->decl_line = v.number; break;
            case AT_STR_OFFSETS_BASE: e->str_offsets = v.number; break;
            case AT_ADDR_BASE:
            case AT_GNU_ADDR_BASE: e->addresses = v.number; break;
            default: break;
        }
    }
}

/* Skips the attributes of an entry. */
static void pass_entry(const struct table *t, const struct abbreviation *a, const struct info_unit *unit,
                       struct fp_dwarf_cursor *c) {
    struct fp_dwarf_value v;
    for (uint32_t i = a->first; i < a->end && !c->bad; i++)
        fp_dwarf_take_form(c, &unit->forms, t->attributes[i].form, &v);
}

static uint64_t low_pc(const struct fp_dwarf_units *u, const struct info_unit *unit, const struct info_entry *e) {
    if (e->low_pc_form == FP_FORM_ADDR) return e->low_pc;
    uint64_t at; /* an index */
    if (__builtin_mul_overflow(e->low_pc, unit->forms.address_size, &at) ||
        __builtin_add_overflow(at, unit->addresses, &at))
        return 0;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(u->d, FP_DWARF_ADDR, at);
    return fp_dwarf_take(&c, unit->forms.address_size);
}

static struct fp_dwarf_cursor entries_from(const struct fp_dwarf_units *u, const struct info_unit *unit,
                                           uint64_t offset) {
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(u->d, FP_DWARF_INFO, offset);
    if (!c.bad) c.end = u->d->sections[FP_DWARF_INFO].p + unit->end;
    return c;
}

/* ---- units */

/* Reads only the abbreviation of a unit's first entry, which is nearly always the first of its table. */
static int read_first_entry(struct fp_dwarf_units *u, struct info_unit *unit) {
    struct fp_dwarf_cursor c = entries_from(u, unit, unit->first);
    const uint64_t code = fp_dwarf_take_uleb(&c);
    struct fp_dwarf_cursor table = fp_dwarf_cursor_at(u->d, FP_DWARF_ABBREV, unit->abbreviations);
    const uint8_t *start = table.p;
    struct table one = {0};
    struct abbreviation a;
    uint64_t found = 0;
    int status = 0;
    while (!status && !c.bad && found != code && (found = take_abbreviation(&table, &a))) {
        struct attribute_form form;
        one.n_attributes = 0;
        while (!status && take_attribute(&table, &form)) {
            status = fp_array_room(&one.attributes, &one.cap_attributes, (uint64_t)one.n_attributes + 1, sizeof form);
            if (!status) one.attributes[one.n_attributes++] = form;
        }
        if (table.bad || u->work + (size_t)(table.p - start) > u->most_work) break;
    }
    u->work += (uint64_t)(table.p - start);
    if (!status && (c.bad || table.bad || !code || found != code || u->work > u->most_work)) status = FP_E_MALFORMED;
    if (!status) {
        struct info_entry e;
        a.first = 0;
        a.end = one.n_attributes;
        take_entry(&one, &a, unit, &c, &e);
        unit->line_table = e.has_line_table ? e.line_table : UINT64_MAX;
        unit->forms.str_offsets = e.str_offsets;
        unit->addresses = e.addresses;
        unit->directory = fp_dwarf_string(u->d, &unit->forms, e.directory_form, &e.directory);
        if (c.bad) status = FP_E_MALFORMED;
    }
    free(one.attributes);
    return status;
}

/* Reads the unit at the cursor and moves to its end.  0, FP_E_MALFORMED or FP_E_NOMEM. */
static int read_unit(struct fp_dwarf_units *u, struct fp_dwarf_cursor *c) {
    const uint8_t *info = u->d->sections[FP_DWARF_INFO].p;
    struct info_unit unit = {.offset = (uint64_t)(c->p - info)};
    const uint8_t *end = fp_dwarf_take_unit(c, &unit.forms);
    if (!end) return FP_E_MALFORMED;
    struct fp_dwarf_cursor head = *c;
    head.end = c->p = end;
    if (head.p > end || unit.forms.version < 2 || unit.forms.version > 5) return FP_E_MALFORMED;
    const unsigned version = unit.forms.version, kind = version >= 5 ? (unsigned)fp_dwarf_take(&head, 1) : 0;
    if (version >= 5) unit.forms.address_size = (uint8_t)fp_dwarf_take(&head, 1);
    unit.abbreviations = fp_dwarf_take(&head, unit.forms.offset_size);
    if (version < 5) unit.forms.address_size = (uint8_t)fp_dwarf_take(&head, 1);
    if (kind == UNIT_SKELETON || kind == UNIT_SPLIT_COMPILE) fp_dwarf_take(&head, 8);
    if (kind == UNIT_TYPE || kind == UNIT_SPLIT_TYPE) fp_dwarf_take_bytes(&head, 8u + unit.forms.offset_size);
    if (head.bad || unit.forms.address_size < 1 || unit.forms.address_size > 8) return FP_E_MALFORMED;
    unit.first = (uint64_t)(head.p - info);
    unit.end = (uint64_t)(end - info);
    const int status = read_first_entry(u, &unit);
    if (status) return status;
    if (fp_array_room(&u->units, &u->cap, (uint64_t)u->n + 1, sizeof unit)) return FP_E_NOMEM;
    u->units[u->n++] = unit;
    return 0;
}

struct fp_dwarf_units *fp_dwarf_units_new(const struct fp_dwarf *d) {
    struct fp_dwarf_units *u = calloc(1, sizeof *u);
    if (!u) return NULL;
    u->d = d;
    u->most_work = 32 * ((uint64_t)d->sections[FP_DWARF_ABBREV].n + d->sections[FP_DWARF_INFO].n) + (1 << 20);
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_INFO, 0);
    int status = 0;
    while (status != FP_E_NOMEM && c.p < c.end && !c.bad) status = read_unit(u, &c);
    u->by_line_table = malloc(((size_t)u->n + 1) * sizeof *u->by_line_table);
    if (status == FP_E_NOMEM || !u->by_line_table) goto failed;
    for (uint32_t i = 0; i < u->n; i++) u->by_line_table[i] = (struct fp_pairs_item){u->units[i].line_table, i};
    if (u->n && fp_pairs_sort(u->by_line_table, u->n)) goto failed;
    return u;
failed:
    fp_dwarf_units_free(u);
    return NULL;
}

void fp_dwarf_units_free(struct fp_dwarf_units *u) {
    if (!u) return;
    free(u->units);
    free(u->by_line_table);
    free(u->table.items);
    free(u->table.attributes);
    free(u->table.codes);
    free(u->functions);
    free(u);
}

struct fp_dwarf_bytes fp_dwarf_units_directory(const struct fp_dwarf_units *u, uint64_t line_table) {
    const size_t at = fp_pairs_upper(u->by_line_table, u->n, line_table);
    if (!at || u->by_line_table[at - 1].key != line_table) return (struct fp_dwarf_bytes){NULL, 0};
    return u->units[u->by_line_table[at - 1].value].directory;
}

/* ---- functions */

/* Adds the functions of a unit, up to the first damage. */
static int list_functions(struct fp_dwarf_units *u, const struct info_unit *unit) {
    const int status = read_table(u, unit->abbreviations);
    if (status) return status;
    const uint8_t *info = u->d->sections[FP_DWARF_INFO].p;
    struct fp_dwarf_cursor c = entries_from(u, unit, unit->first);
    while (c.p < c.end) {
        const uint64_t offset = (uint64_t)(c.p - info), code = fp_dwarf_take_uleb(&c);
        if (!code && !c.bad) continue; /* the end of an entry's children */
        const struct abbreviation *a = find_abbreviation(&u->table, code);
        if (!a) return FP_E_MALFORMED;
        if (a->tag != TAG_SUBPROGRAM) {
            pass_entry(&u->table, a, unit, &c);
        } else {
            struct info_entry e;
            take_entry(&u->table, a, unit, &c, &e);
            if (!c.bad && e.has_low_pc) {
                if (fp_array_room(&u->functions, &u->cap_functions, (uint64_t)u->n_functions + 1, sizeof *u->functions))
                    return FP_E_NOMEM;
                u->functions[u->n_functions++] = (struct fp_pairs_item){low_pc(u, unit, &e), offset};
            }
        }
        if (c.bad) return FP_E_MALFORMED;
    }
    return 0;
}

static const struct info_unit *unit_of(const struct fp_dwarf_units *u, uint64_t offset) {
    uint32_t low = 0, n = u->n;
    while (n) {
        const uint32_t half = n / 2;
        if (u->units[low + half].offset <= offset) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    if (!low) return NULL;
    const struct info_unit *unit = &u->units[low - 1];
    return offset >= unit->first && offset < unit->end ? unit : NULL;
}

int fp_dwarf_units_declaration(struct fp_dwarf_units *u, uint64_t address, struct fp_dwarf_declaration *found) {
    if (!u->has_functions) {
        for (uint32_t i = 0; i < u->n; i++) {
            const int status = list_functions(u, &u->units[i]);
            if (status == FP_E_NOMEM) return status;
        }
        if (u->n_functions && fp_pairs_sort(u->functions, u->n_functions)) return FP_E_NOMEM;
        u->has_functions = 1;
    }
    const size_t at = fp_pairs_upper(u->functions, u->n_functions, address);
    if (!at || u->functions[at - 1].key != address) return 0;
    uint64_t offset = u->functions[at - 1].value, line = 0;
    for (int i = 0; i < MOST_REFERENCES; i++) {
        const struct info_unit *unit = unit_of(u, offset);
        if (!unit) return 0;
        const int status = read_table(u, unit->abbreviations);
        if (status) return status == FP_E_NOMEM ? status : 0;
        struct fp_dwarf_cursor c = entries_from(u, unit, offset);
        const struct abbreviation *a = find_abbreviation(&u->table, fp_dwarf_take_uleb(&c));
        struct info_entry e;
        if (!a) return 0;
        take_entry(&u->table, a, unit, &c, &e);
        if (c.bad) return 0;
        if (!line) line = e.decl_line; /* missing attributes come from the entry that it refers to */
        if (line && e.has_decl_file) {
            *found = (struct fp_dwarf_declaration){unit->line_table, e.decl_file, line};
            return 1;
        }
        if (!e.has_reference) return 0;
        offset = e.reference;
    }
    return 0;
}
