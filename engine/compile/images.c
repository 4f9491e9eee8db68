/* SPDX-License-Identifier: Apache-2.0
 *
 * Where images lie on a device. On the CPU and in tf32, bf16 and f16 they are channels-last, as the
 * kernels want them. In exact f32 cuDNN's engines take either, and transpose inside what they do
 * not take: which is faster depends on the network, so both are compiled and timed (ways.c). Where
 * nothing is timed images are plain if a library computes on them, for its fast exact engines are
 * made for that (docs/gpu.md). */
#include <string.h>

#include "engine/compile/stages.h"
#include "engine/run/kernels.h"
#include "engine/run/provider.h"

static bool wants_images(const struct op *op)
{
    return op->layout == LAYOUT_RULE_CHANNELS_LAST;
}

static bool is_exact(const struct exe *exe)
{
    return exe_is_on_device(exe) && exe->options.precision == PRECISION_F32;
}

/* Whether a kernel that did not come with the device computes the operator there. */
static bool library_computes(const struct exe *exe, const struct op *op)
{
    const char *device = exe_device(exe)->kind->name;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (kernel->device && strcmp(kernel->device, device) == 0 &&
            strcmp(kernel->provider, device) != 0 && kernel_computes(kernel, op) &&
            provider_allowed(exe->options.providers, kernel->provider))
            return true;
    }
    return false;
}

enum images images_usual(const struct exe *exe)
{
    for (int n = 0; is_exact(exe) && !exe->options.only && n < exe->g->node_count; n++)
        if (wants_images(exe->g->nodes[n].op) && library_computes(exe, exe->g->nodes[n].op))
            return IMAGES_PLAIN;
    return IMAGES_LAST;
}

bool images_in_doubt(const struct exe *exe)
{
    if (!is_exact(exe) || exe->options.only || exe->options.no_tune || exe->options.comm)
        return false; /* ranks must all do the same, as often */
    for (int s = 0; s < exe->step_count; s++) {
        const struct kernel_query *q = &exe->steps[s].query;
        bool either = desc_is_plain(&q->in[0]) && desc_is_nhwc(&q->in[0]);
        if (wants_images(q->node->op) && q->in[0].shape.rank >= 3 && !either)
            return true;
    }
    return false;
}

/* ---- both ---- */

/* Another executable of the same graph. */
static enum status time_one(void *context, int way, int64_t runs, double *ns, struct error *err)
{
    struct exe *const *both = context;
    *ns = exe_time_runs(both[way], runs);
    return exe_status(both[way], err);
}

/* Frees one of the two, or both. */
static enum status keep_faster(struct ways *ways, struct exe **exe, struct exe *other,
                               struct error *err)
{
    struct exe *both[2] = {*exe, other}; /* the usual one first */
    int first = (*exe)->options.images == IMAGES_PLAIN, faster = 0;
    struct exe *by_way[2] = {both[first], both[!first]};
    ways->context = by_way;
    ways->time = time_one;
    enum status status = ways_compare(ways, &faster, err);
    exe_free(by_way[!faster]);
    *exe = by_way[faster];
    if (status == STATUS_OK)
        return status;
    exe_free(*exe);
    *exe = NULL;
    return status;
}

enum status images_settle(const struct graph *graph, struct exe **exe, struct error *err)
{
    struct ways ways = {.names = {"images_last", "images_plain"}};
    struct exe_options options = (*exe)->options;
    struct exe *other;
    struct error why = {0};
    int known = ways_known(&ways, *exe), usual = options.images == IMAGES_PLAIN;
    options.images = usual ? IMAGES_LAST : IMAGES_PLAIN;
    if (known == !usual) {
        struct exe *first = *exe; /* whose names the options still have */
        enum status begun = exe_begin(graph, &options, exe, err);
        exe_free(first);
        TRY(begun);
    }
    TRY(exe_end(exe, err));
    if (known != NONE)
        return STATUS_OK;
    enum status status = exe_begin(graph, &options, &other, &why);
    if (status == STATUS_OK)
        status = exe_end(&other, &why);
    if (status == STATUS_OK)
        return keep_faster(&ways, exe, other, err);
    if (status != STATUS_LOST)
        return STATUS_OK; /* what is there is kept */
    exe_free(*exe);
    *exe = NULL;
    if (err)
        *err = why;
    return status;
}
