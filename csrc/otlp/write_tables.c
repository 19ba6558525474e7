/* Writes the entries of the dictionary's tables. */
#include "otlp/write_private.h"

enum { MAPPING = 1, LOCATION = 2, FUNCTION = 3, LINK = 4, STRING = 5, ATTRIBUTE = 6, STACK = 7 };

static struct fp_buf *table(struct fp_otlp_writer *w, int number) {
    return &w->buffers[number];
}

/* ---- strings and attributes ---- */

static const uint8_t *utf8(struct fp_otlp_writer *w, uint32_t string, size_t *n) {
    uint64_t replaced = 0;
    const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, string, n, &replaced);
    w->stats.not_utf8 += replaced > 0;
    return p;
}

int64_t fp_otlp_string(struct fp_otlp_writer *w, uint32_t string) {
    if (!string) return 0;
    fp_array_zeroed(&w->strings, &w->cap_strings, w->model->strings.n, 4);
    if (w->strings[string]) return w->strings[string];
    size_t n;
    const uint8_t *p = utf8(w, string, &n);
    fp_wire_put_bytes(table(w, STRING), STRING, p, n);
    return w->strings[string] = w->n_strings++;
}

/* Text "0" is the number 0, which labels of pprof cannot hold. */
void fp_otlp_put_value(struct fp_otlp_writer *w, struct fp_buf *to, uint32_t number, uint32_t string, int64_t value) {
    const size_t mark = fp_wire_begin(to, number);
    if (string == w->keys.zero) {
        fp_wire_put_number(to, 3, 0);
    } else if (string || !value) {
        size_t n;
        const uint8_t *p = utf8(w, string, &n);
        fp_wire_put_bytes(to, 1, p, n);
    } else {
        fp_wire_put_number(to, 3, (uint64_t)value);
    }
    fp_wire_end(to, mark);
}

/* Writes a new attribute; `value` is an AnyValue, as field 2. */
static void put_attribute(struct fp_otlp_writer *w, uint32_t key, uint32_t unit, const struct fp_buf *value) {
    struct fp_buf *to = table(w, ATTRIBUTE);
    const int64_t key_id = fp_otlp_string(w, key), unit_id = fp_otlp_string(w, unit);
    const size_t mark = fp_wire_begin(to, ATTRIBUTE);
    fp_wire_put_nonzero(to, 1, (uint64_t)key_id);
    fp_buf_put(to, value->p, value->n);
    fp_wire_put_nonzero(to, 3, (uint64_t)unit_id);
    fp_wire_end(to, mark);
}

/* Kinds of values in w->out_attributes. */
enum { OF_LABEL = 1, OF_BYTES = 2, OF_TRUE = 3 };

uint32_t fp_otlp_put_label(struct fp_otlp_writer *w, uint32_t key, uint32_t string, int64_t number, uint32_t unit) {
    const uint64_t bits = (uint64_t)number;
    const uint32_t before = w->out_attributes.n;
    const uint32_t id = fp_table_intern(&w->out_attributes, (uint32_t[]){OF_LABEL, key, string, FP_WORDS(bits), unit});
    if (id < before) return id;
    w->entry.n = 0;
    fp_otlp_put_value(w, &w->entry, 2, string, number);
    put_attribute(w, key, unit, &w->entry);
    return id;
}

int64_t fp_otlp_attribute(struct fp_otlp_writer *w, uint32_t key, const uint8_t *value, size_t n) {
    const uint32_t bytes = fp_strings_intern(&w->model->strings, value, n);
    const uint32_t before = w->out_attributes.n;
    const uint32_t id = fp_table_intern(&w->out_attributes, (uint32_t[]){OF_BYTES, key, bytes, 0, 0, 0});
    if (id < before) return id;
    w->entry.n = 0;
    fp_wire_put_bytes(&w->entry, 2, value, n);
    put_attribute(w, key, 0, &w->entry);
    return id;
}

/* An attribute that is true. */
static uint32_t put_true(struct fp_otlp_writer *w, uint32_t key) {
    const uint32_t before = w->out_attributes.n;
    const uint32_t id = fp_table_intern(&w->out_attributes, (uint32_t[]){OF_TRUE, key, 0, 0, 0, 0});
    if (id < before) return id;
    w->entry.n = 0;
    const size_t mark = fp_wire_begin(&w->entry, 2);
    fp_wire_put_number(&w->entry, 2, 1);
    fp_wire_end(&w->entry, mark);
    put_attribute(w, key, 0, &w->entry);
    return id;
}

static int is_hex(const struct fp_model *m, uint32_t string, size_t want) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, string, &n);
    if (want && n != want) return 0;
    for (size_t i = 0; i < n; i++)
        if (fp_nibble(p[i]) > 15) return 0;
    return n > 0;
}

