# The words of `perf script`: splits a sample's start line and a frame line.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport (
    FP_NO_ID,
    fp_is_digit,
    fp_model,
    fp_model_frame,
    fp_model_function,
    fp_model_line,
    fp_nibble,
)


cdef enum:
    OK = 0
    MOST_EVENTS = 256
    CACHED_LINES = 1 << 20  # distinct frame lines that are cached
    LONGEST_CACHED = 1 << 14  # bytes of such a line
    HEADER = 1 << 16  # bytes of comments that are kept
    # The events in this many samples decide the value types of a part, so they do not depend on batch sizes.
    ROWS = 1 << 16
    GATHERED_STACKS = 1 << 15  # of the model, when samples are gathered no further


# A sample.
cdef struct Row:
    uint64_t time
    int64_t period
    uint32_t stack
    uint32_t thread
    uint32_t label
    uint32_t event


# A frame line.
cdef struct Location:
    uint32_t name  # strings
    uint32_t object
    uint32_t file
    uint32_t line
    uint32_t frame  # of the model, if it is not inlined and nothing is inlined into it; 0: not made yet
    bint inlined


cdef struct Counts:
    uint64_t comments
    uint64_t side_records  # PERF_RECORD lines
    uint64_t messages  # of perf itself, from its stderr
    uint64_t registers_and_branches  # lines of registers, branches, source code
    uint64_t fields  # of tracepoints
    uint64_t cpu_numbers  # samples whose CPU is known
    uint64_t unreadable_lines  # lenient: unreadable lines
    uint64_t carriage_returns
    uint64_t without_period  # samples without, of events that have periods
    uint64_t unknown_source_lines  # that name no file
    bint open_end


# The start line of a sample, as spans of text.
cdef struct Start:
    const uint8_t *comm
    size_t comm_n
    const uint8_t *event
    size_t event_n
    const uint8_t *rest  # after the event's name
    uint32_t pid
    uint32_t tid
    uint64_t time
    uint64_t period
    bint has_period
    bint has_cpu


