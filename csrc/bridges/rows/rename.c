#include "bridges/rows/rename.h"

static struct fp_rename_strings *strings_of(struct fp_rename *r, int what) {
    if (what == FP_RENAME_OBJECT) return &r->objects;
    return what == FP_RENAME_FUNCTION ? &r->names : &r->files;
}

/* The kind of name that a string is, one bit; 0 for other texts. */
static int kind_of(enum fp_remap_role role) {
    if (role == FP_REMAP_NAME) return FP_RENAME_FUNCTION;
    if (role == FP_REMAP_OBJECT) return FP_RENAME_OBJECT;
    return role == FP_REMAP_TEXT ? 0 : FP_RENAME_FILE;
}

/* Replaces a string that names a function, file or object. */
static int rename_string(void *arg, enum fp_remap_role role, uint32_t *id, struct fp_err *err) {
    struct fp_rename *r = arg;
    const int what = kind_of(role);
    struct fp_rename_strings *t = strings_of(r, what);
    if (!(r->what & what)) return 0;
    if (*id >= r->model->strings.n) return fp_unknown_id(err, "a name", *id, r->model->strings.n);
    fp_array_zeroed(&t->to, &t->cap, (uint64_t)*id + 1, sizeof *t->to);
    if (!t->to[*id]) {
        r->request = what;
        r->string = *id;
        r->text = fp_string(&r->model->strings, *id, &r->text_n);
        return FP_NEEDS;
    }
    *id = t->to[*id] - 1;
    return 0;
}

static void note_function(void *arg, uint32_t from, uint32_t to) {
    struct fp_rename *r = arg;
    fp_array_room(&r->made, &r->cap_made, (uint64_t)r->n_made + 2, sizeof *r->made);
    r->made[r->n_made++] = from;
    r->made[r->n_made++] = to;
}

struct fp_rename *fp_rename_new(struct fp_model *model, int what) {
    struct fp_rename *r = fp_made(sizeof *r);
    r->model = model;
    r->what = what;
    r->ids = fp_have(fp_remap_new_hooked(
        model, (struct fp_remap_hooks){.arg = r, .string = rename_string, .function = note_function}));
    return r;
}

void fp_rename_free(struct fp_rename *r) {
    fp_remap_free(r->ids);
    FP_FREE(r->made, r->names.to, r->files.to, r->objects.to, r);
}

int fp_rename_answer(struct fp_rename *r, const uint8_t *p, size_t n) {
    const uint32_t to = fp_strings_intern(&r->model->strings, p, n);
    strings_of(r, r->request)->to[r->string] = to + 1;
    return 0;
}

int fp_rename_batch(struct fp_rename *r, struct fp_batch *b, struct fp_err *err) {
    return fp_remap_batch(r->ids, b, err);
}
