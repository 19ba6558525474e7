#include "symbols/jitdump.h"

#include "symbols/pairs.h"

enum { MAGIC = 0x4a695444, HEADER = 40, RECORD = 16 };
enum { LOAD = 0, MOVE = 1, LINES = 2 };
enum { LOAD_HEAD = RECORD + 40, MOVE_HEAD = RECORD + 48, LINES_HEAD = RECORD + 16, ENTRY_HEAD = 16 };
enum { IN_TICKS = 1 };

struct jitdump_line {
    const uint8_t *file;
    uint32_t file_n, line;
};

struct fp_jitdump {
    const uint8_t *p;
    size_t n;
    int swap;
    struct fp_jitdump_stats stats;
    struct fp_jitdump_code *codes; /* in file order, then sorted by time */
    uint32_t n_codes, cap_codes;
    uint32_t *loads; /* numbers in `codes` of the loads, by offset */
    uint32_t n_loads, cap_loads;
    struct fp_table numbers; /* of loads: {low, high, 1} */
    uint32_t *by_number;     /* the last load of each, in `codes` */
    uint32_t cap_by_number;
    uint64_t record;             /* the record whose lines are in memory, 0 for none */
    struct fp_pairs_item *order; /* by address: the number of a line */
    struct jitdump_line *lines;
    uint32_t n_lines, cap_order, cap_lines;
};

static uint32_t word(const struct fp_jitdump *j, uint64_t at) {
    return fp_u32s(j->p + at, j->swap);
}

static uint64_t number(const struct fp_jitdump *j, uint64_t at) {
    return fp_u64s(j->p + at, j->swap);
}

/* ---- reading -------------------------------------------------------------- */

/* The entry of by_number for this number. */
static uint32_t *by_number(struct fp_jitdump *j, uint64_t of) {
    const uint32_t row[3] = {FP_WORDS(of), 1}, id = fp_table_intern(&j->numbers, row);
    return FP_AT(j->by_number, j->cap_by_number, id);
}

static void add(struct fp_jitdump *j, const struct fp_jitdump_code *code) {
    FP_PUSH(j->codes, j->n_codes, j->cap_codes) = *code;
}

static int load(struct fp_jitdump *j, uint64_t at, uint64_t end, uint64_t lines) {
    if (end - at <= LOAD_HEAD) return FP_E_MALFORMED;
    const uint8_t *name = j->p + at + LOAD_HEAD, *nul = memchr(name, 0, end - at - LOAD_HEAD);
    if (!nul) return FP_E_MALFORMED;
    struct fp_jitdump_code code = {.time = number(j, at + 8), .address = number(j, at + 32), .loaded = at};
    code.nbytes = number(j, at + 40);
    code.offset = (uint64_t)(nul - j->p) + 1;
    if (code.nbytes > end - code.offset) return FP_E_MALFORMED;
    if (lines && number(j, lines + RECORD) == code.address) code.lines = lines;
    *by_number(j, number(j, at + 48)) = j->n_codes + 1;
    FP_PUSH(j->loads, j->n_loads, j->cap_loads) = j->n_codes;
    j->stats.loads++;
    add(j, &code);
    return 0;
}

static int move(struct fp_jitdump *j, uint64_t at, uint64_t end) {
    if (end - at < MOVE_HEAD) return FP_E_MALFORMED;
    const uint64_t of = number(j, at + 56);
    const uint32_t row[3] = {FP_WORDS(of), 1}, id = fp_table_find(&j->numbers, row);
    if (!id) return FP_E_MALFORMED;
    struct fp_jitdump_code code = j->codes[j->by_number[id] - 1];
    code.time = number(j, at + 8);
    code.address = number(j, at + 40);
    j->stats.moves++;
    add(j, &code);
    return 0;
}

/* Sorts `codes` by time, and fills `loads`. */
static void sort(struct fp_jitdump *j) {
    struct fp_pairs_item *order = fp_scratch(j->n_codes + (size_t)1, sizeof *order);
    uint32_t *place = fp_scratch(j->n_codes + (size_t)1, sizeof *place);
    struct fp_jitdump_code *sorted = fp_scratch(j->n_codes + (size_t)1, sizeof *sorted);
    for (uint32_t i = 0; i < j->n_codes; i++) order[i] = (struct fp_pairs_item){j->codes[i].time, i};
    fp_pairs_sort(order, j->n_codes);
    for (uint32_t i = 0; i < j->n_codes; i++) {
        sorted[i] = j->codes[order[i].value];
        place[order[i].value] = i;
    }
    for (uint32_t i = 0; i < j->n_loads; i++) j->loads[i] = place[j->loads[i]];
    free(j->codes);
    j->codes = fp_scratch_keep(sorted);
    fp_scratch_free(order); /* and `place` */
}

