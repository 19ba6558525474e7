/* Reads tables row by row: first into the model, then into rows of samples. */
#include "firefox/read_private.h"

/* ---- libraries ---- */

FP_ORDER(by_place, struct fp_firefox_lib, process, thread, start, number)

void fp_firefox_sort_libs(struct fp_firefox_read *r) {
    if (r->n_libs > 1) qsort(r->libs, r->n_libs, sizeof *r->libs, by_place);
}

/* The first library at or after this process and thread in the order of fp_firefox_sort_libs. */
static uint32_t first_lib(const struct fp_firefox_read *r, uint32_t process, uint32_t thread) {
    const struct fp_firefox_lib *l = r->libs;
    uint32_t at = 0;
    FP_BISECT(at, r->n_libs, l[at].process < process || (l[at].process == process && l[at].thread < thread));
    return at;
}

/* Selects the libraries that the tables of a thread + 1 refer to: its own, otherwise those of its process. */
static void use_libs(struct fp_firefox_read *r, uint32_t process, uint32_t thread) {
    r->rows.first_lib = first_lib(r, process, thread);
    r->rows.n_own_libs = first_lib(r, process, thread + 1) - r->rows.first_lib;
    if (r->rows.n_own_libs || !thread) return;
    r->rows.first_lib = first_lib(r, process, 0);
    r->rows.n_own_libs = first_lib(r, process, 1) - r->rows.first_lib;
}

/* ---- sets ---- */

void fp_firefox_free_sets(struct fp_firefox_read *r) {
    for (int i = 0; i < 2; i++) {
        struct fp_firefox_set *s = &r->rows.sets[i];
        FP_FREE(s->strings, s->sources, s->resources, s->funcs, s->frames, s->leaves);
        fp_own_stacks_free(&s->stacks);
    }
}

void fp_firefox_use_thread(struct fp_firefox_read *r, uint32_t thread) {
    struct fp_firefox_set *own = &r->rows.sets[1];
    memset(own->n, 0, sizeof own->n);
    fp_own_stacks_empty(&own->stacks);
    if (own->leaves) memset(own->leaves, 0, own->cap_leaves * sizeof *own->leaves);
    const uint32_t process = thread ? r->threads[thread - 1].process : 0;
    r->rows.set_thread = thread;
    use_libs(r, process, thread);
    if (process < r->n_processes) {
        const struct fp_firefox_process *p = &r->processes[process];
        r->rows.returns = p->preprocessed < 38;
    }
}

/* The set with the rows of a table: the shared one if it has the table. */
static struct fp_firefox_set *set_of(const struct fp_firefox_read *r, uint32_t kind) {
    return &r->rows.sets[!r->scan.shared_of[kind]];
}

/* Checks a reference to a row of another table: its index, or FP_NO_ID for null.  0 or FP_E_MALFORMED. */
static int look_up(struct fp_firefox_read *r, int64_t v, uint32_t kind, const char *what, uint32_t *index,
                   struct fp_err *err) {
    const uint32_t n = set_of(r, kind)->n[kind];
    *index = FP_NO_ID;
    if (v == FP_FIREFOX_NONE || v == -1) return 0;
    if (v >= 0 && v < n) {
        *index = (uint32_t)v;
        return 0;
    }
    if (r->lenient) {
        r->counts.bad_values++;
        return 0;
    }
    return fp_fail_got(err, FP_E_MALFORMED, r->tables[r->table].at, what, FP_GOT_SIGNED, (uint64_t)v, "less than %", n);
}

/* The text of a string table's index. */
static int look_up_text(struct fp_firefox_read *r, int64_t v, const char *what, uint32_t *text, struct fp_err *err) {
    uint32_t index;
    if (look_up(r, v, FP_FIREFOX_STRING_TABLE, what, &index, err)) return FP_E_MALFORMED;
    *text = index == FP_NO_ID ? 0 : set_of(r, FP_FIREFOX_STRING_TABLE)->strings[index];
    return 0;
}

