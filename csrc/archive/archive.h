/* archive/archive.h - the archive's payloads: model tables and chunks of rows.
 *
 * Floor 2.  What an archive file looks like around these payloads (sections,
 * checksums, zstandard, index) is Python's business; docs/formats/archive.md
 * specifies both.  A payload is made from a batch or a model and turned back
 * into one, byte streams in between; nothing here compresses with zstandard.
 */
#ifndef FP_ARCHIVE_H
#define FP_ARCHIVE_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

/* Tables of a model in the order in which the archive writes them. */
enum { FP_ARCHIVE_TABLES = 9, FP_ARCHIVE_MAX_ROWS = 0x1000000 };

/* Which positions the rows of a graph have (bits of `positions`). */
enum fp_archive_positions { FP_ARCHIVE_INSTR = 1, FP_ARCHIVE_BB = 2, FP_ARCHIVE_LINE = 4 };

/* Appends to `out` a TABLES payload: every entry of each table from `from[i]`
 * on, and moves from[i] to the table's end.  0 or FP_E_NOMEM. */
int fp_archive_tables_write(const struct fp_model *m, uint32_t *from, struct fp_buf *out);

/* The ids of an archive and what they are in the model, which may hold other
 * things too.  Table i is that of the write order; its id 0 is 0. */
struct fp_archive_ids {
    struct fp_model *model; /* borrowed */
    uint32_t n[9];          /* entries of each table so far, 0 included */
    uint32_t cap[9];
    uint32_t *to[9]; /* archive's id -> model's id */
    int32_t differ;  /* some id is not the same in both */
    /* the archive's inputs of threads, and by their ids in this table the model's */
    struct fp_table inputs;
    uint32_t *model_inputs, cap_inputs;
};

struct fp_archive_ids *fp_archive_ids_new(struct fp_model *m);
void fp_archive_ids_free(struct fp_archive_ids *ids);

/* Enters the entries of a TABLES payload into the model.  Every reference is
 * checked.  0, or an error whose offset is relative to `p`. */
int fp_archive_tables_read(struct fp_archive_ids *ids, const uint8_t *p, size_t n, struct fp_err *err);

/* A chunk being gathered.  The public part describes the rows put since the
 * last flush. */
struct fp_archive_enc {
    uint32_t rows;
    uint32_t view;
    uint64_t nbytes;   /* about the bytes held: flush when it grows large */
    uint64_t time_min; /* timeline, stacks with times; min > max: none */
    uint64_t time_max;
    uint32_t n_threads; /* distinct thread ids in `threads`, in order of appearance */
    uint32_t *threads;
};

/* NULL when memory ran out.  The caller owns it. */
struct fp_archive_enc *fp_archive_enc_new(uint32_t view);
void fp_archive_enc_free(struct fp_archive_enc *e);

/* Takes all rows of `b`; `positions` (graph) says which position columns count.
 * 0, FP_E_NOMEM, or FP_E_OVERFLOW when a chunk would pass its limits. */
int fp_archive_enc_put(struct fp_archive_enc *e, const struct fp_batch *b, uint32_t positions, struct fp_err *err);

/* Appends the ROWS payload of everything put to `out` and starts a new chunk. */
int fp_archive_enc_flush(struct fp_archive_enc *e, struct fp_buf *out);

struct fp_archive_dec;

/* Decodes chunks whose ids are those of `ids` (borrowed) into rows with the
 * model's.  NULL when memory ran out. */
struct fp_archive_dec *fp_archive_dec_new(const struct fp_archive_ids *ids);
void fp_archive_dec_free(struct fp_archive_dec *d);

/* Starts on a ROWS payload, which is borrowed until feed returned FP_DONE or an
 * error.  Its parts must be below `n_parts`.  Errors: FP_E_MALFORMED with an offset relative to `p`. */
int fp_archive_dec_open(struct fp_archive_dec *d, const uint8_t *p, size_t n, uint32_t n_parts, struct fp_err *err);

/* Which rows of the chunks to keep; a graph's rows have neither time nor thread. */
struct fp_archive_filter {
    uint64_t first_time, last_time; /* both included */
    const uint8_t *threads;         /* per thread id, 1 = keep; NULL: all */
    uint32_t n_threads;
    uint32_t part; /* UINT32_MAX: all */
};

/* Sets what feed keeps from now on; borrowed.  NULL: everything. */
void fp_archive_dec_filter(struct fp_archive_dec *d, const struct fp_archive_filter *filter);

/* Appends rows to `b` until it is full or its part would change (FP_FULL) or the
 * chunk ends (FP_DONE).  A part without rows is FP_FULL with an empty batch. */
int fp_archive_dec_feed(struct fp_archive_dec *d, struct fp_batch *b, struct fp_err *err);

/* What the ROWS payload `p` has that `base` does not: it compresses better than the
 * payload when most numbers of both are the same.  Appended to `out`.
 * FP_DONE; FP_MORE when no stream is like the base's; FP_E_NOMEM, FP_E_MALFORMED. */
int fp_archive_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out);

/* The payload again.  Errors: FP_E_NOMEM, FP_E_MALFORMED. */
int fp_archive_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out);

/* cffi-end */

#endif
