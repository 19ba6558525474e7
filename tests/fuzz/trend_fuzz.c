/* Fuzz target: sums of a trend, and the series that are made of them.  The input is a program that packs the costs of a
 * few profiles, or has their bytes as they are.  Checked besides memory: what was packed is unpacked again; rows of
 * profiles that pass the check are all found; levels and probabilities are numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/guard.h"
#include "ends/trend.h"
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PROFILES = 24, ROWS = 6, HOSTS = 3, ROOM = PROFILES * (12 + 28 * ROWS) + 4 * ROWS, CHANGES = 8 };

struct costs {
    uint8_t bytes[ROOM]; /* first the rows that profiles share, if any */
    uint32_t sizes[PROFILES];
    size_t length;
    uint32_t n, n_rows;
};

static void pack(struct program *g, struct costs *c) {
    uint32_t rows[ROWS], again[ROWS];
    int64_t columns[3][ROWS], others[3][ROWS];
    struct fp_trend_kept k = {rows, columns[0], columns[1], columns[2], 0},
                         u = {again, others[0], others[1], others[2], 0};
    for (c->n = 0; c->n < PROFILES && g->p < g->end; c->n++) {
        uint8_t *to = c->bytes + c->length;
        k.n = take(g) % (ROWS + 1);
        for (uint32_t i = 0; i < k.n; i++) {
            rows[i] = (i + take(g) % 2) % ROWS;
            for (int j = 0; j < 3; j++) columns[j][i] = value(g);
        }
        c->sizes[c->n] = (uint32_t)fp_trend_pack(&k, 0, to);
        u.n = k.n;
        if (fp_trend_unpack(to, c->sizes[c->n], 0, c->sizes[c->n], ROWS, &u) != FP_DONE || u.n != k.n) abort();
        for (int j = 0; j < 3; j++)
            if (memcmp(columns[j], others[j], k.n * sizeof *columns[j]) != 0) abort();
        if (memcmp(rows, again, k.n * sizeof *rows) != 0) abort();
        c->length += c->sizes[c->n];
    }
}

/* The same with shared rows: each profile has all of them, of which those without costs are not read. */
static void pack_together(struct program *g, struct costs *c) {
    static const uint32_t places[ROWS] = {4, 2, 0, 1, 3, 5};
    uint32_t rows[ROWS], again[ROWS], all[ROWS];
    int64_t columns[3][ROWS], wide[3][ROWS], others[3][ROWS];
    struct fp_trend_kept k = {rows, columns[0], columns[1], columns[2], 0}, w = {all, wide[0], wide[1], wide[2], ROWS},
                         u = {again, others[0], others[1], others[2], 0};
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint8_t row[4] = {(uint8_t)i, 0, 0, 0};
        memcpy(c->bytes + 4 * (size_t)places[i], row, sizeof row);
    }
    c->length = sizeof rows;
    c->n_rows = ROWS;
    for (c->n = 0; c->n < PROFILES && g->p < g->end; c->n++) {
        int64_t sums[3] = {0};
        uint32_t has_empty = 0;
        k.n = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            if (take(g) % 3 == 0) continue;
            rows[k.n] = i;
            for (int j = 0; j < 3; j++) sums[j] ^= columns[j][k.n] = value(g);
            has_empty |= !columns[0][k.n] && !columns[1][k.n];
            k.n++;
        }
        if ((fp_trend_spread(&k, places, &w) != FP_DONE) != has_empty) abort();
        if (has_empty) return;
        c->sizes[c->n] = (uint32_t)fp_trend_pack(&w, (uint32_t)c->length, c->bytes + c->length);
        u.n = ROWS;
        if (fp_trend_unpack(c->bytes, c->length + c->sizes[c->n], c->length, c->sizes[c->n], ROWS, &u) != FP_DONE)
            abort();
        for (uint32_t i = 0; i < u.n; i++)
            for (int j = 0; j < 3; j++) sums[j] ^= others[j][i];
        if (u.n != k.n || sums[0] || sums[1] || sums[2]) abort();
        c->length += c->sizes[c->n];
    }
}

/* Bytes of the input instead; in place of some, if there are profiles. */
static void damage(struct program *g, struct costs *c) {
    if (!c->n) {
        c->n_rows = 0;
        c->sizes[c->n++] = (uint32_t)(c->length = g->end - g->p < ROOM ? (size_t)(g->end - g->p) : ROOM);
        memcpy(c->bytes, g->p, c->length);
        return;
    }
    for (uint32_t i = take(g) % 4; i--;) c->bytes[(take(g) << 8 | take(g)) % c->length] = (uint8_t)take(g);
    if (take(g) % 4 == 0) c->sizes[take(g) % c->n] += take(g);
}

