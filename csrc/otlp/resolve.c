/* Adds the tables of a message to the model, between the passes over it. */
#include "otlp/read_private.h"

/* ---- strings ---- */

/* Sets *id to the model's id of a string; 0 for an index beyond the table when lenient, or in a file without a table.
 */
static int string_of(struct fp_otlp_reader *r, uint64_t index, uint64_t at, uint32_t *id, struct fp_err *err) {
    *id = 0;
    if (!index && !r->tables.n_strings) return 0;
    const int known = fp_otlp_check_index(r, index, r->tables.n_strings, at, "an index into the string table", err);
    if (known > 0) *id = r->tables.strings[index];
    return known < 0 ? known : 0;
}

static int resolve_attribute(struct fp_otlp_reader *r, struct fp_otlp_attribute *a, struct fp_err *err) {
    uint32_t key = 0, unit = 0;
    FP_TRY(a->has_key ? 0 : string_of(r, a->key, a->at, &key, err));
    FP_TRY(string_of(r, a->unit, a->at, &unit, err));
    if (a->kind == FP_OTLP_INDEX) FP_TRY(string_of(r, a->raw, a->at, &a->string, err));
    if (!a->has_key) a->key = key;
    a->unit = unit;
    if (a->kind == FP_OTLP_INDEX) a->kind = FP_OTLP_TEXT;
    if (a->kind == FP_OTLP_NUMBER && !a->number) { /* pprof has no label with number 0 */
        a->kind = FP_OTLP_TEXT;
        a->string = r->words.zero;
    }
    return 0;
}

int fp_otlp_resolve_strings(struct fp_otlp_reader *r, struct fp_err *err) {
    for (uint32_t i = 0; i < r->current.n_attributes; i++) FP_TRY(resolve_attribute(r, &r->current.attributes[i], err));
    for (uint32_t i = 0; i < r->current.n_own; i++) FP_TRY(resolve_attribute(r, &r->current.own[i], err));
    return 0;
}

/* ---- mappings, functions, locations ---- */

/* The attribute of a list element; NULL if it does not exist (lenient).  Entry 0 is usually empty. */
static int attribute_of(struct fp_otlp_reader *r, uint32_t index, uint64_t at, const struct fp_otlp_attribute **a,
                        struct fp_err *err) {
    const int known =
        fp_otlp_check_index(r, index, r->current.n_attributes, at, "an index into the attribute table", err);
    *a = known > 0 ? &r->current.attributes[index] : NULL;
    return known < 0 ? known : 0;
}

static int resolve_mapping(struct fp_otlp_reader *r, struct fp_otlp_mapping *m, struct fp_err *err) {
    const struct fp_otlp_words *words = &r->words;
    uint32_t filename, build_id = 0, flags = 0;
    int status = string_of(r, m->filename, m->entry.at, &filename, err);
    for (uint32_t i = 0; !status && i < m->entry.n; i++) {
        const struct fp_otlp_attribute *a;
        if ((status = attribute_of(r, r->current.lists[m->entry.first + i], m->entry.at, &a, err)) || !a || !a->key)
            continue;
        const int is_true = a->kind == FP_OTLP_TEXT && a->string == words->yes;
        if (a->key == words->gnu || (a->key == words->go && !build_id))
            build_id = a->string;
        else if (a->key == words->has_functions)
            flags |= is_true ? FP_MAPPING_HAS_FUNCTIONS : 0;
        else if (a->key == words->has_filenames)
            flags |= is_true ? FP_MAPPING_HAS_FILENAMES : 0;
        else if (a->key == words->has_line_numbers)
            flags |= is_true ? FP_MAPPING_HAS_LINES : 0;
        else if (a->key == words->has_inline_frames)
            flags |= is_true ? FP_MAPPING_HAS_INLINES : 0;
        else
            r->stats.mapping_attributes++;
    }
    if (status) return status;
    m->object = filename || build_id ? fp_model_object(r->model, filename, build_id) : 0;
    /* a mapping without addresses only names its object */
    const int is_one = m->start || m->limit || m->offset || flags;
    m->id = is_one ? fp_model_mapping(r->model, m->object, m->start, m->limit, m->offset, flags) : 0;
    return 0;
}

