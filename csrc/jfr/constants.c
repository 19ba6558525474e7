/* Checkpoints: constants by type and key.
 *
 *   checkpoint  start, duration, delta to the previous checkpoint, flags byte, number of pools | pools
 *   pool        type, number of values | key, value ...
 *
 * Values are kept as bytes, because most are never needed; the program of the type finds the end of each.
 */
#include "jfr/stack_memo.h"

static void forget(struct fp_jfr_pool *pool) {
    fp_table_empty(&pool->keys);
    pool->n = pool->n_constants = pool->n_dense = 0;
}

/* Stacks and methods of earlier chunks that are kept: bytes of both, and methods. */
enum { MOST_KNOWN = 13 << 20, MOST_METHODS = 1 << 18 };

void fp_jfr_forget(struct fp_jfr_reader *r) {
    for (uint32_t i = 0; i < r->constants.n_pools; i++) forget(&r->constants.pools[i]);
    for (uint32_t i = 0; i < r->metadata.n_types; i++) r->metadata.types[i].pool = 0;
    r->constants.n_pools = 0;
    r->constants.arena_n = 0;
    r->constants.epoch++;
    r->sums.sure_ticks = 0; /* rows of this chunk are not found again */
    r->stacks.next = 1;
    r->methods.n_sure = 0;
    const uint64_t n_texts = r->methods.described.start[r->methods.described.n];
    const uint64_t n_bytes = r->stacks.texts.start[r->stacks.texts.n] + n_texts + 4 * (uint64_t)r->stacks.n_methods;
    if (n_bytes > MOST_KNOWN || r->methods.ids.n > MOST_METHODS) fp_jfr_forget_memo(r);
}

void fp_jfr_forget_memo(struct fp_jfr_reader *r) {
    fp_table_empty(&r->methods.ids);
    fp_strings_empty(&r->methods.described);
    fp_strings_empty(&r->stacks.texts);
    r->stacks.n_methods = r->methods.n_sure = 0;
}

/* The pool of a type, created on demand. */
static struct fp_jfr_pool *pool_of(struct fp_jfr_reader *r, uint32_t type) {
    struct fp_jfr_type *t = &r->metadata.types[type];
    if (t->pool) return &r->constants.pools[t->pool - 1];
    struct fp_jfr_pool *pool = FP_AT(r->constants.pools, r->constants.cap_pools, r->constants.n_pools);
    if (!pool->keys.width) fp_table_init(&pool->keys, 2);
    t->pool = ++r->constants.n_pools;
    return pool;
}

/* Keeps the place of a constant. */
static void keep(struct fp_jfr_reader *r, uint32_t type, uint64_t key, uint64_t at) {
    struct fp_jfr_pool *pool = pool_of(r, type);
    FP_PUSH(pool->kept, pool->n, pool->cap) = (struct fp_jfr_kept){.key = key, .at = at};
    r->constants.is_indexed = 0;
}

/* Keeps the n bytes of a value. */
static void keep_value(struct fp_jfr_reader *r, uint32_t type, uint64_t key, const uint8_t *p, size_t n) {
    fp_bytes_room(&r->constants.arena, &r->constants.arena_cap,
                  r->constants.arena_n + n + 1); /* it may have no bytes */
    memcpy(r->constants.arena + r->constants.arena_n, p, n);
    r->constants.arena_n += n;
    keep(r, type, key, r->constants.arena_n - n + 1);
}

/* Keeps a stack of n bytes, which an earlier chunk may have had. */
static void keep_stack(struct fp_jfr_reader *r, uint32_t type, uint64_t key, const uint8_t *p, size_t n) {
    const uint32_t before = r->stacks.texts.n, id = fp_strings_intern(&r->stacks.texts, p, n);
    fp_array_room(&r->stacks.known, &r->stacks.cap_known, (uint64_t)id + 1, sizeof *r->stacks.known);
    if (id >= before || !id) r->stacks.known[id] = (struct fp_jfr_memo){.type = type};
    r->stacks.next = id + 1;
    keep(r, type, key, (uint64_t)id + 1);
}

/* The end of a stack at p if it is the one that followed the last one in an earlier chunk, as most do; else NULL. */
static const uint8_t *next_stack(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end) {
    size_t n;
    if (r->stacks.next >= r->stacks.texts.n || r->stacks.known[r->stacks.next].type != r->constants.at_type)
        return NULL;
    const uint8_t *bytes = fp_string(&r->stacks.texts, r->stacks.next, &n);
    return n <= (size_t)(end - p) && !memcmp(bytes, p, n) ? p + n : NULL;
}

/* ---- finding ---- */

enum { MOST_GAPS = 4, FEW = 64 }; /* keys are dense if a fourth of them is used, and a few more */

/* The number of the constant with this key in the index of the pool. */
static uint32_t number_of(struct fp_jfr_pool *pool, uint64_t key) {
    const uint32_t words[] = {FP_WORDS(key)};
    if (pool->n_dense) return (uint32_t)(key - pool->first);
    return key ? fp_table_intern(&pool->keys, words) : 0;
}

/* Of constants with the same key the last one counts. */
static void index_pool(struct fp_jfr_pool *pool) {
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        if (pool->kept[i].key < first) first = pool->kept[i].key;
        if (pool->kept[i].key > last) last = pool->kept[i].key;
    }
    const int is_dense = pool->n && last - first < (uint64_t)pool->n * MOST_GAPS + FEW;
    const uint64_t n = is_dense ? last - first + 1 : (uint64_t)pool->n + 1;
    fp_array_room(&pool->constants, &pool->cap_constants, n, sizeof *pool->constants);
    memset(pool->constants, 0, n * sizeof *pool->constants);
    fp_table_empty(&pool->keys);
    pool->first = first;
    pool->n_constants = (uint32_t)n;
    pool->n_dense = is_dense ? (uint32_t)n : 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        const uint32_t number = number_of(pool, pool->kept[i].key);
        pool->constants[number].at = pool->kept[i].at;
    }
}

