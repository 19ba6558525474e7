#include "perfetto/read_private.h"

int fp_perfetto_keep_stacks(struct fp_perfetto_read *r) {
    if (r->calls.stacks) return 0;
    struct fp_perfetto_stacks *t = r->calls.stacks = fp_have(calloc(1, sizeof *t));
    fp_strings_init(&t->messages);
    fp_key_sums_init(&r->call_stacks, 0);
    fp_key_sums_init(&r->chains, sizeof(struct fp_perfetto_node));
    fp_table_init(&t->symbols, 3);
    fp_table_init(&t->heap_keys, 6);
    return 0;
}

void fp_perfetto_stacks_free(struct fp_perfetto_stacks *t) {
    if (!t) return;
    fp_strings_clear(&t->messages);
    FP_CLEAR_TABLES(&t->symbols, &t->heap_keys);
    FP_FREE_BUFFERS(&t->path, &t->hex, &t->chain);
    FP_FREE(t->symbol_lines, t->heap_values, t);
}

/* A line number; 0 if it is too large. */
static uint32_t narrow(uint64_t line) {
    return line > UINT32_MAX ? 0 : (uint32_t)line;
}

/* ---- objects ---- */

/* A build id in hexadecimal, as a string of the model.  Some writers write hexadecimal digits, others bytes. */
static uint32_t build_id_of(struct fp_perfetto_read *r, const uint8_t *p, size_t n) {
    struct fp_buf *hex = &r->calls.stacks->hex;
    size_t digits = 0;
    while (digits < n && ((p[digits] >= '0' && p[digits] <= '9') || (p[digits] >= 'a' && p[digits] <= 'f'))) digits++;
    if (digits == n && n >= 16) return fp_strings_intern(&r->model->strings, p, n);
    hex->n = 0;
    if (n) fp_buf_hex(hex, p, n);
    return fp_strings_intern(&r->model->strings, hex->n ? (const void *)hex->p : "", hex->n);
}

/* Adds a component of a path. */
static void add_component(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, uint64_t iid) {
    enum { MOST = 1 << 14 };
    struct fp_buf *path = &r->calls.stacks->path;
    size_t n;
    const uint8_t *p = fp_string(&r->model->strings, fp_perfetto_id(&s->ids[FP_PK_PATH], iid), &n);
    if (!n || path->n + n > MOST) return;
    const int bare = !path->n && (*p == '/' || *p == '[');
    if (!bare) fp_buf_put(path, "/", 1);
    fp_buf_put(path, p, n);
}

/* The fields of an interned mapping. */
struct interned_mapping {
    uint64_t has, build_id, start_offset, start, limit, bias, exact_offset;
};
#define TO(member) FP_WIRE_TO(struct interned_mapping, member)
static const struct fp_wire_schema of_mapping = {
    "  VVVVVLV", {TO(has), [2] = TO(build_id), TO(start_offset), TO(start), TO(limit), TO(bias), 0, TO(exact_offset)}};
#undef TO

/* A kept message of interned data.  It stays valid until another one is kept. */
static struct fp_wire kept(const struct fp_perfetto_read *r, uint32_t message) {
    size_t n;
    const uint8_t *p = fp_string(&r->calls.stacks->messages, message, &n);
    return (struct fp_wire){p, p + n};
}

/* The model's mapping of an interned one, and its build id.  Addresses of frames are those of the object's symbols, so
 * the mapping starts where its bytes are mapped in the object: at its offset plus the load bias.  0 or FP_E_MALFORMED.
 */
