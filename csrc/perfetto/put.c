/* Single rows: the begin or end of a call, and a sample. */
#include "perfetto/read_private.h"

uint32_t fp_perfetto_add_row(struct fp_perfetto_read *r, struct fp_batch *out, uint32_t op, uint64_t time,
                             uint32_t thread, uint32_t function) {
    r->n_rows++;
    return fp_batch_event(out, time, op, function, thread, 0);
}

int fp_perfetto_end_call(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, int64_t time,
                         struct fp_batch *out) {
    struct fp_perfetto_lane *l = &r->places[place].lanes[lane];
    uint32_t thread;
    if (r->data == FP_PERFETTO_OFF_CPU) {
        l->n--;
        return FP_DONE;
    }
    if (out->n == out->cap) return FP_FULL;
    if (!fp_perfetto_thread_of(r, place, lane, &thread)) return FP_NEEDS;
    fp_perfetto_add_row(r, out, FP_OP_EXIT, (uint64_t)time, thread, l->calls[l->n - 1].function);
    l->n--;
    return FP_DONE;
}

int fp_perfetto_begin_call(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, uint32_t op, uint32_t function,
                           int64_t end, struct fp_batch *out) {
    const int is_row = r->data != FP_PERFETTO_OFF_CPU;
    uint32_t thread = 0;
    if (is_row && out->n == out->cap) return FP_FULL;
    if (is_row && !fp_perfetto_thread_of(r, place, lane, &thread)) return FP_NEEDS;
    fp_perfetto_lane_room(&r->places[place], lane); /* without rows no thread was requested */
    struct fp_perfetto_lane *l = &r->places[place].lanes[lane];
    FP_PUSH(l->calls, l->n, l->cap) = (struct fp_perfetto_call){end, function, 0};
    if (is_row) fp_perfetto_add_row(r, out, op, r->rounds.time, thread, function);
    return FP_DONE;
}

int fp_perfetto_put_sample_row(struct fp_perfetto_read *r, uint32_t place, uint32_t stack, int64_t value,
                               struct fp_batch *out) {
    uint32_t thread;
    if (out->n == out->cap) return FP_FULL;
    if (!fp_perfetto_thread_of(r, place, 0, &thread)) return FP_NEEDS;
    out->values[fp_batch_sample(out, stack, thread, 0, r->rounds.time)] = value;
    r->n_rows++;
    return FP_DONE;
}
