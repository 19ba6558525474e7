/* Records: their boundaries, and the order in which they are applied. */
#include "perf/private.h"

/* A record was consumed; continue with the next. */
enum { NEXT = 16 };

struct fp_perf_reader *fp_perf_reader_new(struct fp_model *model) {
    struct fp_perf_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->dumps.next_code = UINT64_MAX;
    fp_space_begin(&r->maps.space);
    r->threads.comm_key = fp_strings_intern(&model->strings, "comm", 4);
    r->threads.cpu_key = fp_strings_intern(&model->strings, "cpu", 3);
    r->maps.kernel_name = fp_strings_intern(&model->strings, "[kernel.kallsyms]", 17);
    fp_table_init(&r->events.ids, 2);
    FP_INIT_TABLES(1, &r->threads.ids, &r->dumps.names, &r->threads.prev_pids);
    fp_strings_init(&r->stacks.chains);
    fp_branches_begin(&r->branches.sums, model);
    return r;
}

void fp_perf_reader_free(struct fp_perf_reader *r) {
    fp_rounds_clear(&r->rounds);
    fp_space_free(r->maps.space);
    fp_strings_clear(&r->stacks.chains);
    fp_branches_clear(&r->branches.sums);
    for (uint32_t i = 0; i < r->deferred.n; i++) free(r->deferred.list[i].p);
    fp_unwind_free(r->unwound.unwinder);
    for (uint32_t i = 0; i < r->events.n; i++) free(r->events.list[i].fields);
    for (uint32_t i = 1; i < r->threads.ids.n && i < r->threads.cap; i++) free(r->threads.list[i].left_frames);
    FP_CLEAR_TABLES(&r->events.ids, &r->dumps.names, &r->threads.prev_pids, &r->threads.ids);
    FP_FREE(r->threads.prev, r->dumps.list, r->deferred.list, r->deferred.held, r->feed.own, r->unwound.frames,
            r->events.list, r->events.of_id, r->events.last_value, r->threads.list, r->maps.list, r->maps.build_ids,
            r->inner.p, r->stacks.of_chain, r->stacks.key, r->stacks.frames, r);
}

void fp_perf_begin(struct fp_perf_reader *r) {
    r->inner.n = r->inner.pos = 0;
    r->feed.handled = r->feed.handled_inner = 0;
    r->feed.skip = 0;
    r->feed.lost = 0;
}

int fp_perf_give(struct fp_perf_reader *r, const uint8_t *p, size_t n) {
    if (!n) return 0;
    if (r->inner.pos) {
        memmove(r->inner.p, r->inner.p + r->inner.pos, r->inner.n - r->inner.pos);
        r->inner.n -= r->inner.pos;
        r->inner.pos = 0;
    }
    fp_bytes_room(&r->inner.p, &r->inner.cap, r->inner.n + n);
    memcpy(r->inner.p + r->inner.n, p, n);
    r->inner.n += n;
    return 0;
}

/* ---- one record ---- */

/* The minimum size of a record of this type, without its trailer; 0 if the type is skipped. */
static uint32_t least_of(const struct fp_perf_reader *r, uint32_t type) {
    const int has_switches = r->off_cpu && !fp_perf_by_branches(r);
    switch (type) {
        case FP_PERF_MMAP: return 40;
        case FP_PERF_MMAP2: return 72;
        case FP_PERF_COMM: return 16;
        case FP_PERF_LOST_SAMPLES: return 16;
        case FP_PERF_FORK: return 32;
        case FP_PERF_EXIT: return has_switches ? 32 : 0;
        case FP_PERF_SWITCH: return has_switches ? 8 : 0;
        case FP_PERF_SWITCH_CPU_WIDE: return has_switches ? 16 : 0;
        case FP_PERF_LOST:
        case FP_PERF_KSYMBOL:
        case FP_PERF_DEFERRED: return 24;
        case FP_PERF_SAMPLE: return FP_PERF_HEAD;
        default: return 0;
    }
}

