/* The shared tables: strings, functions, frames, stacks.  An entry is written when it is first used.
 */
#include "firefox/private.h"

uint8_t *fp_firefox_more_room(struct fp_firefox *w, uint32_t column, size_t n) {
    struct fp_buf *b = &w->columns[column];
    if (!b->n) {
        fp_array_room(&w->dirty, &w->cap_dirty, (uint64_t)w->n_dirty + 1, sizeof *w->dirty);
        fp_buf_reserve(b, n);
        w->dirty[w->n_dirty++] = column;
    }
    fp_buf_reserve(b, n);
    return b->p + b->n;
}

void fp_firefox_item(struct fp_firefox *w, uint32_t column, int64_t number, const char *none) {
    uint8_t *to = fp_firefox_room(w, column, FP_DIGITS_ROOM + 2);
    if (number < 0) {
        const size_t n = strlen(none);
        memcpy(to, none, n);
        to += n;
    } else {
        to = fp_put_decimal(to, (uint64_t)number);
    }
    *to++ = ',';
    fp_firefox_grown(w, column, to);
}

/* An entry of a table is an item in each of several columns. */
struct table_item {
    uint32_t column;
    int64_t number;
    const char *none;
};

static void put_items(struct fp_firefox *w, const struct table_item *items, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) fp_firefox_item(w, items[i].column, items[i].number, items[i].none);
}

/* The id of a new entry, plus 1. */
static uint32_t next_id(uint64_t *n) {
    if (*n >= UINT32_MAX - 1) fp_escape();
    return (uint32_t)++*n;
}

int64_t fp_firefox_string(struct fp_firefox *w, uint32_t string) {
    const struct fp_model *m = w->model;
    fp_array_zeroed(&w->string_of, &w->cap_string_of, m->strings.n, sizeof *w->string_of);
    if (!w->string_of[string]) {
        size_t n;
        const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &m->strings, string, &n, &w->replaced);
        w->text.n = 0;
        fp_buf_put(&w->text, "\"", 1);
        fp_json_text(&w->text, p, n, &w->replaced);
        fp_buf_put(&w->text, "\",", 2);
        uint8_t *to = fp_firefox_room(w, FP_FIREFOX_STRINGS, w->text.n);
        memcpy(to, w->text.p, w->text.n);
        fp_firefox_grown(w, FP_FIREFOX_STRINGS, to + w->text.n);
        w->string_of[string] = next_id(&w->n_strings);
    }
    return w->string_of[string] - 1;
}

/* ---- libraries ---- */

/* A library is an object << 1 | FROM_BASE if its addresses count from the first address at which it is mapped, not in
 * its file. */
enum { FROM_BASE = 1 };

/* The resource of a library + 1; 0 without an object. */
static int64_t resource_of(struct fp_firefox *w, uint32_t library) {
    const struct fp_model *m = w->model;
    const uint32_t object = library >> 1;
    if (!object) return 0;
    fp_array_zeroed(&w->resource_of, &w->cap_resource_of, 2 * (uint64_t)m->objects.n, sizeof *w->resource_of);
    if (!w->resource_of[library]) {
        const int64_t name = fp_firefox_string(w, fp_table_row(&m->objects, object)[FP_OBJECT_NAME]);
        fp_firefox_item(w, FP_FIREFOX_RESOURCE_NAME, name, "");
        fp_array_room(&w->libraries, &w->cap_libraries, w->n_resources + 1, sizeof *w->libraries);
        w->libraries[w->n_resources] = library;
        w->resource_of[library] = next_id(&w->n_resources);
    }
    return w->resource_of[library];
}

/* Finds the first mapping of the same copy of a file for each new mapping: the last one before it that begins at file
 * offset 0.  Segments lie as far apart as in the file, or a little farther, because of their alignment:
 *
 *   mapping 7   0x5500_0000  offset 0
 *   mapping 8   0x5500_3000  offset 0x2000     first mapping: 7; 0x5500_3010 is 0x3010 from the base
 */
static void find_bases(struct fp_firefox *w) {
    enum { MOST_SPREAD = 1 << 26 };
    const struct fp_model *m = w->model;
    fp_array_zeroed(&w->base_of, &w->cap_base_of, m->mappings.n, sizeof *w->base_of);
    fp_array_zeroed(&w->last_base, &w->cap_last_base, m->objects.n, sizeof *w->last_base);
    for (; w->n_mappings < m->mappings.n; w->n_mappings++) {
        const uint32_t *row = fp_table_row(&m->mappings, w->n_mappings), object = row[FP_MAPPING_OBJECT];
        const uint64_t start = fp_words_u64(row + FP_MAPPING_START), offset = fp_words_u64(row + FP_MAPPING_OFFSET);
        if (row[FP_MAPPING_FLAGS] & FP_MAPPING_FROM_BASE) continue;
        if (!offset) {
            w->last_base[object] = w->n_mappings;
            continue;
        }
        const uint32_t base = w->last_base[object];
        const uint64_t first = fp_words_u64(fp_table_row(&m->mappings, base) + FP_MAPPING_START);
        if (base && start > first && start - first >= offset && start - first - offset <= MOST_SPREAD)
            w->base_of[w->n_mappings] = base;
    }
}

