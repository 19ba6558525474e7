"""Kinds of work that stand out in a profile, by the names of functions: waiting, locks, allocator, garbage collector,
kernel.  A function may be of several kinds."""

import re

from fastprof.core import allocators

_WAITING = (
    r"(do_|__x64_sys_|sys_|__|runtime\.)?futex(_wait\w*|sleep|\.abi0)?|__futex_abstimed_wait\w*"
    r"|(__|___)?pthread_cond_(timed|clock)?wait\w*"
    r"|(do_|__|sys_)?(epoll_p?wait2?|poll|ppoll|select|pselect6?|nanosleep|clock_nanosleep|usleep|sleep)(@\w+)?"
    r"|runtime\.(notesleep|notetsleep\w*|gopark|park_m|netpoll|usleep|epollwait|mPark|stopm|findrunnable|findRunnable)"
    r"|(linux:)?schedule|schedule_timeout|schedule_hrtimeout\w*|do_wait|wait4|accept4?|(__)?accept_nocancel"
    r"|(java\.lang\.)?Object\.wait0?|((jdk\.internal|sun)\.misc\.)?Unsafe\.park|Unsafe_Park|Parker::park|Thread\.sleep0?"
    r"|(time|_?thread|gevent)\.sleep|(select|poll)\.(select|poll|epoll)\S*"
    r"|WaitFor(Single|Multiple)Objects?(Ex)?|Nt(Wait\w+|DelayExecution)|mach_msg\w*|__psynch_cvwait|kevent\w*"
)
_IDLE = (
    r"\(idle\)|\[idle\]|<idle>|swapper|do_idle|cpu_startup_entry|cpuidle_\w+|intel_idle\w*|acpi_idle\w*|mwait_idle\w*"
    r"|default_idle\w*|arch_cpu_idle|(native|pv_native)_safe_halt|poll_idle|cpu_idle\w*"
)
_LOCKS = (
    r"(__|___|__GI___)?pthread_(mutex_(lock|timedlock|unlock)\w*|rwlock_\w+lock|spin_lock)|_*lll_lock_wait\w*"
    r"|(native|pv)_queued_spin_lock_slowpath|queued_spin_lock\w*|_raw_(spin|read|write)_lock\w*|(__)?mutex_(spin\w*|lock\w*)"
    r"|rwsem_down_\w+|(down|up)_(read|write)\w*|osq_lock"
    r"|(internal/)?sync\.\(\*(RW)?Mutex\)\.(R?Lock(Slow)?|R?Unlock(Slow)?|lockSlow)|runtime\.(lock2?|lockWithRank|unlock2?)"
    r"|runtime\.(sem(acquire|release)\w*)|sync\.runtime_Sem\w+|runtime\.\(\*(rw)?mutex\)\.\w+"
    r"|ObjectMonitor::\w*enter\w*|ObjectSynchronizer::\w+|Monitor::(lock|wait)\w*|Mutex::lock\w*"
    r"|(java\.util\.concurrent\.locks\.)?(AbstractQueuedSynchronizer|ReentrantLock|ReentrantReadWriteLock)\S*\.(acquire|lock)\w*"
    r"|std::(mutex|shared_mutex|recursive_mutex)::lock\w*|parking_lot::\S*lock\S*|std::sync::\S*(Mutex|RwLock)\S*lock\S*"
    r"|take_gil|PyThread_acquire_lock\w*|lock_PyThread_acquire_lock|\{?method 'acquire' of '_thread\.\w+' objects\}?"
)
_ALLOCATOR = (
    r"runtime\.(mallocgc\w*|newobject|makeslice\w*|growslice|newarray|nextFreeFast|\(\*mcache\)\.\w+|\(\*mcentral\)\.\w+"
    r"|\(\*mheap\)\.\w+)"
    r"|_int_free\w*|malloc_consolidate|unlink_chunk\S*|cfree|sys(malloc|trim)\w*|_?PyObject_(Malloc|Free|Realloc|Calloc)"
    r"|_?PyMem_(Raw)?(Malloc|Free|Realloc|Calloc)|__rust_(alloc|dealloc|realloc)\w*|__rdl_\w*alloc|kmalloc\w*|kfree\w*"
    r"|kmem_cache_(alloc|free)\w*|__(alloc_pages|get_free_pages)\w*|xmalloc|xrealloc|g_malloc0?|g_free|av_mallocz?"
)
_COLLECTOR = (
    r"runtime\.(gc[A-Z]\w*|bgsweep|bgscavenge|scanobject|scanblock|markroot\w*|greyobject|sweepone|wbBufFlush\w*|shade)(\.func\d+)?"
    r"|runtime\.\(\*sweepLocked\)\.\w+|\((garbage collect(or|ion)|sweeping|marking)\)|\[GC\]|<GC>|GC_\w+"
    r"|(G1|Parallel|PS|Shenandoah|Z|Concurrent)\w*(GC|Collector|Mark|Evac|Scan|Scavenge)\w*(::\S+)?|GangWorker::\w+|WorkerThread::run"
    r"|gc_collect\w*|_PyGC_\w+|deduce_unreachable|gc_mark\w*|gc_sweep\w*|v8::internal::\w*(MarkCompact|Scavenger|Heap::)\S*"
)
_KERNEL_OBJECT = re.compile(
    r"\[(guest\.)?kernel.*|\[k\]|\[vmlinux\]|\(?vmlinux\S*|.*/vmlinux(-[^/]*)?|\[[\w.-]+\.ko\]|.*\.ko(\.\w+)?|kernel"
)
_KERNEL_NAME = re.compile(r".+_\[k\]")

# By code: what a finding calls it.
KINDS = {
    "waiting": "waiting or idle",
    "locks": "locks",
    "allocator": "the allocator",
    "collector": "the garbage collector",
    "kernel": "the kernel",
}
_NAMES = {
    "waiting": re.compile(f"{_WAITING}|{_IDLE}"),
    "locks": re.compile(_LOCKS),
    "allocator": re.compile(_ALLOCATOR),
    "collector": re.compile(_COLLECTOR),
}
_MAPS = re.compile(r"_*(mmap(64)?|mremap)")  # which also map files
_ARGUMENTS = re.compile(r"(?<!^)(?<!operator)(?<!\.)\((?!\*|anonymous).*", re.DOTALL)
_MOST = 200  # characters of a name that are looked at: patterns take time, and names come from files


def kinds_of(name: str, object_: str) -> frozenset[str]:
    """The kinds of work of a function."""
    bare = name[:_MOST].removesuffix("_[k]").removesuffix("_[i]").removesuffix("@plt")
    bare = bare if _NAMES["waiting"].fullmatch(bare) else _ARGUMENTS.sub("", bare)
    found = {kind for kind, names in _NAMES.items() if names.fullmatch(bare)}
    of_programs = not (bare.startswith("runtime.") or _MAPS.fullmatch(bare))
    if of_programs and allocators.is_function(bare.encode("utf-8", "replace")):
        found.add("allocator")
    if _KERNEL_OBJECT.fullmatch(object_[:_MOST]) or _KERNEL_NAME.fullmatch(name[:_MOST]):
        found.add("kernel")
    return frozenset(found)


_UNNAMED = re.compile(
    r"|\?+|\[unknown\]|<unknown>|unknown|\(unknown\)|(0x)?[0-9a-fA-F]{6,16}|0x[0-9a-fA-F]+|#\d+|\[(.*\+)?0x[0-9a-f]+\]"
)


def is_unnamed(name: str) -> bool:
    """Whether a function is an address or a number, or nothing."""
    return bool(_UNNAMED.fullmatch(name[:_MOST]))
