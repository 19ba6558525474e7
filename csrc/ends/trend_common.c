/* What all series have in common: see fp_trend_common in trend.h. */
#include <math.h>

#include "ends/trend.h"
#include "ends/trend_private.h"

#define TYPICAL 1024 /* series that stand for all: those with the highest levels */
#define UNSTEADY 3   /* times the noise that a typical series may vary */
#define ROUNDS 12

/* How many times more values of about 1 vary than their differences from point to point do, or than they do `at_least`.
 * `scratch`: room for as many. */
static double steadiness(const double *x, uint32_t n, double at_least, double *scratch) {
    double mean = 0, squares = 0;
    if (n < 2) return 1;
    for (uint32_t i = 0; i < n; i++) mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean) / (n - 1);
    for (uint32_t i = 0; i + 1 < n; i++) scratch[i] = (x[i + 1] - x[i]) * (x[i + 1] - x[i]) / 2;
    return squares / fmax(fp_trend_trimmed(scratch, n - 1) + 1e-7, at_least);
}

/* The factors without their noise: means between the splits of their own series; as they are if they drift.  `all`: the
 * level of their series together; the noise of its samples is known. */
static void without_noise(const struct fp_trend *t, double all, double *common) {
    const uint32_t n = t->n_points;
    struct fp_trend_series series;
    struct fp_trend one = {.n_points = n, .n_series = 1, .values = common, .series = &series};
    struct fp_trend_change found[64];
    double *weight = fp_scratch(n + 1, sizeof *weight), *level = fp_scratch(n + 1, sizeof *level);
    for (uint32_t i = 0; i < n; i++) weight[i] = t->weight[i] / all;
    one.weight = weight;
    fp_trend_noise(&one);
    series.freedom = fmax(series.freedom, 30);
    const int m = fp_trend_changes(&one, 0, 0.01, found, 64);
    if (!m && steadiness(common, n, one.mean_weight, level) > UNSTEADY) return;
    for (uint32_t i = 0; i < n; i++) level[i] = 1;
    for (int k = 0; k < m; k++) {
        const struct fp_trend_change *c = &found[k];
        if (c->kind == FP_TREND_DRIFT) return; /* of many changes */
        for (uint32_t i = c->at; i < c->end; i++) level[i] = c->after;
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

/* Series that stand for all. */
struct typical {
    uint32_t *chosen, n;
    double *levels;           /* by series */
    double *scratch, *ratios; /* by point */
    struct fp_trend_weighted *items;
};

/* Sets `common` to the typical growth at each point. */
static void growth(const struct fp_trend *t, const struct typical *of, double *common) {
    const uint32_t n = t->n_points;
    double total = 0;
    for (uint32_t k = 0; k < of->n; k++) total += of->levels[of->chosen[k]];
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        uint32_t known = 0;
        for (uint32_t k = 0; k < of->n; k++) {
            const double level = of->levels[of->chosen[k]], x = t->values[(size_t)of->chosen[k] * n + i];
            if (isnan(x)) continue;
            of->items[known].value = x / level;
            of->items[known].weight = fmin(level, total / 20);
            sum += of->items[known++].weight;
        }
        common[i] = fp_trend_weighted_median(of->items, known, sum);
        for (int round = 0; round < 2 && t->weight[i] > 0; round++)
            common[i] = mean_of_alike(t, of->chosen, of->levels, of->n, i, common[i]);
    }
}

/* The steadiness of a series relative to the typical one. */
static double unsteady(const struct fp_trend *t, const struct typical *of, uint32_t series, const double *common) {
    const double *x = t->values + (size_t)series * t->n_points;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_points; i++)
        if (!isnan(x[i]) && common[i] > 0) of->ratios[n++] = x[i] / common[i] / of->levels[series];
    return steadiness(of->ratios, n, 0, of->scratch);
}

/* Leaves out series that change most, until the others keep their proportions: as long as changes of many series, at
 * points of their own, hide what is typical.  `ratios`: room for one by series. */
static void steadiest(const struct fp_trend *t, struct typical *of, double *common, double *ratios) {
    double total = 0;
    for (uint32_t k = 0; k < of->n; k++) total += of->levels[of->chosen[k]];
    for (int round = 0; round < ROUNDS; round++) {
        double most = 0, left = 0;
        uint32_t kept = 0;
        growth(t, of, common);
        for (uint32_t k = 0; k < of->n; k++) {
            ratios[k] = unsteady(t, of, of->chosen[k], common);
            most = fmax(most, ratios[k]);
        }
        if (most < UNSTEADY) return;
        for (uint32_t k = 0; k < of->n; k++)
            if (ratios[k] < most / 2) left += fmin(of->levels[of->chosen[k]], total / 20), kept++;
        if (kept < 3 || left < total / 10) return;
        kept = 0;
        for (uint32_t k = 0; k < of->n; k++)
            if (ratios[k] < most / 2) of->chosen[kept++] = of->chosen[k];
        of->n = kept;
    }
}

int fp_trend_common(struct fp_trend *t, const uint8_t *without, double *common) {
    const uint32_t n = t->n_points, most = TYPICAL;
    double *levels = fp_scratch((size_t)t->n_series + 1, sizeof *levels), *keys;
    double *scratch = fp_scratch((size_t)n + 1, sizeof *scratch);
    struct typical of = {fp_scratch(most, sizeof *of.chosen), 0, levels, scratch, NULL,
                         fp_scratch(most, sizeof *of.items)};
    of.ratios = fp_scratch((size_t)n + 1, sizeof *of.ratios);
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
    for (uint32_t f = 0; f < t->n_series && of.n < most; f++) {
        if (levels[f] <= 0 || levels[f] < least) continue;
        levels[f] = fp_trend_median(scratch, fp_trend_known(t->values + (size_t)f * n, n, scratch));
        if (levels[f] > 0) of.chosen[of.n++] = f;
    }
    if (of.n < 3 || n < 2) return FP_DONE;
    steadiest(t, &of, common, keys);
    double all = 0;
    for (uint32_t k = 0; k < of.n; k++) all += levels[of.chosen[k]];
    without_noise(t, all, common);
    const double base = common[0];
    int known = base > 0;
    for (uint32_t i = 0; i < n; i++) known = known && common[i] > 0.05 * base;
    for (uint32_t i = 0; i < n; i++) common[i] = known ? common[i] / base : 1;
    return FP_DONE;
}
