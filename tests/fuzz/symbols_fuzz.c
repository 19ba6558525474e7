/* Symbol tables and line tables under the fuzzer.  The input is the data that csrc/symbols borrows from an ELF file:
 *
 *   flags u8      1 other byte order, 2 addresses of 32 bits, 4 the other sections come only on request
 *   lengths u16   of each section of struct fp_dwarf
 *   sections      one after the other; the last one may be longer or shorter than its length
 *
 * The same bytes are also read as a symbol table, as kallsyms, as maps, and as an unlinked file with relocations. Every
 * result must match the query and lie within the sections. */
#include <stdlib.h>

#include "mutate.h"
#include "symbols/kallsyms.h"
#include "symbols/maps.h"
#include "symbols/lines.h"
#include "symbols/relocate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUESTIONS = 64 };

static void check_piece(const struct fp_dwarf *d, struct fp_dwarf_bytes piece) {
    if (!piece.n) return;
    for (int i = 0; i < FP_DWARF_SECTIONS; i++) {
        const struct fp_dwarf_bytes s = d->sections[i];
        if (s.p && piece.p >= s.p && piece.p + piece.n < s.p + s.n && !memchr(piece.p, 0, piece.n)) return;
    }
    abort();
}

/* The functions at an address, each with its name and file. */
static void ask_chain(struct fp_dwarf_lines *l, struct fp_dwarf *d, const struct fp_dwarf *all, uint64_t address) {
    static struct fp_dwarf_frame frames[FP_DWARF_DEEPEST];
    struct fp_dwarf_bytes pieces[3];
    uint32_t n = 0;
    int status = fp_dwarf_lines_chain(l, address, frames, FP_DWARF_DEEPEST, &n);
    if (status == FP_NEEDS) {
        *d = *all;
        status = fp_dwarf_lines_chain(l, address, frames, FP_DWARF_DEEPEST, &n);
    }
    if (status < 0 || status == FP_NEEDS || (status == 1) != (n > 0)) abort();
    for (uint32_t i = 0; i < n; i++) {
        if (!frames[i].start || fp_dwarf_lines_name(l, frames[i].function, pieces) < 0) abort();
        check_piece(d, pieces[0]);
        uint32_t line;
        if (fp_dwarf_lines_declared(l, frames[i].function, &line) != (line != 0)) abort();
        if (!frames[i].has_place) continue;
        status = fp_dwarf_lines_file(l, frames[i].place.unit, frames[i].place.file, pieces);
        if (status < 0 || status == FP_NEEDS) abort();
        for (int k = 0; status && k < 3; k++) check_piece(d, pieces[k]);
    }
}

static void ask(struct fp_dwarf_lines *l, struct fp_dwarf *d, const struct fp_dwarf *all, uint64_t address) {
    struct fp_dwarf_line found;
    struct fp_dwarf_bytes pieces[3];
    for (int entry = 0; entry < 2; entry++) {
        int status = entry ? fp_dwarf_lines_entry(l, address, &found) : fp_dwarf_lines_find(l, address, &found);
        if (status == FP_NEEDS) {
            *d = *all;
            status = fp_dwarf_lines_entry(l, address, &found); /* fp_dwarf_lines_find never requests a section */
        }
        if (status < 0 || status == FP_NEEDS) abort();
        if (!status) continue;
        if (entry ? found.address != address || !found.line : found.address > address) abort();
        status = fp_dwarf_lines_file(l, found.unit, found.file, pieces);
        if (status == FP_NEEDS) {
            *d = *all;
            status = fp_dwarf_lines_file(l, found.unit, found.file, pieces);
        }
        if (status < 0 || status == FP_NEEDS) abort();
        for (int i = 0; status && i < 3; i++) check_piece(d, pieces[i]);
    }
    ask_chain(l, d, all, address);
}

