#include "core/model.h"

#include <errno.h>

#include "core/guard.h"
#include "core/memory.h"

/* Hashes sixteen bytes at a time, in two sums, because each product waits for the previous one.  The last sixteen may
 * overlap bytes hashed before: a byte-by-byte tail would cost more than everything else. */
static inline uint64_t hash_of(const void *bytes, size_t n) {
    const uint8_t *p = n ? bytes : (const uint8_t *)"", *end = p + n; /* nothing may be NULL */
    uint64_t h = n, a = 0, b = 0;
    if (n >= 16) {
        if (n > 32) {
            uint64_t g = n;
            for (; end - p > 32; p += 32) {
                h = fp_mix(fp_u64(p) ^ h, fp_u64(p + 8));
                g = fp_mix(fp_u64(p + 16) ^ g, fp_u64(p + 24));
            }
            h ^= g << 1 | g >> 63;
        }
        if (end - p > 16) h = fp_mix(fp_u64(p) ^ h, fp_u64(p + 8));
        a = fp_u64(end - 16);
        b = fp_u64(end - 8);
    } else if (n >= 8) {
        a = fp_u64(p);
        b = fp_u64(end - 8);
    } else if (n >= 4) {
        a = fp_u32(p);
        b = fp_u32(end - 4);
    } else if (n) {
        a = p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)end[-1] << 16;
    }
    return fp_mix(a ^ h, b + 0x2545f4914f6cdd1du);
}

uint64_t fp_hash_bytes(const void *bytes, size_t n) {
    return hash_of(bytes, n);
}

/* There can be no further entry: escapes, or returns FP_NO_ID. */
static uint32_t no_id(void) {
    (void)fp_escape();
    return FP_NO_ID;
}

static void release_index(uint64_t *index, uint32_t mask) {
    fp_release(index, index ? ((size_t)mask + 1) * sizeof *index : 0);
}

static inline void enter(uint64_t *index, uint32_t mask, uint64_t slot) {
    uint32_t at = (uint32_t)(slot >> 32) & mask;
    while (index[at]) at = (at + 1) & mask;
    index[at] = slot;
}

/* Grows an index, which starts with 64 slots, to twice its size; to four times while it is small, because each size on
 * the way costs fresh memory.  A slot holds 32 bits of the hash, so growing does not read entries, and a search
 * compares few wrong ones.
 *
 * No entry moves farther from the start of its search: entries are moved in order, beginning after a free slot, so the
 * slot at the old distance is still free when an entry is moved. */
static int grow_index(uint64_t **index, uint32_t *mask) {
    enum { SMALL = 1 << 16 };
    const uint64_t had = *index ? (uint64_t)*mask + 1 : 0, slots = !had ? 64 : had < SMALL ? had * 4 : had * 2;
    if (slots > (uint64_t)1 << 31) return FP_E_NOMEM;
    uint64_t *fresh = fp_zeroed((size_t)slots * sizeof *fresh);
    if (!fresh) return FP_E_NOMEM;
    uint32_t fresh_mask = (uint32_t)slots - 1, first = 0;
    while (had && (*index)[first]) first++;
    for (uint64_t i = 0; i < had; i++) {
        uint64_t slot = (*index)[(first + i) & *mask];
        if (slot) enter(fresh, fresh_mask, slot);
    }
    release_index(*index, *mask);
    *index = fresh;
    *mask = fresh_mask;
    return 0;
}

/* Whether a free slot is too far from the slot where the search for a new key began. */
static inline int is_far(uint32_t at, uint32_t hash, uint32_t mask, const struct fp_hash_key *secret) {
    return FP_UNLIKELY(((at - hash) & mask) > FP_FAR) && !secret->key[0];
}

/* Takes a secret and hashes all keys with it.  Key i is keys[start[i] .. start[i+1]), or of `width` bytes if there is
 * no `start`.  0 or FP_E_NOMEM. */
static int rehash(uint64_t **index, uint32_t mask, struct fp_hash_key *secret, const void *keys, const uint64_t *start,
                  size_t width) {
    uint64_t *fresh = fp_zeroed(((size_t)mask + 1) * sizeof *fresh);
    if (!fresh) return FP_E_NOMEM;
    fp_hash_key_take(secret);
    for (size_t i = 0; i <= mask; i++) {
        const uint32_t id = (uint32_t)(*index)[i];
        if (!id) continue;
        const uint64_t from = start ? start[id] : id * (uint64_t)width, n = start ? start[id + 1] - from : width;
        enter(fresh, mask, fp_hash_key_hash(secret, (const uint8_t *)keys + from, (size_t)n) << 32 | id);
    }
    release_index(*index, mask);
    *index = fresh;
    return 0;
}

