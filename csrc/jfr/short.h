/* jfr/short.h - usual events of few bytes, decoded without a loop over their fields. */
#ifndef FP_JFR_SHORT_H
#define FP_JFR_SHORT_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "jfr/private.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define FP_JFR_BMI2 __attribute__((target("bmi,bmi2")))

FP_JFR_BMI2 static inline uint64_t fp_jfr_join_bmi2(uint64_t groups) {
    return _pext_u64(groups, UINT64_C(0x7f7f7f7f7f7f7f7f));
}
#endif

enum { FP_JFR_BRIEF = 32, FP_JFR_READ = FP_JFR_BRIEF + 16 }; /* bytes of a short event; those that decoding it reads */

/* The instructions to use. */
struct fp_jfr_with {
    uint64_t (*join)(uint64_t);             /* the groups of 7 bits */
    uint32_t (*stops)(const uint8_t *);     /* bit i: byte i ends a varint */
    uint32_t (*nth)(uint64_t, uint64_t);    /* the place of one of the bits that are set: see nth_of */
    uint64_t (*lowest)(uint64_t, uint32_t); /* the lowest n bits; all if n is 64 or more */
};

/* A short event. */
struct fp_jfr_short {
    const uint8_t *body;
    uint64_t size, begins; /* `size`: with the head; `begins`, bit i: a varint begins in byte i of the body */
};

/* The type of the last event; most are of the same. */
struct fp_jfr_last {
    uint64_t id;
    uint32_t type, stack_type;
    const struct fp_jfr_shape *shape;
    const struct fp_jfr_pool *stacks; /* NULL: none */
    uint64_t rows;                    /* the chunk and the type */
};

/* The shape of no event: there is no such bit. */
static const struct fp_jfr_shape fp_jfr_no_shape = {.end = UINT64_C(1) << 63};

/* Looks up the type of an event.  0 if such events have no shape. */
static __attribute__((noinline)) int fp_jfr_of_shape(struct fp_jfr_reader *r, uint64_t id, struct fp_jfr_last *last) {
    const uint32_t type = id > 1 ? fp_jfr_find_type(r, id) : 0;
    const struct fp_jfr_program *program = type && r->types[type].is_row ? fp_jfr_prepared_of(r, type) : NULL;
    *last = (struct fp_jfr_last){.shape = &fp_jfr_no_shape};
    if (!program || !program->shape.n) return 0;
    *last = (struct fp_jfr_last){.id = id,
                                 .type = type,
                                 .stack_type = fp_jfr_slots_of(r, program)[FP_JFR_EVENT_STACK].type,
                                 .shape = &program->shape,
                                 .stacks = program->stacks,
                                 .rows = (uint64_t)r->epoch << 32 | type};
    return 1;
}

/* Up to here, an event can be decoded; the last one before it may end after it.  NULL: nowhere. */
static inline const uint8_t *fp_jfr_short_end(const uint8_t *p, const uint8_t *end, const uint8_t *readable) {
    const size_t left = (size_t)(end - p), there = (size_t)(readable - p);
    enum { HEAD = 2 * FP_JFR_LONGEST };
    if (left < HEAD || there < HEAD + FP_JFR_READ) return NULL;
    return left - HEAD < there - HEAD - FP_JFR_READ ? end - HEAD : readable - HEAD - FP_JFR_READ;
}

/* Finds the varints of the event at p, up to fp_jfr_short_end.  0 if it is not short, or a varint may have 9 bytes. */
FP_INLINE int fp_jfr_short_at(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                              const uint8_t *end, struct fp_jfr_last *last, struct fp_jfr_short *found) {
    uint64_t id;
    const uint8_t *body = found->body = fp_jfr_short_of_9(fp_jfr_short_of_9(p, &found->size), &id);
    if (FP_UNLIKELY(found->size > (uint64_t)(end - p))) return 0;
    if (FP_UNLIKELY(id != last->id) && !fp_jfr_of_shape(r, id, last)) return 0;
    const uint32_t stops = with.stops(body);
    found->begins = (uint64_t)stops << 1 | 1;
    const uint32_t n = with.nth(found->begins, last->shape->end);
    if (FP_UNLIKELY(n >= FP_JFR_BRIEF || (int64_t)n > (int64_t)found->size - (body - p))) return 0;
    uint32_t open = (uint32_t)with.lowest(~stops, n);
    open &= open >> 1;
    open &= open >> 2;
    return !(open & open >> 4); /* 8 in a row */
}

/* The varint from one byte to another, up to 8 bytes. */
FP_INLINE uint64_t fp_jfr_between(const struct fp_jfr_with with, const uint8_t *body, uint32_t from, uint32_t to) {
    return with.join(with.lowest(fp_u64(body + from), 8 * (to - from)));
}

FP_INLINE uint64_t fp_jfr_field_of(const struct fp_jfr_with with, const struct fp_jfr_short *event,
                                   struct fp_jfr_bits field) {
    return fp_jfr_between(with, event->body, with.nth(event->begins, field.from), with.nth(event->begins, field.to));
}

FP_INLINE uint64_t fp_jfr_ticks_of(const struct fp_jfr_with with, const struct fp_jfr_short *event) {
    return fp_jfr_between(with, event->body, 0, with.nth(event->begins, 2));
}

/* Its second value. */
FP_INLINE int64_t fp_jfr_value_of(const struct fp_jfr_with with, const struct fp_jfr_short *event,
                                  const struct fp_jfr_shape *shape) {
    return (int64_t)(fp_jfr_field_of(with, event, shape->value) << shape->unused_bits) >> shape->unused_bits;
}

#endif
