/* Processes and threads: their names and memory maps. */
#include "perf/private.h"

/* The length of a name, which ends at a NUL or with its record. */
static size_t length_of(const uint8_t *name, size_t most) {
    const uint8_t *end = memchr(name, 0, most);
    return end ? (size_t)(end - name) : most;
}

/* ---- threads ---- */

uint32_t fp_perf_thread(struct fp_perf_reader *r, uint32_t pid, uint32_t tid) {
    if (r->threads.last && tid == r->threads.last_id) return r->threads.last;
    const uint32_t n = r->threads.ids.n;
    const uint32_t row = fp_table_intern(&r->threads.ids, &tid);
    fp_array_zeroed(&r->threads.list, &r->threads.cap, r->threads.ids.n, sizeof *r->threads.list);
    r->threads.last_id = tid;
    r->threads.last = row;
    if (r->threads.ids.n == n) return row;
    r->threads.list[row] = (struct fp_perf_thread){.pid = pid, .label = FP_NO_ID};
    if (!tid) { /* the idle task */
        const uint32_t swapper = fp_strings_intern(&r->model->strings, "swapper", 7);
        r->threads.list[row].comm = swapper;
    }
    return row;
}

static int set_comm(struct fp_perf_reader *r, uint32_t pid, uint32_t tid, const uint8_t *name, size_t n) {
    const uint32_t row = fp_perf_thread(r, pid, tid), comm = fp_strings_intern(&r->model->strings, name, n);
    r->threads.list[row].comm = comm;
    r->threads.list[row].label = FP_NO_ID;
    r->threads.list[row].exited = 0; /* after an exec, another thread of the process may take this id */
    return 0;
}

/* u32 pid, ppid, tid, ptid.  A new process inherits its parent's maps, unless perf made the record from /proc at
 * the start: then its maps follow. */
static int fork_thread(struct fp_perf_reader *r, const uint8_t *p, int synthesized) {
    const uint32_t pid = fp_u32s(p + 8, r->swap), ppid = fp_u32s(p + 12, r->swap);
    const uint32_t tid = fp_u32s(p + 16, r->swap), ptid = fp_u32s(p + 20, r->swap);
    const uint32_t parent = fp_perf_thread(r, ppid, ptid);
    const uint32_t comm = r->threads.list[parent].comm;
    const uint32_t row = fp_perf_thread(r, pid, tid);
    struct fp_perf_thread *t = &r->threads.list[row];
    if (row != parent) {
        const struct fp_perf_thread old = *t;
        *t = (struct fp_perf_thread){.pid = pid, .comm = comm, .label = FP_NO_ID};
        t->left_frames = old.left_frames;
        t->cap_left = old.cap_left;
    }
    if (pid == ppid || pid == FP_SPACE_KERNEL || ppid == FP_SPACE_KERNEL) return 0;
    if (!synthesized) return fp_space_fork(r->maps.space, pid, ppid);
    return pid == tid ? fp_space_exec(r->maps.space, pid) : 0;
}

/* u32 pid, ppid, tid, ptid */
static int exit_thread(struct fp_perf_reader *r, const uint8_t *p) {
    const uint32_t row = fp_perf_thread(r, fp_u32s(p + 8, r->swap), fp_u32s(p + 16, r->swap));
    r->threads.list[row].exited = 1;
    return 0;
}

uint32_t fp_perf_comm(const struct fp_perf_reader *r, uint32_t i, uint32_t *pid, uint32_t *tid, int *has_samples) {
    if (i >= r->threads.ids.n) return FP_NO_ID;
    const struct fp_perf_thread *t = &r->threads.list[i];
    *has_samples = t->thread != 0;
    *pid = t->thread ? t->thread_pid : t->pid;
    *tid = *fp_table_row(&r->threads.ids, i);
    return t->comm;
}

