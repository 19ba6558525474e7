/* The symbols of an image by file position, as OProfile gets them from BFD.
 *
 *   symbol                  value     section    position = value - section's address + section's file offset
 *   _start       GLOBAL    0x401050   .text      0x1050 to 0x107f: it reaches to the next symbol ...
 *   _dl_relocate LOCAL     0x401080   .text      ...
 *   main         GLOBAL    0x4012f0   .text      0x12f0 to 0x1394: ... or to the end of its section
 *   _fini        GLOBAL    0x401398   .fini      0x1398 on: the last one reaches to the end of the file and beyond
 *
 * A symbol's own size is not used.  Code before the first symbol of a section (.plt) belongs to no symbol.
 * Source: libutil++/op_bfd.cc, bfd_support.cc of OProfile 1.4.
 */
#include "oprofile/private.h"

enum {
    ELF32_HEADER = 52,
    ELF64_HEADER = 64,
    ELF32_SECTION = 40,
    ELF64_SECTION = 64,
    ELF32_SYMBOL = 16,
    ELF64_SYMBOL = 24,
    SHT_SYMTAB = 2,
    SHT_NOBITS = 8,
    SHF_ALLOC = 2,
    SHF_EXECINSTR = 4,
    ET_REL = 1,
    EM_ARM = 40,
    EM_AARCH64 = 183,
    STT_SECTION = 3,
    STT_FILE = 4,
    STB_LOCAL = 0,
    STB_WEAK = 2
};

/* An ELF file. */
struct elf {
    const uint8_t *p;
    size_t n;
    int wide; /* 64 bits */
    int swap;
    uint32_t type, machine;
    uint64_t sections; /* file offset of the headers */
    uint32_t n_sections, names;
};

struct section {
    uint32_t name, type;
    uint64_t flags, address, offset, nbytes;
    uint32_t link;
};

static uint64_t word(const struct elf *elf, const uint8_t *p) {
    return elf->wide ? fp_u64s(p, elf->swap) : fp_u32s(p, elf->swap);
}

/* Whether [offset, offset + nbytes) is in the file. */
static int inside(const struct elf *elf, uint64_t offset, uint64_t nbytes) {
    return offset <= elf->n && nbytes <= elf->n - offset;
}

static int get_section(const struct elf *elf, uint32_t index, struct section *s) {
    if (index >= elf->n_sections) return 0;
    const uint8_t *p = elf->p + elf->sections + (uint64_t)index * (elf->wide ? ELF64_SECTION : ELF32_SECTION);
    const uint32_t w = elf->wide ? 8 : 4;
    s->name = fp_u32s(p, elf->swap);
    s->type = fp_u32s(p + 4, elf->swap);
    s->flags = word(elf, p + 8);
    s->address = word(elf, p + 8 + w);
    s->offset = word(elf, p + 8 + 2 * w);
    s->nbytes = word(elf, p + 8 + 3 * w);
    s->link = fp_u32s(p + 8 + 4 * w, elf->swap);
    return 1;
}

/* Reads the file's header.  0: not an ELF file, or its section headers are missing. */
static int open_elf(struct elf *elf, const uint8_t *p, size_t n) {
    *elf = (struct elf){.p = p, .n = n};
    if (n < ELF32_HEADER || memcmp(p, "\177ELF", 4) || p[4] < 1 || p[4] > 2 || p[5] < 1 || p[5] > 2) return 0;
    const int big = *(const uint8_t *)&(const uint16_t){1} == 0;
    elf->wide = p[4] == 2;
    elf->swap = (p[5] == 2) != big;
    if (elf->wide && n < ELF64_HEADER) return 0;
    elf->type = fp_u16s(p + 16, elf->swap);
    elf->machine = fp_u16s(p + 18, elf->swap);
    elf->sections = word(elf, p + (elf->wide ? 40 : 32));
    const uint8_t *counts = p + (elf->wide ? 58 : 46);
    const uint32_t width = elf->wide ? ELF64_SECTION : ELF32_SECTION;
    if (!elf->sections || fp_u16s(counts, elf->swap) != width || !inside(elf, elf->sections, width)) return 0;
    elf->n_sections = fp_u16s(counts + 2, elf->swap);
    elf->names = fp_u16s(counts + 4, elf->swap);
    struct section first;
    const uint32_t n_sections = elf->n_sections;
    elf->n_sections = 1;
    get_section(elf, 0, &first); /* section 0 holds numbers that do not fit 16 bits */
    elf->n_sections = n_sections ? n_sections : (uint32_t)first.nbytes;
    if (elf->names == 0xffff) elf->names = first.link;
    return inside(elf, elf->sections, (uint64_t)elf->n_sections * width);
}

