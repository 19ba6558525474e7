/* Fuzz target: writers.  The input is a program that fills a model and a batch, which becomes every format of its view.
 * Checked besides memory: our own readers accept the output, strictly, and get the same sums; all code paths of the
 * Callgrind writer give the same bytes; an archive restores the same payload, also from a difference to another.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/archive.h"
#include "callgrind/write.h"
#include "core/wire.h"
#include "firefox/write.h"
#include "folded/write.h"
#include "gperftools/read.h"
#include "gperftools/write.h"
#include "perfetto/write.h"
#include "pprof/read.h"
#include "pprof/write.h"
#include "program.h"
#include "speedscope/read.h"
#include "speedscope/write.h"
#include "xray/read.h"
#include "xray/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* FEW_ROWS: of a timeline.  With more, an archive chooses tables of times, which is slow: archive_fuzz.c. */
enum { ROWS = 48, FEW_ROWS = 31, VALUES = 3 };

#define must(ok) ((ok) ? (void)0 : failed(#ok, __LINE__))

static void failed(const char *what, int line) {
    fprintf(stderr, "line %d: not %s\n", line, what);
    abort();
}

/* ---- stacks ---- */

/* Adds column k; modulo 2^64. */
static uint64_t sum_of(const struct fp_batch *b, uint32_t k) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->n; i++) sum += (uint64_t)b->values[(size_t)k * b->cap + i];
    return sum;
}

static void to_pprof(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    static const int32_t columns[VALUES] = {0, 1, 2};
    struct fp_pprof_writer *w = fp_pprof_writer_new(m);
    struct fp_buf out = {0};
    struct fp_err err;
    w->name_addresses = options & 1;
    w->words.no_stack = fp_strings_intern(&m->strings, "[no stack]", 10);
    if (options & 2) w->words.tid = fp_strings_intern(&m->strings, "tid", 3);
    must(!fp_buf_put(&out, "\x32\x00", 2));
    for (uint32_t k = 0; k < VALUES; k++) must(!fp_buf_put(&out, "\x0a\x00", 2));
    must(fp_pprof_put(w, b, columns, VALUES, &out) == FP_DONE);
    must(fp_pprof_mappings(w, options % m->objects.n, &out) == FP_DONE);
    fp_pprof_writer_free(w);

    struct fp_model *again = fp_model_new();
    struct fp_pprof_reader *r = fp_pprof_reader_new(again, 0);
    struct fp_batch *rows = fp_batch_new(FP_STACKS, ROWS + 1, VALUES);
    struct fp_window in = {out.p, out.n, 0, 0, 1};
    must(fp_pprof_tables(r, &in, &err) == FP_DONE && !fp_pprof_resolve(r, &err));
    in.pos = 0;
    must(fp_pprof_feed(r, &in, rows, &err) == FP_DONE && rows->n == b->n);
    for (uint32_t k = 0; k < VALUES; k++) must(sum_of(rows, k) == sum_of(b, k));
    fp_batch_free(rows);
    fp_pprof_reader_free(r);
    fp_model_free(again);
    fp_buf_free(&out);
}

static void to_gperftools(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    static const uint64_t head[5] = {0, 3, 0, 1, 0}, trailer[3] = {0, 1, 0};
    struct fp_gperftools_writer w = {.model = m, .period_ns = 1000, .unit_ns = options & 1};
    struct fp_buf out = {0};
    struct fp_err err;
    must(!fp_buf_put(&out, head, sizeof head));
    if (fp_gperftools_put(&w, b, 0, &out, &err) == FP_DONE) {
        must(!fp_buf_put(&out, trailer, sizeof trailer));
        struct fp_model *again = fp_model_new();
        struct fp_gperftools_reader *r = fp_gperftools_reader_new(again, 0);
        struct fp_window in = {out.p, out.n, 0, 0, 1};
        int status;
        while ((status = fp_gperftools_feed(r, &in, &err)) == FP_NEEDS && r->line_n) in.pos += r->line_n;
        must(status == FP_NEEDS || status == FP_E_OVERFLOW); /* counts of equal stacks are summed */
        must(status != FP_NEEDS || r->stats.records == w.rows);
        fp_gperftools_reader_free(r);
        fp_model_free(again);
    }
    fp_buf_free(&out);
}

