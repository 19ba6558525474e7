#include "bridges/budget/fit_timeline.h"

#include "bridges/budget/bins.h"

/* PINNED: the rank of calls that contain an event.  PACKED: an upper bound of a packed row without its payload. */
enum { PINNED = FP_FIT_TIMELINE_RANKS, NEW_THREAD = 8, NEW_CPU = 16, NEW_PART = 32, PACKED = 48 };

struct fp_fit_timeline_call {
    uint64_t entered, within; /* within: time spent in its callees */
    uint32_t function, first_argument;
    uint16_t cpu;
    uint8_t op, pinned;
};

struct fp_fit_timeline_thread {
    struct fp_fit_timeline_call *calls; /* open calls, outermost first */
    uint32_t n, cap;
    uint32_t shown; /* calls whose enter was returned */
    uint64_t *arguments;
    uint32_t n_arguments, cap_arguments, shown_arguments;
    uint32_t part;
    uint32_t group; /* + 1; 0: none yet */
};

/* A row to return. */
struct row {
    uint64_t time, aux;
    const uint8_t *payload;
    uint32_t function, thread, payload_n;
    uint16_t cpu;
    uint8_t op;
};

void fp_fit_timeline_free(struct fp_fit_timeline *f) {
    for (uint32_t i = 0; i < f->n_groups; i++) {
        fp_buf_free(&f->groups[i].packed);
        free(f->groups[i].bytes);
    }
    for (uint32_t i = 0; i < f->cap_threads; i++) FP_FREE(f->threads[i].calls, f->threads[i].arguments);
    FP_FREE(f->groups, f->threads, f);
}

void fp_fit_timeline_size(struct fp_fit_timeline *f, uint64_t limit, uint64_t call, uint64_t named, uint64_t event) {
    f->limit = limit;
    f->call = call;
    f->named = named;
    f->event = event;
}

/* ---- ranks ---- */

uint64_t fp_fit_timeline_length(uint32_t rank) {
    return fp_bins_begin(rank);
}

uint32_t fp_fit_timeline_rank(const struct fp_fit_timeline_group *g, uint64_t limit) {
    uint64_t left = g->kept;
    uint32_t rank = g->least;
    while (left > limit && rank < FP_FIT_TIMELINE_RANKS) left -= g->bytes[rank++];
    return rank;
}

/* ---- groups ---- */

/* The number of a group, added if it is new. */
static uint32_t group_of(struct fp_fit_timeline *f, uint32_t thread, int64_t slice) {
    for (uint32_t i = 0; i < f->n_groups; i++)
        if (f->groups[i].thread == thread && f->groups[i].slice == slice) return i;
    fp_array_zeroed(&f->groups, &f->cap_groups, (uint64_t)f->n_groups + 1, sizeof *f->groups);
    uint64_t *const counts = fp_have(calloc(3 * (size_t)(FP_FIT_TIMELINE_RANKS + 1), sizeof *counts));
    f->groups[f->n_groups] = (struct fp_fit_timeline_group){.thread = thread,
                                                            .slice = slice,
                                                            .bytes = counts,
                                                            .calls = counts + FP_FIT_TIMELINE_RANKS + 1,
                                                            .self = counts + 2 * (FP_FIT_TIMELINE_RANKS + 1)};
    return f->n_groups++;
}

struct fp_fit_timeline *fp_fit_timeline_new(const struct fp_model *model, int by, uint64_t slice_ns) {
    struct fp_fit_timeline *f = fp_made(sizeof *f);
    f->model = model;
    f->by = by;
    f->slice_ns = slice_ns;
    if (by == FP_FIT_TIMELINE_ALL) group_of(f, 0, 0);
    return f;
}

static void count(struct fp_fit_timeline *f, struct fp_fit_timeline_group *g, uint32_t rank, uint64_t bytes) {
    g->bytes[rank] += bytes;
    if (rank >= g->least) g->kept += bytes;
    while (g->kept > f->limit && g->least < FP_FIT_TIMELINE_RANKS) g->kept -= g->bytes[g->least++];
}

/* ---- output ---- */

static int is_exit(uint8_t op) {
    return op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT;
}

