# The stacks of a profile as addresses, with the sums of their values, and the rows they become.
#
#   addresses   1: 0x43742b   2: 0x461481                      distinct, with a line chain where a name is known
#   keys        1: (no labels, objects of 96 bytes, 1, 2)      a stack, leaf first, with the sums of its values
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fastprof.core.blanks cimport is_blank
from fastprof.core.fp cimport *
from fastprof.formats.heap.lines cimport fp_heap_add


cdef enum:
    N_VALUES = 4  # in-use objects and bytes, allocated objects and bytes
    KEY_WORDS = 3  # before the addresses
    ADDRESS_WORDS = 3
    WORD_BITS = 16


# The text of an address and its id.
cdef struct Word:
    uint64_t first, last  # its first and last 8 bytes
    uint32_t n, id  # bytes


cdef struct Sums:
    int64_t v[N_VALUES]
    uint64_t line, at  # of the last row


cdef struct Range:
    uint64_t start
    uint64_t limit
    uint32_t mapping


cdef struct Store:
    fp_model *model
    bint java  # addresses are numbers of names
    uint64_t unmapped  # addresses in no mapped object
    fp_table addresses  # two words, and whether it is not a return address
    Word *words  # by hash; NULL: none yet
    uint32_t *lines  # by address
    uint32_t cap_lines
    uint32_t *frames  # by address
    fp_table named  # addresses that the file's own tables name
    uint32_t *named_lines
    uint32_t cap_named_lines
    fp_strings texts  # labels, as in the file
    fp_key_sums kept  # text, bytes of an object (two words), ids of addresses; and Sums
    # rows on their way out
    Range *ranges
    uint32_t n_ranges
    uint32_t cap_ranges
    uint32_t *nodes  # if keys may be equal, by key: FP_NO_ID if it has no row
    uint32_t entered  # the first of the keys in entered_nodes, which are valid as long as n_renewed is that of the model
    uint32_t entered_nodes[FP_MODEL_STACKS]
    uint32_t n_renewed
    uint32_t *entering  # frames
    uint32_t cap_entering
    uint32_t columns[N_VALUES]
    uint32_t n_columns
    uint32_t *labels  # by text
    uint32_t cap_labels
    uint32_t bytes_key  # the string of the label for the bytes of an object; 0: no label
    uint32_t next


cdef inline int store_init(Store *s, fp_model *model) noexcept nogil:
    """s is zeroed.  0 or FP_E_NOMEM."""
    s.model = model
    if (fp_table_init(&s.addresses, ADDRESS_WORDS) or fp_table_init(&s.named, 2) or fp_key_sums_init(&s.kept, sizeof(Sums))
            or fp_strings_init(&s.texts)):
        return FP_E_NOMEM
    return 0


cdef inline void store_clear(Store *s) noexcept nogil:
    fp_table_clear(&s.addresses)
    fp_table_clear(&s.named)
    fp_key_sums_clear(&s.kept)
    fp_strings_clear(&s.texts)
    free(s.words)
    free(s.lines)
    free(s.frames)
    free(s.named_lines)
    free(s.ranges)
    free(s.nodes)
    free(s.entering)
    free(s.labels)


cdef inline uint32_t store_address(Store *s, const uint32_t *row) noexcept nogil:
    """The id of an address, FP_NO_ID when memory ran out."""
    cdef uint32_t id_ = fp_table_intern(&s.addresses, row)
    if id_ != FP_NO_ID and fp_array_zeroed(&s.lines, &s.cap_lines, <uint64_t>id_ + 1, sizeof(uint32_t)):
        return FP_NO_ID
    return id_


cdef inline Word *word_of(Store *s, const uint8_t *p, size_t n) noexcept nogil:
    """The place of a text of 8 to 16 bytes.  Two loads cover it: 0x55cb1f|98|000020."""
    return &s.words[(fp_u64(p) * 0x9e3779b97f4a7c15UL + fp_u64(p + n - 8) * 0xc2b2ae3d27d4eb4fUL) >> (64 - WORD_BITS)]


