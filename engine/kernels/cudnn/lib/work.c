/* SPDX-License-Identifier: Apache-2.0
 *
 * From a description to the hooks of a kernel: supports, variants, prepare. */
#include "engine/kernels/cudnn/lib/work.h"

#include <stdlib.h>
#include <string.h>

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
    struct engines engines;
    cudnn_desc chip;
};

static void made_free(struct made *made)
{
    engines_free(&made->engines);
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
        status = engines_find(&made->work.graph, &rule, &made->engines, why);
    }
    if (status != STATUS_OK)
        made_free(made);
    return status;
}

static enum status make_variant(work_build *build, const struct kernel_query *q, int variant,
                                enum purpose purpose, struct made *made, struct error *why)
{
    TRY(make(build, q, purpose, variant + 1, made, why));
    if (variant < made->engines.count)
        return STATUS_OK;
    int count = made->engines.count;
    made_free(made);
    return REFUSE(why, "cuDNN offers %d engines, none of number %d", count, variant);
}

/* ---- hooks ---- */

enum status work_supports(work_build *build, const struct kernel_query *q, struct error *why)
{
    struct made made;
    TRY(make(build, q, TO_ASK, 1, &made, why));
    made_free(&made);
    return STATUS_OK;
}

int work_variants(work_build *build, const struct kernel_query *q)
{
    struct made made;
    if (make(build, q, TO_ASK, ENGINES_MAX, &made, NULL) != STATUS_OK)
        return 1;
    int count = made.engines.count;
    made_free(&made);
    return count;
}

static bool variant_info(work_build *build, const struct kernel_query *q, int variant,
                         struct engine_info *info)
{
    struct made made;
    if (make_variant(build, q, variant, TO_ASK, &made, NULL) != STATUS_OK)
        return false;
    *info = made.engines.info[variant];
    made_free(&made);
    return true;
}

void work_describe(work_build *build, const struct kernel_query *q, int variant, char *text,
                   size_t size)
{
    struct engine_info info = {.text = ""};
    if (size && variant_info(build, q, variant, &info)) {
        size_t length = strlen(info.text) < size ? strlen(info.text) : size - 1;
        memcpy(text, info.text, length);
        text[length] = 0;
    }
}

/* Known without making the plan, which for some engines takes seconds; prepare compares. */
size_t work_workspace(work_build *build, const struct kernel_query *q, int variant)
{
    struct engine_info info = {.workspace = 0};
    return variant_info(build, q, variant, &info) ? info.workspace : 0;
}

static enum status plan_of(const struct made *made, const struct kernel_query *q, int variant,
                           struct plan **plan, struct error *why)
{
    const struct engine_info *info = &made->engines.info[variant];
    struct plan_wish wish = {.graph = &made->work.graph,
                             .config = made->engines.config[variant],
                             .engine = info->hash,
                             .chip = made->chip,
                             .device = q->device->index};
    if (!device_is_described(q->device))
        TRY(device_handle(q->device, &wish.handle, why));
    TRY(plan_take(&wish, plan, why));
    size_t bytes = (*plan)->workspace;
    if (bytes <= info->workspace)
        return STATUS_OK;
    plan_give_back(*plan);
    *plan = NULL;
    return REFUSE(why, "the plan of %s wants %zu bytes of workspace, its configuration said %zu",
                  info->text, bytes, info->workspace);
}

enum status work_prepare(work_build *build, const struct kernel_query *q, int variant,
                         struct kernel_state **state, size_t *state_bytes, struct error *err)
{
    struct made made;
    struct plan *plan = NULL;
    *state = NULL;
    TRY(make_variant(build, q, variant, TO_PREPARE, &made, err));
    enum status status = plan_of(&made, q, variant, &plan, err);
    if (status == STATUS_OK)
        status = state_new(q, &made.work, plan, state, state_bytes, err);
    if (status != STATUS_OK)
        plan_give_back(plan);
    made_free(&made);
    return status;
}
