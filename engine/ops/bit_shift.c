/* SPDX-License-Identifier: Apache-2.0
 *
 * A shift by the width of the type or more leaves nothing. */
#include "engine/ops/family/op_binary.h"

#include <string.h>

static bool outside(int64_t bits, enum dtype dtype)
{
    return (uint64_t)bits >= 8 * dtype_size(dtype);
}

static int64_t left(int64_t x, int64_t bits, enum dtype dtype)
{
    return outside(bits, dtype) ? 0 : (int64_t)((uint64_t)x << bits);
}

static int64_t right(int64_t x, int64_t bits, enum dtype dtype)
{
    return outside(bits, dtype) ? 0 : (int64_t)((uint64_t)x >> bits);
}

static const struct binary shift_left = {.integer = left, .types = OP_UNSIGNED};
static const struct binary shift_right = {.integer = right, .types = OP_UNSIGNED};

static enum status infer(const struct infer *c, struct error *err)
{
    const char *direction = node_string(c->node, "direction", "");
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return FAIL(err, STATUS_FAILED,
                    "attribute direction of BitShift is \"%s\"; it must be \"LEFT\" or \"RIGHT\"",
                    direction);
    return binary_infer(c, &shift_left, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    bool to_left = strcmp(node_string(call->node, "direction", ""), "LEFT") == 0;
    return binary_reference(call, to_left ? &shift_left : &shift_right);
}

static const char *const attrs[] = {"direction", NULL};

static const struct op_case cases[] = {
    {.name = "left", .inputs = "u8[5]=16,4,1,255,3 u8[5]=1,2,3,1,8", .attrs = "direction=\"LEFT\""},
    {.name = "right", .inputs = "u8[4]=16,4,1,255 u8[4]=1,2,3,7", .attrs = "direction=\"RIGHT\""},
    {.name = "wide",
     .inputs = "u64[3]=18446744073709551615,1,5 u64[3]=63,64,1",
     .attrs = "direction=\"RIGHT\""},
    {.name = "broadcast", .inputs = "u32[3,4] u32[1]=3", .attrs = "direction=\"LEFT\""},
    {.name = "short", .inputs = "u16[3]=65535,1,40000 u16[1]=1", .attrs = "direction=\"LEFT\""},
};

REGISTER(op, bit_shift) = {
    .name = "BitShift",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .no_gradient = "integers have no gradient",
    OP_CASES(cases),
};
