#include "symbols/ranges.h"

void fp_dwarf_ranges_add(struct fp_dwarf_ranges *r, uint64_t low, uint64_t high, uint32_t owner) {
    if (!low || low >= high) return;
    FP_PUSH(r->items, r->n, r->cap) = (struct fp_dwarf_range){low, high, owner};
}

/* ---- lists */

enum list_entry {
    END_OF_LIST = 0,
    BASE_ADDRESSX = 1,
    STARTX_ENDX = 2,
    STARTX_LENGTH = 3,
    OFFSET_PAIR = 4,
    BASE_ADDRESS = 5,
    START_END = 6,
    START_LENGTH = 7
};

/* The current list, and the address from which its offsets count.  A list that sets its base to 0 belongs to dropped
 * code: `is_dropped`. */
struct list {
    const struct fp_dwarf *d;
    const struct fp_dwarf_unit *unit;
    struct fp_dwarf_cursor c;
    uint64_t base;
    int is_dropped;
};

static void set_base(struct list *l, uint64_t base) {
    l->base = base;
    l->is_dropped = !base;
}

static uint64_t take_address(struct list *l, int is_index) {
    if (!is_index) return fp_dwarf_take(&l->c, l->unit->address_size);
    return fp_dwarf_address(l->d, l->unit, FP_FORM_ADDRX, fp_dwarf_take_uleb(&l->c));
}

/* Reads an entry of DWARF 5: 1 with a range, 2 without one, 0 at the end of the list. */
static int take_entry(struct list *l, uint64_t *low, uint64_t *high) {
    const unsigned kind = (unsigned)fp_dwarf_take(&l->c, 1);
    switch (kind) {
        case BASE_ADDRESSX:
        case BASE_ADDRESS: set_base(l, take_address(l, kind == BASE_ADDRESSX)); return 2;
        case OFFSET_PAIR:
            *low = l->base + fp_dwarf_take_uleb(&l->c);
            *high = l->base + fp_dwarf_take_uleb(&l->c);
            return l->is_dropped ? 2 : 1;
        case STARTX_ENDX:
        case START_END:
            *low = take_address(l, kind == STARTX_ENDX);
            *high = take_address(l, kind == STARTX_ENDX);
            return 1;
        case STARTX_LENGTH:
        case START_LENGTH:
            *low = take_address(l, kind == STARTX_LENGTH);
            *high = *low + fp_dwarf_take_uleb(&l->c);
            return 1;
        case END_OF_LIST: return 0;
        default: fp_dwarf_cursor_fail(&l->c); return 0;
    }
}

/* Reads an entry of DWARF 2 to 4, a pair of offsets: (-1, address) sets the base, (0, 0) ends the list. */
static int take_pair(struct list *l, uint64_t *low, uint64_t *high) {
    const unsigned size = l->unit->address_size;
    const uint64_t ones = size < 8 ? ((uint64_t)1 << 8 * size) - 1 : UINT64_MAX;
    const uint64_t from = fp_dwarf_take(&l->c, size), to = fp_dwarf_take(&l->c, size);
    if (!from && !to) return 0;
    if (from == ones) {
        set_base(l, to);
        return 2;
    }
    *low = l->base + from;
    *high = l->base + to;
    return l->is_dropped ? 2 : 1;
}

int fp_dwarf_ranges_add_list(struct fp_dwarf_ranges *r, const struct fp_dwarf *d, const struct fp_dwarf_unit *u,
                             uint64_t form, uint64_t number, uint64_t base, uint32_t owner) {
    const int is_new = u->version >= 5;
    uint64_t at = number, low = 0, high = 0;
    if (form == FP_FORM_RNGLISTX) { /* an index into the offsets at `range_lists` */
        if (__builtin_mul_overflow(number, u->offset_size, &at) || __builtin_add_overflow(at, u->range_lists, &at))
            return FP_E_MALFORMED;
        struct fp_dwarf_cursor c = fp_dwarf_cursor_at(d, FP_DWARF_RNGLISTS, at);
        at = fp_dwarf_take(&c, u->offset_size);
        if (c.bad || __builtin_add_overflow(at, u->range_lists, &at)) return FP_E_MALFORMED;
    }
    struct list l = {d, u, fp_dwarf_cursor_at(d, is_new ? FP_DWARF_RNGLISTS : FP_DWARF_RANGES, at), base, 0};
    int kind;
    while ((kind = is_new ? take_entry(&l, &low, &high) : take_pair(&l, &low, &high)) && !l.c.bad) {
        if (++r->work > r->most_work) return FP_E_MALFORMED;
        if (kind == 1) fp_dwarf_ranges_add(r, low, high, owner);
    }
    return l.c.bad ? FP_E_MALFORMED : 0;
}

/* ---- pieces */

static void add_piece(struct fp_dwarf_ranges *r, uint32_t first, uint64_t start, uint32_t owner) {
    if (r->n_pieces > first && r->pieces[r->n_pieces - 1].key == start) r->n_pieces--;
    if (r->n_pieces > first && r->pieces[r->n_pieces - 1].value == owner) return;
    FP_PUSH(r->pieces, r->n_pieces, r->cap_pieces) = (struct fp_pairs_item){start, owner};
}

/* A heap of ranges that have begun, the highest owner first. */
static inline int is_before(const struct fp_dwarf_range *items, uint32_t a, uint32_t b) {
    return items[a].owner > items[b].owner;
}

FP_HEAP(const struct fp_dwarf_range *, uint32_t, is_before)

static void cut(struct fp_dwarf_ranges *r, const struct fp_pairs_item *order, uint32_t *heap) {
    const uint32_t first = r->n_pieces;
    uint32_t next = 0, open = 0;
    uint64_t at = r->n ? order[0].key : 0;
    while (next < r->n || open) {
        while (next < r->n && order[next].key <= at) heap_push(r->items, heap, open++, (uint32_t)order[next++].value);
        while (open && r->items[heap[0]].high <= at) {
            heap[0] = heap[--open];
            if (open) heap_sink(r->items, heap, open, 0);
        }
        add_piece(r, first, at, open ? r->items[heap[0]].owner : 0);
        const uint64_t begins = next < r->n ? order[next].key : UINT64_MAX;
        const uint64_t ends = open ? r->items[heap[0]].high : UINT64_MAX;
        at = begins < ends ? begins : ends;
    }
}

void fp_dwarf_ranges_cut(struct fp_dwarf_ranges *r) {
    if (!r->n) return;
    struct fp_pairs_item *order = fp_scratch(r->n, sizeof *order);
    uint32_t *heap = fp_scratch(r->n, sizeof *heap);
    for (uint32_t i = 0; i < r->n; i++) order[i] = (struct fp_pairs_item){r->items[i].low, i};
    fp_pairs_sort(order, r->n);
    cut(r, order, heap);
    fp_scratch_free(order); /* and `heap` */
    r->n = 0;
}
