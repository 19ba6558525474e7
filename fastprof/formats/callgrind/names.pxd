"""Names of functions, files and objects: `name`, `(12) name` and `(12)`.

Part of _lexer.pyx.  `(12) name` defines a number, `(12)` uses it.  `name` reads any of them; `numbered_name` and
`function_name` read only what Callgrind mostly writes, but faster, with the help of `look_ahead`.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *
from fastprof.formats.callgrind.positions cimport *

cdef enum:
    SEEN = 256  # definitions read ahead, a power of 2
    EXPANDED_NBYTES = 1 << 16  # limit of a composed name: it may contain composed names, so it could grow exponentially


cdef struct Seen:
    # A name that was read ahead.
    const uint8_t *p     # where it begins in the text; of a definition, the parenthesis of its number
    uint64_t id          # the number
    const uint8_t *name
    size_t n
    uint32_t hash        # of the name
    uint32_t guess       # probably its string


cdef struct Names:
    # The names of numbers, in all parts of a file.
    fp_model *model
    Counts *counts
    bint numbered               # names may be `(12) name`: Callgrind, not Cachegrind
    bint lenient
    bint expands                # names like (3)'2'(5) consist of numbers
    fp_callgrind_numbers numbers[3]       # by kind
    Seen seen[SEEN]             # definitions and full names of functions that are about to be read, in the order of the text
    uint32_t n_seen, next_seen  # entries that were ever filled in and used
    uint8_t *expansion          # buffer to compose a name
    size_t expansion_cap
    int undefined_kind          # after FP_NEEDS: the kind of a number without a name,
    uint64_t undefined          # and that number + 1; 0 if FP_NEEDS has another reason


# ---- any name -------------------------------------------------------------

cdef inline bint begins_number(const uint8_t *p) noexcept nogil:
    return p[0] == c'(' and fp_is_digit(p[1])


cdef inline int intern_name(Names *names, const uint8_t *p, const uint8_t *stop, uint32_t *string) noexcept nogil:
    string[0] = fp_strings_intern(&names.model.strings, p, stop - p)
    return OK if string[0] != FP_NO_ID else FP_E_NOMEM


cdef inline int name(Names *names, const uint8_t *p, const uint8_t *stop, int kind, uint64_t offset, uint32_t *string,
                     uint64_t *key, bint *defined, fp_err *err) noexcept nogil:
    """Reads the name from p to `stop`: its string, its number + 1 (0: none), and whether the number is defined here.

    `key` and `defined` may be NULL.  OK; FP_NEEDS when the number has no name yet; BAD; FP_E_NOMEM.
    """
    cdef uint64_t id
    cdef bint fits = True
    cdef fp_callgrind_number *e
    cdef uint32_t s
    cdef const uint8_t *q
    if defined != NULL:
        defined[0] = False
    if key != NULL:
        key[0] = 0
    if not names.numbered or stop - p < 3 or not begins_number(p):
        return intern_name(names, p, stop, string)
    q = unsigned_number(p + 1, &id, &fits)
    if q[0] != c')':
        # a name that only looks like a number
        return intern_name(names, p, stop, string)
    if not fits or id >> 63:
        fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "number of a name", p, stop - p, "below 2^63")
        if not names.lenient:
            return BAD
        # following rows belong to this name, known or not, and not to the previous one
        names.counts.unreadable_lines += 1
        return intern_name(names, blanks(q + 1), stop, string)
    e = fp_callgrind_numbers_find(&names.numbers[kind], id)
    if e == NULL:
        return FP_E_NOMEM
    q = blanks(q + 1)
    if q < stop:
        s = defined_name(names, q, stop, kind)
        e = fp_callgrind_numbers_find(&names.numbers[kind], id)  # again: looking up the numbers in the name may have moved the entry
        if s == FP_NO_ID or e == NULL:
            return FP_E_NOMEM
        fp_callgrind_numbers_define(&names.numbers[kind], e, s)
        e.again = True
        if defined != NULL:
            defined[0] = True
    elif e.name == 0:
        names.undefined_kind = kind
        names.undefined = id + 1
        return FP_NEEDS
    string[0] = e.name
    if key != NULL:
        key[0] = id + 1
    return OK


cdef inline uint32_t defined_name(Names *names, const uint8_t *p, const uint8_t *stop, int kind) noexcept nogil:
    """The string of a name that is being defined; FP_NO_ID when memory ran out.

    `(3)'2'(5)`, as --compress-mangled writes it, is made of numbers: f, its recursion 2, called by g.
    """
    cdef const uint8_t *q = p
    cdef const uint8_t *text
    cdef uint64_t id
    cdef bint fits = True
    cdef size_t n, have = 0
    cdef fp_callgrind_number *e
    if kind != FP_NAMED_FUNCTION or not names.expands or not begins_number(p):
        return fp_strings_intern(&names.model.strings, p, stop - p)
    while q < stop:
        if begins_number(q):
            q = unsigned_number(q + 1, &id, &fits)
            if q[0] != c')' or not fits or id >> 63:
                break
            e = fp_callgrind_numbers_find(&names.numbers[FP_NAMED_FUNCTION], id)
            if e == NULL:
                return FP_NO_ID
            if e.name == 0:
                break
            text = fp_string(&names.model.strings, e.name, &n)
            q += 1
        elif q[0] == c'\'' or fp_is_digit(q[0]):
            text = q
            n = 1
            q += 1
        else:
            break
        if have + n > EXPANDED_NBYTES:
            names.counts.long_composed_names += 1
            return fp_strings_intern(&names.model.strings, p, stop - p)
        if have + n > names.expansion_cap and not grow_expansion(names, 2 * (have + n)):
            return FP_NO_ID
        memcpy(names.expansion + have, text, n)
        have += n
    if q != stop:
        # a literal name that only begins like a composed one
        return fp_strings_intern(&names.model.strings, p, stop - p)
    names.counts.composed_names += 1
    return fp_strings_intern(&names.model.strings, names.expansion, have)


cdef inline bint grow_expansion(Names *names, size_t cap) noexcept nogil:
    cdef uint8_t *bigger = <uint8_t *>realloc(names.expansion, cap)
    if bigger == NULL:
        return False
    names.expansion = bigger
    names.expansion_cap = cap
    return True


# ---- names as Callgrind mostly writes them --------------------------------
# csrc/callgrind/lines.c has split this text: the numbers of each line are already in `lines`.

cdef inline bint is_number(const fp_callgrind_lines *lines, uint32_t i, const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Is what line i has from p up to `stop`, its end, a number like `(12)` of at most eight digits?  Then it is the
    line's first in `lines`."""
    # the line has one run of digits, which begins and ends there
    return (p[0] == c'(' and fp_is_digit(p[1]) and (stop - 1)[0] == c')' and fp_is_digit((stop - 2)[0])
            and stop - p <= 10 and lines.first[i + 1] - lines.first[i] == 1)


