#include "small_json/private.h"

enum { TOP = 1, FILES_, FILE_, FUNCTIONS, FUNCTION, LINES, LINE_, CENTRES, CENTRE, NODE, CHILDREN };
/* Numbers, by their place in `numbers`, then texts. */
enum {
    LINENO = 1, /* Scalene */
    START,
    PYTHON,
    NATIVE,
    SYSTEM,
    MEGABYTES,
    ID, /* GHC */
    ENTRIES,
    ALLOC,
    TICKS,
    N_NUMBERS,
    ELAPSED,
    INTERVAL,
    NAME,
    MODULE,
    PLACE
};
enum { MOST_LINES = 1 << 20, MOST_CENTRES = 1 << 24 };

static const struct fp_json_row rows_of_scalene[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "elapsed_time_sec", .value = ELAPSED),
    FP_JSON_KEY(TOP, "files", .object = FILES_),
    FP_JSON_EACH(FILES_, .object = FILE_),
    FP_JSON_KEY(FILE_, "functions", .array = FUNCTIONS),
    FP_JSON_KEY(FILE_, "lines", .array = LINES),
    FP_JSON_EACH(FUNCTIONS, .object = FUNCTION),
    FP_JSON_KEY(FUNCTION, "line", .value = NAME),
    FP_JSON_KEY(FUNCTION, "lineno", .value = LINENO),
    FP_JSON_EACH(LINES, .object = LINE_),
    FP_JSON_KEY(LINE_, "lineno", .value = LINENO),
    FP_JSON_KEY(LINE_, "n_cpu_percent_c", .value = NATIVE),
    FP_JSON_KEY(LINE_, "n_cpu_percent_python", .value = PYTHON),
    FP_JSON_KEY(LINE_, "n_malloc_mb", .value = MEGABYTES),
    FP_JSON_KEY(LINE_, "n_sys_percent", .value = SYSTEM),
    FP_JSON_KEY(LINE_, "start_function_line", .value = START),
};
static const struct fp_json_row rows_of_ghc[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "tick_interval", .value = INTERVAL),
    FP_JSON_KEY(TOP, "cost_centres", .array = CENTRES),
    FP_JSON_KEY(TOP, "profile", .object = NODE),
    FP_JSON_EACH(CENTRES, .object = CENTRE),
    FP_JSON_KEY(CENTRE, "id", .value = ID),
    FP_JSON_KEY(CENTRE, "label", .value = NAME),
    FP_JSON_KEY(CENTRE, "module", .value = MODULE),
    FP_JSON_KEY(CENTRE, "src_loc", .value = PLACE),
    FP_JSON_KEY(NODE, "id", .value = ID),
    FP_JSON_KEY(NODE, "entries", .value = ENTRIES),
    FP_JSON_KEY(NODE, "alloc", .value = ALLOC),
    FP_JSON_KEY(NODE, "ticks", .value = TICKS),
    FP_JSON_KEY(NODE, "children", .array = CHILDREN),
    FP_JSON_EACH(CHILDREN, .object = NODE),
};

int fp_small_json_broken(struct fp_small_json_reader *r, const struct fp_window *in, const char *want,
                         struct fp_err *err) {
    if (r->lenient) {
        r->s.broken++;
        return 0;
    }
    fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "a record is incomplete");
    err->want = want;
    return FP_E_MALFORMED;
}

static void forget(struct fp_small_json_reader *r) {
    for (uint32_t i = 0; i < N_NUMBERS; i++) r->numbers[i] = -1;
    r->name = r->module = r->place = 0;
}

/* ---- Scalene ---- */

/* A share of the run, in 10^-9 percent, as nanoseconds; a year at most. */
static int64_t time_of(const struct fp_small_json_reader *r, int64_t share) {
    const double ns = share <= 0 ? 0 : (double)share / 1e11 * (double)r->s.elapsed_ns + 0.5;
    return ns < 3.2e16 ? (int64_t)ns : -1;
}

