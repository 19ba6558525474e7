/* core/model.h - the model: tables of strings and of rows.  Batches refer to their entries by id.
 *
 *   frames        main a.c:3, f b.c:7                    ids 1, 2
 *   stacks        (parent 0, frame 1), (parent 1, frame 2)     ids 1: main, 2: main > f
 *
 * Adding an entry that is already in a table returns its id.  Tables only grow and ids never change, so a writer keeps
 * a watermark, the number of entries written, and writes the new ones before each batch.  Id 0 of every table means
 * "nothing": the empty string, no object, an unknown function, the root of the stack tree.
 *
 * Memory grows with the number of distinct entries, not with the input:
 *
 *   an entry      its words; of a string its bytes and 8 for where it starts
 *   hash index    11 to 22 bytes an entry; up to 43 while a table is small
 *   functions     the first function of each name is in `named` instead of the
 *                 hash index, which costs 4 bytes for each string
 */
#pragma once

#include "core/hash_key.h"

/* cffi-begin */

/* Returned instead of an id when memory (or the 2^32 ids) ran out. */
enum { FP_NO_ID = 0xffffffffu };

/* Maximum bytes of a name.  The longest names of real programs are symbols of C++ templates, some 100 KB. */
enum { FP_NAME_MOST = 1 << 20, FP_UNIT_MOST = 64 };

/* Distinct byte strings.  String i is bytes[start[i] .. start[i+1]). */
struct fp_strings {
    uint8_t *bytes;
    uint64_t *start;
    uint32_t n;         /* number of strings; start has n + 1 entries */
    uint32_t n_cut;     /* strings that were cut */
    uint32_t cut;       /* the last of them */
    int32_t file_error; /* errno, if there was no room in the file that they are in: not a lack of memory */
    struct fp_hash_key secret;

    /* private from here on */
    uint32_t most;   /* bytes of a string; longer ones are cut.  In a model: FP_NAME_MOST */
    uint64_t *index; /* open addressing: hash << 32 | id, or 0 for a free slot */
    uint32_t index_mask;
    uint32_t cap;
    uint64_t bytes_cap;
    int32_t file; /* fp_strings_to_file: the descriptor, plus 1 */
    uint64_t file_at;
    uint64_t n_rested; /* bytes at the last fp_model_rest_names */
};

/* Distinct rows of `width` 32-bit words.  Row i is words[i*width .. (i+1)*width). */
struct fp_table {
    uint32_t *words;
    uint32_t width;
    uint32_t n;
    struct fp_hash_key secret;

    /* private from here on */
    uint32_t cap;
    uint64_t *index;
    uint32_t index_mask;
    uint32_t n_indexed; /* 1 + rows in the index; equals n, except in the functions of a model, and after
                           fp_model_stack_once */
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
    FP_MAPPING_HAS_INLINES = 8,
    FP_MAPPING_FROM_BASE = 16 /* `offset` counts from the object's lowest link-time address, not in its file */
};
enum fp_function_col {
    FP_FUNCTION_OBJECT = 0,
    FP_FUNCTION_FILE = 1,        /* string: the file the function is defined in */
    FP_FUNCTION_NAME = 2,        /* string: as shown, demangled if requested */
    FP_FUNCTION_SYSTEM_NAME = 3, /* string: as in the symbol table; 0 = same as name */
    FP_FUNCTION_LINE = 4,        /* first line; 0 = unknown */
    FP_FUNCTION_WIDTH = 5
};
/* A line chain: the innermost inlined function first; `outer` is the entry it was inlined into. */
enum fp_line_col { FP_LINE_FUNCTION = 0, FP_LINE_LINE = 1, FP_LINE_COLUMN = 2, FP_LINE_OUTER = 3, FP_LINE_WIDTH = 4 };
/* A frame corresponds to pprof's location. */
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

struct fp_frames; /* below */

