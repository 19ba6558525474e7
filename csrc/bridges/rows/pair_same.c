/* The functions that are the same on both sides, and those that resemble one of the other side.
 *
 *     old                    new
 *     f  a.c  app            f  a.c  app          equal: paired
 *     g  /old/b.c  app       g  /new/b.c  app     same name and base name of the file: left
 *     h  c.c  app            h  d.c  app          neither paired nor left, unless some h has no file
 *
 * Lines move from build to build.  Of several functions with the same object, file and name, those of the same line are
 * paired, then the others in the order of their lines if they are as many on both sides.
 */
#include "bridges/rows/pair.h"

enum {
    OLD = 1,
    NEW = 2,
    BOTH = 3,
    NO_FILE = 4,
    ALONE = 8,
    ADDRESS = 16,
    LONGEST = 4096 /* bytes of a path compared */
};

/* An object, file and name. */
struct pair_row {
    uint32_t first;   /* the first function of the new side */
    uint32_t line[2]; /* of a function of each side */
    uint8_t sides;
    uint8_t has_lines; /* a side has functions of several lines */
};

/* A function of a row that has lines. */
struct pair_member {
    uint32_t row, line, function;
};

struct pair_same {
    uint8_t *names; /* by string: its sides; whether a function of one side alone has it, or one without a file; whether
                       it is like an address */
    /* by hash of a key, the sides of all keys that have it: if a side is missing, no other function has the key.  Most
     * functions without a counterpart need no look-up in a table */
    uint8_t *seen;
    uint64_t seen_mask;
    uint32_t n_alone;     /* functions of one side alone */
    uint32_t *row_of;     /* by function: its row, 0: none */
    struct pair_row *own; /* by row */
    uint32_t cap_own;
    struct pair_member *members;
    uint32_t n_members, cap_members;
    uint32_t *bases; /* by string: the hash of the base name of a path, 0: not computed yet */
};

/* A hash of the base name of a path, which many functions share. */
static uint32_t base_hash(const struct fp_model *m, struct pair_same *s, uint32_t path) {
    if (s->bases[path]) return s->bases[path];
    size_t n;
    const uint8_t *p = fp_string(&m->strings, path, &n);
    size_t start = n;
    const size_t least = n > LONGEST ? n - LONGEST : 0;
    while (start > least && p[start - 1] != '/' && p[start - 1] != '\\') start--;
    return s->bases[path] = (uint32_t)fp_hash_bytes(p + start, n - start) | 1;
}

/* As fastprof/core/unknown_names.py. */
static int is_no_file(const struct fp_model *m, uint32_t path) {
    return !path || fp_string_is(&m->strings, path, "???");
}

/* Whether a name may be an address, as 0x1136 and [app-1.4+0x1136], of which versions are ignored.  A group's labels,
 * which end in 0x1f, may precede it. */
static int like_address(const struct fp_model *m, uint32_t name) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, name, &n);
    size_t at = n && memchr(p, 0x1f, n) ? n : 0; /* few names have labels */
    while (at > 0 && p[at - 1] != 0x1f) at--;
    return at < n && (p[at] == '[' || p[at] == '0');
}

/* Whether a name that is like an address is one. */
static int is_address(const struct fp_model *m, uint32_t name) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, name, &n);
    if (n >= LONGEST || memchr(p, 0x1f, n)) return 0;
    if (n && p[n - 1] == ']') n--;
    size_t at = n;
    while (at > 0 && fp_nibble(p[at - 1]) < 16) at--;
    if (at == n || at < 2 || (p[at - 1] | 32) != 'x' || p[at - 2] != '0') return 0;
    return at == 2 || (p[0] == '[' && p[at - 3] == '+');
}

struct pair_key {
    uint32_t object, file, name;
};

static struct pair_key key_of(const struct fp_pair *p, uint32_t function) {
    const uint32_t *row = fp_table_row(&p->model->functions, function);
    return (struct pair_key){row[FP_FUNCTION_OBJECT], row[FP_FUNCTION_FILE], row[FP_FUNCTION_NAME]};
}

/* Where the sides of a function's object, file and name are. */
static uint8_t *seen_key(const struct pair_same *s, struct pair_key key) {
    const uint64_t half = (uint64_t)key.object << 32 | key.file;
    return &s->seen[fp_mix(half, key.name) & s->seen_mask];
}

