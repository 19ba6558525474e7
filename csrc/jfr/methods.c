/* Methods: their names, and the model's functions of them. */
#include "jfr/known.h"

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

/* The offsets in r->name of the parts of a function's name, and the letter for how it was compiled. */
struct fp_jfr_parts {
    size_t class_n, method, method_n, descriptor, descriptor_n, letter;
};

/* Appends class, method and descriptor to r->name. */
static void put_parts(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const uint8_t *end,
                      struct fp_jfr_parts *parts) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS], names[FP_JFR_SLOTS];
    *parts = (struct fp_jfr_parts){0};
    const uint8_t *p = fp_jfr_bytes_of(r, method, &end);
    if (!p || r->types[method->type].role != FP_JFR_METHOD || !fp_jfr_decode(r, method->type, p, end, slots)) {
        r->counts.dangling += method->kind == FP_JFR_IS_KEY && method->n && !p;
        return;
    }
    const struct fp_jfr_slot *class_ = &slots[FP_JFR_METHOD_CLASS];
    const uint8_t *class_end = end;
    p = fp_jfr_bytes_of(r, class_, &class_end);
    if (p && r->types[class_->type].role == FP_JFR_CLASS && fp_jfr_decode(r, class_->type, p, class_end, names)) {
        r->more.n = 0;
        struct fp_buf *to = r->join ? &r->more : &r->name;
        fp_jfr_text(r, &names[FP_JFR_CLASS_NAME], class_end, to);
        if (r->join) fp_jfr_put_joined(&r->name, r->more.p, r->more.n);
    }
    parts->class_n = parts->method = r->name.n;
    fp_jfr_text(r, &slots[FP_JFR_METHOD_NAME], end, &r->name);
    parts->method_n = r->name.n - parts->method;
    parts->descriptor = r->name.n;
    fp_jfr_text(r, &slots[FP_JFR_METHOD_DESCRIPTOR], end, &r->name);
    parts->descriptor_n = r->name.n - parts->descriptor;
}

enum { NATIVE = 1u << 31 }; /* the bit of a function that is native code */

/* Writes what is known of a method to r->name: the parts of its name, their offsets, and the letter for its kind. */
static void describe(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                     const uint8_t *end, struct fp_jfr_parts *parts) {
    char letter = 0;
    r->name.n = r->more.n = 0;
    if (r->kinds) {
        fp_jfr_text(r, kind, end, &r->more);
        letter = letter_of(r->more.p, r->more.n);
    }
    put_parts(r, method, end, parts);
    parts->letter = (size_t)letter;
    fp_buf_put(&r->name, parts, sizeof *parts);
}

/* The function of the method in r->name. */
static uint32_t new_function(struct fp_jfr_reader *r, const struct fp_jfr_parts *parts) {
    struct fp_strings *strings = &r->model->strings;
    uint32_t system_name = 0, object = 0;
    const uint8_t *all = r->name.p;
    const int native = parts->descriptor_n && is_native(all + parts->descriptor, parts->descriptor_n);
    struct fp_buf *to = &r->more;
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
        if (!r->signatures) to->n = plain;
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
    const int is_kept = r->counts.dangling == before && r->name.n <= MOST_TEXT;
    const uint32_t text = is_kept ? fp_strings_intern(&r->described_methods, r->name.p, r->name.n) : 0;
    const int is_other = one->epoch && (text != one->text || one->changed == NEVER);
    if (!text || text != one->text) one->function = new_function(r, &parts);
    one->text = text;
    one->epoch = r->epoch;
    if (is_other) one->changed = r->changed = r->epoch;
    if (!text) one->changed = NEVER;
    r->n_sure += text != 0;
}

/* The words of a row of r->methods. */
enum { TYPE, KEY_LOW, KEY_HIGH, KIND_TYPE, KIND, WORDS };

uint32_t fp_jfr_function(struct fp_jfr_reader *r, const struct fp_jfr_slot *method, const struct fp_jfr_slot *kind,
                         const uint8_t *end, int *native, uint32_t *row) {
    const int is_simple = !r->kinds || (kind->kind == FP_JFR_IS_KEY && kind->n < UINT32_MAX);
    uint32_t function;
    *row = 0;
    if (method->kind != FP_JFR_IS_KEY || !is_simple) {
        struct fp_jfr_parts parts;
        describe(r, method, kind, end, &parts);
        function = new_function(r, &parts);
    } else {
        const uint32_t words[WORDS] = {method->type, (uint32_t)method->n, (uint32_t)(method->n >> 32),
                                       r->kinds ? kind->type : 0, r->kinds ? (uint32_t)kind->n : 0};
        const uint32_t before = r->methods.n, id = fp_table_intern(&r->methods, words);
        fp_array_room(&r->method, &r->cap_method, (uint64_t)id + 1, sizeof *r->method);
        struct fp_jfr_method *one = &r->method[id];
        if (id >= before) *one = (struct fp_jfr_method){0};
        if (one->epoch != r->epoch) resolve(r, one, method, kind, end);
        *row = one->changed == NEVER ? 0 : id;
        function = one->function;
    }
    *native = (function & NATIVE) != 0;
    return function & ~(uint32_t)NATIVE;
}

void fp_jfr_check_methods(struct fp_jfr_reader *r) {
    const uint64_t before = r->counts.dangling;
    r->checked = r->epoch;
    for (uint32_t i = 1; i < r->methods.n; i++) {
        struct fp_jfr_method *one = &r->method[i];
        const uint32_t *words = fp_table_row(&r->methods, i);
        const uint64_t key = (uint64_t)words[KEY_HIGH] << 32 | words[KEY_LOW];
        const struct fp_jfr_slot method = {.kind = FP_JFR_IS_KEY, .type = words[TYPE], .n = key};
        const struct fp_jfr_slot kind = {.kind = FP_JFR_IS_KEY, .type = words[KIND_TYPE], .n = words[KIND]};
        struct fp_jfr_parts parts;
        if (one->epoch == r->epoch || one->changed == NEVER || !fp_jfr_find(r, &method)) continue;
        describe(r, &method, &kind, NULL, &parts);
        const int is_whole = r->counts.dangling == before;
        r->counts.dangling = before; /* counted when a sample refers to it */
        if (!is_whole || r->name.n > MOST_TEXT ||
            fp_strings_intern(&r->described_methods, r->name.p, r->name.n) != one->text)
            continue;
        one->epoch = r->epoch;
        r->n_sure++;
    }
}