cdef inline const uint8_t *token_before(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Where the last word of p up to `stop` begins."""
    while stop != p and not is_blank((stop - 1)[0]):
        stop -= 1
    return stop


cdef inline bint begins(const uint8_t *p, const uint8_t *stop, const char *text, size_t n) noexcept nogil:
    return <size_t>(stop - p) >= n and memcmp(p, text, n) == 0


cdef inline bint number(const uint8_t *p, const uint8_t *stop, uint64_t *to) noexcept nogil:
    """Is it all digits?  Numbers beyond 64 bits become the largest."""
    cdef uint64_t v = 0, digit
    if p == stop:
        return False
    while p != stop:
        if not fp_is_digit(p[0]):
            return False
        digit = p[0] - c'0'
        v = v * 10 + digit if v <= (<uint64_t>-1 - digit) / 10 else <uint64_t>-1
        p += 1
    to[0] = v
    return True


cdef inline bint thread_id(const uint8_t *p, const uint8_t *stop, Start *to) noexcept nogil:
    """`6598`, `-1` or `6598/6599`."""
    cdef const uint8_t *slash = <const uint8_t *>memchr(p, c'/', stop - p)
    cdef uint64_t pid = 0, tid = 0
    if slash != NULL:
        if not number(p + (p[0] == c'-'), slash, &pid):
            return False
        pid = 0 if p[0] == c'-' else pid
        p = slash + 1
        if p == stop:
            return False
    if p == stop or not number(p + (p[0] == c'-'), stop, &tid) or pid > 0xffffffffUL or tid > 0xffffffffUL:
        return False
    to.pid = <uint32_t>pid
    to.tid = 0 if p[0] == c'-' else <uint32_t>tid
    return True


cdef inline const uint8_t *find_time(const uint8_t *p, const uint8_t *stop, const uint8_t **first,
                              uint64_t *ns) noexcept nogil:
    """The byte after the colon of the first time, `1593.383339:`, six or nine decimals; NULL if there is none."""
    cdef const uint8_t *dot
    cdef const uint8_t *q
    cdef const uint8_t *begin
    cdef uint64_t seconds, fraction
    cdef size_t n
    q = p
    while True:
        dot = <const uint8_t *>memchr(q, c'.', stop - q)
        if dot == NULL:
            return NULL
        begin = dot
        while begin != p and fp_is_digit((begin - 1)[0]):
            begin -= 1
        q = dot + 1
        while q != stop and fp_is_digit(q[0]):
            q += 1
        n = q - dot - 1
        if (begin != dot and (n == 6 or n == 9) and q != stop and q[0] == c':'
                and (q + 1 == stop or is_blank(q[1])) and (begin == p or is_blank((begin - 1)[0]))
                and number(begin, dot, &seconds) and number(dot + 1, q, &fraction)):
            if n == 6:
                fraction *= 1000
            # a time that perf does not know is 2^64 - 1 ns
            ns[0] = seconds * 1000000000 + fraction if seconds < 18446744073UL else 0
            first[0] = begin
            return q + 1


cdef inline bint is_misc(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The letters of `-F +misc`."""
    cdef size_t n = stop - p
    if n == 2:
        return p[0] == c'S' and p[1] == c'p'
    return n == 1 and memchr(b"KUHGgMES", p[0], 8) != NULL


cdef inline void before_time(const uint8_t *p, const uint8_t *stop, Start *to) noexcept nogil:
    """`demo  6598/6599 [001] K`: from the right, because a process name may be any text."""
    cdef const uint8_t *token
    cdef uint64_t cpu
    stop = strip_blanks(p, stop)
    token = token_before(p, stop)
    if token != p and is_misc(token, stop):
        stop = strip_blanks(p, token)
        token = token_before(p, stop)
    # 2026-11-21 20:47:50.123456 (-F +tod)
    if stop - token == 15 and token - p > 11 and token[2] == c':' and token[8] == c'.':
        stop = strip_blanks(p, token)
        stop = strip_blanks(p, token_before(p, stop))
        token = token_before(p, stop)
    if stop - token > 2 and token[0] == c'[' and (stop - 1)[0] == c']' and number(token + 1, stop - 1, &cpu):
        to.has_cpu = True
        stop = strip_blanks(p, token)
        token = token_before(p, stop)
    if stop != token and thread_id(token, stop, to):
        stop = strip_blanks(p, token)
    to.comm = skip_blanks(p, stop)
    to.comm_n = stop - to.comm


cdef inline const uint8_t *address_end(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The byte after a hexadecimal number that a blank or the end follows; NULL if there is none."""
    cdef const uint8_t *q = p
    while q != stop and q - p <= 16 and fp_nibble(q[0]) < 16:
        q += 1
    return q if q != p and q - p <= 16 and (q == stop or is_blank(q[0])) else NULL


cdef inline const uint8_t *place_end(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The end of the address in `           7f844bb8199a [unknown] (/usr/lib/ld.so)`, the place of a sample without a
    call chain; NULL if there is none.  perf aligns it to the right in 16 columns, which distinguishes it from fields.
    """
    cdef const uint8_t *end = address_end(skip_blanks(p, stop), stop)
    return end if end != NULL and end - p >= 16 else NULL


cdef inline const uint8_t *event_end(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The colon that ends the event's name: the first before a blank or the end; NULL if there is none."""
    cdef const uint8_t *colon
    while True:
        colon = <const uint8_t *>memchr(p, c':', stop - p)
        if colon == NULL or colon + 1 == stop or is_blank(colon[1]):
            return colon
        p = colon + 1


cdef inline void after_time(const uint8_t *p, const uint8_t *stop, Start *to) noexcept nogil:
    """`     250000 cpu-clock: ...`; without an event also `           400123 main (/srv/demo/demo)`."""
    cdef const uint8_t *first = p
    cdef const uint8_t *end
    p = end = skip_blanks(first, stop)
    while end != stop and fp_is_digit(end[0]):
        end += 1
    # perf aligns a period in 10 columns after a blank: what is longer begins there, else it is an address
    if end != p and (end == stop or is_blank(end[0])) and (end - first < 16 or p - first < 2):
        to.has_period = number(p, end, &to.period)
        first, p = end, skip_blanks(end, stop)
    end = event_end(p, stop) if place_end(first, stop) == NULL else NULL
    to.event = p
    to.event_n = 0 if end == NULL else end - p
    to.rest = first if end == NULL else end + 1


cdef inline bint thread_id_before(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    cdef Start ignored
    cdef const uint8_t *token
    stop = strip_blanks(p, stop)
    token = token_before(p, stop)
    if stop - token > 2 and token[0] == c'[':
        stop = strip_blanks(p, token)
        token = token_before(p, stop)
    return token != stop and thread_id(token, stop, &ignored)


cdef inline void without_time(const uint8_t *p, const uint8_t *stop, Start *to) noexcept nogil:
    """`java 19983     10101010`: of two numbers the second is the period."""
    cdef const uint8_t *token
    cdef uint64_t v
    stop = strip_blanks(p, stop)
    token = token_before(p, stop)
    if number(token, stop, &v) and thread_id_before(p, token):
        to.period, to.has_period = v, True
        stop = token
    before_time(p, stop, to)


cdef inline bint read_start(const uint8_t *p, const uint8_t *stop, Start *to) noexcept nogil:
    """Does a sample begin in this line?"""
    cdef const uint8_t *time
    cdef const uint8_t *rest
    cdef const uint8_t *token
    cdef const uint8_t *end
    to.comm = to.event = to.rest = p
    to.comm_n = to.event_n = 0
    to.pid = to.tid = 0
    to.time = to.period = 0
    to.has_period = to.has_cpu = False
    rest = find_time(p, stop, &time, &to.time)
    if rest != NULL:
        before_time(p, time, to)
        after_time(rest, stop, to)
        return True
    # Without a time the event ends the line, `java 19983 cycles:`, or a place follows it
    end = strip_blanks(p, stop)
    if end == p:
        return False
    if (end - 1)[0] != c':':
        end = event_end(p, end)
        if end == NULL or place_end(end + 1, stop) == NULL:
            return False
        end += 1
    token = token_before(p, end)
    to.event, to.event_n, to.rest = token, end - 1 - token, end
    without_time(p, token, to)
    return to.event_n != 0


cdef inline const uint8_t *object_start(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The beginning of ` (/opt/x/app (deleted))`, which ends at `stop`; `stop` if there is none.

    Parentheses are counted from the right.  If a name has one too many, the last ` (` is taken.
    """
    cdef const uint8_t *q = stop
    cdef int64_t open = 0
    if p == stop or (stop - 1)[0] != c')':
        return stop
    while q != p:
        q -= 1
        open += (q[0] == c')') - (q[0] == c'(')
        if open == 0:
            return q if q == p or is_blank((q - 1)[0]) else stop
    q = stop - 1
    while q != p:
        q -= 1
        if q[0] == c'(' and (q == p or is_blank((q - 1)[0])):
            return q
    return stop


cdef inline const uint8_t *without_offset(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The end of a symbol without `+0x25`."""
    cdef const uint8_t *q = stop
    while q != p and fp_nibble((q - 1)[0]) < 16:
        q -= 1
    if q != stop and q - p > 3 and (q - 1)[0] == c'x' and (q - 2)[0] == c'0' and (q - 3)[0] == c'+':
        return q - 3
    return stop


cdef inline bint is_message(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """A line that perf wrote to stderr."""
    return (begins(p, stop, b"[ perf ", 7) or begins(p, stop, b"Warning:", 8) or begins(p, stop, b"Processed ", 10)
            or begins(p, stop, b"Was the 'perf record' ", 22) or begins(p, stop, b"Check IO/CPU overload", 21)
            or begins(p, stop, b"No kallsyms or vmlinux", 22) or begins(p, stop, b"Failed to open ", 15)
            or begins(p, stop, b"incompatible file format", 24) or begins(p, stop, b"If your profile", 15)
            or begins(p, stop, b"no symbols found in ", 20) or begins(p, stop, b"addr2line: ", 11))


cdef inline const uint8_t *without_branches(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The end of a place that branches may follow: ` 0x400080(/opt/x/app)/0x400100(/opt/x/app)/M/-/-/7`."""
    cdef const uint8_t *at = p
    while stop - at > 5:
        at = <const uint8_t *>memchr(at, c' ', stop - at - 5)
        if at == NULL:
            break
        if at[1] == c'0' and at[2] == c'x' and memchr(at, c'/', stop - at) != NULL and p != at:
            return at
        at += 1
    return stop


cdef inline const uint8_t *source_line_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    """The end of the line at p if -F +srcline wrote it, `  demo.c:11 (inlined)`; NULL otherwise."""
    cdef Start start
    cdef const uint8_t *stop
    if end - p <= 2 or p[0] != c' ' or p[1] != c' ' or is_blank(p[2]):
        return NULL
    stop = <const uint8_t *>memchr(p, c'\n', end - p)
    if stop == NULL:
        stop = end
    if read_start(p, stop, &start):
        return NULL
    return stop


cdef inline uint32_t frame_of(fp_model *model, const Location *at, uint32_t n_inlined) noexcept nogil:
    """The frame of a location and the `n_inlined` before it, which are inlined into it; FP_NO_ID without memory."""
    cdef uint32_t function = fp_model_function(model, at.object, at.file, at.name, 0, 0), line, k
    cdef const Location *inner
    if function == FP_NO_ID:
        return FP_NO_ID
    line = fp_model_line(model, function, at.line, 0, 0)
    for k in range(n_inlined):
        if line == FP_NO_ID:
            return FP_NO_ID
        inner = at - 1 - k
        function = fp_model_function(model, at.object, inner.file, inner.name, 0, 0)
        if function == FP_NO_ID:
            return FP_NO_ID
        line = fp_model_line(model, function, inner.line, 0, line)
    return FP_NO_ID if line == FP_NO_ID else fp_model_frame(model, 0, 0, 0, line)
