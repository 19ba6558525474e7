/* Where the fields of usual events are. */
#include "jfr/fast_fields.h"

/* ---- shapes ---- */

/* Whether events are like most: a time, one sample each, and a stack that is a constant. */
static int is_usual(const struct fp_jfr_program *program, const struct fp_jfr_slot *slots,
                    const struct fp_jfr_event *event) {
    const struct fp_jfr_slot *value = &slots[FP_JFR_EVENT_VALUE];
    return program->has_keys && slots[FP_JFR_START].kind == FP_JFR_IS_NUMBER &&
           slots[FP_JFR_EVENT_STACK].kind == FP_JFR_IS_KEY && !event->weight && !value->unit;
}

/* The shape of usual events.  `n` is 0 if they have other fields than varints, or other ones between the keys. */
static struct fp_jfr_shape shape_of(struct fp_jfr_reader *r, const struct fp_jfr_program *program, int has_value) {
    uint32_t at = 0, from = UINT32_MAX, to = 0, start = UINT32_MAX, value = 0;
    struct fp_jfr_shape shape = {0};
    if (!program->varints || program->varints >= FP_JFR_BRIEF) return shape;
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct fp_jfr_op *op = &r->programs.ops[program->op + i];
        if (op->code == FP_JFR_OP_VARINTS) {
            at += op->n;
            continue;
        }
        if (op->slot == FP_JFR_START) start = at;
        if (op->slot == FP_JFR_EVENT_VALUE) {
            value = at;
            shape.has_value = 1;
            shape.unused_bits = 64 - 8u * op->width;
        }
        if (op->slot >= FP_JFR_EVENT_THREAD && op->slot <= FP_JFR_EVENT_CLASS) {
            if (from == UINT32_MAX) from = at;
            to = at + 1;
            shape.key[op->slot - FP_JFR_EVENT_THREAD] = (struct fp_jfr_varints){at, at + 1};
        }
        at++;
    }
    const int is_apart = !shape.has_value || value < from || value >= to;
    if (!is_apart || !has_value != !shape.has_value || start || from == UINT32_MAX) return shape;
    shape.keys = (struct fp_jfr_varints){from, to};
    if (shape.has_value) shape.value = (struct fp_jfr_varints){value, value + 1};
    shape.n = at;
    shape.number = ++r->programs.n_shapes;
    return shape;
}

const struct fp_jfr_program *fp_jfr_prepare(struct fp_jfr_reader *r, uint32_t type) {
    const struct fp_jfr_type *t = &r->metadata.types[type];
    (void)fp_jfr_program_of(r, type);
    struct fp_jfr_program *program = &r->programs.list[t->program - 1];
    if (!program->is_plain || !program->n_ops) return NULL;
    if (!program->slots) {
        const uint64_t need = ((uint64_t)r->programs.n_slots + 1) * FP_JFR_SLOTS;
        fp_array_room(&r->programs.slots, &r->programs.cap_slots, need, sizeof *r->programs.slots);
        program->slots = ++r->programs.n_slots;
        fp_jfr_plain_slots(r, program, fp_jfr_slots_of(r, program));
    }
    const struct fp_jfr_slot *slots = fp_jfr_slots_of(r, program);
    const uint32_t stacks = slots[FP_JFR_EVENT_STACK].type, number = r->metadata.types[stacks].pool;
    const int is_stack = number && r->metadata.types[stacks].role == FP_JFR_STACK;
    program->epoch = r->constants.epoch;
    program->is_usual = is_usual(program, slots, &fp_jfr_events[t->event - 1]);
    program->stacks = is_stack ? &r->constants.pools[number - 1] : NULL;
    program->shape =
        program->is_usual ? shape_of(r, program, fp_jfr_events[t->event - 1].value) : (struct fp_jfr_shape){0};
    return program;
}

/* ---- layouts ---- */

enum { MOST_TYPES = 1 << 16, MOST_KEYS = 14 }; /* both fit in struct fp_jfr_summed */

int fp_jfr_of_shape(struct fp_jfr_reader *r, const uint8_t *p, struct fp_jfr_last *last) {
    uint64_t size, id;
    const uint8_t *then = fp_jfr_short_of_9(p, &size), *body = fp_jfr_short_of_9(then, &id);
    const uint32_t n_size = 8 * (uint32_t)(then - p), n_head = 8 * (uint32_t)(body - p);
    const uint32_t type = id > 1 ? fp_jfr_find_type(r, id) : 0;
    const int is_row = type && type < MOST_TYPES && n_head <= 64 && r->metadata.types[type].is_row;
    const struct fp_jfr_program *program = is_row ? fp_jfr_prepared_of(r, type) : NULL;
    *last = fp_jfr_no_type;
    if (!program || !program->shape.n) return 0;
    const uint64_t of_size = (UINT64_C(1) << n_size) - 1, all = UINT64_MAX >> (64 - n_head);
    const uint64_t mask = (all & ~of_size) | (of_size & UINT64_C(0x8080808080808080));
    *last = (struct fp_jfr_last){.mask = mask,
                                 .head = fp_u64(p) & mask,
                                 .size = of_size & UINT64_C(0x7f7f7f7f7f7f7f7f),
                                 .of = (uint64_t)program->shape.number << 32,
                                 .high = (uint64_t)type << 48,
                                 .n_head = n_head / 8,
                                 .type = type,
                                 .stack_type = fp_jfr_slots_of(r, program)[FP_JFR_EVENT_STACK].type,
                                 .shape = &program->shape,
                                 .stacks = program->stacks,
                                 .rows = (uint64_t)r->constants.epoch << 32 | type};
    return 1;
}

/* The number of bytes from `begins` of the first of these varints to that of the one after the last. */
static uint8_t bytes_of(const uint8_t *begins, struct fp_jfr_varints those) {
    return (uint8_t)(begins[those.to] - begins[those.from]);
}

const struct fp_jfr_layout *fp_jfr_new_layout(struct fp_jfr_reader *r, const struct fp_jfr_last *last, uint32_t stops) {
    const struct fp_jfr_shape *shape = last->shape;
    uint8_t begins[FP_JFR_BRIEF + 1] = {0};
    const uint64_t of = last->of | stops;
    for (uint32_t i = 0; i < shape->n; i++, stops &= stops - 1) {
        if (!stops) return NULL;
        begins[i + 1] = (uint8_t)(__builtin_ctz(stops) + 1);
        if (begins[i + 1] - begins[i] >= FP_JFR_LONGEST) return NULL;
    }
    const struct fp_jfr_varints stack = shape->key[FP_JFR_EVENT_STACK - FP_JFR_EVENT_THREAD];
    const uint8_t n_keys = bytes_of(begins, shape->keys);
    if (n_keys > MOST_KEYS) return NULL;
    struct fp_jfr_layout *at = fp_jfr_layout_at(r, of);
    *at = (struct fp_jfr_layout){.of = of,
                                 .n_time = (uint8_t)(8 * begins[1]),
                                 .keys = begins[shape->keys.from],
                                 .n_low = (uint8_t)(8 * (n_keys < 8 ? n_keys : 8)),
                                 .n_high = (uint8_t)(n_keys < 8 ? 0 : 8 * (n_keys - 8)),
                                 .stack = begins[stack.from],
                                 .n_stack = (uint8_t)(8 * bytes_of(begins, stack)),
                                 .value = begins[shape->value.from],
                                 .n_value = (uint8_t)(8 * bytes_of(begins, shape->value))};
    return at;
}
