#include "bridges/rows/filter.h"

enum { NO = 1, YES = 2 }; /* answers */
enum { BLOCK = 1024 };    /* rows moved together */

/* A thread's calls, as in the stack machine (bridges/fold/fold.h). */
struct fp_filter_thread {
    uint32_t *calls; /* rows of `entered`, outermost first */
    uint32_t n, cap;
    uint32_t match; /* the outermost matching call is calls[match - 1]; 0: none */
    uint32_t led;   /* the outermost calls that have the names of the path */
};

struct fp_filter *fp_filter_new(struct fp_model *model, int by) {
    struct fp_filter *f = fp_made(sizeof *f);
    f->model = model;
    f->by = by;
    fp_table_init(&f->entered, 2);
    return f;
}

void fp_filter_free(struct fp_filter *f) {
    fp_buf_free(&f->scratch);
    for (uint32_t i = 0; i < f->cap_threads; i++) free(f->threads[i].calls);
    fp_table_clear(&f->entered);
    FP_FREE(f->names, f->objects, f->functions, f->lines, f->frames, f->stacks, f->threads, f->active, f->path, f);
}

/* ---- matching ---- */

void fp_filter_answer(struct fp_filter *f, int matches) {
    *f->answer = matches ? YES : NO;
}

/* The caller's answer for a text: NO or YES, or 0 after asking. */
static int ask(struct fp_filter *f, int by, uint8_t *answer, const uint8_t *text, size_t n) {
    if (*answer) return *answer;
    f->answer = answer;
    f->request = by;
    f->text = text;
    f->text_n = n;
    return 0;
}

static int ask_string(struct fp_filter *f, int by, uint32_t string) {
    if (!(f->by & by)) return YES;
    uint8_t *answers = by == FP_FILTER_NAME ? f->names : f->objects;
    size_t n;
    const uint8_t *text = fp_string(&f->model->strings, string, &n);
    return ask(f, by, answers + string, text, n);
}

static int ask_object(struct fp_filter *f, uint32_t object) {
    return ask_string(f, FP_FILTER_OBJECT, fp_table_row(&f->model->objects, object)[FP_OBJECT_NAME]);
}

/* Asks about the name and the object of a function. */
static int ask_both(struct fp_filter *f, uint32_t function, uint32_t object) {
    const int name = ask_string(f, FP_FILTER_NAME, fp_table_row(&f->model->functions, function)[FP_FUNCTION_NAME]);
    return name == YES ? ask_object(f, object) : name;
}

/* A frame without a function is named by its address. */
static int ask_address(struct fp_filter *f, uint32_t frame, uint32_t object) {
    const int inside = ask_object(f, object);
    if (inside != YES || !(f->by & FP_FILTER_NAME)) return inside;
    if (!f->address) fp_frame_text(f->model, frame, &f->scratch);
    const int matches = ask(f, FP_FILTER_NAME, &f->address, f->scratch.p, f->scratch.n);
    if (matches) f->address = 0; /* the next address has another name */
    return matches;
}

/* The answer for a line and its outer lines, after the answers for all functions. */
enum { MATCHES = 1, NAME_MATCHES = 2 /* of a function without an object, which is the frame mapping's */ };

static int line_matches(const struct fp_filter *f, uint32_t line, uint8_t *matches, struct fp_err *err) {
    const struct fp_model *m = f->model;
    const uint32_t *row = fp_table_row(&m->lines, line);
    const uint32_t function = row[FP_LINE_FUNCTION], outer = row[FP_LINE_OUTER];
    if (outer >= line) return fp_unknown_id(err, "the outer line of a line", outer, line);
    if (function >= m->functions.n) return fp_unknown_id(err, "the function of a line", function, m->functions.n);
    const uint32_t *columns = fp_table_row(&m->functions, function);
    const int named = !(f->by & FP_FILTER_NAME) || f->names[columns[FP_FUNCTION_NAME]] == YES;
    *matches = outer ? f->lines[outer] : 0;
    if (!columns[FP_FUNCTION_OBJECT])
        *matches |= named ? NAME_MATCHES : 0;
    else
        *matches |= f->functions[function] ? MATCHES : 0;
    return FP_DONE;
}

