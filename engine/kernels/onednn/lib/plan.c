/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: their steps, and the hooks that only ask about a kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/onednn/lib/adapter.h"

/* ---- building ---- */

enum status plan_attr(struct plan *plan, struct error *why)
{
    struct step_attr *attr = &plan->attr;
    attr->plan = plan;
    DNNL_TRY(dnnl_primitive_attr_create(&attr->attr), why);
    DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(attr->attr, dnnl_scratchpad_mode_user), why);
    DNNL_TRY(dnnl_post_ops_create(&attr->ops), why);
    return STATUS_OK;
}

static void attr_free(struct plan *plan)
{
    if (plan->attr.ops)
        dnnl_post_ops_destroy(plan->attr.ops);
    if (plan->attr.attr)
        dnnl_primitive_attr_destroy(plan->attr.attr);
    plan->attr = (struct step_attr){0};
}

void plan_free(struct plan *plan)
{
    for (int k = 0; k < plan->step_count; k++)
        dnnl_primitive_desc_destroy(plan->steps[k].pd);
    for (int k = 0; k < plan->temporary_count; k++)
        free(plan->temporary[k]);
    attr_free(plan);
    layouts_free(&plan->layouts);
    *plan = (struct plan){0};
}

size_t plan_work(struct plan *plan, size_t bytes)
{
    size_t offset = plan->work_bytes;
    plan->work_bytes += round_up(bytes, ALIGN_TENSOR);
    return offset;
}

void *plan_temporary(struct plan *plan, size_t bytes)
{
    if (plan->temporary_count == ARRAY_COUNT(plan->temporary))
        return NULL;
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (memory)
        plan->temporary[plan->temporary_count++] = memory;
    return memory;
}

struct memory_layout step_layout(const struct plan_step *step, int arg)
{
    return layout_known(dnnl_primitive_desc_query_md(step->pd, dnnl_query_exec_arg_md, arg));
}

void step_io(struct plan_step *step, int arg, enum source source, size_t index,
             const struct memory_layout *layout)
{
    step->args[step->arg_count++] =
        (struct step_arg){.arg = arg, .source = source, .index = index, .layout = *layout};
}

void step_packed(struct plan_step *step, int arg, const struct memory_layout *from,
                 const void *data)
{
    step->args[step->arg_count++] = (struct step_arg){.arg = arg,
                                                      .source = SOURCE_PACKED,
                                                      .layout = step_layout(step, arg),
                                                      .from = *from,
                                                      .data = data};
}

/* Takes pd into the plan with its scratch memory. */
static struct plan_step *add_step(struct plan *plan, dnnl_primitive_desc_t pd)
{
    struct plan_step *step = &plan->steps[plan->step_count++];
    *step = (struct plan_step){.pd = pd};
    struct memory_layout scratch = step_layout(step, DNNL_ARG_SCRATCHPAD);
    size_t bytes = layout_size(&scratch);
    if (bytes)
        step_io(step, DNNL_ARG_SCRATCHPAD, SOURCE_WORK, plan_work(plan, bytes), &scratch);
    return step;
}

enum status plan_step(struct plan *plan, const struct operation *operation, struct plan_step **step,
                      struct error *why)
{
    struct step_attr *attr = &plan->attr;
    DNNL_TRY(dnnl_primitive_attr_set_post_ops(attr->attr, attr->ops), why);
    int variant = plan->step_count == 0 ? plan->variant : 0;
    dnnl_primitive_desc_t pd = NULL;
    TRY(operation_choose(operation, attr->attr, variant, &pd, why));
    *step = add_step(plan, pd);
    for (int k = 0; k < attr->arg_count; k++)
        (*step)->args[(*step)->arg_count++] = attr->args[k];
    attr_free(plan);
    return STATUS_OK;
}

enum status plan_reorder(struct plan *plan, const struct memory_layout *from,
                         const struct memory_layout *to, struct plan_step **step, struct error *why)
{
    dnnl_primitive_desc_t pd;
    TRY(plan_attr(plan, why));
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, layout_md(from), onednn_engine, layout_md(to),
                                                onednn_engine, plan->attr.attr),
             why);
    *step = add_step(plan, pd);
    (*step)->conversion = true;
    attr_free(plan);
    return STATUS_OK;
}

void plan_last_first(struct plan *plan)
{
    struct plan_step last = plan->steps[plan->step_count - 1];
    memmove(&plan->steps[1], &plan->steps[0],
            (size_t)(plan->step_count - 1) * sizeof(plan->steps[0]));
    plan->steps[0] = last;
}

enum status step_weights(struct plan *plan, struct plan_step *step, int arg, int input,
                         const struct memory_layout *from, const void *data, struct error *why)
{
    struct memory_layout wanted = step_layout(step, arg);
    if (data) {
        step_packed(step, arg, from, data);
        return STATUS_OK;
    }
    if (layout_equal(&wanted, from)) {
        step_io(step, arg, SOURCE_IN, (size_t)input, from);
        return STATUS_OK;
    }
    size_t work = plan_work(plan, layout_size(&wanted));
    step_io(step, arg, SOURCE_WORK, work, &wanted);
    TRY(plan_reorder(plan, from, &wanted, &step, why));
    step_io(step, DNNL_ARG_FROM, SOURCE_IN, (size_t)input, from);
    step_io(step, DNNL_ARG_TO, SOURCE_WORK, work, &wanted);
    plan_last_first(plan);
    return STATUS_OK;
}

/* ---- hooks ---- */

enum status plan_make(plan_build *build, const struct kernel_query *q, struct plan *plan,
                      struct error *why)
{
    enum status status = build(q, plan, why);
    if (status != STATUS_OK)
        plan_free(plan);
    return status;
}

static void name_steps(const struct plan *plan, char *text, size_t size)
{
    const char *name = "";
    int conversions = 0;
    for (int k = 0; k < plan->step_count; k++) {
        conversions += plan->steps[k].conversion;
        name = plan->steps[k].conversion ? name : implementation_name(plan->steps[k].pd);
    }
    if (conversions)
        snprintf(text, size, "%s, %d conversions", name, conversions);
    else
        snprintf(text, size, "%s", name);
}

enum status plan_query(plan_build *build, int limit, const struct kernel_query *q, int variant,
                       struct kernel_state *state, struct error *why)
{
    struct plan plan = {.variant = variant};
    const struct desc *out = &q->out[0];
    team_threads(q->threads);
    TRY(plan_make(build, q, &plan, why));
    state->build = build;
    state->q = q;
    state->variant = variant;
    state->limit = limit;
    state->work_bytes = plan.work_bytes;
    state->threads = q->threads;
    state->out_bytes = sizeof(float);
    for (int k = 0; k < out->shape.rank; k++)
        state->out_bytes *= (size_t)out->shape.dim[k];
    name_steps(&plan, state->text, sizeof(state->text));
    plan_free(&plan);
    return STATUS_OK;
}

int plan_variants(const struct kernel_state *state)
{
    int count = 1;
    team_threads(state->threads);
    for (; count < state->limit; count++) {
        struct plan plan = {.variant = count};
        if (plan_make(state->build, state->q, &plan, NULL) != STATUS_OK)
            return count;
        plan_free(&plan);
    }
    return count;
}

void plan_describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, "%s", state->text);
}

size_t plan_workspace(const struct kernel_state *state)
{
    return state->work_bytes;
}
