"""The Python interface: examples in docstrings, representations of objects, errors, memory of batches."""

from __future__ import annotations

import doctest
import errno
import importlib
import inspect
import io
import pickle
import runpy
import socket
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core import remote
from fastprof.core.errors import FastprofError, FileError, SymbolError, UsageError
from fastprof.verbs import keywords
from tests.support.paths import CORPUS, REPO
from tests.support.xraylog import FdrLog

POOL, PROGRAM = CORPUS / "xray/good/fdr5-pool-clang19.xray", CORPUS / "xray/pool-clang19"
XDEBUG = CORPUS / "callgrind/good/xdebug.callgrind"
SMALL = CORPUS / "gperftools/good/small.prof"


EXAMPLES = [
    "formats",
    "store.adding",
    "verbs.annotate",
    "verbs.archive",
    "verbs.batch.archive",
    "verbs.batch.convert",
    "verbs.batch.merge",
    "verbs.batch.status",
    "store.compact",
    "verbs.convert",
    "verbs.diff",
    "verbs.extract",
    "verbs.info",
    "verbs.merge",
    "verbs.profile",
    "verbs.report",
    "verbs.sql",
    "store.listing",
    "verbs.top",
]


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that contains only the corpus."""
    (tmp_path / "tests").symlink_to(REPO / "tests")
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(f"fastprof.{module}"))
    assert done.attempted and not done.failed


def test_dir() -> None:
    assert dir(fastprof) == sorted(fastprof.__all__)
    assert all(getattr(fastprof, name) for name in dir(fastprof))


def test_reprs() -> None:
    with fastprof.open(POOL) as profile:
        assert repr(profile) == f"<Profile {POOL}: xray, timeline; tables spans, events>"
        batch = next(iter(profile))
        assert repr(batch).startswith(f"<Batch of {len(batch)} rows, timeline: time, aux, function")
    assert repr(profile) == f"<Profile {POOL}: xray, timeline; closed>"


# ---- memory of batches


def log() -> bytes:
    made = FdrLog()
    buffer = made.buffer().cpu(0, 0).typed(7, b"payload")
    for _ in range(15_000):
        buffer.enter(1, 1).exit(1, 1)
    return made.bytes()


@pytest.mark.parametrize("data", [log(), XDEBUG.read_bytes(), SMALL.read_bytes()], ids=["timeline", "graph", "stacks"])
def test_batches_stay(data: bytes) -> None:
    def shown(batch: fastprof.Batch) -> Any:
        columns = [batch[name].tolist() for name in batch.columns if name != "aux"]
        return columns, [batch.values(k).tolist() for k in range(batch.c.n_values)], batch.part

    with fastprof.open(data) as profile:
        at_once = [shown(batch) for batch in profile.batches(reuse=True)]
        kept = list(profile)
    assert [shown(batch) for batch in kept] == at_once
    if profile.view == "timeline":
        assert len(kept) > 2 and kept[0].payload(1) == b"payload"


def test_batches_of_reuse_are_the_same_one() -> None:
    with fastprof.open(log()) as profile:
        assert len({id(batch) for batch in profile.batches(reuse=True)}) == 1


# ---- options of names


def test_symbols_name_what_batches_have() -> None:
    with fastprof.open(POOL, symbols=[PROGRAM]) as profile:
        names = {profile.function_name(f) for batch in profile for f in batch["function"]}
    assert "main" in names


def test_symbols_that_do_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="has no effect with callgrind"):
        fastprof.open(XDEBUG, symbols=[PROGRAM])
    with pytest.raises(UsageError, match="has no effect"):
        fastprof.open(POOL, table="spans")


def test_symbols_of_stacks(tmp_path: Path) -> None:
    with fastprof.open(SMALL, symbols=[tmp_path / "none"]) as profile, pytest.raises(SymbolError):
        list(profile)


# ---- errors


def test_a_missing_file_is_an_oserror() -> None:
    for use in (fastprof.open, fastprof.info, lambda path: fastprof.convert(path, "out.folded")):
        with pytest.raises(OSError) as caught:
            use("no such file")
        error = caught.value
        assert isinstance(error, FileError) and isinstance(error, FastprofError)
        assert (error.errno, error.filename) == (errno.ENOENT, "no such file")
        assert str(error) == "no such file: No such file or directory"
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errno) == (FileError, str(error), error.errno)


def test_an_output_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file or directory"):
        fastprof.convert(XDEBUG, tmp_path / "none" / "out.folded")


def test_files_beside_the_profile(tmp_path: Path) -> None:
    """Tables of labels, stores, and folders of a batch."""
    with pytest.raises(FileError) as caught:
        fastprof.convert(SMALL, io.BytesIO(), to="pprof", labels_from=str(tmp_path))
    assert (caught.value.errno, caught.value.filename) == (errno.EISDIR, str(tmp_path))
    store = str(tmp_path / "none" / "all.fpa")
    with pytest.raises(FileError) as caught:
        fastprof.archive_add(store, XDEBUG)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, store)
    with pytest.raises(FileError, match="the directory has no files") as caught:
        fastprof.merge(str(tmp_path), io.BytesIO(), to="pprof")
    error = caught.value
    assert (error.errno, error.filename, error.strerror) == (None, str(tmp_path), "the directory has no files")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(FileError, match="has written to this folder"):
        fastprof.batch_status(str(tmp_path))
    (tmp_path / "wrong.plan").write_text("?\n")
    with pytest.raises(FileError, match="not a plan"):
        fastprof.batch_convert([], str(tmp_path / "out"), to="pprof", plan=str(tmp_path / "wrong.plan"))


def test_bytes_are_an_input(tmp_path: Path) -> None:
    fastprof.convert(XDEBUG, tmp_path / "a.folded")
    out = io.BytesIO()
    fastprof.convert(XDEBUG.read_bytes(), out, to="folded")
    assert out.getvalue() == (tmp_path / "a.folded").read_bytes()
    data = XDEBUG.read_bytes()
    fastprof.merge([data, data], tmp_path / "b.folded")
    assert fastprof.info(tmp_path / "b.folded").facts["records"]
    with pytest.raises(fastprof.FormatError, match="<bytes>: "):
        fastprof.convert(b"events: Ir\nfn=f\n1 x\n", out, to="folded")


def test_bytes_are_no_output() -> None:
    with pytest.raises(UsageError, match=r"output is b'\\x00', expected a path or a binary file object"):
        fastprof.convert(XDEBUG, b"\0", to="folded")  # type: ignore[arg-type]


# ---- public names, and the types of options


def test_functions_with_options_are_public() -> None:
    assert {*fastprof._OPTIONS} <= {*fastprof._HOMES}


@pytest.mark.parametrize("made, name", [("page", "docs/python.md"), ("interface", "fastprof/__init__.py")])
def test_what_is_made_of_the_interface_is_fresh(made: str, name: str) -> None:
    text = runpy.run_path(str(REPO / "docs" / "make_python.py"))[made]()
    assert (REPO / name).read_text() == text, "make docs"


@pytest.mark.parametrize("name", fastprof._OPTIONS)
def test_functions_have_typed_options(name: str) -> None:
    """With the class of its options, and with the help's texts."""
    function = getattr(fastprof, name)
    (kind,) = (text[7:-1] for text in function.__annotations__.values() if str(text).startswith("Unpack["))
    options = fastprof._options(name)
    namespaces = {option.format.replace("-", "_") for option in options if option.format}
    assert {*vars(keywords)[kind].__annotations__} == {option.name for option in options} | namespaces
    shown = inspect.getdoc(function) or ""
    assert all(f"{option.name}: {option.annotation}" in shown and option.help in shown for option in options)


