#include "perfetto/read_private.h"

/* ---- tracks ---- */

uint32_t fp_perfetto_track_of(struct fp_perfetto_read *r, uint32_t kind, uint64_t a, uint64_t b) {
    const uint32_t key[5] = {kind, FP_WORDS(a), FP_WORDS(b)};
    const uint32_t n = r->tracks.keys.n, track = fp_table_intern(&r->tracks.keys, key);
    fp_array_zeroed(&r->tracks.list, &r->tracks.cap, (uint64_t)track + 1, sizeof *r->tracks.list);
    if (track == n) r->tracks.list[track] = (struct fp_perfetto_track){.kind = kind, .pid = -1, .tid = -1};
    return track;
}

/* An int32, which a varint holds as 64 bits. */
static int64_t int32_of(uint64_t v) {
    return (int32_t)(uint32_t)v;
}

/* A process of another machine than the first gets a pid beyond 32 bits. */
static int64_t pid_on(const struct fp_perfetto_packet *k, int64_t pid) {
    return fp_perfetto_has(k, FP_PF_MACHINE) ? (pid & UINT32_MAX) | (int64_t)(k->number[FP_PF_MACHINE] & 0xffff) << 32
                                             : pid;
}

/* ---- names ---- */

void fp_perfetto_name(struct fp_perfetto_read *r, int64_t pid, int64_t tid, const uint8_t *p, size_t n,
                      enum fp_perfetto_namer by) {
    const uint64_t a = (uint64_t)pid, b = (uint64_t)tid;
    const uint32_t key[4] = {FP_WORDS(a), FP_WORDS(b)};
    const uint32_t row = fp_table_intern(&r->tracks.name_keys, key);
    const uint32_t name = fp_strings_intern(&r->model->strings, n ? p : (const uint8_t *)"", n);
    fp_array_zeroed(&r->named, &r->tracks.cap_named, (uint64_t)row + 1, sizeof *r->named);
    r->n_named = r->tracks.name_keys.n;
    struct fp_perfetto_named *to = &r->named[row];
    if (n && (!to->name || by < to->by || (by == to->by && by != FP_PN_PROCESS)))
        *to = (struct fp_perfetto_named){pid, tid, name, by};
}

/* ---- descriptors ---- */

/* A thread, a process or a counter: its description, or what the process tree says of it. */
struct described {
    uint64_t id, of, reference, multiplier, adds;
    uint64_t unit;
    struct fp_wire name, command;
};
#define TO(member) FP_WIRE_TO(struct described, member)
static const struct fp_wire_schema of_thread = {" VV  BV", {0, TO(of), TO(id), [5] = TO(name), TO(reference)}};
static const struct fp_wire_schema of_process = {" VB   B", {0, TO(id)}};
static const struct fp_wire_schema of_counter = {"   VVVB", {[3] = TO(unit), TO(multiplier), TO(adds), TO(name)}};
static const struct fp_wire_schema of_tree = {.kinds = " BB"};
static const struct fp_wire_schema of_tree_process = {" V B", {0, TO(id)}};
static const struct fp_wire_schema of_tree_thread = {" VBV", {0, TO(id), 0, TO(of)}};
#undef TO

static void name_process(struct fp_perfetto_read *r, int64_t pid, int64_t tid, struct fp_wire name,
                         enum fp_perfetto_namer by) {
    if (name.p < name.end) fp_perfetto_name(r, pid, tid, name.p, (size_t)(name.end - name.p), by);
}

int fp_perfetto_thread_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, struct fp_wire thread,
                                  int64_t *pid, int64_t *tid) {
    struct described d = {0};
    const int status = fp_perfetto_fields(thread, &of_thread, &d);
    struct fp_perfetto_seq *s = k->seq;
    *pid = pid_on(k, int32_of(d.of));
    *tid = (int64_t)d.id;
    if (status) return status;
    if (s->valid) {
        s->pid = *pid;
        s->tid = *tid;
        s->has_reference = !__builtin_mul_overflow((int64_t)d.reference, 1000, &s->reference);
    }
    fp_perfetto_set_process(r, *tid, *pid, FP_PQ_DESCRIPTOR);
    name_process(r, *pid, *tid, d.name, FP_PN_OWN);
    return 0;
}

