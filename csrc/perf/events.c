/* Events: the offsets of the fields in their records, and the event of a record. */
#include "perf/private.h"

enum { IDS_AGREE = FP_PERF_IDENTIFIER | FP_PERF_IP | FP_PERF_TID | FP_PERF_TIME | FP_PERF_ADDR | FP_PERF_ID };

/* Returns the offset of a one-word field and advances past it; 0 if samples do not have it. */
static uint32_t next(struct fp_perf_event *e, uint32_t bit) {
    if (!(e->attr.sample_type & bit)) return 0;
    return FP_PERF_HEAD + 8 * e->n_fixed++;
}

/* The same for other records, counted from their end. */
static uint32_t back(struct fp_perf_event *e, uint32_t bit) {
    if (!e->id_all || !(e->attr.sample_type & bit)) return 0;
    return e->trailer += 8;
}

static void lay_out(struct fp_perf_event *e) {
    e->id_all = (int32_t)(e->attr.flags >> 18 & 1);
    const uint32_t identifier = next(e, FP_PERF_IDENTIFIER);
    e->ip = next(e, FP_PERF_IP);
    e->tid = next(e, FP_PERF_TID);
    e->time = next(e, FP_PERF_TIME);
    next(e, FP_PERF_ADDR);
    e->id = next(e, FP_PERF_ID);
    if (identifier) e->id = identifier;
    next(e, FP_PERF_STREAM_ID);
    e->cpu = next(e, FP_PERF_CPU);
    e->period = next(e, FP_PERF_PERIOD);

    const uint32_t identifier_back = back(e, FP_PERF_IDENTIFIER);
    back(e, FP_PERF_CPU);
    back(e, FP_PERF_STREAM_ID);
    e->id_back = back(e, FP_PERF_ID);
    if (identifier_back) e->id_back = identifier_back;
    e->time_back = back(e, FP_PERF_TIME);
    e->tid_back = back(e, FP_PERF_TID);
}

/* Whether two events store their ids at the same offsets. */
static int agree(const struct fp_perf_event *a, const struct fp_perf_event *b) {
    return a->id && a->id == b->id && a->id_all == b->id_all && a->id_back == b->id_back;
}

int fp_perf_add_event(struct fp_perf_reader *r, const struct fp_perf_attr *attr) {
    struct fp_perf_event *e = FP_AT(r->events.list, r->events.cap, r->events.n);
    *e = (struct fp_perf_event){.attr = *attr, .column = FP_PERF_NO_COLUMN};
    lay_out(e);
    r->events.n++;
    r->has_branches |= attr->sample_type & FP_PERF_BRANCH && !(attr->branch_type & FP_PERF_CALL_STACK);
    return r->events.n > 1 && !agree(&r->events.list[0], e) ? FP_E_MALFORMED : 0;
}

int fp_perf_add_ids(struct fp_perf_reader *r, uint32_t event, const uint64_t *ids, uint32_t n) {
    r->events.last_id = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = fp_table_intern(&r->events.ids, (uint32_t[]){FP_WORDS(ids[i])});
        fp_array_zeroed(&r->events.of_id, &r->events.cap_of_id, r->events.ids.n, sizeof *r->events.of_id);
        fp_array_zeroed(&r->events.last_value, &r->events.cap_last_value, r->events.ids.n,
                        sizeof *r->events.last_value);
        r->events.of_id[row] = event;
    }
    return 0;
}

uint32_t fp_perf_event_of(const struct fp_perf_reader *r, uint64_t id) {
    const uint32_t row = fp_table_find(&r->events.ids, (uint32_t[]){FP_WORDS(id)});
    return row ? r->events.of_id[row] : FP_NO_ID;
}

void fp_perf_set_column(struct fp_perf_reader *r, uint32_t event, uint32_t column) {
    if (event < r->events.n) r->events.list[event].column = column;
}

uint64_t fp_perf_samples(const struct fp_perf_reader *r, uint32_t event) {
    return event < r->events.n ? r->events.list[event].samples : 0;
}

uint32_t fp_perf_find_event(struct fp_perf_reader *r, const uint8_t *p, uint32_t n) {
    const struct fp_perf_event *first = &r->events.list[0];
    if (r->events.n == 1) return 0;
    uint64_t id = 0;
    if (fp_u32s(p, r->swap) == FP_PERF_SAMPLE) {
        if (first->id && first->id + 8 <= n) id = fp_u64s(p + first->id, r->swap);
    } else if (first->id_back && FP_PERF_HEAD + first->id_back <= n) {
        id = fp_u64s(p + n - first->id_back, r->swap);
    }
    if (!id) return 0;
    if (id != r->events.last_id) {
        r->events.last = fp_perf_event_of(r, id);
        r->events.last_id = id;
    }
    return r->events.last;
}

uint64_t fp_perf_time(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n) {
    if (fp_u32s(p, r->swap) == FP_PERF_SAMPLE) return e->time && e->time + 8 <= n ? fp_u64s(p + e->time, r->swap) : 0;
    return e->time_back && FP_PERF_HEAD + e->time_back <= n ? fp_u64s(p + n - e->time_back, r->swap) : 0;
}
