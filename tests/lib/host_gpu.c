/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/host_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/run/plugin.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"

static struct host_gpu opened;

const struct host_gpu *host_gpu(void)
{
    return &opened;
}

const char *gpu_name(void)
{
    const char *real = getenv("RIDGE_TEST_GPU");
    return real ? real : "cuda";
}

long gpu_live(void)
{
    return opened.live ? opened.live() : 0;
}

struct exe_options gpu_options(const char *device)
{
    return (struct exe_options){
        .threads = 1, .isa = isa_detect(), .no_tune = true, .only_variant = NONE, .device = device};
}

struct exe_options gpu_unfused(bool tuned)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = !tuned;
    options.no_fuse = true;
    options.providers = "cuda";
    return options;
}

struct graph *gpu_small_net(void)
{
    struct graph *g = graph_new("small");
    int x = noise_input(g, "x", shape_of(2, 3, 9, 9));
    x = relu(g, conv2d(g, x, .name = "conv", .out = 8, .kernel = 3, .pad = 1));
    x = flatten(g, global_average_pool(g, x));
    x = dense(g, x, "dense", 10);
    graph_output(g, softmax(g, x, -1));
    return g;
}

struct graph *gpu_mixed_net(void)
{
    struct graph *g = graph_new("mixed");
    int x = noise_input(g, "x", shape_of(4, 32));
    int a = unary(g, "Asinh", dense(g, x, "first", 24));
    int b = dense(g, a, "second", 24);
    graph_output(g, softmax(g, add(g, a, b), -1));
    graph_output(g, unary(g, "Asinh", b));
    graph_output(g, unary(g, "Asinh", x));
    return g;
}

enum {
    ROWS = 2,
    HEADS = 4,
    KV_HEADS = 2,
    SIZE = 16,
    WIDE = HEADS * SIZE,
    NARROW = KV_HEADS * SIZE
};

static int turned(struct graph *g, int x, int positions, int64_t heads)
{
    int cosines = noise_param(g, heads == HEADS ? "cosines" : "cosines2",
                              shape_of(GPU_DECODER_STEPS, SIZE / 2));
    int sines =
        noise_param(g, heads == HEADS ? "sines" : "sines2", shape_of(GPU_DECODER_STEPS, SIZE / 2));
    return graph_node(g, "RotaryEmbedding", NULL, INPUTS(x, cosines, sines, positions),
                      ATTRS(attr_int("num_heads", heads)));
}

static int cached(struct graph *g, const char *name, int x, int at)
{
    int past = graph_state(g, name, DTYPE_F32, shape_of(ROWS, GPU_DECODER_STEPS, NARROW),
                           (struct fill){.kind = FILL_NORMAL, .a = 0, .b = 1});
    int now = graph_node(g, "TensorScatter", NULL, INPUTS(past, x, at), ATTRS(attr_int("axis", 1)));
    graph_state_after(g, past, now);
    return now;
}

struct graph *gpu_decoder(bool odd)
{
    struct graph *g = graph_new("decoder");
    const int64_t one = 1, each[] = {ROWS, 1}, row[] = {ROWS, GPU_DECODER_STEPS * NARROW};
    int x = noise_input(g, "x", shape_of(ROWS, 1, WIDE));
    int at = graph_state(g, "at", DTYPE_I64, shape_of(ROWS), (struct fill){.kind = FILL_CONST});
    int mean = graph_state(g, "mean", DTYPE_F32, shape_of(ROWS, 1, WIDE), noise());
    int positions =
        graph_node(g, "Reshape", NULL, INPUTS(at, graph_const_i64(g, 2, each)), NO_ATTRS);
    int q = turned(g, dense(g, x, "query", WIDE), positions, HEADS);
    int k = cached(g, "keys", turned(g, dense(g, x, "key", NARROW), positions, KV_HEADS), at);
    int v = cached(g, "values", dense(g, x, "value", NARROW), at);
    int y = graph_node(g, "Attention", NULL, INPUTS(q, k, v),
                       ATTRS(attr_int("heads", HEADS), attr_int("kv_heads", KV_HEADS)));
    graph_output(g, add(g, y, mean));
    /* The cache under another name. */
    int flat = graph_node(g, "Reshape", NULL, INPUTS(v, graph_const_i64(g, 2, row)), NO_ATTRS);
    graph_output(g, softmax(g, flat, -1));
    mean = unary(g, odd ? "Asinh" : "Tanh", add(g, mean, y));
    graph_state_after(g, graph_find_value(g, "mean"), mean);
    graph_state_after(g, at, add(g, at, graph_const_i64(g, -1, &one)));
    for (int s = 0; odd && s < g->state_count; s++)
        if (g->states[s].before != at)
            graph_output(g, unary(g, "Asinh", g->states[s].after));
    return g;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

const char *plugins_of_build(const char *program, const char *folder, const char *name)
{
    char path[4096];
    const char *slash = strrchr(program, '/');
    snprintf(path, sizeof(path), "%.*s/../%s", slash ? (int)(slash - program) : 1,
             slash ? program : ".", folder);
    setenv("RIDGE_PLUGIN_PATH", path, 1);
    plugins_load(name);
    return getenv("RIDGE_PLUGIN_PATH");
}

int host_gpu_start(int argc, char **argv)
{
    char path[4200];
    (void)argc;
    snprintf(path, sizeof(path), "%s/cuda.so",
             plugins_of_build(argv[0], "gpu/host/plugins", "cuda"));
    if (access(path, R_OK) != 0) {
        printf("skipped: the plug-in over the host is not built under sanitizers\n");
        exit(UNIT_SKIP);
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *fail = symbol(library, "api_fail"), *calls = symbol(library, "api_calls");
    void *live = symbol(library, "api_live"), *clock = symbol(library, "api_clock");
    void *counted = symbol(library, "api_counted"), *dry = symbol(library, "api_dry");
    memcpy(&opened.script, &fail, sizeof(fail));
    void *lose = symbol(library, "api_lose"), *slow = symbol(library, "api_slow");
    memcpy(&opened.lose, &lose, sizeof(lose));
    memcpy(&opened.slow, &slow, sizeof(slow));
    memcpy(&opened.calls, &calls, sizeof(calls));
    memcpy(&opened.live, &live, sizeof(live));
    memcpy(&opened.clock, &clock, sizeof(clock));
    memcpy(&opened.dry, &dry, sizeof(dry));
    memcpy(&opened.counted, &counted, sizeof(counted));
    return UNIT_RUN;
}

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % below;
}

struct graph *gpu_any_net(unsigned seed)
{
    enum { NODES = 40 };
    struct graph *g = graph_new("any");
    int values[NODES + 1] = {noise_input(g, "x", shape_of(4, 8))};
    for (int n = 0; n < NODES; n++) {
        unsigned count = (unsigned)n + 1, near = count < 6 ? count : 6;
        int a = values[count - 1 - draw(&seed, near)], b = values[draw(&seed, count)];
        switch (draw(&seed, 4)) {
        case 0:
            values[n + 1] = softmax(g, a, -1);
            break;
        case 1:
            values[n + 1] = unary(g, "Tanh", a);
            break;
        case 2:
            values[n + 1] = add(g, a, b);
            break;
        default:
            values[n + 1] = softmax(g, mul(g, a, b), 0);
        }
    }
    for (int n = NODES - 3; n <= NODES; n++)
        graph_output(g, values[n]);
    return g;
}