cdef inline fp_callgrind_number *numbered_name(Names *names, const fp_callgrind_lines *lines, uint32_t i, const uint8_t *p,
                                     const uint8_t *stop, int kind) noexcept nogil:
    """`(12)` up to the end of line i, of a number that has a name; NULL for anything else."""
    cdef fp_callgrind_number *e
    if not names.numbered or not is_number(lines, i, p, stop):
        return NULL
    e = fp_callgrind_numbers_find(&names.numbers[kind], <uint64_t>lines.value[lines.first[i]])
    return e if e != NULL and e.name else NULL


cdef inline fp_callgrind_number *function_name(Names *names, const fp_callgrind_lines *lines, uint32_t i, const uint8_t *p,
                                     const uint8_t *stop, uint64_t *id, bint *defined) noexcept nogil:
    """The same for functions, and also `(12) name` if `look_ahead` saw it: then the number is defined."""
    cdef fp_callgrind_number *e = numbered_name(names, lines, i, p, stop, FP_NAMED_FUNCTION)
    cdef Seen *seen
    cdef uint32_t s
    defined[0] = e == NULL
    if e != NULL:
        id[0] = <uint64_t>lines.value[lines.first[i]]
        return e
    seen = seen_at(names, p)
    if seen == NULL or seen.name[0] <= c' ' or seen.name[0] == c'(' or (stop - 1)[0] == c'\r':
        return NULL
    id[0] = seen.id
    e = fp_callgrind_numbers_find(&names.numbers[FP_NAMED_FUNCTION], seen.id)
    s = fp_strings_intern_hashed(&names.model.strings, seen.name, seen.n, seen.hash)
    if e == NULL or s == FP_NO_ID:
        return NULL
    fp_callgrind_numbers_define(&names.numbers[FP_NAMED_FUNCTION], e, s)
    e.again = True
    return e


