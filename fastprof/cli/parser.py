"""The parser of the command line: one-line errors, help that fits two screens.

fastprof convert --help        the shared options, one line each, without rare ones
fastprof convert --help-all    all options, with details
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence

from fastprof.cli.text import print_raw, terminal_width, wants_json
from fastprof.core._typing import Any, NoReturn
from fastprof.core.errors import printable
from fastprof.core.messages import did_you_mean, nearest

# Flags and verbs of other tools, and their equivalents.
_ELSEWHERE = {
    "-f": "an existing output is replaced without asking",
    "--force": "not needed, an existing output is replaced without asking",
    "--format": "--from is the format of the input, --to that of the output",
    "--threads": "--cores limits the threads of fastprof, --thread keeps one of the input",
    "--time": "-O time_ns=NANOSECONDS sets the time of a pprof profile, --time-range keeps a part of the input",
    "--merge": "-O add_up=LIST adds up samples of OProfile; `fastprof merge` merges profiles",
}

# argparse's few texts are not translated: gettext would import locale and look for catalogs, which takes 3 % of the
# time of `info` of a small file.
vars(argparse)["_"] = lambda text: text  # may be None, which `str` would print


class Parser(argparse.ArgumentParser):
    """A parser whose options are never abbreviated, so that scripts keep working when options are added."""

    words: Sequence[str] = ()  # of the command line

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, allow_abbrev=False, add_help=False)
        # argparse creates a formatter for every argument, and is slow at finding the width
        self._width = min(terminal_width() or 80, 80)
        self._brief = False
        self._hidden: list[Any] = []  # groups of arguments shown only by --help-all
        self._takes_standard_input = False
        self.formatter_class = self._formatter
        self.add_argument("-h", "--help", action="help", help="show this help")
        self._positionals.title = "arguments"
        self._optionals.title = "help"

    def offer_all_help(self) -> None:
        """Add --help-all, which shows all options with details, also those of actions; --help then shows one line per
        shared option that is not rare."""
        if not self._brief:
            self._brief = True
            self._optionals.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options, with details")

    def add_inputs(
        self,
        name: str = "inputs",
        *,
        nargs: str | None = "+",
        metavar: str = "INPUT",
        help: str = "a file, a directory, or - for standard input",
    ) -> None:
        """Add the argument for profiles, of which - is standard input."""
        self._takes_standard_input = True
        self.add_argument(name, nargs=nargs, metavar=metavar, help=help)

    def hide(self, group: Any) -> None:
        """Show this group of arguments only in --help-all."""
        self._hidden.append(group)

    def last_group(self, title: str) -> Any:
        """The group of --help, moved to the end."""
        self._optionals.title = title
        self._action_groups.remove(self._optionals)
        self._action_groups.append(self._optionals)
        return self._optionals

    def format_help(self) -> str:
        groups = self._action_groups
        self._action_groups = [group for group in groups if not (self._brief and group in self._hidden)]
        try:
            return super().format_help()
        finally:
            self._action_groups = groups

    def print_all_help(self) -> None:
        self._brief = False
        self.print_help()
        for action in self._actions:
            for one in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
                print()
                one.print_all_help()

    def _formatter(self, prog: str) -> argparse.HelpFormatter:
        return _Formatter(prog, self._width, self._brief)

    def error(self, message: str) -> NoReturn:
        """Print the error, the usage and the command for help; exit with 2."""
        message = re.sub(r"^argument ", "", message)
        if found := re.fullmatch(r"(.*): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            known = re.findall(r"'([^']*)'", found[3]) or found[3].split(", ")  # newer Pythons print no quotes
            message = f"{found[1]}: {found[2]!r} is not one of {', '.join(known)}{did_you_mean(found[2], known)}"
        if found := re.match(r"the following arguments are required: (.*)", message):
            message = self._missing(re.split(",? ", found[1]))
        if wants_json(self.words):
            from fastprof.cli.failure import usage_text

            print_raw(usage_text(message, f"`{self.prog} --help` shows the options") + "\n")
            self.exit(2)
        more = f"       `{self.prog} --help` shows the options\n"
        self.exit(2, f"fastprof: {printable(message)}\n{self.format_usage().strip()}\n{more}")

    def _missing(self, names: list[str]) -> str:
        # argparse also lists arguments that may be empty
        may_be_none = {action.metavar for action in self._actions if action.nargs == "*"}
        names = [name for name in names if name not in may_be_none] or names
        message = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing"
        if self._takes_standard_input and _is_fed():
            message += "; use - to read standard input"
        return message

    def no_input(self) -> NoReturn:
        """Fail for lack of inputs, in a verb whose inputs may also come from an option."""
        self.error(self._missing(["INPUT"]))

    def no_option(self, word: str) -> NoReturn:
        flag = word.partition("=")[0]
        self.error(f"unknown option {flag}{meant(flag, self._option_string_actions)}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Older Pythons take the `--` of `--flag=--` for the end of options, and make the value an empty list."""
        if action.option_strings and action.nargs in (None, "?") and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            if action.nargs is not None or not action.option_strings:
                raise
            what = f"{action.metavar or action.dest} is missing: {action.help or ''}"
            hints = [_ELSEWHERE[flag] for flag in action.option_strings if flag in _ELSEWHERE]
            raise argparse.ArgumentError(action, "; ".join([what, *hints])) from None


