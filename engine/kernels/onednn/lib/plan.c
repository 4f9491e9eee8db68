/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: choosing implementations, and the hooks that only ask about a kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/onednn/lib/adapter.h"

/* ---- building ---- */

enum status plan_attr(struct plan *plan, struct error *why)
{
    struct step_attr *attr = &plan->attr;
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
    *plan = (struct plan){0};
}

static const char *implementation(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name ? name : "?";
}

/* gemm:jit (also x64:gemm:jit) computes with the stack pointer in a block of the heap: the frame of
 * a signal that comes meanwhile overwrites what lies before the block. As part of a convolution it
 * also adds a wrong element on channels-last images. "ref" is slow, or built on gemm:jit (2.6.3).
 */
static bool is_avoided(const char *name)
{
    return strstr(name, "gemm:jit") || strncmp(name, "ref", 3) == 0 || strstr(name, ":ref");
}

/* The variant-th implementation that will do; NULL when there are not so many. */
static dnnl_primitive_desc_t find(const void *op_desc, const struct step_attr *attr, int variant)
{
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t status =
        dnnl_primitive_desc_iterator_create(&at, op_desc, attr->attr, onednn_engine, NULL);
    while (status == dnnl_success) {
        dnnl_primitive_desc_t found = dnnl_primitive_desc_iterator_fetch(at);
        if (found && !is_avoided(implementation(found)) && variant-- == 0) {
            dnnl_primitive_desc_iterator_destroy(at);
            return found;
        }
        dnnl_primitive_desc_destroy(found);
        status = dnnl_primitive_desc_iterator_next(at);
    }
    dnnl_primitive_desc_iterator_destroy(at);
    return NULL;
}

/* An iterator that finds its first item in oneDNN's cache of primitives does not step on from it
 * but starts again (2.6.3): the cache must be empty when more than the first item is wanted. It is
 * kept otherwise, so that equal layers share their code. */
static enum status choose(const void *op_desc, const struct step_attr *attr, int variant,
                          dnnl_primitive_desc_t *pd, struct error *why)
{
    int capacity = 0;
    if (variant > 0) {
        DNNL_TRY(dnnl_get_primitive_cache_capacity(&capacity), why);
        DNNL_TRY(dnnl_set_primitive_cache_capacity(0), why);
    }
    *pd = find(op_desc, attr, variant);
    if (variant > 0)
        DNNL_TRY(dnnl_set_primitive_cache_capacity(capacity), why);
    return *pd ? STATUS_OK : REFUSE(why, "oneDNN has nothing but its slow reference for it");
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

dnnl_memory_desc_t step_md(const struct plan_step *step, int arg)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(step->pd, dnnl_query_exec_arg_md, arg);
    return md ? *md : (dnnl_memory_desc_t){0};
}

void step_io(struct plan_step *step, int arg, enum source source, size_t index,
             const dnnl_memory_desc_t *md)
{
    step->args[step->arg_count++] =
        (struct step_arg){.arg = arg, .source = source, .index = index, .md = *md};
}

void step_packed(struct plan_step *step, int arg, const dnnl_memory_desc_t *from, const void *data)
{
    step->args[step->arg_count++] = (struct step_arg){
        .arg = arg, .source = SOURCE_PACKED, .md = step_md(step, arg), .from = *from, .data = data};
}

/* Takes pd into the plan with its scratch memory. */
static struct plan_step *add_step(struct plan *plan, dnnl_primitive_desc_t pd)
{
    struct plan_step *step = &plan->steps[plan->step_count++];
    *step = (struct plan_step){.pd = pd};
    dnnl_memory_desc_t scratch = step_md(step, DNNL_ARG_SCRATCHPAD);
    size_t bytes = dnnl_memory_desc_get_size(&scratch);
    if (bytes)
        step_io(step, DNNL_ARG_SCRATCHPAD, SOURCE_WORK, plan_work(plan, bytes), &scratch);
    return step;
}

enum status plan_step(struct plan *plan, const void *op_desc, struct plan_step **step,
                      struct error *why)
{
    struct step_attr *attr = &plan->attr;
    DNNL_TRY(dnnl_primitive_attr_set_post_ops(attr->attr, attr->ops), why);
    int variant = plan->step_count == 0 ? plan->variant : 0;
    dnnl_primitive_desc_t pd = NULL;
    TRY(choose(op_desc, attr, variant, &pd, why));
    *step = add_step(plan, pd);
    for (int k = 0; k < attr->arg_count; k++)
        (*step)->args[(*step)->arg_count++] = attr->args[k];
    attr_free(plan);
    return STATUS_OK;
}

enum status plan_reorder(struct plan *plan, const dnnl_memory_desc_t *from,
                         const dnnl_memory_desc_t *to, struct plan_step **step, struct error *why)
{
    dnnl_primitive_desc_t pd;
    TRY(plan_attr(plan, why));
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, from, onednn_engine, to, onednn_engine,
                                                plan->attr.attr),
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
                         const dnnl_memory_desc_t *from, const void *data, struct error *why)
{
    dnnl_memory_desc_t wanted = step_md(step, arg);
    if (data) {
        step_packed(step, arg, from, data);
        return STATUS_OK;
    }
    if (dnnl_memory_desc_equal(&wanted, from)) {
        step_io(step, arg, SOURCE_IN, (size_t)input, from);
        return STATUS_OK;
    }
    size_t work = plan_work(plan, dnnl_memory_desc_get_size(&wanted));
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
        name = plan->steps[k].conversion ? name : implementation(plan->steps[k].pd);
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
