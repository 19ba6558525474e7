/* Whole values, without tokens: numbers, and what is skipped. */
#include "core/json_private.h"

enum {
    LARGE = 10000,   /* an exponent */
    MOST_DIGITS = 18 /* always fit in 64 bits */
};

/* v x 10^exponent.  `half`: the first digit that does not fit v is 5 or more; `lost`: one of these digits is not 0. */
struct decimal {
    uint64_t v;
    int exponent, half, lost;
};

/* Reads the digits and the fraction of a number at *p, which begins with a digit.  0 or an error. */
static int take_digits(const uint8_t **p, const uint8_t *end, struct decimal *d) {
    int dropped = 0;
    for (int fraction = 0; *p < end; ++*p) {
        if (**p == '.' && !fraction) {
            fraction = 1;
            if (*p + 1 == end || !fp_is_digit((*p)[1])) return FP_E_MALFORMED;
            continue;
        }
        if (!fp_is_digit(**p)) break;
        const unsigned digit = **p - '0';
        if (d->exponent > LARGE || d->exponent < -LARGE) return FP_E_OVERFLOW;
        if (dropped || d->v > (UINT64_MAX - digit) / 10) {
            if (!dropped++) d->half = digit >= 5;
            d->lost |= digit > 0;
            d->exponent += !fraction;
        } else {
            d->v = d->v * 10 + digit;
            d->exponent -= fraction;
        }
    }
    return 0;
}

/* Reads the exponent, if any.  0 or FP_E_MALFORMED. */
static int take_exponent(const uint8_t **p, const uint8_t *end, struct decimal *d) {
    if (*p == end || (**p | 0x20) != 'e') return 0;
    int64_t e = 0;
    const int less = ++*p < end && **p == '-';
    *p += *p < end && (**p == '-' || **p == '+');
    if (*p == end) return FP_E_MALFORMED;
    for (; *p < end && fp_is_digit(**p); ++*p)
        if (e < LARGE) e = e * 10 + (**p - '0');
    d->exponent += (int)(less ? -e : e);
    return 0;
}

/* Applies the exponent to v.  FP_E_OVERFLOW if v then exceeds 63 bits. */
static int take_off_exponent(struct decimal *d) {
    for (; d->v && d->exponent > 0; d->exponent--) {
        if (d->v > UINT64_MAX / 10) return FP_E_OVERFLOW;
        d->v *= 10;
        d->half = 0;
    }
    for (; (d->v || d->half) && d->exponent < 0; d->exponent++) {
        d->half = d->v % 10 >= 5;
        d->lost |= d->v % 10 > 0;
        d->v /= 10;
    }
    if (d->v > INT64_MAX - (uint64_t)d->half) return FP_E_OVERFLOW;
    d->v += (uint64_t)d->half;
    return 0;
}

/* The fast path for 407 or 12.5, with at most 7 digits before and after the point: reads up to 16 bytes.  Returns the
 * end of the number, NULL if it has another form. */
static inline const uint8_t *few_digits(const uint8_t *p, unsigned scale, int64_t *value) {
    unsigned n = fp_n_digits8(p);
    if (n - 1 >= 7 || n + scale > MOST_DIGITS) return NULL;
    uint64_t v = fp_digits8(p, n);
    p += n;
    if (*p == '.') {
        n = fp_n_digits8(++p);
        if (n - 1 >= 7 || n > scale) return NULL;
        v = v * fp_tens[n] + fp_digits8(p, n);
        scale -= n;
        p += n;
    }
    *value = (int64_t)(v * fp_tens[scale]);
    return (*p | 0x20) == 'e' ? NULL : p;
}

/* The fast path for most numbers: -12.5 with at most 18 digits, counting up to `scale` after the point.  Returns
 * its end, NULL if the number needs the slow path.  *lost becomes 1 if rounding changed it. */
