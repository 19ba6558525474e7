#include "otlp/write.h"

#include "otlp/write_private.h"

enum { SAMPLE = 2 };

struct fp_otlp_writer *fp_otlp_writer_new(struct fp_model *model) {
    struct fp_otlp_writer *w = fp_made(sizeof *w);
    w->model = model;
    w->n_strings = w->n_stacks = 1;
    w->n_buffers = FP_OTLP_TABLE_BUFFERS;
    fp_array_zeroed(&w->buffers, &w->cap_buffers, w->n_buffers, sizeof *w->buffers);
    fp_strings_init(&w->places);
    fp_table_init(&w->out_functions, 4);
    fp_table_init(&w->out_mappings, FP_MAPPING_WIDTH);
    fp_table_init(&w->out_locations, FP_FRAME_WIDTH);
    fp_table_init(&w->out_attributes, 6);
    FP_INIT_TABLES(2, &w->out_links, &w->sets);
    for (uint32_t k = 1; k < w->n_buffers; k++)
        fp_wire_put_bytes(&w->buffers[k], k, "", 0); /* entry 0 of each table is empty */
    return w;
}

void fp_otlp_writer_free(struct fp_otlp_writer *w) {
    for (uint32_t i = 0; w->buffers && i < w->n_buffers; i++) fp_buf_free(&w->buffers[i]);
    fp_strings_clear(&w->places);
    fp_utf8_names_clear(&w->texts);
    FP_CLEAR_TABLES(&w->out_functions, &w->out_mappings, &w->out_locations, &w->out_attributes, &w->out_links,
                    &w->sets);
    FP_FREE_BUFFERS(&w->scratch, &w->entry, &w->attributes, &w->resource, &w->scope, &w->packed);
    FP_FREE(w->buffers, w->strings, w->functions, w->frames, w->stacks, w->written, w);
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
static void put_key_value(struct fp_otlp_writer *w, struct fp_buf *to, uint32_t number, uint32_t key, size_t skip,
                          uint32_t string, int64_t value) {
    size_t n;
    uint64_t replaced = 0;
    const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, key, &n, &replaced);
    const size_t mark = fp_wire_begin(to, number);
    fp_wire_put_bytes(to, 1, p + skip, n - skip);
    fp_otlp_put_value(w, to, 2, string, value);
    fp_wire_end(to, mark);
}

/* Writes a label of a scope: name and version are fields, others attributes. */
static void put_scope(struct fp_otlp_writer *w, uint32_t key, uint32_t string, int64_t value) {
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, key, &n);
    const size_t skip = sizeof SCOPE - 1;
    const int is_name = n - skip == 4 && !memcmp(p + skip, "name", 4);
    const int is_version = n - skip == 7 && !memcmp(p + skip, "version", 7);
    if (!string || !(is_name || is_version)) {
        put_key_value(w, &w->scope, 3, key, skip, string, value);
        return;
    }
    uint64_t replaced = 0;
    p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, string, &n, &replaced);
    fp_wire_put_bytes(&w->scope, is_name ? 1 : 2, p, n);
}

/* Divides the labels of a chain among resource, scope and sample. */
static void put_labels(struct fp_otlp_writer *w, uint32_t label, uint32_t thread, struct fp_otlp_written *done) {
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
    done->link = fp_otlp_put_link(w, trace, span);
    w->resource.n = w->scope.n = 0;
    if (pid) put_key_value(w, &w->resource, 1, keys->process_pid, 0, 0, pid);
    if (tid) fp_buf_varint(&w->packed, fp_otlp_put_label(w, keys->thread_id, 0, tid, 0));
    for (uint32_t at = label; at; at = fp_table_row(&m->labels, at)[FP_LABEL_NEXT]) {
        const uint32_t *row = fp_table_row(&m->labels, at);
        const uint32_t key = row[FP_LABEL_KEY], string = row[FP_LABEL_STRING], unit = row[FP_LABEL_UNIT];
        const int64_t number = (int64_t)fp_words_u64(row + FP_LABEL_NUMBER);
        if (done->link && (key == keys->trace_id || key == keys->span_id)) continue;
        if (!unit && is_of_resource(m, key))
            put_key_value(w, &w->resource, 1, key, 0, string, number);
        else if (!unit && begins(m, key, SCOPE))
            put_scope(w, key, string, number);
        else
            fp_buf_varint(&w->packed, fp_otlp_put_label(w, key, string, number, unit));
    }
}