cdef inline const uint8_t *store_word(Store *s, const uint8_t *p, const uint8_t *stop, size_t n,
                                      uint32_t *id_) noexcept nogil:
    """Look up the text of an address with n bytes, which most have.  Returns its end, NULL if it is not known."""
    cdef const Word *word
    if n < 8 or n > 16 or <size_t>(stop - p) < n or p + n != stop and not is_blank(p[n]):
        return NULL
    word = word_of(s, p, n)
    if word.n != n or word.first != fp_u64(p) or word.last != fp_u64(p + n - 8):
        return NULL
    id_[0] = word.id
    return p + n


cdef inline int store_set_word(Store *s, const uint8_t *p, size_t n, uint32_t id_) noexcept nogil:
    """Remember the text of an address in place of another one.  0 or FP_E_NOMEM."""
    cdef Word *word
    if n < 8 or n > 16:
        return 0
    if s.words == NULL:
        s.words = <Word *>calloc(1 << WORD_BITS, sizeof(Word))
        if s.words == NULL:
            return FP_E_NOMEM
    word = word_of(s, p, n)
    word.first, word.last = fp_u64(p), fp_u64(p + n - 8)
    word.n, word.id = <uint32_t>n, id_
    return 0


cdef inline uint32_t store_find(const Store *s, uint64_t address) noexcept nogil:
    """The id of a return address, 0 if it has none yet."""
    cdef uint32_t row[ADDRESS_WORDS]
    row[0], row[1], row[2] = <uint32_t>address, <uint32_t>(address >> 32), 0
    return fp_table_find(&s.addresses, row)


cdef inline int store_name(Store *s, uint64_t address, uint32_t lines) noexcept nogil:
    """A name from one of the file's own tables.  0 or FP_E_NOMEM."""
    cdef uint32_t row[2]
    cdef uint32_t id_
    row[0], row[1] = <uint32_t>address, <uint32_t>(address >> 32)
    id_ = fp_table_intern(&s.named, row)
    if id_ == FP_NO_ID or fp_array_zeroed(&s.named_lines, &s.cap_named_lines, <uint64_t>id_ + 1, sizeof(uint32_t)):
        return FP_E_NOMEM
    s.named_lines[id_] = lines
    return 0


cdef inline uint32_t store_hash(Store *s, uint32_t *key, uint32_t n, uint32_t text, int64_t nbytes) noexcept nogil:
    """The hash of a stack with its labels and the bytes of an object, whose index slot is prefetched.

    `key` is KEY_WORDS words, which are filled, and n addresses."""
    cdef uint32_t hash_
    key[0], key[1], key[2] = text, <uint32_t>nbytes, <uint32_t>(<uint64_t>nbytes >> 32)
    hash_ = fp_strings_hash(key, (KEY_WORDS + <size_t>n) * sizeof(uint32_t))
    fp_strings_prefetch(&s.kept.keys, hash_)
    return hash_


cdef inline uint32_t store_key(Store *s, const uint32_t *key, uint32_t n, uint32_t hash_) noexcept nogil:
    """The id of a key with its store_hash; FP_NO_ID when memory ran out."""
    return fp_key_sums_key(&s.kept, key, (KEY_WORDS + <size_t>n) * sizeof(uint32_t), hash_)


cdef inline Sums *sums_of(const Store *s, uint32_t key) noexcept nogil:
    return <Sums *>fp_key_record(&s.kept, key)


cdef inline bint store_add(Store *s, uint32_t key, const int64_t *v, uint32_t n) noexcept nogil:
    """Whether the sums of n values fit.  If one does not, none is changed."""
    cdef int64_t sums[N_VALUES]
    cdef uint32_t k
    for k in range(n):
        sums[k] = sums_of(s, key).v[k]
        if fp_heap_add(&sums[k], v[k]):
            return False
    memcpy(sums_of(s, key).v, sums, n * sizeof(int64_t))
    return True


cdef inline uint32_t store_thread(Store *s, const uint8_t *id_, const uint8_t *name,
                                  const uint8_t *stop) noexcept nogil:
    """The label text of a thread: its number, a colon and its name, if any.  FP_NO_ID when memory ran out."""
    cdef uint8_t digits[32]
    cdef size_t n = 0, cap = 0
    cdef uint8_t *to = NULL
    cdef uint32_t text
    while n < 20 and id_[n] != c':':
        digits[n] = id_[n]
        n += 1
    if name == stop:
        return fp_strings_intern(&s.texts, digits, n)
    if fp_bytes_room(&to, &cap, n + 1 + (stop - name)):
        return FP_NO_ID
    memcpy(to, digits, n)
    to[n] = c':'
    memcpy(to + n + 1, name, stop - name)
    text = fp_strings_intern(&s.texts, to, n + 1 + (stop - name))
    free(to)
    return text