static inline const uint8_t *short_number(const uint8_t *p, const uint8_t *end, int scale, int64_t *value, int *lost) {
    const uint8_t *const few = end - p >= 16 ? few_digits(p, (unsigned)scale, value) : NULL;
    if (FP_LIKELY(few)) return few;
    const int negative = p < end && *p == '-';
    const uint8_t *digits = p += negative;
    uint64_t v = 0, more = 0;
    p = fp_digits(p, end, MOST_DIGITS + 1, &v);
    if (p == digits || p - digits + scale > MOST_DIGITS) return NULL;
    unsigned dropped = 0;
    if (p < end && *p == '.') {
        digits = ++p;
        p = fp_digits(p, end, (unsigned)scale, &v);
        scale -= (int)(p - digits);
        if (!scale && p < end && fp_is_digit(*p)) {
            dropped = *p++ - '0';
            p = fp_digits(p, end, MOST_DIGITS, &more);
            for (; p < end && fp_is_digit(*p); p++) more |= *p - '0';
        }
        if (p == digits) return NULL;
    }
    if (p < end && (*p | 0x20) == 'e') return NULL;
    v = v * fp_tens[scale] + (dropped >= 5);
    *lost = (dropped | more) != 0;
    *value = negative ? -(int64_t)v : (int64_t)v;
    return p;
}

const uint8_t *fp_json_short_number(const uint8_t *p, const uint8_t *end, int scale, int64_t *value) {
    int lost;
    return short_number(p, end, scale, value, &lost);
}

int fp_json_number(const uint8_t *p, size_t n, int scale, int64_t *value, int *rounded) {
    const uint8_t *const end = p + n;
    const int negative = n && *p == '-';
    struct decimal d = {.exponent = scale};
    p += negative;
    if (p == end || !fp_is_digit(*p)) return FP_E_MALFORMED;
    FP_TRY(take_digits(&p, end, &d));
    FP_TRY(take_exponent(&p, end, &d));
    if (p != end) return FP_E_MALFORMED;
    FP_TRY(take_off_exponent(&d));
    if (rounded) *rounded = d.lost;
    *value = negative ? -(int64_t)d.v : (int64_t)d.v;
    return 0;
}

/* Skips blanks from `at` on, and a comma if one must come first.  NULL if it does not. */
static const uint8_t *next_element(const struct fp_json *j, const uint8_t *at, const uint8_t *end) {
    while (at < end && is_blank(*at)) at++;
    if (j->expects != FP_JSON_COMMA) return at;
    return at < end && *at == ',' ? at + 1 : NULL;
}

size_t fp_json_numbers(struct fp_json *j, struct fp_window *in, int scale, int exact, int64_t none, int64_t *to,
                       size_t room) {
    const uint8_t *const end = in->p + in->n, *at = in->p + in->pos, *next;
    size_t n = 0;
    if (!fp_json_between(j) || !(next = next_element(j, at, end))) return 0;
    while (n < room) {
        const uint8_t *p = next;
        int lost = 0;
        while (p < end && is_blank(*p)) p++;
        if (end - p >= 5 && *p == 'n' && !memcmp(p, "null", 4)) {
            to[n] = none;
            p += 4;
        } else if (!(p = short_number(p, end, scale, &to[n], &lost)) || (exact && lost)) {
            break;
        }
        while (p < end && is_blank(*p)) p++;
        if (p == end || *p != ',') break;
        next = p + 1;
        n++;
    }
    if (!n) return 0;
    in->pos = (size_t)(next - in->p);
    j->expects = FP_JSON_NEXT_ELEMENT;
    return n;
}

/* From the backslash at p to the end of the string; NULL if it is not complete or has odd escapes. */
static const uint8_t *after_escapes(const uint8_t *p, const uint8_t *end) {
    while (p < end && *p == '\\') {
        if (end - p < 2 || !p[1]) return NULL;
        if (p[1] == 'u' ? !has_four_digits(p + 2, (size_t)(end - p) - 2) : !strchr("\"\\/bfnrt", p[1])) return NULL;
        p = after_plain(p + (p[1] == 'u' ? 6 : 2), end);
    }
    return p < end ? p + 1 : NULL;
}

/* The end of the string whose first character is at p; NULL as above. */
static inline const uint8_t *after_string(const uint8_t *p, const uint8_t *end, int32_t *escaped) {
    p = after_plain(p, end);
    *escaped = p < end && *p == '\\';
    return FP_LIKELY(p < end && !*escaped) ? p + 1 : after_escapes(p, end);
}

static const uint8_t *after_word(const uint8_t *p, const uint8_t *end) {
    if (end - p >= 4 && (!memcmp(p, "null", 4) || !memcmp(p, "true", 4))) return p + 4;
    return end - p >= 5 && !memcmp(p, "false", 5) ? p + 5 : NULL;
}

