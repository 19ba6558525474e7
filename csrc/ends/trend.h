/* ends/trend.h - which of many series changed, when, and whether that is more than their noise.
 *
 * A series has one value at each point: the mean of what its replicas show, such as the share of a function each night.
 * Its variance at a level m is modelled as
 *
 *     scale * (m * weight + extra * m * m)
 *
 * `weight` of a point is known from the number of samples (a share m of n samples has variance m / n, or m (1 - m) / n
 * if it `is_share`). `extra` is the relative variance that the typical series has beyond that, so that its differences
 * from point to point are as large as they are.  `scale` is how much more or less one series varies: its own
 * differences count for as many degrees of freedom as they have, those of all others together for `freedom`, which is
 * large if all series have about the same scale (empirical Bayes, as limma does for genes).  It is never less than the
 * noise of sampling.
 *
 * Differences of neighbours, trimmed, are not inflated by the changes that are looked for.  Noise that lasts for
 * several points is seen in means of blocks of them, and raises the scale.
 *
 * A value may be missing (NaN): a series is then one of its other points.
 *
 * A series is searched for the split with the largest difference of means, in all of it and in shorter and shorter
 * intervals (seeded binary segmentation); and for points that differ from both sides.  Each result has a probability
 * that noise alone shows as much anywhere in the series; the caller decides over all series which of them are findings.
 */
#pragma once

#include "ends/top.h"

enum { FP_TREND_NO_ROW = 0x7fffffff };

enum { FP_TREND_SHARES = 1, FP_TREND_DIVIDED = 2 }; /* shares as they are; divided, their levels depend on others' */

enum fp_trend_kind {
    FP_TREND_STEP = 0,  /* lasts until `end`, where the next change begins or the series ends */
    FP_TREND_DRIFT = 1, /* a ramp from `at` to `end` */
    FP_TREND_SPIKE = 2, /* from `at` to `end`, then as before */
    FP_TREND_GONE = 3   /* went away again: as a spike, but longer */
};

struct fp_trend_change {
    double before, after; /* levels */
    double z, p;          /* size in standard errors; probability of noise */
    double noise;         /* standard deviation of a point */
    uint32_t at, end;
    int32_t kind;
};

struct fp_trend_series {
    double level;    /* mean */
    double variance; /* of a point, from differences of neighbours */
    double scale;    /* see above */
    double freedom;  /* degrees of freedom of `scale` */
    double p;        /* of its most certain change */
    int32_t seasonal;
};

struct fp_trend {
    uint32_t n_points, n_series;
    double *values;       /* series by series; borrowed */
    const double *weight; /* by point, 0: exact values; borrowed */
    const double *spread; /* by series: the variance of a point's value by its replicas; NULL: unknown; borrowed */
    double spread_freedom;
    int32_t is_share;               /* values are FP_TREND_SHARES of all samples, or were divided by `common` */
    uint32_t period;                /* points of a season, at most 31; 0: none */
    const uint8_t *season;          /* by point: its place in the season; borrowed */
    struct fp_trend_series *series; /* borrowed; n_series */
    double extra, freedom;          /* results of fp_trend_noise */
    double tails;                   /* degrees of freedom of Student's distribution that single points follow */
    double mean_weight;
    double lost; /* points' worth of noise that went with the levels of hosts in turn; of fp_trend_means */
};

/* Sets `common` to how much the typical series has grown at each point, so that a series that grew does not seem to
 * shrink all others when they are shares of one total; changes that are within the noise are 1.  Series are weighted by
 * level, none with more than a twentieth, and none of `without` (by series; NULL: all count).  FP_DONE. */
int fp_trend_common(struct fp_trend *t, const uint8_t *without, double *common);

/* Divides the values of each point by these factors, which are not 0.  FP_DONE. */
int fp_trend_divide(struct fp_trend *t, const double *by);

/* Estimates the noise, takes seasons out of the values and sets `series`, but p.  FP_DONE. */
int fp_trend_noise(struct fp_trend *t);

/* Sets p of all series.  FP_DONE. */
int fp_trend_test(struct fp_trend *t);

/* Changes of one series, in order, each with p of at most `most`: those found, at most `room`; or FP_E_NOMEM. */
int fp_trend_changes(struct fp_trend *t, uint32_t series, double most, struct fp_trend_change *found, uint32_t room);

/* The replicas of points: profiles of the same point.  Each has a weight, and values are sums of weighted ones. */
struct fp_trend_replicas {
    uint32_t n_hosts;      /* that are compared with themselves; 0: replicas are alike */
    uint32_t n_profiles;   /* of all points */
    int32_t is_own;        /* each row belongs to the hosts that have it: others say nothing of it */
    const double *n_of;    /* by point: the weights of its profiles */
    const double *n_by;    /* by point, then by host: the same; borrowed, as all of these */
    const double *by_host; /* by host, then by series: sums of values */
    const double *squares; /* by series: sums of squared values */
    double *spread;        /* result, by series: the variance of a point's mean by the spread of its replicas */
    double freedom;        /* result: of the spread; 0: there is none */
};

