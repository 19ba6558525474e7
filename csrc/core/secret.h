/* core/secret.h - how a hash table stays fast when a file was made to slow it down.
 *
 * The tables hash with constants, which is fastest, and the same in each run.  But who reads these constants can write
 * keys that all meet in one slot, and with open addressing 10^5 of them take 10^10 steps.  A table notices that when a
 * new key would come to lie more than FP_FAR slots behind the one where its search begins.  Then it takes a secret from
 * the system, enters all its keys anew, and hashes with the secret from then on.  Nobody can foresee which keys meet
 * now, so a table does this once at most.
 *
 *   8 slots, FP_FAR 2; a, b, c and d begin at slot 3      3 a, 4 b, 5 c; d would come to lie in 6:
 *   with the secret they begin at 1, 6, 3 and 1           1 a, 2 d, 3 c, 6 b
 *
 * Ids are given in the order in which keys come.  So nothing that is written depends on a secret.
 */
#ifndef FP_SECRET_H
#define FP_SECRET_H

#include "core/fp.h"

/* cffi-begin */

struct fp_secret {
    uint64_t key[2]; /* key[0] is 0: none was taken yet */
};

/* Takes a secret. */
void fp_secret_take(struct fp_secret *s);

/* The hash of `n` bytes at `p`: SipHash-1-3. */
uint64_t fp_secret_hash(const struct fp_secret *s, const void *p, size_t n);

/* cffi-end */

/* Of 10^7 keys that nobody chose, in tables that they fill to three quarters, none came to lie more than 240 slots
 * behind, and e times as few lie 27 slots farther.  Where fuzzers look for errors being far is common. */
#ifdef FP_DEBUG
enum { FP_FAR = 4 };
#else
enum { FP_FAR = 1024 };
#endif

#endif
