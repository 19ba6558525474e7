"""Builds the C core once, as a static library, and links it into each extension.

Only what changed is built again: an object whose source, included headers and command are the same is kept.

FASTPROF_SANITIZE=1   ASan and UBSan in the C core and the extensions (run
                      Python with LD_PRELOAD set to the compiler's libasan);
                      =fuzzer with CC=clang: libFuzzer's counters as well
                      =thread: TSan instead (LD_PRELOAD libtsan, setarch -R)
                      =coverage with CC=clang: no sanitizer, but llvm-cov's counters
FASTPROF_DEBUG=1      -O1, asserts, poisoned batches, Cython bounds checks
FASTPROF_OPTIMIZE=-O0 instead of -O1 in all of these, and of -O3 in a normal build
CYTHON_CACHE_DIR=...  keeps what Cython makes of a .pyx file there, for other folders, too
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  pip looks at requires-python only after it has run this file
    sys.exit(f"fastprof needs Python 3.11 or later, this is {sys.version.split()[0]}")

import gzip
import os
import shlex
import shutil
import subprocess
import sysconfig
import tarfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist


def missing() -> str:
    """What a build needs and this machine lacks."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if not shutil.which(compiler):
        packages = "apt-get install gcc python3-dev; dnf install gcc python3-devel; apk add gcc musl-dev python3-dev"
        return f"a C compiler, and {compiler} is missing ({packages}; xcode-select --install)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        packages = "apt-get install python3-dev; dnf install python3-devel; apk add python3-dev"
        return f"the headers of Python, and {sysconfig.get_path('include')}/Python.h is missing ({packages})"
    return ""


if not {"egg_info", "dist_info", "sdist"} & {*sys.argv} and (lack := missing()):
    sys.exit(f"fastprof needs {lack}")

SANITIZE = os.environ.get("FASTPROF_SANITIZE", "")
DEBUG = os.environ.get("FASTPROF_DEBUG") == "1"
# One wheel for Python 3.11 and all later ones, of functions that they all have.  Python without its lock has no such.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")
KIND = ("debug" if DEBUG else "release") + (f"-sanitize-{SANITIZE}" if SANITIZE else "")
BUILD = Path("build", f"{KIND}-{sys.implementation.cache_tag}")

flags = ["-std=c11", "-fvisibility=hidden"]
# No SLP vectorizer: it packs the neighbouring words of a stack frame through a vector register, and the
# stack machine, which reads a frame right after it was written, waits for that: 10 % of an XRay conversion.
# No frame pointers: zig keeps them unless told otherwise.
optimize = os.environ.get("FASTPROF_OPTIMIZE")
release = [optimize or "-O3", "-fno-tree-slp-vectorize", "-fomit-frame-pointer", "-g0", "-DNDEBUG"]
flags += [optimize or "-O1", "-g", "-DFP_DEBUG"] if DEBUG or SANITIZE else release
link = []
if SANITIZE == "thread":
    flags += ["-fsanitize=thread"]
    link += ["-fsanitize=thread"]
elif SANITIZE == "coverage":
    flags += ["-fprofile-instr-generate", "-fcoverage-mapping"]
    link += ["-fprofile-instr-generate"]
elif SANITIZE:
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    link += ["-fsanitize=address,undefined"]
if SANITIZE == "fuzzer":
    flags += ["-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp"]  # trace-cmp: see the Makefile
    flags += ["-fno-sanitize=function"]  # Cython's methods have their own class as first argument, not the base
    link += ["-shared-libasan"]


def inputs_of(command: list[str], target: Path) -> list[Path] | None:
    """The files that a command reads to make its target; None if that is not known."""
    if "-c" in command:
        listed = target.with_suffix(".d")  # written by -MMD: "target: source header header ..."
        if not listed.exists():
            return None
        return [Path(name) for name in shlex.split(listed.read_text().replace("\\\n", " ").partition(":")[2])]
    folders = [argument[2:] for argument in command if argument.startswith("-L")]
    libraries = [Path(folder, f"lib{a[2:]}.a") for a in command if a.startswith("-l") for folder in folders]
    return [*(Path(a) for a in command if a.endswith(".o")), *(path for path in libraries if path.exists())]


def is_fresh(command: list[str], target: Path, stamp: Path) -> bool:
    """Whether this command made the target, and what it read is still as it was."""
    if not target.exists() or not stamp.exists():
        return False
    made = target.stat().st_mtime_ns  # tells it from one built in another way and put in the same place
    inputs = inputs_of(command, target)
    unchanged = inputs and all(path.exists() and path.stat().st_mtime_ns < made for path in inputs)
    return bool(unchanged) and stamp.read_text() == f"{made} {shlex.join(command)}"


