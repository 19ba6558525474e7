#include "core/batch.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/guard.h"

/* The views that have each column. */
struct batch_column {
    size_t field;   /* offset of the pointer in struct fp_batch */
    uint32_t width; /* bytes per item */
    uint32_t views; /* bit per enum fp_view */
};

#define BIT(view) (1u << (view))
#define COL(name, views) {offsetof(struct fp_batch, name), (uint32_t)sizeof(*((struct fp_batch *)0)->name), views}

static const struct batch_column columns[] = {
    COL(time, BIT(FP_TIMELINE) | BIT(FP_STACKS)),
    COL(aux, BIT(FP_TIMELINE)),
    COL(address, BIT(FP_GRAPH)),
    COL(bb, BIT(FP_GRAPH)),
    COL(target_address, BIT(FP_GRAPH)),
    COL(target_bb, BIT(FP_GRAPH)),
    COL(count, BIT(FP_STACKS) | BIT(FP_GRAPH)),
    COL(count2, BIT(FP_GRAPH)),
    COL(function, BIT(FP_TIMELINE) | BIT(FP_GRAPH)),
    COL(thread, BIT(FP_TIMELINE) | BIT(FP_STACKS)),
    COL(stack, BIT(FP_STACKS)),
    COL(label, BIT(FP_STACKS)),
    COL(file, BIT(FP_GRAPH)),
    COL(line, BIT(FP_GRAPH)),
    COL(callee, BIT(FP_GRAPH)),
    COL(target_file, BIT(FP_GRAPH)),
    COL(target_line, BIT(FP_GRAPH)),
    COL(cpu, BIT(FP_TIMELINE)),
    COL(op, BIT(FP_TIMELINE)),
    COL(kind, BIT(FP_GRAPH)),
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* A column's size, rounded up so that the next column starts on a cache line. */
static size_t padded(size_t nbytes) {
    return (nbytes + 63) & ~(size_t)63;
}

struct fp_batch *fp_batch_new(uint32_t view, uint32_t cap, uint32_t n_values) {
    struct fp_batch *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->view = view;
    b->cap = cap;
    size_t total = 64;
    for (int i = 0; i < N_COLUMNS; i++)
        if (columns[i].views & BIT(view)) total += padded((size_t)cap * columns[i].width);
    b->block = calloc(1, total);
    if (!b->block || fp_batch_set_values(b, n_values)) {
        fp_batch_free(b);
        return NULL;
    }
    uint8_t *at = (uint8_t *)(((uintptr_t)b->block + 63) & ~(uintptr_t)63);
    for (int i = 0; i < N_COLUMNS; i++) {
        if (!(columns[i].views & BIT(view))) continue;
        void *column = at;
        memcpy((uint8_t *)b + columns[i].field, &column, sizeof column);
        at += padded((size_t)cap * columns[i].width);
    }
    return b;
}

void fp_batch_free(struct fp_batch *b) {
    if (!b) return;
    for (uint32_t i = 0; i < b->n_outgrown; i++) free(b->outgrown[i]);
    FP_FREE(b->block, b->values, b->bytes, b);
}

void fp_batch_reset(struct fp_batch *b) {
#ifdef FP_DEBUG
    for (int i = 0; i < N_COLUMNS; i++) {
        if (!(columns[i].views & BIT(b->view))) continue;
        void *column;
        memcpy(&column, (uint8_t *)b + columns[i].field, sizeof column);
        memset(column, 0xa5, (size_t)b->n * columns[i].width);
    }
    for (uint32_t k = 0; k < b->n_values; k++) memset(b->values + (size_t)k * b->cap, 0xa5, b->n * sizeof *b->values);
#endif
    b->n = 0;
    b->bytes_n = 0;
}

void fp_batch_swap(struct fp_batch *a, struct fp_batch *b) {
    const struct fp_batch c = *a;
    *a = *b;
    *b = c;
}

struct fp_batch *fp_batch_copy(const struct fp_batch *b) {
    struct fp_batch *to = fp_batch_new(b->view, b->n ? b->n : 1, b->n_values);
    if (!to) return NULL;
    if (b->bytes_n && fp_bytes_room(&to->bytes, &to->bytes_cap, b->bytes_n)) {
        fp_batch_free(to);
        return NULL;
    }
    for (int i = 0; i < N_COLUMNS; i++) {
        if (!(columns[i].views & BIT(b->view))) continue;
        const void *column;
        void *copy;
        memcpy(&column, (const uint8_t *)b + columns[i].field, sizeof column);
        memcpy(&copy, (uint8_t *)to + columns[i].field, sizeof copy);
        memcpy(copy, column, (size_t)b->n * columns[i].width);
    }
    for (uint32_t k = 0; k < b->n_values; k++)
        memcpy(to->values + (size_t)k * to->cap, b->values + (size_t)k * b->cap, b->n * sizeof *b->values);
    if (b->bytes_n) memcpy(to->bytes, b->bytes, b->bytes_n);
    to->n = b->n;
    to->part = b->part;
    to->is_summed = b->is_summed;
    to->bytes_n = b->bytes_n;
    return to;
}

int fp_batch_set_values(struct fp_batch *b, uint32_t n_values) {
    if (n_values > b->values_cap) {
        const size_t width = b->cap * sizeof *b->values;
        int64_t *more = NULL;
        uint32_t cap = 0;
        const uint64_t doubled = (uint64_t)b->values_cap * 2;
        if (b->n_outgrown == sizeof b->outgrown / sizeof *b->outgrown ||
            fp_array_room(&more, &cap, doubled > n_values ? doubled : n_values, width))
            return fp_escape();
        if (b->values) {
            memcpy(more, b->values, b->values_cap * width);
            b->outgrown[b->n_outgrown++] = b->values;
        }
        b->values = more;
        b->values_cap = cap;
    }
    b->n_values = n_values;
    return 0;
}

int fp_batch_combine(struct fp_batch *b, uint32_t to, const int64_t *factors, uint32_t n, int64_t divisor) {
    __extension__ typedef __int128 i128;
    int64_t *result = b->values + (size_t)to * b->cap;
    for (uint32_t i = 0; i < b->n; i++) {
        i128 sum = 0;
        int overflow = 0;
        if (b->view != FP_GRAPH || b->kind[i] == FP_COST || b->kind[i] == FP_CALL)
            for (uint32_t k = 0; k < n; k++)
                if (factors[k])
                    overflow |= __builtin_add_overflow(sum, (i128)factors[k] * b->values[(size_t)k * b->cap + i], &sum);
        if (!overflow && divisor > 1) {
            const i128 rest = sum % divisor, half = (divisor + 1) / 2;
            sum = sum / divisor + (rest >= half) - (rest <= -half);
        }
        if (overflow || sum < INT64_MIN || sum > INT64_MAX) return FP_E_OVERFLOW;
        result[i] = (int64_t)sum;
    }
    return FP_DONE;
}

#define KEEP(type) \
    for (uint32_t i = 0, at = to; i < n; at += keep[i++]) ((type *)column)[at] = ((const type *)column)[from + i]

uint32_t fp_batch_keep(struct fp_batch *b, uint32_t to, uint32_t from, const uint8_t *keep, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) kept += keep[i];
    if (kept == n && to == from) return to + n;
    if (!kept) return to;
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!(columns[c].views & BIT(b->view))) continue;
        void *column;
        memcpy(&column, (uint8_t *)b + columns[c].field, sizeof column);
        switch (columns[c].width) {
            case 1: KEEP(uint8_t); break;
            case 2: KEEP(uint16_t); break;
            case 4: KEEP(uint32_t); break;
            default: KEEP(uint64_t);
        }
    }
    for (uint32_t k = 0; k < b->n_values; k++) {
        void *column = b->values + (size_t)k * b->cap;
        KEEP(int64_t);
    }
    return to + kept;
}

