"""The metadata of a recording: sections after the records, or records in a pipe."""

from __future__ import annotations

import struct

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.formats.perf.container import Description, Feature, descriptions

if TYPE_CHECKING:
    from fastprof.formats.perf.tracing import Tracepoint

_TEXTS = {3: "host", 4: "kernel", 5: "perf_version", 6: "arch", 8: "cpu", 9: "cpu_id"}
_CPUS, _MEMORY, _COMMAND, _EVENTS, _TIMES, _COMPRESSED, _CLOCK = 7, 10, 11, 12, 21, 27, 29


class Features:
    """Collects the metadata; `read` takes the sections in any order."""

    TRACING = 1
    BUILD_ID = 2

    def __init__(self, order: str) -> None:
        self._order = order
        self.facts: dict[str, Any] = {}
        self.command: bytes | None = None
        self.descriptions: list[Description] = []
        self.tracepoints: dict[int, Tracepoint] = {}  # by id, an event's `config`
        self.mmap_nbytes = 0  # of a buffer of the recorder; 0: unknown
        self._times: tuple[int, ...] = ()  # of the first and the last sample
        self._clock: tuple[int, ...] = ()  # the same moment: nanoseconds since 1970, and on the samples' clock

    @property
    def arch(self) -> str:
        return str(self.facts.get("arch", ""))

    @property
    def host(self) -> str:
        return str(self.facts.get("host", ""))

    @property
    def release(self) -> str:
        """The kernel's."""
        return str(self.facts.get("kernel", ""))

    @property
    def duration_ns(self) -> int:
        first, last = self._times or (0, 0)
        return last - first if first <= last < 1 << 63 else 0

    @property
    def start_ns(self) -> int:
        """The start of the recording, in nanoseconds since 1970; 0: unknown."""
        if not self._clock or not self._times:
            return 0
        found = self._clock[0] + self._times[0] - self._clock[1]
        return found if 0 < found < 1 << 63 else 0

    def wants(self, number: int) -> bool:
        return number in _TEXTS or number in (
            self.BUILD_ID, self.TRACING, _CPUS, _MEMORY, _COMMAND, _EVENTS, _TIMES, _COMPRESSED, _CLOCK,
        )  # fmt: skip

    def read(self, number: int, data: bytes) -> bool:
        """Read a section.  False if it is damaged; fields before the damage are kept."""
        try:
            self._read(number, Feature(data, self._order))
        except struct.error:
            return False
        return True

    def _read(self, number: int, feature: Feature) -> None:
        if number in _TEXTS:
            self.facts[_TEXTS[number]] = feature.text().decode("utf-8", "replace")
        elif number == self.TRACING:
            from fastprof.formats.perf.tracing import tracepoints  # few recordings need its expressions

            for found in tracepoints(feature.data):
                self.tracepoints[found.id] = found
        elif number == _CPUS:
            self.facts["cpus"] = feature.numbers("II")[1]
        elif number == _MEMORY:
            self.facts["memory_kib"] = feature.number("Q")
        elif number == _COMMAND:
            words = [feature.text() for _ in range(min(feature.number(), len(feature.data)))]
            self.command = b" ".join(words)
            self.facts["command"] = self.command.decode("utf-8", "replace")
        elif number == _EVENTS:
            self.descriptions = []
            for description in descriptions(feature):
                self.descriptions.append(description)
        elif number == _TIMES:
            self._times = feature.numbers("QQ")
        elif number == _COMPRESSED:
            self.mmap_nbytes = feature.numbers("5I")[4]
        elif number == _CLOCK:
            self._clock = feature.numbers("IIQQ")[2:]