/* Where the code of a frame is: its library, and the address in it (-1: unknown). */
static void place_of(struct fp_firefox *w, const uint32_t *frame, uint32_t *library, int64_t *place) {
    const struct fp_model *m = w->model;
    const uint32_t mapping = frame[FP_FRAME_MAPPING], *row = fp_table_row(&m->mappings, mapping);
    const uint32_t object = row[FP_MAPPING_OBJECT];
    uint64_t address = fp_frame_code(frame);
    *library = object << 1;
    *place = -1;
    w->unplaced += !object && address;
    if (!object || !address) return; /* an address is meaningful only in a library */
    find_bases(w);
    const uint32_t base = w->base_of[mapping];
    if (base)
        address -= fp_words_u64(fp_table_row(&m->mappings, base) + FP_MAPPING_START);
    else
        address = address - fp_words_u64(row + FP_MAPPING_START) + fp_words_u64(row + FP_MAPPING_OFFSET);
    if (base || (row[FP_MAPPING_FLAGS] & FP_MAPPING_FROM_BASE)) *library |= FROM_BASE;
    if (!(address >> 53)) *place = (int64_t)address; /* the range of JavaScript's integers */
}

/* ---- frames and stacks ---- */

/* The source of a file + 1; 0 without a file. */
static int64_t source_of(struct fp_firefox *w, uint32_t file) {
    if (!file) return 0;
    fp_array_zeroed(&w->source_of, &w->cap_source_of, w->model->strings.n, sizeof *w->source_of);
    if (!w->source_of[file]) {
        fp_firefox_item(w, FP_FIREFOX_SOURCE_NAME, fp_firefox_string(w, file), "");
        w->source_of[file] = next_id(&w->n_sources);
    }
    return w->source_of[file];
}

/* Adds a frame in a function or, without one, in code named `name`.  A negative `address` or `line` is unknown.
 * Returns its index + 1. */
static uint32_t new_frame(struct fp_firefox *w, uint32_t function, uint32_t name, uint32_t library, int64_t address,
                          int64_t line, uint32_t depth) {
    const uint32_t *row = fp_table_row(&w->model->functions, function);
    const uint32_t file = function ? row[FP_FUNCTION_FILE] : 0, first = function ? row[FP_FUNCTION_LINE] : 0;
    if (function) {
        name = row[FP_FUNCTION_NAME] ? row[FP_FUNCTION_NAME] : w->unknown;
        if (row[FP_FUNCTION_OBJECT] && row[FP_FUNCTION_OBJECT] != library >> 1) library = row[FP_FUNCTION_OBJECT] << 1;
    }
    const int64_t resource = resource_of(w, library);
    const uint32_t func = fp_table_intern(&w->funcs, (const uint32_t[]){function, name, library});
    if (func > w->n_funcs) {
        const int64_t source = source_of(w, file), text = fp_firefox_string(w, name);
        next_id(&w->n_funcs);
        const struct table_item items[] = {{FP_FIREFOX_FUNC_NAME, text, ""},
                                           {FP_FIREFOX_FUNC_RESOURCE, resource - 1, "-1"},
                                           {FP_FIREFOX_FUNC_SOURCE, source - 1, "null"},
                                           {FP_FIREFOX_FUNC_LINE, (int64_t)first - !first, "null"}};
        put_items(w, items, 4);
    }
    const struct table_item items[] = {{FP_FIREFOX_FRAME_ADDRESS, address, "-1"},
                                       {FP_FIREFOX_FRAME_DEPTH, depth, ""},
                                       {FP_FIREFOX_FRAME_CATEGORY, resource < FP_FIREFOX_CATEGORIES ? resource : 0, ""},
                                       {FP_FIREFOX_FRAME_FUNC, (int64_t)func - 1, ""},
                                       {FP_FIREFOX_FRAME_LINE, line, "null"}};
    put_items(w, items, 5);
    return next_id(&w->n_frames);
}

/* Adds a stack.  Its index + 1. */
static uint32_t new_stack(struct fp_firefox *w, uint32_t frame, uint32_t prefix) {
    const struct table_item items[] = {{FP_FIREFOX_STACK_FRAME, (int64_t)frame - 1, ""},
                                       {FP_FIREFOX_STACK_PREFIX, (int64_t)prefix - 1, "null"}};
    put_items(w, items, 2);
    return next_id(&w->n_stacks);
}

