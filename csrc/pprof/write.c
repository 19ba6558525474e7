#include "pprof/write.h"

#include "pprof/write_private.h"

struct fp_pprof_writer *fp_pprof_writer_new(struct fp_model *model) {
    struct fp_pprof_writer *w = fp_made(sizeof *w);
    w->model = model;
    w->n_strings = 1; /* "", which the caller writes */
    fp_table_init(&w->out_functions, 4);
    fp_table_init(&w->out_locations, FP_FRAME_WIDTH);
    fp_table_init(&w->out_mappings, FP_MAPPING_WIDTH);
    return w;
}

void fp_pprof_writer_free(struct fp_pprof_writer *w) {
    fp_utf8_names_clear(&w->texts);
    FP_CLEAR_TABLES(&w->out_functions, &w->out_locations, &w->out_mappings);
    FP_FREE_BUFFERS(&w->scratch, &w->memo, &w->ids, &w->rest, &w->entry);
    FP_FREE(w->strings, w->functions, w->frames, w->mappings, w->seen, w->memo_stacks, w->memo_labels, w->memo_threads,
            w->path, w->above, w);
}

/* ---- the memo ---- */

/* Stores the bytes written for an entry; *at becomes their offset, which is never 0. */
static void memo_put(struct fp_pprof_writer *w, uint32_t *at, const uint8_t *p, size_t n) {
    if (w->memo.n + n + 8 > FP_PPROF_MEMO_BYTES) return;
    uint32_t length = (uint32_t)n;
    if (!w->memo.n) fp_buf_put(&w->memo, "memo", 4);
    *at = (uint32_t)w->memo.n;
    fp_buf_put(&w->memo, &length, 4);
    fp_buf_put(&w->memo, p, n);
}

/* The *n bytes stored at offset `at`. */
static const uint8_t *memo_get(const struct fp_pprof_writer *w, uint32_t at, size_t *n) {
    *n = fp_u32(w->memo.p + at);
    return w->memo.p + at + 4;
}

/* ---- samples ---- */

/* Fields of the profile and of a sample. */
enum { SAMPLE = 2, LOCATION_ID = 1, VALUE = 2, LABEL = 3 };

/* Adds a label to w->rest, and its new strings to `out`. */
static void put_label(struct fp_pprof_writer *w, uint32_t key, uint32_t string, uint64_t number, uint32_t unit,
                      struct fp_buf *out) {
    int64_t key_id = fp_pprof_string(w, key, out);
    int64_t string_id = fp_pprof_string(w, string, out);
    int64_t unit_id = fp_pprof_string(w, unit, out);
    FP_WIRE_PUT(&w->rest, LABEL, key_id, string_id, number, unit_id);
}

/* Adds the labels of a chain to w->rest. */
static void put_labels(struct fp_pprof_writer *w, uint32_t label, struct fp_buf *out) {
    fp_pprof_cover(&w->memo_labels, &w->cap_memo_labels, w->model->labels.n);
    uint32_t *memo = &w->memo_labels[label];
    if (*memo) {
        size_t n;
        const uint8_t *p = memo_get(w, *memo, &n);
        fp_buf_put(&w->rest, p, n);
        return;
    }
    size_t start = w->rest.n;
    while (label) {
        const uint32_t *row = fp_table_row(&w->model->labels, label);
        put_label(w, row[FP_LABEL_KEY], row[FP_LABEL_STRING], fp_words_u64(row + FP_LABEL_NUMBER), row[FP_LABEL_UNIT],
                  out);
        label = row[FP_LABEL_NEXT];
    }
    memo_put(w, memo, w->rest.p + start, w->rest.n - start);
}

