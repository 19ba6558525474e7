#include "otlp/walk.h"

#include "otlp/read.h"

#define PROFILE(member) FP_WIRE_TO(struct fp_otlp_profile, member)

/* Fields that differ between releases are blank; read.c and tables.c check them. */
static const struct fp_wire_schema schema[] = {
    [FP_OTLP_FILE] = {.kinds = ""},
    [FP_OTLP_DATA] = {.kinds = " BB"},
    [FP_OTLP_RESOURCE_PROFILES] = {.kinds = " BBB"},
    [FP_OTLP_SCOPE_PROFILES] = {.kinds = " BBB"},
    [FP_OTLP_PROFILE] = {" BBFVBV", {[3] = PROFILE(time), [4] = PROFILE(duration), [6] = PROFILE(period)}},
    [FP_OTLP_DICTIONARY] = {.kinds = " BBBBBBB"},
};

const struct fp_wire_schema *fp_otlp_schema(unsigned container) {
    return &schema[container];
}

void fp_otlp_walk_begin(struct fp_otlp_walk *w, unsigned container) {
    w->depth = 1;
    w->levels[0] = (struct fp_otlp_level){.end = UINT64_MAX, .message = (uint8_t)container};
    w->skip = 0;
    w->lost = 0;
}

static int cut_short(struct fp_otlp_walk *w, struct fp_window *in, uint64_t at, struct fp_err *err) {
    const uint64_t end = in->base + in->n;
    in->pos = in->n;
    if (!w->lenient) return fp_fail(err, FP_E_TRUNCATED, at, "the file ends inside a message");
    if (w->counts) {
        w->lost_bytes += end - at;
        w->bad_fields++;
    }
    return FP_DONE;
}

/* Skips w->skip bytes.  0 when done. */
static int pass_over(struct fp_otlp_walk *w, struct fp_window *in, struct fp_err *err) {
    const size_t left = in->n - in->pos, n = w->skip < left ? (size_t)w->skip : left;
    in->pos += n;
    w->skip -= n;
    if (w->lost && w->counts) w->lost_bytes += n;
    if (!w->skip) {
        w->lost = 0;
        return 0;
    }
    if (!in->eof) return FP_MORE;
    if (!w->lost) return cut_short(w, in, in->base + in->pos, err);
    return FP_DONE;
}

/* Reports a malformed field; when lenient, skips the rest of its message. */
static int damaged(struct fp_otlp_walk *w, uint64_t at, const char *what, struct fp_err *err) {
    if (!w->lenient) return fp_fail(err, FP_E_MALFORMED, at, what);
    const uint64_t end = w->levels[w->depth - 1].end;
    w->bad_fields += w->counts != 0;
    w->skip = end == UINT64_MAX ? UINT64_MAX : end - at;
    w->lost = 1;
    return 0;
}

static int begin(struct fp_otlp_walk *w, unsigned container, uint64_t end) {
    w->levels[w->depth++] = (struct fp_otlp_level){.end = end, .message = (uint8_t)container};
    return FP_OTLP_BEGIN;
}

static int end(struct fp_otlp_walk *w, uint64_t at) {
    w->depth--;
    w->end_at = at;
    return FP_OTLP_END;
}

/* Begins a frame: a length and a message. */
static int next_frame(struct fp_otlp_walk *w, struct fp_window *in, struct fp_err *err) {
    const size_t left = in->n - in->pos;
    const uint64_t at = in->base + in->pos;
    if (left < 4 && !in->eof) return FP_MORE;
    if (!left) return FP_DONE;
    if (left < 4) return cut_short(w, in, at, err);
    const uint32_t n = __builtin_bswap32(fp_u32(in->p + in->pos));
    in->pos += 4;
    w->at = at;
    return begin(w, FP_OTLP_DATA, at + 4 + n);
}

/* Recognizes layouts before 1.8 by the wire types of some fields: tables in ProfilesData (1.6), a list of locations or
 * tables in the profile (1.7, 1.5), a container around it (1.3), a duration where 1.8 has the period type. */
static int is_before_1_8(unsigned container, const struct fp_wire_field *f) {
    if (container == FP_OTLP_DATA) return f->number >= 3 && f->number <= 8 && f->wire == FP_WIRE_BYTES;
    if (container != FP_OTLP_PROFILE) return 0;
    return (f->number == 3 && f->wire == FP_WIRE_BYTES) || (f->number == 2 && f->wire == FP_WIRE_FIXED64) ||
           (f->number == 5 && f->wire == FP_WIRE_VARINT);
}

