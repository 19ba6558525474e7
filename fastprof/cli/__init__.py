"""The command line: one module per verb, imported when the verb is used."""

import atexit
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.loaded import loaded
from fastprof.core.version import __version__

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # as in fastprof/__main__.py

VERBS = {
    "convert": "convert a profile, or merge several into one",
    "merge": "merge any number of profiles",
    "diff": "compare two profiles",
    "info": "describe a profile",
    "explain": "explain a profile, or a change, on one page",
    "top": "rank functions, lines, files, objects or threads by cost",
    "trend": "find which functions changed, and since when",
    "report": "write an interactive HTML report",
    "view": "open a profile in the browser or another viewer",
    "sql": "query profiles with SQL",
    "annotate": "show source lines or instructions with their costs",
    "batch": "convert many files, one output each",
    "archive": "keep many profiles in one file: add, list, extract, rm",
    "mcp": "serve the verbs to agents (Model Context Protocol)",
    "formats": "list the formats",
    "completion": "print a completion script for bash, zsh or fish",
}

_DESCRIPTION = """\
Convert, merge, diff and view profiles of any profiler,
of any size."""
_EXAMPLES = """\
examples:
  fastprof info trace.xray
  fastprof convert trace.xray -s ./program -o out.callgrind
  cat trace.zst | fastprof convert - -t pprof > out.pb.gz

`fastprof help VERB` shows options and examples of each.

exit codes:
  0    done
  1    error in the input, the output or the data
  2    wrong usage
  3    done with losses (--lenient, --keep-going)
  4    diff, trend: a cost grew by more than --fail-over
  130  interrupted
"""


_QUICK = ("info", "top")  # verbs whose plain command lines are parsed without argparse
_words: list[str] = []  # of the command line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.  Never a traceback, unless FASTPROF_DEBUG=1."""
    args = list(sys.argv[1:] if argv is None else argv)
    _words[:] = args
    # Start-up makes no garbage, and the end of the process frees everything.  Collection takes 4 ms of 30.
    gc.disable()
    atexit.register(gc.freeze)
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # under nohup it stays ignored
        signal.signal(signal.SIGHUP, _terminated)
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # like standard error: names may be in any script
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # set by fastprof/__main__.py until here
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return ended(lambda: _run(args))


def ended(work: Callable[[], int]) -> int:
    """Run the verb; print errors.  Returns the exit code."""
    try:
        return _done_and_flushed(work)
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("FASTPROF_DEBUG") == "1":
            raise
        from fastprof.cli.text import print_raw, wants_json
        from fastprof.core.errors import FastprofError, UsageError, printable

        if wants_json(_words):
            from fastprof.cli.failure import error_text

            print_raw(error_text(error, _words) + "\n")
            return 2 if isinstance(error, UsageError) else 1
        message = (error.text(flags=True) if isinstance(error, FastprofError) else str(error)) or "out of memory"
        if not isinstance(error, (FastprofError, MemoryError, RecursionError, OSError)):
            message = f"internal error: {type(error).__name__}: {error} (FASTPROF_DEBUG=1 shows where)"
        elif isinstance(error, OSError) and error.strerror:  # e.g. of a module that cannot be imported
            message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        print_raw(f"fastprof: {printable(message)}\n")
        return 2 if isinstance(error, UsageError) else 1


class _Closed(io.TextIOBase):
    """Stands for standard output if it was closed when the process started."""

    def write(self, text: str) -> int:
        raise self._error()

    def fileno(self) -> int:
        raise self._error()

    @staticmethod
    def _error() -> Exception:
        from fastprof.core.errors import FastprofError

        return FastprofError("<stdout>: is closed")


def _replace_closed_streams() -> None:
    """Prevent a file that we open from getting the descriptor of a closed standard stream, to which libraries write."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _done_and_flushed(work: Callable[[], int]) -> int:
    """Run `work` and flush its output.  Errors: BrokenPipeError when the reader has closed the pipe; FastprofError when
    output cannot be written."""
    try:
        return work()
    except OSError as error:
        # An error of a file names it; an error of print does not.
        if isinstance(error, BrokenPipeError) or error.filename is not None:
            raise
        raise _of_output(error) from None
    finally:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            # at exit Python writes the rest of the buffer; this must not cause another error
            with open(os.devnull, "wb") as null:
                os.dup2(null.fileno(), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise
            raise _of_output(error) from None


def _of_output(error: OSError) -> Exception:
    from fastprof.core.errors import FastprofError

    return FastprofError(f"<stdout>: {error.strerror or error}")


def _terminated(number: int, frame: object) -> None:
    # an exception, so that temporary files are removed
    raise SystemExit(128 + number)


def _quick(verb: str, args: list[str]) -> Any:
    """The arguments of a plain command line; None for others."""
    from fastprof.cli.quick import Quick

    parser = Quick()
    loaded(f"fastprof.cli.{verb}:add_arguments")(parser)
    return parser.parsed(args[1:])


def _run(args: list[str]) -> int:
    if args[:1] == ["--version"]:
        print(f"fastprof {__version__}")
        return 0
    if args[:1] == ["help"]:  # `help VERB` is `VERB --help`
        args = [*args[1:], "--help"]

    verb = args[0] if args else ""
    if verb in _QUICK and (plain := _quick(verb, args)):
        gc.freeze()
        gc.enable()
        return int(loaded(f"fastprof.cli.{verb}:run")(plain))
    from fastprof.cli.parser import Parser, meant

    Parser.words = args
    parser = Parser(prog="fastprof", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"fastprof {__version__}", help="show the version")
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", prog="fastprof")
    if verb in VERBS:
        module = loaded(f"fastprof.cli.{verb}")
        sub = verbs.add_parser(verb, description=module.DESCRIPTION, epilog=module.EXAMPLES)
        sub.offer_all_help()
        module.add_arguments(sub)
        sub.set_defaults(run=module.run, parser=sub)
    else:
        for name, does in VERBS.items():
            verbs.add_parser(name, help=does)
        if not verb:
            parser.print_help(sys.stderr)
            return 2
        if not verb.startswith("-"):
            parser.error(f"unknown verb {verb!r}" + meant(verb, VERBS, quote="'"))
        parser.parse_known_args([verb])  # --help and --version end here
        parser.no_option(verb)
    parsed, unknown = parser.parse_known_args(args)
    for word in unknown:
        if word.startswith("-"):
            parsed.parser.no_option(word)
    if unknown and not hasattr(parsed, "more"):
        parsed.parser.error(f"unexpected: {' '.join(unknown)}")
    elif unknown:
        # argparse rejects positionals that follow an option if others preceded it
        getattr(parsed, parsed.more).extend(unknown)
    parsed.words = args
    gc.freeze()
    gc.enable()
    code: int = parsed.run(parsed)
    return code
