"""The memory that a command needs."""

from __future__ import annotations

import subprocess
import sys

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
