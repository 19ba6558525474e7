#include "pprof/read.h"

#include <stdlib.h>

enum { PROFILE = 0, VALUE_TYPE, SAMPLE, LABEL, MAPPING, LOCATION, LINE, FUNCTION };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* The wire types each field may have: V a varint, B bytes, L a list of varints,
 * packed or not.  Index 0 is no field. */
static const char schema[][17] = {
    [PROFILE] = " BBBBBBVVVVBVLVV", [VALUE_TYPE] = " VV",  [SAMPLE] = " LLB", [LABEL] = " VVVV",
    [MAPPING] = " VVVVVVVVVV",      [LOCATION] = " VVVBV", [LINE] = " VVV",   [FUNCTION] = " VVVVV",
};

/* Fields that were proposed (google/pprof, pull requests 725 and 728) and that no
 * schema of pprof has: of Sample and of Profile.  Counted by name. */
enum { BREAKDOWN = 4, LABEL_SET = 16 };

struct fp_pprof_mapping {
    uint64_t start, limit, offset, filename, build_id, at;
    uint32_t flags;
    uint32_t object; /* of the model */
    uint32_t id;     /* of the model */
};

struct fp_pprof_function {
    uint64_t name, system_name, filename, at;
    int64_t start_line;
};

struct fp_pprof_line {
    uint64_t function;
    int64_t line, column;
};

struct fp_pprof_location {
    uint64_t mapping, address, at;
    uint32_t first_line, n_lines;
    uint32_t folded;
};

struct fp_pprof_label {
    uint64_t key, string, unit;
    int64_t number;
};

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "memory");
}

struct fp_pprof_reader *fp_pprof_reader_new(struct fp_model *model, int lenient) {
    struct fp_pprof_reader *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    if (fp_table_init(&r->mapping_ids, 2) || fp_table_init(&r->function_ids, 2) || fp_table_init(&r->location_ids, 2) ||
        fp_strings_init(&r->chains) || fp_strings_init(&r->label_sets)) {
        fp_pprof_reader_free(r);
        return NULL;
    }
    return r;
}

void fp_pprof_reader_free(struct fp_pprof_reader *r) {
    if (!r) return;
    free(r->comments);
    free(r->types);
    free(r->strings);
    free(r->mappings);
    free(r->functions);
    free(r->locations);
    free(r->lines);
    fp_table_clear(&r->mapping_ids);
    fp_table_clear(&r->function_ids);
    fp_table_clear(&r->location_ids);
    free(r->frames);
    fp_strings_clear(&r->chains);
    free(r->chain_stacks);
    fp_strings_clear(&r->label_sets);
    free(r->label_chains);
    free(r->labels);
    free(r->ids);
    free(r->values);
    fp_buf_free(&r->chain);
    fp_buf_free(&r->label_set);
    free(r);
}

/* Makes `*p` hold more than `n` items of `size` bytes; 0 or FP_E_NOMEM. */
static int grow(void *array, uint32_t *cap, uint32_t n, size_t size) {
    if (FP_LIKELY(n < *cap)) return 0;
    if (n > UINT32_MAX / 2 - 64) return FP_E_NOMEM;
    uint32_t more = n * 2 + 64;
    void *old;
    memcpy(&old, array, sizeof old);
    void *p = realloc(old, (size_t)more * size);
    if (!p) return FP_E_NOMEM;
    memcpy(array, &p, sizeof p);
    *cap = more;
    return 0;
}

/* ---- the wire format ---- */

struct field {
    const uint8_t *at; /* its tag */
    uint32_t number, wire;
    uint64_t v;       /* VARINT */
    const uint8_t *p; /* BYTES */
    size_t n;
};

enum { CUT = 0, BAD = -1 };

/* Reads a varint: bytes used, CUT if it goes on past `end`, BAD if it is beyond 64 bits. */
static inline int varint(const uint8_t *p, const uint8_t *end, uint64_t *v) {
    if (FP_LIKELY(p < end && *p < 0x80)) {
        *v = *p;
        return 1;
    }
    uint64_t value = 0;
    for (int i = 0; i < 10; i++) {
        if (p + i == end) return CUT;
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            if (i == 9 && p[i] > 1) return BAD;
            *v = value;
            return i + 1;
        }
    }
    return BAD;
}

/* Reads the tag and, by wire type, the value or the length (f->p, f->n; the
 * content may lie beyond `end`).  Bytes used, CUT or BAD. */