/* memcmp(a, b, n) == 0, faster for short strings: no call, eight bytes at a time.
 * The last eight may overlap the ones before. */
static inline int same_bytes(const uint8_t *a, const uint8_t *b, size_t n) {
    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            if (a[i] != b[i]) return 0;
        return 1;
    }
    for (size_t i = 0; i + 8 < n; i += 8)
        if (fp_u64(a + i) != fp_u64(b + i)) return 0;
    return fp_u64(a + n - 8) == fp_u64(b + n - 8);
}

static inline int same_row(const uint32_t *a, const uint32_t *b, uint32_t width) {
    uint32_t differ = 0;
    for (uint32_t i = 0; i < width; i++) differ |= a[i] ^ b[i];
    return !differ;
}

static int init_strings(struct fp_strings *s) {
    s->cap = 64;
    s->bytes_cap = 1024;
    s->most = UINT32_MAX;
    s->bytes = fp_grow(NULL, 0, s->bytes_cap);
    s->start = fp_grow(NULL, 0, (s->cap + 1) * sizeof *s->start);
    if (!s->bytes || !s->start) return FP_E_NOMEM;
    s->start[0] = s->start[1] = 0;
    s->n = 1; /* id 0: the empty string */
    return grow_index(&s->index, &s->index_mask);
}

int fp_strings_init(struct fp_strings *s) {
    return init_strings(s) ? fp_escape() : 0;
}

static inline size_t start_bytes(const struct fp_strings *s) {
    return ((size_t)s->cap + 1) * sizeof *s->start;
}

static void release_strings(const struct fp_strings *s) {
    void (*const release)(void *, size_t) = s->file ? fp_file_release : fp_release;
    release(s->bytes, s->bytes ? s->bytes_cap : 0);
    release(s->start, s->start ? start_bytes(s) : 0);
}

void fp_strings_clear(struct fp_strings *s) {
    release_strings(s);
    release_index(s->index, s->index_mask);
    memset(s, 0, sizeof *s);
}

void fp_strings_seal(struct fp_strings *s) {
    release_index(s->index, s->index_mask);
    s->index = NULL;
    s->index_mask = 0;
}

void fp_strings_to_file(struct fp_strings *s, int fd, uint64_t at) {
    uint8_t *bytes = fp_file_copy(fd, at, s->bytes, (size_t)s->start[s->n], (size_t)s->bytes_cap);
    uint64_t *start = fp_file_copy(fd, at + FP_FILE_PART, s->start, ((size_t)s->n + 1) * sizeof *start, start_bytes(s));
    if (bytes && start) {
        release_strings(s);
        s->bytes = bytes;
        s->start = start;
        s->file = fd + 1;
        s->file_at = at;
        return;
    }
    fp_file_release(bytes, (size_t)s->bytes_cap);
    fp_file_release(start, start_bytes(s));
}

void fp_strings_rest(const struct fp_strings *s) {
    if (!s->file) return;
    fp_file_rest(s->bytes, (size_t)s->bytes_cap);
    fp_file_rest(s->start, start_bytes(s));
}

static void *grow_strings(struct fp_strings *s, uint64_t part, void *p, size_t had, size_t nbytes) {
    if (!s->file) return fp_grow(p, had, nbytes);
    void *const fresh = fp_file_grow(s->file - 1, s->file_at + part, p, had, nbytes);
    if (!fresh) s->file_error = errno;
    return fresh;
}

void fp_strings_empty(struct fp_strings *s) {
    memset(s->index, 0, ((size_t)s->index_mask + 1) * sizeof *s->index);
    s->n = 1;
}

uint32_t fp_strings_intern(struct fp_strings *s, const void *p, size_t n) {
    return fp_strings_intern_hashed(s, p, n, (uint32_t)hash_of(p, n));
}

/* Counts only new strings. */
__attribute__((noinline)) static uint32_t intern_cut(struct fp_strings *s, const void *p) {
    const uint32_t had = s->n, id = fp_strings_intern(s, p, s->most);
    if (s->n == had) return id;
    s->n_cut++;
    return s->cut = id;
}

