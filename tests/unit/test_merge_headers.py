"""The header of a merged part: the same for any order and grouping, and of bounded size."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import pytest

import fastprof
from fastprof.core import text_counts
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.parts import comments_of, descriptions_of, match_values, merge_parts, remarks_of
from fastprof.formats.archive import _cbor as cbor
from fastprof.formats.archive.parts import from_plain, to_plain

IR = ValueType("Ir")


def part(rng: random.Random) -> Part:
    """One of a few parts with different headers."""

    def some(*choices: bytes) -> list[bytes]:
        return rng.sample(choices, rng.randrange(len(choices)))

    extra = {
        "period": rng.choice([1, 2]),
        "period_type": rng.choice([("cpu", "ns"), ("wall", "ns")]),
        "remarks": some(b"r", b"s"),
        "time_ns": rng.randrange(3),
        "duration_ns": rng.randrange(3),
        "program": rng.choice([b"p", b"q"]),
        "cpu": rng.randrange(2),
        "inherited": rng.choice([[ValueType("a", formula="Ir")], [ValueType("b"), ValueType("a")]]),
        "thread_text": b"x",
    }
    extra = {key: value for key, value in extra.items() if rng.random() < 0.6}
    return Part(
        [IR],
        rng.choice([("line",), ("instr", "line")]),
        creator=rng.choice([b"", b"callgrind-3.19.0", b"other"]),
        pid=rng.choice([None, 2, 10]),
        thread=None if "thread_text" in extra else rng.choice([None, 1, 2]),
        number=rng.choice([None, 1]),
        command=rng.choice([None, b"./b", b"./a"]),
        trigger=rng.choice([None, b"exit"]),
        descriptions=[(key, key + b"!") for key in some(b"LL", b"D1", b"I1")] + [(b"T", b"%d" % rng.randrange(9))],
        comments=some(b"one", b"two", b"three"),
        summary=[rng.randrange(9)],
        extra=extra,
    )


def through_an_archive(it: Part) -> Part:
    return from_plain(cbor.loads(cbor.dumps(to_plain(it))))


def tree(parts: list[Part], rng: random.Random) -> Part:
    """Merged in any order and grouping, partly through an archive."""
    parts = rng.sample(parts, len(parts))
    while len(parts) > 1:
        n = rng.randint(2, len(parts))
        merged = merge_parts(parts[:n], [IR])
        parts = [*parts[n:], through_an_archive(merged) if rng.random() < 0.5 else merged]
        rng.shuffle(parts)
    return parts[0]


@pytest.mark.parametrize("most", [2, text_counts.MOST])
@pytest.mark.parametrize("seed", range(60))
def test_any_tree_says_the_same(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_counts, "MOST", most)
    rng = random.Random(seed)
    parts = [part(rng) for _ in range(rng.randint(2, 8))]
    expected = merge_parts(parts, [IR])
    for _ in range(5):
        assert tree(parts, rng) == expected


def test_what_parts_say_differently_is_listed_and_counted() -> None:
    parts = [Part([IR], pid=pid, command=b"./%d" % pid, descriptions=[(b"T", b"%d" % pid)]) for pid in range(1, 101)]
    merged = merge_parts(parts, [IR])
    assert (merged.pid, merged.descriptions) == (None, [])
    said = dict(descriptions_of(merged))
    assert said[b"Processes"].startswith(b"1; 2; 3; ") and said[b"Processes"].endswith(b"; 32; and 68 more")
    assert [text for key, text in descriptions_of(merged) if key == b"T"][-2:] == [b"32", b"and 68 more"]
    assert merged.command is not None and merged.command.endswith(b"; and 68 more")
    ten_times = merge_parts([merged] * 10, [IR])
    assert len(to_plain(ten_times)["extra"]["merged"]["pid"][1]) == text_counts.MOST
    assert dict(descriptions_of(ten_times))[b"Processes"].endswith(b"; 32; and 680 more")


def test_as_many_keys_as_texts_are_kept() -> None:
    parts = [Part([IR], descriptions=[(b"key %03d" % k, b"")]) for k in range(100)]
    said = descriptions_of(merge_parts(parts, [IR]))
    assert len(said) == text_counts.MOST + 1 and said[-1] == (b"", b"and 68 more")


def test_what_all_say_keeps_its_place() -> None:
    """Cachegrind's caches come in their order, values that differ at their place."""
    head = [(b"I1 cache", b"1"), (b"D1 cache", b"2")]
    parts = [Part([IR], descriptions=[*head, (b"Timerange", t), (b"Trigger", b"end")]) for t in (b"2", b"1")]
    expected = [*head, (b"Timerange", b"1"), (b"Timerange", b"2"), (b"Trigger", b"end")]
    assert descriptions_of(merge_parts(parts, [IR])) == expected
    assert merge_parts(parts[:1] * 3, [IR]).descriptions == parts[0].descriptions


