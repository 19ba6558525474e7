"""Made-up profiles of each view, for the archive's tests."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from typing import Any

from fastprof.core._c import ffi, lib
from fastprof.core.engine import Reader, read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType, empty
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.formats.archive.write import ArchiveWriter

TABLES = ("objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads")
Maker = Callable[[Model, int, int, int], Iterator[Batch]]


def timeline(model: Model, rows: int, size: int, changed: int) -> Iterator[Batch]:
    """Calls of three threads with arguments, events and oddities: orphan exits, times that go back."""
    rnd = random.Random(1 + changed)
    model.add_part(Part(pid=7, extra={"ticks_per_second": 2_600_000_000, "labels": ("cpu", "b")}))
    functions = [model.function(f"#{i}") for i in range(1, 40)]
    threads = [lib.fp_model_thread(model.c, 0, 7, 101 + i) for i in range(3)]
    stacks: dict[int, list[int]] = {t: [] for t in threads}
    batch = Batch("timeline", size)
    c = batch.c
    now, thread, cpu, after_call = 10**12, threads[0], 0, False
    for _ in range(rows):
        i = c.n
        now += rnd.choice([0, 3, 40, 41, 40, 39, 400, 5_000_000_000 if rnd.random() < 0.01 else 2])
        r = rnd.random()
        op, function, aux = lib.FP_OP_ENTER, 0, 0
        stack = stacks[thread]
        if r < 0.01:
            thread = rnd.choice(threads)
            cpu = rnd.randrange(300)
            op, aux = lib.FP_OP_BUFFER, now // 1000
        elif r < 0.02:
            slice_ = ffi.new("uint64_t *")
            payload = bytes(rnd.randrange(256) for _ in range(rnd.randrange(20)))
            assert not lib.fp_batch_payload(c, payload, len(payload), slice_)
            op, aux = rnd.choice([lib.FP_OP_CUSTOM, lib.FP_OP_TYPED]), slice_[0]
            function = 0 if op == lib.FP_OP_CUSTOM else rnd.randrange(1 << 16)
        elif r < 0.08 and after_call:
            op, aux = lib.FP_OP_ARGUMENT, rnd.getrandbits(64)
        elif r < 0.1:
            op, function = lib.FP_OP_EXIT, rnd.choice(functions)
        elif stack and (r < 0.55 or len(stack) > 30):
            op, function = (lib.FP_OP_TAIL_EXIT if r < 0.15 else lib.FP_OP_EXIT), stack.pop()
        else:
            function = functions[int(rnd.random() ** 3 * len(functions))]
            op = lib.FP_OP_ENTER_ARGS if function % 9 == 0 else lib.FP_OP_ENTER
            stack.append(function)
        if rnd.random() < 0.002:
            now -= 1000
        c.time[i], c.thread[i], c.cpu[i], c.op[i], c.function[i], c.aux[i] = now, thread, cpu, op, function, aux
        after_call = op in (lib.FP_OP_ENTER_ARGS, lib.FP_OP_ARGUMENT)
        c.n += 1
        if c.n == size:
            yield batch
            empty(batch)
    if c.n:
        yield batch


def stacks(model: Model, rows: int, size: int, changed: int) -> Iterator[Batch]:
    """Samples with labels, inline lines and mappings; two values."""
    rnd = random.Random(2 + changed)
    model.add_part(Part([ValueType("samples", "count"), ValueType("cpu", "nanoseconds")], comments=[b"\xff\x00"]))
    thread = lib.fp_model_thread(model.c, 0, 5, 6)
    mapping = lib.fp_model_mapping(model.c, model.object("/bin/x", "abcd"), 0x400000, 0x500000, 0x1000, 3)
    frames = []
    for i in range(200):
        line = lib.fp_model_line(model.c, model.function(f"f{i}", "a.c"), i, 3, 0)
        if i % 3 == 0:
            line = lib.fp_model_line(model.c, model.function("inlined"), i, 0, line)
        address = rnd.getrandbits(64) if i % 50 == 0 else 0x400000 + i * 16
        frames.append(lib.fp_model_frame(model.c, mapping, address, i % 2, line))
    key = model.intern("key")
    batch = Batch("stacks", size, 2)
    c = batch.c
    stack = 0
    for _ in range(rows):
        i = c.n
        if not stack or rnd.random() < 0.3:
            stack = 0
            for _ in range(rnd.randrange(1, 12)):
                stack = lib.fp_model_stack(model.c, stack, rnd.choice(frames[:20]))
        label = 0
        if rnd.random() < 0.2:
            label = lib.fp_model_label(model.c, 0, key, 0, rnd.randrange(-5, 5), model.intern("ms"))
        c.stack[i], c.label[i], c.thread[i], c.time[i] = stack, label, thread, rnd.choice([0, 10**18 + i])
        count = rnd.choice([1, 1, 1, 2, -(1 << 63) if rnd.random() < 0.01 else 3])
        c.values[i], c.values[c.cap + i] = count, rnd.choice([10_000_000, 20_000_000, 0])
        c.n += 1
        if c.n == size:
            yield batch
            empty(batch)
    if c.n:
        yield batch


def graph(model: Model, rows: int, size: int, changed: int) -> Iterator[Batch]:
    """Two parts, with and without addresses, all kinds of rows.  `changed` > 0: other values in 15 % of the rows."""
    rnd, other = random.Random(3), random.Random(changed)
    functions = [model.function(f"f{i}", f"{i % 7}.c", model.object("lib.so")) for i in range(1, 300)]
    files = [model.intern(f"{i}.c") for i in range(9)]
    batch = Batch("graph", size, 3)
    c = batch.c
    function, address, left = functions[0], 0x400000, rows
    for part, positions in enumerate((("instr", "bb", "line"), ("line",))):
        model.add_part(Part([ValueType("Ir"), ValueType("Dr"), ValueType("Dw")], positions, number=part + 1))
        c.part = part
        # a reader learns some fields late
        if part:
            model.parts[0].totals = [1, 2, 3]
        for _ in range(left - left // 2 if part == 0 else left):
            i = c.n
            for name in batch.columns:
                getattr(c, name)[i] = 0
            kind = rnd.choice([lib.FP_COST] * 7 + [lib.FP_CALL, lib.FP_JUMP, lib.FP_JCND, lib.FP_BLOCK])
            if rnd.random() < 0.1:
                function = rnd.choice(functions)
            address += rnd.randrange(1, 16)
            line = rnd.randrange(1, 2000)
            c.kind[i], c.function[i], c.file[i] = kind, function, rnd.choice(files[:2])
            rare = rnd.getrandbits(40) if rnd.random() < 0.1 else 0
            values = [rnd.choice([0, 1, 1, 9, 1000]), rnd.randrange(-3, 3), rare]
            if changed and other.random() < 0.15:
                values[0] += other.randrange(1, 50)
            if kind == lib.FP_BLOCK:
                values = [0, 0, 0]
            else:
                c.line[i] = line
                if part == 0:
                    c.address[i], c.bb[i] = address, address & ~63
            if kind in (lib.FP_CALL, lib.FP_JUMP, lib.FP_JCND):
                callee = rnd.choice(functions)
                c.callee[i], c.count[i], c.target_line[i] = callee, rnd.randrange(5000), callee * 10
                if part == 0:
                    c.target_address[i], c.target_bb[i] = 0x400000 + callee * 256, 0x400000 + callee * 256
                if kind != lib.FP_CALL:
                    c.target_file[i] = files[3]
                if kind == lib.FP_JCND:
                    c.count2[i] = rnd.randrange(9000)
                if kind != lib.FP_CALL and rnd.random() < 0.9:
                    values = [0, 0, 0]
            for k, v in enumerate(values):
                c.values[k * c.cap + i] = v
            c.n += 1
            left -= 1
            if c.n == size:
                yield batch
                empty(batch)
        if c.n:
            yield batch
            empty(batch)


def dump(source: Reader | Iterator[Batch], model: Model) -> list[Any]:
    """The whole content of a profile as comparable values: rows in order, then tables and parts."""
    out: list[Any] = []
    for batch in read(source, 333) if isinstance(source, Reader) else source:
        columns = {name: batch[name].tolist() for name in batch.columns}
        values = [batch.values(k).tolist() for k in range(batch.c.n_values)]
        for i in range(len(batch)):
            row: dict[str, Any] = {name: column[i] for name, column in columns.items()}
            if row.get("op") in (lib.FP_OP_CUSTOM, lib.FP_OP_TYPED):
                row["aux"] = batch.payload(i)
            out.append(("row", batch.part, row, [v[i] for v in values]))
    out.append(("strings", [model.string(i) for i in range(model.c.strings.n)]))
    out += [(t, [model.row(t, i) for i in range(model.count(t))]) for t in TABLES]
    out.append(("parts", [vars(part) for part in model.parts]))
    return out


def write_archive(
    maker: Maker, rows: int, batch: int = 256, changed: int = 0, level: int = 0
) -> tuple[bytes, list[Any]]:
    """The archive of a made-up profile, and the dump of the profile itself."""
    model, out = Model(), io.BytesIO()
    writer = ArchiveWriter(model, Sink(out), Options(level=level), Log())
    writer.view = maker.__name__  # type: ignore[attr-defined]
    write(maker(model, rows, batch, changed), writer)
    again = Model()
    want = dump(maker(again, rows, batch, changed), again)
    return out.getvalue(), want
