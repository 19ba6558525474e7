"""libFuzzer for the modules that are Cython, as the programs *_fuzz.py of this folder use it.

    LD_PRELOAD=LIBCLANG_RT.ASAN.SO ASAN_OPTIONS=detect_leaks=0 \\
        python -m tests.fuzz.NAME_fuzz LIBFUZZER.SO [libFuzzer's options] FOLDER

LIBFUZZER.SO is libFuzzer as a shared library; fastprof has to be built by clang with FASTPROF_SANITIZE=fuzzer, which
gives it the counters that libFuzzer looks at (`make fuzz-cython`).  An input that fails is written down by libFuzzer.
This module has to be imported before those that it counts in.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

LIBFUZZER = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
CORPUS = Path(__file__).parents[1] / "corpus"
FOUND = Path(__file__).parent / "seeds"


def run(check: Callable[[bytes], None], seeds: dict[str, bytes], words: Iterable[bytes]) -> None:
    """Call `check` with inputs, beginning with `seeds` and earlier findings, until the time is over.  Does not return.

    `words`: the format's keywords, for libFuzzer's dictionary.
    """

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t)
    def one(data: object, n: int) -> int:
        try:
            check(ctypes.string_at(data, n))  # type: ignore[arg-type]
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os.abort()
        return 0

    *options, name = sys.argv[2:]
    folder = Path(name)
    folder.mkdir(exist_ok=True)
    found = {path.name: path.read_bytes() for path in FOUND.glob(f"{folder.name}-*")}
    for seed, data in {**seeds, **found}.items():
        (folder / seed).write_bytes(data)
    dictionary = folder.with_name(folder.name + "-words")
    dictionary.write_bytes(b"".join(b'"%b"\n' % word for word in words))
    arguments = [b"fuzz", *map(os.fsencode, options), b"-dict=" + os.fsencode(dictionary), os.fsencode(folder)]
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    at = ctypes.cast(argv, ctypes.POINTER(ctypes.c_char_p))
    gc.set_threshold(50_000)  # a run leaves hardly any cycles
    gc.freeze()  # modules are exempt from collections
    sys.exit(LIBFUZZER.LLVMFuzzerRunDriver(ctypes.byref(ctypes.c_int(len(arguments))), ctypes.byref(at), one))
