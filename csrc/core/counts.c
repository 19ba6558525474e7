#include "core/counts.h"

#include "core/array.h"
#include "core/branches.h"
#include "core/guard.h"

struct fp_counts *fp_counts_new(const struct fp_model *model) {
    struct fp_counts *c = fp_made(sizeof *c);
    c->model = model;
    fp_table_init(&c->places, FP_COUNTS_PLACE_WIDTH);
    fp_table_init(&c->calls, FP_COUNTS_CALL_WIDTH);
    fp_table_init(&c->branches, FP_COUNTS_BRANCH_WIDTH);
    fp_table_init(&c->lines, FP_COUNTS_LINE_WIDTH);
    fp_table_init(&c->line_calls, FP_COUNTS_LINE_CALL_WIDTH);
    return c;
}

void fp_counts_free(struct fp_counts *c) {
    FP_CLEAR_TABLES(&c->places, &c->calls, &c->branches, &c->lines, &c->line_calls);
    FP_FREE(c->line_counts, c->line_called, c->taken, c->mispredicted, c->counts, c->called, c);
}

static int too_large(struct fp_err *err) {
    return fp_fail_beyond(err, "the count of an instruction", FP_NO_COLUMN, "2^63 - 1");
}

/* The row of an address, with its count set to 0 if it is new. */
static uint32_t place(struct fp_counts *c, uint32_t space, uint64_t address) {
    const uint32_t row[FP_COUNTS_PLACE_WIDTH] = {space, FP_WORDS(address)};
    const uint32_t at = fp_table_intern(&c->places, row);
    fp_array_zeroed(&c->counts, &c->cap_counts, (uint64_t)at + 1, sizeof *c->counts);
    return at;
}

static int add_cost(struct fp_counts *c, uint32_t space, uint64_t address, int64_t cost, struct fp_err *err) {
    if (cost < 0) {
        c->negative++;
        return FP_DONE;
    }
    if (!cost) return FP_DONE;
    if (!address || !space) {
        c->without_address++;
        return __builtin_add_overflow(c->cost_without, cost, &c->cost_without) ? too_large(err) : FP_DONE;
    }
    const uint32_t at = place(c, space, address);
    return __builtin_add_overflow(c->counts[at], cost, &c->counts[at]) ? too_large(err) : FP_DONE;
}

static int add_calls(struct fp_counts *c, const struct fp_batch *in, uint32_t i, uint32_t space, struct fp_err *err) {
    const uint64_t target = in->target_address[i];
    if (!in->count[i]) return FP_DONE;
    if (!in->address[i] || !space) {
        c->without_address++;
        return FP_DONE;
    }
    const uint32_t from = place(c, space, in->address[i]);
    const uint32_t row[FP_COUNTS_CALL_WIDTH] = {from, in->callee[i], FP_WORDS(target)};
    const uint32_t at = fp_table_intern(&c->calls, row);
    fp_array_zeroed(&c->called, &c->cap_called, (uint64_t)at + 1, sizeof *c->called);
    return __builtin_add_overflow(c->called[at], in->count[i], &c->called[at]) ? too_large(err) : FP_DONE;
}

/* The row of a line, with its count set to 0 if it is new. */
static uint32_t line_of(struct fp_counts *c, const struct fp_batch *in, uint32_t i) {
    const uint32_t row[FP_COUNTS_LINE_WIDTH] = {in->function[i], in->file[i], in->line[i]};
    const uint32_t at = fp_table_intern(&c->lines, row);
    fp_array_zeroed(&c->line_counts, &c->cap_line_counts, (uint64_t)at + 1, sizeof *c->line_counts);
    c->line_rows++;
    return at;
}

