/* Converts samples to rows: chains to stacks, threads and their names to labels. */
#include "perf/private.h"

/* The limit of cached chains, in bytes; beyond it the cache is emptied. */
enum { MOST_CHAINS = 8 << 20 };

/* ---- chains ---- */

/* The key of a stack; the words of its chain follow. */
struct key {
    uint64_t user, kernel; /* generations of the maps */
    uint32_t mode, kind;   /* the mode of the first address; whether frames of a branch stack follow */
    uint64_t ip;
};

/* The model's mapping, added if needed. */
static uint32_t mapping_of(struct fp_perf_reader *r, uint32_t word) {
    struct fp_perf_map *map = &r->maps.list[word];
    if (map->mapping) return map->mapping;
    const uint32_t object = fp_model_object(r->model, map->name, fp_perf_build_id_of(r, map));
    const uint32_t mapping = fp_model_mapping(r->model, object, map->start, map->limit, map->pgoff, 0);
    return map->mapping = mapping;
}

/* The line chain of a mapping that is a single function named after its object. */
static uint32_t symbol_lines(struct fp_perf_reader *r, uint32_t mapping) {
    const uint32_t object = fp_table_row(&r->model->mappings, mapping)[FP_MAPPING_OBJECT];
    const uint32_t name = fp_table_row(&r->model->objects, object)[FP_OBJECT_NAME];
    const uint32_t function = fp_model_function(r->model, object, 0, name, 0, 0);
    return fp_model_line(r->model, function, 0, 0, 0);
}

static uint32_t frame_of(struct fp_perf_reader *r, uint32_t pid, uint32_t mode, uint64_t address, uint32_t flags) {
    struct fp_space_hit hit;
    uint32_t mapping = 0, lines = 0;
    const int is_kernel = mode == FP_PERF_IN_KERNEL;
    const uint64_t maps = is_kernel ? r->stacks.kernel : mode == FP_PERF_IN_USER ? r->stacks.user : 0;
    const uint64_t hash = (address ^ maps) * UINT64_C(0x9e3779b97f4a7c15);
    struct fp_perf_frame *known = &r->stacks.known[hash >> (64 - FP_PERF_FRAME_BITS)];
    if (FP_LIKELY(known->frame && known->address == address && known->maps == maps && known->mode == mode) &&
        known->flags == flags)
        return known->frame;
    if (is_kernel || (mode == FP_PERF_IN_USER && pid != FP_SPACE_KERNEL)) {
        if (fp_space_find(r->maps.space, is_kernel ? FP_SPACE_KERNEL : pid, address, &hit)) {
            mapping = mapping_of(r, hit.word);
            if (hit.flags & FP_PERF_IS_SYMBOL) lines = symbol_lines(r, mapping);
        }
    }
    const uint32_t frame = fp_model_frame(r->model, mapping, address, flags, lines);
    *known = (struct fp_perf_frame){address, maps, mode, flags, frame};
    return frame;
}

uint32_t fp_perf_code_frame(struct fp_perf_reader *r, uint32_t pid, uint64_t address) {
    return frame_of(r, pid, address >> 63 ? FP_PERF_IN_KERNEL : FP_PERF_IN_USER, address, 0);
}

static uint32_t flags_of(int is_return, uint64_t address) {
    return is_return && address ? FP_FRAME_RETURN_ADDRESS : 0;
}

/* The mode that a marker announces; 0 if it is unknown. */
static uint32_t mode_of(uint64_t marker) {
    switch (marker) {
        case FP_PERF_TO_KERNEL: return FP_PERF_IN_KERNEL;
        case FP_PERF_TO_USER:
        case FP_PERF_TO_DEFERRED: return FP_PERF_IN_USER;
        case FP_PERF_TO_HYPERVISOR: return 3;
        default: return 0;
    }
}

/* A branch stack of calls: the newest target is near the sample, the sources are its callers. */
static uint32_t branch_frames(struct fp_perf_reader *r, const struct fp_perf_sample *s, uint32_t n) {
    for (uint64_t i = 0; i <= s->n_branches; i++) {
        const uint64_t address = fp_u64s(i ? s->branches + (i - 1) * 24 : s->branches + 8, r->swap);
        r->stacks.frames[n++] = frame_of(r, s->pid, FP_PERF_IN_USER, address, 0);
    }
    return n;
}

