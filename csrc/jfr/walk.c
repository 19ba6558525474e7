/* The reader's life, and the walk over its records. */
#include "jfr/pending.h"
#include "jfr/fast_fields.h"
#include "jfr/sums.h"

enum { LEAST_CHUNK_HEAD = 8 };

/* ---- the reader ---- */

struct fp_jfr_reader *fp_jfr_reader_new(struct fp_model *model) {
    struct fp_jfr_reader *r = fp_made(sizeof *r);
    r->model = model;
    fp_jfr_begin_spans(r);
    for (uint32_t i = 0; i < FP_JFR_METRICS; i++) r->column[i] = FP_JFR_NO_COLUMN;
    r->names.thread_key = fp_strings_intern(&model->strings, "thread_name", 11);
    r->names.class_key = fp_strings_intern(&model->strings, "class", 5);
    r->names.state_key = fp_strings_intern(&model->strings, "state", 5);
    r->names.sleeping = fp_strings_intern(&model->strings, "STATE_SLEEPING", 14);
    r->sums.contexts = fp_have(calloc(FP_JFR_CONTEXTS, sizeof *r->sums.contexts));
    r->sums.briefs = fp_have(calloc(FP_JFR_BRIEFS, sizeof *r->sums.briefs));
    r->programs.layouts = fp_have(calloc(FP_JFR_LAYOUTS, sizeof *r->programs.layouts));
    r->counts.first_time = UINT64_MAX;
    r->stacks.cache = fp_have(fp_zeroed(FP_JFR_CACHE * sizeof *r->stacks.cache));
    FP_INIT_STRINGS(&r->metadata.names, &r->walked.counted, &r->spans.reported, &r->stacks.texts,
                    &r->methods.described);
    FP_INIT_TABLES(2, &r->metadata.type_ids, &r->metadata.unknown_ids, &r->names.leaves);
    fp_table_init(&r->methods.ids, 5);
    fp_jfr_new_sums(r);
    return r;
}

void fp_jfr_reader_free(struct fp_jfr_reader *r) {
    for (uint32_t i = 0; i < r->constants.cap_pools; i++) {
        fp_table_clear(&r->constants.pools[i].keys);
        FP_FREE(r->constants.pools[i].kept, r->constants.pools[i].constants);
    }
    fp_jfr_free_spans(r);
    fp_jfr_free_pending(r);
    FP_CLEAR_STRINGS(&r->metadata.names, &r->walked.counted, &r->spans.reported, &r->stacks.texts,
                     &r->methods.described);
    FP_CLEAR_TABLES(&r->metadata.type_ids, &r->metadata.unknown_ids, &r->methods.ids, &r->names.leaves);
    FP_FREE_BUFFERS(&r->text, &r->metadata.described, &r->names.name, &r->names.more);
    fp_release(r->stacks.cache, r->stacks.cache ? FP_JFR_CACHE * sizeof *r->stacks.cache : 0);
    FP_FREE(r->names.of_threads, r->walked.places, r->metadata.strings, r->metadata.types, r->metadata.fields,
            r->metadata.notes, r->metadata.type_of, r->programs.ops, r->programs.list, r->walked.n_counted,
            r->constants.pools, r->constants.arena, r->stacks.frames, r->stacks.frame_methods, r->methods.list,
            r->stacks.known, r->stacks.methods, r->sums.contexts, r->sums.briefs, r->programs.layouts, r->sums.memory,
            r->programs.slots, r->names.leaf_of, r);
}

void fp_jfr_begin(struct fp_jfr_reader *r) {
    r->walked.n_places = 0;
    r->skip = r->constants.limit = 0;
    r->walked.is_next = r->metadata.is_described = 0;
    fp_strings_empty(&r->spans.reported);
    fp_jfr_forget(r);
}

/* ---- records ---- */

