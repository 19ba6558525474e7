#include "speedscope/read.h"

enum { TOP = 1, SHARED, FRAMES, FRAME, PROFILES, PROFILE, LIST, EVENTS, EVENT, SAMPLES, SAMPLE, NESTED, WEIGHTS };
/* values; also kinds, without rows of their own: an object or array is in the place of another value */
enum {
    ACTIVE = 20,
    EXPORTER,
    TITLE,
    FRAME_NAME,
    FILE_,
    LINE,
    NAME,
    TYPE,
    UNIT,
    VALUE,
    VALUE_UNIT,
    SAMPLES_OF,
    FRAME_OF,
    AT
};
enum { NO_LIST = 40, ITEM, NOT_FRAME, NOT_PROFILE, NOT_EVENT, NOT_SAMPLE, INDEX, WEIGHT };

static const struct fp_json_row first_rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "shared", .object = SHARED),
    FP_JSON_KEY(TOP, "profiles", .object = NO_LIST, .array = PROFILES, .value = NO_LIST),
    FP_JSON_KEY(TOP, "name", .value = TITLE),
    FP_JSON_KEY(TOP, "activeProfileIndex", .value = ACTIVE),
    FP_JSON_KEY(TOP, "exporter", .value = EXPORTER),
    FP_JSON_KEY(SHARED, "frames", .array = FRAMES),
    FP_JSON_EACH(FRAMES, .object = FRAME, .array = NOT_FRAME, .value = NOT_FRAME),
    FP_JSON_KEY(FRAME, "name", .value = FRAME_NAME),
    FP_JSON_KEY(FRAME, "file", .value = FILE_),
    FP_JSON_KEY(FRAME, "line", .value = LINE),
    FP_JSON_EACH(PROFILES, .object = PROFILE, .array = NOT_PROFILE, .value = NOT_PROFILE),
    FP_JSON_KEY(PROFILE, "type", .value = TYPE),
    FP_JSON_KEY(PROFILE, "name", .value = NAME),
    FP_JSON_KEY(PROFILE, "unit", .value = UNIT),
    FP_JSON_KEY(PROFILE, "valueType", .value = VALUE),
    FP_JSON_KEY(PROFILE, "valueUnit", .value = VALUE_UNIT),
    FP_JSON_KEY(PROFILE, "samplesOf", .value = SAMPLES_OF),
    FP_JSON_KEY(PROFILE, "events", .array = LIST),
    FP_JSON_KEY(PROFILE, "samples", .array = LIST),
    FP_JSON_KEY(PROFILE, "weights", .array = LIST),
    FP_JSON_EACH(LIST, FP_JSON_EITHER(ITEM)),
};

static const struct fp_json_row second_rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "profiles", .array = PROFILES),
    FP_JSON_EACH(PROFILES, .object = PROFILE),
    FP_JSON_KEY(PROFILE, "events", .array = EVENTS),
    FP_JSON_KEY(PROFILE, "samples", .array = SAMPLES),
    FP_JSON_KEY(PROFILE, "weights", .array = WEIGHTS),
    FP_JSON_EACH(EVENTS, .object = EVENT, .array = NOT_EVENT, .value = NOT_EVENT),
    FP_JSON_KEY(EVENT, "type", .value = TYPE),
    FP_JSON_KEY(EVENT, "frame", .value = FRAME_OF),
    FP_JSON_KEY(EVENT, "at", .value = AT),
    FP_JSON_EACH(SAMPLES, .object = NOT_SAMPLE, .array = SAMPLE, .value = NOT_SAMPLE),
    FP_JSON_EACH(SAMPLE, .object = INDEX, .array = NESTED, .value = INDEX),
    FP_JSON_EACH(NESTED, FP_JSON_EITHER(INDEX)), /* [0] for 0, which JavaScript treats alike */
    FP_JSON_EACH(WEIGHTS, FP_JSON_EITHER(WEIGHT)),
};