static void read_lines(const uint8_t *data, size_t size, const uint8_t *exact, size_t n_exact) {
    struct fp_dwarf all = {.swap = data[0] & 1, .address_size = data[0] & 2 ? 4 : 8, .has_all = 1}, d;
    size_t at = 0;
    for (int i = 0; i < FP_DWARF_SECTIONS && size >= 1 + 2 * FP_DWARF_SECTIONS; i++) {
        size_t n = fp_u16(data + 1 + 2 * i);
        if (n > n_exact - at) n = n_exact - at;
        all.sections[i] = (struct fp_dwarf_bytes){n ? exact + at : NULL, n};
        at += n;
    }
    d = all;
    if (data[0] & 4) {
        d.has_all = 0;
        for (int i = FP_DWARF_STR; i < FP_DWARF_SECTIONS; i++) d.sections[i] = (struct fp_dwarf_bytes){NULL, 0};
    }
    fp_dwarf_is_split(&all);
    struct fp_dwarf_lines *l = fp_dwarf_lines_new(&d);
    if (!l) abort();
    const struct fp_dwarf_lines_stats stats = fp_dwarf_lines_stats(l);
    if (stats.units > n_exact || stats.sequences > n_exact) abort();
    uint64_t address = 0x1000;
    for (size_t i = 0; i < QUESTIONS; i++) {
        ask(l, &d, &all, address);
        if (i == QUESTIONS / 2) fp_dwarf_lines_discriminate(l); /* reads the rows once more */
        /* addresses in the input are likely to be in its tables */
        address = i + 8 <= n_exact ? fp_u64s(exact + i * (n_exact - 7) / QUESTIONS, all.swap) : address + i;
        if (all.address_size == 4) address &= UINT32_MAX;
        ask(l, &d, &all, address >> (i % 3 ? 0 : 48));
    }
    for (uint64_t near = 0x1000; near < 0x1200; near += 3) ask(l, &d, &all, near);
    fp_dwarf_lines_free(l);
}

static void read_symbols(uint8_t flags, const uint8_t *p, size_t n) {
    const size_t half = n / 2;
    const uint64_t ends[] = {0, UINT64_MAX, n ? p[0] : 0};
    struct fp_symtab *s = fp_symtab_new(&(struct fp_symtab_in){p, half, p + half, n - half, ends, 3, flags & 15});
    if (!s) abort();
    for (uint32_t i = 0; i < s->n; i++) {
        if (i && s->starts[i] <= s->starts[i - 1]) abort();
        if (fp_symtab_find(s, s->starts[i]) != i) abort();
        if (s->starts[i] && fp_symtab_find(s, s->starts[i] - 1) >= i) abort();
    }
    if (s->n && fp_symtab_find(s, UINT64_MAX) != s->n - 1) abort();
    fp_symtab_free(s);
}

static void read_kallsyms(uint32_t width, const uint8_t *p, size_t n) {
    struct fp_kallsyms *all = fp_kallsyms_new(p, n, width);
    if (!all) abort();
    uint64_t in_parts = 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct fp_kallsyms *part = fp_kallsyms_part(all, p, n, (const uint8_t *)"m", i);
        if (!part) abort();
        in_parts += part->n;
        fp_kallsyms_free(part);
    }
    if (in_parts > all->n) abort();
    for (uint64_t i = 0; i < all->n; i++) {
        if (all->names[i] > n || all->lengths[i] > n - all->names[i]) abort();
        if (i && all->starts[i] < all->starts[i - 1]) abort();
        if (fp_kallsyms_find(all, all->starts[i]) < (int64_t)i) abort();
        if (fp_kallsyms_named(all, p, p + all->names[i], all->lengths[i]) < 0) abort();
    }
    fp_kallsyms_free(all);
}

static void read_maps(const uint8_t *p, size_t n) {
    struct fp_maps_range found[3];
    for (size_t at = 0, n_read, n_found = 3; n_found == 3; at += n_read) {
        n_read = fp_maps_lines(p + at, n - at, found, 3, &n_found);
        if (n_read > n - at || (n_read && p[at + n_read - 1] != '\n') || n_found > 3) abort();
        for (size_t i = 0; i < n_found; i++) {
            if (found[i].start >= found[i].limit) abort();
            if (found[i].path > n_read || found[i].n_path > n_read - found[i].path) abort();
        }
    }
}

