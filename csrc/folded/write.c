#include "folded/write.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/digits.h"
#include "core/utf8.h"

enum { UNKNOWN = 1, NO_STACK = 2 };                    /* of `texts` */
enum { USED = 1, RENAMED_LEAF = 2, RENAMED_ROOT = 4 }; /* of `flags` */
enum { COUNT_ROOM = FP_DIGITS_ROOM + 2 };              /* a blank, the digits, a newline */

struct fp_folded_writer *fp_folded_writer_new(struct fp_model *model) {
    struct fp_folded_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->model = model;
    w->divisor = 1;
    if (fp_strings_init(&w->texts) || fp_strings_intern(&w->texts, "[unknown]", 9) != UNKNOWN ||
        fp_strings_intern(&w->texts, "[no stack]", 10) != NO_STACK) {
        fp_folded_writer_free(w);
        return NULL;
    }
    return w;
}

void fp_folded_writer_free(struct fp_folded_writer *w) {
    if (!w) return;
    fp_strings_clear(&w->texts);
    free(w->text_of);
    free(w->flags);
    free(w->n_alike);
    fp_buf_free(&w->line);
    fp_buf_free(&w->scratch);
    free(w->nodes);
    free(w->ends);
    free(w->depth_of);
    free(w->path);
    free(w);
}

/* ---- names ---- */

static int is_ours(uint8_t c) {
    return c >= ' ' && c != ';' && c < 0x7f;
}

/* Is the character of `length` bytes at p one that ends a line, or that readers drop? */
static int is_separator(const uint8_t *p, unsigned length) {
    if (length == 2) return p[0] == 0xc2 && p[1] < 0xa0; /* U+0080 to U+009F */
    if (length != 3) return 0;
    return (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
           (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
}

/* Makes w->scratch the text of a name, n bytes at p. */
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

/* Enters w->scratch into the texts.  FP_NO_ID when memory ran out. */
static uint32_t enter_text(struct fp_folded_writer *w) {
    const uint32_t text = fp_strings_intern(&w->texts, w->scratch.p, w->scratch.n);
    if (text == FP_NO_ID || fp_array_zeroed(&w->flags, &w->cap_flags, (uint64_t)text + 1, 1) ||
        fp_array_zeroed(&w->n_alike, &w->cap_alike, (uint64_t)text + 1, sizeof *w->n_alike))
        return FP_NO_ID;
    return text;
}

/* The text of a name, a string of the model.  If another name has it already, it is told apart:
 *
 *   "a;b"  a:b      "a:b"  a:b [2]      "a\nb"  a b
 *
 * FP_NO_ID when memory ran out. */
static uint32_t text_of_name(struct fp_folded_writer *w, uint32_t name) {
    if (fp_array_zeroed(&w->text_of, &w->cap_text_of, (uint64_t)name + 1, sizeof *w->text_of)) return FP_NO_ID;
    if (FP_LIKELY(w->text_of[name])) return w->text_of[name];
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, name, &n);
    if (clean(w, p, n)) return FP_NO_ID;
    const size_t length = w->scratch.n;
    const uint32_t alike = enter_text(w);
    uint32_t text = alike;
    while (text != FP_NO_ID && w->flags[text] & USED) {
        uint8_t number[FP_DIGITS_ROOM];
        const uint8_t *end = fp_put_decimal(number, ++w->n_alike[alike] + 1u);
        w->scratch.n = length;
        if (fp_buf_put(&w->scratch, " [", 2) || fp_buf_put(&w->scratch, number, (size_t)(end - number)) ||
            fp_buf_put(&w->scratch, "]", 1))
            return FP_NO_ID;
        text = enter_text(w);
    }
    if (text == FP_NO_ID) return FP_NO_ID;
    w->stats.renamed += w->scratch.n != n || memcmp(w->scratch.p, p, n) != 0;
    w->flags[text] |= USED;
    return w->text_of[name] = text;
}

static uint32_t text_of_frame(struct fp_folded_writer *w, uint32_t frame) {
    const struct fp_model *m = w->model;
    const uint32_t line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
    const uint32_t function = line ? fp_table_row(&m->lines, line)[FP_LINE_FUNCTION] : 0;
    return text_of_name(w, fp_table_row(&m->functions, function)[FP_FUNCTION_NAME]);
}

/* Counts a text that is changed where it stands in a line, once for each reason. */
static int renamed_here(struct fp_folded_writer *w, uint32_t text, uint8_t reason) {
    if (fp_array_zeroed(&w->flags, &w->cap_flags, (uint64_t)text + 1, 1)) return FP_E_NOMEM;
    w->stats.renamed += !(w->flags[text] & reason);
    w->flags[text] |= reason;
    return 0;
}

int fp_folded_root(struct fp_folded_writer *w, uint32_t name) {
    w->root = text_of_name(w, name);
    return w->root == FP_NO_ID ? FP_E_NOMEM : 0;
}

/* ---- lines ---- */

/* Appends a frame to the line. */
static int add_frame(struct fp_folded_writer *w, uint32_t text) {
    size_t n;
    const uint8_t *p = fp_string(&w->texts, text, &n);
    struct fp_buf *line = &w->line;
    if (fp_buf_reserve(line, n + 1)) return FP_E_NOMEM;
    if (line->n)
        line->p[line->n++] = ';';
    else if (p[0] == '#') { /* not to be a comment */
        line->p[line->n++] = '_';
        if (renamed_here(w, text, RENAMED_ROOT)) return FP_E_NOMEM;
    }
    memcpy(line->p + line->n, p, n);
    line->n += n;
    return 0;
}

/* Makes w->line the frames of a stack. */
static int make_line(struct fp_folded_writer *w, uint32_t stack) {
    const struct fp_model *m = w->model;
    uint32_t n = 0, node = stack, k;
    if (w->n_emptied != m->n_emptied) w->n_nodes = 0; /* those ids are now of other stacks */
    w->n_emptied = m->n_emptied;
    if (fp_array_zeroed(&w->depth_of, &w->cap_depth_of, m->stacks.n, sizeof *w->depth_of)) return FP_E_NOMEM;
    /* up to a node that the last stack had, too */
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
    return add_frame(w, NO_STACK);
}

/* Where the blank is that stands before a number at the end of n bytes of text; n when there is none. */
static size_t blank_before_number(const uint8_t *p, size_t n) {
    size_t i = n;
    while (i && fp_is_digit(p[i - 1])) i--;
    if (i && p[i - 1] == '.') {
        i--;
        while (i && fp_is_digit(p[i - 1])) i--;
        if (i < n && p[i] == '.') return n; /* .5 is no count */
    }
    return i < n && i && p[i - 1] == ' ' ? i - 1 : n;
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
            count += rest >= w->divisor - rest; /* the nearest */
        }
        if (!count) {
            w->stats.left_out += (double)value;
            w->stats.zero++;
            continue;
        }
        if (make_line(w, in->stack[i]) || fp_buf_reserve(out, w->line.n + COUNT_ROOM)) return fp_no_memory(err);
        uint8_t *to = out->p + out->n;
        memcpy(to, w->line.p, w->line.n);
        const size_t blank = blank_before_number(to, w->line.n);
        if (FP_UNLIKELY(blank < w->line.n)) { /* of a frame: "[no stack]" ends in no number */
            to[blank] = '_';
            const uint32_t frame = fp_table_row(&w->model->stacks, in->stack[i])[FP_STACK_FRAME];
            if (renamed_here(w, text_of_frame(w, frame), RENAMED_LEAF)) return fp_no_memory(err);
        }
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
