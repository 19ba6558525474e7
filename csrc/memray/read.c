#include "memray/read.h"

#include "memray/state.h"

enum { OLDEST = 11, NEWEST = 13 };
static const uint8_t MAGIC[7] = "memray"; /* with its zero byte */

struct fp_memray *fp_memray_new(struct fp_model *model, int lenient) {
    struct fp_memray_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->f.heap.last_of_equal = 1;
    FP_INIT_TABLES(2, &r->thread_ids, &r->code_ids, &r->node_keys, &r->wanted_keys);
    fp_table_init(&r->frame_keys, 3);
    fp_table_init(&r->sums, 5);
    (void)fp_heap_stack(&r->f.heap, 0, 0); /* row 0 of `sums` */
    return &r->f;
}

void fp_memray_free(struct fp_memray *f) {
    struct fp_memray_reader *r = (struct fp_memray_reader *)f;
    fp_heap_free(&f->heap);
    FP_CLEAR_TABLES(&r->thread_ids, &r->code_ids, &r->frame_keys, &r->sums, &r->node_keys, &r->wanted_keys);
    for (uint32_t i = 0; i < r->cap_threads; i++) free(r->threads[i].stack);
    if (r->buckets) fp_release(r->buckets, (r->mask + 1) * sizeof *r->buckets);
    FP_FREE(r->code_of, r->codes, r->frames, r->tables, r->spans, r->large, r->maps, r->numbered, r->nodes);
    FP_FREE(r->natives, r->images, r->epochs, r->way, r->native_way, f->wanted, f->images, r->threads, r);
}

static int read_header(struct fp_memray_reader *r, struct fp_cursor *c) {
    struct fp_memray *f = &r->f;
    if ((size_t)(c->end - c->p) < sizeof MAGIC) return FP_MORE;
    if (memcmp(c->p, MAGIC, sizeof MAGIC) != 0)
        return fp_memray_bad(r, "the file's beginning", "memray and a zero byte");
    c->p += sizeof MAGIC;
    f->version = (uint32_t)fp_cursor_fixed(c, 4);
    if (!c->status && (f->version < OLDEST || f->version > NEWEST)) {
        r->what = "the header's version";
        r->want = "11 to 13 (memray 1.11 to 1.20)";
        return FP_E_VERSION;
    }
    f->python = f->version > 11 ? (uint32_t)fp_cursor_fixed(c, 4) : 0;
    f->has_native = fp_cursor_fixed(c, 1) != 0;
    f->is_aggregated = fp_cursor_fixed(c, 1) != 0;
    (void)fp_cursor_fixed(c, 8), (void)fp_cursor_fixed(c, 8); /* numbers of records, which are unset after a crash */
    f->start_ms = (int64_t)fp_cursor_fixed(c, 8);
    f->end_ms = (int64_t)fp_cursor_fixed(c, 8);
    const struct fp_cursor_text command = fp_cursor_text(c);
    f->pid = (uint32_t)fp_cursor_fixed(c, 4);
    f->main_thread = fp_cursor_fixed(c, 8);
    f->hidden = fp_cursor_fixed(c, 8);
    f->python_allocator = (int32_t)fp_cursor_fixed(c, 1);
    f->traces_python = (int32_t)fp_cursor_fixed(c, 1);
    if (f->version > 11) (void)fp_cursor_fixed(c, 1); /* whether objects are recorded */
    if (f->version > 12) (void)fp_cursor_text(c);     /* a library's path, and lists of paths */
    for (int lists = f->version > 12 ? 2 : 0; lists && !c->status;) lists -= !fp_cursor_text(c).n;
    if (c->status) return c->status;
    f->command = fp_strings_intern(&r->model->strings, command.p, command.n);
    r->has_header = 1;
    return 0;
}

static struct fp_memray_thread *thread_of(struct fp_memray_reader *r, uint64_t id) {
    const uint32_t row = fp_table_intern(&r->thread_ids, (uint32_t[2]){FP_WORDS(id)});
    struct fp_memray_thread *t = FP_AT(r->threads, r->cap_threads, row);
    if (!t->n) {
        fp_array_zeroed(&t->stack, &t->cap, 1, sizeof *t->stack);
        t->n = 1;
        t->id = id;
        t->thread =
            fp_model_thread(r->model, r->f.input, r->f.pid, id < UINT32_MAX - row ? (uint32_t)id : UINT32_MAX - row);
        if (r->f.n_threads <= row) r->f.n_threads = row + 1;
    }
    return t;
}

