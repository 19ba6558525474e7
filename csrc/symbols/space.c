#include "symbols/space.h"

enum { CACHED = 256, FOUND = 64 }; /* powers of two */

/* A map, as a node of the tree: nodes on its left start at lower addresses, and no child has a higher priority.
 * Node 0 means none.  Free nodes form a list by `left`. */
struct space_node {
    struct fp_space_hit map;
    uint32_t left, right;
    uint32_t priority;
    uint32_t refs; /* number of roots and parents */
};

struct space_process {
    uint64_t generation;
    uint32_t root;
};

struct space_cached {
    uint64_t generation; /* 0: empty */
    struct fp_space_hit hit;
};

struct space_found {
    uint32_t pid, id; /* id 0: empty */
};

struct fp_space {
    struct fp_table pids; /* {pid, 1} */
    struct space_process *processes;
    uint32_t cap_processes;
    struct space_node *nodes;
    uint32_t n_nodes, cap_nodes, free_nodes;
    uint64_t generations;
    uint64_t n_made; /* nodes made so far, for priorities */
    struct fp_hash_key secret;
    struct space_cached cache[CACHED];
    struct space_found found[FOUND]; /* by pid modulo FOUND */
};

static void init(struct fp_space *s) {
    fp_hash_key_take(&s->secret);
    s->n_nodes = 1;
    fp_table_init(&s->pids, 2);
    fp_array_zeroed(&s->processes, &s->cap_processes, 1, sizeof *s->processes);
    fp_array_zeroed(&s->nodes, &s->cap_nodes, 1, sizeof *s->nodes);
}

struct fp_space *fp_space_new(void) {
    struct fp_space *s = fp_made(sizeof *s);
    init(s);
    return s;
}

void fp_space_begin(struct fp_space **to) {
    init(*to = fp_have(calloc(1, sizeof **to)));
}

void fp_space_free(struct fp_space *s) {
    if (!s) return;
    fp_table_clear(&s->pids);
    FP_FREE(s->processes, s->nodes, s);
}

/* ---- nodes ---------------------------------------------------------------- */

/* A new node with one reference. */
static uint32_t make(struct fp_space *s, const struct fp_space_hit *map) {
    uint32_t id = s->free_nodes;
    if (id) {
        s->free_nodes = s->nodes[id].left;
    } else {
        fp_array_room(&s->nodes, &s->cap_nodes, (uint64_t)s->n_nodes + 1, sizeof *s->nodes);
        id = s->n_nodes++;
    }
    const uint64_t number = s->n_made++;
    const uint32_t priority = (uint32_t)fp_hash_key_hash(&s->secret, &number, sizeof number);
    s->nodes[id] = (struct space_node){.map = *map, .priority = priority, .refs = 1};
    return id;
}

/* Gives up a reference. */
static void drop(struct fp_space *s, uint32_t id) {
    while (id && !--s->nodes[id].refs) {
        const uint32_t right = s->nodes[id].right;
        drop(s, s->nodes[id].left);
        s->nodes[id].left = s->free_nodes;
        s->free_nodes = id;
        id = right;
    }
}

/* Replaces a reference by one to an unshared node. */
static uint32_t own(struct fp_space *s, uint32_t id) {
    if (s->nodes[id].refs == 1) return id;
    const struct fp_space_hit map = s->nodes[id].map;
    const uint32_t copy = make(s, &map);
    const struct space_node *old = &s->nodes[id];
    s->nodes[copy].left = old->left;
    s->nodes[copy].right = old->right;
    s->nodes[copy].priority = old->priority;
    s->nodes[old->left].refs++;
    s->nodes[old->right].refs++;
    s->nodes[id].refs--;
    return copy;
}

/* Splits a tree into the maps that start before `start`, and the others. */
static void split(struct fp_space *s, uint32_t id, uint64_t start, uint32_t *before, uint32_t *others) {
    *before = *others = 0;
    if (!id) return;
    id = own(s, id);
    uint32_t low, high;
    if (s->nodes[id].map.start < start) {
        split(s, s->nodes[id].right, start, &low, &high);
        s->nodes[id].right = low;
        *before = id;
        *others = high;
    } else {
        split(s, s->nodes[id].left, start, &low, &high);
        s->nodes[id].left = high;
        *before = low;
        *others = id;
    }
}

/* Joins two trees, all of the first before the second. */
static uint32_t join(struct fp_space *s, uint32_t first, uint32_t second) {
    if (!first || !second) return first ? first : second;
    const int on_top = s->nodes[first].priority >= s->nodes[second].priority;
    const uint32_t id = own(s, on_top ? first : second);
    if (on_top) {
        const uint32_t right = join(s, s->nodes[id].right, second);
        s->nodes[id].right = right;
    } else {
        const uint32_t left = join(s, first, s->nodes[id].left);
        s->nodes[id].left = left;
    }
    return id;
}

