/* Counters: a value of a track, or one that atrace prints, becomes a record and then a row (core/counter.h).
 *
 *   track "Heap" {unit_multiplier: 1024}, value 3      3072 Heap
 *   C|1234|frames|7                                    7 frames, of process 1234
 */
#include <stdlib.h>

#include "core/counter.h"
#include "perfetto/read_private.h"

int fp_perfetto_take_counter(struct fp_perfetto_read *r, uint32_t track, struct fp_wire m) {
    struct fp_perfetto_track *t = &r->tracks[track];
    struct fp_wire_field f;
    int status;
    if (!t->counter && !(t->counter = calloc(1, sizeof *t->counter))) return FP_E_NOMEM;
    while ((status = fp_perfetto_next(&m, &f)) > 0) {
        if (fp_perfetto_is(&f, 4, FP_WIRE_VARINT)) t->counter->multiplier = (int64_t)f.v;
        if (fp_perfetto_is(&f, 5, FP_WIRE_VARINT)) t->counter->adds = f.v != 0;
    }
    return status ? FP_E_MALFORMED : 0;
}

void fp_perfetto_counters_restart(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->track_keys.n && i < r->cap_tracks; i++) {
        struct fp_perfetto_counter *c = r->tracks[i].counter;
        if (c) *c = (struct fp_perfetto_counter){.multiplier = c->multiplier, .adds = c->adds};
    }
}

void fp_perfetto_counters_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->track_keys.n && i < r->cap_tracks; i++) free(r->tracks[i].counter);
}

static int put(struct fp_perfetto_read *r, int64_t time, uint32_t track, uint32_t name, double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    r->counts[FP_PERFETTO_N_COUNTERS]++;
    return fp_perfetto_put_record(r, time, track, FP_PO_COUNTER, name, bits);
}

int fp_perfetto_put_counter(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, int64_t time, uint32_t track,
                            double value) {
    struct fp_perfetto_counter *c = r->tracks[track].counter;
    if (c && c->multiplier) value *= (double)c->multiplier;
    if (c && c->adds) { /* the sequence describes the track first, because the value needs that */
        if (c->clears == s->clears) value += c->last;
        c->clears = s->clears;
        c->last = value;
    }
    return put(r, time, track, 0, value);
}

int fp_perfetto_put_named_counter(struct fp_perfetto_read *r, int64_t time, int64_t pid, uint32_t name, double value) {
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_COUNTERS, (uint64_t)pid, 0);
    return track == FP_NO_ID ? FP_E_NOMEM : put(r, time, track, name, value);
}

int fp_perfetto_counter_row(struct fp_perfetto_read *r, const struct fp_perfetto_record *record, struct fp_batch *out) {
    const struct fp_perfetto_track *t = &r->tracks[r->rounds.tag];
    uint32_t thread;
    uint64_t slice;
    double value;
    size_t n;
    if (!record->id && !t->counter) return FP_DONE; /* its track is not described as a counter: only counted */
    if (out->n == out->cap) return FP_FULL;
    if (!fp_perfetto_thread_of(r, t->place - 1, 0, &thread)) return FP_ASK;
    const uint8_t *name = fp_string(&r->model->strings, record->id ? record->id : t->counter->name, &n);
    memcpy(&value, &record->extra, sizeof value);
    if (fp_counter_payload(&r->scratch, value, name, n)) return FP_E_NOMEM;
    if (!r->scratch.n) return FP_DONE; /* not a number: only counted */
    const int status = fp_batch_payload(out, r->scratch.p, r->scratch.n, &slice);
    if (status) return status == FP_E_OVERFLOW && out->n ? FP_FULL : FP_E_NOMEM;
    r->counts[FP_PERFETTO_N_COUNTERS]--;
    out->aux[fp_perfetto_add_row(r, out, FP_OP_TYPED, r->rounds.time, thread, FP_COUNTER_TYPE)] = slice;
    return FP_DONE;
}
