#include "folded/write.h"

enum { COUNT_ROOM = FP_DIGITS_ROOM + 2 }; /* a blank, the digits, a newline */

struct fp_folded_writer *fp_folded_writer_new(struct fp_model *model) {
    struct fp_folded_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
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
static int clean(struct fp_folded_writer *w, const uint8_t *p, size_t n) {
    struct fp_buf *b = &w->scratch;
    size_t i = 0, first = 0;
    while (i < n && is_ours(p[i])) i++;
    b->n = 0;
    if (fp_buf_put(b, p, i)) return FP_E_NOMEM;
    while (i < n) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        const int is_blank = length && (p[i] < ' ' || p[i] == 0x7f || is_separator(p + i, length));
        const void *with = !length ? "\xef\xbf\xbd" : p[i] == ';' ? ":" : is_blank ? " " : (const void *)(p + i);
        if (fp_buf_put(b, with, !length ? 3 : is_blank ? 1 : length)) return FP_E_NOMEM;
        i += length ? length : 1;
    }
    while (b->n && b->p[b->n - 1] == ' ') b->n--;
    while (first < b->n && b->p[first] == ' ') first++;
    if (first) memmove(b->p, b->p + first, b->n -= first);
    return b->n ? 0 : fp_buf_put(b, "[unknown]", 9);
}

/* The text of a name, a string of the model.  FP_NO_ID when memory ran out. */
static uint32_t text_of_name(struct fp_folded_writer *w, uint32_t name) {
    const uint32_t known = fp_utf8_names_find(&w->names, name);
    if (FP_LIKELY(known)) return known;
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, name, &n);
    if (clean(w, p, n)) return FP_NO_ID;
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
    if (name == FP_NO_ID || fp_array_zeroed(&w->called, &w->cap_called, (uint64_t)function + 1, sizeof *w->called))
        return FP_E_NOMEM;
    w->called[function] = name;
    return 0;
}

/* The replacement of a text that would be misread at the beginning or the end of a line: its n bytes with an underscore
 * for the byte at `at`, or before all of them. */
static uint32_t text_in_place(struct fp_folded_writer *w, uint32_t **of, uint32_t *cap, uint32_t text, size_t at) {
    if (fp_array_zeroed(of, cap, (uint64_t)text + 1, sizeof **of)) return FP_NO_ID;
    if ((*of)[text]) return (*of)[text];
    struct fp_buf *b = &w->scratch;
    size_t n;
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    b->n = 0;
    if ((!at && fp_buf_put(b, "_", 1)) || fp_buf_put(b, p, n)) return FP_NO_ID;
    if (at) b->p[at] = '_';
    const uint32_t found = fp_utf8_names_add(&w->names, b);
    w->stats.renamed++;
    return found == FP_NO_ID ? found : ((*of)[text] = found);
}

int fp_folded_root(struct fp_folded_writer *w, uint32_t name) {
    w->root = text_of_name(w, name);
    return w->root == FP_NO_ID ? FP_E_NOMEM : 0;
}

/* ---- lines ---- */

/* Appends a frame to the line. */
static int add_frame(struct fp_folded_writer *w, uint32_t text) {
    size_t n;
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    struct fp_buf *line = &w->line;
    if (!line->n && p[0] == '#') { /* otherwise it would be a comment */
        text = text_in_place(w, &w->root_of, &w->cap_root_of, text, 0);
        if (text == FP_NO_ID) return FP_E_NOMEM;
        p = fp_string(&w->names.texts, text, &n);
    }
    if (fp_buf_reserve(line, n + 1)) return FP_E_NOMEM;
    if (line->n) line->p[line->n++] = ';';
    memcpy(line->p + line->n, p, n);
    line->n += n;
    return 0;
}

