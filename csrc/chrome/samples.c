#include "chrome/samples.h"

#include <stdlib.h>

#include "core/array.h"
#include "chrome/samples_private.h"

/* The kind of a level of the text. */
enum within {
    NOTHING = 0,
    TOP,
    EVENTS,
    EVENT,
    ARGS,
    DATA,
    PROFILE,
    NODES,
    NODE,
    CALL,
    CHILDREN,
    SAMPLES,
    SAMPLE,
    DELTAS,
    TIMES,
    LINES,
    FRAMES,
    FRAME,
    STACK
};

/* The keys known in any object. */
enum samples_key {
    NO_KEY = 0,
    K_TRACE_EVENTS,
    K_STACK_FRAMES,
    K_SAMPLES,
    K_NODES,
    K_HEAD,
    K_CPU_PROFILE,
    K_PROFILE,
    K_TIME_DELTAS,
    K_TIMESTAMPS,
    K_LINES,
    K_START,
    K_END,
    K_PH,
    K_NAME,
    K_TS,
    K_PID,
    K_TID,
    K_ID,
    K_SF,
    K_STACK,
    K_ARGS,
    K_DATA,
    K_PARENT,
    K_CALL_FRAME,
    K_CHILDREN,
    K_FUNCTION,
    K_URL,
    K_LINE,
    K_HITS,
    K_CATEGORY,
    K_WEIGHT,
    ANY_KEY /* below 64 */
};

#define KEY(text) {text, sizeof text - 1}
static const struct {
    const char *text;
    size_t n;
} KEYS[] = {KEY(""),         KEY("traceEvents"),  KEY("stackFrames"), KEY("samples"),    KEY("nodes"),
            KEY("head"),     KEY("cpuProfile"),   KEY("profile"),     KEY("timeDeltas"), KEY("timestamps"),
            KEY("lines"),    KEY("startTime"),    KEY("endTime"),     KEY("ph"),         KEY("name"),
            KEY("ts"),       KEY("pid"),          KEY("tid"),         KEY("id"),         KEY("sf"),
            KEY("stack"),    KEY("args"),         KEY("data"),        KEY("parent"),     KEY("callFrame"),
            KEY("children"), KEY("functionName"), KEY("url"),         KEY("lineNumber"), KEY("hitCount"),
            KEY("category"), KEY("weight")};

/* What an object (1) or array (0) becomes under a key of another one, or as an element (ANY_KEY). */
static const uint8_t BECOMES[STACK + 1][ANY_KEY + 1][2] = {
    [TOP][K_TRACE_EVENTS][0] = EVENTS,
    [TOP][K_STACK_FRAMES][1] = FRAMES,
    [TOP][K_SAMPLES][0] = SAMPLES,
    [TOP][K_NODES][0] = NODES,
    [TOP][K_TIME_DELTAS][0] = DELTAS,
    [TOP][K_LINES][0] = LINES,
    [TOP][K_HEAD][1] = NODE,
    [TOP][K_TIMESTAMPS][0] = TIMES,
    [TOP][K_CPU_PROFILE][1] = PROFILE,
    [TOP][K_PROFILE][1] = PROFILE,
    [EVENTS][ANY_KEY][1] = EVENT,
    [EVENT][K_ARGS][1] = ARGS,
    [EVENT][K_STACK][0] = STACK,
    [ARGS][K_DATA][1] = DATA,
    [DATA][K_CPU_PROFILE][1] = PROFILE,
    [DATA][K_TIME_DELTAS][0] = DELTAS,
    [DATA][K_LINES][0] = LINES,
    [PROFILE][K_NODES][0] = NODES,
    [PROFILE][K_SAMPLES][0] = SAMPLES,
    [PROFILE][K_TIME_DELTAS][0] = DELTAS,
    [PROFILE][K_HEAD][1] = NODE,
    [PROFILE][K_TIMESTAMPS][0] = TIMES,
    [PROFILE][K_LINES][0] = LINES,
    [CHILDREN][ANY_KEY][1] = NODE,
    [NODES][ANY_KEY][1] = NODE,
    [NODE][K_CALL_FRAME][1] = CALL,
    [NODE][K_CHILDREN][0] = CHILDREN,
    [SAMPLES][ANY_KEY][1] = SAMPLE,
    [FRAMES][ANY_KEY][1] = FRAME,
};

