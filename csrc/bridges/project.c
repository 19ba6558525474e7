#include "bridges/project.h"

#include <stdlib.h>

enum { POSITION_FUNCTION, POSITION_FILE, POSITION_LINE, POSITION_ADDRESS, POSITION_WIDTH = POSITION_ADDRESS + 2 };

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the call graph of the stacks");
}
static int too_large(struct fp_err *err) {
    return fp_fail(err, FP_E_OVERFLOW, 0, "a cost beyond 2^63-1");
}

/* An id that a batch or a table refers to must be one that its table has. */
static int unknown_id(struct fp_err *err, const char *what, uint32_t id, uint32_t n) {
    return fp_fail_got(err, FP_E_MALFORMED, 0, what, FP_GOT_UNSIGNED, id, "less than %", n);
}

struct fp_project *fp_project_new(struct fp_model *model, int per_thread, int inline_calls) {
    struct fp_project *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = model;
    s->per_thread = per_thread;
    s->inline_calls = inline_calls;
    if (fp_table_init(&s->keys, 2) || fp_table_init(&s->names, 3) || fp_table_init(&s->positions, POSITION_WIDTH)) {
        fp_project_free(s);
        return NULL;
    }
    return s;
}

void fp_project_free(struct fp_project *s) {
    if (!s) return;
    fp_table_clear(&s->keys);
    fp_table_clear(&s->positions);
    fp_table_clear(&s->rows);
    fp_table_clear(&s->names);
    free(s->function_of_name);
    free(s->sums);
    free(s->by_group);
    free(s->group_start);
    free(s->chain);
    free(s->chain_of);
    free(s->local_of);
    free(s->active);
    free(s->start_of);
    free(s->rank_of_string);
    free(s->rank_of_function);
    free(s->costs);
    free(s->counts);
    free(s->order);
    fp_buf_free(&s->name);
    free(s);
}

/* At least `need` zeroed rows of n_values; what was there stays. */
static int sums_room(int64_t **sums, uint32_t *cap, uint32_t need, uint32_t n_values) {
    if (need <= *cap) return 0;
    uint64_t more = (uint64_t)need + need / 2 + 64;
    uint64_t width = n_values ? n_values : 1;
    if (more > UINT32_MAX || more > SIZE_MAX / sizeof(int64_t) / width) return FP_E_NOMEM;
    int64_t *p = realloc(*sums, (size_t)(more * width) * sizeof *p);
    if (!p) return FP_E_NOMEM;
    memset(p + (size_t)*cap * width, 0, (size_t)((more - *cap) * width) * sizeof *p);
    *sums = p;
    *cap = (uint32_t)more;
    return 0;
}

int fp_project_set_values(struct fp_project *s, uint32_t n_values) {
    if (n_values <= s->n_values) return 0;
    int64_t *sums = NULL;
    uint32_t cap = 0;
    if (sums_room(&sums, &cap, s->keys.n, n_values)) return FP_E_NOMEM;
    if (s->n_values)
        for (uint32_t i = 0; i < s->keys.n && i < s->cap_sums; i++)
            memcpy(sums + (size_t)i * n_values, s->sums + (size_t)i * s->n_values, s->n_values * sizeof *sums);
    free(s->sums);
    s->sums = sums;
    s->cap_sums = cap;
    s->n_values = n_values;
    return 0;
}

