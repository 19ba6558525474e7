"""Options: each is declared once, next to the code that uses it.

    PERIOD = Option("period_us", Whole(1), None, format="gperftools", help="override the sampling interval")
    ...
    options[PERIOD]

Command-line flags, keywords of the Python interface with their checks, the groups of `--help` and docs/options.md are
made from the declaration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping
from operator import index

from fastprof.core._typing import TYPE_CHECKING, Any, Generic, T, overload
from fastprof.core.errors import usage_error
from fastprof.core.messages import ARGUMENTS, did_you_mean
from fastprof.core.named_alike import accepting, formats_of, named
from fastprof.core.named_alike import ambiguous as ambiguous

UINT64 = (1 << 64) - 1
INT64 = (1 << 63) - 1


class Kind:
    """The values that an option takes.

    `check` takes a value from Python, `parse` a text from the command line.  Both return the stored value, or raise
    ValueError with the reason.
    """

    metavar = "TEXT"
    values = ""  # replaces `metavar` in the documentation
    typed = "str"  # the type in Python, as an annotation
    collected = ""  # another type for several values in Python
    completes = ""  # for shell completion: "word" of `words`, "words" with commas, "file", "folder" or nothing
    words: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """The stored value: a path as text, a list as a tuple."""
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str):
            raise ValueError(f"{value!r:.80} is not a string")
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(f"{value!r:.80} is not valid Unicode") from None
        return value

    def items(self, value: Any) -> Any:
        """The values of an option that takes several, from a list or an array; one stands for a list of one."""
        return [value] if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__") else [*value]

    def parse(self, text: str) -> Any:
        return self.check(text)


class Text(Kind):
    def __init__(self, metavar: str = "TEXT") -> None:
        self.metavar = metavar


class FilePath(Text):
    """A file, or a directory if the option takes one."""

    typed = "Path"
    completes = "file"


class FolderPath(FilePath):
    completes = "folder"


class Switch(Kind):
    """True or False.  On the command line a flag without a value sets the opposite of the default; -O takes yes or
    no."""

    values = "yes|no"
    typed = "bool"
    completes = "word"  # with -O; the flag has no value
    words = ("yes", "no")

    def parse(self, text: str) -> bool:
        if text not in ("", "yes", "no"):
            raise ValueError(f"{text!r:.80} is neither yes nor no")
        return text != "no"

    def check(self, value: Any) -> Any:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r:.80} is neither True nor False")
        return value


def quoted(word: str) -> str:
    return f'"{word}"'


class Words(Kind):
    """One of a few words."""

    completes = "word"

    def __init__(self, *words: str, metavar: str = "", renamed: Mapping[str, str] = {}) -> None:
        """`renamed`: words of earlier releases, which are accepted, and what they are called now."""
        self.words, self.renamed = words, renamed
        self.typed = f"Literal[{', '.join(map(quoted, words))}]"
        self.metavar, self.values = metavar or "{" + ",".join(words) + "}", "|".join(words)

    def check(self, value: Any) -> Any:
        value = self.renamed.get(value, value)
        if value not in self.words:
            raise ValueError(f"{value!r:.80} is not one of {', '.join(self.words)}{did_you_mean(value, self.words)}")
        return value


class WordList(Words):
    """Several of a few words, comma-separated on the command line; `none` is an empty list."""

    completes = "words"

    def __init__(self, *words: str) -> None:
        super().__init__(*words, metavar="LIST")
        self.values, self.typed = ",".join(words), f"{self.typed} | Collection[{self.typed}]"

    def check(self, value: Any) -> Any:
        return tuple(super(WordList, self).check(one) for one in self.items(value))

    def parse(self, text: str) -> Any:
        words = () if text == "none" else (*text.split(","),)
        for word in words:
            if word not in self.words:
                known = ", ".join((*self.words, "none"))
                raise ValueError(f"{word!r:.80} is not one of {known}{did_you_mean(word, self.words)}")
        return words


class Whole(Kind):
    """A whole number from `least` to `most`."""

    typed = "int"
    metavar = "N"

    def __init__(self, least: int, most: int = INT64, metavar: str = "N") -> None:
        self.least, self.most, self.metavar = least, most, metavar

    def check(self, value: Any) -> Any:
        number = index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None  # NumPy's, too
        if number is None or not self.least <= number <= self.most:
            raise ValueError(f"{value!r:.80} is not a whole number from {self.least} to {self.most}")
        return number

    def parse(self, text: str) -> Any:
        try:
            value: Any = int(text)
        except ValueError:
            value = text
        return self.check(value)


class Thread(Kind):
    """A thread: its id, or its name or another text that is shown for it."""

    typed, metavar = "int | str", "ID|NAME"

    def check(self, value: Any) -> Any:
        return value if isinstance(value, str) else Whole(0, UINT64).check(value)

    def parse(self, text: str) -> Any:
        return int(text) if text.isascii() and text.isdigit() and int(text[:21]) <= UINT64 else text


class Share(Kind):
    """A part of a whole, from 0 to 1; text may be in percent: 0.1% is 0.001."""

    metavar = "SHARE"
    typed = "float"

    def check(self, value: Any) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
            raise ValueError(f"{value!r:.80} is not a share from 0 to 1")
        return value

    def parse(self, text: str) -> Any:
        try:
            return self.check(float(text[:-1]) / 100 if text.endswith("%") else float(text))
        except ValueError:
            raise ValueError(f"{text!r:.80} is not a share from 0 to 1") from None


class Size(Whole):
    """A number of bytes; text may end in K, M or G: 200M is 200 * 2^20."""

    metavar = "SIZE"

    def __init__(self) -> None:
        super().__init__(1, UINT64, "SIZE")

    def parse(self, text: str) -> Any:
        unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
        digits = text[:-1] if unit else text
        try:
            return self.check(int(digits) << unit if digits.isdecimal() and len(digits) < 20 else text)
        except ValueError:
            raise ValueError(f"{text!r:.80} is not a size such as 200M (K, M or G)") from None


class Split(Kind):
    """How to split the output into files: "thread", or "time:SECONDS"."""

    metavar = "HOW"
    values = "thread|time:SECONDS"
    completes = "word"
    words = ("thread", "time:")

    def check(self, value: Any) -> Any:
        word, _, seconds = str(super().check(value)).partition(":")
        try:
            right = value == "thread" or (word == "time" and 1e-9 <= float(seconds) <= 1e9)
        except ValueError:
            right = False
        if not right:
            raise ValueError(f"{value!r:.80} is neither thread nor time:SECONDS")
        return value


class Range(Kind):
    """(first, last) of whole numbers, both included, or text A:B (core/times.py); a relative range stays text."""

    metavar = "A:B"
    typed = "Sequence[int] | str"

    def check(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.parse(value)
        value = value.tolist() if hasattr(value, "tolist") else value  # an array
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError(f"{value!r:.80} is not a range (first, last)")
        first, last = (Whole(0, UINT64).check(one) for one in value)
        if first > last:
            raise ValueError(f"{value!r:.80} is not a range (first, last)")
        return first, last

    def parse(self, text: str) -> Any:
        from fastprof.core.times import as_numbers

        try:
            return as_numbers(text) or text
        except ValueError:
            raise ValueError(
                f"{text!r:.80} is not a range A:B with A <= B, such as 2ms:5ms, 10%:20% or @1000:"
            ) from None


class Pattern(Kind):
    """A Python regular expression, in Python also a compiled one."""

    metavar = "REGEX"
    typed = "str | re.Pattern[str]"

    def check(self, value: Any) -> Any:
        import re

        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            flags = "".join(letter for letter in "aimsx" if value.flags & re.RegexFlag[letter.upper()])
            value = f"(?{flags}){value.pattern}" if flags else value.pattern
        value = super().check(value)
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value!r:.80} is not a regular expression: {error}") from None
        return value


class Substitution(Kind):
    """s/old/new/[gi] (core/substitution.py)."""

    metavar = "s/A/B/"
    values = "s/OLD/NEW/"

    def check(self, value: Any) -> Any:
        from fastprof.core.substitution import parse

        parse(value := super().check(value))
        return value


class Pair(Kind):
    """A key and a value, as KEY=VALUE; in Python also a dict of them, in which a list has several values of a key."""

    collected = "Mapping[str, object]"

    def items(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return super().items(value)
        return [f"{key}={one}" for key, values in value.items() for one in super(Pair, self).items(values)]

    def __init__(self, metavar: str = "KEY=VALUE") -> None:
        self.metavar = metavar

    def check(self, value: Any) -> Any:
        value = super().check(value)
        if value.find("=") < 1:
            raise ValueError(f"{value!r:.80} is not {self.metavar}")
        return value


class PathPattern(Kind):
    """The end of a path with fields: dumps/{host}/{date}.prof (core/path_pattern.py)."""

    metavar = "PATTERN"

    def check(self, value: Any) -> Any:
        from fastprof.core.path_pattern import PathPattern

        PathPattern(value := super().check(value))
        return value


class Option(Generic[T]):
    """One option.

    `name` is its Python keyword.  `flag` is its command-line flag (default: --NAME with dashes; --no-NAME for a switch
    that is on by default), `short` its one-letter form.  With `several` the value is a tuple, and the flag may be
    repeated.  `help` is one line: the effect, the default, the limit.  Of a switch it is the effect of the flag, in
    Python of `NAME=False` if the switch is on by default.  `details` are sentences with the rest.

    `group` is the heading under which --help shows it.  An option of one format names that `format` instead: then
    `-O FORMAT.NAME=VALUE` sets it, it has its own flag only if `flag` names one, and the help of verbs does not show
    it.  `key` distinguishes it from options of that name of other formats.

    `rare`: only --help-all shows it, so that --help stays within two screens.  `kept_unused`: values accepted even if
    nothing uses the option, so that a script may pass them for every file: "do not look up addresses" holds if nothing
    looks them up.  They include False for a switch that is on by default.  Other values are refused if nothing uses
    the option.
    """

    group = ""  # of a class of options

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: T,
        *,
        help: str,
        details: str = "",
        group: str = "",
        format: str = "",
        flag: str = "",
        short: str = "",
        several: bool = False,
        rare: bool = False,
        kept_unused: Container[Any] = (),
    ) -> None:
        self.name, self.kind, self.default, self.help, self.details = name, kind, default, help, details
        self.group, self.format, self.short, self.several = group or self.group or format, format, short, several
        self.rare = rare
        self.kept_unused = (False,) if default is True and not kept_unused else kept_unused
        self.key = f"{format}.{name}" if format else name
        short_form = f"-O {self.key}" if format else ("--no-" if default is True else "--") + name.replace("_", "-")
        self.flag = flag or short_form
        ARGUMENTS[self.flag] = f"{name}={not default}" if isinstance(kind, Switch) else f"{name}="

    @classmethod
    def switch(cls, name: str, *, default: bool = False, **more: Any) -> Option[bool]:
        """An option that is on or off."""
        made: Any = cls
        found: Option[bool] = made(name, Switch(), default, **more)
        return found

    def __repr__(self) -> str:
        return f"Option({self.name!r})"

    @property
    def annotation(self) -> str:
        """The annotation in Python: `str | Collection[str]`, `int | None`."""
        kind, none = self.kind, ["None"] if self.default is None else []
        several = [kind.typed, f"Collection[{kind.typed}]", *filter(None, [kind.collected])]
        return " | ".join([*(several if self.several else [kind.typed]), *none])

    def check(self, value: Any) -> T:
        """The value in canonical form.  Errors: UsageError, with the flag and the reason."""
        try:
            if not self.several:
                found: T = None if value is None and self.default is None else self.kind.check(value)  # type: ignore[assignment]
                return found
            found = tuple(self.kind.check(one) for one in self.kind.items(value))  # type: ignore[assignment]
            return found
        except (ValueError, TypeError) as error:  # TypeError: of an array without dimensions
            raise usage_error(f"{{{self.flag}:name}}: {{error}}", error=str(error)) from None


# The larger groups.


class FilterOption(Option[T]):
    group = "filters"


class ValueOption(Option[T]):
    group = "values"


class Options:
    """The options that were given, by key in `given`; all others have their defaults.

    A name without a format applies to the options of that name of all formats; a conversion uses one of them.
    `checked` makes Options; code may also construct them from valid values.
    """

    __slots__ = ("_defaults", "given")

    def __init__(self, **given: Any) -> None:
        self.given = given
        self._defaults: Mapping[str, Any] = {}

    def with_defaults(self, **defaults: Any) -> Options:
        """A copy with these defaults, by name, for options that were not given."""
        other = Options(**self.given)
        other._defaults = defaults
        return other

    def with_given(self, **given: Any) -> Options:
        """A copy with these options as if they had been given."""
        other = Options(**self.given | given)
        other._defaults = self._defaults
        return other

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, option: Option[T]) -> T: ...

        @overload
        def __getitem__(self, option: Option[Any]) -> Any: ...

    def __getitem__(self, option: Option[Any]) -> Any:
        given = self.given
        if option.key in given:
            return given[option.key]
        name = option.name
        return given[name] if name in given else self._defaults.get(name, option.default)

    def default_of(self, option: Option[Any]) -> Any:
        """The default of an option, which the verb may have set."""
        return self._defaults.get(option.name, option.default)

    def __contains__(self, option: Option[Any]) -> bool:
        """Whether it was given, even with its default."""
        return option.key in self.given or option.name in self.given

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


def checked(
    given: Mapping[str, Any],
    known: Iterable[Option[Any]] | Callable[[], Iterable[Option[Any]]],
    own: Iterable[Option[Any]] = (),
) -> Options:
    """`given` as Options: values by names, by keys (folded.root), or by names within a format (folded={"root": ...}).

    `known` may be a function, which is called only if `own`, some of them without a format, lack a name.
    Errors: UsageError for an unknown name and for a value that the option does not take.
    """
    if callable(known):
        known = own if given.keys() <= {option.key for option in own} else known()
    known = (*known,)
    formats = formats_of(known)
    found = {}
    for name, value in given.items():
        within = isinstance(value, Mapping) and name in formats
        for key, one in ((f"{formats[name]}.{key}", value[key]) for key in value) if within else [(name, value)]:
            options, values = accepting(named(key, known), lambda option, one=one: option.check(one))  # type: ignore[misc]
            if values != values[:1] * len(values):
                raise ambiguous(key, options)
            found[key if len(options) > 1 else options[0].key] = values[0]
    return Options(**found)


LENIENT = Option.switch(
    "lenient",
    group="input",
    help="recover what is readable in a damaged input",
    details="Losses are counted and reported; the exit code is then 3.",
)

CORES: Option[int | None] = Option(
    "cores",
    Whole(1, 1024),
    None,
    group="limits",
    help="use N worker threads (default: one per core)",
    details="The output is the same for any N.  To keep one thread of the input, use --thread.",
)


def cores_of(options: Options) -> int:
    """The maximum number of worker threads."""
    return options[CORES] or available()


def available() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


# Filters (docs/filters.md).  A reader that applies one itself lists it (Reader.selects); otherwise an operator does.
TIME_RANGE: Option[tuple[int, int] | str | None] = Option(
    "time_range",
    Range(),
    None,
    group="filters",
    help="keep only times A to B: 2ms:5ms, 10%:20%, @9000:",
    details="Times with a unit (ns, us, ms, s, min) or % count from the first time of each input; the input is then "
    "read twice.  Plain numbers and times after @ are as recorded: ticks (timelines) or ns.  Both ends are included; "
    "either may be omitted.",
)
THREADS: Option[tuple[int | str, ...]] = Option(
    "threads",
    Thread(),
    (),
    several=True,
    flag="--thread",
    group="filters",
    help="keep only this thread; repeatable",
    details="An id, or a name as `top --by thread` shows it, for which each input is read twice.",
)
PART: Option[int | None] = Option(
    "part",
    Whole(1, UINT64),
    None,
    group="filters",
    help="keep only part N of each input, counted from 1",
    details="A part is one of several profiles in a file, e.g. one dump of Callgrind.",
)
# For bridges, and for readers that sort records.
MAX_MEMORY = Option(
    "max_memory",
    Size(),
    32 << 20,
    group="limits",
    help="memory limit for adding up rows (default: 32M)",
    details="Beyond it, rows go to a temporary file; the output is the same.",
    kept_unused=range(UINT64 + 1),
)

# For pprof, which is Go's profile for compilers, too.
TRIM = Option.switch(
    "trim",
    group="values",
    help="keep only the calls that Go's compiler counts, for default.pgo",
    details="Each sample becomes its last call, and the calls of what is inlined there: all that `go build -pgo` looks "
    "at, with the same weights.  Labels, addresses, files and lines of callees go, other lines count from the "
    "function's first one.  One profile is about 3 times smaller, a hundred that are merged more than 10 times.",
    rare=True,
)

# Writers of formats for viewers use these two.
BUDGET: Option[int | None] = Option(
    "budget",
    Size(),
    None,
    group="output",
    help="for viewers: limit the output size, e.g. 200M",
    details="SIZE is before compression.  Beyond it, short calls of a timeline are merged into their callers, cheap "
    "stacks into [pruned].  Default: as much as the format's viewer opens, 64M to 256M.",
)
SPLIT: Option[str | None] = Option(
    "split",
    Split(),
    None,
    group="output",
    help="write one file per `thread` or `time:SECONDS` slice",
    details="Files are named OUTPUT.THREAD-TID or, for slices of a timeline, OUTPUT.slice-N, before the suffix.",
)
