#include "core/marshal.h"

#include "core/array.h"
#include "core/digits.h"
#include "core/guard.h"

/* The rest of the window.  `status`: 0, FP_MORE (it ends too early) or an error, of `what`. */
struct marshal_bytes {
    const uint8_t *p, *end;
    int status;
    const char *what;
};

void fp_marshal_begin(struct fp_marshal *m) {
    fp_strings_empty(&m->strings);
    m->n_symbols = m->n_links = m->n_levels = 0;
    m->has_head = m->is_over = 0;
    m->text.n = m->taken = 0;
    m->offset = m->linked = 0;
}

void fp_marshal_free(struct fp_marshal *m) {
    fp_strings_clear(&m->strings);
    fp_buf_free(&m->text);
    FP_FREE(m->symbols, m->links, m->levels);
}

static int stop(struct marshal_bytes *b, int status, const char *what) {
    if (!b->status) b->status = status, b->what = what;
    b->p = b->end;
    return 0;
}

static int byte(struct marshal_bytes *b) {
    return b->p < b->end ? *b->p++ : stop(b, FP_MORE, NULL);
}

/* 0; 1 to 4 or -1 to -4: that many bytes follow; else the number itself, 5 away from it. */
static int64_t fixnum(struct marshal_bytes *b) {
    const int c = (int8_t)byte(b), n = c < 0 ? -c : c;
    if (n > 4) return c < 0 ? c + 5 : c - 5;
    if (b->end - b->p < n) return stop(b, FP_MORE, NULL);
    uint32_t v = 0;
    memcpy(&v, b->p, (size_t)n);
    b->p += n;
    return c < 0 ? (int64_t)v - ((int64_t)1 << 8 * n) : v;
}

static uint32_t count(struct marshal_bytes *b) {
    const int64_t n = fixnum(b);
    return n < 0 ? (uint32_t)stop(b, FP_E_MALFORMED, "a length below 0") : (uint32_t)n;
}

static const uint8_t *bytes_of(struct marshal_bytes *b, uint64_t *n) {
    *n = count(b);
    if ((uint64_t)(b->end - b->p) < *n) *n = (uint64_t)stop(b, FP_MORE, NULL);
    const uint8_t *p = b->p;
    if (!b->status) b->p += *n;
    return p;
}

static uint32_t string_of(struct fp_marshal *m, struct marshal_bytes *b) {
    uint64_t n;
    const uint8_t *p = bytes_of(b, &n);
    return b->status ? 0 : fp_strings_intern(&m->strings, p, n);
}

static void push(uint32_t **items, uint32_t *n, uint32_t *cap, uint32_t item) {
    fp_array_room(items, cap, (uint64_t)*n + 1, sizeof **items);
    (*items)[(*n)++] = item;
}

static uint32_t symbol(struct fp_marshal *m, struct marshal_bytes *b) {
    const int kind = byte(b);
    if (kind == ';') {
        const uint32_t i = count(b);
        if (!b->status && i < m->n_symbols) return m->symbols[i];
        return (uint32_t)stop(b, FP_E_MALFORMED, "a link to a symbol that is not there");
    }
    if (kind != ':') return (uint32_t)stop(b, FP_E_MALFORMED, "no symbol where one is expected");
    const uint32_t string = string_of(m, b);
    if (!b->status) push(&m->symbols, &m->n_symbols, &m->cap_symbols, string);
    return string;
}

/* After a string or symbol with `I`: its encoding. */
static void skip_encoding(struct fp_marshal *m, struct marshal_bytes *b) {
    for (uint32_t n = count(b); n && !b->status; n--) {
        (void)symbol(m, b);
        const int kind = byte(b);
        if (kind == '"') {
            const uint32_t string = string_of(m, b);
            if (!b->status) push(&m->links, &m->n_links, &m->cap_links, string + 1);
        } else if (kind == '@') {
            (void)count(b);
        } else if (kind != 'T' && kind != 'F') {
            stop(b, FP_E_MALFORMED, "the encoding of a string");
        }
    }
}