/* Where the sides of a function's name and the base name of its file are; elsewhere in each round. */
static uint8_t *seen_place(const struct fp_model *m, struct pair_same *s, struct pair_key key, uint32_t round) {
    return &s->seen[fp_mix((uint64_t)round << 32 | base_hash(m, s, key.file), key.name) & s->seen_mask];
}

/* Collects names and objects. */
static int collect(struct fp_pair *p, struct pair_same *s, struct fp_err *err) {
    const uint32_t n_objects = p->model->objects.n, n_strings = p->model->strings.n;
    for (uint32_t i = 1; i < p->n_functions; i++) {
        const uint8_t sides = p->functions[i];
        if (!sides) continue;
        const struct pair_key key = key_of(p, i);
        if (key.object >= n_objects) return fp_unknown_id(err, "an object", key.object, n_objects);
        if (key.name >= n_strings) return fp_unknown_id(err, "the name of a function", key.name, n_strings);
        if (key.file >= n_strings) return fp_unknown_id(err, "the name of a file", key.file, n_strings);
        p->objects[key.object] |= sides;
        if (!s->names[key.name] && like_address(p->model, key.name)) s->names[key.name] = ADDRESS;
        s->names[key.name] |= sides | (sides == BOTH ? 0 : ALONE) | (is_no_file(p->model, key.file) ? NO_FILE : 0);
        s->n_alone += sides != BOTH;
    }
    return FP_DONE;
}

/* Whether the functions of this name have to be compared: it occurs on both sides, and some function on one alone. */
static int is_compared(const struct pair_same *s, uint32_t name) {
    return (s->names[name] & (BOTH | ALONE)) == (BOTH | ALONE);
}

/* Gives a row to each function that may be equal to one of the other side. */
static void collect_functions(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t i = 1; i < p->n_functions; i++) {
        if (!p->functions[i]) continue;
        const struct pair_key key = key_of(p, i);
        if (is_compared(s, key.name)) *seen_key(s, key) |= p->functions[i];
    }
    for (uint32_t i = 1; i < p->n_functions; i++) {
        if (!p->functions[i]) continue;
        const struct pair_key key = key_of(p, i);
        if (!is_compared(s, key.name) || *seen_key(s, key) != BOTH) continue;
        const uint32_t n = p->rows.n, id = fp_table_intern(&p->rows, (uint32_t[]){key.object, key.file, key.name});
        fp_scratch_room(&s->own, &s->cap_own, (uint64_t)id + 1, sizeof *s->own);
        if (id == n) s->own[id] = (struct pair_row){0};
        s->row_of[i] = id;
        struct pair_row *row = &s->own[id];
        const uint32_t line = fp_same_function(p->model, i).line;
        for (uint8_t side = 0; side < 2; side++) {
            if (!(p->functions[i] & 1u << side)) continue;
            row->has_lines |= row->sides & 1u << side && row->line[side] != line;
            row->line[side] = line;
        }
        row->sides |= p->functions[i];
        if (p->functions[i] & NEW && !row->first) row->first = i;
    }
}

FP_ORDER(compare_members, struct pair_member, row, line, function)

/* The end of the members from `at` on with the same row and line; *sides, and *to, the first of the new side. */
static uint32_t end_of_line(const struct fp_pair *p, const struct pair_same *s, uint32_t at, uint8_t *sides,
                            uint32_t *to) {
    const struct pair_member *first = &s->members[at];
    *sides = 0;
    *to = 0;
    for (; at < s->n_members && s->members[at].row == first->row && s->members[at].line == first->line; at++) {
        const uint32_t function = s->members[at].function;
        *sides |= p->functions[function];
        if (p->functions[function] & NEW && !*to) *to = function;
    }
    return at;
}

static void replace_olds(struct fp_pair *p, const struct pair_same *s, uint32_t from, uint32_t end, uint32_t to) {
    for (; from < end; from++)
        if (p->functions[s->members[from].function] == OLD) fp_pair_function(p, s->members[from].function, to);
}

