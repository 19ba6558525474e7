/* Shared by the fuzz targets of bridges and writers: the input is a program that fills a model and batches, with ids
 * that are mostly valid. */
#pragma once

#include <stdlib.h>

#include "bridges/rows/nest.h"
#include "bridges/sums/packed.h"
#include "core/batch.h"
#include "core/model.h"

struct program {
    const uint8_t *p, *end;
};

static inline uint32_t take(struct program *g) {
    return g->p < g->end ? *g->p++ : 0;
}

/* An id of a table; rarely an invalid one. */
static inline uint32_t id_of(struct program *g, const struct fp_table *t, int wrong) {
    uint32_t byte = take(g);
    return wrong && byte == 255 ? t->n + take(g) : byte % t->n;
}

static inline uint32_t name(struct program *g, struct fp_model *m) {
    uint8_t letter = (uint8_t)('a' + take(g) % 8);
    return letter == 'a' ? 0 : fp_strings_intern(&m->strings, &letter, 1);
}

/* Small values, and some at the limits of 64 bits. */
static inline int64_t value(struct program *g) {
    uint32_t byte = take(g);
    if (byte < 250) return (int64_t)byte - 20;
    return byte < 252 ? INT64_MAX - take(g) : byte < 254 ? INT64_MIN + take(g) : (int64_t)take(g) << 40;
}

static inline void fill_model(struct program *g, struct fp_model *m, int wrong) {
    for (uint32_t ops = take(g) % 64; ops--;) {
        switch (take(g) % 6) {
            case 0: fp_model_object(m, name(g, m), 0); break;
            case 1: {
                uint64_t start = (uint64_t)take(g) << 8;
                fp_model_mapping(m, id_of(g, &m->objects, wrong), start, start + take(g), take(g), 0);
                break;
            }
            case 2: {
                uint32_t object = id_of(g, &m->objects, 0), file = name(g, m);
                fp_model_function(m, object, file, name(g, m), name(g, m), take(g) % 4);
                break;
            }
            case 3: {
                uint32_t function = id_of(g, &m->functions, wrong), line = take(g) % 8;
                fp_model_line(m, function, line, 0, take(g) % m->lines.n);
                break;
            }
            case 4: {
                uint32_t mapping = id_of(g, &m->mappings, wrong), lines = id_of(g, &m->lines, wrong);
                fp_model_frame(m, mapping, (uint64_t)take(g) << 8 | take(g) % 2, take(g) % 2, lines);
                break;
            }
            default: fp_model_label(m, take(g) % m->labels.n, name(g, m), name(g, m), take(g), 0);
        }
    }
    fp_model_thread(m, 0, 1, 1);
    fp_model_thread(m, 0, 1, 2);
}

/* Samples, until the batch is full or the program ends.  `wrong`: sometimes with an invalid stack. */
static inline void fill_samples(struct program *g, struct fp_model *m, struct fp_batch *b, int wrong) {
    for (b->n = 0; b->n < b->cap && g->p < g->end; b->n++) {
        uint32_t node = 0;
        for (uint32_t depth = take(g) % 24; depth--;) {
            uint32_t frame = id_of(g, &m->frames, 0);
            if (frame) node = fp_model_stack(m, node, frame);
        }
        b->stack[b->n] = wrong && take(g) == 255 ? m->stacks.n + take(g) : node;
        b->label[b->n] = id_of(g, &m->labels, 0);
        b->thread[b->n] = take(g) % m->threads.n;
        b->time[b->n] = take(g) % 2;
        for (uint32_t k = 0; k < b->n_values; k++) b->values[(size_t)k * b->cap + b->n] = value(g);
    }
}

/* Mostly small numbers of either sign, and some at the limits of 64 bits. */
static inline uint64_t number(struct program *g) {
    const uint32_t byte = take(g);
    if (byte < 240) return byte % 16;
    return byte < 250 ? 0 - (uint64_t)take(g) : (uint64_t)(byte | 1) << (take(g) % 62);
}

/* Rows of a graph, likewise. */
static inline void fill_graph(struct program *g, const struct fp_model *m, struct fp_batch *b) {
    uint32_t function = 0, line = 0;
    for (; b->n < b->cap && g->p < g->end; b->n++) {
        const uint32_t i = b->n, what = take(g);
        if (what & 1) function = take(g) % m->functions.n;
        line += what & 2 ? take(g) : 1;
        b->kind[i] = what & 4 ? FP_COST : (uint8_t)(take(g) % 5);
        b->function[i] = function;
        b->file[i] = what & 8 ? take(g) % m->strings.n : fp_file_of_function(m, function);
        b->line[i] = line;
        b->address[i] = what & 16 ? number(g) : 0;
        b->bb[i] = what & 32 ? number(g) : 0;
        b->callee[i] = take(g) % m->functions.n;
        b->target_file[i] = what & 64 ? take(g) % m->strings.n : 0;
        b->target_line[i] = what & 128 ? take(g) : 0;
        b->target_address[i] = b->target_bb[i] = number(g);
        b->count[i] = number(g) >> 1;
        b->count2[i] = number(g) >> 1;
        for (uint32_t k = 0; k < b->n_values; k++) b->values[(size_t)k * b->cap + i] = (int64_t)number(g);
    }
}

/* At most this many rows of a timeline. */
static inline void fill_timeline(struct program *g, const struct fp_model *m, struct fp_batch *b, uint32_t most) {
    uint64_t now = number(g);
    for (; b->n < most && g->p < g->end; b->n++) {
        const uint32_t i = b->n, what = take(g);
        b->op[i] = what & 1 ? take(g) % 8 : (what >> 1 & 1);
        now += what & 4 ? number(g) : 1;
        b->time[i] = now;
        b->thread[i] = what & 8 ? take(g) % m->threads.n : 1 % m->threads.n;
        b->cpu[i] = what & 16 ? (uint16_t)number(g) : 0;
        b->function[i] = take(g) % m->functions.n;
        if (b->op[i] == FP_OP_ARGUMENT) { /* belongs to the previous row */
            const int follows = i && (b->op[i - 1] == FP_OP_ENTER_ARGS || b->op[i - 1] == FP_OP_ARGUMENT);
            if (!follows) b->op[i] = FP_OP_EXIT;
            b->thread[i] = follows ? b->thread[i - 1] : b->thread[i];
            b->cpu[i] = follows ? b->cpu[i - 1] : b->cpu[i];
        }
        b->aux[i] = b->op[i] == FP_OP_ARGUMENT || b->op[i] == FP_OP_BUFFER ? number(g) : 0;
        if (b->op[i] != FP_OP_CUSTOM && b->op[i] != FP_OP_TYPED) continue;
        uint8_t payload[256];
        const uint32_t length = take(g);
        memset(payload, 'p', length);
        if (fp_batch_payload(b, payload, length, &b->aux[i])) abort();
    }
}

/* The same with nested calls, in nanoseconds; NULL if a time is too large.  The caller frees it. */
static inline struct fp_batch *nested(const struct fp_batch *b, uint64_t ticks_per_second) {
    struct fp_nest *nest = fp_nest_new();
    struct fp_batch *out = fp_batch_new(FP_TIMELINE, 512, 0);
    struct fp_err err;
    uint32_t from = 0;
    fp_nest_clock(nest, ticks_per_second);
    int status = fp_nest_put(nest, b, &from, out, &err);
    if (status == FP_DONE) status = fp_nest_end(nest, out);
    fp_nest_free(nest);
    if (status == FP_FULL) abort(); /* there are fewer rows */
    if (status == FP_DONE) return out;
    fp_batch_free(out);
    return NULL;
}