static void to_folded(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    struct fp_folded_writer *w = fp_folded_writer_new(m);
    struct fp_buf out = {0};
    struct fp_err err;
    w->divisor = 1 + options % 3;
    if (options & 4) must(!fp_folded_root(w, m->strings.n - 1));
    must(fp_folded_put(w, b, &out, &err) == FP_DONE);
    must(!out.n || out.p[out.n - 1] == '\n');
    uint64_t lines = 0;
    for (size_t i = 0; i < out.n; i++) lines += out.p[i] == '\n';
    must(lines == w->stats.lines);
    fp_folded_writer_free(w);
    fp_buf_free(&out);
}

/* ---- graphs ---- */

/* The body lines of one part, or of two. */
static void body(struct fp_model *m, const struct fp_batch *b, uint32_t options, uint32_t wide, struct fp_buf *out) {
    struct fp_callgrind_body w = {0};
    w.model = m;
    w.out = out;
    w.compress_names = options & 1;
    w.compress_positions = options >> 1 & 1;
    w.wide = wide;
    for (uint32_t part = 0; part <= (options >> 2 & 1); part++) {
        const uint32_t instr = options >> 3 & 1, lines = options >> 4 & 1, bb = options >> 5 & 1;
        fp_callgrind_body_start_part(&w, b->n_values, instr, bb, lines || (!instr && !bb), options >> 6 & 1);
        must(!fp_callgrind_body_put(&w, b) && !fp_callgrind_body_end_part(&w));
    }
    fp_callgrind_body_free(&w);
}

static void to_callgrind(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    struct fp_buf plain = {0};
    body(m, b, options, 0, &plain);
    must(!plain.n || plain.p[plain.n - 1] == '\n');
    for (uint32_t wide = 1; wide <= fp_callgrind_costs_wide(); wide++) {
        struct fp_buf out = {0};
        body(m, b, options, wide, &out);
        must(out.n == plain.n && (!out.n || !memcmp(out.p, plain.p, out.n)));
        fp_buf_free(&out);
    }
    fp_buf_free(&plain);
}

/* A column that is the sum of others, like those of --compute-events. */
static void combine(struct program *g, struct fp_batch *b) {
    int64_t factors[VALUES];
    for (uint32_t k = 0; k < VALUES; k++) factors[k] = (int64_t)number(g);
    if (fp_batch_set_values(b, VALUES + 1)) abort();
    const int64_t divisor = 1 + (b->n & 7);
    if (fp_batch_combine(b, VALUES, factors, VALUES, divisor) != FP_DONE) return;
    for (uint32_t i = 0; i < b->n; i++) {
        __int128 sum = 0;
        for (uint32_t k = 0; k < VALUES && b->kind[i] <= FP_CALL; k++)
            sum += (__int128)factors[k] * b->values[(size_t)k * b->cap + i];
        const __int128 rest = sum % divisor;
        sum = sum / divisor + (2 * rest >= divisor) - (2 * rest <= -divisor);
        must(sum == b->values[(size_t)VALUES * b->cap + i]);
    }
}

/* ---- timelines ---- */

