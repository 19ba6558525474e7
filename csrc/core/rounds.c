#include "core/rounds.h"

#include "core/array.h"
#include "core/guard.h"
#include "core/heap.h"

/* Precedes the bytes of a record, in blocks and in runs. */
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

/* A run in the heap, and the time of its next record. */
struct fp_rounds_top {
    uint64_t time;
    uint32_t run;
};

/* Memory for records that were put one after another.  Records stay where they were copied: a block is used again when
 * its last record was delivered. */
struct fp_rounds_block {
    uint8_t *p;
    size_t n, cap;
    uint32_t live; /* records that were not delivered */
    uint32_t next; /* free blocks: the next one + 1, or 0 */
};

/* The item of a key: the number of a block, and the offset in it / 8. */
enum { BLOCK_BITS = 18, PLACE_BITS = BLOCK_BITS - 3 };
enum { BLOCK = 1 << BLOCK_BITS, MOST_BLOCKS = 1 << (32 - PLACE_BITS) };
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
    FP_FREE(r->runs, r->heap);
    for (uint32_t i = 0; i < r->n_blocks; i++) free(r->blocks[i].p);
    FP_FREE(r->blocks, r->keys, r->chunk);
    memset(r, 0, sizeof *r);
}

/* ---- records in memory ---- */

static const uint8_t *record_of(const struct fp_rounds *r, uint32_t key) {
    const uint32_t item = r->keys[key].item;
    return r->blocks[item >> PLACE_BITS].p + ((size_t)(item & ((1u << PLACE_BITS) - 1)) << 3);
}

/* Gives up the record of a key. */
static void release(struct fp_rounds *r, uint32_t key) {
    const uint32_t number = (r->keys[key].item >> PLACE_BITS) + 1;
    struct fp_rounds_block *block = &r->blocks[number - 1];
    r->live -= padded(head_of(record_of(r, key)).n);
    if (--block->live) return;
    block->n = 0;
    if (block->cap > BLOCK) {
        free(block->p);
        *block = (struct fp_rounds_block){0};
    }
    if (number == r->block) r->block = 0;
    block->next = r->free_blocks;
    r->free_blocks = number;
}

/* The block for the next record. */
static struct fp_rounds_block *block_for(struct fp_rounds *r, size_t nbytes) {
    if (r->block && r->blocks[r->block - 1].n + nbytes <= BLOCK) return &r->blocks[r->block - 1];
    if (!r->free_blocks) {
        if (r->n_blocks == MOST_BLOCKS) fp_escape();
        fp_array_zeroed(&r->blocks, &r->cap_blocks, (uint64_t)r->n_blocks + 1, sizeof *r->blocks);
        r->free_blocks = ++r->n_blocks;
    }
    struct fp_rounds_block *block = &r->blocks[r->free_blocks - 1];
    fp_bytes_room(&block->p, &block->cap, nbytes > BLOCK ? nbytes : BLOCK);
    r->block = r->free_blocks;
    r->free_blocks = block->next;
    return block;
}

/* Sorts the keys.  The sort is stable, so records of the same time stay in the order in which
 * they were put. */
static void sort(struct fp_rounds *r) {
    if (r->sorted) return;
    r->at = 0;
    r->sorted = 1;
    fp_sort_keyed(r->keys, r->n_keys);
}

/* Removes the keys of records that were delivered. */
static void compact(struct fp_rounds *r) {
    if (!r->at) return;
    r->n_keys -= r->at;
    memmove(r->keys, r->keys + r->at, r->n_keys * sizeof *r->keys);
    r->at = 0;
}

/* ---- runs ---- */

/* The oldest record of the window of a run. */
static uint64_t time_of(const struct fp_rounds *r, uint32_t run) {
    return head_of(r->runs[run].window + r->runs[run].pos).time;
}

static inline int is_before(const struct fp_rounds *r, struct fp_rounds_top a, struct fp_rounds_top b) {
    (void)r;
    return a.time < b.time || (a.time == b.time && a.run < b.run);
}

FP_HEAP(const struct fp_rounds *, struct fp_rounds_top, is_before)

static void push(struct fp_rounds *r, uint32_t run) {
    fp_array_room(&r->heap, &r->cap_heap, (uint64_t)r->n_heap + 1, sizeof *r->heap);
    heap_push(r, r->heap, r->n_heap++, (struct fp_rounds_top){time_of(r, run), run});
}

