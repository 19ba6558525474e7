#include "chrome/samples.h"

#include "chrome/samples_private.h"

/* Objects and arrays: of a text, of an event, of a profile. */
enum { TOP = 1, EVENTS, EVENT, ARGS, DATA, TOP_SAMPLES, SAMPLE, FRAMES, FRAME, STACK };
enum { PROFILE = STACK + 1, NODES, NODE, CALL, CHILDREN, SAMPLES, DELTAS, TIMES, LINES };
/* values */
enum { NO_TEXT = 1, SEEN, PH, NAME, TS, PID, TID, ID, SF, WEIGHT, ARG_NAME, START, END, STACK_FRAME, CHILD, ONE_NODE };
enum {
    ONE_DELTA = 30,
    ONE_TIME,
    ONE_LINE,
    NODE_ID,
    PARENT,
    FUNCTION,
    URL,
    LINE,
    LINE_OF_CALL,
    HITS,
    FRAME_NAME,
    CATEGORY
};

/* Keys of events, and of samples outside of events. */
#define EVENT_KEYS(kind)                                                                \
    FP_JSON_KEY(kind, "ph", .value = PH), FP_JSON_KEY(kind, "name", .value = NAME),     \
        FP_JSON_KEY(kind, "pid", .value = PID), FP_JSON_KEY(kind, "tid", .value = TID), \
        FP_JSON_KEY(kind, "ts", .value = TS), FP_JSON_KEY(kind, "id", .value = ID),     \
        FP_JSON_KEY(kind, "sf", .value = SF), FP_JSON_KEY(kind, "weight", .value = WEIGHT)

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = TOP, .array = EVENTS, .value = NO_TEXT),
    FP_JSON_KEY(TOP, "traceEvents", .array = EVENTS, .value = SEEN),
    FP_JSON_KEY(TOP, "stackFrames", .object = FRAMES, .value = SEEN),
    FP_JSON_KEY(TOP, "nodes", .array = NODES, .value = SEEN),
    FP_JSON_KEY(TOP, "head", .object = NODE, .value = SEEN),
    FP_JSON_KEY(TOP, "startTime", .value = START),
    FP_JSON_KEY(TOP, "endTime", .value = END),
    FP_JSON_KEY(TOP, "samples", .array = TOP_SAMPLES, .value = SEEN),
    FP_JSON_KEY(TOP, "timeDeltas", .array = DELTAS),
    FP_JSON_KEY(TOP, "timestamps", .array = TIMES),
    FP_JSON_KEY(TOP, "lines", .array = LINES),
    FP_JSON_KEY(TOP, "cpuProfile", .object = PROFILE, .value = SEEN),
    FP_JSON_KEY(TOP, "profile", .object = PROFILE, .value = SEEN),
    FP_JSON_EACH(EVENTS, .object = EVENT),
    EVENT_KEYS(EVENT),
    FP_JSON_KEY(EVENT, "args", .object = ARGS),
    FP_JSON_KEY(EVENT, "stack", .array = STACK),
    FP_JSON_KEY(ARGS, "name", .value = ARG_NAME),
    FP_JSON_KEY(ARGS, "data", .object = DATA),
    FP_JSON_KEY(DATA, "cpuProfile", .object = PROFILE),
    FP_JSON_KEY(DATA, "timeDeltas", .array = DELTAS),
    FP_JSON_KEY(DATA, "lines", .array = LINES),
    FP_JSON_KEY(DATA, "startTime", .value = START),
    FP_JSON_KEY(DATA, "endTime", .value = END),
    FP_JSON_EACH(TOP_SAMPLES, .object = SAMPLE, .value = ONE_NODE, .many = 1),
    EVENT_KEYS(SAMPLE),
    FP_JSON_EACH(FRAMES, .object = FRAME),
    FP_JSON_KEY(FRAME, "name", .value = FRAME_NAME),
    FP_JSON_KEY(FRAME, "category", .value = CATEGORY),
    FP_JSON_KEY(FRAME, "parent", .value = PARENT),
    FP_JSON_EACH(STACK, .value = STACK_FRAME),
    FP_JSON_KEY(PROFILE, "nodes", .array = NODES),
    FP_JSON_KEY(PROFILE, "head", .object = NODE),
    FP_JSON_KEY(PROFILE, "startTime", .value = START),
    FP_JSON_KEY(PROFILE, "endTime", .value = END),
    FP_JSON_KEY(PROFILE, "samples", .array = SAMPLES),
    FP_JSON_KEY(PROFILE, "timeDeltas", .array = DELTAS),
    FP_JSON_KEY(PROFILE, "timestamps", .array = TIMES),
    FP_JSON_KEY(PROFILE, "lines", .array = LINES),
    FP_JSON_EACH(NODES, .object = NODE),
    FP_JSON_KEY(NODE, "id", .value = NODE_ID),
    FP_JSON_KEY(NODE, "callFrame", .object = CALL),
    FP_JSON_KEY(NODE, "parent", .value = PARENT),
    FP_JSON_KEY(NODE, "hitCount", .value = HITS),
    FP_JSON_KEY(NODE, "children", .array = CHILDREN),
    FP_JSON_KEY(NODE, "functionName", .value = FUNCTION),
    FP_JSON_KEY(NODE, "url", .value = URL),
    FP_JSON_KEY(NODE, "lineNumber", .value = LINE),
    FP_JSON_KEY(CALL, "functionName", .value = FUNCTION),
    FP_JSON_KEY(CALL, "url", .value = URL),
    FP_JSON_KEY(CALL, "lineNumber", .value = LINE_OF_CALL),
    FP_JSON_EACH(CHILDREN, .object = NODE, .value = CHILD),
    FP_JSON_EACH(SAMPLES, .value = ONE_NODE, .many = 1),
    FP_JSON_EACH(DELTAS, .value = ONE_DELTA, .many = 1),
    FP_JSON_EACH(TIMES, .value = ONE_TIME, .many = 1),
    FP_JSON_EACH(LINES, .value = ONE_LINE, .many = 1),
};

