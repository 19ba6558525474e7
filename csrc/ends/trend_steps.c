/* Changes of series: see trend.h. */
#include <math.h>

#include "ends/trend.h"
#include "ends/trend_private.h"

#define LEAST_COUNT 5 /* samples on a side of a split: fewer prove nothing */
#define SHORTEST 6    /* points of an interval */
#define SPIKE 5       /* standard errors from which a point does not count for steps */
#define AROUND 10     /* points on each side of one, among which it is a spike */
#define MOST_CHANGES 64
#define MOST_P 0.001 /* of changes beyond the first */
#define LOCAL 3.5    /* standard errors from which the noise of each side is measured */

#define RECENT 10 /* last points: a run a day has looked at the others before */

/* Shares of the probability of an error: splits of the whole, of the last points, of intervals; points. */
static const double of_whole = 0.4, of_recent = 0.4, of_parts = 0.13, of_points = 0.07;

struct split {
    double z;
    uint32_t at;
};

static void begin(struct fp_trend_sums *c, const struct fp_trend *t) {
    const size_t n = t->n_points + 1;
    c->x = fp_scratch(n, sizeof *c->x);
    c->precise = fp_scratch(n, sizeof *c->precise);
    c->weighted = fp_scratch(n, sizeof *c->weighted);
    c->counts = fp_scratch(n, sizeof *c->counts);
    c->exposure = fp_scratch(n, sizeof *c->exposure);
    c->scratch = fp_scratch(n, sizeof *c->scratch);
}

#define LEAST_LOCAL 8 /* differences from which the noise of a few points is measured */

/* How many times the variance of the points low .. high, but `without`, is as large as expected, if it is more than
 * chance; else 1. */
static double noisier(const struct fp_trend_sums *c, uint32_t low, uint32_t high, uint32_t without, double expected) {
    uint32_t n = 0;
    for (uint32_t i = low; i + 1 < high; i++)
        if (i != without && i + 1 != without) c->scratch[n++] = (c->x[i + 1] - c->x[i]) * (c->x[i + 1] - c->x[i]) / 2;
    if (n < LEAST_LOCAL) return 1;
    const double ratio = fp_trend_trimmed(c->scratch, n) / expected;
    return ratio > 1 + 3 * sqrt(2 / (0.5 * n)) ? ratio : 1;
}

static double of_counts(double k, double rest, double exposure, double other) {
    const double all = k + rest, expected = all * exposure / (exposure + other), others = all - expected;
    double sum = 0;
    if (k > 0) sum += k * log(k / expected);
    if (rest > 0) sum += rest * log(rest / others);
    return 2 * sum;
}

/* Signed root of the likelihood ratio for counts k and rest, whose expected shares are those of their exposure.  The
 * exposure of a share is the number of all samples. */
static double deviance(const struct fp_trend *t, double k, double rest, double exposure, double other) {
    double sum = of_counts(k, rest, exposure, other);
    if (t->is_share == FP_TREND_SHARES) sum += of_counts(fmax(0, exposure - k), fmax(0, other - rest), exposure, other);
    return sqrt(fmax(0, sum));
}

/* The same for the count of a point among its neighbours. */
static double counted(const struct fp_trend_sums *c, const double *x, uint32_t i) {
    const uint32_t n = c->of->n_points;
    const double *weight = c->of->weight;
    double rest = 0, other = 0;
    for (uint32_t k = i < AROUND ? 0 : i - AROUND; k < n && k <= i + AROUND; k++)
        if (k != i && weight[k] > 0) rest += fmax(0, x[k]) / weight[k], other += 1 / weight[k];
    return deviance(c->of, fmax(0, x[i]) / weight[i], rest, 1 / weight[i], other) / sqrt(c->factor);
}

/* How far a point is from both sides, in standard errors; 0: it is at an end, or like one side. */
static double sticks_out(const struct fp_trend_sums *c, const double *x, uint32_t i) {
    const uint32_t n = c->of->n_points;
    if (i < 2 || i + 2 >= n) return 0;
    const double level = fp_trend_near(x, n, i), variance = fp_trend_variance(c->of, c->series, i, level);
    if (isnan(level)) return 0;
    double z = (x[i] - level) / sqrt(variance * 1.5); /* the median of three: half the variance of one */
    if (fabs(z) < SPIKE) return z;
    z /= sqrt(noisier(c, i < AROUND ? 0 : i - AROUND, i + AROUND < n ? i + AROUND + 1 : n, i, variance));
    if (!(c->of->weight[i] > 0)) return z;
    const double least = LEAST_COUNT * c->of->weight[i];
    if (fmax(x[i], level) < least || (c->of->is_share == FP_TREND_SHARES && fmin(x[i], level) > 1 - least)) return 0;
    return copysign(fmin(fabs(z), counted(c, x, i)), z);
}

