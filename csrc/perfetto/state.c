#include <stdlib.h>

#include "core/digits.h"
#include "perfetto/read_private.h"

/* ---- ids of interned data ---- */

uint32_t fp_perfetto_id(const struct fp_perfetto_ids *ids, uint64_t id) {
    if (id < ids->cap && ids->dense[id]) return ids->dense[id] - 1;
    if (!ids->far) return 0;
    const uint32_t key[2] = {(uint32_t)id, (uint32_t)(id >> 32)};
    const uint32_t row = fp_table_find(ids->far, key);
    return row ? ids->far_values[row] : 0;
}

static int set_far(struct fp_perfetto_ids *ids, uint64_t id, uint32_t value) {
    const uint32_t key[2] = {(uint32_t)id, (uint32_t)(id >> 32)};
    if (!ids->far) {
        ids->far = calloc(1, sizeof *ids->far);
        if (!ids->far || fp_table_init(ids->far, 2)) return FP_E_NOMEM;
    }
    const uint32_t n = ids->far->n, row = fp_table_intern(ids->far, key);
    if (row == FP_NO_ID || fp_array_room(&ids->far_values, &ids->cap_far, (uint64_t)row + 1, sizeof *ids->far_values))
        return FP_E_NOMEM;
    if (row == n) ids->far_values[row] = value;
    return 0;
}

/* An id that is sent twice keeps its first meaning. */
int fp_perfetto_set_id(struct fp_perfetto_ids *ids, uint64_t id, uint32_t value) {
    ids->n++;
    if (id >= ids->cap) {
        if (id > 2 * (uint64_t)ids->n + 64) return set_far(ids, id, value);
        if (fp_array_zeroed(&ids->dense, &ids->cap, id + 1, sizeof *ids->dense)) return FP_E_NOMEM;
    }
    if (ids->dense[id] || (ids->far && fp_perfetto_id(ids, id))) return 0;
    ids->dense[id] = value + 1;
    if (id >= ids->top) ids->top = (uint32_t)id + 1;
    return 0;
}

static void clear_ids(struct fp_perfetto_ids *ids) {
    if (ids->top) memset(ids->dense, 0, ids->top * sizeof *ids->dense);
    ids->top = ids->n = 0;
    if (ids->far && ids->far->n > 1) fp_table_empty(ids->far);
}

/* ---- sequences ---- */

struct fp_perfetto_seq *fp_perfetto_seq_of(struct fp_perfetto_read *r, uint32_t number) {
    if (r->last_seq && r->seqs[r->last_seq - 1].number == number) return &r->seqs[r->last_seq - 1];
    const uint32_t row = fp_table_intern(&r->seq_ids, &number), had = r->cap_seqs;
    if (row == FP_NO_ID || fp_array_zeroed(&r->seqs, &r->cap_seqs, (uint64_t)row + 1, sizeof *r->seqs)) return NULL;
    for (uint32_t i = had; i < r->cap_seqs; i++) r->seqs[i].pid = r->seqs[i].tid = -1;
    r->seqs[row].number = number;
    r->last_seq = row + 1;
    return &r->seqs[row];
}

void fp_perfetto_seq_clear(struct fp_perfetto_seq *s) {
    for (int k = 0; k < FP_PK_KINDS; k++) clear_ids(&s->ids[k]);
    s->valid = 1;
    s->clears++;
    s->clock_id = 0;
    s->track = 0;
    s->extra = (struct fp_perfetto_extra){0};
    s->has_reference = 0;
    s->pid = s->tid = -1;
}

void fp_perfetto_seqs_free(struct fp_perfetto_read *r) {
    for (uint32_t i = 0; i < r->cap_seqs; i++) {
        for (int k = 0; k < FP_PK_KINDS; k++) {
            struct fp_perfetto_ids *ids = &r->seqs[i].ids[k];
            if (ids->far) fp_table_clear(ids->far);
            free(ids->far);
            free(ids->far_values);
            free(ids->dense);
        }
    }
    free(r->seqs);
    r->seqs = NULL;
    r->cap_seqs = r->last_seq = 0;
}

/* ---- interned data ---- */

uint32_t fp_perfetto_annotation(const uint8_t *p, size_t n) {
    uint8_t digits[8] = {0};
    uint64_t number;
    if (n == 4 && !memcmp(p, "data", 4)) return FP_PA_DATA;
    if (n == 4 && !memcmp(p, "type", 4)) return FP_PA_TYPE;
    if (n < 4 || n > 8 || memcmp(p, "arg", 3)) return FP_PA_OTHER;
    memcpy(digits, p + 3, n - 3);
    const uint8_t *end = fp_decimal(digits, &number);
    return end && !*end ? FP_PA_ARGUMENTS + (uint32_t)number : FP_PA_OTHER;
}

