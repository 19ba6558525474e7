#include "core/json_lex.h"

#include "core/json_private.h"

const uint8_t *fp_json_blanks(const uint8_t *p, const uint8_t *end) {
#if defined(__SSE2__)
    while (end - p >= 16) { /* indentation: a line feed and spaces */
        const unsigned n = fp_lowest_bit(~either_of(p, ' ', '\n'));
        p += n;
        if (n == 16) continue;
        if (*p != '\t' && *p != '\r') return p;
        p++;
    }
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (unsigned spaces; end - p >= 8; p += spaces < 8) {
        const uint64_t others = fp_u64(p) ^ 0x2020202020202020;
        spaces = others ? fp_lowest_bit(others) / 8 : 8;
        p += spaces;
        if (spaces < 8 && !is_blank(*p)) return p;
    }
#endif
    while (p < end && is_blank(*p)) p++;
    return p;
}

static int fail(const struct fp_window *in, size_t at, const char *want, struct fp_err *err) {
    const size_t left = in->n - at;
    return fp_fail_text(err, FP_E_MALFORMED, in->base + at, 0, "the next JSON token", in->p + at, left < 20 ? left : 20,
                        want);
}

static int more(const struct fp_window *in, struct fp_err *err) {
    return in->eof ? fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the JSON text is incomplete") : FP_MORE;
}

/* Finds the end of the string whose first character is at `at`. */
static int string_at(struct fp_json *j, struct fp_window *in, size_t at, struct fp_err *err) {
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

/* Reads a number or a word: all characters up to its end. */
static int word_at(struct fp_json *j, struct fp_window *in, size_t at, struct fp_err *err) {
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
static int after_value(struct fp_json *j, struct fp_window *in, size_t at) {
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

/* Reads the key at `at` and the colon after it. */
static int key_at(struct fp_json *j, struct fp_window *in, size_t at, struct fp_err *err) {
    if (in->p[at] != '"') return fail(in, at, "a key in quotes", err);
    FP_TRY(string_at(j, in, at + 1, err));
    const size_t colon = (size_t)(fp_json_after_blanks(in->p + j->end, in->p + in->n) - in->p);
    if (colon == in->n) return more(in, err);
    if (in->p[colon] != ':') return fail(in, colon, "a colon", err);
    j->end = colon + 1;
    j->token = FP_JSON_KEY;
    return FP_DONE;
}

int fp_json_next(struct fp_json *j, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        size_t at = in->pos;
        at = (size_t)(fp_json_after_blanks(in->p + at, in->p + in->n) - in->p);
        in->pos = at;
        if (FP_UNLIKELY(j->expects == FP_JSON_NOTHING && j->loose)) return after_value(j, in, at);
        if (at == in->n) {
            if (j->expects != FP_JSON_NOTHING || !in->eof) return more(in, err);
            j->token = FP_JSON_END;
            j->end = at;
            return FP_DONE;
        }
        const uint8_t c = in->p[at];
        const int in_object = j->depth && is_object(j, j->depth - 1);
        switch (j->expects) {
            case FP_JSON_NOTHING: return fail(in, at, "the end of the text", err);
            case FP_JSON_COMMA:
                if (c == (in_object ? '}' : ']')) break;
                if (c != ',') return fail(in, at, in_object ? "a comma or }" : "a comma or ]", err);
                in->pos++;
                j->expects = in_object ? FP_JSON_NEXT_KEY : FP_JSON_NEXT_ELEMENT;
                continue;
            case FP_JSON_FIRST_KEY:
            case FP_JSON_NEXT_KEY:
                if (c == '}') break;
                return key_at(j, in, at, err);
            case FP_JSON_ELEMENT:
            case FP_JSON_NEXT_ELEMENT:
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

void fp_json_take(struct fp_json *j, struct fp_window *in) {
    in->pos = j->end;
    switch (j->token) {
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY:
            open_level(j, j->token == FP_JSON_OBJECT);
            j->expects = j->token == FP_JSON_OBJECT ? FP_JSON_FIRST_KEY : FP_JSON_ELEMENT;
            return;
        case FP_JSON_KEY: j->expects = FP_JSON_MEMBER; break;
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
    j->expects = j->depth ? FP_JSON_COMMA : FP_JSON_NOTHING;
}

int fp_json_between(const struct fp_json *j) {
    return j->depth && !is_object(j, j->depth - 1) &&
           (j->expects == FP_JSON_COMMA || j->expects == FP_JSON_ELEMENT || j->expects == FP_JSON_NEXT_ELEMENT);
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
