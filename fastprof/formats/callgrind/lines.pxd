"""Lines in the form that Callgrind writes them, of which nearly all of a file consists.

Part of _lexer.pyx.  csrc/callgrind/lines.c has found the lines and their numbers; a function here reads a line only if
it has the usual form, and otherwise does nothing, so that other_lines.pxd can read it.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *
from fastprof.formats.callgrind.body cimport *
from fastprof.formats.callgrind.names cimport *
from fastprof.formats.callgrind.positions cimport *


cdef inline uint32_t cost_lines(Body *body, uint32_t line, const uint8_t *text, fp_batch *b) noexcept nogil:
    """Reads cost lines of the text, from that line on; returns how many."""
    cdef uint32_t i = b.n, k, n, kind = body.pending
    if (not body.has_events or kind == DISCARD or i == b.cap
            or body.function == UNRESOLVED and resolve(body) != OK):
        return 0
    body.costs.function = body.function
    body.costs.file = body.file
    n = fp_callgrind_cost_rows(&body.costs, kind, &body.lines, line, b)
    if n == 0 and not fp_callgrind_cost_row(&body.costs, kind, text + body.lines.begin[line], b):
        return 0
    if kind != FP_COST:
        finish_row(body, b, i, kind)
        body.pending = FP_COST
        if body.file != body.costs.file:
            # the file was given for the call, not for the costs after it
            for k in range(i + 1, b.n):
                b.file[k] = body.file
    if kind == FP_COST or n > 1:
        begin_lines(body)
    return max(n, <uint32_t>1)


cdef inline bint short_line(Body *body, uint32_t i, const uint8_t *text) noexcept nogil:
    """Reads line i of the text if it is a reference like `cfn=(12)`, the definition of a function's number, a
    calls= or a jump line, or empty.  False for other lines."""
    cdef const uint8_t *p = text + body.lines.begin[i]
    cdef const uint8_t *stop = text + body.lines.begin[i + 1] - 1
    if not body.has_events and not body.names.numbered:
        return False
    # a byte is read only if the previous one is not the newline
    if p[0] == c'c':
        return callee_line(body, i, p, stop)
    if p[0] == c'f':
        if p[1] == c'n' and p[2] == c'=':
            if block_is_due(body):
                return False
            return named_function(body, i, p + 3, stop, False) if body.names.numbered else full_name(body, p + 3)
        if (p[1] == c'i' or p[1] == c'e') and p[2] == c'=':
            return reference(body, i, p + 3, stop, FP_NAMED_FILE, &body.file)
        if p[1] == c'l' and p[2] == c'=' and reference(body, i, p + 3, stop, FP_NAMED_FILE, &body.file):
            body.block_file = body.file
            return True
    elif p[0] == c'j':
        return jump_line(body, i, p, stop)
    elif p[0] == c'o' and p[1] == c'b' and p[2] == c'=':
        return reference(body, i, p + 3, stop, FP_NAMED_OBJECT, &body.object)
    return p[0] == c'\n'


cdef inline bint callee_line(Body *body, uint32_t i, const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Lines that begin with c."""
    if p[1] == c'f' and p[2] == c'n' and p[3] == c'=':
        return named_function(body, i, p + 4, stop, True)
    if p[1] == c'f' and (p[2] == c'i' or p[2] == c'l') and p[3] == c'=':
        return reference(body, i, p + 4, stop, FP_NAMED_FILE, &body.cfi)
    if p[1] == c'o' and p[2] == c'b' and p[3] == c'=':
        return reference(body, i, p + 4, stop, FP_NAMED_OBJECT, &body.cob)
    if p[1] == c'a' and p[2] == c'l' and p[3] == c'l' and p[4] == c's' and p[5] == c'=':
        return short_count(body, p, p + 6, FP_CALL)
    return False


cdef inline bint jump_line(Body *body, uint32_t i, const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Lines that begin with j."""
    if p[1] == c'u' and p[2] == c'm' and p[3] == c'p' and p[4] == c'=':
        return short_count(body, p, p + 5, FP_JUMP)
    if p[1] == c'c' and p[2] == c'n' and p[3] == c'd' and p[4] == c'=':
        return short_count(body, p, p + 5, FP_JCND)
    if p[1] == c'f' and p[2] == c'i' and p[3] == c'=':
        return reference(body, i, p + 4, stop, FP_NAMED_FILE, &body.jfi)
    return False


cdef inline bint reference(Body *body, uint32_t i, const uint8_t *p, const uint8_t *stop, int kind,
                           uint32_t *to) noexcept nogil:
    """`(12)` of a file or an object, from p up to the end of line i."""
    cdef fp_callgrind_number *e = numbered_name(&body.names, &body.lines, i, p, stop, kind)
    if e == NULL:
        return False
    to[0] = e.object if kind == FP_NAMED_OBJECT else e.name
    body.begun = True
    return True


cdef inline bint named_function(Body *body, uint32_t i, const uint8_t *p, const uint8_t *stop,
                                bint is_callee) noexcept nogil:
    """`(12)` or `(12) name` after fn= or cfn=."""
    cdef uint64_t id
    cdef bint defined
    cdef fp_callgrind_number *e = function_name(&body.names, &body.lines, i, p, stop, &id, &defined)
    if e == NULL:
        return False
    if is_callee:
        begin_callee(body, e.name, id + 1)
    else:
        begin_function(body, e.name, id + 1, defined)
    return True


cdef inline bint full_name(Body *body, const uint8_t *p) noexcept nogil:
    """`name` after fn= where names have no numbers, if `look_ahead` saw it."""
    cdef Seen *seen = seen_at(&body.names, p)
    cdef uint32_t s
    if seen == NULL:
        return False
    s = fp_strings_intern_hashed(&body.names.model.strings, seen.name, seen.n, seen.hash)
    if s == FP_NO_ID:
        return False
    begin_function(body, s, 0, False)
    return True


cdef inline bint short_count(Body *body, const uint8_t *line, const uint8_t *p, uint32_t kind) noexcept nogil:
    """`2 0x4011 +3 ` or `3/4 +2 ` at p, after calls=, jump= or jcnd= at `line`."""
    cdef fp_callgrind_position target
    cdef uint64_t count, count2 = 0
    if body.pending != FP_COST:
        return False
    memset(&target, 0, sizeof(fp_callgrind_position))
    p = fp_decimal(p, &count)
    if p == NULL:
        return False
    if kind == FP_JCND:
        if p[0] != c'/':
            return False
        p = fp_decimal(p + 1, &count2)
        if p == NULL:
            return False
    if p[0] != c' ':
        return False
    p = fp_callgrind_text_positions(&body.costs, p + 1, &target)
    if p == NULL or p[0] != c'\n':
        return False
    if kind == FP_CALL and resolve_callee(body) != OK:
        return False
    body.begun = True
    body.count = count
    body.count2 = count2
    body.target = target
    body.pending = kind
    body.pending_line = body.line + 1
    body.pending_offset = <size_t>line + body.shift
    return True
