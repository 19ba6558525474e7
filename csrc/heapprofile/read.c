#include "heapprofile/read.h"

enum { FILE_ = 1, NODE, CALL, CHILDREN, SAMPLES, SAMPLE };
enum { NAME = 1, URL, LINE, COLUMN, SIZE, LINE_FROM_1, COLUMN_FROM_1 };

static const struct fp_json_row rows_of_file[] = {
    FP_JSON_EACH(0, .object = FILE_),
    FP_JSON_KEY(FILE_, "head", .object = NODE),
    FP_JSON_KEY(FILE_, "samples", .array = SAMPLES),
    FP_JSON_KEY(NODE, "callFrame", .object = CALL),
    FP_JSON_KEY(NODE, "selfSize", .value = SIZE),
    FP_JSON_KEY(NODE, "children", .array = CHILDREN),
    FP_JSON_KEY(NODE, "functionName", .value = NAME),
    FP_JSON_KEY(NODE, "url", .value = URL),
    FP_JSON_KEY(NODE, "lineNumber", .value = LINE_FROM_1),
    FP_JSON_KEY(NODE, "columnNumber", .value = COLUMN_FROM_1),
    FP_JSON_KEY(CALL, "functionName", .value = NAME),
    FP_JSON_KEY(CALL, "url", .value = URL),
    FP_JSON_KEY(CALL, "lineNumber", .value = LINE),
    FP_JSON_KEY(CALL, "columnNumber", .value = COLUMN),
    FP_JSON_EACH(CHILDREN, .object = NODE),
    FP_JSON_EACH(SAMPLES, .object = SAMPLE, .array = SAMPLE),
};

struct node {
    int64_t size; /* -1: not read yet */
    int64_t line, column;
    uint32_t parent, name, url, stack;
    uint32_t has_frame;
};

struct heapprofile_reader {
    struct fp_heapprofile h;
    struct fp_model *model; /* borrowed */
    int32_t lenient, has_head;
    struct fp_json_walk walk;
    struct node *nodes; /* the first one is the parent of the root */
    uint32_t n, cap, open;
    uint32_t next; /* of the rows */
};

static int bad(const struct fp_window *in, const char *what, const char *want, struct fp_err *err) {
    fp_fail(err, FP_E_MALFORMED, in->base + in->pos, what);
    err->want = want;
    return FP_E_MALFORMED;
}

static int begin(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct heapprofile_reader *r = to;
    r->h.samples += kind == SAMPLE;
    if (kind == CALL) r->nodes[r->open].has_frame = 1;
    if (kind != NODE) return 0;
    if (fp_json_within(&r->walk) == FILE_ && r->has_head) return bad(in, "a second \"head\"", NULL, err);
    r->has_head = 1;
    FP_PUSH(r->nodes, r->n, r->cap) = (struct node){.size = -1, .line = -1, .column = -1, .parent = r->open};
    r->open = r->n - 1;
    r->h.n_nodes++;
    return 0;
}

static int end(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err) {
    struct heapprofile_reader *r = to;
    if (kind != NODE) return 0;
    struct node *node = &r->nodes[r->open];
    r->open = node->parent;
    if (node->size >= 0 && node->has_frame) return 0;
    if (!r->lenient) return bad(in, "a node is incomplete", "\"callFrame\" and a \"selfSize\" from 0 to 2^63 - 1", err);
    r->h.broken++;
    node->size = 0;
    return 0;
}

static int value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err) {
    struct heapprofile_reader *r = to;
    struct node *node = &r->nodes[r->open];
    int64_t number;
    (void)in, (void)err;
    if (code == NAME || code == URL) {
        if (r->walk.json.token != FP_JSON_STRING) return 0;
        if (code == NAME) node->has_frame = 1;
        uint32_t *const string = code == NAME ? &node->name : &node->url;
        *string = fp_json_intern(&r->walk, &r->model->strings);
        return 0;
    }
    if (!fp_json_is_integer(&r->walk, &number)) return 0;
    /* lines of a call frame count from 0, -1 is unknown; those of a node itself count from 1 */
    const int64_t from_0 = number - (number > INT64_MIN);
    switch (code) {
        case SIZE: node->size = number; break;
        case LINE: node->line = number; break;
        case COLUMN: node->column = number; break;
        case LINE_FROM_1: node->line = from_0; break;
        default: node->column = from_0;
    }
    return 0;
}

static const struct fp_json_shape shape = {FP_JSON_ROWS(rows_of_file), .begin = begin, .end = end, .value = value};

struct fp_heapprofile *fp_heapprofile_new(struct fp_model *model, int lenient) {
    struct heapprofile_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    fp_json_begin(&r->walk, &shape);
    fp_array_zeroed(&r->nodes, &r->cap, 1, sizeof *r->nodes);
    r->n = r->next = 1;
    return &r->h;
}

void fp_heapprofile_free(struct fp_heapprofile *h) {
    struct heapprofile_reader *r = (struct heapprofile_reader *)h;
    fp_json_free(&r->walk);
    FP_FREE(r->nodes, r);
}

/* ---- rows ---- */

static uint32_t number(int64_t from_0) {
    return from_0 >= 0 && from_0 < INT32_MAX ? (uint32_t)from_0 + 1 : 0;
}

static uint32_t frame_of(struct fp_model *m, const struct node *node) {
    uint32_t name = node->name;
    if (!name) name = fp_strings_intern(&m->strings, "(anonymous)", 11);
    const uint32_t function = fp_model_function(m, 0, node->url, name, 0, number(node->line));
    return fp_model_line_frame(m, function, number(node->line), number(node->column));
}

static int rows(struct heapprofile_reader *r, struct fp_batch *out) {
    for (; r->next < r->n; r->next++) {
        struct node *node = &r->nodes[r->next];
        if (out->n == out->cap) return FP_FULL;
        if (node->parent) { /* the root is not a frame */
            const uint32_t frame = frame_of(r->model, node);
            node->stack = fp_model_stack(r->model, r->nodes[node->parent].stack, frame);
        }
        if (!node->size) continue;
        out->values[fp_batch_sample(out, node->stack, 0, 0, 0)] = node->size;
    }
    return FP_DONE;
}

int fp_heapprofile_feed(struct fp_heapprofile *h, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct heapprofile_reader *r = (struct heapprofile_reader *)h;
    int status = fp_json_walk(&r->walk, r, in, err);
    if (status < 0 && r->lenient) {
        h->bad_end = r->walk.over = 1;
        status = fp_json_walk(&r->walk, r, in, err);
    }
    if (status) return status;
    for (; r->open; r->open = r->nodes[r->open].parent) /* the text ended within these nodes */
        if (r->nodes[r->open].size < 0) r->nodes[r->open].size = 0;
    return r->has_head || r->lenient ? rows(r, out) : bad(in, "the object has no \"head\"", NULL, err);
}
