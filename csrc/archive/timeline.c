/* Rows of a timeline chunk.  See docs/formats/archive.md, "Timeline". */
#include "archive/private.h"

/* Streams of a timeline chunk. */
enum {
    S_CODE,     /* a byte a row, see enum code */
    S_RUN,      /* thread, cpu and length of each run of rows of one thread and cpu */
    S_FUNCTION, /* functions that are not among the predicted ones, as differences to the previous one */
    S_ARGUMENT,
    S_EVENT, /* event types and payload lengths */
    S_PAYLOAD,
    S_BUFFER, /* wall clocks */
    S_TABLES, /* times: parameters and frequencies */
    S_WORDS,  /* times: the range coder's words */
    S_BITS    /* times: raw bits */
};

/* The operation of a row.  Encoder and decoder keep the call stack of each thread; "top" is the function on its top. */
enum code {
    C_EXIT = 0,         /* exits the top */
    C_TAIL = 1,         /* the same by a tail call */
    C_ENTER = 2,        /* + rank, from 0, of the function among the callees last entered from the top */
    C_ENTER_OTHER = 18, /* the same; it has arguments and had none the last time, or vice versa */
    C_ENTER_NEW = 34,   /* enters a function from S_FUNCTION */
    C_ENTER_NEW_OTHER = 35,
    C_EXIT_OF = 36, /* exits a function from S_FUNCTION that is not the top */
    C_TAIL_OF = 37,
    C_EVENT = 38, /* + op - FP_OP_ARGUMENT */
    C_END = 42
};

enum { RANKS = 16, DEPTH = 1024 };

/* The functions last entered from a function, the latest first; 0 for unused places. */
struct callees {
    uint32_t function[RANKS];
};

struct timeline_thread {
    uint32_t epoch;
    uint32_t sp, cap;
    uint32_t *stack;
    uint8_t left;      /* the last function row was an exit */
    uint32_t function; /* of the last function row */
    struct fp_archive_time_at at;
};

struct fp_archive_timeline {
    uint32_t epoch; /* the number of the chunk: a state with another epoch is stale */
    /* For each function: epoch << 1 | how it was last entered (1: with arguments).  A separate array, because every
     * entry reads it: it fits a cache. */
    uint32_t *entered;
    struct callees *callees;
    uint64_t *argument; /* last one logged */
    uint32_t functions_cap;
    struct timeline_thread *threads;
    uint32_t threads_cap;
    uint32_t thread, cpu, run_rows;
    uint32_t explicit_function; /* last of S_FUNCTION */
    uint64_t wall;
    uint32_t n_functions, n_threads; /* ids seen are below these */
    uint32_t *key; /* for each row the context of its time.  decoder: rows of the batch, encoder: of the chunk */
    /* encoder: for each row of the chunk its time and thread */
    struct fp_archive_time_enc *written;
    uint64_t *time;
    uint32_t *row_thread;
    uint32_t keys_cap, rows_cap;
    /* decoder */
    struct fp_archive_time_dec *times;
};

struct fp_archive_timeline *fp_archive_timeline_new(void) {
    struct fp_archive_timeline *s = calloc(1, sizeof *s);
    if (s) s->epoch = 1;
    return s;
}

void fp_archive_timeline_free(struct fp_archive_timeline *s) {
    if (!s) return;
    for (uint32_t i = 0; i < s->threads_cap; i++) free(s->threads[i].stack);
    fp_archive_time_enc_free(s->written);
    fp_archive_time_dec_free(s->times);
    FP_FREE(s->entered, s->callees, s->argument, s->threads, s->time, s->key, s->row_thread, s);
}

static void grow_functions(struct fp_archive_timeline *s, uint32_t n) {
    uint32_t cap = s->functions_cap, same[2] = {cap, cap};
    fp_array_zeroed(&s->entered, &cap, n, sizeof *s->entered);
    fp_array_room(&s->callees, &same[0], cap, sizeof *s->callees);
    fp_array_room(&s->argument, &same[1], cap, sizeof *s->argument);
    s->functions_cap = cap;
}

