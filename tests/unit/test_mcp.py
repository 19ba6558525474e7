"""`fastprof mcp`, by the package's own client over a real pipe: tools, limits, and arguments that try to get out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fastprof.cli import main
from fastprof.cli.as_json import schema_of
from tests.support.paths import CORPUS
from tests.unit.test_schemas import checked

pytest.importorskip("mcp")
pytest.importorskip("duckdb")
import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

SECRET = "the secret outside"
Call = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with profiles and with links that lead out of it."""
    base = tmp_path_factory.mktemp("mcp")
    inside, outside = base / "in", base / "outside"
    for one in (inside, outside, base / "out", inside / "runs"):
        one.mkdir()
    for name in ("pprof/good/go-cpulabels.pb", "pair/old.callgrind", "pair/new.callgrind", "pair/words.c"):
        shutil.copy(CORPUS / name, inside)
    (outside / "secret.c").write_text(f"{SECRET}\n")
    (outside / "other.folded").write_text(f"{SECRET} 1\n")
    shutil.copy(CORPUS / "folded/good/plain.folded", inside / "runs")
    (inside / "runs" / "linked.folded").symlink_to(outside / "other.folded")
    (inside / "link").symlink_to(outside)
    (inside / "names.callgrind").write_text(f"events: Ir\nfl={outside / 'secret.c'}\nfn=f\n1 7\n")
    (inside / "slow.folded").write_text(f"main;{'a' * 60}! 1\n")
    assert main(["archive", "add", "-q", str(inside / "all.fpa"), str(inside / "runs" / "plain.folded")]) == 0
    return inside


def session(folder: Path, script: Callable[[Any, Call], Awaitable[None]], *more: str) -> None:
    words = ["-m", "fastprof", "mcp", str(folder), "--write", str(folder.parent / "out"), "--seconds", "20", *more]

    async def run() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                """The document of the answer, or of the error."""
                done = await client.call_tool(tool, arguments)
                (content,) = done.content
                tokens = max(arguments.get("budget_tokens", 2000), 200) if type(arguments) is dict else 2000
                assert len(content.text.encode()) <= 4 * tokens
                found = json.loads(content.text)
                name = found["schema"].split("/")[1]
                assert found["schema"] == schema_of(name) and done.is_error == (name == "error")
                assert SECRET not in content.text
                return found if done.is_error else checked(content.text, name)

            await script(client, call)

    anyio.run(run)


def test_every_tool(folder: Path) -> None:
    async def script(client: Any, call: Call) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"list", "info", "explain", "top", "callers", "callees", "diff", "annotate", "sql", "convert"} <= {
            *tools
        }
        assert all(tool.description and tool.input_schema["additionalProperties"] is False for tool in tools.values())
        found = await call("list")
        assert {one["name"] for one in found["entries"]} >= {"runs", "new.callgrind"} and found["left_out"] == 1
        found = await call("list", path="all.fpa")
        assert [one["name"] for one in found["profiles"]] == ["plain.folded"]
        assert (await call("info", path="all.fpa:plain.folded"))["facts"]["view"] == "stacks"
        assert (await call("explain", path="go-cpulabels.pb"))["total"] == 1740000000
        assert (await call("explain", path="old.callgrind", new="new.callgrind"))["changes"][0]["name"] == "find"
        found = await call("top", path=str(folder / "go-cpulabels.pb"), n=2, value="samples", label="kind=tree")
        assert len(found["rows"]) == 2 and found["value"]["name"] == "samples"
        found = await call("callers", path="go-cpulabels.pb", focus=r"^main\.job$")
        assert [one["name"] for one in found["rows"][0]["callers"]] == ["main.main.func1.1"]
        assert (await call("callees", path="go-cpulabels.pb", focus=r"^main\.job$", n=1))["rows"][0]["callees"]
        assert (await call("diff", old="old.callgrind", new="new.callgrind", n=1))["changed"] == 2
        found = await call("annotate", path="new.callgrind", file="words.c", budget_tokens=600)
        assert found["listings"][0]["path"] == str(folder / "words.c") and found["cut"]
        found = await call("sql", path="go-cpulabels.pb", query="select count(*) n from samples")
        assert found["rows"] == [{"n": 171}]
        found = await call("convert", path="go-cpulabels.pb", output="a.folded")
        assert found["rows"]["stacks_written"] == 122 and (folder.parent / "out" / "a.folded").exists()
        seen: list[Any] = []

        async def progress(*what: Any) -> None:
            seen.append(what)

        await client.call_tool("info", {"path": "new.callgrind"}, progress_callback=progress)
        assert seen and seen[0][1] == 20

    session(folder, script)


