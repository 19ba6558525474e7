/* Counters: a value of a track, or one that atrace prints, becomes a record and then a row (core/counter_value.h).
 *
 *   track "Heap" {unit_multiplier: 1024}, value 3      3072 Heap
 *   C|1234|frames|7                                    7 frames, of process 1234
 */
#include "perfetto/read_private.h"

void fp_perfetto_counters_restart(struct fp_perfetto_read *r) {
    fp_table_empty(&r->tracks.sum_keys);
    if (r->tracks.cap_sums) memset(r->tracks.sums, 0, r->tracks.cap_sums * sizeof *r->tracks.sums);
}

void fp_perfetto_counters_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->tracks.keys.n && i < r->tracks.cap; i++) free(r->tracks.list[i].counter);
    fp_table_clear(&r->tracks.sum_keys);
    free(r->tracks.sums);
}

static void put(struct fp_perfetto_read *r, int64_t time, uint32_t track, uint32_t name, double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    r->counts[FP_PERFETTO_N_COUNTERS]++;
    fp_perfetto_put_record(r, time, track, FP_PO_COUNTER, name, bits);
}

/* Adds a difference to those that the sequence wrote since its state was last cleared. */
static void add_up(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, uint32_t track, double *value) {
    const uint32_t key[2] = {s->number, track}, row = fp_table_intern(&r->tracks.sum_keys, key);
    struct fp_perfetto_sum *sum = FP_AT(r->tracks.sums, r->tracks.cap_sums, row);
    if (sum->clears == s->clears) *value += sum->last;
    sum->clears = s->clears;
    sum->last = *value;
}

void fp_perfetto_put_counter(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, int64_t time, uint32_t track,
                             double value) {
    const struct fp_perfetto_counter *c = r->tracks.list[track].counter;
    if (c && c->multiplier) value *= (double)c->multiplier;
    /* the sequence describes the track first, because the value needs that */
    if (c && c->adds) add_up(r, s, track, &value);
    put(r, time, track, 0, value);
}

void fp_perfetto_put_named_counter(struct fp_perfetto_read *r, int64_t time, int64_t pid, uint32_t name, double value) {
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_COUNTERS, (uint64_t)pid, 0);
    put(r, time, track, name, value);
}

/* ---- extra values of an event ----
 *
 *   event {extra_counter_track_uuids: 21 22, extra_counter_values: 7 9}      7 of track 21, 9 of track 22
 *
 * An event without tracks has those of the sequence's defaults.  Whole numbers and doubles are separate lists. */

static const struct fp_wire_schema of_event = {.kinds = {[11] = 'V', 'L', [31] = 'L', [45] = 'L', 'X'},
                                               .to = {[11] = FP_WIRE_ONLY}};

int fp_perfetto_extra_tracks(struct fp_perfetto_extra *to, struct fp_wire m, uint64_t *track) {
    struct fp_wire_field f;
    uint64_t uuid;
    int kind, more;
    *to = (struct fp_perfetto_extra){0};
    while ((kind = fp_wire_read(&m, &of_event, track, &f, NULL)) > 0) {
        if (f.number != 31 && f.number != 45) continue;
        const int is_real = f.number == 45;
        struct fp_wire list = fp_wire_inside(&f);
        while ((more = fp_wire_next_number(&list, &uuid)) > 0)
            if (to->n[is_real] < FP_PERFETTO_EXTRA) to->tracks[is_real][to->n[is_real]++] = uuid;
        if (more) return FP_E_MALFORMED;
    }
    return kind ? FP_E_MALFORMED : 0;
}

static void put_extra(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, const struct fp_perfetto_extra *own,
                      int is_real, uint32_t i, double value, int64_t time) {
    const struct fp_perfetto_extra *of = own->n[is_real] ? own : &s->extra;
    if (i >= of->n[is_real]) {
        r->counts[FP_PERFETTO_N_COUNTERS]++;
        return;
    }
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_UUID, of->tracks[is_real][i], 0);
    fp_perfetto_put_counter(r, s, time, track, value);
}

int fp_perfetto_put_extra(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, struct fp_wire m, int64_t time) {
    struct fp_perfetto_extra own;
    struct fp_wire_field f;
    uint64_t bits;
    uint32_t at[2] = {0};
    int more, status = fp_perfetto_extra_tracks(&own, m, &bits);
    while (!status && fp_perfetto_next(&m, &f) > 0) {
        struct fp_wire list = fp_wire_inside(&f);
        if (f.number == 12) {
            while ((more = fp_wire_next_number(&list, &bits)) > 0)
                put_extra(r, s, &own, 0, at[0]++, (double)(int64_t)bits, time);
            if (more) status = FP_E_MALFORMED;
        } else if (f.number == 46) {
            for (; list.end - list.p >= 8; list.p += 8) {
                double value;
                bits = fp_u64(list.p);
                memcpy(&value, &bits, sizeof value);
                put_extra(r, s, &own, 1, at[1]++, value, time);
            }
            if (list.p != list.end) status = FP_E_MALFORMED;
        }
    }
    return status;
}

int fp_perfetto_counter_row(struct fp_perfetto_read *r, const struct fp_perfetto_record *record, struct fp_batch *out) {
    const struct fp_perfetto_track *t = &r->tracks.list[r->rounds.tag];
    uint32_t thread;
    uint64_t slice;
    double value;
    size_t n;
    if (!record->id && !t->counter) return FP_DONE; /* its track is not described as a counter: only counted */
    if (out->n == out->cap) return FP_FULL;
    if (!fp_perfetto_thread_of(r, t->place - 1, 0, &thread)) return FP_NEEDS;
    const uint8_t *name = fp_string(&r->model->strings, record->id ? record->id : t->counter->name, &n);
    memcpy(&value, &record->extra, sizeof value);
    fp_counter_value_payload(&r->feed.scratch, value, name, n);
    if (!r->feed.scratch.n) return FP_DONE; /* not a number: only counted */
    const int status = fp_batch_payload(out, r->feed.scratch.p, r->feed.scratch.n, &slice);
    if (status) return out->n ? FP_FULL : fp_escape();
    r->counts[FP_PERFETTO_N_COUNTERS]--;
    out->aux[fp_perfetto_add_row(r, out, FP_OP_TYPED, r->rounds.time, thread, FP_COUNTER_TYPE)] = slice;
    return FP_DONE;
}
