/* The rows of a profile: converts chains of program counters to stacks of the model. */
#include "gperftools/read_private.h"

/* The maximum number of kinds of signal frames in a profile. */
enum { MAX_RULES = sizeof((struct fp_gperftools_reader *)0)->rows.rules / sizeof(uint64_t) };

/* ---- mapped objects and names ---- */

int fp_gperftools_map(struct fp_gperftools_reader *g, uint64_t start, uint64_t limit, uint32_t mapping) {
    const uint32_t order = g->addresses.n_ranges;
    FP_PUSH(g->addresses.ranges, g->addresses.n_ranges, g->addresses.cap_ranges) =
        (struct fp_gperftools_range){start, limit, mapping, order};
    return 0;
}

int fp_gperftools_name(struct fp_gperftools_reader *g, uint64_t address, uint32_t lines) {
    const uint32_t order = g->addresses.n_names;
    FP_PUSH(g->addresses.names, g->addresses.n_names, g->addresses.cap_names) =
        (struct fp_gperftools_name){address, lines, order};
    return 0;
}

FP_ORDER(by_start, struct fp_gperftools_range, start, order)

FP_ORDER(by_address, struct fp_gperftools_name, address, order)

/* Makes ranges that are sorted by their start disjoint.  The covered front of a range is cut off. */
static void disjoin(struct fp_gperftools_reader *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->addresses.n_ranges; i++) {
        struct fp_gperftools_range r = g->addresses.ranges[i];
        if (n && r.start < g->addresses.ranges[n - 1].limit) r.start = g->addresses.ranges[n - 1].limit;
        if (r.start < r.limit) g->addresses.ranges[n++] = r;
    }
    g->addresses.n_ranges = n;
}

/* The mapping that contains an address; 0 for none. */
static uint32_t mapping_of(const struct fp_gperftools_reader *g, uint64_t address) {
    uint32_t low = 0;
    FP_BISECT(low, g->addresses.n_ranges, g->addresses.ranges[low].start <= address);
    return low && address < g->addresses.ranges[low - 1].limit ? g->addresses.ranges[low - 1].mapping : 0;
}

/* The line chain assigned to an address; 0 if none. */
static uint32_t lines_of(const struct fp_gperftools_reader *g, uint64_t address) {
    uint32_t low = 0;
    FP_BISECT(low, g->addresses.n_names, g->addresses.names[low].address < address);
    return low < g->addresses.n_names && g->addresses.names[low].address == address ? g->addresses.names[low].lines : 0;
}

/* ---- signal frames ---- */

/* Takes the chains up to this one out of memory, from time to time. */
static inline void rest(struct fp_gperftools_reader *g, uint32_t id) {
    enum { STEP = 4096 };
    if (id % STEP == 0) (void)fp_key_sums_rest(&g->known, UINT64_MAX);
}

/* Decodes a chain into g->feed.pc, without the signal frames and duplicated leaves by g->rows.rules.  Returns its
 * depth.  `counting`: counts the removed frames. */
static uint32_t decode(struct fp_gperftools_reader *g, uint32_t id, int counting) {
    size_t nbytes;
    rest(g, id);
    const uint8_t *p = fp_string(&g->known.keys, id, &nbytes), *const end = p + nbytes;
    uint32_t n = 0;
    uint64_t pc = 0;
    for (uint64_t difference; p < end; g->feed.pc[n++] = pc) {
        p = fp_varint_read(p, &difference);
        pc += fp_zag(difference);
    }
    for (uint32_t k = 0; k < g->rows.n_rules && n >= 2; k++) {
        uint64_t rule = g->rows.rules[k];
        if (g->feed.pc[1] != (rule ? rule : g->feed.pc[0])) continue;
        memmove(g->feed.pc + 1, g->feed.pc + 2, (n - 2) * sizeof *g->feed.pc);
        n--;
        if (counting && rule) g->stats.signal_frames++;
        if (counting && !rule) g->stats.duplicate_leaves++;
    }
    return n;
}

