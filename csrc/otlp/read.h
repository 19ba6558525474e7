/* otlp/read.h - reads OpenTelemetry profiles, a protocol buffer (core/wire.h).
 *
 *   ProfilesData        1: ResourceProfiles ...   2: ProfilesDictionary
 *   ResourceProfiles    1: Resource               2: ScopeProfiles ...
 *   ScopeProfiles       1: InstrumentationScope   2: Profile ...
 *   Profile             1: ValueType  2: Sample ...  3: time  4: duration  5: ValueType  6: period  ...
 *
 *   12 0b 08 01 12 02 05 06 22 03 0a 0a 0a     a sample of 1.10, 11 bytes: stack 1, attributes 5 and 6, values 10 10 10
 *
 * Samples refer by index to the dictionary, which usually follows them.  A file may have several of these messages,
 * each with its own dictionary.  So the input is read in passes, which walk the nested messages (otlp/walk.h):
 *
 *   fp_otlp_scan      the whole input: where messages begin, and which release's layout samples have
 *   fp_otlp_scanned   decides the layout
 *   then for each message:
 *   fp_otlp_tables    the dictionary, resources, scopes and heads of profiles
 *   fp_otlp_resolve   adds them to the model
 *   fp_otlp_choose    the next profiles
 *   fp_otlp_feed      their samples
 *
 * A profile has one value type, so writers repeat stack and attributes of a sample in one profile after the other.
 * Profiles of a scope are therefore read at the same time, and samples that differ only in their values become one row:
 *
 *   cpu       | stack 1: 10 | stack 2: 20 | stack 3: 30      rows   1: 10 1   2: 20 2   3: 30 0
 *   samples   | stack 1: 1  | stack 2: 2  |
 *
 * The first profile that is not over leads; another one stays at its sample until the leader reaches an equal one.
 *
 * Fields of a sample:             values  attributes  link  timestamps
 *   1.8 and 1.9                   2       3           4     5
 *   1.10 and 1.11                 4       2           3     5
 *
 * Memory: linear in the tables of the largest message, in profiles of a message, and in distinct label sets.
 * Source: opentelemetry-proto, opentelemetry/proto/profiles/v1development/profiles.proto of tags v1.8.0 to v1.11.0.
 */
#pragma once

#include "otlp/walk.h"

/* cffi-begin guarded */

enum { FP_OTLP_MOST_TYPES = 1024 }; /* a batch has a column for each */
enum { FP_OTLP_IN_STEP = 16 };      /* profiles that are read at the same time, at most */

enum fp_otlp_layout { FP_OTLP_UNDECIDED = 0, FP_OTLP_1_8 = 1, FP_OTLP_1_9 = 2, FP_OTLP_1_10 = 3 };

struct fp_otlp_stats {
    uint64_t samples, profiles, resources;
    /* They get the value 0. */
    uint64_t FP_COUNT(no_observation, "samples-without-observation", repairs,
                      "sample(s) with neither values nor timestamps");
    uint64_t FP_COUNT(no_zero_entry, "tables-without-zero-entry", repairs,
                      "table(s) whose first (entry|entries) (is|are) not empty");
    uint64_t FP_COUNT(as_text, "attributes-as-text", repairs,
                      "attribute that is neither text nor a whole number, kept as text",
                      "attributes that are neither text nor whole numbers, kept as text");
    uint64_t FP_COUNT(mapping_attributes, "mapping-attributes", not_representable,
                      "attribute of a mapping other than its build id", "attributes of mappings other than build ids");
    /* Other than pprof's is_folded. */
    uint64_t FP_COUNT(location_attributes, "frame-attributes", not_representable,
                      "attribute(s) of (a location|locations) (frame type(s) ...)");
    uint64_t dropped_attributes;
    uint64_t FP_COUNT(profile_ids, "profile-ids", not_representable, "profile id(s)");
    uint64_t FP_COUNT(payloads, "original-payloads", not_representable, "original payload(s)");
    uint64_t FP_COUNT(schema_urls, "schema-urls", not_representable, "schema URL(s)");
    uint64_t FP_COUNT(unknown_fields, "unknown-fields", not_representable, "unknown field(s)");
    uint64_t FP_COUNT(other_periods, "other-periods", not_representable,
                      "period(s) that (differs|differ) from the first");
    uint64_t FP_COUNT(wide_lines, "wide-line-numbers", not_representable, "line number(s) beyond 32 bits");
    uint64_t FP_COUNT(negative_lines, "negative-line-numbers", not_representable, "negative line number(s)");
    /* lenient: losses */
    uint64_t FP_COUNT(bad_samples, "damaged-samples", losses, "damaged sample(s)");
    uint64_t FP_COUNT(bad_entries, "damaged-entries", losses, "damaged table (entry|entries)");
    uint64_t FP_COUNT(bad_references, "dangling-references", losses, "dangling reference(s)");
};

