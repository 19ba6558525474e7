"""Text of every format is read after a byte order mark, and in UTF-16, which shells of Windows write."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError, UnrecognizedError
from fastprof.core.source import Source
from tests.support.paths import CORPUS


def _texts() -> dict[str, Path]:
    """The largest text of each format that is not compressed."""
    found: dict[str, Path] = {}
    for path in sorted(CORPUS.glob("*/good/*"), key=lambda path: path.stat().st_size):
        data = path.read_bytes() if path.is_file() else b"\0"
        try:
            if b"\0" not in data and not data.startswith(b"\xef\xbb\xbf") and data.decode("utf-8"):
                found[path.parts[-3]] = path
        except UnicodeDecodeError:
            pass
    return found


_TEXTS = _texts()


def test_all_formats_of_text_are_here() -> None:
    of_text = {"callgrind", "dhat", "folded", "gprof", "heap", "heaptrack", "instruments", "ghc-json", "perf-script"}
    assert {*_TEXTS} >= of_text | {"heapprofile", "massif", "rprof", "scalene", "speedscope", "trace-event", "otlp"}


@pytest.mark.parametrize("folder", sorted(_TEXTS))
def test_a_mark_changes_nothing(folder: str) -> None:
    data = _TEXTS[folder].read_bytes()
    plain, text = fastprof.info(data), data.decode()
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        marked = ("\ufeff" + text).encode(encoding)
        found = fastprof.info(marked)
        for fact in ("format", "totals", "records", "functions"):
            assert found.facts.get(fact) == plain.facts.get(fact)
        marks = {"byte-order-marks": 1} if encoding == "utf-8" else {}
        assert dict(found.repairs) == dict(plain.repairs) | marks


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_other_text_is_refused_with_advice(encoding: str) -> None:
    with pytest.raises(UnrecognizedError, match=r"text in UTF-\d+.*iconv -f utf-\d+"):
        fastprof.info("main;f 10\nmain;g 2\n".encode(encoding))


def test_a_line_longer_than_the_first_bytes() -> None:
    data = b"\xef\xbb\xbf" + b"f" * 9_000 + b";g 3\n"
    with Source(data) as source:
        assert formats.detect(source).name == "folded"
    assert fastprof.info(data).facts["totals"] == {"samples": 3}


def test_a_character_that_is_cut() -> None:
    cut = "a;b 3\nc;d 4\n".encode("utf-16")[:-1]
    with pytest.raises(FormatError, match="ends within a character") as found:
        fastprof.info(cut)
    assert found.value.offset == len(cut)
    assert dict(fastprof.info(cut, lenient=True).losses)["damaged-streams"] == 1
