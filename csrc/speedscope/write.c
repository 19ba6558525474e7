#include "speedscope/write.h"

/* Upper bounds.  FIXED: a row's JSON without a sample's frames; PACKED: a number of a packed row. */
enum { FIXED = 128, PACKED = 10 };

#define PUT(to, text) (memcpy(to, text, sizeof text - 1), (to) + sizeof text - 1)

struct fp_speedscope *fp_speedscope_new(struct fp_model *model) {
    struct fp_speedscope *w = fp_made(sizeof *w);
    w->model = model;
    fp_table_init(&w->group_of, 2);
    return w;
}

void fp_speedscope_free(struct fp_speedscope *w) {
    for (uint32_t i = 0; i < w->n_groups; i++) {
        fp_buf_free(&w->groups[i].packed);
        free(w->groups[i].path);
    }
    fp_table_clear(&w->group_of);
    fp_utf8_names_clear(&w->names);
    fp_utf8_names_clear(&w->files);
    fp_buf_free(&w->scratch);
    FP_FREE(w->groups, w->frame_of, w->functions, w->open, w->ends, w->frames, w);
}

/* ---- rows are packed ---- */

/* The group of a part and a thread; rows of a table begin at 1. */
static struct fp_speedscope_group *group_of(struct fp_speedscope *w, uint32_t part, uint32_t thread) {
    const uint32_t row = fp_table_intern(&w->group_of, (const uint32_t[]){part + 1, thread});
    if (row > w->n_groups) {
        fp_array_zeroed(&w->groups, &w->cap_groups, row, sizeof *w->groups);
        w->groups[row - 1] = (struct fp_speedscope_group){.part = part, .thread = thread};
        w->n_groups = row;
    }
    return &w->groups[row - 1];
}

/* The frame of a function. */
static uint32_t frame_of(struct fp_speedscope *w, uint32_t function) {
    uint32_t *const frame = FP_AT(w->frame_of, w->cap_frame_of, function);
    if (FP_LIKELY(*frame)) return *frame - 1;
    FP_PUSH(w->functions, w->n_frames, w->cap_functions) = function;
    *frame = w->n_frames;
    return *frame - 1;
}

int fp_speedscope_calls(struct fp_speedscope *w, const struct fp_batch *b) {
    struct fp_speedscope_group *g = NULL;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint8_t op = b->op[i];
        w->arguments += op == FP_OP_ARGUMENT;
        w->events += op == FP_OP_CUSTOM || op == FP_OP_TYPED;
        if (op > FP_OP_ENTER_ARGS) continue;
        if (!g || g->thread != b->thread[i]) g = group_of(w, b->part, b->thread[i]);
        const int enters = op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS;
        const uint32_t depth = enters ? g->depth++ : --g->depth;
        if (FP_UNLIKELY(depth >= FP_SPEEDSCOPE_DEPTH)) {
            w->deep_calls += (uint64_t)enters;
            continue;
        }
        fp_buf_reserve(&g->packed, 2 * PACKED);
        if (!g->rows++) g->first = g->last = b->time[i];
        uint8_t *const from = g->packed.p + g->packed.n,
                       *to = fp_varint(from, enters ? (uint64_t)b->function[i] + 1 : 0);
        to = fp_varint(to, b->time[i] - g->last);
        g->last = b->time[i];
        g->packed.n += (size_t)(to - from);
        w->packed += (size_t)(to - from);
    }
    return 0;
}

/* Appends a stack to the packed rows: how many frames it shares with the group's last one, and the others. */
static void pack_stack(struct fp_speedscope *w, struct fp_speedscope_group *g, uint32_t stack) {
    const struct fp_model *m = w->model;
    uint32_t n = 0, shared = 0;
    for (; stack; stack = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT])
        FP_PUSH(w->frames, n, w->cap_frames) = fp_table_row(&m->stacks, stack)[FP_STACK_FRAME];
    while (shared < n && shared < g->n_path && g->path[shared] == w->frames[n - 1 - shared]) shared++;
    fp_array_room(&g->path, &g->cap_path, n, sizeof *g->path);
    fp_buf_reserve(&g->packed, PACKED * ((size_t)n - shared + 2));
    uint8_t *to = fp_varint(g->packed.p + g->packed.n, shared);
    to = fp_varint(to, n - shared);
    for (uint32_t i = shared; i < n; i++) to = fp_varint(to, g->path[i] = w->frames[n - 1 - i]);
    g->n_path = n;
    g->packed.n = (size_t)(to - g->packed.p);
}