uint32_t fp_firefox_path(struct fp_firefox *w, uint32_t prefix, uint32_t function) {
    fp_array_zeroed(&w->function_of, &w->cap_function_of, w->model->functions.n, sizeof *w->function_of);
    uint32_t *const frame = &w->function_of[function];
    if (!*frame) *frame = new_frame(w, function, w->unknown, 0, -1, -1, 0);
    if (w->paths.n > w->max_paths) {
        w->first_path = w->n_stacks;
        fp_table_empty(&w->paths);
    }
    const uint32_t had = w->paths.n, row = fp_table_intern(&w->paths, (const uint32_t[]){prefix, function});
    return row < had ? (uint32_t)(w->first_path + row) : new_stack(w, *frame, prefix);
}

/* ---- stacks of the model ---- */

/* Adds the frames of a model's frame, one for each inlined function, outermost first, and returns the first. */
static uint32_t frames_of(struct fp_firefox *w, uint32_t frame) {
    struct fp_model *m = w->model;
    const uint32_t *row = fp_table_row(&m->frames, frame);
    uint32_t library;
    int64_t place;
    place_of(w, row, &library, &place);
    uint32_t n = 0, first = 0, depth = 0;
    for (uint32_t line = row[FP_FRAME_LINES]; line; line = fp_table_row(&m->lines, line)[FP_LINE_OUTER])
        FP_PUSH(w->above, n, w->cap_above) = line;
    if (!n) return new_frame(w, 0, fp_frame_name(m, frame, &w->text), library, place, -1, 0);
    while (n) {
        const uint32_t *line = fp_table_row(&m->lines, w->above[--n]);
        const int64_t number = (int64_t)line[FP_LINE_LINE] - !line[FP_LINE_LINE];
        const uint32_t made = new_frame(w, line[FP_LINE_FUNCTION], w->unknown, library, place, number, depth++);
        if (!first) first = made;
    }
    return first;
}

/* Adds the frames of a node of the model's stacks to `prefix`. */
static uint32_t add_node(struct fp_firefox *w, uint32_t node, uint32_t prefix) {
    const struct fp_model *m = w->model;
    const uint32_t frame = fp_table_row(&m->stacks, node)[FP_STACK_FRAME];
    fp_array_zeroed(&w->frame_of, &w->cap_frame_of, m->frames.n, sizeof *w->frame_of);
    if (!w->frame_of[frame]) w->frame_of[frame] = frames_of(w, frame);
    uint32_t at = w->frame_of[frame], line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
    do {
        prefix = new_stack(w, at++, prefix);
        line = line ? fp_table_row(&m->lines, line)[FP_LINE_OUTER] : 0;
    } while (line);
    return prefix;
}

void fp_firefox_remember(struct fp_firefox *w, uint32_t stack) {
    const struct fp_table *const stacks = &w->model->stacks;
    uint32_t n = 0;
    for (uint32_t at = stack; at; at = fp_table_row(stacks, at)[FP_STACK_PARENT]) n++;
    fp_array_room(&w->path, &w->cap_path, n, sizeof *w->path);
    w->n_path = n;
    for (uint32_t at = stack; at; at = fp_table_row(stacks, at)[FP_STACK_PARENT])
        w->path[--n] = (struct fp_firefox_step){fp_table_row(stacks, at)[FP_STACK_FRAME], w->stack_of[at]};
}

/* The model's stacks were removed.  If they are those of a walk, the path to its next one was added again first: what
 * it shares with the path to the last one has rows. */
static void begin_round(struct fp_firefox *w) {
    const struct fp_table *const stacks = &w->model->stacks;
    if (w->cap_stack_of) memset(w->stack_of, 0, w->cap_stack_of * sizeof *w->stack_of);
    w->n_emptied = w->model->n_emptied;
    fp_array_zeroed(&w->stack_of, &w->cap_stack_of, stacks->n, sizeof *w->stack_of);
    for (uint32_t i = 0; i < w->n_path && i + 1 < stacks->n; i++) {
        const uint32_t *const row = fp_table_row(stacks, i + 1);
        if (row[FP_STACK_PARENT] != i || row[FP_STACK_FRAME] != w->path[i].frame) break;
        w->stack_of[i + 1] = w->path[i].stack;
    }
}

uint32_t fp_firefox_stack(struct fp_firefox *w, uint32_t stack) {
    const struct fp_model *m = w->model;
    if (!stack) {
        w->without_stack++;
        if (!w->empty_stack) w->empty_stack = new_stack(w, new_frame(w, 0, w->no_stack, 0, -1, -1, 0), 0);
        return w->empty_stack;
    }
    if (w->n_emptied != m->n_emptied) begin_round(w);
    fp_array_zeroed(&w->stack_of, &w->cap_stack_of, m->stacks.n, sizeof *w->stack_of);
    uint32_t n = 0, node = stack;
    for (; node && !w->stack_of[node]; node = fp_table_row(&m->stacks, node)[FP_STACK_PARENT])
        FP_PUSH(w->nodes, n, w->cap_nodes) = node;
    for (uint32_t prefix = node ? w->stack_of[node] : 0; n; prefix = w->stack_of[node]) {
        node = w->nodes[--n];
        w->stack_of[node] = add_node(w, node, prefix);
    }
    return w->stack_of[stack];
}
