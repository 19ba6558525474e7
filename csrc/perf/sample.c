/* Parses samples. */
#include "perf/private.h"

/* The unread rest of a record. */
struct rest {
    const uint8_t *p;
    uint64_t n; /* bytes */
    int swap;
};

/* Reads the next 64-bit word; 0 if the record has ended: then reads of more bytes fail, too. */
static int word(struct rest *rest, uint64_t *to) {
    if (rest->n < 8) return 0;
    *to = fp_u64s(rest->p, rest->swap);
    rest->p += 8;
    rest->n -= 8;
    return 1;
}

/* Skips `count` items of `width` bytes; *at becomes their address. */
static int items(struct rest *rest, uint64_t count, uint32_t width, const uint8_t **at) {
    if (count > rest->n / width) return 0;
    *at = rest->p;
    rest->p += count * width;
    rest->n -= count * width;
    return 1;
}

static int skip(struct rest *rest, uint64_t n) {
    const uint8_t *at;
    return items(rest, n, 1, &at);
}

/*   one counter   value [enabled] [running] [id] [lost]
 *   a group       n [enabled] [running] { value [id] [lost] } * n */
static int read_values(struct rest *rest, uint64_t format, struct fp_perf_sample *s) {
    const uint32_t times = (format & FP_PERF_ENABLED ? 8 : 0) + (format & FP_PERF_RUNNING ? 8 : 0);
    s->read_words = 1u + (format & FP_PERF_READ_ID ? 1 : 0) + (format & FP_PERF_READ_LOST ? 1 : 0);
    if (format & FP_PERF_GROUP)
        return word(rest, &s->n_read) && skip(rest, times) && items(rest, s->n_read, 8 * s->read_words, &s->read);
    s->n_read = 1;
    s->read = rest->p; /* the value; the times are between it and the id */
    s->read_words = 0;
    return skip(rest, 8 + times + (format & FP_PERF_READ_ID ? 8 : 0) + (format & FP_PERF_READ_LOST ? 8 : 0));
}

static int read_raw(struct rest *rest, struct fp_perf_sample *s) {
    if (rest->n < 4) return 0;
    s->n_raw = fp_u32s(rest->p, rest->swap);
    s->raw = rest->p + 4;
    return skip(rest, (uint64_t)s->n_raw + 4);
}

static int read_branches(struct rest *rest, uint64_t branch_type, struct fp_perf_sample *s) {
    return word(rest, &s->n_branches) && (!(branch_type & FP_PERF_HW_INDEX) || skip(rest, 8)) &&
           items(rest, s->n_branches, 24, &s->branches);
}

static int read_regs(struct rest *rest, uint64_t mask, uint64_t *abi, const uint8_t **regs) {
    return word(rest, abi) && (!*abi || items(rest, (uint64_t)__builtin_popcountll(mask), 8, regs));
}

static int read_stack(struct rest *rest, struct fp_perf_sample *s) {
    uint64_t used, n;
    if (!word(rest, &n)) return 0;
    if (!n) return 1;
    if (!items(rest, n, 1, &s->stack) || !word(rest, &used)) return 0;
    s->n_stack = used < n ? used : n;
    return 1;
}

/* The size of the one-word fields. */
static uint64_t words(uint64_t type) {
    return 8 * (uint64_t)__builtin_popcountll(type);
}

/* The fields after the call chain. */
static const char *parse_rest(struct rest *rest, const struct fp_perf_event *e, struct fp_perf_sample *s) {
    const uint64_t type = e->attr.sample_type, regs_user = e->attr.regs_user, regs_intr = e->attr.regs_intr;
    const uint64_t weight = type & (FP_PERF_WEIGHT | FP_PERF_WEIGHT_STRUCT) ? 8 : 0;
    const uint64_t before = type & (FP_PERF_DATA_SRC | FP_PERF_TRANSACTION);
    const uint64_t after = type & (FP_PERF_PHYS_ADDR | FP_PERF_CGROUP | FP_PERF_DATA_PAGE | FP_PERF_CODE_PAGE);
    uint64_t abi, n;
    const uint8_t *at;
    if (type & FP_PERF_RAW && !read_raw(rest, s)) return "the raw data of a sample extends past its record";
    if (type & FP_PERF_BRANCH && !read_branches(rest, e->attr.branch_type, s))
        return "the branches of a sample extend past its record";
    if (type & FP_PERF_REGS_USER && !read_regs(rest, regs_user, &s->regs_abi, &s->regs))
        return "the registers of a sample extend past its record";
    if (type & FP_PERF_STACK_USER && !read_stack(rest, s)) return "the bytes of a stack extend past its record";
    if (!skip(rest, weight + words(before))) return "the fields of a sample extend past its record";
    if (type & FP_PERF_REGS_INTR && !read_regs(rest, regs_intr, &abi, &at))
        return "the registers of a sample extend past its record";
    if (!skip(rest, words(after))) return "the fields of a sample extend past its record";
    if (type & FP_PERF_AUX && !(word(rest, &n) && skip(rest, n))) return "the bytes of a trace extend past its record";
    return NULL;
}

