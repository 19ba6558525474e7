/* The noise of series: see trend.h. */
#include "ends/trend.h"

#include <math.h>

#include "ends/trend_private.h"

#define LEAST_RELATIVE 1e-8 /* relative variance below which nobody cares: a ten-thousandth of the level */
#define MOST_FREEDOM 1e4
#define TYPICAL 512 /* series that stand for all: those with the highest levels */

double fp_trend_tail(double z) {
    return erfc(z / sqrt(2));
}

/* D. L. Wallace, Bounds on normal approximations to Student's and the chi-square distributions, 1959. */
double fp_trend_normal(double t, double freedom) {
    if (freedom >= MOST_FREEDOM) return t;
    return (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom));
}

double fp_trend_sampled(const struct fp_trend *t, double level, double weight) {
    const double m = fabs(level);
    return weight * (t->is_share == FP_TREND_SHARES && m <= 1 ? m * (1 - m) : m);
}

double fp_trend_variance(const struct fp_trend *t, const struct fp_trend_series *s, uint32_t point, double level) {
    const double m = fabs(level), sampled = fp_trend_sampled(t, level, t->weight[point]);
    const double least = LEAST_RELATIVE * s->level * s->level + 1e-300;
    return fmax(s->scale * (sampled + t->extra * m * m), fmax(sampled, least));
}

int fp_trend_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void swap(double *a, double *b) {
    const double x = *a;
    *a = *b;
    *b = x;
}

/* Reorders values so that the k smallest come first, and value k, counted from 0, is in its place (C. A. R. Hoare's
 * quickselect; what it does not finish in a few rounds is sorted). */
static void place(double *values, uint32_t n, uint32_t k) {
    for (int rounds = 64; n > 32; rounds--) {
        if (!rounds) {
            qsort(values, n, sizeof *values, fp_trend_compare);
            return;
        }
        double *low = values, *middle = values + n / 2, *high = values + n - 1;
        if (*low > *middle) swap(low, middle);
        if (*middle > *high) swap(middle, high);
        if (*low > *middle) swap(low, middle);
        const double pivot = *middle;
        uint32_t i = 0, j = n - 1;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i > j) break;
            swap(&values[i++], &values[j--]);
        }
        if (k <= j) {
            n = j + 1;
        } else if (k >= i) {
            values += i, n -= i, k -= i;
        } else {
            return;
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        const double x = values[i];
        uint32_t j = i;
        for (; j && values[j - 1] > x; j--) values[j] = values[j - 1];
        values[j] = x;
    }
}

double fp_trend_median(double *values, uint32_t n) {
    const uint32_t half = n / 2;
    if (!n) return 0;
    place(values, n, half);
    double below = values[half];
    if (n % 2 == 0) {
        below = values[0];
        for (uint32_t i = 1; i < half; i++) below = fmax(below, values[i]);
    }
    return (below + values[half]) / 2;
}

