#include "symbols/units.h"

enum attribute {
    AT_NAME = 0x03,
    AT_STMT_LIST = 0x10,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_COMP_DIR = 0x1b,
    AT_PRODUCER = 0x25,
    AT_ABSTRACT_ORIGIN = 0x31,
    AT_DECL_FILE = 0x3a,
    AT_DECL_LINE = 0x3b,
    AT_SPECIFICATION = 0x47,
    AT_RANGES = 0x55,
    AT_CALL_FILE = 0x58,
    AT_CALL_LINE = 0x59,
    AT_LINKAGE_NAME = 0x6e,
    AT_STR_OFFSETS_BASE = 0x72,
    AT_ADDR_BASE = 0x73,
    AT_RNGLISTS_BASE = 0x74,
    AT_MIPS_LINKAGE_NAME = 0x2007,
    AT_GNU_ADDR_BASE = 0x2133,
    AT_GNU_DISCRIMINATOR = 0x2136
};
enum { UNIT_TYPE = 2, UNIT_SKELETON = 4, UNIT_SPLIT_COMPILE = 5, UNIT_SPLIT_TYPE = 6 };

/* ---- entries */

static uint64_t reference(const struct fp_dwarf_info_unit *unit, uint64_t form, uint64_t number) {
    if (form == FP_FORM_REF_ADDR) return number;
    return form >= FP_FORM_REF1 && form <= FP_FORM_REF_UDATA ? unit->offset + number : UINT64_MAX;
}

/* Whether a value of DW_AT_high_pc counts from low_pc. */
static int is_length(uint64_t form) {
    return form != FP_FORM_ADDR && form != FP_FORM_ADDRX && form != FP_FORM_GNU_ADDR_INDEX &&
           !(form >= FP_FORM_ADDRX1 && form <= FP_FORM_ADDRX4);
}

/* Addresses whose meaning depends on attributes of the same entry that may follow later. */
struct pending {
    uint64_t low, high;
    uint32_t low_form, high_form;
};

static void take_attribute(const struct fp_dwarf_info_unit *unit, const struct fp_dwarf_attribute *a,
                           const struct fp_dwarf_value *v, struct fp_dwarf_entry *e, struct pending *p) {
    switch (a->name) {
        case AT_NAME: e->name = (struct fp_dwarf_text){*v, a->form}; break;
        case AT_LINKAGE_NAME:
        case AT_MIPS_LINKAGE_NAME: e->linkage_name = (struct fp_dwarf_text){*v, a->form}; break;
        case AT_COMP_DIR: e->directory = (struct fp_dwarf_text){*v, a->form}; break;
        case AT_PRODUCER: e->producer = (struct fp_dwarf_text){*v, a->form}; break;
        case AT_LOW_PC: p->low = v->number, p->low_form = a->form; break;
        case AT_HIGH_PC: p->high = v->number, p->high_form = a->form; break;
        case AT_RANGES: e->code.list = v->number, e->code.form = a->form; break;
        case AT_STMT_LIST: e->line_table = v->number; break;
        case AT_SPECIFICATION:
        case AT_ABSTRACT_ORIGIN: e->reference = reference(unit, a->form, v->number); break;
        case AT_DECL_FILE: e->decl_file = v->number; break;
        case AT_DECL_LINE: e->decl_line = v->number; break;
        case AT_CALL_FILE: e->call_file = v->number; break;
        case AT_CALL_LINE: e->call_line = v->number; break;
        case AT_GNU_DISCRIMINATOR: e->call_discriminator = v->number; break;
        default: break;
    }
}

/* Reads the parameters of a unit from its first entry. */
static void take_base(struct fp_dwarf_unit *forms, const struct fp_dwarf_attribute *a, const struct fp_dwarf_value *v) {
    switch (a->name) {
        case AT_STR_OFFSETS_BASE: forms->str_offsets = v->number; break;
        case AT_ADDR_BASE:
        case AT_GNU_ADDR_BASE: forms->addresses = v->number; break;
        case AT_RNGLISTS_BASE: forms->range_lists = v->number; break;
        default: break;
    }
}

