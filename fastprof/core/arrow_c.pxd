# The structures of Arrow's C data interface, which it fixes: https://arrow.apache.org/docs/format/CDataInterface.html
from libc.stdint cimport int64_t


cdef extern from *:
    """
    struct ArrowSchema {
        const char *format, *name, *metadata;
        int64_t flags, n_children;
        struct ArrowSchema **children, *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children, *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
    };
    """
    struct ArrowSchema:
        const char *format
        const char *name
        const char *metadata
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept
        void *private_data

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept
        const char *(*get_last_error)(ArrowArrayStream *) noexcept
        void (*release)(ArrowArrayStream *) noexcept
        void *private_data
