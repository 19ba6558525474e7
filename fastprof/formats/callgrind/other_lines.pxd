"""Any line: tabs, CR, hex or negative counts, ranges, names in full, and what is wrong.

Part of _lexer.pyx.  These functions know the whole grammar, and each error states the found and the expected text.
They read the lines that lines.pxd does not.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *
from fastprof.formats.callgrind.body cimport *
from fastprof.formats.callgrind.names cimport *
from fastprof.formats.callgrind.positions cimport *


cdef inline int other_line(Body *body, const uint8_t **at, const uint8_t *end, fp_batch *b, fp_err *err) noexcept nogil:
    """Reads one line at at[0], which then moves past it unless the status is FP_FULL, FP_NEEDS or an error."""
    cdef const uint8_t *p = at[0]
    cdef const uint8_t *next
    cdef uint64_t offset = <size_t>p + body.shift
    cdef uint64_t rounded = body.counts.rounded_counts, indented = body.counts.indented_lines, wrapped = body.wrapped.n
    cdef int status
    body.line += 1
    body.names.undefined = 0
    next = <const uint8_t *>memchr(p, c'\n', end - p) + 1
    status = any_line(body, p, next, offset, b, err)
    if status == OK:
        at[0] = next
        return OK
    if status == BAD:
        err.line = body.line
        if not body.lenient:
            return err.code
        body.counts.unreadable_lines += 1
        body.counts.rounded_counts = rounded
        body.wrapped.n = wrapped
        at[0] = next
        return OK
    # it is looked at again, or dropped
    body.line -= 1
    body.counts.indented_lines = indented
    if status == FP_NEEDS:
        body.line_length = next - p
    return status


cdef inline int any_line(Body *body, const uint8_t *p, const uint8_t *next, uint64_t offset, fp_batch *b,
                         fp_err *err) noexcept nogil:
    cdef const uint8_t *stop = next - 1  # the end of the text: CR or newline
    cdef uint8_t c
    while stop != p and (stop - 1)[0] == c'\r':
        stop -= 1
    if p[0] == c' ' or p[0] == c'\t':
        p = blanks(p)
        if p >= stop:
            return OK
        body.counts.indented_lines += 1
    if p == stop:
        return OK
    if not body.has_events and not body.names.numbered:
        # read.py reads all lines of Cachegrind's header, because a command may contain any text
        return FP_NEEDS
    c = p[0]
    if begins_cost(c):
        return position_line(body, p, stop, offset, b, err)
    if c == c'#':
        if body.keeps_comments:
            return FP_NEEDS
        body.counts.excess_comments += 1
        return OK
    return keyword_line(body, p, stop, offset, b, err)


cdef inline int keyword_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                             fp_err *err) noexcept nogil:
    """A line that begins with a word and `=`."""
    cdef size_t n = stop - p
    if n >= 3 and p[2] == c'=':
        if p[0] == c'f':
            if p[1] == c'n':
                return fn_line(body, p + 3, stop, offset, b, err)
            if p[1] == c'l':
                return fl_line(body, p + 3, stop, offset, b, err)
            if p[1] == c'i' or p[1] == c'e':
                return file_line(body, p + 3, stop, offset, &body.file, err)
        elif p[0] == c'o' and p[1] == c'b':
            return object_line(body, p + 3, stop, offset, &body.object, err)
    if n >= 4 and p[3] == c'=':
        if memcmp(p, b"cfn", 3) == 0:
            return cfn_line(body, p + 4, stop, offset, err)
        if memcmp(p, b"cfi", 3) == 0 or memcmp(p, b"cfl", 3) == 0:
            return file_line(body, p + 4, stop, offset, &body.cfi, err)
        if memcmp(p, b"cob", 3) == 0:
            return object_line(body, p + 4, stop, offset, &body.cob, err)
        if memcmp(p, b"jfi", 3) == 0:
            return file_line(body, p + 4, stop, offset, &body.jfi, err)
        if memcmp(p, b"jfn", 3) == 0:
            return jfn_line(body, p + 4, stop, offset, err)
        if memcmp(p, b"rec", 3) == 0:
            begin_context(body)
            return OK
    if n >= 5 and p[4] == c'=' and memcmp(p, b"frfn", 4) == 0:
        return context_line(body, p + 5, stop, offset, err)
    if n >= 5 and memcmp(p, b"jump=", 5) == 0:
        return count_line(body, p + 5, stop, offset, FP_JUMP, err)
    if n >= 5 and memcmp(p, b"jcnd=", 5) == 0:
        return count_line(body, p + 5, stop, offset, FP_JCND, err)
    if n >= 6 and memcmp(p, b"calls=", 6) == 0:
        return count_line(body, p + 6, stop, offset, FP_CALL, err)
    if n >= 7 and memcmp(p, b"rcalls=", 7) == 0:
        return count_line(body, p + 7, stop, offset, FP_CALL, err)
    return FP_NEEDS


# ---- lines with names -----------------------------------------------
# p: after the `=`

cdef inline int object_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, uint32_t *object,
                            fp_err *err) noexcept nogil:
    cdef uint32_t s = 0
    cdef uint64_t key = 0
    cdef fp_callgrind_number *e
    cdef int status
    body.begun = True
    status = name(&body.names, p, stop, FP_NAMED_OBJECT, offset, &s, &key, NULL, err)
    if status != OK:
        return status
    object[0] = fp_model_object(body.model, s, 0) if s else 0
    if object[0] == FP_NO_ID:
        return FP_E_NOMEM
    if key:
        e = fp_callgrind_numbers_find(&body.names.numbers[FP_NAMED_OBJECT], key - 1)
        if e == NULL:
            return FP_E_NOMEM
        e.object = object[0]
    return OK


cdef inline int file_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, uint32_t *file,
                          fp_err *err) noexcept nogil:
    body.begun = True
    return name(&body.names, p, stop, FP_NAMED_FILE, offset, file, NULL, NULL, err)


cdef inline int fl_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                        fp_err *err) noexcept nogil:
    cdef bint ends = not body.names.numbered  # in Cachegrind it ends the function, too
    cdef int status = flush_block(body, b) if ends else OK
    if status != OK:
        return status
    status = file_line(body, p, stop, offset, &body.file, err)
    if status != OK:
        return status
    body.block_file = body.file
    if ends:
        # lines before the next fn= belong to no function
        body.function = UNRESOLVED
        body.in_function = False
    return OK


cdef inline int fn_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                        fp_err *err) noexcept nogil:
    cdef uint32_t s = 0
    cdef uint64_t key = 0
    cdef bint defined = False
    cdef int status = flush_block(body, b)
    if status != OK:
        return status
    status = name(&body.names, p, stop, FP_NAMED_FUNCTION, offset, &s, &key, &defined, err)
    if status == OK:
        begin_function(body, s, key, defined)
    return status


cdef inline int cfn_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset,
                         fp_err *err) noexcept nogil:
    cdef uint32_t s = 0
    cdef uint64_t key = 0
    cdef int status = name(&body.names, p, stop, FP_NAMED_FUNCTION, offset, &s, &key, NULL, err)
    if status == OK:
        begin_callee(body, s, key)
    return status


cdef inline int jfn_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset,
                         fp_err *err) noexcept nogil:
    cdef uint32_t s = 0, function = UNRESOLVED
    cdef uint64_t key = 0
    cdef fp_callgrind_number *e
    cdef int status
    body.begun = True
    status = name(&body.names, p, stop, FP_NAMED_FUNCTION, offset, &s, &key, NULL, err)
    if status != OK:
        return status
    # A jump does not state its function's file, so it looks a function up but never binds it.
    if key:
        e = fp_callgrind_numbers_find(&body.names.numbers[FP_NAMED_FUNCTION], key - 1)
        if e == NULL:
            return FP_E_NOMEM
        function = UNRESOLVED if e.again else e.function
    if function == UNRESOLVED:
        function = fp_model_function(body.model, body.object, body.jfi if body.jfi != UNSET else target_home(body),
                                     s, 0, 0)
    if function == FP_NO_ID:
        return FP_E_NOMEM
    body.jfn = function
    return OK


cdef inline int context_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset,
                             fp_err *err) noexcept nogil:
    # --mangle-names=no: rec= and frfn= (the caller) distinguish blocks of a function, but no call states which
    # of them it enters, so all are that function.  The line may define a number.
    cdef uint32_t caller = 0
    cdef int status = name(&body.names, p, stop, FP_NAMED_FUNCTION, offset, &caller, NULL, NULL, err)
    if status == OK:
        begin_context(body)
    return status


# ---- lines with numbers -------------------------------------------------------

cdef inline int count_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, uint32_t kind,
                           fp_err *err) noexcept nogil:
    """The fields after calls=, jump= or jcnd= at p."""
    cdef const uint8_t *first = p
    cdef bint fits = True
    cdef int status
    cdef uint32_t was = body.pending
    body.begun = True
    body.pending = DISCARD
    if was != FP_COST:
        status = fp_fail(err, FP_E_MALFORMED, body.pending_offset, "no cost line follows this line")
        if not body.lenient:
            body.line = body.pending_line
            return BAD
        body.counts.unreadable_lines += 1
    body.pending_line = body.line
    body.pending_offset = offset
    body.count2 = 0
    p = count_number(&body.counts, body.line, blanks(p), &body.count, &fits)
    if p != NULL and kind == FP_JCND:
        # 3/4, or 3 4 as in the format document
        p = count_number(&body.counts, body.line, blanks(p + (p[0] == c'/')), &body.count2, &fits)
    if p == NULL or not ends_word(p, stop):
        fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count of calls or jumps", first, stop - first, "a number")
        return BAD
    if not fits:
        fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "count of calls or jumps", first, p - first, "below 2^64")
        return BAD
    status = positions(&body.costs, &body.counts, &p, stop, offset, &body.target, err)
    if status != OK:
        return status
    if blanks(p) < stop:
        body.counts.extra_numbers += 1
    if kind == FP_CALL:
        status = resolve_callee(body)
        if status != OK:
            return status
    body.pending = kind
    return OK


cdef inline int position_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                              fp_err *err) noexcept nogil:
    """Positions and counts at p: self cost, or what a calls= or jump line announced."""
    cdef fp_callgrind_position here
    cdef uint32_t i = b.n, k = 0, kind
    cdef int status
    if not body.has_events:
        if body.costs.n_values:
            return FP_NEEDS  # the part inherits the previous part's events if the reader confirms
        fp_fail_text(err, FP_E_MALFORMED, offset, 0, "line before `events:`", p, stop - p, "a header line")
        return BAD
    if body.pending == DISCARD:
        # its calls= or jump= line was skipped, so this is not self cost
        body.pending = FP_COST
        body.counts.unreadable_lines += 1
        return OK
    if i == b.cap:
        return FP_FULL
    if body.function == UNRESOLVED:
        status = resolve(body)
        if status != OK:
            return status
    kind = body.pending
    body.pending = FP_COST  # even if this line is skipped
    status = positions(&body.costs, &body.counts, &p, stop, offset, &here, err)
    if status != OK:
        return status
    if kind == FP_COST:
        body.costs.base = here  # even if its counts cannot be parsed
        begin_lines(body)
    if kind < FP_JUMP:
        status = counts_of_line(body, p, stop, offset, b, &k, err)
        if status != OK:
            return status
    elif blanks(p) < stop:
        body.counts.extra_numbers += 1  # a jump costs nothing
    new_row(body, b, kind, k)
    b.address[i] = here.address
    b.bb[i] = here.bb
    b.line[i] = <uint32_t>here.line
    if kind != FP_COST:
        finish_row(body, b, i, kind)
        return OK
    while k:
        k -= 1
        fp_callgrind_costs_add(&body.costs, k, b.values[<size_t>k * b.cap + i])
    return OK


cdef inline int counts_of_line(Body *body, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                               uint32_t *n, fp_err *err) noexcept nogil:
    """Counts up to the end of a line, as values of row b.n; n[0] becomes how many.  OK or BAD."""
    cdef const uint8_t *first
    cdef uint64_t v = 0, rounded
    cdef bint fits, negative
    while True:
        p = blanks(p)
        if p >= stop:
            return OK
        if p[0] == c'#':
            body.counts.trailing_comments += 1
            return OK
        first = p
        fits = True
        rounded = body.counts.rounded_counts
        negative = p[0] == c'-'
        if p[0] == c'.' and not fp_is_digit(p[1]):
            v = 0
            p += 1
        else:
            p = count_number(&body.counts, body.line, p + negative, &v, &fits)
        if p == NULL or not ends_word(p, stop):
            fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count", first, stop - first, "a number")
            return BAD
        if n[0] == body.costs.n_values:
            fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count beyond the last event", first, stop - first,
                         "one count per event")
            return BAD
        if v >> 63 and fits:
            fits = v << 1 != 0 and not negative and body.counts.rounded_counts == rounded
            if fits:
                note_wrapped(body, n[0], v, offset)
        if not fits:
            fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "count", first, p - first, "at most 2^63 - 1")
            return BAD
        b.values[<size_t>n[0] * b.cap + b.n] = -<int64_t>v if negative else <int64_t>v
        n[0] += 1


cdef inline void note_wrapped(Body *body, uint32_t k, uint64_t v, uint64_t offset) noexcept nogil:
    """Notes a count in column k that may be a negative one written without a sign."""
    if not body.wrapped.n:
        body.wrapped.first = v
        body.wrapped.line = body.line
        body.wrapped.offset = offset
    body.wrapped.n += 1
    body.wrapped_in[k] = True