static int end_of_line(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    const int64_t *n = r->numbers;
    if (n[LINENO] < 0 || n[LINENO] > INT32_MAX) return fp_small_json_broken(r, in, "a line with a \"lineno\"", err);
    int64_t values[FP_SMALL_VALUES] = {0, time_of(r, n[PYTHON]), time_of(r, n[NATIVE]), time_of(r, n[SYSTEM])};
    for (uint32_t k = 1; k < 4; k++)
        if (values[k] < 0) return fp_small_json_broken(r, in, "times of at most a year", err);
    values[0] = values[1] + values[2] + values[3];
    values[4] = n[MEGABYTES] <= 0 ? 0 : (int64_t)((double)n[MEGABYTES] / 1e9 * 1048576 + 0.5);
    if (!r->s.elapsed_ns && (n[PYTHON] > 0 || n[NATIVE] > 0 || n[SYSTEM] > 0))
        return fp_small_json_broken(r, in, "\"elapsed_time_sec\" ahead of \"files\"", err);
    if (!values[0] && !values[4]) return 0;
    if (r->out->n == r->out->cap) return FP_FULL;
    uint32_t name = n[START] > 0 && n[START] < r->cap_names ? r->names[n[START]] : 0;
    if (!name) name = fp_strings_intern(&r->model->strings, "<module>", 8);
    const uint32_t function = fp_model_function(r->model, 0, r->file, name, 0, 0);
    fp_batch_cost(r->out, function, fp_file_of_function(r->model, function), (uint32_t)n[LINENO], 0);
    for (uint32_t k = 0; k < FP_SMALL_VALUES; k++) fp_small_json_put(r->out, k, values[k]);
    return 0;
}

static void end_of_function(struct fp_small_json_reader *r) {
    const int64_t line = r->numbers[LINENO];
    if (line <= 0 || line >= MOST_LINES) return;
    if (!*FP_AT(r->names, r->cap_names, line) && r->name) FP_PUSH(r->stacks, r->n, r->cap) = (uint32_t)line;
    r->names[line] = r->name;
}

/* ---- GHC ---- */

/* `fib.hs:4:1-64` or `fib.hs:(8,1)-(10,48)`: the file, and the line. */
static uint32_t file_of(struct fp_model *m, uint32_t place, uint32_t *line) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, place, &n);
    const uint8_t *colon = n ? memchr(p, ':', n) : NULL;
    while (colon && p + n - colon > 2) {
        const uint8_t *digits = colon + 1 + (colon[1] == '(');
        uint64_t v = 0;
        if (digits < p + n && fp_digits(digits, p + n, 9, &v) > digits) {
            *line = (uint32_t)v;
            return fp_strings_part(&m->strings, place, 0, (size_t)(colon - p));
        }
        colon = memchr(colon + 1, ':', (size_t)(p + n - colon - 1));
    }
    return 0;
}

static int end_of_centre(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_model *m = r->model;
    const int64_t id = r->numbers[ID];
    if (id < 0 || id >= MOST_CENTRES || !r->name)
        return fp_small_json_broken(r, in, "an \"id\" from 0, below 2^24, and a \"label\"", err);
    uint32_t line = 0;
    const uint32_t file = file_of(m, r->place, &line);
    const uint32_t object = r->module ? fp_model_object(m, r->module, 0) : 0;
    const uint32_t function = fp_model_function(m, object, file, r->name, 0, 0);
    *FP_AT(r->names, r->cap_names, id) = fp_model_line_frame(m, function, line, 0);
    return 0;
}

/* The row of a node, whose numbers precede its children. */
static int take_node(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    const int64_t *n = r->numbers;
    if (r->is_taken) return 0;
    if (r->out->n == r->out->cap) return FP_FULL;
    r->is_taken = 1;
    const uint32_t frame = n[ID] >= 0 && n[ID] < r->cap_names ? r->names[n[ID]] : 0;
    int64_t ns;
    if (!frame || n[ENTRIES] < 0 || n[ALLOC] < 0 || n[TICKS] < 0 ||
        __builtin_mul_overflow(n[TICKS], r->interval_us * 1000, &ns)) {
        r->stacks[r->n - 1] = r->stacks[r->n - 2];
        return fp_small_json_broken(r, in, "the \"id\" of a cost centre above, \"entries\", \"alloc\" and \"ticks\"",
                                    err);
    }
    r->stacks[r->n - 1] = fp_model_stack(r->model, r->stacks[r->n - 2], frame);
    if (!n[ENTRIES] && !n[ALLOC] && !n[TICKS]) return 0;
    fp_batch_sample(r->out, r->stacks[r->n - 1], 0, 0, 0);
    fp_small_json_put(r->out, 0, ns);
    fp_small_json_put(r->out, 1, n[ALLOC]);
    fp_small_json_put(r->out, 2, n[ENTRIES]);
    return 0;
}

