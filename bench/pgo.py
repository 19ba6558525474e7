"""What profiles are worth to compilers: eight programs, built plainly, instrumented, and with profiles of fastprof.

    mkdir sources && cd sources
    pip download --no-deps --no-binary :all: quickjs zstandard brotli lz4 python-rapidjson jsonnet
    pip download --no-deps --no-binary :all: lupa                              (builds LuaJIT first)
    npm pack better-sqlite3
    cd .. && python -m bench.pgo sources FOLDER [PROGRAM ...] [--compiler clang-19|gcc] [--samples]

Unpacks the archives of `sources` that are there into FOLDER, builds the programs there, trains them on one input and
measures them on another, larger one.  The figure is the number of instructions that Callgrind counts, which other
load does not change.  `Callgrind -O0`, `-O2` and `lines`: profiles of Callgrind over builds of that level, the last
without addresses over the -O0 build.  `samples`: `perf record -e cpu-clock:u` of the -O2 build.

--samples answers another question: from how many samples on a profile helps.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import fastprof

CODEC = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%s
int main(int argc, char **argv) {
    FILE *f = fopen(argv[1], "rb");
    size_t room = 1 << 24;
    unsigned char *in = malloc(room), *out = malloc(2 * room), *back = malloc(room);
    size_t n = fread(in, 1, room, f), m = 0, k = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        %s
        if (k != n || memcmp(in, back, n)) return 1;
    }
    printf("%%zu %%zu\\n", n, m);
    return 0;
}
"""
ZSTD = (
    '#include "zstd.h"',
    "m = ZSTD_compress(out, 2 * room, in, n, 5); k = ZSTD_decompress(back, room, out, m);",
)
BROTLI = (
    "#include <brotli/encode.h>\n#include <brotli/decode.h>",
    "m = 2 * room; k = room; BrotliEncoderCompress(6, 22, BROTLI_MODE_GENERIC, n, in, &m, out);"
    "BrotliDecoderDecompress(m, out, &k, back);",
)
LZ4 = (
    '#include "lz4.h"\n#include "lz4hc.h"',
    "m = LZ4_compress_default((char *)in, (char *)out, n, 2 * room);"
    "m = LZ4_compress_HC((char *)in, (char *)out, n, 2 * room, 4);"
    "k = LZ4_decompress_safe((char *)out, (char *)back, m, room);",
)
SQLITE = """
#include <stdio.h>
#include "sqlite3.h"
static int row(void *p, int n, char **values, char **names) { printf("%s\\n", values[0]); return 0; }
int main(int argc, char **argv) {
    static char sql[1 << 24];
    sqlite3 *db;
    FILE *f = fopen(argv[1], "rb");
    if (!fread(sql, 1, sizeof sql - 1, f) || sqlite3_open(":memory:", &db)) return 1;
    return sqlite3_exec(db, sql, row, 0, 0);
}
"""
QUICKJS = """
#include <stdio.h>
#include <string.h>
#include "quickjs.h"
int main(int argc, char **argv) {
    static char text[1 << 16];
    FILE *f = fopen(argv[1], "rb");
    JSRuntime *runtime = JS_NewRuntime();
    JSContext *context = JS_NewContext(runtime);
    size_t n = fread(text, 1, sizeof text - 1, f);
    JSValue value = JS_Eval(context, text, n, "bench", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(value)) return 1;
    printf("%s\\n", JS_ToCString(context, value));
    return 0;
}
"""
LUA_SCRIPT = """
local n = {n}
local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
local Point = {} Point.__index = Point
function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end
function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end
for round = 1, n do
  local words, x = {}, 42 + round
  for i = 1, 1500 do x = (x * 1103515245 + 12345) % 2147483648 words[i] = string.format("%x-%d", x, i) end
  table.sort(words, function(a, b) return a:reverse() < b:reverse() end)
  local counts = {} for w in table.concat(words, " "):gmatch("%x+") do counts[w] = (counts[w] or 0) + 1 end
  local p = Point.new(0, 0) for i = 1, 6000 do p = p:add(Point.new(i, 1.5)) end
  local primes, found = {}, 0 for i = 2, 8000 do primes[i] = true end
  for i = 2, 8000 do if primes[i] then found = found + 1 for j = i * i, 8000, i do primes[j] = false end end end
  print(fib(15), p.x, found, counts["0"])
end
"""
RAPIDJSON = """
#include <cstdio>
#include <cstdlib>
#include "rapidjson/document.h"
#include "rapidjson/prettywriter.h"
#include "rapidjson/stringbuffer.h"
using namespace rapidjson;
static size_t walk(const Value &v) {
    size_t n = 1;
    if (v.IsObject()) for (auto &m : v.GetObject()) n += m.name.GetStringLength() + walk(m.value);
    if (v.IsArray()) for (auto &e : v.GetArray()) n += walk(e);
    return v.IsString() ? n + v.GetStringLength() : n;
}
int main(int argc, char **argv) {
    static char text[1 << 24];
    FILE *f = fopen(argv[1], "rb");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    size_t n = 0;
    for (int i = 0; i < 10; i++) {
        Document d;
        if (d.Parse<kParseFullPrecisionFlag>(text).HasParseError()) return 1;
        StringBuffer flat, pretty;
        Writer<StringBuffer> w(flat);
        PrettyWriter<StringBuffer> p(pretty);
        d.Accept(w);
        d.Accept(p);
        n += walk(d) + flat.GetSize() + pretty.GetSize();
    }
    printf("%zu\\n", n);
    return 0;
}
"""
JSONNET = """
#include <cstdio>
extern "C" {
#include "libjsonnet.h"
}
int main(int argc, char **argv) {
    static char text[1 << 16];
    FILE *f = fopen(argv[1], "rb");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    int failed;
    char *out = jsonnet_evaluate_snippet(jsonnet_make(), "bench", text, &failed);
    puts(out);
    return failed;
}
"""
JSONNET_SCRIPT = """
local fib(k) = if k < 2 then k else fib(k - 1) + fib(k - 2);
local sieve(n) = std.filter(function(i) std.all([i % j != 0 for j in std.range(2, 9) if j < i]), std.range(2, n));
local Service = { name:: error "no name", port: 80, url: "http://%s:%d/" % [self.name, self.port], tags: [] };
local services = {
  ["svc%d" % i]: Service + { name:: "web-" + i, port: 8000 + i * 7 % 91, tags+: ["t%d" % (i % 5), "all"] }
  for i in std.range(1, 3 * {n})
};
{
  fib: fib(6 + {n}),
  primes: std.foldl(function(a, b) a + b, sieve(16 * {n}), 0),
  services: services,
  sorted: std.sort(std.map(function(k) std.md5(k), std.objectFields(services))),
  text: std.join(",", [std.asciiUpper(services[k].url) for k in std.objectFields(services)]),
  parsed: std.parseJson(std.manifestJsonEx(services.svc1, "  ")),
}
"""
JS_SCRIPT = """
function fib(k) { return k < 2 ? k : fib(k - 1) + fib(k - 2); }
class Point { constructor(x, y) { this.x = x; this.y = y; } add(o) { return new Point(this.x + o.x, this.y + o.y); } }
let out = [];
for (let round = 0; round < {n}; round++) {
    let words = [], x = 42 + round;
    for (let i = 0; i < 800; i++) { x = (x * 1103515 + 12345) % 2147483648; words.push(x.toString(16) + "-" + i); }
    words.sort((a, b) => a.split("").reverse().join("") < b.split("").reverse().join("") ? -1 : 1);
    let counts = {}; for (const w of words.join(" ").match(/[0-9a-f]+/g)) counts[w] = (counts[w] || 0) + 1;
    let p = new Point(0, 0); for (let i = 0; i < 4000; i++) p = p.add(new Point(i, 1.5));
    let primes = new Array(5000).fill(true), found = 0;
    for (let i = 2; i < 5000; i++) if (primes[i]) { found++; for (let j = i * i; j < 5000; j += i) primes[j] = false; }
    out.push(fib(14), p.x, found, JSON.parse(JSON.stringify(counts))["0"]);
}
out.join(" ");
"""


