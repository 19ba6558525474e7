/* heapprofile/read.h - a sampling heap profile of V8 (.heapprofile) -> rows of stacks.
 *
 *   {"head":{"callFrame":{"functionName":"(root)",...},"selfSize":0,"id":1,"children":[
 *     {"callFrame":{"functionName":"f","url":"a.js","lineNumber":2,"columnNumber":8},"selfSize":65856,"id":2,
 *      "children":[]}]},
 *    "samples":[{"size":65856,"nodeId":2,"ordinal":1}]}
 *
 * Each node is a stack.  In older profiles it has the fields of its call frame itself.  The members of a node come in
 * any order, so nodes are kept and become rows at the end.
 *
 * Memory: linear in nodes.
 */
#pragma once

#include "core/core.h"

struct fp_heapprofile {
    uint64_t n_nodes;
    uint64_t samples; /* single allocations; nodes have the sums of their sizes */
    uint64_t FP_COUNT(broken, "broken-nodes", losses, "node(s) whose size(s) could not be read");
    int32_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_heapprofile *fp_heapprofile_new(struct fp_model *model, int lenient);
void fp_heapprofile_free(struct fp_heapprofile *h);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has one value column. */
int fp_heapprofile_feed(struct fp_heapprofile *h, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
