from collections.abc import Callable

from fastprof.formats.arrow._columns import Cells

Some = Cells | None

class Threads:
    processes: dict[int, bytes]
    threads: dict[tuple[int, int], bytes]
    ids: dict[int, bytes]
    def __init__(self, model: int, input: int) -> None: ...
    def add(self, process_kind: int, process: object, thread_kind: int, thread: object) -> int: ...
    def named(self, process: object, thread: object, name: str | None = None) -> int: ...

class Spans:
    threads: Threads
    def __init__(self, model: int, threads: Threads) -> None: ...
    def add(
        self,
        name: Cells,
        start: Cells,
        end: Some,
        duration: Some,
        process: Some,
        thread: Some,
        object_: Some,
        category: Some,
        depth: Some,
        id: Some,
    ) -> None: ...
    def sort(self) -> None: ...
    def feed(self, batch: int) -> bool: ...

class Stacks:
    threads: Threads
    def __init__(self, model: int, threads: Threads) -> None: ...
    def add_frames(
        self, stack: Cells, depth: Cells, function: Some, file: Some, line: Some, address: Some, object_: Some
    ) -> None: ...
    def sort(self) -> None: ...
    def feed(
        self,
        batch: int,
        start: int,
        time: Some,
        stack: Cells,
        function: Some,
        process: Some,
        thread: Some,
        labels: Some,
        values: list[Some],
        label_of: Callable[[int], int],
    ) -> int: ...

def feed_graph(
    model: int,
    batch: int,
    start: int,
    functions: dict[int, dict[int, int]],
    kind: Cells,
    function: Cells,
    file: Some,
    line: Some,
    object_: Some,
    address: Some,
    callee: Some,
    calls: Some,
    values: list[Some],
    kinds: dict[int, int],
) -> int: ...
def resolve(model: int, batch: int, functions: dict[int, dict[int, int]]) -> None: ...
