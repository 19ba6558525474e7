#include "perfetto/read_private.h"

static struct fp_perfetto_record record_of(const struct fp_rounds *rounds) {
    struct fp_perfetto_record record;
    memcpy(&record, rounds->p, offsetof(struct fp_perfetto_record, extra));
    record.extra =
        rounds->n < sizeof record ? 0 : (int64_t)fp_u64(rounds->p + offsetof(struct fp_perfetto_record, extra));
    return record;
}

/* ---- lanes ---- */

/* Assigns a lane of its place to a track that opens a call; a thread has one lane. */
static uint32_t take_lane(struct fp_perfetto_place *place, struct fp_perfetto_track *track) {
    if (!place->is_lanes) {
        fp_perfetto_lane_room(place, 0);
        return 0;
    }
    if (track->lane) return track->lane - 1;
    const uint32_t lane = place->n_free ? place->free_lanes[place->n_free - 1] : place->n_lanes;
    fp_perfetto_lane_room(place, lane);
    place->n_free -= place->n_free > 0;
    track->lane = lane + 1;
    return lane;
}

/* Frees the lane of a track whose last call has ended. */
static void give_lane(struct fp_perfetto_place *place, struct fp_perfetto_track *track) {
    if (!place->is_lanes || !track->lane) return;
    FP_PUSH(place->free_lanes, place->n_free, place->cap_free) = track->lane - 1;
    track->lane = 0;
}

/* ---- rows of a timeline ---- */

/* Ends complete calls of a lane that end up to a time. */
static int end_complete(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, int64_t time, struct fp_batch *out) {
    const struct fp_perfetto_place *p = &r->places[place];
    if (lane >= p->n_lanes) return FP_DONE;
    for (const struct fp_perfetto_lane *l = &p->lanes[lane]; l->n && l->calls[l->n - 1].end <= time;)
        FP_TRY(fp_perfetto_end_call(r, place, lane, l->calls[l->n - 1].end, out));
    return FP_DONE;
}

/* The number of calls that an end closes: the innermost one that was begun, or that has this name, and all in it.  Very
 * deep calls are not searched. */
static uint32_t closed_by(const struct fp_perfetto_read *r, const struct fp_perfetto_lane *l, uint32_t name) {
    enum { MAX_SEARCHED = 4096 };
    for (uint32_t k = 1; k <= l->n && k <= MAX_SEARCHED; k++) {
        const struct fp_perfetto_call *call = &l->calls[l->n - k];
        if (call->end != INT64_MAX) continue;
        if (!name) return k;
        const uint32_t own = fp_table_row(&r->model->functions, call->function)[FP_FUNCTION_NAME];
        if (own == name || own == r->calls.nameless) return k;
    }
    return 0;
}

static int put_end(struct fp_perfetto_read *r, uint32_t place, struct fp_perfetto_track *track, uint32_t name,
                   struct fp_batch *out) {
    struct fp_perfetto_place *p = &r->places[place];
    if (p->is_lanes && !track->lane) {
        r->counts[FP_PERFETTO_N_ORPHANS]++;
        return FP_DONE;
    }
    const uint32_t lane = take_lane(p, track);
    struct fp_perfetto_lane *l = &p->lanes[lane];
    if (!r->calls.to_close) {
        const uint32_t n = closed_by(r, l, name);
        r->counts[FP_PERFETTO_N_ORPHANS] += !n;
        r->counts[FP_PERFETTO_N_UNWOUND] += n > 1 ? n - 1 : 0;
        r->calls.to_close = n;
    }
    for (; r->calls.to_close; r->calls.to_close--)
        FP_TRY(fp_perfetto_end_call(r, place, lane, (int64_t)r->rounds.time, out));
    if (!l->n) give_lane(p, track);
    return FP_DONE;
}

/* Puts a complete event into its thread, or into the first lane in which it nests. */
static int put_complete(struct fp_perfetto_read *r, uint32_t place, struct fp_perfetto_track *track, uint32_t function,
                        int64_t duration, struct fp_batch *out) {
    enum { MOST_LANES = 1024 };
    const int64_t now = (int64_t)r->rounds.time;
    int64_t end;
    uint32_t lane = take_lane(&r->places[place], track);
    int status;
    if (__builtin_add_overflow(now, duration, &end)) end = INT64_MAX - 1;
    for (uint32_t tried = 0;; tried++) {
        struct fp_perfetto_place *p = &r->places[place];
        FP_TRY(end_complete(r, place, lane, now, out));
        const struct fp_perfetto_lane *l = &p->lanes[lane];
        const int fits = lane >= p->n_lanes || !l->n || end <= l->calls[l->n - 1].end;
        if (fits || p->is_lanes || tried == MOST_LANES) {
            if (!fits) {
                r->counts[FP_PERFETTO_N_CUT]++;
                end = l->calls[l->n - 1].end;
            }
            status = fp_perfetto_begin_call(r, place, lane, FP_OP_ENTER, function, end, out);
            r->counts[FP_PERFETTO_N_LANES] += status == FP_DONE && tried;
            return status;
        }
        lane = tried + 1;
    }
}

