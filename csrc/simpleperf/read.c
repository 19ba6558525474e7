#include "simpleperf/read.h"

enum record_kind { SAMPLE = 1, LOST, FILE_, THREAD, META, SWITCH };
enum { HEAD = 12, PATH = 2, SYMBOL = 3, MANGLED = 4 };

struct chain_entry {
    uint64_t address, file, symbol, kind;
};
struct sp_fields { /* of all other kinds */
    uint64_t time, thread, count, event, samples, lost, id, process, error, raw;
    struct fp_wire unwinding, path, name, app, sdk;
};
#define TO(member) FP_WIRE_TO(struct chain_entry, member)
static const struct fp_wire_schema records = {.kinds = " BBBBBB"},
                                   entries = {" VVVV", {0, TO(address), TO(file), TO(symbol), TO(kind)}};
#undef TO
#define TO(member) FP_WIRE_TO(struct sp_fields, member)
static const struct fp_wire_schema unwinding = {" VVV", {[1] = TO(raw), [2] = TO(id), [3] = TO(error)}};
static const struct fp_wire_schema fields[] = {
    [SAMPLE] = {" VVBVVB", {0, TO(time), TO(thread), 0, TO(count), TO(event), TO(unwinding)}},
    [LOST] = {" VV", {0, TO(samples), TO(lost)}},
    [FILE_] = {" VBBB", {0, TO(id), TO(path)}},
    [THREAD] = {" VVB", {0, TO(thread), TO(process), TO(name)}},
    [META] = {" BBBBBV", {[2] = TO(app), [4] = TO(sdk), [6] = TO(id)}},
    [SWITCH] = {" VVV", {0, TO(id), TO(time), TO(thread)}},
};

static const char errors[][24] = {"",
                                  "unknown",
                                  "not enough stack",
                                  "invalid memory",
                                  "no unwind information",
                                  "invalid map",
                                  "too many frames",
                                  "repeated frame",
                                  "invalid ELF file"};

struct simpleperf_reader {
    struct fp_simpleperf s;
    struct fp_model *model; /* borrowed */
    int32_t lenient, is_over;
    const char *what;               /* of an error */
    struct fp_table files, threads; /* by number in the file */
    struct sp_file {
        uint32_t mapping, first, n; /* of `symbols` */
    } *file_rows;
    struct sp_thread {
        uint32_t thread, name;
    } *thread_rows;
    uint32_t *symbols; /* lines of the model; while a file is read pairs of names */
    uint32_t *stack;
    uint32_t cap_files, cap_threads, n_symbols, cap_symbols, cap_stack;
};

struct fp_simpleperf *fp_simpleperf_new(struct fp_model *model, int lenient) {
    struct simpleperf_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    FP_INIT_TABLES(1, &r->files, &r->threads);
    r->s.n_threads = 1;
    return &r->s;
}

void fp_simpleperf_free(struct fp_simpleperf *s) {
    struct simpleperf_reader *r = (struct simpleperf_reader *)s;
    FP_CLEAR_TABLES(&r->files, &r->threads);
    FP_FREE(r->file_rows, r->thread_rows, r->symbols, r->stack, r);
}

static int bad(struct simpleperf_reader *r, const char *what) {
    r->what = what;
    return FP_E_MALFORMED;
}

static uint32_t intern(struct simpleperf_reader *r, struct fp_wire text) {
    return text.p ? fp_strings_intern(&r->model->strings, text.p, (size_t)(text.end - text.p)) : 0;
}

/* The thread of a number; one that no record describes is the main thread of a process. */
static struct sp_thread *thread_of(struct simpleperf_reader *r, uint64_t number, uint64_t process) {
    const uint32_t tid = (uint32_t)number, row = fp_table_intern(&r->threads, &tid);
    struct sp_thread *t = FP_AT(r->thread_rows, r->cap_threads, row);
    if (!t->thread) t->thread = fp_model_thread(r->model, r->s.input, (uint32_t)process, tid);
    if (r->s.n_threads <= row) r->s.n_threads = row + 1;
    return t;
}

uint32_t fp_simpleperf_thread(const struct fp_simpleperf *s, uint32_t i, uint32_t *name) {
    const struct sp_thread *t = &((const struct simpleperf_reader *)s)->thread_rows[i];
    *name = t->name;
    return t->thread;
}