cdef inline int store_frame_name(Store *s, uint32_t address, const uint8_t *name, size_t n) noexcept nogil:
    """Set the name of an address that has none yet.  0 or FP_E_NOMEM."""
    cdef uint32_t string, function, line
    if n == 0 or s.lines[address] != 0:
        return 0
    string = fp_strings_intern(&s.model.strings, name, n)
    function = FP_NO_ID if string == FP_NO_ID else fp_model_function(s.model, 0, 0, string, 0, 0)
    line = FP_NO_ID if function == FP_NO_ID else fp_model_line(s.model, function, 0, 0, 0)
    if line == FP_NO_ID:
        return FP_E_NOMEM
    s.lines[address] = line
    return 0


# ---- rows ---------------------------------------------------------------------


cdef inline uint32_t lines_of(const Store *s, uint64_t address) noexcept nogil:
    cdef uint32_t row[2]
    row[0], row[1] = <uint32_t>address, <uint32_t>(address >> 32)
    cdef uint32_t id_ = fp_table_find(&s.named, row)
    return s.named_lines[id_] if id_ != 0 else 0


cdef inline uint32_t mapping_of(const Store *s, uint64_t address) noexcept nogil:
    cdef uint32_t low = 0, high = s.n_ranges, middle
    while low < high:
        middle = low + (high - low) // 2
        if s.ranges[middle].start <= address:
            low = middle + 1
        else:
            high = middle
    return s.ranges[low - 1].mapping if low != 0 and address < s.ranges[low - 1].limit else 0


cdef inline int store_frames(Store *s) noexcept nogil:
    """A frame for each address.  0 or FP_E_NOMEM."""
    cdef uint32_t cap = 0, i, lines, flags, mapping
    cdef const uint32_t *row
    cdef uint64_t address, at
    fp_strings_seal(&s.kept.keys)  # no row follows
    if fp_array_zeroed(&s.frames, &cap, s.addresses.n, sizeof(uint32_t)):
        return FP_E_NOMEM
    for i in range(1, s.addresses.n):
        row = fp_table_row(&s.addresses, i)
        address = row[0] | <uint64_t>row[1] << 32
        flags = FP_FRAME_RETURN_ADDRESS if row[2] == 0 and address != 0 and not s.java else 0
        at = address - (flags != 0)
        lines = s.lines[i]
        if lines == 0:
            lines = lines_of(s, at)
        if lines == 0:
            lines = lines_of(s, address)
        mapping = mapping_of(s, at)
        s.unmapped += mapping == 0 and s.n_ranges != 0
        if s.java and lines != 0:
            address = 0
        s.frames[i] = fp_model_frame(s.model, mapping, address, flags, lines)
        if s.frames[i] == FP_NO_ID:
            return FP_E_NOMEM
    return 0


