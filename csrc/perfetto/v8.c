#include "perfetto/read_private.h"

/* Bytes of text before FP_PERFETTO_TEXT is requested. */
enum { ENOUGH = 1 << 18 };

/* Whether a text is a JSON object and nothing else, which can become a value of another object.  1 or 0. */
static int is_object(const uint8_t *p, size_t n) {
    enum { MORE_LEVELS = 8 }; /* of the text around it */
    struct fp_json json = {.loose = 1};
    struct fp_window in = {.p = p, .n = n, .eof = 1};
    struct fp_err err;
    if (!n || *p != '{') return 0;
    if (fp_json_value(&json, p, p + n) == p + n) return 1;
    while (!fp_json_next(&json, &in, &err)) {
        if (json.token == FP_JSON_END) return !json.rest;
        if (json.depth > FP_JSON_DEPTH - MORE_LEVELS) return 0;
        fp_json_take(&json, &in);
    }
    return 0;
}

static void put_text(struct fp_buf *to, const char *text) {
    fp_buf_put(to, text, strlen(text));
}

/* Appends a number after a key. */
static void put_number(struct fp_buf *to, const char *key, int64_t number) {
    uint8_t digits[24];
    put_text(to, key);
    fp_buf_put(to, digits, (size_t)(fp_put_signed(digits, number) - digits));
}

/* Appends JSON, whose line feeds become blanks: each line of the text is an event, by which errors are located.  A line
 * feed in a string would not be JSON. */
static void put_json(struct fp_buf *to, const uint8_t *p, size_t n) {
    const size_t at = to->n;
    fp_buf_put(to, p, n);
    uint8_t *feed = to->p + at;
    while ((feed = memchr(feed, '\n', (size_t)(to->p + to->n - feed)))) *feed = ' ';
}

int fp_perfetto_put_v8(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, const struct fp_perfetto_v8 *v) {
    struct fp_buf *to = &r->text;
    int64_t pid, tid;
    uint64_t replaced = 0;
    size_t n;
    const uint8_t *name = fp_string(&r->model->strings, v->name, &n);
    const size_t n_data = v->data ? v->n_data : 0;
    if (n_data && !is_object(v->data, n_data)) return FP_E_MALFORMED;
    fp_perfetto_owner(r, v->track, &pid, &tid);
    put_number(to, "\n{\"packet\":", (int64_t)k->at);
    put_text(to, ",\"ph\":\"P\",\"name\":\"");
    fp_json_text(to, name, n, &replaced);
    put_number(to, "\",\"id\":\"", v->id_kind);
    put_number(to, ":", (int64_t)v->id);
    put_text(to, "\"");
    if (pid >= 0) put_number(to, ",\"pid\":", pid);
    if (tid >= 0) put_number(to, ",\"tid\":", tid);
    if (v->has_time) {
        put_number(to, ",\"ts\":", v->time);
        put_text(to, "e-3");
    }
    if (n_data) {
        put_text(to, ",\"args\":{\"data\":");
        put_json(to, v->data, n_data);
        put_text(to, "}");
    }
    put_text(to, "},");
    if (to->n >= ENOUGH) r->feed.owes = FP_PERFETTO_TEXT;
    return 0;
}
