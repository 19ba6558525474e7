"""Names of Callgrind: numbers and their definitions, the files of functions, names composed of names."""

from __future__ import annotations

import gzip
import io

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference import profile_proto
from tests.reference.callgrind import Function, parse
from tests.reference.kcachegrind import load
from tests.support.conversions import convert_bytes
from tests.support.graphs import read_parts, rewrite

LENIENT = Options(lenient=True)
HEADER = b"version: 1\nevents: Ir Dr\n"


BEYOND = b"(99999999999999999999)"  # an impossible number of a name


@pytest.mark.parametrize(("line", "name"), [(BEYOND, b""), (BEYOND + b" h", b"h")])
def test_lenient_does_not_book_costs_on_the_function_before_a_bad_one(line: bytes, name: bytes) -> None:
    data = HEADER + b"fl=a\nfn=f\n1 2\nfn=" + line + b"\n2 3\n\nfn=g\n3 4\ncfn=" + line + b"\ncalls=1 9\n3 5\n"
    with pytest.raises(FormatError, match=f"line 6, byte {len(HEADER) + 14}: number of a name"):
        read_parts(data)
    parts, log = read_parts(data, LENIENT)
    assert [(r.function.name, r.values[0]) for r in parts[0].rows] == [(b"f", 2), (name, 3), (b"g", 4), (b"g", 5)]
    assert parts[0].rows[-1].callee == Function(b"", b"a", name)
    assert log.losses == {"unreadable-lines": 2}


def test_lenient_takes_no_file_or_object_before_a_bad_one_for_it() -> None:
    data = HEADER + b"ob=(1) o\nfl=(1) a\nfn=f\n1 2\nfi=(1)\n1 3\nfi=" + BEYOND + b"\n1 4\ncob=(1)\ncfi=(1)\ncfn=h\n"
    data += b"calls=1 1\n1 5\ncob=" + BEYOND + b"\ncfi=" + BEYOND + b" b\ncfn=i\ncalls=1 1\n1 6\nob=" + BEYOND
    data += b"\nfl=" + BEYOND + b"\nfn=g\n1 7\n"
    parts, log = read_parts(data, LENIENT)
    rows = parts[0].rows
    assert [row.file for row in rows] == [b"a", b"a", b"", b"", b"", b""]
    assert rows[-1].function == Function(b"", b"", b"g")
    assert [r.callee for r in rows if r.callee] == [Function(b"o", b"a", b"h"), Function(b"", b"b", b"i")]
    assert log.losses == {"unreadable-lines": 5}


def test_a_number_of_an_xtree_file_is_one_function_in_several_files() -> None:
    """fl= is the file of a line, another file for inlined code; KCachegrind shows one function, and so does our
    reader."""
    body = b"fl=(1) a.c\nfn=(1) f\n1\ncfi=(2) b.c\ncfn=(2) g\ncalls=0 9\n1 5\n"
    body += b"fl=(3) h.h\nfn=(1)\n7 6\nfl=(3)\nfn=(2)\n8 5\n"
    data = b"creator: xtree-1\nevents: Ir\n" + body
    rows = read_parts(data)[0][0].rows
    assert [(r.function.file, r.function.name, r.file) for r in rows] == [
        (b"a.c", b"f", b"a.c"),
        (b"a.c", b"f", b"a.c"),
        (b"a.c", b"f", b"h.h"),
        (b"b.c", b"g", b"h.h"),
    ]
    assert parse(data)[0].rows == parse(rewrite(data))[0].rows == rows
    assert load(rewrite(data)).shown() == load(data).shown()
    assert len({r.function for r in read_parts(HEADER + body)[0][0].rows}) == 3


def test_names_defined_before_use_bind_to_where_they_are_used() -> None:
    definitions = b"fl=(1) a\nfl=(2) b\nfn=(1) f\nfn=(2) g\n"
    parts, _ = read_parts(HEADER + definitions + b"fl=(1)\nfn=(1)\n1 1\nfl=(2)\nfn=(2)\n2 2\n")
    assert [r.function for r in parts[0].rows] == [Function(b"", b"a", b"f"), Function(b"", b"b", b"g")]


def test_numbers_live_across_parts_and_may_be_defined_anew() -> None:
    first = HEADER + b"fl=(1) a\nfn=(1) f\n1 1\n\n"
    parts, _ = read_parts(first + b"part: 2\nevents: Dr\nfl=(1)\nfn=(1)\n2 2\nfn=(1) g\n3 3\n")
    assert [r.function.name for p in parts for r in p.rows] == [b"f", b"f", b"g"]
    assert [p.events for p in parts] == [["Ir", "Dr"], ["Dr"]]