cdef inline const uint32_t *key_of(const Store *s, uint32_t id_, uint32_t *depth) noexcept nogil:
    """The words of a key, and how many addresses it has."""
    cdef size_t nbytes
    cdef const uint8_t *p = fp_string(&s.kept.keys, id_, &nbytes)
    depth[0] = <uint32_t>(nbytes // sizeof(uint32_t)) - KEY_WORDS
    return <const uint32_t *>p  # all lengths are multiples of a word


cdef inline int store_enter(Store *s, uint32_t first, uint32_t *nodes) noexcept nogil:
    """The model's stacks of the keys from `first` on, FP_MODEL_STACKS at most.  0 or FP_E_NOMEM."""
    cdef uint32_t depths[FP_MODEL_STACKS]
    cdef uint32_t n = 0, i
    cdef uint64_t total = 0
    cdef const uint32_t *key
    while n < FP_MODEL_STACKS and first + n < s.kept.keys.n:
        key = key_of(s, first + n, &depths[n])
        if fp_array_room(&s.entering, &s.cap_entering, total + depths[n], sizeof(uint32_t)):
            return FP_E_NOMEM
        for i in range(depths[n]):
            s.entering[total + i] = s.frames[key[KEY_WORDS + i]]
        total += depths[n]
        n += 1
    return fp_model_stacks(s.model, s.entering, depths, n, nodes)


cdef inline int store_stacks(Store *s) noexcept nogil:
    """The model's stacks of all keys, to compare them.  0 or FP_E_NOMEM."""
    cdef uint32_t cap = 0, id_ = 1
    cdef int status = fp_array_zeroed(&s.nodes, &cap, s.kept.keys.n, sizeof(uint32_t))
    while status == 0 and id_ < s.kept.keys.n:
        status = store_enter(s, id_, s.nodes + id_)
        id_ += FP_MODEL_STACKS
    return status


cdef inline uint32_t store_node(Store *s) noexcept nogil:
    """The model's stack of the next key, which is entered with others, and again when the model has dropped them.
    FP_NO_ID when memory ran out."""
    cdef uint32_t first = s.next - (s.next - 1) % FP_MODEL_STACKS
    if s.entered != first or s.n_renewed != s.model.n_renewed:
        s.entered, s.n_renewed = first, s.model.n_renewed
        if store_enter(s, first, s.entered_nodes):
            return FP_NO_ID
    return s.entered_nodes[s.next - first]


cdef inline int store_merge(Store *s, bint lenient, fp_err *err) noexcept nogil:
    """Add up keys that became one row: of labels with equal texts, or of Java's ids with equal names.  All but the first
    get the node FP_NO_ID.  0 or an error."""
    cdef fp_table rows
    cdef uint32_t *firsts = NULL
    cdef uint32_t cap = 0, id_, i, depth, before
    cdef uint32_t row[4]
    cdef const uint32_t *key
    cdef int status = 0
    memset(&rows, 0, sizeof(rows))
    if fp_table_init(&rows, 4):
        return fp_fail(err, FP_E_NOMEM, 0, "memory")
    for i in range(1, s.kept.keys.n):
        key = key_of(s, i, &depth)
        row[0], row[1], row[2], row[3] = s.nodes[i], s.labels[key[0]], key[1], key[2]
        before = rows.n
        id_ = fp_table_intern(&rows, row)
        if id_ == FP_NO_ID or fp_array_room(&firsts, &cap, <uint64_t>id_ + 1, sizeof(uint32_t)):
            status = fp_fail(err, FP_E_NOMEM, 0, "memory")
        elif id_ == before:
            firsts[id_] = i
        elif store_add(s, firsts[id_], sums_of(s, i).v, N_VALUES):
            s.nodes[i] = FP_NO_ID
        elif not lenient:  # else both rows stay
            status = fp_fail(err, FP_E_OVERFLOW, sums_of(s, i).at,
                             "the sum of the values of equal samples is 2^63 or more")
            err.line = sums_of(s, i).line
        if status:
            break
    fp_table_clear(&rows)
    free(firsts)
    return status


cdef inline int store_drain(Store *s, fp_batch *b, fp_err *err) noexcept nogil:
    """Rows, as many as the batch has room for: FP_FULL, FP_DONE or an error."""
    cdef const uint32_t *key
    cdef uint32_t k, label, depth, node
    cdef size_t cap = b.cap
    while s.next < s.kept.keys.n:
        if s.nodes != NULL and s.nodes[s.next] == FP_NO_ID:
            s.next += 1
            continue
        if b.n == b.cap:
            return FP_FULL
        key = key_of(s, s.next, &depth)
        label = s.labels[key[0]]
        if s.bytes_key != 0:
            label = fp_model_label(s.model, label, s.bytes_key, 0, <int64_t>(key[1] | <uint64_t>key[2] << 32), 0)
            if label == FP_NO_ID:
                return fp_fail(err, FP_E_NOMEM, 0, "memory")
        node = store_node(s)
        if node == FP_NO_ID:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        b.stack[b.n] = node
        b.time[b.n] = 0
        b.thread[b.n] = 0
        b.label[b.n] = label
        for k in range(s.n_columns):
            b.values[k * cap + b.n] = sums_of(s, s.next).v[s.columns[k]]
        b.n += 1
        s.next += 1
    return FP_DONE
