#include "valgrind/dhat_private.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/digits.h"

/* Codes of keys; the codes of texts and values follow. */
enum dhat_key {
    OTHER = 0,
    VERSION,
    PID,
    END_TIME,
    PEAK_TIME,
    LIFETIMES,
    ACCESSES,
    POINTS,
    TABLE,
    FRAMES,
    TEXT,
    VALUE = TEXT + FP_VALGRIND_TEXTS
};

/* The nesting depth inside each of these. */
enum { IN_FILE = 1, IN_LIST = 2, IN_POINT = 3, IN_FRAMES = 4 };

struct fp_valgrind *fp_valgrind_new(struct fp_model *model, int lenient) {
    struct fp_valgrind *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->model = model;
    d->lenient = lenient;
    d->version = d->pid = d->end_time = d->peak_time = -1;
    if (fp_strings_init(&d->texts) || fp_strings_init(&d->stacks) || fp_table_init(&d->addresses, 2)) {
        fp_valgrind_free(d);
        return NULL;
    }
    return d;
}

void fp_valgrind_free(struct fp_valgrind *d) {
    if (!d) return;
    fp_strings_clear(&d->texts);
    fp_strings_clear(&d->stacks);
    fp_table_clear(&d->addresses);
    fp_buf_free(&d->scratch);
    free(d->fs);
    free(d->held.fs);
    free(d->sums);
    free(d->table);
    free(d->places);
    free(d->text_at);
    free(d->frame_of);
    free(d->frames);
    free(d->nodes);
    free(d);
}

static uint8_t key_of(const struct fp_valgrind *d) {
    static const struct {
        const char *key;
        uint8_t code, depth;
    } keys[] = {{"tb", VALUE + (int)FP_VALGRIND_TB, IN_POINT},
                {"tbk", VALUE + (int)FP_VALGRIND_TBK, IN_POINT},
                {"tl", VALUE + (int)FP_VALGRIND_TL, IN_POINT},
                {"mb", VALUE + (int)FP_VALGRIND_MB, IN_POINT},
                {"mbk", VALUE + (int)FP_VALGRIND_MBK, IN_POINT},
                {"gb", VALUE + (int)FP_VALGRIND_GB, IN_POINT},
                {"gbk", VALUE + (int)FP_VALGRIND_GBK, IN_POINT},
                {"eb", VALUE + (int)FP_VALGRIND_EB, IN_POINT},
                {"ebk", VALUE + (int)FP_VALGRIND_EBK, IN_POINT},
                {"rb", VALUE + (int)FP_VALGRIND_RB, IN_POINT},
                {"wb", VALUE + (int)FP_VALGRIND_WB, IN_POINT},
                {"fs", FRAMES, IN_POINT},
                {"dhatFileVersion", VERSION, IN_FILE},
                {"mode", TEXT + (int)FP_VALGRIND_MODE, IN_FILE},
                {"cmd", TEXT + (int)FP_VALGRIND_CMD, IN_FILE},
                {"tu", TEXT + (int)FP_VALGRIND_TU, IN_FILE},
                {"bu", TEXT + (int)FP_VALGRIND_BU, IN_FILE},
                {"bksu", TEXT + (int)FP_VALGRIND_BKSU, IN_FILE},
                {"bklt", LIFETIMES, IN_FILE},
                {"bkacc", ACCESSES, IN_FILE},
                {"pid", PID, IN_FILE},
                {"te", END_TIME, IN_FILE},
                {"tg", PEAK_TIME, IN_FILE},
                {"pps", POINTS, IN_FILE},
                {"ftbl", TABLE, IN_FILE}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].depth == d->json.depth && fp_json_is(&d->json, keys[i].key)) return keys[i].code;
    return OTHER;
}

static uint32_t intern(struct fp_valgrind *d) {
    size_t n;
    const uint8_t *p = fp_json_plain(&d->json, &d->scratch, &n);
    return p ? fp_strings_intern(&d->texts, p, n < FP_NAME_MOST ? n : FP_NAME_MOST) : FP_NO_ID;
}

/* Reports an invalid number: an error or, when lenient, a point that is skipped. */
static int bad_number(struct fp_valgrind *d, struct fp_in *in, const char *what, const char *want, struct fp_err *err) {
    const struct fp_json *j = &d->json;
    d->bad = 1;
    if (d->lenient) return 0;
    return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, what, j->text,
                        j->token >= FP_JSON_STRING ? j->text_n : 0, want);
}

/* ---- fields of the file ---- */

