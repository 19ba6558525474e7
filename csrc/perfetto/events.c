#include "perfetto/read_private.h"

/* Types of TrackEvent. */
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4, STATE = 5 };

/* A track event.  Missing numbers are 0. */
struct event {
    uint64_t type, name_iid, uuid, flows;
    int64_t delta_us, absolute_us;
    int has_type, has_uuid, has_delta, has_absolute, has_category, has_extra, has_stack, has_annotations;
    struct fp_wire name, all;
    double value; /* of a counter */
    int has_value;
    struct legacy {
        uint64_t phase, name_iid, pid, tid, has;
        int64_t duration_us;
        struct fp_wire scope;
    } legacy;
    uint64_t id;
    int id_kind;
};
static const struct fp_wire_schema of_event = {.kinds = {[1] = 'V',
                                                         [3] = 'L',
                                                         [4] = 'B',
                                                         [6] = 'B',
                                                         [9] = 'V',
                                                         [10] = 'V',
                                                         [11] = 'V',
                                                         [12] = 'L',
                                                         [16] = 'V',
                                                         [22] = 'B',
                                                         [23] = 'B',
                                                         [30] = 'V',
                                                         [36] = 'L',
                                                         [44] = 'F',
                                                         [46] = 'X',
                                                         [47] = 'X',
                                                         [48] = 'X',
                                                         [55] = 'B',
                                                         [56] = 'V'}};
#define TO(member) FP_WIRE_TO(struct legacy, member)
static const struct fp_wire_schema of_legacy = {
    " VVV  VB  VV      VV",
    {TO(has), TO(name_iid), TO(phase), TO(duration_us), [7] = TO(scope), [18] = TO(pid), TO(tid)}};
#undef TO
/* 3: a number; 6: text; 9: JSON */
static const struct fp_wire_schema of_annotation = {.kinds = " V V  B  BB"};

static int has_pid(const struct event *e) {
    return (int)(e->legacy.has >> 18 & 1);
}

static int has_tid(const struct event *e) {
    return (int)(e->legacy.has >> 19 & 1);
}

/* ---- names ---- */

uint32_t fp_perfetto_function_of(struct fp_perfetto_read *r, uint32_t name, uint32_t category) {
    struct fp_perfetto_function *known = FP_AT(r->calls.function_of, r->calls.cap_functions, name);
    if (!known->function || known->category != category) {
        const uint32_t object = category ? fp_model_object(r->model, category, 0) : 0;
        uint32_t shown = name;
        if (!name) shown = r->calls.nameless = fp_strings_intern(&r->model->strings, "[unknown]", 9);
        const uint32_t function = fp_model_function(r->model, object, 0, shown, 0, 0);
        *known = (struct fp_perfetto_function){category, function};
    }
    return known->function;
}

/* The string of the event's name; 0 if it is missing or unknown. */
static uint32_t name_of(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e) {
    if (e->name_iid) return fp_perfetto_id(&s->ids[FP_PK_NAME], e->name_iid);
    return fp_perfetto_text(r, e->name);
}

/* Adds a category to those in r->feed.scratch: "a", "a,b". */
static void add_category(struct fp_perfetto_read *r, const uint8_t *p, size_t n) {
    enum { MOST = 1 << 10 };
    struct fp_buf *all = &r->feed.scratch;
    if (!n || all->n + n > MOST) return;
    if (all->n) fp_buf_put(all, ",", 1);
    fp_buf_put(all, p, n);
}

/* The string of the event's categories, or 0; most events have one category, given by id. */
static uint32_t category_of(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e) {
    struct fp_wire all = e->all, list;
    struct fp_wire_field f;
    uint64_t id;
    uint32_t first = 0, n = 0;
    if (!e->has_category) return 0;
    r->feed.scratch.n = 0;
    while (fp_perfetto_next(&all, &f) > 0) {
        if (f.number == 22) {
            add_category(r, f.p, f.n);
            n += 2;
        }
        if (f.number != 3) continue;
        for (list = fp_wire_inside(&f); fp_wire_next_number(&list, &id) > 0;) {
            const uint32_t string = fp_perfetto_id(&s->ids[FP_PK_CATEGORY], id);
            size_t length;
            const uint8_t *p = fp_string(&r->model->strings, string, &length);
            if (!string) continue;
            first = string;
            n++;
            add_category(r, p, length);
        }
    }
    if (n == 1) return first;
    return r->feed.scratch.n ? fp_strings_intern(&r->model->strings, r->feed.scratch.p, r->feed.scratch.n) : 0;
}

static uint32_t function_of(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e) {
    const uint32_t name = name_of(r, s, e), category = category_of(r, s, e);
    r->counts[FP_PERFETTO_N_NAMELESS] += !name;
    return fp_perfetto_function_of(r, name, category);
}

