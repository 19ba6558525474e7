/* The tables of a profile: read in the first pass, added to the model between the passes. */
#include "pprof/no_address.h"
#include "pprof/read_private.h"

#define TO(message, member) FP_WIRE_TO(struct fp_pprof_##message, member)
const struct fp_wire_schema fp_pprof_schema[] = {
    [FP_PPROF_PROFILE] = {" BBBBBBVVVVBVLVV",
                          {[7] = TO(reader, drop_frames),
                           TO(reader, keep_frames),
                           [10] = TO(reader, duration_ns),
                           [12] = TO(reader, period),
                           [14] = TO(reader, default_sample_type),
                           TO(reader, doc_url)}},
    [FP_PPROF_VALUE_TYPE] = {" VV", {0, TO(value_type, type), TO(value_type, unit)}},
    [FP_PPROF_SAMPLE] = {" LLB", {0}},
    [FP_PPROF_LABEL] = {" VVVV", {0, TO(label, key), TO(label, string), TO(label, number), TO(label, unit)}},
    /* the last four are has_functions, has_filenames, has_line_numbers and has_inline_frames */
    [FP_PPROF_MAPPING] = {" VVVVVVVVVV",
                          {0, TO(mapping, id), TO(mapping, start), TO(mapping, limit), TO(mapping, offset),
                           TO(mapping, filename), TO(mapping, build_id)}},
    [FP_PPROF_LOCATION] = {" VVVBV",
                           {0, TO(location, id), TO(location, mapping),
                            TO(location, address), [5] = TO(location, folded)}},
    [FP_PPROF_LINE] = {" VVV", {0, TO(line, function), TO(line, line), TO(line, column)}},
    [FP_PPROF_FUNCTION] = {" VVVVV",
                           {0, TO(function, id), TO(function, name), TO(function, system_name), TO(function, filename),
                            TO(function, start_line)}},
};

/* ---- first pass ---- */

/* Reads the fields of an entry into `to`, as fp_wire_read. */
static int read_entry(struct fp_pprof_reader *r, struct fp_wire *m, enum fp_pprof_message of, void *to,
                      struct fp_wire_field *f) {
    return fp_wire_read(m, &fp_pprof_schema[of], to, f, &r->stats.unknown_fields);
}

/* Gives the entry at `at` the next position in its table.  1, 0 for a skipped entry (lenient), or an error: an id must
 * not be 0 or another entry's.  `zero` and `twice` are the messages for this table. */
static int enter(struct fp_pprof_reader *r, struct fp_table *ids, uint64_t id, uint64_t at, const char *zero,
                 const char *twice, struct fp_err *err) {
    if (!id) return fp_pprof_bad_entry(r, at, zero, err);
    uint32_t before = ids->n;
    uint32_t place = fp_table_intern(ids, (uint32_t[]){FP_WORDS(id)});
    return place < before ? fp_pprof_bad_entry(r, at, twice, err) : 1;
}

int fp_pprof_take_mapping(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                          struct fp_err *err) {
    struct fp_pprof_mapping m = {.at = fp_pprof_offset(in, entry->at)};
    struct fp_wire message = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind;
    while ((kind = read_entry(r, &message, FP_PPROF_MAPPING, &m, &f)) > 0)
        if (f.v) m.flags |= 1u << (f.number - 7);
    if (kind) return fp_pprof_bad_entry(r, fp_pprof_offset(in, message.p), "a mapping is malformed", err);
    int entered =
        enter(r, &r->tables.mapping_ids, m.id, m.at, "a mapping has id 0", "two mappings have the same id", err);
    if (entered <= 0) return entered;
    *FP_AT(r->tables.mappings, r->tables.cap_mappings, r->tables.mapping_ids.n - 2) = m; /* id row 0 is none */
    return 0;
}

static const char ZERO_FUNCTION[] = "a function has id 0";

/* Earlier functions without an id are an error, or counted when lenient. */
static int refuse_functions_without_id(struct fp_pprof_reader *r, struct fp_err *err) {
    if (!r->tables.n_without_id) return 0;
    if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, r->tables.functions[0].at, ZERO_FUNCTION);
    r->stats.bad_entries += r->tables.n_without_id;
    r->tables.n_without_id = 0;
    return 0;
}

int fp_pprof_take_function(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                           struct fp_err *err) {
    struct fp_pprof_function m = {.at = fp_pprof_offset(in, entry->at)};
    const uint8_t *broken =
        fp_wire_all(fp_wire_inside(entry), &fp_pprof_schema[FP_PPROF_FUNCTION], &m, &r->stats.unknown_fields);
    if (broken) return fp_pprof_bad_entry(r, fp_pprof_offset(in, broken), "a function is malformed", err);
    uint32_t n = r->tables.function_ids.n;
    if (!m.id && n == 1) { /* perhaps no function has an id */
        n = ++r->tables.n_without_id;
    } else {
        FP_TRY(refuse_functions_without_id(r, err));
        int entered =
            enter(r, &r->tables.function_ids, m.id, m.at, ZERO_FUNCTION, "two functions have the same id", err);
        if (entered <= 0) return entered;
    }
    *FP_AT(r->tables.functions, r->tables.cap_functions, n - 1) = m;
    return 0;
}

