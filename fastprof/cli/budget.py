"""--budget-tokens: answers of a limited size, for programs and agents that pay for each token.

A token is 4 bytes of UTF-8, standard error included.  A verb states how to make its answer with only the `k` most
important of its rows (or lines, or facts); the largest `k` that fits is printed, with what was cut and how to ask for
it.  In JSON, long texts and lists that are less important are shortened first.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

from fastprof.cli.as_json import document, json_text, plain
from fastprof.cli.text import IN_A_PIPE
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.errors import UsageError

if TYPE_CHECKING:
    import argparse

BYTES = 4  # of a token
# What JSON keeps of texts (characters) and of other lists (entries), one attempt after the other; and the rows at which
# an attempt is good enough.
_ATTEMPTS = ((1000, 100, 30), (200, 20, 20), (120, 6, 10), (80, 3, 5), (60, 1, 2), (40, 0, 0))
# Lists whose entries belong to those of others, so that they are kept whole.
_WHOLE = {"values", "totals", "value_types", "costs", "columns", "other_values", "points", "old", "new"}
_FACTS = ("facts",)  # objects that may lose keys


class Answer(NamedTuple):
    """How a verb answers with the first `k` of its `n` rows."""

    name: str  # of its document
    n: int
    rows: str  # the path of the rows in the document, for what was cut
    build: Callable[[int], dict[str, Any]]  # the document's content
    show: Callable[[int], None]  # prints text
    ask: str  # what else shows more
    of: int | None = -1  # rows without the limit, if not `n`; None: unknown
    indent: int | None = 1  # of JSON without a limit

    @property
    def total(self) -> int | None:
        return self.n if self.of == -1 else self.of


def refuse_output(args: argparse.Namespace, output: str | None) -> None:
    """Errors: UsageError for --budget-tokens if the answer goes to a file."""
    if output not in (None, "-") and args.budget_tokens is not None:
        raise UsageError("--budget-tokens applies to printed answers, not to --output")


def print_answer(args: argparse.Namespace, answer: Answer, problems: Callable[[], None] = lambda: None) -> None:
    """Print an answer, whole or within --budget-tokens.  `problems` prints warnings about text on standard error."""
    if args.budget_tokens is None:
        if args.json:
            print(json_text(document(answer.name, answer.build(answer.n)), indent=answer.indent))
        else:
            answer.show(answer.n)
            problems()
        return
    limit = BYTES * args.budget_tokens
    if args.json:
        print(fitted_json(answer, limit - 1))
        return
    if getattr(args, "width", 0) is None and limit // 6 < IN_A_PIPE:
        args.width = max(60, limit // 6)
    with redirect_stderr(io.StringIO()) as errors:
        problems()
    said = _head_of(errors.getvalue(), limit // 4, "fastprof: ... more warnings; -v lists all\n")
    left = limit - _size(said)
    text, note = _fitted_text(answer, left, args.budget_tokens, is_csv=getattr(args, "csv", False))
    sys.stdout.write(text)
    sys.stdout.flush()
    sys.stderr.write(note + said)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


def _head_of(text: str, limit: int, note: str) -> str:
    """The first lines of a text, and `note` if not all fit."""
    if _size(text) <= limit:
        return text
    found, left = [], limit - _size(note)
    for line in text.splitlines(keepends=True):
        left -= _size(line)
        if left < 0:
            break
        found.append(line)
    return "".join(found) + note


def _largest(n: int, fits: Callable[[int], bool]) -> int:
    """The largest k up to n that fits, if smaller ones do; -1: not even 0."""
    low, high = -1, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


# ---- text


def _fitted_text(answer: Answer, limit: int, tokens: int, *, is_csv: bool) -> tuple[str, str]:
    """The text, and a note for standard error if it is CSV."""
    most = min(answer.n, limit)  # a row has a byte
    whole = _printed(answer, answer.n) if most == answer.n else ""
    if whole and _size(whole) <= limit and answer.total == answer.n:
        return whole, ""

    def made(k: int) -> tuple[str, str]:
        whole_size = -(-_size(whole) // BYTES) if whole else 0
        more = f"--budget-tokens {_rounded(whole_size)} or " * (whole_size > 0)
        rows = answer.rows.rpartition(".")[2]
        of = "" if answer.total is None else f" of {answer.total:,}"
        note = f"cut to {tokens:,} tokens: {k:,}{of} {rows}; {more}{answer.ask} shows more\n"
        text = _printed(answer, k)
        return (text, f"fastprof: {note}") if is_csv else (text + note, "")

    k = _largest(most, lambda k: sum(map(_size, made(k))) <= limit)
    if k >= 0:
        return made(k)
    text, note = made(0)
    end = f"cut to {tokens:,} tokens; {answer.ask} shows more\n"
    return _head_of(text, limit - _size(note), end), note


def _printed(answer: Answer, k: int) -> str:
    with redirect_stdout(io.StringIO()) as text:
        answer.show(k)
    return text.getvalue()


def _rounded(n: int) -> int:
    """Up to two digits."""
    step = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // step) * step


# ---- JSON


def fitted_json(answer: Answer, limit: int) -> str:
    """The document of an answer, within `limit` bytes.  Errors: UsageError if not even an answer without rows fits."""
    most = min(answer.n, limit // 2)
    if most == answer.n and answer.total == answer.n:
        whole = json_text(document(answer.name, answer.build(answer.n)))
        if _size(whole) <= limit:
            return whole
        whole_size = _rounded(-(-_size(whole) // BYTES))
    else:
        whole_size = 0
    ask = f"--budget-tokens {whole_size} or " * (whole_size > 0) + answer.ask

    def made(k: int, texts: int, entries: int) -> str:
        small = _Small(answer.rows, texts, entries)
        content = small.of(plain(answer.build(k)))
        cut = [{"what": answer.rows, "shown": k, "of": answer.total, "ask": ask}] * (k != answer.total)
        cut += small.cut
        return json_text(document(answer.name, content | ({"cut": cut} if cut else {})))

    for texts, entries, enough in _ATTEMPTS:
        k = _largest(most, lambda k, texts=texts, entries=entries: _size(made(k, texts, entries)) <= limit)  # type: ignore[misc]
        if k >= min(most, enough):
            return made(k, texts, entries)
    least = _rounded(-(-_size(made(0, *_ATTEMPTS[-1][:2])) // BYTES))
    raise UsageError(f"--budget-tokens={(limit + 1) // BYTES}: the answer needs at least {least}")


class _Small:
    """Shortens the texts, lists and facts of a document, but not the list at the path `rows`."""

    def __init__(self, rows: str, texts: int, entries: int) -> None:
        self._rows, self._texts, self._entries = rows, texts, entries
        self._longest = 0
        self._lists: dict[str, tuple[int, int]] = {}  # by path: entries shown, and all, of the longest

    def of(self, content: Any) -> Any:
        from copy import deepcopy

        return self._of(deepcopy(content), "")

    @property
    def cut(self) -> list[dict[str, Any]]:
        """What was shortened."""
        found = [
            {"what": path, "shown": shown, "of": n, "ask": "a larger --budget-tokens"}
            for path, (shown, n) in [*self._lists.items()][: 1 + self._entries]
        ]
        if self._longest:
            what = {"what": "characters of texts", "shown": self._texts, "of": self._longest}
            found.append(what | {"ask": "a larger --budget-tokens"})
        return found

    def _of(self, value: Any, path: str) -> Any:
        if isinstance(value, str) and len(value) > self._texts:
            self._longest = max(self._longest, len(value))
            half = (self._texts - 3) // 2
            return f"{value[:half]}...{value[-half:]}"
        if isinstance(value, list):
            return [self._of(one, f"{path}[]") for one in self._some(value, path)]
        if isinstance(value, dict):
            inside = path.startswith(_FACTS) or ".facts" in path
            keys = self._some([*value], path) if inside else [*value]
            return {key: self._of(value[key], f"{path}.{key}".lstrip(".")) for key in keys}
        return value

    def _some(self, values: list[Any], path: str) -> list[Any]:
        n = self._entries
        key = path.rpartition(".")[2].removesuffix("[]")
        if path.endswith("[].inclusive"):  # old and new
            return values
        if path == self._rows or len(values) <= n or key in _WHOLE or (path == "facts" and self._rows == "facts"):
            return values
        self._lists[path] = max(self._lists.get(path, (0, 0)), (n, len(values)), key=lambda one: one[1])
        return values[:n]
