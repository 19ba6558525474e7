/* The metadata: a table of strings, then a tree of elements whose names, attributes and values are indices into it.
 *
 *   root > metadata > class {id 101, name jdk.ExecutionSample, superType jdk.jfr.Event}
 *                     > field {name stackTrace, class 28, constantPool true}
 *                       > annotation {class 40, value TICKS}
 */
#include "jfr/stack_memo.h"
#include "jfr/text.h"

struct fp_jfr_tree {
    struct fp_jfr_reader *r;
    const uint8_t *p, *end;
    const char *what; /* the error */
    uint64_t got;
    int has_got;
};

struct fp_jfr_attributes {
    uint32_t name, super, pool, dimension, value;
    uint64_t id, class_id;
    int has_id, has_class;
};

static int bad(struct fp_jfr_tree *t, const char *what) {
    if (!t->what) t->what = what;
    return 0;
}

static int bad_number(struct fp_jfr_tree *t, const char *what, uint64_t got) {
    if (!t->what) t->what = what, t->got = got, t->has_got = 1;
    return 0;
}

static int number(struct fp_jfr_tree *t, uint64_t *v) {
    const uint8_t *p = fp_jfr_number(t->r, t->p, t->end, 4, v);
    if (!p) return bad(t, "the metadata ends within an element");
    t->p = p;
    return 1;
}

/* Reads the index of a string. */
static int word(struct fp_jfr_tree *t, uint32_t *name) {
    uint64_t i;
    if (!number(t, &i)) return 0;
    if (i >= t->r->metadata.n_strings) return bad_number(t, "the index of a string", i);
    *name = t->r->metadata.strings[i];
    return 1;
}

/* Parses a number: -5, 334. */
static int id_of(struct fp_jfr_tree *t, uint32_t name, uint64_t *id) {
    size_t n, i = 0;
    const uint8_t *p = fp_string(&t->r->metadata.names, name, &n);
    const int is_negative = n && p[0] == '-';
    for (i = (size_t)is_negative, *id = 0; i < n && i < 20 && p[i] >= '0' && p[i] <= '9'; i++)
        *id = *id * 10 + (uint64_t)(p[i] - '0');
    if (i < n || n == (size_t)is_negative) return bad(t, "the id of a type is not a number");
    if (is_negative) *id = 0 - *id;
    return 1;
}

static int attribute(struct fp_jfr_tree *t, struct fp_jfr_attributes *a) {
    uint32_t key, value;
    if (!word(t, &key) || !word(t, &value)) return 0;
    switch (key) {
        case FP_JFR_W_ID: a->has_id = 1; return id_of(t, value, &a->id);
        case FP_JFR_W_CLASS: a->has_class = 1; return id_of(t, value, &a->class_id);
        case FP_JFR_W_NAME: a->name = value; break;
        case FP_JFR_W_SUPER: a->super = value; break;
        case FP_JFR_W_POOL: a->pool = value; break;
        case FP_JFR_W_DIMENSION: a->dimension = value; break;
        case FP_JFR_W_VALUE_0:
        case FP_JFR_W_VALUE: a->value = value; break;
        default: break;
    }
    return 1;
}

static int add_type(struct fp_jfr_tree *t, const struct fp_jfr_attributes *a) {
    struct fp_jfr_reader *r = t->r;
    if (!a->has_id || !a->name) return bad(t, "a type has no name or id");
    const uint32_t type = r->metadata.n_types;
    FP_PUSH(r->metadata.types, r->metadata.n_types, r->metadata.cap_types) =
        (struct fp_jfr_type){.id = a->id, .name = a->name, .super = a->super, .field = r->metadata.n_fields};
    const uint32_t words[] = {FP_WORDS(a->id)};
    const uint32_t row = fp_table_intern(&r->metadata.type_ids, words);
    *FP_AT(r->metadata.type_of, r->metadata.cap_type_of, row) = type;
    if (a->id < sizeof r->metadata.small / sizeof r->metadata.small[0]) r->metadata.small[a->id] = type;
    return 1;
}

static int add_field(struct fp_jfr_tree *t, const struct fp_jfr_attributes *a) {
    struct fp_jfr_reader *r = t->r;
    if (!a->has_class || !a->name) return bad(t, "a field has no name or type");
    size_t n;
    const uint8_t *dimension = fp_string(&r->metadata.names, a->dimension, &n);
    FP_PUSH(r->metadata.fields, r->metadata.n_fields, r->metadata.cap_fields) =
        (struct fp_jfr_field){.type_id = a->class_id,
                              .name = a->name,
                              .pooled = a->pool == FP_JFR_W_TRUE,
                              .array = a->dimension && !(n == 1 && *dimension == '0')};
    r->metadata.types[r->metadata.n_types - 1].n_fields++;
    return 1;
}

