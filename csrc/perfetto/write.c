#include "perfetto/write.h"

/* ---- field numbers ---- */
enum { PACKET = 1 }; /* of Trace */
enum {
    CLOCK_SNAPSHOT = 6,
    TIMESTAMP = 8,
    SEQUENCE = 10,
    TRACK_EVENT = 11,
    INTERNED_DATA = 12,
    SEQUENCE_FLAGS = 13,
    CLOCK_ID = 58,
    DEFAULTS = 59,
    TRACK_DESCRIPTOR = 60,
    FIRST_PACKET = 87
}; /* of TracePacket */
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };                                         /* sequence flags */
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 };                               /* types of TrackEvent */
enum { CATEGORY_IID = 3, ANNOTATION = 4, TYPE = 9, NAME_IID = 10, TRACK_UUID = 11 }; /* TrackEvent and its defaults */
enum { COUNTER_VALUE = 30, REAL_VALUE = 44 };                                        /* of TrackEvent */
enum { CATEGORIES = 1, EVENT_NAMES = 2, ANNOTATION_NAMES = 3 };                      /* InternedData */
enum { IID = 1, NAME = 2 };                                                          /* an entry of InternedData */
enum { ANNOTATION_NAME_IID = 1, ANNOTATION_UINT = 3, ANNOTATION_STRING = 6 };        /* DebugAnnotation */
enum { BOOTTIME = 6, OWN_CLOCK = 64 }; /* clocks: the trace's, in ns; a sequence's */

/* Names of events, and of annotations, by their iid.  Functions follow the events. */
enum { CUSTOM = 1, TYPED = 2, FUNCTIONS = 3 };
enum { DATA = 1, EVENT_TYPE = 2, ARGUMENTS = 3 };

struct fp_perfetto_thread {
    uint64_t time;  /* of the last packet */
    uint64_t depth; /* open calls */
    uint8_t *named; /* bits by iid: event names known in the sequence, and categories by string */
    uint8_t *categorized;
    uint32_t cap_named, cap_categorized; /* bytes */
    uint32_t annotations;                /* the sequence knows annotation names up to this iid */
    uint8_t begun;
};

struct fp_perfetto *fp_perfetto_new(const struct fp_model *model) {
    struct fp_perfetto *w = fp_made(sizeof *w);
    w->model = model;
    fp_strings_init(&w->counters);
    return w;
}

void fp_perfetto_free(struct fp_perfetto *w) {
    for (uint32_t i = 0; i < w->cap_threads; i++) FP_FREE(w->threads[i].named, w->threads[i].categorized);
    fp_strings_clear(&w->counters);
    fp_utf8_names_clear(&w->texts);
    FP_FREE_BUFFERS(&w->packet, &w->name, &w->scratch);
    FP_FREE(w->threads, w->categories, w->values, w);
}

/* ---- processes and threads ---- */

/* The uuid of a thread's track is its id + 1; of a process: */
static uint64_t process_uuid(uint32_t process) {
    return (uint64_t)process << 32;
}

/* Ends a descriptor that has marks for the packet, for itself and for its process or thread. */
static void end_all(struct fp_buf *out, const size_t marks[3]) {
    fp_wire_end(out, marks[2]);
    fp_wire_end(out, marks[1]);
    fp_wire_end(out, marks[0]);
}

int fp_perfetto_process(uint32_t process, int32_t pid, const char *name, size_t n, struct fp_buf *out) {
    const size_t packet = fp_wire_begin(out, PACKET), track = fp_wire_begin(out, TRACK_DESCRIPTOR);
    fp_wire_put_number(out, 1, process_uuid(process));
    const size_t descriptor = fp_wire_begin(out, 3);
    fp_wire_put_number(out, 1, (uint64_t)pid);
    fp_wire_put_bytes(out, 6, name, n);
    end_all(out, (const size_t[]){packet, track, descriptor});
    return 0;
}

static void put_clock(struct fp_buf *out, uint32_t clock, int incremental) {
    const size_t mark = fp_wire_begin(out, 1);
    fp_wire_put_number(out, 1, clock);
    fp_wire_put_number(out, 2, 0); /* the same moment in all sequences: the trace's clock may not go back */
    fp_wire_put_nonzero(out, 3, (uint64_t)incremental);
    fp_wire_end(out, mark);
}

