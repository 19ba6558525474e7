#include "speedscope/read.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/rows.h"

enum speedscope_key {
    OTHER = 0,
    SHARED,
    FRAMES,
    PROFILES,
    ACTIVE,
    NAME,
    FILE_,
    LINE,
    TYPE,
    UNIT,
    EXPORTER,
    TITLE,
    VALUE,
    VALUE_UNIT,
    SAMPLES_OF,
    EVENTS, /* lists of a profile from here on */
    SAMPLES,
    WEIGHTS,
    FRAME,
    AT
};

/* The nesting depth inside each of these. */
enum { IN_FRAMES = 3, IN_FRAME = 4, IN_PROFILES = 2, IN_PROFILE = 3, IN_LIST = 4, IN_ITEM = 5, IN_NESTED = 6 };

struct fp_speedscope_read *fp_speedscope_read_new(struct fp_model *model, int lenient) {
    struct fp_speedscope_read *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    r->kept = malloc(FP_SPEEDSCOPE_KEPT * sizeof *r->kept);
    if (!r->kept) {
        fp_speedscope_read_free(r);
        return NULL;
    }
    return r;
}

void fp_speedscope_read_free(struct fp_speedscope_read *r) {
    if (!r) return;
    free(r->profiles);
    free(r->kept);
    fp_buf_free(&r->scratch);
    free(r->functions);
    free(r->frames);
    free(r->indices);
    free(r->nodes);
    free(r);
}

void fp_speedscope_again(struct fp_speedscope_read *r) {
    r->second = 1;
    r->over = 0;
    r->profile = 0;
    r->json = (struct fp_json){0};
    memset(r->path, 0, sizeof r->path);
}

/* ---- position ---- */

static int within(const struct fp_speedscope_read *r, const char *kinds, uint32_t first, uint32_t depth) {
    const struct fp_json *j = &r->json;
    return j->depth >= depth && r->path[1] == first && !memcmp(j->kinds, kinds, depth);
}

static int in_frames(const struct fp_speedscope_read *r) {
    return within(r, "{{[", SHARED, IN_FRAMES) && r->path[2] == FRAMES;
}

static int in_profiles(const struct fp_speedscope_read *r) {
    return within(r, "{[", PROFILES, IN_PROFILES);
}

/* The list of the current profile: EVENTS, SAMPLES or WEIGHTS; otherwise 0. */
static uint32_t list_of(const struct fp_speedscope_read *r) {
    return within(r, "{[{[", PROFILES, IN_LIST) && r->path[IN_PROFILE] >= EVENTS ? r->path[IN_PROFILE] : 0;
}

static uint8_t key_of(const struct fp_speedscope_read *r) {
    static const struct {
        const char *key;
        uint8_t code, depth;
    } keys[] = {{"shared", SHARED, 1},
                {"profiles", PROFILES, 1},
                {"activeProfileIndex", ACTIVE, 1},
                {"exporter", EXPORTER, 1},
                {"name", TITLE, 1},
                {"frames", FRAMES, 2},
                {"name", NAME, IN_FRAME},
                {"file", FILE_, IN_FRAME},
                {"line", LINE, IN_FRAME},
                {"type", TYPE, IN_PROFILE},
                {"name", NAME, IN_PROFILE},
                {"unit", UNIT, IN_PROFILE},
                {"valueType", VALUE, IN_PROFILE},
                {"valueUnit", VALUE_UNIT, IN_PROFILE},
                {"samplesOf", SAMPLES_OF, IN_PROFILE},
                {"events", EVENTS, IN_PROFILE},
                {"samples", SAMPLES, IN_PROFILE},
                {"weights", WEIGHTS, IN_PROFILE},
                {"type", TYPE, IN_ITEM},
                {"frame", FRAME, IN_ITEM},
                {"at", AT, IN_ITEM}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].depth == r->json.depth && fp_json_is(&r->json, keys[i].key)) return keys[i].code;
    return OTHER;
}

static int broken(struct fp_speedscope_read *r, uint64_t at, const char *what, const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->broken += (uint64_t)r->second;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

static uint32_t intern(struct fp_speedscope_read *r) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->json, &r->scratch, &n);
    return p ? fp_strings_intern(&r->model->strings, p, n) : FP_NO_ID;
}

/* ---- the first pass ---- */

static int add_frame(struct fp_speedscope_read *r) {
    struct fp_model *m = r->model;
    const uint32_t name = r->name ? r->name : fp_strings_intern(&m->strings, "[unknown]", 9);
    const uint32_t function = name == FP_NO_ID ? FP_NO_ID : fp_model_function(m, 0, r->file, name, 0, r->line);
    if (function == FP_NO_ID ||
        fp_array_room(&r->functions, &r->cap_functions, (uint64_t)r->n_functions + 1, sizeof *r->functions))
        return FP_E_NOMEM;
    r->functions[r->n_functions++] = function;
    return 0;
}

