#include "pprof/read.h"

#include "pprof/read_private.h"

struct fp_pprof_reader *fp_pprof_reader_new(struct fp_model *model, int lenient) {
    struct fp_pprof_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    FP_INIT_TABLES(2, &r->tables.mapping_ids, &r->tables.function_ids, &r->tables.location_ids);
    FP_INIT_STRINGS(&r->caches.chains, &r->caches.label_sets);
    return r;
}

void fp_pprof_reader_free(struct fp_pprof_reader *r) {
    FP_CLEAR_TABLES(&r->tables.mapping_ids, &r->tables.function_ids, &r->tables.location_ids);
    FP_CLEAR_STRINGS(&r->caches.chains, &r->caches.label_sets);
    FP_FREE_BUFFERS(&r->sample.chain, &r->sample.label_set);
    FP_FREE(r->comments, r->types, r->tables.strings, r->tables.mappings, r->tables.functions, r->tables.locations,
            r->tables.lines, r->tables.frames, r->caches.chain_stacks, r->caches.label_chains, r->sample.labels,
            r->sample.chain_frames, r->sample.values, r);
}

/* ---- recognition ---- */

/* Whether these bytes are a list of numbers, or its beginning.  Location ids are not 0. */
static int is_list(const uint8_t *p, const uint8_t *end, int cut, int ids) {
    while (p < end) {
        uint64_t v;
        const int used = fp_wire_read_varint(p, end, &v);
        if (used <= 0) return used == FP_WIRE_CUT && cut;
        if (ids && !v) return 0;
        p += used;
    }
    return 1;
}

static int is_message(const struct fp_wire_field *content, size_t left, int message);

/* Whether a field may belong to a sample.  Models and profiles of TensorFlow have messages with the same numbers. */
static int is_of_sample(const struct fp_wire_field *f, size_t left) {
    const int cut = f->n > left;
    if (f->wire != FP_WIRE_BYTES) return 1;
    if (f->number < 3) return is_list(f->p, f->p + (cut ? left : f->n), cut, f->number == 1);
    return f->number > 3 || is_message(f, left, FP_PPROF_LABEL);
}

/* Whether the first `left` bytes of a field, or all of it, are such a message. */
static int is_message(const struct fp_wire_field *content, size_t left, int message) {
    const int cut = content->n > left, of_sample = message == FP_PPROF_SAMPLE;
    const uint8_t *p = content->p, *end = p + (cut ? left : content->n);
    int has_values = 0;
    while (p < end) {
        struct fp_wire_field f;
        const int used = fp_wire_read_head(p, end, &f);
        if (used == FP_WIRE_CUT) return cut;
        if (used == FP_WIRE_BAD) return 0;
        const int kind = fp_wire_kind(&fp_pprof_schema[message], &f);
        if (kind == FP_WIRE_BAD) return 0;
        if (kind == FP_WIRE_UNKNOWN && !of_sample) return 0; /* Sample.breakdown was proposed */
        if (of_sample && !is_of_sample(&f, (size_t)(end - f.p))) return 0;
        if (f.n > (size_t)(end - f.p)) return cut;
        has_values |= f.number == 2;
        p = f.p + f.n;
    }
    return cut || has_values || !of_sample;
}

/* A value type is two numbers.  Longer ones are something else: the files of a FileDescriptorSet, for example. */
enum { MOST_VALUE_TYPE = 64 };

