#include "core/guard.h"

static _Thread_local struct fp_guard *innermost;

/* Memory that the guard owns. */
struct fp_scratch {
    void *p;
    struct fp_scratch *before;
};

static struct fp_scratch *find(const void *p) {
    struct fp_scratch *s = p && innermost ? innermost->scratch : NULL;
    while (s && s->p != p) s = s->before;
    return s;
}

/* Frees the memory requested after `first`. */
static void free_after(const struct fp_scratch *first) {
    while (innermost->scratch != first) {
        struct fp_scratch *s = innermost->scratch;
        innermost->scratch = s->before;
        free(s->p);
        free(s);
    }
}

void fp_guard_enter(struct fp_guard *g) {
    g->outer = innermost;
    g->made = NULL;
    g->scratch = NULL;
    innermost = g;
}

void fp_guard_leave(struct fp_guard *g) {
    free_after(NULL);
    innermost = g->outer;
}

int fp_escape(void) {
    if (innermost) longjmp(innermost->to, 1);
    return FP_E_NOMEM;
}

void *fp_scratch(size_t n, size_t width) {
    if (!innermost) return calloc(n, width);
    struct fp_scratch *s = fp_have(calloc(1, sizeof *s));
    s->before = innermost->scratch;
    innermost->scratch = s;
    return s->p = fp_have(calloc(n, width));
}

void fp_scratch_free(void *p) {
    const struct fp_scratch *s = find(p);
    if (s)
        free_after(s->before);
    else if (!innermost)
        free(p);
}

void *fp_scratch_keep(void *p) {
    struct fp_scratch *s = find(p);
    if (s) s->p = NULL;
    return p;
}

void *fp_made(size_t nbytes) {
    void *p = fp_have(calloc(1, nbytes));
    if (innermost) innermost->made = p;
    return p;
}
