/* SPDX-License-Identifier: Apache-2.0
 *
 * What optimisers share (struct op, .update). One says what one element of a weight becomes:
 *
 *     static void each(const struct update_step *s, double gradient, double *weight, double *slot)
 *
 * slot[k] is the element of slot k. Those that scale a weight's step by norms (LARS, LAMB) say so
 * in .takes_norms, and of which direction, too, and what follows from the norms. Parameters have
 * their places below, for the reference and for kernels alike. With `rule` (struct update_rule) and
 * `law` (struct update_law) in its file it is
 *
 *     UPDATE_OP(momentum, "Momentum", attrs, 4, 0, cases);
 *
 * whose numbers are FLOPs and transcendentals per element. */
#ifndef ENGINE_OPS_FAMILY_UPDATE_H
#define ENGINE_OPS_FAMILY_UPDATE_H

#include "engine/graph/op.h"

/* Places of parameters (struct update_rule). Decay multiplies the weight: what is added to its
 * gradient, or, where decay is said to be decoupled, to its step. */
enum { UPDATE_DECAY, UPDATE_MOMENTUM };
enum { ADAM_BETA1 = 1, ADAM_BETA2, ADAM_EPSILON, ADAM_CORRECTED };
enum { ADAGRAD_EPSILON = 1, ADAGRAD_RATE_DECAY };
enum { FTRL_L1 = 1 };
enum { RMS_MOMENTUM = UPDATE_MOMENTUM, RMS_RHO, RMS_EPSILON, RMS_TENSORFLOW };
enum { LARS_MOMENTUM = UPDATE_MOMENTUM, LARS_COEFFICIENT, LARS_EPSILON };

/* Of Adam, AdamW and LAMB: which epsilon is the usual one differs. */
#define ADAM_PARAMETERS(epsilon)                                                                   \
    {                                                                                              \
        {"decay", 0}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", epsilon},                      \
        {                                                                                          \
            "corrected", 1                                                                         \
        }                                                                                          \
    }
extern const char *const adam_attrs[];
void adam_begin(struct update_step *s);

/* Inputs and outputs per weight: it, its gradient, its slots; the next one and its next slots. */
static inline int update_width(const struct op *op)
{
    return 2 + op->update->slots;
}

static inline int update_weights(const struct node *node)
{
    return (node->op_inputs - UPDATE_WEIGHTS) / update_width(node->op);
}

/* The input that an output follows: a weight, or one of its slots. */
static inline int update_follows(const struct op *op, int output)
{
    int each = update_width(op) - 1, slot = output % each;
    return UPDATE_WEIGHTS + output / each * update_width(op) + (slot ? 1 + slot : 0);
}

/* What holds for the whole step. */
struct update_step {
    double parameter[UPDATE_PARAMETERS];
    double rate, scale;
    int64_t number;       /* of the step, from 1 on; 0: none is made, all stays as it is */
    double first, second; /* what .begin made of it, else 1 */
    double trust;         /* of this weight: LARS, LAMB */
};

enum { UPDATE_SLOTS_MAX = 2 };

struct update_law {
    void (*each)(const struct update_step *s, double gradient, double *weight, double *slot);
    /* Optional: whose norm is compared with the weight's, and s->trust for these two. */
    double (*direction)(const struct update_step *s, double gradient, double weight,
                        const double *slot);
    double (*trust)(const struct update_step *s, double weight_norm, double direction_norm);
};

enum status update_infer(const struct infer *c, struct error *err);

/* Parameters of the node. */
struct update_step update_step_of(const struct node *node);
/* With the numbers of this step. */
void update_step_begin(struct update_step *s, const struct op *op, double rate, double scale,
                       int64_t number);

/* Runs the law over all elements of all weights. */
enum status update_reference(const struct ref_call *call, const struct update_law *law,
                             struct error *err);
/* Adds `flops` for each element of a weight, and those of decay and of the gradients' scale where
 * there are any. */
void update_cost(const struct infer *c, double flops, double transcendentals, struct cost *cost);

/* Moves Adam's moments on; the step that they ask for, per rate. s->first and s->second correct
 * them for having begun with 0. */
double adam_direction(const struct update_step *s, double gradient, double *slot);
/* What LARS and LAMB make of the norms of a weight and of its gradient or direction. */
double lars_trust(const struct update_step *s, double weight_norm, double gradient_norm);
double lamb_trust(const struct update_step *s, double weight_norm, double direction_norm);

#define UPDATE_OP(symbol, op_name, attr_names, flops, transcendentals, case_table)                 \
    static enum status update_run(const struct ref_call *call, struct error *err)                  \
    {                                                                                              \
        return update_reference(call, &law, err);                                                  \
    }                                                                                              \
    static void update_price(const struct infer *c, struct cost *cost)                             \
    {                                                                                              \
        update_cost(c, flops, transcendentals, cost);                                              \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = op_name,                                                       \
                            .domain = "ridge",                                                     \
                            .inputs_min = UPDATE_SCALE,                                            \
                            .inputs_max = -1,                                                      \
                            .outputs_max = -1,                                                     \
                            .attrs = attr_names,                                                   \
                            .int_inputs = 1u << UPDATE_STEP,                                       \
                            .update = &rule,                                                       \
                            .in_place = ~0u,                                                       \
                            .infer = update_infer,                                                 \
                            .cost = update_price,                                                  \
                            .reference = update_run,                                               \
                            .no_gradient = "nothing is trained through an update",                 \
                            OP_CASES(case_table)}

/* ---- cases ---- */

/* Parts of a case's inputs: a weight of this shape and its gradient; then each slot, of any numbers
 * or of squares. An optimiser joins them to EACH(shape). */
#define WEIGHT(shape)  "f32" shape " f32" shape
#define SLOT(shape)    " f32" shape
#define SQUARES(shape) " f32" shape "{0.01:1}"
/* In front of them: the rate, the step's number, and what gradients are multiplied with. */
#define STEP(number) "f32[]{0.01:0.1} i64[]=" number " - "

/* Cases of every optimiser; `outputs_`: of each weight. */
#define UPDATE_CASES(outputs_, attrs_)                                                             \
    {.name = "one", .inputs = STEP("1") EACH("[33]"), .outputs = outputs_},                        \
        {.name = "two",                                                                            \
         .inputs = STEP("3") EACH("[7,5]") " " EACH("[1031]"),                                     \
         .attrs = attrs_,                                                                          \
         .outputs = 2 * (outputs_)},                                                               \
        {.name = "scaled",                                                                         \
         .inputs = "f32[]{0.01:0.1} i64[]=1000 f32[]{0.1:0.9} " EACH("[3,3,3,2]"),                 \
         .attrs = attrs_,                                                                          \
         .outputs = outputs_},                                                                     \
    {                                                                                              \
        .name = "large", .inputs = STEP("7") EACH("[70000]") " " EACH("[3]") " " EACH("[20000]"),  \
        .attrs = attrs_, .outputs = 3 * (outputs_)                                                 \
    }

#endif
