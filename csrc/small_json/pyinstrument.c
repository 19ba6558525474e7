#include "small_json/private.h"

enum { TOP = 1, RECORDS, RECORD, STACK, NODE, CHILDREN, ODD };
enum { START = 1, DURATION, CPU_TIME, TARGET, SECONDS, FRAME, NAME, PATH, LINE, TIME, STRAY, ROOT };

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "start_time", .value = START),
    FP_JSON_KEY(TOP, "duration", .value = DURATION),
    FP_JSON_KEY(TOP, "cpu_time", .value = CPU_TIME),
    FP_JSON_KEY(TOP, "target_description", .value = TARGET),
    FP_JSON_KEY(TOP, "frame_records", .array = RECORDS),
    FP_JSON_KEY(TOP, "root_frame", .object = NODE, .value = ROOT),
    FP_JSON_EACH(RECORDS, .array = RECORD, .object = ODD, .value = STRAY),
    FP_JSON_EACH(RECORD, .array = STACK, .object = ODD, .value = SECONDS),
    FP_JSON_EACH(STACK, .array = ODD, .object = ODD, .value = FRAME),
    FP_JSON_KEY(NODE, "function", .value = NAME),
    FP_JSON_KEY(NODE, "file_path", .value = PATH),
    FP_JSON_KEY(NODE, "line_no", .value = LINE),
    FP_JSON_KEY(NODE, "time", .value = TIME),
    FP_JSON_KEY(NODE, "children", .array = CHILDREN),
    FP_JSON_EACH(CHILDREN, .object = NODE, .array = ODD, .value = STRAY),
};

/* The rows begin: the caller adds the part, then this is called again.  What has rows after that is an error. */
static int ask(struct fp_small_json_reader *r, int is_tree, struct fp_window *in, struct fp_err *err) {
    r->has_rows = 1;
    if (r->is_asked > 1)
        return fp_small_json_broken(r, in, "\"frame_records\" or \"root_frame\", and only one of them", err);
    if (!r->is_asked) r->s.is_tree = is_tree;
    return r->is_asked++ ? 0 : FP_NEEDS;
}

/* ---- sessions ---- */

/* p[0..n) up to the first byte `to`, and past it. */
static size_t part_of(const uint8_t **p, size_t *n, uint8_t to) {
    const uint8_t *end = memchr(*p, to, *n);
    const size_t length = end ? (size_t)(end - *p) : *n;
    const size_t past = length + (end != NULL);
    *p += past;
    *n -= past;
    return length;
}

/* The frame of a text: function, NUL, file, NUL, first line, then each after \1 attributes: l (line), c (class).  If it
 * is a thread, its number in the model becomes that of the sample, and there is no frame: 0. */
static uint32_t frame_of(struct fp_small_json_reader *r, const uint8_t *p, size_t n) {
    struct fp_model *m = r->model;
    const uint8_t *attribute = p, *name = p;
    size_t left = n, rest = part_of(&attribute, &left, 1);
    const uint8_t *place = p;
    const size_t n_name = part_of(&place, &rest, 0);
    const uint8_t *file = place;
    const size_t n_file = part_of(&place, &rest, 0);
    uint64_t first = 0, line = 0;
    (void)fp_digits(place, place + rest, 9, &first);
    if (n_file == 8 && !memcmp(file, "<thread>", 8)) {
        struct fp_strings *t = &m->strings;
        const uint32_t row[2] = {fp_strings_intern(t, name, n_name), fp_strings_intern(t, place, rest)};
        r->thread = fp_model_thread(m, r->s.input, 0, fp_table_intern(&r->keys, row));
        r->s.n_threads = r->keys.n - 1;
        return 0;
    }
    const uint8_t *class = NULL;
    size_t n_class = 0;
    while (left) {
        const uint8_t *a = attribute;
        const size_t n_a = part_of(&attribute, &left, 1);
        if (n_a && *a == 'l') (void)fp_digits(a + 1, a + n_a, 9, &line);
        if (n_a && *a == 'c') class = a + 1, n_class = n_a - 1;
    }
    uint32_t id;
    if (n_class) {
        struct fp_buf *to = &r->walk.scratch;
        to->n = 0;
        (void)fp_buf_put(to, class, n_class), (void)fp_buf_put(to, ".", 1), (void)fp_buf_put(to, name, n_name);
        id = fp_strings_intern(&m->strings, to->p, to->n);
    } else {
        id = fp_strings_intern(&m->strings, name, n_name);
    }
    const uint32_t path = fp_strings_intern(&m->strings, file, n_file);
    const uint32_t function = fp_model_function(m, 0, path, id, 0, (uint32_t)first);
    return fp_model_line_frame(m, function, (uint32_t)line, 0);
}

static void add_frame(struct fp_small_json_reader *r) {
    const uint32_t text = fp_json_intern(&r->walk, &r->texts);
    if (!*FP_AT(r->names, r->cap_names, text)) {
        size_t n;
        const uint8_t *p = fp_string(&r->texts, text, &n);
        r->names[text] = frame_of(r, p, n);
        if (!r->names[text]) return;
    }
    FP_PUSH(r->stacks, r->n, r->cap) = r->names[text];
}

