/* Profiling mode: call paths with counts and times.
 *
 *   block: size:32 (these 16 bytes included), number:32, tid:64, records
 *   record: function:32 from leaf to root ..., 0:32, calls:64, ticks:64
 *
 * The ticks of a path include those of its callees, whatever their name
 * ("cumulative local time") says; a path's own ticks are what its callees
 * leave.  In the layout that LLVM's own reader expects there is no file header
 * and every record has a block header of its own, whose size is not used.
 */
#include <stdlib.h>

#include "xray/read.h"

/* x->state */
enum { AT_BLOCK = 0, AT_RECORD = 1 };
enum { HEADER = 32 };

static int add_path(struct fp_xray *x, uint32_t stack, uint32_t *row) {
    if (!x->paths.index && fp_table_init(&x->paths, 2)) return FP_E_NOMEM;
    uint32_t n = x->paths.n;
    *row = fp_table_intern(&x->paths, (uint32_t[]){x->thread, stack});
    if (*row == FP_NO_ID) return FP_E_NOMEM;
    if (*row >= x->cap_paths) {
        uint32_t cap = *row < 64 ? 128 : *row * 2;
        int64_t *ticks = realloc(x->path_ticks, cap * sizeof *ticks);
        if (ticks) x->path_ticks = ticks;
        uint64_t *calls = realloc(x->path_calls, cap * sizeof *calls);
        if (calls) x->path_calls = calls;
        int64_t *children = realloc(x->path_children, cap * sizeof *children);
        if (children) x->path_children = children;
        if (!ticks || !calls || !children) return FP_E_NOMEM;
        x->cap_paths = cap;
    }
    if (*row == n) {
        x->path_ticks[*row] = x->path_children[*row] = 0;
        x->path_calls[*row] = 0;
    }
    return 0;
}

/* Enters the path x->ids (leaf first) with its values.  After FP_ASK it goes on with the id asked for. */
static int add_record(struct fp_xray *x, uint64_t calls, int64_t ticks, uint64_t offset, struct fp_err *err) {
    uint32_t row = 0;
    for (; x->n_ids; x->n_ids--) {
        const uint32_t id = x->ids[x->n_ids - 1], function = fp_xray_lookup(x, id);
        if (!function) {
            x->asked = id;
            return FP_ASK;
        }
        uint32_t line = fp_model_line(x->model, function - 1, 0, 0, 0);
        uint32_t frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(x->model, 0, 0, 0, line);
        x->parent = x->stack;
        x->stack = frame == FP_NO_ID ? FP_NO_ID : fp_model_stack(x->model, x->stack, frame);
        if (x->stack == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, offset, "the stack tree");
    }
    if (ticks < 0) {
        /* One exit that ends several calls makes the runtime subtract twice. */
        x->stats.negative_times++;
        ticks = 0;
    }
    if (add_path(x, x->stack, &row)) return fp_fail(err, FP_E_NOMEM, offset, "the table of call paths");
    if (__builtin_add_overflow(x->path_ticks[row], ticks, &x->path_ticks[row]) ||
        __builtin_add_overflow(x->path_calls[row], calls, &x->path_calls[row]) || x->path_calls[row] > INT64_MAX)
        return fp_fail(err, FP_E_OVERFLOW, offset, "the sum of a call path's records");
    if (x->parent) {
        if (add_path(x, x->parent, &row)) return fp_fail(err, FP_E_NOMEM, offset, "the table of call paths");
        if (__builtin_add_overflow(x->path_children[row], ticks, &x->path_children[row]))
            return fp_fail(err, FP_E_OVERFLOW, offset, "the sum of a call path's callees");
    }
    return 0;
}

static int push_id(struct fp_xray *x, uint32_t id) {
    if (x->n_ids == x->cap_ids) {
        uint32_t cap = x->cap_ids ? x->cap_ids * 2 : 64;
        uint32_t *ids = realloc(x->ids, cap * sizeof *ids);
        if (!ids) return FP_E_NOMEM;
        x->ids = ids;
        x->cap_ids = cap;
    }
    x->ids[x->n_ids++] = id;
    return 0;
}

/* The ids of the record at p, and its length.  0, FP_MORE or an error. */
static int read_path(struct fp_xray *x, const uint8_t *p, size_t have, uint64_t offset, struct fp_err *err) {
    /* Every id but the last is not 0. */
    size_t n = 0;
    x->n_ids = x->stack = x->parent = 0;
    for (;; n++) {
        if (4 * (uint64_t)n + 4 > x->left)
            return fp_fail_got(err, FP_E_MALFORMED, offset, "bytes to the end of the block", FP_GOT_UNSIGNED, x->left,
                               "a whole record", 0);
        if (4 * n + 4 > have) return FP_MORE;
        uint32_t id = fp_u32s(p + 4 * n, x->swap);
        if (!id) break;
        if (push_id(x, id)) return fp_fail(err, FP_E_NOMEM, offset, "a call path");
    }
    const uint64_t length = 4 * (uint64_t)n + 20;
    if (length > x->left)
        return fp_fail_got(err, FP_E_MALFORMED, offset, "record length", FP_GOT_UNSIGNED, length,
                           "at most %, the rest of its block", x->left);
    if (length > have) return FP_MORE;
    if (!n) return fp_fail(err, FP_E_MALFORMED, offset, "a call path without functions");
    x->path_nbytes = length;
    return 0;
}

