/* symbols/abbreviations.h - the abbreviations of a unit: kinds of entries, with their attributes and forms.  C only.
 *
 *   .debug_abbrev   2: subprogram (0x2e), no children, (low_pc, addr) (decl_line, data1)
 *                   02 2e 00  11 01  3b 0b  00 00
 *
 * Source: DWARF 5, section 7.5.3.
 */
#pragma once

#include "symbols/dwarf.h"
#include "symbols/pairs.h"

struct fp_dwarf_attribute {
    uint32_t name, form;
    int64_t constant; /* of DW_FORM_implicit_const */
};

struct fp_dwarf_abbreviation {
    uint64_t tag;
    uint32_t first, end; /* its attributes */
    uint32_t nbytes;     /* of an entry's attributes; UINT32_MAX if that depends on the entry */
    int32_t has_children;
};

struct fp_dwarf_abbreviations {
    struct fp_dwarf_abbreviation *items;
    struct fp_dwarf_attribute *attributes;
    struct fp_pairs_item *codes; /* by code: the number of the item */
    uint32_t n, n_attributes, cap_items, cap_attributes, cap_codes;
    struct fp_dwarf_unit forms; /* the unit it was read for: sizes depend on it */
    int is_read;                /* whole */
};

/* Bytes read so far: damaged files could make that quadratic. */
struct fp_dwarf_work {
    uint64_t done, most;
};

/* Reads the table at `offset` of .debug_abbrev for a unit, unless that is done; up to the abbreviation `stop`, or all
 * of it if `stop` is 0.  0 or FP_E_MALFORMED. */
int fp_dwarf_abbreviations_read(struct fp_dwarf_abbreviations *t, const struct fp_dwarf *d,
                                const struct fp_dwarf_unit *forms, uint64_t offset, uint64_t stop,
                                struct fp_dwarf_work *work);
void fp_dwarf_abbreviations_free(struct fp_dwarf_abbreviations *t);

/* The abbreviation of a code, or NULL. */
static inline const struct fp_dwarf_abbreviation *fp_dwarf_abbreviations_find(const struct fp_dwarf_abbreviations *t,
                                                                              uint64_t code) {
    if (code && code <= t->n && t->codes[code - 1].key == code) return &t->items[t->codes[code - 1].value];
    const size_t at = fp_pairs_upper(t->codes, t->n, code);
    return at && t->codes[at - 1].key == code ? &t->items[t->codes[at - 1].value] : NULL;
}

/* Skips the attributes of an entry. */
static inline void fp_dwarf_skip_entry(const struct fp_dwarf_abbreviations *t, const struct fp_dwarf_abbreviation *a,
                                       struct fp_dwarf_cursor *c) {
    if (a->nbytes != UINT32_MAX) {
        fp_dwarf_take_bytes(c, a->nbytes);
        return;
    }
    struct fp_dwarf_value v;
    for (uint32_t i = a->first; i < a->end && !c->bad; i++) fp_dwarf_take_form(c, &t->forms, t->attributes[i].form, &v);
}
