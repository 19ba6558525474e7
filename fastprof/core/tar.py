"""The files of an input: a directory, a tar of one, or a single file."""

from collections.abc import Callable, Iterator

from fastprof.core._c import lib
from fastprof.core.errors import FormatError
from fastprof.core.folder import File
from fastprof.core.source import Source

TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
BLOCK = 512
_LONGEST = 1 << 16  # bytes of a long name or of a pax header
_LATEST = 1 << 33  # seconds since 1970 that a file system takes
_FILE, _LINK, _LONG_NAME, _PAX = b"0\0007", b"1", b"L", b"x"  # 7: a contiguous file


def is_tar(head: bytes) -> bool:
    return head[TAR_MAGIC_AT : TAR_MAGIC_AT + 5] == TAR_MAGIC


def first_name(head: bytes) -> str:
    """The name of the first file with content, if its header is in the first bytes of a tar."""
    at = 0
    while at + BLOCK < len(head) and is_tar(head[at : at + BLOCK]) and not head[at + 124 : at + 136].strip(b"0 \0"):
        at += BLOCK
    return _text(head[at : at + 100])


def members(source: Source, lost: Callable[[], None] | None) -> list[File]:
    """The files of an input, by name; a source that cannot seek is spooled.

    Errors: FormatError for a damaged tar; with `lost`, the files before the damage; then calls `lost`.
    """
    if source.folder is not None:
        return source.folder.files
    source.spool()
    size = source.size or 0
    if not is_tar(source.head):
        return [File(source.name, 0, size)]
    found: dict[str, File] = {}
    try:
        for file in _tar(source, size, found):
            found[file.name] = file
    except FormatError:
        if lost is None:
            raise
        lost()
    return sorted(found.values())


def _tar(source: Source, size: int, found: dict[str, File]) -> Iterator[File]:
    """The regular files of a tar: POSIX, GNU and pax, with long names."""
    at, name, pax = 0, "", dict[str, str]()
    while True:
        head = source.read_at(at, BLOCK)
        if len(head) < BLOCK:
            raise _damage(
                source, min(at + len(head), size), "the archive ends without its end mark", lib.FP_E_TRUNCATED
            )
        if not any(head):
            return
        if _octal(source, head, 148, 8, at) != sum(head[:148]) + sum(head[156:]) + 8 * 32:
            raise _damage(source, at, "the checksum of a tar header does not match")
        kind, nbytes = head[156:157], _octal(source, head, 124, 12, at)
        if "size" in pax and kind != _PAX:
            nbytes = int(pax["size"]) if pax["size"].isdecimal() and len(pax["size"]) < 20 else size + 1
        data = at + BLOCK
        if kind in b"123456":  # links, devices, directories
            nbytes = 0
        if kind in (_LONG_NAME, _PAX):
            if nbytes > _LONGEST or data + nbytes > size:
                raise _damage(source, at, f"a name of {nbytes} bytes, expected at most {min(_LONGEST, size - data)}")
            text = source.read_at(data, nbytes)
            if kind == _PAX:
                pax = _records(text)
            else:
                name = _text(text)
        else:
            name = pax.get("path") or name or _short_name(head)
            name = "/".join(part for part in name.split("/") if part not in ("", "."))
            if kind in _FILE:
                yield File(name, data, min(nbytes, size - data), min(_octal(source, head, 136, 12, at), _LATEST))
            elif kind == _LINK:
                target = pax.get("linkpath") or _text(head[157:257])
                target = "/".join(part for part in target.split("/") if part not in ("", "."))
                if target in found:
                    yield found[target]._replace(name=name)
            if data + nbytes > size:
                raise _damage(source, size, f"{name} has {nbytes} bytes, and the archive ends", lib.FP_E_TRUNCATED)
            name, pax = "", {}
        at = data + -(-nbytes // BLOCK) * BLOCK


def _damage(source: Source, offset: int, what: str, code: int = lib.FP_E_MALFORMED) -> FormatError:
    return FormatError(source.name, "tar", what, offset=offset, code=code)


def _octal(source: Source, head: bytes, at: int, n: int, base: int) -> int:
    """A number of a header: octal digits, or binary if its first bit is set."""
    field = head[at : at + n]
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if digits.translate(None, b"01234567"):
        raise _damage(source, base + at, f"a number of an archive's header is {field!r}, expected octal digits")
    return int(digits or b"0", 8)


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _short_name(head: bytes) -> str:
    prefix = _text(head[345:500]) if head[TAR_MAGIC_AT : TAR_MAGIC_AT + 6] == TAR_MAGIC + b"\0" else ""
    return f"{prefix}/{_text(head[:100])}"


def _records(data: bytes) -> dict[str, str]:
    """`LENGTH KEY=VALUE` lines of a pax header; reading stops at a damaged line."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        digits = data[at : at + 8].split(b" ", 1)[0]
        length = int(digits) if digits.isdigit() else 0
        record = data[at + len(digits) + 1 : at + length - 1]
        key, equals, value = record.partition(b"=")
        if not equals:
            break
        found[key.decode("utf-8", "replace")] = _text(value)
        at += length
    return found