/* The end of the scalar at p; NULL if it is not one that the RFC allows, complete. */
static inline const uint8_t *after_scalar(const uint8_t *p, const uint8_t *end) {
    int32_t escaped;
    if (p == end) return NULL;
    if (*p == '"') return after_string(p + 1, end, &escaped);
    return *p == '-' || fp_is_digit(*p) ? after_number(p, end) : after_word(p, end);
}

/* Past numbers of 1 to 7 digits, as long as a comma directly follows each.  Adds how many to *n. */
static inline const uint8_t *after_short_numbers(const uint8_t *p, const uint8_t *end, size_t *n) {
    for (; end - p >= 9; ++*n) {
        const unsigned digits = fp_n_digits8(p);
        if (digits - 1 >= 7 || p[digits] != ',') break;
        p += digits + 1;
    }
    return p;
}

/* The end of the object or array at p; NULL if it is not complete, or not plain. */
static const uint8_t *after_levels(const uint8_t *p, const uint8_t *end) {
    uint64_t objects = 0; /* a bit for each level, the innermost is the lowest */
    unsigned depth = 0;
    int32_t escaped;
    for (;;) {
        int closes = 0; /* p is at a value, or after a comma */
        size_t n = 0;
        if (depth && !(objects & 1)) p = after_short_numbers(p, end, &n);
        if (n) p = fp_json_after_blanks(p, end); /* at the end after a last comma: not plain */
        if (p < end && (*p == '{' || *p == '[')) {
            if (depth == 64) return NULL;
            objects = objects << 1 | (*p == '{');
            depth++;
            p = fp_json_after_blanks(p + 1, end);
        } else if (!(p = after_scalar(p, end))) {
            return NULL;
        } else {
            closes = 1;
        }
        for (;;) { /* commas and ends up to the next value or key */
            if (closes) p = fp_json_after_blanks(p, end);
            if (closes && p < end && *p == ',') {
                p = fp_json_after_blanks(p + 1, end);
                closes = 0;
            }
            if (p == end) return NULL;
            if (*p != (objects & 1 ? '}' : ']')) break;
            p++;
            objects >>= 1;
            closes = 1;
            if (!--depth) return p;
        }
        if (closes) return NULL;
        if (!(objects & 1)) continue;
        if (*p != '"' || !(p = after_string(p + 1, end, &escaped))) return NULL;
        p = fp_json_after_blanks(p, end);
        if (p == end || *p != ':') return NULL;
        p = fp_json_after_blanks(p + 1, end);
    }
}

const uint8_t *fp_json_value(struct fp_json *j, const uint8_t *p, const uint8_t *end) {
    const uint8_t *const text = p;
    j->text = p;
    j->escaped = 0;
    if (p == end) return NULL;
    if (*p == '"') {
        j->token = FP_JSON_STRING;
        j->text = ++p;
        p = after_string(p, end, &j->escaped);
        j->text_n = p ? (size_t)(p - 1 - j->text) : 0;
        return p;
    }
    if (*p == '-' || fp_is_digit(*p)) {
        j->token = FP_JSON_NUMBER;
        p = after_number(p, end);
    } else if (*p == '{' || *p == '[') {
        j->token = *p == '{' ? FP_JSON_OBJECT : FP_JSON_ARRAY;
        p = after_levels(p, end);
    } else {
        j->token = FP_JSON_WORD;
        p = after_word(p, end);
    }
    j->text_n = p ? (size_t)(p - text) : 0;
    return p;
}

size_t fp_json_skip(struct fp_json *j, struct fp_window *in) {
    const uint8_t *const end = in->p + in->n, *p = in->p + in->pos, *next;
    size_t n = 0;
    if (!fp_json_between(j) || !(next = next_element(j, p, end))) return 0;
    for (;; n++) {
        next = after_short_numbers(next, end, &n);
        if (!(p = after_scalar(fp_json_after_blanks(next, end), end))) break;
        p = fp_json_after_blanks(p, end);
        if (p == end || *p != ',') break;
        next = p + 1;
    }
    if (!n) return 0;
    in->pos = (size_t)(next - in->p);
    j->expects = FP_JSON_NEXT_ELEMENT;
    return n;
}
