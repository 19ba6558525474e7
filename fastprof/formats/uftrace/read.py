"""Reads data directories of uftrace (csrc/uftrace/read.h)."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from fastprof.core._c import lib
from fastprof.core._typing import NamedTuple, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import enough
from fastprof.core.errors import FormatError, check
from fastprof.core.folder import File
from fastprof.core.model import Part
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.tar import members
from fastprof.formats.uftrace import MAGIC
from fastprof.formats.uftrace.arguments import MOST_PATTERNS, Arguments
from fastprof.formats.uftrace.mappings import Mapping, Mappings
from fastprof.formats.uftrace.reported import REPORTED
from fastprof.symbols import DEMANGLE
from fastprof.symbols.demangle import demangle

_HEAD, _NEVER, _MOST_SESSIONS = 40, (1 << 64) - 1, 1 << 16
_MOST_TIMES = 16  # that an archive's size is read, by hard links
_TASK = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')
_NUMBER = re.compile(r"\d{1,10}")
_MAP = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S+ [0-9a-f]+ \S+ \d+ +(/.*?)(?: build-id:(\w*))?")
_SYMBOL = re.compile(r"([0-9a-f]{1,16}) (\S) (.+)")
_DEBUG = re.compile(r"F: ([0-9a-f]{1,16}) .*(?:\nL: (\d{1,9}) (.+))?(?:\nA: @(.+))?(?:\nR: @(.+))?")


class Session(NamedTuple):
    """The mappings of a process from a time on."""

    time: int
    pid: int
    sid: str
    program: str


class Symbols(NamedTuple):
    starts: list[int]
    names: list[tuple[str, str]]  # type, name
    debug: dict[int, tuple[str, int, str]]  # file, line, arguments and return value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class UftraceReader(NativeReader):
    """One thread after the other, each in order of time."""

    format = "uftrace"
    view = "timeline"
    new = lib.fp_uftrace_new

    def start(self) -> None:
        super().start()
        files = members(
            self.source, (lambda: self.log.count(REPORTED["damaged-archives"])) if self.options[LENIENT] else None
        )
        below = min((os.path.dirname(f.name) for f in files if os.path.basename(f.name) == "info"), default="")
        self._files = {os.path.basename(f.name): f for f in files if os.path.dirname(f.name) == below}
        self._file = ""  # that is being read
        self._texts: dict[str, str] = {}
        head, info = self._bytes("info", 0, _HEAD), self._bytes("info", _HEAD).decode("utf-8", "surrogateescape")
        if head[:8] != MAGIC or len(head) < _HEAD:
            raise self.damaged("the directory has no file info of uftrace", 0)
        if head[8:12] != b"\4\0\0\0" or head[14] != 1:
            what = f"version {int.from_bytes(head[8:12], 'little')} or its byte order, expected 4 and little-endian"
            raise FormatError(self._where("info"), self.format, what, offset=8, code=int(lib.FP_E_VERSION))
        self._info = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        self._arguments = Arguments(info, word=8 if head[15] == 2 else 4)
        if len(self._arguments.patterns) > MOST_PATTERNS:
            what = f"more than {MOST_PATTERNS} patterns of functions"
            raise FormatError(self._where("info"), self.format, what, offset=_HEAD)
        self._pids = dict[int, int]()
        self._parents = dict[int, tuple[int, int]]()  # by process: of which it was forked, and when
        self._sessions: list[Session] = []
        self._maps: dict[str, Mappings] = {}  # by session id
        self._of: dict[int, list[tuple[int, int]]] = {}  # by process: time and index of its sessions, in order
        self._forked: dict[int, int | None] = {}  # by process: the session in which it was forked
        self._own: list[tuple[int, int]] = []  # those of the thread
        self._symbols: dict[str, Symbols] = {}
        self._functions: dict[tuple[str, str, int], tuple[int, bytes]] = {}  # and sizes, by symbol
        self._read_tasks()
        self._input = self.model.input()
        self._refused: set[str] = set()
        part = Part(command=_bytes(self._info.get("cmdline", "")), extra={"ticks_per_second": 1_000_000_000})
        self.part = self.model.add_part(part)

    def _text(self, name: str) -> str:
        """A small file, all of it.  While ranges are read, only those that were read ahead."""
        if name in self._texts or self._file:
            return self._texts.pop(name, "")
        return self._bytes(name).decode("utf-8", "surrogateescape")

    def _bytes(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        file = self._files.get(name)
        if not file or start >= file.size:
            return b""
        return self.source.read_at(file.start + start, min(file.size, end or file.size) - start)

    def _where(self, name: str) -> str:
        return f"{self.source.name}{'/' if self.source.folder is not None else ':'}{self._files[name].name}"

    # ---- tasks and sessions

    def _read_tasks(self) -> None:
        for line in self._text("task.txt").splitlines():
            of = {key: text or word for key, text, word in _TASK.findall(line)}
            numbers = {key: int(of[key]) for key in ("pid", "tid", "ppid") if _NUMBER.fullmatch(of.get(key, ""))}
            seconds, _, ns = of.get("timestamp", "").partition(".")
            if not (seconds.isdecimal() and ns.isdecimal() and len(ns) == 9 and len(seconds) < 10):
                continue
            time, pid = int(seconds + ns), numbers.get("pid", numbers.get("tid", 0)) & 0xFFFFFFFF
            if line.startswith("SESS ") and len(self._sessions) < _MOST_SESSIONS:
                sid = of.get("sid", "")
                if sid not in self._maps:
                    self._maps[sid] = self._mappings(sid)
                self._of.setdefault(pid, []).append((time, len(self._sessions)))
                self._sessions.append(Session(time, pid, sid, of.get("exename", "")))
            elif line.startswith("DLOP ") and re.fullmatch("[0-9a-f]{1,16}", of.get("base", "")):
                base, library = int(of["base"], 16), of.get("libname", "")
                if maps := self._maps.get(of.get("sid", "")):
                    maps.add(base, base + (self._symbols_of(library).starts or [-1])[-1] + 1, library)
            elif line.startswith(("TASK ", "FORK ")):
                self._pids[numbers.get("tid", pid)] = pid
                if line.startswith("FORK "):
                    self._parents[pid] = numbers.get("ppid", pid), time
        for sessions in self._of.values():
            sessions.sort()

    def _mappings(self, sid: str) -> Mappings:
        maps = Mappings()
        for line in self._text(f"sid-{sid}.map").splitlines():
            if m := _MAP.fullmatch(line):
                maps.add(int(m[1], 16), int(m[2], 16), m[3], m[4] or "")
        return maps

    def _begin(self) -> None:
        """The sessions of the thread's process, after the last one of the process that it was forked from."""
        self._own = self._of.get(self._pid, [])
        inherited = self._inherited(self._pid)
        self._first = 0 if inherited is None else inherited
        self._is_forked = inherited is not None or not self._own
        self._session(0)

    def _inherited(self, pid: int) -> int | None:
        """The session in which a process was forked; of its parent, or one that this was forked from."""
        path, found = list[int](), None
        while pid in self._parents and pid not in self._forked:
            path.append(pid)
            self._forked[pid] = None  # ends a circle
            pid, time = self._parents[pid]
            sessions = self._of.get(pid, [])
            if k := bisect_left(sessions, (time, 0)):
                found = sessions[k - 1][1]
                break
        else:
            found = self._forked.get(pid)
        self._forked |= dict.fromkeys(path, found)
        return found

    def _session(self, time: int) -> None:
        k = bisect_right(self._own, (time, _MOST_SESSIONS))
        if not self._is_forked:
            k = k or 1  # the first one counts from 0 on
        self._r.session = self._own[k - 1][1] if k else self._first
        self._r.until = self._own[k][0] if k < len(self._own) else _NEVER

    # ---- names

    def _symbols_of(self, path: str) -> Symbols:
        name = os.path.basename(path)
        if name not in self._symbols:
            found = [m for line in self._text(f"{name}.sym").splitlines() if (m := _SYMBOL.fullmatch(line))]
            rows = sorted((int(m[1], 16), m[2], m[3]) for m in found)
            debug = {
                int(at, 16): (file, int(line or 0), f"{arguments},{returned}")
                for at, line, file, arguments, returned in _DEBUG.findall(self._text(f"{name}.dbg"))
            }
            self._symbols[name] = Symbols([at for at, _, _ in rows], [row[1:] for row in rows], debug)
        return self._symbols[name]

    def _define(self) -> None:
        r, model, k = self._r, self.model, -1
        found = self._maps[self._sessions[r.session].sid].at(r.address) if r.session < len(self._sessions) else None
        if found:
            symbols = self._symbols_of(found.path)
            k = bisect_right(symbols.starts, r.address - found.start) - 1
        if found and k >= 0 and symbols.names[k][0] != "?":
            key = found.path, found.build_id, k
            if key not in self._functions:
                self._functions[key] = self._function(found, symbols, k)
            function, sizes = self._functions[key]
        else:
            object_ = model.object(found.path, found.build_id) if found else 0
            function, sizes = model.function(f"<{r.address:x}>", object_id=object_), b""
        enough(lib.fp_uftrace_define(r, function, sizes, len(sizes)))

    def _function(self, found: Mapping, symbols: Symbols, k: int) -> tuple[int, bytes]:
        symbol = symbols.names[k][1]
        name = demangle(symbol, self.options[DEMANGLE], self._refused)
        file, line, values = symbols.debug.get(symbols.starts[k], ("", 0, ""))
        object_ = self.model.object(found.path, found.build_id)
        function = self.model.function(name, file, object_, symbol if symbol != name else "", line)
        return function, self._arguments.sizes(symbol, name, debug=values)

    # ---- rows

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        r, model = self._r, self.model
        kernel = model.object("linux")
        r.schedule = model.function("linux:schedule", object_id=kernel)
        r.preempted = model.function("linux:schedule (pre-empted)", object_id=kernel)
        paths = {one.path for maps in self._maps.values() for one in maps.all}
        for name in sorted(os.path.basename(path) for path in paths - self._symbols.keys()):
            self._texts |= {file: self._text(file) for file in (f"{name}.sym", f"{name}.dbg") if file in self._files}
        matches = ((re.fullmatch(r"(\D*?)(\d{1,9})\.dat", name), file) for name, file in self._files.items())
        named = [(m[1], m[2], file) for m, file in matches if m]
        if self.source.folder is None and sum(one.size for _, _, one in named) > _MOST_TIMES * (self.source.size or 0):
            what = f"hard links to files of data have more than {_MOST_TIMES} times the archive's size"
            raise self.damaged(what, 0)
        for kind, _, file in named:
            if kind == "perf-cpu":
                r.is_switches = 1
                yield from self._range(file)
        for number, file in sorted((int(number), file) for kind, number, file in named if not kind):
            self._pid = self._pids.get(number, number)
            self._begin()
            lib.fp_uftrace_begin(r, number, model.thread(self._pid, number, self._input))
            yield from self._range(file)
        self.log.count(REPORTED["kernel-traces"], sum(kind == "kernel-cpu" for kind, _, _ in named))

    def _range(self, file: File) -> Iterable[tuple[int, int | None]]:
        self._file, self._start = os.path.basename(file.name), file.start
        if file.size:
            yield file.start, file.size

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = int(lib.fp_uftrace_feed(self._r, in_, batch, err))
        if status < 0:
            err.offset = max(0, err.offset - self._start)  # 0 without memory
            where = self._where(self._file)
            if self._r.unsized:
                name = self.model.string(self.model.row("functions", self._r.unsized)[2]).decode("utf-8", "replace")
                what = f"the length of the arguments or the return value of {name} is not known"
                raise FormatError(where, self.format, what, offset=err.offset, code=status)
            check(status, err, where, self.format)
        return status

    answers = {  # noqa: RUF012
        lib.FP_UFTRACE_FUNCTION: lambda self, _: self._define(),
        lib.FP_UFTRACE_SESSION: lambda self, _: self._session(self._r.time),
    }

    def finish(self) -> None:
        log, r = self.log, self._r
        programs = {s.pid: _bytes(os.path.basename(s.program)) for s in self._sessions if s.program}
        self.model.names.put(self.model.parts[self.part], self._input, programs, {}, {})
        if r.lost:
            log.warn(REPORTED["lost-records"], file=self.source.name, lost=int(r.lost))
        log.facts |= {"program": self._info.get("exename", ""), "recorder": self._info.get("uftrace_version", "")}
        log.count_all(REPORTED, r)
