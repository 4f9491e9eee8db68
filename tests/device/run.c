/* SPDX-License-Identifier: Apache-2.0
 *
 * What every device must do, by the rules of engine/run/device.h: memory, copies, queues, events,
 * and, where the device has them, captures and order between queues. Kernels are proven by
 * tests/ops/run.
 *
 *     run                the CPU
 *     run --device toy   a device of a plug-in, in a folder of RIDGE_PLUGIN_PATH */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/options.h"
#include "engine/graph/kernel.h"
#include "engine/run/device.h"

enum { BYTES = 4099, MEMORIES = 3, STREAMS = 2, EVENTS = 3, ROUNDS = 50 };

/* What a check uses, given back after it. */
struct stage {
    const struct device *device;
    const struct device_kind *kind;
    void *memory[MEMORIES], *stream[STREAMS], *event[EVENTS];
    struct device_graph *graph;
    unsigned char sent[BYTES], got[BYTES];
};

#define WRONG(err, ...) FAIL(err, STATUS_INVALID, __VA_ARGS__)

static enum status stage_init(struct stage *s, const struct device *device, struct error *err)
{
    *s = (struct stage){.device = device, .kind = device->kind};
    for (int k = 0; k < BYTES; k++)
        s->sent[k] = (unsigned char)(k * 31 + k / 256 + 1);
    for (int k = 0; k < MEMORIES; k++)
        TRY(s->kind->alloc(device, BYTES, &s->memory[k], err));
    for (int k = 0; k < STREAMS; k++)
        TRY(s->kind->stream_new(device, &s->stream[k], err));
    for (int k = 0; k < EVENTS; k++)
        TRY(s->kind->event_new(device, &s->event[k], err));
    return STATUS_OK;
}

static void stage_release(struct stage *s)
{
    if (s->graph)
        s->kind->graph_free(s->device, s->graph);
    for (int k = 0; k < EVENTS; k++)
        if (s->event[k])
            s->kind->event_free(s->device, s->event[k]);
    for (int k = 0; k < STREAMS; k++)
        if (s->stream[k])
            s->kind->stream_free(s->device, s->stream[k]);
    for (int k = 0; k < MEMORIES; k++)
        if (s->memory[k])
            s->kind->free(s->device, s->memory[k]);
}

static enum status fill(struct stage *s, int memory, int byte, void *stream, struct error *err)
{
    return s->kind->fill(s->device, s->memory[memory], byte, BYTES, stream, err);
}

static enum status copy_within(struct stage *s, int to, int from, void *stream, struct error *err)
{
    return s->kind->copy(s->device, s->memory[to], s->memory[from], BYTES, COPY_WITHIN, stream,
                         err);
}

/* Brings the memory to s->got and waits. */
static enum status fetch(struct stage *s, int memory, void *stream, struct error *err)
{
    TRY(s->kind->copy(s->device, s->got, s->memory[memory], BYTES, COPY_TO_HOST, stream, err));
    return s->kind->wait(s->device, stream, err);
}

/* Whether it holds this byte everywhere. */
static enum status holds(struct stage *s, int memory, int byte, void *stream, const char *when,
                         struct error *err)
{
    TRY(fetch(s, memory, stream, err));
    for (int k = 0; k < BYTES; k++)
        if (s->got[k] != byte)
            return WRONG(err, "%s byte %d is %d instead of %d", when, k, s->got[k], byte);
    return STATUS_OK;
}

/* ---- memory ---- */

static enum status says_what_it_is(struct stage *s, struct error *err)
{
    const struct device_properties *p = &s->device->properties;
    if (!s->kind->is_host && !p->name[0])
        return WRONG(err, "properties.name is empty");
    return p->free_bytes <= p->memory_bytes
               ? STATUS_OK
               : WRONG(err, "%zu bytes are free of %zu", p->free_bytes, p->memory_bytes);
}

static enum status memory_is_aligned(struct stage *s, struct error *err)
{
    static const size_t sizes[] = {0, 1, 255, 257, BYTES, 1 << 20};
    const size_t alignment = s->kind->is_host ? ALIGN_TENSOR : ALIGN_DEVICE;
    for (int k = 0; k < ARRAY_COUNT(sizes); k++) {
        void *memory = NULL;
        TRY(s->kind->alloc(s->device, sizes[k], &memory, err));
        bool fine = memory && (uintptr_t)memory % alignment == 0;
        s->kind->free(s->device, memory);
        if (!fine)
            return WRONG(err, "alloc gave address %p for %zu bytes; it is to be a multiple of %zu",
                         memory, sizes[k], alignment);
    }
    return STATUS_OK;
}

static enum status too_much_memory_is_refused(struct stage *s, struct error *err)
{
    void *memory = NULL;
    struct error why = {0};
    if (s->kind->alloc(s->device, SIZE_MAX / 4, &memory, &why) == STATUS_OK) {
        s->kind->free(s->device, memory);
        return WRONG(err, "alloc gave memory for %zu bytes", SIZE_MAX / 4);
    }
    return why.message[0] ? STATUS_OK : WRONG(err, "alloc refused without a message");
}

