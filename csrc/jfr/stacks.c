/* Stacks, their frames, and threads. */
#include "jfr/stack_memo.h"

uint32_t fp_jfr_name_frame(struct fp_jfr_reader *r, const void *name, size_t n) {
    return fp_model_name_frame(r->model, fp_strings_intern(&r->model->strings, name, n));
}

/* ---- frames ---- */

/* A line or bytecode index counted from 1, 0 if unknown; `from`: the smallest valid one. */
static uint32_t known(const struct fp_jfr_slot *slot, int64_t from) {
    const int64_t n = slot->kind == FP_JFR_IS_NUMBER ? (int64_t)slot->n : -1;
    return n >= from && n < UINT32_MAX - 1 ? (uint32_t)(n + 1 - from) : 0;
}

/* The frame with these fields, and the row of its method: see fp_jfr_function. */
static uint32_t new_frame(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end,
                          uint32_t *method) {
    int native = 0;
    const uint32_t function =
        fp_jfr_function(r, &slots[FP_JFR_FRAME_METHOD], &slots[FP_JFR_FRAME_TYPE], end, &native, method);
    /* the bytecode index is stored as a column; columns count from 1 */
    const uint32_t line = native ? 0 : known(&slots[FP_JFR_FRAME_LINE], 1);
    const uint32_t column = native ? 0 : known(&slots[FP_JFR_FRAME_BYTECODE], 0);
    return fp_model_line_frame(r->model, function, line, column);
}

/* The end of n varints that have 16 bytes or less in all, which can be read; these bytes into `low` and `high`.  NULL
 * if they have more, or one of them may have 9 bytes.
 *
 *   8a 31 | 07 | 2b | 05 | ...    n = 4: low = 052b07318a, high = 0
 */
static inline const uint8_t *short_value(const uint8_t *p, uint32_t n, uint64_t *low, uint64_t *high) {
    const uint64_t first = fp_u64(p);
    uint64_t stops = fp_jfr_stops(first), last = 0;
    *high = 0;
    for (; stops && n > 1; n--) {
        last = stops & -stops;
        stops ^= last;
    }
    if (FP_LIKELY(stops != 0)) {
        *low = first & (stops ^ (stops - 1));
        return p + (__builtin_ctzll(stops) >> 3) + 1;
    }
    const uint64_t second = fp_u64(p + 8);
    *low = first;
    stops = fp_jfr_stops(second);
    /* a varint that ends in the second word has 9 bytes or more, unless it ends before the place where the last one
     * ended in the first */
    if (!last || (stops & -stops) >= last) return NULL;
    for (; stops && n > 1; n--) stops &= stops - 1;
    if (!stops) return NULL;
    *high = second & (stops ^ (stops - 1));
    return p + 8 + (__builtin_ctzll(stops) >> 3) + 1;
}

/* A frame's place in the cache is one of the two from here on. */
static inline struct fp_jfr_frame *cached(const struct fp_jfr_reader *r, uint64_t low, uint64_t high) {
    return &r->stacks.cache[fp_mix(low, high) & (FP_JFR_CACHE - 2)];
}

static inline int is_frame(const struct fp_jfr_frame *one, const struct fp_jfr_frame *wanted) {
    return one->low == wanted->low && one->high == wanted->high && one->epoch == wanted->epoch &&
           one->type == wanted->type;
}

/* Decodes a frame from p on, and enters it at its place in the cache. */
static void enter_frame(struct fp_jfr_reader *r, struct fp_jfr_frame wanted, const uint8_t *p, const uint8_t *end,
                        struct fp_jfr_frame *place) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    wanted.frame = fp_jfr_decode(r, wanted.type, p, end, slots) ? new_frame(r, slots, end, &wanted.method) : 0;
    place[1] = place[0];
    place[0] = wanted;
}

/* ---- stacks ---- */

/* Reads a frame whose type is a key at p.  Returns its end, or NULL. */
static const uint8_t *keyed_frame(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                                  uint32_t *frame) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS], key = {.kind = FP_JFR_IS_KEY, .type = type};
    *frame = 0;
    if (!(p = fp_jfr_number(r, p, end, 8, &key.n))) return NULL;
    struct fp_jfr_constant *constant = fp_jfr_find(r, &key);
    if (!constant) {
        r->counts.dangling++;
        return p;
    }
    if (!constant->known) {
        const uint8_t *value_end = r->constants.arena + r->constants.arena_n;
        uint32_t method;
        if (fp_jfr_decode(r, type, r->constants.arena + constant->at - 1, value_end, slots))
            *frame = new_frame(r, slots, value_end, &method);
        constant->known = *frame + 1;
        return p;
    }
    *frame = constant->known - 1;
    return p;
}

