/* Checkpoints: constants by type and key.
 *
 *   checkpoint  start, duration, delta to the previous checkpoint, flags byte, number of pools | pools
 *   pool        type, number of values | key, value ...
 *
 * Values are kept as bytes, because most are never needed; the program of the type finds the end of each.
 */
#include <stdlib.h>

#include "jfr/private.h"

static void forget(struct fp_jfr_pool *pool) {
    fp_table_empty(&pool->keys);
    if (pool->cap_rows) memset(pool->rows, 0, pool->cap_rows * sizeof *pool->rows);
    if (pool->cap_at) memset(pool->at, 0, pool->cap_at * sizeof *pool->at);
    if (pool->cap_known) memset(pool->known, 0, pool->cap_known * sizeof *pool->known);
    if (pool->cap_also) memset(pool->also, 0, pool->cap_also * sizeof *pool->also);
    pool->n = 1;
}

void fp_jfr_forget(struct fp_jfr_reader *r) {
    for (uint32_t i = 0; i < r->n_pools; i++) forget(&r->pools[i]);
    for (uint32_t i = 0; i < r->n_types; i++) r->types[i].pool = 0;
    r->n_pools = 0;
    r->arena_n = 0;
    memset(r->cache, 0, FP_JFR_CACHE * sizeof *r->cache);
    fp_table_empty(&r->functions);
    r->slots_of = 0;
}

/* The pool of a type, created on demand.  NULL when memory ran out. */
static struct fp_jfr_pool *pool_of(struct fp_jfr_reader *r, uint32_t type) {
    struct fp_jfr_type *t = &r->types[type];
    if (t->pool) return &r->pools[t->pool - 1];
    if (fp_array_zeroed(&r->pools, &r->cap_pools, (uint64_t)r->n_pools + 1, sizeof *r->pools)) return NULL;
    struct fp_jfr_pool *pool = &r->pools[r->n_pools];
    if (!pool->keys.width) {
        if (fp_table_init(&pool->keys, 2)) return NULL;
        pool->n = 1;
    }
    t->pool = ++r->n_pools;
    return pool;
}

/* Keys below SMALL are indices; larger ones only if at least one in MOST_OF_ROWS is used. */
enum { SMALL = 1 << 16, MOST_OF_ROWS = 8 };

/* The row of a key, added if it is new.  FP_NO_ID when memory ran out. */
static uint32_t add(struct fp_jfr_pool *pool, uint64_t key) {
    if (!key) return 0;
    const uint32_t words[] = {(uint32_t)key, (uint32_t)(key >> 32)};
    uint32_t row = key < pool->cap_rows ? pool->rows[key] : 0;
    if (row) return row;
    if (key < SMALL || key / MOST_OF_ROWS < pool->n) {
        /* added while the index was smaller? */
        const uint32_t far = pool->keys.n > 1 ? fp_table_find(&pool->keys, words) : 0;
        if (far) return pool->row_of[far];
        if (fp_array_zeroed(&pool->rows, &pool->cap_rows, key + 1, sizeof *pool->rows)) return FP_NO_ID;
        return pool->rows[key] = pool->n++;
    }
    const uint32_t before = pool->keys.n;
    row = fp_table_intern(&pool->keys, words);
    if (row == FP_NO_ID || fp_array_zeroed(&pool->row_of, &pool->cap_row_of, (uint64_t)row + 1, sizeof *pool->row_of))
        return FP_NO_ID;
    if (row >= before) pool->row_of[row] = pool->n++;
    return pool->row_of[row];
}

/* Keeps the n bytes of a value. */
static int keep(struct fp_jfr_reader *r, uint32_t type, uint64_t key, const uint8_t *p, size_t n) {
    struct fp_jfr_pool *pool = pool_of(r, type);
    const uint32_t row = pool ? add(pool, key) : FP_NO_ID;
    if (row == FP_NO_ID || fp_array_zeroed(&pool->at, &pool->cap_at, (uint64_t)row + 1, sizeof *pool->at) ||
        fp_array_zeroed(&pool->known, &pool->cap_known, (uint64_t)row + 1, sizeof *pool->known) ||
        fp_array_zeroed(&pool->also, &pool->cap_also, (uint64_t)row + 1, sizeof *pool->also) ||
        fp_bytes_room(&r->arena, &r->arena_cap, r->arena_n + n + 1)) /* a value may have no bytes */
        return FP_E_NOMEM;
    memcpy(r->arena + r->arena_n, p, n);
    pool->at[row] = r->arena_n + 1;
    r->arena_n += n;
    return 0;
}

uint32_t fp_jfr_find_far(const struct fp_jfr_pool *pool, uint64_t key) {
    if (!key) return pool->cap_at && pool->at[0] ? 0 : FP_NO_ID;
    const uint32_t words[] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t far = pool->keys.n > 1 ? fp_table_find(&pool->keys, words) : 0;
    return far ? pool->row_of[far] : FP_NO_ID;
}

