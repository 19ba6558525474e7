"""What threads and processes are called: one rule for all verbs, pages and conversions.

    srv (7): worker A (8)             both have names
    srv (7): thread 9                 the thread has none
    process 7, thread 8               neither has one
    python (10) [r0.trace.json]: ...  processes of several inputs have the same id, or options label the inputs

Ids are those of the source, also if the model has other numbers for them: texts, and numbers beyond 32 bits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from fastprof.core._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastprof.core.model import Model, Part


class Names:
    """The names that readers find, by input of the model; part of a Model."""

    def __init__(self) -> None:
        self.processes: dict[tuple[int, int], bytes] = {}  # by input and pid
        self.threads: dict[tuple[int, int, int], bytes] = {}  # by input, pid and tid
        self.comms: dict[tuple[int, ...], bytes] = {}  # Linux's names of threads whose process is unknown
        # By input and number in the model, if it is not the source's: the id in the source; empty: it has none.
        self.ids: dict[tuple[int, int], bytes] = {}
        self.of_parts: dict[int, int] = {}  # by part that a bridge made of a thread's rows: the thread
        self.labels: dict[str, Mapping[str, str]] = {}  # by name of an input: the labels that options give it
        self._inputs: dict[int, str] = {}  # by input of the model: its name, if it is not that of its reader
        self._starts: list[tuple[int, str]] = []  # the first input of the model for each reader, and its name

    def begin(self, first: int, name: str) -> None:
        """A reader begins: inputs of the model from `first` on belong to the input with this name."""
        while self._starts and self._starts[-1][0] >= first:  # it begins again, or got no inputs
            self._starts.pop()
        self._starts.append((first, name))

    def put(
        self,
        part: Part,
        input_: int | None,
        processes: Mapping[int, bytes],
        threads: Mapping[tuple[int, int], bytes],
        ids: Mapping[int, bytes],
    ) -> None:
        """Add the names of an input of the model to it and to a part, where archives keep them."""
        found = {
            "process_names": [*processes.items()],
            "thread_names": [(pid, tid, name) for (pid, tid), name in threads.items()],
            "own_ids": [*ids.items()],
        }
        for key, names in found.items():
            part.extra.pop(key, None)  # keeps the order of keys fixed
            if names:
                part.extra[key] = names
        if input_ is not None:
            self.take(part, input_)

    def put_comms(self, part: Part, comms: Mapping[tuple[int, ...], bytes]) -> None:
        """Add Linux's names of threads, by input, pid and tid; that of the main thread is its process's, too."""
        processes, threads = dict[int, bytes](), dict[tuple[int, int], bytes]()
        for (input_, pid, tid), name in comms.items():
            if pid and (tid == pid or pid not in processes):
                processes[pid] = self.processes[input_, pid] = name
            if not pid:
                self.comms[input_, pid, tid] = name
            threads[pid, tid] = self.threads[input_, pid, tid] = name
        self.put(part, None, processes, threads, {})

    def take(self, part: Part, input_: int) -> None:
        """Add the names in a part to those of an input of the model."""
        extra = part.extra
        self.processes.update(((input_, pid), name) for pid, name in extra.get("process_names", ()))
        self.threads.update(((input_, pid, tid), name) for pid, tid, name in extra.get("thread_names", ()))
        self.ids.update(((input_, number), text) for number, text in extra.get("own_ids", ()))

    def of_thread(self, row: tuple[int, ...]) -> dict[str, Any]:
        """The names of a thread (input, pid, tid) for `extra` of a part with its rows."""
        input_, pid, tid = row
        found: dict[str, Any] = {}
        if name := self.processes.get((input_, pid)):
            found["process_names"] = [(pid, name)]
        if name := self.threads.get((input_, pid, tid)):
            found["thread_names"] = [(pid, tid, name)]
        if ids := [(n, self.ids[input_, n]) for n in dict.fromkeys((pid, tid)) if (input_, n) in self.ids]:
            found["own_ids"] = ids
        return found

    def _number(self, input_: int) -> int:
        from bisect import bisect_right

        return bisect_right(self._starts, input_, key=lambda start: start[0])

    def first(self, input_: int) -> int:
        """The first input of the model of the same reader: calls that overlap get another one
        (core/overlap_lanes.h)."""
        at = self._number(input_)
        return self._starts[at - 1][0] if at else input_

    def input(self, input_: int) -> str:
        """The name of the input that an input of the model belongs to; "" if unknown."""
        at = self._number(input_)
        return self._inputs.get(input_) or (self._starts[at - 1][1] if at else "")

    # ---- archives of several inputs, whose parts do not state which input a name is from

    def by_input(self, threads: Iterable[tuple[int, ...]]) -> list[list[Any]]:
        """For each input its number, its name, and the names of its processes and threads; [] if these `threads`
        (input, pid, tid) are of one input, or no two inputs have a process with the same id."""
        pids: dict[int, set[int]] = {}
        for input_, pid, _ in threads:
            pids.setdefault(input_, set()).add(pid)
        if sum(map(len, pids.values())) == len(set[int]().union(*pids.values())):
            return []
        processes: dict[int, list[list[Any]]] = {input_: [] for input_ in pids}
        named: dict[int, list[list[Any]]] = {input_: [] for input_ in pids}
        for (input_, pid), name in self.processes.items():
            processes.get(input_, []).append([pid, name])
        for (input_, pid, tid), name in self.threads.items():
            named.get(input_, []).append([pid, tid, name])
        return [[input_, self.input(input_), processes[input_], named[input_]] for input_ in sorted(pids)]

    def put_input(self, input_: int, name: str, processes: list[list[Any]], threads: list[list[Any]]) -> None:
        """Add what `by_input` gave."""
        self._inputs[input_] = name
        self.processes.update(((input_, pid), text) for pid, text in processes)
        self.threads.update(((input_, pid, tid), text) for pid, tid, text in threads)


class ThreadNames:
    """Looks up what threads of a model are called.  Names that come later are found later."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._n_threads = 0
        self._inputs: dict[int, set[str]] = {}  # by pid: the inputs that have it

    # ---- names and ids

    def process(self, input_: int, pid: int) -> str:
        """The name of a process, without its id; "": it has none."""
        names = self._model.names
        return _text(names.processes.get((input_, pid)) or names.processes.get((names.first(input_), pid), b""))

    def thread(self, input_: int, pid: int, tid: int) -> str:
        """The name of a thread, without its id; "": it has none."""
        names = self._model.names
        name = _text(names.threads.get((input_, pid, tid)) or names.threads.get((names.first(input_), pid, tid), b""))
        return "" if name == f"thread {self.id(input_, tid)}" else name  # as writers name threads without one

    def comm(self, row: tuple[int, ...]) -> str:
        """The name of the process of a thread (input, pid, tid) whose pid is unknown, if its comm may be that."""
        return "" if row[1] else _text(self._model.names.comms.get(row, b""))

    def id(self, input_: int, number: int) -> str:
        """The id of a process or thread in the source; "": it has none."""
        names = self._model.names
        own = names.ids.get((input_, number), names.ids.get((names.first(input_), number)))
        return _text(own) if own is not None else str(number) if number else ""

    def where(self, input_: int, pid: int) -> str:
        """What tells the process apart from those of other inputs: their labels, otherwise the input; "" if nothing
        has to."""
        names, model = self._model.names, self._model
        name = names.input(input_)
        if labels := names.labels.get(name):
            return ", ".join(f"{key}={value}" for key, value in labels.items())
        inputs = self._with(pid)
        if len(inputs) < 2:
            return ""
        titles = {one: model.titles.get(one, one) for one in inputs}
        bases = {one: title.rpartition("/")[2] for one, title in titles.items()}
        shown = bases if len({*bases.values()}) == len(bases) else titles
        return shown.get(name, name)

    def _with(self, pid: int) -> set[str]:
        """The inputs with this process."""
        model, n = self._model, self._model.count("threads")
        for i in range(max(self._n_threads, 1), n):
            input_, its, _ = model.row("threads", i)
            self._inputs.setdefault(its, set()).add(model.names.input(input_))
        self._n_threads = n
        return self._inputs.get(pid, set())

    # ---- the rule

    def process_text(self, input_: int, pid: int) -> str:
        """`srv (7)`; "" if neither name nor id are known."""
        text = called(self.process(input_, pid), self.id(input_, pid), "process")
        where = self.where(input_, pid)
        return f"{text} [{where}]".lstrip() if where else text

    def thread_text(self, input_: int, pid: int, tid: int) -> str:
        """`worker A (8)`; "" if neither name nor id are known."""
        return called(self.thread(input_, pid, tid), self.id(input_, tid), "thread")

    def texts(self, row: tuple[int, ...]) -> set[str]:
        """What --thread may call a thread (input, pid, tid)."""
        name, id_ = self.thread(*row), self.id(row[0], row[2])
        return {name, id_, called(name, id_, "thread"), self.text_of(row)} - {""}

    def text(self, thread: int) -> str:
        """The process and the thread of a thread of the model."""
        return self.text_of(self._model.row("threads", thread))

    def text_of(self, row: tuple[int, ...]) -> str:
        """The process and the thread, of a row of the table of threads: input, pid, tid."""
        input_, pid, tid = row
        process = self.process_text(input_, pid)
        return joined(process, self.thread_text(input_, pid, tid), is_named=not pid or bool(self.process(input_, pid)))