static int field(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &d->json;
    const uint8_t key = d->path[IN_FILE];
    if (key >= TEXT && j->token == FP_JSON_STRING) {
        const uint32_t string = intern(d);
        if (string == FP_NO_ID) return fp_no_memory(err);
        d->text[key - TEXT] = string;
    }
    if (key == LIFETIMES) d->lifetimes = j->token == FP_JSON_WORD && j->text[0] == 't';
    if (key == ACCESSES) d->accesses = j->token == FP_JSON_WORD && j->text[0] == 't';
    int64_t *const number = key == VERSION     ? &d->version
                            : key == PID       ? &d->pid
                            : key == END_TIME  ? &d->end_time
                            : key == PEAK_TIME ? &d->peak_time
                                               : NULL;
    if (number && (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, number, NULL) || *number < 0)) {
        *number = -1;
        if (!d->lenient) return bad_number(d, in, "a field of the file", "a whole number", err);
    }
    if (key == VERSION && *number != 1 && *number != 2 && !d->lenient)
        return fp_fail_got(err, FP_E_MALFORMED, in->base + in->pos, "dhatFileVersion", FP_GOT_UNSIGNED,
                           (uint64_t)*number, "1 or 2", 0);
    return 0;
}

/* ---- points ---- */

int fp_valgrind_add(struct fp_valgrind *d, uint32_t stack, const int64_t *v, uint64_t at, struct fp_err *err) {
    struct fp_valgrind_sums sums = d->sums[stack];
    for (uint32_t k = 0; k < FP_VALGRIND_VALUES; k++) {
        if (!__builtin_add_overflow(sums.v[k], v[k], &sums.v[k])) continue;
        if (!d->lenient) return fp_fail(err, FP_E_OVERFLOW, at, "the sum of a stack's values is 2^63 or more");
        d->broken++;
        return 0;
    }
    sums.n++;
    sums.at = at;
    d->sums[stack] = sums;
    return 0;
}

/* Adds the point held, if any, to the sums of its stack. */
static int add_held(struct fp_valgrind *d, struct fp_err *err) {
    struct fp_valgrind_held *h = &d->held;
    if (!h->is_point) return 0;
    h->is_point = 0;
    const uint32_t stack = fp_strings_intern_hashed(&d->stacks, h->fs, h->n_fs * sizeof *h->fs, h->hash);
    if (stack == FP_NO_ID || fp_array_room(&d->sums, &d->cap_sums, (uint64_t)stack + 1, sizeof *d->sums))
        return fp_no_memory(err);
    while (d->n_sums <= stack) d->sums[d->n_sums++] = (struct fp_valgrind_sums){0};
    return fp_valgrind_add(d, stack, h->value, h->at, err);
}

/* Adds the held point to its sums and holds the current one.  Meanwhile its index slot is prefetched. */
static int hold(struct fp_valgrind *d, struct fp_err *err) {
    const uint32_t hash = fp_strings_hash(d->fs, d->n_fs * sizeof *d->fs);
    fp_strings_prefetch(&d->stacks, hash);
    const int status = add_held(d, err);
    if (status) return status;
    struct fp_valgrind_held *h = &d->held;
    uint32_t *const fs = h->fs, cap = h->cap_fs;
    h->fs = d->fs;
    h->cap_fs = d->cap_fs;
    h->n_fs = d->n_fs;
    d->fs = fs;
    d->cap_fs = cap;
    h->hash = hash;
    h->at = d->at;
    memcpy(h->value, d->value, sizeof h->value);
    h->is_point = 1;
    return 0;
}

static int end_point(struct fp_valgrind *d, struct fp_err *err) {
    const uint32_t needed = 1u << FP_VALGRIND_TB | 1u << FP_VALGRIND_TBK;
    d->points++;
    if (d->bad || (d->has & needed) != needed || !d->has_frames) {
        if (!d->lenient) {
            fp_fail(err, FP_E_MALFORMED, d->at, "a point is incomplete");
            err->want = "\"tb\", \"tbk\" and \"fs\"";
            return FP_E_MALFORMED;
        }
        d->broken++;
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
static int frame_index(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &d->json;
    int64_t index;
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, &index, NULL) || index < 0 ||
        index >= FP_NO_ID)
        return bad_number(d, in, "a frame of a point", "an index of the frame table", err);
    if (fp_array_room(&d->fs, &d->cap_fs, (uint64_t)d->n_fs + 1, sizeof *d->fs)) return fp_no_memory(err);
    d->fs[d->n_fs++] = (uint32_t)index;
    return 0;
}

/* ---- points as Valgrind prints them: without the lexer ---- */

