/* Shared by the files of the JFR decoder.  C only. */
#pragma once

#include "jfr/read.h"
#include "jfr/words.h"

/* ---- numbers ---- */

/* Reads a varint; its end, or NULL if that is after `end`.
 *
 *   05                             5
 *   ac 02                          0x2c + (2 << 7) = 300
 *   ff ff ff ff ff ff ff ff ff     2^64 - 1: the 9th byte has 8 bits
 */
static inline const uint8_t *fp_jfr_varint(const uint8_t *p, const uint8_t *end, uint64_t *v) {
    if (FP_UNLIKELY(p >= end)) return NULL;
    uint64_t byte = *p++, found = byte & 127;
    for (unsigned shift = 7; byte & 128; shift += 7) {
        if (FP_UNLIKELY(p >= end)) return NULL;
        byte = *p++;
        if (shift == 56) {
            found |= byte << 56;
            break;
        }
        found |= (byte & 127) << shift;
    }
    *v = found;
    return p;
}

enum { FP_JFR_LONGEST = 9 }; /* bytes of a varint */

/* The lowest bit of this is the end of the first varint of 8 bytes; 0: it has 9. */
static inline uint64_t fp_jfr_stops(uint64_t bytes) {
    return ~bytes & UINT64_C(0x8080808080808080);
}

/* fp_jfr_varint without a loop, where 9 bytes can be read.
 *
 *   ac 02 07 ..    the first stop is in the 2nd byte: ac 02
 *   2c 02          the groups of 7 bits are joined to 14, to 28 and to 56 bits: 300
 */
static inline __attribute__((always_inline)) const uint8_t *fp_jfr_varint_by(uint64_t (*join)(uint64_t),
                                                                             const uint8_t *p, uint64_t *v) {
    const uint64_t bytes = fp_u64(p), stops = fp_jfr_stops(bytes);
    *v = join(bytes & (stops ^ (stops - 1))); /* all of them, if there is no stop */
    if (FP_LIKELY(stops != 0)) return p + (__builtin_ctzll(stops) >> 3) + 1;
    *v |= (uint64_t)p[8] << 56;
    return p + FP_JFR_LONGEST;
}