static const char beyond_record[] = "the fields of a sample extend past its record";
static const char beyond_sample[] = "the addresses of a call chain extend past its sample";

/* With `perf record --off-cpu` of Linux 6.15 and later, the sample is in the raw data:
 *
 *   u32 pid, tid; u64 nanoseconds; u64 n; u64 chain[n], which begins with a marker; u64 control group
 */
static const char *replace_by_raw(struct fp_perf_sample *s, int swap) {
    struct rest rest = {s->raw, s->n_raw, swap};
    const uint8_t *ids;
    if (!items(&rest, 1, 8, &ids) || !word(&rest, &s->period) || !word(&rest, &s->n_chain) ||
        !items(&rest, s->n_chain, 8, &s->chain))
        return "the raw data of an offcpu-time sample are too short";
    s->pid = fp_u32s(ids, swap);
    s->tid = fp_u32s(ids + 4, swap);
    s->ip = s->n_chain > 1 ? fp_u64s(s->chain + 8, swap) : 0;
    return NULL;
}

const char *fp_perf_check(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n) {
    const uint64_t type = e->attr.sample_type;
    const uint32_t fixed = FP_PERF_HEAD + 8 * e->n_fixed;
    if (type & (FP_PERF_READ | ~(uint64_t)((FP_PERF_RAW - 1) | FP_PERF_IDENTIFIER))) {
        struct fp_perf_sample s;
        return fp_perf_parse(r, e, p, n, &s);
    }
    if (n < fixed) return beyond_record;
    if (!(type & FP_PERF_CALLCHAIN)) return NULL;
    return n - fixed >= 8 && fp_u64s(p + fixed, r->swap) <= (n - fixed - 8) / 8 ? NULL : beyond_sample;
}

const char *fp_perf_parse(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n,
                          struct fp_perf_sample *s) {
    const uint64_t type = e->attr.sample_type;
    const uint32_t fixed = FP_PERF_HEAD + 8 * e->n_fixed;
    const int swap = r->swap;
    memset(s, 0, sizeof *s);
    if (n < fixed) return beyond_record;
    s->ip = e->ip ? fp_u64s(p + e->ip, swap) : 0;
    s->pid = e->tid ? fp_u32s(p + e->tid, swap) : UINT32_MAX;
    s->tid = e->tid ? fp_u32s(p + e->tid + 4, swap) : UINT32_MAX;
    s->time = e->time ? fp_u64s(p + e->time, swap) : 0;
    s->id = e->id ? fp_u64s(p + e->id, swap) : 0;
    s->cpu = e->cpu ? fp_u32s(p + e->cpu, swap) : UINT32_MAX;
    s->period = e->period ? fp_u64s(p + e->period, swap) : e->attr.period;
    struct rest rest = {p + fixed, n - fixed, swap};
    if (type & FP_PERF_READ && !read_values(&rest, e->attr.read_format, s))
        return "the counters of a sample extend past its record";
    if (type & FP_PERF_CALLCHAIN && !(word(&rest, &s->n_chain) && items(&rest, s->n_chain, 8, &s->chain)))
        return beyond_sample;
    const int is_done = !(type & ~(uint64_t)((FP_PERF_RAW - 1) | FP_PERF_IDENTIFIER)); /* usually */
    if (is_done) return NULL;
    const char *wrong = parse_rest(&rest, e, s);
    return !wrong && FP_UNLIKELY(e->is_off_cpu_time) ? replace_by_raw(s, swap) : wrong;
}

uint64_t fp_perf_is_mispredicted(const struct fp_perf_reader *r, uint64_t flags) {
    const int is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != (r->swap != 0);
    return is_big ? flags >> 63 : flags & 1;
}

void fp_perf_count_branches(struct fp_perf_reader *r, const struct fp_perf_sample *s) {
    r->counts.branches += s->n_branches;
    for (uint64_t i = 0; i < s->n_branches; i++)
        r->counts.mispredicted += fp_perf_is_mispredicted(r, fp_u64s(s->branches + i * FP_PERF_ENTRY + 16, r->swap));
}
