#include "otlp/read.h"

#include "otlp/read_private.h"

struct fp_otlp_reader *fp_otlp_reader_new(struct fp_model *model, int lenient) {
    struct fp_otlp_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = r->walk.lenient = lenient;
    r->evidence.smallest = r->evidence.least_attributes = UINT64_MAX;
    r->rows.cursors = fp_have(calloc(FP_OTLP_IN_STEP, sizeof *r->rows.cursors));
    fp_table_init(&r->types, 2);
    fp_strings_init(&r->rows.label_sets);
    return r;
}

void fp_otlp_reader_free(struct fp_otlp_reader *r) {
    fp_table_clear(&r->types);
    fp_strings_clear(&r->rows.label_sets);
    FP_FREE_BUFFERS(&r->current.raw, &r->rows.key);
    for (uint32_t k = 0; r->rows.cursors && k < FP_OTLP_IN_STEP; k++) {
        FP_FREE_BUFFERS(&r->rows.cursors[k].attributes, &r->rows.cursors[k].packed, &r->rows.cursors[k].times);
        free(r->rows.cursors[k].values);
    }
    FP_FREE(r->messages, r->current.attributes, r->current.own, r->current.raws, r->current.profiles, r->current.lists,
            r->pprof.comments, r->scan.scopes, r->scan.resources, r->tables.strings, r->tables.mappings,
            r->tables.functions, r->tables.locations, r->tables.lines, r->tables.links, r->tables.stacks,
            r->tables.nodes, r->tables.path, r->rows.labels, r->rows.cursors, r);
}

int fp_otlp_check_index(struct fp_otlp_reader *r, uint64_t index, uint32_t n, uint64_t at, const char *what,
                        struct fp_err *err) {
    if (FP_LIKELY(index < n)) return 1;
    if (!r->lenient) return fp_fail_got(err, FP_E_MALFORMED, at, what, FP_GOT_SIGNED, index, "less than %", n);
    r->stats.bad_references++;
    return 0;
}

/* ---- recognition ---- */

/* Whether the visible bytes are text. */
static int is_text(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] < ' ' && p[i] != '\t' && p[i] != '\n') return 0;
    return 1;
}

enum sniffed { NOT = 0, PERHAPS = 1, SURELY = 2 };

/* Attributes: 1 {1: key, 2: value}.  The first key decides: it must be text. */
static int sniff_attributes(const uint8_t *p, const uint8_t *end) {
    struct fp_wire_field f;
    const int used = fp_wire_read_head(p, end, &f);
    if (used == FP_WIRE_CUT) return PERHAPS;
    if (used < 0) return NOT;
    if (f.number != 1 || f.wire != FP_WIRE_BYTES) return f.number <= 3 ? PERHAPS : NOT;
    const uint8_t *const limit = f.n > (size_t)(end - f.p) ? end : f.p + f.n;
    p = f.p;
    struct fp_wire_field key;
    if (p == limit || fp_wire_read_head(p, limit, &key) <= 0) return p == end ? PERHAPS : NOT;
    if (key.number == 3 && key.wire == FP_WIRE_VARINT) return PERHAPS;
    if (key.number != 1 || key.wire != FP_WIRE_BYTES) return NOT;
    const size_t left = (size_t)(limit - key.p);
    if (!key.n || !is_text(key.p, key.n < left ? key.n : left)) return NOT;
    if (key.n >= left) return limit == end ? PERHAPS : NOT;
    return key.p[key.n] == 0x12 ? SURELY : NOT; /* 2: the value */
}

/* Whether the content of a field is a message of exactly this schema. */
static int sniff_message(const struct fp_wire_field *content, const struct fp_wire_schema *of) {
    struct fp_wire m = fp_wire_inside(content);
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_next(&m, of, &f)) == FP_WIRE_KNOWN) continue;
    return kind == FP_WIRE_END;
}

/* A profile's type and samples, of any layout. */
static const struct fp_wire_schema value_type = {.kinds = " VVV"}, any_sample = {.kinds = " VLLLX"};

/* Checks the visible part of the dictionary.  pprof has samples in its place, whose fields have numbers up to 3. */
static int sniff_dictionary(const uint8_t *p, const uint8_t *end) {
    struct fp_wire_field f;
    int n_others = 0;
    while (p < end && fp_wire_read_head(p, end, &f) > 0) {
        if (f.wire != FP_WIRE_BYTES || f.number > 7) return NOT;
        if (f.n > (size_t)(end - f.p)) break;
        /* strings can be anything */
        if (f.number != FP_OTLP_STRING && !sniff_message(&f, &fp_otlp_messages[f.number])) return NOT;
        n_others += f.number > 3;
        p = f.p + f.n;
    }
    return n_others > 1 ? SURELY : PERHAPS;
}

