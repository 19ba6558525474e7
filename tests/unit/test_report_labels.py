"""`fastprof report`: the labels of samples in the page.  They add up to the figures of `fastprof top`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from fastprof import report, top
from fastprof.cli import main
from tests.reference import profile_proto as reference
from tests.support.pages import Page
from tests.support.paths import CORPUS

LABELLED = ["pprof/good/go-cpulabels.pb.gz", "pprof/good/go-heap.pb.gz", "pprof/good/everything.pb"]


def by_set(found: Page, column: int = 0) -> Counter[str]:
    """Like `top --by label`."""
    sums: Counter[str] = Counter()
    for (_, labels), cost in found.samples(column).items():
        sums[", ".join(sorted(labels)) or "(none)"] += cost
    return Counter({name: cost for name, cost in sums.items() if cost})


@pytest.mark.parametrize("prune", [0, 0.05])
@pytest.mark.parametrize("file", LABELLED)
def test_label_sets_cost_what_top_says(file: str, prune: float, tmp_path: Path) -> None:
    report(CORPUS / file, tmp_path / "page.html", prune=prune)
    found = Page(tmp_path / "page.html")
    for k, column in enumerate(found.head["values"]):
        name = found.head["events"][column["event"]]["name"]
        rows = top(CORPUS / file, by="label", n=0, value=name).rows
        assert by_set(found, k) == Counter({row.name: row.self for row in rows if row.self})


@pytest.mark.parametrize("file", LABELLED)
def test_functions_of_a_value_cost_what_top_says_of_it(file: str, tmp_path: Path) -> None:
    report(CORPUS / file, tmp_path / "page.html", prune=0)
    found = Page(tmp_path / "page.html")
    (k,) = (k for k, value in enumerate(found.head["values"]) if value["event"] == found.head["shown"])
    samples = found.samples(k)
    labels = {label for _, labels in samples for label in labels}
    assert labels
    for label in labels:
        own: Counter[str] = Counter()
        for (path, had), cost in samples.items():
            if label in had and len(path) > 1:
                own[path[-1]] += cost
        key, _, value = label.partition("=")
        rows = top(CORPUS / file, n=0, label=[f"{key}={value.split()[0]}"], cycles=False).rows
        expected: Counter[str] = Counter()
        for row in rows:
            if not row.name.startswith("<cycle"):
                expected[row.name] += row.self
        assert {name: cost for name, cost in own.items() if cost} == {n: c for n, c in expected.items() if c}


Sample = tuple[str, dict[str, str | int], int]


def labelled(path: Path, samples: list[Sample]) -> Path:
    """A pprof profile of samples: functions, callers first, with ; between; labels; value."""
    p = reference.Profile()
    strings: dict[str, int] = {}

    def at(text: str) -> int:
        return strings.setdefault(text, len(strings))

    functions: dict[str, int] = {}
    at("")
    p.sample_type.add(type=at("cpu"), unit=at("count"))
    for stack, labels, value in samples:
        names = [functions.setdefault(name, len(functions) + 1) for name in reversed(stack.split(";"))]
        sample = p.sample.add(location_id=names, value=[value])
        for key, text in labels.items():
            if isinstance(text, int):
                sample.label.add(key=at(key), num=text)
            else:
                sample.label.add(key=at(key), str=at(text))
    for name, number in functions.items():
        p.function.add(id=number, name=at(name))
        p.location.add(id=number).line.add(function_id=number)
    p.string_table.extend(strings)
    path.write_bytes(p.SerializeToString())
    return path


def test_costs_of_one_context_in_several_label_sets(tmp_path: Path) -> None:
    """The remainder of a context's cost needs no entry: the part without labels, or that of one of the sets."""
    samples: list[Sample] = [
        ("main;work", {"tenant": "a"}, 10),
        ("main;work", {"tenant": "b"}, 20),
        ("main;work", {}, 5),
        ("main;leaf", {"tenant": "a"}, 3),
        ("main;leaf", {"tenant": "b", "size": 7}, 4),
        ("main;one", {"tenant": "b"}, 6),
    ]
    report(labelled(tmp_path / "a.pb", samples), tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    main_ = ("(unknown)", "main")
    assert found.samples() == {
        ((*main_, "work"), ("tenant=a",)): 10,
        ((*main_, "work"), ("tenant=b",)): 20,
        ((*main_, "work"), ()): 5,
        ((*main_, "leaf"), ("tenant=a",)): 3,
        ((*main_, "leaf"), ("size=7", "tenant=b")): 4,
        ((*main_, "one"), ("tenant=b",)): 6,
    }
    assert len(found.columns["label set"]) == 2 + 1 + 0


def test_values_are_alike_whatever_the_order_of_labels_and_their_kind(tmp_path: Path) -> None:
    """A sample may have labels in any order, a value as number or text, and a key several times."""
    samples: list[Sample] = [
        ("main;f", {"a": "1", "b": "2"}, 10),
        ("main;f", {"b": "2", "a": "1"}, 20),
        ("main;f", {"b": 2, "a": 1}, 40),
    ]
    report(labelled(tmp_path / "a.pb", samples), tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert found.samples() == {(("(unknown)", "main", "f"), ("a=1", "b=2")): 70}
    assert found.columns["set size"] == [0, 2]


def test_a_value_of_any_length_and_bytes(tmp_path: Path) -> None:
    """A text as long as a page has no separate entry."""
    long, odd = "x" * 500_000, "</script>\\\x00\u2028=é"
    samples: list[Sample] = [
        ("f", {"k=": long}, 10),
        ("f", {"k=": odd}, 20),
        ("f", {"": "v"}, 5),
        ("f", {"k=": "y"}, 1),
    ]
    report(labelled(tmp_path / "a.pb", samples), tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert by_set(found) == {"k==[others]": 10, f"k=={odd}": 20, "=v": 5, "k==y": 1}
    assert len(found.bytes) < 400_000  # the program itself has 300,000


def test_a_sample_with_very_many_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work is linear in their number; dropped keys are reported."""
    many: dict[str, str | int] = {f"key {i}": i for i in range(60_000)}
    source = labelled(tmp_path / "a.pb", [("f", many, 7), ("f", {"key 5": 5, "x" * 200_000: "v"}, 9)])
    assert main(["report", str(source), "-o", str(tmp_path / "page.html")]) == 0
    found = Page(tmp_path / "page.html")
    assert len(found.head["labels"]["keys"]) == 99
    assert "labels left out of the page: 59,902, first" in capsys.readouterr().err
    assert sum(cost for (_, labels), cost in found.samples().items() if "key 5=5" in labels) == 16
    assert len(found.bytes) < 400_000  # the program itself has 300,000


def random_samples(rng: random.Random, n: int, requests: int) -> list[Sample]:
    return [
        (
            f"main;a{rng.randrange(10)};b{rng.randrange(10)}",
            {"tenant": f"t{rng.randrange(3)}", "request": rng.randrange(requests)} if rng.random() < 0.9 else {},
            rng.randrange(1, 100),
        )
        for _ in range(n)
    ]


def test_values_that_do_not_fit_are_added_up_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fastprof.verbs.page.labels._MOST_ENTRIES", 2500)
    samples = random_samples(random.Random(1), 4000, 600)
    source = labelled(tmp_path / "a.pb", samples)
    assert main(["report", "-v", str(source), "-o", str(tmp_path / "page.html")]) == 0
    found = Page(tmp_path / "page.html")
    assert len(found.columns["label set"]) <= 2500
    (request,) = (key for key in found.head["labels"]["keys"] if key["name"] == "request")
    assert 200 < request["merged"] < 600
    assert (
        f"{request['merged']} values of labels too small for the page, merged into [others]" in capsys.readouterr().err
    )
    expected: Counter[str] = Counter()
    for _, labels, cost in samples:
        expected.update({f"{key}={value}": cost for key, value in labels.items()})
    shown: Counter[str] = Counter()
    for (_, names), cost in found.samples().items():
        shown.update(dict.fromkeys(names, cost))
    assert shown.total() == expected.total()
    for name, cost in shown.items():
        assert cost == expected[name] or name == "request=[others]"
    smallest = min(cost for name, cost in shown.items() if not name.endswith("[others]"))
    assert all(name in shown or cost <= smallest for name, cost in expected.items())


def test_values_are_kept_that_only_a_smaller_page_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first try with few contexts has all label sets in [pruned]; in the page each context has one."""
    monkeypatch.setattr("fastprof.verbs.page.labels._MOST_ENTRIES", 100)
    monkeypatch.setattr("fastprof.verbs.report._CONTEXTS", 10)
    samples: list[Sample] = [(f"main;f{i}", {"request": f"r{i}"}, 1 + i) for i in range(900)]
    report(labelled(tmp_path / "a.pb", samples), tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert found.head["labels"]["keys"] == [{"name": "request", "merged": 0}]
    assert len(found.columns["value text"]) == 900
    assert found.head["cut"] == [0]


def test_labels_that_take_too_much_memory_are_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key with as many values as samples is left out; a key with few values stays, exact."""
    monkeypatch.setattr("fastprof.verbs.page.contexts._LEAST_CONTEXTS", 1500)
    monkeypatch.setattr("fastprof.verbs.page.contexts.Room.is_full", lambda room, *rows: True)
    samples = random_samples(random.Random(2), 9000, 1 << 30)
    source = labelled(tmp_path / "a.pb", samples)
    assert main(["report", str(source), "-o", str(tmp_path / "page.html"), "--max-memory", "4000"]) == 0
    assert "labels left out of the page: 1, first request with" in capsys.readouterr().err
    found = Page(tmp_path / "page.html")
    assert [key["name"] for key in found.head["labels"]["keys"]] == ["tenant"]
    assert [key["name"] for key in found.head["labels"]["left_out"]] == ["request"]
    expected: Counter[str] = Counter()
    for _, labels, cost in samples:
        expected[f"tenant={labels['tenant']}" if labels else "(none)"] += cost
    assert by_set(found) == expected


def test_labels_of_both_profiles_of_a_comparison(tmp_path: Path) -> None:
    old = labelled(tmp_path / "a.pb", [("main;f", {"tenant": "a"}, 10), ("main;f", {"tenant": "b"}, 1)])
    new = labelled(tmp_path / "b.pb", [("main;f", {"tenant": "a"}, 4), ("main;f", {"tenant": "c"}, 7)])
    report([old, new], tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert [by_set(found, k) for k in (0, 1)] == [{"tenant=a": 10, "tenant=b": 1}, {"tenant=a": 4, "tenant=c": 7}]


def test_samples_without_labels_take_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;work 30\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert "labels" not in found.head
    assert not [name for name in found.columns if name.startswith(("label", "set", "value", "context set"))]
