#include "perf_script/branches.h"

struct fp_perf_script_branches *fp_perf_script_branches_new(struct fp_model *model) {
    struct fp_perf_script_branches *r = fp_made(sizeof *r);
    r->model = model;
    fp_space_begin(&r->space);
    fp_table_init(&r->objects, 1);
    fp_branches_begin(&r->sums, model);
    return r;
}

void fp_perf_script_branches_free(struct fp_perf_script_branches *r) {
    fp_branches_clear(&r->sums);
    fp_space_free(r->space);
    fp_table_clear(&r->objects);
    FP_FREE(r->maps, r->of_object, r);
}

/* A span of text. */
struct text {
    const uint8_t *p, *stop;
};

static int take(struct text *t, char byte) {
    if (t->p == t->stop || *t->p != (uint8_t)byte) return 0;
    t->p++;
    return 1;
}

/* `0x401000`, or `401000`.  0 if there are no digits, or more than 64 bits. */
static int take_hex(struct text *t, uint64_t *to) {
    const uint8_t *p = t->p;
    if (t->stop - p > 1 && p[0] == '0' && p[1] == 'x') p += 2;
    const uint8_t *first = p;
    uint64_t value = 0;
    while (p != t->stop && fp_nibble(*p) < 16) value = value << 4 | fp_nibble(*p++);
    if (p == first || p - first > 16) return 0;
    t->p = p;
    *to = value;
    return 1;
}

/* `-1` (which becomes FP_SPACE_KERNEL) or up to 9 digits. */
static int take_id(struct text *t, uint32_t *to) {
    if (t->stop - t->p > 1 && t->p[0] == '-' && t->p[1] == '1') {
        t->p += 2;
        *to = FP_SPACE_KERNEL;
        return 1;
    }
    uint32_t n = 0, value = 0;
    for (; t->p != t->stop && fp_is_digit(*t->p) && n < 9; n++) value = 10 * value + (uint32_t)(*t->p++ - '0');
    *to = value;
    return n != 0;
}

static const uint8_t *find(struct text t, const char *word, size_t n) {
    const uint8_t *p = t.p;
    while ((size_t)(t.stop - p) >= n && (p = memchr(p, word[0], (size_t)(t.stop - p) - n + 1))) {
        if (!memcmp(p, word, n)) return p;
        p++;
    }
    return NULL;
}

static uint32_t new_mapping(struct fp_perf_script_branches *r, uint32_t name, uint64_t start, uint64_t limit,
                            uint64_t offset) {
    return fp_model_mapping(r->model, fp_model_object(r->model, name, 0), start, limit, offset, 0);
}

/* ` 65/65: [0x401000(0x9000) @ 0x1000 08:01 42 0]: r-xp /opt/demo`.  Lines of another form are no mappings. */
static void map(struct fp_perf_script_branches *r, struct text t) {
    uint32_t pid, tid;
    uint64_t start, length, offset;
    const uint8_t *p;
    if (!take(&t, ' ') || !take_id(&t, &pid) || !take(&t, '/') || !take_id(&t, &tid)) return;
    if (!(p = memchr(t.p, '[', (size_t)(t.stop - t.p)))) return;
    t.p = p + 1;
    if (!take_hex(&t, &start) || !take(&t, '(') || !take_hex(&t, &length) || !take(&t, ')')) return;
    if (!take(&t, ' ') || !take(&t, '@') || !take(&t, ' ') || !take_hex(&t, &offset)) return;
    if (!(p = find(t, "]: ", 3))) return;
    t.p = p + 3;
    const uint8_t *name = memchr(t.p, ' ', (size_t)(t.stop - t.p));
    if (!name || !memchr(t.p, 'x', (size_t)(name - t.p)) || !length) return; /* not executable */
    const uint64_t limit = start + length < start ? UINT64_MAX : start + length;
    name++;
    const uint32_t string = fp_strings_intern(&r->model->strings, name, (size_t)(t.stop - name));
    FP_PUSH(r->maps, r->n_maps, r->cap_maps) = (struct fp_perf_script_map){start, limit, offset, string, 0};
    fp_space_map(r->space, pid, start, length, offset, r->n_maps - 1, 0);
    if (pid != FP_SPACE_KERNEL) r->pid = pid;
}

/* `(65:66):(60:60)`: a process and its parent. */
static void fork_process(struct fp_perf_script_branches *r, struct text t) {
    uint32_t pid, tid, parent;
    if (!take(&t, '(') || !take_id(&t, &pid) || !take(&t, ':') || !take_id(&t, &tid) || !take(&t, ')')) return;
    if (!take(&t, ':') || !take(&t, '(') || !take_id(&t, &parent)) return;
    if (pid != parent && pid != FP_SPACE_KERNEL && parent != FP_SPACE_KERNEL) fp_space_fork(r->space, pid, parent);
}