int fp_perfetto_process_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k,
                                   struct fp_wire process, int64_t *pid) {
    struct described d = {0};
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&process, &of_process, &d, &f, NULL)) > 0) /* its name, or its command's first word */
        if (f.number == 6 && f.n)
            d.name = fp_wire_inside(&f);
        else if (f.number == 2 && d.command.p == d.command.end)
            d.command = fp_wire_inside(&f);
    if (kind) return FP_E_MALFORMED;
    *pid = pid_on(k, int32_of(d.id));
    name_process(r, *pid, -1, d.name.p ? d.name : d.command, d.name.p ? FP_PN_PROCESS : FP_PN_COMMAND);
    return 0;
}

/* The fields of a track's descriptor. */
struct descriptor {
    uint64_t has, uuid, parent;
    struct fp_wire name, thread, process, counter;
};
#define TO(member) FP_WIRE_TO(struct descriptor, member)
static const struct fp_wire_schema of_track = {
    " VBBBV  B B  B", {TO(has), TO(uuid), TO(name), TO(process), TO(thread), TO(parent), [8] = TO(counter)}};
#undef TO

static int take_descriptor(struct descriptor *d, struct fp_wire m) {
    struct fp_wire_field f;
    int kind;
    *d = (struct descriptor){0};
    while ((kind = fp_wire_read(&m, &of_track, d, &f, NULL)) > 0) /* other names */
        if (d->name.p == d->name.end) d->name = fp_wire_inside(&f);
    return kind ? FP_E_MALFORMED : 0;
}

/* Reads the description of a track that is a counter. */
static int take_counter(struct fp_perfetto_read *r, uint32_t track, struct fp_wire m) {
    struct fp_perfetto_track *t = &r->tracks.list[track];
    if (!t->counter) t->counter = fp_have(calloc(1, sizeof *t->counter));
    struct described d = {.multiplier = (uint64_t)t->counter->multiplier, .adds = (uint64_t)t->counter->adds};
    const int status = fp_perfetto_fields(m, &of_counter, &d);
    t->counter->multiplier = (int64_t)d.multiplier;
    t->counter->adds = d.adds != 0;
    if (d.name.p < d.name.end) t->counter->unit = fp_perfetto_text(r, d.name);
    if (d.unit) t->counter->kind = (uint32_t)d.unit;
    return status;
}

int fp_perfetto_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct descriptor d;
    int64_t pid, tid;
    FP_TRY(take_descriptor(&d, k->message[FP_PF_TRACK]));
    if (!(d.has >> 1 & 1)) {
        r->counts[FP_PERFETTO_N_OTHER]++;
        return 0;
    }
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_UUID, d.uuid, 0);
    const uint32_t name = fp_perfetto_text(r, d.name);
    struct fp_perfetto_track *t = &r->tracks.list[track];
    if (name) t->name = name;
    if (d.parent) t->parent = d.parent;
    if (d.counter.p) {
        FP_TRY(take_counter(r, track, d.counter));
        d.name.p = d.name.end; /* not that of a thread or process */
    }
    if (d.thread.p) {
        FP_TRY(fp_perfetto_thread_descriptor(r, k, d.thread, &pid, &tid));
        r->tracks.list[track].pid = pid;
        r->tracks.list[track].tid = tid;
        name_process(r, pid, tid, d.name, FP_PN_TRACK);
        return 0;
    }
    if (!d.process.p) return 0;
    FP_TRY(fp_perfetto_process_descriptor(r, k, d.process, &pid));
    r->tracks.list[track].pid = pid;
    name_process(r, pid, -1, d.name, FP_PN_TRACK);
    return 0;
}

/* Reads a process or a thread of the process tree. */
static int take_process(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, struct fp_wire m, int thread) {
    struct described d = {0};
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&m, thread ? &of_tree_thread : &of_tree_process, &d, &f, NULL)) > 0)
        if (d.name.p == d.name.end) d.name = fp_wire_inside(&f); /* the command's first word */
    if (kind) return FP_E_MALFORMED;
    const int64_t pid = pid_on(k, int32_of(thread ? d.of : d.id)), tid = thread ? int32_of(d.id) : -1;
    if (thread) fp_perfetto_set_process(r, tid, pid, FP_PQ_TREE);
    name_process(r, pid, tid, d.name, FP_PN_OWN);
    return 0;
}