/* Where the code at an address belongs, for signal frames. */
enum home { IN_PROGRAM, IN_C_LIBRARY, IN_KERNEL };

/* Addresses outside of mappings, and the vdso, are the kernel's code.  It calls no function of the program. */
static enum home home_of(const struct fp_gperftools_reader *g, uint64_t address) {
    static const char *const c_libraries[] = {"libc.", "libc-", "libpthread.", "libpthread-", "libthr.", "ld-musl-"};
    uint32_t mapping = mapping_of(g, address);
    if (!mapping) return g->addresses.n_ranges ? IN_KERNEL : IN_PROGRAM;
    size_t n;
    const uint32_t *row = fp_table_row(&g->model->mappings, mapping);
    uint32_t name = fp_table_row(&g->model->objects, row[FP_MAPPING_OBJECT])[FP_OBJECT_NAME];
    const char *p = (const char *)fp_string(&g->model->strings, name, &n);
    if (n == 6 && !memcmp(p, "[vdso]", 6)) return IN_KERNEL;
    for (size_t i = n; i; i--) {
        if (p[i - 1] != '/') continue;
        p += i;
        n -= i;
        break;
    }
    for (size_t i = 0; i < sizeof c_libraries / sizeof *c_libraries; i++) {
        size_t length = strlen(c_libraries[i]);
        if (n >= length && !memcmp(p, c_libraries[i], length)) return IN_C_LIBRARY;
    }
    return IN_PROGRAM;
}

/* The approximate code size of a callback of the C library, such as qsort's comparison. */
#define CALLBACK_BYTES 256

/* The profiler runs in a signal handler, and often leaves a frame of it at index 1 of every chain.  Such a frame is
 * removed, but only on evidence: a program with a single call has the same caller everywhere, too.  The evidence is one
 * of these, in at least 31 of 32 chains (a signal may hit a thread before its first frame is set up):
 *
 *   leaf leaf caller ...      the unwinder returned the interrupted address twice
 *   leaf S leaf caller ...    S is the code that the kernel returns to from the handler
 *   leaf S caller ...         the same, if S lies in no mapped object or in the vdso
 *   leaf S caller ...         the same, if S lies in the C library (`__restore_rt`), the callers differ and lie mostly
 *                             elsewhere, and the leaves are further apart than the code of one callback
 *
 * Returns 1 and appends to g->rows.rules when there is one. */
static int find_rule(struct fp_gperftools_reader *g) {
    uint64_t candidate = 0, votes = 0, deep = 0, repeated = 0;
    for (uint32_t id = 1; id < g->known.keys.n; id++) {
        if (decode(g, id, 0) < 2) continue;
        deep++;
        repeated += g->feed.pc[1] == g->feed.pc[0];
        if (!votes) candidate = g->feed.pc[1]; /* majority vote: finds the value of over half of the chains, if any */
        votes = g->feed.pc[1] == candidate ? votes + 1 : votes - 1;
    }
    if (!deep) return 0;
    if (repeated >= deep - deep / 32) {
        g->rows.rules[g->rows.n_rules++] = 0;
        return 1;
    }
    uint64_t same = 0, sandwiched = 0, callers = 0, outside = 0, first = 0, first_again = 0;
    uint64_t lowest = UINT64_MAX, highest = 0;
    for (uint32_t id = 1; id < g->known.keys.n; id++) {
        uint32_t n = decode(g, id, 0);
        if (n < 2 || g->feed.pc[1] != candidate) continue;
        same++;
        lowest = g->feed.pc[0] < lowest ? g->feed.pc[0] : lowest;
        highest = g->feed.pc[0] > highest ? g->feed.pc[0] : highest;
        if (n < 3) continue;
        sandwiched += g->feed.pc[2] == g->feed.pc[0];
        if (!callers++) first = g->feed.pc[2];
        first_again += g->feed.pc[2] == first;
        outside += mapping_of(g, g->feed.pc[2]) != mapping_of(g, candidate);
    }
    if (!candidate || same < deep - deep / 32) return 0;
    enum home home = home_of(g, candidate);
    int foreign = same > 1 && (home == IN_KERNEL || (home == IN_C_LIBRARY && first_again < callers &&
                                                     outside > callers / 2 && highest - lowest > CALLBACK_BYTES));
    if (sandwiched < same - same / 32 && !foreign) return 0;
    g->rows.rules[g->rows.n_rules++] = candidate;
    return 1;
}

