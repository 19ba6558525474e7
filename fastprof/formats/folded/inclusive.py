"""Values that include callees: those of `llvm-xray stack -all-stacks -stack-format=flame -aggregation-type=time`.

    main; 100                 the time of all calls of main, including that of the calls of f
    main;f; 60
    main;f;g; 45              self costs: main 40, f 15, g 45

Folded stacks have self costs everywhere else, so this needs evidence, from every line of the file:

* The stack ends in `;`, which no other program writes.
* Lines are depth-first, and each but the roots follows its caller's.  A root has one frame, or two, of
  which the first is `thread_N`.
* No callees cost as much as their caller, or more.  They may if the caller's value is 0: it has not returned.
* No value is in 1 to 9.  Numbers of calls (-aggregation-type=count) are self costs, and look alike except for the last
  two.

Source: llvm/tools/llvm-xray/xray-stacks.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array

_LINE = re.compile(rb"((?:[^;\n]+;)+)[ ](0|[1-9]\d{0,18})")
_THREAD = re.compile(rb"thread_\d+;")
_LEAST = 10
_MOST = 1 << 63


def may_include_callees(head_lines: Iterable[bytes]) -> bool:
    """Whether the first lines of a file end as those of llvm-xray."""
    lines = [*head_lines]
    return bool(lines) and all(b"; " in line and _LINE.fullmatch(line) for line in lines)


class SelfCosts:
    """The self costs of a file's lines, added in their order.

    After the last line: `is_time`: all lines are evidence.  `is_unclear`: some callees cost more than their callers,
    but no value is as small as a number of calls.
    """

    def __init__(self) -> None:
        from array import array

        self.values: array[int] = array("q")
        self.is_flame = True
        self.is_time = self.is_unclear = False
        self._grows = True  # callers cost more than their callees
        self._nests = False  # there is a caller that has returned
        self._least = _MOST
        self._open: list[tuple[bytes, int, int]] = []  # callers of the last line: stack, index, value
        self._callees: list[int] = []  # of these, the sums of the values of their callees

    def add(self, line: bytes) -> bool:
        """False if the file is not llvm-xray's: no more lines need to be added."""
        match = _LINE.fullmatch(line)
        if not match or int(match[2]) >= _MOST:
            self.is_flame = False
            return False
        stack, value = match[1], int(match[2])
        caller = stack[: stack.rfind(b";", 0, -1) + 1]
        while self._open and self._open[-1][0] != caller:
            self._close()
        if self._open:
            self._callees[-1] += value
        elif caller and not _THREAD.fullmatch(caller):
            self.is_flame = False
            return False
        self._open.append((stack, len(self.values), value))
        self._callees.append(0)
        self.values.append(value)
        if value:
            self._least = min(self._least, value)
        return True

    def _close(self) -> None:
        _, index, value = self._open.pop()
        callees = self._callees.pop()
        if value and callees:
            self._nests = True
            self._grows = self._grows and value > callees
            self.values[index] = max(value - callees, 0)

    def end(self) -> None:
        while self._open:
            self._close()
        may_be_time = self.is_flame and self._nests and self._least >= _LEAST
        self.is_time, self.is_unclear = may_be_time and self._grows, may_be_time and not self._grows
