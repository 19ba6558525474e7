"""Declares the C core to cffi (API mode), from the headers themselves.

Each header's part between `cffi-begin` and `cffi-end` is plain C without
preprocessor lines; put together in the order of the floors it is the cdef.
Of a struct Python sees what stands above the comment `private from here on`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from make_stub import stub  # noqa: E402

# A header may only use headers ahead of it: first the core, then what formats share, then formats and bridges, which do
# not include each other, then the ends.
FIRST = ["core/fp.h", "core/buf.h", "core/secret.h", "core/model.h", "core/batch.h"]
FLOORS = {"core": 0, "symbols": 1, "chrome": 1, "ends": 3}
FOUND = sorted(p.relative_to(HERE).as_posix() for p in HERE.rglob("*.h"))
HEADERS = FIRST + sorted(
    (name for name in FOUND if name not in FIRST), key=lambda name: FLOORS.get(name.partition("/")[0], 2)
)

ffibuilder = FFI()
for name in HEADERS:
    for part in re.findall(r"/\* cffi-begin \*/(.*?)/\* cffi-end \*/", (HERE / name).read_text(), re.DOTALL):
        ffibuilder.cdef(
            re.sub(r"/\* private from here on \*/.*?^\};", "...;\n};", part, flags=re.DOTALL | re.MULTILINE)
        )

LINK = {"1": ["-fsanitize=address,undefined"], "coverage": ["-fprofile-instr-generate"]}
link = LINK.get(os.environ.get("FASTPROF_SANITIZE", ""), [])
ffibuilder.set_source(
    "fastprof.core._c",
    "\n".join(f'#include "{name}"' for name in HEADERS),
    include_dirs=[str(HERE)],
    extra_compile_args=["-O1", "-std=c11"],  # wrappers: more takes twice the time to compile, and runs as fast
    extra_link_args=link,
)

STUB = HERE.parent / "fastprof" / "core" / "_c.pyi"
made = stub(ffibuilder._parser._declarations)
if not STUB.exists() or STUB.read_text() != made:
    STUB.write_text(made)

subprocess.run([sys.executable, "-B", HERE / "make_keywords.py"], check=True)
