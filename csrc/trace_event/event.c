/* Events that are read whole, without tokens: nearly all of a file.
 *
 *   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, "args": {"grid": [1, 1, 1]}}
 *
 * An event that is not complete in the window, is damaged or odd, or whose arguments are read, is read token by token.
 */
#include "trace_event/read_private.h"

/* Reads the time or id at p and returns its end; NULL if it is not a short number. */
static inline const uint8_t *number(struct fp_trace_event_read *r, const uint8_t *p, const uint8_t *end) {
    const int is_time = r->text.field == FP_TE_TS || r->text.field == FP_TE_DUR;
    int64_t value;
    if (!is_time && r->text.field != FP_TE_PID && r->text.field != FP_TE_TID) return NULL;
    if (!(p = fp_json_short_number(p, end, is_time ? 3 : 0, &value))) return NULL;
    switch (r->text.field) {
        case FP_TE_TS:
            r->event.ts = value;
            r->event.has_ts = 1;
            break;
        case FP_TE_DUR: r->event.dur = value; break;
        case FP_TE_PID: r->thread_ids.pid = (struct fp_chrome_id){FP_CHROME_NUMBER, 0, value}; break;
        default: r->thread_ids.tid = (struct fp_chrome_id){FP_CHROME_NUMBER, 0, value};
    }
    return p;
}

/* Reads the member at p into the event and returns its end; NULL: it must be read token by token. */
static const uint8_t *member(struct fp_trace_event_read *r, const uint8_t *p, const uint8_t *end, int *has_args) {
    struct fp_json *j = &r->json;
    struct fp_trace_event *e = &r->event;
    if (!(p = fp_json_value(j, p, end)) || j->token != FP_JSON_STRING || j->escaped) return NULL;
    r->text.field = fp_trace_event_field_of(j);
    e->keys = 1;
    e->has_stack |= r->text.field == FP_TE_STACK;
    p = fp_json_after_blanks(p, end);
    if (p == end || *p != ':') return NULL;
    p = fp_json_after_blanks(p + 1, end);
    const uint8_t *const after = number(r, p, end);
    if (after) return after;
    p = fp_json_value(j, p, end);
    if (!p || r->text.field == FP_TE_OTHER) return p;
    if (j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY)
        return (r->text.field == FP_TE_PH && j->escaped) || fp_trace_event_take_value(r) ? NULL : p;
    if (j->token == FP_JSON_OBJECT && r->text.field == FP_TE_ARGS)
        *has_args |= *fp_json_after_blanks(j->text + 1, p) != '}';
    return r->text.field == FP_TE_ID2 ? NULL : p;
}

int fp_trace_event_whole_event(struct fp_trace_event_read *r, const struct fp_window *in) {
    const uint8_t *const end = in->p + in->n, *p = in->p + r->json.end;
    int has_args = 0;
    for (;;) {
        p = fp_json_after_blanks(p, end);
        if (p < end && *p == '}') break;
        if (p == end || !(p = member(r, p, end, &has_args))) return 0;
        p = fp_json_after_blanks(p, end);
        if (p < end && *p == ',')
            p++;
        else if (p == end || *p != '}')
            return 0;
    }
    if (!r->event.ph || r->event.ph == 'M' || (has_args && fp_trace_event_has_args(r->event.ph))) return 0;
    r->event.other_args = (uint8_t)has_args;
    fp_json_whole(&r->json, (size_t)(p + 1 - in->p));
    return 1;
}