/* Rows of what was collected. */
static int drain(struct fp_xray *x, struct fp_batch *out) {
    if (!x->next_path) x->next_path = 1;
    for (; x->next_path < x->paths.n; x->next_path++) {
        if (out->n == out->cap) return FP_FULL;
        uint32_t i = x->next_path, row = out->n;
        const uint32_t *path = fp_table_row(&x->paths, i);
        /* A path whose calls were still open has no ticks of its own, only callees. */
        int64_t self = x->path_ticks[i] - x->path_children[i];
        if (self < 0) {
            x->stats.negative_times += x->path_calls[i] != 0;
            self = 0;
        }
        if (!self && !x->path_calls[i]) continue;
        out->thread[row] = path[0];
        out->stack[row] = path[1];
        out->label[row] = 0;
        out->time[row] = 0;
        out->values[row] = self;
        out->values[out->cap + row] = (int64_t)x->path_calls[i];
        out->n++;
    }
    return FP_DONE;
}

/* One block header or record at the window's front.  0: taken, FP_MORE,
 * FP_ASK, or an error. */
static int step(struct fp_xray *x, struct fp_in *in, struct fp_err *err) {
    const int swap = x->swap;
    const uint8_t *p = in->p + in->pos;
    const uint64_t offset = in->base + in->pos;
    const size_t have = in->n - in->pos;
    if (x->state == AT_BLOCK) {
        if (have < 16) return FP_MORE;
        if (x->mode == FP_XRAY_PROFILE && have < HEADER && !in->eof) return FP_MORE;
        if (x->mode == FP_XRAY_PROFILE && fp_xray_is_header(x, p, have)) {
            in->pos += HEADER;
            return fp_xray_begin_another(x, p, offset, err);
        }
        uint64_t size = fp_u32s(p, swap), tid = fp_u64s(p + 8, swap);
        if (x->mode == FP_XRAY_PROFILE && size < 16)
            return fp_fail_got(err, FP_E_MALFORMED, offset, "block size", FP_GOT_UNSIGNED, size, "16 or more", 0);
        if (tid > UINT32_MAX)
            return fp_fail_got(err, FP_E_MALFORMED, offset + 8, "thread id", FP_GOT_UNSIGNED, tid, "below 2^32", 0);
        x->thread = fp_model_thread(x->model, x->input, (uint32_t)x->pid, (uint32_t)tid);
        if (x->thread == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, offset, "the thread table");
        x->left = x->mode == FP_XRAY_PROFILE ? size - 16 : UINT64_MAX;
        x->state = x->left ? AT_RECORD : AT_BLOCK;
        x->stats.buffers++;
        in->pos += 16;
        return 0;
    }
    if (!x->path_nbytes) {
        int status = read_path(x, p, have, offset, err);
        if (status) return status;
    }
    p += x->path_nbytes - 16;
    int status = add_record(x, fp_u64s(p, swap), (int64_t)fp_u64s(p + 8, swap), offset, err);
    if (status == FP_ASK) return status;
    const uint64_t length = x->path_nbytes;
    x->path_nbytes = 0;
    if (status) return status;
    in->pos += (size_t)length;
    if (x->left != UINT64_MAX) x->left -= length;
    if (!x->left || x->left == UINT64_MAX) x->state = AT_BLOCK;
    return 0;
}

int fp_xray_profile_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        if (x->skip) {
            size_t have = in->n - in->pos, size = x->skip < have ? (size_t)x->skip : have;
            x->skip -= size;
            in->pos += size;
            x->stats.lost_bytes += size;
            if (x->skip && !in->eof) return FP_MORE;
            x->skip = 0;
        }
        if (in->pos == in->n && in->eof && x->state == AT_BLOCK) return drain(x, out);
        int status = step(x, in, err);
        if (!status) continue;
        if (status == FP_ASK || status == FP_E_NOMEM || (status == FP_MORE && !in->eof)) return status;
        if (status == FP_MORE)
            status = fp_fail_got(err, FP_E_TRUNCATED, in->base + in->pos, "length of the last record", FP_GOT_UNSIGNED,
                                 in->n - in->pos, "a whole one", 0);
        if (!x->lenient) return status;
        /* Without a sound length the next record is where the block ends, if that is known. */
        x->stats.bad_records++;
        x->skip = x->state == AT_RECORD && x->left != UINT64_MAX ? x->left : UINT64_MAX;
        x->state = AT_BLOCK;
    }
}
