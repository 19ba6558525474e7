#include "xplane/read.h"

/* Kinds of messages that are entered. */
enum kind { SPACE, PLANE, LINE, ENTRY, META, STAT_ENTRY, STAT_META, KINDS };
__extension__ typedef __int128 int128;
enum { PS = 1000, DEPTH = 5, MOST_CATEGORY = 256 };
static const uint64_t DAY = UINT64_C(86400000000000), DATE = UINT64_C(1) << 52; /* ns: later times are dates */

static const struct fp_wire_schema fields[KINDS] = {
    [SPACE] = {" BBB", {0}},  [PLANE] = {" VBBBB", {0}},   [LINE] = {" VBVB      B", {0}}, [ENTRY] = {" VB", {0}},
    [META] = {" VB BB", {0}}, [STAT_ENTRY] = {" VB", {0}}, [STAT_META] = {" VB", {0}},
};

struct xla_event {
    uint64_t kind, offset_ps, duration_ps, n_occurrences, found;
};
#define TO(member) FP_WIRE_TO(struct xla_event, member)
static const struct fp_wire_schema event_fields = {
    " VVVBV", {TO(found), TO(kind), TO(offset_ps), TO(duration_ps), 0, TO(n_occurrences)}};

struct stat {
    uint64_t key, reference;
    struct fp_wire text;
};
#undef TO
#define TO(member) FP_WIRE_TO(struct stat, member)
static const struct fp_wire_schema stat_fields = {" VFVVBBV", {[1] = TO(key), [5] = TO(text), [7] = TO(reference)}};

/* Fields that are messages are entered, if another kind is here. */
static const uint8_t inside[KINDS][8] = {
    [SPACE] = {[1] = PLANE},
    [PLANE] = {[3] = LINE, [4] = ENTRY, [5] = STAT_ENTRY},
    [ENTRY] = {[2] = META},
    [STAT_ENTRY] = {[2] = STAT_META},
};

/* A kind of events of a plane. */
struct what {
    uint32_t name, shown, category; /* strings */
    uint32_t function;              /* 0: not made yet */
};

struct xplane_reader {
    struct fp_xplane x;
    struct fp_model *model; /* borrowed */
    struct fp_overlap_lanes lanes;
    int32_t lenient, is_read, has_base;
    uint32_t depth; /* of `levels`; the space has none */
    struct level {
        uint64_t end;
        enum kind kind;
    } levels[DEPTH + 1];
    uint64_t skip;            /* bytes */
    uint32_t plane, plane_at; /* number of the process, index of its name */
    uint32_t thread, line_at; /* of the open line, once it has an event: of the model, index of its name; else 0 */
    struct fp_xplane_name line;
    uint64_t line_ns;
    uint64_t entry;                       /* the key of the open entry of a map */
    struct fp_strings lines, kinds, keys; /* plane and id */
    struct what *whats;                   /* by index of `kinds` */
    uint32_t *line_names, *key_names;     /* by index of `lines`: of names; of `keys`: strings */
    struct waiting_stat {
        uint32_t what, key, text; /* a text of a kind of events; 0: it is the name of key `reference` */
        uint64_t reference;
    } *pending;
    uint32_t cap_names, cap_whats, cap_line_names, cap_key_names, n_pending, cap_pending;
};

static int fail(const struct fp_window *in, int code, const char *what, struct fp_err *err) {
    return fp_fail(err, code, in->base + in->pos, what);
}

static uint32_t index_of(const struct xplane_reader *r, struct fp_strings *s, uint64_t id) {
    uint8_t key[12];
    memcpy(key, &id, 8);
    memcpy(key + 8, &r->plane, 4);
    return fp_strings_intern(s, key, sizeof key);
}

/* A kind of events, valid until the next call. */
static struct what *what_of(struct xplane_reader *r, uint64_t id) {
    const uint32_t index = index_of(r, &r->kinds, id);
    return FP_AT(r->whats, r->cap_whats, index);
}

/* The name of a key, likewise. */
static uint32_t *key_of(struct xplane_reader *r, uint64_t id) {
    const uint32_t index = index_of(r, &r->keys, id);
    return FP_AT(r->key_names, r->cap_key_names, index);
}

/* ---- names ---- */