/* Reads an entry; sets `bases`, unless it is NULL, before addresses are looked up. */
static void take_entry(const struct fp_dwarf_units *u, const struct fp_dwarf_info_unit *unit,
                       const struct fp_dwarf_abbreviations *t, const struct fp_dwarf_abbreviation *a,
                       struct fp_dwarf_cursor *c, struct fp_dwarf_entry *e, struct fp_dwarf_unit *bases) {
    struct pending p = {0};
    *e = (struct fp_dwarf_entry){.line_table = UINT64_MAX, .reference = UINT64_MAX, .decl_file = UINT64_MAX};
    for (uint32_t i = a->first; i < a->end && !c->bad; i++) {
        const struct fp_dwarf_attribute *attribute = &t->attributes[i];
        struct fp_dwarf_value v;
        fp_dwarf_take_form(c, &unit->forms, attribute->form, &v);
        if (attribute->form == FP_FORM_IMPLICIT_CONST) v.number = (uint64_t)attribute->constant;
        take_attribute(unit, attribute, &v, e, &p);
        if (bases) take_base(bases, attribute, &v);
    }
    const struct fp_dwarf_unit *forms = bases ? bases : &unit->forms;
    if (p.low_form) e->code.low = fp_dwarf_address(u->d, forms, p.low_form, p.low);
    if (!p.low_form || !p.high_form) return;
    if (!is_length(p.high_form))
        e->code.high = fp_dwarf_address(u->d, forms, p.high_form, p.high);
    else if (__builtin_add_overflow(e->code.low, p.high, &e->code.high))
        e->code.high = 0;
}

void fp_dwarf_take_entry(const struct fp_dwarf_units *u, const struct fp_dwarf_info_unit *unit,
                         const struct fp_dwarf_abbreviations *t, const struct fp_dwarf_abbreviation *a,
                         struct fp_dwarf_cursor *c, struct fp_dwarf_entry *e) {
    take_entry(u, unit, t, a, c, e, NULL);
}

