#include "valgrind/dhat_private.h"

enum { TOP = 1, POINTS, POINT, FRAMES, TABLE }; /* objects and arrays */
/* values; where an object or array is in their place, also its kind.  Codes of texts and values of points follow. */
enum { VERSION = 10, PID, END_TIME, PEAK_TIME, LIFETIMES, ACCESSES, NOT_POINT, NOT_FRAMES, INDEX, ENTRY, TEXT };
enum { VALUE = TEXT + FP_DHAT_TEXTS };

#define KEY_OF_VALUE(key, value) FP_JSON_KEY(POINT, key, FP_JSON_EITHER(VALUE + (int)FP_DHAT_##value))

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = TOP),
    FP_JSON_KEY(TOP, "dhatFileVersion", FP_JSON_EITHER(VERSION)),
    FP_JSON_KEY(TOP, "mode", .value = TEXT + (int)FP_DHAT_MODE),
    FP_JSON_KEY(TOP, "bklt", FP_JSON_EITHER(LIFETIMES)),
    FP_JSON_KEY(TOP, "bkacc", FP_JSON_EITHER(ACCESSES)),
    FP_JSON_KEY(TOP, "bu", .value = TEXT + (int)FP_DHAT_BU),
    FP_JSON_KEY(TOP, "bksu", .value = TEXT + (int)FP_DHAT_BKSU),
    FP_JSON_KEY(TOP, "tu", .value = TEXT + (int)FP_DHAT_TU),
    FP_JSON_KEY(TOP, "cmd", .value = TEXT + (int)FP_DHAT_CMD),
    FP_JSON_KEY(TOP, "pid", FP_JSON_EITHER(PID)),
    FP_JSON_KEY(TOP, "te", FP_JSON_EITHER(END_TIME)),
    FP_JSON_KEY(TOP, "tg", FP_JSON_EITHER(PEAK_TIME)),
    FP_JSON_KEY(TOP, "pps", .array = POINTS),
    FP_JSON_KEY(TOP, "ftbl", .array = TABLE),
    FP_JSON_EACH(POINTS, .object = POINT, .array = NOT_POINT, .value = NOT_POINT),
    KEY_OF_VALUE("tb", TB),
    KEY_OF_VALUE("tbk", TBK),
    KEY_OF_VALUE("tl", TL),
    KEY_OF_VALUE("mb", MB),
    KEY_OF_VALUE("mbk", MBK),
    KEY_OF_VALUE("gb", GB),
    KEY_OF_VALUE("gbk", GBK),
    KEY_OF_VALUE("eb", EB),
    KEY_OF_VALUE("ebk", EBK),
    KEY_OF_VALUE("rb", RB),
    KEY_OF_VALUE("wb", WB),
    FP_JSON_KEY(POINT, "fs", .object = NOT_FRAMES, .array = FRAMES, .value = NOT_FRAMES),
    FP_JSON_EACH(FRAMES, FP_JSON_EITHER(INDEX)),
    FP_JSON_EACH(TABLE, FP_JSON_EITHER(ENTRY)),
};

/* The token as a string of `texts`. */
static uint32_t intern(struct fp_dhat_reader *d) {
    size_t n;
    const uint8_t *p = fp_json_plain(&d->walk.json, &d->walk.scratch, &n);
    return fp_strings_intern(&d->pub.texts, p, n < FP_NAME_MOST ? n : FP_NAME_MOST);
}

/* Reports an invalid number: an error or, when lenient, a point that is skipped. */
static int bad_number(struct fp_dhat_reader *d, struct fp_window *in, const char *what, const char *want,
                      struct fp_err *err) {
    const struct fp_json *j = &d->walk.json;
    d->bad = 1;
    if (d->lenient) return 0;
    return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, what, j->text,
                        j->token >= FP_JSON_STRING ? j->text_n : 0, want);
}

/* ---- fields of the file ---- */