int fp_pprof_take_location(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                           struct fp_err *err) {
    struct fp_pprof_location m = {.at = fp_pprof_offset(in, entry->at), .first_line = r->tables.n_lines};
    struct fp_wire message = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind;
    while ((kind = read_entry(r, &message, FP_PPROF_LOCATION, &m, &f)) > 0) {
        struct fp_pprof_line l = {0};
        if (fp_wire_all(fp_wire_inside(&f), &fp_pprof_schema[FP_PPROF_LINE], &l, &r->stats.unknown_fields)) {
            r->tables.n_lines = m.first_line;
            return fp_pprof_bad_entry(r, fp_pprof_offset(in, f.at), "a line is malformed", err);
        }
        FP_PUSH(r->tables.lines, r->tables.n_lines, r->tables.cap_lines) = l;
    }
    m.n_lines = r->tables.n_lines - m.first_line;
    if (kind) return fp_pprof_bad_entry(r, fp_pprof_offset(in, message.p), "a location is malformed", err);
    int entered =
        enter(r, &r->tables.location_ids, m.id, m.at, "a location has id 0", "two locations have the same id", err);
    if (entered <= 0) return entered;
    *FP_AT(r->tables.locations, r->tables.cap_locations, r->tables.location_ids.n - 2) = m;
    return 0;
}

int fp_pprof_take_string(struct fp_pprof_reader *r, const struct fp_wire_field *entry, struct fp_err *err) {
    if (!r->tables.n_strings && entry->n)
        FP_TRY(fp_pprof_bad_entry(r, r->feed.field_at, "the first string is not empty", err));
    const uint32_t id = fp_strings_intern(&r->model->strings, entry->p, entry->n);
    FP_PUSH(r->tables.strings, r->tables.n_strings, r->tables.cap_strings) = id;
    return 0;
}

/* ---- between the passes ---- */

int fp_pprof_resolve_string(struct fp_pprof_reader *r, uint64_t index, uint64_t at, uint32_t *id, struct fp_err *err) {
    if (FP_LIKELY(index < r->tables.n_strings)) {
        *id = r->tables.strings[index];
        return 0;
    }
    *id = 0;
    if (!index) return 0; /* no string table: fp_pprof_resolve reports it */
    if (!r->lenient)
        return fp_fail_got(err, FP_E_MALFORMED, at, "an index into the string table", FP_GOT_UNSIGNED, index,
                           "less than %", r->tables.n_strings);
    r->stats.bad_references++;
    return 0;
}

/* Replaces the index in a field of the profile by the string. */
static int resolve_own(struct fp_pprof_reader *r, uint64_t *index, struct fp_err *err) {
    uint32_t id;
    int status = fp_pprof_resolve_string(r, *index, 0, &id, err);
    *index = id;
    return status;
}

/* Whether the mapping only names an object; sets *filename to that name. */
static int only_names(struct fp_pprof_reader *r, const struct fp_pprof_mapping *m, uint32_t *filename) {
    size_t n;
    const uint8_t *p = fp_string(&r->model->strings, *filename, &n);
    const size_t n_prefix = sizeof fp_pprof_no_address - 1;
    if (m->start || m->limit || m->offset || n <= n_prefix || memcmp(p, fp_pprof_no_address, n_prefix)) return 0;
    /* a copy, because the strings may move while one is added */
    r->sample.chain.n = 0;
    fp_buf_put(&r->sample.chain, p + n_prefix, n - n_prefix);
    *filename = fp_strings_intern(&r->model->strings, r->sample.chain.p, r->sample.chain.n);
    return 1;
}

static int resolve_mapping(struct fp_pprof_reader *r, struct fp_pprof_mapping *m, struct fp_err *err) {
    uint32_t filename, build_id;
    FP_TRY(fp_pprof_resolve_string(r, m->filename, m->at, &filename, err));
    FP_TRY(fp_pprof_resolve_string(r, m->build_id, m->at, &build_id, err));
    const int only_name = only_names(r, m, &filename);
    m->object = filename || build_id ? fp_model_object(r->model, filename, build_id) : 0;
    if (only_name && m == r->tables.mappings) r->program = filename;
    m->mapping = only_name ? 0 : fp_model_mapping(r->model, m->object, m->start, m->limit, m->offset, m->flags);
    return 0;
}

/* Narrows a line or column for the model. */
static uint32_t narrow(struct fp_pprof_reader *r, int64_t v) {
    if (v >= 0 && v <= UINT32_MAX) return (uint32_t)v;
    if (v < 0)
        r->stats.negative_lines++;
    else
        r->stats.wide_lines++;
    return 0;
}