/* Begins a new chunk, which makes all states stale. */
static void restart(struct fp_archive_timeline *s) {
    if (++s->epoch == 1u << 31) { /* `entered` has 31 bits for it */
        if (s->functions_cap) memset(s->entered, 0, s->functions_cap * sizeof *s->entered);
        for (uint32_t i = 0; i < s->threads_cap; i++) s->threads[i].epoch = 0;
        s->epoch = 1;
    }
    s->thread = s->cpu = s->run_rows = s->explicit_function = 0;
    s->wall = 0;
}

/* Clears the state of a function that is new in the chunk. */
static inline void touch(struct fp_archive_timeline *s, uint32_t id) {
    if (FP_LIKELY(s->entered[id] >> 1 == s->epoch)) return;
    s->entered[id] = s->epoch << 1;
    s->argument[id] = 0;
    memset(&s->callees[id], 0, sizeof s->callees[id]);
}

static inline struct timeline_thread *thread_at(struct fp_archive_timeline *s, uint32_t id) {
    struct timeline_thread *t = &s->threads[id];
    if (t->epoch != s->epoch) {
        t->epoch = s->epoch;
        t->sp = 0;
        t->left = 0;
        t->function = 0;
        t->at.epoch = 0;
    }
    return t;
}

/* Makes room for one more frame.  A stack of DEPTH frames drops its lower half. */
static void make_room(struct timeline_thread *t) {
    if (t->cap == DEPTH) {
        memmove(t->stack, t->stack + DEPTH / 2, DEPTH / 2 * sizeof *t->stack);
        t->sp = DEPTH / 2;
        return;
    }
    fp_array_room(&t->stack, &t->cap, (uint64_t)t->cap + 1, sizeof *t->stack);
}

static inline void push(struct timeline_thread *t, uint32_t function) {
    if (FP_UNLIKELY(t->sp == t->cap)) make_room(t);
    t->stack[t->sp++] = function;
}

/* Exits a function below the top, with the frames above it.  If it is not on the stack, nothing ends. */
static void leave_deeper(struct timeline_thread *t, uint32_t function) {
    for (uint32_t i = t->sp; i-- > 0;) {
        if (t->stack[i] == function) {
            t->sp = i;
            return;
        }
    }
}

/* The callees of the function on top of a thread's stack. */
static inline struct callees *callees_of(struct fp_archive_timeline *s, const struct timeline_thread *t) {
    uint32_t caller = t->sp ? t->stack[t->sp - 1] : 0;
    touch(s, caller);
    return &s->callees[caller];
}

/* Moves a callee from `rank` to the front.  A loop, because it usually moves one or two places. */
static inline void to_front(struct callees *c, uint32_t rank, uint32_t callee) {
    for (uint32_t i = 0; i <= rank; i++) {
        uint32_t out = c->function[i];
        c->function[i] = callee;
        callee = out;
    }
}

static inline void to_front_new(struct callees *c, uint32_t callee) {
    memmove(c->function + 1, c->function, sizeof *c - sizeof *c->function);
    c->function[0] = callee;
}

/* The context of a row's time: the function, whether the row is an exit, and whether the thread's last one was. */
static inline uint32_t time_key(uint32_t function, uint32_t leaves, uint32_t left) {
    return function << 2 | leaves << 1 | left;
}

static void reserve_keys(struct fp_archive_timeline *s, uint32_t rows) {
    fp_array_room(&s->key, &s->keys_cap, rows, sizeof *s->key);
}

/* ---- encoding ----------------------------------------------------------- */

static void end_run(struct fp_archive_encoder *e) {
    struct fp_archive_timeline *s = e->timeline;
    if (s->run_rows) fp_buf_varint(&e->streams[S_RUN], s->run_rows);
    s->run_rows = 0;
}

static void reserve_rows(struct fp_archive_timeline *s, uint32_t rows) {
    reserve_keys(s, rows);
    uint32_t cap = s->rows_cap, same = s->rows_cap;
    fp_array_room(&s->time, &cap, rows, sizeof *s->time);
    fp_array_room(&s->row_thread, &same, cap, sizeof *s->row_thread);
    s->rows_cap = cap;
}