int fp_project_put(struct fp_project *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    const uint32_t n_stacks = s->model->stacks.n, n_values = in->n_values;
    for (uint32_t k = 0; k < n_values; k++)
        if (columns[k] >= s->n_values) return unknown_id(err, "the column of a value", columns[k], s->n_values);
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t group = s->per_thread ? in->thread[i] : 0;
        if (in->stack[i] >= n_stacks) return unknown_id(err, "the stack of a sample", in->stack[i], n_stacks);
        if (group && group >= s->model->threads.n)
            return unknown_id(err, "the thread of a sample", group, s->model->threads.n);
        uint32_t key = fp_table_intern(&s->keys, (uint32_t[]){in->stack[i], group});
        if (key == FP_NO_ID) return no_memory(err);
        if (key >= s->cap_sums && sums_room(&s->sums, &s->cap_sums, key + 1, s->n_values)) return no_memory(err);
        if (group >= s->n_groups) s->n_groups = group + 1;
        int64_t *sum = s->sums + (size_t)key * s->n_values;
        for (uint32_t k = 0; k < n_values; k++) {
            int64_t *to = sum + columns[k];
            if (__builtin_add_overflow(*to, in->values[(size_t)k * in->cap + i], to)) return too_large(err);
        }
        s->labelled += in->label[i] != 0;
        s->timed += in->time[i] != 0;
    }
    s->samples += in->n;
    return FP_DONE;
}

/* ---- frames -> positions ---------------------------------------------- */

/* Graphs have a name for an unknown file, which is Callgrind's. */
static uint32_t known_file(const struct fp_project *s, uint32_t file) {
    return file ? file : s->unknown_file;
}

/* The function that stands for code without a name: [libx.so+0x1136], by its
 * place in the file, which is the same in every run; 0x1136 outside of any
 * file.  FP_NO_ID when memory ran out. */
static uint32_t function_at(struct fp_project *s, uint32_t mapping, uint32_t object, uint32_t file, uint64_t address) {
    struct fp_model *m = s->model;
    struct fp_buf *b = &s->name;
    uint8_t digits[18] = "0x";
    size_t n = 0;
    const uint8_t *path = NULL;
    uint64_t shown = address;
    b->n = 0;
    if (object) path = fp_string(&m->strings, fp_table_row(&m->objects, object)[FP_OBJECT_NAME], &n);
    if (n) {
        const uint32_t *row = fp_table_row(&m->mappings, mapping);
        shown = address - fp_words_u64(row + FP_MAPPING_START) + fp_words_u64(row + FP_MAPPING_OFFSET);
        for (size_t i = n; i > 0; i--) {
            if (path[i - 1] != '/') continue;
            path += i;
            n -= i;
            break;
        }
        if (n > 2 && path[0] == '[' && path[n - 1] == ']') { /* [vdso] */
            path++;
            n -= 2;
        }
        if (fp_buf_put(b, "[", 1) || fp_buf_put(b, path, n) || fp_buf_put(b, "+", 1)) return FP_NO_ID;
    }
    size_t n_digits = (size_t)(fp_hex(digits + 2, shown) - digits);
    if (fp_buf_put(b, digits, n_digits) || (n && fp_buf_put(b, "]", 1))) return FP_NO_ID;
    uint32_t name = fp_strings_intern(&m->strings, b->p, b->n);
    if (name == FP_NO_ID) return FP_NO_ID;
    uint32_t function = fp_model_function(m, object, file, name, 0, 0);
    if (function == FP_NO_ID) return FP_NO_ID;
    if (function >= s->cap_start) {
        size_t cap = (size_t)function + function / 2 + 64;
        uint64_t *starts = realloc(s->start_of, cap * sizeof *starts);
        if (!starts) return FP_NO_ID;
        memset(starts + s->cap_start, 0, (cap - s->cap_start) * sizeof *starts);
        s->start_of = starts;
        s->cap_start = (uint32_t)cap;
    }
    s->start_of[function] = address;
    return function;
}

/* A graph's readers tell functions by object, file and name.  Of those that
 * differ in nothing else (where they begin, how the linker calls them) the
 * first stands for all, or recursion between them would not be seen. */