static uint32_t text_of(void *arg, uint32_t what) {
    struct xplane_reader *r = arg;
    const struct what *w = &r->whats[what];
    uint8_t text[24] = "#";
    size_t n;
    if (w->shown || w->name) return w->shown ? w->shown : w->name;
    r->x.unnamed++;
    const uint8_t *end = fp_put_decimal(text + 1, fp_u64(fp_string(&r->kinds, what, &n)));
    return fp_strings_intern(&r->model->strings, text, (size_t)(end - text));
}

/* Python's calls are named `$file.py:31 function` or `$<module> function`. */
static uint32_t function_of(void *arg, uint32_t what) {
    struct xplane_reader *r = arg;
    struct fp_model *m = r->model;
    struct what *w = &r->whats[what];
    if (w->function) return w->function;
    const uint32_t name = text_of(r, what);
    size_t n;
    const uint8_t *p = fp_string(&m->strings, name, &n), *space = n > 3 && *p == '$' ? memchr(p, ' ', n) : NULL;
    if (space && space - p > 1 && p + n - space > 1) {
        uint64_t line = 0;
        const uint8_t *colon = space;
        while (colon > p + 1 && colon[-1] >= '0' && colon[-1] <= '9') colon--;
        const int has_line = colon < space && colon[-1] == ':' && colon > p + 2 && space - colon < 10;
        if (has_line) (void)fp_decimal(colon, &line);
        const size_t n_place = (size_t)((has_line ? colon - 1 : space) - p) - 1, at = (size_t)(space - p) + 1;
        const uint32_t file = has_line ? fp_strings_part(&m->strings, name, 1, n_place) : 0;
        const uint32_t own = fp_strings_part(&m->strings, name, at, n - at);
        const uint32_t python = fp_model_object(m, fp_strings_intern(&m->strings, "python", 6), 0);
        w->function = fp_model_function(m, python, file, own, 0, (uint32_t)line);
    } else {
        w->function = fp_model_function(m, w->category ? fp_model_object(m, w->category, 0) : 0, 0, name, 0, 0);
    }
    return w->function;
}

/* ---- the parts of a plane ---- */

/* The first event of a line: its thread, whose number is that of no other one, as viewers need. */
static void begin_events(struct xplane_reader *r) {
    const uint32_t n = r->lines.n, index = index_of(r, &r->lines, r->line.id);
    const uint32_t tid = (uint32_t)INT32_MAX - index;
    fp_array_zeroed(&r->line_names, &r->cap_line_names, (uint64_t)index + 1, sizeof *r->line_names);
    r->thread = fp_model_thread(r->model, r->x.input, r->plane, tid);
    r->line.pid = r->plane;
    r->line.tid = tid;
    if (r->lines.n != n) { /* else a line in several pieces */
        r->line_names[index] = r->x.n_names;
        FP_PUSH(r->x.names, r->x.n_names, r->cap_names) = r->line;
    }
    r->line_at = r->line_names[index];
}

/* Adds an event to `lanes`.  0, FP_NEEDS or an error. */
static int take_event(struct xplane_reader *r, const struct fp_wire_field *f, const struct fp_window *in,
                      struct fp_err *err) {
    struct fp_wire m = fp_wire_inside(f);
    struct fp_wire_field field;
    struct xla_event e = {0};
    uint64_t stats = 0;
    int more;
    while ((more = fp_wire_read(&m, &event_fields, &e, &field, NULL)) == FP_WIRE_KNOWN) stats++;
    if (more == FP_WIRE_BAD) return fail(in, FP_E_MALFORMED, "a malformed event", err);
    if (e.found >> 5 & 1) {
        r->x.sums++;
        return 0;
    }
    if (!r->has_base && r->line_ns >= DATE && r->line_ns <= INT64_MAX) r->x.base_ns = r->line_ns / DAY * DAY - DAY;
    r->has_base = 1;
    const int128 begin = ((int128)(int64_t)r->line_ns - (int128)r->x.base_ns) * PS + (int64_t)e.offset_ps;
    if (begin < 0 || begin + e.duration_ps > INT64_MAX) {
        if (!r->lenient) return fail(in, FP_E_OVERFLOW, "the time of an event does not fit", err);
        r->x.untimed++;
        return 0;
    }
    if (!r->line_at) begin_events(r);
    const uint32_t what = (uint32_t)(what_of(r, e.kind) - r->whats);
    const struct fp_span span = {.begin = (uint64_t)begin,
                                 .end = (uint64_t)begin + e.duration_ps,
                                 .what = what,
                                 .thread = r->thread,
                                 .is_event = !e.duration_ps};
    const int status = fp_overlap_lanes_put(&r->lanes, span);
    if (!status) r->x.stats += stats;
    return status;
}