static int put_instant(struct fp_perfetto_read *r, uint32_t place, const struct fp_perfetto_track *track,
                       const struct fp_perfetto_record *record, struct fp_batch *out) {
    const uint32_t lane = track->lane ? track->lane - 1 : 0;
    uint32_t thread;
    uint64_t slice;
    size_t n;
    if (out->n == out->cap) return FP_FULL;
    if (!fp_perfetto_thread_of(r, place, lane, &thread)) return FP_NEEDS;
    const uint8_t *p = fp_string(&r->model->strings, record->id, &n);
    const int status = fp_batch_payload(out, p, n, &slice);
    if (status) return out->n ? FP_FULL : fp_escape();
    const uint32_t type = record->extra ? (uint32_t)(record->extra - 1) : 0;
    out->aux[fp_perfetto_add_row(r, out, record->extra ? FP_OP_TYPED : FP_OP_CUSTOM, r->rounds.time, thread, type)] =
        slice;
    return FP_DONE;
}

/* Converts a record to rows.  FP_DONE; FP_FULL or FP_NEEDS: call again with the same record. */
static int put_call_record(struct fp_perfetto_read *r, struct fp_batch *out) {
    const struct fp_perfetto_record record = record_of(&r->rounds);
    struct fp_perfetto_track *track = &r->tracks.list[r->rounds.tag];
    const uint32_t place = track->place - 1;
    uint32_t lane, thread;
    lane = r->places[place].is_lanes ? track->lane - 1 : 0;
    if (record.op != FP_PO_ARGUMENT) FP_TRY(end_complete(r, place, lane, (int64_t)r->rounds.time, out));
    switch (record.op) {
        case FP_PO_BEGIN:
        case FP_PO_BEGIN_ARGS:
            lane = take_lane(&r->places[place], track);
            return fp_perfetto_begin_call(r, place, lane, record.op == FP_PO_BEGIN ? FP_OP_ENTER : FP_OP_ENTER_ARGS,
                                          record.id, INT64_MAX, out);
        case FP_PO_END: return put_end(r, place, track, record.id, out);
        case FP_PO_COMPLETE: return put_complete(r, place, track, record.id, record.extra, out);
        case FP_PO_ARGUMENT:
            if (out->n == out->cap) return FP_FULL;
            if (!fp_perfetto_thread_of(r, place, lane, &thread)) return FP_NEEDS;
            out->aux[fp_perfetto_add_row(r, out, FP_OP_ARGUMENT, r->rounds.time, thread, 0)] = (uint64_t)record.extra;
            return FP_DONE;
        default: return put_instant(r, place, track, &record, out);
    }
}

/* Ends all open complete calls.  FP_DONE, FP_FULL or FP_NEEDS. */
static int end_all(struct fp_perfetto_read *r, struct fp_batch *out) {
    for (uint32_t place = 1; place < r->tracks.n_places; place++)
        for (uint32_t lane = 0; lane < r->places[place].n_lanes; lane++)
            FP_TRY(end_complete(r, place, lane, INT64_MAX - 1, out));
    return FP_DONE;
}

/* Converts the next record to rows.  FP_DONE; FP_FULL or FP_NEEDS: call again. */
static int put_any_record(struct fp_perfetto_read *r, struct fp_batch *out) {
    const struct fp_perfetto_record record = record_of(&r->rounds);
    if (record.op == FP_PO_COUNTER) return fp_perfetto_counter_row(r, &record, out);
    if (record.op == FP_PO_SAMPLE)
        return fp_perfetto_put_sample_row(r, r->rounds.tag, fp_perfetto_stack(r, record.id), record.extra, out);
    return record.op > FP_PO_SAMPLE ? fp_perfetto_put_sched(r, &record, out) : put_call_record(r, out);
}

int fp_perfetto_rows(struct fp_perfetto_read *r, struct fp_batch *out, struct fp_err *err) {
    int status;
    if (!r->feed.planned) {
        fp_perfetto_plan(r);
        status = fp_perfetto_end_graphs(r);
        if (status) return fp_fail(err, status, 0, "the sizes of a heap's objects exceed 63 bits");
        r->feed.planned = 1;
    }
    if (r->data == FP_PERFETTO_HEAP || r->data == FP_PERFETTO_OBJECTS) {
        status = fp_perfetto_heap_rows(r, out);
        return status;
    }
    for (;;) {
        if (!r->feed.has_head) {
            status = fp_rounds_next(&r->rounds);
            if (status == FP_NEEDS) r->asks = FP_PERFETTO_SPILL;
            if (status == FP_DONE) break;
            if (status != FP_FULL) return status;
            r->feed.has_head = 1;
        }
        FP_TRY(put_any_record(r, out));
        r->feed.has_head = 0;
    }
    if (r->data == FP_PERFETTO_OFF_CPU) fp_perfetto_count_waits(r);
    return end_all(r, out);
}