/* The process of a line, which is before its branches: `demo 65/65 `.  Without one that of the last mapping. */
static uint32_t pid_of(const struct fp_perf_script_branches *r, struct text t) {
    for (const uint8_t *p = t.p; (p = memchr(p, '/', (size_t)(t.stop - p))); p++) {
        const uint8_t *first = p;
        while (first != t.p && fp_is_digit(first[-1])) first--;
        struct text pid = {first, p}, tid = {p + 1, t.stop};
        uint32_t found, other;
        if (take_id(&pid, &found) && pid.p == p && take_id(&tid, &other) && tid.p != t.stop && *tid.p == ' ')
            return fp_space_generation(r->space, found) ? found : r->pid;
    }
    return r->pid;
}

/* An end of a branch, and the name of its object; NULL if that is not printed. */
struct end {
    uint64_t address;
    const uint8_t *name;
    size_t n;
};

/* `0x401d36(/opt/demo)`, up to a slash.  0 if it is something else.  *close is the first ")/" from a place at or before
 * t->p on, t->stop if there is none, or NULL: each part of a line is searched once. */
static int take_end(struct text *t, const uint8_t **close, struct end *to) {
    *to = (struct end){0};
    if (t->stop - t->p < 3 || t->p[0] != '0' || t->p[1] != 'x' || !take_hex(t, &to->address)) return 0;
    if (take(t, '(')) {
        to->name = t->p;
        if (!*close || *close < t->p) *close = find(*t, ")/", 2);
        if (!*close) *close = t->stop;
        if (*close == t->stop) return 0;
        to->n = (size_t)(*close - t->p);
        t->p = *close + 1;
    }
    return take(t, '/');
}

/* The mapping of an object whose mappings are not known: its addresses are those of the file. */
static uint32_t mapping_of_object(struct fp_perf_script_branches *r, const struct end *end) {
    static const char unknown[] = "[unknown]";
    if (!end->name || !end->n || (end->n == sizeof unknown - 1 && !memcmp(end->name, unknown, end->n))) return 0;
    const uint32_t name = fp_strings_intern(&r->model->strings, end->name, end->n), before = r->objects.n;
    const uint32_t row = fp_table_intern(&r->objects, &name);
    fp_array_zeroed(&r->of_object, &r->cap_of_object, (uint64_t)row + 1, sizeof *r->of_object);
    if (r->objects.n != before) r->of_object[row] = new_mapping(r, name, 0, UINT64_MAX, 0);
    return r->of_object[row];
}

static uint32_t frame_of(struct fp_perf_script_branches *r, uint32_t pid, const struct end *end) {
    struct fp_space_hit hit;
    const uint32_t whose = end->address >> 63 ? FP_SPACE_KERNEL : pid;
    uint32_t mapping;
    if (fp_space_find(r->space, whose, end->address, &hit)) {
        struct fp_perf_script_map *map = &r->maps[hit.word];
        if (!map->mapping) map->mapping = new_mapping(r, map->name, map->start, map->limit, map->offset);
        mapping = map->mapping;
    } else {
        mapping = mapping_of_object(r, end);
    }
    return fp_model_frame(r->model, mapping, end->address, 0, 0);
}

/* What decides what is at an address of a line: the maps of then, or the object printed. */
static uint64_t place_of(struct fp_perf_script_branches *r, const struct end *end) {
    struct fp_space_hit hit;
    const uint32_t whose = end->address >> 63 ? FP_SPACE_KERNEL : r->line_pid;
    if (end->n && !fp_space_find(r->space, whose, end->address, &hit)) {
        const uint32_t mapping = mapping_of_object(r, end);
        if (mapping) return UINT64_C(1) << 63 | mapping;
    }
    return fp_space_generation(r->space, whose);
}

static uint32_t object_of(const struct fp_perf_script_branches *r, uint32_t frame) {
    const uint32_t mapping = fp_table_row(&r->model->frames, frame)[FP_FRAME_MAPPING];
    return fp_table_row(&r->model->mappings, mapping)[FP_MAPPING_OBJECT];
}

