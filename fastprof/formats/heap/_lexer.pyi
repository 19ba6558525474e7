from collections.abc import Sequence
from typing import TypedDict, type_check_only

@type_check_only
class Counts(TypedDict):
    rows: int
    comments: int
    skipped: int
    carriage_returns: int
    thread_names: int
    unmapped: int
    open_end: bool

HEAD: int
HEAP: int
JEMALLOC: int
PAIRS: int
COUNTS: int
THREADS: int
TAIL: int

class Lexer:
    def __init__(self, model: int, lenient: bool) -> None: ...
    def feed(self, in_: int, batch: int, err: int) -> int: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def line_length(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def line_number(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def has_allocated(self) -> bool: ...
    @property
    def texts(self) -> list[bytes]: ...
    def consume(self, in_: int) -> None: ...
    def use(
        self,
        mode: int,
        *,
        again: bool = False,
        rate: int = 0,
        period: int = 0,
        hertz: int = 0,
        swapped: bool = False,
        sized: bool = False,
        java: bool = False,
    ) -> None: ...
    def name(self, address: int, lines: int) -> None: ...
    def add_range(self, start: int, limit: int, mapping: int) -> None: ...
    def describe(self, columns: Sequence[int], labels: Sequence[int], bytes_key: int) -> None: ...
