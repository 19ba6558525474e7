#include "bridges/rows/transform.h"

#include "bridges/rows/open_calls.h"

struct fp_transform *fp_transform_new(struct fp_model *model) {
    struct fp_transform *t = fp_made(sizeof *t);
    t->model = model;
    fp_table_init(&t->names, 1);
    fp_table_init(&t->places, 3);
    fp_table_init(&t->inlined, 2);
    t->open = fp_have(calloc(1, sizeof *t->open));
    fp_open_init(t->open);
    t->hidden = fp_model_function(model, 0, 0, fp_strings_intern(&model->strings, "[hidden]", 8), 0, 0);
    return t;
}

/* ---- functions ---- */

static int bits(const struct fp_mask *mask, uint32_t id) {
    return id < mask->n ? mask->keep[id] : 0;
}

int fp_transform_hides(const struct fp_transform *t, uint32_t function, uint32_t object) {
    const uint32_t own = fp_table_row(&t->model->functions, function)[FP_FUNCTION_OBJECT];
    return (bits(&t->functions, function) | bits(&t->objects, own ? own : object)) & FP_TRANSFORM_HIDES;
}

/* The last component of a path. */
static const uint8_t *base_name(const uint8_t *path, size_t *n) {
    size_t from = *n;
    while (from && path[from - 1] != '/' && path[from - 1] != '\\') from--;
    if (from == *n) return path; /* it ends in a slash */
    *n -= from;
    return path + from;
}

/* The function that stands for an object; objects with one name share it. */
static uint32_t function_of_object(struct fp_transform *t, uint32_t object) {
    if (*FP_AT(t->object_to, t->cap_object_to, object)) return t->object_to[object] - 1;
    const uint32_t name = fp_table_row(&t->model->objects, object)[FP_OBJECT_NAME];
    const uint32_t n = t->names.n, at = fp_table_intern(&t->names, &name);
    if (t->names.n > n) {
        size_t length;
        const uint8_t *text = fp_string(&t->model->strings, name, &length);
        text = base_name(text, &length);
        const uint32_t base = fp_strings_intern(&t->model->strings, text, length);
        *FP_AT(t->collapsed, t->cap_collapsed, at) = fp_model_function(t->model, object, 0, base, 0, 0);
    }
    t->object_to[object] = t->collapsed[at] + 1;
    return t->collapsed[at];
}

/* The first function with the object, file and name of another one. */
static uint32_t first_of(struct fp_transform *t, uint32_t function) {
    if (!t->merge_lines) return function;
    if (!*FP_AT(t->function_to, t->cap_function_to, function)) {
        const struct fp_same_function own = fp_same_function(t->model, function);
        const uint32_t n = t->places.n;
        const uint32_t at = fp_table_intern(&t->places, (const uint32_t[]){own.object, own.file, own.name});
        if (t->places.n > n) *FP_AT(t->firsts, t->cap_firsts, at) = function;
        t->function_to[function] = t->firsts[at] + 1;
    }
    return t->function_to[function] - 1;
}

static int collapses(const struct fp_transform *t, uint32_t object) {
    return object && bits(&t->objects, object) & FP_TRANSFORM_COLLAPSES;
}

uint32_t fp_transform_function(struct fp_transform *t, uint32_t function) {
    const uint32_t object = fp_table_row(&t->model->functions, function)[FP_FUNCTION_OBJECT];
    return collapses(t, object) ? function_of_object(t, object) : first_of(t, function);
}

static int is_collapsed(const struct fp_transform *t, uint32_t function) {
    const uint32_t object = fp_table_row(&t->model->functions, function)[FP_FUNCTION_OBJECT];
    return object < t->cap_object_to && t->object_to[object] == function + 1;
}

int fp_transform_is_own(const struct fp_transform *t, uint32_t function) {
    return function == t->hidden || is_collapsed(t, function);
}

static int same_function(const struct fp_model *m, uint32_t a, uint32_t b) {
    if (a == b) return 1;
    const struct fp_same_function x = fp_same_function(m, a), y = fp_same_function(m, b);
    return x.object == y.object && x.file == y.file && x.name == y.name && x.line == y.line;
}

