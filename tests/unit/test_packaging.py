"""The sdist is complete: a wheel built from it converts in a separate environment."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import fastprof
from fastprof.core import messages
from tests.differential.peers import need
from tests.support.once import made_once
from tests.support.paths import REPO

POOL = REPO / "tests" / "corpus" / "xray" / "good" / "fdr5-pool-clang19.xray"


def run(*command: str | Path, cwd: Path) -> str:
    # a fraction of the time of -O3, which ccache has from the installation
    fast = {} if "ccache" in os.environ["PATH"] else {"FASTPROF_DEBUG": "1", "FASTPROF_OPTIMIZE": "-O0"}
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | fast
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel); the wheel is made from the unpacked sdist, never from the checkout."""
    out = made_once(tmp_path_factory, "dist", build)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def build(out: Path) -> None:
    """Without isolation, which fetches the build's packages anew; the newcomer's lane installs with it."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out]
    run(*command, "--sdist", REPO, cwd=out)
    (sdist,) = out.glob("*.tar.gz")
    unpacked = out / "unpacked"
    unpacked.mkdir()
    run("tar", "-xzf", sdist, "-C", unpacked, cwd=out)
    (source,) = unpacked.iterdir()
    run(*command, "--wheel", source, cwd=out)


def test_one_version() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    assert f'__version__ = "{fastprof.__version__}"' in (REPO / "fastprof" / "core/version.py").read_text()
    assert fastprof.__version__ in (REPO / "CHANGELOG.md").read_text()


def imported(path: Path) -> Iterator[str]:
    """The packages that a file imports at run time, without those that only mypy sees."""
    seen: list[ast.AST] = [ast.parse(path.read_text())]
    for node in seen:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            seen += ast.iter_child_nodes(node)


@pytest.mark.parametrize(
    ("folder", "extras", "ours"),
    [("fastprof", ("remote", "sql", "mcp", "tui"), set()), ("tests", ("test",), {"tests", "bench", "docs"})],
)
def test_what_is_imported_is_installed_with_it(folder: str, extras: tuple[str, ...], ours: set[str]) -> None:
    """A package left over from an earlier installation is missing in a fresh one."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    known = {re.split(r"[^\w-]", line)[0].lower() for line in wanted}
    paths = [path for path in (REPO / folder).rglob("*.py") if "corpus" not in path.parts]  # profiled programs
    found = {name for path in paths for name in imported(path)}
    foreign = found - sys.stdlib_module_names - ours - {"fastprof"}
    assert len(foreign) > 3
    distributions = packages_distributions()
    assert {name for name in foreign if not known & {d.lower() for d in distributions.get(name, ())}} == set()


NOT_BUILT = r"\S+ holds the source of fastprof, which is not compiled; .* run `pip install -e \.` here\n"


RAISED = r"Traceback .*\n(?:  .*\n)+fastprof\.core\.errors\.NotBuiltError: "


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (["-m", "fastprof", "info", POOL], "fastprof: "),
        (["-m", "fastprof", "convert", "--help"], "fastprof: "),
        (["-c", "import fastprof; fastprof.convert('a', 'b')"], RAISED),
        (["-c", "from fastprof.core.model import Model"], RAISED),
    ],
)
def test_the_source_folder_says_what_to_do(words: list[str | Path], before: str, tmp_path: Path) -> None:
    """A clone after the README's first command: the package is installed elsewhere, Python imports the folder first."""
    shutil.copytree(REPO / "fastprof", tmp_path / "fastprof", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "FASTPROF_DEBUG")}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(before + NOT_BUILT, done.stderr), done.stderr
    assert done.stderr.count("\n") < 10
    version = [sys.executable, "-m", "fastprof", "--version"]
    assert subprocess.run(version, cwd=tmp_path, env=env, capture_output=True).returncode == 0


