/* The samples of a message: the second pass over it. */
#include "otlp/read_private.h"

static const struct fp_wire_schema schema[] = {
    [FP_OTLP_1_8] = {.kinds = " VLLVX"},
    [FP_OTLP_1_9] = {.kinds = " VLLVX"},
    [FP_OTLP_1_10] = {.kinds = " VLVLX"},
};

/* ---- labels ---- */

/* Prepends an attribute to a chain; records process and thread ids. */
static uint32_t add_label(struct fp_otlp_reader *r, uint32_t chain, struct fp_otlp_attribute *a, uint32_t *pid,
                          uint32_t *tid) {
    const struct fp_otlp_words *w = &r->words;
    if (!a->key || a->kind == FP_OTLP_NOTHING) return chain;
    r->stats.as_text += a->odd;
    a->odd = 0;
    const int is_id = a->kind == FP_OTLP_NUMBER && a->number > 0 && a->number <= UINT32_MAX;
    if (is_id && a->key == w->process_pid) *pid = (uint32_t)a->number;
    if (is_id && a->key == w->thread_id) *tid = (uint32_t)a->number;
    const int is_number = a->kind == FP_OTLP_NUMBER;
    return fp_model_label(r->model, chain, (uint32_t)a->key, is_number ? 0 : a->string, is_number ? a->number : 0,
                          (uint32_t)a->unit);
}

static int is_of_part(const struct fp_otlp_words *w, uint64_t key) {
    return key == w->comment || key == w->doc_url || key == w->drop_frames || key == w->keep_frames;
}

/* `otel.scope.` and the key of a scope's attribute. */
static uint32_t scope_key(struct fp_otlp_reader *r, uint32_t key) {
    size_t n;
    const uint8_t *p = fp_string(&r->model->strings, key, &n);
    r->rows.key.n = 0;
    fp_buf_put(&r->rows.key, "otel.scope.", 11);
    fp_buf_put(&r->rows.key, p, n);
    return fp_strings_intern(&r->model->strings, r->rows.key.p, r->rows.key.n);
}

static uint32_t scope_labels(struct fp_otlp_reader *r, const struct fp_otlp_scope *scope, uint32_t chain) {
    const struct fp_otlp_words *w = &r->words;
    struct fp_model *m = r->model;
    for (uint32_t i = scope->n; i-- > 0;) {
        struct fp_otlp_attribute a = r->current.own[scope->first + i];
        if (!a.key || a.key == w->default_sample_type || a.key == w->sample_type_order) continue;
        a.key = scope_key(r, (uint32_t)a.key);
        uint32_t ignored;
        chain = add_label(r, chain, &a, &ignored, &ignored);
        r->current.own[scope->first + i].odd = 0;
    }
    if (scope->version) chain = fp_model_label(m, chain, w->scope_version, scope->version, 0, 0);
    if (scope->name) chain = fp_model_label(m, chain, w->scope_name, scope->name, 0, 0);
    return chain;
}

/* The labels that all samples of a profile share: its resource's, its scope's and its own. */
static void base_of(struct fp_otlp_reader *r, const struct fp_otlp_profile *p, struct fp_otlp_base *base) {
    const struct fp_otlp_scope *scope = &r->scan.scopes[p->scope];
    const struct fp_otlp_resource *resource = &r->scan.resources[scope->resource];
    uint32_t chain = 0;
    base->pid = base->tid = 0;
    for (uint32_t i = resource->n; i-- > 0;)
        chain = add_label(r, chain, &r->current.own[resource->first + i], &base->pid, &base->tid);
    chain = scope_labels(r, scope, chain);
    for (uint32_t i = p->n; i-- > 0;) {
        const uint32_t index = r->current.lists[p->first + i];
        if (index >= r->current.n_attributes || is_of_part(&r->words, r->current.attributes[index].key)) continue;
        chain = add_label(r, chain, &r->current.attributes[index], &base->pid, &base->tid);
    }
    base->chain = chain;
}

