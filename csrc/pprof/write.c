#include "pprof/write.h"

#include <stdlib.h>

/* Field tags: number << 3 | wire type (0 varint, 2 length-delimited). */
#define VARINT(field) ((field) << 3)
#define BYTES(field) ((field) << 3 | 2)

enum { SAMPLE = BYTES(2), MAPPING = BYTES(3), LOCATION = BYTES(4), FUNCTION = BYTES(5), STRING = BYTES(6) };

/* What the locations of a mapping have, bits of `seen`. */
enum { WITHOUT_FUNCTION = 1, WITH_FUNCTION = 2, WITHOUT_FILE = 4, WITHOUT_LINE = 8, WITH_INLINES = 16 };

/* Room for one field of a message: tag and the longest varint. */
enum { FIELD = 11 };

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "memory");
}

struct fp_pprof_writer *fp_pprof_writer_new(struct fp_model *model) {
    struct fp_pprof_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->model = model;
    w->n_strings = 1; /* "", which the caller of put finds written */
    if (fp_table_init(&w->out_functions, 4) || fp_table_init(&w->out_locations, FP_FRAME_WIDTH) ||
        fp_table_init(&w->out_mappings, FP_MAPPING_WIDTH)) {
        fp_pprof_writer_free(w);
        return NULL;
    }
    return w;
}

void fp_pprof_writer_free(struct fp_pprof_writer *w) {
    if (!w) return;
    free(w->strings);
    free(w->functions);
    free(w->frames);
    free(w->mappings);
    free(w->seen);
    free(w->memo_stacks);
    free(w->memo_labels);
    fp_buf_free(&w->memo);
    fp_table_clear(&w->out_functions);
    fp_table_clear(&w->out_locations);
    fp_table_clear(&w->out_mappings);
    fp_buf_free(&w->ids);
    fp_buf_free(&w->entry);
    fp_buf_free(&w->rest);
    fp_buf_free(&w->message);
    free(w);
}

/* Makes `*ids` cover `need` entries, new ones 0. */
static int cover(uint32_t **ids, uint32_t *cap, uint32_t need) {
    if (FP_LIKELY(need <= *cap)) return 0;
    uint64_t more = (uint64_t)need + need / 2 + 64;
    uint32_t *p = realloc(*ids, (size_t)more * sizeof *p);
    if (!p) return FP_E_NOMEM;
    memset(p + *cap, 0, (size_t)(more - *cap) * sizeof *p);
    *ids = p;
    *cap = (uint32_t)(more < UINT32_MAX ? more : UINT32_MAX);
    return 0;
}

/* A varint field, left out when 0 as proto3 does. */
static inline uint8_t *field(uint8_t *to, unsigned number, uint64_t v) {
    if (!v) return to;
    *to++ = (uint8_t)VARINT(number);
    return fp_varint(to, v);
}

static int put_message(struct fp_buf *out, uint8_t tag, const struct fp_buf *message) {
    if (fp_buf_reserve(out, message->n + FIELD)) return FP_E_NOMEM;
    uint8_t *to = out->p + out->n;
    *to++ = tag;
    to = fp_varint(to, message->n);
    if (message->n) memcpy(to, message->p, message->n);
    out->n = (size_t)(to - out->p) + message->n;
    return 0;
}

/* Bytes of the UTF-8 character at p, 0 if it is none (RFC 3629: no surrogates,
 * nothing longer than need be, nothing above U+10FFFF). */
static unsigned utf8_length(const uint8_t *p, size_t n) {
    if (p[0] < 0x80) return 1;
    unsigned length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < length) return 0;
    for (unsigned i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

static int is_utf8(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        unsigned length = utf8_length(p + i, n - i);
        if (!length) return 0;
        i += length;
    }
    return 1;
}

/* A string of the model with U+FFFD for each byte that is not UTF-8; FP_NO_ID
 * when memory ran out. */
static uint32_t mend(struct fp_pprof_writer *w, uint32_t string) {
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, string, &n);
    struct fp_buf mended = {0};
    for (size_t i = 0; i < n;) {
        unsigned length = utf8_length(p + i, n - i);
        if (length ? fp_buf_put(&mended, p + i, length) : fp_buf_put(&mended, "\xef\xbf\xbd", 3)) break;
        i += length ? length : 1;
    }
    uint32_t id = mended.failed ? FP_NO_ID : fp_strings_intern(&w->model->strings, mended.p, mended.n);
    fp_buf_free(&mended);
    w->stats.mended++;
    return id;
}

