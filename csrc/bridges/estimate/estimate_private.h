/* bridges/estimate/estimate_private.h - shared by the estimate's files.  Private.
 *
 *   estimate.c         the functions for Python
 *   estimate_sums.c    sums of costs by place, and of calls by place and callee
 *   estimate_flow.c    the call graph: arcs, inclusive costs and cycles
 *   estimate_walk.c    the contexts: from the roots along the arcs
 *   estimate_rows.c    the rows: the details that fit, costs divided over contexts
 */
#pragma once

#include <math.h>

#include "bridges/estimate/estimate.h"

/* ---- sums ---- */

/* A place in a stack, at the granularity of the estimate; the rest is 0. */
struct fp_estimate_place {
    uint64_t address;
    uint32_t function;
    uint32_t file;
    uint32_t line;
    uint32_t callee; /* 0: a self cost */
};

/* `callee` of a function's self costs that were summed up. */
enum { FP_ESTIMATE_REST = FP_NO_ID };

enum { FP_ESTIMATE_SLOTS = 1 << 12 };

/* Sums of values by place.  A graph's rows come in blocks of one function, so a place is searched only among recent
 * ones (`slots`) and may be stored several times.  fp_estimate_sums_squeeze merges these, in the order of functions.
 *
 * No more than `most` places would be written.  Beyond that, the end of each block merges cheap places: all places of a
 * function below `prune` of the total so far; in other functions, places below half of that. */
struct fp_estimate_sums {
    const struct fp_model *model;
    const char *what; /* for errors */
    double prune;     /* 0: nothing is summed up */
    uint32_t most;
    struct fp_estimate_place *places;
    int64_t *values; /* of place i: values[i * width ..] */
    uint32_t width;
    uint32_t n, cap;
    size_t place_bytes, value_bytes; /* of the two arrays (core/memory.h) */
    uint32_t limit;                  /* places at which they are squeezed */
    double *totals;                  /* by column: sum of the magnitudes, of all blocks but the last */
    double *scale;                   /* by column: the share of one unit in the whole, on average over the columns */
    int32_t squeezed;
    uint32_t block, block_first; /* the current function, and the first of its places */
    uint32_t fresh;              /* 1: the function had no places before this block, so these are probably distinct */
    uint32_t n_fresh;            /* such places, roughly a lower bound of distinct ones */
    /* between fp_estimate_sums_begin and fp_estimate_sums_pause: */
    uint8_t *seen; /* by function: has places */
    uint32_t cap_seen;
    uint32_t *slots; /* FP_ESTIMATE_SLOTS */
    /* in fp_estimate_sums_squeeze: */
    struct fp_estimate_sums *next; /* the squeezed ones */
    struct sums_entry *entries;
    uint32_t cap_entries;
};

static inline int64_t *fp_estimate_sums_values(const struct fp_estimate_sums *s, uint32_t place) {
    return s->values + (size_t)place * s->width;
}

static inline double fp_estimate_magnitude(int64_t v) {
    return fabs((double)v);
}

struct fp_estimate_sums *fp_estimate_sums_new(const struct fp_model *m, const char *what);
void fp_estimate_sums_free(struct fp_estimate_sums *s);

/* Adds columns; the last `moved` ones stay last. */
void fp_estimate_sums_widen(struct fp_estimate_sums *s, uint32_t width, uint32_t moved);

static inline int fp_estimate_same(const struct fp_estimate_place *a, const struct fp_estimate_place *b) {
    return a->address == b->address && a->function == b->function && a->file == b->file && a->line == b->line &&
           a->callee == b->callee;
}

/* Call begin before adding places, and pause, which keeps only the sums, while other profiles are
 * read. */
void fp_estimate_sums_begin(struct fp_estimate_sums *s);
void fp_estimate_sums_pause(struct fp_estimate_sums *s);

/* After the last use of the sums: frees them, so that only their places are left. */
void fp_estimate_sums_keep_places(struct fp_estimate_sums *s);

/* Adds a place that is not in `slot`. */
uint32_t fp_estimate_sums_add(struct fp_estimate_sums *s, const struct fp_estimate_place *p, uint32_t *slot);