/* Creates a new label set for a sample. */
static int new_labels(struct fp_otlp_reader *r, const struct fp_otlp_sample *s, struct fp_otlp_labels *labels,
                      struct fp_err *err) {
    struct fp_wire list = s->attributes;
    uint32_t n = 0, chain = r->rows.base.chain, pid = r->rows.base.pid, tid = r->rows.base.tid;
    uint64_t v;
    int status;
    while ((status = fp_wire_next_number(&list, &v)) > 0) {
        const int known =
            fp_otlp_check_index(r, v, r->current.n_attributes, s->at, "an index into the attribute table", err);
        if (known < 0) return known;
        if (!known) return FP_E_MALFORMED;
        FP_PUSH(r->tables.path, n, r->tables.cap_path) = (uint32_t)v;
    }
    if (status) return fp_fail(err, FP_E_MALFORMED, s->at, "an attribute of a sample is malformed");
    if (s->link || r->tables.n_links) {
        const int known = fp_otlp_check_index(r, s->link, r->tables.n_links, s->at, "the link of a sample", err);
        if (known < 0) return known;
        if (!known) return FP_E_MALFORMED;
        const struct fp_otlp_link *link = &r->tables.links[s->link];
        if (link->span) chain = fp_model_label(r->model, chain, r->words.span_id, link->span, 0, 0);
        if (link->trace) chain = fp_model_label(r->model, chain, r->words.trace_id, link->trace, 0, 0);
    }
    while (n-- > 0) chain = add_label(r, chain, &r->current.attributes[r->tables.path[n]], &pid, &tid);
    labels->chain = chain;
    labels->thread = pid || tid ? fp_model_thread(r->model, r->input, pid, tid) : 0;
    return 0;
}

/* Finds the label set of a sample by its profile's labels, its link and its attributes. */
static int labels_of(struct fp_otlp_reader *r, const struct fp_otlp_sample *s, struct fp_otlp_labels *labels,
                     struct fp_err *err) {
    const size_t n = (size_t)(s->attributes.end - s->attributes.p);
    const uint32_t head[] = {r->rows.base.chain, (uint32_t)s->link};
    if (FP_UNLIKELY(s->link > UINT32_MAX)) return new_labels(r, s, labels, err); /* beyond any table */
    r->rows.key.n = 0;
    fp_buf_reserve(&r->rows.key, sizeof head + n);
    memcpy(r->rows.key.p, head, sizeof head);
    if (n) memcpy(r->rows.key.p + sizeof head, s->attributes.p, n);
    r->rows.key.n = sizeof head + n;
    const uint32_t before = r->rows.label_sets.n;
    const uint32_t set = fp_strings_intern(&r->rows.label_sets, r->rows.key.p, r->rows.key.n);
    fp_array_room(&r->rows.labels, &r->rows.cap_labels, (uint64_t)set + 1, sizeof *r->rows.labels);
    if (set == before) r->rows.labels[set] = (struct fp_otlp_labels){FP_NO_ID, 0};
    if (r->rows.labels[set].chain == FP_NO_ID) FP_TRY(new_labels(r, s, &r->rows.labels[set], err));
    *labels = r->rows.labels[set];
    return 0;
}

/* ---- stacks ---- */

/* Adds a stack to the model.  The leaf is the first of its locations. */
static uint32_t new_stack(struct fp_otlp_reader *r, const struct fp_otlp_stack *stack) {
    uint32_t at = 0;
    for (uint32_t i = stack->entry.n; i-- > 0;) {
        struct fp_otlp_location *l = &r->tables.locations[r->current.lists[stack->entry.first + i]];
        if (!l->frame) l->frame = fp_model_frame(r->model, 0, 0, 0, 0);
        at = fp_model_stack(r->model, at, l->frame);
    }
    return at;
}