/* Adds n bytes as a new string.  FP_NO_ID when memory ran out. */
static inline uint32_t append(struct fp_strings *s, const void *p, size_t n) {
    if (s->n == FP_NO_ID - 1) return FP_NO_ID;
    if (s->n == s->cap) {
        uint64_t cap = (uint64_t)s->cap * 2 < FP_NO_ID ? (uint64_t)s->cap * 2 : FP_NO_ID;
        uint64_t *start = grow_strings(s, FP_FILE_PART, s->start, start_bytes(s), (size_t)(cap + 1) * sizeof *start);
        if (!start) return FP_NO_ID;
        s->start = start;
        s->cap = (uint32_t)cap;
    }
    uint64_t end = s->start[s->n];
    if (n > s->bytes_cap - end) {
        uint64_t cap = s->bytes_cap * 2 > end + n ? s->bytes_cap * 2 : (end + n) * 2;
        uint8_t *bytes = grow_strings(s, 0, s->bytes, s->bytes_cap, (size_t)cap);
        if (!bytes) return FP_NO_ID;
        s->bytes = bytes;
        s->bytes_cap = cap;
    }
    memcpy(s->bytes + end, p, n);
    s->start[s->n + 1] = end + n;
    return s->n++;
}

uint32_t fp_strings_intern_hashed(struct fp_strings *s, const void *p, size_t n, uint32_t hash) {
    if (FP_UNLIKELY(n - 1 >= s->most)) return n ? intern_cut(s, p) : 0;
    if (FP_UNLIKELY(s->secret.key[0])) hash = (uint32_t)fp_hash_key_hash(&s->secret, p, n);
    uint32_t at = hash & s->index_mask;
    for (uint64_t slot; (slot = s->index[at]); at = (at + 1) & s->index_mask) {
        if (slot >> 32 != hash) continue;
        uint32_t id = (uint32_t)slot;
        size_t have;
        const uint8_t *q = fp_string(s, id, &have);
        if (have == n && same_bytes(q, p, n)) return id;
    }
    if (is_far(at, hash, s->index_mask, &s->secret)) {
        const int status = rehash(&s->index, s->index_mask, &s->secret, s->bytes, s->start, 0);
        return status ? no_id() : fp_strings_intern_hashed(s, p, n, hash);
    }
    const uint32_t id = append(s, p, n);
    if (id == FP_NO_ID) return no_id();
    s->index[at] = (uint64_t)hash << 32 | id;
    if (s->n > s->index_mask / 4 * 3 && grow_index(&s->index, &s->index_mask)) {
        s->n--; /* remove the entry, so that the table stays searchable */
        s->index[at] = 0;
        return no_id();
    }
    return id;
}

uint32_t fp_strings_append(struct fp_strings *s, const void *p, size_t n) {
    const uint32_t id = n ? append(s, p, n) : 0;
    return id != FP_NO_ID ? id : no_id();
}

uint32_t fp_strings_part(struct fp_strings *s, uint32_t id, size_t at, size_t n) {
    uint8_t few[256], *copy = n <= sizeof few ? few : fp_scratch(n, 1); /* as the strings may move */
    size_t whole;
    memcpy(copy, fp_string(s, id, &whole) + at, n);
    const uint32_t part = fp_strings_intern(s, copy, n);
    if (copy != few) fp_scratch_free(copy);
    return part;
}

static int init_table(struct fp_table *t, uint32_t width) {
    t->width = width;
    t->cap = 64;
    t->words = fp_grow(NULL, 0, (size_t)t->cap * width * sizeof *t->words);
    if (!t->words) return FP_E_NOMEM;
    memset(t->words, 0, width * sizeof *t->words);
    t->n = t->n_indexed = 1; /* id 0: nothing */
    return grow_index(&t->index, &t->index_mask);
}

int fp_table_init(struct fp_table *t, uint32_t width) {
    return init_table(t, width) ? fp_escape() : 0;
}

void fp_table_clear(struct fp_table *t) {
    fp_release(t->words, t->words ? (size_t)t->cap * t->width * sizeof *t->words : 0);
    release_index(t->index, t->index_mask);
    memset(t, 0, sizeof *t);
}

/* Makes room for one more row; 0 or FP_E_NOMEM. */
static inline int row_room(struct fp_table *t) {
    if (FP_LIKELY(t->n != t->cap)) return 0;
    if (t->n == FP_NO_ID - 1) return FP_E_NOMEM;
    uint64_t cap = (uint64_t)t->cap * 2 < FP_NO_ID ? (uint64_t)t->cap * 2 : FP_NO_ID - 1;
    const size_t width = t->width * sizeof *t->words;
    uint32_t *words = fp_grow(t->words, t->cap * width, (size_t)cap * width);
    if (!words) return FP_E_NOMEM;
    t->words = words;
    t->cap = (uint32_t)cap;
    return 0;
}