/* The index of the place's sums. */
static inline uint32_t fp_estimate_sums_place(struct fp_estimate_sums *s, const struct fp_estimate_place *p) {
    const uint32_t mixed = (p->line + (uint32_t)p->address) * 0x9e3779b1u ^ (p->file + p->callee) * 0x85ebca6bu ^
                           p->function * 0xc2b2ae35u;
    uint32_t *slot = &s->slots[mixed >> 20]; /* the 12 highest bits */
    return FP_LIKELY(*slot < s->n) && fp_estimate_same(&s->places[*slot], p) ? *slot : fp_estimate_sums_add(s, p, slot);
}

/* Merges equal places, ordered by function.  0 or FP_E_OVERFLOW. */
int fp_estimate_sums_squeeze(struct fp_estimate_sums *s, struct fp_err *err);

/* The share of these values in the totals, on average over the columns. */
double fp_estimate_sums_share(const int64_t *values, const double *scale, uint32_t n_values);

/* Sums the places from `first` to `end`, all of one function, that cost less than `cut`.  The sum has the function's
 * file and no line.  Sums that would pass 64 bits are skipped.  Returns the new end. */
uint32_t fp_estimate_sums_fold(struct fp_estimate_sums *s, uint32_t first, uint32_t end, double cut);

/* ---- flow ---- */

struct fp_estimate_arc {
    double share;  /* its part of the callee's cost */
    double weight; /* the same times the callee's share of the total */
    double cost;   /* its own share of the total */
    uint32_t caller, callee;
    uint32_t place; /* of the sums of arcs */
};

/* A function with its callers. */
struct fp_estimate_context {
    double share;
    uint32_t parent; /* FP_NO_ID: none */
    uint32_t arc;    /* FP_NO_ID: a root; after the walk, of arc_places */
    uint32_t function;
    uint32_t next;    /* while walking: of the same function; then: of the same parent */
    uint16_t depth;   /* at most FP_ESTIMATE_DEPTH */
    uint8_t is_left;  /* under [pruned]: only its nearest callers are known */
    uint8_t is_shown; /* by a row */
    uint32_t child;   /* FP_NO_ID: none */
};

struct fp_estimate_flow {
    uint32_t n_functions;
    uint32_t primary; /* the value whose shares divide; n_values: call counts */
    struct fp_estimate_arc *arcs;
    uint32_t n_arcs;
    uint32_t *arcs_start; /* by caller */
    uint32_t *own_start;  /* by function: of the sums of self costs */
    uint32_t *n_callers;  /* by function: arcs into it */
    double *cost;         /* by function: its inclusive cost, as a share of the total */
    double *uncalled;     /* by function: the share of its cost that has no caller */
    double *entered;      /* by function of a cycle: the share of its cost that comes from outside of it */
    uint32_t *order;      /* functions, callees before callers, those of a cycle adjacent */
    uint32_t *component;  /* by function: the position in `order` of the first function of its cycle */
    /* the contexts */
    struct fp_estimate_context *contexts;
    uint32_t n_contexts, cap_contexts;
    uint32_t *first; /* by function: the last context found; FP_NO_ID: none */
    /* after the walk: the arcs that have contexts */
    struct fp_estimate_place *arc_places;
    uint8_t *arc_is_shown; /* by a row */
    uint32_t n_arc_places;
};

/* Makes e->flow.  The sums are squeezed; those of arcs are freed, without their places. */
void fp_estimate_flow_make(struct fp_estimate *e);
/* After the walk: keeps the contexts and the places of their arcs, and frees everything else that rows do not need. */
void fp_estimate_flow_keep_contexts(struct fp_estimate *e);
void fp_estimate_flow_free(struct fp_estimate_flow *f);

/* Whether the function has costs or calls.  The model's other functions belong to other graphs. */
static inline int fp_estimate_flow_has_rows(const struct fp_estimate_flow *f, uint32_t function) {
    return f->own_start[function] < f->own_start[function + 1] || f->arcs_start[function] < f->arcs_start[function + 1];
}

/* Finds all contexts; raises e->prune when there are too many. */
void fp_estimate_flow_walk(struct fp_estimate *e, uint32_t callers);

/* ---- rows ---- */

/* Divides costs over the contexts and decides which details fit. */
void fp_estimate_rows_make(struct fp_estimate *e);
void fp_estimate_rows_free(struct fp_estimate_rows *r);
int fp_estimate_rows_pull(struct fp_estimate *e, uint32_t thread, struct fp_batch *out);