double fp_trend_middle(double a, double b, double c) {
    const double low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

double fp_trend_near(const double *x, uint32_t n, uint32_t i) {
    const double a = i >= 3 ? fp_trend_middle(x[i - 3], x[i - 2], x[i - 1]) : (x[0] + x[1]) / 2;
    const double b = i + 3 < n ? fp_trend_middle(x[i + 1], x[i + 2], x[i + 3]) : (x[n - 2] + x[n - 1]) / 2;
    if ((x[i] > a) != (x[i] > b)) return (double)NAN;
    return fabs(x[i] - a) < fabs(x[i] - b) ? a : b;
}

double fp_trend_trimmed(double *squares, uint32_t n) {
    const uint32_t drop = n < 3 ? 0 : n < 20 ? 1 : n / 10, keep = n - drop;
    double sum = 0, z = 1, density = 0;
    if (!keep) return 0;
    if (drop) place(squares, n, keep);
    for (uint32_t i = 0; i < keep; i++) sum += squares[i];
    if (!drop) return sum / keep;
    const double kept = (double)keep / n;
    for (int i = 0; i < 9; i++) { /* the normal quantile of the trimmed share, by Newton's method */
        density = exp(-z * z / 2) / sqrt(2 * acos(-1));
        z += (fp_trend_tail(z) - (1 - kept)) / (2 * density);
    }
    return sum / keep / ((kept - 2 * z * density) / kept);
}

static int compare_weighted(const void *a, const void *b) {
    return fp_trend_compare(&((const struct fp_trend_weighted *)a)->value,
                            &((const struct fp_trend_weighted *)b)->value);
}

double fp_trend_weighted_median(struct fp_trend_weighted *items, uint32_t n, double total) {
    double sum = 0;
    qsort(items, n, sizeof *items, compare_weighted);
    for (uint32_t i = 0; i < n; i++) {
        sum += items[i].weight;
        if (2 * sum > total) return items[i].value;
        if (2 * sum == total && i + 1 < n) return (items[i].value + items[i + 1].value) / 2;
    }
    return 1;
}

void fp_trend_one_init(struct fp_trend_one *one, const struct fp_trend *t) {
    const size_t n = (size_t)t->n_points + 1;
    *one = (struct fp_trend_one){0};
    one->values = fp_scratch(n, sizeof *one->values);
    one->weight = fp_scratch(n, sizeof *one->weight);
    one->season = fp_scratch(n, sizeof *one->season);
    one->point = fp_scratch(n, sizeof *one->point);
}

void fp_trend_one_load(struct fp_trend_one *one, const struct fp_trend *t, uint32_t series) {
    double *x = t->values + (size_t)series * t->n_points;
    uint32_t n = 0;
    one->t = *t;
    one->t.n_series = 1;
    one->t.series = t->series + series;
    one->t.values = x;
    while (n < t->n_points && !isnan(x[n])) n++;
    one->is_whole = n == t->n_points;
    if (one->is_whole) return;
    n = 0;
    for (uint32_t i = 0; i < t->n_points; i++) {
        if (isnan(x[i])) continue;
        one->values[n] = x[i];
        one->weight[n] = t->weight[i];
        if (t->period) one->season[n] = t->season[i];
        one->point[n++] = i;
    }
    one->t.n_points = n;
    one->t.values = one->values;
    one->t.weight = one->weight;
    one->t.season = one->season;
}

uint32_t fp_trend_known(const double *x, uint32_t n, double *to) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(x[i])) to[m++] = x[i];
    return m;
}

/* The variance of a point, from differences of points that are `lag` apart. */
static double of_differences(const double *x, uint32_t n, uint32_t lag, double *scratch) {
    const uint32_t m = n > lag ? n - lag : 0;
    for (uint32_t i = 0; i < m; i++) scratch[i] = (x[i + lag] - x[i]) * (x[i + lag] - x[i]) / 2;
    return fp_trend_trimmed(scratch, m);
}

/* Takes the season out of a series if it is more than noise. */
static int without_season(const struct fp_trend *t, double *x, double *scratch) {
    const uint32_t n = t->n_points, period = t->period, half = period / 2;
    double effects[32] = {0}, counts[32] = {0}, around[33], test = 0, mean = 0, total = 0;
    const double variance = of_differences(x, n, period, scratch);
    for (uint32_t k = 0; k < period; k++) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (t->season[i] != k) continue;
            const uint32_t low = i < half ? 0 : i + half >= n ? n - period : i - half;
            memcpy(around, x + low, period * sizeof *around);
            scratch[m++] = x[i] - fp_trend_median(around, period);
        }
        counts[k] = m;
        effects[k] = fp_trend_median(scratch, m);
        mean += effects[k] * m;
        total += m;
    }
    for (uint32_t k = 0; k < period; k++) effects[k] -= mean / total;
    for (uint32_t k = 0; k < period; k++) test += counts[k] * effects[k] * effects[k];
    /* medians have pi / 2 times the variance of means; 5: chi-squared per degree of freedom, p below 10^-4 */
    if (test <= 5 * (period - 1) * 1.571 * (variance + 1e-300)) return 0;
    for (uint32_t i = 0; i < n; i++) x[i] -= effects[t->season[i]];
    return 1;
}

#define CERTAIN 4     /* squared standard errors of a step that may not be noise, by logarithm of the points */
#define STEPS_EACH 50 /* points for each of them: noise that lasts needs more steps to look like itself */
#define MOST_STEPS 32
#define SURE 6 /* by which noise that lasts has to explain a series better than other models */

struct stretch {
    uint32_t low, high, at;
    double size; /* squared, of the best step in it, which is at `at` */
};

static struct stretch stretch(const double *x, uint32_t low, uint32_t high) {
    struct stretch s = {low, high, low, 0};
    double all = 0, sum = 0;
    for (uint32_t i = low; i < high; i++) all += x[i];
    for (uint32_t k = low + 1; k < high; k++) {
        const double left = k - low, right = high - k;
        sum += x[k - 1];
        const double difference = (all - sum) / right - sum / left;
        const double size = difference * difference * left / (left + right) * right;
        if (size > s.size) s.size = size, s.at = k;
    }
    return s;
}

