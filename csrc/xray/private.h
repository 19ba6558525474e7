/* xray/private.h - shared by the files that read XRay logs.  C only.
 *
 * log.c       a log as a whole, and the choice of the mode
 * header.c    common to all logs: the file header, function names
 * index.c     FDR: finds the buffers and their order
 * fdr.c       FDR: the records of a buffer
 * pieces.c    FDR: buffers for decoders in other threads
 * basic.c     basic mode
 * profile.c   profiling mode
 *
 * Each mode has its own struct, private to its file.
 */
#pragma once

#include "xray/read.h"

enum { FP_XRAY_HEADER_NBYTES = 32 };

/* XRay function ids and their model functions.  Ids count from 1 in each object,
 * so most are small: those are looked up in an array, larger ones by hashing. */
struct fp_xray_names {
    uint32_t *dense;             /* model function + 1 by XRay id; 0 = not defined */
    uint32_t n_dense, cap_dense; /* ids looked up in it; its capacity */
    struct fp_table sparse;      /* larger ids; row i belongs to sparse_functions[i] */
    uint32_t n;                  /* ids that were named */
    uint32_t *sparse_functions;
    uint32_t cap_sparse;
};

uint32_t fp_xray_lookup_sparse(const struct fp_xray_names *names, uint32_t id);

/* The model function of XRay function `id` plus one; 0 = not defined yet. */
static inline uint32_t fp_xray_lookup(const struct fp_xray_names *names, uint32_t id) {
    return FP_LIKELY(id < names->n_dense) ? names->dense[id] : fp_xray_lookup_sparse(names, id);
}

/* `cat` can put several logs into one file.  Is p, where a record, block or buffer must begin, the header of another
 * log of the same kind? */
int fp_xray_is_header(const struct fp_xray *x, const uint8_t *p, size_t n);

/* Continues with such a log.  0, or FP_E_MALFORMED: its ticks differ. */
int fp_xray_begin_another(struct fp_xray *x, const uint8_t *p, uint64_t offset, struct fp_err *err);

/* fp_xray_feed of each mode. */
int fp_xray_fdr_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
int fp_xray_basic_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
int fp_xray_profile_feed(struct fp_xray *x, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* All take NULL. */
void fp_xray_index_free(struct fp_xray_index *index);
void fp_xray_fdr_free(struct fp_xray_fdr *f);
void fp_xray_basic_free(struct fp_xray_basic *b);
void fp_xray_profile_free(struct fp_xray_profile *q);
