/* The values of series, from costs of profiles: see trend.h. */
#include <math.h>
#include <string.h>

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

#define HEAD 8     /* bytes: the number of rows, and the widths of four columns */
#define REFERRED 4 /* more bytes if rows have width 0: how far before the head they are */

static uint32_t width_of(const int64_t *values, uint32_t n) {
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < low) low = values[i];
        if (values[i] > high) high = values[i];
    }
    if (!low && !high) return 0;
    if (low >= INT8_MIN && high <= INT8_MAX) return 1;
    if (low >= INT16_MIN && high <= INT16_MAX) return 2;
    if (low >= -(1 << 23) && high < 1 << 23) return 3;
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
    if (width == 3) return (int32_t)((uint32_t)from[0] << 8 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 24) / 256;
    if (width == 4) return (int32_t)word(from);
    return (int64_t)((uint64_t)word(from) | (uint64_t)word(from + 4) << 32);
}

struct packed {
    const uint8_t *rows, *columns[3];
    uint32_t n, widths[3];
    int is_own; /* the rows are of this profile only */
};

/* Of a profile of `size` bytes, whose rows are its own or somewhere before it. */
static int parsed(struct packed *p, const uint8_t *data, size_t length, uint64_t at, size_t size) {
    if (at > length || size > length - at || size < HEAD) return FP_E_MALFORMED;
    const uint8_t *from = data + at;
    const uint32_t width = from[4];
    const size_t head = width ? HEAD : HEAD + REFERRED;
    size_t each = width;
    for (uint32_t c = 0; c < 3; c++) {
        each += p->widths[c] = from[5 + c];
        if (p->widths[c] > 4 && p->widths[c] != 8) return FP_E_MALFORMED;
    }
    p->n = word(from);
    if ((width && width != 4) || size < head || (uint64_t)p->n * each != size - head) return FP_E_MALFORMED;
    const uint64_t before = width ? 0 : word(from + HEAD);
    if (before > at || (!width && (uint64_t)p->n * 4 > before)) return FP_E_MALFORMED;
    p->is_own = width != 0;
    p->rows = p->is_own ? from + head : from - before;
    from += head + (size_t)p->n * width;
    for (uint32_t c = 0; c < 3; from += (size_t)p->n * p->widths[c++]) p->columns[c] = from;
    return FP_DONE;
}

static int are_below(const uint8_t *rows, uint32_t n, uint32_t most) {
    for (uint32_t i = 0; i < n; i++)
        if (word(rows + 4 * (size_t)i) >= most) return 0;
    return 1;
}

int fp_trend_check(const uint8_t *data, size_t length, uint32_t n_rows, const uint32_t *sizes, uint32_t n,
                   uint32_t most) {
    struct packed p;
    uint64_t at = 4 * (uint64_t)n_rows;
    if (at > length || !are_below(data, n_rows, most)) return FP_E_MALFORMED;
    for (uint32_t i = 0; i < n; at += sizes[i], i++) {
        if (parsed(&p, data, length, at, sizes[i]) != FP_DONE || p.is_own == !!n_rows) return FP_E_MALFORMED;
        if (p.is_own ? !are_below(p.rows, p.n, most) : p.n != n_rows || p.rows != data) return FP_E_MALFORMED;
    }
    return at == length ? FP_DONE : FP_E_MALFORMED;
}

/* Where the costs of one profile go, by series, and what they are multiplied by. */
struct sums_at {
    const uint32_t *series; /* by place in the profile; others than the n_series are left out */
    double *restrict values, *restrict by_host, *restrict squares;
    uint32_t n_series;
    double scale, weight;
};

/* Of costs of `width` bytes, which is constant in each copy of this function. */
static inline void add_rows(const struct sums_at to, const struct packed *p, const uint8_t *costs, uint32_t width,
                            int per_calls) {
    for (uint32_t i = 0; i < p->n; i++) {
        const size_t f = to.series[i];
        if (f >= to.n_series) continue;
        const int64_t calls = per_calls ? number(p->columns[2], i, p->widths[2]) : 0;
        double value = (double)number(costs, i, width) * to.scale;
        if (calls > 0) value /= (double)calls;
        const double weighted = to.weight * value;
        to.values[f] += weighted;
        to.squares[f] += weighted * value;
        if (to.by_host) to.by_host[f] += weighted;
    }
}