/* Reads every buffer in the order of the index; the sums must equal those written. */
static void read_xray(const struct fp_buf *log, const uint64_t *written) {
    struct fp_model *m = fp_model_new();
    struct fp_xray *x = fp_xray_new(m, 1);
    struct fp_batch *b = fp_batch_new(FP_TIMELINE, 7, 0);
    struct fp_summary s = {.first_time = UINT64_MAX};
    struct fp_err err;
    size_t head;
    uint64_t next, at, nbytes;
    must(!fp_xray_header(x, log->p, log->n, &head, &err) && x->mode == FP_XRAY_FDR);
    next = head;
    for (int status = FP_MORE; status == FP_MORE;) {
        must(next <= log->n);
        struct fp_window in = {log->p + next, log->n - next, 0, next, 1};
        status = fp_xray_index(x, &in, log->n, &next, &err);
        must(status >= 0);
    }
    while (fp_xray_range(x, 0, &at, &nbytes)) {
        struct fp_window in = {log->p + at, nbytes, 0, at, 1};
        int status;
        do {
            status = fp_xray_feed(x, &in, b, &err);
            if (status == FP_NEEDS) must(!fp_xray_define(x, x->requested, 0));
            if (status == FP_NEEDS) continue;
            must(status >= 0 && fp_batch_summarize(b, &s) == FP_DONE);
            fp_batch_reset(b);
        } while (status == FP_NEEDS || status == FP_FULL);
        must(status == FP_DONE);
    }
    must(s.rows[FP_OP_CUSTOM] == written[FP_OP_CUSTOM] && s.rows[FP_OP_TYPED] == written[FP_OP_TYPED]);
    must(s.rows[FP_OP_ENTER] + s.rows[FP_OP_ENTER_ARGS] == written[FP_OP_ENTER] + written[FP_OP_ENTER_ARGS]);
    fp_batch_free(b);
    fp_xray_free(x);
    fp_model_free(m);
}

static void to_xray(const struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    struct fp_xray_write *w = fp_xray_write_new(m);
    uint32_t *ids = malloc(m->functions.n * sizeof *ids);
    uint32_t *numbers = malloc(m->threads.n * 2 * sizeof *numbers);
    struct fp_buf out = {0};
    struct fp_summary s = {.first_time = UINT64_MAX};
    for (uint32_t i = 0; i < m->functions.n; i++) ids[i] = i;
    for (uint32_t i = 0; i < m->threads.n; i++) {
        numbers[2 * i] = fp_table_row(&m->threads, i)[FP_THREAD_PID];
        numbers[2 * i + 1] = fp_table_row(&m->threads, i)[FP_THREAD_TID];
    }
    w->numbers = numbers;
    w->ids = ids;
    w->n_ids = m->functions.n;
    w->ticks_per_second = options;
    must(!fp_xray_write_header(w, 4096, &out) && !fp_xray_write_put(w, b, &out) && !fp_xray_write_end(w, &out));
    must(fp_batch_summarize(b, &s) == FP_DONE);
    if (!w->empty_events && !w->large_events) read_xray(&out, s.rows);
    fp_buf_free(&out);
    free(ids);
    free(numbers);
    fp_xray_write_free(w);
}

static void text(struct fp_buf *out, const char *p) {
    must(!fp_buf_put(out, p, strlen(p)));
}