/* Bayes' information criterion of noise that lasts, of which a part `share` is in the next value, too. */
static double of_lasting(const double *x, uint32_t n, double *share) {
    double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    const double m = n - 1;
    for (uint32_t i = 1; i < n; i++) {
        const double a = x[i - 1] - x[0], b = x[i] - x[0];
        sx += a, sy += b, sxx += a * a, sxy += a * b, syy += b * b;
    }
    const double spread = sxx - sx * sx / m, common = sxy - sx * sy / m;
    *share = spread > 0 ? common / spread : 0;
    return n * log(fmax(0, syy - sy * sy / m - *share * common) / m + 1e-300) + 2 * log(n);
}

/* The squares that a ramp from a to b leaves, and its levels. */
static double of_ramp(const double *x, uint32_t n, double a, double b, double *levels) {
    double sh = 0, shh = 0, sy = 0, shy = 0, syy = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double h = i <= a ? 0 : i >= b ? 1 : (i - a) / (b - a), y = x[i] - x[0];
        sh += h, shh += h * h, sy += y, shy += h * y, syy += y * y;
    }
    const double spread = shh - sh * sh / n, slope = spread > 1e-12 ? (shy - sh * sy / n) / spread : 0;
    levels[0] = x[0] + (sy - slope * sh) / n;
    levels[1] = levels[0] + slope;
    return fmax(0, syy - sy * sy / n - slope * slope * spread);
}

struct fp_trend_ramp fp_trend_ramp(const double *x, uint32_t n) {
    const uint32_t grid = 16;
    struct fp_trend_ramp best = {.squares = HUGE_VAL};
    double levels[2] = {0};
    for (uint32_t i = 0; i < grid; i++)
        for (uint32_t k = i + 1; k <= grid; k++) {
            const double a = (double)i * (n - 1) / grid, b = (double)k * (n - 1) / grid;
            const double left = b - a < 5 ? HUGE_VAL : of_ramp(x, n, a, b, levels);
            if (left < best.squares) best = (struct fp_trend_ramp){levels[0], levels[1], a, b, left};
        }
    return best;
}

/* Whether a ramp explains a series better than noise that lasts, whose criterion is `lasting`.  Takes it out. */
static int without_ramp(double *x, uint32_t n, double lasting) {
    const struct fp_trend_ramp ramp = fp_trend_ramp(x, n);
    if (!(n * log(ramp.squares / n + 1e-300) + 5 * log(n) < lasting)) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const double part = i <= ramp.from ? 0 : i >= ramp.to ? 1 : (i - ramp.from) / (ramp.to - ramp.from);
        x[i] -= ramp.before + part * (ramp.after - ramp.before);
    }
    return 1;
}

/* Sets the mean of each stretch to 0.  Returns the sum of squares. */
static double centred(double *x, const struct stretch *all, uint32_t m) {
    double squares = 0;
    for (uint32_t i = 0; i < m; i++) {
        double sum = 0;
        for (uint32_t k = all[i].low; k < all[i].high; k++) sum += x[k];
        for (uint32_t k = all[i].low; k < all[i].high; k++) {
            x[k] -= sum / (all[i].high - all[i].low);
            squares += x[k] * x[k];
        }
    }
    return squares;
}

/* Takes the largest steps out, if there are few and they explain more than noise that lasts.  Returns the share of the
 * noise that lasts to the next point, 0 if it is not more than chance. */
static double without_steps(double *x, uint32_t n, double variance, double *scratch) {
    struct stretch all[MOST_STEPS + 1], whole = {0, n, 0, 0};
    const uint32_t most = n / STEPS_EACH + 2 < MOST_STEPS ? n / STEPS_EACH + 2 : MOST_STEPS;
    uint32_t m = 1, largest = 0;
    double share = 0;
    all[0] = stretch(x, 0, n);
    while (m <= most && all[largest].size > CERTAIN * log(n) * variance) {
        const struct stretch one = all[largest];
        all[largest] = stretch(x, one.low, one.at);
        all[m++] = stretch(x, one.at, one.high);
        for (uint32_t i = 0; i < m; i++)
            if (all[i].size > all[largest].size) largest = i;
    }
    memcpy(scratch, x, n * sizeof *x);
    const double squares = centred(scratch, all, m);
    const double steps = n * log(squares / n + 1e-300) + (3 * (m - 1) + 1) * log(n);
    const double lasting = of_lasting(x, n, &share);
    if (steps <= lasting) {
        memcpy(x, scratch, n * sizeof *x);
    } else if (without_ramp(x, n, lasting)) {
        return 0;
    } else {
        centred(x, &whole, 1);
    }
    return steps > lasting + SURE && share > 0 ? fmin(share, 0.99) : 0;
}