int fp_perfetto_begin(struct fp_perfetto *w, uint32_t thread, struct fp_buf *out) {
    const uint64_t sequence = (uint64_t)thread + 1;
    size_t packet = fp_wire_begin(out, PACKET), mark, event;
    fp_wire_put_number(out, SEQUENCE, sequence);
    fp_wire_put_number(out, SEQUENCE_FLAGS, STATE_CLEARED);
    fp_wire_put_number(out, FIRST_PACKET, 1);
    mark = fp_wire_begin(out, DEFAULTS);
    event = fp_wire_begin(out, TRACK_EVENT);
    fp_wire_put_number(out, TRACK_UUID, sequence);
    fp_wire_end(out, event);
    fp_wire_put_number(out, CLOCK_ID, OWN_CLOCK);
    fp_wire_end(out, mark);
    fp_wire_end(out, packet);

    packet = fp_wire_begin(out, PACKET);
    fp_wire_put_number(out, SEQUENCE, sequence);
    mark = fp_wire_begin(out, CLOCK_SNAPSHOT);
    put_clock(out, OWN_CLOCK, 1);
    put_clock(out, BOOTTIME, 0);
    fp_wire_end(out, mark);
    w->threads[thread].begun = 1;
    return fp_wire_end(out, packet);
}

int fp_perfetto_thread(uint32_t thread, uint32_t process, int32_t pid, int64_t tid, const char *name, size_t n,
                       struct fp_buf *out) {
    const size_t packet = fp_wire_begin(out, PACKET), track = fp_wire_begin(out, TRACK_DESCRIPTOR);
    fp_wire_put_number(out, 1, (uint64_t)thread + 1);
    fp_wire_put_number(out, 5, process_uuid(process));
    const size_t descriptor = fp_wire_begin(out, 4);
    fp_wire_put_number(out, 1, (uint64_t)pid);
    fp_wire_put_number(out, 2, (uint64_t)tid);
    if (n) fp_wire_put_bytes(out, 5, name, n);
    end_all(out, (const size_t[]){packet, track, descriptor});
    return 0;
}

/* ---- events ---- */

/* Writes the name of an event as UTF-8 to w->name. */
static void make_name(struct fp_perfetto *w, uint32_t iid) {
    const struct fp_model *m = w->model;
    w->name.n = 0;
    size_t n;
    uint64_t replaced = 0;
    const uint32_t name = iid < FUNCTIONS ? 0 : fp_table_row(&m->functions, iid - FUNCTIONS)[FP_FUNCTION_NAME];
    const char *const text = iid == CUSTOM ? "custom event" : iid == TYPED ? "typed event" : "[unknown]";
    const uint8_t *p = (const uint8_t *)text;
    if (name)
        p = fp_utf8_names_utf8(&w->texts, &w->scratch, &m->strings, name, &n, &replaced);
    else
        n = strlen(text);
    w->not_utf8 += replaced > 0;
    fp_buf_put(&w->name, p, n);
}

static void put_interned(struct fp_buf *b, uint32_t field, uint64_t iid, const void *name, size_t n) {
    const size_t mark = fp_wire_begin(b, field);
    fp_wire_put_number(b, IID, iid);
    fp_wire_put_bytes(b, NAME, name, n);
    fp_wire_end(b, mark);
}

/* The category of a function, a string, or 0. */
static uint32_t category_of(struct fp_perfetto *w, uint32_t function) {
    uint32_t *const known = FP_AT(w->categories, w->cap_categories, function);
    if (!*known) *known = fp_model_category(w->model, function) + 1;
    return *known - 1;
}

/* Adds a category to w->packet, within its interned data, if the sequence lacks it. */
static void put_category(struct fp_perfetto *w, struct fp_perfetto_thread *t, uint32_t category) {
    if (!category) return;
    fp_array_zeroed(&t->categorized, &t->cap_categorized, (uint64_t)category / 8 + 1, 1);
    if (t->categorized[category / 8] >> category % 8 & 1) return;
    size_t n;
    uint64_t replaced = 0;
    const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, category, &n, &replaced);
    w->not_utf8 += replaced > 0;
    put_interned(&w->packet, CATEGORIES, category, p, n);
    t->categorized[category / 8] |= (uint8_t)(1 << category % 8);
}

