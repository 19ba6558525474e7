/* Java heaps: the objects of a process with their classes and references, in several packets of a sequence.  The stack
 * of an object is the classes on the shortest path from a root:
 *
 *   root JAVA_FRAME: 1
 *   object 1: an Activity, 16 bytes, refers to 2 and 3      ROOT_JAVA_FRAME;Activity        1 object, 16 bytes
 *   object 2: a View, 24 bytes, refers to 1                 ROOT_JAVA_FRAME;Activity;View   2 objects, 54 bytes
 *   object 3: a View, 30 bytes
 *
 * Objects that no root reaches are below [unreachable].  A later dump of a process replaces the earlier ones.
 */
#include "perfetto/read_private.h"

enum {
    MOST_PATH = 512, /* classes in a stack */
    MOST_OPEN = 1024 /* dumps at once: an empty one takes 3 KB, but its packet only 16 bytes */
};

struct heap_class {
    uint64_t size;
    uint32_t name, frame;     /* of the model; the frame once needed */
    uint32_t super, first, n; /* its superclass, and its own fields that are references */
    uint32_t referent;        /* place of the referent in those + 1, or 0 */
    int32_t is_reference;     /* its referent does not keep an object alive */
};

struct heap_object {
    uint64_t size;
    uint32_t class, first, n;  /* its references */
    uint32_t stack, depth;     /* of the model, once reached */
    uint8_t is_known, is_kept; /* `is_kept`: by the runtime, even without a root */
    uint8_t by_class;          /* the fields of its references are those of its class */
};

struct heap_reference {
    uint32_t object, field; /* `by_class`: its place among the references of the object; otherwise 0: not given */
};

struct heap_root {
    uint32_t object, kind, name; /* the string of old traces */
};

struct fp_perfetto_graph {
    int64_t pid;
    uint64_t last_id, next;                /* index of the next packet */
    uint64_t heap_type;                    /* of the last object */
    uint32_t number;                       /* dumps are numbered in the order in which they begin */
    struct fp_table object_ids, class_ids; /* 64 bits each */
    struct heap_object *objects;           /* by row of object_ids */
    struct heap_class *classes;            /* by row of class_ids */
    struct heap_reference *references;
    struct heap_root *roots;
    uint64_t *fields; /* of classes */
    uint32_t cap_objects, cap_classes, n_references, cap_references, n_roots, cap_roots, n_fields, cap_fields;
    uint64_t referent; /* number of the field java.lang.ref.Reference.referent, or 0 */
};

static void free_graph(struct fp_perfetto_graph *g) {
    if (!g) return;
    FP_CLEAR_TABLES(&g->object_ids, &g->class_ids);
    FP_FREE(g->objects, g->classes, g->references, g->roots, g->fields, g);
}

static void begin_graph(struct fp_perfetto_seq *s, int64_t pid, uint32_t number) {
    struct fp_perfetto_graph *g = s->graph = fp_have(calloc(1, sizeof *g));
    g->pid = pid;
    g->number = number;
    FP_INIT_TABLES(2, &g->object_ids, &g->class_ids);
}

void fp_perfetto_graphs_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->seqs.cap; i++) {
        free_graph(r->seqs.list[i].graph);
        r->seqs.list[i].graph = NULL;
    }
    if (r->calls.stacks) r->calls.stacks->n_open = 0;
}

/* ---- messages ---- */

static uint32_t row_of(struct fp_table *ids, uint64_t id) {
    return fp_table_intern(ids, (uint32_t[]){FP_WORDS(id)});
}

static struct heap_class *class_of(struct fp_perfetto_graph *g, uint64_t id, uint32_t *row) {
    *row = row_of(&g->class_ids, id);
    return FP_AT(g->classes, g->cap_classes, *row);
}

/* The fields of an object but its references. */
struct heap_fields {
    uint64_t id, delta, class, size;
    uint64_t base;         /* of ids of objects, in spite of its name, reference_field_id_base */
    uint64_t heap_type;    /* in spite of its name, heap_type_delta; absent: as before */
    struct fp_wire fields; /* of its references */
};
#define TO(member) FP_WIRE_TO(struct heap_fields, member)
static const struct fp_wire_schema of_object = {
    " VVVBLVV VL", {0, TO(id), TO(class), TO(size), TO(fields), 0, TO(base), TO(delta), 0, TO(heap_type)}};
