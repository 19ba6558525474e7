#include "perfetto/read_private.h"

/* Dumps of heapprofd: the allocations and frees of each call stack since the start.  So a later dump of a heap
 * replaces the earlier ones:
 *
 *   dump 1    main;f  allocated 300 bytes
 *   dump 2    main;f  allocated 400 bytes     row: main;f 400
 */

/* A dump of a process; the values of a call stack in it: allocated and freed, count and bytes, or those of the peak. */
struct dump_fields {
    uint64_t pid;
    struct fp_wire name;
};
struct value_fields {
    uint64_t stack, values[4];
};
#define TO(member) FP_WIRE_TO(struct value_fields, member)
static const struct fp_wire_schema of_packet = {.kinds = " BBBBB"};
static const struct fp_wire_schema of_dump = {
    " VB V VVV VB", {[1] = FP_WIRE_TO(struct dump_fields, pid), [11] = FP_WIRE_TO(struct dump_fields, name)}};
static const struct fp_wire_schema of_values = {
    " VVV VV VV",
    {0, TO(stack), TO(values[1]), TO(values[3]), 0, TO(values[0]), TO(values[2]), 0, TO(values[1]), TO(values[0])}};

/* Interned data that old recorders write into the dump: strings serve as names, build ids and paths. */
static int take_tables(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire m) {
    static const int kinds[5] = {0, FP_PK_FUNCTION, FP_PK_FRAME, FP_PK_CALLSTACK, FP_PK_MAPPING};
    struct fp_wire_field f;
    int status;
    while ((status = fp_wire_next(&m, &of_packet, &f)) > 0) {
        struct fp_perfetto_named_id e = {0};
        if (status != FP_WIRE_KNOWN || f.number > 4) continue;
        const struct fp_wire entry = fp_wire_inside(&f);
        if (f.number == 1 ? fp_perfetto_fields(entry, &fp_perfetto_of_name, &e) : fp_perfetto_id_of(entry, &e.iid))
            return FP_E_MALFORMED;
        const uint32_t value = f.number == 1 ? fp_perfetto_text(r, e.text) : fp_perfetto_keep(r, f.p, f.n);
        fp_perfetto_set_id(&s->ids[kinds[f.number]], e.iid, value);
        if (f.number != 1) continue;
        fp_perfetto_set_id(&s->ids[FP_PK_BUILD_ID], e.iid, value);
        fp_perfetto_set_id(&s->ids[FP_PK_PATH], e.iid, value);
    }
    return status ? FP_E_MALFORMED : 0;
}

int64_t *fp_perfetto_heap_row(struct fp_perfetto_read *r, const uint32_t *key) {
    struct fp_perfetto_stacks *t = r->calls.stacks;
    const uint32_t row = fp_table_intern(&t->heap_keys, key);
    fp_array_zeroed(&t->heap_values, &t->cap_heap_values, ((uint64_t)row + 1) * FP_PERFETTO_HEAP_VALUES,
                    sizeof *t->heap_values);
    return &t->heap_values[(size_t)row * FP_PERFETTO_HEAP_VALUES];
}

static int put_heap_sample(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire m, uint32_t place,
                           uint32_t heap) {
    struct value_fields f = {0};
    uint32_t chain;
    if (fp_perfetto_fields(m, &of_values, &f)) return FP_E_MALFORMED;
    for (int i = 0; i < 4; i++)
        if (f.values[i] > INT64_MAX) return FP_E_MALFORMED;
    const int status = fp_perfetto_chain_of(r, s, f.stack, &chain);
    if (status < 0) return status;
    r->counts[FP_PERFETTO_N_NO_STACK] += !status;
    if (!status) return 0;
    int64_t *to = fp_perfetto_heap_row(r, (uint32_t[]){place, heap, s->number, FP_WORDS(f.stack), chain});
    for (int i = 0; i < 4; i++) to[i] = (int64_t)f.values[i];
    to[4] = to[0] - to[2]; /* in use */
    to[5] = to[1] - to[3];
    return 0;
}

static int take_dump(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, struct fp_wire dump) {
    struct dump_fields d = {0};
    struct fp_wire m = dump, sample;
    struct fp_wire_field f;
    int status, n_problems = 0;
    while ((status = fp_wire_read(&m, &of_dump, &d, &f, NULL)) > 0) n_problems += f.number != 2 && f.v;
    if (status) return FP_E_MALFORMED;
    r->counts[FP_PERFETTO_N_HEAP_PROBLEMS] += n_problems > 0;
    const int is_read = !r->feed.surveying && r->data == FP_PERFETTO_HEAP;
    const uint32_t place = is_read ? fp_perfetto_place_of(r, (int32_t)(uint32_t)d.pid, -1, 0, 0) : 0;
    const uint32_t heap = fp_perfetto_text(r, d.name);
    while (fp_perfetto_part(&dump, 2, &sample)) {
        r->counts[FP_PERFETTO_N_HEAP_SAMPLES]++;
        if (is_read && (status = put_heap_sample(r, k->seq, sample, place, heap))) return status;
    }
    return 0;
}

int fp_perfetto_heap(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire m = k->message[FP_PF_HEAP];
    struct fp_wire_field f;
    int status = r->calls.stacks && !r->feed.surveying ? take_tables(r, k->seq, m) : 0;
    if (status) return status;
    while ((status = fp_wire_next(&m, &of_packet, &f)) > 0) {
        int inner;
        if (f.number == 5 && (inner = take_dump(r, k, fp_wire_inside(&f)))) return inner;
    }
    return status ? FP_E_MALFORMED : 0;
}

/* The label with the name of the heap, if it has one. */
static void label_of(struct fp_perfetto_read *r, uint32_t heap, uint32_t *label) {
    const uint32_t key = fp_strings_intern(&r->model->strings, "heap", 4);
    *label = 0;
    if (heap) *label = fp_model_label(r->model, 0, key, heap, 0, 0);
}

int fp_perfetto_heap_rows(struct fp_perfetto_read *r, struct fp_batch *out) {
    struct fp_perfetto_stacks *t = r->calls.stacks;
    const int are_objects = r->data == FP_PERFETTO_OBJECTS;
    const uint32_t n_values = are_objects ? 2 : FP_PERFETTO_HEAP_VALUES;
    for (t->next = t->next ? t->next : 1; t->next < t->heap_keys.n; t->next++) {
        const uint32_t *key = fp_table_row(&t->heap_keys, t->next);
        uint32_t thread, i = out->n;
        if (are_objects && key[2] != r->places[key[0]].dump) continue;
        if (i == out->cap) return FP_FULL;
        if (!fp_perfetto_thread_of(r, key[0], 0, &thread)) return FP_NEEDS;
        label_of(r, key[1], &out->label[i]);
        const int64_t *values = &t->heap_values[(size_t)t->next * FP_PERFETTO_HEAP_VALUES];
        for (uint32_t v = 0; v < n_values; v++) out->values[(size_t)v * out->cap + i] = values[v];
        out->time[i] = 0;
        out->thread[i] = thread;
        out->stack[i] = are_objects ? key[5] : fp_perfetto_stack(r, key[5]);
        out->n++;
        r->n_rows++;
    }
    return FP_DONE;
}
