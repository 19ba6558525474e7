#include "heaptrack/read.h"

enum { NEWEST = 3, ONLY_TOOL = 0x010200 /* this version of the tool wrote file version 1 without its number */ };
enum { IS_NEW = 1, IS_FIRST = 2 }; /* kinds of functions */

struct heaptrack_pointer {
    uint32_t frame, kind;
};
struct heaptrack_trace {
    uint32_t stack, sum; /* sum + 1, 0: none yet */
};
struct heaptrack_function {
    uint32_t name, file, line; /* name, file: numbers of strings */
};
struct heaptrack_allocation {
    int64_t size;
    uint32_t sum;
};

struct heaptrack_reader {
    struct fp_heaptrack f;
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint64_t n_line;
    uint64_t last; /* the allocation made last */
    uint32_t *strings;
    struct heaptrack_pointer *pointers;
    struct heaptrack_trace *traces;
    struct heaptrack_allocation *allocations;
    struct heaptrack_function *functions; /* of an instruction pointer, while it is read */
    uint32_t cap_functions;
    uint32_t n_strings, cap_strings, n_pointers, cap_pointers, n_traces, cap_traces, n_allocations, cap_allocations;
};

struct fp_heaptrack *fp_heaptrack_new(struct fp_model *model, int lenient) {
    struct heaptrack_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    FP_PUSH(r->strings, r->n_strings, r->cap_strings) = 0; /* number 0: none */
    FP_PUSH(r->pointers, r->n_pointers, r->cap_pointers) = (struct heaptrack_pointer){0};
    FP_PUSH(r->traces, r->n_traces, r->cap_traces) = (struct heaptrack_trace){0};
    return &r->f;
}

void fp_heaptrack_free(struct fp_heaptrack *f) {
    struct heaptrack_reader *r = (struct heaptrack_reader *)f;
    fp_heap_free(&f->heap);
    FP_FREE(r->strings, r->pointers, r->traces, r->allocations, r->functions, r);
}

/* The next number of the line.  If there is none, `want` of the line, NULL so far, becomes this one. */
static inline uint64_t number(struct fp_cursor *c, const char *want) {
    if (c->want) return 0;
    const uint8_t *p = c->p;
    while (p < c->end && *p == ' ') p++;
    const uint8_t *first = p;
    uint64_t v = 0;
    if (fp_hexadecimal(&p, c->end, &v) || p == first || (p < c->end && *p != ' ')) {
        c->want = want;
        return 0;
    }
    c->p = p;
    return v;
}

/* The same, of a number below n. */
static inline uint32_t index_of(struct fp_cursor *c, uint32_t n, const char *want) {
    const uint64_t v = number(c, want);
    if (v >= n && !c->want) c->want = want;
    return v < n ? (uint32_t)v : 0;
}

static void read_version(struct heaptrack_reader *r, struct fp_cursor *c) {
    const uint64_t tool = number(c, "v and the version of heaptrack");
    if (c->want) return;
    const uint8_t *const rest = c->p;
    r->f.version = number(c, NULL);
    if (c->p == rest) r->f.version = tool == ONLY_TOOL;
}

/* Each of s, i, t and a adds an entry to a table, also an unreadable one: lines refer to entries by their numbers. */
static void read_string(struct heaptrack_reader *r, struct fp_cursor *c) {
    uint32_t *const to = &FP_PUSH(r->strings, r->n_strings, r->cap_strings);
    *to = 0;
    const int has_length = r->f.version >= 3;
    const uint64_t n = has_length ? number(c, "the length of a string") : 0;
    c->p += c->p < c->end; /* a blank */
    const size_t have = (size_t)(c->end - c->p);
    if (has_length && n != have && !c->want) c->want = "a string of the stated length";
    if (!c->want) *to = fp_strings_intern(&r->model->strings, c->p, have);
}

static uint32_t kind_of(const struct heaptrack_reader *r, uint32_t name) {
    static const struct {
        const char *name;
        uint32_t kind;
    } known[] = {{"operator new(unsigned long)", IS_NEW},
                 {"operator new[](unsigned long)", IS_NEW},
                 {"operator new(unsigned int)", IS_NEW},
                 {"operator new[](unsigned int)", IS_NEW},
                 {"main", IS_FIRST},
                 {"__libc_start_main", IS_FIRST},
                 {"__static_initialization_and_destruction_0", IS_FIRST}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fp_string_is(&r->model->strings, name, known[i].name)) return known[i].kind;
    return 0;
}