static int frame_token(struct fp_speedscope_read *r, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth == IN_FRAMES && j->token != FP_JSON_ARRAY_END) {
        r->at = in->base + in->pos;
        r->name = r->file = r->line = 0;
        if (j->token != FP_JSON_OBJECT) return broken(r, r->at, "a frame is not an object", "{", err);
    }
    if (j->depth != IN_FRAME || j->kinds[3] != '{') return FP_DONE;
    const uint8_t key = r->path[IN_FRAME];
    if (j->token == FP_JSON_OBJECT_END) return add_frame(r) ? fp_no_memory(err) : FP_DONE;
    if (j->token == FP_JSON_STRING && (key == NAME || key == FILE_)) {
        const uint32_t string = intern(r);
        if (string == FP_NO_ID) return fp_no_memory(err);
        *(key == NAME ? &r->name : &r->file) = string;
    }
    int64_t line;
    if (j->token == FP_JSON_NUMBER && key == LINE && !fp_json_number(j->text, j->text_n, 0, &line, NULL))
        r->line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
    return FP_DONE;
}

static int profile_token(struct fp_speedscope_read *r, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth == IN_PROFILES && j->token != FP_JSON_ARRAY_END) {
        if (j->token != FP_JSON_OBJECT) return broken(r, in->base + in->pos, "a profile is not an object", "{", err);
        if (fp_array_zeroed(&r->profiles, &r->cap_profiles, (uint64_t)r->n_profiles + 1, sizeof *r->profiles))
            return fp_no_memory(err);
        r->profiles[r->n_profiles++] = (struct fp_speedscope_profile){.at = in->base + in->pos};
    }
    if (j->depth == IN_LIST && j->token != FP_JSON_ARRAY_END && list_of(r))
        r->profiles[r->n_profiles - 1].has_items = 1;
    if (j->depth != IN_PROFILE || j->token != FP_JSON_STRING || j->kinds[2] != '{') return FP_DONE;
    struct fp_speedscope_profile *p = &r->profiles[r->n_profiles - 1];
    const uint8_t key = r->path[IN_PROFILE];
    if (key == TYPE)
        p->type = fp_json_is(j, "evented")   ? FP_SPEEDSCOPE_EVENTED
                  : fp_json_is(j, "sampled") ? FP_SPEEDSCOPE_SAMPLED
                                             : FP_SPEEDSCOPE_UNKNOWN;
    uint32_t *const text = key == NAME         ? &p->name
                           : key == UNIT       ? &p->unit
                           : key == VALUE      ? &p->value
                           : key == VALUE_UNIT ? &p->value_unit
                           : key == SAMPLES_OF ? &p->samples_of
                                               : NULL;
    p->has_value |= key == VALUE;
    if (text && (*text = intern(r)) == FP_NO_ID) return fp_no_memory(err);
    return FP_DONE;
}

/* ---- the second pass ---- */

static int room(const struct fp_speedscope_profile *p, struct fp_batch *out) {
    if (out->n && (out->n == out->cap || out->part != p->part)) return FP_FULL;
    out->part = p->part;
    return 0;
}

static int end_event(struct fp_speedscope_read *r, const struct fp_speedscope_profile *p, struct fp_batch *out,
                     struct fp_err *err) {
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
    fp_add_row(out, r->event_type == 'O' ? FP_OP_ENTER : FP_OP_EXIT, r->event_time > 0 ? (uint64_t)r->event_time : 0,
               p->thread, r->functions[r->frame]);
    r->rows++;
    return FP_DONE;
}

static int event_token(struct fp_speedscope_read *r, const struct fp_speedscope_profile *p, struct fp_in *in,
                       struct fp_batch *out, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth == IN_LIST && j->token != FP_JSON_ARRAY_END) {
        r->at = in->base + in->pos;
        r->event_type = r->has_frame = r->has_at = r->bad = 0;
        return j->token == FP_JSON_OBJECT ? FP_DONE : broken(r, r->at, "an event is not an object", "{", err);
    }
    if (j->depth != IN_ITEM || j->kinds[4] != '{') return FP_DONE;
    if (j->token == FP_JSON_OBJECT_END) return end_event(r, p, out, err);
    const uint8_t key = r->path[IN_ITEM];
    int64_t frame;
    if (key == TYPE && j->token == FP_JSON_STRING)
        r->event_type = fp_json_is(j, "O") ? 'O' : fp_json_is(j, "C") ? 'C' : 0;
    if (j->token != FP_JSON_NUMBER) return FP_DONE;
    if (key == FRAME) {
        r->bad |= fp_json_number(j->text, j->text_n, 0, &frame, NULL) || frame < 0;
        r->frame = (uint64_t)frame;
        r->has_frame = !r->bad;
    } else if (key == AT) {
        r->bad |= fp_json_number(j->text, j->text_n, p->scale, &r->event_time, NULL) != 0;
        r->has_at = !r->bad;
    }
    return FP_DONE;
}