@pytest.mark.parametrize("ahead", [b"", b"#" + b" " * 3000 + b"\n"], ids=["near", "far"])
@pytest.mark.parametrize("file", [b"fl=(1)\n", b"fl=(2) b.c\n"], ids=["same", "other"])
@pytest.mark.parametrize("object_", [b"", b"ob=(1) o\n", b"ob=(2) p\n"], ids=["none", "same", "other"])
def test_a_number_defined_anew_by_its_own_name_is_where_it_is_met(ahead: bytes, file: bytes, object_: bytes) -> None:
    """Concatenated dumps define all numbers again, mostly with the same names, but not always."""
    met = [
        b"fn=(1) f\n2 1\ncfn=(2)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\ncfn=(1) f\ncalls=1 1\n2 1\ncfn=(1)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\ncob=(1)\ncfi=(1)\ncfn=(1) f\ncalls=1 1\n2 1\ncfn=(1)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\njfi=(1)\njfn=(1) f\njump=1 1\n2\njfn=(1)\njump=1 1\n2\n",
    ]
    for first in met:
        for second in met:
            text = b"events: Ir\nob=(1) o\nfl=(1) a.c\nfn=(2) g\n1 1\nfn=(1) f\n1 1\n" + first
            text += b"part: 2\nevents: Ir\n" + ahead + object_ + file + first + second
            assert [p.rows for p in read_parts(text)[0]] == [p.rows for p in parse(text)]


@pytest.mark.parametrize("number", [b"0", b"1", b"255", b"256", b"1000000", b"4294967296", b"9223372036854775807"])
def test_numbers_of_any_size(number: bytes) -> None:
    parts, _ = read_parts(HEADER + b"fl=(7) a\nfn=(%b) f\n1 1\nfn=(3) g\n1 1\nfn=(%b)\n2 2\n" % (number, number))
    assert [r.function.name for r in parts[0].rows] == [b"f", b"g", b"f"]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("kind", ["file", "pipe", "gzip"])
@pytest.mark.parametrize("window", [1, 64, 1 << 20])
def test_numbers_used_before_their_definition(window: int, kind: str) -> None:
    data = HEADER + b"fl=(1)\nfn=(2)\n1 1\ncob=(3)\ncfn=(9)\ncalls=1 5\n1 1\nfn=(4)\n1 1\n"
    data += b"fl=(1) a\nfn=(2) f\n2 2\ncob=(3) o\ncfn=(9) g\n"
    packed = gzip.compress(data) if kind == "gzip" else Pipe(data) if kind == "pipe" else data
    parts, log = read_parts(packed, window=window)
    assert [r.function for r in parts[0].rows] == [
        Function(b"", b"a", b"f"),
        Function(b"", b"a", b"f"),
        Function(b"", b"a", b"(4)"),
        Function(b"", b"a", b"f"),
    ]
    assert parts[0].rows[1].callee == Function(b"o", b"a", b"g")
    assert log.repairs == {
        "late-definitions": 4,
        "unnamed-numbers": 1,
    }


def test_names_made_of_numbers_are_put_together() -> None:
    """valgrind --compress-mangled=yes --separate-recs=2 --separate-callers=2"""
    data = HEADER + b"fl=(1) a\nfn=(3) f\nfn=(5) main\nfn=(9) (3)'2'(5)\n1 1\nfn=(10) (7) x\n2 2\n"
    parts, log = read_parts(data)
    assert [r.function.name for r in parts[0].rows] == [b"f'2'main", b"(7) x"]
    assert log.repairs["composed-names"] == 1


@pytest.mark.parametrize("line", [b"cfn=(1) g", b"cfn=(1) g\r", b"frfn=(1) g\ncfn=(1)"])
def test_a_number_defined_anew_before_its_function_has_a_row(line: bytes) -> None:
    data = HEADER + b"fn=(1) f\n" + line + b"\n1 1\ncalls=1 2 \n2 3\nfn=(1)\n4 4\n"
    rows = read_parts(data)[0][0].rows
    assert [(r.function.name, r.callee and r.callee.name) for r in rows] == [(b"f", None), (b"f", b"g"), (b"g", None)]
    assert rows == parse(data)[0].rows


def test_names_made_of_names_do_not_grow_without_end() -> None:
    """Each is twenty times as long: the fourth would have 80,000 bytes."""
    lines = [b"fn=(1) 0123456789\n1 1\n"]
    lines += [b"fn=(%d) " % k + b"(%d)" % (k - 1) * 20 + b"\n1 1\n" for k in range(2, 7)]
    parts, log = read_parts(b"events: Ir\n" + b"".join(lines), from_="callgrind")
    assert [len(row.function.name) for row in parts[0].rows] == [10, 200, 4000, 60, 60 * 20, 60 * 20 * 20]
    assert parts[0].rows[3].function.name == b"(3)" * 20
    assert log.repairs["long-composed-names"] == 1
    assert log.repairs["composed-names"] == 4


