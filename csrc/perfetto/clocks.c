#include <stdlib.h>

#include "perfetto/read_private.h"

/* A snapshot relates the clocks that it contains.  A time is converted through the fewest clocks.  The offset between
 * two clocks is that of the latest earlier snapshot that has both, or else of the first one:
 *
 *   snapshots   clock 64: 100 = BOOTTIME 1100    clock 64: 200 = BOOTTIME 1250
 *   64: 150     1150                              64: 210   1260
 */
enum { MOST_CLOCKS = 64 /* per snapshot */ };

struct fp_perfetto_point {
    int64_t value;
    uint32_t clock, snapshot;
    uint32_t before; /* the previous point of this clock, + 1 */
};

struct fp_perfetto_clock {
    int64_t low, high, offset; /* times from low to before high have this offset, if `cached` */
    int64_t multiplier, running;
    uint32_t last;   /* its last point, + 1 */
    uint32_t cached; /* number of snapshots when the offset was found, + 1 */
    uint32_t from;   /* during the search for a path */
    int32_t is_incremental, was_unknown;
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
    uint32_t primary; /* id of the trace's clock; 0: BOOTTIME */
    uint32_t n_read;  /* snapshots, in this pass over the trace */
    int32_t again;    /* an earlier pass has read all snapshots */
};

int fp_perfetto_clocks_new(struct fp_perfetto_read *r) {
    r->clocks = calloc(1, sizeof *r->clocks);
    return !r->clocks || fp_table_init(&r->clocks->ids, 2) ? FP_E_NOMEM : 0;
}

void fp_perfetto_clocks_free(struct fp_perfetto_clocks *c) {
    if (!c) return;
    fp_table_clear(&c->ids);
    free(c->clocks);
    free(c->points);
    free(c->starts);
    free(c->queue);
    free(c);
}

void fp_perfetto_clocks_restart(struct fp_perfetto_clocks *c) {
    c->again = 1;
    c->n_read = 0;
    for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++)
        c->clocks[i].is_incremental = 0, c->clocks[i].cached = 0;
}

/* Looks up a clock by id.  Ids 64 to 127 belong to the sequence.  FP_NO_ID when memory ran out. */
static uint32_t clock_of(struct fp_perfetto_clocks *c, uint32_t seq, uint32_t id) {
    const uint32_t key[2] = {id >= 64 && id < 128 ? seq : 0, id};
    const uint32_t *last = fp_table_row(&c->ids, c->last);
    if (c->last && last[0] == key[0] && last[1] == key[1]) return c->last;
    const uint32_t clock = fp_table_intern(&c->ids, key);
    if (clock == FP_NO_ID || fp_array_zeroed(&c->clocks, &c->cap_clocks, (uint64_t)clock + 1, sizeof *c->clocks))
        return FP_NO_ID;
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
    if (fp_array_room(&c->points, &c->cap_points, (uint64_t)c->n_points + 1, sizeof *c->points)) return FP_E_NOMEM;
    struct fp_perfetto_clock *of = &c->clocks[clock];
    c->points[c->n_points++] = (struct fp_perfetto_point){value, clock, c->n_snapshots - 1, of->last};
    of->last = c->n_points;
    return 0;
}