static int add_note(struct fp_jfr_tree *t, const struct fp_jfr_attributes *a) {
    struct fp_jfr_reader *r = t->r;
    if (!a->has_class || !a->value) return 1;
    FP_PUSH(r->metadata.notes, r->metadata.n_notes, r->metadata.cap_notes) =
        (struct fp_jfr_note){.type_id = a->class_id, .field = r->metadata.n_fields - 1, .value = a->value};
    return 1;
}

/* Reads an element and its children.  `in`: the name of its parent. */
static int element(struct fp_jfr_tree *t, uint32_t in, unsigned depth) {
    struct fp_jfr_attributes a = {0};
    uint32_t name;
    uint64_t n;
    if (depth > FP_JFR_MOST_DEPTH) return bad(t, "elements are nested too deeply");
    if (!word(t, &name) || !number(t, &n)) return 0;
    while (n--)
        if (!attribute(t, &a)) return 0;
    if (name == FP_JFR_W_CLASS && in == FP_JFR_W_METADATA && !add_type(t, &a)) return 0;
    if (name == FP_JFR_W_FIELD && in == FP_JFR_W_CLASS && !add_field(t, &a)) return 0;
    if (name == FP_JFR_W_ANNOTATION && in == FP_JFR_W_FIELD && !add_note(t, &a)) return 0;
    if (name == FP_JFR_W_CLASS && in != FP_JFR_W_METADATA) name = 0; /* not a type: ignore it */
    if (name == FP_JFR_W_FIELD && in != FP_JFR_W_CLASS) name = 0;
    if (!number(t, &n)) return 0;
    while (n--)
        if (!element(t, name, depth + 1)) return 0;
    return 1;
}

static int strings(struct fp_jfr_tree *t) {
    struct fp_jfr_reader *r = t->r;
    uint64_t n;
    if (!number(t, &n)) return 0;
    if (n > (uint64_t)(t->end - t->p)) return bad_number(t, "the number of strings", n);
    fp_array_room(&r->metadata.strings, &r->metadata.cap_strings, n, sizeof *r->metadata.strings);
    for (r->metadata.n_strings = 0; n--; r->metadata.n_strings++) {
        struct fp_jfr_string string;
        r->names.name.n = 0;
        const uint8_t *p = fp_jfr_string(r, t->p, t->end, &r->names.name, &string);
        if (!p || string.is_constant) return bad(t, "a string of the metadata is damaged");
        t->p = p;
        r->metadata.strings[r->metadata.n_strings] =
            fp_strings_intern(&r->metadata.names, r->names.name.p, r->names.name.n);
    }
    return 1;
}

/* ---- roles of types ---- */

static void set_role(struct fp_jfr_reader *r, uint32_t type, unsigned role) {
    struct fp_jfr_type *t = &r->metadata.types[type];
    if (!type || t->role || (t->primitive && t->primitive != FP_JFR_STRING)) return;
    t->role = (uint8_t)(t->primitive ? FP_JFR_TEXT : role);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const struct fp_jfr_field *f = &r->metadata.fields[t->field + i];
        const uint32_t w = f->name;
        if (role == FP_JFR_TEXT && !i) set_role(r, f->type, FP_JFR_TEXT);
        if (role == FP_JFR_STACK && w == FP_JFR_W_FRAMES) set_role(r, f->type, FP_JFR_FRAME);
        if (role == FP_JFR_FRAME && w == FP_JFR_W_METHOD) set_role(r, f->type, FP_JFR_METHOD);
        if (role == FP_JFR_FRAME && w == FP_JFR_W_TYPE) set_role(r, f->type, FP_JFR_TEXT);
        if (role == FP_JFR_METHOD && w == FP_JFR_W_TYPE) set_role(r, f->type, FP_JFR_CLASS);
        if (role == FP_JFR_METHOD && (w == FP_JFR_W_NAME || w == FP_JFR_W_DESCRIPTOR))
            set_role(r, f->type, FP_JFR_TEXT);
        if (role == FP_JFR_CLASS && w == FP_JFR_W_NAME) set_role(r, f->type, FP_JFR_TEXT);
        if (role == FP_JFR_THREAD && (w == FP_JFR_W_OS_NAME || w == FP_JFR_W_JAVA_NAME))
            set_role(r, f->type, FP_JFR_TEXT);
    }
}