int64_t fp_pprof_string(struct fp_pprof_writer *w, uint32_t string, struct fp_buf *out) {
    if (!string) return 0;
    if (cover(&w->strings, &w->cap_strings, w->model->strings.n)) return FP_E_NOMEM;
    if (FP_LIKELY(w->strings[string])) return w->strings[string];
    size_t n;
    const uint8_t *p = fp_string(&w->model->strings, string, &n);
    if (!is_utf8(p, n)) {
        uint32_t mended = mend(w, string);
        if (mended == FP_NO_ID) return FP_E_NOMEM;
        int64_t id = fp_pprof_string(w, mended, out);
        if (id > 0) w->strings[string] = (uint32_t)id;
        return id;
    }
    if (fp_buf_reserve(out, n + FIELD)) return FP_E_NOMEM;
    uint8_t *to = out->p + out->n;
    *to++ = STRING;
    to = fp_varint(to, n);
    memcpy(to, p, n);
    out->n = (size_t)(to - out->p) + n;
    return w->strings[string] = w->n_strings++;
}

/* The id of a function, written if new; 0 when memory ran out. */
static uint32_t function_id(struct fp_pprof_writer *w, uint32_t function, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    if (cover(&w->functions, &w->cap_functions, m->functions.n)) return 0;
    if (FP_LIKELY(w->functions[function])) return w->functions[function];
    const uint32_t *row = fp_table_row(&m->functions, function);
    uint32_t system_name = row[FP_FUNCTION_SYSTEM_NAME] ? row[FP_FUNCTION_SYSTEM_NAME] : row[FP_FUNCTION_NAME];
    int64_t name_id = fp_pprof_string(w, row[FP_FUNCTION_NAME], out);
    int64_t system_id = fp_pprof_string(w, system_name, out);
    int64_t file_id = fp_pprof_string(w, row[FP_FUNCTION_FILE], out);
    if (name_id < 0 || system_id < 0 || file_id < 0) return 0;
    uint32_t first = row[FP_FUNCTION_LINE];
    uint32_t before = w->out_functions.n;
    uint32_t id = fp_table_intern(&w->out_functions,
                                  (uint32_t[]){(uint32_t)name_id, (uint32_t)system_id, (uint32_t)file_id, first});
    if (id == FP_NO_ID) return 0;
    w->functions[function] = id;
    if (id < before) return id; /* the same function of another object */
    w->message.n = 0;
    if (fp_buf_reserve(&w->message, 5 * FIELD)) return 0;
    uint8_t *to = w->message.p;
    to = field(to, 1, id);
    to = field(to, 2, (uint64_t)name_id);
    to = field(to, 3, (uint64_t)system_id);
    to = field(to, 4, (uint64_t)file_id);
    to = field(to, 5, first);
    w->message.n = (size_t)(to - w->message.p);
    return put_message(out, FUNCTION, &w->message) ? 0 : id;
}

/* The id of a mapping of the model; it is written at the end.  0 for none, FP_NO_ID. */
static uint32_t mapping_id(struct fp_pprof_writer *w, uint32_t mapping) {
    if (!mapping) return 0;
    const struct fp_table *mappings = &w->model->mappings;
    if (cover(&w->mappings, &w->cap_mappings, mappings->n)) return FP_NO_ID;
    if (!w->mappings[mapping]) {
        /* in the order of the model, so that the program itself stays first */
        for (uint32_t i = 1; i < mappings->n; i++) {
            if (w->mappings[i]) continue;
            uint32_t id = fp_table_intern(&w->out_mappings, fp_table_row(mappings, i));
            if (id == FP_NO_ID) return FP_NO_ID;
            w->mappings[i] = id;
        }
    }
    return w->mappings[mapping];
}

