#include "gperftools/gperf.h"

#include <stdlib.h>

/* Where decoding stands. */
enum { HEADER = 0, HEADER_REST, RECORDS, RESYNC, TEXT, PREPARED };

enum { MAX_HEADER_WORDS = 4096, MAX_RULES = 4 };

struct fp_gperf_range {
    uint64_t start, limit;
    uint32_t mapping;
    uint32_t order; /* as given: the first one wins */
};

struct fp_gperf_name {
    uint64_t address;
    uint32_t lines;
    uint32_t order;
};

struct fp_gperf *fp_gperf_new(struct fp_model *model, int lenient) {
    struct fp_gperf *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->model = model;
    g->lenient = lenient;
    if (fp_strings_init(&g->chains) || fp_table_init(&g->pcs, 3)) {
        fp_gperf_free(g);
        return NULL;
    }
    return g;
}

void fp_gperf_free(struct fp_gperf *g) {
    if (!g) return;
    fp_strings_clear(&g->chains);
    fp_table_clear(&g->pcs);
    free(g->ticks);
    free(g->before);
    free(g->run_of);
    free(g->ranges);
    free(g->names);
    free(g->pc_frames);
    free(g->chain_stacks);
    free(g->pc);
    fp_buf_free(&g->frames);
    free(g);
}

static inline uint64_t load(const uint8_t *p, int word, int swap) {
    return word == 8 ? fp_u64s(p, swap) : fp_u32s(p, swap);
}

int fp_gperf_sniff(const uint8_t *p, size_t n, int *swap) {
    for (int word = 4; word <= 8; word += 4)
        for (*swap = 0; *swap < 2; ++*swap) {
            if (n < (size_t)word * 5) continue;
            uint64_t words = load(p + word, word, *swap);
            if (load(p, word, *swap) == 0 && words >= 3 && words <= MAX_HEADER_WORDS &&
                load(p + 2 * word, word, *swap) <= 1 && load(p + 3 * word, word, *swap) <= UINT32_MAX)
                return word;
        }
    *swap = 0;
    return 0;
}

static int header(struct fp_gperf *g, struct fp_in *in, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos;
    uint64_t at = in->base + in->pos;
    /* 40 bytes hold the five words of either size; a 32-bit profile without
     * records is 20 bytes of header and more of trailer, or it is cut */
    if (left < 40 && !in->eof) return FP_MORE;
    int swap;
    g->word = fp_gperf_sniff(p, left, &swap);
    g->swap = swap;
    if (!g->word) {
        if (left < 20) return fp_fail(err, FP_E_TRUNCATED, at, "the header is cut short");
        return fp_fail(err, FP_E_MALFORMED, at, "the header is not that of a CPU profile");
    }
    uint64_t words = load(p + g->word, g->word, g->swap);
    g->java = load(p + 2 * g->word, g->word, g->swap) == 1;
    g->period_us = load(p + 3 * g->word, g->word, g->swap);
    if (g->java) g->exact_callers = 1;
    g->header_words = (uint32_t)words + 2;
    g->skip = g->header_words * (uint64_t)g->word;
    g->state = HEADER_REST;
    return FP_DONE;
}

/* Passes over g->skip bytes.  FP_DONE or FP_MORE. */
static int pass_over(struct fp_gperf *g, struct fp_in *in, struct fp_err *err) {
    size_t left = in->n - in->pos;
    size_t n = g->skip < left ? (size_t)g->skip : left;
    in->pos += n;
    g->skip -= n;
    if (!g->skip) return FP_DONE;
    if (in->eof) return fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the header is cut short");
    return FP_MORE;
}

static int grow_ticks(struct fp_gperf *g, struct fp_err *err) {
    uint32_t cap = g->chains.cap;
    uint64_t *ticks = realloc(g->ticks, (size_t)cap * sizeof *ticks);
    if (!ticks) return fp_fail(err, FP_E_NOMEM, 0, "memory");
    memset(ticks + g->cap_ticks, 0, (size_t)(cap - g->cap_ticks) * sizeof *ticks);
    g->ticks = ticks;
    g->cap_ticks = cap;
    return 0;
}

/* A record as it stands in the window. */
struct record {
    uint64_t count, depth, at;
    const uint8_t *pcs;
    uint32_t hash;  /* of the chain */
    uint32_t guess; /* its id, most likely */
};

/* A chain comes for the first time in this run: what it had in those before is
 * kept apart.  Nearly no file has a second run. */