def text_of_part(part: Part) -> str:
    """The process and the thread that the rows of a part are of, as ThreadNames.text."""
    pid, tid = part.named("pid"), part.named("thread")
    extra = part.extra
    processes: dict[object, bytes] = dict(extra.get("process_names", ()))
    threads: dict[object, bytes] = {its: name for of, its, name in extra.get("thread_names", ()) if of == (pid or 0)}
    ids: dict[object, bytes] = dict(extra.get("own_ids", ()))

    def id_of(number: object) -> str:
        own = ids.get(number, number)
        return _text(own) if isinstance(own, bytes) else str(own) if own else ""

    process = _text(processes.get(pid or 0, b""))
    thread = called(_text(threads.get(tid, b"")), id_of(tid), "thread")
    return joined(called(process, id_of(pid), "process"), thread, is_named=bool(process))


def called(name: str, id_: str, what: str) -> str:
    """`name (id)`, `name` or `what id`."""
    if not name or not id_:
        return name or (id_ and f"{what} {id_}")
    return name if name.endswith(f"({id_})") else f"{name} ({id_})"


def joined(process: str, thread: str, *, is_named: bool = True) -> str:
    """`is_named`: the process has a name."""
    return (": " if is_named else ", ").join(filter(None, (process, thread))) or "(unknown)"


_MOST_ID = (1 << 32) - 2  # the model has no larger numbers


def is_name(thread: int | str) -> bool:
    """Whether what --thread gives has to be looked up in the input."""
    return isinstance(thread, str) or thread > _MOST_ID


def is_chosen(pid: object, tid: object, threads: Container[Any]) -> bool:
    """Whether `threads`, ids and pairs (pid, tid), contain this thread."""
    return tid in threads or (pid, tid) in threads


def apart(texts: Iterable[str]) -> list[str]:
    """The texts; the second of equal ones is `text [2]`."""
    texts = [*texts]
    taken, found = {*texts}, dict[str, None]()
    for text in texts:
        name, n = text, 1
        while name in found or (n > 1 and name in taken):
            n += 1
            name = f"{text} [{n}]"
        found[name] = None
    return [*found]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
