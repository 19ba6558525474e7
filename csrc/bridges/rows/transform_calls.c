#include "bridges/rows/open_calls.h"
#include "bridges/rows/transform.h"

/* A thread's open calls, and what the rows show of them. */
struct fp_transform_thread {
    struct fp_open_calls calls; /* as recorded */
    uint32_t *shown;            /* by call: the function that was entered for it; FP_NO_ID: none was */
    uint32_t *below;            /* by call: 1 + the innermost shown call up to it; 0: none */
    uint32_t cap_shown, cap_below;
    int32_t is_hidden;          /* `[hidden]` is open */
    uint64_t last, shown_until; /* the latest time of its rows; of those that stay */
    uint32_t part;              /* of the last row */
};

void fp_transform_free(struct fp_transform *t) {
    for (uint32_t i = 0; i < t->cap_threads; i++)
        FP_FREE(t->threads[i].calls.functions, t->threads[i].shown, t->threads[i].below);
    if (t->open) fp_open_clear(t->open);
    FP_CLEAR_TABLES(&t->names, &t->places, &t->inlined);
    FP_FREE(t->threads, t->open, t->marks, t->stack_to, t->frame_to, t->path, t->chain, t->kinds, t->collapsed,
            t->object_to, t->firsts, t->function_to, t->becomes, t->outermost, t);
}

static void append(struct fp_transform *t, struct fp_batch *out, const struct fp_batch *in, uint32_t i, enum fp_op op,
                   uint32_t function) {
    struct fp_transform_thread *const h = &t->threads[in->thread[i]];
    if (in->time[i] > h->shown_until) h->shown_until = in->time[i];
    const uint32_t to = fp_batch_event(out, in->time[i], op, function, in->thread[i], in->cpu[i]);
    if (op == FP_OP_ARGUMENT || op == FP_OP_BUFFER) out->aux[to] = in->aux[i];
}

/* The innermost shown call + 1; 0: none. */
static uint32_t innermost(const struct fp_transform_thread *h) {
    return h->calls.n ? h->below[h->calls.n - 1] : 0;
}

/* Begins or ends `[hidden]`, which is open while no other call is. */
static void hidden(struct fp_transform *t, struct fp_transform_thread *h, const struct fp_batch *in, uint32_t i,
                   struct fp_batch *out, int is_hidden) {
    if (is_hidden == h->is_hidden) return;
    append(t, out, in, i, is_hidden ? FP_OP_ENTER : FP_OP_EXIT, t->hidden);
    h->is_hidden = is_hidden;
}

/* Returns whether the call is shown. */
static int enter(struct fp_transform *t, struct fp_transform_thread *h, const struct fp_batch *in, uint32_t i,
                 struct fp_batch *out) {
    const uint32_t function = in->function[i], above = innermost(h), k = h->calls.n;
    uint32_t shown = FP_NO_ID;
    if (!fp_transform_hides(t, function, 0)) {
        shown = fp_transform_function(t, function);
        if (above && fp_transform_merges(t, h->shown[above - 1], shown)) shown = FP_NO_ID;
    }
    const int is_shown = shown != FP_NO_ID, is_other = is_shown && fp_transform_is_own(t, shown) && shown != function;
    *FP_AT(h->shown, h->cap_shown, k) = shown;
    *FP_AT(h->below, h->cap_below, k) = is_shown ? k + 1 : above;
    fp_open_enter(t->open, &h->calls, in->thread[i], function);
    hidden(t, h, in, i, out, !is_shown && !above);
    if (is_shown) append(t, out, in, i, is_other ? FP_OP_ENTER : in->op[i], shown);
    return is_shown && !is_other; /* a collapsed object has no arguments */
}

static void leave(struct fp_transform *t, struct fp_transform_thread *h, const struct fp_batch *in, uint32_t i,
                  struct fp_batch *out) {
    const uint32_t function = in->function[i], thread = in->thread[i];
    struct fp_open_calls *const calls = &h->calls;
    const int is_top = calls->n && calls->functions[calls->n - 1] == function;
    if (!is_top && !fp_open_has(t->open, calls, thread, function)) {
        t->orphans++;
        return;
    }
    uint32_t outermost = FP_NO_ID, last; /* of the shown calls that end here */
    int is_own;                          /* it is the one that the exit names */
    do {
        last = calls->functions[calls->n - 1];
        is_own = h->shown[calls->n - 1] != FP_NO_ID;
        if (is_own) outermost = h->shown[calls->n - 1];
        fp_open_leave(t->open, calls, thread);
    } while (last != function);
    if (outermost != FP_NO_ID) {
        append(t, out, in, i, is_top ? in->op[i] : FP_OP_EXIT, outermost);
        t->unwound += !is_own;
    }
    hidden(t, h, in, i, out, calls->n && !innermost(h));
}

int fp_transform_calls(struct fp_transform *t, const struct fp_batch *in, uint32_t *from, struct fp_batch *out,
                       struct fp_err *err) {
    const uint32_t n_functions = t->model->functions.n;
    for (; *from < in->n; ++*from) {
        const uint32_t i = *from, thread = in->thread[i], function = in->function[i];
        const enum fp_op op = (enum fp_op)in->op[i];
        if (out->cap - out->n < 2) return FP_FULL;
        struct fp_transform_thread *const h = FP_AT(t->threads, t->cap_threads, thread);
        if (in->time[i] > h->last) h->last = in->time[i];
        h->part = in->part;
        if (op <= FP_OP_ENTER_ARGS && function >= n_functions)
            return fp_unknown_id(err, "the function of a call", function, n_functions);
        switch (op) {
            case FP_OP_ENTER:
            case FP_OP_ENTER_ARGS: t->kept = enter(t, h, in, i, out); continue;
            case FP_OP_EXIT:
            case FP_OP_TAIL_EXIT: leave(t, h, in, i, out); continue;
            case FP_OP_ARGUMENT:
                if (t->kept) append(t, out, in, i, op, function);
                continue;
            default: break;
        }
        append(t, out, in, i, op, function);
        if (op != FP_OP_CUSTOM && op != FP_OP_TYPED) continue;
        const uint64_t slice = in->aux[i];
        const int status = fp_batch_payload(out, fp_batch_bytes(in, slice), (uint32_t)slice, &out->aux[out->n - 1]);
        if (!status) continue;
        out->n--;
        if (status == FP_E_OVERFLOW && out->n) return FP_FULL; /* payloads of an empty batch fit */
        return fp_no_memory(err);
    }
    return FP_DONE;
}

int fp_transform_end(struct fp_transform *t, struct fp_batch *out) {
    for (; t->n_ended < t->cap_threads; t->n_ended++) {
        struct fp_transform_thread *const h = &t->threads[t->n_ended];
        if (h->last <= h->shown_until) continue;
        while (h->calls.n || h->is_hidden) {
            if (out->n == out->cap || (out->n && out->part != h->part)) return FP_FULL;
            out->part = h->part;
            const uint32_t shown = h->is_hidden ? t->hidden : h->shown[h->calls.n - 1];
            h->calls.n = h->is_hidden ? 0 : h->calls.n - 1;
            h->is_hidden = 0;
            if (shown == FP_NO_ID) continue;
            fp_batch_event(out, h->last, FP_OP_EXIT, shown, t->n_ended, 0);
            t->unfinished++;
        }
    }
    return FP_DONE;
}
