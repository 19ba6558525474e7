"""The functions and lines of an address, and those of many addresses, packed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import Lock

from fastprof.core._typing import NamedTuple

_CHAIN = 160  # bytes of an address and its chain in a dictionary, without the chain's words
_FUNCTION = 250  # bytes of a function, without its texts
EMPTY = array("I", [0]).tobytes()


class Symbol(NamedTuple):
    """One function at an address; an inline chain is a tuple of these, innermost first.

    Lines count from 1, 0 is unknown. `start_line` is the line where the function begins, 0 for an inlined function.
    `file` is "" when unknown, else the compilation directory joined with the file's name.
    """

    name: str
    system_name: str
    file: str = ""
    line: int = 0
    start_line: int = 0


class Chains:
    """The chains of one file of symbols.

    A chain is a count, then a function and a line for each of its entries, outermost first, in 32-bit words.
    """

    def __init__(self) -> None:
        self.at: dict[int, bytes] = {}  # by link-time address
        self.texts = bytearray()  # by function: file, name and system name ("" if that is the name)
        self.ends = array("Q", [0])  # of each text in `texts`, after a 0
        self.first_lines = array("I")  # by function
        self.lock = Lock()  # hold it while C reads the tables
        self.nbytes = 0  # about its memory
        self._numbers: dict[tuple[str, str, str, int], int] = {}
        self.n_kept = 0  # addresses that are on disk (symbols/kept.py)

    def restore(self, at: dict[int, bytes], texts: bytearray, ends: array[int], first_lines: array[int]) -> None:
        """Fill empty chains with those of an earlier run."""
        self.at, self.texts, self.ends, self.first_lines = at, texts, ends, first_lines
        self.n_kept = len(at)
        for number, first_line in enumerate(first_lines):
            file, name, system_name = self._texts(number)
            self._numbers[file, name, system_name, first_line] = number
        self.nbytes = len(at) * _CHAIN + sum(map(len, at.values())) + len(first_lines) * _FUNCTION + 2 * len(texts)

    def add(self, addresses: Sequence[int], answers: Sequence[Sequence[Symbol]]) -> None:
        """Keep the symbols of addresses, innermost first.  Errors: OverflowError for a line beyond 32 bits."""
        new = dict(zip(addresses, map(self.pack, answers), strict=True))
        self.at.update(new)
        self.nbytes += sum(_CHAIN + len(chain) for chain in new.values())

    def pack(self, symbols: Sequence[Symbol]) -> bytes:
        """A chain of symbols, which are innermost first."""
        if not symbols:
            return EMPTY
        words = array("I", [len(symbols)])
        for name, system_name, file, line, start_line in reversed(symbols):
            texts = file, name, "" if system_name == name else system_name
            number = self._numbers.get((*texts, start_line))
            if number is None:
                self.first_lines.append(start_line)  # or an OverflowError, before anything else changes
                number = self._numbers[*texts, start_line] = len(self.first_lines) - 1
                # the key has the texts as well
                self.nbytes += _FUNCTION + 2 * sum(map(len, texts))
                for text in texts:
                    self.texts += text.encode("utf-8", "surrogateescape")
                    self.ends.append(len(self.texts))
            words.extend((number, line))
        return words.tobytes()

    def symbols(self, chain: bytes) -> tuple[Symbol, ...]:
        """The reverse of `pack`."""
        words = array("I", chain)
        return tuple(self._symbol(number, line) for number, line in zip(words[-2:0:-2], words[:0:-2], strict=True))

    def _texts(self, number: int) -> list[str]:
        """File, name and system name of a function."""
        return [
            self.texts[self.ends[i] : self.ends[i + 1]].decode("utf-8", "surrogateescape")
            for i in range(3 * number, 3 * number + 3)
        ]

    def _symbol(self, number: int, line: int) -> Symbol:
        file, name, system_name = self._texts(number)
        return Symbol(name, system_name or name, file, line, self.first_lines[number])
