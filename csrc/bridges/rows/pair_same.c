/* The functions that are the same on both sides, and those that resemble one of the other side.
 *
 *     old                    new
 *     f  a.c  app            f  a.c  app          equal: paired
 *     g  /old/b.c  app       g  /new/b.c  app     same name and base name of the file: left
 *     h  c.c  app            h  d.c  app          neither paired nor left, unless some h has no file
 */
#include <stdlib.h>
#include <string.h>

#include "bridges/rows/pair.h"
#include "core/array.h"

enum { OLD = 1, NEW = 2, BOTH = 3, NO_FILE = 4, ALONE = 8, LONGEST = 4096 /* bytes of a path compared */ };

/* Rows of words, and the sides of each. */
struct pair_sides {
    struct fp_table rows;
    uint8_t *marks;
    uint32_t cap;
};

struct pair_same {
    uint8_t *names; /* by string: its sides; whether a function of one side alone has it, or one without a file */
    struct pair_sides functions; /* object, file, name */
    uint32_t *first;             /* by row of `functions`: the first function of the new side */
    uint32_t cap_first;
    struct pair_sides places; /* name, hash of the file's base name */
    uint32_t *bases;          /* by string: that hash, 0: not computed yet */
};

/* The row's id after marking it.  FP_NO_ID when memory ran out. */
static uint32_t mark(struct pair_sides *s, const uint32_t *row, uint8_t bits) {
    const uint32_t id = fp_table_intern(&s->rows, row);
    if (id == FP_NO_ID || fp_array_zeroed(&s->marks, &s->cap, (uint64_t)id + 1, 1)) return FP_NO_ID;
    s->marks[id] |= bits;
    return id;
}

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

static int is_no_file(const struct fp_model *m, uint32_t path) {
    size_t n;
    const uint8_t *p = fp_string(&m->strings, path, &n);
    return n == 0 || (n == 3 && memcmp(p, "???", 3) == 0);
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

struct pair_key {
    uint32_t object, file, name;
};

static struct pair_key key_of(const struct fp_pair *p, uint32_t function) {
    const uint32_t *row = fp_table_row(&p->model->functions, function);
    return (struct pair_key){row[FP_FUNCTION_OBJECT], row[FP_FUNCTION_FILE], row[FP_FUNCTION_NAME]};
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
        s->names[key.name] |= sides | (sides == BOTH ? 0 : ALONE) | (is_no_file(p->model, key.file) ? NO_FILE : 0);
    }
    return FP_DONE;
}

/* Collects the functions of names that occur on both sides, unless all of these do. */
static int collect_functions(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t i = 1; i < p->n_functions; i++) {
        if (!p->functions[i]) continue;
        const struct pair_key key = key_of(p, i);
        if ((s->names[key.name] & (BOTH | ALONE)) != (BOTH | ALONE)) continue;
        const uint32_t id = mark(&s->functions, (uint32_t[]){key.object, key.file, key.name}, p->functions[i]);
        if (id == FP_NO_ID || fp_array_zeroed(&s->first, &s->cap_first, (uint64_t)id + 1, sizeof *s->first))
            return FP_E_NOMEM;
        if (p->functions[i] & NEW && !s->first[id]) s->first[id] = i;
    }
    return FP_DONE;
}

/* Pairs equal functions; others that may have a counterpart are left. */
static int pair(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t i = 1; i < p->n_functions; i++) {
        if (!p->functions[i] || p->functions[i] == BOTH) continue;
        const struct pair_key key = key_of(p, i);
        if ((s->names[key.name] & BOTH) == BOTH) {
            const uint32_t id = fp_table_find(&s->functions.rows, (uint32_t[]){key.object, key.file, key.name});
            if (s->functions.marks[id] == BOTH) {
                if (p->functions[i] == OLD && fp_pair_function(p, i, s->first[id])) return FP_E_NOMEM;
                continue;
            }
        } else if (!like_address(p->model, key.name)) {
            continue;
        }
        p->left[i] = p->functions[i];
        if (mark(&s->places, (uint32_t[]){key.name, base_hash(p->model, s, key.file)}, p->left[i]) == FP_NO_ID)
            return FP_E_NOMEM;
    }
    return FP_DONE;
}

/* Of functions that are left, those without a counterpart by name and base name of the file stay only if their name
 * suffices. */
static void drop(struct fp_pair *p, struct pair_same *s) {
    for (uint32_t i = 1; i < p->n_functions; i++) {
        if (!p->left[i]) continue;
        const struct pair_key key = key_of(p, i);
        const uint32_t place = fp_table_find(&s->places.rows, (uint32_t[]){key.name, base_hash(p->model, s, key.file)});
        if (s->places.marks[place] != BOTH && !(s->names[key.name] & NO_FILE) && !like_address(p->model, key.name))
            p->left[i] = 0;
    }
}

int fp_pair_same(struct fp_pair *p, struct fp_err *err) {
    struct pair_same s;
    memset(&s, 0, sizeof s);
    s.names = calloc(p->model->strings.n, 1);
    s.bases = calloc(p->model->strings.n, sizeof *s.bases);
    int status = s.names && s.bases ? FP_DONE : FP_E_NOMEM;
    if (fp_table_init(&s.functions.rows, 3) || fp_table_init(&s.places.rows, 2) ||
        fp_array_zeroed(&p->left, &p->n_left, p->n_functions, 1) ||
        fp_array_zeroed(&p->objects, &p->n_objects, p->model->objects.n, 1))
        status = FP_E_NOMEM;
    if (status == FP_DONE) status = collect(p, &s, err);
    if (status == FP_DONE) status = collect_functions(p, &s);
    if (status == FP_DONE) status = pair(p, &s);
    if (status == FP_DONE) drop(p, &s);
    fp_table_clear(&s.functions.rows);
    fp_table_clear(&s.places.rows);
    free(s.functions.marks);
    free(s.places.marks);
    free(s.first);
    free(s.names);
    free(s.bases);
    return status == FP_E_NOMEM ? fp_fail(err, FP_E_NOMEM, 0, "the functions of two profiles") : status;
}
