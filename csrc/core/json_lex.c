#include "core/json_lex.h"

#include "core/digits.h"

enum { VALUE = 0, ELEMENT, NEXT_ELEMENT, FIRST_KEY, NEXT_KEY, MEMBER, COMMA, NOTHING };

static int is_blank(uint8_t c) {
    return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
}

const uint8_t *fp_json_blanks(const uint8_t *p, const uint8_t *end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (unsigned spaces; end - p >= 8; p += spaces < 8) { /* indentation: a line feed and spaces */
        const uint64_t others = fp_u64(p) ^ 0x2020202020202020;
        spaces = others ? fp_lowest_bit(others) / 8 : 8;
        p += spaces;
        if (spaces < 8 && !is_blank(*p)) return p;
    }
#endif
    while (p < end && is_blank(*p)) p++;
    return p;
}

static int fail(const struct fp_in *in, size_t at, const char *want, struct fp_err *err) {
    const size_t left = in->n - at;
    return fp_fail_text(err, FP_E_MALFORMED, in->base + at, 0, "the next JSON token", in->p + at, left < 20 ? left : 20,
                        want);
}

static int more(const struct fp_in *in, struct fp_err *err) {
    return in->eof ? fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the JSON text is incomplete") : FP_MORE;
}

static int has_four_digits(const uint8_t *p, size_t n) {
    return n >= 4 && fp_nibble(p[0]) < 16 && fp_nibble(p[1]) < 16 && fp_nibble(p[2]) < 16 && fp_nibble(p[3]) < 16;
}

/* The first quote or backslash of [p, end), or `end`; eight bytes at a time: a byte minus 1 borrows from bit 7 if it
 * is 0. */
static const uint8_t *after_plain(const uint8_t *p, const uint8_t *end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101;
    for (; end - p >= 8; p += 8) {
        const uint64_t w = fp_u64(p), quote = w ^ '"' * ones, backslash = w ^ '\\' * ones;
        const uint64_t found = (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & 0x80 * ones;
        if (found) return p + fp_lowest_bit(found) / 8; /* the lowest bit is exact */
    }
#endif
    while (p < end && *p != '"' && *p != '\\') p++;
    return p;
}

/* Finds the end of the string whose first character is at `at`. */
static int string_at(struct fp_json *j, struct fp_in *in, size_t at, struct fp_err *err) {
    j->escaped = j->odd = 0;
    j->text = in->p + at;
    for (size_t i = at; (i = (size_t)(after_plain(in->p + i, in->p + in->n) - in->p)) < in->n; i++) {
        if (in->p[i] == '"') {
            j->text_n = i - at;
            j->end = i + 1;
            return FP_DONE;
        }
        j->escaped = 1;
        if (++i == in->n) break;
        if (in->p[i] == 'u') {
            if (in->n - i < 5 && !(in->eof && j->loose)) break;
            if (has_four_digits(in->p + i + 1, in->n - i - 1)) {
                i += 4;
                continue;
            }
            if (!j->loose) return fail(in, i - 1, "\\u and four hexadecimal digits", err);
        } else if (in->p[i] && strchr("\"\\/bfnrt", in->p[i])) {
            continue;
        } else if (!j->loose) {
            return fail(in, i - 1, "an escape", err);
        }
        j->odd = 2;
    }
    return more(in, err);
}

static int is_word_byte(uint8_t c) {
    return fp_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.' ||
           c == '#' || c == '_';
}

static const uint8_t *after_digits(const uint8_t *p, const uint8_t *end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; end - p >= 8; p += 8) {
        const uint64_t ones = 0x0101010101010101, w = fp_u64(p) ^ 0x30 * ones;
        const uint64_t others = (w | (w + 0x76 * ones)) & 0x80 * ones; /* as in fp_decimal8 */
        if (others) return p + fp_lowest_bit(others) / 8;
    }
#endif
    while (p < end && fp_is_digit(*p)) p++;
    return p;
}

