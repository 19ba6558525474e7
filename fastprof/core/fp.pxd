# The C core as Cython sees it: only what the .pyx files use.  The headers under csrc/ document everything.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from *:
    """
    #define fp_prefetch(p) __builtin_prefetch(p)
    """
    void fp_prefetch(const void *p) nogil


cdef extern from "core/fp.h" nogil:
    enum:
        FP_DONE
        FP_MORE
        FP_FULL
        FP_NEEDS
        FP_E_MALFORMED
        FP_E_TRUNCATED
        FP_E_OVERFLOW
        FP_E_NOMEM

    struct fp_err:
        int32_t code
        uint64_t line

    struct fp_window:
        const uint8_t *p
        size_t n
        size_t pos
        uint64_t base
        int32_t eof

    uint64_t fp_u64(const void *p)
    int fp_fail(fp_err *err, int code, uint64_t offset, const char *what)
    int fp_fail_text(fp_err *err, int code, uint64_t offset, uint64_t line, const char *what,
                     const void *text, size_t n, const char *want)


cdef extern from "core/array.h" nogil:
    int fp_array_room(void *array, uint32_t *cap, uint64_t need, size_t width)
    int fp_array_zeroed(void *array, uint32_t *cap, uint64_t need, size_t width)
    int fp_bytes_room(uint8_t **bytes, size_t *cap, size_t need)


cdef extern from "core/buf.h" nogil:
    struct fp_buf:
        uint8_t *p
        size_t n
        size_t cap

    int fp_buf_reserve(fp_buf *b, size_t more)


cdef extern from "core/digits.h" nogil:
    unsigned int fp_lowest_bit(uint64_t mask)
    bint fp_is_digit(uint8_t c)
    unsigned int fp_nibble(uint8_t c)
    bint fp_hexadecimal(const uint8_t **p, const uint8_t *end, uint64_t *v)
    bint fp_is_hex(const uint8_t *p, size_t n, uint64_t *to)
    const uint8_t *fp_decimal(const uint8_t *p, uint64_t *to)
    uint8_t *fp_put_decimal(uint8_t *to, uint64_t v)
    uint8_t *fp_put_signed(uint8_t *to, int64_t v)


cdef extern from "core/model.h" nogil:
    enum:
        FP_NO_ID
        FP_OBJECT_NAME
        FP_FUNCTION_OBJECT
        FP_FUNCTION_FILE
        FP_FUNCTION_NAME
        FP_FRAME_RETURN_ADDRESS
        FP_MODEL_STACKS

    struct fp_strings:
        uint32_t n

    struct fp_table:
        uint32_t n

    struct fp_model:
        fp_strings strings
        fp_table objects
        fp_table mappings
        fp_table functions
        fp_table stacks
        uint32_t n_waiting
        uint32_t n_renewed

    uint32_t fp_strings_hash(const void *p, size_t n)
    void fp_strings_prefetch(const fp_strings *s, uint32_t hash)
    uint32_t fp_strings_guess(const fp_strings *s, uint32_t hash)
    void fp_strings_prefetch_start(const fp_strings *s, uint32_t id)
    void fp_strings_prefetch_bytes(const fp_strings *s, uint32_t guess)
    void fp_model_prefetch_named(const fp_model *m, uint32_t name)
    void fp_model_prefetch_function(const fp_model *m, uint32_t name)
    int fp_strings_init(fp_strings *s)
    void fp_strings_empty(fp_strings *s)
    void fp_strings_clear(fp_strings *s)
    uint32_t fp_strings_intern(fp_strings *s, const void *p, size_t n)
    uint32_t fp_strings_intern_hashed(fp_strings *s, const void *p, size_t n, uint32_t hash)
    int fp_table_init(fp_table *t, uint32_t width)
    void fp_table_clear(fp_table *t)
    uint32_t fp_table_intern(fp_table *t, const uint32_t *row)
    uint32_t fp_table_find(const fp_table *t, const uint32_t *row)
    uint32_t fp_model_object(fp_model *m, uint32_t name, uint32_t build_id)
    uint32_t fp_model_function(fp_model *m, uint32_t object, uint32_t file, uint32_t name,
                               uint32_t system_name, uint32_t line)
    uint32_t fp_model_line(fp_model *m, uint32_t function, uint32_t line, uint32_t column, uint32_t outer)
    uint32_t fp_model_frame(fp_model *m, uint32_t mapping, uint64_t address, uint32_t flags, uint32_t lines)
    uint32_t fp_model_plain_frame(fp_model *m, uint32_t function)
    uint32_t fp_model_name_frame(fp_model *m, uint32_t name)
    uint32_t fp_model_stack(fp_model *m, uint32_t parent, uint32_t frame)
    int fp_model_stacks(fp_model *m, const uint32_t *frames, const uint32_t *depths, uint32_t n, uint32_t *nodes)
    uint32_t fp_model_label(fp_model *m, uint32_t next, uint32_t key, uint32_t string, int64_t number, uint32_t unit)
    uint32_t fp_model_thread(fp_model *m, uint32_t input_, uint32_t pid, uint32_t tid)
    const uint32_t *fp_table_row(const fp_table *t, uint32_t id)
    const uint8_t *fp_string(const fp_strings *s, uint32_t id, size_t *n)


cdef extern from "core/batch.h" nogil:
    enum:
        FP_COST
        FP_CALL
        FP_JUMP
        FP_JCND
        FP_BLOCK
        FP_OP_ENTER
        FP_OP_EXIT

    struct fp_batch:
        uint32_t cap
        uint32_t n
        uint32_t part
        uint32_t n_values
        int64_t *values
        uint64_t *time
        uint32_t *thread
        uint16_t *cpu
        uint8_t *op
        uint32_t *stack
        uint32_t *label
        uint32_t *function
        uint8_t *kind
        uint32_t *file
        uint32_t *line
        uint64_t *address
        uint64_t *bb
        uint32_t *callee
        uint32_t *target_file
        uint32_t *target_line
        uint64_t *target_address
        uint64_t *target_bb
        uint64_t *count
        uint64_t *count2

    int fp_batch_add_self(const fp_batch *b, int64_t *totals, uint32_t n_values)


cdef extern from "core/sort.h" nogil:
    struct fp_keyed:
        uint64_t key
        uint32_t more
        uint32_t item

    void fp_sort_keyed(fp_keyed *items, uint32_t n)