/* Writes an exit or an entry and updates the thread's state. */
static void put_function(struct fp_archive_encoder *e, struct timeline_thread *t, uint32_t op, uint32_t id,
                         uint32_t *key) {
    struct fp_archive_timeline *s = e->timeline;
    struct fp_buf *code = &e->streams[S_CODE];
    uint32_t leaves = op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT;
    if (id >= s->functions_cap) grow_functions(s, id + 1);
    if (id >= s->n_functions) s->n_functions = id + 1;
    *key = time_key(id, leaves, t->left);
    t->left = (uint8_t)leaves;
    t->function = id;
    int explicit = 1;
    if (leaves) {
        uint8_t tail = op == FP_OP_TAIL_EXIT;
        if (t->sp && t->stack[t->sp - 1] == id) {
            fp_buf_byte(code, C_EXIT + tail);
            t->sp--;
            explicit = 0;
        } else {
            fp_buf_byte(code, (uint8_t)(C_EXIT_OF + tail));
            leave_deeper(t, id);
        }
    } else {
        struct callees *known = callees_of(s, t);
        touch(s, id);
        uint32_t other = (s->entered[id] & 1) != (op == FP_OP_ENTER_ARGS);
        s->entered[id] ^= other;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            if (known->function[rank] != id) continue;
            fp_buf_byte(code, (uint8_t)((other ? C_ENTER_OTHER : C_ENTER) + rank));
            to_front(known, rank, id);
            explicit = 0;
            break;
        }
        if (explicit) {
            fp_buf_byte(code, (uint8_t)(C_ENTER_NEW + other));
            to_front_new(known, id);
        }
        push(t, id);
    }
    if (explicit) {
        fp_buf_varint(&e->streams[S_FUNCTION], fp_zig((uint64_t)id - s->explicit_function));
        s->explicit_function = id;
    }
}

static void put_event(struct fp_archive_encoder *e, struct timeline_thread *t, const struct fp_batch *b, uint32_t i) {
    struct fp_archive_timeline *s = e->timeline;
    uint32_t op = b->op[i];
    uint64_t aux = b->aux[i];
    fp_buf_byte(&e->streams[S_CODE], (uint8_t)(C_EVENT + op - FP_OP_ARGUMENT));
    if (op == FP_OP_ARGUMENT) {
        touch(s, t->function);
        fp_buf_varint(&e->streams[S_ARGUMENT], fp_zig(aux - s->argument[t->function]));
        s->argument[t->function] = aux;
    } else if (op == FP_OP_BUFFER) {
        fp_buf_varint(&e->streams[S_BUFFER], fp_zig(aux - s->wall));
        s->wall = aux;
    } else {
        if (op == FP_OP_TYPED) fp_buf_varint(&e->streams[S_EVENT], b->function[i]);
        fp_buf_varint(&e->streams[S_EVENT], (uint32_t)aux);
        fp_buf_put(&e->streams[S_PAYLOAD], fp_batch_bytes(b, aux), (uint32_t)aux);
        e->pub.nbytes += (uint32_t)aux;
    }
}

int fp_archive_timeline_put(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t positions) {
    (void)positions;
    struct fp_archive_timeline *s = e->timeline;
    uint32_t row = e->pub.rows;
    reserve_rows(s, row + b->n);
    if (!s->functions_cap) grow_functions(s, 1);
    for (uint32_t i = 0; i < b->n; i++, row++) {
        uint32_t thread = b->thread[i], op = b->op[i];
        fp_array_zeroed(&s->threads, &s->threads_cap, (uint64_t)thread + 1, sizeof *s->threads);
        if (!s->run_rows || thread != s->thread || b->cpu[i] != s->cpu) {
            end_run(e);
            fp_buf_varint(&e->streams[S_RUN], fp_zig((uint64_t)thread - s->thread));
            fp_buf_varint(&e->streams[S_RUN], fp_zig((uint64_t)b->cpu[i] - s->cpu));
            s->thread = thread;
            s->cpu = b->cpu[i];
            if (thread >= s->n_threads) s->n_threads = thread + 1;
        }
        s->run_rows++;
        struct timeline_thread *t = thread_at(s, thread);
        s->time[row] = b->time[i];
        s->row_thread[row] = thread;
        if (op <= FP_OP_ENTER_ARGS) {
            put_function(e, t, op, b->function[i], &s->key[row]);
        } else {
            s->key[row] = FP_TIME_NO_FUNCTION + op;
            put_event(e, t, b, i);
        }
    }
    e->pub.nbytes += (uint64_t)b->n * 8;
    return 0;
}

