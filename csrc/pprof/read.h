/* pprof/read.h - reads pprof's profile.proto over its wire format.
 *
 * Floor 2.  Fields come in any order, and samples refer by id to tables that
 * may follow them, so the input is read twice: fp_pprof_tables takes all but the
 * samples, fp_pprof_resolve enters the tables into the model, fp_pprof_feed gives
 * the samples.  Lists are read packed or not; unknown fields are counted.
 *
 *   12 06 0a 01 01 12 01 05    field 2 (sample), 6 bytes:
 *         0a 01 01             location_id, packed: 1
 *                  12 01 05    value, packed: 5
 *
 * Each distinct list of locations, as its bytes stand in the file, is looked up
 * in the stack tree once; likewise labels.  Memory: linear in the tables and
 * the distinct stacks and label sets.
 * Source: google/pprof proto/profile.proto; validity as profile.CheckValid of
 * its Go package has it.
 */
#ifndef FP_PPROF_READ_H
#define FP_PPROF_READ_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

/* No message within a profile is longer than this. */
enum { FP_PPROF_MAX_MESSAGE = 1 << 26 };

struct fp_pprof_read_stats {
    uint64_t samples;
    uint64_t unknown_fields;        /* of the profile and its tables */
    uint64_t unknown_sample_fields; /* of samples and labels */
    uint64_t breakdowns;            /* of samples: single events, whose sums the samples' values are */
    uint64_t label_sets;            /* of those events */
    uint64_t no_mapping;            /* locations whose mapping id names none, taken as without */
    uint64_t bad_lines;             /* line numbers or columns that do not fit 32 bits, taken as unknown */
    /* lenient: losses */
    uint64_t bad_samples;
    uint64_t bad_entries;    /* of tables */
    uint64_t bad_references; /* to strings and functions that are not there */
    uint64_t lost_bytes;
};

struct fp_pprof_reader {
    struct fp_model *model;
    int32_t lenient;
    struct fp_pprof_read_stats stats;
    /* the profile's own fields; strings as ids of the model after fp_pprof_resolve, before as indices */
    int64_t time_ns, duration_ns, period;
    uint64_t period_type, period_unit;
    uint64_t drop_frames, keep_frames, default_sample_type, doc_url;
    int32_t has_period_type;
    uint64_t *comments;
    uint32_t n_comments, cap_comments;
    uint64_t *types; /* (type, unit) of each column of values */
    uint32_t n_types, cap_types;

    /* private from here on */
    uint64_t skip;     /* bytes of a field to pass over */
    uint64_t field_at; /* where that field began */
    int32_t first_pass;
    int32_t lost; /* lenient: nothing that follows can be read */
    int32_t has_samples;
    uint64_t samples_at;
    uint32_t *strings; /* by index: string of the model */
    uint32_t n_strings, cap_strings;
    struct fp_pprof_mapping *mappings;
    struct fp_pprof_function *functions;
    struct fp_pprof_location *locations;
    struct fp_pprof_line *lines;
    uint32_t cap_mappings, cap_functions, cap_locations, n_lines, cap_lines;
    struct fp_table mapping_ids, function_ids, location_ids; /* id -> position + 1 */
    uint32_t *frames;                                        /* by location position: frame */
    struct fp_strings chains;                                /* location lists as in the file */
    uint32_t *chain_stacks;                                  /* by chain: stack */
    uint32_t cap_chain_stacks;
    struct fp_strings label_sets; /* label messages as in the file */
    uint32_t *label_chains;
    uint32_t cap_label_chains;
    struct fp_pprof_label *labels; /* scratch */
    uint32_t cap_labels;
    uint64_t *ids; /* scratch: frames of one chain */
    uint32_t cap_ids;
    int64_t *values;                /* scratch: the values of one sample */
    struct fp_buf chain, label_set; /* scratch, for lists in pieces */
};

/* Borrows the model; caller owns.  NULL when memory ran out. */
struct fp_pprof_reader *fp_pprof_reader_new(struct fp_model *model, int lenient);
void fp_pprof_reader_free(struct fp_pprof_reader *r);

/* Could these first bytes of a file be a profile?  1 or 0. */
int fp_pprof_sniff(const uint8_t *p, size_t n);

/* First pass: all but the samples.  FP_MORE, FP_DONE at the end of the input. */
int fp_pprof_tables(struct fp_pprof_reader *r, struct fp_in *in, struct fp_err *err);

/* Between the passes.  0 or an error. */
int fp_pprof_resolve(struct fp_pprof_reader *r, struct fp_err *err);

/* Second pass: a row a sample.  FP_MORE, FP_FULL, FP_DONE. */
int fp_pprof_feed(struct fp_pprof_reader *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