/* Replacements of frames in stacks, in the order of their use. */
enum fp_frames_step { FP_FRAMES_NAMED, FP_FRAMES_ONLY_NAMES, FP_FRAMES_STEPS };

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
    struct fp_table counter_units; /* (name, unit): a string, one of unit_names; several of a name contradict */
    struct fp_strings unit_names;
    uint32_t n_inputs; /* see fp_model_input */
    /* Readers that keep ids of stacks for later rows.  Model.empty_stacks does nothing while there are some, except to
     * set `is_refused`: they do so no longer. */
    uint32_t n_waiting;
    int32_t is_refused;
    uint32_t n_emptied; /* how often fp_model_empty_stacks was called */

    /* private from here on */
    uint32_t n_renewed; /* how often that happened or frames were replaced: readers then add their stacks again */
    struct fp_frames *replaced[FP_FRAMES_STEPS]; /* see fp_model_replace_frames */
    /* by frame: (parent, node) of the last stack that ended with it.  Stacks share their outer frames, so most stacks
     * are found here, without a lookup in `stacks`. */
    uint32_t *last;
    uint32_t cap_last;
    uint32_t *path; /* of fp_model_path: the frames, replaced, root first */
    uint32_t n_path, cap_path;
    /* by string: the first function of that name, or 0.  Most names have one function; only further functions of a name
     * are in the index of `functions`. */
    uint32_t *named;
    uint32_t n_named, cap_named;
    /* the last function looked up.  Similar inputs name their functions in the same order, so the next lookup usually
     * finds the following id. */
    uint32_t last_function;
};

/* NULL when memory ran out.  The caller owns the model. */
struct fp_model *fp_model_new(void);
void fp_model_free(struct fp_model *m);

/* The values of the counter of this name, a string, have a unit: bytes, nanoseconds, share (1 is 100 %) or any text. */
void fp_model_counter_unit(struct fp_model *m, uint32_t name, const void *unit, size_t n);

/* The id of the string of `n` bytes at `p`, cut after s->most bytes; added if it is new.  When memory ran
 * out, this and all functions below that add something escape (core/guard.h); without a guard they return FP_NO_ID or
 * FP_E_NOMEM. */
uint32_t fp_strings_intern(struct fp_strings *s, const void *p, size_t n);

/* Initializes a table of strings outside of a model, for a format's own use.  0 or FP_E_NOMEM. */
int fp_strings_init(struct fp_strings *s);
/* Removes all strings but the empty one and keeps the memory. */
void fp_strings_empty(struct fp_strings *s);
void fp_strings_clear(struct fp_strings *s);

/* Frees what strings are looked up by: from now on they are only read, with fp_string. */
void fp_strings_seal(struct fp_strings *s);
/* Moves the strings, but not what they are looked up by, to a file (core/memory.h).  They keep their place in memory if
 * the disk is full. */
void fp_strings_to_file(struct fp_strings *s, int fd, uint64_t at);
/* Takes strings that are in a file out of memory until they are used again. */
void fp_strings_rest(const struct fp_strings *s);

/* The id of a row of t->width words; added if it is new.  FP_NO_ID when memory ran out.  Not for the functions of a
 * model, some of which are not in the index: see fp_model_function_row. */
uint32_t fp_table_intern(struct fp_table *t, const uint32_t *row);

/* Initializes a table of rows outside of a model, for a format's own use.  0 or FP_E_NOMEM. */
int fp_table_init(struct fp_table *t, uint32_t width);
void fp_table_clear(struct fp_table *t);

/* The id of a row, or 0 if it is not in the table.  Not for the functions of a model either. */
uint32_t fp_table_find(const struct fp_table *t, const uint32_t *row);

/* fp_table_intern for the tables of a model, with one argument for each column.  fp_model_function_row takes a
 * function's columns as a row. */
uint32_t fp_model_object(struct fp_model *m, uint32_t name, uint32_t build_id);
uint32_t fp_model_mapping(struct fp_model *m, uint32_t object, uint64_t start, uint64_t limit, uint64_t offset,
                          uint32_t flags);
uint32_t fp_model_function(struct fp_model *m, uint32_t object, uint32_t file, uint32_t name, uint32_t system_name,
                           uint32_t line);
uint32_t fp_model_function_row(struct fp_model *m, const uint32_t *row);
uint32_t fp_model_line(struct fp_model *m, uint32_t function, uint32_t line, uint32_t column, uint32_t outer);
uint32_t fp_model_frame(struct fp_model *m, uint32_t mapping, uint64_t address, uint32_t flags, uint32_t lines);
uint32_t fp_model_stack(struct fp_model *m, uint32_t parent, uint32_t frame);
/* The category of a function's calls in a trace, as a string, or 0: its object, unless that is a program, with a path
 * or a build id. */
uint32_t fp_model_category(const struct fp_model *m, uint32_t function);

/* Adds n <= FP_MODEL_STACKS stacks in parallel, frame by frame from the root, so that their lookups wait for memory at
 * the same time.  `frames` holds the frames of one stack after the other, leaf first; stack k has depths[k] of them.
 * nodes[k] becomes its id.  0 or FP_E_NOMEM. */
