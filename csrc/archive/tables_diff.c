/* Tables as a difference to those of another profile, the base.  See docs/formats/archive.md, "Differences of tables".
 */
#include "archive/private.h"
#include "archive/row_layout.h"

/* MOST_STEPS bounds the work for each entry that is expected. */
enum { MOST_WIDTH = 8, MOST_STEPS = 256, NO_WORD = UINT32_MAX };

/* Each table comes before those that it refers to. */
static const uint8_t order[FP_ARCHIVE_TABLES] = {FP_T_STACKS,    FP_T_LABELS,   FP_T_THREADS, FP_T_FRAMES, FP_T_LINES,
                                                 FP_T_FUNCTIONS, FP_T_MAPPINGS, FP_T_OBJECTS, FP_T_STRINGS};

/* An entry is named by a tag: 2 * id of the same entry in the base, or 2 * i + 1 for the i-th entry that the base does
 * not have.  0: none. */
static inline int is_new(uint32_t tag) {
    return tag & 1;
}

/* The own entries of a table, by id.  Arrays are in scratch memory (core/guard.h). */
struct entries {
    const struct fp_table *base; /* NULL: strings */
    uint32_t n, base_n;          /* entries here and in the base, 0 included */
    uint32_t n_new;              /* of those placed so far */
    uint32_t next, saved;        /* where the base's order continues, and where it did before the last jump */
    uint32_t outer;              /* the word of a row that refers to an earlier row of this table, or NO_WORD */
    uint32_t *tags;              /* by own id */
    uint32_t *of_base;           /* by the base's id: the own id, or 0 if it has not been placed */
    uint32_t *of_new;            /* by number: the own id */
    uint32_t *new_rows;          /* by number: the columns, references as tags; not of strings */
    const uint8_t **new_text;    /* strings, by number: the first byte; the next one's is their end */
};

struct lists {
    const uint8_t *base_p, *p; /* the arguments of fp_archive_tables_diff or _undiff */
    size_t base_nbytes, nbytes;
    struct fp_buf *out, *stacks;
    struct fp_model *base, *own;          /* `own`: of tables to be encoded */
    struct fp_archive_ids *ids, *own_ids; /* of these models */
    struct entries of[FP_ARCHIVE_TABLES];
    uint32_t *guesses; /* tags, in the order in which the tables above use the entries */
    uint32_t n_guesses, cap_guesses, guess;
};

/* Calls `work` for lists, then frees what it made, also when memory ran out. */
static int with_lists(int (*work)(void *lists), struct lists *d) {
    const int status = fp_guarded(work, d);
    fp_archive_ids_free(d->ids);
    fp_archive_ids_free(d->own_ids);
    fp_model_free(d->base);
    fp_model_free(d->own);
    free(d->guesses);
    return status;
}

/* The words of a row; 0 of strings. */
static inline uint32_t width_of(const struct entries *l) {
    return l->base ? l->base->width : 0;
}

/* Reads tables into a new model, in which all ids must be those of the payload.  `appends`: rows need not be found.
 * 0 or FP_E_MALFORMED. */
static int open_model(const uint8_t *p, size_t n, int appends, struct fp_model **m, struct fp_archive_ids **ids) {
    struct fp_err err;
    if (n > FP_ARCHIVE_MAX_DIFFERENCE) return FP_E_MALFORMED;
    *m = fp_have(fp_model_new());
    fp_archive_ids_begin(ids, *m);
    (*ids)->appends = appends;
    return fp_archive_tables_read(*ids, p, n, &err) || (*ids)->differ ? FP_E_MALFORMED : 0;
}

/* Opens the base.  0 or FP_E_MALFORMED. */
static int open_lists(struct lists *d, int appends) {
    const int status = open_model(d->base_p, d->base_nbytes, appends, &d->base, &d->ids);
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES && !status; t++) d->of[t].base_n = d->ids->n[t];
    return status;
}

