/* perf.data under the fuzzer.  The last byte chooses options, the one before it the size of a window.  Attributes are
 * read as far as the decoder needs them; the contents of compressed records are read without decompressing. */
#include "mutate.h"
#include "perf/read.h"
#include "window.h"

static const struct fp_jitdump_code codes[] = {{.time = 1, .address = 0x1000, .nbytes = 0x100},
                                               {.time = 1000, .address = UINT64_MAX - 1, .nbytes = 9}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIPE_HEADER = 16, FILE_HEADER = 104, ATTR = 64, HEADER_ATTR = 64 };

/* ---- the mutator --------------------------------------------------------- */

/* The start of an input's records. */
static size_t first_record(struct input *in) {
    if (in->n < PIPE_HEADER) return in->n;
    in->big = in->p[0] == '2';
    if (get(in, in->p + 8, 8) == PIPE_HEADER) return PIPE_HEADER;
    const uint64_t at = in->n < FILE_HEADER ? in->n : get(in, in->p + 40, 8);
    return at < in->n ? (size_t)at : in->n;
}

static void change_records(struct input *in) {
    struct pieces records;
    uint32_t sizes = 0;
    begin_pieces(&records, first_record(in));
    while (in->n - records.at[records.n] >= 8) {
        const uint64_t n = get(in, in->p + records.at[records.n] + 6, 2);
        if (n < 8 || !add_piece(&records, n, in->n - records.at[records.n])) break;
        sizes++;
    }
    if (!sizes) {
        change_bytes(in, 0, in->n, 8);
        return;
    }
    const uint32_t how = below(in, 4), i = below(in, records.n);
    uint8_t *p = in->p + records.at[i];
    const size_t n = records.at[i + 1] - records.at[i];
    if (how == 0) {
        change_pieces(in, &records);
    } else if (how == 1) { /* of its 32-bit words */
        change_number(in, records.at[i] + 8, (n - 8) / 4, 4);
    } else if (how == 2) {
        change_number(in, records.at[i] + 8, (n - 8) / 8, 8);
    } else {
        put(in, p, below(in, 2) ? 1 + below(in, 23) : 60 + below(in, 30), 4);
        put(in, p + 4, mostly_below(in, 8), 2);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < PIPE_HEADER || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_records(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

/* An attribute at p, and ids. */
static void add_event(struct fp_perf_reader *r, const uint8_t *p, const uint8_t *ids, size_t n_ids,
                      uint32_t *n_events) {
    const struct fp_perf_attr attr = {
        .sample_type = fp_u64s(p + 24, r->swap) & 0x1ffffff,
        .read_format = fp_u64s(p + 32, r->swap),
        .branch_type = fp_u64s(p + 16, r->swap),
        .regs_user = 0xff,
        .period = fp_u64s(p + 16, r->swap),
        .flags = UINT64_C(1) << 18,
    };
    if (*n_events == 8) return;
    uint64_t id = 0;
    const int status = fp_perf_add_event(r, &attr);
    if (status == FP_E_NOMEM) abort();
    for (; n_ids >= 8; ids += 8, n_ids -= 8) {
        memcpy(&id, ids, 8);
        if (fp_perf_add_ids(r, *n_events, &id, 1)) abort();
    }
    for (uint32_t kind = FP_PERF_UNSIGNED; kind <= FP_PERF_SIGNED_AFTER; kind++) {
        const struct fp_perf_field field = {r->threads.comm_key, kind,    4 * kind, kind < FP_PERF_TEXT ? 16 : 4,
                                            1u + (p[0] & 7u),    p[3] & 1};
        if (fp_perf_add_field(r, *n_events, &field)) abort();
    }
    fp_perf_set_switched(r, *n_events, p[1] & 3, 4, 8); /* kinds of switches, or none */
    if (p[2] & 1) fp_perf_set_off_cpu_time(r, *n_events);
    ++*n_events;
}

static void on_record(struct fp_perf_reader *r, uint32_t *n_events) {
    const uint8_t *p = r->record;
    if (fp_u32s(p, r->swap) == HEADER_ATTR && r->record_n >= 8 + ATTR)
        add_event(r, p + 8, p + 8 + ATTR, r->record_n - 8 - ATTR, n_events);
}

/* The temporary file, in memory. */
static void serve(struct fp_rounds *rounds, struct fp_buf *file) {
    if (rounds->asks == FP_ROUNDS_WRITE) {
        if (fp_buf_put(file, rounds->bytes, rounds->n_bytes)) abort();
        return;
    }
    if (rounds->offset > file->n || rounds->n_bytes > file->n - rounds->offset) abort();
    memcpy(rounds->bytes, file->p + rounds->offset, rounds->n_bytes);
}

/* Checks that rows refer to existing entries. */
static void drain(const struct fp_model *m, struct fp_batch *batch) {
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->stack[i] >= m->stacks.n || batch->thread[i] >= m->threads.n || batch->label[i] >= m->labels.n)
            abort();
    fp_batch_reset(batch);
}

static int by_branches(const struct fp_perf_reader *r) {
    return r->wants_branches == FP_PERF_ONLY_BRANCHES || (r->wants_branches && r->has_branches);
}

static void set_options(struct fp_perf_reader *r, uint8_t options, int swap) {
    r->lenient = options & 1;
    r->keep_marks = options >> 1 & 1;
    r->cpu_labels = options >> 2 & 1;
    r->rounds.most = options & 8 ? 64 : 1 << 20;
    r->last = 1;
    r->machine = 62;
    r->swap = swap;
    r->off_cpu = options >> 4 & 1;
    r->off_column = FP_PERF_NO_COLUMN;
    fp_perf_set_branches(r, options >> 5 & 1 ? 1 + (options >> 6 & 1) : 0, options >> 6, 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < PIPE_HEADER + 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_perf_reader *r = fp_perf_reader_new(m);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), 0);
    struct fp_buf file = {0};
    struct fp_err err;
    uint32_t n_events = 0;
    set_options(r, options, data[0] == '2');
    size_t at = PIPE_HEADER;
    if (size >= FILE_HEADER && fp_u64s(data + 8, r->swap) != PIPE_HEADER) {
        const uint64_t attrs = fp_u64s(data + 24, r->swap), records = fp_u64s(data + 40, r->swap);
        if (attrs < size - ATTR) add_event(r, data + attrs, NULL, 0, &n_events);
        at = records < size ? (size_t)records : size;
    }
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size, .have = at};
    window.in.base = at;
    int status = FP_MORE;
    fp_perf_begin(r);
    while (status > 0) {
        struct fp_window *in = show(&window, status);
        status = fp_perf_feed(r, in, batch, &err);
        if (status == FP_NEEDS && r->request == FP_PERF_SPILL) {
            serve(&r->rounds, &file);
        } else if (status == FP_NEEDS && r->request == FP_PERF_COLUMNS) {
            drain(m, batch);
            if (fp_batch_set_values(batch, by_branches(r) ? FP_BRANCHES_COLUMNS : 2 * n_events + 1)) abort();
            r->off_column = 2 * n_events;
            for (uint32_t i = 0; i < n_events; i++) fp_perf_set_column(r, i, 2 * i);
        } else if (status == FP_NEEDS && r->request == FP_PERF_TABLE) {
            fp_perf_set_table(r, NULL, FP_UNWIND_NO_FILE);
        } else if (status == FP_NEEDS && r->request == FP_PERF_RECORD) {
            on_record(r, &n_events);
        } else if (status == FP_NEEDS && r->request == FP_PERF_DUMP) {
            if (r->record_n % 2 && fp_perf_give_codes(r, codes, sizeof codes / sizeof *codes)) abort();
        } else if (status == FP_NEEDS && r->request == FP_PERF_KERNEL) {
            if (r->requested_address % 2 && fp_perf_build_id(r, r->requested_name, r->requested_name)) abort();
        } else if (status == FP_NEEDS) {
            if (r->record_skip > r->record_n) abort();
            if (fp_perf_give(r, r->record + r->record_skip, (size_t)(r->record_n - r->record_skip))) abort();
        }
        hide(&window, status, &err);
        if (status == FP_FULL) drain(m, batch);
    }
    drain(m, batch);
    fp_buf_free(&file);
    fp_batch_free(batch);
    fp_perf_reader_free(r);
    fp_model_free(m);
    return 0;
}