enum { FP_MODEL_STACKS = 32 };
int fp_model_stacks(struct fp_model *m, const uint32_t *frames, const uint32_t *depths, uint32_t n, uint32_t *nodes);
uint32_t fp_model_label(struct fp_model *m, uint32_t next, uint32_t key, uint32_t string, int64_t number,
                        uint32_t unit);
/* The number of a new input, from 0 on.  Threads of the same pid and tid are distinct if their inputs differ; use input
 * 0 if inputs need not be distinguished.  FP_NO_ID when there are no more numbers. */
uint32_t fp_model_input(struct fp_model *m);
uint32_t fp_model_thread(struct fp_model *m, uint32_t input, uint32_t pid, uint32_t tid);

/* What makes two functions the same for every verb, page and conversion: object, file, name and first line.  Their
 * linker names may differ. */
struct fp_same_function {
    uint32_t object, file, name, line;
};
/* The number of functions that are not the same.  FP_NO_ID when memory ran out. */
uint32_t fp_model_distinct_functions(const struct fp_model *m);

/* Adds a stack without looking it up or indexing it: fp_model_stack may add it again.  Its id, or FP_NO_ID. */
uint32_t fp_model_stack_once(struct fp_model *m, uint32_t parent, uint32_t frame);

/* Removes all stacks; their ids are reused, the only exception to the rule that ids never change.  For bridges whose
 * stacks are no longer needed (Capabilities.keeps_stacks in core/engine.py).  If you cache stack ids, compare
 * `n_emptied`, and in a reader `n_renewed`. */
void fp_model_empty_stacks(struct fp_model *m);

/* The same for the strings of a model, each time that they have grown by 4 MiB.  1: they exceed `most` bytes, so move
 * them to a file first; or there is a file_error. */
int fp_model_rest_names(struct fp_model *m, uint64_t most);

/* Bytes that the tables use or will soon need: an index that is nearly full is about to double, and while it grows the
 * old and the new one coexist. */
uint64_t fp_model_bytes(const struct fp_model *m);

/* cffi-end */

/* The same for several: FP_INIT_TABLES(2, &r->ids, &r->threads). */
#define FP_INIT_TABLES(width, ...) FP_EACH(struct fp_table, __VA_ARGS__) fp_table_init(*at, width)
#define FP_INIT_STRINGS(...) FP_EACH(struct fp_strings, __VA_ARGS__) fp_strings_init(*at)
#define FP_CLEAR_TABLES(...) FP_EACH(struct fp_table, __VA_ARGS__) fp_table_clear(*at)
#define FP_CLEAR_STRINGS(...) FP_EACH(struct fp_strings, __VA_ARGS__) fp_strings_clear(*at)

/* From now on stacks get the frames with which `frames` replaces theirs, so that those that a reader would have made
 * are never in the model: a bridge that would replace them in each batch sets it.  Each step gets the frames that the
 * one before gave; one that knows new replacements calls fp_model_renew_stacks.
 *
 * The model and the bridge are freed in any order, so both own `frames`, which the bridge allocates with n_owners 1.
 * When it ends, it sets `of` to NULL. */
struct fp_frames {
    void *arg;
    /* The *n frames that replace a frame of a stack, outermost first.  NULL: it stays. */
    const uint32_t *(*of)(void *arg, uint32_t frame, uint32_t *n);
    uint32_t n_owners;
};
void fp_model_replace_frames(struct fp_model *m, enum fp_frames_step step, struct fp_frames *frames);
/* Ends one ownership; NULL does nothing. */
void fp_frames_release(struct fp_frames *frames);

/* Readers add the stacks of the following rows again, with what replaces their frames by now.  Stacks stay. */
static inline void fp_model_renew_stacks(struct fp_model *m) {
    m->n_renewed++;
}

static inline const uint32_t *fp_table_row(const struct fp_table *t, uint32_t id) {
    return t->words + (size_t)id * t->width;
}

static inline struct fp_same_function fp_same_function(const struct fp_model *m, uint32_t function) {
    const uint32_t *f = fp_table_row(&m->functions, function);
    return (struct fp_same_function){f[FP_FUNCTION_OBJECT], f[FP_FUNCTION_FILE], f[FP_FUNCTION_NAME],
                                     f[FP_FUNCTION_LINE]};
}

static inline uint32_t fp_file_of_function(const struct fp_model *m, uint32_t function) {
    return fp_table_row(&m->functions, function)[FP_FUNCTION_FILE];
}