#undef TO

struct class_fields {
    uint64_t id, size, super, kind;
    struct fp_wire name;
};
#define TO(member) FP_WIRE_TO(struct class_fields, member)
static const struct fp_wire_schema of_class = {" V BVVLV", {0, TO(id), 0, TO(name), TO(size), TO(super), 0, TO(kind)}};
static const struct fp_wire_schema of_old_class = {" VB", {0, TO(id), TO(name)}};
#undef TO

static const struct fp_wire_schema of_root = {.kinds = " LL"}; /* its kind is a number, or text in old traces */

/* Reads the references of an object in field 5 or 10.  0 or FP_E_MALFORMED. */
static int take_references(struct fp_perfetto_graph *g, struct heap_fields *o, struct fp_wire m, int by_class) {
    struct fp_wire_field f;
    uint64_t id, field;
    uint32_t place = 0;
    while (fp_perfetto_next(&m, &f) > 0) {
        if (f.number != 5 && f.number != 10) continue;
        struct fp_wire list = fp_wire_inside(&f);
        int status;
        for (; (status = fp_wire_next_number(&list, &id)) > 0; place += f.number == 5) {
            field = f.number == 5 && by_class ? place : by_class ? UINT32_MAX : 0;
            if (f.number == 5 && !by_class && fp_wire_next_number(&o->fields, &field) < 0) return FP_E_MALFORMED;
            if (!id) continue;
            const uint32_t to = row_of(&g->object_ids, f.number == 5 ? id + o->base : id);
            FP_PUSH(g->references, g->n_references, g->cap_references) =
                (struct heap_reference){to, field == (uint32_t)field ? (uint32_t)field : 0};
        }
        if (status) return FP_E_MALFORMED;
    }
    return 0;
}

static int take_object(struct fp_perfetto_graph *g, struct fp_wire m) {
    enum { ZYGOTE = 2, BOOT_IMAGE = 3 };
    struct heap_fields o = {.heap_type = g->heap_type};
    uint32_t class;
    if (fp_perfetto_fields(m, &of_object, &o) || o.size > INT64_MAX) return FP_E_MALFORMED;
    g->last_id = o.delta ? g->last_id + o.delta : o.id;
    g->heap_type = o.heap_type;
    const uint32_t row = row_of(&g->object_ids, g->last_id), first = g->n_references;
    class_of(g, o.class, &class);
    if (FP_AT(g->objects, g->cap_objects, row)->is_known) return 0;
    const uint8_t by_class = o.fields.p == o.fields.end;
    FP_TRY(take_references(g, &o, m, by_class));
    g->objects[row] = (struct heap_object){.size = o.size,
                                           .class = class,
                                           .first = first,
                                           .n = g->n_references - first,
                                           .is_known = 1,
                                           .is_kept = g->heap_type == ZYGOTE || g->heap_type == BOOT_IMAGE,
                                           .by_class = by_class};
    return 0;
}

/* Reads the numbers of the fields of a class.  0 or FP_E_MALFORMED. */
static int take_class_fields(struct fp_perfetto_graph *g, struct fp_wire m) {
    struct fp_wire_list list = fp_wire_list_of(m, &of_class, 6);
    uint64_t id;
    int more;
    while ((more = fp_wire_list_next(&list, &id)) > 0) FP_PUSH(g->fields, g->n_fields, g->cap_fields) = id;
    return more ? FP_E_MALFORMED : 0;
}