static inline int head(const uint8_t *p, const uint8_t *end, struct field *f) {
    uint64_t tag;
    f->at = p;
    int used = varint(p, end, &tag);
    if (used <= 0) return used;
    if (tag >> 3 == 0 || tag > UINT32_MAX) return BAD;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (uint32_t)tag & 7;
    f->n = 0;
    f->v = 0;
    int more;
    switch (f->wire) {
        case VARINT: more = varint(p + used, end, &f->v); break;
        case FIXED64:
            f->n = 8;
            more = 0;
            break;
        case FIXED32:
            f->n = 4;
            more = 0;
            break;
        case BYTES: {
            uint64_t n = 0;
            more = varint(p + used, end, &n);
            if (n > (uint64_t)INT64_MAX) return BAD;
            f->n = (size_t)n;
            break;
        }
        default: return BAD; /* groups, and numbers that mean nothing */
    }
    if (f->wire == VARINT || f->wire == BYTES) {
        if (more <= 0) return more;
        used += more;
    }
    f->p = p + used;
    return used;
}

/* The kind of a known field ('V', 'B', 'L'), ' ' for an unknown one, 0 if its wire type is wrong. */
static inline char kind_of(int message, const struct field *f) {
    char kind = f->number < sizeof schema[0] ? schema[message][f->number] : ' ';
    if (!kind) kind = ' ';
    if ((kind == 'V' && f->wire != VARINT) || (kind == 'B' && f->wire != BYTES) ||
        (kind == 'L' && f->wire != VARINT && f->wire != BYTES))
        return 0;
    return kind;
}

struct cursor {
    const uint8_t *p, *end;
};

/* The next field of a message that is wholly there: its kind, 0 at the end, BAD. */
static inline int next(struct cursor *c, int message, struct field *f) {
    if (c->p == c->end) return 0;
    int used = head(c->p, c->end, f);
    if (used <= 0 || (f->wire != VARINT && f->n > (size_t)(c->end - f->p))) return BAD;
    char kind = kind_of(message, f);
    if (!kind) return BAD;
    c->p = f->p + (f->wire == VARINT ? 0 : f->n);
    return kind;
}

static int is_message(const uint8_t *p, size_t n, int message) {
    struct cursor c = {p, p + n};
    struct field f;
    int kind;
    while ((kind = next(&c, message, &f)) > 0)
        if (kind == ' ' && message != SAMPLE) return 0;
    return kind == 0;
}

int fp_pprof_sniff(const uint8_t *p, size_t n) {
    static const int messages[] = {0, VALUE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION};
    const uint8_t *end = p + n;
    int fields = 0;
    size_t text = 0;
    while (text < n && (p[text] >= ' ' || (p[text] >= '\t' && p[text] <= '\r'))) text++;
    if (text == n) return 0; /* messages have ids and lengths that no text has */
    while (p < end) {
        struct field f;
        int used = head(p, end, &f);
        if (used == CUT && fields) return 1;
        if (used <= 0) return 0;
        char kind = kind_of(PROFILE, &f);
        if (!kind || (kind == ' ' && !fields) || f.number > 64) return 0;
        p = f.p;
        if (f.wire == VARINT) {
            fields++;
            continue;
        }
        if (!fields && f.number == 6 && f.n) return 0; /* the first string is "" */
        /* a first field that long has a length of two bytes, which no text begins with */
        if (f.n > (size_t)(end - p)) return (fields || n > 130) && f.n <= FP_PPROF_MAX_MESSAGE;
        int message = f.number <= 5 ? messages[f.number] : f.number == 11 ? VALUE_TYPE : 0;
        if (message && !is_message(p, f.n, message)) return 0;
        p += f.n;
        fields++;
    }
    return fields > 0;
}

/* ---- the top level ---- */

static int malformed(struct fp_err *err, const struct fp_in *in, const uint8_t *at, const char *what) {
    return fp_fail(err, FP_E_MALFORMED, in->base + (uint64_t)(at - in->p), what);
}

/* next_top: a field is there. */
enum { GOT = 16 };

/* The number given to a field that was found broken and counted. */
enum { NO_FIELD = UINT32_MAX };

/* The input ends inside the field at `at`. */
static int cut_short(struct fp_pprof_reader *r, uint64_t at, uint64_t left, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a field");
    if (r->first_pass) r->stats.lost_bytes += left;
    return FP_DONE;
}

/* The next field of the profile.  `wanted`: bit by number, the fields whose
 * content is asked for; that of others is passed over.  GOT, FP_MORE, FP_DONE
 * or an error. */
