/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA runtime without a GPU: the functions of lib/api.h over ordinary memory. Streams do their
 * work at once; a capture keeps a list of it, and what of it must come before what: a replay does
 * the latest first of all that may be next, so that an order that is not said is not kept. Memory
 * of the device can be touched during copies and kernels only: elsewhere it is protected, so that a
 * host that follows a device's pointer dies.
 *
 * The environment says what kind of machine it is: RIDGE_HOST_GPUS (default 2, 0: none),
 * RIDGE_HOST_DRIVER (13000; 0: no driver; 12020: too old), RIDGE_HOST_COUNT, the error of counting
 * GPUs, RIDGE_HOST_UNITS (132) multiprocessors and RIDGE_HOST_CACHE (50 MB) bytes of second cache,
 * which ceilings' kernels are sized by, RIDGE_HOST_MEMORY (1) GiB, RIDGE_HOST_MAJOR (9) of the
 * compute capability. What programs cannot script by api_fail() and api_dry() it says, too:
 * RIDGE_HOST_FAIL="CALL:N" makes a call fail from its N-th use on, for good,
 * RIDGE_HOST_LOSE="CALL:N:ERROR" (719 without one) makes every call for the device fail from there
 * on, as after a kernel that crashed, RIDGE_HOST_DRY=1 leaves kernels, copies and fills undone,
 * RIDGE_HOST_DRY=roofs the loops of roofs alone. How long
 * replays last: played.c. */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/numbers/integers.h"
#include "base/system/clock.h"
#include "engine/kernels/cuda/lib/api.h"
#include "tests/gpu/host/api.h"
#include "tests/gpu/host/grid.h"
#include "tests/gpu/host/memory.h"
#include "tests/gpu/host/played.h"
#include "tests/gpu/host/script.h"
#include "tests/gpu/host/watch.h"

enum {
    RUNTIME = 13000,
    INVALID = 1,
    TOO_LARGE = 701,
    STREAM_CAPTURING = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNJOINED = 904,
    ALIGN = 256
};
enum { COMMANDS_MAX = 4096, STREAMS_MAX = 16, NOBODY = -1 };
enum { SHARED_USUAL = 48 << 10, SHARED_MOST = 227 << 10 }; /* bytes of a block's shared memory */

struct command {
    enum { DO_LAUNCH, DO_COPY, DO_SET, DO_RECORD, DO_NOTHING } what;
    const struct host_kernel *kernel;
    api_work *work; /* not NULL: that instead, on `to` */
    struct host_index grid, block;
    unsigned cluster;
    void *argument; /* owned */
    size_t bytes;   /* of shared memory, or of the copy */
    bool early;     /* a launch that need not wait for those before it */
    void *to;
    const void *from;
    int byte;
    int after[2]; /* commands of the capture before it: of its stream, and of one it follows */
};

struct graph {
    long serial; /* of its capture, from 1 */
    int count;
    bool forks;
    struct stream *streams[STREAMS_MAX]; /* those it is made of, the one it began with first */
    int stream_count;
    struct command commands[COMMANDS_MAX];
    int order[COMMANDS_MAX]; /* in which an instance runs them, where it forks */
};

struct stream {
    struct graph *capture; /* NULL: work is done at once */
    struct command *queue; /* owned: work that is not done yet, and what waits for it */
    int queued, capacity;
    bool spoiled; /* the capture, by a call that waits */
    int last;     /* command of the capture; NOBODY */
};

struct event {
    uint64_t ns;
    long serial; /* of the capture in which it was marked; 0: of none */
    int last;    /* command of its stream then */
};

static struct {
    long captures;
    struct graph *capture; /* that is being made */
    long live;             /* streams, events, graphs, pinned memory */
    int dry;
    double command_ns, now_ns; /* of the made clock; command_ns 0: the real one counts */
} h;

/* ---- what tests ask ---- */

long api_live(void)
{
    return h.live + memory_blocks();
}

long api_captures(void)
{
    return h.captures;
}

