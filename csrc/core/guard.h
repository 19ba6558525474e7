/* core/guard.h - what happens when memory cannot be had: the call from Python ends.  C only.
 *
 * Code asks for memory without looking at the answer.  An allocation that fails leaves all functions in between with
 * longjmp, for the guard that was entered last, which returns FP_E_NOMEM (a function that makes something: NULL).
 * csrc/build_core.py sets a guard around each function that Python calls, but for those of headers with an unguarded
 * `cffi-begin`; Cython calls functions without a guard.
 *
 * So each of these functions may return FP_E_NOMEM or NULL, which their comments do not repeat, and code below a guard
 * keeps three rules:
 *
 *   - memory belongs to a struct that its `_free` function frees, or to the guard (fp_scratch), never to a local
 *     variable while more is requested
 *   - at each request, that struct is as `_free` expects it
 *   - what was made before may stay half done, because after FP_E_NOMEM only `_free` is called
 *
 * Without a guard the functions of core return FP_E_NOMEM, FP_NO_ID or NULL.
 */
#pragma once

#include <setjmp.h>

#include "core/fp.h"

/* Where to go.  Of one thread; guards nest. */
struct fp_guard {
    jmp_buf to;
    struct fp_guard *outer;
    void *made; /* by fp_made */
    struct fp_scratch *scratch;
};

/* Enters a guard and leaves it again.  Between the two:
 *
 *     if (setjmp(guard.to)) ... memory ran out ... */
void fp_guard_enter(struct fp_guard *g);
void fp_guard_leave(struct fp_guard *g);

/* Returns work(arg), called within a guard of its own, or FP_E_NOMEM: for a function whose struct on the stack owns
 * more than free() can free. */
int fp_guarded(int (*work)(void *arg), void *arg);

/* Memory, or the 2^32 ids of a table, ran out: jumps to the guard.  Without a guard it returns FP_E_NOMEM. */
int fp_escape(void);

/* Returns p, which is from an allocation; escapes if it is NULL. */
static inline void *fp_have(void *p) {
    if (FP_UNLIKELY(!p)) (void)fp_escape();
    return p;
}

/* n zeroed items of `width` bytes for use within the call from Python: freed by the guard, if not before. */
void *fp_scratch(size_t n, size_t width);
/* Frees what fp_scratch returned, and all that was requested since and not kept.  NULL does nothing. */
void fp_scratch_free(void *p);
/* Makes room for `need` items of `width` bytes in such memory, which is NULL or from this function; new items are not
 * initialized.  `array` is the address of the pointer to it, *cap its capacity in items. */
void fp_scratch_room(void *array, uint32_t *cap, uint64_t need, size_t width);
/* Takes p away from the guard and returns it: its new owner frees it with free(). */
void *fp_scratch_keep(void *p);

/* The struct that a function `NAME_new` makes, zeroed.  If a later allocation fails, the guard gives it to `NAME_free`,
 * which gets no NULL from there nor from Python.  So call it once, first, and not from a function that another `_new`
 * calls. */
void *fp_made(size_t nbytes);
