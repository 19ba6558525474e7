from typing import TypedDict, type_check_only

@type_check_only
class Counts(TypedDict):
    skipped: int
    cut: int
    carriage_returns: int

@type_check_only
class Snapshot(TypedDict):
    number: int
    time: int
    nanos: int
    heap_bytes: int
    extra_bytes: int
    stacks_bytes: int
    kind: int
    tree_at: int
    tree_end: int
    line: int

class Lexer:
    def __init__(self, model: int, lenient: bool) -> None: ...
    def feed(self, in_: int, batch: int, err: int) -> int: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def text(self) -> bytes: ...
    @property
    def is_place(self) -> bool: ...
    @property
    def snapshots(self) -> list[Snapshot]: ...
    def header_taken(self) -> None: ...
    def place(self, address: int, function: int, line: int) -> None: ...
    def select(self, snapshot: int, label: int) -> None: ...
