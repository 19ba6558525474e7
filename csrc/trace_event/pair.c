#include "trace_event/read_private.h"

void fp_trace_event_begin(struct fp_trace_event_read *r, const struct fp_trace_event_record *begin) {
    struct fp_trace_event_stack *s = &r->calls.stacks_of[begin->thread];
    if (s->n_unwound && s->unwound_at != begin->time) s->n_unwound = 0;
    fp_array_room(&s->calls, &s->cap, (uint64_t)s->n + s->n_unwound + 1, sizeof *s->calls);
    if (s->n_unwound) s->calls[s->n + s->n_unwound] = s->calls[s->n];
    s->calls[s->n++] = (struct fp_trace_event_open){begin->time, begin->order, begin->id, 0};
}

void fp_trace_event_argument(struct fp_trace_event_read *r, uint32_t thread, uint64_t value) {
    struct fp_trace_event_stack *s = &r->calls.stacks_of[thread];
    FP_PUSH(s->args, s->n_args, s->cap_args) = value;
    s->calls[s->n - 1].n_args++;
}

/* Ends the innermost call.  The records of its arguments follow its own. */
static void pop_call(struct fp_trace_event_read *r, uint32_t thread, int64_t end, int endless) {
    struct fp_trace_event_stack *s = &r->calls.stacks_of[thread];
    const struct fp_trace_event_open call = s->calls[s->n - 1];
    const int64_t duration = endless ? FP_TRACE_EVENT_ENDLESS : fp_trace_event_duration(call.time, end);
    for (uint32_t k = 0; k <= call.n_args; k++) {
        struct fp_trace_event_record *record = fp_trace_event_add(r);
        *record =
            (struct fp_trace_event_record){call.time, duration, call.order + k, thread, FP_OP_ENTER, call.function, 0};
        if (k) {
            const uint64_t value = s->args[s->n_args - call.n_args + k - 1];
            record->op = FP_OP_ARGUMENT;
            record->id = (uint32_t)value;
            record->type = (uint32_t)(value >> 32);
        } else if (call.n_args) {
            record->op = FP_OP_ENTER_ARGS;
        }
    }
    s->n_args -= call.n_args;
    s->n--;
}

/* Whether an end belongs to a call that the end of an outer one has unwound at the same time: ends of one time come in
 * any order.
 *
 *   B a 0, B b 0, B a 1, B b 1, E a 2, E b 2      the inner a and b end at 2; `E b 2` does not end the outer b
 */
static int ends_unwound(struct fp_trace_event_read *r, struct fp_trace_event_stack *s, int64_t time, uint32_t name) {
    if (s->unwound_at != time) s->n_unwound = 0;
    const uint32_t k = fp_trace_event_among(r, s->calls + s->n + s->n_unwound, s->n_unwound, name);
    if (!k) return 0;
    s->n_unwound--;
    s->calls[s->n + s->n_unwound + 1 - k] = s->calls[s->n + s->n_unwound];
    r->counts.unwound--;
    return 1;
}

void fp_trace_event_end(struct fp_trace_event_read *r, uint32_t thread, int64_t time, uint32_t name) {
    struct fp_trace_event_stack *s = &r->calls.stacks_of[thread];
    if (FP_UNLIKELY(s->n_unwound) && name != FP_NO_ID && ends_unwound(r, s, time, name)) return;
    const uint32_t ended = fp_trace_event_ended_by(r, s, name);
    r->counts.lost_ends += !ended;
    r->counts.nameless_ends += ended && name == FP_NO_ID;
    for (uint32_t k = 0; k < ended; k++) pop_call(r, thread, time, 0);
    if (FP_UNLIKELY(ended > 1 || (ended && s->n_unwound))) {
        /* the ended calls are still in memory; the last one takes the place of the one that this end names */
        r->counts.unwound += ended - 1;
        s->n_unwound = (s->unwound_at == time ? s->n_unwound : 0) + ended - 1;
        s->unwound_at = time;
        s->calls[s->n] = s->calls[s->n + s->n_unwound];
    }
}

void fp_trace_event_close(struct fp_trace_event_read *r) {
    for (; r->calls.closing < r->calls.cap_stacks; r->calls.closing++)
        while (r->calls.stacks_of[r->calls.closing].n) pop_call(r, r->calls.closing, 0, 1);
    fp_trace_event_async_close(r);
}
