/* Scans a profile for its processes, threads, libraries, strings and the columns of its tables. */
#include <math.h>

#include "core/counter.h"
#include "firefox/read_private.h"

enum { MOST_LEVELS = 200 };

struct fp_firefox_read *fp_firefox_read_new(struct fp_model *model, int lenient) {
    struct fp_firefox_read *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    r->levels = calloc(MOST_LEVELS, sizeof *r->levels);
    r->sets = calloc(2, sizeof *r->sets);
    if (!r->levels || !r->sets) {
        fp_firefox_read_free(r);
        return NULL;
    }
    return r;
}

void fp_firefox_read_free(struct fp_firefox_read *r) {
    if (!r) return;
    for (uint32_t i = 0; i < r->n_tables; i++)
        for (int c = 0; c < FP_FIREFOX_COLUMNS; c++) fp_buf_free(&r->tables[i].kept[c]);
    if (r->sets) fp_firefox_free_sets(r);
    fp_firefox_free_marks(r);
    fp_rounds_clear(&r->rounds);
    free(r->tables);
    free(r->threads);
    free(r->processes);
    free(r->libs);
    free(r->of_counters);
    free(r->dirty);
    free(r->levels);
    free(r->sets);
    fp_buf_free(&r->scratch);
    free(r);
}

/* ---- columns ---- */

static struct fp_firefox_level *top(struct fp_firefox_read *r) {
    return &r->levels[r->depth - 1];
}

/* Appends a number to a column of the current table. */
static int keep(struct fp_firefox_read *r, uint32_t column, int64_t v) {
    return fp_firefox_keep(r, column, &v, 1);
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
    const struct fp_json *j = &r->json;
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
    if (!is_real(kind, column) || r->json.token != FP_JSON_NUMBER)
        return number_of(r, at, decimals_of(kind, column), v, err);
    const double value = fp_real_of(r->json.text, r->json.text_n) + 0.0; /* -0 has the bits of FP_FIREFOX_NONE */
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
        r->markers += column == FP_FX_MARKER_NAME;
        r->intervals += column == FP_FX_MARKER_PHASE && (v == 1 || v == 2);
    }
    if (!is_kept(r)) return 0;
    if (keep(r, column, v)) return fp_no_memory(err);
    if (!fp_firefox_is_samples(kind) || column != FP_FIREFOX_IN_WEIGHT) return 0;
    if (r->json.token != FP_JSON_NUMBER || fp_json_number(r->json.text, r->json.text_n, 6, &fine, NULL))
        fine = FP_FIREFOX_NONE;
    return keep(r, FP_FIREFOX_IN_WEIGHT_MS, fine) ? fp_no_memory(err) : 0;
}

/* Half away from 0. */
static int64_t whole_of(int64_t fine) {
    return (fine + (fine < 0 ? -500000 : 500000)) / 1000000;
}

/* Appends elements of a column as long as they are plain numbers, whose order needs no tokens.  0 or FP_E_NOMEM. */
static int column_values(struct fp_firefox_read *r, struct fp_in *in) {
    const uint32_t kind = r->tables[r->table].kind, column = top(r)->column;
    const int is_weight = fp_firefox_is_samples(kind) && column == FP_FIREFOX_IN_WEIGHT;
    const uint32_t into = is_weight ? FP_FIREFOX_IN_WEIGHT_MS : column;
    int64_t v[FP_FIREFOX_BLOCK];
    if (is_real(kind, column)) return 0;
    const size_t n =
        fp_json_numbers(&r->json, in, decimals_of(kind, into), is_weight, FP_FIREFOX_NONE, v, sizeof v / sizeof *v);
    if (kind == FP_FIREFOX_MARKERS) {
        r->markers += column == FP_FX_MARKER_NAME ? n : 0;
        for (size_t i = 0; i < n && column == FP_FX_MARKER_PHASE; i++) r->intervals += v[i] == 1 || v[i] == 2;
    }
    if (!is_kept(r)) return 0;
    if (fp_firefox_keep(r, into, v, n)) return FP_E_NOMEM;
    if (!is_weight) return 0;
    for (size_t i = 0; i < n; i++) v[i] = v[i] == FP_FIREFOX_NONE ? v[i] : whole_of(v[i]);
    return fp_firefox_keep(r, column, v, n);
}