static void load(struct fp_trend_sums *c, const struct fp_trend *t) {
    const uint32_t n = t->n_points;
    const double *x = t->values;
    c->of = t;
    c->series = t->series;
    memcpy(c->x, x, n * sizeof *x);
    const double typical = fp_trend_variance(t, c->series, 0, c->series->level);
    c->factor = 1;
    c->most = 0;
    if (t->mean_weight > 0)
        c->factor = fmax(1, typical / (fp_trend_sampled(t, c->series->level, t->weight[0]) + 1e-300));
    for (uint32_t i = 0; i < n; i++) {
        const double z = sticks_out(c, x, i);
        if (fabs(z) >= SPIKE) c->x[i] = fp_trend_near(x, n, i);
        c->most = fmax(c->most, fabs(z));
    }
    c->precise[0] = c->weighted[0] = c->counts[0] = c->exposure[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double precision = typical / fp_trend_variance(t, c->series, i, c->series->level);
        c->precise[i + 1] = c->precise[i] + precision;
        c->weighted[i + 1] = c->weighted[i] + precision * c->x[i];
        const int known = t->weight[i] > 0;
        c->exposure[i + 1] = c->exposure[i] + (known ? 1 / t->weight[i] : 0);
        c->counts[i + 1] = c->counts[i] + (known ? fmax(0, c->x[i]) / t->weight[i] : 0);
    }
}

/* The variance of a point at the level of an interval, over that at the level of the series, which precisions have. */
static double scale_of(const struct fp_trend_sums *c, double level) {
    return fp_trend_variance(c->of, c->series, 0, level);
}

static double mean(const struct fp_trend_sums *c, uint32_t low, uint32_t high) {
    return (c->weighted[high] - c->weighted[low]) / (c->precise[high] - c->precise[low]);
}

/* The best split of the points from `low` up to `high`, at `first` or later. */
static struct split best_from(const struct fp_trend_sums *c, uint32_t low, uint32_t high, uint32_t first) {
    const double *u = c->precise, *s = c->weighted, all = u[high] - u[low], sum = s[high] - s[low];
    struct split found = {0, low};
    double most = 0;
    for (uint32_t k = first; k < high; k++) {
        const double left = u[k] - u[low], difference = (s[k] - s[low]) * all - sum * left;
        const double size = difference * difference, by = left * (all - left);
        if (size > most * by) most = size / by, found.at = k;
    }
    if (most <= 0) return found;
    /* z squared is (difference of means)^2 / (variance (1 / left + 1 / right)) */
    found.z = sqrt(most / all / scale_of(c, sum / all));
    return found;
}

static struct split best(const struct fp_trend_sums *c, uint32_t low, uint32_t high) {
    return best_from(c, low, high, low + 1);
}

/* The z of a split if the noise of one side, or near a short one, is larger than that of the series (B. L. Welch's
 * test). */
static double local(const struct fp_trend_sums *c, struct split found, uint32_t low, uint32_t high, double z) {
    const double *u = c->precise, variance = scale_of(c, mean(c, low, high));
    const double left = 1 / (u[found.at] - u[low]), right = 1 / (u[high] - u[found.at]);
    const uint32_t n = c->of->n_points, least = 2 * LEAST_LOCAL, at = found.at;
    const uint32_t before = at - low < least ? (at < least ? 0 : at - least) : low;
    const uint32_t after = high - at < least ? (n - at < least ? n : at + least) : high;
    const double a = noisier(c, before, at < least && least < n ? least : at, n, variance);
    const double b = noisier(c, n - at < least && least < n ? n - least : at, after, n, variance);
    return a == 1 && b == 1 ? z : z * sqrt((left + right) / (a * left + b * right));
}

/* The smaller of two counts, or of what is expected there. */
static double least_of(double a, double b, double left, double right) {
    const double all = a + b;
    return fmin(fmax(a, all * left / (left + right)), fmax(b, all * right / (left + right)));
}