static void read_all(struct fp_jitdump *j, uint64_t at) {
    uint64_t lines = 0;
    while (at < j->n) {
        const uint64_t left = j->n - at, nbytes = left < RECORD ? 0 : word(j, at + 4);
        if (nbytes < RECORD || nbytes > left) {
            j->stats.is_cut = 1;
            break;
        }
        int status = 0;
        switch (word(j, at)) {
            case LOAD:
                status = load(j, at, at + nbytes, lines);
                lines = 0;
                break;
            case MOVE: status = move(j, at, at + nbytes); break;
            case LINES:
                lines = nbytes < LINES_HEAD ? 0 : at;
                status = lines ? 0 : FP_E_MALFORMED;
                break;
            default: break;
        }
        j->stats.damaged += status != 0;
        at += nbytes;
    }
    sort(j);
}

struct fp_jitdump *fp_jitdump_new(const uint8_t *p, size_t n, struct fp_err *err) {
    if (n < HEADER || (fp_u32(p) != MAGIC && fp_u32s(p, 1) != MAGIC)) {
        fp_fail(err, FP_E_MALFORMED, 0, "not a jitdump");
        return NULL;
    }
    struct fp_jitdump *j = fp_made(sizeof *j);
    *j = (struct fp_jitdump){.p = p, .n = n, .swap = fp_u32(p) != MAGIC};
    const uint32_t version = word(j, 4), head = word(j, 8);
    j->stats.is_ticks = (number(j, 32) & IN_TICKS) != 0;
    if (version != 1)
        fp_fail_got(err, FP_E_VERSION, 4, "version", FP_GOT_UNSIGNED, version, "%", 1);
    else if (head < HEADER || head > n)
        fp_fail_got(err, FP_E_MALFORMED, 8, "the header's length", FP_GOT_UNSIGNED, head, "40 or more", 0);
    if (version != 1 || head < HEADER || head > n) {
        fp_jitdump_free(j);
        return NULL;
    }
    fp_table_init(&j->numbers, 3);
    read_all(j, head);
    return j;
}

void fp_jitdump_free(struct fp_jitdump *j) {
    if (!j) return;
    fp_table_clear(&j->numbers);
    FP_FREE(j->codes, j->loads, j->by_number, j->order, j->lines, j);
}

struct fp_jitdump_stats fp_jitdump_stats(const struct fp_jitdump *j) {
    return j->stats;
}

const struct fp_jitdump_code *fp_jitdump_codes(const struct fp_jitdump *j, uint64_t *n) {
    *n = j->n_codes;
    return j->codes;
}

/* ---- lines ---------------------------------------------------------------- */

/* Reads the entries of a record with lines, as many as are complete, and sorts them.  None if a file name is not text:
 * V8 writes freed memory for the names of optimized code, and so the next entry cannot be found either. */
static void read_lines(struct fp_jitdump *j, uint64_t record) {
    const uint64_t end = record + word(j, record + 4);
    uint64_t at = record + LINES_HEAD;
    struct jitdump_line line = {0};
    j->record = 0;
    j->n_lines = 0;
    for (uint64_t n = number(j, record + RECORD + 8); n && end - at > ENTRY_HEAD; n--) {
        const uint8_t *name = j->p + at + ENTRY_HEAD, *nul = memchr(name, 0, end - at - ENTRY_HEAD);
        const uint64_t more = (uint64_t)j->n_lines + 1;
        if (!nul) break;
        fp_array_room(&j->order, &j->cap_order, more, sizeof *j->order);
        fp_array_room(&j->lines, &j->cap_lines, more, sizeof *j->lines);
        if (nul - name != 1 || *name != 0xff) {
            line.file = name;
            line.file_n = (uint32_t)(nul - name);
            if (!fp_is_text(name, line.file_n)) {
                j->n_lines = 0;
                break;
            }
        }
        line.line = word(j, at + 8);
        j->order[j->n_lines] = (struct fp_pairs_item){number(j, at), j->n_lines};
        j->lines[j->n_lines++] = line;
        at = (uint64_t)(nul - j->p) + 1;
    }
    fp_pairs_sort(j->order, j->n_lines);
    j->record = record;
}

int fp_jitdump_find(struct fp_jitdump *j, uint64_t offset, struct fp_jitdump_place *place) {
    uint32_t low = 0, n = j->n_loads;
    while (n) {
        const uint32_t half = n / 2;
        if (j->codes[j->loads[low + half]].offset <= offset) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    const struct fp_jitdump_code *code = low ? &j->codes[j->loads[low - 1]] : NULL;
    if (!code || offset - code->offset >= code->nbytes) return 0;
    const uint64_t name = code->loaded + LOAD_HEAD;
    *place = (struct fp_jitdump_place){.name = j->p + name, .name_n = (uint32_t)(code->offset - 1 - name)};
    if (!code->lines) return 1;
    if (j->record != code->lines) read_lines(j, code->lines);
    const size_t upper = fp_pairs_upper(j->order, j->n_lines, code->address + (offset - code->offset));
    if (!upper) return 1;
    const struct jitdump_line *line = &j->lines[j->order[upper - 1].value];
    place->file = line->file;
    place->file_n = line->file_n;
    place->line = line->line;
    return 1;
}
