/* oprofile/private.h - shared by file.c, which reads the bytes of a sample file, and rows.c, which makes rows.
 * C only. */
#pragma once

#include "oprofile/read.h"

/* A node of a sample file. */
struct fp_oprofile_entry {
    uint64_t key;
    uint32_t value;
    uint32_t column; /* value column << 1 | is it subtracted? */
};