/* How much larger the variance of long means is than it would be if points were independent.
 *
 * Points that are `lag` apart differ by the variance that they do not have in common, so that the differences of
 * neighbours show too little if noise lasts for several points.  1 if `must_show`, unless it explains the series better
 * than steps or independent points do. */
static double lasting(const double *x, uint32_t n, double variance, int must_show, double *scratch, double *squares) {
    static const uint32_t lags[] = {1, 2, 3, 4, 6, 9, 12};
    enum { N = sizeof lags / sizeof *lags };
    double of_lag[N], all, sum;
    if (n < 20) return 1;
    memcpy(scratch, x, n * sizeof *x);
    const double share = without_steps(scratch, n, variance, squares);
    if (must_show && share == 0) return 1;
    const double simple = (1 + share) / (1 - share) / (1 - share);
    if (n < 40) return simple;
    for (uint32_t k = 0; k < N; k++) {
        const uint32_t m = n - lags[k];
        for (uint32_t i = 0; i < m; i++)
            squares[i] = (scratch[i + lags[k]] - scratch[i]) * (scratch[i + lags[k]] - scratch[i]) / 2;
        of_lag[k] = fp_trend_median(squares, m) / 0.4549; /* as of chi-squared: excursions count little */
    }
    all = (of_lag[N - 1] + of_lag[N - 2] + of_lag[N - 3]) / 3;
    if (!(of_lag[0] > 0)) return 1;
    sum = all;
    for (uint32_t k = 0; k < N && of_lag[k] < all; k++) {
        const uint32_t width = k + 1 < N ? lags[k + 1] - lags[k] : 1;
        sum += 2 * width * (all - of_lag[k]);
    }
    return fmax(must_show ? simple : 1, sum / (variance + 1e-300));
}

/* The variance of sampling between points with the same levels of all series.  That of fp_trend_sampled is larger if
 * shares were divided by others, whose noise is then in the difference of two levels; within one it is not. */
static double sampled(const struct fp_trend *t, double level) {
    const double m = fabs(level);
    return t->mean_weight * (t->is_share && m <= 1 ? m * (1 - m) : m);
}

/* The scale of the typical one of these series with an extra variance, each weighted by how precise it is. */
static double ratio_with(const struct fp_trend *t, const uint32_t *chosen, uint32_t n, double extra, double middle) {
    struct fp_trend_weighted *items = fp_scratch(n, sizeof *items);
    double most = 0, total = 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct fp_trend_series *s = &t->series[chosen[k]];
        const double relative = sampled(t, s->level) / (s->level * s->level) + extra + LEAST_RELATIVE;
        items[k].value = s->variance / (relative * s->level * s->level);
        items[k].weight = 1 / (relative * relative);
        most = fmax(most, items[k].weight);
    }
    /* at least 8 of them decide */
    for (uint32_t k = 0; k < n; k++) total += items[k].weight;
    for (uint32_t k = 0; k < n; k++) items[k].weight = fmin(items[k].weight, fmin(most, total / 8));
    total = 0;
    for (uint32_t k = 0; k < n; k++) total += items[k].weight;
    const double found = fp_trend_weighted_median(items, n, total) / middle;
    fp_scratch_free(items);
    return found;
}

/* Of the chosen series those whose noise is mostly not that of sampling: there it can be studied. */
static uint32_t noisy(const struct fp_trend *t, const uint32_t *chosen, uint32_t m, uint32_t *found) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m; k++) {
        const struct fp_trend_series *s = &t->series[chosen[k]];
        if (s->variance > 0 && sampled(t, s->level) < 0.5 * s->variance) found[n++] = chosen[k];
    }
    return n;
}

/* Student's distribution that has about as many far points as were counted, by how many times more than
 * of the normal one. */