/* The frame of the model for a frame of the file.  FP_NO_ID when memory ran out. */
static uint32_t model_frame(struct fp_speedscope_read *r, uint32_t index) {
    if (fp_array_zeroed(&r->frames, &r->cap_frames, r->n_functions, sizeof *r->frames)) return FP_NO_ID;
    if (!r->frames[index]) {
        const uint32_t frame = fp_model_plain_frame(r->model, r->functions[index]);
        if (frame == FP_NO_ID) return FP_NO_ID;
        r->frames[index] = frame;
    }
    return r->frames[index];
}

/* Adds a frame to the current stack.  The part shared with the previous stack is known. */
static int push_frame(struct fp_speedscope_read *r, uint32_t index) {
    const uint32_t n = r->n_stack;
    if (n < r->n_known && r->indices[n] == index) {
        r->n_stack++;
        return 0;
    }
    if (fp_array_room(&r->indices, &r->cap_indices, (uint64_t)n + 1, sizeof *r->indices) ||
        fp_array_room(&r->nodes, &r->cap_nodes, (uint64_t)n + 1, sizeof *r->nodes))
        return FP_E_NOMEM;
    const uint32_t frame = model_frame(r, index);
    const uint32_t node = frame == FP_NO_ID ? FP_NO_ID : fp_model_stack(r->model, n ? r->nodes[n - 1] : 0, frame);
    if (node == FP_NO_ID) return FP_E_NOMEM;
    r->indices[n] = index;
    r->nodes[n] = node;
    r->n_known = r->n_stack = n + 1;
    return 0;
}

/* A sample (-1: dropped) or weight of the list `list`: kept, or combined with the kept one to a row. */
static int add_value(struct fp_speedscope_read *r, const struct fp_speedscope_profile *p, uint32_t list, int64_t value,
                     struct fp_batch *out, struct fp_err *err) {
    if (!r->kept_of) r->kept_of = list;
    if (r->kept_of == list && !r->pairing) {
        if (r->n_kept == FP_SPEEDSCOPE_KEPT) {
            r->spilled = 1;
            r->request = FP_SPEEDSCOPE_SPILL;
            return FP_ASK;
        }
        r->kept[r->n_kept++] = value;
        r->n_first++;
        return FP_DONE;
    }
    if (r->kept_of == list || r->n_second == r->n_first)
        return broken(r, r->at, "a profile has different numbers of weights and samples", NULL, err);
    if (!r->pairing) {
        r->pairing = 1;
        r->read = 0;
        if (r->spilled) {
            r->request = FP_SPEEDSCOPE_SPILL; /* spill the rest, then read all of them back */
            return FP_ASK;
        }
    }
    if (r->read == r->n_kept) {
        r->read = 0;
        r->request = FP_SPEEDSCOPE_REFILL;
        return FP_ASK;
    }
    if (room(p, out)) return FP_FULL;
    const int64_t kept = r->kept[r->read++], weight = list == WEIGHTS ? value : kept;
    const int64_t stack = list == WEIGHTS ? kept : value;
    r->n_second++;
    if (stack < 0 || weight < 0) return FP_DONE; /* reported already */
    const uint32_t i = out->n++;
    out->stack[i] = (uint32_t)stack;
    for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + i] = k == p->column ? weight : 0;
    out->time[i] = 0;
    out->thread[i] = p->thread;
    out->label[i] = 0;
    r->rows++;
    return FP_DONE;
}

static int sample_token(struct fp_speedscope_read *r, const struct fp_speedscope_profile *p, struct fp_in *in,
                        struct fp_batch *out, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth == IN_LIST && j->token != FP_JSON_ARRAY_END) {
        r->at = in->base + in->pos;
        r->n_stack = r->bad = 0;
        if (j->token == FP_JSON_ARRAY) return FP_DONE;
        if (!r->lenient) return broken(r, r->at, "a sample is not an array", "[", err);
        const int added = add_value(r, p, SAMPLES, -1, out, err);
        r->broken += added == FP_DONE;
        return added;
    }
    if (j->depth < IN_ITEM || j->kinds[4] != '[') return FP_DONE;
    const int nested = j->depth == IN_NESTED && j->kinds[5] == '['; /* [0] for 0, which JavaScript treats alike */
    if (j->depth != IN_ITEM && !nested) return FP_DONE;
    if (j->depth == IN_ITEM && j->token == FP_JSON_ARRAY) {
        r->n_nested = 0;
        return FP_DONE;
    }
    if (nested && j->token == FP_JSON_ARRAY_END && r->n_nested == 1) return FP_DONE;
    r->n_nested += (uint32_t)nested;
    if (j->token == FP_JSON_ARRAY_END && !nested) {
        const int64_t stack = r->bad ? -1 : r->n_stack ? (int64_t)r->nodes[r->n_stack - 1] : 0;
        return add_value(r, p, SAMPLES, stack, out, err);
    }
    int64_t index = -1;
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, &index, NULL) || index < 0 ||
        index >= r->n_functions || (nested && r->n_nested > 1)) {
        r->bad = 1;
        if (r->lenient) return broken(r, r->at, "", "", err);
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "a frame of a sample", j->text,
                            j->token == FP_JSON_NUMBER ? j->text_n : 0, "the index of a frame in the file");
    }
    r->nested += (uint64_t)nested;
    return push_frame(r, (uint32_t)index) ? fp_no_memory(err) : FP_DONE;
}

