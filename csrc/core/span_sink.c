#include "core/span_sink.h"

#include "core/guard.h"

struct span_sink_state {
    struct fp_span_sink s;
    struct fp_overlap_lanes lanes;
};

struct fp_span_sink *fp_span_sink_new(struct fp_model *model) {
    struct span_sink_state *state = fp_made(sizeof *state);
    struct fp_span_sink *s = &state->s;
    state->lanes = (struct fp_overlap_lanes){
        .model = model, .rounds = &s->rounds, .rows = &s->rows, .added = &s->lanes, .cut = &s->cut};
    return s;
}

void fp_span_sink_free(struct fp_span_sink *s) {
    struct span_sink_state *state = (struct span_sink_state *)s;
    fp_overlap_lanes_clear(&state->lanes);
    fp_rounds_clear(&s->rounds);
    free(state);
}

int fp_span_sink_put(struct fp_span_sink *s, const struct fp_span *spans, uint32_t n) {
    for (; s->n_put < n; s->n_put++)
        FP_TRY(fp_overlap_lanes_put(&((struct span_sink_state *)s)->lanes, spans[s->n_put]));
    s->n_put = 0;
    return FP_DONE;
}

int fp_span_sink_pull(struct fp_span_sink *s, struct fp_batch *out) {
    return fp_overlap_lanes_pull(&((struct span_sink_state *)s)->lanes, out);
}