def test_comments_and_remarks() -> None:
    parts = [Part([IR], comments=[text], extra={"remarks": [text]}) for text in (b"b", b"a", b"a")]
    merged = merge_parts(parts, [IR])
    assert comments_of(merged) == remarks_of(merged) == [b"a", b"b"]


@pytest.mark.parametrize("to", ["callgrind", "cachegrind", "pprof"])
def test_writers_write_what_a_merged_archive_says(to: str, tmp_path: Path) -> None:
    """Merged at once, and through an archive of two inputs."""
    paths = []
    for k in (1, 2, 3):
        paths.append(tmp_path / f"{k}.callgrind")
        head = f"# format\ncreator: callgrind-3.{k}\npid: {k}\ncmd: ./run {k}\npart: 1\n\ndesc: Trigger: {k}\n"
        paths[-1].write_text(f"{head}\nevents: Ir\n\nfl=a.c\nfn=f\n1 {k}\n")
    fastprof.merge(paths[1:], tmp_path / "some.fpa")
    outs = []
    for k, inputs in enumerate((paths, [paths[0], tmp_path / "some.fpa"])):
        outs.append(tmp_path / f"out{k}")
        fastprof.merge(inputs, outs[-1], to=to)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if to != "pprof":
        text = outs[0].read_text()
        assert "desc: Processes: 1; 2; 3\n" in text and "cmd: ./run 1; ./run 2; ./run 3\n" in text
        assert "desc: Trigger: 1\ndesc: Trigger: 2\ndesc: Trigger: 3\n" in text or "desc: Triggers: 1; 2; 3" in text


def test_orders_of_models_do_not_matter() -> None:
    parts = [Part([IR], thread=k) for k in (3, 1, 2)]
    merged = [merge_parts(order, [IR]) for order in permutations(parts)]
    assert all(one == merged[0] for one in merged)
    assert Model().add_part(merged[0]) == 0


def test_value_types_are_matched_by_name_and_unit() -> None:
    events = [ValueType("a", "ns"), ValueType("a"), ValueType("b", "s")]
    mine = Part([ValueType("b"), ValueType("a", "ms"), ValueType("a"), ValueType("a", "x"), ValueType("b", "s")])
    assert match_values(mine, 6, events) == [2, 1, 0, 3, 4, 5]
    names = [("a", "ms"), ("b", "s"), ("a", "x"), ("b", "s"), ("value6", "")]
    assert [(event.name, event.unit) for event in events[1:]] == names


def test_parts_of_ever_other_value_types_are_refused_before_they_take_all_memory(tmp_path: Path) -> None:
    """Each part's value types would be columns of all rows: 4,000 took 400 MiB and a minute, from 130 KB."""
    parts = "".join(f"part: {i}\nevents: E{i}\nfn=f{i}\n1 1\n\n" for i in range(1, 4001))
    data = b"# callgrind format\n" + parts.encode()
    with pytest.raises(FastprofError, match=r"^<bytes>: there are more than 1,024 value types: 'E1025' and others"):
        fastprof.convert(data, tmp_path / "out", to="pprof")
    fastprof.convert(data, tmp_path / "out", to="callgrind")