static int field(struct fp_dhat_reader *d, uint32_t key, struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &d->walk.json;
    if (key >= TEXT && j->token == FP_JSON_STRING) {
        const uint32_t string = intern(d);
        d->pub.text[key - TEXT] = string;
    }
    if (key == LIFETIMES) d->pub.lifetimes = j->token == FP_JSON_WORD && j->text[0] == 't';
    if (key == ACCESSES) d->pub.accesses = j->token == FP_JSON_WORD && j->text[0] == 't';
    int64_t *const number = key == VERSION     ? &d->pub.version
                            : key == PID       ? &d->pub.pid
                            : key == END_TIME  ? &d->pub.end_time
                            : key == PEAK_TIME ? &d->pub.peak_time
                                               : NULL;
    if (number && (!fp_json_is_integer(&d->walk, number) || *number < 0)) {
        *number = -1;
        if (!d->lenient) return bad_number(d, in, "a field of the file", "a whole number", err);
    }
    if (key == VERSION && *number != 1 && *number != 2 && !d->lenient)
        return fp_fail_got(err, FP_E_MALFORMED, in->base + in->pos, "dhatFileVersion", FP_GOT_UNSIGNED,
                           (uint64_t)*number, "1 or 2", 0);
    return 0;
}

/* ---- points ---- */

int fp_dhat_add(struct fp_dhat_reader *d, uint32_t stack, const int64_t *v, uint64_t at, struct fp_err *err) {
    struct fp_dhat_sums sums = *fp_dhat_sums_of(d, stack);
    for (uint32_t k = 0; k < FP_DHAT_VALUES; k++) {
        if (!__builtin_add_overflow(sums.v[k], v[k], &sums.v[k])) continue;
        if (!d->lenient) return fp_fail(err, FP_E_OVERFLOW, at, "the sum of a stack's values is 2^63 or more");
        d->pub.broken++;
        return 0;
    }
    sums.n++;
    sums.at = at;
    *fp_dhat_sums_of(d, stack) = sums;
    return 0;
}

/* Adds the point held, if any, to the sums of its stack. */
static int add_held(struct fp_dhat_reader *d, struct fp_err *err) {
    struct fp_dhat_held *h = &d->held;
    if (!h->is_point) return 0;
    h->is_point = 0;
    const uint32_t stack = fp_key_sums_key(&d->pub.stacks, h->code.p, h->code.n, h->hash);
    return fp_dhat_add(d, stack, h->value, h->at, err);
}

/* Adds the held point to its sums and holds the current one.  Meanwhile its index slot is prefetched. */
static int hold(struct fp_dhat_reader *d, struct fp_err *err) {
    enum { LONGEST = 5 }; /* bytes of a varint of 32 bits */
    d->code.n = 0;
    fp_buf_reserve(&d->code, (size_t)d->n_fs * LONGEST + 1);
    uint8_t *end = d->code.p;
    for (uint32_t i = 0; i < d->n_fs; i++) end = fp_varint(end, d->fs[i]);
    d->code.n = (size_t)(end - d->code.p);
    const uint32_t hash = fp_strings_hash(d->code.p, d->code.n);
    fp_strings_prefetch(&d->pub.stacks.keys, hash);
    FP_TRY(add_held(d, err));
    struct fp_dhat_held *h = &d->held;
    const struct fp_buf code = h->code;
    h->code = d->code;
    d->code = code;
    h->hash = hash;
    h->at = d->at;
    memcpy(h->value, d->value, sizeof h->value);
    h->is_point = 1;
    return 0;
}

static int end_point(struct fp_dhat_reader *d, struct fp_err *err) {
    const uint32_t needed = 1u << FP_DHAT_TB | 1u << FP_DHAT_TBK;
    d->pub.points++;
    if (d->bad || (d->has & needed) != needed || !d->has_frames) {
        if (!d->lenient) {
            fp_fail(err, FP_E_MALFORMED, d->at, "a point is incomplete");
            err->want = "\"tb\", \"tbk\" and \"fs\"";
            return FP_E_MALFORMED;
        }
        d->pub.broken++;
        return 0;
    }
    for (uint32_t i = 0; i < d->n_fs; i++) {
        if (d->fs[i] < d->highest) continue;
        d->highest = d->fs[i];
        d->highest_at = d->at;
    }
    return hold(d, err);
}

