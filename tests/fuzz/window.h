/* Shared by the fuzz targets of decoders: an input that is shown a few bytes at a time.  The memory around the window
 * is poisoned, so that reads of it are detected; that costs less than copying the window to a separate block. */
#pragma once

#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#include "core/buf.h"

enum { FORBIDDEN = 256 }; /* bytes before and after the window */

struct window {
    const uint8_t *data;
    size_t size, step, have; /* have: the end of the window */
    struct fp_window in;
};

/* The window after FP_MORE, or FP_FULL or FP_NEEDS; the first time after FP_MORE. */
static inline struct fp_window *show(struct window *w, int status) {
    if (w->in.eof && status == FP_MORE) abort(); /* at the end no more input can be requested */
    const size_t start = (size_t)w->in.base + w->in.pos, left = w->size - w->have;
    if (status == FP_MORE) w->have += w->step < left ? w->step : left;
    w->in = (struct fp_window){w->data + start, w->have - start, 0, start, w->have == w->size};
    const size_t before = start < FORBIDDEN ? start : FORBIDDEN, behind = w->size - w->have;
    ASAN_POISON_MEMORY_REGION(w->in.p - before, before);
    ASAN_POISON_MEMORY_REGION(w->data + w->have, behind < FORBIDDEN ? behind : FORBIDDEN);
    return &w->in;
}

/* Call after each `show` with the decoder's status. */
static inline void hide(const struct window *w, int status, const struct fp_err *err) {
    const size_t start = (size_t)w->in.base, before = start < FORBIDDEN ? start : FORBIDDEN, behind = w->size - w->have;
    ASAN_UNPOISON_MEMORY_REGION(w->in.p - before, before);
    ASAN_UNPOISON_MEMORY_REGION(w->data + w->have, behind < FORBIDDEN ? behind : FORBIDDEN);
    if (w->in.pos > w->in.n) abort();
    if (status < 0 && err->offset > w->size) abort();
}

/* Shrinks a buffer to its content, so that reads beyond it are detected. */
static inline void trim(struct fp_buf *b) {
    uint8_t *exact = b->n ? realloc(b->p, b->n) : NULL;
    if (!exact) return;
    b->p = exact;
    b->cap = b->n;
}