/* A function called [object+0xADDRESS], or [0xADDRESS] without mapping; 0 when memory ran out. */
static uint32_t name_address(struct fp_pprof_writer *w, uint32_t mapping, uint64_t address) {
    struct fp_model *m = w->model;
    uint8_t name[256 + 32], *to = name;
    *to++ = '[';
    if (mapping) {
        const uint32_t *row = fp_table_row(&m->mappings, mapping);
        size_t n;
        const uint8_t *p =
            fp_string(&m->strings, fp_table_row(&m->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_NAME], &n);
        for (size_t i = n; i-- > 0;)
            if (p[i] == '/') {
                p += i + 1;
                n -= i + 1;
                break;
            }
        if (n > 256) n = 256;
        if (n) {
            memcpy(to, p, n);
            to += n;
            *to++ = '+';
            address = address - fp_words_u64(row + FP_MAPPING_START) + fp_words_u64(row + FP_MAPPING_OFFSET);
        }
    }
    *to++ = '0';
    *to++ = 'x';
    to = fp_hex(to, address);
    *to++ = ']';
    uint32_t string = fp_strings_intern(&m->strings, name, (size_t)(to - name));
    uint32_t function = string == FP_NO_ID ? FP_NO_ID : fp_model_function(m, 0, 0, string, 0, 0);
    uint32_t line = function == FP_NO_ID ? FP_NO_ID : fp_model_line(m, function, 0, 0, 0);
    return line == FP_NO_ID ? 0 : line;
}

/* Frames of functions that know their object but have no mapping: a mapping
 * that is nothing but the object's name.  0 for none, FP_NO_ID. */
static uint32_t object_mapping(struct fp_pprof_writer *w, uint32_t lines) {
    uint32_t object = 0;
    for (; lines; lines = fp_table_row(&w->model->lines, lines)[FP_LINE_OUTER]) {
        uint32_t function = fp_table_row(&w->model->lines, lines)[FP_LINE_FUNCTION];
        object = fp_table_row(&w->model->functions, function)[FP_FUNCTION_OBJECT];
    }
    return object ? fp_model_mapping(w->model, object, 0, 0, 0, 0) : 0;
}

static int put_location(struct fp_pprof_writer *w, uint32_t id, const uint32_t *row, struct fp_buf *out) {
    const struct fp_model *m = w->model;
    uint8_t seen = row[FP_FRAME_LINES] ? WITH_FUNCTION : WITHOUT_FUNCTION;
    w->entry.n = 0;
    if (fp_buf_reserve(&w->entry, 4 * FIELD)) return FP_E_NOMEM;
    uint8_t *to = w->entry.p;
    to = field(to, 1, id);
    to = field(to, 2, row[FP_FRAME_MAPPING]);
    to = field(to, 3, fp_words_u64(row + FP_FRAME_ADDRESS));
    w->entry.n = (size_t)(to - w->entry.p);
    for (uint32_t line = row[FP_FRAME_LINES]; line;) {
        uint32_t words[FP_LINE_WIDTH];
        memcpy(words, fp_table_row(&m->lines, line), sizeof words);
        uint32_t function = words[FP_LINE_FUNCTION] ? function_id(w, words[FP_LINE_FUNCTION], out) : 0;
        if (words[FP_LINE_FUNCTION] && !function) return FP_E_NOMEM;
        line = words[FP_LINE_OUTER];
        if (!function) continue;
        uint8_t message[3 * FIELD], *end = message;
        end = field(end, 1, function);
        end = field(end, 2, words[FP_LINE_LINE]);
        end = field(end, 3, words[FP_LINE_COLUMN]);
        if (!fp_table_row(&w->out_functions, function)[2]) seen |= WITHOUT_FILE;
        if (!words[FP_LINE_LINE]) seen |= WITHOUT_LINE;
        if (line) seen |= WITH_INLINES;
        uint8_t head[2] = {BYTES(4), (uint8_t)(end - message)};
        if (fp_buf_put(&w->entry, head, 2) || fp_buf_put(&w->entry, message, (size_t)(end - message)))
            return FP_E_NOMEM;
    }
    if (row[FP_FRAME_FLAGS] & FP_FRAME_FOLDED) {
        uint8_t folded[2] = {VARINT(5), 1};
        if (fp_buf_put(&w->entry, folded, 2)) return FP_E_NOMEM;
    }
    uint32_t mapping = row[FP_FRAME_MAPPING];
    if (mapping >= w->cap_seen) {
        uint32_t cap = mapping + mapping / 2 + 64;
        uint8_t *p = realloc(w->seen, cap);
        if (!p) return FP_E_NOMEM;
        memset(p + w->cap_seen, 0, cap - w->cap_seen);
        w->seen = p;
        w->cap_seen = cap;
    }
    w->seen[mapping] |= seen;
    return put_message(out, LOCATION, &w->entry);
}