OUTSIDE = [
    "/etc/passwd",
    "../outside/other.folded",
    "link/other.folded",
    "link",
    "..",
    "file:///etc/passwd",
    "http://127.0.0.1:1/x",
]
QUERIES = [
    "select * from read_csv('{secret}')",
    "select * from '{secret}'",
    "select * from read_text('{secret}')",
    "select * from glob('/*')",
    "select * from samples where function like (select content from read_text('{secret}'))",
    "copy (select 1) to '{out}/x.csv'",
    "attach '{out}/x.db'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "export database '{out}/e'",
]


def test_nothing_leads_out(folder: Path) -> None:
    outside, out = folder.parent / "outside", folder.parent / "out"

    async def script(client: Any, call: Call) -> None:
        for path in OUTSIDE:
            assert (await call("top", path=path))["code"] == "outside", path
        for path in ("-", "none", "", "x\0y"):
            assert (await call("info", path=path))["code"] in ("file", "usage", "unrecognized", "failed"), path
        assert (await call("top", path="runs"))["code"] in ("file", "failed", "system")  # one of its files is a link
        found = await call("annotate", path="names.callgrind")  # names a file outside
        assert not found["listings"] and found["missing"][0]["name"] == str(outside / "secret.c")
        for query in QUERIES:
            found = await call("sql", path="go-cpulabels.pb", query=query.format(secret=outside / "secret.c", out=out))
            assert found["code"] == "usage", query
        for output in ("../in/new.callgrind", "/etc/x.folded", "..", "", str(folder / "x.folded")):
            assert (await call("convert", path="go-cpulabels.pb", output=output))["code"] == "outside", output
        for values in (
            {"value": "--help"},
            {"focus": "("},
            {"n": -1},
            {"n": "3"},
            {"no-such": 1},
            {"budget_tokens": 7},
        ):
            assert (await call("top", path="go-cpulabels.pb", **values))["code"] == "usage", values
        assert (await call("top", path="go-cpulabels.pb", function="--symbols=/etc/passwd"))["code"] != "internal"
        assert (await call("top"))["code"] == (await call("no-such"))["code"] == "usage"
        assert {one.name for one in out.iterdir()} <= {"a.folded"}

    session(folder, script)


def test_limits_of_time_and_memory(folder: Path) -> None:
    """A call that explodes is ended, and the server goes on."""

    async def script(client: Any, call: Call) -> None:
        found = await call("top", path="slow.folded", focus="(a+)+$")
        assert found["code"] == "limit" and "more than 2 s" in found["message"]
        found = await call("sql", path="go-cpulabels.pb", query="select max(hash(a)) from range(10000000000000) t(a)")
        assert found["code"] in ("limit", "usage")
        assert (await call("list"))["entries"]

    session(folder, script, "--seconds", "2", "--memory", "1G")


def test_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", str(tmp_path / "none")]) == 2
    assert "not a folder" in capsys.readouterr().err
    for words in (["--seconds", "0"], ["--memory", "x"]):
        with pytest.raises(SystemExit):
            main(["mcp", str(tmp_path), *words])


def test_every_line_is_answered(folder: Path) -> None:
    """Even one with half of a surrogate pair, and one that the package's parser refuses."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "top", "arguments": {"path": "\ud800.folded", "focus": "\U0001f600"}},
        },
    ]
    call = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "top", "arguments": {"path": %s}}}'
    wrong = [call % (3, "[" * 9000 + "]" * 9000), call % ('"x"', "9" * 9000), "hello", "[]", call % (7, "1,")]
    words = [sys.executable, "-m", "fastprof", "mcp", str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        for line in (*map(json.dumps, lines), "", *wrong):
            server.stdin.write(line + "\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2 + len(wrong))]
        server.stdin.close()
    refused = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
    assert refused == [(3, -32700), ("x", -32700), (None, -32700), (None, -32700), (7, -32700)]
    answers = [one for one in answers if "error" not in one]
    assert [answer["id"] for answer in answers] == [1, 2]
    (content,) = answers[1]["result"]["content"]
    assert answers[1]["result"]["isError"] and "?.folded: no such file" in json.loads(content["text"])["message"]
