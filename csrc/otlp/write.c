#include "otlp/write.h"

#include <stdlib.h>

#include "otlp/write_private.h"

enum { SAMPLE = 2 };

struct fp_otlp_writer *fp_otlp_writer_new(struct fp_model *model) {
    struct fp_otlp_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->model = model;
    w->n_strings = w->n_stacks = 1;
    w->n_buffers = FP_OTLP_TABLE_BUFFERS;
    int failed = fp_array_zeroed(&w->buffers, &w->cap_buffers, w->n_buffers, sizeof *w->buffers) ||
                 fp_strings_init(&w->places) || fp_table_init(&w->out_functions, 4) ||
                 fp_table_init(&w->out_mappings, FP_MAPPING_WIDTH) ||
                 fp_table_init(&w->out_locations, FP_FRAME_WIDTH) || fp_table_init(&w->out_attributes, 6) ||
                 fp_table_init(&w->out_links, 2) || fp_table_init(&w->sets, 2);
    for (uint32_t k = 1; !failed && k < w->n_buffers; k++) /* entry 0 of each table is empty */
        failed = fp_wire_put_bytes(&w->buffers[k], k, "", 0);
    if (failed) {
        fp_otlp_writer_free(w);
        return NULL;
    }
    return w;
}

void fp_otlp_writer_free(struct fp_otlp_writer *w) {
    if (!w) return;
    for (uint32_t i = 0; w->buffers && i < w->n_buffers; i++) fp_buf_free(&w->buffers[i]);
    free(w->buffers);
    fp_strings_clear(&w->places);
    fp_unique_clear(&w->texts);
    fp_buf_free(&w->scratch);
    fp_buf_free(&w->entry);
    fp_buf_free(&w->attributes);
    fp_buf_free(&w->resource);
    fp_buf_free(&w->scope);
    free(w->strings);
    free(w->functions);
    free(w->frames);
    free(w->stacks);
    fp_table_clear(&w->out_functions);
    fp_table_clear(&w->out_mappings);
    fp_table_clear(&w->out_locations);
    fp_table_clear(&w->out_attributes);
    fp_table_clear(&w->out_links);
    fp_table_clear(&w->sets);
    free(w->written);
    fp_buf_free(&w->packed);
    free(w);
}

/* ---- labels ---- */

static int begins(const struct fp_model *m, uint32_t string, const char *with) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, string, &n);
    return n > strlen(with) && !memcmp(p, with, strlen(with));
}

/* Whether a label describes the resource that was measured. */
static int is_of_resource(const struct fp_model *m, uint32_t key) {
    static const char *const namespaces[] = {"service.", "process.",   "host.",       "container.", "k8s.",   "os.",
                                             "cloud.",   "telemetry.", "deployment.", "faas.",      "device."};
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        if (begins(m, key, namespaces[i])) return 1;
    return 0;
}

static const char SCOPE[] = "otel.scope.";

/* Writes a KeyValue as field `number`, without the first `skip` bytes of the key. */
static int put_key_value(struct fp_otlp_writer *w, struct fp_buf *to, uint32_t number, uint32_t key, size_t skip,
                         uint32_t string, int64_t value) {
    size_t n;
    uint64_t replaced = 0;
    const uint8_t *p = fp_unique_utf8(&w->texts, &w->scratch, &w->model->strings, key, &n, &replaced);
    if (!p) return FP_E_NOMEM;
    const size_t mark = fp_wire_begin(to, number);
    if (fp_wire_put_bytes(to, 1, p + skip, n - skip) || fp_otlp_put_value(w, to, 2, string, value)) return FP_E_NOMEM;
    return fp_wire_end(to, mark);
}

/* Writes a label of a scope: name and version are fields, others attributes. */
static int put_scope(struct fp_otlp_writer *w, uint32_t key, uint32_t string, int64_t value) {
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, key, &n);
    const size_t skip = sizeof SCOPE - 1;
    const int is_name = n - skip == 4 && !memcmp(p + skip, "name", 4);
    const int is_version = n - skip == 7 && !memcmp(p + skip, "version", 7);
    if (!string || !(is_name || is_version)) return put_key_value(w, &w->scope, 3, key, skip, string, value);
    uint64_t replaced = 0;
    p = fp_unique_utf8(&w->texts, &w->scratch, &w->model->strings, string, &n, &replaced);
    return p ? fp_wire_put_bytes(&w->scope, is_name ? 1 : 2, p, n) : FP_E_NOMEM;
}

