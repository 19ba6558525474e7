#include "chrome/samples_private.h"

/* The function of the current frame; 0 for the root node of a profile. */
static uint32_t function_of(struct fp_chrome_samples *r) {
    struct fp_model *m = r->model;
    const struct fp_chrome_samples_frame *f = &r->frame;
    if (f->is_call && fp_string_is(&m->strings, f->name, "(root)")) return 0;
    uint32_t called = f->name, object = 0;
    if (!called) /* as V8's own tools name it */
        called = f->is_call ? fp_strings_intern(&m->strings, "(anonymous)", 11)
                            : fp_strings_intern(&m->strings, "[unknown]", 9);
    if (f->object) object = fp_model_object(m, f->object, 0);
    return fp_model_function(m, object, f->file, called, 0, f->line);
}

/* The node with this id if the profile has it in `dense`, or 0. */
static inline uint32_t near_node(const struct fp_chrome_samples *r, uint32_t owner, uint32_t id) {
    if (!(id & 1) || owner >= r->cap_profiles) return 0; /* a string, or the dictionary */
    const struct fp_chrome_samples_profile *p = &r->profiles[owner];
    return id >> 1 < p->cap_dense ? p->dense[id >> 1] : 0;
}

/* Like fp_chrome_samples_node, but adds the node. */
static uint32_t add_node(struct fp_chrome_samples *r, uint32_t owner, uint32_t id) {
    enum { FEW = 64, SPARSE = 4 };
    const uint32_t known = near_node(r, owner, id), number = id >> 1;
    if (known) return known;
    const uint32_t key[2] = {owner + 1, id}, node = fp_table_intern(&r->node_keys, key);
    fp_array_zeroed(&r->nodes, &r->cap_nodes, (uint64_t)node + 1, sizeof *r->nodes);
    if (!(id & 1) || owner >= r->cap_profiles) return node;
    struct fp_chrome_samples_profile *p = &r->profiles[owner];
    p->n_nodes++;
    if (number >= SPARSE * p->n_nodes + FEW) return node;
    *FP_AT(p->dense, p->cap_dense, number) = node;
    return node;
}

uint32_t fp_chrome_samples_node(const struct fp_chrome_samples *r, uint32_t owner, uint32_t id) {
    uint32_t node = near_node(r, owner, id);
    if (FP_UNLIKELY(!node)) node = fp_table_find(&r->node_keys, (const uint32_t[]){owner + 1, id});
    return node && r->nodes[node].at ? node : 0;
}

static void define(struct fp_chrome_samples *r, uint32_t owner, const struct fp_chrome_samples_child *child) {
    const uint32_t node = add_node(r, owner, child->id);
    const uint32_t parent = child->parent ? add_node(r, owner, child->parent) : 0;
    if (parent) r->nodes[node].parent = parent;
    if (!child->at) return;
    r->nodes[node].at = child->at;
    r->nodes[node].function = child->function;
    r->nodes[node].hits = child->hits;
}

int fp_chrome_samples_end_frame(struct fp_chrome_samples *r, int in_dictionary, struct fp_err *err) {
    const struct fp_chrome_samples_frame *f = &r->frame;
    if (!f->id) {
        r->n_children = f->first_child;
        return fp_chrome_samples_broken(r, f->at, "a node has no id", "\"id\"", err);
    }
    const struct fp_chrome_samples_child child = {f->at, f->id, f->parent, function_of(r), f->hits};
    if (in_dictionary) {
        define(r, fp_chrome_samples_dictionary(r), &child);
        return FP_DONE;
    }
    /* nested nodes: its children have set the parents of their own children already */
    for (uint32_t i = f->first_child; i < r->n_children; i++)
        if (!r->children[i].parent) r->children[i].parent = f->id;
    FP_PUSH(r->children, r->n_children, r->cap_children) = child;
    return FP_DONE;
}

void fp_chrome_samples_are_of(struct fp_chrome_samples *r, uint32_t profile) {
    enum { AHEAD = 8 }; /* the table does not fit the caches */
    for (uint32_t i = 0; i < r->n_children; i++) {
        if (i + AHEAD < r->n_children) {
            const uint32_t key[2] = {profile + 1, r->children[i + AHEAD].id};
            fp_table_prefetch(&r->node_keys, fp_table_hash(key, 2));
        }
        define(r, profile, &r->children[i]);
    }
    r->n_children = 0;
}

/* Makes the stack of a node, after those of its parents.
 *
 *   node 7, parent 5, its parent 2, which has a stack: 7 and 5 enter the chain; then 5 gets its stack, then 7. */
static int make_stack(struct fp_chrome_samples *r, uint32_t node, struct fp_err *err) {
    uint32_t n = 0;
    for (uint32_t at = node; at && r->nodes[at].state != 2; at = r->nodes[at].parent) {
        struct fp_chrome_samples_node *const one = &r->nodes[at];
        const char *wrong = r->nodes[one->parent].state == 1           ? "a frame is its own caller"
                            : one->parent && !r->nodes[one->parent].at ? "the parent of a frame is not in the file"
                                                                       : NULL;
        FP_PUSH(r->chain, n, r->cap_chain) = at;
        one->state = 1;
        if (one->parent == at) wrong = "a frame is its own caller";
        if (!wrong) continue;
        FP_TRY(fp_chrome_samples_broken(r, one->at, wrong, NULL, err));
        one->parent = 0;
    }
    while (n) {
        struct fp_chrome_samples_node *const one = &r->nodes[r->chain[--n]];
        one->stack = r->nodes[one->parent].stack;
        one->state = 2;
        if (!one->function) continue;
        const uint32_t frame = fp_model_plain_frame(r->model, one->function);
        one->stack = fp_model_stack(r->model, one->stack, frame);
    }
    return FP_DONE;
}

int fp_chrome_samples_make_stacks(struct fp_chrome_samples *r, struct fp_err *err) {
    /* node 0 means no node; its stack is empty */
    fp_array_zeroed(&r->nodes, &r->cap_nodes, 1, sizeof *r->nodes);
    for (uint32_t node = 1; node < r->node_keys.n; node++)
        FP_TRY(r->nodes[node].at ? make_stack(r, node, err) : FP_DONE);
    return FP_DONE;
}