static uint32_t same_function(struct fp_project *s, const uint32_t *f) {
    uint32_t known = s->names.n, function = fp_model_function_row(s->model, f);
    uint32_t name =
        fp_table_intern(&s->names, (uint32_t[]){f[FP_FUNCTION_OBJECT], f[FP_FUNCTION_FILE], f[FP_FUNCTION_NAME]});
    if (function == FP_NO_ID || name == FP_NO_ID) return FP_NO_ID;
    if (name < known) return s->function_of_name[name];
    if (name >= s->cap_names) {
        size_t cap = (size_t)name * 2 + 64;
        uint32_t *functions = realloc(s->function_of_name, cap * sizeof *functions);
        if (!functions) return FP_NO_ID;
        s->function_of_name = functions;
        s->cap_names = (uint32_t)cap;
    }
    return s->function_of_name[name] = function;
}

/* A function as it is to be known in the graph: in the object that its code
 * was mapped from, and never without a name or a file (an empty one is taken
 * for the caller's by callgrind_annotate). */
static uint32_t function_in(struct fp_project *s, uint32_t function, uint32_t mapping, uint32_t object,
                            uint64_t address) {
    struct fp_model *m = s->model;
    uint32_t f[FP_FUNCTION_WIDTH];
    memcpy(f, fp_table_row(&m->functions, function), sizeof f);
    const uint32_t file = known_file(s, f[FP_FUNCTION_FILE]);
    if (!f[FP_FUNCTION_NAME]) {
        if (address) return function_at(s, mapping, object, file, address);
        f[FP_FUNCTION_NAME] = fp_strings_intern(&m->strings, "[unknown]", 9);
        if (f[FP_FUNCTION_NAME] == FP_NO_ID) return FP_NO_ID;
    }
    f[FP_FUNCTION_FILE] = file;
    if (!f[FP_FUNCTION_OBJECT]) f[FP_FUNCTION_OBJECT] = object;
    return same_function(s, f);
}

static int chain_push(struct fp_project *s, uint32_t word) {
    if (s->n_chain == s->cap_chain) {
        if (s->cap_chain > UINT32_MAX / 4) return FP_E_NOMEM;
        uint32_t cap = s->cap_chain ? s->cap_chain * 2 : 1024;
        uint32_t *chain = realloc(s->chain, (size_t)cap * sizeof *chain);
        if (!chain) return FP_E_NOMEM;
        s->chain = chain;
        s->cap_chain = cap;
    }
    s->chain[s->n_chain++] = word;
    return 0;
}

static int push_position(struct fp_project *s, uint32_t function, uint32_t file, uint32_t line, uint64_t address) {
    if (function == FP_NO_ID) return FP_E_NOMEM;
    s->addresses |= address != 0;
    s->lines |= line != 0;
    uint32_t position = fp_table_intern(
        &s->positions, (uint32_t[]){function, file, line, (uint32_t)address, (uint32_t)(address >> 32)});
    return position == FP_NO_ID ? FP_E_NOMEM : chain_push(s, position);
}

static uint32_t file_of(const struct fp_model *m, uint32_t function) {
    return fp_table_row(&m->functions, function)[FP_FUNCTION_FILE];
}

/* Appends the positions of a line chain, outermost first.  Without
 * inline_calls that is one: the line of the innermost inlined function,
 * in the function it was inlined into in the end. */
static int push_lines(struct fp_project *s, uint32_t lines, uint32_t mapping, uint32_t object, uint64_t address,
                      struct fp_err *err) {
    struct fp_model *m = s->model;
    uint32_t n = 0, outermost = lines;
    for (uint32_t id = lines; id; n++) {
        const uint32_t *row = fp_table_row(&m->lines, id);
        uint32_t outer = row[FP_LINE_OUTER];
        /* an entry can only have been entered after the one it refers to */
        if (outer >= id) return unknown_id(err, "the outer line of a line", outer, id);
        if (row[FP_LINE_FUNCTION] >= m->functions.n)
            return unknown_id(err, "the function of a line", row[FP_LINE_FUNCTION], m->functions.n);
        outermost = id;
        id = outer;
    }
    if (!s->inline_calls) {
        const uint32_t *row = fp_table_row(&m->lines, lines);
        uint32_t function = fp_table_row(&m->lines, outermost)[FP_LINE_FUNCTION];
        uint32_t file = known_file(s, file_of(m, row[FP_LINE_FUNCTION]));
        if (push_position(s, function_in(s, function, mapping, object, address), file, row[FP_LINE_LINE], address))
            return no_memory(err);
        return 0;
    }
    uint32_t first = s->n_chain;
    for (uint32_t id = lines; id; id = fp_table_row(&m->lines, id)[FP_LINE_OUTER]) {
        const uint32_t *row = fp_table_row(&m->lines, id);
        uint32_t function = row[FP_LINE_FUNCTION];
        if (push_position(s, function_in(s, function, mapping, object, address), known_file(s, file_of(m, function)),
                          row[FP_LINE_LINE], address))
            return no_memory(err);
    }
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t swap = s->chain[first + i];
        s->chain[first + i] = s->chain[first + n - 1 - i];
        s->chain[first + n - 1 - i] = swap;
    }
    return 0;
}

