#include "heapprofile/read.h"

#include <stdlib.h>

#include "core/array.h"

enum heapprofile_key { OTHER, HEAD, SAMPLES, CALL_FRAME, SELF_SIZE, CHILDREN, NAME, URL, LINE, COLUMN };
enum heapprofile_within { ELSEWHERE, IN_FILE, IN_NODE, IN_FRAME, IN_CHILDREN, IN_SAMPLES };

_Static_assert(sizeof((struct fp_heapprofile){0}.within) > FP_JSON_DEPTH + 1, "a byte for each depth");

struct fp_heapprofile *fp_heapprofile_new(struct fp_model *model, int lenient) {
    struct fp_heapprofile *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->model = model;
    h->lenient = lenient;
    if (fp_array_zeroed(&h->nodes, &h->cap, 1, sizeof *h->nodes)) {
        fp_heapprofile_free(h);
        return NULL;
    }
    h->n = h->next = 1;
    return h;
}

void fp_heapprofile_free(struct fp_heapprofile *h) {
    if (!h) return;
    fp_buf_free(&h->scratch);
    free(h->nodes);
    free(h);
}

static uint8_t key_of(const struct fp_json *j) {
    static const char *const keys[] = {"head",         "samples", "callFrame",  "selfSize",    "children",
                                       "functionName", "url",     "lineNumber", "columnNumber"};
    for (uint8_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (fp_json_is(j, keys[i])) return (uint8_t)(i + 1);
    return OTHER;
}

static int bad(const struct fp_in *in, const char *what, const char *want, struct fp_err *err) {
    fp_fail(err, FP_E_MALFORMED, in->base + in->pos, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* ---- containers ---- */

static int begin_node(struct fp_heapprofile *h, struct fp_err *err) {
    if (h->n == FP_NO_ID || fp_array_room(&h->nodes, &h->cap, (uint64_t)h->n + 1, sizeof *h->nodes))
        return fp_no_memory(err);
    h->nodes[h->n] = (struct fp_heapprofile_node){.size = -1, .line = -1, .column = -1, .parent = h->open};
    h->open = h->n++;
    h->n_nodes++;
    return 0;
}

/* Ends a node. */
static int end_node(struct fp_heapprofile *h, const struct fp_in *in, struct fp_err *err) {
    struct fp_heapprofile_node *node = &h->nodes[h->open];
    h->open = node->parent;
    if (node->size >= 0 && node->has_frame) return 0;
    if (!h->lenient) return bad(in, "a node is incomplete", "\"callFrame\" and a \"selfSize\" from 0 to 2^63 - 1", err);
    h->broken++;
    node->size = 0;
    return 0;
}

/* The kind of an object or array that starts within another container. */
static uint8_t kind_of(const struct fp_heapprofile *h) {
    const int is_object = h->json.token == FP_JSON_OBJECT;
    const uint8_t outer = h->json.depth ? h->within[h->json.depth] : ELSEWHERE;
    if (!h->json.depth) return IN_FILE;
    if (is_object)
        return outer == IN_CHILDREN || (outer == IN_FILE && h->key == HEAD) ? IN_NODE
               : outer == IN_NODE && h->key == CALL_FRAME                   ? IN_FRAME
                                                                            : ELSEWHERE;
    return outer == IN_NODE && h->key == CHILDREN  ? IN_CHILDREN
           : outer == IN_FILE && h->key == SAMPLES ? IN_SAMPLES
                                                   : ELSEWHERE;
}

static int begin(struct fp_heapprofile *h, const struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &h->json;
    const uint8_t kind = kind_of(h), outer = j->depth ? h->within[j->depth] : ELSEWHERE;
    if (!j->depth && j->token != FP_JSON_OBJECT) return bad(in, "the file is not a JSON object", NULL, err);
    if (outer == IN_SAMPLES) h->samples++;
    h->within[j->depth + 1] = kind;
    if (kind == IN_FRAME) h->nodes[h->open].has_frame = 1;
    if (kind != IN_NODE) return 0;
    if (outer == IN_FILE && h->has_head) return bad(in, "a second \"head\"", NULL, err);
    h->has_head = 1;
    return begin_node(h, err);
}

/* ---- fields of a node ---- */

static int text(struct fp_heapprofile *h, uint32_t *string, struct fp_err *err) {
    size_t n;
    const uint8_t *p = fp_json_plain(&h->json, &h->scratch, &n);
    *string = p ? fp_strings_intern(&h->model->strings, p, n) : FP_NO_ID;
    return *string == FP_NO_ID ? fp_no_memory(err) : 0;
}

static int field(struct fp_heapprofile *h, struct fp_err *err) {
    const struct fp_json *j = &h->json;
    struct fp_heapprofile_node *node = &h->nodes[h->open];
    const uint8_t within = j->depth ? h->within[j->depth] : ELSEWHERE;
    int64_t number;
    if (within != IN_FRAME && within != IN_NODE) return 0;
    if (j->token == FP_JSON_STRING) {
        if (h->key == NAME) node->has_frame = 1;
        if (h->key == NAME || h->key == URL) return text(h, h->key == NAME ? &node->name : &node->url, err);
        return 0;
    }
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, &number, NULL)) return 0;
    if (h->key == SELF_SIZE && within == IN_NODE) node->size = number;
    /* lines of a call frame count from 0, -1 is unknown; those of a node itself count from 1 */
    if (h->key == LINE) node->line = number - (within == IN_NODE && number > INT64_MIN);
    if (h->key == COLUMN) node->column = number - (within == IN_NODE && number > INT64_MIN);
    return 0;
}

static int token(struct fp_heapprofile *h, const struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &h->json;
    switch (j->token) {
        case FP_JSON_KEY: h->key = key_of(j); return 0;
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY: return begin(h, in, err);
        case FP_JSON_OBJECT_END: return h->within[j->depth] == IN_NODE ? end_node(h, in, err) : 0;
        default:
            if (!j->depth && j->token != FP_JSON_ARRAY_END) return bad(in, "the file is not a JSON object", NULL, err);
            return field(h, err);
    }
}

/* ---- rows ---- */

static uint32_t number(int64_t from_0) {
    return from_0 >= 0 && from_0 < INT32_MAX ? (uint32_t)from_0 + 1 : 0;
}

/* The frame of a node; FP_NO_ID when memory ran out. */
static uint32_t frame_of(struct fp_model *m, const struct fp_heapprofile_node *node) {
    uint32_t name = node->name;
    if (!name) name = fp_strings_intern(&m->strings, "(anonymous)", 11);
    if (name == FP_NO_ID) return FP_NO_ID;
    const uint32_t function = fp_model_function(m, 0, node->url, name, 0, number(node->line));
    if (function == FP_NO_ID) return FP_NO_ID;
    const uint32_t line = fp_model_line(m, function, number(node->line), number(node->column), 0);
    return line == FP_NO_ID ? FP_NO_ID : fp_model_frame(m, 0, 0, 0, line);
}

static int rows(struct fp_heapprofile *h, struct fp_batch *out, struct fp_err *err) {
    for (; h->next < h->n; h->next++) {
        struct fp_heapprofile_node *node = &h->nodes[h->next];
        if (out->n == out->cap) return FP_FULL;
        if (node->parent) { /* the root is not a frame */
            const uint32_t frame = frame_of(h->model, node);
            if (frame == FP_NO_ID) return fp_no_memory(err);
            node->stack = fp_model_stack(h->model, h->nodes[node->parent].stack, frame);
            if (node->stack == FP_NO_ID) return fp_no_memory(err);
        }
        if (!node->size) continue;
        const uint32_t i = out->n++;
        out->stack[i] = node->stack;
        out->time[i] = 0;
        out->thread[i] = out->label[i] = 0;
        out->values[i] = node->size;
    }
    return FP_DONE;
}

/* ---- the text ---- */

static int read_text(struct fp_heapprofile *h, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &h->json;
    for (;;) {
        int status = fp_json_next(j, in, err);
        if (!status && j->token == FP_JSON_END) break;
        if (!status) status = token(h, in, err);
        if (status == FP_MORE) return status;
        if (status && (!h->lenient || status == FP_E_NOMEM)) return status;
        if (status) {
            h->bad_end = 1;
            break;
        }
        fp_json_take(j, in);
    }
    for (; h->open; h->open = h->nodes[h->open].parent) /* the text ended within these nodes */
        if (h->nodes[h->open].size < 0) h->nodes[h->open].size = 0;
    h->over = 1;
    return h->has_head || h->lenient ? FP_DONE : bad(in, "the object has no \"head\"", NULL, err);
}

int fp_heapprofile_feed(struct fp_heapprofile *h, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    if (!h->over) {
        const int status = read_text(h, in, err);
        if (status) return status;
    }
    in->pos = in->n;
    return in->eof ? rows(h, out, err) : FP_MORE;
}