uint32_t fp_table_append(struct fp_table *t, const uint32_t *row) {
    if (row_room(t)) return no_id();
    memcpy(t->words + (size_t)t->n * t->width, row, t->width * sizeof *row);
    return t->n++;
}

static inline uint32_t secret_hash(const struct fp_table *t, const uint32_t *row) {
    return (uint32_t)fp_hash_key_hash(&t->secret, row, t->width * sizeof *row);
}

/* Not inlined: fp_table_find is called for each location of each sample, and would save more registers. */
__attribute__((noinline)) static uint32_t find_by_secret(const struct fp_table *t, const uint32_t *row) {
    const uint32_t hash = secret_hash(t, row);
    uint32_t at = hash & t->index_mask;
    for (uint64_t slot; (slot = t->index[at]); at = (at + 1) & t->index_mask)
        if (slot >> 32 == hash && same_row(fp_table_row(t, (uint32_t)slot), row, t->width)) return (uint32_t)slot;
    return 0;
}

/* Usually the table has no secret, and the row exists. */
uint32_t fp_table_find(const struct fp_table *t, const uint32_t *row) {
    const uint32_t hash = fp_table_hash(row, t->width);
    uint32_t at = hash & t->index_mask, steps = 0;
    for (uint64_t slot; (slot = t->index[at]); at = (at + 1) & t->index_mask) {
        if (slot >> 32 == hash && same_row(fp_table_row(t, (uint32_t)slot), row, t->width)) return (uint32_t)slot;
        if (steps++ == FP_FAR) break; /* no entry is farther away */
    }
    return t->secret.key[0] ? find_by_secret(t, row) : 0;
}

void fp_table_seal(struct fp_table *t) {
    release_index(t->index, t->index_mask);
    t->index = NULL;
    t->index_mask = 0;
}

void fp_table_empty(struct fp_table *t) {
    memset(t->index, 0, ((size_t)t->index_mask + 1) * sizeof *t->index);
    t->n = t->n_indexed = 1;
}

uint32_t fp_table_intern(struct fp_table *t, const uint32_t *row) {
    return fp_table_intern_hashed(t, row, fp_table_hash(row, t->width));
}

uint32_t fp_table_intern_hashed(struct fp_table *t, const uint32_t *row, uint32_t hash) {
    if (FP_UNLIKELY(t->secret.key[0])) hash = secret_hash(t, row);
    uint32_t at = hash & t->index_mask;
    for (uint64_t slot; (slot = t->index[at]); at = (at + 1) & t->index_mask)
        if (slot >> 32 == hash && same_row(fp_table_row(t, (uint32_t)slot), row, t->width)) return (uint32_t)slot;
    if (is_far(at, hash, t->index_mask, &t->secret)) {
        const size_t width = t->width * sizeof *t->words;
        const int status = rehash(&t->index, t->index_mask, &t->secret, t->words, NULL, width);
        return status ? no_id() : fp_table_intern_hashed(t, row, hash);
    }
    if (row_room(t)) return no_id();
    uint32_t id = t->n;
    memcpy(t->words + (size_t)id * t->width, row, t->width * sizeof *row);
    t->index[at] = (uint64_t)hash << 32 | id;
    if (t->n_indexed >= t->index_mask / 4 * 3 && grow_index(&t->index, &t->index_mask)) {
        t->index[at] = 0;
        return no_id();
    }
    t->n_indexed++;
    t->n = id + 1;
    return id;
}

struct fp_model *fp_model_new(void) {
    struct fp_model *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    if (init_strings(&m->strings) || init_table(&m->objects, FP_OBJECT_WIDTH) ||
        init_table(&m->mappings, FP_MAPPING_WIDTH) || init_table(&m->functions, FP_FUNCTION_WIDTH) ||
        init_table(&m->lines, FP_LINE_WIDTH) || init_table(&m->frames, FP_FRAME_WIDTH) ||
        init_table(&m->stacks, FP_STACK_WIDTH) || init_table(&m->labels, FP_LABEL_WIDTH) ||
        init_table(&m->threads, FP_THREAD_WIDTH) || init_table(&m->counter_units, 2) || init_strings(&m->unit_names)) {
        fp_model_free(m);
        return NULL;
    }
    m->strings.most = FP_NAME_MOST;
    m->unit_names.most = FP_UNIT_MOST;
    return m;
}

