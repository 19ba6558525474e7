/* Stacks, their frames, and threads. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "core/cpu.h"
#include "jfr/private.h"

/* ---- functions ---- */

/* The letter that async-profiler's tools append for how code was compiled: name_[j].  0: none. */
static char letter_of(const uint8_t *p, size_t n) {
    static const char *const KINDS[] = {"0Interpreted", "jJIT compiled", "iInlined", "1C1 compiled", "kKernel"};
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strlen(KINDS[i]) - 1 == n && !memcmp(KINDS[i] + 1, p, n)) return KINDS[i][0];
    return 0;
}

/* async-profiler records native code as methods of these types, whose class is the library. */
static int is_native(const uint8_t *p, size_t n) {
    return (n == 4 && !memcmp(p, "()L;", 4)) || (n == 7 && !memcmp(p, "(Lk;)L;", 7));
}

/* The offsets in r->name of the parts of a function's name. */
struct fp_jfr_parts {
    size_t class_n, method, method_n, descriptor, descriptor_n;
};

/* Appends class, method and descriptor to r->name.  0 or FP_E_NOMEM. */
static int put_parts(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const uint8_t *end,
                     struct fp_jfr_parts *parts) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS], names[FP_JFR_SLOTS];
    *parts = (struct fp_jfr_parts){0};
    const uint8_t *p = fp_jfr_bytes_of(r, method, &end);
    if (!p || r->types[method->type].role != FP_JFR_METHOD || !fp_jfr_decode(r, method->type, p, end, slots)) {
        r->counts.dangling += method->kind == FP_JFR_IS_KEY && method->n && !p;
        return 0;
    }
    const struct fp_jfr_slot *class_ = &slots[FP_JFR_METHOD_CLASS];
    const uint8_t *class_end = end;
    p = fp_jfr_bytes_of(r, class_, &class_end);
    if (p && r->types[class_->type].role == FP_JFR_CLASS && fp_jfr_decode(r, class_->type, p, class_end, names)) {
        r->more.n = 0;
        struct fp_buf *to = r->join ? &r->more : &r->name;
        if (fp_jfr_text(r, &names[FP_JFR_CLASS_NAME], class_end, to) < 0) return FP_E_NOMEM;
        if (r->join && fp_jfr_put_joined(&r->name, r->more.p, r->more.n)) return FP_E_NOMEM;
    }
    parts->class_n = parts->method = r->name.n;
    if (fp_jfr_text(r, &slots[FP_JFR_METHOD_NAME], end, &r->name) < 0) return FP_E_NOMEM;
    parts->method_n = r->name.n - parts->method;
    parts->descriptor = r->name.n;
    if (fp_jfr_text(r, &slots[FP_JFR_METHOD_DESCRIPTOR], end, &r->name) < 0) return FP_E_NOMEM;
    parts->descriptor_n = r->name.n - parts->descriptor;
    return r->name.failed ? FP_E_NOMEM : 0;
}

/* The function of a method; `kind`: how it was compiled.  FP_NO_ID when memory ran out. */
static uint32_t new_function(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                             const uint8_t *end, int *native) {
    struct fp_strings *strings = &r->model->strings;
    struct fp_jfr_parts parts;
    uint32_t system_name = 0, object = 0;
    char letter = 0;
    r->name.n = r->more.n = 0;
    if (r->kinds) {
        if (fp_jfr_text(r, kind, end, &r->more) < 0) return FP_NO_ID;
        letter = letter_of(r->more.p, r->more.n);
    }
    if (put_parts(r, method, end, &parts)) return FP_NO_ID;
    const uint8_t *all = r->name.p;
    *native = parts.descriptor_n && is_native(all + parts.descriptor, parts.descriptor_n);
    struct fp_buf *to = &r->more;
    to->n = 0;
    if (*native) {
        if (parts.class_n) {
            const uint32_t name = fp_strings_intern(strings, all, parts.class_n);
            if (name == FP_NO_ID || (object = fp_model_object(r->model, name, 0)) == FP_NO_ID) return FP_NO_ID;
        }
    } else if (parts.class_n) {
        fp_buf_put(to, all, parts.class_n);
        fp_buf_put(to, ".", 1);
    }
    if (parts.method_n) fp_buf_put(to, all + parts.method, parts.method_n);
    if (!parts.class_n && !parts.method_n) fp_buf_put(to, "[unknown]", 9);
    const size_t plain = to->n;
    if (!*native && parts.descriptor_n) {
        fp_buf_put(to, all + parts.descriptor, parts.descriptor_n);
        if (to->failed || (system_name = fp_strings_intern(strings, to->p, to->n)) == FP_NO_ID) return FP_NO_ID;
        if (!r->signatures) to->n = plain;
    }
    const char suffix[] = {'_', '[', letter, ']'};
    if (letter) fp_buf_put(to, suffix, sizeof suffix);
    if (to->failed) return FP_NO_ID;
    const uint32_t name = fp_strings_intern(strings, to->p, to->n);
    if (name == system_name) system_name = 0;
    return name == FP_NO_ID ? FP_NO_ID : fp_model_function(r->model, object, 0, name, system_name, 0);
}

