/* ends/groups.h - groups samples by values of their labels, and by their functions and threads.
 *
 *     f {host: a, size: 8} 5,  f {size: 9, host: a} 2,  g {host: b} 1        by host:            a 7, b 1
 *                                                                            by host, function:  a f 7, b g 1
 *
 * Stacks can be kept within their groups: main > f becomes a > main > f or, with functions, a main > a f.
 */
#pragma once

#include "core/core.h"

/* Pairs on the way outwards, innermost first. */
struct fp_groups_way {
    uint32_t *pairs, n, cap;
};

struct fp_groups {
    struct fp_model *model;
    struct fp_table
        groups; /* label chain with the keys alone, in their order; function of the sample, or 0; thread, or 0 */
    /* private from here on */
    uint32_t *keys, n_keys; /* strings */
    int32_t functions;      /* whether functions are distinguished */
    int32_t threads;        /* and threads */
    uint32_t *chain;        /* by label chain: 1 + that with the keys alone, 0 = not known yet */
    uint32_t cap_chain;
    uint32_t *function; /* by frame: 1 + its innermost function */
    uint32_t cap_function;
    uint32_t *ids; /* of the rows of a batch */
    uint32_t cap_ids;
    struct fp_buf name;
    struct fp_table within; /* 4 * group + kind (stack, frame, line chain, function), its id */
    uint32_t *to;           /* by these pairs: what it is within the group; 0 = not known yet */
    uint32_t cap_to, n_emptied;
    struct fp_groups_way stacks, lines;
};

/* Borrows the model. */
struct fp_groups *fp_groups_new(struct fp_model *model, const uint32_t *keys, uint32_t n_keys, int functions,
                                int threads);
void fp_groups_free(struct fp_groups *g);

/* The group of each row of a stacks batch: rows of `groups`, valid until the next call.  NULL after an error, which is
 * in `err`: FP_E_MALFORMED (an id that the model does not have). */
const uint32_t *fp_groups_ids(struct fp_groups *g, const struct fp_batch *b, struct fp_err *err);

/* Replaces the stack of each row by that of its group, and removes the labels.  `b` is the batch of the last
 * fp_groups_ids; `stacks` has one for each group. */
void fp_groups_replace(const struct fp_groups *g, struct fp_batch *b, const uint32_t *stacks);

/* Replaces the stack of each row by the same stack within its group, and removes the labels.  `b` is the batch of the
 * last fp_groups_ids; groups without functions.  By group: `roots` are frames that become the outermost ones; if it is
 * NULL, `prefixes` are strings that go before the names of functions.  0 or FP_E_MALFORMED. */
int fp_groups_within(struct fp_groups *g, struct fp_batch *b, const uint32_t *roots, const uint32_t *prefixes,
                     struct fp_err *err);