static void pack(struct fp_fit_timeline *f, struct fp_fit_timeline_group *g, const struct fp_fit_timeline_thread *t,
                 const struct row *r) {
    fp_buf_reserve(&g->packed, PACKED + (size_t)r->payload_n);
    struct fp_fit_timeline_state *const s = &g->state;
    uint8_t *const from = g->packed.p + g->packed.n, *to = from + 1;
    *from = r->op;
    if (r->op == FP_OP_ARGUMENT) {
        to = fp_varint(to, r->aux);
    } else {
        if (s->thread != r->thread) *from |= NEW_THREAD, to = fp_varint(to, r->thread);
        if (s->cpu != r->cpu) *from |= NEW_CPU, to = fp_varint(to, r->cpu);
        if (s->part != t->part) *from |= NEW_PART, to = fp_varint(to, t->part);
        if (!is_exit(r->op)) to = fp_varint(to, r->function);
        to = fp_varint(to, fp_zig(r->time - s->time));
        *s = (struct fp_fit_timeline_state){.time = r->time, .thread = r->thread, .part = t->part, .cpu = r->cpu};
    }
    if (r->op == FP_OP_CUSTOM || r->op == FP_OP_TYPED) {
        to = fp_varint(to, r->payload_n);
        if (r->payload_n) memcpy(to, r->payload, r->payload_n);
        to += r->payload_n;
    }
    g->packed.n += (size_t)(to - from);
    f->packed += (size_t)(to - from);
}

/* 0 or FP_FULL. */
static int give_out(struct fp_fit_timeline *f, const struct fp_fit_timeline_thread *t, const struct row *r) {
    struct fp_batch *const out = f->out;
    if (!out) {
        pack(f, &f->groups[t->group - 1], t, r);
        return 0;
    }
    const uint32_t to = out->n;
    if (to == out->cap || (to && out->part != t->part)) return FP_FULL;
    out->part = t->part;
    out->time[to] = r->time;
    out->function[to] = r->function;
    out->thread[to] = r->thread;
    out->cpu[to] = r->cpu;
    out->op[to] = r->op;
    out->aux[to] = r->aux;
    if (r->op == FP_OP_CUSTOM || r->op == FP_OP_TYPED) {
        const int status = fp_batch_payload(out, r->payload, r->payload_n, &out->aux[to]);
        if (status == FP_E_OVERFLOW && to) return FP_FULL; /* payloads of an empty batch fit */
        if (status) return fp_escape();
    }
    out->n++;
    return 0;
}

/* Returns the enters, with their arguments, that were not returned yet.  After FP_FULL the next call continues. */
static int show(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, uint32_t thread) {
    for (;;) {
        const int all = t->shown == t->n;
        const uint32_t end = all ? t->n_arguments : t->calls[t->shown].first_argument;
        while (t->shown_arguments < end) {
            const struct fp_fit_timeline_call *c = &t->calls[t->shown - 1];
            const struct row r = {.time = c->entered,
                                  .aux = t->arguments[t->shown_arguments],
                                  .thread = thread,
                                  .cpu = c->cpu,
                                  .op = FP_OP_ARGUMENT};
            FP_TRY(give_out(f, t, &r));
            t->shown_arguments++;
        }
        if (all) return 0;
        const struct fp_fit_timeline_call *c = &t->calls[t->shown];
        const struct row r = {
            .time = c->entered, .function = c->function, .thread = thread, .cpu = c->cpu, .op = c->op};
        FP_TRY(give_out(f, t, &r));
        t->shown++;
    }
}

/* ---- calls ---- */

/* Whether there is room for one more row. */
static int has_room(const struct fp_fit_timeline *f, const struct fp_fit_timeline_thread *t) {
    return !f->out || (f->out->n < f->out->cap && (!f->out->n || f->out->part == t->part));
}

/* Whether nothing is merged: then rows are returned immediately, in order. */
static int all_fit(const struct fp_fit_timeline *f, const struct fp_fit_timeline_thread *t) {
    return !(f->out ? f->least : f->groups[t->group - 1].least);
}

/* Begins a call.  0, FP_FULL (no room: the same row comes again). */
static int enter(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, const struct row *r) {
    const int at_once = t->shown == t->n && all_fit(f, t);
    if (at_once && !has_room(f, t)) return FP_FULL;
    FP_PUSH(t->calls, t->n, t->cap) = (struct fp_fit_timeline_call){
        .entered = r->time, .function = r->function, .first_argument = t->n_arguments, .cpu = r->cpu, .op = r->op};
    return at_once ? show(f, t, r->thread) : 0;
}