static int mapping_of(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, uint64_t iid, uint32_t *mapping,
                      uint32_t *object, uint32_t *build_id) {
    const uint32_t message = fp_perfetto_id(&s->ids[FP_PK_MAPPING], iid);
    struct interned_mapping f = {0};
    uint64_t id;
    int more;
    size_t n;
    *mapping = *object = *build_id = 0;
    if (!message) return 0;
    r->calls.stacks->path.n = 0;
    struct fp_wire_list path_ids = fp_wire_list_of(kept(r, message), &of_mapping, 7);
    while ((more = fp_wire_list_next(&path_ids, &id)) > 0) add_component(r, s, id);
    if (more || fp_perfetto_fields(kept(r, message), &of_mapping, &f)) return FP_E_MALFORMED;
    const struct fp_buf *path = &r->calls.stacks->path;
    const uint64_t offset = f.exact_offset ? f.exact_offset : f.start_offset, from = offset + f.bias;
    const uint64_t nbytes = f.limit > f.start ? f.limit - f.start : UINT64_MAX;
    if (f.has >> 2 & 1) *build_id = fp_perfetto_id(&s->ids[FP_PK_BUILD_ID], f.build_id);
    const uint8_t *bytes = fp_string(&r->model->strings, *build_id, &n);
    if (*build_id) *build_id = build_id_of(r, bytes, n);
    const uint32_t name = fp_perfetto_text(r, (struct fp_wire){path->p, path->p + path->n});
    if (!name && !*build_id) return 0;
    *object = fp_model_object(r->model, name, *build_id);
    *mapping =
        fp_model_mapping(r->model, *object, from, nbytes < UINT64_MAX - from ? from + nbytes : UINT64_MAX, offset, 0);
    return 0;
}

/* ---- frames and stacks ---- */

/* The fields of an interned frame. */
struct interned_frame {
    uint64_t name, mapping, pc, source, line;
};

#define TO(member) FP_WIRE_TO(struct interned_frame, member)
static const struct fp_wire_schema of_frame = {"  VVVVV", {[2] = TO(name), TO(mapping), TO(pc), TO(source), TO(line)}};
#undef TO
static const struct fp_wire_schema of_stack = {.kinds = "  L"};

/* The model's frame of a function given by name. */
static uint32_t named_frame(struct fp_perfetto_read *r, uint32_t mapping, uint64_t pc, uint32_t object, uint32_t file,
                            uint32_t name, uint32_t line) {
    const uint32_t function = fp_model_function(r->model, object, file, name, 0, 0);
    const uint32_t lines = fp_model_line(r->model, function, line, 0, 0);
    return fp_model_frame(r->model, mapping, pc, 0, lines);
}

/* The model's frame for an interned one: from its symbols in the trace, its name, or its address.  Unknown frames are
 * [unknown].  0 or FP_E_MALFORMED. */
static int frame_of(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, uint64_t iid, uint32_t *frame) {
    struct fp_model *model = r->model;
    const uint32_t message = fp_perfetto_id(&s->ids[FP_PK_FRAME], iid);
    uint32_t mapping = 0, object = 0, build_id = 0, name = 0;
    struct interned_frame f = {0};
    if ((*frame = fp_perfetto_id(&s->ids[FP_PK_FRAMES], iid))) return 0;
    if (message) {
        if (fp_perfetto_fields(kept(r, message), &of_frame, &f)) return FP_E_MALFORMED;
        FP_TRY(mapping_of(r, s, f.mapping, &mapping, &object, &build_id));
        name = fp_perfetto_id(&s->ids[FP_PK_FUNCTION], f.name);
    }
    const uint32_t key[3] = {build_id, FP_WORDS(f.pc)};
    const uint32_t symbol = build_id ? fp_table_find(&r->calls.stacks->symbols, key) : 0;
    if (symbol) {
        *frame = fp_model_frame(model, mapping, f.pc, 0, r->calls.stacks->symbol_lines[symbol]);
    } else if (name || (!mapping && !f.pc)) {
        const uint32_t file = fp_perfetto_id(&s->ids[FP_PK_SOURCE], f.source);
        if (!name) name = fp_strings_intern(&model->strings, "[unknown]", 9);
        *frame = named_frame(r, mapping, f.pc, object, file, name, narrow(f.line));
    } else {
        *frame = fp_model_frame(model, mapping, f.pc, 0, 0);
    }
    if (message) fp_perfetto_set_id(&s->ids[FP_PK_FRAMES], iid, *frame);
    return 0;
}