static const struct fp_dwarf_info_unit *unit_of(const struct fp_dwarf_units *u, uint64_t offset) {
    uint32_t low = 0, n = u->n;
    while (n) {
        const uint32_t half = n / 2;
        if (u->items[low + half].offset <= offset) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    if (!low) return NULL;
    const struct fp_dwarf_info_unit *unit = &u->items[low - 1];
    return offset >= unit->first && offset < unit->end ? unit : NULL;
}

const struct fp_dwarf_abbreviations *fp_dwarf_unit_abbreviations(struct fp_dwarf_units *u,
                                                                 const struct fp_dwarf_info_unit *unit, int *status) {
    struct fp_dwarf_abbreviations *t = &u->tables[unit->table];
    *status = fp_dwarf_abbreviations_read(t, u->d, &unit->forms, unit->abbreviations, 0, &u->work);
    return *status ? NULL : t;
}

int fp_dwarf_entry_at(struct fp_dwarf_units *u, uint64_t offset, const struct fp_dwarf_info_unit **unit,
                      struct fp_dwarf_entry *e) {
    *unit = unit_of(u, offset);
    if (!*unit) return 0;
    int status;
    const struct fp_dwarf_abbreviations *t = fp_dwarf_unit_abbreviations(u, *unit, &status);
    if (!t) return 0;
    struct fp_dwarf_cursor c = fp_dwarf_entries_from(u, *unit, offset);
    const struct fp_dwarf_abbreviation *a = fp_dwarf_abbreviations_find(t, fp_dwarf_take_uleb(&c));
    if (!a) return 0;
    fp_dwarf_take_entry(u, *unit, t, a, &c, e);
    return !c.bad;
}

/* ---- units */

/* Reads the first entry, whose abbreviation is nearly always the first of its table. */
static int read_first_entry(struct fp_dwarf_units *u, struct fp_dwarf_info_unit *unit) {
    struct fp_dwarf_abbreviations *t = &u->first;
    struct fp_dwarf_cursor c = fp_dwarf_entries_from(u, unit, unit->first);
    const uint64_t code = fp_dwarf_take_uleb(&c);
    if (c.bad || !code) return FP_E_MALFORMED;
    FP_TRY(fp_dwarf_abbreviations_read(t, u->d, &unit->forms, unit->abbreviations, code, &u->work));
    const struct fp_dwarf_abbreviation *a = fp_dwarf_abbreviations_find(t, code);
    if (!a) return FP_E_MALFORMED;
    struct fp_dwarf_entry e;
    take_entry(u, unit, t, a, &c, &e, &unit->forms);
    unit->line_table = e.line_table;
    unit->code = e.code;
    unit->directory = fp_dwarf_string(u->d, &unit->forms, e.directory.form, &e.directory.value);
    const struct fp_dwarf_bytes producer = fp_dwarf_string(u->d, &unit->forms, e.producer.form, &e.producer.value);
    unit->of_gcc = producer.n >= 4 && !memcmp(producer.p, "GNU ", 4); /* "GNU C17 12.2.0 -O2 -g" */
    unit->has_code = a->tag == FP_TAG_COMPILE_UNIT || a->tag == FP_TAG_SKELETON_UNIT;
    return c.bad ? FP_E_MALFORMED : 0;
}

/* Reads the unit at the cursor and moves to its end.  0 or FP_E_MALFORMED. */
static int read_unit(struct fp_dwarf_units *u, struct fp_dwarf_cursor *c) {
    const uint8_t *info = u->d->sections[FP_DWARF_INFO].p;
    struct fp_dwarf_info_unit unit = {.offset = (uint64_t)(c->p - info)};
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
    FP_TRY(read_first_entry(u, &unit));
    FP_PUSH(u->items, u->n, u->cap) = unit;
    return 0;
}

/* Units may share a table of abbreviations. */
static void number_tables(struct fp_dwarf_units *u) {
    struct fp_pairs_item *order = u->by_line_table; /* not filled yet */
    for (uint32_t i = 0; i < u->n; i++) order[i] = (struct fp_pairs_item){u->items[i].abbreviations, i};
    fp_pairs_sort(order, u->n);
    for (uint32_t i = 0; i < u->n; i++) {
        u->n_tables += !i || order[i].key != order[i - 1].key;
        u->items[order[i].value].table = u->n_tables - 1;
    }
    u->tables = fp_have(calloc((size_t)u->n_tables + 1, sizeof *u->tables));
}

void fp_dwarf_units_begin(struct fp_dwarf_units **to, const struct fp_dwarf *d) {
    if (*to && (*to)->tables) return;
    fp_dwarf_units_free(*to); /* what a call without memory left */
    *to = NULL;
    struct fp_dwarf_units *u = *to = fp_have(calloc(1, sizeof *u));
    u->d = d;
    u->work.most = 32 * ((uint64_t)d->sections[FP_DWARF_ABBREV].n + d->sections[FP_DWARF_INFO].n) + (1 << 20);
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_INFO, 0);
    while (c.p < c.end && !c.bad) u->n_damaged += read_unit(u, &c) == FP_E_MALFORMED;
    fp_dwarf_abbreviations_free(&u->first);
    u->by_line_table = fp_have(malloc(((size_t)u->n + 1) * sizeof *u->by_line_table));
    number_tables(u);
    for (uint32_t i = 0; i < u->n; i++) u->by_line_table[i] = (struct fp_pairs_item){u->items[i].line_table, i};
    fp_pairs_sort(u->by_line_table, u->n);
}

void fp_dwarf_units_free(struct fp_dwarf_units *u) {
    if (!u) return;
    fp_dwarf_abbreviations_free(&u->first);
    for (uint32_t i = 0; u->tables && i < u->n_tables; i++) fp_dwarf_abbreviations_free(&u->tables[i]);
    FP_FREE(u->items, u->by_line_table, u->tables, u);
}

struct fp_dwarf_bytes fp_dwarf_units_directory(const struct fp_dwarf_units *u, uint64_t line_table) {
    const size_t at = fp_pairs_upper(u->by_line_table, u->n, line_table);
    if (!at || u->by_line_table[at - 1].key != line_table) return (struct fp_dwarf_bytes){NULL, 0};
    return u->items[u->by_line_table[at - 1].value].directory;
}
