/* Profiling mode: call paths with counts and times.
 *
 *   block:  0 size:32 (with these 16 bytes)  4 number:32  8 tid:64, then records
 *   record: function:32 from leaf to root ..., 0:32, calls:64, ticks:64
 *
 * `05 00 00 00 02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 e8 03 00 00 00 00 00 00` is: function 5 called by
 * function 2, 3 calls, 1,000 ticks.
 *
 * The writer calls the ticks of a path "cumulative local time": they include those of its callees.  A path's self ticks
 * are the rest.
 *
 * The layout that LLVM's own reader expects has no file header, and a block header before each record, whose size is
 * ignored.
 */
#include "xray/private.h"

enum { AT_BLOCK = 0, AT_RECORD = 1 };

#define UNKNOWN_END UINT64_MAX /* in `left`: in the layout without file header */

struct path {
    int64_t ticks;
    int64_t callees; /* ticks of the paths that are one function longer */
    uint64_t calls;
};

struct fp_xray_profile {
    int state;       /* one of the above */
    uint32_t thread; /* of the block, id in the model */
    uint64_t left;   /* bytes to the end of the block, or UNKNOWN_END */
    uint64_t skip;   /* bytes to skip before the next block */
    /* the call paths of all threads */
    struct fp_table table; /* rows (thread, stack); row i has the sums paths[i] */
    struct path *paths;
    uint32_t cap;
    uint32_t next; /* the next path to become a row */
    /* the record being read */
    uint64_t nbytes; /* its length; 0 = its ids are not read yet */
    uint32_t *ids;   /* those that are not on the stack yet, leaf first */
    uint32_t n_ids, cap_ids;
    uint32_t stack;  /* of the ids read so far */
    uint32_t parent; /* the stack without the last id */
};

void fp_xray_profile_free(struct fp_xray_profile *q) {
    if (!q) return;
    fp_table_clear(&q->table);
    FP_FREE(q->paths, q->ids, q);
}

/* The index of the sums of a call path of the block's thread, added if new. */
static uint32_t path_of(struct fp_xray_profile *q, uint32_t stack) {
    if (!q->table.index) fp_table_init(&q->table, 2);
    const uint32_t n = q->table.n, row = fp_table_intern(&q->table, (uint32_t[]){q->thread, stack});
    fp_array_room(&q->paths, &q->cap, (uint64_t)row + 1, sizeof *q->paths);
    if (row == n) q->paths[row] = (struct path){0};
    return row;
}

/* Adds the path q->ids with its values.  0, FP_NEEDS (the next call continues with the requested id), or an error. */
static int add_record(struct fp_xray *x, uint64_t calls, int64_t ticks, uint64_t offset, struct fp_err *err) {
    struct fp_xray_profile *q = x->profile;
    for (; q->n_ids; q->n_ids--) {
        const uint32_t id = q->ids[q->n_ids - 1], named = fp_xray_lookup(x->names, id);
        if (!named) {
            x->requested = id;
            return FP_NEEDS;
        }
        const uint32_t frame = fp_model_plain_frame(x->model, named - 1);
        q->parent = q->stack;
        q->stack = fp_model_stack(x->model, q->stack, frame);
    }
    if (ticks < 0) {
        /* One exit that ends several calls makes the runtime subtract twice. */
        x->stats.negative_times++;
        ticks = 0;
    }
    const uint32_t row = path_of(q, q->stack), parent = q->parent ? path_of(q, q->parent) : row;
    /* with --lenient reading continues after an overflow, so a sum that does not fit must not be kept */
    struct path sum = q->paths[row];
    int64_t callees = q->paths[parent].callees;
    if (__builtin_add_overflow(sum.ticks, ticks, &sum.ticks) || __builtin_add_overflow(sum.calls, calls, &sum.calls) ||
        sum.calls > INT64_MAX)
        return fp_fail(err, FP_E_OVERFLOW, offset, "the sum of a call path's records");
    if (q->parent && __builtin_add_overflow(callees, ticks, &callees))
        return fp_fail(err, FP_E_OVERFLOW, offset, "the sum of a call path's callees");
    q->paths[row] = sum;
    q->paths[parent].callees = callees;
    return 0;
}

static void push_id(struct fp_xray_profile *q, uint32_t id) {
    FP_PUSH(q->ids, q->n_ids, q->cap_ids) = id;
}

/* Reads the ids of the record at p, and its length.  0, FP_MORE or an error. */
static int read_path(struct fp_xray *x, const uint8_t *p, size_t have, uint64_t offset, struct fp_err *err) {
    struct fp_xray_profile *q = x->profile;
    size_t n = 0;
    q->n_ids = q->stack = q->parent = 0;
    for (;; n++) {
        if (4 * (uint64_t)n + 4 > q->left)
            return fp_fail_got(err, FP_E_MALFORMED, offset, "length of the last record of a block", FP_GOT_UNSIGNED,
                               q->left, "a complete record", 0);
        if (4 * n + 4 > have) return FP_MORE;
        uint32_t id = fp_u32s(p + 4 * n, x->swap);
        if (!id) break;
        push_id(q, id);
    }
    const uint64_t nbytes = 4 * (uint64_t)n + 20;
    if (nbytes > q->left)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "record length", FP_GOT_UNSIGNED, nbytes,
                           "at most %, the rest of its block", q->left);
    if (nbytes > have) return FP_MORE;
    if (!n) return fp_fail(err, FP_E_MALFORMED, offset, "a call path has no functions");
    q->nbytes = nbytes;
    return 0;
}

