/* Common to all XRay logs: the file header, and the names of function ids. */
#include "xray/private.h"

/* Initial size of the array of small ids, and its growth for each id named: 64 KiB, and 256 bytes, so that one id in a
 * small file does not take 4 MiB.  At most all below DENSE_IDS. */
enum { FIRST_IDS = 1 << 14, IDS_EACH = 64, DENSE_IDS = 1 << 20 };
enum { LEAST_BLOCK = 16 + 4 + 4 + 16, MOST_THREADS = 1 << 22 };
#define PROFILE_MAGIC 0x7872617970726f66u /* "xrayprof" as a number */
#define PROFILE_VERSION 0x20180424u

/* ---- the file header --------------------------------------------------- */

static int too_short(struct fp_err *err, size_t n) {
    return fp_fail_got(err, FP_E_TRUNCATED, n, "file header length", FP_GOT_UNSIGNED, n, "% bytes",
                       FP_XRAY_HEADER_NBYTES);
}

/*   0 magic:64  8 version:64  16 nanoseconds since 1970:64  24 pid:64 */
static int profile_header(struct fp_xray *x, const uint8_t *p, size_t n, struct fp_err *err) {
    x->mode = FP_XRAY_PROFILE;
    x->swap = fp_u64(p) != PROFILE_MAGIC;
    if (n < FP_XRAY_HEADER_NBYTES) return too_short(err, n);
    uint64_t version = fp_u64s(p + 8, x->swap);
    if (version != PROFILE_VERSION)
        return fp_fail_got(err, FP_E_VERSION, 8, "profile version", FP_GOT_HEX, version, "0x20180424", 0);
    x->version = PROFILE_VERSION;
    x->pid = fp_u64s(p + 24, x->swap);
    return 0;
}

/*   0 version:16  2 type:16  4 flags:32  8 ticks per second:64  16 FDR: buffer size:64  24 unused
 *
 * `05 00 01 00 03 00 00 00 ...` is: version 5, type 1 (FDR), constant and nonstop TSC. */
int fp_xray_header(struct fp_xray *x, const uint8_t *p, size_t n, size_t *nbytes, struct fp_err *err) {
    *nbytes = FP_XRAY_HEADER_NBYTES;
    if (n >= 8 && (fp_u64(p) == PROFILE_MAGIC || fp_u64s(p, 1) == PROFILE_MAGIC)) return profile_header(x, p, n, err);
    if (n < 4) return too_short(err, n);
    /* Version and type are small.  The log has the byte order in which they are small. */
    uint32_t version = fp_u16(p), type = fp_u16(p + 2);
    x->swap = version > 0xff || type > 0xff;
    if (x->swap) {
        version = fp_u16s(p, 1);
        type = fp_u16s(p + 2, 1);
    }
    if (type > 1 || (type == 0 && !x->swap && version >= LEAST_BLOCK)) {
        /* No file header: a profile that begins with a block header, and so with a size. */
        x->mode = FP_XRAY_PROFILE_RAW;
        /* Thread ids are below 2^32 only in the correct byte order. */
        x->swap = n >= 16 && fp_u64(p + 8) > UINT32_MAX && fp_u64s(p + 8, 1) <= UINT32_MAX;
        *nbytes = 0;
        return 0;
    }
    x->mode = type == 1 ? FP_XRAY_FDR : FP_XRAY_BASIC;
    x->version = version;
    if (version < 1 || version > (type == 1 ? 5u : 3u))
        return fp_fail_got(err, FP_E_VERSION, 0, type == 1 ? "FDR version" : "basic mode version", FP_GOT_UNSIGNED,
                           version, type == 1 ? "1..5" : "1..3", 0);
    if (n < FP_XRAY_HEADER_NBYTES) return too_short(err, n);
    x->flags = fp_u32s(p + 4, x->swap) & 3;
    x->ticks_per_second = fp_u64s(p + 8, x->swap);
    x->buffer_size = type == 1 ? fp_u64s(p + 16, x->swap) : 0;
    return 0;
}

int fp_xray_is_header(const struct fp_xray *x, const uint8_t *p, size_t n) {
    if (n < FP_XRAY_HEADER_NBYTES) return 0;
    if (x->mode == FP_XRAY_PROFILE)
        return fp_u64s(p, x->swap) == PROFILE_MAGIC && fp_u64s(p + 8, x->swap) == PROFILE_VERSION;
    /* An argument record of a basic log, version 1, may begin with the same bytes.  But it has a thread in place of the
     * header's ticks per second, and Linux has no thread numbers that high. */
    const uint64_t ticks_per_second = fp_u64s(p + 8, x->swap);
    return fp_u16s(p, x->swap) == x->version && fp_u16s(p + 2, x->swap) == (uint32_t)x->mode &&
           (fp_u32s(p + 4, x->swap) & 3) == x->flags && ticks_per_second > MOST_THREADS &&
           ticks_per_second < (uint64_t)1 << 37;
}

int fp_xray_begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err) {
    const uint64_t ticks_per_second = fp_u64s(p + 8, x->swap);
    if (x->mode == FP_XRAY_PROFILE) {
        x->pid = fp_u64s(p + 24, x->swap);
    } else if (ticks_per_second != x->ticks_per_second) {
        return fp_fail_got(err, FP_E_MALFORMED, offset, "ticks per second of a further log", FP_GOT_UNSIGNED,
                           ticks_per_second, "%, those of the first", x->ticks_per_second);
    }
    x->stats.joined++;
    return 0;
}

/* ---- function names ---------------------------------------------------- */

uint32_t fp_xray_lookup_sparse(const struct fp_xray_names *names, uint32_t id) {
    if (!names->sparse.index) return 0;
    uint32_t row = fp_table_find(&names->sparse, &id);
    return row ? names->sparse_functions[row] : 0;
}

static int define_dense(struct fp_xray_names *names, uint32_t id, uint32_t function) {
    const uint32_t had = names->n_dense;
    fp_array_zeroed(&names->dense, &names->cap_dense, (uint64_t)id + 1, sizeof *names->dense);
    names->n_dense = names->cap_dense < DENSE_IDS ? names->cap_dense : DENSE_IDS;
    if (names->n_dense > had) { /* now there is room for larger ids */
        for (uint32_t row = 1; row < names->sparse.n; row++) {
            const uint32_t moved = *fp_table_row(&names->sparse, row);
            if (moved >= had && moved < names->n_dense) names->dense[moved] = names->sparse_functions[row];
        }
    }
    names->dense[id] = function + 1;
    return 0;
}

int fp_xray_define(struct fp_xray *x, uint32_t id, uint32_t function) {
    struct fp_xray_names *names = x->names;
    const uint64_t room = FIRST_IDS + (uint64_t)IDS_EACH * names->n;
    names->n++;
    if (id < DENSE_IDS && (id < room || id < names->n_dense)) return define_dense(names, id, function);
    if (!names->sparse.index) fp_table_init(&names->sparse, 1);
    uint32_t row = fp_table_intern(&names->sparse, &id);
    *FP_AT(names->sparse_functions, names->cap_sparse, row) = function + 1;
    return 0;
}
