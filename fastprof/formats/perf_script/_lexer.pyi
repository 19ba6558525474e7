from typing import TypedDict, type_check_only

@type_check_only
class Counts(TypedDict):
    comments: int
    side_records: int
    messages: int
    extras: int
    payloads: int
    cpus: int
    skipped: int
    carriage_returns: int
    without_period: int
    source_lines: int
    open_end: bool

class Lexer:
    def __init__(
        self, model: int, lenient: bool, comm_frames: bool, input_: int, unknown: int, comm_key: int
    ) -> None: ...
    def feed(self, in_: int, batch: int, err: int) -> int: ...
    def declare(self, names: list[int]) -> None: ...
    def use_columns(self) -> None: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def comments(self) -> bytes: ...
    @property
    def comms(self) -> dict[int, int]: ...
    @property
    def columns(self) -> list[tuple[int, bool]]: ...
