"""The names of sample files.

samples/current/{root}/bin/sort/{dep}/{root}/lib/libc.so.6/{cg}/{root}/bin/sort/MISSES.6000.65.all.all.3
        session  program         sampled image             image it called     event  |    |   |   |  CPU
                                                                                 period  unit  |  tid
                                                                                         mask tgid
"""

from __future__ import annotations

import re

from fastprof.core._typing import NamedTuple

_ROOT, _KERN, _DEP, _CG, _ANON = "{root}", "{kern}", "{dep}", "{cg}", "{anon"
_N_FIELDS = 6


class Image(NamedTuple):
    """What was sampled: a file, a module of the kernel, or anonymous memory of a process."""

    name: str  # "/bin/sort", "ext4", "anon (tgid:7 range:0x1000-0x1fff)"
    jit: str = ""  # of memory: the path of its JIT code, below the input
    is_kern: bool = False  # a name without a path


class SampleName(NamedTuple):
    """A sample file's name, parsed.  None: samples are not separated by this field."""

    session: str | None
    program: Image
    image: Image
    callee: Image | None  # the file holds arcs from `image` to it
    event: str
    period: int
    unit_mask: int
    tgid: int | None
    tid: int | None
    cpu: int | None


class BadNameError(Exception):
    """Not the name of a sample file."""


def is_sample_file(path: str) -> bool:
    """Whether a path may be a sample file's: others in a session are logs, statistics and code made at run time."""
    parts = path.split("/")
    return any(part in (_ROOT, _KERN) for part in parts[:-1]) and not path.endswith(".jo")


def parse(path: str) -> SampleName:
    """Errors: BadNameError, with the problem and the expectation."""
    *folders, last = path.split("/")
    start = next((i for i, part in enumerate(folders) if part in (_ROOT, _KERN) or part.startswith(_ANON)), None)
    if start is None or _DEP not in folders[start:]:
        raise BadNameError("the path has no {dep}, expected {root}/PROGRAM/{dep}/{root}/IMAGE/EVENT")
    at = folders.index(_DEP, start)
    program = _image(folders, start, at)
    end = folders.index(_CG, at) if _CG in folders[at:] else len(folders)
    image = _image(folders, at + 1, end)
    callee = _image(folders, end + 1, len(folders)) if end < len(folders) else None
    session = folders[start - 1] if start else None
    return SampleName(session, program, image, callee, *_event(last))


def _image(folders: list[str], start: int, end: int) -> Image:
    head, rest = folders[start] if start < end else "nothing", folders[start + 1 : end]
    if head == _ROOT and rest:
        return Image("/" + "/".join(rest))
    if head == _KERN and rest:
        return Image("/".join(rest), is_kern=True)
    if head.startswith(_ANON) and head.endswith("}") and len(rest) == 1:
        fields = rest[0].rsplit(".", 2)
        if len(fields) == 3:
            name = head[len(_ANON) + 1 : -1] or "anon"
            dep = folders.index(_DEP)  # the callee is next to it, too
            jit = "/".join([*folders[: dep + 1], head, fields[0] + ".jo"])
            return Image(f"{name} (tgid:{fields[0]} range:{fields[1]}-{fields[2]})", jit)
        raise BadNameError(f"the memory region is {rest[0]!r:.80}, expected TGID.START.END")
    raise BadNameError(f"the image is {'/'.join([head, *rest])!r:.80}, expected one below {{root}}, {{kern}} or "
                       "{anon:NAME}")  # fmt: skip


def _event(text: str) -> tuple[str, int, int, int | None, int | None, int | None]:
    """The six fields of the last component; a dot that belongs to a field has a backslash before it."""
    fields = [field.replace("\\.", ".") for field in re.split(r"(?<!\\)\.", text)]
    if len(fields) != _N_FIELDS or not all(fields):
        found = f"{len(fields)} fields" if all(fields) else "an empty field"
        raise BadNameError(f"the name {text!r:.120} has {found}, expected EVENT.COUNT.UNITMASK.TGID.TID.CPU")
    event, *numbers = fields
    values = [None if number == "all" and i > 1 else _number(number) for i, number in enumerate(numbers)]
    count, unit_mask, tgid, tid, cpu = values
    return event, count or 0, unit_mask or 0, tgid, tid, cpu


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadNameError(f"a field of the file name is {text!r:.80}, expected a number")
    return int(text)
