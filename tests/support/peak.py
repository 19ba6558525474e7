"""How much memory a command needs."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import REPO

# Not ru_maxrss: that starts with the size of the parent.  Of a child, which begins as this does, it is what counts.
DRIVER = """
import resource, sys
from fastprof.cli import main
code = main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(max(int(peak.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def peak(*args: str, driver: str = DRIVER) -> int:
    """The most resident bytes that `fastprof ARGS` has at a time.  RuntimeError with its message if it fails."""
    done = subprocess.run([sys.executable, "-c", driver, *args], cwd=REPO, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return int(done.stdout.split()[-1]) * 1024
