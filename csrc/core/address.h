/* core/address.h - the address of a frame, and the name of code without a symbol.
 *
 * Every bridge and writer that names addresses uses this, so an address has the same name in all formats.
 */
#pragma once

#include "core/buf.h"
#include "core/model.h"

/* The address to look up symbols by.  A return address may already belong to the next line, or to the next function if
 * the callee never returns; the byte before it belongs to the call. */
static inline uint64_t fp_frame_code(const uint32_t *frame) {
    const uint64_t address = fp_words_u64(frame + FP_FRAME_ADDRESS);
    return address - (address && frame[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS);
}

/* Names a frame without a symbol by its fp_frame_code: "[libx.so+0x1136]", the offset in the file, which is the same in
 * every run; "[vdso+0x136]" in an object named "[vdso]"; "0x1136" outside of mappings or in a mapping without a name.
 * The mapping and its object must be ids of the model.  Replaces the content of `to`.  0 or FP_E_NOMEM. */
int fp_frame_text(const struct fp_model *m, uint32_t frame, struct fp_buf *to);

/* cffi-begin guarded */

/* The same as a string of the model, added if it is new.  `scratch` is the caller's; its content is undefined
 * afterwards.  FP_NO_ID when memory ran out. */
uint32_t fp_frame_name(struct fp_model *m, uint32_t frame, struct fp_buf *scratch);