/* Statistics of samples, from which the layout is guessed. */
struct fp_otlp_evidence {
    uint64_t n_old, n_new;      /* samples that only 1.8 and 1.9, or only 1.10, can have */
    uint64_t n_open, n_timed;   /* other samples with field 2; of these with timestamps */
    uint64_t n_unequal;         /* of the timed ones, with more or fewer numbers than timestamps */
    uint64_t largest, smallest; /* numbers in field 2 */
    uint64_t least_attributes;  /* of a message */
    uint64_t n_profiles_1_8, n_profiles_1_9;
};

struct fp_otlp_message {
    uint64_t start, end; /* absolute */
    int32_t has_dictionary, has_resources;
};

/* An attribute.  Values that become text (a double, an array ...) are `raw`: the caller sets `string` between
 * fp_otlp_resolve_strings and fp_otlp_resolve. */
enum fp_otlp_value { FP_OTLP_NOTHING = 0, FP_OTLP_TEXT, FP_OTLP_INDEX, FP_OTLP_NUMBER, FP_OTLP_RAW };

struct fp_otlp_attribute {
    uint64_t at;
    uint64_t key, unit; /* indices into the string table; after resolving, strings of the model */
    uint64_t raw;       /* RAW: offset in r->raw of an AnyValue.  INDEX: into the string table */
    int64_t number;     /* NUMBER; RAW: bytes */
    uint32_t string;    /* TEXT: of the model */
    uint8_t kind;       /* enum fp_otlp_value */
    uint8_t has_key;    /* the key is a string of the model already */
    uint8_t odd;        /* the value is neither text nor an integer, and not counted yet */
};

/* Indices into the string table. */
struct fp_otlp_value_type {
    uint64_t type, unit;
};

struct fp_otlp_profile {
    uint64_t at;
    uint64_t start, end; /* of its fields, absolute */
    struct fp_otlp_value_type type, period_type;
    uint64_t time, duration;
    int64_t period;
    uint32_t first, n;             /* its attributes, in r->lists */
    uint32_t comments, n_comments; /* 1.8: in r->lists */
    uint32_t scope, column;
    uint8_t has_period_type;
};

/* Strings of the model that the reader needs; set by the caller. */
struct fp_otlp_words {
    uint32_t process_pid, thread_id, trace_id, span_id, scope_name, scope_version, value, zero, yes, no;
    uint32_t gnu, go, is_folded, has_functions, has_filenames, has_inline_frames, has_line_numbers;
    uint32_t comment, doc_url, drop_frames, keep_frames, default_sample_type, sample_type_order;
};

/* Labels that all samples of a profile share. */
struct fp_otlp_base {
    uint32_t chain, pid, tid;
};

