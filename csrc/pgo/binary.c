#include "pgo/binary.h"

#include "pgo/rows.h"

static const uint64_t MAGIC = 0x5350524f463432ff; /* "SPROF42" and the format */
enum { OLDEST = 103, NEWEST = 104, BAD = -1000 };

enum fp_pgo_phase {
    IN_MAGIC,
    IN_SUMMARY,
    IN_CUTOFFS,
    AT_NAMES,
    IN_NAMES,
    AT_MD5,
    IN_MD5,
    AT_FIXED,
    IN_FIXED,
    AT_END, /* of a table of extbinary */
    AT_CONTEXTS,
    AT_CONTEXT,
    IN_CONTEXT,
    AT_FUNCTION,
    IN_BODY, /* records; inlined levels and types follow */
    IN_TARGETS,
    AT_INLINED,
    IN_INLINED,
    AT_TABLES,
    IN_TABLES,
    IN_TYPES
};

struct fp_pgo_frame {
    uint32_t name, offset, discriminator;
};

/* What is left of a level. */
struct fp_pgo_open {
    uint64_t records, inlined, tables;
};

struct bytes {
    const uint8_t *p, *end;
    int status; /* FP_WIRE_CUT + 1: fine */
};

struct fp_pgo_binary *fp_pgo_binary_new(struct fp_model *model, int lenient) {
    struct fp_pgo_binary *b = fp_made(sizeof *b);
    b->rows = fp_have(calloc(1, sizeof *b->rows));
    b->rows->model = model;
    b->rows->lenient = lenient;
    fp_pgo_binary_begin(b, FP_PGO_WHOLE);
    return b;
}

void fp_pgo_binary_free(struct fp_pgo_binary *b) {
    fp_pgo_reader_free(b->rows);
    FP_FREE(b->names, b->frames, b->ends, b->open, b);
}

void fp_pgo_binary_begin(struct fp_pgo_binary *b, int section) {
    static const int32_t phases[] = {IN_MAGIC, AT_NAMES, AT_MD5, AT_FIXED, AT_CONTEXTS, AT_FUNCTION};
    b->phase = phases[section];
    b->after_table = section == FP_PGO_WHOLE ? AT_FUNCTION : AT_END;
    b->rows->n_levels = 0;
    b->left = 0;
}

/* A number up to `most`; 0 after a failure. */
static uint64_t number(struct fp_pgo_binary *b, struct bytes *in, uint64_t most, const char *what) {
    uint64_t value = 0;
    if (in->status != FP_MORE) return 0;
    const int used = fp_wire_read_varint(in->p, in->end, &value);
    if (used <= 0 || value > most) {
        b->what = what;
        b->want = most == INT64_MAX ? "a number below 2^63" : most == UINT32_MAX ? "a number below 2^32" : "a number";
        in->status = used == FP_WIRE_CUT ? FP_E_TRUNCATED : BAD;
        return 0;
    }
    in->p += used;
    return value;
}

static int bad(struct fp_pgo_binary *b, const char *what, const char *want) {
    b->what = what;
    b->want = want;
    return BAD;
}

/* The function of an index of the names. */
static uint32_t function_at(struct fp_pgo_binary *b, struct bytes *in) {
    const uint64_t index = number(b, in, UINT64_MAX, "the index of a name");
    if (in->status == FP_MORE && index >= b->n_names) in->status = bad(b, "the index of a name", "one in the table");
    return in->status == FP_MORE ? fp_pgo_function_of(b->rows, b->names[index]) : 0;
}

static void add_name(struct fp_pgo_binary *b, const void *text, size_t n) {
    FP_PUSH(b->names, b->n_names, b->cap_names) = fp_strings_intern(&b->rows->model->strings, text, n);
}

static void add_number(struct fp_pgo_binary *b, uint64_t value) {
    char text[20];
    size_t at = sizeof text;
    do text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    add_name(b, text + at, sizeof text - at);
}

/* ---- header ---- */

static int magic(struct fp_pgo_binary *b, struct bytes *in) {
    const uint64_t found = number(b, in, UINT64_MAX, "the magic number");
    const uint64_t version = number(b, in, UINT64_MAX, "the version");
    if (in->status != FP_MORE) return in->status;
    if (found != MAGIC) return bad(b, "the magic number", "that of a binary profile");
    if (version < OLDEST || version > NEWEST) {
        b->what = "the version";
        b->want = "103 or 104";
        return FP_E_VERSION;
    }
    b->phase = IN_SUMMARY;
    return FP_MORE;
}