int fp_transform_merges(const struct fp_transform *t, uint32_t outer, uint32_t inner) {
    if (outer == inner && (t->recursion || is_collapsed(t, inner))) return 1;
    return t->recursion && same_function(t->model, outer, inner);
}

/* ---- frames ---- */

static uint32_t object_of_frame(const struct fp_model *m, const uint32_t *row) {
    return fp_table_row(&m->mappings, row[FP_FRAME_MAPPING])[FP_MAPPING_OBJECT];
}

static uint32_t address_frame(struct fp_transform *t, uint32_t frame, uint32_t object) {
    if ((bits(&t->frames, frame) | bits(&t->objects, object)) & FP_TRANSFORM_HIDES) return 0;
    if (!collapses(t, object)) return frame;
    return fp_model_plain_frame(t->model, function_of_object(t, object));
}

/* What a line and those that it is inlined into become. */
struct fp_transform_line {
    uint32_t lines, last; /* 0: nothing; the function of `lines` */
    int32_t is_object;    /* a single function that stands for an object */
};

/* Of a line below what those become that it is inlined into. */
static struct fp_transform_line below(struct fp_transform *t, struct fp_transform_line outer, uint32_t line,
                                      uint32_t object) {
    struct fp_model *m = t->model;
    const uint32_t *of = fp_table_row(&m->lines, line);
    const uint32_t function = of[FP_LINE_FUNCTION], at = of[FP_LINE_LINE], column = of[FP_LINE_COLUMN];
    if (fp_transform_hides(t, function, object)) return outer;
    const uint32_t own = fp_table_row(&m->functions, function)[FP_FUNCTION_OBJECT];
    const int is_one = collapses(t, own ? own : object);
    const uint32_t to = is_one ? function_of_object(t, own ? own : object) : first_of(t, function);
    uint32_t lines = outer.lines;
    if (lines && fp_transform_merges(t, outer.last, to)) lines = fp_table_row(&m->lines, lines)[FP_LINE_OUTER];
    const int is_object = is_one && !lines;
    lines = fp_model_line(m, to, is_one ? 0 : at, is_one ? 0 : column, lines);
    return (struct fp_transform_line){lines, to, is_object};
}

enum { HAS_OWN = 1, HAS_BARE = 2, IS_KNOWN = 4 };

/* What a line and those that it is inlined into have: functions with an object of their own, and functions without one
 * (HAS_OWN, HAS_BARE).  Hidden functions do not count; the mapping's object is not hidden. */
static int kinds_of(struct fp_transform *t, uint32_t line) {
    uint32_t n = 0;
    int found = IS_KNOWN;
    fp_array_zeroed(&t->kinds, &t->cap_kinds, (uint64_t)line + 1, sizeof *t->kinds);
    for (; line; line = fp_table_row(&t->model->lines, line)[FP_LINE_OUTER]) {
        if (t->kinds[line]) {
            found = t->kinds[line];
            break;
        }
        FP_PUSH(t->chain, n, t->cap_chain) = line;
    }
    while (n--) {
        const uint32_t at = t->chain[n], function = fp_table_row(&t->model->lines, at)[FP_LINE_FUNCTION];
        if (!fp_transform_hides(t, function, 0))
            found |= fp_table_row(&t->model->functions, function)[FP_FUNCTION_OBJECT] ? HAS_OWN : HAS_BARE;
        t->kinds[at] = (uint8_t)found;
    }
    return found;
}

