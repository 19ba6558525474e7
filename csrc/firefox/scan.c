/* Scans a profile for its processes, threads, libraries, strings and the columns of its tables. */
#include <math.h>

#include "firefox/read_private.h"

enum { MOST_LEVELS = 200 };

struct fp_firefox_read *fp_firefox_read_new(struct fp_model *model, int lenient) {
    struct fp_firefox_read *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->rows.sets = fp_have(calloc(2, sizeof *r->rows.sets));
    r->scan.own_walk = r->scan.walk = fp_have(calloc(1, sizeof *r->scan.walk));
    r->scan.walk->lenient = lenient;
    fp_json_begin(r->scan.walk, &fp_firefox_shape);
    return r;
}

void fp_firefox_read_free(struct fp_firefox_read *r) {
    for (uint32_t i = 0; i < r->n_tables; i++)
        for (int c = 0; c < FP_FIREFOX_COLUMNS; c++) fp_buf_free(&r->tables[i].kept[c]);
    if (r->rows.sets) fp_firefox_free_sets(r);
    fp_firefox_free_marks(r);
    fp_rounds_clear(&r->rounds);
    for (int i = 0; i < FP_FIREFOX_TEXTS; i++) fp_buf_free(&r->scan.text[i]);
    fp_buf_free(&r->scan.scratch);
    FP_FREE(r->tables, r->threads, r->processes, r->libs, r->of_counters, r->dirty, r->scan.own_walk, r->rows.sets, r);
}

/* ---- columns ---- */

/* Appends a number to a column of the current table. */
static void keep(struct fp_firefox_read *r, uint32_t column, int64_t v) {
    fp_firefox_keep(r, column, &v, 1);
}

static int decimals_of(uint32_t kind, uint32_t column) {
    static const uint8_t samples[FP_FIREFOX_COLUMNS] = {0, 6, 6, 0, 3, 6},
                         markers[FP_FIREFOX_COLUMNS] = {0, 6, 6, 0, 6}, counters[FP_FIREFOX_COLUMNS] = {0, 6, 6};
    if (kind == FP_FIREFOX_COUNTERS) return counters[column];
    return fp_firefox_is_samples(kind) ? samples[column] : kind == FP_FIREFOX_MARKERS ? markers[column] : 0;
}

/* Whether the numbers of a column are doubles. */
static int is_real(uint32_t kind, uint32_t column) {
    return kind == FP_FIREFOX_COUNTERS && column == FP_FX_COUNTER_COUNT;
}

/* The token as a fixed-point number with this many decimals; FP_FIREFOX_NONE for null.  0 or FP_E_MALFORMED. */
static int number_of(struct fp_firefox_read *r, uint64_t at, int decimals, int64_t *v, struct fp_err *err) {
    const struct fp_json *j = &r->scan.walk->json;
    *v = FP_FIREFOX_NONE;
    if (j->token == FP_JSON_WORD) {
        if (!fp_json_is(j, "null")) *v = fp_json_is(j, "true");
        return 0;
    }
    const int status =
        j->token == FP_JSON_NUMBER ? fp_json_number(j->text, j->text_n, decimals, v, NULL) : FP_E_MALFORMED;
    if (!status) return 0;
    *v = FP_FIREFOX_NONE;
    return status == FP_E_OVERFLOW
               ? fp_firefox_broken(r, at, "a number in a table is too large", "one of 64 bits, times in nanoseconds",
                                   err)
               : fp_firefox_broken(r, at, "an entry of a table is not a number", "a number or null", err);
}

/* The token as an entry of a column: a fixed-point number, or the bits of a double.  0 or FP_E_MALFORMED. */
static int entry_of(struct fp_firefox_read *r, uint64_t at, uint32_t column, int64_t *v, struct fp_err *err) {
    const uint32_t kind = r->tables[r->table].kind;
    if (!is_real(kind, column) || r->scan.walk->json.token != FP_JSON_NUMBER)
        return number_of(r, at, decimals_of(kind, column), v, err);
    const double value =
        fp_real_of(r->scan.walk->json.text, r->scan.walk->json.text_n) + 0.0; /* -0 has the bits of FP_FIREFOX_NONE */
    *v = FP_FIREFOX_NONE;
    if (!isfinite(value)) return fp_firefox_broken(r, at, "the value of a counter is too large", "a double", err);
    memcpy(v, &value, sizeof value);
    return 0;
}

