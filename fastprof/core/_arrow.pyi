from collections.abc import Callable, Iterable

from fastprof.core.column import Column

Metadata = dict[bytes, bytes]

def schema(columns: list[Column], metadata: Metadata | None = None) -> object: ...
def array(owner: object, length: int, columns: list[Column]) -> object: ...
def stream(
    items: Iterable[tuple[object, int, list[Column]]],
    empty: list[Column],
    metadata: Callable[[], Metadata] | None = None,
    failed: Callable[[BaseException], object] | None = None,
) -> object: ...