/* The place (resource and scope) of the labels just divided. */
static uint32_t place_of(struct fp_otlp_writer *w) {
    const uint32_t n = (uint32_t)w->resource.n;
    w->entry.n = 0;
    fp_buf_put(&w->entry, &n, sizeof n);
    if (n) fp_buf_put(&w->entry, w->resource.p, n);
    if (w->scope.n) fp_buf_put(&w->entry, w->scope.p, w->scope.n);
    return fp_strings_intern(&w->places, w->entry.p, w->entry.n);
}

/* The label set of a row, divided at first use. */
static uint32_t set_of(struct fp_otlp_writer *w, uint32_t label, uint32_t thread) {
    const uint32_t before = w->sets.n;
    const uint32_t id = label || thread ? fp_table_intern(&w->sets, (uint32_t[]){label, thread}) : 0;
    if (id < before && id < w->cap_written && w->written[id].place) return id;
    fp_array_zeroed(&w->written, &w->cap_written, (uint64_t)id + 1, sizeof *w->written);
    struct fp_otlp_written done = {.at = (uint32_t)w->packed.n};
    put_labels(w, label, thread, &done);
    done.n = (uint32_t)(w->packed.n - done.at);
    done.place = place_of(w);
    const uint64_t buffers = FP_OTLP_TABLE_BUFFERS + ((uint64_t)done.place + 1) * w->n_columns;
    if (buffers > UINT32_MAX || w->packed.n > UINT32_MAX) (void)fp_escape();
    fp_array_zeroed(&w->buffers, &w->cap_buffers, buffers, sizeof *w->buffers);
    if (buffers > w->n_buffers) w->n_buffers = (uint32_t)buffers;
    w->written[id] = done;
    return id;
}

/* ---- samples ---- */

/* Writes the pending observations as a sample. */
static void put_sample(struct fp_otlp_writer *w) {
    const uint32_t n = w->n_pending;
    if (!n) return;
    const struct fp_otlp_written *set = &w->written[w->pending_set];
    struct fp_buf *to = &w->buffers[w->pending_buffer];
    int ones = w->times[0] != 0;
    for (uint32_t i = 0; ones && i < n; i++) ones = w->values[i] == 1;
    w->n_pending = 0;
    const size_t mark = fp_wire_begin(to, SAMPLE);
    fp_wire_put_nonzero(to, 1, w->pending_stack);
    if (set->n) fp_wire_put_bytes(to, 2, w->packed.p + set->at, set->n);
    fp_wire_put_nonzero(to, 3, set->link);
    if (!ones) { /* timestamps without values count 1 each */
        const size_t values = fp_wire_begin(to, 4);
        fp_buf_reserve(to, 10 * (size_t)n);
        uint8_t *p = to->p + to->n;
        for (uint32_t i = 0; i < n; i++) p = fp_varint(p, (uint64_t)w->values[i]);
        to->n = (size_t)(p - to->p);
        fp_wire_end(to, values);
    }
    if (w->times[0]) fp_wire_put_bytes(to, 5, w->times, 8 * (size_t)n);
    w->stats.samples++;
    fp_wire_end(to, mark);
}

/* Adds an observation: it joins the pending ones if they belong to the same sample. */
static void put_value(struct fp_otlp_writer *w, uint32_t column, uint32_t stack, uint32_t set, int64_t value,
                      uint64_t time) {
    const uint32_t buffer = FP_OTLP_TABLE_BUFFERS + w->written[set].place * w->n_columns + column;
    const int joins = w->n_pending && w->n_pending < FP_OTLP_OBSERVATIONS && time && w->times[0] &&
                      buffer == w->pending_buffer && stack == w->pending_stack && set == w->pending_set;
    if (!joins) {
        put_sample(w);
        w->pending_buffer = buffer;
        w->pending_stack = stack;
        w->pending_set = set;
    }
    w->values[w->n_pending] = value;
    w->times[w->n_pending++] = time;
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

int fp_otlp_put(struct fp_otlp_writer *w, const struct fp_batch *in, const int32_t *columns) {
    for (; w->row < in->n; w->row++) {
        const uint32_t i = w->row;
        const uint32_t stack = fp_otlp_put_stack(w, in->stack[i]);
        const uint32_t set = set_of(w, in->label[i], in->thread[i]);
        int found = 0;
        for (uint32_t k = 0; k < w->n_columns; k++) {
            const int64_t value = columns[k] < 0 ? 0 : in->values[(size_t)columns[k] * in->cap + i];
            if (!value) continue;
            found = 1;
            put_value(w, k, stack, set, value, in->time[i]);
        }
        if (!found && w->n_columns) put_value(w, 0, stack, set, 0, in->time[i]);
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

int fp_otlp_end(struct fp_otlp_writer *w) {
    put_sample(w);
    fp_otlp_put_mappings(w);
    return FP_DONE;
}