static int next_top(struct fp_pprof_reader *r, struct fp_in *in, uint32_t wanted, struct field *f, struct fp_err *err) {
    if (r->skip) {
        size_t left = in->n - in->pos;
        size_t n = r->skip < left ? (size_t)r->skip : left;
        in->pos += n;
        r->skip -= n;
        if (r->lost && r->first_pass) r->stats.lost_bytes += n;
        if (r->skip)
            return !in->eof  ? FP_MORE
                   : r->lost ? FP_DONE
                             : cut_short(r, r->field_at, in->base + in->pos - r->field_at, err);
    }
    size_t left = in->n - in->pos;
    if (!left) return in->eof ? FP_DONE : FP_MORE;
    const uint8_t *p = in->p + in->pos;
    uint64_t at = in->base + in->pos;
    int used = head(p, in->p + in->n, f);
    if (used == CUT) {
        if (!in->eof) return FP_MORE;
        in->pos = in->n;
        return cut_short(r, at, left, err);
    }
    if (used == BAD) {
        if (!r->lenient) return malformed(err, in, p, "a field has no tag and length");
        r->skip = UINT64_MAX; /* what follows cannot be told apart any more */
        r->lost = 1;
        return next_top(r, in, wanted, f, err);
    }
    size_t length = f->wire == VARINT ? 0 : f->n;
    int take = f->number < 32 && wanted >> f->number & 1;
    if (!kind_of(PROFILE, f) || (take && length > FP_PPROF_MAX_MESSAGE)) {
        if (!r->lenient && !kind_of(PROFILE, f))
            return fp_fail_got(err, FP_E_MALFORMED, at, "the wire type of a field", FP_GOT_UNSIGNED, f->wire,
                               "that of the schema", 0);
        if (!r->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the length of a field", FP_GOT_UNSIGNED, length, "at most %",
                               FP_PPROF_MAX_MESSAGE);
        r->stats.bad_entries += r->first_pass;
        f->number = NO_FIELD;
        take = 0;
    }
    if (take && length > left - (size_t)used) {
        if (!in->eof) return FP_MORE;
        in->pos = in->n;
        return cut_short(r, at, left, err);
    }
    in->pos += (size_t)used;
    r->field_at = at;
    if (take)
        in->pos += length;
    else
        r->skip = length;
    return GOT;
}

/* ---- first pass: tables ---- */

/* A batch has a column for each, so their number must be bounded. */
enum { MAX_TYPES = 1024 };

/* A bad entry of a table: an error, or counted when lenient. */
static int bad_entry(struct fp_pprof_reader *r, const struct fp_in *in, const uint8_t *at, const char *what,
                     struct fp_err *err) {
    if (!r->lenient) return malformed(err, in, at, what);
    r->stats.bad_entries++;
    return 0;
}

/* Enters `id` into `ids`; the position of its entry, or -1 (bad, counted) or an error below that. */
static int64_t enter(struct fp_pprof_reader *r, struct fp_table *ids, uint64_t id, const struct fp_in *in,
                     const struct field *f, const char *zero, const char *twice, struct fp_err *err) {
    if (!id) return bad_entry(r, in, f->at, zero, err) ? FP_E_MALFORMED - 1 : -1;
    uint32_t before = ids->n;
    uint32_t at = fp_table_intern(ids, (uint32_t[]){(uint32_t)id, (uint32_t)(id >> 32)});
    if (at == FP_NO_ID) return no_memory(err) - 1;
    if (at < before) return bad_entry(r, in, f->at, twice, err) ? FP_E_MALFORMED - 1 : -1;
    return at - 1;
}

static uint64_t position(const struct fp_table *ids, uint64_t id) {
    return id ? fp_table_find(ids, (uint32_t[]){(uint32_t)id, (uint32_t)(id >> 32)}) : 0;
}

static int value_type(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top, uint64_t pair[2],
                      struct fp_err *err) {
    struct cursor c = {top->p, top->p + top->n};
    struct field f;
    int kind;
    pair[0] = pair[1] = 0;
    while ((kind = next(&c, VALUE_TYPE, &f)) > 0) {
        if (kind == ' ')
            r->stats.unknown_fields++;
        else
            pair[f.number - 1] = f.v;
    }
    return kind == BAD ? malformed(err, in, c.p, "a value type is broken") : 0;
}

static int mapping(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top, struct fp_err *err) {
    struct cursor c = {top->p, top->p + top->n};
    struct field f;
    struct fp_pprof_mapping m = {.at = in->base + (uint64_t)(top->at - in->p)};
    uint64_t id = 0;
    int kind;
    while ((kind = next(&c, MAPPING, &f)) > 0) {
        if (kind == ' ') {
            r->stats.unknown_fields++;
            continue;
        }
        switch (f.number) {
            case 1: id = f.v; break;
            case 2: m.start = f.v; break;
            case 3: m.limit = f.v; break;
            case 4: m.offset = f.v; break;
            case 5: m.filename = f.v; break;
            case 6: m.build_id = f.v; break;
            default: /* has_functions, has_filenames, has_line_numbers, has_inline_frames */
                if (f.v) m.flags |= 1u << (f.number - 7);
        }
    }
    if (kind == BAD) return bad_entry(r, in, c.p, "a mapping is broken", err);
    int64_t at = enter(r, &r->mapping_ids, id, in, top, "a mapping has id 0", "two mappings have the same id", err);
    if (at < 0) return at == -1 ? 0 : err->code;
    if (grow(&r->mappings, &r->cap_mappings, (uint32_t)at, sizeof *r->mappings)) return no_memory(err);
    r->mappings[at] = m;
    return 0;
}

