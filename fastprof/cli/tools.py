"""The tools of `fastprof mcp`: each call is a command line, in a process of its own (confined.py).

Paths are resolved here, and checked again there when they are opened.  Values become `--option=VALUE` or follow `--`,
so that a value that begins with - is not read as an option.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import anyio
from mcp import types
from mcp.server.lowlevel import Server as LowLevel
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from fastprof.cli import VERBS
from fastprof.cli.as_json import document, json_text
from fastprof.cli.budget import BYTES, Answer, fitted_json
from fastprof.cli.confined import OUTSIDE
from fastprof.core import lazy_re as re
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import UsageError
from fastprof.core.urls import is_url
from fastprof.core.version import __version__

_LONGEST = 20_000  # characters of an argument
_AT_ONCE = 2  # calls
_OUTPUT = 1 << 26  # bytes that a call may print
_LIST_STORE = "archive list --json --"
_LEAST, _MOST = 200, 100_000  # tokens of an answer

_TEXT: dict[str, Any] = {"type": "string"}
_PATH: dict[str, Any] = {"type": "string", "description": "a file, folder or STORE:NAME below the server's folders"}
_BUDGET = {"type": "integer", "minimum": _LEAST, "maximum": _MOST, "description": "size of the answer, in tokens"}
_N: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 1_000_000, "description": "rows; 0: all"}
_VALUE: dict[str, Any] = {
    "type": "string",
    "description": "value type, such as cpu or alloc_space; info lists them (totals)",
}
_REGEX: dict[str, Any] = {"type": "string", "description": "regular expression for names of functions"}
# Options of every tool that reads rows, by argument: the flag and what it takes.
_FILTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "value": ("--value", _VALUE),
    "thread": ("--thread", {"type": "string", "description": "keep this thread: its id or name"}),
    "function": ("--function", {"type": "string", "description": "keep functions whose name matches"}),
    "object": ("--object", {"type": "string", "description": "keep functions whose object matches"}),
    "label": ("--label", {"type": "string", "description": "keep samples with this label: KEY=VALUE"}),
    "time_range": ("--time-range", {"type": "string", "description": "keep these times, as 10%:20% or 2ms:5ms"}),
}
_OVER: dict[str, Any] = {"type": "string", "description": "order (default), date, or the key of a label"}
_LABELS: dict[str, Any] = {"type": "string", "description": "labels from paths, as {host}/{commit}.prof"}
_NONE: Mapping[str, dict[str, Any]] = {}
_BY: dict[str, Any] = {
    "type": "string",
    "description": "function (default), line, file, object, category, thread, label:KEY",
}


class Limits(NamedTuple):
    """What a server allows."""

    folders: list[str]  # real paths
    write: str | None  # a real path
    urls: bool
    seconds: int  # of a call
    memory: int  # bytes of a call
    tokens: int  # of an answer, by default


class Refused(Exception):
    """A call that is not made.  Arguments: code and message of the error document."""


class Tool(NamedTuple):
    """A tool: its arguments are paths (resolved), values of options, or words after `--`."""

    does: str
    paths: tuple[str, ...]  # required ones, in their order; those that end in ? may be missing
    options: dict[str, tuple[str, dict[str, Any]]]  # by argument
    words: tuple[str, ...] = ()  # verb and fixed options; none: answered by the server itself
    texts: Mapping[str, dict[str, Any]] = _NONE  # required, after the paths
    filters: bool = True


_TOP = {"by": ("--by", _BY), "n": ("-n", _N), "sort": ("--sort", _TEXT), "focus": ("--focus", _REGEX)}
_CALLS = {"n": ("-n", _N)}
TOOLS: dict[str, Tool] = {
    "list": Tool("List the files of a folder, or the profiles of a store.", ("path?",), {}, filters=False),
    "info": Tool(
        "Describe a profile: format, command, times, threads, totals by value type, losses.",
        ("path",),
        {},
        ("info",),
        filters=False,
    ),
    "explain": Tool(
        "Start here.  What a profile of any format shows: hottest path, functions, lines, what stands out, what is "
        "doubtful; with `new`, what changed.",
        ("path", "new?"),
        {},
        ("explain",),
    ),
    "top": Tool("Rank functions, lines, files, objects, threads or label values by cost.", ("path",), _TOP, ("top",)),
    "callers": Tool(
        "Who calls the functions that match, and at what cost.",
        ("path",),
        _CALLS,
        ("top", "--tree=callers", "--sort=inclusive"),
        {"focus": _REGEX},
    ),
    "callees": Tool(
        "What the functions that match call, and at what cost.",
        ("path",),
        _CALLS,
        ("top", "--tree=callees", "--sort=inclusive"),
        {"focus": _REGEX},
    ),
    "diff": Tool(
        "Compare two profiles: the largest changes.", ("old", "new"), {"by": ("--by", _BY), "n": ("-n", _N)}, ("diff",)
    ),
    "annotate": Tool(
        "Source lines with their costs, of files below the server's folders.",
        ("path",),
        {"file": ("", _TEXT)},
        ("annotate",),
    ),
    "sql": Tool(
        "Query a profile with DuckDB's SQL: tables spans and events (timeline), samples and frames (stacks), graph. "
        "`describe samples` lists the columns.",
        ("path",),
        {},
        ("sql",),
        {"query": _TEXT},
        filters=False,
    ),
    "convert": Tool(
        "Convert a profile to a file below the folder that the server writes to; the suffix of `output` is its format.",
        ("path",),
        {"to": ("--to", _TEXT)},
        ("convert",),
        {"output": _TEXT},
    ),
}
if "trend" in VERBS:
    TOOLS["trend"] = Tool(
        "Which functions of the profiles in a folder or store changed, and since when.",
        ("path",),
        {"over": ("--over", _OVER), "label_path": ("--label-path", _LABELS), "n": ("-n", _N)},
        ("trend",),
        filters=False,
    )


def schema_of_arguments(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    properties: dict[str, Any] = {name.rstrip("?"): _PATH for name in tool.paths} | {**tool.texts}
    properties |= {name: kind for name, (_, kind) in tool.options.items()}
    if tool.filters:
        properties |= {name: kind for name, (_, kind) in _FILTERS.items()}
    required = [name for name in tool.paths if not name.endswith("?")] + [*tool.texts]
    properties["budget_tokens"] = _BUDGET
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def checked(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call.  Errors: Refused."""
    if name not in TOOLS:
        raise Refused("usage", f"unknown tool {name!r:.80}: the tools are {', '.join(TOOLS)}")
    schema = schema_of_arguments(TOOLS[name])
    for key, value in given.items():
        kind = schema["properties"].get(key)
        if kind is None:
            raise Refused("usage", f"{name} has no argument {key!r:.80}: {', '.join(schema['properties'])}")
        if kind["type"] == "integer":
            least, most = kind["minimum"], kind["maximum"]
            if type(value) is not int or not least <= value <= most:
                raise Refused("usage", f"{key} is {value!r:.80}, expected a number from {least:,} to {most:,}")
        elif not isinstance(value, str):
            raise Refused("usage", f"{key} is {value!r:.80}, expected text")
        elif len(value) > _LONGEST or "\0" in value:
            raise Refused("usage", f"{key} is longer than {_LONGEST:,} characters, or has a NUL")
    if missing := [key for key in schema["required"] if key not in given]:
        raise Refused("usage", f"{name} needs {', '.join(missing)}")
    return dict(given)


