"""Reads the text of `perf script` (_lexer.pyx)."""

from collections.abc import Iterable

from fastprof.core._c import lib
from fastprof.core._typing import fp_batch, fp_err, fp_perf_script_branches, fp_window
from fastprof.core.branches import BRANCHES, most, none, value_types
from fastprof.core.c_memory import address_of, owned
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.reported import coded
from fastprof.formats.perf_script import COMM_FRAMES, has_only_branches, may_have_branches
from fastprof.formats.perf_script._lexer import Lexer
from fastprof.formats.perf_script.reported import REPORTED

# Events whose periods are nanoseconds, whatever modifiers follow: `cpu-clock:u`.
_CLOCKS = {"cpu-clock", "task-clock", "offcpu-time"}
# Fields of the recording in the output of `--header`.
_FACTS = {"hostname": "host", "os release": "kernel", "perf version": "perf_version", "captured on": "captured"}


class PerfScriptReader(NativeReader):
    """Samples of all events; each event has a value type for its samples, and one for its periods if it has some.

    Loses, and counts: CPU numbers, fields of tracepoints, registers, branches, records that are not samples.  Loses:
    addresses, which perf prints relative to the object or not, depending on its version.
    """

    format = "perf-script"
    view = "stacks"
    renews_stacks = True
    remarks = frozenset({"comments"})

    def start(self) -> None:
        self._lexer = Lexer(
            address_of(self.model.c),
            self.options[LENIENT],
            self.options[COMM_FRAMES],
            self.model.input(),
            self.model.intern("[unknown]"),
            self.model.intern("comm"),
        )
        self._n_comments = 0  # that parts have
        self._is_only_branches = has_only_branches(self.source.head)
        self.addresses = self.options[BRANCHES] or may_have_branches(self.source.head)
        self._b: fp_perf_script_branches | None = None  # reads branches, if there are no other rows

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        # targets that want branches can do nothing with samples without addresses
        if self.options[BRANCHES] or self.branches or self._is_only_branches:
            self._b = owned(lib.fp_perf_script_branches_new(self.model.c), "the reader of branches")
            self._b.lenient, self._b.most = self.options[LENIENT], most(self.options)
            types = value_types()
            self.part = self.model.add_part(Part(types, extra={"default_sample_type": types[0].name}))
        return super().ranges()

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if self._b is not None:
            return lib.fp_perf_script_branches_feed(self._b, in_, batch, err)
        return self._lexer.feed(address_of(in_), address_of(batch), address_of(err))

    def answer(self, batch: fp_batch) -> int | None:
        """Have columns for a new event."""
        if batch.n:
            return int(lib.FP_FULL)
        if self.part < 0:
            self._lexer.declare([self.model.intern(name) for name in self._recorded()])
        self.part = self.model.add_part(self._new_part(self._value_types()))
        self._lexer.use_columns()
        return None

    def _value_types(self) -> list[ValueType]:
        """`cycles` is the sum of the event's periods, `cycles_samples` how many samples it has."""
        types = []
        for string, has_period in self._lexer.columns:
            name = self.model.string(string).decode("utf-8", "replace")
            types.append(ValueType(f"{name}_samples" if name else "samples", "count"))
            if has_period:
                unit = "nanoseconds" if name.partition(":")[0] in _CLOCKS else "count"
                types.append(ValueType(name or "events", unit))
        return types

    def _new_part(self, types: list[ValueType]) -> Part:
        comments = self._lexer.comments.splitlines()
        self._n_comments = len(comments)
        header = {key.decode("utf-8", "replace"): value for key, value in self._header()}
        for key, fact in _FACTS.items():
            if key in header:
                self.log.facts[fact] = header[key].decode("utf-8", "replace")
        return Part(
            types,
            command=header.get("cmdline"),
            comments=[line[1:].strip() for line in comments],
            # that of the first event, which perf shows first, too: of the header, otherwise of the text
            extra={"default_sample_type": types[1 if self._lexer.columns[0][1] else 0].name},
        )

    def _header(self) -> list[tuple[bytes, bytes]]:
        """The fields of `--header`: `# hostname : demo-host`."""
        lines = self._lexer.comments.splitlines()
        pairs = [line[2:].partition(b": ") for line in lines if line[2:3].strip()]
        return [(key.rstrip(), value.strip()) for key, colon, value in pairs if colon]

    def _recorded(self) -> list[bytes]:
        """The names of the recorded events: `# event : name = cycles, , id = ...`."""
        begin = b"name = "
        events = (value for key, value in self._header() if key == b"event" and value.startswith(begin))
        names = (event.removeprefix(begin).partition(b", ") for event in events)
        return [name for name, comma, _ in names if comma and not name.startswith(b"dummy")]

    def _name_threads(self) -> None:
        """The comm of the main thread also names the process.  Without process ids, each comm may be one."""
        threads = {self.model.row("threads", i): self.model.string(comm) for i, comm in self._lexer.comms.items()}
        if threads and self.part >= 0:
            self.model.names.put_comms(self.model.parts[self.part], threads)

    def finish(self) -> None:
        if self._b is not None:
            self._finish_branches(self._b)
            return
        counts, log = self._lexer.counts, self.log
        self._name_threads()
        found = coded(REPORTED, counts)
        log.count_all(REPORTED, found | {"comments": found["comments"] - self._n_comments})
        if counts["open_end"]:
            log.warn(REPORTED["maybe-cut-off"], file=self.source.name)

    def _finish_branches(self, read: fp_perf_script_branches) -> None:
        counts = read.counts
        if not counts.branches and not counts.half_branches:
            raise none(self.source.name, self.options)
        self.log.count_all(REPORTED, counts)
        self.log.facts["branches"], self.log.facts["mispredicted_branches"] = (
            int(counts.branches),
            int(counts.mispredicted),
        )