/* Ends the innermost call with the row r.  0, FP_FULL (the same row comes again). */
static int leave(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, const struct row *r) {
    const struct fp_fit_timeline_call c = t->calls[t->n - 1];
    const uint64_t length = r->time - c.entered;
    const uint32_t rank = c.pinned ? PINNED : fp_bins_of(length);
    uint32_t least = f->least;
    if (!f->out) {
        struct fp_fit_timeline_group *const g = &f->groups[t->group - 1];
        const uint32_t *row = fp_table_row(&f->model->functions, c.function);
        size_t name_n = 0;
        if (f->named) fp_string(&f->model->strings, row[FP_FUNCTION_NAME], &name_n);
        g->calls[rank]++;
        g->self[rank] += length - c.within;
        count(f, g, rank, f->call + f->named * name_n);
        least = g->least;
    }
    /* if the enter was returned, because an inner call was long enough then, return the exit */
    if (rank >= least || t->shown == t->n) {
        FP_TRY(show(f, t, r->thread));
        FP_TRY(give_out(f, t, r));
    }
    t->n--;
    t->n_arguments = c.first_argument;
    if (t->shown > t->n) t->shown = t->n;
    if (t->shown_arguments > t->n_arguments) t->shown_arguments = t->n_arguments;
    if (t->n) {
        t->calls[t->n - 1].within += length;
        t->calls[t->n - 1].pinned |= c.pinned;
    }
    return 0;
}

static int one(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, const struct row *r) {
    switch (r->op) {
        case FP_OP_ENTER:
        case FP_OP_ENTER_ARGS: return enter(f, t, r);
        case FP_OP_EXIT:
        case FP_OP_TAIL_EXIT: return leave(f, t, r);
        case FP_OP_ARGUMENT:
            if (!t->n) return 0;
            if (t->shown == t->n && !has_room(f, t)) return FP_FULL;
            FP_PUSH(t->arguments, t->n_arguments, t->cap_arguments) = r->aux;
            return t->shown == t->n ? show(f, t, r->thread) : 0;
        default:
            if (f->event) {
                if (t->n) t->calls[t->n - 1].pinned = 1;
                FP_TRY(show(f, t, r->thread));
                if (!f->out) count(f, &f->groups[t->group - 1], PINNED, f->event + r->payload_n);
            }
            return give_out(f, t, r);
    }
}

/* ---- adding rows ---- */

static int too_many(struct fp_err *err) {
    return fp_fail_beyond(err, "the number of files", FP_NO_COLUMN, "500");
}

static int choose(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, uint32_t thread, int64_t slice,
                  struct fp_err *err) {
    const uint32_t number =
        group_of(f, f->by == FP_FIT_TIMELINE_THREADS ? thread : 0, f->by == FP_FIT_TIMELINE_SLICES ? slice : 0);
    t->group = number + 1;
    return f->n_groups > FP_FIT_TIMELINE_GROUPS ? too_many(err) : 0;
}

/* The slice of a time.  An exit at an edge belongs to the previous slice. */
static int64_t slice_of(const struct fp_fit_timeline *f, uint64_t time, int ends) {
    const uint64_t after = time - f->zero;
    if (time > f->zero) return (int64_t)((after - (uint64_t)ends) / f->slice_ns);
    return time < f->zero ? -1 - (int64_t)((f->zero - time - 1) / f->slice_ns) : 0;
}

