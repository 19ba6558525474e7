"""Functions, files and lines for the run-time addresses of a profiled process.

A profile records which files were mapped where (`Mapping`). A `Finder` finds those files.  `Symbolizer` converts a
run-time address into an address of the file (ElfObject.link_address) and looks up its names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fastprof.symbols.chains import chains_of
from fastprof.symbols.finder import Finder, Names
from fastprof.symbols.kernel import is_kernel, module_of
from fastprof.symbols.mappings import Mapping, Mappings
from fastprof.symbols.symbol import EMPTY, Chains, Symbol


def link_address(names: Names, address: int, mapping: Mapping) -> int | None:
    """The link-time address of a run-time address in a mapping, or None."""
    if mapping.from_base:
        return names.relative_to_link(address - mapping.start + mapping.offset)
    return names.link_address(address, mapping.start, mapping.offset)


def _links(names: Names, mapping: Mapping, addresses: Sequence[int]) -> Sequence[int | None]:
    """The link-time addresses of run-time addresses."""
    if not mapping.from_base:
        move = names.link_move(min(addresses), max(addresses), mapping.start, mapping.offset)
        if move is not None:
            return [address + move for address in addresses]
    return [link_address(names, address, mapping) for address in addresses]


def _is_padding(chain: Sequence[Symbol]) -> bool:
    return bool(chain) and chain[0].system_name.startswith("__pfx_")


class Symbolizer:
    """Resolves the addresses of one process, each distinct address once.

    Several processes may share a `finder`, which looks for the file of each object once.
    """

    def __init__(self, mappings: Iterable[Mapping], finder: Finder | None = None) -> None:
        self.mappings = Mappings(())
        self._finder = finder or Finder()
        self._failed: set[int] = set()
        self._failures: Counter[tuple[str, str]] = Counter()
        self.add(mappings)

    def add(self, mappings: Iterable[Mapping]) -> None:
        """Add mappings of the same process."""
        known = len(self.mappings)
        self.mappings.add(mappings)
        self._finder.expect(self.mappings, known)

    def resolve(self, addresses: Sequence[int], returns: Sequence[bool] | bool = False) -> list[tuple[Symbol, ...]]:
        """The inline chains of run-time addresses, in order, innermost first; () for unknown ones.  `returns`: as for
        `look_up`, or the same for all."""
        flags = [returns] * len(addresses) if isinstance(returns, bool) else returns
        callers = bytes(bool(flag and address) for address, flag in zip(addresses, flags, strict=True))
        wanted = [address - caller for address, caller in zip(addresses, callers, strict=True)]
        found: list[tuple[Symbol, ...]] = [()] * len(addresses)
        for chains, positions, answers in self.look_up(wanted, callers):
            for at, chain in zip(positions, answers, strict=True):
                found[at] = chains.symbols(chain)
        return found

    def look_up(
        self, addresses: Sequence[int], callers: Sequence[int]
    ) -> Iterator[tuple[Chains, Sequence[int], list[bytes]]]:
        """For each mapping with symbols: the chains of its file, positions in `addresses`, and their chains.

        `callers` marks the bytes before return addresses, which are inside the call: the next instruction may belong
        to another line or even another function.  No call is in the padding before a function of the kernel, whose
        name is `__pfx_` and the function's.  A return address after it was interrupted at its first byte, or is where
        a retpoline is about to jump to: it is looked up itself.
        """
        for index, positions in self._by_mapping(addresses).items():
            wanted = addresses if len(positions) == len(addresses) else [addresses[at] for at in positions]
            if index is None:
                self._fail(wanted, "", "address outside all mappings")
                continue
            mapping = self.mappings[index]
            names, reason = self.object_of(index)
            if names is None:
                self._fail(wanted, mapping.path, reason or "address outside of the object's segments")
                continue
            links = _links(names, mapping, wanted)
            inside = [link for link in links if link is not None]
            if len(inside) < len(links):
                outside = [address for address, link in zip(wanted, links, strict=True) if link is None]
                self._fail(outside, mapping.path, reason or "address outside of the object's segments")
                positions = [at for at, link in zip(positions, links, strict=True) if link is not None]
                if not inside:
                    continue
            chains, found = chains_of(names, inside)
            if is_kernel(mapping.path) or module_of(mapping.path):
                calls = [chain if callers[at] else EMPTY for at, chain in zip(positions, found, strict=True)]
                padding = {chain for chain in {*calls} if _is_padding(chains.symbols(chain))}
                if padding:
                    inside = [link + (chain in padding) for link, chain in zip(inside, calls, strict=True)]
                    chains, found = chains_of(names, inside)
            if EMPTY in found:
                failed = [addresses[at] for at, chain in zip(positions, found, strict=True) if chain == EMPTY]
                self._fail(failed, mapping.path, names.reason or "no symbol at the address")
            yield chains, positions, found

    def _by_mapping(self, addresses: Sequence[int]) -> dict[int | None, Sequence[int]]:
        """The positions of addresses by index of their mapping, None outside all."""
        if not addresses:
            return {}
        index, first, last = self.mappings.around(addresses[0])
        if first <= min(addresses) and max(addresses) < last:
            return {index: range(len(addresses))}
        places: dict[int | None, list[int]] = {}
        first = last = 0
        for at, address in enumerate(addresses):
            if not first <= address < last:  # neighbours mostly belong to the same mapping
                index, first, last = self.mappings.around(address)
                positions = places.setdefault(index, [])
            positions.append(at)
        return {**places}

    def unresolved(self) -> list[tuple[str, str, int]]:
        """(object, reason, number of distinct unresolved addresses), most addresses first."""
        return [(path, reason, count) for (path, reason), count in self._failures.most_common()]

    def notes(self) -> list[tuple[str, str]]:
        """(object, its unreadable debug information or names), of the objects used."""
        return self._finder.notes()

    def _fail(self, addresses: Iterable[int], path: str, reason: str) -> None:
        if new := {*addresses} - self._failed:
            self._failed |= new
            self._failures[path, reason] += len(new)

    def object_of(self, index: int) -> tuple[Names | None, str]:
        """The names of a mapping's object, or None and the reason."""
        mapping = self.mappings[index]
        is_program = index == (0 if len(self.mappings) == 1 else self.mappings.main())
        return self._finder.find(mapping.path, mapping.build_id, self.mappings.names if is_program else None)