/* Appends the unwound frames to n others. */
static uint32_t unwound_frames(struct fp_perf_reader *r, uint32_t n) {
    for (uint32_t i = 0; i < r->unwound.n; i++) {
        const struct fp_unwind_frame *frame = &r->unwound.frames[i];
        const uint32_t mapping = frame->word == FP_UNWIND_NO_WORD ? 0 : mapping_of(r, frame->word);
        const uint32_t flags = flags_of(frame->is_return, frame->address);
        r->stacks.frames[n++] = fp_model_frame(r->model, mapping, frame->address, flags, 0);
    }
    return n;
}

/* Writes the frames of a chain to r->stacks.frames.  Returns their number; clears *known if
 * the chain has an unknown marker. */
static uint32_t chain_frames(struct fp_perf_reader *r, const struct fp_perf_sample *s, int by_branches, int *known) {
    uint32_t n = 0, mode = FP_PERF_IN_USER;
    int is_return = 0; /* the first address of a mode is an interrupted instruction, or a system call */
    const uint64_t room = s->n_chain + s->n_branches + r->unwound.n + 1;
    fp_array_room(&r->stacks.frames, &r->stacks.cap_frames, room, sizeof *r->stacks.frames);
    *known = 1;
    for (uint64_t i = 0; i < s->n_chain; i++) {
        const uint64_t address = fp_u64s(s->chain + 8 * i, r->swap);
        if (FP_UNLIKELY(address >= FP_PERF_MARKERS)) {
            if (!(mode = mode_of(address))) {
                *known = 0;
                return 0;
            }
            is_return = 0;
            if (address == FP_PERF_TO_DEFERRED) return n; /* a cookie follows */
            if (address == FP_PERF_TO_USER && r->unwound.n) break;
            if (address == FP_PERF_TO_USER && by_branches) return branch_frames(r, s, n);
            continue;
        }
        r->stacks.frames[n++] = frame_of(r, s->pid, mode, address, flags_of(is_return, address));
        is_return = 1;
    }
    return unwound_frames(r, n);
}

/* The stack of a new chain. */
static uint32_t new_stack(struct fp_perf_reader *r, const struct fp_perf_sample *s, uint32_t mode, int by_branches) {
    int known = 1;
    uint32_t n = s->chain || r->unwound.n ? chain_frames(r, s, by_branches, &known) : 0;
    r->counts.bad_chains += !known;
    if (!n && s->ip) {
        fp_array_room(&r->stacks.frames, &r->stacks.cap_frames, 1, sizeof *r->stacks.frames);
        r->stacks.frames[n++] = frame_of(r, s->pid, mode, s->ip, 0);
    }
    r->counts.chains++;
    return fp_model_path(r->model, r->stacks.frames, n);
}

/* The chain with this key.  Adds a new one. */
static uint32_t find_chain(struct fp_perf_reader *r, const struct key *key, const struct fp_perf_sample *s,
                           size_t n_branches) {
    const size_t n_unwound = r->unwound.n * sizeof *r->unwound.frames, n_chain = 8 * (size_t)s->n_chain;
    const size_t n = sizeof *key + n_chain + n_branches + n_unwound;
    fp_bytes_room(&r->stacks.key, &r->stacks.key_cap, n);
    uint8_t *to = r->stacks.key;
    memcpy(to, key, sizeof *key);
    to += sizeof *key;
    if (n_chain) memcpy(to, s->chain, n_chain);
    to += n_chain;
    if (n_branches) memcpy(to, s->branches, n_branches);
    if (n_unwound) memcpy(to + n_branches, r->unwound.frames, n_unwound);
    return fp_strings_intern(&r->stacks.chains, r->stacks.key, n);
}

/* The place of a chain in r->stacks.recent.  Its hash is the sum of its words, which compilers vectorize. */
static uint32_t place_of(const struct key *key, const struct fp_perf_sample *s) {
    uint64_t sum = key->ip + key->kind;
    for (uint64_t i = 0; i < s->n_chain; i++) sum += fp_u64(s->chain + 8 * i);
    return (uint32_t)(sum * UINT64_C(0x9e3779b97f4a7c15) >> (64 - FP_PERF_RECENT_BITS));
}