/* Makes room for `n` entries of table t, 0 included. */
static void open_list(struct lists *d, unsigned t, uint32_t n) {
    struct entries *l = &d->of[t];
    l->n = n;
    l->base = t == FP_T_STRINGS ? NULL : fp_archive_table_of(d->base, t - 1);
    l->next = l->saved = 1;
    l->outer = NO_WORD;
    uint32_t at = 0;
    for (const uint8_t *word = t == FP_T_STRINGS ? NULL : shapes[t - 1]; word && *word != FP_SHAPE_END;
         at += *word++ == FP_SHAPE_WIDE ? 2 : 1)
        if (*word == FP_SHAPE_EARLIER) l->outer = at;
    l->tags = fp_scratch(n, sizeof *l->tags);
    l->of_base = fp_scratch(l->base_n, sizeof *l->of_base);
    l->of_new = fp_scratch(n, sizeof *l->of_new);
    if (t == FP_T_STRINGS)
        l->new_text = fp_scratch((size_t)n + 1, sizeof *l->new_text);
    else
        l->new_rows = fp_scratch((size_t)n * width_of(l), sizeof *l->new_rows);
}

/* The row of own entry i: the base's, or a new one, whose references are tags. */
static inline const uint32_t *row_of(const struct entries *l, uint32_t i) {
    const uint32_t tag = l->tags[i];
    return is_new(tag) ? l->new_rows + (size_t)(tag / 2) * l->base->width : fp_table_row(l->base, tag / 2);
}

/* The column at word `at` of own entry i, a reference, as a tag. */
static inline uint32_t reference(const struct entries *l, uint32_t i, uint32_t at) {
    return row_of(l, i)[at] << !is_new(l->tags[i]);
}

/* Appends the tag to the guesses unless it was seen.  `seen` has bits for the base's entries and for new ones. */
static void add_guess(struct lists *d, uint8_t *seen, uint32_t tag) {
    if (!tag || seen[tag]) return;
    seen[tag] = 1;
    FP_PUSH(d->guesses, d->n_guesses, d->cap_guesses) = tag;
}

/* The end of the run of stacks from i on, each the caller of the next one. */
static uint32_t end_of_run(const struct lists *d, uint32_t i) {
    const struct entries *l = &d->of[FP_T_STACKS];
    uint32_t end = i + 1;
    while (end < l->n && reference(l, end, FP_STACK_PARENT) == l->tags[end - 1]) end++;
    return end;
}

/* Guesses the order of table t: in most profiles, each entry comes before the first entry of another table that refers
 * to it.  `leaf_first`: of new stacks, the frames of callees were added before those of callers. */
static void guess(struct lists *d, unsigned t, int leaf_first) {
    const uint32_t most = d->of[t].n > d->of[t].base_n ? d->of[t].n : d->of[t].base_n;
    uint8_t *seen = fp_scratch(most, 2);
    d->n_guesses = d->guess = 0;
    for (const uint8_t *above = order; *above != t; above++) {
        uint32_t at[MOST_WIDTH], n = 0, word_at = 0;
        for (const uint8_t *word = shapes[*above - 1]; *word != FP_SHAPE_END;
             word_at += *word++ == FP_SHAPE_WIDE ? 2 : 1)
            if (*word >= FP_SHAPE_STRING && fp_archive_target_of(*word, *above) == t) at[n++] = word_at;
        uint32_t end;
        for (uint32_t i = 1; i < d->of[*above].n && n; i = end) {
            end = leaf_first && *above == FP_T_STACKS ? end_of_run(d, i) : i + 1;
            for (uint32_t j = end; j-- > i;)
                for (uint32_t k = 0; k < n; k++) add_guess(d, seen, reference(&d->of[*above], j, at[k]));
        }
    }
    fp_scratch_free(seen);
}

/* The base's entry that comes next if its order continues at `from`: the first one from there on that has not been
 * placed, but before it those that it refers to, for instance the callers of a stack.  Sets *then to where the order
 * continues after it.  Of the base's chains 1-2-3 and 1-2-4 a profile may have the second one only: from 4 on, 1 and 2
 * come first. */