static int function(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top, struct fp_err *err) {
    struct cursor c = {top->p, top->p + top->n};
    struct field f;
    struct fp_pprof_function m = {.at = in->base + (uint64_t)(top->at - in->p)};
    uint64_t id = 0;
    int kind;
    while ((kind = next(&c, FUNCTION, &f)) > 0) {
        if (kind == ' ') {
            r->stats.unknown_fields++;
            continue;
        }
        switch (f.number) {
            case 1: id = f.v; break;
            case 2: m.name = f.v; break;
            case 3: m.system_name = f.v; break;
            case 4: m.filename = f.v; break;
            default: m.start_line = (int64_t)f.v;
        }
    }
    if (kind == BAD) return bad_entry(r, in, c.p, "a function is broken", err);
    int64_t at = enter(r, &r->function_ids, id, in, top, "a function has id 0", "two functions have the same id", err);
    if (at < 0) return at == -1 ? 0 : err->code;
    if (grow(&r->functions, &r->cap_functions, (uint32_t)at, sizeof *r->functions)) return no_memory(err);
    r->functions[at] = m;
    return 0;
}

static int line(struct fp_pprof_reader *r, const struct field *inner, struct fp_err *err) {
    struct cursor c = {inner->p, inner->p + inner->n};
    struct field f;
    struct fp_pprof_line l = {0};
    int kind;
    while ((kind = next(&c, LINE, &f)) > 0) {
        if (kind == ' ')
            r->stats.unknown_fields++;
        else if (f.number == 1)
            l.function = f.v;
        else if (f.number == 2)
            l.line = (int64_t)f.v;
        else
            l.column = (int64_t)f.v;
    }
    if (kind == BAD) return FP_E_MALFORMED;
    if (grow(&r->lines, &r->cap_lines, r->n_lines, sizeof *r->lines)) return no_memory(err);
    r->lines[r->n_lines++] = l;
    return 0;
}

static int location(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top, struct fp_err *err) {
    struct cursor c = {top->p, top->p + top->n};
    struct field f;
    struct fp_pprof_location m = {.at = in->base + (uint64_t)(top->at - in->p), .first_line = r->n_lines};
    uint64_t id = 0;
    int kind;
    while ((kind = next(&c, LOCATION, &f)) > 0) {
        if (kind == ' ') {
            r->stats.unknown_fields++;
            continue;
        }
        switch (f.number) {
            case 1: id = f.v; break;
            case 2: m.mapping = f.v; break;
            case 3: m.address = f.v; break;
            case 4: {
                int status = line(r, &f, err);
                if (status == FP_E_NOMEM) return status;
                if (status) {
                    r->n_lines = m.first_line;
                    return bad_entry(r, in, f.at, "a line is broken", err);
                }
                break;
            }
            default: m.folded = f.v != 0;
        }
    }
    m.n_lines = r->n_lines - m.first_line;
    if (kind == BAD) return bad_entry(r, in, c.p, "a location is broken", err);
    int64_t at = enter(r, &r->location_ids, id, in, top, "a location has id 0", "two locations have the same id", err);
    if (at < 0) return at == -1 ? 0 : err->code;
    if (grow(&r->locations, &r->cap_locations, (uint32_t)at, sizeof *r->locations)) return no_memory(err);
    r->locations[at] = m;
    return 0;
}

static int string(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top, struct fp_err *err) {
    if (!r->n_strings && top->n) {
        int status = bad_entry(r, in, top->at, "the first string is not empty", err);
        if (status) return status;
    }
    if (grow(&r->strings, &r->cap_strings, r->n_strings, sizeof *r->strings)) return no_memory(err);
    uint32_t id = fp_strings_intern(&r->model->strings, top->p, top->n);
    if (id == FP_NO_ID) return no_memory(err);
    r->strings[r->n_strings++] = id;
    return 0;
}

static int comment(struct fp_pprof_reader *r, uint64_t index, struct fp_err *err) {
    if (grow(&r->comments, &r->cap_comments, r->n_comments, sizeof *r->comments)) return no_memory(err);
    r->comments[r->n_comments++] = index;
    return 0;
}

static int comments(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *f, struct fp_err *err) {
    if (f->wire == VARINT) return comment(r, f->v, err);
    for (const uint8_t *p = f->p, *end = f->p + f->n; p < end;) {
        uint64_t index;
        int used = varint(p, end, &index);
        if (used <= 0) return bad_entry(r, in, p, "a comment is broken", err);
        if (comment(r, index, err)) return err->code;
        p += used;
    }
    return 0;
}