/* Reads an element of "fs". */
static int frame_index(struct fp_dhat_reader *d, struct fp_window *in, struct fp_err *err) {
    int64_t index;
    if (!fp_json_is_integer(&d->walk, &index) || index < 0 || index >= FP_NO_ID)
        return bad_number(d, in, "a frame of a point", "an index of the frame table", err);
    FP_PUSH(d->fs, d->n_fs, d->cap_fs) = (uint32_t)index;
    return 0;
}

/* ---- points as Valgrind prints them: without the lexer ---- */

/* Keys in the order in which Valgrind prints them, with quotes and colon: n bytes. */
static const struct value_name {
    char text[8];
    uint8_t n, value;
} value_names[] = {
    {"\"tb\":", 5, FP_DHAT_TB},   {"\"tbk\":", 6, FP_DHAT_TBK}, {"\"tl\":", 5, FP_DHAT_TL},
    {"\"mb\":", 5, FP_DHAT_MB},   {"\"mbk\":", 6, FP_DHAT_MBK}, {"\"gb\":", 5, FP_DHAT_GB},
    {"\"gbk\":", 6, FP_DHAT_GBK}, {"\"eb\":", 5, FP_DHAT_EB},   {"\"ebk\":", 6, FP_DHAT_EBK},
    {"\"rb\":", 5, FP_DHAT_RB},   {"\"wb\":", 5, FP_DHAT_WB},
};

/* The code of a key.  *next is the value that usually follows the last one. */
static uint8_t value_key(const uint8_t *key, size_t n, uint32_t *next) {
    if (n == 2 && key[0] == 'f' && key[1] == 's') return NOT_FRAMES;
    for (uint32_t tried = 0; tried < FP_DHAT_VALUES; tried++) {
        const struct value_name *const name = &value_names[(*next)++];
        if (*next == FP_DHAT_VALUES) *next = 0;
        if (n + 3 == name->n && !memcmp(name->text + 1, key, n)) return (uint8_t)(VALUE + name->value);
    }
    return 0;
}

