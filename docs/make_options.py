"""Writes options.md from the arguments of all verbs: `make docs`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import fastprof
from fastprof import cli, formats, plan
from fastprof.cli.parser import Parser
from fastprof.core.options import Option, Switch

TITLE = """\
# Options

All options of all verbs, made from their declarations by `make docs`.  `fastprof VERB --help` shows the usual options
of a verb, `fastprof VERB --help-all` all of them, `fastprof formats FORMAT` those of one format.

A *keyword* is an argument of the functions in Python; a switch that is on by default has the effect of its flag as
`NAME=False`.

`-O NAME=VALUE` sets an option of one format; some also have a flag.  A switch takes `yes`, `no` or no value.  `-O
FORMAT.NAME=VALUE` is for a name that both formats of a conversion have.  In Python `root="main"` and
`folded={"root": "main"}` do the same:

    fastprof convert callgrind.out.101 -O root=main -o out.folded
    fastprof convert callgrind.out.101 -O folded.root=main -O nanoseconds=no -o out.folded

An option that nothing in a run uses is refused, unless what it asks for holds anyway, so that a script may give the
same options for every file: `--no-symbols` is fine where no addresses are looked up, `--max-memory` where nothing is
added up, and a value that equals the default is fine everywhere.
"""
MOST_VERBS = 6  # listed by name
# Headings of --help, in this order; then those of single formats.
ORDER = ("input", "output", "rows", "lines", "filters and names", "values, labels and views", "symbols", "many files")
LAST = ("browser", "general")

# Examples of arguments whose option is in no example of a verb, by metavar.
VALUES = {
    "A:B": "10%:20%",
    "BINARY": "./program",
    "CSV": "labels.csv",
    "DIR": "/mnt/image",
    "FILE": "names.txt",
    "FORMAT": "callgrind",
    "GLOB": "'*.prof'",
    "KEY": "host",
    "KEY=VALUE": "host=web1",
    "MICROSECONDS": "4000",
    "N": "4",
    "NAME": "main",
    "NANOSECONDS": "1700000000000000000",
    "NAME=VALUE": "root=main",
    "OLD=NEW": "ns=time/nanoseconds",
    "PATTERN": "'{host}/*.prof'",
    "PLAN": "plan.jsonl",
    "REGEX": "'^std::'",
    "S": "60",
    "SHARE": "1%",
    "SIZE": "64M",
    "TEXT": "'before the change'",
    "TID": "7",
    "s/A/B/": r"'s/\.part\.[0-9]+$//'",
}
# Better ones for single flags, and for those of formats an input or output that uses them.
GIVEN = {
    "--base-of": "7",
    "--budget-tokens": "2000",
    "--collapse-object": "libpython",
    "--counts": "1",
    "--fan-in": "32",
    "--from": "gperftools",
    "--max-depth": "200",
    "--hide-object": "libc",
    "--mod-filename": "'s/^.build//'",
    "--mod-object": "'s/-[0-9.]+$//'",
    "--normalize": "total",
    "--object": "libc",
    "--partition": "host",
    "--root-at": "'^main.run$'",
    "--subtree": "'main;run;parse'",
    "--port": "8080",
    "--set-label": "host=web1",
    "--weight": "canary=3",
    "--significance": "10%",
    "--spec": "'event:CPU_CLK_UNHALTED'",
    "--table": "samples",
    "--width": "100",
    "-O oprofile.add_up": "cpu,tid",
    "-O perfetto.data": "samples",
}
ARGUMENTS = {
    "batch convert": "dumps/ -t pprof -o out/",
    "batch merge": "dumps/ -o all.pb.gz",
    "diff": "old.prof new.prof",
    "view": "trace.xray -s ./program --serve",
}
INPUTS = {
    "firefox": "profile.json.gz",
    "massif": "massif.out.101",
    "oprofile": "oprofile_data/",
    "perf": "perf.data",
}
FILES = {
    "--aggregate": "callgrind.out.101 -o all.callgrind",
    "--budget": "trace.xray -o trace.pftrace",
    "--compute-events": "callgrind.out.101 -o out.callgrind",
    "--append": "dumps/ -t parquet --set-label host=web1 --partition host -o all/",
    "--fan-in": "dumps/ -o all.pb.gz -j 4",
    "--frames": "callgrind.out.101 -o cpu.folded",
    "--intersect": "callgrind.out.1 callgrind.out.2 -o both.callgrind",
    "--labels-from": "dumps/ -o all.pb.gz",
    "--label-input": "dumps/ -o all.pb.gz",
    "--normalize": "web1.prof canary.prof -o all.pb.gz",
    "--weight": "web1.prof canary.prof -o all.pb.gz",
    "--label-path": "dumps/ -o all.pb.gz",
    "--branches": "perf.data -o branches.pb.gz",
    "--max-depth": "cpu.pb.gz -o cpu.speedscope.json",
    "--no-inlines": "cpu.pb.gz -o cpu.callgrind",
    "--partition": "dumps/ -t parquet --set-label host=web1 -o all/",
    "--part": "callgrind.out.101 -o part.callgrind",
    "--split": "trace.xray -o trace.pftrace",
    "--stats": "old.llvmprof new.llvmprof",
    "--stacks": "callgrind.out.101 -o cpu.pb.gz",
    "--table": "cpu.pb.gz -o cpu.parquet",
    "--time-range": "trace.xray -o trace.callgrind",
    "--time-unit": "trace.xray -o trace.callgrind",
    "--thread": "perf.data -o cpu.pb.gz",
    "--union": "callgrind.out.1 callgrind.out.2 -o both.callgrind",
}


class Argument(NamedTuple):
    verb: str  # "batch convert"
    heading: str
    action: Any  # argparse.Action


def parsers(verb: str) -> Iterator[tuple[str, Any, str]]:
    """A verb's parser and those of its actions: name, parser, examples."""
    module: Any = import_module(f"fastprof.cli.{verb}")
    parser = Parser(prog=f"fastprof {verb}")
    parser.offer_all_help()
    module.add_arguments(parser)
    yield verb, parser, module.EXAMPLES
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, sub in action.choices.items():
                yield f"{verb} {word}", sub, sub.epilog or ""


