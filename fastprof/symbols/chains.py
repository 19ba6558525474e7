"""The functions and lines of addresses that were looked up, kept for the next profiles of the same program.

A batch of profiles asks for the same addresses again and again.  Each file of symbols keeps its answers:

    link-time address 0x1196 in ./game  ->  2, (move, 88), (lerp, 12)      lerp geo.h:12, inlined into move game.cpp:88

Functions are numbers in a table of the file, so that csrc/bridges/rows/restack.h adds them to a model as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from weakref import WeakSet

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.errors import SymbolError
from fastprof.symbols import kept
from fastprof.symbols.symbol import Chains

if TYPE_CHECKING:
    from fastprof.symbols.finder import Names

MOST = 32 << 20  # bytes kept by a process
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