/* Whether columns of the current table are kept: those of markers and counters only if these become rows. */
static int is_kept(const struct fp_firefox_read *r) {
    return r->timeline || r->tables[r->table].kind < FP_FIREFOX_MARKERS;
}

/* Appends the token to a column. */
static int column_value(struct fp_firefox_read *r, uint64_t at, uint32_t column, struct fp_err *err) {
    const uint32_t kind = r->tables[r->table].kind;
    int64_t v, fine;
    if (entry_of(r, at, column, &v, err)) return FP_E_MALFORMED;
    if (kind == FP_FIREFOX_MARKERS) {
        r->counts.markers += column == FP_FX_MARKER_NAME;
        r->counts.intervals += column == FP_FX_MARKER_PHASE && (v == 1 || v == 2);
    }
    if (!is_kept(r)) return 0;
    keep(r, column, v);
    if (!fp_firefox_is_samples(kind) || column != FP_FIREFOX_IN_WEIGHT) return 0;
    if (r->scan.walk->json.token != FP_JSON_NUMBER ||
        fp_json_number(r->scan.walk->json.text, r->scan.walk->json.text_n, 6, &fine, NULL))
        fine = FP_FIREFOX_NONE;
    keep(r, FP_FIREFOX_IN_WEIGHT_MS, fine);
    return 0;
}

/* Half away from 0. */
static int64_t whole_of(int64_t fine) {
    return (fine + (fine < 0 ? -500000 : 500000)) / 1000000;
}

/* Appends elements of a column as long as they are plain numbers, whose order needs no tokens. */
static void column_values(struct fp_firefox_read *r, struct fp_window *in) {
    const uint32_t kind = r->tables[r->table].kind, column = r->scan.column;
    const int is_weight = fp_firefox_is_samples(kind) && column == FP_FIREFOX_IN_WEIGHT;
    const uint32_t into = is_weight ? FP_FIREFOX_IN_WEIGHT_MS : column;
    int64_t v[FP_FIREFOX_BLOCK];
    if (is_real(kind, column)) return;
    const size_t n = fp_json_numbers(&r->scan.walk->json, in, decimals_of(kind, into), is_weight, FP_FIREFOX_NONE, v,
                                     sizeof v / sizeof *v);
    if (kind == FP_FIREFOX_MARKERS) {
        r->counts.markers += column == FP_FX_MARKER_NAME ? n : 0;
        for (size_t i = 0; i < n && column == FP_FX_MARKER_PHASE; i++) r->counts.intervals += v[i] == 1 || v[i] == 2;
    }
    if (!is_kept(r)) return;
    fp_firefox_keep(r, into, v, n);
    if (!is_weight) return;
    for (size_t i = 0; i < n; i++) v[i] = v[i] == FP_FIREFOX_NONE ? v[i] : whole_of(v[i]);
    fp_firefox_keep(r, column, v, n);
}

static int row_value(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    const uint32_t column = r->scan.place < sizeof t->schema ? t->schema[r->scan.place] : 0;
    r->scan.place++;
    if (!column) return 0;
    return entry_of(r, at, column - 1, &r->scan.row[column - 1], err);
}

/* Ends a row: appends its numbers to the columns of the schema. */
static void end_row(struct fp_firefox_read *r) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    if (t->kind == FP_FIREFOX_MARKERS) {
        r->counts.markers++;
        r->counts.intervals += r->scan.row[FP_FX_MARKER_PHASE] == 1 || r->scan.row[FP_FX_MARKER_PHASE] == 2;
    }
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS && is_kept(r); c++)
        if (t->has >> c & 1) keep(r, c, r->scan.row[c]);
}

/* ---- containers ---- */

static void new_process(struct fp_firefox_read *r) {
    FP_PUSH(r->processes, r->n_processes, r->scan.cap_processes) =
        (struct fp_firefox_process){.start_ns = FP_FIREFOX_NONE,
                                    .interval_ns = FP_FIREFOX_NONE,
                                    .version = -1,
                                    .preprocessed = -1,
                                    .parent = r->scan.process};
    r->scan.process = r->n_processes - 1;
}