enum { TOGETHER = 32 }; /* frames that wait for memory together */

/* Up to n frames of `varints` numbers each, at p, if they are short; *p: their end.  Most are among the last ones in
 * the cache.  Their number. */
static uint32_t short_frames(struct fp_jfr_reader *r, uint32_t type, uint32_t varints, const uint8_t **p,
                             const uint8_t *end, uint32_t n, uint32_t *frames, uint32_t *methods) {
    struct {
        const uint8_t *p;
        struct fp_jfr_frame *place;
        uint64_t low, high;
    } found[TOGETHER];
    uint32_t k = 0;
    const uint8_t *at = *p;
    while (k < n && k < TOGETHER && end - at >= 16) {
        const uint8_t *next = short_value(at, varints, &found[k].low, &found[k].high);
        if (!next) break;
        found[k].place = cached(r, found[k].low, found[k].high);
        __builtin_prefetch(found[k].place);
        found[k++].p = at;
        at = next;
    }
    *p = at;
    struct fp_jfr_frame wanted = {.epoch = r->constants.epoch, .type = type};
    for (uint32_t i = 0; i < k; i++) {
        struct fp_jfr_frame *place = found[i].place;
        wanted.low = found[i].low;
        wanted.high = found[i].high;
        const struct fp_jfr_frame *one = is_frame(place, &wanted) ? place : place + 1;
        if (FP_UNLIKELY(one != place && !is_frame(one, &wanted))) {
            enter_frame(r, wanted, found[i].p, end, place);
            one = place;
        }
        frames[i] = one->frame;
        methods[i] = one->method;
    }
    return k;
}

/* The frame of a value at p.  Its end, or NULL. */
static const uint8_t *inline_frame(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                                   uint32_t *frame, uint32_t *method) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (!(p = fp_jfr_decode(r, type, p, end, slots))) return NULL;
    *frame = new_frame(r, slots, end, method);
    return p;
}

/* Reads the frames of an array into r->stacks.frames, leaf first, and their methods.  Returns their number. */
static uint32_t frames_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *array, const uint8_t *end) {
    const uint32_t type = array->type;
    uint64_t n;
    const uint8_t *p = fp_jfr_number(r, array->p, end, 4, &n);
    if (!p || n > (uint64_t)(end - p) || r->metadata.types[type].role != FP_JFR_FRAME) return 0;
    fp_array_room(&r->stacks.frames, &r->stacks.cap_frames, n, sizeof *r->stacks.frames);
    fp_array_zeroed(&r->stacks.frame_methods, &r->stacks.cap_frame_methods, n, sizeof *r->stacks.frame_methods);
    const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
    const uint32_t varints = array->of_keys ? 0 : program->varints;
    for (uint32_t i = 0; i < n;) {
        uint32_t *frame = r->stacks.frames + i, *method = r->stacks.frame_methods + i;
        const uint32_t found = varints ? short_frames(r, type, varints, &p, end, (uint32_t)n - i, frame, method) : 0;
        i += found;
        if (found) continue;
        *method = 0;
        p = array->of_keys ? keyed_frame(r, type, p, end, frame) : inline_frame(r, type, p, end, frame, method);
        if (!p) return i;
        i++;
    }
    return (uint32_t)n;
}

/* The first n of r->stacks.frames without those that are unknown, and with the root of a stack that was cut.  Their
 * number. */
static uint32_t complete(struct fp_jfr_reader *r, uint32_t n, int cut) {
    uint32_t kept = 0;
    fp_array_room(&r->stacks.frames, &r->stacks.cap_frames, (uint64_t)n + 1, sizeof *r->stacks.frames);
    for (uint32_t i = 0; i < n; i++)
        if (r->stacks.frames[i]) r->stacks.frames[kept++] = r->stacks.frames[i];
    if (cut && r->options.cut_root) r->stacks.frames[kept++] = fp_jfr_name_frame(r, "[truncated]", 11);
    return kept;
}