/* Turns sums of values by point into means.  Hosts whose level differs from others' count as if they were at each
 * point (least squares with a level for each point and host).  Hosts that are never at the same point, as if they came
 * in turn, get the same mean.  A value is missing where no host of the row is.  FP_DONE. */
int fp_trend_means(struct fp_trend *t, struct fp_trend_replicas *r);

/* The costs of profiles. */
struct fp_trend_profiles {
    const uint8_t *data; /* as fp_trend_pack wrote those of each, with distinct rows; borrowed, as all of these */
    size_t length;
    const uint64_t *at; /* by profile: the place in data */
    const uint32_t *size;
    const uint32_t *point, *host;
    const double *scale; /* of its costs */
    const double *weight;
    uint32_t n;
    int32_t column;    /* 0: self, 1: inclusive costs */
    int32_t per_calls; /* costs are divided by the calls of their row where these are above 0 */
};

/* The sums of values besides those by point. */
struct fp_trend_sides {
    const uint32_t *places; /* by row: its series; FP_TREND_NO_ROW: it is left out; borrowed, as all of these */
    uint32_t n_rows;
    uint32_t n_hosts;
    double *by_host; /* by host, then by series */
    double *squares; /* by series: of squared values */
};

/* Adds costs, times their scale and weight, to the values of their rows at a point, to the sums of their host, and
 * their squares.  FP_DONE, or FP_E_MALFORMED. */
int fp_trend_add(struct fp_trend *t, const struct fp_trend_profiles *p, struct fp_trend_sides *s);

/* The costs of a profile's rows on disk: their number, the widths of the columns, and the columns. */
struct fp_trend_kept {
    uint32_t *rows;
    int64_t *self, *inclusive, *calls; /* borrowed, as rows */
    uint32_t n;
};

/* Writes costs to `out`, which has room for 12 + 28 n bytes, with as few bytes a number as they need; with the rows,
 * or, if `before` is not 0, with those that are so many bytes before them, each of 4 bytes.  Returns the length. */
size_t fp_trend_pack(const struct fp_trend_kept *k, uint32_t before, uint8_t *out);

/* Sets the columns of `to`, which has more rows: `places` of them by row.  FP_DONE; FP_NEEDS if a row has neither self
 * nor inclusive costs, as those have that a profile lacks. */
int fp_trend_spread(const struct fp_trend_kept *k, const uint32_t *places, struct fp_trend_kept *to);

/* Reads what fp_trend_pack wrote, at a place in `data`; k->n, for which there is room, becomes the number of rows.  Of
 * rows that profiles share, only those with costs are read.  FP_E_MALFORMED for another length, or a row that is not
 * below `most`. */
int fp_trend_unpack(const uint8_t *data, size_t length, uint64_t at, size_t size, uint32_t most,
                    struct fp_trend_kept *k);

/* Whether n profiles, whose packed costs follow each other, fill `length` bytes and have only rows below `most`: their
 * own, or, if n_rows is not 0, all those at the beginning of data.  FP_DONE, or FP_E_MALFORMED. */
int fp_trend_check(const uint8_t *data, size_t length, uint32_t n_rows, const uint32_t *sizes, uint32_t n,
                   uint32_t most);

/* What fp_trend_renumber needs of the numbers that rows have, and of those they get. */
struct fp_trend_numbers {
    const int32_t *rows; /* by old number: the new one; negative: unknown; borrowed, as all of these */
    uint32_t *marks;     /* by new number: the last profile with this row */
    double *totals;      /* by new number: sums of absolute self costs, times their scale */
    uint32_t n_old, n_new;
};

/* Gives new numbers to the rows of n profiles, whose packed costs follow each other from `at` on, in place, and adds to
 * their totals. `profile` is the number of the first, above 0, that none before it and no later one had.  Returns how
 * many were done: it stops before one with a number that is unknown, or with two rows of the same new one.  Or
 * FP_E_MALFORMED. */
int fp_trend_renumber(struct fp_trend_numbers *to, uint8_t *data, size_t length, uint64_t at, const uint32_t *sizes,
                      const double *scales, uint32_t n_profiles, uint32_t profile);

/* Adds absolute costs, times a scale, to the totals of their rows.  FP_DONE. */
int fp_trend_total(double *totals, const uint32_t *rows, const int64_t *costs, uint32_t n, double scale);

/* The items of `c` with a cost: their ids, self and inclusive costs and calls; the arrays have room for c->cap. Returns
 * their number. */
uint32_t fp_trend_costs(const struct fp_top_sums *c, uint32_t *ids, int64_t *self, int64_t *inclusive, int64_t *calls);
