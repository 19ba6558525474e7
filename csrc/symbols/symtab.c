#include "symbols/symtab.h"

#include <stdlib.h>

#include "symbols/pairs.h"
#include "symbols/starts.h"

enum { NO_SECTION = 0, ABSOLUTE = 0xfff1, COMMON = 0xfff2 };
enum { NO_TYPE = 0, DATA = 1, FUNCTION = 2, INDIRECT = 10 };
enum { ENTRY_32 = 16, ENTRY_64 = 24 };

struct symtab_entry {
    uint64_t address, size;
    uint32_t name;
    unsigned type, section;
};

static struct symtab_entry read_entry(const uint8_t *p, uint32_t flags) {
    const int swap = !!(flags & FP_SYMTAB_SWAP);
    struct symtab_entry e = {.name = fp_u32s(p, swap)};
    if (flags & FP_SYMTAB_WIDE) {
        e.type = p[4] & 15;
        e.section = fp_u16s(p + 6, swap);
        e.address = fp_u64s(p + 8, swap);
        e.size = fp_u64s(p + 16, swap);
    } else {
        e.address = fp_u32s(p + 4, swap);
        e.size = fp_u32s(p + 8, swap);
        e.type = p[12] & 15;
        e.section = fp_u16s(p + 14, swap);
    }
    if (flags & FP_SYMTAB_THUMB && e.type == FUNCTION) e.address &= ~(uint64_t)1;
    return e;
}

/* True for `free@V1`, a version for old programs, but not for `free@@V2` or `free`.  Reads at most 256 bytes of a
 * name, because all symbols may share one long name. */
static int is_old_version(const uint8_t *strings, size_t n_strings, uint32_t name) {
    if (name >= n_strings) return 0;
    const uint8_t *p = strings + name;
    const size_t n = n_strings - name < 256 ? n_strings - name : 256;
    for (size_t i = 0; i < n && p[i]; i++)
        if (p[i] == '@') return i + 1 == n || p[i + 1] != '@';
    return 0;
}

struct fp_symtab *fp_symtab_new(const uint8_t *table, size_t n, const uint8_t *strings, size_t n_strings,
                                uint32_t flags) {
    const size_t step = flags & FP_SYMTAB_WIDE ? ENTRY_64 : ENTRY_32;
    size_t count = n / step, kept = 0;
    if (count > UINT32_MAX) count = UINT32_MAX;
    struct fp_symtab *s = calloc(1, sizeof *s);
    struct fp_pairs_item *pairs = malloc((count + 1) * sizeof *pairs); /* by address: the number of the entry */
    if (!s || !pairs) goto failed;
    for (size_t i = 0; i < count; i++) {
        const struct symtab_entry e = read_entry(table + i * step, flags);
        const int is_marker = flags & FP_SYMTAB_MARKERS && e.name < n_strings && strings[e.name] == '$';
        const int names_code = e.type == NO_TYPE || e.type == DATA || e.type == FUNCTION || e.type == INDIRECT;
        const int is_defined = e.section != NO_SECTION && e.section != ABSOLUTE && e.section != COMMON;
        if (is_defined && names_code && !is_marker) pairs[kept++] = (struct fp_pairs_item){e.address, i};
    }
    if (fp_pairs_sort(pairs, kept)) goto failed;
    s->starts = malloc((kept + 1) * sizeof *s->starts);
    s->sizes = malloc((kept + 1) * sizeof *s->sizes);
    s->names = malloc((kept + 1) * sizeof *s->names);
    if (!s->starts || !s->sizes || !s->names) goto failed;
    for (size_t i = 0; i < kept; i++) {
        const struct symtab_entry e = read_entry(table + pairs[i].value * step, flags);
        const int again = s->n && s->starts[s->n - 1] == e.address;
        if (again && e.size < s->sizes[s->n - 1]) continue;
        if (again && e.size == s->sizes[s->n - 1] && is_old_version(strings, n_strings, e.name)) continue;
        s->n += !again;
        s->starts[s->n - 1] = e.address;
        s->sizes[s->n - 1] = e.size;
        s->names[s->n - 1] = e.name;
    }
    free(pairs);
    return s;
failed:
    free(pairs);
    fp_symtab_free(s);
    return NULL;
}

void fp_symtab_free(struct fp_symtab *s) {
    if (!s) return;
    free(s->starts);
    free(s->sizes);
    free(s->names);
    free(s);
}

int64_t fp_symtab_find(const struct fp_symtab *s, uint64_t address) {
    return fp_starts_last(s->starts, s->n, address);
}
