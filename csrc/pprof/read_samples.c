/* The samples of a profile: the second pass. */
#include "pprof/read_private.h"

/* A sample whose fields were located.  Its values are in the batch already. */
struct sample {
    const uint8_t *chain, *set; /* its list of locations; its label fields, adjacent */
    size_t chain_n, set_n;
    uint64_t at;
    uint32_t hash;  /* of the chain */
    uint32_t guess; /* the chain's id, most likely; see core/model.h */
};

/* This many samples are looked up together, so that their lookups wait for memory at the same time. */
enum { GROUP = 32 };

/* A field that was never defined.  It was proposed in google/pprof's pull requests 725 and 728. */
enum { BREAKDOWN = 4 };

/* The stack of a sample's list of locations. */
static int stack_of(struct fp_pprof_reader *r, const struct sample *s, uint32_t *stack, struct fp_err *err) {
    if (FP_UNLIKELY(r->caches.n_renewed != r->model->n_renewed)) {
        r->caches.n_renewed = r->model->n_renewed;
        fp_strings_empty(&r->caches.chains);
    }
    uint32_t before = r->caches.chains.n;
    uint32_t chain = fp_strings_intern_hashed(&r->caches.chains, s->chain, s->chain_n, s->hash);
    *stack = 0;
    if (!chain) return 0;
    if (chain < before && r->caches.chain_stacks[chain] != FP_NO_ID) {
        *stack = r->caches.chain_stacks[chain];
        return 0;
    }
    *FP_AT(r->caches.chain_stacks, r->caches.cap_chain_stacks, chain) =
        FP_NO_ID; /* remains if the list is malformed, so the error repeats */
    struct fp_wire list = {s->chain, s->chain + s->chain_n};
    uint32_t depth = 0;
    uint64_t id;
    int status;
    while ((status = fp_wire_next_number(&list, &id)) > 0) {
        uint32_t place = fp_pprof_position(&r->tables.location_ids, id);
        if (!place)
            return fp_fail_got(err, FP_E_MALFORMED, s->at, "the location of a sample", FP_GOT_UNSIGNED, id,
                               "the id of a location", 0);
        FP_PUSH(r->sample.chain_frames, depth, r->sample.cap_chain_frames) = r->tables.frames[place - 1];
    }
    if (status) return fp_fail(err, FP_E_MALFORMED, s->at, "a location id of a sample is malformed");
    uint32_t node = 0;
    while (depth-- > 0) node = fp_model_stack(r->model, node, r->sample.chain_frames[depth]);
    *stack = r->caches.chain_stacks[chain] = node;
    return 0;
}

/* The label chain of a sample's label fields. */
static int labels_of(struct fp_pprof_reader *r, const struct sample *s, uint32_t *chain, struct fp_err *err) {
    *chain = 0;
    if (!s->set_n) return 0;
    uint32_t before = r->caches.label_sets.n;
    uint32_t set = fp_strings_intern(&r->caches.label_sets, s->set, s->set_n);
    if (set < before && r->caches.label_chains[set] != FP_NO_ID) {
        *chain = r->caches.label_chains[set];
        return 0;
    }
    *FP_AT(r->caches.label_chains, r->caches.cap_label_chains, set) = FP_NO_ID; /* as with chain_stacks */
    struct fp_wire message = {s->set, s->set + s->set_n};
    struct fp_wire_field f;
    uint32_t count = 0;
    while (fp_wire_next(&message, &fp_pprof_schema[FP_PPROF_SAMPLE], &f) > 0) {
        struct fp_pprof_label *l = FP_AT(r->sample.labels, r->sample.cap_labels, count++);
        *l = (struct fp_pprof_label){0};
        if (fp_wire_all(fp_wire_inside(&f), &fp_pprof_schema[FP_PPROF_LABEL], l, &r->stats.unknown_sample_fields))
            return fp_fail(err, FP_E_MALFORMED, s->at, "a label of a sample is malformed");
    }
    uint32_t first = 0; /* the chain is built from its end */
    while (count-- > 0) {
        const struct fp_pprof_label *l = &r->sample.labels[count];
        uint32_t key, text, unit;
        FP_TRY(fp_pprof_resolve_string(r, l->key, s->at, &key, err));
        FP_TRY(fp_pprof_resolve_string(r, l->string, s->at, &text, err));
        FP_TRY(fp_pprof_resolve_string(r, l->unit, s->at, &unit, err));
        first = fp_model_label(r->model, first, key, text, l->number, unit);
    }
    *chain = r->caches.label_chains[set] = first;
    return 0;
}

