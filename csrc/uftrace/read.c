#include "uftrace/read.h"

enum { ENTRY, EXIT, LOST, EVENT };
enum { MAGIC = 5, RECORD = 16, CACHE = 4096, EMPTY = 254, TEXT = 255, PERF_HEAD = 8, PERF_EXIT = 4, PERF_SWITCH = 14 };
enum { OUT = 0x2000, PREEMPTED = 0x4000 };
enum { SWITCH_IN, SWITCH_OUT, SWITCH_PREEMPTED, THREAD_EXIT };

struct uftrace_switch {
    uint64_t time;
    uint32_t tid, kind;
};

struct uftrace_call {
    uint32_t function;
    uint32_t level; /* twice its depth; 1 more: off CPU below that */
};

struct uftrace_function {
    uint32_t function; /* 0: not defined */
    uint32_t sizes;    /* of its arguments and return value, in `sizes` */
};

struct uftrace_reader {
    struct fp_uftrace u;
    struct fp_model *model; /* borrowed */
    int32_t lenient, is_sorted;
    int32_t is_over;      /* the rest of the file is damaged */
    struct fp_table keys; /* (address and session) */
    struct uftrace_function *functions;
    uint32_t cap_functions, requested;
    struct fp_strings sizes;
    struct {
        uint64_t key;
        uint32_t row;
    } cache[CACHE];
    struct uftrace_switch *switches;
    uint32_t n_switches, cap_switches, next, end; /* next, end: of the thread */
    uint32_t thread;
    struct uftrace_call *calls;
    uint32_t n, cap;
    uint64_t last;
};

struct fp_uftrace *fp_uftrace_new(struct fp_model *model, int lenient) {
    struct uftrace_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    fp_table_init(&r->keys, 2);
    fp_strings_init(&r->sizes);
    return &r->u;
}

void fp_uftrace_free(struct fp_uftrace *u) {
    struct uftrace_reader *r = (struct uftrace_reader *)u;
    fp_table_clear(&r->keys);
    fp_strings_clear(&r->sizes);
    FP_FREE(r->functions, r->switches, r->calls, r);
}

FP_ORDER(order, struct uftrace_switch, tid, time, kind)

void fp_uftrace_begin(struct fp_uftrace *u, uint32_t tid, uint32_t thread) {
    struct uftrace_reader *r = (struct uftrace_reader *)u;
    if (!r->is_sorted && r->n_switches) qsort(r->switches, r->n_switches, sizeof *r->switches, order);
    r->is_sorted = 1;
    uint32_t low = 0;
    FP_BISECT(low, r->n_switches, r->switches[low].tid < tid);
    for (r->next = r->end = low; r->end < r->n_switches && r->switches[r->end].tid == tid;) r->end++;
    r->thread = thread;
    r->n = 0;
    r->last = 0;
    u->is_switches = 0;
}

int fp_uftrace_define(struct fp_uftrace *u, uint32_t function, const uint8_t *sizes, uint32_t n) {
    struct uftrace_reader *r = (struct uftrace_reader *)u;
    const uint32_t known = n ? fp_strings_intern(&r->sizes, sizes, n) : 0;
    r->functions[r->requested] = (struct uftrace_function){function, known};
    return 0;
}

/* ---- rows ---- */

static int row(struct uftrace_reader *r, struct fp_batch *out, uint64_t time, uint8_t op, uint32_t function) {
    if (out->n == out->cap) return FP_FULL;
    fp_batch_event(out, time, op, function, r->thread, 0);
    return 0;
}

static int enter(struct uftrace_reader *r, struct fp_batch *out, uint64_t time, uint32_t function, uint32_t level) {
    fp_array_room(&r->calls, &r->cap, (uint64_t)r->n + 1, sizeof *r->calls);
    if (row(r, out, time, FP_OP_ENTER, function)) return FP_FULL;
    r->calls[r->n++] = (struct uftrace_call){function, level};
    return 0;
}