/* The kind of a field of InternedData, or -1. */
static int kind_of(uint32_t field) {
    switch (field) {
        case 1: return FP_PK_CATEGORY;
        case 2: return FP_PK_NAME;
        case 3: return FP_PK_ANNOTATION;
        case 5: return FP_PK_FUNCTION;
        case 6: return FP_PK_FRAME;
        case 7: return FP_PK_CALLSTACK;
        case 16: return FP_PK_BUILD_ID;
        case 17: return FP_PK_PATH;
        case 18: return FP_PK_SOURCE;
        case 19: return FP_PK_MAPPING;
        default: return -1;
    }
}

uint32_t fp_perfetto_keep(struct fp_perfetto_read *r, const uint8_t *p, size_t n) {
    return fp_strings_intern(&r->stacks->messages, n ? p : (const uint8_t *)"", n);
}

/* Adds an entry: a name as a string of the model, a message as bytes that are parsed at first use. */
static int intern(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, int kind, struct fp_wire entry) {
    const int is_message = kind == FP_PK_FRAME || kind == FP_PK_CALLSTACK || kind == FP_PK_MAPPING;
    const uint8_t *p = entry.p;
    size_t n = is_message ? (size_t)(entry.end - entry.p) : 0;
    struct fp_wire_field f;
    uint64_t iid = 0;
    int status;
    while ((status = fp_perfetto_next(&entry, &f)) > 0) {
        if (fp_perfetto_is(&f, 1, FP_WIRE_VARINT)) iid = f.v;
        if (!is_message && fp_perfetto_is(&f, 2, FP_WIRE_BYTES)) {
            p = f.p;
            n = f.n;
        }
    }
    if (status) return FP_E_MALFORMED;
    if (is_message && !r->stacks) return 0; /* call stacks are not requested */
    const uint32_t value = kind == FP_PK_ANNOTATION ? fp_perfetto_annotation(p, n)
                           : is_message             ? fp_perfetto_keep(r, p, n)
                                        : fp_strings_intern(&r->model->strings, n ? p : (const uint8_t *)"", n);
    if (value == FP_NO_ID) return FP_E_NOMEM;
    return fp_perfetto_set_id(&s->ids[kind], iid, value);
}

int fp_perfetto_interned(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data) {
    struct fp_wire_field f;
    int status;
    while ((status = fp_perfetto_next(&data, &f)) > 0) {
        const int kind = f.wire == FP_WIRE_BYTES ? kind_of(f.number) : -1;
        if (kind >= 0 && (status = intern(r, s, kind, fp_wire_inside(&f)))) return status;
    }
    return status ? FP_E_MALFORMED : 0;
}

/* ---- defaults ---- */

/* The sampling period. */
static int take_timebase(struct fp_perfetto_read *r, struct fp_wire defaults) {
    struct fp_wire_field f, g;
    int status, inner = 0;
    while ((status = fp_perfetto_next(&defaults, &f)) > 0) {
        if (!fp_perfetto_is(&f, 1, FP_WIRE_BYTES)) continue;
        struct fp_wire timebase = fp_wire_inside(&f);
        while ((inner = fp_perfetto_next(&timebase, &g)) > 0) {
            if (fp_perfetto_is(&g, 2, FP_WIRE_VARINT)) r->period = g.v;
            if (!fp_perfetto_is(&g, 10, FP_WIRE_BYTES)) continue;
            r->period_name = fp_strings_intern(&r->model->strings, g.p, g.n);
            if (r->period_name == FP_NO_ID) return FP_E_NOMEM;
        }
        if (inner) return FP_E_MALFORMED;
    }
    return status ? FP_E_MALFORMED : 0;
}

int fp_perfetto_defaults(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data) {
    struct fp_wire_field f, g;
    int status, inner = 0;
    s->clock_id = 0;
    s->track = 0;
    s->extra = (struct fp_perfetto_extra){0};
    while ((status = fp_perfetto_next(&data, &f)) > 0) {
        if (fp_perfetto_is(&f, 58, FP_WIRE_VARINT)) s->clock_id = f.v > UINT32_MAX ? UINT32_MAX : (uint32_t)f.v;
        if (fp_perfetto_is(&f, 12, FP_WIRE_BYTES) && (inner = take_timebase(r, fp_wire_inside(&f)))) return inner;
        if (!fp_perfetto_is(&f, 11, FP_WIRE_BYTES)) continue;
        struct fp_wire event = fp_wire_inside(&f);
        if (fp_perfetto_extra_tracks(&s->extra, event)) return FP_E_MALFORMED;
        while (fp_perfetto_next(&event, &g) > 0)
            if (fp_perfetto_is(&g, 11, FP_WIRE_VARINT)) s->track = g.v;
    }
    return status ? FP_E_MALFORMED : 0;
}