int fp_speedscope_samples(struct fp_speedscope *w, const struct fp_batch *b, uint32_t *row) {
    struct fp_speedscope_group *g = NULL;
    for (; *row < b->n; ++*row) {
        const uint32_t i = *row;
        if (w->packed > FP_SPEEDSCOPE_PACKED) return FP_FULL;
        if (!g || g->thread != b->thread[i]) g = group_of(w, b->part, b->thread[i]);
        const size_t before = g->packed.n;
        pack_stack(w, g, b->stack[i]);
        fp_buf_reserve(&g->packed, PACKED * (size_t)b->n_values);
        uint8_t *to = g->packed.p + g->packed.n;
        int any = 0;
        for (uint32_t k = 0; k < b->n_values; k++) {
            const int64_t value = b->values[(size_t)k * b->cap + i];
            w->negative += value < 0;
            any |= value != 0;
            to = fp_varint(to, value < 0 ? 0 : (uint64_t)value);
        }
        w->zero += !any;
        g->rows++;
        g->packed.n = (size_t)(to - g->packed.p);
        w->packed += g->packed.n - before;
    }
    return FP_DONE;
}

/* ---- packed rows to JSON ---- */

void fp_speedscope_begin(struct fp_speedscope *w, uint32_t group, uint64_t zero) {
    w->n_open = w->n_frames_open = 0;
    w->begun = 0;
    w->now = w->groups[group].first - zero;
}

int fp_speedscope_put_calls(struct fp_speedscope *w, struct fp_window *in, struct fp_buf *out) {
    while (in->pos < in->n) {
        if (out->n >= FP_DRAIN) return FP_FULL;
        fp_buf_reserve(out, FIXED);
        const uint64_t entered = fp_varint_next(in);
        w->now += fp_varint_next(in);
        uint8_t *to = out->p + out->n;
        if (w->begun) *to++ = ',';
        w->begun = 1;
        if (entered) {
            const uint32_t frame = frame_of(w, (uint32_t)entered - 1);
            FP_PUSH(w->open, w->n_open, w->cap_open) = frame;
        }
        to = entered ? PUT(to, "{\"type\":\"O\",\"frame\":") : PUT(to, "{\"type\":\"C\",\"frame\":");
        to = fp_put_decimal(to, w->open[w->n_open - 1]);
        to = PUT(to, ",\"at\":");
        to = fp_put_decimal(to, w->now);
        *to++ = '}';
        w->n_open -= !entered;
        out->n = (size_t)(to - out->p);
        w->calls++;
    }
    return FP_DONE;
}

/* Appends the functions of a frame to w->open, and the end of it to w->ends. */
static void open_frame(struct fp_speedscope *w, uint32_t depth, uint32_t frame) {
    const struct fp_model *m = w->model;
    const uint32_t innermost = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
    uint32_t n = 1;
    for (uint32_t line = innermost; line && (line = fp_table_row(&m->lines, line)[FP_LINE_OUTER]);) n++;
    fp_array_room(&w->open, &w->cap_open, (uint64_t)w->n_open + n, sizeof *w->open);
    fp_array_room(&w->ends, &w->cap_ends, (uint64_t)depth + 1, sizeof *w->ends);
    w->ends[depth] = w->n_open += n;
    for (uint32_t i = 1, line = innermost; i <= n; i++) {
        const uint32_t *row = fp_table_row(&m->lines, line), of = frame_of(w, line ? row[FP_LINE_FUNCTION] : 0);
        w->open[w->n_open - i] = of;
        line = line ? row[FP_LINE_OUTER] : 0;
    }
}

/* Goes to the next sample whose value k is above 0, *weight: 0 when the bytes are used up. */
static void next_sample(struct fp_speedscope *w, struct fp_window *in, uint32_t n_values, uint32_t k,
                        uint64_t *weight) {
    *weight = 0;
    while (!*weight && in->pos < in->n) {
        const uint32_t shared = (uint32_t)fp_varint_next(in), n = shared + (uint32_t)fp_varint_next(in);
        fp_array_room(&w->frames, &w->cap_frames, n, sizeof *w->frames);
        for (uint32_t i = shared; i < n; i++) w->frames[i] = (uint32_t)fp_varint_next(in);
        w->n_frames_open = w->n_frames_open < shared ? w->n_frames_open : shared;
        w->depth = n;
        for (uint32_t i = 0; i < n_values; i++) {
            const uint64_t value = fp_varint_next(in);
            if (i == k) *weight = value;
        }
    }
}