int fp_batch_payload(struct fp_batch *b, const void *p, size_t n, uint64_t *slice) {
    if (n > UINT32_MAX || b->bytes_n > UINT32_MAX - n) return FP_E_OVERFLOW;
    if (fp_bytes_room(&b->bytes, &b->bytes_cap, b->bytes_n + n)) return FP_E_NOMEM;
    if (n) memcpy(b->bytes + b->bytes_n, p, n);
    *slice = (uint64_t)b->bytes_n << 32 | n;
    b->bytes_n += n;
    return 0;
}

enum { RUN = 512 };

/* Adds values[i] & self[i] of up to RUN rows; 1 on overflow.  The usual values have less than 50 bits: a run of them
 * cannot overflow, so one check is enough. */
FP_INLINE int add_run(int64_t *total, const int64_t *restrict values, const int64_t *restrict self, uint32_t n) {
    uint64_t sum = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t v = (uint64_t)(values[i] & self[i]);
        sum += v;
        size |= v + (UINT64_C(1) << 49);
    }
    if (size >> 50 == 0) return __builtin_add_overflow(*total, (int64_t)sum, total);
    int overflow = 0;
    for (uint32_t i = 0; i < n; i++) overflow |= __builtin_add_overflow(*total, values[i] & self[i], total);
    return overflow;
}

/* Adds the counts of the calls among up to RUN rows; 1 on overflow. */
FP_INLINE int add_calls(uint64_t *total, const uint64_t *restrict count, const uint8_t *restrict kind, uint32_t n) {
    uint64_t sum = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t v = count[i] & (0 - (uint64_t)(kind[i] == FP_CALL));
        sum += v;
        size |= v;
    }
    if (size >> 50 == 0) return __builtin_add_overflow(*total, sum, total);
    int overflow = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kind[i] == FP_CALL) overflow |= __builtin_add_overflow(*total, count[i], total);
    return overflow;
}