int fp_pprof_sniff(const uint8_t *p, size_t n) {
    static const int messages[] = {[1] = FP_PPROF_VALUE_TYPE, [2] = FP_PPROF_SAMPLE,   [3] = FP_PPROF_MAPPING,
                                   [4] = FP_PPROF_LOCATION,   [5] = FP_PPROF_FUNCTION, [11] = FP_PPROF_VALUE_TYPE};
    const uint8_t *end = p + n;
    int fields = 0, named = 0;
    size_t text = 0;
    while (text < n && (p[text] >= ' ' || (p[text] >= '\t' && p[text] <= '\r'))) text++;
    if (text == n) return 0; /* a profile has small ids and lengths, bytes that text does not have */
    while (p < end) {
        struct fp_wire_field f;
        int used = fp_wire_read_head(p, end, &f);
        if (used == FP_WIRE_CUT && fields) return 1;
        if (used <= 0) return 0;
        int kind = fp_wire_kind(&fp_pprof_schema[FP_PPROF_PROFILE], &f);
        if (kind == FP_WIRE_BAD || (kind == FP_WIRE_UNKNOWN && !fields) || f.number > 64) return 0;
        if (!fields && f.number == 6 && f.n) return 0; /* the first string is "" */
        int message = f.number < sizeof messages / sizeof *messages ? messages[f.number] : 0;
        if (message == FP_PPROF_VALUE_TYPE && f.n > MOST_VALUE_TYPE) return 0;
        const size_t left = (size_t)(end - f.p);
        if (message && !is_message(&f, left, message)) return 0;
        /* Value types or other short fields come first; a first field of 4 KiB is a graph of TensorFlow, or text. */
        if (f.n > left) return fields && f.n <= FP_PPROF_MAX_MESSAGE;
        named |= f.number == 1 || f.number == 6;
        p = f.p + f.n;
        fields++;
    }
    return named; /* a profile without samples still has value types or strings */
}

/* ---- the profile's fields ---- */

/* A field that was never defined.  It was proposed in google/pprof's pull requests 725 and 728. */
enum { LABEL_SET = 16 };

/* The number of a field that is malformed and was counted. */
enum { NO_FIELD = UINT32_MAX };

/* The input ends inside the field at `at`, after `left` bytes of it. */
static int cut_short(struct fp_pprof_reader *r, uint64_t at, uint64_t left, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a field");
    if (r->feed.first_pass) r->stats.lost_bytes += left;
    return FP_DONE;
}

/* Skips r->feed.skip bytes.  0 when done. */
static int pass_over(struct fp_pprof_reader *r, struct fp_window *in, struct fp_err *err) {
    size_t left = in->n - in->pos;
    size_t n = r->feed.skip < left ? (size_t)r->feed.skip : left;
    in->pos += n;
    r->feed.skip -= n;
    if (r->feed.lost && r->feed.first_pass) r->stats.lost_bytes += n;
    if (!r->feed.skip) return 0;
    if (!in->eof) return FP_MORE;
    return r->feed.lost ? FP_DONE : cut_short(r, r->feed.field_at, in->base + in->pos - r->feed.field_at, err);
}

int fp_pprof_next_field(struct fp_pprof_reader *r, struct fp_window *in, uint32_t wanted, struct fp_wire_field *f,
                        struct fp_err *err) {
    if (r->feed.skip) {
        int status = pass_over(r, in, err);
        if (status || r->feed.skip) return status;
    }
    size_t left = in->n - in->pos;
    if (!left) return in->eof ? FP_DONE : FP_MORE;
    const uint8_t *p = in->p + in->pos;
    uint64_t at = in->base + in->pos;
    int used = fp_wire_read_head(p, in->p + in->n, f);
    if (used == FP_WIRE_CUT) {
        if (!in->eof) return FP_MORE;
        in->pos = in->n;
        return cut_short(r, at, left, err);
    }
    if (used == FP_WIRE_BAD) {
        if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, at, "a field has an invalid tag or length");
        r->feed.skip = UINT64_MAX;
        r->feed.lost = 1;
        return pass_over(r, in, err);
    }
    int take = f->number < 32 && wanted >> f->number & 1;
    int wrong = fp_wire_kind(&fp_pprof_schema[FP_PPROF_PROFILE], f) == FP_WIRE_BAD;
    if (FP_UNLIKELY(wrong || (take && f->n > FP_PPROF_MAX_MESSAGE))) {
        if (!r->lenient && wrong)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the wire type of a field", FP_GOT_UNSIGNED, f->wire,
                               "the schema's", 0);
        if (!r->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the length of a field", FP_GOT_UNSIGNED, f->n, "at most %",
                               FP_PPROF_MAX_MESSAGE);
        r->stats.bad_entries += r->feed.first_pass;
        f->number = NO_FIELD;
        take = 0;
    }
    r->feed.field_at = at;
    if (f->n <= left - (size_t)used) {
        in->pos += (size_t)used + f->n;
    } else if (!take) {
        in->pos += (size_t)used;
        r->feed.skip = f->n;
    } else if (in->eof) {
        in->pos = in->n;
        return cut_short(r, at, left, err);
    } else {
        return FP_MORE;
    }
    return FP_PPROF_FIELD;
}

