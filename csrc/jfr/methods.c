/* Methods: their names, and the model's functions of them. */
#include "jfr/stack_memo.h"

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

/* The offsets in r->names.name of the parts of a function's name, and the letter for how it was compiled. */
struct fp_jfr_parts {
    size_t class_n, method, method_n, descriptor, descriptor_n, letter;
};

/* Appends class, method and descriptor to r->names.name. */
static void put_parts(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const uint8_t *end,
                      struct fp_jfr_parts *parts) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS], names[FP_JFR_SLOTS];
    *parts = (struct fp_jfr_parts){0};
    const uint8_t *p = fp_jfr_bytes_of(r, method, &end);
    if (!p || r->metadata.types[method->type].role != FP_JFR_METHOD || !fp_jfr_decode(r, method->type, p, end, slots)) {
        r->counts.dangling += method->kind == FP_JFR_IS_KEY && method->n && !p;
        return;
    }
    const struct fp_jfr_slot *class_ = &slots[FP_JFR_METHOD_CLASS];
    const uint8_t *class_end = end;
    p = fp_jfr_bytes_of(r, class_, &class_end);
    if (p && r->metadata.types[class_->type].role == FP_JFR_CLASS &&
        fp_jfr_decode(r, class_->type, p, class_end, names)) {
        r->names.more.n = 0;
        struct fp_buf *to = r->options.join ? &r->names.more : &r->names.name;
        fp_jfr_text(r, &names[FP_JFR_CLASS_NAME], class_end, to);
        if (r->options.join) fp_jfr_put_joined(&r->names.name, r->names.more.p, r->names.more.n);
    }
    parts->class_n = parts->method = r->names.name.n;
    fp_jfr_text(r, &slots[FP_JFR_METHOD_NAME], end, &r->names.name);
    parts->method_n = r->names.name.n - parts->method;
    parts->descriptor = r->names.name.n;
    fp_jfr_text(r, &slots[FP_JFR_METHOD_DESCRIPTOR], end, &r->names.name);
    parts->descriptor_n = r->names.name.n - parts->descriptor;
}

enum { NATIVE = 1u << 31 }; /* the bit of a function that is native code */

/* Writes what is known of a method to r->names.name: the parts of its name, their offsets, and the letter for its kind.
 */
static void describe(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                     const uint8_t *end, struct fp_jfr_parts *parts) {
    char letter = 0;
    r->names.name.n = r->names.more.n = 0;
    if (r->options.kinds) {
        fp_jfr_text(r, kind, end, &r->names.more);
        letter = letter_of(r->names.more.p, r->names.more.n);
    }
    put_parts(r, method, end, parts);
    parts->letter = (size_t)letter;
    fp_buf_put(&r->names.name, parts, sizeof *parts);
}

/* The function of the method in r->names.name. */
static uint32_t new_function(struct fp_jfr_reader *r, const struct fp_jfr_parts *parts) {
    struct fp_strings *strings = &r->model->strings;
    uint32_t system_name = 0, object = 0;
    const uint8_t *all = r->names.name.p;
    const int native = parts->descriptor_n && is_native(all + parts->descriptor, parts->descriptor_n);
    struct fp_buf *to = &r->names.more;
    to->n = 0;
    if (native) {
        if (parts->class_n) {
            const uint32_t name = fp_strings_intern(strings, all, parts->class_n);
            object = fp_model_object(r->model, name, 0);
        }
    } else if (parts->class_n) {
        fp_buf_put(to, all, parts->class_n);
        fp_buf_put(to, ".", 1);
    }
    if (parts->method_n) fp_buf_put(to, all + parts->method, parts->method_n);
    if (!parts->class_n && !parts->method_n) fp_buf_put(to, "[unknown]", 9);
    const size_t plain = to->n;
    if (!native && parts->descriptor_n) {
        fp_buf_put(to, all + parts->descriptor, parts->descriptor_n);
        system_name = fp_strings_intern(strings, to->p, to->n);
        if (!r->options.signatures) to->n = plain;
    }
    const char suffix[] = {'_', '[', (char)parts->letter, ']'};
    if (parts->letter) fp_buf_put(to, suffix, sizeof suffix);
    const uint32_t name = fp_strings_intern(strings, to->p, to->n);
    if (name == system_name) system_name = 0;
    const uint32_t function = fp_model_function(r->model, object, 0, name, system_name, 0);
    if (function & NATIVE) (void)fp_escape(); /* too many functions */
    return function | (native ? NATIVE : 0);
}

