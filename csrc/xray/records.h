/* xray/records.h - the records of FDR logs, for the reader and the writer.  C only.
 *
 * The 32-byte file header is followed by buffers, each of one thread.
 *
 *   function record, 8 bytes            metadata record, 16 bytes
 *   +--------------------------+        +------+-------------------+
 *   | id:28        | kind:3 | 0|        |kind:7|1| body, 15 bytes  |
 *   | ticks since the last:32  |        +------+-------------------+
 *   +--------------------------+
 *
 * `52 00 00 00 10 00 00 00` is: 0x52 = 0b101_001_0: function record, kind 1 (exit), id 5, 16 ticks after the previous
 * record.
 *
 *   metadata       body; the rest is undefined
 *   new buffer     thread:32
 *   end of buffer  (version 1)
 *   new CPU        cpu:16 tsc:64             sets the clock
 *   TSC wrap       tsc:64                    sets the clock
 *   wall time      seconds:64 microseconds:32
 *   custom event   size:32, then versions 1 to 3: tsc:64
 *                                version 4: tsc:64 cpu:16
 *                                version 5: signed ticks since the last:32
 *   call argument  value:64                  of the previous function record
 *   extents        nbytes:64                 of the buffer that follows (version 2 on)
 *   typed event    size:32 signed ticks since the last:32 type:16
 *   pid            process:32
 *
 * `size` bytes of payload follow an event's record.
 *
 * `05 02 00 40 42 0f 00 00 00 00 00 ...` is: 0x05 = 0b0000010_1: metadata, kind 2 (new CPU), CPU 2, TSC 1,000,000.
 */
#pragma once

#include "core/core.h"

/* First byte of a metadata record: kind << 1 | 1. */
enum {
    FP_XRAY_NEW_BUFFER = 0x01,
    FP_XRAY_END_OF_BUFFER = 0x03,
    FP_XRAY_NEW_CPU = 0x05,
    FP_XRAY_TSC_WRAP = 0x07,
    FP_XRAY_WALL_TIME = 0x09,
    FP_XRAY_CUSTOM_EVENT = 0x0b,
    FP_XRAY_CALL_ARGUMENT = 0x0d,
    FP_XRAY_BUFFER_EXTENTS = 0x0f,
    FP_XRAY_TYPED_EVENT = 0x11,
    FP_XRAY_PID = 0x13,
    FP_XRAY_LAST_METADATA = FP_XRAY_PID
};

enum { FP_XRAY_FUNCTION_NBYTES = 8, FP_XRAY_METADATA_NBYTES = 16 };

/* The length of the record at `p`, with its payload.  `n` bytes are available; 0: too few.  A payload of negative size,
 * which is an error, counts as empty. */
static inline uint64_t fp_xray_record_nbytes(const uint8_t *p, size_t n, int swap) {
    if (n < 1) return 0;
    if (!(p[0] & 1)) return FP_XRAY_FUNCTION_NBYTES;
    if (p[0] != FP_XRAY_CUSTOM_EVENT && p[0] != FP_XRAY_TYPED_EVENT) return FP_XRAY_METADATA_NBYTES;
    if (n < 5) return 0;
    int32_t size = (int32_t)fp_u32s(p + 1, swap);
    return FP_XRAY_METADATA_NBYTES + (uint64_t)(size > 0 ? size : 0);
}

/* Microseconds of the wall-time record at `p`; UINT64_MAX on overflow. */
static inline uint64_t fp_xray_wall_us(const uint8_t *p, int swap) {
    uint64_t seconds = fp_u64s(p + 1, swap), us = fp_u32s(p + 9, swap);
    return seconds > (UINT64_MAX - us) / 1000000 ? UINT64_MAX : seconds * 1000000 + us;
}

/* The size of all version 1 buffers, from the file header; 0 = unknown.  A size too small for a preamble counts as
 * unknown. */
static inline uint64_t fp_xray_v1_stride(uint64_t buffer_size) {
    return buffer_size < 48 ? 0 : buffer_size;
}
