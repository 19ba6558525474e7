"""Every fuzz target over the corpus of all formats, as plain programs under the sanitizers."""

from __future__ import annotations

import fcntl
import gzip
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.paths import REPO

TARGETS = sorted((REPO / "tests" / "fuzz").glob("*_fuzz.c"))
CORPUS = sorted(p for kind in ("good", "bad") for p in (REPO / "tests" / "corpus").glob(f"*/{kind}/*"))
CORPUS += sorted((REPO / "tests" / "fuzz" / "seeds").iterdir())  # findings of fuzzers


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inputs")
    for path in CORPUS:
        data = path.read_bytes()
        name = "-".join(path.parts[-3:])
        packed = data.startswith(b"\x1f\x8b") and "-bad-" not in name
        (folder / name).write_bytes(gzip.decompress(data) if packed else data)
        (folder / f"{name}-cut").write_bytes(data[: len(data) * 5 // 8])
    return [str(p) for p in sorted(folder.iterdir())]


def test_there_are_targets_and_inputs() -> None:
    assert TARGETS and len(CORPUS) > 40


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The C core's objects and replay's: compiled once for all targets and all pytest processes."""
    session = tmp_path_factory.getbasetemp()
    folder = (session.parent if "PYTEST_XDIST_WORKER" in os.environ else session) / "fuzz-core"
    folder.mkdir(exist_ok=True)
    sources = [*sorted((REPO / "csrc").rglob("*.c")), REPO / "tests" / "fuzz" / "replay.c"]
    objects = {source: folder / f"{source.parent.name}-{source.stem}.o" for source in sources}
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda made: cc("-c", made[0], "-o", made[1]), objects.items()))
            (folder / "done").touch()
    return [str(made) for made in objects.values()]


def cc(*arguments: str | Path) -> None:
    # -O0: to compile the core takes far longer than to run the targets
    flags = ["-std=c11", "-O0", "-g1", "-DFP_DEBUG", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    subprocess.run(["cc", *flags, f"-I{REPO / 'csrc'}", *map(str, arguments)], check=True)


@pytest.mark.parametrize("target", [t.stem for t in TARGETS])
def test_replay(target: str, core: list[str], inputs: list[str], tmp_path: Path) -> None:
    program = tmp_path / target
    cc(REPO / "tests" / "fuzz" / f"{target}.c", *core, "-o", program)
    done = subprocess.run([program, *inputs], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{len(inputs)} inputs\n"