static int damaged(struct fp_perf_reader *r, uint64_t at, uint32_t n, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, at, what);
    r->counts.bad_records++;
    r->counts.lost_bytes += n;
    return NEXT;
}

/* Begins to deliver a record.  Its bytes must stay valid until it is delivered. */
static void deliver(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event) {
    r->feed.now = p;
    r->feed.n = n;
    r->feed.event = event;
    r->feed.row = 0;
    r->feed.has_now = 1;
}

/* Delivers the record.  0, or a status after which to deliver it again. */
static int deliver_now(struct fp_perf_reader *r, struct fp_batch *out, struct fp_err *err) {
    if (!r->feed.has_now) return 0;
    int status = 0;
    const struct fp_perf_event *e = &r->events.list[r->feed.event];
    const uint32_t type = fp_u32s(r->feed.now, r->swap);
    if (type == FP_PERF_SAMPLE && fp_perf_by_branches(r))
        status = fp_perf_branches(r, r->feed.now, r->feed.n, r->feed.event, out);
    else if (type == FP_PERF_SAMPLE)
        status = fp_perf_row(r, r->feed.now, r->feed.n, r->feed.event, out, err);
    else if (type == FP_PERF_DEFERRED)
        fp_perf_complete(r, e, r->feed.now, r->feed.n);
    else if (type == FP_PERF_SWITCH || type == FP_PERF_SWITCH_CPU_WIDE)
        status = fp_perf_switch(r, e, r->feed.now, r->feed.n, out);
    else
        status = fp_perf_apply(r, e, r->feed.now, r->feed.n);
    if (status == FP_E_OVERFLOW && r->lenient) {
        r->counts.bad_records++;
        r->counts.lost_bytes += r->feed.n;
        status = 0;
    }
    if (status) return status;
    r->feed.has_now = 0;
    return 0;
}

/* A record written by the kernel: it has a time and belongs to an event. */
static int from_kernel(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint64_t at, struct fp_err *err) {
    const uint32_t type = fp_u32s(p, r->swap), least = least_of(r, type);
    if (!least) {
        r->counts.skipped[type]++;
        return NEXT;
    }
    if (!r->events.n) return damaged(r, at, n, "a record comes before any event", err);
    const uint32_t event = fp_perf_find_event(r, p, n);
    if (event == FP_NO_ID) {
        r->counts.unknown_ids++;
        return NEXT;
    }
    const struct fp_perf_event *e = &r->events.list[event];
    if (type == FP_PERF_SAMPLE) {
        const char *wrong = fp_perf_check(r, e, p, n);
        if (wrong) return damaged(r, at, n, wrong, err);
    } else if (n < least + e->trailer) {
        return damaged(r, at, n, "a record is too short", err);
    }
    if (type == FP_PERF_LOST) r->counts.lost += fp_u64s(p + 16, r->swap);
    if (type == FP_PERF_LOST_SAMPLES) r->counts.lost_samples += fp_u64s(p + 8, r->swap);
    if (type == FP_PERF_LOST || type == FP_PERF_LOST_SAMPLES) return NEXT;
    const uint64_t time = fp_perf_time(r, e, p, n);
    if (!time || time == UINT64_MAX || !r->events.list[0].id_all) {
        fp_bytes_room(&r->feed.own, &r->feed.own_cap, n);
        memcpy(r->feed.own, p, n); /* the window may move before the batch has room */
        deliver(r, r->feed.own, n, event);
        return NEXT;
    }
    const int status = fp_rounds_put(&r->rounds, time, event, p, n);
    r->request = FP_PERF_SPILL;
    return status ? status : NEXT;
}

/* Whether to offer a record to the caller.  It is offered once and then read again.  Records inside a compressed one
 * are read while that one is offered. */
