#include "core/rounds.h"

#include <stdlib.h>

#include "core/array.h"

/* Precedes the bytes of a record, in the arena and in runs. */
struct fp_rounds_head {
    uint64_t time;
    uint32_t n, tag;
};

/* A sorted run: the bytes [at, end) of the temporary file, of which `window` shows the next. */
struct fp_rounds_run {
    uint64_t at, end; /* not read into the window yet */
    uint8_t *window;
    size_t pos, n, cap;
};

enum { CHUNK = 1 << 18, WINDOW = 1 << 16, HEAD = sizeof(struct fp_rounds_head) };

static size_t padded(uint32_t n) {
    return HEAD + (((size_t)n + 7) & ~(size_t)7);
}

static struct fp_rounds_head head_of(const uint8_t *p) {
    struct fp_rounds_head head;
    memcpy(&head, p, sizeof head);
    return head;
}

void fp_rounds_clear(struct fp_rounds *r) {
    for (uint32_t i = 0; i < r->n_runs; i++) free(r->runs[i].window);
    free(r->runs);
    free(r->heap);
    free(r->arena);
    free(r->spare);
    free(r->keys);
    free(r->chunk);
    memset(r, 0, sizeof *r);
}

/* ---- records in memory ---- */

static const uint8_t *record_of(const struct fp_rounds *r, uint32_t key) {
    return r->arena + ((size_t)r->keys[key].item << 3);
}

/* Sorts the keys.  The sort is stable, so records of the same time stay in the order of the arena. */
static int sort(struct fp_rounds *r) {
    if (r->sorted) return 0;
    r->at = 0;
    r->sorted = 1;
    return fp_sort_keyed(r->keys, r->n_keys);
}

/* Moves the records that were not delivered to the front, in order of time. */
static int compact(struct fp_rounds *r) {
    size_t n = 0;
    uint32_t kept = 0;
    if (r->at == r->n_keys) {
        r->arena_n = r->n_keys = r->at = 0;
        return 0;
    }
    if (!r->at) return 0;
    for (uint32_t i = r->at; i < r->n_keys; i++) n += padded(head_of(record_of(r, i)).n);
    if (fp_bytes_room(&r->spare, &r->spare_cap, n)) return FP_E_NOMEM;
    n = 0;
    for (uint32_t i = r->at; i < r->n_keys; i++) {
        const uint8_t *p = record_of(r, i);
        const size_t nbytes = padded(head_of(p).n);
        memcpy(r->spare + n, p, nbytes);
        r->keys[kept] = r->keys[i];
        r->keys[kept++].item = (uint32_t)(n >> 3);
        n += nbytes;
    }
    uint8_t *arena = r->arena;
    const size_t cap = r->arena_cap;
    r->arena = r->spare;
    r->arena_cap = r->spare_cap;
    r->spare = arena;
    r->spare_cap = cap;
    r->arena_n = n;
    r->n_keys = kept;
    r->at = 0;
    return 0;
}

/* ---- runs ---- */

/* The oldest record of the window of a run. */
static uint64_t time_of(const struct fp_rounds *r, uint32_t run) {
    return head_of(r->runs[run].window + r->runs[run].pos).time;
}

static int is_before(const struct fp_rounds *r, uint32_t a, uint32_t b) {
    const uint64_t x = time_of(r, a), y = time_of(r, b);
    return x < y || (x == y && a < b);
}

/* Restores the order of the heap below place i. */
static void sink(struct fp_rounds *r, uint32_t i) {
    for (;;) {
        uint32_t least = i, child = 2 * i + 1;
        if (child < r->n_heap && is_before(r, r->heap[child], r->heap[least])) least = child;
        if (child + 1 < r->n_heap && is_before(r, r->heap[child + 1], r->heap[least])) least = child + 1;
        if (least == i) return;
        const uint32_t run = r->heap[i];
        r->heap[i] = r->heap[least];
        r->heap[least] = run;
        i = least;
    }
}

static int push(struct fp_rounds *r, uint32_t run) {
    if (fp_array_room(&r->heap, &r->cap_heap, (uint64_t)r->n_heap + 1, sizeof *r->heap)) return FP_E_NOMEM;
    uint32_t i = r->n_heap++;
    for (; i && is_before(r, run, r->heap[(i - 1) / 2]); i = (i - 1) / 2) r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = run;
    return 0;
}

/* Requests the next bytes of a run if its window has no complete record.  0, FP_ASK or FP_E_NOMEM; *left: whether it
 * has a record. */
static int look(struct fp_rounds *r, uint32_t number, int *left) {
    struct fp_rounds_run *run = &r->runs[number];
    const size_t have = run->n - run->pos;
    const size_t need = have < HEAD ? HEAD : padded(head_of(run->window + run->pos).n);
    *left = have >= need;
    if (*left || run->at == run->end) {
        if (!*left) { /* its end */
            free(run->window);
            run->window = NULL;
        }
        return 0;
    }
    if (have) memmove(run->window, run->window + run->pos, have);
    run->pos = 0;
    run->n = have;
    if (fp_bytes_room(&run->window, &run->cap, need > WINDOW ? need : WINDOW)) return FP_E_NOMEM;
    const uint64_t more = run->end - run->at, room = run->cap - have;
    r->asks = FP_ROUNDS_READ;
    r->offset = run->at;
    r->bytes = run->window + have;
    r->n_bytes = (size_t)(more < room ? more : room);
    run->at += r->n_bytes;
    run->n += r->n_bytes;
    r->reading = number + 1;
    return FP_ASK;
}