/* What the current message holds. */
struct fp_otlp_contents {
    struct fp_otlp_attribute *attributes; /* the table */
    struct fp_otlp_attribute *own;        /* of resources and scopes */
    uint32_t n_attributes, n_own;
    struct fp_otlp_profile *profiles;
    uint32_t n_profiles;
    uint32_t *lists; /* indices into a table: of attributes, locations of a stack, or strings (1.8's comments) */
    struct fp_buf raw;
    uint32_t *raws; /* RAW attributes: 2 * index, + 1 for those of `own` */
    uint32_t n_raws;
};

/* pprof's fields, strings of the model or, `comments`, attributes with an array; reset by the caller. */
struct fp_otlp_pprof {
    uint32_t doc_url, drop_frames, keep_frames, default_sample_type;
    uint32_t *comments; /* attributes */
    uint32_t n_comments;
    int32_t has_period;
    int64_t period;
    uint32_t period_type, period_unit;
};

/* cffi-end */

#include "otlp/state.h"

/* cffi-begin guarded */

struct fp_otlp_reader {
    struct fp_model *model;
    struct fp_otlp_words words;
    struct fp_otlp_walk walk;
    struct fp_otlp_stats stats;
    struct fp_otlp_evidence evidence;
    uint32_t input; /* number of the input, for threads */
    int32_t lenient;
    int32_t layout; /* enum fp_otlp_layout */
    int32_t guessed;
    struct fp_otlp_message *messages;
    uint32_t n_messages;
    uint64_t first_time, last_time; /* of profiles: the first start and the last end; 0: none */
    uint64_t longest;               /* duration of a profile without a start */
    struct fp_table types;          /* row k + 1: name and unit of value column k */
    struct fp_otlp_contents current;
    struct fp_otlp_pprof pprof;
    /* rows */
    uint32_t first, n_chosen; /* profiles that are read at the same time */
    uint32_t waiting;         /* FP_MORE: the number among these whose window needs bytes */

    /* private from here on */
    struct fp_otlp_caps caps;
    struct fp_otlp_scan_state scan;
    struct fp_otlp_tables tables;
    struct fp_otlp_rows_state rows;
};

/* Borrows the model; the caller owns the reader. */
struct fp_otlp_reader *fp_otlp_reader_new(struct fp_model *model, int lenient);
void fp_otlp_reader_free(struct fp_otlp_reader *r);

/* Whether a file that begins with these bytes may be an OTLP profile.  1 or 0. */
int fp_otlp_sniff(const uint8_t *p, size_t n);

/* Begins a pass: the scan covers the whole input, tables a message, rows the profiles of this message. */
enum fp_otlp_pass { FP_OTLP_SCAN = 0, FP_OTLP_TABLES = 1, FP_OTLP_ROWS = 2 };
void fp_otlp_begin(struct fp_otlp_reader *r, int pass);

/* FP_MORE, FP_DONE or an error. */
int fp_otlp_scan(struct fp_otlp_reader *r, struct fp_window *in, struct fp_err *err);
int fp_otlp_tables(struct fp_otlp_reader *r, struct fp_window *in, struct fp_err *err);

/* 0 or an error. */
int fp_otlp_scanned(struct fp_otlp_reader *r, struct fp_err *err);
int fp_otlp_resolve_strings(struct fp_otlp_reader *r, struct fp_err *err);
int fp_otlp_resolve(struct fp_otlp_reader *r, struct fp_err *err);

/* Chooses the next profiles of the message; the caller sets their windows to their first bytes, or none.  How many: 0
 * after the last one. */
int fp_otlp_choose(struct fp_otlp_reader *r);

/* The window of the k-th chosen profile. */
struct fp_window *fp_otlp_window(struct fp_otlp_reader *r, uint32_t k);

/* Adds a row per timestamp of a sample, or a single one.  FP_MORE: the window of profile `waiting` needs bytes;
 * FP_FULL, FP_DONE or an error. */
int fp_otlp_feed(struct fp_otlp_reader *r, struct fp_batch *out, struct fp_err *err);
