#include "perfetto/read_private.h"

/* A snapshot relates the clocks that it contains.  A time is converted through the fewest clocks.  The offset between
 * two clocks is that of the latest earlier snapshot that has both, or else of the first one:
 *
 *   snapshots   clock 64: 100 = BOOTTIME 1100    clock 64: 200 = BOOTTIME 1250
 *   64: 150     1150                              64: 210   1260
 *
 * Each clock has a route: the next clock on the way to the trace's, and the offsets to it.  A snapshot extends the
 * routes of its clocks, and shortens a route at most MOST_HOPS times, so all of them take linear time.
 */
enum {
    MOST_CLOCKS = 64,   /* per snapshot */
    MOST_HOPS = 8,      /* of a route, and 1 */
    MOST_PRIMARIES = 16 /* changes of the trace's clock, each of which needs new routes */
};

struct fp_perfetto_point {
    int64_t value;
    uint32_t clock, snapshot;
    uint32_t before; /* the previous point of this clock, + 1 */
};

struct fp_perfetto_clock {
    int64_t low, high, offset; /* times from low to before high have this offset, if `cached` */
    int64_t multiplier, running;
    uint32_t last;                               /* its last point, + 1 */
    uint32_t cached;                             /* number of snapshots when the offset was found, + 1 */
    int32_t is_incremental, was_unknown, is_met; /* is_met: by a snapshot of this pass */
};

/* The offset to the next clock from a time of this one on.  Only snapshots matter after which none has an earlier time,
 * so these are sorted by time. */
struct offset {
    int64_t from, offset;
};

struct route {
    uint32_t hops; /* 1: the trace's clock; 0: no way to it */
    uint32_t to;   /* the next clock */
    uint32_t n, cap;
    struct offset *offsets;
    int64_t first; /* the offset before all of them: that of the first snapshot */
};

struct routes {
    struct route *of; /* by clock */
    uint32_t cap, root, n_snapshots;
};

struct fp_perfetto_clocks {
    struct fp_table ids; /* sequence or 0, id */
    uint32_t last;       /* the clock looked up last, or 0 */
    struct fp_perfetto_clock *clocks;
    uint32_t cap_clocks;
    struct fp_perfetto_point *points;
    uint32_t n_points, cap_points;
    uint32_t *starts; /* by snapshot: its first point */
    uint32_t n_snapshots, cap_starts;
    uint32_t *queue;
    uint32_t cap_queue;
    struct routes so_far, all; /* through the snapshots read in this pass; through all of them */
    uint32_t primary;          /* id of the trace's clock; 0: BOOTTIME */
    uint32_t n_primaries;
    uint32_t n_read; /* snapshots, in this pass over the trace */
    int32_t again;   /* an earlier pass has read all snapshots */
};

void fp_perfetto_clocks_new(struct fp_perfetto_read *r) {
    r->seqs.clocks = fp_have(calloc(1, sizeof *r->seqs.clocks));
    fp_table_init(&r->seqs.clocks->ids, 2);
}

static void drop_routes(struct routes *r) {
    for (uint32_t i = 0; i < r->cap; i++) free(r->of[i].offsets);
    free(r->of);
    *r = (struct routes){0};
}

void fp_perfetto_clocks_free(struct fp_perfetto_clocks *c) {
    if (!c) return;
    drop_routes(&c->so_far);
    drop_routes(&c->all);
    fp_table_clear(&c->ids);
    FP_FREE(c->clocks, c->points, c->starts, c->queue, c);
}

void fp_perfetto_clocks_restart(struct fp_perfetto_clocks *c) {
    c->again = 1;
    c->n_read = 0;
    drop_routes(&c->so_far);
    for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++)
        c->clocks[i].is_incremental = 0, c->clocks[i].is_met = 0, c->clocks[i].cached = 0;
}