int fp_perfetto_process_tree(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire tree = k->message[FP_PF_PROCESS_TREE];
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&tree, &of_tree, NULL, &f, NULL)) > 0)
        FP_TRY(take_process(r, k, fp_wire_inside(&f), f.number == 2));
    return kind ? FP_E_MALFORMED : 0;
}

/* ---- processes of threads ---- */

/* The kernel names threads only by tid.  Their tracks keep the process from the best source; `of` is the source. */
void fp_perfetto_set_process(struct fp_perfetto_read *r, int64_t tid, int64_t pid, enum fp_perfetto_quality from) {
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_KERNEL, (uint64_t)tid, 0);
    struct fp_perfetto_track *t = &r->tracks.list[track];
    if ((uint32_t)from < t->of) return;
    t->pid = pid;
    t->of = from;
}

/* ---- places ---- */

uint32_t fp_perfetto_place_of(struct fp_perfetto_read *r, int64_t pid, int64_t tid, uint32_t path, int is_lanes) {
    const uint64_t a = (uint64_t)pid, b = (uint64_t)tid;
    const uint32_t key[6] = {FP_WORDS(a), FP_WORDS(b), path, (uint32_t)is_lanes};
    const uint32_t n = r->tracks.place_keys.n, place = fp_table_intern(&r->tracks.place_keys, key);
    fp_array_zeroed(&r->places, &r->tracks.cap_places, (uint64_t)place + 1, sizeof *r->places);
    if (place == n) {
        r->places[place] = (struct fp_perfetto_place){.pid = pid, .tid = tid, .path = path, .is_lanes = is_lanes};
        r->tracks.n_places = place + 1;
    }
    return place;
}

void fp_perfetto_places_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->tracks.n_places; i++) {
        struct fp_perfetto_place *p = &r->places[i];
        for (uint32_t lane = 0; lane < p->cap_lanes; lane++) free(p->lanes[lane].calls);
        FP_FREE(p->lanes, p->free_lanes);
    }
    free(r->places);
    r->places = NULL;
    r->tracks.n_places = r->tracks.cap_places = 0;
}

/* Finds the place of a described track: the first thread or process among the track and its parents, and the path of
 * names to it. */
static void place_described(struct fp_perfetto_read *r, uint32_t track, struct fp_perfetto_track *found,
                            struct fp_buf *path) {
    enum { MOST_PARENTS = 64, MOST_PATH = 1 << 12 };
    uint32_t names[MOST_PARENTS], n = 0;
    const struct fp_perfetto_track *t = &r->tracks.list[track];
    *found = (struct fp_perfetto_track){.pid = -1, .tid = -1};
    path->n = 0;
    for (;;) {
        found->pid = t->pid;
        found->tid = t->tid;
        if (t->pid >= 0 || t->tid >= 0 || n == MOST_PARENTS) break; /* also ends a cycle */
        names[n++] = t->name;
        const uint64_t a = t->parent;
        const uint32_t key[5] = {FP_PT_UUID, FP_WORDS(a), 0, 0};
        const uint32_t parent = a ? fp_table_find(&r->tracks.keys, key) : 0;
        if (!parent) break;
        t = &r->tracks.list[parent];
    }
    while (n--) {
        size_t length;
        const uint8_t *p = fp_string(&r->model->strings, names[n], &length);
        if (path->n + length > MOST_PATH) break;
        if (path->n) fp_buf_put(path, "/", 1);
        fp_buf_put(path, p, length);
    }
}

void fp_perfetto_owner(struct fp_perfetto_read *r, uint32_t track, int64_t *pid, int64_t *tid) {
    const uint32_t *key = fp_table_row(&r->tracks.keys, track), kind = r->tracks.list[track].kind;
    struct fp_perfetto_track found = {.pid = -1, .tid = -1};
    if (kind == FP_PT_UUID) place_described(r, track, &found, &r->feed.scratch);
    *pid = kind == FP_PT_THREAD ? (int64_t)fp_words_u64(key + 1) : found.pid;
    *tid = kind == FP_PT_THREAD ? (int64_t)fp_words_u64(key + 3) : found.tid;
}

/* The place of counters: the thread that they belong to, or a lane of the process. */
static uint32_t place_counters(struct fp_perfetto_read *r, int64_t pid, int64_t tid) {
    if (tid >= 0) return fp_perfetto_place_of(r, pid, tid, 0, 0);
    const uint32_t name = fp_strings_intern(&r->model->strings, "counters", 8);
    return fp_perfetto_place_of(r, pid, -1, name, 1);
}