/* Leaves the calls from `level` on. */
static int leave(struct uftrace_reader *r, struct fp_batch *out, uint64_t time, uint32_t level, uint64_t *count) {
    while (r->n && r->calls[r->n - 1].level >= level) {
        const struct uftrace_call *call = &r->calls[r->n - 1];
        if (row(r, out, time, FP_OP_EXIT, call->function)) return FP_FULL;
        *count += !(call->level & 1);
        r->n--;
    }
    return 0;
}

/* The switches of the thread before `time`. */
static int put_switches(struct uftrace_reader *r, struct fp_batch *out, uint64_t time) {
    for (; r->next < r->end && r->switches[r->next].time < time; r->next++) {
        const struct uftrace_switch *s = &r->switches[r->next];
        const int is_off = r->n && r->calls[r->n - 1].level & 1;
        const uint64_t at = s->time > r->last ? s->time : r->last;
        int status = 0;
        if (s->kind == SWITCH_IN && is_off) {
            status = leave(r, out, at, r->calls[r->n - 1].level, &(uint64_t){0});
        } else if ((s->kind == SWITCH_OUT || s->kind == SWITCH_PREEMPTED) && r->n && !is_off) {
            const uint32_t function = s->kind == SWITCH_OUT ? r->u.schedule : r->u.preempted;
            status = enter(r, out, at, function, r->calls[r->n - 1].level + 1);
        }
        if (status) return status;
        r->last = at;
    }
    return 0;
}

/* ---- records ---- */

/* The row of a function in `functions`, or 0: it is requested. */
static uint32_t function_at(struct uftrace_reader *r, uint64_t address) {
    const uint64_t key = address | (uint64_t)r->u.session << 48;
    const size_t slot = (address ^ address >> 12) % CACHE;
    if (FP_LIKELY(r->cache[slot].key == key && r->cache[slot].row)) return r->cache[slot].row;
    const uint32_t row = fp_table_intern(&r->keys, (uint32_t[2]){FP_WORDS(key)});
    if (!FP_AT(r->functions, r->cap_functions, row)->function) {
        r->u.request = FP_UFTRACE_FUNCTION;
        r->u.address = address;
        r->requested = row;
        return 0;
    }
    r->cache[slot].key = key;
    r->cache[slot].row = row;
    return row;
}

enum { CUT = -1, UNKNOWN = -2 };

/* The bytes of the arguments (or the return value) at p, CUT if there are too few to know, or UNKNOWN. */
static int64_t payload(const struct uftrace_reader *r, const struct uftrace_function *f, int is_exit, const uint8_t *p,
                       size_t n) {
    if (!f->sizes) return UNKNOWN;
    size_t n_sizes, i = 0, found = 0, at = 0;
    const uint8_t *sizes = fp_string(&r->sizes, f->sizes, &n_sizes);
    if (is_exit)
        while (i < n_sizes && sizes[i++]) continue;
    for (; i < n_sizes && sizes[i]; i++, found++) {
        size_t size = sizes[i] == EMPTY ? 0 : sizes[i];
        if (size == TEXT) {
            if (at + 2 > n) return CUT;
            size = 2 + (size_t)fp_u16(p + at);
        }
        at = (at + size + 3) & ~(size_t)3;
    }
    return found ? (int64_t)((at + 7) & ~(size_t)7) : UNKNOWN;
}

/* The bytes of a record, FP_MORE as 0, or an error. */
static int64_t length_of(struct uftrace_reader *r, const uint8_t *p, size_t n, const struct uftrace_function *f) {
    const uint64_t word = fp_u64(p + 8);
    const unsigned kind = word & 3;
    int64_t more = 0;
    if (!(word >> 2 & 1) || kind == LOST) return RECORD;
    if (kind == EVENT) {
        if (n < RECORD + 2) return 0;
        more = (2 + (int64_t)fp_u16(p + RECORD) + 7) & ~(int64_t)7;
    } else {
        more = payload(r, f, kind == EXIT, p + RECORD, n - RECORD);
        if (more == UNKNOWN) r->u.unsized = f->function;
    }
    if (more < 0) return more == CUT ? 0 : FP_E_MALFORMED;
    return (size_t)more <= n - RECORD ? RECORD + more : 0;
}