/* What is found with a dictionary.  After profiles without samples it is all that there is. */
static int with_dictionary(int found, int dictionary, int follows) {
    return dictionary && (found == SURELY || !follows) ? found : dictionary;
}

/* Checks the first fields of a container, down to profiles.  Returns how surely they are OTLP. */
static int sniff_container(unsigned container, const uint8_t *p, const uint8_t *end, int cut) {
    const uint8_t *const begin = p;
    int found = PERHAPS, typed = 0;
    while (p < end && found == PERHAPS) {
        struct fp_wire_field f;
        const int used = fp_wire_read_head(p, end, &f);
        if (used == FP_WIRE_CUT) return cut ? found : NOT;
        if (used < 0 || f.number > 12 || fp_wire_kind(fp_otlp_schema(container), &f) == FP_WIRE_BAD) return NOT;
        const size_t left = (size_t)(end - f.p);
        const uint8_t *const limit = f.n > left ? end : f.p + f.n;
        if (f.n > left && !cut) return NOT;
        const unsigned inner = fp_otlp_container(container, f.number);
        if (container == FP_OTLP_DATA && !inner) return NOT;
        if (inner && inner != FP_OTLP_DICTIONARY) {
            found = sniff_container(inner, f.p, limit, f.n > left);
        } else if (container == FP_OTLP_RESOURCE_PROFILES && f.number == FP_OTLP_RESOURCE && f.n) {
            found = sniff_attributes(f.p, limit);
        } else if (container == FP_OTLP_PROFILE && f.number == 3 && f.n == 8) {
            found = SURELY; /* a time of fixed length */
        } else if (container == FP_OTLP_PROFILE && f.number <= 2 && f.n <= left) {
            if (!sniff_message(&f, f.number == 1 ? &value_type : &any_sample)) return NOT;
            found = typed && f.number == 2 ? SURELY : PERHAPS;
            typed |= f.number == 1;
        }
        if (inner == FP_OTLP_DICTIONARY) found = with_dictionary(found, sniff_dictionary(f.p, limit), p > begin);
        if (f.n > left) return found;
        p = f.p + f.n;
    }
    return found;
}

int fp_otlp_sniff(const uint8_t *p, size_t n) {
    if (n < 2) return 0;
    if (p[0] < 8) { /* not a tag: a frame's length */
        if (n < 6 || p[4] != 0x0a) return 0;
        p += 4;
        n -= 4;
    }
    if (p[0] != 0x0a && p[0] != 0x12) return 0;
    const int found = sniff_container(FP_OTLP_DATA, p, p + n, 1);
    if (found == PERHAPS && p[0] == 0x0a) return 0; /* pprof also begins so */
    return found != NOT;
}

/* ---- the scan ---- */

/* A bit for each field. */
#define FIELDS2(a, b) (1u << (a) | 1u << (b))

static void begin_tables(struct fp_otlp_reader *r) {
    struct fp_otlp_walk *w = &r->walk;
    const int is_1_8 = r->layout == FP_OTLP_1_8;
    w->wanted[FP_OTLP_RESOURCE_PROFILES] = w->wanted[FP_OTLP_SCOPE_PROFILES] = FIELDS2(1, 2);
    /* of the others some are samples or payloads, of any size */
    w->wanted[FP_OTLP_PROFILE] = FIELDS2(1, 3) | FIELDS2(5, 7) | 1u << (is_1_8 ? 12 : 11);
    w->wanted[FP_OTLP_DICTIONARY] = 0xfe;
    r->current.n_attributes = r->current.n_own = r->current.n_profiles = r->caps.n_lists = r->scan.n_scopes =
        r->scan.n_resources = r->current.n_raws = 0;
    r->tables.n_strings = r->tables.n_mappings = r->tables.n_functions = r->tables.n_locations = r->tables.n_lines =
        r->tables.n_links = r->tables.n_stacks = 0;
    r->current.raw.n = 0;
}

static void begin_rows(struct fp_otlp_reader *r) {
    r->first = r->n_chosen = 0;
    fp_strings_empty(&r->rows.label_sets);
}