static int row_value(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    struct fp_firefox_level *level = top(r);
    const struct fp_firefox_table *t = &r->tables[r->table];
    const uint32_t column = level->at < sizeof t->schema ? t->schema[level->at] : 0;
    level->at++;
    if (!column) return 0;
    return entry_of(r, at, column - 1, &r->row[column - 1], err);
}

/* Ends a row: appends its numbers to the columns of the schema. */
static int end_row(struct fp_firefox_read *r, struct fp_err *err) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    if (t->kind == FP_FIREFOX_MARKERS) {
        r->markers++;
        r->intervals += r->row[FP_FX_MARKER_PHASE] == 1 || r->row[FP_FX_MARKER_PHASE] == 2;
    }
    if (!is_kept(r)) return 0;
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++)
        if ((t->has >> c & 1) && keep(r, c, r->row[c])) return fp_no_memory(err);
    return 0;
}

/* ---- containers ---- */

static int new_process(struct fp_firefox_read *r) {
    if (fp_array_room(&r->processes, &r->cap_processes, (uint64_t)r->n_processes + 1, sizeof *r->processes))
        return FP_E_NOMEM;
    r->process = r->n_processes++;
    r->processes[r->process] = (struct fp_firefox_process){
        .start_ns = FP_FIREFOX_NONE, .interval_ns = FP_FIREFOX_NONE, .version = -1, .preprocessed = -1};
    return 0;
}

static int new_thread(struct fp_firefox_read *r, uint64_t at) {
    if (fp_array_room(&r->threads, &r->cap_threads, (uint64_t)r->n_threads + 1, sizeof *r->threads)) return FP_E_NOMEM;
    r->threads[r->n_threads++] = (struct fp_firefox_thread_in){.process = r->process, .at = at};
    r->thread = r->n_threads;
    memset(r->own_of, 0, sizeof r->own_of);
    return 0;
}

static int new_lib(struct fp_firefox_read *r) {
    if (fp_array_room(&r->libs, &r->cap_libs, (uint64_t)r->n_libs + 1, sizeof *r->libs)) return FP_E_NOMEM;
    r->libs[r->n_libs++] = (struct fp_firefox_lib){.process = r->process,
                                                   .thread = r->thread,
                                                   .number = top(r)->at++,
                                                   .start = FP_FIREFOX_NONE,
                                                   .end = FP_FIREFOX_NONE,
                                                   .offset = FP_FIREFOX_NONE};
    return 0;
}

static int new_counter(struct fp_firefox_read *r) {
    if (fp_array_room(&r->of_counters, &r->cap_counters, (uint64_t)r->n_of_counters + 1, sizeof *r->of_counters))
        return FP_E_NOMEM;
    r->of_counters[r->n_of_counters++] =
        (struct fp_firefox_counter){.process = r->process, .main_thread = FP_FIREFOX_NONE};
    r->counters += !r->timeline;
    return 0;
}

/* In the second scan, a table whose rows come before its schema gets the schema that the first scan found. */
static void use_schema(struct fp_firefox_read *r) {
    const struct fp_firefox_table *known =
        r->before && r->table < r->before->n_tables ? &r->before->tables[r->table] : NULL;
    struct fp_firefox_table *t = &r->tables[r->table];
    if (!known || !known->is_early || known->kind != t->kind) return;
    memcpy(t->schema, known->schema, sizeof t->schema);
    t->has = known->has;
    r->has_schema = 1;
}

/* Starts a table.  1: skip it, because it is the second of its kind. */
static int new_table(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    const int is_counter = kind == FP_FIREFOX_COUNTERS;
    uint32_t *known = is_counter  ? &r->of_counters[r->n_of_counters - 1].has_table
                      : r->thread ? &r->own_of[kind]
                                  : &r->shared_of[kind];
    if (*known) {
        const int status = fp_firefox_broken(r, at, "a table occurs twice", NULL, err);
        return status ? status : 1;
    }
    if (fp_array_room(&r->tables, &r->cap_tables, (uint64_t)r->n_tables + 1, sizeof *r->tables))
        return fp_no_memory(err);
    r->tables[r->n_tables++] =
        (struct fp_firefox_table){.kind = kind, .thread = r->thread, .at = at, .length = -1, .has = kind == 0};
    if (is_counter) r->tables[r->n_tables - 1].thread = r->n_of_counters;
    *known = r->n_tables;
    r->table = r->n_tables - 1;
    r->has_schema = r->early_rows = 0;
    use_schema(r);
    return 0;
}

