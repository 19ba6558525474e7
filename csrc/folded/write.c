#include "folded/write.h"

enum { COUNT_ROOM = FP_DIGITS_ROOM + 2 }; /* a blank, the digits, a newline */

struct fp_folded_writer *fp_folded_writer_new(struct fp_model *model) {
    struct fp_folded_writer *w = fp_made(sizeof *w);
    w->model = model;
    w->divisor = 1;
    return w;
}

void fp_folded_writer_free(struct fp_folded_writer *w) {
    fp_utf8_names_clear(&w->names);
    FP_FREE_BUFFERS(&w->line, &w->scratch);
    FP_FREE(w->root_of, w->leaf_of, w->nodes, w->ends, w->depth_of, w->path, w->called, w);
}

/* ---- names ---- */

static int is_ours(uint8_t c) {
    return c >= ' ' && c != ';' && c < 0x7f;
}

/* Whether the character of `length` bytes at p ends a line, or readers drop it. */
static int is_separator(const uint8_t *p, unsigned length) {
    if (length == 2) return p[0] == 0xc2 && p[1] < 0xa0; /* U+0080 to U+009F */
    if (length != 3) return 0;
    return (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
           (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
}

/* Sets w->scratch to the text of a name, n bytes at p. */
static void clean(struct fp_folded_writer *w, const uint8_t *p, size_t n) {
    struct fp_buf *b = &w->scratch;
    size_t i = 0, first = 0;
    while (i < n && is_ours(p[i])) i++;
    b->n = 0;
    fp_buf_put(b, p, i);
    while (i < n) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        const int is_blank = length && (p[i] < ' ' || p[i] == 0x7f || is_separator(p + i, length));
        const void *with = !length ? "\xef\xbf\xbd" : p[i] == ';' ? ":" : is_blank ? " " : (const void *)(p + i);
        fp_buf_put(b, with, !length ? 3 : is_blank ? 1 : length);
        i += length ? length : 1;
    }
    while (b->n && b->p[b->n - 1] == ' ') b->n--;
    while (first < b->n && b->p[first] == ' ') first++;
    if (first) memmove(b->p, b->p + first, b->n -= first);
    if (!b->n) fp_buf_put(b, "[unknown]", 9);
}

/* The text of a name, a string of the model. */
static uint32_t text_of_name(struct fp_folded_writer *w, uint32_t name) {
    const uint32_t known = fp_utf8_names_find(&w->names, name);
    if (FP_LIKELY(known)) return known;
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, name, &n);
    clean(w, p, n);
    const uint32_t text = fp_utf8_names_text(&w->names, name, &w->scratch);
    w->stats.renamed += w->scratch.n != n || memcmp(w->scratch.p, p, n) != 0;
    return text;
}

static uint32_t text_of_frame(struct fp_folded_writer *w, uint32_t frame) {
    const struct fp_model *m = w->model;
    const uint32_t line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
    const uint32_t function = line ? fp_table_row(&m->lines, line)[FP_LINE_FUNCTION] : 0;
    const uint32_t called = function < w->cap_called ? w->called[function] : 0;
    return text_of_name(w, called ? called : fp_table_row(&m->functions, function)[FP_FUNCTION_NAME]);
}

int fp_folded_call(struct fp_folded_writer *w, uint32_t function, uint32_t name) {
    *FP_AT(w->called, w->cap_called, function) = name;
    return 0;
}

/* The replacement of a text that would be misread at the beginning or the end of a line: its n bytes with an underscore
 * for the byte at `at`, or before all of them. */
static uint32_t text_in_place(struct fp_folded_writer *w, uint32_t **of, uint32_t *cap, uint32_t text, size_t at) {
    uint32_t *const found = FP_AT(*of, *cap, text);
    if (*found) return *found;
    struct fp_buf *b = &w->scratch;
    size_t n;
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    b->n = 0;
    if (!at) fp_buf_put(b, "_", 1);
    fp_buf_put(b, p, n);
    if (at) b->p[at] = '_';
    w->stats.renamed++;
    return *found = fp_utf8_names_add(&w->names, b);
}

int fp_folded_root(struct fp_folded_writer *w, uint32_t name) {
    w->root = text_of_name(w, name);
    return 0;
}

/* ---- lines ---- */

/* Appends a frame to the line. */
static void add_frame(struct fp_folded_writer *w, uint32_t text) {
    size_t n;
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    struct fp_buf *line = &w->line;
    if (!line->n && p[0] == '#') { /* otherwise it would be a comment */
        text = text_in_place(w, &w->root_of, &w->cap_root_of, text, 0);
        p = fp_string(&w->names.texts, text, &n);
    }
    fp_buf_reserve(line, n + 1);
    if (line->n) line->p[line->n++] = ';';
    memcpy(line->p + line->n, p, n);
    line->n += n;
}

