/* Writes the entries of a profile's tables: strings, functions, locations, mappings. */
#include "pprof/no_address.h"
#include "pprof/write_private.h"

/* Fields of the profile. */
enum { MAPPING = 3, LOCATION = 4, FUNCTION = 5, STRING = 6 };

/* Properties of the locations of a mapping, bits of `seen`. */
enum { WITHOUT_FUNCTION = 1, WITH_FUNCTION = 2, WITHOUT_FILE = 4, WITHOUT_LINE = 8, WITH_INLINES = 16 };

/* In addition to enum fp_mapping_flag: the mapping only names an object (no_address.h). */
static const uint32_t NO_ADDRESS = 1u << 31;

/* ---- strings ---- */

int64_t fp_pprof_string(struct fp_pprof_writer *w, uint32_t string, struct fp_buf *out) {
    if (!string) return 0;
    fp_pprof_cover(&w->strings, &w->cap_strings, w->model->strings.n);
    if (FP_LIKELY(w->strings[string])) return w->strings[string];
    size_t n;
    uint64_t replaced = 0;
    const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, string, &n, &replaced);
    w->stats.not_utf8 += replaced > 0;
    fp_wire_put_bytes(out, STRING, p, n);
    return w->strings[string] = w->n_strings++;
}

/* ---- functions ---- */

/* Whether pprof shows less than the name.  If system_name is the name, pprof demangles it; a name that is not mangled
 * but looks like C++ loses the text in <...> and (...): `<module>` becomes `<unknown>`, `a::b(int)` `a::b`.  Without a
 * system_name it stays unchanged. */
static int pprof_cuts(const struct fp_model *m, uint32_t name) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, name, &n);
    int like_cpp = 0, brackets = 0;
    for (size_t i = 0; i < n; i++) {
        brackets |= p[i] == '<' || p[i] == '(';
        like_cpp |= p[i] == '<' || p[i] == '>' || p[i] == '[' || p[i] == ']' || (i && p[i] == ':' && p[i - 1] == ':');
    }
    return like_cpp && brackets;
}

/* The id of a function, written if new. */
static uint32_t function_id(struct fp_pprof_writer *w, uint32_t function, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    fp_pprof_cover(&w->functions, &w->cap_functions, m->functions.n);
    if (FP_LIKELY(w->functions[function])) return w->functions[function];
    const uint32_t *row = fp_table_row(&m->functions, function);
    uint32_t system_name = row[FP_FUNCTION_SYSTEM_NAME];
    if (!system_name && !w->no_system_names && !pprof_cuts(m, row[FP_FUNCTION_NAME]))
        system_name = row[FP_FUNCTION_NAME];
    int64_t name_id = fp_pprof_string(w, row[FP_FUNCTION_NAME], out);
    int64_t system_id = fp_pprof_string(w, system_name, out);
    int64_t file_id = fp_pprof_string(w, row[FP_FUNCTION_FILE], out);
    uint32_t start_line = row[FP_FUNCTION_LINE];
    uint32_t before = w->out_functions.n;
    uint32_t id = fp_table_intern(&w->out_functions,
                                  (uint32_t[]){(uint32_t)name_id, (uint32_t)system_id, (uint32_t)file_id, start_line});
    w->functions[function] = id;
    if (id < before) return id; /* already written for another object */
    FP_WIRE_PUT(out, FUNCTION, id, name_id, system_id, file_id, start_line);
    return id;
}

/* ---- locations ---- */

/* The id of a mapping of the model; it is written at the end.  0 for none. */
static uint32_t mapping_id(struct fp_pprof_writer *w, uint32_t mapping) {
    if (!mapping) return 0;
    const struct fp_table *mappings = &w->model->mappings;
    fp_pprof_cover(&w->mappings, &w->cap_mappings, mappings->n);
    if (!w->mappings[mapping]) {
        /* all mappings of the model, in its order: to pprof the first one is the program */
        for (uint32_t i = 1; i < mappings->n; i++) {
            if (w->mappings[i]) continue;
            uint32_t id = fp_table_intern(&w->out_mappings, fp_table_row(mappings, i));
            w->mappings[i] = id;
        }
    }
    return w->mappings[mapping];
}