static void find_rules(struct fp_gperftools_reader *g) {
    while (g->rows.n_rules < MAX_RULES && find_rule(g)) continue;
}

/* ---- stacks ---- */

/* The frame of an address.  A caller's is a return address: it is after the call. */
static uint32_t frame_of(struct fp_gperftools_reader *g, uint64_t address, uint32_t leaf) {
    uint32_t id = fp_table_intern(&g->addresses.pcs, (uint32_t[]){FP_WORDS(address), leaf});
    fp_array_zeroed(&g->addresses.pc_frames, &g->addresses.cap_pc_frames, g->addresses.pcs.n,
                    sizeof *g->addresses.pc_frames);
    if (g->addresses.pc_frames[id]) return g->addresses.pc_frames[id];
    uint32_t flags = leaf || g->exact_callers || !address ? 0 : FP_FRAME_RETURN_ADDRESS;
    /* if a call is the last instruction of its mapping, the return address is in the next one */
    uint32_t mapping = mapping_of(g, flags ? address - 1 : address);
    g->stats.unmapped += !mapping;
    uint32_t frame = fp_model_frame(g->model, mapping, address, flags, lines_of(g, address));
    if (frame != FP_NO_ID) g->addresses.pc_frames[id] = frame;
    return frame;
}

/* Finalizes the ticks of each chain, and sums them. */
static void count_ticks(struct fp_gperftools_reader *g) {
    g->stats.chains = g->known.keys.n - 1 + (uint32_t)g->feed.has_empty;
    g->stats.ticks = 0;
    for (uint32_t id = 0; id < g->known.keys.n; id++) {
        rest(g, id);
        if (id < g->chains.cap_before && g->chains.before[id].most > *fp_gperftools_ticks(g, id))
            *fp_gperftools_ticks(g, id) = g->chains.before[id].most;
        size_t nbytes, depth = 0;
        const uint8_t *p = fp_string(&g->known.keys, id, &nbytes);
        for (size_t i = 0; i < nbytes; i++) depth += p[i] < 0x80; /* the last byte of a varint */
        g->stats.ticks += *fp_gperftools_ticks(g, id);
        if (depth >= FP_GPERF_CUT_DEPTH && depth <= FP_GPERF_CUT_DEPTH + 1)
            g->stats.cut_ticks += *fp_gperftools_ticks(g, id);
    }
}

/* Few chains are added one after the other: the order of stacks then depends on no other chains, so that a store finds
 * the order of one dump in the next.  Of many, looking them up together saves a quarter of the time. */
enum { FEW_CHAINS = 16384 };

/* Chains that differ only in removed frames have the same stack: the first of them gets the ticks of all.  They are
 * found by hash and depth; those that differ nevertheless have different numbers. */
static void join_chains(struct fp_gperftools_reader *g) {
    enum { HASH, DEPTH, NUMBER, JOIN_WIDTH };
    struct fp_table *seen = &g->chains.joined;
    uint32_t *first = NULL, cap = 0; /* by row of `seen`: its first chain */
    fp_table_init(seen, JOIN_WIDTH);
    for (uint32_t id = 1; id < g->known.keys.n; id++) {
        const uint32_t depth = decode(g, id, 1);
        const size_t nbytes = depth * sizeof *g->feed.pc;
        uint32_t row[JOIN_WIDTH] = {fp_strings_hash((const uint8_t *)g->feed.pc, nbytes), depth, 0};
        g->rows.frames.n = 0;
        fp_buf_put(&g->rows.frames, g->feed.pc, nbytes);
        for (;; row[NUMBER]++) {
            const uint32_t had = seen->n, found = fp_table_intern(seen, row);
            fp_scratch_room(&first, &cap, (uint64_t)found + 1, sizeof *first);
            if (found == had) {
                first[found] = id;
                break;
            }
            if (decode(g, first[found], 0) == depth && !memcmp(g->feed.pc, g->rows.frames.p, nbytes)) {
                *fp_gperftools_ticks(g, first[found]) += *fp_gperftools_ticks(g, id);
                g->chains.is_joined[id] = 1;
                break;
            }
        }
    }
    fp_table_clear(seen);
    fp_scratch_free(first);
}