/* Adds a branch, and the run from its target to the source of the next one. */
static void add(struct fp_perf_script_branches *r, const struct end *from, const struct end *to, int missed) {
    const uint32_t pid = r->line_pid;
    const uint64_t source_place = place_of(r, from), target_place = place_of(r, to);
    struct fp_branch_key key = {from->address, to->address, source_place, target_place, .is_run = 0};
    struct fp_branch *branch = fp_branches_find(&r->sums, &key);
    if (branch->from == FP_NO_ID) {
        branch->from = frame_of(r, pid, from);
        branch->to = frame_of(r, pid, to);
    }
    branch->count++;
    branch->mispredicted += (uint64_t)missed;
    r->counts.branches++;
    r->counts.mispredicted += (uint64_t)missed;
    const uint32_t source = branch->from, target = branch->to;
    if (r->next_address >= to->address && object_of(r, target) == object_of(r, r->next_frame)) {
        key = (struct fp_branch_key){to->address, r->next_address, target_place, r->next_place, .is_run = 1};
        branch = fp_branches_find(&r->sums, &key);
        branch->from = target;
        branch->to = r->next_frame;
        branch->count++;
    } else {
        r->counts.broken_runs += r->next_address != 0;
    }
    r->next_address = from->address;
    r->next_frame = source;
    r->next_place = source_place;
}

/* The branches from t->p on.  0; FP_FULL: there is no room for those from t->p on; or FP_E_TRUNCATED. */
static int add_all(struct fp_perf_script_branches *r, struct text *t, int whole) {
    const uint8_t *close = NULL;
    for (;;) {
        struct end from, to;
        while (t->p != t->stop && (*t->p == ' ' || *t->p == '\t')) t->p++;
        if (t->p == t->stop || *t->p != '0') return 0;
        if (!fp_branches_have_room(&r->sums, 2)) return FP_FULL;
        struct text rest = *t;
        if (!take_end(&rest, &close, &from) || !take_end(&rest, &close, &to) || rest.p == rest.stop)
            return whole ? 0 : FP_E_TRUNCATED;
        const int missed = *rest.p == 'M';
        const uint8_t *end = memchr(rest.p, ' ', (size_t)(rest.stop - rest.p));
        if (!end && !whole) return FP_E_TRUNCATED;
        t->p = end ? end : rest.stop;
        if (from.address && to.address) {
            add(r, &from, &to, missed);
        } else {
            r->counts.half_branches++;
            r->next_address = 0;
        }
    }
}

/* Where the branches of a line begin: at ` 0x`, hexadecimal digits, and a slash or an object; NULL if it has none. */
static const uint8_t *branches_of(struct text t) {
    const uint8_t *p, *first_close = NULL, *second_close = NULL;
    while ((p = find(t, " 0x", 3))) {
        struct text at = {p + 1, t.stop};
        struct end from, to;
        if (take_end(&at, &first_close, &from) && take_end(&at, &second_close, &to)) return p + 1;
        t.p = p + 1;
    }
    return NULL;
}

/* Begins a line.  Whether it has branches; they begin at t->p. */
static int begin(struct fp_perf_script_branches *r, struct text *t) {
    static const char mmap[] = "PERF_RECORD_MMAP", fork_[] = "PERF_RECORD_FORK";
    const uint8_t *p = find(*t, mmap, sizeof mmap - 1);
    if (p) {
        t->p = p + sizeof mmap - 1;
        take(t, '2');
        map(r, *t);
        return 0;
    }
    if ((p = find(*t, fork_, sizeof fork_ - 1))) {
        t->p = p + sizeof fork_ - 1;
        fork_process(r, *t);
        return 0;
    }
    p = branches_of(*t);
    if (!p) {
        r->counts.other_lines += t->p != t->stop;
        return 0;
    }
    r->line_pid = pid_of(r, (struct text){t->p, p});
    r->next_address = 0;
    t->p = p;
    return 1;
}

int fp_perf_script_branches_feed(struct fp_perf_script_branches *r, struct fp_window *in, struct fp_batch *out,
                                 struct fp_err *err) {
    r->sums.most = r->most;
    for (;;) {
        if (r->sums.next) FP_TRY(fp_branches_rows(&r->sums, 0, out));
        const size_t left = in->n - in->pos;
        const uint8_t *p = in->p + in->pos, *end = left ? memchr(p, '\n', left) : NULL;
        if (!end && !in->eof) return FP_MORE;
        if (!left) break;
        struct text t = {p, end ? end : in->p + in->n};
        if (!r->is_inside) r->is_inside = begin(r, &t);
        const int status = r->is_inside ? add_all(r, &t, end != NULL) : 0;
        if (status == FP_FULL) {
            in->pos = (size_t)(t.p - in->p);
            r->sums.next = 1;
            continue;
        }
        if (status && !r->lenient) return fp_fail(err, status, in->base + in->pos, "the input ends inside a branch");
        r->counts.unread += status != 0;
        in->pos = (size_t)(t.stop - in->p) + (end != NULL);
        r->is_inside = 0;
    }
    const int status = fp_branches_rows(&r->sums, 0, out);
    return status ? status : FP_DONE;
}