/* The end of the number of the form -12.5e3 at p; NULL if it has another form. */
static const uint8_t *after_number(const uint8_t *p, const uint8_t *end) {
    const uint8_t *digits = p + (*p == '-');
    if ((p = after_digits(digits, end)) == digits) return NULL;
    if (p < end && *p == '.') {
        digits = p + 1;
        if ((p = after_digits(digits, end)) == digits) return NULL;
    }
    if (p < end && (*p | 0x20) == 'e') {
        digits = ++p;
        digits += p < end && (*p == '-' || *p == '+');
        if ((p = after_digits(digits, end)) == digits) return NULL;
    }
    return p;
}

/* Reads a number or a word: all characters up to its end. */
static int word_at(struct fp_json *j, struct fp_in *in, size_t at, struct fp_err *err) {
    const uint8_t *const text = in->p + at, *const limit = in->p + in->n;
    const int is_number = *text == '-' || fp_is_digit(*text);
    const uint8_t *const number = is_number ? after_number(text, limit) : NULL, *end = number ? number : text;
    while (end < limit && is_word_byte(*end)) end++;
    if (end == text) return fail(in, at, "a value", err);
    if (end == limit && !in->eof) return FP_MORE;
    const size_t n = (size_t)(end - text);
    j->text = text;
    j->text_n = n;
    j->end = at + n;
    j->odd = j->escaped = 0;
    j->token = is_number ? FP_JSON_NUMBER : FP_JSON_WORD;
    if (is_number ? number == end
                  : (n == 4 && (!memcmp(text, "true", 4) || !memcmp(text, "null", 4))) ||
                        (n == 5 && !memcmp(text, "false", 5)))
        return FP_DONE;
    if (!is_number && end == limit) return more(in, err);
    if (!j->loose) return fail(in, at, is_number ? "a number" : "a value", err);
    j->token = FP_JSON_WORD;
    j->odd = 1;
    return FP_DONE;
}

static int is_object(const struct fp_json *j, uint32_t level) {
    if (level < sizeof j->kinds) return j->kinds[level] == '{';
    level -= (uint32_t)sizeof j->kinds;
    return j->deep[level / 8] >> level % 8 & 1;
}

/* Checks what follows the value, from `at` on.  FP_MORE; FP_DONE: the token is the end. */
static int after_value(struct fp_json *j, struct fp_in *in, size_t at) {
    while (at < in->n && (is_blank(in->p[at]) || !in->p[at])) {
        if (!in->p[at]) j->rest = 1;
        at++;
    }
    in->pos = at;
    if (at == in->n && !in->eof) return FP_MORE;
    if (at < in->n) j->rest = 2;
    j->token = FP_JSON_END;
    j->end = at;
    return FP_DONE;
}

/* Whether the visible text begins with a byte order mark. */
static int is_mark(const struct fp_in *in) {
    return !in->base && in->n && !memcmp(in->p, "\xef\xbb\xbf", in->n < 3 ? in->n : 3);
}

/* Reads the key at `at` and the colon after it. */
static int key_at(struct fp_json *j, struct fp_in *in, size_t at, struct fp_err *err) {
    if (in->p[at] != '"') return fail(in, at, "a key in quotes", err);
    const int status = string_at(j, in, at + 1, err);
    if (status) return status;
    const size_t colon = (size_t)(fp_json_after_blanks(in->p + j->end, in->p + in->n) - in->p);
    if (colon == in->n) return more(in, err);
    if (in->p[colon] != ':') return fail(in, colon, "a colon", err);
    j->end = colon + 1;
    j->token = FP_JSON_KEY;
    return FP_DONE;
}

