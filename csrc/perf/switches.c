/* Off-CPU time: from the switch at which a thread leaves its CPU to the one at which it resumes.
 *
 *   SAMPLE sched:sched_switch   prev_pid 7, next_pid 9, time 100    7 leaves, at the stack of this sample; 9 resumes
 *   SWITCH, out (misc bit 13)   trailer: tid 7, time 101            the same switch again: 7 has left already
 *   SWITCH, in                  trailer: tid 7, time 350            7 resumes: a row of 250 ns at its stack
 *
 * A switch is reported by a sample of its tracepoint, a sample of context-switches or a record, in this order, and by
 * each at most once.  So if the same source reports a thread again, its return was not recorded.
 */
#include "perf/private.h"

void fp_perf_set_switched(struct fp_perf_reader *r, uint32_t event, uint32_t by, uint32_t prev_pid, uint32_t next_pid) {
    if (event >= r->events.n) return;
    r->events.list[event].switched_by = by;
    r->events.list[event].prev_pid = prev_pid;
    r->events.list[event].next_pid = next_pid;
}

void fp_perf_set_off_cpu_time(struct fp_perf_reader *r, uint32_t event) {
    if (event < r->events.n && r->events.list[event].attr.sample_type & FP_PERF_RAW)
        r->events.list[event].is_off_cpu_time = 1;
}

uint64_t fp_perf_waiting(const struct fp_perf_reader *r) {
    uint64_t n = 0;
    for (uint32_t i = 1; i < r->threads.ids.n && i < r->threads.cap; i++)
        n += r->threads.list[i].left && !r->threads.list[i].exited;
    return n;
}

/* Idle tasks and threads without an id have no off-CPU time. */
static int is_thread(uint32_t tid, uint64_t time) {
    return tid && tid != UINT32_MAX && time && time != UINT64_MAX;
}

/* Keeps the frames of the stack, leaf first, at which a thread leaves its CPU. */
static void keep_frames(const struct fp_perf_reader *r, struct fp_perf_thread *t, uint32_t stack) {
    t->n_left = 0;
    while (stack) {
        const uint32_t *node = fp_table_row(&r->model->stacks, stack);
        FP_PUSH(t->left_frames, t->n_left, t->cap_left) = node[FP_STACK_FRAME];
        stack = node[FP_STACK_PARENT];
    }
}

/* Records that the thread at a row leaves its CPU.  An exiting thread may switch a few more times. */
static void leave(struct fp_perf_reader *r, uint32_t row, uint32_t by, uint64_t time, uint32_t stack, uint32_t label) {
    struct fp_perf_thread *t = &r->threads.list[row];
    if (t->left && !(t->left_by & by)) {
        t->left_by |= by;
        return;
    }
    r->counts.switches++;
    r->counts.without_return += t->left != 0;
    t->left = time;
    t->left_by = by;
    t->left_label = label;
    keep_frames(r, t, stack);
}

/* Records that it resumes.  0, FP_FULL or FP_NEEDS. */
static int go_on(struct fp_perf_reader *r, uint32_t row, uint64_t time, struct fp_batch *out) {
    struct fp_perf_thread *t = &r->threads.list[row];
    if (!t->left) return 0;
    if (time < t->left || time - t->left > INT64_MAX) { /* clocks of CPUs differ, or the record is late */
        r->counts.without_return++;
        t->left = 0;
        return 0;
    }
    if (r->off_column >= out->n_values) {
        r->request = FP_PERF_COLUMNS;
        r->requested_event = FP_NO_ID;
        return FP_NEEDS;
    }
    if (out->n == out->cap) return FP_FULL;
    uint32_t stack = 0;
    for (uint32_t i = t->n_left; i--;) stack = fp_model_stack(r->model, stack, t->left_frames[i]);
    const uint32_t i = fp_perf_add_row(out, stack, t->thread, t->left_label, t->left);
    out->values[(size_t)r->off_column * out->cap + i] = (int64_t)(time - t->left);
    t->left = 0;
    return 0;
}

/* A pid in the raw data of a sample; 0 if absent. */
static uint32_t pid_at(const struct fp_perf_reader *r, const struct fp_perf_sample *s, uint32_t offset) {
    return offset && s->n_raw >= 4 && offset <= s->n_raw - 4 ? fp_u32s(s->raw + offset, r->swap) : 0;
}

int fp_perf_continue_next(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                          struct fp_batch *out) {
    const uint32_t pid = pid_at(r, s, e->next_pid);
    if (!is_thread(pid, s->time)) return 0;
    const uint32_t known = fp_table_find(&r->threads.prev_pids, &pid);
    return known ? go_on(r, r->threads.prev[known], s->time, out) : 0;
}

void fp_perf_leave_at(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                      uint32_t stack, uint32_t label) {
    if (!is_thread(s->tid, s->time)) return;
    const uint32_t row = fp_perf_thread(r, s->pid, s->tid), pid = pid_at(r, s, e->prev_pid);
    if (pid) {
        const uint32_t known = fp_table_intern(&r->threads.prev_pids, &pid);
        fp_array_zeroed(&r->threads.prev, &r->threads.cap_prev, r->threads.prev_pids.n, sizeof *r->threads.prev);
        r->threads.prev[known] = row;
    }
    leave(r, row, e->switched_by, s->time, stack, label);
}

int fp_perf_switch(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n,
                   struct fp_batch *out) {
    if (!e->tid_back) return 0;
    const struct fp_perf_sample s = {
        .pid = fp_u32s(p + n - e->tid_back, r->swap),
        .tid = fp_u32s(p + n - e->tid_back + 4, r->swap),
        .time = fp_perf_time(r, e, p, n),
        .cpu = UINT32_MAX,
    };
    uint32_t thread, label;
    if (!is_thread(s.tid, s.time)) return 0;
    fp_perf_thread_of(r, &s, &thread, &label);
    const uint32_t row = fp_perf_thread(r, s.pid, s.tid);
    if (!(fp_u16s(p + 4, r->swap) & FP_PERF_MISC_13)) return go_on(r, row, s.time, out);
    leave(r, row, FP_PERF_BY_RECORD, s.time, 0, label);
    return 0;
}
