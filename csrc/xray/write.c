#include "xray/write.h"

#include "xray/records.h"

/* A source other than an FDR log has no buffers, or very long ones: they end at this size. */
enum { MOST_NBYTES = 4 << 20 };

struct fp_xray_write *fp_xray_write_new(const struct fp_model *m) {
    struct fp_xray_write *w = calloc(1, sizeof *w);
    if (w) w->model = m;
    return w;
}

void fp_xray_write_free(struct fp_xray_write *w) {
    fp_buf_free(&w->body);
    FP_FREE(w->wall_us, w);
}

static uint8_t *put16(uint8_t *to, uint32_t v) {
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
    return to + 2;
}

static uint8_t *put32(uint8_t *to, uint32_t v) {
    return put16(put16(to, v & 0xffff), v >> 16);
}

static uint8_t *put64(uint8_t *to, uint64_t v) {
    return put32(put32(to, (uint32_t)v), (uint32_t)(v >> 32));
}

int fp_xray_write_header(struct fp_xray_write *w, uint64_t buffer_size, struct fp_buf *out) {
    fp_buf_reserve(out, 32);
    uint8_t *to = out->p + out->n;
    memset(to, 0, 32);
    to = put32(put16(put16(to, 5), 1), 3); /* version, FDR, constant and nonstop TSC */
    put64(put64(to, w->ticks_per_second), buffer_size);
    out->n += 32;
    return 0;
}

/* Appends a metadata record without a body, and returns where the body goes.  The
 * caller has made room. */
static uint8_t *metadata(struct fp_xray_write *w, uint8_t kind) {
    uint8_t *to = w->body.p + w->body.n;
    memset(to, 0, 16);
    *to = kind;
    w->body.n += 16;
    return to + 1;
}

static void new_cpu(struct fp_xray_write *w, uint32_t cpu, uint64_t time) {
    put64(put16(metadata(w, FP_XRAY_NEW_CPU), cpu), time);
    w->cpu = cpu;
    w->now = time;
}

static void close_buffer(struct fp_xray_write *w, struct fp_buf *out) {
    if (!w->thread) return;
    fp_buf_reserve(out, 16 + w->body.n);
    uint8_t *to = out->p + out->n;
    memset(to, 0, 16);
    *to = FP_XRAY_BUFFER_EXTENTS;
    put64(to + 1, w->body.n);
    memcpy(to + 16, w->body.p, w->body.n);
    out->n += 16 + w->body.n;
    w->body.n = 0;
    w->thread = 0;
    w->buffers++;
}

/* Makes up a wall clock for a buffer that has none in the source.  Readers sort the buffers of a thread by it, so it
 * must be later than the previous one. */
static uint64_t next_wall(const struct fp_xray_write *w, uint32_t thread, uint64_t time) {
    uint64_t hz = w->ticks_per_second ? w->ticks_per_second : 1000000000;
    uint64_t us = time / hz * 1000000 + (uint64_t)((double)(time % hz) * 1e6 / (double)hz);
    return us > w->wall_us[thread] ? us : w->wall_us[thread] + 1;
}

static void open_buffer(struct fp_xray_write *w, uint32_t thread, uint64_t wall_us, uint32_t cpu, uint64_t time) {
    const uint32_t pid = w->numbers[2 * (size_t)thread], tid = w->numbers[2 * (size_t)thread + 1];
    fp_buf_reserve(&w->body, 64);
    put32(metadata(w, FP_XRAY_NEW_BUFFER), tid);
    put32(put64(metadata(w, FP_XRAY_WALL_TIME), wall_us / 1000000), (uint32_t)(wall_us % 1000000));
    if (pid) put32(metadata(w, FP_XRAY_PID), pid);
    new_cpu(w, cpu, time);
    w->thread = thread + 1;
    w->wall_us[thread] = wall_us;
}

/* Ticks since the last record.  If they exceed 31 bits, or time goes back, a TSC wrap record sets the clock first, and
 * they are 0. */
static uint32_t delta_to(struct fp_xray_write *w, uint64_t time) {
    uint64_t delta = time - w->now;
    if (delta > INT32_MAX) {
        put64(metadata(w, FP_XRAY_TSC_WRAP), time);
        delta = 0;
    }
    w->now = time;
    return (uint32_t)delta;
}

static int put_event(struct fp_xray_write *w, const struct fp_batch *b, uint32_t i) {
    uint64_t slice = b->aux[i];
    uint32_t n = (uint32_t)slice;
    if (!n || n > INT32_MAX) {
        w->empty_events += !n;
        w->large_events += n > INT32_MAX;
        return 0;
    }
    fp_buf_reserve(&w->body, 48 + (size_t)n);
    uint32_t delta = delta_to(w, b->time[i]);
    int typed = b->op[i] == FP_OP_TYPED;
    uint8_t *to = put32(put32(metadata(w, typed ? FP_XRAY_TYPED_EVENT : FP_XRAY_CUSTOM_EVENT), n), delta);
    if (typed) {
        put16(to, b->function[i] & 0xffff);
        w->wide_types += b->function[i] > 0xffff;
    }
    return fp_buf_put(&w->body, fp_batch_bytes(b, slice), n);
}

int fp_xray_write_put(struct fp_xray_write *w, const struct fp_batch *b, struct fp_buf *out) {
    fp_array_zeroed(&w->wall_us, &w->n_wall, w->model->threads.n, sizeof *w->wall_us);
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t op = b->op[i], thread = b->thread[i];
        if (FP_UNLIKELY(fp_counter_value_of(b, i) > 0)) {
            w->counters++;
            continue;
        }
        int full = w->body.n > MOST_NBYTES && op != FP_OP_ARGUMENT;
        if (op == FP_OP_BUFFER || thread + 1 != w->thread || full) {
            uint64_t wall_us = op == FP_OP_BUFFER ? b->aux[i] : next_wall(w, thread, b->time[i]);
            close_buffer(w, out);
            open_buffer(w, thread, wall_us, b->cpu[i], b->time[i]);
        }
        if (op == FP_OP_BUFFER) continue;
        fp_buf_reserve(&w->body, 64);
        if (b->cpu[i] != w->cpu) new_cpu(w, b->cpu[i], b->time[i]);
        if (op <= FP_OP_ENTER_ARGS) {
            /* bit 0: 0; bits 1 to 3: kind, which is the op; bits 4 to 31: function */
            uint32_t word = op << 1 | w->ids[b->function[i]] << 4, delta = delta_to(w, b->time[i]);
            put32(put32(w->body.p + w->body.n, word), delta);
            w->body.n += 8;
        } else if (op == FP_OP_ARGUMENT) {
            put64(metadata(w, FP_XRAY_CALL_ARGUMENT), b->aux[i]);
        } else if (put_event(w, b, i)) {
            return FP_E_NOMEM;
        }
    }
    return 0;
}

int fp_xray_write_end(struct fp_xray_write *w, struct fp_buf *out) {
    close_buffer(w, out);
    return 0;
}
