#include "symbols/unwind.h"

#include "symbols/pairs.h"
#include "symbols/unwind_machine.h"

enum { EH_FRAME, DEBUG_FRAME, SECTIONS };
enum {
    CIE_SLOTS = 64,
    LEAST_RULES = 64,
    LEAST_RULE_BITS = 6,
    MOST_RULE_BITS = 16,
    MOST_RULES = 49152,
    MOST_PROBES = 64
};

/* Rows under construction; neighbours with equal rules become one. */
struct rows {
    uint32_t *starts; /* addresses relative to the table's base */
    uint16_t *rules;
    uint32_t n, cap_starts, cap_rules;
};

/* A function: its start relative to the table's base, and the position of its entry. */
struct function {
    uint32_t start, position;
};

struct fp_unwind_table {
    struct fp_unwind_file file; /* with separate loads and plts */
    const struct fp_unwind_machine *machine;
    struct fp_cfi_columns all; /* registers */
    struct fp_cfi_section sections[SECTIONS];
    struct function *functions[SECTIONS]; /* by start */
    size_t n_functions[SECTIONS];
    uint64_t base;
    struct rows rows, more, merged; /* the last two while they are being compiled */
    struct fp_unwind_rule *rules;
    uint32_t n_rules, rules_room;
    uint64_t n_broken;
};

/* State that only compiling needs. */
struct compiler {
    struct fp_unwind_table *t;
    uint16_t *slots; /* a hash table of 1 << bits numbers of rules; 0 is free */
    uint32_t bits;
    struct fp_cfi_columns columns;
    struct fp_cfi_run run;
    struct {
        size_t position; /* + 1 */
        int32_t status;
        struct fp_cfi_cie cie;
    } cies[CIE_SLOTS];
};

/* ---- rows and rules ------------------------------------------------------ */

static void append(struct rows *r, uint64_t start, uint16_t rule) {
    if (r->n && r->starts[r->n - 1] == start) r->n--; /* replaced by the row that begins here */
    if (r->n && r->rules[r->n - 1] == rule) return;
    *FP_AT(r->starts, r->cap_starts, r->n) = (uint32_t)start;
    FP_PUSH(r->rules, r->n, r->cap_rules) = rule;
}

static void free_rows(struct rows *r) {
    FP_FREE(r->starts, r->rules);
    *r = (struct rows){0};
}

static void add_rule(struct fp_unwind_table *t, const struct fp_unwind_rule *rule) {
    FP_PUSH(t->rules, t->n_rules, t->rules_room) = *rule;
}