/* Keeps a short text of a kind of events until the names of keys are known.  0 or FP_WIRE_BAD. */
static int take_stat(struct xplane_reader *r, const struct fp_wire_field *f) {
    struct stat s = {0};
    if (fp_wire_all(fp_wire_inside(f), &stat_fields, &s, NULL)) return FP_WIRE_BAD;
    const size_t n = s.text.p ? (size_t)(s.text.end - s.text.p) : 0;
    if ((!n && !s.reference) || n > MOST_CATEGORY) return 0;
    const uint32_t text = n ? fp_strings_intern(&r->model->strings, s.text.p, n) : 0;
    const uint32_t what = (uint32_t)(what_of(r, r->entry) - r->whats);
    const uint32_t key = (uint32_t)(key_of(r, s.key) - r->key_names);
    FP_PUSH(r->pending, r->n_pending, r->cap_pending) = (struct waiting_stat){what, key, text, s.reference};
    return 0;
}

static void end_plane(struct xplane_reader *r) {
    const uint32_t category = fp_strings_intern(&r->model->strings, "hlo_category", 12);
    for (uint32_t i = 0; i < r->n_pending; i++) {
        const struct waiting_stat p = r->pending[i];
        if (r->key_names[p.key] != category) continue;
        const uint32_t text = p.text ? p.text : *key_of(r, p.reference);
        r->whats[p.what].category = text;
    }
    r->n_pending = 0;
}

static void enter(struct xplane_reader *r, enum kind kind) {
    if (kind == PLANE) {
        r->plane++;
        r->plane_at = r->x.n_names;
        FP_PUSH(r->x.names, r->x.n_names, r->cap_names) = (struct fp_xplane_name){.pid = r->plane};
    }
    if (kind == LINE) {
        r->line = (struct fp_xplane_name){0};
        r->line_ns = r->line_at = 0;
    }
    if (kind == ENTRY || kind == STAT_ENTRY) r->entry = 0;
}

/* Takes a field that is in the window.  0, FP_NEEDS or an error. */
static int take(struct xplane_reader *r, enum kind kind, const struct fp_wire_field *f, const struct fp_window *in,
                struct fp_err *err) {
    const uint32_t place = (uint32_t)kind << 8 | f->number;
    uint32_t text = 0;
    if (place == (LINE << 8 | 4)) return take_event(r, f, in, err);
    if (place == (META << 8 | 5)) return take_stat(r, f) ? fail(in, FP_E_MALFORMED, "a malformed stat", err) : 0;
    if (f->wire == FP_WIRE_BYTES) text = fp_strings_intern(&r->model->strings, f->p, f->n);
    struct fp_xplane_name *line = r->line_at ? &r->x.names[r->line_at] : &r->line;
    switch (place) {
        case SPACE << 8 | 2:
        case SPACE << 8 | 3:
            if (r->x.n_messages < FP_XPLANE_MESSAGES) r->x.messages[r->x.n_messages++] = text;
            break;
        case PLANE << 8 | 2: r->x.names[r->plane_at].name = text; break;
        case LINE << 8 | 1:
        case LINE << 8 | 3:
            if (r->line_at) return fail(in, FP_E_MALFORMED, "the id or time of a line follows its events", err);
            *(f->number == 1 ? &line->id : &r->line_ns) = f->v;
            break;
        case LINE << 8 | 2: line->name = text; break;
        case LINE << 8 | 11: line->shown = text; break;
        case ENTRY << 8 | 1:
        case STAT_ENTRY << 8 | 1:
        case META << 8 | 1:
        case STAT_META << 8 | 1: r->entry = f->v; break;
        case META << 8 | 2: what_of(r, r->entry)->name = text; break;
        case META << 8 | 4: what_of(r, r->entry)->shown = text; break;
        case STAT_META << 8 | 2: *key_of(r, r->entry) = text; break;
        default: break;
    }
    return 0;
}

/* ---- the walk ---- */