static int ask(struct fp_perf_reader *r, const uint8_t *p, uint64_t n, uint64_t at, int what) {
    int32_t *handled = r->inner.is_now ? &r->feed.handled_inner : &r->feed.handled;
    *handled = !*handled;
    if (!*handled) return NEXT;
    r->request = what;
    r->record = p;
    r->record_n = n;
    r->record_at = at;
    return FP_NEEDS;
}

/* A record written by perf itself. */
static int from_perf(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint64_t at, struct fp_err *err) {
    const uint32_t type = fp_u32s(p, r->swap);
    switch (type) {
        case FP_PERF_HEADER_ATTR:
        case FP_PERF_EVENT_TYPE:
        case FP_PERF_BUILD_ID:
        case FP_PERF_EVENT_UPDATE:
        case FP_PERF_FEATURE: return ask(r, p, n, at, FP_PERF_RECORD);
        case FP_PERF_FINISHED_ROUND:
            r->counts.rounds++;
            if (r->keep_marks) {
                fp_rounds_mark(&r->rounds);
                r->feed.is_due = 1;
            }
            return NEXT;
        case FP_PERF_AUXTRACE:
        case FP_PERF_TRACING_DATA: {
            const uint32_t field = type == FP_PERF_AUXTRACE ? 16 : 12;
            if (n < field) return damaged(r, at, n, "a record is too short", err);
            r->feed.skip =
                type == FP_PERF_AUXTRACE ? fp_u64s(p + 8, r->swap) : ((uint64_t)fp_u32s(p + 8, r->swap) + 7) & ~7u;
            break;
        }
        default: break;
    }
    r->counts.skipped[type < FP_PERF_TYPES ? type : FP_PERF_TYPES - 1]++;
    return NEXT;
}

static int one_record(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint64_t at, struct fp_err *err) {
    const uint32_t type = fp_u32s(p, r->swap);
    const int status = type < FP_PERF_USER ? from_kernel(r, p, n, at, err) : from_perf(r, p, n, at, err);
    r->counts.records += status == NEXT;
    return status;
}

/* ---- records in order ---- */

/* The next decompressed record.  NEXT; FP_MORE: none is complete; or as one_record. */
static int inner_record(struct fp_perf_reader *r, struct fp_err *err) {
    const size_t left = r->inner.n - r->inner.pos;
    if (!left) return FP_MORE;
    const uint8_t *p = r->inner.p + r->inner.pos;
    if (r->feed.skip) {
        const size_t n = r->feed.skip < left ? (size_t)r->feed.skip : left;
        r->inner.pos += n;
        r->feed.skip -= n;
        r->counts.bytes += n;
        return NEXT;
    }
    if (left < FP_PERF_HEAD) return FP_MORE;
    const uint32_t n = fp_u16s(p + 6, r->swap), type = fp_u32s(p, r->swap);
    if (n < FP_PERF_HEAD || type == FP_PERF_COMPRESSED1 || type == FP_PERF_COMPRESSED2) {
        if (!r->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, r->record_at, "the size of a decompressed record", FP_GOT_UNSIGNED,
                               n, "8 or more", 0);
        r->counts.bad_records++;
        r->counts.lost_bytes += left;
        r->inner.pos = r->inner.n;
        r->feed.lost = 1;
        return NEXT;
    }
    if (left < n) return FP_MORE;
    r->inner.is_now = 1;
    const int status = one_record(r, p, n, r->record_at, err);
    r->inner.is_now = 0;
    if (status == NEXT) r->inner.pos += n;
    return status;
}

/* Gives up the rest of the range. */
static int lose_rest(struct fp_perf_reader *r, struct fp_window *in, int code, const char *what, uint64_t got,
                     struct fp_err *err) {
    const uint64_t at = in->base + in->pos;
    if (!r->lenient) {
        if (code == FP_E_TRUNCATED) return fp_fail(err, code, at, what);
        return fp_fail_got(err, code, at, what, FP_GOT_UNSIGNED, got, "8 or more", 0);
    }
    r->counts.bad_records++;
    r->feed.lost = 1;
    return NEXT;
}

