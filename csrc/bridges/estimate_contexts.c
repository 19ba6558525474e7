#include <stdlib.h>

#include "bridges/estimate_private.h"

#if defined(FP_DEBUG)
enum { MAX_STEPS = 1 << 12 }; /* so that fuzzers meet it, and within their time */
#else
enum { MAX_STEPS = 1 << 20 }; /* callers that are looked into for one function; the rest is pruned */
#endif
enum { MAX_CELLS = 1 << 18 }; /* positions times contexts of one function, likewise */
/* Shares of FP_ESTIMATE_WORK: of a frame that is looked up, and of a stack that is new.  A caller takes 1. */
enum { FRAME_WORK = 2, NEW_WORK = 16 };

/* How a function came to be called: the stack of its callers, and its share. */
struct fp_context {
    double share;
    uint32_t stack;
    int32_t pruned;
};

/* A caller that is still to be looked into. */
struct fp_pending {
    double share;
    uint32_t position;
    uint32_t depth;
};

/* The frame of a position; FP_NO_ID when memory ran out.  Code of another file
 * than its function's was inlined: a line of that file within the function. */
static uint32_t frame_of(struct fp_estimate *e, uint32_t position) {
    struct fp_model *m = e->model;
    if (e->frames[position]) return e->frames[position];
    uint32_t p[FP_POSITION_WIDTH], f[FP_FUNCTION_WIDTH], line, mapping = 0;
    memcpy(p, fp_table_row(&e->positions, position), sizeof p);
    uint32_t function = p[FP_POSITION_FUNCTION];
    memcpy(f, fp_table_row(&m->functions, function), sizeof f);
    if (!function) {
        if ((f[FP_FUNCTION_NAME] = fp_strings_intern(&m->strings, "[unknown]", 9)) == FP_NO_ID) return FP_NO_ID;
        f[FP_FUNCTION_FILE] = p[FP_POSITION_FILE];
    }
    /* an unknown file or object has a name in graphs, but none in stacks */
    if (p[FP_POSITION_FILE] == e->unknown) p[FP_POSITION_FILE] = 0;
    if (f[FP_FUNCTION_FILE] == e->unknown) f[FP_FUNCTION_FILE] = 0;
    if (fp_table_row(&m->objects, f[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME] == e->unknown) f[FP_FUNCTION_OBJECT] = 0;
    if ((function = fp_model_function_row(m, f)) == FP_NO_ID) return FP_NO_ID;
    if (p[FP_POSITION_FILE] == f[FP_FUNCTION_FILE]) {
        line = fp_model_line(m, function, p[FP_POSITION_LINE], 0, 0);
    } else {
        uint32_t inlined = fp_model_function(m, f[FP_FUNCTION_OBJECT], p[FP_POSITION_FILE], f[FP_FUNCTION_NAME],
                                             f[FP_FUNCTION_SYSTEM_NAME], 0);
        line = fp_model_line(m, function, f[FP_FUNCTION_LINE], 0, 0);
        if (inlined == FP_NO_ID || line == FP_NO_ID) return FP_NO_ID;
        line = fp_model_line(m, inlined, p[FP_POSITION_LINE], 0, line);
    }
    if (line == FP_NO_ID) return FP_NO_ID;
    if (f[FP_FUNCTION_OBJECT]) {
        mapping = fp_model_mapping(m, f[FP_FUNCTION_OBJECT], 0, 0, 0,
                                   FP_MAPPING_HAS_FUNCTIONS | FP_MAPPING_HAS_FILENAMES | FP_MAPPING_HAS_LINES);
        if (mapping == FP_NO_ID) return FP_NO_ID;
    }
    return e->frames[position] = fp_model_frame(m, mapping, fp_words_u64(p + FP_POSITION_ADDRESS), 0, line);
}

/* Ends a stack at path[depth]; path[1] is the direct caller. */
static int add_context(struct fp_estimate *e, uint32_t depth, double share, int pruned) {
    if (fp_array_room(&e->contexts, &e->cap_contexts, (uint64_t)e->n_contexts + 1, sizeof *e->contexts))
        return FP_E_NOMEM;
    const uint32_t known = e->model->stacks.n, n_frames = depth;
    uint32_t stack = 0;
    if (pruned) stack = fp_model_stack(e->model, 0, e->pruned_frame);
    for (; depth && stack != FP_NO_ID; depth--) {
        uint32_t frame = frame_of(e, e->path[depth]);
        if (frame == FP_NO_ID) return FP_E_NOMEM;
        stack = fp_model_stack(e->model, stack, frame);
    }
    if (stack == FP_NO_ID) return FP_E_NOMEM;
    e->work_left -= FRAME_WORK * (int64_t)n_frames + (int64_t)NEW_WORK * (e->model->stacks.n - known);
    e->contexts[e->n_contexts++] = (struct fp_context){share, stack, pruned};
    return 0;
}

static int push_pending(struct fp_estimate *e, struct fp_pending item) {
    if (fp_array_room(&e->pending, &e->cap_pending, (uint64_t)e->n_pending + 1, sizeof *e->pending)) return FP_E_NOMEM;
    e->pending[e->n_pending++] = item;
    return 0;
}

/* Looks into the callers of path[depth] (depth 0: of `function`), whose share
 * is `share`.  What is too small to be followed is added to `*rest`. */
static int expand(struct fp_estimate *e, uint32_t function, uint32_t depth, double share, double cut, int steps_left,
                  double *rest) {
    const struct fp_caller *callers = e->callers + e->callers_start[function];
    const uint32_t n = e->callers_start[function + 1] - e->callers_start[function];
    if (depth == e->max_depth && !e->cut_is_pruned) return add_context(e, depth, share, 0);
    if (n && e->work_left <= 0) {
        e->limit_met = 1;
        *rest += share;
        return 0;
    }
    e->work_left -= (int64_t)n + 1;
    double weight = e->uncalled[function];
    uint32_t n_open = 0, only = 0;
    if (e->flags[function] & FP_ESTIMATE_IN_CYCLE) {
        for (uint32_t i = 0; i < n; i++) {
            if (e->flags[callers[i].function] & FP_ESTIMATE_ON_PATH) continue;
            weight += callers[i].weight;
            only = i;
            n_open++;
        }
    } else {
        weight += e->called[function];
        n_open = n;
    }
    if (!n_open || !(weight > 0)) return add_context(e, depth, share, 0);
    if (depth == e->max_depth) return add_context(e, depth, share, 1);
    if (steps_left <= 0) {
        e->limit_met = 1;
        *rest += share;
        return 0;
    }
    if (n_open == 1 && !(e->uncalled[function] > 0))
        return push_pending(e, (struct fp_pending){share, callers[only].position, depth + 1});

    double left = share;
    for (uint32_t i = 0; i < n; i++) {
        double part = share * (callers[i].weight / weight);
        if (part < cut || !(part > 0)) break; /* the heaviest come first */
        if (e->flags[callers[i].function] & FP_ESTIMATE_ON_PATH) continue;
        left -= part;
        if (push_pending(e, (struct fp_pending){part, callers[i].position, depth + 1})) return FP_E_NOMEM;
    }
    double part = share * (e->uncalled[function] / weight);
    if (part > 0 && part >= cut) {
        left -= part;
        if (add_context(e, depth, part, 0)) return FP_E_NOMEM;
    }
    if (left <= share * 1e-12) return 0; /* nothing but the rounding of doubles */
    if (depth && left >= (cut < 1 ? cut : 1)) return add_context(e, depth, left, 1);
    *rest += left;
    return 0;
}

static int largest_share_first(const void *a, const void *b) {
    const struct fp_context *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Finds how `function` came to be called, depth first over its callers. */
static int find_contexts(struct fp_estimate *e, uint32_t function) {
    const uint32_t n_rows = e->selfs_start[function + 1] - e->selfs_start[function];
    double cut = INFINITY, rest = 0;
    for (uint32_t k = 0; k < e->n_values; k++) {
        double self = 0;
        for (uint32_t i = e->selfs_start[function]; i < e->selfs_start[function + 1]; i++)
            self += fp_estimate_magnitude(fp_estimate_sums(e, e->selfs[i])[k]);
        if (self > 0 && e->prune * (e->total[k] / self) < cut) cut = e->prune * (e->total[k] / self);
    }
    e->n_contexts = e->n_pending = 0;
    e->limit_met = 0;
    e->flags[function] |= FP_ESTIMATE_ON_PATH;
    uint32_t depth = 0;
    int steps_left = MAX_STEPS, status = expand(e, function, 0, 1, cut, steps_left, &rest);
    while (!status && e->n_pending) {
        const struct fp_pending item = e->pending[--e->n_pending];
        for (; depth >= item.depth; depth--)
            e->flags[fp_estimate_function(e, e->path[depth])] &= (uint8_t)~FP_ESTIMATE_ON_PATH;
        depth = item.depth;
        if (fp_array_room(&e->path, &e->cap_path, (uint64_t)depth + 1, sizeof *e->path)) return FP_E_NOMEM;
        e->path[depth] = item.position;
        const uint32_t caller = fp_estimate_function(e, item.position);
        e->flags[caller] |= FP_ESTIMATE_ON_PATH;
        status = expand(e, caller, depth, item.share, cut, --steps_left, &rest);
    }
    for (; depth; depth--) e->flags[fp_estimate_function(e, e->path[depth])] &= (uint8_t)~FP_ESTIMATE_ON_PATH;
    e->flags[function] &= (uint8_t)~FP_ESTIMATE_ON_PATH;
    if (status) return status;

    if (e->n_contexts) qsort(e->contexts, e->n_contexts, sizeof *e->contexts, largest_share_first);
    const int64_t cells = e->work_left < 0 ? 0 : e->work_left < MAX_CELLS ? e->work_left : MAX_CELLS;
    const uint32_t most = (uint32_t)cells / (n_rows ? n_rows : 1) + 1;
    for (; e->n_contexts > most; e->n_contexts--) {
        e->limit_met = 1;
        rest += e->contexts[e->n_contexts - 1].share;
    }
    e->limited += e->limit_met;
    return rest > 0 || !e->n_contexts ? add_context(e, 0, rest, 1) : 0;
}

/* ---- dividing ----------------------------------------------------------- */

/* Parts of `amount` by the contexts' shares: rounded down, and the units that
 * are left to the largest remainders (of equal ones, to the first). */
static void divide(const struct fp_context *contexts, uint32_t n, int64_t amount, int64_t *parts,
                   struct fp_context *scratch) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t whole = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    uint64_t left = whole, weights = 0;
    const double unit = 0x1p52;
    for (uint32_t i = 0; i < n; i++) weights += (uint64_t)(contexts[i].share * unit);
    if (n == 1 || !weights) {
        memset(parts, 0, n * sizeof *parts);
        parts[0] = amount;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        u128 product = (u128)whole * (uint64_t)(contexts[i].share * unit);
        parts[i] = (int64_t)(uint64_t)(product / weights);
        left -= (uint64_t)parts[i];
        scratch[i] = (struct fp_context){(double)(uint64_t)(product % weights), i, 0};
    }
    if (left) {
        qsort(scratch, n, sizeof *scratch, largest_share_first);
        for (uint32_t i = 0; i < left; i++) parts[scratch[i].stack]++;
    }
    if (amount < 0)
        for (uint32_t i = 0; i < n; i++) parts[i] = (int64_t)(0 - (uint64_t)parts[i]);
}

/* Divides the costs of the row at hand over the contexts. */
static int divide_row(struct fp_estimate *e) {
    const uint32_t n = e->n_contexts;
    /* the scratch of the division lies behind the parts: two words an entry */
    const uint64_t need = (uint64_t)n * (e->n_values + 2);
    if (fp_array_room(&e->parts, &e->cap_parts, need, sizeof *e->parts)) return FP_E_NOMEM;
    struct fp_context *scratch = (void *)(e->parts + (size_t)n * e->n_values);
    const int64_t *sums = fp_estimate_sums(e, e->selfs[e->row]);
    for (uint32_t k = 0; k < e->n_values; k++) divide(e->contexts, n, sums[k], e->parts + (size_t)k * n, scratch);
    return 0;
}

int fp_estimate_pull(struct fp_estimate *e, struct fp_batch *out, struct fp_err *err) {
    for (; e->function < e->n_functions; e->function++) {
        const uint32_t end = e->selfs_start[e->function + 1];
        if (e->row == end) continue;
        if (e->row == e->selfs_start[e->function] && !e->context && find_contexts(e, e->function))
            return fp_estimate_no_memory(err);
        for (; e->row < end; e->row++, e->context = 0) {
            if (!e->context && divide_row(e)) return fp_estimate_no_memory(err);
            const uint32_t position = fp_table_row(&e->rows, e->selfs[e->row])[0], n = e->n_contexts;
            for (; e->context < n; e->context++) {
                int64_t any = 0;
                for (uint32_t k = 0; k < e->n_values; k++) any |= e->parts[(size_t)k * n + e->context];
                if (!any) continue;
                if (out->n == out->cap) return FP_FULL;
                const uint32_t known = e->model->stacks.n;
                uint32_t frame = frame_of(e, position), stack = FP_NO_ID;
                if (frame != FP_NO_ID) stack = fp_model_stack(e->model, e->contexts[e->context].stack, frame);
                if (stack == FP_NO_ID) return fp_estimate_no_memory(err);
                e->work_left -= FRAME_WORK + NEW_WORK * (e->model->stacks.n != known);
                const uint32_t i = out->n++;
                out->stack[i] = stack;
                out->thread[i] = e->thread;
                out->label[i] = 0;
                out->time[i] = 0;
                for (uint32_t k = 0; k < e->n_values; k++)
                    out->values[(size_t)k * out->cap + i] = e->parts[(size_t)k * n + e->context];
                e->stacks++;
                e->pruned += e->contexts[e->context].pruned != 0;
            }
        }
    }
    return FP_DONE;
}
