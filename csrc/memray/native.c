/* Nodes of stacks, and native frames.  A stack joins those of native code and of Python: each call of the interpreter's
 * loop becomes the frames of Python that it executed.
 *
 *   native    main > run_code > LOOP > call > builtin_len > len_slot > LOOP > alloc
 *   Python    <module>* > f > __len__*                             * the loop was called for it
 *   joined    main > run_code > <module> > f > call > builtin_len > len_slot > __len__ > alloc
 *
 * As memray's hybrid_stack_trace (src/memray/_memray.pyx).
 */
#include "memray/state.h"

/* Frames that are looked at: a few for each byte of a usual file. */
enum { STEPS_OF_A_SUM = 4096 };
static const uint64_t MOST_STEPS = 1u << 28;
/* Frames that are requested: each once for each time that the images changed, so a few for each sum or frame. */
enum { WANTED = 1 << 18, WANTED_OF_ONE = 32 };

void fp_memray_add_node(struct fp_memray_reader *r, uint32_t frame, uint32_t parent) {
    const uint32_t n = ++r->n_nodes;
    fp_array_zeroed(&r->nodes, &r->cap_nodes, FP_NODE_WORDS * ((uint64_t)n + 1), sizeof *r->nodes);
    uint32_t *words = fp_memray_node(r, n);
    words[FP_NODE_FRAME] = frame;
    words[FP_NODE_PARENT] = parent;
    words[FP_NODE_DEPTH] = 1 + fp_memray_node(r, parent)[FP_NODE_DEPTH];
}

uint32_t fp_memray_stack(struct fp_memray_reader *r, uint32_t node, int is_main) {
    const size_t which = is_main ? FP_NODE_MAIN_STACK : FP_NODE_STACK;
    const uint64_t hidden = is_main ? r->f.hidden : 0;
    uint32_t n = 0, at = node, stack;
    for (; at && fp_memray_node(r, at)[FP_NODE_DEPTH] > hidden && !fp_memray_node(r, at)[which]; n++)
        at = fp_memray_node(r, at)[FP_NODE_PARENT];
    stack = at ? fp_memray_node(r, at)[which] : 0;
    uint32_t *way = fp_scratch((size_t)n + 1, sizeof *way);
    at = node;
    for (uint32_t i = n; i-- > 0; at = fp_memray_node(r, at)[FP_NODE_PARENT]) way[i] = at;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *words = fp_memray_node(r, way[i]);
        words[which] = stack = fp_model_stack(r->model, stack, words[FP_NODE_FRAME] / 2);
    }
    fp_scratch_free(way);
    return stack;
}

int fp_memray_read_native(struct fp_memray_reader *r, struct fp_cursor *c) {
    const uint64_t address = r->instruction + fp_cursor_delta(c), caller = r->native + fp_cursor_delta(c);
    if (c->status) return c->status;
    if (caller > r->n_natives) return fp_memray_bad(r, "the caller of a native frame is not defined", NULL);
    r->instruction = address, r->native = caller;
    fp_array_room(&r->natives, &r->cap_natives, (uint64_t)r->n_natives + 2, sizeof *r->natives);
    r->natives[++r->n_natives] = (struct fp_memray_native){address, (uint32_t)caller};
    return 0;
}

int fp_memray_read_image(struct fp_memray_reader *r, struct fp_cursor *c) {
    const struct fp_cursor_text name = fp_cursor_text(c);
    const uint64_t n = fp_cursor_number(c), base = fp_cursor_fixed(c, 8);
    const uint8_t *const segments = c->p;
    uint64_t lowest = UINT64_MAX;
    for (uint64_t i = 0; i < n && !c->status; i++) {
        if (fp_cursor_fixed(c, 1) != 8 && !c->status) return fp_memray_bad(r, "a segment of an image", "08");
        const uint64_t address = fp_cursor_fixed(c, 8);
        lowest = address < lowest ? address : lowest;
        (void)fp_cursor_number(c);
    }
    if (c->status) return c->status;
    const uint32_t object = fp_model_object(r->model, fp_strings_intern(&r->model->strings, name.p, name.n), 0);
    c->p = segments;
    for (uint64_t i = 0; i < n; i++) {
        (void)fp_cursor_fixed(c, 1);
        const uint64_t address = fp_cursor_fixed(c, 8), nbytes = fp_cursor_number(c), start = base + address;
        if (c->status || !nbytes || nbytes > UINT64_MAX - start) continue;
        const uint32_t mapping =
            fp_model_mapping(r->model, object, start, start + nbytes, address - lowest, FP_MAPPING_FROM_BASE);
        FP_PUSH(r->images, r->n_images, r->cap_images) = (struct fp_memray_image){start, start + nbytes, mapping};
    }
    return 0;
}

FP_ORDER(by_start, struct fp_memray_image, start)

/* The mapping of an address, 0: none. */
static uint32_t mapping_of(const struct fp_memray_reader *r, uint64_t address, uint32_t first, uint32_t end) {
    uint32_t low = first;
    FP_BISECT(low, end, r->images[low].start <= address);
    return low > first && address < r->images[low - 1].limit ? r->images[low - 1].mapping : 0;
}

static uint64_t native_of(const uint32_t *key) {
    return key[2] | (uint64_t)key[3] << 32;
}