/* The rows of an entry or exit. */
static int put_call(struct uftrace_reader *r, struct fp_batch *out, uint64_t word, uint64_t time, uint32_t function) {
    const uint32_t level = (uint32_t)(word >> 6 & 1023) * 2;
    if ((word & 3) == ENTRY) {
        FP_TRY(leave(r, out, time, level, &r->u.no_exits));
        if (r->n && r->calls[r->n - 1].level & 1) FP_TRY(leave(r, out, time, r->calls[r->n - 1].level, &(uint64_t){0}));
        return enter(r, out, time, function, level);
    }
    FP_TRY(leave(r, out, time, level + 1, &r->u.no_exits));
    if (!r->n || r->calls[r->n - 1].level != level) { /* as the return of fork in a child */
        if (enter(r, out, time, function, level)) return FP_FULL;
        r->u.no_entries++;
    }
    return leave(r, out, time, level, &(uint64_t){0});
}

static int end_of_thread(struct uftrace_reader *r, struct fp_batch *out) {
    if (put_switches(r, out, UINT64_MAX)) return FP_FULL;
    return leave(r, out, r->last, 0, &r->u.no_exits) ? FP_FULL : FP_DONE;
}

static int bad(struct uftrace_reader *r, struct fp_window *in, int status, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, status, in->base + in->pos, what);
    r->u.bad_ends++;
    in->pos = in->n;
    r->is_over = 1;
    return FP_MORE;
}

/* Entries and exits that fit the open calls, of known functions and without arguments, up to the first other record:
 * most of a file. */
static void feed_calls(struct uftrace_reader *r, struct fp_window *in, struct fp_batch *out) {
    const uint64_t session = (uint64_t)r->u.session << 48;
    uint64_t last = r->last, end = r->u.until;
    if (r->next < r->end && r->switches[r->next].time < end) end = r->switches[r->next].time + 1;
    /* locals: a store to `op` may change any other memory */
    struct uftrace_call *const calls = r->calls;
    uint64_t *const times = out->time;
    uint32_t *const functions = out->function;
    uint8_t *const ops = out->op;
    const uint32_t cap_calls = r->cap, cap = out->cap;
    uint32_t n = r->n, i = out->n;
    const uint8_t *p = in->p + in->pos, *const limit = in->p + in->n;
    for (; i < cap && limit - p >= RECORD; p += RECORD) {
        const uint64_t time = fp_u64(p), word = fp_u64(p + 8), address = word >> 16;
        const uint32_t level = (uint32_t)(word >> 6 & 1023) * 2;
        if ((word & 0x3e) != MAGIC << 3 || time < last || time >= end)
            break; /* bits 1 to 5: a call without arguments */
        uint32_t function;
        if (word & EXIT) {
            if (!n || calls[n - 1].level != level) break;
            function = calls[--n].function;
        } else {
            const size_t slot = (address ^ address >> 12) % CACHE;
            const uint32_t known = r->cache[slot].row;
            if (!known || r->cache[slot].key != (address | session)) break;
            if (n == cap_calls || (n && (calls[n - 1].level >= level || calls[n - 1].level & 1))) break;
            function = r->functions[known].function;
            calls[n++] = (struct uftrace_call){function, level};
        }
        times[i] = last = time;
        ops[i] = word & EXIT ? FP_OP_EXIT : FP_OP_ENTER;
        functions[i++] = function;
    }
    for (uint32_t k = out->n; k < i; k++) out->thread[k] = r->thread;
    memset(out->cpu + out->n, 0, (i - out->n) * sizeof *out->cpu);
    r->n = n;
    r->last = last;
    out->n = i;
    in->pos = (size_t)(p - in->p);
}

