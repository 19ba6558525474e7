/* jfr/fast_fields.h - usual events of few bytes, decoded without a loop over their fields.  C only. */
#pragma once

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
    uint64_t (*lowest)(uint64_t, uint32_t); /* the lowest n bits; all if n is 64 or more */
};

/* Where the fields of short events are that have equal lengths, so that their varints end at the same bytes. */
struct fp_jfr_layout {
    uint64_t of; /* the shape's number << 32 | the ends of the varints, as in fp_jfr_with */
    /* the first byte in the body, from which a field has n bits; the time begins the body */
    uint8_t n_time, keys, n_low, n_high, stack, n_stack, value, n_value;
};
enum { FP_JFR_LAYOUTS = 1 << 8 };

static inline struct fp_jfr_layout *fp_jfr_layout_at(const struct fp_jfr_reader *r, uint64_t of) {
    return &r->programs.layouts[of * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* A short event. */
struct fp_jfr_short {
    const uint8_t *body;
    uint64_t size; /* with the head */
    const struct fp_jfr_layout *at;
};

/* The type of the last event; most are of the same.  The head of an event of this type, as 8 bytes of the file:
 *
 *   94 80 80 00 | ce 02      the size is 20, in 4 bytes, the type 334
 *   02 ce 00 80 80 80        `head`, the highest byte first; `mask` is ff ff 80 80 80 80
 */
struct fp_jfr_last {
    uint64_t mask, head, size; /* `size`: the groups of 7 bits that are its size */
    uint64_t of;               /* of its layouts */
    uint64_t high;             /* in struct fp_jfr_summed */
    uint32_t n_head;           /* bytes */
    uint32_t type, stack_type;
    const struct fp_jfr_shape *shape;
    const struct fp_jfr_pool *stacks; /* NULL: none */
    uint64_t rows;                    /* the chunk and the type */
};

/* No type: nothing has this head. */
static const struct fp_jfr_last fp_jfr_no_type = {.head = 1};

/* The type and the head of the event at p.  0 if such events have no shape. */
int fp_jfr_of_shape(struct fp_jfr_reader *r, const uint8_t *p, struct fp_jfr_last *last);

/* Where the fields are of events that have `left` bytes in all, and whose varints end at `stops`.  NULL: they are not
 * short, or a varint may have 9 bytes. */
const struct fp_jfr_layout *fp_jfr_new_layout(struct fp_jfr_reader *r, const struct fp_jfr_last *last, uint32_t stops);

/* Up to here, an event can be decoded; the last one before it may end after it.  NULL: nowhere. */
static inline const uint8_t *fp_jfr_short_end(const uint8_t *p, const uint8_t *end, const uint8_t *readable) {
    const size_t left = (size_t)(end - p), there = (size_t)(readable - p);
    enum { HEAD = 2 * FP_JFR_LONGEST };
    if (left < HEAD || there < HEAD + FP_JFR_READ) return NULL;
    return left - HEAD < there - HEAD - FP_JFR_READ ? end - HEAD : readable - HEAD - FP_JFR_READ;
}

/* Finds the fields of the event at p, up to fp_jfr_short_end.  0 if it is not short, or a varint may have 9 bytes. */
FP_INLINE int fp_jfr_short_at(const struct fp_jfr_with with, struct fp_jfr_reader *r, const uint8_t *p,
                              const uint8_t *end, struct fp_jfr_last *last, struct fp_jfr_short *found) {
    if (FP_UNLIKELY((fp_u64(p) & last->mask) != last->head) && !fp_jfr_of_shape(r, p, last)) return 0;
    found->size = with.join(fp_u64(p) & last->size);
    found->body = p + last->n_head;
    const uint64_t left = found->size - last->n_head;
    if (FP_UNLIKELY(left >= FP_JFR_BRIEF || found->size > (uint64_t)(end - p))) return 0;
    const uint32_t stops = with.stops(found->body) & ((UINT32_C(1) << left) - 1);
    const uint64_t of = last->of | stops;
    const struct fp_jfr_layout *at = fp_jfr_layout_at(r, of);
    if (FP_UNLIKELY(at->of != of) && !(at = fp_jfr_new_layout(r, last, stops))) return 0;
    found->at = at;
    return 1;
}

/* The varint of n bits, up to 64, from a byte on. */
FP_INLINE uint64_t fp_jfr_field_at(const struct fp_jfr_with with, const uint8_t *p, uint32_t n) {
    return with.join(with.lowest(fp_u64(p), n));
}

FP_INLINE uint64_t fp_jfr_ticks_of(const struct fp_jfr_with with, const struct fp_jfr_short *event) {
    return fp_jfr_field_at(with, event->body, event->at->n_time);
}

/* The second value of an event, as a signed number of the bytes that its type has. */
FP_INLINE int64_t fp_jfr_value_of(const struct fp_jfr_with with, const struct fp_jfr_short *event,
                                  const struct fp_jfr_shape *shape) {
    const uint64_t value = fp_jfr_field_at(with, event->body + event->at->value, event->at->n_value);
    return (int64_t)(value << shape->unused_bits) >> shape->unused_bits;
}
