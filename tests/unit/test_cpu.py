"""The vector instructions that the core uses are those of this machine: core/cpu.h."""

import platform
from pathlib import Path

import pytest

from fastprof.core._c import lib

GROUPS = {
    "FP_CPU_BMI": {"bmi1", "bmi2", "popcnt"},
    "FP_CPU_AVX2": {"avx2"},
    "FP_CPU_AVX512": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vbmi", "avx512_vbmi2"},
}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(), reason="needs Linux on x86-64"
)
def test_the_kernel_lists_the_same():
    line = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    flags = set(line.split())
    found = lib.fp_cpu()
    assert {name for name in GROUPS if found & getattr(lib, name)} == {
        name for name, needed in GROUPS.items() if needed <= flags
    }
    assert lib.fp_cpu() == found
