"""fastprof formats: the registry."""

from __future__ import annotations

import argparse
import sys

from fastprof import formats
from fastprof.cli.as_json import json_text
from fastprof.cli.parser import Parser
from fastprof.cli.text import Screen, print_table

DESCRIPTION = """\
List the formats: name (for --from and --to), view, whether
it is read and written, file names."""
EXAMPLES = """\
examples:
  fastprof formats
  fastprof formats --json
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    known = formats.formats()
    if args.json:
        entries = [
            {
                "name": f.name,
                "view": f.view,
                "also": f.also,
                "reads": bool(f.reader),
                "writes": bool(f.writer),
                "suffixes": list(f.suffixes),
                "prefixes": list(f.prefixes),
                "title": f.title,
            }
            for f in known
        ]
        print(json_text(entries, indent=2))
        return 0
    rows = [("format", "view", "reads", "writes", "file names", "")]
    for f in known:
        names = [*f.suffixes, *(p + "*" for p in f.prefixes)]
        views = f"{f.view}, {f.also}" if f.also else f.view
        rows.append((f.name, views, "yes" if f.reader else "-", "yes" if f.writer else "-", " ".join(names), f.title))
    print_table(rows, optional=(5,), screen=Screen.of(sys.stdout))
    return 0