/* Keys in the order in which Valgrind prints them, with quotes and colon: n bytes. */
static const struct value_name {
    char text[8];
    uint8_t n, value;
} value_names[] = {
    {"\"tb\":", 5, FP_VALGRIND_TB},   {"\"tbk\":", 6, FP_VALGRIND_TBK}, {"\"tl\":", 5, FP_VALGRIND_TL},
    {"\"mb\":", 5, FP_VALGRIND_MB},   {"\"mbk\":", 6, FP_VALGRIND_MBK}, {"\"gb\":", 5, FP_VALGRIND_GB},
    {"\"gbk\":", 6, FP_VALGRIND_GBK}, {"\"eb\":", 5, FP_VALGRIND_EB},   {"\"ebk\":", 6, FP_VALGRIND_EBK},
    {"\"rb\":", 5, FP_VALGRIND_RB},   {"\"wb\":", 5, FP_VALGRIND_WB},
};

/* The code of a key.  *next is the value that usually follows the last one. */
static uint8_t value_key(const uint8_t *key, size_t n, uint32_t *next) {
    if (n == 2 && key[0] == 'f' && key[1] == 's') return FRAMES;
    for (uint32_t tried = 0; tried < FP_VALGRIND_VALUES; tried++) {
        const struct value_name *const name = &value_names[(*next)++];
        if (*next == FP_VALGRIND_VALUES) *next = 0;
        if (n + 3 == name->n && !memcmp(name->text + 1, key, n)) return (uint8_t)(VALUE + name->value);
    }
    return OTHER;
}

static const uint8_t *skip_blanks(const uint8_t *p) {
    while (*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

/* A list of numbers, after its bracket and before `brace`; its end, or NULL.  `keep`: they are the point's frames. */
static const uint8_t *plain_list(struct fp_valgrind *d, const uint8_t *p, const uint8_t *brace, int keep) {
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
static const uint8_t *expected_value(struct fp_valgrind *d, const uint8_t *p, uint32_t *next) {
    const struct value_name *const name = &value_names[*next];
    const uint32_t n = name->n;
    uint64_t v;
    if (fp_u32(p) != fp_u32((const uint8_t *)name->text) || p[n - 2] != '"' || p[n - 1] != ':') return NULL;
    if (!(p = fp_decimal8(p + n, &v))) return NULL;
    d->value[name->value] = (int64_t)v;
    d->has |= 1u << name->value;
    if (++*next == FP_VALGRIND_VALUES) *next = 0;
    return p;
}

/* A key and its number or list of numbers; their end, or NULL. */
static const uint8_t *plain_member(struct fp_valgrind *d, const uint8_t *p, const uint8_t *brace, uint32_t *next) {
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
        if (code == FRAMES) d->n_fs = 0;
        d->has_frames |= code == FRAMES;
        return plain_list(d, p + 1, brace, code == FRAMES);
    }
    if (code == FRAMES || !(p = fp_decimal8(p, &v))) return NULL;
    if (code >= VALUE) {
        d->value[code - VALUE] = (int64_t)v;
        d->has |= 1u << (code - VALUE);
    }
    return p;
}

/* Reads a point that is complete in the window and consists of numbers and lists of them: ten times as fast as token by
 * token.  Its end; NULL: it has another form, which the lexer reads, and reports if it is wrong.  All loops stop at the
 * brace at the end. */
static const uint8_t *plain_point(struct fp_valgrind *d, const uint8_t *p, const uint8_t *end) {
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

static void begin_point(struct fp_valgrind *d) {
    memset(d->value, 0, sizeof d->value);
    d->has = d->n_fs = 0;
    d->has_frames = d->bad = 0;
}

static int point_token(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &d->json;
    if (j->depth == IN_LIST && j->token != FP_JSON_ARRAY_END) {
        d->at = in->base + in->pos;
        begin_point(d);
        const uint8_t *const end = j->token == FP_JSON_OBJECT ? plain_point(d, in->p + in->pos, in->p + in->n) : NULL;
        if (end) {
            fp_json_whole(j, (size_t)(end - in->p));
            return end_point(d, err);
        }
        begin_point(d);
        if (j->token == FP_JSON_OBJECT) return 0;
        d->broken += (uint64_t)d->lenient;
        return d->lenient ? 0 : fp_fail(err, FP_E_MALFORMED, d->at, "a point is not an object");
    }
    if (j->depth < IN_POINT || j->kinds[2] != '{') return 0;
    const uint8_t key = d->path[IN_POINT];
    if (j->depth == IN_POINT && j->token == FP_JSON_OBJECT_END) return end_point(d, err);
    if (j->depth == IN_POINT && key == FRAMES) {
        d->n_fs = 0;
        d->has_frames = j->token == FP_JSON_ARRAY;
    }
    if (j->depth == IN_FRAMES && key == FRAMES && j->kinds[3] == '[' && j->token != FP_JSON_ARRAY_END)
        return frame_index(d, in, err);
    if (j->depth != IN_POINT || key < VALUE) return 0;
    int64_t value;
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, &value, NULL) || value < 0)
        return bad_number(d, in, "a value of a point", "a number from 0 to 2^63 - 1", err);
    d->value[key - VALUE] = value;
    d->has |= 1u << (key - VALUE);
    return 0;
}

/* ---- the frame table ---- */

static int table_token(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &d->json;
    if (j->depth != IN_LIST || j->token == FP_JSON_ARRAY_END) return 0;
    uint32_t string = 0;
    if (j->token == FP_JSON_STRING)
        string = intern(d);
    else if (!d->lenient)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "an entry of the frame table is not a string");
    if (string == FP_NO_ID || fp_array_room(&d->table, &d->cap_table, (uint64_t)d->n_table + 1, sizeof *d->table))
        return fp_no_memory(err);
    d->has_empty |= !string;
    d->table[d->n_table++] = string;
    return 0;
}