/* The number of a rule.  If the table is full: SLOW, which is always correct. */
static uint16_t number_of(struct compiler *c, const struct fp_unwind_rule *rule) {
    _Static_assert(sizeof *rule == 16, "rules are compared and hashed as two words");
    struct fp_unwind_table *t = c->t;
    uint64_t words[2];
    memcpy(words, rule, sizeof words);
    const uint64_t hash = (words[0] ^ words[1] * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
    if (rule->kind <= FP_UNWIND_SLOW) return rule->kind;
    for (uint64_t i = 0; i < MOST_PROBES; i++) {
        uint16_t *slot = &c->slots[((hash >> (64 - c->bits)) + i) & ((1u << c->bits) - 1)];
        if (*slot && !memcmp(&t->rules[*slot], rule, sizeof *rule)) return *slot;
        if (*slot) continue;
        if (t->n_rules == MOST_RULES) break;
        add_rule(t, rule);
        *slot = (uint16_t)(t->n_rules - 1);
        return *slot;
    }
    return FP_UNWIND_RULE_SLOW;
}

/* ---- functions ----------------------------------------------------------- */

static const struct fp_cfi_cie *cie_at(struct compiler *c, const struct fp_cfi_section *s, size_t position) {
    const size_t slot = position / 4 % CIE_SLOTS;
    if (c->cies[slot].position != position + 1) {
        struct fp_cfi_cie *cie = &c->cies[slot].cie;
        c->cies[slot].status = fp_cfi_take_cie(s, &c->columns, position, cie);
        if (cie->return_register != c->t->machine->return_register) c->cies[slot].status = -1;
        c->cies[slot].position = position + 1;
    }
    return c->cies[slot].status ? NULL : &c->cies[slot].cie;
}

/* Linkers leave entries for dropped functions, which start at 0. */
static int is_code(const struct fp_unwind_file *f, uint64_t address) {
    for (uint32_t i = 0; i < f->n_loads; i++)
        if (f->loads[i].is_executable && address - f->loads[i].address < f->loads[i].memory_size) return 1;
    return !f->n_loads;
}

/* Finds the functions of a section, by start. */
static void find_functions(struct compiler *c, int which) {
    struct fp_unwind_table *t = c->t;
    const struct fp_cfi_section *s = &t->sections[which];
    struct fp_pairs_item *pairs = NULL;
    struct fp_cfi_entry e;
    uint32_t n = 0, cap = 0;
    int status = 0;
    for (size_t at = 0; (status = fp_cfi_take_entry(s, at, &e)) > 0; at = e.next) {
        struct fp_cfi_fde fde;
        const struct fp_cfi_cie *cie = e.is_cie ? NULL : cie_at(c, s, e.cie);
        if (e.is_cie > 0) continue;
        if (!cie || fp_cfi_take_fde(s, &e, cie, &fde)) {
            t->n_broken++;
            continue;
        }
        if (!fde.size || !is_code(&t->file, fde.start)) continue;
        if (fde.start - t->base >= UINT32_MAX || at > UINT32_MAX) {
            t->n_broken++;
            continue;
        }
        fp_scratch_room(&pairs, &cap, (uint64_t)n + 1, sizeof *pairs);
        pairs[n++] = (struct fp_pairs_item){fde.start - t->base, at};
    }
    t->n_broken += status < 0;
    t->functions[which] = fp_have(malloc(((size_t)n + !n) * sizeof *t->functions[which]));
    fp_pairs_sort(pairs, n);
    for (uint32_t i = 0; i < n; i++)
        t->functions[which][i] = (struct function){(uint32_t)pairs[i].key, (uint32_t)pairs[i].value};
    t->n_functions[which] = n;
    fp_scratch_free(pairs);
}

/* Appends the rows of a function up to `limit`.  0 or FP_E_MALFORMED. */
static int add_program(struct compiler *c, const struct fp_cfi_section *s, const struct fp_cfi_cie *cie,
                       const struct fp_cfi_fde *fde, uint64_t limit, struct rows *rows) {
    int status;
    fp_cfi_begin(&c->run, s, &c->columns, cie, fde);
    while ((status = fp_cfi_next(&c->run)) > 0) {
        const uint64_t start = c->run.start - c->t->base;
        if (start >= limit) continue; /* damage may follow */
        const struct fp_unwind_rule rule = fp_unwind_rule_of(c->t->machine, s, cie, &c->run.state);
        append(rows, start, number_of(c, &rule));
    }
    if (status) return FP_E_MALFORMED;
    append(rows, limit, FP_UNWIND_RULE_GAP);
    return 0;
}

/* Appends the rows of a section.  Where functions overlap, the one that starts last wins. */
static void add_section(struct compiler *c, int which, struct rows *rows) {
    struct fp_unwind_table *t = c->t;
    const struct fp_cfi_section *s = &t->sections[which];
    const struct function *f = t->functions[which];
    for (size_t i = 0; i < t->n_functions[which]; i++) {
        struct fp_cfi_entry e;
        struct fp_cfi_fde fde;
        const uint32_t next = i + 1 < t->n_functions[which] ? f[i + 1].start : UINT32_MAX;
        if (next == f[i].start) continue;
        const struct fp_cfi_cie *cie = fp_cfi_take_entry(s, f[i].position, &e) > 0 ? cie_at(c, s, e.cie) : NULL;
        if (!cie || fp_cfi_take_fde(s, &e, cie, &fde)) continue; /* never happens: it was read before */
        const uint64_t limit = fde.size < next - f[i].start ? f[i].start + fde.size : next;
        const uint32_t n = rows->n;
        const uint32_t start = n ? rows->starts[n - 1] : 0;
        const uint16_t rule = n ? rows->rules[n - 1] : 0;
        if (add_program(c, s, cie, &fde, limit, rows)) {
            t->n_broken++;
            rows->n = n;
            if (n) rows->starts[n - 1] = start, rows->rules[n - 1] = rule;
            append(rows, f[i].start, FP_UNWIND_RULE_DAMAGED);
            append(rows, limit, FP_UNWIND_RULE_GAP);
        }
    }
}

/* Rows of `a`, and of `b` where `a` has no rule. */
static void merge_rows(const struct rows *a, const struct rows *b, struct rows *merged) {
    uint32_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        const uint64_t from_a = i < a->n ? a->starts[i] : UINT64_MAX, from_b = k < b->n ? b->starts[k] : UINT64_MAX;
        const uint64_t start = from_a < from_b ? from_a : from_b;
        i += from_a == start;
        k += from_b == start;
        const uint16_t first = i ? a->rules[i - 1] : FP_UNWIND_RULE_GAP;
        const uint16_t second = k ? b->rules[k - 1] : FP_UNWIND_RULE_GAP;
        append(merged, start, first > FP_UNWIND_RULE_DAMAGED || !second ? first : second);
    }
}

