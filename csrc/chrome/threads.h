/* chrome/threads.h - the process and thread of an event, in the file and in the model.
 *
 * An id may be a number of any size, a string, or missing.  For each new pair of ids FP_NEEDS requests a thread of the
 * model, which the caller sets with fp_chrome_set_thread.
 */
#pragma once

#include "core/core.h"

enum fp_chrome_id_kind { FP_CHROME_NO_ID = 0, FP_CHROME_NUMBER = 1, FP_CHROME_TEXT = 2 };
struct fp_chrome_id {
    uint32_t kind;   /* enum fp_chrome_id_kind */
    uint32_t string; /* of the model */
    int64_t number;
};

struct fp_chrome_ids {
    struct fp_chrome_id pid, tid; /* of the current event */
    uint32_t meta;                /* its name for the process: 1, the thread: 2, labels of the process: 3, none: 0 */
    int32_t noted;                /* that name was recorded */
    uint32_t document;            /* of the text, counted from 0; each has its own threads */
    /* private from here on */
    struct fp_table pairs; /* kinds and numbers of ids */
    uint32_t *thread_of;   /* by row of `pairs`: thread + 1, 0 = not requested yet */
    uint32_t cap_thread_of, last;
    uint32_t last_key[6];
};

/* Sets the requested thread of the model. */
void fp_chrome_set_thread(struct fp_chrome_ids *ids, uint32_t thread);

/* cffi-end */

/* 0 or FP_E_NOMEM. */
int fp_chrome_ids_init(struct fp_chrome_ids *ids);
void fp_chrome_ids_clear(struct fp_chrome_ids *ids);

/* Reads an id from a text, number or word; a number beyond 63 bits becomes a text.  0, FP_E_MALFORMED, FP_E_NOMEM. */
int fp_chrome_take_id(struct fp_chrome_id *id, const struct fp_json *j, struct fp_buf *scratch, struct fp_model *model);

/* The thread of the current event.  0, FP_NEEDS, FP_E_NOMEM. */
int fp_chrome_thread_of(struct fp_chrome_ids *ids, uint32_t *thread);

/* Sets ids->meta for a metadata event of this name. */
void fp_chrome_meta(struct fp_chrome_ids *ids, const struct fp_buf *name);
