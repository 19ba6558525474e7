/* xray/read.h - LLVM XRay logs: flight data recorder (FDR) versions 1 to 5, basic ("naive") mode versions 1 to 3, and
 * profiling mode, in either byte order.
 *
 * Order of calls: fp_xray_new, fp_xray_header.  For FDR then fp_xray_index until FP_DONE, fp_xray_duplicates until it
 * returns 0, and fp_xray_range for each range to decode; other logs are one range.  fp_xray_feed decodes a range.
 *
 * Sources: llvm/lib/XRay and compiler-rt/lib/xray of LLVM 8 to 22, and logs written by their runtimes.  Where the
 * format documents and the logs differ, this follows the logs (docs/formats/xray.md).
 */
#pragma once

#include "core/core.h"

enum fp_xray_mode {
    FP_XRAY_BASIC = 0,
    FP_XRAY_FDR = 1,
    FP_XRAY_PROFILE = 2,    /* as the runtime writes it: file header, blocks of records */
    FP_XRAY_PROFILE_RAW = 3 /* as LLVM's own reader expects it: no file header, a block
                               header before every record */
};

/* Counters of the decoder.  Repairs: oddities that healthy programs write.
 * Losses: damage that was skipped, in lenient mode only. */
struct fp_xray_stats {
    uint64_t buffers; /* FDR: buffers; profile: blocks */
    /* repairs */
    /* FDR: see fp_xray_drop. */
    uint64_t FP_COUNT(duplicate_buffers, "duplicate-buffers", repairs, "duplicate buffer(s)");
    /* Basic: a forked child wrote its parent's records again; the record of an argument was not written. */
    uint64_t FP_COUNT(duplicate_records, "duplicate-records", repairs, "duplicate record(s)");
    uint64_t FP_COUNT(orphan_arguments, "orphan-arguments", repairs, "orphan argument(s)");
    /* FDR: extents leave out the heads of typed events.  Profile: times below zero are taken as 0. */
    uint64_t FP_COUNT(short_buffers, "short-buffers", repairs, "buffer(s) cut short by typed events");
    uint64_t FP_COUNT(negative_times, "negative-times", repairs, "negative time(s)");
    uint64_t FP_COUNT(joined, "joined-logs", repairs, "further log(s) in the same file");
    /* losses */
    /* FDR; basic and profile; bytes skipped because of either. */
    uint64_t FP_COUNT(bad_buffers, "damaged-buffers", losses, "damaged buffer(s)");
    uint64_t FP_COUNT(bad_records, "damaged-records");
    uint64_t FP_COUNT(lost_bytes, "skipped-bytes");
};

/* One log. */
struct fp_xray {
    struct fp_model *model; /* borrowed */
    uint32_t input;         /* number of this input; threads of different inputs differ */
    int32_t lenient;
    /* set by fp_xray_header */
    int32_t mode; /* enum fp_xray_mode */
    int32_t swap; /* byte order differs from the machine's */
    uint32_t version;
    uint32_t flags; /* bit 0 constant TSC, bit 1 nonstop TSC; others masked off */
    uint64_t ticks_per_second;
    uint64_t buffer_size; /* FDR: from the header */
    uint64_t pid;         /* profile: the process of the log being read */

    struct fp_xray_stats stats;
    uint32_t requested; /* after FP_NEEDS: the function id that fp_xray_define must name */
    uint32_t thread;    /* FDR: id in the model of the buffer's thread, if known in advance; otherwise 0 */

    /* private from here on */
    /* the state of each mode; NULL until its first call */
    struct fp_xray_names *names;
    struct fp_xray_index *index;
    struct fp_xray_fdr *fdr;
    struct fp_xray_basic *basic;
    struct fp_xray_profile *profile;
};

/* A decoder that adds threads and functions to `model` (borrowed).  Caller owns. */
struct fp_xray *fp_xray_new(struct fp_model *model, int lenient);
void fp_xray_free(struct fp_xray *x);

/* Reads the file header from the first `n` bytes of the log.  *nbytes gets its
 * length (0 for FP_XRAY_PROFILE_RAW).  0, FP_E_TRUNCATED or FP_E_VERSION. */
int fp_xray_header(struct fp_xray *x, const uint8_t *p, size_t n, size_t *nbytes, struct fp_err *err);

/* FDR: finds the buffers that begin in the window.  FP_MORE: the next window must begin at *next, which may be far
 * beyond this one.  FP_DONE at the end of the file: the buffers are in order of wall clock, first TSC, thread, process,
 * offset.  `size` is the file's length in bytes.  Memory: linear in buffers. */
int fp_xray_index(struct fp_xray *x, struct fp_window *in, uint64_t size, uint64_t *next, struct fp_err *err);

/* FDR: finds the next two buffers with the same thread, times and length.  The `other` may be a copy of the `one`,
 * which the caller checks by comparing their bytes; if so, it calls fp_xray_drop.  Returns 1 and sets their offsets and
 * the length of each; 0 when there are no more. */
int fp_xray_duplicates(struct fp_xray *x, uint64_t *one, uint64_t *other, uint64_t *nbytes);

/* FDR: skips and counts the `other` buffer of the last fp_xray_duplicates. */
void fp_xray_drop(struct fp_xray *x);

