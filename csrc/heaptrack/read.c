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
    int32_t lenient, has_last;
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

/* A line: what is left of it. */
struct heaptrack_line {
    const uint8_t *p, *end;
};

struct fp_heaptrack *fp_heaptrack_new(struct fp_model *model, int lenient) {
    struct heaptrack_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    fp_array_zeroed(&r->strings, &r->cap_strings, 1, sizeof *r->strings);
    fp_array_zeroed(&r->pointers, &r->cap_pointers, 1, sizeof *r->pointers);
    fp_array_zeroed(&r->traces, &r->cap_traces, 1, sizeof *r->traces);
    r->n_strings = r->n_pointers = r->n_traces = 1; /* 0: none */
    return &r->f;
}

void fp_heaptrack_free(struct fp_heaptrack *f) {
    struct heaptrack_reader *r = (struct heaptrack_reader *)f;
    fp_heap_free(&f->heap);
    FP_FREE(r->strings, r->pointers, r->traces, r->allocations, r->functions, r);
}

/* Reads the next number of the line.  Whether there is one. */
static inline int number(struct heaptrack_line *l, uint64_t *to) {
    const uint8_t *p = l->p;
    while (p < l->end && *p == ' ') p++;
    const uint8_t *first = p;
    *to = 0;
    if (fp_hexadecimal(&p, l->end, to) || p == first || (p < l->end && *p != ' ')) return 0;
    l->p = p;
    return 1;
}

/* Reads an index, below n. */
static inline int index_of(struct heaptrack_line *l, uint32_t n, uint32_t *to) {
    uint64_t v;
    if (!number(l, &v) || v >= n) return 0;
    *to = (uint32_t)v;
    return 1;
}

static int at_end(const struct heaptrack_line *l) {
    return l->p == l->end;
}

static const char *read_version(struct heaptrack_reader *r, struct heaptrack_line *l) {
    uint64_t tool;
    if (!number(l, &tool)) return "v and the version of heaptrack";
    if (!number(l, &r->f.version)) r->f.version = tool == ONLY_TOOL;
    return NULL;
}

static const char *read_string(struct heaptrack_reader *r, struct heaptrack_line *l) {
    uint64_t n = 0;
    uint32_t *to = &r->strings[r->n_strings - 1];
    const int has_length = r->f.version >= 3;
    if (has_length && !number(l, &n)) return "the length of a string";
    l->p += l->p < l->end; /* a blank */
    const size_t have = (size_t)(l->end - l->p);
    if (has_length && n != have) return "a string of the stated length";
    *to = fp_strings_intern(&r->model->strings, l->p, have);
    return NULL;
}

static uint32_t kind_of(const struct heaptrack_reader *r, uint32_t name) {
    static const char *const of_new[] = {"operator new(unsigned long)", "operator new[](unsigned long)",
                                         "operator new(unsigned int)", "operator new[](unsigned int)"};
    static const char *const of_first[] = {"main", "__libc_start_main", "__static_initialization_and_destruction_0"};
    for (size_t i = 0; i < sizeof of_new / sizeof *of_new; i++)
        if (fp_string_is(&r->model->strings, name, of_new[i])) return IS_NEW;
    for (size_t i = 0; i < sizeof of_first / sizeof *of_first; i++)
        if (fp_string_is(&r->model->strings, name, of_first[i])) return IS_FIRST;
    return 0;
}

/* The chain of the functions in the rest of the line, innermost first; 0: none has a name. */
static const char *read_functions(struct heaptrack_reader *r, struct heaptrack_line *l, uint32_t object,
                                  uint32_t *chain, uint32_t *first) {
    uint32_t n = 0;
    *chain = *first = 0;
    while (!at_end(l)) {
        struct heaptrack_function f = {0};
        uint64_t line = 0;
        if (!index_of(l, r->n_strings, &f.name)) return "the number of a function's name";
        const int is_alone = !n && at_end(l); /* without a place */
        if (!is_alone && !index_of(l, r->n_strings, &f.file)) return "the number of a file's name";
        if (!is_alone && (!number(l, &line) || line > INT32_MAX)) return "a line number";
        f.line = (uint32_t)line;
        FP_PUSH(r->functions, n, r->cap_functions) = f;
    }
    if (n) *first = r->strings[r->functions[0].name];
    while (n) { /* functions are inlined into those behind them */
        const struct heaptrack_function f = r->functions[--n];
        if (!f.name) continue;
        const uint32_t id = fp_model_function(r->model, object, r->strings[f.file], r->strings[f.name], 0, 0);
        *chain = fp_model_line(r->model, id, f.line, 0, *chain);
    }
    return NULL;
}

