/* xray/read.h - LLVM XRay logs: flight data recorder (FDR) versions 1 to 5,
 * basic ("naive") mode versions 1 to 3, and profiling mode, in either byte order.
 *
 * Floor 2.  Sources: llvm/lib/XRay and compiler-rt/lib/xray of LLVM 8 to 22,
 * and logs of their runtimes; where the format documents differ from those
 * logs, the logs win (docs/formats/xray.md).
 */
#ifndef FP_XRAY_H
#define FP_XRAY_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

enum fp_xray_mode {
    FP_XRAY_BASIC = 0,
    FP_XRAY_FDR = 1,
    FP_XRAY_PROFILE = 2,    /* as the runtime writes it: file header, blocks of records */
    FP_XRAY_PROFILE_RAW = 3 /* as LLVM's own reader expects it: no file header, a block
                               header before every record */
};

/* What was met on the way.  Repairs are oddities of real runtimes, mended and
 * counted; losses occur in lenient mode only. */
struct fp_xray_stats {
    uint64_t buffers;
    /* repairs */
    uint64_t duplicate_records; /* basic: a forked child wrote its parent's records again */
    uint64_t orphan_arguments;  /* basic: argument of a record that was not written */
    uint64_t short_buffers;     /* FDR: extents too short by the heads of typed events */
    uint64_t short_bytes;       /* FDR: bytes of such buffers that were never written */
    uint64_t negative_times;    /* profile: times below zero, taken as 0 */
    uint64_t joined;            /* further logs behind the first, as `cat` puts them together */
    /* losses */
    uint64_t bad_buffers; /* FDR: buffers given up at a malformed record */
    uint64_t bad_records; /* basic, profile: malformed records passed over */
    uint64_t lost_bytes;  /* bytes passed over because of either */
};

/* One FDR buffer as the index pass sees it. */
struct fp_xray_buffer {
    uint64_t offset;  /* absolute, of its extents record (v1: of its first record) */
    uint64_t nbytes;  /* with the extents record */
    uint64_t wall_us; /* when the thread took it, microseconds of a monotonic clock */
    uint64_t tsc;     /* of its first event */
    uint32_t pid;     /* 0 when not recorded */
    uint32_t tid;
    int32_t twin;    /* after the sort: may be a copy of the buffer before it */
    int32_t dropped; /* set by the caller: is one */
};

struct fp_xray {
    struct fp_model *model;
    uint32_t input; /* which input this is; threads of different inputs differ */
    int32_t lenient;
    /* the file header */
    int32_t mode; /* enum fp_xray_mode */
    int32_t swap; /* byte order differs from the machine's */
    uint32_t version;
    uint32_t flags; /* bit 0 constant TSC, bit 1 nonstop TSC; others masked off */
    uint64_t ticks_per_second;
    uint64_t buffer_size; /* FDR: as the header says */
    uint64_t wall_ns;     /* profile: CLOCK_REALTIME when written */
    uint64_t pid;         /* profile */
    struct fp_xray_stats stats;
    uint32_t asked; /* FP_ASK: the function id that fp_xray_define must name */

    /* the index (FDR) */
    struct fp_xray_buffer *buffers;
    size_t n_buffers, cap_buffers, next_buffer;

