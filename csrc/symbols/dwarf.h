/* symbols/dwarf.h - the basics of DWARF: sections, numbers, forms.
 *
 * Numbers have a fixed size, or are LEB128: 7 bits a byte, the lowest first; the top bit is set if another byte
 * follows.  A form is the encoding of a value.  A unit begins with its length; if that is 0xffffffff, a length of 8
 * bytes follows, and offsets in the unit have 8 bytes ("64-bit DWARF") instead of 4.  Source: DWARF 5, sections 7.4 to
 * 7.6.
 */
#pragma once

#include "core/core.h"

/* cffi-begin */

enum fp_dwarf_section {
    FP_DWARF_LINE = 0,
    FP_DWARF_LINE_STR = 1,
    FP_DWARF_STR = 2,
    FP_DWARF_STR_OFFSETS = 3,
    FP_DWARF_INFO = 4,
    FP_DWARF_ABBREV = 5,
    FP_DWARF_ADDR = 6,
    FP_DWARF_RANGES = 7,
    FP_DWARF_RNGLISTS = 8,
    FP_DWARF_SECTIONS = 9
};

struct fp_dwarf_bytes {
    const uint8_t *p;
    size_t n;
};

/* The sections of a file, decompressed; missing ones are empty.  The caller fills it in and owns the bytes. */
struct fp_dwarf {
    struct fp_dwarf_bytes sections[9]; /* by enum fp_dwarf_section */
    int32_t swap;                      /* the other byte order */
    int32_t address_size;              /* of the file: 4 or 8 */
    int32_t has_all; /* otherwise only the first two are loaded: functions that need others return FP_NEEDS */
};

/* Whether a unit has its functions in another file (.dwo), according to .debug_abbrev. */
int fp_dwarf_is_split(const struct fp_dwarf *d);

/* cffi-end */

/* Reads from p up to `end`.  `bad` is sticky: a value reached past the end or did not fit; further reads return 0. */
struct fp_dwarf_cursor {
    const uint8_t *p, *end;
    int32_t swap;
    int32_t bad;
};

static inline struct fp_dwarf_cursor fp_dwarf_cursor_at(const struct fp_dwarf *d, enum fp_dwarf_section section,
                                                        uint64_t offset) {
    const struct fp_dwarf_bytes s = d->sections[section];
    struct fp_dwarf_cursor c = {s.p, s.p, d->swap, 0};
    if (!s.p || offset > s.n) {
        c.bad = 1;
        return c;
    }
    c.p += offset;
    c.end += s.n;
    return c;
}

static inline uint64_t fp_dwarf_cursor_fail(struct fp_dwarf_cursor *c) {
    c->bad = 1;
    c->p = c->end;
    return 0;
}

static inline size_t fp_dwarf_cursor_left(const struct fp_dwarf_cursor *c) {
    return (size_t)(c->end - c->p);
}

static inline const uint8_t *fp_dwarf_take_bytes(struct fp_dwarf_cursor *c, uint64_t n) {
    if (n > fp_dwarf_cursor_left(c)) {
        fp_dwarf_cursor_fail(c);
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

/* Reads a number of 1 to 8 bytes. */
static inline uint64_t fp_dwarf_take(struct fp_dwarf_cursor *c, unsigned n) {
    const uint8_t *p = fp_dwarf_take_bytes(c, n);
    if (!p) return 0;
    switch (n) {
        case 1: return p[0];
        case 2: return fp_u16s(p, c->swap);
        case 4: return fp_u32s(p, c->swap);
        case 8: return fp_u64s(p, c->swap);
        default: break;
    }
    uint64_t v = 0;
    const int big = c->swap ^ (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    for (unsigned i = 0; i < n && i < 8; i++) v |= (uint64_t)p[big ? n - 1 - i : i] << 8 * i;
    return v;
}

static inline uint64_t fp_dwarf_take_uleb(struct fp_dwarf_cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; c->p < c->end; shift += 7) {
        const uint8_t byte = *c->p++;
        const uint64_t bits = byte & 0x7f;
        if (shift < 64 && bits << shift >> shift == bits)
            v |= bits << shift;
        else if (bits)
            return fp_dwarf_cursor_fail(c);
        if (byte < 0x80) return v;
        if (shift >= 1 << 10) break; /* padded beyond all reason */
    }
    return fp_dwarf_cursor_fail(c);
}

/* Reads a signed LEB128; bits beyond 64 are dropped. */
static inline int64_t fp_dwarf_take_sleb(struct fp_dwarf_cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; c->p < c->end; shift += 7) {
        const uint8_t byte = *c->p++;
        if (shift < 64) v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte & 0x40 && shift + 7 < 64) v |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)v;
        }
        if (shift >= 1 << 10) break;
    }
    return (int64_t)fp_dwarf_cursor_fail(c);
}