static uint32_t next_from(const struct entries *l, uint32_t from, uint32_t *then) {
    uint32_t id = from;
    for (unsigned n = 0; n < MOST_STEPS && id < l->base_n && l->of_base[id]; n++) id++;
    *then = id < l->base_n ? id + 1 : id;
    for (unsigned n = 0; n < MOST_STEPS && id < l->base_n && l->outer != NO_WORD; n++) {
        const uint32_t outer = fp_table_row(l->base, id)[l->outer];
        if (!outer || l->of_base[outer]) break;
        if (!n) *then = id;
        id = outer;
    }
    return id;
}

/* The tag that is expected next: that of the first guess which has not been placed, otherwise the base's next entry. */
static uint32_t expected(struct lists *d, const struct entries *l, uint32_t *then) {
    for (; d->guess < d->n_guesses; d->guess++) {
        const uint32_t tag = d->guesses[d->guess];
        *then = is_new(tag) ? l->next : tag / 2 + 1;
        if (is_new(tag) ? tag / 2 >= l->n_new : !l->of_base[tag / 2]) return tag;
    }
    return 2 * next_from(l, l->next, then);
}

/* Places the entry `tag` at own id i; the base's order continues at `then`.  0 or FP_E_MALFORMED. */
static int place(struct entries *l, uint32_t i, uint32_t tag, uint32_t then) {
    const uint32_t id = tag / 2;
    if (is_new(tag)) {
        if (id != l->n_new) return FP_E_MALFORMED;
        l->of_new[l->n_new++] = i;
    } else {
        if (!id || id >= l->base_n || l->of_base[id]) return FP_E_MALFORMED;
        l->of_base[id] = i;
    }
    l->tags[i] = tag;
    l->next = then;
    return 0;
}

/* An entry that is not expected: a new one, the next one where the base's order continued before the last jump, or one
 * that comes before the entry jumped to, whose code is JUMP + zig(id - where the order would continue). */
enum { NEW, RETURN, JUMP };

static int place_by_code(struct entries *l, uint32_t i, uint64_t code) {
    if (code == NEW) return place(l, i, 2 * l->n_new + 1, l->next);
    const uint64_t to = code == RETURN ? l->saved : l->next + fp_zag(code - JUMP);
    if (!to || to >= l->base_n) return FP_E_MALFORMED;
    l->saved = l->next;
    uint32_t then;
    const uint32_t id = next_from(l, (uint32_t)to, &then);
    return place(l, i, 2 * id, then);
}

/* By own stack, or by own function if there are no stacks: the base's id, or 0. */
static void put_stacks(const struct lists *d) {
    const struct entries *l = &d->of[d->of[FP_T_STACKS].n > 1 ? FP_T_STACKS : FP_T_FUNCTIONS];
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t id = is_new(l->tags[i]) ? 0 : l->tags[i] / 2;
        fp_buf_put(d->stacks, &id, sizeof id);
    }
}

/* ---- the encoder ---------------------------------------------------------- */

/* Finds own entry i of table t, a row with the own ids, in the base.  Returns its tag. */
static uint32_t find_row(struct lists *d, unsigned t, const uint32_t *own) {
    struct entries *l = &d->of[t];
    uint32_t row[MOST_WIDTH], same[MOST_WIDTH], at = 0, n_new = 0;
    for (const uint8_t *word = shapes[t - 1]; *word != FP_SHAPE_END; word++) {
        row[at] = same[at] = own[at];
        if (*word == FP_SHAPE_WIDE) {
            at++;
            row[at] = same[at] = own[at];
        } else if (*word != FP_SHAPE_NUMBER) {
            row[at] = d->of[fp_archive_target_of(*word, t)].tags[own[at]];
            same[at] = row[at] / 2;
            n_new += is_new(row[at]) != 0;
        }
        at++;
    }
    if (!n_new) {
        const uint32_t id = t == FP_T_FUNCTIONS ? fp_model_function_row(d->base, same)
                                                : fp_table_intern(fp_archive_table_of(d->base, t - 1), same);
        if (id < l->base_n) return 2 * id;
    }
    memcpy(l->new_rows + (size_t)l->n_new * at, row, at * sizeof *row);
    return 2 * l->n_new++ + 1;
}