/* Records the place of metadata or constants. */
static void note(struct fp_jfr_reader *r, const struct fp_jfr_record *record) {
    const uint8_t *p = record->body;
    uint64_t v = 0;
    for (int i = 0; i < 3 && p && record->type == 1; i++) p = fp_jfr_number(r, p, record->end, 8, &v);
    FP_PUSH(r->walked.places, r->walked.n_places, r->walked.cap_places) = (struct fp_jfr_place){
        .at = record->at, .size = record->size, .delta = p ? (int64_t)v : 0, .is_checkpoint = record->type == 1};
}

/* ---- counts ---- */

/* Counts an event of a type that the metadata lacks. */
static void unknown(struct fp_jfr_reader *r, uint64_t type) {
    const uint32_t words[] = {FP_WORDS(type)};
    r->counts.unknown_types++;
    if (r->metadata.unknown_ids.n > 1 << 16) return;
    fp_table_intern(&r->metadata.unknown_ids, words);
}

static void fact_slot(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end,
                      struct fp_jfr_fact *fact) {
    const size_t start = r->text.n;
    *fact = (struct fp_jfr_fact){.text = start};
    if (slot->kind == FP_JFR_IS_NUMBER) fact->number = (int64_t)slot->n;
    if (slot->kind == FP_JFR_IS_REAL) fact->number = (int64_t)slot->real;
    if (slot->kind != FP_JFR_IS_TEXT) return;
    fact->is_text = (uint8_t)fp_jfr_text(r, slot, end, &r->text);
    fact->n = (uint32_t)(r->text.n - start);
}

/* Replaces the id in a setting's first field by the name of the type. */
static void name_setting(struct fp_jfr_reader *r) {
    const uint32_t type = fp_jfr_find_type(r, (uint64_t)r->fact[0].number);
    size_t n = 0;
    const uint8_t *name = fp_string(&r->metadata.names, type ? r->metadata.types[type].name : 0, &n);
    r->fact[0] = (struct fp_jfr_fact){.text = r->text.n, .n = (uint32_t)n, .is_text = 1};
    fp_buf_put(&r->text, name, n);
}

/* Decodes a fact.  FP_NEEDS, 0 if it was reported before, or FP_E_*. */
static int fact(struct fp_jfr_reader *r, const struct fp_jfr_type *type, uint32_t index,
                const struct fp_jfr_record *record, struct fp_err *err) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    r->text.n = 0;
    if (!fp_jfr_decode(r, index, record->body, record->end, slots)) {
        r->counts.bad_records++;
        if (r->lenient) return 0;
        return fp_fail(err, FP_E_MALFORMED, record->at, "an event is shorter than its fields");
    }
    for (uint32_t i = 0; i < FP_JFR_SLOTS; i++) fact_slot(r, &slots[i], record->end, &r->fact[i]);
    r->requested_kind = type->fact - 1;
    if (r->requested_kind == FP_JFR_SETTING) name_setting(r);
    const uint32_t before = r->spans.reported.n, id = fp_strings_intern(&r->spans.reported, r->text.p, r->text.n);
    const int is_number = r->requested_kind == FP_JFR_LOST_SAMPLES || r->requested_kind == FP_JFR_DATA_LOSS;
    if (id < before && !is_number) return 0;
    r->request = FP_JFR_FACT;
    return FP_NEEDS;
}

/* Counts an event with a duration that is not read.  FP_NEEDS if a probe finds a sample, else 0. */
static int timed(struct fp_jfr_reader *r, uint32_t index, const struct fp_jfr_record *record) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    int64_t ns;
    if (r->metadata.types[index].event) {
        r->walked.has_samples = 1;
        r->request = FP_JFR_PROBED;
        return FP_NEEDS;
    }
    if (!fp_jfr_decode(r, index, record->body, record->end, slots)) return 0;
    const int is_timed = !fp_jfr_value(r, &slots[FP_JFR_DURATION_SLOT], 1, &ns) && ns > 0;
    r->counts.timed += is_timed;
    r->counts.instants += !is_timed;
    return 0;
}

