#include "perfetto/read_private.h"

static int put_sample(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, uint64_t iid, int64_t pid, int64_t tid,
                      int64_t time) {
    uint32_t chain;
    if (r->feed.surveying || r->data != FP_PERFETTO_SAMPLES) return 0;
    const int found = fp_perfetto_chain_of(r, s, iid, &chain);
    if (found < 0) return found;
    r->counts[FP_PERFETTO_N_NO_STACK] += !found;
    if (!found) return 0;
    const uint32_t place = fp_perfetto_place_of(r, pid, tid, 0, 0);
    fp_perfetto_put_record(r, time < 0 ? 0 : time, place, FP_PO_SAMPLE, chain, 1);
    return 0;
}

/* A perf sample.  Some only report missing samples: the reason, or an event of the producer. */
struct sample_fields {
    uint64_t pid, tid, stack, incomplete, lost, reason;
    struct fp_wire event;
    uint64_t has;
};
#define TO(member) FP_WIRE_TO(struct sample_fields, member)
static const struct fp_wire_schema of_sample = {
    .kinds = {[2] = 'V', 'V', 'V', [16] = 'V', 'V', 'V', 'B'},
    .to = {TO(has), [2] = TO(pid), TO(tid), TO(stack), [16] = TO(incomplete), TO(lost), TO(reason), TO(event)}};

static int take_sample(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct sample_fields f = {0};
    if (fp_perfetto_fields(k->message[FP_PF_SAMPLE], &of_sample, &f)) return FP_E_MALFORMED;
    const uint64_t lost = f.lost + (f.reason != 0);
    r->counts[FP_PERFETTO_N_LOST_SAMPLES] += lost;
    if (lost || f.has >> 18 || !f.stack) return 0;
    r->counts[FP_PERFETTO_N_SAMPLES]++;
    r->counts[FP_PERFETTO_N_BAD_UNWINDS] += f.incomplete != 0;
    return put_sample(r, k->seq, f.stack, (int32_t)(uint32_t)f.pid, (int32_t)(uint32_t)f.tid,
                      k->has_time ? k->time : 0);
}

/* Reads samples of the sequence's thread: stacks, and the times between them. */
static int take_streaming(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    static const struct fp_wire_schema of_streaming = {.kinds = " LL"};
    struct fp_perfetto_seq *s = k->seq;
    struct fp_wire_list stacks = fp_wire_list_of(k->message[FP_PF_STREAMING], &of_streaming, 1);
    struct fp_wire_list times = fp_wire_list_of(k->message[FP_PF_STREAMING], &of_streaming, 2);
    uint64_t stack, delta;
    int more;
    if (s->tid < 0) {
        r->counts[FP_PERFETTO_N_NO_STACK]++;
        return 0;
    }
    while ((more = fp_wire_list_next(&stacks, &stack)) > 0) {
        const int has_time = fp_wire_list_next(&times, &delta);
        if (has_time < 0) return FP_E_MALFORMED;
        int64_t ns = 0;
        if (has_time && !__builtin_mul_overflow((int64_t)delta, 1000, &ns) &&
            __builtin_add_overflow(s->reference, ns, &s->reference))
            s->reference = 0;
        r->counts[FP_PERFETTO_N_SAMPLES]++;
        const int64_t time = fp_perfetto_system_time(r, FP_PC_MONOTONIC, s->reference);
        FP_TRY(put_sample(r, s, stack, s->pid, s->tid, time));
    }
    return more ? FP_E_MALFORMED : 0;
}

int fp_perfetto_samples(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    if (fp_perfetto_has(k, FP_PF_SYMBOLS) && r->feed.surveying && r->calls.stacks)
        FP_TRY(fp_perfetto_symbols(r, k->message[FP_PF_SYMBOLS]));
    if (fp_perfetto_has(k, FP_PF_SAMPLE)) FP_TRY(take_sample(r, k));
    if (fp_perfetto_has(k, FP_PF_STREAMING)) FP_TRY(take_streaming(r, k));
    if (fp_perfetto_has(k, FP_PF_HEAP)) FP_TRY(fp_perfetto_heap(r, k));
    return fp_perfetto_has(k, FP_PF_HEAP_GRAPH) ? fp_perfetto_graph(r, k) : 0;
}