static int pack(struct fp_otlp_writer *w, uint32_t id) {
    if (id == FP_NO_ID || fp_buf_reserve(&w->packed, 5)) return FP_E_NOMEM;
    w->packed.n = (size_t)(fp_varint(w->packed.p + w->packed.n, id) - w->packed.p);
    return 0;
}

/* Divides the labels of a chain among resource, scope and sample. */
static int put_labels(struct fp_otlp_writer *w, uint32_t label, uint32_t thread, struct fp_otlp_written *done) {
    const struct fp_model *m = w->model;
    const struct fp_otlp_keys *keys = &w->keys;
    const uint32_t *ids = fp_table_row(&m->threads, thread);
    uint32_t pid = ids[FP_THREAD_PID], tid = ids[FP_THREAD_TID], trace = 0, span = 0;
    for (uint32_t at = label; at; at = fp_table_row(&m->labels, at)[FP_LABEL_NEXT]) {
        const uint32_t *row = fp_table_row(&m->labels, at);
        if (row[FP_LABEL_KEY] == keys->process_pid) pid = 0;
        if (row[FP_LABEL_KEY] == keys->thread_id) tid = 0;
        if (row[FP_LABEL_KEY] == keys->trace_id) trace = row[FP_LABEL_STRING];
        if (row[FP_LABEL_KEY] == keys->span_id) span = row[FP_LABEL_STRING];
    }
    if ((done->link = fp_otlp_put_link(w, trace, span)) == FP_NO_ID) return FP_E_NOMEM;
    w->resource.n = w->scope.n = 0;
    int status = pid ? put_key_value(w, &w->resource, 1, keys->process_pid, 0, 0, pid) : 0;
    if (!status && tid) status = pack(w, fp_otlp_put_label(w, keys->thread_id, 0, tid, 0));
    for (uint32_t at = label; at && !status; at = fp_table_row(&m->labels, at)[FP_LABEL_NEXT]) {
        const uint32_t *row = fp_table_row(&m->labels, at);
        const uint32_t key = row[FP_LABEL_KEY], string = row[FP_LABEL_STRING], unit = row[FP_LABEL_UNIT];
        const int64_t number = (int64_t)fp_words_u64(row + FP_LABEL_NUMBER);
        if (done->link && (key == keys->trace_id || key == keys->span_id)) continue;
        if (!unit && is_of_resource(m, key))
            status = put_key_value(w, &w->resource, 1, key, 0, string, number);
        else if (!unit && begins(m, key, SCOPE))
            status = put_scope(w, key, string, number);
        else
            status = pack(w, fp_otlp_put_label(w, key, string, number, unit));
    }
    return status;
}

/* The place (resource and scope) of the labels just divided. */
static uint32_t place_of(struct fp_otlp_writer *w) {
    const uint32_t n = (uint32_t)w->resource.n;
    w->entry.n = 0;
    if (fp_buf_put(&w->entry, &n, sizeof n) || (n && fp_buf_put(&w->entry, w->resource.p, n)) ||
        (w->scope.n && fp_buf_put(&w->entry, w->scope.p, w->scope.n)))
        return FP_NO_ID;
    return fp_strings_intern(&w->places, w->entry.p, w->entry.n);
}

/* The label set of a row, divided at first use.  FP_NO_ID when memory ran out. */
static uint32_t set_of(struct fp_otlp_writer *w, uint32_t label, uint32_t thread) {
    const uint32_t before = w->sets.n;
    const uint32_t id = label || thread ? fp_table_intern(&w->sets, (uint32_t[]){label, thread}) : 0;
    if (id == FP_NO_ID) return id;
    if (id < before && id < w->cap_written && w->written[id].place) return id;
    if (fp_array_zeroed(&w->written, &w->cap_written, (uint64_t)id + 1, sizeof *w->written)) return FP_NO_ID;
    struct fp_otlp_written done = {.at = (uint32_t)w->packed.n};
    if (put_labels(w, label, thread, &done)) return FP_NO_ID;
    done.n = (uint32_t)(w->packed.n - done.at);
    done.place = place_of(w);
    if (done.place == FP_NO_ID || w->packed.n > UINT32_MAX) return FP_NO_ID;
    const uint64_t buffers = FP_OTLP_TABLE_BUFFERS + ((uint64_t)done.place + 1) * w->n_columns;
    if (buffers > UINT32_MAX || fp_array_zeroed(&w->buffers, &w->cap_buffers, buffers, sizeof *w->buffers))
        return FP_NO_ID;
    if (buffers > w->n_buffers) w->n_buffers = (uint32_t)buffers;
    w->written[id] = done;
    return id;
}

