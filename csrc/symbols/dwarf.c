#include "symbols/dwarf.h"

/* How the bytes of a form are read, by form: that many of a number, as the size of an (a)ddress or an (o)ffset in the
 * unit, a (u)nsigned or (s)igned LEB128, a (t)ext, a (b)lock after its LEB128 or after a number of 1 (B), 2 (C) or 4
 * (D) bytes, 16 (w)ide ones, or (-) none. */
static const char forms[] =
    " a CD248tbB11sou" /* addr ... udata */
    "o1248u ob-uu4owo" /* ref_addr ... line_strp */
    "8-uu812341234";   /* ref_sig8 ... addrx4 */

void fp_dwarf_take_form(struct fp_dwarf_cursor *c, const struct fp_dwarf_unit *u, uint64_t form,
                        struct fp_dwarf_value *v) {
    *v = (struct fp_dwarf_value){0};
    if (form == FP_FORM_INDIRECT) {
        form = fp_dwarf_take_uleb(c);
        if (form == FP_FORM_INDIRECT || form == FP_FORM_IMPLICIT_CONST) fp_dwarf_cursor_fail(c);
    }
    char kind = form < sizeof forms - 1 ? forms[form] : 0;
    if (form == FP_FORM_GNU_ADDR_INDEX || form == FP_FORM_GNU_STR_INDEX) kind = 'u';
    if (form == FP_FORM_GNU_REF_ALT || form == FP_FORM_GNU_STRP_ALT) kind = 'o';
    if (form == FP_FORM_REF_ADDR && u->version < 3) kind = 'a';
    switch (kind) {
        case '-': return;
        case '1': v->number = fp_dwarf_take(c, 1); return;
        case '2': v->number = fp_dwarf_take(c, 2); return;
        case '3': v->number = fp_dwarf_take(c, 3); return;
        case '4': v->number = fp_dwarf_take(c, 4); return;
        case '8': v->number = fp_dwarf_take(c, 8); return;
        case 'a': v->number = fp_dwarf_take(c, u->address_size); return;
        case 'o': v->number = fp_dwarf_take(c, u->offset_size); return;
        case 'u': v->number = fp_dwarf_take_uleb(c); return;
        case 's': v->number = (uint64_t)fp_dwarf_take_sleb(c); return;
        case 't': v->text = fp_dwarf_take_string(c); return;
        case 'w': fp_dwarf_take_bytes(c, 16); return;
        case 'B': fp_dwarf_take_bytes(c, fp_dwarf_take(c, 1)); return;
        case 'C': fp_dwarf_take_bytes(c, fp_dwarf_take(c, 2)); return;
        case 'D': fp_dwarf_take_bytes(c, fp_dwarf_take(c, 4)); return;
        case 'b': fp_dwarf_take_bytes(c, fp_dwarf_take_uleb(c)); return;
        default: fp_dwarf_cursor_fail(c);
    }
}

uint64_t fp_dwarf_address(const struct fp_dwarf *d, const struct fp_dwarf_unit *u, uint64_t form, uint64_t number) {
    if (form == FP_FORM_ADDR) return number;
    uint64_t at;
    if (__builtin_mul_overflow(number, u->address_size, &at) || __builtin_add_overflow(at, u->addresses, &at)) return 0;
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_ADDR, at);
    return fp_dwarf_take(&c, u->address_size);
}

static struct fp_dwarf_bytes string_at(const struct fp_dwarf *d, enum fp_dwarf_section section, uint64_t offset) {
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, section, offset);
    return fp_dwarf_take_string(&c);
}

struct fp_dwarf_bytes fp_dwarf_string(const struct fp_dwarf *d, const struct fp_dwarf_unit *u, uint64_t form,
                                      const struct fp_dwarf_value *v) {
    uint64_t at;
    switch (form) {
        case FP_FORM_STRING: return v->text;
        case FP_FORM_STRP: return string_at(d, FP_DWARF_STR, v->number);
        case FP_FORM_LINE_STRP: return string_at(d, FP_DWARF_LINE_STR, v->number);
        case FP_FORM_STRX:
        case FP_FORM_STRX1:
        case FP_FORM_STRX1 + 1:
        case FP_FORM_STRX1 + 2:
        case FP_FORM_STRX4:
        case FP_FORM_GNU_STR_INDEX:
            if (__builtin_mul_overflow(v->number, u->offset_size, &at) ||
                __builtin_add_overflow(at, u->str_offsets, &at))
                break;
            struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_STR_OFFSETS, at);
            const uint64_t offset = fp_dwarf_take(&c, u->offset_size);
            if (!c.bad) return string_at(d, FP_DWARF_STR, offset);
            break;
        default: break;
    }
    return (struct fp_dwarf_bytes){NULL, 0};
}

enum { TAG_COMPILE_UNIT = 0x11, TAG_SKELETON_UNIT = 0x4a, AT_GNU_DWO_NAME = 0x2130 };

int fp_dwarf_is_split(const struct fp_dwarf *d) {
    struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_ABBREV, 0);
    while (c.p < c.end && !c.bad) {
        if (!fp_dwarf_take_uleb(&c)) continue; /* the end of a table */
        const uint64_t tag = fp_dwarf_take_uleb(&c);
        fp_dwarf_take(&c, 1); /* whether there are children */
        if (tag == TAG_SKELETON_UNIT && !c.bad) return 1;
        for (;;) {
            const uint64_t attribute = fp_dwarf_take_uleb(&c), form = fp_dwarf_take_uleb(&c);
            if (form == FP_FORM_IMPLICIT_CONST) fp_dwarf_take_sleb(&c);
            if (c.bad || (!attribute && !form)) break;
            if (attribute == AT_GNU_DWO_NAME && tag == TAG_COMPILE_UNIT) return 1;
        }
    }
    return 0;
}