/* Adds the names that the sequence lacks to w->packet: the event's, unless iid is 0, with its category, and those of
 * annotations up to the iid `annotations`. */
static void put_names(struct fp_perfetto *w, struct fp_perfetto_thread *t, uint32_t iid, uint32_t annotations) {
    struct fp_buf *b = &w->packet;
    const size_t mark = fp_wire_begin(b, INTERNED_DATA);
    if (iid) {
        make_name(w, iid);
        put_interned(b, EVENT_NAMES, iid, w->name.p, w->name.n);
        const uint32_t category = iid < FUNCTIONS ? 0 : category_of(w, iid - FUNCTIONS);
        put_category(w, t, category);
        t->named[iid / 8] |= (uint8_t)(1 << iid % 8);
    }
    for (; t->annotations < annotations; t->annotations++) {
        const uint32_t next = t->annotations + 1;
        uint8_t text[16] = "arg";
        const void *name = next == DATA ? "data" : next == EVENT_TYPE ? "type" : (const void *)text;
        size_t n = 4;
        if (next >= ARGUMENTS) {
            uint8_t digits[10];
            uint32_t number = next - ARGUMENTS, k = 0;
            do digits[k++] = (uint8_t)('0' + number % 10);
            while (number /= 10);
            for (n = 3; k; n++) text[n] = digits[--k];
        }
        put_interned(b, ANNOTATION_NAMES, next, name, n);
    }
    fp_wire_end(b, mark);
}

/* The beginning of every packet: its time and sequence.  At most 21 bytes. */
static uint8_t *put_head(uint8_t *to, struct fp_perfetto_thread *t, uint32_t thread, uint64_t time) {
    *to++ = FP_WIRE_TAG(TIMESTAMP, FP_WIRE_VARINT);
    to = fp_varint(to, time - t->time);
    t->time = time;
    *to++ = FP_WIRE_TAG(SEQUENCE, FP_WIRE_VARINT);
    to = fp_varint(to, (uint64_t)thread + 1);
    *to++ = FP_WIRE_TAG(SEQUENCE_FLAGS, FP_WIRE_VARINT);
    *to++ = NEEDS_STATE;
    return to;
}

/* A packet of less than 128 bytes: an event without annotations, whose name and category the sequence has, or without a
 * name (iid 0) and category (0). */
static void put_short(struct fp_perfetto_thread *t, uint32_t thread, uint64_t time, uint8_t type, uint32_t iid,
                      uint32_t category, struct fp_buf *out) {
    fp_buf_reserve(out, 64);
    uint8_t *const packet = out->p + out->n, *to = put_head(packet + 2, t, thread, time);
    uint8_t *const event = to;
    to += 2;
    *to++ = FP_WIRE_TAG(TYPE, FP_WIRE_VARINT);
    *to++ = type;
    if (iid) {
        *to++ = FP_WIRE_TAG(NAME_IID, FP_WIRE_VARINT);
        to = fp_varint(to, iid);
    }
    if (category) {
        *to++ = FP_WIRE_TAG(CATEGORY_IID, FP_WIRE_VARINT);
        to = fp_varint(to, category);
    }
    event[0] = FP_WIRE_TAG(TRACK_EVENT, FP_WIRE_BYTES);
    event[1] = (uint8_t)(to - event - 2);
    packet[0] = FP_WIRE_TAG(PACKET, FP_WIRE_BYTES);
    packet[1] = (uint8_t)(to - packet - 2);
    out->n += (size_t)(to - packet);
}

/* Begins a longer packet in w->packet, up to the annotations.  Returns a mark for end_long. */
static size_t begin_long(struct fp_perfetto *w, struct fp_perfetto_thread *t, uint32_t thread, uint64_t time,
                         uint8_t type, uint32_t iid, uint32_t annotations) {
    struct fp_buf *b = &w->packet;
    b->n = 0;
    fp_buf_reserve(b, 64);
    b->n = (size_t)(put_head(b->p, t, thread, time) - b->p);
    const int known = t->named[iid / 8] >> iid % 8 & 1;
    if (!known || t->annotations < annotations) put_names(w, t, known ? 0 : iid, annotations);
    const size_t mark = fp_wire_begin(b, TRACK_EVENT);
    fp_wire_put_number(b, TYPE, type);
    fp_wire_put_number(b, NAME_IID, iid);
    return mark;
}

