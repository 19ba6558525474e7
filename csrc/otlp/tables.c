/* The first pass over a message: its dictionary, and its profiles except for the samples. */
#include "otlp/read_private.h"

#define TO(message, member) FP_WIRE_TO(struct fp_otlp_##message, member)
const struct fp_wire_schema fp_otlp_messages[] = {
    [FP_OTLP_MAPPING] = {" VVVVL",
                         {0, TO(mapping, start), TO(mapping, limit), TO(mapping, offset), TO(mapping, filename)}},
    [FP_OTLP_LOCATION] = {" VVBL", {0, TO(location, mapping), TO(location, address)}},
    [FP_OTLP_FUNCTION] = {" VVVV",
                          {0, TO(function, name), TO(function, system_name), TO(function, filename),
                           TO(function, line)}},
    [FP_OTLP_LINK] = {.kinds = " BB"},
    [FP_OTLP_ATTRIBUTE] = {" VBV", {0, TO(attribute, key), 0, TO(attribute, unit)}},
    [FP_OTLP_STACK] = {.kinds = " L"},
    [FP_OTLP_LINE] = {" VVV", {0, TO(line, function), TO(line, line), TO(line, column)}},
    [FP_OTLP_VALUE_TYPE] = {" VV", {0, TO(value_type, type), TO(value_type, unit)}},
    [FP_OTLP_KEY_VALUE] = {.kinds = " BBV"},
    [FP_OTLP_ANY_VALUE] = {.kinds = " BVVFBBBV"},
    [FP_OTLP_ATTRIBUTES] = {.kinds = " BV"},
    [FP_OTLP_SCOPE_HEAD] = {.kinds = " BBBV"},
};

/* Reads fields of a message into `to`, as fp_wire_read. */
static int read_fields(struct fp_otlp_reader *r, struct fp_wire *m, uint32_t message, void *to,
                       struct fp_wire_field *f) {
    return fp_wire_read(m, &fp_otlp_messages[message], to, f, &r->stats.unknown_fields);
}

/* Appends the numbers of a list to r->current.lists.  0, or FP_E_MALFORMED: the caller adds the offset. */
static int add_list(struct fp_otlp_reader *r, const struct fp_wire_field *f) {
    struct fp_wire list = fp_wire_inside(f);
    uint64_t v;
    int status;
    while ((status = fp_wire_next_number(&list, &v)) > 0) {
        FP_PUSH(r->current.lists, r->caps.n_lists, r->caps.cap_lists) =
            v < FP_NO_ID ? (uint32_t)v : FP_NO_ID; /* beyond any table */
    }
    return status ? FP_E_MALFORMED : 0;
}

/* ---- attributes ---- */

static uint32_t intern(struct fp_otlp_reader *r, const uint8_t *p, size_t n) {
    return fp_strings_intern(&r->model->strings, p, n);
}

static void raw_value(struct fp_otlp_reader *r, struct fp_otlp_attribute *a, const uint8_t *p, size_t n) {
    a->kind = FP_OTLP_RAW;
    a->raw = r->current.raw.n;
    a->number = (int64_t)n;
    fp_buf_put(&r->current.raw, p, n);
}

/* Reads an AnyValue; the last of several fields wins.  0 or FP_E_MALFORMED. */
static int read_value(struct fp_otlp_reader *r, const struct fp_wire_field *value, struct fp_otlp_attribute *a) {
    struct fp_wire m = fp_wire_inside(value);
    struct fp_wire_field f;
    int kind;
    a->kind = FP_OTLP_NOTHING;
    while ((kind = read_fields(r, &m, FP_OTLP_ANY_VALUE, a, &f)) > 0) {
        switch (f.number) {
            case 1:
                a->kind = FP_OTLP_TEXT;
                a->string = intern(r, f.p, f.n);
                break;
            case 2:
                a->kind = FP_OTLP_TEXT;
                a->string = f.v ? r->words.yes : r->words.no;
                a->odd = 1;
                break;
            case 3:
                a->kind = FP_OTLP_NUMBER;
                a->number = (int64_t)f.v;
                break;
            case 8:
                a->kind = FP_OTLP_INDEX;
                a->raw = f.v;
                break;
            default:
                a->odd = 1;
                raw_value(r, a, value->p, value->n);
                break;
        }
    }
    return kind ? FP_E_MALFORMED : 0;
}