/* Sets w->line to the frames of a stack. */
static int make_line(struct fp_folded_writer *w, uint32_t stack) {
    const struct fp_model *m = w->model;
    uint32_t n = 0, node = stack, k;
    if (w->n_emptied != m->n_emptied) w->n_nodes = 0; /* the ids now belong to other stacks */
    w->n_emptied = m->n_emptied;
    if (fp_array_zeroed(&w->depth_of, &w->cap_depth_of, m->stacks.n, sizeof *w->depth_of)) return FP_E_NOMEM;
    /* up to a node that the last stack shares */
    for (; node; n++) {
        const uint32_t depth = w->depth_of[node];
        if (depth < w->n_nodes && w->nodes[depth] == node) break;
        if (fp_array_room(&w->path, &w->cap_path, (uint64_t)n + 1, sizeof *w->path)) return FP_E_NOMEM;
        w->path[n] = node;
        node = fp_table_row(&m->stacks, node)[FP_STACK_PARENT];
    }
    k = node ? w->depth_of[node] + 1 : 0;
    w->line.n = k ? w->ends[k - 1] : 0;
    w->n_nodes = 0;
    if (!k && w->root && add_frame(w, w->root)) return FP_E_NOMEM;
    if (fp_array_room(&w->nodes, &w->cap_nodes, (uint64_t)k + n, sizeof *w->nodes) ||
        fp_array_room(&w->ends, &w->cap_ends, (uint64_t)k + n, sizeof *w->ends))
        return FP_E_NOMEM;
    while (n-- > 0) {
        node = w->path[n];
        const uint32_t text = text_of_frame(w, fp_table_row(&m->stacks, node)[FP_STACK_FRAME]);
        if (text == FP_NO_ID || add_frame(w, text)) return FP_E_NOMEM;
        w->nodes[k] = node;
        w->ends[k] = w->line.n;
        w->depth_of[node] = k++;
    }
    w->n_nodes = k;
    if (stack) return 0;
    w->stats.no_stack++;
    if (!w->no_stack) {
        w->scratch.n = 0;
        if (fp_buf_put(&w->scratch, "[no stack]", 10)) return FP_E_NOMEM;
        const uint32_t text = fp_utf8_names_add(&w->names, &w->scratch);
        if (text == FP_NO_ID) return FP_E_NOMEM;
        w->no_stack = text;
    }
    return add_frame(w, w->no_stack);
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

/* The text of a stack's leaf as written in its line.  FP_NO_ID when memory ran out. */
static uint32_t leaf_of_line(struct fp_folded_writer *w, uint32_t stack) {
    const uint32_t text = text_of_frame(w, fp_table_row(&w->model->stacks, stack)[FP_STACK_FRAME]);
    if (text == FP_NO_ID || w->n_nodes > 1 || w->root) return text;
    size_t n;
    return fp_string(&w->names.texts, text, &n)[0] == '#' ? w->root_of[text] : text;
}

/* If the leaf of the line ends in a blank and a number, which readers would take for the count, replaces the blank by
 * an underscore.  The next stack's line may share the text before the leaf. */
static int repair_leaf(struct fp_folded_writer *w, uint32_t stack) {
    size_t n;
    uint32_t text = leaf_of_line(w, stack);
    if (text == FP_NO_ID) return FP_E_NOMEM;
    const uint8_t *p = fp_string(&w->names.texts, text, &n);
    w->line.n -= n;
    text = text_in_place(w, &w->leaf_of, &w->cap_leaf_of, text, blank_before_number(p, n));
    if (text == FP_NO_ID) return FP_E_NOMEM;
    p = fp_string(&w->names.texts, text, &n);
    return fp_buf_put(&w->line, p, n);
}

int fp_folded_put(struct fp_folded_writer *w, const struct fp_batch *in, struct fp_buf *out, struct fp_err *err) {
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
        if (make_line(w, in->stack[i])) return fp_no_memory(err);
        const size_t length = w->line.n;
        if (FP_UNLIKELY(blank_before_number(w->line.p, length) < length)) {
            if (repair_leaf(w, in->stack[i])) return fp_no_memory(err);
            w->n_nodes--; /* the text there was changed */
        }
        if (fp_buf_reserve(out, w->line.n + COUNT_ROOM)) return fp_no_memory(err);
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
