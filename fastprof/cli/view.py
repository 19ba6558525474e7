"""fastprof view: open a profile in the browser."""

import argparse
import webbrowser
from pathlib import Path

from fastprof.cli import arguments
from fastprof.cli.messages import Progress, exit_code, print_message, print_problems
from fastprof.cli.parser import Parser
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.made_folders import PrivateFolder
from fastprof.core.urls import shown
from fastprof.verbs.report import SUM, options
from fastprof.verbs.view import PORT, Server, view

DESCRIPTION = """\
Open the page of `fastprof report` in the browser, or with
--tui browse the profile in the terminal. --serve serves the
page on 127.0.0.1, with links that open the profile in
speedscope, Perfetto UI and the Firefox Profiler. The
profile stays on this machine. Two inputs are compared."""
EXAMPLES = """\
examples:
  fastprof view cpu.pb.gz
  fastprof view cpu.pb.gz --tui
  fastprof view trace.xray -s ./program --serve
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(help="a file, a directory, or - for standard input; two are compared")
    arguments.add_input(parser)
    group = arguments.heading_of(parser, "browser")
    group.add_argument("--tui", action="store_true", help="browse in the terminal instead (needs the extra `tui`)")
    group.add_argument("--serve", action="store_true", help="serve the page and the profile on 127.0.0.1")
    group.add_argument(
        "--port",
        type=int,
        metavar="N",
        help=f"port to serve on (default: {PORT}; 0: any)",
    ).details = f"Perfetto UI fetches from port {PORT} only."
    group.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    arguments.add_options(parser, [option for option in options() if option is not SUM])


def run(args: argparse.Namespace) -> int:
    given = arguments.given(args, options())
    name = " and ".join(map(shown, args.inputs))
    if args.tui:
        return _browse(args, given, name)
    if not args.serve:
        if args.port is not None:
            raise UsageError("--port needs --serve")
        path, log = view(args.inputs, from_=args.from_, **given)
        _open(Path(path).as_uri(), args.no_browser)
        print_problems(log, name, quiet=False)
        return exit_code(log)
    if len(args.inputs) > 1:
        raise UsageError("--serve passes one profile to viewers; without it the page compares two")
    port = PORT if args.port is None else args.port
    if not 0 <= port <= 65535:
        raise UsageError(f"--port={port}: expected 0 to 65535")
    # a second Ctrl-C does not wait for an unfinished file
    with PrivateFolder() as folder:
        server = Server(args.inputs[0], folder, port, from_=args.from_, **given)
        try:
            # the server's address is secret; command lines are public
            _open(server.url, args.no_browser, by=Path(server.private_page()).as_uri())
            print_problems(server.log, name, quiet=False)
            server.run()
        except KeyboardInterrupt:  # Ctrl-C ends the server
            pass
        finally:
            server.close()
    return 0


def _browse(args: argparse.Namespace, given: dict[str, Any], name: str) -> int:
    """Show the profile in the terminal."""
    for option, is_given in {
        "--serve": args.serve,
        "--port": args.port is not None,
        "--no-browser": args.no_browser,
    }.items():
        if is_given:
            raise UsageError(f"--tui needs no browser; leave out {option}")
    from fastprof.cli.browser import start
    from fastprof.verbs.browse import browse

    log = start(lambda: browse(args.inputs, from_=args.from_, progress=Progress(quiet=False), **given)).log
    print_problems(log, name, quiet=False)
    return exit_code(log)


def _open(url: str, quietly: bool, *, by: str = "") -> None:
    """Print `url` and open it, or open the page that redirects to it."""
    print_message(url)
    if not quietly and not webbrowser.open(by or url):
        print_message("cannot start a browser: open this address yourself")