/* The images of an epoch: *first up to *end. */
static void images_of(const struct fp_memray_reader *r, uint32_t epoch, uint32_t *first, uint32_t *end) {
    *first = epoch ? r->epochs[epoch - 1] : 0;
    *end = epoch < r->n_epochs ? r->epochs[epoch] : r->n_images;
}

/* Requests the frames of a native stack in an epoch that were not requested yet. */
static int want(struct fp_memray_reader *r, uint64_t number, uint32_t epoch) {
    const uint64_t most = WANTED + WANTED_OF_ONE * ((uint64_t)r->n_natives + r->f.heap.n);
    uint32_t first, end;
    if (number > r->n_natives) return fp_memray_bad(r, "a native frame of a sum is not defined", NULL);
    images_of(r, epoch, &first, &end);
    for (uint32_t at = (uint32_t)number; at; at = r->natives[at].caller) {
        const uint32_t row = fp_table_intern(&r->wanted_keys, (uint32_t[2]){at, epoch});
        if (row < r->f.n_wanted) return 0;
        if (row > most) return fp_memray_bad(r, "the stacks of native frames", "fewer frames");
        fp_array_zeroed(&r->f.wanted, &r->cap_wanted, (uint64_t)row + 1, sizeof *r->f.wanted);
        const uint64_t address = r->natives[at].address;
        const uint32_t mapping = mapping_of(r, address, first, end);
        const uint32_t frame = fp_model_frame(r->model, mapping, address, FP_FRAME_RETURN_ADDRESS, 0);
        r->f.wanted[row] = (struct fp_memray_wanted){frame, 0, first, end};
        r->f.n_wanted = row + 1;
    }
    return 0;
}

int fp_memray_want(struct fp_memray_reader *r) {
    uint32_t first, end, cap = 0;
    for (uint32_t epoch = 0; epoch <= r->n_epochs; epoch++) {
        images_of(r, epoch, &first, &end);
        if (end > first) qsort(r->images + first, end - first, sizeof *r->images, by_start);
    }
    fp_array_zeroed(&r->f.images, &cap, (uint64_t)r->n_images + 1, sizeof *r->f.images);
    for (uint32_t i = 0; i < r->n_images; i++) r->f.images[i] = r->images[i].mapping;
    r->f.n_wanted = 1; /* row 0 is none */
    for (uint32_t sum = 1; sum < r->f.heap.n; sum++) {
        const uint32_t *key = fp_table_row(&r->sums, sum);
        FP_TRY(want(r, native_of(key), key[4]));
    }
    return 0;
}

/* The number of frames of a native stack, whose indices of `wanted` are then in native_way. */
static uint32_t way_of_native(struct fp_memray_reader *r, uint64_t number, uint32_t epoch) {
    uint32_t n = 0;
    for (uint32_t at = (uint32_t)number; at; at = r->natives[at].caller)
        FP_PUSH(r->native_way, n, r->cap_native_way) = fp_table_find(&r->wanted_keys, (uint32_t[2]){at, epoch});
    return n;
}

static uint32_t way_of_python(struct fp_memray_reader *r, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t at = node; at; at = fp_memray_node(r, at)[FP_NODE_PARENT])
        FP_PUSH(r->way, n, r->cap_way) = fp_memray_node(r, at)[FP_NODE_FRAME];
    return n;
}

/* The stack of a sum. */
static uint32_t joined(struct fp_memray_reader *r, const uint32_t *key, int is_main) {
    const uint32_t n_native = way_of_native(r, native_of(key), key[4]), n = way_of_python(r, key[0]);
    const uint64_t hidden = is_main ? r->f.hidden : 0;
    uint32_t stack = 0, used = 0; /* frames of Python, from the root */
    r->n_steps += (uint64_t)n + n_native;
    for (uint32_t i = n_native; i-- > 0;) {
        const struct fp_memray_wanted *native = &r->f.wanted[r->native_way[i]];
        const int is_loop = native->answer && used < n;
        if (!is_loop) {
            stack = fp_model_stack(r->model, stack, native->frame);
            continue;
        }
        do { /* the frame for which the loop was called, and those for which it was not */
            if (hidden && used == hidden) stack = 0;
            stack = fp_model_stack(r->model, stack, r->way[n - 1 - used] / 2);
            used++;
        } while (used < n && !(r->way[n - 1 - used] & 1));
        if (native->answer != FP_MEMRAY_LOOP) stack = fp_model_stack(r->model, stack, native->answer);
    }
    if (used == n) return stack;
    r->f.unpaired += n_native != 0;
    return fp_memray_stack(r, key[0], is_main);
}

int fp_memray_join(struct fp_memray_reader *r) {
    const uint64_t id = r->f.main_thread;
    const uint32_t row = fp_table_find(&r->thread_ids, (uint32_t[2]){FP_WORDS(id)});
    const uint32_t main = row < r->f.n_threads && r->threads[row].id == id ? r->threads[row].thread : FP_NO_ID;
    for (uint32_t sum = 1; sum < r->f.heap.n; sum++) {
        const uint32_t *key = fp_table_row(&r->sums, sum);
        r->f.heap.sums[sum].stack = joined(r, key, key[1] == main);
        if (r->n_steps > MOST_STEPS + STEPS_OF_A_SUM * (uint64_t)sum)
            return fp_memray_bad(r, "the stacks of native frames", "fewer frames");
    }
    return 0;
}