/* ---- decoding ---- */

static int take_legacy(struct event *e, struct fp_wire message) {
    struct fp_wire_field f;
    int kind;
    while ((kind = fp_wire_read(&message, &of_legacy, &e->legacy, &f, NULL)) > 0) { /* 6, 10 and 11 */
        e->id = f.v;
        e->id_kind = (int)f.number;
    }
    if (!e->name_iid) e->name_iid = e->legacy.name_iid;
    return kind ? FP_E_MALFORMED : 0;
}

static int is_list(struct fp_wire list) {
    uint64_t id;
    int more;
    while ((more = fp_wire_next_number(&list, &id)) > 0) continue;
    return !more;
}

/* Takes a field: 0 or FP_E_MALFORMED. */
static int take_field(struct event *e, const struct fp_wire_field *f) {
    uint64_t bits;
    switch (f->number) {
        case 1:
            e->delta_us = (int64_t)f->v;
            e->has_delta = 1;
            break;
        case 3: e->has_category = 1; return is_list(fp_wire_inside(f)) ? 0 : FP_E_MALFORMED;
        case 4: e->has_annotations = 1; break;
        case 9:
            e->type = f->v;
            e->has_type = 1;
            break;
        case 10: e->name_iid = f->v; break;
        case 11:
            e->uuid = f->v;
            e->has_uuid = 1;
            break;
        case 12:
        case 46: e->has_extra = 1; break;
        case 16:
            e->absolute_us = (int64_t)f->v;
            e->has_absolute = 1;
            break;
        case 22: e->has_category = 1; break;
        case 23: e->name = fp_wire_inside(f); break;
        case 30:
            e->value = (double)(int64_t)f->v;
            e->has_value = 1;
            break;
        case 36: e->flows += f->wire == FP_WIRE_VARINT; break;
        case 44:
            bits = fp_u64(f->p);
            memcpy(&e->value, &bits, sizeof bits);
            e->has_value = 1;
            break;
        case 47:
        case 48: e->flows += f->n / 8; break;
        case 55:
        case 56: e->has_stack = 1; break;
        default: break;
    }
    return 0;
}

static int take_event(struct event *e, struct fp_wire message) {
    struct fp_wire_field f;
    struct fp_wire legacy = {0};
    int kind;
    *e = (struct event){.all = message};
    while ((kind = fp_wire_next(&message, &of_event, &f)) > 0) {
        if (f.number == 6) legacy = fp_wire_inside(&f);
        if (take_field(e, &f)) return FP_E_MALFORMED;
    }
    if (kind) return FP_E_MALFORMED;
    return legacy.p ? take_legacy(e, legacy) : 0;
}

/* ---- time and track ---- */

/* Finds the time of an event.  1, or 0 if there is none. */
static int time_of(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, const struct event *e, int64_t *ns) {
    struct fp_perfetto_seq *s = k->seq;
    if (!e->has_delta && !e->has_absolute) {
        *ns = k->time;
        return k->has_time;
    }
    int64_t us = e->has_delta ? e->delta_us : e->absolute_us, more;
    if ((e->has_delta && !s->has_reference) || __builtin_mul_overflow(us, 1000, &more)) return 0;
    if (e->has_delta && __builtin_add_overflow(s->reference, more, &more)) return 0;
    if (e->has_delta) s->reference = more;
    *ns = fp_perfetto_system_time(r, FP_PC_MONOTONIC, more);
    return 1;
}

/* The track of the event, or of the thread that it names. */
static uint32_t track_of(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, const struct event *e) {
    const uint64_t uuid = e->has_uuid ? e->uuid : s->track;
    if (!uuid && (((!e->has_uuid || !e->has_type) && s->tid >= 0) || has_pid(e) || has_tid(e))) {
        const int64_t pid = has_pid(e) ? (int32_t)(uint32_t)e->legacy.pid : s->pid >= 0 ? s->pid : 0;
        const int64_t tid = has_tid(e) ? (int32_t)(uint32_t)e->legacy.tid : s->tid >= 0 ? s->tid : 0;
        return fp_perfetto_track_of(r, FP_PT_THREAD, (uint64_t)pid, (uint64_t)tid);
    }
    if (!uuid) return fp_perfetto_track_of(r, FP_PT_DEFAULT, s->number, 0);
    if (s->last_track && s->last_uuid == uuid) return s->last_track;
    s->last_uuid = uuid;
    s->last_track = fp_perfetto_track_of(r, FP_PT_UUID, uuid, 0);
    return s->last_track;
}