void fp_otlp_begin(struct fp_otlp_reader *r, int pass) {
    struct fp_otlp_walk *w = &r->walk;
    const int has_frames = pass == FP_OTLP_SCAN && w->form != FP_OTLP_PLAIN;
    memset(w->wanted, 0, sizeof w->wanted);
    fp_otlp_walk_begin(w, has_frames ? FP_OTLP_FILE : FP_OTLP_DATA);
    w->counts = pass == FP_OTLP_SCAN;
    w->wanted[FP_OTLP_FILE] = 1u << FP_OTLP_MESSAGE_FIELD;
    w->wanted[FP_OTLP_DATA] = FIELDS2(1, 2);
    if (pass == FP_OTLP_TABLES) {
        begin_tables(r);
    } else if (pass == FP_OTLP_ROWS) {
        begin_rows(r);
    } else {
        w->wanted[FP_OTLP_RESOURCE_PROFILES] = w->wanted[FP_OTLP_SCOPE_PROFILES] = 1u << 2;
        w->wanted[FP_OTLP_PROFILE] = FIELDS2(FP_OTLP_SAMPLE, 3);
        w->wanted[FP_OTLP_DICTIONARY] = 1u << 7;
        r->scan.dictionary_first = -1;
    }
}

void fp_otlp_look_at_sample(struct fp_otlp_evidence *e, const struct fp_wire_field *sample) {
    struct fp_wire m = fp_wire_inside(sample);
    uint64_t n_numbers = 0, n_times = 0;
    int is_old = 0, is_new = 0;
    while (m.p < m.end) {
        struct fp_wire_field f;
        if (fp_wire_read_head(m.p, m.end, &f) <= 0 || f.n > (size_t)(m.end - f.p)) return;
        if (f.number == 3) *(f.wire == FP_WIRE_BYTES ? &is_old : &is_new) = 1;
        if (f.number == 4) *(f.wire == FP_WIRE_BYTES ? &is_new : &is_old) = 1;
        if (f.number == 5) n_times += f.n / 8;
        if (f.number == 2) {
            struct fp_wire list = fp_wire_inside(&f);
            uint64_t v;
            for (; fp_wire_next_number(&list, &v) > 0; n_numbers++) {
                if (v > e->largest) e->largest = v;
                if (v < e->smallest) e->smallest = v;
            }
        }
        m.p = f.p + f.n;
    }
    e->n_old += is_old && !is_new;
    e->n_new += is_new && !is_old;
    if (is_old || is_new || !n_numbers) return;
    e->n_open++;
    e->n_timed += n_times != 0;
    e->n_unequal += n_times && n_times != n_numbers;
}

static void new_message(struct fp_otlp_reader *r, uint64_t at) {
    if (r->n_messages && r->walk.form == FP_OTLP_PLAIN) r->messages[r->n_messages - 1].end = at;
    FP_PUSH(r->messages, r->n_messages, r->caps.cap_messages) =
        (struct fp_otlp_message){.start = at, .end = UINT64_MAX};
}

/* A field of ProfilesData begins.  Messages that follow one another without lengths are
 * distinguished by their dictionaries:   R R D | R D | R R D     D R R | D R */
static void begin_data_field(struct fp_otlp_reader *r) {
    const int is_dictionary = fp_otlp_inside(&r->walk) == FP_OTLP_DICTIONARY;
    if (r->walk.form == FP_OTLP_PLAIN) {
        if (r->scan.dictionary_first < 0) r->scan.dictionary_first = is_dictionary;
        const struct fp_otlp_message *m = r->n_messages ? &r->messages[r->n_messages - 1] : NULL;
        const int next =
            !m || (r->scan.dictionary_first ? is_dictionary && m->has_resources : !is_dictionary && m->has_dictionary);
        if (next) new_message(r, m ? r->walk.at : 0);
    }
    struct fp_otlp_message *m = &r->messages[r->n_messages - 1];
    m->has_dictionary |= is_dictionary;
    m->has_resources |= !is_dictionary;
}

static void end_profile(struct fp_otlp_reader *r) {
    const uint64_t time = r->scan.profile_time, end = time + r->scan.profile_duration;
    if (time && (!r->first_time || time < r->first_time)) r->first_time = time;
    if (time && end >= time && end > r->last_time) r->last_time = end;
    if (!time && r->scan.profile_duration > r->longest) r->longest = r->scan.profile_duration;
    r->evidence.n_profiles_1_8 += r->scan.profile_fields == FP_OTLP_1_8;
    r->evidence.n_profiles_1_9 += r->scan.profile_fields == FP_OTLP_1_9;
}

/* The fields that distinguish releases: 1.8 has comments in 7, an id in 8 and attributes in 12; 1.9 an id in 7,
 * attributes in 11. */
static void profile_field(struct fp_otlp_reader *r, const struct fp_wire_field *f) {
    struct fp_otlp_evidence *e = &r->evidence;
    switch (f->number) {
        case FP_OTLP_SAMPLE:
            if (r->walk.wanted[FP_OTLP_PROFILE] >> FP_OTLP_SAMPLE & 1) fp_otlp_look_at_sample(e, f);
            if (e->n_old || e->n_new) r->walk.wanted[FP_OTLP_PROFILE] = 1u << 3;
            break;
        case 3: r->scan.profile_time = fp_u64(f->p); break;
        case 4: r->scan.profile_duration = f->v; break;
        case 7:
            if (f->wire == FP_WIRE_BYTES && f->n == 16 && !r->scan.profile_fields) r->scan.profile_fields = FP_OTLP_1_9;
            break;
        case 8:
            if (f->wire == FP_WIRE_BYTES) r->scan.profile_fields = FP_OTLP_1_8;
            break;
        case 12: r->scan.profile_fields = FP_OTLP_1_8; break;
        default: break;
    }
}

