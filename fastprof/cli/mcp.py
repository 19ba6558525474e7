"""fastprof mcp: verbs as tools of a Model Context Protocol server, over standard input and output."""

import argparse
import os
from collections.abc import Sequence

from fastprof.cli import arguments
from fastprof.cli.parser import Parser
from fastprof.core.errors import UsageError
from fastprof.core.messages import install
from fastprof.core.options import Size

DESCRIPTION = """\
Serve the verbs as tools of the Model Context Protocol, on
standard input and output, to an agent or another program.
It reads profiles below FOLDER and nothing else, whatever
arguments, links and profiles name; each call has limits."""
EXAMPLES = """\
examples:
  fastprof mcp ~/profiles
  fastprof mcp ~/profiles ~/src --write ~/profiles/converted

docs/agents.md shows how clients start it.
"""
_SECONDS = 60
_MEMORY = 2 << 30
_TOKENS = 2000


def add_arguments(parser: Parser) -> None:
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="folder with profiles, sources or programs")
    group = arguments.heading_of(parser, "limits")
    group.add_argument("--write", metavar="FOLDER", help="let the tool `convert` write below FOLDER")
    group.add_argument("--urls", action="store_true", help="let tools read URLs: https, s3, gs, az")
    group.add_argument("--seconds", type=_whole, default=_SECONDS, metavar="N", help="end a call after N seconds (60)")
    group.add_argument(
        "--memory", type=_size, default=_MEMORY, metavar="SIZE", help="memory of a call, e.g. 500M (default: 2G)"
    )
    arguments.add_budget(parser)


def _whole(text: str) -> int:
    if not (text.isdecimal() and int(text[:6]) > 0 and len(text) < 6):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a number of seconds from 1 to 99999")
    return int(text)


def _size(text: str) -> int:
    try:
        return int(Size().parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    tokens = args.budget_tokens or _TOKENS
    serve(args.folders, write=args.write, urls=args.urls, seconds=args.seconds, memory=args.memory, tokens=tokens)
    return 0


def serve(
    folders: Sequence[str],
    *,
    write: str | None = None,
    urls: bool = False,
    seconds: int = _SECONDS,
    memory: int = _MEMORY,
    tokens: int = _TOKENS,
) -> None:
    """Serve until standard input ends: the command `fastprof mcp`.

    `tokens`: the size of an answer, unless a call states another one.
    Errors: UsageError without the package `mcp`, or for a folder that does not exist.
    """
    try:
        import mcp.server  # noqa: F401
    except ImportError:
        raise UsageError(f"mcp needs the package mcp: {install('mcp')}") from None
    from fastprof.cli.tools import Limits, Server

    for folder in (*folders, *([write] if write else [])):
        if not os.path.isdir(folder):
            raise UsageError(f"{folder}: not a folder")
    found = Limits(
        [os.path.realpath(one) for one in folders], write and os.path.realpath(write), urls, seconds, memory, tokens
    )
    Server(found).run()
