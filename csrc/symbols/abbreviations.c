#include "symbols/abbreviations.h"

/* Reads an abbreviation.  Returns its code, 0 at the end of the table.  OProfile's library for JIT code omits the zeros
 * that end the last table, so the end of the section counts as well. */
static uint64_t take_abbreviation(struct fp_dwarf_cursor *c, struct fp_dwarf_abbreviation *a) {
    if (c->p == c->end) return 0;
    const uint64_t code = fp_dwarf_take_uleb(c);
    if (!code) return 0;
    a->tag = fp_dwarf_take_uleb(c);
    a->has_children = !!fp_dwarf_take(c, 1);
    return c->bad ? 0 : code;
}

/* Reads one attribute of an abbreviation.  Returns 0 after the last one. */
static int take_attribute(struct fp_dwarf_cursor *c, struct fp_dwarf_attribute *a) {
    const uint64_t name = fp_dwarf_take_uleb(c);
    if (!name && c->p == c->end) return 0;
    const uint64_t form = fp_dwarf_take_uleb(c);
    a->constant = form == FP_FORM_IMPLICIT_CONST ? fp_dwarf_take_sleb(c) : 0;
    if (name > UINT32_MAX || form > UINT32_MAX) fp_dwarf_cursor_fail(c);
    a->name = (uint32_t)name;
    a->form = (uint32_t)form;
    return !c->bad && (name || form);
}

/* The size of a form, UINT32_MAX if it depends on the value. */
static uint32_t size_of(const struct fp_dwarf_unit *u, uint32_t form) {
    static const uint8_t zeros[32] = {0};
    switch (form) {
        case FP_FORM_BLOCK2:
        case FP_FORM_BLOCK4:
        case FP_FORM_BLOCK:
        case FP_FORM_BLOCK1:
        case FP_FORM_EXPRLOC:
        case FP_FORM_STRING:
        case FP_FORM_SDATA:
        case FP_FORM_UDATA:
        case FP_FORM_REF_UDATA:
        case FP_FORM_INDIRECT:
        case FP_FORM_STRX:
        case FP_FORM_ADDRX:
        case FP_FORM_LOCLISTX:
        case FP_FORM_RNGLISTX:
        case FP_FORM_GNU_ADDR_INDEX:
        case FP_FORM_GNU_STR_INDEX: return UINT32_MAX;
        default: break;
    }
    struct fp_dwarf_cursor c = {zeros, zeros + sizeof zeros, 0, 0};
    struct fp_dwarf_value v;
    fp_dwarf_take_form(&c, u, form, &v);
    return c.bad ? UINT32_MAX : (uint32_t)(c.p - zeros);
}

static void add_attributes(struct fp_dwarf_abbreviations *t, struct fp_dwarf_cursor *c,
                           struct fp_dwarf_abbreviation *a) {
    struct fp_dwarf_attribute attribute;
    uint64_t nbytes = 0;
    a->first = t->n_attributes;
    while (take_attribute(c, &attribute)) {
        FP_PUSH(t->attributes, t->n_attributes, t->cap_attributes) = attribute;
        if (nbytes < UINT32_MAX) nbytes += size_of(&t->forms, attribute.form);
    }
    a->end = t->n_attributes;
    a->nbytes = nbytes < UINT32_MAX ? (uint32_t)nbytes : UINT32_MAX;
}

static int is_same_unit(const struct fp_dwarf_unit *a, const struct fp_dwarf_unit *b) {
    return a->version == b->version && a->address_size == b->address_size && a->offset_size == b->offset_size;
}

int fp_dwarf_abbreviations_read(struct fp_dwarf_abbreviations *t, const struct fp_dwarf *d,
                                const struct fp_dwarf_unit *forms, uint64_t offset, uint64_t stop,
                                struct fp_dwarf_work *work) {
    if (t->is_read && is_same_unit(&t->forms, forms)) return 0;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_ABBREV, offset);
    const uint8_t *start = c.p;
    struct fp_dwarf_abbreviation a;
    uint64_t code = 0;
    t->n = t->n_attributes = 0;
    t->is_read = 0;
    t->forms = *forms;
    while ((!stop || code != stop) && (code = take_abbreviation(&c, &a))) {
        add_attributes(t, &c, &a);
        *FP_AT(t->codes, t->cap_codes, t->n) = (struct fp_pairs_item){code, t->n};
        FP_PUSH(t->items, t->n, t->cap_items) = a;
        if (c.bad || work->done + (size_t)(c.p - start) > work->most) break;
    }
    work->done += (uint64_t)(c.p - start);
    if (c.bad || work->done > work->most) return FP_E_MALFORMED;
    fp_pairs_sort(t->codes, t->n);
    t->is_read = !stop;
    return 0;
}

void fp_dwarf_abbreviations_free(struct fp_dwarf_abbreviations *t) {
    FP_FREE(t->items, t->attributes, t->codes);
    *t = (struct fp_dwarf_abbreviations){0};
}
