/* Stacks of a DHAT profile -> rows. */
#include "valgrind/dhat_private.h"

/* The end of the run of places from `first` on that form one frame: inlined functions share the address of their
 * caller.  A function that occurs again at the same address is recursive. */
static uint32_t frame_end(const struct fp_dhat_reader *d, const uint32_t *fs, uint32_t first, uint32_t n) {
    const uint32_t text = d->table[fs[first]];
    const uint64_t address = d->places[text].address;
    uint32_t end = first + 1;
    for (; address && end < n && d->table[fs[end]] != text; end++)
        if (d->places[d->table[fs[end]]].address != address) break;
    return end;
}

/* The frame of the places [first, last) of a stack, which share an address. */
static uint32_t new_frame(struct fp_dhat_reader *d, const uint32_t *first, const uint32_t *last) {
    uint32_t chain = 0;
    for (const uint32_t *i = last; i > first; i--) {
        const struct fp_dhat_place *place = &d->places[d->table[i[-1]]];
        if (place->function) chain = fp_model_line(d->model, place->function, place->line, 0, chain);
    }
    const uint32_t text = d->table[*first];
    const uint32_t frame = fp_model_frame(d->model, 0, d->places[text].address, 0, chain);
    if (fp_dhat_is_alone(d, text)) d->frame_of[*first] = frame;
    return frame;
}

/* Removes indices beyond the frame table from the first n of d->fs (lenient); returns how many are left. */
static uint32_t drop_bad_frames(struct fp_dhat_reader *d, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (d->fs[i] < d->n_table && d->table[d->fs[i]])
            d->fs[kept++] = d->fs[i];
        else
            d->pub.bad_frames++;
    }
    return kept;
}

/* Appends the frames of a stack of the file to d->frames, of which there are *n. */
static void frames_of(struct fp_dhat_reader *d, uint32_t stack, uint32_t *n) {
    size_t nbytes;
    const uint8_t *p = fp_string(&d->pub.stacks.keys, stack, &nbytes), *const stop = p + nbytes;
    uint32_t n_fs = 0;
    fp_array_room(&d->fs, &d->cap_fs, nbytes, sizeof *d->fs); /* an index takes a byte or more */
    for (uint64_t index; p < stop; d->fs[n_fs++] = (uint32_t)index) p = fp_varint_read(p, &index);
    fp_array_room(&d->frames, &d->cap_frames, (uint64_t)*n + n_fs, sizeof *d->frames);
    fp_array_zeroed(&d->frame_of, &d->cap_frame_of, d->n_table, sizeof *d->frame_of);
    if (d->lenient || d->has_empty) n_fs = drop_bad_frames(d, n_fs);
    const uint32_t *const fs = d->fs;
    for (uint32_t i = 0, end; i < n_fs; i = end) {
        uint32_t frame = d->frame_of[fs[i]];
        end = i + 1;
        if (FP_UNLIKELY(!frame)) {
            end = frame_end(d, fs, i, n_fs);
            frame = new_frame(d, fs + i, fs + end);
        }
        d->frames[(*n)++] = frame;
    }
}

/* Enters the stacks from `first` on into the model, FP_MODEL_STACKS at most. */
static void enter(struct fp_dhat_reader *d, uint32_t first, uint32_t *nodes) {
    uint32_t depths[FP_MODEL_STACKS], n_frames = 0, n = 0;
    for (; n < FP_MODEL_STACKS && first + n < d->pub.stacks.keys.n; n++) {
        const uint32_t before = n_frames;
        frames_of(d, first + n, &n_frames);
        depths[n] = n_frames - before;
    }
    fp_array_room(&d->frames, &d->cap_frames, 1, sizeof *d->frames); /* no frames at all */
    fp_model_stacks(d->model, d->frames, depths, n, nodes);
}

/* Enters all stacks, to compare them. */
static void enter_stacks(struct fp_dhat_reader *d) {
    fp_array_room(&d->nodes, &d->cap_nodes, d->pub.stacks.keys.n, sizeof *d->nodes);
    for (uint64_t first = 0; first < d->pub.stacks.keys.n; first += FP_MODEL_STACKS)
        enter(d, (uint32_t)first, d->nodes + first);
}

static int has_row(const struct fp_dhat_reader *d, uint32_t stack) {
    if (!stack && !fp_dhat_sums_of(d, 0)->v[FP_DHAT_TB] && !fp_dhat_sums_of(d, 0)->v[FP_DHAT_TBK])
        return 0; /* no point without frames */
    return !d->nodes || d->nodes[stack] != FP_NO_ID;
}

/* Adds up stacks that became one: entries of the frame table may be equal, or bad (lenient).  All but the first get the
 * node FP_NO_ID.  0 or an error. */