static void put_hex(struct fp_otlp_writer *w, struct fp_buf *to, uint32_t number, uint32_t string) {
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, string, &n);
    const size_t mark = fp_wire_begin(to, number);
    for (size_t i = 0; i + 1 < n; i += 2) {
        const uint8_t byte = (uint8_t)(fp_nibble(p[i]) << 4 | fp_nibble(p[i + 1]));
        fp_buf_put(to, &byte, 1);
    }
    fp_wire_end(to, mark);
}

/* 0: the labels are not the ids of a trace and a span. */
uint32_t fp_otlp_put_link(struct fp_otlp_writer *w, uint32_t trace, uint32_t span) {
    if (!trace || !is_hex(w->model, trace, 32) || (span && !is_hex(w->model, span, 16))) return 0;
    const uint32_t before = w->out_links.n, id = fp_table_intern(&w->out_links, (uint32_t[]){trace, span});
    if (id < before) return id;
    struct fp_buf *to = table(w, LINK);
    const size_t mark = fp_wire_begin(to, LINK);
    put_hex(w, to, 1, trace);
    if (span) put_hex(w, to, 2, span);
    fp_wire_end(to, mark);
    return id;
}

/* ---- functions ---- */

static uint32_t function_of(struct fp_otlp_writer *w, uint32_t function) {
    const struct fp_model *m = w->model;
    fp_array_zeroed(&w->functions, &w->cap_functions, m->functions.n, 4);
    if (w->functions[function]) return w->functions[function];
    const uint32_t *row = fp_table_row(&m->functions, function);
    const uint32_t line = row[FP_FUNCTION_LINE];
    const int64_t name = fp_otlp_string(w, row[FP_FUNCTION_NAME]),
                  system_name = fp_otlp_string(w, row[FP_FUNCTION_SYSTEM_NAME]),
                  file = fp_otlp_string(w, row[FP_FUNCTION_FILE]);
    const uint32_t before = w->out_functions.n;
    const uint32_t id =
        fp_table_intern(&w->out_functions, (uint32_t[]){(uint32_t)name, (uint32_t)system_name, (uint32_t)file, line});
    w->functions[function] = id;
    if (id < before) return id; /* already written for another object */
    FP_WIRE_PUT(table(w, FUNCTION), FUNCTION, name, system_name, file, line);
    return id;
}

/* ---- mappings ---- */

/* Writes the attributes of a mapping, packed, to w->attributes. */
static void mapping_attributes(struct fp_otlp_writer *w, const uint32_t *row) {
    const struct fp_otlp_keys *k = &w->keys;
    const uint32_t build_id = fp_table_row(&w->model->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_BUILD_ID];
    const struct {
        uint32_t flag, key;
    } flags[] = {{FP_MAPPING_HAS_FUNCTIONS, k->has_functions},
                 {FP_MAPPING_HAS_FILENAMES, k->has_filenames},
                 {FP_MAPPING_HAS_LINES, k->has_lines},
                 {FP_MAPPING_HAS_INLINES, k->has_inlines}};
    struct fp_buf *to = &w->attributes;
    to->n = 0;
    if (build_id) {
        const uint32_t key = is_hex(w->model, build_id, 0) ? k->gnu : k->go;
        const uint32_t id = fp_otlp_put_label(w, key, build_id, 0, 0);
        fp_buf_varint(to, id);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!(row[FP_MAPPING_FLAGS] & flags[i].flag)) continue;
        fp_buf_varint(to, put_true(w, flags[i].key));
    }
}

static uint32_t put_mapping(struct fp_otlp_writer *w, const uint32_t *row) {
    const uint32_t before = w->out_mappings.n, id = fp_table_intern(&w->out_mappings, row);
    if (id < before) return id;
    const uint32_t object = row[FP_MAPPING_OBJECT];
    const int64_t name = fp_otlp_string(w, fp_table_row(&w->model->objects, object)[FP_OBJECT_NAME]);
    mapping_attributes(w, row);
    struct fp_buf *to = table(w, MAPPING);
    const size_t mark = fp_wire_begin(to, MAPPING);
    fp_wire_put_nonzero(to, 1, fp_words_u64(row + FP_MAPPING_START));
    fp_wire_put_nonzero(to, 2, fp_words_u64(row + FP_MAPPING_LIMIT));
    fp_wire_put_nonzero(to, 3, fp_words_u64(row + FP_MAPPING_OFFSET));
    fp_wire_put_nonzero(to, 4, (uint64_t)name);
    if (w->attributes.n) fp_wire_put_bytes(to, 5, w->attributes.p, w->attributes.n);
    fp_wire_end(to, mark);
    return id;
}

