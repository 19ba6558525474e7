"""llvm-xray's view of a log (`convert -f yaml`) as records, and a fair comparison with ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from tests.reference.xray import (
    BASIC,
    CUSTOM,
    ENTER,
    ENTER_ARGS,
    EXIT,
    FUNCTION_OPS,
    TAIL,
    TYPED,
    Header,
    Log,
    Record,
)

OPS = {
    "function-enter": ENTER,
    "function-exit": EXIT,
    "function-tail-exit": TAIL,
    "function-enter-arg": ENTER_ARGS,
    "custom-event": CUSTOM,
    "typed-event": TYPED,
}
LINE = re.compile(
    r"  - \{ type: (\d+), func-id: (-?\d+), function: .*?(?:, args: \[ ([^\]]*) \])?"
    r", cpu: (\d+), thread: (-?\d+)(?:, process: (-?\d+))?, kind: ([a-z-]+), tsc: (\d+)"
    r", data: (.*) \}"
)
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
SHORT_ESCAPES = {
    "0": 0, "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "e": 27,
    "N": 0x85, "_": 0xA0, "L": 0x2028, "P": 0x2029,
}  # fmt: skip
REPLACEMENT = "\ufffd".encode()


def parse(text: str) -> list[Record]:
    """The record lines of a YAML trace, in its order."""
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("records:"):
            break
    records = []
    for line in lines:
        if line == "...":
            break
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a record line: {line!r}")
        kind, function, args, cpu, tid, pid, op, tsc, data = match.groups()
        records.append(
            Record(
                int(pid or 0),  # llvm omits a process of 0
                int(tid),
                int(cpu),
                int(tsc),
                OPS[op],
                int(function),
                tuple(int(a) for a in args.split(",")) if args else (),
                scalar(data),
                int(kind),
            )
        )
    return records


def scalar(text: str) -> bytes:
    """The bytes of a flow scalar of llvm's YAML writer."""
    if text.startswith("'"):
        return text[1:-1].replace("''", "'").encode()
    if text.startswith('"'):
        return ESCAPE.sub(unescape, text[1:-1]).encode()
    return text.encode()


def unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU":
        return chr(int(code[1:], 16))
    return chr(SHORT_ESCAPES[code]) if code in SHORT_ESCAPES else code


def differences(log: Log, theirs: Iterable[Record], limit: int = 10) -> list[str]:
    """Differences, thread by thread, between our log read with repair=False and llvm's records."""
    expected: dict[tuple[int, int], list[Record]] = {}
    for record in theirs:
        if log.header.type == BASIC and log.header.version < 3:
            # llvm shows a process id that such a log lacks: the bytes are not initialized.
            record = record._replace(pid=0)
        expected.setdefault((record.pid, record.tid), []).append(record)
    found: list[str] = []
    ours = {llvm_thread(key, log.header): key for key in log.threads if log.threads[key]}
    if set(ours) != set(expected):
        return [f"threads: ours {sorted(ours)}, llvm {sorted(expected)}"]
    for thread, key in ours.items():
        mine = [as_llvm_shows(r, thread, log.header) for r in log.threads[key]]
        # llvm sorts by time, so a thread's own order is gone where its clock stepped back.
        mine.sort(key=lambda r: r.tsc)
        other = [normal(r, log.header) for r in expected[thread]]
        if log.buffers[key] > 1:
            # llvm does not fully order a thread's buffers, nor equal times across them.
            mine, other = ties_sorted(mine), ties_sorted(other)
        found += thread_differences(thread, mine, other, limit)
    return found[:limit]


def thread_differences(thread: tuple[int, int], mine: list[Record], other: list[Record], limit: int) -> list[str]:
    found = []
    if len(mine) != len(other):
        found.append(f"thread {thread}: {len(mine)} records, llvm {len(other)}")
    for i, (a, b) in enumerate(zip(mine, other, strict=False)):
        if a != b and not same_but_for_bad_text(a, b):
            found.append(f"thread {thread} record {i}: ours {a}, llvm {b}")
            if len(found) >= limit:
                break
    return found


def ties_sorted(records: list[Record]) -> list[Record]:
    return [r for _, tie in groupby(records, key=lambda r: r.tsc) for r in sorted(tie)]


def llvm_thread(key: tuple[int, int], header: Header) -> tuple[int, int]:
    pid, tid = key
    # A version 2 FDR log has no pid; llvm uses the thread's id as one.
    if header.type != BASIC and header.version == 2 and pid == 0:
        return tid, tid
    return key


def as_llvm_shows(record: Record, thread: tuple[int, int], header: Header) -> Record:
    record = normal(record._replace(pid=thread[0]), header)
    # In basic mode an argument does not change the kind of llvm's record, so a plain enter with one cannot be
    # distinguished from an enter with arguments.
    if header.type == BASIC and record.op == ENTER_ARGS:
        return record._replace(op=ENTER)
    return record


def normal(record: Record, header: Header) -> Record:
    """Blank out llvm's known errors, on both sides."""
    if record.op in FUNCTION_OPS:
        # A typed event's number sticks to all later records of its thread.
        record = record._replace(type=0)
        if header.type == BASIC and record.op == ENTER_ARGS:
            return record._replace(op=ENTER)
        return record
    # Events carry the function id, and the arguments, of the record before.
    record = record._replace(function=0, args=())
    if record.op == CUSTOM:
        record = record._replace(type=0)
        # llvm reads two CPU bytes from custom events that have none before version 4.
        if header.version < 4:
            record = record._replace(cpu=0)
    return record


def same_but_for_bad_text(ours: Record, llvm: Record) -> bool:
    """llvm cuts a text at its first byte that is not UTF-8 and appends a replacement character."""
    if not llvm.data.endswith(REPLACEMENT) or ours._replace(data=b"") != llvm._replace(data=b""):
        return False
    return ours.data.startswith(llvm.data[: -len(REPLACEMENT)])