/* Forgets the nodes and the columns of an event. */
static void forget(struct fp_chrome_samples *r) {
    r->n_children = r->n_outer = r->zero_based = r->pub.written = r->loaded = 0;
    r->pos = 0;
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++) r->pub.columns[i].n = 0, r->pub.columns[i].total = 0;
}

/* ---- values ---- */

static void take_text(struct fp_chrome_samples *r, struct fp_buf *to) {
    size_t n;
    if (r->walk.json.token != FP_JSON_STRING) return;
    const uint8_t *p = fp_json_plain(&r->walk.json, &r->walk.scratch, &n);
    to->n = 0;
    fp_buf_put(to, p, n);
}

static void take_name(struct fp_chrome_samples *r, uint32_t *name) {
    if (r->walk.json.token == FP_JSON_STRING) *name = fp_json_intern(&r->walk, &r->model->strings);
}

/* The start or end of a profile in nanoseconds, read as microseconds and as seconds; 0 beyond 146 years.
 * Business Central (AL) counts microseconds since the year 1, which do not fit 64 bits as nanoseconds. */
static int take_bound(struct fp_chrome_samples *r, int64_t *ns, int64_t *of_seconds) {
    static const int64_t year_1 = INT64_C(62135596800) * 1000000;
    const struct fp_json *j = &r->walk.json;
    int64_t us;
    if (fp_json_number(j->text, j->text_n, 9, of_seconds, NULL) || *of_seconds > INT64_MAX / 2 ||
        *of_seconds < INT64_MIN / 2)
        *of_seconds = 0;
    const int status = fp_chrome_samples_take_time(r, ns);
    if (status != FP_E_OVERFLOW || fp_json_number(j->text, j->text_n, 0, &us, NULL) || us < year_1 ||
        us - year_1 > INT64_MAX / 2000)
        return status;
    r->pub.since_year_1 += (uint64_t)r->second;
    *ns = (us - year_1) * 1000;
    return 0;
}

static int take_weight(struct fp_chrome_samples *r) {
    const struct fp_json *j = &r->walk.json;
    int rounded = 0;
    if (j->token == FP_JSON_WORD) return 0;
    const int status = fp_json_number(j->text, j->text_n, 0, &r->event.weight, &rounded);
    r->pub.rounded += rounded && r->second;
    return status;
}

