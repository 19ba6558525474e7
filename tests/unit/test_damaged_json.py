"""Small profiles in JSON whose keys come in another order, or twice."""

from __future__ import annotations

import time

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support.stackdump import dump

STACKPROF = b'{"version": 1.2, "mode": "wall", "interval": 1000, '


def values_of(data: bytes, format_: str, broken: int) -> list[tuple[int, ...]]:
    """Values of the rows that are read if lenient; otherwise the data is an error."""
    with pytest.raises(FormatError, match="a record is incomplete"):
        dump(data, format_)
    found = dump(data, format_, options=Options(lenient=True))
    assert found.log.losses == {"broken-records": broken}
    return [values for _, _, values in found.rows]


def test_samples_of_stackprof_without_frames() -> None:
    for rest, n in (b'"raw": [0, 1]}', 1), (b'"raw": [' + b"0, 1, " * 20_000 + b'0, 1], "frames": {}}', 20_001):
        rows = dump(STACKPROF + rest, "stackprof").rows
        assert [(stack, values) for stack, _, values in rows] == [((), (1_000_000, 1))] * n
    marshal = b"\4\b{\t:\x0cversioni\6:\tmode:\twall:\rintervali\6:\x08raw[\x07i\0i\6"
    assert [values for _, _, values in dump(marshal, "stackprof").rows] == [(1000, 1)]
    assert values_of(b'{"version": 1.2, "mode": "wall", "raw": [0, 1], "frames": {}}', "stackprof", 1) == [(1000, 1)]


HEAD = b'{"start_time": 1, "duration": 1, "sample_count": 1, '
TREE = b'"root_frame": {"function": "a", "file_path": "b", "line_no": 1, "time": 2.0}'


def test_records_and_a_tree_of_pyinstrument() -> None:
    records = b'"frame_records": [' + b'[["a\\u0000b\\u00001"], 1.0], ' * 40_000 + b'[["a\\u0000b\\u00001"], 1.0]]'
    second = 10**9
    assert values_of(HEAD + TREE + b", " + records + b"}", "pyinstrument", 1) == [(2 * second,)]
    assert values_of(HEAD + records + b", " + TREE + b"}", "pyinstrument", 1) == [(second, 1)] * 40_001
    assert values_of(HEAD + TREE + b", " + TREE + b"}", "pyinstrument", 1) == [(2 * second,)]
    assert values_of(HEAD + TREE + b', "root_frame": null}', "pyinstrument", 1) == [(2 * second,)]


@pytest.mark.parametrize(("text", "link"), [(b'"', b"@\7"), (b":", b";\n")])
def test_links_of_a_dump_to_one_long_text(text: bytes, link: bytes) -> None:
    """64 times the bytes that precede them, and 1 MB."""
    long, head = text + b"\3\x80\x1a\6" + b"a" * 400_000, b"\4\b{\x0b:\x0cversioni\6:\tmode:\twall:\rintervali\6:\7zz["
    tail = b":\x0bframes{\0:\x08raw[\x07i\0i\6"
    found = dump(head + b"\x02\x33\0" + long + link * 50 + tail, "stackprof")
    assert [values for _, _, values in found.rows] == [(1000, 1)]
    with pytest.raises(FormatError, match="links to more text") as caught:
        dump(head + b"\2\x51\xc3" + long + link * 50_000 + tail, "stackprof")
    assert 400_000 < (caught.value.offset or 0) < 400_500


def test_files_of_scalene_cost_what_they_have() -> None:
    """Not the longest one before them."""
    files = b'"z": {"functions": [{"line": "f", "lineno": 1048575}]}, ' + b'"a": {}, ' * 100_000
    line = b'"b": {"lines": [{"lineno": 9, "start_function_line": 1048575, "n_cpu_percent_python": 5}]}'
    start = time.process_time()
    (row,) = fastprof.top(b'{"alloc_samples": 0, "elapsed_time_sec": 1, "files": {' + files + line + b"}}", n=0).rows
    assert (row.name, row.file) == ("<module>", "b") and time.process_time() - start < 5


FRAME = b'"frames": {"5": {"name": "a"%s}}'


def test_an_interval_of_stackprof_comes_once_and_first() -> None:
    for interval in b"-5", b"0", b"7":
        data = STACKPROF + FRAME % b"" + b', "interval": ' + interval + b', "raw": [1, 5, 3]}'
        assert values_of(data, "stackprof", 1) == [(3_000_000, 3)]


def test_sums_of_stackprof() -> None:
    most = (1 << 63) - 1
    head = b'{"version": 1.2, "mode": "object", "interval": 1, '
    lines = head + FRAME % (b', "lines": {"1": [0, %d], "2": [0, %d]}' % (most, most)) + b"}"
    with pytest.raises(FormatError, match="sums of lines below"):
        fastprof.info(lines)
    assert fastprof.top(lines, n=0, lenient=True).rows[0].self == most
    twice = head + FRAME % (b', "samples": %d, "samples": %d, "samples": 7, "lines": {"1": [0, 3]}' % (most, most))
    assert fastprof.top(twice + b"}", n=0).rows[0].self == 7


def test_children_of_pyinstrument_follow_the_name() -> None:
    child = b'{"function": "kid", "file_path": "b", "line_no": 1, "time": 1.0, "children": []}'
    root = b'"root_frame": {"children": [%s], "function": "a", "file_path": "b", "line_no": 1, "time": 1.0}}'
    assert values_of(HEAD + root % child, "pyinstrument", 1) == [(10**9,)]
    assert [values for _, _, values in dump(HEAD + root % b"", "pyinstrument").rows] == [(10**9,)]