/* Library + 1 of an index in the file. */
static int look_up_lib(struct fp_firefox_read *r, int64_t v, uint32_t *lib, struct fp_err *err) {
    *lib = 0;
    if (v == FP_FIREFOX_NONE || v == -1) return 0;
    if (v >= 0 && v < r->rows.n_own_libs) {
        *lib = r->rows.first_lib + (uint32_t)v + 1;
        return 0;
    }
    if (r->lenient) {
        r->counts.bad_values++;
        return 0;
    }
    return fp_fail_got(err, FP_E_MALFORMED, r->tables[r->table].at, "a library in this table", FP_GOT_SIGNED,
                       (uint64_t)v, "less than %", r->rows.n_own_libs);
}

static uint32_t small(int64_t v) {
    return v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

/* Appends to an array of the current table's kind.  `array` is the address of its pointer. */
#define APPEND(s, kind, array, item)                                                        \
    (fp_array_room(&(array), &(s)->cap[kind], (uint64_t)(s)->n[kind] + 1, sizeof *(array)), \
     (array)[(s)->n[kind]++] = (item), 0)

static int func_row(struct fp_firefox_read *r, struct fp_firefox_set *s, const int64_t *v, struct fp_err *err) {
    struct fp_firefox_func f = {.line = small(v[FP_FX_FUNC_LINE])};
    uint32_t index;
    if (look_up_text(r, v[FP_FX_FUNC_NAME], "the name of a function", &f.name, err)) return FP_E_MALFORMED;
    const struct fp_firefox_set *resources = set_of(r, FP_FIREFOX_RESOURCES);
    if (v[FP_FX_FUNC_RESOURCE] >= 0 && v[FP_FX_FUNC_RESOURCE] < resources->n[FP_FIREFOX_RESOURCES])
        f.lib = resources->resources[v[FP_FX_FUNC_RESOURCE]];
    if (look_up(r, v[FP_FX_FUNC_SOURCE], FP_FIREFOX_SOURCES, "the source of a function", &index, err))
        return FP_E_MALFORMED;
    if (index != FP_NO_ID) f.file = set_of(r, FP_FIREFOX_SOURCES)->sources[index];
    if (!f.file && look_up_text(r, v[FP_FX_FUNC_FILE], "the file of a function", &f.file, err)) return FP_E_MALFORMED;
    return APPEND(s, FP_FIREFOX_FUNCS, s->funcs, f);
}

static int frame_row(struct fp_firefox_read *r, struct fp_firefox_set *s, const int64_t *v, struct fp_err *err) {
    uint32_t id, index, lib;
    if (r->tables[r->table].has >> FP_FX_FRAME_LOCATION & 1) {
        uint32_t text;
        if (look_up_text(r, v[FP_FX_FRAME_LOCATION], "the location of a frame", &text, err)) return FP_E_MALFORMED;
        id = fp_firefox_location(r, text, small(v[FP_FX_FRAME_LINE]), small(v[FP_FX_FRAME_COLUMN]));
    } else {
        static const struct fp_firefox_func unknown;
        if (look_up(r, v[FP_FX_FRAME_FUNC], FP_FIREFOX_FUNCS, "the function of a frame", &index, err) ||
            look_up_lib(r, v[FP_FX_FRAME_LIB], &lib, err))
            return FP_E_MALFORMED;
        const struct fp_firefox_func *f = index == FP_NO_ID ? &unknown : &set_of(r, FP_FIREFOX_FUNCS)->funcs[index];
        id = fp_firefox_frame(r, f, lib ? lib : f->lib, v[FP_FX_FRAME_ADDRESS], small(v[FP_FX_FRAME_LINE]),
                              small(v[FP_FX_FRAME_COLUMN]));
    }
    return APPEND(s, FP_FIREFOX_FRAMES, s->frames, id);
}

/* The prefix of a stack, its callers, as index + 1; 0: none.  A prefix must come earlier in the table, which excludes
 * cycles. */
static int prefix_of(struct fp_firefox_read *r, uint32_t own, const int64_t *v, uint32_t *prefix, struct fp_err *err) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    const int is_offset = (int)(t->has >> FP_FX_STACK_OFFSET & 1);
    const int64_t stated = v[is_offset ? FP_FX_STACK_OFFSET : FP_FX_STACK_PREFIX], none = is_offset ? 0 : -1;
    *prefix = 0;
    if (stated == FP_FIREFOX_NONE || stated == none) return 0;
    if (stated > 0 - !is_offset && stated < (int64_t)own + is_offset) {
        *prefix = (uint32_t)(is_offset ? own - stated : stated) + 1;
        return 0;
    }
    if (r->lenient) {
        r->counts.bad_stacks++;
        return 0;
    }
    return fp_fail_got(err, FP_E_MALFORMED, t->at, is_offset ? "the prefixOffset of a stack" : "the prefix of a stack",
                       FP_GOT_SIGNED, (uint64_t)stated,
                       is_offset ? "up to %, its own number" : "less than %, its own number", own);
}