uint32_t fp_memray_thread(const struct fp_memray *f, uint32_t i, uint32_t *name) {
    const struct fp_memray_thread *t = &((const struct fp_memray_reader *)f)->threads[i];
    *name = t->name;
    return t->thread;
}

static int push(struct fp_memray_reader *r, uint64_t code, uint64_t instruction, unsigned is_entry) {
    struct fp_memray_thread *t = fp_memray_current(r);
    const uint32_t frame = t ? fp_memray_frame(r, code, instruction, is_entry) : 0;
    if (!frame) return fp_memray_bad(r, t ? "the code object is not defined" : "a call before the first thread", NULL);
    uint32_t stack = t->stack[t->n - 1].stack;
    if (r->f.has_native) {
        stack = fp_table_intern(&r->node_keys, (uint32_t[2]){stack, frame});
        if (stack > r->n_nodes) fp_memray_add_node(r, frame, t->stack[t->n - 1].stack);
    } else {
        const int is_hidden = t->id == r->f.main_thread && t->n <= r->f.hidden;
        stack = is_hidden ? 0 : fp_model_stack(r->model, stack, frame / 2);
    }
    FP_PUSH(t->stack, t->n, t->cap) = (struct fp_memray_top){stack, 0, 0, 0};
    return 0;
}

static int pop(struct fp_memray_reader *r, uint32_t n) {
    struct fp_memray_thread *t = fp_memray_current(r);
    if (!t || t->n <= n) return fp_memray_bad(r, "more returns than calls", NULL);
    t->n -= n;
    return 0;
}

static int point(struct fp_memray_reader *r, uint64_t ms, uint64_t resident) {
    const int status = fp_memray_settle(r);
    r->f.heap.now = ms;
    fp_heap_point(&r->f.heap, resident);
    return status;
}

/* The records that all forms have: their kind is `kind`. */
static int read_shared(struct fp_memray_reader *r, struct fp_cursor *c, unsigned kind) {
    switch (kind) {
        case 5: return fp_memray_read_native(r, c);
        case 6: /* the images of the process follow */
            FP_PUSH(r->epochs, r->n_epochs, r->cap_epochs) = r->n_images;
            return 0;
        case 7: return fp_memray_read_image(r, c);
        case 10: {
            const struct fp_cursor_text name = fp_cursor_text(c);
            if (c->status) return c->status;
            if (!r->current) return fp_memray_bad(r, "a name before the first thread", NULL);
            fp_memray_current(r)->name = fp_strings_intern(&r->model->strings, name.p, name.n);
            return 0;
        }
        case 12: {
            const uint64_t id = fp_cursor_fixed(c, 8);
            if (!c->status) r->current = (uint32_t)(thread_of(r, id) - r->threads) + 1;
            return c->status;
        }
        case 14: return fp_memray_read_code(r, c);
        default: return fp_memray_bad(r, "the kind of a record is unknown", NULL);
    }
}

/* Version 11: the kind is in the lower 4 bits. */
static int read_old(struct fp_memray_reader *r, struct fp_cursor *c) {
    static const uint8_t allocators[16] = {0, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 2, 3, 4, 1};
    const unsigned kind = *c->p & 15, flags = *c->p >> 4;
    c->p++;
    if (kind == 1 || kind == 2) {
        const unsigned allocator = allocators[flags];
        const uint64_t address = r->pointer + fp_cursor_delta(c);
        const int is_free = allocator == 5 || allocator == 1;
        const uint64_t size = is_free && kind == 1 ? 0 : fp_cursor_number(c);
        const uint64_t native = r->native + (kind == 2 ? fp_cursor_delta(c) : 0);
        if (c->status) return c->status;
        r->pointer = address, r->native = native;
        return fp_memray_event(r, allocator, address, size);
    }
    if (kind == 3) return fp_memray_read_frame(r, c, 0, !(flags & 1));
    if (kind == 4) {
        const uint64_t frame = r->frame + fp_cursor_delta(c);
        if (c->status) return c->status;
        r->frame = frame;
        return push(r, frame, 0, 1);
    }
    if (kind == 9) return pop(r, flags + 1);
    if (kind == 11) {
        const uint64_t resident = fp_cursor_number(c), ms = fp_cursor_number(c);
        return c->status ? c->status : point(r, ms, resident);
    }
    r->is_over = kind == 0;
    if (kind == 0) return flags == 1 ? 0 : FP_E_TRUNCATED;
    return read_shared(r, c, kind);
}