/* The chain of the functions in the rest of the line, innermost first; 0: none has a name. */
static uint32_t read_functions(struct heaptrack_reader *r, struct fp_cursor *c, uint32_t object, uint32_t *first) {
    uint32_t n = 0, chain = 0;
    while (c->p < c->end && !c->want) {
        struct heaptrack_function f = {.name = index_of(c, r->n_strings, "the number of a function's name")};
        if (n || c->p < c->end) { /* else without a place */
            f.file = index_of(c, r->n_strings, "the number of a file's name");
            f.line = index_of(c, (uint32_t)INT32_MAX + 1, "a line number");
        }
        FP_PUSH(r->functions, n, r->cap_functions) = f;
    }
    if (c->want) return 0;
    *first = n ? r->strings[r->functions[0].name] : 0;
    while (n) { /* functions are inlined into those behind them */
        const struct heaptrack_function f = r->functions[--n];
        if (!f.name) continue;
        const uint32_t id = fp_model_function(r->model, object, r->strings[f.file], r->strings[f.name], 0, 0);
        chain = fp_model_line(r->model, id, f.line, 0, chain);
    }
    return chain;
}

static void read_pointer(struct heaptrack_reader *r, struct fp_cursor *c) {
    struct fp_model *m = r->model;
    uint32_t first = 0;
    struct heaptrack_pointer *const to = &FP_PUSH(r->pointers, r->n_pointers, r->cap_pointers);
    *to = (struct heaptrack_pointer){0};
    const uint64_t address = number(c, "an address");
    const uint32_t module = c->p < c->end ? index_of(c, r->n_strings, "the number of a module's name") : 0;
    const uint32_t object = module ? fp_model_object(m, r->strings[module], 0) : 0;
    const uint32_t chain = read_functions(r, c, object, &first);
    if (c->want) return;
    *to = (struct heaptrack_pointer){fp_model_frame(m, 0, address, 0, chain), first ? kind_of(r, first) : 0};
}

static void read_trace(struct heaptrack_reader *r, struct fp_cursor *c) {
    struct heaptrack_trace *const to = &FP_PUSH(r->traces, r->n_traces, r->cap_traces);
    *to = (struct heaptrack_trace){0};
    const uint32_t pointer = index_of(c, r->n_pointers, "the number of an instruction pointer above");
    const uint32_t caller = index_of(c, r->n_traces - 1, "the number of a trace above");
    if (c->want) return;
    const struct heaptrack_pointer at = r->pointers[pointer];
    uint32_t stack = at.kind == IS_FIRST ? 0 : r->traces[caller].stack;
    if (at.kind != IS_NEW && at.frame) stack = fp_model_stack(r->model, stack, at.frame);
    to->stack = stack;
}

static uint32_t sum_of(struct heaptrack_reader *r, uint32_t trace) {
    struct heaptrack_trace *t = &r->traces[trace];
    if (!t->sum) t->sum = fp_heap_stack(&r->f.heap, t->stack, 0) + 1;
    return t->sum - 1;
}

static void read_allocation(struct heaptrack_reader *r, struct fp_cursor *c) {
    struct heaptrack_allocation *const to = &FP_PUSH(r->allocations, r->n_allocations, r->cap_allocations);
    *to = (struct heaptrack_allocation){0, sum_of(r, 0)};
    const uint64_t size = number(c, "a size below 2^63");
    if (size > INT64_MAX) c->want = "a size below 2^63";
    const uint32_t trace = index_of(c, r->n_traces, "the number of a trace above");
    if (c->want) return;
    *to = (struct heaptrack_allocation){(int64_t)size, sum_of(r, trace)};
}

/* Whether allocation i can be freed: its stack has some in use. */
static inline int is_in_use(const struct heaptrack_reader *r, uint64_t i) {
    return r->f.heap.sums[r->allocations[i].sum].values[FP_HEAP_LEFT] > 0;
}

/* Allocation i is made or freed.  0 or FP_E_OVERFLOW. */
static inline int change(struct heaptrack_reader *r, uint64_t i, int is_free) {
    const struct heaptrack_allocation a = r->allocations[i];
    const uint64_t last = r->last;
    r->last = is_free ? 0 : i; /* as in heaptrack: so a free of allocation 0 after another one counts */
    const int status = fp_heap_change(&r->f.heap, a.sum, is_free ? -1 : 1, is_free ? -a.size : a.size);
    return is_free && last == i && !status ? fp_heap_temporary(&r->f.heap, a.sum, a.size) : status;
}

/* Whether the allocation of the line at p, of a number of n digits, is freed by the next line, which many are. */
static inline int is_freed(const uint8_t *p, const uint8_t *end, unsigned n) {
    return *p == '+' && end - p >= 32 && fp_u16(p + n + 3) == ('-' | ' ' << 8) &&
           !((fp_u64(p + 2) ^ fp_u64(p + n + 5)) << (56 - 8 * n));
}

/* Moves *at past whole lines of allocations and frees, which are most of a file, without looking for their ends first:
 * up to a line that is anything else, or the last 16 bytes.  0 or FP_E_OVERFLOW. */