/* Numbers are reversed, one of them is unknown, two rows may become one. */
static void renumber(struct program *g, struct costs *c, uint32_t *marks, double *totals) {
    int32_t rows[ROWS];
    double scales[PROFILES];
    struct fp_trend_numbers numbers = {rows, marks, totals, ROWS, ROWS};
    for (int32_t i = 0; i < ROWS; i++) rows[i] = ROWS - 1 - i;
    if (take(g) % 2) rows[take(g) % ROWS] = -1;
    if (take(g) % 2) rows[take(g) % ROWS] = 0;
    for (uint32_t i = 0; i < PROFILES; i++) scales[i] = 1;
    uint32_t done = 0;
    for (size_t at = 4 * (size_t)c->n_rows; done < c->n; at += c->sizes[done++]) {
        const int more =
            fp_trend_renumber(&numbers, c->bytes, c->length, at, c->sizes + done, scales + done, c->n - done, done + 1);
        if (more < 0 || (uint32_t)more > c->n - done) abort();
        for (int i = 0; i < more; i++) at += c->sizes[done++];
        if (done == c->n) break; /* else this one is left as it is */
    }
}

static void test(struct fp_trend *t) {
    struct fp_trend_change found[CHANGES];
    double common[PROFILES];
    fp_trend_common(t, NULL, common);
    fp_trend_divide(t, common);
    fp_trend_noise(t);
    fp_trend_test(t);
    for (uint32_t f = 0; f < t->n_series; f++) {
        if (!(t->series[f].p >= 0 && t->series[f].p <= 1)) abort();
        const int n = fp_trend_changes(t, f, 0.02, found, CHANGES);
        if (n < 0 || n > CHANGES) abort();
        for (int i = 0; i < n; i++) {
            if (found[i].at >= t->n_points || found[i].end > t->n_points || found[i].end <= found[i].at) abort();
            if (isnan(found[i].before) || isnan(found[i].after) || isnan(found[i].p) || isnan(found[i].z)) abort();
        }
    }
}

static void series(struct program *g, const struct costs *c) {
    uint64_t at[PROFILES] = {0};
    uint32_t point[PROFILES], host[PROFILES], places[ROWS];
    double scale[PROFILES], weight[PROFILES], values[ROWS * PROFILES] = {0}, by_host[ROWS * HOSTS] = {0};
    double squares[ROWS] = {0}, n_of[PROFILES] = {0}, n_by[PROFILES * HOSTS] = {0}, variances[PROFILES], spread[ROWS];
    struct fp_trend_series its[ROWS];
    const uint32_t replicas = 1 + take(g) % 3, n_hosts = take(g) % (HOSTS + 1), how = take(g);
    const uint32_t points = (c->n + replicas - 1) / replicas;
    memset(its, 0, sizeof its);
    for (uint32_t i = 0; i < ROWS; i++) places[i] = take(g) % 8 ? i : FP_TREND_NO_ROW;
    for (uint32_t i = 0; i < c->n; i++) {
        at[i] = i ? at[i - 1] + c->sizes[i - 1] : 4 * (uint64_t)c->n_rows;
        point[i] = i / replicas;
        host[i] = n_hosts ? take(g) % n_hosts : 0;
        scale[i] = 1.0 / (1 + take(g));
        weight[i] = how & 1 ? 1 : (1 + take(g) % 4) / 4.0;
        n_of[point[i]] += weight[i];
        if (n_hosts) n_by[point[i] * n_hosts + host[i]] += weight[i];
        variances[point[i]] = how & 2 ? 0 : 0.001 * take(g);
    }
    struct fp_trend t = {.n_points = points, .n_series = ROWS, .values = values, .weight = variances, .series = its};
    struct fp_trend_sides sides = {places, ROWS, n_hosts, by_host, squares};
    struct fp_trend_profiles p = {.data = c->bytes,
                                  .length = c->length,
                                  .at = at,
                                  .size = c->sizes,
                                  .point = point,
                                  .host = host,
                                  .scale = scale,
                                  .weight = weight,
                                  .n = c->n};
    p.column = how >> 2 & 1;
    p.per_calls = how >> 3 & 1;
    if (fp_trend_add(&t, &p, &sides) != FP_DONE) abort();
    struct fp_trend_replicas r = {n_hosts, c->n, how >> 4 & 1, n_of, n_by, by_host, squares, spread, 0};
    fp_trend_means(&t, &r);
    t.spread = spread;
    t.spread_freedom = r.freedom;
    test(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct program g = {data, data + n};
    struct costs c = {.length = 0, .n_rows = 0};
    const uint32_t how = take(&g);
    uint32_t marks[ROWS] = {0};
    double totals[ROWS] = {0};
    if (how % 8) (how & 8 ? pack_together : pack)(&g, &c);
    if (how % 4 == 0) damage(&g, &c);
    const int is_whole = fp_trend_check(c.bytes, c.length, c.n_rows, c.sizes, c.n, ROWS) == FP_DONE;
    if (!is_whole && how % 4) abort();
    if (!is_whole || !c.n) return 0;
    renumber(&g, &c, marks, totals);
    if (how % 8) series(&g, &c);
    return 0;
}