/* Advances the run that delivered a record to its next, or removes it from the heap. */
static int advance(struct fp_rounds *r) {
    int left, status;
    if (!r->from_run) return 0;
    const uint32_t number = r->heap[0];
    if (r->from_run == 1) {
        struct fp_rounds_run *run = &r->runs[number];
        run->pos += padded(head_of(run->window + run->pos).n);
        r->from_run = 2;
    }
    if ((status = look(r, number, &left))) return status;
    if (!left) r->heap[0] = r->heap[--r->n_heap];
    sink(r, 0);
    r->from_run = 0;
    return 0;
}

/* Spills the records in memory as a run.  FP_ASK for each chunk, then 0. */
static int write_away(struct fp_rounds *r) {
    size_t n = 0;
    if (!r->writing) {
        if (sort(r)) return FP_E_NOMEM;
        if (!r->chunk && !(r->chunk = malloc(CHUNK))) return FP_E_NOMEM;
        if (fp_array_zeroed(&r->runs, &r->cap_runs, (uint64_t)r->n_runs + 1, sizeof *r->runs)) return FP_E_NOMEM;
        r->runs[r->n_runs] = (struct fp_rounds_run){.at = r->written, .end = r->written};
        r->writing = 1;
    }
    struct fp_rounds_run *run = &r->runs[r->n_runs];
    while (r->at < r->n_keys) {
        const uint8_t *p = record_of(r, r->at);
        const size_t nbytes = padded(head_of(p).n);
        if (n && n + nbytes > CHUNK) break;
        r->at++;
        r->asks = FP_ROUNDS_WRITE;
        if (nbytes > CHUNK) { /* as a separate chunk */
            r->bytes = (uint8_t *)(uintptr_t)p;
            r->n_bytes = nbytes;
            r->written = run->end += nbytes;
            return FP_ASK;
        }
        memcpy(r->chunk + n, p, nbytes);
        n += nbytes;
    }
    if (n) {
        r->bytes = r->chunk;
        r->n_bytes = n;
        r->written = run->end += n;
        return FP_ASK;
    }
    r->arena_n = r->n_keys = r->at = 0;
    return 0;
}

/* ---- records in memory and in runs ---- */

int fp_rounds_put(struct fp_rounds *r, uint64_t time, uint32_t tag, const uint8_t *p, uint32_t n) {
    const size_t nbytes = padded(n);
    int status, left;
    if (FP_UNLIKELY(r->writing || (r->n_keys && r->arena_n + r->n_keys * sizeof *r->keys * 2 + nbytes > r->most / 2))) {
        if (r->writing < 2 && (status = write_away(r))) return status;
        r->writing = 2; /* its first record */
        if ((status = look(r, r->n_runs, &left))) return status;
        r->n_runs++;
        r->n_runs_ever++;
        if (push(r, r->n_runs - 1)) return FP_E_NOMEM;
        r->writing = 0;
    }
    if ((uint64_t)r->arena_n + nbytes > (uint64_t)UINT32_MAX << 3 ||
        fp_bytes_room(&r->arena, &r->arena_cap, r->arena_n + nbytes) ||
        fp_array_room(&r->keys, &r->cap_keys, (uint64_t)r->n_keys + 1, sizeof *r->keys))
        return FP_E_NOMEM;
    const struct fp_rounds_head head = {time, n, tag};
    uint8_t *to = r->arena + r->arena_n;
    memcpy(to, &head, HEAD);
    memcpy(to + HEAD, p, n);
    memset(to + HEAD + n, 0, nbytes - HEAD - n);
    r->keys[r->n_keys++] = (struct fp_keyed){.key = time, .item = (uint32_t)(r->arena_n >> 3)};
    r->arena_n += nbytes;
    r->sorted = 0;
    r->n_late += time < r->reached;
    if (time > r->newest) r->newest = time;
    return 0;
}

void fp_rounds_mark(struct fp_rounds *r) {
    r->limit = r->noted;
    r->noted = r->newest;
}

void fp_rounds_end(struct fp_rounds *r) {
    r->limit = UINT64_MAX;
}

int fp_rounds_next(struct fp_rounds *r) {
    int status;
    if (sort(r)) return FP_E_NOMEM;
    if ((status = advance(r))) return status;
    const uint64_t here = r->at < r->n_keys ? r->keys[r->at].key : UINT64_MAX;
    const uint8_t *p;
    /* at equal times, records in runs come first: they were added earlier */
    if (r->n_heap && (r->at == r->n_keys || time_of(r, r->heap[0]) <= here)) {
        p = r->runs[r->heap[0]].window + r->runs[r->heap[0]].pos;
        if (head_of(p).time > r->limit) return compact(r);
        r->from_run = 1;
    } else {
        if (r->at == r->n_keys || here > r->limit) return compact(r);
        p = record_of(r, r->at++);
    }
    const struct fp_rounds_head head = head_of(p);
    r->time = head.time;
    r->tag = head.tag;
    r->n = head.n;
    r->p = p + HEAD;
    if (head.time > r->reached) r->reached = head.time;
    return FP_FULL;
}
