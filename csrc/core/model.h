/* core/model.h - the tables behind dense ids: strings, and rows of words.
 *
 * Floor 1.  Every table only grows and ids never change, so a writer keeps a
 * watermark and emits what is new before each batch.  Id 0 of every table is
 * reserved and means "nothing" (the empty string; no object; an unknown
 * function; the root of the stack tree).
 *
 * Memory: linear in distinct entries, whatever the length of the input.
 * An entry costs its words plus 11 to 22 bytes of hash index, to 43 in small tables; a function
 * whose name no other one has 4 instead, and so does each string.
 */
#ifndef FP_MODEL_H
#define FP_MODEL_H

#include "core/fp.h"

/* cffi-begin */

/* Returned by every intern when memory (or the 2^32 ids) ran out. */
enum { FP_NO_ID = 0xffffffffu };

/* Distinct byte strings.  String i is bytes[start[i] .. start[i+1]). */
struct fp_strings {
    uint8_t *bytes;
    uint64_t *start;
    uint32_t n; /* number of strings; start has n + 1 entries */
    uint32_t cap;
    uint64_t bytes_cap;
    uint64_t *index; /* open addressing: hash << 32 | id, or 0 for a free slot */
    uint32_t index_mask;
};

/* Distinct rows of `width` 32-bit words.  Row i is words[i*width .. (i+1)*width). */
struct fp_table {
    uint32_t *words;
    uint32_t width;
    uint32_t n;
    uint32_t cap;
    uint64_t *index;
    uint32_t index_mask;
    uint32_t n_indexed; /* rows that are in the index, and 1; all but some of the model's functions */
};

/* The columns of each table, as word positions.  64-bit numbers take two
 * words, low word first. */
enum fp_object_col { FP_OBJECT_NAME = 0, FP_OBJECT_BUILD_ID = 1, FP_OBJECT_WIDTH = 2 };
enum fp_mapping_col {
    FP_MAPPING_OBJECT = 0,
    FP_MAPPING_START = 1,  /* u64, first address */
    FP_MAPPING_LIMIT = 3,  /* u64, one past the last address */
    FP_MAPPING_OFFSET = 5, /* u64, file offset of `start` */
    FP_MAPPING_FLAGS = 7,  /* enum fp_mapping_flag */
    FP_MAPPING_WIDTH = 8
};
enum fp_mapping_flag {
    FP_MAPPING_HAS_FUNCTIONS = 1,
    FP_MAPPING_HAS_FILENAMES = 2,
    FP_MAPPING_HAS_LINES = 4,
    FP_MAPPING_HAS_INLINES = 8
};
enum fp_function_col {
    FP_FUNCTION_OBJECT = 0,
    FP_FUNCTION_FILE = 1,        /* string: the file the function is defined in */
    FP_FUNCTION_NAME = 2,        /* string: as shown, demangled where wanted */
    FP_FUNCTION_SYSTEM_NAME = 3, /* string: as in the symbol table; 0 = same as name */
    FP_FUNCTION_LINE = 4,        /* first line; 0 = unknown */
    FP_FUNCTION_WIDTH = 5
};
/* A line chain: the innermost inlined function first, `outer` leads outwards. */
enum fp_line_col { FP_LINE_FUNCTION = 0, FP_LINE_LINE = 1, FP_LINE_COLUMN = 2, FP_LINE_OUTER = 3, FP_LINE_WIDTH = 4 };
/* A frame is what pprof calls a location. */
enum fp_frame_col {
    FP_FRAME_MAPPING = 0,
    FP_FRAME_ADDRESS = 1, /* u64, exactly as recorded (never adjusted) */
    FP_FRAME_FLAGS = 3,   /* enum fp_frame_flag */
    FP_FRAME_LINES = 4,   /* innermost entry of a line chain; 0 = not symbolized */
    FP_FRAME_WIDTH = 5
};
enum fp_frame_flag {
    FP_FRAME_RETURN_ADDRESS = 1, /* address is the one AFTER the call */
    FP_FRAME_FOLDED = 2          /* pprof's is_folded */
};
/* The stack tree: a stack is its leaf's node; parent leads to the root (0). */
enum fp_stack_col { FP_STACK_PARENT = 0, FP_STACK_FRAME = 1, FP_STACK_WIDTH = 2 };
/* A label set is a chain of labels. */
enum fp_label_col {
    FP_LABEL_NEXT = 0,
    FP_LABEL_KEY = 1,
    FP_LABEL_STRING = 2,
    FP_LABEL_NUMBER = 3, /* i64 in two words */
    FP_LABEL_UNIT = 5,
    FP_LABEL_WIDTH = 6
};
/* A thread of one input.  Thread and process ids are 32-bit in every format we read. */
enum fp_thread_col { FP_THREAD_INPUT = 0, FP_THREAD_PID = 1, FP_THREAD_TID = 2, FP_THREAD_WIDTH = 3 };

/* Everything that batches refer to by id. */
struct fp_model {
    struct fp_strings strings;
    struct fp_table objects;
    struct fp_table mappings;
    struct fp_table functions;
    struct fp_table lines;
    struct fp_table frames;
    struct fp_table stacks;
    struct fp_table labels;
    struct fp_table threads;
    uint32_t n_inputs; /* whose threads are told apart, see fp_model_input */
    /* private: by frame, the parent and the node it was on last.  Stacks share their
     * roots, so that is mostly the next one's, too, and at hand without the table. */
    uint32_t *last;
    uint32_t cap_last;
    /* private: by name, the first function of that name.  Mostly it is the only one, so that only the others are in
     * the index of functions. */
    uint32_t *named;
    uint32_t n_named, cap_named;
};

/* NULL when memory ran out.  The caller owns the model. */
struct fp_model *fp_model_new(void);
void fp_model_free(struct fp_model *m);

