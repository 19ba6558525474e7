/* The bytes of a sample file. */
#include "oprofile/private.h"

enum {
    MAGIC_NBYTES = 4,
    DESCR_NBYTES = 32,
    NODE_NBYTES = 16,
    SLOT_NBYTES = 20,  /* a node and its word of the hash table */
    FIXED_NBYTES = 28, /* of a header: the fields with the same offset in all versions */
    HEAD_NBYTES = 128, /* enough for any header and its descr */
    VERSION_AT = 4,
    SIZE_AT = 0,
    USED_AT = 4
};
enum state { HEAD, NODES, END };

/* Version 0x10 had three layouts: the number was raised late or not at all.  For each version the layout of 64-bit
 * machines comes first; i386 aligns 64-bit words to 4 bytes. */
static const struct fp_oprofile_layout layouts[] = {
    /* version, header, cpu_speed, mtime and its bytes, callee_is_kernel, anon_start, callee_anon_start */
    {0x13, 72, 32, 40, 8, 48, 56, 64}, {0x13, 64, 28, 36, 8, 44, 48, 56}, /* 1.0 */
    {0x12, 88, 32, 40, 8, 48, 64, 72}, {0x12, 80, 28, 36, 8, 44, 60, 68}, /* 0.9.8 */
    {0x11, 88, 32, 40, 8, 48, 64, 72}, {0x11, 76, 28, 36, 4, 40, 56, 64}, /* 0.9.3 */
    {0x10, 88, 32, 40, 8, 48, 64, 72}, {0x10, 76, 28, 36, 4, 40, 56, 64},
    {0x10, 80, 32, 40, 8, 48, 56, 64}, {0x10, 64, 28, 36, 4, 40, 44, 52}, /* 0.9; older ones have 0 for the addresses */
    {0x10, 72, 32, 40, 8, 48, 0, 0},                                      /* 0.7.1 */
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts, OLDEST = 0x10, NEWEST = 0x13 };

static int is_version(uint32_t version) {
    return version >= OLDEST && version <= NEWEST;
}

int fp_oprofile_sniff(const uint8_t *p, size_t n) {
    if (n < MAGIC_NBYTES + 4 || memcmp(p, "DAE\n", MAGIC_NBYTES)) return 0;
    return is_version(fp_u32s(p + VERSION_AT, 0)) || is_version(fp_u32s(p + VERSION_AT, 1)) ? 2 : 1;
}

struct fp_oprofile_reader *fp_oprofile_reader_new(int lenient) {
    struct fp_oprofile_reader *r = calloc(1, sizeof *r);
    if (r) r->lenient = lenient;
    return r;
}

void fp_oprofile_reader_free(struct fp_oprofile_reader *r) {
    FP_FREE(r->entries, r->scratch, r);
}

void fp_oprofile_begin_group(struct fp_oprofile_reader *r) {
    r->n_entries = r->next = 0;
}

void fp_oprofile_begin_file(struct fp_oprofile_reader *r, uint64_t bytes, uint32_t column, int32_t sign) {
    r->bytes = bytes;
    r->column = column;
    r->sign = sign;
    r->state = HEAD;
    r->at = r->samples = r->trailing = r->lost_nodes = 0;
    r->slots = r->used = r->header_nbytes = 0;
    r->cut = 0;
    r->header = (struct fp_oprofile_header){0};
}

/* ---- the header ---- */

/* The content of an abi file is not trusted. */
static int is_valid_layout(const struct fp_oprofile_layout *l) {
    const uint32_t fields[] = {l->cpu_speed, l->mtime, l->callee_is_kernel, l->anon_start, l->callee_anon_start};
    if (l->nbytes < FIXED_NBYTES || l->nbytes > HEAD_NBYTES - DESCR_NBYTES) return 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i] > l->nbytes - 8) return 0;
    return 1;
}

/* How a layout fits the file. */
enum fit { NO_FIT, FITS_CUT, FITS_LONGER, FITS };

