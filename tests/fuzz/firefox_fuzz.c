/* Profiles of the Firefox Profiler under the fuzzer.  The last byte chooses options and the size of a window. */
#include "firefox/read.h"
#include "mutate.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the mutator: digits of numbers, which are mostly indexes ---- */

static int is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 8 || !below(&in, 4)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) {
        const size_t from = below(&in, n);
        for (size_t i = 0; i < n; i++) {
            uint8_t *p = &data[(from + i) % n];
            if (!is_digit(*p)) continue;
            *p = (uint8_t)('0' + below(&in, 10));
            break;
        }
    }
    return n;
}

/* ---- the caller ---- */

/* Serves a request.  The temporary file of markers is in memory. */
static void answer(struct fp_firefox_read *r, uint32_t table, struct fp_buf *file) {
    struct fp_rounds *rounds = &r->rounds;
    if (r->request == FP_FIREFOX_WINDOW) {
        const uint32_t column = r->requested_column;
        const struct fp_buf *kept = &r->tables[table].kept[column];
        if (!kept->n || r->rows.taken[column]) abort();
        fp_firefox_window(r, kept->p, kept->n);
    } else if (r->request == FP_FIREFOX_SPILL) {
        abort(); /* there are fewer numbers */
    } else if (rounds->asks == FP_ROUNDS_WRITE) {
        if (fp_buf_put(file, rounds->bytes, rounds->n_bytes)) abort();
    } else {
        if (rounds->offset > file->n || rounds->n_bytes > file->n - rounds->offset) abort();
        memcpy(rounds->bytes, file->p + rounds->offset, rounds->n_bytes);
    }
}

/* Checks that rows refer to existing entries. */
static void drain(const struct fp_model *m, struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->thread[i] >= m->threads.n) abort();
        if (b->view == FP_STACKS && b->stack[i] >= m->stacks.n) abort();
        if (b->view == FP_TIMELINE && b->function[i] >= m->functions.n) abort();
    }
    fp_batch_reset(b);
}

static int scan(struct fp_firefox_read *r, struct window *w, struct fp_err *err) {
    int status = FP_MORE;
    while (status == FP_MORE) {
        status = fp_firefox_scan(r, show(w, status), err);
        hide(w, status, err);
        if (status == FP_NEEDS) abort();
    }
    return status;
}

/* Like fastprof/formats/firefox/read.py. */
static void prepare(struct fp_firefox_read *r, struct fp_model *m) {
    fp_firefox_sort_libs(r);
    for (uint32_t i = 0; i < r->n_libs; i++) {
        r->libs[i].object = fp_model_object(m, r->libs[i].path, 0);
        r->libs[i].mapping = fp_model_mapping(m, r->libs[i].object, i, UINT64_MAX, 0, FP_MAPPING_FROM_BASE);
    }
    for (uint32_t i = 0; i < r->n_threads; i++) {
        r->threads[i].thread = fp_model_thread(m, 0, 1, i + 1);
        r->threads[i].start_ns = r->timeline ? 0 : r->processes[r->threads[i].process].start_ns;
    }
    for (uint32_t i = 0; i < r->n_of_counters; i++) r->of_counters[i].thread = fp_model_thread(m, 0, 2, i + 1);
    for (uint32_t i = 0; i < r->n_tables; i++) {
        r->tables[i].second_column = r->tables[i].kind == FP_FIREFOX_NATIVE ? 1 : -(int32_t)(i & 1);
        r->tables[i].weights = (int32_t)(i >> 1 & 1);
        r->tables[i].cpu_divisor = 1000;
    }
}

static int is_wanted(const struct fp_firefox_read *r, const struct fp_firefox_table *t) {
    if (t->thread && r->scan.shared_of[t->kind]) return 0;
    if (r->timeline) return t->kind == FP_FIREFOX_STRING_TABLE || t->kind >= FP_FIREFOX_MARKERS;
    return t->kind < FP_FIREFOX_MARKERS;
}

static int rows(struct fp_firefox_read *r, struct fp_model *m, struct fp_batch *batch, struct fp_err *err) {
    struct fp_buf file = {0};
    int status = FP_DONE;
    const uint32_t n = r->n_threads > r->n_of_counters ? r->n_threads : r->n_of_counters;
    for (uint32_t thread = 0; thread <= n && status >= 0; thread++) {
        if (thread <= r->n_threads) fp_firefox_use_thread(r, thread);
        for (uint32_t kind = 0; kind < FP_FIREFOX_KINDS; kind++)
            for (uint32_t i = 0; i < r->n_tables && status >= 0; i++) {
                const struct fp_firefox_table *t = &r->tables[i];
                if (t->thread != thread || t->kind != kind || !is_wanted(r, t)) continue;
                for (status = fp_firefox_begin(r, i, kind >= FP_FIREFOX_MARKERS, err); status >= 0;) {
                    status = fp_firefox_rows(r, batch, err);
                    if (status == FP_NEEDS) answer(r, i, &file);
                    if (status == FP_FULL || status == FP_DONE) drain(m, batch);
                    if (status == FP_DONE) break;
                }
            }
    }
    fp_buf_free(&file);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size || size > 1 << 16) return 0;
    const uint8_t options = data[size - 1];
    struct window window = {.data = data, .size = size, .step = 1 + (options >> 2) * 7};
    struct fp_model *m = fp_model_new();
    struct fp_firefox_read *first = fp_firefox_read_new(m, options & 1), *r = first;
    struct fp_err err = {0};
    r->again = 1;
    r->timeline = options >> 1 & 1;
    struct fp_batch *batch =
        fp_batch_new(r->timeline ? FP_TIMELINE : FP_STACKS, 1 + (options >> 4), r->timeline ? 0 : 2);
    int scanned = scan(r, &window, &err);
    if (scanned == FP_DONE && r->counts.early) {
        window = (struct window){.data = data, .size = size, .step = window.step};
        r = fp_firefox_read_new(m, options & 1);
        r->before = first;
        r->timeline = first->timeline;
        scanned = scan(r, &window, &err);
    }
    r->rounds.most = 4096;
    if (scanned == FP_DONE) {
        prepare(r, m);
        const int status = rows(r, m, batch, &err);
        if (status < 0 && err.offset > size) abort();
        if (status < 0 && r->lenient && status != FP_E_OVERFLOW) abort();
    }
    fp_batch_free(batch);
    if (r != first) fp_firefox_read_free(r);
    fp_firefox_read_free(first);
    fp_model_free(m);
    return 0;
}