static int resolve(struct fp_project *s, uint32_t frame, struct fp_err *err) {
    struct fp_model *m = s->model;
    uint32_t row[FP_FRAME_WIDTH], object = 0;
    memcpy(row, fp_table_row(&m->frames, frame), sizeof row);
    uint32_t mapping = row[FP_FRAME_MAPPING], lines = row[FP_FRAME_LINES];
    uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    if (mapping >= m->mappings.n) return unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
    if (mapping) object = fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT];
    if (object >= m->objects.n) return unknown_id(err, "the object of a mapping", object, m->objects.n);
    if (lines >= m->lines.n) return unknown_id(err, "the lines of a frame", lines, m->lines.n);
    if (address && row[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS) s->return_addresses = 1;

    uint32_t at = s->n_chain;
    if (chain_push(s, 0)) return no_memory(err); /* the length, known below */
    if (lines) {
        int status = push_lines(s, lines, mapping, object, address, err);
        if (status) return status;
    } else if (!frame) { /* a sample without a stack */
        if (push_position(s, function_in(s, 0, 0, 0, 0), s->unknown_file, 0, 0)) return no_memory(err);
    } else if (push_position(s, function_at(s, mapping, object, s->unknown_file, address), s->unknown_file, 0,
                             address)) {
        return no_memory(err);
    }
    s->chain[at] = s->n_chain - at - 1;
    s->chain_of[frame] = at;
    return 0;
}

/* ---- the order of names ------------------------------------------------ */

struct text {
    const uint8_t *p;
    size_t n;
    uint32_t id;
};