static enum status host_memory_is_written(struct stage *s, struct error *err)
{
    void *memory = NULL;
    TRY(s->kind->alloc_host(s->device, BYTES, &memory, err));
    memcpy(memory, s->sent, BYTES);
    enum status status =
        s->kind->copy(s->device, s->memory[0], memory, BYTES, COPY_TO_DEVICE, s->stream[0], err);
    if (status == STATUS_OK)
        status = fetch(s, 0, s->stream[0], err);
    s->kind->free_host(s->device, memory);
    TRY(status);
    return memcmp(s->got, s->sent, BYTES) == 0 ? STATUS_OK : WRONG(err, "other bytes came back");
}

/* ---- work in queues ---- */

/* From an odd address on, there, across and back. */
static enum status round_trip(struct stage *s, void *stream, struct error *err)
{
    const struct device_kind *kind = s->kind;
    char *first = s->memory[0], *second = s->memory[1];
    memset(s->got, 0, BYTES);
    TRY(kind->copy(s->device, first + 3, s->sent + 1, BYTES - 5, COPY_TO_DEVICE, stream, err));
    TRY(kind->copy(s->device, second + 1, first + 3, BYTES - 5, COPY_WITHIN, stream, err));
    TRY(kind->copy(s->device, s->got + 1, second + 1, BYTES - 5, COPY_TO_HOST, stream, err));
    TRY(kind->copy(s->device, first, s->sent, 0, COPY_TO_DEVICE, stream, err));
    TRY(kind->wait(s->device, stream, err));
    bool same = memcmp(s->got + 1, s->sent + 1, BYTES - 5) == 0;
    return same && !s->got[0] && !s->got[BYTES - 4]
               ? STATUS_OK
               : WRONG(err, "copies %s brought other bytes",
                       stream ? "in a queue" : "in the queue NULL");
}

static enum status copies_bring_all_bytes(struct stage *s, struct error *err)
{
    TRY(round_trip(s, s->stream[0], err));
    return round_trip(s, NULL, err);
}

static enum status fill_keeps_to_its_bytes(struct stage *s, struct error *err)
{
    char *middle = (char *)s->memory[0] + 1;
    TRY(fill(s, 0, 0xa5, s->stream[0], err));
    TRY(s->kind->fill(s->device, middle, 7, BYTES - 2, s->stream[0], err));
    TRY(fetch(s, 0, s->stream[0], err));
    for (int k = 0; k < BYTES; k++) {
        int due = k == 0 || k == BYTES - 1 ? 0xa5 : 7;
        if (s->got[k] != due)
            return WRONG(err, "byte %d of %d is %d instead of %d", k, BYTES, s->got[k], due);
    }
    return STATUS_OK;
}

static enum status a_queue_keeps_its_order(struct stage *s, struct error *err)
{
    for (int k = 0; k < ROUNDS; k++) {
        TRY(fill(s, 0, k, s->stream[0], err));
        TRY(copy_within(s, 1, 0, s->stream[0], err));
        TRY(fill(s, 0, 0xff, s->stream[0], err));
    }
    return holds(s, 1, ROUNDS - 1, s->stream[0], "after many fills and copies", err);
}

static enum status events_tell_time(struct stage *s, struct error *err)
{
    double first, both;
    TRY(fill(s, 0, 0, s->stream[0], err));
    for (int k = 0; k < EVENTS; k++) {
        TRY(s->kind->event_record(s->device, s->event[k], s->stream[0], err));
        TRY(fill(s, 0, k, s->stream[0], err));
    }
    TRY(s->kind->wait(s->device, s->stream[0], err));
    TRY(s->kind->event_elapsed(s->device, s->event[0], s->event[1], &first, err));
    TRY(s->kind->event_elapsed(s->device, s->event[0], s->event[2], &both, err));
    return first >= 0 && both >= first && both < 60e9
               ? STATUS_OK
               : WRONG(err, "%g ns to the second event, %g ns to the third", first, both);
}

static enum status poll_knows_the_end(struct stage *s, struct error *err)
{
    bool done = false;
    if (!s->kind->poll)
        return STATUS_OK;
    TRY(fill(s, 0, 0, s->stream[0], err));
    TRY(s->kind->wait(s->device, s->stream[0], err));
    TRY(s->kind->poll(s->device, s->stream[0], &done, err));
    return done ? STATUS_OK : WRONG(err, "after wait, poll says that work is left");
}

static enum status one_queue_follows_another(struct stage *s, struct error *err)
{
    if (!s->kind->mark || !s->kind->follow)
        return STATUS_OK;
    TRY(fill(s, 1, 0, s->stream[1], err));
    for (int k = 1; k <= ROUNDS; k++)
        TRY(fill(s, 0, k, s->stream[0], err));
    TRY(s->kind->mark(s->device, s->event[0], s->stream[0], err));
    TRY(s->kind->follow(s->device, s->stream[1], s->event[0], err));
    TRY(copy_within(s, 1, 0, s->stream[1], err));
    return holds(s, 1, ROUNDS, s->stream[1], "in the queue that follows", err);
}

