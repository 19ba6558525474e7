/* DHAT profiles under the fuzzer.  The last byte chooses options, the one before it the size of a window; so a file
 * replays unchanged. */
#include "valgrind/dhat.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some places share an address, some have no function. */
static void give_places(struct fp_dhat *d, struct fp_model *m) {
    const uint32_t function = fp_model_function(m, 0, 0, fp_strings_intern(&m->strings, "f", 1), 0, 0);
    for (uint32_t i = 0; i < fp_dhat_n_table(d); i++)
        if (fp_dhat_place(d, fp_dhat_table(d, i), i / 3, i % 4 ? function : 0, i)) abort();
    for (d->n_columns = 0; d->n_columns < FP_DHAT_VALUES; d->n_columns++) d->columns[d->n_columns] = d->n_columns;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_dhat *d = fp_dhat_new(m, options & 1);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE) {
        struct fp_window *in = show(&window, status);
        status = fp_dhat_feed(d, in, &err);
        hide(&window, status, &err);
    }
    if (status == FP_NEEDS) {
        struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), FP_DHAT_VALUES);
        give_places(d, m);
        while ((status = fp_dhat_rows(d, batch, &err)) == FP_FULL) fp_batch_reset(batch);
        fp_batch_free(batch);
    }
    fp_dhat_free(d);
    fp_model_free(m);
    return 0;
}
