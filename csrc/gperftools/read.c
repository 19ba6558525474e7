#include "gperftools/read.h"

#include "core/digits.h"
#include "gperftools/read_private.h"

/* The state of the decoder. */
enum { HEADER = 0, HEADER_REST, RECORDS, RESYNC, TEXT };

enum { MAX_HEADER_WORDS = 4096 };

struct fp_gperftools_reader *fp_gperftools_reader_new(struct fp_model *model, int lenient) {
    struct fp_gperftools_reader *g = fp_made(sizeof *g);
    g->model = model;
    g->lenient = lenient;
    fp_key_sums_init(&g->known, sizeof(uint64_t));
    fp_table_init(&g->addresses.pcs, 3);
    return g;
}

void fp_gperftools_reader_free(struct fp_gperftools_reader *g) {
    fp_key_sums_clear(&g->known);
    FP_CLEAR_TABLES(&g->addresses.pcs, &g->chains.joined);
    FP_FREE_BUFFERS(&g->rows.frames, &g->chains.coded);
    FP_FREE(g->chains.before, g->addresses.ranges, g->addresses.names, g->addresses.pc_frames, g->chains.is_joined,
            g->feed.pc, g);
}

int fp_gperftools_header(const uint8_t *p, size_t n, int *swap) {
    for (int word = 4; word <= 8; word += 4)
        for (*swap = 0; *swap < 2; ++*swap) {
            if (n < (size_t)word * 5) continue;
            uint64_t words = fp_gperftools_word(p + word, word, *swap);
            if (fp_gperftools_word(p, word, *swap) == 0 && words >= 3 && words <= MAX_HEADER_WORDS &&
                fp_gperftools_word(p + 2 * word, word, *swap) <= 1 &&
                fp_gperftools_word(p + 3 * word, word, *swap) <= UINT32_MAX &&
                fp_gperftools_word(p + 4 * word, word, *swap) == 0)
                return word;
        }
    *swap = 0;
    return 0;
}

/* No first record has more ticks than these if its depth is impossible, too: the file has another format. */
enum { MANY_TICKS = 1 << 24 };

int fp_gperftools_sniff(const uint8_t *p, size_t n) {
    int swap, word = fp_gperftools_header(p, n, &swap);
    if (!word) return 0;
    const size_t w = (size_t)word;
    const size_t at = (size_t)(fp_gperftools_word(p + w, word, swap) + 2) * w;
    const int has_period = fp_gperftools_word(p + 3 * w, word, swap) != 0;
    if (at + 2 * w > n) return has_period;
    const uint64_t count = fp_gperftools_word(p + at, word, swap), depth = fp_gperftools_word(p + at + w, word, swap);
    if (!has_period)
        return count && depth && depth <= FP_GPERF_CUT_DEPTH + 1; /* a header of zeros needs more evidence */
    return depth <= FP_GPERF_MAX_DEPTH || count <= MANY_TICKS;
}

static int header(struct fp_gperftools_reader *g, struct fp_window *in, struct fp_err *err) {
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos;
    uint64_t at = in->base + in->pos;
    /* 40 bytes contain the five words of either size.  Only a 32-bit profile without records is shorter. */
    if (left < 40 && !in->eof) return FP_MORE;
    int swap;
    g->word = fp_gperftools_header(p, left, &swap);
    g->swap = swap;
    if (!g->word) {
        if (left < 20) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside its header");
        return fp_fail(err, FP_E_MALFORMED, at, "the header is not that of a CPU profile");
    }
    uint64_t words = fp_gperftools_word(p + g->word, g->word, g->swap);
    g->java = fp_gperftools_word(p + 2 * g->word, g->word, g->swap) == 1;
    g->period_us = fp_gperftools_word(p + 3 * g->word, g->word, g->swap);
    if (g->java) g->exact_callers = 1;
    g->feed.header_words = (uint32_t)words + 2;
    g->feed.skip = g->feed.header_words * (uint64_t)g->word;
    g->feed.state = HEADER_REST;
    return FP_DONE;
}

/* Skips g->feed.skip bytes.  FP_DONE or FP_MORE. */
static int pass_over(struct fp_gperftools_reader *g, struct fp_window *in, struct fp_err *err) {
    size_t left = in->n - in->pos;
    size_t n = g->feed.skip < left ? (size_t)g->feed.skip : left;
    in->pos += n;
    g->feed.skip -= n;
    if (!g->feed.skip) return FP_DONE;
    if (in->eof) return fp_fail(err, FP_E_TRUNCATED, in->base + in->n, "the file ends inside its header");
    return FP_MORE;
}

/* A record in the window. */
struct record {
    uint64_t count, depth, at;
    const uint8_t *pcs;
    size_t coded, n_coded; /* where its chain is in g->chains.coded, and its bytes */
    uint32_t hash;         /* of these */
    uint32_t guess;        /* the chain's id, most likely; see core/model.h */
};