/* NO, YES, 0 after asking, or an error. */
static int ask_frame(struct fp_filter *f, uint32_t frame, struct fp_err *err) {
    const struct fp_model *m = f->model;
    const uint32_t *row = fp_table_row(&m->frames, frame);
    const uint32_t mapping = row[FP_FRAME_MAPPING], lines = row[FP_FRAME_LINES];
    if (mapping >= m->mappings.n) return fp_unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
    const uint32_t object = fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT];
    if (object >= m->objects.n) return fp_unknown_id(err, "the object of a mapping", object, m->objects.n);
    if (lines >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", lines, m->lines.n);
    if (!lines) return ask_address(f, frame, object);
    if (f->lines[lines] & MATCHES) return YES;
    return f->lines[lines] & NAME_MATCHES ? ask_object(f, object) : NO;
}

int fp_filter_learn(struct fp_filter *f, struct fp_err *err) {
    const struct fp_model *m = f->model;
    fp_array_zeroed(&f->names, &f->cap_names, m->strings.n, 1);
    fp_array_zeroed(&f->objects, &f->cap_objects, m->strings.n, 1);
    fp_array_zeroed(&f->functions, &f->cap_functions, m->functions.n, 1);
    fp_array_zeroed(&f->lines, &f->cap_lines, m->lines.n, 1);
    fp_array_zeroed(&f->frames, &f->cap_frames, m->frames.n, 1);
    fp_array_zeroed(&f->stacks, &f->cap_stacks, m->stacks.n, 1);
    for (; f->n_functions < m->functions.n; f->n_functions++) {
        const uint32_t object = fp_table_row(&m->functions, f->n_functions)[FP_FUNCTION_OBJECT];
        if (object >= m->objects.n) return fp_unknown_id(err, "the object of a function", object, m->objects.n);
        const int matches = ask_both(f, f->n_functions, object);
        if (!matches) return FP_NEEDS;
        f->functions[f->n_functions] = matches == YES;
    }
    if (!f->n_lines) f->n_lines = 1; /* line 0 is none */
    for (; f->n_lines < m->lines.n; f->n_lines++) FP_TRY(line_matches(f, f->n_lines, &f->lines[f->n_lines], err));
    if (!f->n_frames) f->n_frames = 1; /* frame 0 is none */
    for (; f->n_frames < m->frames.n; f->n_frames++) {
        const int matches = ask_frame(f, f->n_frames, err);
        if (matches < 0) return matches;
        if (!matches) return FP_NEEDS;
        f->frames[f->n_frames] = matches == YES;
    }
    if (!f->n_stacks || f->n_emptied != m->n_emptied) f->n_stacks = 1; /* stack 0 is empty */
    f->n_emptied = m->n_emptied;
    for (; f->n_stacks < m->stacks.n; f->n_stacks++) {
        const uint32_t *row = fp_table_row(&m->stacks, f->n_stacks), parent = row[FP_STACK_PARENT];
        if (parent >= f->n_stacks) return fp_unknown_id(err, "the parent of a stack", parent, f->n_stacks);
        if (row[FP_STACK_FRAME] >= m->frames.n)
            return fp_unknown_id(err, "the frame of a stack", row[FP_STACK_FRAME], m->frames.n);
        f->stacks[f->n_stacks] = f->stacks[parent] | f->frames[row[FP_STACK_FRAME]];
    }
    return FP_DONE;
}

/* ---- a timeline ---- */

int fp_filter_path(struct fp_filter *f, const uint8_t *name, size_t n) {
    FP_PUSH(f->path, f->n_path, f->cap_path) = fp_strings_intern(&f->model->strings, name, n);
    return FP_DONE;
}

