/* Flight recordings under the fuzzer.  The last byte chooses options, the one before it the size of a window and the
 * instructions.  Chunks are read as if the JVM had not finished them, so that changed sizes do not end everything. */
#include "jfr/read.h"
#include "mutate.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 68, MOST_CHUNKS = 4 };

/* ---- the mutator --------------------------------------------------------- */

/* Changes records as pieces, or the numbers within one, whose size is then corrected. */
static void change_records(struct input *in) {
    struct pieces records;
    begin_pieces(&records, HEADER);
    while (records.at[records.n] < in->n) {
        const uint8_t *p = in->p + records.at[records.n];
        uint64_t n;
        if (fp_wire_read_varint(p, in->p + in->n, &n) <= 0) break;
        if (!add_piece(&records, n, in->n - records.at[records.n])) break;
    }
    if (!records.n || !below(in, 3)) {
        if (records.n)
            change_pieces(in, &records);
        else
            change_bytes(in, 0, in->n, 8);
        return;
    }
    const uint32_t i = below(in, records.n);
    const size_t at = records.at[i], end = records.at[i + 1], before = in->n;
    uint64_t n;
    const int head = fp_wire_read_varint(in->p + at, in->p + end, &n);
    if (below(in, 4))
        change_varints(in, at + (size_t)head, end);
    else
        change_bytes(in, at + (size_t)head, end - at - (size_t)head, 8);
    /* a varint may have needless bytes, so its own length can stay */
    uint8_t *p = in->p + at;
    n = end - at + in->n - before;
    for (int k = 0; k < head; k++, n >>= 7) p[k] = (uint8_t)((n & 127) | (k + 1 < head ? 128 : 0));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n <= HEADER || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_records(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

enum step { WALK_OPEN, WALK, METADATA, CONSTANTS, EVENTS, ROWS };

struct run {
    struct fp_jfr_reader *r;
    struct fp_batch *out;
    const uint8_t *data;
    size_t step;
    uint64_t rows;
};

/* All columns are in use. */
static void use_columns(struct run *run) {
    for (uint32_t i = 0; i < FP_JFR_METRICS; i++) {
        run->r->column[i] = 2 * i;
        run->r->has_value[i] = 1;
    }
    if (fp_batch_set_values(run->out, 2 * FP_JFR_METRICS)) abort();
}

static int feed(struct run *run, enum step what, struct fp_window *in, struct fp_err *err) {
    switch (what) {
        case METADATA: return fp_jfr_metadata(run->r, in, err);
        case CONSTANTS: return fp_jfr_constants(run->r, in, err);
        case EVENTS: return run->r->timeline ? fp_jfr_spans(run->r, in, err) : fp_jfr_feed(run->r, in, run->out, err);
        case ROWS: return run->r->timeline ? fp_jfr_pull(run->r, run->out, err) : fp_jfr_release(run->r, run->out, err);
        default: return fp_jfr_walk(run->r, what == WALK_OPEN, in, err);
    }
}

/* Reads a range.  FP_DONE or an error. */
static int range(struct run *run, enum step what, size_t from, size_t to) {
    struct window w = {run->data, to, run->step, from, {.base = from}};
    struct fp_err err = {0};
    int status = FP_MORE;
    run->r->chunk.stop = to;
    while (status > FP_DONE) {
        struct fp_window *in = show(&w, status);
        status = feed(run, what, in, &err);
        hide(&w, status, &err);
        if (status == FP_NEEDS && run->r->request == FP_JFR_COLUMNS) use_columns(run);
        if (status == FP_FULL) {
            run->rows += run->out->n;
            fp_batch_reset(run->out);
        }
    }
    return status;
}

/* Reads the chunk at `at`.  The end of it, or 0: nothing follows. */
static size_t chunk(struct run *run, size_t at, size_t size) {
    struct fp_jfr_reader *r = run->r;
    if (size - at <= HEADER) return 0;
    fp_jfr_begin(r);
    r->chunk.compressed = run->data[at + 67] & 1;
    r->chunk.ticks_per_second = 1 + run->data[at + 63];
    if (range(run, WALK_OPEN, at + HEADER, size)) return 0;
    const size_t end = (size_t)r->walked.end, next = r->walked.is_next ? end : 0;
    const struct fp_jfr_place *metadata = NULL;
    for (uint32_t i = 0; i < r->walked.n_places; i++)
        if (!r->walked.places[i].is_checkpoint) metadata = &r->walked.places[i];
    if (!metadata || range(run, METADATA, (size_t)metadata->at, (size_t)(metadata->at + metadata->size))) return next;
    r->walked.n_places = 0;
    if (range(run, WALK, at + HEADER, end) || r->is_probe) return next;
    for (uint32_t i = 0; i < r->walked.n_places; i++) {
        const struct fp_jfr_place place = r->walked.places[i];
        if (place.is_checkpoint && range(run, CONSTANTS, (size_t)place.at, (size_t)(place.at + place.size)) &&
            !r->lenient)
            return next;
    }
    range(run, EVENTS, at + HEADER, end);
    return next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *model = fp_model_new();
    struct fp_jfr_reader *r = model ? fp_jfr_reader_new(model) : NULL;
    if (!r) abort();
    r->lenient = options & 1;
    r->is_portable = data[size - 2] & 1;
    r->is_summed = data[size - 2] >> 1 & 1;
    r->always_holds = data[size - 2] >> 2 & 1;
    r->timeline = options >> 1 & 1;
    r->is_probe = !r->timeline && !(data[size - 2] >> 3 & 7);
    r->options.kinds = r->options.signatures = options >> 2 & 1;
    r->options.join = r->options.class_leaf = r->options.cut_root = options >> 3 & 1;
    r->rounds.most = 1 << 30;
    struct run run = {.r = r, .data = data, .step = data[size - 2] ? data[size - 2] : size};
    run.out = fp_batch_new(r->timeline ? FP_TIMELINE : FP_STACKS, 1 + (options >> 4), r->timeline ? 0 : 1);
    if (!run.out) abort();
    size_t at = 0;
    for (int i = 0; i < MOST_CHUNKS; i++)
        if (!(at = chunk(&run, at, size))) break;
    if (range(&run, ROWS, size, size)) abort();
    for (uint32_t i = 1; i < r->walked.counted.n; i++)
        if (!fp_jfr_counted(r, i)) abort();
    fp_batch_free(run.out);
    fp_jfr_reader_free(r);
    fp_model_free(model);
    return 0;
}