struct fp_chrome_samples_read *fp_chrome_samples_read_new(struct fp_model *model, int lenient) {
    struct fp_chrome_samples_read *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    r->json.loose = 1;
    int status = fp_chrome_ids_init(&r->thread_ids) | fp_strings_init(&r->ids) | fp_table_init(&r->types, 2) |
                 fp_table_init(&r->node_keys, 2) | fp_table_init(&r->profile_keys, 3);
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++) {
        r->columns[i].values = malloc(FP_CHROME_KEPT * sizeof(int64_t));
        status |= !r->columns[i].values;
    }
    if (!status) return r;
    fp_chrome_samples_read_free(r);
    return NULL;
}

void fp_chrome_samples_read_free(struct fp_chrome_samples_read *r) {
    if (!r) return;
    fp_chrome_ids_clear(&r->thread_ids);
    fp_buf_free(&r->text);
    fp_buf_free(&r->name);
    fp_buf_free(&r->scratch);
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++) free(r->columns[i].values);
    fp_table_clear(&r->types);
    fp_table_clear(&r->node_keys);
    fp_table_clear(&r->profile_keys);
    fp_strings_clear(&r->ids);
    free(r->nodes);
    for (uint32_t i = 0; i < r->cap_profiles; i++) free(r->profiles[i].dense);
    free(r->profiles);
    free(r->children);
    free(r->chain);
    free(r);
}

/* ---- position ---- */

static uint8_t becomes(const struct fp_chrome_samples_read *r, uint8_t within, int is_object) {
    if (!r->json.depth) return is_object ? TOP : EVENTS;
    if (within == SAMPLES && r->json.depth != 2) return NOTHING; /* samples of a profile are not objects */
    const uint8_t under_key = BECOMES[within][r->key][is_object];
    return under_key ? under_key : BECOMES[within][ANY_KEY][is_object];
}

static int is_key(const struct fp_json *j, uint32_t key) {
    return j->text_n == KEYS[key].n && !memcmp(j->text, KEYS[key].text, KEYS[key].n);
}

/* The key of the token; most often the one that followed the last key before. */
static uint32_t key_of(struct fp_chrome_samples_read *r) {
    uint8_t *const next = &r->following[r->key];
    if (FP_LIKELY(*next && is_key(&r->json, *next))) return *next;
    for (uint32_t i = 1; i < sizeof KEYS / sizeof *KEYS; i++)
        if (is_key(&r->json, i)) return *next = (uint8_t)i;
    return NO_KEY;
}

/* Forgets the nodes and the columns of an event. */
static void forget(struct fp_chrome_samples_read *r) {
    r->n_children = r->n_outer = r->zero_based = r->written = r->loaded = 0;
    r->pos = 0;
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++) r->columns[i].n = 0, r->columns[i].total = 0;
}

static void begin(struct fp_chrome_samples_read *r, const struct fp_in *in, uint8_t within) {
    const uint64_t at = in->base + in->pos;
    switch (within) {
        case EVENT:
        case SAMPLE:
            r->event = (struct fp_chrome_samples_event){.at = at, .weight = 1};
            r->thread_ids.pid = r->thread_ids.tid = (struct fp_chrome_id){0};
            r->thread_ids.noted = 0;
            r->name.n = r->text.n = 0;
            break;
        case FRAME:
        case NODE: {
            if (r->within[r->json.depth] == CHILDREN) r->outer[r->n_outer++] = r->frame;
            const uint32_t id = within == FRAME ? r->frame.id : 0; /* the key was the id */
            r->frame = (struct fp_chrome_samples_frame){.at = at, .id = id, .first_child = r->n_children};
            break;
        }
        case CALL: r->frame.is_call = 1; break;
        default: break;
    }
    if (within == EVENT) forget(r);
}

/* ---- values ---- */

static int take_text(struct fp_chrome_samples_read *r, struct fp_buf *to) {
    size_t n;
    if (r->json.token != FP_JSON_STRING) return 0;
    const uint8_t *p = fp_json_plain(&r->json, &r->scratch, &n);
    to->n = 0;
    return !p || fp_buf_put(to, p, n) ? FP_E_NOMEM : 0;
}

static int take_name(struct fp_chrome_samples_read *r, uint32_t *name) {
    size_t n;
    if (r->json.token != FP_JSON_STRING) return 0;
    const uint8_t *p = fp_json_plain(&r->json, &r->scratch, &n);
    *name = p ? fp_strings_intern(&r->model->strings, p, n) : FP_NO_ID;
    return *name == FP_NO_ID ? FP_E_NOMEM : 0;
}

