/* Messages that are declared as tables (core/wire.h). */
#include "perfetto/read_private.h"

int fp_perfetto_fields(struct fp_wire m, const struct fp_wire_schema *schema, void *to) {
    return fp_wire_all(m, schema, to, NULL) ? FP_E_MALFORMED : 0;
}

int fp_perfetto_part(struct fp_wire *m, uint32_t number, struct fp_wire *part) {
    struct fp_wire_field f;
    while (fp_perfetto_next(m, &f) > 0) {
        *part = fp_wire_inside(&f);
        if (f.number == number) return 1;
    }
    return 0;
}

uint32_t fp_perfetto_text(struct fp_perfetto_read *r, struct fp_wire text) {
    return text.p == text.end ? 0 : fp_strings_intern(&r->model->strings, text.p, (size_t)(text.end - text.p));
}
