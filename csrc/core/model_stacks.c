/* Stacks of the model: a tree of (parent, frame), and what replaces their frames.  See fp_model_replace_frames. */
#include "core/array.h"
#include "core/guard.h"
#include "core/memory.h"
#include "core/model.h"

/* (parent, node) of the last node with this frame, see fp_model.last; NULL when memory ran out. */
static inline uint32_t *last_of(struct fp_model *m, uint32_t frame) {
    if (FP_UNLIKELY(frame >= m->cap_last)) {
        uint64_t cap = (uint64_t)frame + frame / 2 + 64;
        const size_t had = (size_t)m->cap_last * 2 * sizeof *m->last;
        uint32_t *last = cap < UINT32_MAX ? fp_grow(m->last, had, (size_t)cap * 2 * sizeof *last) : NULL;
        if (!last) return NULL;
        memset(last + (size_t)m->cap_last * 2, 0, (size_t)(cap - m->cap_last) * 2 * sizeof *last);
        m->last = last;
        m->cap_last = (uint32_t)cap;
    }
    return m->last + (size_t)frame * 2;
}

static uint32_t no_id(void) {
    (void)fp_escape();
    return FP_NO_ID;
}

static uint32_t intern_stack(struct fp_model *m, uint32_t parent, uint32_t frame) {
    uint32_t *last = last_of(m, frame);
    if (!last) return no_id();
    if (FP_LIKELY(last[1] && last[0] == parent)) return last[1];
    uint32_t node = fp_table_intern(&m->stacks, (uint32_t[]){parent, frame});
    if (node == FP_NO_ID) return FP_NO_ID;
    last[0] = parent;
    return last[1] = node;
}

/* The same, with what this step and those after it replace the frame with. */
static uint32_t replaced_stack(struct fp_model *m, int step, uint32_t node, uint32_t frame) {
    for (; step < FP_FRAMES_STEPS; step++) {
        const struct fp_frames *by = m->replaced[step];
        uint32_t n;
        const uint32_t *frames = by && by->of ? by->of(by->arg, frame, &n) : NULL;
        if (!frames) continue;
        for (uint32_t i = 0; i < n && node != FP_NO_ID; i++) node = replaced_stack(m, step + 1, node, frames[i]);
        return node;
    }
    return intern_stack(m, node, frame);
}

void fp_model_replace_frames(struct fp_model *m, enum fp_frames_step step, struct fp_frames *frames) {
    fp_frames_release(m->replaced[step]);
    m->replaced[step] = frames;
    frames->n_owners++;
}

static inline int replaces_frames(const struct fp_model *m) {
    return m->replaced[FP_FRAMES_NAMED] || m->replaced[FP_FRAMES_ONLY_NAMES];
}

uint32_t fp_model_stack(struct fp_model *m, uint32_t parent, uint32_t frame) {
    return FP_UNLIKELY(replaces_frames(m)) ? replaced_stack(m, 0, parent, frame) : intern_stack(m, parent, frame);
}

/* Adds what a frame is replaced with by this step and those after it to m->path. */
static int expand(struct fp_model *m, int step, uint32_t frame) {
    for (; step < FP_FRAMES_STEPS; step++) {
        const struct fp_frames *by = m->replaced[step];
        uint32_t n;
        const uint32_t *frames = by && by->of ? by->of(by->arg, frame, &n) : NULL;
        if (!frames) continue;
        for (uint32_t i = 0; i < n; i++) FP_TRY(expand(m, step + 1, frames[i]));
        return 0;
    }
    FP_TRY(fp_array_room(&m->path, &m->cap_path, (uint64_t)m->n_path + 1, sizeof *m->path));
    m->path[m->n_path++] = frame;
    return 0;
}

/* Adds the stack of n frames from the root on, of which the next is `step` words on.  Below a node that is new, all
 * are: their ids follow each other, so their slots are known before they are added. */
static uint32_t add_path(struct fp_model *m, const uint32_t *frame, ptrdiff_t step, uint32_t n) {
    enum { AHEAD = 64 };
    const uint32_t first = m->stacks.n;
    uint32_t node = 0, hashes[AHEAD];
    for (; n && node < first; n--, frame += step) node = intern_stack(m, node, *frame);
    while (n && node != FP_NO_ID) {
        const uint32_t some = n < AHEAD ? n : AHEAD;
        for (uint32_t i = 0; i < some; i++) {
            hashes[i] = fp_table_hash((uint32_t[]){node + i, frame[i * step]}, FP_STACK_WIDTH);
            fp_table_prefetch(&m->stacks, hashes[i]);
        }
        for (uint32_t i = 0; i < some && node != FP_NO_ID; i++, frame += step)
            node = fp_table_intern_hashed(&m->stacks, (uint32_t[]){node, *frame}, hashes[i]);
        n -= some;
    }
    return node;
}

uint32_t fp_model_path(struct fp_model *m, const uint32_t *frames, uint32_t n) {
    if (!replaces_frames(m)) return n ? add_path(m, frames + n - 1, -1, n) : 0;
    m->n_path = 0;
    while (n)
        if (expand(m, 0, frames[--n])) return no_id();
    return add_path(m, m->path, 1, m->n_path);
}

uint32_t fp_model_stack_once(struct fp_model *m, uint32_t parent, uint32_t frame) {
    return fp_table_append(&m->stacks, (uint32_t[]){parent, frame});
}

/* fp_model_stacks, one after the other: a frame may become several. */
static int replaced_stacks(struct fp_model *m, const uint32_t *frames, const uint32_t *depths, uint32_t n,
                           uint32_t *nodes) {
    for (uint32_t k = 0; k < n; k++) {
        nodes[k] = fp_model_path(m, frames, depths[k]);
        if (nodes[k] == FP_NO_ID) return FP_E_NOMEM;
        frames += depths[k];
    }
    return 0;
}

int fp_model_stacks(struct fp_model *m, const uint32_t *frames, const uint32_t *depths, uint32_t n, uint32_t *nodes) {
    struct {
        const uint32_t *next; /* the next frame to add; those nearer to the root are done */
        uint32_t left, stack, hash;
        uint32_t row[FP_STACK_WIDTH];
    } open[FP_MODEL_STACKS];
    uint32_t n_open = 0;
    if (replaces_frames(m)) return replaced_stacks(m, frames, depths, n, nodes);
    for (uint32_t k = 0; k < n; k++) {
        frames += depths[k];
        nodes[k] = 0;
        if (depths[k]) {
            open[n_open].next = frames - 1;
            open[n_open].left = depths[k];
            open[n_open++].stack = k;
        }
    }
    while (n_open) {
        for (uint32_t k = 0; k < n_open; k++) {
            open[k].row[FP_STACK_PARENT] = nodes[open[k].stack];
            open[k].row[FP_STACK_FRAME] = *open[k].next--;
            open[k].hash = fp_table_hash(open[k].row, FP_STACK_WIDTH);
            fp_table_prefetch(&m->stacks, open[k].hash);
        }
        for (uint32_t k = 0; k < n_open; k++) fp_table_guess(&m->stacks, open[k].hash);
        uint32_t still = 0;
        for (uint32_t k = 0; k < n_open; k++) {
            uint32_t node = fp_table_intern_hashed(&m->stacks, open[k].row, open[k].hash);
            if (node == FP_NO_ID) return FP_E_NOMEM;
            nodes[open[k].stack] = node;
            if (--open[k].left) open[still++] = open[k];
        }
        n_open = still;
    }
    return 0;
}