static void add_raw(struct fp_otlp_reader *r, uint64_t attribute) {
    if (attribute > UINT32_MAX) (void)fp_escape();
    FP_PUSH(r->current.raws, r->current.n_raws, r->caps.cap_raws) = (uint32_t)attribute;
}

static void add_attribute(struct fp_otlp_reader *r, const struct fp_otlp_attribute *a) {
    if (a->kind == FP_OTLP_RAW) add_raw(r, 2 * (uint64_t)r->current.n_attributes);
    FP_PUSH(r->current.attributes, r->current.n_attributes, r->caps.cap_attributes) = *a;
}

/* Reads an entry of the attribute table, KeyValueAndUnit, or (`own`) a KeyValue with its own strings. */
static int read_attribute(struct fp_otlp_reader *r, const struct fp_wire_field *entry, struct fp_otlp_attribute *a,
                          int own) {
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind, status = 0;
    while (!status && (kind = read_fields(r, &m, own ? FP_OTLP_KEY_VALUE : FP_OTLP_ATTRIBUTE, a, &f)) > 0) {
        if (f.number == 2) {
            status = read_value(r, &f, a);
            continue;
        }
        a->has_key = f.number == 1;
        a->key = a->has_key ? intern(r, f.p, f.n) : f.v;
    }
    return status || kind ? FP_E_MALFORMED : 0;
}

/* Adds an attribute; a malformed entry still takes its index in the table. */
static int take_attribute(struct fp_otlp_reader *r, const struct fp_wire_field *entry, uint64_t at,
                          struct fp_err *err) {
    struct fp_otlp_attribute a = {.at = at};
    if (read_attribute(r, entry, &a, 0)) {
        FP_TRY(fp_otlp_bad_entry(r, at, "an attribute is malformed", err));
        a = (struct fp_otlp_attribute){.at = at};
    }
    add_attribute(r, &a);
    return 0;
}

/* Adds an attribute to those from *first on of a resource or scope.  If it comes in pieces, with others in between, the
 * first attributes are copied. */
static int own_attribute(struct fp_otlp_reader *r, uint64_t at, const struct fp_wire_field *f, uint32_t *first,
                         uint32_t *n, struct fp_err *err) {
    struct fp_otlp_attribute a = {.at = at};
    if (read_attribute(r, f, &a, 1)) return fp_otlp_bad_entry(r, at, "an attribute is malformed", err);
    const int moves = *n && *first + *n != r->current.n_own;
    fp_array_room(&r->current.own, &r->caps.cap_own, (uint64_t)r->current.n_own + 1 + (moves ? *n : 0), sizeof a);
    for (uint32_t i = 0; moves && i < *n; i++) {
        r->current.own[r->current.n_own + i] = r->current.own[*first + i];
        if (r->current.own[*first + i].kind == FP_OTLP_RAW) add_raw(r, 2 * ((uint64_t)r->current.n_own + i) + 1);
    }
    if (moves || !*n) *first = r->current.n_own;
    if (moves) r->current.n_own += *n;
    if (a.kind == FP_OTLP_RAW) add_raw(r, 2 * (uint64_t)r->current.n_own + 1);
    r->current.own[r->current.n_own++] = a;
    ++*n;
    return 0;
}

static int take_resource(struct fp_otlp_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                         struct fp_err *err) {
    struct fp_otlp_resource *resource = &r->scan.resources[r->scan.n_resources - 1];
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind;
    while ((kind = read_fields(r, &m, FP_OTLP_ATTRIBUTES, NULL, &f)) > 0) {
        if (f.number == 2) {
            r->stats.dropped_attributes += f.v;
        } else {
            const uint64_t at = fp_otlp_offset(in, f.at);
            FP_TRY(own_attribute(r, at, &f, &resource->first, &resource->n, err));
        }
    }
    return kind == FP_WIRE_BAD ? fp_otlp_bad_entry(r, fp_otlp_offset(in, m.p), "a resource is malformed", err) : 0;
}