/* The kind of a container, from its key or from the list that contains it. */
static uint32_t kind_here(struct fp_firefox_read *r, int is_object) {
    if (!r->depth) return FP_FX_PROCESS;
    switch (top(r)->kind) {
        case FP_FX_LIBS: return is_object ? FP_FX_LIB : FP_FX_SKIP;
        case FP_FX_THREADS: /* in a text, a child process */
            return !is_object ? FP_FX_SKIP : r->text_depth == r->depth ? FP_FX_PROCESS : FP_FX_THREAD;
        case FP_FX_PROCESSES: return is_object ? FP_FX_PROCESS : FP_FX_SKIP;
        case FP_FX_COUNTERS: return is_object ? FP_FX_COUNTER : FP_FX_SKIP;
        case FP_FX_GROUPS: return is_object ? FP_FX_GROUP : FP_FX_SKIP;
        case FP_FX_DATA: return is_object ? FP_FX_SKIP : FP_FX_ROW;
        case FP_FX_PROCESS:
        case FP_FX_META:
        case FP_FX_THREAD:
        case FP_FX_SHARED:
        case FP_FX_COUNTER:
        case FP_FX_GROUP:
        case FP_FX_TABLE: {
            const uint32_t kind = r->key < FP_FX_K_NAME ? r->key : FP_FX_SKIP;
            if (kind == FP_FX_GROUPS && is_object) return FP_FX_GROUP;
            const int is_list = kind == FP_FX_LIBS || kind == FP_FX_THREADS || kind == FP_FX_PROCESSES ||
                                kind == FP_FX_COUNTERS || kind == FP_FX_GROUPS || kind == FP_FX_COLUMN ||
                                kind == FP_FX_DATA || kind == FP_FX_STRINGS;
            return is_list != is_object ? kind : FP_FX_SKIP;
        }
        default: return FP_FX_SKIP;
    }
}

/* Skips a container; an error where the format requires another value. */
static int skip(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    r->skipped = 1;
    if (!r->depth) return 0;
    switch (top(r)->kind) {
        case FP_FX_ROW: top(r)->at++; return 0;
        case FP_FX_COUNTERS: r->counters++; return 0;
        case FP_FX_THREADS: return fp_firefox_broken(r, at, "a thread is not an object", "{", err);
        case FP_FX_PROCESSES: return fp_firefox_broken(r, at, "a process is not an object", "{", err);
        case FP_FX_DATA: return fp_firefox_broken(r, at, "a row of a table is not an array", "[", err);
        case FP_FX_STRINGS:
            if (keep(r, 0, 0)) return fp_no_memory(err);
            return fp_firefox_broken(r, at, "a string is not a text", "\"", err);
        case FP_FX_COLUMN:
            if (is_kept(r) && keep(r, top(r)->column, FP_FIREFOX_NONE)) return fp_no_memory(err);
            if (fp_firefox_is_samples(r->tables[r->table].kind) && top(r)->column == FP_FIREFOX_IN_WEIGHT &&
                keep(r, FP_FIREFOX_IN_WEIGHT_MS, FP_FIREFOX_NONE))
                return fp_no_memory(err);
            return fp_firefox_broken(r, at, "an entry of a table is not a number", "a number or null", err);
        default: return 0;
    }
}

/* Starts a column of the current table, or its rows.  1: skip it. */
static int begin_column(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    struct fp_firefox_table *t = &r->tables[r->table];
    int status = 0;
    if (kind == FP_FX_DATA && !r->has_schema) /* in markers these are payloads */
        r->early_rows = 1;
    else if (kind == FP_FX_DATA || (kind == FP_FX_COLUMN && !(t->has >> r->key_at & 1))) {
        if (kind == FP_FX_COLUMN) t->has |= 1u << r->key_at;
        if (kind == FP_FX_COLUMN && fp_firefox_is_samples(t->kind) && r->key_at == FP_FIREFOX_IN_WEIGHT)
            t->has |= 1u << FP_FIREFOX_IN_WEIGHT_MS;
        return 0;
    } else
        status = fp_firefox_broken(r, at, "a column occurs twice", NULL, err);
    return status ? status : 1;
}

/* Starts the schema of the current table.  1: skip it. */
static int begin_schema(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    if (r->has_schema && r->before) return 1; /* known from the first scan, or a second one of this table */
    r->has_schema = 1;
    if (!r->early_rows) return 0;
    if (!r->again || r->before)
        return fp_firefox_broken(r, at, "the rows of a table come before its schema", "a file, not a pipe", err);
    r->tables[r->table].is_early = 1;
    r->early++;
    return 0;
}