void api_clock(double command_ns)
{
    h.command_ns = command_ns;
}

void api_dry(int dry)
{
    h.dry = dry;
}

double api_counted(void)
{
    return host_counted();
}

#define SCRIPT(call)                                                                               \
    do {                                                                                           \
        int error_ = scripted(call);                                                               \
        if (error_ != CUDA_DONE)                                                                   \
            return error_;                                                                         \
    } while (0)

/* Calls that give something back do so also when they say that they failed: the count of what
 * lives is about ridge, not about the script. */
#define SCRIPT_LATE(call) return scripted(call)

/* ---- the machine ---- */

static int number_of(const char *name, int usual)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : usual;
}

static int driver_version(int *version)
{
    SCRIPT("driver_version");
    *version = number_of("RIDGE_HOST_DRIVER", RUNTIME);
    return CUDA_DONE;
}

static int runtime_version(int *version)
{
    *version = RUNTIME;
    SCRIPT_LATE("runtime_version");
}

static int device_count(int *count)
{
    SCRIPT("device_count");
    if (number_of("RIDGE_HOST_DRIVER", RUNTIME) < RUNTIME)
        return CUDA_OLD_DRIVER;
    if (number_of("RIDGE_HOST_COUNT", CUDA_DONE) != CUDA_DONE)
        return number_of("RIDGE_HOST_COUNT", CUDA_DONE);
    *count = number_of("RIDGE_HOST_GPUS", 2);
    return *count > 0 ? CUDA_DONE : CUDA_NO_DEVICE;
}

static int set_device(int index)
{
    if (index < 0 || index >= number_of("RIDGE_HOST_GPUS", 2))
        return INVALID;
    script_device(index);
    SCRIPT("set_device");
    return CUDA_DONE;
}

static int facts(struct cuda_facts *f, int index)
{
    SCRIPT("facts");
    *f = (struct cuda_facts){.name = "Host GPU",
                             .major = number_of("RIDGE_HOST_MAJOR", 9),
                             .units = number_of("RIDGE_HOST_UNITS", 132),
                             .cache_bytes = number_of("RIDGE_HOST_CACHE", 50 << 20),
                             .shared_bytes = SHARED_MOST,
                             .clock_khz = 1980000,
                             .memory_khz = 3201000,
                             .bus_bits = 6144};
    snprintf(f->bus, sizeof(f->bus), "0000:%02x:00.0", index + 1);
    return CUDA_DONE;
}

/* ---- memory ---- */

static int memory_info(size_t *free_bytes, size_t *total)
{
    SCRIPT("memory_info");
    memory_sizes(free_bytes, total);
    return CUDA_DONE;
}

static int malloc_device(void **memory, size_t bytes)
{
    SCRIPT("malloc");
    *memory = memory_take(bytes);
    return *memory ? CUDA_DONE : CUDA_OUT_OF_MEMORY;
}

static int free_device(void *memory)
{
    script_wait("free");
    memory_give_back(memory);
    SCRIPT_LATE("free");
}

static int malloc_host(void **memory, size_t bytes)
{
    SCRIPT("malloc_host");
    *memory = aligned_alloc(ALIGN, round_up(bytes, ALIGN));
    if (!*memory)
        return CUDA_OUT_OF_MEMORY;
    h.live++;
    return CUDA_DONE;
}

static int free_host(void *memory)
{
    script_wait("free_host");
    h.live -= memory != NULL;
    free(memory);
    SCRIPT_LATE("free_host");
}

/* ---- streams ---- */

static void record(struct event *event)
{
    uint64_t busy_ns = script_busy_until();
    event->ns = h.command_ns > 0 ? (uint64_t)h.now_ns : busy_ns ? busy_ns : clock_now_ns();
}

/* Roofs are the only kernels that are not launched early. */
static bool is_dry(const struct command *c)
{
    if (h.dry)
        return true;
    const char *text = getenv("RIDGE_HOST_DRY");
    bool roofs = text && strcmp(text, "roofs") == 0;
    return text && (!roofs || (c->what == DO_LAUNCH && !c->early));
}

