"""Declares the C core to cffi (API mode), from the headers themselves.

Each header's part between `cffi-begin` and `cffi-end` is plain C without
preprocessor lines; put together in the order of the floors it is the cdef.
"""

import os
import re
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
# Floor by floor: a header may only use what stands before it.
FIRST = ["fp.h", "fp_buf.h", "fp_model.h", "fp_batch.h"]
HEADERS = FIRST + sorted(p.name for p in HERE.glob("fp_*.h") if p.name not in FIRST)

ffibuilder = FFI()
for name in HEADERS:
    for part in re.findall(
        r"/\* cffi-begin \*/(.*?)/\* cffi-end \*/", (HERE / name).read_text(), re.DOTALL
    ):
        ffibuilder.cdef(part)

link = ["-fsanitize=address,undefined"] if os.environ.get("FASTPROF_SANITIZE") == "1" else []
ffibuilder.set_source(
    "fastprof._core",
    "\n".join(f'#include "{name}"' for name in HEADERS),
    include_dirs=[str(HERE)],
    # the static library is linked in: its sources are dependencies too
    depends=[str(path) for path in sorted(HERE.glob("*.[ch]"))],
    extra_compile_args=["-O2", "-std=c11"],
    extra_link_args=link,
)
