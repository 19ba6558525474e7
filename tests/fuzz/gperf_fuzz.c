/* gperftools profiles under the fuzzer.  The last byte also chooses options, the one before it the size of a window; so
 * a file replays unchanged. */
#include "gperftools/read.h"
#include "gperftools/write.h"
#include "mutate.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Objects at the addresses below 0x5000, `first` first; the kind of their code decides which frames belong to the
 * profiler's signal handler.  Some addresses have names, as in the symbolized form. */
static void give_objects(struct fp_gperftools_reader *g, struct fp_model *m, uint32_t first) {
    static const char *const names[] = {"[vdso]", "a.out", "/lib/libc.so.6", "/lib/libpthread-2.31.so"};
    for (uint32_t i = 0; i < 4; i++) {
        const char *name = names[(first + i) % 4];
        const uint32_t object = fp_model_object(m, fp_strings_intern(&m->strings, name, strlen(name)), 0);
        const uint64_t start = (uint64_t)i << 12;
        if (fp_gperftools_map(g, start, start + 0x2000, fp_model_mapping(m, object, start, 0, 0, 0))) abort();
    }
    if (first != 3) return;
    const uint32_t function = fp_model_function(m, 0, 0, fp_strings_intern(&m->strings, "f", 1), 0, 0);
    const uint32_t line = fp_model_line(m, function, 1, 0, 0);
    for (uint32_t i = 16; i--;)
        if (fp_gperftools_name(g, i % 12 * 0x208 % 0x1000, line)) abort();
}

static void drain(struct fp_gperftools_reader *g, struct fp_model *m, uint32_t cap) {
    struct fp_batch *batch = fp_batch_new(FP_STACKS, cap, 2);
    struct fp_gperftools_writer w = {.model = m, .period_ns = 1000};
    struct fp_buf out = {0};
    struct fp_err err;
    int status;
    do {
        status = fp_gperftools_rows(g, batch, &err);
        while (status >= 0 && fp_gperftools_put(&w, batch, 0, &out, &err) == FP_FULL) out.n = 0;
        fp_batch_reset(batch);
    } while (status == FP_FULL);
    fp_buf_free(&out);
    fp_batch_free(batch);
}

/* ---- the mutator --------------------------------------------------------- */

/* Records as pieces: a count, a depth, that many addresses.  The trailer, 0 1 0, is not a piece. */
static void find_records(const struct input *in, uint32_t word, struct pieces *q) {
    begin_pieces(q, ((size_t)get(in, in->p + word, word) + 2) * word);
    while (q->at[q->n] + 3 * word <= in->n) {
        const uint8_t *p = in->p + q->at[q->n];
        const uint64_t depth = get(in, p + word, word);
        if ((!get(in, p, word) && depth == 1 && !get(in, p + 2 * word, word)) || depth > FP_GPERF_MAX_DEPTH) break;
        if (!add_piece(q, (2 + depth) * word, in->n - q->at[q->n])) break;
    }
}

/* The words before the text, in the other byte order or length. */
static void convert_words(struct input *in, uint32_t word, size_t text) {
    uint8_t words[8 * MOST_PIECES], *p = words;
    struct input other = *in;
    const uint32_t length = below(in, 2) ? word : 12 - word;
    if (text / word > MOST_PIECES) return;
    other.big = length == word ? !in->big : in->big;
    for (size_t at = 0; at + word <= text; at += word) p = put(&other, p, get(in, in->p + at, word), length);
    replace(in, 0, text, words, (size_t)(p - words));
}

static void change_profile(struct input *in) {
    struct pieces records, addresses;
    uint8_t bytes[8 * 6], *p = bytes;
    const uint32_t word = (uint32_t)fp_gperftools_header(in->p, in->n, &in->big), how = below(in, 8);
    if (!word || (get(in, in->p + word, word) + 2) * word > in->n) {
        change_bytes(in, 0, in->n, 8);
        return;
    }
    find_records(in, word, &records);
    const size_t end = records.at[records.n], text = in->n - end < 3 * word ? in->n : end + 3 * word;
    if (!how) {
        const uint32_t depth = below(in, 4);
        p = put(in, put(in, p, mostly_below(in, 9), word), depth, word);
        for (uint32_t i = 0; i < depth; i++) p = put(in, p, mostly_below(in, 1 << 14), word);
        replace(in, between_pieces(in, &records), 0, bytes, (size_t)(p - bytes));
    } else if (how == 1) {
        convert_words(in, word, text);
    } else if (how == 2) {
        find_lines(in, text, &records);
        change_pieces(in, &records);
    } else if (how == 3) {
        uint8_t *any = in->p + word * below(in, text / word);
        put(in, any, other_number(in, get(in, any, word)), word);
    } else if (how < 6) {
        change_pieces(in, &records);
    } else if (records.n) {
        const uint32_t i = below(in, records.n);
        const size_t at = records.at[i], before = in->n;
        begin_pieces(&addresses, at + 2 * word);
        while (add_piece(&addresses, word, records.at[i + 1] - addresses.at[addresses.n])) {
        }
        put(in, bytes, mostly_below(in, 1 << 14), word);
        if (how == 6)
            change_pieces(in, &addresses);
        else
            replace(in, between_pieces(in, &addresses), 0, bytes, word);
        put(in, in->p + at + word, (records.at[i + 1] - at + in->n - before) / word - 2, word);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 2 || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_profile(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_gperftools_reader *g = fp_gperftools_reader_new(m, options & 1);
    g->keep_signal_frames = options >> 1 & 1;
    const size_t step = data[size - 2] ? data[size - 2] : size;
    const uint32_t cap = 1 + (options >> 4);
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE) {
        struct fp_window *in = show(&window, status);
        while ((status = fp_gperftools_feed(g, in, &err)) == FP_NEEDS && g->line_n) {
            if (g->line_n > in->n - in->pos) abort();
            in->pos += g->line_n;
        }
        hide(&window, status, &err);
    }
    if (status == FP_NEEDS) {
        give_objects(g, m, options >> 2 & 3);
        drain(g, m, cap);
    }
    fp_gperftools_reader_free(g);
    fp_model_free(m);
    return 0;
}
