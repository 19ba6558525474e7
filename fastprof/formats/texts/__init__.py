"""Profiles that programs print as text: a line for each frame, or each sample.  See docs/formats of each."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import MAYBE, NO, SURE, Format

# The first line of BCC's profile, offcputime and stackcount.
_BCC = re.compile(rb"(?:Sampling at|Tracing) [^\n]{0,200}(?:stack|functions for)[^\n]{0,200}(?:secs|-C to end)\.\s")
_MAP = re.compile(rb"^@\w*\[(?:[^\n]*,)?[ ]*\n[ \t]+\S", re.MULTILINE)
# Frames of DTrace, processes of BCC.
_FRAME = re.compile(rb"[ \t]+(?:[\w.+-]+`[^\s`]+|- +\S.* \(\d+\))[ ]*")
_RPROF = re.compile(rb"(?:[A-Za-z]+ profiling: )*sample\.interval=\d")
_LUAJIT = re.compile(rb"(?:  (?:<-|->|--) )?(?: {0,4}\d+  (?![\d ])|[ \d]?\d?\d%  )\S.*")


def sniff_tracer(head: bytes) -> int:
    if b"\0" in head or head.startswith((b"<", b"{")):
        return NO
    has_map = (head[:1] == b"@" or b"\n@" in head) and _MAP.search(head)
    if has_map or (head.startswith((b"Sampling at", b"Tracing ")) and _BCC.match(head)):
        return MAYBE
    lines = [line for line in head.split(b"\n", 60)[:-1] if line.strip()]
    if lines and lines[0].startswith(b"CPU ") and b"FUNCTION:NAME" in lines[0]:
        del lines[0]
    if not lines or not all(line[0] in b" \t" for line in lines):
        return NO
    return MAYBE if any(map(_FRAME.fullmatch, lines)) else NO


def sniff_rprof(head: bytes) -> int:
    return MAYBE if b"sample.interval=" in head and _RPROF.match(head) else NO


def sniff_ghc(head: bytes) -> int:
    title = rb"Time and Allocation Profiling Report"
    return SURE if title in head and re.match(rb"\t?[^\n]{0,100}" + title, head) else NO


def sniff_instruments(head: bytes) -> int:
    is_one = b"\tSymbol Name" in head and re.match(
        rb"(?:Weight|Running Time|Bytes Used)\t(?:Self|Count)[^\n]*\tSymbol Name", head
    )
    return SURE if is_one else NO


def sniff_pprof_raw(head: bytes) -> int:
    if not head.startswith((b"PeriodType: ", b"Period: ", b"Comment: ")):
        return NO
    return SURE if re.search(rb"^(?:Samples:\n\S+/|Period: \d)", head, re.MULTILINE) else NO


def sniff_luajit(head: bytes) -> int:
    """Shares, or counts that descend.  No profile has a line without two blanks."""
    if head.startswith(b"[No samples collected]"):
        return MAYBE
    lines = head.split(b"\n")[:-1]
    if not lines or head[:1] not in b" 0123456789" or not all(map(_LUAJIT.fullmatch, lines)):
        return NO
    counts = [int(line.split()[0].rstrip(b"%")) for line in lines if not line.startswith((b"  <", b"  -"))]
    return MAYBE if counts and counts == sorted(counts, reverse=True) else NO


FORMATS = (
    Format(
        name="tracer-stacks",
        view="stacks",
        title="stacks printed by bpftrace, BCC's profile, offcputime and stackcount, and DTrace",
        suffixes=(".bpftrace", ".dtrace", ".bcc"),
        sniff=sniff_tracer,
        reader="read:TracerReader",
    ),
    Format(
        name="rprof",
        view="stacks",
        title="samples of R's Rprof",
        suffixes=(".Rprof", ".rprof"),
        sniff=sniff_rprof,
        reader="read:RprofReader",
    ),
    Format(
        name="luajit",
        view="stacks",
        title="text printed by LuaJIT's profiler (-jp)",
        suffixes=(".luajit",),
        sniff=sniff_luajit,
        reader="read:LuaJitReader",
    ),
    Format(
        name="ghc-prof",
        view="stacks",
        title="time and allocation profile of GHC, as text (-p, -P)",
        suffixes=(".ghc.prof",),
        sniff=sniff_ghc,
        reader="read:GhcReader",
    ),
    Format(
        name="instruments",
        view="stacks",
        title="call tree copied from Apple's Instruments (Deep Copy)",
        suffixes=(".instruments.txt",),
        sniff=sniff_instruments,
        reader="read:InstrumentsReader",
    ),
    Format(
        name="pprof-raw",
        view="stacks",
        title="text of `pprof -raw`",
        suffixes=(".pprof.txt",),
        sniff=sniff_pprof_raw,
        reader="read:PprofRawReader",
    ),
)