int fp_archive_timeline_flush(struct fp_archive_encoder *e) {
    struct fp_archive_timeline *s = e->timeline;
    end_run(e);
    if (!s->written) s->written = fp_have(fp_archive_time_enc_new());
    const struct fp_archive_times rows = {s->time,     s->key, s->row_thread, e->pub.rows, s->n_functions * 4,
                                          s->n_threads};
    fp_archive_time_encode(s->written, &rows, &e->streams[S_TABLES], &e->streams[S_WORDS], &e->streams[S_BITS]);
    restart(s);
    return 0;
}

/* ---- decoding ----------------------------------------------------------- */

int fp_archive_timeline_open(struct fp_archive_decoder *d) {
    struct fp_archive_timeline *s = d->timeline;
    restart(s);
    s->n_functions = d->ids->n[FP_T_FUNCTIONS];
    s->n_threads = d->ids->n[FP_T_THREADS];
    if (s->n_functions > s->functions_cap) grow_functions(s, s->n_functions);
    fp_array_zeroed(&s->threads, &s->threads_cap, s->n_threads, sizeof *s->threads);
    if (!s->times) s->times = fp_archive_time_dec_new();
    const uint8_t *p[3];
    size_t n[3];
    for (int i = 0; i < 3; i++) {
        p[i] = d->streams[S_TABLES + i].p;
        n[i] = (size_t)(d->streams[S_TABLES + i].end - p[i]);
    }
    return fp_archive_time_dec_open(s->times, s->n_functions * 4, p, n);
}

/* Reads a function from S_FUNCTION, for an entry or exit that names its function. */
static int pull_named(struct fp_archive_decoder *d, struct timeline_thread *t, uint32_t c, uint32_t *id) {
    struct fp_archive_timeline *s = d->timeline;
    uint64_t wide = s->explicit_function + fp_zag(fp_cursor_number(&d->streams[S_FUNCTION]));
    if (wide >= s->n_functions) return FP_E_MALFORMED;
    s->explicit_function = *id = (uint32_t)wide;
    if (c >= C_EXIT_OF)
        leave_deeper(t, *id);
    else
        to_front_new(callees_of(s, t), *id);
    return 0;
}

static int pull_event(struct fp_archive_decoder *d, struct timeline_thread *t, uint32_t op, struct fp_batch *b,
                      uint32_t i) {
    struct fp_archive_timeline *s = d->timeline;
    if (op == FP_OP_ARGUMENT) {
        touch(s, t->function);
        b->aux[i] = s->argument[t->function] += fp_zag(fp_cursor_number(&d->streams[S_ARGUMENT]));
    } else if (op == FP_OP_BUFFER) {
        b->aux[i] = s->wall += fp_zag(fp_cursor_number(&d->streams[S_BUFFER]));
    } else {
        if (op == FP_OP_TYPED) b->function[i] = fp_archive_u32(&d->streams[S_EVENT]);
        uint32_t n = fp_archive_u32(&d->streams[S_EVENT]);
        struct fp_cursor *payload = &d->streams[S_PAYLOAD];
        if ((size_t)(payload->end - payload->p) < n) return FP_E_MALFORMED;
        FP_TRY(fp_batch_payload(b, payload->p, n, &b->aux[i]));
        payload->p += n;
    }
    return 0;
}