/* Moves a thread to the slice of its next row: ends its open calls at each edge and begins them again. */
static int cut(struct fp_fit_timeline *f, struct fp_fit_timeline_thread *t, uint32_t thread, int64_t slice,
               struct fp_err *err) {
    int64_t at = f->groups[t->group - 1].slice;
    if (slice - at > FP_FIT_TIMELINE_GROUPS && t->n) return too_many(err);
    while (at < slice) {
        const uint32_t depth = t->n;
        at = depth ? at + 1 : slice;
        /* not negative: a row of an earlier slice was not */
        struct row edge = {.time = f->zero + (uint64_t)at * f->slice_ns, .thread = thread};
        while (t->n) {
            edge.op = FP_OP_EXIT;
            edge.function = t->calls[t->n - 1].function;
            edge.cpu = t->calls[t->n - 1].cpu;
            leave(f, t, &edge); /* rows are packed, so there is room */
        }
        FP_TRY(choose(f, t, thread, at, err));
        edge.op = FP_OP_ENTER;
        for (uint32_t i = 0; i < depth; i++) {
            edge.function = t->calls[i].function; /* other fields are the same for all */
            edge.cpu = t->calls[i].cpu;
            enter(f, t, &edge);
        }
    }
    return 0;
}

int fp_fit_timeline_put(struct fp_fit_timeline *f, const struct fp_batch *b, struct fp_err *err) {
    for (uint32_t i = 0; i < b->n; i++) {
        struct row r = {
            .time = b->time[i], .function = b->function[i], .thread = b->thread[i], .cpu = b->cpu[i], .op = b->op[i]};
        if (r.op == FP_OP_ARGUMENT) r.aux = b->aux[i];
        if (r.op == FP_OP_CUSTOM || r.op == FP_OP_TYPED) {
            r.payload = fp_batch_bytes(b, b->aux[i]);
            r.payload_n = (uint32_t)b->aux[i];
        }
        struct fp_fit_timeline_thread *const t = FP_AT(f->threads, f->cap_threads, r.thread);
        if (!t->n) t->part = b->part;
        if (!f->begun) {
            f->zero = r.time;
            f->begun = 1;
        }
        const int slices = f->by == FP_FIT_TIMELINE_SLICES;
        const int64_t slice = slices ? slice_of(f, r.time, is_exit(r.op)) : 0;
        int status = 0;
        if (FP_UNLIKELY(!t->group))
            status = choose(f, t, r.thread, slice, err);
        else if (slices && r.op != FP_OP_ARGUMENT && slice > f->groups[t->group - 1].slice)
            status = cut(f, t, r.thread, slice, err);
        if (status) return status;
        one(f, t, &r);
    }
    return FP_DONE;
}

/* ---- unpacking rows ---- */

void fp_fit_timeline_begin(struct fp_fit_timeline *f, uint32_t group, uint32_t least) {
    f->groups[group].state = (struct fp_fit_timeline_state){0};
    f->least = least;
    for (uint32_t i = 0; i < f->cap_threads; i++) {
        struct fp_fit_timeline_thread *t = &f->threads[i];
        t->n = t->shown = t->n_arguments = t->shown_arguments = 0;
    }
}

int fp_fit_timeline_take(struct fp_fit_timeline *f, uint32_t group, struct fp_window *in, struct fp_batch *out) {
    struct fp_fit_timeline_state *const s = &f->groups[group].state;
    f->out = out;
    while (in->pos < in->n) {
        const size_t from = in->pos;
        const struct fp_fit_timeline_state before = *s;
        const uint8_t head = in->p[in->pos++];
        struct row r = {.op = head & 7};
        if (r.op == FP_OP_ARGUMENT) {
            r.aux = fp_varint_next(in);
        } else {
            if (head & NEW_THREAD) s->thread = (uint32_t)fp_varint_next(in);
            if (head & NEW_CPU) s->cpu = (uint16_t)fp_varint_next(in);
            if (head & NEW_PART) s->part = (uint32_t)fp_varint_next(in);
            if (!is_exit(r.op)) r.function = (uint32_t)fp_varint_next(in);
            s->time += fp_zag(fp_varint_next(in));
        }
        r.time = s->time;
        r.thread = s->thread;
        r.cpu = s->cpu;
        if (r.op == FP_OP_CUSTOM || r.op == FP_OP_TYPED) {
            r.payload_n = (uint32_t)fp_varint_next(in);
            r.payload = in->p + in->pos;
            in->pos += r.payload_n;
        }
        struct fp_fit_timeline_thread *const t = &f->threads[r.thread];
        if (!t->n) t->part = s->part;
        if (is_exit(r.op)) r.function = t->calls[t->n - 1].function;
        const int status = one(f, t, &r);
        if (status == FP_FULL) {
            in->pos = from;
            *s = before;
        }
        if (status) return status;
    }
    return FP_DONE;
}