/* fp_wire_next for the fields of a sample, of which nearly all are like these, with a length below 128:
 *   0a 02 01 03   location_id    12 01 05   value    1a 04 08 01 10 02   label */
static inline int next_in_sample(struct fp_wire *m, struct fp_wire_field *f) {
    const uint8_t *p = m->p;
    if (FP_UNLIKELY(m->end - p < 2 || (p[0] != 0x0a && p[0] != 0x12 && p[0] != 0x1a) || p[1] >= 0x80))
        return fp_wire_next(m, &fp_pprof_schema[FP_PPROF_SAMPLE], f);
    *f = (struct fp_wire_field){.at = p, .number = p[0] >> 3, .wire = FP_WIRE_BYTES, .p = p + 2, .n = p[1]};
    if (f->n > (size_t)(m->end - f->p)) return FP_WIRE_BAD;
    m->p = f->p + f->n;
    return FP_WIRE_KNOWN;
}

/* A field with values of a sample, which has *n so far.  NULL, or the place of an error. */
FP_INLINE const uint8_t *take_values(struct fp_pprof_reader *r, const struct fp_wire_field *f, uint32_t *n) {
    struct fp_wire list = fp_wire_inside(f);
    uint64_t v;
    int status;
    while ((status = fp_wire_next_number(&list, &v)) > 0) {
        if (*n < r->n_types) r->sample.values[*n] = (int64_t)v;
        ++*n; /* less than 2^32: messages are shorter */
    }
    return status ? list.p : NULL;
}

/* A label field, up to `end`. */
FP_INLINE void take_label(struct fp_pprof_reader *r, struct sample *s, const uint8_t *at, const uint8_t *end) {
    if (s->set && s->set + s->set_n == at) { /* adjacent to the previous label */
        s->set_n = (size_t)(end - s->set);
        return;
    }
    if (!s->set && !r->sample.label_set.n) {
        s->set = at;
        s->set_n = (size_t)(end - at);
        return;
    }
    if (s->set) fp_buf_put(&r->sample.label_set, s->set, s->set_n);
    s->set = NULL;
    fp_buf_put(&r->sample.label_set, at, (size_t)(end - at));
}

/* Finds the fields of a sample; its values become those of row `row`.  0, an error, or 1 when its list of locations or
 * its labels are in r->sample.chain or r->sample.label_set, which the next sample overwrites. */