/* Each thread's calls as a profile; our reader gets the same numbers of entries and exits. */
static void to_speedscope(struct fp_model *m, const struct fp_batch *b) {
    struct fp_speedscope *w = fp_speedscope_new(m);
    struct fp_buf out = {0};
    struct fp_err err;
    uint32_t from = 0;
    must(!fp_speedscope_calls(w, b));
    text(&out, "{\"profiles\":[");
    for (uint32_t i = 0; i < w->n_groups; i++) {
        struct fp_window in = {w->groups[i].packed.p, w->groups[i].packed.n, 0, 0, 1};
        int status;
        text(&out, i ? "," : "");
        text(&out, "{\"type\":\"evented\",\"startValue\":0,\"endValue\":9e18,\"events\":[");
        fp_speedscope_begin(w, i, 0);
        while ((status = fp_speedscope_put_calls(w, &in, &out)) == FP_FULL) {
        }
        must(status == FP_DONE);
        text(&out, "]}");
    }
    text(&out, "],\"shared\":{\"frames\":[");
    must(fp_speedscope_put_frames(w, &from, &out) == FP_DONE);
    text(&out, "]}}");

    struct fp_model *again = fp_model_new();
    struct fp_speedscope_read *r = fp_speedscope_read_new(again, 0);
    struct fp_batch *rows = fp_batch_new(FP_TIMELINE, 512, 0);
    struct fp_window in = {out.p, out.n, 0, 0, 1};
    must(fp_speedscope_feed(r, &in, rows, &err) == FP_DONE && r->n_profiles == w->n_groups);
    for (uint32_t i = 0; i < r->n_profiles; i++) r->profiles[i].wanted = 1;
    fp_speedscope_again(r);
    in.pos = 0;
    must(fp_speedscope_feed(r, &in, rows, &err) == FP_DONE && rows->n == w->calls);
    fp_batch_free(rows);
    fp_speedscope_read_free(r);
    fp_model_free(again);
    fp_buf_free(&out);
    fp_speedscope_free(w);
}

/* A trace is packets, each of them a message, which ends where the next one begins. */
static void to_perfetto(const struct fp_model *m, const struct fp_batch *b) {
    struct fp_perfetto *w = fp_perfetto_new(m);
    struct fp_buf out = {0};
    struct fp_wire_field f;
    int status;
    must(!fp_perfetto_process(1, 7, "p", 1, &out));
    while ((status = fp_perfetto_put(w, b, &out)) == FP_NEEDS)
        must(!fp_perfetto_thread(w->new_thread, 1, 7, w->new_thread, "t", 1, &out) &&
             !fp_perfetto_begin(w, w->new_thread, &out));
    must(status == FP_DONE && !fp_perfetto_end(w, &out));
    for (const uint8_t *p = out.p, *end = out.p + out.n; p < end; p = f.p + f.n)
        must(fp_wire_read_head(p, end, &f) > 0 && f.number == 1 && f.n <= (size_t)(end - f.p));
    fp_buf_free(&out);
    fp_perfetto_free(w);
}

/* Spills the buffers, times as text. */
static void to_firefox(struct fp_model *m, const struct fp_batch *b, uint32_t options) {
    static const int32_t columns[VALUES] = {2, 0, -1};
    const int32_t units[VALUES] = {(int32_t)options % 4, FP_FIREFOX_SECONDS, 0};
    struct fp_firefox *w = fp_firefox_new(m);
    struct fp_buf out = {0};
    w->unknown = fp_strings_intern(&m->strings, "[unknown]", 9);
    w->no_stack = fp_strings_intern(&m->strings, "[no stack]", 10);
    w->custom = w->typed = w->unknown;
    w->units = units;
    w->n_values = b->view == FP_TIMELINE ? 0 : VALUES;
    if (options & 4) w->max_paths = 3;
    must(fp_firefox_put(w, b, columns) == FP_DONE);
    if (b->view == FP_TIMELINE) must(fp_firefox_end(w) == FP_DONE);
    for (uint32_t i = 0; i < w->n_dirty; i++) {
        const struct fp_buf *column = &w->columns[w->dirty[i]];
        must(column->n);
        if (w->dirty[i] < FP_FIREFOX_SHARED || b->view != FP_TIMELINE) continue;
        if ((w->dirty[i] - FP_FIREFOX_SHARED) % FP_FIREFOX_STRIDE == FP_FIREFOX_MARKER_TIME)
            must(!fp_firefox_times(column->p, column->n / 8, 0, &out));
    }
    must(!fp_firefox_repeat("null,", 5, options, &out) && !fp_firefox_count(options, options + 12, &out));
    fp_firefox_spilled(w);
    must(!w->n_dirty && !w->buffered);
    fp_buf_free(&out);
    fp_firefox_free(w);
}

/* ---- archives ---- */