/* What is known while profiles are added: the values of one point, next to each other, and the series of rows. */
struct adding {
    double *values;
    const uint8_t *rows;
    uint32_t *series, cap;
};

static int find_series(struct adding *a, const struct packed *p, const struct fp_trend_sides *s) {
    if (!p->is_own && p->rows == a->rows) return FP_DONE;
    fp_scratch_room(&a->series, &a->cap, p->n, sizeof *a->series);
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t row = word(p->rows + 4 * (size_t)i);
        if (row >= s->n_rows) return FP_E_MALFORMED;
        a->series[i] = s->places[row];
    }
    a->rows = p->is_own ? NULL : p->rows;
    return FP_DONE;
}

static int add(const struct fp_trend *t, const struct fp_trend_profiles *all, uint32_t profile, struct adding *a,
               struct fp_trend_sides *s) {
    struct packed p;
    const uint32_t host = s->n_hosts ? all->host[profile] : 0;
    if (host && host >= s->n_hosts) return FP_E_MALFORMED;
    if (parsed(&p, all->data, all->length, all->at[profile], all->size[profile]) != FP_DONE) return FP_E_MALFORMED;
    if (find_series(a, &p, s) != FP_DONE) return FP_E_MALFORMED;
    double *by_host = s->n_hosts ? s->by_host + (size_t)host * t->n_series : NULL;
    const struct sums_at to = {a->series,           a->values,           by_host, s->squares, t->n_series,
                               all->scale[profile], all->weight[profile]};
    const uint8_t *costs = p.columns[all->column];
    const int calls = all->per_calls;
    switch (p.widths[all->column]) {
        case 0: return FP_DONE;
        case 1: add_rows(to, &p, costs, 1, calls); return FP_DONE;
        case 2: add_rows(to, &p, costs, 2, calls); return FP_DONE;
        case 3: add_rows(to, &p, costs, 3, calls); return FP_DONE;
        case 4: add_rows(to, &p, costs, 4, calls); return FP_DONE;
        default: add_rows(to, &p, costs, 8, calls); return FP_DONE;
    }
}

int fp_trend_add(struct fp_trend *t, const struct fp_trend_profiles *p, struct fp_trend_sides *s) {
    if (p->column < 0 || p->column > 1) return FP_E_MALFORMED;
    struct adding a = {0};
    a.values = fp_scratch((size_t)t->n_series + 1, sizeof *a.values);
    int status = FP_DONE;
    for (uint32_t first = 0, end; first < p->n && status == FP_DONE; first = end) {
        const uint32_t point = p->point[first];
        if (point >= t->n_points) return FP_E_MALFORMED;
        double *column = t->values + point;
        for (uint32_t f = 0; f < t->n_series; f++) a.values[f] = column[(size_t)f * t->n_points];
        for (end = first; end < p->n && p->point[end] == point && status == FP_DONE; end++)
            status = add(t, p, end, &a, s);
        for (uint32_t f = 0; f < t->n_series; f++) column[(size_t)f * t->n_points] = a.values[f];
    }
    return status;
}

/* Of rows that one or several profiles have.  FP_DONE; FP_NEEDS, without a change of them; FP_E_MALFORMED. */
static int renumber(struct fp_trend_numbers *to, uint8_t *rows, uint32_t n, uint32_t profile) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t old = word(rows + 4 * (size_t)i);
        if (old >= to->n_old) return FP_E_MALFORMED;
        const int32_t row = to->rows[old];
        if (row < 0 || (uint32_t)row >= to->n_new || to->marks[row] == profile) return FP_NEEDS;
        to->marks[row] = profile;
    }
    for (uint32_t i = 0; i < n; i++, rows += 4) {
        const uint32_t row = (uint32_t)to->rows[word(rows)];
        for (uint32_t b = 0; b < 4; b++) rows[b] = (uint8_t)(row >> 8 * b);
    }
    return FP_DONE;
}