static int sample_fields(struct fp_pprof_reader *r, const struct fp_window *in, const struct fp_wire_field *entry,
                         struct fp_batch *out, uint32_t row, struct sample *s, struct fp_err *err) {
    struct fp_wire message = fp_wire_inside(entry);
    struct fp_wire_field f;
    uint32_t n_values = 0, pieces = 0; /* of the list of locations */
    int kind;
    *s = (struct sample){.at = fp_pprof_offset(in, entry->at)};
    r->sample.chain.n = r->sample.label_set.n = 0;
    while (message.p != message.end && (kind = next_in_sample(&message, &f)) != FP_WIRE_END) {
        if (kind == FP_WIRE_BAD)
            return fp_fail(err, FP_E_MALFORMED, fp_pprof_offset(in, message.p), "a sample is malformed");
        switch (f.number) {
            case 1:
                if (++pieces == 1) { /* one packed list: nearly always */
                    s->chain = f.p;
                    s->chain_n = f.n;
                    break;
                }
                if (pieces == 2) fp_buf_put(&r->sample.chain, s->chain, s->chain_n);
                fp_buf_put(&r->sample.chain, f.p, f.n);
                break;
            case 2: {
                const uint8_t *broken = take_values(r, &f, &n_values);
                if (broken)
                    return fp_fail(err, FP_E_MALFORMED, fp_pprof_offset(in, broken),
                                   "a value of a sample is malformed");
                break;
            }
            case 3: take_label(r, s, f.at, message.p); break;
            case BREAKDOWN: r->stats.breakdowns++; break;
            default: r->stats.unknown_sample_fields++;
        }
    }
    if (n_values != r->n_types)
        return fp_fail_got(err, FP_E_MALFORMED, s->at, "the number of values of a sample", FP_GOT_UNSIGNED, n_values,
                           "%, one per sample type", r->n_types);
    if (pieces > 1) {
        s->chain = r->sample.chain.p;
        s->chain_n = r->sample.chain.n;
    }
    if (r->sample.label_set.n) {
        s->set = r->sample.label_set.p;
        s->set_n = r->sample.label_set.n;
    }
    for (uint32_t k = 0; k < n_values; k++) out->values[(size_t)k * out->cap + row] = r->sample.values[k];
    return pieces > 1 || r->sample.label_set.n;
}

/* Converts `n` samples, whose values follow the batch's rows, to rows: looks up their stacks and labels.  0 or an
 * error. */
static int sample_rows(struct fp_pprof_reader *r, struct sample *samples, uint32_t n, struct fp_batch *out,
                       struct fp_err *err) {
    for (struct sample *s = samples; s < samples + n; s++) {
        s->guess = fp_strings_guess(&r->caches.chains, s->hash);
        if (s->guess < r->caches.cap_chain_stacks) __builtin_prefetch(&r->caches.chain_stacks[s->guess]);
    }
    for (struct sample *s = samples; s < samples + n; s++) fp_strings_prefetch_bytes(&r->caches.chains, s->guess);
    for (uint32_t k = 0, from = out->n; k < n; k++, from++) {
        uint32_t stack, labels;
        int status = stack_of(r, &samples[k], &stack, err);
        if (!status) status = labels_of(r, &samples[k], &labels, err);
        if (FP_UNLIKELY(status)) {
            if (!r->lenient) return status;
            r->stats.bad_samples++;
            continue;
        }
        uint32_t row = out->n++;
        out->stack[row] = stack;
        out->label[row] = labels;
        out->thread[row] = 0;
        out->time[row] = 0;
        for (uint32_t v = 0; row < from && v < r->n_types; v++) /* a previous bad sample left a gap: close it */
            out->values[(size_t)v * out->cap + row] = out->values[(size_t)v * out->cap + from];
        r->stats.samples++;
    }
    return 0;
}

int fp_pprof_feed(struct fp_pprof_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct sample samples[GROUP];
    if (out->n_values != r->n_types) fp_batch_set_values(out, r->n_types);
    for (;;) {
        if (out->n == out->cap) return FP_FULL;
        uint32_t room = out->cap - out->n < GROUP ? out->cap - out->n : GROUP, n = 0;
        int status = FP_PPROF_FIELD, last = 0; /* last: no further sample may join this group */
        while (n < room && !last) {
            struct fp_wire_field f;
            status = fp_pprof_next_field(r, in, 1u << 2, &f, err);
            if (status != FP_PPROF_FIELD) break;
            if (f.number != 2) continue;
            last = sample_fields(r, in, &f, out, out->n + n, &samples[n], err);
            if (FP_UNLIKELY(last < 0)) {
                status = last;
                if (!r->lenient) break;
                r->stats.bad_samples++;
                last = 0;
                continue;
            }
            samples[n].hash = fp_strings_hash(samples[n].chain, samples[n].chain_n);
            fp_strings_prefetch(&r->caches.chains, samples[n++].hash);
        }
        /* Samples before the malformed one may be malformed, too.  Report the first error in the file. */
        FP_TRY(sample_rows(r, samples, n, out, err));
        if (status != FP_PPROF_FIELD) return status;
    }
}