static uint32_t find_string(struct lists *d, const struct fp_strings *own, uint32_t i) {
    struct entries *l = &d->of[FP_T_STRINGS];
    size_t n;
    const uint8_t *p = fp_string(own, i, &n);
    const uint32_t id = fp_strings_intern(&d->base->strings, p, n);
    return id < l->base_n ? 2 * id : 2 * l->n_new++ + 1;
}

/* Finds the tags of all own entries.  Returns 0, or FP_MORE if most are not in the base. */
static int find(struct lists *d) {
    uint64_t same = 0, all = 0;
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES; t++) {
        struct entries *l = &d->of[t];
        const struct fp_table *table = t == FP_T_STRINGS ? NULL : fp_archive_table_of(d->own, t - 1);
        open_list(d, t, table ? table->n : d->own->strings.n);
        for (uint32_t i = 1; i < l->n; i++)
            l->tags[i] = table ? find_row(d, t, fp_table_row(table, i)) : find_string(d, &d->own->strings, i);
        all += l->n - 1;
        same += l->n - 1 - l->n_new;
        l->n_new = 0;
    }
    return 2 * same >= all && all ? 0 : FP_MORE;
}

/* The new entries of a table. */
static void put_new(const struct lists *d, unsigned t) {
    const struct entries *l = &d->of[t];
    struct fp_buf *out = d->out;
    if (t == FP_T_STRINGS) {
        size_t n;
        for (uint32_t i = 0; i < l->n_new; i++) {
            fp_string(&d->own->strings, l->of_new[i], &n);
            fp_buf_varint(out, n);
        }
        for (uint32_t i = 0; i < l->n_new; i++) {
            const uint8_t *p = fp_string(&d->own->strings, l->of_new[i], &n);
            fp_buf_put(out, p, n);
        }
        return;
    }
    const uint32_t *row = l->new_rows;
    for (uint32_t i = 0; i < l->n_new; i++, row += width_of(l)) {
        uint32_t at = 0;
        for (const uint8_t *word = shapes[t - 1]; *word != FP_SHAPE_END; at += *word++ == FP_SHAPE_WIDE ? 2 : 1)
            fp_buf_varint(out, *word == FP_SHAPE_WIDE ? fp_words_u64(row + at) : row[at]);
    }
}

/* How many of the first entries are as guessed. */
static uint32_t n_right(const struct lists *d, const struct entries *l) {
    uint32_t n = 0;
    while (n < d->n_guesses && n + 1 < l->n && d->guesses[n] == l->tags[n + 1]) n++;
    return n;
}

/* The entry to jump to for own entry i, which the base has: that of its callees, placed one after the other, from which
 * on they are neighbours in the base.  So those before it need no codes. */
static uint32_t aim(const struct entries *l, uint32_t i) {
    uint32_t k = i, then;
    if (l->outer != NO_WORD) {
        while (k + 1 < l->n && k - i + 1 < MOST_STEPS && !is_new(l->tags[k + 1]) &&
               row_of(l, k + 1)[l->outer] == l->tags[k] / 2)
            k++;
        while (k > i && l->tags[k - 1] + 2 == l->tags[k]) k--;
    }
    const uint32_t id = l->tags[k] / 2;
    return next_from(l, id, &then) == l->tags[i] / 2 ? id : l->tags[i] / 2;
}

static uint64_t code_of(const struct entries *l, uint32_t i) {
    uint32_t then;
    if (is_new(l->tags[i])) return NEW;
    if (next_from(l, l->saved, &then) == l->tags[i] / 2) return RETURN;
    return JUMP + fp_zig((uint64_t)aim(l, i) - l->next);
}

