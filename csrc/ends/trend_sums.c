/* The values of series, from costs of profiles: see trend.h. */
#include <math.h>
#include <string.h>

#include "core/guard.h"
#include "ends/trend.h"

uint32_t fp_trend_costs(const struct fp_top *c, uint32_t *ids, int64_t *self, int64_t *inclusive, int64_t *calls) {
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

int fp_trend_add(struct fp_trend *t, const struct fp_trend_costs *c, const uint32_t *places, double *by_host,
                 uint32_t n_hosts, double *squares) {
    for (uint32_t i = 0; i < c->n; i++) {
        const size_t f = places[c->rows[i]];
        if (f >= t->n_series) continue;
        const double unit = c->units && c->units[i] > 0 ? (double)c->units[i] : 1;
        const double value = (double)c->costs[i] * c->scale / unit;
        t->values[f * t->n_points + c->point] += c->weight * value;
        if (n_hosts) by_host[f * n_hosts + c->host] += c->weight * value;
        squares[f] += c->weight * value * value;
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

int fp_trend_means(struct fp_trend *t, struct fp_trend_replicas *r) {
    const uint32_t n = t->n_points, hosts = r->n_hosts;
    if (hosts && r->is_own) return means_of_own(t, r);
    double *levels = fp_scratch(hosts + 1, sizeof *levels), *right = fp_scratch(hosts + 1, sizeof *right);
    const double *inverse = hosts ? equations(t, r) : NULL;
    const int moves = hosts && !balanced(t, r);
    double inverses = 0;
    for (uint32_t p = 0; p < n; p++) inverses += 1 / r->n_of[p] / n;
    r->freedom = fmax(0, (double)r->n_profiles - n - (hosts ? hosts - 1 : 0));
    for (uint32_t f = 0; f < t->n_series; f++) {
        double *x = t->values + (size_t)f * n, left = r->squares[f];
        const double *by_host = r->by_host + (size_t)f * hosts;
        if (hosts) solve(t, r, inverse, x, by_host, right, levels);
        for (uint32_t h = 0; h < hosts; h++) left -= levels[h] * by_host[h];
        for (uint32_t p = 0; p < n; p++) {
            double sum = x[p];
            for (uint32_t h = 0; h < hosts; h++) sum -= r->n_by[(size_t)p * hosts + h] * levels[h];
            left -= sum / r->n_of[p] * x[p];
            if (moves && x[p] == 0 && of_own(r, by_host, p) == 0) {
                x[p] = (double)NAN;
                continue;
            }
            if (!moves || x[p] == 0) sum = x[p];
            x[p] = (sum < 0) == (x[p] < 0) ? sum / r->n_of[p] : 0;
        }
        r->spread[f] = r->freedom > 0 ? fmax(0, left) / r->freedom * inverses : 0;
    }
    return FP_DONE;
}
