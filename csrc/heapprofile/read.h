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
#ifndef FP_HEAPPROFILE_READ_H
#define FP_HEAPPROFILE_READ_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/json_lex.h"
#include "core/model.h"

/* cffi-begin */

struct fp_heapprofile {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint64_t n_nodes;
    uint64_t samples; /* single allocations; nodes have the sums of their sizes */
    uint64_t FP_COUNT(broken, "broken-nodes", losses, "node whose size could not be read",
                      "nodes whose sizes could not be read");
    int32_t FP_COUNT(bad_end, "unreadable-rest");

    /* private from here on */
    struct fp_json json;
    struct fp_buf scratch;
    struct fp_heapprofile_node {
        int64_t size; /* -1: not read yet */
        int64_t line, column;
        uint32_t parent, name, url, stack;
        uint32_t has_frame;
    } *nodes; /* the first one is the parent of the root */
    uint32_t n, cap, open;
    uint8_t key, within[8194]; /* by depth: the kind of the container */
    int32_t over, has_head;
    uint32_t next; /* of the rows */
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_heapprofile *fp_heapprofile_new(struct fp_model *model, int lenient);
void fp_heapprofile_free(struct fp_heapprofile *h);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has one value column. */
int fp_heapprofile_feed(struct fp_heapprofile *h, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