static void end_long(struct fp_perfetto *w, size_t mark, struct fp_buf *out) {
    fp_wire_end(&w->packet, mark);
    fp_wire_put_bytes(out, PACKET, w->packet.p, w->packet.n);
}

static void put_annotation(struct fp_buf *b, uint32_t iid, uint64_t value) {
    const size_t mark = fp_wire_begin(b, ANNOTATION);
    fp_wire_put_number(b, ANNOTATION_NAME_IID, iid);
    fp_wire_put_number(b, ANNOTATION_UINT, value);
    fp_wire_end(b, mark);
}

/* Makes room for a name in t->named. */
static void named_room(struct fp_perfetto_thread *t, uint32_t iid) {
    fp_array_zeroed(&t->named, &t->cap_named, (uint64_t)iid / 8 + 1, 1);
}

/* Writes the call held back for its arguments. */
static void put_held(struct fp_perfetto *w, struct fp_buf *out) {
    const uint32_t thread = w->caller - 1, iid = w->function + FUNCTIONS;
    struct fp_perfetto_thread *t = &w->threads[thread];
    named_room(t, iid);
    const size_t mark = begin_long(w, t, thread, w->time, BEGIN, iid, w->n_values ? w->n_values + ARGUMENTS - 1 : 0);
    if (w->categories[w->function] > 1) fp_wire_put_number(&w->packet, CATEGORY_IID, w->categories[w->function] - 1);
    for (uint32_t i = 0; i < w->n_values; i++) put_annotation(&w->packet, ARGUMENTS + i, w->values[i]);
    w->arguments += w->n_values;
    w->calls++;
    w->n_values = w->caller = 0;
    end_long(w, mark, out);
}

static void put_event(struct fp_perfetto *w, const struct fp_batch *b, uint32_t i, struct fp_buf *out) {
    const uint32_t thread = b->thread[i], iid = b->op[i] == FP_OP_TYPED ? TYPED : CUSTOM;
    struct fp_perfetto_thread *t = &w->threads[thread];
    const uint8_t *p = fp_batch_bytes(b, b->aux[i]);
    const size_t n = (uint32_t)b->aux[i];
    named_room(t, iid);
    const size_t mark = begin_long(w, t, thread, b->time[i], INSTANT, iid, EVENT_TYPE);
    if (iid == TYPED) put_annotation(&w->packet, EVENT_TYPE, b->function[i]);
    const size_t annotation = fp_wire_begin(&w->packet, ANNOTATION);
    fp_wire_put_number(&w->packet, ANNOTATION_NAME_IID, DATA);
    if (fp_is_text(p, n)) {
        fp_wire_put_bytes(&w->packet, ANNOTATION_STRING, p, n);
    } else {
        const size_t text = fp_wire_begin(&w->packet, ANNOTATION_STRING);
        fp_buf_hex(&w->packet, p, n);
        fp_wire_end(&w->packet, text);
    }
    fp_wire_end(&w->packet, annotation);
    w->events++;
    end_long(w, mark, out);
}

/* The uuid of the track of a thread's counter, which is described at its first value. */
static uint64_t counter_uuid(struct fp_perfetto *w, uint32_t thread, const uint8_t *name, size_t n,
                             struct fp_buf *out) {
    const uint32_t known = w->counters.n;
    w->scratch.n = 0;
    fp_buf_put(&w->scratch, &thread, sizeof thread);
    fp_buf_put(&w->scratch, name, n);
    const uint32_t id = fp_strings_intern(&w->counters, w->scratch.p, w->scratch.n);
    const uint64_t uuid = (uint64_t)1 << 63 | id;
    if (id < known) return uuid;
    w->scratch.n = 0;
    fp_utf8_replace(&w->scratch, name, n);
    w->not_utf8 += !fp_is_utf8(name, n);
    const size_t packet = fp_wire_begin(out, PACKET), track = fp_wire_begin(out, TRACK_DESCRIPTOR);
    fp_wire_put_number(out, 1, uuid);
    fp_wire_put_bytes(out, 2, w->scratch.p, w->scratch.n);
    fp_wire_put_number(out, 5, (uint64_t)thread + 1);
    const size_t counter = fp_wire_begin(out, 8);
    end_all(out, (const size_t[]){packet, track, counter});
    return uuid;
}