/* Adds `more` where the table has no rows, and empties it. */
static void put_under(struct fp_unwind_table *t) {
    struct rows *from = t->rows.n ? &t->merged : &t->more;
    if (t->rows.n && t->more.n) merge_rows(&t->rows, &t->more, &t->merged);
    if (from->n) {
        free_rows(&t->rows);
        t->rows = *from;
        *from = (struct rows){0};
    }
    free_rows(&t->more);
}

/* Adds rows for procedure linkage tables, which lld leaves undescribed. */
static void add_plts(struct compiler *c, struct rows *rows) {
    const struct fp_unwind_table *t = c->t;
    const struct fp_unwind_rule rule = {
        .kind = FP_UNWIND_SP, .cfa = 8, .ra = -8, .fp_how = FP_UNWIND_SAME, .ra_how = FP_UNWIND_SAVED};
    const uint16_t number = number_of(c, &rule);
    for (uint32_t i = 0; i < t->file.n_plts && t->machine == &fp_unwind_x86_64; i++) {
        const uint64_t start = t->file.plts[i].start - t->base, limit = t->file.plts[i].limit - t->base;
        if (start >= limit || limit >= UINT32_MAX || (rows->n && start < rows->starts[rows->n - 1])) continue;
        append(rows, start, number);
        append(rows, limit, FP_UNWIND_RULE_GAP);
    }
}

static void compile(struct compiler *c) {
    struct fp_unwind_table *t = c->t;
    const struct fp_unwind_machine *m = t->machine;
    t->all.n = m->n_registers + 1u;
    for (uint8_t i = 0; i < FP_CFI_NUMBERS; i++) t->all.of[i] = i < m->n_registers ? i : m->n_registers;
    memset(c->columns.of, FP_UNWIND_COLUMNS, sizeof c->columns.of);
    c->columns.of[m->fp] = FP_UNWIND_COLUMN_FP;
    c->columns.of[m->return_register] = FP_UNWIND_COLUMN_RA;
    c->columns.of[m->sp] = FP_UNWIND_COLUMN_SP;
    c->columns.n = FP_UNWIND_COLUMNS + 1;
    fp_array_room(&t->rules, &t->rules_room, LEAST_RULES, sizeof *t->rules);
    for (uint8_t kind = FP_UNWIND_GAP; kind <= FP_UNWIND_SLOW; kind++)
        add_rule(t, &(struct fp_unwind_rule){.kind = kind});
    add_rule(t, &m->sigreturn_rule);
    for (int which = 0; which < SECTIONS; which++) {
        memset(c->cies, 0, sizeof c->cies);
        find_functions(c, which);
        add_section(c, which, &t->more);
        put_under(t);
    }
    add_plts(c, &t->more);
    put_under(t);
}

/* Frees the unused capacity. */
static void shrink(struct fp_unwind_table *t) {
    struct rows *r = &t->rows;
    uint32_t *starts = realloc(r->starts, ((size_t)r->n + !r->n) * sizeof *starts);
    if (starts) r->starts = starts;
    uint16_t *rules = realloc(r->rules, ((size_t)r->n + !r->n) * sizeof *rules);
    if (rules) r->rules = rules;
    r->cap_starts = r->cap_rules = r->n;
}