void fp_frames_release(struct fp_frames *frames) {
    if (frames && !--frames->n_owners) free(frames);
}

void fp_model_free(struct fp_model *m) {
    if (!m) return;
    fp_strings_clear(&m->strings);
    fp_strings_clear(&m->unit_names);
    FP_CLEAR_TABLES(&m->objects, &m->mappings, &m->functions, &m->lines, &m->frames, &m->stacks, &m->labels,
                    &m->threads, &m->counter_units);
    fp_release(m->last, (size_t)m->cap_last * 2 * sizeof *m->last);
    fp_release(m->named, m->cap_named * sizeof *m->named);
    for (int i = 0; i < FP_FRAMES_STEPS; i++) fp_frames_release(m->replaced[i]);
    FP_FREE(m->path, m);
}

void fp_model_counter_unit(struct fp_model *m, uint32_t name, const void *unit, size_t n) {
    fp_table_intern(&m->counter_units, (uint32_t[]){name, fp_strings_intern(&m->unit_names, unit, n)});
}

#define LO(v) ((uint32_t)(v))
#define HI(v) ((uint32_t)((uint64_t)(v) >> 32))

uint32_t fp_model_object(struct fp_model *m, uint32_t name, uint32_t build_id) {
    return fp_table_intern(&m->objects, (uint32_t[]){name, build_id});
}

uint32_t fp_model_category(const struct fp_model *m, uint32_t function) {
    const uint32_t *object = fp_table_row(&m->objects, fp_table_row(&m->functions, function)[FP_FUNCTION_OBJECT]);
    size_t n;
    const uint8_t *name = fp_string(&m->strings, object[FP_OBJECT_NAME], &n);
    return object[FP_OBJECT_BUILD_ID] || memchr(name, '/', n) ? 0 : object[FP_OBJECT_NAME];
}

uint32_t fp_model_mapping(struct fp_model *m, uint32_t object, uint64_t start, uint64_t limit, uint64_t offset,
                          uint32_t flags) {
    return fp_table_intern(
        &m->mappings, (uint32_t[]){object, LO(start), HI(start), LO(limit), HI(limit), LO(offset), HI(offset), flags});
}

uint32_t fp_model_function(struct fp_model *m, uint32_t object, uint32_t file, uint32_t name, uint32_t system_name,
                           uint32_t line) {
    return fp_model_function_row(m, (uint32_t[]){object, file, name, system_name, line});
}

/* Makes m->named long enough for `name`; 0 or FP_E_NOMEM. */
static int name_room(struct fp_model *m, uint32_t name) {
    if (name >= m->cap_named) {
        const uint32_t cap = m->strings.cap; /* enough: `name` is one of these strings */
        uint32_t *named = fp_grow(m->named, m->cap_named * sizeof *named, cap * sizeof *named);
        if (!named) return FP_E_NOMEM;
        m->named = named;
        m->cap_named = cap;
    }
    memset(m->named + m->n_named, 0, (name + 1 - m->n_named) * sizeof *m->named);
    m->n_named = name + 1;
    return 0;
}

uint32_t fp_model_function_row(struct fp_model *m, const uint32_t *row) {
    const uint32_t name = row[FP_FUNCTION_NAME];
    if (FP_UNLIKELY(name >= m->n_named)) {
        if (name >= m->strings.n) return fp_table_intern(&m->functions, row); /* not the id of a string */
        if (name_room(m, name)) return no_id();
    }
    const uint32_t first = m->named[name], next = m->last_function + 1;
    if (first && same_row(fp_table_row(&m->functions, first), row, FP_FUNCTION_WIDTH)) return m->last_function = first;
    if (first && next < m->functions.n && same_row(fp_table_row(&m->functions, next), row, FP_FUNCTION_WIDTH))
        return m->last_function = next;
    if (first) {
        const uint32_t found = fp_table_intern(&m->functions, row);
        if (found != FP_NO_ID) m->last_function = found;
        return found;
    }
    if (row_room(&m->functions)) return no_id();
    memcpy(m->functions.words + (size_t)m->functions.n * FP_FUNCTION_WIDTH, row, FP_FUNCTION_WIDTH * sizeof *row);
    return m->named[name] = m->last_function = m->functions.n++;
}

