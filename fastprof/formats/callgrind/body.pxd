"""Where in a part's body the lexer is: which function, callee and jump the next rows belong to.

Part of _lexer.pyx.  lines.pxd and other_lines.pxd read lines, each of which changes this state or makes a row of it.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memset

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *
from fastprof.formats.callgrind.names cimport *
from fastprof.formats.callgrind.positions cimport *

cdef enum:
    UNRESOLVED = 0        # a function that is named but not looked up yet
    UNSET = 0xffffffff
    DISCARD = 255         # pending: the next position line belongs to a line that was skipped


cdef struct Body:
    # of the whole input
    fp_model *model
    bint lenient
    bint binds                 # a number is one function, whatever its file
    bint by_cost_file          # written by Callgrind: fi= is valid for the next line only, see `target_home` and `end_call_row`
    bint by_name               # a callee without a file is the last function of its name, see `named_last`
    uint32_t *latest           # with by_name: by name, the function of its last fn=; 0: none yet
    uint32_t n_latest
    bint keeps_comments        # ask the reader about comments; else count them
    Counts counts
    Names names
    uint64_t line              # lines read so far
    size_t line_length         # after FP_NEEDS: bytes of the line with its newline
    fp_callgrind_lines lines             # of the text at hand
    size_t shift               # a pointer into the text plus this is the absolute offset
    # of this part
    bint has_events
    bint begun                 # a body line was seen
    fp_callgrind_costs costs             # columns, base, totals
    Wrapped wrapped            # counts of more than 2^63,
    int64_t *wrapped_in        # and of each column: are there any?
    # the current function
    uint32_t object, file
    uint32_t block_file        # of the last fl=, or UNSET
    uint32_t cost_file         # of the last self cost line of the function, else the function's
    uint32_t call_file         # of the last call or jump line with a separate fi=, else UNSET
    uint64_t call_address      # and where that line was
    uint32_t call_line
    uint32_t function          # or UNRESOLVED, and then:
    uint32_t fn_name, fn_file, fn_object
    uint64_t fn_key            # its number + 1, or 0
    bint fn_defined            # fn= only defined a number; it begins no block yet
    bint in_function
    # the callee being named
    uint32_t cob, cfi          # or UNSET
    uint32_t callee            # or UNRESOLVED, and then:
    uint32_t callee_name
    uint64_t callee_key
    bint has_callee
    # the target of the jump being named
    uint32_t jfi, jfn          # or UNSET
    # calls=, jump= or jcnd= whose position line comes next
    uint32_t pending           # FP_CALL, FP_JUMP or FP_JCND; FP_COST: none; or DISCARD
    uint64_t pending_line, pending_offset
    uint64_t count, count2
    fp_callgrind_position target
    uint32_t called            # the callee


# ---- functions --------------------------------------------------------------

cdef inline uint32_t home(const Body *body) noexcept nogil:
    """The file of a function that is named now."""
    # lsprofcalltree and similar writers use only fi=
    return body.block_file if body.block_file != UNSET else body.file


cdef inline uint32_t target_home(const Body *body) noexcept nogil:
    """The file of a callee or of a jump's target, if it is not given.

    Callgrind leaves cfi= and jfi= out where that file is the one of the last self cost line (dump.c, fprint_jcc: `last`
    moves at cost lines only), although it has just written fi= for the call.  Here g is a function of a.c:

        fl=a.c / fn=f / 10 1 / fi=b.h / cfn=g / calls=1 3 / 20 5
    """
    return body.cost_file if body.by_cost_file else body.file


cdef inline void begin_lines(Body *body) noexcept nogil:
    """The current file is the file in which a function's lines begin."""
    body.cost_file = body.file
    body.call_file = UNSET


cdef inline void begin_function(Body *body, uint32_t name, uint64_t key, bint defined) noexcept nogil:
    body.begun = True
    body.file = home(body)
    begin_lines(body)
    body.fn_name = name
    body.fn_file = body.file
    body.fn_object = body.object
    body.fn_key = key
    body.fn_defined = defined
    body.function = UNRESOLVED
    body.in_function = True
    body.has_callee = False