/* Allocations, frees, and objects made and destroyed: of versions 12 and 13. */
static int read_address(struct fp_memray_reader *r, struct fp_cursor *c) {
    const unsigned byte = *c->p++, is_object = byte < 0x80, slot = (is_object ? byte >> 1 : byte >> 3) & 15;
    uint64_t pointer = r->pointer, address = r->ring[(r->latest + slot) & 15], native = r->native, size = 0;
    unsigned allocator = byte & 7;
    if (slot == 15) {
        pointer += fp_cursor_delta(c);
        address = pointer << 3;
    }
    if (!is_object && !allocator) allocator = (unsigned)fp_cursor_fixed(c, 1);
    const int has_size = !is_object && allocator != 1 && allocator != 5;
    if (r->f.has_native && (has_size || (is_object && byte & 1))) native += fp_cursor_delta(c);
    if (has_size) size = fp_cursor_number(c);
    if (c->status) return c->status;
    if (slot == 15) {
        r->latest = (r->latest - 1) & 15;
        r->ring[r->latest] = address;
    }
    r->pointer = pointer, r->native = native;
    return is_object ? 0 : fp_memray_event(r, allocator, address, size);
}

static int read_record(struct fp_memray_reader *r, struct fp_cursor *c) {
    const uint8_t byte = *c->p;
    if (byte & 0x80 || (byte & 0x60) == 0x20) return read_address(r, c);
    c->p++;
    if (byte & 0x40) {
        const uint64_t code = fp_cursor_number(c), instruction = fp_cursor_delta(c);
        return c->status ? c->status : push(r, code, instruction, byte & 1);
    }
    if (byte & 0x10) return pop(r, (byte & 15u) + 1);
    if (byte == 2) {
        const uint64_t resident = fp_cursor_number(c), ms = fp_cursor_number(c);
        return c->status ? c->status : point(r, ms, resident);
    }
    r->is_over = byte <= 1;
    if (byte <= 1) return byte ? 0 : FP_E_TRUNCATED;
    return read_shared(r, c, byte);
}

/* ---- aggregated ---- */

static int read_node(struct fp_memray_reader *r, struct fp_cursor *c) {
    const int is_old = r->f.version == 11;
    const uint64_t frame = is_old ? fp_cursor_fixed(c, 8) : fp_cursor_number(c);
    const uint64_t parent = is_old ? fp_cursor_fixed(c, 4) : fp_cursor_number(c);
    if (c->status) return c->status;
    const uint32_t of = is_old ? fp_memray_frame(r, frame, 0, 1) : frame < r->n_numbered ? r->numbered[frame] : 0;
    if (!of) return fp_memray_bad(r, "the frame of a node is not defined", NULL);
    if (parent > r->n_nodes) return fp_memray_bad(r, "the parent of a node is not defined", NULL);
    fp_memray_add_node(r, of, (uint32_t)parent);
    return 0;
}

static int read_numbered(struct fp_memray_reader *r, struct fp_cursor *c) {
    if (r->f.version == 11) return fp_memray_read_frame(r, c, 1, 1);
    const uint64_t number = fp_cursor_number(c), code = fp_cursor_number(c), instruction = fp_cursor_delta(c);
    const unsigned is_entry = fp_cursor_fixed(c, 1) != 0;
    if (c->status) return c->status;
    const uint32_t frame = fp_memray_frame(r, code, instruction, is_entry);
    if (number != r->n_numbered) return fp_memray_bad(r, "the number of a frame", "that of the last one plus 1");
    if (!frame) return fp_memray_bad(r, "the code object is not defined", NULL);
    FP_PUSH(r->numbered, r->n_numbered, r->cap_numbered) = frame;
    return 0;
}

/* thread 8, allocator 1 and 7 unused, native frame 8, node 8, generation 8, and the counts and bytes at the peak and at
 * the end: count, count, bytes, bytes */
