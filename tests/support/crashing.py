"""Crashes of a batch's workers: a job function for pools, whose action depends on the file's name."""

from __future__ import annotations

import os
import signal
from typing import Any

from fastprof.verbs.batch.jobs import convert_one
from fastprof.verbs.batch.merge import merge_one

FUNCTION = f"{__name__}:convert_or_die"


def convert_or_die(job: dict[str, Any]) -> dict[str, Any]:
    name = os.path.basename(job["input"])
    if name.startswith("segfault"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("exit"):
        os._exit(7)
    if name.startswith("prints"):
        print("a line that is no record", flush=True)
    if name.startswith("once"):  # dies in the first try only
        try:
            os.mkdir(job["output"] + ".seen")
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("hang"):
        signal.pause()
    return convert_one(job)


MERGING = f"{__name__}:merge_or_die"


def merge_or_die(job: dict[str, Any]) -> dict[str, Any]:
    """Dies at a file with "segfault" in its name when it looks at views, "killed" when it merges."""
    dying = "segfault" if job.get("look") else "killed"
    if any(dying in os.path.basename(path) for path in job["inputs"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return merge_one(job)