static const char *read_pointer(struct heaptrack_reader *r, struct heaptrack_line *l) {
    struct fp_model *m = r->model;
    uint64_t address;
    uint32_t module = 0, chain, first;
    if (!number(l, &address)) return "an address";
    if (!at_end(l) && !index_of(l, r->n_strings, &module)) return "the number of a module's name";
    const uint32_t object = module ? fp_model_object(m, r->strings[module], 0) : 0;
    const char *want = read_functions(r, l, object, &chain, &first);
    if (want) return want;
    const uint32_t frame = fp_model_frame(m, 0, address, 0, chain);
    r->pointers[r->n_pointers - 1] = (struct heaptrack_pointer){frame, first ? kind_of(r, first) : 0};
    return NULL;
}

static const char *read_trace(struct heaptrack_reader *r, struct heaptrack_line *l) {
    uint32_t pointer, caller;
    if (!index_of(l, r->n_pointers, &pointer)) return "the number of an instruction pointer above";
    if (!index_of(l, r->n_traces - 1, &caller)) return "the number of a trace above";
    const struct heaptrack_pointer at = r->pointers[pointer];
    uint32_t stack = r->traces[caller].stack;
    if (at.kind == IS_FIRST) stack = 0;
    if (at.kind != IS_NEW && at.frame) stack = fp_model_stack(r->model, stack, at.frame);
    r->traces[r->n_traces - 1].stack = stack;
    return NULL;
}

static uint32_t sum_of(struct heaptrack_reader *r, uint32_t trace) {
    struct heaptrack_trace *t = &r->traces[trace];
    if (!t->sum) t->sum = fp_heap_stack(&r->f.heap, t->stack, 0) + 1;
    return t->sum - 1;
}

static const char *read_allocation(struct heaptrack_reader *r, struct heaptrack_line *l) {
    struct heaptrack_allocation *a = &r->allocations[r->n_allocations - 1];
    uint64_t size;
    uint32_t trace;
    if (!number(l, &size) || size > INT64_MAX) return "a size below 2^63";
    if (!index_of(l, r->n_traces, &trace)) return "the number of a trace above";
    *a = (struct heaptrack_allocation){(int64_t)size, sum_of(r, trace)};
    return NULL;
}

/* Whether allocation i can be freed: its stack has some in use. */
static inline int is_in_use(const struct heaptrack_reader *r, uint64_t i) {
    return r->f.heap.sums[r->allocations[i].sum].values[FP_HEAP_LEFT] > 0;
}

/* Allocation i is made or freed.  0 or FP_E_OVERFLOW. */
static inline int change(struct heaptrack_reader *r, uint64_t i, int is_free) {
    const struct heaptrack_allocation a = r->allocations[i];
    int status;
    if (is_free) {
        status = fp_heap_change(&r->f.heap, a.sum, -1, -a.size);
        if (r->last == i && !status) status = fp_heap_temporary(&r->f.heap, a.sum, a.size);
        r->last = 0; /* as in heaptrack: so a free of allocation 0 after another one counts */
    } else {
        status = fp_heap_change(&r->f.heap, a.sum, 1, a.size);
        r->last = i;
    }
    return status;
}

/* Whether the allocation of the line at p, of a number of n digits, is freed by the next line, which many are. */
static inline int is_freed(const uint8_t *p, const uint8_t *end, unsigned n) {
    return *p == '+' && end - p >= 32 && fp_u16(p + n + 3) == ('-' | ' ' << 8) &&
           !((fp_u64(p + 2) ^ fp_u64(p + n + 5)) << (56 - 8 * n));
}

/* Moves *at past whole lines of allocations and frees, which are most of a file, without looking for their ends first:
 * up to a line that is anything else, or the last 16 bytes.  0 or FP_E_OVERFLOW. */
static int read_changes(struct heaptrack_reader *r, const uint8_t **at, const uint8_t *end) {
    const uint64_t ones = 0x0101010101010101;
    const uint8_t *p = *at;
    unsigned usual = 0, same = 0;
    int status = 0;
    for (; end - p >= 16 && !status; r->n_line++) {
        const unsigned kind = fp_u16(p), is_free = kind == ('-' | ' ' << 8);
        if (!is_free && kind != ('+' | ' ' << 8)) break;
        const uint64_t w = fp_u64(p + 2), x = w ^ '\n' * ones, ends = (x - ones) & ~x & 0x80 * ones;
        if (!ends) break;
        unsigned n = fp_lowest_bit(ends) / 8;
        if (!n) break;
        if (FP_LIKELY(n == usual)) {
            n = same; /* equal, but a compiler does not know it: the next line does not wait for the end of this one */
        } else {
            usual = n;
            __asm__("" : "=r"(same) : "0"(n));
        }
        /* bytes of digits and small letters, above them zeros; as in fp_hexadecimal */
        const uint64_t text = w << (64 - 8 * n), zeros = 0x30 * ones >> 8 * n, low = text | zeros;
        const uint64_t digits = (low + 0x50 * ones) & ~(low + 0x46 * ones),
                       letters = (low + 0x1f * ones) & ~(low + 0x19 * ones);
        if ((~(digits | letters) | low) & 0x80 * ones) break;
        uint64_t h = (low & 0x0f * ones) + (letters >> 7 & ones) * 9;
        h = (h << 4 | h >> 8) & 0x00ff00ff00ff00ff;
        h = (h << 8 | h >> 16) & 0x0000ffff0000ffff;
        h = (h << 16 | h >> 32) & 0x00000000ffffffff;
        if (h >= r->n_allocations || (is_free && !is_in_use(r, h))) break;
        if (is_freed(p, end, n) && fp_heap_brief(&r->f.heap, r->allocations[h].sum, r->allocations[h].size)) {
            p += 2 * (n + 3);
            r->last = 0;
            r->n_line++;
            continue;
        }
        status = change(r, h, (int)is_free);
        if (!status) p += n + 3;
    }
    *at = p;
    return status;
}

