/* bridges/rows/pair.h - gives functions of one profile the ids of their counterparts in another.
 *
 *     old: main /v1/app, f /v1/app        new: main /v2/app, f /v2/app
 *     noted: main@v1 1, f@v1 1, main@v2 2, f@v2 2        the caller pairs them: rows of old get the ids of new
 *
 * First note all rows of both profiles, which collects the functions and files of each side.  Then fp_pair_same pairs
 * the functions that are equal, which are most, and leaves to the caller those that may have a counterpart.  Then
 * replace the ids of all rows.
 */
#pragma once

#include "core/core.h"

struct fp_pair {
    struct fp_model *model;
    uint8_t *functions; /* by function: 1 if a row of the first profile has it, 2 of the second; 3 of both */
    uint32_t n_functions;
    uint8_t *files; /* by string: the same for the files of rows of graphs */
    uint32_t n_files;
    /* after fp_pair_same */
    uint32_t *left; /* functions of one side that have no counterpart yet but may have one */
    uint32_t n_left;
    uint8_t *objects; /* by object: the sides of its functions */
    uint32_t n_objects;
    uint32_t n_replaced;   /* functions and files with a replacement */
    uint32_t *to_function; /* by function: its replacement, 0 = none */
    uint32_t n_to_function;
    /* private from here on */
    uint32_t *to_file; /* by string */
    uint32_t cap_to_file;
    uint8_t *stacks; /* by stack: the sides that it was noted for */
    uint32_t cap_stacks;
    uint32_t n_emptied; /* of the model: when this changes, the stacks are others */
    uint32_t *to_frame; /* by frame: its replacement, 0 = none */
    uint32_t n_frames;  /* of to_frame */
    uint32_t *chain;    /* a line chain, innermost first */
    uint32_t cap_chain;
    struct fp_remap *ids;
    struct fp_table rows; /* in fp_pair_same: object, file, name of functions that may be equal */
};

/* The model is borrowed. */
struct fp_pair *fp_pair_new(struct fp_model *model);
void fp_pair_free(struct fp_pair *p);

/* Notes the functions and files of a batch of stacks or of a graph, which is of profile `side`, 0 or 1.  FP_DONE,
 * FP_E_MALFORMED (an id that the model does not have). */
int fp_pair_note(struct fp_pair *p, const struct fp_batch *b, uint32_t side, struct fp_err *err);

/* After the last row: pairs functions of the same object, file and name, in the order of their lines, which may differ.
 * Of the others, `left` has those that a function of the other side resembles: it has the same name, and the same base
 * name of the file unless some function of this name has no file.  Names like addresses stay too, but addresses only of
 * objects with a build id, because others never pair.  As fp_pair_note. */
int fp_pair_same(struct fp_pair *p, struct fp_err *err);

/* Replaces a function, or a file, in the following batches. */
int fp_pair_function(struct fp_pair *p, uint32_t from, uint32_t to);
int fp_pair_file(struct fp_pair *p, uint32_t from, uint32_t to);

/* Replaces `n` functions by their counterparts. */
void fp_pair_functions(const struct fp_pair *p, uint32_t *functions, uint32_t n);

/* After the last of them and before the first batch: replaces the frames of these functions in stacks.  They get a
 * mapping of the counterpart's object and lose their address, which is one of another build.  Does
 * nothing if all batches noted are graphs.  As fp_pair_note. */
int fp_pair_frames(struct fp_pair *p);

/* Replaces the ids of a batch, in place.  As fp_pair_note. */
int fp_pair_batch(struct fp_pair *p, struct fp_batch *b, struct fp_err *err);
