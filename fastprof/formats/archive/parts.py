"""Converts a part to the plain values of PARTS sections and back.

Both directions check the declarations in core/model.py, so everything written can be read.
"""

from fastprof.core._typing import Any
from fastprof.core.model import EXTRA, FIELDS, MAX_VALUE_TYPES, Part
from fastprof.core.schema import mismatch
from fastprof.formats.archive import _cbor


def to_plain(part: Part) -> dict[str, Any]:
    """The fields of a part that differ from those of an empty part.  Errors: ValueError for an undeclared value."""
    empty = vars(Part())
    return _checked({name: value for name, value in vars(part).items() if value != empty.get(name)})


def copied(part: Part) -> tuple[Part, dict[str, Any]]:
    """A copy of a part, and its plain fields.  Encoding and decoding takes less time than `copy.deepcopy`.

    Errors: ValueError for a value that cannot be stored.
    """
    plain: Any = _cbor.loads(_cbor.dumps(to_plain(part)))
    return Part(**plain), plain


def from_plain(plain: dict[Any, Any]) -> Part:
    """The part with these fields.  Errors: ValueError for values that to_plain cannot return."""
    return Part(**_checked(plain))


def _checked(plain: dict[Any, Any]) -> dict[str, Any]:
    wrong = mismatch(plain, FIELDS, "field") or mismatch(plain.get("extra", {}), EXTRA, "key of extra")
    if wrong:
        raise ValueError(wrong)
    positions = plain.get("positions", ())
    if [p for p in ("instr", "bb", "line") if p in positions] != [*positions]:
        raise ValueError(f"field 'positions' is {positions!r:.80}, expected some of instr, bb, line in this order")
    if len(plain.get("value_types", ())) > MAX_VALUE_TYPES:
        raise ValueError(f"field 'value_types' has {len(plain['value_types']):,}, expected up to {MAX_VALUE_TYPES:,}")
    return plain