/* The start or end of a profile in nanoseconds, read as microseconds and as seconds; 0 beyond 146 years.
 * Business Central (AL) counts microseconds since the year 1, which do not fit 64 bits as nanoseconds. */
static int take_bound(struct fp_chrome_samples_read *r, int64_t *ns, int64_t *of_seconds) {
    static const int64_t year_1 = INT64_C(62135596800) * 1000000;
    const struct fp_json *j = &r->json;
    int64_t us;
    if (fp_json_number(j->text, j->text_n, 9, of_seconds, NULL) || *of_seconds > INT64_MAX / 2 ||
        *of_seconds < INT64_MIN / 2)
        *of_seconds = 0;
    const int status = fp_chrome_samples_take_time(r, ns);
    if (status != FP_E_OVERFLOW || fp_json_number(j->text, j->text_n, 0, &us, NULL) || us < year_1 ||
        us - year_1 > INT64_MAX / 2000)
        return status;
    r->since_year_1 += (uint64_t)r->second;
    *ns = (us - year_1) * 1000;
    return 0;
}

static int take_weight(struct fp_chrome_samples_read *r) {
    const struct fp_json *j = &r->json;
    int rounded = 0;
    if (j->token == FP_JSON_WORD) return 0;
    const int status = fp_json_number(j->text, j->text_n, 0, &r->event.weight, &rounded);
    r->rounded += rounded && r->second;
    return status;
}

/* Adds the next frame of a stack that is written in its event. */
static int take_frame(struct fp_chrome_samples_read *r) {
    uint32_t name = 0;
    if (!r->second || r->json.token != FP_JSON_STRING) return 0;
    if (take_name(r, &name)) return FP_E_NOMEM;
    const uint32_t function = fp_model_function(r->model, 0, 0, name, 0, 0);
    const uint32_t frame = function == FP_NO_ID ? FP_NO_ID : fp_chrome_samples_frame(r->model, function, 0);
    const uint32_t stack = frame == FP_NO_ID ? FP_NO_ID : fp_model_stack(r->model, r->event.stack, frame);
    if (stack == FP_NO_ID) return FP_E_NOMEM;
    r->event.stack = stack;
    return 0;
}

static int take_of_event(struct fp_chrome_samples_read *r) {
    struct fp_chrome_samples_event *e = &r->event;
    const struct fp_json *j = &r->json;
    switch (r->key) {
        case K_PH:
            if (j->token != FP_JSON_STRING || j->text_n != 1) return FP_E_MALFORMED;
            e->ph = j->text[0];
            return 0;
        case K_NAME: return take_text(r, &r->name);
        case K_TS: e->has_ts = j->token != FP_JSON_WORD; return e->has_ts ? fp_chrome_samples_take_time(r, &e->ts) : 0;
        case K_PID:
            if (fp_chrome_samples_take_id(r, &e->process)) return FP_E_NOMEM;
            return fp_chrome_take_id(&r->thread_ids.pid, j, &r->scratch, r->model);
        case K_TID: return fp_chrome_take_id(&r->thread_ids.tid, j, &r->scratch, r->model);
        case K_ID: return fp_chrome_samples_take_id(r, &e->id);
        case K_SF: e->has_sf = j->token != FP_JSON_WORD; return fp_chrome_samples_take_id(r, &e->sf);
        case K_WEIGHT: return take_weight(r);
        default: return 0;
    }
}

/* The function of a node, from its own fields or its callFrame. */
static int take_of_call(struct fp_chrome_samples_read *r, int64_t first_line) {
    struct fp_chrome_samples_frame *f = &r->frame;
    int64_t line;
    if (r->key == K_FUNCTION) {
        f->is_call = 1;
        return take_name(r, &f->name);
    }
    if (r->key == K_URL) return take_name(r, &f->file);
    if (r->key != K_LINE) return 0;
    const int status = fp_chrome_samples_take_line(r, first_line, &line);
    f->line = (uint32_t)line;
    return status;
}