struct speedscope_reader {
    struct fp_speedscope_read pub;
    struct fp_model *model; /* borrowed */
    int32_t lenient, second, seen_profiles;
    struct fp_json_walk walk;
    struct fp_batch *out; /* of this feed */
    uint32_t cap_profiles, profile;
    uint32_t *functions, *frames; /* by frame of the file: function; frame of the model, 0 = not yet made */
    uint32_t n_functions, cap_functions, cap_frames;
    uint32_t name, file, line; /* of the current frame */
    uint8_t event_type, has_frame, has_at, bad;
    uint64_t frame;
    int64_t event_time, last_time;
    uint64_t at; /* offset of the current frame, event or sample */
    /* of the current profile: the array that is kept (0: none yet), how many of `kept` were read, whether any were
     * spilled */
    uint32_t kept_of, read;
    int32_t pairing;
    /* the current stack; indices[0 .. n_known) are its frames and what follows of an earlier one, of which it shares
     * the first `shared`; the first n_nodes have nodes, while n_renewed is the model's */
    uint32_t *indices, *nodes;
    uint32_t n_stack, n_known, shared, n_nodes, n_renewed, cap_indices, cap_nodes, n_nested;
    int32_t restored; /* the next kept value was read back: `weight`, or -1 for a dropped one */
    int64_t weight;
    uint32_t depth; /* of the stack that is read back; UINT32_MAX: dropped */
    uint32_t moved; /* of a kept sample: numbers kept or read back so far */
};

static int broken(struct speedscope_reader *r, uint64_t at, const char *what, const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->pub.broken += (uint64_t)r->second;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* ---- the first pass ---- */

static void add_frame(struct speedscope_reader *r) {
    struct fp_model *m = r->model;
    const uint32_t name = r->name ? r->name : fp_strings_intern(&m->strings, "[unknown]", 9);
    const uint32_t function = fp_model_function(m, 0, r->file, name, 0, r->line);
    FP_PUSH(r->functions, r->n_functions, r->cap_functions) = function;
}

/* Copies a text of the file as a whole. */
static void copy(struct speedscope_reader *r, struct fp_speedscope_text *to) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->walk.json, &r->walk.scratch, &n);
    to->n = n < sizeof to->p ? (uint32_t)n : (uint32_t)sizeof to->p;
    memcpy(to->p, p, to->n);
}

static int first_begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct speedscope_reader *r = to;
    r->at = in->base + in->pos;
    r->name = r->file = r->line = 0;
    r->seen_profiles |= kind == PROFILES || kind == NO_LIST;
    switch (kind) {
        case NOT_FRAME: return broken(r, r->at, "a frame is not an object", "{", err);
        case NOT_PROFILE: return broken(r, r->at, "a profile is not an object", "{", err);
        case ITEM: r->pub.profiles[r->pub.n_profiles - 1].has_items = 1; return FP_DONE;
        case PROFILE:
            FP_PUSH(r->pub.profiles, r->pub.n_profiles, r->cap_profiles) = (struct fp_speedscope_profile){.at = r->at};
            return FP_DONE;
        default: return FP_DONE;
    }
}

static int first_end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    (void)in, (void)err;
    if (kind == FRAME) add_frame(to);
    return FP_DONE;
}

static int first_value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct speedscope_reader *r = to;
    const struct fp_json *j = &r->walk.json;
    int64_t line;
    if (code >= NO_LIST) return first_begin(r, code, in, err);
    if (code == LINE && fp_json_is_integer(&r->walk, &line))
        r->line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
    if (j->token == FP_JSON_NUMBER && code == ACTIVE && fp_json_number(j->text, j->text_n, 0, &r->pub.active, NULL))
        r->pub.active = 0;
    if (j->token != FP_JSON_STRING) return FP_DONE;
    if (code == EXPORTER || code == TITLE) copy(r, code == TITLE ? &r->pub.title : &r->pub.exporter);
    const uint32_t n = r->pub.n_profiles; /* 0: in a frame */
    struct fp_speedscope_profile *const p = n ? &r->pub.profiles[n - 1] : NULL;
    uint32_t *const text = code == FILE_        ? &r->file
                           : code == FRAME_NAME ? &r->name
                           : code == NAME       ? &p->name
                           : code == UNIT       ? &p->unit
                           : code == VALUE      ? &p->value
                           : code == VALUE_UNIT ? &p->value_unit
                           : code == SAMPLES_OF ? &p->samples_of
                                                : NULL;
    if (text) *text = fp_json_intern(&r->walk, &r->model->strings);
    if (code == VALUE) p->has_value = 1;
    if (code == TYPE)
        p->type = fp_json_is(j, "evented")   ? FP_SPEEDSCOPE_EVENTED
                  : fp_json_is(j, "sampled") ? FP_SPEEDSCOPE_SAMPLED
                                             : FP_SPEEDSCOPE_UNKNOWN;
    return FP_DONE;
}