static double tails_by(double far, double expected, const double *bounds) {
    const double ratio = expected > 0 ? far / expected : 0;
    return ratio > bounds[0] ? 3 : ratio > bounds[1] ? 4 : ratio > bounds[2] ? 6 : 10;
}

/* Sets `tails` by how often neighbours differ, and points stick out, by more than three standard errors. */
static void tails_of(struct fp_trend *t, const uint32_t *chosen, uint32_t m) {
    static const double of_steps[] = {4, 2.5, 1.7}, of_points[] = {24, 16, 8};
    double count = 0, far = 0, out = 0, *known = fp_scratch((size_t)t->n_points + 1, sizeof *known);
    for (uint32_t k = 0; k < m; k++) {
        const struct fp_trend_series *s = &t->series[chosen[k]];
        const double *x = known;
        const uint32_t n = fp_trend_known(t->values + (size_t)chosen[k] * t->n_points, t->n_points, known);
        for (uint32_t i = 1; i < n; i++) far += (x[i] - x[i - 1]) * (x[i] - x[i - 1]) > 9 * 2 * s->variance;
        for (uint32_t i = 2; i + 2 < n; i++) {
            const double off = x[i] - fp_trend_near(x, n, i); /* NaN: it does not stick out */
            out += off * off > 9 * 1.5 * s->variance;
        }
        count += n ? n - 1 : 0;
    }
    const double steps = 0.0027 * count, points = 0.0004 * count; /* that are expected, by simulation */
    if (far >= 1.3 * steps + 5 * sqrt(steps) + 5) t->tails = tails_by(far, steps, of_steps);
    if (out >= points + 3 * sqrt(points) + 3) t->tails = fmin(t->tails, tails_by(out, points, of_points));
}

/* Raises `extra` if the noise of the typical series lasts for several points. */
static void extend(struct fp_trend *t, const uint32_t *chosen, uint32_t m) {
    const size_t n = (size_t)t->n_points + 1;
    double *scratch = fp_scratch(n, sizeof *scratch), *squares = fp_scratch(n, sizeof *squares);
    double *ratios = fp_scratch((size_t)m + 1, sizeof *ratios);
    struct fp_trend_one one;
    if (m < 5) return;
    fp_trend_one_init(&one, t);
    for (uint32_t k = 0; k < m; k++) {
        const struct fp_trend_series *s = &t->series[chosen[k]];
        const double own = 1 - sampled(t, s->level) / s->variance;
        fp_trend_one_load(&one, t, chosen[k]);
        ratios[k] = (lasting(one.t.values, one.t.n_points, s->variance, 0, scratch, squares) - 1) / own;
    }
    const double more = fp_trend_median(ratios, m);
    if (more > 0.3) t->extra *= 1 + more;
}

/* Sets `extra` so that the typical series varies as much as it does, and `freedom` by how alike they are. */
static void typical(struct fp_trend *t, double freedom) {
    uint32_t n = 0, *chosen = fp_scratch(TYPICAL, sizeof *chosen);
    double *keys = fp_scratch((size_t)t->n_series + 1, sizeof *keys), low = 0, high;
    double *ratios = fp_scratch(TYPICAL, sizeof *ratios);
    for (uint32_t f = 0; f < t->n_series; f++) keys[f] = fabs(t->series[f].level);
    qsort(keys, t->n_series, sizeof *keys, fp_trend_compare);
    const double least = t->n_series > TYPICAL ? keys[t->n_series - TYPICAL] : 0;
    for (uint32_t f = 0; f < t->n_series && n < TYPICAL; f++) {
        const double level = fabs(t->series[f].level);
        const int enough = t->mean_weight <= 0 || level >= 5 * t->mean_weight; /* samples a point */
        if (level >= least && level > 0 && enough) chosen[n++] = f;
    }
    t->extra = LEAST_RELATIVE;
    t->tails = MOST_FREEDOM;
    t->freedom = n < 4 ? 1 : MOST_FREEDOM;
    if (!n || freedom <= 0) return;
    const double middle = 1 - 2 / (9 * freedom / 3 + 1); /* about the median of chi-squared / freedom */
    /* noise beyond that of sampling is assumed only if it shows */
    if (t->mean_weight <= 0 || ratio_with(t, chosen, n, 0, middle) > 1 + 2 * sqrt(2 / freedom / fmin(n, 16))) {
        /* the least that explains it: with more, series count that vary for reasons of their own */
        for (high = LEAST_RELATIVE; high < 1 && ratio_with(t, chosen, n, high, middle) > 1; high *= 4) low = high;
        for (int i = 0; i < 20; i++) {
            const double extra = (low + high) / 2;
            *(ratio_with(t, chosen, n, extra, middle) > 1 ? &low : &high) = extra;
        }
    }
    t->extra = fmax(LEAST_RELATIVE, low);
    uint32_t *studied = fp_scratch(TYPICAL, sizeof *studied);
    const uint32_t n_studied = noisy(t, chosen, n, studied);
    tails_of(t, studied, n_studied);
    if (n < 4) return;
    for (uint32_t k = 0; k < n; k++) {
        const struct fp_trend_series *s = &t->series[chosen[k]];
        ratios[k] = log(fmax(1e-3, s->variance / (sampled(t, s->level) + t->extra * s->level * s->level + 1e-300)));
    }
    qsort(ratios, n, sizeof *ratios, fp_trend_compare);
    const double spread = (ratios[n - 1 - n / 6] - ratios[n / 6]) / 2; /* two thirds: a standard deviation each way */
    const double half = freedom / 2, excess = spread * spread - (1 / half + 1 / (2 * half * half));
    if (t->extra > LEAST_RELATIVE) extend(t, studied, n_studied);
    if (excess > 0) t->freedom = fmin(MOST_FREEDOM, fmax(1, (1 + sqrt(1 + 2 * excess)) / excess));
}