static void copy_file(struct fp_unwind_table *t, const struct fp_unwind_file *file) {
    t->file = *file;
    t->file.loads = NULL;
    t->file.plts = NULL;
    struct fp_unwind_load *loads = fp_have(malloc((file->n_loads + !file->n_loads) * sizeof *loads));
    t->file.loads = loads;
    struct fp_unwind_range *plts = fp_have(malloc((file->n_plts + !file->n_plts) * sizeof *plts));
    t->file.plts = plts;
    if (file->n_loads) memcpy(loads, file->loads, file->n_loads * sizeof *loads);
    if (file->n_plts) memcpy(plts, file->plts, file->n_plts * sizeof *plts);
    t->base = file->n_loads ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < file->n_loads; i++)
        if (loads[i].address < t->base) t->base = loads[i].address;
    t->sections[EH_FRAME] = (struct fp_cfi_section){file->eh_frame, file->eh_frame_address, 1, &t->file};
    t->sections[DEBUG_FRAME] = (struct fp_cfi_section){file->debug_frame, 0, 0, &t->file};
}

/* For twice as many rules as the programs have bytes: a row takes at least one. */
static uint32_t rule_bits(size_t nbytes) {
    uint32_t bits = LEAST_RULE_BITS;
    while (bits < MOST_RULE_BITS && (size_t)1 << bits < 2 * nbytes) bits++;
    return bits;
}

struct fp_unwind_table *fp_unwind_table_new(const struct fp_unwind_file *file, struct fp_err *err) {
    const struct fp_unwind_machine *machine = fp_unwind_machine(file->machine);
    if (!machine) {
        fp_fail_got(err, FP_E_VERSION, 0, "machine", FP_GOT_UNSIGNED, file->machine, "62 or 183", 0);
        return NULL;
    }
    struct fp_unwind_table *t = fp_made(sizeof *t);
    struct compiler *c = fp_scratch(1, sizeof *c);
    t->machine = machine;
    c->t = t;
    c->bits = rule_bits(file->eh_frame.n + file->debug_frame.n);
    c->slots = fp_scratch((size_t)1 << c->bits, sizeof *c->slots);
    copy_file(t, file);
    compile(c);
    shrink(t);
    fp_scratch_free(c); /* and its slots */
    return t;
}

void fp_unwind_table_free(struct fp_unwind_table *t) {
    for (int which = 0; which < SECTIONS; which++) free(t->functions[which]);
    free_rows(&t->rows);
    free_rows(&t->more);
    free_rows(&t->merged);
    FP_FREE((void *)(uintptr_t)t->file.loads, (void *)(uintptr_t)t->file.plts, t->rules, t);
}

struct fp_unwind_stats fp_unwind_table_stats(const struct fp_unwind_table *t) {
    const uint64_t functions = t->n_functions[EH_FRAME] + t->n_functions[DEBUG_FRAME];
    return (struct fp_unwind_stats){
        .functions = functions,
        .broken = t->n_broken,
        .rows = t->rows.n,
        .rules = t->n_rules,
        .nbytes = t->rows.n * (sizeof *t->rows.starts + sizeof *t->rows.rules) + functions * sizeof **t->functions +
                  t->rules_room * sizeof *t->rules,
    };
}

uint64_t fp_unwind_table_row(const struct fp_unwind_table *t, uint64_t i, struct fp_unwind_rule *rule) {
    *rule = t->rules[t->rows.rules[i]];
    return t->base + t->rows.starts[i];
}

uint32_t fp_unwind_table_id(const struct fp_unwind_table *t) {
    return t->file.id;
}

/* ---- queries ----------------------------------------------------------- */

/* The link-time address of a byte of the file, relative to the table's base; UINT64_MAX if it is not loaded. */
static uint64_t address_of(const struct fp_unwind_table *t, uint64_t offset) {
    const struct fp_unwind_file *f = &t->file;
    for (int executable = 1; executable >= 0; executable--)
        for (uint32_t i = 0; i < f->n_loads; i++) {
            const struct fp_unwind_load *l = &f->loads[i];
            if (l->is_executable < executable || offset - l->offset >= l->file_size) continue;
            return offset - l->offset + l->address - t->base;
        }
    for (uint32_t i = 0; i < f->n_loads; i++) { /* whole pages are mapped */
        const struct fp_unwind_load *l = &f->loads[i];
        const uint64_t start = l->offset & ~(uint64_t)4095;
        if (offset >= start && offset - start < (l->offset - start + l->file_size + 4095) / 4096 * 4096)
            return offset - l->offset + l->address - t->base;
    }
    return f->n_loads ? UINT64_MAX : offset - t->base;
}