/* A z for a split that holds for few samples and few degrees of freedom. */
static double checked(const struct fp_trend_sums *c, struct split found, uint32_t low, uint32_t high) {
    const uint32_t side = found.at - low < high - found.at ? found.at - low : high - found.at;
    const double freedom = fmin(c->series->freedom, c->of->tails * side); /* means of points have smaller tails */
    double z = fp_trend_normal(found.z, freedom);
    if (c->of->mean_weight > 0) {
        const uint32_t k = found.at;
        const double a = c->counts[k] - c->counts[low], b = c->counts[high] - c->counts[k];
        const double left = c->exposure[k] - c->exposure[low], right = c->exposure[high] - c->exposure[k];
        if (least_of(a, b, left, right) < LEAST_COUNT) return 0;
        if (c->of->is_share == FP_TREND_SHARES && least_of(left - a, right - b, left, right) < LEAST_COUNT) return 0;
        z = fmin(z, fp_trend_normal(deviance(c->of, a, b, left, right) / sqrt(c->factor), freedom));
    }
    return z < LOCAL ? z : local(c, found, low, high, z);
}

/* The probability that noise of `n` points has a split with such a z: fitted to simulations of 4 to 1,000 points. */
static double p_of_whole(double z, uint32_t n) {
    if (z < 1) return 1;
    return fmin(1, fp_trend_tail(z) * fmin(n - 1, 0.5 + 0.14 * z * z * pow(log(n), 1.8)));
}

/* How many of the last points are recent, of an interval of n. */
static uint32_t recent_of(uint32_t n) {
    return n / 3 < RECENT ? (n > 3 ? n / 3 : 1) : RECENT;
}

/* The same for a split before one of the last points. */
static double p_of_recent(double z, uint32_t n) {
    const double m = recent_of(n);
    if (z < 1) return 1;
    return fmin(1, fp_trend_tail(z) * fmin(m, 1 + 0.2 * z * z * log(m * (n - 1) / (n - m))));
}

static double p_of_parts(double z, uint32_t n) {
    if (z < 1) return 1;
    return fmin(1, fp_trend_tail(z) * n * (2 + 0.7 * z * z));
}

/* The probability of noise of the best split of low .. high, over its share of the errors. */
static double p_of(const struct fp_trend_sums *c, struct split found, uint32_t low, uint32_t high) {
    const uint32_t n = high - low;
    if (found.z <= 0) return 1;
    const double z = checked(c, found, low, high), p = p_of_whole(z, n) / of_whole;
    if (high < c->of->n_points || found.at + recent_of(n) < high) return p;
    return fmin(p, p_of_recent(z, n) / of_recent);
}

/* The best split of an interval within low .. high, in intervals of half overlap whose lengths shrink by sqrt(2). */
static struct split best_part(const struct fp_trend_sums *c, uint32_t low, uint32_t high, uint32_t *from,
                              uint32_t *to) {
    struct split found = {0, low};
    for (double length = (high - low) / 1.41421356; length >= SHORTEST; length /= 1.41421356) {
        const uint32_t size = (uint32_t)length, steps = (uint32_t)ceil(2.0 * (high - low - size) / size);
        for (uint32_t i = 0; i <= steps; i++) {
            const uint32_t a = steps ? low + (uint32_t)((uint64_t)i * (high - low - size) / steps) : low, b = a + size;
            const struct split one = best(c, a, b);
            if (one.z > found.z) found = one, *from = a, *to = b;
        }
    }
    return found;
}

static double p_of_spikes(const struct fp_trend_sums *c) {
    const double z = fp_trend_normal(c->most, fmin(c->series->freedom, c->of->tails));
    return fmin(1, fp_trend_tail(z) * c->of->n_points);
}

