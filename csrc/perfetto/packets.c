#include "perfetto/read_private.h"

struct fp_perfetto_read *fp_perfetto_read_new(struct fp_model *model, int lenient) {
    struct fp_perfetto_read *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->data = FP_PERFETTO_CALLS;
    fp_table_init(&r->seqs.ids, 1);
    fp_table_init(&r->tracks.keys, 5);
    fp_table_init(&r->tracks.place_keys, 6);
    fp_table_init(&r->tracks.name_keys, 4);
    fp_table_init(&r->tracks.sum_keys, 2);
    fp_perfetto_clocks_new(r);
    return r;
}

void fp_perfetto_read_free(struct fp_perfetto_read *r) {
    fp_rounds_clear(&r->rounds);
    fp_perfetto_graphs_free(r);
    fp_perfetto_seqs_free(r);
    fp_perfetto_places_free(r);
    fp_perfetto_clocks_free(r->seqs.clocks);
    fp_perfetto_stacks_free(r->calls.stacks);
    fp_key_sums_clear(&r->call_stacks);
    fp_key_sums_clear(&r->chains);
    fp_perfetto_sched_free(r);
    fp_perfetto_counters_free(r);
    FP_CLEAR_TABLES(&r->seqs.ids, &r->tracks.keys, &r->tracks.place_keys, &r->tracks.name_keys);
    FP_FREE_BUFFERS(&r->feed.inner, &r->feed.pending, &r->feed.scratch, &r->text);
    FP_FREE(r->tracks.list, r->named, r->calls.function_of, r);
}

/* Whether the survey may stop: it has seen a call. */
static int is_enough(const struct fp_perfetto_read *r) {
    return r->feed.surveying && r->feed.until_call && r->counts[FP_PERFETTO_N_CALLS];
}

int fp_perfetto_restart(struct fp_perfetto_read *r) {
    const uint64_t most = r->rounds.most;
    fp_rounds_clear(&r->rounds);
    r->rounds.most = most;
    fp_perfetto_graphs_free(r);
    fp_perfetto_seqs_free(r);
    fp_perfetto_places_free(r);
    fp_perfetto_sched_free(r);
    fp_perfetto_counters_restart(r);
    if (is_enough(r)) { /* not all clocks are known */
        fp_perfetto_clocks_free(r->seqs.clocks);
        r->seqs.clocks = NULL;
        fp_perfetto_clocks_new(r);
    } else {
        fp_perfetto_clocks_restart(r->seqs.clocks);
    }
    fp_table_empty(&r->seqs.ids);
    fp_table_empty(&r->tracks.place_keys);
    memset(r->counts, 0, sizeof r->counts);
    r->feed.inner.n = r->feed.inner_pos = r->feed.pending.n = r->feed.pending_pos = 0;
    r->text.n = 0;
    r->feed.owes = 0;
    r->feed.in_inner = r->feed.inner_over = r->feed.over = r->feed.planned = r->feed.has_head = r->feed.surveying =
        r->again = r->feed.lost = 0;
    for (uint32_t i = 0; i < r->tracks.keys.n && i < r->tracks.cap; i++)
        r->tracks.list[i].lane = r->tracks.list[i].place = 0;
    return 0;
}

/* ---- one packet ---- */

/* The fields of a packet that are numbers. */
#define NUMBERS                                                                                                \
    (1u << FP_PF_TIME | 1u << FP_PF_SEQUENCE | 1u << FP_PF_FLAGS | 1u << FP_PF_CLEARED | 1u << FP_PF_DROPPED | \
     1u << FP_PF_CLOCK_ID | 1u << FP_PF_MACHINE)

/* Which field it is: FP_PF_NONE or FP_PF_OTHER if it is not read; FP_PF_FIELDS if its wire type is wrong. */
static enum fp_perfetto_field field_of(const struct fp_wire_field *f) {
    static const uint8_t fields[] = {
        [1] = FP_PF_FTRACE,      [2] = FP_PF_PROCESS_TREE, [6] = FP_PF_CLOCKS,      [8] = FP_PF_TIME,
        [10] = FP_PF_SEQUENCE,   [11] = FP_PF_EVENT,       [12] = FP_PF_INTERNED,   [13] = FP_PF_FLAGS,
        [35] = FP_PF_STATS,      [37] = FP_PF_HEAP,        [41] = FP_PF_CLEARED,    [42] = FP_PF_DROPPED,
        [43] = FP_PF_PROCESS,    [44] = FP_PF_THREAD,      [50] = FP_PF_COMPRESSED, [54] = FP_PF_STREAMING,
        [56] = FP_PF_HEAP_GRAPH, [58] = FP_PF_CLOCK_ID,    [59] = FP_PF_DEFAULTS,   [60] = FP_PF_TRACK,
        [61] = FP_PF_SYMBOLS,    [66] = FP_PF_SAMPLE,      [76] = FP_PF_FRAME,      [98] = FP_PF_MACHINE,
        [117] = FP_PF_TASK,      [133] = FP_PF_ZSTD};
    const uint32_t field = f->number < sizeof fields ? fields[f->number] : FP_PF_NONE;
    const int is_marker = f->number == 36 || f->number == 89;
    if (field == FP_PF_NONE) return f->wire == FP_WIRE_BYTES && !is_marker ? FP_PF_OTHER : FP_PF_NONE;
    const uint32_t wire = NUMBERS >> field & 1 ? FP_WIRE_VARINT : FP_WIRE_BYTES;
    return f->wire == wire ? (enum fp_perfetto_field)field : FP_PF_FIELDS;
}

