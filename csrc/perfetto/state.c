#include "perfetto/read_private.h"

/* ---- ids of interned data ---- */

uint32_t fp_perfetto_id(const struct fp_perfetto_ids *ids, uint64_t id) {
    if (id < ids->cap && ids->dense[id]) return ids->dense[id] - 1;
    if (!ids->far) return 0;
    const uint32_t key[2] = {FP_WORDS(id)};
    const uint32_t row = fp_table_find(ids->far, key);
    return row ? ids->far_values[row] : 0;
}

static void set_far(struct fp_perfetto_ids *ids, uint64_t id, uint32_t value) {
    const uint32_t key[2] = {FP_WORDS(id)};
    if (!ids->far) {
        ids->far = fp_have(calloc(1, sizeof *ids->far));
        fp_table_init(ids->far, 2);
    }
    const uint32_t n = ids->far->n, row = fp_table_intern(ids->far, key);
    fp_array_room(&ids->far_values, &ids->cap_far, (uint64_t)row + 1, sizeof *ids->far_values);
    if (row == n) ids->far_values[row] = value;
}

/* An id that is sent twice keeps its first meaning. */
void fp_perfetto_set_id(struct fp_perfetto_ids *ids, uint64_t id, uint32_t value) {
    ids->n++;
    if (id >= ids->cap) {
        if (id > 2 * (uint64_t)ids->n + 64) {
            set_far(ids, id, value);
            return;
        }
        fp_array_zeroed(&ids->dense, &ids->cap, id + 1, sizeof *ids->dense);
    }
    if (ids->dense[id] || (ids->far && fp_perfetto_id(ids, id))) return;
    ids->dense[id] = value + 1;
    if (id >= ids->top) ids->top = (uint32_t)id + 1;
}

static void clear_ids(struct fp_perfetto_ids *ids) {
    if (ids->top) memset(ids->dense, 0, ids->top * sizeof *ids->dense);
    ids->top = ids->n = 0;
    if (ids->far && ids->far->n > 1) fp_table_empty(ids->far);
}

/* ---- sequences ---- */

struct fp_perfetto_seq *fp_perfetto_seq_of(struct fp_perfetto_read *r, uint32_t number) {
    if (r->seqs.last && r->seqs.list[r->seqs.last - 1].number == number) return &r->seqs.list[r->seqs.last - 1];
    const uint32_t row = fp_table_intern(&r->seqs.ids, &number), had = r->seqs.cap;
    fp_array_zeroed(&r->seqs.list, &r->seqs.cap, (uint64_t)row + 1, sizeof *r->seqs.list);
    for (uint32_t i = had; i < r->seqs.cap; i++) r->seqs.list[i].pid = r->seqs.list[i].tid = -1;
    r->seqs.list[row].number = number;
    r->seqs.last = row + 1;
    return &r->seqs.list[row];
}

void fp_perfetto_seq_clear(struct fp_perfetto_seq *s) {
    for (int k = 0; k < FP_PK_KINDS; k++) clear_ids(&s->ids[k]);
    s->valid = 1;
    s->clears++;
    s->clock_id = 0;
    s->track = 0;
    s->extra = (struct fp_perfetto_extra){0};
    s->has_reference = 0;
    s->pid = s->tid = -1;
}

void fp_perfetto_seqs_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->seqs.cap; i++) {
        for (int k = 0; k < FP_PK_KINDS; k++) {
            struct fp_perfetto_ids *ids = &r->seqs.list[i].ids[k];
            if (ids->far) fp_table_clear(ids->far);
            FP_FREE(ids->far, ids->far_values, ids->dense);
        }
    }
    free(r->seqs.list);
    r->seqs.list = NULL;
    r->seqs.cap = r->seqs.last = 0;
}

/* ---- interned data ---- */

uint32_t fp_perfetto_annotation(const uint8_t *p, size_t n) {
    uint8_t digits[8] = {0};
    uint64_t number;
    if (n == 4 && !memcmp(p, "data", 4)) return FP_PA_DATA;
    if (n == 4 && !memcmp(p, "type", 4)) return FP_PA_TYPE;
    if (n < 4 || n > 8 || memcmp(p, "arg", 3)) return FP_PA_OTHER;
    memcpy(digits, p + 3, n - 3);
    const uint8_t *end = fp_decimal(digits, &number);
    return end && !*end ? FP_PA_ARGUMENTS + (uint32_t)number : FP_PA_OTHER;
}

const struct fp_wire_schema fp_perfetto_of_name = {
    " VB", {0, FP_WIRE_TO(struct fp_perfetto_named_id, iid), FP_WIRE_TO(struct fp_perfetto_named_id, text)}};

