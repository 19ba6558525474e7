/* core/rows.h - rows of timelines, as readers of several formats add them.  C only. */
#pragma once

#include "core/batch.h"

/* Adds a row to a batch with room, and returns its index.  Its CPU and payload are 0. */
static inline uint32_t fp_add_row(struct fp_batch *out, uint32_t op, uint64_t time, uint32_t thread,
                                  uint32_t function) {
    const uint32_t i = out->n++;
    out->time[i] = time;
    out->thread[i] = thread;
    out->function[i] = function;
    out->op[i] = (uint8_t)op;
    out->cpu[i] = 0;
    out->aux[i] = 0;
    return i;
}
