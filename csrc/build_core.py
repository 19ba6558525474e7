"""Declares the C core to cffi (API mode), from the headers themselves.

Each header's part from its last #include or `cffi-begin` to `cffi-end`, or the header's end, is plain C
without preprocessor lines; put together in the order of the layers it is the cdef.
Headers whose first comment says "Private" or "C only" have no such part.
Of a struct Python sees what stands above the comment `private from here on`.
What is declared with FP_COUNT (core/fp.h) becomes a table, fastprof/core/counted.py.

Functions of a part are called with a guard (core/guard.h), unless it begins with `cffi-begin` without `guarded`.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from pprint import pformat

from cffi import FFI

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from make_stub import stub  # noqa: E402

# A header may only use headers ahead of it: first the core, then what formats share, then formats and bridges, which do
# not include each other, then the ends.
FIRST = ["core/fp.h", "core/buf.h", "core/hash_key.h", "core/model.h", "core/batch.h"]
LAYERS = {"core": 0, "symbols": 1, "chrome": 1, "ends": 3}
FOUND = sorted(p.relative_to(HERE).as_posix() for p in HERE.rglob("*.h"))
HEADERS = FIRST + sorted(
    (name for name in FOUND if name not in FIRST), key=lambda name: LAYERS.get(name.partition("/")[0], 2)
)

# The beginning of a struct or enum, or a count with its field, code, kind and names.
NAMES = r'(?:,\s+(\w+),\s+((?:"[^"]*",?\s*)+))?\)'
CHOICE = re.compile(r"\((s)\)|\(([^()|]*)\|([^()|]*)\)")  # in a name: singular and plural
COUNT = re.compile(r'(?:struct|enum) (\w+) \{|FP_COUNT\((\w+),\s+"([a-z0-9-]+)"' + NAMES, re.DOTALL)

PRIVATE = re.compile(r"/\*(?:(?!\*/).)*\b(?:private|c only)\b", re.DOTALL | re.IGNORECASE)
LAST_INCLUDE = re.compile(r"^#(?:include|pragma)[^\n]*\n(?!.*^#include)", re.DOTALL | re.MULTILINE)

FUNCTION = re.compile(r"^(\w[\w ]*[ *])(fp_\w+)\(([^;{]*)\);", re.MULTILINE)


def guard(function: tuple[str, str, str]) -> str:
    """A function in front of one that may run out of memory: one that returns a status or a pointer."""
    result, name, parameters = function
    if result not in ("int ", "int64_t ") and "*" not in result:
        return ""
    arguments = "" if parameters == "void" else ", ".join(re.findall(r"(\w+)(?=\[|,|$)", parameters))
    said = "fp_no_memory(err)" if parameters.endswith("struct fp_err *err") else "FP_E_NOMEM"
    failed = f"answer = {said};"
    if "*" in result:
        failed = f"(void){said};" if said != "FP_E_NOMEM" else ""
    if name.endswith("_new"):
        failed += f" if (guard.made) {name.removesuffix('new')}free(guard.made);"
    return f"""
static {result}{name}_guarded({parameters}) {{
    struct fp_guard guard;
    {result}answer = 0;
    fp_guard_enter(&guard);
    if (setjmp(guard.to)) {{
        {failed}
    }} else {{
        answer = {name}({arguments});
    }}
    fp_guard_leave(&guard);
    return answer;
}}
#define {name}(...) {name}_guarded(__VA_ARGS__)
"""


guards = ""
ffibuilder = FFI()
counted: dict[str, dict[str, tuple[str, ...]]] = {}
for name in HEADERS:
    text = (HERE / name).read_text()
    if "/* cffi-begin" not in text and not PRIVATE.match(text):
        text = LAST_INCLUDE.sub("/* cffi-begin guarded */", text)
    parts = re.findall(r"/\* cffi-begin( guarded)? \*/(.*?)(?:/\* cffi-end|\Z)", text, re.DOTALL)
    for guarded, part in parts:
        public = re.sub(r"/\* private from here on \*/.*?^\};", "...;\n};", part, flags=re.DOTALL | re.MULTILINE)
        ffibuilder.cdef(COUNT.sub(lambda found: found[2] if found[2] else found[0], public))
        for struct, field, code, kind, names in COUNT.findall(public):
            if struct:
                fields = counted.setdefault(struct, {})
            else:
                texts = ast.literal_eval(f"({names},)") if kind else ()
                if len(texts) == 1 and kind != "warnings":
                    texts = CHOICE.sub(r"\2", texts[0]), CHOICE.sub(r"\1\3", texts[0])
                fields[code] = (field, kind, *texts) if kind else (field,)
        if guarded:
            guards += "".join(map(guard, FUNCTION.findall(re.sub(r"/\*.*?\*/", "", part, flags=re.DOTALL))))

LINK = {"1": ["-fsanitize=address,undefined"], "coverage": ["-fprofile-instr-generate"]}
link = LINK.get(os.environ.get("FASTPROF_SANITIZE", ""), [])
ffibuilder.set_source(
    "fastprof.core._c",
    "\n".join(f'#include "{name}"' for name in HEADERS) + guards,
    include_dirs=[str(HERE)],
    extra_compile_args=["-O1", "-std=c11"],  # wrappers: more takes twice the time to compile, and runs as fast
    extra_link_args=link,
)

TABLE = """\
# Made by csrc/build_core.py.  By struct or enum and code: the field, where it appears in a log, and its names.
COUNTED: dict[str, dict[str, tuple[str, ...]]] = """
TABLE += pformat({name: fields for name, fields in counted.items() if fields}, width=119, sort_dicts=False) + "\n"
for name, text in (("_c.pyi", stub(ffibuilder._parser._declarations)), ("counted.py", TABLE)):
    made = HERE.parent / "fastprof" / "core" / name
    if not made.exists() or made.read_text() != text:
        made.write_text(text)

subprocess.run([sys.executable, "-B", HERE / "make_keywords.py"], check=True)