enum { NEVER = 0xffffffffu, MOST_TEXT = 4096 }; /* bytes of a description that is kept: names may be long and shared */

/* Looks up a method in this chunk: an earlier one may have had another of this key.  One that is missing has a row,
 * too, so it is counted once. */
static void resolve(struct fp_jfr_reader *r, struct fp_jfr_method *one, const struct fp_jfr_slot *method,
                    const struct fp_jfr_slot *kind, const uint8_t *end) {
    const uint64_t before = r->counts.dangling;
    struct fp_jfr_parts parts;
    describe(r, method, kind, end, &parts);
    const int is_kept = r->counts.dangling == before && r->names.name.n <= MOST_TEXT;
    const uint32_t text = is_kept ? fp_strings_intern(&r->methods.described, r->names.name.p, r->names.name.n) : 0;
    const int is_other = one->epoch && (text != one->text || one->changed == NEVER);
    if (!text || text != one->text) one->function = new_function(r, &parts);
    one->text = text;
    one->epoch = r->constants.epoch;
    if (is_other) one->changed = r->methods.changed = r->constants.epoch;
    if (!text) one->changed = NEVER;
    r->methods.n_sure += text != 0;
}

/* The words of a row of r->methods.ids. */
enum { TYPE, KEY_LOW, KEY_HIGH, KIND_TYPE, KIND, WORDS };

uint32_t fp_jfr_function(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                         const uint8_t *end, int *native, uint32_t *row) {
    const int is_simple = !r->options.kinds || (kind->kind == FP_JFR_IS_KEY && kind->n < UINT32_MAX);
    uint32_t function;
    *row = 0;
    if (method->kind != FP_JFR_IS_KEY || !is_simple) {
        struct fp_jfr_parts parts;
        describe(r, method, kind, end, &parts);
        function = new_function(r, &parts);
    } else {
        const uint32_t words[WORDS] = {method->type, FP_WORDS(method->n), r->options.kinds ? kind->type : 0,
                                       r->options.kinds ? (uint32_t)kind->n : 0};
        const uint32_t before = r->methods.ids.n, id = fp_table_intern(&r->methods.ids, words);
        fp_array_room(&r->methods.list, &r->methods.cap, (uint64_t)id + 1, sizeof *r->methods.list);
        struct fp_jfr_method *one = &r->methods.list[id];
        if (id >= before) *one = (struct fp_jfr_method){0};
        if (one->epoch != r->constants.epoch) resolve(r, one, method, kind, end);
        *row = one->changed == NEVER ? 0 : id;
        function = one->function;
    }
    *native = (function & NATIVE) != 0;
    return function & ~(uint32_t)NATIVE;
}

void fp_jfr_check_methods(struct fp_jfr_reader *r) {
    const uint64_t before = r->counts.dangling;
    r->methods.checked = r->constants.epoch;
    for (uint32_t i = 1; i < r->methods.ids.n; i++) {
        struct fp_jfr_method *one = &r->methods.list[i];
        const uint32_t *words = fp_table_row(&r->methods.ids, i);
        const uint64_t key = (uint64_t)words[KEY_HIGH] << 32 | words[KEY_LOW];
        const struct fp_jfr_slot method = {.kind = FP_JFR_IS_KEY, .type = words[TYPE], .n = key};
        const struct fp_jfr_slot kind = {.kind = FP_JFR_IS_KEY, .type = words[KIND_TYPE], .n = words[KIND]};
        struct fp_jfr_parts parts;
        if (one->epoch == r->constants.epoch || one->changed == NEVER || !fp_jfr_find(r, &method)) continue;
        describe(r, &method, &kind, NULL, &parts);
        const int is_whole = r->counts.dangling == before;
        r->counts.dangling = before; /* counted when a sample refers to it */
        if (!is_whole || r->names.name.n > MOST_TEXT ||
            fp_strings_intern(&r->methods.described, r->names.name.p, r->names.name.n) != one->text)
            continue;
        one->epoch = r->constants.epoch;
        r->methods.n_sure++;
    }
}
