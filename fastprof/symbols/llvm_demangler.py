"""LLVM's demangler (pycxxfilt), used so that no name can crash this process.

The demangler recurses into nested names until the stack overflows, and expands each back reference until memory runs
out: 779 bytes suffice.  Both end the process.  So only harmless names are demangled here.  Other names are demangled in
a helper process with limited memory and time; a name that exceeds the limits stays mangled.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from math import prod

from fastprof.core import lazy_re as re
from fastprof.core._typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

MAX_NBYTES = 1 << 14  # of a name; real ones of heavy templates have some thousand
MAX_REFUSED = 32  # names that may exceed the limits, each after a second or two; after that the helper is not used
_MAX_SENT = 1 << 16  # names that are remembered because they were sent before they were needed
_MAX_AHEAD = 1 << 26  # bytes of their answers; the rest is requested one by one
_MAX_NBYTES_HERE = 1 << 9  # of a harmless name: each byte may be a level of recursion
_MAX_TEXT_HERE = 1 << 22  # bytes that a harmless name may become
_MAX_GROWTH = 100  # characters of text for each character of the name; real names have up to 30
_WIDTH = 40  # the most bytes of text for a byte of the name: "y" is "unsigned long long"

_TOO_MUCH = b"-\n"  # the helper's answer for a text that is too long
_MANGLED = re.compile(r"_{1,4}Z|_R|\?")
_CPP_REFERENCE = re.compile(r"(?=(S[0-9A-Z]*_))")
_CPP_PARAMETER = re.compile(r"T(?=[0-9A-Z_])")
_CPP_EXPANSION = re.compile(r"Dp|s[pPZ]|f[lrLR]")
_MS_REFERENCE = re.compile(r"[0-9]")
_RUST_REFERENCE = re.compile(r"(?=(B[0-9A-Za-z]*_))")

_HELPER = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import pycxxfilt

def limit(what, most):
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))

limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_AS, 1 << 27)
for line in sys.stdin:
    seconds = resource.getrusage(resource.RUSAGE_SELF)
    limit(resource.RLIMIT_CPU, int(seconds.ru_utime + seconds.ru_stime) + 2)
    name = bytes.fromhex(line).decode()
    try:
        text = pycxxfilt.demangle(name)
    except ValueError:
        text = None
    too_long = text is not None and len(text) > int(sys.argv[2]) * len(name)
    print("-" if too_long else (text or "").encode().hex(), flush=True)
"""


class TooMuchError(Exception):
    """A name that is too long, or exceeds the limits of the demangler."""


def demangle(name: str) -> str | None:
    """A C++, Rust or Microsoft symbol demangled by LLVM; None for a name that is not mangled.

    Errors: TooMuchError.
    """
    if not _MANGLED.match(name):
        return None
    if len(name) > MAX_NBYTES:
        raise TooMuchError
    try:
        if not _is_harmless(name):
            return _helper.ask(name)
        import pycxxfilt

        text = pycxxfilt.demangle(name)
    except ValueError:  # has the prefix of a mangled name, but is not one
        return None
    if text is not None and len(text) > _MAX_GROWTH * len(name):
        raise TooMuchError
    return text


def ask_ahead(names: Iterable[str]) -> None:
    """Demangle together those names that need the helper process, which `demangle` would ask one by one."""
    _helper.ask_ahead(
        name for name in names if _MANGLED.match(name) and len(name) <= MAX_NBYTES and not _is_harmless(name)
    )


@lru_cache(maxsize=1 << 15)
def _is_harmless(name: str) -> bool:
    """Whether the name can neither nest deeply nor become long.

    Only back references (`S1_`, `T_`, `B4_`) write a text more than once.  They form a graph without cycles.  A letter
    is written once for each way through the graph that leads to it, and a way takes at most one of the references to
    each place.  So there are at most as many ways as the product of (1 + references to it) over all places.  Letters
    that only look like a reference are counted as well.
    """
    if len(name) > _MAX_NBYTES_HERE:
        return False
    most = _MAX_TEXT_HERE // (_WIDTH * len(name))
    if name.startswith("?"):
        return 1 << len(_MS_REFERENCE.findall(name)) <= most
    if 1 << name.count("_") <= most >> 4 and "J" not in name and "cv" not in name:
        return True  # nearly all names: each reference ends with an underscore
    if name.startswith("_R"):
        # LLVM follows a reference to its own container 500 times before it notices
        return _ways(_RUST_REFERENCE, name) << name.count("G") <= most >> 4
    parameters = len(_CPP_PARAMETER.findall(name))  # counted one by one: T_ is a different type in each place
    if (parameters and "cv" in name) or ("J" in name and _CPP_EXPANSION.search(name)):
        # a conversion operator may refer forward; an expansion writes a text for each element of its pack
        return False
    return _ways(_CPP_REFERENCE, name) << parameters <= most