static int take_scope(struct fp_otlp_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                      struct fp_err *err) {
    struct fp_otlp_scope *scope = &r->scan.scopes[r->scan.n_scopes - 1];
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind;
    while ((kind = read_fields(r, &m, FP_OTLP_SCOPE_HEAD, NULL, &f)) > 0) {
        const uint64_t at = fp_otlp_offset(in, f.at);
        int status = 0;
        if (f.number == 3) {
            status = own_attribute(r, at, &f, &scope->first, &scope->n, err);
        } else if (f.number == 4) {
            r->stats.dropped_attributes += f.v;
        } else {
            *(f.number == 1 ? &scope->name : &scope->version) = intern(r, f.p, f.n);
        }
        if (status) return status;
    }
    return kind == FP_WIRE_BAD ? fp_otlp_bad_entry(r, fp_otlp_offset(in, m.p), "a scope is malformed", err) : 0;
}

/* ---- the dictionary ---- */

/* Adds a line to r->tables.lines.  0 or FP_E_MALFORMED. */
static int add_line(struct fp_otlp_reader *r, const struct fp_wire_field *entry) {
    struct fp_otlp_line e = {0};
    if (fp_wire_all(fp_wire_inside(entry), &fp_otlp_messages[FP_OTLP_LINE], &e, &r->stats.unknown_fields))
        return FP_E_MALFORMED;
    FP_PUSH(r->tables.lines, r->tables.n_lines, r->tables.cap_lines) = e;
    return 0;
}

/* The string of an id in hexadecimal; 0 if it is empty or all zeros. */
static uint32_t hex_id(struct fp_otlp_reader *r, const struct fp_wire_field *f) {
    size_t zeros = 0;
    while (zeros < f->n && !f->p[zeros]) zeros++;
    if (zeros == f->n) return 0;
    r->rows.key.n = 0;
    fp_buf_hex(&r->rows.key, f->p, f->n);
    return intern(r, r->rows.key.p, r->rows.key.n);
}

/* An entry of any of these tables. */
union entry {
    struct fp_otlp_entry entry;
    struct fp_otlp_mapping mapping;
    struct fp_otlp_location location;
    struct fp_otlp_function function;
    struct fp_otlp_link link;
    struct fp_otlp_stack stack;
};

/* A field for which the schema has no place: a line, an id of a link, or a list. */
static int take_part(struct fp_otlp_reader *r, uint32_t table, union entry *e, const struct fp_wire_field *f) {
    if (table == FP_OTLP_LOCATION && f->number == 3) return add_line(r, f);
    if (table != FP_OTLP_LINK) return add_list(r, f);
    *(f->number == 1 ? &e->link.trace : &e->link.span) = hex_id(r, f);
    return 0;
}

struct table {
    void *entries; /* the address of the pointer to them */
    uint32_t *n, *cap;
    size_t width;
    const char *malformed;
};

/* Adds an entry to its table.  When lenient, a malformed entry becomes an empty one, so that the others keep their
 * indices. */
static int take_row(struct fp_otlp_reader *r, const struct fp_wire_field *entry, uint64_t at, struct fp_err *err) {
    const struct table tables[] = {
        [FP_OTLP_MAPPING] = {&r->tables.mappings, &r->tables.n_mappings, &r->tables.cap_mappings,
                             sizeof *r->tables.mappings, "a mapping is malformed"},
        [FP_OTLP_LOCATION] = {&r->tables.locations, &r->tables.n_locations, &r->tables.cap_locations,
                              sizeof *r->tables.locations, "a location is malformed"},
        [FP_OTLP_FUNCTION] = {&r->tables.functions, &r->tables.n_functions, &r->tables.cap_functions,
                              sizeof *r->tables.functions, "a function is malformed"},
        [FP_OTLP_LINK] = {&r->tables.links, &r->tables.n_links, &r->tables.cap_links, sizeof *r->tables.links,
                          "a link is malformed"},
        [FP_OTLP_STACK] = {&r->tables.stacks, &r->tables.n_stacks, &r->tables.cap_stacks, sizeof *r->tables.stacks,
                           "a stack is malformed"},
    };
    const struct table *t = &tables[entry->number];
    const uint32_t first_line = r->tables.n_lines;
    union entry e;
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    int kind = 0, status = 0;
    memset(&e, 0, sizeof e);
    e.entry = (struct fp_otlp_entry){.at = at, .first = r->caps.n_lists};
    while (!status && (kind = read_fields(r, &m, entry->number, &e, &f)) > 0)
        status = take_part(r, entry->number, &e, &f);
    e.entry.n = r->caps.n_lists - e.entry.first;
    if (entry->number == FP_OTLP_LOCATION) {
        e.location.first_line = first_line;
        e.location.n_lines = r->tables.n_lines - first_line;
    }
    if (status || kind) {
        memset(&e, 0, sizeof e);
        e.entry.at = at;
        if (entry->number == FP_OTLP_STACK) e.stack.bad = 1;
        if ((status = fp_otlp_bad_entry(r, at, t->malformed, err))) return status;
    }
    fp_array_room(t->entries, t->cap, (uint64_t)*t->n + 1, t->width);
    uint8_t *entries;
    memcpy(&entries, t->entries, sizeof entries);
    memcpy(entries + *t->n * t->width, &e, t->width);
    ++*t->n;
    return 0;
}

