"""OpenTelemetry profiles (OTLP).  See docs/formats/otlp.md."""

from fastprof.core.engine import MAYBE, NO, PPROF_FIELDS, SURE, Capabilities, Format
from fastprof.core.options import Option, Words

ENCODING: Option[str | None] = Option(
    "encoding",
    Words("binary", "json"),
    None,
    format="otlp",
    help="write protocol buffers or JSON; default: by the output's suffix",
)


def sniff(head: bytes) -> int:
    """Recognize JSON by the message's first field, protocol buffers (also framed) by their structure."""
    from re import match

    from fastprof.core._c import lib

    if head[:1] in b"{ \t\r\n\f\v":
        if b'"resource' in head and match(rb'\s*\{\s*"(?:resourceProfiles|resource_profiles)"\s*:\s*\[', head):
            return SURE
        tables = rb'\s*\{\s*"dictionary"\s*:\s*\{\s*"\w+(?:Table|_table)"\s*:\s*\['
        if b'"dictionary"' in head and match(tables, head):
            return SURE
    return MAYBE if lib.fp_otlp_sniff(head, len(head)) else NO


FORMATS = (
    Format(
        name="otlp",
        view="stacks",
        title="OpenTelemetry profiles (OTLP), binary or JSON",
        suffixes=(".otlp", ".otlp.json", ".otlp.jsonl"),
        sniff=sniff,
        reader="read:OtlpReader",
        writer="write:OtlpWriter",
        holds=Capabilities(
            model_order=True,
            keeps_stacks=False,
            repeats_frames=True,
            lacks=frozenset({"thread-names", "long-names", "inherited-events", "parts"}),
            header=PPROF_FIELDS,
        ),
        writes=(ENCODING,),
    ),
)