/* ---- the second pass ---- */

/* The current profile. */
static const struct fp_speedscope_profile *of(const struct speedscope_reader *r) {
    return &r->pub.profiles[r->profile - 1];
}

static int room(const struct fp_speedscope_profile *p, struct fp_batch *out) {
    if (out->n && (out->n == out->cap || out->part != p->part)) return FP_FULL;
    out->part = p->part;
    return 0;
}

static int end_event(struct speedscope_reader *r, struct fp_err *err) {
    const struct fp_speedscope_profile *p = of(r);
    struct fp_batch *const out = r->out;
    if (r->bad || !r->event_type || !r->has_frame || !r->has_at)
        return broken(r, r->at, "an event is incomplete", "\"type\" O or C, \"frame\" and \"at\"", err);
    if (r->frame >= r->n_functions) {
        if (r->lenient) return broken(r, r->at, "", "", err);
        return fp_fail_got(err, FP_E_MALFORMED, r->at, "the frame of an event", FP_GOT_UNSIGNED, r->frame,
                           "less than %", r->n_functions);
    }
    if (r->event_time < r->last_time) return broken(r, r->at, "an event is earlier than the previous one", NULL, err);
    if (room(p, out)) return FP_FULL;
    r->last_time = r->event_time;
    fp_batch_event(out, r->event_time > 0 ? (uint64_t)r->event_time : 0,
                   r->event_type == 'O' ? FP_OP_ENTER : FP_OP_EXIT, r->functions[r->frame], p->thread, 0);
    r->pub.rows++;
    return FP_DONE;
}

static int event_value(struct speedscope_reader *r, uint32_t code) {
    const struct fp_json *j = &r->walk.json;
    int64_t frame;
    if (code == TYPE && j->token == FP_JSON_STRING)
        r->event_type = fp_json_is(j, "O") ? 'O' : fp_json_is(j, "C") ? 'C' : 0;
    if (j->token != FP_JSON_NUMBER) return FP_DONE;
    if (code == FRAME_OF) {
        r->bad |= fp_json_number(j->text, j->text_n, 0, &frame, NULL) || frame < 0;
        r->frame = (uint64_t)frame;
        r->has_frame = !r->bad;
    } else if (code == AT) {
        r->bad |= fp_json_number(j->text, j->text_n, of(r)->scale, &r->event_time, NULL) != 0;
        r->has_at = !r->bad;
    }
    return FP_DONE;
}

/* The frame of the model for a frame of the file. */
static uint32_t model_frame(struct speedscope_reader *r, uint32_t index) {
    fp_array_zeroed(&r->frames, &r->cap_frames, r->n_functions, sizeof *r->frames);
    if (!r->frames[index]) {
        const uint32_t frame = fp_model_plain_frame(r->model, r->functions[index]);
        r->frames[index] = frame;
    }
    return r->frames[index];
}

/* Begins a stack. */
static void begin_stack(struct speedscope_reader *r, uint32_t shared) {
    r->n_stack = r->shared = shared;
}

/* Adds a frame to the current stack. */
static void push_frame(struct speedscope_reader *r, uint32_t index) {
    const uint32_t n = r->n_stack++;
    if (n < r->n_known && r->indices[n] == index) {
        r->shared++;
        return;
    }
    *FP_AT(r->indices, r->cap_indices, n) = index;
    r->n_known = n + 1;
    if (r->n_nodes > n) r->n_nodes = n;
}

