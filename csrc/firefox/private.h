/* firefox/private.h - the functions of tables.c that write.c uses.  Private. */
#pragma once

#include "firefox/write.h"

/* Room for n bytes at the end of a column. */
uint8_t *fp_firefox_more_room(struct fp_firefox *w, uint32_t column, size_t n);
static inline uint8_t *fp_firefox_room(struct fp_firefox *w, uint32_t column, size_t n) {
    const struct fp_buf *b = &w->columns[column];
    return FP_LIKELY(b->n && b->cap - b->n >= n) ? b->p + b->n : fp_firefox_more_room(w, column, n);
}

/* The bytes up to `end` are now part of the column. */
static inline void fp_firefox_grown(struct fp_firefox *w, uint32_t column, const uint8_t *end) {
    struct fp_buf *b = &w->columns[column];
    const size_t n = (size_t)(end - b->p);
    w->buffered += n - b->n;
    b->n = n;
}

/* Appends a number, or `none` where it is negative. */
void fp_firefox_item(struct fp_firefox *w, uint32_t column, int64_t number, const char *none);

/* The index of a string of the model. */
int64_t fp_firefox_string(struct fp_firefox *w, uint32_t string);

/* The index + 1 of a stack in the output.  fp_firefox_path, for a timeline: of a function
 * called from `prefix`, a stack + 1 (0: no caller).  fp_firefox_stack: of a stack of the model.  fp_firefox_remember:
 * the path to such a stack, for when the model has removed its stacks. */
uint32_t fp_firefox_path(struct fp_firefox *w, uint32_t prefix, uint32_t function);
uint32_t fp_firefox_stack(struct fp_firefox *w, uint32_t stack);
void fp_firefox_remember(struct fp_firefox *w, uint32_t stack);