/* Reads rows `i` to `end`, all of thread `t`.  Their times are read afterwards, in the contexts of s->key. */
static int pull_rows(struct fp_archive_decoder *d, struct timeline_thread *t, struct fp_batch *b, uint32_t i,
                     uint32_t end) {
    struct fp_archive_timeline *s = d->timeline;
    struct fp_cursor *codes = &d->streams[S_CODE];
    if ((size_t)(codes->end - codes->p) < end - i) return FP_E_MALFORMED;
    const uint8_t *code = codes->p;
    codes->p += end - i;
    uint32_t *key = s->key, left = t->left;
    const uint32_t event = s->n_functions * 4;
    for (; i < end; i++) {
        uint32_t c = *code++, id;
        if (c <= C_TAIL || (c >= C_EXIT_OF && c < C_EVENT)) {
            if (c <= C_TAIL) {
                if (FP_UNLIKELY(!t->sp)) return FP_E_MALFORMED;
                id = t->stack[--t->sp];
            } else if (pull_named(d, t, c, &id)) {
                return FP_E_MALFORMED;
            }
            b->op[i] = (uint8_t)(FP_OP_EXIT + c % 2);
            key[i] = time_key(id, 1, left);
            left = 1;
        } else if (c < C_EXIT_OF) {
            uint32_t other;
            if (c < C_ENTER_NEW) {
                other = c >= C_ENTER_OTHER;
                uint32_t rank = (c - C_ENTER) % RANKS;
                struct callees *known = callees_of(s, t);
                id = known->function[rank];
                to_front(known, rank, id);
            } else {
                other = c - C_ENTER_NEW;
                if (pull_named(d, t, c, &id)) return FP_E_MALFORMED;
            }
            touch(s, id);
            s->entered[id] ^= other;
            __builtin_prefetch(&s->callees[id]);
            b->op[i] = s->entered[id] & 1 ? FP_OP_ENTER_ARGS : FP_OP_ENTER;
            push(t, id);
            key[i] = time_key(id, 0, left);
            left = 0;
        } else {
            if (c >= C_END) return FP_E_MALFORMED;
            uint32_t op = c - C_EVENT + FP_OP_ARGUMENT;
            b->op[i] = (uint8_t)op;
            b->function[i] = 0;
            key[i] = event + op;
            FP_TRY(pull_event(d, t, op, b, i));
            continue;
        }
        b->function[i] = t->function = id;
    }
    t->left = (uint8_t)left;
    return 0;
}

static int pull_run(struct fp_archive_decoder *d) {
    struct fp_archive_timeline *s = d->timeline;
    struct fp_cursor *run = &d->streams[S_RUN];
    uint64_t thread = s->thread + fp_zag(fp_cursor_number(run));
    uint64_t cpu = s->cpu + fp_zag(fp_cursor_number(run));
    s->run_rows = fp_archive_u32(run);
    if (run->status || thread >= s->n_threads || cpu > UINT16_MAX || !s->run_rows) return FP_E_MALFORMED;
    s->thread = (uint32_t)thread;
    s->cpu = (uint32_t)cpu;
    return 0;
}

int fp_archive_timeline_pull(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t n, const char **what) {
    struct fp_archive_timeline *s = d->timeline;
    const uint32_t end = b->n + n;
    reserve_keys(s, end);
    memset(b->aux + b->n, 0, n * sizeof *b->aux);
    for (uint32_t i = b->n, to; i < end; i = to) {
        *what = "run of rows of a thread";
        if (!s->run_rows && pull_run(d)) return FP_E_MALFORMED;
        to = s->run_rows < end - i ? i + s->run_rows : end;
        s->run_rows -= to - i;
        for (uint32_t j = i; j < to; j++) b->thread[j] = s->thread;
        for (uint32_t j = i; j < to; j++) b->cpu[j] = (uint16_t)s->cpu;
        struct timeline_thread *t = thread_at(s, s->thread);
        *what = "row of a timeline";
        int status = pull_rows(d, t, b, i, to);
        if (status) return status;
        *what = "time of a row";
        status = fp_archive_time_pull(s->times, &t->at, s->key + i, b->time + i, to - i);
        if (status) return status;
    }
    *what = "row of a timeline";
    for (int i = 0; i < FP_TIMELINE_STREAMS; i++)
        if (d->streams[i].status) return FP_E_MALFORMED;
    return 0;
}