/* Whoever is launched early and does not wait reads what is not there yet. */
static void check_begun(const struct command *c)
{
    long threads = (long)c->grid.x * c->grid.y * c->grid.z * c->block.x * c->block.y * c->block.z;
    if (!c->early || host_begun() == threads)
        return;
    fprintf(stderr, "a kernel is launched early, and %ld of %ld threads begin by KERNEL_BEGIN\n",
            host_begun(), threads);
    abort();
}

static void run_command(const struct command *c)
{
    if (c->what == DO_RECORD)
        record(c->to);
    if (c->what == DO_RECORD || c->what == DO_NOTHING)
        return;
    h.now_ns += h.command_ns;
    if (is_dry(c))
        return;
    memory_open();
    if (c->what == DO_LAUNCH) {
        void *arguments[] = {c->argument};
        host_grid_run(c->kernel, c->grid, c->block, c->cluster, arguments, c->bytes);
        check_begun(c);
    } else if (c->what == DO_COPY) {
        memcpy(c->to, c->from, c->bytes);
    } else {
        memset(c->to, c->byte, c->bytes);
    }
    if (c->what != DO_LAUNCH && memory_is_region(c->to))
        watch_written(c->to, c->bytes);
    memory_close();
}

static bool is_capturing(const struct stream *stream)
{
    return stream && stream->capture;
}

/* False: work of others, which has to be tried again. */
static bool try_command(const struct command *c)
{
    if (c->work)
        return c->work(c->to);
    run_command(c);
    return true;
}

/* Whether all is done. */
static bool pump(struct stream *s)
{
    int done = 0;
    if (!s)
        return true;
    while (done < s->queued && try_command(&s->queue[done]))
        free(s->queue[done++].argument);
    s->queued -= done;
    if (done)
        memmove(s->queue, s->queue + done, (size_t)s->queued * sizeof(*s->queue));
    return s->queued == 0;
}

static int append(const struct command *c, struct stream *s)
{
    if (s->queued == s->capacity) {
        s->capacity = 2 * s->capacity + 16;
        s->queue = realloc(s->queue, (size_t)s->capacity * sizeof(*s->queue));
    }
    s->queue[s->queued++] = *c;
    pump(s);
    return CUDA_DONE;
}

/* Takes the argument. */
static int submit(const struct command *c, struct stream *stream)
{
    if (is_capturing(stream)) {
        if (stream->capture->count == COMMANDS_MAX) {
            free(c->argument);
            return INVALID;
        }
        struct command *kept = &stream->capture->commands[stream->capture->count];
        *kept = *c;
        kept->after[0] = stream->last;
        kept->after[1] = c->what == DO_NOTHING ? c->after[1] : NOBODY;
        stream->last = stream->capture->count++;
        return CUDA_DONE;
    }
    if (stream && (stream->queued || c->work))
        return append(c, stream);
    run_command(c);
    if (c->what == DO_LAUNCH)
        script_launched();
    free(c->argument);
    return CUDA_DONE;
}

int api_load(void *to, const void *from, size_t bytes)
{
    if (!memory_is_device(from, bytes))
        return 0;
    memory_open();
    memcpy(to, from, bytes);
    memory_close();
    return 1;
}

int api_store(void *to, const void *from, size_t bytes)
{
    if (!memory_is_device(to, bytes))
        return 0;
    memory_open();
    memcpy(to, from, bytes);
    watch_written(to, bytes);
    memory_close();
    return 1;
}

int api_enqueue(void *stream, api_work *work, void *context)
{
    const struct command command = {.what = DO_SET, .work = work, .to = context};
    bool captured = is_capturing(stream);
    if (!stream || submit(&command, stream) != CUDA_DONE)
        return API_REFUSED;
    return captured ? API_CAPTURED : API_QUEUED;
}

static int stream_create(void **stream)
{
    SCRIPT("stream_create");
    *stream = calloc(1, sizeof(struct stream));
    h.live++;
    return CUDA_DONE;
}