static int stack_of(struct fp_otlp_reader *r, const struct fp_otlp_sample *s, uint32_t *node, struct fp_err *err) {
    *node = 0;
    if (!s->stack && !r->tables.n_stacks) return 0;
    const int known = fp_otlp_check_index(r, s->stack, r->tables.n_stacks, s->at, "the stack of a sample", err);
    if (known < 0) return known;
    if (!known) return FP_E_MALFORMED;
    if (FP_UNLIKELY(r->tables.n_renewed != r->model->n_renewed)) {
        r->tables.n_renewed = r->model->n_renewed;
        for (uint32_t i = 0; i < r->tables.n_stacks; i++) r->tables.nodes[i] = FP_NO_ID;
    }
    if (FP_UNLIKELY(r->tables.nodes[s->stack] == FP_NO_ID)) {
        if (r->tables.stacks[s->stack].bad) return FP_E_MALFORMED;
        r->tables.nodes[s->stack] = new_stack(r, &r->tables.stacks[s->stack]);
    }
    *node = r->tables.nodes[s->stack];
    return 0;
}

/* ---- observations ---- */

/* Adds a piece of a list: a single piece is used in place, several are joined. */
static void add_piece(struct fp_wire *list, struct fp_buf *joined, const struct fp_wire_field *f) {
    if (list->p == list->end) {
        *list = fp_wire_inside(f);
        joined->n = 0;
        return;
    }
    if (!joined->n) fp_buf_put(joined, list->p, (size_t)(list->end - list->p));
    fp_buf_put(joined, f->p, f->n);
    *list = (struct fp_wire){joined->p, joined->p + joined->n};
}

static int sample_fields(struct fp_otlp_reader *r, struct fp_otlp_cursor *c, const struct fp_wire_field *entry,
                         struct fp_err *err) {
    struct fp_wire m = fp_wire_inside(entry);
    struct fp_wire_field f;
    struct fp_otlp_sample *const s = &c->sample;
    const int is_new = r->layout == FP_OTLP_1_10;
    const uint32_t values = is_new ? 4 : 2, attributes = is_new ? 2 : 3, link = is_new ? 3 : 4;
    int kind;
    *s = (struct fp_otlp_sample){.at = fp_otlp_offset(&c->window, entry->at)};
    while ((kind = fp_wire_next(&m, &schema[r->layout], &f)) > 0) {
        if (kind == FP_WIRE_UNKNOWN)
            r->stats.unknown_fields++;
        else if (f.number == 1)
            s->stack = f.v;
        else if (f.number == values)
            add_piece(&s->values, &c->packed, &f);
        else if (f.number == attributes)
            add_piece(&s->attributes, &c->attributes, &f);
        else if (f.number == link)
            s->link = f.v;
        else
            add_piece(&s->times, &c->times, &f);
    }
    if (kind == FP_WIRE_BAD)
        return fp_fail(err, FP_E_MALFORMED, fp_otlp_offset(&c->window, m.p), "a sample is malformed");
    return 0;
}

static int add_overflows(int64_t a, int64_t b, int64_t *sum) {
    return __builtin_add_overflow(a, b, sum);
}

/* Decodes the values of a sample into c->values, one for each timestamp.  Without timestamps the values are added up to
 * a single row.  0 or an error. */
static int observations(struct fp_otlp_reader *r, struct fp_otlp_cursor *c, struct fp_err *err) {
    const struct fp_otlp_sample *const s = &c->sample;
    struct fp_wire list = s->values;
    const size_t n_bytes = (size_t)(s->times.end - s->times.p);
    const uint32_t n_times = (uint32_t)(n_bytes / 8);
    uint32_t n = 0;
    uint64_t v;
    int status;
    while ((status = fp_wire_next_number(&list, &v)) > 0) FP_PUSH(c->values, n, c->cap_values) = (int64_t)v;
    if (status) return fp_fail(err, FP_E_MALFORMED, s->at, "a value of a sample is malformed");
    if (n_bytes % 8) return fp_fail(err, FP_E_MALFORMED, s->at, "a timestamp of a sample is malformed");
    if (n_times && n && n_times != n)
        return fp_fail_got(err, FP_E_MALFORMED, s->at, "the number of timestamps of a sample", FP_GOT_UNSIGNED, n_times,
                           "%, one for each value", n);
    fp_array_room(&c->values, &c->cap_values, (uint64_t)n_times + 1, 8);
    c->n_values = n_times ? n_times : 1;
    for (uint32_t i = n; i < n_times; i++) c->values[i] = 1; /* without values, each timestamp counts 1 */
    if (n_times) return 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (add_overflows(sum, c->values[i], &sum))
            return fp_fail(err, FP_E_OVERFLOW, s->at, "the values of a sample add up to more than 64 bits");
    r->stats.no_observation += !n;
    c->values[0] = sum;
    return 0;
}