def test_help_of_a_switch_that_is_on_names_the_value_with_this_effect() -> None:
    """Help describes the flag, --no-NAME; True has the opposite effect."""
    shown, table = inspect.getdoc(fastprof.convert) or "", (REPO / "docs/options.md").read_text()
    switches = [option for option in fastprof._options("convert") if option.default is True]
    assert {option.name for option in switches} >= {"inlines", "symbolize", "compress_names"}
    for option in switches:
        assert option.flag.startswith(("--no-", "-O")), option
        assert f"{option.name}: bool = True" in shown and f"\n    False: {option.help}\n" in shown, option
        assert f"keyword `{option.name}=False`" in table, option


def test_the_representation_of_an_error_is_its_text() -> None:
    with pytest.raises(UsageError) as caught:
        fastprof.top(XDEBUG, lenient="yes")  # type: ignore[arg-type]
    assert repr(caught.value) == f"UsageError({str(caught.value)!r})" and "Message" not in repr(caught.value)
    assert isinstance(caught.value, ValueError)
    assert {"NothingLeft", "SymbolError"} <= {*fastprof.__all__}


def test_damaged_compression_has_its_offset() -> None:
    whole = (CORPUS / "pprof/good/go-heap.pb.gz").read_bytes()
    with pytest.raises(fastprof.FormatError, match="inside a stream; lenient=True reads up to it") as caught:
        fastprof.top(whole[:5000])
    error = caught.value
    assert (error.offset, error.line, error.format_name, error.file) == (5000, None, "gz", "<bytes>")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.offset, type(again)) == (str(error), 5000, fastprof.FormatError)


class Failing(io.BytesIO):
    def readinto(self, into: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_an_error_while_reading_is_an_oserror_with_its_cause() -> None:
    file = Failing(XDEBUG.read_bytes())
    file.name = "a.out"  # type: ignore[attr-defined]
    with pytest.raises(FileError, match=r"^a\.out: Input/output error$") as caught:
        fastprof.top(file)
    error = caught.value
    assert (error.errno, error.filename, error.status) == (errno.EIO, "a.out", None)
    assert type(error.__cause__) is OSError
    assert pickle.loads(pickle.dumps(error)).errno == errno.EIO


@pytest.mark.parametrize(
    ("why", "code"),
    [("Name or service not known", socket.EAI_NONAME), ("Temporary failure in name resolution", socket.EAI_AGAIN)],
)
def test_a_host_that_is_unknown_has_an_errno(why: str, code: int) -> None:
    """That of `socket.getaddrinfo`."""
    exceptions = pytest.importorskip("obstore.exceptions", reason="pip install obstore")
    fields = f'ConnectError("dns error", Custom {{ error: "failed to lookup address information: {why}" }})'
    said = exceptions.GenericError(f"Generic HTTP error: error sending request\n\nDebug source:\n{fields}")
    error = remote._Remote("http://localhost/a.prof").failed(said)
    assert isinstance(error, FileError) and (error.errno, error.filename) == (code, "http://localhost/a.prof")
    assert str(error) == f"http://localhost/a.prof: failed to lookup address information: {why}"