@pytest.mark.parametrize("step", [1, 7, 1000, 10**15])
def test_a_name_made_of_numbers_may_make_the_table_of_numbers_grow(step: int) -> None:
    """Each definition names a number without a name: it is entered while the definition's own entry is in use."""
    numbers = [1 + step * i for i in range(20_000 if step == 1 else 3_000)]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    lines = [b"fn=(%d) (%d)'2\n1 1\n" % pair for pair in pairs] + [b"fn=(%d)\n1 1\n" % mine for mine, _ in pairs]
    parts, log = read_parts(HEADER + b"fl=(1) a\n" + b"".join(lines))
    names = [b"(%d)'2" % other for _, other in pairs]
    assert [r.function.name for r in parts[0].rows] == names + names
    assert not log.repairs


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("name", [b"", b" x", b"(1) f", b"(12)", b"()x", b"(below main)", b"a=b", b"\xff\xfe", b"#"])
def test_any_name_reads_back(name: bytes, compress: bool) -> None:
    options = Options(compress_names=compress)
    if name.startswith(b"(1"):  # such a name can only follow a number
        data = HEADER + b"fl=(3) a\nfn=(5) " + name + b"\n1 1\nfn=(5)\n2 2\n"
    else:
        data = HEADER + b"fl=a\nfn=" + name + b"\n1 1\nfn=g\n1 1\nfn=" + name + b"\n2 2\n"
    names = [r.function.name for p in parse(rewrite(data, options=options)) for r in p.rows]
    assert names[0] == names[-1] == name


def two_builds(*builds: str) -> bytes:
    """A pprof profile of /bin/p loaded as several builds, each with the functions f and main."""
    p = profile_proto.Profile()
    p.string_table.extend(["", "samples", "count", "/bin/p", "f", "main", *builds])
    p.sample_type.add(type=1, unit=2)
    p.function.add(id=1, name=4)
    p.function.add(id=2, name=5)
    for i, build in enumerate(builds, 1):
        p.mapping.add(
            id=i, memory_start=i << 12, memory_limit=(i + 1) << 12, filename=3, build_id=6 + i - 1 if build else 0
        )
        for function in (1, 2):
            location = p.location.add(id=2 * i + function, mapping_id=i, address=(i << 12) + function)
            location.line.add(function_id=function, line=function)
        p.sample.add(location_id=[2 * i + 1, 2 * i + 2], value=[i])
    data: bytes = p.SerializeToString()
    return data


@pytest.mark.parametrize("builds", [("bbbb", "aaaa"), ("", "aaaa"), ("cc", "bb", "aa")])
@pytest.mark.parametrize("compress", [True, False])
def test_two_builds_of_an_object_have_two_names(builds: tuple[str, ...], compress: bool) -> None:
    out = convert_bytes(two_builds(*builds), "pprof", "callgrind", Options(compress_names=compress)).data
    parts, _ = read_parts(out)
    rows = parts[0].rows
    objects = {r.function.object for r in rows}
    assert len(objects) == len(builds)
    assert b"/bin/p" in objects
    assert {name for name in objects if name != b"/bin/p"} <= {b"/bin/p [%s]" % b.encode() for b in builds if b}
    assert sum(r.values[0] for r in rows if not r.callee) == sum(range(1, len(builds) + 1))
    assert rewrite(out, options=Options(compress_names=compress)) == out


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("first", [1, 2, 3])
def test_an_object_that_is_called_like_a_build_of_another(first: int, compress: bool) -> None:
    p = profile_proto.Profile()
    p.ParseFromString(two_builds("", "bb", "cc"))
    p.string_table.append("/bin/p [bb]")
    p.mapping[2].filename = len(p.string_table) - 1
    samples = [p.sample[(first + i) % 3] for i in range(3)]
    del p.sample[:]
    p.sample.extend(samples)
    out = convert_bytes(p.SerializeToString(), "pprof", "callgrind", Options(compress_names=compress)).data
    rows = read_parts(out)[0][0].rows
    assert len({r.function.object for r in rows}) == 3
    assert sorted(r.values[0] for r in rows if not r.callee) == [1, 2, 3]
    assert rewrite(out, options=Options(compress_names=compress)) == out