/* Adds the next frame of a stack that is written in its event. */
static void take_frame(struct fp_chrome_samples *r) {
    uint32_t name = 0;
    if (!r->second || r->walk.json.token != FP_JSON_STRING) return;
    take_name(r, &name);
    const uint32_t function = fp_model_function(r->model, 0, 0, name, 0, 0);
    const uint32_t frame = fp_model_plain_frame(r->model, function);
    r->event.stack = fp_model_stack(r->model, r->event.stack, frame);
}

static void take_child(struct fp_chrome_samples *r) {
    struct fp_chrome_samples_child child = {0};
    fp_chrome_samples_take_id(r, &child.id);
    FP_PUSH(r->children, r->n_children, r->cap_children) = child;
}

/* Stores a value of a frame or node. */
static int take_of_frame(struct fp_chrome_samples *r, uint32_t code) {
    struct fp_chrome_samples_frame *f = &r->frame;
    const struct fp_json *j = &r->walk.json;
    int64_t line;
    switch (code) {
        case CHILD: take_child(r); break;
        case NODE_ID: fp_chrome_samples_take_id(r, &f->id); break;
        case PARENT: fp_chrome_samples_take_id(r, &f->parent); break;
        case HITS: return j->token == FP_JSON_WORD ? 0 : fp_json_number(j->text, j->text_n, 0, &f->hits, NULL);
        case FUNCTION: f->is_call = 1; /* fall through */
        case FRAME_NAME: take_name(r, &f->name); break;
        case URL: take_name(r, &f->file); break;
        case CATEGORY: take_name(r, &f->object); break;
        default:
            if (code == LINE && !r->n_outer) /* of the root, which has no line: -1 means that lines count from 0 */
                r->zero_based = j->text_n == 2 && !memcmp(j->text, "-1", 2);
            fp_chrome_samples_take_line(r, code == LINE && !r->zero_based, &line);
            f->line = (uint32_t)line;
    }
    return 0;
}

/* Stores a text, number or word.  0, FP_NEEDS, or an error code with `err` not set. */
static int take_value(struct fp_chrome_samples *r, uint32_t code) {
    struct fp_chrome_samples_event *e = &r->event;
    const struct fp_json *j = &r->walk.json;
    const int is_word = j->token == FP_JSON_WORD;
    switch (code) {
        case SEEN: return 0;
        case PH:
            if (j->token != FP_JSON_STRING || j->text_n != 1) return FP_E_MALFORMED;
            e->ph = j->text[0];
            return 0;
        case NAME: take_text(r, &r->name); break;
        case TS: e->has_ts = !is_word; return is_word ? 0 : fp_chrome_samples_take_time(r, &e->ts);
        case PID:
            fp_chrome_samples_take_id(r, &e->process);
            return fp_chrome_take_id(&r->pub.thread_ids.pid, j, &r->walk.scratch, r->model);
        case TID: return fp_chrome_take_id(&r->pub.thread_ids.tid, j, &r->walk.scratch, r->model);
        case ID: fp_chrome_samples_take_id(r, &e->id); break;
        case SF:
            e->has_sf = !is_word;
            fp_chrome_samples_take_id(r, &e->sf);
            break;
        case WEIGHT: return take_weight(r);
        case ARG_NAME: take_text(r, &r->pub.text); break;
        case START: e->has_start = 1; return take_bound(r, &e->start, &e->old_start);
        case END: return take_bound(r, &e->end, &e->old_end);
        case STACK_FRAME: take_frame(r); break;
        case ONE_NODE: return fp_chrome_samples_take_element(r, FP_CHROME_NODES);
        case ONE_TIME: e->is_absolute = 1; /* fall through */
        case ONE_DELTA: return fp_chrome_samples_take_element(r, FP_CHROME_DELTAS);
        case ONE_LINE: return fp_chrome_samples_take_element(r, FP_CHROME_LINES);
        default: return r->second ? 0 : take_of_frame(r, code);
    }
    return 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_chrome_samples *r = to;
    const struct fp_json *j = &r->walk.json;
    if (code == NO_TEXT)
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the JSON text", j->text, j->text_n,
                            "an object or an array of events");
    const int status = take_value(r, code);
    if (status >= 0) return status;
    if (!r->lenient)
        return fp_fail_text(err, status, in->base + in->pos, 0, "a value of an event or profile", j->text, j->text_n,
                            code == PH && fp_json_within(&r->walk) == EVENT ? "one letter"
                            : status != FP_E_OVERFLOW || code == WEIGHT || code == HITS
                                ? "a 64-bit number"
                                : "a time of at most 146 years, in microseconds");
    r->pub.broken += (uint64_t)r->second;
    r->event.bad = 1;
    return FP_DONE;
}