static int take_sample(struct fp_otlp_reader *r, struct fp_otlp_cursor *c, const struct fp_wire_field *entry,
                       struct fp_err *err) {
    int status = sample_fields(r, c, entry, err);
    if (!status) status = observations(r, c, err);
    if (!status) {
        c->state = FP_OTLP_FOUND;
        return 0;
    }
    if (!r->lenient) return status;
    r->stats.bad_samples++;
    return 0;
}

/* Finds the next sample of a profile.  0, FP_MORE or an error. */
static int find_sample(struct fp_otlp_reader *r, struct fp_otlp_cursor *c, struct fp_err *err) {
    while (c->state == FP_OTLP_WANTED) {
        struct fp_wire_field f;
        int status = fp_otlp_next(&c->walk, &c->window, &f, err);
        if (status == FP_DONE || status == FP_OTLP_END) {
            c->state = FP_OTLP_OVER;
        } else if (status != FP_OTLP_FIELD) {
            return status;
        } else if (f.number == FP_OTLP_SAMPLE && (status = take_sample(r, c, &f, err))) {
            return status;
        }
    }
    return 0;
}

/* ---- several profiles at the same time ---- */

/* Whether p can be read together with the chosen profiles: it is of the same scope, has the same labels and another
 * column. */
static int fits(struct fp_otlp_reader *r, const struct fp_otlp_profile *p) {
    struct fp_otlp_base base;
    if (r->n_chosen == FP_OTLP_IN_STEP || p->scope != r->current.profiles[r->first].scope) return 0;
    for (uint32_t k = 0; k < r->n_chosen; k++)
        if (r->rows.cursors[k].column == p->column) return 0;
    base_of(r, p, &base);
    return base.chain == r->rows.base.chain && base.pid == r->rows.base.pid && base.tid == r->rows.base.tid;
}

static void begin_profile(struct fp_otlp_reader *r, struct fp_otlp_cursor *c, const struct fp_otlp_profile *p) {
    c->column = p->column;
    c->state = FP_OTLP_WANTED;
    c->walk = (struct fp_otlp_walk){.form = r->walk.form, .lenient = r->lenient};
    c->walk.wanted[FP_OTLP_PROFILE] = 1u << FP_OTLP_SAMPLE;
    fp_otlp_walk_begin(&c->walk, FP_OTLP_PROFILE);
}

int fp_otlp_choose(struct fp_otlp_reader *r) {
    r->first += r->n_chosen;
    r->n_chosen = r->rows.n_rows = r->rows.row = 0;
    for (uint32_t i = r->first; i < r->current.n_profiles; i++) {
        const struct fp_otlp_profile *p = &r->current.profiles[i];
        if (!r->n_chosen)
            base_of(r, p, &r->rows.base);
        else if (!fits(r, p))
            break;
        begin_profile(r, &r->rows.cursors[r->n_chosen++], p);
    }
    return (int)r->n_chosen;
}

struct fp_window *fp_otlp_window(struct fp_otlp_reader *r, uint32_t k) {
    return &r->rows.cursors[k].window;
}

static int is_same_list(const struct fp_wire *a, const struct fp_wire *b) {
    const size_t n = (size_t)(a->end - a->p);
    return (size_t)(b->end - b->p) == n && (!n || !memcmp(a->p, b->p, n));
}

