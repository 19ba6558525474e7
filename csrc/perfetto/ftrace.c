#include <math.h>

#include "perfetto/read_private.h"

/* A kernel event: its time, its thread, and its print, switch or waking, if it is one. */
struct kernel_event {
    uint64_t time, tid;
    struct fp_wire print, change, waking;
};
#define EVENT(member) FP_WIRE_TO(struct kernel_event, member)
static const struct fp_wire_schema of_event = {
    .kinds = {0, 'V', 'V', 'B', 'B', [20] = 'B'},
    .to = {0, EVENT(time), EVENT(tid), EVENT(print), EVENT(change), [20] = EVENT(waking)}};

struct bundle {
    uint64_t cpu, clock;
};
static const struct fp_wire_schema of_bundle = {
    " VBVBV", {[1] = FP_WIRE_TO(struct bundle, cpu), [5] = FP_WIRE_TO(struct bundle, clock)}};
static const struct fp_wire_schema of_print = {"  B", {[2] = FP_WIRE_ONLY}};

/* An int32, which a varint holds as 64 bits. */
static int64_t tid_of(const struct kernel_event *e) {
    return (int32_t)(uint32_t)e->tid;
}

/* Reads a number of at most 18 digits.  Whether the text is one. */
static int take_whole(const uint8_t *p, size_t n, int64_t *v) {
    uint8_t digits[20] = {0};
    uint64_t value;
    const size_t sign = n && *p == '-' ? 1 : 0;
    if (n == sign || n - sign > 18) return 0;
    memcpy(digits, p + sign, n - sign);
    const uint8_t *after = fp_decimal(digits, &value);
    *v = sign ? -(int64_t)value : (int64_t)value;
    return after && !*after;
}

/* Reads the print of a counter, from its process on: 1234|name|7, or Chrome's 1234|name|7|category. */
static void take_counter(struct fp_perfetto_read *r, const uint8_t *p, const uint8_t *end, int64_t time) {
    const uint8_t *name = memchr(p, '|', (size_t)(end - p)),
                  *value = name ? memchr(name + 1, '|', (size_t)(end - name - 1)) : NULL,
                  *after = value ? memchr(value + 1, '|', (size_t)(end - value - 1)) : NULL;
    int64_t pid;
    if (value && take_whole(p, (size_t)(name - p), &pid) && pid >= 0 && pid <= INT32_MAX) {
        const double number = fp_real_of(value + 1, (size_t)((after ? after : end) - value - 1));
        const uint32_t id = fp_strings_intern(&r->model->strings, name + 1, (size_t)(value - name - 1));
        if (isfinite(number)) {
            fp_perfetto_put_named_counter(r, time, pid, id, number);
            return;
        }
    }
    r->counts[FP_PERFETTO_N_PRINTS]++;
}

/* A part of a print, between bars. */
struct print_part {
    const uint8_t *p;
    size_t n;
};

/* Splits a print at its first bars; the last part ends at the next bar or at the end.  Returns how many parts it has,
 * up to `most`. */
static uint32_t split(const uint8_t *p, const uint8_t *end, struct print_part *parts, uint32_t most) {
    for (uint32_t n = 0;; p++) {
        const uint8_t *bar = memchr(p, '|', (size_t)(end - p)), *to = bar ? bar : end;
        parts[n++] = (struct print_part){p, (size_t)(to - p)};
        if (!bar || n == most) return n;
        p = bar;
    }
}

/* Reads a print of an asynchronous call, or of an event. */
static void take_async(struct fp_perfetto_read *r, const struct kernel_event *e, const uint8_t *p, const uint8_t *end,
                       int64_t time) {
    struct print_part part[5];
    const char letter = (char)*p;
    const int on_track = letter == 'G' || letter == 'H' || letter == 'N', is_event = letter == 'I' || letter == 'N';
    const uint32_t n = split(p, end, part, 5), needed = is_event ? 3u + (uint32_t)on_track : 4u + (letter == 'G');
    const struct print_part name = part[letter == 'G' || letter == 'N' ? 3 : 2];
    int64_t pid, cookie = 0;
    if (n < needed || !take_whole(part[1].p, part[1].n, &pid) || pid < 0 || pid > INT32_MAX ||
        (!is_event && !take_whole(part[needed - 1].p, part[needed - 1].n, &cookie))) {
        r->counts[FP_PERFETTO_N_PRINTS]++;
        return;
    }
    const uint32_t lane = fp_strings_intern(&r->model->strings, part[2].p, part[2].n);
    const uint32_t text = fp_strings_intern(&r->model->strings, name.p, name.n);
    const uint64_t kind = is_event ? 2 : (uint64_t)on_track;
    const uint32_t track = letter == 'I' ? fp_perfetto_track_of(r, FP_PT_KERNEL, (uint64_t)tid_of(e), 0)
                                         : fp_perfetto_track_of(r, FP_PT_ATRACE, (uint64_t)pid << 32 | (uint32_t)cookie,
                                                                kind << 32 | lane);
    if (pid > 0) fp_perfetto_set_process(r, tid_of(e), pid, FP_PQ_PRINT);
    if (letter != 'I') {
        r->tracks.list[track].name = lane;
        r->tracks.list[track].pid = pid;
    }
    if (letter == 'F' || letter == 'H') {
        fp_perfetto_put_record(r, time, track, FP_PO_END, 0, 0);
        return;
    }
    r->counts[is_event ? FP_PERFETTO_N_INSTANTS : FP_PERFETTO_N_CALLS]++;
    if (is_event)
        fp_perfetto_put_record(r, time, track, FP_PO_INSTANT, text, 0);
    else
        fp_perfetto_put_record(r, time, track, FP_PO_BEGIN, fp_perfetto_function_of(r, text, 0), 0);
}

