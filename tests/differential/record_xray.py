"""Record real XRay logs at test time: compile small programs with clang and run them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.differential.peers import need

PROGRAMS = Path(__file__).parent / "programs"
CPU0 = "/sys/devices/system/cpu/cpu0"
KHZ = 2_500_000
# Shows the runtime a clock frequency on machines that export none; without one it stops using
# the TSC. Needs the right to mount in a private namespace.
WITH_FREQUENCY = (
    f'mount -t tmpfs none {CPU0} && mkdir {CPU0}/cpufreq && echo {KHZ} > {CPU0}/cpufreq/cpuinfo_max_freq && exec "$@"'
)


class Recipe(NamedTuple):
    """The recipe of one log."""

    program: str
    mode: str
    options: str = ""
    args: tuple[str, ...] = ()
    flags: tuple[str, ...] = ("-O2",)


class Recording(NamedTuple):
    log: Path
    binary: Path

    def read(self) -> bytes:
        return self.log.read_bytes()


ALL_CALLS = "func_duration_threshold_us=0"
RECIPES = {
    "pool": Recipe("pool", "xray-fdr", f"buffer_size=8192 buffer_max=64 {ALL_CALLS}", ("3", "6", "12")),
    "pool-filtered": Recipe("pool", "xray-fdr", "buffer_size=8192 buffer_max=64", ("3", "6", "40")),
    "overflow": Recipe("pool", "xray-fdr", f"buffer_size=4096 buffer_max=6 {ALL_CALLS}", ("3", "20", "20")),
    "arguments": Recipe("interp", "xray-fdr", f"buffer_size=16384 buffer_max=64 {ALL_CALLS}", ("5",)),
    # Optimized events crash clang 14, and optimized typed events also crash the program.
    "custom-events": Recipe("events", "xray-fdr", f"buffer_size=4096 buffer_max=64 {ALL_CALLS}", ("20",), ("-O0",)),
    "typed-events": Recipe(
        "events", "xray-fdr", f"buffer_size=4096 buffer_max=64 {ALL_CALLS}", ("20",), ("-O0", "-DTYPED")
    ),
    "blocked": Recipe("blocked", "xray-fdr", f"buffer_size=4096 buffer_max=16 {ALL_CALLS}"),
    "unwind": Recipe("unwind", "xray-fdr", f"buffer_size=4096 buffer_max=16 {ALL_CALLS}"),
    "nothing": Recipe("unwind", "xray-fdr", f"buffer_max=16 {ALL_CALLS}", (), ("-O2", "-DNOTHING")),
    "basic": Recipe("pool", "xray-basic", f"{ALL_CALLS} thread_buffer_size=256", ("3", "6", "12")),
    "basic-arguments": Recipe("interp", "xray-basic", f"{ALL_CALLS} thread_buffer_size=256", ("5",)),
    # A stack limit below the program's depth leaves arguments without their calls.
    "basic-orphans": Recipe("interp", "xray-basic", f"{ALL_CALLS} max_stack_depth=8", ("5",)),
    "basic-fork": Recipe("fork", "xray-basic", ALL_CALLS),
    "basic-unwind": Recipe("unwind", "xray-basic", ALL_CALLS),
    "profiling": Recipe(
        "pool", "xray-profiling", "", ("3", "6", "12"), ("-O2", "-fxray-modes=xray-fdr,xray-basic,xray-profiling")
    ),
}


@functools.cache
def can_show_frequency() -> bool:
    probe = ["unshare", "-m", "sh", "-c", WITH_FREQUENCY, "sh", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(probe, capture_output=True).returncode == 0


@contextlib.contextmanager
def alone(made: Path) -> Iterator[None]:
    """Only one process at a time makes this file or folder."""
    with open(f"{made}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Recorder:
    """Compiles each program once and records each recipe once, below `folder`, for all test processes."""

    def __init__(self, folder: Path, clang: int = 19) -> None:
        self.folder, self.clang = folder, clang
        self.recordings: dict[tuple[str, bool], Recording] = {}

    def build(self, recipe: Recipe) -> Path:
        name = "".join([recipe.program, *recipe.flags]).replace("=", "-").replace(",", "-")
        binary = self.folder / name
        with alone(binary):
            if binary.exists():
                return binary
            control = self.folder / f"{name}.xray_ctl.o"
            run([need(f"clang-{self.clang}"), "-O1", "-c", PROGRAMS / "xray_ctl.c", "-o", control])
            flags = ["-g1", "-std=c++17", "-pthread", "-fxray-instrument", "-fxray-instruction-threshold=1"]
            source = PROGRAMS / f"{recipe.program}.cpp"
            run([need(f"clang++-{self.clang}"), *flags, *recipe.flags, source, control, "-o", binary])
        return binary

    def record(self, name: str, *, frequency: bool = False) -> Recording:
        """The log of RECIPES[name]; `frequency` requests TSC times if this machine allows them."""
        if (name, frequency) not in self.recordings:
            self.recordings[name, frequency] = self.make(name, RECIPES[name], frequency)
        return self.recordings[name, frequency]

    def make(self, name: str, recipe: Recipe, frequency: bool) -> Recording:
        binary = self.build(recipe)
        folder = self.folder / f"{name}-{frequency}"
        with alone(folder):
            if not folder.exists():
                folder.mkdir()
                self.run(binary, folder, recipe, frequency)
        logs = sorted(folder.glob("log.*"))
        if len(logs) != 1:
            pytest.fail(f"{name}: the program wrote {len(logs)} logs")
        return Recording(logs[0], binary)

    def run(self, binary: Path, folder: Path, recipe: Recipe, frequency: bool) -> None:
        options = f"xray_logfile_base={folder}/log."
        env = dict(os.environ)
        if recipe.mode == "xray-basic":  # starts and ends by itself
            env["XRAY_OPTIONS"] = f"{options} patch_premain=true xray_mode=xray-basic"
            env["XRAY_BASIC_OPTIONS"] = recipe.options
        else:
            env |= {"XRAY_OPTIONS": options, "LAB_MODE": recipe.mode, "LAB_OPTS": recipe.options}
        command: list[str | Path] = [binary, *recipe.args]
        if frequency and can_show_frequency():
            command = ["unshare", "-m", "sh", "-c", WITH_FREQUENCY, "sh", *command]
        run(command, env)


def run(command: list[str | Path], env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-2000:]}")


def llvm_xray(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run llvm-xray 19, with any exit status."""
    command = [need("llvm-xray-19"), *args]
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=120)