static int feed_thread(struct uftrace_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        feed_calls(r, in, out);
        if (in->n - in->pos < RECORD) break;
        const uint8_t *p = in->p + in->pos;
        const uint64_t word = fp_u64(p + 8), given = fp_u64(p), time = given > r->last ? given : r->last;
        const unsigned kind = word & 3;
        uint32_t at = 0;
        if (FP_UNLIKELY((word >> 3 & 7) != MAGIC)) {
            if (bad(r, in, FP_E_MALFORMED, "no record begins here", err) < 0) return FP_E_MALFORMED;
            break;
        }
        if (FP_UNLIKELY(given >= r->u.until) && r->u.until != UINT64_MAX) {
            r->u.request = FP_UFTRACE_SESSION;
            r->u.time = given;
            return FP_NEEDS;
        }
        if (kind <= EXIT && !(at = function_at(r, word >> 16))) return FP_NEEDS;
        const struct uftrace_function *f = at ? &r->functions[at] : NULL;
        const int64_t nbytes = length_of(r, p, in->n - in->pos, f);
        if (nbytes < 0) {
            if (bad(r, in, FP_E_MALFORMED, "the arguments of a function have an unknown length", err) < 0)
                return FP_E_MALFORMED;
            break;
        }
        if (!nbytes) break;
        if (r->next < r->end && put_switches(r, out, time)) return FP_FULL;
        if (at && put_call(r, out, word, time, f->function)) return FP_FULL;
        r->u.backward += given < r->last;
        r->u.events += kind == EVENT;
        r->u.lost += kind == LOST ? word >> 16 : 0;
        r->last = time;
        in->pos += (size_t)nbytes;
    }
    if (!in->eof) return FP_MORE;
    if (in->pos == in->n) return end_of_thread(r, out);
    const int status = bad(r, in, FP_E_TRUNCATED, "the file ends inside a record", err);
    return status == FP_MORE ? end_of_thread(r, out) : status;
}

static int feed_switches(struct uftrace_reader *r, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        const uint8_t *p = in->p + in->pos;
        const size_t n = in->n - in->pos, size = n < PERF_HEAD ? PERF_HEAD : fp_u16(p + 6);
        if (size < PERF_HEAD) {
            if (bad(r, in, FP_E_MALFORMED, "a record of perf is shorter than its head", err) < 0) return FP_E_MALFORMED;
            break;
        }
        if (n < size) break;
        const uint32_t type = fp_u32(p), misc = fp_u16(p + 4);
        const size_t at = type == PERF_EXIT ? 16 : 8;
        if ((type == PERF_EXIT || type == PERF_SWITCH) && size >= at + 16) {
            const uint32_t kind = misc & PREEMPTED ? SWITCH_PREEMPTED : misc & OUT ? SWITCH_OUT : SWITCH_IN;
            const uint32_t tid = fp_u32(p + at + (type == PERF_SWITCH ? 4 : 0));
            FP_PUSH(r->switches, r->n_switches, r->cap_switches) =
                (struct uftrace_switch){fp_u64(p + at + 8), tid, type == PERF_EXIT ? THREAD_EXIT : kind};
        }
        in->pos += size;
    }
    if (!in->eof) return FP_MORE;
    if (in->pos == in->n) return FP_DONE;
    const int status = bad(r, in, FP_E_TRUNCATED, "the file ends inside a record of perf", err);
    return status == FP_MORE ? FP_DONE : status;
}

int fp_uftrace_feed(struct fp_uftrace *u, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct uftrace_reader *r = (struct uftrace_reader *)u;
    u->unsized = 0;
    if (r->is_over) in->pos = in->n;
    const int status = u->is_switches ? feed_switches(r, in, err) : feed_thread(r, in, out, err);
    if (status == FP_DONE) r->is_over = 0;
    return status;
}