def resolved(path: str, limits: Limits) -> str:
    """A path below the folders, without links: absolute, or relative to one of them.  Errors: Refused."""
    if "://" in path:
        if not limits.urls or not is_url(path):
            raise Refused("outside", "this server reads no URLs" if not limits.urls else "not a URL that is read")
        return path
    for folder in limits.folders:
        whole = os.path.join(folder, path)
        ends = [i for i, c in enumerate(whole) if c == ":" and i > len(folder)]
        for end in (len(whole), *reversed(ends)):  # STORE:NAME
            if os.path.lexists(whole[:end]):
                real = os.path.realpath(whole[:end])
                if not any(real == one or real.startswith(os.path.join(one, "")) for one in limits.folders):
                    raise Refused("outside", f"{path:.200}: {OUTSIDE}")
                return real + whole[end:]
        normal = os.path.normpath(whole)
        if normal != folder and not any(normal.startswith(os.path.join(one, "")) for one in limits.folders):
            raise Refused("outside", f"{path:.200}: {OUTSIDE}")
    raise Refused("file", f"{path:.200}: no such file in the folders of this server")


def command(name: str, given: Mapping[str, Any], limits: Limits) -> list[str]:
    """The command line of a call.  Errors: Refused."""
    tool = TOOLS[name]
    words = [*tool.words, "--json"]
    if tool.words[0] != "convert":
        words.append(f"--budget-tokens={given.get('budget_tokens', limits.tokens)}")
    options = {**tool.options, **(_FILTERS if tool.filters else {})}
    for key, (flag, _) in options.items():
        if key in given and flag:
            words += [flag + str(given[key])] if flag == "-n" else [f"{flag}={given[key]}"]
    if name in ("callers", "callees"):
        words.append(f"--focus={given['focus']}")
    if name == "annotate":
        words += [f"--source={folder}" for folder in limits.folders]
    if name == "convert":
        words.append(f"--output={_output(given['output'], limits)}")
    words += ["--", *(resolved(given[key], limits) for key in map(_bare, tool.paths) if key in given)]
    if name == "annotate" and "file" in given:
        words.append(given["file"])
    return words + ([given["query"]] if name == "sql" else [])


