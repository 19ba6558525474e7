"""The options of series of costs: those of `trend`, which `sql` has for its table `series`.  Cheap to import."""

from __future__ import annotations

from fastprof.core._typing import Any
from fastprof.core.options import FilePath, Option, Text
from fastprof.verbs.groups import Grouping, RowOption

OVER = RowOption(
    "over",
    Text("KEY"),
    "order",
    help="what comes one after the other: date, time, order or a label",
    details="`date`: the day of the recording, else of the file; `time`: to the second; both are labels if inputs have "
    "such ones.  `order` (default): each input is a point.  KEY or label:KEY: the values of a label of inputs.  "
    "Profiles of one point are its replicas.",
)
ORDER: Option[str | None] = RowOption(
    "order",
    Text("FILE"),
    None,
    help="order of the label's values: a file as of git log, or git",
    details="Newest first, one a line, as `git log --format=%H` prints them; `git` runs that in the current folder.  "
    "Without it numbers and dates are sorted, other values come as the inputs do.",
)
BY = RowOption(
    "by",
    Grouping("function", "line", "file", "object", "category"),
    "function",
    help="line, file, object, category or a label",
    details="Default: function.  label:KEY,... groups by labels of samples; the key `function` stands for the function "
    "of the sample.",
)
PER: Option[str | None] = RowOption(
    "per",
    Text("UNIT"),
    None,
    help="cost per calls, label:KEY, value type or number",
    details="Instead of the share of the profile's total.  `calls`: of the function itself; label:KEY: a number that "
    "each input has as a label, such as requests served; a value type: its total; a number: the same for all.",
)
WITHIN: Option[str | None] = RowOption(
    "within",
    Text("KEY"),
    None,
    help="compare hosts (label KEY) with themselves (default: host)",
    details="Replicas with the same value of label KEY are compared with each other: a host that is always slower "
    "than others does not count as noise then, and a point without it does not count as a change.",
)
CACHE: Option[Any] = Option(
    "cache",
    FilePath("FILE"),
    None,
    group="input",
    help="keep sums of profiles in FILE, or none; later runs read only new ones",
    details="Without it, a hidden file next to a store or folder, `.NAME.sums`, if only you can write there and it "
    "has at least 32 profiles.  The answer is the same.  A changed profile is read again, and so are all with other "
    "reading options.",
)
SERIES = (OVER, ORDER, BY, PER, WITHIN, CACHE)