/* Sets w->line to the frames of a stack. */
static void make_line(struct fp_folded_writer *w, uint32_t stack) {
    const struct fp_model *m = w->model;
    uint32_t n = 0, node = stack, k;
    if (w->n_emptied != m->n_emptied) w->n_nodes = 0; /* the ids now belong to other stacks */
    w->n_emptied = m->n_emptied;
    fp_array_zeroed(&w->depth_of, &w->cap_depth_of, m->stacks.n, sizeof *w->depth_of);
    /* up to a node that the last stack shares */
    while (node) {
        const uint32_t depth = w->depth_of[node];
        if (depth < w->n_nodes && w->nodes[depth] == node) break;
        FP_PUSH(w->path, n, w->cap_path) = node;
        node = fp_table_row(&m->stacks, node)[FP_STACK_PARENT];
    }
    k = node ? w->depth_of[node] + 1 : 0;
    w->line.n = k ? w->ends[k - 1] : 0;
    w->n_nodes = 0;
    if (!k && w->root) add_frame(w, w->root);
    fp_array_room(&w->nodes, &w->cap_nodes, (uint64_t)k + n, sizeof *w->nodes);
    fp_array_room(&w->ends, &w->cap_ends, (uint64_t)k + n, sizeof *w->ends);
    while (n-- > 0) {
        node = w->path[n];
        add_frame(w, text_of_frame(w, fp_table_row(&m->stacks, node)[FP_STACK_FRAME]));
        w->nodes[k] = node;
        w->ends[k] = w->line.n;
        w->depth_of[node] = k++;
    }
    w->n_nodes = k;
    if (stack) return;
    w->stats.no_stack++;
    if (!w->no_stack) {
        w->scratch.n = 0;
        fp_buf_put(&w->scratch, "[no stack]", 10);
        w->no_stack = fp_utf8_names_add(&w->names, &w->scratch);
    }
    add_frame(w, w->no_stack);
}

/* The position of the blank before a number at the end of n bytes of text; n when there is none. */
static size_t blank_before_number(const uint8_t *p, size_t n) {
    size_t i = n;
    while (i && fp_is_digit(p[i - 1])) i--;
    if (i && p[i - 1] == '.') {
        i--;
        while (i && fp_is_digit(p[i - 1])) i--;
        if (i < n && p[i] == '.') return n; /* .5 is not a count */
    }
    return i < n && i && p[i - 1] == ' ' ? i - 1 : n;
}

/* The text of a stack's leaf as written in its line. */
static uint32_t leaf_of_line(struct fp_folded_writer *w, uint32_t stack) {
    const uint32_t text = text_of_frame(w, fp_table_row(&w->model->stacks, stack)[FP_STACK_FRAME]);
    if (w->n_nodes > 1 || w->root) return text;
    size_t n;
    return fp_string(&w->names.texts, text, &n)[0] == '#' ? w->root_of[text] : text;
}

/* If the leaf of the line ends in a blank and a number, which readers would take for the count, replaces the blank by
 * an underscore.  The next stack's line may share the text before the leaf. */
static void repair_leaf(struct fp_folded_writer *w, uint32_t stack) {
    size_t n;
    uint32_t text = leaf_of_line(w, stack);
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    w->line.n -= n;
    text = text_in_place(w, &w->leaf_of, &w->cap_leaf_of, text, blank_before_number(p, n));
    p = fp_string(&w->names.texts, text, &n);
    fp_buf_put(&w->line, p, n);
}

int fp_folded_put(struct fp_folded_writer *w, const struct fp_batch *in, struct fp_buf *out, struct fp_err *err) {
    (void)err;
    for (; w->row < in->n; w->row++) {
        if (FP_UNLIKELY(out->n >= FP_DRAIN)) return FP_FULL;
        const uint32_t i = w->row;
        const int64_t value = in->values[i];
        uint64_t count = (uint64_t)value;
        w->stats.cost += value < 0 ? -(double)value : (double)value;
        if (value < 0) {
            w->stats.left_out -= (double)value;
            w->stats.negative++;
            continue;
        }
        if (w->divisor > 1) {
            const uint64_t rest = count % w->divisor;
            count /= w->divisor;
            w->stats.rounded += rest != 0;
            count += rest >= w->divisor - rest; /* round to nearest */
        }
        if (!count) {
            w->stats.left_out += (double)value;
            w->stats.zero++;
            continue;
        }
        make_line(w, in->stack[i]);
        const size_t length = w->line.n;
        if (FP_UNLIKELY(blank_before_number(w->line.p, length) < length)) {
            repair_leaf(w, in->stack[i]);
            w->n_nodes--; /* the text there was changed */
        }
        fp_buf_reserve(out, w->line.n + COUNT_ROOM);
        uint8_t *to = out->p + out->n;
        memcpy(to, w->line.p, w->line.n);
        to += w->line.n;
        *to++ = ' ';
        to = fp_put_decimal(to, count);
        *to++ = '\n';
        out->n = (size_t)(to - out->p);
        w->stats.lines++;
    }
    w->row = 0;
    return FP_DONE;
}
