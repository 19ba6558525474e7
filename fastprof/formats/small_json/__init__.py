"""Profiles in JSON that need few lines each.  See docs/formats of each."""

from __future__ import annotations

import re

from fastprof.core.engine import NO, SURE, Format


def sniff_scalene(head: bytes) -> int:
    return SURE if b'"alloc_samples"' in head[:200] and re.match(rb'\s*\{\s*"alloc_samples"\s*:', head) else NO


def sniff_ghc(head: bytes) -> int:
    is_json = b'"rts_arguments"' in head and re.match(rb'\s*\{\s*"program"\s*:(?s:.{0,3000}?)"rts_arguments"', head)
    return SURE if is_json else NO


FORMATS = (
    Format(
        name="scalene",
        view="graph",
        title="profile of Scalene (JSON)",
        suffixes=(".scalene.json",),
        sniff=sniff_scalene,
        reader="read:ScaleneReader",
    ),
    Format(
        name="ghc-json",
        view="stacks",
        title="time and allocation profile of GHC, as JSON (-pj)",
        suffixes=(".ghc.json",),
        sniff=sniff_ghc,
        reader="read:GhcJsonReader",
    ),
)