static const uint8_t *skip_blanks(const uint8_t *p) {
    while (*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

/* A list of numbers, after its bracket and before `brace`; its end, or NULL.  `keep`: they are the point's frames. */
static const uint8_t *plain_list(struct fp_dhat_reader *d, const uint8_t *p, const uint8_t *brace, int keep) {
    uint64_t v;
    /* at most a number for 2 bytes: `1,` */
    if (keep && fp_array_room(&d->fs, &d->cap_fs, (uint64_t)(brace - p) / 2 + 1, sizeof *d->fs)) return NULL;
    p = skip_blanks(p);
    if (*p == ']') return p + 1;
    for (;; p++) {
        p = skip_blanks(p);
        p += *p == '-' && !keep;
        if (!(p = fp_decimal8(p, &v))) return NULL;
        if (keep) {
            if (v >= FP_NO_ID) return NULL;
            d->fs[d->n_fs++] = (uint32_t)v;
        }
        p = skip_blanks(p);
        if (*p == ']') return p + 1;
        if (*p != ',') return NULL;
    }
}

/* A value whose key is the expected one; the byte after it, or NULL if something else follows. */
static const uint8_t *expected_value(struct fp_dhat_reader *d, const uint8_t *p, uint32_t *next) {
    const struct value_name *const name = &value_names[*next];
    const uint32_t n = name->n;
    uint64_t v;
    if (fp_u32(p) != fp_u32((const uint8_t *)name->text) || p[n - 2] != '"' || p[n - 1] != ':') return NULL;
    if (!(p = fp_decimal8(p + n, &v))) return NULL;
    d->value[name->value] = (int64_t)v;
    d->has |= 1u << name->value;
    if (++*next == FP_DHAT_VALUES) *next = 0;
    return p;
}

/* A key and its number or list of numbers; their end, or NULL. */
static const uint8_t *plain_member(struct fp_dhat_reader *d, const uint8_t *p, const uint8_t *brace, uint32_t *next) {
    uint64_t v;
    if (*p != '"') return NULL;
    const uint8_t *const key = ++p;
    while (p < brace && *p != '"' && *p != '\\') p++;
    if (*p != '"') return NULL;
    const uint8_t code = value_key(key, (size_t)(p - key), next);
    p = skip_blanks(p + 1);
    if (*p != ':') return NULL;
    p = skip_blanks(p + 1);
    if (*p == '[') {
        if (code >= VALUE) return NULL;
        if (code == NOT_FRAMES) d->n_fs = 0;
        d->has_frames |= code == NOT_FRAMES;
        return plain_list(d, p + 1, brace, code == NOT_FRAMES);
    }
    if (code == NOT_FRAMES || !(p = fp_decimal8(p, &v))) return NULL;
    if (code >= VALUE) {
        d->value[code - VALUE] = (int64_t)v;
        d->has |= 1u << (code - VALUE);
    }
    return p;
}

/* Reads a point that is complete in the window and consists of numbers and lists of them: ten times as fast as token by
 * token.  Its end; NULL: it has another form, which the lexer reads, and reports if it is wrong.  All loops stop at the
 * brace at the end. */
static const uint8_t *plain_point(struct fp_dhat_reader *d, const uint8_t *p, const uint8_t *end) {
    const uint8_t *const brace = memchr(p, '}', (size_t)(end - p));
    uint32_t next = 0;
    if (!brace || end - brace < 16) return NULL; /* `"tbk":` and eight digits are looked for at the brace, too */
    for (;;) {
        p = skip_blanks(p + 1); /* after the opening brace or a comma */
        const uint8_t *const after = expected_value(d, p, &next);
        p = after ? after : plain_member(d, p, brace, &next);
        if (!p) return NULL;
        p = skip_blanks(p);
        if (p == brace) return p + 1;
        if (*p != ',') return NULL;
    }
}

static void begin_point(struct fp_dhat_reader *d) {
    memset(d->value, 0, sizeof d->value);
    d->has = d->n_fs = 0;
    d->has_frames = d->bad = 0;
}

/* A point, which may be read whole. */
static int point(struct fp_dhat_reader *d, const struct fp_window *in, struct fp_err *err) {
    d->at = in->base + in->pos;
    begin_point(d);
    const uint8_t *const end = plain_point(d, in->p + in->pos, in->p + in->n);
    if (end) {
        fp_json_whole(&d->walk.json, (size_t)(end - in->p));
        return end_point(d, err);
    }
    begin_point(d);
    return 0;
}

static int not_point(struct fp_dhat_reader *d, const struct fp_window *in, struct fp_err *err) {
    if (!d->lenient) return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "a point is not an object");
    d->pub.broken++;
    return 0;
}

static int point_value(struct fp_dhat_reader *d, uint32_t value, struct fp_window *in, struct fp_err *err) {
    int64_t number;
    if (!fp_json_is_integer(&d->walk, &number) || number < 0)
        return bad_number(d, in, "a value of a point", "a number from 0 to 2^63 - 1", err);
    d->value[value] = number;
    d->has |= 1u << value;
    return 0;
}

/* ---- the frame table ---- */

static int table_entry(struct fp_dhat_reader *d, const struct fp_window *in, struct fp_err *err) {
    uint32_t string = 0;
    if (d->walk.json.token == FP_JSON_STRING)
        string = intern(d);
    else if (!d->lenient)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "an entry of the frame table is not a string");
    d->has_empty |= !string;
    FP_PUSH(d->table, d->n_table, d->cap_table) = string;
    return 0;
}

uint32_t fp_dhat_n_table(const struct fp_dhat *pub) {
    return ((const struct fp_dhat_reader *)pub)->n_table;
}

uint32_t fp_dhat_table(const struct fp_dhat *pub, uint32_t i) {
    return ((const struct fp_dhat_reader *)pub)->table[i];
}

