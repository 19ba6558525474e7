"""Names and numbers of processes and threads in formats for viewers."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fastprof.core._typing import NamedTuple
from fastprof.core.model import Model, Part


class ThreadIds(NamedTuple):
    process: int  # from 1, in the order of the requests
    process_name: str
    pid: int
    tid: int
    name: str
    new_process: bool


class Threads:
    """Assigns unique process and thread numbers to the threads of a model.

    To viewers, equal numbers are the same thread, even from different inputs, and 0 is none.  So a thread whose numbers
    are taken, unknown or above `most_pid` and `most_tid` gets others; `renumbered` counts these threads.
    `comms`: by thread, a name for those without one in the part; that of its main thread also names the process.
    """

    def __init__(self, model: Model, most_pid: int, most_tid: int, comms: Mapping[int, bytes] | None = None) -> None:
        self._model = model
        self._comms = comms or {}
        self._of_processes: dict[tuple[int, int], bytes] = {}
        for thread, name in self._comms.items():
            input_, pid, tid = model.row("threads", thread)
            if pid and (tid == pid or (input_, pid) not in self._of_processes):
                self._of_processes[input_, pid] = name
        self._processes: dict[tuple[int, int], tuple[int, str, int]] = {}  # input, pid: number, name, pid in the output
        self._pids, self._tids = _Free(most_pid), _Free(most_tid)
        self.renumbered = 0
        # the names in the last part, and the same by id
        self._last_names: tuple[list[tuple[int, bytes]] | None, list[tuple[int, int, bytes]] | None] = None, None
        self._named: tuple[dict[int, bytes], dict[tuple[int, int], bytes]] = {}, {}

    def ids_of(self, thread: int, part: Part) -> ThreadIds:
        """Call it once for each thread."""
        input_, pid, tid = self._model.row("threads", thread)
        key = input_, pid
        new_process = key not in self._processes
        if new_process:
            own_pid = self._pids.take(pid)
            self._processes[key] = len(self._processes) + 1, self._process_name(input_, pid, part), own_pid
        process, process_name, own_pid = self._processes[key]
        own_tid = self._tids.take(tid)
        self.renumbered += (pid != 0 and own_pid != pid) or (tid != 0 and own_tid != tid)
        name = _text(self._comms.get(thread, b"")) or (f"thread {tid}" if tid else "thread")
        return ThreadIds(process, process_name, own_pid, own_tid, name, new_process)

    def called(self, thread: int, ids: ThreadIds, part: Part) -> tuple[str, str]:
        """The names of the process and the thread, from the source if it has them.  The name of a renumbered thread is
        followed by its original number."""
        _, pid, tid = self._model.row("threads", thread)
        names = part.extra.get("process_names"), part.extra.get("thread_names")
        if self._last_names[0] is not names[0] or self._last_names[1] is not names[1]:
            self._last_names = names
            self._named = dict(names[0] or ()), {(pid, tid): name for pid, tid, name in names[1] or ()}
        processes, threads = self._named
        process = _text(processes[pid]) if pid in processes else ids.process_name
        if (pid, tid) not in threads:
            return process, ids.name
        name = _text(threads[pid, tid])
        return process, name if tid in (0, ids.tid) else f"{name} ({tid})"

    def _process_name(self, input_: int, pid: int, part: Part) -> str:
        """The comm of its main thread, otherwise the command, otherwise the only object that is a file, otherwise the
        input, or the profile of an archive."""
        model = self._model
        if (input_, pid) in self._of_processes:
            return _text(self._of_processes[input_, pid])
        objects = (model.string(model.row("objects", i)[0]) for i in range(1, model.count("objects")))
        names = {name for name in objects if name and name[:1] != b"["}  # [kernel.kallsyms] is no program
        if part.command and part.command.split():
            name = _text(part.command.split()[0])
        elif len(names) == 1:
            name = _text(names.pop())
        else:
            name = model.inputs[min(input_, len(model.inputs) - 1)] if model.inputs else ""
            name = model.titles.get(name, name)
        return os.path.basename(name).encode("utf-8", "replace").decode()


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


class _Free:
    """Distinct numbers from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self._most = self._next = most
        self._taken: set[int] = set()

    def take(self, wanted: int) -> int:
        """The requested number; if it is taken, the largest free one."""
        if not 0 < wanted <= self._most or wanted in self._taken:
            while self._next in self._taken:
                self._next -= 1
            wanted = self._next
        self._taken.add(wanted)
        return wanted
