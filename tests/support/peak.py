"""The memory that a command needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence

from tests.support.paths import REPO

# Not ru_maxrss: it starts with the parent's size.  For children, which start as small as this process, it is right.
DRIVER = """
import resource, sys
from fastprof.cli import main
code = main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(max(int(peak.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def peak(*args: str, driver: str = DRIVER) -> int:
    """The peak of resident bytes of `fastprof ARGS`.  RuntimeError with its message if it fails."""
    done = subprocess.run([sys.executable, "-c", driver, *args], cwd=REPO, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return int(done.stdout.split()[-1]) * 1024


FORKING = """
import json, os, resource, sys
from fastprof.cli import main
for line in sys.stdin:
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            sys.exit(code)
        continue
    answer = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = main(json.loads(line))
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    nbytes = max(int(peak.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024
    os.write(answer, b"%d\\n" % nbytes)
    os._exit(code)
"""


def peaks(commands: Iterable[Sequence[str]]) -> list[int]:
    """Of several commands: each in a fork of one process, which starts once."""
    lines = "".join(json.dumps([*command]) + "\n" for command in commands)
    done = subprocess.run([sys.executable, "-c", FORKING], cwd=REPO, input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [int(line) for line in done.stdout.split()]
