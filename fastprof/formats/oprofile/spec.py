"""Profile specifications as opreport takes them: which sample files are read.

event:LLC_MISSES image:/usr/bin/*,/opt/* tid:17,18       { session:before } { session:current }
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase

from fastprof.core._typing import NamedTuple
from fastprof.core.errors import UsageError
from fastprof.core.messages import Message
from fastprof.formats.oprofile.names import SampleName

_DEFAULT_SESSION = "current"
_GLOBS = ("session", "session-exclude", "image", "image-exclude", "lib-image", "event")
_NUMBERS = ("count", "unit-mask", "cpu", "tid", "tgid")


class Spec(NamedTuple):
    """The values of each tag; () for a tag that restricts nothing.  `images`: bare words."""

    text: str
    tags: dict[str, tuple[str, ...]]
    images: tuple[str, ...]

    def fits(self, name: SampleName) -> bool:
        image, library = _path(name.program.name), _path(name.image.name)
        if name.session is not None and not self._is_session(name.session):
            return False
        if self.images and not (_any(self.images, image) or _any(self.images, library)):
            return False
        excluded = self.tags.get("image-exclude", ())
        if _any(excluded, image) or _any(excluded, library):
            return False
        wanted = {"image": image, "lib-image": library, "event": name.event}
        if any(tag in self.tags and not _any(self.tags[tag], value) for tag, value in wanted.items()):
            return False
        numbers = dict(zip(_NUMBERS, (name.period, name.unit_mask, name.cpu, name.tid, name.tgid), strict=True))
        return all(str(value) in self.tags[tag] for tag, value in numbers.items() if tag in self.tags)

    def _is_session(self, session: str) -> bool:
        return _any(self.tags.get("session", (_DEFAULT_SESSION,)), session) and not _any(
            self.tags.get("session-exclude", ()), session
        )


def _path(name: str) -> str:
    """An image as OProfile compares it: names without a path get a slash, too."""
    return name if name.startswith("/") else f"/{name}"


def _any(patterns: Iterable[str], text: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def parse(texts: Iterable[str]) -> list[Spec]:
    """One specification, or the two of a difference.  Errors: UsageError."""
    try:
        words = [word for text in texts for word in shlex.split(text)]
    except ValueError as error:
        raise UsageError(Message("{--spec:name}: {error}", error=error)) from None
    if "{" not in words and "}" not in words:
        return [_spec(words)]
    specs: list[Spec] = []
    while words and words[0] == "{" and "}" in words:
        end = words.index("}")
        specs.append(_spec(words[1:end]))
        words = words[end + 1 :]
    if words or len(specs) != 2:
        raise UsageError(Message("{--spec:name}: a difference is {{ SPEC }} {{ SPEC }}, with spaces around the braces"))
    return specs


def _spec(words: list[str]) -> Spec:
    tags: dict[str, tuple[str, ...]] = {}
    images: list[str] = []
    for word in words:
        tag, colon, text = word.partition(":")
        if not colon or "/" in tag:
            images.append(os.path.realpath(word) if os.path.exists(word) else _path(word))
            continue
        if tag not in _GLOBS + _NUMBERS:
            known = ", ".join(_GLOBS + _NUMBERS)
            raise UsageError(
                Message(
                    "{--spec:name}: unknown tag {tag!r:.80} in a profile specification, expected {known}",
                    tag=tag,
                    known=known,
                )
            )
        values = tuple(text.split(","))
        if tag in _NUMBERS:
            values = tuple(_number(tag, value) for value in values)
        if "all" not in values:
            tags[tag] = tags.get(tag, ()) + values
    return Spec(" ".join(words), tags, tuple(images))


def _number(tag: str, text: str) -> str:
    """Decimal digits without zeros in front; unit masks also with 0x."""
    try:
        return text if text == "all" else str(int(text, 0))
    except ValueError:
        raise UsageError(Message("{--spec:name}: {tag} {text!r:.80} is not a number", tag=tag, text=text)) from None
