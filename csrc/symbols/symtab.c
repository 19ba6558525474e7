#include "symbols/symtab.h"

#include "symbols/pairs.h"
#include "symbols/starts.h"

enum { NO_SECTION = 0, FIRST_RESERVED = 0xff00, ABSOLUTE = 0xfff1, COMMON = 0xfff2 };
enum { NO_TYPE = 0, DATA = 1, FUNCTION = 2, INDIRECT = 10 };
enum { LOCAL = 0, WEAK = 2 };
enum { ENTRY_32 = 16, ENTRY_64 = 24 };
enum { NAME_MOST = 255 }; /* bytes of a name that count, because all symbols may share one long name */

struct symtab_entry {
    uint64_t address, size;
    uint32_t name;
    unsigned type, binding, section;
};

static struct symtab_entry read_entry(const uint8_t *p, uint32_t flags) {
    const int swap = !!(flags & FP_SYMTAB_SWAP);
    struct symtab_entry e = {.name = fp_u32s(p, swap)};
    uint8_t info;
    if (flags & FP_SYMTAB_WIDE) {
        info = p[4];
        e.section = fp_u16s(p + 6, swap);
        e.address = fp_u64s(p + 8, swap);
        e.size = fp_u64s(p + 16, swap);
    } else {
        e.address = fp_u32s(p + 4, swap);
        e.size = fp_u32s(p + 8, swap);
        info = p[12];
        e.section = fp_u16s(p + 14, swap);
    }
    e.type = info & 15;
    e.binding = info >> 4;
    if (flags & FP_SYMTAB_THUMB && e.type == FUNCTION) e.address &= ~(uint64_t)1;
    return e;
}

static int names_code(const struct fp_symtab_in *in, struct symtab_entry e) {
    if (e.section == NO_SECTION || e.section == ABSOLUTE || e.section == COMMON) return 0;
    if (in->flags & FP_SYMTAB_MARKERS && e.name < in->n_strings && in->strings[e.name] == '$') return 0;
    return e.type == NO_TYPE || e.type == DATA || e.type == FUNCTION || e.type == INDIRECT;
}

/* The name of an entry, of at most NAME_MOST bytes, and its length. */
static size_t name_of(const struct fp_symtab_in *in, struct symtab_entry e, const uint8_t **name) {
    if (e.name >= in->n_strings) return 0;
    *name = in->strings + e.name;
    const size_t left = in->n_strings - e.name, n = left < NAME_MOST ? left : NAME_MOST;
    const uint8_t *end = memchr(*name, 0, n);
    return end ? (size_t)(end - *name) : n;
}

/* True for `free@V1`, a version for old programs, but not for `free@@V2` or `free`. */
static int is_old_version(const uint8_t *name, size_t n) {
    const uint8_t *at = n ? memchr(name, '@', n) : NULL;
    return at && (at + 1 == name + n || at[1] != '@');
}

/* How good a name is: the highest rank is shown. */
static uint32_t rank(const struct fp_symtab_in *in, struct symtab_entry e) {
    const uint8_t *name = NULL;
    const size_t n = name_of(in, e, &name);
    uint32_t underscores = 0;
    while (underscores < n && name[underscores] == '_') underscores++;
    const uint32_t binding = e.binding == WEAK ? 0 : e.binding == LOCAL ? 1 : 2;
    return (uint32_t)!is_old_version(name, n) << 24 | binding << 16 | (NAME_MOST - underscores) << 8 | (uint32_t)n;
}

/* Whether to keep b, which comes after a in the table and has its address. */
static int is_better(const struct fp_symtab_in *in, struct symtab_entry a, struct symtab_entry b) {
    return a.size == b.size ? rank(in, b) > rank(in, a) : b.size > a.size;
}

/* The bytes of a symbol without size, if the next one begins at `next`. */
static uint64_t reach(const struct fp_symtab_in *in, struct symtab_entry e, uint64_t next) {
    /* in a file of many sections, theirs is in another table */
    const uint64_t end = e.section >= FIRST_RESERVED ? next : e.section < in->n_ends ? in->ends[e.section] : 0;
    const uint64_t limit = next > e.address && next < end ? next : end;
    return limit > e.address ? limit - e.address : 0;
}

/* Fills the table from the entries in order of their addresses. */
static void fill(struct fp_symtab *s, const struct fp_symtab_in *in, const struct fp_pairs_item *pairs, size_t n) {
    const size_t step = in->flags & FP_SYMTAB_WIDE ? ENTRY_64 : ENTRY_32;
    uint64_t covered = 0; /* where functions end that begin before */
    for (size_t i = 0; i < n;) {
        struct symtab_entry best = read_entry(in->table + pairs[i].value * step, in->flags);
        for (i++; i < n && pairs[i].key == best.address; i++) {
            const struct symtab_entry e = read_entry(in->table + pairs[i].value * step, in->flags);
            if (is_better(in, best, e)) best = e;
        }
        const int is_label = !best.size && best.type == NO_TYPE && best.binding == LOCAL;
        if (is_label && best.address < covered) continue;
        if (best.type == FUNCTION && best.address + best.size > covered) covered = best.address + best.size;
        s->starts[s->n] = best.address;
        s->sizes[s->n] = best.size ? best.size : reach(in, best, i < n ? pairs[i].key : best.address);
        s->names[s->n++] = best.name;
    }
}

struct fp_symtab *fp_symtab_new(const struct fp_symtab_in *in) {
    const size_t step = in->flags & FP_SYMTAB_WIDE ? ENTRY_64 : ENTRY_32;
    size_t count = in->n / step, kept = 0;
    if (count > UINT32_MAX) count = UINT32_MAX;
    struct fp_symtab *s = fp_made(sizeof *s);
    struct fp_pairs_item *pairs = fp_scratch(count + 1, sizeof *pairs); /* by address: the number of the entry */
    for (size_t i = 0; i < count; i++) {
        const struct symtab_entry e = read_entry(in->table + i * step, in->flags);
        if (names_code(in, e)) pairs[kept++] = (struct fp_pairs_item){e.address, i};
    }
    fp_pairs_sort(pairs, kept);
    s->starts = fp_have(malloc((kept + 1) * sizeof *s->starts));
    s->sizes = fp_have(malloc((kept + 1) * sizeof *s->sizes));
    s->names = fp_have(malloc((kept + 1) * sizeof *s->names));
    fill(s, in, pairs, kept);
    fp_scratch_free(pairs);
    return s;
}

void fp_symtab_free(struct fp_symtab *s) {
    FP_FREE(s->starts, s->sizes, s->names, s);
}

int64_t fp_symtab_find(const struct fp_symtab *s, uint64_t address) {
    return fp_starts_last(s->starts, s->n, address);
}