/* The expected type of an event's field; NULL if the field has it. */
static const char *unfit(const struct fp_jfr_reader *r, const struct fp_jfr_field *f, unsigned slot) {
    const struct fp_jfr_type *t = &r->metadata.types[f->type];
    switch (slot) {
        case FP_JFR_EVENT_THREAD:
        case FP_JFR_EVENT_STACK: return f->array || !f->type || t->primitive ? "a type with fields" : NULL;
        case FP_JFR_EVENT_STATE:
        case FP_JFR_EVENT_CLASS:
            return f->array || !f->type || (t->primitive && t->primitive != FP_JFR_STRING) ? "a type with a name"
                                                                                           : NULL;
        default:
            return f->array || f->pooled || t->primitive < FP_JFR_BYTE || t->primitive > FP_JFR_DOUBLE ? "a number"
                                                                                                       : NULL;
    }
}

/* Sets the roles of the types that an event refers to.  0, or the field of an unexpected type. */
static const struct fp_jfr_field *event_roles(struct fp_jfr_reader *r, const struct fp_jfr_type *t, const char **want) {
    static const uint8_t ROLE[] = {[FP_JFR_EVENT_THREAD] = FP_JFR_THREAD,
                                   [FP_JFR_EVENT_STACK] = FP_JFR_STACK,
                                   [FP_JFR_EVENT_STATE] = FP_JFR_TEXT,
                                   [FP_JFR_EVENT_CLASS] = FP_JFR_CLASS,
                                   [FP_JFR_EVENT_VALUE] = FP_JFR_NO_ROLE};
    struct fp_jfr_want scratch[16];
    uint32_t n;
    const struct fp_jfr_want *wants = fp_jfr_wants(t, &n, scratch);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const struct fp_jfr_field *f = &r->metadata.fields[t->field + i];
        for (uint32_t k = 0; k < n; k++) {
            if (wants[k].word != f->name || f->name >= FP_JFR_WORDS) continue;
            if ((*want = unfit(r, f, wants[k].slot))) {
                if ((t->is_span || t->is_instant) && wants[k].slot >= FP_JFR_EVENT_STATE)
                    continue; /* such fields may have any type */
                return f;
            }
            if (ROLE[wants[k].slot]) set_role(r, f->type, ROLE[wants[k].slot]);
        }
    }
    return NULL;
}

static void resolve(struct fp_jfr_reader *r) {
    for (uint32_t i = 1; i < r->metadata.n_types; i++) {
        struct fp_jfr_type *t = &r->metadata.types[i];
        size_t n;
        const uint8_t *name = fp_string(&r->metadata.names, t->name, &n);
        if (t->name >= FP_JFR_W_BOOLEAN && t->name <= FP_JFR_W_STRING && !t->n_fields)
            t->primitive = (uint8_t)(t->name - FP_JFR_W_BOOLEAN + 1);
        if (t->primitive == FP_JFR_STRING) r->metadata.string_type = i;
        t->event = fp_jfr_event_of(name, n);
        if (r->timeline) t->event = 0;
        t->fact = t->event ? 0 : fp_jfr_fact_of(name, n);
    }
    for (uint32_t i = 0; i < r->metadata.n_fields; i++)
        r->metadata.fields[i].type = fp_jfr_find_type(r, r->metadata.fields[i].type_id);
    for (uint32_t i = 0; i < r->metadata.n_notes; i++) {
        const struct fp_jfr_note *note = &r->metadata.notes[i];
        const uint32_t name = r->metadata.types[fp_jfr_find_type(r, note->type_id)].name;
        if ((name == FP_JFR_W_TIMESPAN || name == FP_JFR_W_TIMESTAMP) && note->value >= FP_JFR_W_TICKS &&
            note->value <= FP_JFR_W_SECONDS)
            r->metadata.fields[note->field].unit = (uint8_t)(note->value - FP_JFR_W_TICKS + 1);
    }
}

/* Finds the events with durations: a timeline reads them, and instants of threads and values, else they are counted.
 * Fields of unexpected types are not read. */
static void find_spans(struct fp_jfr_reader *r) {
    for (uint32_t i = 1; i < r->metadata.n_types; i++) {
        struct fp_jfr_type *t = &r->metadata.types[i];
        const char *want;
        int has_start = 0, has_duration = 0, has_thread = 0;
        if (t->fact || t->is_bad) continue;
        for (uint32_t k = 0; k < t->n_fields; k++) {
            const struct fp_jfr_field *f = &r->metadata.fields[t->field + k];
            has_start |= f->name == FP_JFR_W_START_TIME && !unfit(r, f, FP_JFR_START);
            has_duration |= f->name == FP_JFR_W_DURATION && !unfit(r, f, FP_JFR_START);
            has_thread |= f->name == FP_JFR_W_EVENT_THREAD;
        }
        const int is_timed = has_start && has_duration;
        size_t n;
        const uint8_t *name = fp_string(&r->metadata.names, t->name, &n);
        const int is_short = has_start && !is_timed && !fp_jfr_event_of(name, n);
        const uint32_t counter = is_short ? fp_jfr_counter_of(name, n) : 0;
        t->is_shown = !r->timeline && is_short && (counter || has_thread);
        if (r->timeline) {
            t->is_span = (uint8_t)is_timed;
            t->counter = (uint8_t)counter;
            t->is_instant = is_short && has_thread && !counter;
            if (has_start && event_roles(r, t, &want)) t->is_span = t->is_instant = t->counter = 0;
        } else if (t->event ? r->is_probe : is_timed) {
            t->fact = FP_JFR_TIMED + 1;
        }
        t->is_lasting = t->event && is_timed;
    }
}

