/* core/address.h - code without a symbol: which address is meant, and what it is called.
 *
 * Every bridge and writer that names addresses asks here, so an address has one name in all formats.
 */
#ifndef FP_ADDRESS_H
#define FP_ADDRESS_H

#include "core/buf.h"
#include "core/model.h"

/* The address that stands for a frame: symbols are looked up by it.  A return address may already belong to the next
 * line, or to the next function if the one that was called never returns.  The byte before it is the call's. */
static inline uint64_t fp_frame_code(const uint32_t *frame) {
    const uint64_t address = fp_words_u64(frame + FP_FRAME_ADDRESS);
    return address - (address && frame[FP_FRAME_FLAGS] & FP_FRAME_RETURN_ADDRESS);
}

/* What a frame without symbol is called after its fp_frame_code: "[libx.so+0x1136]", the place in the file, which is
 * the same in every run; "[vdso+0x136]" in what is called "[vdso]"; "0x1136" in no mapping or one without name.  Its
 * mapping must be an id of the model, as must be its object.  The text is all that `to` holds.  0 or FP_E_NOMEM. */
int fp_frame_text(const struct fp_model *m, uint32_t frame, struct fp_buf *to);

/* The same as a string of the model, entered if it is new.  `scratch` is the caller's, and holds anything afterwards.
 * FP_NO_ID when memory ran out. */
uint32_t fp_frame_name(struct fp_model *m, uint32_t frame, struct fp_buf *scratch);

#endif