int fp_json_next(struct fp_json *j, struct fp_in *in, struct fp_err *err) {
    for (;;) {
        size_t at = in->pos;
        if (FP_UNLIKELY(j->expects == VALUE && !at) && is_mark(in)) {
            if (in->n < 3) return more(in, err);
            at = 3;
        }
        at = (size_t)(fp_json_after_blanks(in->p + at, in->p + in->n) - in->p);
        in->pos = at;
        if (FP_UNLIKELY(j->expects == NOTHING && j->loose)) return after_value(j, in, at);
        if (at == in->n) {
            if (j->expects != NOTHING || !in->eof) return more(in, err);
            j->token = FP_JSON_END;
            j->end = at;
            return FP_DONE;
        }
        const uint8_t c = in->p[at];
        const int in_object = j->depth && is_object(j, j->depth - 1);
        switch (j->expects) {
            case NOTHING: return fail(in, at, "the end of the text", err);
            case COMMA:
                if (c == (in_object ? '}' : ']')) break;
                if (c != ',') return fail(in, at, in_object ? "a comma or }" : "a comma or ]", err);
                in->pos++;
                j->expects = in_object ? NEXT_KEY : NEXT_ELEMENT;
                continue;
            case FIRST_KEY:
            case NEXT_KEY:
                if (c == '}') break;
                return key_at(j, in, at, err);
            case ELEMENT:
            case NEXT_ELEMENT:
                if (c == ']') break;
                /* fall through */
            default:
                if (c == '"') {
                    j->token = FP_JSON_STRING;
                    return string_at(j, in, at + 1, err);
                }
                if (c != '{' && c != '[') return word_at(j, in, at, err);
                if (j->depth == FP_JSON_DEPTH) return fail(in, at, "at most 8,192 levels", err);
                j->token = c == '{' ? FP_JSON_OBJECT : FP_JSON_ARRAY;
                j->end = at + 1;
                return FP_DONE;
        }
        j->token = c == '}' ? FP_JSON_OBJECT_END : FP_JSON_ARRAY_END;
        j->end = at + 1;
        return FP_DONE;
    }
}

static void open_level(struct fp_json *j, int object) {
    const uint32_t level = j->depth++;
    if (level < sizeof j->kinds) {
        j->kinds[level] = object ? '{' : '[';
        return;
    }
    const uint32_t bit = level - (uint32_t)sizeof j->kinds;
    const uint8_t mask = (uint8_t)(1u << bit % 8);
    j->deep[bit / 8] = (uint8_t)(object ? j->deep[bit / 8] | mask : j->deep[bit / 8] & ~mask);
}

void fp_json_take(struct fp_json *j, struct fp_in *in) {
    in->pos = j->end;
    switch (j->token) {
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY:
            open_level(j, j->token == FP_JSON_OBJECT);
            j->expects = j->token == FP_JSON_OBJECT ? FIRST_KEY : ELEMENT;
            return;
        case FP_JSON_KEY: j->expects = MEMBER; break;
        case FP_JSON_OBJECT_END:
        case FP_JSON_ARRAY_END: j->depth--; break;
        default: break;
    }
    if (FP_UNLIKELY(j->odd)) {
        j->odd_words += j->odd == 1;
        j->odd_escapes += j->odd == 2;
        j->odd = 0;
    }
    if (j->token == FP_JSON_KEY) return;
    j->expects = j->depth ? COMMA : NOTHING;
}

int fp_json_between(const struct fp_json *j) {
    return j->depth && !is_object(j, j->depth - 1) &&
           (j->expects == COMMA || j->expects == ELEMENT || j->expects == NEXT_ELEMENT);
}

static uint8_t *put_utf8(uint8_t *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (uint8_t)c;
    } else if (c < 0x800) {
        *to++ = (uint8_t)(0xc0 | c >> 6);
        *to++ = (uint8_t)(0x80 | (c & 63));
    } else {
        if (c < 0x10000) {
            *to++ = (uint8_t)(0xe0 | c >> 12);
        } else {
            *to++ = (uint8_t)(0xf0 | c >> 18);
            *to++ = (uint8_t)(0x80 | (c >> 12 & 63));
        }
        *to++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *to++ = (uint8_t)(0x80 | (c & 63));
    }
    return to;
}