static int settle(struct fp_gperf *g, uint32_t id) {
    if (id >= g->cap_before) {
        uint32_t cap = g->cap_ticks;
        uint64_t *before = realloc(g->before, (size_t)cap * sizeof *before);
        if (before) g->before = before;
        uint32_t *run_of = realloc(g->run_of, (size_t)cap * sizeof *run_of);
        if (run_of) g->run_of = run_of;
        if (!before || !run_of) return FP_E_NOMEM;
        memset(before + g->cap_before, 0, (size_t)(cap - g->cap_before) * sizeof *before);
        memset(run_of + g->cap_before, 0, (size_t)(cap - g->cap_before) * sizeof *run_of);
        g->cap_before = cap;
    }
    if (g->run_of[id] == g->run) return 0;
    if (g->ticks[id] > g->before[id]) g->before[id] = g->ticks[id];
    g->ticks[id] = 0;
    g->run_of[id] = g->run;
    return 0;
}

/* Records whose chains are looked up together, so that they wait for memory together. */
enum { GROUP = 32 };

static int add(struct fp_gperf *g, const struct record *r, struct fp_err *err) {
    if (r->count > INT64_MAX || g->stats.ticks > INT64_MAX - r->count)
        return fp_fail_got(err, FP_E_OVERFLOW, r->at, "a record's count", FP_GOT_UNSIGNED, r->count,
                           "a sum of counts below 2^63", 0);
    uint32_t id = fp_strings_intern_hashed(&g->chains, r->pcs, (size_t)r->depth * (size_t)g->word, r->hash);
    if (id == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, r->at, "memory");
    if (id >= g->cap_ticks && grow_ticks(g, err)) return err->code;
    if (FP_UNLIKELY(g->run) && settle(g, id)) return fp_fail(err, FP_E_NOMEM, r->at, "memory");
    if (!id) g->has_empty = 1;
    g->ticks[id] += r->count;
    g->stats.ticks += r->count;
    g->stats.records++;
    return 0;
}

static int add_all(struct fp_gperf *g, struct record *records, uint32_t n, struct fp_err *err) {
    for (struct record *r = records; r < records + n; r++) {
        r->guess = fp_strings_guess(&g->chains, r->hash);
        if (r->guess < g->cap_ticks) __builtin_prefetch(&g->ticks[r->guess], 1);
    }
    for (struct record *r = records; r < records + n; r++) fp_strings_prefetch_bytes(&g->chains, r->guess);
    for (struct record *r = records; r < records + n; r++) {
        if (!add(g, r, err)) continue;
        if (!g->lenient || err->code != FP_E_OVERFLOW) return err->code;
        g->stats.bad_records++;
        g->stats.lost_bytes += (r->depth + 2) * (uint64_t)g->word;
    }
    return 0;
}

/* next_record: a record is there. */
enum { GOT = 16 };

/* The record at hand.  GOT, FP_DONE when there are no more (the state says what
 * follows), FP_MORE or an error. */
