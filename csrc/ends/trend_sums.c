/* The values of series, from costs of profiles: see trend.h. */
#include <math.h>

#include "ends/trend.h"
#include "ends/trend_private.h"

uint32_t fp_trend_costs(const struct fp_top_sums *c, uint32_t *ids, int64_t *self, int64_t *inclusive, int64_t *calls) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->cap; i++) {
        if (!c->self[i] && !c->inclusive[i]) continue;
        ids[n] = i;
        self[n] = c->self[i];
        inclusive[n] = c->inclusive[i];
        calls[n++] = c->calls[i];
    }
    return n;
}

int fp_trend_total(double *totals, const uint32_t *rows, const int64_t *costs, uint32_t n, double scale) {
    for (uint32_t i = 0; i < n; i++) totals[rows[i]] += fabs((double)costs[i]) * scale;
    return FP_DONE;
}

/* ---- on disk */

#define HEAD 8 /* bytes: the number of rows, and the widths of four columns */

static uint32_t width_of(const int64_t *values, uint32_t n) {
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < low) low = values[i];
        if (values[i] > high) high = values[i];
    }
    if (!low && !high) return 0;
    if (low >= INT8_MIN && high <= INT8_MAX) return 1;
    if (low >= INT16_MIN && high <= INT16_MAX) return 2;
    return low >= INT32_MIN && high <= INT32_MAX ? 4 : 8;
}

static uint8_t *put(uint8_t *out, const int64_t *values, uint32_t n, uint32_t width) {
    for (uint32_t i = 0; i < n && width; i++, out += width)
        for (uint32_t k = 0; k < width; k++) out[k] = (uint8_t)((uint64_t)values[i] >> 8 * k);
    return out;
}

static uint32_t word(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline int64_t number(const uint8_t *column, uint32_t i, uint32_t width) {
    const uint8_t *from = column + (size_t)i * width;
    if (!width) return 0;
    if (width == 1) return (int8_t)from[0];
    if (width == 2) return (int16_t)(uint16_t)(from[0] | from[1] << 8);
    if (width == 4) return (int32_t)word(from);
    return (int64_t)((uint64_t)word(from) | (uint64_t)word(from + 4) << 32);
}

struct packed {
    const uint8_t *rows, *columns[3];
    uint32_t n, widths[3];
};

static int parsed(struct packed *p, const uint8_t *data, size_t length) {
    size_t each = 4;
    if (length < HEAD || data[4] != 4) return FP_E_MALFORMED;
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t width = p->widths[c] = data[5 + c];
        if (width > 8 || (width & (width - 1))) return FP_E_MALFORMED;
        each += width;
    }
    p->n = word(data);
    if ((uint64_t)p->n * each != length - HEAD) return FP_E_MALFORMED;
    p->rows = data + HEAD;
    const uint8_t *from = p->rows + 4 * (size_t)p->n;
    for (uint32_t c = 0; c < 3; from += (size_t)p->n * p->widths[c++]) p->columns[c] = from;
    return FP_DONE;
}

int fp_trend_check(const uint8_t *data, size_t length, const uint32_t *sizes, uint32_t n, uint32_t most) {
    struct packed p;
    for (uint32_t i = 0; i < n; data += sizes[i], length -= sizes[i], i++) {
        if (sizes[i] > length || parsed(&p, data, sizes[i]) != FP_DONE) return FP_E_MALFORMED;
        for (uint32_t k = 0; k < p.n; k++)
            if (word(p.rows + 4 * (size_t)k) >= most) return FP_E_MALFORMED;
    }
    return length ? FP_E_MALFORMED : FP_DONE;
}

/* Where the costs of one profile go, and what they are multiplied by. */
struct sums_at {
    double *values, *by_host, *squares;
    size_t by_point, by_host_of; /* steps from series to series */
    uint32_t n_series;
    double scale, weight;
};

/* Of costs of `width` bytes, which is constant in each copy of this function. */
static inline int add_rows(const struct sums_at *to, const struct packed *p, const uint8_t *costs, uint32_t width,
                           int per_calls, const struct fp_trend_sides *s) {
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t row = word(p->rows + 4 * (size_t)i);
        if (row >= s->n_rows) return FP_E_MALFORMED;
        const size_t f = s->places[row];
        if (f >= to->n_series) continue;
        const int64_t calls = per_calls ? number(p->columns[2], i, p->widths[2]) : 0;
        double value = (double)number(costs, i, width) * to->scale;
        if (calls > 0) value /= (double)calls;
        const double weighted = to->weight * value;
        to->values[f * to->by_point] += weighted;
        to->squares[f] += weighted * value;
        if (to->by_host) to->by_host[f * to->by_host_of] += weighted;
    }
    return FP_DONE;
}

