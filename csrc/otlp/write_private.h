/* otlp/write_private.h - the functions of write_tables.c that write.c uses.  C only. */
#pragma once

#include "otlp/write.h"

/* Each writes an entry once and returns its index in the file. */
uint32_t fp_otlp_put_stack(struct fp_otlp_writer *w, uint32_t node);
uint32_t fp_otlp_put_label(struct fp_otlp_writer *w, uint32_t key, uint32_t string, int64_t number, uint32_t unit);
uint32_t fp_otlp_put_link(struct fp_otlp_writer *w, uint32_t trace, uint32_t span);

/* Writes the mappings that no location uses. */
void fp_otlp_put_mappings(struct fp_otlp_writer *w);

/* Writes a label's value as an AnyValue: text or an integer. */
void fp_otlp_put_value(struct fp_otlp_writer *w, struct fp_buf *to, uint32_t number, uint32_t string, int64_t value);
