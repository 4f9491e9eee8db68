/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in with three kernels of Relu for the device "cuda", which are right, wrong, slow, or
 * break its rules as a test wants (actors.h), and one of MaxPool that takes nothing. They only use
 * the device's own functions. */
#include "tests/gpu/actors/actors.h"

#include "engine/run/plugin.h"

enum { LARGE = 4096 }; /* larger inputs have no negative numbers */

struct kernel_state {
    int actor, variant;
    const struct device *device;
    int64_t count;
};

static const struct plugin_host *host;
static struct actor cast[ACTORS];

__attribute__((visibility("default"))) struct actor *actors(void)
{
    return cast;
}

static enum status plan_as(int actor, const struct kernel_query *q, int variant,
                           struct kernel_state *state, struct error *why)
{
    if (cast[actor].variants == 0 || q->in[0].dtype != DTYPE_F32)
        return host->refuse(why, STATUS_UNSUPPORTED, "does not play");
    *state = (struct kernel_state){actor, variant, q->device, shape_count(&q->out[0].shape)};
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return cast[s->actor].variants;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    (void)packed_bytes;
    return cast[s->actor].plays[s->variant].refuses
               ? host->refuse(err, STATUS_FAILED, "does not want to be prepared")
               : STATUS_OK;
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct act_of_variant *play = &cast[s->actor].plays[s->variant];
    struct error *err = args->err && args->err->code == STATUS_OK ? args->err : NULL;
    const struct device_kind *kind = s->device->kind;
    struct post relu = {.kind = POST_ACT, .act = FN_RELU};
    int64_t count = s->count;
    enum status status = STATUS_OK;
    play->launches++;
    for (int k = 0; k <= play->copies && status == STATUS_OK; k++)
        status = kind->copy(s->device, args->out[0], args->in[0], (size_t)count * 4, COPY_WITHIN,
                            args->stream, err);
    if (status == STATUS_OK && count <= LARGE)
        status =
            kind->activate(s->device, &relu, DTYPE_F32, args->out[0], count, args->stream, err);
    if (status == STATUS_OK && play->wrong_count)
        status = kind->fill(s->device, (float *)args->out[0] + play->wrong_at, 0x41,
                            (size_t)play->wrong_count * 4, args->stream, err);
    if (status == STATUS_OK && play->waits)
        kind->wait(s->device, args->stream, play->silent ? NULL : err);
}

#define ACTOR(index, ...)                                                                          \
    static enum status plan_##index(const struct kernel_query *q, int variant,                     \
                                    struct kernel_state *state, struct error *why)                 \
    {                                                                                              \
        return plan_as(index, q, variant, state, why);                                             \
    }                                                                                              \
    static const struct kernel actor_##index = {.name = "actor_" #index,                           \
                                                .provider = "actors",                              \
                                                .device = "cuda",                                  \
                                                .ops = OPS("Relu"),                                \
                                                .state_size = sizeof(struct kernel_state),         \
                                                .plan = plan_##index,                              \
                                                .variants = variants,                              \
                                                .prepare = prepare,                                \
                                                .launch = launch,                                  \
                                                __VA_ARGS__}

ACTOR(0, .unlike_variants = false);
ACTOR(1, .unlike_variants = true);
ACTOR(2, .ranked_variants = true);

/* Stands for a library that computes on images, and refuses these. */
static enum status plan_bystander(const struct kernel_query *q, int variant,
                                  struct kernel_state *state, struct error *why)
{
    (void)q;
    (void)variant;
    (void)state;
    return host->refuse(why, STATUS_UNSUPPORTED, "does not play");
}

static const struct kernel bystander = {.name = "bystander",
                                        .provider = "actors",
                                        .device = "cuda",
                                        .ops = OPS("MaxPool"),
                                        .plan = plan_bystander,
                                        .launch = launch};

static const struct kernel *const kernels[] = {&actor_0, &actor_1, &actor_2, &bystander};

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "actors",
    .version = "",
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
};

const struct plugin *ridge_plugin(const struct plugin_host *offered, struct error *why)
{
    (void)why;
    host = offered;
    return &table;
}
