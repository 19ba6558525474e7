"""The part of csrc/callgrind that the lexer and the writers use."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from fastprof.core.fp cimport *


cdef extern from "callgrind/lines.h" nogil:
    struct fp_callgrind_lines:
        uint32_t n
        uint16_t *begin
        uint16_t *first
        int64_t *value
        uint8_t *cost

    uint32_t fp_callgrind_costs_wide()
    uint64_t fp_callgrind_line_bits(const uint8_t *map, uint32_t at)
    const uint8_t *fp_callgrind_lines_read(fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                                           uint32_t columns, uint32_t wide)


cdef extern from "callgrind/rows.h" nogil:
    struct fp_callgrind_position:
        uint64_t address
        uint64_t bb
        uint64_t line

    struct fp_callgrind_costs:
        uint32_t instr, bb, lines
        uint32_t n_values
        uint32_t function, file
        uint32_t wide
        fp_callgrind_position base
        int64_t *totals
        int64_t *recent
        int64_t sums[16]
        int64_t *beyond

    const uint8_t *fp_callgrind_text_positions(const fp_callgrind_costs *s, const uint8_t *p, fp_callgrind_position *to)
    void fp_callgrind_costs_add(fp_callgrind_costs *s, uint32_t k, int64_t v)
    void fp_callgrind_costs_flush(fp_callgrind_costs *s)
    uint32_t fp_callgrind_cost_rows(fp_callgrind_costs *s, uint32_t kind, const fp_callgrind_lines *l, uint32_t i, fp_batch *b)
    bint fp_callgrind_cost_row(fp_callgrind_costs *s, uint32_t kind, const uint8_t *p, fp_batch *b)


cdef extern from "callgrind/numbers.h" nogil:
    struct fp_callgrind_number:
        uint32_t name
        uint32_t function
        uint32_t file
        bint again
        uint32_t object
        bint object_assumed

    struct fp_callgrind_numbers:
        size_t n

    fp_callgrind_number *fp_callgrind_numbers_find(fp_callgrind_numbers *t, uint64_t id)
    const void *fp_callgrind_numbers_place_of(const fp_callgrind_numbers *t, uint64_t id)
    void fp_callgrind_numbers_define(fp_callgrind_numbers *t, fp_callgrind_number *number, uint32_t name)
    void fp_callgrind_numbers_clear(fp_callgrind_numbers *t)


cdef extern from "callgrind/write.h" nogil:
    enum:
        FP_NAMED_FUNCTION
        FP_NAMED_FILE
        FP_NAMED_OBJECT
        FP_NAMED_KINDS

    struct fp_callgrind_line_names:
        uint64_t escaped

    const uint8_t *fp_callgrind_line_name(fp_callgrind_line_names *t, const fp_strings *strings, uint32_t name, size_t *n)

    struct fp_callgrind_body:
        fp_model *model
        fp_buf *out
        uint32_t compress_names, compress_positions
        uint32_t wide
        uint32_t n_values
        size_t room
        fp_callgrind_line_names line_names[FP_NAMED_KINDS]

    void fp_callgrind_body_start_part(fp_callgrind_body *w, uint32_t n_values, uint32_t instr, uint32_t bb, uint32_t lines,
                                      uint32_t all_counts)
    int fp_callgrind_body_put(fp_callgrind_body *w, const fp_batch *b)
    uint8_t *fp_callgrind_body_lines(fp_callgrind_body *w, const fp_batch *b, uint32_t i, uint8_t *p, uint32_t *next)
    int fp_callgrind_body_end_part(fp_callgrind_body *w)
    void fp_callgrind_body_free(fp_callgrind_body *w)