static int take_of_frame(struct fp_chrome_samples_read *r, uint8_t within) {
    struct fp_chrome_samples_frame *f = &r->frame;
    const struct fp_json *j = &r->json;
    if (within == CALL) return take_of_call(r, 0);
    if (within == NODE && r->key == K_LINE &&
        !r->n_outer) /* of the root, which has no line: -1 means that lines count from 0 */
        r->zero_based = j->text_n == 2 && !memcmp(j->text, "-1", 2);
    if (within == NODE && r->key == K_HITS)
        return j->token == FP_JSON_WORD ? 0 : fp_json_number(j->text, j->text_n, 0, &f->hits, NULL);
    if (within == NODE && r->key == K_ID) return fp_chrome_samples_take_id(r, &f->id);
    if (r->key == K_PARENT) return fp_chrome_samples_take_id(r, &f->parent);
    if (within == NODE) return take_of_call(r, !r->zero_based);
    if (r->key == K_NAME) return take_name(r, &f->name);
    return r->key == K_CATEGORY ? take_name(r, &f->object) : 0;
}

static int take_child(struct fp_chrome_samples_read *r) {
    struct fp_chrome_samples_child child = {0};
    if (fp_chrome_samples_take_id(r, &child.id) ||
        fp_array_room(&r->children, &r->cap_children, (uint64_t)r->n_children + 1, sizeof *r->children))
        return FP_E_NOMEM;
    r->children[r->n_children++] = child;
    return 0;
}

/* Stores a text, number or word.  0, FP_ASK, or an error code with `err` not set. */
static int take_value(struct fp_chrome_samples_read *r, uint8_t within) {
    struct fp_chrome_samples_event *e = &r->event;
    switch (within) {
        case EVENT:
        case SAMPLE: return take_of_event(r);
        case ARGS: return r->key == K_NAME ? take_text(r, &r->text) : 0;
        case TOP:
        case DATA:
        case PROFILE:
            if (r->key == K_START) {
                e->has_start = 1;
                return take_bound(r, &e->start, &e->old_start);
            }
            return r->key == K_END ? take_bound(r, &e->end, &e->old_end) : 0;
        case NODE:
        case CALL:
        case FRAME: return r->second ? 0 : take_of_frame(r, within);
        case CHILDREN: return r->second ? 0 : take_child(r);
        case SAMPLES: return fp_chrome_samples_take_element(r, FP_CHROME_NODES);
        case TIMES: e->is_absolute = 1; return fp_chrome_samples_take_element(r, FP_CHROME_DELTAS);
        case DELTAS: return fp_chrome_samples_take_element(r, FP_CHROME_DELTAS);
        case LINES: return fp_chrome_samples_take_element(r, FP_CHROME_LINES);
        case STACK: return take_frame(r);
        default: return 0;
    }
}

/* ---- ends of objects and arrays ---- */

static int is_named(const struct fp_chrome_samples_read *r, const char *name) {
    return r->name.n == strlen(name) && !memcmp(r->name.p, name, r->name.n);
}

/* Ends an event of a V8 profile, or a whole .cpuprofile.  Chunks lack the sampled thread, because another thread
 * writes them. */
static int end_of_profile(struct fp_chrome_samples_read *r, int has_thread, struct fp_batch *out, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    const uint32_t row = fp_chrome_samples_profile(r);
    if (row == FP_NO_ID) return fp_no_memory(err);
    if (r->second) return fp_chrome_samples_of_columns(r, row, out, err);
    struct fp_chrome_samples_profile *p = &r->profiles[row];
    r->n_sampled += !p->n_samples && r->columns[FP_CHROME_NODES].total;
    p->n_samples += r->columns[FP_CHROME_NODES].total;
    if (has_thread) {
        const int status = fp_chrome_thread_of(&r->thread_ids, &p->thread);
        if (status == FP_ASK) r->request = FP_CHROME_THREAD;
        if (status == FP_E_NOMEM) return fp_no_memory(err);
        if (status) return status;
    }
    if (e->has_start)
        p->start = e->has_head ? e->old_start : e->start;
    else if (has_thread)
        p->start = e->ts;
    if (e->end > 0) p->end = e->has_head ? e->old_end : e->end;
    return fp_chrome_samples_are_of(r, row) ? fp_no_memory(err) : FP_DONE;
}

static int end_of_event(struct fp_chrome_samples_read *r, struct fp_batch *out, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    if (e->ph == 'M') {
        fp_chrome_meta(&r->thread_ids, &r->name);
        if (r->second || !r->thread_ids.meta || !r->text.n || r->thread_ids.noted) return FP_DONE;
        r->request = FP_CHROME_NAME;
        return FP_ASK;
    }
    const int whole = is_named(r, "CpuProfile") || is_named(r, "Profile");
    if ((e->ph == 'P' || e->ph == 'I') && (whole || is_named(r, "ProfileChunk")))
        return end_of_profile(r, whole, out, err);
    if (e->ph == 'P') return fp_chrome_samples_of_event(r, out, err);
    r->others += e->keys && r->second;
    return FP_DONE;
}