def _bare(name: str) -> str:
    return name.rstrip("?")


def _output(path: str, limits: Limits) -> str:
    if limits.write is None:
        raise Refused("outside", "this server writes nothing: --write allows it")
    folder, name = os.path.split(os.path.join(limits.write, path))
    real = os.path.realpath(folder)
    if not name or name in (".", "..") or not f"{real}/".startswith(os.path.join(limits.write, "")):
        raise Refused("outside", f"{path:.200}: outside the folder that this server writes to")
    return os.path.join(real, name)


def listed(path: str, limits: Limits) -> dict[str, Any]:
    """The entries of a folder: those whose links lead out are counted, not shown."""
    entries, left_out = [], 0
    for one in sorted(os.scandir(path), key=lambda one: one.name):
        try:
            resolved(one.path, limits)
            kind = "folder" if one.is_dir() else "file"
            entries.append({"name": one.name, "path": one.path, "kind": kind, "bytes": one.stat().st_size})
        except (Refused, OSError):
            left_out += 1
    return {"folders": limits.folders, "path": path, "entries": entries, "left_out": left_out}


_ID = re.compile(r'"id"\s*:\s*(\d{1,15}(?!\d)|"[^"\\]{1,100}")')


class _Lines:
    """The lines of a text file that are messages, with halves of surrogate pairs replaced.  `refuse` answers those that
    the package leaves without an answer: no JSON, JSON that is too deep, numbers of thousands of digits."""

    refuse: Callable[[SessionMessage], Awaitable[None]]

    def __init__(self, file: anyio.AsyncFile[str]) -> None:
        self._file = file

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if "\\ud" in line.lower():
                with suppress(ValueError, RecursionError):
                    whole = json.dumps(json.loads(line), ensure_ascii=False)
                    line = whole.encode("utf-8", "replace").decode() + "\n"
            try:
                types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                if line.strip():
                    error = types.ErrorData(code=types.PARSE_ERROR, message="not a message of JSON-RPC 2.0")
                    of = _ID.search(line)
                    name = json.loads(of.group(1)) if of else None
                    await self.refuse(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=name, error=error)))
                continue
            yield line