def make_incremental(compiler) -> None:
    """Makes a setuptools compiler keep what is up to date, and compile on all cores."""
    run_name = "call" if hasattr(compiler, "call") else "spawn"  # of newer and older setuptools
    run = getattr(compiler, run_name)

    def run_if_stale(command: list[str], **options) -> None:
        target = Path(command[command.index("-o") + 1] if "-o" in command else command[2])  # ar -cr TARGET ...
        stamp = BUILD / ("-".join(target.parts[-3:]) + ".command")
        if is_fresh(command, target, stamp):
            return
        stamp.unlink(missing_ok=True)
        target.unlink(missing_ok=True)  # `ar` would keep members whose source is gone
        run([*command], **options)  # older setuptools change the list
        stamp.write_text(f"{target.stat().st_mtime_ns} {shlex.join(command)}")

    def compile_all(sources, output_dir=None, macros=None, include_dirs=None, debug=0, extra_preargs=None,
                    extra_postargs=None, depends=None):  # fmt: skip
        _, objects, after, options, build = compiler._setup_compile(
            output_dir, macros, include_dirs, sources, depends, [*(extra_postargs or ()), "-MMD"]
        )
        before = compiler._get_cc_args(options, debug, extra_preargs)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(compiler._compile, o, *build[o], before, after, options) for o in objects]
        for job in jobs:
            job.result()
        return objects

    setattr(compiler, run_name, run_if_stale)
    compiler.compile = compile_all
    compiler.force = True  # setuptools asks for everything, run_if_stale decides
    compiler.ranlib = None  # `ar` has made the index


class BuildCore(build_clib):
    def finalize_options(self):
        super().finalize_options()
        self.build_clib = self.build_temp = str(BUILD)

    def build_libraries(self, libraries):
        make_incremental(self.compiler)
        for name, library in libraries:
            objects = self.compiler.compile(
                library["sources"], str(BUILD), include_dirs=["csrc"], extra_postargs=library["cflags"]
            )
            self.compiler.create_static_lib(objects, name, str(BUILD))


class BuildExtensions(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.build_temp = str(BUILD)
        self.force = True
        self.parallel = os.cpu_count()

    def build_extensions(self):
        make_incremental(self.compiler)
        super().build_extensions()

    def build_extension(self, extension):
        super().build_extension(extension)
        self.drop_others(extension)

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        for extension in self.extensions:
            self.drop_others(extension)

    def drop_others(self, extension):
        """Removes the same extension for one version of Python alone: Python would prefer it."""
        made = Path(self.get_ext_fullpath(extension.name))
        for other in made.parent.glob(f"{made.name.partition('.')[0]}.*.so"):
            if other.name != made.name:
                other.unlink()


class ReproducibleSdist(sdist):
    """The same bytes for the same files, whenever and wherever it is made."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):
        assert format == "gztar" and not root_dir, (format, root_dir)
        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in sorted(map(str, Path(base_dir).rglob("*"))):
                tar.add(name, recursive=False, filter=self.same_everywhere)
        return path

    @staticmethod
    def same_everywhere(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member


# The flags of code objects, the same in all versions of Python 3.
CODE_FLAGS = {
    "CO_OPTIMIZED": "1",
    "CO_NEWLOCALS": "2",
    "CO_VARARGS": "4",
    "CO_VARKEYWORDS": "8",
    "CO_GENERATOR": "0x20",
    "CO_COROUTINE": "0x80",
    "CO_ASYNC_GENERATOR": "0x200",
}

warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion"]
extensions = [
    Extension(
        path[:-4].replace("/", "."),
        [path],
        include_dirs=["csrc"],
        define_macros=[("Py_LIMITED_API", "0x030B0000"), *CODE_FLAGS.items()] if ABI3 else [],
        py_limited_api=ABI3,
        extra_compile_args=[*flags, "-Wno-unused-function"],
        extra_link_args=link,
    )
    for path in sorted(glob("fastprof/**/*.pyx", recursive=True))
]


def without_inspect(extensions):
    """Cython's code for the limited API imports `inspect`, for 4 ms, to read these flags: here they are known."""
    for extension in extensions:
        for path in map(Path, extension.sources):
            text = path.read_text()
            changed = text.replace('PyImport_ImportModule("inspect")', 'PyImport_ImportModule("sys")')
            if changed != text:
                path.write_text(changed)
    return extensions


for script in ("make_pxd", "make_cython_stubs"):
    subprocess.run([sys.executable, "-B", f"csrc/{script}.py"], check=True)
made = cythonize(
    extensions,
    build_dir=str(BUILD / f"cython-{Cython.__version__}"),
    cache="CYTHON_CACHE_DIR" in os.environ,
    language_level=3,
    compiler_directives={
        "boundscheck": DEBUG,
        "wraparound": False,
        "cdivision": True,
        "initializedcheck": False,
        "embedsignature": True,
        "annotation_typing": False,  # annotations are for the stubs
    },
)

setup(
    cmdclass={"build_clib": BuildCore, "build_ext": BuildExtensions, "sdist": ReproducibleSdist},
    libraries=[("fpcore", {"sources": sorted(glob("csrc/**/*.c", recursive=True)), "cflags": [*flags, *warnings]})],
    data_files=[("share/man/man1", sorted(glob("docs/man/*.1")))],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
    cffi_modules=["csrc/build_core.py:ffibuilder"],
    ext_modules=without_inspect(made),
)