/* perf record prints its messages on stderr; `2>&1 |` appends them to the last record. */
static int is_message(const uint8_t *p, size_t n) {
    static const char text[] = "[ perf record:";
    return n >= sizeof text - 1 && *p == *text && !memcmp(p, text, sizeof text - 1);
}

/* The size of a compressed record; 0 until it is known. */
static uint64_t compressed2_size(const struct fp_perf_reader *r, const uint8_t *p, size_t left, uint32_t n) {
    if (left < 16) return 0;
    const uint64_t data = fp_u64s(p + 8, r->swap);
    if (data > (UINT64_C(1) << 40)) return UINT64_MAX;
    return n >= data + 16 ? n : (data + 16 + 7) & ~UINT64_C(7); /* its 16-bit size may have overflowed */
}

/* The size of a record together with the tracepoint formats that follow it; 0 until it is known, or if it exceeds the
 * limit. */
static uint64_t tracing_size(const struct fp_perf_reader *r, const uint8_t *p, size_t left, uint32_t n) {
    enum { MOST = 16 << 20 };
    if (left < 12 || n < 12 || n > 16) return 0;
    const uint64_t size = ((uint64_t)fp_u32s(p + 8, r->swap) + 7) & ~7u;
    return size > MOST ? 0 : n + size;
}

/* Puts the samples at the front of the window into their round: nearly all records.  It leaves those that need care to
 * outer_record.  0 or FP_NEEDS. */
static int take_samples(struct fp_perf_reader *r, struct fp_window *in) {
    if (r->feed.skip || r->feed.lost || r->inner.n != r->inner.pos || !r->events.n || !r->events.list[0].id_all)
        return 0;
    while (in->n - in->pos >= FP_PERF_HEAD) {
        const uint8_t *p = in->p + in->pos;
        const uint32_t n = fp_u16s(p + 6, r->swap);
        if (fp_u32s(p, r->swap) != FP_PERF_SAMPLE || n < FP_PERF_HEAD || in->n - in->pos < n) return 0;
        const uint32_t event = fp_perf_find_event(r, p, n);
        if (event == FP_NO_ID || fp_perf_check(r, &r->events.list[event], p, n)) return 0;
        const uint64_t time = fp_perf_time(r, &r->events.list[event], p, n);
        if (!time || time == UINT64_MAX) return 0;
        const int status = fp_rounds_put(&r->rounds, time, event, p, n);
        r->request = FP_PERF_SPILL;
        if (status) return status;
        in->pos += n;
        r->counts.records++;
    }
    return 0;
}

/* Passes over the bytes of a trace, or of all that is lost.  NEXT, FP_MORE, FP_DONE or an error. */
static int pass_over(struct fp_perf_reader *r, struct fp_window *in, struct fp_err *err) {
    const size_t left = in->n - in->pos, n = r->feed.lost || r->feed.skip > left ? left : (size_t)r->feed.skip;
    in->pos += n;
    if (r->feed.lost) {
        r->counts.lost_bytes += n;
    } else {
        r->feed.skip -= n;
        r->counts.bytes += n;
    }
    if (n) return NEXT;
    if (!in->eof) return FP_MORE;
    if (!r->feed.skip) return FP_DONE;
    const int status = lose_rest(r, in, FP_E_TRUNCATED, "the input ends inside a trace", 0, err);
    r->feed.skip = 0;
    return status;
}