static void payload_of(const struct fp_batch *b, uint32_t positions, struct fp_buf *out) {
    struct fp_archive_enc *e = fp_archive_enc_new(b->view);
    struct fp_err err;
    must(!fp_archive_enc_put(e, b, positions, &err) && !fp_archive_enc_flush(e, out));
    fp_archive_enc_free(e);
}

/* The payload of other rows is restored from its difference to `base`. */
static void differ(const struct fp_buf *base, const struct fp_buf *payload) {
    struct fp_buf diff = {0}, again = {0};
    if (fp_archive_diff(base->p, base->n, payload->p, payload->n, NULL, 0, &diff) == FP_DONE) {
        must(!fp_archive_undiff(base->p, base->n, diff.p, diff.n, NULL, 0, &again));
        must(again.n == payload->n && !memcmp(again.p, payload->p, again.n));
    }
    fp_buf_free(&diff);
    fp_buf_free(&again);
}

static void to_archive(struct program *g, const struct fp_model *m, struct fp_batch *b, uint32_t positions) {
    struct fp_model *again = fp_model_new();
    struct fp_archive_ids *ids = fp_archive_ids_new(again);
    struct fp_archive_dec *d = fp_archive_dec_new(ids);
    struct fp_batch *rows = fp_batch_new(b->view, ROWS, b->n_values);
    uint32_t from[FP_ARCHIVE_TABLES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fp_buf tables = {0}, payload = {0}, other = {0};
    struct fp_err err;
    must(!fp_archive_tables_write(m, from, 0, &tables) && !fp_archive_tables_read(ids, tables.p, tables.n, &err));
    payload_of(b, positions, &payload);
    must(!fp_archive_dec_open(d, payload.p, payload.n, 1, &err));
    must(fp_archive_dec_feed(d, rows, &err) >= 0 && rows->n == b->n);
    payload_of(rows, positions, &other);
    must(other.n == payload.n && !memcmp(other.p, payload.p, other.n));
    /* a later dump: some rows changed */
    for (uint32_t changes = take(g) % 8; changes-- && b->n;) {
        const uint32_t row = take(g) % b->n;
        if (b->n_values) b->values[row] = (int64_t)number(g);
        if (b->view == FP_TIMELINE) b->time[row] += take(g);
        if (b->view == FP_GRAPH) b->line[row] += take(g);
    }
    other.n = 0;
    payload_of(b, positions, &other);
    differ(&payload, &other);
    differ(&other, &payload);
    fp_buf_free(&tables);
    fp_buf_free(&payload);
    fp_buf_free(&other);
    fp_batch_free(rows);
    fp_archive_dec_free(d);
    fp_archive_ids_free(ids);
    fp_model_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct program program = {data, data + (n < 4096 ? n : 4096)}, *g = &program;
    struct fp_model *m = fp_model_new();
    const uint32_t view = FP_TIMELINE + take(g) % 3, options = take(g);
    struct fp_batch *b = fp_batch_new(view, ROWS, view == FP_TIMELINE ? 0 : VALUES);
    fill_model(g, m, 0);
    if (view == FP_STACKS) {
        fill_samples(g, m, b, 0);
        to_pprof(m, b, options);
        to_gperftools(m, b, options);
        to_folded(m, b, options);
        to_firefox(m, b, options);
    } else if (view == FP_GRAPH) {
        fill_graph(g, m, b);
        to_callgrind(m, b, options);
        combine(g, b);
    } else {
        fill_timeline(g, m, b, FEW_ROWS);
        to_xray(m, b, options);
        struct fp_batch *calls = nested(b, 1000000000);
        if (calls) to_perfetto(m, calls);
        if (calls) to_speedscope(m, calls);
        if (calls) to_firefox(m, calls, options);
        fp_batch_free(calls);
    }
    to_archive(g, m, b, options & 7);
    fp_batch_free(b);
    fp_model_free(m);
    return 0;
}