/* Sets w->open to the frames of the current sample, and numbers those that are new, leaf first. */
static void open_sample(struct fp_speedscope *w) {
    const struct fp_model *m = w->model;
    for (uint32_t i = w->depth; i-- > w->n_frames_open;)
        for (uint32_t line = fp_table_row(&m->frames, w->frames[i])[FP_FRAME_LINES]; line;
             line = fp_table_row(&m->lines, line)[FP_LINE_OUTER])
            frame_of(w, fp_table_row(&m->lines, line)[FP_LINE_FUNCTION]);
    w->n_open = w->n_frames_open ? w->ends[w->n_frames_open - 1] : 0;
    for (; w->n_frames_open < w->depth; w->n_frames_open++)
        open_frame(w, w->n_frames_open, w->frames[w->n_frames_open]);
}

int fp_speedscope_put_stacks(struct fp_speedscope *w, struct fp_window *in, uint32_t n_values, uint32_t k,
                             struct fp_buf *out) {
    while (out->n < FP_DRAIN) {
        uint64_t weight;
        next_sample(w, in, n_values, k, &weight);
        if (!weight) return FP_DONE;
        open_sample(w);
        const uint32_t n = w->n_open < FP_SPEEDSCOPE_DEPTH ? w->n_open : FP_SPEEDSCOPE_DEPTH;
        w->deep_frames += w->n_open - n;
        fp_buf_reserve(out, FIXED + (size_t)n * 11);
        uint8_t *to = out->p + out->n;
        if (w->begun) *to++ = ',';
        w->begun = 1;
        *to++ = '[';
        for (uint32_t i = 0; i < n; i++) {
            if (i) *to++ = ',';
            to = fp_put_decimal(to, w->open[i]);
        }
        *to++ = ']';
        out->n = (size_t)(to - out->p);
        w->samples++;
    }
    return FP_FULL;
}

int fp_speedscope_put_weights(struct fp_speedscope *w, struct fp_window *in, uint32_t n_values, uint32_t k,
                              struct fp_buf *out) {
    while (out->n < FP_DRAIN) {
        uint64_t weight;
        next_sample(w, in, n_values, k, &weight);
        if (!weight) return FP_DONE;
        fp_buf_reserve(out, FIXED);
        uint8_t *to = out->p + out->n;
        if (w->begun) *to++ = ',';
        w->begun = 1;
        out->n = (size_t)(fp_put_decimal(to, weight) - out->p);
        w->now += weight;
    }
    return FP_FULL;
}

int fp_speedscope_put_frames(struct fp_speedscope *w, uint32_t *from, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    for (; *from < w->n_frames; ++*from) {
        if (out->n >= FP_DRAIN) return FP_FULL;
        const uint32_t *row = fp_table_row(&m->functions, w->functions[*from]);
        size_t name_n, file_n;
        const uint8_t *name =
            fp_utf8_names_utf8(&w->names, &w->scratch, &m->strings, row[FP_FUNCTION_NAME], &name_n, &w->replaced);
        if (!name_n) {
            name = (const uint8_t *)"[unknown]";
            name_n = 9;
        }
        fp_buf_put(out, ",", *from ? 1 : 0);
        fp_buf_put(out, "\n{\"name\":\"", 10);
        fp_json_text(out, name, name_n, &w->replaced);
        const uint8_t *file =
            fp_utf8_names_utf8(&w->files, &w->scratch, &m->strings, row[FP_FUNCTION_FILE], &file_n, &w->replaced);
        if (file_n) {
            fp_buf_put(out, "\",\"file\":\"", 10);
            fp_json_text(out, file, file_n, &w->replaced);
        }
        fp_buf_reserve(out, FIXED);
        uint8_t *to = out->p + out->n;
        *to++ = '"';
        if (row[FP_FUNCTION_LINE]) {
            to = PUT(to, ",\"line\":");
            to = fp_put_decimal(to, row[FP_FUNCTION_LINE]);
        }
        *to++ = '}';
        out->n = (size_t)(to - out->p);
    }
    return FP_DONE;
}