static uint32_t four_digits(const uint8_t *p) {
    return fp_nibble(p[0]) << 12 | fp_nibble(p[1]) << 8 | fp_nibble(p[2]) << 4 | fp_nibble(p[3]);
}

const uint8_t *fp_json_plain(const struct fp_json *j, struct fp_buf *scratch, size_t *n) {
    *n = j->text_n;
    if (FP_LIKELY(!j->escaped)) return j->text;
    const uint8_t *p = j->text, *end = p + j->text_n;
    scratch->n = 0;
    if (fp_buf_reserve(scratch, j->text_n + 1)) return NULL; /* a decoded escape is never longer */
    uint8_t *to = scratch->p;
    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
        const uint8_t c = p[1];
        const char *known = c ? strchr(from, c) : NULL;
        const int is_code = c == 'u' && has_four_digits(p + 2, (size_t)(end - p) - 2);
        if (!is_code) {
            if (!known && c != '"' && c != '\\' && c != '/') *to++ = '\\'; /* an unknown escape: keep it */
            *to++ = known ? (uint8_t)into[known - from] : c;
            p += 2;
            continue;
        }
        p += 2;
        uint32_t code = four_digits(p);
        p += 4;
        if (code >> 10 == 0x36 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && has_four_digits(p + 2, 4) &&
            four_digits(p + 2) >> 10 == 0x37) {
            code = 0x10000 + ((code & 0x3ff) << 10) + (four_digits(p + 2) & 0x3ff);
            p += 6;
        }
        to = put_utf8(to, code >> 11 == 0x1b ? 0xfffd : code); /* an unpaired surrogate */
    }
    *n = scratch->n = (size_t)(to - scratch->p);
    return scratch->p;
}

int fp_json_unescape(struct fp_json *j, struct fp_buf *scratch) {
    size_t n;
    const uint8_t *p = fp_json_plain(j, scratch, &n);
    if (!p) return FP_E_NOMEM;
    j->text = p;
    j->text_n = n;
    j->escaped = 0;
    return 0;
}

const uint8_t *fp_json_trim(const uint8_t *p, size_t *n) {
    while (*n && is_blank(*p)) p++, --*n;
    while (*n && is_blank(p[*n - 1])) --*n;
    return p;
}

int fp_json_is(const struct fp_json *j, const char *text) {
    return j->text_n == strlen(text) && !memcmp(j->text, text, j->text_n);
}

enum { LARGE = 10000 }; /* an exponent */

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

/* The fast path for most numbers: -12.5 with at most 18 digits, counting up to `scale` after the point.  Returns
 * its end, NULL if the number needs the slow path.  *lost becomes 1 if rounding changed it. */