/* Looks up a clock by id.  Ids 64 to 127 belong to the sequence. */
static uint32_t clock_of(struct fp_perfetto_clocks *c, uint32_t seq, uint32_t id) {
    const uint32_t key[2] = {id >= 64 && id < 128 ? seq : 0, id};
    const uint32_t *last = fp_table_row(&c->ids, c->last);
    if (c->last && last[0] == key[0] && last[1] == key[1]) return c->last;
    const uint32_t clock = fp_table_intern(&c->ids, key);
    fp_array_zeroed(&c->clocks, &c->cap_clocks, (uint64_t)clock + 1, sizeof *c->clocks);
    return c->last = clock;
}

/* The point of a clock in a snapshot, or NULL. */
static struct fp_perfetto_point *point_in(struct fp_perfetto_clocks *c, uint32_t snapshot, uint32_t clock) {
    const uint32_t end = snapshot + 1 < c->n_snapshots ? c->starts[snapshot + 1] : c->n_points;
    for (uint32_t i = c->starts[snapshot]; i < end; i++)
        if (c->points[i].clock == clock) return &c->points[i];
    return NULL;
}

static int add_point(struct fp_perfetto_clocks *c, uint32_t clock, int64_t value) {
    struct fp_perfetto_point *there = point_in(c, c->n_snapshots - 1, clock);
    if (there) {
        there->value = value;
        return 0;
    }
    if (c->n_points - c->starts[c->n_snapshots - 1] >= MOST_CLOCKS) return FP_E_MALFORMED;
    struct fp_perfetto_clock *of = &c->clocks[clock];
    FP_PUSH(c->points, c->n_points, c->cap_points) =
        (struct fp_perfetto_point){value, clock, c->n_snapshots - 1, of->last};
    of->last = c->n_points;
    return 0;
}

struct clock_fields {
    uint64_t id, time, incremental, multiplier;
};
#define TO(member) FP_WIRE_TO(struct clock_fields, member)
static const struct fp_wire_schema of_clock = {" VVVV", {0, TO(id), TO(time), TO(incremental), TO(multiplier)}};
static const struct fp_wire_schema of_snapshot = {" BV", {[2] = FP_WIRE_ONLY}};

/* Adds a clock of a snapshot.  In a later pass only incremental clocks change. */
static int take_clock(struct fp_perfetto_clocks *c, uint32_t seq, struct fp_wire message) {
    struct clock_fields f = {0};
    if (fp_perfetto_fields(message, &of_clock, &f) || f.id > UINT32_MAX || f.multiplier > INT64_MAX)
        return FP_E_MALFORMED;
    const uint32_t clock = clock_of(c, seq, (uint32_t)f.id);
    struct fp_perfetto_clock *of = &c->clocks[clock];
    int64_t value = (int64_t)f.time;
    if (f.multiplier || !of->is_met) of->multiplier = (int64_t)f.multiplier;
    of->is_met = 1;
    if (f.multiplier && __builtin_mul_overflow(value, (int64_t)f.multiplier, &value)) return FP_E_MALFORMED;
    if (f.incremental) {
        of->is_incremental = 1;
        of->running = (int64_t)f.time;
    }
    if (f.id == FP_PC_BOOTTIME && !c->primary) c->primary = FP_PC_BOOTTIME;
    return c->again ? 0 : add_point(c, clock, value);
}

int fp_perfetto_snapshot(struct fp_perfetto_read *r, uint32_t seq, struct fp_wire snapshot) {
    struct fp_perfetto_clocks *c = r->seqs.clocks;
    struct fp_wire_field f;
    uint64_t primary = 0;
    int status;
    if (!c->again) FP_PUSH(c->starts, c->n_snapshots, c->cap_starts) = c->n_points;
    c->n_read++;
    while ((status = fp_wire_read(&snapshot, &of_snapshot, &primary, &f, NULL)) > 0)
        if ((status = take_clock(c, seq, fp_wire_inside(&f)))) return status;
    if (status || primary > UINT32_MAX) return FP_E_MALFORMED;
    if (primary && primary != c->primary && c->n_primaries < MOST_PRIMARIES) {
        c->primary = (uint32_t)primary;
        c->n_primaries++;
        for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++) c->clocks[i].cached = 0;
    }
    return 0;
}