/* The object of a frame without a mapping: that of its outermost function.  `lines`: FP_FRAME_LINES. */
static inline uint32_t fp_object_of_lines(const struct fp_model *m, uint32_t lines) {
    uint32_t object = 0;
    for (; lines; lines = fp_table_row(&m->lines, lines)[FP_LINE_OUTER])
        object = fp_table_row(&m->functions, fp_table_row(&m->lines, lines)[FP_LINE_FUNCTION])[FP_FUNCTION_OBJECT];
    return object;
}

/* A number of 64 bits as two words of a row: fp_table_find(&r->ids, (uint32_t[]){FP_WORDS(id)}). */
#define FP_WORDS(v) (uint32_t)(v), (uint32_t)((uint64_t)(v) >> 32)
static inline uint64_t fp_words_u64(const uint32_t *words) {
    return words[0] | (uint64_t)words[1] << 32;
}

static inline const uint8_t *fp_string(const struct fp_strings *s, uint32_t id, size_t *n) {
    *n = (size_t)(s->start[id + 1] - s->start[id]);
    return s->bytes + s->start[id];
}

static inline int fp_string_is(const struct fp_strings *s, uint32_t id, const char *text) {
    size_t n;
    const uint8_t *p = fp_string(s, id, &n);
    return n == strlen(text) && !memcmp(p, text, n);
}

/* Mixes two words into a hash.  This hash is public, so colliding keys can be constructed: see core/hash_key.h. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 u128;
    u128 r = (u128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

uint64_t fp_hash_bytes(const void *p, size_t n);

/* fp_strings_intern of n bytes of string `id`, from `at` on.  Only with a guard. */
uint32_t fp_strings_part(struct fp_strings *s, uint32_t id, size_t at, size_t n);

/* Interning in steps, so that many strings wait for memory at the same time: hash all of them, prefetch their index
 * slots, then their entries, then their bytes, and call fp_strings_intern_hashed.  A guess is the id in the first slot,
 * or 0.  It only decides what is prefetched; unless the table has a secret, it is most likely right. */
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

static inline void fp_strings_prefetch_start(const struct fp_strings *s, uint32_t id) {
    __builtin_prefetch(&s->start[id]);
}

static inline void fp_strings_prefetch_bytes(const struct fp_strings *s, uint32_t guess) {
    const uint8_t *p = s->bytes + s->start[guess];
    __builtin_prefetch(p);
    __builtin_prefetch(p + 63);
}

/* fp_strings_intern of a string with its fp_strings_hash. */
uint32_t fp_strings_intern_hashed(struct fp_strings *s, const void *p, size_t n, uint32_t hash);

/* Adds a string without looking it up, even if it is there already; it will not be found.  Its id; 0 for none.  For
 * strings that are not interned otherwise. */
uint32_t fp_strings_append(struct fp_strings *s, const void *p, size_t n);

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

/* The frame of a function at a line and column, without a place, or of one that has nothing but a name.  FP_NO_ID if
 * the argument is, and when memory ran out. */
uint32_t fp_model_line_frame(struct fp_model *m, uint32_t function, uint32_t line, uint32_t column);
uint32_t fp_model_plain_frame(struct fp_model *m, uint32_t function);
uint32_t fp_model_name_frame(struct fp_model *m, uint32_t name);

/* The stack of n frames, leaf first: fp_model_stack for each.  FP_NO_ID when memory ran out. */
uint32_t fp_model_path(struct fp_model *m, const uint32_t *frames, uint32_t n);

/* Call both, in this order, before fp_model_function with the string `name`. */
static inline void fp_model_prefetch_named(const struct fp_model *m, uint32_t name) {
    if (name < m->n_named) __builtin_prefetch(&m->named[name]);
}

static inline void fp_model_prefetch_function(const struct fp_model *m, uint32_t name) {
    if (name < m->n_named) __builtin_prefetch(fp_table_row(&m->functions, m->named[name]));
}

/* Adds a row without looking it up, even if the table has it already.  Its id, or FP_NO_ID. */
uint32_t fp_table_append(struct fp_table *t, const uint32_t *row);

/* Frees what rows are looked up by: from now on the table is only read, with fp_table_row. */
void fp_table_seal(struct fp_table *t);

/* Removes all rows and keeps the memory.  Not for the tables of a model, but see fp_model_empty_stacks. */
void fp_table_empty(struct fp_table *t);