/* Adds a clock of a snapshot.  In a later pass only incremental clocks change. */
static int take_clock(struct fp_perfetto_clocks *c, uint32_t seq, struct fp_wire message) {
    struct fp_wire_field f;
    uint64_t id = 0, time = 0, incremental = 0, multiplier = 0;
    int status;
    while ((status = fp_perfetto_next(&message, &f)) > 0) {
        if (f.wire != FP_WIRE_VARINT) continue;
        if (f.number == 1) id = f.v;
        if (f.number == 2) time = f.v;
        if (f.number == 3) incremental = f.v;
        if (f.number == 4) multiplier = f.v;
    }
    if (status || id > UINT32_MAX || multiplier > INT64_MAX) return FP_E_MALFORMED;
    const uint32_t clock = clock_of(c, seq, (uint32_t)id);
    if (clock == FP_NO_ID) return FP_E_NOMEM;
    struct fp_perfetto_clock *of = &c->clocks[clock];
    int64_t value = (int64_t)time;
    if (multiplier) of->multiplier = (int64_t)multiplier;
    if (multiplier && __builtin_mul_overflow(value, (int64_t)multiplier, &value)) return FP_E_MALFORMED;
    if (incremental) {
        of->is_incremental = 1;
        of->running = (int64_t)time;
    }
    if (id == FP_PC_BOOTTIME && !c->primary) c->primary = FP_PC_BOOTTIME;
    return c->again ? 0 : add_point(c, clock, value);
}

int fp_perfetto_snapshot(struct fp_perfetto_read *r, uint32_t seq, struct fp_wire snapshot) {
    struct fp_perfetto_clocks *c = r->clocks;
    struct fp_wire_field f;
    uint64_t primary = 0;
    int status;
    if (!c->again) {
        if (fp_array_room(&c->starts, &c->cap_starts, (uint64_t)c->n_snapshots + 1, sizeof *c->starts))
            return FP_E_NOMEM;
        c->starts[c->n_snapshots++] = c->n_points;
    }
    c->n_read++;
    while ((status = fp_perfetto_next(&snapshot, &f)) > 0) {
        if (fp_perfetto_is(&f, 1, FP_WIRE_BYTES) && (status = take_clock(c, seq, fp_wire_inside(&f)))) return status;
        if (fp_perfetto_is(&f, 2, FP_WIRE_VARINT)) primary = f.v;
    }
    if (status || primary > UINT32_MAX) return FP_E_MALFORMED;
    if (primary && primary != c->primary) {
        c->primary = (uint32_t)primary;
        for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++) c->clocks[i].cached = 0;
    }
    return 0;
}

/* The path uses the snapshots read so far, unless only later ones relate a clock. */
struct fp_perfetto_hop {
    int64_t low, high, offset;
};

/* The offset from clock a to clock b at a time, and the times at which it is valid.  1, or 0: no snapshot has both. */
static int hop(struct fp_perfetto_clocks *c, uint32_t a, uint32_t b, int64_t time, uint32_t n_snapshots,
               struct fp_perfetto_hop *found) {
    int any = 0;
    *found = (struct fp_perfetto_hop){INT64_MIN, INT64_MAX, 0};
    for (uint32_t at = c->clocks[a].last; at; at = c->points[at - 1].before) {
        const struct fp_perfetto_point *p = &c->points[at - 1];
        if (p->snapshot >= n_snapshots) continue;
        const struct fp_perfetto_point *q = point_in(c, p->snapshot, b);
        if (!q) continue;
        any = 1;
        if (__builtin_sub_overflow(q->value, p->value, &found->offset)) return 0;
        if (p->value <= time) {
            found->low = p->value;
            return 1;
        }
        if (p->value < found->high) found->high = p->value;
    }
    return any;
}

/* Finds the shortest path between two clocks, breadth first: clocks[].from leads from `to` back to `clock`, as id + 1.
 * 1, 0 or FP_E_NOMEM. */
static int find_path(struct fp_perfetto_clocks *c, uint32_t clock, uint32_t to, uint32_t n_snapshots) {
    uint32_t n = 0;
    if (fp_array_room(&c->queue, &c->cap_queue, c->ids.n, sizeof *c->queue)) return FP_E_NOMEM;
    for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++) c->clocks[i].from = 0;
    c->clocks[clock].from = clock + 1;
    c->queue[n++] = clock;
    for (uint32_t next = 0; next < n && !c->clocks[to].from; next++) {
        for (uint32_t at = c->clocks[c->queue[next]].last; at; at = c->points[at - 1].before) {
            const uint32_t snapshot = c->points[at - 1].snapshot;
            if (snapshot >= n_snapshots) continue;
            const uint32_t end = snapshot + 1 < c->n_snapshots ? c->starts[snapshot + 1] : c->n_points;
            for (uint32_t i = c->starts[snapshot]; i < end; i++) {
                struct fp_perfetto_clock *other = &c->clocks[c->points[i].clock];
                if (other->from) continue;
                other->from = c->queue[next] + 1;
                c->queue[n++] = c->points[i].clock;
            }
        }
    }
    return c->clocks[to].from != 0;
}