/* In a second run, which is rare: a chain restarts at 0 at its first record in this run. */
static void begin_run(struct fp_gperftools_reader *g, uint32_t id) {
    struct fp_gperftools_before *before = FP_AT(g->chains.before, g->chains.cap_before, id);
    if (before->run == g->feed.run) return;
    if (*fp_gperftools_ticks(g, id) > before->most) before->most = *fp_gperftools_ticks(g, id);
    *fp_gperftools_ticks(g, id) = 0;
    before->run = g->feed.run;
}

/* fp_varint without a branch that depends on v, which it would often mispredict.  May write eight bytes. */
FP_INLINE uint8_t *put_varint(uint8_t *to, uint64_t v) {
    if (FP_UNLIKELY(v >> 56)) return fp_varint(to, v);
    const unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), n = (bits + 6) * 37 >> 8; /* bytes: a seventh */
    v = (v & 0xfffffff0000000) << 4 | (v & 0xfffffff); /* two groups of 28 bits, 4 of 14, 8 of 7 */
    v = (v & 0xfffc0000fffc000) << 2 | (v & 0x3fff00003fff);
    v = (v & 0x3f803f803f803f80) << 1 | (v & 0x7f007f007f007f);
    fp_store_u64(to, v | UINT64_C(0x80808080808080) >> (64 - 8 * n)); /* more follows all but the last */
    return to + n;
}

FP_INLINE uint8_t *put_chain(uint8_t *to, const struct record *r, int word, int swap) {
    uint64_t before = 0;
    for (size_t i = 0; i < r->depth; i++) {
        const uint64_t pc = fp_gperftools_word(r->pcs + i * (size_t)word, word, swap);
        to = put_varint(to, fp_zig(pc - before));
        before = pc;
    }
    return to;
}

/* Appends the chain of a record to g->chains.coded: programs and libraries are small, so that a difference takes three
 * bytes or so. */
static void encode(struct fp_gperftools_reader *g, struct record *r) {
    enum { LONGEST = 10 }; /* bytes of a varint */
    struct fp_buf *b = &g->chains.coded;
    fp_buf_reserve(b, (size_t)r->depth * LONGEST + 1);
    uint8_t *const begin = b->p + b->n;
    const int is_usual = g->word == 8 && !g->swap;
    r->coded = b->n;
    r->n_coded = (size_t)((is_usual ? put_chain(begin, r, 8, 0) : put_chain(begin, r, g->word, g->swap)) - begin);
    b->n += r->n_coded;
}

/* This many records are looked up together, so that their lookups wait for memory at the same time. */
enum { GROUP = 32 };

/* Counts a record. */
static int add(struct fp_gperftools_reader *g, const struct record *r, struct fp_err *err) {
    if (r->count > INT64_MAX || g->stats.ticks > INT64_MAX - r->count)
        return fp_fail_got(err, FP_E_OVERFLOW, r->at, "a record's count", FP_GOT_UNSIGNED, r->count,
                           "a sum of counts below 2^63", 0);
    const uint32_t id = fp_key_sums_key(&g->known, g->chains.coded.p + r->coded, r->n_coded, r->hash);
    if (FP_UNLIKELY(g->feed.run)) begin_run(g, id);
    if (!id) g->feed.has_empty = 1;
    *fp_gperftools_ticks(g, id) += r->count;
    g->stats.ticks += r->count;
    g->stats.records++;
    return 0;
}

/* Counts n records. */
static int add_all(struct fp_gperftools_reader *g, struct record *records, uint32_t n, struct fp_err *err) {
    for (struct record *r = records; r < records + n; r++) {
        r->guess = fp_strings_guess(&g->known.keys, r->hash);
        if (r->guess < g->known.cap) __builtin_prefetch(fp_gperftools_ticks(g, r->guess), 1);
    }
    for (struct record *r = records; r < records + n; r++) fp_strings_prefetch_bytes(&g->known.keys, r->guess);
    for (struct record *r = records; r < records + n; r++) {
        if (!add(g, r, err)) continue;
        if (!g->lenient || err->code != FP_E_OVERFLOW) return err->code;
        g->stats.bad_records++;
        g->stats.lost_bytes += (r->depth + 2) * (uint64_t)g->word;
    }
    return 0;
}

/* next_record: a record was found. */
enum { GOT = 16 };

