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
        FP_FREE(s->p, s);
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

int fp_guarded(int (*work)(void *arg), void *arg) {
    struct fp_guard guard;
    int status;
    fp_guard_enter(&guard);
    if (setjmp(guard.to))
        status = FP_E_NOMEM;
    else
        status = work(arg);
    fp_guard_leave(&guard);
    return status;
}

int fp_escape(void) {
    if (innermost) longjmp(innermost->to, 1);
    return FP_E_NOMEM;
}

static struct fp_scratch *add(void) {
    struct fp_scratch *s = fp_have(calloc(1, sizeof *s));
    s->before = innermost->scratch;
    return innermost->scratch = s;
}

void *fp_scratch(size_t n, size_t width) {
    if (!innermost) return calloc(n, width);
    struct fp_scratch *s = add();
    return s->p = fp_have(calloc(n, width));
}

void fp_scratch_room(void *array, uint32_t *cap, uint64_t need, size_t width) {
    if (FP_LIKELY(need <= *cap)) return;
    const uint64_t twice = 2 * (uint64_t)*cap, more = need > twice ? need + 16 : twice;
    void *p, *grown = NULL;
    memcpy(&p, array, sizeof p);
    struct fp_scratch *s = !innermost ? NULL : p ? find(p) : add();
    if (more <= UINT32_MAX && more <= SIZE_MAX / width) grown = realloc(p, (size_t)more * width);
    p = fp_have(grown);
    if (s) s->p = p;
    memcpy(array, &p, sizeof p);
    *cap = (uint32_t)more;
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