int fp_dhat_place(struct fp_dhat *pub, uint32_t string, uint64_t address, uint32_t function, uint32_t line) {
    struct fp_dhat_reader *d = (struct fp_dhat_reader *)pub;
    fp_array_zeroed(&d->places, &d->cap_places, d->pub.texts.n, sizeof *d->places);
    d->places[string] = (struct fp_dhat_place){.address = address, .function = function, .line = line};
    const uint32_t id = fp_table_intern(&d->addresses, (uint32_t[]){FP_WORDS(address)});
    uint32_t *text = FP_AT(d->text_at, d->cap_text_at, id);
    *text = *text && *text != string ? FP_NO_ID : string;
    return 0;
}

int fp_dhat_is_alone(const struct fp_dhat_reader *d, uint32_t string) {
    const uint64_t address = d->places[string].address;
    const uint32_t id = fp_table_find(&d->addresses, (uint32_t[]){FP_WORDS(address)});
    return !address || d->text_at[id] == string;
}

/* ---- the text ---- */

/* A value, or the beginning of an object or array. */
static int begin(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct fp_dhat_reader *d = to;
    switch (code) {
        case POINTS: d->seen_points = 1; return 0;
        case TOP:
        case TABLE: return 0;
        case POINT: return point(d, in, err);
        case NOT_POINT: return not_point(d, in, err);
        case FRAMES:
        case NOT_FRAMES:
            d->n_fs = 0;
            d->has_frames = code == FRAMES;
            return 0;
        case INDEX: return frame_index(d, in, err);
        case ENTRY: return table_entry(d, in, err);
        default: return code >= VALUE ? point_value(d, code - VALUE, in, err) : field(d, code, in, err);
    }
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    (void)in;
    return kind == POINT ? end_point(to, err) : 0;
}

static const struct fp_json_shape shape = {FP_JSON_ROWS(rows), .begin = begin, .end = end, .value = begin};

struct fp_dhat *fp_dhat_new(struct fp_model *model, int lenient) {
    struct fp_dhat_reader *d = fp_made(sizeof *d);
    d->model = model;
    d->lenient = d->walk.lenient = lenient;
    d->pub.version = d->pub.pid = d->pub.end_time = d->pub.peak_time = -1;
    fp_json_begin(&d->walk, &shape);
    fp_strings_init(&d->pub.texts);
    fp_key_sums_init(&d->pub.stacks, sizeof(struct fp_dhat_sums));
    fp_table_init(&d->addresses, 2);
    return &d->pub;
}

void fp_dhat_free(struct fp_dhat *pub) {
    struct fp_dhat_reader *d = (struct fp_dhat_reader *)pub;
    fp_strings_clear(&d->pub.texts);
    fp_key_sums_clear(&d->pub.stacks);
    FP_CLEAR_TABLES(&d->addresses, &d->places_seen);
    fp_json_free(&d->walk);
    FP_FREE_BUFFERS(&d->code, &d->held.code);
    FP_FREE(d->fs, d->table, d->places, d->text_at, d->frame_of, d->frames, d->nodes, d);
}

/* Checks the complete file: required keys, indices of frames. */
static int check(const struct fp_dhat_reader *d, struct fp_err *err) {
    if (d->lenient) return 0;
    if (d->pub.version < 0) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no dhatFileVersion");
    if (!d->seen_points) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no program points (pps)");
    if (d->highest_at && d->highest >= d->n_table) /* an offset of 0: no point has frames */
        return fp_fail_got(err, FP_E_MALFORMED, d->highest_at, "a frame of a point", FP_GOT_UNSIGNED, d->highest,
                           "less than %", d->n_table);
    return 0;
}

int fp_dhat_feed(struct fp_dhat *pub, struct fp_window *in, struct fp_err *err) {
    struct fp_dhat_reader *d = (struct fp_dhat_reader *)pub;
    int status = fp_json_walk(&d->walk, d, in, err);
    if (status) return status;
    pub->bad_end = d->walk.bad_end;
    status = add_held(d, err);
    fp_strings_seal(&pub->stacks.keys);
    if (!status) status = check(d, err);
    return status ? status : FP_NEEDS;
}
