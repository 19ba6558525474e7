#include "bridges/rows/focus.h"

#include "bridges/rows/transform.h"

#define OUTSIDE UINT32_MAX
enum { BLOCK = 1024 }; /* rows moved together */

struct fp_focus *fp_focus_new(struct fp_model *model) {
    struct fp_focus *f = fp_made(sizeof *f);
    f->model = model;
    fp_table_init(&f->begun, 2);
    return f;
}

void fp_focus_free(struct fp_focus *f) {
    fp_table_clear(&f->begun);
    fp_buf_free(&f->scratch);
    FP_FREE(f->path, f->stack_to, f->led, f->callees, f->chain, f->begins, f->checked, f);
}

int fp_focus_path(struct fp_focus *f, const uint8_t *name, size_t n) {
    FP_PUSH(f->path, f->n_path, f->cap_path) = fp_strings_intern(&f->model->strings, name, n);
    return FP_DONE;
}

/* 1 + the names that lead to a function below what `led` such names lead to; OUTSIDE. */
static uint32_t led_by(const struct fp_focus *f, uint32_t led, uint32_t function) {
    if (!f->n_path) return function < f->functions.n && f->functions.keep[function] ? 2 : led;
    const uint32_t name = fp_table_row(&f->model->functions, function)[FP_FUNCTION_NAME];
    return led != OUTSIDE && name == f->path[led - 1] ? led + 1 : OUTSIDE;
}

/* The same for a frame without a function, which is named by its address. */
static uint32_t led_by_address(struct fp_focus *f, uint32_t led, uint32_t frame) {
    if (!f->n_path) return frame < f->frames.n && f->frames.keep[frame] ? 2 : led;
    if (led == OUTSIDE) return OUTSIDE;
    size_t n;
    const uint8_t *name = fp_string(&f->model->strings, f->path[led - 1], &n);
    fp_frame_text(f->model, frame, &f->scratch);
    return f->scratch.n == n && !memcmp(f->scratch.p, name, n) ? led + 1 : OUTSIDE;
}

/* The frame that becomes a root, of a frame below a caller that is not in focus; FP_NO_ID: none.  Advances *led. */
static uint32_t root_of(struct fp_focus *f, uint32_t frame, uint32_t *led) {
    struct fp_model *m = f->model;
    const uint32_t *row = fp_table_row(&m->frames, frame), mapping = row[FP_FRAME_MAPPING], flags = row[FP_FRAME_FLAGS];
    const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
    const uint32_t whole = f->n_path ? f->n_path + 1 : 2;
    uint32_t line = row[FP_FRAME_LINES], n = 0;
    if (!line) {
        *led = led_by_address(f, *led, frame);
        return *led == whole ? frame : FP_NO_ID;
    }
    for (; line; line = fp_table_row(&m->lines, line)[FP_LINE_OUTER]) FP_PUSH(f->chain, n, f->cap_chain) = line;
    uint32_t lines = 0; /* from the root on */
    for (int is_outermost = 1; n--; is_outermost = 0) {
        const uint32_t *of = fp_table_row(&m->lines, f->chain[n]);
        const uint32_t function = of[FP_LINE_FUNCTION], at = of[FP_LINE_LINE], column = of[FP_LINE_COLUMN];
        if (*led != whole) *led = led_by(f, *led, function);
        if (*led != whole) continue;
        lines = is_outermost ? f->chain[0] : fp_model_line(m, function, at, column, lines);
        if (is_outermost) break; /* all of them stay */
    }
    return lines ? fp_model_frame(m, mapping, address, flags, lines) : FP_NO_ID;
}

/* Sets what a stack with this innermost frame becomes, below a caller that is not in focus.  Many stacks may have the
 * same frame, of many inlined functions. */
static void begin(struct fp_focus *f, uint32_t stack, uint32_t frame, uint32_t led) {
    const uint32_t n = f->begun.n, row = fp_table_intern(&f->begun, (const uint32_t[]){frame, led});
    if (f->begun.n > n) {
        fp_array_room(&f->begins, &f->cap_begins, 2 * ((uint64_t)row + 1), sizeof *f->begins);
        const uint32_t root = root_of(f, frame, &led);
        f->begins[2 * (size_t)row] = led;
        f->begins[2 * (size_t)row + 1] = root;
    }
    const uint32_t root = f->begins[2 * (size_t)row + 1];
    f->led[stack] = f->begins[2 * (size_t)row];
    f->stack_to[stack] = root != FP_NO_ID ? fp_model_stack(f->model, 0, root) : 0;
}

static int check_frame(struct fp_focus *f, uint32_t frame, struct fp_err *err) {
    if (frame < f->cap_checked && f->checked[frame]) return FP_DONE;
    FP_TRY(fp_transform_check_frame(f->model, frame, NULL, 0, err));
    *FP_AT(f->checked, f->cap_checked, frame) = 1;
    return FP_DONE;
}

/* Finds what a stack becomes, after its callers. */
static int learn(struct fp_focus *f, uint32_t stack, struct fp_err *err) {
    struct fp_model *m = f->model;
    int64_t n = fp_transform_unknown(m, stack, f->led, f->cap_led, &f->callees, &f->cap_callees, err);
    if (n < 0) return FP_E_MALFORMED;
    fp_array_zeroed(&f->led, &f->cap_led, (uint64_t)stack + 1, sizeof *f->led);
    fp_array_zeroed(&f->stack_to, &f->cap_stack_to, (uint64_t)stack + 1, sizeof *f->stack_to);
    f->led[0] = 1;
    while (n-- > 0) {
        const uint32_t at = f->callees[n], *row = fp_table_row(&m->stacks, at), parent = row[FP_STACK_PARENT];
        const uint32_t frame = row[FP_STACK_FRAME];
        FP_TRY(check_frame(f, frame, err));
        f->led[at] = f->led[parent];
        if (f->stack_to[parent])
            f->stack_to[at] = fp_model_stack(m, f->stack_to[parent], frame);
        else
            begin(f, at, frame, f->led[parent]);
    }
    return FP_DONE;
}

int fp_focus_stacks(struct fp_focus *f, struct fp_batch *b, struct fp_err *err) {
    if (f->n_emptied != f->model->n_emptied) {
        f->n_emptied = f->model->n_emptied;
        if (f->cap_led) memset(f->led, 0, f->cap_led * sizeof *f->led);
    }
    const uint32_t end = b->n;
    uint32_t to = 0;
    for (uint32_t i = 0; i < end; i += BLOCK) {
        uint8_t keep[BLOCK];
        const uint32_t n = end - i < BLOCK ? end - i : BLOCK;
        for (uint32_t k = 0; k < n; k++) {
            FP_TRY(learn(f, b->stack[i + k], err));
            keep[k] = f->stack_to[b->stack[i + k]] != 0;
            if (keep[k])
                b->stack[i + k] = f->stack_to[b->stack[i + k]];
            else
                f->left_out += fp_batch_samples(b, i + k);
        }
        to = fp_batch_keep(b, to, i, keep, n);
    }
    b->n = to;
    return FP_DONE;
}
