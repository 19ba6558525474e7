/* memray/read.h - a capture of memray, header versions 11 to 13, of all allocations or aggregated -> rows of stacks.
 *
 *   header     6d 65 6d 72 61 79 00 0d 00 00 00 ...       memray, version 13
 *   code       0e 01 main\0 a.py\0 ...                    code object 1, its lines
 *   thread     0c 01 00 00 00 00 00 00 00                 thread 1
 *   push       41 01 04                                   main at instruction 2 is called
 *   allocated  fe 80 01 40                                64 bytes by malloc, at address 40 above the one before
 *   freed      85                                         by free, the latest address
 *   pop        10
 *   trailer    01
 *
 * The first byte of a record states its kind.  A free has only an address, so blocks in use are kept.  Each thread has
 * a stack, whose nodes are stacks of the model.  The rows come after the trailer.
 *
 * Memory: linear in blocks in use (32 to 64 bytes each), mappings, code objects, native frames, and distinct
 * stacks.
 * Source: memray's src/memray/_memray/record_reader.cpp, records.h; files of memray 1.18 to 1.20.
 */
#pragma once

#include "core/core.h"

enum fp_memray_request {
    FP_MEMRAY_HEADER, /* the header is read; set `input` */
    FP_MEMRAY_NAMES   /* the trailer is read: see `wanted` */
};

/* A frame of native code, of the model, and the answer of the caller: whether its function is the interpreter's loop.
 * FP_MEMRAY_LOOP, or, if others are inlined into the loop, a frame with these, which is not. */
enum { FP_MEMRAY_LOOP = 1 };
struct fp_memray_wanted {
    uint32_t frame, answer;
    uint32_t first, end; /* of the images of its time, in `images` */
};

struct fp_memray {
    struct fp_heap_sums heap;
    int32_t request;
    struct fp_memray_wanted *wanted;
    uint32_t n_wanted;
    uint32_t *images; /* mappings of the model */
    /* the header */
    uint32_t version, python, pid, command; /* python: as PY_VERSION_HEX; command: a string */
    int32_t has_native, is_aggregated, python_allocator, traces_python;
    int64_t start_ms, end_ms;
    uint64_t main_thread, hidden; /* frames of memray's at the root of the main thread */
    uint32_t input;               /* of the model */
    uint32_t n_threads;
    uint64_t FP_COUNT(unpaired, "native-stacks", not_representable,
                      "native stack(s) without the interpreter's functions, reduced to Python's frames");
    uint64_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_memray *fp_memray_new(struct fp_model *model, int lenient);
void fp_memray_free(struct fp_memray *f);

/* FP_MORE, FP_FULL, FP_DONE, an error, or FP_NEEDS: see `request`.  The batch has FP_HEAP_COLUMNS value
 * columns, of an aggregated file the last four of them. */
int fp_memray_feed(struct fp_memray *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* The thread of number i < n_threads in the model, and its name, a string or 0. */
uint32_t fp_memray_thread(const struct fp_memray *f, uint32_t i, uint32_t *name);
