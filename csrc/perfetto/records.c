#include "perfetto/read_private.h"

/* ---- records ---- */

/* The head of a record that waits for room in `rounds`. */
struct waiting {
    int64_t time;
    uint32_t track, n;
};

enum { SHORT = 8, LONG = sizeof(struct fp_perfetto_record) }; /* without and with `extra` */

/* Whether records of this kind are of the data that becomes rows. */
static int is_wanted(uint32_t data, uint32_t op) {
    switch (data) {
        case FP_PERFETTO_CALLS: return op < FP_PO_SAMPLE;
        case FP_PERFETTO_STATES: return op > FP_PO_SAMPLE;
        case FP_PERFETTO_SAMPLES: return op == FP_PO_SAMPLE;
        case FP_PERFETTO_OFF_CPU: return op <= FP_PO_COMPLETE || op > FP_PO_SAMPLE;
        default: return 0;
    }
}

void fp_perfetto_put_record(struct fp_perfetto_read *r, int64_t time, uint32_t track, uint32_t op, uint32_t id,
                            int64_t extra) {
    const struct fp_perfetto_record record = {id, op, extra};
    const uint32_t n = extra ? LONG : SHORT;
    if (r->feed.surveying || !is_wanted(r->data, op)) return;
    if (!r->feed.pending.n) {
        const int status = fp_rounds_put(&r->rounds, (uint64_t)time, track, (const uint8_t *)&record, n);
        if (status != FP_NEEDS) return;
        r->feed.owes = FP_PERFETTO_SPILL;
    }
    const struct waiting head = {time, track, n};
    fp_buf_put(&r->feed.pending, &head, sizeof head);
    fp_buf_put(&r->feed.pending, &record, n);
}

int fp_perfetto_put_pending(struct fp_perfetto_read *r) {
    if (FP_UNLIKELY(r->feed.owes)) {
        r->asks = (uint32_t)r->feed.owes;
        r->feed.owes = 0;
        return FP_NEEDS;
    }
    while (FP_UNLIKELY(r->feed.pending_pos < r->feed.pending.n)) {
        const uint8_t *p = r->feed.pending.p + r->feed.pending_pos;
        struct waiting head;
        memcpy(&head, p, sizeof head);
        const int status = fp_rounds_put(&r->rounds, (uint64_t)head.time, head.track, p + sizeof head, head.n);
        if (status == FP_NEEDS) r->asks = FP_PERFETTO_SPILL;
        if (status) return status;
        r->feed.pending_pos += sizeof head + head.n;
    }
    r->feed.pending.n = r->feed.pending_pos = 0;
    return 0;
}

/* ---- threads ---- */

void fp_perfetto_lane_room(struct fp_perfetto_place *place, uint32_t lane) {
    fp_array_zeroed(&place->lanes, &place->cap_lanes, (uint64_t)lane + 1, sizeof *place->lanes);
    if (lane >= place->n_lanes) place->n_lanes = lane + 1;
}

int fp_perfetto_thread_of(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, uint32_t *thread) {
    const struct fp_perfetto_place *p = &r->places[place];
    if (lane < p->n_lanes && p->lanes[lane].thread) {
        *thread = p->lanes[lane].thread - 1;
        return 1;
    }
    r->requested = place;
    r->requested_lane = lane;
    r->asks = FP_PERFETTO_THREAD;
    return 0;
}

int fp_perfetto_set_thread(struct fp_perfetto_read *r, uint32_t thread) {
    struct fp_perfetto_place *place = &r->places[r->requested];
    fp_perfetto_lane_room(place, r->requested_lane);
    place->lanes[r->requested_lane].thread = thread + 1;
    return 0;
}