/* Symbols: names as shown, then those of the linker, in the same order. */
static int take_file(struct simpleperf_reader *r, struct fp_wire m) {
    struct fp_model *model = r->model;
    struct fp_wire_field f;
    struct sp_fields v = {0};
    uint64_t n = 0, n_own = 0;
    int more;
    while ((more = fp_wire_read(&m, &fields[FILE_], &v, &f, NULL)) == FP_WIRE_KNOWN) {
        const uint32_t name = intern(r, fp_wire_inside(&f));
        if (f.number == SYMBOL) {
            fp_array_room(&r->symbols, &r->cap_symbols, r->n_symbols + 2 * n + 2, sizeof *r->symbols);
            memcpy(r->symbols + r->n_symbols + 2 * n++, (uint32_t[]){name, 0}, 8);
        } else if (n_own < n) {
            r->symbols[r->n_symbols + 2 * n_own++ + 1] = name;
        }
    }
    if (more == FP_WIRE_BAD) return bad(r, "a malformed file");
    const uint32_t object = fp_model_object(model, intern(r, v.path), 0), id = (uint32_t)v.id;
    uint32_t *symbols = n ? r->symbols + r->n_symbols : NULL;
    for (uint64_t k = 0; k < n; k++) {
        const uint32_t name = symbols[2 * k], own = symbols[2 * k + 1] == name ? 0 : symbols[2 * k + 1];
        symbols[k] = fp_model_line(model, fp_model_function(model, object, 0, name, own, 0), 0, 0, 0);
    }
    const uint32_t row = fp_table_intern(&r->files, &id);
    /* addresses are those of the linker, whatever the first one is */
    const uint32_t mapping = object ? fp_model_mapping(model, object, 0, UINT64_MAX, 0, FP_MAPPING_FROM_BASE) : 0;
    *FP_AT(r->file_rows, r->cap_files, row) = (struct sp_file){mapping, r->n_symbols, (uint32_t)n};
    r->n_symbols += (uint32_t)n;
    return 0;
}

static int take_meta(struct simpleperf_reader *r, struct fp_wire m) {
    struct fp_wire_field f;
    struct sp_fields v = {0};
    int more;
    while ((more = fp_wire_read(&m, &fields[META], &v, &f, NULL)) == FP_WIRE_KNOWN) {
        if (f.number != 1) continue; /* what is not kept */
        if (r->s.n_events == FP_SIMPLEPERF_EVENTS) return bad(r, "more than 256 kinds of events");
        r->s.events[r->s.n_events++] = intern(r, fp_wire_inside(&f));
    }
    r->s.app = intern(r, v.app);
    r->s.sdk = intern(r, v.sdk);
    return more ? bad(r, "malformed descriptions") : 0;
}

/* The frame of an entry of a call chain. */
static uint32_t frame_of(struct simpleperf_reader *r, const struct chain_entry *e) {
    const uint32_t id = (uint32_t)e->file, row = fp_table_find(&r->files, &id);
    const struct sp_file *file = row && e->file <= UINT32_MAX ? &r->file_rows[row] : NULL;
    const int is_known = (int64_t)e->symbol != -1;
    uint32_t lines = 0;
    if (!file || (is_known && e->symbol >= file->n)) r->s.undefined++;
    if (file && is_known && e->symbol < file->n) lines = r->symbols[file->first + e->symbol];
    r->s.kinds += e->kind != 0;
    return fp_model_frame(r->model, file ? file->mapping : 0, e->address, 0, lines);
}

static uint32_t label_of(struct simpleperf_reader *r, struct fp_wire m) {
    struct sp_fields v = {0};
    struct fp_strings *s = &r->model->strings;
    if (!m.p || fp_wire_all(m, &unwinding, &v, NULL) || !v.error) return 0;
    const char *e = errors[v.error < sizeof errors / sizeof *errors ? v.error : 1];
    return fp_model_label(r->model, 0, fp_strings_intern(s, "unwinding", 9), fp_strings_intern(s, e, strlen(e)), 0, 0);
}