static int by_text(const void *a, const void *b) {
    const struct text *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

struct ranked {
    uint32_t keys[5]; /* ranks of object, file, name, system name; line */
    uint32_t id;
};

static int by_keys(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    for (int i = 0; i < 5; i++)
        if (x->keys[i] != y->keys[i]) return x->keys[i] < y->keys[i] ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Ranks the strings and functions of all positions, so that rows compare by numbers. */
static int rank_names(struct fp_project *s) {
    const struct fp_model *m = s->model;
    const uint32_t n_functions = m->functions.n, n_strings = m->strings.n;
    int status = FP_E_NOMEM;
    struct text *texts = NULL;
    struct ranked *ranked = NULL;
    uint32_t n_texts = 0, n_ranked = 0;
    s->rank_of_string = calloc(n_strings, sizeof *s->rank_of_string);
    s->rank_of_function = calloc(n_functions, sizeof *s->rank_of_function);
    if (!s->rank_of_string || !s->rank_of_function) return FP_E_NOMEM;

    /* mark what is used; the marks are replaced by ranks below */
#define MARK(string) (n_texts += !s->rank_of_string[string], s->rank_of_string[string] = 1)
    for (uint32_t i = 1; i < s->positions.n; i++) {
        const uint32_t *p = fp_table_row(&s->positions, i);
        const uint32_t *f = fp_table_row(&m->functions, p[POSITION_FUNCTION]);
        MARK(p[POSITION_FILE]);
        if (s->rank_of_function[p[POSITION_FUNCTION]]) continue;
        s->rank_of_function[p[POSITION_FUNCTION]] = 1;
        n_ranked++;
        MARK(fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME]);
        MARK(f[FP_FUNCTION_FILE]);
        MARK(f[FP_FUNCTION_NAME]);
        MARK(f[FP_FUNCTION_SYSTEM_NAME]);
    }
#undef MARK
    texts = malloc(((size_t)n_texts + 1) * sizeof *texts);
    ranked = malloc(((size_t)n_ranked + 1) * sizeof *ranked);
    if (!texts || !ranked) goto done;
    n_texts = n_ranked = 0;
    for (uint32_t id = 0; id < n_strings; id++)
        if (s->rank_of_string[id]) {
            struct text *t = &texts[n_texts++];
            t->p = fp_string(&m->strings, id, &t->n);
            t->id = id;
        }
    qsort(texts, n_texts, sizeof *texts, by_text);
    for (uint32_t i = 0; i < n_texts; i++) s->rank_of_string[texts[i].id] = i;
    for (uint32_t id = 0; id < n_functions; id++)
        if (s->rank_of_function[id]) {
            const uint32_t *f = fp_table_row(&m->functions, id);
            ranked[n_ranked++] =
                (struct ranked){{s->rank_of_string[fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME]],
                                 s->rank_of_string[f[FP_FUNCTION_FILE]], s->rank_of_string[f[FP_FUNCTION_NAME]],
                                 s->rank_of_string[f[FP_FUNCTION_SYSTEM_NAME]], f[FP_FUNCTION_LINE]},
                                id};
        }
    qsort(ranked, n_ranked, sizeof *ranked, by_keys);
    for (uint32_t i = 0; i < n_ranked; i++) s->rank_of_function[ranked[i].id] = i;
    status = 0;
done:
    free(texts);
    free(ranked);
    return status;
}

int fp_project_end(struct fp_project *s, struct fp_err *err) {
    struct fp_model *m = s->model;
    const uint32_t n_stacks = m->stacks.n, n_keys = s->keys.n;
    s->unknown_file = fp_strings_intern(&m->strings, "???", 3);
    if (s->unknown_file == FP_NO_ID) return no_memory(err);
    s->chain_of = calloc(m->frames.n, sizeof *s->chain_of);
    s->local_of = calloc(n_stacks, sizeof *s->local_of);
    s->by_group = malloc(n_keys * sizeof *s->by_group);
    s->group_start = calloc((size_t)s->n_groups + 2, sizeof *s->group_start);
    if (!s->chain_of || !s->local_of || !s->by_group || !s->group_start || chain_push(s, 0)) return no_memory(err);

    for (uint32_t key = 1; key < n_keys; key++) s->group_start[fp_table_row(&s->keys, key)[1] + 2]++;
    for (uint32_t g = 1; g <= s->n_groups; g++) s->group_start[g + 1] += s->group_start[g];
    for (uint32_t key = 1; key < n_keys; key++) s->by_group[s->group_start[fp_table_row(&s->keys, key)[1] + 1]++] = key;

    /* local_of marks the stacks that were walked */
    for (uint32_t key = 1; key < n_keys; key++) {
        uint32_t stack = fp_table_row(&s->keys, key)[0];
        do {
            if (s->local_of[stack]) break;
            const uint32_t *row = fp_table_row(&m->stacks, stack);
            uint32_t frame = row[FP_STACK_FRAME], parent = row[FP_STACK_PARENT];
            if (stack && parent >= stack) return unknown_id(err, "the parent of a stack", parent, stack);
            if (frame >= m->frames.n) return unknown_id(err, "the frame of a stack", frame, m->frames.n);
            s->local_of[stack] = 1;
            if (!s->chain_of[frame]) {
                int status = resolve(s, frame, err);
                if (status) return status;
            }
            stack = parent;
        } while (stack);
    }
    memset(s->local_of, 0, n_stacks * sizeof *s->local_of);
    s->active = calloc(m->functions.n, sizeof *s->active);
    return !s->active || rank_names(s) ? no_memory(err) : FP_DONE;
}

