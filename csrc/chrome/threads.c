#include "chrome/threads.h"

int fp_chrome_ids_init(struct fp_chrome_ids *ids) {
    return fp_table_init(&ids->pairs, 6);
}

void fp_chrome_ids_clear(struct fp_chrome_ids *ids) {
    fp_table_clear(&ids->pairs);
    free(ids->thread_of);
}

int fp_chrome_take_id(struct fp_chrome_id *id, const struct fp_json *j, struct fp_buf *scratch,
                      struct fp_model *model) {
    id->string = 0;
    if (j->token == FP_JSON_WORD) return 0;
    size_t n = j->text_n;
    const uint8_t *p = fp_json_trim(j->text, &n);
    id->kind = FP_CHROME_NUMBER;
    const int status = fp_json_number(p, n, 0, &id->number, NULL);
    if (!status || (status != FP_E_OVERFLOW && j->token == FP_JSON_NUMBER)) return status;
    p = fp_json_plain(j, scratch, &n); /* a text, or a number beyond 63 bits such as 2^64 - 1, kept as text */
    id->kind = FP_CHROME_TEXT;
    id->number = 0;
    id->string = fp_strings_intern(&model->strings, p, n);
    return 0;
}

int fp_chrome_thread_of(struct fp_chrome_ids *ids, uint32_t *thread) {
    const uint64_t pid = (uint64_t)ids->pid.number, tid = (uint64_t)ids->tid.number;
    const uint32_t key[6] = {ids->pid.kind | ids->tid.kind << 2,
                             ids->pid.string ? ids->pid.string : (uint32_t)pid,
                             (uint32_t)(pid >> 32),
                             ids->tid.string ? ids->tid.string : (uint32_t)tid,
                             (uint32_t)(tid >> 32),
                             ids->document + 1};
    if (!ids->last || memcmp(key, ids->last_key, sizeof key)) {
        const uint32_t pair = fp_table_intern(&ids->pairs, key);
        fp_array_zeroed(&ids->thread_of, &ids->cap_thread_of, (uint64_t)pair + 1, sizeof(uint32_t));
        ids->last = pair;
        memcpy(ids->last_key, key, sizeof key);
    }
    if (!ids->thread_of[ids->last]) return FP_NEEDS;
    *thread = ids->thread_of[ids->last] - 1;
    return 0;
}

void fp_chrome_set_thread(struct fp_chrome_ids *ids, uint32_t thread) {
    ids->thread_of[ids->last] = thread + 1;
}

void fp_chrome_meta(struct fp_chrome_ids *ids, const struct fp_buf *name) {
    ids->meta = name->n == 12 && !memcmp(name->p, "process_name", 12)     ? 1
                : name->n == 11 && !memcmp(name->p, "thread_name", 11)    ? 2
                : name->n == 14 && !memcmp(name->p, "process_labels", 14) ? 3
                                                                          : 0;
}