/* An entry of the 7th table: {1: list of locations}; in 1.7 {1: attribute, 2: unit}. */
static int is_unit_of_1_7(const struct fp_wire_field *entry) {
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    while (m.p < m.end && fp_wire_read_head(m.p, m.end, &f) > 0 && f.n <= (size_t)(m.end - f.p)) {
        if (f.number == 2 && f.wire == FP_WIRE_VARINT) return 1;
        m.p = f.p + f.n;
    }
    return 0;
}

static int scan_field(struct fp_otlp_reader *r, const struct fp_wire_field *f, struct fp_err *err) {
    const unsigned inside = fp_otlp_inside(&r->walk);
    if (inside == FP_OTLP_PROFILE) profile_field(r, f);
    if (inside != FP_OTLP_DICTIONARY) return 0;
    r->current.n_attributes += f->number == 6; /* of the message, so far */
    if (f->number == 7 && is_unit_of_1_7(f))
        return fp_fail(err, FP_E_VERSION, r->walk.at, "the layout of OTLP profiles before 1.8 is not supported");
    return 0;
}

static void end_dictionary(struct fp_otlp_reader *r) {
    if (r->current.n_attributes < r->evidence.least_attributes) r->evidence.least_attributes = r->current.n_attributes;
    r->current.n_attributes = 0;
}

int fp_otlp_scan(struct fp_otlp_reader *r, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        struct fp_wire_field f;
        const unsigned before = fp_otlp_inside(&r->walk);
        int status = fp_otlp_next(&r->walk, in, &f, err);
        if (status == FP_OTLP_FIELD) {
            status = scan_field(r, &f, err);
        } else if (status == FP_OTLP_BEGIN) {
            const unsigned inside = fp_otlp_inside(&r->walk);
            status = 0;
            if (inside == FP_OTLP_DATA) new_message(r, in->base + in->pos);
            if (before == FP_OTLP_DATA) begin_data_field(r);
            if (inside == FP_OTLP_PROFILE)
                r->scan.profile_time = r->scan.profile_duration = 0, r->scan.profile_fields = 0;
        } else if (status == FP_OTLP_END) {
            status = 0;
            if (before == FP_OTLP_PROFILE) end_profile(r);
            if (before == FP_OTLP_DICTIONARY) end_dictionary(r);
            if (before == FP_OTLP_DATA) r->messages[r->n_messages - 1].end = r->walk.end_at;
        } else {
            if (status == FP_DONE && r->n_messages && r->messages[r->n_messages - 1].end == UINT64_MAX)
                r->messages[r->n_messages - 1].end = in->base + in->n;
            return status;
        }
        if (status) return status;
    }
}

/* Guesses the layout when no sample has a field unique to one.  1.10: field 2 has attributes, and samples without
 * values have timestamps.  1.8: field 2 has values, as many as timestamps, if there are any. */
static int guess(struct fp_otlp_reader *r) {
    const struct fp_otlp_evidence *e = &r->evidence;
    if (!e->n_open) return FP_OTLP_1_10;
    if (e->n_timed < e->n_open) return FP_OTLP_1_9;
    if (e->largest >= e->least_attributes) return FP_OTLP_1_9;
    if (e->n_unequal) return FP_OTLP_1_10;
    r->guessed = 1;
    return FP_OTLP_1_10;
}

int fp_otlp_scanned(struct fp_otlp_reader *r, struct fp_err *err) {
    const struct fp_otlp_evidence *e = &r->evidence;
    /* resources after the last dictionary belong to its message */
    if (r->walk.form == FP_OTLP_PLAIN && r->n_messages > 1 && !r->messages[r->n_messages - 1].has_dictionary) {
        r->n_messages--;
        r->messages[r->n_messages - 1].end = r->messages[r->n_messages].end;
    }
    if (!r->n_messages) return fp_fail(err, FP_E_TRUNCATED, 0, "the file has no message");
    r->layout = e->n_new ? FP_OTLP_1_10 : e->n_old ? FP_OTLP_1_9 : guess(r);
    if (!e->n_new && e->n_profiles_1_8 && !e->n_profiles_1_9) {
        r->layout = FP_OTLP_1_8;
        r->guessed = 0;
    }
    r->current.n_attributes = 0;
    return 0;
}