static int table_field(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *f, struct fp_err *err) {
    uint64_t pair[2];
    int status;
    switch (f->number) {
        case 1:
            status = value_type(r, in, f, pair, err);
            if (status) return status; /* without its types nothing can be said of the samples */
            if (r->n_types == MAX_TYPES)
                return fp_fail_got(err, FP_E_MALFORMED, r->field_at, "the number of sample types", FP_GOT_UNSIGNED,
                                   MAX_TYPES + 1, "at most %", MAX_TYPES);
            if (grow(&r->types, &r->cap_types, r->n_types * 2 + 1, sizeof *r->types)) return no_memory(err);
            memcpy(r->types + 2 * (size_t)r->n_types++, pair, sizeof pair);
            return 0;
        case 2:
            if (!r->has_samples) r->samples_at = r->field_at;
            r->has_samples = 1;
            return 0;
        case 3: return mapping(r, in, f, err);
        case 4: return location(r, in, f, err);
        case 5: return function(r, in, f, err);
        case 6: return string(r, in, f, err);
        case 7: r->drop_frames = f->v; return 0;
        case 8: r->keep_frames = f->v; return 0;
        case 9:
            if (r->time_ns) return bad_entry(r, in, f->at, "a second time: two profiles follow one another", err);
            r->time_ns = (int64_t)f->v;
            return 0;
        case 10: r->duration_ns = (int64_t)f->v; return 0;
        case 11:
            status = value_type(r, in, f, pair, err);
            if (status) return r->lenient ? bad_entry(r, in, f->at, "", err) : status;
            r->period_type = pair[0];
            r->period_unit = pair[1];
            r->has_period_type = 1;
            return 0;
        case 12: r->period = (int64_t)f->v; return 0;
        case 13: return comments(r, in, f, err);
        case 14: r->default_sample_type = f->v; return 0;
        case 15: r->doc_url = f->v; return 0;
        case LABEL_SET: r->stats.label_sets++; return 0;
        case NO_FIELD: return 0;
        default: r->stats.unknown_fields++; return 0;
    }
}

int fp_pprof_tables(struct fp_pprof_reader *r, struct fp_in *in, struct fp_err *err) {
    const uint32_t wanted = 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 11 | 1u << 13;
    r->first_pass = 1;
    for (;;) {
        struct field f;
        int status = next_top(r, in, wanted, &f, err);
        if (status != GOT) return status;
        status = table_field(r, in, &f, err);
        if (status) return status;
    }
}

/* ---- between the passes ---- */

/* The string of the model for an index of the string table, into *id. */
static int resolve_string(struct fp_pprof_reader *r, uint64_t index, uint64_t at, uint32_t *id, struct fp_err *err) {
    if (FP_LIKELY(index < r->n_strings)) {
        *id = r->strings[index];
        return 0;
    }
    *id = 0;
    if (!index) return 0; /* no string table at all; said elsewhere */
    if (!r->lenient)
        return fp_fail_got(err, FP_E_MALFORMED, at, "an index into the string table", FP_GOT_UNSIGNED, index,
                           "less than %", r->n_strings);
    r->stats.bad_references++;
    return 0;
}

static int resolve_own(struct fp_pprof_reader *r, uint64_t *index, struct fp_err *err) {
    uint32_t id;
    int status = resolve_string(r, *index, 0, &id, err);
    *index = id;
    return status;
}

static uint32_t narrow(struct fp_pprof_reader *r, int64_t v) {
    if (v >= 0 && v <= UINT32_MAX) return (uint32_t)v;
    r->stats.bad_lines++;
    return 0;
}

/* The function of the model, as one of `object`; 0 when there is none (lenient), else an error. */
static int resolve_function(struct fp_pprof_reader *r, uint64_t id, uint64_t at, uint32_t object, uint32_t *function_id,
                            struct fp_err *err) {
    uint64_t place = position(&r->function_ids, id);
    *function_id = 0;
    if (!place) {
        if (!r->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the function of a line", FP_GOT_UNSIGNED, id,
                               "the id of a function", 0);
        r->stats.bad_references++;
        return 0;
    }
    const struct fp_pprof_function *f = &r->functions[place - 1];
    uint32_t name, system_name, filename;
    int status = resolve_string(r, f->name, f->at, &name, err);
    if (!status) status = resolve_string(r, f->system_name, f->at, &system_name, err);
    if (!status) status = resolve_string(r, f->filename, f->at, &filename, err);
    if (status) return status;
    *function_id = fp_model_function(r->model, object, filename, name, system_name == name ? 0 : system_name,
                                     narrow(r, f->start_line));
    return *function_id == FP_NO_ID ? no_memory(err) : 0;
}

static int resolve_location(struct fp_pprof_reader *r, const struct fp_pprof_location *l, uint32_t *frame,
                            struct fp_err *err) {
    uint64_t place = position(&r->mapping_ids, l->mapping);
    r->stats.no_mapping += l->mapping && !place;
    uint32_t mapping_id = place ? r->mappings[place - 1].id : 0;
    uint32_t object = place ? r->mappings[place - 1].object : 0;
    uint32_t chain = 0;
    for (uint32_t i = l->n_lines; i-- > 0;) { /* the file has the innermost first */
        const struct fp_pprof_line *ln = &r->lines[l->first_line + i];
        uint32_t f;
        int status = resolve_function(r, ln->function, l->at, object, &f, err);
        if (status) return status;
        if (!f) continue;
        chain = fp_model_line(r->model, f, narrow(r, ln->line), narrow(r, ln->column), chain);
        if (chain == FP_NO_ID) return no_memory(err);
    }
    *frame = fp_model_frame(r->model, mapping_id, l->address, l->folded ? FP_FRAME_FOLDED : 0, chain);
    return *frame == FP_NO_ID ? no_memory(err) : 0;
}