static void new_thread(struct fp_firefox_read *r, uint64_t at) {
    FP_PUSH(r->threads, r->n_threads, r->scan.cap_threads) =
        (struct fp_firefox_thread_in){.process = r->scan.process, .at = at};
    r->scan.thread = r->n_threads;
    memset(r->scan.own_of, 0, sizeof r->scan.own_of);
}

static void new_lib(struct fp_firefox_read *r) {
    FP_PUSH(r->libs, r->n_libs, r->scan.cap_libs) = (struct fp_firefox_lib){.process = r->scan.process,
                                                                            .thread = r->scan.thread,
                                                                            .number = r->scan.place++,
                                                                            .start = FP_FIREFOX_NONE,
                                                                            .end = FP_FIREFOX_NONE,
                                                                            .offset = FP_FIREFOX_NONE};
}

static void new_counter(struct fp_firefox_read *r) {
    FP_PUSH(r->of_counters, r->n_of_counters, r->scan.cap_counters) =
        (struct fp_firefox_counter){.process = r->scan.process, .main_thread = FP_FIREFOX_NONE};
    r->counts.counters += !r->timeline;
}

/* In the second scan, a table whose rows come before its schema gets the schema that the first scan found. */
static void use_schema(struct fp_firefox_read *r) {
    const struct fp_firefox_table *known =
        r->before && r->table < r->before->n_tables ? &r->before->tables[r->table] : NULL;
    struct fp_firefox_table *t = &r->tables[r->table];
    if (!known || !known->is_early || known->kind != t->kind) return;
    memcpy(t->schema, known->schema, sizeof t->schema);
    t->has = known->has;
    r->scan.has_schema = 1;
}

/* Starts a table.  1: skip it, because it is the second of its kind. */
static int new_table(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    const int is_counter = kind == FP_FIREFOX_COUNTERS;
    uint32_t *known = is_counter       ? &r->of_counters[r->n_of_counters - 1].has_table
                      : r->scan.thread ? &r->scan.own_of[kind]
                                       : &r->scan.shared_of[kind];
    if (*known) {
        const int status = fp_firefox_broken(r, at, "a table occurs twice", NULL, err);
        return status ? status : 1;
    }
    FP_PUSH(r->tables, r->n_tables, r->scan.cap_tables) =
        (struct fp_firefox_table){.kind = kind, .thread = r->scan.thread, .at = at, .length = -1, .has = kind == 0};
    if (is_counter) r->tables[r->n_tables - 1].thread = r->n_of_counters;
    *known = r->n_tables;
    r->table = r->n_tables - 1;
    r->scan.has_schema = r->scan.early_rows = 0;
    use_schema(r);
    return 0;
}

/* Skips what is in the place of another value; an error where the format requires that. */
static int misplaced(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    switch (kind) {
        case FP_FX_NO_CELL: r->scan.place++; return 0;
        case FP_FX_NO_COUNTER: r->counts.counters++; return 0;
        case FP_FX_NOT_THREAD: return fp_firefox_broken(r, at, "a thread is not an object", "{", err);
        case FP_FX_NOT_PROCESS: return fp_firefox_broken(r, at, "a process is not an object", "{", err);
        case FP_FX_NOT_ROW: return fp_firefox_broken(r, at, "a row of a table is not an array", "[", err);
        case FP_FX_NOT_STRING: keep(r, 0, 0); return fp_firefox_broken(r, at, "a string is not a text", "\"", err);
        case FP_FX_NOT_NUMBER:
            if (is_kept(r)) keep(r, r->scan.column, FP_FIREFOX_NONE);
            if (fp_firefox_is_samples(r->tables[r->table].kind) && r->scan.column == FP_FIREFOX_IN_WEIGHT)
                keep(r, FP_FIREFOX_IN_WEIGHT_MS, FP_FIREFOX_NONE);
            return fp_firefox_broken(r, at, "an entry of a table is not a number", "a number or null", err);
        default: return 0;
    }
}