int fp_trend_test(struct fp_trend *t) {
    struct fp_trend_sums c = {0};
    struct fp_trend_one one;
    begin(&c, t);
    fp_trend_one_init(&one, t);
    for (uint32_t f = 0; f < t->n_series; f++) {
        struct fp_trend_series *s = &t->series[f];
        uint32_t from = 0, to = 0;
        if (s->level == 0) continue;
        fp_trend_one_load(&one, t, f);
        const uint32_t n = one.t.n_points;
        if (n < 2) continue;
        load(&c, &one.t);
        const double p = p_of(&c, best(&c, 0, n), 0, n);
        const double last = p_of(&c, best_from(&c, 0, n, n - recent_of(n)), 0, n);
        const struct split part = best_part(&c, 0, n, &from, &to);
        const double q = part.z > 0 ? p_of_parts(checked(&c, part, from, to), n) / of_parts : 1;
        s->p = fmin(fmin(1, fmin(p, last)), fmin(q, p_of_spikes(&c) / of_points));
    }
    return FP_DONE;
}

/* ---- all changes of one series */

struct marks {
    uint32_t at[MOST_CHANGES + 2];
    double z[MOST_CHANGES + 2], p[MOST_CHANGES + 2];
    uint32_t n; /* at[0] is 0, at[n] is the number of points */
};

static void divide(const struct fp_trend_sums *c, struct marks *m, uint32_t low, uint32_t high, double most) {
    uint32_t from = low, to = high, n = high - low;
    if (n < 2 || m->n > MOST_CHANGES) return;
    struct split found = best(c, low, high);
    double p = p_of(c, found, low, high);
    if (p > most && high == c->of->n_points) {
        found = best_from(c, low, high, high - recent_of(n));
        p = p_of(c, found, low, high);
    }
    if (p > most) {
        if (n < SHORTEST + 2) return;
        found = best_part(c, low, high, &from, &to);
        if (found.z <= 0 || p_of_parts(checked(c, found, from, to), n) / of_parts > most) return;
    }
    uint32_t i = m->n;
    while (i > 0 && m->at[i - 1] > found.at) i--;
    memmove(&m->at[i + 1], &m->at[i], (m->n - i + 1) * sizeof *m->at);
    m->at[i] = found.at;
    m->n++;
    divide(c, m, low, found.at, fmin(most, MOST_P));
    divide(c, m, found.at, high, fmin(most, MOST_P));
}

/* Moves each mark to the best place between its neighbours, and drops those that are not certain there. */
static void settle(const struct fp_trend_sums *c, struct marks *m, double most) {
    for (int round = 0; round < 3; round++) {
        int changed = 0;
        for (uint32_t i = 1; i < m->n; i++) {
            const uint32_t low = m->at[i - 1], high = m->at[i + 1];
            const struct split found = best(c, low, high);
            m->z[i] = found.z > 0 ? checked(c, found, low, high) : 0;
            m->p[i] = p_of(c, found, low, high);
            if (m->p[i] > most && p_of_parts(m->z[i], high - low) / of_parts > most) {
                memmove(&m->at[i], &m->at[i + 1], (m->n - i) * sizeof *m->at);
                m->n--;
                i--;
                changed = 1;
            } else if (found.at != m->at[i]) {
                m->at[i] = found.at;
                changed = 1;
            }
        }
        if (!changed) break;
    }
}

/* Whether marks first .. last, steps in one direction, are a drift.  Sets its ends and levels. */
static int is_drift(const struct fp_trend_sums *c, const struct marks *m, uint32_t first, uint32_t last,
                    struct fp_trend_change *out) {
    const uint32_t low = m->at[first - 1], high = m->at[last + 1], n = high - low;
    const double variance = fp_trend_variance(c->of, c->series, low, mean(c, low, high));
    double steps = 0;
    if (n < 10) return 0;
    for (uint32_t k = first - 1; k <= last; k++)
        for (uint32_t i = m->at[k]; i < m->at[k + 1]; i++) {
            const double r = c->x[i] - mean(c, m->at[k], m->at[k + 1]);
            steps += r * r;
        }
    const struct fp_trend_ramp ramp = fp_trend_ramp(c->x + low, n);
    out->at = low + (uint32_t)ceil(ramp.from), out->end = low + (uint32_t)ramp.to + 1;
    out->before = ramp.before, out->after = ramp.after;
    const double marks = last - first + 1, cost = log(n);
    /* Bayes' information criterion: two parameters a step and a level; two levels and two ends */
    return ramp.squares / variance + 4 * cost + 2 < steps / variance + (2 * marks + 1) * cost;
}

static void put(const struct fp_trend_sums *c, struct fp_trend_change *out, int kind, double z, double p) {
    out->kind = kind;
    out->z = z;
    out->p = p;
    out->noise = sqrt(fp_trend_variance(c->of, c->series, out->at, out->before));
}