/* A class; in old traces only its name (`is_old`). */
static int take_class(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, struct fp_wire m, int is_old) {
    enum { SOFT_REFERENCE = 8, PHANTOM_REFERENCE = 11 };
    struct class_fields f = {0};
    uint32_t row, above = 0;
    const uint32_t first = g->n_fields;
    if (fp_perfetto_fields(m, is_old ? &of_old_class : &of_class, &f) || f.size > INT64_MAX) return FP_E_MALFORMED;
    if (!is_old) FP_TRY(take_class_fields(g, m));
    if (f.super) class_of(g, f.super, &above);
    struct heap_class *c = class_of(g, f.id, &row);
    const uint32_t text = fp_perfetto_text(r, f.name);
    *c = (struct heap_class){.size = f.size,
                             .name = text,
                             .super = above,
                             .first = first,
                             .n = g->n_fields - first,
                             .is_reference = f.kind >= SOFT_REFERENCE && f.kind <= PHANTOM_REFERENCE};
    return 0;
}

static int take_root(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, struct fp_wire m) {
    struct fp_wire_list objects = fp_wire_list_of(m, &of_root, 1);
    struct fp_wire_field f;
    uint32_t kind = 0, name = 0;
    uint64_t id;
    int status;
    while ((status = fp_wire_next(&m, &of_root, &f)) > 0) {
        if (f.number != 2) continue;
        if (f.wire == FP_WIRE_VARINT) kind = f.v > UINT32_MAX ? 0 : (uint32_t)f.v;
        if (f.wire == FP_WIRE_BYTES) name = fp_perfetto_text(r, fp_wire_inside(&f));
    }
    if (status) return FP_E_MALFORMED;
    while ((status = fp_wire_list_next(&objects, &id)) > 0) {
        const uint32_t row = row_of(&g->object_ids, id);
        FP_PUSH(g->roots, g->n_roots, g->cap_roots) = (struct heap_root){row, kind, name};
    }
    return status ? FP_E_MALFORMED : 0;
}

/* The name of a field, "java.lang.Object java.lang.ref.Reference.referent" with its type: only this one matters. */
static int take_field(struct fp_perfetto_graph *g, struct fp_wire m) {
    static const char referent[] = "java.lang.ref.Reference.referent";
    struct fp_perfetto_named_id f = {0};
    const int status = fp_perfetto_fields(m, &fp_perfetto_of_name, &f);
    const size_t whole = (size_t)(f.text.end - f.text.p);
    const uint8_t *blank = whole ? memchr(f.text.p, ' ', whole) : NULL;
    const size_t n = blank ? (size_t)(f.text.end - blank - 1) : whole;
    if (n == sizeof referent - 1 && !memcmp(f.text.end - n, referent, n) && f.iid < UINT32_MAX) g->referent = f.iid;
    return status;
}

/* ---- paths ---- */

static uint32_t text_of(struct fp_perfetto_read *r, const char *text) {
    return fp_strings_intern(&r->model->strings, (const uint8_t *)text, strlen(text));
}

/* The stack of a root's kind, or of unreachable objects. */
static uint32_t outermost(struct fp_perfetto_read *r, const struct heap_root *root) {
    static const char *const kinds[] = {"ROOT_UNKNOWN",           "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",
                                        "ROOT_JAVA_FRAME",        "ROOT_NATIVE_STACK", "ROOT_STICKY_CLASS",
                                        "ROOT_THREAD_BLOCK",      "ROOT_MONITOR_USED", "ROOT_THREAD_OBJECT",
                                        "ROOT_INTERNED_STRING",   "ROOT_FINALIZING",   "ROOT_DEBUGGER",
                                        "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",  "ROOT_JNI_MONITOR"};
    uint32_t name = root ? root->name : text_of(r, "[unreachable]");
    if (!name) name = text_of(r, kinds[root->kind < sizeof kinds / sizeof *kinds ? root->kind : 0]);
    const uint32_t frame = fp_model_name_frame(r->model, name);
    return fp_model_stack(r->model, 0, frame);
}

/* Sets the stack of an object below that of its caller, whose depth is given.  At MOST_PATH it takes the place of its
 * caller. */
