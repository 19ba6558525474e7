/* small_json/read.h - profiles in JSON that need few lines each -> rows.
 *
 * Scalene: {"elapsed_time_sec":1.7,"files":{"/srv/a.py":{"functions":[{"line":"f","lineno":1}],
 *            "lines":[{"lineno":2,"start_function_line":1,"n_cpu_percent_python":9.5,"n_malloc_mb":0.5}]}}}
 *          A line becomes a cost of the function that begins at `start_function_line`.
 * GHC:     {"tick_interval":1000,"cost_centres":[{"id":7,"label":"fib","module":"Main","src_loc":"fib.hs:4:1-64"}],
 *           "profile":{"id":7,"entries":9,"alloc":80,"ticks":2,"children":[]}}
 *          A node becomes a stack.
 *
 * Memory: Scalene: 4 bytes for each line of the longest file.  GHC: the depth of the tree, and cost centres.
 */
#ifndef FP_SMALL_JSON_READ_H
#define FP_SMALL_JSON_READ_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin guarded */

enum { FP_SMALL_SCALENE, FP_SMALL_GHC };
enum { FP_SMALL_VALUES = 5 }; /* columns of Scalene; GHC has 3 */

struct fp_small_json {
    int64_t elapsed_ns; /* Scalene */
    uint64_t FP_COUNT(broken, "broken-records", losses, "line or cost centre that could not be read",
                      "lines or cost centres that could not be read");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_small_json *fp_small_json_new(struct fp_model *model, int format, int lenient);
void fp_small_json_free(struct fp_small_json *s);

/* FP_MORE, FP_FULL, FP_DONE or an error.  A batch of Scalene is a graph, one of GHC has stacks. */
int fp_small_json_feed(struct fp_small_json *s, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