/* The location of a frame, written if new; 0 when memory ran out. */
static uint32_t new_location(struct fp_pprof_writer *w, uint32_t frame, struct fp_buf *out) {
    uint32_t row[FP_FRAME_WIDTH];
    memcpy(row, fp_table_row(&w->model->frames, frame), sizeof row);
    uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    /* pprof wants an address within the call; this is the only place that moves it there */
    if (row[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS && address) address--;
    row[FP_FRAME_ADDRESS] = (uint32_t)address;
    row[FP_FRAME_ADDRESS + 1] = (uint32_t)(address >> 32);
    row[FP_FRAME_FLAGS] &= FP_FRAME_FOLDED;
    if (!row[FP_FRAME_LINES] && w->name_addresses) {
        row[FP_FRAME_LINES] = name_address(w, row[FP_FRAME_MAPPING], address);
        if (!row[FP_FRAME_LINES]) return 0;
    }
    if (!row[FP_FRAME_MAPPING]) row[FP_FRAME_MAPPING] = object_mapping(w, row[FP_FRAME_LINES]);
    if (row[FP_FRAME_MAPPING] != FP_NO_ID) row[FP_FRAME_MAPPING] = mapping_id(w, row[FP_FRAME_MAPPING]);
    if (row[FP_FRAME_MAPPING] == FP_NO_ID) return 0;
    uint32_t before = w->out_locations.n;
    uint32_t id = fp_table_intern(&w->out_locations, row);
    if (id == FP_NO_ID) return 0;
    w->frames[frame] = id;
    if (id < before) return id; /* a leaf and a caller at one adjusted address */
    return put_location(w, id, row, out) ? 0 : id;
}

static uint32_t no_stack_location(struct fp_pprof_writer *w, struct fp_buf *out) {
    if (w->no_stack) return w->no_stack;
    struct fp_model *m = w->model;
    uint32_t function = fp_model_function(m, 0, 0, w->words.no_stack, 0, 0);
    uint32_t line = function == FP_NO_ID ? FP_NO_ID : fp_model_line(m, function, 0, 0, 0);
    uint32_t frame = line == FP_NO_ID ? FP_NO_ID : fp_model_frame(m, 0, 0, 0, line);
    if (frame == FP_NO_ID || cover(&w->frames, &w->cap_frames, m->frames.n)) return 0;
    return w->no_stack = w->frames[frame] ? w->frames[frame] : new_location(w, frame, out);
}

static int put_label(struct fp_pprof_writer *w, uint32_t key, uint32_t string, uint64_t number, uint32_t unit,
                     struct fp_buf *out) {
    int64_t key_id = fp_pprof_string(w, key, out);
    int64_t string_id = fp_pprof_string(w, string, out);
    int64_t unit_id = fp_pprof_string(w, unit, out);
    if (key_id < 0 || string_id < 0 || unit_id < 0 || fp_buf_reserve(&w->rest, 5 * FIELD)) return FP_E_NOMEM;
    uint8_t *start = w->rest.p + w->rest.n, *to = start + 2;
    to = field(to, 1, (uint64_t)key_id);
    to = field(to, 2, (uint64_t)string_id);
    to = field(to, 3, number);
    to = field(to, 4, (uint64_t)unit_id);
    start[0] = BYTES(3);
    start[1] = (uint8_t)(to - start - 2); /* at most 44 */
    w->rest.n = (size_t)(to - w->rest.p);
    return 0;
}

/* Remembers what was written for entry `id`; offset 0 of the memo is not used. */
static int remember(struct fp_pprof_writer *w, uint32_t *at, const uint8_t *p, size_t n) {
    if (w->memo.n + n + 8 > FP_PPROF_MEMO_BYTES) return 0;
    uint32_t length = (uint32_t)n;
    if (!w->memo.n && fp_buf_put(&w->memo, "memo", 4)) return FP_E_NOMEM;
    *at = (uint32_t)w->memo.n;
    return fp_buf_put(&w->memo, &length, 4) || fp_buf_put(&w->memo, p, n) ? FP_E_NOMEM : 0;
}

/* What was remembered at offset `at`. */
static const uint8_t *recall(const struct fp_pprof_writer *w, uint32_t at, size_t *n) {
    *n = fp_u32(w->memo.p + at);
    return w->memo.p + at + 4;
}

static int put_labels(struct fp_pprof_writer *w, uint32_t label, struct fp_buf *out) {
    if (cover(&w->memo_labels, &w->cap_memo_labels, w->model->labels.n)) return FP_E_NOMEM;
    uint32_t *memo = &w->memo_labels[label];
    if (*memo) {
        size_t n;
        const uint8_t *p = recall(w, *memo, &n);
        return fp_buf_put(&w->rest, p, n);
    }
    size_t start = w->rest.n;
    while (label) {
        uint32_t row[FP_LABEL_WIDTH];
        memcpy(row, fp_table_row(&w->model->labels, label), sizeof row);
        if (put_label(w, row[FP_LABEL_KEY], row[FP_LABEL_STRING], fp_words_u64(row + FP_LABEL_NUMBER),
                      row[FP_LABEL_UNIT], out))
            return FP_E_NOMEM;
        label = row[FP_LABEL_NEXT];
    }
    return remember(w, memo, w->rest.p + start, w->rest.n - start);
}

static int put_thread(struct fp_pprof_writer *w, uint32_t thread, struct fp_buf *out) {
    const uint32_t *row = fp_table_row(&w->model->threads, thread);
    uint32_t pid = row[FP_THREAD_PID], tid = row[FP_THREAD_TID];
    if (pid && w->words.pid && put_label(w, w->words.pid, 0, pid, 0, out)) return FP_E_NOMEM;
    if (tid && w->words.tid && put_label(w, w->words.tid, 0, tid, 0, out)) return FP_E_NOMEM;
    return 0;
}

/* The packed location ids of a stack: *n bytes, valid until the next call; NULL
 * when memory ran out. */
static const uint8_t *put_stack(struct fp_pprof_writer *w, uint32_t node, struct fp_buf *out, size_t *n) {
    const struct fp_model *m = w->model;
    struct fp_buf *ids = &w->ids;
    if (cover(&w->frames, &w->cap_frames, m->frames.n) || cover(&w->memo_stacks, &w->cap_memo_stacks, m->stacks.n))
        return NULL;
    uint32_t *memo = &w->memo_stacks[node];
    w->stats.no_stack += !node;
    if (*memo) return recall(w, *memo, n);
    ids->n = 0;
    if (!node) {
        uint32_t location = no_stack_location(w, out);
        if (!location || fp_buf_reserve(ids, 10)) return NULL;
        ids->n = (size_t)(fp_varint(ids->p, location) - ids->p);
    }
    while (node) {
        if (fp_buf_reserve(ids, 64 * 5)) return NULL;
        uint8_t *to = ids->p + ids->n;
        for (int i = 0; i < 64 && node; i++) {
            const uint32_t *stack = fp_table_row(&m->stacks, node);
            node = stack[FP_STACK_PARENT];
            uint32_t location = w->frames[stack[FP_STACK_FRAME]];
            if (FP_UNLIKELY(!location)) {
                location = new_location(w, stack[FP_STACK_FRAME], out);
                if (!location) return NULL;
            }
            to = fp_varint(to, location);
        }
        ids->n = (size_t)(to - ids->p);
    }
    *n = ids->n;
    return remember(w, memo, ids->p, ids->n) ? NULL : ids->p;
}

static unsigned varint_length(uint64_t v) {
    unsigned n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}

int fp_pprof_put(struct fp_pprof_writer *w, const struct fp_batch *in, const int32_t *columns, uint32_t n_columns,
                 struct fp_buf *out, struct fp_err *err) {
    if (cover(&w->memo_stacks, &w->cap_memo_stacks, w->model->stacks.n)) return no_memory(err);
    for (uint32_t i = 0; i < in->n; i++) {
        /* stacks come in no order: have their bytes under way before they are needed */
        if (i + 16 < in->n) __builtin_prefetch(&w->memo_stacks[in->stack[i + 16]]);
        if (i + 8 < in->n && w->memo_stacks[in->stack[i + 8]]) {
            const uint8_t *ahead = w->memo.p + w->memo_stacks[in->stack[i + 8]];
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + 64);
        }
        w->rest.n = 0;
        if (fp_buf_reserve(&w->rest, ((size_t)n_columns + 1) * FIELD)) return no_memory(err);
        size_t values = 0;
        for (uint32_t k = 0; k < n_columns; k++)
            values += columns[k] < 0 ? 1 : varint_length((uint64_t)in->values[(size_t)columns[k] * in->cap + i]);
        uint8_t *to = w->rest.p;
        *to++ = BYTES(2);
        to = fp_varint(to, values);
        for (uint32_t k = 0; k < n_columns; k++)
            to = fp_varint(to, columns[k] < 0 ? 0 : (uint64_t)in->values[(size_t)columns[k] * in->cap + i]);
        w->rest.n = (size_t)(to - w->rest.p);
        if ((in->label[i] && put_labels(w, in->label[i], out)) || (in->thread[i] && put_thread(w, in->thread[i], out)))
            return no_memory(err);
        size_t ids_n; /* after the labels, which may move what was remembered */
        const uint8_t *ids = put_stack(w, in->stack[i], out, &ids_n);
        if (!ids) return no_memory(err);
        w->stats.times += in->time[i] != 0;
        w->stats.samples++;

        size_t total = 1 + varint_length(ids_n) + ids_n + w->rest.n;
        if (fp_buf_reserve(out, total + FIELD)) return no_memory(err);
        to = out->p + out->n;
        *to++ = SAMPLE;
        to = fp_varint(to, total);
        *to++ = BYTES(1);
        to = fp_varint(to, ids_n);
        memcpy(to, ids, ids_n);
        to += ids_n;
        memcpy(to, w->rest.p, w->rest.n);
        out->n = (size_t)(to - out->p) + w->rest.n;
    }
    return FP_DONE;
}