/* The labels of a thread on a CPU. */
static uint32_t label_of(struct fp_perf_reader *r, struct fp_perf_thread *t, uint32_t cpu) {
    if (t->label != FP_NO_ID && t->cpu == cpu) return t->label;
    uint32_t label = t->comm ? fp_model_label(r->model, 0, r->threads.comm_key, t->comm, 0, 0) : 0;
    if (cpu != UINT32_MAX) label = fp_model_label(r->model, label, r->threads.cpu_key, 0, cpu, 0);
    t->label = label;
    t->cpu = cpu;
    return label;
}

void fp_perf_thread_of(struct fp_perf_reader *r, const struct fp_perf_sample *s, uint32_t *thread, uint32_t *label) {
    const uint32_t row = fp_perf_thread(r, s->pid, s->tid);
    struct fp_perf_thread *t = &r->threads.list[row];
    if (!t->thread || t->thread_pid != s->pid) {
        t->thread = fp_model_thread(r->model, r->input, s->pid, s->tid);
        t->thread_pid = s->pid;
    }
    *thread = t->thread;
    *label = label_of(r, t, r->cpu_labels ? s->cpu : UINT32_MAX);
}

/* ---- maps ---- */

int fp_perf_build_id(struct fp_perf_reader *r, uint32_t name, uint32_t build_id) {
    const uint32_t without[] = {name, 0};
    r->counts.late_build_ids += fp_table_find(&r->model->objects, without) != 0;
    *FP_AT(r->maps.build_ids, r->maps.cap_build_ids, name) = build_id;
    return 0;
}

uint32_t fp_perf_build_id_of(const struct fp_perf_reader *r, const struct fp_perf_map *map) {
    if (map->build_id) return map->build_id;
    return map->name < r->maps.cap_build_ids ? r->maps.build_ids[map->name] : 0;
}

/* The end of a range; the last address if the range wraps. */
static uint64_t limit_of(uint64_t start, uint64_t len) {
    return start + len < start ? UINT64_MAX : start + len;
}

int fp_perf_map_range(struct fp_perf_reader *r, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
                      uint32_t name, uint32_t flags) {
    if (!len) return 0;
    FP_PUSH(r->maps.list, r->maps.n, r->maps.cap) = (struct fp_perf_map){
        .start = start,
        .limit = limit_of(start, len),
        .pgoff = pgoff,
        .name = name,
        .build_id = name < r->maps.cap_build_ids ? r->maps.build_ids[name] : 0,
    };
    return fp_space_map(r->maps.space, pid, start, len, pgoff, r->maps.n - 1, flags);
}

static int begins(const uint8_t *p, size_t n, const char *with) {
    const size_t k = strlen(with);
    return n >= k && !memcmp(p, with, k);
}

static int is(const uint8_t *p, size_t n, const char *text) {
    return n == strlen(text) && !memcmp(p, text, n);
}

/* Memory without a file, where JIT compilers put code: /tmp/perf-PID.map has its symbols. */
static int is_anonymous(const uint8_t *p, size_t n, uint32_t flags) {
    enum { MAP_HUGE = 0x40000 };
    return flags & MAP_HUGE || is(p, n, "//anon") || begins(p, n, "/dev/zero") || begins(p, n, "/anon_hugepage") ||
           is(p, n, "[heap]") || begins(p, n, "[stack") || begins(p, n, "/SYSV");
}

/* Whether a file is a JIT dump, `.../jit-4711.dump`: JIT compilers map a page of it to record its name. */
static int is_dump(const uint8_t *name, size_t n) {
    enum { LEAST = sizeof "jit-1.dump" - 1 };
    size_t k = 0;
    if (n < LEAST || memcmp(name + n - 5, ".dump", 5)) return 0;
    for (n -= 5; k < n && name[n - 1 - k] >= '0' && name[n - 1 - k] <= '9'; k++) continue;
    n -= k;
    return k && n >= 4 && !memcmp(name + n - 4, "jit-", 4) && (n == 4 || name[n - 5] == '/');
}

