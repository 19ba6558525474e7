#include "bridges/rows/tracks.h"

struct fp_tracks *fp_tracks_new(const struct fp_model *model, uint32_t room) {
    struct fp_tracks *t = fp_made(sizeof *t);
    t->model = model;
    t->room = room;
    t->first_time = UINT64_MAX;
    fp_table_init(&t->counters, 2);
    fp_strings_init(&t->names);
    t->names.most = FP_TRACKS_NAME;
    return t;
}

void fp_tracks_free(struct fp_tracks *t) {
    for (uint32_t i = 0; i < t->n_tracks; i++) free(t->tracks[i].points);
    fp_table_clear(&t->counters);
    fp_strings_clear(&t->names);
    FP_FREE(t->tracks, t->marks, t);
}

/* The name of a counter or an event; 0 if it is new and there are too many. */
static uint32_t name_of(struct fp_tracks *t, const uint8_t *p, size_t n) {
    if (n > FP_TRACKS_NAME) n = FP_TRACKS_NAME;
    if (t->names.n < FP_TRACKS_NAMES) return fp_strings_intern(&t->names, p, n);
    const uint32_t guess = fp_strings_guess(&t->names, fp_strings_hash(p, n));
    size_t length;
    const uint8_t *known = fp_string(&t->names, guess, &length);
    return guess && length == n && !memcmp(known, p, n) ? guess : 0;
}

/* The next pixel; the first one is longer than `least`. */
static uint64_t larger(uint64_t pixel, uint64_t least) {
    if (!pixel) return least + 1;
    return pixel > UINT64_MAX / 2 ? UINT64_MAX : pixel + pixel / 4 + 1;
}

/* ---- values */

/* Of the values of a pixel keeps the first, the least, the largest and the last. */
static void thin_values(struct fp_tracks_counter *track, uint64_t pixel) {
    struct fp_tracks_point *p = track->points;
    uint32_t to = 0;
    for (uint32_t first = 0, end; first < track->n_points; first = end) {
        uint32_t least = first, most = first;
        for (end = first + 1; end < track->n_points && p[end].time / pixel == p[first].time / pixel; end++) {
            if (p[end].value < p[least].value) least = end;
            if (p[end].value > p[most].value) most = end;
        }
        const uint32_t last = end - 1;
        for (uint32_t i = first; i < end; i++)
            if (i == first || i == least || i == most || i == last) p[to++] = p[i];
    }
    track->n_points = to;
}

/* Until at most `most` values are left, or a pixel is longer than the whole time: then few of each counter are. */
static void fit_values(struct fp_tracks *t, uint32_t most) {
    const uint64_t span = t->last_time - t->first_time;
    int is_long = 0;
    while (t->n_points > most && !is_long) {
        t->pixel = larger(t->pixel, span / most);
        is_long = t->pixel > span || t->pixel == UINT64_MAX;
        t->n_points = 0;
        for (uint32_t i = 0; i < t->n_tracks; i++) {
            thin_values(&t->tracks[i], t->pixel);
            t->n_points += t->tracks[i].n_points;
        }
    }
}

/* The counter of this name; NULL: there are too many. */
static struct fp_tracks_counter *track_of(struct fp_tracks *t, uint32_t thread, uint32_t name) {
    const uint32_t key[2] = {thread + 1, name};
    uint32_t id = fp_table_find(&t->counters, key);
    if (!id) {
        if (t->n_tracks == FP_TRACKS_COUNTERS) return NULL;
        id = fp_table_intern(&t->counters, key);
        FP_PUSH(t->tracks, t->n_tracks, t->cap_tracks) = (struct fp_tracks_counter){.thread = thread, .name = name};
    }
    return &t->tracks[id - 1];
}

static void put_value(struct fp_tracks *t, const struct fp_batch *in, uint32_t row, size_t length) {
    const uint8_t *p = fp_batch_bytes(in, in->aux[row]);
    const double value = fp_real_of(p, length);
    const uint32_t name = name_of(t, p + length + 1, (uint32_t)in->aux[row] - length - 1);
    struct fp_tracks_counter *track = track_of(t, in->thread[row], name);
    if (!track) {
        t->n_left_out = 1;
        return;
    }
    const uint64_t time = in->time[row] > track->last_time ? in->time[row] : track->last_time;
    const int is_same = track->n && value == track->last;
    if (!track->n || value < track->least) track->least = value;
    if (!track->n || value > track->most) track->most = value;
    track->n++;
    track->last = value;
    track->last_time = time;
    if (is_same) return;
    if (t->n_points >= t->room) fit_values(t, t->room / 4 * 3);
    FP_PUSH(track->points, track->n_points, track->cap) = (struct fp_tracks_point){time, value};
    t->n_points++;
}