/* ---- ends of objects and arrays ---- */

static int is_named(const struct fp_chrome_samples *r, const char *name) {
    return r->name.n == strlen(name) && !memcmp(r->name.p, name, r->name.n);
}

/* Ends an event of a V8 profile, or a whole .cpuprofile.  Chunks lack the sampled thread, because another thread
 * writes them. */
static int end_of_profile(struct fp_chrome_samples *r, int has_thread, struct fp_batch *out, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    const uint32_t row = fp_chrome_samples_profile(r);
    if (r->second) return fp_chrome_samples_of_columns(r, row, out, err);
    struct fp_chrome_samples_profile *p = &r->profiles[row];
    r->pub.n_sampled += !p->n_samples && r->pub.columns[FP_CHROME_NODES].total;
    p->n_samples += r->pub.columns[FP_CHROME_NODES].total;
    if (has_thread) {
        const int status = fp_chrome_thread_of(&r->pub.thread_ids, &p->thread);
        if (status == FP_NEEDS) r->pub.request = FP_CHROME_THREAD;
        if (status) return status;
    }
    if (e->has_start)
        p->start = e->has_head ? e->old_start : e->start;
    else if (has_thread)
        p->start = e->ts;
    if (e->end > 0) p->end = e->has_head ? e->old_end : e->end;
    fp_chrome_samples_are_of(r, row);
    return FP_DONE;
}

static int end_of_event(struct fp_chrome_samples *r, struct fp_batch *out, struct fp_err *err) {
    const struct fp_chrome_samples_event *e = &r->event;
    if (e->ph == 'M') {
        fp_chrome_meta(&r->pub.thread_ids, &r->name);
        if (r->second || !r->pub.thread_ids.meta || !r->pub.text.n || r->pub.thread_ids.noted) return FP_DONE;
        r->pub.request = FP_CHROME_NAME;
        return FP_NEEDS;
    }
    const int whole = is_named(r, "CpuProfile") || is_named(r, "Profile");
    if ((e->ph == 'P' || e->ph == 'I') && (whole || is_named(r, "ProfileChunk")))
        return end_of_profile(r, whole, out, err);
    if (e->ph == 'P') return fp_chrome_samples_of_event(r, out, err);
    r->pub.others += e->keys && r->second;
    return FP_DONE;
}

/* An object ends. */
static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_chrome_samples *r = to;
    (void)in;
    switch (kind) {
        case EVENT: return end_of_event(r, r->out, err);
        case SAMPLE: return fp_chrome_samples_of_event(r, r->out, err);
        case FRAME:
        case NODE: {
            const int status = fp_chrome_samples_end_frame(r, kind == FRAME, err);
            if (fp_json_outside(&r->walk) == CHILDREN) r->frame = r->outer[--r->n_outer];
            return status;
        }
        case TOP:
            if (!r->n_children && !r->pub.columns[FP_CHROME_NODES].total) return FP_DONE;
            return end_of_profile(r, 0, r->out, err);
        default: return FP_DONE;
    }
}

/* ---- the text ---- */

/* Some writers write the timeDeltas of a chunk twice, in its data and in its cpuProfile.  Those in data are used.
 * FP_NEEDS if deltas of the cpuProfile were spilled and must be dropped. */