/* Requests each JIT dump that a process maps once.  0 or FP_NEEDS. */
static int note_dump(struct fp_perf_reader *r, uint32_t pid, const uint8_t *name, size_t n) {
    if (!is_dump(name, n)) return 0;
    const uint32_t string = fp_strings_intern(&r->model->strings, name, n), known = r->dumps.names.n;
    fp_table_intern(&r->dumps.names, &string);
    if (r->dumps.names.n == known) return 0;
    r->request = FP_PERF_DUMP;
    r->record = name;
    r->record_n = n;
    r->dumps.pid = pid;
    r->dumps.name = string;
    return FP_NEEDS;
}

static int map_user(struct fp_perf_reader *r, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
                    uint32_t flags, int executable, const uint8_t *name, size_t n) {
    uint8_t file[] = "/tmp/perf-4294967295.map";
    if (pid == FP_SPACE_KERNEL || !len) return 0;
    if (executable && is_anonymous(name, n, flags)) {
        uint8_t *end = fp_put_decimal(file + 10, pid);
        memcpy(end, ".map", 4);
        name = file;
        n = (size_t)(end + 4 - file);
        pgoff = start;
    } else if (is(name, n, "[vdso]")) {
        pgoff = 0;
    } else if (executable) {
        FP_TRY(note_dump(r, pid, name, n));
    }
    const uint32_t string = fp_strings_intern(&r->model->strings, name, n);
    return fp_perf_map_range(r, pid, start, len, pgoff, string, executable ? FP_PERF_IS_EXECUTABLE : 0);
}

/* A kernel module's name: /lib/modules/6.1/kernel/fs/nfs-common.ko.xz is [nfs_common]. */
static uint32_t module_name(struct fp_perf_reader *r, const uint8_t *name, size_t n) {
    static const char *const packings[] = {".gz", ".xz", ".zst"};
    enum { MOST = 256 };
    uint8_t text[MOST];
    size_t k = n, from = 0;
    for (size_t i = 0; i < n; i++)
        if (name[i] == '/') from = i + 1;
    for (uint32_t i = 0; i < 3; i++) {
        const size_t length = strlen(packings[i]);
        if (k - from > length && is(name + k - length, length, packings[i])) k -= length;
    }
    if (name[0] != '/' || k - from < 4 || !is(name + k - 3, 3, ".ko") || k - from + 2 > MOST)
        return fp_strings_intern(&r->model->strings, name, n);
    n = 0;
    text[n++] = '[';
    for (; from < k - 3; from++) text[n++] = name[from] == '-' ? '_' : name[from];
    text[n++] = ']';
    return fp_strings_intern(&r->model->strings, text, n);
}

/* The offset of the kernel's mapping is the address of a symbol.  Before Linux 3.14 its start was 0: use the offset. */
static int map_kernel(struct fp_perf_reader *r, uint64_t start, uint64_t len, uint64_t pgoff, const uint8_t *name,
                      size_t n) {
    uint32_t string;
    if (begins(name, n, "[kernel.kallsyms")) {
        string = r->maps.kernel_name;
        if (!r->maps.has_kernel && pgoff && (string >= r->maps.cap_build_ids || !r->maps.build_ids[string])) {
            r->maps.has_kernel = 1;
            r->request = FP_PERF_KERNEL;
            r->requested_name = string;
            r->requested_address = pgoff;
            return FP_NEEDS;
        }
        if (!start && pgoff) {
            len = len > pgoff ? len - pgoff : UINT64_MAX - pgoff;
            start = pgoff;
        } else if (start + len == 0) {
            len = UINT64_MAX - start;
        }
    } else if (n && (name[0] == '/' || name[0] == '[')) {
        string = module_name(r, name, n);
    } else {
        return 0;
    }
    return fp_perf_map_range(r, FP_SPACE_KERNEL, start, len, pgoff, string, 0);
}

/* The length of a build id.  Without a size it has 20 bytes, of which shorter ids zero the last. */
static uint32_t build_id_length(const uint8_t *id, uint32_t n) {
    static const uint8_t zeros[12];
    if (n && n <= 20) return n;
    if (!memcmp(id + 8, zeros, 12)) return 8;
    return memcmp(id + 16, zeros, 4) ? 20 : 16;
}