/* Whether the level at mark `i` returns at the next one. */
static int returns(const struct fp_trend_sums *c, const struct marks *m, uint32_t i) {
    if (i + 1 >= m->n) return 0;
    const double *u = c->precise;
    const double before = mean(c, m->at[i - 1], m->at[i]), within = mean(c, m->at[i], m->at[i + 1]);
    const double after = mean(c, m->at[i + 1], m->at[i + 2]), variance = scale_of(c, before);
    const double error =
        sqrt(variance * (1 / (u[m->at[i]] - u[m->at[i - 1]]) + 1 / (u[m->at[i + 2]] - u[m->at[i + 1]])));
    return fabs(after - before) <= fmax(3 * error, 0.1 * fabs(within - before)) &&
           fabs(after - before) < 0.5 * fabs(within - before);
}

static uint32_t described(const struct fp_trend_sums *c, const struct marks *m, struct fp_trend_change *out,
                          uint32_t room) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < m->n && n < room; i++) {
        struct fp_trend_change *one = &out[n];
        uint32_t last = i;
        one->before = mean(c, m->at[i - 1], m->at[i]);
        one->after = mean(c, m->at[i], m->at[i + 1]);
        one->at = m->at[i];
        one->end = m->at[i + 1];
        if (returns(c, m, i)) {
            put(c, one, one->end - one->at <= 3 ? FP_TREND_SPIKE : FP_TREND_GONE, m->z[i], fmin(m->p[i], m->p[i + 1]));
            i++;
            n++;
            continue;
        }
        while (last + 1 < m->n && (mean(c, m->at[last + 1], m->at[last + 2]) > mean(c, m->at[last], m->at[last + 1])) ==
                                      (one->after > one->before))
            last++;
        for (; last >= i; last--) {
            if (!is_drift(c, m, i, last, one)) continue;
            put(c, one, FP_TREND_DRIFT, m->z[i], m->p[i]);
            break;
        }
        if (last < i) {
            one->before = mean(c, m->at[i - 1], m->at[i]);
            one->after = mean(c, m->at[i], m->at[i + 1]);
            one->at = m->at[i];
            one->end = m->at[i + 1];
            put(c, one, FP_TREND_STEP, m->z[i], m->p[i]);
            last = i;
        }
        i = last;
        n++;
    }
    return n;
}

/* Adds the points that stick out; changes stay in order. */
static uint32_t with_spikes(const struct fp_trend_sums *c, const double *x, double most, struct fp_trend_change *out,
                            uint32_t n, uint32_t room) {
    for (uint32_t i = 0; i < c->of->n_points && n < room; i++) {
        const double z = sticks_out(c, x, i), normal = fp_trend_normal(fabs(z), fmin(c->series->freedom, c->of->tails));
        const double p = fmin(1, fp_trend_tail(normal) * c->of->n_points / of_points);
        if (fabs(z) < SPIKE || p > most) continue;
        uint32_t k = n;
        for (; k && out[k - 1].at > i; k--) out[k] = out[k - 1];
        out[k] = (struct fp_trend_change){
            .before = fp_trend_near(x, c->of->n_points, i), .after = x[i], .at = i, .end = i + 1};
        put(c, &out[k], FP_TREND_SPIKE, normal, p);
        n++;
    }
    return n;
}

int fp_trend_changes(struct fp_trend *t, uint32_t series, double most, struct fp_trend_change *found, uint32_t room) {
    struct fp_trend_sums c = {0};
    struct fp_trend_one one;
    struct marks m = {.n = 1};
    if (series >= t->n_series) return 0;
    begin(&c, t);
    fp_trend_one_init(&one, t);
    fp_trend_one_load(&one, t, series);
    const uint32_t points = one.t.n_points;
    if (points < 2) return 0;
    load(&c, &one.t);
    m.at[1] = points;
    if (t->series[series].level != 0) divide(&c, &m, 0, points, most);
    settle(&c, &m, most);
    uint32_t n = described(&c, &m, found, room);
    n = with_spikes(&c, one.t.values, most, found, n, room);
    for (uint32_t i = 0; i < n && !one.is_whole; i++) {
        found[i].at = one.point[found[i].at];
        found[i].end = found[i].end < points ? one.point[found[i].end] : t->n_points;
    }
    return (int)n;
}