static int choose_deltas(struct fp_chrome_samples *r) {
    struct fp_chrome_samples_values *c = &r->pub.columns[FP_CHROME_DELTAS];
    const uint32_t within = fp_json_within(&r->walk);
    r->walk.pass = within == PROFILE && r->event.has_deltas;
    if (within != DATA) return FP_DONE;
    const int written = r->second && c->total > c->n;
    r->event.has_deltas = 1;
    c->n = 0;
    c->total = 0;
    r->pub.column = FP_CHROME_DELTAS;
    r->pub.request = FP_CHROME_DROP;
    return written ? FP_NEEDS : FP_DONE;
}

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_chrome_samples *r = to;
    const uint64_t at = in->base + in->pos;
    (void)err;
    switch (kind) {
        case EVENTS: r->seen = 1; break;
        case EVENT: forget(r); /* fall through */
        case SAMPLE:
            r->event = (struct fp_chrome_samples_event){.at = at, .weight = 1};
            r->pub.thread_ids.pid = r->pub.thread_ids.tid = (struct fp_chrome_id){0};
            r->pub.thread_ids.noted = 0;
            r->name.n = r->pub.text.n = 0;
            break;
        case FRAMES:
        case NODES: r->walk.pass = r->second; break;
        case FRAME:
        case NODE: {
            r->walk.pass = r->second;
            if (r->second) break;
            if (fp_json_within(&r->walk) == CHILDREN) r->outer[r->n_outer++] = r->frame;
            const uint32_t id = kind == FRAME ? r->frame.id : 0; /* the key was the id */
            r->frame = (struct fp_chrome_samples_frame){.at = at, .id = id, .first_child = r->n_children};
            break;
        }
        case CALL: r->frame.is_call = 1; break;
        case DELTAS: return choose_deltas(r);
        default: break;
    }
    return FP_DONE;
}

static int key(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_chrome_samples *r = to;
    const struct fp_json_row *row = r->walk.row;
    (void)in, (void)err;
    r->event.keys += kind == EVENT;
    r->seen |= row->value == SEEN;
    r->event.has_head |= row->object == NODE && (kind == TOP || kind == PROFILE);
    if (kind == FRAMES) fp_chrome_samples_take_id(r, &r->frame.id);
    return FP_DONE;
}

/* Reads elements of arrays of numbers, as far as they need no tokens.  The first token of times sets is_absolute. */
static int elements(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    const enum fp_chrome_samples_column which = code == ONE_NODE   ? FP_CHROME_NODES
                                                : code == ONE_LINE ? FP_CHROME_LINES
                                                                   : FP_CHROME_DELTAS;
    (void)err;
    fp_chrome_samples_elements(to, in, which);
    return FP_DONE;
}

static const struct fp_json_shape shape = {FP_JSON_ROWS(rows), .begin = begin, .end = end,
                                           .value = value,     .key = key,     .elements = elements};

struct fp_chrome_samples_read *fp_chrome_samples_read_new(struct fp_model *model, int lenient) {
    struct fp_chrome_samples *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->walk.json.loose = r->walk.unescape = 1;
    fp_json_begin(&r->walk, &shape);
    fp_chrome_ids_init(&r->pub.thread_ids);
    fp_strings_init(&r->ids);
    FP_INIT_TABLES(2, &r->pub.types, &r->node_keys);
    fp_table_init(&r->profile_keys, 3);
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++)
        r->pub.columns[i].values = fp_have(malloc(FP_CHROME_KEPT * sizeof(int64_t)));
    return &r->pub;
}

void fp_chrome_samples_read_free(struct fp_chrome_samples_read *pub) {
    struct fp_chrome_samples *r = (struct fp_chrome_samples *)pub;
    fp_chrome_ids_clear(&r->pub.thread_ids);
    FP_FREE_BUFFERS(&r->pub.text, &r->name);
    fp_json_free(&r->walk);
    for (uint32_t i = 0; i < FP_CHROME_COLUMNS; i++) free(r->pub.columns[i].values);
    FP_CLEAR_TABLES(&r->pub.types, &r->node_keys, &r->profile_keys);
    fp_strings_clear(&r->ids);
    for (uint32_t i = 0; i < r->cap_profiles; i++) free(r->profiles[i].dense);
    FP_FREE(r->nodes, r->profiles, r->children, r->chain, r);
}