static int summary(struct fp_pgo_binary *b, struct bytes *in) {
    for (int k = 0; k < 5; k++) number(b, in, UINT64_MAX, "a number of the summary");
    b->left = number(b, in, UINT32_MAX, "the number of rows of the summary");
    b->phase = IN_CUTOFFS;
    return in->status;
}

static int cutoff(struct fp_pgo_binary *b, struct bytes *in) {
    if (!b->left) {
        b->phase = AT_NAMES;
        return FP_MORE;
    }
    for (int k = 0; k < 3; k++) number(b, in, UINT64_MAX, "a number of the summary");
    b->left -= in->status == FP_MORE;
    return in->status;
}

/* ---- tables ---- */

static int names(struct fp_pgo_binary *b, struct bytes *in) {
    if (b->phase == AT_NAMES || b->phase == AT_MD5 || b->phase == AT_FIXED) {
        b->left = number(b, in, UINT32_MAX - 1, "the number of names");
        b->n_names = 0;
        b->phase += in->status == FP_MORE;
        return in->status;
    }
    if (!b->left) {
        b->phase = b->after_table;
        return FP_MORE;
    }
    if (b->phase == IN_MD5) {
        const uint64_t value = number(b, in, UINT64_MAX, "a name");
        if (in->status == FP_MORE) add_number(b, value);
    } else if (b->phase == IN_FIXED) {
        uint64_t value = 0;
        if (in->end - in->p < 8) return bad(b, "a name", "8 bytes"), FP_E_TRUNCATED;
        for (int k = 7; k >= 0; k--) value = value << 8 | in->p[k];
        in->p += 8;
        add_number(b, value);
    } else {
        const uint8_t *end = memchr(in->p, 0, (size_t)(in->end - in->p));
        if (!end) return bad(b, "a name", "a zero byte"), FP_E_TRUNCATED;
        add_name(b, in->p, (size_t)(end - in->p));
        in->p = end + 1;
    }
    b->left -= in->status == FP_MORE;
    return in->status;
}

static int contexts(struct fp_pgo_binary *b, struct bytes *in) {
    if (b->phase == AT_CONTEXTS) {
        b->left = number(b, in, UINT32_MAX - 1, "the number of contexts");
        b->n_contexts = b->n_frames = 0;
        b->phase = AT_CONTEXT;
        return in->status;
    }
    if (b->phase == AT_CONTEXT) {
        if (!b->left) {
            b->phase = AT_END;
            return FP_MORE;
        }
        b->of_entry = number(b, in, UINT32_MAX, "the depth of a context");
        if (in->status != FP_MORE) return in->status;
        if (!b->of_entry || b->of_entry > FP_PGO_MOST_LEVELS) return bad(b, "the depth of a context", "1 to 4096");
        b->phase = IN_CONTEXT;
        return FP_MORE;
    }
    const uint64_t name = number(b, in, UINT64_MAX, "the index of a name");
    const uint64_t offset = number(b, in, UINT32_MAX, "the offset of a line");
    const uint64_t discriminator = number(b, in, UINT32_MAX, "a discriminator");
    if (in->status != FP_MORE) return in->status;
    if (name >= b->n_names) return bad(b, "the index of a name", "one in the table");
    FP_PUSH(b->frames, b->n_frames, b->cap_frames) =
        (struct fp_pgo_frame){b->names[name], (uint32_t)offset, (uint32_t)discriminator};
    if (--b->of_entry) return FP_MORE;
    FP_PUSH(b->ends, b->n_contexts, b->cap_contexts) = b->n_frames;
    b->left--;
    b->phase = AT_CONTEXT;
    return FP_MORE;
}

/* ---- functions ---- */

static struct fp_pgo_open *top(struct fp_pgo_binary *b) {
    return &b->open[b->rows->n_levels - 1];
}

static void open_level(struct fp_pgo_binary *b, uint32_t depth, uint32_t caller, uint32_t function, uint64_t records) {
    fp_array_room(&b->open, &b->cap_open, (uint64_t)depth + 1, sizeof *b->open);
    fp_pgo_open_level(b->rows, depth, caller, function);
    *top(b) = (struct fp_pgo_open){records, 0, 0};
}

