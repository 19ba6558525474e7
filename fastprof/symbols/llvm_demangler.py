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
from contextlib import suppress
from math import prod

from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

MAX_NBYTES = 1 << 14  # of a name; real ones of heavy templates have some thousand
MAX_REFUSED = 32  # names that may exceed the limits, each after a second or two; after that the helper is not used
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

    def ask(self, name: str) -> str | None:
        """Errors: TooMuchError; UnicodeEncodeError for a name that is not text."""
        line = name.encode().hex().encode() + b"\n"
        with self._lock:
            if self._owner != os.getpid():
                self._process, self._owner = None, os.getpid()
            if self._refused >= MAX_REFUSED:
                raise TooMuchError
            answer = b""
            try:
                self._process = self._process or self._start()
                assert self._process.stdin is not None and self._process.stdout is not None
                self._process.stdin.write(line)
                self._process.stdin.flush()
                answer = self._process.stdout.readline()
            except OSError:
                pass  # it cannot be started, or has ended
            finally:
                # also if a signal interrupts the wait, because the next name must not get this answer
                if not answer.endswith(b"\n"):
                    self.close()
                    answer = _TOO_MUCH
                self._refused += answer == _TOO_MUCH
        if answer == _TOO_MUCH:
            raise TooMuchError
        return bytes.fromhex(answer.decode()).decode() or None

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


_helper = _Helper()
atexit.register(_helper.close)