cdef inline void begin_context(Body *body) noexcept nogil:
    """A block of the same function for another caller or recursion level, which may have no separate fn=."""
    body.begun = True
    body.counts.caller_contexts += 1
    if body.by_cost_file and body.in_function:
        body.file = body.fn_file
        begin_lines(body)


cdef inline void begin_callee(Body *body, uint32_t name, uint64_t key) noexcept nogil:
    body.begun = True
    body.callee_name = name
    body.callee_key = key
    body.callee = UNRESOLVED
    body.has_callee = True


cdef inline uint32_t lookup(Body *body, uint32_t name, uint64_t key, uint32_t file, bint has_file, uint32_t object,
                            bint has_object) noexcept nogil:
    """The function of a name in a file and object.  It is the function that the name's number is bound to, unless the
    given file or object differ.  FP_NO_ID when memory ran out."""
    cdef fp_callgrind_number *e = NULL
    cdef uint32_t function
    cdef bint same
    if key:
        e = fp_callgrind_numbers_find(&body.names.numbers[FP_NAMED_FUNCTION], key - 1)
        if e == NULL:
            return FP_NO_ID
        if e.again:
            same = e.file == file and e.object == object
        else:
            same = ((not has_file or e.file == file or body.binds)
                    and (not has_object or e.object == object or e.object_assumed))
        if same and e.function != UNRESOLVED and e.name == name:
            if e.again:
                e.again = False
                e.object_assumed = not has_object
            return e.function
    function = fp_model_function(body.model, object, file, name, 0, 0)
    # the number may have been redefined since
    if e != NULL and e.name == name and function != FP_NO_ID:
        e.function = function
        e.file = file
        e.object = object
        e.object_assumed = not has_object
        e.again = False
    return function


cdef inline int remember_named(Body *body) noexcept nogil:
    """Notes the current function as the last of its name.  OK or FP_E_NOMEM."""
    cdef uint32_t n = body.n_latest
    cdef uint32_t *latest
    if body.fn_name >= n:
        n = body.model.strings.n * 2  # at least twice as many as there are
        latest = <uint32_t *>realloc(body.latest, n * sizeof(uint32_t))
        if latest == NULL:
            return FP_E_NOMEM
        memset(latest + body.n_latest, 0, (n - body.n_latest) * sizeof(uint32_t))
        body.latest = latest
        body.n_latest = n
    body.latest[body.fn_name] = body.function
    return OK


cdef inline uint32_t named_last(const Body *body) noexcept nogil:
    """The callee, if only its name is given and a function of that name was read; else 0.

    Xdebug before 2.2 writes no cfl=, and the block of a call before that of its caller.  Here {main} calls the function
    of php:internal, not one of a.php:

        fl=php:internal / fn=php::usleep / 20 100
        fl=a.php / fn={main} / 1 5 / cfn=php::usleep / calls=1 0 0 / 2 100
    """
    if not body.by_name or body.callee_key or body.cfi != UNSET or body.cob != UNSET:
        return 0
    return body.latest[body.callee_name] if body.callee_name < body.n_latest else 0


cdef inline int resolve(Body *body) noexcept nogil:
    """Looks up the current function, now that it has a row.  OK or FP_E_NOMEM."""
    cdef uint32_t function
    body.begun = True
    if not body.in_function:
        body.counts.costs_outside_functions += 1
        if not body.names.numbered:
            # as the newer cg_annotate names it
            body.fn_name = fp_strings_intern(&body.model.strings, b"<unspecified>", 13)
            if body.fn_name == FP_NO_ID:
                return FP_E_NOMEM
        body.fn_file = home(body)
        body.fn_object = body.object
    function = lookup(body, body.fn_name, body.fn_key, body.fn_file, True, body.fn_object, True)
    if function == FP_NO_ID:
        return FP_E_NOMEM
    body.function = function
    return remember_named(body) if body.by_name else OK


