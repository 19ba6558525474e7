"""Numbers of processes and threads in formats for viewers, and their names next to these numbers."""

from __future__ import annotations

import os

from fastprof.core._typing import NamedTuple
from fastprof.core.model import Model, Part
from fastprof.core.parts import labels_of
from fastprof.core.thread_names import ThreadNames, called, joined


class ThreadIds(NamedTuple):
    process: int  # from 1, in the order of the requests
    pid: int
    tid: int
    new_process: bool


class Threads:
    """Assigns unique process and thread numbers to the threads of a model.

    To viewers, equal numbers are the same thread, even from different inputs, and 0 is none.  So a thread whose numbers
    are taken, unknown or above `most_pid` and `most_tid` gets others; `renumbered` counts these threads.
    """

    def __init__(self, model: Model, most_pid: int, most_tid: int) -> None:
        self._model, self._names = model, ThreadNames(model)
        # by input, pid and, if that is unknown, the name of a process: number, pid in the output
        self._processes: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._pids, self._tids = _Free(most_pid), _Free(most_tid)
        self.renumbered = 0

    def ids_of(self, thread: int) -> ThreadIds:
        """Call it once for each thread."""
        input_, pid, tid = row = self._model.row("threads", thread)
        key = input_, pid, self._names.comm(row)
        new_process = key not in self._processes
        if new_process:
            self._processes[key] = len(self._processes) + 1, self._pids.take(pid)
        process, own_pid = self._processes[key]
        own_tid = self._tids.take(tid)
        self.renumbered += (pid != 0 and own_pid != pid) or (tid != 0 and own_tid != tid)
        return ThreadIds(process, own_pid, own_tid, new_process)

    def called(self, thread: int, ids: ThreadIds, part: Part) -> tuple[str, str]:
        """The names of the process and the thread.  Each is followed by its id in the source, if `ids` has another one.
        Call it after the last row: some sources name threads at their end."""
        names, row = self._names, self._model.row("threads", thread)
        pid, tid = names.id(row[0], row[1]), names.id(row[0], row[2])
        process = self._process(row, part)
        name = names.thread(*row)
        return self._where(row, part, process, pid if pid != str(ids.pid) else ""), (
            called(name, tid if tid != str(ids.tid) else "", "thread") or called("", tid, "thread") or "thread"
        )

    def text(self, thread: int, part: Part) -> str:
        """The process and the thread in one text, for formats without ids."""
        names, row = self._names, self._model.row("threads", thread)
        process = "" if names.comm(row) else self._process(row, part)
        return joined(self._where(row, part, process, names.id(row[0], row[1])), names.thread_text(*row) or "thread")

    def _where(self, row: tuple[int, ...], part: Part, process: str, pid: str) -> str:
        """The text of a process, which may be named after its input."""
        labels = ", ".join(f"{_text(key)}={_text(value)}" for key, value in labels_of(part))  # also of an archive
        where, text = labels or self._names.where(*row[:2]), called(process, pid, "process")
        return f"{text} [{where}]".lstrip() if where and where != process else text

    def _process(self, row: tuple[int, ...], part: Part) -> str:
        """The name of a process."""
        names = self._model.names
        if comm := self._names.comm(row):
            return comm
        if row[:2] in names.processes:  # maybe it has none
            return self._names.process(*row[:2])
        return self._process_name(row[0], part)

    def _process_name(self, input_: int, part: Part) -> str:
        """The command, otherwise the only object that is a file, otherwise the input, or the profile of an archive."""
        model = self._model
        objects = (model.string(model.row("objects", i)[0]) for i in range(1, model.count("objects")))
        names = {name for name in objects if name and name[:1] != b"["}  # [kernel.kallsyms] is no program
        if part.command and part.command.split():
            name = _text(part.command.split()[0])
        elif len(names) == 1:
            name = _text(names.pop())
        else:
            name = model.names.input(input_)
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
