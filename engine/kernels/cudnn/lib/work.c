/* SPDX-License-Identifier: Apache-2.0
 *
 * From a description to the hooks of a kernel: plan, variants, prepare. */
#include "engine/kernels/cudnn/lib/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cudnn/lib/offers.h"
#include "engine/kernels/cudnn/lib/state.h"

/* ---- describing ---- */

static cudnn_desc bind(struct work *work, const struct binding *binding,
                       const struct tensor *tensor)
{
    struct binding *own = &work->bindings[work->binding_count];
    if (work->binding_count == WORK_TENSORS) {
        if (work->graph.status == STATUS_OK)
            work->graph.status =
                REFUSE(&work->graph.why, "more than %d tensors with memory", WORK_TENSORS);
        return NULL;
    }
    work->binding_count++;
    *own = *binding;
    return opgraph_tensor(&work->graph, tensor, &own->uid);
}

cudnn_desc work_in_at(struct work *work, int input, size_t offset, const struct tensor *tensor)
{
    struct binding binding = {.source = SOURCE_IN, .index = input, .offset = offset};
    return bind(work, &binding, tensor);
}

cudnn_desc work_in(struct work *work, int input, const struct tensor *tensor)
{
    return work_in_at(work, input, 0, tensor);
}

cudnn_desc work_out(struct work *work, int output, const struct tensor *tensor)
{
    struct binding binding = {.source = SOURCE_OUT, .index = output};
    return bind(work, &binding, tensor);
}

cudnn_desc work_packed(struct work *work, const struct tensor *tensor,
                       const struct packing *packing)
{
    struct binding binding = {.source = SOURCE_PACKED, .packing = *packing};
    return bind(work, &binding, tensor);
}

cudnn_desc work_value(struct work *work, int rank, float value)
{
    struct binding binding = {.source = SOURCE_VALUE, .value = value};
    struct tensor tensor = {.type = CUDNN_DATA_FLOAT, .rank = rank, .by_value = true};
    for (int k = 0; k < rank; k++)
        tensor.dim[k] = tensor.stride[k] = 1;
    return bind(work, &binding, &tensor);
}

void *work_temporary(struct work *work, size_t bytes)
{
    free(work->temporary);
    work->temporary = calloc(1, bytes + 1);
    return work->temporary;
}

/* ---- a work and its engines ---- */

struct made {
    struct work work;
    struct offer *offer;
    cudnn_desc chip;
};

static void made_free(struct made *made)
{
    offer_give_back(made->offer);
    opgraph_free(&made->work.graph);
    free(made->work.temporary);
}

enum purpose { TO_ASK, TO_PREPARE };

/* With the first `enough` of its engines; the list that comes last is slow to ask for. made_free it
 * when this is OK. */
static enum status make(work_build *build, const struct kernel_query *q, enum purpose purpose,
                        int enough, struct made *made, struct error *why)
{
    *made = (struct made){.work.packing = purpose == TO_PREPARE};
    opgraph_begin(&made->work.graph);
    enum status status = device_chip(q, &made->chip, why);
    if (status == STATUS_OK)
        status = build(q, &made->work, why);
    if (status == STATUS_OK)
        status = opgraph_end(&made->work.graph, why);
    if (status == STATUS_OK) {
        struct engine_rule rule = {.device = made->chip,
                                   .exact = q->in[0].dtype == DTYPE_F32 && !q->tf32,
                                   .enough = enough};
        status = offer_take(&made->work.graph, &rule, &made->offer, why);
    }
    if (status != STATUS_OK)
        made_free(made);
    return status;
}

static enum status make_variant(work_build *build, const struct kernel_query *q, int variant,
                                enum purpose purpose, struct made *made, struct error *why)
{
    TRY(make(build, q, purpose, variant + 1, made, why));
    if (variant < made->offer->engines.count)
        return STATUS_OK;
    int count = made->offer->engines.count;
    made_free(made);
    return REFUSE(why, "cuDNN offers %d engines, none of number %d", count, variant);
}

/* ---- hooks ---- */

enum status work_plan(work_build *build, const struct kernel_query *q, int variant,
                      struct kernel_state *state, struct error *why)
{
    struct made made;
    TRY(make_variant(build, q, variant, TO_ASK, &made, why));
    state->build = build;
    state->q = q;
    state->variant = variant;
    state->info = made.offer->engines.info[variant];
    made_free(&made);
    return STATUS_OK;
}

/* All are asked for here only: plan is content with those up to its own. */
int work_variants(const struct kernel_state *state)
{
    struct made made;
    if (make(state->build, state->q, TO_ASK, ENGINES_MAX, &made, NULL) != STATUS_OK)
        return 1;
    int count = made.offer->engines.count;
    made_free(&made);
    return count;
}

void work_describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, "%s", state->info.text);
}

/* Known without making cuDNN's plan; prepare compares. */
size_t work_workspace(const struct kernel_state *state)
{
    return state->info.workspace;
}

static enum status make_plan(const struct made *made, struct kernel_state *state, struct error *why)
{
    const struct engine_info *info = &state->info;
    const struct device *device = state->q->device;
    struct plan_wish wish = {.graph = &made->work.graph,
                             .config = made->offer->engines.config[state->variant],
                             .engine = info->hash,
                             .compiled = engine_is_compiled(info),
                             .chip = made->chip,
                             .device = device->index};
    if (!device_is_described(device))
        TRY(device_handle(device, &wish.handle, why)); /* rather here than in the first launch */
    TRY(plan_take(&wish, &state->plan, why));
    size_t bytes = state->plan->workspace;
    return bytes <= info->workspace
               ? STATUS_OK
               : REFUSE(why,
                        "the plan of %s wants %zu bytes of workspace, its configuration said %zu",
                        info->text, bytes, info->workspace);
}

enum status work_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err)
{
    struct made made;
    TRY(make_variant(state->build, q, state->variant, TO_PREPARE, &made, err));
    enum status status = make_plan(&made, state, err);
    if (status == STATUS_OK)
        status = state_bind(state, &made.work, packed_bytes, err);
    made_free(&made);
    return status;
}