/* One block header or record at the window's front.  0, FP_MORE, FP_NEEDS or an error. */
static int step(struct fp_xray *x, struct fp_window *in, struct fp_err *err) {
    struct fp_xray_profile *q = x->profile;
    const uint8_t *p = in->p + in->pos;
    const uint64_t offset = in->base + in->pos;
    const size_t have = in->n - in->pos;
    if (q->state == AT_BLOCK) {
        const int sized = x->mode == FP_XRAY_PROFILE;
        if (have < 16 || (sized && have < FP_XRAY_HEADER_NBYTES && !in->eof)) return FP_MORE;
        if (sized && fp_xray_is_header(x, p, have)) {
            in->pos += FP_XRAY_HEADER_NBYTES;
            return fp_xray_begin_another(x, p, offset, err);
        }
        uint64_t size = fp_u32s(p, x->swap), tid = fp_u64s(p + 8, x->swap);
        if (sized && size < 16)
            return fp_fail_got(err, FP_E_MALFORMED, offset, "block size", FP_GOT_UNSIGNED, size, "16 or more", 0);
        if (tid > UINT32_MAX)
            return fp_fail_got(err, FP_E_MALFORMED, offset + 8, "thread id", FP_GOT_UNSIGNED, tid, "below 2^32", 0);
        q->thread = fp_model_thread(x->model, x->input, (uint32_t)x->pid, (uint32_t)tid);
        q->left = sized ? size - 16 : UNKNOWN_END;
        q->state = q->left ? AT_RECORD : AT_BLOCK;
        x->stats.buffers++;
        in->pos += 16;
        return 0;
    }
    if (!q->nbytes) FP_TRY(read_path(x, p, have, offset, err));
    p += q->nbytes - 16;
    int status = add_record(x, fp_u64s(p, x->swap), (int64_t)fp_u64s(p + 8, x->swap), offset, err);
    if (status == FP_NEEDS) return status;
    const uint64_t nbytes = q->nbytes;
    q->nbytes = 0;
    if (status) return status;
    in->pos += (size_t)nbytes;
    if (q->left != UNKNOWN_END) q->left -= nbytes;
    if (!q->left || q->left == UNKNOWN_END) q->state = AT_BLOCK;
    return 0;
}

/* Rows of all paths.  FP_DONE or FP_FULL. */
static int drain(struct fp_xray *x, struct fp_batch *out) {
    struct fp_xray_profile *q = x->profile;
    if (!q->next) q->next = 1;
    for (; q->next < q->table.n; q->next++) {
        if (out->n == out->cap) return FP_FULL;
        const struct path *path = &q->paths[q->next];
        /* A path whose calls were still open has no self ticks, only callees. */
        int64_t self = path->ticks - path->callees;
        if (self < 0) {
            x->stats.negative_times += path->calls != 0;
            self = 0;
        }
        if (!self && !path->calls) continue;
        const uint32_t *key = fp_table_row(&q->table, q->next), row = fp_batch_sample(out, key[1], key[0], 0, 0);
        out->values[row] = self;
        out->values[out->cap + row] = (int64_t)path->calls;
    }
    return FP_DONE;
}

int fp_xray_profile_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    if (!x->profile) x->profile = fp_have(calloc(1, sizeof *x->profile));
    struct fp_xray_profile *q = x->profile;
    for (;;) {
        if (q->skip) {
            const size_t have = in->n - in->pos, nbytes = q->skip < have ? (size_t)q->skip : have;
            q->skip -= nbytes;
            in->pos += nbytes;
            x->stats.lost_bytes += nbytes;
            if (q->skip && !in->eof) return FP_MORE;
            q->skip = 0;
        }
        if (in->pos == in->n && in->eof && q->state == AT_BLOCK) return drain(x, out);
        int status = step(x, in, err);
        if (!status) continue;
        if (status == FP_NEEDS || (status == FP_MORE && !in->eof)) return status;
        if (status == FP_MORE)
            status = fp_fail_got(err, FP_E_TRUNCATED, in->base + in->pos, "length of the last record", FP_GOT_UNSIGNED,
                                 in->n - in->pos, "a complete record", 0);
        if (!x->lenient) return status;
        /* Without a valid length the next record is at the end of the block, if that is known. */
        x->stats.bad_records++;
        q->skip = q->state == AT_RECORD && q->left != UNKNOWN_END ? q->left : UINT64_MAX;
        q->state = AT_BLOCK;
    }
}