/* Reads the stack at p.  *n: its frames, with as many of r->stacks.frame_methods. */
static uint32_t new_stack(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end, int *cut,
                          uint32_t *n) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    *n = 0;
    if (r->metadata.types[type].role != FP_JFR_STACK || !fp_jfr_peek(r, type, p, end, slots)) return 0;
    *cut = slots[FP_JFR_STACK_CUT].kind == FP_JFR_IS_NUMBER && slots[FP_JFR_STACK_CUT].n;
    if (slots[FP_JFR_STACK_FRAMES].kind != FP_JFR_IS_ARRAY) return 0;
    const uint32_t found = frames_of(r, &slots[FP_JFR_STACK_FRAMES], end);
    *n = found;
    if (found > r->counts.depth) r->counts.depth = found;
    const uint32_t kept = complete(r, found, *cut);
    return kept ? fp_model_path(r->model, r->stacks.frames, kept) : kept;
}

/* ---- stacks of earlier chunks ----
 *
 * Chunks of a JVM repeat stacks, and a stack with the same bytes is the same one if its methods are: their keys mean
 * something only within a chunk.
 *
 *   chunk 1: stack 7 is 00 03 | 8a 31 .. | 07 ..    methods 0x188a and 7: node 41
 *   chunk 2: stack 9 has the same bytes             0x188a and 7 have the names that they had: node 41
 */

/* Whether all methods so far are in this chunk. */
static int has_all_methods(const struct fp_jfr_reader *r) {
    return r->methods.n_sure == r->methods.ids.n - 1;
}

/* Whether a stack has the same methods as in the last chunk that had it. */
static int has_same_methods(struct fp_jfr_reader *r, const struct fp_jfr_memo *one) {
    if (r->methods.checked != r->constants.epoch) fp_jfr_check_methods(r);
    if (has_all_methods(r) && r->methods.changed <= one->epoch) return 1;
    const uint32_t *row = r->stacks.methods + one->first, *end = row + one->n;
    uint32_t differ = 0;
    for (; row < end; row++) {
        const struct fp_jfr_method *method = &r->methods.list[*row];
        differ |= (method->epoch ^ r->constants.epoch) | (method->changed > one->epoch);
    }
    return !differ;
}

/* Keeps the methods of a stack of n frames, so that later chunks can find it again.  Without those of all frames they
 * cannot. */
static void keep_methods(struct fp_jfr_reader *r, struct fp_jfr_memo *one, uint32_t n) {
    one->epoch = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!r->stacks.frame_methods[i]) return;
    if (one->n != n) {
        const uint64_t end = (uint64_t)r->stacks.n_methods + n;
        fp_array_room(&r->stacks.methods, &r->stacks.cap_methods, end, sizeof *r->stacks.methods);
        one->first = r->stacks.n_methods;
        one->n = n;
        r->stacks.n_methods = (uint32_t)end;
    }
    if (n) memcpy(r->stacks.methods + one->first, r->stacks.frame_methods, n * sizeof *r->stacks.methods);
    one->epoch = r->constants.epoch;
}

static void find_stack(struct fp_jfr_reader *r, uint32_t type, struct fp_jfr_constant *constant) {
    const uint32_t id = (uint32_t)constant->at - 1;
    struct fp_jfr_memo other = {0}, *one = r->stacks.known[id].type == type ? &r->stacks.known[id] : &other;
    if (one->epoch != r->constants.epoch && (!one->epoch || !has_same_methods(r, one))) {
        const uint8_t *bytes = r->stacks.texts.bytes;
        uint32_t n;
        int cut = 0;
        one->node = new_stack(r, type, bytes + r->stacks.texts.start[id],
                              bytes + r->stacks.texts.start[r->stacks.texts.n], &cut, &n);
        one->is_cut = (uint32_t)cut;
        if (one != &other) keep_methods(r, one, n);
    } else {
        one->epoch = r->constants.epoch;
    }
    constant->known = one->node + 1;
    constant->also = one->is_cut;
}

/* Forgets stacks after the model was emptied. */
static void forget_stacks(struct fp_jfr_reader *r) {
    for (uint32_t i = 1; i < r->metadata.n_types; i++) {
        const struct fp_jfr_type *t = &r->metadata.types[i];
        struct fp_jfr_pool *pool = t->role == FP_JFR_STACK && t->pool ? &r->constants.pools[t->pool - 1] : NULL;
        for (uint32_t k = 0; pool && k < pool->n_constants; k++) pool->constants[k].known = 0;
    }
    for (uint32_t i = 0; i < r->stacks.texts.n && i < r->stacks.cap_known; i++) r->stacks.known[i].epoch = 0;
    r->stacks.n_renewed = r->model->n_renewed;
}