/* 0, FP_E_MALFORMED, or 1 for a wrong wire type. */
static int take_fields(struct fp_perfetto_packet *k, struct fp_wire m) {
    struct fp_wire_field f;
    int status;
    k->has = 0;
    while ((status = fp_perfetto_next(&m, &f)) > 0) {
        const enum fp_perfetto_field field = field_of(&f);
        if (FP_UNLIKELY(field == FP_PF_FIELDS)) return 1;
        k->has |= 1u << field;
        if (f.wire == FP_WIRE_VARINT)
            k->number[field] = f.v;
        else
            k->message[field] = fp_wire_inside(&f);
    }
    return status ? FP_E_MALFORMED : 0;
}

/* Updates the state of the packet's sequence, in trace processor's order.  1: skip the rest of the packet. */
static int take_state(struct fp_perfetto_read *r, struct fp_perfetto_packet *k) {
    const int has_sequence = fp_perfetto_has(k, FP_PF_SEQUENCE);
    const uint64_t number = has_sequence ? k->number[FP_PF_SEQUENCE] : 0;
    const uint64_t flags = fp_perfetto_has(k, FP_PF_FLAGS) ? k->number[FP_PF_FLAGS] : 0;
    const int dropped = fp_perfetto_has(k, FP_PF_DROPPED) && k->number[FP_PF_DROPPED];
    int status;
    if (number > UINT32_MAX) return FP_E_MALFORMED;
    struct fp_perfetto_seq *s = k->seq = fp_perfetto_seq_of(r, (uint32_t)number);
    r->counts[FP_PERFETTO_N_DROPPED] += dropped && s->seen;
    s->seen = 1;
    if ((flags & 1) || (fp_perfetto_has(k, FP_PF_CLEARED) && k->number[FP_PF_CLEARED])) {
        if (has_sequence) fp_perfetto_seq_clear(s);
    } else if (dropped) {
        s->valid = 0;
    }
    if (has_sequence && fp_perfetto_has(k, FP_PF_DEFAULTS) &&
        (status = fp_perfetto_defaults(r, s, k->message[FP_PF_DEFAULTS])))
        return status;
    if (has_sequence && s->valid && fp_perfetto_has(k, FP_PF_INTERNED) &&
        (status = fp_perfetto_interned(r, s, k->message[FP_PF_INTERNED])))
        return status;
    if (fp_perfetto_has(k, FP_PF_CLOCKS)) {
        status = fp_perfetto_snapshot(r, s->number, k->message[FP_PF_CLOCKS]);
        return status ? status : 1;
    }
    if ((flags & 2) && !s->valid) {
        r->counts[FP_PERFETTO_N_STATELESS]++;
        return 1;
    }
    return 0;
}

static int take_time(struct fp_perfetto_read *r, struct fp_perfetto_packet *k) {
    k->has_time = fp_perfetto_has(k, FP_PF_TIME);
    if (!k->has_time) return 0;
    uint64_t clock = fp_perfetto_has(k, FP_PF_CLOCK_ID) ? k->number[FP_PF_CLOCK_ID] : 0;
    if (!clock) clock = k->seq->clock_id;
    k->time = (int64_t)k->number[FP_PF_TIME];
    if (!clock) return 0;
    const int found =
        clock > UINT32_MAX ? 0 : fp_perfetto_time(r, k->seq->number, (uint32_t)clock, (uint64_t)k->time, &k->time);
    k->has_time = found > 0;
    return found < 0 ? found : 0;
}