static int stream_destroy(void *stream)
{
    struct stream *s = stream;
    for (int k = 0; k < s->queued; k++)
        free(s->queue[k].argument);
    free(s->queue);
    h.live--;
    free(stream);
    SCRIPT_LATE("stream_destroy");
}

static int stream_synchronize(void *stream)
{
    SCRIPT("stream_synchronize");
    if (is_capturing(stream)) {
        ((struct stream *)stream)->spoiled = true;
        return STREAM_CAPTURING;
    }
    while (!pump(stream))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    script_wait("stream_synchronize");
    return CUDA_DONE;
}

static int stream_query(void *stream)
{
    SCRIPT("stream_query");
    if (is_capturing(stream))
        return STREAM_CAPTURING;
    return !pump(stream) || script_busy_until() ? CUDA_NOT_READY : CUDA_DONE;
}

static int copy(void *to, const void *from, size_t bytes, enum cuda_copy direction, void *stream)
{
    SCRIPT("copy");
    bool to_device = direction != CUDA_TO_HOST, from_device = direction != CUDA_TO_DEVICE;
    if ((to_device ? !memory_is_device(to, bytes) : memory_is_region(to)) ||
        (from_device ? !memory_is_device(from, bytes) : memory_is_region(from)))
        return INVALID;
    if (direction == CUDA_TO_HOST && !is_capturing(stream))
        script_wait("copy");
    return submit(&(struct command){.what = DO_COPY, .to = to, .from = from, .bytes = bytes},
                  stream);
}

static int set(void *memory, int byte, size_t bytes, void *stream)
{
    SCRIPT("set");
    if (!memory_is_device(memory, bytes))
        return INVALID;
    return submit(&(struct command){.what = DO_SET, .to = memory, .byte = byte, .bytes = bytes},
                  stream);
}

static int launch(const struct cuda_launch *l, void *stream)
{
    SCRIPT("launch");
    const struct host_kernel *k = l->kernel;
    struct cuda_grid grid = l->grid, block = l->block;
    unsigned threads = block.x * block.y * block.z;
    size_t allowed = *k->shared_bytes > SHARED_USUAL ? *k->shared_bytes : SHARED_USUAL;
    bool fits = grid.x > 0 && grid.x < 1u << 31 && grid.y > 0 && grid.y < 65536 && grid.z > 0 &&
                grid.z < 65536 && threads > 0 && threads <= 1024 && l->shared_bytes <= allowed &&
                k->argument_bytes <= 4096 && l->cluster <= HOST_CLUSTER_MAX &&
                grid.x % (l->cluster ? l->cluster : 1) == 0;
    void *argument = fits ? malloc(k->argument_bytes) : NULL;
    if (!argument)
        return INVALID;
    memcpy(argument, l->argument, k->argument_bytes);
    return submit(&(struct command){.what = DO_LAUNCH,
                                    .kernel = k,
                                    .grid = {grid.x, grid.y, grid.z},
                                    .block = {block.x, block.y, block.z},
                                    .cluster = l->cluster ? l->cluster : 1,
                                    .argument = argument,
                                    .bytes = l->shared_bytes,
                                    .early = l->early},
                  stream);
}

static int clusters_at_once(const struct cuda_launch *l, int *count)
{
    SCRIPT("clusters_at_once");
    *count = l->cluster ? number_of("RIDGE_HOST_CLUSTERS", 15) : 0;
    return CUDA_DONE;
}

static int code_version(const void *kernel, int *version)
{
    (void)kernel;
    SCRIPT("code_version");
    *version = number_of("RIDGE_HOST_CODE", 90);
    return CUDA_DONE;
}

static int allow_shared(const void *kernel, size_t bytes)
{
    SCRIPT("allow_shared");
    if (bytes > SHARED_MOST)
        return INVALID;
    *((const struct host_kernel *)kernel)->shared_bytes = bytes;
    return CUDA_DONE;
}

/* ---- events ---- */