/* ---- first pass ---- */

/* Limited, because a batch has a column for each type. */
enum { MAX_TYPES = 1024 };

static int value_type(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                      struct fp_pprof_value_type *to, struct fp_err *err) {
    *to = (struct fp_pprof_value_type){0};
    const uint8_t *broken =
        fp_wire_all(fp_wire_inside(entry), &fp_pprof_schema[FP_PPROF_VALUE_TYPE], to, &r->stats.unknown_fields);
    if (!broken) return 0;
    return fp_fail(err, FP_E_MALFORMED, fp_pprof_offset(in, broken), "a value type is malformed");
}

/* A malformed one is an error even when lenient: without types the values of samples are meaningless. */
static int sample_type(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                       struct fp_err *err) {
    struct fp_pprof_value_type found;
    FP_TRY(value_type(r, in, entry, &found, err));
    if (r->n_types == MAX_TYPES)
        return fp_fail_got(err, FP_E_MALFORMED, r->feed.field_at, "the number of sample types", FP_GOT_UNSIGNED,
                           MAX_TYPES + 1, "at most %", MAX_TYPES);
    fp_array_zeroed(&r->types, &r->feed.cap_types, 2 * (uint64_t)r->n_types + 2, sizeof *r->types);
    memcpy(r->types + 2 * (size_t)r->n_types++, &found, sizeof found);
    return 0;
}

static int period_type(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                       struct fp_err *err) {
    struct fp_pprof_value_type found;
    int status = value_type(r, in, entry, &found, err);
    if (status && !r->lenient) return status;
    if (status) {
        r->stats.bad_entries++;
        return 0;
    }
    r->period_type = found.type;
    r->period_unit = found.unit;
    r->has_period_type = 1;
    return 0;
}

static int comments(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                    struct fp_err *err) {
    struct fp_wire list = fp_wire_inside(entry);
    uint64_t index;
    int status;
    while ((status = fp_wire_next_number(&list, &index)) > 0)
        FP_PUSH(r->comments, r->n_comments, r->feed.cap_comments) = index;
    return status ? fp_pprof_bad_entry(r, fp_pprof_offset(in, list.p), "a comment is malformed", err) : 0;
}

/* Reads a field of the profile. */
static int take_field(struct fp_pprof_reader *r, const struct fp_window *in, struct fp_wire_field *f,
                      struct fp_err *err) {
    if (fp_wire_store(&fp_pprof_schema[FP_PPROF_PROFILE], r, f)) return 0;
    switch (f->number) {
        case 1: return sample_type(r, in, f, err);
        case 2:
            if (!r->feed.has_samples) r->feed.samples_at = r->feed.field_at;
            r->feed.has_samples = 1;
            return 0;
        case 3: return fp_pprof_take_mapping(r, in, f, err);
        case 4: return fp_pprof_take_location(r, in, f, err);
        case 5: return fp_pprof_take_function(r, in, f, err);
        case 6: return fp_pprof_take_string(r, f, err);
        case 9:
            if (r->time_ns)
                return fp_pprof_bad_entry(r, r->feed.field_at, "a second time_nanos: two profiles follow one another",
                                          err);
            r->time_ns = (int64_t)f->v;
            return 0;
        case 11: return period_type(r, in, f, err);
        case 13: return comments(r, in, f, err);
        case LABEL_SET: r->stats.label_sets++; return 0;
        case NO_FIELD: return 0;
        default: r->stats.unknown_fields++; return 0;
    }
}

int fp_pprof_tables(struct fp_pprof_reader *r, struct fp_window *in, struct fp_err *err) {
    const uint32_t wanted = 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 11 | 1u << 13;
    r->feed.first_pass = 1;
    for (;;) {
        struct fp_wire_field f;
        int status = fp_pprof_next_field(r, in, wanted, &f, err);
        if (status != FP_PPROF_FIELD) return status;
        status = take_field(r, in, &f, err);
        if (status) return status;
    }
}