uint32_t fp_jfr_stack(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, int *cut) {
    uint32_t n;
    *cut = 0;
    if (FP_UNLIKELY(r->stacks.n_renewed != r->model->n_renewed)) forget_stacks(r);
    if (slot->kind == FP_JFR_IS_VALUE) return new_stack(r, slot->type, slot->p, end, cut, &n);
    struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant) {
        r->counts.dangling += slot->kind == FP_JFR_IS_KEY && slot->n;
        return 0;
    }
    if (FP_UNLIKELY(r->metadata.types[slot->type].role != FP_JFR_STACK)) return 0; /* `known` is something else */
    if (FP_UNLIKELY(!constant->known)) find_stack(r, slot->type, constant);
    *cut = (int)constant->also;
    return constant->known - 1;
}

/* ---- threads ---- */

/* Writes the name of a thread to r->names.name. */
static void name_thread(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end, uint64_t id) {
    r->names.name.n = 0;
    if (!fp_jfr_text(r, &slots[FP_JFR_THREAD_NAME], end, &r->names.name)) {
        r->names.name.n = 0;
        fp_jfr_text(r, &slots[FP_JFR_THREAD_OS_NAME], end, &r->names.name);
    }
    if (r->names.name.n || !slots[FP_JFR_THREAD_VIRTUAL].n || slots[FP_JFR_THREAD_VIRTUAL].kind != FP_JFR_IS_NUMBER)
        return;
    /* virtual threads often have no name */
    char number[32], *p = number + sizeof number;
    do *--p = (char)('0' + id % 10);
    while (id /= 10);
    fp_buf_put(&r->names.name, "virtual-", 8);
    fp_buf_put(&r->names.name, p, (size_t)(number + sizeof number - p));
}

static uint64_t number(const struct fp_jfr_slot *slot) {
    return slot->kind == FP_JFR_IS_NUMBER ? slot->n : 0;
}

void fp_jfr_name_thread(struct fp_jfr_reader *r, uint32_t thread, uint32_t name, uint64_t java_id) {
    struct fp_jfr_thread_name *of = FP_AT(r->names.of_threads, r->names.cap_of_threads, thread);
    if (java_id - 1 <= of->java_id - 1) *of = (struct fp_jfr_thread_name){java_id, name}; /* 0 is the last */
}

uint32_t fp_jfr_thread_name(const struct fp_jfr_reader *r, uint32_t thread) {
    return thread < r->names.cap_of_threads ? r->names.of_threads[thread].name : 0;
}

static void new_thread(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end, uint32_t *thread,
                       uint32_t *label) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (r->metadata.types[type].role != FP_JFR_THREAD || !fp_jfr_decode(r, type, p, end, slots)) return;
    const uint64_t os_id = number(&slots[FP_JFR_THREAD_OS_ID]), java_id = number(&slots[FP_JFR_THREAD_ID]);
    name_thread(r, slots, end, java_id);
    /* a thread without an OS id is virtual: use its Java id */
    *thread = fp_model_thread(r->model, os_id ? r->input : r->virtual_input, r->chunk.pid,
                              (uint32_t)(os_id ? os_id : java_id));
    if (r->names.name.n) {
        const uint32_t name = fp_strings_intern(&r->model->strings, r->names.name.p, r->names.name.n);
        *label = fp_model_label(r->model, 0, r->names.thread_key, name, 0, 0);
    }
    if (*label) fp_jfr_name_thread(r, *thread, fp_table_row(&r->model->labels, *label)[FP_LABEL_STRING], java_id);
}

void fp_jfr_thread(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, uint32_t *thread,
                   uint32_t *label) {
    *thread = *label = 0;
    if (slot->kind == FP_JFR_IS_VALUE) {
        new_thread(r, slot->type, slot->p, end, thread, label);
        return;
    }
    struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant) {
        r->counts.dangling += slot->kind == FP_JFR_IS_KEY && slot->n;
        return;
    }
    if (r->metadata.types[slot->type].role != FP_JFR_THREAD) return;
    if (!constant->known) {
        new_thread(r, slot->type, r->constants.arena + constant->at - 1, r->constants.arena + r->constants.arena_n,
                   thread, label);
        constant->known = *thread + 1;
        constant->also = *label;
    }
    *thread = constant->known - 1;
    *label = constant->also;
}