def arguments() -> tuple[dict[str, list[Argument]], list[str]]:
    """The options by their longest flag, in the order of the verbs, and the lines of all examples."""
    found: dict[str, list[Argument]] = {}
    examples: list[str] = []
    for verb in cli.VERBS:
        for name, parser, text in parsers(verb):
            lines = re.sub(r"\\\n|(?<=\|)\n", " ", text).splitlines()
            examples += [re.sub(r"\s+", " ", line.partition(" #")[0]).strip() for line in lines if "fastprof " in line]
            for group in parser._action_groups:
                for action in group._group_actions:
                    if action.option_strings:
                        found.setdefault(max(action.option_strings, key=len), []).append(
                            Argument(name, group.title or "", action)
                        )
    return found, examples


def by_heading(found: dict[str, list[Argument]]) -> dict[str, list[str]]:
    """Flags by heading, in the order shown."""
    first = {flag: mine[0].heading for flag, mine in found.items()}
    first |= {flag: "general" for flag, heading in first.items() if heading == "help"}
    formats = sorted({heading for heading in first.values() if heading not in ORDER + LAST})
    return {heading: [f for f in found if first[f] == heading] for heading in (*ORDER, *LAST, *formats)}


def value_of(action: Any) -> str:
    if action.nargs == 0:
        return ""
    return str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())


