"""Builds the C core once, as a static library, and links it into each extension.

FASTPROF_SANITIZE=1   ASan and UBSan in the C core and the extensions (run
                      Python with LD_PRELOAD set to the compiler's libasan);
                      =fuzzer with CC=clang: libFuzzer's counters as well
FASTPROF_DEBUG=1      -O1, asserts, poisoned batches, Cython bounds checks
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

SANITIZE = os.environ.get("FASTPROF_SANITIZE", "")
DEBUG = os.environ.get("FASTPROF_DEBUG") == "1"

flags = ["-std=c11", "-fvisibility=hidden"]
# No SLP vectorizer: it packs the neighbouring words of a stack frame through a vector register, and the
# stack machine, which reads a frame right after it was written, waits for that: 10 % of an XRay conversion.
flags += ["-O1", "-g", "-DFP_DEBUG"] if DEBUG or SANITIZE else ["-O3", "-fno-tree-slp-vectorize", "-g0", "-DNDEBUG"]
link = []
if SANITIZE:
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    link += ["-fsanitize=address,undefined"]
if SANITIZE == "fuzzer":
    flags += ["-fsanitize=fuzzer-no-link"]
    link += ["-shared-libasan"]

core = (
    "fpcore",
    {
        "sources": sorted(glob("csrc/*/*.c")),
        "include_dirs": ["csrc"],
        "cflags": [*flags, "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion"],
        "obj_deps": {"": sorted(glob("csrc/*/*.h"))},
    },
)

cython = [
    Extension(
        path[:-4].replace("/", "."),
        [path],
        include_dirs=["csrc"],
        # the static library is linked in: its sources are dependencies too
        depends=[*glob("csrc/*/*.[ch]"), "fastprof/core/fp.pxd"],
        extra_compile_args=flags,
        extra_link_args=link,
    )
    for path in sorted(glob("fastprof/**/*.pyx", recursive=True))
]

setup(
    libraries=[core],
    cffi_modules=["csrc/build_core.py:ffibuilder"],
    ext_modules=cythonize(
        cython,
        language_level=3,
        compiler_directives={
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
        },
    ),
)
