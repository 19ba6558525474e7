"""Which frames belong to the allocator of a heap profile.

Readers of heaps set `drop_frames`, as pprof does: viewers then leave out an allocator's functions and rank those that
call it.  Its other frames, and those without a name, are known by their object.
"""

from fastprof.core import lazy_re as re
from fastprof.core.options import ValueOption

KEEP_ALLOCATOR = ValueOption.switch(
    "keep_allocator",
    help="heaps: keep the allocator's own frames",
    details="By default, functions of malloc and its like at the leaf of a heap profile's stacks are left out, so that "
    "their callers have the cost.  Conversions keep them.",
    kept_unused=(True,),
    rare=True,
)

# The functions' names, as a regular expression that matches whole names: pprof's, and further allocators'.
NAMES = (
    rb"(__libc_|tc_|je_|mi_)?(m|c|re|v|pv)alloc|(tc_|je_|mi_)?c?free|(__|tc_|je_)?(posix_|do_)?memalign"
    rb"|(je_)?(aligned_alloc|reallocarray|[mrx]allocx)|malloc_zone_.*|tcmalloc::.*"
    rb"|tc_(new|delete)(array)?(_nothrow)?|operator (new|delete)(\[\])?|__builtin_(vec_)?(new|delete)"
    rb"|(__)?(mmap(64)?|mremap|s?brk)|__(glibc|default)_morecore|sysmalloc.*|_int_(malloc|memalign|realloc).*"
    rb"|_mid_memalign|(alloc_)?new_heap|arena_get2|tcache_init"
    rb"|(::)?do_malloc(_pages|_no_errno)?|DoSampledAllocation|_M_allocate|(.*allocat.*::)?allocate"
)
# Go's runtime also calls the program.
GO_NAMES = NAMES + rb"|runtime\..*"
GO_KEPT = rb"runtime\.(panic|reflectcall|call[0-9]*)"
_ALLOCATE = rb"|(.*allocat.*::)?allocate"  # matched without a regular expression, which would be quadratic
_NAMES = re.compile(NAMES.removesuffix(_ALLOCATE) + rb"|(?!" + GO_KEPT + rb"$)runtime\..*", re.DOTALL)
_OBJECTS = re.compile(rb"(?:.*/)?(?:libjemalloc|libtcmalloc|libmimalloc|vgpreload_)[^/]*", re.DOTALL)
# Where the arguments of a C++ function begin.
_ARGUMENTS = re.compile(rb"(?<!operator)(?<!^)\((?!anonymous namespace\))")


def drops_allocator(drop_frames: bytes | None) -> bool:
    """Whether a profile's `drop_frames` are those of an allocator.  They come from a file, so they are not matched."""
    return bool(drop_frames) and b"alloc" in (drop_frames or b"")


def is_function(name: bytes) -> bool:
    """Whether a function belongs to an allocator, by its name with or without arguments."""
    name = _ARGUMENTS.split(name, maxsplit=1)[0]
    if _NAMES.fullmatch(name):
        return True
    qualifier, _, last = name.rpartition(b"::")
    return last == b"allocate" and (not qualifier or b"allocat" in qualifier)


def is_object(name: bytes) -> bool:
    """Whether an object is an allocator, by its path."""
    return bool(_OBJECTS.fullmatch(name))