def example_of(flag: str, mine: list[Argument], examples: Iterable[str]) -> str:
    spellings = [re.escape(one) for argument in mine for one in argument.action.option_strings]
    used = re.compile(rf"(?<!\S)(?:{'|'.join(spellings)})(?![\w-])")
    found = sorted((line for line in examples if used.search(line)), key=len)
    if found:
        return found[0]
    verb, action, value = mine[0].verb, mine[0].action, value_of(mine[0].action)
    words = [str(word) for word in action.choices or getattr(action, "words", ()) or ()]
    given = GIVEN.get(flag, VALUES.get(value, words[0] if words else value)) if value else ""
    between = ("=" if flag.startswith("-O ") else " ") if value else ""
    default = "cpu.prof -o cpu.pb.gz" if verb == "convert" else "cpu.pb.gz"
    files = FILES.get(flag) or (verb != "convert" and ARGUMENTS.get(verb))
    if flag == "--significance":  # options go ahead of --
        return "fastprof diff --significance 10% old/1.prof old/2.prof -- new/1.prof new/2.prof"
    return f"fastprof {verb} {files or of_format(flag) or default} {flag}{between}{given}"


def of_format(flag: str) -> str:
    """An input of the format of an option, or an output if its writer uses the option."""
    for one in formats.formats():
        suffix = next(iter(one.suffixes), "")
        if flag in {option.flag for option in (*one.reads, *one.selects) if option.format}:
            return f"{INPUTS.get(one.name, f'app{suffix}')} -o app.pb.gz"
        if flag in {option.flag for option in one.writes if option.format}:
            return f"{'trace.xray' if one.view == 'timeline' else 'cpu.pb.gz'} -o app{suffix}"
    return ""


def sentences(mine: list[Argument]) -> Iterator[str]:
    """What an option does; where verbs differ, each with its verbs."""
    texts: dict[str, list[str]] = {}
    for argument in mine:
        text = (argument.action.help or "").replace("%%", "%")
        details = getattr(argument.action, "details", "")
        text = text[:1].upper() + text[1:]
        texts.setdefault(f"{text}.  {details}" if details else f"{text}.", []).append(argument.verb)
    for text, verbs in texts.items():
        yield f"{text}" if len(texts) == 1 else f"* {', '.join(f'`{verb}`' for verb in verbs)}: {text}"


def default_of(option: Option[Any] | None, action: Any) -> str:
    if option is not None:
        return "off" if isinstance(option.kind, Switch) else str(option.default or "")
    return {None: "", argparse.SUPPRESS: "", False: "off"}.get(action.default, str(action.default))


def entry(flag: str, mine: list[Argument], examples: list[str], option: Option[Any] | None) -> list[str]:
    action = mine[0].action
    flags = ", ".join(f"`{one} {value_of(action)}`".replace(" `", "`") for one in action.option_strings)
    facts = [flags]
    if option is not None:
        keyword = option.name + "=False" * (option.default is True)
        facts.append(f"keyword `{keyword}`")
        if option.kind.values and not isinstance(option.kind, Switch):
            facts.append("values " + ", ".join(f"`{word}`" for word in option.kind.values.split("|")))
    if default := default_of(option, action):
        facts.append(f"default: {default}")
    verbs = [*dict.fromkeys(argument.verb for argument in mine)]
    facts.append(f"verbs: {', '.join(verbs)}" if len(verbs) <= MOST_VERBS else f"{len(verbs)} verbs and actions")
    if option is not None and (owners := plan.owners(option)):
        facts.append(f"used by: {owners}")
    lines = [f"### {flag}", "", *sentences(mine), "", "; ".join(facts) + ".", ""]
    return [*lines, f"    {example_of(flag, mine, examples)}", ""]


def text() -> str:
    found, examples = arguments()
    options = {option.flag: option for verb in fastprof._OPTIONS for option in fastprof._options(verb)}
    options |= {option.flag: option for option in plan.known_options()}
    lines = [TITLE]
    for heading, flags in by_heading(found).items():
        lines += [f"## {heading}", ""]
        for flag in flags:
            lines += entry(flag, found[flag], examples, options.get(flag))
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "options.md").write_text(text())