    /* private from here on */
    uint32_t *dense; /* XRay id -> model function + 1 below DENSE_IDS, grown */
    uint32_t n_dense;
    struct fp_table sparse; /* XRay ids above it; row i belongs to sparse_functions[i] */
    uint32_t *sparse_functions;
    uint32_t cap_sparse;
    struct fp_xray_thread *threads; /* basic: what was last seen of each thread */
    uint32_t cap_threads;
    /* where decoding stands */
    uint64_t left;   /* FDR: bytes to the end of the buffer; UINT64_MAX: not stated */
    uint64_t skip;   /* bytes to pass over before the next record */
    uint64_t stride; /* FDR v1: bytes from one buffer to the next, 0 = unknown */
    uint64_t walked; /* index: offset of the buffer being walked, 0 = none */
    int32_t ending;  /* index, lenient: looking for the end of the last buffer */
    int32_t losing;  /* what is skipped is lost */
    uint64_t now, wall_us;
    uint64_t typed; /* FDR: typed events in this buffer so far */
    uint32_t thread, current_pid, tid;
    uint32_t last_function; /* basic: XRay id of the record before; FDR: 1 after a function record */
    uint16_t cpu;
    uint8_t state; /* FDR: where in a buffer */
    /* profile: the call paths of all threads */
    struct fp_table paths; /* rows (thread, stack) */
    int64_t *path_ticks;
    uint64_t *path_calls;
    int64_t *path_children;
    uint32_t cap_paths, next_path;
    uint32_t *ids; /* the path being read, leaf first, without what is on the stack */
    uint32_t n_ids, cap_ids;
    uint64_t path_nbytes;   /* of its record, 0 = none is being read */
    uint32_t stack, parent; /* what is entered of it; without the leaf */
};

/* A decoder that enters threads and functions into `model` (borrowed).
 * NULL when memory ran out.  Caller owns. */
struct fp_xray *fp_xray_new(struct fp_model *model, int lenient);
void fp_xray_free(struct fp_xray *x);

/* Reads the file header from the first `n` bytes of the log; *nbytes gets its
 * length (0 for FP_XRAY_PROFILE_RAW).  0, FP_E_TRUNCATED, FP_E_VERSION or
 * FP_E_MALFORMED. */
int fp_xray_header(struct fp_xray *x, const uint8_t *p, size_t n, size_t *nbytes, struct fp_err *err);

/* FDR index pass: looks at the buffers that begin in the window and appends to
 * x->buffers.  FP_MORE: *next is where to look next (the window need not be
 * contiguous with the last one).  FP_DONE at the end of the file.
 * `size` is the file's length in bytes. */
int fp_xray_index(struct fp_xray *x, struct fp_in *in, uint64_t size, uint64_t *next, struct fp_err *err);

/* Puts x->buffers in order: wall clock, first TSC, thread, offset; and marks
 * those of the same thread, times and length as the one before. */
void fp_xray_sort(struct fp_xray *x);

/* The first twin at or after number `from`; x->n_buffers when there is none. */
size_t fp_xray_twin(const struct fp_xray *x, size_t from);

/* The next byte range to decode, in order, without what was dropped.  With
 * `join` buffers that follow each other in the file are one range.  0 at the end. */
int fp_xray_range(struct fp_xray *x, int join, uint64_t *offset, uint64_t *nbytes);

/* Decodes FDR or basic records into timeline rows, times in ticks.  FP_ASK:
 * define x->asked and call again with the same window. */
int fp_xray_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* Decodes a profile into stacks rows, values (ticks, calls), both self.  Rows
 * come at the end of the input: the file states times including callees, and
 * a path's own time is known when all its callees are.
 * Memory: linear in distinct call paths. */
int fp_xray_profile_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* Names XRay function `id` as model function `function`.  0 or FP_E_NOMEM. */
int fp_xray_define(struct fp_xray *x, uint32_t id, uint32_t function);

/* cffi-end */

/* For the room's other files. */
uint32_t fp_xray_lookup_sparse(const struct fp_xray *x, uint32_t id);
int fp_xray_basic_feed(struct fp_xray *x, struct fp_in *in, struct fp_batch *out, struct fp_err *err);
void fp_xray_free_threads(struct fp_xray *x);

/* Is this, where a record or buffer must begin, the header of another log of the same kind? */
int fp_xray_is_header(const struct fp_xray *x, const uint8_t *p, size_t n);

/* Goes on with such a log.  0, or FP_E_MALFORMED: its clock is another. */
int fp_xray_begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err);

/* The model function of XRay function `id` plus one; 0 = not defined yet. */
static inline uint32_t fp_xray_lookup(const struct fp_xray *x, uint32_t id) {
    return FP_LIKELY(id < x->n_dense) ? x->dense[id] : fp_xray_lookup_sparse(x, id);
}

#endif