static const char *read_other(struct heaptrack_reader *r, uint8_t kind, struct heaptrack_line *l) {
    struct fp_heaptrack *f = &r->f;
    uint64_t v;
    switch (kind) {
        case 'v': return read_version(r, l);
        case 'X':
            if (l->p < l->end)
                f->command = fp_strings_intern(&r->model->strings, l->p + 1, (size_t)(l->end - l->p) - 1);
            return NULL;
        case 'I': return number(l, &f->page_size) ? NULL : "the size of a page";
        case 'c':
            if (!number(l, &v)) return "milliseconds";
            if (v > f->heap.now) f->heap.now = v; /* the clock may go back */
            return NULL;
        case 'R':
            if (!number(l, &v)) return "a number of pages";
            if (v > f->resident) f->resident = v;
            fp_heap_point(&f->heap, v);
            return NULL;
        case 'A': /* heaptrack was attached to the running program */
        case 'S': /* leaks to suppress */
        case '#': return NULL;
        default: return "a line that begins with v, X, I, s, i, t, a, +, -, c, R, A, S or #";
    }
}

/* Reads a line.  NULL, or what was expected; *status becomes 0 or FP_E_OVERFLOW. */
static const char *read_line(struct heaptrack_reader *r, uint8_t kind, struct heaptrack_line *l, int *status) {
    switch (kind) {
        case '+':
        case '-': {
            uint32_t i;
            if (!index_of(l, r->n_allocations, &i)) return "the number of an allocation above";
            if (kind == '-' && !is_in_use(r, i)) return "the number of an allocation in use";
            *status = change(r, i, kind == '-');
            return NULL;
        }
        case 's':
            FP_PUSH(r->strings, r->n_strings, r->cap_strings) = 0; /* an unreadable line has its number, too */
            return read_string(r, l);
        case 'i':
            FP_PUSH(r->pointers, r->n_pointers, r->cap_pointers) = (struct heaptrack_pointer){0};
            return read_pointer(r, l);
        case 't': FP_PUSH(r->traces, r->n_traces, r->cap_traces) = (struct heaptrack_trace){0}; return read_trace(r, l);
        case 'a':
            FP_PUSH(r->allocations, r->n_allocations, r->cap_allocations) =
                (struct heaptrack_allocation){0, sum_of(r, 0)};
            return read_allocation(r, l);
        default: return read_other(r, kind, l);
    }
}

/* Whether the first line is of a version that can be read. */
static int check_version(struct heaptrack_reader *r, uint64_t offset, struct fp_err *err) {
    if (r->n_line > 1 || (r->f.version > 0 && r->f.version <= NEWEST)) return 0;
    fp_fail_got(err, FP_E_VERSION, offset, "the file's version", FP_GOT_UNSIGNED, r->f.version, "1 to 3", 0);
    err->line = 1;
    return FP_E_VERSION;
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
        struct heaptrack_line l = {p + 1, end};
        const char *want = NULL;
        r->n_line += !status; /* read_changes has counted it */
        if (end > p && !status)
            want = r->n_line == 1 && *p != 'v' ? "v and the version of heaptrack" : read_line(r, *p, &l, &status);
        if (FP_UNLIKELY(status)) {
            fp_fail(err, status, offset, "a sum of bytes exceeds 2^63 - 1");
            err->line = r->n_line;
            return status;
        }
        if (FP_UNLIKELY(want != NULL)) {
            if (!r->lenient)
                return fp_fail_text(err, FP_E_MALFORMED, offset, r->n_line, "the line", p, (size_t)(end - p), want);
            f->bad_lines++;
        }
        if (FP_UNLIKELY((status = check_version(r, offset, err)))) return status;
        in->pos += (size_t)(end - p) + 1;
    }
    return in->eof ? fp_heap_rows(&f->heap, out) : FP_MORE;
}