static inline int next_record(struct fp_gperf *g, struct fp_in *in, struct record *r, struct fp_err *err) {
    const size_t w = (size_t)g->word;
    const int word = g->word, swap = g->swap;
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos, nbytes = 2 * w;
    uint64_t at = in->base + in->pos, depth = 0;
    if (left >= nbytes) {
        depth = load(p + w, word, swap);
        if (FP_UNLIKELY(depth > FP_GPERF_MAX_DEPTH)) {
            if (g->lenient) {
                g->stats.bad_records++;
                g->state = RESYNC;
                return FP_DONE;
            }
            return fp_fail_got(err, FP_E_MALFORMED, at + w, "the depth of a stack", FP_GOT_UNSIGNED, depth, "0 to %",
                               FP_GPERF_MAX_DEPTH);
        }
        nbytes += (size_t)depth * w;
    }
    if (left < nbytes) {
        if (!in->eof) return FP_MORE;
        if (left && !g->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a record");
        if (left) {
            g->stats.bad_records++;
            g->stats.lost_bytes += left;
            in->pos = in->n;
        }
        g->state = TEXT;
        return FP_DONE;
    }
    in->pos += nbytes;
    *r = (struct record){.count = load(p, word, swap), .depth = depth, .at = at, .pcs = p + 2 * w};
    if (!r->count && depth == 1 && !load(r->pcs, word, swap)) {
        g->trailer = 1;
        g->state = TEXT;
        return FP_DONE;
    }
    return GOT;
}

static int records(struct fp_gperf *g, struct fp_in *in, struct fp_err *err) {
    struct record group[GROUP];
    for (;;) {
        int status = GOT;
        uint32_t n = 0;
        while (n < GROUP && (status = next_record(g, in, &group[n], err)) == GOT) {
            struct record *r = &group[n++];
            r->hash = fp_strings_hash(r->pcs, (size_t)r->depth * (size_t)g->word);
            fp_strings_prefetch(&g->chains, r->hash);
        }
        /* those before an error come first: theirs is the one to tell */
        int added = add_all(g, group, n, err);
        if (added) return added;
        if (status != GOT) return status;
    }
}

/* Lenient: after a record that cannot be, looks for the trailer word by word,
 * so that at least the mapped objects are known. */
static int resync(struct fp_gperf *g, struct fp_in *in) {
    const size_t w = (size_t)g->word;
    for (;;) {
        const uint8_t *p = in->p + in->pos;
        size_t left = in->n - in->pos;
        if (left < 3 * w) {
            if (!in->eof) return FP_MORE;
            g->stats.lost_bytes += left;
            in->pos = in->n;
            g->state = TEXT;
            return FP_DONE;
        }
        if (!load(p, g->word, g->swap) && load(p + w, g->word, g->swap) == 1 && !load(p + 2 * w, g->word, g->swap)) {
            in->pos += 3 * w;
            g->trailer = 1;
            g->state = TEXT;
            return FP_DONE;
        }
        in->pos += w;
        g->stats.lost_bytes += w;
    }
}

/* The text, line by line.  Words follow it where a forked process has written
 * the profile before the one at hand (gperftools/gperf.h): no text has a depth. */
static int text(struct fp_gperf *g, struct fp_in *in) {
    const size_t w = (size_t)g->word;
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos;
    if (left < 5 * w && !in->eof) return FP_MORE;
    if (left >= 3 * w && !g->java) {
        uint64_t words[5] = {0};
        for (size_t i = 0; i < 5 && (i + 1) * w <= left; i++) words[i] = load(p + i * w, g->word, g->swap);
        int again = left >= 5 * w && !words[0] && words[1] + 2 == g->header_words && !words[2] &&
                    words[3] == g->period_us && words[3];
        int ends = !words[0] && words[1] == 1 && !words[2];
        if (again || ends || (words[0] && words[1] && words[1] <= FP_GPERF_MAX_DEPTH)) {
            g->trailer = 0;
            g->stats.forks++;
            if (again) {
                g->run++;
                g->skip = g->header_words * (uint64_t)w;
            } else {
                g->stats.forks_in_pieces++;
            }
            g->state = again ? HEADER_REST : RECORDS;
            return FP_DONE;
        }
    }
    const uint8_t *end = left ? memchr(p, '\n', left) : NULL;
    if (!end && !in->eof) return FP_MORE;
    g->line_n = end ? (size_t)(end - p) + 1 : left;
    return FP_ASK;
}

int fp_gperf_feed(struct fp_gperf *g, struct fp_in *in, struct fp_err *err) {
    for (;;) {
        int status = FP_DONE;
        switch (g->state) {
            case HEADER: status = header(g, in, err); break;
            case HEADER_REST:
                status = pass_over(g, in, err);
                if (status == FP_DONE) g->state = RECORDS;
                break;
            case RECORDS: status = records(g, in, err); break;
            case RESYNC: status = resync(g, in); break;
            default: status = text(g, in);
        }
        if (status != FP_DONE) return status;
    }
}

int fp_gperf_map(struct fp_gperf *g, uint64_t start, uint64_t limit, uint32_t mapping) {
    if (g->n_ranges == g->cap_ranges) {
        uint32_t cap = g->cap_ranges ? g->cap_ranges * 2 : 64;
        void *ranges = cap > g->cap_ranges ? realloc(g->ranges, cap * sizeof *g->ranges) : NULL;
        if (!ranges) return FP_E_NOMEM;
        g->ranges = ranges;
        g->cap_ranges = cap;
    }
    g->ranges[g->n_ranges] = (struct fp_gperf_range){start, limit, mapping, g->n_ranges};
    g->n_ranges++;
    return 0;
}

int fp_gperf_name(struct fp_gperf *g, uint64_t address, uint32_t lines) {
    if (g->n_names == g->cap_names) {
        uint32_t cap = g->cap_names ? g->cap_names * 2 : 64;
        void *names = cap > g->cap_names ? realloc(g->names, cap * sizeof *g->names) : NULL;
        if (!names) return FP_E_NOMEM;
        g->names = names;
        g->cap_names = cap;
    }
    g->names[g->n_names] = (struct fp_gperf_name){address, lines, g->n_names};
    g->n_names++;
    return 0;
}

static int by_start(const void *a, const void *b) {
    const struct fp_gperf_range *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int by_address(const void *a, const void *b) {
    const struct fp_gperf_name *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* Makes sorted ranges disjoint: what an earlier one covers is cut off. */
static void disjoin(struct fp_gperf *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_ranges; i++) {
        struct fp_gperf_range r = g->ranges[i];
        if (n && r.start < g->ranges[n - 1].limit) r.start = g->ranges[n - 1].limit;
        if (r.start < r.limit) g->ranges[n++] = r;
    }
    g->n_ranges = n;
}

static uint32_t mapping_of(const struct fp_gperf *g, uint64_t address) {
    uint32_t low = 0, high = g->n_ranges;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (g->ranges[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low && address < g->ranges[low - 1].limit ? g->ranges[low - 1].mapping : 0;
}

static uint32_t lines_of(const struct fp_gperf *g, uint64_t address) {
    uint32_t low = 0, high = g->n_names;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (g->names[mid].address < address)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n_names && g->names[low].address == address ? g->names[low].lines : 0;
}

/* Decodes chain `id` into g->pc, signal frames and duplicated leaves already
 * found left out; its depth. */
static uint32_t decode(struct fp_gperf *g, uint32_t id, int counting) {
    size_t nbytes;
    const uint8_t *p = fp_string(&g->chains, id, &nbytes);
    uint32_t n = (uint32_t)(nbytes / (size_t)g->word);
    for (uint32_t i = 0; i < n; i++) g->pc[i] = load(p + (size_t)i * (size_t)g->word, g->word, g->swap);
    for (uint32_t k = 0; k < g->n_rules && n >= 2; k++) {
        uint64_t rule = g->rules[k];
        if (g->pc[1] != (rule ? rule : g->pc[0])) continue;
        memmove(g->pc + 1, g->pc + 2, (n - 2) * sizeof *g->pc);
        n--;
        if (counting && rule) g->stats.signal_frames++;
        if (counting && !rule) g->stats.duplicate_leaves++;
    }
    return n;
}

/* Looks for one frame that the profiler itself left at index 1 of (nearly)
 * every chain - at least 31 of 32, as a signal may hit a thread before its first
 * frame is set up.  Being the same everywhere proves nothing: a program with
 * one call site looks like that.  What proves it:
 *   leaf leaf caller ...             the unwinder gave the interrupted pc again
 *   leaf S leaf caller ...           S is the signal trampoline below the handler
 *   leaf S caller ...                S lies in no mapped object, or in the vdso
 * Returns 1 and appends to g->rules when found. */
static int find_rule(struct fp_gperf *g, const uint32_t *vdso, uint32_t n_vdso) {
    uint64_t candidate = 0, votes = 0, deep = 0, repeated = 0;
    for (uint32_t id = 1; id < g->chains.n; id++) {
        if (decode(g, id, 0) < 2) continue;
        deep++;
        repeated += g->pc[1] == g->pc[0];
        if (!votes) candidate = g->pc[1];
        votes = g->pc[1] == candidate ? votes + 1 : votes - 1;
    }
    if (!deep) return 0;
    if (repeated >= deep - deep / 32) {
        g->rules[g->n_rules++] = 0;
        return 1;
    }
    uint64_t same = 0, sandwiched = 0;
    for (uint32_t id = 1; id < g->chains.n; id++) {
        uint32_t n = decode(g, id, 0);
        if (n < 2 || g->pc[1] != candidate) continue;
        same++;
        sandwiched += n > 2 && g->pc[2] == g->pc[0];
    }
    if (!candidate || same < deep - deep / 32) return 0;
    uint32_t mapping = mapping_of(g, candidate);
    int foreign = g->n_ranges && !mapping && same > 1;
    for (uint32_t i = 0; i < n_vdso; i++) foreign |= mapping == vdso[i] && same > 1;
    if (sandwiched < same - same / 32 && !foreign) return 0;
    g->rules[g->n_rules++] = candidate;
    return 1;
}

/* The mappings of the kernel's own code, which calls nobody. */
static uint32_t find_vdso(struct fp_gperf *g, uint32_t *vdso, uint32_t room) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_ranges && n < room; i++) {
        const uint32_t *row = fp_table_row(&g->model->mappings, g->ranges[i].mapping);
        size_t nbytes;
        uint32_t name = fp_table_row(&g->model->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_NAME];
        const uint8_t *p = fp_string(&g->model->strings, name, &nbytes);
        if (nbytes == 6 && !memcmp(p, "[vdso]", 6)) vdso[n++] = g->ranges[i].mapping;
    }
    return n;
}

/* The frame of an address; callers' addresses lie behind their calls. */
static uint32_t frame_of(struct fp_gperf *g, uint64_t address, uint32_t leaf) {
    uint32_t id = fp_table_intern(&g->pcs, (uint32_t[]){(uint32_t)address, (uint32_t)(address >> 32), leaf});
    if (id == FP_NO_ID) return FP_NO_ID;
    if (id >= g->cap_pc_frames) {
        uint32_t cap = g->pcs.cap;
        uint32_t *frames = realloc(g->pc_frames, (size_t)cap * sizeof *frames);
        if (!frames) return FP_NO_ID;
        memset(frames + g->cap_pc_frames, 0, (size_t)(cap - g->cap_pc_frames) * sizeof *frames);
        g->pc_frames = frames;
        g->cap_pc_frames = cap;
    }
    if (g->pc_frames[id]) return g->pc_frames[id];
    uint32_t flags = leaf || g->exact_callers || !address ? 0 : FP_FRAME_RETURN_ADDRESS;
    /* a call that ends its mapping belongs to it, though its return address does not */
    uint32_t mapping = mapping_of(g, flags ? address - 1 : address);
    g->stats.unmapped += !mapping;
    uint32_t frame = fp_model_frame(g->model, mapping, address, flags, lines_of(g, address));
    if (frame != FP_NO_ID) g->pc_frames[id] = frame;
    return frame;
}

/* After the text: frames, stacks, and the sums of chains that became equal. */
static int prepare(struct fp_gperf *g, struct fp_err *err) {
    if (g->n_ranges) qsort(g->ranges, g->n_ranges, sizeof *g->ranges, by_start);
    if (g->n_names) qsort(g->names, g->n_names, sizeof *g->names, by_address);
    disjoin(g);
    g->pc = malloc(FP_GPERF_MAX_DEPTH * sizeof *g->pc);
    g->chain_stacks = calloc(g->chains.n, sizeof *g->chain_stacks);
    if (!g->pc || !g->chain_stacks || (g->chains.n > g->cap_ticks && grow_ticks(g, err)))
        return fp_fail(err, FP_E_NOMEM, 0, "memory");
    if (!g->keep_signal_frames) {
        uint32_t vdso[4];
        uint32_t n_vdso = find_vdso(g, vdso, 4);
        while (g->n_rules < MAX_RULES && find_rule(g, vdso, n_vdso)) continue;
    }
    g->stats.chains = g->chains.n - 1 + (uint32_t)g->has_empty;
    g->stats.ticks = 0;
    for (uint32_t id = 0; id < g->chains.n; id++) {
        if (id < g->cap_before && g->before[id] > g->ticks[id]) g->ticks[id] = g->before[id];
        size_t nbytes;
        fp_string(&g->chains, id, &nbytes);
        size_t depth = nbytes / (size_t)g->word;
        g->stats.ticks += g->ticks[id];
        if (depth >= FP_GPERF_CUT_DEPTH && depth <= FP_GPERF_CUT_DEPTH + 1) g->stats.cut_ticks += g->ticks[id];
    }
    for (uint32_t id = 1, n; id < g->chains.n; id += n) {
        uint32_t depths[FP_MODEL_STACKS];
        g->frames.n = 0;
        for (n = 0; n < FP_MODEL_STACKS && id + n < g->chains.n; n++) {
            depths[n] = decode(g, id + n, 1);
            for (uint32_t i = 0; i < depths[n]; i++) {
                uint32_t frame = frame_of(g, g->pc[i], i == 0);
                if (frame == FP_NO_ID || fp_buf_put(&g->frames, &frame, sizeof frame))
                    return fp_fail(err, FP_E_NOMEM, 0, "memory");
            }
        }
        if (fp_model_stacks(g->model, (const uint32_t *)(const void *)g->frames.p, depths, n, g->chain_stacks + id))
            return fp_fail(err, FP_E_NOMEM, 0, "memory");
    }
    if (!g->n_rules) return 0;
    /* first chain of each stack; only rules can make two chains one stack */
    uint32_t *first = calloc(g->model->stacks.n, sizeof *first);
    if (!first) return fp_fail(err, FP_E_NOMEM, 0, "memory");
    for (uint32_t id = 1; id < g->chains.n; id++) {
        uint32_t stack = g->chain_stacks[id];
        if (!first[stack]) {
            first[stack] = id;
        } else {
            g->ticks[first[stack]] += g->ticks[id];
            g->chain_stacks[id] = FP_NO_ID;
        }
    }
    free(first);
    return 0;
}

int fp_gperf_rows(struct fp_gperf *g, struct fp_batch *out, struct fp_err *err) {
    if (g->state != PREPARED) {
        int status = prepare(g, err);
        if (status) return status;
        g->state = PREPARED;
        g->next = !g->has_empty;
    }
    if (out->n_values != 2 && fp_batch_set_values(out, 2)) return fp_fail(err, FP_E_NOMEM, 0, "memory");
    for (; g->next < g->chains.n; g->next++) {
        uint32_t stack = g->chain_stacks[g->next];
        if (stack == FP_NO_ID) continue;
        if (out->n == out->cap) return FP_FULL;
        uint64_t ticks = g->ticks[g->next];
        uint64_t ns;
        if (__builtin_mul_overflow(ticks, g->period_us, &ns) || __builtin_mul_overflow(ns, 1000, &ns) || ns > INT64_MAX)
            return fp_fail_got(err, FP_E_OVERFLOW, 0, "a stack's ticks times the period", FP_GOT_UNSIGNED, ticks,
                               "less than 2^63 nanoseconds", 0);
        uint32_t i = out->n++;
        out->stack[i] = stack;
        out->thread[i] = out->label[i] = 0;
        out->time[i] = 0;
        out->values[i] = (int64_t)ticks;
        out->values[out->cap + i] = (int64_t)ns;
    }
    return FP_DONE;
}

int fp_gperf_put(struct fp_gperf_writer *w, const struct fp_batch *in, uint32_t column, struct fp_buf *out,
                 struct fp_err *err) {
    const struct fp_model *m = w->model;
    const int64_t *values = in->values + (size_t)column * in->cap;
    for (uint32_t i = 0; i < in->n; i++) {
        if (values[i] < 0) {
            w->negative++;
            continue;
        }
        uint64_t count = (uint64_t)values[i];
        if (w->unit_ns) {
            uint64_t ns;
            if (__builtin_mul_overflow(count, w->unit_ns, &ns))
                return fp_fail_got(err, FP_E_OVERFLOW, 0, "a time", FP_GOT_UNSIGNED, count,
                                   "less than 2^64 nanoseconds", 0);
            uint64_t rest = ns % w->period_ns;
            count = ns / w->period_ns;
            if (rest) w->rounded++;
            if (rest >= w->period_ns - rest) count++;
        }
        w->labels += in->label[i] || in->thread[i] || in->time[i];
        size_t start = out->n;
        if (fp_buf_put(out, &count, 8) || fp_buf_put(out, &count, 8)) return fp_fail(err, FP_E_NOMEM, 0, "memory");
        uint64_t depth = 0;
        for (uint32_t node = in->stack[i]; node;) {
            const uint32_t *stack = fp_table_row(&m->stacks, node);
            const uint32_t *frame = fp_table_row(&m->frames, stack[FP_STACK_FRAME]);
            node = stack[FP_STACK_PARENT];
            uint64_t address = fp_words_u64(frame + FP_FRAME_ADDRESS);
            if (!address) {
                w->no_address++;
                continue;
            }
            /* readers take one off every address but the leaf's */
            int behind_call = (frame[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS) != 0;
            if (depth && !behind_call) address++;
            if (!depth && behind_call) address--;
            if (fp_buf_put(out, &address, 8)) return fp_fail(err, FP_E_NOMEM, 0, "memory");
            depth++;
        }
        if (!depth || depth > FP_GPERF_MAX_DEPTH) {
            w->no_stack++;
            out->n = start;
            continue;
        }
        memcpy(out->p + start + 8, &depth, 8);
        w->rows++;
    }
    return FP_DONE;
}