/* Starts a column of the current table.  1: skip it. */
static int begin_column(struct fp_firefox_read *r, uint32_t column, uint64_t at, struct fp_err *err) {
    struct fp_firefox_table *t = &r->tables[r->table];
    if (t->has >> column & 1) {
        const int status = fp_firefox_broken(r, at, "a column occurs twice", NULL, err);
        return status ? status : 1;
    }
    t->has |= 1u << column;
    if (fp_firefox_is_samples(t->kind) && column == FP_FIREFOX_IN_WEIGHT) t->has |= 1u << FP_FIREFOX_IN_WEIGHT_MS;
    r->scan.column = (uint8_t)column;
    return 0;
}

/* Starts the schema of the current table.  1: skip it. */
static int begin_schema(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    if (r->scan.has_schema && r->before) return 1; /* known from the first scan, or a second one of this table */
    r->scan.has_schema = r->scan.in_schema = 1;
    if (!r->scan.early_rows) return 0;
    if (!r->again || r->before)
        return fp_firefox_broken(r, at, "the rows of a table come before its schema", "a file, not a pipe", err);
    r->tables[r->table].is_early = 1;
    r->counts.early++;
    return 0;
}

/* Starts an object or array.  1: skip it. */
static int begin(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    const uint32_t code = r->scan.walk->row->value;
    switch (kind) {
        case FP_FX_PROCESS:
            if (code == FP_FX_WRAPPED) return r->scan.texts || r->scan.walk->json.depth > 1;
            new_process(r);
            return 0;
        case FP_FX_THREADS: r->scan.seen_threads = 1; return 0;
        case FP_FX_THREAD: new_thread(r, at); return 0;
        case FP_FX_LIBS:
        case FP_FX_GROUPS: r->scan.place = 0; return 0;
        case FP_FX_LIB: new_lib(r); return 0;
        case FP_FX_COUNTER: new_counter(r); return 0;
        case FP_FX_GROUP: /* the profiler uses the first one */
            if (fp_json_within(r->scan.walk) != FP_FX_GROUPS || !r->scan.place++) return 0;
            r->counts.counters++;
            return 1;
        case FP_FX_STRINGS: return new_table(r, FP_FIREFOX_STRING_TABLE, at, err);
        case FP_FX_COLUMN: return begin_column(r, code - FP_FX_COLUMN_0, at, err);
        case FP_FX_DATA:
            r->scan.early_rows |= !r->scan.has_schema;
            return !r->scan.has_schema; /* in markers these are payloads */
        case FP_FX_ROW:
            r->scan.place = 0;
            for (int c = 0; c < FP_FIREFOX_COLUMNS; c++) r->scan.row[c] = FP_FIREFOX_NONE;
            return 0;
        default: break;
    }
    if (kind < FP_FX_SOURCES || kind > FP_FX_COUNTER_TABLE) return 0;
    if (kind == fp_json_within(r->scan.walk)) return begin_schema(r, at, err);
    return new_table(r, code - FP_FX_TABLE_0, at, err);
}

/* The offset of the token, or of the text that contains it. */
static uint64_t at_token(const struct fp_firefox_read *r, const struct fp_window *in) {
    return r->scan.texts ? r->scan.text_at : in->base + in->pos;
}

/* Whether columns must be spilled first.  Not within a text, which is one token. */
static int is_full(struct fp_firefox_read *r) {
    if (r->scan.kept < FP_FIREFOX_KEPT || r->scan.texts) return 0;
    fp_firefox_end_blocks(r);
    r->request = FP_FIREFOX_SPILL;
    return 1;
}

int fp_firefox_open(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_firefox_read *r = to;
    const uint64_t at = at_token(r, in);
    if (is_full(r)) return FP_NEEDS;
    if (r->scan.in_schema) {
        r->scan.walk->pass = 1;
        return 0;
    }
    if (kind >= FP_FX_MISPLACED) return misplaced(r, kind, at, err);
    if (r->scan.outer_depth + r->scan.walk->json.depth >= MOST_LEVELS) {
        r->scan.walk->pass = 1;
        return fp_firefox_broken(r, at, "processes are nested too deep", NULL, err);
    }
    const int status = begin(r, kind, at, err);
    if (status > 0) r->scan.walk->pass = 1;
    return status < 0 ? status : 0;
}