/* Whether the innermost call of a thread, which has begun, matches. */
static int call_matches(const struct fp_filter *f, struct fp_filter_thread *t, uint32_t function) {
    if (!f->n_path) return f->functions[function];
    if (t->led + 1 != t->n || t->led == f->n_path) return 0;
    t->led += fp_table_row(&f->model->functions, function)[FP_FUNCTION_NAME] == f->path[t->led];
    return t->led == f->n_path;
}

static void enter(struct fp_filter *f, uint32_t thread, uint32_t function) {
    struct fp_filter_thread *t = &f->threads[thread];
    const uint32_t call = fp_table_intern(&f->entered, (const uint32_t[]){thread, function});
    ++*FP_AT(f->active, f->cap_active, call);
    FP_PUSH(t->calls, t->n, t->cap) = call;
    if (!t->match && call_matches(f, t, function)) t->match = t->n;
}

/* Whether an exit of *function stays.  If it ends a caller of the matching call, an exception or longjmp ended that
 * call, and *function becomes its function. */
static int leave(struct fp_filter *f, uint32_t thread, uint32_t *function) {
    struct fp_filter_thread *t = &f->threads[thread];
    const uint32_t match = t->match;
    const uint32_t call = fp_table_find(&f->entered, (const uint32_t[]){thread, *function});
    if (!call || !f->active[call]) return match != 0; /* its enter is missing */
    uint32_t top;
    do {
        top = t->calls[--t->n];
        f->active[top]--;
        if (t->n + 1 == match) {
            t->match = 0;
            f->unwound += top != call;
            *function = fp_table_row(&f->entered, top)[1];
        }
    } while (top != call);
    if (t->led > t->n) t->led = t->n;
    return match != 0;
}

/* Whether a row stays: 1, 0 or an error. */
static int keep_row(struct fp_filter *f, struct fp_batch *b, uint32_t i, struct fp_err *err) {
    const uint32_t thread = b->thread[i], function = b->function[i];
    const uint64_t unwound = f->unwound;
    int keep;
    fp_array_zeroed(&f->threads, &f->cap_threads, (uint64_t)thread + 1, sizeof *f->threads);
    switch (b->op[i]) {
        case FP_OP_ENTER:
        case FP_OP_ENTER_ARGS:
            if (function >= f->n_functions)
                return fp_unknown_id(err, "the function of an entry", function, f->n_functions);
            enter(f, thread, function);
            return f->threads[thread].match != 0;
        case FP_OP_EXIT:
        case FP_OP_TAIL_EXIT:
            keep = leave(f, thread, &b->function[i]);
            if (f->unwound != unwound) b->op[i] = FP_OP_EXIT;
            return keep;
        case FP_OP_ARGUMENT: /* of the call in the previous row */ return f->kept;
        case FP_OP_BUFFER: /* of the thread, not of a call */ return 1;
        default: return f->threads[thread].match != 0;
    }
}

static int filter_calls(struct fp_filter *f, struct fp_batch *b, struct fp_err *err) {
    const uint32_t end = b->n;
    uint32_t to = 0;
    for (uint32_t i = 0; i < end; i += BLOCK) {
        uint8_t keep[BLOCK];
        const uint32_t n = end - i < BLOCK ? end - i : BLOCK;
        for (uint32_t k = 0; k < n; k++) {
            f->kept = keep_row(f, b, i + k, err);
            if (f->kept < 0) return f->kept;
            keep[k] = (uint8_t)f->kept;
        }
        to = fp_batch_keep(b, to, i, keep, n);
    }
    f->left_out += end - to;
    b->n = to;
    return FP_DONE;
}

int fp_filter_batch(struct fp_filter *f, struct fp_batch *b, struct fp_err *err) {
    if (b->view == FP_TIMELINE) return filter_calls(f, b, err);
    const struct fp_select select = {
        .last_time = UINT64_MAX,
        .stacks = {f->stacks, f->n_stacks},
        .functions = {f->functions, f->n_functions},
    };
    f->left_out += fp_select_rows(&select, b, 0);
    return FP_DONE;
}
