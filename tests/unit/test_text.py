"""Figures and tables for people (cli/text.py)."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import threading
from datetime import date

import pytest

from fastprof.cli import main
from fastprof.cli.as_json import json_text
from fastprof.cli.bar import Bar
from fastprof.cli.text import PIPE, Screen, cut, percent, print_table, short_names
from fastprof.core.figures import Scale
from tests.support.paths import CORPUS, REPO


@pytest.mark.parametrize(
    ("largest", "unit", "value", "text", "title"),
    [
        (999_999_999, "", 999_999_999, "999,999,999", "self"),
        (1_000_000_000, "count", 1_000_000_000, "1.00", "self G"),
        (9 * 10**12, "", -1_234_567_891_000, "-1.23", "self T"),
        (10**19, "", 10**19, "10,000,000", "self T"),
        (999, "nanoseconds", 999, "999", "self ns"),
        (1_000, "nanoseconds", 1_234, "1.23", "self us"),
        (999_499, "nanoseconds", 41_499, "41", "self us"),
        (999_500, "nanoseconds", 999_500, "1.00", "self ms"),
        (9_995_000, "nanoseconds", 9_995_000, "10.0", "self ms"),
        (-41_000_000_000, "nanoseconds", -41_000_000_000, "-41.0", "self s"),
        (-41_000_000_000, "nanoseconds", -1, "-1 ns", "self s"),
        (20, "microseconds", 20, "20.0", "self us"),
        (3, "seconds", 3, "3.00", "self s"),
        (1_023, "bytes", 512, "512", "self B"),
        (1 << 20, "bytes", 1536, "1.50 KiB", "self MiB"),
        (5, "kilobytes", 5, "5.00", "self KiB"),
        (0, "nanoseconds", 0, "0", "self ns"),
        (12_345, "ticks", 12_345, "12,345", "self"),
    ],
)
def test_one_scale_for_a_column(largest: int, unit: str, value: int, text: str, title: str) -> None:
    scale = Scale.of(largest, unit)
    assert (scale(value), scale.title("self")) == (text, title)


def test_each_figure_has_its_own_unit_if_most_were_zero_in_one() -> None:
    counts = [5_000_000_000, 1_234_567, 45_678, 999, 0]
    scale = Scale.of(5_000_000_000, "", counts)
    assert [scale(count) for count in counts] == ["5.00 G", "1.23 M", "45.7 k", "999", "0"]
    assert scale.title("self") == "self"
    even = [5_000_000_000, 4_000_000_000, 30_000_000, 999]
    assert Scale.of(even[0], "", even).title("self") == "self G"


def test_a_figure_of_less_than_two_digits_has_its_own_unit() -> None:
    """The page has the same rule: test_report_browser.py reads these figures, too."""
    for column in json.loads((REPO / "tests/support/figures.json").read_text()):
        scale = Scale.of(column["largest"], column["unit"])
        assert scale.unit == column["title"]
        assert [[figure, scale(figure)] for figure, _ in column["figures"]] == column["figures"]


def test_a_value_type_called_like_a_unit_is_its_unit() -> None:
    assert Scale.of(41_000_000, "nanoseconds").title("ns") == "ms"


def test_percentages() -> None:
    assert [percent(1, 3), percent(0, 5), percent(-1, 4), percent(1, -4), percent(5, 0)] == [
        "33.3",
        "0.0",
        "-25.0",
        "-25.0",
        "-",
    ]


def test_names_lose_their_middle() -> None:
    assert cut("abcdefghijkl", 12) == "abcdefghijkl"
    assert cut("abcdefghijkl", 9) == "abc...jkl"
    assert cut("abcdefghijkl", 10) == "abcd...jkl"
    assert cut("漢字漢字漢字", 9) == "漢...字"  # an ideograph is two columns wide


ROWS = [("cost", "function"), (1_234_567, "a_function_with_a_long_name_of_templates"), (5, "main")]


def test_pipes_get_all_of_a_name_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, right=(0,), narrow=(1,), shares=(None, 0.9), screen=PIPE)
    assert capsys.readouterr().out == (
        "     cost  function\n1,234,567  a_function_with_a_long_name_of_templates\n        5  main\n"
    )


def test_a_table_fits_the_screen_and_is_painted_by_share(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, right=(0,), narrow=(1,), shares=(None, 0.9, 0.05), screen=Screen(30, True))
    out = capsys.readouterr().out
    assert out == (
        "     cost  function\n\x1b[1;31m1,234,567  a_functi...emplates\x1b[0m\n\x1b[33m        5  main\x1b[0m\n"
    )
    print_table(ROWS, right=(0,), narrow=(1,), screen=Screen(10))
    assert max(map(len, capsys.readouterr().out.splitlines())) == 9 + 2 + 16  # names have at least 16 columns


def test_a_narrow_screen_shows_fewer_columns_before_it_cuts_names(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("self", "sum %", "object", "function"), (1_000, 12.5, "ld-linux-x86-64.so.2", "_dl_relocate_object")]

    def printed(width: int) -> list[str]:
        print_table(rows, narrow=(2, 3), optional=(1, 2), screen=Screen(width))
        return capsys.readouterr().out.splitlines()[1].split("  ")

    assert printed(59) == ["1,000", "12.500000", "ld-linux-x86-64.so.2", "_dl_relocate_object"]
    assert printed(51) == ["1,000", "12.500000", "ld-li...so.2", "_dl_relocate_object"]
    assert printed(50) == ["1,000", "ld-linux-x86-64.so.2", "_dl_relocate_object"]
    assert printed(37) == ["1,000", "_dl_relocate_object"]
    assert printed(20) == ["1,000", "_dl_rel...object"]


def test_a_bar_waits_half_a_second(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter work needs none, and a bar that was never shown is not erased."""
    now = 7.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bar = Bar(1000, "a.prof")
    now = 7.4
    bar.move(400)
    bar.close()
    assert capsys.readouterr().err == ""
    now = 7.6
    bar.move(600)
    assert "a.prof:  60%" in capsys.readouterr().err
    now = 7.65
    bar.move(650)
    assert capsys.readouterr().err == ""
    bar.close()
    bar.close()
    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_bar_shows_work_after_the_last_byte(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 % is what is done: not while the work goes on, and not if it failed."""
    now, drawn = 7.0, threading.Event()
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("fastprof.cli.bar._EVERY", 0.001)
    monkeypatch.setattr("fastprof.cli.bar.Bar._write", lambda self, text: (drawn.set(), print(text)))
    bar = Bar(40_000_000, "a.prof")
    bar.move(40_000_000)
    now = 82.0
    assert drawn.wait(30)
    bar.close()
    out = capsys.readouterr().out
    *going, done, erased = out.splitlines()
    assert {*going} == {f"a.prof:  99% [{19 * '#'} ] 40.0 MB read, processing for 1:15"} and erased == ""
    assert done == f"a.prof: 100% [{20 * '#'}] 40.0 MB read and processed"
    bar = Bar(40_000_000, "a.prof")
    drawn.clear()
    now = 200.0
    bar.move(40_000_000)
    assert drawn.wait(30)
    with pytest.raises(ValueError, match="damaged"):
        try:
            raise ValueError("damaged")
        finally:
            bar.close()
    assert "100%" not in capsys.readouterr().out


def test_wide_letters_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([("漢字", 1), ("e\u0301", 2), ("abcd", 3)])
    assert capsys.readouterr().out == "漢字  1\ne\u0301     2\nabcd  3\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "132")
    assert Screen.of(Terminal()) == Screen(132, True)
    assert Screen.of(io.StringIO()) == PIPE == Screen(None, False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "-3")
    assert Screen.of(Terminal()) == Screen(80, False)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen.of(Terminal()).colour


def test_the_width_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert Screen.from_options(None, "auto") == Screen(120, False)
    assert Screen.from_options(0, "always") == Screen(None, True)
    monkeypatch.setenv("COLUMNS", "90")
    assert Screen.from_options(None, "auto") == Screen(90, False)
    assert Screen.from_options(40, "never") == Screen(40, False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert Screen.from_options(None, "auto") == Screen(90, True)
    assert Screen.from_options(None, "never") == Screen(90, False)


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("f(int, char const*)", 10, "f(...)"),
        ("std::vector<int, A<int> >::push_back(int const&)", 45, "std::vector<int, A<int> >::push_back(...)"),
        ("std::vector<int, A<int> >::push_back(int const&)", 36, "std::vector<...>::push_back(...)"),
        ("main.(*LongType).method.func1", 12, "main....unc1"),
        ("A::operator<(B const&) const", 26, "A::operator<(...) const"),
        ("A::operator()(B const&) const", 26, "A::operator()(...) const"),
        ("(anonymous namespace)::f(int, int)", 30, "(anonymous namespace)::f(...)"),
        ("f(a, b))unbalanced<int, int", 20, "f(a, b))u...int, int"),
    ],
)
def test_arguments_go_before_names_are_cut(name: str, width: int, shown: str) -> None:
    assert cut(name, width) == shown
    assert cut(name, len(name)) == name


def test_columns_that_are_the_same_everywhere_go_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("sum %", "object", "function"), ("10.0", "app", "work"), ("20.0", "app", "play")]
    print_table(rows, optional=(0, 1), narrow=(2,), screen=Screen(18))
    assert capsys.readouterr().out.splitlines()[1] == "10.0   work"
    rows = [
        ("self", "object", "function"),
        ("1", "application", "f"),
        ("2", "application", "... 5 more below 0.5 % of it"),
    ]
    print_table(rows, optional=(1,), narrow=(1, 2), screen=Screen(40))
    assert capsys.readouterr().out.splitlines()[2] == "2     ... 5 more below 0.5 % of it"


def test_json_that_every_reader_takes() -> None:
    said = json_text({"a": [math.nan, -math.inf, 1.5, 1 << 80, True, None], date(2020, 1, 2): ("\udcff", "\U0001f600")})
    assert json.loads(said) == {"a": [None, None, 1.5, 1 << 80, True, None], "2020-01-02": ["\ufffd", "\U0001f600"]}
    assert "NaN" not in said and "Infinity" not in said and "\\udc" not in said


def test_all_json_is_made_by_one_function() -> None:
    for path in (REPO / "fastprof/cli").glob("*.py"):
        own = path.name in ("as_json.py", "tools.py")  # the latter writes a call's words to its process
        assert "json.dump" not in path.read_text() or own, path


def test_names_in_json_are_text() -> None:
    for verb in ("top", "annotate", "info"):
        words = [sys.executable, "-m", "fastprof", verb, "-", "--json"]
        done = subprocess.run(words, input=b"events: Ir\nfl=\xfe.c\nfn=\xff\n1 2\n", capture_output=True, check=True)
        assert not re.search(rb"\\ud[89a-f]", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("top A --json --width 80", "--width applies to printed text, not to --json"),
        ("top A --csv --color always", "--color applies to printed text, not to --csv"),
        ("diff A A -o x.callgrind --width none", "--width applies to printed text, not to --output"),
        ("annotate A --json --color never", "--color applies to printed text, not to --json"),
    ],
)
def test_options_of_the_screen_without_text_are_refused(
    command: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = command.replace("A", str(CORPUS / "callgrind" / "good" / "cfi.callgrind"))
    assert main(given.split()) == 2
    error = capsys.readouterr().err
    assert error == f"fastprof: {says}\n" or json.loads(error)["message"] == says


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("self", "function"), (1200, "std::sort<int*>|x"), (3, "f_[a]")]
    print_table(rows, right=(0,), screen=Screen.from_options(None, "auto", markdown=True))
    assert capsys.readouterr().out == (
        "| self | function |\n| ---: | --- |\n| 1,200 | std::sort\\<int\\*\\>\\|x |\n| 3 | f\\_\\[a\\] |\n"
    )


def test_short_names_stay_distinct() -> None:
    names = [
        "void std::sort<int*>(int*, int*)",
        "f(int*)",
        "f(long)",
        "g<vector<int>>::h()",
        "main.(*T).f",
        "operator<",
    ]
    assert short_names(names) == [
        "void std::sort<...>(...)",
        "f(int*)",
        "f(long)",
        "g<...>::h()",
        "main.(*T).f",
        "operator<",
    ]
    assert short_names(["a<int>::f(char*)", "a<...>::f(...)"]) == ["a<int>::f(char*)", "a<...>::f(...)"]


def test_statistics_of_calls_fit_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Nanoseconds next to milliseconds have a unit each; columns are dropped until the names fit."""
    words = ["top", str(CORPUS / "xray/good/fdr5-pool-clang19.xray"), "-s", str(CORPUS / "xray/pool-clang19")]
    for width in (120, 80, 60, 40):
        assert main([*words, "-q", "--stats", "-n", "4", "--width", str(width)]) == 0
        head, *rows = capsys.readouterr().out.splitlines()[2:]
        assert max(map(len, (head, *rows))) <= width
        assert ("median" in head, "90 %" in head) == (width >= 60, width == 120)
        assert head.split()[-1] == "function"
        assert (" ns" in rows[3]) == (width >= 60)


def test_statistics_that_would_be_zero_have_their_own_units() -> None:
    figures = [4_210_000, 342_000, 190]
    assert [*map(Scale.of(max(figures), "nanoseconds", figures), figures)] == ["4.21", "0.34", "190 ns"]
    assert [*map(Scale.of(max(figures), "nanoseconds", figures, lost=0), figures)] == ["4.21 ms", "342 us", "190 ns"]