int fp_perfetto_id_of(struct fp_wire m, uint64_t *iid) {
    struct fp_wire_field f;
    int status;
    while ((status = fp_perfetto_next(&m, &f)) > 0) {
        if (FP_LIKELY(f.number != 1)) continue;
        if (f.wire != FP_WIRE_VARINT) return FP_E_MALFORMED;
        *iid = f.v;
    }
    return status ? FP_E_MALFORMED : 0;
}

uint32_t fp_perfetto_keep(struct fp_perfetto_read *r, const uint8_t *p, size_t n) {
    return fp_strings_intern(&r->calls.stacks->messages, n ? p : (const uint8_t *)"", n);
}

/* Adds an entry: a name as a string of the model, a message as bytes that are parsed at first use. */
static int intern(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, int kind, struct fp_wire entry) {
    const int is_message = kind == FP_PK_FRAME || kind == FP_PK_CALLSTACK || kind == FP_PK_MAPPING;
    struct fp_perfetto_named_id e = {.text = {entry.p, entry.p}};
    if (is_message ? fp_perfetto_id_of(entry, &e.iid) : fp_perfetto_fields(entry, &fp_perfetto_of_name, &e))
        return FP_E_MALFORMED;
    if (is_message && !r->calls.stacks) return 0; /* call stacks are not requested */
    if (kind == FP_PK_CALLSTACK && r->feed.surveying) return 0;
    const size_t n = (size_t)(entry.end - entry.p);
    const uint32_t value = kind == FP_PK_ANNOTATION  ? fp_perfetto_annotation(e.text.p, (size_t)(e.text.end - e.text.p))
                           : kind == FP_PK_CALLSTACK ? fp_strings_append(&r->call_stacks.keys, entry.p, n)
                           : is_message              ? fp_perfetto_keep(r, entry.p, n)
                                                     : fp_perfetto_text(r, e.text);
    fp_perfetto_set_id(&s->ids[kind], e.iid, value);
    return 0;
}

int fp_perfetto_interned(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data) {
    static const struct fp_wire_schema of_data = {.kinds = " BBB BBB        BBBB"};
    static const uint8_t kinds[] = {0,
                                    FP_PK_CATEGORY,
                                    FP_PK_NAME,
                                    FP_PK_ANNOTATION,
                                    0,
                                    FP_PK_FUNCTION,
                                    FP_PK_FRAME,
                                    FP_PK_CALLSTACK,
                                    [16] = FP_PK_BUILD_ID,
                                    FP_PK_PATH,
                                    FP_PK_SOURCE,
                                    FP_PK_MAPPING};
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&data, &of_data, NULL, &f, NULL)) > 0)
        FP_TRY(intern(r, s, kinds[f.number], fp_wire_inside(&f)));
    return kind ? FP_E_MALFORMED : 0;
}

/* ---- defaults ---- */

struct timebase {
    uint64_t period;
    struct fp_wire name;
};
struct defaults {
    uint64_t clock;
    struct fp_wire event, sample;
};
#define DEFAULT(member) FP_WIRE_TO(struct defaults, member)
static const struct fp_wire_schema of_timebase = {
    .kinds = {[2] = 'V', [10] = 'B'},
    .to = {[2] = FP_WIRE_TO(struct timebase, period), [10] = FP_WIRE_TO(struct timebase, name)}};
static const struct fp_wire_schema of_sample = {" B", {[1] = FP_WIRE_ONLY}};
static const struct fp_wire_schema of_defaults = {
    .kinds = {[11] = 'B', 'B', [58] = 'V'}, .to = {[11] = DEFAULT(event), DEFAULT(sample), [58] = DEFAULT(clock)}};

/* The sampling period. */
static int take_timebase(struct fp_perfetto_read *r, struct fp_wire sample) {
    struct timebase t = {.period = r->period};
    struct fp_wire m = {0};
    if (fp_perfetto_fields(sample, &of_sample, &m) || (m.p && fp_perfetto_fields(m, &of_timebase, &t)))
        return FP_E_MALFORMED;
    r->period = t.period;
    if (t.name.p) r->period_name = fp_perfetto_text(r, t.name);
    return 0;
}

int fp_perfetto_defaults(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data) {
    struct defaults d = {0};
    uint64_t track = 0;
    const int status = fp_perfetto_fields(data, &of_defaults, &d);
    s->clock_id = d.clock > UINT32_MAX ? UINT32_MAX : (uint32_t)d.clock;
    s->track = 0;
    s->extra = (struct fp_perfetto_extra){0};
    if (d.event.p && fp_perfetto_extra_tracks(&s->extra, d.event, &track)) return FP_E_MALFORMED;
    s->track = track;
    const int inner = d.sample.p ? take_timebase(r, d.sample) : 0;
    return inner ? inner : status;
}