int fp_pprof_mappings(struct fp_pprof_writer *w, struct fp_buf *out, struct fp_err *err) {
    const struct fp_model *m = w->model;
    if (m->mappings.n > 1 && mapping_id(w, m->mappings.n - 1) == FP_NO_ID) return no_memory(err);
    for (uint32_t id = 1; id < w->out_mappings.n; id++) {
        const uint32_t *row = fp_table_row(&w->out_mappings, id);
        const uint32_t *object = fp_table_row(&m->objects, row[FP_MAPPING_OBJECT]);
        uint32_t flags = row[FP_MAPPING_FLAGS];
        uint8_t seen = id < w->cap_seen ? w->seen[id] : 0;
        /* pprof symbolizes a mapping again unless all of it has functions */
        if (!flags && (seen & (WITH_FUNCTION | WITHOUT_FUNCTION)) == WITH_FUNCTION) {
            flags = FP_MAPPING_HAS_FUNCTIONS;
            if (!(seen & WITHOUT_FILE)) flags |= FP_MAPPING_HAS_FILENAMES;
            if (!(seen & WITHOUT_LINE)) flags |= FP_MAPPING_HAS_LINES;
            if (seen & WITH_INLINES) flags |= FP_MAPPING_HAS_INLINES;
        }
        int64_t name = fp_pprof_string(w, object[FP_OBJECT_NAME], out);
        int64_t build_id = fp_pprof_string(w, object[FP_OBJECT_BUILD_ID], out);
        w->message.n = 0;
        if (name < 0 || build_id < 0 || fp_buf_reserve(&w->message, 10 * FIELD)) return no_memory(err);
        uint8_t *to = w->message.p;
        to = field(to, 1, id);
        to = field(to, 2, fp_words_u64(row + FP_MAPPING_START));
        to = field(to, 3, fp_words_u64(row + FP_MAPPING_LIMIT));
        to = field(to, 4, fp_words_u64(row + FP_MAPPING_OFFSET));
        to = field(to, 5, (uint64_t)name);
        to = field(to, 6, (uint64_t)build_id);
        to = field(to, 7, (flags & FP_MAPPING_HAS_FUNCTIONS) != 0);
        to = field(to, 8, (flags & FP_MAPPING_HAS_FILENAMES) != 0);
        to = field(to, 9, (flags & FP_MAPPING_HAS_LINES) != 0);
        to = field(to, 10, (flags & FP_MAPPING_HAS_INLINES) != 0);
        w->message.n = (size_t)(to - w->message.p);
        if (put_message(out, MAPPING, &w->message)) return no_memory(err);
    }
    return FP_DONE;
}
