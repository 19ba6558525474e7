#include "bridges/rows/open_calls.h"

enum { MAX_SEARCHED = 4096 };

void fp_open_init(struct fp_open *o) {
    fp_table_init(&o->entered, 2);
}

void fp_open_clear(struct fp_open *o) {
    fp_table_clear(&o->entered);
    free(o->active);
}

void fp_open_count(struct fp_open *o, uint32_t thread, uint32_t function, uint32_t by) {
    const uint32_t row = fp_table_intern(&o->entered, (const uint32_t[]){thread, function});
    *FP_AT(o->active, o->cap_active, row) += by;
}

int fp_open_has(struct fp_open *o, struct fp_open_calls *t, uint32_t thread, uint32_t function) {
    if (!t->counted) {
        for (uint32_t i = t->n; i-- > 0;)
            if (t->functions[i] == function) return 1;
        o->looked += t->n;
        if (o->looked < o->calls + MAX_SEARCHED) return 0;
        for (uint32_t i = 0; i < t->n; i++) fp_open_count(o, thread, t->functions[i], 1);
        t->counted = 1;
    }
    const uint32_t row = fp_table_find(&o->entered, (const uint32_t[]){thread, function});
    return row && o->active[row];
}
