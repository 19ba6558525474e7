#include "bridges/rows/unrepresentable.h"

static void count_functions(const struct fp_model *m, struct fp_unrepresentable *to) {
    for (uint32_t i = 1; i < m->functions.n; i++) {
        const uint32_t *f = fp_table_row(&m->functions, i);
        const uint32_t symbol = f[FP_FUNCTION_SYSTEM_NAME];
        to->objects += f[FP_FUNCTION_OBJECT] != 0;
        to->first_lines += f[FP_FUNCTION_LINE] != 0;
        const int has_place = f[FP_FUNCTION_FILE] || f[FP_FUNCTION_LINE];
        to->places += f[FP_FUNCTION_OBJECT] || has_place;
        to->call_places += (f[FP_FUNCTION_OBJECT] && !fp_model_category(m, i)) || has_place;
        to->system_names += symbol && symbol != f[FP_FUNCTION_NAME];
    }
}

void fp_unrepresentable_count(const struct fp_model *m, struct fp_unrepresentable *to) {
    *to = (struct fp_unrepresentable){0};
    count_functions(m, to);
    for (uint32_t i = 1; i < m->lines.n; i++) {
        const uint32_t *line = fp_table_row(&m->lines, i);
        to->inlined += line[FP_LINE_OUTER] != 0;
        to->columns += line[FP_LINE_COLUMN] != 0;
    }
    for (uint32_t i = 1; i < m->objects.n; i++) to->build_ids += fp_table_row(&m->objects, i)[FP_OBJECT_BUILD_ID] != 0;
    for (uint32_t i = 1; i < m->mappings.n; i++)
        to->mappings += fp_words_u64(fp_table_row(&m->mappings, i) + FP_MAPPING_LIMIT) != 0;
    for (uint32_t i = 1; i < m->frames.n; i++)
        to->addresses += fp_words_u64(fp_table_row(&m->frames, i) + FP_FRAME_ADDRESS) != 0;
}

int fp_unrepresentable_has_thread(const struct fp_batch *b) {
    uint32_t any = 0;
    for (uint32_t i = 0; b->thread && i < b->n; i++) any |= b->thread[i];
    return any != 0;
}

void fp_unrepresentable_threads(const struct fp_batch *b, uint8_t *seen, uint32_t n) {
    for (uint32_t i = 0; b->thread && i < b->n; i++)
        if (b->thread[i] < n) seen[b->thread[i]] = 1;
}

uint32_t fp_unrepresentable_cpus(const struct fp_batch *b) {
    uint32_t found = 0;
    for (uint32_t i = 0; b->cpu && i < b->n; i++) found += b->cpu[i] != 0;
    return found;
}