static int begin(struct fp_firefox_read *r, uint32_t kind, uint64_t at, struct fp_err *err) {
    switch (kind) {
        case FP_FX_PROCESS: return new_process(r) ? fp_no_memory(err) : 0;
        case FP_FX_THREADS: r->seen_threads = 1; return 0;
        case FP_FX_THREAD: return new_thread(r, at) ? fp_no_memory(err) : 0;
        case FP_FX_LIB: return new_lib(r) ? fp_no_memory(err) : 0;
        case FP_FX_COUNTER: return new_counter(r) ? fp_no_memory(err) : 0;
        case FP_FX_GROUP: /* the profiler uses the first one */
            if (top(r)->kind != FP_FX_GROUPS || !top(r)->at++) return 0;
            r->counters++;
            return 1;
        case FP_FX_TABLE:
        case FP_FX_STRINGS: return new_table(r, r->key_at, at, err);
        case FP_FX_SCHEMA: return begin_schema(r, at, err);
        case FP_FX_COLUMN:
        case FP_FX_DATA: return begin_column(r, kind, at, err);
        case FP_FX_ROW:
            for (int c = 0; c < FP_FIREFOX_COLUMNS; c++) r->row[c] = FP_FIREFOX_NONE;
            return 0;
        default: return 0;
    }
}

static int open_container(struct fp_firefox_read *r, uint64_t at, int is_object, struct fp_err *err) {
    uint32_t kind = kind_here(r, is_object);
    struct fp_firefox_level level = {.column = r->key_at, .at = kind == FP_FX_PROCESS ? r->process : 0};
    if (kind == FP_FX_SKIP) return skip(r, at, err);
    if (r->depth == MOST_LEVELS) {
        r->skipped = 1;
        return fp_firefox_broken(r, at, "processes are nested too deep", NULL, err);
    }
    if (kind == FP_FX_WRAPPED && r->depth > 1) {
        r->skipped = 1;
        return 0;
    }
    const int status = begin(r, kind, at, err);
    if (status < 0) return status;
    if (status) {
        r->skipped = 1;
        return 0;
    }
    level.kind = kind == FP_FX_WRAPPED ? FP_FX_PROCESS : (uint8_t)kind;
    r->levels[r->depth++] = level;
    return 0;
}

static int close_container(struct fp_firefox_read *r, struct fp_err *err) {
    const struct fp_firefox_level *level = top(r);
    if (level->kind == FP_FX_ROW && end_row(r, err)) return err->code;
    if (level->kind == FP_FX_PROCESS) r->process = level->at;
    if (level->kind == FP_FX_THREAD) r->thread = 0;
    r->depth--;
    return 0;
}

/* ---- values ---- */

/* 0 or FP_E_MALFORMED. */
static int counter_value(struct fp_firefox_read *r, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_counter *c = &r->of_counters[r->n_of_counters - 1];
    switch (r->key) {
        case FP_FX_K_NAME: c->name = text; return 0;
        case FP_FX_K_CATEGORY: c->category = text; return 0;
        case FP_FX_K_PID: c->pid = text; return 0;
        case FP_FX_K_MAIN_THREAD: return number_of(r, at, 0, &c->main_thread, err);
        default: return 0;
    }
}

static int meta_value(struct fp_firefox_read *r, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_process *p = &r->processes[r->process];
    const int is_time = r->key == FP_FX_K_INTERVAL || r->key == FP_FX_K_START_TIME;
    int64_t number = FP_FIREFOX_NONE;
    if (r->key == FP_FX_K_PRODUCT) p->product = text;
    if (r->key == FP_FX_K_CPU_UNIT) p->cpu_unit = text;
    if (r->key == FP_FX_K_DEFAULT) p->default_value = text;
    if (r->json.token != FP_JSON_NUMBER) return 0;
    if ((is_time || r->key == FP_FX_K_VERSION || r->key == FP_FX_K_PREPROCESSED) &&
        number_of(r, at, is_time ? 6 : 0, &number, err))
        return FP_E_MALFORMED;
    const int32_t small = number >= 0 && number < INT32_MAX ? (int32_t)number : -1;
    if (r->key == FP_FX_K_INTERVAL) p->interval_ns = number;
    if (r->key == FP_FX_K_START_TIME) p->start_ns = number;
    if (r->key == FP_FX_K_VERSION) p->version = small;
    if (r->key == FP_FX_K_PREPROCESSED) p->preprocessed = small;
    return 0;
}

