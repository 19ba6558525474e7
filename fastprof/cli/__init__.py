"""The command line: one module per verb, imported when that verb is asked for."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from fastprof._version import __version__

VERBS = {
    "convert": "convert a profile, or merge several into one",
    "info": "say what is in a profile",
    "archive": "keep many profiles in one file: add, list, extract",
    "formats": "list the formats and what can be done with each",
}

_EXAMPLES = """\
examples:
  fastprof convert trace.xray -s ./program -o out.callgrind
  fastprof info trace.xray
  ssh host cat trace.xray.zst | fastprof convert - --to callgrind > out.callgrind
  fastprof convert VERB --help

exit codes:
  0 done   1 input, output or data error   2 usage   3 done with losses (--lenient)
  4 diff --fail-over exceeded   130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.  Never a traceback, unless FASTPROF_DEBUG=1."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["--version"]:
        print(f"fastprof {__version__}")
        return 0
    signal.signal(signal.SIGTERM, _terminated)
    from fastprof.errors import FastprofError, UsageError

    try:
        return _run(args)
    except BrokenPipeError:
        # The reader of our output left; what is still buffered must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (FastprofError, MemoryError, RecursionError, OSError) as error:
        if os.environ.get("FASTPROF_DEBUG") == "1":
            raise
        print(f"fastprof: {str(error) or 'out of memory'}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        if os.environ.get("FASTPROF_DEBUG") == "1":
            raise
        print(
            f"fastprof: internal error: {type(error).__name__}: {error} (FASTPROF_DEBUG=1 shows where)", file=sys.stderr
        )
        return 1


def _terminated(number: int, frame: Any) -> None:
    # so that temporary files are removed on the way out
    raise SystemExit(128 + number)


def _run(args: list[str]) -> int:
    import argparse
    from functools import partial
    from importlib import import_module

    # A width of its own: argparse makes a formatter for every argument, and asking for the terminal's is slow.
    formatter = partial(argparse.RawDescriptionHelpFormatter, width=80)
    parser = argparse.ArgumentParser(
        prog="fastprof",
        description="samtools for profiles: any profile format into any other, streaming.",
        epilog=_EXAMPLES.replace("convert VERB", "VERB"),
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="version", version=f"fastprof {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog="fastprof")
    for verb, help_ in VERBS.items():
        asked = verb in args[:2]
        module = import_module(f"fastprof.cli.{verb}") if asked else None
        sub = verbs.add_parser(
            verb,
            help=help_,
            description=module.DESCRIPTION if module else None,
            epilog=module.EXAMPLES if module else None,
            formatter_class=formatter,
        )
        if module:
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    parsed = parser.parse_args(args)
    code: int = parsed.run(parsed)
    return code
