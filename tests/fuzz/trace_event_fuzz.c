/* Trace Event JSON under the fuzzer.  The last byte also chooses options, the one before it the size of a window; so a
 * file replays unchanged.  The calls read are nested and written, and the output must be read without complaint.
 */
#include "bridges/rows/nest.h"
#include "trace_event/read.h"
#include "trace_event/write.h"
#include "window.h"

struct output {
    struct fp_nest *nest;
    struct fp_trace_event_write *w;
    struct fp_batch *nested;
    struct fp_buf text;
};

static int write_nested(struct output *o) {
    struct fp_err err;
    int status;
    o->w->row = 0;
    struct fp_buf piece = {0};
    do {
        piece.n = 0;
        status = fp_trace_event_write_put(o->w, o->nested, &piece, &err);
        if (fp_buf_put(&o->text, piece.p, piece.n)) abort();
        if (status == FP_NEEDS) fp_trace_event_thread(o->w, o->w->new_thread, 1, o->w->new_thread + 1);
    } while (status > 0);
    fp_buf_free(&piece);
    fp_batch_reset(o->nested);
    return status;
}

/* FP_DONE, or FP_E_OVERFLOW for a time that cannot be written. */
static int pass_on(struct output *o, const struct fp_batch *b) {
    struct fp_err err;
    uint32_t from = 0;
    int status;
    do {
        status = b ? fp_nest_put(o->nest, b, &from, o->nested, &err) : fp_nest_end(o->nest, o->nested);
        if (status >= 0 && write_nested(o) < 0) return FP_E_OVERFLOW;
    } while (status == FP_FULL);
    return status;
}

/* The records to merge: sorted, and a copy, because paired calls overwrite the records. */
static struct fp_trace_event_record *merged(struct fp_trace_event_read *r, struct fp_trace_event_run *run) {
    const size_t size = r->n_records * sizeof *r->records;
    struct fp_trace_event_record *copy = malloc(size + 1);
    if (!copy) abort();
    fp_trace_event_sort(r);
    if (size) memcpy(copy, r->records, size);
    *run = (struct fp_trace_event_run){.records = copy, .n = r->n_records, .eof = 1};
    r->n_records = 0;
    r->runs = run;
    r->n_runs = 1;
    return copy;
}

static int run(const uint8_t *data, size_t size, uint8_t options, size_t step, struct fp_buf *written) {
    struct fp_model *m = fp_model_new();
    struct fp_trace_event_read *r = fp_trace_event_read_new(m, options & 1, options >> 1 & 1);
    struct fp_batch *batch = fp_batch_new(FP_TIMELINE, 1 + (options >> 4), 0);
    struct output o = {fp_nest_new(), fp_trace_event_write_new(m), fp_batch_new(FP_TIMELINE, 2, 0), {0}};
    struct fp_trace_event_run last;
    struct fp_trace_event_record *records = NULL;
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    o.w->args = options >> 2 & 1;
    r->lines = options >> 3 & 1;
    fp_buf_put(&o.text, "[", 1);
    int status = FP_MORE, writing = FP_DONE;
    for (;;) {
        struct fp_window *in = show(&window, status);
        while ((status = fp_trace_event_feed(r, in, batch, &err)) == FP_NEEDS) {
            if (r->request == FP_TRACE_EVENT_THREAD) {
                fp_chrome_set_thread(&r->thread_ids, fp_model_thread(m, 0, (uint32_t)r->thread_ids.pid.number,
                                                                     (uint32_t)r->thread_ids.tid.number));
            } else if (r->request == FP_TRACE_EVENT_NAME) {
                r->thread_ids.noted = 1;
            } else if (r->request == FP_TRACE_EVENT_LANE) {
                fp_trace_event_set_lane(r, fp_model_thread(m, 1, r->lane_of, r->lane));
            } else if (r->request == FP_TRACE_EVENT_TRACK) {
                fp_trace_event_set_track(r, fp_model_thread(m, 2, r->lane ? r->lane_of + 1 : r->category, r->lane));
            } else if (r->request == FP_TRACE_EVENT_MERGE) {
                static const uint32_t parts[4] = {0, 1, 2, 3};
                if (r->thread_ids.document && r->thread_ids.document < 4) r->parts = parts;
                free(records);
                records = merged(r, &last);
            } else {
                abort(); /* there are fewer records */
            }
        }
        hide(&window, status, &err);
        if (status >= 0 && writing == FP_DONE) writing = pass_on(&o, batch);
        fp_batch_reset(batch);
        if (status != FP_MORE && status != FP_FULL) break;
    }
    if (status == FP_DONE && writing == FP_DONE) writing = pass_on(&o, NULL);
    if (fp_trace_event_write_end(o.w, &o.text) || fp_buf_put(&o.text, "]", 1)) abort();
    if (written && status == FP_DONE && writing == FP_DONE)
        *written = o.text;
    else
        fp_buf_free(&o.text);
    fp_batch_free(o.nested);
    fp_nest_free(o.nest);
    fp_trace_event_write_free(o.w);
    fp_batch_free(batch);
    free(records);
    fp_trace_event_read_free(r);
    fp_model_free(m);
    return status;
}

#include "round_trip.h"