/* Pairs the members from `at` to `end`, which have the same row. */
static void pair_lines(struct fp_pair *p, const struct pair_same *s, uint32_t at, uint32_t end) {
    uint32_t n[2] = {0, 0}, to, next = at;
    uint8_t sides;
    for (uint32_t i = at; i < end;) {
        const uint32_t after = end_of_line(p, s, i, &sides, &to);
        if (sides != BOTH)
            n[sides == NEW]++;
        else
            replace_olds(p, s, i, after, to);
        i = after;
    }
    for (uint32_t i = at; i < end && n[0] == n[1];) {
        const uint32_t after = end_of_line(p, s, i, &sides, &to);
        if (sides == OLD) {
            do next = end_of_line(p, s, next, &sides, &to);
            while (sides != NEW);
            replace_olds(p, s, i, after, to);
        }
        i = after;
    }
}

static void pair_members(struct fp_pair *p, struct pair_same *s) {
    if (s->n_members) qsort(s->members, s->n_members, sizeof *s->members, compare_members);
    for (uint32_t at = 0, end; at < s->n_members; at = end) {
        for (end = at; end < s->n_members && s->members[end].row == s->members[at].row;) end++;
        pair_lines(p, s, at, end);
    }
}

/* Pairs equal functions; others that may have a counterpart are left. */
static void pair(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t i = 1; i < p->n_functions; i++) {
        const uint32_t id = s->row_of[i];
        const struct pair_row *row = id ? &s->own[id] : NULL;
        if (row && row->sides == BOTH && row->has_lines) {
            fp_scratch_room(&s->members, &s->cap_members, (uint64_t)s->n_members + 1, sizeof *s->members);
            s->members[s->n_members++] = (struct pair_member){id, fp_same_function(p->model, i).line, i};
            continue;
        }
        if (!p->functions[i] || p->functions[i] == BOTH) continue;
        if (row && row->sides == BOTH) {
            if (p->functions[i] == OLD) fp_pair_function(p, i, row->first);
            continue;
        }
        const struct pair_key key = key_of(p, i);
        if ((s->names[key.name] & BOTH) != BOTH && !(s->names[key.name] & ADDRESS)) continue;
        const int of_build = fp_table_row(&p->model->objects, key.object)[FP_OBJECT_BUILD_ID] != 0;
        if (s->names[key.name] & ADDRESS && !of_build && is_address(p->model, key.name)) continue;
        p->left[p->n_left++] = i;
    }
    pair_members(p, s);
}

/* Of functions that are left, those without a counterpart by name and base name of the file stay only if their name
 * suffices.  A second round, with few functions, finds those that only share the hash of another one. */
static void drop(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t round = 0; round < 2; round++) {
        memset(s->seen, 0, s->seen_mask + 1);
        for (uint32_t k = 0; k < p->n_left; k++)
            *seen_place(p->model, s, key_of(p, p->left[k]), round) |= p->functions[p->left[k]];
        uint32_t n = 0;
        for (uint32_t k = 0; k < p->n_left; k++) {
            const struct pair_key key = key_of(p, p->left[k]);
            if (*seen_place(p->model, s, key, round) == BOTH || s->names[key.name] & (NO_FILE | ADDRESS))
                p->left[n++] = p->left[k];
        }
        p->n_left = n;
    }
}

/* Allocates what comes after `collect`. */
static void begin(struct fp_pair *p, struct pair_same *s) {
    uint64_t n = 1024;
    while (n < 16 * (uint64_t)s->n_alone) n *= 2;
    s->seen_mask = n - 1;
    s->seen = fp_scratch((size_t)n, 1);
    s->row_of = fp_scratch((size_t)p->n_functions + 1, sizeof *s->row_of);
    free(p->left);
    p->n_left = 0;
    p->left = NULL;
    p->left = fp_have(malloc(((size_t)s->n_alone + 1) * sizeof *p->left));
    fp_table_clear(&p->rows);
    fp_table_init(&p->rows, 3);
}

int fp_pair_same(struct fp_pair *p, struct fp_err *err) {
    struct pair_same s = {.names = fp_scratch(p->model->strings.n, 1)};
    s.bases = fp_scratch(p->model->strings.n, sizeof *s.bases);
    fp_array_zeroed(&p->objects, &p->n_objects, p->model->objects.n, 1);
    const int status = collect(p, &s, err);
    if (status != FP_DONE) return status;
    begin(p, &s);
    collect_functions(p, &s);
    pair(p, &s);
    drop(p, &s);
    fp_table_clear(&p->rows);
    return FP_DONE;
}