/* Narrows a line or column for the model. */
static uint32_t narrow(struct fp_otlp_reader *r, int64_t v) {
    if (v >= 0 && v <= UINT32_MAX) return (uint32_t)v;
    if (v < 0)
        r->stats.negative_lines++;
    else
        r->stats.wide_lines++;
    return 0;
}

static int resolve_function(struct fp_otlp_reader *r, const struct fp_otlp_function *f, uint32_t object,
                            uint32_t *function, struct fp_err *err) {
    uint32_t name, system_name, filename;
    FP_TRY(string_of(r, f->name, f->entry.at, &name, err));
    FP_TRY(string_of(r, f->system_name, f->entry.at, &system_name, err));
    FP_TRY(string_of(r, f->filename, f->entry.at, &filename, err));
    *function = 0;
    if (!name && !system_name && !filename && !f->line) return 0;
    *function =
        fp_model_function(r->model, object, filename, name, system_name == name ? 0 : system_name, narrow(r, f->line));
    return 0;
}

/* Builds the line chain of a location.  The innermost line comes first in the file, and last here. */
static int resolve_lines(struct fp_otlp_reader *r, const struct fp_otlp_location *l, uint32_t object, uint32_t *chain,
                         struct fp_err *err) {
    *chain = 0;
    for (uint32_t i = l->n_lines; i-- > 0;) {
        const struct fp_otlp_line *line = &r->tables.lines[l->first_line + i];
        if (!line->function && !r->tables.n_functions) continue;
        uint32_t function = 0;
        int status =
            fp_otlp_check_index(r, line->function, r->tables.n_functions, l->entry.at, "the function of a line", err);
        if (status > 0) status = resolve_function(r, &r->tables.functions[line->function], object, &function, err);
        if (status < 0) return status;
        if (!function) continue;
        *chain = fp_model_line(r->model, function, narrow(r, line->line), narrow(r, line->column), *chain);
    }
    return 0;
}

static int resolve_location(struct fp_otlp_reader *r, struct fp_otlp_location *l, struct fp_err *err) {
    uint32_t flags = 0, mapping = 0, object = 0, chain;
    int status = 0;
    if (l->mapping || r->tables.n_mappings) {
        status =
            fp_otlp_check_index(r, l->mapping, r->tables.n_mappings, l->entry.at, "the mapping of a location", err);
        if (status < 0) return status;
        if (status) {
            mapping = r->tables.mappings[l->mapping].id;
            object = r->tables.mappings[l->mapping].object;
        }
    }
    for (uint32_t i = 0; i < l->entry.n; i++) {
        const struct fp_otlp_attribute *a;
        FP_TRY(attribute_of(r, r->current.lists[l->entry.first + i], l->entry.at, &a, err));
        if (!a || !a->key) continue;
        if (a->key == r->words.is_folded)
            flags |= a->string == r->words.yes ? FP_FRAME_FOLDED : 0;
        else
            r->stats.location_attributes++;
    }
    FP_TRY(resolve_lines(r, l, object, &chain, err));
    if (!mapping && !l->address && !flags && !chain) return 0; /* entry 0: created when a stack uses it */
    l->frame = fp_model_frame(r->model, mapping, l->address, flags, chain);
    return 0;
}

/* ---- stacks ---- */

static int check_stack(struct fp_otlp_reader *r, struct fp_otlp_stack *s, struct fp_err *err) {
    for (uint32_t i = 0; i < s->entry.n; i++) {
        const uint32_t location = r->current.lists[s->entry.first + i];
        const int known =
            fp_otlp_check_index(r, location, r->tables.n_locations, s->entry.at, "the location of a stack", err);
        if (known < 0) return known;
        s->bad |= !known;
    }
    return 0;
}

/* ---- profiles ---- */

/* Reads fields of pprof that are attributes in OTLP. */
static void profile_attribute(struct fp_otlp_reader *r, uint32_t index, const struct fp_otlp_attribute *a) {
    const struct fp_otlp_words *words = &r->words;
    if (a->key == words->doc_url) r->pprof.doc_url = a->string;
    if (a->key == words->drop_frames) r->pprof.drop_frames = a->string;
    if (a->key == words->keep_frames) r->pprof.keep_frames = a->string;
    if (a->key != words->comment) return;
    FP_PUSH(r->pprof.comments, r->pprof.n_comments, r->caps.cap_comments) = index;
}

