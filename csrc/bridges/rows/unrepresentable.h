/* bridges/rows/unrepresentable.h - counts the entries of a model that some targets cannot represent. */
#pragma once

#include "core/core.h"

struct fp_unrepresentable {
    uint64_t objects;      /* functions with an object */
    uint64_t first_lines;  /* functions with a first line */
    uint64_t places;       /* functions with an object, a file or a first line */
    uint64_t call_places;  /* functions with a program as object, a file or a first line */
    uint64_t system_names; /* functions whose symbol has another name */
    uint64_t inlined;      /* line entries of code that is inlined into other code */
    uint64_t columns;      /* line entries with a column */
    uint64_t build_ids;    /* objects with a build id */
    uint64_t mappings;     /* mapped objects with addresses */
    uint64_t addresses;    /* frames with an address */
};

/* Counts the entries of all tables, each once. */
void fp_unrepresentable_count(const struct fp_model *m, struct fp_unrepresentable *to);

/* Whether a row of a batch of a timeline or of stacks has a thread. */
int fp_unrepresentable_has_thread(const struct fp_batch *b);

/* Sets seen[id] for the threads of a batch's rows whose ids are below `n`. */
void fp_unrepresentable_threads(const struct fp_batch *b, uint8_t *seen, uint32_t n);

/* The number of rows of a timeline batch on a CPU other than 0. */
uint32_t fp_unrepresentable_cpus(const struct fp_batch *b);
