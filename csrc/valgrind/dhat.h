/* valgrind/dhat.h - a DHAT profile (JSON, dhatFileVersion 1 and 2) -> rows of stacks.
 *
 *   {"dhatFileVersion":2,"mode":"heap","bklt":true,"bkacc":true ...
 *   ,"pps":[{"tb":72704,"tbk":1,"tl":859062,"mb":72704 ...,"fs":[1,2]} ...]     program points: values, and frames
 *   ,"ftbl":["[root]","0x4005AF0: ??? (in /lib/ld.so)","0x109611: main (mem.cc:9)"]}
 *
 * The frame table comes last, so points are kept as indices of frames; points of the same stack are added up.  FP_NEEDS
 * at the end of the input: the caller sets the place of each text of the table (fp_dhat_place) and then reads the
 * rows.
 *
 * Memory: 11 to 22 bytes for each distinct stack while points are read, and frames; the caller takes the rest out of
 * memory (core/key_sums.h).  The model gets stacks when they become rows.
 */
#pragma once

#include "core/core.h"

/* Values of a point, in the order of the rows' values. */
enum fp_dhat_value {
    FP_DHAT_TB,  /* total bytes */
    FP_DHAT_TBK, /* and blocks */
    FP_DHAT_EB,  /* at the end */
    FP_DHAT_EBK,
    FP_DHAT_GB, /* at the global maximum */
    FP_DHAT_GBK,
    FP_DHAT_MB, /* at the point's own maximum */
    FP_DHAT_MBK,
    FP_DHAT_RB, /* bytes read and written */
    FP_DHAT_WB,
    FP_DHAT_TL, /* sum of the lifetimes of blocks */
    FP_DHAT_VALUES
};

enum fp_dhat_text { FP_DHAT_MODE, FP_DHAT_CMD, FP_DHAT_TU, FP_DHAT_BU, FP_DHAT_BKSU, FP_DHAT_TEXTS };

struct fp_dhat {
    uint64_t points; /* in the file */
    uint64_t FP_COUNT(broken, "broken-points", losses, "program point(s) that could not be read");
    uint64_t FP_COUNT(bad_frames, "frames-beyond-table", losses, "frame(s) that (is|are) not in the frame table");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
    int64_t version, pid;         /* -1: not in the file */
    int64_t end_time, peak_time;  /* -1: not in the file */
    int32_t lifetimes, accesses;  /* whether points have these values */
    uint32_t text[FP_DHAT_TEXTS]; /* strings of `texts`; 0: not in the file */
    struct fp_strings texts;      /* of the fields above, and of the frame table */
    /* Stacks, as indices of frames in varints, innermost first; the first has no frames.  With the sums of values. */
    struct fp_key_sums stacks;
    /* the values of rows; set by the caller */
    uint32_t columns[FP_DHAT_VALUES], n_columns;
};

/* Borrows the model; the caller owns the reader. */
struct fp_dhat *fp_dhat_new(struct fp_model *model, int lenient);
void fp_dhat_free(struct fp_dhat *d);

/* Reads the text.  FP_MORE, FP_NEEDS at its end, or an error. */
int fp_dhat_feed(struct fp_dhat *d, struct fp_window *in, struct fp_err *err);

/* The number of entries of the frame table, and the string of entry i. */
uint32_t fp_dhat_table(const struct fp_dhat *d, uint32_t i);
uint32_t fp_dhat_n_table(const struct fp_dhat *d);

/* Sets the place of a string of the table.  Address 0: unknown; function 0: only an address.  0 or FP_E_NOMEM. */
int fp_dhat_place(struct fp_dhat *d, uint32_t string, uint64_t address, uint32_t function, uint32_t line);

/* Returns the rows.  FP_FULL, FP_DONE or an error. */
int fp_dhat_rows(struct fp_dhat *d, struct fp_batch *out, struct fp_err *err);
