/* pprof/read.h - reads pprof's profile.proto, a protocol buffer (core/wire.h).
 *
 * Samples refer by id to tables: locations, functions, mappings, strings.  Fields may come in any order, so a table may
 * follow the samples that need it.  The input is therefore read twice:
 *
 *   fp_pprof_tables    first pass: everything but the samples
 *   fp_pprof_resolve   adds the tables to the model
 *   fp_pprof_feed      second pass: the samples
 *
 *   12 06 0a 01 01 12 01 05    field 2 of the profile, a sample, 6 bytes:
 *         0a 01 01             location_id, packed: 1
 *                  12 01 05    value, packed: 5
 *
 * Lists are read packed or not.  Unknown fields are counted.
 *
 * Many samples have the same stack.  So the bytes of each list of locations are kept, and a list with the same bytes
 * gets the same stack without lookups, until the model's stacks are removed (fp_model_empty_stacks).  Labels likewise.
 *
 * Memory: linear in the tables and in the distinct stacks and label sets.
 * Source: google/pprof proto/profile.proto.  Errors are those of CheckValid in its Go package `profile`.
 */
#pragma once

#include "pprof/state.h"

/* The maximum length of a message within a profile. */
enum { FP_PPROF_MAX_MESSAGE = 1 << 26 };

struct fp_pprof_read_stats {
    uint64_t samples;
    uint64_t FP_COUNT(unknown_fields, "unknown-fields", not_representable, "unknown field(s)");
    uint64_t FP_COUNT(unknown_sample_fields, "unknown-sample-fields", not_representable,
                      "unknown field(s) of (a sample|samples)");
    /* Sample.breakdown: the sample's values are the sums of its events. */
    uint64_t FP_COUNT(breakdowns, "sample-breakdowns", not_representable,
                      "breakdown(s) of (a sample|samples) into events");
    uint64_t FP_COUNT(label_sets, "label-sets", not_representable, "label set(s) of events");
    /* They get no mapping. */
    uint64_t FP_COUNT(no_mapping, "unknown-mappings", repairs, "location with an unknown mapping",
                      "locations with unknown mappings");
    /* Such lines and columns become 0, unknown. */
    uint64_t FP_COUNT(wide_lines, "wide-line-numbers", not_representable, "line number(s) beyond 32 bits");
    uint64_t FP_COUNT(negative_lines, "negative-line-numbers", not_representable, "negative line number(s)");
    /* No function has an id, but each location has one function, which gets that id. */
    uint64_t FP_COUNT(functions_without_id, "functions-without-id", repairs, "function(s) without an id");
    /* lenient: losses */
    uint64_t FP_COUNT(bad_samples, "damaged-samples", losses, "damaged sample(s)");
    uint64_t FP_COUNT(bad_entries, "damaged-entries", losses, "damaged table (entry|entries)");
    uint64_t FP_COUNT(bad_references, "dangling-references", losses, "dangling reference(s)");
    uint64_t FP_COUNT(lost_bytes, "skipped-bytes");
};

struct fp_pprof_reader {
    struct fp_model *model;
    int32_t lenient;
    struct fp_pprof_read_stats stats;
    /* The profile's own fields.  Strings are indices into the string table, until fp_pprof_resolve replaces them by ids
     * of the model. */
    int64_t time_ns, duration_ns, period;
    uint64_t period_type, period_unit;
    uint64_t drop_frames, keep_frames, default_sample_type, doc_url;
    uint64_t program; /* the file of the first mapping, if that only holds a name (pprof/no_address.h); otherwise 0 */
    int32_t has_period_type;
    uint64_t *comments;
    uint32_t n_comments;
    uint64_t *types; /* (type, unit) of each value of a sample */
    uint32_t n_types;

    /* private from here on */
    struct fp_pprof_tables tables;
    struct fp_pprof_caches caches;
    struct fp_pprof_sample_state sample;
    struct fp_pprof_feed_state feed;
};

/* Borrows the model; caller owns. */
struct fp_pprof_reader *fp_pprof_reader_new(struct fp_model *model, int lenient);
void fp_pprof_reader_free(struct fp_pprof_reader *r);

/* Whether these first bytes of a file can be a profile.  1 or 0. */
int fp_pprof_sniff(const uint8_t *p, size_t n);

/* First pass.  FP_MORE, FP_DONE at the end of the input, or an error. */
int fp_pprof_tables(struct fp_pprof_reader *r, struct fp_window *in, struct fp_err *err);

/* Between the passes.  0 or an error. */
int fp_pprof_resolve(struct fp_pprof_reader *r, struct fp_err *err);

/* Second pass, from the beginning of the input: one row for each sample.  FP_MORE, FP_FULL, FP_DONE, or an error. */
int fp_pprof_feed(struct fp_pprof_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