uint32_t fp_model_distinct_functions(const struct fp_model *m) {
    enum { WIDTH = sizeof(struct fp_same_function) / sizeof(uint32_t) };
    struct fp_table further; /* functions that are not the first of their name */
    memset(&further, 0, sizeof further);
    uint32_t found = fp_table_init(&further, WIDTH) ? FP_NO_ID : 0;
    for (uint32_t i = 1; i < m->functions.n && found != FP_NO_ID; i++) {
        const struct fp_same_function own = fp_same_function(m, i);
        const uint32_t first = own.name < m->n_named ? m->named[own.name] : 0;
        const struct fp_same_function its = fp_same_function(m, first);
        if (first && first != i && !memcmp(&own, &its, sizeof own)) continue;
        const uint32_t had = further.n;
        if (first != i && fp_table_intern(&further, (const uint32_t *)&own) == FP_NO_ID)
            found = FP_NO_ID;
        else
            found += first == i || further.n > had;
    }
    fp_table_clear(&further);
    return found;
}

uint32_t fp_model_line(struct fp_model *m, uint32_t function, uint32_t line, uint32_t column, uint32_t outer) {
    return fp_table_intern(&m->lines, (uint32_t[]){function, line, column, outer});
}

uint32_t fp_model_frame(struct fp_model *m, uint32_t mapping, uint64_t address, uint32_t flags, uint32_t lines) {
    return fp_table_intern(&m->frames, (uint32_t[]){mapping, LO(address), HI(address), flags, lines});
}

uint32_t fp_model_line_frame(struct fp_model *m, uint32_t function, uint32_t line, uint32_t column) {
    const uint32_t lines = function == FP_NO_ID ? FP_NO_ID : fp_model_line(m, function, line, column, 0);
    return lines == FP_NO_ID ? FP_NO_ID : fp_model_frame(m, 0, 0, 0, lines);
}

uint32_t fp_model_plain_frame(struct fp_model *m, uint32_t function) {
    return fp_model_line_frame(m, function, 0, 0);
}

uint32_t fp_model_name_frame(struct fp_model *m, uint32_t name) {
    return fp_model_plain_frame(m, name == FP_NO_ID ? FP_NO_ID : fp_model_function(m, 0, 0, name, 0, 0));
}

uint32_t fp_model_label(struct fp_model *m, uint32_t next, uint32_t key, uint32_t string, int64_t number,
                        uint32_t unit) {
    return fp_table_intern(&m->labels, (uint32_t[]){next, key, string, LO(number), HI(number), unit});
}

uint32_t fp_model_input(struct fp_model *m) {
    return m->n_inputs == FP_NO_ID ? no_id() : m->n_inputs++;
}

uint32_t fp_model_thread(struct fp_model *m, uint32_t input, uint32_t pid, uint32_t tid) {
    return fp_table_intern(&m->threads, (uint32_t[]){input, pid, tid});
}

void fp_model_empty_stacks(struct fp_model *m) {
    if (m->stacks.n_indexed > 1) fp_table_empty(&m->stacks);
    m->stacks.n = 1;
    if (m->last) memset(m->last, 0, (size_t)m->cap_last * 2 * sizeof *m->last);
    m->n_emptied++;
    m->n_renewed++;
}

static uint64_t index_bytes(uint32_t mask, uint32_t n) {
    const uint64_t slots = (uint64_t)mask + 1, full = slots / 4 * 3;
    return (n < full / 8 * 7 ? slots : 3 * slots) * sizeof(uint64_t);
}

int fp_model_rest_names(struct fp_model *m, uint64_t most) {
    enum { STEP = 4 << 20 }; /* seldom enough to cost nothing */
    struct fp_strings *s = &m->strings;
    const uint64_t n = s->start[s->n];
    if (!s->file) return n > most;
    if (s->file_error) return 1;
    if (n < s->n_rested + STEP) return 0;
    fp_strings_rest(s);
    s->n_rested = n;
    return 0;
}

uint64_t fp_model_bytes(const struct fp_model *m) {
    const struct fp_table *tables[] = {&m->objects, &m->mappings, &m->functions, &m->lines,
                                       &m->frames,  &m->stacks,   &m->labels,    &m->threads};
    const struct fp_strings *s = &m->strings;
    uint64_t n = s->start[s->n] + s->n * sizeof *s->start + index_bytes(s->index_mask, s->n);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        n += (uint64_t)tables[i]->n * tables[i]->width * sizeof *tables[i]->words +
             index_bytes(tables[i]->index_mask, tables[i]->n_indexed);
    return n + m->cap_last * 2 * sizeof *m->last + m->n_named * sizeof *m->named;
}