/* u8 size, u8, u16, u8 id[20], in place of the file's device and inode. */
static int note_build_id(struct fp_perf_reader *r, const uint8_t *p, const uint8_t *name, size_t n) {
    static const char digits[] = "0123456789abcdef";
    uint8_t text[40];
    const uint32_t length = build_id_length(p + 4, p[0]);
    for (uint32_t i = 0; i < length; i++) {
        text[2 * i] = (uint8_t)digits[p[4 + i] >> 4];
        text[2 * i + 1] = (uint8_t)digits[p[4 + i] & 15];
    }
    const uint32_t file = fp_strings_intern(&r->model->strings, name, n);
    const uint32_t id = fp_strings_intern(&r->model->strings, text, 2 * length);
    return fp_perf_build_id(r, file, id);
}

/* u32 pid, tid; u64 start, len, pgoff; MMAP2: 24 bytes of the file's identity, u32 protection, flags; the name */
static int map(struct fp_perf_reader *r, const uint8_t *p, size_t n, int is_2) {
    enum { PROT_EXECUTE = 4 };
    const uint32_t misc = fp_u16s(p + 4, r->swap), mode = misc & FP_PERF_MISC_MODE, pid = fp_u32s(p + 8, r->swap);
    const uint64_t start = fp_u64s(p + 16, r->swap), len = fp_u64s(p + 24, r->swap), pgoff = fp_u64s(p + 32, r->swap);
    const uint8_t *name = p + (is_2 ? 72 : 40);
    const size_t name_n = length_of(name, n - (size_t)(name - p));
    const uint32_t protection = is_2 ? fp_u32s(p + 64, r->swap) : misc & FP_PERF_MISC_13 ? 0 : PROT_EXECUTE;
    const uint32_t flags = is_2 ? fp_u32s(p + 68, r->swap) : 0;
    if (is_2 && misc & FP_PERF_MISC_14) note_build_id(r, p + 40, name, name_n);
    if (mode == FP_PERF_IN_KERNEL) return map_kernel(r, start, len, pgoff, name, name_n);
    if (mode == FP_PERF_IN_GUEST_KERNEL || mode == FP_PERF_IN_GUEST_USER) return 0;
    return map_user(r, pid, start, len, pgoff, flags, (protection & PROT_EXECUTE) != 0, name, name_n);
}

/* u64 address; u32 length; u16 type, flags; the name: code generated in the kernel, such as BPF programs */
static int symbol(struct fp_perf_reader *r, const uint8_t *p, size_t n) {
    const uint64_t start = fp_u64s(p + 8, r->swap);
    const uint32_t len = fp_u32s(p + 16, r->swap);
    const uint8_t *name = p + 24;
    struct fp_space_hit hit;
    if (fp_u16s(p + 22, r->swap) & 1) return fp_space_unmap(r->maps.space, FP_SPACE_KERNEL, start, len);
    if (!len || fp_space_find(r->maps.space, FP_SPACE_KERNEL, start, &hit)) return 0;
    const uint32_t string = fp_strings_intern(&r->model->strings, name, length_of(name, n - 24));
    return fp_perf_map_range(r, FP_SPACE_KERNEL, start, len, start, string, FP_PERF_IS_SYMBOL);
}

int fp_perf_apply(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n) {
    const uint32_t pid = fp_u32s(p + 8, r->swap);
    const int marked = fp_u16s(p + 4, r->swap) >> 13 & 1;
    n -= e->trailer;
    switch (fp_u32s(p, r->swap)) {
        case FP_PERF_MMAP: return map(r, p, n, 0);
        case FP_PERF_MMAP2: return map(r, p, n, 1);
        case FP_PERF_COMM: return set_comm(r, pid, fp_u32s(p + 12, r->swap), p + 16, length_of(p + 16, n - 16));
        case FP_PERF_FORK: return fork_thread(r, p, marked);
        case FP_PERF_EXIT: return exit_thread(r, p);
        case FP_PERF_KSYMBOL: return symbol(r, p, n);
        default: return 0;
    }
}