static int put_list(struct lists *d, unsigned t) {
    struct entries *l = &d->of[t];
    struct fp_buf *out = d->out;
    int leaf_first = 0;
    uint32_t run = 0, then;
    guess(d, t, 0);
    if (t == FP_T_FRAMES) {
        const uint32_t right = n_right(d, l);
        guess(d, t, 1);
        leaf_first = n_right(d, l) > right;
        if (!leaf_first) guess(d, t, 0);
        fp_buf_byte(out, (uint8_t)leaf_first);
    }
    for (uint32_t i = 1; i < l->n; i++) {
        const uint32_t tag = l->tags[i];
        if (tag == expected(d, l, &then)) {
            run++;
            if (place(l, i, tag, then)) return FP_E_MALFORMED;
            continue;
        }
        const uint64_t code = code_of(l, i);
        fp_buf_varint(out, run);
        fp_buf_varint(out, code);
        run = 0;
        if (place_by_code(l, i, code) || l->tags[i] != tag) return FP_E_MALFORMED;
    }
    if (run) fp_buf_varint(out, run);
    put_new(d, t);
    return 0;
}

static int diff(void *arg) {
    struct lists *d = arg;
    FP_TRY(open_lists(d, 0));
    FP_TRY(open_model(d->p, d->nbytes, 1, &d->own, &d->own_ids));
    FP_TRY(find(d));
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES; t++) fp_buf_varint(d->out, d->of[t].n - 1);
    for (unsigned k = 0; k < FP_ARCHIVE_TABLES; k++) FP_TRY(put_list(d, order[k]));
    put_stacks(d);
    return FP_DONE;
}

int fp_archive_tables_diff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out,
                           struct fp_buf *stacks) {
    return with_lists(
        diff,
        &(struct lists){.base_p = base, .base_nbytes = base_n, .p = p, .nbytes = n, .out = out, .stacks = stacks});
}

/* ---- the decoder ----------------------------------------------------------- */

/* The own id of a tag; 0 if there is none. */
static uint32_t own_id(const struct entries *l, uint32_t tag) {
    if (is_new(tag)) return tag / 2 < l->n_new ? l->of_new[tag / 2] : 0;
    return tag / 2 < l->base_n ? l->of_base[tag / 2] : 0;
}

static int take_new_strings(struct entries *l, struct fp_cursor *c) {
    struct fp_cursor lengths = *c;
    for (uint32_t i = 0; i < l->n_new; i++) fp_cursor_number(c);
    l->new_text[0] = c->p;
    for (uint32_t i = 0; i < l->n_new && !c->status; i++) {
        const uint64_t length = fp_cursor_number(&lengths);
        if (length > (size_t)(c->end - c->p)) c->status = FP_E_MALFORMED;
        if (!c->status) c->p += length;
        l->new_text[i + 1] = c->p;
    }
    return c->status ? FP_E_MALFORMED : 0;
}

static int take_new_rows(struct lists *d, unsigned t, struct fp_cursor *c) {
    struct entries *l = &d->of[t];
    uint32_t *row = l->new_rows;
    for (uint32_t i = 0; i < l->n_new; i++, row += width_of(l)) {
        uint32_t at = 0;
        for (const uint8_t *word = shapes[t - 1]; *word != FP_SHAPE_END; word++) {
            const uint64_t v = fp_cursor_number(c);
            row[at++] = (uint32_t)v;
            if (*word == FP_SHAPE_WIDE)
                row[at++] = (uint32_t)(v >> 32);
            else if (v > UINT32_MAX)
                c->status = FP_E_MALFORMED;
            else if (*word != FP_SHAPE_NUMBER) {
                const struct entries *to = &d->of[fp_archive_target_of(*word, t)];
                if (v / 2 >= (v & 1 ? to->n : to->base_n)) c->status = FP_E_MALFORMED;
            }
        }
    }
    return c->status ? FP_E_MALFORMED : 0;
}

