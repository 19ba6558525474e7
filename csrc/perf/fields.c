/* Fields of tracepoints, as the recording describes them: each becomes a label.
 *
 *   field:pid_t next_pid;  offset:56;  size:4;  signed:1;      label next_pid: 4711
 *   field:char next_comm[16];  offset:40;  size:16;  signed:0; label next_comm: "python", up to the NUL
 *   field:unsigned long args[6];  offset:16;  size:48;  signed:0;  label args: "3,140729,0,0,0,0"
 *   field:__data_loc char[] filename;  offset:8;  size:4;      u32: low half offset, high half length of the text
 *   field:__data_loc u32[] ids;  offset:8;  size:4;            the same for numbers: label ids: "17,4"
 *   field:__rel_loc char[] filename;  offset:8;  size:4;       the same, but the offset counts from the field's end, 12
 */
#include "perf/private.h"

enum { MOST_LABELS = 1 << 18, MOST_TEXT = 1024 };

int fp_perf_add_field(struct fp_perf_reader *r, uint32_t event, const struct fp_perf_field *field) {
    struct fp_perf_event *e = &r->events.list[event];
    FP_PUSH(e->fields, e->n_fields, e->cap_fields) = *field;
    return 0;
}

/* A number of up to 8 bytes. */
static int64_t number_of(const uint8_t *p, uint32_t size, int is_signed, int swap) {
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++) v |= (uint64_t)p[swap ? size - 1 - i : i] << 8 * i;
    const uint32_t unused = 64 - 8 * size;
    return is_signed ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

/* A label with a text of at most n bytes. */
static uint32_t text_label(struct fp_perf_reader *r, uint32_t label, uint32_t key, const uint8_t *p, uint32_t n) {
    const uint32_t most = n < MOST_TEXT ? n : MOST_TEXT;
    const uint8_t *end = most ? memchr(p, 0, most) : NULL;
    const uint32_t text = fp_strings_intern(&r->model->strings, p, end ? (size_t)(end - p) : most);
    return fp_model_label(r->model, label, key, text, 0, 0);
}

static int is_signed(const struct fp_perf_field *f) {
    return f->kind == FP_PERF_SIGNED || f->kind == FP_PERF_SIGNED_ELSEWHERE || f->kind == FP_PERF_SIGNED_AFTER;
}

/* Whether a field holds the offset of its value: 0 no, 1 from the start of the raw data, 2 from the field's end. */
static int is_elsewhere(const struct fp_perf_field *f) {
    switch (f->kind) {
        case FP_PERF_TEXT_ELSEWHERE:
        case FP_PERF_UNSIGNED_ELSEWHERE:
        case FP_PERF_SIGNED_ELSEWHERE: return 1;
        case FP_PERF_TEXT_AFTER:
        case FP_PERF_UNSIGNED_AFTER:
        case FP_PERF_SIGNED_AFTER: return 2;
        default: return 0;
    }
}

static int is_text(const struct fp_perf_field *f) {
    return f->kind == FP_PERF_TEXT || f->kind == FP_PERF_TEXT_ELSEWHERE || f->kind == FP_PERF_TEXT_AFTER;
}

/* A label with the numbers of an array of n bytes, as many as fit. */
static uint32_t array_label(struct fp_perf_reader *r, uint32_t label, const struct fp_perf_field *f, const uint8_t *p,
                            uint32_t n) {
    enum { MOST_DIGITS = 32 }; /* with sign and comma, and what fp_put_decimal writes after them */
    uint8_t text[MOST_TEXT], *to = text;
    for (uint32_t at = 0; n - at >= f->each && MOST_TEXT - (to - text) >= MOST_DIGITS; at += f->each) {
        const int64_t v = number_of(p + at, f->each, is_signed(f), r->swap);
        if (at) *to++ = ',';
        to = is_signed(f) ? fp_put_signed(to, v) : fp_put_decimal(to, (uint64_t)v);
    }
    return text_label(r, label, f->key, text, (uint32_t)(to - text));
}

/* Adds a field to the label set `label`; returns the same set if the sample ends before the field. */
static uint32_t field_label(struct fp_perf_reader *r, const struct fp_perf_field *f, const struct fp_perf_sample *s,
                            uint32_t label) {
    if (f->size > s->n_raw || f->offset > s->n_raw - f->size) return label;
    const uint8_t *p = s->raw + f->offset;
    const int elsewhere = is_elsewhere(f);
    uint32_t n = f->size;
    if (elsewhere) {
        const uint32_t place = fp_u32s(p, r->swap), at = (place & 0xffff) + (elsewhere == 2 ? f->offset + f->size : 0);
        n = place >> 16;
        if (n > s->n_raw || at > s->n_raw - n) return label;
        p = s->raw + at;
    }
    if (is_text(f)) return text_label(r, label, f->key, p, n);
    if (f->is_array || elsewhere) return array_label(r, label, f, p, n);
    return fp_model_label(r->model, label, f->key, 0, number_of(p, f->each, is_signed(f), r->swap), 0);
}

uint32_t fp_perf_field_labels(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                              uint32_t label) {
    for (uint32_t i = 0; i < e->n_fields; i++) label = field_label(r, &e->fields[i], s, label);
    return label;
}

int fp_perf_has_room_for_fields(const struct fp_perf_reader *r) {
    return r->model->labels.n < MOST_LABELS;
}