/* The next field: entered, taken or skipped.  0, FP_MORE, FP_NEEDS or an error. */
static int step(struct xplane_reader *r, struct fp_window *in, struct fp_err *err) {
    const struct level *level = &r->levels[r->depth];
    const uint64_t left = r->depth ? level->end - in->base - in->pos : UINT64_MAX; /* of the message */
    const uint8_t *p = in->p + in->pos, *end = in->p + in->n;
    struct fp_wire_field f;
    const int used = fp_wire_read_head(p, (uint64_t)(end - p) > left ? p + left : end, &f);
    if (used == FP_WIRE_CUT && (uint64_t)(end - p) < left)
        return in->eof ? fail(in, FP_E_TRUNCATED, "a field is incomplete", err) : FP_MORE;
    if (used <= 0) return fail(in, FP_E_MALFORMED, "a malformed field", err);
    const int kind = fp_wire_kind(&fields[level->kind], &f);
    const uint64_t before = (uint64_t)(f.p - p);
    if (f.n > left - before) return fail(in, FP_E_MALFORMED, "a field is longer than its message", err);
    if (kind == FP_WIRE_BAD) return fail(in, FP_E_MALFORMED, "a field has another type", err);
    const uint8_t inner = kind == FP_WIRE_KNOWN && f.number < 8 ? inside[level->kind][f.number] : 0;
    if (in->eof && f.n > (size_t)(end - f.p) && !inner)
        return fail(in, FP_E_TRUNCATED, "a field is longer than the input", err);
    if (inner) {
        enter(r, inner);
        r->levels[++r->depth] = (struct level){in->base + in->pos + before + f.n, inner};
    } else if (kind == FP_WIRE_KNOWN) {
        if (f.n > (size_t)(end - f.p)) return FP_MORE;
        const int status = take(r, level->kind, &f, in, err);
        if (status && !(status == FP_E_MALFORMED && r->lenient)) return status;
        r->x.damaged += status != 0;
        in->pos += f.n;
    } else {
        r->skip = f.n;
    }
    in->pos += before;
    return 0;
}

/* FP_DONE at the end of the input, FP_MORE, FP_NEEDS or an error. */
static int walk(struct xplane_reader *r, struct fp_window *in, struct fp_err *err) {
    int status = 0;
    while (!status) {
        const size_t n = r->skip < in->n - in->pos ? (size_t)r->skip : in->n - in->pos;
        in->pos += n;
        r->skip -= n;
        while (!r->skip && r->depth && in->base + in->pos == r->levels[r->depth].end)
            if (r->levels[r->depth--].kind == PLANE) end_plane(r);
        if (in->pos == in->n) {
            if (!in->eof) return FP_MORE;
            return r->depth || r->skip ? fail(in, FP_E_TRUNCATED, "the input ends inside a message", err) : FP_DONE;
        }
        status = step(r, in, err);
        if (status < 0 && status != FP_E_TRUNCATED && r->lenient && r->depth) { /* the rest of the message */
            r->skip = r->levels[r->depth].end - in->base - in->pos;
            r->x.damaged++;
            status = 0;
        }
    }
    return status;
}

struct fp_xplane *fp_xplane_new(struct fp_model *model, int lenient) {
    struct xplane_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->lanes = (struct fp_overlap_lanes){.model = model,
                                         .rounds = &r->x.rounds,
                                         .rows = &r->x.n_rows,
                                         .added = &r->x.lanes,
                                         .cut = &r->x.cut,
                                         .arg = r,
                                         .function = function_of,
                                         .text = text_of};
    FP_INIT_STRINGS(&r->lines, &r->kinds, &r->keys);
    return &r->x;
}

void fp_xplane_free(struct fp_xplane *x) {
    struct xplane_reader *r = (struct xplane_reader *)x;
    fp_overlap_lanes_clear(&r->lanes);
    fp_rounds_clear(&x->rounds);
    FP_CLEAR_STRINGS(&r->lines, &r->kinds, &r->keys);
    FP_FREE(x->names, r->whats, r->line_names, r->key_names, r->pending, r);
}

int fp_xplane_feed(struct fp_xplane *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct xplane_reader *r = (struct xplane_reader *)x;
    if (!r->is_read) {
        int status = walk(r, in, err);
        if (status < 0 && r->lenient && status != FP_E_NOMEM) {
            x->bad_end = 1;
            status = FP_DONE;
        }
        if (status) return status;
        if (r->n_pending) end_plane(r); /* after damage */
        in->pos = in->n;
        r->is_read = 1;
        fp_rounds_end(&x->rounds);
    }
    if (in->pos < in->n) in->pos = in->n; /* after damage */
    const int status = fp_overlap_lanes_pull(&r->lanes, out);
    return status == FP_DONE && !in->eof ? FP_MORE : status;
}