def action_of(actions: Any, name: str, does: str, describes: str, examples: str) -> Parser:
    """The parser of an action, such as `archive add`, which is added to `actions`."""
    made: Parser = actions.add_parser(name, help=does, description=describes, epilog=examples)
    made.set_defaults(parser=made)
    made.offer_all_help()
    return made


def meant(word: str, known: Iterable[str], quote: str = "") -> str:
    """The end of a message about an unknown word: "; did you mean ...?", or ""."""
    if word in _ELSEWHERE:
        return f"; {_ELSEWHERE[word]}"
    near = nearest(word, known)
    return f"; did you mean {quote}{near}{quote}?" if near else ""


def _is_fed() -> bool:
    """Whether standard input is a pipe or a file."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        if isinstance(parser, Parser):
            parser.print_all_help()
        sys.exit(0)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, width: int, brief: bool) -> None:
        super().__init__(prog, max_help_position=27 if brief else 24, width=width)
        self._brief = brief

    def add_argument(self, action: argparse.Action) -> None:
        if self._brief and getattr(action, "rare", False):
            return
        super().add_argument(action)
        # argparse does not account for verbs being indented further than options
        indent = self._current_indent + self._indent_increment
        for verb in getattr(action, "_choices_actions", ()):
            self._action_max_length = max(self._action_max_length, len(verb.dest) + indent)

    def _format_usage(self, usage: object, actions: Iterable[argparse.Action], groups: object, prefix: object) -> str:
        """usage: fastprof convert [OPTION ...] INPUT ... [-o OUTPUT]"""
        words, output = [self._prog], []
        for action in actions:
            if action.dest == "output":
                output = [f"-o {action.metavar}" if action.required else f"[-o {action.metavar}]"]
            elif not action.option_strings:
                word = f"{action.metavar or action.dest}"
                word += " ..." if action.nargs in ("+", "*", argparse.PARSER) else ""
                words.append(f"[{word}]" if action.nargs in ("*", "?") else word)
            elif "[OPTION ...]" not in words:
                words.append("[OPTION ...]")
        if prefix == "":  # the prefix of an action, as `fastprof archive`
            return " ".join([*words, *output])
        lines = ["usage:"]
        for word in [*words, *output]:
            if len(lines[-1]) + 1 + len(word) > self._width:
                lines.append(" " * len("usage:"))
            lines[-1] += f" {word}"
        return "\n".join(lines) + "\n\n"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-f, --from FORMAT` instead of `-f FORMAT, --from FORMAT`."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        equals = "=" if action.option_strings[0].startswith("-O ") else " "
        return f"{', '.join(action.option_strings)}{equals}{self._format_args(action, action.dest.upper())}"

    def _expand_help(self, action: argparse.Action) -> str:
        text, details = super()._expand_help(action), getattr(action, "details", "")
        return text if self._brief or not details else f"{text}.  {details}"
