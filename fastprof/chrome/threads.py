"""Maps processes and threads of Chrome's JSON to those of the model (csrc/chrome/threads.h)."""

from __future__ import annotations

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_buf, fp_chrome_id, fp_chrome_ids
from fastprof.core.model import Model, Part

_NO_ID = (1 << 32) - 1
_LANES = 1 << 31  # lanes get numbers below this, which viewers accept


class _Names:
    """Names of processes and threads in a document."""

    def __init__(self) -> None:
        self.labels: dict[int, bytes] = {}  # of processes
        self.processes: dict[int, bytes] = {}
        self.threads: dict[tuple[int, int], bytes] = {}
        self.ids: dict[int, bytes] = {}  # by our number: the id in the source

    def put(self, model: Model, part: Part, input_: int | None) -> None:
        """Put the names into a part and the model."""
        model.names.put(part, input_, self._labelled(), self.threads, self.ids)

    def _labelled(self) -> dict[int, bytes]:
        """Names of processes, with the labels that distinguish them: PyTorch calls all of them python."""
        labels = self.labels
        named = {pid: name + b" (%s)" % labels[pid] if pid in labels else name for pid, name in self.processes.items()}
        return named | {pid: name for pid, name in labels.items() if pid not in named}


class ThreadNames:
    """Process and thread ids of an input, looked up by struct fp_chrome_ids."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._inputs: dict[int, int] = {}  # by document: its number in the model
        self._documents: dict[int, int] = {}  # by that number
        self.again()

    def again(self) -> None:
        """Forget all names and numbers, because the input is read again."""
        self._names: list[_Names] = []  # by document
        self._n_new = self._n_copied = 0  # names not yet copied to the parts; those copied
        self._numbers: dict[tuple[Any, ...], int] = {}  # our numbers for ids that are not 32-bit numbers
        self._free = _NO_ID
        self._tids: set[int] = set()  # in use
        self._lane = _LANES

    def _of(self, document: int) -> _Names:
        """The names of a document."""
        while len(self._names) <= document:
            self._names.append(_Names())
        return self._names[document]

    def _number(self, id_: fp_chrome_id, *scope: int) -> int:
        """An id as the model holds it.  A text, a number beyond 32 bits, and a thread's number that a lane or track got
        before get a unique number."""
        fits = id_.kind != lib.FP_CHROME_TEXT and 0 <= id_.number < _NO_ID
        is_lane = bool(scope) and self._lane <= id_.number < _LANES and id_.number not in self._tids
        if fits and not is_lane:
            return int(id_.number)
        key = (*scope, int(id_.kind), int(id_.number), int(id_.string))
        if key not in self._numbers:
            self._free -= 1
            self._numbers[key] = self._free
        return self._numbers[key]

    def _text_of(self, id_: fp_chrome_id, number: int) -> bytes | None:
        """The original id, if the model has another number for it."""
        if id_.kind == lib.FP_CHROME_TEXT:
            return self._model.string(id_.string)
        return None if id_.number == number else b"%d" % id_.number

    def _ids(self, ids: fp_chrome_ids) -> tuple[int, int]:
        pid = self._number(ids.pid)
        tid = self._number(ids.tid, pid)
        self._tids.add(tid)
        for id_, number in ((ids.pid, pid), (ids.tid, tid)):
            if text := self._text_of(id_, number):
                self._of(ids.document).ids[number] = text
        return pid, tid

    def set_thread(self, ids: fp_chrome_ids) -> None:
        """Tell the reader its thread."""
        pid, tid = self._ids(ids)
        lib.fp_chrome_set_thread(ffi.addressof(ids), self._model.thread(pid, tid, self._input(ids)))
        self._n_new += 1

    def _input(self, ids: fp_chrome_ids) -> int:
        """Threads of two documents are distinct."""
        if ids.document not in self._inputs:
            self._inputs[ids.document] = input_ = self._model.input()
            self._documents[input_] = int(ids.document)
        return self._inputs[ids.document]

    def _unused(self) -> int:
        """The number of an additional thread."""
        self._lane -= 1
        while self._lane in self._tids:
            self._lane -= 1
        return self._lane

    def track(self, ids: fp_chrome_ids, category: bytes) -> int:
        """The model's thread for asynchronous calls of a category in a process."""
        pid, tid = self._ids(ids)[0], self._unused()
        names = self._of(ids.document)
        names.threads[pid, tid], names.ids[tid] = b"async " + category if category else b"async", b""
        self._n_new += 1
        return self._model.thread(pid, tid, self._input(ids))

    def lane(self, thread: int, lane: int) -> int:
        """The model's thread for a lane of a thread.  The thread's name must be known."""
        input_, pid, tid = self._model.row("threads", thread)
        added = self._unused()
        names = self._of(self._documents[input_])
        own = names.ids.get(tid, b"%d" % tid)
        name = names.threads.get((pid, tid), b"thread %b" % own)
        names.threads[pid, added] = b"%b [%d]" % (name, lane + 1)
        names.ids[added] = own if (pid, tid) in names.threads else b""
        self._n_new += 1
        return self._model.thread(pid, added, input_)

    def note(self, ids: fp_chrome_ids, text: fp_buf) -> None:
        """Record the name from a metadata event."""
        pid, tid = self._ids(ids)
        name, names = bytes(ffi.buffer(text.p, text.n)), self._of(ids.document)
        if ids.meta == 1:
            names.processes[pid] = name
        elif ids.meta == 3:
            names.labels[pid] = name
        else:
            names.threads[pid, tid] = name
        ids.noted = 1
        self._n_new += 1

    def add_names(self, parts: list[list[Part]], *, at_end: bool = False) -> None:
        """Copy the names to the parts, by document, if many are new or `at_end`: copying them for each new name would
        take quadratic time."""
        if not self._n_new or (not at_end and (self._n_new < self._n_copied or len(parts) < len(self._names))):
            return
        self._n_copied += self._n_new
        self._n_new = 0
        for document, (names, own) in enumerate(zip(self._names, parts, strict=False)):
            for part in own:
                names.put(self._model, part, self._inputs.get(document))
