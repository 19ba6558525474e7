/* archive/row_layout.h - the columns of the model's tables in a payload.  Private to the archive's C files. */
#pragma once

#include "archive/private.h"

/* The type of a column. */
enum fp_archive_word {
    FP_SHAPE_END,
    FP_SHAPE_NUMBER,
    FP_SHAPE_WIDE,   /* a u64: two words of a row */
    FP_SHAPE_STRING, /* from here on: an id in the named table */
    FP_SHAPE_OBJECT,
    FP_SHAPE_MAPPING,
    FP_SHAPE_FUNCTION,
    FP_SHAPE_LINE,
    FP_SHAPE_FRAME,
    FP_SHAPE_EARLIER /* an id of this table, below the row's own */
};

/* The columns of each table but the strings, in the order of the payload: a table
 * comes after those that it refers to. */
static const uint8_t shapes[][7] = {
    {FP_SHAPE_STRING, FP_SHAPE_STRING, FP_SHAPE_END},                                                    /* objects */
    {FP_SHAPE_OBJECT, FP_SHAPE_WIDE, FP_SHAPE_WIDE, FP_SHAPE_WIDE, FP_SHAPE_NUMBER, FP_SHAPE_END},       /* mappings */
    {FP_SHAPE_OBJECT, FP_SHAPE_STRING, FP_SHAPE_STRING, FP_SHAPE_STRING, FP_SHAPE_NUMBER, FP_SHAPE_END}, /* functions */
    {FP_SHAPE_FUNCTION, FP_SHAPE_NUMBER, FP_SHAPE_NUMBER, FP_SHAPE_EARLIER, FP_SHAPE_END},               /* lines */
    {FP_SHAPE_MAPPING, FP_SHAPE_WIDE, FP_SHAPE_NUMBER, FP_SHAPE_LINE, FP_SHAPE_END},                     /* frames */
    {FP_SHAPE_EARLIER, FP_SHAPE_FRAME, FP_SHAPE_END},                                                    /* stacks */
    {FP_SHAPE_EARLIER, FP_SHAPE_STRING, FP_SHAPE_STRING, FP_SHAPE_WIDE, FP_SHAPE_STRING, FP_SHAPE_END},  /* labels */
    {FP_SHAPE_NUMBER, FP_SHAPE_NUMBER, FP_SHAPE_NUMBER, FP_SHAPE_END},                                   /* threads */
};

/* The number of columns of a table. */
static inline uint32_t fp_archive_columns_of(unsigned i) {
    uint32_t n = 0;
    while (shapes[i][n] != FP_SHAPE_END) n++;
    return n;
}

static inline struct fp_table *fp_archive_table_of(struct fp_model *m, unsigned i) {
    struct fp_table *tables[] = {&m->objects, &m->mappings, &m->functions, &m->lines,
                                 &m->frames,  &m->stacks,   &m->labels,    &m->threads};
    return tables[i];
}

/* The table that ids in a column refer to, numbered as in struct fp_archive_ids. */
static inline unsigned fp_archive_target_of(uint8_t word, unsigned own) {
    switch (word) {
        case FP_SHAPE_STRING: return FP_T_STRINGS;
        case FP_SHAPE_OBJECT: return FP_T_OBJECTS;
        case FP_SHAPE_MAPPING: return FP_T_MAPPINGS;
        case FP_SHAPE_FUNCTION: return FP_T_FUNCTIONS;
        case FP_SHAPE_LINE: return FP_T_LINES;
        case FP_SHAPE_FRAME: return FP_T_FRAMES;
        default: return own;
    }
}