/* Whether the text at `at` of string table `strings` equals this. */
static int is_text(const struct elf *elf, const struct section *strings, uint64_t at, const char *text) {
    const size_t n = strlen(text) + 1;
    return at <= strings->nbytes && n <= strings->nbytes - at && !memcmp(elf->p + strings->offset + at, text, n);
}

/* A symbol of code, for sorting. */
struct candidate {
    uint64_t start, end; /* position, and the end of its section */
    uint32_t name;
    uint32_t section;
    uint32_t order;
    uint8_t local, weak;
};

FP_ORDER(by_start, struct candidate, start, order)

static const char *text_of(const struct fp_oprofile_image *image, uint32_t name) {
    return (const char *)image->names + name;
}

static int is_unnamed(const char *name) {
    return !*name || (name[0] == '?' && name[1] == '?'); /* OProfile's name for unknown symbols */
}

/* Whether to drop the first of two symbols at the same place, otherwise the second. */
static int drops_first(const struct fp_oprofile_image *image, const struct candidate *a, const struct candidate *b) {
    const char *one = text_of(image, a->name), *two = text_of(image, b->name);
    const int letext = !strcmp(one, "Letext"), other_letext = !strcmp(two, "Letext");
    if (letext || other_letext) return letext;
    const int unnamed = is_unnamed(one), other_unnamed = is_unnamed(two);
    if (unnamed || other_unnamed) return unnamed;
    if (a->local != b->local) return a->local;
    if ((*one == '_') != (*two == '_')) return *one == '_';
    return a->weak && !b->weak;
}

/* Adds one symbol for each place: in kallsyms the last one, which reaches to the next line. */
static int64_t enter(struct fp_oprofile_image *image, struct candidate *c, uint32_t n) {
    if (n) qsort(c, n, sizeof *c, by_start);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!kept || c[kept - 1].start != c[i].start)
            c[kept++] = c[i];
        else if (image->names_are_lines || drops_first(image, &c[kept - 1], &c[i]))
            c[kept - 1] = c[i];
    }
    fp_array_room(&image->symbols, &image->cap_symbols, kept, sizeof *image->symbols);
    for (uint32_t i = 0; i < kept; i++) {
        uint64_t end = UINT64_MAX;
        if (i + 1 < kept) end = c[i + 1].section == c[i].section ? c[i + 1].start : c[i].end;
        if (i + 1 < kept && end > c[i + 1].start) end = c[i + 1].start; /* sections that overlap */
        image->symbols[i] = (struct fp_oprofile_symbol){c[i].start, end, c[i].name, 0};
    }
    image->n_symbols = kept;
    return kept;
}

/* Symbols that do not name code: .L*, and on ARM the markers $a, $t, $d, $x. */
static int is_mark(const struct elf *elf, const char *name) {
    if (name[0] == '.' && name[1] == 'L') return 1;
    return (elf->machine == EM_ARM || elf->machine == EM_AARCH64) && name[0] == '$' && name[1] &&
           strchr("atdx", name[1]) && (!name[2] || name[2] == '.');
}

/* The sections with code.  code[i] becomes 1 + the index of section i of the file among them, or 0.
 */
static void find_sections(struct fp_oprofile_image *image, const struct elf *elf, const struct section *names,
                          int by_address, uint32_t *code) {
    struct section s;
    for (uint32_t i = 0; get_section(elf, i, &s); i++) {
        const int text = is_text(elf, names, s.name, ".text");
        if (text) image->text = s.offset;
        if (is_text(elf, names, s.name, ".debug_info") || is_text(elf, names, s.name, ".zdebug_info"))
            image->has_debug = 1;
        if (is_text(elf, names, s.name, ".gnu_debuglink") || is_text(elf, names, s.name, ".note.gnu.build-id"))
            image->has_link = 1;
        if ((s.flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR) || s.type == SHT_NOBITS) continue;
        if (!s.address && !text) continue; /* of kernel modules: .init.text */
        const uint64_t start = by_address ? s.address : s.offset;
        uint64_t end;
        if (__builtin_add_overflow(start, s.nbytes, &end)) continue;
        fp_array_room(&image->sections, &image->cap_sections, (uint64_t)image->n_sections + 1, sizeof *image->sections);
        const size_t room = s.name < names->nbytes ? (size_t)(names->nbytes - s.name) : 0;
        const uint8_t *name = room ? elf->p + names->offset + s.name : NULL;
        const uint8_t *nul = room ? memchr(name, 0, room) : NULL;
        image->sections[image->n_sections++] =
            (struct fp_oprofile_section){start, end, s.address, name, nul ? (size_t)(nul - name) : room};
        code[i] = image->n_sections;
    }
}

