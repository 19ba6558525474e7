/* archive/archive.h - encodes and decodes the two payloads of an archive:
 *
 *   TABLES   entries of the model             fp_archive_tables_write, fp_archive_tables_read
 *   ROWS     a chunk of rows of one view      fp_archive_enc, fp_archive_dec
 *
 * fastprof/formats/archive writes the file around them (sections, checksums, zstandard, index).
 * docs/formats/archive.md specifies the bytes.
 */
#pragma once

#include "core/core.h"

/* The number of tables of a model, the most rows and value columns of a chunk, and the most bytes of tables between
 * which there is a difference. */
enum {
    FP_ARCHIVE_TABLES = 9,
    FP_ARCHIVE_MAX_ROWS = 0x1000000,
    FP_ARCHIVE_MAX_VALUES = 1024,
    FP_ARCHIVE_MAX_DIFFERENCE = 0x400000,
    FP_ARCHIVE_SKETCH = 32 /* the most hashes of a sketch */
};

/* Bits of `positions`: the position columns of a graph. */
enum fp_archive_positions { FP_ARCHIVE_INSTR = 1, FP_ARCHIVE_BB = 2, FP_ARCHIVE_LINE = 4 };

/* Appends a TABLES payload to `out`: the entries of each table i from from[i] on.
 * Sets from[i] to the table's end.  `forgotten`: stacks that the archive had before those of the model, which got their
 * ids anew.  0, or FP_E_OVERFLOW for more stacks than ids. */
int fp_archive_tables_write(const struct fp_model *m, uint32_t *from, uint32_t forgotten, struct fp_buf *out);

struct fp_own_stacks;

/* Maps the ids of an archive to ids of the model, which differ if the model has entries from other inputs.  Id 0 is
 * always 0.  Tables are in the order of TABLES. */
struct fp_archive_ids {
    struct fp_model *model; /* borrowed */
    uint32_t n[9];          /* entries of each table so far, 0 included; stacks: since some were forgotten */
    uint32_t *to[9];        /* archive's id -> model's id */
    /* FP_THREAD_INPUT: a row for each input number of the archive, and the model's number for each row */
    struct fp_table inputs;
    uint32_t *model_inputs;
    /* Set by the caller: stacks are added when rows need them, and again after the model dropped them. */
    int32_t renews_stacks;

    /* private from here on */
    uint32_t cap[9];
    struct fp_own_stacks *stacks; /* with renews_stacks, by archive's id */
    uint32_t forgotten;           /* stacks that were forgotten: an id here is the archive's less this */
    int32_t differ;               /* some id differs */
    int32_t appends; /* rows are not looked up: equal ones get several ids, and the model's tables cannot be searched */
    uint32_t cap_inputs;
};

struct fp_archive_ids *fp_archive_ids_new(struct fp_model *m);
void fp_archive_ids_free(struct fp_archive_ids *ids);

/* Adds the entries of a TABLES payload to the model.  Every reference is checked.
 * 0, or an error whose offset is relative to `p`. */
int fp_archive_tables_read(struct fp_archive_ids *ids, const uint8_t *p, size_t n, struct fp_err *err);

/* No later payload refers to a stack so far: they take no more memory. */
void fp_archive_ids_forget(struct fp_archive_ids *ids);

/* Encodes rows into chunks.  These fields describe the chunk so far: the rows put
 * since the last flush. */
struct fp_archive_enc {
    uint32_t rows;
    uint32_t view;
    uint32_t forgotten; /* set by the caller: as for fp_archive_tables_write */
    uint64_t nbytes;    /* roughly the bytes held, to decide when to flush */
    uint64_t time_min;  /* timeline, stacks with times; min > max if no row has a time */
    uint64_t time_max;
    uint32_t n_threads; /* distinct thread ids in `threads`, in order of appearance */
    uint32_t *threads;
};

/* The caller owns it. */
struct fp_archive_enc *fp_archive_enc_new(uint32_t view);
void fp_archive_enc_free(struct fp_archive_enc *e);

/* Adds all rows of `b` to the chunk.  `positions`: which position columns of a graph to keep.  0, or FP_E_OVERFLOW
 * when a chunk would pass its limits. */
int fp_archive_enc_put(struct fp_archive_enc *e, const struct fp_batch *b, uint32_t positions, struct fp_err *err);

/* Appends the chunk to `out` as a ROWS payload and starts a new one. */
int fp_archive_enc_flush(struct fp_archive_enc *e, struct fp_buf *out);

struct fp_archive_dec;

/* Decodes chunks into rows.  `ids` (borrowed) translates the archive's ids into the model's. */
struct fp_archive_dec *fp_archive_dec_new(struct fp_archive_ids *ids);
void fp_archive_dec_free(struct fp_archive_dec *d);

/* Starts to decode a ROWS payload, which is borrowed until feed returns FP_DONE or an error.  Part numbers of `n_parts`
 * or more are malformed.  0, or FP_E_MALFORMED with an offset relative to `p`. */
int fp_archive_dec_open(struct fp_archive_dec *d, const uint8_t *p, size_t n, uint32_t n_parts, struct fp_err *err);

/* Which rows to keep. */
struct fp_archive_filter {
    struct fp_select rows;
    uint32_t part;     /* UINT32_MAX: all */
    uint64_t left_out; /* rows; added up by feed */
};

/* Sets the rows that feed keeps from now on; borrowed.  NULL: all. */
void fp_archive_dec_filter(struct fp_archive_dec *d, struct fp_archive_filter *filter);

/* Appends rows to `b` until it is full or the next row is of another part (FP_FULL), or the chunk ends (FP_DONE).  A
 * part without rows returns FP_FULL with an empty batch. */
int fp_archive_dec_feed(struct fp_archive_dec *d, struct fp_batch *b, struct fp_err *err);

/* Appends to `out` the difference between the ROWS payload `p` and `base`, another one.  It compresses better than `p`
 * if most numbers of both are the same.  `stacks`: for each of the `n_stacks` stack ids of `p` (of a graph, function
 * ids) the base's id of the same stack, or 0, so that rows are compared with those of the same stack; NULL if unknown.
 * fp_archive_undiff needs them, too. FP_DONE; FP_MORE: no stream resembles that of the base; FP_E_MALFORMED. */
int fp_archive_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, const uint32_t *stacks,
                    size_t n_stacks, struct fp_buf *out);

/* The reverse: `p` is a difference to `base`; the payload is appended to `out`.
 * 0 or FP_E_MALFORMED. */
int fp_archive_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, const uint32_t *stacks,
                      size_t n_stacks, struct fp_buf *out);

/* The same of TABLES payloads that begin with the first entry of each table.  They append to `stacks` the argument of
 * the functions above: functions if there are no stacks.  FP_MORE: most entries are not in the base. */
int fp_archive_tables_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out,
                           struct fp_buf *stacks);
int fp_archive_tables_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out,
                             struct fp_buf *stacks);

/* Tells of which program a TABLES payload is: the smallest distinct hashes of its strings, and of its frames without a
 * line by their place in the object, so that they are the same at other addresses.  Two payloads have about as large a
 * part of their hashes in common as of their entries.  Writes them to `out` (FP_ARCHIVE_SKETCH u32s), ascending, and
 * returns their number, or FP_E_MALFORMED. */
int fp_archive_sketch(const uint8_t *p, size_t n, uint32_t *out);