/* The number of sorted keys, `step` words apart, that are at most `key`.  No branch depends on a key. */
static inline size_t upper(const uint32_t *keys, size_t step, size_t n, uint64_t key) {
    size_t low = 0;
    while (n) {
        const size_t half = n / 2;
        const int after = keys[(low + half) * step] <= key;
        low = after ? low + half + 1 : low;
        n = after ? n - half - 1 : half;
    }
    return low;
}

static uint16_t rule_at(const struct fp_unwind_table *t, uint64_t address) {
    if (address > UINT32_MAX) return FP_UNWIND_RULE_GAP;
    const size_t low = upper(t->rows.starts, 1, t->rows.n, address);
    return low ? t->rows.rules[low - 1] : FP_UNWIND_RULE_GAP;
}

/* Whether the code at an address returns from a signal handler.  In a system call the address is that of the next
 * instruction. */
static int is_sigreturn(const struct fp_unwind_table *t, uint64_t address, int exact) {
    const struct fp_unwind_machine *m = t->machine;
    const uint64_t before[] = {0, m->sigreturn_call, m->sigreturn_nbytes};
    uint8_t code[FP_UNWIND_MOST_SIGRETURN];
    const uint64_t at = t->base + address + !exact; /* a handler returns to the code itself */
    for (int i = 0; i < (exact ? 3 : 1); i++)
        if (fp_unwind_read_file(&t->file, at - before[i], code, m->sigreturn_nbytes) &&
            !memcmp(code, m->sigreturn, m->sigreturn_nbytes))
            return 1;
    return 0;
}

const struct fp_unwind_rule *fp_unwind_table_rule(const struct fp_unwind_table *t, uint64_t offset, int exact) {
    const uint64_t address = address_of(t, offset);
    if (address == UINT64_MAX) return &t->rules[FP_UNWIND_RULE_GAP];
    uint16_t rule = rule_at(t, address);
    if (!rule && exact && address) rule = rule_at(t, address - 1); /* the last instruction was a system call */
    if (!rule && is_sigreturn(t, address, exact)) rule = FP_UNWIND_RULE_SIGRETURN;
    return &t->rules[rule];
}

/* The function of a section that covers an address.  1, 0 or -1 if it is damaged. */
static int find_function(const struct fp_unwind_table *t, int which, uint64_t address, struct fp_cfi_cie *cie,
                         struct fp_cfi_fde *fde) {
    const struct fp_cfi_section *s = &t->sections[which];
    const struct function *f = t->functions[which];
    const size_t low = upper(&f->start, sizeof *f / sizeof f->start, t->n_functions[which], address);
    struct fp_cfi_entry e;
    if (!low) return 0;
    if (fp_cfi_take_entry(s, f[low - 1].position, &e) != 1 || fp_cfi_take_cie(s, &t->all, e.cie, cie)) return -1;
    if (cie->return_register != t->machine->return_register || fp_cfi_take_fde(s, &e, cie, fde)) return -1;
    return t->base + address - fde->start < fde->size;
}

static int run_function(const struct fp_unwind_table *t, uint64_t address, struct fp_cfi_run *run,
                        struct fp_cfi_section *section, struct fp_cfi_cie *cie, size_t *left) {
    int found = 0;
    for (int which = 0; which < SECTIONS; which++) {
        struct fp_cfi_fde fde;
        const int has = find_function(t, which, address, cie, &fde);
        if (!has) continue;
        found = -1;
        if (has < 0) continue;
        if (fde.end - fde.program > *left) continue;
        *left -= fde.end - fde.program;
        *section = t->sections[which];
        fp_cfi_begin(run, section, &t->all, cie, &fde);
        while (fp_cfi_next(run) > 0)
            if (t->base + address < run->end) return 1;
    }
    return found;
}

int fp_unwind_table_run(const struct fp_unwind_table *t, uint64_t offset, int exact, struct fp_cfi_run *run,
                        struct fp_cfi_section *section, struct fp_cfi_cie *cie, size_t *left) {
    const uint64_t address = address_of(t, offset);
    if (address == UINT64_MAX) return 0;
    const int found = run_function(t, address, run, section, cie, left);
    return found || !exact || !address ? found : run_function(t, address - 1, run, section, cie, left);
}