static int read_sum(struct fp_memray_reader *r, struct fp_cursor *c) {
    enum { SIZE = 72 };
    if (c->end - c->p < SIZE) return FP_MORE;
    static const int columns[4] = {FP_HEAP_PEAK, FP_HEAP_LEFT, FP_HEAP_PEAK_BYTES, FP_HEAP_LEFT_BYTES};
    const uint64_t id = fp_u64(c->p), node = fp_u64(c->p + 24);
    if (node > r->n_nodes) return fp_memray_bad(r, "the node of a sum is not defined", NULL);
    struct fp_memray_thread *t = thread_of(r, id);
    const uint64_t native = r->f.has_native ? fp_u64(c->p + 16) : 0, epoch = r->f.has_native ? fp_u64(c->p + 32) : 0;
    if (epoch > r->n_epochs) return fp_memray_bad(r, "the images of a sum are not defined", NULL);
    const uint32_t stack =
        r->f.has_native ? (uint32_t)node : fp_memray_stack(r, (uint32_t)node, id == r->f.main_thread);
    const uint32_t sum = fp_memray_sum(r, stack, t->thread, native, (uint32_t)epoch);
    int64_t *values = r->f.heap.sums[sum].values;
    for (size_t k = 0; k < 4; k++) {
        const uint64_t value = fp_u64(c->p + 40 + 8 * k);
        if (value > INT64_MAX || __builtin_add_overflow(values[columns[k]], (int64_t)value, &values[columns[k]]))
            return fp_memray_bad(r, "a sum", "less than 2^63");
    }
    const int64_t bytes = (int64_t)fp_u64(c->p + 56);
    if (__builtin_add_overflow(r->f.heap.peak, bytes, &r->f.heap.peak))
        return fp_memray_bad(r, "the peak", "less than 2^63");
    c->p += SIZE;
    return 0;
}

static int read_aggregated(struct fp_memray_reader *r, struct fp_cursor *c) {
    const uint8_t byte = *c->p++;
    switch (byte) {
        case 1: {
            const uint64_t ms = fp_cursor_fixed(c, 8), resident = fp_cursor_fixed(c, 8), heap = fp_cursor_fixed(c, 8);
            if (c->status) return c->status;
            r->f.heap.live = heap <= INT64_MAX ? (int64_t)heap : 0;
            return point(r, ms - (uint64_t)r->f.start_ms, resident);
        }
        case 2: return read_sum(r, c);
        case 3: return read_node(r, c);
        case 4: return read_numbered(r, c);
        case 13: /* an object that is left */
            (void)fp_cursor_number(c);
            if (r->f.has_native) (void)fp_cursor_number(c);
            return c->status;
        case 0:
        case 15: r->is_over = 1; return byte ? 0 : FP_E_TRUNCATED;
        default: return read_shared(r, c, byte);
    }
}

/* ---- the loop ---- */

static int failed(struct fp_memray_reader *r, struct fp_window *in, int status, struct fp_err *err) {
    if (r->lenient && r->has_header && status != FP_E_OVERFLOW) {
        r->f.bad_end = 1;
        r->is_over = 1;
        return 0;
    }
    const char *const what = status == FP_E_MALFORMED && !r->what ? "a number is longer than 64 bits"
                             : status == FP_E_OVERFLOW            ? "a sum of bytes exceeds 2^63 - 1"
                             : status == FP_E_TRUNCATED           ? "the recording has no end"
                                                                  : r->what;
    if (status == FP_E_VERSION)
        return fp_fail_got(err, status, in->base + in->pos, what, FP_GOT_UNSIGNED, r->f.version, r->want, 0);
    fp_fail(err, status, in->base + in->pos, what);
    err->want = status == FP_E_TRUNCATED ? "a trailer, which a killed program does not write" : r->want;
    return status;
}

int fp_memray_feed(struct fp_memray *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_memray_reader *r = (struct fp_memray_reader *)f;
    while (!r->is_over) {
        if (in->pos == in->n && !in->eof) return FP_MORE;
        struct fp_cursor c = fp_cursor_at(in);
        const int is_first = !r->has_header;
        int status = c.p == c.end       ? FP_E_TRUNCATED
                     : is_first         ? read_header(r, &c)
                     : f->is_aggregated ? read_aggregated(r, &c)
                     : f->version == 11 ? read_old(r, &c)
                                        : read_record(r, &c);
        if (status == FP_MORE && !in->eof) return FP_MORE;
        if (status == FP_MORE) status = FP_E_TRUNCATED;
        if (FP_UNLIKELY(status)) {
            if ((status = failed(r, in, status, err))) return status;
            break;
        }
        in->pos = (size_t)(c.p - in->p);
        if (is_first) return FP_NEEDS;
    }
    int status = fp_memray_settle(r);
    if (!status && f->has_native && !r->is_wanted) {
        r->is_wanted = 1;
        f->request = FP_MEMRAY_NAMES;
        if (!(status = fp_memray_want(r))) return FP_NEEDS;
    }
    if (!status && f->has_native && !r->is_joined) {
        r->is_joined = 1;
        status = fp_memray_join(r);
    }
    if (status && (status = failed(r, in, status, err))) return status;
    r->is_wanted = r->is_joined = 1;
    in->pos = in->n; /* zeros */
    return in->eof ? fp_heap_rows(&f->heap, out) : FP_MORE;
}