static int stack_row(struct fp_firefox_read *r, struct fp_firefox_set *s, const int64_t *v, struct fp_err *err) {
    uint32_t prefix, frame;
    if (prefix_of(r, s->n[FP_FIREFOX_STACKS], v, &prefix, err) ||
        look_up(r, v[FP_FX_STACK_FRAME], FP_FIREFOX_FRAMES, "the frame of a stack", &frame, err))
        return FP_E_MALFORMED;
    if (frame != FP_NO_ID) {
        frame = set_of(r, FP_FIREFOX_FRAMES)->frames[frame];
    } else if (prefix) { /* the same stack: no sample walks along many that add nothing */
        frame = s->stacks.at[prefix].frame;
        prefix = s->stacks.at[prefix].caller;
    }
    fp_own_stacks_add(&s->stacks, prefix, frame);
    s->n[FP_FIREFOX_STACKS]++;
    return 0;
}

enum { FAR_AHEAD = 64 }; /* rows */

static int table_row(struct fp_firefox_read *r, const int64_t *v, struct fp_err *err) {
    const uint32_t kind = r->tables[r->table].kind;
    struct fp_firefox_set *s = set_of(r, kind);
    uint32_t id = (uint32_t)v[FP_FIREFOX_FIRST];
    switch (kind) {
        case FP_FIREFOX_STRING_TABLE: return APPEND(s, kind, s->strings, id);
        case FP_FIREFOX_SOURCES:
            if (look_up_text(r, v[FP_FIREFOX_FIRST], "the name of a source", &id, err)) return FP_E_MALFORMED;
            return APPEND(s, kind, s->sources, id);
        case FP_FIREFOX_RESOURCES:
            if (look_up_lib(r, v[FP_FIREFOX_FIRST], &id, err)) return FP_E_MALFORMED;
            return APPEND(s, kind, s->resources, id);
        case FP_FIREFOX_FUNCS: return func_row(r, s, v, err);
        case FP_FIREFOX_FRAMES: return frame_row(r, s, v, err);
        case FP_FIREFOX_STACKS: return stack_row(r, s, v, err);
        case FP_FIREFOX_MARKERS: return fp_firefox_marker(r, v, err);
        default: return fp_firefox_counter_value(r, v);
    }
}

/* ---- samples ---- */

/* The stack of a sample.  Its innermost address is not a return address, so it may differ from the one that the same
 * stack has as a caller. */
static uint32_t leaf(struct fp_firefox_read *r, struct fp_firefox_set *s, uint32_t index) {
    struct fp_model *m = r->model;
    const uint32_t own = index + 1;
    if (!r->rows.returns || s->stacks.at[own].frame == FP_NO_ID) return fp_own_stacks_node(&s->stacks, m, own);
    fp_array_zeroed(&s->leaves, &s->cap_leaves, s->n[FP_FIREFOX_STACKS], sizeof *s->leaves);
    if (!s->leaves[index]) {
        const struct fp_own_stack stack = s->stacks.at[own];
        const uint32_t *f = fp_table_row(&m->frames, stack.frame);
        const uint32_t frame =
            fp_model_frame(m, f[FP_FRAME_MAPPING], fp_words_u64(f + FP_FRAME_ADDRESS),
                           f[FP_FRAME_FLAGS] & ~(uint32_t)FP_FRAME_RETURN_ADDRESS, f[FP_FRAME_LINES]);
        const uint32_t made = fp_own_stacks_add(&s->stacks, stack.caller, frame);
        s->leaves[index] = made;
    }
    return fp_own_stacks_node(&s->stacks, m, s->leaves[index]);
}