/* The same for a debug file, whose sections have addresses but no bytes: those of the image at the same addresses. */
static void match_sections(const struct fp_oprofile_image *image, const struct elf *debug, uint32_t *code) {
    struct section s;
    uint32_t at = 0; /* both files have their sections in the same order */
    for (uint32_t i = 0; at < image->n_sections && get_section(debug, i, &s); i++)
        if (s.flags & SHF_EXECINSTR && s.address == image->sections[at].address) code[i] = ++at;
}

FP_ORDER(by_position, struct fp_oprofile_section, start)

/* Reads the symbol table `table` of `elf`. */
static int64_t read_table(struct fp_oprofile_image *image, const struct elf *elf, const struct section *table,
                          const uint32_t *code) {
    struct section strings, s;
    const uint32_t width = elf->wide ? ELF64_SYMBOL : ELF32_SYMBOL;
    if (!inside(elf, table->offset, table->nbytes) || !get_section(elf, table->link, &strings) ||
        !inside(elf, strings.offset, strings.nbytes))
        return -1;
    /* the names of all symbols end inside the table if the table ends with a NUL byte */
    if (!strings.nbytes || elf->p[strings.offset + strings.nbytes - 1] || strings.nbytes > UINT32_MAX) return -1;
    image->names = elf->p + strings.offset;
    image->names_nbytes = strings.nbytes;
    const uint64_t n = table->nbytes / width;
    if (n > UINT32_MAX) return -1;
    struct candidate *found = fp_scratch(n ? n : 1, sizeof *found);
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = elf->p + table->offset + (uint64_t)i * width;
        const uint32_t name = fp_u32s(p, elf->swap);
        const uint8_t info = elf->wide ? p[4] : p[12];
        const uint32_t index = fp_u16s(p + (elf->wide ? 6 : 14), elf->swap);
        uint64_t value = word(elf, p + (elf->wide ? 8 : 4));
        const uint32_t type = info & 15, bind = info >> 4;
        if (!index || type == STT_SECTION || type == STT_FILE || name >= strings.nbytes) continue;
        if (!get_section(elf, index, &s) || !code[index] || is_mark(elf, text_of(image, name))) continue;
        const struct fp_oprofile_section *place = &image->sections[code[index] - 1];
        if (elf->machine == EM_ARM && type == 2) value &= ~(uint64_t)1; /* bit 0 marks Thumb code */
        if (elf->type != ET_REL) value -= s.address;
        uint64_t start;
        if (__builtin_add_overflow(value, place->start, &start)) continue;
        found[n_found++] = (struct candidate){.start = start,
                                              .end = place->end,
                                              .name = name,
                                              .section = code[index],
                                              .order = i,
                                              .local = bind == STB_LOCAL,
                                              .weak = bind == STB_WEAK};
    }
    const int64_t status = enter(image, found, n_found);
    fp_scratch_free(found);
    return status;
}

/* The symbol table of a file; 0 if it has none. */
static int find_table(const struct elf *elf, struct section *table) {
    for (uint32_t i = 0; get_section(elf, i, table); i++)
        if (table->type == SHT_SYMTAB) return 1;
    return 0;
}

static int64_t read_elf(struct fp_oprofile_image *image, const struct elf *elf, const struct elf *debug, int by_address,
                        uint32_t *code) {
    struct section names, table;
    if (!get_section(elf, elf->names, &names) || !inside(elf, names.offset, names.nbytes)) return -1;
    find_sections(image, elf, &names, by_address, code);
    if (find_table(elf, &table)) return read_table(image, elf, &table, code);
    if (!debug || !find_table(debug, &table)) return 0;
    memset(code, 0, elf->n_sections * sizeof *code);
    match_sections(image, debug, code);
    return read_table(image, debug, &table, code);
}