static int merge_stacks(struct fp_dhat_reader *d, uint32_t n_stacks, struct fp_err *err) {
    uint32_t *const first = fp_scratch(d->model->stacks.n, sizeof *first); /* by node: its first stack, plus 1 */
    int status = 0;
    for (uint32_t i = 0; i < n_stacks && !status; i++) {
        if (d->nodes[i] == FP_NO_ID) continue;
        uint32_t *const known = &first[d->nodes[i]];
        if (!*known) {
            *known = i + 1;
            continue;
        }
        const struct fp_dhat_sums *more = fp_dhat_sums_of(d, i);
        const uint64_t broken = d->pub.broken;
        status = fp_dhat_add(d, *known - 1, more->v, more->at, err);
        if (d->pub.broken != broken) d->pub.broken = broken + more->n; /* all its points are lost */
        d->nodes[i] = FP_NO_ID;
    }
    fp_scratch_free(first);
    return status;
}

/* Whether two of the stacks have the same node, by a bit for each node. */
static int has_equal_stacks(const struct fp_dhat_reader *d, uint32_t n_stacks) {
    uint64_t *const seen = fp_scratch(d->model->stacks.n / 64 + 1, sizeof *seen);
    int found = 0;
    for (uint32_t i = 0; i < n_stacks && !found; i++) {
        if (d->nodes[i] == FP_NO_ID) continue;
        uint64_t *const word = &seen[d->nodes[i] / 64];
        const uint64_t bit = (uint64_t)1 << d->nodes[i] % 64;
        found = (*word & bit) != 0;
        *word |= bit;
    }
    fp_scratch_free(seen);
    return found;
}

static int end_stacks(struct fp_dhat_reader *d, struct fp_err *err) {
    const uint32_t n_stacks = d->pub.stacks.keys.n;
    enter_stacks(d);
    if (n_stacks && !has_row(d, 0)) d->nodes[0] = FP_NO_ID;
    return has_equal_stacks(d, n_stacks) ? merge_stacks(d, n_stacks, err) : 0;
}

/* Whether different stacks of the file may be equal in the model. */
static int may_be_equal(struct fp_dhat_reader *d) {
    struct fp_table *const seen = &d->places_seen;
    if (d->lenient || d->has_empty) return 1;
    int found = 0;
    fp_table_init(seen, 4);
    for (uint32_t i = 0; i < d->n_table && !found; i++) {
        const struct fp_dhat_place *p = &d->places[d->table[i]];
        const uint32_t row[] = {FP_WORDS(p->address), p->function, p->line};
        const uint32_t known = seen->n, id = fp_table_intern(seen, row);
        const int is_hidden =
            !p->function && p->address && !fp_dhat_is_alone(d, d->table[i]); /* by a function inlined there */
        found = id != known || is_hidden;
    }
    fp_table_clear(seen);
    return found;
}

/* Before the first row: adds up stacks that are equal. */
static int begin_rows(struct fp_dhat_reader *d, struct fp_err *err) {
    const int status = may_be_equal(d) ? end_stacks(d, err) : 0;
    d->is_begun = !status;
    return status;
}

/* Enters the next stack with others, and again when the model has dropped them. */
static void enter_next(struct fp_dhat_reader *d) {
    const uint64_t bad_frames = d->pub.bad_frames; /* they were counted when equal stacks were added up */
    d->entered = d->next - d->next % FP_MODEL_STACKS;
    d->n_renewed = d->model->n_renewed;
    d->n_entered = FP_MODEL_STACKS;
    enter(d, d->entered, d->entered_nodes);
    d->pub.bad_frames = bad_frames;
}

int fp_dhat_rows(struct fp_dhat *pub, struct fp_batch *out, struct fp_err *err) {
    struct fp_dhat_reader *d = (struct fp_dhat_reader *)pub;
    FP_TRY(d->is_begun ? 0 : begin_rows(d, err));
    for (; d->next < d->pub.stacks.keys.n; d->next++) {
        if (!has_row(d, d->next)) continue;
        if (out->n == out->cap) return FP_FULL;
        if (d->next - d->entered >= d->n_entered || d->n_renewed != d->model->n_renewed) enter_next(d);
        const struct fp_dhat_sums *sums = fp_dhat_sums_of(d, d->next);
        const uint32_t i = fp_batch_sample(out, d->entered_nodes[d->next - d->entered], 0, 0, 0);
        for (uint32_t k = 0; k < d->pub.n_columns; k++)
            out->values[(size_t)k * out->cap + i] = sums->v[d->pub.columns[k]];
    }
    return FP_DONE;
}