enum { NATIVE = 1u << 31 }; /* the bit of a function that is native code */

/* The same, cached by constant and kind. */
static uint32_t function_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                            const uint8_t *end, int *native) {
    const struct fp_jfr_constant *constant = fp_jfr_find(r, method);
    const int is_simple = !r->kinds || (kind->kind == FP_JFR_IS_KEY && kind->n < UINT32_MAX);
    if (!constant || !is_simple) return new_function(r, method, kind, end, native);
    const uint32_t row = (uint32_t)(constant - r->pools[r->types[method->type].pool - 1].constants);
    const uint32_t words[] = {row + 1, r->kinds ? (uint32_t)kind->n : 0}, before = r->functions.n;
    const uint32_t id = fp_table_intern(&r->functions, words);
    if (id == FP_NO_ID || fp_array_room(&r->function_of, &r->cap_function_of, (uint64_t)id + 1, sizeof *r->function_of))
        return FP_NO_ID;
    if (id >= before) {
        const uint32_t function = new_function(r, method, kind, end, native);
        if (function == FP_NO_ID || function & NATIVE) return FP_NO_ID;
        r->function_of[id] = function | (*native ? NATIVE : 0);
    }
    *native = (r->function_of[id] & NATIVE) != 0;
    return r->function_of[id] & ~NATIVE;
}

uint32_t fp_jfr_name_frame(struct fp_jfr_reader *r, const void *name, size_t n) {
    const uint32_t id = fp_strings_intern(&r->model->strings, name, n);
    const uint32_t function = id == FP_NO_ID ? FP_NO_ID : fp_model_function(r->model, 0, 0, id, 0, 0);
    const uint32_t line = function == FP_NO_ID ? FP_NO_ID : fp_model_line(r->model, function, 0, 0, 0);
    return line == FP_NO_ID ? FP_NO_ID : fp_model_frame(r->model, 0, 0, 0, line);
}

/* ---- frames ---- */

/* A line or bytecode index counted from 1, 0 if unknown; `from`: the smallest valid one. */
static uint32_t known(const struct fp_jfr_slot *slot, int64_t from) {
    const int64_t n = slot->kind == FP_JFR_IS_NUMBER ? (int64_t)slot->n : -1;
    return n >= from && n < UINT32_MAX - 1 ? (uint32_t)(n + 1 - from) : 0;
}

static uint32_t new_frame(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end) {
    int native = 0;
    const uint32_t function = function_of(r, &slots[FP_JFR_FRAME_METHOD], &slots[FP_JFR_FRAME_TYPE], end, &native);
    if (function == FP_NO_ID) return FP_NO_ID;
    /* the bytecode index is stored as a column; columns count from 1 */
    const uint32_t line = native ? 0 : known(&slots[FP_JFR_FRAME_LINE], 1);
    const uint32_t column = native ? 0 : known(&slots[FP_JFR_FRAME_BYTECODE], 0);
    const uint32_t lines = fp_model_line(r->model, function, line, column, 0);
    return lines == FP_NO_ID ? FP_NO_ID : fp_model_frame(r->model, 0, 0, 0, lines);
}

/* The end of n varints that have 16 bytes or less in all, which can be read; these bytes into `low` and `high`.  NULL
 * if they have more, or one of them may have 9 bytes.
 *
 *   8a 31 | 07 | 2b | 05 | ...    n = 4: low = 052b07318a, high = 0
 */