static void reach(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, uint32_t object, uint32_t stack,
                  uint32_t depth) {
    struct heap_object *o = &g->objects[object];
    struct heap_class *c = &g->classes[o->class];
    if (!c->frame) c->frame = fp_model_name_frame(r->model, c->name ? c->name : text_of(r, "[unknown]"));
    const int is_long = depth >= MOST_PATH;
    if (is_long) stack = fp_table_row(&r->model->stacks, stack)[FP_STACK_PARENT];
    r->counts[FP_PERFETTO_N_LONG_PATHS] += (uint64_t)is_long;
    o->depth = is_long ? depth : depth + 1;
    o->stack = fp_model_stack(r->model, stack, c->frame);
}

/* Finds the referent among the own fields of each class. */
static void find_referents(struct fp_perfetto_graph *g) {
    for (uint32_t i = 1; g->referent && i < g->class_ids.n; i++) {
        struct heap_class *c = &g->classes[i];
        for (uint32_t k = 0; k < c->n && !c->referent; k++)
            if (g->fields[c->first + k] == g->referent) c->referent = k + 1;
    }
}

/* What heap_reference.field is for the referent of objects like this one, whose own fields come before those of its
 * superclasses; 0 is no reference by number, UINT32_MAX none by place. */
static uint32_t referent_of(const struct fp_perfetto_graph *g, const struct heap_object *o) {
    enum { MOST_SUPER = 64 };
    const struct heap_class *c = &g->classes[o->class];
    uint64_t place = 0;
    if (!o->by_class) return c->is_reference && g->referent ? (uint32_t)g->referent : UINT32_MAX;
    if (!c->is_reference) return UINT32_MAX - 1;
    for (int i = 0; i < MOST_SUPER && !c->referent && c->super; i++) {
        place += c->n;
        c = &g->classes[c->super];
    }
    place += c->referent - UINT64_C(1);
    return c->referent && place < UINT32_MAX - 1 ? (uint32_t)place : UINT32_MAX - 1;
}

/* Which kind of a root counts if an object has several, as in the trace processor. */
static uint32_t rank_of(const struct heap_root *root) {
    enum { JNI_GLOBAL = 1, JNI_LOCAL = 2, STICKY_CLASS = 5 };
    return root->kind == STICKY_CLASS ? 0 : root->kind == JNI_GLOBAL ? 1 : root->kind == JNI_LOCAL ? 2 : 3;
}

/* Puts roots into the queue. */
static void find_roots(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, uint32_t *queue, uint32_t *n) {
    static const struct heap_root internal = {.kind = 13};
    for (uint32_t rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < g->n_roots; i++) {
            const struct heap_object *o = &g->objects[g->roots[i].object];
            if (!o->is_known || o->stack || rank_of(&g->roots[i]) != rank) continue;
            reach(r, g, g->roots[i].object, outermost(r, &g->roots[i]), 1);
            queue[(*n)++] = g->roots[i].object;
        }
    for (uint32_t i = 1; i < g->object_ids.n; i++) {
        if (!g->objects[i].is_kept || g->objects[i].stack) continue;
        reach(r, g, i, outermost(r, &internal), 1);
        queue[(*n)++] = i;
    }
}

/* Finds the paths of all objects that roots reach, breadth first. */
static void find_paths(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, uint32_t *queue) {
    uint32_t n = 0;
    find_referents(g);
    find_roots(r, g, queue, &n);
    for (uint32_t next = 0; next < n; next++) {
        const struct heap_object *o = &g->objects[queue[next]];
        const uint32_t referent = referent_of(g, o);
        for (uint32_t i = o->first; i < o->first + o->n; i++) {
            const struct heap_reference *to = &g->references[i];
            const struct heap_object *found = &g->objects[to->object];
            if (!found->is_known || found->stack || to->field == referent) continue;
            reach(r, g, to->object, o->stack, o->depth);
            queue[n++] = to->object;
        }
    }
}

