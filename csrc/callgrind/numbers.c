#include "callgrind/numbers.h"

/* Places allowed initially, and for each number defined: 64 KiB, and 128 bytes. */
enum { PLACES = 1 << 12, PLACES_EACH = 8 };

static void release_segment(struct fp_callgrind_numbers *t, unsigned k) {
    fp_release(t->segment[k], sizeof *t->segment[k] << k);
}

static void release_far(struct fp_callgrind_far_number *far, size_t mask) {
    fp_release(far, far ? (mask + 1) * sizeof *far : 0);
}

static size_t first_slot(const struct fp_callgrind_numbers *t, uint64_t id) {
    if (!t->secret.key[0]) return fp_callgrind_numbers_slot(t, id);
    return (size_t)fp_hash_key_hash(&t->secret, &id, sizeof id) & t->far_mask;
}

/* The slot of a far number, or a free slot for it. */
static struct fp_callgrind_far_number *slot_of(const struct fp_callgrind_numbers *t, uint64_t id) {
    size_t at = first_slot(t, id);
    while (t->far[at].key && t->far[at].key != id + 1) at = (at + 1) & t->far_mask;
    return &t->far[at];
}

/* Rehashes the far numbers, with room for one more, and moves those that have a segment by now into it. */
static int rehash(struct fp_callgrind_numbers *t) {
    struct fp_callgrind_far_number *was = t->far;
    const size_t mask = t->far_mask, were = was ? mask + 1 : 0;
    size_t n = 0, slots = FP_NUMBERS_FIRST;
    for (size_t i = 0; i < were; i++) n += was[i].key && !t->segment[fp_callgrind_numbers_segment(was[i].key - 1)];
    while (n >= slots / 4 * 3) slots *= 2;
    struct fp_callgrind_far_number *far = fp_zeroed(slots * sizeof *far);
    if (!far) return FP_E_NOMEM;
    t->far = far;
    t->far_mask = slots - 1;
    t->n_far = n;
    for (size_t i = 0; i < were; i++) {
        if (!was[i].key) continue;
        struct fp_callgrind_number *segment = t->segment[fp_callgrind_numbers_segment(was[i].key - 1)];
        if (segment)
            segment[fp_callgrind_numbers_place(was[i].key - 1)] = was[i].number;
        else
            *slot_of(t, was[i].key - 1) = was[i];
    }
    release_far(was, mask);
    return 0;
}

struct fp_callgrind_number *fp_callgrind_numbers_find_far(struct fp_callgrind_numbers *t, uint64_t id) {
    const unsigned k = fp_callgrind_numbers_segment(id);
    const uint64_t places = (uint64_t)1 << k; /* the previous segments have as many together */
    if (places <= (PLACES + (uint64_t)PLACES_EACH * t->n) / 2) {
        t->segment[k] = fp_zeroed((size_t)places * sizeof *t->segment[k]);
        if (!t->segment[k]) return NULL;
        if (t->n_far && rehash(t)) {
            release_segment(t, k);
            t->segment[k] = NULL;
            return NULL;
        }
        return t->segment[k] + fp_callgrind_numbers_place(id);
    }
    if (!t->far && rehash(t)) return NULL;
    struct fp_callgrind_far_number *slot = slot_of(t, id);
    if ((((size_t)(slot - t->far) - first_slot(t, id)) & t->far_mask) > FP_FAR && !t->secret.key[0]) {
        fp_hash_key_take(&t->secret);
        if (rehash(t)) {
            t->secret = (struct fp_hash_key){0};
            return NULL;
        }
        slot = slot_of(t, id);
    }
    if (!slot->key) {
        if (t->n_far >= t->far_mask / 4 * 3) {
            if (rehash(t)) return NULL;
            slot = slot_of(t, id);
        }
        slot->key = id + 1;
        t->n_far++;
    }
    return &slot->number;
}

void fp_callgrind_numbers_clear(struct fp_callgrind_numbers *t) {
    for (unsigned k = 0; k < sizeof t->segment / sizeof *t->segment; k++)
        if (t->segment[k]) release_segment(t, k);
    release_far(t->far, t->far_mask);
    memset(t, 0, sizeof *t);
}