static int table_value(struct fp_firefox_read *r, uint64_t at, uint32_t text, struct fp_err *err) {
    struct fp_firefox_table *t = &r->tables[r->table];
    if (r->key == FP_FX_K_WEIGHT_TYPE) t->weight_type = text;
    if (r->key != FP_FX_K_LENGTH || r->json.token != FP_JSON_NUMBER) return 0;
    int64_t n;
    if (number_of(r, at, 0, &n, err)) return FP_E_MALFORMED;
    t->length = n < 0 ? -1 : n;
    return 0;
}

/* A value of a schema: the position of a column in rows. */
static int schema_value(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    int64_t v;
    if (r->key != FP_FX_COLUMN) return 0;
    if (number_of(r, at, 0, &v, err)) return FP_E_MALFORMED;
    struct fp_firefox_table *t = &r->tables[r->table];
    if (v < 0 || v >= (int64_t)sizeof t->schema)
        return fp_firefox_broken(r, at, "the position of a column", "0 to 63", err);
    t->schema[v] = (uint8_t)(r->key_at + 1);
    t->has |= 1u << r->key_at;
    return 0;
}

/* The model's string for a string or number token.  FP_NO_ID when memory ran out. */
static uint32_t text_of(struct fp_firefox_read *r) {
    const struct fp_json *j = &r->json;
    size_t n = j->text_n;
    const uint8_t *p = j->text;
    if (r->key < FP_FX_K_NAME || (j->token != FP_JSON_STRING && j->token != FP_JSON_NUMBER)) return 0;
    if (j->token == FP_JSON_STRING) p = fp_json_plain(j, &r->scratch, &n);
    return p ? fp_strings_intern(&r->model->strings, p, n) : FP_NO_ID;
}

static int string_value(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    size_t n = 0;
    const uint8_t *p = (const uint8_t *)"";
    const int is_text = r->json.token == FP_JSON_STRING;
    if (is_text) p = fp_json_plain(&r->json, &r->scratch, &n);
    const uint32_t id = p ? fp_strings_intern(&r->model->strings, p, n) : FP_NO_ID;
    if (id == FP_NO_ID || keep(r, 0, id)) return fp_no_memory(err);
    return is_text || fp_json_is(&r->json, "null") ? 0 : fp_firefox_broken(r, at, "a string is not a text", "\"", err);
}

static int token(struct fp_firefox_read *r, uint64_t at, struct fp_err *err);

/* Scans JSON of n bytes that is a text of the profile, at this offset. */
static int scan_json(struct fp_firefox_read *r, const uint8_t *p, size_t n, uint64_t at, struct fp_err *err) {
    struct fp_in in = {.p = p, .n = n, .eof = 1};
    for (;;) {
        if (r->skipped)
            fp_json_skip(&r->json, &in);
        else if (top(r)->kind == FP_FX_COLUMN && column_values(r, &in))
            return fp_no_memory(err);
        int status = fp_json_next(&r->json, &in, err);
        if (status == FP_E_NOMEM) return status;
        if (status) return fp_firefox_broken(r, at, "the JSON in a text is malformed", NULL, err);
        if (r->json.token == FP_JSON_END) return 0;
        if ((status = token(r, at, err))) return status;
        fp_json_take(&r->json, &in);
    }
}

/* Scans the JSON in the text that is the token.  Gecko wrote libraries and child processes so before version 4:
 *
 *   "libs": "[{\"name\": ...}]", "threads": [{"name": ...}, "{\"meta\": ..., \"threads\": [...]}"]
 */
static int scan_text(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    enum { MOST_TEXTS = 4 };
    if (r->texts == MOST_TEXTS) return fp_firefox_broken(r, at, "JSON in texts is nested too deep", NULL, err);
    const struct fp_json outer = r->json;
    const uint32_t depth = r->depth, text_depth = r->text_depth, process = r->process;
    struct fp_buf room = {0};
    size_t n;
    const uint8_t *p = fp_json_plain(&outer, &room, &n);
    if (!p) return fp_no_memory(err);
    r->json = (struct fp_json){0};
    r->text_depth = depth;
    r->texts++;
    const int status = scan_json(r, p, n, at, err);
    fp_buf_free(&room);
    r->texts--;
    r->json = outer;
    r->depth = depth; /* damage may have ended it early */
    r->text_depth = text_depth;
    r->process = process;
    r->thread = r->skipped = 0;
    return status;
}