int fp_firefox_close(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct fp_firefox_read *r = to;
    (void)in, (void)err;
    if (is_full(r)) return FP_NEEDS;
    r->scan.in_schema = 0;
    if (kind == FP_FX_ROW) end_row(r);
    if (kind == FP_FX_PROCESS) r->scan.process = r->processes[r->scan.process].parent;
    if (kind == FP_FX_THREAD) r->scan.thread = 0;
    return 0;
}

int fp_firefox_elements(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    (void)code, (void)err;
    if (is_full(to)) return FP_NEEDS;
    column_values(to, in);
    return 0;
}

/* ---- values ---- */

/* 0 or FP_E_MALFORMED. */
static int counter_value(struct fp_firefox_read *r, uint32_t code, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_counter *c = &r->of_counters[r->n_of_counters - 1];
    switch (code) {
        case FP_FX_K_NAME: c->name = text; return 0;
        case FP_FX_K_CATEGORY: c->category = text; return 0;
        case FP_FX_K_PID: c->pid = text; return 0;
        case FP_FX_K_MAIN_THREAD: return number_of(r, at, 0, &c->main_thread, err);
        default: return 0;
    }
}

static int meta_value(struct fp_firefox_read *r, uint32_t code, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_process *p = &r->processes[r->scan.process];
    const int is_time = code == FP_FX_K_INTERVAL || code == FP_FX_K_START_TIME;
    int64_t number = FP_FIREFOX_NONE;
    if (code == FP_FX_K_PRODUCT) p->product = text;
    if (code == FP_FX_K_CPU_UNIT) p->cpu_unit = text;
    if (code == FP_FX_K_DEFAULT) p->default_value = text;
    if (r->scan.walk->json.token != FP_JSON_NUMBER) return 0;
    if ((is_time || code == FP_FX_K_VERSION || code == FP_FX_K_PREPROCESSED) &&
        number_of(r, at, is_time ? 6 : 0, &number, err))
        return FP_E_MALFORMED;
    const int32_t small = number >= 0 && number < INT32_MAX ? (int32_t)number : -1;
    if (code == FP_FX_K_INTERVAL) p->interval_ns = number;
    if (code == FP_FX_K_START_TIME) p->start_ns = number;
    if (code == FP_FX_K_VERSION) p->version = small;
    if (code == FP_FX_K_PREPROCESSED) p->preprocessed = small;
    return 0;
}

static int table_value(struct fp_firefox_read *r, uint32_t code, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_table *t = &r->tables[r->table];
    if (code == FP_FX_K_WEIGHT_TYPE) t->weight_type = text;
    if (code != FP_FX_K_LENGTH || r->scan.walk->json.token != FP_JSON_NUMBER) return 0;
    int64_t n;
    if (number_of(r, at, 0, &n, err)) return FP_E_MALFORMED;
    t->length = n < 0 ? -1 : n;
    return 0;
}

/* A value of a schema: the position of a column in rows. */
static int schema_value(struct fp_firefox_read *r, uint32_t column, uint64_t at, struct fp_err *err) {
    int64_t v;
    if (number_of(r, at, 0, &v, err)) return FP_E_MALFORMED;
    struct fp_firefox_table *t = &r->tables[r->table];
    if (v < 0 || v >= (int64_t)sizeof t->schema)
        return fp_firefox_broken(r, at, "the position of a column", "0 to 63", err);
    t->schema[v] = (uint8_t)(column + 1);
    t->has |= 1u << column;
    return 0;
}

/* The model's string for a string or number token. */
static uint32_t text_of(struct fp_firefox_read *r) {
    const struct fp_json *j = &r->scan.walk->json;
    size_t n = j->text_n;
    const uint8_t *p = j->text;
    if (j->token != FP_JSON_STRING && j->token != FP_JSON_NUMBER) return 0;
    if (j->token == FP_JSON_STRING) p = fp_json_plain(j, &r->scan.scratch, &n);
    return fp_strings_intern(&r->model->strings, p, n);
}

static int string_value(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    size_t n = 0;
    const uint8_t *p = (const uint8_t *)"";
    const int is_text = r->scan.walk->json.token == FP_JSON_STRING;
    if (is_text) p = fp_json_plain(&r->scan.walk->json, &r->scan.scratch, &n);
    const uint32_t id = fp_strings_intern(&r->model->strings, p, n);
    keep(r, 0, id);
    return is_text || fp_json_is(&r->scan.walk->json, "null")
               ? 0
               : fp_firefox_broken(r, at, "a string is not a text", "\"", err);
}