/* The same of a chain of lines, of which those that are known are not changed again. */
static struct fp_transform_line changed_lines(struct fp_transform *t, uint32_t line, uint32_t object) {
    struct fp_transform_line found = {0, 0, 0};
    const int of_object = bits(&t->objects, object); /* other objects make no difference */
    const int is_one = of_object && !(of_object & FP_TRANSFORM_HIDES);
    if (of_object & FP_TRANSFORM_HIDES && !t->hiding) t->hiding = object;
    if (is_one) kinds_of(t, line);
    uint32_t n = 0;
    for (; line; line = fp_table_row(&t->model->lines, line)[FP_LINE_OUTER]) {
        const int kinds = is_one ? t->kinds[line] & (HAS_OWN | HAS_BARE) : 0;
        if (kinds == HAS_BARE) { /* all of them become the object */
            const uint32_t to = function_of_object(t, object);
            found = (struct fp_transform_line){fp_model_line(t->model, to, 0, 0, 0), to, 1};
            break;
        }
        const uint32_t like = is_one ? (kinds & HAS_BARE ? object : 0) : of_object ? t->hiding : 0;
        const uint32_t before = t->inlined.n;
        fp_array_room(&t->becomes, &t->cap_becomes, (uint64_t)before + 1, sizeof *t->becomes);
        fp_array_room(&t->chain, &t->cap_chain, (uint64_t)n + 1, sizeof *t->chain);
        const uint32_t row = fp_table_intern(&t->inlined, (const uint32_t[]){line, like});
        if (t->inlined.n == before) {
            found = t->becomes[row];
            break;
        }
        t->becomes[row] = found;
        t->chain[n++] = row;
    }
    while (n--) {
        const uint32_t row = t->chain[n];
        t->becomes[row] = found = below(t, found, fp_table_row(&t->inlined, row)[0], object);
    }
    return found;
}

/* What a frame becomes; 0: nothing.  Its ids are those of the model. */
static uint32_t changed_frame(struct fp_transform *t, uint32_t frame) {
    struct fp_model *m = t->model;
    const uint32_t *row = fp_table_row(&m->frames, frame), mapping = row[FP_FRAME_MAPPING], flags = row[FP_FRAME_FLAGS];
    const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    const uint32_t object = object_of_frame(m, row), line = row[FP_FRAME_LINES];
    if (!line) return address_frame(t, frame, object);
    const struct fp_transform_line to = changed_lines(t, line, object);
    if (!to.lines || to.is_object) return to.lines ? fp_model_frame(m, 0, 0, 0, to.lines) : 0;
    return fp_model_frame(m, mapping, address, flags, to.lines);
}

