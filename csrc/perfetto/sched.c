/* The scheduler: what threads do between their switches.
 *
 *   cpu 0   switch at 100: 11 -> 12, 11 sleeps (S)     waking of 11 at 150     switch at 180: 12 -> 11, 12 preempted
 * (R+)
 *
 *   thread 11   ... running | blocked      | runnable | running ...
 *   thread 12       runnable | running                 | runnable ...
 *   time                   100            150        180
 *
 * States become calls on their thread, or samples of off-CPU time: a stack of the thread's open calls and of its state.
 */
#include "perfetto/read_private.h"

enum run_state { NONE = 0, RUNNING, CREATED, RUNNABLE, BLOCKED, STOPPED, GONE }; /* from RUNNABLE on: waiting */

/* What became of the thread that leaves a CPU, as in the kernel's prev_state: the state and a letter of ps. */
struct switch_reason {
    uint8_t state;
    char letter[3];
};

static struct switch_reason reason_of(uint64_t prev_state) {
    static const struct {
        uint32_t bit;
        struct switch_reason reason;
    } known[] = {{1, {BLOCKED, "S"}}, {2, {BLOCKED, "D"}}, {4, {STOPPED, "T"}},  {8, {STOPPED, "t"}},
                 {16, {GONE, "X"}},   {32, {GONE, "Z"}},   {64, {STOPPED, "P"}}, {128, {BLOCKED, "I"}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (prev_state & known[i].bit) return known[i].reason;
    return prev_state ? (struct switch_reason){RUNNABLE, "R+"} : (struct switch_reason){RUNNABLE, "R"};
}

/* States of kernels other than Linux. */
enum { TASK_RUNNING = 3 };
static const struct switch_reason task_states[] = {{NONE, ""},     {CREATED, ""},  {RUNNABLE, "R"},
                                                   {RUNNING, ""},  {BLOCKED, "S"}, {BLOCKED, "D"},
                                                   {STOPPED, "T"}, {GONE, "Z"},    {GONE, "X"}};

/* A thread, by its track. */
struct sched_thread {
    uint64_t since;
    uint32_t stack;    /* of its open calls, when it left the CPU */
    uint32_t function; /* of the state */
    uint8_t state;     /* enum run_state */
};

struct fp_perfetto_sched {
    struct sched_thread *threads;
    uint32_t *running; /* by CPU: the track of its thread + 1; 0: none, or not known */
    uint32_t cap_threads, cap_running;
};

void fp_perfetto_sched_free(struct fp_perfetto_read *r) {
    if (!r->calls.sched) return;
    FP_FREE(r->calls.sched->threads, r->calls.sched->running, r->calls.sched);
    r->calls.sched = NULL;
}

/* ---- records ---- */

enum { MOST_CPUS = 1 << 16, NO_TRACK = 0, UNKNOWN = INT32_MAX }; /* UNKNOWN: the thread that the CPU ran until now */

static int is_read(const struct fp_perfetto_read *r) {
    return !r->feed.surveying && (r->data == FP_PERFETTO_STATES || r->data == FP_PERFETTO_OFF_CPU);
}

/* The track of a thread; NO_TRACK for the idle one. */
static uint32_t track_of(struct fp_perfetto_read *r, int64_t tid, struct fp_wire name) {
    if (!tid) return NO_TRACK;
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_KERNEL, (uint64_t)tid, 0);
    const uint32_t text = fp_perfetto_text(r, name);
    if (text) r->tracks.list[track].name = text;
    return track;
}

static int put_switch(struct fp_perfetto_read *r, int64_t time, uint64_t cpu, uint32_t prev, uint64_t state,
                      uint32_t next) {
    if (cpu >= MOST_CPUS || time < 0) {
        r->counts[FP_PERFETTO_N_NEGATIVE] += time < 0;
        return cpu >= MOST_CPUS ? FP_E_MALFORMED : 0;
    }
    /* the lower 8 bits are the reasons; a higher one marks a thread that was preempted */
    const uint64_t kept = (state & 255) | (state >> 8 ? 256 : 0);
    fp_perfetto_put_record(r, time, (uint32_t)cpu, FP_PO_SWITCH, next, (int64_t)(prev | kept << 32));
    return 0;
}

/* A switch, a waking (of `next`) or the state of a task. */
struct sched_fields {
    struct fp_wire prev_name, next_name;
    uint64_t prev, next, state, cpu;
};
#define TO(member) FP_WIRE_TO(struct sched_fields, member)
static const struct fp_wire_schema of_switch = {" BV VBV",
                                                {0, TO(prev_name), TO(prev), 0, TO(state), TO(next_name), TO(next)}};
static const struct fp_wire_schema of_waking = {"  V", {[2] = TO(next)}};
static const struct fp_wire_schema of_task = {" VBVV", {0, TO(cpu), TO(next_name), TO(next), TO(state)}};

int fp_perfetto_switch(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, int64_t time) {
    struct sched_fields f = {0};
    r->counts[FP_PERFETTO_N_SWITCHES]++;
    if (!is_read(r)) return 0;
    if (fp_perfetto_fields(m, &of_switch, &f)) return FP_E_MALFORMED;
    const uint32_t from = track_of(r, (int32_t)(uint32_t)f.prev, f.prev_name);
    return put_switch(r, time, cpu, from, f.state, track_of(r, (int32_t)(uint32_t)f.next, f.next_name));
}

static void put_wake(struct fp_perfetto_read *r, uint64_t tid, int64_t time) {
    const uint32_t track = track_of(r, (int32_t)(uint32_t)tid, (struct fp_wire){0});
    if (track && time >= 0) fp_perfetto_put_record(r, time, 0, FP_PO_WAKE, track, 0);
}

int fp_perfetto_waking(struct fp_perfetto_read *r, struct fp_wire m, int64_t time) {
    struct sched_fields f = {0};
    if (!is_read(r)) return 0;
    if (fp_perfetto_fields(m, &of_waking, &f)) return FP_E_MALFORMED;
    put_wake(r, f.next, time);
    return 0;
}

/* A state that a kernel other than Linux reports, for one thread at a time. */
int fp_perfetto_task(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct sched_fields f = {0};
    r->counts[FP_PERFETTO_N_SWITCHES]++;
    if (!is_read(r) || !k->has_time) return 0;
    if (fp_perfetto_fields(k->message[FP_PF_TASK], &of_task, &f)) return FP_E_MALFORMED;
    const uint32_t track = track_of(r, (int64_t)f.next, f.next_name);
    if (f.cpu >= MOST_CPUS) return FP_E_MALFORMED;
    r->counts[FP_PERFETTO_N_NEGATIVE] += k->time < 0;
    if (k->time < 0 || (!track && f.state != TASK_RUNNING)) return 0;
    fp_perfetto_put_record(r, k->time, (uint32_t)f.cpu, FP_PO_TASK, track, (int64_t)(f.state & 255));
    return 0;
}

/* ---- the compact form: a list for each field ---- */

static const struct fp_wire_schema of_compact = {.kinds = " LLL BLLL"};

/* Collects the names of threads as strings of the model, in r->feed.scratch. */
static void take_names(struct fp_perfetto_read *r, struct fp_wire m) {
    struct fp_wire text;
    r->feed.scratch.n = 0;
    while (fp_perfetto_part(&m, 5, &text)) {
        const uint32_t name = fp_perfetto_text(r, text);
        fp_buf_put(&r->feed.scratch, &name, sizeof name);
    }
}

/* The name of a compact switch's thread, or 0. */
static uint32_t name_at(const struct fp_perfetto_read *r, uint64_t index) {
    uint32_t name = 0;
    if (index < r->feed.scratch.n / sizeof name) memcpy(&name, r->feed.scratch.p + index * sizeof name, sizeof name);
    return name;
}

static int take_switches(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, uint32_t clock) {
    struct fp_wire_list times = fp_wire_list_of(m, &of_compact, 1), states = fp_wire_list_of(m, &of_compact, 2),
                        tids = fp_wire_list_of(m, &of_compact, 3), names = fp_wire_list_of(m, &of_compact, 6);
    uint64_t delta, state, tid, index, now = 0;
    int more;
    while ((more = fp_wire_list_next(&times, &delta)) > 0) {
        const int has_state = fp_wire_list_next(&states, &state), has_tid = fp_wire_list_next(&tids, &tid);
        const int has_name = fp_wire_list_next(&names, &index);
        if (has_state < 0 || has_tid < 0 || has_name < 0) return FP_E_MALFORMED;
        now += delta;
        r->counts[FP_PERFETTO_N_SWITCHES]++;
        if (!is_read(r)) continue;
        const uint32_t next = track_of(r, (int32_t)(uint32_t)tid, (struct fp_wire){0}),
                       name = has_name ? name_at(r, index) : 0;
        if (next && name) r->tracks.list[next].name = name;
        FP_TRY(put_switch(r, fp_perfetto_system_time(r, clock, (int64_t)now), cpu, UNKNOWN, state, next));
    }
    return more ? FP_E_MALFORMED : 0;
}

static int take_compact(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, uint32_t clock) {
    struct fp_wire_list times = fp_wire_list_of(m, &of_compact, 7), tids = fp_wire_list_of(m, &of_compact, 8);
    uint64_t delta, tid, now = 0;
    if (is_read(r)) take_names(r, m);
    int more, status = take_switches(r, m, cpu, clock);
    if (status || !is_read(r)) return status;
    while ((more = fp_wire_list_next(&times, &delta)) > 0) {
        if ((more = fp_wire_list_next(&tids, &tid)) < 0) return FP_E_MALFORMED;
        now += delta;
        put_wake(r, tid, fp_perfetto_system_time(r, clock, (int64_t)now));
    }
    return more ? FP_E_MALFORMED : 0;
}

int fp_perfetto_compact(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, uint32_t clock) {
    const int status = take_compact(r, m, cpu, clock);
    if (status != FP_E_MALFORMED) return status;
    r->counts[FP_PERFETTO_N_BAD_COMPACT]++; /* the events of the bundle are readable all the same */
    return 0;
}

/* ---- rows ---- */

static uint32_t function_of(struct fp_perfetto_read *r, uint32_t state, const char *letter) {
    static const char *const names[] = {"", "running", "created", "runnable", "blocked", "stopped"};
    const uint32_t name = fp_strings_intern(&r->model->strings, (const uint8_t *)names[state], strlen(names[state]));
    const uint32_t category = fp_strings_intern(&r->model->strings, (const uint8_t *)letter, strlen(letter));
    return fp_perfetto_function_of(r, name, category);
}

/* A stack with another function in it. */
static uint32_t called(struct fp_model *m, uint32_t stack, uint32_t function) {
    const uint32_t frame = fp_model_plain_frame(m, function);
    return fp_model_stack(m, stack, frame);
}

/* The stack of a thread's open calls.  Each call keeps its own: otherwise many switches
 * within deep calls would take quadratic time. */
static uint32_t open_calls(struct fp_perfetto_read *r, uint32_t place) {
    const struct fp_perfetto_lane *l = r->places[place].lanes; /* of the thread itself */
    uint32_t k = l->n;
    while (k && !l->calls[k - 1].stack) k--;
    uint32_t stack = k ? l->calls[k - 1].stack : 0;
    for (; k < l->n; k++) {
        stack = called(r->model, stack, l->calls[k].function);
        l->calls[k].stack = stack;
    }
    return stack;
}

/* Ends a state: FP_DONE, FP_FULL or FP_NEEDS. */
static int end_state(struct fp_perfetto_read *r, uint32_t place, struct sched_thread *t, struct fp_batch *out) {
    if (r->data == FP_PERFETTO_STATES) return fp_perfetto_end_call(r, place, 0, (int64_t)r->rounds.time, out);
    if (t->state < RUNNABLE || r->rounds.time == t->since) return FP_DONE;
    const uint32_t stack = called(r->model, t->stack, t->function);
    return fp_perfetto_put_sample_row(r, place, stack, (int64_t)(r->rounds.time - t->since), out);
}

/* Changes the state of a thread.  FP_DONE; FP_FULL or FP_NEEDS: call again. */
static int set_state(struct fp_perfetto_read *r, uint32_t track, struct switch_reason reason, struct fp_batch *out) {
    struct fp_perfetto_sched *s = r->calls.sched;
    const uint32_t place = r->tracks.list[track].place - 1;
    fp_array_zeroed(&s->threads, &s->cap_threads, (uint64_t)track + 1, sizeof *s->threads);
    fp_perfetto_lane_room(&r->places[place], 0);
    struct sched_thread *t = &s->threads[track];
    if (t->state == reason.state) return FP_DONE;
    if (t->state) {
        FP_TRY(end_state(r, place, t, out));
        t->state = NONE;
    }
    if (reason.state == NONE || reason.state == GONE) return FP_DONE;
    const uint32_t function = function_of(r, reason.state, reason.letter);
    if (r->data == FP_PERFETTO_STATES) {
        FP_TRY(fp_perfetto_begin_call(r, place, 0, FP_OP_ENTER, function, INT64_MAX, out));
    } else if (reason.state >= RUNNABLE) {
        t->stack = open_calls(r, place);
    }
    t->state = reason.state;
    t->function = function;
    t->since = r->rounds.time;
    return FP_DONE;
}

static int wake(struct fp_perfetto_read *r, uint32_t track, struct fp_batch *out) {
    const struct fp_perfetto_sched *s = r->calls.sched;
    const uint32_t state = track < s->cap_threads ? s->threads[track].state : NONE;
    if (state == RUNNING || state == RUNNABLE) return FP_DONE;
    return set_state(r, track, (struct switch_reason){RUNNABLE, "R"}, out);
}

void fp_perfetto_count_waits(struct fp_perfetto_read *r) {
    const struct fp_perfetto_sched *s = r->calls.sched;
    r->counts[FP_PERFETTO_N_WAITS] = 0;
    for (uint32_t i = 0; s && i < s->cap_threads; i++)
        r->counts[FP_PERFETTO_N_WAITS] += s->threads[i].state >= RUNNABLE;
}

/* Sets the state of a thread.  Another one that ran on the CPU has no state from now on. */
static int put_task(struct fp_perfetto_read *r, uint32_t track, uint64_t state, uint32_t *running,
                    struct fp_batch *out) {
    const uint32_t ran = *running ? *running - 1 : NO_TRACK;
    if (state >= sizeof task_states / sizeof *task_states) state = 0;
    if (state == TASK_RUNNING && ran && ran != track) FP_TRY(set_state(r, ran, task_states[0], out));
    if (track) FP_TRY(set_state(r, track, task_states[state], out));
    if (state == TASK_RUNNING || ran == track) *running = state == TASK_RUNNING ? track + 1 : 0;
    return FP_DONE;
}

int fp_perfetto_put_sched(struct fp_perfetto_read *r, const struct fp_perfetto_record *record, struct fp_batch *out) {
    static const struct switch_reason none = {NONE, ""}, runs = {RUNNING, ""};
    const uint32_t cpu = r->rounds.tag, next = record->id;
    uint32_t prev = (uint32_t)record->extra;
    if (!r->calls.sched) r->calls.sched = fp_have(calloc(1, sizeof *r->calls.sched));
    struct fp_perfetto_sched *s = r->calls.sched;
    if (record->op == FP_PO_WAKE) return wake(r, next, out);
    fp_array_zeroed(&s->running, &s->cap_running, (uint64_t)cpu + 1, sizeof *s->running);
    if (record->op == FP_PO_TASK) return put_task(r, next, (uint64_t)record->extra, &s->running[cpu], out);
    const uint32_t ran = s->running[cpu] ? s->running[cpu] - 1 : NO_TRACK;
    if (prev == UNKNOWN) prev = ran;
    /* the switch to another thread, or away from this one, was lost */
    if (ran && ran != prev && ran != next) FP_TRY(set_state(r, ran, none, out));
    if (prev && prev != next) FP_TRY(set_state(r, prev, reason_of((uint64_t)record->extra >> 32), out));
    if (next) FP_TRY(set_state(r, next, runs, out));
    s->running[cpu] = next + 1;
    return FP_DONE;
}