int fp_pprof_resolve(struct fp_pprof_reader *r, struct fp_err *err) {
    int status;
    r->first_pass = r->lost = 0;
    r->skip = 0;
    if (!r->n_strings && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "there is no string table");
    r->stats.bad_references += !r->n_strings;
    if (!r->n_types && r->has_samples)
        return fp_fail(err, FP_E_MALFORMED, r->samples_at, "there are samples but no sample types");
    uint64_t *own[] = {&r->period_type, &r->period_unit,         &r->drop_frames,
                       &r->keep_frames, &r->default_sample_type, &r->doc_url};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if ((status = resolve_own(r, own[i], err))) return status;
    for (uint32_t i = 0; i < r->n_comments; i++)
        if ((status = resolve_own(r, &r->comments[i], err))) return status;
    for (uint32_t i = 0; i < 2 * r->n_types; i++)
        if ((status = resolve_own(r, &r->types[i], err))) return status;
    for (uint32_t i = 0; i + 1 < r->mapping_ids.n; i++) {
        struct fp_pprof_mapping *m = &r->mappings[i];
        uint32_t filename, build_id;
        if ((status = resolve_string(r, m->filename, m->at, &filename, err)) ||
            (status = resolve_string(r, m->build_id, m->at, &build_id, err)))
            return status;
        m->object = filename || build_id ? fp_model_object(r->model, filename, build_id) : 0;
        if (m->object == FP_NO_ID) return no_memory(err);
        m->id = fp_model_mapping(r->model, m->object, m->start, m->limit, m->offset, m->flags);
        if (m->id == FP_NO_ID) return no_memory(err);
    }
    uint32_t n = r->location_ids.n;
    r->frames = calloc(n, sizeof *r->frames);
    r->values = calloc(r->n_types + 1, sizeof *r->values);
    if (!r->frames || !r->values) return no_memory(err);
    for (uint32_t i = 0; i + 1 < n; i++)
        if ((status = resolve_location(r, &r->locations[i], &r->frames[i], err))) return status;
    /* functions no location names are still checked, as CheckValid does */
    for (uint32_t i = 0; i + 1 < r->function_ids.n; i++) {
        const struct fp_pprof_function *f = &r->functions[i];
        uint32_t id;
        if ((status = resolve_string(r, f->name, f->at, &id, err)) ||
            (status = resolve_string(r, f->system_name, f->at, &id, err)) ||
            (status = resolve_string(r, f->filename, f->at, &id, err)))
            return status;
    }
    return 0;
}

/* ---- second pass: samples ---- */

/* A sample whose fields are found; its values already stand in the batch. */
struct sample {
    const uint8_t *chain, *set; /* location ids, packed; label fields one behind the other */
    size_t chain_n, set_n;
    uint64_t at;
    uint32_t hash;  /* of the chain */
    uint32_t guess; /* its id, most likely */
};

/* Samples that are looked up together, so that they wait for memory together. */
enum { GROUP = 32 };

/* The stack of a list of location ids, packed in `p`. */
static int stack_of(struct fp_pprof_reader *r, const struct sample *s, uint32_t *stack, struct fp_err *err) {
    const uint8_t *p = s->chain;
    size_t n = s->chain_n;
    uint64_t at = s->at;
    uint32_t before = r->chains.n;
    uint32_t chain = fp_strings_intern_hashed(&r->chains, p, n, s->hash);
    if (chain == FP_NO_ID) return no_memory(err);
    *stack = 0;
    if (!chain) return 0;
    if (chain < before && r->chain_stacks[chain] != FP_NO_ID) {
        *stack = r->chain_stacks[chain];
        return 0;
    }
    if (grow(&r->chain_stacks, &r->cap_chain_stacks, chain, sizeof *r->chain_stacks)) return no_memory(err);
    r->chain_stacks[chain] = FP_NO_ID; /* bad, until it is found good */
    uint32_t depth = 0;
    for (const uint8_t *q = p, *end = p + n; q < end;) {
        uint64_t id;
        int used = varint(q, end, &id);
        if (used <= 0) return fp_fail(err, FP_E_MALFORMED, at, "a location id of a sample is broken");
        uint64_t place = position(&r->location_ids, id);
        if (!place)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the location of a sample", FP_GOT_UNSIGNED, id,
                               "the id of a location", 0);
        if (grow(&r->ids, &r->cap_ids, depth, sizeof *r->ids)) return no_memory(err);
        r->ids[depth++] = r->frames[place - 1];
        q += used;
    }
    uint32_t node = 0;
    while (depth-- > 0) {
        node = fp_model_stack(r->model, node, (uint32_t)r->ids[depth]);
        if (node == FP_NO_ID) return no_memory(err);
    }
    *stack = r->chain_stacks[chain] = node;
    return 0;
}