/* Adds up the objects of a complete dump. */
static int add_up(struct fp_perfetto_read *r, struct fp_perfetto_graph *g) {
    const uint32_t place = fp_perfetto_place_of(r, g->pid, -1, 0, 0);
    for (uint32_t i = 1; i < g->object_ids.n; i++) {
        const struct heap_object *o = &g->objects[i];
        if (!o->is_known) continue;
        if (!o->stack) reach(r, g, i, outermost(r, NULL), 1);
        int64_t *to = fp_perfetto_heap_row(r, (uint32_t[]){place, 0, g->number, 0, 0, o->stack});
        const int64_t size = (int64_t)(o->size ? o->size : g->classes[o->class].size);
        int64_t sum;
        if (__builtin_add_overflow(to[1], size, &sum)) return FP_E_MALFORMED;
        to[0]++;
        to[1] = sum;
    }
    if (g->number > r->places[place].dump) r->places[place].dump = g->number;
    return 0;
}

/* Ends the dump of a sequence. */
static int end_dump(struct fp_perfetto_read *r, struct fp_perfetto_seq *s) {
    struct fp_perfetto_graph *g = s->graph;
    const uint32_t n = g->object_ids.n;
    uint32_t *queue = fp_scratch(n, sizeof *queue);
    fp_array_zeroed(&g->objects, &g->cap_objects, n, sizeof *g->objects);
    find_paths(r, g, queue);
    const int status = add_up(r, g);
    fp_scratch_free(queue);
    free_graph(g);
    s->graph = NULL;
    r->calls.stacks->n_open--;
    return status;
}

int fp_perfetto_end_graphs(struct fp_perfetto_read *r) {
    int status = 0;
    for (uint32_t i = 0; i < r->seqs.cap && !status; i++) {
        if (!r->seqs.list[i].graph) continue;
        r->counts[FP_PERFETTO_N_HEAP_PROBLEMS]++;
        status = end_dump(r, &r->seqs.list[i]);
    }
    return status;
}

/* Reads the parts of a packet in their order. */
static int take_parts(struct fp_perfetto_read *r, struct fp_perfetto_graph *g, struct fp_wire m) {
    struct fp_wire_field f;
    int status = 0;
    while (!status && fp_perfetto_next(&m, &f) > 0) {
        const struct fp_wire part = fp_wire_inside(&f);
        if (f.number == 2) status = take_object(g, part);
        if (f.number == 3 || f.number == 9) status = take_class(r, g, part, f.number == 3);
        if (f.number == 4) status = take_field(g, part);
        if (f.number == 7) status = take_root(r, g, part);
    }
    return status;
}

struct graph_fields {
    uint64_t pid, continues, index;
};
#define TO(member) FP_WIRE_TO(struct graph_fields, member)
static const struct fp_wire_schema of_graph = {" VBBBVVB B", {0, TO(pid), [5] = TO(continues), TO(index)}};
#undef TO

int fp_perfetto_graph(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire m = k->message[FP_PF_HEAP_GRAPH];
    struct fp_wire_field f;
    struct graph_fields found = {0};
    int status;
    while ((status = fp_wire_read(&m, &of_graph, &found, &f, NULL)) > 0)
        r->counts[FP_PERFETTO_N_OBJECTS] += f.number == 2;
    if (status) return FP_E_MALFORMED;
    if (r->feed.surveying || r->data != FP_PERFETTO_OBJECTS) return 0;
    struct fp_perfetto_seq *s = k->seq;
    const int64_t number = (int32_t)(uint32_t)found.pid;
    if (s->graph && (s->graph->pid != number || found.index < s->graph->next)) { /* another dump begins */
        r->counts[FP_PERFETTO_N_HEAP_PROBLEMS]++;
        if ((status = end_dump(r, s))) return status;
    }
    if (!s->graph) {
        if (r->calls.stacks->n_open == MOST_OPEN) return FP_E_MALFORMED;
        begin_graph(s, number, ++r->calls.stacks->n_dumps);
        r->calls.stacks->n_open++;
    }
    r->counts[FP_PERFETTO_N_HEAP_PROBLEMS] += found.index != s->graph->next;
    s->graph->next = found.index + 1;
    status = take_parts(r, s->graph, k->message[FP_PF_HEAP_GRAPH]);
    if (found.continues) return status;
    const int ended = end_dump(r, s); /* also after a part that is malformed: later packets are of another dump */
    return status ? status : ended;
}
