/* Texts of constants, and names of classes. */
#include "jfr/private.h"
#include "jfr/text.h"

enum { MOST_REFERENCES = 8 };

static int text(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, struct fp_buf *to,
                unsigned depth) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    if (depth > MOST_REFERENCES) return 0;
    if (slot->kind == FP_JFR_IS_TEXT) {
        struct fp_jfr_string found;
        if (!fp_jfr_string(r, slot->p, end, to, &found) || found.is_null) return 0;
        if (!found.is_constant) return 1;
        slots[0] = (struct fp_jfr_slot){.n = found.key, .kind = FP_JFR_IS_KEY, .type = r->metadata.string_type};
        return text(r, &slots[0], end, to, depth + 1);
    }
    const uint8_t *p = fp_jfr_bytes_of(r, slot, &end);
    if (!p) {
        r->counts.dangling += slot->kind == FP_JFR_IS_KEY && slot->n;
        return 0;
    }
    if (r->metadata.types[slot->type].role != FP_JFR_TEXT || !fp_jfr_decode(r, slot->type, p, end, slots)) return 0;
    return text(r, &slots[0], end, to, depth + 1);
}

int fp_jfr_text(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, struct fp_buf *to) {
    return text(r, slot, end, to, 0);
}

/* ---- classes ---- */

static size_t hex_digits(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f'))) i++;
    return i;
}

static size_t digits(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n && p[i] >= '0' && p[i] <= '9') i++;
    return i;
}

static int starts(const uint8_t *p, size_t n, const char *with) {
    const size_t length = strlen(with);
    return n >= length && !memcmp(p, with, length);
}

/* The length of the number at p that distinguishes a hidden or generated class:
 *
 *   +0x00007f6cf8007a08/728258269   an address and a hash
 *   /0x0000000084045210, .0x...     an address
 *   /1103243338                     a hash: no part of a Java name begins with a digit
 *   $12                             of $$Lambda$12
 *   12                              of $Proxy12, GeneratedMethodAccessor12 ...
 */
static size_t number_of_class(const uint8_t *p, size_t n, size_t before) {
    if (n > 3 && (p[0] == '+' || p[0] == '/' || p[0] == '.') && p[1] == '0' && p[2] == 'x') {
        const size_t address = hex_digits(p + 3, n - 3), i = 3 + address;
        if (!address) return 0;
        return i < n && p[i] == '/' && digits(p + i + 1, n - i - 1) ? i + 1 + digits(p + i + 1, n - i - 1) : i;
    }
    const size_t hash = n && p[0] == '/' ? digits(p + 1, n - 1) : 0;
    if (hash && (1 + hash == n || p[1 + hash] == '[')) return 1 + hash;
    static const char *const STEMS[] = {"$$Lambda", "$Proxy", "GeneratedMethodAccessor", "GeneratedConstructorAccessor",
                                        "GeneratedSerializationConstructorAccessor"};
    for (size_t i = 0; i < sizeof STEMS / sizeof STEMS[0]; i++) {
        const size_t stem = strlen(STEMS[i]);
        if (before < stem || memcmp(p - stem, STEMS[i], stem)) continue;
        if (i) return digits(p, n);
        return n && p[0] == '$' && digits(p + 1, n - 1) ? 1 + digits(p + 1, n - 1) : 0;
    }
    return 0;
}

void fp_jfr_put_joined(struct fp_buf *to, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const size_t number = number_of_class(p + i, n - i, i);
        if (number) {
            i += number;
            continue;
        }
        fp_buf_put(to, p + i++, 1);
    }
}

void fp_jfr_put_class(struct fp_buf *to, const uint8_t *p, size_t n) {
    static const char *const NAMES[] = {"Zboolean", "Bbyte", "Sshort", "Cchar", "Iint", "Jlong", "Ffloat", "Ddouble"};
    size_t dimensions = 0;
    if (!n) return; /* p may be NULL */
    while (dimensions < n && p[dimensions] == '[') dimensions++;
    p += dimensions, n -= dimensions;
    for (size_t i = 0; dimensions && n == 1 && i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (NAMES[i][0] != *p) continue;
        p = (const uint8_t *)NAMES[i] + 1;
        n = strlen(NAMES[i]) - 1;
        break;
    }
    if (dimensions && n > 1 && p[0] == 'L' && p[n - 1] == ';') p++, n -= 2;
    for (size_t i = 0; i < n; i++) {
        /* keep the '/' before the address of a hidden class */
        const int is_slash =
            p[i] == '/' && !starts(p + i, n - i, "/0x") && !(i + 1 < n && p[i + 1] >= '0' && p[i + 1] <= '9');
        fp_buf_put(to, is_slash ? "." : (const char *)p + i, 1);
    }
    while (dimensions--) fp_buf_put(to, "[]", 2);
}

/* ---- strings of the model ---- */

/* Interns the text of a slot, or the name of the class in it. */
static uint32_t intern(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end) {
    struct fp_jfr_slot slots[FP_JFR_SLOTS];
    r->names.name.n = r->names.more.n = 0;
    if (slot->kind != FP_JFR_IS_TEXT && r->metadata.types[slot->type].role == FP_JFR_CLASS) {
        const uint8_t *p = fp_jfr_bytes_of(r, slot, &end);
        if (!p || !fp_jfr_decode(r, slot->type, p, end, slots)) return 0;
        if (!fp_jfr_text(r, &slots[FP_JFR_CLASS_NAME], end, &r->names.more)) return 0;
        fp_jfr_put_class(&r->names.name, r->names.more.p, r->names.more.n);
        if (r->options.join) {
            r->names.more.n = 0;
            fp_jfr_put_joined(&r->names.more, r->names.name.p, r->names.name.n);
            return fp_strings_intern(&r->model->strings, r->names.more.p, r->names.more.n);
        }
    } else if (!fp_jfr_text(r, slot, end, &r->names.name)) {
        return 0;
    }
    return fp_strings_intern(&r->model->strings, r->names.name.p, r->names.name.n);
}

uint32_t fp_jfr_string_id(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end) {
    if (slot->kind == FP_JFR_ABSENT) return 0;
    if (slot->kind != FP_JFR_IS_KEY) return intern(r, slot, end);
    struct fp_jfr_constant *constant = fp_jfr_find(r, slot);
    if (!constant) {
        r->counts.dangling += slot->n != 0;
        return 0;
    }
    const unsigned role =
        r->metadata.types[slot->type].role; /* of constants with another one `known` is something else */
    if (role != FP_JFR_TEXT && role != FP_JFR_CLASS) return 0;
    if (constant->known) return constant->known - 1;
    const uint32_t id = intern(r, slot, end);
    constant->known = id + 1;
    return id;
}