static const uint8_t *short_value(const uint8_t *p, uint32_t n, uint64_t *low, uint64_t *high) {
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

#if defined(__x86_64__) && defined(__GNUC__)
#define BMI2_TARGET __attribute__((target("bmi,bmi2")))

BMI2_TARGET static inline const uint8_t *short_value_bmi2(const uint8_t *p, uint32_t n, uint64_t *low, uint64_t *high) {
    const uint64_t first = fp_u64(p), last = n <= 8 ? _pdep_u64(UINT64_C(1) << (n - 1), fp_jfr_stops(first)) : 0;
    if (FP_UNLIKELY(!last)) return short_value(p, n, low, high);
    const uint64_t bits = _tzcnt_u64(last) + 1;
    *low = _bzhi_u64(first, (uint32_t)bits);
    *high = 0;
    return p + bits / 8;
}
#endif

/* A frame's place in the cache is one of the two from here on. */
static inline struct fp_jfr_frame *cached(const struct fp_jfr_reader *r, uint64_t low, uint64_t high) {
    return &r->cache[fp_mix(low, high) & (FP_JFR_CACHE - 2)];
}

static inline int is_frame(const struct fp_jfr_frame *one, const struct fp_jfr_frame *wanted) {
    return one->low == wanted->low && one->high == wanted->high && one->epoch == wanted->epoch &&
           one->type == wanted->type;
}

/* Decodes a frame from p on, and enters it at its place in the cache.  FP_NO_ID when memory ran out. */
static uint32_t enter_frame(struct fp_jfr_reader *r, struct fp_jfr_frame wanted, const uint8_t *p, const uint8_t *end,
                            struct fp_jfr_frame *place) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    wanted.frame = fp_jfr_decode(r, wanted.type, p, end, slots) ? new_frame(r, slots, end) : 0;
    if (wanted.frame == FP_NO_ID) return FP_NO_ID;
    place[1] = place[0];
    place[0] = wanted;
    return wanted.frame;
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
        const uint8_t *value_end = r->arena + r->arena_n;
        if (fp_jfr_decode(r, type, r->arena + constant->at - 1, value_end, slots))
            *frame = new_frame(r, slots, value_end);
        if (*frame != FP_NO_ID) constant->known = *frame + 1;
        return p;
    }
    *frame = constant->known - 1;
    return p;
}

enum { TOGETHER = 32 }; /* frames that wait for memory together */

typedef const uint8_t *short_value_fn(const uint8_t *, uint32_t, uint64_t *, uint64_t *);

/* Up to n frames of `varints` numbers each, at p, if they are short; *p: their end.  Most are among the last ones in
 * the cache.  Their number, or FP_NO_ID when memory ran out. */
FP_INLINE uint32_t short_frames_by(short_value_fn *value, struct fp_jfr_reader *r, uint32_t type, uint32_t varints,
                                   const uint8_t **p, const uint8_t *end, uint32_t n, uint32_t *frames) {
    struct {
        const uint8_t *p;
        struct fp_jfr_frame *place;
        uint64_t low, high;
    } found[TOGETHER];
    uint32_t k = 0;
    const uint8_t *at = *p;
    while (k < n && k < TOGETHER && end - at >= 16) {
        const uint8_t *next = value(at, varints, &found[k].low, &found[k].high);
        if (!next) break;
        found[k].place = cached(r, found[k].low, found[k].high);
        __builtin_prefetch(found[k].place);
        found[k++].p = at;
        at = next;
    }
    *p = at;
    struct fp_jfr_frame wanted = {.epoch = r->epoch, .type = type};
    for (uint32_t i = 0; i < k; i++) {
        struct fp_jfr_frame *place = found[i].place;
        wanted.low = found[i].low;
        wanted.high = found[i].high;
        const struct fp_jfr_frame *one = is_frame(place, &wanted) ? place : place + 1;
        if (FP_LIKELY(one == place || is_frame(one, &wanted)))
            frames[i] = one->frame;
        else if ((frames[i] = enter_frame(r, wanted, found[i].p, end, place)) == FP_NO_ID)
            return FP_NO_ID;
    }
    return k;
}

static uint32_t short_frames(struct fp_jfr_reader *r, uint32_t type, uint32_t varints, const uint8_t **p,
                             const uint8_t *end, uint32_t n, uint32_t *frames) {
    return short_frames_by(short_value, r, type, varints, p, end, n, frames);
}

#if defined(__x86_64__) && defined(__GNUC__)
BMI2_TARGET static uint32_t short_frames_bmi2(struct fp_jfr_reader *r, uint32_t type, uint32_t varints,
                                              const uint8_t **p, const uint8_t *end, uint32_t n, uint32_t *frames) {
    return short_frames_by(short_value_bmi2, r, type, varints, p, end, n, frames);
}
#define SHORT_FRAMES (!r->is_portable && fp_cpu() & FP_CPU_BMI ? short_frames_bmi2 : short_frames)
#else
#define SHORT_FRAMES short_frames
#endif

/* The frame of a value at p.  Its end, or NULL. */
static const uint8_t *inline_frame(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                                   uint32_t *frame) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (!(p = fp_jfr_decode(r, type, p, end, slots))) return NULL;
    *frame = new_frame(r, slots, end);
    return p;
}