static int take_string(struct fp_otlp_reader *r, const struct fp_wire_field *entry) {
    const uint32_t id = intern(r, entry->p, entry->n);
    FP_PUSH(r->tables.strings, r->tables.n_strings, r->tables.cap_strings) = id;
    return 0;
}

static int take_entry(struct fp_otlp_reader *r, const struct fp_window *in, const struct fp_wire_field *f,
                      struct fp_err *err) {
    const uint64_t at = fp_otlp_offset(in, f->at);
    const uint32_t n[] = {0,
                          r->tables.n_mappings,
                          r->tables.n_locations,
                          r->tables.n_functions,
                          r->tables.n_links,
                          r->tables.n_strings,
                          r->current.n_attributes,
                          r->tables.n_stacks};
    if (f->number >= sizeof n / sizeof *n) {
        r->stats.unknown_fields++;
        return 0;
    }
    r->stats.no_zero_entry += !n[f->number] && f->n;
    if (f->number == FP_OTLP_STRING) return take_string(r, f);
    return f->number == FP_OTLP_ATTRIBUTE ? take_attribute(r, f, at, err) : take_row(r, f, at, err);
}

/* ---- profiles ---- */

static int value_type(struct fp_otlp_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                      struct fp_otlp_value_type *to, struct fp_err *err) {
    /* 1.8 has a third field, the aggregation */
    const uint8_t *broken = fp_wire_all(fp_wire_inside(entry), &fp_otlp_messages[FP_OTLP_VALUE_TYPE], to, NULL);
    return broken ? fp_otlp_bad_entry(r, fp_otlp_offset(in, broken), "a value type is malformed", err) : 0;
}

static int take_profile_list(struct fp_otlp_reader *r, const struct fp_window *in, const struct fp_wire_field *f,
                             uint32_t *first, uint32_t *n, struct fp_err *err) {
    const int moves = *n && *first + *n != r->caps.n_lists; /* in several pieces */
    fp_array_room(&r->current.lists, &r->caps.cap_lists, (uint64_t)r->caps.n_lists + (moves ? *n : 0), 4);
    if (moves) memcpy(r->current.lists + r->caps.n_lists, r->current.lists + *first, 4 * (size_t)*n);
    if (moves || !*n) *first = r->caps.n_lists;
    if (moves) r->caps.n_lists += *n;
    const int status = add_list(r, f);
    *n = r->caps.n_lists - *first;
    return status ? fp_otlp_bad_entry(r, fp_otlp_offset(in, f->at), "a list of a profile is malformed", err) : 0;
}