cdef inline int resolve_callee(Body *body) noexcept nogil:
    """Looks up the callee of a calls= line, which uses up cob= and cfi=.  OK or FP_E_NOMEM."""
    if not body.has_callee:
        body.counts.unnamed_callees += 1
        body.callee_name = 0
        body.callee_key = 0
        body.callee = UNRESOLVED
    if body.callee == UNRESOLVED:
        body.callee = named_last(body)
    if body.callee == UNRESOLVED or body.cob != UNSET or body.cfi != UNSET:
        body.callee = lookup(body, body.callee_name, body.callee_key,
                             body.cfi if body.cfi != UNSET else target_home(body), body.cfi != UNSET,
                             body.cob if body.cob != UNSET else body.object, body.cob != UNSET)
        if body.callee == FP_NO_ID:
            return FP_E_NOMEM
        body.cob = body.cfi = UNSET
    body.called = body.callee
    return OK


# ---- rows -------------------------------------------------------------------

cdef inline uint32_t new_row(const Body *body, fp_batch *b, uint32_t kind, uint32_t n_counts) noexcept nogil:
    """Begins a row with the current names, whose first counts are there already.  Returns its index."""
    cdef uint32_t i = b.n, k
    b.n += 1
    b.kind[i] = kind
    b.function[i] = body.function
    b.file[i] = body.file
    b.line[i] = 0
    b.address[i] = 0
    b.bb[i] = 0
    for k in range(n_counts, b.n_values):
        b.values[<size_t>k * b.cap + i] = 0
    return i


cdef inline void end_call_row(Body *body, fp_batch *b, uint32_t i) noexcept nogil:
    """Callgrind writes fi= once for the calls of one place, and nothing if the next cost line is in the file of the
    last cost line again:

        fl=a.c / fn=f / 10 1 / fi=b.h / calls=... / 20 5 / calls=... / 20 6     both calls are in b.h
        11 1                                                                    a cost in a.c
    """
    if body.file != body.cost_file:
        body.call_file = body.file
        body.call_address, body.call_line = b.address[i], b.line[i]
        body.file = body.cost_file
    elif b.address[i] == body.call_address and b.line[i] == body.call_line and body.call_file != UNSET:
        b.file[i] = body.call_file
    else:
        body.call_file = UNSET


cdef inline void finish_row(Body *body, fp_batch *b, uint32_t i, uint32_t kind) noexcept nogil:
    """Fills in the columns that only call and jump rows have."""
    b.count[i] = body.count
    b.target_line[i] = <uint32_t>body.target.line
    b.target_address[i] = body.target.address
    b.target_bb[i] = body.target.bb
    if kind == FP_CALL:
        b.callee[i] = body.called
    else:
        b.count2[i] = body.count2
        b.callee[i] = body.jfn if body.jfn != UNSET else body.function
        b.target_file[i] = body.jfi if body.jfi != UNSET else target_home(body)
        body.jfi = body.jfn = UNSET
    if body.by_cost_file:
        end_call_row(body, b, i)


cdef inline bint block_is_due(const Body *body) noexcept nogil:
    """Was the current function named, not defined, and given no row?"""
    return body.function == UNRESOLVED and not body.fn_defined and body.in_function and body.has_events


cdef inline int flush_block(Body *body, fp_batch *b) noexcept nogil:
    """Adds a row for a function that is named but has no rows.  OK, FP_FULL or FP_E_NOMEM."""
    cdef int status
    if not block_is_due(body):
        return OK
    if b.n == b.cap:
        return FP_FULL
    status = resolve(body)
    if status != OK:
        return status
    b.file[new_row(body, b, FP_BLOCK, 0)] = body.fn_file  # body.file may be that of the block that follows
    return OK


cdef inline int finish_body(Body *body, fp_batch *b, fp_err *err) noexcept nogil:
    """The end of a part or of the input.  FP_DONE, FP_FULL or an error."""
    cdef int status
    if body.pending != FP_COST:
        status = fp_fail(err, FP_E_TRUNCATED, body.pending_offset, "no cost line follows this line")
        err.line = body.pending_line
        if not body.lenient:
            return status
        body.counts.unreadable_lines += 1
        body.pending = FP_COST
    status = flush_block(body, b)
    return FP_DONE if status == OK else status
