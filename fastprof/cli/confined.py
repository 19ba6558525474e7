"""One call of `fastprof mcp`, in a process that can open nothing but what it was given: python -m fastprof.cli.confined

Standard input has one JSON object: the words of the command line, folders to read and to write, limits.  An audit hook
sees every file that Python opens, and the compiled core opens none; DuckDB opens none either
(verbs/sql).  So neither an argument, nor a link, nor a name in a profile (sources, programs, debug files) leads out.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
import sysconfig
from collections.abc import Iterable

from fastprof.core._typing import Any

OUTSIDE = "outside the folders of this server"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SYSTEM = ("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/sys/fs/cgroup", "/sys/devices/system/cpu")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
_CHANGES |= {"os.chown", "os.utime", "os.setxattr", "os.removexattr", "shutil.rmtree", "shutil.move"}
_PROGRAMS = {"os.exec", "os.posix_spawn", "os.system", "os.spawn", "pty.spawn", "os.startfile"}
_SENDS = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}


def _within_open(args: tuple[Any, ...]) -> bool:
    """Whether the last arguments of an event, dir_fd, name an open folder."""
    return any(isinstance(one, int) and one >= 0 for one in args[-2:])


class _Folders:
    """Folders and files, by their real paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = {os.path.realpath(path) for path in paths if path}

    def have(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real in self._paths or any(real.startswith(os.path.join(one, "")) for one in self._paths)


def confine(read: Iterable[str], write: Iterable[str], *, urls: bool) -> None:
    """From now on this process opens nothing else, starts no program but Python for names, and without `urls` connects
    to nothing.  There is no way back."""
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    libraries += [path for path in sys.path if path.endswith(("site-packages", "dist-packages", ".zip", "lib-dynload"))]
    libraries += [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), sys.prefix]
    read, write = [*read], [*write]
    may_read = _Folders([*read, *write, *libraries, *_SYSTEM, *_DEVICES, "/etc/localtime", "/usr/share/zoneinfo"])
    may_write = _Folders([*write, *_DEVICES])
    may_list = _Folders([*read, *write, *libraries, *_SYSTEM])
    imports = {os.path.realpath(path) for path in sys.path}  # are listed to find modules

    def refused(path: Any) -> PermissionError:
        return PermissionError(errno.EACCES, OUTSIDE, path)

    def check(path: Any, allowed: _Folders) -> None:
        if isinstance(path, int):
            return
        name = os.fsdecode(path)
        if not name.startswith("/proc/self/fd/") and not allowed.have(name):  # what is open was checked
            raise refused(path)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            writes = (flags or 0) & _WRITES or (isinstance(mode, str) and {*mode} & {*"wax+"})
            check(path, may_write if writes else may_read)
        elif event in ("os.listdir", "os.scandir"):
            path = "." if args[0] is None else args[0]
            if isinstance(path, int) or os.path.realpath(os.fsdecode(path)) in imports:
                return
            check(path, may_list)
        elif event in _CHANGES:
            paths = args[1:2] if event in ("os.link", "os.symlink") else args[: 1 + (event == "os.rename")]
            for path in paths:
                # of a name within an open folder only our own code is the source
                if isinstance(path, int) or os.path.isabs(os.fsdecode(path)) or not _within_open(args):
                    check(path, may_write)
        elif event in _PROGRAMS or (event == "subprocess.Popen" and args[0] != sys.executable):
            raise refused(args[0])
        elif event in _SENDS and not urls:
            raise PermissionError(errno.EACCES, "this server opens no connections")

    sys.addaudithook(hook)


def limit(seconds: int, memory: int) -> None:
    """Limits for this process and those that it starts."""
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds * (os.cpu_count() or 1)),
        (resource.RLIMIT_FSIZE, memory),
        (resource.RLIMIT_NOFILE, 512),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def main() -> int:
    job = json.loads(sys.stdin.buffer.read())
    # what is loaded when needed would be outside
    import fastprof.cli
    import fastprof.cli.failure
    import fastprof.cli.parser
    from fastprof.verbs.annotate.sources import confine_all

    confine_all()
    limit(job["seconds"], job["memory"])
    confine(job["read"], [*job["write"], os.environ["TMPDIR"]], urls=job["urls"])
    return fastprof.cli.main(job["words"])


if __name__ == "__main__":
    sys.exit(main())