/* ---- the record ---- */

static void empty(struct fp_jfr_reader *r) {
    r->metadata.n_types = r->metadata.n_fields = r->metadata.n_notes = r->programs.n_ops = r->programs.n =
        r->metadata.n_strings = r->metadata.string_type = 0;
    r->programs.n_slots = 0;
    r->metadata.described.n = 0;
    memset(r->metadata.small, 0, sizeof r->metadata.small);
    fp_strings_empty(&r->metadata.names);
    fp_table_empty(&r->metadata.type_ids);
    fp_jfr_forget_memo(r);
    /* type 0 means "none" */
    fp_jfr_add_words(&r->metadata.names);
    fp_array_room(&r->metadata.types, &r->metadata.cap_types, 1, sizeof *r->metadata.types);
    r->metadata.types[r->metadata.n_types++] = (struct fp_jfr_type){0};
}

static int fail(const struct fp_jfr_tree *t, uint64_t at, const uint8_t *start, struct fp_err *err) {
    const uint64_t offset = at + (uint64_t)(t->p - start);
    if (!t->has_got) return fp_fail(err, FP_E_MALFORMED, offset, t->what);
    return fp_fail_got(err, FP_E_MALFORMED, offset, t->what, FP_GOT_UNSIGNED, t->got, "less than %",
                       t->r->metadata.n_strings ? t->r->metadata.n_strings : (uint64_t)(t->end - t->p));
}

static int read(struct fp_jfr_reader *r, const struct fp_jfr_record *record, struct fp_err *err) {
    struct fp_jfr_tree t = {.r = r, .p = record->body, .end = record->end};
    uint64_t skipped;
    for (int i = 0; i < 3 && t.p; i++) t.p = fp_jfr_number(r, t.p, t.end, 8, &skipped);
    if (!t.p) return fp_fail(err, FP_E_MALFORMED, record->at, "the metadata is too short");
    const size_t n = (size_t)(t.end - t.p);
    if (r->metadata.described.n == n && r->metadata.was_compressed == r->chunk.compressed &&
        !memcmp(r->metadata.described.p, t.p, n))
        return 0;
    const uint8_t *start = t.p;
    empty(r);
    if (!strings(&t) || !element(&t, 0, 0)) return fail(&t, record->at + record->size - n, start, err);
    resolve(r);
    for (uint32_t i = 1; i < r->metadata.n_types; i++) {
        const char *want;
        const struct fp_jfr_field *f = r->metadata.types[i].event ? event_roles(r, &r->metadata.types[i], &want) : NULL;
        if (!f) continue;
        if (!r->lenient) {
            size_t length;
            const uint8_t *name = fp_string(&r->metadata.names, r->metadata.types[i].name, &length);
            fp_fail_text(err, FP_E_MALFORMED, record->at, 0, "the type of a field of an event", name, length, want);
            return FP_E_MALFORMED;
        }
        r->metadata.types[i].event = 0;
        r->metadata.types[i].is_bad = 1;
    }
    find_spans(r);
    for (uint32_t i = 1; i < r->metadata.n_types; i++)
        r->metadata.types[i].is_row = r->metadata.types[i].event || r->metadata.types[i].is_span ||
                                      r->metadata.types[i].is_instant || r->metadata.types[i].counter;
    set_role(r, r->metadata.string_type, FP_JFR_TEXT);
    fp_buf_put(&r->metadata.described, start, n);
    r->metadata.was_compressed = r->chunk.compressed;
    return 0;
}

int fp_jfr_metadata(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_jfr_record record;
    int status = fp_jfr_head(r, in, &record, err);
    if (status) return status;
    if (record.size > in->n - in->pos) return in->eof ? fp_jfr_cut(&record, err) : FP_MORE;
    if (record.type) {
        return fp_fail_got(err, FP_E_MALFORMED, record.at, "the type of the metadata", FP_GOT_UNSIGNED, record.type,
                           "0", 0);
    }
    if ((status = read(r, &record, err))) {
        r->metadata.described.n = 0;
        return status;
    }
    in->pos += record.size;
    r->metadata.is_described = 1;
    return FP_DONE;
}