class Server:
    """Answers calls, a few at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = anyio.CapacityLimiter(_AT_ONCE)
        self._server: Any = LowLevel(
            "fastprof",
            version=__version__,
            instructions="Profiles of any profiler.  Begin with list and explain; every answer has a limited size, and "
            "its key `cut` states what is missing and how to get it.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    def run(self) -> None:
        anyio.run(self._serve)

    async def _serve(self) -> None:
        lines: Any = _Lines(anyio.wrap_file(open(0, encoding="utf-8", errors="replace", closefd=False)))
        async with stdio_server(stdin=lines) as (read, write):
            lines.refuse = write.send
            await self._server.run(read, write, self._server.create_initialization_options())

    async def _list_tools(self, context: Any, params: Any) -> Any:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.does,
                    input_schema=schema_of_arguments(tool),
                    annotations=types.ToolAnnotations(read_only_hint=name != "convert", open_world_hint=False),
                )
                for name, tool in TOOLS.items()
                if name != "convert" or self._limits.write
            ]
        )

    async def _call_tool(self, context: Any, params: Any) -> Any:
        given = params.arguments or {}
        tokens = given.get("budget_tokens") if type(given.get("budget_tokens")) is int else None
        tokens = min(max(tokens or self._limits.tokens, _LEAST), _MOST)
        try:
            text, is_error = await self._answer(context, params.name, checked(params.name, given), tokens)
        except Refused as error:
            text, is_error = _failure(*error.args), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    async def _answer(self, context: Any, name: str, given: dict[str, Any], tokens: int) -> tuple[str, bool]:
        limits = self._limits
        if name == "list":
            path = resolved(given.get("path") or limits.folders[0], limits)
            if os.path.isdir(path):
                found = listed(path, limits)
                rows = found["entries"]
                answer = Answer(
                    "mcp-list",
                    len(rows),
                    "entries",
                    lambda k: found | {"entries": rows[:k]},
                    print,
                    "list of one folder",
                )
                return fitted_json(answer, BYTES * tokens), False
            words = [*_LIST_STORE.split(), path]
        else:
            words = command(name, given, limits)
        async with self._slots:
            code, out, errors = await self._run(context, words)
        if code in (0, 3, 4) and name not in ("convert", "list"):
            return out.rstrip("\n"), False
        last = next((line for line in reversed(errors.splitlines()) if line.startswith('{"schema": ')), "")
        if code in (0, 3, 4):
            return _fitted(out if name == "list" else last, tokens), False
        if last:
            return _fitted(last, tokens), True
        if code < 0:
            why = f"it took more than {limits.seconds} s" if code == _TIME_OUT else f"it was ended by signal {-code}"
            raise Refused("limit", f"the call was ended: {why}; filters or a smaller profile need less")
        raise Refused("failed", f"exit code {code}: {errors[-300:]}")

    async def _run(self, context: Any, words: list[str]) -> tuple[int, str, str]:
        """Exit code (-signal, or _TIME_OUT), standard output and error."""
        limits = self._limits
        with tempfile.TemporaryDirectory(prefix="fastprof-mcp-") as folder:
            job: dict[str, Any] = {"words": words, "read": limits.folders}
            job |= {"write": [limits.write] if limits.write else []}
            job |= {"urls": limits.urls, "seconds": limits.seconds, "memory": limits.memory}
            kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV") if key in os.environ}
            process = await anyio.open_process(
                [sys.executable, "-P", "-m", "fastprof.cli.confined"],
                stderr=-1,
                cwd=folder,
                env=kept | {"TMPDIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
            texts = {"out": b"", "errors": b""}

            async def read(name: str, stream: Any) -> None:
                async for part in stream:
                    texts[name] += part
                    if len(texts[name]) > _OUTPUT:
                        os.killpg(process.pid, signal.SIGKILL)

            code = _TIME_OUT
            try:
                with anyio.move_on_after(limits.seconds):
                    async with anyio.create_task_group() as reporting:
                        reporting.start_soon(self._report, context, words[0])
                        async with anyio.create_task_group() as streams:
                            streams.start_soon(read, "out", process.stdout)
                            streams.start_soon(read, "errors", process.stderr)
                            assert process.stdin is not None
                            with suppress(anyio.BrokenResourceError, OSError):
                                await process.stdin.send(json.dumps(job).encode())
                                await process.stdin.aclose()
                        code = await process.wait()
                        reporting.cancel_scope.cancel()
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                with anyio.CancelScope(shield=True):
                    await process.aclose()
        return code, texts["out"].decode("utf-8", "replace"), texts["errors"].decode("utf-8", "replace")

    async def _report(self, context: Any, verb: str) -> None:
        """Report progress: the seconds so far, of those that a call may take."""
        seconds = 0
        while True:
            await context.session.report_progress(float(seconds), float(self._limits.seconds), f"fastprof {verb}")
            await anyio.sleep(1)
            seconds += 1


_TIME_OUT = -1000


def _failure(code: str, message: str) -> str:
    content = {"code": code, "message": message, "file": None, "format": None, "offset": None, "line": None}
    return json_text(document("error", content | {"advice": None}))


def _fitted(text: str, tokens: int) -> str:
    """A document of the command line within the budget."""
    try:
        content = json.loads(text)
    except ValueError:
        raise Refused("failed", "the answer is not a document") from None
    name = content.pop("schema").split("/")[1]
    rows = {"archive-list": "profiles"}.get(name, "")
    entries = content.get(rows, [])
    answer = Answer(name, len(entries), rows, lambda k: content | ({rows: entries[:k]} if rows else {}), print, "list")
    try:
        return fitted_json(answer, BYTES * tokens)
    except UsageError as error:
        raise Refused("usage", error.text()) from None