/* Requests the next bytes of a run if its window has no complete record.  0 or FP_NEEDS; *left: whether it has a
 * record. */
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
    fp_bytes_room(&run->window, &run->cap, need > WINDOW ? need : WINDOW);
    const uint64_t more = run->end - run->at, room = run->cap - have;
    r->asks = FP_ROUNDS_READ;
    r->offset = run->at;
    r->bytes = run->window + have;
    r->n_bytes = (size_t)(more < room ? more : room);
    run->at += r->n_bytes;
    run->n += r->n_bytes;
    r->reading = number + 1;
    return FP_NEEDS;
}

/* Advances the run that delivered a record to its next, or removes it from the heap. */
static int advance(struct fp_rounds *r) {
    int left;
    if (!r->from_run) return 0;
    const uint32_t number = r->heap[0].run;
    if (r->from_run == 1) {
        struct fp_rounds_run *run = &r->runs[number];
        run->pos += padded(head_of(run->window + run->pos).n);
        r->from_run = 2;
    }
    FP_TRY(look(r, number, &left));
    if (left)
        r->heap[0].time = time_of(r, number);
    else
        r->heap[0] = r->heap[--r->n_heap];
    if (r->n_heap) heap_sink(r, r->heap, r->n_heap, 0);
    r->from_run = 0;
    return 0;
}

/* Spills the records in memory as a run.  FP_NEEDS for each chunk, then 0. */
static int write_away(struct fp_rounds *r) {
    size_t n = 0;
    if (!r->writing) {
        sort(r);
        if (!r->chunk) r->chunk = fp_have(malloc(CHUNK));
        *FP_AT(r->runs, r->cap_runs, r->n_runs) = (struct fp_rounds_run){.at = r->written, .end = r->written};
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
            return FP_NEEDS;
        }
        memcpy(r->chunk + n, p, nbytes);
        n += nbytes;
    }
    if (n) {
        r->bytes = r->chunk;
        r->n_bytes = n;
        r->written = run->end += n;
        return FP_NEEDS;
    }
    for (uint32_t i = 0; i < r->n_keys; i++) release(r, i);
    r->n_keys = r->at = 0;
    return 0;
}

/* ---- records in memory and in runs ---- */

int fp_rounds_put(struct fp_rounds *r, uint64_t time, uint32_t tag, const uint8_t *p, uint32_t n) {
    const size_t nbytes = padded(n);
    int left;
    if (FP_UNLIKELY(r->writing || (r->n_keys && r->live + r->n_keys * sizeof *r->keys * 2 + nbytes > r->most / 2))) {
        if (r->writing < 2) FP_TRY(write_away(r));
        r->writing = 2; /* its first record */
        FP_TRY(look(r, r->n_runs, &left));
        r->n_runs++;
        r->n_runs_ever++;
        push(r, r->n_runs - 1);
        r->writing = 0;
    }
    fp_array_room(&r->keys, &r->cap_keys, (uint64_t)r->n_keys + 1, sizeof *r->keys);
    struct fp_rounds_block *block = block_for(r, nbytes);
    const struct fp_rounds_head head = {time, n, tag};
    uint8_t *to = block->p + block->n;
    memcpy(to, &head, HEAD);
    if (FP_LIKELY(n <= 16 && n % 8 == 0)) { /* one or two words, most often */
        for (uint32_t i = 0; i < n; i += 8) memcpy(to + HEAD + i, p + i, 8);
    } else {
        memset(to + nbytes - 8, 0, 8); /* the padding */
        memcpy(to + HEAD, p, n);
    }
    const uint32_t item = (r->block - 1) << PLACE_BITS | (uint32_t)(block->n >> 3);
    r->keys[r->n_keys++] = (struct fp_keyed){.key = time, .item = item};
    block->n += nbytes;
    block->live++;
    r->live += nbytes;
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
    if (r->is_out) release(r, r->at - 1);
    r->is_out = 0;
    sort(r);
    FP_TRY(advance(r));
    const uint64_t here = r->at < r->n_keys ? r->keys[r->at].key : UINT64_MAX;
    const uint8_t *p;
    /* at equal times, records in runs come first: they were added earlier */
    if (r->n_heap && (r->at == r->n_keys || r->heap[0].time <= here)) {
        p = r->runs[r->heap[0].run].window + r->runs[r->heap[0].run].pos;
        if (head_of(p).time > r->limit) return compact(r), FP_DONE;
        r->from_run = 1;
    } else {
        if (r->at == r->n_keys || here > r->limit) return compact(r), FP_DONE;
        p = record_of(r, r->at++);
        r->is_out = 1;
    }
    const struct fp_rounds_head head = head_of(p);
    r->time = head.time;
    r->tag = head.tag;
    r->n = head.n;
    r->p = p + HEAD;
    if (head.time > r->reached) r->reached = head.time;
    return FP_FULL;
}