/* Cuts the last map of a tree at `at`, above its start. */
static uint32_t cut_last(struct fp_space *s, uint32_t id, uint64_t at) {
    id = own(s, id);
    if (s->nodes[id].right) {
        const uint32_t right = cut_last(s, s->nodes[id].right, at);
        s->nodes[id].right = right;
    } else {
        s->nodes[id].map.limit = at;
    }
    return id;
}

/* The last map of a tree if it starts below `at` and ends above it; else NULL. */
static const struct fp_space_hit *beyond(const struct fp_space *s, uint32_t id, uint64_t at) {
    while (s->nodes[id].right) id = s->nodes[id].right;
    const struct fp_space_hit *map = &s->nodes[id].map;
    return id && map->limit > at ? map : NULL;
}

/* ---- processes ------------------------------------------------------------ */

/* The number of a process; 0 if it has no maps.  Numbers never change, so they may be cached. */
static uint32_t find_process(struct fp_space *s, uint32_t pid) {
    struct space_found *found = &s->found[pid % FOUND];
    if (found->id && found->pid == pid) return found->id;
    const uint32_t row[2] = {pid, 1};
    *found = (struct space_found){pid, fp_table_find(&s->pids, row)};
    return found->id;
}

static struct space_process *process_of(struct fp_space *s, uint32_t pid) {
    const uint32_t row[2] = {pid, 1}, id = fp_table_intern(&s->pids, row);
    return FP_AT(s->processes, s->cap_processes, id);
}

/* Replaces the maps in [start, limit) by a map, or by nothing. */
static void replace(struct fp_space *s, uint32_t pid, uint64_t start, uint64_t limit, const struct fp_space_hit *map) {
    struct space_process *process = process_of(s, pid);
    struct fp_space_hit tail = {0};
    uint32_t tree, inside, others;
    split(s, process->root, start, &tree, &others);
    const struct fp_space_hit *cut = beyond(s, tree, start);
    if (cut) {
        if (cut->limit > limit) tail = *cut;
        tree = cut_last(s, tree, start);
    }
    split(s, others, limit, &inside, &others);
    if ((cut = beyond(s, inside, limit))) tail = *cut;
    drop(s, inside);
    if (map) tree = join(s, tree, make(s, map));
    if (tail.limit) {
        tail.pgoff += limit - tail.start;
        tail.start = limit;
        tree = join(s, tree, make(s, &tail));
    }
    process->root = join(s, tree, others);
    process->generation = process->root ? ++s->generations : 0;
}

static uint64_t limit_of(uint64_t start, uint64_t len) {
    return len > UINT64_MAX - start ? UINT64_MAX : start + len;
}

int fp_space_map(struct fp_space *s, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff, uint32_t word,
                 uint32_t flags) {
    const struct fp_space_hit map = {start, limit_of(start, len), pgoff, word, flags};
    struct fp_space_hit known;
    if (map.start == map.limit) return 0;
    if (fp_space_find(s, pid, start, &known) && !memcmp(&known, &map, sizeof map)) return 0;
    replace(s, pid, map.start, map.limit, &map);
    return 0;
}

int fp_space_unmap(struct fp_space *s, uint32_t pid, uint64_t start, uint64_t len) {
    const uint64_t limit = limit_of(start, len);
    if (start != limit && find_process(s, pid)) replace(s, pid, start, limit, NULL);
    return 0;
}

int fp_space_fork(struct fp_space *s, uint32_t pid, uint32_t parent) {
    const uint32_t from = find_process(s, parent);
    if (!from) return fp_space_exec(s, pid);
    struct space_process *process = process_of(s, pid);
    s->nodes[s->processes[from].root].refs++;
    drop(s, process->root);
    *process = s->processes[from];
    return 0;
}

int fp_space_exec(struct fp_space *s, uint32_t pid) {
    const uint32_t id = find_process(s, pid);
    if (!id) return 0;
    drop(s, s->processes[id].root);
    s->processes[id] = (struct space_process){0};
    return 0;
}

uint64_t fp_space_generation(struct fp_space *s, uint32_t pid) {
    return s->processes[find_process(s, pid)].generation;
}

int fp_space_find(struct fp_space *s, uint32_t pid, uint64_t address, struct fp_space_hit *hit) {
    const struct space_process process = s->processes[find_process(s, pid)];
    if (!process.root) return 0;
    struct space_cached *cached = &s->cache[fp_mix(process.generation, address >> 12) & (CACHED - 1)];
    if (cached->generation == process.generation && address >= cached->hit.start && address < cached->hit.limit) {
        *hit = cached->hit;
        return 1;
    }
    uint32_t best = 0;
    for (uint32_t id = process.root; id;) {
        const struct space_node *node = &s->nodes[id];
        if (node->map.start <= address) best = id;
        id = node->map.start <= address ? node->right : node->left;
    }
    if (!best || address >= s->nodes[best].map.limit) return 0;
    *hit = s->nodes[best].map;
    *cached = (struct space_cached){process.generation, *hit};
    return 1;
}