/* Scans the JSON in the text that is the token; `row` states what it is.  Gecko wrote libraries and child processes so
 * before version 4:
 *
 *   "libs": "[{\"name\": ...}]", "threads": [{"name": ...}, "{\"meta\": ..., \"threads\": [...]}"]
 */
static int scan_text(struct fp_firefox_read *r, uint32_t row, uint64_t at, struct fp_err *err) {
    if (r->scan.texts == FP_FIREFOX_TEXTS)
        return fp_firefox_broken(r, at, "JSON in texts is nested too deep", NULL, err);
    struct fp_json_walk *const outer = r->scan.walk, *const inner = fp_scratch(1, sizeof *inner);
    const uint32_t outer_depth = r->scan.outer_depth, process = r->scan.process;
    struct fp_window in = {.eof = 1};
    in.p = fp_json_plain(&outer->json, &r->scan.text[r->scan.texts++], &in.n);
    fp_json_begin(inner, &fp_firefox_shape);
    inner->row = &fp_firefox_shape.rows[row];
    r->scan.walk = inner;
    r->scan.outer_depth += outer->json.depth;
    r->scan.text_at = at;
    int status = fp_json_run(inner, r, &in, err);
    if (inner->is_damaged) status = fp_firefox_broken(r, at, "the JSON in a text is malformed", NULL, err);
    fp_scratch_free(inner);
    r->scan.texts--;
    r->scan.walk = outer;
    r->scan.outer_depth = outer_depth;
    r->scan.process = process; /* damage may have ended it early */
    r->scan.thread = 0;
    r->scan.in_schema = 0;
    return status;
}

/* A value of an object. */
static int field(struct fp_firefox_read *r, uint32_t code, uint64_t at, struct fp_err *err) {
    const uint32_t kind = fp_json_within(r->scan.walk), text = text_of(r);
    int64_t number = FP_FIREFOX_NONE;
    switch (kind) {
        case FP_FX_LIB:
            if (code >= FP_FX_K_START && code <= FP_FX_K_OFFSET && number_of(r, at, 0, &number, err))
                return FP_E_MALFORMED;
            fp_firefox_lib_value(r, code, text, number);
            return 0;
        case FP_FX_THREAD: fp_firefox_thread_value(r, code, text); return 0;
        case FP_FX_COUNTER: return counter_value(r, code, at, text, err);
        case FP_FX_META:
        case FP_FX_UNITS: return meta_value(r, code, at, text, err);
        default: return table_value(r, code, at, text, err);
    }
}

int fp_firefox_value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_firefox_read *r = to;
    const uint64_t at = at_token(r, in);
    const int is_text = r->scan.walk->json.token == FP_JSON_STRING;
    if (is_full(r)) return FP_NEEDS;
    if (r->scan.in_schema) return code >= FP_FX_COLUMN_0 ? schema_value(r, code - FP_FX_COLUMN_0, at, err) : 0;
    switch (code) {
        case FP_FX_ENTRY: return column_value(r, at, r->scan.column, err);
        case FP_FX_CELL: return row_value(r, at, err);
        case FP_FX_STRING: return string_value(r, at, err);
        case FP_FX_LIBS_TEXT: return is_text ? scan_text(r, FP_FX_LIBS_ROW, at, err) : 0;
        case FP_FX_THREADS_TEXT:
            return is_text ? scan_text(r, FP_FX_THREADS_ROW, at, err) : misplaced(r, FP_FX_NOT_THREAD, at, err);
        default: break;
    }
    if (code < FP_FX_K_NAME) return misplaced(r, code, at, err);
    return code < FP_FX_WRAPPED ? field(r, code, at, err) : 0;
}

int fp_firefox_scan(struct fp_firefox_read *r, struct fp_window *in, struct fp_err *err) {
    FP_TRY(fp_json_walk(r->scan.walk, r, in, err));
    r->counts.bad_end = (uint64_t)r->scan.walk->bad_end;
    if (!r->scan.seen_threads && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no threads");
    fp_firefox_end_blocks(r);
    return FP_DONE;
}