static void count_losses(struct fp_perfetto_read *r, struct fp_wire stats) {
    static const struct fp_wire_schema of_stats = {.kinds = " B"};
    static const struct fp_wire_schema of_buffer = {.kinds = {[3] = 'V', [18] = 'V', 'V'}};
    struct fp_wire_field f;
    while (fp_wire_read(&stats, &of_stats, NULL, &f, NULL) > 0)
        for (struct fp_wire m = fp_wire_inside(&f); fp_wire_read(&m, &of_buffer, NULL, &f, NULL) > 0;)
            r->counts[FP_PERFETTO_N_LOST_CHUNKS] += f.v;
}

static int take_descriptions(struct fp_perfetto_read *r, struct fp_perfetto_packet *k) {
    int64_t pid, tid;
    if (fp_perfetto_has(k, FP_PF_TRACK)) FP_TRY(fp_perfetto_descriptor(r, k));
    if (fp_perfetto_has(k, FP_PF_THREAD) && k->seq->valid)
        FP_TRY(fp_perfetto_thread_descriptor(r, k, k->message[FP_PF_THREAD], &pid, &tid));
    if (fp_perfetto_has(k, FP_PF_PROCESS))
        FP_TRY(fp_perfetto_process_descriptor(r, k, k->message[FP_PF_PROCESS], &pid));
    if (fp_perfetto_has(k, FP_PF_PROCESS_TREE)) FP_TRY(fp_perfetto_process_tree(r, k));
    if (fp_perfetto_has(k, FP_PF_STATS)) count_losses(r, k->message[FP_PF_STATS]);
    return 0;
}

/* Reads a parsed packet.  0 or FP_E_MALFORMED. */
static int take_packet(struct fp_perfetto_read *r, struct fp_perfetto_packet *k) {
    r->counts[FP_PERFETTO_N_PACKETS]++;
    const int status = take_state(r, k);
    if (status) return status < 0 ? status : 0;
    FP_TRY(take_time(r, k));
    if (FP_LIKELY(fp_perfetto_has(k, FP_PF_EVENT))) FP_TRY(fp_perfetto_event(r, k));
    if (!(k->has & ~(1u << FP_PF_INTERNED | 1u << FP_PF_FLAGS | 1u << FP_PF_SEQUENCE | 1u << FP_PF_TIME |
                     1u << FP_PF_EVENT | 1u << FP_PF_NONE)))
        return 0;
    FP_TRY(take_descriptions(r, k));
    if (fp_perfetto_has(k, FP_PF_FTRACE)) FP_TRY(fp_perfetto_ftrace(r, k));
    if (fp_perfetto_has(k, FP_PF_FRAME)) FP_TRY(fp_perfetto_frame(r, k));
    if (fp_perfetto_has(k, FP_PF_TASK)) FP_TRY(fp_perfetto_task(r, k));
    r->counts[FP_PERFETTO_N_OTHER] += (uint64_t)fp_perfetto_has(k, FP_PF_OTHER);
    r->counts[FP_PERFETTO_N_ZSTD] += (uint64_t)fp_perfetto_has(k, FP_PF_ZSTD);
    return fp_perfetto_samples(r, k);
}

/* ---- the trace ---- */

/* Finds the next field in [p, end).  Returns its size, 0 if it is incomplete, or FP_WIRE_BAD.  *is_packet: not a field
 * to skip. */
static int64_t next_packet(const uint8_t *p, const uint8_t *end, struct fp_wire *message, int *is_packet) {
    struct fp_wire_field f;
    const int used = fp_wire_read_head(p, end, &f);
    if (used <= 0) return used;
    if (f.n > (size_t)(end - f.p)) return 0;
    *message = fp_wire_inside(&f);
    *is_packet = f.number == 1 && f.wire == FP_WIRE_BYTES;
    return f.p + f.n - p;
}

static int damaged(struct fp_perfetto_read *r, int status, uint64_t at, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, status, at, what);
    r->counts[FP_PERFETTO_N_BAD_PACKETS]++;
    return FP_DONE;
}

/* Reads a packet.  FP_DONE, FP_NEEDS for a compressed packet (skip it after the packets in it), or an error. */
static int read_packet(struct fp_perfetto_read *r, struct fp_wire message, uint64_t at, struct fp_err *err) {
    struct fp_perfetto_packet k;
    k.at = at;
    int status = take_fields(&k, message);
    if (status > 0) return damaged(r, FP_E_MALFORMED, at, "a field of a packet has the wrong wire type", err);
    if (status) return damaged(r, status, at, "a packet is not a protocol buffer", err);
    if (FP_UNLIKELY(fp_perfetto_has(&k, FP_PF_COMPRESSED))) {
        if (r->feed.in_inner)
            return damaged(r, FP_E_MALFORMED, at, "a compressed packet contains a compressed packet", err);
        const struct fp_wire *z = &k.message[FP_PF_COMPRESSED];
        r->compressed = z->p;
        r->n_compressed = (size_t)(z->end - z->p);
        r->compressed_at = at;
        r->feed.in_inner = 1;
        r->feed.inner_over = 0;
        r->feed.inner.n = r->feed.inner_pos = 0;
        return FP_DONE;
    }
    status = take_packet(r, &k);
    return status ? damaged(r, status, at, "a packet is malformed", err) : FP_DONE;
}