const uint8_t *fp_jfr_bytes_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t **end) {
    if (slot->kind == FP_JFR_IS_VALUE) return slot->p;
    struct fp_jfr_pool *pool;
    const uint32_t row = slot->kind == FP_JFR_IS_KEY ? fp_jfr_find(r, slot->type, slot->n, &pool) : FP_NO_ID;
    if (row == FP_NO_ID) return NULL;
    *end = r->arena + r->arena_n;
    return r->arena + pool->at[row] - 1;
}

/* ---- reading ---- */

/* The end of the bytes in the window that belong to the checkpoint. */
static const uint8_t *bound(const struct fp_jfr_reader *r, const struct fp_in *in) {
    const uint64_t left = r->limit - (in->base + in->pos), there = in->n - in->pos;
    return in->p + in->pos + (left < there ? left : there);
}

static int is_all(const struct fp_jfr_reader *r, const struct fp_in *in) {
    return r->limit - (in->base + in->pos) <= in->n - in->pos;
}

static int begin(struct fp_jfr_reader *r, struct fp_in *in, struct fp_err *err) {
    struct fp_jfr_record record;
    const int status = fp_jfr_head(r, in, &record, err);
    uint64_t v = 0;
    if (status) return status;
    const uint8_t *p = record.body, *end = record.end;
    for (int i = 0; i < 3 && p; i++) p = fp_jfr_number(r, p, end, 8, &v);
    if (p) p = end - p > 0 ? fp_jfr_number(r, p + 1, end, 4, &v) : NULL;
    if (!p || record.type != 1) {
        if (record.type == 1 && !in->eof && record.size > in->n - in->pos) return FP_MORE;
        return fp_fail(err, FP_E_MALFORMED, record.at, "a checkpoint is too short");
    }
    r->limit = record.at + record.size;
    r->n_left_pools = v;
    r->n_left_values = 0;
    in->pos = (size_t)(p - in->p);
    return 0;
}

/* Reads the head of a pool.  0, FP_MORE, or an error. */
static int pool(struct fp_jfr_reader *r, struct fp_in *in, struct fp_err *err) {
    uint64_t id, n;
    const uint8_t *end = bound(r, in), *p = fp_jfr_number(r, in->p + in->pos, end, 8, &id);
    const uint64_t at = in->base + in->pos;
    if (!p || !(p = fp_jfr_number(r, p, end, 4, &n))) {
        return is_all(r, in) ? fp_fail(err, FP_E_MALFORMED, at, "a checkpoint ends within a pool") : FP_MORE;
    }
    if (n > r->limit - at) {
        return fp_fail_got(err, FP_E_MALFORMED, at, "the number of constants", FP_GOT_UNSIGNED, n,
                           "up to %, the bytes left", r->limit - at);
    }
    r->at_type = fp_jfr_find_type(r, id);
    if (!r->at_type && n) {
        return fp_fail_got(err, FP_E_MALFORMED, at, "the type of constants", FP_GOT_UNSIGNED, id,
                           "a type that the metadata describes", 0);
    }
    r->n_left_pools--;
    r->n_left_values = n;
    in->pos = (size_t)(p - in->p);
    return 0;
}

/* Reads the values of a pool in the window.  0, FP_MORE, or an error. */
static int values(struct fp_jfr_reader *r, struct fp_in *in, struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    const struct fp_jfr_program *program = fp_jfr_program_of(r, r->at_type);
    if (!program) return fp_no_memory(err);
    const uint8_t *end = bound(r, in);
    const uint64_t at = in->base + in->pos;
    if (program->is_bad) {
        return fp_fail_got(err, FP_E_MALFORMED, at, program->what, FP_GOT_UNSIGNED, program->got,
                           "types that can be read", 0);
    }
    const int is_kept = r->types[r->at_type].role;
    for (; r->n_left_values; r->n_left_values--) {
        const uint8_t *start = in->p + in->pos, *p;
        uint64_t key;
        const uint8_t *value = fp_jfr_number(r, start, end, 8, &key);
        if (!value || !(p = fp_jfr_run(r, program, value, end, slots))) {
            if (!is_all(r, in)) return FP_MORE;
            return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "a constant is damaged");
        }
        if (is_kept && keep(r, r->at_type, key, value, (size_t)(p - value))) return fp_no_memory(err);
        in->pos = (size_t)(p - in->p);
    }
    return 0;
}

int fp_jfr_constants(struct fp_jfr_reader *r, struct fp_in *in, struct fp_err *err) {
    int status = 0;
    while (!status) {
        if (!r->limit)
            status = begin(r, in, err);
        else if (r->n_left_values)
            status = values(r, in, err);
        else if (r->n_left_pools)
            status = pool(r, in, err);
        else
            break;
    }
    if (status == FP_MORE && !in->eof) return FP_MORE;
    if (status == FP_MORE)
        status = fp_fail(err, FP_E_TRUNCATED, in->base + in->pos, "the input ends within a checkpoint");
    if (status < 0 && (status == FP_E_NOMEM || !r->lenient)) return status;
    r->counts.bad_constants += status < 0;
    r->limit = 0;
    return FP_DONE;
}
