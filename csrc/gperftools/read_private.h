/* gperftools/read_private.h - shared by read.c, the bytes of a profile, and read_rows.c, its rows.  C only. */
#pragma once

#include "gperftools/read.h"

/* The ticks of a chain before the current run. */
struct fp_gperftools_before {
    uint64_t most; /* the most ticks of any run before the chain's last one */
    uint32_t run;  /* the last run that has the chain: its ticks are in `ticks` */
};

/* An address range of a mapping of the model. */
struct fp_gperftools_range {
    uint64_t start, limit;
    uint32_t mapping;
    uint32_t order; /* as given */
};

/* A line chain of the model for an address. */
struct fp_gperftools_name {
    uint64_t address;
    uint32_t lines;
    uint32_t order; /* as given */
};

static inline uint64_t *fp_gperftools_ticks(struct fp_gperftools_reader *g, uint32_t chain) {
    return fp_key_record(&g->known, chain);
}

static inline uint64_t fp_gperftools_word(const uint8_t *p, int word, int swap) {
    return word == 8 ? fp_u64s(p, swap) : fp_u32s(p, swap);
}