static int event_create(void **event)
{
    SCRIPT("event_create");
    *event = calloc(1, sizeof(struct event));
    h.live++;
    return CUDA_DONE;
}

static int event_destroy(void *event)
{
    h.live--;
    free(event);
    SCRIPT_LATE("event_destroy");
}

static int event_record(void *event, void *stream)
{
    SCRIPT("event_record");
    const struct command command = {.what = DO_RECORD, .to = event};
    return submit(&command, stream);
}

static int event_elapsed(float *ms, void *from, void *to)
{
    SCRIPT("event_elapsed");
    *ms = (float)(((struct event *)to)->ns - ((struct event *)from)->ns) * 1e-6f;
    return CUDA_DONE;
}

static int event_mark(void *event, void *stream)
{
    SCRIPT("event_mark");
    struct event *e = event;
    const struct stream *s = stream;
    e->serial = is_capturing(s) ? s->capture->serial : 0;
    e->last = e->serial ? s->last : NOBODY;
    if (!e->serial)
        record(e);
    return CUDA_DONE;
}

/* A stream that follows one that is captured is captured with it. */
static int stream_follow(void *stream, void *event)
{
    SCRIPT("stream_follow");
    struct stream *s = stream;
    const struct event *e = event;
    struct graph *g = h.capture;
    if (!e->serial)
        return CUDA_DONE; /* what it stands for is done */
    if (!g || g->serial != e->serial || (s->capture && s->capture != g))
        return INVALID;
    if (!s->capture) {
        if (g->stream_count == STREAMS_MAX)
            return INVALID;
        g->streams[g->stream_count++] = s;
        g->forks = true;
        s->capture = g;
        s->last = NOBODY;
    }
    const struct command command = {.what = DO_NOTHING, .after = {NOBODY, e->last}};
    return submit(&command, s);
}

/* ---- capture ---- */

static int capture_begin(void *stream)
{
    SCRIPT("capture_begin");
    struct stream *s = stream;
    s->capture = calloc(1, sizeof(*s->capture));
    s->capture->serial = ++h.captures;
    s->capture->streams[s->capture->stream_count++] = s;
    s->last = NOBODY;
    h.capture = s->capture;
    h.live++;
    return CUDA_DONE;
}

static int graph_destroy(void *graph)
{
    struct graph *g = graph;
    for (int k = 0; k < g->count; k++)
        free(g->commands[k].argument);
    free(g);
    h.live--;
    SCRIPT_LATE("graph_destroy");
}

/* Whether the last command of the stream it began with comes after all others. */
static bool is_joined(const struct graph *g)
{
    static bool before[COMMANDS_MAX];
    memset(before, 0, sizeof(before));
    if (g->streams[0]->last != NOBODY)
        before[g->streams[0]->last] = true;
    for (int k = g->count - 1; k >= 0; k--) {
        for (int a = 0; a < 2 && before[k]; a++)
            if (g->commands[k].after[a] != NOBODY)
                before[g->commands[k].after[a]] = true;
        if (!before[k])
            return false;
    }
    return true;
}

static int capture_end(void *stream, void **graph)
{
    struct stream *s = stream;
    int error = scripted("capture_end");
    if (error == CUDA_DONE && s->spoiled)
        error = CAPTURE_INVALIDATED;
    if (error == CUDA_DONE && !is_joined(s->capture))
        error = CAPTURE_UNJOINED;
    for (int k = 1; k < s->capture->stream_count; k++) {
        struct stream *other = s->capture->streams[k];
        if (error == CUDA_DONE && other->spoiled)
            error = CAPTURE_INVALIDATED;
        other->spoiled = false;
        other->capture = NULL;
    }
    h.capture = NULL;
    s->spoiled = false;
    *graph = s->capture;
    s->capture = NULL;
    if (error != CUDA_DONE) { /* the runtime keeps nothing then */
        graph_destroy(*graph);
        *graph = NULL;
    }
    return error;
}

