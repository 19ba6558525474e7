#include "bridges/sums/in_time.h"

/* Precedes the values of a row, 8 bytes each. */
struct fp_in_time_head {
    uint32_t stack, thread, label, unused;
};
enum { HEAD = sizeof(struct fp_in_time_head), GROUP = 256 };

struct fp_in_time *fp_in_time_new(void) {
    return calloc(1, sizeof(struct fp_in_time));
}

void fp_in_time_free(struct fp_in_time *s) {
    fp_rounds_clear(&s->rounds);
    fp_buf_free(&s->record);
    free(s);
}

static int put_row(struct fp_in_time *s, const struct fp_batch *b, uint32_t i) {
    const struct fp_in_time_head head = {b->stack[i], b->thread[i], b->label[i], 0};
    const size_t n = HEAD + 8 * (size_t)b->n_values;
    s->record.n = 0;
    if (n > UINT32_MAX) fp_escape();
    fp_buf_reserve(&s->record, n);
    memcpy(s->record.p, &head, HEAD);
    for (uint32_t k = 0; k < b->n_values; k++)
        memcpy(s->record.p + HEAD + 8 * (size_t)k, &b->values[(size_t)k * b->cap + i], 8);
    return fp_rounds_put(&s->rounds, b->time[i], b->part, s->record.p, (uint32_t)n);
}

int fp_in_time_put(struct fp_in_time *s, struct fp_batch *b) {
    for (; s->row < b->n; s->row++) {
        if (!b->time[s->row]) continue;
        FP_TRY(put_row(s, b, s->row));
        s->rows++;
        s->labelled += b->label[s->row] != 0;
    }
    uint8_t keep[GROUP];
    uint32_t to = 0;
    for (uint32_t from = 0; from < b->n; from += GROUP) {
        const uint32_t n = b->n - from < GROUP ? b->n - from : GROUP;
        for (uint32_t i = 0; i < n; i++) keep[i] = !b->time[from + i];
        to = fp_batch_keep(b, to, from, keep, n);
    }
    b->n = to;
    s->row = 0;
    return FP_DONE;
}

int fp_in_time_take(struct fp_in_time *s, struct fp_batch *out) {
    fp_rounds_end(&s->rounds);
    while (out->n < out->cap) {
        const int status = s->is_out ? FP_FULL : fp_rounds_next(&s->rounds);
        if (status != FP_FULL) return status;
        s->is_out = 1;
        const uint32_t n_values = (s->rounds.n - HEAD) / 8;
        if (out->n && (out->part != s->rounds.tag || out->n_values != n_values)) return FP_FULL;
        if (out->n_values != n_values) fp_batch_set_values(out, n_values);
        struct fp_in_time_head head;
        memcpy(&head, s->rounds.p, HEAD);
        out->part = s->rounds.tag;
        const uint32_t row = fp_batch_sample(out, head.stack, head.thread, head.label, s->rounds.time);
        for (uint32_t k = 0; k < n_values; k++)
            memcpy(&out->values[(size_t)k * out->cap + row], s->rounds.p + HEAD + 8 * (size_t)k, 8);
        s->is_out = 0;
    }
    return FP_FULL;
}