/* Reads a print that begins or ends a call of its thread. */
static void take_call(struct fp_perfetto_read *r, const struct kernel_event *e, const uint8_t *p, const uint8_t *end,
                      int64_t time) {
    const int begins = end - p > 2 && p[0] == 'B' && p[1] == '|', ends = end > p && p[0] == 'E';
    const uint8_t *number = end - p > 2 ? p + 2 : end,
                  *bar = end > number ? memchr(number, '|', (size_t)(end - number)) : NULL;
    int64_t pid;
    if ((begins && !bar) || (!begins && (!ends || (end - p > 1 && p[1] != '|')))) {
        r->counts[FP_PERFETTO_N_PRINTS]++;
        return;
    }
    const size_t n = (size_t)((bar ? bar : end) - number);
    if (!take_whole(number, n, &pid) || pid > INT32_MAX) pid = 0;
    const uint32_t track = fp_perfetto_track_of(r, FP_PT_KERNEL, (uint64_t)tid_of(e), 0);
    if (pid > 0) fp_perfetto_set_process(r, tid_of(e), pid, FP_PQ_PRINT);
    if (!begins) {
        fp_perfetto_put_record(r, time, track, FP_PO_END, 0, 0);
        return;
    }
    const uint32_t name = fp_strings_intern(&r->model->strings, bar + 1, (size_t)(end - bar - 1));
    const uint32_t function = fp_perfetto_function_of(r, name, 0);
    r->counts[FP_PERFETTO_N_CALLS]++;
    fp_perfetto_put_record(r, time, track, FP_PO_BEGIN, function, 0);
}

/* Prints of atrace begin or end a call; other prints are only counted:
 *
 *   B|1234|name           begins `name` in process 1234
 *   E|1234, E             ends the innermost call of the thread
 *   S|1234|name|5         begins `name` with the number 5 on a track `name` of the process; F|1234|name|5 ends it
 *   G|1234|track|name|5   begins `name` on a track of the process; H|1234|track|5 ends it
 *   I|1234|name           an event of the thread; N|1234|track|name of a track
 *   C|1234|name|7         the counter `name` of process 1234 is 7 from now on
 */
static int take_print(struct fp_perfetto_read *r, const struct kernel_event *e, int64_t time) {
    struct fp_wire text = {(const uint8_t *)"", (const uint8_t *)""};
    if (fp_perfetto_fields(e->print, &of_print, &text)) return FP_E_MALFORMED;
    const uint8_t *p = text.p, *end = text.end;
    while (end > p && end[-1] == '\n') end--;
    const int has_bar = end - p > 2 && p[1] == '|';
    if (has_bar && p[0] == 'C')
        take_counter(r, p + 2, end, time);
    else if (has_bar && memchr("SFGHIN", p[0], 6))
        take_async(r, e, p, end, time);
    else
        take_call(r, e, p, end, time);
    return 0;
}

static int take_event(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, uint32_t clock) {
    struct kernel_event e = {0};
    if (fp_perfetto_fields(m, &of_event, &e)) return FP_E_MALFORMED;
    const int64_t time = fp_perfetto_system_time(r, clock, (int64_t)e.time);
    if (e.change.p) return fp_perfetto_switch(r, e.change, cpu, time);
    r->counts[FP_PERFETTO_N_KERNEL] += !e.print.p;
    if (e.waking.p) return fp_perfetto_waking(r, e.waking, time);
    if (!e.print.p) return 0;
    if (time < 0) {
        r->counts[FP_PERFETTO_N_NEGATIVE]++;
        return 0;
    }
    return take_print(r, &e, time);
}

int fp_perfetto_ftrace(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k) {
    struct fp_wire m = k->message[FP_PF_FTRACE];
    struct fp_wire_field f;
    struct bundle b = {0};
    int status;
    while ((status = fp_wire_read(&m, &of_bundle, &b, &f, NULL)) > 0)
        if (f.number == 3) r->counts[FP_PERFETTO_N_LOST_EVENTS] += f.v != 0;
    if (status) return FP_E_MALFORMED;
    const uint32_t clock = b.clock == 4 ? FP_PC_MONOTONIC_RAW : FP_PC_BOOTTIME;
    for (m = k->message[FP_PF_FTRACE]; !status && fp_perfetto_next(&m, &f) > 0;) {
        if (f.number == 2) status = take_event(r, fp_wire_inside(&f), b.cpu, clock);
        if (f.number == 4) status = fp_perfetto_compact(r, fp_wire_inside(&f), b.cpu, clock);
    }
    return status;
}