/* ---- the graph of a group ----------------------------------------------- */

/* A stack of the group, or one above such a stack.  Node 0 is the root. */
struct node {
    uint32_t stack;
    uint32_t key; /* whose sums are this stack's own; 0 = none */
    uint32_t parent, child, sibling;
};

struct walk {
    struct node *nodes;
    uint32_t n, cap;
    int64_t *inclusive; /* by depth: what was found below so far */
    uint32_t cap_depth;
    int64_t calls; /* which sum counts calls; negative: none */
};

/* Enters a stack and those above it that are not there yet. */
static int add_stack(struct fp_project *s, struct walk *w, uint32_t stack, uint32_t key) {
    uint32_t below = 0;
    for (;; stack = fp_table_row(&s->model->stacks, stack)[FP_STACK_PARENT]) {
        const int found = s->local_of[stack] != 0;
        if (!found) {
            if (w->n == w->cap) {
                if (w->cap > UINT32_MAX / 2) return FP_E_NOMEM;
                uint32_t cap = w->cap ? w->cap * 2 : 1024;
                struct node *nodes = realloc(w->nodes, (size_t)cap * sizeof *nodes);
                if (!nodes) return FP_E_NOMEM;
                w->nodes = nodes;
                w->cap = cap;
            }
            w->nodes[w->n] = (struct node){.stack = stack};
            s->local_of[stack] = ++w->n;
        }
        const uint32_t at = s->local_of[stack] - 1;
        if (below) {
            w->nodes[below].parent = at;
            w->nodes[below].sibling = w->nodes[at].child;
            w->nodes[at].child = below;
        } else if (key) {
            w->nodes[at].key = key;
        }
        key = 0;
        if (found || !stack) return 0;
        below = at;
    }
}

/* The row of (position, callee), entered if new; 0 when memory ran out. */
static uint32_t find_row(struct fp_project *s, uint32_t position, uint32_t callee) {
    uint32_t row = fp_table_intern(&s->rows, (uint32_t[]){position, callee});
    if (row == FP_NO_ID) return 0;
    if (row >= s->cap_rows) {
        uint32_t cap = s->cap_rows;
        if (sums_room(&s->costs, &s->cap_rows, row + 1, s->n_values)) return 0;
        uint64_t *counts = realloc(s->counts, s->cap_rows * sizeof *counts);
        if (!counts) return 0;
        memset(counts + cap, 0, (s->cap_rows - cap) * sizeof *counts);
        s->counts = counts;
    }
    return row;
}

static int add_values(int64_t *to, const int64_t *from, uint32_t n) {
    int overflowed = 0;
    for (uint32_t k = 0; k < n; k++) overflowed |= __builtin_add_overflow(to[k], from[k], &to[k]);
    return overflowed;
}

/* The positions of a node's frame, outermost first; the root has none. */
static const uint32_t *chain_of(const struct fp_project *s, const struct walk *w, uint32_t at, uint32_t *n) {
    uint32_t stack = w->nodes[at].stack;
    if (!stack && !w->nodes[at].key) {
        *n = 0;
        return NULL;
    }
    const uint32_t *chain = s->chain + s->chain_of[fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME]];
    *n = chain[0];
    return chain + 1;
}

static uint32_t function_of(const struct fp_project *s, uint32_t position) {
    return fp_table_row(&s->positions, position)[POSITION_FUNCTION];
}

/* The positions of the node above; none for the first frames of a stack. */
static const uint32_t *chain_above(const struct fp_project *s, const struct walk *w, uint32_t at, uint32_t *n) {
    *n = 0;
    return at && w->nodes[at].parent ? chain_of(s, w, w->nodes[at].parent, n) : NULL;
}