/* The track of an asynchronous event, keyed by id (per process or global) and scope or category. */
static uint32_t async_track_of(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, const struct event *e) {
    const uint32_t category = category_of(r, s, e), of = track_of(r, s, e);
    const int has_scope = e->legacy.scope.p != e->legacy.scope.end;
    const uint32_t scope = has_scope ? fp_perfetto_text(r, e->legacy.scope) : category;
    const uint64_t pid = e->id_kind == 10 && s->pid >= 0 ? (uint64_t)(uint32_t)s->pid + 1 : 0;
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_ASYNC, e->id, scope | pid << 32);
    if (!r->tracks.list[track].name) {
        r->tracks.list[track].name = category;
        r->tracks.list[track].of = e->id_kind == 11 ? 0 : of;
        r->tracks.list[track].pid = e->id_kind == 11 ? -1 : s->pid;
    }
    return track;
}

/* ---- records ---- */

/* Reads an annotation: the code of its name, and its value.  0 or FP_E_MALFORMED. */
static int read_annotation(const struct fp_perfetto_seq *s, struct fp_wire m, uint32_t *code,
                           struct fp_wire_field *value) {
    struct fp_wire_field f;
    int kind;
    *code = FP_PA_OTHER;
    *value = (struct fp_wire_field){0};
    while ((kind = fp_wire_next(&m, &of_annotation, &f)) > 0) {
        if (f.number == 1) {
            const uint32_t known = fp_perfetto_id(&s->ids[FP_PK_ANNOTATION], f.v);
            *code = known ? known : FP_PA_OTHER;
        } else if (f.number == 10) {
            *code = fp_perfetto_annotation(f.p, f.n);
        } else {
            *value = f;
        }
    }
    return kind ? FP_E_MALFORMED : 0;
}

/* The same; *code is FP_PA_OTHER if its value has another type than we write. */
static int take_annotation(const struct fp_perfetto_seq *s, struct fp_wire m, uint32_t *code,
                           struct fp_wire_field *value) {
    const int status = read_annotation(s, m, code, value);
    if (value->number != (*code == FP_PA_DATA ? 6 : 3)) *code = FP_PA_OTHER;
    return status;
}

/* Reads the arguments of a call: numbers named arg0, arg1 ... in this order.  `put`: add them as records.  0 or
 * FP_E_MALFORMED. */
static int take_arguments(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e,
                          int64_t time, uint32_t track, int put, uint32_t *n) {
    struct fp_wire all = e->all, part;
    struct fp_wire_field value;
    uint32_t code;
    int others = 0;
    *n = 0;
    while (fp_perfetto_part(&all, 4, &part)) {
        FP_TRY(take_annotation(s, part, &code, &value));
        if (code != FP_PA_ARGUMENTS + *n) {
            others = 1;
            continue;
        }
        ++*n;
        if (put) fp_perfetto_put_record(r, time, track, FP_PO_ARGUMENT, 0, (int64_t)value.v);
    }
    r->counts[FP_PERFETTO_N_ANNOTATED] += (uint64_t)(others && !put);
    return 0;
}

static int begin(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e, int64_t time,
                 uint32_t track) {
    const uint32_t function = function_of(r, s, e);
    uint32_t n = 0;
    if (e->has_annotations) FP_TRY(take_arguments(r, s, e, time, track, 0, &n));
    fp_perfetto_put_record(r, time, track, n ? FP_PO_BEGIN_ARGS : FP_PO_BEGIN, function, 0);
    return n ? take_arguments(r, s, e, time, track, 1, &n) : 0;
}

static int instant(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e, int64_t time,
                   uint32_t track) {
    struct fp_wire all = e->all, part;
    struct fp_wire_field value;
    uint32_t code, payload = name_of(r, s, e);
    int64_t type = 0;
    int others = 0;
    while (e->has_annotations && fp_perfetto_part(&all, 4, &part)) {
        FP_TRY(take_annotation(s, part, &code, &value));
        if (code == FP_PA_DATA)
            payload = fp_strings_intern(&r->model->strings, value.p, value.n);
        else if (code == FP_PA_TYPE && value.v < UINT32_MAX)
            type = (int64_t)value.v + 1;
        else
            others = 1;
    }
    r->counts[FP_PERFETTO_N_ANNOTATED] += (uint64_t)others;
    fp_perfetto_put_record(r, time, track, FP_PO_INSTANT, payload, type);
    return 0;
}