/* The stacks that follow share nothing with earlier ones. */
static void forget_stack(struct speedscope_reader *r) {
    r->n_stack = r->n_known = r->shared = r->n_nodes = 0;
}

/* The current stack in the model. */
static uint32_t model_stack(struct speedscope_reader *r) {
    if (r->n_renewed != r->model->n_renewed) r->n_nodes = 0;
    r->n_renewed = r->model->n_renewed;
    fp_array_room(&r->nodes, &r->cap_nodes, r->n_stack, sizeof *r->nodes);
    for (uint32_t n = r->n_nodes; n < r->n_stack; n++) {
        const uint32_t frame = model_frame(r, r->indices[n]);
        const uint32_t node = fp_model_stack(r->model, n ? r->nodes[n - 1] : 0, frame);
        r->nodes[n] = node;
        r->n_nodes = n + 1;
    }
    return r->n_stack ? r->nodes[r->n_stack - 1] : 0;
}

static int keep(struct speedscope_reader *r, int64_t number) {
    if (r->pub.n_kept == FP_SPEEDSCOPE_KEPT) {
        r->pub.request = FP_SPEEDSCOPE_SPILL;
        return FP_NEEDS;
    }
    r->pub.kept[r->pub.n_kept++] = number;
    r->moved++;
    return FP_DONE;
}

static int read_back(struct speedscope_reader *r, int64_t *number) {
    if (r->read == r->pub.n_kept) {
        r->read = 0;
        r->pub.request = FP_SPEEDSCOPE_REFILL;
        return FP_NEEDS;
    }
    *number = r->pub.kept[r->read++];
    r->moved++;
    return FP_DONE;
}

/* Keeps the current stack: shared << 32 | depth, then two frames a number; a dropped one as -1.
 *
 *   [1, 2, 3], [1, 2, 7, 8, 9]  become  0 << 32 | 3, 1 << 32 | 2, 3 << 32,  2 << 32 | 5, 7 << 32 | 8, 9 << 32
 */
static int keep_stack(struct speedscope_reader *r, int is_dropped) {
    int status = FP_DONE;
    if (!r->moved) status = keep(r, is_dropped ? -1 : (int64_t)((uint64_t)r->shared << 32 | r->n_stack));
    while (status == FP_DONE && !is_dropped) {
        const uint64_t at = r->shared + 2 * (uint64_t)(r->moved - 1);
        if (at >= r->n_stack) break;
        const uint64_t next = at + 1 < r->n_stack ? r->indices[at + 1] : 0;
        status = keep(r, (int64_t)((uint64_t)r->indices[at] << 32 | next));
    }
    if (status != FP_DONE) return status;
    r->moved = 0;
    if (is_dropped) forget_stack(r);
    return FP_DONE;
}

/* Reads the next kept stack back.  Again after FP_NEEDS. */
static int restore_stack(struct speedscope_reader *r, int *is_dropped) {
    int64_t number = 0;
    int status = FP_DONE;
    if (!r->moved) {
        status = read_back(r, &number);
        if (status != FP_DONE) return status;
        r->depth = number == -1 ? UINT32_MAX : (uint32_t)number;
        if (number == -1)
            forget_stack(r);
        else
            begin_stack(r, (uint32_t)((uint64_t)number >> 32));
    }
    *is_dropped = r->depth == UINT32_MAX;
    while (!*is_dropped && r->n_stack < r->depth) {
        status = read_back(r, &number);
        if (status != FP_DONE) return status;
        push_frame(r, (uint32_t)((uint64_t)number >> 32));
        if (r->n_stack < r->depth) push_frame(r, (uint32_t)number);
    }
    return FP_DONE;
}

/* The next kept value: a weight, or a stack.  Negative: it was dropped.  FP_DONE, or FP_NEEDS and again. */
static int restore(struct speedscope_reader *r, int64_t *value) {
    int is_dropped = 0, status = FP_DONE;
    if (r->kept_of == SAMPLES)
        status = r->restored ? FP_DONE : restore_stack(r, &is_dropped);
    else if (!r->restored)
        status = read_back(r, &r->weight);
    if (status != FP_DONE) return status;
    if (!r->restored && r->kept_of == SAMPLES) r->weight = is_dropped ? -1 : 0;
    r->restored = 1; /* until there is room for its row */
    *value = r->weight;
    return FP_DONE;
}