/* The next record.  GOT, FP_MORE, an error, or FP_DONE when there are no more: g->feed.state is what follows. */
static inline int next_record(struct fp_gperftools_reader *g, struct fp_window *in, struct record *r,
                              struct fp_err *err) {
    const size_t w = (size_t)g->word;
    const int word = g->word, swap = g->swap;
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos, nbytes = 2 * w;
    uint64_t at = in->base + in->pos, depth = 0;
    if (left >= nbytes) {
        depth = fp_gperftools_word(p + w, word, swap);
        if (FP_UNLIKELY(depth > FP_GPERF_MAX_DEPTH)) {
            if (g->lenient) {
                g->stats.bad_records++;
                g->feed.state = RESYNC;
                return FP_DONE;
            }
            return fp_fail_got(err, FP_E_MALFORMED, at + w, "the depth of a stack", FP_GOT_UNSIGNED, depth, "0 to %",
                               FP_GPERF_MAX_DEPTH);
        }
        nbytes += (size_t)depth * w;
    }
    if (left < nbytes) {
        if (!in->eof) return FP_MORE;
        if (left && !g->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a record");
        if (left) {
            g->stats.bad_records++;
            g->stats.lost_bytes += left;
            in->pos = in->n;
        }
        g->feed.state = TEXT;
        return FP_DONE;
    }
    in->pos += nbytes;
    *r = (struct record){.count = fp_gperftools_word(p, word, swap), .depth = depth, .at = at, .pcs = p + 2 * w};
    if (!r->count && depth == 1 && !fp_gperftools_word(r->pcs, word, swap)) {
        g->trailer = 1;
        g->feed.state = TEXT;
        return FP_DONE;
    }
    return GOT;
}

static int records(struct fp_gperftools_reader *g, struct fp_window *in, struct fp_err *err) {
    struct record group[GROUP];
    for (;;) {
        int status = GOT;
        uint32_t n = 0;
        g->chains.coded.n = 0;
        while (n < GROUP && (status = next_record(g, in, &group[n], err)) == GOT) {
            struct record *r = &group[n++];
            encode(g, r);
            r->hash = fp_strings_hash(g->chains.coded.p + r->coded, r->n_coded);
            fp_strings_prefetch(&g->known.keys, r->hash);
        }
        /* Records before the malformed one may be wrong, too.  Report the first error in the file. */
        FP_TRY(add_all(g, group, n, err));
        if (status != GOT) return status;
    }
}

/* Lenient: after a malformed record, searches the trailer word by word, to find the mapped objects. */
static int resync(struct fp_gperftools_reader *g, struct fp_window *in) {
    const size_t w = (size_t)g->word;
    for (;;) {
        const uint8_t *p = in->p + in->pos;
        size_t left = in->n - in->pos;
        if (left < 3 * w) {
            if (!in->eof) return FP_MORE;
            g->stats.lost_bytes += left;
            in->pos = in->n;
            g->feed.state = TEXT;
            return FP_DONE;
        }
        if (!fp_gperftools_word(p, g->word, g->swap) && fp_gperftools_word(p + w, g->word, g->swap) == 1 &&
            !fp_gperftools_word(p + 2 * w, g->word, g->swap)) {
            in->pos += 3 * w;
            g->trailer = 1;
            g->feed.state = TEXT;
            return FP_DONE;
        }
        in->pos += w;
        g->stats.lost_bytes += w;
    }
}

/* The text, line by line.  If a forked process wrote to the file, words follow the text (gperftools/read.h).  They are
 * recognized by bytes of 0, which small numbers have and text does not. */
static int text(struct fp_gperftools_reader *g, struct fp_window *in) {
    const size_t w = (size_t)g->word;
    const uint8_t *p = in->p + in->pos;
    size_t left = in->n - in->pos;
    if (left < 5 * w && !in->eof) return FP_MORE;
    if (left >= 3 * w && !g->java) {
        uint64_t words[5] = {0};
        for (size_t i = 0; i < 5 && (i + 1) * w <= left; i++)
            words[i] = fp_gperftools_word(p + i * w, g->word, g->swap);
        int again = left >= 5 * w && !words[0] && words[1] + 2 == g->feed.header_words && !words[2] &&
                    words[3] == g->period_us && words[3];
        int ends = !words[0] && words[1] == 1 && !words[2];
        if (again || ends || (words[0] && words[1] && words[1] <= FP_GPERF_MAX_DEPTH)) {
            g->trailer = 0;
            g->stats.forks++;
            if (again) {
                g->feed.run++;
                g->feed.skip = g->feed.header_words * (uint64_t)w;
            } else {
                g->stats.forks_in_pieces++;
            }
            g->feed.state = again ? HEADER_REST : RECORDS;
            return FP_DONE;
        }
    }
    const uint8_t *end = left ? memchr(p, '\n', left) : NULL;
    if (!end && !in->eof) return FP_MORE;
    g->line_n = end ? (size_t)(end - p) + 1 : left;
    return FP_NEEDS;
}

int fp_gperftools_feed(struct fp_gperftools_reader *g, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        int status = FP_DONE;
        switch (g->feed.state) {
            case HEADER: status = header(g, in, err); break;
            case HEADER_REST:
                status = pass_over(g, in, err);
                if (status == FP_DONE) g->feed.state = RECORDS;
                break;
            case RECORDS: status = records(g, in, err); break;
            case RESYNC: status = resync(g, in); break;
            default: status = text(g, in);
        }
        if (status != FP_DONE) return status;
    }
}