enum { FP_LONGEST_STRING = 1 << 16 }; /* of file names; real systems stop at 4096 */

/* Reads a NUL-terminated string. */
static inline struct fp_dwarf_bytes fp_dwarf_take_string(struct fp_dwarf_cursor *c) {
    const size_t left = fp_dwarf_cursor_left(c), most = left < FP_LONGEST_STRING ? left : FP_LONGEST_STRING;
    const uint8_t *p = c->p, *nul = most ? memchr(p, 0, most) : NULL;
    if (!nul) {
        fp_dwarf_cursor_fail(c);
        return (struct fp_dwarf_bytes){NULL, 0};
    }
    c->p = nul + 1;
    return (struct fp_dwarf_bytes){p, (size_t)(nul - p)};
}

/* The parameters of a unit's forms. */
struct fp_dwarf_unit {
    uint16_t version;
    uint8_t address_size; /* 1 to 8 */
    uint8_t offset_size;  /* 4 or 8 */
    uint64_t str_offsets; /* the start of its part of .debug_str_offsets */
    uint64_t addresses;   /* of .debug_addr */
    uint64_t range_lists; /* of .debug_rnglists, where the offsets of its lists are */
};

/* Reads the length and the version of a unit.  Returns the end of the unit, or NULL, with c->bad set, if there is
 * none. */
static inline const uint8_t *fp_dwarf_take_unit(struct fp_dwarf_cursor *c, struct fp_dwarf_unit *u) {
    uint64_t length = fp_dwarf_take(c, 4);
    u->offset_size = 4;
    if (length == 0xffffffff) {
        length = fp_dwarf_take(c, 8);
        u->offset_size = 8;
    } else if (length >= 0xfffffff0) {
        fp_dwarf_cursor_fail(c);
    }
    if (!c->bad && length > fp_dwarf_cursor_left(c)) fp_dwarf_cursor_fail(c);
    if (c->bad) return NULL;
    const uint8_t *end = c->p + length;
    u->version = (uint16_t)fp_dwarf_take(c, 2);
    return end;
}

/* The location of a form's string; `value` is the content of the form. */
struct fp_dwarf_value {
    uint64_t number;            /* of a constant, an offset, an index, an address */
    struct fp_dwarf_bytes text; /* of DW_FORM_string */
};

/* DW_FORM_...; others are only in the table of dwarf.c. */
enum fp_form {
    FP_FORM_ADDR = 0x01,
    FP_FORM_BLOCK2 = 0x03,
    FP_FORM_BLOCK4 = 0x04,
    FP_FORM_STRING = 0x08,
    FP_FORM_BLOCK = 0x09,
    FP_FORM_BLOCK1 = 0x0a,
    FP_FORM_SDATA = 0x0d,
    FP_FORM_STRP = 0x0e,
    FP_FORM_UDATA = 0x0f,
    FP_FORM_REF_ADDR = 0x10,
    FP_FORM_REF1 = 0x11,
    FP_FORM_REF_UDATA = 0x15,
    FP_FORM_INDIRECT = 0x16,
    FP_FORM_EXPRLOC = 0x18,
    FP_FORM_STRX = 0x1a,
    FP_FORM_ADDRX = 0x1b,
    FP_FORM_LINE_STRP = 0x1f,
    FP_FORM_IMPLICIT_CONST = 0x21,
    FP_FORM_LOCLISTX = 0x22,
    FP_FORM_RNGLISTX = 0x23,
    FP_FORM_STRX1 = 0x25,
    FP_FORM_STRX4 = 0x28,
    FP_FORM_ADDRX1 = 0x29,
    FP_FORM_ADDRX4 = 0x2c,
    FP_FORM_GNU_ADDR_INDEX = 0x1f01,
    FP_FORM_GNU_STR_INDEX = 0x1f02,
    FP_FORM_GNU_REF_ALT = 0x1f20,
    FP_FORM_GNU_STRP_ALT = 0x1f21
};

/* Reads a value of a form; an unknown form sets c->bad.  Forms without bytes (flag_present, implicit_const) are 0. */
void fp_dwarf_take_form(struct fp_dwarf_cursor *c, const struct fp_dwarf_unit *u, uint64_t form,
                        struct fp_dwarf_value *v);

/* The address of a value of DW_FORM_addr, or of an index into .debug_addr; 0 if that is past the end. */
uint64_t fp_dwarf_address(const struct fp_dwarf *d, const struct fp_dwarf_unit *u, uint64_t form, uint64_t number);

/* The string of a value; empty if the value is not a string, or not in this file. */
struct fp_dwarf_bytes fp_dwarf_string(const struct fp_dwarf *d, const struct fp_dwarf_unit *u, uint64_t form,
                                      const struct fp_dwarf_value *v);
