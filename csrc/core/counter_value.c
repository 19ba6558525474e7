#include "core/counter_value.h"

#include <math.h>

#include "core/digits.h"

enum { MOST_DIGITS = 40 }; /* 17 distinguish all doubles */

/* digits * 10^exponent.  As text without a point, which some locales write as a comma. */
static double scaled(const uint8_t *digits, size_t n, int64_t exponent) {
    uint8_t text[MOST_DIGITS + 1 + FP_DIGITS_ROOM];
    if (!n) return 0;
    memcpy(text, digits, n);
    text[n] = 'e';
    *fp_put_signed(text + n + 1, exponent) = 0;
    return strtod((const char *)text, NULL);
}

static double value_of(uint64_t whole, int exponent) {
    uint8_t digits[FP_DIGITS_ROOM];
    return scaled(digits, (size_t)(fp_put_decimal(digits, whole) - digits), exponent);
}

/* v > 0 as digits and an exponent.  Its end. */
static uint8_t *put_digits(uint8_t *to, double v) {
    double some = v; /* 18 digits; the products are rounded */
    int k = 0;
    for (; some >= 1e18; k--) some /= 10;
    for (; some < 1e17; k++) some *= 10;
    uint64_t whole = (uint64_t)some;
    for (int tries = 0; tries < 8; tries++) {
        const double is = value_of(whole, -k);
        double missing = v - is;
        if (is == v) break;
        for (int i = 0; i < k; i++) missing *= 10;
        for (int i = 0; i > k; i--) missing /= 10;
        whole = isfinite(missing) ? (uint64_t)((int64_t)whole + (int64_t)missing) : whole - (whole >> 44);
    }
    for (uint64_t ten = 1000; ten > 1; ten /= 10) { /* fewer digits may do */
        const uint64_t fewer = (whole + ten / 2) / ten * ten;
        if (value_of(fewer, -k) != v) continue;
        whole = fewer;
        break;
    }
    for (; whole && whole % 10 == 0; k--) whole /= 10;
    to = fp_put_decimal(to, whole);
    *to++ = 'e';
    return fp_put_signed(to, -k);
}

size_t fp_put_real(uint8_t *to, double v) {
    static const double tens[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    uint8_t *p = to;
    if (!isfinite(v)) return 0;
    if (v < 0) *p++ = '-';
    v = fabs(v);
    if (v < 9e18 && (double)(uint64_t)v == v) return (size_t)(fp_put_decimal(p, (uint64_t)v) - to);
    for (int k = 1; k < 10 && v * tens[k] < 9e15; k++) { /* a decimal fraction: 12.5 */
        const uint64_t whole = (uint64_t)(v * tens[k] + 0.5), ten = (uint64_t)tens[k];
        if ((double)whole / tens[k] != v) continue;
        p = fp_put_decimal(p, whole / ten);
        fp_put_decimal(p, ten + whole % ten); /* the 1 makes room for leading zeros, and for the point */
        *p = '.';
        return (size_t)(p - to) + (size_t)k + 1;
    }
    return (size_t)(put_digits(p, v) - to);
}

/* The parts of a JSON number, which may have leading zeros: its digits without a sign and a point, and the exponent.
 * Its length; 0: no number. */
static size_t split(const uint8_t *p, size_t n, uint8_t digits[MOST_DIGITS], size_t *n_digits, int64_t *exponent) {
    size_t i = n && p[0] == '-' ? 1 : 0;
    const size_t first = i;
    int fraction = 0;
    *n_digits = 0;
    *exponent = 0;
    for (; i < n; i++) {
        if (p[i] == '.' && !fraction && i > first && i + 1 < n && fp_is_digit(p[i + 1])) {
            fraction = 1;
            continue;
        }
        if (!fp_is_digit(p[i])) break;
        if (*n_digits == MOST_DIGITS) {
            *exponent += !fraction;
            continue;
        }
        *exponent -= fraction;
        if (*n_digits || p[i] != '0') digits[(*n_digits)++] = p[i];
    }
    if (i == first) return 0;
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        const int negative = i + 1 < n && p[i + 1] == '-', has_sign = negative || (i + 1 < n && p[i + 1] == '+');
        const size_t from = i + 1 + (size_t)has_sign;
        int64_t more = 0;
        for (i = from; i < n && fp_is_digit(p[i]) && i < from + 4; i++) more = more * 10 + p[i] - '0';
        if (i == from) return 0;
        *exponent += negative ? -more : more;
    }
    return i;
}

double fp_real_of(const uint8_t *p, size_t n) {
    uint8_t digits[MOST_DIGITS];
    size_t n_digits;
    int64_t exponent;
    if (!n || split(p, n, digits, &n_digits, &exponent) != n) return NAN;
    const double v = scaled(digits, n_digits, exponent);
    return *p == '-' ? -v : v;
}

int fp_counter_value_payload(struct fp_buf *to, double value, const uint8_t *name, size_t n) {
    uint8_t number[FP_REAL_ROOM];
    const size_t length = fp_put_real(number, value);
    to->n = 0;
    return length && (fp_buf_put(to, number, length) || fp_buf_put(to, " ", 1) || fp_buf_put(to, name, n)) ? FP_E_NOMEM
                                                                                                           : 0;
}

size_t fp_counter_value_of(const struct fp_batch *b, uint32_t row) {
    uint8_t digits[MOST_DIGITS];
    size_t n_digits;
    int64_t exponent;
    if (b->op[row] != FP_OP_TYPED || b->function[row] != FP_COUNTER_TYPE) return 0;
    const uint8_t *p = fp_batch_bytes(b, b->aux[row]);
    const size_t n = (uint32_t)b->aux[row];
    const size_t length = split(p, n, digits, &n_digits, &exponent);
    return length && length < n && p[length] == ' ' && isfinite(scaled(digits, n_digits, exponent)) ? length : 0;
}
