/* core/hash_key.h - keeps hash tables fast on files made to slow them down.
 *
 * The tables hash with constants, which is fast and repeatable.  But the constants are public: a file can contain keys
 * that all collide in one slot, and with open addressing 10^5 of them take 10^10 steps.  A table detects this
 * when a new key would land more than FP_FAR slots after the slot where its search begins.  Then it takes a random
 * secret from the system, rehashes all its keys, and uses the secret from then on.  Collisions are now unpredictable,
 * so a table does this at most once.
 *
 *   8 slots, FP_FAR 2; a, b, c and d begin at slot 3      3 a, 4 b, 5 c; d would land in 6:
 *   with the secret they begin at 1, 6, 3 and 1           1 a, 2 d, 3 c, 6 b
 *
 * Ids are given in the order in which keys arrive, so no output depends on a secret.
 */
#pragma once

#include "core/fp.h"

/* cffi-begin */

struct fp_hash_key {
    uint64_t key[2]; /* key[0] is 0: none taken yet */
};

/* Gets a random secret from the system. */
void fp_hash_key_take(struct fp_hash_key *s);

/* The hash of `n` bytes at `p`: SipHash-1-3. */
uint64_t fp_hash_key_hash(const struct fp_hash_key *s, const void *p, size_t n);

/* cffi-end */

/* Of 10^7 non-adversarial keys in tables filled to three quarters, none landed more than 240 slots away; the number
 * falls by a factor of e every 27 slots.  Fuzzers use a smaller limit, so that they reach this case. */
#ifdef FP_DEBUG
enum { FP_FAR = 4 };
#else
enum { FP_FAR = 1024 };
#endif