/* The offset from a clock to the trace's at a time.  1, 0 or FP_E_NOMEM. */
static int find_offset(struct fp_perfetto_clocks *c, uint32_t clock, uint32_t to, int64_t time, uint32_t n_snapshots) {
    struct fp_perfetto_clock *of = &c->clocks[clock];
    struct fp_perfetto_hop all = {INT64_MIN, INT64_MAX, 0}, one;
    uint32_t n = 0;
    const int found = find_path(c, clock, to, n_snapshots);
    if (found != 1) return found;
    for (uint32_t at = to; at != clock; at = c->clocks[at].from - 1) c->queue[n++] = at; /* the path, its end first */
    for (uint32_t at = clock; n--; at = c->queue[n]) {
        int64_t now, low, high;
        if (__builtin_add_overflow(time, all.offset, &now) || !hop(c, at, c->queue[n], now, n_snapshots, &one))
            return 0;
        if (one.low == INT64_MIN || __builtin_sub_overflow(one.low, all.offset, &low)) low = INT64_MIN;
        if (one.high == INT64_MAX || __builtin_sub_overflow(one.high, all.offset, &high)) high = INT64_MAX;
        all.low = low > all.low ? low : all.low;
        all.high = high < all.high ? high : all.high;
        if (__builtin_add_overflow(all.offset, one.offset, &all.offset)) return 0;
    }
    of->low = all.low;
    of->high = all.high;
    of->offset = all.offset;
    of->cached = c->n_read + 1;
    return 1;
}

static int convert(struct fp_perfetto_clocks *c, uint32_t clock, int64_t time, int64_t *ns) {
    struct fp_perfetto_clock *of = &c->clocks[clock];
    if (of->cached != c->n_read + 1 || time < of->low || time >= of->high) {
        const uint32_t to = clock_of(c, 0, c->primary ? c->primary : FP_PC_BOOTTIME);
        if (to == FP_NO_ID) return FP_E_NOMEM;
        int found = clock == to;
        if (found) {
            *ns = time;
            return 1;
        }
        found = find_offset(c, clock, to, time, c->again ? c->n_read : c->n_snapshots);
        if (!found && c->again) found = find_offset(c, clock, to, time, c->n_snapshots);
        if (found != 1) return found;
        of = &c->clocks[clock];
    }
    return !__builtin_add_overflow(time, of->offset, ns);
}

int fp_perfetto_time(struct fp_perfetto_read *r, uint32_t seq, uint32_t id, uint64_t time, int64_t *ns) {
    struct fp_perfetto_clocks *c = r->clocks;
    const uint32_t clock = clock_of(c, seq, id);
    if (clock == FP_NO_ID) return FP_E_NOMEM;
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
    struct fp_perfetto_clocks *c = r->clocks;
    if (c->again) return 0;
    for (uint32_t i = 0; i < c->ids.n && i < c->cap_clocks; i++) {
        int64_t ns;
        const int found = c->clocks[i].was_unknown ? convert(c, i, 0, &ns) : 0;
        if (found) return found;
    }
    return 0;
}

int64_t fp_perfetto_system_time(struct fp_perfetto_read *r, uint32_t id, int64_t ns) {
    int64_t converted;
    const uint32_t clock = clock_of(r->clocks, 0, id);
    return clock != FP_NO_ID && convert(r->clocks, clock, ns, &converted) == 1 ? converted : ns;
}
