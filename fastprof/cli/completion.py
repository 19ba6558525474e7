"""fastprof completion: scripts for shells that complete verbs, options and their values.

A script is generated from the declarations of the options, so completion does not start fastprof:

    name             values
    convert --by     function line file object       one of these
    convert --labels own,thread,process,part,cpu     several of these, comma-separated
    convert -o                                       a file, completed by the shell
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from shlex import quote

from fastprof.cli import VERBS
from fastprof.cli.of_format import OfFormat
from fastprof.cli.parser import Parser
from fastprof.core._typing import NamedTuple

DESCRIPTION = """\
Print a script with which a shell completes verbs, options
and their values."""
EXAMPLES = """\
examples:
  eval "$(fastprof completion bash)"  # in ~/.bashrc
  eval "$(fastprof completion zsh)"   # after compinit
  fastprof completion fish | source   # in config.fish
"""


class Choice(NamedTuple):
    """An option or an argument, and its possible values."""

    flags: list[str]  # empty: an argument
    help: str
    takes_value: bool
    words: tuple[str, ...]  # empty: the shell completes files
    several: bool  # takes several of the words, comma-separated


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=_SCRIPTS, help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    print(script(args.shell), end="")
    return 0


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    commands = dict(_commands())
    return _SCRIPTS[shell](commands)


def _commands() -> Iterator[tuple[str, list[Choice]]]:
    """The options of each verb, or verb and action: `convert`, `archive add`."""
    for verb in VERBS:
        module = import_module(f"fastprof.cli.{verb}")
        parser = Parser(prog=verb)
        parser.offer_all_help()
        module.add_arguments(parser)
        yield from _of(verb, parser)


def _of(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[Choice]]]:
    choices = [_choice(action) for action in parser._actions if not isinstance(action, argparse._SubParsersAction)]
    yield name, [choice for choice in choices if choice.flags or choice.words]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, sub in action.choices.items():
                yield from _of(f"{name} {word}", sub)


def _choice(action: argparse.Action) -> Choice:
    completes, words = getattr(action, "completes", ""), getattr(action, "words", ())
    if action.nargs == 0:
        words = ()
    elif isinstance(action, OfFormat):
        words = action.spellings()
    elif action.metavar == "FORMAT":
        from fastprof import formats

        usable = {"to": "writer", "from_": "reader"}.get(action.dest, "name")
        words = [f.name for f in formats.formats() if getattr(f, usable)]
    elif not words:
        words = action.choices or ()
    flags = [flag for flag in action.option_strings if not flag.startswith("-O ")]
    return Choice(flags, action.help or "", action.nargs != 0, (*map(str, words),), completes == "words")


def _actions(commands: dict[str, list[Choice]]) -> dict[str, list[str]]:
    """The actions of each verb that has any."""
    found: dict[str, list[str]] = {}
    for name in commands:
        verb, _, action = name.partition(" ")
        if action:
            found.setdefault(verb, []).append(action)
    return found


def _bash(commands: dict[str, list[Choice]]) -> str:
    lines = [
        "_fastprof() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} words= list=",
        "    # bash splits --flag=value into three words",
        '    [ "$cur" = = ] && cur= && prev=${COMP_WORDS[COMP_CWORD-1]}',
        '    [ "$prev" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        COMPREPLY=($(compgen -W {quote(" ".join((*VERBS, "help", "--help", "--version")))} -- "$cur"))',
        "        return",
        "    fi",
        "    case $verb in",
        f"    help) words={quote(' '.join(VERBS))} ;;",
    ]
    for verb, actions in _actions(commands).items():
        lines += [
            f"    {verb})",
            f'        [ "$COMP_CWORD" -eq 2 ] && words={quote(" ".join(actions))}',
            '        verb="$verb ${COMP_WORDS[2]}" ;;',
        ]
    lines += ["    esac", '    case "$verb $prev" in']
    for name, choices in commands.items():
        for choice in choices:
            if choice.flags and choice.takes_value:
                cases = "|".join(quote(f"{name} {flag}") for flag in choice.flags)
                list_ = " list=1" if choice.several else ""
                what = f"words={quote(' '.join(choice.words))}{list_}" if choice.words else "return"
                lines.append(f"    {cases}) {what} ;;")
    lines += ['    *) case "$cur $verb" in']
    for name, choices in commands.items():
        flags = " ".join(flag for choice in choices for flag in choice.flags)
        lines.append(f"        -*\\ {quote(name)}) words={quote(flags)} ;;")
        for choice in choices:
            if not choice.flags:
                lines.append(f"        *\\ {quote(name)}) words={quote(' '.join(choice.words))} ;;")
    lines += [
        "        esac ;;",
        "    esac",
        '    [ -n "$words" ] || return',
        '    if [ -n "$list" ]; then',
        '        COMPREPLY=($(compgen -P "${cur%"${cur##*,}"}" -W "$words" -- "${cur##*,}"))',
        "    else",
        '        COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "    fi",
        "}",
        "complete -o default -F _fastprof fastprof",
    ]
    return "\n".join(lines) + "\n"


def _zsh(commands: dict[str, list[Choice]]) -> str:
    """The script for zsh, which can run completions written for bash."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)


def _fish(commands: dict[str, list[Choice]]) -> str:
    lines = [f"complete -c fastprof -n __fish_use_subcommand -f -a {verb} -d {quote(VERBS[verb])}" for verb in VERBS]
    lines.append("complete -c fastprof -n __fish_use_subcommand -f -a help -d 'show the options of a verb'")
    lines.append(f"complete -c fastprof -n '__fish_seen_subcommand_from help' -f -a {quote(' '.join(VERBS))}")
    for verb, actions in _actions(commands).items():
        unchosen = f"__fish_seen_subcommand_from {verb}; and not __fish_seen_subcommand_from {' '.join(actions)}"
        lines.append(f"complete -c fastprof -n {quote(unchosen)} -f -a {quote(' '.join(actions))}")
    for name, choices in commands.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        for choice in choices:
            words = [f"complete -c fastprof -n {quote(seen)}"]
            words += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in choice.flags]
            takes = choice.takes_value and bool(choice.flags)
            words += ["-r"] * takes + ["-f"] * (not takes or bool(choice.words))
            if choice.words:
                values = f"(__fish_append , {' '.join(choice.words)})" if choice.several else " ".join(choice.words)
                words.append(f"-a {quote(values)}")
            lines.append(f"{' '.join(words)} -d {quote(choice.help.replace('%%', '%'))}")
    return "\n".join(lines) + "\n"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
