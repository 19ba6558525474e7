/* bridges/rows/rename.h - renames the functions, files and objects of rows: --mod-funcname, --mod-filename,
 * --mod-object.
 *
 * Each id of a row is replaced by that of the renamed entry.  So two functions that get the same name in the same file
 * and object become one.  The caller provides the new name of each distinct name once.
 */
#pragma once

#include "core/core.h"

enum fp_rename_what { FP_RENAME_FUNCTION = 1, FP_RENAME_FILE = 2, FP_RENAME_OBJECT = 4 };

struct fp_rename {
    struct fp_model *model;
    int32_t what;        /* bits of enum fp_rename_what: which names may change */
    int32_t request;     /* after FP_NEEDS: one bit, the kind of name that `text` is */
    const uint8_t *text; /* valid until the answer */
    size_t text_n;
    uint32_t *made; /* functions renamed since the caller set n_made to 0: old and new ids alternating */
    uint32_t n_made;

    /* private from here on */
    uint32_t cap_made;
    uint32_t string; /* the requested string */
    struct fp_rename_strings {
        uint32_t *to; /* by string: its replacement + 1; 0: not known yet */
        uint32_t cap;
    } names, files, objects; /* of functions, of files, of objects */
    struct fp_remap *ids;
};

/* The model is borrowed. */
struct fp_rename *fp_rename_new(struct fp_model *model, int what);
void fp_rename_free(struct fp_rename *r);

/* Replaces the ids of a batch, in place.  FP_NEEDS: answer and call again with the same batch.  FP_DONE, FP_E_MALFORMED
 * (an id that the model does not have). */
int fp_rename_batch(struct fp_rename *r, struct fp_batch *b, struct fp_err *err);

/* The new name of r->text. */
int fp_rename_answer(struct fp_rename *r, const uint8_t *p, size_t n);