int fp_trend_renumber(struct fp_trend_numbers *to, uint8_t *data, size_t length, uint64_t at, const uint32_t *sizes,
                      const double *scales, uint32_t n_profiles, uint32_t profile) {
    const uint8_t *shared = NULL;
    for (uint32_t i = 0; i < n_profiles; at += sizes[i++]) {
        struct packed p;
        if (parsed(&p, data, length, at, sizes[i]) != FP_DONE) return FP_E_MALFORMED;
        const int status = p.rows == shared ? FP_DONE : renumber(to, data + (p.rows - data), p.n, profile + i);
        if (status == FP_NEEDS) return (int)i;
        if (status != FP_DONE) return status;
        if (!p.is_own) shared = p.rows;
        for (uint32_t k = 0; k < p.n; k++) {
            const uint32_t row = word(p.rows + 4 * (size_t)k);
            to->totals[row] += fabs((double)number(p.columns[0], k, p.widths[0])) * scales[i];
        }
    }
    return (int)n_profiles;
}

size_t fp_trend_pack(const struct fp_trend_kept *k, uint32_t before, uint8_t *out) {
    const int64_t *columns[] = {k->self, k->inclusive, k->calls};
    uint8_t *to = out + HEAD;
    for (uint32_t i = 0; i < 4; i++) out[i] = (uint8_t)(k->n >> 8 * i);
    out[4] = before ? 0 : 4;
    for (uint32_t b = 0; before && b < REFERRED; b++) *to++ = (uint8_t)(before >> 8 * b);
    for (uint32_t i = 0; i < k->n && !before; i++, to += 4)
        for (uint32_t b = 0; b < 4; b++) to[b] = (uint8_t)(k->rows[i] >> 8 * b);
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t width = width_of(columns[c], k->n);
        out[5 + c] = (uint8_t)width;
        to = put(to, columns[c], k->n, width);
    }
    return (size_t)(to - out);
}

int fp_trend_spread(const struct fp_trend_kept *k, const uint32_t *places, struct fp_trend_kept *to) {
    uint32_t n_empty = 0;
    memset(to->self, 0, to->n * sizeof *to->self);
    memset(to->inclusive, 0, to->n * sizeof *to->inclusive);
    memset(to->calls, 0, to->n * sizeof *to->calls);
    for (uint32_t i = 0; i < k->n; i++) {
        const uint32_t at = places[k->rows[i]];
        to->self[at] = k->self[i];
        to->inclusive[at] = k->inclusive[i];
        to->calls[at] = k->calls[i];
        n_empty += !k->self[i] && !k->inclusive[i];
    }
    return n_empty ? FP_NEEDS : FP_DONE;
}

int fp_trend_unpack(const uint8_t *data, size_t length, uint64_t at, size_t size, uint32_t most,
                    struct fp_trend_kept *k) {
    struct packed p;
    if (parsed(&p, data, length, at, size) != FP_DONE || p.n > k->n) return FP_E_MALFORMED;
    k->n = 0;
    for (uint32_t i = 0; i < p.n; i++) {
        const uint32_t row = word(p.rows + 4 * (size_t)i), to = k->n;
        if (row >= most) return FP_E_MALFORMED;
        k->rows[to] = row;
        k->self[to] = number(p.columns[0], i, p.widths[0]);
        k->inclusive[to] = number(p.columns[1], i, p.widths[1]);
        k->calls[to] = number(p.columns[2], i, p.widths[2]);
        k->n += p.is_own || k->self[to] || k->inclusive[to];
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

/* The sums of one series by host. */
static void hosts_of(const struct fp_trend *t, const struct fp_trend_replicas *r, uint32_t series, double *by_host) {
    for (uint32_t h = 0; h < r->n_hosts; h++) by_host[h] = r->by_host[(size_t)h * t->n_series + series];
}

/* Rows of which other hosts say nothing: means of the profiles of their own hosts. */
static int means_of_own(struct fp_trend *t, struct fp_trend_replicas *r, double *by_host) {
    for (uint32_t f = 0; f < t->n_series; f++) {
        double *x = t->values + (size_t)f * t->n_points;
        hosts_of(t, r, f, by_host);
        for (uint32_t p = 0; p < t->n_points; p++) {
            const double sum = of_own(r, by_host, p);
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
    double *by_host = fp_scratch(hosts + 1, sizeof *by_host);
    if (hosts && r->is_own) return means_of_own(t, r, by_host);
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
        hosts_of(t, r, f, by_host);
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