/* An object ends. */
static int end(struct fp_chrome_samples_read *r, uint8_t within, struct fp_batch *out, struct fp_err *err) {
    switch (within) {
        case EVENT: return end_of_event(r, out, err);
        case SAMPLE: return fp_chrome_samples_of_event(r, out, err);
        case FRAME:
        case NODE: {
            const int status = r->second ? FP_DONE : fp_chrome_samples_end_frame(r, within == FRAME, err);
            if (r->within[r->json.depth - 1] == CHILDREN) r->frame = r->outer[--r->n_outer];
            return status;
        }
        case TOP:
            if (!r->n_children && !r->columns[FP_CHROME_NODES].total) return FP_DONE;
            return end_of_profile(r, 0, out, err);
        default: return FP_DONE;
    }
}

/* ---- the text ---- */

/* Some writers write the timeDeltas of a chunk twice, in its data and in its cpuProfile.  Those in data are used.
 * FP_ASK if deltas of the cpuProfile were spilled and must be dropped. */
static int choose_deltas(struct fp_chrome_samples_read *r, uint8_t within, uint8_t *next) {
    struct fp_chrome_samples_values *c = &r->columns[FP_CHROME_DELTAS];
    if (within == PROFILE && r->event.has_deltas) *next = NOTHING;
    if (within != DATA) return FP_DONE;
    const int written = r->second && c->total > c->n;
    r->event.has_deltas = 1;
    c->n = 0;
    c->total = 0;
    r->column = FP_CHROME_DELTAS;
    r->request = FP_CHROME_DROP;
    return written ? FP_ASK : FP_DONE;
}

/* Whether the text ends within its events.  Then the writer was killed; the format allows an array without its end. */
static int ends_in_events(struct fp_chrome_samples_read *r) {
    const struct fp_json *j = &r->json;
    const int in_array = j->depth && r->within[1] == EVENTS;
    if (!in_array && !(j->depth > 1 && r->within[2] == EVENTS)) return 0;
    r->open_end = 1;
    r->killed = !(j->depth == 1 && fp_json_between(j));
    return 1;
}

/* Skips an object or array that this pass does not need, up to its last byte.  Returns whether it did. */
static int is_skipped(struct fp_chrome_samples_read *r, const struct fp_in *in) {
    struct fp_json *j = &r->json;
    if (!j->depth || (j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY)) return 0;
    const int token = j->token;
    const uint8_t next = becomes(r, r->within[j->depth], token == FP_JSON_OBJECT);
    if (next && !(r->second && (next == NODES || next == NODE || next == FRAME))) return 0;
    const uint8_t *end = fp_json_value(j, in->p + in->pos, in->p + in->n);
    j->token = token;
    if (end) fp_json_whole(j, (size_t)(end - in->p));
    return end != NULL;
}

/* Reads elements of arrays of numbers, as far as they need no tokens.  0 or FP_E_NOMEM. */
static int elements(struct fp_chrome_samples_read *r, struct fp_in *in) {
    switch (r->within[r->json.depth]) {
        case SAMPLES: return fp_chrome_samples_elements(r, in, FP_CHROME_NODES);
        case TIMES: /* its first token sets is_absolute */
        case DELTAS: return fp_chrome_samples_elements(r, in, FP_CHROME_DELTAS);
        case LINES: return fp_chrome_samples_elements(r, in, FP_CHROME_LINES);
        default: return 0;
    }
}