/* The id of `n` bytes at `p`, entered if new; FP_NO_ID when memory ran out. */
uint32_t fp_strings_intern(struct fp_strings *s, const void *p, size_t n);

/* Byte strings by themselves, for what a room keeps beside the model.  0 or FP_E_NOMEM. */
int fp_strings_init(struct fp_strings *s);
void fp_strings_clear(struct fp_strings *s);

/* The id of a row of t->width words, entered if new; FP_NO_ID when memory ran out.  Not for the model's functions. */
uint32_t fp_table_intern(struct fp_table *t, const uint32_t *row);

/* A table by itself, for what a room keeps beside the model.  0 or FP_E_NOMEM. */
int fp_table_init(struct fp_table *t, uint32_t width);
void fp_table_clear(struct fp_table *t);

/* The id of a row that is there, else 0.  Likewise. */
uint32_t fp_table_find(const struct fp_table *t, const uint32_t *row);

/* Shorthands with one argument a column (u64 columns whole). */
uint32_t fp_model_object(struct fp_model *m, uint32_t name, uint32_t build_id);
uint32_t fp_model_mapping(struct fp_model *m, uint32_t object, uint64_t start, uint64_t limit, uint64_t offset,
                          uint32_t flags);
uint32_t fp_model_function(struct fp_model *m, uint32_t object, uint32_t file, uint32_t name, uint32_t system_name,
                           uint32_t line);
uint32_t fp_model_function_row(struct fp_model *m, const uint32_t *row);
uint32_t fp_model_line(struct fp_model *m, uint32_t function, uint32_t line, uint32_t column, uint32_t outer);
uint32_t fp_model_frame(struct fp_model *m, uint32_t mapping, uint64_t address, uint32_t flags, uint32_t lines);
uint32_t fp_model_stack(struct fp_model *m, uint32_t parent, uint32_t frame);
/* Enters up to FP_MODEL_STACKS stacks level by level, so that their lookups wait
 * for memory together.  `frames`: those of each stack, leaf first, one stack
 * behind the other, depths[k] of them; nodes[k] gets the stack.  0 or FP_E_NOMEM. */
enum { FP_MODEL_STACKS = 32 };
int fp_model_stacks(struct fp_model *m, const uint32_t *frames, const uint32_t *depths, uint32_t n, uint32_t *nodes);
uint32_t fp_model_label(struct fp_model *m, uint32_t next, uint32_t key, uint32_t string, int64_t number,
                        uint32_t unit);
/* The number of a further input, from 0, whose threads are none of those of other inputs; FP_NO_ID when there are no
 * more numbers.  Threads that no input tells apart are of input 0. */
uint32_t fp_model_input(struct fp_model *m);
uint32_t fp_model_thread(struct fp_model *m, uint32_t input, uint32_t pid, uint32_t tid);

/* cffi-end */

static inline const uint32_t *fp_table_row(const struct fp_table *t, uint32_t id) {
    return t->words + (size_t)id * t->width;
}

static inline uint64_t fp_words_u64(const uint32_t *words) {
    return words[0] | (uint64_t)words[1] << 32;
}

static inline const uint8_t *fp_string(const struct fp_strings *s, uint32_t id, size_t *n) {
    *n = (size_t)(s->start[id + 1] - s->start[id]);
    return s->bytes + s->start[id];
}

/* A good, seedless mix of two words; tables are private to one run, and an
 * adversary who collides them slows only his own conversion. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 u128;
    u128 r = (u128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

uint64_t fp_hash_bytes(const void *p, size_t n);

/* Interning in steps, for many strings at once: hash them all, have their index
 * slots brought, then their entries, and only then compare.  A guess is the id
 * that most likely is the string's, 0 for none; it is never relied on. */
static inline uint32_t fp_strings_hash(const void *p, size_t n) {
    return (uint32_t)fp_hash_bytes(p, n);
}

static inline void fp_strings_prefetch(const struct fp_strings *s, uint32_t hash) {
    __builtin_prefetch(&s->index[hash & s->index_mask]);
}

static inline uint32_t fp_strings_guess(const struct fp_strings *s, uint32_t hash) {
    uint32_t id = (uint32_t)s->index[hash & s->index_mask];
    __builtin_prefetch(&s->start[id]);
    return id;
}

static inline void fp_strings_prefetch_bytes(const struct fp_strings *s, uint32_t guess) {
    const uint8_t *p = s->bytes + s->start[guess];
    __builtin_prefetch(p);
    __builtin_prefetch(p + 63);
}

/* fp_strings_intern of a string whose hash is known. */
uint32_t fp_strings_intern_hashed(struct fp_strings *s, const void *p, size_t n, uint32_t hash);

/* The same for rows. */
static inline uint32_t fp_table_hash(const uint32_t *row, uint32_t width) {
    uint64_t h = width;
    uint32_t i = 0;
    for (; i + 2 <= width; i += 2) h = fp_mix(h, fp_words_u64(row + i));
    return (uint32_t)(i < width ? fp_mix(h, row[i]) : h);
}

static inline void fp_table_prefetch(const struct fp_table *t, uint32_t hash) {
    __builtin_prefetch(&t->index[hash & t->index_mask]);
}

static inline uint32_t fp_table_guess(const struct fp_table *t, uint32_t hash) {
    uint32_t id = (uint32_t)t->index[hash & t->index_mask];
    __builtin_prefetch(fp_table_row(t, id));
    return id;
}

uint32_t fp_table_intern_hashed(struct fp_table *t, const uint32_t *row, uint32_t hash);

/* Forgets all rows and keeps the memory.  Not for the model's own tables. */
void fp_table_empty(struct fp_table *t);

#endif
