"""The types of CPUs that headers of sample files name by number.  Source: libop/op_cpu_type.c of OProfile 1.4."""

# fmt: off
CPU_TYPES = (
    "i386/ppro", "i386/pii", "i386/piii", "i386/athlon", "timer", "i386/p4", "x86-64/hammer", "i386/p4-ht",
    "alpha/ev67", "i386/p6_mobile", "arm/xscale1", "arm/xscale2", "ppc64/power4", "ppc64/power5", "ppc64/power5+",
    "ppc64/970", "mips/20K", "mips/24K", "mips/25K", "mips/34K", "mips/5K", "mips/r10000", "mips/r12000",
    "mips/rm7000", "mips/rm9000", "mips/sb1", "mips/vr5432", "mips/vr5500", "ppc/e500", "ppc/e500v2", "i386/core",
    "ppc/7450", "i386/core_2", "ppc64/power6", "ppc64/970MP", "x86-64/family10", "arm/mpcore", "arm/armv6",
    "ppc64/power5++", "ppc/e300", "arm/armv7", "i386/arch_perfmon", "x86-64/family11h", "ppc64/power7",
    "i386/core_i7", "i386/atom", "mips/loongson2", "i386/nehalem", "arm/armv7-ca9", "mips/74K", "mips/1004K",
    "x86-64/family12h", "x86-64/family14h", "x86-64/family15h", "i386/westmere", "arm/armv7-scorpion",
    "arm/armv7-scorpionmp", "i386/sandybridge", "tile/tile64", "tile/tilepro", "tile/tilegx", "s390/z10", "s390/z196",
    "i386/ivybridge", "arm/armv7-ca5", "arm/armv7-ca7", "arm/armv7-ca15", "i386/haswell", "s390/zEC12",
    "x86-64/generic", "ppc64/architected_events_v1", "ppc64/power8", "ppc/e500mc", "ppc/e6500", "i386/silvermont",
    "arm/armv7-krait", "arm/armv8-xgene", "i386/broadwell", "arm/armv8-ca57", "arm/armv8-ca53", "i386/skylake",
    "i386/goldmont", "i386/goldmontplus", "s390/z13", "arm/armv7-ca17", "ppc64/power9", "i386/knightslanding",
    "arm/armv8-thunderx2",
)
