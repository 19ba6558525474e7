/* Heads of records, and lookup of types. */
#include "jfr/private.h"

/* Eight bytes at a time: a byte without its highest bit ends a varint.  A varint of 9 bytes may end with any byte, so
 * from 8 bytes with the bit on, one varint is passed over byte by byte. */
const uint8_t *fp_jfr_skip_many(const uint8_t *p, const uint8_t *end, uint64_t n) {
    unsigned open = 0; /* bytes so far of the current varint */
    while (n > 8 && end - p >= 8) {
        const uint64_t stops = fp_jfr_stops(fp_u64(p));
        if (FP_UNLIKELY(!stops || open + (unsigned)__builtin_ctzll(stops) / 8 >= 8)) {
            if (!(p = fp_jfr_skip_varints(p - open, end, 1))) return NULL;
            open = 0;
            n--;
            continue;
        }
        n -=
            (stops >> 7) * UINT64_C(0x0101010101010101) >> 56; /* their number: the bytes are added up in the highest */
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

int fp_jfr_head(const struct fp_jfr_reader *r, const struct fp_window *in, struct fp_jfr_record *record,
                struct fp_err *err) {
    const uint8_t *p = in->p + in->pos, *end = in->p + in->n, *q;
    record->at = in->base + in->pos;
    record->size = record->type = 0;
    if (!(q = fp_jfr_number(r, p, end, 4, &record->size)) || !(q = fp_jfr_number(r, q, end, 8, &record->type))) {
        if (!in->eof && in->n - in->pos < 2 * FP_JFR_LONGEST) return FP_MORE;
        return fp_fail(err, FP_E_TRUNCATED, record->at, "the input ends within the head of a record");
    }
    if (record->size < (uint64_t)(q - p)) {
        return fp_fail_got(err, FP_E_MALFORMED, record->at, "the size of a record", FP_GOT_UNSIGNED, record->size,
                           "at least %", (uint64_t)(q - p));
    }
    if (record->size > r->chunk.stop - record->at) {
        return fp_fail_got(err, FP_E_MALFORMED, record->at, "the size of a record", FP_GOT_UNSIGNED, record->size,
                           "up to %, where its chunk ends", r->chunk.stop - record->at);
    }
    record->body = q;
    record->end = p + (record->size < (uint64_t)(end - p) ? record->size : (uint64_t)(end - p));
    return 0;
}

/* The record at p if it is whole before `end`, where most records are: its body, or NULL. */
static inline const uint8_t *whole(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                   struct fp_jfr_record *record) {
    if (FP_UNLIKELY(end - p < 2 * FP_JFR_LONGEST || !r->chunk.compressed)) return NULL;
    record->body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &record->size), &record->type);
    if (record->size < (uint64_t)(record->body - p) || record->size > (uint64_t)(end - p)) return NULL;
    record->end = p + record->size;
    return record->body;
}

int fp_jfr_next(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_record *record, uint32_t *type,
                struct fp_err *err) {
    for (;;) {
        if (fp_jfr_skipped(r, in)) return FP_MORE;
        if (in->pos == in->n) return in->eof ? FP_DONE : FP_MORE;
        const uint64_t at = in->base + in->pos, left = r->chunk.stop - at, there = in->n - in->pos;
        const uint8_t *p = in->p + in->pos;
        record->at = at;
        if (FP_UNLIKELY(!whole(r, p, p + (left < there ? left : there), record)))
            FP_TRY(fp_jfr_head(r, in, record, err));
        *type = record->type > 1 ? fp_jfr_find_type(r, record->type) : 0;
        if (*type && r->metadata.types[*type].is_row) {
            if (record->size > there) return in->eof ? fp_jfr_cut(record, err) : FP_MORE;
            return FP_FULL;
        }
        if (*type) r->counts.bad_records += r->metadata.types[*type].is_bad;
        r->skip = record->size;
    }
}

uint32_t fp_jfr_find_far_type(const struct fp_jfr_reader *r, uint64_t id) {
    const uint32_t words[] = {FP_WORDS(id)}, row = fp_table_find(&r->metadata.type_ids, words);
    return row ? r->metadata.type_of[row] : 0;
}