/* By its name, or its kind: UNIT_TIME_NS, UNIT_COUNT, UNIT_SIZE_BYTES. */
static void add_unit(struct fp_perfetto_read *r, const struct fp_perfetto_counter *c) {
    static const char *const KINDS[] = {[1] = "nanoseconds", [3] = "bytes"};
    size_t n = 0;
    const void *unit = fp_string(&r->model->strings, c->unit, &n);
    if (!n && c->kind < sizeof KINDS / sizeof *KINDS && KINDS[c->kind]) n = strlen(unit = KINDS[c->kind]);
    if (n) fp_model_counter_unit(r->model, c->name, unit, n);
}

/* The place of a track that is a counter, which gets its name. */
static uint32_t place_counter(struct fp_perfetto_read *r, uint32_t track) {
    struct fp_perfetto_track *t = &r->tracks.list[track], found;
    struct fp_buf *path = &r->feed.scratch;
    place_described(r, track, &found, path);
    t->counter->name = path->n ? fp_strings_intern(&r->model->strings, path->p, path->n) : t->name;
    add_unit(r, t->counter);
    return place_counters(r, found.pid, found.tid);
}

/* The place of a track that is not a thread. */
static uint32_t place_lanes(struct fp_perfetto_read *r, uint32_t track) {
    const struct fp_perfetto_track *t = &r->tracks.list[track];
    struct fp_perfetto_track found = {.pid = -1, .tid = -1};
    struct fp_buf *path = &r->feed.scratch;
    path->n = 0;
    if (t->kind == FP_PT_UUID) {
        place_described(r, track, &found, path);
        if (t->tid >= 0) return fp_perfetto_place_of(r, t->pid, t->tid, 0, 0);
        if (found.pid >= 0 && !path->n) fp_buf_put(path, "(process)", 9);
    } else if (t->kind == FP_PT_ASYNC) {
        if (t->of) place_described(r, t->of, &found, path);
        found.tid = -1;
        path->n = 0;
        size_t n;
        const uint8_t *p = fp_string(&r->model->strings, t->name, &n);
        fp_buf_put(path, "async ", n ? 6 : 5);
        fp_buf_put(path, p, n);
    } else {
        fp_buf_put(path, "Default Track", 13);
    }
    const uint32_t name = fp_strings_intern(&r->model->strings, path->n ? (const void *)path->p : "", path->n);
    return fp_perfetto_place_of(r, found.pid, found.tid, name, 1);
}

/* Names the thread of a track of the kernel after its command, if it has no other name. */
static void name_command(struct fp_perfetto_read *r, uint32_t track, int64_t tid) {
    const struct fp_perfetto_track *t = &r->tracks.list[track];
    size_t n;
    const uint8_t *p = fp_string(&r->model->strings, t->name, &n);
    if (n) fp_perfetto_name(r, t->pid, tid, p, n, FP_PN_TRACK);
}

void fp_perfetto_plan(struct fp_perfetto_read *r) {
    for (uint32_t i = 1; i < r->tracks.keys.n; i++) {
        struct fp_perfetto_track *t = &r->tracks.list[i];
        const uint64_t a = fp_words_u64(fp_table_row(&r->tracks.keys, i) + 1);
        const uint64_t b = fp_words_u64(fp_table_row(&r->tracks.keys, i) + 3);
        uint32_t place;
        if (t->kind == FP_PT_KERNEL) name_command(r, i, (int64_t)a);
        if (t->kind == FP_PT_COUNTERS)
            place = place_counters(r, (int64_t)a, -1);
        else if (t->kind == FP_PT_ATRACE || t->kind == FP_PT_FRAME)
            place = fp_perfetto_place_of(r, t->pid, -1, t->name, 1);
        else if (t->counter)
            place = place_counter(r, i);
        else if (t->kind == FP_PT_THREAD)
            place = fp_perfetto_place_of(r, (int64_t)a, (int64_t)b, 0, 0);
        else if (t->kind == FP_PT_KERNEL)
            place = fp_perfetto_place_of(r, t->pid, (int64_t)a, 0, 0);
        else
            place = place_lanes(r, i);
        r->tracks.list[i].place = place + 1;
    }
}