/* FDR: the next byte range to decode, in order: a buffer and those adjacent to it in the file, up to `most` bytes.
 * Returns 1, or 0 at the end. */
int fp_xray_range(struct fp_xray *x, uint64_t most, uint64_t *offset, uint64_t *nbytes);

/* Decodes records.  FP_NEEDS: define x->requested and call again with the same window.
 *
 * FDR, basic: timeline rows, times in ticks.
 * Profile: stacks rows with two values, ticks and calls, both self.  Ticks in the file include callees, so a path's
 * self ticks are known only at the end of the input, where all rows are returned.  Memory: linear in distinct call
 * paths. */
int fp_xray_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* Records the operations of functions in timeline rows: sets bit fp_op of seen[function].  Ignores functions from n
 * on. */
void fp_xray_seen(const struct fp_batch *b, uint8_t *seen, uint32_t n);

/* Names XRay function `id` as model function `function`. */
int fp_xray_define(struct fp_xray *x, uint32_t id, uint32_t function);

/* ---- FDR: decoding in several threads ----
 *
 * A piece is a run of buffers in memory.  Each share of the threads (core/shares.h) has a decoder, which decodes its
 * own buffers of each piece.
 */

struct fp_xray_buffer {
    uint64_t offset; /* in the log */
    uint32_t nbytes;
    uint32_t at;     /* in the piece's bytes */
    uint32_t thread; /* id in the model; 0: it has no rows */
};

struct fp_xray_piece {
    uint8_t *bytes; /* memory of the caller, as are the buffers */
    uint32_t cap_bytes;
    struct fp_xray_buffer *buffers;
    uint32_t n, cap_buffers;
};

/* The decoder of a share, and its work in a piece: its own buffers among `next` to `end` - 1. */
struct fp_xray_share {
    struct fp_feed feed; /* its status is as that of fp_xray_feed, but never FP_MORE */
    struct fp_err err;   /* when its status is an error */
    struct fp_xray *x;   /* the decoder: after FP_NEEDS, its `requested` */
    uint32_t next;       /* the current buffer of the piece */
    int32_t passed;      /* 1: the share returned FP_NEEDS only because it has passed `awaited` */

    /* private from here on */
    const struct fp_xray_piece *piece;
    const struct fp_shares *shares;
    uint32_t share;
    uint32_t end;
    size_t pos;        /* bytes of the next buffer already decoded */
    uint64_t before;   /* buffers of the log before the piece */
    uint64_t at;       /* before + next, atomic: read by other threads */
    uint64_t *awaited; /* of all shares: the buffer that all others must pass before one continues; atomic */
};

/* Whether buffers of several threads exist. */
int fp_xray_has_threads(const struct fp_xray *x);

/* Puts the next buffers into the piece, in order, as many as fit; their bytes and threads are not set yet.  If it
 * puts none, the next buffer is larger than the piece, or the log has ended; fp_xray_range distinguishes the two. */
void fp_xray_fill(struct fp_xray *x, struct fp_xray_piece *piece);

/* The length of buffer *next together with those adjacent to it both in the log and in the piece.  *next becomes the
 * one after them. */
size_t fp_xray_run(const struct fp_xray_piece *piece, uint32_t *next);

/* Adds the threads of the buffers from `first` on to the model, up to a buffer with records of several threads, which
 * must be decoded in order.  Returns the number of that buffer; piece->n if there is none; FP_E_NOMEM. */
int64_t fp_xray_threads(const struct fp_xray *x, struct fp_xray_piece *piece, uint32_t first);

/* Bytes of all buffers of a thread.  0: it has none, or memory ran out. */
uint64_t fp_xray_thread_nbytes(struct fp_xray *x, uint32_t pid, uint32_t tid);

/* Sets firsts[i], initially FP_NO_ID, to the first of buffers *next to `end` - 1 that share i has, if any.  Returns
 * FP_NO_ID at the end, otherwise a thread that has no share yet: assign one and call again, which continues at *next.
 */
uint32_t fp_xray_firsts(const struct fp_xray_piece *piece, uint32_t *next, uint32_t end, const struct fp_shares *shares,
                        uint32_t *firsts);

/* A decoder for a share of the log of `x`, with the names defined so far; its feed appends to `out`.  It does not read
 * the model.  Caller owns; borrows `shares`, `awaited` and `out`. */
struct fp_xray_share *fp_xray_share_new(const struct fp_xray *x, uint32_t share, const struct fp_shares *shares,
                                        uint64_t *awaited, struct fp_batch *out);
void fp_xray_share_free(struct fp_xray_share *s);

/* Its next work: its own buffers among `next` to `end` - 1 of a piece, which is borrowed.  `before`: buffers of the log
 * before the piece. */
void fp_xray_share_take(struct fp_xray_share *s, const struct fp_xray_piece *piece, uint64_t before, uint32_t next,
                        uint32_t end);

/* The current buffer, counted in the log.  Any thread may ask. */
uint64_t fp_xray_share_at(const struct fp_xray_share *s);

/* Sets the buffer that a share waits for, UINT64_MAX for none.  Afterwards each other share either has visibly passed
 * it
 * (fp_xray_share_at) or reports it when it does (`passed`). */
void fp_xray_await(uint64_t *awaited, uint64_t buffer);