/* Adds the labels for a row's thread to w->rest. */
static void put_thread(struct fp_pprof_writer *w, uint32_t thread, struct fp_buf *out) {
    fp_pprof_cover(&w->memo_threads, &w->cap_memo_threads, w->model->threads.n);
    uint32_t *memo = &w->memo_threads[thread];
    if (*memo) {
        size_t n;
        const uint8_t *p = memo_get(w, *memo, &n);
        fp_buf_put(&w->rest, p, n);
        return;
    }
    const size_t start = w->rest.n;
    const uint32_t *row = fp_table_row(&w->model->threads, thread);
    uint32_t pid = row[FP_THREAD_PID], tid = row[FP_THREAD_TID];
    if (pid && w->words.pid) put_label(w, w->words.pid, 0, pid, 0, out);
    if (tid && w->words.tid) put_label(w, w->words.tid, 0, tid, 0, out);
    memo_put(w, memo, w->rest.p + start, w->rest.n - start);
}

/* Prepends the location of a node to those of its callers, the path so far. */
static void add_node(struct fp_pprof_writer *w, uint32_t node) {
    const uint32_t location = w->frames[fp_table_row(&w->model->stacks, node)[FP_STACK_FRAME]];
    struct fp_buf *ids = &w->ids;
    const size_t had = w->n_path ? w->path[w->n_path - 1].nbytes : 0;
    if (FP_UNLIKELY(ids->cap < had + 5)) { /* an id takes 5 bytes at most */
        const size_t cap = ids->cap;
        fp_buf_reserve(ids, had + 5);
        memmove(ids->p + ids->cap - had, ids->p + cap - had, had);
    }
    const size_t nbytes = had + fp_varint_length(location);
    fp_varint(ids->p + ids->cap - nbytes, location);
    FP_PUSH(w->path, w->n_path, w->cap_path) = (struct fp_pprof_node){node, nbytes};
}

/* Sets the path to that of a stack.  The part shared with the previous stack stays in place. */
static void follow(struct fp_pprof_writer *w, uint32_t node, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    uint32_t n = 0;
    for (const uint32_t *row;; node = row[FP_STACK_PARENT]) {
        while (w->n_path && w->path[w->n_path - 1].node > node) w->n_path--; /* callers have smaller ids */
        if (!node || (w->n_path && w->path[w->n_path - 1].node == node)) break;
        FP_PUSH(w->above, n, w->cap_above) = node;
        row = fp_table_row(&m->stacks, node);
        if (FP_UNLIKELY(!w->frames[row[FP_STACK_FRAME]])) fp_pprof_new_location(w, row[FP_STACK_FRAME], out);
    }
    while (n) add_node(w, w->above[--n]);
}

/* The packed location ids of a stack, *n bytes; new locations are written to `out`.  The bytes are valid until the next
 * call, or until a label is stored. */
static const uint8_t *put_stack(struct fp_pprof_writer *w, uint32_t node, struct fp_buf *out, size_t *n) {
    const struct fp_model *m = w->model;
    fp_pprof_cover(&w->frames, &w->cap_frames, m->frames.n);
    if (!w->few_again) fp_pprof_cover(&w->memo_stacks, &w->cap_memo_stacks, m->stacks.n);
    if (!node) {
        const uint32_t location = fp_pprof_no_stack(w, out);
        w->stats.no_stack++;
        *n = (size_t)(fp_varint(w->none, location) - w->none);
        return w->none;
    }
    /* ids of stacks may be reused */
    uint32_t *memo = m->n_emptied || w->few_again ? NULL : &w->memo_stacks[node];
    if (memo && *memo) {
        w->n_again++;
        return memo_get(w, *memo, n);
    }
    enum { MANY = 1 << 14, SELDOM = 16 };
    w->few_again |= ++w->n_first > MANY && w->n_again < w->n_first / SELDOM;
    if (w->n_emptied != m->n_emptied) w->n_path = 0;
    w->n_emptied = m->n_emptied;
    follow(w, node, out);
    *n = w->path[w->n_path - 1].nbytes;
    const uint8_t *ids = w->ids.p + w->ids.cap - *n;
    if (memo) memo_put(w, memo, ids, *n);
    return ids;
}

