/* Heads of records, and lookup of types. */
#include "jfr/private.h"

enum { LONGEST_HEAD = 18 };

/* Counts ends of varints eight bytes at a time: a byte without its highest bit is one.  A varint of 9 bytes may end
 * with any byte, so after 8 bytes with the bit on, one varint is skipped byte by byte. */
const uint8_t *fp_jfr_skip_many(const uint8_t *p, const uint8_t *end, uint64_t n) {
    unsigned open = 0; /* bytes so far of the current varint */
    while (n > 8 && end - p >= 8) {
        const uint64_t stops = ~fp_u64(p) & UINT64_C(0x8080808080808080);
        if (FP_UNLIKELY(!stops || open + (unsigned)__builtin_ctzll(stops) / 8 >= 8)) {
            if (!(p = fp_jfr_skip_varints(p - open, end, 1))) return NULL;
            open = 0;
            n--;
            continue;
        }
        n -= (unsigned)__builtin_popcountll(stops);
        open = (unsigned)__builtin_clzll(stops) / 8;
        p += 8;
    }
    for (p -= open; n && p; n--) p = fp_jfr_skip_varints(p, end, 1);
    return p;
}

int fp_jfr_cut(const struct fp_jfr_record *record, struct fp_err *err) {
    return fp_fail_got(err, FP_E_TRUNCATED, record->at, "the input ends within a record; its size", FP_GOT_UNSIGNED,
                       record->size, NULL, 0);
}

int fp_jfr_head(const struct fp_jfr_reader *r, const struct fp_in *in, struct fp_jfr_record *record,
                struct fp_err *err) {
    const uint8_t *p = in->p + in->pos, *end = in->p + in->n, *q;
    record->at = in->base + in->pos;
    record->size = record->type = 0;
    if (!(q = fp_jfr_number(r, p, end, 4, &record->size)) || !(q = fp_jfr_number(r, q, end, 8, &record->type))) {
        if (!in->eof && in->n - in->pos < LONGEST_HEAD) return FP_MORE;
        return fp_fail(err, FP_E_TRUNCATED, record->at, "the input ends within the head of a record");
    }
    if (record->size < (uint64_t)(q - p)) {
        return fp_fail_got(err, FP_E_MALFORMED, record->at, "the size of a record", FP_GOT_UNSIGNED, record->size,
                           "at least %", (uint64_t)(q - p));
    }
    if (record->size > r->stop - record->at) {
        return fp_fail_got(err, FP_E_MALFORMED, record->at, "the size of a record", FP_GOT_UNSIGNED, record->size,
                           "up to %, where its chunk ends", r->stop - record->at);
    }
    record->body = q;
    record->end = p + (record->size < (uint64_t)(end - p) ? record->size : (uint64_t)(end - p));
    return 0;
}

uint32_t fp_jfr_find_type(const struct fp_jfr_reader *r, uint64_t id) {
    if (FP_LIKELY(id < sizeof r->small / sizeof r->small[0])) return r->small[id];
    const uint32_t words[] = {(uint32_t)id, (uint32_t)(id >> 32)}, row = fp_table_find(&r->type_ids, words);
    return row ? r->type_of[row] : 0;
}