int64_t fp_oprofile_image_elf(struct fp_oprofile_image *image, const uint8_t *p, size_t n, const uint8_t *debug,
                              size_t n_debug, int by_address) {
    struct elf elf, other;
    if (!open_elf(&elf, p, n)) return -1;
    const int two = debug && open_elf(&other, debug, n_debug);
    const uint32_t most = two && other.n_sections > elf.n_sections ? other.n_sections : elf.n_sections;
    uint32_t *code = fp_scratch((size_t)most + 1, sizeof *code);
    const int64_t status = read_elf(image, &elf, two ? &other : NULL, by_address, code);
    fp_scratch_free(code);
    if (image->n_sections) qsort(image->sections, image->n_sections, sizeof *image->sections, by_position);
    return status;
}

/* ---- /proc/kallsyms ---- */

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A line `ffffffff81000000 T _text\t[module]`: its address, and the position of its name. */
static int parse_line(const uint8_t *line, const uint8_t *end, uint64_t *address, const uint8_t **name) {
    const uint8_t *p = line;
    *address = 0;
    for (; p < end && hex_digit(*p) >= 0 && p - line < 16; p++) *address = *address << 4 | (uint64_t)hex_digit(*p);
    if (p == line || end - p < 4 || p[0] != ' ' || p[2] != ' ') return 0;
    *name = p + 3;
    return 1;
}

static int is_name(const uint8_t *name, const uint8_t *end, const char *text) {
    const size_t n = strlen(text);
    return (size_t)(end - name) == n && !memcmp(name, text, n);
}

int64_t fp_oprofile_image_kallsyms(struct fp_oprofile_image *image, const uint8_t *text, size_t n, int absolute) {
    if (n > UINT32_MAX) return -1;
    image->names = text;
    image->names_nbytes = n;
    image->names_are_lines = 1;
    uint64_t first = 0, last = 0, address;
    const uint8_t *name;
    struct candidate *found = NULL;
    uint32_t n_found = 0, cap = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (const uint8_t *line = text, *end; line < text + n; line = end + 1) {
            end = memchr(line, '\n', (size_t)(text + n - line));
            if (!end) end = text + n;
            if (!parse_line(line, end, &address, &name)) continue;
            if (!pass) {
                if (is_name(name, end, "_text")) first = address;
                if (is_name(name, end, "_etext")) last = address;
            } else if (address >= first && address < last) {
                fp_scratch_room(&found, &cap, (uint64_t)n_found + 1, sizeof *found);
                found[n_found] = (struct candidate){.start = absolute ? address : address - first,
                                                    .end = absolute ? last : last - first,
                                                    .name = (uint32_t)(name - text),
                                                    .order = n_found};
                n_found++;
            }
        }
        if (first >= last) return -1;
    }
    if (!absolute) {
        fp_array_room(&image->sections, &image->cap_sections, 1, sizeof *image->sections);
        image->sections[image->n_sections++] = (struct fp_oprofile_section){0, last - first, first, NULL, 0};
    }
    const int64_t status = enter(image, found, n_found);
    if (status > 0) image->symbols[status - 1].end = absolute ? last : last - first;
    return status;
}

/* ---- images ---- */

struct fp_oprofile_image *fp_oprofile_image_new(struct fp_model *m, uint32_t object, uint32_t whole) {
    struct fp_oprofile_image *image = fp_made(sizeof *image);
    image->model = m;
    image->object = object;
    image->whole = whole;
    return image;
}

void fp_oprofile_image_free(struct fp_oprofile_image *image) {
    FP_FREE(image->symbols, image->sections, image);
}

const uint8_t *fp_oprofile_name(const struct fp_oprofile_image *image, uint32_t symbol, size_t *nbytes) {
    const uint8_t *name = image->names + image->symbols[symbol].name;
    const size_t room = (size_t)(image->names_nbytes - image->symbols[symbol].name);
    size_t n = 0;
    if (image->names_are_lines)
        while (n < room && name[n] != '\n' && name[n] != '\t') n++;
    else
        while (n < room && name[n]) n++;
    *nbytes = n;
    return name;
}