/* Books a node's own cost and begins its sum. */
static int enter(struct fp_project *s, struct walk *w, uint32_t at, uint32_t depth) {
    uint32_t n, n_above, key = w->nodes[at].key;
    const uint32_t *chain = chain_of(s, w, at, &n);
    chain_above(s, w, at, &n_above);
    if (depth >= w->cap_depth && sums_room(&w->inclusive, &w->cap_depth, depth + 1, s->n_values)) return FP_E_NOMEM;
    int64_t *inclusive = w->inclusive + (size_t)depth * s->n_values;
    memset(inclusive, 0, s->n_values * sizeof *inclusive);
    for (uint32_t i = n_above ? 0 : 1; i < n; i++) s->active[function_of(s, chain[i])]++;
    if (!key) return 0;
    const int64_t *self = s->sums + (size_t)key * s->n_values;
    uint32_t row = find_row(s, chain[n - 1], 0);
    if (!row) return FP_E_NOMEM;
    memcpy(inclusive, self, s->n_values * sizeof *inclusive);
    return add_values(s->costs + (size_t)row * s->n_values, self, s->n_values) ? FP_E_OVERFLOW : 0;
}

/* Books a node's inclusive cost, which is complete now, on the arcs into it. */
static int leave(struct fp_project *s, struct walk *w, uint32_t at, uint32_t depth) {
    const struct node *node = &w->nodes[at];
    const int64_t *inclusive = w->inclusive + (size_t)depth * s->n_values;
    uint32_t n, n_above;
    const uint32_t *chain = chain_of(s, w, at, &n), *above = chain_above(s, w, at, &n_above);
    for (uint32_t i = n; i-- > (n_above ? 0 : 1);) {
        uint32_t callee = function_of(s, chain[i]);
        s->active[callee]--;
        uint32_t row = find_row(s, i ? chain[i - 1] : above[n_above - 1], callee);
        if (!row) return FP_E_NOMEM;
        if (!s->active[callee] && add_values(s->costs + (size_t)row * s->n_values, inclusive, s->n_values))
            return FP_E_OVERFLOW;
        if (w->calls >= 0 && node->key) {
            int64_t calls = s->sums[(size_t)node->key * s->n_values + (size_t)w->calls];
            if (calls > 0 && __builtin_add_overflow(s->counts[row], (uint64_t)calls, &s->counts[row]))
                return FP_E_OVERFLOW;
        }
    }
    if (!at) return 0;
    return add_values(w->inclusive + (size_t)(depth - 1) * s->n_values, inclusive, s->n_values) ? FP_E_OVERFLOW : 0;
}

/* Depth first over the tree, along its links: no recursion, whatever the depth. */
static int walk_tree(struct fp_project *s, struct walk *w) {
    uint32_t at = 0, depth = 0;
    int status = enter(s, w, 0, 0);
    while (!status) {
        if (w->nodes[at].child) {
            at = w->nodes[at].child;
            status = enter(s, w, at, ++depth);
            continue;
        }
        for (;;) {
            status = leave(s, w, at, depth);
            if (status || !at) return status;
            if (w->nodes[at].sibling) break;
            at = w->nodes[at].parent;
            depth--;
        }
        at = w->nodes[at].sibling;
        status = enter(s, w, at, depth);
    }
    return status;
}

struct sortable {
    uint32_t function, file, line, callee; /* ranks; file 0 = the function's own; callee 0 = self cost */
    uint64_t address;
    uint32_t row;
};

static int by_place(const void *a, const void *b) {
    const struct sortable *x = a, *y = b;
#define BY(field) \
    if (x->field != y->field) return x->field < y->field ? -1 : 1
    BY(function);
    BY(file);
    BY(line);
    BY(address);
    BY(callee);
#undef BY
    return 0;
}