/* Handles a field whose head takes `used` bytes.  0: it is damaged and skipped. */
static int take_field(struct fp_otlp_walk *w, struct fp_window *in, struct fp_wire_field *f, size_t used,
                      struct fp_err *err) {
    const unsigned inside = fp_otlp_inside(w);
    const uint64_t at = w->at, limit = w->levels[w->depth - 1].end;
    const size_t left = in->n - in->pos - used;
    if (is_before_1_8(inside, f))
        return fp_fail(err, FP_E_VERSION, at, "the layout of OTLP profiles before 1.8 is not supported");
    if (used > limit - at || f->n > limit - at - used)
        return damaged(w, at, "a field extends past the end of its message", err);
    if (fp_wire_kind(&schema[inside], f) == FP_WIRE_BAD) {
        if (!w->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the wire type of a field", FP_GOT_UNSIGNED, f->wire,
                               "the schema's", 0);
        return damaged(w, at, "", err);
    }
    const int wanted = f->number < 32 && w->wanted[inside] >> f->number & 1;
    const unsigned container = fp_otlp_container(inside, f->number);
    if (container && wanted) {
        in->pos += used;
        return begin(w, container, at + used + f->n);
    }
    if (wanted && f->n > FP_OTLP_MAX_MESSAGE) {
        if (!w->lenient)
            return fp_fail_got(err, FP_E_MALFORMED, at, "the length of a field", FP_GOT_UNSIGNED, f->n, "at most %",
                               FP_OTLP_MAX_MESSAGE);
        w->bad_fields += w->counts != 0;
        in->pos += used;
        w->skip = f->n;
        w->lost = 1;
        return 0;
    }
    if (f->n <= left) {
        in->pos += used + f->n;
    } else if (!wanted) {
        in->pos += used;
        w->skip = f->n;
    } else {
        return in->eof ? cut_short(w, in, at, err) : FP_MORE;
    }
    return FP_OTLP_FIELD;
}

/* Reads the one-byte begin or end of a group.  0: it is neither. */
static int group(struct fp_otlp_walk *w, struct fp_window *in) {
    const uint8_t tag = in->p[in->pos];
    if ((tag & 7) == 4) {
        const uint64_t at = in->base + in->pos++;
        return end(w, at);
    }
    if ((tag & 7) != 3) return 0;
    in->pos++;
    return begin(w, fp_otlp_container(fp_otlp_inside(w), tag >> 3), UINT64_MAX);
}

/* Skips the complete samples from here on, for a pass that does not want them: nearly all bytes of most files.
 *
 *     12 1a ...   field 2, 26 bytes      12 9a 01 ...   154 bytes
 */
static void skip_samples(const struct fp_otlp_walk *w, struct fp_window *in) {
    const uint64_t left = w->levels[w->depth - 1].end - (in->base + in->pos);
    const uint8_t *p = in->p + in->pos, *const end = left < in->n - in->pos ? p + left : in->p + in->n;
    while (end - p > 3 && p[0] == 0x12) {
        const size_t n = p[1] < 0x80 ? p[1] + 2u : p[2] < 0x80 ? ((p[1] & 0x7fu) | (size_t)p[2] << 7) + 3 : SIZE_MAX;
        if (n > (size_t)(end - p)) break;
        p += n;
    }
    in->pos = (size_t)(p - in->p);
}

int fp_otlp_next(struct fp_otlp_walk *w, struct fp_window *in, struct fp_wire_field *f, struct fp_err *err) {
    for (;;) {
        if (FP_UNLIKELY(w->skip)) FP_TRY(pass_over(w, in, err));
        if (fp_otlp_inside(w) == FP_OTLP_PROFILE && !(w->wanted[FP_OTLP_PROFILE] >> FP_OTLP_SAMPLE & 1))
            skip_samples(w, in);
        const uint64_t at = in->base + in->pos;
        if (FP_UNLIKELY(at == w->levels[w->depth - 1].end)) return end(w, at);
        if (FP_UNLIKELY(w->depth == 1 && w->form == FP_OTLP_FRAMED && fp_otlp_inside(w) == FP_OTLP_FILE))
            return next_frame(w, in, err);
        if (FP_UNLIKELY(in->pos == in->n)) {
            if (!in->eof) return FP_MORE;
            return w->depth == 1 ? FP_DONE : cut_short(w, in, at, err);
        }
        w->at = at;
        if (w->form == FP_OTLP_GROUPED) FP_TRY(group(w, in));
        const int used = fp_wire_read_head(in->p + in->pos, in->p + in->n, f);
        int status = 0;
        if (FP_UNLIKELY(used == FP_WIRE_CUT)) {
            if (!in->eof) return FP_MORE;
            return cut_short(w, in, at, err);
        }
        if (FP_UNLIKELY(used == FP_WIRE_BAD)) {
            status = damaged(w, at, "a field has an invalid tag or length", err);
        } else {
            status = take_field(w, in, f, (size_t)used, err);
        }
        if (status) return status;
    }
}