/* A sample (the current stack; -1: dropped) or weight of the list `list`: kept, or combined with the kept one to a row.
 */
static int add_value(struct speedscope_reader *r, uint32_t list, int64_t value, struct fp_err *err) {
    const struct fp_speedscope_profile *p = of(r);
    struct fp_batch *const out = r->out;
    if (!r->kept_of) r->kept_of = list;
    if (r->kept_of == list && !r->pairing) {
        const int status = list == SAMPLES ? keep_stack(r, value < 0) : keep(r, value);
        if (status != FP_DONE) return status;
        r->moved = 0;
        r->pub.n_first++;
        return FP_DONE;
    }
    if (r->kept_of == list || r->pub.n_second == r->pub.n_first)
        return broken(r, r->at, "a profile has different numbers of weights and samples", NULL, err);
    if (!r->pairing) {
        r->pairing = 1;
        r->read = r->moved = 0;
        if (r->kept_of == SAMPLES) forget_stack(r);
        if (r->pub.spills) {
            r->pub.request = FP_SPEEDSCOPE_SPILL; /* spill the rest, then read all of them back */
            return FP_NEEDS;
        }
    }
    int64_t kept;
    if (restore(r, &kept)) return FP_NEEDS;
    if (room(p, out)) return FP_FULL;
    r->restored = 0;
    r->moved = 0;
    r->pub.n_second++;
    if (value < 0 && list == SAMPLES) forget_stack(r);
    if (kept < 0 || value < 0) return FP_DONE; /* reported already */
    const int64_t weight = list == WEIGHTS ? value : kept;
    const uint32_t i = fp_batch_sample(out, model_stack(r), p->thread, 0, 0);
    for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + i] = k == p->column ? weight : 0;
    r->pub.rows++;
    return FP_DONE;
}

/* What is in the place of a sample. */
static int not_sample(struct speedscope_reader *r, struct fp_err *err) {
    if (!r->lenient) return broken(r, r->at, "a sample is not an array", "[", err);
    const int added = add_value(r, SAMPLES, -1, err);
    r->pub.broken += added == FP_DONE;
    return added;
}

/* What is in the place of a frame of a sample, or the end of an array in this place. */
static int sample_frame(struct speedscope_reader *r, const struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &r->walk.json;
    const int nested = fp_json_within(&r->walk) == NESTED;
    int64_t index = -1;
    r->n_nested += (uint32_t)nested;
    if (!fp_json_is_integer(&r->walk, &index) || index < 0 || index >= r->n_functions || (nested && r->n_nested > 1)) {
        r->bad = 1;
        if (r->lenient) return broken(r, r->at, "", "", err);
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "a frame of a sample", j->text,
                            j->token == FP_JSON_NUMBER ? j->text_n : 0, "the index of a frame in the file");
    }
    r->pub.nested += (uint64_t)nested;
    push_frame(r, (uint32_t)index);
    return FP_DONE;
}

static int weight_value(struct speedscope_reader *r, const struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &r->walk.json;
    const struct fp_speedscope_profile *p = of(r);
    int64_t weight = 0; /* null counts as 0 */
    int rounded = 0;
    r->at = in->base + in->pos;
    const int status = j->token == FP_JSON_NUMBER ? fp_json_number(j->text, j->text_n, p->scale, &weight, &rounded) : 0;
    if (status || weight < 0 || j->token < FP_JSON_NUMBER) {
        if (!r->lenient)
            return fp_fail_text(err, status ? status : FP_E_MALFORMED, r->at, 0, "a weight", j->text,
                                j->token >= FP_JSON_STRING ? j->text_n : 0, "a number from 0 to 2^63 - 1");
        weight = -1;
    }
    const int added = add_value(r, WEIGHTS, weight, err);
    r->pub.broken += weight < 0 && added == FP_DONE;
    r->pub.rounded += rounded && !p->is_time && added == FP_DONE;
    return added;
}

