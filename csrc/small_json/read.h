/* small_json/read.h - profiles in JSON that need few lines each -> rows.
 *
 * Scalene: {"elapsed_time_sec":1.7,"files":{"/srv/a.py":{"functions":[{"line":"f","lineno":1}],
 *            "lines":[{"lineno":2,"start_function_line":1,"n_cpu_percent_python":9.5,"n_malloc_mb":0.5}]}}}
 *          A line becomes a cost of the function that begins at `start_function_line`.
 * GHC:     {"tick_interval":1000,"cost_centres":[{"id":7,"label":"fib","module":"Main","src_loc":"fib.hs:4:1-64"}],
 *           "profile":{"id":7,"entries":9,"alloc":80,"ticks":2,"children":[]}}
 *          A node becomes a stack.
 * pyinstrument: {"frame_records":[[["Main\0<thread>\07","f\0a.py\01\1l2"],0.001]]}, or
 *           {"root_frame":{"function":"f","file_path":"a.py","line_no":1,"time":0.5,"children":[]}}
 *          A record, or a frame of the tree, becomes a stack.
 * StackProf, in JSON or as a dump of Ruby (core/marshal.h):
 *           {"mode":"cpu","interval":1000,"frames":{"9":{"name":"f","file":"a.rb","line":1,"samples":3,
 *            "edges":{"8":2},"lines":{"2":[5,3]}}},"raw":[2,8,9,3],"raw_sample_timestamps":[7,8,9]}
 *          A run of `raw`, the number of its frames, these, outermost first, and samples, becomes a stack; without
 *          `raw`, frames become costs, and edges become calls.
 * Safari:  {"version":1,"recording":{"sampleStackTraces":[{"timestamp":4.5,"stackFrames":[{"name":"f","line":20,
 *           "column":15,"url":"a.js","expressionLocation":{"line":22,"column":19}}]}],"sampleDurations":[0.001]}}
 *          Frames come innermost first; a sample costs the duration of the same index.
 *
 * Memory: Scalene: 4 bytes for each line of the longest file, and for each of its functions.  GHC: the depth of the
 * tree, and cost centres.  pyinstrument: frames, or the depth of the tree.  StackProf: frames and edges, 8 bytes for
 * each sample with a time.  Safari: 12 bytes a sample.
 */
#pragma once

#include "core/core.h"

enum { FP_SMALL_SCALENE, FP_SMALL_GHC, FP_SMALL_PYINSTRUMENT, FP_SMALL_STACKPROF, FP_SMALL_SAFARI };
enum { FP_SMALL_VALUES = 5 }; /* columns of Scalene; GHC has 3 */

struct fp_small_json {
    int64_t elapsed_ns; /* Scalene, pyinstrument */
    /* pyinstrument */
    int64_t start_ns, cpu_ns; /* -1: unknown */
    int32_t is_tree;          /* known after FP_NEEDS */
    uint32_t target;          /* a string */
    uint32_t input, n_threads;
    /* StackProf */
    int32_t is_marshal, is_graph, only_times; /* set by the caller */
    uint32_t mode;                            /* a string */
    int64_t interval, samples, gc_samples, missed_samples;
    uint64_t FP_COUNT(broken, "broken-records", losses, "record(s) that could not be read");
    uint64_t FP_COUNT(records, "timeline-records", not_representable, "record(s) of (another|other) timeline(s)");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_small_json *fp_small_json_new(struct fp_model *model, int format, int lenient);
void fp_small_json_free(struct fp_small_json *s);

/* Begins the input again, with what is known. */
void fp_small_json_again(struct fp_small_json *s);

/* FP_MORE, FP_FULL, FP_DONE, an error, or FP_NEEDS: what precedes the rows is read, and the caller adds the part.  A
 * batch of Scalene, or of StackProf with is_graph, is a graph, others have stacks. */
int fp_small_json_feed(struct fp_small_json *s, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* pyinstrument: the name and the id of thread i from 1 up to n_threads, strings of the model. */
void fp_small_json_thread(const struct fp_small_json *s, uint32_t i, uint32_t *name, uint32_t *id);
