from collections.abc import Callable, Iterable

from fastprof.core.arrow_column import ArrowColumn

Metadata = dict[bytes, bytes]

def schema(columns: list[ArrowColumn], metadata: Metadata | None = None) -> object: ...
def array(owner: object, length: int, columns: list[ArrowColumn]) -> object: ...
def stream(
    items: Iterable[tuple[object, int, list[ArrowColumn]]],
    empty: list[ArrowColumn],
    metadata: Callable[[], Metadata] | None = None,
    failed: Callable[[BaseException], object] | None = None,
) -> object: ...
