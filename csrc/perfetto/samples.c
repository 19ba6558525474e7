#include "perfetto/read_private.h"

static int put_sample(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, uint64_t iid, int64_t pid, int64_t tid,
                      int64_t time) {
    uint32_t stack;
    if (r->surveying || r->data != FP_PERFETTO_SAMPLES) return 0;
    const int found = fp_perfetto_stack_of(r, s, iid, &stack);
    if (found < 0) return found;
    r->counts[FP_PERFETTO_N_NO_STACK] += !found;
    if (!found) return 0;
    const uint32_t place = fp_perfetto_place_of(r, pid, tid, 0, 0);
    return place == FP_NO_ID ? FP_E_NOMEM
                             : fp_perfetto_put_record(r, time < 0 ? 0 : time, place, FP_PO_SAMPLE, stack, 1);
}

/* Reads a perf sample; some only report missing samples. */
static int take_sample(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire m = k->message[FP_PF_SAMPLE];
    struct fp_wire_field f;
    uint64_t pid = 0, tid = 0, stack = 0, lost = 0;
    int status, skipped = 0, incomplete = 0;
    while ((status = fp_perfetto_next(&m, &f)) > 0) {
        if (f.wire != FP_WIRE_VARINT) {
            skipped |= f.number == 19;
            continue;
        }
        switch (f.number) {
            case 2: pid = f.v; break;
            case 3: tid = f.v; break;
            case 4: stack = f.v; break;
            case 16: incomplete = f.v != 0; break;
            case 17: lost += f.v; break;
            case 18:
                skipped = 1;
                lost += f.v != 0;
                break;
            default: break;
        }
    }
    if (status) return FP_E_MALFORMED;
    r->counts[FP_PERFETTO_N_LOST_SAMPLES] += lost;
    if (lost || skipped || !stack) return 0;
    r->counts[FP_PERFETTO_N_SAMPLES]++;
    r->counts[FP_PERFETTO_N_BAD_UNWINDS] += (uint64_t)incomplete;
    return put_sample(r, k->seq, stack, (int32_t)(uint32_t)pid, (int32_t)(uint32_t)tid, k->has_time ? k->time : 0);
}

/* Reads samples of the sequence's thread: stacks, and the times between them. */
static int take_streaming(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_perfetto_seq *s = k->seq;
    struct fp_wire m = k->message[FP_PF_STREAMING], deltas = m, stacks = {m.p, m.p}, times = {m.p, m.p};
    struct fp_wire_field f;
    uint64_t stack, delta;
    int status;
    if (s->tid < 0) {
        r->counts[FP_PERFETTO_N_NO_STACK]++;
        return 0;
    }
    for (;;) { /* advance both lists together; each may be packed */
        int more;
        while ((more = fp_wire_next_number(&stacks, &stack)) == 0 && (status = fp_perfetto_next(&m, &f)) > 0)
            if (f.number == 1 && (f.wire == FP_WIRE_VARINT || f.wire == FP_WIRE_BYTES)) stacks = fp_wire_inside(&f);
        if (more < 0) return FP_E_MALFORMED;
        if (!more) return status < 0 ? FP_E_MALFORMED : 0;
        while ((more = fp_wire_next_number(&times, &delta)) == 0 && (status = fp_perfetto_next(&deltas, &f)) > 0)
            if (f.number == 2 && (f.wire == FP_WIRE_VARINT || f.wire == FP_WIRE_BYTES)) times = fp_wire_inside(&f);
        if (more < 0) return FP_E_MALFORMED;
        int64_t ns = 0;
        if (more && !__builtin_mul_overflow((int64_t)delta, 1000, &ns) &&
            __builtin_add_overflow(s->reference, ns, &s->reference))
            s->reference = 0;
        r->counts[FP_PERFETTO_N_SAMPLES]++;
        const int64_t time = fp_perfetto_system_time(r, FP_PC_MONOTONIC, s->reference);
        if ((status = put_sample(r, s, stack, s->pid, s->tid, time))) return status;
    }
}

int fp_perfetto_samples(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    int status = 0;
    if (fp_perfetto_has(k, FP_PF_SYMBOLS) && r->surveying && r->stacks)
        status = fp_perfetto_symbols(r, k->message[FP_PF_SYMBOLS]);
    if (!status && fp_perfetto_has(k, FP_PF_SAMPLE)) status = take_sample(r, k);
    if (!status && fp_perfetto_has(k, FP_PF_STREAMING)) status = take_streaming(r, k);
    if (!status && fp_perfetto_has(k, FP_PF_HEAP)) status = fp_perfetto_heap(r, k);
    if (!status && fp_perfetto_has(k, FP_PF_HEAP_GRAPH)) status = fp_perfetto_graph(r, k);
    return status;
}