/* Whether two samples differ only in their values. */
static int is_same(const struct fp_otlp_sample *a, const struct fp_otlp_sample *b) {
    return a->stack == b->stack && a->link == b->link && is_same_list(&a->attributes, &b->attributes) &&
           is_same_list(&a->times, &b->times);
}

/* Finds the next sample of the first profile that is not over, the leader, and equal ones of the others.  0, FP_MORE or
 * an error; r->rows.leader is r->n_chosen when all profiles are over. */
static int join_samples(struct fp_otlp_reader *r, struct fp_err *err) {
    r->rows.leader = r->n_chosen;
    for (uint32_t k = 0; k < r->n_chosen; k++) {
        struct fp_otlp_cursor *const c = &r->rows.cursors[k];
        const int status = find_sample(r, c, err);
        r->waiting = k;
        if (status) return status;
        const int found = c->state == FP_OTLP_FOUND;
        if (found && r->rows.leader == r->n_chosen) r->rows.leader = k;
        c->joined = found && (k == r->rows.leader || is_same(&r->rows.cursors[r->rows.leader].sample, &c->sample));
    }
    return 0;
}

/* Ends the samples that were joined.  Returns how many there were. */
static uint32_t end_samples(struct fp_otlp_reader *r) {
    uint32_t n = 0;
    for (uint32_t k = r->rows.leader; k < r->n_chosen; k++) {
        if (!r->rows.cursors[k].joined) continue;
        r->rows.cursors[k].state = FP_OTLP_WANTED;
        n++;
    }
    return n;
}

/* Looks up the stack and the labels of the samples that were joined.  0 or an error. */
static int begin_rows(struct fp_otlp_reader *r, struct fp_err *err) {
    const struct fp_otlp_cursor *const leader = &r->rows.cursors[r->rows.leader];
    struct fp_otlp_labels labels;
    int status = stack_of(r, &leader->sample, &r->rows.row_stack, err);
    if (!status) status = labels_of(r, &leader->sample, &labels, err);
    if (status) {
        if (!r->lenient) return status;
        r->stats.bad_samples += end_samples(r);
        return 0;
    }
    r->rows.row_label = labels.chain;
    r->rows.row_thread = labels.thread;
    r->rows.row = 0;
    r->rows.n_rows = leader->n_values;
    return 0;
}

/* Adds rows while there is room.  FP_FULL, 0 or an error. */
static int put_rows(struct fp_otlp_reader *r, struct fp_batch *out, struct fp_err *err) {
    const struct fp_otlp_sample *const s = &r->rows.cursors[r->rows.leader].sample;
    if (FP_UNLIKELY(r->tables.n_renewed != r->model->n_renewed)) { /* while the batch was drained */
        FP_TRY(stack_of(r, s, &r->rows.row_stack, err));
    }
    for (; r->rows.row < r->rows.n_rows; r->rows.row++) {
        if (out->n == out->cap) return FP_FULL;
        const uint32_t i = r->rows.row;
        const uint64_t time = s->times.p == s->times.end ? 0 : fp_u64(s->times.p + 8 * (size_t)i);
        const uint32_t row = fp_batch_sample(out, r->rows.row_stack, r->rows.row_thread, r->rows.row_label, time);
        for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + row] = 0;
        for (uint32_t k = r->rows.leader; k < r->n_chosen; k++) {
            const struct fp_otlp_cursor *const c = &r->rows.cursors[k];
            if (c->joined) out->values[(size_t)c->column * out->cap + row] = c->values[i];
        }
    }
    r->rows.n_rows = 0;
    r->stats.samples += end_samples(r);
    return 0;
}

int fp_otlp_feed(struct fp_otlp_reader *r, struct fp_batch *out, struct fp_err *err) {
    if (out->n_values != r->types.n - 1) fp_batch_set_values(out, r->types.n - 1);
    for (;;) {
        int status = r->rows.n_rows ? put_rows(r, out, err) : 0;
        if (!status) status = join_samples(r, err);
        if (status || r->rows.leader == r->n_chosen) return status;
        status = begin_rows(r, err);
        if (status) return status;
    }
}
