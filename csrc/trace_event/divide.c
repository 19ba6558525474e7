/* Calls that an annotation divides.  PyTorch's record_function begins within one Python function and ends within
 * another:
 *
 *     __enter__ 0-10, annotation 5-100, __exit__ 95-105
 *
 *     __enter__ 0-5, annotation 5-100 (__enter__ 5-10, __exit__ 95-100), __exit__ 100-105
 *
 * So all of them nest, and each has its time; in a lane of its own the annotation's time would count twice.  Functions
 * are divided, which then count as two calls; annotations are not.
 */
#include "trace_event/read_private.h"

static int is_annotation(const struct fp_trace_event_read *r, uint32_t function) {
    static const char category[] = "user_annotation";
    const struct fp_model *m = r->model;
    const uint32_t object = fp_table_row(&m->functions, function)[FP_FUNCTION_OBJECT];
    size_t n;
    const uint8_t *p = fp_string(&m->strings, fp_table_row(&m->objects, object)[FP_OBJECT_NAME], &n);
    return n == sizeof category - 1 && !memcmp(p, category, n);
}

enum fp_trace_event_overlap fp_trace_event_overlap(const struct fp_trace_event_read *r, int64_t end) {
    const struct fp_trace_event_lane *lane = r->lanes.lanes;
    if (r->merging.head.op != FP_OP_ENTER || end == INT64_MAX) return FP_TRACE_EVENT_ASIDE;
    const int annotates = is_annotation(r, r->merging.head.id);
    uint32_t n = 0;
    for (uint32_t i = lane->n; i-- && lane->calls[i].end < end;) {
        const struct fp_trace_event_call *call = &lane->calls[i];
        const int is_other = is_annotation(r, call->function) != annotates;
        const int divides_both = !annotates && call->rest >= end;
        if (++n == FP_TRACE_EVENT_DIVIDED || (!is_other && !divides_both)) return FP_TRACE_EVENT_ASIDE;
    }
    return annotates ? FP_TRACE_EVENT_DIVIDES : FP_TRACE_EVENT_IS_DIVIDED;
}

int fp_trace_event_divide(struct fp_trace_event_read *r, int64_t end, struct fp_batch *out) {
    struct fp_trace_event_lanes *l = &r->lanes;
    l->dividing = 1;
    l->again_at = r->merging.head.time;
    for (const struct fp_trace_event_lane *lane = l->lanes; lane->n && lane->calls[lane->n - 1].end < end;) {
        const struct fp_trace_event_call *call = &lane->calls[lane->n - 1];
        if (out->n == out->cap) return FP_FULL;
        fp_batch_event(out, fp_trace_event_shown(r, l->again_at), FP_OP_EXIT, call->function, l->thread, 0);
        l->again[l->n_again++] = *call;
        fp_trace_event_lane_pop(l, 0);
    }
    return out->n == out->cap ? FP_FULL : FP_DONE;
}

int fp_trace_event_enter_again(struct fp_trace_event_read *r, struct fp_batch *out) {
    struct fp_trace_event_lanes *l = &r->lanes;
    for (const struct fp_trace_event_lane *lane = l->lanes; l->n_again && !l->dividing;) {
        struct fp_trace_event_call call = l->again[l->n_again - 1];
        const int64_t end = lane->n ? lane->calls[lane->n - 1].end : INT64_MAX;
        if (end <= l->again_at) break; /* ends, too, and comes first */
        if (out->n == out->cap) return FP_FULL;
        call.end = end < call.rest ? end : call.rest;
        fp_trace_event_lane_push(l, 0, call);
        fp_batch_event(out, fp_trace_event_shown(r, l->again_at), FP_OP_ENTER, call.function, l->thread, 0);
        l->n_again--;
        r->counts.divided++;
    }
    return FP_DONE;
}
