#include "bridges/rows/unnamed.h"

struct fp_unnamed *fp_unnamed_new(void) {
    return calloc(1, sizeof(struct fp_unnamed));
}

void fp_unnamed_free(struct fp_unnamed *u) {
    FP_FREE(u->mappings, u->ends, u->frames, u->addresses, u->callers, u->group_of, u);
}

/* Counts the frames of each mapping, in `ends`. */
static int count(struct fp_unnamed *u, const struct fp_model *m, uint32_t first, struct fp_err *err) {
    fp_array_zeroed(&u->group_of, &u->cap_groups, m->mappings.n, sizeof *u->group_of);
    for (uint32_t id = first; id < m->frames.n; id++) {
        const uint32_t *row = fp_table_row(&m->frames, id), mapping = row[FP_FRAME_MAPPING];
        if (row[FP_FRAME_LINES]) continue;
        if (mapping >= m->mappings.n) return fp_unknown_id(err, "the mapping of a frame", mapping, m->mappings.n);
        if (!u->group_of[mapping]) {
            const uint64_t n = (uint64_t)u->n_mappings + 1;
            fp_array_room(&u->mappings, &u->cap_mappings, n, sizeof *u->mappings);
            fp_array_room(&u->ends, &u->cap_ends, n, sizeof *u->ends);
            u->mappings[u->n_mappings] = mapping;
            u->ends[u->n_mappings] = 0;
            u->group_of[mapping] = ++u->n_mappings;
        }
        u->ends[u->group_of[mapping] - 1]++;
        u->n++;
    }
    return 0;
}

int fp_unnamed_find(struct fp_unnamed *u, const struct fp_model *m, uint32_t first, struct fp_err *err) {
    for (uint32_t i = 0; i < u->n_mappings; i++) u->group_of[u->mappings[i]] = 0;
    u->n = u->n_mappings = 0;
    FP_TRY(count(u, m, first, err));
    fp_array_room(&u->frames, &u->cap_frames, u->n, sizeof *u->frames);
    fp_array_room(&u->addresses, &u->cap_addresses, u->n, sizeof *u->addresses);
    fp_array_room(&u->callers, &u->cap_callers, u->n, sizeof *u->callers);
    for (uint32_t i = 0, at = 0; i < u->n_mappings; i++) { /* each end starts at the beginning, and moves */
        const uint32_t n = u->ends[i];
        u->ends[i] = at;
        at += n;
    }
    for (uint32_t id = first; id < m->frames.n; id++) {
        const uint32_t *row = fp_table_row(&m->frames, id);
        if (row[FP_FRAME_LINES]) continue;
        const uint32_t at = u->ends[u->group_of[row[FP_FRAME_MAPPING]] - 1]++;
        const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
        u->callers[at] = address && row[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS;
        u->addresses[at] = address - u->callers[at];
        u->frames[at] = id;
    }
    return FP_DONE;
}