/* Prepares the rows, at the end of the file. */
static void prepare(struct fp_gperftools_reader *g) {
    fp_strings_seal(&g->known.keys);
    if (g->addresses.n_ranges) qsort(g->addresses.ranges, g->addresses.n_ranges, sizeof *g->addresses.ranges, by_start);
    if (g->addresses.n_names) qsort(g->addresses.names, g->addresses.n_names, sizeof *g->addresses.names, by_address);
    disjoin(g);
    g->feed.pc = fp_have(malloc(FP_GPERF_MAX_DEPTH * sizeof *g->feed.pc));
    g->chains.is_joined = fp_have(calloc(g->known.keys.n, 1));
    fp_buf_reserve(&g->rows.frames, 1);
    if (!g->keep_signal_frames) find_rules(g);
    count_ticks(g);
    if (g->rows.n_rules) join_chains(g);
}

/* The chains of the next rows, at most n, and their stacks.  Returns how many. */
static uint32_t next_stacks(struct fp_gperftools_reader *g, uint32_t *chains, uint32_t *stacks, uint32_t n) {
    uint32_t depths[FP_MODEL_STACKS], found = 0;
    g->rows.frames.n = 0;
    if (g->feed.has_empty && !g->rows.next && n) { /* chain 0 */
        depths[0] = chains[0] = 0;
        found = 1;
    }
    for (g->rows.next += !g->rows.next; g->rows.next < g->known.keys.n && found < n; g->rows.next++) {
        if (g->chains.is_joined[g->rows.next]) continue;
        chains[found] = g->rows.next;
        depths[found] = decode(g, g->rows.next, 0);
        for (uint32_t i = 0; i < depths[found]; i++) {
            uint32_t frame = frame_of(g, g->feed.pc[i], i == 0);
            fp_buf_put(&g->rows.frames, &frame, sizeof frame);
        }
        found++;
    }
    fp_model_stacks(g->model, (const uint32_t *)(const void *)g->rows.frames.p, depths, found, stacks);
    return found;
}

int fp_gperftools_rows(struct fp_gperftools_reader *g, struct fp_batch *out, struct fp_err *err) {
    if (!g->rows.prepared) {
        prepare(g);
        g->rows.prepared = 1;
    }
    const uint32_t n_values = g->period_us ? 2 : 1, together = g->known.keys.n <= FEW_CHAINS ? 1 : FP_MODEL_STACKS;
    if (out->n_values != n_values) fp_batch_set_values(out, n_values);
    for (uint32_t n = 1; n;) {
        const uint32_t room = out->cap - out->n;
        uint32_t chains[FP_MODEL_STACKS], stacks[FP_MODEL_STACKS];
        if (!room) return g->rows.next < g->known.keys.n ? FP_FULL : FP_DONE;
        n = next_stacks(g, chains, stacks, room < together ? room : together);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t ticks = *fp_gperftools_ticks(g, chains[k]);
            uint64_t ns;
            if (__builtin_mul_overflow(ticks, g->period_us, &ns) || __builtin_mul_overflow(ns, 1000, &ns) ||
                ns > INT64_MAX)
                return fp_fail_got(err, FP_E_OVERFLOW, 0, "a stack's ticks times the period", FP_GOT_UNSIGNED, ticks,
                                   "less than 2^63 nanoseconds", 0);
            const uint32_t i = fp_batch_sample(out, stacks[k], 0, 0, 0);
            out->values[i] = (int64_t)ticks;
            if (n_values == 2) out->values[out->cap + i] = (int64_t)ns;
        }
    }
    return FP_DONE;
}
