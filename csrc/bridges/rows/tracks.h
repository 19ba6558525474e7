/* bridges/rows/tracks.h - the values of counters and the custom events of a timeline, for the tracks of a page.
 *
 *   values of "heap"   0: 5,  10: 7,  11: 6,  12: 9,  30: 9, ...
 *   with little room   0: 5,  10: 7,  11: 6,  12: 9     values equal to the one before are not kept; then, of each
 *                                                       pixel of time, the first, the least, the largest, the last
 *   events             10 "gc", 11 "gc", 40 "gc"   ->   10 "gc" twice, 40 "gc" once
 *
 * Kept values and events have their own times, so a picture that is not finer than a pixel is that of all of them.
 * Memory: the room, which the caller gives; FP_TRACKS_COUNTERS counters and FP_TRACKS_NAMES names of at most
 * FP_TRACKS_NAME bytes.  Events with further names have none; further counters are left out.
 */
#pragma once

#include "core/core.h"

enum { FP_TRACKS_COUNTERS = 256, FP_TRACKS_NAMES = 4096, FP_TRACKS_NAME = 256 };

struct fp_tracks_point {
    uint64_t time; /* ticks */
    double value;
};

/* A counter of a thread. */
struct fp_tracks_counter {
    uint32_t thread, name; /* name: a string of fp_tracks.names */
    uint64_t n;            /* values in the profile */
    double least, most, last;
    uint64_t last_time;
    struct fp_tracks_point *points; /* those kept, in order of time */
    uint32_t n_points, cap;
};

/* `count` events of a thread that have the same name, the first at `time`. */
struct fp_tracks_mark {
    uint64_t time;
    uint32_t thread, name; /* name: a string of fp_tracks.names, 0: unknown */
    uint32_t type, count;  /* type: of typed events + 1; 0: a custom event */
};

struct fp_tracks {
    const struct fp_model *model;
    struct fp_strings names;
    struct fp_tracks_counter *tracks;
    uint32_t n_tracks;
    struct fp_tracks_mark *marks; /* after fp_tracks_fit: sorted by thread and time */
    uint32_t n_marks;
    uint64_t first_time, last_time; /* of all values and events; first_time UINT64_MAX: none */
    uint64_t n_events;              /* in the profile */
    uint64_t pixel;                 /* ticks: longer than the distance of values that were not kept; 0: all were */
    uint32_t n_left_out;            /* 1: there are more counters */

    /* private from here on */
    uint64_t mark_pixel;
    uint32_t room, n_points, cap_tracks, cap_marks;
    struct fp_table counters; /* (thread + 1, name); its ids are those of the tracks + 1 */
};

/* Room for `room` >= 32 * FP_TRACKS_COUNTERS values, and as many events.  The model is borrowed.  NULL when memory ran
 * out. */
struct fp_tracks *fp_tracks_new(const struct fp_model *model, uint32_t room);
void fp_tracks_free(struct fp_tracks *t);

/* Adds the values and events of a timeline batch.  FP_DONE, FP_E_MALFORMED (a thread that the model does not have). */
int fp_tracks_put(struct fp_tracks *t, const struct fp_batch *in, struct fp_err *err);

/* The bytes of a name, *n of them. */
const uint8_t *fp_tracks_name(const struct fp_tracks *t, uint32_t name, size_t *n);

/* Adds `by` to the times of a batch. */
void fp_tracks_shift(struct fp_batch *b, uint64_t by);

/* Keeps at most `points` values (but eight of each counter) and `marks` entries of events, and sorts these. */
int fp_tracks_fit(struct fp_tracks *t, uint32_t points, uint32_t marks);