/* Whether the text ends within its events.  Then the writer was killed; the format allows an array without its end. */
static int ends_in_events(struct fp_chrome_samples *r) {
    const struct fp_json *j = &r->walk.json;
    const int in_array = j->depth && fp_json_kind(&r->walk, 1) == EVENTS;
    if (!in_array && !(j->depth > 1 && fp_json_kind(&r->walk, 2) == EVENTS)) return 0;
    r->pub.open_end = 1;
    r->pub.killed = !(j->depth == 1 && fp_json_between(j));
    return 1;
}

/* Another value follows: a document, or only text. */
static int continues(struct fp_chrome_samples *r, const struct fp_window *in) {
    struct fp_json *j = &r->walk.json;
    if (j->rest != 2 || !(in->p[in->pos] == '{' || in->p[in->pos] == '[')) return 0;
    r->after = 1;
    fp_json_again(j);
    return 1;
}

/* A token after a document, which may be one of another document.  That is known at the second one: a key in an object,
 * an object in an array, or the end of either.  Other text is skipped. */
static int begin_document(struct fp_chrome_samples *r, struct fp_window *in, struct fp_err *err) {
    struct fp_json *j = &r->walk.json;
    if (j->token >= FP_JSON_STRING || (j->depth && j->token == FP_JSON_ARRAY)) {
        r->over = 1;
        j->rest = 2;
        return FP_DONE;
    }
    if (j->depth) {
        r->after = 0;
        r->pub.thread_ids.document++;
        r->event = (struct fp_chrome_samples_event){0};
        forget(r);
    }
    return fp_json_token(&r->walk, r, in, err);
}

/* Reads up to the end of a document.  Each one gets parts of the model: `{}{}{}...` would fill the memory, so there is
 * a limit. */
static int read_document(struct fp_chrome_samples *r, struct fp_window *in, struct fp_err *err) {
    enum { MOST_DOCUMENTS = 1 << 16 };
    if (r->pub.thread_ids.document < MOST_DOCUMENTS)
        return r->after ? fp_json_peek(&r->walk, r, in, err) : fp_json_run(&r->walk, r, in, err);
    FP_TRY(fp_json_peek(&r->walk, r, in, err));
    r->walk.is_damaged = 1;
    return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "more than 65,536 documents follow each other");
}

int fp_chrome_samples_again(struct fp_chrome_samples_read *pub, struct fp_err *err) {
    struct fp_chrome_samples *r = (struct fp_chrome_samples *)pub;
    r->second = 1;
    r->over = r->after = 0;
    fp_json_begin(&r->walk, &shape);
    r->event = (struct fp_chrome_samples_event){0};
    r->pub.thread_ids.document = 0;
    forget(r);
    FP_TRY(fp_chrome_samples_make_stacks(r, err));
    for (uint32_t i = 0; i < r->profile_keys.n && i < r->cap_profiles; i++)
        r->profiles[i].clock = r->profiles[i].shown = r->profiles[i].start;
    fp_chrome_samples_plan_hits(r);
    return FP_DONE;
}

int fp_chrome_samples_feed(struct fp_chrome_samples_read *pub, struct fp_window *in, struct fp_batch *out,
                           struct fp_err *err) {
    struct fp_chrome_samples *r = (struct fp_chrome_samples *)pub;
    struct fp_json *j = &r->walk.json;
    r->out = out;
    while (!r->over) {
        int status = read_document(r, in, err);
        if (status > 0 || (status && !r->walk.is_damaged)) return status;
        if (status && r->after) {
            r->over = 1;
            j->rest = 2;
        } else if (status == FP_E_TRUNCATED && ends_in_events(r)) {
            r->over = 1;
        } else if (status && !r->lenient) {
            return status;
        } else if (status) {
            r->pub.bad_end = 1;
            r->over = 1;
        } else if (j->token == FP_JSON_END) {
            if (!r->seen && !r->lenient)
                return fp_fail(err, FP_E_MALFORMED, 0, "the object has neither traceEvents, samples nor nodes");
            r->over = !continues(r, in);
        } else {
            status = begin_document(r, in, err);
            if (status) return status;
        }
    }
    r->pub.json = *j;
    in->pos = in->n;
    if (!in->eof) return FP_MORE;
    return r->second ? fp_chrome_samples_last(r, out) : FP_DONE;
}