/* n / divisor, half away from 0. */
static int64_t divided(int64_t n, int64_t divisor) {
    if (divisor == 1) return n;
    const int64_t half = n < 0 ? -(divisor / 2) : divisor / 2, rest = n % divisor;
    return n / divisor + ((n < 0 ? rest <= half : rest >= half) ? (n < 0 ? -1 : 1) : 0);
}

/* The value of a sample's weight, from both columns.  0, or FP_E_OVERFLOW. */
static int weight_of(struct fp_firefox_read *r, const struct fp_firefox_table *t, int64_t whole, int64_t fine,
                     int64_t *value, struct fp_err *err) {
    if (whole == FP_FIREFOX_NONE) return 0;
    if (t->weights == FP_FIREFOX_MS) {
        if (fine == FP_FIREFOX_NONE && !r->lenient)
            return fp_fail(err, FP_E_OVERFLOW, t->at, "a weight in milliseconds exceeds 64 bits of nanoseconds");
        r->counts.bad_values += fine == FP_FIREFOX_NONE;
        *value = fine == FP_FIREFOX_NONE ? 0 : fine;
        return 0;
    }
    *value = whole;
    r->counts.rounded += fine != FP_FIREFOX_NONE && fine % 1000000;
    return 0;
}

/* The next numbers of a column; NULL: none is left. */
static const int64_t *next_of(const struct fp_firefox_read *r, uint32_t column) {
    return r->rows.windows[column].n ? r->rows.windows[column].p : NULL;
}

static int sample_stacks(struct fp_firefox_read *r, uint32_t n, uint32_t *to, struct fp_err *err) {
    struct fp_firefox_set *s = set_of(r, FP_FIREFOX_STACKS);
    const int64_t *stacks = next_of(r, FP_FIREFOX_IN_STACK);
    fp_own_stacks_begin(&s->stacks, r->model);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stack = FP_NO_ID, node = 0;
        if (stacks && i + FAR_AHEAD < n && (uint64_t)stacks[i + FAR_AHEAD] < s->n[FP_FIREFOX_STACKS])
            __builtin_prefetch(&s->stacks.at[stacks[i + FAR_AHEAD] + 1]);
        if (stacks && look_up(r, stacks[i], FP_FIREFOX_STACKS, "the stack of a sample", &stack, err))
            return FP_E_MALFORMED;
        if (stack != FP_NO_ID) node = leaf(r, s, stack);
        to[i] = node;
    }
    return 0;
}

/* Nanoseconds, 0 = none. */
static void sample_times(struct fp_firefox_read *r, const struct fp_firefox_table *t, uint32_t n, uint64_t *to) {
    const int64_t start = r->threads[t->thread - 1].start_ns;
    const int is_absolute = (int)(t->has >> FP_FIREFOX_IN_TIME & 1);
    const int64_t *from = next_of(r, is_absolute ? FP_FIREFOX_IN_TIME : FP_FIREFOX_IN_DELTA);
    const int has_delta = (int)(t->has >> FP_FIREFOX_IN_DELTA & 1);
    for (uint32_t i = 0; i < n; i++) {
        int64_t time = from ? from[i] : FP_FIREFOX_NONE;
        if (!is_absolute) {
            if (time != FP_FIREFOX_NONE && __builtin_add_overflow(r->rows.clock, time, &r->rows.clock))
                r->rows.clock = INT64_MAX;
            time = has_delta ? r->rows.clock : FP_FIREFOX_NONE;
        }
        const int has_time =
            time != FP_FIREFOX_NONE && start != FP_FIREFOX_NONE && !__builtin_add_overflow(time, start, &time);
        to[i] = has_time && time > 0 ? (uint64_t)time : 0;
    }
}

/* Where the batch has a value column of the next rows; NULL without that column. */
static int64_t *values_at(struct fp_batch *out, int32_t column) {
    return column >= 0 && (uint32_t)column < out->n_values ? out->values + (size_t)column * out->cap + out->n : NULL;
}