/* ---- events */

FP_ORDER(by_kind, struct fp_tracks_mark, thread, type, name, time)

FP_ORDER(by_time, struct fp_tracks_mark, thread, time, type, name)

/* Until at most `most` entries are left.  Events of a kind and a pixel become one entry; if that is not enough, first
 * types and names are forgotten, then all but the first entries of threads. */
static void fit_marks(struct fp_tracks *t, uint32_t most) {
    const uint64_t span = t->last_time - t->first_time;
    int forgets = 0;
    while (t->n_marks > most) {
        if ((t->mark_pixel > span || t->mark_pixel == UINT64_MAX) && forgets++) {
            t->n_marks = most;
            return;
        }
        t->mark_pixel = larger(t->mark_pixel, span / most);
        struct fp_tracks_mark *m = t->marks;
        for (uint32_t i = 0; forgets && i < t->n_marks; i++) m[i].name = m[i].type = 0;
        qsort(m, t->n_marks, sizeof *m, by_kind);
        uint32_t n = 0;
        for (uint32_t i = 0; i < t->n_marks; i++) {
            struct fp_tracks_mark *last = &m[n ? n - 1 : 0];
            if (n && last->thread == m[i].thread && last->name == m[i].name && last->type == m[i].type &&
                last->time / t->mark_pixel == m[i].time / t->mark_pixel)
                last->count += m[i].count < UINT32_MAX - last->count ? m[i].count : UINT32_MAX - last->count;
            else
                m[n++] = m[i];
        }
        t->n_marks = n;
    }
}

static void put_mark(struct fp_tracks *t, const struct fp_batch *in, uint32_t row) {
    const uint8_t *p = fp_batch_bytes(in, in->aux[row]);
    const uint32_t name = name_of(t, p, (uint32_t)in->aux[row]);
    const uint32_t function = in->function[row] < UINT32_MAX - 1 ? in->function[row] : UINT32_MAX - 1;
    if (t->n_marks >= t->room) fit_marks(t, t->room / 4 * 3);
    FP_PUSH(t->marks, t->n_marks, t->cap_marks) =
        (struct fp_tracks_mark){in->time[row], in->thread[row], name, in->op[row] == FP_OP_TYPED ? function + 1 : 0, 1};
    t->n_events++;
}

int fp_tracks_put(struct fp_tracks *t, const struct fp_batch *in, struct fp_err *err) {
    for (uint32_t i = 0; i < in->n; i++) {
        if (FP_LIKELY(in->op[i] != FP_OP_CUSTOM && in->op[i] != FP_OP_TYPED)) continue;
        if (in->thread[i] >= t->model->threads.n)
            return fp_unknown_id(err, "the thread of an event", in->thread[i], t->model->threads.n);
        if (in->time[i] < t->first_time) t->first_time = in->time[i];
        if (in->time[i] > t->last_time) t->last_time = in->time[i];
        const size_t length = fp_counter_value_of(in, i);
        if (length)
            put_value(t, in, i, length);
        else
            put_mark(t, in, i);
    }
    return FP_DONE;
}

int fp_tracks_fit(struct fp_tracks *t, uint32_t points, uint32_t marks) {
    fit_values(t, points ? points : 1);
    fit_marks(t, marks ? marks : 1);
    if (t->n_marks) qsort(t->marks, t->n_marks, sizeof *t->marks, by_time);
    return FP_DONE;
}

const uint8_t *fp_tracks_name(const struct fp_tracks *t, uint32_t name, size_t *n) {
    return fp_string(&t->names, name, n);
}

void fp_tracks_shift(struct fp_batch *b, uint64_t by) {
    for (uint32_t i = 0; i < b->n; i++) b->time[i] = b->time[i] <= UINT64_MAX - by ? b->time[i] + by : UINT64_MAX;
}