void fp_jfr_index(struct fp_jfr_reader *r) {
    for (uint32_t i = 0; i < r->constants.n_pools && !r->constants.is_indexed; i++) index_pool(&r->constants.pools[i]);
    r->constants.is_indexed = 1;
}

struct fp_jfr_constant *fp_jfr_find_far(const struct fp_jfr_pool *pool, uint64_t key) {
    if (pool->n_dense || !pool->n_constants) return NULL;
    const uint32_t words[] = {FP_WORDS(key)};
    const uint32_t row = key && pool->keys.n > 1 ? fp_table_find(&pool->keys, words) : 0;
    struct fp_jfr_constant *constant = &pool->constants[row];
    return (row || !key) && constant->at ? constant : NULL;
}

const uint8_t *fp_jfr_bytes_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t **end) {
    if (slot->kind == FP_JFR_IS_VALUE) return slot->p;
    const struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant || r->metadata.types[slot->type].role == FP_JFR_STACK) return NULL;
    *end = r->constants.arena + r->constants.arena_n;
    return r->constants.arena + constant->at - 1;
}

/* ---- reading ---- */

/* The end of the bytes in the window that belong to the checkpoint. */
static const uint8_t *bound(const struct fp_jfr_reader *r, const struct fp_window *in) {
    const uint64_t left = r->constants.limit - (in->base + in->pos), there = in->n - in->pos;
    return in->p + in->pos + (left < there ? left : there);
}

static int is_all(const struct fp_jfr_reader *r, const struct fp_window *in) {
    return r->constants.limit - (in->base + in->pos) <= in->n - in->pos;
}

static int begin(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
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
    r->constants.limit = record.at + record.size;
    r->constants.n_left_pools = v;
    r->constants.n_left_values = 0;
    in->pos = (size_t)(p - in->p);
    return 0;
}

/* Reads the head of a pool.  0, FP_MORE, or an error. */
static int pool(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    uint64_t id, n;
    const uint8_t *end = bound(r, in), *p = fp_jfr_number(r, in->p + in->pos, end, 8, &id);
    const uint64_t at = in->base + in->pos;
    if (!p || !(p = fp_jfr_number(r, p, end, 4, &n)))
        return is_all(r, in) ? fp_fail(err, FP_E_MALFORMED, at, "a checkpoint ends within a pool") : FP_MORE;
    if (n > r->constants.limit - at) {
        return fp_fail_got(err, FP_E_MALFORMED, at, "the number of constants", FP_GOT_UNSIGNED, n,
                           "up to %, the bytes left", r->constants.limit - at);
    }
    r->constants.at_type = fp_jfr_find_type(r, id);
    if (!r->constants.at_type && n) {
        return fp_fail_got(err, FP_E_MALFORMED, at, "the type of constants", FP_GOT_UNSIGNED, id,
                           "a type that the metadata describes", 0);
    }
    r->constants.n_left_pools--;
    r->constants.n_left_values = n;
    in->pos = (size_t)(p - in->p);
    return 0;
}

/* Reads the values of a pool in the window.  0, FP_MORE, or an error. */
static int values(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    const struct fp_jfr_program *program = fp_jfr_program_of(r, r->constants.at_type);
    const uint8_t *end = bound(r, in);
    const uint64_t at = in->base + in->pos;
    if (program->is_bad) {
        return fp_fail_got(err, FP_E_MALFORMED, at, program->what, FP_GOT_UNSIGNED, program->got,
                           "types that can be read", 0);
    }
    const unsigned role = r->metadata.types[r->constants.at_type].role;
    for (; r->constants.n_left_values; r->constants.n_left_values--) {
        const uint8_t *start = in->p + in->pos, *p;
        uint64_t key;
        const uint8_t *value = fp_jfr_number(r, start, end, 8, &key);
        if (value && role == FP_JFR_STACK && (p = next_stack(r, value, end))) {
            keep(r, r->constants.at_type, key, (uint64_t)++r->stacks.next);
            in->pos = (size_t)(p - in->p);
            continue;
        }
        if (!value || !(p = fp_jfr_run(r, program, value, end, slots))) {
            if (!is_all(r, in)) return FP_MORE;
            return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "a constant is damaged");
        }
        const size_t n = (size_t)(p - value);
        if (role == FP_JFR_STACK)
            keep_stack(r, r->constants.at_type, key, value, n);
        else if (role)
            keep_value(r, r->constants.at_type, key, value, n);
        in->pos = (size_t)(p - in->p);
    }
    return 0;
}

int fp_jfr_constants(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    int status = 0;
    while (!status) {
        if (!r->constants.limit)
            status = begin(r, in, err);
        else if (r->constants.n_left_values)
            status = values(r, in, err);
        else if (r->constants.n_left_pools)
            status = pool(r, in, err);
        else
            break;
    }
    if (status == FP_MORE && !in->eof) return FP_MORE;
    if (status == FP_MORE)
        status = fp_fail(err, FP_E_TRUNCATED, in->base + in->pos, "the input ends within a checkpoint");
    if (status < 0 && !r->lenient) return status;
    r->counts.bad_constants += status < 0;
    r->constants.limit = 0;
    return FP_DONE;
}
