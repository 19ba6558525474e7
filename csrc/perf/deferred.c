/* Samples whose user frames follow later, in a separate record:
 *
 *   SAMPLE             chain: kernel frames, -640, cookie
 *   CALLCHAIN_DEFERRED cookie, n, -512 (user), user frames
 *
 * The sample then gets the chain: kernel frames, -512, user frames.
 */
#include "perf/private.h"

enum { MOST_WAITING = 4096 };

/* Replaces the last two words of a sample's chain by n bytes. */
static void finish(struct fp_perf_reader *r, struct fp_perf_deferred *d, const uint8_t *ips, uint32_t n) {
    struct fp_perf_sample s;
    if (fp_perf_parse(r, &r->events.list[d->event], d->p, d->n, &s) || s.n_chain < 2) return;
    const size_t before = (size_t)(s.chain - d->p) + 8 * ((size_t)s.n_chain - 2);
    const size_t after = d->n - before - 16;
    const uint64_t words = s.n_chain - 2 + n / 8;
    uint8_t *p = fp_have(malloc(before + n + after));
    memcpy(p, d->p, before);
    if (n) memcpy(p + before, ips, n);
    memcpy(p + before + n, d->p + before + 16, after);
    const uint64_t stored = r->swap ? __builtin_bswap64(words) : words;
    memcpy(p + (s.chain - d->p) - 8, &stored, 8);
    free(d->p);
    d->p = p;
    d->n = (uint32_t)(before + n + after);
    d->ready = 1;
    r->deferred.n_ready++;
}

int fp_perf_defer(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event,
                  const struct fp_perf_sample *s) {
    if (r->deferred.n == MOST_WAITING) { /* deliver it without user frames */
        r->counts.deferred_alone++;
        return 0;
    }
    fp_array_room(&r->deferred.list, &r->deferred.cap, (uint64_t)r->deferred.n + 1, sizeof *r->deferred.list);
    const uint64_t cookie = fp_u64s(s->chain + 8 * (s->n_chain - 1), r->swap);
    struct fp_perf_deferred *d = &r->deferred.list[r->deferred.n];
    *d = (struct fp_perf_deferred){.cookie = cookie, .tid = s->tid, .event = event, .n = n, .p = fp_have(malloc(n))};
    memcpy(d->p, p, n);
    r->deferred.n++;
    return 1;
}

void fp_perf_complete(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n) {
    const uint64_t cookie = fp_u64s(p + 8, r->swap), words = fp_u64s(p + 16, r->swap);
    const uint32_t tid = e->tid_back ? fp_u32s(p + n - e->tid_back + 4, r->swap) : UINT32_MAX;
    if (words > (n - 24 - e->trailer) / 8) return;
    for (uint32_t i = 0; i < r->deferred.n; i++) {
        struct fp_perf_deferred *d = &r->deferred.list[i];
        if (d->ready || d->cookie != cookie || d->tid != tid) continue;
        finish(r, d, p + 24, 8 * (uint32_t)words);
    }
}

void fp_perf_complete_all(struct fp_perf_reader *r) {
    for (uint32_t i = 0; i < r->deferred.n; i++) {
        if (r->deferred.list[i].ready) continue;
        finish(r, &r->deferred.list[i], NULL, 0);
        r->counts.deferred_alone++;
    }
}

struct fp_perf_deferred fp_perf_take_ready(struct fp_perf_reader *r) {
    uint32_t i = 0;
    while (!r->deferred.list[i].ready) i++;
    const struct fp_perf_deferred found = r->deferred.list[i];
    r->deferred.n--;
    memmove(r->deferred.list + i, r->deferred.list + i + 1, (r->deferred.n - i) * sizeof *r->deferred.list);
    r->deferred.n_ready--;
    free(r->deferred.held);
    r->deferred.held = found.p;
    return found;
}