/* The value of a counter, of `length` bytes; its name follows a blank. */
static void put_counter(struct fp_perfetto *w, const struct fp_batch *b, uint32_t i, size_t length,
                        struct fp_buf *out) {
    const uint32_t thread = b->thread[i];
    const uint8_t *p = fp_batch_bytes(b, b->aux[i]);
    const double value = fp_real_of(p, length);
    const uint64_t uuid = counter_uuid(w, thread, p + length + 1, (uint32_t)b->aux[i] - length - 1, out);
    struct fp_buf *to = &w->packet;
    to->n = 0;
    fp_buf_reserve(to, 64);
    to->n = (size_t)(put_head(to->p, &w->threads[thread], thread, b->time[i]) - to->p);
    const size_t mark = fp_wire_begin(to, TRACK_EVENT);
    fp_wire_put_number(to, TYPE, COUNTER);
    fp_wire_put_number(to, TRACK_UUID, uuid);
    const int is_whole = value > -9e15 && value < 9e15 && (double)(int64_t)value == value;
    if (is_whole) {
        fp_wire_put_number(to, COUNTER_VALUE, (uint64_t)(int64_t)value);
    } else {
        uint8_t field[2 + sizeof value];
        fp_varint(field, REAL_VALUE << 3 | FP_WIRE_FIXED64);
        memcpy(field + 2, &value, sizeof value);
        fp_buf_put(to, field, sizeof field);
    }
    w->events++;
    end_long(w, mark, out);
}

static void put_enter(struct fp_perfetto *w, const struct fp_batch *b, uint32_t i, struct fp_buf *out) {
    const uint32_t thread = b->thread[i], iid = b->function[i] + FUNCTIONS;
    struct fp_perfetto_thread *t = &w->threads[thread];
    if (++t->depth > FP_PERFETTO_DEPTH) {
        w->deep++;
        return;
    }
    const int known = iid / 8 < t->cap_named && t->named[iid / 8] >> iid % 8 & 1;
    if (FP_LIKELY(known && b->op[i] == FP_OP_ENTER)) {
        w->calls++;
        put_short(t, thread, b->time[i], BEGIN, iid, w->categories[b->function[i]] - 1, out);
        return;
    }
    w->caller = thread + 1;
    w->function = b->function[i];
    w->time = b->time[i];
    if (b->op[i] == FP_OP_ENTER) put_held(w, out);
}

int fp_perfetto_put(struct fp_perfetto *w, const struct fp_batch *b, struct fp_buf *out) {
    for (; w->row < b->n; w->row++) {
        if (FP_UNLIKELY(out->n >= FP_DRAIN)) return FP_FULL;
        const uint32_t i = w->row, thread = b->thread[i], op = b->op[i];
        struct fp_perfetto_thread *t = FP_AT(w->threads, w->cap_threads, thread);
        if (FP_UNLIKELY(!t->begun)) {
            w->new_thread = thread;
            return FP_NEEDS;
        }
        if (FP_UNLIKELY(op == FP_OP_ARGUMENT)) { /* of a call that is too deep: no call is held back */
            if (!w->caller) continue;
            FP_PUSH(w->values, w->n_values, w->cap_values) = b->aux[i];
            continue;
        }
        if (FP_UNLIKELY(w->caller)) put_held(w, out);
        size_t length;
        if (op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS) {
            put_enter(w, b, i, out);
        } else if (op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT) {
            if (t->depth-- <= FP_PERFETTO_DEPTH) put_short(t, thread, b->time[i], END, 0, 0, out);
        } else if ((length = fp_counter_value_of(b, i))) {
            put_counter(w, b, i, length, out);
        } else if (t->depth >= FP_PERFETTO_DEPTH) {
            w->deep++;
        } else {
            put_event(w, b, i, out);
        }
    }
    return FP_DONE;
}

int fp_perfetto_end(struct fp_perfetto *w, struct fp_buf *out) {
    if (w->caller) put_held(w, out);
    return 0;
}