/* A line of a function named after the frame's address. */
static uint32_t name_address(struct fp_pprof_writer *w, uint32_t frame) {
    uint32_t name = fp_frame_name(w->model, frame, &w->entry);
    uint32_t function = fp_model_function(w->model, 0, 0, name, 0, 0);
    return fp_model_line(w->model, function, 0, 0, 0);
}

/* The id of a frame's mapping.  Without an address, or without a mapping, it is a mapping that only names the object.
 * 0 for none. */
static uint32_t mapping_of(struct fp_pprof_writer *w, const uint32_t *frame) {
    const uint32_t mapping = frame[FP_FRAME_MAPPING];
    uint32_t object = mapping ? fp_table_row(&w->model->mappings, mapping)[FP_MAPPING_OBJECT] : 0;
    if (mapping && (fp_words_u64(frame + FP_FRAME_ADDRESS) || !object)) return mapping_id(w, mapping);
    if (!mapping) object = fp_object_of_lines(w->model, frame[FP_FRAME_LINES]);
    if (!object) return 0;
    uint32_t row[FP_MAPPING_WIDTH] = {0};
    row[FP_MAPPING_OBJECT] = object;
    row[FP_MAPPING_FLAGS] = NO_ADDRESS;
    return fp_table_intern(&w->out_mappings, row);
}

/* Writes location `id`.  `row` is a frame whose mapping is the id in the file.  The location is built in a separate
 * buffer, because its new functions are written to `out` first. */
static void put_location(struct fp_pprof_writer *w, uint32_t id, const uint32_t *row, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    struct fp_buf *entry = &w->entry;
    uint8_t seen = row[FP_FRAME_LINES] ? WITH_FUNCTION : WITHOUT_FUNCTION;
    entry->n = 0;
    fp_wire_put_nonzero(entry, 1, id);
    fp_wire_put_nonzero(entry, 2, row[FP_FRAME_MAPPING]);
    fp_wire_put_nonzero(entry, 3, fp_words_u64(row + FP_FRAME_ADDRESS));
    for (uint32_t line = row[FP_FRAME_LINES]; line;) {
        const uint32_t *words = fp_table_row(&m->lines, line);
        uint32_t function = words[FP_LINE_FUNCTION] ? function_id(w, words[FP_LINE_FUNCTION], out) : 0;
        line = words[FP_LINE_OUTER];
        if (!function) continue;
        FP_WIRE_PUT(entry, 4, function, words[FP_LINE_LINE], words[FP_LINE_COLUMN]);
        if (!fp_table_row(&w->out_functions, function)[2]) seen |= WITHOUT_FILE;
        if (!words[FP_LINE_LINE]) seen |= WITHOUT_LINE;
        if (line) seen |= WITH_INLINES;
    }
    fp_wire_put_nonzero(entry, 5, (row[FP_FRAME_FLAGS] & FP_FRAME_FOLDED) != 0);
    uint32_t mapping = row[FP_FRAME_MAPPING];
    *FP_AT(w->seen, w->cap_seen, mapping) |= seen;
    fp_wire_put_bytes(out, LOCATION, entry->p, entry->n);
}

uint32_t fp_pprof_new_location(struct fp_pprof_writer *w, uint32_t frame, struct fp_buf *out) {
    uint32_t row[FP_FRAME_WIDTH];
    memcpy(row, fp_table_row(&w->model->frames, frame), sizeof row);
    const uint64_t address = fp_frame_code(row); /* pprof expects an address within the call */
    row[FP_FRAME_ADDRESS] = (uint32_t)address;
    row[FP_FRAME_ADDRESS + 1] = (uint32_t)(address >> 32);
    row[FP_FRAME_FLAGS] &= FP_FRAME_FOLDED;
    if (!row[FP_FRAME_LINES] && w->name_addresses) row[FP_FRAME_LINES] = name_address(w, frame);
    row[FP_FRAME_MAPPING] = mapping_of(w, row);
    uint32_t before = w->out_locations.n;
    uint32_t id = fp_table_intern(&w->out_locations, row);
    w->frames[frame] = id;
    if (id < before) return id; /* a leaf and an adjusted caller may have the same address */
    put_location(w, id, row, out);
    return id;
}