/* Sets the scale of a series, whose own variance is `own` times what is expected. */
static void scale(const struct fp_trend *t, struct fp_trend_series *s, double own, double freedom, double replicas) {
    double sum = t->freedom + freedom * own;
    s->freedom = t->freedom + freedom;
    if (freedom > 0 && own > 1 + 3 * sqrt(2 / freedom))
        sum = own * freedom, s->freedom = freedom; /* unlike the others */
    s->scale = sum / s->freedom;
    /* noise of whole points is not in the spread of their replicas, so that is a lower limit */
    if (replicas <= 0 || (replicas <= s->scale && t->n_points >= 6)) return;
    s->scale = (sum + replicas * t->spread_freedom) / (s->freedom + t->spread_freedom);
    s->freedom += t->spread_freedom;
}

static double freedom_of(uint32_t n) {
    return n > 1 ? 0.5 * (n - 1) : 0;
}

int fp_trend_noise(struct fp_trend *t) {
    const size_t room = (size_t)t->n_points + 1;
    double *scratch = fp_scratch(room, sizeof *scratch), *blocks = fp_scratch(room, sizeof *blocks);
    struct fp_trend_one one;
    fp_trend_one_init(&one, t);
    t->mean_weight = 0;
    for (uint32_t i = 0; i < t->n_points; i++) t->mean_weight += t->weight[i] / t->n_points;
    for (uint32_t f = 0; f < t->n_series; f++) {
        struct fp_trend_series *s = &t->series[f];
        fp_trend_one_load(&one, t, f);
        const uint32_t n = one.t.n_points;
        double *x = one.t.values;
        *s = (struct fp_trend_series){.p = 1};
        if (t->period && n >= 4 * t->period) s->seasonal = without_season(&one.t, x, scratch);
        for (uint32_t i = 0; i < n && !one.is_whole; i++) t->values[(size_t)f * t->n_points + one.point[i]] = x[i];
        for (uint32_t i = 0; i < n; i++) s->level += x[i] / n;
        s->variance = of_differences(x, n, 1, scratch) * t->n_points / fmax(1, t->n_points - t->lost);
    }
    typical(t, freedom_of(t->n_points));
    for (uint32_t f = 0; f < t->n_series; f++) {
        struct fp_trend_series *s = &t->series[f];
        const double expected = sampled(t, s->level) + t->extra * s->level * s->level + 1e-300;
        fp_trend_one_load(&one, t, f);
        const uint32_t n = one.t.n_points;
        const double own = s->variance * lasting(one.t.values, n, s->variance, 1, scratch, blocks) / expected;
        scale(t, s, own, freedom_of(n), t->spread && t->spread_freedom > 0 ? t->spread[f] / expected : 0);
    }
    return FP_DONE;
}

int fp_trend_divide(struct fp_trend *t, const double *by) {
    for (uint32_t f = 0; f < t->n_series; f++)
        for (uint32_t i = 0; i < t->n_points; i++) t->values[(size_t)f * t->n_points + i] /= by[i];
    return FP_DONE;
}