/* Reads the frames of an array into r->frames, leaf first.  Returns their number, or FP_NO_ID when memory ran out. */
static uint32_t frames_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *array, const uint8_t *end) {
    const uint32_t type = array->type;
    uint64_t n;
    const uint8_t *p = fp_jfr_number(r, array->p, end, 4, &n);
    if (!p || n > (uint64_t)(end - p) || r->types[type].role != FP_JFR_FRAME) return 0;
    if (fp_array_room(&r->frames, &r->cap_frames, n, sizeof *r->frames)) return FP_NO_ID;
    const struct fp_jfr_program *program = fp_jfr_program_of(r, type);
    if (!program) return FP_NO_ID;
    const uint32_t varints = array->of_keys ? 0 : program->varints;
    for (uint32_t i = 0; i < n;) {
        const uint32_t found = varints ? SHORT_FRAMES(r, type, varints, &p, end, (uint32_t)n - i, r->frames + i) : 0;
        if (found == FP_NO_ID) return FP_NO_ID;
        i += found;
        if (found) continue;
        p = array->of_keys ? keyed_frame(r, type, p, end, &r->frames[i]) : inline_frame(r, type, p, end, &r->frames[i]);
        if (!p) return i;
        if (r->frames[i++] == FP_NO_ID) return FP_NO_ID;
    }
    return (uint32_t)n;
}

/* Frames of all chains that are kept to find them again, in bytes; then all are forgotten. */
enum { MOST_CHAINS = 16 << 20 };

/* The first n of r->frames without those that are unknown, and with the root of a stack that was cut.  Their number, or
 * FP_NO_ID. */
static uint32_t complete(struct fp_jfr_reader *r, uint32_t n, int cut) {
    uint32_t kept = 0;
    if (fp_array_room(&r->frames, &r->cap_frames, (uint64_t)n + 1, sizeof *r->frames)) return FP_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        if (r->frames[i]) r->frames[kept++] = r->frames[i];
    if (cut && r->cut_root && (r->frames[kept++] = fp_jfr_name_frame(r, "[truncated]", 11)) == FP_NO_ID)
        return FP_NO_ID;
    return kept;
}

/* The node of the first n of r->frames.  Chunks repeat stacks: most are found as a whole.  FP_NO_ID when memory ran
 * out.
 */
static uint32_t node_of(struct fp_jfr_reader *r, uint32_t n) {
    if (FP_UNLIKELY(r->chains.start[r->chains.n] > MOST_CHAINS)) fp_strings_empty(&r->chains);
    const uint32_t before = r->chains.n, id = fp_strings_intern(&r->chains, r->frames, n * sizeof *r->frames);
    if (id == FP_NO_ID || fp_array_room(&r->stack_of, &r->cap_stack_of, (uint64_t)id + 1, sizeof *r->stack_of))
        return FP_NO_ID;
    if (id < before) return r->stack_of[id];
    return r->stack_of[id] = fp_model_path(r->model, r->frames, n);
}

/* Reads the stack at p. */
static uint32_t new_stack(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end, int *cut) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (r->types[type].role != FP_JFR_STACK || !fp_jfr_peek(r, type, p, end, slots)) return 0;
    *cut = slots[FP_JFR_STACK_CUT].kind == FP_JFR_IS_NUMBER && slots[FP_JFR_STACK_CUT].n;
    if (slots[FP_JFR_STACK_FRAMES].kind != FP_JFR_IS_ARRAY) return 0;
    uint32_t n = frames_of(r, &slots[FP_JFR_STACK_FRAMES], end);
    if (n == FP_NO_ID) return FP_NO_ID;
    if (n > r->counts.depth) r->counts.depth = n;
    n = complete(r, n, *cut);
    return n && n != FP_NO_ID ? node_of(r, n) : n;
}

/* Forgets stacks after the model was emptied. */
static void forget_stacks(struct fp_jfr_reader *r) {
    for (uint32_t i = 1; i < r->n_types; i++) {
        const struct fp_jfr_type *t = &r->types[i];
        struct fp_jfr_pool *pool = t->role == FP_JFR_STACK && t->pool ? &r->pools[t->pool - 1] : NULL;
        for (uint32_t k = 0; pool && k < pool->n_constants; k++) pool->constants[k].known = 0;
    }
    fp_strings_empty(&r->chains);
    r->n_emptied = r->model->n_emptied;
}

