/* Branch stacks: rows of branches and of straight runs instead of samples. */
#include "perf/private.h"

void fp_perf_set_branches(struct fp_perf_reader *r, int wants, int apart, uint32_t most) {
    r->wants_branches = wants;
    r->branches.apart = apart;
    r->branches.sums.most = most;
}

/* The object of a frame that has one, 0 otherwise. */
static uint32_t object_of(const struct fp_perf_reader *r, uint32_t frame) {
    const uint32_t mapping = fp_table_row(&r->model->frames, frame)[FP_FRAME_MAPPING];
    return fp_table_row(&r->model->mappings, mapping)[FP_MAPPING_OBJECT];
}

/* The branch or run of a key, with its frames. */
static struct fp_branch *find(struct fp_perf_reader *r, uint32_t pid, const struct fp_branch_key *key) {
    struct fp_branch *branch = fp_branches_find(&r->branches.sums, key);
    if (FP_UNLIKELY(branch->from == FP_NO_ID)) {
        branch->from = fp_perf_code_frame(r, pid, key->from);
        branch->to = fp_perf_code_frame(r, pid, key->to);
    }
    return branch;
}

/* Adds the entries of a sample, newest first: the branch of each, and the run from its target to the next source. */
static void add(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                struct fp_branch_key key) {
    const int has_runs = (e->attr.branch_type & FP_PERF_ANY_BRANCH) != 0;
    uint64_t next = 0; /* the source of the next branch in time; 0: unknown */
    for (uint64_t i = 0; i < s->n_branches; i++) {
        const uint8_t *p = s->branches + i * FP_PERF_ENTRY;
        const uint64_t from = fp_u64s(p, r->swap), to = fp_u64s(p + 8, r->swap);
        if (FP_UNLIKELY(!from || !to)) {
            r->counts.half_branches++;
            next = 0;
            continue;
        }
        key.from = from;
        key.to = to;
        key.is_run = 0;
        struct fp_branch *branch = find(r, s->pid, &key);
        branch->count++;
        branch->mispredicted += fp_perf_is_mispredicted(r, fp_u64s(p + 16, r->swap));
        if (next && has_runs) {
            key.from = to;
            key.to = next;
            key.is_run = 1;
            branch = next < to ? NULL : find(r, s->pid, &key);
            if (branch && object_of(r, branch->from) == object_of(r, branch->to))
                branch->count++;
            else
                r->counts.broken_runs++;
        }
        next = from;
    }
}

int fp_perf_branches(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event, struct fp_batch *out) {
    struct fp_perf_sample parsed;
    const struct fp_perf_sample *s = &parsed;
    struct fp_perf_event *e = &r->events.list[event];
    const uint32_t mode = fp_u16s(p + 4, r->swap) & FP_PERF_MISC_MODE;
    if (fp_perf_parse(r, e, p, n, &parsed)) return 0; /* fp_perf_check has passed: cannot fail */
    if (mode == FP_PERF_IN_GUEST_KERNEL || mode == FP_PERF_IN_GUEST_USER) {
        r->counts.guests++;
        return 0;
    }
    struct fp_branch_key key = {0};
    if (!(e->attr.sample_type & FP_PERF_BRANCH) || e->attr.branch_type & FP_PERF_CALL_STACK) {
        r->counts.without_branches++;
        return 0;
    }
    const int is_added = r->branches.apart == FP_PERF_SAMPLES_APART && r->branches.sums.next; /* called again */
    if (is_added || !fp_branches_have_room(&r->branches.sums, 2 * s->n_branches)) {
        const int status = fp_perf_branch_rows(r, out);
        if (status || is_added) return status;
    }
    if (r->branches.apart) fp_perf_thread_of(r, s, &key.thread, &key.label);
    r->stacks.user = fp_space_generation(r->maps.space, s->pid);
    r->stacks.kernel = fp_space_generation(r->maps.space, FP_SPACE_KERNEL);
    key.space = r->stacks.user;
    key.kernel = r->stacks.kernel;
    add(r, e, s, key);
    fp_perf_count_branches(r, s);
    r->branches.time = s->time;
    e->samples++;
    return r->branches.apart == FP_PERF_SAMPLES_APART ? fp_perf_branch_rows(r, out) : 0;
}

int fp_perf_branch_rows(struct fp_perf_reader *r, struct fp_batch *out) {
    r->branches.sums.next += !r->branches.sums.next;
    if (out->n_values != FP_BRANCHES_COLUMNS) {
        r->request = FP_PERF_COLUMNS;
        return FP_NEEDS;
    }
    const uint64_t time = r->branches.apart == FP_PERF_SAMPLES_APART ? r->branches.time : 0;
    return fp_branches_rows(&r->branches.sums, time, out);
}
