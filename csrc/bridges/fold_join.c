#include <stdlib.h>

#include "bridges/fold_private.h"

/* The threads of a timeline divided among several folds (shards), each of which sees only the rows of its own.
 *
 *   shard 0: thread 2: enter a 10, exit a 60      shard 1: threads 1, 3: enter a 5, exit a 15; enter a 0, exit a 9
 *   arcs, merged by the caller: (-> a) 3 calls, 69 ticks      joined: 3 calls, times 0 to 60
 */

/* Groups are numbered as they come, in each shard by itself. */
static int join_groups(struct fp_fold *f, struct fp_fold *shard) {
    const uint32_t n = shard->groups.n;
    free(shard->group_as);
    shard->group_as = calloc((size_t)n + 1, sizeof *shard->group_as);
    if (!shard->group_as) return FP_E_NOMEM;
    for (uint32_t i = 1; i < n; i++) { /* 0 is 0 in all of them */
        shard->group_as[i] = fp_table_intern(&f->groups, fp_table_row(&shard->groups, i));
        if (shard->group_as[i] == FP_NO_ID) return FP_E_NOMEM;
    }
    return 0;
}

int fp_fold_join(struct fp_fold *f, struct fp_fold *shard, struct fp_err *err) {
    f->stats.calls += shard->stats.calls;
    f->stats.orphan_exits += shard->stats.orphan_exits;
    f->stats.unwound += shard->stats.unwound;
    f->stats.unfinished += shard->stats.unfinished;
    f->stats.clamped += shard->stats.clamped;
    f->stats.events += shard->stats.events;
    f->stats.arguments += shard->stats.arguments;
    for (uint32_t i = 0; i < shard->n_threads; i++) {
        const struct fp_fold_thread *t = &shard->threads[i];
        if (!t->seen) continue;
        f->threads[i].seen = 1;
        f->threads[i].first = t->first;
        f->threads[i].last = t->last;
    }
    int overflowed = 0;
    for (uint32_t i = 0; i < shard->n_functions; i++) {
        f->by_function[i].entered |= shard->by_function[i].entered;
        if (shard->inclusive)
            overflowed |= __builtin_add_overflow(f->inclusive[i], shard->inclusive[i], &f->inclusive[i]);
    }
    if (overflowed) return fp_fold_fail_too_long(f, err);
    return join_groups(f, shard) ? fp_fail(err, FP_E_NOMEM, 0, "the table of threads") : FP_DONE;
}