static int take_sample(struct simpleperf_reader *r, struct fp_wire m, struct fp_batch *out) {
    struct fp_wire_field f;
    struct sp_fields v = {0};
    uint32_t n = 0;
    int more;
    const uint64_t undefined = r->s.undefined;
    while ((more = fp_wire_read(&m, &fields[SAMPLE], &v, &f, NULL)) == FP_WIRE_KNOWN) {
        struct chain_entry e = {0};
        if (fp_wire_all(fp_wire_inside(&f), &entries, &e, NULL)) return bad(r, "a malformed call chain");
        FP_PUSH(r->stack, n, r->cap_stack) = frame_of(r, &e);
    }
    if (more) return bad(r, "a malformed sample");
    if (r->s.undefined != undefined && !r->lenient) return bad(r, "the file or symbol of a frame is not defined");
    if (v.event >= r->s.n_events) return bad(r, "the kind of event of a sample is not defined");
    if (v.count > INT64_MAX || v.time > INT64_MAX) return bad(r, "a count or time of 2^63 or more");
    const uint32_t stack = fp_model_path(r->model, r->stack, n), label = label_of(r, v.unwinding);
    const uint32_t thread = thread_of(r, v.thread, (uint32_t)v.thread)->thread;
    int64_t *values = out->values + fp_batch_sample(out, stack, thread, label, v.time);
    for (uint32_t k = 0; k < 2 * r->s.n_events; k++) values[(size_t)k * out->cap] = 0;
    values[(size_t)(2 * v.event) * out->cap] = 1;
    values[(size_t)(2 * v.event + 1) * out->cap] = (int64_t)v.count;
    return 0;
}

/* A record: a sample in the second pass, any other one in the first. */
static int take_record(struct simpleperf_reader *r, struct fp_wire m, struct fp_batch *out) {
    struct fp_wire_field f;
    const int kind = fp_wire_next(&m, &records, &f);
    if (kind == FP_WIRE_BAD && !r->s.is_second) return bad(r, "a malformed record");
    if (kind != FP_WIRE_KNOWN || (f.number == SAMPLE) != r->s.is_second) return 0;
    const uint32_t number = f.number;
    m = fp_wire_inside(&f);
    if (number == SAMPLE) return take_sample(r, m, out);
    if (number == FILE_) return take_file(r, m);
    if (number == META) return take_meta(r, m);
    struct sp_fields v = {0};
    if (fp_wire_all(m, &fields[number], &v, NULL)) return bad(r, "a malformed record");
    if (number == THREAD) thread_of(r, v.thread, v.process)->name = intern(r, v.name);
    r->s.lost += v.lost;
    r->s.switches += number == SWITCH;
    return 0;
}

static int stop(struct simpleperf_reader *r, struct fp_window *in, int status, const char *what, struct fp_err *err) {
    if (!r->lenient) return fp_fail(err, status, in->base + in->pos, what);
    r->s.bad_end = r->is_over = 1;
    in->pos = in->n;
    return 0;
}

int fp_simpleperf_feed(struct fp_simpleperf *s, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct simpleperf_reader *r = (struct simpleperf_reader *)s;
    if (in->base + in->pos == 0) {
        if (in->n < HEAD) return in->eof ? fp_fail(err, FP_E_TRUNCATED, in->n, "the file ends early") : FP_MORE;
        if (memcmp(in->p, "SIMPLEPERF", 10) != 0) return fp_fail(err, FP_E_MALFORMED, 0, "not simpleperf's");
        if (fp_u16(in->p + 10) != 1) return fp_fail(err, FP_E_VERSION, 10, "the version is not 1");
        in->pos = HEAD;
        r->is_over = 0;
    }
    int status = 0;
    while (!status && !r->is_over) {
        const uint8_t *p = in->p + in->pos;
        const size_t n = in->n - in->pos;
        const uint32_t length = n < 4 ? UINT32_MAX : fp_u32(p);
        if (n < 4 || n - 4 < length) {
            if (!in->eof) return FP_MORE;
            status = stop(r, in, FP_E_TRUNCATED, "the file ends before its last record", err);
            break;
        }
        if (length && s->is_second && out->n == out->cap) return FP_FULL;
        if (length && take_record(r, (struct fp_wire){p + 4, p + 4 + length}, out)) {
            if (!r->lenient) return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, r->what);
            s->damaged++;
        }
        in->pos += 4 + (size_t)length;
        r->is_over = !length;
    }
    if (!status && in->pos < in->n) status = s->bad_end ? 0 : stop(r, in, FP_E_MALFORMED, "bytes after the end", err);
    if (s->bad_end) in->pos = in->n;
    return status ? status : in->eof ? FP_DONE : FP_MORE;
}