static inline uint64_t fp_jfr_join(uint64_t groups) {
    groups = (groups & UINT64_C(0x007f007f007f007f)) | (groups & UINT64_C(0x7f007f007f007f00)) >> 1;
    groups = (groups & UINT64_C(0x00003fff00003fff)) | (groups & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (groups & UINT64_C(0x000000000fffffff)) | (groups & UINT64_C(0x0fffffff00000000)) >> 4;
}

static inline const uint8_t *fp_jfr_varint_of_9(const uint8_t *p, uint64_t *v) {
    return fp_jfr_varint_by(fp_jfr_join, p, v);
}

/* The same for numbers of one or two bytes, but of a file that are alike: the processor foresees their length. */
static inline const uint8_t *fp_jfr_short_of_9(const uint8_t *p, uint64_t *v) {
    if (FP_LIKELY(p[0] < 128)) {
        *v = p[0];
        return p + 1;
    }
    if (FP_LIKELY(p[1] < 128)) {
        *v = (p[0] & 127u) | (uint32_t)p[1] << 7;
        return p + 2;
    }
    return fp_jfr_varint_of_9(p, v);
}

/* The end of n varints, or NULL. */
const uint8_t *fp_jfr_skip_many(const uint8_t *p, const uint8_t *end, uint64_t n);

static inline const uint8_t *fp_jfr_skip_varints(const uint8_t *p, const uint8_t *end, uint64_t n) {
    if (n > 8) return fp_jfr_skip_many(p, end, n);
    while (n--) {
        const uint8_t *start = p;
        do
            if (FP_UNLIKELY(p >= end)) return NULL;
        while (*p++ & 128 && p - start < 9);
    }
    return p;
}

/* Reads a number: a varint, or `width` big-endian bytes if numbers are not compressed. */
static inline const uint8_t *fp_jfr_number(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                           unsigned width, uint64_t *v) {
    if (FP_LIKELY(r->chunk.compressed)) return fp_jfr_varint(p, end, v);
    if ((size_t)(end - p) < width) return NULL;
    for (*v = 0; width; width--) *v = *v << 8 | *p++;
    return p;
}

/* ---- records ---- */

struct fp_jfr_record {
    uint64_t at, size, type;   /* `at`: in the input */
    const uint8_t *body, *end; /* `end` may be beyond the window */
};

/* Reads the head of the record at the window's position.  0; FP_MORE if the window lacks part of it; FP_E_* if it is
 * not a record or ends past the range. */
int fp_jfr_head(const struct fp_jfr_reader *r, const struct fp_window *in, struct fp_jfr_record *record,
                struct fp_err *err);

/* Skips records up to one that becomes a row, which is then whole in the window.  FP_FULL: one of type `*type`;
 * FP_MORE, FP_DONE, or FP_E_*. */
int fp_jfr_next(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_record *record, uint32_t *type,
                struct fp_err *err);

/* Passes over the record that was begun.  FP_MORE, or 0: a record begins at the position, or the range ends. */
static inline int fp_jfr_skipped(struct fp_jfr_reader *r, struct fp_window *in) {
    const uint64_t there = in->n - in->pos, n = r->skip < there ? r->skip : there;
    in->pos += (size_t)n;
    r->skip -= n;
    return r->skip && !in->eof ? FP_MORE : 0;
}

/* The error of a record that the input truncates. */
int fp_jfr_cut(const struct fp_jfr_record *record, struct fp_err *err);

/* ---- the metadata ---- */

/* Adds the words to `names`. */
void fp_jfr_add_words(struct fp_strings *names);

enum fp_jfr_primitive {
    FP_JFR_STRUCT = 0,
    FP_JFR_BOOLEAN,
    FP_JFR_BYTE,
    FP_JFR_SHORT,
    FP_JFR_CHAR,
    FP_JFR_INT,
    FP_JFR_LONG,
    FP_JFR_FLOAT,
    FP_JFR_DOUBLE,
    FP_JFR_STRING
};

enum fp_jfr_unit {
    FP_JFR_NO_UNIT = 0,
    FP_JFR_TICKS,
    FP_JFR_NANOSECONDS,
    FP_JFR_MICROSECONDS,
    FP_JFR_MILLISECONDS,
    FP_JFR_SECONDS
};

/* What the constants of a type are.  A type gets its role from the fields that refer to it. */
enum fp_jfr_role {
    FP_JFR_NO_ROLE = 0,
    FP_JFR_STACK,
    FP_JFR_FRAME,
    FP_JFR_METHOD,
    FP_JFR_CLASS,
    FP_JFR_THREAD,
    FP_JFR_TEXT, /* a string, or a struct whose first field is a text */
    FP_JFR_ROLES
};

struct fp_jfr_type {
    uint64_t id, count; /* `count`: events in the chunk */
    uint32_t name, super;
    uint32_t field, n_fields; /* the first of them */
    uint32_t program;         /* + 1; 0: not compiled */
    uint32_t pool;            /* + 1; 0: its constants are not kept */
    uint32_t event;           /* enum fp_jfr_event; 0: not read */
    uint32_t fact;            /* enum fp_jfr_fact_kind + 1 */
    uint32_t counted;         /* in `counted` */
    uint8_t role, primitive;
    uint8_t is_span;    /* an event with a duration, for timelines */
    uint8_t is_instant; /* an event of a thread without a duration, for timelines */
    uint8_t counter;    /* in fp_jfr_counters + 1: values, for timelines; 0: none */
    uint8_t is_shown;   /* read as samples: an instant or values, which a timeline has */
    uint8_t is_lasting; /* a sample with a duration */
    uint8_t is_row;     /* an event that becomes a row: a sample, or a span, instant or values of a timeline */
    uint8_t is_bad;     /* lenient: an event with a field of an unexpected type */
};

struct fp_jfr_field {
    uint64_t type_id;
    uint32_t name, type; /* `type`: 0 if it is not described */
    uint8_t pooled, array, unit;
};

/* An annotation of a field, kept until all types are known. */
struct fp_jfr_note {
    uint64_t type_id;
    uint32_t field, value;
};

/* ---- programs ---- */

enum fp_jfr_code {
    FP_JFR_OP_VARINTS,       /* skip n varints */
    FP_JFR_OP_BYTES,         /* skip n bytes */
    FP_JFR_OP_TEXT,          /* skip a string */
    FP_JFR_OP_ARRAY_VARINTS, /* a count; skip that many times n varints */
    FP_JFR_OP_ARRAY_BYTES,
    FP_JFR_OP_ARRAY, /* a count; the following n operations that many times */
    /* these read a value into `slot` */
    FP_JFR_OP_GET_INT, /* a signed number, `width` bytes if not compressed */
    FP_JFR_OP_GET_CHAR,
    FP_JFR_OP_GET_BYTE,
    FP_JFR_OP_GET_FLOAT,
    FP_JFR_OP_GET_DOUBLE,
    FP_JFR_OP_GET_TEXT,
    FP_JFR_OP_GET_KEY,   /* the key of a constant of type n */
    FP_JFR_OP_MARK,      /* a value of type n begins here; operations that skip it
                            follow */
    FP_JFR_OP_MARK_ARRAY /* the count of an array of type n begins here; of keys
                            if width is 1 */
};

struct fp_jfr_op {
    uint8_t code, slot, width, unit;
    uint32_t n;
};

struct fp_jfr_pool;

/* Varints of an event, counted from 0: those of a field or of several.  If both are the same, there is no such field.
 */
struct fp_jfr_varints {
    uint32_t from, to;
};

enum { FP_JFR_KEYS = 4 };

/* The varints of a usual event with nothing else.  The first one is its time; those of its stack, thread, state and
 * class follow each other:
 *
 *   a0 8d 06 | 07 | ac 02 | 05 | 18      keys 1 to 4, value 4 to 5
 */
struct fp_jfr_shape {
    struct fp_jfr_varints keys, value, key[FP_JFR_KEYS]; /* `key`: thread, stack, state, class */
    uint32_t n;                                          /* varints; 0: events are not like that */
    uint32_t has_value, unused_bits;                     /* of the value, of 64 */
    uint32_t number;                                     /* of this type in this chunk */
};

struct fp_jfr_program {
    uint32_t op, n_ops;
    uint32_t n_until_set; /* operations up to the last one that sets a slot */
    uint32_t most;        /* bytes of a value, if it is plain */
    uint32_t slots;       /* + 1: in the reader's `slots`; 0: none yet.  Of an event that is plain */
    uint32_t varints;     /* their number, if there is nothing else */
    int32_t is_plain;     /* only compressed numbers and bytes: fp_jfr_prefetch */
    int32_t has_keys;     /* whether thread, state and class are keys or absent */
    /* of an event that was decoded ahead */
    uint32_t epoch;             /* the chunk's that the following were set for */
    int32_t is_usual;           /* a time, one sample each, a stack that is a constant, a value without a unit */
    struct fp_jfr_pool *stacks; /* NULL: none */
    struct fp_jfr_shape shape;
    int32_t is_bad; /* it cannot be compiled; `what`: why */
    const char *what;
    uint64_t got;
};

enum fp_jfr_slot_kind {
    FP_JFR_ABSENT = 0,
    FP_JFR_IS_NUMBER,
    FP_JFR_IS_REAL,
    FP_JFR_IS_TEXT,  /* p[0] is its encoding */
    FP_JFR_IS_KEY,   /* the key of a constant */
    FP_JFR_IS_VALUE, /* a value of a type at p */
    FP_JFR_IS_ARRAY  /* an array of values or keys at p */
};

struct fp_jfr_slot {
    union {
        uint64_t n;
        double real;
        const uint8_t *p;
    };
    uint32_t type;
    uint8_t kind, unit, of_keys;
};

/* A field to read, a word or FP_JFR_IN of two, and its slot. */
struct fp_jfr_want {
    uint16_t word;
    uint8_t slot;
};

/* The program of a type, compiled at first use. */
const struct fp_jfr_program *fp_jfr_program_of(struct fp_jfr_reader *r, uint32_t type);

/* Runs a program on the bytes up to `end`.  Returns the end of the value, or NULL if it is past `end` or has an unknown
 * kind of string.  Initialize slots to FP_JFR_ABSENT: the program sets some. */
const uint8_t *fp_jfr_run(const struct fp_jfr_reader *r, const struct fp_jfr_program *program, const uint8_t *p,
                          const uint8_t *end, struct fp_jfr_slot *slots);

/* The kinds of the slots of a plain program. */
void fp_jfr_plain_slots(const struct fp_jfr_reader *r, const struct fp_jfr_program *program, struct fp_jfr_slot *slots);

static inline struct fp_jfr_slot *fp_jfr_slots_of(const struct fp_jfr_reader *r, const struct fp_jfr_program *program) {
    return r->programs.slots + (size_t)(program->slots - 1) * FP_JFR_SLOTS;
}

/* The lowest 2, 4 or 8 bytes as a signed number. */
static inline uint64_t fp_jfr_narrow(uint64_t v, unsigned width) {
    const unsigned unused = 64 - 8 * width;
    return (uint64_t)((int64_t)(v << unused) >> unused);
}

/* Decodes a value of a type at p into slots.  Returns as fp_jfr_run. */
const uint8_t *fp_jfr_decode(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                             struct fp_jfr_slot *slots);
/* The same without looking for the end of the value: 1, or 0 for NULL. */
int fp_jfr_peek(struct fp_jfr_reader *r, uint32_t type, const uint8_t *p, const uint8_t *end,
                struct fp_jfr_slot *slots);

/* The slots of values, by role. */
enum { FP_JFR_STACK_CUT, FP_JFR_STACK_FRAMES };
enum { FP_JFR_FRAME_METHOD, FP_JFR_FRAME_LINE, FP_JFR_FRAME_BYTECODE, FP_JFR_FRAME_TYPE };
enum { FP_JFR_METHOD_CLASS, FP_JFR_METHOD_NAME, FP_JFR_METHOD_DESCRIPTOR };
enum { FP_JFR_CLASS_NAME };
enum { FP_JFR_THREAD_OS_NAME, FP_JFR_THREAD_OS_ID, FP_JFR_THREAD_NAME, FP_JFR_THREAD_ID, FP_JFR_THREAD_VIRTUAL };
/* The slots of events. */
enum {
    FP_JFR_START,
    FP_JFR_DURATION_SLOT,
    FP_JFR_EVENT_THREAD,
    FP_JFR_EVENT_STACK,
    FP_JFR_EVENT_STATE,
    FP_JFR_EVENT_CLASS,
    FP_JFR_EVENT_WEIGHT,
    FP_JFR_EVENT_VALUE,
    FP_JFR_EVENT_SLOTS
};

/* An event that was decoded ahead: the numbers of its slots, whose kinds are those of fp_jfr_slots_of its program. */
struct fp_jfr_ready {
    const uint8_t *p, *body; /* the record, whole in the window */
    uint64_t size;
    struct fp_jfr_constant *stack;  /* NULL: not looked up */
    struct fp_jfr_context *context; /* fp_jfr_context_at its keys */
    struct fp_jfr_summed *summed;   /* where its row can be found again; NULL: nowhere */
    uint64_t low, high;             /* its key there */
    uint32_t type;
    uint64_t slots[FP_JFR_EVENT_SLOTS];
};
enum { FP_JFR_AHEAD = 32 };

/* Decodes up to `most` events that become rows, from the window's position on; it stops at one that it cannot decode.
 * Returns their number; if it is 0, the position moves past records that become no rows.  If samples are added up,
 * events that have a row in the batch are added to it, and those that can wait do; the next one is the only one
 * decoded.
 */
uint32_t fp_jfr_prefetch(struct fp_jfr_reader *r, struct fp_window *in, struct fp_jfr_ready *ready, uint32_t most);
/* Prepares the program of a type for events of this chunk.  NULL if they cannot be decoded ahead. */
const struct fp_jfr_program *fp_jfr_prepare(struct fp_jfr_reader *r, uint32_t type);

static inline const struct fp_jfr_program *fp_jfr_prepared_of(struct fp_jfr_reader *r, uint32_t type) {
    const uint32_t number = r->metadata.types[type].program;
    if (FP_LIKELY(number && r->programs.list[number - 1].epoch == r->constants.epoch))
        return &r->programs.list[number - 1];
    return fp_jfr_prepare(r, type);
}

/* An event that becomes rows. */
struct fp_jfr_event {
    const char *name;
    uint8_t metric;
    uint8_t weight; /* word: the field with the number of samples it represents; 0: one */
    uint8_t value;  /* word: the field of the second value; 0: its period, if any */
    uint8_t times_weight;
};
extern const struct fp_jfr_event fp_jfr_events[];
/* Looks up a type by name: its index in fp_jfr_events + 1, or 0. */
uint32_t fp_jfr_event_of(const uint8_t *name, size_t n);

/* Looks up a type by name: enum fp_jfr_fact_kind + 1, or 0. */
uint32_t fp_jfr_fact_of(const uint8_t *name, size_t n);

/* The n fields to read of a type.  NULL for a text: its first field is read. */
const struct fp_jfr_want *fp_jfr_wants(const struct fp_jfr_type *type, uint32_t *n, struct fp_jfr_want *scratch);

/* The type with an id that is not small, or 0. */
uint32_t fp_jfr_find_far_type(const struct fp_jfr_reader *r, uint64_t id);

/* The type with an id, or 0. */
static inline uint32_t fp_jfr_find_type(const struct fp_jfr_reader *r, uint64_t id) {
    return FP_LIKELY(id < sizeof r->metadata.small / sizeof r->metadata.small[0]) ? r->metadata.small[id]
                                                                                  : fp_jfr_find_far_type(r, id);
}

/* ---- constants ---- */

struct fp_jfr_constant {
    uint64_t at;    /* offset in the arena + 1, of a stack its string in `stacks` + 1; 0: not in the file */
    uint32_t known; /* its resolved id + 1; 0: not resolved yet */
    uint32_t also;  /* a second result; of a stack: is it cut */
};

/* A constant as in the file. */
struct fp_jfr_kept {
    uint64_t key, at;
};

/* The constants of a type.  Most have keys without large gaps, which may begin anywhere. */
struct fp_jfr_pool {
    struct fp_jfr_kept *kept;
    uint32_t n, cap;
    struct fp_jfr_constant *constants; /* by key - first; or by row of `keys`, row 0 is that of key 0 */
    uint64_t first;
    uint32_t n_constants, cap_constants;
    uint32_t n_dense;     /* n_constants in the first case, else 0 */
    struct fp_table keys; /* (low, high) */
};

/* Forgets all constants. */
void fp_jfr_forget(struct fp_jfr_reader *r);
/* Makes all constants ready to be found. */
void fp_jfr_index(struct fp_jfr_reader *r);
/* The constant with a key that is not dense. */
struct fp_jfr_constant *fp_jfr_find_far(const struct fp_jfr_pool *pool, uint64_t key);

/* The constant that a slot refers to.  NULL if there is none, or the slot has no key. */
static inline struct fp_jfr_constant *fp_jfr_find(const struct fp_jfr_reader *r, const struct fp_jfr_slot *slot) {
    const uint32_t number = slot->kind == FP_JFR_IS_KEY ? r->metadata.types[slot->type].pool : 0;
    if (!number) return NULL;
    const struct fp_jfr_pool *pool = &r->constants.pools[number - 1];
    const uint64_t i = slot->n - pool->first;
    if (FP_UNLIKELY(i >= pool->n_dense)) return fp_jfr_find_far(pool, slot->n);
    struct fp_jfr_constant *constant = &pool->constants[i];
    return constant->at ? constant : NULL;
}
/* The bytes of the value that a slot holds (FP_JFR_IS_VALUE) or refers to (FP_JFR_IS_KEY).  NULL if there are none.
 * *end: an upper bound of its end. */
const uint8_t *fp_jfr_bytes_of(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t **end);

/* ---- names ---- */

/* Appends the text of a slot as UTF-8; nothing for null.  `end`: the end of the bytes that the slot points into.  1 if
 * it is a text, or 0 for null or a missing constant. */
int fp_jfr_text(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, struct fp_buf *to);
/* Appends the name of a class without the numbers of hidden classes, which differ from run to run. */
void fp_jfr_put_joined(struct fp_buf *to, const uint8_t *p, size_t n);
/* Appends the name of a class in Java's syntax: [[I is int[][], [Ljava/util/Map; is java.util.Map[]. */
void fp_jfr_put_class(struct fp_buf *to, const uint8_t *p, size_t n);
/* The model's string for a slot with a text or a class, cached by constant.  0: none. */
uint32_t fp_jfr_string_id(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end);

/* ---- frames, stacks, threads ---- */

/* The model's stack.  0: no stack. */
uint32_t fp_jfr_stack(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, int *cut);
/* The frame of a function that has a name but no code. */
uint32_t fp_jfr_name_frame(struct fp_jfr_reader *r, const void *name, size_t n);
/* The model's thread, and its label. */
void fp_jfr_thread(struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, const uint8_t *end, uint32_t *thread,
                   uint32_t *label);

/* What an event of a type is to a row, apart from stack and values, by the keys of its constants. */
struct fp_jfr_context {
    uint64_t thread_key, state_key, class_key;
    uint32_t epoch; /* the chunk's; if another: unused entry */
    uint32_t type;
    uint32_t thread, label, class_, state, metric;
    uint32_t pending_as; /* its number among the contexts of waiting samples; 0: none yet */
};
enum { FP_JFR_CONTEXTS = 1 << 11 };

/* The same for samples that wait, by the bytes of these keys. */
struct fp_jfr_pending_context {
    uint64_t rest, of; /* `of`: the chunk and the type */
    uint32_t pending_as, metric;
};
enum { FP_JFR_BRIEFS = 1 << 10 };

static inline struct fp_jfr_pending_context *fp_jfr_pending_context_at(const struct fp_jfr_reader *r, uint64_t key) {
    return &r->sums.briefs[key * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* The context of events with these keys, if it is there; else another one, or an unused entry. */
static inline struct fp_jfr_context *fp_jfr_context_at(const struct fp_jfr_reader *r, uint32_t type, uint64_t thread,
                                                       uint64_t state, uint64_t class_) {
    return &r->sums.contexts[fp_mix(thread ^ class_ << 32, state ^ type) % FP_JFR_CONTEXTS];
}

static inline int fp_jfr_is_context(const struct fp_jfr_reader *r, const struct fp_jfr_context *one, uint32_t type,
                                    uint64_t thread, uint64_t state, uint64_t class_) {
    return one->epoch == r->constants.epoch && one->type == type && one->thread_key == thread &&
           one->state_key == state && one->class_key == class_;
}

/* A frame of the model, by its bytes in the file: those of a chunk with the same bytes are equal. */
struct fp_jfr_frame {
    uint64_t low, high;
    uint32_t epoch;               /* the chunk's; if another: unused entry */
    uint32_t type, frame, method; /* `method`: see fp_jfr_function */
};
enum { FP_JFR_CACHE = 1 << 15 }; /* two fill a line of the processor's cache */

/* Sets the name (a string) of a thread, unless an older one of Java has given it another: DestroyJavaVM runs on the
 * thread that was "main", and events are in any order.  java_id 0: no thread of Java. */
void fp_jfr_name_thread(struct fp_jfr_reader *r, uint32_t thread, uint32_t name, uint64_t java_id);

/* ---- rows ---- */

/* n ticks in nanoseconds, rounded towards 0; beyond 64 bits the largest number. */
int64_t fp_jfr_nanoseconds_of(const struct fp_jfr_reader *r, int64_t n);
static inline int64_t fp_jfr_nanoseconds(const struct fp_jfr_reader *r, int64_t n) {
    return FP_LIKELY(r->chunk.ticks_per_second == 1000000000) ? n : fp_jfr_nanoseconds_of(r, n);
}

/* A time in ticks, in nanoseconds since 1970; 0: before then, or out of range. */
static inline uint64_t fp_jfr_time(const struct fp_jfr_reader *r, uint64_t ticks) {
    int64_t ns;
    if (__builtin_sub_overflow((int64_t)ticks, r->chunk.start_ticks, &ns)) return 0;
    if (__builtin_add_overflow(fp_jfr_nanoseconds(r, ns), r->chunk.start_ns, &ns)) return 0;
    return ns > 0 ? (uint64_t)ns : 0;
}
/* The number of a slot times `factor`, in nanoseconds if it is a time.  0, or 1 if that is too large. */
int fp_jfr_value(const struct fp_jfr_reader *r, const struct fp_jfr_slot *slot, double factor, int64_t *value);

static inline int fp_jfr_has_columns(const struct fp_jfr_reader *r, uint32_t metric, const struct fp_batch *out) {
    const uint32_t column = r->column[metric];
    return column != FP_JFR_NO_COLUMN && column + (uint32_t)r->has_value[metric] < out->n_values;
}

/* ---- timelines ---- */

void fp_jfr_begin_spans(struct fp_jfr_reader *r);
void fp_jfr_free_spans(struct fp_jfr_reader *r);
