"""The functions and lines of addresses that were looked up, kept for the next profiles of the same program.

A batch of profiles asks for the same addresses again and again.  Each file of symbols keeps its answers:

    link-time address 0x1196 in ./game  ->  2, (move, 88), (lerp, 12)      lerp geo.h:12, inlined into move game.cpp:88

Functions are numbers in a table of the file, so that csrc/bridges/rows/restack.h adds them to a model as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import Lock
from weakref import WeakSet

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.errors import SymbolError
from fastprof.symbols import kept
from fastprof.symbols.names import Symbol

if TYPE_CHECKING:
    from fastprof.symbols.finder import Names

MOST = 32 << 20  # bytes kept by a process
_CHAIN = 160  # bytes of an address and its chain in a dictionary, without the chain's words
_FUNCTION = 250  # bytes of a function, without its texts
EMPTY = array("I", [0]).tobytes()


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


_lock = Lock()
_holders: WeakSet[Names] = WeakSet()
_kept = 0  # bytes


def chains_of(names: Names, addresses: Sequence[int]) -> tuple[Chains, list[bytes]]:
    """The chains of link-time addresses, in order; EMPTY for unknown ones.  New addresses are looked up together.

    Errors: SymbolError.
    """
    chains = names.chains or _begun(names)
    known = chains.at
    try:
        return chains, [known[address] for address in addresses]
    except KeyError:
        new = list(dict.fromkeys(address for address in addresses if address not in known))
    answers, before = names.lookup_many(new), chains.nbytes
    try:
        with chains.lock:
            chains.add(new, answers)
    except OverflowError:
        raise SymbolError(f"{names.path}: a line number beyond 32 bits") from None
    with _lock:
        _keep(names, chains, chains.nbytes - before)
    return chains, [known[address] for address in addresses]


def _begun(names: Names) -> Chains:
    """New chains, with the answers of earlier runs."""
    chains = Chains()
    if place := names.place_on_disk():
        kept.load(*place, chains)
        if chains.n_kept:
            with _lock:
                _keep(names, chains, chains.nbytes)
    return chains


def save_new() -> None:
    """Keep the answers of this run about large programs for the next ones."""
    with _lock:
        holders = [*_holders]
    for names in holders:
        chains = names.chains
        if chains and len(chains.at) > chains.n_kept and (place := names.place_on_disk()):
            chains.n_kept = len(chains.at)
            kept.save(*place, chains)


def _keep(names: Names, chains: Chains, nbytes: int) -> None:
    """Keep the chains of a file, which have grown by `nbytes`, instead of all others if those are too many."""
    global _kept
    if _kept + nbytes > MOST:
        for holder in _holders:
            holder.chains = None
        _holders.clear()
        _kept = 0
        nbytes = chains.nbytes
    if nbytes <= MOST:
        names.chains = chains
        _holders.add(names)
        _kept += nbytes
