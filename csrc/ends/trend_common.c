/* What all series have in common: see fp_trend_common in trend.h. */
#include <math.h>

#include "ends/trend.h"
#include "ends/trend_private.h"

#define TYPICAL 1024 /* series that stand for all: those with the highest levels */

/* The factors without their noise: means between the splits of their own series. */
static void without_noise(const struct fp_trend *t, double *common) {
    const uint32_t n = t->n_points;
    struct fp_trend_series series;
    struct fp_trend one = {.n_points = n, .n_series = 1, .values = common, .series = &series};
    struct fp_trend_change found[64];
    double *zeros = fp_scratch(n + 1, sizeof *zeros), *level = fp_scratch(n + 1, sizeof *level);
    one.weight = zeros;
    fp_trend_noise(&one);
    series.freedom = fmax(series.freedom, 30);
    const int m = fp_trend_changes(&one, 0, 0.01, found, 64);
    for (uint32_t i = 0; i < n; i++) level[i] = 1;
    for (int k = 0; k < m; k++) {
        const struct fp_trend_change *c = &found[k];
        if (c->kind == FP_TREND_DRIFT)
            for (uint32_t i = c->at; i < n; i++) level[i] = common[i];
        for (uint32_t i = c->at; i < c->end && c->kind != FP_TREND_DRIFT; i++) level[i] = c->after;
        if (!k)
            for (uint32_t i = 0; i < c->at; i++) level[i] = c->before;
        if (c->kind == FP_TREND_SPIKE || c->kind == FP_TREND_GONE) {
            const uint32_t next = k + 1 < m ? found[k + 1].at : n;
            for (uint32_t i = c->end; i < next; i++) level[i] = k + 1 < m ? found[k + 1].before : c->before;
        }
    }
    memcpy(common, level, n * sizeof *common);
}

/* The mean growth of the series that grow like the typical one, by `around`, at a point. */
static double mean_of_alike(const struct fp_trend *t, const uint32_t *chosen, const double *levels, uint32_t m,
                            uint32_t point, double around) {
    double sum = 0, all = 0;
    for (uint32_t k = 0; k < m; k++) {
        const double level = levels[chosen[k]], x = t->values[(size_t)chosen[k] * t->n_points + point];
        const double error = sqrt(t->weight[point] * around / level + 1e-5 * around * around);
        if (isnan(x) || fabs(x / level - around) > 3 * error) continue;
        sum += x;
        all += level;
    }
    return all > 0 ? sum / all : around;
}

int fp_trend_common(struct fp_trend *t, const uint8_t *without, double *common) {
    const uint32_t n = t->n_points, most = TYPICAL;
    double *levels = fp_scratch((size_t)t->n_series + 1, sizeof *levels), *keys, total = 0;
    double *scratch = fp_scratch((size_t)n + 1, sizeof *scratch);
    struct fp_trend_weighted *items = fp_scratch(most, sizeof *items);
    uint32_t *chosen = fp_scratch(most, sizeof *chosen), m = 0;
    for (uint32_t i = 0; i < n; i++) common[i] = 1;
    for (uint32_t f = 0; f < t->n_series; f++) {
        const double *x = t->values + (size_t)f * n;
        if (without && without[f]) continue;
        for (uint32_t i = 0; i < n; i++) levels[f] += isnan(x[i]) ? 0 : x[i] / n;
    }
    keys = fp_scratch((size_t)t->n_series + 1, sizeof *keys);
    memcpy(keys, levels, t->n_series * sizeof *keys);
    qsort(keys, t->n_series, sizeof *keys, fp_trend_compare);
    const double least = t->n_series > most ? keys[t->n_series - most] : 0;
    for (uint32_t f = 0; f < t->n_series && m < most; f++) {
        if (levels[f] <= 0 || levels[f] < least) continue;
        levels[f] = fp_trend_median(scratch, fp_trend_known(t->values + (size_t)f * n, n, scratch));
        if (levels[f] <= 0) continue;
        total += levels[f];
        chosen[m++] = f;
    }
    if (m < 3 || n < 2) return FP_DONE;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        uint32_t known = 0;
        for (uint32_t k = 0; k < m; k++) {
            const double level = levels[chosen[k]], x = t->values[(size_t)chosen[k] * n + i];
            if (isnan(x)) continue;
            items[known].value = x / level;
            items[known].weight = fmin(level, total / 20);
            sum += items[known++].weight;
        }
        common[i] = fp_trend_weighted_median(items, known, sum);
        for (int round = 0; round < 2 && t->weight[i] > 0; round++)
            common[i] = mean_of_alike(t, chosen, levels, m, i, common[i]);
    }
    without_noise(t, common);
    const double base = common[0];
    int known = base > 0;
    for (uint32_t i = 0; i < n; i++) known = known && common[i] > 0.05 * base;
    for (uint32_t i = 0; i < n; i++) common[i] = known ? common[i] / base : 1;
    return FP_DONE;
}