/* The mapping of a frame, or one that only names the object of its functions. */
static uint32_t mapping_of(struct fp_otlp_writer *w, const uint32_t *frame) {
    uint32_t row[FP_MAPPING_WIDTH] = {0};
    const uint32_t mapping = frame[FP_FRAME_MAPPING];
    if (mapping)
        memcpy(row, fp_table_row(&w->model->mappings, mapping), sizeof row);
    else if (!(row[FP_MAPPING_OBJECT] = fp_object_of_lines(w->model, frame[FP_FRAME_LINES])))
        return 0;
    return put_mapping(w, row);
}

/* ---- locations and stacks ---- */

static void put_lines(struct fp_otlp_writer *w, uint32_t line, struct fp_buf *to) {
    while (line) {
        const uint32_t *words = fp_table_row(&w->model->lines, line);
        const uint32_t function = words[FP_LINE_FUNCTION] ? function_of(w, words[FP_LINE_FUNCTION]) : 0;
        words = fp_table_row(&w->model->lines, line);
        line = words[FP_LINE_OUTER];
        if (!function) continue;
        FP_WIRE_PUT(to, 3, function, words[FP_LINE_LINE], words[FP_LINE_COLUMN]);
    }
}

static uint32_t new_location(struct fp_otlp_writer *w, uint32_t frame) {
    uint32_t row[FP_FRAME_WIDTH];
    memcpy(row, fp_table_row(&w->model->frames, frame), sizeof row);
    const uint64_t address = fp_frame_code(row); /* an address within the call */
    row[FP_FRAME_ADDRESS] = (uint32_t)address;
    row[FP_FRAME_ADDRESS + 1] = (uint32_t)(address >> 32);
    row[FP_FRAME_FLAGS] &= FP_FRAME_FOLDED;
    row[FP_FRAME_MAPPING] = mapping_of(w, row);
    const uint32_t before = w->out_locations.n;
    uint32_t id = fp_table_intern(&w->out_locations, row);
    if (!id)
        id = fp_table_append(&w->out_locations, row); /* an unknown frame must not be entry 0, which ends the stack */
    w->frames[frame] = id;
    if (id < before) return id; /* a leaf and an adjusted caller may have the same address */
    const uint32_t folded = row[FP_FRAME_FLAGS] ? put_true(w, w->keys.is_folded) : 0;
    struct fp_buf *to = table(w, LOCATION);
    w->attributes.n = 0;
    put_lines(w, row[FP_FRAME_LINES], &w->attributes);
    const size_t mark = fp_wire_begin(to, LOCATION);
    fp_wire_put_nonzero(to, 1, row[FP_FRAME_MAPPING]);
    fp_wire_put_nonzero(to, 2, address);
    if (w->attributes.n) fp_buf_put(to, w->attributes.p, w->attributes.n);
    if (folded) {
        uint8_t packed[5];
        fp_wire_put_bytes(to, 4, packed, (size_t)(fp_varint(packed, folded) - packed));
    }
    fp_wire_end(to, mark);
    return id;
}

uint32_t fp_otlp_put_stack(struct fp_otlp_writer *w, uint32_t node) {
    const struct fp_model *m = w->model;
    if (!node) return 0;
    if (FP_UNLIKELY(w->n_emptied != m->n_emptied)) { /* ids of stacks are reused: write each again */
        w->n_emptied = m->n_emptied;
        if (w->cap_stacks) memset(w->stacks, 0, 4 * (size_t)w->cap_stacks);
    }
    fp_array_zeroed(&w->stacks, &w->cap_stacks, m->stacks.n, 4);
    fp_array_zeroed(&w->frames, &w->cap_frames, m->frames.n, 4);
    if (FP_LIKELY(w->stacks[node])) return w->stacks[node];
    struct fp_buf *to = &w->entry;
    for (uint32_t at = node; at; at = fp_table_row(&m->stacks, at)[FP_STACK_PARENT]) {
        const uint32_t frame = fp_table_row(&m->stacks, at)[FP_STACK_FRAME];
        if (!w->frames[frame]) new_location(w, frame);
    }
    to->n = 0;
    for (uint32_t at = node; at; at = fp_table_row(&m->stacks, at)[FP_STACK_PARENT])
        fp_buf_varint(to, w->frames[fp_table_row(&m->stacks, at)[FP_STACK_FRAME]]);
    const size_t mark = fp_wire_begin(table(w, STACK), STACK);
    fp_wire_put_bytes(table(w, STACK), 1, to->p, to->n);
    fp_wire_end(table(w, STACK), mark);
    return w->stacks[node] = w->n_stacks++;
}

void fp_otlp_put_mappings(struct fp_otlp_writer *w) {
    const struct fp_table *mappings = &w->model->mappings;
    for (uint32_t i = 1; i < mappings->n; i++) {
        uint32_t row[FP_MAPPING_WIDTH];
        memcpy(row, fp_table_row(mappings, i), sizeof row);
        put_mapping(w, row);
    }
}
