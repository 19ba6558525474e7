/* bridges/rows/absent.h - takes the value from the rows of a table's column that have a certain text.
 *
 *   items 0 2 1 2   valid 1111   text 2      becomes   valid 1010
 */
#pragma once

#include "core/core.h"

/* `items` are `n` numbers of texts, `valid` has a bit for each, the lowest one first.  Rows with `text` lose theirs. */
void fp_absent(const uint32_t *items, uint8_t *valid, uint32_t n, uint32_t text);
