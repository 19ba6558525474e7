/* otlp/write.h - writes OpenTelemetry profiles in the layout of 1.10.
 *
 * The file contains resources, their scopes, their profiles (one for each value type), their samples, and at the end
 * the dictionary.  Each message begins with its length.  So samples and table entries are kept in buffers, which the
 * caller spills when they are long, and joins at the end:
 *
 *   buffers 0 .. 7          0 is unused; k: table k of the dictionary, whole fields
 *   buffer 8 + p * n + c    samples of place p in value column c of n, whole fields
 *
 * A place is a resource and a scope.  Labels become attributes of the resource (service.name, process.pid ...), of the
 * scope (otel.scope...), a link (trace_id, span_id) or attributes of the sample.
 *
 *   12 0b 08 01 12 02 05 06 22 03 0a 0a 0a    a sample: stack 1, attributes 5 and 6, values 10 10 10
 *
 * Memory: linear in the model's tables; and 64 KiB for each place and value type.
 * Source: opentelemetry-proto v1.10.0, profiles.proto; semantic conventions for resources, profiles and pprof.
 */
#pragma once

#include "core/core.h"

enum { FP_OTLP_TABLE_BUFFERS = 8, FP_OTLP_BUFFER = 1 << 16, FP_OTLP_OBSERVATIONS = 4096 };

/* Strings of the model that the writer needs; set by the caller. */
struct fp_otlp_keys {
    uint32_t process_pid, thread_id, trace_id, span_id, zero;
    uint32_t gnu, go, is_folded, has_functions, has_filenames, has_lines, has_inlines;
};

struct fp_otlp_write_stats {
    uint64_t samples;
    uint64_t FP_COUNT(not_utf8, "invalid-utf8", not_representable, "non-UTF-8 string(s), repaired");
};

/* The attributes of samples with the same labels and thread. */
struct fp_otlp_written {
    uint32_t place, link;
    uint32_t at, n; /* packed indices, in w->packed */
};

struct fp_otlp_writer {
    struct fp_model *model;
    struct fp_otlp_keys keys;
    struct fp_otlp_write_stats stats;
    uint32_t n_columns; /* value types; set by the caller before the first row */
    struct fp_buf *buffers;
    uint32_t n_buffers, full; /* after FP_FULL: the buffer to empty */
    /* By id: the length of the resource's content (4 bytes), this content, the scope's content.  Id 0 has neither. */
    struct fp_strings places;

    /* private from here on */
    uint32_t cap_buffers;
    uint32_t row; /* of the batch: the first row not written */
    struct fp_utf8_names texts;
    struct fp_buf scratch, entry, attributes, resource, scope;
    /* id of the model -> index in the file + 1; 0: not written yet */
    uint32_t *strings, *functions, *frames, *stacks;
    uint32_t cap_strings, cap_functions, cap_frames, cap_stacks;
    uint32_t n_strings, n_stacks, n_emptied;
    struct fp_table out_functions, out_mappings, out_locations, out_attributes, out_links;
    struct fp_table sets; /* label, thread */
    struct fp_otlp_written *written;
    uint32_t cap_written;
    struct fp_buf packed;
    /* consecutive observations of a sample */
    int64_t values[FP_OTLP_OBSERVATIONS];
    uint64_t times[FP_OTLP_OBSERVATIONS];
    uint32_t n_pending, pending_buffer, pending_stack, pending_set;
};

/* Borrows the model; the caller owns the writer. */
struct fp_otlp_writer *fp_otlp_writer_new(struct fp_model *model);
void fp_otlp_writer_free(struct fp_otlp_writer *w);

/* The index of a string of the model. */
int64_t fp_otlp_string(struct fp_otlp_writer *w, uint32_t string);

/* The index of an attribute whose value is already an AnyValue. */
int64_t fp_otlp_attribute(struct fp_otlp_writer *w, uint32_t key, const uint8_t *value, size_t n);

/* Value k of a row is column columns[k] of the batch, none where columns[k] < 0.  FP_DONE, FP_E_NOMEM, or FP_FULL:
 * empty buffer `full` and call again with the same batch. */
int fp_otlp_put(struct fp_otlp_writer *w, const struct fp_batch *in, const int32_t *columns);

/* Call after the last row.  FP_DONE or FP_E_NOMEM. */
int fp_otlp_end(struct fp_otlp_writer *w);