static int add(struct fp_trend *t, const struct fp_trend_profiles *all, uint32_t profile, struct fp_trend_sides *s) {
    struct packed p;
    const uint64_t at = all->at[profile];
    const uint32_t point = all->point[profile], host = s->n_hosts ? all->host[profile] : 0;
    if (at > all->length || all->size[profile] > all->length - at) return FP_E_MALFORMED;
    if (parsed(&p, all->data + at, all->size[profile]) != FP_DONE) return FP_E_MALFORMED;
    if (point >= t->n_points || (host && host >= s->n_hosts)) return FP_E_MALFORMED;
    const struct sums_at to = {t->values + point,   s->n_hosts ? s->by_host + host : NULL,
                               s->squares,          t->n_points,
                               s->n_hosts,          t->n_series,
                               all->scale[profile], all->weight[profile]};
    const uint8_t *costs = p.columns[all->column];
    const int calls = all->per_calls;
    switch (p.widths[all->column]) {
        case 0: return add_rows(&to, &p, costs, 0, calls, s);
        case 1: return add_rows(&to, &p, costs, 1, calls, s);
        case 2: return add_rows(&to, &p, costs, 2, calls, s);
        case 4: return add_rows(&to, &p, costs, 4, calls, s);
        default: return add_rows(&to, &p, costs, 8, calls, s);
    }
}

int fp_trend_add(struct fp_trend *t, const struct fp_trend_profiles *p, struct fp_trend_sides *s) {
    int status = p->column < 0 || p->column > 1 ? FP_E_MALFORMED : FP_DONE;
    for (uint32_t i = 0; i < p->n && status == FP_DONE; i++) status = add(t, p, i, s);
    return status;
}

/* Of one profile.  FP_DONE; FP_NEEDS, without a change of the costs; FP_E_MALFORMED. */
static int renumber(struct fp_trend_numbers *n, uint8_t *data, size_t length, uint32_t profile, double scale) {
    struct packed p;
    if (parsed(&p, data, length) != FP_DONE) return FP_E_MALFORMED;
    for (uint32_t i = 0; i < p.n; i++) {
        const uint32_t old = word(p.rows + 4 * (size_t)i);
        if (old >= n->n_old) return FP_E_MALFORMED;
        const int32_t row = n->rows[old];
        if (row < 0 || (uint32_t)row >= n->n_new || n->marks[row] == profile) return FP_NEEDS;
        n->marks[row] = profile;
    }
    uint8_t *to = data + HEAD;
    for (uint32_t i = 0; i < p.n; i++, to += 4) {
        const uint32_t row = (uint32_t)n->rows[word(to)];
        for (uint32_t b = 0; b < 4; b++) to[b] = (uint8_t)(row >> 8 * b);
        n->totals[row] += fabs((double)number(p.columns[0], i, p.widths[0])) * scale;
    }
    return FP_DONE;
}

int fp_trend_renumber(struct fp_trend_numbers *n, uint8_t *data, size_t length, const uint32_t *sizes,
                      const double *scales, uint32_t n_profiles, uint32_t profile) {
    for (uint32_t i = 0; i < n_profiles; data += sizes[i], length -= sizes[i], i++) {
        if (sizes[i] > length) return FP_E_MALFORMED;
        const int status = renumber(n, data, sizes[i], profile + i, scales[i]);
        if (status == FP_NEEDS) return (int)i;
        if (status != FP_DONE) return status;
    }
    return (int)n_profiles;
}

size_t fp_trend_pack(const struct fp_trend_kept *k, uint8_t *out) {
    const int64_t *columns[] = {k->self, k->inclusive, k->calls};
    uint8_t *to = out + HEAD;
    for (uint32_t i = 0; i < 4; i++) out[i] = (uint8_t)(k->n >> 8 * i);
    out[4] = 4;
    for (uint32_t i = 0; i < k->n; i++, to += 4)
        for (uint32_t b = 0; b < 4; b++) to[b] = (uint8_t)(k->rows[i] >> 8 * b);
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t width = width_of(columns[c], k->n);
        out[5 + c] = (uint8_t)width;
        to = put(to, columns[c], k->n, width);
    }
    return (size_t)(to - out);
}

