"""Profiles in JSON that need few lines each.  See docs/formats of each."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format


def sniff_scalene(head: bytes) -> int:
    return SURE if b'"alloc_samples"' in head[:200] and re.match(rb'\s*\{\s*"alloc_samples"\s*:', head) else NO


def sniff_ghc(head: bytes) -> int:
    is_json = b'"rts_arguments"' in head and re.match(rb'\s*\{\s*"program"\s*:(?s:.{0,3000}?)"rts_arguments"', head)
    return SURE if is_json else NO


def sniff_pyinstrument(head: bytes) -> int:
    is_json = re.match(rb'\s*\{\s*"start_time"\s*:[^{}]{0,200}"sample_count"', head)
    return SURE if is_json else NO


def sniff_stackprof(head: bytes) -> int:
    if head.startswith(b"\4\b{"):  # Ruby's Marshal
        return SURE if b":\x0cversion" in head[:24] and b":\tmode" in head[:64] else NO
    return SURE if re.match(rb'\s*\{\s*"version"\s*:\s*[\d.]+\s*,\s*"mode"\s*:', head) else NO


def sniff_safari(head: bytes) -> int:
    return SURE if re.match(rb'\s*\{\s*"version"\s*:\s*1\s*,\s*"recording"\s*:\s*\{', head) else NO


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
    Format(
        name="pyinstrument",
        view="stacks",
        title="session of pyinstrument, or its JSON",
        suffixes=(".pyisession",),
        sniff=sniff_pyinstrument,
        reader="read:PyinstrumentReader",
    ),
    Format(
        name="stackprof",
        view="stacks",
        reads_also="graph",
        title="profile of StackProf, as a dump of Ruby or JSON; without raw samples it is a graph",
        suffixes=(".stackprof", ".stackprof.json"),
        sniff=sniff_stackprof,
        reader="read:stackprof",
    ),
    Format(
        name="safari",
        view="stacks",
        title="recording of Safari's Web Inspector (JavaScript samples)",
        suffixes=("-recording.json",),
        sniff=sniff_safari,
        reader="read:SafariReader",
    ),
)