static void next_profile(struct speedscope_reader *r) {
    r->profile++;
    r->kept_of = r->pub.n_kept = r->read = 0;
    r->pub.spills = 0;
    r->pairing = r->restored = 0;
    r->pub.n_first = r->pub.n_second = 0;
    r->moved = 0;
    forget_stack(r);
    r->last_time = INT64_MIN;
}

static int second_begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct speedscope_reader *r = to;
    switch (kind) {
        case PROFILE: next_profile(r); return FP_DONE;
        case EVENTS: r->walk.pass = !of(r)->wanted || of(r)->type != FP_SPEEDSCOPE_EVENTED; return FP_DONE;
        case SAMPLES:
        case WEIGHTS: r->walk.pass = !of(r)->wanted || of(r)->type != FP_SPEEDSCOPE_SAMPLED; return FP_DONE;
        case EVENT:
        case NOT_EVENT:
            r->at = in->base + in->pos;
            r->event_type = r->has_frame = r->has_at = r->bad = 0;
            return kind == EVENT ? FP_DONE : broken(r, r->at, "an event is not an object", "{", err);
        case SAMPLE:
        case NOT_SAMPLE:
            r->at = in->base + in->pos;
            r->bad = 0;
            begin_stack(r, 0);
            return kind == SAMPLE ? FP_DONE : not_sample(r, err);
        case NESTED: r->n_nested = 0; return FP_DONE;
        case INDEX: return sample_frame(r, in, err);
        case WEIGHT: return weight_value(r, in, err);
        default: return FP_DONE;
    }
}

static int second_end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct speedscope_reader *r = to;
    switch (kind) {
        case EVENT: return end_event(r, err);
        case SAMPLE: return add_value(r, SAMPLES, r->bad ? -1 : 0, err);
        case NESTED: return r->n_nested == 1 ? FP_DONE : sample_frame(r, in, err);
        case PROFILE:
            if (!of(r)->wanted || r->pub.n_first == r->pub.n_second) return FP_DONE;
            return broken(r, of(r)->at, "a profile has different numbers of weights and samples", NULL, err);
        default: return FP_DONE;
    }
}

static int second_value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    return code == TYPE || code == FRAME_OF || code == AT ? event_value(to, code) : second_begin(to, code, in, err);
}

/* ---- the text ---- */

static const struct fp_json_shape shapes[] = {
    {FP_JSON_ROWS(first_rows), .begin = first_begin, .end = first_end, .value = first_value},
    {FP_JSON_ROWS(second_rows), .begin = second_begin, .end = second_end, .value = second_value},
};

struct fp_speedscope_read *fp_speedscope_read_new(struct fp_model *model, int lenient) {
    struct speedscope_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = r->walk.lenient = lenient;
    fp_json_begin(&r->walk, &shapes[0]);
    r->pub.kept = fp_have(malloc(FP_SPEEDSCOPE_KEPT * sizeof *r->pub.kept));
    return &r->pub;
}

void fp_speedscope_read_free(struct fp_speedscope_read *pub) {
    struct speedscope_reader *r = (struct speedscope_reader *)pub;
    fp_json_free(&r->walk);
    FP_FREE(r->pub.profiles, r->pub.kept, r->functions, r->frames, r->indices, r->nodes, r);
}

void fp_speedscope_again(struct fp_speedscope_read *pub) {
    struct speedscope_reader *r = (struct speedscope_reader *)pub;
    r->second = 1;
    fp_json_begin(&r->walk, &shapes[1]);
}

int fp_speedscope_feed(struct fp_speedscope_read *pub, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct speedscope_reader *r = (struct speedscope_reader *)pub;
    r->out = out;
    const int status = fp_json_walk(&r->walk, r, in, err);
    if (status != FP_DONE) return status;
    pub->bad_end = r->second && r->walk.bad_end;
    return r->seen_profiles || r->lenient ? FP_DONE : fp_fail(err, FP_E_MALFORMED, 0, "the object has no profiles");
}