static int label(struct fp_pprof_reader *r, const struct field *inner, struct fp_pprof_label *l) {
    struct cursor c = {inner->p, inner->p + inner->n};
    struct field f;
    int kind;
    *l = (struct fp_pprof_label){0};
    while ((kind = next(&c, LABEL, &f)) > 0) {
        if (kind == ' ') {
            r->stats.unknown_sample_fields++;
            continue;
        }
        switch (f.number) {
            case 1: l->key = f.v; break;
            case 2: l->string = f.v; break;
            case 3: l->number = (int64_t)f.v; break;
            default: l->unit = f.v;
        }
    }
    return kind;
}

/* The label chain of consecutive label fields of a sample. */
static int labels_of(struct fp_pprof_reader *r, const uint8_t *p, size_t n, uint64_t at, uint32_t *chain,
                     struct fp_err *err) {
    *chain = 0;
    if (!n) return 0;
    uint32_t before = r->label_sets.n;
    uint32_t set = fp_strings_intern(&r->label_sets, p, n);
    if (set == FP_NO_ID) return no_memory(err);
    if (set < before && r->label_chains[set] != FP_NO_ID) {
        *chain = r->label_chains[set];
        return 0;
    }
    if (grow(&r->label_chains, &r->cap_label_chains, set, sizeof *r->label_chains)) return no_memory(err);
    r->label_chains[set] = FP_NO_ID;
    struct cursor c = {p, p + n};
    struct field f;
    uint32_t count = 0;
    while (next(&c, SAMPLE, &f) > 0) {
        if (grow(&r->labels, &r->cap_labels, count, sizeof *r->labels)) return no_memory(err);
        if (label(r, &f, &r->labels[count++])) return fp_fail(err, FP_E_MALFORMED, at, "a label of a sample is broken");
    }
    uint32_t next_label = 0;
    while (count-- > 0) {
        const struct fp_pprof_label *l = &r->labels[count];
        uint32_t key, text, unit;
        int status = resolve_string(r, l->key, at, &key, err);
        if (!status) status = resolve_string(r, l->string, at, &text, err);
        if (!status) status = resolve_string(r, l->unit, at, &unit, err);
        if (status) return status;
        next_label = fp_model_label(r->model, next_label, key, text, l->number, unit);
        if (next_label == FP_NO_ID) return no_memory(err);
    }
    *chain = r->label_chains[set] = next_label;
    return 0;
}

/* Adds a value to the sample at hand; too many are counted, not kept. */
static inline void add_value(struct fp_pprof_reader *r, uint32_t *n, uint64_t v) {
    if (*n < r->n_types) r->values[*n] = (int64_t)v;
    if (*n < UINT32_MAX) ++*n;
}

/* The next field of a sample.  Nearly all are shorter than 128 bytes:
 *   0a 02 01 03   location_id    12 01 05   value    1a 04 08 01 10 02   label */
static inline int next_in_sample(struct cursor *c, struct field *f) {
    const uint8_t *p = c->p;
    if (FP_UNLIKELY(c->end - p < 2 || (p[0] != 0x0a && p[0] != 0x12 && p[0] != 0x1a) || p[1] >= 0x80))
        return next(c, SAMPLE, f);
    *f = (struct field){.at = p, .number = p[0] >> 3, .wire = BYTES, .p = p + 2, .n = p[1]};
    if (f->n > (size_t)(c->end - f->p)) return BAD;
    c->p = f->p + f->n;
    return f->number == 3 ? 'B' : 'L';
}

/* Finds the fields of a sample; its values become those of row `row`.  1 when
 * lists of it stand in r->chain or r->label_set, which the next sample takes. */
