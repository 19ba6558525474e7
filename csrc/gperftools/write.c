#include "gperftools/write.h"

#include "gperftools/read.h" /* FP_GPERF_MAX_DEPTH */

int fp_gperftools_put(struct fp_gperftools_writer *w, const struct fp_batch *in, uint32_t column, struct fp_buf *out,
                      struct fp_err *err) {
    const struct fp_model *m = w->model;
    const int64_t *values = in->values + (size_t)column * in->cap;
    for (; w->row < in->n; w->row++) {
        if (FP_UNLIKELY(out->n >= FP_DRAIN)) return FP_FULL;
        const uint32_t i = w->row;
        if (values[i] < 0) {
            w->negative++;
            w->left_out -= (double)values[i];
            continue;
        }
        const uint64_t no_address = w->no_address;
        uint64_t count = (uint64_t)values[i];
        if (w->unit_ns) {
            uint64_t ns;
            if (__builtin_mul_overflow(count, w->unit_ns, &ns))
                return fp_fail_beyond(err, "a time", FP_NO_COLUMN, "2^64 - 1 nanoseconds");
            uint64_t rest = ns % w->period_ns;
            count = ns / w->period_ns;
            if (rest) w->rounded++;
            if (rest >= w->period_ns - rest) count++; /* round to nearest */
        }
        w->labels += in->label[i] || in->thread[i] || in->time[i];
        size_t start = out->n;
        fp_buf_put(out, &count, 8);
        fp_buf_put(out, &count, 8); /* for the depth */
        uint64_t depth = 0;
        for (uint32_t node = in->stack[i]; node && depth <= FP_GPERF_MAX_DEPTH;) {
            const uint32_t *stack = fp_table_row(&m->stacks, node);
            const uint32_t *frame = fp_table_row(&m->frames, stack[FP_STACK_FRAME]);
            node = stack[FP_STACK_PARENT];
            uint64_t address = fp_words_u64(frame + FP_FRAME_ADDRESS);
            /* Readers subtract 1 from every address but the leaf's, because it is a return address. */
            int is_return = (frame[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS) != 0;
            if (!address || (depth && !is_return && address == UINT64_MAX) || (!depth && is_return && address == 1)) {
                w->no_address++;
                continue;
            }
            if (depth && !is_return) address++;
            if (!depth && is_return) address--;
            fp_buf_put(out, &address, 8);
            depth++;
        }
        if (!depth || depth > FP_GPERF_MAX_DEPTH) {
            w->no_stack++;
            w->left_out += (double)values[i];
            out->n = start;
            continue;
        }
        if (w->no_address > no_address) w->cut += (double)values[i];
        *(count || !values[i] ? &w->written : &w->left_out) += (double)values[i];
        memcpy(out->p + start + 8, &depth, 8);
        w->rows++;
    }
    w->row = 0;
    return FP_DONE;
}