/* Adds up the self values of a batch's first `n_values` columns and, unless `calls` is NULL, its call counts; 1 on
 * overflow. */
FP_INLINE int add_columns(const struct fp_batch *b, int64_t *totals, uint32_t n_values, uint64_t *calls) {
    int overflow = 0;
    for (uint32_t from = 0; from < b->n; from += RUN) {
        int64_t self[RUN]; /* -1 in rows that count, else 0 */
        const uint32_t n = b->n - from < RUN ? b->n - from : RUN;
        for (uint32_t i = 0; i < n; i++) self[i] = -(int64_t)(b->view != FP_GRAPH || b->kind[from + i] == FP_COST);
        for (uint32_t k = 0; k < n_values; k++)
            overflow |= add_run(&totals[k], b->values + (size_t)k * b->cap + from, self, n);
        if (calls) overflow |= add_calls(calls, b->count + from, b->kind + from, n);
    }
    return overflow;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same, four values at a time. */
__attribute__((target("avx2"))) static int add_columns_avx2(const struct fp_batch *b, int64_t *totals,
                                                            uint32_t n_values, uint64_t *calls) {
    return add_columns(b, totals, n_values, calls);
}
#define HAVE_AVX2() (fp_cpu() & FP_CPU_AVX2)
#else
#define add_columns_avx2 add_columns
#define HAVE_AVX2() 0
#endif

static int add_self(const struct fp_batch *b, int64_t *totals, uint32_t n_values, uint64_t *calls) {
    if (!n_values && !calls) return 0;
    return HAVE_AVX2() ? add_columns_avx2(b, totals, n_values, calls) : add_columns(b, totals, n_values, calls);
}

/* Counts rows by kind (0..7).  Eight counters of 8 bits share one register: with
 * counters in memory, each row would wait for the count of the previous row. */
static void count_kinds(const uint8_t *kind, uint32_t n, uint64_t *rows) {
    for (uint32_t from = 0; from < n; from += 255) {
        const uint32_t until = n - from < 255 ? n : from + 255;
        uint64_t counts = 0;
        for (uint32_t i = from; i < until; i++) counts += (uint64_t)1 << (kind[i] & 7) * 8;
        for (unsigned k = 0; k < 8; k++) rows[k] += counts >> 8 * k & 255;
    }
}

int fp_batch_add_self(const struct fp_batch *b, int64_t *totals, uint32_t n_values) {
    return add_self(b, totals, n_values, NULL) ? FP_E_OVERFLOW : FP_DONE;
}

uint64_t fp_batch_cpus(const struct fp_batch *b) {
    uint64_t any = 0;
    uint32_t i = 0;
    for (; i + 4 <= b->n; i += 4) {
        uint64_t four;
        memcpy(&four, b->cpu + i, sizeof four);
        any |= four;
    }
    for (; i < b->n; i++) any |= b->cpu[i];
    return any;
}

static uint64_t samples_of(const struct fp_batch *b) {
    uint64_t n = b->is_summed ? 0 : b->n;
    for (uint32_t i = 0; b->is_summed && i < b->n; i++) n += b->count[i];
    return n;
}

int fp_batch_summarize(const struct fp_batch *b, struct fp_summary *s) {
    const uint8_t *kind = b->view == FP_TIMELINE ? b->op : b->kind;
    if (kind)
        count_kinds(kind, b->n, s->rows);
    else
        s->rows[0] += samples_of(b);
    if (b->view == FP_TIMELINE) {
        uint64_t first = s->first_time, last = s->last_time;
        for (uint32_t i = 0; i < b->n; i++) {
            first = b->time[i] < first ? b->time[i] : first;
            last = b->time[i] > last ? b->time[i] : last;
        }
        s->first_time = first;
        s->last_time = last;
    } else if (b->view == FP_STACKS) {
        uint64_t first = s->first_time, last = s->last_time;
        for (uint32_t i = 0; i < b->n; i++) {
            const uint64_t before = b->time[i] - 1; /* 0, no time, sorts last */
            first = before < first - 1 ? b->time[i] : first;
            last = b->time[i] > last ? b->time[i] : last;
        }
        s->first_time = first;
        s->last_time = last;
    }
    const uint32_t n_values = b->n_values < s->n_totals ? b->n_values : s->n_totals;
    const int overflow = add_self(b, s->totals, n_values, b->view == FP_GRAPH ? &s->calls : NULL);
    return overflow ? FP_E_OVERFLOW : FP_DONE;
}
