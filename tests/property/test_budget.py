"""--budget-tokens: an answer never exceeds it, keeps the largest rows, and says what was cut."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastprof.cli import main
from tests.support.paths import CORPUS
from tests.unit.test_schemas import checked

FILES = [
    "pprof/good/go-cpulabels.pb",
    "pprof/good/go-heap.pb.gz",
    "callgrind/good/xdebug.callgrind",
    "jfr/good/real-async.jfr.gz",
    "xray/good/fdr5-pool-clang19.xray",
    "massif/good/heap.massif",
    "folded/good/names.folded",
]
PATHS = [str(path) for name in FILES if (path := CORPUS / name).exists()]
PAIR = [str(CORPUS / "pair" / f"{side}.callgrind") for side in ("old", "new")]
VERBS: list[list[str]] = [
    *(
        ["top", path, *more]
        for path in PATHS
        for more in ([], ["-n", "0", "--tree", "both"], ["--csv"], ["--markdown"])
    ),
    *([verb, path] for verb in ("info", "explain", "annotate") for path in PATHS),
    ["info", *PATHS],
    ["diff", *PAIR],
    ["diff", *PAIR, "--by", "line", "-n", "0"],
    ["explain", *PAIR],
    ["annotate", PAIR[1], "-I", str(CORPUS / "pair")],
    ["top", PATHS[0], "--matrix", "kind"],
]


def answered(words: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


@given(st.sampled_from(VERBS), st.integers(200, 4000), st.booleans())
@settings(deadline=None, max_examples=150)
def test_never_more_than_the_budget(words: list[str], tokens: int, as_json: bool) -> None:
    form = ["--json"] if as_json and not {"--csv", "--markdown"} & {*words} else []
    code, out, err = answered([*words, *form, "--budget-tokens", str(tokens)])
    assert code in (0, 1, 2) and size(out) + size(err) <= 4 * tokens
    if code == 2:
        assert "needs at least" in err and tokens < 1000
    elif code == 0 and form:
        name = json.loads(out)["schema"].split("/")[1]
        assert name.removesuffix("-list").removesuffix("-changes") == words[0]
        checked(out, name)
    elif code == 0:
        whole = answered(words)
        assert out == whole[1] or "cut to" in out + err or "more warnings" in err or size(whole[1]) > 4 * tokens * 0.7


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)


@given(st.lists(st.tuples(NAMES, st.integers(1, 10**6)), min_size=1), st.integers(200, 600))
@settings(deadline=None, max_examples=40)
def test_names_of_any_kind(rows: list[tuple[str, int]], tokens: int) -> None:
    """Also long ones, and ones that take several bytes a character or are escaped in JSON."""
    with contextlib.ExitStack() as stack:
        import tempfile

        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder) / "in.folded"
        names = [(" ".join(name.split()).replace(";", ",") or "x", n) for name, n in rows]
        path.write_text("".join(f"main;{name} {n}\n" for name, n in names), "utf-8")
        for form in ([], ["--json"]):
            for verb in ("top", "explain", "info"):
                code, out, err = answered([verb, str(path), *form, "--from", "folded", "--budget-tokens", str(tokens)])
                assert size(out) + size(err) <= 4 * tokens, (verb, form)
                assert code in (0, 1, 2)


def test_what_is_kept_and_said() -> None:
    code, out, _ = answered(["top", PATHS[0], "--budget-tokens", "300"])
    whole = answered(["top", PATHS[0]])[1]
    assert code == 0 and "runtime.asyncPreempt" in out
    *rows, rest, note = out.splitlines()
    assert rest.startswith("... ") and note.startswith("cut to 300 tokens: ") and "--budget-tokens" in note
    names = [line.split()[-1] for line in whole.splitlines()[3:]]
    assert [line.split()[-1] for line in rows[3:]] == names[: len(rows) - 3]
    found = json.loads(answered(["top", PATHS[0], "--budget-tokens", "500", "--json"])[1])
    (cut, *_) = found["cut"]
    assert cut["what"] == "rows" and cut["shown"] == len(found["rows"]) > 0 and cut["of"] == 30
    asked = cut["ask"].split()[1]
    more = json.loads(answered(["top", PATHS[0], "--budget-tokens", asked, "--json"])[1])
    assert "cut" not in more and len(more["rows"]) == 30  # what it says to ask for is enough
    assert abs(found["rest"] - (1 - found["rows"][-1]["cumulated_share"])) < 1e-9


def test_trend(tmp_path: Path) -> None:
    for day in range(20):
        rows = (f"main;f{i} {1000 + i + (300 + 9 * i) * (day > 9 + i % 5) + (day * 7 + i) % 5}\n" for i in range(40))
        (tmp_path / f"{day:02}.folded").write_text("".join(rows))
    words = ["trend", str(tmp_path), "-n", "0"]
    whole, n_cut = json.loads(answered([*words, "--json"])[1]), 0
    for tokens in (1000, 1500, 3000):
        for form in ([], ["--json"], ["--markdown"], ["--csv"]):
            code, out, err = answered([*words, *form, "--budget-tokens", str(tokens)])
            assert code == 0 and size(out) + size(err) <= 4 * tokens, (tokens, form, err)
            if form == ["--json"]:
                found = checked(out, "trend")
                shown = len(found["findings"])
                assert [one["name"] for one in found["findings"]] == [one["name"] for one in whole["findings"][:shown]]
                if shown < len(whole["findings"]):
                    assert found["cut"][0]["of"] == len(whole["findings"]) and (shown or tokens < 1500)
                    n_cut += 1
    assert n_cut


def test_annotate_keeps_the_most_expensive_lines() -> None:
    words = ["annotate", PAIR[1], "-I", str(CORPUS / "pair"), "--json"]
    whole, short = (json.loads(answered([*words, *more])[1]) for more in ([], ["--budget-tokens", "600"]))

    def lines(found: dict[str, list[dict[str, list[dict[str, list[int]]]]]]) -> list[int]:
        return [line["values"][0] for one in found["listings"] for line in one["lines"] if line["values"]]

    assert 0 < len(lines(short)) < len(lines(whole)) and max(lines(short)) == max(lines(whole))


def test_sql_reads_no_more_than_it_needs(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    for form in ([], ["--json"], ["--csv"]):
        query = "select r, repeat('x', 50) t from range(100000000) q(r)"
        assert main(["sql", PATHS[0], query, "--budget-tokens", "400", *form]) == 0
        found = capfd.readouterr()
        assert size(found.out) + size(found.err) <= 1600
        if form == ["--json"]:
            cut = checked(found.out, "sql")["cut"][0]
            assert cut["of"] is None and "offset" in cut["ask"]


def test_refused(tmp_path: Path) -> None:
    code, _, err = answered(["top", PATHS[0], "--budget-tokens", "300", "-o", str(tmp_path / "t.csv")])
    assert code == 2 and "--output" in err
    for wrong in ("0", "199", "-1", "x", "99999999999"):
        with pytest.raises(SystemExit):
            answered(["top", PATHS[0], "--budget-tokens", wrong])