/* Reads the fields from 7 on, whose numbers differ between releases. */
static int late_profile_field(struct fp_otlp_reader *r, struct fp_otlp_profile *p, const struct fp_window *in,
                              const struct fp_wire_field *f, struct fp_err *err) {
    const int is_1_8 = r->layout == FP_OTLP_1_8;
    const uint32_t number = f->number - (uint32_t)is_1_8; /* as in 1.9 */
    const int is_list = f->wire == FP_WIRE_BYTES || f->wire == FP_WIRE_VARINT;
    if (is_1_8 && f->number == 7 && is_list) return take_profile_list(r, in, f, &p->comments, &p->n_comments, err);
    switch (number) {
        case 7: r->stats.profile_ids += f->n != 0; return 0;
        case 8: r->stats.dropped_attributes += f->v; return 0;
        case 9: return 0; /* the format of the payload */
        case 10: r->stats.payloads += f->n != 0; return 0;
        case 11:
            if (is_list) return take_profile_list(r, in, f, &p->first, &p->n, err);
            break;
        default: break;
    }
    r->stats.unknown_fields++;
    return 0;
}

static int take_profile_field(struct fp_otlp_reader *r, const struct fp_window *in, struct fp_wire_field *f,
                              struct fp_err *err) {
    struct fp_otlp_profile *p = &r->current.profiles[r->current.n_profiles - 1];
    if (fp_wire_store(fp_otlp_schema(FP_OTLP_PROFILE), p, f)) return 0;
    switch (f->number) {
        case 1: return value_type(r, in, f, &p->type, err);
        case FP_OTLP_SAMPLE: return 0;
        case 5: p->has_period_type = 1; return value_type(r, in, f, &p->period_type, err);
        default: return late_profile_field(r, p, in, f, err);
    }
}

static int take_begin(struct fp_otlp_reader *r, const struct fp_window *in) {
    switch (fp_otlp_inside(&r->walk)) {
        case FP_OTLP_RESOURCE_PROFILES:
            FP_PUSH(r->scan.resources, r->scan.n_resources, r->scan.cap_resources) = (struct fp_otlp_resource){0};
            r->stats.resources++;
            return 0;
        case FP_OTLP_SCOPE_PROFILES:
            FP_PUSH(r->scan.scopes, r->scan.n_scopes, r->scan.cap_scopes) =
                (struct fp_otlp_scope){.resource = r->scan.n_resources - 1};
            return 0;
        case FP_OTLP_PROFILE:
            FP_PUSH(r->current.profiles, r->current.n_profiles, r->caps.cap_profiles) = (struct fp_otlp_profile){
                .at = r->walk.at, .start = in->base + in->pos, .end = UINT64_MAX, .scope = r->scan.n_scopes - 1};
            r->stats.profiles++;
            return 0;
        default: return 0;
    }
}

/* The current profile ends at the given offset. */
static void end_profile(struct fp_otlp_reader *r, uint64_t at) {
    struct fp_otlp_profile *p = r->current.n_profiles ? &r->current.profiles[r->current.n_profiles - 1] : NULL;
    if (p && p->end == UINT64_MAX) p->end = at;
}

int fp_otlp_tables(struct fp_otlp_reader *r, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        struct fp_wire_field f;
        int status = fp_otlp_next(&r->walk, in, &f, err);
        if (status == FP_OTLP_BEGIN) {
            status = take_begin(r, in);
        } else if (status == FP_OTLP_END) {
            status = 0;
            if (fp_otlp_inside(&r->walk) == FP_OTLP_SCOPE_PROFILES) end_profile(r, r->walk.end_at);
        } else if (status != FP_OTLP_FIELD) {
            if (status == FP_DONE) end_profile(r, in->base + in->n); /* lenient: the message is cut short */
            return status;
        } else {
            switch (fp_otlp_inside(&r->walk)) {
                case FP_OTLP_DICTIONARY: status = take_entry(r, in, &f, err); break;
                case FP_OTLP_PROFILE: status = take_profile_field(r, in, &f, err); break;
                case FP_OTLP_RESOURCE_PROFILES:
                case FP_OTLP_SCOPE_PROFILES: {
                    const int is_resource = fp_otlp_inside(&r->walk) == FP_OTLP_RESOURCE_PROFILES;
                    status = 0;
                    if (f.number == FP_OTLP_SCHEMA_URL)
                        r->stats.schema_urls += f.n != 0;
                    else if (f.number == FP_OTLP_RESOURCE)
                        status = is_resource ? take_resource(r, in, &f, err) : take_scope(r, in, &f, err);
                    else
                        r->stats.unknown_fields++;
                    break;
                }
                default: r->stats.unknown_fields++; status = 0;
            }
        }
        if (status) return status;
    }
}