/* The levels of the callers of a context.  Returns their number; *function gets the innermost function. */
static uint32_t open_context(struct fp_pgo_binary *b, uint64_t context, uint32_t *caller, uint32_t *function) {
    struct fp_pgo_reader *r = b->rows;
    const uint32_t first = context ? b->ends[context - 1] : 0, end = b->ends[context];
    uint32_t depth = 0;
    b->depths += end - first;
    *caller = 0;
    for (uint32_t k = first; k < end; k++) {
        const struct fp_pgo_frame *f = &b->frames[k];
        *function = fp_pgo_function_of(r, f->name);
        if (k + 1 == end) break;
        open_level(b, depth++, *caller, *function, 0);
        *caller = fp_pgo_frame_at(r, *function, f->offset, f->discriminator);
    }
    return depth;
}

/* Whether the levels of this context may be opened.  A context of a few KB in each of many functions would take time
 * that is not in proportion to the input; LLVM writes one function for a context. */
static int is_affordable(const struct fp_pgo_binary *b, uint64_t context) {
    const uint32_t depth = b->ends[context] - (context ? b->ends[context - 1] : 0);
    return b->depths + depth <= 16 * (uint64_t)b->n_frames + (1 << 20);
}

static int function(struct fp_pgo_binary *b, struct bytes *in, struct fp_batch *out) {
    struct fp_pgo_reader *r = b->rows;
    uint32_t depth = 0, caller = 0, id = 0;
    const uint64_t calls = number(b, in, INT64_MAX, "the calls of a function");
    uint64_t context = 0;
    if (b->has_contexts) {
        context = number(b, in, UINT64_MAX, "the index of a context");
        if (in->status == FP_MORE && context >= b->n_contexts)
            return bad(b, "the index of a context", "one in the table");
        if (in->status == FP_MORE && !is_affordable(b, context))
            return bad(b, "the sum of the depths of contexts", "at most 16 times that of the table");
    } else {
        id = function_at(b, in);
    }
    number(b, in, UINT64_MAX, "the total of a function");
    const uint64_t records = number(b, in, UINT32_MAX, "the number of counts");
    if (in->status != FP_MORE) return in->status;
    if (calls && out->n == out->cap) return FP_FULL;
    if (b->has_contexts) depth = open_context(b, context, &caller, &id);
    open_level(b, depth, caller, id, records);
    r->base = r->n_levels;
    if (calls) fp_pgo_add_row(r, depth + 1, fp_pgo_frame_at(r, id, 0, 0), 0, FP_PGO_ENTRIES, calls, out);
    r->functions++;
    b->phase = IN_BODY;
    return FP_MORE;
}

static int record(struct fp_pgo_binary *b, struct bytes *in, struct fp_batch *out) {
    struct fp_pgo_reader *r = b->rows;
    struct fp_pgo_open *level = top(b);
    if (!level->records) {
        b->phase = AT_INLINED;
        return FP_MORE;
    }
    const uint64_t offset = number(b, in, UINT32_MAX, "the offset of a line");
    const uint64_t discriminator = number(b, in, UINT32_MAX, "a discriminator");
    const uint64_t count = number(b, in, INT64_MAX, "a count");
    const uint64_t targets = number(b, in, UINT32_MAX, "the number of targets");
    if (in->status != FP_MORE) return in->status;
    if (out->n == out->cap) return FP_FULL;
    b->frame = fp_pgo_frame_at(r, r->levels[r->n_levels - 1].function, offset, discriminator);
    fp_pgo_add_row(r, r->n_levels, b->frame, 0, FP_PGO_SAMPLES, count, out);
    level->records--;
    b->of_entry = targets;
    b->phase = IN_TARGETS;
    return FP_MORE;
}

static int target(struct fp_pgo_binary *b, struct bytes *in, struct fp_batch *out) {
    struct fp_pgo_reader *r = b->rows;
    if (!b->of_entry) {
        b->phase = IN_BODY;
        return FP_MORE;
    }
    const uint32_t id = function_at(b, in);
    const uint64_t calls = number(b, in, INT64_MAX, "the calls of a target");
    if (in->status != FP_MORE) return in->status;
    if (out->n == out->cap) return FP_FULL;
    fp_pgo_add_row(r, r->n_levels, b->frame, fp_pgo_frame_at(r, id, 0, 0), FP_PGO_CALLS, calls, out);
    b->of_entry--;
    return FP_MORE;
}

/* A level is complete. */
static void close_level(struct fp_pgo_binary *b) {
    struct fp_pgo_reader *r = b->rows;
    if (r->n_levels-- > r->base) {
        b->phase = IN_INLINED;
        return;
    }
    r->n_levels = 0;
    b->phase = AT_FUNCTION;
}