/* Behind what the stream waits for; what is launched owns its argument. */
static int launch_queued(const struct graph *g, struct stream *stream)
{
    for (int k = 0; k < g->count; k++) {
        struct command c = g->commands[k];
        if (c.what == DO_LAUNCH) {
            c.argument = malloc(c.kernel->argument_bytes);
            memcpy(c.argument, g->commands[k].argument, c.kernel->argument_bytes);
        }
        submit(&c, stream);
    }
    return CUDA_DONE;
}

static bool has_work(const struct graph *g)
{
    for (int k = 0; k < g->count; k++)
        if (g->commands[k].work)
            return true;
    return false;
}

/* Of what may run next always the last that was captured, so that nothing is right by the order of
 * the captures. */
static void find_order(struct graph *g)
{
    static bool done[COMMANDS_MAX];
    memset(done, 0, sizeof(done));
    for (int k = 0; k < g->count; k++) {
        int next = g->count - 1;
        for (bool ready = false; !ready; next -= !ready) {
            const int *after = g->commands[next].after;
            ready = !done[next] && (after[0] == NOBODY || done[after[0]]) &&
                    (after[1] == NOBODY || done[after[1]]);
        }
        done[next] = true;
        g->order[k] = next;
    }
}

static int graph_instantiate(void **exec, void *graph)
{
    SCRIPT("graph_instantiate");
    const struct graph *from = graph;
    struct graph *made = malloc(sizeof(*made));
    if (!made)
        return CUDA_OUT_OF_MEMORY;
    *made = *from;
    if (made->forks)
        find_order(made);
    for (int k = 0; k < made->count; k++) {
        struct command *c = &made->commands[k];
        if (c->what != DO_LAUNCH)
            continue;
        c->argument = malloc(c->kernel->argument_bytes);
        memcpy(c->argument, from->commands[k].argument, c->kernel->argument_bytes);
    }
    h.live++;
    *exec = made;
    return CUDA_DONE;
}

/* By the made clock what needs nobody runs beside the others. */
static void run_forked(const struct graph *g)
{
    static double end_ns[COMMANDS_MAX];
    double begin = h.now_ns, end = begin;
    for (int k = 0; k < g->count; k++) {
        int next = g->order[k];
        h.now_ns = begin;
        for (int a = 0; a < 2; a++)
            if (g->commands[next].after[a] != NOBODY)
                h.now_ns = fmax(h.now_ns, end_ns[g->commands[next].after[a]]);
        run_command(&g->commands[next]);
        end_ns[next] = h.now_ns;
        end = fmax(end, h.now_ns);
    }
    h.now_ns = end;
}

static int graph_launch(void *exec, void *stream)
{
    SCRIPT("graph_launch");
    const struct graph *g = exec;
    if (!pump(stream) || has_work(g))
        return launch_queued(g, stream);
    uint64_t begin = played_begin();
    for (int k = 0; k < g->count && !g->forks; k++)
        run_command(&g->commands[k]);
    if (g->forks)
        run_forked(g);
    played_end(begin, g->count, g->serial);
    script_launched();
    return CUDA_DONE;
}

static int graph_exec_destroy(void *exec)
{
    graph_destroy(exec);
    SCRIPT_LATE("graph_exec_destroy");
}

const struct cuda_api cuda_api = {
    .driver_version = driver_version,
    .runtime_version = runtime_version,
    .device_count = device_count,
    .set_device = set_device,
    .facts = facts,
    .memory_info = memory_info,
    .malloc = malloc_device,
    .free = free_device,
    .malloc_host = malloc_host,
    .free_host = free_host,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_query = stream_query,
    .copy = copy,
    .set = set,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .event_mark = event_mark,
    .stream_follow = stream_follow,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_instantiate = graph_instantiate,
    .graph_launch = graph_launch,
    .graph_exec_destroy = graph_exec_destroy,
    .graph_destroy = graph_destroy,
    .launch = launch,
    .clusters_at_once = clusters_at_once,
    .code_version = code_version,
    .allow_shared = allow_shared,
    .error_name = host_error_name,
    .error_text = host_error_text,
};
