#include "bridges/rows/restack.h"

/* chain_of is also called without a guard (core/guard.h): it and what it calls check what they allocate. */

static int add_alike(struct fp_restack *r, uint32_t function) {
    if (fp_array_zeroed(&r->is_alike, &r->cap_is_alike, (uint64_t)function + 1, 1)) return FP_E_NOMEM;
    if (r->is_alike[function]) return 0;
    r->is_alike[function] = 1;
    if (fp_array_room(&r->alike, &r->cap_alike, (uint64_t)r->n_alike + 1, sizeof *r->alike)) return FP_E_NOMEM;
    r->alike[r->n_alike++] = function;
    return 0;
}

/* Adds the functions with this name to `alike` once there are two. */
static int note_name(struct fp_restack *r, uint32_t name, uint32_t function) {
    if (fp_array_zeroed(&r->of_name, &r->cap_of_name, (uint64_t)name + 1, sizeof *r->of_name)) return FP_E_NOMEM;
    uint32_t *first = &r->of_name[name];
    if (!*first) *first = function;
    if (*first == function) return 0;
    if (*first != FP_NO_ID && add_alike(r, *first)) return FP_E_NOMEM;
    *first = FP_NO_ID;
    return add_alike(r, function);
}

/* In the length of a chain: note_names has seen it. */
static const uint32_t NOTED = 1u << 31;

static int note_names(struct fp_restack *r, const uint32_t *frames, uint32_t n) {
    const struct fp_model *m = r->model;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t line = fp_table_row(&m->frames, frames[i])[FP_FRAME_LINES];
        const uint32_t function = line ? fp_table_row(&m->lines, line)[FP_LINE_FUNCTION] : 0;
        if (note_name(r, fp_table_row(&m->functions, function)[FP_FUNCTION_NAME], function)) return FP_E_NOMEM;
    }
    return 0;
}

/* Called for each frame of a stack. */
static const uint32_t *chain_of(void *arg, uint32_t frame, uint32_t *n) {
    struct fp_restack *r = arg;
    uint32_t *chain = frame < r->cap_frames && r->frame_to[frame] ? r->chains + r->frame_to[frame] : NULL;
    if (!chain) return NULL;
    *n = *chain & ~NOTED;
    if (r->tells_apart && !(*chain & NOTED)) {
        r->failed |= note_names(r, chain + 1, *n);
        *chain |= NOTED;
    }
    return chain + 1;
}

struct fp_restack *fp_restack_new(struct fp_model *model) {
    struct fp_restack *r = fp_made(sizeof *r);
    r->model = model;
    r->n_named = 1;
    r->n_chains = 1; /* place 0 is unused */
    r->ids = fp_have(fp_remap_new_hooked(model, (struct fp_remap_hooks){.arg = r, .frames = chain_of}));
    return r;
}

void fp_restack_free(struct fp_restack *r) {
    if (r->ahead) r->ahead->of = NULL;
    fp_frames_release(r->ahead);
    fp_buf_free(&r->name);
    fp_remap_free(r->ids);
    FP_FREE(r->frame_to, r->chains, r->alike, r->of_name, r->is_alike, r);
}

/* ---- replacements of frames ---- */

static void push(struct fp_restack *r, uint32_t word) {
    FP_PUSH(r->chains, r->n_chains, r->cap_chains) = word;
}

static void begin_chain(struct fp_restack *r, uint32_t frame, uint32_t n) {
    *FP_AT(r->frame_to, r->cap_frames, frame) = r->n_chains;
    push(r, n);
}

/* ---- frames with lines ---- */

/* Replaces a frame by the same one with `lines`. */
static void with_lines(struct fp_restack *r, uint32_t frame, uint32_t lines) {
    const uint32_t *row = fp_table_row(&r->model->frames, frame);
    const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    const uint32_t to = fp_model_frame(r->model, row[FP_FRAME_MAPPING], address, row[FP_FRAME_FLAGS], lines);
    begin_chain(r, frame, 1);
    push(r, to);
}

static uint32_t add_function(struct fp_model *m, const struct fp_restack_named *named, uint32_t number) {
    const uint64_t *ends = named->ends + 3 * (size_t)number;
    uint32_t texts[3];
    for (int i = 0; i < 3; i++)
        texts[i] = fp_strings_intern(&m->strings, named->texts + ends[i], ends[i + 1] - ends[i]);
    return fp_model_function(m, named->object, texts[0], texts[1], texts[2], named->first_lines[number]);
}

/* The innermost entry of a chain of n entries in *lines. */
static int add_lines(struct fp_restack *r, const struct fp_restack_named *named, const uint32_t *entry, uint32_t n,
                     uint32_t *lines, struct fp_err *err) {
    *lines = 0;
    for (uint32_t i = 0; i < n; i++, entry += 2) {
        if (entry[0] >= named->n_functions) return fp_unknown_id(err, "a function", entry[0], named->n_functions);
        uint32_t *function = named->functions + entry[0];
        if (!*function) *function = add_function(r->model, named, entry[0]);
        *lines = fp_model_line(r->model, *function, entry[1], 0, *lines);
    }
    return 0;
}