/* Adds a cost or calls of a row that has no address. */
static int put_line(struct fp_counts *c, const struct fp_batch *in, uint32_t i, struct fp_err *err) {
    if (in->kind[i] == FP_COST) {
        const int64_t cost = in->values[i];
        if (cost < 0) c->negative++;
        if (cost <= 0) return FP_DONE;
        const uint32_t at = line_of(c, in, i);
        return __builtin_add_overflow(c->line_counts[at], cost, &c->line_counts[at]) ? too_large(err) : FP_DONE;
    }
    if (!in->count[i]) return FP_DONE;
    const uint32_t row[FP_COUNTS_LINE_CALL_WIDTH] = {line_of(c, in, i), in->callee[i]};
    const uint32_t at = fp_table_intern(&c->line_calls, row);
    fp_array_zeroed(&c->line_called, &c->cap_line_called, (uint64_t)at + 1, sizeof *c->line_called);
    return __builtin_add_overflow(c->line_called[at], in->count[i], &c->line_called[at]) ? too_large(err) : FP_DONE;
}

static int put_graph(struct fp_counts *c, const struct fp_batch *in, uint32_t i, struct fp_err *err) {
    const uint32_t space = fp_table_row(&c->model->functions, in->function[i])[FP_FUNCTION_OBJECT];
    if (!in->address[i] && (in->kind[i] == FP_COST || in->kind[i] == FP_CALL)) return put_line(c, in, i, err);
    switch (in->kind[i]) {
        case FP_COST: return add_cost(c, space, in->address[i], in->values[i], err);
        case FP_CALL: return add_calls(c, in, i, space, err);
        case FP_BLOCK: return FP_DONE;
        default: c->jumps++; return FP_DONE;
    }
}

static int put_sample(struct fp_counts *c, const struct fp_batch *in, uint32_t i, struct fp_err *err) {
    const struct fp_model *m = c->model;
    const uint32_t *frame = fp_table_row(&m->frames, fp_table_row(&m->stacks, in->stack[i])[FP_STACK_FRAME]);
    const uint64_t address = frame[FP_FRAME_ADDRESS] | (uint64_t)frame[FP_FRAME_ADDRESS + 1] << 32;
    return add_cost(c, frame[FP_FRAME_MAPPING], address, in->values[i], err);
}

/* The sum of a column and the one of a row, checked. */
static int add_to(int64_t *sum, int64_t count, struct fp_err *err) {
    return __builtin_add_overflow(*sum, count, sum) ? too_large(err) : FP_DONE;
}

static int put_branch(struct fp_counts *c, const struct fp_batch *in, uint32_t i, struct fp_err *err) {
    const uint32_t *leaf = fp_table_row(&c->model->stacks, in->stack[i]);
    const uint32_t *root = fp_table_row(&c->model->stacks, leaf[FP_STACK_PARENT]);
    const int64_t taken = in->values[i], missed = in->values[in->cap + i], runs = in->values[2 * (size_t)in->cap + i];
    if (taken < 0 || missed < 0 || runs < 0) {
        c->negative++;
        return FP_DONE;
    }
    if (!leaf[FP_STACK_PARENT] || root[FP_STACK_PARENT]) { /* not two frames */
        c->without_address++;
        return FP_DONE;
    }
    for (uint32_t is_run = 0; is_run < 2; is_run++) {
        if (is_run ? !runs : !taken && !missed) continue;
        const uint32_t row[FP_COUNTS_BRANCH_WIDTH] = {root[FP_STACK_FRAME], leaf[FP_STACK_FRAME], is_run};
        const uint32_t at = fp_table_intern(&c->branches, row);
        fp_array_zeroed(&c->taken, &c->cap_taken, (uint64_t)at + 1, sizeof *c->taken);
        fp_array_zeroed(&c->mispredicted, &c->cap_mispredicted, (uint64_t)at + 1, sizeof *c->mispredicted);
        FP_TRY(add_to(&c->taken[at], is_run ? runs : taken, err));
        if (!is_run) FP_TRY(add_to(&c->mispredicted[at], missed, err));
    }
    return FP_DONE;
}

int fp_counts_put(struct fp_counts *c, const struct fp_batch *in, struct fp_err *err) {
    int status = FP_DONE;
    if (!in->n_values) return FP_DONE;
    const int is_branches = c->is_branches && in->n_values == FP_BRANCHES_COLUMNS;
    for (uint32_t i = 0; i < in->n && !status; i++)
        status = in->view == FP_GRAPH ? put_graph(c, in, i, err)
                 : is_branches        ? put_branch(c, in, i, err)
                                      : put_sample(c, in, i, err);
    return status;
}
