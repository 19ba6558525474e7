/* perfetto/write.h - a timeline as a Perfetto trace: TrackEvents.
 *
 * The calls of a timeline must nest, and its times are nanoseconds (bridges/rows/nest.h).  Each thread has its own
 * packet sequence, so packets need no track, and their times are differences to the previous one:
 *
 *   0a 19                          packet
 *     40 05                        timestamp: 5 ns after the sequence's last one
 *     50 02                        trusted_packet_sequence_id: thread 1
 *     68 02                        sequence_flags: needs the state of the sequence
 *     62 09 12 07 08 05 12 03 ...  interned_data: event name 5 is "foo"; only when it occurs for the first time
 *     5a 04 48 01 50 05            track_event: BEGIN of the name 5
 *   0a 0a 40 .. 50 02 68 02 5a 02 48 02            its END
 *
 * A counter (core/counter_value.h) has a track of its own, below that of its thread.
 *
 * Calls of functions that have a category (fp_model_category) name it, by its iid in the sequence, too.
 *
 * Memory: linear in the model's functions, in counters, and in threads times functions that they call (a bit each).
 * Source: google/perfetto protos/perfetto/trace, 2026-08.
 */
#pragma once

#include "core/core.h"

/* The maximum depth of calls in the trace processor.  It drops the begins of deeper ones, but not their ends, which
 * then end other calls. */
enum { FP_PERFETTO_DEPTH = 512 };

struct fp_perfetto {
    const struct fp_model *model; /* borrowed */
    uint32_t new_thread;          /* after FP_NEEDS: the thread to call fp_perfetto_begin for */
    uint32_t row;                 /* of the batch: the first row not written */
    /* counters: written, dropped, changed */
    uint64_t calls, events, arguments;
    uint64_t deep; /* calls and events dropped because of FP_PERFETTO_DEPTH */
    uint64_t FP_COUNT(not_utf8, "invalid-utf8", not_representable, "non-UTF-8 name(s), repaired");
    /* private from here on */
    struct fp_perfetto_thread *threads; /* by id */
    uint32_t cap_threads;
    struct fp_buf packet, name;
    struct fp_strings counters; /* thread and name */
    struct fp_utf8_names texts; /* names as UTF-8 */
    struct fp_buf scratch;
    /* A call whose arguments may follow: `caller` is its thread + 1, 0 = none. */
    uint32_t caller, function;
    uint64_t time;
    uint64_t *values;
    uint32_t n_values, cap_values;
    uint32_t *categories; /* by function: fp_model_category + 1, 0 = not known yet */
    uint32_t cap_categories;
};

/* Borrows the model. */
struct fp_perfetto *fp_perfetto_new(const struct fp_model *model);
void fp_perfetto_free(struct fp_perfetto *w);

/* Writes the descriptors of a process, numbered from 1, and of a thread in it.  Names are UTF-8.  Writing a
 * thread again renames it; a process keeps its first name. */
int fp_perfetto_process(uint32_t process, int32_t pid, const char *name, size_t n, struct fp_buf *out);
int fp_perfetto_thread(uint32_t thread, uint32_t process, int32_t pid, int64_t tid, const char *name, size_t n,
                       struct fp_buf *out);

/* Begins the sequence of a thread; call once. */
int fp_perfetto_begin(struct fp_perfetto *w, uint32_t thread, struct fp_buf *out);

/* Writes the rows of a batch from w->row on, which the caller sets to 0.  FP_NEEDS for a new thread: write its
 * descriptor and call again.  FP_FULL: drain `out` and call again.  FP_DONE or FP_E_NOMEM. */
int fp_perfetto_put(struct fp_perfetto *w, const struct fp_batch *b, struct fp_buf *out);

/* Writes the call still held back. */
int fp_perfetto_end(struct fp_perfetto *w, struct fp_buf *out);
