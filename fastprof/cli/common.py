"""What several verbs share: options, progress, the report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from fastprof.cli import say
from fastprof.core._typing import Any
from fastprof.core.engine import CHOICES, Options, Report, misfit
from fastprof.core.errors import printable


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every verb that reads a profile."""
    parser.add_argument("-f", "--from", dest="from_", metavar="FORMAT", help="the inputs' format (default: recognized)")
    parser.add_argument(
        "-s",
        "--symbols",
        action="append",
        default=[],
        metavar="BINARY",
        help="program or shared object to take names from, or a map made by `llvm-xray extract`; may be repeated",
    )
    parser.add_argument("--no-symbols", action="store_true", help="do not look up addresses")
    parser.add_argument("--sysroot", default="", metavar="DIR", help="look for mapped objects below DIR")
    parser.add_argument(
        "--debug-dir", action="append", default=[], metavar="DIR", help="separate debug files (default: /usr/lib/debug)"
    )
    parser.add_argument(
        "--force-symbols", action="store_true", help="use a named binary although its build id is another"
    )
    parser.add_argument(
        "--demangle", choices=CHOICES["demangle"], default="full", help="how C++, Rust and D names are shown"
    )
    parser.add_argument("--no-demangle", dest="demangle", action="store_const", const="none", help=argparse.SUPPRESS)
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="keep what can be understood of a damaged input; losses are counted, the exit code is 3",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no report, no progress")


def add_level_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--level", type=whole("level"), default=0, metavar="N", help="archives: compress harder, 1 to 22 (default: 3)"
    )


def whole(option: str) -> Callable[[str], int]:
    """The type of an argument that is a whole number, by its name in Options."""

    def parsed(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = text  # type: ignore[assignment]
        if why := misfit(option, (value,) if option == "threads" else value):
            raise argparse.ArgumentTypeError(why)
        return value

    return parsed


def options_from(args: argparse.Namespace, **more: Any) -> Options:
    return Options(
        lenient=args.lenient,
        symbols=tuple(args.symbols),
        symbolize=not args.no_symbols,
        sysroot=args.sysroot,
        debug_dirs=tuple(args.debug_dir) or Options().debug_dirs,
        force_symbols=args.force_symbols,
        demangle=args.demangle,
        **more,
    )


class Progress:
    """A progress bar over the inputs' bytes as stored, when stderr is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._on = not quiet and sys.stderr.isatty()

    def __call__(self, source: Any) -> None:
        if not self._on or not source.compressed_size:
            return
        from tqdm import tqdm

        bar = tqdm(
            total=source.compressed_size,
            unit="B",
            unit_scale=True,
            unit_divisor=1000,
            desc=printable(os.path.basename(source.name)),
            leave=False,
            ascii=True if os.environ.get("NO_COLOR") else None,
            file=sys.stderr,
        )

        def moved(position: int) -> None:
            bar.update(max(0, min(position, source.compressed_size) - bar.n))

        source.on_progress(moved, bar.close)


def say_report(report: Report, headline: str) -> None:
    """The report for a person, on standard error."""
    parts = [headline]
    for title, counts in (("repairs", report.repairs), ("losses", report.losses), ("not said", report.unsaid)):
        if counts:
            parts.append(f"{title}: " + ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items())))
    say("; ".join(parts))
    for warning in report.warnings:
        say(f"warning: {warning}")


def report_json(report: Report) -> str:
    """The report as one JSON object."""
    import json

    return json.dumps(
        {
            "rows": dict(report.rows),
            "repairs": dict(report.repairs),
            "losses": dict(report.losses),
            "not_said": dict(report.unsaid),
            "warnings": report.warnings,
            "facts": report.facts,
        },
        default=str,
    )


def tell(args: argparse.Namespace, report: Report, headline: str) -> int:
    """Say on standard error what was done; returns the exit code."""
    if args.json:
        print(report_json(report), file=sys.stderr)
    elif not args.quiet:
        say_report(report, headline)
    return exit_code(report)


def exit_code(report: Report) -> int:
    return 3 if report.losses else 0
