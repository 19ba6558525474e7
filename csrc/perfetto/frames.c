/* Android's frame timeline: when SurfaceFlinger expects a frame of a display or of an app, and when it was ready.
 *
 *   expected display frame 1 {cookie 7, token 4, pid 99}  at 10      99, lane "Expected Timeline"   4   10 - 40
 *   actual surface frame   4 {cookie 8, token 5, pid 42}  at 20      42, lane "Actual Timeline"     5   20 - 30
 *   end                    5 {cookie 8}                   at 30
 *   end                    5 {cookie 7}                   at 40
 *
 * A call is named after its token, as in the trace processor.
 */
#include "perfetto/read_private.h"

enum frame_kind { EXPECTED_DISPLAY = 1, ACTUAL_DISPLAY = 2, EXPECTED_SURFACE = 3, ACTUAL_SURFACE = 4, END = 5 };

static void begin_frame(struct fp_perfetto_read *r, int64_t time, uint32_t track, enum frame_kind kind, uint64_t token,
                        int64_t pid) {
    const int is_actual = kind == ACTUAL_DISPLAY || kind == ACTUAL_SURFACE;
    const char *const lane = is_actual ? "Actual Timeline" : "Expected Timeline";
    uint8_t text[32];
    const size_t n = (size_t)(fp_put_decimal(text, token) - text);
    const uint32_t name = fp_strings_intern(&r->model->strings, lane, strlen(lane));
    const uint32_t string = fp_strings_intern(&r->model->strings, text, n);
    const uint32_t function = fp_perfetto_function_of(r, string, 0);
    r->tracks.list[track].name = name;
    r->tracks.list[track].pid = pid;
    r->counts[FP_PERFETTO_N_CALLS]++;
    fp_perfetto_put_record(r, time, track, FP_PO_BEGIN, function, 0);
}

struct frame_fields {
    uint64_t cookie, token, pid;
};
#define TO(member) FP_WIRE_TO(struct frame_fields, member)
static const struct fp_wire_schema of_display = {" VVV", {0, TO(cookie), TO(token), TO(pid)}};
static const struct fp_wire_schema of_surface = {" VVVV", {0, TO(cookie), TO(token), 0, TO(pid)}};

int fp_perfetto_frame(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire m = k->message[FP_PF_FRAME];
    struct fp_wire_field event;
    int status;
    while ((status = fp_perfetto_next(&m, &event)) > 0) {
        const uint32_t kind = event.number;
        const int is_surface = kind == EXPECTED_SURFACE || kind == ACTUAL_SURFACE;
        struct frame_fields f = {0};
        if (event.wire != FP_WIRE_BYTES || kind < EXPECTED_DISPLAY || kind > END || !k->has_time) continue;
        if (fp_perfetto_fields(fp_wire_inside(&event), is_surface ? &of_surface : &of_display, &f))
            return FP_E_MALFORMED;
        const uint32_t track = fp_perfetto_track_of(r, FP_PT_FRAME, f.cookie, 0);
        if (kind == END)
            fp_perfetto_put_record(r, k->time, track, FP_PO_END, 0, 0);
        else
            begin_frame(r, k->time, track, (enum frame_kind)kind, f.token, (int32_t)(uint32_t)f.pid);
    }
    return status ? FP_E_MALFORMED : 0;
}