static int sample_values(struct fp_firefox_read *r, const struct fp_firefox_table *t, uint32_t n, struct fp_batch *out,
                         struct fp_err *err) {
    const int is_native = t->kind == FP_FIREFOX_NATIVE;
    const int64_t *whole = next_of(r, FP_FIREFOX_IN_WEIGHT), *fine = next_of(r, FP_FIREFOX_IN_WEIGHT_MS);
    const int64_t *cpu = is_native ? NULL : next_of(r, FP_FIREFOX_IN_CPU);
    const int64_t one = t->weights == FP_FIREFOX_MS && !(t->has >> FP_FIREFOX_IN_WEIGHT & 1) ? 1000000 : 1;
    const int64_t divisor = t->cpu_divisor > 0 ? t->cpu_divisor : 1;
    int64_t *const first = values_at(out, t->value_column), *const second = values_at(out, t->second_column);
    for (uint32_t k = 0; k < out->n_values; k++) memset(values_at(out, (int32_t)k), 0, n * sizeof(int64_t));
    for (uint32_t i = 0; i < n; i++) {
        int64_t value = one;
        if (whole && weight_of(r, t, whole[i], fine ? fine[i] : FP_FIREFOX_NONE, &value, err)) return FP_E_OVERFLOW;
        if (!out->stack[out->n + i] && t->weights == FP_FIREFOX_MS && value) { /* idle: the profiler shows no cost */
            value = 0;
            r->counts.idle++;
        }
        if (first) first[i] = is_native && value < 0 ? 0 : value;
        if (second && is_native) second[i] = value;
    }
    if (second && cpu)
        for (uint32_t i = 0; i < n; i++) second[i] = cpu[i] == FP_FIREFOX_NONE ? 0 : divided(cpu[i], divisor);
    return 0;
}

/* Makes rows of the next n samples.  0 or an error. */
static int sample_rows(struct fp_firefox_read *r, uint32_t n, struct fp_batch *out, struct fp_err *err) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    const uint32_t thread = r->threads[t->thread - 1].thread, at = out->n;
    if (sample_stacks(r, n, out->stack + at, err) || sample_values(r, t, n, out, err)) return err->code;
    sample_times(r, t, n, out->time + at);
    memset(out->label + at, 0, n * sizeof *out->label);
    for (uint32_t i = 0; i < n; i++) out->thread[at + i] = thread;
    out->n += n;
    r->counts.rows += n;
    return 0;
}

/* ---- rows ---- */

/* Whether a table has the columns that it needs: at least one of each group of bits. */
static int has_needed(const struct fp_firefox_table *t) {
    static const uint32_t needed[FP_FIREFOX_KINDS][2] = {
        [FP_FIREFOX_STRING_TABLE] = {1, 1},
        [FP_FIREFOX_SOURCES] = {1, 1},
        [FP_FIREFOX_RESOURCES] = {~0u, ~0u},
        [FP_FIREFOX_FUNCS] = {1 << FP_FX_FUNC_NAME, 1 << FP_FX_FUNC_NAME},
        [FP_FIREFOX_FRAMES] = {1 << FP_FX_FRAME_FUNC | 1 << FP_FX_FRAME_LOCATION, ~0u},
        [FP_FIREFOX_STACKS] = {1 << FP_FX_STACK_FRAME, 1 << FP_FX_STACK_PREFIX | 1 << FP_FX_STACK_OFFSET},
        [FP_FIREFOX_SAMPLES] = {1 << FP_FIREFOX_IN_STACK, ~0u},
        [FP_FIREFOX_JS] = {1 << FP_FIREFOX_IN_STACK, ~0u},
        [FP_FIREFOX_NATIVE] = {1 << FP_FIREFOX_IN_STACK, ~0u},
        [FP_FIREFOX_MARKERS] = {1 << FP_FX_MARKER_NAME, 1 << FP_FX_MARKER_START | 1 << FP_FX_MARKER_TIME},
        [FP_FIREFOX_COUNTERS] = {1 << FP_FX_COUNTER_COUNT, 1 << FP_FX_COUNTER_TIME | 1 << FP_FX_COUNTER_DELTA}};
    return (t->has & needed[t->kind][0]) && (t->has & needed[t->kind][1]);
}

/* The lengths of its shortest and its longest column. */
static void lengths_of(const struct fp_firefox_table *t, uint64_t *shortest, uint64_t *longest) {
    *shortest = UINT64_MAX;
    *longest = 0;
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++) {
        if (!(t->has >> c & 1)) continue;
        if (t->numbers[c] < *shortest) *shortest = t->numbers[c];
        if (t->numbers[c] > *longest) *longest = t->numbers[c];
    }
    if (*shortest == UINT64_MAX) *shortest = 0;
}