/* Whether a chain has this key and these words. */
static int is_chain(const struct fp_perf_reader *r, uint32_t chain, const struct key *key,
                    const struct fp_perf_sample *s) {
    const uint8_t *p = r->stacks.chains.bytes + r->stacks.chains.start[chain];
    const size_t n = 8 * (size_t)s->n_chain;
    return chain && r->stacks.chains.start[chain + 1] - r->stacks.chains.start[chain] == sizeof *key + n &&
           !memcmp(p, key, sizeof *key) && (!n || !memcmp(p + sizeof *key, s->chain, n));
}

/* The stack of a sample, cached by chain as long as the maps do not change. */
static uint32_t find_stack(struct fp_perf_reader *r, const struct fp_perf_event *e, uint32_t mode,
                           const struct fp_perf_sample *s) {
    const int by_branches = e->attr.branch_type & FP_PERF_CALL_STACK && s->n_branches;
    const size_t n_branches = by_branches ? 24 * (size_t)s->n_branches : 0;
    if (FP_UNLIKELY(r->stacks.chains.start[r->stacks.chains.n] > MOST_CHAINS ||
                    r->stacks.n_renewed != r->model->n_renewed)) {
        fp_strings_empty(&r->stacks.chains);
        memset(r->stacks.recent, 0, sizeof r->stacks.recent);
        r->stacks.n_renewed = r->model->n_renewed;
    }
    r->stacks.user = fp_space_generation(r->maps.space, s->pid);
    r->stacks.kernel = fp_space_generation(r->maps.space, FP_SPACE_KERNEL);
    const struct key key = {
        .user = r->stacks.user,
        .kernel = r->stacks.kernel,
        .mode = mode,
        .kind = (uint32_t)s->n_chain << 1 | (uint32_t)by_branches,
        .ip = s->ip,
    };
    uint32_t *recent = &r->stacks.recent[place_of(&key, s)];
    if (FP_LIKELY(is_chain(r, *recent, &key, s)) && !n_branches && !r->unwound.n) return r->stacks.of_chain[*recent];
    const uint32_t before = r->stacks.chains.n, id = find_chain(r, &key, s, n_branches);
    fp_array_zeroed(&r->stacks.of_chain, &r->stacks.cap, r->stacks.chains.n, sizeof *r->stacks.of_chain);
    if (r->stacks.chains.n != before) r->stacks.of_chain[id] = new_stack(r, s, mode, by_branches);
    *recent = id;
    return r->stacks.of_chain[id];
}

/* ---- rows ---- */

/* Adds a row of an event.  0, FP_FULL, FP_NEEDS or FP_E_*. */
static int put(struct fp_perf_reader *r, uint32_t event, uint64_t period, uint32_t stack, uint32_t thread,
               uint32_t label, uint64_t time, struct fp_batch *out, struct fp_err *err) {
    struct fp_perf_event *e = &r->events.list[event];
    if (FP_UNLIKELY(e->column + 1 >= out->n_values || e->column == FP_PERF_NO_COLUMN)) {
        r->request = FP_PERF_COLUMNS;
        r->requested_event = event;
        return FP_NEEDS;
    }
    if (out->n == out->cap) return FP_FULL;
    if (period > INT64_MAX)
        return fp_fail_got(err, FP_E_OVERFLOW, 0, "the period of a sample", FP_GOT_UNSIGNED, period, "less than 2^63",
                           0);
    const uint32_t i = fp_perf_add_row(out, stack, thread, label, time);
    out->values[(size_t)e->column * out->cap + i] = 1;
    out->values[(size_t)(e->column + 1) * out->cap + i] = (int64_t)period;
    e->samples++;
    return 0;
}