/* The strings of a function, as ids of the model. */
static int function_strings(struct fp_pprof_reader *r, const struct fp_pprof_function *f, uint32_t *name,
                            uint32_t *system_name, uint32_t *filename, struct fp_err *err) {
    FP_TRY(fp_pprof_resolve_string(r, f->name, f->at, name, err));
    FP_TRY(fp_pprof_resolve_string(r, f->system_name, f->at, system_name, err));
    return fp_pprof_resolve_string(r, f->filename, f->at, filename, err);
}

/* The function with this id of the file, as a function of the model in `object`.  A line refers to it in the location
 * at `at`.  *function_id is 0 when there is none (lenient). */
static int resolve_function(struct fp_pprof_reader *r, uint64_t id, uint64_t at, uint32_t object, uint32_t *function_id,
                            struct fp_err *err) {
    uint32_t place = fp_pprof_position(&r->tables.function_ids, id);
    *function_id = 0;
    if (!place) {
        if (!r->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the function of a line", FP_GOT_UNSIGNED, id,
                               "the id of a function", 0);
        r->stats.bad_references++;
        return 0;
    }
    const struct fp_pprof_function *f = &r->tables.functions[place - 1];
    uint32_t name, system_name, filename;
    FP_TRY(function_strings(r, f, &name, &system_name, &filename, err));
    *function_id = fp_model_function(r->model, object, filename, name, system_name == name ? 0 : system_name,
                                     narrow(r, f->start_line));
    return 0;
}

static int resolve_location(struct fp_pprof_reader *r, const struct fp_pprof_location *l, uint32_t *frame,
                            struct fp_err *err) {
    uint32_t place = fp_pprof_position(&r->tables.mapping_ids, l->mapping);
    r->stats.no_mapping += l->mapping && !place;
    uint32_t mapping_id = place ? r->tables.mappings[place - 1].mapping : 0;
    uint32_t object = place ? r->tables.mappings[place - 1].object : 0;
    uint32_t chain = 0;
    for (uint32_t i = l->n_lines; i-- > 0;) { /* the innermost comes first in the file, and last here */
        const struct fp_pprof_line *line = &r->tables.lines[l->first_line + i];
        uint32_t function;
        uint64_t id = line->function || !r->tables.n_without_id ? line->function : l->id;
        FP_TRY(resolve_function(r, id, l->at, object, &function, err));
        if (!function) continue;
        chain = fp_model_line(r->model, function, narrow(r, line->line), narrow(r, line->column), chain);
    }
    *frame = fp_model_frame(r->model, mapping_id, l->address, l->folded ? FP_FRAME_FOLDED : 0, chain);
    return 0;
}

/* An exporter of .NET writes a function for each location, in the same order, and no ids of functions:
 *
 *   location {id: 7  line {line: 12}}    function {name: "f"}
 *   location {id: 9  line {line: 40}}    function {name: "g"}
 *
 * Each function gets the id of its location. */
static int name_functions_by_location(struct fp_pprof_reader *r, struct fp_err *err) {
    if (r->tables.n_without_id != r->tables.location_ids.n - 1) return refuse_functions_without_id(r, err);
    for (uint32_t i = 0; i < r->tables.n_without_id; i++)
        fp_table_intern(&r->tables.function_ids, fp_table_row(&r->tables.location_ids, i + 1));
    r->stats.functions_without_id = r->tables.n_without_id;
    return 0;
}

int fp_pprof_resolve(struct fp_pprof_reader *r, struct fp_err *err) {
    r->feed.first_pass = r->feed.lost = 0;
    r->feed.skip = 0;
    if (!r->tables.n_strings && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "the string table is missing");
    r->stats.bad_references += !r->tables.n_strings;
    if (!r->n_types && r->feed.has_samples)
        return fp_fail(err, FP_E_MALFORMED, r->feed.samples_at, "there are samples but no sample types");
    uint64_t *own[] = {&r->period_type, &r->period_unit,         &r->drop_frames,
                       &r->keep_frames, &r->default_sample_type, &r->doc_url};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) FP_TRY(resolve_own(r, own[i], err));
    for (uint32_t i = 0; i < r->n_comments; i++) FP_TRY(resolve_own(r, &r->comments[i], err));
    for (uint32_t i = 0; i < 2 * r->n_types; i++) FP_TRY(resolve_own(r, &r->types[i], err));
    for (uint32_t i = 0; i + 1 < r->tables.mapping_ids.n; i++) FP_TRY(resolve_mapping(r, &r->tables.mappings[i], err));
    FP_TRY(name_functions_by_location(r, err));
    uint32_t n = r->tables.location_ids.n;
    r->tables.frames = fp_have(calloc(n, sizeof *r->tables.frames));
    r->sample.values = fp_have(calloc(r->n_types + 1, sizeof *r->sample.values));
    for (uint32_t i = 0; i + 1 < n; i++)
        FP_TRY(resolve_location(r, &r->tables.locations[i], &r->tables.frames[i], err));
    /* like CheckValid, this also checks functions that no location refers to */
    for (uint32_t i = 0; i + 1 < r->tables.function_ids.n; i++) {
        uint32_t name, system_name, filename;
        FP_TRY(function_strings(r, &r->tables.functions[i], &name, &system_name, &filename, err));
    }
    return 0;
}