/* ---- the walk ---- */

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (kind == CHILDREN) return take_node(r, in, err);
    if (kind == FILE_)
        while (r->n > 1) r->names[r->stacks[--r->n]] = 0;
    if (kind == NODE) {
        FP_PUSH(r->stacks, r->n, r->cap) = 0;
        r->is_taken = 0;
    }
    r->has_rows |= kind == NODE || kind == FILES_;
    forget(r);
    return 0;
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    int status = 0;
    if (kind == LINE_) status = end_of_line(r, in, err);
    if (kind == FUNCTION) end_of_function(r);
    if (kind == CENTRE) status = end_of_centre(r, in, err);
    if (kind == NODE) {
        status = take_node(r, in, err);
        if (!status) r->n--;
    }
    if (!status && kind != CHILDREN) r->is_taken = 1; /* keys of a node after its children are not used */
    return status;
}

static int key(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    (void)in, (void)err;
    if (kind == FILES_) r->file = fp_json_intern(&r->walk, &r->model->strings);
    return 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    const struct fp_json *j = &r->walk.json;
    (void)in, (void)err;
    if (code >= NAME) {
        if (j->token != FP_JSON_STRING) return 0;
        *(code == NAME     ? &r->name
          : code == MODULE ? &r->module
                           : &r->place) = fp_json_intern(&r->walk, &r->model->strings);
        return 0;
    }
    const int scale = code == ELAPSED || (code >= PYTHON && code <= MEGABYTES) ? 9 : 0;
    int64_t number;
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, scale, &number, NULL)) return 0;
    if (code == ELAPSED)
        r->s.elapsed_ns = number > 0 ? number : 0;
    else if (code == INTERVAL)
        r->interval_us = number > 0 && number < INT32_MAX ? number : 0;
    else
        r->numbers[code] = number;
    return 0;
}

static const struct fp_json_shape scalene = {FP_JSON_ROWS(rows_of_scalene), .begin = begin, .end = end, .value = value,
                                             .key = key};
static const struct fp_json_shape ghc = {FP_JSON_ROWS(rows_of_ghc), .begin = begin, .end = end, .value = value};

static const struct fp_json_shape *const shapes[] = {&scalene, &ghc, &fp_pyinstrument_shape, &fp_stackprof_shape,
                                                     &fp_safari_shape};

struct fp_small_json *fp_small_json_new(struct fp_model *model, int format, int lenient) {
    struct fp_small_json_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->shape = shapes[format];
    FP_INIT_STRINGS(&r->texts, &r->marshal.strings);
    fp_table_init(&r->keys, 2);
    fp_array_zeroed(&r->stacks, &r->cap, 1, sizeof *r->stacks);
    fp_small_json_again(&r->s);
    return &r->s;
}

void fp_small_json_again(struct fp_small_json *s) {
    struct fp_small_json_reader *r = (struct fp_small_json_reader *)s;
    fp_json_begin(&r->walk, r->shape);
    fp_marshal_begin(&r->marshal);
    r->n = 1;
}

void fp_small_json_free(struct fp_small_json *s) {
    struct fp_small_json_reader *r = (struct fp_small_json_reader *)s;
    fp_json_free(&r->walk);
    fp_marshal_free(&r->marshal);
    fp_strings_clear(&r->texts);
    fp_table_clear(&r->keys);
    FP_FREE(r->names, r->stacks, r->nodes, r->items, r->times, r);
}

void fp_small_json_thread(const struct fp_small_json *s, uint32_t i, uint32_t *name, uint32_t *id) {
    const uint32_t *row = fp_table_row(&((const struct fp_small_json_reader *)s)->keys, i);
    *name = row[0];
    *id = row[1];
}

int fp_small_json_feed(struct fp_small_json *s, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_small_json_reader *r = (struct fp_small_json_reader *)s;
    r->out = out;
    int status = s->is_marshal && !r->walk.over ? fp_marshal_walk(&r->marshal, &r->walk, r, in, err)
                                                : fp_json_walk(&r->walk, r, in, err);
    if (status < 0 && r->lenient) {
        s->bad_end = r->walk.over = 1;
        status = fp_json_walk(&r->walk, r, in, err);
    }
    if (status == FP_DONE && !r->has_rows && !s->bad_end && !s->broken)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "there is no profile in it");
    return status;
}