uint32_t fp_pprof_no_stack(struct fp_pprof_writer *w, struct fp_buf *out) {
    if (w->no_stack) return w->no_stack;
    struct fp_model *m = w->model;
    const uint32_t frame = fp_model_name_frame(m, w->words.no_stack);
    fp_pprof_cover(&w->frames, &w->cap_frames, m->frames.n);
    return w->no_stack = w->frames[frame] ? w->frames[frame] : fp_pprof_new_location(w, frame, out);
}

/* ---- mappings ---- */

/* The string of a mapping's file. */
static int64_t file_of(struct fp_pprof_writer *w, const uint32_t *row, struct fp_buf *out) {
    const uint32_t name = fp_table_row(&w->model->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_NAME];
    if (!(row[FP_MAPPING_FLAGS] & NO_ADDRESS) || !name) return fp_pprof_string(w, name, out);
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, name, &n);
    w->entry.n = 0;
    fp_buf_put(&w->entry, fp_pprof_no_address, sizeof fp_pprof_no_address - 1);
    fp_buf_put(&w->entry, p, n);
    const uint32_t file = fp_strings_intern(&w->model->strings, w->entry.p, w->entry.n);
    return fp_pprof_string(w, file, out);
}

static void put_mapping(struct fp_pprof_writer *w, uint32_t id, struct fp_buf *out) {
    uint32_t row[FP_MAPPING_WIDTH];
    memcpy(row, fp_table_row(&w->out_mappings, id), sizeof row);
    uint32_t flags = row[FP_MAPPING_FLAGS];
    const uint8_t seen = id < w->cap_seen ? w->seen[id] : 0;
    /* pprof symbolizes a mapping again unless it claims that all its locations have functions */
    if (flags & NO_ADDRESS) { /* where nothing can be looked up */
        flags = FP_MAPPING_HAS_FUNCTIONS | FP_MAPPING_HAS_FILENAMES | FP_MAPPING_HAS_LINES;
    } else if (!flags && (seen & (WITH_FUNCTION | WITHOUT_FUNCTION)) == WITH_FUNCTION) {
        flags = FP_MAPPING_HAS_FUNCTIONS;
        if (!(seen & WITHOUT_FILE)) flags |= FP_MAPPING_HAS_FILENAMES;
        if (!(seen & WITHOUT_LINE)) flags |= FP_MAPPING_HAS_LINES;
        if (seen & WITH_INLINES) flags |= FP_MAPPING_HAS_INLINES;
    }
    const int64_t name = file_of(w, row, out);
    const int64_t build_id =
        fp_pprof_string(w, fp_table_row(&w->model->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_BUILD_ID], out);
    FP_WIRE_PUT(out, MAPPING, id, fp_words_u64(row + FP_MAPPING_START), fp_words_u64(row + FP_MAPPING_LIMIT),
                fp_words_u64(row + FP_MAPPING_OFFSET), name, build_id, (flags & FP_MAPPING_HAS_FUNCTIONS) != 0,
                (flags & FP_MAPPING_HAS_FILENAMES) != 0, (flags & FP_MAPPING_HAS_LINES) != 0,
                (flags & FP_MAPPING_HAS_INLINES) != 0);
}

int fp_pprof_mappings(struct fp_pprof_writer *w, uint32_t program, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    if (m->mappings.n > 1) mapping_id(w, m->mappings.n - 1);
    for (int others = 0; others < 2; others++)
        for (uint32_t id = 1; id < w->out_mappings.n; id++) {
            const uint32_t object = fp_table_row(&w->out_mappings, id)[FP_MAPPING_OBJECT];
            if ((program && object == program) != others) put_mapping(w, id, out);
        }
    return FP_DONE;
}