static int end_of_record(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    const int64_t ns = r->numbers[0];
    if (r->is_bad || ns < 0 || ns > INT64_MAX - (int64_t)r->now)
        return fp_small_json_broken(r, in, "a list of frames, as texts, and seconds from 0", err);
    uint32_t stack = 0;
    for (uint32_t k = 1; k < r->n; k++) stack = fp_model_stack(r->model, stack, r->stacks[k]);
    r->now += (uint64_t)ns;
    fp_batch_sample(r->out, stack, 0, 0, r->now);
    r->out->thread[r->out->n - 1] = r->thread;
    fp_small_json_put(r->out, 0, ns);
    fp_small_json_put(r->out, 1, 1);
    return 0;
}

/* ---- trees ---- */

static void begin_node(struct fp_small_json_reader *r) {
    fp_array_zeroed(&r->nodes, &r->cap_nodes, (uint64_t)r->n_nodes + 2, sizeof *r->nodes);
    r->nodes[r->n_nodes].is_late |= !r->nodes[r->n_nodes].name;
    r->nodes[++r->n_nodes] = (struct fp_small_json_node){.time = -1};
}

/* [self] is the time of its parent outside of calls. */
static void make_stack(struct fp_small_json_reader *r) {
    struct fp_model *m = r->model;
    struct fp_small_json_node *node = &r->nodes[r->n_nodes];
    node->stack = node[-1].stack;
    if (!node->name || fp_string_is(&m->strings, node->name, "[self]")) return;
    const uint32_t function = fp_model_function(m, 0, node->file, node->name, 0, node->line);
    node->stack = fp_model_stack(m, node->stack, fp_model_plain_frame(m, function));
}

static int end_of_node(struct fp_small_json_reader *r, struct fp_window *in, struct fp_err *err) {
    if (r->out->n == r->out->cap) return FP_FULL;
    struct fp_small_json_node *node = &r->nodes[r->n_nodes];
    if (!node->stack) make_stack(r);
    const int is_bad = !node->name || node->is_late || node->time < 0 || r->is_bad;
    const char *want = node->name && node->is_late ? "\"function\" ahead of \"children\""
                                                   : "\"function\", and \"time\" from 0 seconds";
    const int status = is_bad ? fp_small_json_broken(r, in, want, err) : 0;
    if (is_bad) node->time = node->of_children;
    r->n_nodes--;
    r->is_bad = 0;
    if (__builtin_add_overflow(node[-1].of_children, node->time, &node[-1].of_children))
        return fp_small_json_broken(r, in, "times of less than 292 years", err);
    if (node->time <= node->of_children) return status; /* each is rounded to microseconds */
    fp_batch_sample(r->out, node->stack, 0, 0, 0);
    fp_small_json_put(r->out, 0, node->time - node->of_children);
    return status;
}

/* ---- the walk ---- */

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    if (kind == ODD) r->is_bad = 1;
    if (kind == RECORDS || (kind == NODE && !r->n_nodes)) {
        const int is_second = r->is_asked > 1, status = ask(r, kind == NODE, in, err);
        if (status) return status;
        r->walk.pass = is_second;
        if (is_second) return 0;
    }
    if (kind == RECORD) {
        if (r->out->n == r->out->cap) return FP_FULL;
        r->n = 1;
        r->numbers[0] = -1;
        r->is_bad = 0;
        r->thread = 0;
    }
    if (kind == NODE) begin_node(r);
    if (kind == CHILDREN) make_stack(r);
    return 0;
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    if (kind == RECORD) return end_of_record(to, in, err);
    return kind == NODE ? end_of_node(to, in, err) : 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_small_json_reader *r = to;
    const struct fp_json *j = &r->walk.json;
    struct fp_small_json_node *node = r->n_nodes ? &r->nodes[r->n_nodes] : NULL;
    int64_t number = -1;
    (void)in, (void)err;
    if (code == ROOT) return ask(r, 1, in, err); /* null: no samples */
    if (code == FRAME || code == NAME || code == PATH || code == TARGET) {
        if (j->token != FP_JSON_STRING) {
            r->is_bad |= code != TARGET;
        } else if (code == FRAME) {
            add_frame(r);
        } else {
            uint32_t *const text = code == TARGET ? &r->s.target : code == NAME ? &node->name : &node->file;
            *text = fp_json_intern(&r->walk, &r->model->strings);
        }
        return 0;
    }
    const int scale = code == LINE ? 0 : 9; /* seconds become nanoseconds */
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, scale, &number, NULL)) number = -1;
    switch (code) {
        case START: r->s.start_ns = number; break;
        case DURATION: r->s.elapsed_ns = number; break;
        case CPU_TIME: r->s.cpu_ns = number; break;
        case SECONDS: r->numbers[0] = number; break;
        case TIME: node->time = number; break;
        case LINE: node->line = number > 0 && number <= INT32_MAX ? (uint32_t)number : 0; break;
        default: return fp_small_json_broken(r, in, "a list of frames and seconds", err); /* STRAY */
    }
    return 0;
}

const struct fp_json_shape fp_pyinstrument_shape = {FP_JSON_ROWS(rows), .begin = begin, .end = end, .value = value};
