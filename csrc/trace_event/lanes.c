#include "trace_event/read_private.h"

static int64_t end_of(const struct fp_trace_event_lane *lane) {
    return lane->n ? lane->calls[lane->n - 1].end : INT64_MAX;
}

static void update(struct fp_trace_event_lanes *l, uint32_t node) {
    const struct fp_trace_event_ends *a = &l->ends[2 * node], *b = &l->ends[2 * node + 1];
    l->ends[node].least = a->least < b->least ? a->least : b->least;
    l->ends[node].most = a->most > b->most ? a->most : b->most;
}

static void changed(struct fp_trace_event_lanes *l, uint32_t lane) {
    const int64_t end = end_of(&l->lanes[lane]);
    uint32_t node = l->cap + lane;
    l->ends[node] = (struct fp_trace_event_ends){end, end};
    while (node >>= 1) update(l, node);
}

/* Doubles the room for lanes. */
static void grow(struct fp_trace_event_lanes *l) {
    const uint32_t cap = l->cap ? 2 * l->cap : 1;
    if (cap > UINT32_MAX / 4) fp_escape();
    struct fp_trace_event_lane *const lanes = fp_have(realloc(l->lanes, cap * sizeof *lanes));
    memset(lanes + l->cap, 0, (cap - l->cap) * sizeof *lanes);
    l->lanes = lanes;
    struct fp_trace_event_ends *const ends = fp_have(realloc(l->ends, 2 * (size_t)cap * sizeof *ends));
    l->ends = ends;
    l->cap = cap;
    for (uint32_t i = 0; i < cap; i++) {
        const int64_t end = end_of(&lanes[i]);
        ends[cap + i] = (struct fp_trace_event_ends){end, end};
    }
    for (uint32_t node = cap; --node;) update(l, node);
}

uint32_t fp_trace_event_lane_for(struct fp_trace_event_lanes *l, int64_t end) {
    if (!l->cap || l->ends[1].most < end) grow(l);
    uint32_t node = 1;
    while (node < l->cap) node = 2 * node + (l->ends[2 * node].most < end);
    return node - l->cap;
}

uint32_t fp_trace_event_lane_ending(const struct fp_trace_event_lanes *l, int64_t now) {
    if (!l->cap || l->ends[1].least > now || l->ends[1].least == INT64_MAX) return FP_NO_ID;
    uint32_t node = 1;
    while (node < l->cap) node = 2 * node + (l->ends[2 * node].least > l->ends[1].least);
    return node - l->cap;
}

void fp_trace_event_lane_push(struct fp_trace_event_lanes *l, uint32_t lane, struct fp_trace_event_call call) {
    struct fp_trace_event_lane *to = &l->lanes[lane];
    FP_PUSH(to->calls, to->n, to->cap) = call;
    if (lane >= l->n) l->n = lane + 1;
    l->last = lane;
    changed(l, lane);
}

void fp_trace_event_lane_pop(struct fp_trace_event_lanes *l, uint32_t lane) {
    l->lanes[lane].n--;
    changed(l, lane);
}

void fp_trace_event_lanes_reset(struct fp_trace_event_lanes *l, uint32_t thread) {
    for (uint32_t i = 0; i < l->n; i++) {
        struct fp_trace_event_lane *lane = &l->lanes[i];
        const uint32_t had = lane->n;
        lane->n = lane->thread = 0;
        if (had) changed(l, i);
    }
    l->n = l->last = l->n_again = l->dividing = 0;
    l->thread = thread;
}

void fp_trace_event_lanes_free(struct fp_trace_event_lanes *l) {
    for (uint32_t i = 0; i < l->cap; i++) free(l->lanes[i].calls);
    FP_FREE(l->lanes, l->ends);
}