/* The row in r->events.ids of counter k of a sample, and its value.  0 if it is unknown. */
static uint32_t counter_of(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                           uint64_t k, uint64_t *value) {
    const uint64_t format = e->attr.read_format;
    const uint32_t times = (format & FP_PERF_ENABLED ? 8 : 0) + (format & FP_PERF_RUNNING ? 8 : 0);
    const uint8_t *p = s->read + 8 * k * s->read_words;
    const uint8_t *at = s->read_words ? p + 8 : p + 8 + times;
    const uint64_t id = format & FP_PERF_READ_ID ? fp_u64s(at, r->swap) : s->id;
    const uint32_t words[] = {FP_WORDS(id)};
    *value = fp_u64s(p, r->swap);
    const uint32_t row = fp_table_find(&r->events.ids, words);
    if (row || r->events.n > 1) return row;
    fp_perf_add_ids(r, 0, &id, 1);
    return fp_table_find(&r->events.ids, words);
}

/* Adds a row for each changed counter of a sample.  0, FP_FULL, FP_NEEDS or FP_E_*. */
static int put_counters(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                        uint32_t stack, uint32_t thread, uint32_t label, struct fp_batch *out, struct fp_err *err) {
    for (; r->feed.row < s->n_read; r->feed.row++) {
        uint64_t value;
        const uint32_t row = counter_of(r, e, s, r->feed.row, &value);
        r->counts.unknown_ids += !row;
        const uint64_t period = row ? value - r->events.last_value[row] : 0;
        if (!period) continue;
        FP_TRY(put(r, r->events.of_id[row], period, stack, thread, label, s->time, out, err));
        r->events.last_value[row] = value;
    }
    return 0;
}

/* The user frames of a switch are recorded when the thread resumes: off-CPU time gets only the kernel frames. */
static void leave_early(struct fp_perf_reader *r, const struct fp_perf_event *e, uint32_t mode,
                        const struct fp_perf_sample *s) {
    uint32_t thread, label;
    r->unwound.n = 0;
    fp_perf_thread_of(r, s, &thread, &label);
    const uint32_t stack = find_stack(r, e, mode, s);
    fp_perf_leave_at(r, e, s, stack, label);
}

/* Unwinds the copy of the stack, if the sample has one.  0, FP_NEEDS or an error. */
static int unwind(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s) {
    r->unwound.n = 0;
    return s->n_stack ? fp_perf_unwind(r, e, s) : 0;
}

int fp_perf_row(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event, struct fp_batch *out,
                struct fp_err *err) {
    struct fp_perf_sample s;
    struct fp_perf_event *e = &r->events.list[event];
    const uint32_t mode = fp_u16s(p + 4, r->swap) & FP_PERF_MISC_MODE;
    if (fp_perf_parse(r, e, p, n, &s)) return 0; /* fp_perf_check has passed: cannot fail */
    if (mode == FP_PERF_IN_GUEST_KERNEL || mode == FP_PERF_IN_GUEST_USER) {
        r->counts.guests++;
        return 0;
    }
    const int is_switch = e->switched_by && !r->deferred.is_held; /* once */
    int status = is_switch ? fp_perf_continue_next(r, e, &s, out) : 0;
    if (status) return status;
    if (!r->deferred.is_held && fp_perf_is_deferred(r, &s)) {
        const int deferred = fp_perf_defer(r, p, n, event, &s);
        if (deferred && is_switch) leave_early(r, e, mode, &s);
        if (deferred) return 0;
    }
    if ((status = unwind(r, e, &s))) return status;
    uint32_t thread = 0, label = 0;
    if (e->tid || e->is_off_cpu_time) fp_perf_thread_of(r, &s, &thread, &label);
    const int has_fields = e->n_fields && s.raw, is_room = has_fields && fp_perf_has_room_for_fields(r);
    if (is_room) label = fp_perf_field_labels(r, e, &s, label);
    const uint32_t stack = find_stack(r, e, mode, &s);
    status = s.read ? put_counters(r, e, &s, stack, thread, label, out, err)
                    : put(r, event, s.period, stack, thread, label, s.time, out, err);
    if (status) return status;
    if (is_switch) fp_perf_leave_at(r, e, &s, stack, label);
    if (s.n_branches && !(e->attr.branch_type & FP_PERF_CALL_STACK)) fp_perf_count_branches(r, &s);
    r->counts.without_fields += has_fields && !is_room;
    if (s.n_stack) ++*(r->unwound.n ? &r->counts.unwound[r->unwound.why] : &r->counts.not_unwound);
    return 0;
}
