"""Fuzz the lexer of folded stacks, which is Cython, and their writer (libfuzzer.py).

The first bytes of an input choose how the rest, a profile, is read, and one property to check: two window sizes (the
same rows, counts and losses, or the same error); agreement with the slow reader; writing, and writing again (the same
bytes).
"""

from __future__ import annotations

from itertools import product

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof.core import source
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from fastprof.core.streams import compression_of_bytes
from tests.reference import folded as reference
from tests.support.stackdump import dump, rewrite

WORDS = rb"\x20 ; \x09 # \x0d\x0a \xef\xbb\xbf 9223372036854775807 9223372036854775808 .5 1."
WORDS += rb" \x201\x20 \xe2\x80\xa8 _# _[i] _[k] _[j]"
CHUNKS = (1, 2, 7, 100)
ROWS = 64  # of a batch
source.WINDOW = 1 << 13  # one window for every input: large buffers would take half of the time
LOOKED_AT = (READ_IN_WINDOWS, READ_SLOWLY, WRITTEN_TWICE) = range(3)
SUFFIXES = 6  # from here on, of the eight values that choose one of the three


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int) -> object:
    try:
        found = dump(data, "folded", chunk=chunk, capacity=capacity, options=options)
    except FormatError as error:
        return str(error)
    return [(stack, values) for stack, _, values in found.rows], found.log.repairs, found.log.losses


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    lenient, n_counts, decimals = bool(how & 1), 1 + (how >> 1 & 1), how >> 2 & 7
    looked_at, suffixes = LOOKED_AT[(how >> 5) % len(LOOKED_AT)], how >> 5 >= SUFFIXES
    if looked_at == WRITTEN_TWICE:
        once = rewrite(data, "folded", "folded", Options(lenient=True, counts=n_counts), ROWS)[0]
        if not compression_of_bytes(once):
            assert rewrite(once, "folded", "folded", Options(counts=1), ROWS)[0] == once
        return
    options = Options(lenient=lenient, counts=n_counts, decimals=decimals, suffixes=suffixes)
    whole = outcome(data, options, None, ROWS)
    if looked_at == READ_IN_WINDOWS:
        assert outcome(data, options, CHUNKS[sizes % 4], 1 + sizes // 4) == whole
        return
    try:
        expected = reference.read(data, n_counts, decimals, lenient)
    except ValueError as error:
        assert isinstance(whole, str) and f"line {error.args[0]}," in whole, (whole, error)
        return
    assert isinstance(whole, tuple), whole
    read = [([tuple(line[0] for line in f[3]) for f in reversed(stack)], values) for stack, values in whole[0]]
    locations = reference.locations if suffixes else lambda frames: [((name, b""),) for name in frames]
    assert read == [
        ([tuple(name for name, _ in at) for at in locations(frames)], counts) for frames, counts in expected.rows
    ]


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("folded/*/*.folded")):
        for lenient, looked_at in product((0, 1), (*LOOKED_AT, SUFFIXES + READ_IN_WINDOWS, SUFFIXES + READ_SLOWLY)):
            name = f"{path.parts[-2]}-{path.name}-{lenient}-{looked_at}"
            found[name] = bytes([lenient | looked_at << 5, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