/* The next record in the window: NEXT, FP_MORE, FP_DONE at the end of the range, or as one_record. */
static int outer_record(struct fp_perf_reader *r, struct fp_window *in, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    const size_t left = in->n - in->pos;
    if (r->feed.skip || r->feed.lost) return pass_over(r, in, err);
    if (!left && in->eof) {
        if (r->inner.n == r->inner.pos) return FP_DONE;
        r->counts.lost_bytes += r->inner.n - r->inner.pos;
        r->inner.n = r->inner.pos = 0;
        return lose_rest(r, in, FP_E_TRUNCATED, "the compressed records end inside a record", 0, err);
    }
    if (is_message(p, left)) {
        if (!in->eof) return FP_MORE;
        r->counts.messages++;
        in->pos = in->n;
        return NEXT;
    }
    uint64_t n = left < FP_PERF_HEAD ? FP_PERF_HEAD : fp_u16s(p + 6, r->swap);
    const uint32_t type = left < FP_PERF_HEAD ? 0 : fp_u32s(p, r->swap);
    const uint32_t head = type == FP_PERF_COMPRESSED2 ? 16 : FP_PERF_HEAD;
    if (type == FP_PERF_COMPRESSED2 && !(n = compressed2_size(r, p, left, (uint32_t)n))) n = 16;
    const uint64_t tracing = type == FP_PERF_TRACING_DATA ? tracing_size(r, p, left, (uint32_t)n) : 0;
    if (tracing) n = tracing;
    if (n < FP_PERF_HEAD) return lose_rest(r, in, FP_E_MALFORMED, "the size of a record", n, err);
    if (left < n || left < head) {
        if (!in->eof) return FP_MORE;
        return lose_rest(r, in, FP_E_TRUNCATED, "the input ends inside a record", 0, err);
    }
    int status;
    if (type == FP_PERF_COMPRESSED1 || type == FP_PERF_COMPRESSED2) {
        r->record_skip = head;
        status = ask(r, p, head == 16 ? 16 + fp_u64s(p + 8, r->swap) : n, in->base + in->pos, FP_PERF_COMPRESSED);
        r->counts.records += status == NEXT;
    } else if (tracing) {
        status = ask(r, p, n, in->base + in->pos, FP_PERF_RECORD);
        r->counts.records += status == NEXT;
    } else {
        status = one_record(r, p, (uint32_t)n, in->base + in->pos, err);
    }
    if (status == NEXT) in->pos += (size_t)n;
    return status;
}

/* Delivers all records that are due.  0, FP_FULL, FP_NEEDS or an error. */
static int deliver_due(struct fp_perf_reader *r, struct fp_batch *out, struct fp_err *err) {
    for (;;) {
        int status = deliver_now(r, out, err);
        if (status) return status;
        r->deferred.is_held = r->deferred.n_ready != 0;
        if (r->deferred.n_ready) {
            const struct fp_perf_deferred d = fp_perf_take_ready(r);
            deliver(r, d.p, d.n, d.event);
            continue;
        }
        if (!r->feed.is_due) return 0;
        status = fp_rounds_next(&r->rounds);
        if (status == FP_DONE) {
            r->feed.is_due = 0;
            if (r->feed.ending) fp_perf_complete_all(r);
            continue;
        }
        r->request = FP_PERF_SPILL;
        if (status == FP_NEEDS) return status;
        if (r->dumps.next_code <= r->rounds.time) fp_perf_map_codes(r, r->rounds.time);
        deliver(r, r->rounds.p, r->rounds.n, r->rounds.tag);
    }
}

int fp_perf_feed(struct fp_perf_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    int status;
    for (;;) {
        if ((status = deliver_due(r, out, err)) || (status = take_samples(r, in))) return status;
        status = inner_record(r, err);
        if (status == FP_MORE) status = outer_record(r, in, err);
        if (status == FP_DONE && r->last && !r->feed.ending) {
            fp_rounds_end(&r->rounds);
            r->feed.ending = r->feed.is_due = 1;
            status = NEXT;
        }
        if (status == FP_DONE && r->feed.ending && fp_perf_by_branches(r)) FP_TRY(fp_perf_branch_rows(r, out));
        if (status != NEXT) return status;
    }
}