@pytest.mark.exhaustive
def test_the_sdist_holds_everything(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run([need("git"), "ls-files"], cwd=REPO, capture_output=True, text=True)
    if tracked.returncode == 0:
        apart = (".ci/", ".git", ".clang-format", ".pre-commit-config.yaml")
        missing = [f for f in tracked.stdout.splitlines() if f not in names and not f.startswith(apart)]
        assert missing == []
    built_here = [n for n in names if n.endswith((".so", ".pyc", ".o"))]
    assert not [n for n in built_here if not n.startswith("tests/corpus/")]  # where libraries are samples


def test_a_container_gets_what_is_installed() -> None:
    """.ci/run builds it only where a builder exists."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    kept = [line[1:] for line in (REPO / ".containerignore").read_text().splitlines() if line.startswith("!")]
    installed = {"pyproject.toml", "setup.py", "csrc", "fastprof", "docs/man", *project["license-files"]}
    assert {*kept} == installed | {project["readme"]} and all((REPO / name).exists() for name in kept)
    assert (REPO / ".dockerignore").resolve() == REPO / ".containerignore"


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment with the wheel."""

    def install(env: Path) -> None:
        venv.create(env, with_pip=True)
        run(env / "bin" / "pip", "install", "-q", built[1], cwd=env)

    return made_once(tmp_path_factory, "env", install) / "bin"


@pytest.mark.exhaustive
def test_the_wheel_converts(built: tuple[Path, Path], installed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = wheel.namelist()
    assert {"fastprof/py.typed", "fastprof/core/_c.pyi", "fastprof/verbs/keywords.py"} <= {*names}
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert not [n for n in names if n.startswith(("tests/", "csrc/", "bench/")) or n.endswith((".c", ".pyx"))]
    run(installed / "fastprof", "convert", "-q", POOL, "-o", "out.callgrind", cwd=tmp_path)
    assert b"\nfn=" in (tmp_path / "out.callgrind").read_bytes()
    assert run(installed / "fastprof", "--version", cwd=tmp_path) == f"fastprof {fastprof.__version__}\n"
    assert (installed.parent / "share/man/man1/fastprof-convert.1").is_file()


@pytest.mark.exhaustive
def test_types_are_visible_to_users(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        textwrap.dedent("""
        import fastprof

        def seconds(path: str) -> float:
            with fastprof.open(path, lenient=True) as profile:
                ticks = max(max(batch["time"]) for batch in profile)
                losses: int = profile.log.losses.total()
            report: fastprof.Log = fastprof.convert([path], "out.callgrind")
            print(fastprof.__version__, report.repairs, losses, fastprof.info(path).facts["threads"])
            return ticks / 1e9
        """)
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed / "python"), "user.py"]
    run(*mypy, cwd=tmp_path)
    wrong = (tmp_path / "user.py").read_text().replace('"out.callgrind")', "17)")
    (tmp_path / "user.py").write_text(wrong)
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True)
    assert b'Argument 2 to "convert" has incompatible type "int"' in done.stdout


def test_an_extra_is_installed_by_the_name_of_the_distribution() -> None:
    """The advice named the folder of the build, which may be gone."""
    assert messages.install("sql") == "run `pip install 'fastprof-tools[sql]'`"


def test_no_text_installs_another_project() -> None:
    """The registry's `fastprof` is a different project: advice names the extra of a clone, or `fastprof-tools`."""
    files = [*(REPO / "fastprof").rglob("*.py"), *(REPO / "docs").rglob("*.md"), REPO / "README.md"]
    said = [match[0] for path in files for match in re.finditer(r"pip install [^`\n&]*", path.read_text())]
    assert len(said) > 5
    wrong = [text for text in said if re.search(r"\bfastprof\b(?!-tools)", text)]
    assert wrong == ["pip install fastprof"] * 2  # README and docs/install.md warn of it
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {name for path in files for name in re.findall(r"install\('(\w+)'\)|'\.\[(\w+)\]'", path.read_text())}
    assert {"sql", "dask", "remote"} <= {a or b for a, b in named} <= extras.keys()