static int order_rows(struct fp_project *s) {
    const uint32_t n = s->rows.n - 1;
    struct sortable *sortable = malloc(((size_t)n + 1) * sizeof *sortable);
    uint32_t *order = realloc(s->order, ((size_t)n + 1) * sizeof *order);
    if (order) s->order = order;
    if (!sortable || !order) {
        free(sortable);
        return FP_E_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *row = fp_table_row(&s->rows, i + 1);
        const uint32_t *p = fp_table_row(&s->positions, row[0]);
        uint32_t own = file_of(s->model, p[POSITION_FUNCTION]);
        sortable[i] = (struct sortable){
            .function = s->rank_of_function[p[POSITION_FUNCTION]],
            .file = p[POSITION_FILE] == own ? 0 : s->rank_of_string[p[POSITION_FILE]] + 1,
            .line = p[POSITION_LINE],
            .callee = row[1] ? s->rank_of_function[row[1]] + 1 : 0,
            .address = fp_words_u64(p + POSITION_ADDRESS),
            .row = i + 1,
        };
    }
    qsort(sortable, n, sizeof *sortable, by_place);
    for (uint32_t i = 0; i < n; i++) order[i] = sortable[i].row;
    free(sortable);
    return 0;
}

int64_t fp_project_select(struct fp_project *s, uint32_t group, int64_t calls, int64_t *totals, struct fp_err *err) {
    struct walk w = {.calls = calls};
    int status = 0;
    fp_table_clear(&s->rows);
    if (s->costs) memset(s->costs, 0, (size_t)s->cap_rows * s->n_values * sizeof *s->costs);
    if (s->counts) memset(s->counts, 0, s->cap_rows * sizeof *s->counts);
    memset(totals, 0, s->n_values * sizeof *totals);
    s->at = 0;
    s->uncounted = 0;
    if (fp_table_init(&s->rows, 2)) return no_memory(err);
    if (group < s->n_groups) {
        status = add_stack(s, &w, 0, 0);
        for (uint32_t i = s->group_start[group]; !status && i < s->group_start[group + 1]; i++)
            status = add_stack(s, &w, fp_table_row(&s->keys, s->by_group[i])[0], s->by_group[i]);
        if (!status) status = walk_tree(s, &w);
        if (!status) memcpy(totals, w.inclusive, s->n_values * sizeof *totals);
        for (uint32_t i = 0; i < w.n; i++) s->local_of[w.nodes[i].stack] = 0;
        free(w.nodes);
        free(w.inclusive);
    }
    if (status == FP_E_OVERFLOW) return too_large(err);
    if (status || order_rows(s)) return no_memory(err);
    for (uint32_t i = 1; i < s->rows.n; i++) {
        if (!fp_table_row(&s->rows, i)[1] || s->counts[i]) continue;
        s->counts[i] = 1;
        s->uncounted++;
    }
    return s->rows.n - 1;
}

int fp_project_pull(struct fp_project *s, struct fp_batch *out) {
    const struct fp_model *m = s->model;
    for (; s->at < s->rows.n - 1; s->at++) {
        if (out->n == out->cap) return FP_FULL;
        uint32_t i = out->n++, id = s->order[s->at];
        const uint32_t *row = fp_table_row(&s->rows, id), callee = row[1];
        const uint32_t *p = fp_table_row(&s->positions, row[0]);
        out->kind[i] = callee ? FP_CALL : FP_COST;
        out->function[i] = p[POSITION_FUNCTION];
        out->file[i] = p[POSITION_FILE];
        out->line[i] = p[POSITION_LINE];
        out->address[i] = fp_words_u64(p + POSITION_ADDRESS);
        out->bb[i] = 0;
        out->callee[i] = callee;
        out->target_file[i] = 0;
        out->target_line[i] = callee ? fp_table_row(&m->functions, callee)[FP_FUNCTION_LINE] : 0;
        out->target_address[i] = callee && callee < s->cap_start ? s->start_of[callee] : 0;
        out->target_bb[i] = 0;
        out->count[i] = callee ? s->counts[id] : 0;
        out->count2[i] = 0;
        for (uint32_t k = 0; k < s->n_values; k++)
            out->values[(size_t)k * out->cap + i] = s->costs[(size_t)id * s->n_values + k];
    }
    return FP_DONE;
}