static enum status a_capture_is_replayed(struct stage *s, struct error *err)
{
    const struct device_kind *kind = s->kind;
    void *stream = s->stream[0];
    if (!kind->capture_begin)
        return STATUS_OK;
    TRY(fill(s, 1, 1, stream, err));
    TRY(kind->wait(s->device, stream, err));
    TRY(kind->capture_begin(s->device, stream, err));
    TRY(fill(s, 0, 9, stream, err));
    TRY(copy_within(s, 1, 0, stream, err));
    TRY(kind->capture_end(s->device, stream, &s->graph, err));
    TRY(holds(s, 1, 1, stream, "before the first replay", err));
    for (int k = 0; k < 2; k++) {
        TRY(fill(s, 1, 1, stream, err));
        TRY(kind->replay(s->device, s->graph, stream, err));
        TRY(holds(s, 1, 9, stream, "after a replay", err));
    }
    return STATUS_OK;
}

/* ---- threads and instances ---- */

struct visitor {
    struct stage *stage;
    struct error err;
    enum status status;
};

static void *visit(void *context)
{
    struct visitor *v = context;
    struct stage *s = v->stage;
    v->status = s->kind->bind(s->device, &v->err);
    if (v->status == STATUS_OK)
        v->status = fill(s, 0, 5, s->stream[0], &v->err);
    if (v->status == STATUS_OK)
        v->status = holds(s, 0, 5, s->stream[0], "in another thread", &v->err);
    return NULL;
}

static enum status another_thread_may_use_it(struct stage *s, struct error *err)
{
    struct visitor visitor = {.stage = s};
    pthread_t thread;
    if (pthread_create(&thread, NULL, visit, &visitor) != 0)
        return FAIL(err, STATUS_FAILED, "cannot start a thread");
    pthread_join(thread, NULL);
    *err = visitor.err;
    return visitor.status;
}

static enum status it_is_opened_twice(struct stage *s, struct error *err)
{
    struct device second;
    char name[DEVICE_NAME_SIZE];
    snprintf(name, sizeof(name), "%s:%d", s->kind->name, s->device->index);
    TRY(device_open(name, &second, err));
    TRY(fill(s, 0, 3, s->stream[0], err));
    enum status status = holds(s, 0, 3, s->stream[0], "while it is open twice", err);
    device_close(&second);
    TRY(status);
    TRY(s->kind->bind(s->device, err));
    return round_trip(s, s->stream[0], err);
}

/* ---- all of it ---- */

static const struct {
    const char *name;
    enum status (*run)(struct stage *s, struct error *err);
} checks[] = {
    {"it says what it is", says_what_it_is},
    {"memory is aligned", memory_is_aligned},
    {"too much memory is refused", too_much_memory_is_refused},
    {"memory of the host is written by the host", host_memory_is_written},
    {"copies bring all bytes", copies_bring_all_bytes},
    {"fill keeps to its bytes", fill_keeps_to_its_bytes},
    {"a queue keeps its order", a_queue_keeps_its_order},
    {"events tell time", events_tell_time},
    {"poll knows the end", poll_knows_the_end},
    {"one queue follows another", one_queue_follows_another},
    {"a capture is replayed", a_capture_is_replayed},
    {"another thread may use it after bind", another_thread_may_use_it},
    {"it is opened twice", it_is_opened_twice},
};

static bool passes(const struct device *device, int check)
{
    struct stage stage;
    struct error err = {0};
    enum status status = stage_init(&stage, device, &err);
    if (status == STATUS_OK)
        status = checks[check].run(&stage, &err);
    stage_release(&stage);
    if (status == STATUS_OK)
        printf("ok - %s\n", checks[check].name);
    else
        printf("not ok - %s: %s\n", checks[check].name, err.message);
    return status == STATUS_OK;
}

struct settings {
    const char *device;
    bool help;
};

static const struct option table[] = {
    {"device", 'd', OPTION_TEXT, offsetof(struct settings, device), "NAME",
     "cpu (default), or one that a plug-in brings: cuda, cuda:1"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    struct settings settings = {0};
    struct device device;
    struct error err = {0};
    int passed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines survive a crash */
    if (options_parse(table, &argc, argv, &settings, &err) != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 2;
    }
    if (settings.help) {
        char text[1024];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options]\n%s", argv[0], text);
        return 0;
    }
    if (device_open(settings.device, &device, &err) != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return err.code == STATUS_UNSUPPORTED ? 5 : 2;
    }
    if (device.kind->bind(&device, &err) == STATUS_OK)
        for (int k = 0; k < ARRAY_COUNT(checks); k++)
            passed += passes(&device, k);
    device_close(&device);
    printf("%d passed, %d failed\n", passed, ARRAY_COUNT(checks) - passed);
    return passed == ARRAY_COUNT(checks) ? 0 : 1;
}
