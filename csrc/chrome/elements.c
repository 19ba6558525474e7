/* Ids, times and lines of samples, one by one and as arrays, which are most of the text. */
#include "chrome/samples_private.h"

/* An id that is a number below 2^31; all others are strings. */
static uint32_t of_number(uint64_t number) {
    return (uint32_t)number << 1 | 1;
}

static void of_text(struct fp_chrome_samples *r, const uint8_t *p, size_t n, uint32_t *id) {
    const uint32_t string = fp_strings_intern(&r->ids, p, n);
    if (string > UINT32_MAX / 2) fp_escape();
    *id = string << 1;
}

/* Of a whole number, as of its digits in a string. */
static void of_whole(struct fp_chrome_samples *r, int64_t number, uint32_t *id) {
    uint8_t digits[24];
    if (number < 0 || number > INT32_MAX)
        of_text(r, digits, (size_t)(fp_put_signed(digits, number) - digits), id);
    else
        *id = of_number((uint64_t)number);
}

/* Whether a text is a number as of_whole writes it, and short. */
static int is_whole(const uint8_t *p, size_t n) {
    size_t digits = 0;
    while (digits < n && fp_is_digit(p[digits])) digits++;
    return n && digits == n && n <= 10 && (*p != '0' || n == 1);
}

void fp_chrome_samples_take_id(struct fp_chrome_samples *r, uint32_t *id) {
    const struct fp_json *j = &r->walk.json;
    if (j->token == FP_JSON_WORD) return;
    size_t n;
    const uint8_t *const p = fp_json_plain(j, &r->walk.scratch, &n);
    int64_t number;
    int rounded = 0;
    if ((j->token == FP_JSON_NUMBER || is_whole(p, n)) && !fp_json_number(p, n, 0, &number, &rounded) && !rounded)
        of_whole(r, number, id);
    else
        of_text(r, p, n, id);
}

int fp_chrome_samples_take_time(struct fp_chrome_samples *r, int64_t *ns) {
    const struct fp_json *j = &r->walk.json;
    if (j->token == FP_JSON_WORD) return FP_E_MALFORMED;
    size_t n = j->text_n;
    const uint8_t *p = fp_json_trim(j->text, &n);
    const int status = fp_json_number(p, n, 3, ns, NULL);
    return status || (*ns < INT64_MAX / 2 && *ns > INT64_MIN / 2) ? status : FP_E_OVERFLOW;
}

/* A line that is counted from `first`, counted from 1; 0: unknown. */
static int64_t line_of(int64_t number, int64_t first) {
    return number >= first && number < INT32_MAX ? number - first + 1 : 0;
}

int fp_chrome_samples_take_line(struct fp_chrome_samples *r, int64_t first, int64_t *line) {
    const struct fp_json *j = &r->walk.json;
    *line = 0;
    if (j->token != FP_JSON_NUMBER || fp_json_number(j->text, j->text_n, 0, line, NULL)) return 0;
    *line = line_of(*line, first);
    return 0;
}

int fp_chrome_samples_take_element(struct fp_chrome_samples *r, enum fp_chrome_samples_column which) {
    struct fp_chrome_samples_values *c = &r->pub.columns[which];
    uint32_t id = 0;
    int64_t value = 0;
    if (!r->second) {
        c->total++;
        return 0;
    }
    if (c->n == FP_CHROME_KEPT) {
        r->pub.column = which;
        r->pub.request = FP_CHROME_SPILL;
        return FP_NEEDS;
    }
    int status = 0;
    if (which == FP_CHROME_NODES)
        fp_chrome_samples_take_id(r, &id);
    else
        status = which == FP_CHROME_DELTAS ? fp_chrome_samples_take_time(r, &value)
                                           : fp_chrome_samples_take_line(r, 1, &value);
    if (status && !r->lenient) return status;
    c->values[c->n++] = which == FP_CHROME_NODES ? id : status ? 0 : value;
    c->total++;
    return status;
}

void fp_chrome_samples_elements(struct fp_chrome_samples *r, struct fp_window *in,
                                enum fp_chrome_samples_column which) {
    struct fp_chrome_samples_values *c = &r->pub.columns[which];
    if (!r->second) { /* the first pass counts them */
        c->total += fp_json_skip(&r->walk.json, in);
        return;
    }
    const int scale = which == FP_CHROME_DELTAS ? 3 : 0, exact = which == FP_CHROME_NODES;
    const uint8_t expects = r->walk.json.expects;
    const size_t from = in->pos;
    int64_t *const to = c->values + c->n;
    size_t n = fp_json_numbers(&r->walk.json, in, scale, exact, INT64_MIN, to, FP_CHROME_KEPT - c->n), good = 0;
    while (good < n && to[good] != INT64_MIN) good++;
    if (good < n) { /* null */
        in->pos = from;
        r->walk.json.expects = expects;
        n = good ? fp_json_numbers(&r->walk.json, in, scale, exact, INT64_MIN, to, good) : 0;
    }
    for (size_t i = 0; i < n && which != FP_CHROME_DELTAS; i++) {
        uint32_t id = 0;
        if (which == FP_CHROME_NODES) of_whole(r, to[i], &id);
        to[i] = which == FP_CHROME_NODES ? id : line_of(to[i], 1);
    }
    c->n += (uint32_t)n;
    c->total += n;
}