static int inlined(struct fp_pgo_binary *b, struct bytes *in) {
    struct fp_pgo_reader *r = b->rows;
    if (b->phase == AT_INLINED) {
        top(b)->inlined = number(b, in, UINT32_MAX, "the number of inlined functions");
        b->phase = IN_INLINED;
        return in->status;
    }
    if (!top(b)->inlined) {
        if (b->has_tables)
            b->phase = AT_TABLES;
        else
            close_level(b);
        return FP_MORE;
    }
    const uint64_t offset = number(b, in, UINT32_MAX, "the offset of a line");
    const uint64_t discriminator = number(b, in, UINT32_MAX, "a discriminator");
    const uint32_t id = function_at(b, in);
    number(b, in, UINT64_MAX, "the total of a function");
    const uint64_t records = number(b, in, UINT32_MAX, "the number of counts");
    if (in->status != FP_MORE) return in->status;
    if (r->n_levels >= FP_PGO_MOST_LEVELS) return bad(b, "the depth of inlined functions", "at most 4096");
    top(b)->inlined--;
    const uint32_t caller = fp_pgo_frame_at(r, r->levels[r->n_levels - 1].function, offset, discriminator);
    open_level(b, r->n_levels, caller, id, records);
    b->phase = IN_BODY;
    return FP_MORE;
}

static int tables(struct fp_pgo_binary *b, struct bytes *in) {
    if (b->phase == AT_TABLES) {
        top(b)->tables = number(b, in, UINT32_MAX, "the number of places with virtual tables");
        b->phase = IN_TABLES;
        return in->status;
    }
    if (b->phase == IN_TABLES) {
        if (!top(b)->tables) {
            close_level(b);
            return FP_MORE;
        }
        number(b, in, UINT32_MAX, "the offset of a line");
        number(b, in, UINT32_MAX, "a discriminator");
        b->of_entry = number(b, in, UINT32_MAX, "the number of types");
        if (in->status != FP_MORE) return in->status;
        top(b)->tables--;
        b->phase = IN_TYPES;
        return FP_MORE;
    }
    if (!b->of_entry) {
        b->phase = IN_TABLES;
        return FP_MORE;
    }
    function_at(b, in);
    number(b, in, UINT64_MAX, "the count of a type");
    if (in->status != FP_MORE) return in->status;
    b->types++;
    b->of_entry--;
    return FP_MORE;
}

/* The next entry: FP_MORE, FP_FULL or an error; FP_E_TRUNCATED if the window ends within it. */
static int step(struct fp_pgo_binary *b, struct bytes *in, struct fp_batch *out) {
    switch (b->phase) {
        case IN_MAGIC: return magic(b, in);
        case IN_SUMMARY: return summary(b, in);
        case IN_CUTOFFS: return cutoff(b, in);
        case AT_END: return bad(b, "the rest of a table", "its end");
        case AT_CONTEXTS:
        case AT_CONTEXT:
        case IN_CONTEXT: return contexts(b, in);
        case AT_FUNCTION: return function(b, in, out);
        case IN_BODY: return record(b, in, out);
        case IN_TARGETS: return target(b, in, out);
        case AT_INLINED:
        case IN_INLINED: return inlined(b, in);
        case AT_TABLES:
        case IN_TABLES:
        case IN_TYPES: return tables(b, in);
        default: return names(b, in);
    }
}

int fp_pgo_binary_feed(struct fp_pgo_binary *b, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    fp_pgo_begin_rows(b->rows);
    if (b->is_damaged) {
        in->pos = in->n;
        return in->eof ? FP_DONE : FP_MORE;
    }
    for (;;) {
        struct bytes t = {in->p + in->pos, in->p + in->n, FP_MORE};
        const int32_t before = b->phase;
        if ((before == AT_FUNCTION || before == AT_END) && t.p == t.end) return in->eof ? FP_DONE : FP_MORE;
        const int status = step(b, &t, out);
        if (status == FP_FULL) return status;
        if (status == FP_MORE) {
            in->pos = (size_t)(t.p - in->p);
            continue;
        }
        b->phase = before;
        if (status == FP_E_TRUNCATED && !in->eof) return FP_MORE;
        if (b->rows->lenient && status != FP_E_VERSION) {
            b->bad_end++;
            b->is_damaged = 1;
            in->pos = in->n;
            return in->eof ? FP_DONE : FP_MORE;
        }
        fp_fail(err, status == BAD ? FP_E_MALFORMED : status, in->base + in->pos, b->what);
        err->want = b->want;
        return err->code;
    }
}