int fp_transform_check_frame(const struct fp_model *m, uint32_t frame, const uint32_t *known, uint32_t cap_known,
                             struct fp_err *err) {
    if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
    const uint32_t *row = fp_table_row(&m->frames, frame), mapping = row[FP_FRAME_MAPPING];
    if (mapping >= m->mappings.n) return fp_unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
    const uint32_t object = object_of_frame(m, row);
    if (object >= m->objects.n) return fp_unknown_id(err, "the object of a mapping", object, m->objects.n);
    for (uint32_t line = row[FP_FRAME_LINES], outer; line && (line >= cap_known || !known[line]); line = outer) {
        if (line >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", line, m->lines.n);
        const uint32_t function = fp_table_row(&m->lines, line)[FP_LINE_FUNCTION];
        if (function >= m->functions.n) return fp_unknown_id(err, "the function of a line", function, m->functions.n);
        outer = fp_table_row(&m->lines, line)[FP_LINE_OUTER];
        if (outer >= line) return fp_unknown_id(err, "the outer line of a line", outer, line);
    }
    return FP_DONE;
}

/* The outermost function of a chain of lines, of which each is visited once. */
static uint32_t outermost_of(struct fp_transform *t, uint32_t line) {
    uint32_t n = 0, found = 0;
    while (!found) {
        if (line < t->cap_outermost && t->outermost[line]) {
            found = t->outermost[line];
            break;
        }
        FP_PUSH(t->chain, n, t->cap_chain) = line;
        const uint32_t *of = fp_table_row(&t->model->lines, line), outer = of[FP_LINE_OUTER];
        if (!outer) found = of[FP_LINE_FUNCTION] + 1;
        line = outer;
    }
    if (n) fp_array_zeroed(&t->outermost, &t->cap_outermost, (uint64_t)t->chain[0] + 1, sizeof *t->outermost);
    while (n--) t->outermost[t->chain[n]] = found;
    return found - 1;
}

static int frame_of(struct fp_transform *t, uint32_t frame, uint32_t *to, struct fp_err *err) {
    if (frame >= t->cap_frame_to || !t->frame_to[frame]) {
        FP_TRY(fp_transform_check_frame(t->model, frame, t->outermost, t->cap_outermost, err));
        if (fp_table_row(&t->model->frames, frame)[FP_FRAME_LINES])
            outermost_of(t, fp_table_row(&t->model->frames, frame)[FP_FRAME_LINES]);
        const uint32_t found = changed_frame(t, frame);
        *FP_AT(t->frame_to, t->cap_frame_to, frame) = found + 1;
    }
    *to = t->frame_to[frame] - 1;
    return FP_DONE;
}

/* ---- stacks ---- */

/* The innermost or outermost function of a frame; FP_NO_ID: it has none. */
static uint32_t function_at(struct fp_transform *t, uint32_t frame, int is_outermost) {
    const uint32_t line = fp_table_row(&t->model->frames, frame)[FP_FRAME_LINES];
    if (!line) return FP_NO_ID;
    return is_outermost ? outermost_of(t, line) : fp_table_row(&t->model->lines, line)[FP_LINE_FUNCTION];
}

/* Whether the innermost function of `outer` and the outermost of `inner`, adjacent frames, become one. */
static int frames_merge(struct fp_transform *t, uint32_t outer, uint32_t inner) {
    const struct fp_model *m = t->model;
    const uint32_t a = function_at(t, outer, 0), b = function_at(t, inner, 1);
    if (a != FP_NO_ID && b != FP_NO_ID) return fp_transform_merges(t, a, b);
    if (a != b || !t->recursion) return 0;
    const uint32_t *x = fp_table_row(&m->frames, outer), *y = fp_table_row(&m->frames, inner);
    return x[FP_FRAME_MAPPING] == y[FP_FRAME_MAPPING] &&
           !memcmp(x + FP_FRAME_ADDRESS, y + FP_FRAME_ADDRESS, 2 * sizeof *x);
}

/* A stack without its innermost function. */
static uint32_t without_last(struct fp_model *m, uint32_t stack) {
    const uint32_t *node = fp_table_row(&m->stacks, stack), parent = node[FP_STACK_PARENT];
    const uint32_t *row = fp_table_row(&m->frames, node[FP_STACK_FRAME]), line = row[FP_FRAME_LINES];
    const uint32_t outer = line ? fp_table_row(&m->lines, line)[FP_LINE_OUTER] : 0;
    if (!outer) return parent;
    const uint32_t frame =
        fp_model_frame(m, row[FP_FRAME_MAPPING], fp_words_u64(row + FP_FRAME_ADDRESS), row[FP_FRAME_FLAGS], outer);
    return fp_model_stack(m, parent, frame);
}

static uint32_t extended(struct fp_transform *t, uint32_t stack, uint32_t frame) {
    struct fp_model *m = t->model;
    if (!frame) return stack;
    if (stack && frames_merge(t, fp_table_row(&m->stacks, stack)[FP_STACK_FRAME], frame))
        stack = without_last(m, stack);
    return fp_model_stack(m, stack, frame);
}

int64_t fp_transform_unknown(const struct fp_model *m, uint32_t stack, const uint32_t *known, uint32_t cap_known,
                             uint32_t **list, uint32_t *cap_list, struct fp_err *err) {
    uint32_t n = 0;
    for (uint32_t at = stack; at && (at >= cap_known || !known[at]);) {
        if (at >= m->stacks.n) return fp_unknown_id(err, "a stack", at, m->stacks.n);
        const uint32_t parent = fp_table_row(&m->stacks, at)[FP_STACK_PARENT];
        if (parent >= at) return fp_unknown_id(err, "the parent of a stack", parent, at);
        fp_array_room(list, cap_list, (uint64_t)n + 1, sizeof **list);
        (*list)[n++] = at;
        at = parent;
    }
    return n;
}

/* Finds what a stack becomes, after its callers. */
static int stack_of(struct fp_transform *t, uint32_t stack, uint32_t *to, struct fp_err *err) {
    struct fp_model *m = t->model;
    int64_t n = fp_transform_unknown(m, stack, t->stack_to, t->cap_stack_to, &t->path, &t->cap_path, err);
    if (n < 0) return FP_E_MALFORMED;
    if (n) fp_array_zeroed(&t->stack_to, &t->cap_stack_to, (uint64_t)stack + 1, sizeof *t->stack_to);
    while (n-- > 0) {
        const uint32_t at = t->path[n], *row = fp_table_row(&m->stacks, at), parent = row[FP_STACK_PARENT];
        uint32_t frame;
        FP_TRY(frame_of(t, row[FP_STACK_FRAME], &frame, err));
        t->stack_to[at] = extended(t, parent ? t->stack_to[parent] - 1 : 0, frame) + 1;
    }
    *to = stack ? t->stack_to[stack] - 1 : 0;
    return FP_DONE;
}

int fp_transform_stacks(struct fp_transform *t, struct fp_batch *b, struct fp_err *err) {
    struct fp_model *m = t->model;
    if (t->n_emptied != m->n_emptied) {
        t->n_emptied = m->n_emptied;
        if (t->cap_stack_to) memset(t->stack_to, 0, t->cap_stack_to * sizeof *t->stack_to);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t to;
        FP_TRY(stack_of(t, b->stack[i], &to, err));
        if (!to && b->stack[i]) {
            t->n_hidden += fp_batch_samples(b, i);
            to = fp_model_stack(m, 0, fp_model_plain_frame(m, t->hidden));
        }
        b->stack[i] = to;
    }
    return FP_DONE;
}

/* ---- a graph ---- */

/* Replaces a function whose object is collapsed, with its place.  Returns whether it is. */
static int collapse(struct fp_transform *t, uint32_t *function, uint32_t *file, uint32_t *line, uint64_t *address,
                    uint64_t *bb) {
    const uint32_t object = fp_table_row(&t->model->functions, *function)[FP_FUNCTION_OBJECT];
    if (!collapses(t, object)) return 0;
    *function = function_of_object(t, object);
    *file = *line = 0;
    if (address) *address = 0;
    if (bb) *bb = 0;
    return 1;
}

static uint64_t *at_row(uint64_t *column, uint32_t i) {
    return column ? column + i : NULL;
}

int fp_transform_graph(struct fp_transform *t, struct fp_batch *b, struct fp_err *err) {
    const struct fp_table *functions = &t->model->functions;
    fp_array_room(&t->marks, &t->cap_marks, b->n, 1);
    for (uint32_t i = 0; i < b->n; i++) {
        const int has_target = b->kind[i] == FP_CALL || b->kind[i] == FP_JUMP || b->kind[i] == FP_JCND;
        const int is_jump = has_target && b->kind[i] != FP_CALL;
        if (b->function[i] >= functions->n)
            return fp_unknown_id(err, "the function of a row", b->function[i], functions->n);
        if (has_target && b->callee[i] >= functions->n)
            return fp_unknown_id(err, "the function of a target", b->callee[i], functions->n);
        b->function[i] = first_of(t, b->function[i]);
        if (has_target) b->callee[i] = first_of(t, b->callee[i]);
        const int hides = fp_transform_hides(t, b->function[i], 0),
                  hides_target = has_target && fp_transform_hides(t, b->callee[i], 0);
        const int is_one =
            !hides && collapse(t, &b->function[i], &b->file[i], &b->line[i], at_row(b->address, i), at_row(b->bb, i));
        int is_one_target = 0;
        if (has_target && !hides_target) {
            uint32_t file = 0, line = 0; /* a call has none */
            is_one_target =
                collapse(t, &b->callee[i], is_jump ? &b->target_file[i] : &file, is_jump ? &b->target_line[i] : &line,
                         is_jump ? at_row(b->target_address, i) : NULL, is_jump ? at_row(b->target_bb, i) : NULL);
        }
        t->marks[i] = FP_TRANSFORM_KEEPS;
        if (is_jump && (hides || hides_target || is_one || is_one_target)) {
            t->marks[i] = FP_TRANSFORM_DROPS;
            t->n_jumps++;
        } else if (hides || hides_target) {
            t->marks[i] = b->kind[i] == FP_BLOCK ? FP_TRANSFORM_DROPS : FP_TRANSFORM_HELD;
        } else if (b->kind[i] == FP_CALL && fp_transform_merges(t, b->function[i], b->callee[i])) {
            t->marks[i] = FP_TRANSFORM_DROPS;
        }
    }
    return FP_DONE;
}

void fp_transform_keep(struct fp_transform *t, struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++) t->marks[i] = t->marks[i] == FP_TRANSFORM_KEEPS;
    b->n = fp_batch_keep(b, 0, 0, t->marks, b->n);
}