static int read_changes(struct heaptrack_reader *r, const uint8_t **at, const uint8_t *end) {
    const uint8_t *p = *at;
    int status = 0;
    for (; end - p >= 16 && !status; r->n_line++) {
        const unsigned kind = fp_u16(p), is_free = kind == ('-' | ' ' << 8);
        if (!is_free && kind != ('+' | ' ' << 8)) break;
        uint64_t nibbles;
        const uint64_t others = ~fp_hex_bytes(fp_u64(p + 2), &nibbles) & 0x8080808080808080;
        if (!others) break;
        const unsigned n = fp_lowest_bit(others) / 8;
        if (!n || p[2 + n] != '\n') break;
        const uint64_t i = fp_hex_join(nibbles, n);
        if (i >= r->n_allocations || (is_free && !is_in_use(r, i))) break;
        if (is_freed(p, end, n) && fp_heap_brief(&r->f.heap, r->allocations[i].sum, r->allocations[i].size)) {
            p += 2 * (n + 3);
            r->last = 0;
            r->n_line++;
            continue;
        }
        status = change(r, i, (int)is_free);
        if (!status) p += n + 3;
    }
    *at = p;
    return status;
}

/* Reads a line of a kind.  0 or FP_E_OVERFLOW. */
static int read_line(struct heaptrack_reader *r, uint8_t kind, struct fp_cursor *c) {
    struct fp_heaptrack *f = &r->f;
    uint64_t v;
    switch (kind) {
        case '+':
        case '-':
            v = index_of(c, r->n_allocations, "the number of an allocation above");
            if (!c->want && kind == '-' && !is_in_use(r, v)) c->want = "the number of an allocation in use";
            return c->want ? 0 : change(r, v, kind == '-');
        case 's': read_string(r, c); return 0;
        case 'i': read_pointer(r, c); return 0;
        case 't': read_trace(r, c); return 0;
        case 'a': read_allocation(r, c); return 0;
        case 'v': read_version(r, c); return 0;
        case 'X':
            if (c->p < c->end)
                f->command = fp_strings_intern(&r->model->strings, c->p + 1, (size_t)(c->end - c->p) - 1);
            return 0;
        case 'I': f->page_size = number(c, "the size of a page"); return 0;
        case 'c':
            v = number(c, "milliseconds");
            if (v > f->heap.now) f->heap.now = v; /* the clock may go back */
            return 0;
        case 'R':
            v = number(c, "a number of pages");
            if (v > f->resident) f->resident = v;
            if (!c->want) fp_heap_point(&f->heap, v);
            return 0;
        case 'A': /* heaptrack was attached to the running program */
        case 'S': /* leaks to suppress */
        case '#': return 0;
        default: c->want = "a line that begins with v, X, I, s, i, t, a, +, -, c, R, A, S or #"; return 0;
    }
}

int fp_heaptrack_feed(struct fp_heaptrack *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct heaptrack_reader *r = (struct heaptrack_reader *)f;
    while (in->pos < in->n) {
        const uint8_t *p = in->p + in->pos;
        int status = r->n_line ? read_changes(r, &p, in->p + in->n) : 0;
        in->pos = (size_t)(p - in->p);
        const uint8_t *end = memchr(p, '\n', in->n - in->pos);
        const uint64_t offset = in->base + in->pos;
        if (!end && !in->eof) return FP_MORE;
        if (!end) {
            if (!r->lenient)
                return fp_fail_text(err, FP_E_TRUNCATED, offset, r->n_line + 1, "the last line", p, in->n - in->pos,
                                    "a newline");
            f->half_lines++;
            in->pos = in->n;
            break;
        }
        struct fp_cursor c = {.p = p + 1, .end = end};
        r->n_line += !status; /* read_changes has counted it */
        if (r->n_line == 1 && *p != 'v') {
            c.want = end > p ? "v and the version of heaptrack" : NULL;
        } else if (end > p && !status) {
            status = read_line(r, *p, &c);
        }
        if (FP_UNLIKELY(status)) {
            fp_fail(err, status, offset, "a sum of bytes exceeds 2^63 - 1");
            err->line = r->n_line;
            return status;
        }
        if (FP_UNLIKELY(c.want != NULL)) {
            if (!r->lenient)
                return fp_fail_text(err, FP_E_MALFORMED, offset, r->n_line, "the line", p, (size_t)(end - p), c.want);
            f->bad_lines++;
        }
        if (FP_UNLIKELY(r->n_line == 1 && (f->version < 1 || f->version > NEWEST))) {
            fp_fail_got(err, FP_E_VERSION, offset, "the file's version", FP_GOT_UNSIGNED, f->version, "1 to 3", 0);
            err->line = 1;
            return FP_E_VERSION;
        }
        in->pos += (size_t)(end - p) + 1;
    }
    return in->eof ? fp_heap_rows(&f->heap, out) : FP_MORE;
}
