#include "bridges/project/project_private.h"

/* Graphs use Callgrind's name for an unknown file. */
static uint32_t known_file(const struct fp_project *s, uint32_t file) {
    return file ? file : s->unknown_file;
}

/* A frame with a checked mapping and object; all zero: a sample without a stack. */
struct position_place {
    uint32_t frame, object;
    uint64_t address; /* as recorded */
};

/* The function for code without a name, named by fp_frame_name. */
static uint32_t function_at(struct fp_project *s, const struct position_place *at, uint32_t file) {
    struct fp_model *m = s->model;
    uint32_t name = fp_frame_name(m, at->frame, &s->name);
    uint32_t function = fp_model_function(m, at->object, file, name, 0, 0);
    *FP_AT(s->start_of, s->cap_start, function) = fp_frame_code(fp_table_row(&m->frames, at->frame));
    return function;
}

/* Of functions that are the same but for their linker name, the first represents all, or recursion between them would
 * be missed. */
static uint32_t same_function(struct fp_project *s, const uint32_t *f) {
    const uint32_t known = s->names.n, function = fp_model_function_row(s->model, f);
    const struct fp_same_function same = fp_same_function(s->model, function);
    const uint32_t name = fp_table_intern(&s->names, (const uint32_t *)&same);
    if (name < known) return s->function_of_name[name];
    return *FP_AT(s->function_of_name, s->cap_names, name) = function;
}

/* A function for the graph: in the object that its code was mapped from, and never without a name or a file
 * (callgrind_annotate replaces an empty one by the caller's). */
static uint32_t function_in(struct fp_project *s, uint32_t function, const struct position_place *at) {
    struct fp_model *m = s->model;
    uint32_t f[FP_FUNCTION_WIDTH];
    memcpy(f, fp_table_row(&m->functions, function), sizeof f);
    const uint32_t file = known_file(s, f[FP_FUNCTION_FILE]);
    if (!f[FP_FUNCTION_NAME]) {
        if (at->address) return function_at(s, at, file);
        f[FP_FUNCTION_NAME] = fp_strings_intern(&m->strings, "[unknown]", 9);
    }
    f[FP_FUNCTION_FILE] = file;
    if (!f[FP_FUNCTION_OBJECT]) f[FP_FUNCTION_OBJECT] = at->object;
    return same_function(s, f);
}

static void push_position(struct fp_project *s, uint32_t function, uint32_t file, uint32_t line, uint64_t address) {
    s->addresses |= address != 0;
    s->lines |= line != 0;
    uint32_t position = fp_table_intern(&s->positions, (uint32_t[]){function, file, line, FP_WORDS(address)});
    fp_project_push(s, position);
}

/* The line of an entry; if it has none, its function's first one. */
static uint32_t line_of(const struct fp_model *m, const uint32_t *entry) {
    return entry[FP_LINE_LINE] ? entry[FP_LINE_LINE]
                               : fp_table_row(&m->functions, entry[FP_LINE_FUNCTION])[FP_FUNCTION_LINE];
}

/* Appends the positions of a line chain, outermost first.  Without inline_calls that is one: the line of the innermost
 * inlined function, in the outermost function. */
static int push_lines(struct fp_project *s, uint32_t lines, const struct position_place *at, struct fp_err *err) {
    struct fp_model *m = s->model;
    uint32_t n = 0, outermost = lines;
    for (uint32_t id = lines; id; n++) {
        const uint32_t *row = fp_table_row(&m->lines, id);
        uint32_t outer = row[FP_LINE_OUTER];
        /* an entry is always added after the one it refers to */
        if (outer >= id) return fp_unknown_id(err, "the outer line of a line", outer, id);
        if (row[FP_LINE_FUNCTION] >= m->functions.n)
            return fp_unknown_id(err, "the function of a line", row[FP_LINE_FUNCTION], m->functions.n);
        outermost = id;
        id = outer;
    }
    if (!s->inline_calls) {
        const uint32_t *row = fp_table_row(&m->lines, lines);
        uint32_t function = fp_table_row(&m->lines, outermost)[FP_LINE_FUNCTION];
        uint32_t file = known_file(s, fp_file_of_function(m, row[FP_LINE_FUNCTION]));
        push_position(s, function_in(s, function, at), file, line_of(m, row), at->address);
        return 0;
    }
    uint32_t first = s->n_chain;
    for (uint32_t id = lines; id; id = fp_table_row(&m->lines, id)[FP_LINE_OUTER]) {
        const uint32_t *row = fp_table_row(&m->lines, id);
        uint32_t function = row[FP_LINE_FUNCTION];
        uint32_t file = known_file(s, fp_file_of_function(m, function));
        push_position(s, function_in(s, function, at), file, line_of(m, row), at->address);
    }
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t swap = s->chain[first + i];
        s->chain[first + i] = s->chain[first + n - 1 - i];
        s->chain[first + n - 1 - i] = swap;
    }
    return 0;
}

int fp_project_resolve(struct fp_project *s, uint32_t frame, struct fp_err *err) {
    struct fp_model *m = s->model;
    uint32_t row[FP_FRAME_WIDTH], object = 0;
    memcpy(row, fp_table_row(&m->frames, frame), sizeof row);
    uint32_t mapping = row[FP_FRAME_MAPPING], lines = row[FP_FRAME_LINES];
    uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    if (mapping >= m->mappings.n) return fp_unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
    if (mapping) object = fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT];
    if (object >= m->objects.n) return fp_unknown_id(err, "the object of a mapping", object, m->objects.n);
    if (lines >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", lines, m->lines.n);
    if (address && row[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS) s->return_addresses = 1;

    const struct position_place place = {frame, object, address};
    const uint32_t at = s->n_chain;
    fp_project_push(s, 0); /* the length, set below */
    if (lines) {
        FP_TRY(push_lines(s, lines, &place, err));
    } else if (!frame) { /* a sample without a stack */
        push_position(s, function_in(s, 0, &(struct position_place){0}), s->unknown_file, 0, 0);
    } else {
        push_position(s, function_at(s, &place, s->unknown_file), s->unknown_file, 0, address);
    }
    s->chain[at] = s->n_chain - at - 1;
    s->chain_of[frame] = at;
    return 0;
}