int fp_firefox_begin(struct fp_firefox_read *r, uint32_t table, int pulls, struct fp_err *err) {
    const struct fp_firefox_table *t = &r->tables[table];
    uint64_t shortest, longest;
    lengths_of(t, &shortest, &longest);
    r->table = table;
    r->rows.pulls = pulls;
    r->rows.at = 0;
    r->rows.clock = 0;
    r->rows.sum = 0;
    memset(r->rows.windows, 0, sizeof r->rows.windows);
    memset(r->rows.blocks, 0, sizeof r->rows.blocks);
    memset(r->rows.taken, 0, sizeof r->rows.taken);
    r->rows.n = t->length >= 0 ? (uint64_t)t->length : shortest;
    if (t->kind == FP_FIREFOX_RESOURCES) { /* libraries are optional, and in version 70 frames have them */
        r->rows.n = longest;
        return 0;
    }
    if (!has_needed(t) && r->rows.n) {
        r->rows.n = 0;
        return fp_firefox_broken(r, t->at, "a table lacks a column that it needs", NULL, err);
    }
    if (r->rows.n <= shortest && (t->length >= 0 || shortest == longest)) return 0;
    if (!r->lenient)
        return fp_fail_got(err, FP_E_MALFORMED, t->at, "the length of a column in this table", FP_GOT_UNSIGNED,
                           shortest, "%", t->length >= 0 ? r->rows.n : longest);
    r->counts.short_columns++;
    if (r->rows.n > longest) r->rows.n = longest;
    return 0;
}

/* Asks for windows that are empty.  *n becomes the number of rows that all windows have.  0 or FP_NEEDS. */
static int next_rows(struct fp_firefox_read *r, uint64_t *n) {
    const struct fp_firefox_table *t = &r->tables[r->table];
    *n = r->rows.n - r->rows.at;
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++) {
        if (!(t->has >> c & 1) || r->rows.taken[c] >= t->numbers[c]) continue;
        if (!r->rows.windows[c].n && !fp_firefox_next_block(r, c)) {
            r->requested_column = c;
            r->request = FP_FIREFOX_WINDOW;
            return FP_NEEDS;
        }
        if (r->rows.windows[c].n < *n) *n = r->rows.windows[c].n;
    }
    return 0;
}

static void take_rows(struct fp_firefox_read *r, uint64_t n) {
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++) {
        struct fp_firefox_window *w = &r->rows.windows[c];
        if (!w->n) continue;
        w->p += n;
        w->n -= n;
        r->rows.taken[c] += n;
    }
    r->rows.at += n;
}

/* Reads up to n rows of a table that becomes part of the model, of markers or of a counter. */
static int table_rows(struct fp_firefox_read *r, uint64_t n, struct fp_err *err) {
    int64_t v[FP_FIREFOX_COLUMNS];
    for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++) v[c] = FP_FIREFOX_NONE;
    for (uint64_t i = 0; i < n; i++) {
        for (uint32_t c = 0; c < FP_FIREFOX_COLUMNS; c++)
            if (r->rows.windows[c].n) v[c] = r->rows.windows[c].p[i];
        const int status = table_row(r, v, err);
        if (status) {
            take_rows(r, i); /* after FP_NEEDS it continues with the same row */
            return status;
        }
    }
    take_rows(r, n);
    return 0;
}

int fp_firefox_rows(struct fp_firefox_read *r, struct fp_batch *out, struct fp_err *err) {
    const uint32_t kind = r->tables[r->table].kind;
    const int is_sample = fp_firefox_is_samples(kind);
    while (r->rows.at < r->rows.n) {
        uint64_t n;
        if (is_sample && out->n == out->cap) return FP_FULL;
        int status = next_rows(r, &n);
        if (is_sample && n > out->cap - out->n) n = out->cap - out->n;
        if (!status) status = is_sample ? sample_rows(r, (uint32_t)n, out, err) : table_rows(r, n, err);
        if (status) return status;
        if (is_sample) take_rows(r, n);
    }
    return r->rows.pulls ? fp_firefox_marker_rows(r, out) : FP_DONE;
}