int fp_trend_unpack(const uint8_t *data, size_t length, uint32_t most, struct fp_trend_kept *k) {
    struct packed p;
    if (parsed(&p, data, length) != FP_DONE || p.n != k->n) return FP_E_MALFORMED;
    for (uint32_t i = 0; i < p.n; i++) {
        k->rows[i] = word(p.rows + 4 * (size_t)i);
        if (k->rows[i] >= most) return FP_E_MALFORMED;
        k->self[i] = number(p.columns[0], i, p.widths[0]);
        k->inclusive[i] = number(p.columns[1], i, p.widths[1]);
        k->calls[i] = number(p.columns[2], i, p.widths[2]);
    }
    return FP_DONE;
}

/* Inverts a symmetric positive matrix of n rows in place (Gauss and Jordan). */
static void invert(double *a, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const double pivot = 1 / a[k * n + k];
        a[k * n + k] = 1;
        for (uint32_t j = 0; j < n; j++) a[k * n + j] *= pivot;
        for (uint32_t i = 0; i < n; i++) {
            if (i == k) continue;
            const double factor = a[i * n + k];
            a[i * n + k] = 0;
            for (uint32_t j = 0; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
}

/* The inverse of the equations for the levels of hosts, from which those of points are eliminated. */
static double *equations(const struct fp_trend *t, const struct fp_trend_replicas *r) {
    const uint32_t n = r->n_hosts;
    double *a = fp_scratch((size_t)n * n + 1, sizeof *a);
    for (uint32_t p = 0; p < t->n_points; p++) {
        const double *by = r->n_by + (size_t)p * n;
        for (uint32_t i = 0; i < n; i++) {
            if (by[i] == 0) continue;
            a[i * n + i] += by[i];
            for (uint32_t j = 0; j < n; j++) a[i * n + j] -= by[i] * by[j] / r->n_of[p];
        }
    }
    /* levels are relative to each other: of all solutions, the one that is near 0 */
    for (uint32_t i = 0; i < n; i++) a[i * n + i] += 1e-6;
    invert(a, n);
    return a;
}

static void solve(const struct fp_trend *t, const struct fp_trend_replicas *r, const double *inverse, const double *x,
                  const double *by_host, double *right, double *levels) {
    const uint32_t n = r->n_hosts;
    for (uint32_t h = 0; h < n; h++) right[h] = by_host[h];
    for (uint32_t p = 0; p < t->n_points; p++) {
        const double mean = x[p] / r->n_of[p];
        for (uint32_t h = 0; h < n; h++) right[h] -= r->n_by[(size_t)p * n + h] * mean;
    }
    for (uint32_t i = 0; i < n; i++) {
        levels[i] = 0;
        for (uint32_t j = 0; j < n; j++) levels[i] += inverse[i * n + j] * right[j];
    }
}

/* Whether each host is in all points with the same weight: its level then does not matter. */
static int balanced(const struct fp_trend *t, const struct fp_trend_replicas *r) {
    const size_t n = r->n_hosts * sizeof *r->n_by;
    for (uint32_t p = 1; p < t->n_points; p++)
        if (memcmp(r->n_by, r->n_by + (size_t)p * r->n_hosts, n) != 0) return 0;
    return 1;
}

/* The weight of the profiles of a point whose host has a row. */
static double of_own(const struct fp_trend_replicas *r, const double *by_host, uint32_t point) {
    double sum = 0;
    for (uint32_t h = 0; h < r->n_hosts; h++)
        if (by_host[h] != 0) sum += r->n_by[(size_t)point * r->n_hosts + h];
    return sum;
}

/* Rows of which other hosts say nothing: means of the profiles of their own hosts. */
static int means_of_own(struct fp_trend *t, struct fp_trend_replicas *r) {
    for (uint32_t f = 0; f < t->n_series; f++) {
        double *x = t->values + (size_t)f * t->n_points;
        for (uint32_t p = 0; p < t->n_points; p++) {
            const double sum = of_own(r, r->by_host + (size_t)f * r->n_hosts, p);
            x[p] = sum > 0 ? x[p] / sum : (double)NAN;
        }
        r->spread[f] = 0;
    }
    r->freedom = 0;
    return FP_DONE;
}

#define LEAST_TURNS 4 /* points of hosts that are never with others: with fewer they are compared with these */

/* Points without a host in common, not even by way of others. */
struct turns {
    uint32_t *of; /* by point: its group, or that it has none */
    uint32_t n;
    double *sums, *counts; /* by group */
};

static uint32_t root(const uint32_t *up, uint32_t host) {
    while (up[host] != host) host = up[host];
    return host;
}

static void turns_init(struct turns *turns, const struct fp_trend *t, const struct fp_trend_replicas *r) {
    uint32_t *up = fp_scratch(r->n_hosts + 1, sizeof *up), *group = fp_scratch(r->n_hosts + 1, sizeof *group);
    uint32_t *count = fp_scratch(r->n_hosts + 1, sizeof *count);
    turns->of = fp_scratch((size_t)t->n_points + 1, sizeof *turns->of);
    turns->sums = fp_scratch(r->n_hosts + 1, sizeof *turns->sums);
    turns->counts = fp_scratch(r->n_hosts + 1, sizeof *turns->counts);
    turns->n = 0;
    for (uint32_t h = 0; h < r->n_hosts; h++) up[h] = h;
    for (uint32_t p = 0; p < t->n_points; p++) {
        uint32_t first = FP_TREND_NO_ROW;
        for (uint32_t h = 0; h < r->n_hosts; h++) {
            if (r->n_by[(size_t)p * r->n_hosts + h] == 0) continue;
            if (first == FP_TREND_NO_ROW) turns->of[p] = first = h;
            up[root(up, h)] = root(up, first);
        }
    }
    for (uint32_t p = 0; p < t->n_points; p++) count[root(up, turns->of[p])]++;
    for (uint32_t h = 0; h < r->n_hosts; h++) group[h] = count[h] < LEAST_TURNS ? FP_TREND_NO_ROW : turns->n++;
    for (uint32_t p = 0; p < t->n_points; p++) turns->of[p] = group[root(up, turns->of[p])];
}

/* Moves the values of each group so that all have the same mean.  Single points that stick out do not count. */
static void level_turns(const struct turns *turns, double *x, uint32_t n) {
    double all = 0, known = 0;
    for (uint32_t g = 0; g < turns->n; g++) {
        double last[2] = {0};
        uint32_t m = 0;
        turns->sums[g] = turns->counts[g] = 0;
        for (uint32_t p = 0; p < n; p++) {
            if (turns->of[p] != g || isnan(x[p])) continue;
            if (m >= 2) turns->sums[g] += fp_trend_middle(last[0], last[1], x[p]), turns->counts[g]++;
            last[0] = last[1], last[1] = x[p], m++;
        }
        all += turns->sums[g], known += turns->counts[g];
    }
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t g = turns->of[p];
        if (g >= turns->n || isnan(x[p]) || x[p] == 0 || turns->counts[g] == 0) continue;
        const double moved = x[p] + all / known - turns->sums[g] / turns->counts[g];
        x[p] = (moved < 0) == (x[p] < 0) ? moved : 0;
    }
}

int fp_trend_means(struct fp_trend *t, struct fp_trend_replicas *r) {
    const uint32_t n = t->n_points, hosts = r->n_hosts;
    if (hosts && r->is_own) return means_of_own(t, r);
    double *levels = fp_scratch(hosts + 1, sizeof *levels), *right = fp_scratch(hosts + 1, sizeof *right);
    const double *inverse = hosts ? equations(t, r) : NULL;
    const int moves = hosts && !balanced(t, r);
    double inverses = 0;
    struct turns turns = {0};
    if (moves) turns_init(&turns, t, r);
    t->lost = turns.n > 1 ? turns.n - 1 : 0;
    for (uint32_t p = 0; p < n; p++) inverses += 1 / r->n_of[p] / n;
    r->freedom = fmax(0, (double)r->n_profiles - n - (hosts ? hosts - 1 : 0));
    for (uint32_t f = 0; f < t->n_series; f++) {
        double *x = t->values + (size_t)f * n, left = r->squares[f];
        const double *by_host = r->by_host + (size_t)f * hosts;
        int is_own = 0; /* whether any host has the row */
        if (hosts) solve(t, r, inverse, x, by_host, right, levels);
        for (uint32_t h = 0; h < hosts; h++) {
            left -= levels[h] * by_host[h];
            is_own |= by_host[h] != 0;
        }
        for (uint32_t p = 0; p < n; p++) {
            double sum = x[p];
            for (uint32_t h = 0; h < hosts; h++) sum -= r->n_by[(size_t)p * hosts + h] * levels[h];
            left -= sum / r->n_of[p] * x[p];
            if (moves && is_own && x[p] == 0 && of_own(r, by_host, p) == 0) {
                x[p] = (double)NAN;
                continue;
            }
            if (!moves || x[p] == 0) sum = x[p];
            x[p] = (sum < 0) == (x[p] < 0) ? sum / r->n_of[p] : 0;
        }
        if (turns.n > 1) level_turns(&turns, x, n);
        r->spread[f] = r->freedom > 0 ? fmax(0, left) / r->freedom * inverses : 0;
    }
    return FP_DONE;
}