static enum fit fit_of(const struct fp_oprofile_reader *r, const uint8_t *p, size_t n,
                       const struct fp_oprofile_layout *layout) {
    if (n < layout->nbytes + DESCR_NBYTES) return NO_FIT;
    const uint64_t slots = fp_u32s(p + layout->nbytes + SIZE_AT, r->swap);
    const uint64_t used = fp_u32s(p + layout->nbytes + USED_AT, r->swap);
    const uint64_t rest = r->bytes - layout->nbytes - DESCR_NBYTES;
    if (!used || used > slots) return NO_FIT;
    if (rest < slots * SLOT_NBYTES) return slots & (slots - 1) ? NO_FIT : FITS_CUT;
    /* OProfile's own reader divides and so accepts slightly longer files */
    if (rest - slots * SLOT_NBYTES >= SLOT_NBYTES) return NO_FIT;
    return rest == slots * SLOT_NBYTES ? FITS : FITS_LONGER;
}

/* The layout that fits best, the first of equal ones.  `*best` is its fit. */
static const struct fp_oprofile_layout *find_layout(const struct fp_oprofile_reader *r, const uint8_t *p, size_t n,
                                                    enum fit *best) {
    const struct fp_oprofile_layout *found = NULL;
    *best = NO_FIT;
    if (r->has_abi && is_valid_layout(&r->abi)) *best = fit_of(r, p, n, found = &r->abi);
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        if (layouts[i].version != r->header.version) continue;
        const enum fit fit = fit_of(r, p, n, &layouts[i]);
        if (!found || fit > *best) {
            found = &layouts[i];
            *best = fit;
        }
    }
    return found;
}

/* A field of 4 or 8 bytes; 0 if the header has none. */
static uint64_t field(const uint8_t *p, uint32_t at, uint32_t nbytes, int swap) {
    if (!at) return 0;
    return nbytes == 8 ? fp_u64s(p + at, swap) : fp_u32s(p + at, swap);
}

static void read_header(struct fp_oprofile_reader *r, const uint8_t *p, const struct fp_oprofile_layout *layout) {
    const int swap = r->swap;
    struct fp_oprofile_header *h = &r->header;
    h->cpu_type = fp_u32s(p + 8, swap);
    h->event = fp_u32s(p + 12, swap);
    h->unit_mask = fp_u32s(p + 16, swap);
    h->count = fp_u32s(p + 20, swap);
    h->is_kernel = fp_u32s(p + 24, swap);
    const uint64_t bits = field(p, layout->cpu_speed, 8, swap);
    memcpy(&h->mhz, &bits, sizeof h->mhz);
    h->mtime = field(p, layout->mtime, layout->mtime_nbytes, swap);
    h->callee_is_kernel = (uint32_t)field(p, layout->callee_is_kernel, 4, swap);
    h->anon_start = field(p, layout->anon_start, 8, swap);
    h->callee_anon_start = field(p, layout->callee_anon_start, 8, swap);
    r->header_nbytes = layout->nbytes;
    r->slots = fp_u32s(p + layout->nbytes + SIZE_AT, swap);
    r->used = fp_u32s(p + layout->nbytes + USED_AT, swap);
}

/* Describes the error of a file that fits no layout. */
static int bad_layout(const struct fp_oprofile_reader *r, const uint8_t *p, const struct fp_oprofile_layout *layout,
                      struct fp_err *err) {
    const uint64_t at = layout->nbytes;
    const uint32_t slots = fp_u32s(p + at + SIZE_AT, r->swap), used = fp_u32s(p + at + USED_AT, r->swap);
    const uint64_t room = (r->bytes - at - DESCR_NBYTES) / SLOT_NBYTES;
    if (slots > room && !(slots & (slots - 1)))
        return fp_fail_got(err, FP_E_TRUNCATED, r->bytes, "the number of nodes in the file", FP_GOT_UNSIGNED, room,
                           "%, as in its header", slots);
    if (slots != room)
        return fp_fail_got(err, FP_E_MALFORMED, at + SIZE_AT, "the number of nodes", FP_GOT_UNSIGNED, slots,
                           "%, as many as fit in the file", room);
    return fp_fail_got(err, FP_E_MALFORMED, at + USED_AT, "the number of used nodes", FP_GOT_UNSIGNED, used, "1 to %",
                       slots);
}

