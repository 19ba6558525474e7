/* archive/shapes.h - the columns of the model's tables in a payload.  Private to the archive's C files. */
#ifndef FP_ARCHIVE_SHAPES_H
#define FP_ARCHIVE_SHAPES_H

#include "archive/private.h"

/* The type of a column. */
enum fp_archive_word {
    END,
    NUMBER,
    WIDE,   /* a u64: two words of a row */
    STRING, /* from here on: an id in the named table */
    OBJECT,
    MAPPING,
    FUNCTION,
    LINE,
    FRAME,
    EARLIER /* an id of this table, below the row's own */
};

/* The columns of each table but the strings, in the order of the payload: a table
 * comes after those that it refers to. */
static const uint8_t shapes[][7] = {
    {STRING, STRING, END},                         /* objects */
    {OBJECT, WIDE, WIDE, WIDE, NUMBER, END},       /* mappings */
    {OBJECT, STRING, STRING, STRING, NUMBER, END}, /* functions */
    {FUNCTION, NUMBER, NUMBER, EARLIER, END},      /* lines */
    {MAPPING, WIDE, NUMBER, LINE, END},            /* frames */
    {EARLIER, FRAME, END},                         /* stacks */
    {EARLIER, STRING, STRING, WIDE, STRING, END},  /* labels */
    {NUMBER, NUMBER, NUMBER, END},                 /* threads */
};

static inline struct fp_table *fp_archive_table_of(struct fp_model *m, unsigned i) {
    struct fp_table *tables[] = {&m->objects, &m->mappings, &m->functions, &m->lines,
                                 &m->frames,  &m->stacks,   &m->labels,    &m->threads};
    return tables[i];
}

/* The table that ids in a column refer to, numbered as in struct fp_archive_ids. */
static inline unsigned fp_archive_target_of(uint8_t word, unsigned own) {
    switch (word) {
        case STRING: return T_STRINGS;
        case OBJECT: return T_OBJECTS;
        case MAPPING: return T_MAPPINGS;
        case FUNCTION: return T_FUNCTIONS;
        case LINE: return T_LINES;
        case FRAME: return T_FRAMES;
        default: return own;
    }
}

#endif