/* Counts an event, once the metadata is read.  FP_MORE, FP_NEEDS after skipping it, 0, or an error. */
static int event(struct fp_jfr_reader *r, struct fp_window *in, const struct fp_jfr_record *record,
                 struct fp_err *err) {
    const uint32_t index = fp_jfr_find_type(r, record->type);
    if (!index) {
        unknown(r, record->type);
        return 0;
    }
    struct fp_jfr_type *type = &r->metadata.types[index];
    if (FP_UNLIKELY(type->fact)) {
        if (record->size > in->n - in->pos) return in->eof ? fp_jfr_cut(record, err) : FP_MORE;
        type->count++;
        if (type->fact != FP_JFR_TIMED + 1) return fact(r, type, index, record, err);
        return timed(r, index, record);
    }
    type->count++;
    return 0;
}

/* Adds the chunk's counts of events to the recording's. */
static void add_counts(struct fp_jfr_reader *r) {
    for (uint32_t i = 1; i < r->metadata.n_types; i++) {
        struct fp_jfr_type *type = &r->metadata.types[i];
        size_t n;
        if (!type->count) continue;
        r->walked.has_lasting |= type->is_lasting;
        r->counts.instants += type->is_shown ? type->count : 0;
        const uint8_t *name = fp_string(&r->metadata.names, type->name, &n);
        const uint32_t id = fp_strings_intern(&r->walked.counted, name, n);
        *FP_AT(r->walked.n_counted, r->walked.cap_counted, id) += type->count;
        type->count = 0;
    }
}

uint64_t fp_jfr_counted(const struct fp_jfr_reader *r, uint32_t i) {
    return i < r->walked.counted.n ? r->walked.n_counted[i] : 0;
}

/* ---- the walk ---- */

/* Whether a chunk's header begins here. */
static int is_chunk(const uint8_t *p) {
    return !memcmp(p, "FLR\0", 4) && !p[4] && (p[5] == 1 || p[5] == 2);
}

/* Counts events that are whole in the window, one after the other: records are most often these. */
static void count(struct fp_jfr_reader *r, struct fp_window *in) {
    const uint64_t left = r->chunk.stop - (in->base + in->pos), there = in->n - in->pos;
    const uint8_t *start = in->p + in->pos, *p = start, *end = p + (left < there ? left : there);
    while (end - p >= 2 * FP_JFR_LONGEST) {
        uint64_t size, id;
        const uint8_t *body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &size), &id);
        if (id <= 1 || size < (uint64_t)(body - p) || size > (uint64_t)(end - p)) break;
        const uint32_t type = fp_jfr_find_type(r, id);
        if (!type || r->metadata.types[type].fact) break;
        r->metadata.types[type].count++;
        p += size;
    }
    in->pos += (size_t)(p - start);
}

/* Walks over a record.  FP_MORE, FP_NEEDS, 0, or an error. */
static int step(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err) {
    struct fp_jfr_record record;
    int status = fp_jfr_head(r, in, &record, err);
    if (status) return status;
    if (record.type == 1 && !in->eof && in->n - in->pos < 64 && record.size > in->n - in->pos) return FP_MORE;
    if (record.type <= 1) note(r, &record);
    if (record.type > 1 && r->metadata.is_described && (status = event(r, in, &record, err)) && status != FP_NEEDS)
        return status;
    r->skip = record.size;
    return status;
}

int fp_jfr_walk(struct fp_jfr_reader *r, int open, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        if (fp_jfr_skipped(r, in)) return FP_MORE;
        if (r->metadata.is_described && r->chunk.compressed && !open) count(r, in);
        r->walked.end = in->base + in->pos;
        if (in->pos == in->n) {
            if (!in->eof) return FP_MORE;
            break;
        }
        if (open && in->n - in->pos < LEAST_CHUNK_HEAD && !in->eof) return FP_MORE;
        if (open && in->n - in->pos >= LEAST_CHUNK_HEAD && is_chunk(in->p + in->pos)) {
            r->walked.is_next = 1;
            break;
        }
        const int status = step(r, in, err);
        if (status == FP_MORE) return FP_MORE;
        if (status < 0 && !r->lenient) return status;
        if (status == FP_NEEDS) return FP_NEEDS;
        if (status < 0) {
            r->counts.bad_records++;
            break;
        }
    }
    if (r->metadata.is_described) add_counts(r);
    return FP_DONE;
}
