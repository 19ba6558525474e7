#include "bridges/fold/fold_private.h"

/* Divides the threads of a timeline among several folds, each of which folds only the rows of its share.
 *
 *   share 0: thread 2: enter a 10, exit a 60      share 1: threads 1, 3: enter a 5, exit a 15; enter a 0, exit a 9
 *   arcs, merged by the caller: (-> a) 3 calls, 69 ticks      joined: 3 calls, times 0 to 60
 */

/* Each fold numbers its groups in order of appearance. */
static void join_groups(struct fp_fold *f, struct fp_fold *other) {
    const uint32_t n = other->groups.n;
    free(other->group_as);
    other->group_as = NULL;
    other->group_as = fp_have(calloc((size_t)n + 1, sizeof *other->group_as));
    for (uint32_t i = 1; i < n; i++) /* 0 is the same in all of them */
        other->group_as[i] = fp_table_intern(&f->groups, fp_table_row(&other->groups, i));
}

int fp_fold_join(struct fp_fold *f, struct fp_fold *other, struct fp_err *err) {
    f->stats.calls += other->stats.calls;
    f->stats.orphan_exits += other->stats.orphan_exits;
    f->stats.unwound += other->stats.unwound;
    f->stats.unfinished += other->stats.unfinished;
    f->stats.clamped += other->stats.clamped;
    f->stats.events += other->stats.events;
    f->stats.arguments += other->stats.arguments;
    f->stats.cpus |= other->stats.cpus;
    for (uint32_t i = 0; i < other->n_threads; i++) {
        const struct fp_fold_thread *t = &other->threads[i];
        if (!t->seen) continue;
        f->threads[i].seen = 1;
        f->threads[i].first = t->first;
        f->threads[i].last = t->last;
    }
    int overflowed = 0;
    for (uint32_t i = 0; i < other->n_functions; i++) {
        f->by_function[i].entered |= other->by_function[i].entered;
        for (size_t k = 2 * (size_t)i; other->inclusive && k < 2 * (size_t)i + 2; k++)
            overflowed |= __builtin_add_overflow(f->inclusive[k], other->inclusive[k], &f->inclusive[k]);
    }
    if (overflowed) return fp_fold_fail_too_long(f, err);
    if (other->durations) fp_durations_join(f->durations, other->durations);
    join_groups(f, other);
    return FP_DONE;
}