int fp_perfetto_give(struct fp_perfetto_read *r, const uint8_t *p, size_t n, int last) {
    const size_t left = r->feed.inner.n - r->feed.inner_pos;
    if (r->feed.inner_pos && left) memmove(r->feed.inner.p, r->feed.inner.p + r->feed.inner_pos, left);
    r->feed.inner.n = left;
    r->feed.inner_pos = 0;
    r->feed.inner_over = last;
    return n ? fp_buf_put(&r->feed.inner, p, n) : 0;
}

/* Reads the packets in a compressed one.  FP_DONE at their end. */
static int read_inner(struct fp_perfetto_read *r, struct fp_err *err) {
    for (;;) {
        struct fp_wire message;
        int is_packet, status = fp_perfetto_put_pending(r);
        if (status) return status;
        if (is_enough(r)) return FP_DONE;
        const int64_t used = r->feed.inner.n > r->feed.inner_pos
                                 ? next_packet(r->feed.inner.p + r->feed.inner_pos, r->feed.inner.p + r->feed.inner.n,
                                               &message, &is_packet)
                                 : 0;
        if (used > 0) {
            r->feed.inner_pos += (size_t)used;
            status = is_packet ? read_packet(r, message, r->compressed_at, err) : FP_DONE;
            if (status) return status;
            continue;
        }
        if (!used && !r->feed.inner_over) {
            r->asks = FP_PERFETTO_INFLATE;
            return FP_NEEDS;
        }
        r->feed.in_inner = 0;
        if (r->feed.inner.n == r->feed.inner_pos) return FP_DONE;
        return damaged(r, FP_E_MALFORMED, r->compressed_at, "a compressed packet ends within a packet", err);
    }
}

/* Handles an incomplete or malformed packet at in->pos.  FP_MORE, FP_DONE or an error. */
static int end_of_window(struct fp_perfetto_read *r, int64_t used, struct fp_window *in, struct fp_err *err) {
    const uint64_t at = in->base + in->pos;
    if (!used && !in->eof) return FP_MORE;
    if (used || in->pos < in->n) {
        if (!r->lenient)
            return used ? fp_fail(err, FP_E_MALFORMED, at, "the tag of a packet is malformed")
                        : fp_fail(err, FP_E_TRUNCATED, at, "the trace ends within a packet");
        r->counts[FP_PERFETTO_N_BAD_BYTES] += in->n - in->pos;
        in->pos = in->n;
        if (!in->eof) { /* the rest of the trace is unreadable */
            r->feed.lost = 1;
            return FP_MORE;
        }
    }
    return FP_DONE;
}

/* Reads all packets.  FP_MORE, FP_NEEDS, FP_DONE or an error. */
static int read_packets(struct fp_perfetto_read *r, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        struct fp_wire message;
        int is_packet, status = fp_perfetto_put_pending(r);
        if (status) return status;
        if (is_enough(r)) return FP_DONE;
        if (FP_UNLIKELY(r->feed.lost)) {
            r->counts[FP_PERFETTO_N_BAD_BYTES] += in->n - in->pos;
            in->pos = in->n;
        }
        const int64_t used = in->pos < in->n ? next_packet(in->p + in->pos, in->p + in->n, &message, &is_packet) : 0;
        if (used <= 0) return end_of_window(r, used, in, err);
        if (!r->feed.in_inner && is_packet) {
            status = read_packet(r, message, in->base + in->pos, err);
            if (status) return status;
        }
        if (r->feed.in_inner && (status = read_inner(r, err))) return status;
        in->pos += (size_t)used;
    }
}

int fp_perfetto_survey(struct fp_perfetto_read *r, struct fp_window *in, int until_call, struct fp_err *err) {
    r->feed.surveying = 1;
    r->feed.until_call = until_call;
    return read_packets(r, in, err);
}

int fp_perfetto_feed(struct fp_perfetto_read *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    if (!r->feed.over) {
        FP_TRY(read_packets(r, in, err));
        r->feed.over = 1;
        fp_rounds_end(&r->rounds);
        r->again = fp_perfetto_known_later(r);
        if (r->again || r->data == FP_PERFETTO_V8) return FP_DONE;
    }
    return fp_perfetto_rows(r, out, err);
}