@pytest.mark.parametrize("compress", [True, False])
def test_functions_of_one_name_and_file_are_one_function(compress: bool) -> None:
    """Methods of two classes in one file that differ only in their first lines: readers of Callgrind see one."""
    frames = '{"name":"__init__","file":"a.py","line":9},{"name":"__init__","file":"a.py","line":70},{"name":"g"}'
    samples = '"samples":[[0],[0,1],[0,1,2],[1]],"weights":[1,2,3,4],"startValue":0,"endValue":10'
    text = f'{{"shared":{{"frames":[{frames}]}},"profiles":[{{"type":"sampled","name":"x","unit":"none",{samples}}}],'
    text += '"$schema":"https://www.speedscope.app/file-format-schema.json"}'
    out = convert_bytes(text.encode(), "speedscope", "callgrind", Options(compress_names=compress)).data
    names = [line for line in out.splitlines() if line.startswith((b"fn=", b"cfn=")) and b"__init__" in line]
    assert len({name.partition(b"=")[2] for name in names}) == 1
    assert out.count(b"\nfn=") == 2  # one block each
    again = convert_bytes(out, "callgrind", "callgrind", Options(compress_names=compress)).data
    assert again == out


ESCAPED = [b"f\n", b"f\\n", b"f\\n [2]", b"f\0", b"f\\0", b"f\rg", b"f\\rg", b"f"]


@pytest.mark.parametrize("names", [ESCAPED, ESCAPED[::-1]], ids=["escaped first", "escaped last"])
@pytest.mark.parametrize("what", ["function", "file", "object"])
@pytest.mark.parametrize("target", ["callgrind", "cachegrind"])
def test_names_that_are_escaped_are_not_taken_for_others(target: str, what: str, names: list[bytes]) -> None:
    """In either order; and reading the output gives the same again.  Cachegrind's are sorted by name."""
    if (target, what) == ("cachegrind", "object"):
        return  # it has none
    p = profile_proto.Profile()
    texts = ["", "samples", "count", *(name.decode() for name in names), "plain"]
    p.string_table.extend(texts)
    p.sample_type.add(type=1, unit=2)
    for i in range(1, len(names) + 1):
        own = {kind: 2 + i if kind == what else len(texts) - 1 for kind in ("function", "file", "object")}
        p.mapping.add(
            id=i, memory_start=i << 20, memory_limit=(i + 1) << 20, filename=own["object"], has_functions=True
        )
        p.function.add(id=i, name=own["function"], filename=own["file"])
        p.location.add(id=i, mapping_id=i, address=i << 20).line.add(function_id=i, line=i)
        p.sample.add(location_id=[i], value=[1 << i])
    first = convert_bytes(p.SerializeToString(), "pprof", target).data
    rows = read_parts(first, from_=target)[0][0].rows
    assert len({getattr(row.function, what if what != "function" else "name") for row in rows}) == len(names)
    assert sorted(row.values[0] for row in rows) == [1 << i for i in range(1, len(names) + 1)]
    second = convert_bytes(first, target, target).data
    assert second == first if target == "callgrind" else sorted(second.splitlines()) == sorted(first.splitlines())


OLD_XDEBUG = b"""version: 0.9.6
cmd: a.php
part: 1

events: Time

fl=php:internal
fn=php::usleep
20 100

fl=/lib.php
fn=pause
9 1
cfn=php::usleep
calls=1 0 0
9 100

fl=/a.php
fn={main}
1 5
cfn=pause
calls=1 0 0
2 101
"""


def test_callees_of_old_xdebug_are_functions_of_other_files_by_name() -> None:
    """It never writes cfl=, and it writes each callee's block before its caller's."""
    rows = read_parts(OLD_XDEBUG)[0][0].rows
    assert rows == parse(OLD_XDEBUG)[0].rows
    assert [r.callee for r in rows if r.callee] == [
        Function(b"", b"php:internal", b"php::usleep"),
        Function(b"", b"/lib.php", b"pause"),
    ]
    for stacks in ("estimate", "arcs"):
        folded = convert_bytes(OLD_XDEBUG, "callgrind", "folded", Options(stacks=stacks)).data.splitlines()
        callers = b"{main};" if stacks == "estimate" else b""
        assert sorted(folded) == sorted([b"{main} 5", b"{main};pause 1", callers + b"pause;php::usleep 100"])


@pytest.mark.parametrize("said", [b"cfl=/a.php\n", b"cob=x\n", b""])
def test_callees_of_other_writers_and_given_files_are_not_looked_up_by_name(said: bytes) -> None:
    data = OLD_XDEBUG.replace(b"cfn=php", said + b"cfn=php")
    if not said:
        data = data.replace(b"0.9.6", b"1")
    rows = read_parts(data)[0][0].rows
    assert rows == parse(data)[0].rows
    assert Function(b"", b"php:internal", b"php::usleep") not in [r.callee for r in rows]