static int put_event(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct event *e, uint64_t phase,
                     int64_t time, uint32_t track) {
    int64_t duration;
    uint32_t id;
    switch (phase) {
        case 'B': r->counts[FP_PERFETTO_N_CALLS]++; return begin(r, s, e, time, track);
        case 'E':
            id = name_of(r, s, e);
            fp_perfetto_put_record(r, time, track, FP_PO_END, id, 0);
            return 0;
        case 'C': fp_perfetto_put_counter(r, s, time, track, e->value); return 0;
        case 'X':
            r->counts[FP_PERFETTO_N_CALLS]++;
            r->counts[FP_PERFETTO_N_ANNOTATED] += (uint64_t)e->has_annotations;
            id = function_of(r, s, e);
            if (__builtin_mul_overflow(e->legacy.duration_us, 1000, &duration) || duration < 0) duration = 0;
            fp_perfetto_put_record(r, time, track, FP_PO_COMPLETE, id, duration);
            return 0;
        default: r->counts[FP_PERFETTO_N_INSTANTS]++; return instant(r, s, e, time, track);
    }
}

/* An event of a V8 profile.  Its "data" has another type than that of our own instants. */
static int v8_event(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, const struct event *e, int has_time,
                    int64_t time) {
    struct fp_perfetto_v8 v = {.id_kind = e->id_kind, .id = e->id, .has_time = has_time && time >= 0, .time = time};
    struct fp_wire all = e->all, part;
    struct fp_wire_field json;
    uint32_t code;
    if (r->feed.surveying || r->data != FP_PERFETTO_V8) return 0;
    while (e->has_annotations && fp_perfetto_part(&all, 4, &part)) {
        if (read_annotation(k->seq, part, &code, &json)) return FP_E_MALFORMED;
        if (code != FP_PA_DATA || json.number != 9 || !json.n) continue;
        v.data = json.p;
        v.n_data = json.n;
    }
    v.name = name_of(r, k->seq, e);
    v.track = track_of(r, k->seq, e);
    return fp_perfetto_put_v8(r, k, &v);
}

/* The phase of an event: B, E, X, i, C or P; 0: only count it. */
static uint64_t phase_of(struct fp_perfetto_read *r, const struct event *e, int *is_async) {
    *is_async = 0;
    if (e->legacy.phase == 'P') {
        r->counts[FP_PERFETTO_N_V8_CHUNKS]++;
        return 'P';
    }
    if (!e->legacy.phase || e->type == COUNTER || e->type == STATE) {
        switch (e->type) {
            case BEGIN: return 'B';
            case END: return 'E';
            case INSTANT: return 'i';
            case COUNTER:
                if (e->has_value) return 'C';
                r->counts[FP_PERFETTO_N_COUNTERS]++;
                return 0;
            case STATE: r->counts[FP_PERFETTO_N_TRACK_STATES]++; return 0;
            default: r->counts[FP_PERFETTO_N_OTHER_EVENTS]++; return 0;
        }
    }
    *is_async = 1;
    switch (e->legacy.phase) {
        case 'b':
        case 'S': return 'B';
        case 'e':
        case 'F': return 'E';
        case 'n': return 'i';
        default: break;
    }
    *is_async = 0;
    switch (e->legacy.phase) {
        case 'B':
        case 'E':
        case 'X': return e->legacy.phase;
        case 'i':
        case 'I':
        case 'R': return 'i';
        case 'C': r->counts[FP_PERFETTO_N_COUNTERS]++; return 0;
        case 's':
        case 't':
        case 'f': r->counts[FP_PERFETTO_N_FLOWS]++; return 0;
        default: r->counts[FP_PERFETTO_N_OTHER_EVENTS]++; return 0;
    }
}

int fp_perfetto_event(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct event e;
    int64_t time = 0;
    int is_async;
    int status = take_event(&e, k->message[FP_PF_EVENT]);
    if (status) return status;
    if (!fp_perfetto_has(k, FP_PF_SEQUENCE)) {
        r->counts[FP_PERFETTO_N_NO_SEQUENCE]++;
        return 0;
    }
    status = time_of(r, k, &e, &time);
    if (status < 0) return status;
    const uint64_t phase = phase_of(r, &e, &is_async);
    if (!phase) return 0;
    if (phase == 'P') return v8_event(r, k, &e, status, time);
    if (!status || time < 0) {
        r->counts[status ? FP_PERFETTO_N_NEGATIVE : FP_PERFETTO_N_NO_TIME]++;
        return 0;
    }
    r->counts[FP_PERFETTO_N_FLOWS] += e.flows;
    r->counts[FP_PERFETTO_N_EVENT_STACKS] += (uint64_t)e.has_stack;
    if (e.has_extra && (status = fp_perfetto_put_extra(r, k->seq, e.all, time))) return status;
    const uint32_t track = is_async ? async_track_of(r, k->seq, &e) : track_of(r, k->seq, &e);
    return put_event(r, k->seq, &e, phase, time, track);
}