static inline const uint8_t *short_number(const uint8_t *p, const uint8_t *end, int scale, int64_t *value, int *lost) {
    enum { MOST = 18 }; /* digits that always fit */
    const int negative = p < end && *p == '-';
    const uint8_t *digits = p += negative;
    uint64_t v = 0, more = 0;
    p = fp_digits(p, end, MOST + 1, &v);
    if (p == digits || p - digits + scale > MOST) return NULL;
    unsigned dropped = 0;
    if (p < end && *p == '.') {
        digits = ++p;
        p = fp_digits(p, end, (unsigned)scale, &v);
        scale -= (int)(p - digits);
        if (!scale && p < end && fp_is_digit(*p)) {
            dropped = *p++ - '0';
            p = fp_digits(p, end, MOST, &more);
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

int fp_json_number(const uint8_t *p, size_t n, int scale, int64_t *value, int *rounded) {
    const uint8_t *const end = p + n;
    const int negative = n && *p == '-';
    struct decimal d = {.exponent = scale};
    int64_t found = 0;
    int lost = 0;
    if (scale >= 0 && short_number(p, end, scale, &found, &lost) == end) {
        if (rounded) *rounded = lost;
        *value = found;
        return 0;
    }
    p += negative;
    if (p == end || !fp_is_digit(*p)) return FP_E_MALFORMED;
    int status = take_digits(&p, end, &d);
    if (!status) status = take_exponent(&p, end, &d);
    if (!status && p != end) status = FP_E_MALFORMED;
    if (!status) status = take_off_exponent(&d);
    if (status) return status;
    if (rounded) *rounded = d.lost;
    *value = negative ? -(int64_t)d.v : (int64_t)d.v;
    return 0;
}

/* Skips blanks from `at` on, and a comma if one must come first.  NULL if it does not. */
static const uint8_t *next_element(const struct fp_json *j, const uint8_t *at, const uint8_t *end) {
    while (at < end && is_blank(*at)) at++;
    if (j->expects != COMMA) return at;
    return at < end && *at == ',' ? at + 1 : NULL;
}

size_t fp_json_numbers(struct fp_json *j, struct fp_in *in, int scale, int exact, int64_t none, int64_t *to,
                       size_t room) {
    const uint8_t *const end = in->p + in->n, *at = in->p + in->pos, *next;
    size_t n = 0;
    if (!fp_json_between(j) || !(next = next_element(j, at, end))) return 0;
    while (n < room) {
        const uint8_t *p = next;
        int lost = 0;
        while (p < end && is_blank(*p)) p++;
        if (end - p >= 5 && !memcmp(p, "null", 4)) {
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
    j->expects = NEXT_ELEMENT;
    return n;
}

/* The end of the string whose first character is at p; NULL if it is not complete or has odd escapes. */
static const uint8_t *after_string(const uint8_t *p, const uint8_t *end, int32_t *escaped) {
    *escaped = 0;
    while ((p = after_plain(p, end)) < end && *p == '\\') {
        if (end - p < 2 || !p[1]) return NULL;
        *escaped = 1;
        if (p[1] == 'u' ? !has_four_digits(p + 2, (size_t)(end - p) - 2) : !strchr("\"\\/bfnrt", p[1])) return NULL;
        p += p[1] == 'u' ? 6 : 2;
    }
    return p < end ? p + 1 : NULL;
}

static const uint8_t *after_word(const uint8_t *p, const uint8_t *end) {
    if (end - p >= 4 && (!memcmp(p, "null", 4) || !memcmp(p, "true", 4))) return p + 4;
    return end - p >= 5 && !memcmp(p, "false", 5) ? p + 5 : NULL;
}

/* The end of the scalar at p; NULL if it is not one that the RFC allows, complete. */
static const uint8_t *after_scalar(const uint8_t *p, const uint8_t *end) {
    int32_t escaped;
    if (p == end) return NULL;
    if (*p == '"') return after_string(p + 1, end, &escaped);
    return *p == '-' || fp_is_digit(*p) ? after_number(p, end) : after_word(p, end);
}

/* The end of the object or array at p; NULL if it is not complete, or not plain. */
static const uint8_t *after_levels(const uint8_t *p, const uint8_t *end) {
    uint64_t objects = 0; /* a bit for each level, the innermost is the lowest */
    unsigned depth = 0;
    for (;;) {
        int closes = 0; /* p is at a value, or after a comma */
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
        if (*p != '"' || !(p = after_scalar(p, end))) return NULL;
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

void fp_json_skip(struct fp_json *j, struct fp_in *in) {
    const uint8_t *const end = in->p + in->n, *p = in->p + in->pos, *next;
    if (!fp_json_between(j) || !(next = next_element(j, p, end))) return;
    const uint8_t *const first = next;
    for (;;) {
        if (!(p = after_scalar(fp_json_after_blanks(next, end), end))) break;
        p = fp_json_after_blanks(p, end);
        if (p == end || *p != ',') break;
        next = p + 1;
    }
    if (next == first) return;
    in->pos = (size_t)(next - in->p);
    j->expects = NEXT_ELEMENT;
}