static int weight_token(struct fp_speedscope_read *r, const struct fp_speedscope_profile *p, struct fp_in *in,
                        struct fp_batch *out, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth != IN_LIST || j->token == FP_JSON_ARRAY_END) return FP_DONE;
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
    const int added = add_value(r, p, WEIGHTS, weight, out, err);
    r->broken += weight < 0 && added == FP_DONE;
    r->rounded += rounded && !p->is_time && added == FP_DONE;
    return added;
}

static int row_token(struct fp_speedscope_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->depth == IN_PROFILES && j->token == FP_JSON_OBJECT) {
        r->profile++;
        r->kept_of = r->n_kept = r->read = 0;
        r->spilled = r->pairing = 0;
        r->n_first = r->n_second = 0;
        r->n_known = r->n_stack = 0;
        r->last_time = INT64_MIN;
        return FP_DONE;
    }
    if (!r->profile) return FP_DONE;
    const struct fp_speedscope_profile *p = &r->profiles[r->profile - 1];
    if (j->depth == IN_PROFILE && j->token == FP_JSON_OBJECT_END && p->wanted && r->n_first != r->n_second)
        return broken(r, p->at, "a profile has different numbers of weights and samples", NULL, err);
    const uint32_t list = p->wanted ? list_of(r) : 0;
    if (list == EVENTS && p->type == FP_SPEEDSCOPE_EVENTED) return event_token(r, p, in, out, err);
    if (list == SAMPLES && p->type == FP_SPEEDSCOPE_SAMPLED) return sample_token(r, p, in, out, err);
    if (list == WEIGHTS && p->type == FP_SPEEDSCOPE_SAMPLED) return weight_token(r, p, in, out, err);
    return FP_DONE;
}

/* ---- the text ---- */

/* Copies a text of the file as a whole. */
static int copy(struct fp_speedscope_read *r, struct fp_speedscope_text *to) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->json, &r->scratch, &n);
    if (!p) return FP_E_NOMEM;
    to->n = n < sizeof to->p ? (uint32_t)n : (uint32_t)sizeof to->p;
    memcpy(to->p, p, to->n);
    return FP_DONE;
}

static int token(struct fp_speedscope_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_OBJECT_END)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "the file is not a JSON object");
    if (j->token == FP_JSON_KEY && j->depth < sizeof r->path) {
        r->path[j->depth] = key_of(r);
        r->seen_profiles |= r->path[1] == PROFILES;
        return FP_DONE;
    }
    if (in_profiles(r)) return r->second ? row_token(r, in, out, err) : profile_token(r, in, err);
    if (j->depth == 1 && r->path[1] == ACTIVE && j->token == FP_JSON_NUMBER &&
        fp_json_number(j->text, j->text_n, 0, &r->active, NULL))
        r->active = 0;
    if (j->depth == 1 && (r->path[1] == EXPORTER || r->path[1] == TITLE) && j->token == FP_JSON_STRING &&
        copy(r, r->path[1] == TITLE ? &r->title : &r->exporter))
        return fp_fail(err, FP_E_NOMEM, 0, "the file's name");
    return in_frames(r) && !r->second ? frame_token(r, in, err) : FP_DONE;
}

int fp_speedscope_feed(struct fp_speedscope_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    while (!r->over) {
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status < 0 && r->lenient) {
            r->bad_end += (uint64_t)r->second;
            r->over = 1;
            break;
        }
        if (status < 0) return status;
        if (j->token == FP_JSON_END) {
            r->over = 1;
            if (r->seen_profiles || r->lenient) break;
            return fp_fail(err, FP_E_MALFORMED, 0, "the object has no profiles");
        }
        status = token(r, in, out, err);
        if (status) return status;
        fp_json_take(j, in);
    }
    in->pos = in->n;
    return in->eof ? FP_DONE : FP_MORE;
}