class Program(NamedTuple):
    archive: str  # how the name of its archive begins
    sources: tuple[str, ...]  # patterns in it
    main: str  # a file to be written; "": it has one
    flags: tuple[str, ...]  # {} stands for the folder of the archive
    input: str  # "script", "bytes", "sql", "json"
    suffix: str = "c"  # "cpp"
    embedded: str = ""  # a file of the archive, which NAME.h beside the sources holds as numbers


CLANG = ("-mllvm", "-sample-profile-use-profi", "-mllvm", "-inline-enable-cost-benefit-analysis")

PROGRAMS = {
    "lua": Program("lupa", ("third-party/lua54/onelua.c",), "", ("-DMAKE_LUA",), LUA_SCRIPT),
    "quickjs": Program(
        "quickjs",
        tuple(f"upstream-quickjs/{name}.c" for name in ("quickjs", "cutils", "libbf", "libregexp", "libunicode")),
        QUICKJS,
        ("-I{}/upstream-quickjs", "-D_GNU_SOURCE", '-DCONFIG_VERSION="x"', "-DCONFIG_BIGNUM"),
        JS_SCRIPT,
    ),
    "sqlite": Program(
        "better-sqlite3",
        ("deps/sqlite3/sqlite3.c",),
        SQLITE,
        ("-I{}/deps/sqlite3", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"),
        "sql",
    ),
    "zstd": Program("zstandard", ("zstd/zstd.c",), CODEC % ZSTD, ("-I{}/zstd",), "bytes"),
    "brotli": Program(
        "brotli", ("c/common/*.c", "c/enc/*.c", "c/dec/*.c"), CODEC % BROTLI, ("-I{}/c/include",), "bytes"
    ),
    "rapidjson": Program("python_rapidjson", (), RAPIDJSON, ("-I{}/rapidjson/include",), "json", "cpp"),
    "jsonnet": Program(
        "jsonnet",
        (
            *(f"core/{name}.cpp" for name in ("desugarer", "formatter", "libjsonnet", "lexer", "parser", "pass")),
            *(f"core/{name}.cpp" for name in ("path_utils", "static_analysis", "string_utils", "vm")),
            "third_party/*/*.cpp",
        ),
        JSONNET,
        ("-I{}/include", "-I{}/core", "-I{}/third_party/md5", "-I{}/third_party/json", "-I{}/third_party/rapidyaml"),
        JSONNET_SCRIPT,
        "cpp",
        "stdlib/std.jsonnet",
    ),
    "lz4": Program("lz4", ("lz4libs/lz4.c", "lz4libs/lz4hc.c"), CODEC % LZ4, ("-I{}/lz4libs",), "bytes"),
}


def sql(n: int) -> str:
    """Inserts, an index, groups, a join, updates."""
    chosen = random.Random(n)
    lines = ["create table a(i integer primary key, k integer, t text); create table b(k integer, v real); begin;"]
    for i in range(n):
        lines.append(f"insert into a values({i}, {chosen.randrange(200)}, 'text {chosen.randrange(10**6)}');")
        lines.append(f"insert into b values({chosen.randrange(200)}, {chosen.random()});")
    lines += [
        "commit; create index ak on a(k); create index bk on b(k);",
        "select sum(n) from (select k, count(*) n, max(t) from a group by k order by max(t));",
        "select count(*) from a join b on a.k = b.k where b.v > 0.5 and a.t like '%7%';",
        "update a set t = upper(t) || k where k % 3 = 0; select length(group_concat(t)) from a;",
    ]
    return "\n".join(lines)


def json_text(n: int) -> str:
    """Objects of numbers, text with escapes, lists."""
    chosen = random.Random(n)
    rows = [
        {
            "id": i,
            "name": f"name {chosen.randrange(10**6)}\n\u00e9",
            "ratio": chosen.random(),
            "tags": [chosen.choice(("a", "bc", "def")) for _ in range(chosen.randrange(6))],
            "at": {
                "x": chosen.randrange(10**6),
                "y": -chosen.randrange(10**3),
                "ok": chosen.random() < 0.5,
                "no": None,
            },
        }
        for i in range(n // 4)
    ]
    return json.dumps(rows)


def text_of(folder: Path, nbytes: int) -> bytes:
    """Sources of the standard library."""
    paths = sorted(Path(subprocess.__file__).parent.glob("*.py"))
    whole = b"".join(path.read_bytes() for path in paths)
    return whole[nbytes : 2 * nbytes]  # other bytes for each size


class Build:
    """One program with one compiler in a folder of its own."""

    def __init__(self, name: str, sources: Path, folder: Path, compiler: str) -> None:
        self.program, self.folder, self.compiler = PROGRAMS[name], folder / name / compiler, compiler
        self.is_clang = "clang" in compiler
        self.folder.mkdir(parents=True, exist_ok=True)
        source = _unpacked(sources, folder / name / "source", self.program.archive)
        self.sources = [str(path) for pattern in self.program.sources for path in sorted(source.glob(pattern))]
        if embedded := self.program.embedded:
            content = (source / embedded).read_bytes()
            (self.folder / f"{Path(embedded).name}.h").write_text(",".join(map(str, (*content, 0))))
        if self.program.main:
            main = self.folder / f"bench_main.{self.program.suffix}"
            main.write_text(self.program.main)
            self.sources.append(str(main))
        self.flags = ["-g", "-gdwarf-4", "-w", "-I.", *(flag.replace("{}", str(source)) for flag in self.program.flags)]
        if self.is_clang:
            self.flags += ["-fdebug-info-for-profiling", "-funique-internal-linkage-names"]
        self.train, self.measure = ([*self._input(n)] for n in (2, 5))

    def _input(self, n: int) -> Iterable[str]:
        path = self.folder / f"input{n}"
        if self.program.input == "bytes":
            path.write_bytes(text_of(self.folder, n * 150_000))
            return str(path), "1"
        made = {"sql": sql, "json": json_text}.get(self.program.input)
        given = made(n * 1200) if made else self.program.input.replace("{n}", str(n))
        path.write_text(given)
        return (str(path),)

    def run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-3000:]}")
        return done.stderr if "valgrind" in command else done.stdout

    def build(self, output: str, *flags: str) -> str:
        compiler = self.compiler
        if self.program.suffix == "cpp":
            compiler = compiler.replace("clang", "clang++").replace("gcc", "g++")
        self.run(compiler, *self.flags, *flags, *self.sources, "-o", output, "-lm")
        return output

    def callgrind(self, program: str, given: list[str], output: str, *options: str) -> int:
        """The number of instructions."""
        command = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--demangle=no", *options)
        said = self.run(*command, f"./{program}", *given)
        (n,) = re.findall(r"refs:\s+([\d,]+)", said)
        return int(n.replace(",", ""))

    def profiled(self, name: str, source: str, program: str, **options: object) -> str:
        """A build with a profile of fastprof."""
        suffix, flag = ("llvmprof", "-fprofile-sample-use") if self.is_clang else ("afdo", "-fauto-profile")
        profile = self.folder / f"{name}.{suffix}"
        symbols = [str(self.folder / program)]
        fastprof.convert(self.folder / source, profile, symbols=symbols, **options)  # type: ignore[arg-type]
        try:
            return self.build(name, "-O2", f"{flag}={profile}", *(CLANG if self.is_clang else ()))
        except SystemExit as error:  # of the compiler itself
            if "internal compiler error" not in str(error):
                raise
            return ""

    def instrumented(self) -> str:
        shutil.rmtree(self.folder / "raw", ignore_errors=True)
        if self.is_clang:
            self.build("counting", "-O2", f"-fprofile-generate={self.folder / 'raw'}")
            self.run("./counting", *self.train)
            raw = map(str, (self.folder / "raw").glob("*.profraw"))
            self.run(
                f"llvm-profdata{self.compiler.removeprefix('clang')}", "merge", *raw, "-o", "instrumented.profdata"
            )
            return self.build("instrumented", "-O2", "-fprofile-use=instrumented.profdata")
        # static functions are found by the name of the output, too
        self.build("instrumented", "-O2", "-fprofile-generate", "-fprofile-update=single")
        self.run("./instrumented", *self.train)
        return self.build("instrumented", "-O2", "-fprofile-use", "-Werror=missing-profile")

    def recorded(self, output: str, seconds: int) -> str:
        """Samples of the -O2 build, which is run until there are enough."""
        loop = f'end=$(($(date +%s) + {seconds})); while [ $(date +%s) -lt $end ]; do "$@" > /dev/null; done'
        command = ("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "20000", "-o", output, "--")
        self.run(*command, "sh", "-c", loop, "sh", "./plain", *self.train)
        return output


def _unpacked(sources: Path, folder: Path, name: str) -> Path:
    if not folder.exists():
        found = [*sources.glob(f"{name}-*.tar.gz"), *sources.glob(f"{name}-*.tgz")]
        if not found:
            raise SystemExit(f"{sources}: there is no {name}-*.tar.gz; see python -m bench.pgo --help")
        with tarfile.open(found[0]) as archive:
            archive.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    return inner


def table(builds: dict[str, Build]) -> None:
    columns = ("instrumented", "Callgrind -O0", "Callgrind -O2", "lines", "samples")
    print("| program | compiler | plain | " + " | ".join(columns) + " |\n|---|---|---|" + "---|" * len(columns))
    for name, build in builds.items():
        options = ("--dump-instr=yes",)
        build.build("plain", "-O2")
        build.build("O0", "-O0")
        build.callgrind("O0", build.train, "O0.callgrind", *options)
        build.callgrind("O0", build.train, "lines.callgrind")
        build.callgrind("plain", build.train, "O2.callgrind", *options)
        made = [build.instrumented()]
        made += [build.profiled("ours0", "O0.callgrind", "O0"), build.profiled("ours2", "O2.callgrind", "plain")]
        made.append(build.profiled("ours_lines", "lines.callgrind", "O0"))
        build.recorded("perf.data", 5)
        made.append(build.profiled("ours_samples", "perf.data", "plain"))
        plain = build.callgrind("plain", build.measure, "/dev/null")
        counts = [build.callgrind(one, build.measure, "/dev/null") if one else 0 for one in made]
        gain = plain - counts[0]
        cells = [f"{counts[0] / 1e6:.1f}"]
        for n in counts[1:]:
            share = f" ({100 * (plain - n) / gain:.0f} %)" if gain > 0.02 * plain else ""
            cells.append(f"{n / 1e6:.1f}{share}" if n else "the compiler fails")
        print(f"| {name} | {build.compiler} | {plain / 1e6:.1f} | " + " | ".join(cells) + " |", flush=True)


def samples(builds: dict[str, Build]) -> None:
    """Instructions of builds with profiles of ever more of one recording's samples."""
    for name, build in builds.items():
        build.build("plain", "-O2")
        build.recorded("many.data", 60)
        all_of_it = fastprof.info(build.folder / "many.data").facts["records"]
        plain = build.callgrind("plain", build.measure, "/dev/null")
        print(f"| {name} | 0 | {plain / 1e6:.1f} |", flush=True)
        part = 1.0
        while part * all_of_it > 500:
            build.profiled("part", "many.data", "plain", time_range=f"0%:{100 * part:.4f}%")
            n = build.callgrind("part", build.measure, "/dev/null")
            print(f"| {name} | {part * all_of_it:,.0f} | {n / 1e6:.1f} |", flush=True)
            part /= 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=[*PROGRAMS])
    parser.add_argument("--compiler", default="clang-19")
    parser.add_argument("--samples", action="store_true", help="how many samples a profile needs")
    args = parser.parse_args()
    folder = args.folder.resolve()
    builds = {name: Build(name, args.sources, folder, args.compiler) for name in args.programs}
    (samples if args.samples else table)(builds)


if __name__ == "__main__":
    sys.exit(main())