static int sample_fields(struct fp_pprof_reader *r, const struct fp_in *in, const struct field *top,
                         struct fp_batch *out, uint32_t row, struct sample *s, struct fp_err *err) {
    struct cursor c = {top->p, top->p + top->n};
    struct field f;
    uint32_t n_values = 0;
    int kind, pieces = 0;
    *s = (struct sample){.at = in->base + (uint64_t)(top->at - in->p)};
    r->chain.n = r->label_set.n = 0;
    while (c.p != c.end && (kind = next_in_sample(&c, &f)) != 0) {
        if (kind == BAD) return malformed(err, in, c.p, "a sample is broken");
        switch (f.number) {
            case 1:
                if (f.wire == BYTES && !pieces) {
                    s->chain = f.p; /* one packed list: the common case */
                    s->chain_n = f.n;
                    pieces = 1;
                    break;
                }
                if (pieces == 1 && s->chain_n && fp_buf_put(&r->chain, s->chain, s->chain_n)) return no_memory(err);
                s->chain_n = 0;
                pieces = 2;
                if (fp_buf_reserve(&r->chain, f.wire == VARINT ? 10 : f.n)) return no_memory(err);
                if (f.wire == VARINT)
                    r->chain.n = (size_t)(fp_varint(r->chain.p + r->chain.n, f.v) - r->chain.p);
                else if (fp_buf_put(&r->chain, f.p, f.n))
                    return no_memory(err);
                break;
            case 2:
                if (f.wire == VARINT) {
                    add_value(r, &n_values, f.v);
                    break;
                }
                for (const uint8_t *p = f.p, *end = f.p + f.n; p < end;) {
                    uint64_t v;
                    int used = varint(p, end, &v);
                    if (used <= 0) return malformed(err, in, p, "a value of a sample is broken");
                    add_value(r, &n_values, v);
                    p += used;
                }
                break;
            case 3:
                if (s->set && s->set + s->set_n == f.at) {
                    s->set_n = (size_t)(c.p - s->set);
                } else if (!s->set && !r->label_set.n) {
                    s->set = f.at;
                    s->set_n = (size_t)(c.p - f.at);
                } else {
                    if (s->set && fp_buf_put(&r->label_set, s->set, s->set_n)) return no_memory(err);
                    s->set = NULL;
                    if (fp_buf_put(&r->label_set, f.at, (size_t)(c.p - f.at))) return no_memory(err);
                }
                break;
            case BREAKDOWN: r->stats.breakdowns++; break;
            default: r->stats.unknown_sample_fields++;
        }
    }
    if (n_values != r->n_types)
        return fp_fail_got(err, FP_E_MALFORMED, s->at, "the number of values of a sample", FP_GOT_UNSIGNED, n_values,
                           "% as there are sample types", r->n_types);
    if (pieces == 2) {
        s->chain = r->chain.p;
        s->chain_n = r->chain.n;
    }
    if (r->label_set.n) {
        s->set = r->label_set.p;
        s->set_n = r->label_set.n;
    }
    for (uint32_t k = 0; k < n_values; k++) out->values[(size_t)k * out->cap + row] = r->values[k];
    return pieces == 2 || r->label_set.n;
}

/* Looks up `n` samples, whose values stand behind the batch's rows, and makes
 * rows of them.  0 or an error. */
static int sample_rows(struct fp_pprof_reader *r, struct sample *samples, uint32_t n, struct fp_batch *out,
                       struct fp_err *err) {
    for (struct sample *s = samples; s < samples + n; s++) {
        s->guess = fp_strings_guess(&r->chains, s->hash);
        if (s->guess < r->cap_chain_stacks) __builtin_prefetch(&r->chain_stacks[s->guess]);
    }
    for (struct sample *s = samples; s < samples + n; s++) fp_strings_prefetch_bytes(&r->chains, s->guess);
    for (uint32_t k = 0, from = out->n; k < n; k++, from++) {
        uint32_t stack, labels;
        int status = stack_of(r, &samples[k], &stack, err);
        if (!status) status = labels_of(r, samples[k].set, samples[k].set_n, samples[k].at, &labels, err);
        if (FP_UNLIKELY(status)) {
            if (!r->lenient || status == FP_E_NOMEM) return status;
            r->stats.bad_samples++;
            continue;
        }
        uint32_t row = out->n++;
        out->stack[row] = stack;
        out->label[row] = labels;
        out->thread[row] = 0;
        out->time[row] = 0;
        for (uint32_t v = 0; row < from && v < r->n_types; v++) /* a bad one before it left a gap */
            out->values[(size_t)v * out->cap + row] = out->values[(size_t)v * out->cap + from];
        r->stats.samples++;
    }
    return 0;
}

int fp_pprof_feed(struct fp_pprof_reader *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct sample samples[GROUP];
    if (out->n_values != r->n_types && fp_batch_set_values(out, r->n_types)) return no_memory(err);
    for (;;) {
        if (out->n == out->cap) return FP_FULL;
        uint32_t room = out->cap - out->n < GROUP ? out->cap - out->n : GROUP, n = 0;
        int status = GOT, alone = 0;
        while (n < room && !alone) {
            struct field f;
            status = next_top(r, in, 1u << 2, &f, err);
            if (status != GOT) break;
            if (f.number != 2) continue;
            alone = sample_fields(r, in, &f, out, out->n + n, &samples[n], err);
            if (FP_UNLIKELY(alone < 0)) {
                status = alone;
                if (!r->lenient || status == FP_E_NOMEM) break;
                r->stats.bad_samples++;
                alone = 0;
                continue;
            }
            samples[n].hash = fp_strings_hash(samples[n].chain, samples[n].chain_n);
            fp_strings_prefetch(&r->chains, samples[n++].hash);
        }
        /* those before an error come first: theirs is the one to tell */
        int rows = sample_rows(r, samples, n, out, err);
        if (rows) return rows;
        if (status != GOT) return status;
    }
}
