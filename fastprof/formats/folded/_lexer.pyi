from typing import TypedDict, type_check_only

@type_check_only
class Counts(TypedDict):
    rows: int
    skipped: int
    comments: int
    blank: int
    carriage_returns: int
    trailing_blanks: int
    trailing_frames: int
    empty_frames: int
    no_frames: int
    rounded: int
    first_rounded: int
    kinds: int
    byte_order_mark: bool
    open_end: bool

class Lexer:
    def __init__(
        self, model: int, lenient: bool, n_counts: int, decimals: int, unknown: int, suffixes: bool
    ) -> None: ...
    def feed(self, in_: int, batch: int, err: int) -> int: ...
    @property
    def counts(self) -> Counts: ...