int fp_restack_chains(struct fp_restack *r, const struct fp_restack_named *named, struct fp_err *err) {
    const uint32_t n_objects = r->model->objects.n;
    if (named->object >= n_objects) return fp_unknown_id(err, "an object", named->object, n_objects);
    for (uint32_t i = 0, at = 0; i < named->n_frames; i++) {
        const uint32_t frame = named->frames[i], left = named->n_words - at, n = left ? named->chains[at] : 0;
        uint32_t lines;
        if (frame >= r->model->frames.n) return fp_unknown_id(err, "a frame", frame, r->model->frames.n);
        if (!left || n > (left - 1) / 2) return fp_unknown_id(err, "the entries of a chain", n, left / 2);
        FP_TRY(add_lines(r, named, named->chains + at + 1, n, &lines, err));
        if (n) with_lines(r, frame, lines);
        at += 1 + 2 * n;
    }
    return FP_DONE;
}

/* ---- frames reduced to names ---- */

/* Appends a frame named after `function` or, if there is none, after the address of frame `of`, in `object`. */
static void push_name(struct fp_restack *r, uint32_t function, uint32_t of, uint32_t object) {
    struct fp_model *m = r->model;
    uint32_t name = fp_table_row(&m->functions, function)[FP_FUNCTION_NAME];
    const uint32_t *frame_row = fp_table_row(&m->frames, of);
    if (!name && (fp_words_u64(frame_row + FP_FRAME_ADDRESS) || !frame_row[FP_FRAME_LINES]))
        name = fp_frame_name(m, of, &r->name);
    if (!name) name = fp_strings_intern(&m->strings, "[unknown]", 9);
    const uint32_t *row = fp_table_row(&m->functions, function);
    if (row[FP_FUNCTION_OBJECT]) object = row[FP_FUNCTION_OBJECT];
    const uint32_t only =
        fp_model_function(m, r->files ? 0 : object, row[FP_FUNCTION_FILE], name, 0, row[FP_FUNCTION_LINE]);
    push(r, fp_model_plain_frame(m, only));
}

/* Finds the replacement of a frame. */
static int name_frame(struct fp_restack *r, uint32_t frame, struct fp_err *err) {
    const struct fp_model *m = r->model;
    const uint32_t *row = fp_table_row(&m->frames, frame);
    const uint32_t mapping = row[FP_FRAME_MAPPING], lines = row[FP_FRAME_LINES];
    const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    uint32_t object = 0, n = 0;
    if (mapping >= m->mappings.n) return fp_unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
    if (mapping) object = fp_table_row(&m->mappings, mapping)[FP_MAPPING_OBJECT];
    if (object >= m->objects.n) return fp_unknown_id(err, "the object of a mapping", object, m->objects.n);
    if (lines >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", lines, m->lines.n);
    int placed = address || mapping;
    for (uint32_t id = lines; id; n++) {
        const uint32_t *line = fp_table_row(&m->lines, id);
        const uint32_t function = line[FP_LINE_FUNCTION], outer = line[FP_LINE_OUTER];
        /* an entry is always added after the one it refers to */
        if (outer >= id) return fp_unknown_id(err, "the outer line of a line", outer, id);
        if (function >= m->functions.n) return fp_unknown_id(err, "the function of a line", function, m->functions.n);
        const uint32_t *f = fp_table_row(&m->functions, function);
        placed |= line[FP_LINE_LINE] || f[FP_FUNCTION_OBJECT];
        placed |= !r->files && (f[FP_FUNCTION_FILE] || f[FP_FUNCTION_LINE]);
        id = outer;
    }
    r->placed += placed;
    begin_chain(r, frame, n ? n : 1);
    const uint32_t first = r->n_chains;
    if (!n) push_name(r, 0, frame, object);
    for (uint32_t id = lines; id; id = fp_table_row(&m->lines, id)[FP_LINE_OUTER])
        push_name(r, fp_table_row(&m->lines, id)[FP_LINE_FUNCTION], frame, object);
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t swap = r->chains[first + i];
        r->chains[first + i] = r->chains[first + n - 1 - i];
        r->chains[first + n - 1 - i] = swap;
    }
    return 0;
}

int fp_restack_names(struct fp_restack *r, struct fp_err *err) {
    const uint32_t n = r->model->frames.n;
    if (r->n_named == n) return FP_DONE;
    while (r->n_named < n) {
        FP_TRY(name_frame(r, r->n_named, err));
        r->n_named++;
    }
    r->n_named = r->model->frames.n; /* the new ones are already names */
    r->tells_apart = !r->files;
    return FP_DONE;
}

/* ---- stacks ---- */

int fp_restack_ahead(struct fp_restack *r, enum fp_frames_step step) {
    r->ahead = fp_have(malloc(sizeof *r->ahead));
    *r->ahead = (struct fp_frames){r, chain_of, 1};
    fp_model_replace_frames(r->model, step, r->ahead);
    return 0;
}

int fp_restack_batch(struct fp_restack *r, struct fp_batch *b, struct fp_err *err) {
    if (r->ahead && r->n_ahead == r->n_chains) return r->failed ? fp_no_memory(err) : FP_DONE;
    const int status = fp_remap_batch(r->ids, b, err);
    /* rows that wait in a reader still have the stacks from before */
    r->n_ahead = r->model->n_waiting ? 0 : r->n_chains;
    if (r->ahead) fp_model_renew_stacks(r->model);
    return r->failed ? fp_no_memory(err) : status;
}
