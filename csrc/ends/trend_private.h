/* ends/trend_private.h - what the files of trend share.  C only. */
#pragma once

#include "ends/trend.h"

/* One series without the points at which it is missing. */
struct fp_trend_one {
    struct fp_trend t; /* of one series */
    double *values, *weight;
    uint8_t *season;
    uint32_t *point; /* by point of `t`: the point of all */
    int is_whole;    /* none is missing: `t` borrows the values, and points are the same */
};

/* Room for one. */
void fp_trend_one_init(struct fp_trend_one *one, const struct fp_trend *t);

/* Sets it to a series. */
void fp_trend_one_load(struct fp_trend_one *one, const struct fp_trend *t, uint32_t series);

/* Copies the values that are not missing; returns their number. */
uint32_t fp_trend_known(const double *x, uint32_t n, double *to);

/* Prefix sums of a series, and what its tests need. */
struct fp_trend_sums {
    const struct fp_trend *of;
    const struct fp_trend_series *series;
    double *x;        /* values, without spikes */
    double *precise;  /* prefix sums of precisions, n_points + 1 */
    double *weighted; /* of values times precision */
    double *counts;   /* of samples, if they are known */
    double *exposure; /* of 1 / weight */
    double *scratch;
    double factor; /* of scale for counts */
    double most;   /* how far a point is from both sides, in standard errors: the largest */
};

/* The variance of sampling at a level. */
double fp_trend_sampled(const struct fp_trend *t, double level, double weight);

/* The variance of a point at a level. */
double fp_trend_variance(const struct fp_trend *t, const struct fp_trend_series *s, uint32_t point, double level);

/* The probability that a standard normal is as far from 0. */
double fp_trend_tail(double z);

/* A t statistic as a normal one with the same probability. */
double fp_trend_normal(double t, double freedom);

/* The median of three. */
double fp_trend_middle(double a, double b, double c);

/* The level near point i, which has two points or more on each side: of the medians of up to three points before and
 * after, that which is nearer to it; NaN if it is between them. */
double fp_trend_near(const double *x, uint32_t n, uint32_t i);

/* The mean of the `keep` smallest squares of n, rescaled so that it is the variance of normal deviates.  Reorders. */
double fp_trend_trimmed(double *squares, uint32_t n);

/* A level, a ramp to another one between two places, and the squares that it leaves. */
struct fp_trend_ramp {
    double before, after, from, to, squares;
};

/* The best of those that are at least 5 points long; squares are HUGE_VAL for less than 6 points. */
struct fp_trend_ramp fp_trend_ramp(const double *x, uint32_t n);

struct fp_trend_weighted {
    double value, weight;
};

/* The weighted median; `total` is the sum of weights.  Reorders. */
double fp_trend_weighted_median(struct fp_trend_weighted *items, uint32_t n, double total);

/* Compares two doubles, for qsort. */
int fp_trend_compare(const void *a, const void *b);

double fp_trend_median(double *values, uint32_t n);