/* Finds or adds the value column of a profile. */
static int resolve_type(struct fp_otlp_reader *r, struct fp_otlp_profile *p, struct fp_err *err) {
    uint32_t row[2];
    FP_TRY(string_of(r, p->type.type, p->at, &row[0], err));
    FP_TRY(string_of(r, p->type.unit, p->at, &row[1], err));
    if (!row[0]) row[0] = r->words.value;
    const uint32_t id = fp_table_intern(&r->types, row);
    if (id > FP_OTLP_MOST_TYPES)
        return fp_fail_got(err, FP_E_MALFORMED, p->at, "the number of sample types", FP_GOT_UNSIGNED, id, "at most %",
                           FP_OTLP_MOST_TYPES);
    p->column = id - 1;
    return 0;
}

static int resolve_period(struct fp_otlp_reader *r, const struct fp_otlp_profile *p, struct fp_err *err) {
    uint32_t type, unit;
    FP_TRY(string_of(r, p->period_type.type, p->at, &type, err));
    FP_TRY(string_of(r, p->period_type.unit, p->at, &unit, err));
    if (!p->has_period_type || !p->period) return 0;
    if (r->pprof.has_period) {
        r->stats.other_periods +=
            p->period != r->pprof.period || type != r->pprof.period_type || unit != r->pprof.period_unit;
        return 0;
    }
    r->pprof.has_period = 1;
    r->pprof.period = p->period;
    r->pprof.period_type = type;
    r->pprof.period_unit = unit;
    return 0;
}

static int resolve_profile(struct fp_otlp_reader *r, struct fp_otlp_profile *p, struct fp_err *err) {
    FP_TRY(resolve_type(r, p, err));
    FP_TRY(resolve_period(r, p, err));
    for (uint32_t i = 0; i < p->n; i++) {
        const struct fp_otlp_attribute *a;
        const uint32_t index = r->current.lists[p->first + i];
        FP_TRY(attribute_of(r, index, p->at, &a, err));
        if (a) profile_attribute(r, index, a);
    }
    for (uint32_t i = 0; i < p->n_comments; i++) {
        uint32_t *comment = &r->current.lists[p->comments + i];
        FP_TRY(string_of(r, *comment, p->at, comment, err));
    }
    return 0;
}

int fp_otlp_resolve(struct fp_otlp_reader *r, struct fp_err *err) {
    for (uint32_t i = 0; i < r->tables.n_mappings; i++) FP_TRY(resolve_mapping(r, &r->tables.mappings[i], err));
    for (uint32_t i = 0; i < r->tables.n_locations; i++) FP_TRY(resolve_location(r, &r->tables.locations[i], err));
    for (uint32_t i = 0; i < r->tables.n_functions; i++) { /* also those that no location refers to */
        const struct fp_otlp_function *f = &r->tables.functions[i];
        uint32_t id;
        FP_TRY(string_of(r, f->name, f->entry.at, &id, err));
        FP_TRY(string_of(r, f->system_name, f->entry.at, &id, err));
        FP_TRY(string_of(r, f->filename, f->entry.at, &id, err));
    }
    fp_array_room(&r->tables.nodes, &r->tables.cap_nodes, r->tables.n_stacks, sizeof *r->tables.nodes);
    for (uint32_t i = 0; i < r->tables.n_stacks; i++) {
        r->tables.nodes[i] = FP_NO_ID;
        FP_TRY(check_stack(r, &r->tables.stacks[i], err));
    }
    r->pprof.n_comments = 0;
    for (uint32_t i = 0; i < r->current.n_profiles; i++) FP_TRY(resolve_profile(r, &r->current.profiles[i], err));
    for (uint32_t i = 0; i < r->scan.n_scopes; i++)
        for (uint32_t k = 0; k < r->scan.scopes[i].n; k++) {
            const struct fp_otlp_attribute *a = &r->current.own[r->scan.scopes[i].first + k];
            if (a->key == r->words.default_sample_type) r->pprof.default_sample_type = a->string;
        }
    return 0;
}