/* ---- samples ---- */

/* Writes the pending observations as a sample. */
static int put_sample(struct fp_otlp_writer *w) {
    const uint32_t n = w->n_pending;
    if (!n) return 0;
    const struct fp_otlp_written *set = &w->written[w->pending_set];
    struct fp_buf *to = &w->buffers[w->pending_buffer];
    int ones = w->times[0] != 0;
    for (uint32_t i = 0; ones && i < n; i++) ones = w->values[i] == 1;
    w->n_pending = 0;
    const size_t mark = fp_wire_begin(to, SAMPLE);
    fp_wire_put_nonzero(to, 1, w->pending_stack);
    if (set->n && fp_wire_put_bytes(to, 2, w->packed.p + set->at, set->n)) return FP_E_NOMEM;
    fp_wire_put_nonzero(to, 3, set->link);
    if (!ones) { /* timestamps without values count 1 each */
        const size_t values = fp_wire_begin(to, 4);
        if (fp_buf_reserve(to, 10 * (size_t)n)) return FP_E_NOMEM;
        uint8_t *p = to->p + to->n;
        for (uint32_t i = 0; i < n; i++) p = fp_varint(p, (uint64_t)w->values[i]);
        to->n = (size_t)(p - to->p);
        if (fp_wire_end(to, values)) return FP_E_NOMEM;
    }
    if (w->times[0] && fp_wire_put_bytes(to, 5, w->times, 8 * (size_t)n)) return FP_E_NOMEM;
    w->stats.samples++;
    return fp_wire_end(to, mark);
}

/* Adds an observation: it joins the pending ones if they belong to the same sample. */
static int put_value(struct fp_otlp_writer *w, uint32_t column, uint32_t stack, uint32_t set, int64_t value,
                     uint64_t time) {
    const uint32_t buffer = FP_OTLP_TABLE_BUFFERS + w->written[set].place * w->n_columns + column;
    const int joins = w->n_pending && w->n_pending < FP_OTLP_OBSERVATIONS && time && w->times[0] &&
                      buffer == w->pending_buffer && stack == w->pending_stack && set == w->pending_set;
    if (!joins) {
        if (put_sample(w)) return FP_E_NOMEM;
        w->pending_buffer = buffer;
        w->pending_stack = stack;
        w->pending_set = set;
    }
    w->values[w->n_pending] = value;
    w->times[w->n_pending++] = time;
    return 0;
}

/* Whether a buffer must be emptied: one of those that a row writes to. */
static int is_full(struct fp_otlp_writer *w) {
    for (uint32_t i = 1; i < FP_OTLP_TABLE_BUFFERS; i++)
        if (w->buffers[i].n >= FP_DRAIN) {
            w->full = i;
            return 1;
        }
    return 0;
}

int fp_otlp_put(struct fp_otlp_writer *w, const struct fp_batch *in, const int32_t *columns, struct fp_err *err) {
    for (; w->row < in->n; w->row++) {
        const uint32_t i = w->row;
        const uint32_t stack = fp_otlp_put_stack(w, in->stack[i]);
        const uint32_t set = stack == FP_NO_ID ? FP_NO_ID : set_of(w, in->label[i], in->thread[i]);
        if (set == FP_NO_ID) return fp_no_memory(err);
        int found = 0;
        for (uint32_t k = 0; k < w->n_columns; k++) {
            const int64_t value = columns[k] < 0 ? 0 : in->values[(size_t)columns[k] * in->cap + i];
            if (!value) continue;
            found = 1;
            if (put_value(w, k, stack, set, value, in->time[i])) return fp_no_memory(err);
        }
        if (!found && w->n_columns && put_value(w, 0, stack, set, 0, in->time[i])) return fp_no_memory(err);
        if (FP_UNLIKELY(w->buffers[w->pending_buffer].n >= FP_OTLP_BUFFER)) {
            w->full = w->pending_buffer;
            w->row++;
            return FP_FULL;
        }
        if (FP_UNLIKELY(is_full(w))) {
            w->row++;
            return FP_FULL;
        }
    }
    w->row = 0;
    return FP_DONE;
}

int fp_otlp_end(struct fp_otlp_writer *w, struct fp_err *err) {
    return put_sample(w) || fp_otlp_put_mappings(w) ? fp_no_memory(err) : FP_DONE;
}