uint32_t fp_jfr_stack(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, int *cut) {
    *cut = 0;
    if (FP_UNLIKELY(r->n_emptied != r->model->n_emptied)) forget_stacks(r);
    if (slot->kind == FP_JFR_IS_VALUE) return new_stack(r, slot->type, slot->p, end, cut);
    struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant) {
        r->counts.dangling += slot->kind == FP_JFR_IS_KEY && slot->n;
        return 0;
    }
    if (FP_UNLIKELY(r->types[slot->type].role != FP_JFR_STACK)) return 0; /* `known` is something else */
    if (FP_UNLIKELY(!constant->known)) {
        const uint32_t node = new_stack(r, slot->type, r->arena + constant->at - 1, r->arena + r->arena_n, cut);
        if (node == FP_NO_ID) return FP_NO_ID;
        constant->known = node + 1;
        constant->also = (uint32_t)*cut;
    }
    *cut = (int)constant->also;
    return constant->known - 1;
}

/* ---- threads ---- */

/* Writes the name of a thread to r->name.  0 or FP_E_NOMEM. */
static int name_thread(struct fp_jfr_reader *r, const struct fp_jfr_slot *slots, const uint8_t *end, uint64_t id) {
    r->name.n = 0;
    const int is_java = fp_jfr_text(r, &slots[FP_JFR_THREAD_NAME], end, &r->name);
    if (is_java < 0) return is_java;
    if (!is_java) {
        r->name.n = 0;
        if (fp_jfr_text(r, &slots[FP_JFR_THREAD_OS_NAME], end, &r->name) < 0) return FP_E_NOMEM;
    }
    if (r->name.n || !slots[FP_JFR_THREAD_VIRTUAL].n || slots[FP_JFR_THREAD_VIRTUAL].kind != FP_JFR_IS_NUMBER) return 0;
    /* virtual threads often have no name */
    char number[32], *p = number + sizeof number;
    do *--p = (char)('0' + id % 10);
    while (id /= 10);
    fp_buf_put(&r->name, "virtual-", 8);
    return fp_buf_put(&r->name, p, (size_t)(number + sizeof number - p));
}

static uint64_t number(const struct fp_jfr_slot *slot) {
    return slot->kind == FP_JFR_IS_NUMBER ? slot->n : 0;
}

int fp_jfr_name_thread(struct fp_jfr_reader *r, uint32_t thread, uint32_t name) {
    if (fp_array_zeroed(&r->thread_names, &r->cap_thread_names, (uint64_t)thread + 1, sizeof *r->thread_names))
        return FP_E_NOMEM;
    r->thread_names[thread] = name;
    return 0;
}

uint32_t fp_jfr_thread_name(const struct fp_jfr_reader *r, uint32_t thread) {
    return thread < r->cap_thread_names ? r->thread_names[thread] : 0;
}

static int new_thread(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end, uint32_t *thread,
                      uint32_t *label) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (r->types[type].role != FP_JFR_THREAD || !fp_jfr_decode(r, type, p, end, slots)) return 0;
    const uint64_t os_id = number(&slots[FP_JFR_THREAD_OS_ID]), java_id = number(&slots[FP_JFR_THREAD_ID]);
    if (name_thread(r, slots, end, java_id)) return FP_E_NOMEM;
    /* a thread without an OS id is virtual: use its Java id */
    *thread =
        fp_model_thread(r->model, os_id ? r->input : r->virtual_input, r->pid, (uint32_t)(os_id ? os_id : java_id));
    if (r->name.n) {
        const uint32_t name = fp_strings_intern(&r->model->strings, r->name.p, r->name.n);
        *label = name == FP_NO_ID ? FP_NO_ID : fp_model_label(r->model, 0, r->thread_key, name, 0, 0);
    }
    if (*thread == FP_NO_ID || *label == FP_NO_ID) return FP_E_NOMEM;
    return fp_jfr_name_thread(r, *thread, *label ? fp_table_row(&r->model->labels, *label)[FP_LABEL_STRING] : 0);
}

int fp_jfr_thread(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, uint32_t *thread,
                  uint32_t *label) {
    *thread = *label = 0;
    if (slot->kind == FP_JFR_IS_VALUE) return new_thread(r, slot->type, slot->p, end, thread, label);
    struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant) {
        r->counts.dangling += slot->kind == FP_JFR_IS_KEY && slot->n;
        return 0;
    }
    if (r->types[slot->type].role != FP_JFR_THREAD) return 0;
    if (!constant->known) {
        if (new_thread(r, slot->type, r->arena + constant->at - 1, r->arena + r->arena_n, thread, label))
            return FP_E_NOMEM;
        constant->known = *thread + 1;
        constant->also = *label;
    }
    *thread = constant->known - 1;
    *label = constant->also;
    return 0;
}