/* Stacks come unsorted.  Prefetches the bytes of those written before, and the innermost nodes of the others, which are
 * far apart, each a few rows after its callee: further callers are shared by many stacks. */
static inline void prefetch(struct fp_pprof_writer *w, const struct fp_batch *in, uint32_t i) {
    enum { AHEAD = FP_PPROF_AHEAD / FP_PPROF_NODES };
    const struct fp_table *stacks = &w->model->stacks;
    if (!i) memset(w->ahead, 0, sizeof w->ahead);
    if (!w->few_again) {
        if (i + 2 * AHEAD < in->n) __builtin_prefetch(&w->memo_stacks[in->stack[i + 2 * AHEAD]]);
        if (i + AHEAD >= in->n || !w->memo_stacks[in->stack[i + AHEAD]]) return;
        const uint8_t *ahead = w->memo.p + w->memo_stacks[in->stack[i + AHEAD]];
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + 64);
        return;
    }
    for (uint32_t n = 0; n < FP_PPROF_NODES; n++) {
        const uint32_t row = i + (FP_PPROF_NODES - n) * AHEAD;
        uint32_t *node = &w->ahead[row % FP_PPROF_AHEAD];
        *node = n ? fp_table_row(stacks, *node)[FP_STACK_PARENT] : row < in->n ? in->stack[row] : 0;
        __builtin_prefetch(fp_table_row(stacks, *node));
    }
}

int fp_pprof_put(struct fp_pprof_writer *w, const struct fp_batch *in, const int32_t *columns, uint32_t n_columns,
                 struct fp_buf *out) {
    if (!w->few_again) fp_pprof_cover(&w->memo_stacks, &w->cap_memo_stacks, w->model->stacks.n);
    for (; w->row < in->n; w->row++) {
        if (FP_UNLIKELY(out->n >= FP_DRAIN)) return FP_FULL;
        const uint32_t i = w->row;
        prefetch(w, in, i);
        /* the values, packed, and the labels */
        w->rest.n = 0;
        fp_buf_reserve(&w->rest, FP_WIRE_HEAD + (size_t)n_columns * 10);
        size_t values = 0;
        for (uint32_t k = 0; k < n_columns; k++)
            values += columns[k] < 0 ? 1 : fp_varint_length((uint64_t)in->values[(size_t)columns[k] * in->cap + i]);
        uint8_t *to = w->rest.p;
        *to++ = FP_WIRE_TAG(VALUE, FP_WIRE_BYTES);
        to = fp_varint(to, values);
        for (uint32_t k = 0; k < n_columns; k++)
            to = fp_varint(to, columns[k] < 0 ? 0 : (uint64_t)in->values[(size_t)columns[k] * in->cap + i]);
        w->rest.n = (size_t)(to - w->rest.p);
        if (in->label[i]) put_labels(w, in->label[i], out);
        if (in->thread[i]) put_thread(w, in->thread[i], out);
        size_t ids_n;
        const uint8_t *ids = put_stack(w, in->stack[i], out, &ids_n);
        w->stats.times += in->time[i] != 0;
        w->stats.samples++;

        size_t total = 1 + fp_varint_length(ids_n) + ids_n + w->rest.n;
        fp_buf_reserve(out, total + FP_WIRE_HEAD);
        to = out->p + out->n;
        *to++ = FP_WIRE_TAG(SAMPLE, FP_WIRE_BYTES);
        to = fp_varint(to, total);
        *to++ = FP_WIRE_TAG(LOCATION_ID, FP_WIRE_BYTES);
        to = fp_varint(to, ids_n);
        memcpy(to, ids, ids_n);
        to += ids_n;
        memcpy(to, w->rest.p, w->rest.n);
        out->n = (size_t)(to - out->p) + w->rest.n;
    }
    w->row = 0;
    return FP_DONE;
}