/* ---- routes ---- */

/* Adds what a snapshot says of a clock and the next one. */
static void extend(struct route *r, int64_t from, int64_t to) {
    int64_t offset;
    if (__builtin_sub_overflow(to, from, &offset)) return;
    if (!r->n) r->first = offset;
    while (r->n && r->offsets[r->n - 1].from >= from) r->n--;
    FP_PUSH(r->offsets, r->n, r->cap) = (struct offset){from, offset};
}

/* Begins a route again, through the snapshots before `end`, the last one first. */
static void reroute(struct fp_perfetto_clocks *c, struct route *r, uint32_t clock, uint32_t end) {
    r->n = 0;
    for (uint32_t at = c->clocks[clock].last; at; at = c->points[at - 1].before) {
        const struct fp_perfetto_point *p = &c->points[at - 1];
        const struct fp_perfetto_point *q = p->snapshot < end ? point_in(c, p->snapshot, r->to) : NULL;
        int64_t offset;
        if (!q || __builtin_sub_overflow(q->value, p->value, &offset)) continue;
        r->first = offset;
        if (r->n && p->value >= r->offsets[r->n - 1].from) continue;
        FP_PUSH(r->offsets, r->n, r->cap) = (struct offset){p->value, offset};
    }
    for (uint32_t i = 0, k = r->n; i + 1 < k; i++) {
        const struct offset other = r->offsets[--k];
        r->offsets[k] = r->offsets[i];
        r->offsets[i] = other;
    }
}

/* Leads the clocks of a snapshot to one of them, if that is shorter; those changed are added to the queue. */
static void shorten(struct fp_perfetto_clocks *c, struct routes *r, uint32_t snapshot, uint32_t to, uint32_t *n_queue) {
    const uint32_t end = snapshot + 1 < c->n_snapshots ? c->starts[snapshot + 1] : c->n_points;
    const uint32_t hops = r->of[to].hops + 1;
    for (uint32_t i = c->starts[snapshot]; i < end && hops <= MOST_HOPS; i++) {
        const uint32_t clock = c->points[i].clock;
        struct route *of = &r->of[clock];
        if (of->hops && of->hops <= hops) continue;
        of->hops = hops;
        of->to = to;
        reroute(c, of, clock, r->n_snapshots);
        c->queue[(*n_queue)++] = clock;
    }
}

/* Adds a snapshot to all routes. */
static void route_snapshot(struct fp_perfetto_clocks *c, struct routes *r) {
    const uint32_t snapshot = r->n_snapshots++, start = c->starts[snapshot];
    const uint32_t end = snapshot + 1 < c->n_snapshots ? c->starts[snapshot + 1] : c->n_points;
    uint32_t n = 0, nearest = FP_NO_ID;
    for (uint32_t i = start; i < end; i++) {
        const uint32_t clock = c->points[i].clock, hops = r->of[clock].hops;
        if (hops && (nearest == FP_NO_ID || hops < r->of[nearest].hops)) nearest = clock;
    }
    if (nearest == FP_NO_ID) return;
    for (uint32_t i = start; i < end; i++) {
        struct route *of = &r->of[c->points[i].clock];
        const struct fp_perfetto_point *q = of->hops > 1 ? point_in(c, snapshot, of->to) : NULL;
        if (q) extend(of, c->points[i].value, q->value);
    }
    shorten(c, r, snapshot, nearest, &n);
    for (uint32_t next = 0; next < n; next++) {
        const uint32_t clock = c->queue[next];
        for (uint32_t at = c->clocks[clock].last; at; at = c->points[at - 1].before) {
            const uint32_t other = c->points[at - 1].snapshot;
            if (other < r->n_snapshots) shorten(c, r, other, clock, &n);
        }
    }
}

/* Routes to a clock through the first snapshots. */
static void route(struct fp_perfetto_clocks *c, struct routes *r, uint32_t root, uint32_t n_snapshots) {
    if (r->root != root) drop_routes(r);
    fp_array_zeroed(&r->of, &r->cap, c->ids.n, sizeof *r->of);
    fp_array_room(&c->queue, &c->cap_queue, c->ids.n, sizeof *c->queue);
    r->root = root;
    r->of[root].hops = 1;
    while (r->n_snapshots < n_snapshots) route_snapshot(c, r);
}