static int token(struct fp_chrome_samples_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const uint8_t within = r->within[j->depth];
    int status = FP_DONE;
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY)
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the JSON text", j->text, j->text_n,
                            "an object or an array of events");
    switch (j->token) {
        case FP_JSON_KEY:
            r->key = key_of(r);
            r->event.keys += within == EVENT;
            r->seen |= within == TOP && r->key >= K_TRACE_EVENTS && r->key <= K_PROFILE;
            r->event.has_head |= r->key == K_HEAD && (within == TOP || within == PROFILE);
            if (within == FRAMES && fp_chrome_samples_take_id(r, &r->frame.id)) return fp_no_memory(err);
            break;
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY: {
            uint8_t next = becomes(r, within, j->token == FP_JSON_OBJECT);
            if (next == DELTAS && choose_deltas(r, within, &next)) return FP_ASK;
            r->within[j->depth + 1] = next;
            r->seen |= !j->depth && next == EVENTS;
            begin(r, in, next);
            break;
        }
        case FP_JSON_OBJECT_END: status = end(r, within, out, err); break;
        case FP_JSON_ARRAY_END: break;
        default:
            status = take_value(r, within);
            if (status == FP_E_NOMEM) return fp_no_memory(err);
            if (status < 0 && !r->lenient)
                return fp_fail_text(err, status, in->base + in->pos, 0, "a value of an event or profile", j->text,
                                    j->text_n,
                                    within == EVENT && r->key == K_PH ? "one letter"
                                    : status != FP_E_OVERFLOW || r->key == K_WEIGHT || r->key == K_HITS
                                        ? "a 64-bit number"
                                        : "a time of at most 146 years, in microseconds");
            if (status < 0) {
                r->broken += (uint64_t)r->second;
                r->event.bad = 1;
                status = FP_DONE;
            }
    }
    return status;
}

/* Another value follows: a document, or only text. */
static int continues(struct fp_chrome_samples_read *r, const struct fp_in *in) {
    struct fp_json *j = &r->json;
    if (j->rest != 2 || !(in->p[in->pos] == '{' || in->p[in->pos] == '[')) return 0;
    r->after = 1;
    fp_json_again(j);
    return 1;
}

/* A token after a document.  Whether it is one of another document: a key in an object, an object in an array, or the
 * end of either.  Other text is skipped. */
static int begins_document(struct fp_chrome_samples_read *r, struct fp_in *in) {
    struct fp_json *j = &r->json;
    if (!j->depth && (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY)) {
        r->within[1] = becomes(r, NOTHING, j->token == FP_JSON_OBJECT);
        fp_json_take(j, in);
        return 0;
    }
    if (j->token >= FP_JSON_STRING || j->token == FP_JSON_ARRAY) {
        r->over = 1;
        j->rest = 2;
        return 0;
    }
    r->after = 0;
    r->thread_ids.document++;
    r->event = (struct fp_chrome_samples_event){0};
    forget(r);
    return 1;
}

int fp_chrome_samples_again(struct fp_chrome_samples_read *r, struct fp_err *err) {
    r->second = 1;
    r->over = r->after = 0;
    r->json = (struct fp_json){.loose = 1};
    r->event = (struct fp_chrome_samples_event){0};
    r->thread_ids.document = 0;
    forget(r);
    const int status = fp_chrome_samples_make_stacks(r, err);
    if (status) return status;
    for (uint32_t i = 0; i < r->profile_keys.n && i < r->cap_profiles; i++)
        r->profiles[i].clock = r->profiles[i].shown = r->profiles[i].start;
    return fp_chrome_samples_plan_hits(r) ? fp_no_memory(err) : FP_DONE;
}

int fp_chrome_samples_feed(struct fp_chrome_samples_read *r, struct fp_in *in, struct fp_batch *out,
                           struct fp_err *err) {
    struct fp_json *j = &r->json;
    while (!r->over) {
        if (elements(r, in)) return fp_no_memory(err);
        int status = fp_chrome_samples_next(r, in, err);
        if (status == FP_MORE) return status;
        if (status < 0 && r->after) {
            r->over = 1;
            j->rest = 2;
        } else if (status == FP_E_TRUNCATED && ends_in_events(r)) {
            r->over = 1;
        } else if (status < 0 && r->lenient) {
            r->bad_end = 1;
            r->over = 1;
        } else if (status < 0) {
            return status;
        } else if (j->token == FP_JSON_END) {
            if (!r->seen && !r->lenient)
                return fp_fail(err, FP_E_MALFORMED, 0, "the object has neither traceEvents, samples nor nodes");
            r->over = !continues(r, in);
        } else if (!r->after || begins_document(r, in)) {
            if (j->escaped && j->token == FP_JSON_KEY && fp_json_unescape(j, &r->scratch)) return fp_no_memory(err);
            status = is_skipped(r, in) ? FP_DONE : token(r, in, out, err);
            if (status) return status;
            fp_json_take(j, in);
        }
    }
    in->pos = in->n;
    if (!in->eof) return FP_MORE;
    return r->second ? fp_chrome_samples_last(r, out, err) : FP_DONE;
}