static int scalar(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    if (!r->depth) return fp_fail(err, FP_E_MALFORMED, at, "the file is not a JSON object");
    const uint32_t kind = top(r)->kind;
    if (kind == FP_FX_COLUMN) return column_value(r, at, top(r)->column, err);
    if (kind == FP_FX_ROW) return row_value(r, at, err);
    if (kind == FP_FX_STRINGS) return string_value(r, at, err);
    if (kind == FP_FX_SCHEMA) return schema_value(r, at, err);
    if (r->json.token == FP_JSON_STRING && (kind == FP_FX_THREADS || (kind == FP_FX_PROCESS && r->key == FP_FX_LIBS)))
        return scan_text(r, at, err);
    if (kind == FP_FX_THREADS || kind == FP_FX_PROCESSES || kind == FP_FX_DATA) {
        const int status = skip(r, at, err);
        r->skipped = 0;
        return status;
    }
    const uint32_t text = text_of(r);
    if (text == FP_NO_ID) return fp_no_memory(err);
    int64_t number = FP_FIREFOX_NONE;
    if (kind == FP_FX_LIB && r->key >= FP_FX_K_START && r->key <= FP_FX_K_OFFSET && number_of(r, at, 0, &number, err))
        return FP_E_MALFORMED;
    if (kind == FP_FX_LIB) fp_firefox_lib_value(r, text, number);
    if (kind == FP_FX_THREAD) fp_firefox_thread_value(r, text);
    if (kind == FP_FX_COUNTER) return counter_value(r, at, text, err);
    if (kind == FP_FX_META || kind == FP_FX_UNITS) return meta_value(r, at, text, err);
    return kind == FP_FX_TABLE ? table_value(r, at, text, err) : 0;
}

static int token(struct fp_firefox_read *r, uint64_t at, struct fp_err *err) {
    const int kind = r->json.token;
    const int opens = kind == FP_JSON_OBJECT || kind == FP_JSON_ARRAY;
    const int closes = kind == FP_JSON_OBJECT_END || kind == FP_JSON_ARRAY_END;
    if (r->skipped) {
        r->skipped = r->skipped + (uint32_t)opens - (uint32_t)closes;
        return 0;
    }
    if (!r->depth && kind != FP_JSON_OBJECT) return fp_fail(err, FP_E_MALFORMED, at, "the file is not a JSON object");
    if (opens) return open_container(r, at, kind == FP_JSON_OBJECT, err);
    if (closes) return close_container(r, err);
    if (kind == FP_JSON_KEY) {
        fp_firefox_key(r);
        return 0;
    }
    return scalar(r, at, err);
}

/* Moves past the rest of the object or array that was skipped at the token, if that is plain.  Inner ones are tried,
 * too, since the outer one may not fit the window, but no more than a few levels of them. */
static void skip_whole(struct fp_firefox_read *r, const struct fp_in *in) {
    enum { LEVELS = 4 };
    struct fp_json *j = &r->json;
    if (!r->skipped || r->skipped > LEVELS || (j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY)) return;
    const uint8_t *end = fp_json_value(j, in->p + in->pos, in->p + in->n);
    if (!end) return;
    fp_json_whole(j, (size_t)(end - in->p));
    r->skipped--;
}

int fp_firefox_scan(struct fp_firefox_read *r, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    while (!r->over) {
        if (r->kept >= FP_FIREFOX_KEPT) {
            fp_firefox_end_blocks(r);
            r->request = FP_FIREFOX_SPILL;
            return FP_ASK;
        }
        if (r->skipped)
            fp_json_skip(j, in);
        else if (r->depth && top(r)->kind == FP_FX_COLUMN && column_values(r, in))
            return fp_no_memory(err);
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status < 0 && status != FP_E_NOMEM && r->lenient) {
            r->bad_end++;
            r->over = 1;
            break;
        }
        if (status < 0) return status;
        if (j->token == FP_JSON_END) {
            r->over = 1;
            if (r->seen_threads || r->lenient) break;
            return fp_fail(err, FP_E_MALFORMED, 0, "the object has no threads");
        }
        if ((status = token(r, in->base + in->pos, err))) return status;
        skip_whole(r, in);
        fp_json_take(j, in);
    }
    in->pos = in->n;
    if (!in->eof) return FP_MORE;
    fp_firefox_end_blocks(r);
    return FP_DONE;
}