static void put(struct fp_marshal *m, const void *p, size_t n) {
    (void)fp_buf_put(&m->text, p, n);
}

static void put_string(struct fp_marshal *m, uint32_t string) {
    static const char hex[] = "0123456789abcdef";
    size_t n, from = 0;
    const uint8_t *p = fp_string(&m->strings, string, &n);
    put(m, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= ' ' && p[i] != '"' && p[i] != '\\') continue;
        const char escape[] = {'\\', 'u', '0', '0', hex[p[i] >> 4], hex[p[i] & 15]};
        put(m, p + from, i - from);
        put(m, escape, sizeof escape);
        from = i + 1;
    }
    put(m, p + from, n - from);
    put(m, "\"", 1);
}

/* A text again: few bytes of links do not stand for a lot. */
static void put_linked(struct fp_marshal *m, struct marshal_bytes *b, uint32_t string) {
    enum { MOST_TIMES = 64, SPARE = 1 << 20 };
    size_t n;
    (void)fp_string(&m->strings, string, &n);
    m->linked += n;
    if (m->linked > MOST_TIMES * m->offset + SPARE)
        stop(b, FP_E_MALFORMED, "links to more text than 64 times what precedes them");
    else
        put_string(m, string);
}

static void put_number(struct fp_marshal *m, int is_negative, uint64_t v) {
    uint8_t digits[24], *end = digits;
    if (is_negative) *end++ = '-';
    end = fp_put_decimal(end, v);
    put(m, digits, (size_t)(end - digits));
}

static void bignum(struct fp_marshal *m, struct marshal_bytes *b) {
    const int sign = byte(b);
    const uint32_t n = count(b); /* words of 2 bytes */
    uint64_t v = 0;
    if (b->status || (b->end - b->p) / 2 < n) {
        stop(b, FP_MORE, NULL);
        return;
    }
    if (n > 4) {
        put(m, "null", 4); /* no number of 64 bits */
    } else {
        memcpy(&v, b->p, 2 * n);
        put_number(m, sign == '-', v);
    }
    b->p += 2 * (size_t)n;
}

static void open_level(struct fp_marshal *m, struct marshal_bytes *b, int is_hash) {
    const uint32_t n = count(b);
    if (b->status) return;
    FP_PUSH(m->levels, m->n_levels, m->cap_levels) = (struct fp_marshal_level){n, (uint8_t)is_hash, (uint8_t)is_hash};
    put(m, is_hash ? "{" : "[", 1);
}

static void link_to(struct fp_marshal *m, struct marshal_bytes *b) {
    const uint32_t i = count(b);
    if (b->status) return;
    if (i >= m->n_links)
        stop(b, FP_E_MALFORMED, "a link to an object that is not there");
    else if (m->links[i])
        put_linked(m, b, m->links[i] - 1);
    else
        put(m, "null", 4);
}

/* A value, or the beginning of an array or hash. */
static void put_value(struct fp_marshal *m, struct marshal_bytes *b) {
    int kind = byte(b);
    const int has_encoding = kind == 'I';
    if (has_encoding) kind = byte(b);
    if (b->status) return;
    if (has_encoding && kind != '"' && kind != ':') kind = 0;
    if (strchr("[{\"fl", kind) && kind) push(&m->links, &m->n_links, &m->cap_links, 0);
    const uint32_t own = m->n_links - 1;
    uint64_t n;
    int64_t v;
    switch (kind) {
        case '0': put(m, "null", 4); break;
        case 'T': put(m, "true", 4); break;
        case 'F': put(m, "false", 5); break;
        case 'i':
            v = fixnum(b);
            put_number(m, v < 0, (uint64_t)(v < 0 ? -v : v));
            break;
        case 'l': bignum(m, b); break;
        case 'f': {
            const uint8_t *p = bytes_of(b, &n);
            int is_number = n && fp_is_digit(p[n - 1]); /* inf and nan are not JSON's */
            for (size_t i = 0; is_number && i < n; i++) is_number = fp_is_digit(p[i]) || (p[i] && strchr("+-.e", p[i]));
            put(m, is_number ? (const void *)p : "null", is_number ? n : 4);
            break;
        }
        case ':':
        case ';': {
            b->p--;
            const uint32_t string = symbol(m, b);
            if (kind == ';' && !b->status)
                put_linked(m, b, string);
            else
                put_string(m, string);
            break;
        }
        case '"':
            m->links[own] = string_of(m, b) + 1;
            put_string(m, b->status ? 0 : m->links[own] - 1);
            break;
        case '[':
        case '{': open_level(m, b, kind == '{'); return;
        case '@': link_to(m, b); break;
        default: stop(b, FP_E_MALFORMED, "the type of a value"); return;
    }
    if (has_encoding) skip_encoding(m, b);
}