static int head(struct fp_oprofile_reader *r, struct fp_window *in, struct fp_err *err) {
    const size_t want = r->bytes < HEAD_NBYTES ? (size_t)r->bytes : HEAD_NBYTES;
    const size_t n = in->n - in->pos < want ? in->n - in->pos : want;
    if (n < want && !in->eof) return FP_MORE;
    const uint8_t *p = in->p + in->pos;
    if (memcmp(p, "DAE\n", n < MAGIC_NBYTES ? n : MAGIC_NBYTES))
        return fp_fail_text(err, FP_E_MALFORMED, 0, 0, "the magic number", p, n < MAGIC_NBYTES ? n : MAGIC_NBYTES,
                            "DAE\\n");
    if (n < FIXED_NBYTES || n < want) return fp_fail(err, FP_E_TRUNCATED, n, "the file ends inside its header");
    const uint32_t version = fp_u32(p + VERSION_AT);
    r->swap = !is_version(version) && is_version(__builtin_bswap32(version));
    r->header.version = r->swap ? __builtin_bswap32(version) : version;
    if (!is_version(r->header.version))
        return fp_fail_got(err, FP_E_VERSION, VERSION_AT, "the version", FP_GOT_HEX, version, "0x10 to 0x13", 0);
    enum fit fit;
    const struct fp_oprofile_layout *layout = find_layout(r, p, n, &fit);
    if (n < layout->nbytes + DESCR_NBYTES) return fp_fail(err, FP_E_TRUNCATED, n, "the file ends inside its header");
    if (fit == NO_FIT || (fit == FITS_CUT && !r->lenient)) return bad_layout(r, p, layout, err);
    read_header(r, p, layout);
    r->at = layout->nbytes + DESCR_NBYTES;
    in->pos += (size_t)r->at;
    const uint64_t nodes = (r->bytes - r->at) / NODE_NBYTES;
    if (nodes < r->used) {
        const uint32_t there = nodes ? (uint32_t)nodes : 1;
        r->lost_nodes = r->used - there;
        r->used = there;
    }
    r->cut = fit == FITS_CUT;
    if (fit == FITS_LONGER) r->trailing = r->bytes - r->at - (uint64_t)r->slots * SLOT_NBYTES;
    r->state = NODES;
    return FP_DONE;
}

/* ---- nodes ---- */

static int nodes(struct fp_oprofile_reader *r, struct fp_window *in, struct fp_err *err) {
    const uint64_t first = (r->at - r->header_nbytes - DESCR_NBYTES) / NODE_NBYTES; /* slot of the next node */
    if (first >= r->used || r->used == 1) {
        r->state = END;
        return FP_DONE;
    }
    uint64_t n = (in->n - in->pos) / NODE_NBYTES;
    if (n > r->used - first) n = r->used - first;
    if (!n) {
        if (!in->eof) return FP_MORE;
        return fp_fail(err, FP_E_TRUNCATED, r->at + (in->n - in->pos), "the file ends inside its nodes");
    }
    if (n > UINT32_MAX - r->n_entries) return fp_fail(err, FP_E_OVERFLOW, r->at, "too many nodes");
    fp_array_room(&r->entries, &r->cap_entries, (uint64_t)r->n_entries + n, sizeof *r->entries);
    const uint8_t *p = in->p + in->pos;
    struct fp_oprofile_entry *e = r->entries + r->n_entries;
    const uint32_t column = r->column << 1 | (r->sign < 0);
    const int swap = r->swap;
    const uint64_t skipped = first == 0; /* node 0 is unused */
    uint64_t samples = 0;
    for (uint64_t i = skipped; i < n; i++) {
        const uint8_t *node = p + i * NODE_NBYTES;
        *e = (struct fp_oprofile_entry){fp_u64s(node, swap), fp_u32s(node + 8, swap), column};
        samples += e->value;
        e += (e->key | e->value) != 0; /* a file of zeros may be sparse and arbitrarily long */
    }
    r->samples += samples;
    r->n_entries = (uint32_t)(e - r->entries);
    in->pos += (size_t)n * NODE_NBYTES;
    r->at += n * NODE_NBYTES;
    return FP_DONE;
}

int fp_oprofile_feed(struct fp_oprofile_reader *r, struct fp_window *in, struct fp_err *err) {
    int status = FP_DONE;
    while (status == FP_DONE && r->state != END) status = r->state == HEAD ? head(r, in, err) : nodes(r, in, err);
    return status;
}