static int take_list(struct lists *d, unsigned t, struct fp_cursor *c) {
    struct entries *l = &d->of[t];
    const int leaf_first = t == FP_T_FRAMES && fp_archive_byte(c);
    int status = 0;
    guess(d, t, leaf_first);
    for (uint32_t i = 1; i < l->n && !status;) {
        const uint32_t run = fp_archive_u32(c);
        if (c->status || run > l->n - i) return FP_E_MALFORMED;
        for (const uint32_t end = i + run; i < end && !status; i++) {
            uint32_t then;
            const uint32_t tag = expected(d, l, &then);
            status = place(l, i, tag, then);
        }
        if (status || i == l->n) break;
        const uint64_t code = fp_cursor_number(c);
        status = c->status ? FP_E_MALFORMED : place_by_code(l, i++, code);
    }
    if (status) return status;
    return t == FP_T_STRINGS ? take_new_strings(l, c) : take_new_rows(d, t, c);
}

static void put_strings(const struct lists *d) {
    const struct entries *l = &d->of[FP_T_STRINGS];
    for (int bytes = 0; bytes < 2; bytes++)
        for (uint32_t i = 1; i < l->n; i++) {
            const uint32_t tag = l->tags[i], k = tag / 2;
            size_t n = is_new(tag) ? (size_t)(l->new_text[k + 1] - l->new_text[k]) : 0;
            const uint8_t *p = is_new(tag) ? l->new_text[k] : fp_string(&d->base->strings, k, &n);
            if (!bytes)
                fp_buf_varint(d->out, n);
            else
                fp_buf_put(d->out, p, n);
        }
}

static int put_column(const struct lists *d, unsigned t, uint8_t word, uint32_t at, struct fp_buf *out) {
    const struct entries *l = &d->of[t], *to = word < FP_SHAPE_STRING ? NULL : &d->of[fp_archive_target_of(word, t)];
    uint64_t last = 0;
    for (uint32_t i = 1; i < l->n; i++) {
        const uint32_t *row = row_of(l, i);
        uint64_t v = word == FP_SHAPE_WIDE ? fp_words_u64(row + at) : row[at];
        if (to && v) {
            v = own_id(to, reference(l, i, at));
            if (!v) return FP_E_MALFORMED;
        }
        fp_buf_varint(out, fp_zig(v - last));
        last = v;
    }
    return 0;
}

static int undiff(void *arg) {
    struct lists *d = arg;
    struct fp_cursor c = {.p = d->p, .end = d->p + d->nbytes};
    uint32_t counts[FP_ARCHIVE_TABLES];
    uint64_t n_new = 0; /* at least */
    FP_TRY(open_lists(d, 1));
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES; t++) {
        counts[t] = fp_archive_u32(&c);
        if (counts[t] >= d->of[t].base_n) n_new += counts[t] - d->of[t].base_n + 1;
        /* each is one of the base, or takes at least a byte */
        if (c.status || d->nbytes > FP_ARCHIVE_MAX_DIFFERENCE || n_new > d->nbytes) return FP_E_MALFORMED;
    }
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES; t++) open_list(d, t, counts[t] + 1);
    for (unsigned k = 0; k < FP_ARCHIVE_TABLES; k++) FP_TRY(take_list(d, order[k], &c));
    if (c.p != c.end) return FP_E_MALFORMED;
    for (unsigned t = 0; t < FP_ARCHIVE_TABLES; t++) {
        fp_buf_varint(d->out, 1);
        fp_buf_varint(d->out, d->of[t].n - 1);
        if (t == FP_T_STRINGS) {
            put_strings(d);
            continue;
        }
        uint32_t at = 0;
        for (const uint8_t *word = shapes[t - 1]; *word != FP_SHAPE_END; at += *word++ == FP_SHAPE_WIDE ? 2 : 1)
            FP_TRY(put_column(d, t, *word, at, d->out));
    }
    put_stacks(d);
    return 0;
}

int fp_archive_tables_undiff(const uint8_t *base, size_t base_n, const uint8_t *p, size_t n, struct fp_buf *out,
                             struct fp_buf *stacks) {
    return with_lists(
        undiff,
        &(struct lists){.base_p = base, .base_nbytes = base_n, .p = p, .nbytes = n, .out = out, .stacks = stacks});
}