/* Appends the JSON of what comes next. */
static void next(struct fp_marshal *m, struct marshal_bytes *b) {
    if (!m->has_head) {
        if (byte(b) != 4 || byte(b) != 8) stop(b, FP_E_VERSION, "the version of Ruby's Marshal is not 4.8");
        if (!b->status) m->has_head = 1;
        return;
    }
    struct fp_marshal_level *level = m->n_levels ? &m->levels[m->n_levels - 1] : NULL;
    const uint32_t n_levels = m->n_levels;
    if (level && !level->left) {
        m->n_levels--;
        put(m, level->is_hash ? "}" : "]", 1);
    } else if (level && level->is_key) {
        const size_t at = m->text.n;
        put_value(m, b);
        if (b->status) return;
        const uint8_t first = m->n_levels > n_levels ? '[' : m->text.p[at];
        if (first != '"') { /* {7 => ...} */
            put(m, "\"", 1);
            memmove(m->text.p + at + 1, m->text.p + at, m->text.n - at - 1);
            m->text.p[at] = '"';
        }
        if (first == '"' || first == '-' || fp_is_digit(first)) {
            put(m, first == '"' ? ":" : "\":", first == '"' ? 1 : 2);
            level->is_key = 0;
        } else {
            stop(b, FP_E_MALFORMED, "a key that is not a number, text or symbol");
        }
        return;
    } else {
        put_value(m, b);
        if (b->status || m->n_levels > n_levels) return;
    }
    /* a value is complete */
    if (!m->n_levels) {
        m->is_over = 1;
        return;
    }
    level = &m->levels[m->n_levels - 1];
    level->left--;
    level->is_key = level->is_hash;
    put(m, ",", 1);
}

int fp_marshal_walk(struct fp_marshal *m, struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        struct fp_window json = {m->text.p, m->text.n, m->taken, 0, m->is_over};
        int status = FP_MORE;
        if (json.n) status = fp_json_walk(w, to, &json, err);
        m->taken = json.pos;
        if (status < 0) err->offset = m->offset;
        if (status == FP_DONE && in->pos < in->n)
            return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "bytes follow the dump");
        if (status == FP_DONE && !in->eof) return FP_MORE;
        if (status != FP_MORE) return status;
        if (m->taken) memmove(m->text.p, m->text.p + m->taken, m->text.n - m->taken);
        m->text.n -= m->taken;
        m->taken = 0;
        struct marshal_bytes b = {in->p + in->pos, in->p + in->n, 0, NULL};
        const size_t before = m->text.n;
        const uint32_t n_links = m->n_links, n_symbols = m->n_symbols;
        m->offset = in->base + in->pos;
        next(m, &b);
        if (b.status == FP_MORE) {
            m->text.n = before;
            m->n_links = n_links;
            m->n_symbols = n_symbols;
            if (!in->eof) return FP_MORE;
            return fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the dump ends too early");
        }
        if (b.status) return fp_fail(err, b.status, m->offset, b.what);
        in->pos = (size_t)(b.p - in->p);
    }
}