int fp_perfetto_chain_of(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, uint64_t iid, uint32_t *chain) {
    struct fp_perfetto_stacks *t = r->calls.stacks;
    const uint32_t message = fp_perfetto_id(&s->ids[FP_PK_CALLSTACK], iid);
    uint32_t frame;
    uint64_t id;
    size_t n;
    int more;
    *chain = 0;
    if (!message) return 0;
    if ((*chain = fp_perfetto_id(&s->ids[FP_PK_CHAINS], iid))) return 1;
    const uint8_t *p = fp_string(&r->call_stacks.keys, message, &n);
    struct fp_wire_list ids = fp_wire_list_of((struct fp_wire){p, p + n}, &of_stack, 2);
    t->chain.n = 0;
    while ((more = fp_wire_list_next(&ids, &id)) > 0) {
        FP_TRY(frame_of(r, s, id, &frame));
        uint8_t code[10];
        fp_buf_put(&t->chain, code, (size_t)(fp_varint(code, frame) - code));
    }
    if (more) return FP_E_MALFORMED;
    r->counts[FP_PERFETTO_N_EMPTY_STACKS] += !t->chain.n;
    if (!t->chain.n) return 1;
    *chain = fp_key_sums_key(&r->chains, t->chain.p, t->chain.n, fp_strings_hash(t->chain.p, t->chain.n));
    fp_perfetto_set_id(&s->ids[FP_PK_CHAINS], iid, *chain);
    return 1;
}

uint32_t fp_perfetto_stack(struct fp_perfetto_read *r, uint32_t chain) {
    struct fp_perfetto_node *const known = fp_key_record(&r->chains, chain);
    uint32_t node = 0;
    uint64_t frame;
    size_t n;
    if (known->node && known->n_renewed == r->model->n_renewed) return known->node - 1;
    const uint8_t *p = fp_string(&r->chains.keys, chain, &n);
    for (const uint8_t *const end = p + n; p < end; node = fp_model_stack(r->model, node, (uint32_t)frame))
        p = fp_varint_read(p, &frame);
    *known = (struct fp_perfetto_node){node + 1, r->model->n_renewed};
    return node;
}

/* ---- symbols ---- */

struct line_fields {
    struct fp_wire name, file;
    uint64_t line;
};
struct module_fields {
    struct fp_wire path, id;
};
#define LINE(member) FP_WIRE_TO(struct line_fields, member)
static const struct fp_wire_schema of_line = {" BBV", {0, LINE(name), LINE(file), LINE(line)}};
static const struct fp_wire_schema of_address = {" VB", {0, FP_WIRE_ONLY}};
static const struct fp_wire_schema of_module = {
    " BBB", {0, FP_WIRE_TO(struct module_fields, path), FP_WIRE_TO(struct module_fields, id)}};

/* The lines of an address, innermost first, as a line chain of the model. */
static int take_lines(struct fp_perfetto_read *r, uint32_t object, struct fp_wire m, uint64_t *address,
                      uint32_t *lines) {
    enum { MOST_INLINED = 256 };
    struct fp_wire found[MOST_INLINED];
    struct fp_wire_field f;
    uint32_t n = 0;
    int status;
    *address = 0;
    *lines = 0;
    while ((status = fp_wire_read(&m, &of_address, address, &f, NULL)) > 0)
        if (n < MOST_INLINED) found[n++] = fp_wire_inside(&f);
    if (status) return FP_E_MALFORMED;
    while (n--) {
        struct line_fields l = {0};
        if (fp_perfetto_fields(found[n], &of_line, &l)) return FP_E_MALFORMED;
        const uint32_t path = fp_perfetto_text(r, l.file), text = fp_perfetto_text(r, l.name);
        if (!text) continue;
        const uint32_t function = fp_model_function(r->model, object, path, text, 0, 0);
        *lines = fp_model_line(r->model, function, narrow(l.line), 0, *lines);
    }
    return 0;
}

int fp_perfetto_symbols(struct fp_perfetto_read *r, struct fp_wire message) {
    struct fp_perfetto_stacks *t = r->calls.stacks;
    struct module_fields m = {0};
    struct fp_wire part;
    uint64_t address;
    uint32_t lines;
    if (fp_perfetto_fields(message, &of_module, &m)) return FP_E_MALFORMED;
    const uint32_t build_id = m.id.p == m.id.end ? 0 : build_id_of(r, m.id.p, (size_t)(m.id.end - m.id.p));
    const uint32_t name = fp_perfetto_text(r, m.path);
    const uint32_t object = fp_model_object(r->model, name, build_id);
    while (build_id && fp_perfetto_part(&message, 3, &part)) {
        FP_TRY(take_lines(r, object, part, &address, &lines));
        if (!lines) continue;
        const uint32_t key[3] = {build_id, FP_WORDS(address)};
        const uint32_t row = fp_table_intern(&t->symbols, key);
        *FP_AT(t->symbol_lines, t->cap_symbols, row) = lines;
    }
    return 0;
}