cdef inline Seen *seen_at(Names *names, const uint8_t *p) noexcept nogil:
    """The entry of `look_ahead` for the name at p, or NULL.  Callers ask in the order of the text."""
    cdef Seen *seen
    while names.next_seen != names.n_seen:
        seen = &names.seen[names.next_seen % SEEN]
        if seen.p >= p:
            return seen if seen.p == p else NULL
        names.next_seen += 1
    return NULL


cdef inline void look_ahead(Names *names, const fp_callgrind_lines *lines, const uint8_t *p) noexcept nogil:
    """Prefetches the entries of the functions that the lines at p name.

    Their numbers, and their names when they are defined, are looked up at random places of tables that no cache
    holds.  A lookup that waits for memory takes as long as reading 200 bytes of text.
    """
    cdef fp_callgrind_numbers *t = &names.numbers[FP_NAMED_FUNCTION]
    cdef const uint8_t *q
    cdef const uint8_t *number
    cdef const uint8_t *stop
    cdef Seen *seen
    cdef uint32_t i, k, first
    cdef uint64_t others, id
    names.next_seen = names.n_seen
    for first in range(0, lines.n, 56):
        others = ~fp_callgrind_line_bits(lines.cost, first) & <uint64_t>0xffffffffffffff
        while others:
            i = first + fp_lowest_bit(others)
            others &= others - 1
            if i >= lines.n:
                break
            q = p + lines.begin[i]
            stop = p + lines.begin[i + 1] - 1
            q += q[0] == c'c'
            if q[0] != c'f' or q[1] != c'n' or q[2] != c'=':
                continue
            q += 3
            if not names.numbered:
                if q < stop and (stop - 1)[0] != c'\r' and names.n_seen - names.next_seen != SEEN:
                    see(names, q, q, stop)
                continue
            if q[0] != c'(':
                continue
            if is_number(lines, i, q, stop):
                id = <uint64_t>lines.value[lines.first[i]]
            elif names.n_seen - names.next_seen != SEEN:
                number = q
                q = fp_decimal(q + 1, &id)
                if q == NULL or q[0] != c')' or q[1] != c' ':
                    continue
                see(names, number, q + 2, stop).id = id
            else:
                continue
            fp_prefetch(fp_callgrind_numbers_place_of(t, id))
    for k in range(names.next_seen, names.n_seen):
        seen = &names.seen[k % SEEN]
        seen.guess = fp_strings_guess(&names.model.strings, seen.hash)
    for k in range(names.next_seen, names.n_seen):
        fp_strings_prefetch_bytes(&names.model.strings, names.seen[k % SEEN].guess)
        fp_model_prefetch_named(names.model, names.seen[k % SEEN].guess)
    for k in range(names.next_seen, names.n_seen):
        fp_model_prefetch_function(names.model, names.seen[k % SEEN].guess)


cdef inline Seen *see(Names *names, const uint8_t *p, const uint8_t *name, const uint8_t *stop) noexcept nogil:
    """Notes the name that ends at `stop`, and fetches its place in the index."""
    cdef Seen *seen = &names.seen[names.n_seen % SEEN]
    names.n_seen += 1
    seen.p = p
    seen.name = name
    seen.n = stop - name
    seen.hash = fp_strings_hash(name, seen.n)
    fp_strings_prefetch(&names.model.strings, seen.hash)
    return seen
