"""Samples of V8 in Perfetto traces: JSON in events of the legacy phase P."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from typing import Any

import pytest

from fastprof.core.engine import read
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.perfetto.read import reader
from tests.support.paths import needs_shared, shared_data
from tests.support.perfettotrace import CLEARED, message, packet, thread

CALL = {"scriptId": 1, "url": "a.js", "lineNumber": 4}
NODES = [
    {"id": 1, "callFrame": CALL | {"functionName": "(root)"}},
    {"id": 2, "parent": 1, "callFrame": CALL | {"functionName": "main"}},
    {"id": 3, "parent": 2, "callFrame": CALL | {"functionName": "f"}},
]
START = {"startTime": 100}
FIRST = {"cpuProfile": {"nodes": NODES, "samples": [2, 3]}, "timeDeltas": [10, 5]}
SECOND = {"cpuProfile": {"samples": [3]}, "timeDeltas": [7]}
END = {"cpuProfile": {"endTime": 130}}


def chunk(data: object, *, name: str = "ProfileChunk", track: int = 7, profile: int = 1) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    legacy = message((2, ord("P")), (6, profile))
    return packet(event=message((4, message((10, "data"), (9, text))), (6, legacy), (11, track), (23, name)), time=5)


def trace(*chunks: bytes) -> bytes:
    """The tracks are described last: thread 12 is sampled, and thread 13 writes the chunks."""
    tracks = [packet(track=thread(7, 10, 12, "page")), packet(track=thread(8, 10, 13)), packet(track=thread(9, 20, 12))]
    return b"".join([packet(flags=CLEARED), *chunks, *tracks])


def rows(data: bytes, *, lenient: bool = False, log: Log | None = None) -> Counter[tuple[Any, ...]]:
    """(pid, tid, time, samples, duration, functions) of each row."""
    model, found = Model(), Counter[tuple[Any, ...]]()
    options = Options(**{"perfetto.data": "v8", "lenient": lenient})
    with Source(data, name="test") as source:
        for batch in read(reader(source, model, options, log or Log())):
            for i in range(len(batch)):
                _, pid, tid = model.row("threads", batch["thread"][i])
                values = (int(batch.values(k)[i]) for k in range(2))
                found[pid, tid, int(batch["time"][i]), *values, *functions(model, batch["stack"][i])] += 1
    return found


def functions(model: Model, stack: int) -> list[str]:
    if not stack:
        return []
    parent, frame = model.row("stacks", stack)
    line = model.row("frames", frame)[4]
    return [*functions(model, parent), model.get_function(model.row("lines", line)[0]).name.decode()]


WHOLE = [chunk(START, name="Profile"), chunk(FIRST, track=8), chunk(SECOND, track=8), chunk(END, track=8)]


def test_a_profile_in_chunks() -> None:
    """The sampled thread is that of the event Profile; a sample lasts until the next one."""
    assert rows(trace(*WHOLE)) == {
        (10, 12, 110_000, 1, 5_000, "main"): 1,
        (10, 12, 115_000, 1, 7_000, "main", "f"): 1,
        (10, 12, 122_000, 1, 8_000, "main", "f"): 1,
    }


def test_profiles_of_one_id_in_two_processes() -> None:
    other = [chunk(START, name="Profile", track=9), chunk(FIRST, track=9)]
    assert rows(trace(*WHOLE, *other)) == rows(trace(*WHOLE)) + rows(trace(*other))
    assert {key[0] for key in rows(trace(*WHOLE, *other))} == {10, 20}


def test_compressed_packets() -> None:
    inner = zlib.compress(trace(*WHOLE))
    assert rows(message((1, message((50, inner))))) == rows(trace(*WHOLE))


def test_names_of_threads() -> None:
    model, log = Model(), Log()
    with Source(trace(*WHOLE), name="test") as source:
        assert sum(len(batch) for batch in read(reader(source, model, Options(), log))) == 3
    assert model.parts[0].extra["thread_names"] == [(10, 12, b"page")]
    assert log.facts["packets"] == 8 and not log.not_representable


@pytest.mark.parametrize("text", ["[1]", "{", "{}}", "{}{}", '{"a": }', "{} x", '{"a":' * 8190 + "1" + "}" * 8190])
def test_data_that_is_not_an_object(text: str) -> None:
    """The chunk is located; with lenient it alone is lost."""
    bad = chunk(text)
    before = packet(flags=CLEARED) + b"".join(WHOLE[:2])
    with pytest.raises(FormatError, match="a packet is malformed") as error:
        rows(trace(*WHOLE[:2], bad, *WHOLE[2:]))
    assert error.value.offset == len(before)
    log = Log()
    assert rows(trace(*WHOLE[:2], bad, *WHOLE[2:]), lenient=True, log=log) == rows(trace(*WHOLE))
    assert log.losses["damaged-packets"] == 1


def test_a_sample_of_a_missing_node_is_located() -> None:
    bad = chunk({"cpuProfile": {"samples": [9]}, "timeDeltas": [1]}, track=8)
    with pytest.raises(FormatError, match="a node that is not in the profile") as error:
        rows(trace(*WHOLE, bad))
    assert error.value.offset == len(packet(flags=CLEARED) + b"".join(WHOLE))


@pytest.mark.parametrize("imitation", ['{"packet":"x"}', '{"packet":99999999999999999999}', '{"packet":5,"x":1}'])
@pytest.mark.parametrize("gap", [0, 3 << 20])
def test_json_that_resembles_an_event(imitation: str, gap: int) -> None:
    """The error names the event that holds it, even if that event began some blocks of text earlier."""
    bad = {"cpuProfile": {"nodes": [{"callFrame": CALL}]}}
    text = f'{{"x": [\n{imitation},\n{imitation}], "y": "{"z" * gap}", {json.dumps(bad)[1:]}'
    with pytest.raises(FormatError, match="a node has no id") as error:
        rows(trace(*WHOLE, chunk(text, track=8)))
    assert error.value.offset == len(packet(flags=CLEARED) + b"".join(WHOLE))


def test_calls_come_first() -> None:
    """Without calls and other samples, V8's samples are read."""
    assert view(trace(*WHOLE)) == "stacks"
    call = packet(event=message((9, 1), (11, 7), (23, "f")), time=5)
    assert view(trace(*WHOLE, call)) == "timeline"


def view(data: bytes) -> str:
    with Source(data, name="test") as source:
        return reader(source, Model(), Options(), Log()).view


@needs_shared
def test_a_recording_of_chromium() -> None:
    """Sums by stack are those of an independent reader."""
    name = "real-chromium-v8-samples.pftrace.gz"
    folder = shared_data("perfetto", "read")
    found = Counter[tuple[str, ...]]()
    for (pid, tid, _, samples, time, *names), n in rows(gzip.decompress((folder / name).read_bytes())).items():
        found[str(pid), str(tid), "samples", ";".join(names)] += samples * n
        found[str(pid), str(tid), "time", ";".join(names)] += time * n
    lines = (line.split("\t") for line in (folder / "expected" / f"{name}.tsv").read_text().splitlines())
    stacks = [line[1:] for line in lines if line[0] == "stack"]
    assert found == {(pid, tid, kind, stack): int(n) for pid, tid, kind, n, stack in stacks}