uint32_t fp_valgrind_n_table(const struct fp_valgrind *d) {
    return d->n_table;
}

uint32_t fp_valgrind_table(const struct fp_valgrind *d, uint32_t i) {
    return d->table[i];
}

int fp_valgrind_place(struct fp_valgrind *d, uint32_t string, uint64_t address, uint32_t function, uint32_t line) {
    if (fp_array_zeroed(&d->places, &d->cap_places, d->texts.n, sizeof *d->places)) return FP_E_NOMEM;
    d->places[string] = (struct fp_valgrind_place){.address = address, .function = function, .line = line};
    const uint32_t id = fp_table_intern(&d->addresses, (uint32_t[]){(uint32_t)address, (uint32_t)(address >> 32)});
    if (id == FP_NO_ID || fp_array_zeroed(&d->text_at, &d->cap_text_at, (uint64_t)id + 1, sizeof *d->text_at))
        return FP_E_NOMEM;
    d->text_at[id] = d->text_at[id] && d->text_at[id] != string ? FP_NO_ID : string;
    return 0;
}

int fp_valgrind_is_alone(const struct fp_valgrind *d, uint32_t string) {
    const uint64_t address = d->places[string].address;
    const uint32_t id = fp_table_find(&d->addresses, (uint32_t[]){(uint32_t)address, (uint32_t)(address >> 32)});
    return !address || d->text_at[id] == string;
}

/* ---- the text ---- */

static int token(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &d->json;
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_OBJECT_END)
        return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "the file is not a JSON object");
    if (j->token == FP_JSON_KEY && j->depth < sizeof d->path) {
        d->path[j->depth] = key_of(d);
        return 0;
    }
    const int in_list = j->depth >= IN_LIST && j->kinds[1] == '[';
    if (j->depth == IN_FILE) {
        d->seen_points |= d->path[IN_FILE] == POINTS && j->token == FP_JSON_ARRAY;
        return field(d, in, err);
    }
    if (in_list && d->path[IN_FILE] == POINTS) return point_token(d, in, err);
    return in_list && d->path[IN_FILE] == TABLE ? table_token(d, in, err) : 0;
}

/* Checks the complete file: required keys, indices of frames. */
static int check(const struct fp_valgrind *d, struct fp_err *err) {
    if (d->lenient) return 0;
    if (d->version < 0) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no dhatFileVersion");
    if (!d->seen_points) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no program points (pps)");
    if (d->highest_at && d->highest >= d->n_table) /* an offset of 0: no point has frames */
        return fp_fail_got(err, FP_E_MALFORMED, d->highest_at, "a frame of a point", FP_GOT_UNSIGNED, d->highest,
                           "less than %", d->n_table);
    return 0;
}

int fp_valgrind_feed(struct fp_valgrind *d, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &d->json;
    while (!d->over) {
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status < 0 && d->lenient) {
            d->bad_end = 1;
            d->over = 1;
            break;
        }
        if (status < 0) return status;
        if (j->token == FP_JSON_END) {
            d->over = 1;
            break;
        }
        status = token(d, in, err);
        if (status) return status;
        fp_json_take(j, in);
    }
    in->pos = in->n;
    if (!in->eof) return FP_MORE;
    int status = add_held(d, err);
    if (!status) status = check(d, err);
    return status ? status : FP_ASK;
}