/* A quarter each: symbols, relocations, the relocated section. */
static void relocate(uint8_t flags, uint8_t *p, size_t n) {
    static const uint32_t machines[] = {3, 8, 20, 21, 22, 40, 62, 183};
    const uint64_t places[] = {0, 0x1000, 0x2000, UINT64_MAX};
    const size_t quarter = n / 4;
    uint8_t *symbols = p, *relocations = p + quarter, *filled = p + 2 * quarter;
    fp_relocate_symbols(symbols, quarter, places, sizeof places / sizeof *places, flags & 3);
    const int status = fp_relocate(filled, n - 2 * quarter, relocations, quarter, flags & 4, symbols, quarter,
                                   machines[flags >> 5], flags & 3);
    if (status && status != FP_E_MALFORMED && status != FP_E_VERSION) abort();
}

/* ---- the mutator --------------------------------------------------------- */

enum { HEAD_NBYTES = 1 + 2 * FP_DWARF_SECTIONS };

/* Changes a few bytes of a section, and the lengths that cover them: of the section, of its unit and, in a line table,
 * of the unit's header. */
static void change_section(struct input *in) {
    const uint32_t i = below(in, FP_DWARF_SECTIONS);
    uint8_t *length = in->p + 1 + 2 * i;
    size_t at = HEAD_NBYTES;
    for (uint32_t k = 0; k < i; k++) at += fp_u16(in->p + 1 + 2 * k);
    const size_t had = fp_u16(length);
    if (!had || at > in->n || had > in->n - at) return;
    const size_t where = below(in, had), left = had - where, most = 1 + below(in, left < 8 ? left : 8);
    const size_t before = in->n;
    const uint32_t how = below(in, 4);
    if (how == 0 && left >= 4) {
        change_number(in, at + where, 1, left < 8 || below(in, 2) ? 4 : 8);
    } else if (how == 1) {
        uint8_t bytes[8];
        memcpy(bytes, in->p + at + below(in, where + 1), most);
        replace(in, at + where, below(in, most + 1), bytes, most);
    } else {
        change_bytes(in, at + where, most, 4);
    }
    const size_t more = in->n - before, now = had + more; /* wraps when it is shorter */
    put(&(struct input){0}, length, now, 2);
    if (!more || (i != FP_DWARF_LINE && i != FP_DWARF_INFO)) return;
    for (size_t unit = 0; unit + 32 <= now;) {
        const uint32_t escape = get(in, in->p + at + unit, 4) == UINT32_MAX ? 4 : 0, word = 4 + escape;
        uint8_t *p = in->p + at + unit + escape;
        const uint64_t nbytes = get(in, p, word);
        const size_t content = unit + escape + word;
        if (nbytes > now) return;
        if (where >= content + nbytes) {
            unit = content + (size_t)nbytes;
            continue;
        }
        if (where >= content) put(in, p, nbytes + more, word);
        p += word + (get(in, p + word, 2) < 5 ? 2 : 4); /* version 5 has two more bytes before the header's length */
        const size_t program = (size_t)(p - in->p) + word - at;
        if (i == FP_DWARF_LINE && where >= program && where < program + get(in, p, word))
            put(in, p, get(in, p, word) + more, word);
        return;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n <= HEAD_NBYTES || below(&in, 4) == 0) return LLVMFuzzerMutate(data, n, max);
    in.big = data[0] & 1;
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_section(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    /* of the exact length, so that the sanitizer detects a read beyond it */
    const size_t head = size < 1 + 2 * FP_DWARF_SECTIONS ? size : 1 + 2 * FP_DWARF_SECTIONS, n = size - head;
    uint8_t *exact = malloc(n + !n);
    if (!exact) return 0;
    memcpy(exact, data + head, n);
    read_lines(data, size, exact, n);
    read_symbols(data[0], exact, n);
    read_kallsyms(data[0] & 1 ? 8 : 16, exact, n);
    read_maps(exact, n);
    relocate(data[0], exact, n);
    free(exact);
    return 0;
}