/* The offset from a clock to the trace's at a time, for which the times from low to high have it, too.  1 or 0. */
static int find_offset(struct fp_perfetto_clocks *c, const struct routes *r, uint32_t clock, int64_t time) {
    struct fp_perfetto_clock *of = &c->clocks[clock];
    struct fp_perfetto_clock all = {.low = INT64_MIN, .high = INT64_MAX};
    for (const struct route *at = &r->of[clock]; at->hops != 1; at = &r->of[at->to]) {
        int64_t now, low, high;
        uint32_t i = 0; /* offsets from this time or before */
        if (!at->hops || !at->n || __builtin_add_overflow(time, all.offset, &now)) return 0;
        FP_BISECT(i, at->n, at->offsets[i].from <= now);
        if (!i || __builtin_sub_overflow(at->offsets[i - 1].from, all.offset, &low)) low = INT64_MIN;
        if (i == at->n || __builtin_sub_overflow(at->offsets[i].from, all.offset, &high)) high = INT64_MAX;
        all.low = low > all.low ? low : all.low;
        all.high = high < all.high ? high : all.high;
        const int64_t more = i ? at->offsets[i - 1].offset : at->first;
        if (__builtin_add_overflow(all.offset, more, &all.offset)) return 0;
    }
    of->low = all.low;
    of->high = all.high;
    of->offset = all.offset;
    of->cached = c->n_read + 1;
    return 1;
}

/* Routes use the snapshots read so far, unless only later ones relate a clock. */
static int convert(struct fp_perfetto_clocks *c, uint32_t clock, int64_t time, int64_t *ns) {
    struct fp_perfetto_clock *of = &c->clocks[clock];
    if (of->cached != c->n_read + 1 || time < of->low || time >= of->high) {
        const uint32_t to = clock_of(c, 0, c->primary ? c->primary : FP_PC_BOOTTIME);
        int found = clock == to;
        if (found) {
            *ns = time;
            return 1;
        }
        route(c, &c->so_far, to, c->again ? c->n_read : c->n_snapshots);
        found = find_offset(c, &c->so_far, clock, time);
        if (!found && c->again) {
            route(c, &c->all, to, c->n_snapshots);
            found = find_offset(c, &c->all, clock, time);
        }
        if (!found) return 0;
        of = &c->clocks[clock];
    }
    return !__builtin_add_overflow(time, of->offset, ns);
}

int fp_perfetto_time(struct fp_perfetto_read *r, uint32_t seq, uint32_t id, uint64_t time, int64_t *ns) {
    struct fp_perfetto_clocks *c = r->seqs.clocks;
    const uint32_t clock = clock_of(c, seq, id);
    struct fp_perfetto_clock *of = &c->clocks[clock];
    int64_t value = (int64_t)time;
    if (of->is_incremental) {
        if (__builtin_add_overflow(of->running, value, &value)) return 0;
        of->running = value;
    }
    if (of->multiplier && __builtin_mul_overflow(value, of->multiplier, &value)) return 0;
    const int found = convert(c, clock, value, ns);
    c->clocks[clock].was_unknown |= !found;
    return found;
}

int fp_perfetto_known_later(struct fp_perfetto_read *r) {
    struct fp_perfetto_clocks *c = r->seqs.clocks;
    if (c->again) return 0;
    for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++) {
        int64_t ns;
        FP_TRY(c->clocks[i].was_unknown ? convert(c, i, 0, &ns) : 0);
    }
    return 0;
}

int64_t fp_perfetto_system_time(struct fp_perfetto_read *r, uint32_t id, int64_t ns) {
    int64_t converted;
    const uint32_t clock = clock_of(r->seqs.clocks, 0, id);
    return convert(r->seqs.clocks, clock, ns, &converted) == 1 ? converted : ns;
}