def _ways(reference: re.Pattern[str], name: str) -> int:
    return prod(1 + n for n in Counter(reference.findall(name)).values())


class _Helper:
    """The helper process, which demangles dangerous names.  A name or an answer is a line of hexadecimal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Popen[bytes] | None = None
        self._owner = 0  # a forked child must not read its parent's answers
        self._refused = 0
        self._sent: set[str] = set()  # by ask_ahead
        self._answers: dict[str, bytes] = {}  # that `ask` did not need yet

    def ask_ahead(self, names: Iterable[str]) -> None:
        """Get the answers of many names, each once, for `ask`."""
        with self._lock:
            self._answers.clear()
            if len(self._sent) > _MAX_SENT:
                self._sent.clear()
            lines = dict[str, bytes]()
            for name in names:
                with suppress(UnicodeEncodeError):  # which `ask` raises
                    if name not in self._sent:
                        lines[name] = _line(name)
            self._sent.update(lines)
            self._exchange(list(lines.items()), _MAX_AHEAD)

    def ask(self, name: str) -> str | None:
        """Errors: TooMuchError; UnicodeEncodeError for a name that is not text."""
        line = _line(name)
        with self._lock:
            if name not in self._answers:
                self._exchange([(name, line)])
            answer = self._answers.pop(name, _TOO_MUCH)
        if answer == _TOO_MUCH:
            raise TooMuchError
        return bytes.fromhex(answer.decode()).decode() or None

    def _exchange(self, lines: list[tuple[str, bytes]], most: int = 0) -> None:
        """Get answers until too many names are refused, or they have `most` bytes.  A name that ends the process is
        refused."""
        at = nbytes = 0
        while at < len(lines) and self._refused < MAX_REFUSED and nbytes <= most:
            end, answer = at + 1, b""
            try:
                if self._owner != os.getpid():
                    self._process, self._owner = None, os.getpid()
                self._process = self._process or self._start()
                assert self._process.stdin is not None and self._process.stdout is not None
                end = _fitting(lines, at, self._process.stdin)
                self._process.stdin.write(b"".join(line for _, line in lines[at:end]))
                self._process.stdin.flush()
                while at < end and self._refused < MAX_REFUSED:
                    answer = self._process.stdout.readline()
                    if not answer.endswith(b"\n"):
                        break
                    self._keep(lines[at][0], answer)
                    nbytes += len(answer)
                    at += 1
            except OSError:
                pass  # it cannot be started, or has ended
            finally:
                # also if a signal interrupts the wait, because the next name must not get this answer
                if at < end:
                    self.close()
            if at < end and self._refused < MAX_REFUSED:
                self._keep(lines[at][0], _TOO_MUCH)
                at += 1

    def _keep(self, name: str, answer: bytes) -> None:
        self._answers[name] = answer
        self._refused += answer == _TOO_MUCH

    @staticmethod
    def _start() -> Popen[bytes]:
        import subprocess

        import pycxxfilt

        where = os.path.dirname(os.path.dirname(os.path.abspath(pycxxfilt.__file__)))
        command = [sys.executable, "-I", "-S", "-c", _HELPER, where, str(_MAX_GROWTH)]
        pipe, discard = subprocess.PIPE, subprocess.DEVNULL
        env = {**os.environ, "LD_PRELOAD": ""}  # a sanitizer would need more memory than the limit
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=discard, env=env)

    def close(self) -> None:
        """End the process; the next name starts another."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdout, process.stdin):
            with suppress(OSError):  # the process died before it read the name
                pipe.close()
        process.wait()


def _line(name: str) -> bytes:
    """Errors: UnicodeEncodeError."""
    return name.encode().hex().encode() + b"\n"


def _fitting(lines: list[tuple[str, bytes]], start: int, pipe: IO[bytes]) -> int:
    """The end of the lines, at least one, that the pipe can hold: to write more could wait for the helper while that
    waits until its answers are read."""
    import fcntl

    room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) if hasattr(fcntl, "F_GETPIPE_SZ") else 4096
    end = start
    while end < len(lines) and (end == start or len(lines[end][1]) <= room):
        room -= len(lines[end][1])
        end += 1
    return end


_helper = _Helper()
atexit.register(_helper.close)
